//! What goes on being written of an md array: what the core is told was found, and the superblock of a spare.

use raidlab_core::consistency::{Found, MetaArea};
use raidlab_core::contract::{Epoch, History, MetaIo, Record, SegmentList, Superblock as Said};
use raidlab_core::{Config, MemberIndex, Sector, Sectors};
use raidlab_metadata::md::{
    Allowed, Aside, Bitmap, BitmapKind, Cannot, DeviceNumbers, Features, Frame, Md, Role,
    Superblock, Why, assemble, inspect, join,
};
use raidlab_metadata::{Looked, MetadataFormat, RecordWriter, Source, Unreadable};

use super::device::{Disk, SECTORS, disk, raid5};

const MD: Md = Md { block: 1 };

fn three() -> [Superblock; 3] {
    [0, 1, 2].map(|place| raid5(3, place))
}

/// What the core is told of devices that are given in the order of their places.
fn found(mut disks: Vec<Disk>) -> Found {
    let all: Vec<_> = disks.iter_mut().map(|disk| inspect(disk)).collect();
    let mut looked: Vec<_> = disks.iter_mut().map(|disk| Some(MD.examine(disk))).collect();
    join(&all, &Allowed::default()).unwrap().found(&mut looked, 1, 0)
}

/// What it is told that the superblock of a member says.
fn said(found: &Found, member: usize) -> Said {
    found.members[member].superblock.whole().expect("a superblock").superblock
}

/// A device with a bitmap written at these events, since which others bits name all that a device missed.
fn with_bitmap(one: &Superblock, events: u64, events_cleared: u64) -> Disk {
    let kind = BitmapKind::Plain;
    let (array, covered, chunk, delay) = (one.array, one.size, 64 << 10, 5);
    let (state, write_behind, reserved) = (0, 0, 8);
    let bitmap = Bitmap {
        kind,
        array,
        events,
        events_cleared,
        covered,
        state,
        chunk,
        delay,
        write_behind,
        reserved,
    };
    let mut bytes = vec![0; 4096];
    bitmap.emit(&mut bytes);
    let features = one.features.with(Features::BITMAP);
    let one = Superblock { features, aside: Aside::Bitmap(16), ..one.clone() };
    disk(&one, &[(one.super_offset + 16, bytes)])
}

#[test]
fn the_core_is_told_who_is_being_rebuilt_and_how_far() {
    let whole = found(three().iter().map(|one| disk(one, &[])).collect());
    for member in 0..3 {
        let said = said(&whole, member);
        assert_eq!((said.rebuilding, said.rebuilt_to), ([0; 2], Sector(0)));
    }
    let [a, b, mut c] = three();
    (c.features, c.recovery) = (Features::RECOVERY, 512);
    let rebuilding = found([a, b, c].iter().map(|one| disk(one, &[])).collect());
    for member in 0..3 {
        let said = said(&rebuilding, member);
        assert_eq!((said.rebuilding, said.rebuilt_to), ([0b100, 0], Sector(512)));
        assert!(!said.by_bitmap);
    }
    let [a, b, mut c] = three();
    (c.features, c.recovery) = (Features::RECOVERY.with(Features::RECOVERY_BITMAP), 512);
    let by_bitmap = found([a, b, c].iter().map(|one| with_bitmap(one, 100, 90)).collect());
    assert!(said(&by_bitmap, 0).by_bitmap);
}

/// Who missed more than the bits of any bitmap name is rebuilt as a whole.
#[test]
fn the_core_is_told_since_when_bitmaps_name_what_was_missed() {
    let since = |bitmaps: [(u64, u64); 3]| {
        let of =
            |(one, (events, cleared)): (&Superblock, (u64, u64))| with_bitmap(one, events, cleared);
        said(&found(three().iter().zip(bitmaps).map(of).collect()), 0).bitmap_since
    };
    assert_eq!(since([(100, 90), (100, 90), (100, 90)]), 90);
    assert_eq!(since([(100, 90), (100, 95), (100, 80)]), 95, "what all of them name");
    assert_eq!(since([(100, 90), (99, 90), (100, 90)]), 90, "a power cut between two of them");
    assert_eq!(since([(100, 90), (98, 90), (100, 90)]), 100, "one of them is behind");
}

