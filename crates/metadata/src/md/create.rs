//! Where everything of a new array goes: the choices of `mdadm --create`, as observed of mdadm 4.2, so that
//! an array made here lies as one that mdadm made of the same devices. `docs/md-format.md` has the rules in words.

use std::fmt;

use raidlab_core::consistency::ArrayId;
use raidlab_core::contract::Superblock as Said;
use raidlab_core::{Layout, Level, Redundancy, SECTOR_BYTES, Sector, Sectors};

use super::bitmap::HEAD as BITMAP_HEAD;
use super::superblock::{HEAD, MOST_DEVICES, MOST_OF_DEVICE};
use super::v0::Own;
use super::{
    ALL, Aside, BadBlockLog, Bitmap, BitmapKind, DeviceNumbers, Features, JournalFound, PplHeader,
    Reshape, Role, Superblock, V0, Version, journal, v0, word,
};

/// Data start on multiples of 1 MiB.
const MIB: u64 = 2048;
/// Sectors of a list of bad blocks, and of the place of a superblock.
const PAGE: u64 = 8;
/// Sectors kept for partial parity.
const PPL: u64 = 2048;
/// A bit of the bitmap stands for at least so many bytes where nobody says how many.
const LEAST_BITMAP_CHUNK: u64 = 64 << 20;
/// The least that a bit may stand for, in bytes.
const LEAST_BITMAP_UNIT: u64 = 4096;
/// mdadm adds a bitmap by itself where a member has more for data: 100 GiB.
const BITMAP_FROM: u64 = 100 << 21;
/// Members of partial parity at most.
const MOST_PPL: u16 = 64;

/// Whether there is to be a bitmap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WantedBitmap {
    /// On redundant arrays of members of more than 100 GiB, as mdadm 4.2.
    #[default]
    Auto,
    /// No.
    None,
    /// Yes.
    Internal,
    /// Yes, with a bit for so much: a power of two.
    Chunk(Sectors),
}

impl WantedBitmap {
    /// Whether one is asked for.
    const fn is_asked(self) -> bool {
        matches!(self, Self::Internal | Self::Chunk(_))
    }
}

/// A device for a new array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Sectors of it.
    pub sectors: Sectors,
    /// A random number, its own.
    pub id: [u8; 16],
}

/// The log device of a new array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogDevice {
    /// The device.
    pub device: Device,
    /// The number of the first block: random, so that no block that is left from before follows it.
    pub first: u32,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Creation {
    /// Level, members, chunk and layout.
    pub layout: Layout,
    /// Where superblocks go.
    pub version: Version,
    /// A device for each member, in order; `None`: missing.
    pub devices: Vec<Option<Device>>,
    /// Devices that wait until a member fails.
    pub spares: Vec<Device>,
    /// Whether there is a bitmap.
    pub bitmap: WantedBitmap,
    /// Partial parity is logged (raid5).
    pub ppl: bool,
    /// A journal is on this device (raid4, raid5, raid6).
    pub journal: Option<LogDevice>,
    /// Redundancy is consistent already.
    pub assume_clean: bool,
    /// Where data start, instead of where mdadm has them start.
    pub data_offset: Option<Sectors>,
    /// Sectors to use of each member, instead of all of the smallest.
    pub size: Option<Sectors>,
    /// The identity: random.
    pub array: ArrayId,
    /// `homehost:name`, or the name alone.
    pub name: String,
    /// Now, in seconds since 1970.
    pub now: u64,
}

/// Why an array cannot be made; says what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impossible(pub String);

impl fmt::Display for Impossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Impossible {}

/// What is written to a device: each piece of bytes, and the sector it goes to. The superblock is the last, so that
/// what was interrupted is no member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// What its superblock says.
    pub superblock: Superblock,
    /// What is written, in this order.
    pub pieces: Vec<(Sector, Vec<u8>)>,
}

/// A new array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Sectors used of each member; 0 where each is used to its end.
    pub size: Sectors,
    /// Where data start on each member.
    pub data_offset: Sectors,
    /// The bitmap, if there is one.
    pub bitmap: Option<Bitmap>,
    /// What is written to each device that is there.
    pub members: Vec<Option<Made>>,
    /// What is written to each spare.
    pub spares: Vec<Made>,
    /// What is written to the log device.
    pub journal: Option<Made>,
}

