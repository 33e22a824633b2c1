//! A device in memory, and who writes records to it.
#![allow(dead_code, unreachable_pub)]

use std::collections::BTreeSet;

use raidlab_core::consistency::{ArrayId, Carried, Finding, MetaArea, Parameters};
use raidlab_core::contract::{MetaIo, Record, SegmentList, Superblock};
use raidlab_core::{Consistency, MemberIndex, SECTOR_BYTES, Sector, Sectors};
use raidlab_metadata::{Label, MetadataFormat, Own, Places, Source, Unreadable};

pub const SECTOR: usize = SECTOR_BYTES as usize;
pub const TOTAL: Sectors = Sectors(2_003);
pub const ARRAY: ArrayId = [7; 16];
pub const FORMAT: Own = Own;
pub const BITMAP: Consistency = Consistency::Bitmap { chunk: Sectors(8) };
pub const PARTIAL: Consistency = Consistency::PartialParity { slots: 8 };
/// Of the log device.
pub const JOURNAL: Consistency = Consistency::Journal { sectors: Sectors(1_024) };

/// A device in memory.
#[derive(Clone)]
pub struct Disk {
    pub bytes: Vec<u8>,
    pub unreadable: BTreeSet<u64>,
    pub block: u32,
}

impl Disk {
    pub fn blank() -> Self {
        let bytes = vec![0; TOTAL.bytes() as usize];
        Self { bytes, unreadable: BTreeSet::new(), block: 1 }
    }

    pub fn write(&mut self, at: Sector, bytes: &[u8]) {
        self.bytes[at.0 as usize * SECTOR..][..bytes.len()].copy_from_slice(bytes);
    }

    pub fn sector(&mut self, at: Sector) -> &mut [u8] {
        &mut self.bytes[at.0 as usize * SECTOR..][..SECTOR]
    }

    pub fn superblock(&mut self) -> Finding<Carried> {
        FORMAT.examine(self).examined.superblock
    }
}

impl Source for Disk {
    fn sectors(&self) -> Sectors {
        Sectors((self.bytes.len() / SECTOR) as u64)
    }

    fn logical_block(&self) -> u32 {
        self.block
    }

    fn read(&mut self, at: Sector, into: &mut [u8]) -> Result<(), Unreadable> {
        let len = (into.len() / SECTOR) as u64;
        let block = u64::from(self.block);
        assert!(at.0.is_multiple_of(block) && len.is_multiple_of(block), "{at:?}, {len} sectors");
        let sectors = at.0..at.0 + len;
        if sectors.end > self.sectors().0 || self.unreadable.range(sectors).next().is_some() {
            return Err(Unreadable);
        }
        into.copy_from_slice(&self.bytes[at.0 as usize * SECTOR..][..into.len()]);
        Ok(())
    }
}

/// Writes records of a device of an array.
pub struct Writer {
    pub array: ArrayId,
    pub device: u16,
    pub members: u16,
    pub places: Places,
    pub parameters: Parameters,
    pub sequence: u64,
}

impl Writer {
    /// Of member 1 of an array with a bitmap of three pages.
    pub fn new() -> Self {
        Self::with("raid5(3) chunk=8K", BITMAP, MetaArea { log: Sectors(0), pages: 3, used: true })
    }

    /// Of member 1 of an array with logs of partial parity, of eight slots with 32 sectors each.
    pub fn with_log() -> Self {
        Self::with(
            "raid5(3) chunk=8K",
            PARTIAL,
            MetaArea { log: Sectors(256), pages: 0, used: true },
        )
    }

    fn with(layout: &str, consistency: Consistency, area: MetaArea) -> Self {
        let data = area.data(TOTAL, 1).expect("room");
        Self::of(layout, consistency, 1, (TOTAL, data, area))
    }

    /// Of the log device of such an array.
    pub fn of_journal() -> Self {
        let Consistency::Journal { sectors } = JOURNAL else { unreachable!("a journal") };
        let area = MetaArea { log: sectors, pages: 0, used: true };
        Self::of("raid5(3) chunk=8K", JOURNAL, 6, (TOTAL, Sectors(0), area))
    }

    /// Of a device of so many sectors, with so many for data.
    pub fn of(
        layout: &str,
        consistency: Consistency,
        device: u16,
        (total, data, area): (Sectors, Sectors, MetaArea),
    ) -> Self {
        let parameters = Parameters {
            layout: layout.to_string(),
            consistency,
            data,
            least: data,
            log: area.log,
            pages: area.pages,
            block: 1,
        };
        let places = Places::blank(total, &parameters);
        Self { array: ARRAY, device, members: 3, places, parameters, sequence: 0 }
    }

    /// Makes a device ready.
    pub fn prepare(&mut self, disk: &mut Disk) {
        for place in 0..2 {
            self.sequence += 1;
            let at = MetaArea::superblock(disk.sectors(), place);
            let (array, device, sequence) = (self.array, self.device, self.sequence);
            let mut head = vec![0; FORMAT.head()];
            FORMAT.vacant(&mut head, &Label { array, device, sequence, payload: 0, at });
            disk.write(at, &head);
        }
    }

    /// Gives where it was written.
    pub fn write(&mut self, disk: &mut Disk, record: Record, at: Sector, payload: &[u8]) -> Sector {
        let meta = MetaIo {
            member: MemberIndex(self.device),
            record,
            at,
            payload: SegmentList::EMPTY,
            flush: false,
            fua: true,
        };
        self.sequence += 1;
        let place = FORMAT.place(&mut self.places, &meta);
        let label = Label {
            array: self.array,
            device: match self.device {
                // A replacement's is its member's.
                device if device < 2 * self.members => device % self.members,
                log => log,
            },
            sequence: self.sequence,
            payload: (payload.len() / SECTOR) as u32,
            at: place,
        };
        let mut bytes = vec![0; FORMAT.head()];
        let parts = &mut payload.chunks(SECTOR);
        FORMAT.encode(&mut bytes, &label, &record, Some(&self.parameters), parts);
        assert_eq!(FORMAT.decode(&bytes, payload), Some((label, record)));
        bytes.extend_from_slice(payload);
        disk.write(place, &bytes);
        place
    }

    pub fn superblock(&mut self, disk: &mut Disk, events: u64) -> Sector {
        let superblock = Superblock { events, ..Superblock::default() };
        self.write(disk, Record::Superblock(superblock), Sector(0), &[])
    }

    pub fn page(&mut self, disk: &mut Disk, page: u32, bits: u64) -> Sector {
        self.write(disk, Record::BitmapPage { page, bits }, Sector(0), &[])
    }

    /// An entry of the log of partial parity.
    pub fn entry(&mut self, disk: &mut Disk, slot: u32, generation: u64, payload: &[u8]) -> Record {
        let record = partial(slot, generation);
        self.write(disk, record, Sector(u64::from(slot) * 32), payload);
        record
    }
}

pub const fn partial(slot: u32, generation: u64) -> Record {
    let settled = [generation, generation];
    Record::PartialParity { slot, generation, stripe: 3, from: 0, to: 2, written: [1, 0], settled }
}

/// A seeded generator.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}
