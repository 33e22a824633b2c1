//! What stands on one device.

use raidlab_core::consistency::{Finding, MetaArea, Parameters};
use raidlab_core::contract::{Epoch, MetaIo, Record, SegmentList, Superblock};
use raidlab_core::{Consistency, MemberIndex, Sector, Sectors};
use raidlab_metadata::{ArrayId, Label, Looked, MetadataFormat, Own, Places};

use crate::device::{self, Device, SECTOR};
use crate::script::Script;

const ARRAY: ArrayId = [7; 16];
const MEMBERS: u16 = 3;
/// The most steps of a script: each may make the whole device be read again.
const MOST_STEPS: usize = 64;
/// Sectors of the journal, slots of the log of partial parity with the sectors of each, pages of the bitmap.
const JOURNAL: u64 = 96;
const SLOTS: u32 = 6;
const SLOT: u64 = 16;
const PAGES: u32 = 3;

/// Who writes records to a device.
struct Writer {
    device: u16,
    parameters: Parameters,
    places: Places,
    /// The label of the record that was written last.
    sequence: u64,
    superblock: Option<Superblock>,
    /// All that were written.
    superblocks: Vec<Superblock>,
    pages: [Option<u64>; PAGES as usize],
    entries: Vec<Record>,
    is_ready: bool,
    /// Something else than records was written.
    is_damaged: bool,
    /// Something was sealed that nobody wrote.
    is_forged: bool,
}

/// A device in any state. The first two bytes say which device of which array it is and how large; then a script writes
/// records, and damages, forges and moves what stands there. What was sealed is read back as it was; of a device that
/// was not damaged the newest records are found, of another one none that nobody wrote.
pub fn metadata(data: &[u8]) {
    let mut script = Script::new(data);
    let (consistency, device, area) = match script.below(4) {
        0 => (Consistency::Bitmap { chunk: Sectors(8) }, 1, area(0, PAGES)),
        1 => (Consistency::PartialParity { slots: SLOTS }, 1, area(SLOT * u64::from(SLOTS), 0)),
        2 => (Consistency::Journal { sectors: Sectors(JOURNAL) }, 2 * MEMBERS, area(JOURNAL, 0)),
        _ => (Consistency::Resync, 2, area(0, 0)),
    };
    let total = area.sectors() + Sectors(1 + script.below(256) as u64);
    let data = match consistency {
        Consistency::Journal { .. } => Sectors::ZERO,
        _ => area.data(total, 1).expect("there is room"),
    };
    let parameters = Parameters {
        layout: "raid5(3) chunk=8K".into(),
        consistency,
        data,
        least: data,
        log: area.log,
        pages: area.pages,
        block: 1,
    };
    let mut writer = Writer {
        device,
        places: Places::blank(total, &parameters),
        parameters,
        sequence: 0,
        superblock: None,
        superblocks: Vec::new(),
        pages: [None; PAGES as usize],
        entries: Vec::new(),
        is_ready: false,
        is_damaged: false,
        is_forged: false,
    };
    let image = vec![0; total.bytes() as usize];
    let mut device = Device::new(&image);
    for _ in 0..MOST_STEPS {
        if script.is_over() {
            break;
        }
        step(&mut script, &mut writer, &mut device);
    }
    writer.judge(&Own.examine(&mut device));
}

fn area(log: u64, pages: u32) -> MetaArea {
    MetaArea { log: Sectors(log), pages, used: true }
}

fn step(script: &mut Script<'_>, writer: &mut Writer, device: &mut Device<'_>) {
    let what = script.below(16);
    writer.is_damaged |= what >= 8;
    writer.is_forged |= (12..15).contains(&what);
    let at = |script: &mut Script<'_>, device: &Device<'_>| place(script, device);
    match what {
        0 => writer.prepare(device),
        1..=3 => writer.superblock(script, device),
        4 | 5 => writer.page(script, device),
        6 | 7 => writer.entry(script, device),
        8 => {
            let (at, byte) = (at(script, device), script.below(SECTOR));
            device.sector_mut(at)[byte] ^= script.byte();
        }
        9 => {
            let at = at(script, device);
            device.unreadable.insert(at);
        }
        10 => {
            let at = at(script, device);
            device.sector_mut(at).fill(0);
        }
        11 => {
            let (from, to) = (at(script, device), at(script, device));
            let moved = device.sector(from).to_vec();
            device.sector_mut(to).copy_from_slice(&moved);
        }
        12 => {
            let (at, word, value) = (at(script, device), script.below(31), script.word());
            device::forge(device.sector_mut(at), 8 * word, &value.to_le_bytes());
        }
        13 => {
            // The text of the layout, and how long it is.
            let (at, len) = (at(script, device), script.below(64));
            let text = script.bytes(len);
            device::forge(device.sector_mut(at), 8 * 29, &(text.len() as u64).to_le_bytes());
            device::forge(device.sector_mut(at), 320 - 56, text);
        }
        14 => {
            let (at, byte) = (at(script, device), script.below(56));
            device.sector_mut(at)[byte] = script.byte();
            device::seal(device.sector_mut(at));
        }
        _ => device.sectors -= u64::from(script.byte() % 17).min(device.sectors - 1),
    }
}