/// Whether nothing of what is written lies on another or on the data.
fn has_room(superblock: &Superblock, pieces: &[(Sector, Vec<u8>)]) -> bool {
    let log = match superblock.aside {
        Aside::PartialParity { offset, size } => {
            superblock.beside(i32::from(offset)).map(|at| (at, u64::from(size)))
        }
        _ => None,
    };
    let area = |(at, bytes): &(Sector, Vec<u8>)| match log {
        // Of a log only the head is written.
        Some((log, size)) if log == *at => (at.0, size),
        _ => (at.0, bytes.len() as u64 / SECTOR_BYTES),
    };
    let mut areas: Vec<(u64, u64)> = pieces.iter().map(area).collect();
    areas.push((superblock.data_offset, superblock.data_size));
    areas.sort_unstable();
    areas.windows(2).all(|two| two[0].0 + two[0].1 <= two[1].0)
}

/// Where mdadm puts the data of 1.2 on a device of so many sectors, behind superblock and bitmap, in an array of such
/// chunks (zero: none).
pub fn usual_data_offset(device: Sectors, chunk: Sectors) -> Sectors {
    Sectors(data_offset(device, chunk, bitmap_room(device.0)))
}

/// The same with so many sectors beside the superblock (mdadm 4.2, `super1.c`: a reshape has 128 MiB, and at most a
/// 1,024th of the device unless that is less than two chunks).
fn data_offset(device: Sectors, chunk: Sectors, beside: u64) -> u64 {
    let mut headroom = 128 << 11;
    while headroom << 10 > device.0 && (chunk.0 == 0 || headroom / 2 >= 2 * chunk.0) {
        headroom /= 2;
    }
    (24 + beside + headroom).next_multiple_of(MIB)
}

/// Sectors kept for a bitmap on a device, or below so many sectors of data.
const fn bitmap_room(sectors: u64) -> u64 {
    match sectors {
        0..128 => 0,
        more if more - 128 >= 200 << 21 => 256,
        more if more - 8 > 8 << 21 => 128,
        _ => 8,
    }
}

/// Bytes that a bit stands for, as asked; `least` is with how many there is room for all bits.
fn asked_chunk(asked: Sectors, least: u64) -> Result<u32, Impossible> {
    let bytes = asked.0.checked_mul(SECTOR_BYTES).and_then(|bytes| u32::try_from(bytes).ok());
    let is_right = |bytes: &u32| bytes.is_power_of_two() && u64::from(*bytes) >= least;
    bytes.filter(is_right).ok_or_else(|| {
        let least = Sectors(least / SECTOR_BYTES);
        Impossible(format!(
            "a bit of the bitmap cannot stand for {asked}: for a power of two from {least} to 2GiB"
        ))
    })
}

impl Creation {
    /// Where everything goes, and the bytes.
    ///
    /// # Errors
    /// What cannot be, and what would be.
    pub fn plan(&self) -> Result<Plan, Impossible> {
        let wrong = |what: String| Err(Impossible(what));
        let (level, layout_word) = self.check()?;
        let present = || self.devices.iter().flatten();
        let Some(first) = present().next() else { return wrong("all members are missing".into()) };
        // A spare must be able to take any member's place.
        let all = present().chain(&self.spares);
        let smallest = all.map(|device| device.sectors).min().unwrap_or(first.sectors);
        let data_offset = self.data_offset_on(first.sectors);
        let Some(data) = self.data_on(smallest, data_offset) else {
            return wrong(format!(
                "a member of {smallest} is too small: data would start at {} of it",
                Sectors(data_offset)
            ));
        };
        let chunk = self.layout.chunk.0;
        let size = self.size(data)?;
        let bitmap = self.has_bitmap(size).then(|| self.bitmap(size)).transpose()?;
        let mut superblock = Superblock {
            features: Features(0),
            array: self.array,
            name: self.name_bytes()?,
            created: self.now,
            level,
            layout: layout_word,
            size,
            chunk: chunk as u32,
            members: u32::from(self.layout.members),
            aside: Aside::Nothing,
            reshape: Reshape::default(),
            data_offset,
            data_size: 0,
            super_offset: 0,
            recovery: 0,
            number: 0,
            corrected: 0,
            device: [0; 16],
            flags: 0,
            bad_blocks: BadBlockLog { shift: 0, size: PAGE as u16, offset: 0 },
            updated: self.now,
            events: 0,
            resync: self.resync(),
            logical_block: 0,
            roles: self.roles(),
            v0: self.v0(size)?,
        };
        self.say_zones(&mut superblock, data_offset);
        self.say_beside(&mut superblock, bitmap.as_ref());
        self.say_v0(&mut superblock);
        let made = |name: String, number: u32, device: &Device| {
            self.made(&name, number, device, &superblock, bitmap.as_ref())
        };
        let member = |(place, device): (usize, &Option<Device>)| {
            let made = |device| made(format!("member {place}"), self.number_of(place), device);
            device.as_ref().map(made).transpose()
        };
        let spare = |(place, device): (usize, &Device)| {
            made(format!("spare {place}"), (self.devices.len() + place) as u32, device)
        };
        let members = self.devices.iter().enumerate().map(member).collect::<Result<_, _>>()?;
        let spares = self.spares.iter().enumerate().map(spare).collect::<Result<_, _>>()?;
        let journal = self.journal.map(|log| self.made_log(&log, &superblock)).transpose()?;
        let (size, data_offset) = (Sectors(size), Sectors(data_offset));
        Ok(Plan { size, data_offset, bitmap, members, spares, journal })
    }