#[test]
fn a_spare_is_one_to_whoever_looks_at_it() {
    let (members, id) = (three(), [33; 16]);
    let mut disks = members.clone().map(|one| disk(&one, &[]));
    let looked = disks.each_mut().map(|disk| MD.examine(disk));
    let layout = raidlab_metadata::md::layout(&members[0], &[], None).unwrap();
    let area = MetaArea { log: Sectors(0), pages: 0, used: true };
    let mut writer =
        RecordWriter::new(members[0].array, &Config::uniform(layout, Sectors(1024)), &area);
    for (member, looked) in (0..).map(MemberIndex).zip(&looked) {
        writer.know(member, looked);
    }
    let mut fresh = Disk(vec![0; disks[0].0.len()]);
    let model = &looked[0].places;
    let mut ready = MD.ready(&mut fresh, model, writer.device_numbers(), id).unwrap();
    let (at, bytes) = MD.spare(&mut ready.places, writer.device_numbers()).unwrap();
    fresh.0[at.bytes() as usize..][..bytes.len()].copy_from_slice(&bytes);
    assert_eq!(Frame::new(&bytes[..]).unwrap().check(at), Ok(()));
    let seen = inspect(&mut fresh);
    let spare = seen.superblock().expect("a superblock");
    assert_eq!((at, spare.array, spare.device), (Sector(8), members[0].array, id));
    assert_eq!((spare.number, spare.role()), (3, Role::Spare));
    assert_eq!(spare.roles[..4], [Role::Member(0), Role::Member(1), Role::Member(2), Role::Spare]);
    assert_eq!(writer.device_numbers().free(1920), Some(4), "its number is taken");
    // The array takes it for one.
    let mut all: Vec<_> = disks.iter_mut().map(|disk| inspect(disk)).collect();
    all.push(seen);
    assert_eq!(join(&all, &Allowed::default()).unwrap().spares, [3]);
}

/// A device of which one sector cannot be read.
struct Worn(Disk, Sector);

impl Source for Worn {
    fn sectors(&self) -> Sectors {
        self.0.sectors()
    }

    fn logical_block(&self) -> u32 {
        1
    }

    fn read(&mut self, at: Sector, into: &mut [u8]) -> Result<(), Unreadable> {
        let is_worn = (at.0..at.0 + into.len() as u64 / 512).contains(&self.1.0);
        if is_worn { Err(Unreadable) } else { self.0.read(at, into) }
    }
}

/// The head of a bitmap says that there is one; without its bits no page of it could be written.
#[test]
fn a_member_whose_bits_cannot_be_read_is_not_written_to() {
    for (worn, is_written) in [(40, true), (25, false), (31, false)] {
        let members = three();
        let mut devices: Vec<Worn> =
            members.iter().map(|one| Worn(with_bitmap(one, 100, 90), Sector(40))).collect();
        devices[2].1 = Sector(worn);
        let all: Vec<_> = devices.iter_mut().map(|device| inspect(device)).collect();
        let joined = join(&all, &Allowed::default()).unwrap();
        let looked = MD.examine(&mut devices[2]);
        let checked = joined.check(2, &looked.places);
        assert_eq!(checked.is_ok(), is_written, "{worn}: {checked:?}");
        assert!(is_written || checked == Err(Cannot::Bitmap(2)), "{worn}: {checked:?}");
    }
}

