//! Drives as members of an array of Linux md: where superblock, bitmap and data stand, how a new array is made, and
//! which drives make the array at a start.
//!
//! Only what is ever written is kept of a drive: its data, the log of partial parity, the place of the superblock, the
//! bitmap, the list of bad blocks, in this order, wherever they stand on the device. All else reads as zeroes.
//! Superblocks that are several sectors (those of version 0.90) are written whole or not at all, as by drives that
//! write 4 KiB together; `docs/md-format.md` says what becomes of them on others.

use raidlab_core::consistency::{Allow, AssembleError, Found, ResyncCost, Unusable, Unused};
use raidlab_core::contract::{MemberBits, Superblock as Said};
use raidlab_core::{Array, Config, Consistency, MemberIndex, Redundancy, Sector, Sectors};
use raidlab_metadata::md::journal::{TURNS, begin_anew};
use raidlab_metadata::md::{
    ALL, Allowed, Aside, BadBlockLog, Bitmap, BitmapKind, ByteOrder, Cannot, Features, Inspected,
    Joined, JournalFound, Md, PplHeader, Reshape, Role, Superblock, V0, V0Device, Version, inspect,
    join, word,
};
use raidlab_metadata::{Looked, MetadataFormat, Places};

use super::bytes::{ANOTHER, Format, Records, SECTOR, View};
use super::{Drives, IDENTITY, mix};
use crate::shape::{Set, has, set_of};

/// Sectors of the place of a superblock.
const PLACE: u64 = 8;
/// What version 0.90 keeps at the end of a device, in sectors, which is also what it begins a multiple of.
const RESERVED: u64 = 128;
/// Roles that mdadm makes a superblock with: one sector.
const ROLES: usize = 128;
/// Members that version 0.90 has room for, with a device for a place besides.
pub(super) const MOST_V0_MEMBERS: u16 = 26;
/// Members that an array with a log of partial parity has at most.
pub(crate) const MOST_PARTIAL_PARITY: u16 = 64;
/// Lines of the table of devices of version 0.90.
const LINES: usize = 27;

/// Where things stand on a device.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ground {
    /// Sectors of the device.
    pub(super) total: u64,
    /// Where its data start, and how many sectors they have.
    start: u64,
    data: u64,
    pub(super) superblock: u64,
    /// Where the bitmap stands, and its sectors.
    bitmap: (u64, u64),
    /// Where the list of bad blocks stands, and its sectors.
    list: (u64, u64),
    /// Where the log of partial parity stands, and its sectors; of a log device its journal.
    log: (u64, u64),
}

impl Ground {
    /// Of a log device whose journal has so many sectors: it stands where data do on members.
    fn of_log(version: Version, ring: u64) -> Self {
        let member = Self::new(version, 0, (0, 0));
        Self { total: member.start + ring, log: (member.start, ring), ..member }
    }

    /// Of a device with so much for data, and for the bitmap or the log of partial parity, of which there is one at
    /// most.
    pub(super) fn new(version: Version, data: u64, (bitmap, log): (u64, u64)) -> Self {
        let list = if version == Version::V0_90 { 0 } else { PLACE };
        let aside = bitmap + log;
        let (start, superblock, at, total) = match version {
            Version::V0_90 => {
                let superblock = data.next_multiple_of(RESERVED);
                (0, superblock, superblock + PLACE, superblock + RESERVED)
            }
            Version::V1_0 => {
                let at = room(data);
                (0, at + aside + list, at, at + aside + list + 2 * PLACE)
            }
            Version::V1_1 => {
                let start = 3 * PLACE + aside + list;
                (start, 0, PLACE, start + room(data))
            }
            Version::V1_2 => {
                let start = 3 * PLACE + aside + list;
                (start, PLACE, 2 * PLACE, start + room(data))
            }
        };
        let (bitmap, log, list) = ((at, bitmap), (at, log), (at + aside, list));
        Self { total, start, data, superblock, bitmap, list, log }
    }

    /// Where a sector is from the superblock on.
    const fn offset(&self, at: u64) -> i32 {
        at as i32 - self.superblock as i32
    }