    /// The level and the word for its layout, if all that is asked for can be.
    fn check(&self) -> Result<(i32, u32), Impossible> {
        let wrong = |what: String| Err(Impossible(what));
        let layout = &self.layout;
        if let Err(error) = layout.check() {
            return wrong(error.to_string());
        }
        if layout.inner.is_some() {
            return wrong(
                "nested levels are arrays of their own to md: create the lower ones first".into(),
            );
        }
        let Some(numbers) = word(layout) else {
            return wrong(format!("Linux md has no {}", layout.level));
        };
        if self.devices.len() != usize::from(layout.members) {
            return wrong(format!(
                "{} devices are given for {} members",
                self.devices.len(),
                layout.members
            ));
        }
        let is_striped = layout.level.has_chunks() && layout.level != Level::Raid0;
        if is_striped && layout.chunk.0 < PAGE || !layout.chunk.0.is_multiple_of(2) {
            return wrong(format!(
                "md takes no chunk of {}: at least 4 KiB (raid0: 1 KiB)",
                layout.chunk
            ));
        }
        let missing = self.devices.iter().filter(|device| device.is_none()).count();
        if missing > usize::from(layout.survives()) {
            return wrong(format!("{layout} does not survive {missing} missing members"));
        }
        if !self.spares.is_empty() && !layout.level.is_redundant() {
            return wrong(format!("{} loses its data with a member: no spare helps", layout.level));
        }
        if self.numbers() > MOST_DEVICES {
            return wrong(format!(
                "a superblock has numbers for {MOST_DEVICES} devices, and {} are needed",
                self.numbers()
            ));
        }
        if self.ppl && (layout.level != Level::Raid5 || layout.members > MOST_PPL) {
            return wrong(format!(
                "partial parity is logged on raid5 of at most {MOST_PPL} members"
            ));
        }
        if self.ppl && self.bitmap.is_asked() {
            return wrong("an array has a bitmap or a log of partial parity, not both".into());
        }
        if self.journal.is_some() {
            self.check_journal()?;
        }
        if self.version == Version::V0_90 {
            self.check_v0()?;
        }
        if self.bitmap.is_asked() && !layout.level.is_redundant() {
            return wrong(format!(
                "{} has no redundancy that a bitmap could be about",
                layout.level
            ));
        }
        self.check_sizes()?;
        Ok(numbers)
    }

    /// That superblocks which say how large the devices are will be believed.
    fn check_sizes(&self) -> Result<(), Impossible> {
        let all = self.devices.iter().flatten().chain(&self.spares);
        match all.map(|device| device.sectors).max() {
            Some(large) if large > MOST_OF_DEVICE => Err(Impossible(format!(
                "a device of an array has at most {MOST_OF_DEVICE}, not {large}: give smaller ones, such as partitions"
            ))),
            _ => Ok(()),
        }
    }

