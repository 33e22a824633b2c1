//! Metadata records as they lie on the devices of a test.

use std::cell::Cell;
use std::collections::BTreeMap;

use raidlab_core::consistency::{
    ArrayId, Carried, Examined, Finding, Found, LogEntry, LogFound, MetaArea, Parameters,
};
use raidlab_core::contract::{LOG_HEADER, MetaIo, Record, Superblock};
use raidlab_core::{Array, Config, MemberIndex, Sector, Sectors};

/// What every device holds, by device and by place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records {
    superblocks: BTreeMap<u16, Record>,
    /// What each superblock was written after.
    before: BTreeMap<u16, Record>,
    bitmaps: BTreeMap<(u16, u32), u64>,
    /// By device and place in its log area: the record, and the payload its checksum is of.
    logs: BTreeMap<(u16, u64), (Record, Vec<u8>)>,
}

impl Records {
    /// A new array's superblock.
    pub(crate) fn format(&mut self, member: MemberIndex, array: &Array) {
        self.superblocks.insert(member.0, Record::Superblock(array.superblock()));
    }

    pub(crate) fn superblock(&self, device: u16) -> Option<Superblock> {
        match self.superblocks.get(&device) {
            Some(Record::Superblock(superblock)) => Some(*superblock),
            _ => None,
        }
    }

    /// The superblock in the other place, which is one older.
    pub(crate) fn superblock_before(&self, device: u16) -> Option<Superblock> {
        match self.before.get(&device) {
            Some(Record::Superblock(superblock)) => Some(*superblock),
            _ => None,
        }
    }

    /// Whether a bit of a device's bitmap is set.
    pub(crate) fn bit(&self, device: u16, bit: u64) -> bool {
        let page = self.bitmaps.get(&(device, (bit / 64) as u32)).copied().unwrap_or(0);
        page >> (bit % 64) & 1 == 1
    }

    /// Everything on a device is gone.
    pub(crate) fn wipe(&mut self, device: u16) {
        self.superblocks.remove(&device);
        self.before.remove(&device);
        self.bitmaps.retain(|key, _| key.0 != device);
        self.logs.retain(|key, _| key.0 != device);
    }

    /// What is on a device in another account is on it here.
    pub(crate) fn take(&mut self, device: u16, from: &Self) {
        self.wipe(device);
        let of = |known: &u16| *known == device;
        self.superblocks.extend(from.superblocks.iter().filter(|(known, _)| of(known)));
        self.before.extend(from.before.iter().filter(|(known, _)| of(known)));
        self.bitmaps.extend(from.bitmaps.iter().filter(|((known, _), _)| of(known)));
        let logs = from.logs.iter().filter(|((known, _), _)| of(known));
        self.logs.extend(logs.map(|(at, entry)| (*at, entry.clone())));
    }

    /// What is on one device is on another from now on.
    pub(crate) fn rename(&mut self, from: u16, to: u16) {
        self.wipe(to);
        if let Some(record) = self.superblocks.remove(&from) {
            self.superblocks.insert(to, record);
        }
        let bitmaps = std::mem::take(&mut self.bitmaps).into_iter();
        let named = |device: u16| if device == from { to } else { device };
        self.bitmaps =
            bitmaps.map(|((device, page), bits)| ((named(device), page), bits)).collect();
        let logs = std::mem::take(&mut self.logs).into_iter();
        self.logs = logs.map(|((device, at), entry)| ((named(device), at), entry)).collect();
    }

