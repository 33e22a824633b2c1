//! Journals as the kernel left them, and as nobody would: what is replayed, what is dropped, and where they go on.

use std::collections::BTreeMap;

use raidlab_metadata::md::journal::{begin_anew, recover};
use raidlab_metadata::md::{Features, JournalDamage, JournalFound, Role, Superblock};

use super::device::{Disk, Numbers, disk, raid5};

/// Sectors of the ring of these tests, and where it starts on its device.
const RING: u64 = 2048;
const START: u64 = 2048;

/// An array that Linux 6.1 wrote, of three members of 64 KiB chunks: A at 0 (128 KiB), B at 12 KiB (4 KiB) with the
/// parity, then in write-back mode C and D at 80 KiB (4 KiB each).
const KERNELS: [(u64, &str); 3] = [
    (
        560,
        "09c53364b1cb94a20100000048000000d93ba5940000000030020000000000000000000008000000\
         1800000000000000d9b0fc1b01000000080000001800000000000000b9a07786",
    ),
    (
        584,
        "09c5336471cab4870100000034000000da3ba5940000000048020000000000000000000008000000\
         a0000000000000002f9a1dc1",
    ),
    (
        600,
        "09c5336481aed7540100000034000000db3ba5940000000058020000000000000000000008000000\
         a0000000000000000fa362ce",
    ),
];
const ARRAY: [u8; 16] = [
    0xf6, 0xde, 0xd7, 0x89, 0xda, 0xbc, 0x46, 0x7c, 0x2e, 0x33, 0xd9, 0x09, 0x22, 0x5d, 0x8d, 0x04,
];
/// The number of its first block.
const FIRST: u64 = 0x94a5_3bd9;

fn block(fields: &str) -> Vec<u8> {
    let digits: Vec<u8> = fields.bytes().filter(u8::is_ascii_hexdigit).collect();
    let two = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
    let mut block: Vec<u8> = digits.chunks(2).map(two).collect();
    block.resize(4096, 0);
    block
}

/// The superblock of a log device with this tail.
fn log(tail: u64) -> Superblock {
    let mut one = raid5(3, 3);
    one.roles[3] = Role::Journal;
    Superblock { features: Features::JOURNAL, recovery: tail, data_size: RING, ..one }
}

/// A log device with this tail and these pages in its ring.
fn device(one: &Superblock, pages: &[(u64, Vec<u8>)]) -> Disk {
    let placed: Vec<_> = pages.iter().map(|(at, page)| (START + at, page.clone())).collect();
    disk(one, &placed)
}

fn kernels() -> (Superblock, Vec<(u64, Vec<u8>)>) {
    let mut pages: Vec<_> = KERNELS.map(|(at, fields)| (at, block(fields))).into();
    let payload = [(568, b'B'), (576, b'A' ^ b'B'), (592, b'C'), (608, b'D')];
    pages.extend(payload.map(|(at, byte)| (at, vec![byte; 4096])));
    (Superblock { array: ARRAY, ..log(560) }, pages)
}

/// What rows there are: data with parity, whether that has come, and data without it.
type Rows = Vec<(u64, Vec<(u16, u64)>, Option<u64>, Vec<(u16, u64)>)>;

fn rows(found: &JournalFound) -> Rows {
    let list = |pages: &BTreeMap<u16, u64>| pages.iter().map(|(chunk, at)| (*chunk, *at)).collect();
    let told = found.rows.iter().map(|(row, one)| {
        (*row, list(&one.data), one.parity.map(|places| places[0]), list(&one.alone))
    });
    told.collect()
}