    /// Sectors of the log of partial parity, or of the journal.
    pub(super) const fn log(&self) -> u32 {
        self.log.1 as u32
    }

    /// Where that stands on the device.
    pub(super) const fn log_range(&self) -> std::ops::Range<u64> {
        self.log.0..self.log.0 + self.log.1
    }

    /// Sectors that are kept besides data and log.
    pub(super) const fn tail(&self) -> u32 {
        if self.total == 0 { 0 } else { (PLACE + self.bitmap.1 + self.list.1) as u32 }
    }

    /// Which of the sectors that are kept is a sector of the device.
    pub(super) fn place(&self, sector: u64) -> Option<u64> {
        let within = |from: u64, len: u64, at: u64| {
            (from <= sector && sector < from + len).then(|| at + sector - from)
        };
        let place = self.data + self.log.1;
        within(self.start, self.data, 0)
            .or_else(|| within(self.log.0, self.log.1, self.data))
            .or_else(|| within(self.superblock, PLACE, place))
            .or_else(|| within(self.bitmap.0, self.bitmap.1, place + PLACE))
            .or_else(|| within(self.list.0, self.list.1, place + PLACE + self.bitmap.1))
    }

    /// Sectors that its superblock has for data.
    fn data_size(&self, version: Version) -> u64 {
        if self.data == 0 {
            return self.log.1;
        }
        if version == Version::V0_90 { self.superblock } else { room(self.data) }
    }

    /// Sectors as of a device that was cut off so that it is no member any more, or has grown so.
    pub(super) fn resized(&self, version: Version, by: u64, grows: bool) -> u64 {
        match (version, grows) {
            (Version::V0_90, true) => self.total + RESERVED,
            (Version::V0_90 | Version::V1_0, false) => self.total.saturating_sub(by),
            (Version::V1_0, true) => self.total + by,
            // One that has grown is what it was.
            (Version::V1_1 | Version::V1_2, _) => {
                let size = if self.data == 0 { self.log.1 } else { self.data };
                (self.start + size).saturating_sub(by)
            }
        }
    }
}

/// Sectors for data that a device has: more than md's least.
fn room(data: u64) -> u64 {
    data.next_multiple_of(PLACE).max(2 * PLACE)
}

/// Sectors that the bitmap of an array covers: of each member, where blocks have copies on some of them of the array.
fn covered(array: &Array, config: &Config) -> u64 {
    match config.layout.level.redundancy() {
        Redundancy::Copies => array.capacity().0,
        _ => config.members.iter().map(|member| member.sectors.0).max().unwrap_or(0),
    }
}

/// The head of the bitmap of a new array; `None` in other modes.
fn bitmap(array: &Array, config: &Config) -> Option<Bitmap> {
    let Consistency::Bitmap { chunk } = config.settings.consistency else { return None };
    Some(Bitmap {
        kind: BitmapKind::Plain,
        array: IDENTITY,
        events: 0,
        events_cleared: 0,
        covered: covered(array, config),
        state: 0,
        chunk: chunk.bytes() as u32,
        delay: 5,
        write_behind: 0,
        reserved: 0,
    })
}

/// Sectors of partial parity that a header of a log has that gets several of them, one behind the other.
pub(crate) const SEVERAL: Sectors = Sectors(256);
/// Sectors of a header.
const HEADER: u64 = 8;

/// Sectors of the log of partial parity of each member, none in other modes: such a log has room for two headers, or
/// for one.
fn partial_parity(config: &Config) -> u64 {
    match (config.settings.consistency, config.settings.log_header) {
        (Consistency::PartialParity { .. }, Some(most)) if most == SEVERAL => {
            2 * (HEADER + SEVERAL.0)
        }
        (Consistency::PartialParity { .. }, Some(most)) => HEADER + most.0,
        _ => 0,
    }
}

/// Sectors of the journal of an array, none in other modes.
fn ring(config: &Config) -> Option<u64> {
    match config.settings.consistency {
        Consistency::Journal { sectors } => Some(sectors.0 * TURNS),
        _ => None,
    }
}

