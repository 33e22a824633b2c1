//! Labels of a new array, as `gmirror label`, `graid3 label`, `gstripe label` and `gconcat label` write them.

use raidlab_core::{Layout, Level, SECTOR_BYTES, Sectors};

use super::{Kind, Label};

/// What is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Creation {
    /// The layout.
    pub layout: Layout,
    /// The array's name, at most 15 letters.
    pub name: String,
    /// The array's number.
    pub id: u32,
    /// Each device: what it has, and a number that only it has.
    pub devices: Vec<(Sectors, u32)>,
    /// Sectors of 512 bytes that a sector of each has.
    pub sector: Sectors,
}

/// The labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The class.
    pub kind: Kind,
    /// One for each device, for the start of its last sector.
    pub labels: Vec<Label>,
}

impl Creation {
    /// The class that a level is.
    fn kind(&self) -> Result<Kind, String> {
        let plain = Layout::new(self.layout.level, self.layout.members);
        let is_plain = self.layout == plain.clone().with_chunk(self.layout.chunk);
        match self.layout.level {
            _ if !is_plain => Err(format!("GEOM has no {}", self.layout)),
            Level::Linear if self.layout.chunk.0 > 0 => {
                Err("gconcat has no chunk: leave it out".into())
            }
            Level::Raid1 => Ok(Kind::Mirror),
            Level::Raid3 => Ok(Kind::Raid3),
            Level::Raid0 => Ok(Kind::Stripe),
            Level::Linear => Ok(Kind::Concat),
            level => {
                Err(format!("GEOM has no {}: it has raid0, raid1, raid3 and linear", level.name()))
            }
        }
    }

    /// The labels.
    ///
    /// # Errors
    /// Why there cannot be such an array, in words.
    pub fn labels(&self) -> Result<Made, String> {
        let kind = self.kind()?;
        let is_name = !self.name.is_empty() && self.name.len() < 16;
        if !is_name || !self.name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/') {
            let what = "is no name of a GEOM array: 1 to 15 letters, digits and signs but /";
            return Err(format!("`{}` {what}", self.name));
        }
        let members = self.layout.members;
        let most = if kind == Kind::Mirror { 255 } else { u16::MAX };
        if members > most || self.devices.len() != usize::from(members) {
            return Err(format!("{} of {} devices cannot be", self.layout, self.devices.len()));
        }
        let room = self
            .devices
            .iter()
            .map(|(device, _)| device.0.saturating_sub(self.sector.0) * SECTOR_BYTES);
        let least = room.min().unwrap_or_default();
        let (data, sector) = (u64::from(members.max(2) - 1), self.sector.bytes());
        let (array_bytes, sector_bytes) = match kind {
            Kind::Mirror => (least / sector * sector, sector),
            Kind::Raid3 => (least / sector * sector * data, sector * data),
            Kind::Stripe | Kind::Concat => (0, 0),
        };
        let label = |(number, (device, disk)): (u16, &(Sectors, u32))| Label {
            kind,
            version: kind.versions().1,
            name: self.name.clone(),
            id: self.id,
            disk: if kind == Kind::Mirror { *disk } else { 0 },
            number: if kind == Kind::Mirror { 0 } else { number },
            members,
            genid: 0,
            syncid: u32::from(kind.is_redundant()),
            priority: if kind == Kind::Mirror { number as u8 } else { 0 },
            slice: if kind == Kind::Mirror { 4096 } else { 0 },
            balance: if kind == Kind::Mirror { 2 } else { 0 },
            stripe: if kind == Kind::Stripe {
                u32::try_from(self.layout.chunk.bytes()).unwrap_or(0)
            } else {
                0
            },
            array_bytes,
            sector_bytes: sector_bytes as u32,
            sync_offset: 0,
            array_flags: 0,
            device_flags: 0,
            provider: String::new(),
            provider_bytes: device.bytes(),
        };
        let labels: Vec<Label> = (0..).zip(&self.devices).map(label).collect();
        for label in &labels {
            // As it will be read.
            let read = Label::parse(kind, &label.bytes()).map_err(|damage| damage.to_string())?;
            read.check(Sectors(label.provider_bytes / SECTOR_BYTES), self.sector)
                .map_err(|damage| damage.to_string())?;
        }
        Ok(Made { kind, labels })
    }
}