#[test]
fn a_journal_of_the_kernels_is_read_as_it_reads_it() {
    let (one, mut pages) = kernels();
    let found = recover(&mut device(&one, &pages), &one).unwrap();
    let newest =
        vec![(0x18, vec![(0, 568)], Some(576), vec![]), (0x20, vec![], None, vec![(1, 608)])];
    assert_eq!(rows(&found), newest);
    assert_eq!(found.next, Some((616, FIRST + 3)));
    // A page of the newest is torn: the one before counts, and the log goes on where its pages were.
    pages[6].1[4095] ^= 1;
    let found = recover(&mut device(&one, &pages), &one).unwrap();
    assert_eq!(rows(&found)[1], (0x20, vec![], None, vec![(1, 592)]));
    assert_eq!(found.next, Some((608, FIRST + 3)));
    // One in the midst is torn: what follows it is not found.
    pages[5].1[0] ^= 1;
    let found = recover(&mut device(&one, &pages), &one).unwrap();
    assert_eq!((rows(&found).len(), found.next), (1, Some((592, FIRST + 2))));
    // So it is with a block.
    pages[1].1[20] ^= 1;
    let found = recover(&mut device(&one, &pages), &one).unwrap();
    assert_eq!((rows(&found).len(), found.next), (1, Some((584, FIRST + 1))));
    // Begun anew, none of it is found again.
    let (at, empty) = begin_anew(&ARRAY, &found, 0);
    assert_eq!((at, &empty[16..24]), (584, &(FIRST + 10_001).to_le_bytes()[..]));
    let (one, mut pages) = kernels();
    pages[1].1 = empty;
    let one = Superblock { recovery: 584, ..one };
    let found = recover(&mut device(&one, &pages), &one).unwrap();
    assert_eq!((found.rows.len(), found.next), (0, Some((592, FIRST + 10_002))));
    // One that was never used.
    pages.clear();
    let found = recover(&mut device(&one, &pages), &one).unwrap();
    assert_eq!((&found, begin_anew(&ARRAY, &found, 7).0), (&JournalFound::default(), 0));
}

/// What a block lists: kind, sectors, place, pages.
#[derive(Clone)]
enum Listed {
    Pages(u16, u64, Vec<Vec<u8>>),
    Flushed(Vec<u64>),
    Raw(u16, u32, u64),
}

use Listed::{Flushed, Pages, Raw};

/// CRC-32C as the kernel seeds it with an identity.
fn sealed(array: &[u8; 16], bytes: &[u8]) -> u32 {
    !crc32c::crc32c_append(crc32c::crc32c(array), bytes)
}

/// Adds a block that lists this, with its pages, in a place of the ring; gives the place behind it.
fn add(
    pages: &mut Vec<(u64, Vec<u8>)>,
    (at, sequence): (u64, u64),
    listed: &[Listed],
) -> (u64, u64) {
    let mut block = vec![0; 32];
    let mut next = (at + 8) % RING;
    for one in listed {
        match one {
            Pages(kind, place, content) => {
                block.extend(kind.to_le_bytes());
                block.extend([0; 2]);
                block.extend((content.len() as u32 * 8).to_le_bytes());
                block.extend(place.to_le_bytes());
                for page in content {
                    block.extend(sealed(&[9; 16], page).to_le_bytes());
                    pages.push((next, page.clone()));
                    next = (next + 8) % RING;
                }
            }
            Flushed(rows) => {
                block.extend([2, 0, 0, 0]);
                block.extend((rows.len() as u32 * 8).to_le_bytes());
                rows.iter().for_each(|row| block.extend(row.to_le_bytes()));
            }
            Raw(kind, size, place) => {
                block.extend(kind.to_le_bytes());
                block.extend([0; 2]);
                block.extend(size.to_le_bytes());
                block.extend(place.to_le_bytes());
                block.extend([0; 4]);
            }
        }
    }
    let used = block.len() as u32;
    block.resize(4096, 0);
    block[..4].copy_from_slice(&0x6433_c509_u32.to_le_bytes());
    block[8] = 1;
    block[12..16].copy_from_slice(&used.to_le_bytes());
    block[16..24].copy_from_slice(&sequence.to_le_bytes());
    block[24..32].copy_from_slice(&at.to_le_bytes());
    let sum = sealed(&[9; 16], &block);
    block[4..8].copy_from_slice(&sum.to_le_bytes());
    pages.push((at, block));
    (next, sequence + 1)
}