/// Where things stand on each device of an array: members, replacements, the log device.
pub(super) fn grounds(array: &Array, config: &Config, version: Version) -> Vec<Ground> {
    let bitmap = bitmap(array, config).and_then(|head| head.sectors()).unwrap_or(Sectors::ZERO);
    let aside = (bitmap.0, partial_parity(config));
    let members = || config.members.iter().map(|one| Ground::new(version, one.sectors.0, aside));
    let log = ring(config).map_or_else(Ground::default, |ring| Ground::of_log(version, ring));
    members().chain(members()).chain([log]).collect()
}

/// What an array keeps beside data on a device.
fn beside(config: &Config, ground: &Ground) -> (Features, Aside) {
    let (bitmap, log) = (ground.bitmap, ground.log);
    match (config.settings.consistency, config.settings.log_header) {
        (Consistency::Journal { .. }, _) => (Features::JOURNAL, Aside::Nothing),
        (Consistency::Bitmap { .. }, _) => {
            (Features::BITMAP, Aside::Bitmap(ground.offset(bitmap.0)))
        }
        (Consistency::PartialParity { .. }, most) => {
            let features = if most == Some(SEVERAL) { Features::PPLS } else { Features::PPL };
            let (offset, size) = (ground.offset(log.0) as i16, log.1 as u16);
            (features, Aside::PartialParity { offset, size })
        }
        _ => (Features(0), Aside::Nothing),
    }
}

/// The superblock of a member of a new array, or of its log device, whose number comes behind those of members.
fn superblock(config: &Config, version: Version, ground: &Ground, number: u16) -> Superblock {
    let (level, layout) = word(&config.layout).expect("a level that md has was asked for");
    let members = config.layout.members;
    let is_v0 = version == Version::V0_90;
    let has_bitmap = ground.bitmap.1 > 0;
    let places = 0..members;
    let role = |number: usize| match u16::try_from(number) {
        Ok(place) if place < members => Role::Member(place),
        Ok(place) if place == members && ring(config).is_some() => Role::Journal,
        _ => Role::Spare,
    };
    let line = |place: u16| V0Device {
        number: u32::from(place),
        place: u32::from(place),
        state: V0Device::ACTIVE | V0Device::IN_SYNC,
        ..V0Device::default()
    };
    let mut table: Vec<_> = places.map(line).collect();
    table.resize(LINES.max(table.len()), V0Device::default());
    let v0 = V0 {
        order: ByteOrder::Little,
        minor_version: 90,
        patch: 0,
        md_minor: 0,
        size: (ground.data / 2) as u32,
        devices: u32::from(members),
        // Clean, and whether there is a bitmap.
        state: 1 | u32::from(has_bitmap) << 8,
        counts: [u32::from(members), u32::from(members), 0, 0],
        checkpoint: 1,
        resync: u32::MAX,
        own: table.get(usize::from(number)).copied().unwrap_or_default(),
        table,
    };
    let (features, aside) = beside(config, ground);
    Superblock {
        features,
        array: IDENTITY,
        name: [0; 32],
        created: 1,
        level,
        layout,
        size: config.members.first().map_or(0, |member| member.sectors.0),
        chunk: config.layout.chunk.0 as u32,
        members: u32::from(members),
        aside,
        reshape: Reshape::default(),
        data_offset: ground.start,
        data_size: ground.data_size(version),
        super_offset: ground.superblock,
        recovery: 0,
        number: u32::from(number),
        corrected: 0,
        device: if is_v0 { [0; 16] } else { identity(u32::from(number)) },
        flags: 0,
        bad_blocks: BadBlockLog {
            shift: 0,
            size: ground.list.1 as u16,
            offset: if is_v0 { 0 } else { ground.offset(ground.list.0) },
        },
        updated: 0,
        events: u64::from(is_v0),
        resync: ALL,
        logical_block: 0,
        roles: (0..ROLES.max(usize::from(members) + 1)).map(role).collect(),
        v0: is_v0.then(|| Box::new(v0)),
    }
}

/// What identifies a device.
fn identity(number: u32) -> [u8; 16] {
    let mut id = *b"a drive's number";
    id[12..].copy_from_slice(&number.to_le_bytes());
    id
}