    /// What an array with a journal cannot have. It is used in pages.
    fn check_journal(&self) -> Result<(), Impossible> {
        let wrong = |what: String| Err(Impossible(what));
        let layout = &self.layout;
        if !layout.level.has_stripes() {
            return wrong(format!(
                "a journal is for raid4, raid5 and raid6, not for {}",
                layout.level
            ));
        }
        if !matches!(self.version, Version::V1_1 | Version::V1_2) {
            return wrong(format!(
                "an array of version {} has no journal: use 1.1 or 1.2",
                self.version
            ));
        }
        if self.bitmap.is_asked() || self.ppl {
            let other = if self.ppl { "a log of partial parity" } else { "a bitmap" };
            return wrong(format!("an array has a journal or {other}, not both"));
        }
        if let Some(start) = self.data_offset.filter(|at| !at.0.is_multiple_of(journal::PAGE)) {
            let page = Sectors(journal::PAGE);
            return wrong(format!(
                "with a journal data start at a multiple of {page}, not at {start}"
            ));
        }
        Ok(())
    }

    /// What version 0.90 cannot hold.
    fn check_v0(&self) -> Result<(), Impossible> {
        let wrong = |what: String| Err(Impossible(format!("version 0.90 {what}")));
        let most = v0::MOST_DEVICES;
        if self.numbers() > most {
            // raid4 and raid5 begin with a spare.
            let less =
                if self.begins_with_rebuild() { " (--assume-clean needs one less)" } else { "" };
            return wrong(format!(
                "has numbers for {most} devices, and {} are needed{less}",
                self.numbers()
            ));
        }
        if self.ppl {
            return wrong("has no place for partial parity".into());
        }
        if self.data_offset.is_some() {
            return wrong(
                "has data start at the start of each member: leave --data-offset out".into(),
            );
        }
        let all = self.devices.iter().flatten();
        let mut ends = all.map(|one| self.data_on(one.sectors, 0));
        let first = ends.next();
        if self.layout.level == Level::Raid0 && ends.any(|end| Some(end) != first) {
            return wrong(
                "does not say how zones of raid0 are ordered: give members of one size".into(),
            );
        }
        Ok(())
    }

    /// What only version 0.90 says. The number of the array's device stands for a name.
    fn v0(&self, size: u64) -> Result<Option<Box<V0>>, Impossible> {
        if self.version != Version::V0_90 {
            return Ok(None);
        }
        let number = self.name.strip_prefix("md").and_then(|number| number.parse().ok());
        let Some(number) = number.filter(|number| *number < 1 << 20) else {
            return Err(Impossible(format!(
                "version 0.90 has no names but the number of the array's device, as in md0, and no host: not `{}`",
                self.name
            )));
        };
        Ok(Some(Box::new(V0::new(number, size))))
    }

    /// The table of devices, which is the same for all of them but for the line of each itself.
    fn say_v0(&self, superblock: &mut Superblock) {
        let mut numbers = DeviceNumbers::new(self.layout.members);
        numbers.now = self.now;
        let mut said =
            Said { events: v0::FIRST_EVENTS, clean: superblock.resync > 0, ..Said::default() };
        said.synced_to = Sector(superblock.resync);
        for (place, device) in self.devices.iter().enumerate() {
            let is_rebuilt = self.number_of(place) as usize != place;
            let bits = if is_rebuilt { &mut said.rebuilding } else { &mut said.failed };
            if is_rebuilt || device.is_none() {
                bits[place / 64] |= 1 << (place % 64);
            }
            numbers.set(place, device.map(|_| self.number_of(place) as u16));
        }
        let spares = 0..self.spares.len();
        spares.for_each(|spare| numbers.add_spare((self.devices.len() + spare) as u16));
        V0::say(superblock, &said, Own::Place(0), &numbers);
    }

    /// Where data start: behind superblock, bitmap and room for a reshape. The first device decides for all.
    fn data_offset_on(&self, device: Sectors) -> u64 {
        if let Some(given) = self.data_offset {
            return given.0;
        }
        if self.is_at_end() {
            return 0;
        }
        let beside = if self.ppl { PPL } else { bitmap_room(device.0) };
        data_offset(device, self.layout.chunk, beside)
    }

    /// Sectors of a device that the array could use.
    fn data_on(&self, device: Sectors, data_offset: u64) -> Option<u64> {
        let end = match self.version {
            Version::V1_0 => {
                let beside = if self.ppl { PPL } else { bitmap_room(device.0) };
                (device.0 / PAGE * PAGE).checked_sub(16 + PAGE + beside)?
            }
            Version::V0_90 => self.version.superblock(device)?.0,
            Version::V1_1 | Version::V1_2 => device.0,
        };
        end.checked_sub(data_offset).filter(|data| *data >= 10)
    }

