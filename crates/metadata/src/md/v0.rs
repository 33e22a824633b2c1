//! The superblock of version 0.90: 1,024 words of 32 bits in the order of the machine that wrote it, at the start of
//! the last whole 64 KiB of a device.
//!
//! What it says goes into a [`Superblock`] as that of a newer version does, so that everything behind asks one thing
//! only; what has no place there, and the table of devices as it stands, is [`V0`]. A device has neither identity nor
//! number of its own: a member's number is its place, and a device that is being rebuilt is a spare until it has
//! everything.

use raidlab_core::Sector;
use raidlab_core::consistency::ArrayId;
use raidlab_core::contract::{MemberBits, Superblock as Said};

use super::superblock::{MAGIC, MOST_EVENTS};
use super::{
    ALL, Aside, BadBlockLog, Damage, DeviceNumbers, Features, Reshape, Role, Seen, Superblock,
    Version,
};

/// Bytes of a superblock.
pub(super) const BYTES: usize = 4096;
/// Devices that a superblock has room for.
pub(super) const MOST_DEVICES: usize = 27;
/// Sectors that the last superblock's place begins a multiple of, and that are kept for it and its bitmap.
pub(super) const RESERVED: u64 = 128;
/// The bitmap stands behind the superblock, in sectors from it.
const BITMAP_OFFSET: i32 = 8;
/// The events that mdadm makes an array with.
pub(super) const FIRST_EVENTS: u64 = 1;
/// Sectors of data that the kernel takes a member to have at most.
pub(super) const MOST_DATA: u64 = (2 << 32) - 2;

/// Places of words. Two words that are one number of 64 bits are in the machine's order, too.
mod at {
    pub(super) const MAGIC: usize = 0;
    pub(super) const MAJOR: usize = 1;
    pub(super) const MINOR: usize = 2;
    pub(super) const PATCH: usize = 3;
    pub(super) const ARRAY: [usize; 4] = [5, 13, 14, 15];
    pub(super) const CREATED: usize = 6;
    pub(super) const LEVEL: usize = 7;
    pub(super) const SIZE: usize = 8;
    pub(super) const DEVICES: usize = 9;
    pub(super) const MEMBERS: usize = 10;
    pub(super) const MD_MINOR: usize = 11;
    pub(super) const UPDATED: usize = 32;
    pub(super) const STATE: usize = 33;
    pub(super) const COUNTS: usize = 34;
    pub(super) const CHECKSUM: usize = 38;
    pub(super) const EVENTS: usize = 39;
    pub(super) const CHECKPOINT: usize = 41;
    pub(super) const RESYNC: usize = 43;
    pub(super) const RESHAPE_POSITION: usize = 44;
    pub(super) const NEW_LEVEL: usize = 46;
    pub(super) const DELTA_DISKS: usize = 47;
    pub(super) const NEW_LAYOUT: usize = 48;
    pub(super) const NEW_CHUNK: usize = 49;
    pub(super) const LAYOUT: usize = 64;
    pub(super) const CHUNK: usize = 65;
    /// The table of devices, 32 words each, and behind it once more the device's own line.
    pub(super) const TABLE: usize = 128;
    pub(super) const OWN: usize = 992;
    pub(super) const LINE: usize = 32;
}

/// Bits of [`V0::state`].
const CLEAN: u32 = 1;
const HAS_BITMAP: u32 = 1 << 8;

/// The order of bytes of the machine that wrote a superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// As on PCs.
    Little,
    /// As on machines with PowerPC or MIPS, in NAS devices among others. mdadm changes it with `--update=byteorder`.
    Big,
}

/// A line of the table of devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct V0Device {
    /// Its number: of a member its place.
    pub number: u32,
    /// The major number of the block device that it was.
    pub major: u32,
    /// The minor number.
    pub minor: u32,
    /// Its place; of a spare its number.
    pub place: u32,
    /// 1 faulty, 2 active, 4 in sync, 8 removed, 512 write-mostly, 1024 fail fast.
    pub state: u32,
}