/// What the core would say, had it decided.
fn refusal(why: Cannot, given: &[MemberIndex]) -> AssembleError {
    let other = |found: String| AssembleError::Parameter {
        key: "metadata",
        asked: "an array that is written".into(),
        found,
    };
    let bits = |all: &[usize]| -> MemberBits {
        let mut bits = [0; 2];
        for member in all.iter().filter_map(|index| given.get(*index)) {
            bits[member.at() / 64] |= 1 << (member.at() % 64);
        }
        bits
    };
    match why {
        Cannot::NoMember(_) => AssembleError::NoSuperblock(Vec::new()),
        Cannot::SeveralArrays(_) => AssembleError::SeveralArrays { one: [0; 2], other: [0; 2] },
        Cannot::TooFew { missing, .. } => {
            let absent = |place| Unused { member: MemberIndex(place), why: Unusable::Absent };
            AssembleError::TooFew(missing.into_iter().map(absent).collect())
        }
        // It is to be left out, as one that may hold the newest data.
        Cannot::Bitmap(device) | Cannot::BitmapDamaged(device, _) => {
            let member = given.get(device).copied().unwrap_or(MemberIndex(0));
            AssembleError::Missing(vec![Unused { member, why: Unusable::Unreadable }])
        }
        Cannot::JournalLost => {
            let resync = ResyncCost { len: Sectors::ZERO, most: 1 };
            AssembleError::JournalLost { why: Unusable::Absent, resync }
        }
        Cannot::Diverged(one, rest) => {
            AssembleError::Diverged { one: bits(&one), other: bits(&rest) }
        }
        why => other(why.to_string()),
    }
}

/// What was found, what was looked at to find it, and what md's rules made of it.
pub(crate) struct MdFinds {
    pub(crate) found: Found,
    pub(crate) looked: Vec<(MemberIndex, Looked)>,
    pub(crate) joined: Joined,
    /// What stands on those that were given.
    pub(crate) seen: Vec<Inspected>,
}

impl Records {
    /// md's records, where they are.
    pub(super) const fn md(&self) -> Option<Md> {
        match self.format {
            Format::Md(_) => Some(Md { block: self.block }),
            Format::Own => None,
        }
    }
}

impl Drives {
    /// The members of a new array of md, clean.
    pub(super) fn make_md(&mut self, array: &Array, config: &Config, version: Version) {
        let Some(mut records) = self.bytes.take() else { return };
        for member in 0..config.layout.members {
            let (device, ground) = (MemberIndex(member), records.grounds[usize::from(member)]);
            let one = superblock(config, version, &ground, member);
            let mut place = vec![0; PLACE as usize * SECTOR];
            one.emit(&mut place).expect("a place has room for a superblock");
            self.put(&mut records, device, Sector(one.super_offset), &place);
            if let Some(head) = bitmap(array, config) {
                let head = Bitmap { array: one.bitmap_id(), events: one.events, ..head };
                let mut bytes = vec![0; ground.bitmap.1 as usize * SECTOR];
                head.emit(&mut bytes);
                self.put(&mut records, device, Sector(ground.bitmap.0), &bytes);
            }
            if ground.log.1 > 0 {
                // A log of partial parity in which nothing stands.
                let signature = PplHeader::signature_of(&one.array);
                let mut bytes = vec![0; HEADER as usize * SECTOR];
                PplHeader { signature, generation: 0, entries: Vec::new() }.emit(&mut bytes);
                self.put(&mut records, device, Sector(ground.log.0), &bytes);
            }
            let looked = self.look(&records, device);
            records.writer.know(device, &looked);
        }
        records.drives_made = u32::from(config.layout.members);
        if ring(config).is_some() {
            records.drives_made += 1;
            self.make_log_device(&mut records, config, version);
        }
        self.bytes = Some(records);
    }