    /// Sectors used of each member, of which the smallest has so many for data.
    fn size(&self, data: u64) -> Result<u64, Impossible> {
        let wrong = |what: String| Err(Impossible(what));
        let level = self.layout.level;
        if !level.is_redundant() {
            return match self.size {
                Some(_) => wrong(format!("{level} uses each member to its end: leave --size out")),
                None => Ok(0),
            };
        }
        if let Some(asked) = self.size.filter(|asked| asked.0 > data) {
            return wrong(format!(
                "the smallest member has {} for data, not {asked}",
                Sectors(data)
            ));
        }
        let most = self.size.map_or(data, |asked| asked.0);
        if self.version == Version::V0_90 && most > v0::MOST_DATA {
            let most = Sectors(v0::MOST_DATA);
            return wrong(format!(
                "version 0.90 has room for {most} of each member: give --size, or smaller members"
            ));
        }
        let round = match level.redundancy() {
            // 64 KiB.
            Redundancy::Mirror => 128,
            _ => self.layout.chunk.0,
        };
        match most / round * round {
            0 => wrong(format!(
                "the smallest member has {} for data, less than a chunk",
                Sectors(data)
            )),
            size => Ok(size),
        }
    }

    /// Whether there is a bitmap on members of which so much is used.
    fn has_bitmap(&self, size: u64) -> bool {
        let has_log = self.ppl || self.journal.is_some();
        match self.bitmap {
            WantedBitmap::None => false,
            WantedBitmap::Internal | WantedBitmap::Chunk(_) => true,
            WantedBitmap::Auto => {
                self.layout.level.is_redundant() && !has_log && size > BITMAP_FROM
            }
        }
    }

    /// The bitmap of members of which so much is used.
    fn bitmap(&self, size: u64) -> Result<Bitmap, Impossible> {
        let covered = match self.layout.level.redundancy() {
            Redundancy::Copies => {
                let copies = u64::from(self.layout.near) * u64::from(self.layout.far);
                size * u64::from(self.layout.members) / copies
            }
            _ => size,
        };
        let room = match self.version {
            Version::V0_90 => v0::RESERVED - PAGE,
            _ => bitmap_room(size).max(PAGE),
        };
        let room = room * SECTOR_BYTES;
        let most = (room - BITMAP_HEAD as u64) * 8;
        let mut least = LEAST_BITMAP_UNIT;
        while covered.div_ceil(least / SECTOR_BYTES) > most {
            least *= 2;
        }
        let chunk = match self.bitmap {
            WantedBitmap::Chunk(asked) => asked_chunk(asked, least)?,
            _ => least.max(LEAST_BITMAP_CHUNK) as u32,
        };
        let (mut array, mut events) = (self.array, 0);
        if self.version == Version::V0_90 {
            v0::swap_id(&mut array);
            events = v0::FIRST_EVENTS;
        }
        Ok(Bitmap {
            kind: BitmapKind::Plain,
            array,
            events,
            events_cleared: 0,
            covered,
            state: 0,
            chunk,
            delay: 5,
            write_behind: 0,
            reserved: 0,
        })
    }

    /// Whether superblocks stand at the end of a device, and data start at its start.
    fn is_at_end(&self) -> bool {
        matches!(self.version, Version::V0_90 | Version::V1_0)
    }

    fn name_bytes(&self) -> Result<[u8; 32], Impossible> {
        let mut name = [0; 32];
        if self.version == Version::V0_90 {
            return Ok(name);
        }
        let text = self.name.as_bytes();
        if text.len() > name.len() || text.contains(&0) {
            return Err(Impossible(format!(
                "`{}` is no name of an array: at most 32 bytes",
                self.name
            )));
        }
        name[..text.len()].copy_from_slice(text);
        Ok(name)
    }

    /// The member that is to be rebuilt rather than all parity made, the last that is there: what md does with raid4
    /// and raid5, since it reads and writes in one direction on each drive, and what mdadm does with a raid6 that lacks
    /// a member, which md would not start without its parity.
    fn rebuilt(&self) -> Option<usize> {
        let level = self.layout.level;
        let missing = self.devices.iter().filter(|device| device.is_none()).count();
        let can_begin = match level.redundancy() {
            Redundancy::Parity(1) => missing == 0 && level.has_stripes(),
            Redundancy::Parity(parities) => missing > 0 && missing + 1 == usize::from(parities),
            _ => false,
        };
        let last = || self.devices.iter().rposition(Option::is_some);
        if can_begin && !self.assume_clean { last() } else { None }
    }