impl V0Device {
    /// It failed.
    pub const FAULTY: u32 = 1;
    /// It has a place.
    pub const ACTIVE: u32 = 2;
    /// It has everything.
    pub const IN_SYNC: u32 = 4;
    /// There is none.
    pub const REMOVED: u32 = 8;
    /// Read last.
    pub const WRITE_MOSTLY: u32 = 512;
    /// Not tried for long.
    pub const FAIL_FAST: u32 = 1024;

    /// A member with everything, in the place of its number; what it was as a block device is known of who was there.
    fn in_sync(self, number: u32) -> Self {
        let was_there = self.state & Self::IN_SYNC != 0;
        let Self { major, minor, state, .. } = if was_there { self } else { Self::default() };
        let aside = state & (Self::WRITE_MOSTLY | Self::FAIL_FAST);
        Self { number, major, minor, place: number, state: Self::ACTIVE | Self::IN_SYNC | aside }
    }

    /// A spare, or a device that is being rebuilt.
    fn spare(self, number: u32) -> Self {
        let was_there = self.number == number && self.state == 0;
        let Self { major, minor, .. } = if was_there { self } else { Self::default() };
        Self { number, major, minor, place: number, state: 0 }
    }

    /// A member that is not there. Of the first one the kernel does not say that it failed.
    fn gone(number: u32) -> Self {
        let state = if number == 0 { Self::REMOVED } else { Self::REMOVED | Self::FAULTY };
        Self { number, place: number, state, ..Self::default() }
    }

    /// Whether it is a spare or being rebuilt, unless it is a line of nobody.
    pub(super) fn is_spare(self) -> bool {
        self.state & !(Self::WRITE_MOSTLY | Self::FAIL_FAST) == 0
    }

    /// What it is to the array; one that is active and not in sync is being reshaped to, and nothing else.
    fn role(self) -> Role {
        match (self.state, u16::try_from(self.place)) {
            (state, _) if state & (Self::FAULTY | Self::REMOVED) != 0 => Role::Faulty,
            (state, Ok(place)) if state & Self::IN_SYNC != 0 => Role::Member(place),
            _ => Role::Spare,
        }
    }
}

/// What only a superblock of version 0.90 says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct V0 {
    /// Of its words.
    pub order: ByteOrder,
    /// 90, or 91 while the array's shape is being changed.
    pub minor_version: u32,
    /// `patch_version`.
    pub patch: u32,
    /// `md_minor`: the number of the array's device, which stands for a name.
    pub md_minor: u32,
    /// `size`: KiB used of each member; of linear and raid0 it means nothing.
    pub size: u32,
    /// `nr_disks`: lines of the table that a device has.
    pub devices: u32,
    /// 1 clean, 2 errors, 256 has a bitmap.
    pub state: u32,
    /// How many devices are active, work, failed, and are spares.
    pub counts: [u32; 4],
    /// The events at which [`resync`](Self::resync) was right.
    pub checkpoint: u64,
    /// `recovery_cp`: sectors up to which redundancy is consistent.
    pub resync: u32,
    /// By their numbers.
    pub table: Vec<V0Device>,
    /// `this_disk`: the line of the device itself.
    pub own: V0Device,
}

/// The words of a superblock, in some order of bytes.
struct Words<T>(T, ByteOrder);

impl<T: AsRef<[u8]>> Words<T> {
    fn get(&self, word: usize) -> u32 {
        let field = super::fields::bytes(self.0.as_ref(), 4 * word);
        match self.1 {
            ByteOrder::Little => u32::from_le_bytes(field),
            ByteOrder::Big => u32::from_be_bytes(field),
        }
    }

    fn pair(&self, word: usize) -> u64 {
        let field = super::fields::bytes(self.0.as_ref(), 4 * word);
        match self.1 {
            ByteOrder::Little => u64::from_le_bytes(field),
            ByteOrder::Big => u64::from_be_bytes(field),
        }
    }

    fn device(&self, word: usize) -> V0Device {
        let [number, major, minor, place, state] =
            [0, 1, 2, 3, 4].map(|field| self.get(word + field));
        V0Device { number, major, minor, place, state }
    }

    /// All words added in 64 bits, the checksum's own as zero; both halves of the sum added.
    fn checksum(&self) -> u32 {
        let sum: u64 = (0..BYTES / 4).map(|word| u64::from(self.get(word))).sum();
        let sum = sum - u64::from(self.get(at::CHECKSUM));
        (sum as u32).wrapping_add((sum >> 32) as u32)
    }
}