/// A bitmap that lies on data or on the superblock is none, nor is such a list of bad blocks.
#[test]
fn what_lies_on_data_is_not_written() {
    let [one, ..] = three();
    let is_written = |data_offset: u64, size: u64| {
        let one = Superblock { data_offset, data_size: size, size, ..one.clone() };
        let mut disk = with_bitmap(&one, 100, 90);
        MD.examine(&mut disk).examined.bitmap.first().is_some_and(|page| page.whole().is_some())
    };
    // It takes sector 24 here.
    let all = [(2048, 1024), (25, 1024), (24, 1024), (20, 1024)];
    let written = all.map(|(data, size)| is_written(data, size));
    assert_eq!(written, [true, true, false, false], "data from the end, from its place");
}

/// Heads of bitmaps have no checksum: where they differ nobody knows which bit stands for what.
#[test]
fn bitmaps_of_members_are_alike() {
    let [a, b, c] = three();
    for (at, value) in [(52_usize, 128_u32 << 10), (40, 2048)] {
        let mut disks = [&a, &b, &c].map(|one| with_bitmap(one, 100, 90));
        let joined = |disks: &mut [Disk; 3]| {
            let all: Vec<_> = disks.iter_mut().map(|disk| inspect(disk)).collect();
            join(&all, &Allowed::default()).map(|joined| joined.consistency)
        };
        assert!(joined(&mut disks).is_ok());
        let head = (b.super_offset as usize + 16) * 512;
        disks[1].0[head + at..][..4].copy_from_slice(&value.to_le_bytes());
        let why = joined(&mut disks).unwrap_err().to_string();
        assert!(why.contains("are not alike"), "{at}: {why}");
        // Which devices say what, and which of them differs from the others.
        let named = "device 1 of those given and device 3 of those given say a bit for";
        let which = "start it without device 2 of those given, and";
        assert!(why.contains(named) && why.contains(which), "{why}");
        assert!(why.contains("device 2 of those given says a bit for"), "{why}");
    }
}

/// What raidlab writes it must take itself: events go on from those of the array.
#[test]
fn an_array_that_counts_too_many_events_is_read_only() {
    for (events, is_written) in [(1 << 62, true), (1 << 63, false)] {
        let all = three().map(|one| crate::device::seen(&Superblock { events, ..one }));
        let joined = join(&all, &Allowed::default());
        assert_eq!(joined.is_ok(), is_written, "{joined:?}");
        assert!(assemble(&all, &Allowed::default()).is_ok());
    }
}

/// A fresh device gets the number of one that was away; that one gets another when it comes back.
#[test]
fn no_two_devices_have_one_number() {
    let members = three();
    let looked = members.clone().map(|one| MD.examine(&mut disk(&one, &[])));
    let layout = raidlab_metadata::md::layout(&members[0], &[], None).unwrap();
    let area = MetaArea { log: Sectors(0), pages: 0, used: true };
    let mut writer =
        RecordWriter::new(members[0].array, &Config::uniform(layout, Sectors(1024)), &area);
    writer.know(MemberIndex(0), &looked[0]);
    let mut fresh = Disk(vec![0; SECTORS as usize * 512]);
    let ready = MD.ready(&mut fresh, &looked[0].places, writer.device_numbers(), [34; 16]).unwrap();
    writer.set_places(MemberIndex(1), ready.places);
    // Member 2 had come with number 3 before the array was started without it.
    let mut away = members[2].clone();
    (away.number, away.roles[2], away.roles[3]) = (3, Role::Spare, Role::Member(2));
    let mut back = MD.examine(&mut disk(&away, &[]));
    let number = |looked: &Looked| looked.places.md().map(|kept| kept.number());
    assert_eq!(number(&back), Some(3));
    MD.returning(&mut back, &Said::default(), writer.device_numbers());
    assert_eq!(number(&back), Some(4));
    // One that nobody has is kept, be it in its own place or known to nobody.
    let mut back = MD.examine(&mut disk(&members[2], &[]));
    MD.returning(&mut back, &Said::default(), writer.device_numbers());
    writer.know(MemberIndex(2), &back);
    MD.returning(&mut back, &Said::default(), writer.device_numbers());
    assert_eq!(number(&back), Some(2));
}