    /// The log device of a new array, with an empty journal.
    fn make_log_device(&mut self, records: &mut Records, config: &Config, version: Version) {
        let members = config.layout.members;
        let device = MemberIndex(2 * members);
        let ground = records.grounds[device.at()];
        let one = superblock(config, version, &ground, members);
        let (position, block) = begin_anew(&one.array, &JournalFound::default(), 1);
        self.put(records, device, Sector(ground.log.0 + position), &block);
        let mut place = vec![0; PLACE as usize * SECTOR];
        one.emit(&mut place).expect("a place has room for a superblock");
        self.put(records, device, Sector(one.super_offset), &place);
        let looked = self.look(records, device);
        records.writer.know(device, &looked);
    }

    /// Makes a fresh drive ready for a place of an md array, or only the first `pieces` of what that takes; `model` is
    /// a member in service.
    pub fn make_md_ready(&mut self, device: MemberIndex, model: MemberIndex, pieces: usize) {
        let Some(mut records) = self.bytes.take() else { return };
        if let Some(md) = records.md() {
            records.drives_made += 1;
            let id = identity(records.drives_made);
            let numbers = records.writer.device_numbers().clone();
            let model = records.writer.places(model).clone();
            let ready = md.ready(&mut View::of(self, &records, device), &model, &numbers, id);
            // Where it has no number left, or there is no member like it, it stays as it is.
            if let Ok(ready) = ready {
                for (at, bytes) in ready.pieces.iter().take(pieces) {
                    self.put(&mut records, device, *at, bytes);
                }
                if pieces >= ready.pieces.len() {
                    records.writer.set_places(device, ready.places);
                }
            }
        }
        self.bytes = Some(records);
    }

    /// A drive that was made ready was not taken.
    pub(crate) fn refuse(&mut self, device: MemberIndex) {
        if let Some(records) = self.bytes.as_mut().filter(|records| records.md().is_some()) {
            records.writer.set_places(device, Places::default());
        }
    }

    /// What a drive that is to come back shows a running array, whose superblock says this and which is kept
    /// consistent so.
    #[must_use]
    pub fn returning(
        &self,
        device: MemberIndex,
        newest: &Said,
        consistency: Consistency,
    ) -> Option<Looked> {
        let records = self.bytes.as_deref()?;
        let mut looked = self.look(records, device);
        if let Some(md) = records.md() {
            md.say_journal(&mut looked, consistency);
            let numbers = records.writer.clone().device_numbers().clone();
            md.returning(&mut looked, newest, &numbers);
        }
        Some(looked)
    }

    /// Which drives make an md array, but for those `lost`: each is put into its place first.
    ///
    /// # Errors
    /// Why none do.
    pub(crate) fn joined(&mut self, lost: Set, allow: Allow) -> Result<MdFinds, AssembleError> {
        let Some(mut records) = self.bytes.take() else {
            return Err(AssembleError::NoSuperblock(Vec::new()));
        };
        records.swapped.clear();
        self.take_away(&records);
        let joined = self.join(&mut records, lost | set_of(allow.without), allow);
        self.bytes = Some(records);
        joined
    }

    /// Drives that were replaced are there until that is recorded, by two events. Whoever has them for longer and gives
    /// them may have to leave them out by name: of the devices that they know none may be left.
    fn take_away(&mut self, records: &Records) {
        let members = self.count() / 2;
        let events = |one: u16| {
            let seen = inspect(&mut View::of(self, records, MemberIndex(one)));
            let one = seen.superblock()?;
            Some((one.events, one.features.has(Features::REPLACEMENT)))
        };
        let replaced =
            |other| events(other).filter(|(_, fills)| !fills).map(|(own, _)| (other, own));
        let replaced: Vec<(u16, u64)> = (members..2 * members).filter_map(replaced).collect();
        if replaced.is_empty() {
            return;
        }
        let newest = (0..members).filter_map(events).map(|(events, _)| events).max().unwrap_or(0);
        for (other, _) in replaced.into_iter().filter(|(_, own)| own + 2 <= newest) {
            self.renew(MemberIndex(other));
        }
    }

    /// Of these drives, as they were before the last start, the places that they have now.
    pub(crate) fn where_now(&self, set: Set) -> Set {
        let swapped = self.bytes.iter().flat_map(|records| &records.swapped);
        swapped.fold(set, |set, (one, other)| moved(set, *one, *other))
    }