    /// Whether md begins with a rebuild of a member that is there.
    pub fn begins_with_rebuild(&self) -> bool {
        self.rebuilt().is_some()
    }

    /// How many numbers devices have.
    fn numbers(&self) -> usize {
        self.number_of_log()
            + usize::from(self.journal.is_some())
            + usize::from(self.begins_with_rebuild())
    }

    /// The number of the log device: the first behind the spares.
    fn number_of_log(&self) -> usize {
        self.devices.len() + self.spares.len()
    }

    /// The number of a member's device: of one that is to be rebuilt the first behind spares and log device.
    fn number_of(&self, place: usize) -> u32 {
        let is_rebuilt = self.rebuilt() == Some(place);
        let behind = self.number_of_log() + usize::from(self.journal.is_some());
        (if is_rebuilt { behind } else { place }) as u32
    }

    fn resync(&self) -> u64 {
        let missing = self.devices.iter().filter(|device| device.is_none()).count();
        let nothing = match self.layout.level.redundancy() {
            Redundancy::None => true,
            Redundancy::Parity(1) => true,
            Redundancy::Parity(parities) => {
                missing == usize::from(parities) || self.begins_with_rebuild()
            }
            Redundancy::Mirror | Redundancy::Copies => false,
        };
        if self.assume_clean || nothing { ALL } else { 0 }
    }

    fn roles(&self) -> Vec<Role> {
        let all = ((HEAD + 2 * self.numbers()).next_multiple_of(512) - HEAD) / 2;
        let mut roles = vec![Role::Spare; all.min(MOST_DEVICES)];
        let rebuilt = self.rebuilt();
        for (place, device) in self.devices.iter().enumerate() {
            if device.is_some() && rebuilt != Some(place) {
                roles[place] = Role::Member(place as u16);
            }
        }
        if self.journal.is_some() {
            roles[self.number_of_log()] = Role::Journal;
        }
        roles
    }

    /// raid0 says how its zones are ordered where there is more than one.
    fn say_zones(&self, superblock: &mut Superblock, data_offset: u64) {
        if self.layout.level != Level::Raid0 {
            return;
        }
        let chunk = self.layout.chunk.0.max(1);
        let chunks =
            |device: &Device| self.data_on(device.sectors, data_offset).map(|data| data / chunk);
        let mut all = self.devices.iter().flatten().map(chunks);
        let first = all.next();
        if all.any(|other| Some(other) != first) {
            superblock.features = superblock.features.with(Features::RAID0_LAYOUT);
            superblock.layout = self.layout.zones as u32 + 1;
        }
    }

    /// Where bitmap, partial parity and bad blocks lie.
    fn say_beside(&self, superblock: &mut Superblock, bitmap: Option<&Bitmap>) {
        let behind = self.version != Version::V1_0;
        if bitmap.is_some() {
            superblock.features = superblock.features.with(Features::BITMAP);
            let before = (PAGE + self.beside(superblock.size, bitmap)) as i64;
            let offset = if behind { PAGE as i64 } else { -before };
            superblock.aside = Aside::Bitmap(offset as i32);
        } else if self.ppl {
            superblock.features = superblock.features.with(Features::PPLS);
            let offset = if behind { PAGE as i64 } else { -((PPL + PAGE) as i64) };
            superblock.aside = Aside::PartialParity { offset: offset as i16, size: PPL as u16 };
        }
        if self.journal.is_some() {
            superblock.features = superblock.features.with(Features::JOURNAL);
        }
        if let Some(v0) = &mut superblock.v0 {
            superblock.bad_blocks = BadBlockLog::default();
            v0.set_bitmap(bitmap.is_some());
            return;
        }
        let beside = self.beside(superblock.size, bitmap);
        let offset = if behind { (PAGE + beside) as i64 } else { -(PAGE as i64) };
        superblock.bad_blocks.offset = offset as i32;
    }

    /// Sectors beside the superblock of members of which so much is used: the bitmap, partial parity, or what is kept
    /// for a bitmap.
    fn beside(&self, size: u64, bitmap: Option<&Bitmap>) -> u64 {
        match bitmap.and_then(Bitmap::sectors) {
            Some(sectors) => sectors.0,
            None if self.ppl => PPL,
            None => bitmap_room(size),
        }
    }

