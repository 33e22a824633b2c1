//! What is unreadable, damaged, foreign, of another version, blank or absent is told apart; and no bytes make a
//! format panic or take what was not written.

mod disk;

use disk::{ARRAY, BITMAP, Disk, FORMAT, Random, SECTOR, TOTAL, Writer};
use raidlab_core::consistency::{Carried, Finding, MetaArea};
use raidlab_core::{Consistency, SECTOR_BYTES, Sector, Sectors};
use raidlab_metadata::{Checksum, Label, MetadataFormat};

/// A device with superblocks 1 and 2, and pages written once and twice.
fn written() -> (Disk, Writer) {
    let (mut disk, mut writer) = (Disk::blank(), Writer::new());
    writer.prepare(&mut disk);
    writer.superblock(&mut disk, 1);
    writer.superblock(&mut disk, 2);
    writer.page(&mut disk, 0, 5);
    writer.page(&mut disk, 1, 6);
    writer.page(&mut disk, 1, 7);
    (disk, writer)
}

/// A finding with the events instead of the superblock.
fn events(finding: &Finding<Carried>) -> Finding<u64> {
    let events = |one: &Option<Carried>| one.as_ref().map(|carried| carried.superblock.events);
    match finding {
        Finding::Whole(one) => Finding::Whole(one.superblock.events),
        Finding::Unreadable(one) => Finding::Unreadable(events(one)),
        Finding::Damaged(one) => Finding::Damaged(events(one)),
        Finding::Absent => Finding::Absent,
        Finding::Blank => Finding::Blank,
        Finding::Foreign => Finding::Foreign,
        Finding::Unsupported(which) => Finding::Unsupported(which),
    }
}

/// What may stand in a place.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Older,
    Newer,
    Vacant,
    Zeroes,
    Flipped,
    Unreadable,
    Strange,
    First,
    Later,
    OtherArray,
    Misplaced,
}

const STATES: [State; 11] = [
    State::Older,
    State::Newer,
    State::Vacant,
    State::Zeroes,
    State::Flipped,
    State::Unreadable,
    State::Strange,
    State::First,
    State::Later,
    State::OtherArray,
    State::Misplaced,
];

fn set(disk: &mut Disk, place: u32, state: State) {
    let at = MetaArea::superblock(TOTAL, place);
    let mut writer = Writer::new();
    let record = |writer: &mut Writer, disk: &mut Disk, sequence| {
        writer.sequence = sequence;
        if place == 1 {
            let mut elsewhere = disk.clone();
            writer.superblock(&mut elsewhere, 0);
        }
        writer.sequence = sequence;
        assert_eq!(writer.superblock(disk, sequence), at);
    };
    match state {
        State::Older => record(&mut writer, disk, 10),
        State::Newer => record(&mut writer, disk, 11),
        State::OtherArray => {
            writer.array = [9; 16];
            record(&mut writer, disk, 12);
        }
        State::Vacant => {
            let label = Label { array: ARRAY, device: 1, sequence: 3, payload: 0, at };
            FORMAT.vacant(&mut disk.bytes[at.bytes() as usize..][..FORMAT.head()], &label);
        }
        State::Zeroes => disk.sector(at).fill(0),
        State::Flipped => {
            record(&mut writer, disk, 12);
            disk.sector(at)[57] ^= 4;
        }
        State::Unreadable => {
            disk.unreadable.insert(at.0);
        }
        State::Strange => disk.sector(at).fill(0x42),
        State::First => {
            let first = first_version(at);
            disk.write(at, &first);
        }
        State::Later => disk.sector(at)[..8].copy_from_slice(b"raidlab\x03"),
        State::Misplaced => {
            record(&mut writer, disk, 12);
            let label =
                Label { array: ARRAY, device: 1, sequence: 12, payload: 0, at: Sector(at.0 - 8) };
            let superblock = Default::default();
            let record = raidlab_core::contract::Record::Superblock(superblock);
            let head = &mut disk.bytes[at.bytes() as usize..][..FORMAT.head()];
            FORMAT.encode(head, &label, &record, Some(&writer.parameters), &mut std::iter::empty());
        }
    }
}