    /// Writes a record; `data` is where a device's log area starts.
    pub(crate) fn write(&mut self, meta: &MetaIo, payload: Vec<u8>, memory: &mut [u8], data: u64) {
        let device = meta.member.0;
        match meta.record {
            Record::Superblock(_) => {
                if let Some(before) = self.superblocks.insert(device, meta.record) {
                    self.before.insert(device, before);
                }
            }
            Record::BitmapPage { page, bits } => {
                self.bitmaps.insert((device, page), bits);
            }
            Record::PartialParity { .. } | Record::JournalEntry { .. } => {
                let from = meta.at.0;
                let to = from + u64::from(LOG_HEADER) + payload.len() as u64;
                // Whatever had its header here is no entry any more.
                self.logs.retain(|(known, at), _| *known != device || *at < from || *at >= to);
                memory[(data + from) as usize + LOG_HEADER as usize..(data + to) as usize]
                    .copy_from_slice(&payload);
                self.logs.insert((device, from), (meta.record, payload));
            }
        }
    }

    /// Writes pages of the bitmap, each with its bits.
    pub(crate) fn write_pages(&mut self, device: u16, pages: Vec<(u32, u64)>) {
        self.bitmaps.extend(pages.into_iter().map(|(page, bits)| ((device, page), bits)));
    }

    /// What a driver would read from the devices, without those `lost`.
    pub(crate) fn found(&self, config: &Config, devices: &[Vec<u8>], lost: &[u16]) -> Found {
        let members = config.layout.members;
        let array = Array::new(config).expect("it was one");
        let largest = config.members.iter().map(|member| member.sectors).max();
        let consistency = config.settings.consistency;
        let area = MetaArea::of(&array, consistency, largest.unwrap_or(Sectors::ZERO));
        let is_whole = |device: u16, at: u64, payload: &[u8]| {
            let data = config.members.get(usize::from(device)).map_or(0, |m| m.sectors.0);
            let start = (data + at) as usize + LOG_HEADER as usize;
            devices[usize::from(device)][start..start + payload.len()] == *payload
        };
        let examined = |device: u16| {
            let parameters = Parameters::of(config, &area, MemberIndex(device));
            if lost.contains(&device) {
                return Examined::absent();
            }
            let log = self.logs.range((device, 0)..(device + 1, 0));
            let log = log.filter(|((_, at), (_, payload))| is_whole(device, *at, payload));
            let entries = log.map(|((_, at), (record, _))| LogEntry {
                member: MemberIndex(device),
                at: Sector(*at),
                record: *record,
            });
            let page = |page| match self.bitmaps.get(&(device, page)) {
                Some(bits) => Finding::Whole(*bits),
                None => Finding::Blank,
            };
            let superblock = match self.superblock(device) {
                Some(superblock) if consistency.has_superblocks() => {
                    let (array, parameters) = (IDENTITY, parameters.clone());
                    Finding::Whole(Carried { array, device, parameters, superblock })
                }
                _ => Finding::Blank,
            };
            Examined {
                sectors: Sectors(parameters.data.0 + parameters.log.0 + 1024),
                logical_block: 1,
                superblock,
                bitmap: (0..parameters.pages).map(page).collect(),
                log: LogFound { entries: entries.collect(), ..LogFound::default() },
                bad: Vec::new(),
            }
        };
        let mut members: Vec<_> = (0..members).map(examined).collect();
        if !consistency.has_superblocks() {
            for (member, config) in members.iter_mut().zip(&config.members) {
                member.sectors = config.sectors.min(member.sectors);
            }
        }
        let journal = examined(2 * config.layout.members);
        Found { members, journal, nonce: next_nonce() }
    }
}

/// Every array of a test has this identity.
pub(crate) const IDENTITY: ArrayId = [7; 16];

thread_local! {
    static NONCE: Cell<u64> = const { Cell::new(1) };
}

/// The numbers of starts go on from here.
pub(crate) fn nonces_from(nonce: u64) {
    NONCE.set(nonce);
}

/// A number that no other start of the test has.
pub(crate) fn next_nonce() -> u64 {
    NONCE.set(NONCE.get() + 1);
    NONCE.get()
}

/// The superblocks found on the members.
pub(crate) fn superblocks(found: &Found) -> impl Iterator<Item = Superblock> {
    found.members.iter().filter_map(|one| Some(one.superblock.whole()?.superblock))
}