/// A sector of the device, counted from its end, where most of the records are.
fn place(script: &mut Script<'_>, device: &Device<'_>) -> u64 {
    device.sectors - 1 - script.below(device.sectors as usize) as u64
}

impl Writer {
    fn label(&mut self, at: Sector, payload: usize) -> Label {
        self.sequence += 1;
        let (device, sequence) = (self.device, self.sequence);
        Label { array: ARRAY, device, sequence, payload: (payload / SECTOR) as u32, at }
    }

    fn prepare(&mut self, device: &mut Device<'_>) {
        // A device that is in use is not made ready.
        if self.superblock.is_some() {
            return;
        }
        self.is_ready = true;
        for at in Own.superblocks(self.places.total) {
            let mut head = vec![0; Own.head()];
            Own.vacant(&mut head, &self.label(at, 0));
            device.write(at.0, &head);
        }
    }

    fn write(&mut self, device: &mut Device<'_>, record: Record, at: u64, payload: &[u8]) {
        let (member, payload_list) = (MemberIndex(self.device), SegmentList::EMPTY);
        let (at, flush, fua) = (Sector(at), false, true);
        let meta = MetaIo { member, record, at, payload: payload_list, flush, fua };
        let place = Own.place(&mut self.places, &meta);
        let label = self.label(place, payload.len());
        let mut bytes = vec![0; Own.head()];
        let mut parts = payload.chunks(SECTOR);
        Own.encode(&mut bytes, &label, &record, Some(&self.parameters), &mut parts);
        assert_eq!(Own.decode(&bytes, payload), Some((label, record)));
        bytes.extend_from_slice(payload);
        device.write(place.0, &bytes);
    }

    fn superblock(&mut self, script: &mut Script<'_>, device: &mut Device<'_>) {
        let members = |byte: u8| [u64::from(byte) % (1 << MEMBERS), 0];
        let said = Superblock {
            events: script.byte().into(),
            failed: members(script.byte()),
            rebuilding: members(script.byte()),
            clean: script.flag(),
            journal: script.flag(),
            by_bitmap: script.flag(),
            rebuilt_to: Sector(script.word()),
            synced_to: Sector(script.word()),
            journal_tail: script.byte().into(),
            bitmap_since: script.byte().into(),
            left: script.byte(),
            history: std::array::from_fn(|_| Epoch {
                id: script.byte().into(),
                from: script.byte().into(),
            }),
            // The own format keeps neither.
            ..Superblock::default()
        };
        self.superblock = Some(said);
        self.superblocks.push(said);
        self.write(device, Record::Superblock(said), 0, &[]);
    }

    fn page(&mut self, script: &mut Script<'_>, device: &mut Device<'_>) {
        if self.parameters.pages == 0 {
            return;
        }
        let (page, bits) = (script.below(PAGES as usize), script.word());
        self.pages[page] = Some(bits);
        self.write(device, Record::BitmapPage { page: page as u32, bits }, 0, &[]);
    }

    fn entry(&mut self, script: &mut Script<'_>, device: &mut Device<'_>) {
        let (slot, number) = (script.below(SLOTS as usize) as u32, u64::from(script.byte()));
        let (at, stripe) = (SLOT * u64::from(slot), script.byte().into());
        let (from, to) = (script.byte().into(), script.byte().into());
        let record = match self.parameters.consistency {
            Consistency::PartialParity { .. } => {
                let (written, settled) =
                    ([script.byte().into(), 0], [script.byte().into(), number]);
                Record::PartialParity {
                    slot,
                    generation: number,
                    stripe,
                    from,
                    to,
                    written,
                    settled,
                }
            }
            Consistency::Journal { .. } => {
                let (roles, settled) = ([script.byte().into(), 0], script.byte().into());
                Record::JournalEntry {
                    at: Sector(at),
                    sequence: number,
                    stripe,
                    from,
                    to,
                    roles,
                    settled,
                }
            }
            _ => return,
        };
        let payload = vec![script.byte(); script.below(8) * SECTOR];
        self.entries.push(record);
        self.write(device, record, at, &payload);
    }

    /// Holds what is found against what was written.
    fn judge(&self, looked: &Looked) {
        let found = &looked.examined;
        if let Some(carried) = found.superblock.readable() {
            assert_eq!(found.bitmap.len(), carried.parameters.pages as usize);
            assert!(self.is_forged || self.superblocks.contains(&carried.superblock));
        } else {
            assert!(found.bitmap.is_empty() && found.log.entries.is_empty());
        }
        if self.is_damaged {
            return;
        }
        let newest = found.superblock.whole().map(|carried| carried.superblock);
        match self.superblock {
            // Both places were written before the first superblock.
            Some(_) if self.is_ready => assert_eq!(newest, self.superblock),
            Some(_) => assert!(!matches!(found.superblock, Finding::Blank)),
            None => assert_eq!(found.superblock, Finding::Blank),
        }
        let Some(carried) = found.superblock.readable() else { return };
        assert_eq!(carried.parameters, self.parameters);
        assert_eq!(looked.sequence, self.sequence);
        for (page, said) in found.bitmap.iter().zip(self.pages) {
            assert_eq!(*page, said.map_or(Finding::Blank, Finding::Whole));
        }
        assert!(!found.log.unreadable);
        assert!(found.log.entries.iter().all(|entry| self.entries.contains(&entry.record)));
    }
}