fn page(byte: u8) -> Vec<Vec<u8>> {
    vec![vec![byte; 4096]]
}

/// What is found of blocks that follow one another from a tail on.
fn found(tail: u64, blocks: &[Vec<Listed>]) -> Result<JournalFound, JournalDamage> {
    let mut pages = Vec::new();
    let mut next = (tail, 7);
    for listed in blocks {
        next = add(&mut pages, next, listed);
    }
    let one = log(tail);
    let found = recover(&mut device(&one, &pages), &one)?;
    assert_eq!(found.next, Some(next));
    Ok(found)
}

#[test]
fn what_came_last_of_a_row_counts() {
    let data = |at| Pages(0, at, page(1));
    let parity = |row| Pages(1, row, page(2));
    let rows_of = |blocks: &[Vec<Listed>]| rows(&found(64, blocks).unwrap());
    // Data of both chunks, then parity in a block of its own.
    let both = [vec![data(8), data(128 + 8)], vec![parity(8)]];
    assert_eq!(rows_of(&both), [(8, vec![(0, 72), (1, 80)], Some(96), vec![])]);
    // Newer data of a chunk, and with their parity.
    let newer = [both.to_vec(), vec![vec![data(8)]]].concat();
    assert_eq!(rows_of(&newer), [(8, vec![(0, 72), (1, 80)], Some(96), vec![(0, 112)])]);
    let merged = [newer, vec![vec![parity(8)]]].concat();
    assert_eq!(rows_of(&merged), [(8, vec![(0, 112), (1, 80)], Some(128), vec![])]);
    // Parity alone is of data that were written out; a row that was written out is nothing.
    assert_eq!(rows_of(&[vec![parity(8)]]), []);
    assert_eq!(rows_of(&[both.to_vec(), vec![vec![Flushed(vec![0, 8])]]].concat()), []);
    assert_eq!(rows_of(&[vec![Flushed(Vec::new())], vec![data(256)]])[0].0, 128);
}

#[test]
fn the_ring_goes_on_at_its_start() {
    let blocks: Vec<_> = (0..3).map(|n| vec![Pages(0, 8 * n, page(n as u8))]).collect();
    let found = found(RING - 24, &blocks).unwrap();
    let places: Vec<_> = found.rows.values().map(|row| row.alone[&0]).collect();
    assert_eq!((places, found.next), (vec![RING - 16, 0, 16], Some((24, 10))));
}

#[test]
fn both_parities_of_raid6_follow_one_another() {
    let mut pages = Vec::new();
    let both = Pages(1, 16, vec![vec![3; 4096], vec![4; 4096]]);
    add(&mut pages, (0, 7), &[Pages(0, 16, page(1)), both]);
    let one = Superblock { level: 6, members: 4, ..log(0) };
    let found = recover(&mut device(&one, &pages), &one).unwrap();
    assert_eq!(found.rows[&16].parity, Some([16, 24]));
    // Q is torn.
    pages[2].1[9] ^= 1;
    assert!(recover(&mut device(&one, &pages), &one).unwrap().rows.is_empty());
}