    /// Puts drives back that changed places for a start that was refused.
    pub(crate) fn swap_back(&mut self) {
        let Some(mut records) = self.bytes.take() else { return };
        for (one, other) in std::mem::take(&mut records.swapped).into_iter().rev() {
            self.swap_kept(&mut records, one, other);
        }
        self.bytes = Some(records);
    }

    /// Puts a drive into the place that it says.
    fn swap_in(&mut self, records: &mut Records, place: MemberIndex, device: MemberIndex) {
        let (one, other) = (place.min(device), place.max(device));
        self.swap_kept(records, one, other);
        records.swapped.push((one, other));
    }

    fn join(
        &mut self,
        records: &mut Records,
        lost: Set,
        allow: Allow,
    ) -> Result<MdFinds, AssembleError> {
        let Some(md) = records.md() else { return Err(AssembleError::NoSuperblock(Vec::new())) };
        let members = self.count() / 2;
        let is_given = |one: &MemberIndex| !has(lost, one.0) && !self.gone[one.at()];
        let is_there = |one: &MemberIndex| self.total(*one) > 0;
        // Members, what was to replace them, the log device.
        let all = (0..=2 * members).map(MemberIndex);
        let given: Vec<_> = all.filter(|one| is_given(one) && is_there(one)).collect();
        let inspected: Vec<Inspected> =
            given.iter().map(|one| inspect(&mut View::of(self, records, *one))).collect();
        let joined = self.join_or_give_up(records, (&given, &inspected), allow);
        let joined = joined.map_err(|why| refusal(why, &given))?;
        let order: Vec<_> = joined.order.iter().map(|one| one.map(|one| given[one])).collect();
        let replacement =
            joined.replacement.map(|(index, of)| (MemberIndex(members + of), given[index]));
        let members = (0..).map(MemberIndex).zip(&order);
        let mut seats =
            members.filter_map(|(place, device)| Some((place, (*device)?))).chain(replacement);
        // Whatever place a drive is given for, it is what it says.
        if let Some((place, device)) = seats.find(|(place, device)| device != place) {
            self.swap_in(records, place, device);
            return self.join(records, moved(lost, place, device), allow);
        }
        let mut looked: Vec<Option<Looked>> = order
            .iter()
            .map(|one| one.map(|one| md.examine(&mut View::of(self, records, one))))
            .collect();
        for (place, one) in looked.iter().enumerate() {
            let Some(one) = one else { continue };
            joined.check(place, &one.places).map_err(|why| refusal(why, &given))?;
        }
        let nonce = mix(u64::from(self.clock), records.world);
        let found = joined.found(&mut looked, records.block, nonce);
        let places = (0..).map(MemberIndex).zip(looked);
        let members = places.filter_map(|(place, one)| Some((place, one?)));
        let look = |(place, device)| (place, md.examine(&mut View::of(self, records, device)));
        let looked = members.chain(replacement.map(look)).collect();
        Ok(MdFinds { found, looked, joined, seen: inspected })
    }

    /// Which drives make the array. A journal that is lost, or cannot be replayed, is given up where a dirty start is
    /// allowed, as the engine does it.
    fn join_or_give_up(
        &self,
        records: &Records,
        (given, inspected): (&[MemberIndex], &[Inspected]),
        allow: Allow,
    ) -> Result<Joined, Cannot> {
        let allowed = Allowed { dirty_degraded: allow.dirty_degraded, ..Allowed::default() };
        let joined = join(inspected, &allowed);
        let lost = match &joined {
            Ok(joined) => joined
                .journal
                .filter(|log| !self.has_whole_journal(records, given[*log], &inspected[*log])),
            Err(Cannot::JournalLost) => None,
            Err(_) => return joined,
        };
        if joined.is_ok() && lost.is_none() {
            return joined;
        }
        if !allow.dirty_degraded {
            return Err(Cannot::JournalLost);
        }
        let without = lost.into_iter().collect();
        join(inspected, &Allowed { ignore_journal: true, without, ..allowed })
    }