/// Who is furthest behind says how far all are.
#[test]
fn the_core_is_told_the_least_of_several_rebuilds() {
    let [a, mut b, mut c] = three();
    (b.features, b.recovery) = (Features::RECOVERY, 768);
    (c.features, c.recovery) = (Features::RECOVERY, 256);
    let said = said(&found([a, b, c].iter().map(|one| disk(one, &[])).collect()), 0);
    assert_eq!((said.rebuilding, said.rebuilt_to), ([0b110, 0], Sector(256)));
}

/// A head that is behind its superblock by anything says nothing of the bits.
#[test]
fn bits_of_a_head_that_is_behind_are_not_known() {
    for (events, is_known) in [(99, false), (100, true), (101, true)] {
        let bitmap = MD.examine(&mut with_bitmap(&three()[0], events, 90)).examined.bitmap;
        assert!(!bitmap.is_empty());
        assert!(bitmap.iter().all(|page| page.whole().is_some() == is_known), "{events}");
    }
}

/// Events of a head can be as many as there are numbers.
#[test]
fn events_of_a_head_are_counted_on_without_overflow() {
    let disks = three().iter().map(|one| with_bitmap(one, u64::MAX, 90)).collect();
    assert_eq!(said(&found(disks), 0).bitmap_since, 90);
}

/// A device with such a bitmap which says that bits are missing.
fn with_stale_bitmap(one: &Superblock) -> Disk {
    let mut disk = with_bitmap(one, 100, 90);
    let state = (one.super_offset as usize + 16) * 512 + 48;
    disk.0[state] = 2;
    disk
}

/// A bitmap that says that bits are missing says nothing of the bits, nor since when they name what was missed.
#[test]
fn bits_of_a_stale_bitmap_are_not_known() {
    let bitmap = MD.examine(&mut with_stale_bitmap(&three()[0])).examined.bitmap;
    assert!(!bitmap.is_empty() && bitmap.iter().all(|page| page.whole().is_none()));
    let [a, b, c] = three();
    let disks = || vec![with_bitmap(&a, 100, 90), with_stale_bitmap(&b), with_bitmap(&c, 100, 90)];
    assert_eq!(said(&found(disks()), 0).bitmap_since, 100);
    let all: Vec<_> = disks().iter_mut().map(|disk| inspect(disk)).collect();
    assert_eq!(assemble(&all, &Allowed::default()).unwrap().dirty_bits, Some((0, 8)));
    let own = MD.examine(&mut with_stale_bitmap(&b)).examined.superblock;
    assert_eq!(own.whole().unwrap().superblock.bitmap_since, 100);
}

/// Of an odd number of roles the last two bytes are added as a number of their own.
#[test]
fn a_checksum_covers_the_last_of_an_odd_number_of_roles() {
    let Disk(mut bytes) = disk(&three()[0], &[]);
    let (frame, count) = (8 * 512, 8 * 512 + 220);
    let last = frame + 256 + 2 * 127;
    bytes[last..last + 2].fill(0);
    assert_eq!(bytes[last - 2..last], [0xff, 0xff], "a spare's");
    let sum = |bytes: &[u8]| Frame::new(&bytes[frame..]).unwrap().checksum();
    let even = sum(&bytes);
    assert_eq!(bytes[count..count + 4], 128_u32.to_le_bytes());
    bytes[count] = 127;
    assert_eq!(sum(&bytes), even - 1);
}

