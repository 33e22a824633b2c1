//! What physical volumes say of a RAID volume, as superblocks of md.

use std::collections::BTreeMap;

use raidlab_core::{Sector, Sectors};

use super::Extent;
use super::copies::{Device, Older, Untold};
use super::superblock::{DmSuperblock, LEN};
use super::volume::{Image, Volume};
use crate::md::{
    ALL, Aside, BadBlockLog, Bitmap, BitmapKind, BitmapSeen, Features, Inspected, MOST_BITMAP,
    Reshape, Role, Seen, Superblock, Version, read,
};
use crate::{Source, Unreadable, printable};

/// The sector of an image's metadata that the bitmap begins at.
const BITMAP: Sector = Sector(8);

/// A range of a device that an image has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Which of the devices that were given.
    pub given: usize,
    /// Its first sector.
    pub at: Sector,
    /// Sectors.
    pub sectors: Sectors,
}

/// What is known of a member besides what stands in its superblock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Membership {
    /// The volume, as `group/volume`, safe to print.
    pub volume: String,
    /// The identity of the volume.
    pub id: String,
    /// The name of the image, safe to print.
    pub image: String,
    /// Its superblock.
    pub superblock: Option<DmSuperblock>,
    /// Why it cannot be used.
    pub why: Option<String>,
    /// Whether the volume was stopped cleanly is not recorded: it was in use without all members.
    pub is_unsure: bool,
    /// Its redundancy was never made.
    pub is_not_synced: bool,
}

/// A member of a volume that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its place in the volume.
    pub place: u16,
    /// What it says. Of one piece it counts from the start of the device, of several from the start of the first.
    pub inspected: Inspected,
    /// Where its data lie.
    pub pieces: Vec<Piece>,
}

/// What physical volumes have of a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// Its members.
    pub members: Vec<Member>,
    /// Devices of which nothing is used, as newer copies of them were given.
    pub older: Vec<Older>,
}

/// A member while it is looked at.
struct Looked<'a> {
    place: u16,
    image: &'a Image,
    pieces: Vec<Piece>,
    metadata: Sector,
    superblock: Option<DmSuperblock>,
    bitmap: BitmapSeen,
    why: Option<String>,
}