    /// Drives that have to be left out of an array of version 0.90 by command after this refusal, because superblocks
    /// of that version do not tell what became of them: a half whose spare may be what the other became, and a spare
    /// that alone was told of a state, when nobody is left whom it has in service.
    pub(crate) fn untold(&self, lost: Set, refused: &AssembleError) -> Set {
        let records = self.bytes.as_deref();
        let Some(records) = records.filter(|one| one.format == Format::Md(Version::V0_90)) else {
            return 0;
        };
        let given = (0..self.count() / 2).map(MemberIndex);
        let seen: Vec<_> = given
            .filter(|one| !has(lost, one.0) && !self.gone[one.at()])
            .map(|one| (one, inspect(&mut View::of(self, records, one))))
            .collect();
        let with = || seen.iter().filter_map(|(one, seen)| Some((one.0, seen.superblock()?)));
        let all = |is_meant: &dyn Fn(u16, &Superblock) -> bool| {
            let meant = with().filter(|(device, one)| is_meant(*device, one));
            meant.fold(0, |all, (device, _)| all | 1 << device)
        };
        match refused {
            AssembleError::Diverged { other, .. } => all(&|device, one| {
                let has_spare = one.v0.as_ref().is_some_and(|v0| v0.counts[3] > 0);
                has(set_of(*other), device) && has_spare
            }),
            AssembleError::TooFew(_) => {
                let members = with().filter(|(_, one)| one.role() != Role::Spare);
                let newest = members.map(|(_, one)| one.events).max();
                all(&|_, one| one.role() == Role::Spare && newest.is_some_and(|of| one.events > of))
            }
            _ => 0,
        }
    }

    /// Members that are out of service by a spare's superblock of version 0.90 that is newer than those of all members:
    /// a member that is being rebuilt is one, and may have gone on when all others failed.
    pub(crate) fn told_by_spares(&self) -> Set {
        let Some(records) = self.bytes.as_deref() else { return 0 };
        if records.format != Format::Md(Version::V0_90) {
            return 0;
        }
        let all = (0..self.count() / 2).map(MemberIndex);
        let seen: Vec<_> = all.map(|one| inspect(&mut View::of(self, records, one))).collect();
        let (spares, members): (Vec<_>, Vec<_>) = seen
            .iter()
            .filter_map(Inspected::superblock)
            .partition(|one| one.role() == Role::Spare);
        let newest = members.iter().map(|one| one.events).max().unwrap_or(0);
        let last = spares.iter().filter(|one| one.events > newest).max_by_key(|one| one.events);
        last.map_or(0, |last| {
            let is_out = |place: &u16| !last.roles.contains(&Role::Member(*place));
            (0..self.count() / 2).filter(is_out).fold(0, |out, place| out | 1 << place)
        })
    }

    /// A superblock of another array stands on a drive, in the same state.
    pub(super) fn give_to_another_md(&mut self, records: &mut Records, device: MemberIndex) {
        let seen = inspect(&mut View::of(self, records, device));
        let Some(one) = seen.superblock() else { return };
        let one = Superblock { array: ANOTHER, ..one.clone() };
        let mut place = vec![0; PLACE as usize * SECTOR];
        one.emit(&mut place).expect("a place has room for a superblock");
        self.put(records, device, Sector(one.super_offset), &place);
    }

    /// The sectors that a bitmap of md takes on a drive: from which, and how many; none without.
    #[must_use]
    pub fn md_bitmap(&self, device: MemberIndex) -> (u64, u64) {
        let ground = self.bytes.as_ref().and_then(|records| records.grounds.get(device.at()));
        ground.map_or((0, 0), |ground| (ground.data + ground.log.1 + PLACE, ground.bitmap.1))
    }
}

/// A set in which two devices have changed places.
fn moved(set: Set, one: MemberIndex, other: MemberIndex) -> Set {
    let bit = |from: MemberIndex, to: MemberIndex| Set::from(has(set, from.0)) << to.0;
    let rest = set & !(1 << one.0 | 1 << other.0);
    rest | bit(one, other) | bit(other, one)
}