impl Words<&mut [u8]> {
    fn put(&mut self, word: usize, value: u32) {
        let field = match self.1 {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        };
        super::fields::put(self.0, 4 * word, field);
    }

    fn put_pair(&mut self, word: usize, value: u64) {
        let field = match self.1 {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        };
        super::fields::put(self.0, 4 * word, field);
    }

    /// Sectors, which stand there in bytes.
    fn put_sectors(&mut self, word: usize, sectors: u32) {
        if Words(&*self.0, self.1).get(word) / 512 != sectors {
            self.put(word, sectors.wrapping_mul(512));
        }
    }

    fn put_device(&mut self, word: usize, device: V0Device) {
        let V0Device { number, major, minor, place, state } = device;
        for (field, value) in [number, major, minor, place, state].into_iter().enumerate() {
            self.put(word + field, value);
        }
    }
}

/// A checksum as the kernel compares it: folded to 16 bits, which is all that some machines wrote.
const fn folded(checksum: u32) -> u32 {
    let once = (checksum & 0xffff) + (checksum >> 16);
    (once & 0xffff) + (once >> 16)
}

/// The words of a superblock if one begins here; `None` where there is none of this version.
///
/// # Errors
/// [`Damage::Short`] when not all of them are there, [`Damage::Minor`] for a version that no kernel has.
fn words(bytes: &[u8]) -> Result<Option<Words<&[u8]>>, Damage> {
    let orders = [ByteOrder::Little, ByteOrder::Big].map(|order| Words(bytes, order));
    let Some(words) = orders.into_iter().find(|words| words.get(at::MAGIC) == MAGIC) else {
        return Ok(None);
    };
    match (bytes.len() < BYTES, words.get(at::MAJOR), words.get(at::MINOR)) {
        (true, ..) => Err(Damage::Short),
        (_, 0, 90 | 91) => Ok(Some(words)),
        (_, 0, minor) => Err(Damage::Minor(minor)),
        _ => Ok(None),
    }
}

/// A superblock that stands in a sector; `None` where there is none of this version.
///
/// # Errors
/// As [`words`].
pub(super) fn look(bytes: Vec<u8>, stands: Sector) -> Result<Option<Seen>, Damage> {
    let Some(words) = words(&bytes)? else { return Ok(None) };
    let v0 = V0 {
        order: words.1,
        minor_version: words.get(at::MINOR),
        patch: words.get(at::PATCH),
        md_minor: words.get(at::MD_MINOR),
        size: words.get(at::SIZE),
        devices: words.get(at::DEVICES),
        state: words.get(at::STATE),
        counts: [0, 1, 2, 3].map(|count| words.get(at::COUNTS + count)),
        checkpoint: words.pair(at::CHECKPOINT),
        resync: words.get(at::RESYNC),
        table: (0..MOST_DEVICES).map(|line| words.device(at::TABLE + line * at::LINE)).collect(),
        own: words.device(at::OWN),
    };
    let checksums = (words.get(at::CHECKSUM), words.checksum());
    let superblock = superblock(&words, v0, stands);
    let damage = check(&superblock, checksums).err();
    Ok(Some(Seen { version: Version::V0_90, superblock, bytes, checksums, damage }))
}