#[test]
fn what_no_journal_lists_is_named() {
    let what = |listed: Listed| match found(0, &[vec![listed]]) {
        Err(JournalDamage::Impossible(0, what)) => what,
        other => panic!("{other:?}"),
    };
    assert_eq!(what(Raw(3, 8, 0)), "an item of a kind that is not known");
    for (kind, size) in [(0, 0), (0, 16), (0, u32::MAX), (0, 9), (1, 0), (1, 16), (2, 7)] {
        assert_eq!(what(Raw(kind, size, 0)), "an item of a size that it cannot have");
    }
    assert_eq!(what(Raw(2, u32::MAX - 7, 0)), "an item that goes beyond it");
    for place in [2048, 4, u64::MAX, u64::MAX - 7] {
        assert_eq!(what(Raw(0, 8, place)), "data that the array does not have");
    }
    for place in [1024, 4, u64::MAX - 7] {
        assert_eq!(what(Raw(1, 8, place)), "parity that the array does not have");
    }
    let refused = |one: &Superblock, of: u64| {
        let mut device = device(&log(0), &[]);
        device.0.truncate(of as usize * 512);
        recover(&mut device, one).unwrap_err()
    };
    for tail in [RING, RING + 8, 4, u64::MAX - 7] {
        assert_eq!(refused(&log(tail), 4096), JournalDamage::Tail(tail));
    }
    assert_eq!(refused(&log(0), 4095), JournalDamage::Place);
    for one in [
        Superblock { data_size: 256, ..log(0) },
        Superblock { data_offset: u64::MAX - 7, ..log(0) },
        Superblock { chunk: 0, ..log(0) },
        Superblock { chunk: 12, ..log(0) },
        Superblock { members: 1, ..log(0) },
        raid5(3, 0),
    ] {
        assert_eq!(refused(&one, 4096), JournalDamage::Place, "{one:?}");
    }
}

/// A device of which a page cannot be read.
struct Bad(Disk, u64);

impl raidlab_metadata::Source for Bad {
    fn sectors(&self) -> raidlab_core::Sectors {
        self.0.sectors()
    }

    fn logical_block(&self) -> u32 {
        1
    }

    fn read(
        &mut self,
        at: raidlab_core::Sector,
        into: &mut [u8],
    ) -> Result<(), raidlab_metadata::Unreadable> {
        if at.0 == START + self.1 {
            Err(raidlab_metadata::Unreadable)
        } else {
            self.0.read(at, into)
        }
    }
}

#[test]
fn what_cannot_be_read_is_not_taken_for_torn() {
    let (one, pages) = kernels();
    for at in [560, 568, 584, 608] {
        let mut bad = Bad(device(&one, &pages), at);
        assert_eq!(recover(&mut bad, &one), Err(JournalDamage::Unreadable(at)));
    }
}

/// Blocks that are sealed, of any items, at any tail: what is found lies in the ring and in the array, or it is named.
#[test]
fn no_sealed_bytes_lead_out_of_the_ring() {
    let mut numbers = Numbers(1);
    let mut below = move |end: u64| numbers.next() % end;
    let (mut found, mut named) = (0, 0);
    for _ in 0..3000 {
        let tail = below(RING / 8) * 8;
        let mut pages = Vec::new();
        let mut next = (tail, 7);
        for _ in 0..=below(4) {
            let mut listed = Vec::new();
            for _ in 0..below(4) {
                let at = match below(40) {
                    0 => below(2100),
                    1 => u64::MAX - below(9),
                    _ => below(128) * 8,
                };
                listed.push(match below(12) {
                    0..7 => Pages(0, at, page(1)),
                    7..10 => Pages(1, at, page(2)),
                    10 => Flushed(vec![at]),
                    _ => Raw(below(4) as u16, [0, 8, 16, u32::MAX][below(4) as usize], at),
                });
            }
            next = add(&mut pages, next, &listed);
        }
        let one = log(tail);
        match recover(&mut device(&one, &pages), &one) {
            Ok(all) => {
                found += all.rows.len();
                for (row, journalled) in &all.rows {
                    let parity = journalled.parity.into_iter().flatten();
                    let data = journalled.data.iter().chain(&journalled.alone);
                    let places = data.clone().map(|(_, at)| *at).chain(parity);
                    assert!(*row < one.size && row.is_multiple_of(8) && data.count() > 0);
                    assert!(places.clone().all(|at| at < RING && at.is_multiple_of(8)));
                }
            }
            Err(JournalDamage::Impossible(..)) => named += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(found > 500 && named > 500, "{found} {named}");
}