impl Volume {
    /// Its members on physical volumes that were given.
    ///
    /// # Errors
    /// Why nothing of the volume can be told.
    pub fn members(&self, devices: &mut [Device<'_>]) -> Result<Members, Untold> {
        let (on, older) = self.settled(devices)?;
        let mut looked = Vec::new();
        for (place, image) in (0..).zip(&self.images) {
            if image.data.iter().any(|part| on.contains_key(&*part.on)) {
                looked.push(self.look((place, image), &on, devices));
            }
        }
        let superblocks = looked.iter().filter_map(|one| one.superblock.as_ref());
        let newest = superblocks.max_by_key(|one| one.events).cloned();
        if let Some(why) = newest.as_ref().and_then(DmSuperblock::obstacle) {
            return Err(Untold::Why(why));
        }
        for one in &mut looked {
            if let Some(said) = one.superblock.as_ref().filter(|_| one.why.is_none()) {
                one.why = said.obstacle().or_else(|| self.differs((one.place, one.image), said));
            }
        }
        let state = self.state(&looked);
        let sizes: Vec<Sectors> = devices.iter().map(|device| device.source.sectors()).collect();
        let members = looked.into_iter().map(|one| self.member(one, state, &sizes)).collect();
        Ok(Members { members, older })
    }

    /// Looks at an image, by the devices that its physical volumes are.
    fn look<'a>(
        &self,
        (place, image): (u16, &'a Image),
        on: &BTreeMap<&str, usize>,
        devices: &mut [Device<'_>],
    ) -> Looked<'a> {
        let data = pieces(&image.data, on);
        let metadata = pieces(&image.metadata, on);
        let is_whole = data.len() == image.data.len();
        let mut looked = Looked {
            place,
            image,
            metadata: metadata.first().map_or(Sector(0), |piece| piece.at),
            pieces: data,
            superblock: None,
            bitmap: BitmapSeen::None,
            why: None,
        };
        if image.is_to_be_rebuilt {
            looked.why = Some("to be rebuilt, as the volume group says".into());
        } else if !is_whole || metadata.len() != image.metadata.len() {
            looked.why = Some("it lies in part on a physical volume that is not there".into());
        } else if self.has_metadata {
            let mut source = Joined { pieces: &metadata, devices };
            let first = read(&mut source, Sector(0), Sectors(1));
            looked.superblock = first.as_deref().and_then(DmSuperblock::parse);
            looked.why = match (first, &looked.superblock) {
                (_, Some(_)) => None,
                (None, None) => Some("its superblock cannot be read".into()),
                (Some(_), None) => Some("no superblock of dm-raid".into()),
            };
            if self.level != 0 && looked.superblock.is_some() {
                looked.bitmap = bitmap(&mut source);
            }
        }
        looked
    }

    /// Why a superblock is not one of this member, if it differs from what the group says.
    pub(super) fn differs(
        &self,
        (place, image): (u16, &Image),
        said: &DmSuperblock,
    ) -> Option<String> {
        if said.members as usize != self.images.len() || said.place != u32::from(place) {
            let count = self.images.len();
            return Some(format!(
                "its superblock says that it is member {} of {}, the volume group {place} of {count}",
                said.place, said.members
            ));
        }
        let shape = (said.level as i32, said.layout, u64::from(said.chunk));
        if shape != (self.level, self.layout, self.chunk) {
            return Some(format!(
                "its superblock says level {}, layout {:#x}, chunk of {} sectors, the volume group {}, {:#x}, {}",
                said.level, said.layout, said.chunk, self.level, self.layout, self.chunk
            ));
        }
        let there: u64 = image.data.iter().map(|part| part.sectors).sum();
        let is_within = said.data_offset.checked_add(self.used).is_some_and(|end| end <= there);
        (!is_within).then(|| "its data end behind its end".to_owned())
    }

    /// Up to where redundancy is consistent besides what superblocks say of it, and whether that is not sure. While
    /// all members are there a bit that is set in a bitmap was set by a write that the array was stopped in; while one
    /// is missing bits stay set. Superblocks that are not used have no say.
    fn state(&self, looked: &[Looked<'_>]) -> (u64, bool) {
        if self.level == 0 {
            return (ALL, false);
        }
        let used = || looked.iter().filter(|one| one.why.is_none());
        let superblocks = used().filter_map(|one| one.superblock.as_ref());
        let Some(newest) = superblocks.max_by_key(|one| one.events) else { return (0, false) };
        let is_recent = |one: &&Looked<'_>| {
            let events = one.superblock.as_ref().map(|said| said.events);
            events.is_some_and(|events| events.saturating_add(1) >= newest.events)
        };
        let recent = || used().filter(is_recent);
        let has_bits = |one: &Looked<'_>| match &one.bitmap {
            BitmapSeen::Found(head, bits) => {
                head.is_stale() || head.events < newest.events || *bits != Some(0)
            }
            BitmapSeen::None | BitmapSeen::Lost => true,
        };
        let is_rebuilding =
            |one: &Looked<'_>| one.superblock.as_ref().is_some_and(|said| !said.is_rebuilt());
        let is_degraded = newest.is_degraded() || recent().any(is_rebuilding);
        let has_bits = recent().any(has_bits);
        let is_parity = matches!(self.level, 4..=6);
        let is_unsure = has_bits && is_degraded;
        let is_dirty = self.is_not_synced || (has_bits && !(is_degraded && is_parity));
        (if is_dirty { 0 } else { ALL }, is_unsure)
    }

    fn member(
        &self,
        one: Looked<'_>,
        (synced, is_unsure): (u64, bool),
        sizes: &[Sectors],
    ) -> Member {
        let told = Membership {
            volume: self.shown_name(),
            id: self.id.clone(),
            image: printable(one.image.name.as_bytes()),
            superblock: one.superblock.clone(),
            why: one.why.clone(),
            is_unsure,
            is_not_synced: self.is_not_synced,
        };
        let whole: u64 = one.pieces.iter().map(|piece| piece.sectors.0).sum();
        let (start, sectors) = match &one.pieces[..] {
            [piece] => (piece.at.0, sizes.get(piece.given).copied().unwrap_or_default()),
            pieces => (0, self.there(pieces, one.superblock.as_ref(), sizes)),
        };
        let mut inspected =
            Inspected { sectors, of_volume: Some(Box::new(told)), ..Inspected::default() };
        if one.why.is_none() {
            let superblock = self.superblock(&one, synced, (start, whole));
            let (version, bytes, checksums, damage) = (Version::V1_0, Vec::new(), (0, 0), None);
            inspected.bad = Some(Vec::new());
            inspected.seen.push(Seen { version, superblock, bytes, checksums, damage });
            inspected.bitmap = one.bitmap;
        }
        Member { place: one.place, inspected, pieces: one.pieces }
    }

    /// Sectors of several ranges that are there: up to where one is cut off, and then in no case enough, as nothing of
    /// that range could be opened.
    fn there(&self, pieces: &[Piece], said: Option<&DmSuperblock>, sizes: &[Sectors]) -> Sectors {
        let needed = said.map_or(0, |said| said.data_offset).saturating_add(self.used);
        let mut there = 0;
        for piece in pieces {
            let size = sizes.get(piece.given).map_or(0, |size| size.0);
            let part = size.saturating_sub(piece.at.0).min(piece.sectors.0);
            there += part;
            if part < piece.sectors.0 {
                return Sectors(there.min(needed.saturating_sub(1)));
            }
        }
        Sectors(there)
    }