/// It goes on saying so until all of its bits are written.
#[test]
fn a_stale_bitmap_is_stale_until_all_bits_are_written() {
    let one = three()[0].clone();
    let layout = raidlab_metadata::md::layout(&one, &[], None).unwrap();
    let area = MetaArea { log: Sectors(0), pages: 2, used: true };
    let mut writer = RecordWriter::new(one.array, &Config::uniform(layout, Sectors(1024)), &area);
    let mut disk = with_stale_bitmap(&one);
    // A bit for 4 KiB: two pages.
    let head = (one.super_offset as usize + 16) * 512;
    disk.0[head + 52..head + 56].copy_from_slice(&4096_u32.to_le_bytes());
    writer.know(MemberIndex(0), &MD.examine(&mut disk));
    let write = |writer: &mut RecordWriter, record| {
        let (at, payload, member) = (Sector(0), SegmentList::EMPTY, MemberIndex(0));
        let meta = MetaIo { member, record, at, payload, flush: false, fua: true };
        let mut head = vec![0; MD.head()];
        let none = (0, 0, &mut std::iter::empty() as &mut dyn Iterator<Item = &[u8]>);
        writer.encode(&MD, &mut head, &meta, none).unwrap();
        Bitmap::parse(&head).map(|head| head.state)
    };
    let superblock = |events| Record::Superblock(Said { events, ..Said::default() });
    assert_eq!(write(&mut writer, superblock(101)), Some(2));
    write(&mut writer, Record::BitmapPage { page: 1, bits: u64::MAX });
    assert_eq!(write(&mut writer, superblock(102)), Some(2));
    // One that found no room is written again.
    write(&mut writer, Record::BitmapPage { page: 0, bits: u64::MAX });
    writer.record_failed(MemberIndex(0));
    assert_eq!(write(&mut writer, superblock(103)), Some(2));
    writer.record_failed(MemberIndex(0));
    write(&mut writer, Record::BitmapPage { page: 0, bits: u64::MAX });
    assert_eq!(write(&mut writer, superblock(104)), Some(0));
}

/// Pages that go together are one write, of whole blocks; a write that failed leaves none of them written.
#[test]
fn pages_that_go_together_are_one_write() {
    let one = three()[0].clone();
    let layout = raidlab_metadata::md::layout(&one, &[], None).unwrap();
    let area = MetaArea { log: Sectors(0), pages: 512, used: true };
    let mut writer = RecordWriter::new(one.array, &Config::uniform(layout, Sectors(1024)), &area);
    let mut disk = with_stale_bitmap(&one);
    let head = (one.super_offset as usize + 16) * 512;
    // A bit for a sector: sixteen pages.
    disk.0[head + 52..head + 56].copy_from_slice(&512_u32.to_le_bytes());
    writer.know(MemberIndex(0), &MD.examine(&mut disk));
    let member = MemberIndex(0);
    let write = |writer: &mut RecordWriter, record| {
        let (at, payload) = (Sector(0), SegmentList::EMPTY);
        let meta = MetaIo { member, record, at, payload, flush: false, fua: true };
        let mut head = vec![0; MD.head()];
        let none = (0, 0, &mut std::iter::empty() as &mut dyn Iterator<Item = &[u8]>);
        let put = writer.encode(&MD, &mut head, &meta, none).unwrap();
        head.truncate(put.bytes);
        (put.at.0, head)
    };
    let is_stale = |writer: &mut RecordWriter| {
        let said = Said { events: 101, ..Said::default() };
        Bitmap::parse(&write(writer, Record::Superblock(said)).1).map(|head| head.state) == Some(2)
    };
    let start = one.super_offset + 16;
    let all = |writer: &mut RecordWriter| {
        writer.put_beside(member, (1..16).map(|page| (page, u64::from(page) << 8)));
        write(writer, Record::BitmapPage { page: 0, bits: 7 })
    };
    let (at, bytes) = all(&mut writer);
    assert_eq!((at, bytes.len()), (start, 512), "behind the head, up to where they end");
    let word = |page: usize| u64::from_le_bytes(bytes[256 + 8 * page..][..8].try_into().unwrap());
    let words: Vec<u64> = (0..16).map(word).collect();
    assert_eq!((words[0], words[1], words[15]), (7, 1 << 8, 15 << 8));
    writer.record_failed(member);
    assert!(is_stale(&mut writer), "none of them is written");
    all(&mut writer);
    assert!(!is_stale(&mut writer), "all are");
}

