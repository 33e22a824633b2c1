//! Metadata records as they lie on the devices of a test.

use std::collections::BTreeMap;

use raidlab_core::consistency::{Found, LogEntry};
use raidlab_core::contract::{LOG_HEADER, MetaIo, Record, Superblock};
use raidlab_core::{Array, Config, MemberIndex, Sector};

/// What every device holds, by device and by place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records {
    superblocks: BTreeMap<u16, Record>,
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

    /// Whether a bit of a device's bitmap is set.
    pub(crate) fn bit(&self, device: u16, bit: u64) -> bool {
        let page = self.bitmaps.get(&(device, (bit / 64) as u32)).copied().unwrap_or(0);
        page >> (bit % 64) & 1 == 1
    }

    /// Everything on a device is gone.
    pub(crate) fn wipe(&mut self, device: u16) {
        self.superblocks.remove(&device);
        self.bitmaps.retain(|key, _| key.0 != device);
        self.logs.retain(|key, _| key.0 != device);
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
                self.superblocks.insert(device, meta.record);
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

    /// What a driver would read from the devices, without those `lost`.
    pub(crate) fn found(&self, config: &Config, devices: &[Vec<u8>], lost: &[u16]) -> Found {
        let members = config.layout.members;
        let there = |device: &u16| !lost.contains(device);
        let superblock = |device: u16| self.superblock(device).filter(|_| there(&device));
        let bitmap = |device: u16| {
            let pages = self.bitmaps.range((device, 0)..(device + 1, 0));
            let last = pages.clone().last().map_or(0, |((_, page), _)| page + 1);
            let mut bits = vec![0; if there(&device) { last as usize } else { 0 }];
            for ((_, page), page_bits) in pages.filter(|_| there(&device)) {
                bits[*page as usize] = *page_bits;
            }
            bits
        };
        let is_whole = |device: u16, at: u64, payload: &[u8]| {
            let data = config.members.get(usize::from(device)).map_or(0, |m| m.sectors.0);
            let start = (data + at) as usize + LOG_HEADER as usize;
            devices[usize::from(device)][start..start + payload.len()] == *payload
        };
        let log = self.logs.iter().filter(|((device, at), (_, payload))| {
            there(device) && is_whole(*device, *at, payload)
        });
        Found {
            superblocks: (0..members).map(superblock).collect(),
            bitmaps: (0..members).map(bitmap).collect(),
            log: log
                .map(|((device, at), (record, _))| LogEntry {
                    member: MemberIndex(*device),
                    at: Sector(*at),
                    record: *record,
                })
                .collect(),
            journal: there(&(2 * members)),
        }
    }
}