fn superblock(words: &Words<&[u8]>, v0: V0, stands: Sector) -> Superblock {
    let mut array: ArrayId = [0; 16];
    for (bytes, word) in array.chunks_mut(4).zip(at::ARRAY) {
        bytes.copy_from_slice(&words.get(word).to_be_bytes());
    }
    let level = words.get(at::LEVEL) as i32;
    let is_sized = level > 0;
    let has_bitmap = v0.state & HAS_BITMAP != 0;
    let is_reshaping = v0.minor_version > 90;
    let features = [(has_bitmap, Features::BITMAP), (is_reshaping, Features::RESHAPE)];
    let features = features.into_iter().filter(|(is_set, _)| *is_set);
    let events = words.pair(at::EVENTS);
    let own = v0.table.get(v0.own.number as usize).copied().unwrap_or_default();
    Superblock {
        features: features.fold(Features(0), |all, (_, feature)| all.with(feature)),
        array,
        name: [0; 32],
        created: u64::from(words.get(at::CREATED)),
        level,
        layout: words.get(at::LAYOUT),
        size: if is_sized { 2 * u64::from(v0.size) } else { 0 },
        chunk: words.get(at::CHUNK) / 512,
        members: words.get(at::MEMBERS),
        aside: if has_bitmap { Aside::Bitmap(BITMAP_OFFSET) } else { Aside::Nothing },
        reshape: match is_reshaping {
            false => Reshape::default(),
            true => Reshape {
                level: words.get(at::NEW_LEVEL) as i32,
                position: words.pair(at::RESHAPE_POSITION),
                delta: words.get(at::DELTA_DISKS) as i32,
                layout: words.get(at::NEW_LAYOUT),
                chunk: words.get(at::NEW_CHUNK) / 512,
                offset: 0,
            },
        },
        data_offset: 0,
        data_size: if is_sized { stands.0.min(MOST_DATA) } else { stands.0 },
        super_offset: stands.0,
        recovery: 0,
        number: v0.own.number,
        corrected: 0,
        device: [0; 16],
        flags: u8::from(own.state & V0Device::WRITE_MOSTLY != 0)
            | u8::from(own.state & V0Device::FAIL_FAST != 0) << 1,
        bad_blocks: BadBlockLog::default(),
        updated: u64::from(words.get(at::UPDATED)),
        events,
        resync: match v0.state & CLEAN != 0 {
            true => ALL,
            false if v0.checkpoint == events => u64::from(v0.resync),
            false => 0,
        },
        logical_block: 0,
        roles: v0.table.iter().map(|device| device.role()).collect(),
        v0: Some(Box::new(v0)),
    }
}

/// Whether it is one that the kernel would take, standing in this sector.
///
/// # Errors
/// The first thing that is wrong.
fn check(one: &Superblock, checksums: (u32, u32)) -> Result<(), Damage> {
    let (stored, computed) = checksums;
    if folded(stored) != folded(computed) {
        return Err(Damage::Checksum { stored, computed });
    }
    if !(1..=MOST_DEVICES as u32).contains(&one.members) {
        return Err(Damage::Members(one.members));
    }
    if one.size > one.data_size {
        return Err(Damage::CutOff { size: one.size, there: one.data_size });
    }
    if one.events > MOST_EVENTS {
        return Err(Damage::Events(one.events));
    }
    Ok(())
}

impl V0 {
    /// Writes all fields over bytes, which are a superblock or zeroes, and the checksum. Bytes without a name here
    /// stay.
    ///
    /// # Errors
    /// [`Damage::Short`] when there are fewer bytes than it has.
    pub(super) fn emit(&self, one: &Superblock, all: &mut [u8]) -> Result<(), Damage> {
        let Some(all) = all.get_mut(..BYTES) else { return Err(Damage::Short) };
        let mut words = Words(all, self.order);
        for (word, value) in [
            (at::MAGIC, MAGIC),
            (at::MAJOR, 0),
            (at::MINOR, self.minor_version),
            (at::PATCH, self.patch),
            (at::CREATED, one.created as u32),
            (at::LEVEL, one.level as u32),
            (at::SIZE, self.size),
            (at::DEVICES, self.devices),
            (at::MEMBERS, one.members),
            (at::MD_MINOR, self.md_minor),
            (at::UPDATED, one.updated as u32),
            (at::STATE, self.state),
            (at::RESYNC, self.resync),
            (at::LAYOUT, one.layout),
        ] {
            words.put(word, value);
        }
        for (bytes, word) in one.array.chunks(4).zip(at::ARRAY) {
            words.put(word, u32::from_be_bytes(super::fields::bytes(bytes, 0)));
        }
        for (count, word) in self.counts.into_iter().zip(at::COUNTS..) {
            words.put(word, count);
        }
        words.put_pair(at::EVENTS, one.events);
        words.put_pair(at::CHECKPOINT, self.checkpoint);
        words.put_sectors(at::CHUNK, one.chunk);
        if self.minor_version > 90 {
            words.put_pair(at::RESHAPE_POSITION, one.reshape.position);
            words.put(at::NEW_LEVEL, one.reshape.level as u32);
            words.put(at::DELTA_DISKS, one.reshape.delta as u32);
            words.put(at::NEW_LAYOUT, one.reshape.layout);
            words.put_sectors(at::NEW_CHUNK, one.reshape.chunk);
        }
        for (line, device) in self.table.iter().enumerate().take(MOST_DEVICES) {
            words.put_device(at::TABLE + line * at::LINE, *device);
        }
        words.put_device(at::OWN, self.own);
        let checksum = Words(&*words.0, self.order).checksum();
        words.put(at::CHECKSUM, checksum);
        Ok(())
    }
}