/// Its superblock is whole, but there is no room any more for all that it says is there: no running array may take it
/// back.
#[test]
fn a_device_that_was_cut_off_shows_what_is_left() {
    let one = &three()[2];
    let shown = |sectors: u64| {
        let Disk(mut bytes) = disk(one, &[]);
        bytes.truncate((sectors * 512) as usize);
        let examined = MD.examine(&mut Disk(bytes)).examined;
        let data = examined.superblock.whole().expect("a member").parameters.data;
        (examined.sectors, data)
    };
    let end = one.data_offset + one.size;
    let ((whole, data), (less, same)) = (shown(end), shown(end - 1));
    assert!(whole >= data && data == same, "{whole} {data}");
    assert_eq!(less, data - Sectors(1));
}

#[test]
fn a_device_that_went_on_alone_has_another_history() {
    let running = Said { events: 110, history: said_history(), ..Said::default() };
    for (gone, is_ours) in [(None, true), (Some(1), false)] {
        let mut one = three()[2].clone();
        if let Some(gone) = gone {
            one.roles[gone] = Role::Faulty;
        }
        let mut back = MD.examine(&mut disk(&one, &[]));
        MD.returning(&mut back, &running, &DeviceNumbers::new(3));
        let history = back.examined.superblock.whole().expect("a member").superblock.history;
        assert_eq!(history == running.history, is_ours, "{gone:?}");
    }
}

/// An array's history, as far as its events 100.
fn said_history() -> History {
    let mut history = History::default();
    history[0] = Epoch { id: 77, from: 90 };
    history
}

/// A writer that knows the members of an array, the last of which is being rebuilt.
fn writer_of(members: &[Superblock; 3]) -> RecordWriter {
    let layout = raidlab_metadata::md::layout(&members[0], &[], None).unwrap();
    let area = MetaArea { log: Sectors(0), pages: 0, used: true };
    let mut writer =
        RecordWriter::new(members[0].array, &Config::uniform(layout, Sectors(1024)), &area);
    for (member, one) in (0..).map(MemberIndex).zip(members) {
        writer.know(member, &MD.examine(&mut disk(one, &[])));
    }
    writer
}

#[test]
fn a_spare_is_not_being_rebuilt_though_its_model_is() {
    let [a, b, mut c] = three();
    (c.features, c.recovery) = (Features::RECOVERY, 512);
    let mut writer = writer_of(&[a, b, c]);
    let model = writer.places(MemberIndex(2)).clone();
    let mut fresh = Disk(vec![0; SECTORS as usize * 512]);
    let mut ready = MD.ready(&mut fresh, &model, writer.device_numbers(), [35; 16]).unwrap();
    let (at, bytes) = MD.spare(&mut ready.places, writer.device_numbers()).unwrap();
    fresh.0[at.bytes() as usize..][..bytes.len()].copy_from_slice(&bytes);
    let seen = inspect(&mut fresh);
    let spare = seen.superblock().expect("a superblock");
    assert_eq!((spare.features, spare.recovery), (Features(0), 0));
}

#[test]
fn a_replacement_says_that_it_is_one_until_it_has_taken_over() {
    let mut writer = writer_of(&three());
    let model = writer.places(MemberIndex(0)).clone();
    let mut fresh = Disk(vec![0; SECTORS as usize * 512]);
    let ready = MD.ready(&mut fresh, &model, writer.device_numbers(), [36; 16]).unwrap();
    let replacement = MemberIndex(3 + 1);
    writer.set_places(replacement, ready.places);
    let mut write = |writer: &mut RecordWriter, member| {
        let record = Record::Superblock(Said { events: 101, clean: true, ..Said::default() });
        let (at, payload) = (Sector(0), SegmentList::EMPTY);
        let meta = MetaIo { member, record, at, payload, flush: false, fua: true };
        let mut head = vec![0; MD.head()];
        let none = (0, 0, &mut std::iter::empty() as &mut dyn Iterator<Item = &[u8]>);
        let put = writer.encode(&MD, &mut head, &meta, none).unwrap();
        fresh.0[put.at.bytes() as usize..][..put.bytes].copy_from_slice(&head[..put.bytes]);
        let one = inspect(&mut fresh).superblock().unwrap().clone();
        (one.role(), one.features.has(Features::REPLACEMENT))
    };
    assert_eq!(write(&mut writer, replacement), (Role::Member(1), true));
    writer.take_over(MemberIndex(1), replacement);
    assert_eq!(write(&mut writer, MemberIndex(1)), (Role::Member(1), false));
}