/// A superblock of format 1 as raidlab 0.1.0 wrote it: a block of 4 KiB under one checksum.
fn first_version(_at: Sector) -> Vec<u8> {
    let mut block = vec![0; 4096];
    block[..8].copy_from_slice(b"raidlab\x01");
    block[12] = 1;
    block[14] = 1;
    block[16..32].copy_from_slice(&ARRAY);
    block[32] = 20;
    for (word, value) in [(0, 4_u64), (11, 1_000), (13, 3), (14, 8)] {
        block[48 + 8 * word..][..8].copy_from_slice(&value.to_le_bytes());
    }
    block[512..520].copy_from_slice(b"raid5(3)");
    let mut sum = Checksum::default();
    sum.add(&block);
    block[8..12].copy_from_slice(&sum.value().to_le_bytes());
    block
}

/// What two places are together.
fn expected(one: State, other: State) -> Finding<u64> {
    use State::{First, Flipped, Later, Misplaced, Newer, Older, OtherArray, Strange};
    let has = |state: State| one == state || other == state;
    let pair = |a: State, b: State| has(a) && has(b);
    let newest = if has(Newer) { Some(11) } else { has(Older).then_some(10) };
    if pair(OtherArray, Older) || pair(OtherArray, Newer) {
        return Finding::Damaged(None);
    }
    let newest = if has(OtherArray) { Some(12) } else { newest };
    if let Some(newest) = newest {
        let is_record = |state| matches!(state, Newer | Older | OtherArray | State::Vacant);
        return match (is_record(one) && is_record(other), has(State::Unreadable)) {
            (true, _) => Finding::Whole(newest),
            (_, true) => Finding::Unreadable(Some(newest)),
            _ => Finding::Damaged(Some(newest)),
        };
    }
    if has(State::Unreadable) {
        return Finding::Unreadable(None);
    }
    if has(First) || has(Later) {
        return Finding::Unsupported("");
    }
    if has(Flipped) || has(Misplaced) || pair(Strange, State::Vacant) {
        return Finding::Damaged(None);
    }
    if has(Strange) { Finding::Foreign } else { Finding::Blank }
}

#[test]
fn each_place_of_the_superblock_in_each_state() {
    for one in STATES {
        for other in STATES {
            let mut disk = Disk::blank();
            set(&mut disk, 0, one);
            set(&mut disk, 1, other);
            let found = match events(&disk.superblock()) {
                Finding::Unsupported(_) => Finding::Unsupported(""),
                found => found,
            };
            assert_eq!(found, expected(one, other), "{one:?} and {other:?}");
        }
    }
}

#[test]
fn what_is_written_next_goes_where_the_newest_is_not() {
    for state in [State::Older, State::Vacant, State::Zeroes, State::Flipped, State::Unreadable] {
        for place in 0..2 {
            let mut disk = Disk::blank();
            set(&mut disk, place, State::Newer);
            set(&mut disk, 1 - place, state);
            let mut writer = Writer::new();
            let looked = FORMAT.examine(&mut disk);
            (writer.places, writer.sequence) = (looked.places, looked.sequence);
            disk.unreadable.clear();
            assert_eq!(writer.superblock(&mut disk, 77), MetaArea::superblock(TOTAL, 1 - place));
            assert_eq!(events(&disk.superblock()), Finding::Whole(77), "{state:?}");
        }
    }
}

/// A drive that loses a write while it is made ready does not keep what it held before.
#[test]
fn a_superblock_from_before_a_device_was_made_ready_is_not_whole() {
    for place in 0..2 {
        let (mut disk, mut writer) = written();
        let kept = MetaArea::superblock(TOTAL, place);
        let before = disk.sector(kept).to_vec();
        writer.prepare(&mut disk);
        assert_eq!(disk.superblock(), Finding::Blank);
        disk.write(kept, &before);
        assert_eq!(events(&disk.superblock()), Finding::Damaged(Some(1 + u64::from(place))));
    }
}