    /// The same as a superblock of md; of a raid0 without superblocks by what the group says alone.
    fn superblock(&self, one: &Looked<'_>, synced: u64, (start, whole): (u64, u64)) -> Superblock {
        let said = one.superblock.as_ref();
        let data_offset = said.map_or(0, |said| said.data_offset);
        let recovery = said.filter(|said| !said.is_rebuilt()).map(|said| said.rebuilt_to);
        let role = |place: usize| match said.is_some_and(|said| said.has_failed(place)) {
            true => Role::Faulty,
            false => Role::Member(place as u16),
        };
        // What the volume grew by after that is not consistent yet.
        let grown = said.map_or(0, |said| said.sectors);
        let grown = if grown > 0 && grown < self.used { grown } else { ALL };
        let resync = said.map_or(ALL, |said| said.synced_to).min(grown).min(synced);
        let mut name = [0; 32];
        let text = self.name.as_bytes();
        name[..text.len().min(32)].copy_from_slice(&text[..text.len().min(32)]);
        Superblock {
            features: if recovery.is_some() { Features::RECOVERY } else { Features(0) },
            array: identity(&self.id),
            name,
            created: 0,
            level: self.level,
            layout: self.layout,
            size: self.used,
            chunk: self.chunk as u32,
            members: self.images.len() as u32,
            aside: Aside::Nothing,
            reshape: Reshape::default(),
            data_offset: start.saturating_add(data_offset),
            data_size: whole.saturating_sub(data_offset),
            super_offset: one.metadata.0,
            recovery: recovery.unwrap_or(0),
            number: u32::from(one.place),
            corrected: 0,
            device: identity(&one.image.id),
            flags: u8::from(one.image.is_write_mostly),
            bad_blocks: BadBlockLog::default(),
            updated: 0,
            events: said.map_or(self.seqno, |said| said.events),
            resync: if self.level == 0 { ALL } else { resync },
            logical_block: 0,
            roles: (0..self.images.len()).map(role).collect(),
            v0: None,
        }
    }
}

/// An identity of LVM has more bytes than one of md: the first of them, which are as random as the others.
fn identity(id: &str) -> [u8; 16] {
    let mut bytes = id.bytes().filter(|byte| *byte != b'-');
    std::array::from_fn(|_| bytes.next().unwrap_or(0))
}

/// Where ranges lie; fewer where some of them are on no device that was given.
fn pieces(parts: &[Extent], on: &BTreeMap<&str, usize>) -> Vec<Piece> {
    let piece = |part: &Extent| {
        let given = *on.get(&*part.on)?;
        Some(Piece { given, at: Sector(part.at), sectors: Sectors(part.sectors) })
    };
    parts.iter().filter_map(piece).collect()
}

/// The bitmap behind a superblock.
fn bitmap(source: &mut dyn Source) -> BitmapSeen {
    let head = read(source, BITMAP, Sectors(1)).and_then(|bytes| Bitmap::parse(&bytes));
    let Some(head) = head else { return BitmapSeen::Lost };
    let is_plain = matches!(head.kind, BitmapKind::Plain);
    let len = head.sectors().filter(|len| is_plain && *len <= MOST_BITMAP);
    let bits = len.and_then(|len| head.count(&read(source, BITMAP, len)?));
    BitmapSeen::Found(head, bits)
}

/// Ranges of devices, one behind the other.
struct Joined<'a, 'b> {
    pieces: &'a [Piece],
    devices: &'a mut [Device<'b>],
}

impl Source for Joined<'_, '_> {
    fn sectors(&self) -> Sectors {
        Sectors(self.pieces.iter().map(|piece| piece.sectors.0).sum())
    }

    fn logical_block(&self) -> u32 {
        1
    }

    fn read(&mut self, at: Sector, into: &mut [u8]) -> Result<(), Unreadable> {
        let mut rest = into;
        let mut skip = at.0;
        for piece in self.pieces {
            if skip >= piece.sectors.0 {
                skip -= piece.sectors.0;
                continue;
            }
            let there = Sectors(piece.sectors.0 - skip).bytes();
            let len = rest.len().min(usize::try_from(there).map_err(|_| Unreadable)?);
            let (now, later) = rest.split_at_mut(len);
            let device = self.devices.get_mut(piece.given).ok_or(Unreadable)?;
            let sectors = Sectors(len as u64 / raidlab_core::SECTOR_BYTES);
            let bytes =
                read(device.source, Sector(piece.at.0 + skip), sectors).ok_or(Unreadable)?;
            now.copy_from_slice(&bytes);
            rest = later;
            skip = 0;
            if rest.is_empty() {
                return Ok(());
            }
        }
        Err(Unreadable)
    }
}

const _: () = assert!(LEN <= 512, "it lies in one sector");