impl V0 {
    /// Changes what a superblock says to this state of the array, as the kernel has it: of the device in a place, or
    /// of the spare with a number.
    pub(super) fn say(one: &mut Superblock, said: &Said, own: Own, numbers: &DeviceNumbers) {
        let Some(v0) = &mut one.v0 else { return };
        let spares = numbers.v0_spares(said);
        let is_in = |place: usize| {
            let bit = |word: MemberBits| word[place / 64] >> (place % 64) & 1 == 1;
            !bit(said.failed) && !bit(said.rebuilding)
        };
        let members = (one.members as usize).min(MOST_DEVICES);
        let mut table = vec![V0Device::default(); MOST_DEVICES];
        for (number, line) in table.iter_mut().enumerate() {
            let known = v0.table.get(number).copied().unwrap_or_default();
            let (is_member, is_spare) = (number < members, spares.contains(&(number as u16)));
            *line = match (is_member && is_in(number), is_spare) {
                (true, _) => known.in_sync(number as u32),
                (false, true) if !is_member => known.spare(number as u32),
                _ if is_member => V0Device::gone(number as u32),
                _ => V0Device::default(),
            };
        }
        let active = (0..members).filter(|place| is_in(*place)).count() as u32;
        let is_failed = |line: &&V0Device| line.state & V0Device::FAULTY != 0;
        let failed = table.iter().filter(is_failed).count() as u32;
        let spare = spares.len() as u32;
        v0.counts = [active, active + spare, failed, spare];
        v0.devices = active + spare;
        let number = match own {
            Own::Place(place) if is_in(place) => place as u16,
            Own::Place(place) => numbers.v0_number(place),
            Own::Spare(number) => number,
        };
        v0.own = table.get(usize::from(number)).copied().unwrap_or_default();
        one.number = u32::from(number);
        one.roles = table.iter().map(|line| line.role()).collect();
        v0.table = table;
        one.events = said.events;
        one.updated = numbers.now;
        // A position that it has no room for would be another one.
        let to = said.synced_to.0;
        let resync = if said.clean && to != ALL { u32::try_from(to).unwrap_or(0) } else { 0 };
        let is_clean = said.clean && to == ALL;
        v0.resync = if is_clean { u32::MAX } else { resync };
        v0.checkpoint = said.events;
        v0.state = v0.state & !CLEAN | u32::from(is_clean);
        one.resync = if is_clean { ALL } else { u64::from(resync) };
    }
}

impl V0 {
    /// Whether there is a bitmap.
    pub(super) fn set_bitmap(&mut self, has_bitmap: bool) {
        self.state = self.state & !HAS_BITMAP | if has_bitmap { HAS_BITMAP } else { 0 };
    }

    /// Of a new array that is known by this number, with so much used of each member: of machines as PCs are, before
    /// any device is in its table.
    pub(super) fn new(md_minor: u32, size: u64) -> Self {
        Self {
            order: ByteOrder::Little,
            minor_version: 90,
            patch: 0,
            md_minor,
            size: (size / 2) as u32,
            devices: 0,
            state: 0,
            counts: [0; 4],
            checkpoint: 0,
            resync: 0,
            table: vec![V0Device::default(); MOST_DEVICES],
            own: V0Device::default(),
        }
    }
}

/// Brings the words of an identity from the order in which they are printed into that of PCs, or back.
pub(super) fn swap_id(id: &mut ArrayId) {
    id.chunks_mut(4).for_each(<[u8]>::reverse);
}

/// Whose superblock it is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Own {
    /// That of the device in a place, whether it has everything or not.
    Place(usize),
    /// That of a spare.
    Spare(u16),
}