#[test]
fn arrays_of_version_1_are_refused_by_name() {
    let mut disk = Disk::blank();
    for place in 0..2 {
        let at = MetaArea::superblock(TOTAL, place);
        disk.write(at, &first_version(at));
    }
    let Finding::Unsupported(which) = disk.superblock() else { panic!("another finding") };
    assert!(which.contains("format 1") && which.contains("0.1.0"), "{which}");
}

#[test]
fn each_place_of_a_page_in_each_state() {
    let page = |disk: &mut Disk, page: usize| FORMAT.examine(disk).examined.bitmap[page];
    let (mut disk, mut writer) = written();
    assert_eq!(page(&mut disk, 0), Finding::Whole(5));
    assert_eq!(page(&mut disk, 1), Finding::Whole(7));
    assert_eq!(page(&mut disk, 2), Finding::Blank);
    let places = |page| [0, 1].map(|place| MetaArea::page(TOTAL, page, place));
    for (number, (newer, older)) in [(0, (5, None)), (1, (7, Some(6)))] {
        for (place, at) in places(number).into_iter().enumerate() {
            let is_newer = (place == 0) == (number == 0);
            let left = if is_newer { older } else { Some(newer) };
            let mut damaged = disk.clone();
            damaged.unreadable.insert(at.0);
            assert_eq!(page(&mut damaged, number as usize), Finding::Unreadable(left));
            for sector in 1..8 {
                // What is not said there is not missed.
                let mut damaged = disk.clone();
                damaged.unreadable.insert(at.0 + sector);
                assert_eq!(page(&mut damaged, number as usize), Finding::Whole(newer));
            }
            let mut damaged = disk.clone();
            damaged.sector(at)[60] ^= 1;
            assert_eq!(page(&mut damaged, number as usize), Finding::Damaged(left));
        }
    }
    for (at, other) in places(1).into_iter().zip(places(2)) {
        // Another page's record.
        let copy = disk.sector(at).to_vec();
        disk.write(other, &copy);
        assert_eq!(page(&mut disk, 2), Finding::Damaged(None));
    }
    disk.sector(places(2)[0]).fill(0);
    disk.sector(places(2)[1]).fill(0);
    writer.array = [1; 16];
    writer.page(&mut disk, 2, 9);
    assert_eq!(page(&mut disk, 2), Finding::Foreign);
    writer.array = ARRAY;
    writer.page(&mut disk, 2, 9);
    assert_eq!(page(&mut disk, 2), Finding::Damaged(Some(9)));
    writer.page(&mut disk, 2, 10);
    assert_eq!(page(&mut disk, 2), Finding::Whole(10));
}

/// Every sector of a device in turn: what is read differs from the whole only as far as that sector goes.
#[test]
fn each_sector_unreadable_in_turn() {
    let payload = [0x5a; 2 * SECTOR];
    for with_log in [false, true] {
        let (mut disk, mut writer) = written();
        if with_log {
            (disk, writer) = (Disk::blank(), Writer::with_log());
            writer.prepare(&mut disk);
            writer.superblock(&mut disk, 1);
            writer.superblock(&mut disk, 2);
            for slot in 0..8 {
                writer.entry(&mut disk, slot, u64::from(slot) + 1, &payload);
            }
        }
        let whole = FORMAT.examine(&mut disk);
        assert_eq!(whole.examined.log.entries.len(), if with_log { 8 } else { 0 });
        let log = writer.places.data.0..writer.places.data.0 + writer.parameters.log.0;
        for sector in 0..TOTAL.0 {
            disk.unreadable = [sector].into();
            let found = FORMAT.examine(&mut disk).examined;
            let in_superblock = [0, 1].map(|place| MetaArea::superblock(TOTAL, place).0 == sector);
            let expected = match in_superblock {
                [true, _] => Finding::Unreadable(Some(2)),
                [_, true] => Finding::Unreadable(Some(1)),
                _ => Finding::Whole(2),
            };
            assert_eq!(events(&found.superblock), expected, "sector {sector}");
            let pages = found.bitmap.iter().zip(&whole.examined.bitmap);
            for (page, (finding, was)) in pages.enumerate() {
                let there = [0, 1].map(|place| MetaArea::page(TOTAL, page as u32, place).0);
                let is_lost = matches!(finding, Finding::Unreadable(_));
                assert_eq!(is_lost, there.contains(&sector), "sector {sector}");
                assert!(is_lost || finding == was, "sector {sector}");
            }
            let slot = sector.wrapping_sub(log.start) / 32;
            let inside = sector.wrapping_sub(log.start) % 32;
            // Not where no head has room.
            let is_looked_at = (log.start..log.end.saturating_sub(7)).contains(&sector);
            assert_eq!(found.log.unreadable, is_looked_at, "sector {sector}");
            let lost = is_looked_at && matches!(inside, 0 | 8 | 9);
            let entries = &whole.examined.log.entries;
            let kept = entries.iter().filter(|entry| !lost || entry.at.0 / 32 != slot);
            assert_eq!(found.log.entries, kept.copied().collect::<Vec<_>>(), "sector {sector}");
        }
    }
}