/// A power cut in the middle leaves no superblock of before beside what is new.
#[test]
fn what_stood_on_a_fresh_device_is_gone_first() {
    let mut writer = writer_of(&three().map(|one| Superblock { events: 99, ..one }));
    let model = MD.examine(&mut with_bitmap(&three()[0], 100, 90)).places;
    let old = Superblock { array: [8; 16], ..three()[1].clone() };
    let mut used = disk(&old, &[]);
    let ready = MD.ready(&mut used, &model, writer.device_numbers(), [37; 16]).unwrap();
    let places: Vec<u64> = ready.pieces.iter().map(|(at, _)| at.0).collect();
    assert_eq!(places[..2], [8, 24], "superblock, then bitmap");
    assert!(ready.pieces[0].1.iter().all(|byte| *byte == 0));
}

/// What stands where a fresh device has its list of bad blocks is no list of this array.
#[test]
fn a_fresh_device_has_an_empty_list_of_bad_blocks() {
    let mut writer = writer_of(&three());
    let model = MD.examine(&mut disk(&three()[0], &[])).places;
    let mut used = Disk(vec![0x55; (SECTORS * 512) as usize]);
    let ready = MD.ready(&mut used, &model, writer.device_numbers(), [37; 16]).unwrap();
    for (at, bytes) in &ready.pieces {
        used.0[at.bytes() as usize..][..bytes.len()].copy_from_slice(bytes);
    }
    assert!(used.0[24 * 512..32 * 512].iter().all(|byte| *byte == 0xff));
}

/// The power failed when one member had been told of a state and the others had not; one of those was started alone
/// then, which made the same events of it.
#[test]
fn of_equal_events_who_went_on_without_the_others_is_believed() {
    let [mut a, mut b, c] = three();
    (a.events, b.events) = (101, 101);
    b.roles[0] = Role::Faulty;
    let all: Vec<_> = [a, b, c].iter().map(|one| inspect(&mut disk(one, &[]))).collect();
    let joined = join(&all, &Allowed::default()).unwrap();
    assert_eq!(joined.order, [None, Some(1), Some(2)]);
    assert_eq!(joined.out[0].why, Why::Failed);
    let read = assemble(&all, &Allowed::default()).map(|one| one.missing());
    assert!(matches!(read, Ok(missing) if missing == [0]), "reading decides as writing does");
    // The one that was left calls a device gone, too: one that another has taken the place of since.
    let [mut a, mut b, mut c] = three();
    (a.events, b.events, c.events) = (101, 101, 101);
    (b.features, b.recovery) = (Features::RECOVERY, 512);
    a.roles[1] = Role::Faulty;
    (b.roles[0], c.roles[0]) = (Role::Faulty, Role::Faulty);
    let all: Vec<_> = [a, b, c].iter().map(|one| inspect(&mut disk(one, &[]))).collect();
    assert_eq!(join(&all, &Allowed::default()).unwrap().order, [None, Some(1), Some(2)]);
}

/// The one that recorded a failure counts, though it is being rebuilt: who failed is not believed.
#[test]
fn a_member_that_is_being_rebuilt_may_know_best() {
    let [a, b, mut c] = three();
    (c.features, c.recovery, c.events) = (Features::RECOVERY, 512, 101);
    c.roles[1] = Role::Faulty;
    let all: Vec<_> = [a, b, c].iter().map(|one| inspect(&mut disk(one, &[]))).collect();
    let joined = join(&all, &Allowed::default()).unwrap();
    assert_eq!(joined.order, [Some(0), None, Some(2)]);
}