    /// Sectors for data on a device, whose superblock stands there. At its end that is all before list and bitmap,
    /// which may be more than what could be used of it.
    fn data_of(
        &self,
        device: &Device,
        at: Sector,
        array: &Superblock,
        bitmap: Option<&Bitmap>,
    ) -> Option<u64> {
        if self.version != Version::V1_0 {
            return self.data_on(device.sectors, array.data_offset);
        }
        let beside = PAGE + self.beside(array.size, bitmap);
        let data = at.0.checked_sub(beside)?.checked_sub(array.data_offset)?;
        Some(data).filter(|data| *data >= array.size.max(10))
    }

    /// What a device is given.
    fn made(
        &self,
        name: &str,
        number: u32,
        device: &Device,
        array: &Superblock,
        bitmap: Option<&Bitmap>,
    ) -> Result<Made, Impossible> {
        let wrong = |what: &str| Impossible(format!("{name}: {what}"));
        let at = self.version.superblock(device.sectors).ok_or_else(|| wrong("too small"))?;
        let data = self.data_of(device, at, array, bitmap).ok_or_else(|| wrong("too small"))?;
        let mut superblock = array.clone();
        superblock.number = number;
        (superblock.device, superblock.super_offset, superblock.data_size) =
            (device.id, at.0, data);
        if let Some(v0) = &mut superblock.v0 {
            v0.own = v0.table.get(number as usize).copied().unwrap_or_default();
            superblock.device = [0; 16];
        }
        let bad_end = at.0 as i64 + i64::from(superblock.bad_blocks.offset) + PAGE as i64;
        if !self.is_at_end() && bad_end > array.data_offset as i64 {
            superblock.bad_blocks.offset = array.data_offset as i32 - PAGE as i32 - at.0 as i32;
        }
        let mut pieces = Vec::new();
        let data_offset = superblock.data_offset;
        let no_room = || match self.version {
            Version::V0_90 | Version::V1_0 => wrong("too small"),
            _ => wrong(&format!(
                "data from sector {data_offset} on have no room: superblock, bitmap or log, and the list of \
                 bad blocks lie there"
            )),
        };
        let beside = |offset| superblock.beside(offset).ok_or_else(no_room);
        if superblock.bad_blocks.size > 0 {
            let at = beside(superblock.bad_blocks.offset)?;
            pieces.push((at, vec![0xff; (PAGE * SECTOR_BYTES) as usize]));
        }
        match (superblock.aside, bitmap) {
            (Aside::Bitmap(offset), Some(bitmap)) => {
                let sectors = bitmap.sectors().ok_or_else(|| wrong("no bitmap"))?;
                let mut bytes = vec![0xff; sectors.bytes() as usize];
                bytes[..BITMAP_HEAD].fill(0);
                bitmap.emit(&mut bytes);
                pieces.push((beside(offset)?, bytes));
            }
            (Aside::PartialParity { offset, .. }, _) => {
                let signature = PplHeader::signature_of(&self.array);
                let mut bytes = vec![0; super::logs::BLOCK];
                PplHeader { signature, generation: 0, entries: Vec::new() }.emit(&mut bytes);
                pieces.push((beside(i32::from(offset))?, bytes));
            }
            _ => {}
        }
        let mut bytes = vec![0; superblock.len().next_multiple_of(SECTOR_BYTES as usize)];
        superblock.emit(&mut bytes).map_err(|damage| wrong(&damage.to_string()))?;
        pieces.push((at, bytes));
        match has_room(&superblock, &pieces) {
            true => Ok(Made { superblock, pieces }),
            false => Err(no_room()),
        }
    }

    /// What the log device is given: a member's superblock with its own role, and the first block of the journal.
    fn made_log(&self, log: &LogDevice, array: &Superblock) -> Result<Made, Impossible> {
        let members = u64::from(self.layout.members);
        journal::check_room(log.device.sectors, array.data_offset, members)?;
        let number = self.number_of_log() as u32;
        let mut made = self.made("the log device", number, &log.device, array, None)?;
        let (position, block) =
            journal::begin_anew(&self.array, &JournalFound::default(), log.first);
        // Before the superblock.
        let last = made.pieces.len() - 1;
        made.pieces.insert(last, (Sector(array.data_offset + position), block));
        Ok(made)
    }
}