/// No bit of what a record says can be another without the record being damaged.
#[test]
fn no_flipped_bit_is_taken() {
    let (mut disk, _) = written();
    let at = MetaArea::superblock(TOTAL, 1);
    for bit in 0..8 * SECTOR {
        disk.sector(at)[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(events(&disk.superblock()), Finding::Damaged(Some(1)), "bit {bit}");
        disk.sector(at)[bit / 8] ^= 1 << (bit % 8);
    }
    assert_eq!(events(&disk.superblock()), Finding::Whole(2));
    let page = MetaArea::page(TOTAL, 1, 1);
    for bit in 0..8 * SECTOR {
        disk.sector(page)[bit / 8] ^= 1 << (bit % 8);
        let found = FORMAT.examine(&mut disk).examined.bitmap[1];
        assert_eq!(found, Finding::Damaged(Some(6)), "bit {bit}");
        disk.sector(page)[bit / 8] ^= 1 << (bit % 8);
    }
    let (mut disk, mut writer) = (Disk::blank(), Writer::with_log());
    writer.prepare(&mut disk);
    writer.superblock(&mut disk, 1);
    writer.entry(&mut disk, 2, 9, &[0x33; 3 * SECTOR]);
    let head = writer.places.data.0 + 64;
    for sector in [0, 8, 9, 10] {
        for bit in (0..8 * SECTOR).step_by(if sector == 0 { 1 } else { 41 }) {
            let at = Sector(head + sector);
            disk.sector(at)[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FORMAT.examine(&mut disk).examined.log.entries, [], "{sector}, bit {bit}");
            disk.sector(at)[bit / 8] ^= 1 << (bit % 8);
        }
    }
    assert_eq!(FORMAT.examine(&mut disk).examined.log.entries.len(), 1);
}

/// A device that was cut off or has grown does not give the older of two superblocks as the newest.
#[test]
fn devices_that_were_cut_off_or_have_grown() {
    let (disk, _) = written();
    let far = (0..=2 * TOTAL.0).step_by(67);
    let near = TOTAL.0 - 30..TOTAL.0 + 30;
    for sectors in far.chain(near).filter(|sectors| sectors / 8 != TOTAL.0 / 8) {
        for filling in [0, 0x37] {
            let mut other = disk.clone();
            other.bytes.resize(sectors as usize * SECTOR, filling);
            let found = other.superblock();
            assert_eq!(found.whole(), None, "{sectors} sectors");
            // Cut off, and grown again.
            other.bytes.resize(disk.bytes.len(), filling);
            let found = other.superblock();
            let is_kept = sectors > MetaArea::superblock(TOTAL, 1).0;
            assert_eq!(found.whole().is_some(), is_kept, "{sectors} sectors: {found:?}");
        }
    }
    let mut short = disk.clone();
    short.bytes.truncate(disk.bytes.len() - SECTOR);
    assert_eq!(events(&short.superblock()), Finding::Whole(2), "the rest of a record's place");
}

/// A drive that worked in blocks of 512 bytes does so in blocks of 4,096, and the other way round.
#[test]
fn blocks_of_4096_bytes() {
    let payload = [0x5a; 2 * SECTOR];
    let total = Sectors(TOTAL.0 / 8 * 8);
    let area = MetaArea { log: Sectors(256), pages: 0, used: true };
    for data in [1_001, 1_008] {
        let sizes = (total, Sectors(data), area);
        let mut writer = Writer::of("raid5(3)", disk::PARTIAL, 1, sizes);
        let mut disk = Disk::blank();
        disk.bytes.truncate(total.bytes() as usize);
        writer.prepare(&mut disk);
        writer.superblock(&mut disk, 1);
        writer.superblock(&mut disk, 2);
        writer.entry(&mut disk, 0, 1, &payload);
        writer.entry(&mut disk, 7, 2, &payload);
        let mut small = FORMAT.examine(&mut disk);
        assert_eq!(small.examined.log.entries.len(), 2);
        disk.block = 8;
        let large = FORMAT.examine(&mut disk);
        small.examined.logical_block = 8;
        assert_eq!(small, large, "data of {data} sectors");
    }
}

/// What was made for one device is refused as what another one has.
#[test]
fn parameters_that_cannot_be_are_damage() {
    let bitmap = |chunk| Consistency::Bitmap { chunk: Sectors(chunk) };
    let area = |log, pages| MetaArea { log: Sectors(log), pages, used: true };
    let found = |layout: &str, consistency, device, data, area: MetaArea, block| {
        let sizes = (TOTAL, Sectors(data), area);
        let mut writer = Writer::of(layout, consistency, device, sizes);
        writer.parameters.block = block;
        let mut disk = Disk::blank();
        writer.prepare(&mut disk);
        writer.superblock(&mut disk, 1);
        events(&disk.superblock())
    };
    let good = ("raid5(3)", bitmap(8), 1, 1_900, area(0, 3), 1);
    let (layout, mode, device, data, room, block) = good;
    assert_eq!(found(layout, mode, device, data, room, block), Finding::Whole(1));
    let long = format!("raid5(3){}", " ".repeat(300));
    let journal = |sectors| Consistency::Journal { sectors: Sectors(sectors) };
    for (what, outcome) in [
        ("no layout", found("raid7(3)", mode, device, data, room, block)),
        ("too long", found(&long, mode, device, data, room, block)),
        ("no redundancy", found("raid0(3)", mode, device, data, room, block)),
        ("one member", found("raid5(1)", mode, device, data, room, block)),
        ("no mode", found(layout, Consistency::None, device, data, room, block)),
        ("chunk of 0", found(layout, bitmap(0), device, data, room, block)),
        ("chunk of 3", found(layout, bitmap(3), device, data, room, block)),
        ("no such member", found(layout, mode, 7, data, room, block)),
        ("a log device without a journal", found(layout, mode, 6, data, room, block)),
        ("no data", found(layout, mode, device, 0, room, block)),
        ("data on records", found(layout, mode, device, 1_937, room, block)),
        ("data without end", found(layout, mode, device, u64::MAX, room, block)),
        ("pages without end", found(layout, mode, device, data, area(0, 1 << 20), block)),
        ("no pages", found(layout, mode, device, data, area(0, 0), block)),
        ("a log with a bitmap", found(layout, mode, device, 1_000, area(8, 3), block)),
        ("a log without end", found(layout, disk::PARTIAL, 1, 9, area(u64::MAX, 0), block)),
        ("no log", found(layout, disk::PARTIAL, 1, 9, area(0, 0), block)),
        ("block of 0", found(layout, mode, device, data, room, 0)),
        ("block of 3", found(layout, mode, device, data, room, 3)),
        ("huge block", found(layout, mode, device, data, room, 1 << 31)),
        ("a journal of another size", found(layout, journal(512), 6, 0, area(513, 0), block)),
        ("a journal on mirrors", found("raid1(2)", journal(512), 4, 0, area(512, 0), block)),
        ("a journal with data", found(layout, journal(512), 6, 8, area(512, 0), block)),
    ] {
        assert_eq!(outcome, Finding::Damaged(None), "{what}");
    }
    assert_eq!(found(layout, journal(512), 6, 0, area(512, 0), block), Finding::Whole(1));
    assert_eq!(found(layout, journal(512), 2, 900, area(0, 0), block), Finding::Whole(1));
}

/// Heads that are sealed and claim payloads that overlap: looking ends, and says that the log is lost.
#[test]
fn a_log_made_to_be_read_for_ever_is_given_up() {
    let total = Sectors(8_192);
    let area = MetaArea { log: Sectors(7_900), pages: 0, used: true };
    let sizes = (total, Sectors(8), area);
    let mut writer = Writer::of("raid5(3)", disk::PARTIAL, 1, sizes);
    let mut disk = Disk::blank();
    disk.bytes.resize(total.bytes() as usize, 0);
    writer.prepare(&mut disk);
    writer.superblock(&mut disk, 1);
    let payload = vec![1; 6_000 * SECTOR];
    // Each lies in the payloads of those before it.
    for head in 0..230 {
        writer.write(&mut disk, disk::partial(0, 1), Sector(8 * head), &payload);
    }
    let found = FORMAT.examine(&mut disk).examined.log;
    assert!(found.unreadable);
}

/// Whatever stands on a device, looking at it ends, and never with a record that was not sealed.
#[test]
fn random_bytes_are_no_metadata() {
    let mut random = Random(1);
    for round in 0..200 {
        let (mut disk, mut writer) = written();
        if round % 2 == 1 {
            (disk, writer) = (Disk::blank(), Writer::with_log());
            writer.prepare(&mut disk);
            writer.superblock(&mut disk, 1);
            writer.superblock(&mut disk, 2);
            writer.entry(&mut disk, 3, 4, &[9; SECTOR]);
        }
        let first = writer.places.data.0;
        let kept = random.below(4);
        for sector in first..TOTAL.0 {
            let at = Sector(sector);
            let is_superblock = (0..2).any(|place| MetaArea::superblock(TOTAL, place) == at);
            // Superblocks stay now and then, so that what they speak of is looked at.
            if is_superblock && kept > 0 {
                continue;
            }
            for byte in disk.sector(at).iter_mut() {
                *byte = random.below(256) as u8;
            }
            if random.below(3) == 0 {
                disk.sector(at)[..8].copy_from_slice(b"raidlab\x02");
            }
            if random.below(8) == 0 {
                disk.unreadable.insert(sector);
            }
        }
        let found = FORMAT.examine(&mut disk).examined;
        assert_eq!(found.superblock.whole().is_some(), kept > 0, "round {round}");
        assert!(found.bitmap.iter().all(|page| page.readable().is_none()), "round {round}");
        assert_eq!(found.log.entries, [], "round {round}");
    }
    // A device of any size without anything of ours.
    for sectors in 0..100 {
        let mut disk = Disk::blank();
        disk.bytes.truncate(sectors * SECTOR_BYTES as usize);
        assert_eq!(disk.superblock(), Finding::Blank);
        disk.bytes.fill(0x99);
        assert!(matches!(disk.superblock(), Finding::Blank | Finding::Foreign));
        assert_eq!(disk.superblock() == Finding::Blank, sectors < 16, "{sectors} sectors");
    }
    assert_ne!(BITMAP, disk::PARTIAL);
}

/// Members in each other's places, and a superblock as a member's that is the log device's: what stands there
/// says whose it is.
#[test]
fn swapped_devices_say_whose_they_are() {
    for device in 0..6 {
        let (mut disk, mut writer) = (Disk::blank(), Writer::new());
        writer.device = device;
        writer.prepare(&mut disk);
        writer.superblock(&mut disk, 1);
        writer.page(&mut disk, 0, 3);
        let found = FORMAT.examine(&mut disk).examined;
        // A replacement with a superblock is the member.
        assert_eq!(found.superblock.whole().map(|one| one.device), Some(device % 3));
        assert_eq!(found.bitmap[0], Finding::Whole(3));
    }
    // What stands on one is not this member's when another superblock says so.
    let (mut disk, mut writer) = written();
    writer.device = 2;
    writer.superblock(&mut disk, 3);
    writer.superblock(&mut disk, 4);
    let found = FORMAT.examine(&mut disk).examined;
    assert_eq!(found.bitmap, [Finding::Foreign, Finding::Foreign, Finding::Blank]);
}
