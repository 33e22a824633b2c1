//! Version 0.90: what mdadm and the kernel wrote is read, and written as it was; what cannot be is named; which devices
//! make an array.

use raidlab_core::consistency::MetaArea;
use raidlab_core::contract::{MetaIo, Record, SegmentList, Superblock as Said};
use raidlab_core::{Config, MemberIndex, Sector, Sectors};
use raidlab_metadata::md::{
    ALL, Allowed, Aside, Assembly, BitmapSeen, ByteOrder, Cannot, Creation, Damage, Features,
    Inspected, Md, Obstacle, Role, Superblock, V0Device, Version, WantedBitmap, Why, assemble,
    inspect, join, layout,
};
use raidlab_metadata::{MetadataFormat, RecordWriter};

use super::device::{Disk, Numbers, creation};
use super::images::{self, AT, DEVICE, NAMES};

const MD: Md = Md { block: 1 };

/// What is seen of a device with these bytes.
fn seen(bytes: Vec<u8>) -> Inspected {
    inspect(&mut Disk(bytes))
}

fn read(name: &str) -> Superblock {
    let seen = seen(images::device(name));
    seen.superblock().unwrap_or_else(|| panic!("{name}: {seen:?}")).clone()
}

/// A device with this superblock.
fn device(one: &Superblock) -> Vec<u8> {
    let mut bytes = vec![0; DEVICE];
    one.emit(&mut bytes[AT..]).unwrap();
    bytes
}

/// The same of a superblock of the kernel's as it would be on another member, changed.
fn member(name: &str, place: u32, change: &dyn Fn(&mut Superblock)) -> Superblock {
    let mut one = read(name);
    let v0 = one.v0.as_mut().unwrap();
    (v0.own, one.number) = (v0.table[place as usize], place);
    change(&mut one);
    one
}

/// Changes the line of a device in the table, and what follows from it.
fn say(one: &mut Superblock, number: usize, state: u32) {
    one.v0.as_mut().unwrap().table[number].state = state;
    let again = seen(device(one));
    *one = again.superblock().expect("whole").clone();
}

#[test]
fn what_the_kernel_wrote_is_read() {
    let five = read("five");
    let v0 = five.v0.as_ref().unwrap();
    assert_eq!((five.version(), five.level, five.layout, five.chunk), (Version::V0_90, 5, 2, 128));
    assert_eq!((five.members, five.size, five.data_offset, five.data_size), (3, 16_256, 0, 16_256));
    assert_eq!(
        (five.events, five.is_clean(), five.number, five.features),
        (21, true, 0, Features(0))
    );
    let id = [
        0xac, 0x6a, 0x88, 0xec, 0x5e, 0xa1, 0x11, 0xc2, 0xc7, 0x78, 0x0c, 0x0e, 0xbc, 0x15, 0x42,
        0x2d,
    ];
    assert_eq!(five.array, id);
    assert_eq!(five.bitmap_id()[..8], [0xec, 0x88, 0x6a, 0xac, 0xc2, 0x11, 0xa1, 0x5e]);
    let spare = [Role::Member(0), Role::Member(1), Role::Member(2), Role::Spare];
    assert_eq!(five.roles[..4], spare);
    assert_eq!((v0.order, v0.md_minor, five.name().as_str()), (ByteOrder::Little, 5, "md5"));
    assert_eq!((v0.devices, v0.counts, v0.table.len()), (4, [3, 4, 0, 1], 27));
    let own = V0Device { number: 0, major: 98, minor: 0, place: 0, state: 6 };
    assert_eq!((v0.own, v0.table[0]), (own, own));
    assert_eq!(layout(&five, &[], None).unwrap().to_string(), "raid5(3) chunk=64K");
    assert_eq!((read("spare").number, read("spare").role()), (3, Role::Spare));
    assert_eq!((read("one").aside, read("one").features), (Aside::Bitmap(8), Features::BITMAP));
    let ten = read("ten");
    assert_eq!((ten.layout, ten.roles[3]), (0x201, Role::Faulty));
    let linear = read("linear");
    assert_eq!((linear.level, linear.size, linear.data_size, linear.chunk), (-1, 0, 16_256, 128));
    let slow = read("slow");
    assert_eq!(
        (slow.flags, &slow.roles[..3]),
        (3, &[Role::Faulty, Role::Member(1), Role::Member(2)][..])
    );
    let dirty = read("dirty");
    assert_eq!((dirty.is_clean(), dirty.resync), (false, 0));
    let reshaped = read("reshaped");
    assert_eq!((reshaped.reshape.position, reshaped.reshape.delta), (1920, 1));
    assert_eq!(layout(&reshaped, &[], None), Err(Obstacle::Reshape));
    let big = read("big");
    assert_eq!(big.v0.as_ref().unwrap().order, ByteOrder::Big);
    assert_eq!(big.bitmap_id(), big.array);
}

/// Also the order of words that are one number.
#[test]
fn it_is_written_as_it_was_read_in_either_order() {
    for name in NAMES {
        let bytes = images::superblock(name);
        let one = read(name);
        let mut again = bytes.clone();
        again[200..212].fill(0xa5);
        one.emit(&mut again).unwrap();
        assert!(
            again[200..212].iter().all(|byte| *byte == 0xa5),
            "{name}: bytes without a name stay"
        );
        again[200..212].copy_from_slice(&bytes[200..212]);
        one.emit(&mut again).unwrap();
        assert_eq!(again, bytes, "{name}");
    }
    let mut one = read("reshaped");
    (one.events, one.reshape.position) = (0x1_0000_0002, 0x3_0000_0004);
    one.v0.as_mut().unwrap().checkpoint = 0x5_0000_0006;
    for (order, words) in
        [(ByteOrder::Little, [2, 1, 6, 5, 4, 3]), (ByteOrder::Big, [1, 2, 5, 6, 3, 4])]
    {
        one.v0.as_mut().unwrap().order = order;
        let bytes = device(&one);
        let word = |word: usize| {
            let field = bytes[AT + 4 * word..][..4].try_into().unwrap();
            if order == ByteOrder::Little {
                u32::from_le_bytes(field)
            } else {
                u32::from_be_bytes(field)
            }
        };
        assert_eq!([39, 40, 41, 42, 44, 45].map(word), words, "{order:?}");
        assert_eq!(seen(bytes).superblock(), Some(&one), "{order:?}");
    }
}

/// How far redundancy is consistent counts only at the events that it was written with.
#[test]
fn a_checkpoint_is_of_its_events() {
    let with = |checkpoint, resync| {
        let mut one = read("dirty");
        let events = one.events;
        let v0 = one.v0.as_mut().unwrap();
        (v0.checkpoint, v0.resync) = (if checkpoint { events } else { events - 1 }, resync);
        seen(device(&one)).superblock().unwrap().resync
    };
    assert_eq!((with(true, 4096), with(false, 4096), with(true, 0)), (4096, 0, 0));
    assert_eq!(read("five").resync, ALL);
}

#[test]
fn what_the_kernel_refuses_is_named() {
    let damage = |change: &dyn Fn(&mut Vec<u8>), sealed: bool| {
        let mut bytes = images::device("five");
        change(&mut bytes);
        if sealed && let Some(found) = seen(bytes.clone()).seen.first() {
            bytes[AT + 152..AT + 156].copy_from_slice(&found.checksums.1.to_le_bytes());
        }
        let found = seen(bytes);
        assert_eq!(found.superblock(), None, "{found:?}");
        found
            .seen
            .first()
            .and_then(|seen| seen.damage)
            .or(found.broken.first().map(|(_, damage)| *damage))
    };
    let word = |word: usize, value: u32| {
        move |bytes: &mut Vec<u8>| bytes[AT + 4 * word..][..4].copy_from_slice(&value.to_le_bytes())
    };
    assert_eq!(damage(&word(0, 0), true), None);
    assert_eq!(damage(&word(2, 89), true), Some(Damage::Minor(89)));
    assert_eq!(damage(&word(2, 92), true), Some(Damage::Minor(92)));
    assert!(matches!(
        damage(&word(40, 1), false),
        Some(Damage::Checksum { stored: 0x0dd6_d0fa, .. })
    ));
    for members in [0, 28, u32::MAX] {
        assert_eq!(damage(&word(10, members), true), Some(Damage::Members(members)));
    }
    let cut_off = Damage::CutOff { size: 16_384, there: 16_256 };
    assert_eq!(damage(&word(8, 8192), true), Some(cut_off));
    // A device that was cut off, or lengthened, has none in its place.
    assert_eq!(damage(&|bytes| bytes.truncate(AT + 4096), true), None);
    assert_eq!(damage(&|bytes| bytes.resize(DEVICE + (64 << 10), 0), true), None);
    // What some machines wrote is the same folded to 16 bits.
    let mut folded = images::device("five");
    let sum = (0x0dd6 + 0xd0fa) as u32;
    folded[AT + 152..AT + 156].copy_from_slice(&sum.to_le_bytes());
    assert!(seen(folded).superblock().is_some());
}

/// A superblock that stands at the end of the last partition is not that of the whole disk.
#[test]
fn a_superblock_of_a_partition_is_not_that_of_the_disk() {
    const START: u32 = 2048;
    let sectors = (DEVICE / 512) as u32;
    let with_table = |entries: &[(u8, u32, u32)]| {
        let mut bytes = images::device("five");
        bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
        for (entry, (kind, start, len)) in bytes[446..510].chunks_mut(16).zip(entries) {
            entry[4] = *kind;
            entry[8..12].copy_from_slice(&start.to_le_bytes());
            entry[12..16].copy_from_slice(&len.to_le_bytes());
        }
        bytes
    };
    let damage = |bytes: Vec<u8>| seen(bytes).seen[0].damage;
    let covered = Some(Damage::OfPartition);
    assert_eq!(damage(with_table(&[(0xfd, START, sectors - START)])), covered);
    assert_eq!(damage(with_table(&[(0xfd, 8, 8), (5, START, sectors - START)])), covered);
    // The array's own table, seen on a member: it ends before the superblock, or is larger than the member.
    assert_eq!(damage(with_table(&[(0x83, START, 16_256 - START)])), None);
    assert_eq!(damage(with_table(&[(0x83, START, 16_000), (0x83, 20_000, 12_000)])), None);
    // Code of a filesystem ends so, too.
    let mut code = with_table(&[(0xfd, START, sectors - START)]);
    code[446] = 0x12;
    assert_eq!(damage(code), None);
    let guid = |first: u64, last: u64, entries: u64| {
        let mut bytes = with_table(&[(0xee, 1, u32::MAX)]);
        bytes[512..520].copy_from_slice(b"EFI PART");
        bytes[584..592].copy_from_slice(&entries.to_le_bytes());
        bytes[592..596].copy_from_slice(&128_u32.to_le_bytes());
        bytes[596..600].copy_from_slice(&128_u32.to_le_bytes());
        bytes[1024] = 1;
        bytes[1056..1064].copy_from_slice(&first.to_le_bytes());
        bytes[1064..1072].copy_from_slice(&last.to_le_bytes());
        bytes
    };
    let last = u64::from(sectors) - 34;
    assert_eq!(damage(guid(2048, last, 2)), covered);
    assert_eq!(damage(guid(2048, 16_255, 2)), None);
    assert_eq!(damage(guid(2048, u64::MAX, 2)), None);
    assert_eq!(damage(guid(2048, last, u64::MAX)), None, "a table that is not there");
    // Where the first sectors cannot be read there is no table.
    struct Blind(Disk);
    impl raidlab_metadata::Source for Blind {
        fn sectors(&self) -> Sectors {
            self.0.sectors()
        }
        fn logical_block(&self) -> u32 {
            1
        }
        fn read(
            &mut self,
            at: Sector,
            into: &mut [u8],
        ) -> Result<(), raidlab_metadata::Unreadable> {
            if at.0 < 16 { Err(raidlab_metadata::Unreadable) } else { self.0.read(at, into) }
        }
    }
    let disk = Disk(with_table(&[(0xfd, START, sectors - START)]));
    assert!(inspect(&mut Blind(disk)).superblock().is_some());
}

fn decide(all: &[Superblock]) -> Result<Assembly, Cannot> {
    let all: Vec<Inspected> = all.iter().map(|one| seen(device(one))).collect();
    assemble(&all, &Allowed::default())
}

fn same(_: &mut Superblock) {}

/// Why each device is out, by the order it was given in.
fn out(assembly: &Assembly) -> Vec<(usize, Why)> {
    let mut out: Vec<_> = assembly.out.iter().map(|out| (out.given, out.why.clone())).collect();
    out.sort_by_key(|(given, _)| *given);
    out
}

#[test]
fn members_are_taken_by_their_number() {
    let [a, b, c] = [0, 1, 2].map(|place| member("five", place, &same));
    let spare = read("spare");
    let whole = decide(&[c.clone(), spare, a.clone(), b.clone()]).unwrap();
    let given: Vec<_> = whole.places.iter().map(|place| place.given).collect();
    assert_eq!((given, out(&whole)), (vec![Some(2), Some(3), Some(0)], vec![(1, Why::Spare)]));
    assert_eq!((whole.name.as_str(), whole.events, whole.clean), ("md5", 21, true));
    assert_eq!(
        (whole.places[0].data_offset, whole.places[0].sectors),
        (Sectors(0), Sectors(16_256))
    );
    assert_eq!(decide(&[c.clone(), a.clone()]).unwrap().missing(), [1]);
    assert!(matches!(decide(&[c]), Err(Cannot::TooFew { missing, .. }) if missing == [0, 1]));
    // A power cut between two superblocks leaves one behind; more is out of date.
    let older = |events| Superblock { events, ..b.clone() };
    let [near, far] = [20, 19].map(older);
    let [_, _, c] = [0, 1, 2].map(|place| member("five", place, &same));
    assert_eq!(decide(&[a.clone(), near, c.clone()]).unwrap().missing(), []);
    assert_eq!(out(&decide(&[a, far, c]).unwrap()), [(1, Why::Stale(19, 21))]);
}

/// What no superblock of this version says, who opened the devices knows.
#[test]
fn a_device_that_was_given_twice_is_one() {
    let all = [0, 0, 1, 2].map(|place| seen(device(&member("five", place, &same))));
    let contested = assemble(&all, &Allowed::default()).unwrap();
    assert_eq!(contested.missing(), [0]);
    let whole = assemble(&all, &Allowed { twice: vec![(1, 0)], ..Allowed::default() }).unwrap();
    assert_eq!((whole.missing(), out(&whole)), (vec![], vec![(1, Why::Copy(0))]));
}

/// A number is a place, and says nothing of which device has it: who left is told by events and by what the newest
/// says of the place.
#[test]
fn who_left_is_not_taken_for_who_came_instead() {
    let gone = |one: &mut Superblock| {
        say(one, 1, 9);
        one.events += 1;
    };
    let [a, b, c] = [0, 1, 2].map(|place| member("five", place, &same));
    let [newer_a, newer_c] = [0, 2].map(|place| member("five", place, &gone));
    assert_eq!(out(&decide(&[newer_a, b.clone(), newer_c]).unwrap()), [(1, Why::Failed)]);
    // Another device has its place since: it is newer.
    let fresh = Superblock { events: 22, ..b.clone() };
    let others = [&a, &c].map(|one| Superblock { events: 22, ..one.clone() });
    let all = [others[0].clone(), b.clone(), fresh, others[1].clone()];
    assert_eq!(out(&decide(&all).unwrap()), [(1, Why::Contested(1))]);
    // A copy: which of both was written last nothing tells.
    let both = decide(&[a, b.clone(), b, c]).unwrap();
    assert_eq!(out(&both), [(1, Why::Contested(1)), (2, Why::Contested(1))]);
}

/// One member alone was told of a state, and the others went on without it to as many events, one of them not yet told:
/// it is out, in whatever order they are given.
#[test]
fn who_was_left_out_does_not_come_back_with_as_many_events() {
    let newer = |gone: &'static [usize]| {
        move |one: &mut Superblock| {
            gone.iter().for_each(|number| say(one, *number, 9));
            one.events += 1;
        }
    };
    let a = member("five", 0, &same);
    let (b, c) = (member("five", 1, &newer(&[])), member("five", 2, &newer(&[1])));
    for order in [[&a, &b, &c], [&c, &b, &a], [&b, &a, &c]] {
        let at = order.iter().position(|one| **one == b).expect("there");
        let decided = decide(&order.map(Clone::clone)).unwrap();
        assert_eq!((decided.missing(), out(&decided)), (vec![1], vec![(at, Why::Failed)]));
    }
}

/// A member that is being rebuilt is a spare. One that is not there may have gone on when all others failed.
#[test]
fn a_spare_that_is_missing_from_a_degraded_array_is_asked_for() {
    let absent = |gone: &[usize], places: &[u32], with_spare: bool| {
        let degrade = |one: &mut Superblock| gone.iter().for_each(|number| say(one, *number, 9));
        let mut all: Vec<_> = places.iter().map(|place| member("five", *place, &degrade)).collect();
        if with_spare {
            let mut spare = read("spare");
            degrade(&mut spare);
            all.push(spare);
        }
        let all: Vec<Inspected> = all.iter().map(|one| seen(device(one))).collect();
        join(&all, &Allowed::default()).unwrap().absent
    };
    assert_eq!(absent(&[1], &[0, 2], false), [0b10, 0]);
    assert_eq!(absent(&[1], &[0, 2], true), [0, 0]);
    // A spare in nobody's place is not missed, nor is who failed when there was none.
    assert_eq!(absent(&[], &[0, 1, 2], false), [0, 0]);
    assert_eq!(absent(&[1, 3], &[0, 2], false), [0, 0]);
}

/// A member that was being rebuilt went on alone, and is a spare: what was written since is on it only.
#[test]
fn a_newer_spare_tells_that_all_members_failed() {
    let all = |gone: &[usize], events: u64| {
        let mut spare = read("spare");
        gone.iter().for_each(|number| say(&mut spare, *number, 9));
        spare.events += events;
        let [a, b, c] = [0, 1, 2].map(|place| member("five", place, &same));
        decide(&[a, b, c, spare])
    };
    let is_refused = |given| matches!(given, Err(Cannot::TooFew { .. }));
    assert!(is_refused(all(&[0, 1, 2], 1)));
    // No member is as new as it, whatever it says of them.
    assert!(is_refused(all(&[], 2)));
    // An update that only it got: nothing was answered that depends on it.
    for whole in [all(&[], 1), all(&[1], 1), all(&[0, 1, 2], 0)] {
        assert_eq!(out(&whole.unwrap()), [(3, Why::Spare)]);
    }
}

/// Both call the other gone; or one went on with another device in the place of those that it calls gone.
#[test]
fn halves_that_went_on_alone_are_told_apart() {
    let lone = |name: &'static str, place: u32, gone: &'static [usize], events: u64| {
        member(name, place, &move |one| {
            gone.iter().for_each(|number| say(one, *number, 9));
            one.events += events;
        })
    };
    let (a, b) = (lone("one", 0, &[1], 5), lone("one", 1, &[0], 2));
    assert_eq!(decide(&[a.clone(), b.clone()]), Err(Cannot::Diverged(vec![0], vec![1])));
    // Read alone, each is what it is.
    assert_eq!(decide(std::slice::from_ref(&b)).unwrap().missing(), [0]);
    // With the same events, and the place of the other filled again.
    let filled = lone("one", 0, &[], 2);
    assert_eq!(decide(&[filled, b]), Err(Cannot::Diverged(vec![0], vec![1])));
}

/// Who failed as the rebuild of the only other member ended was told of it as of a spare. It may as well have gone on
/// alone, beside another spare: a number says nothing of which device it is. So a half is to be left out by command.
#[test]
fn who_failed_as_a_rebuild_ended_is_a_half_that_may_have_gone_on() {
    let lone = |place: u32, gone: usize, spare: bool, events: u64| {
        member("one", place, &move |one| {
            one.v0.as_mut().unwrap().counts[3] = u32::from(spare);
            say(one, gone, 9);
            one.events += events;
        })
    };
    let (failed, rebuilt) = (lone(0, 1, true, 2), lone(1, 0, false, 4));
    let all = [seen(device(&failed)), seen(device(&rebuilt))];
    let without = |which: &[usize]| {
        assemble(&all, &Allowed { without: which.to_vec(), ..Allowed::default() })
    };
    assert_eq!(without(&[]), Err(Cannot::Diverged(vec![1], vec![0])));
    assert_eq!(without(&[0]).unwrap().missing(), [0]);
    assert_eq!(without(&[1]).unwrap().missing(), [1]);
}

#[test]
fn a_dirty_array_with_a_member_missing_is_refused() {
    let [a, b, c] = [0, 1, 2].map(|place| member("dirty", place, &same));
    assert!(!decide(&[a.clone(), b, c.clone()]).unwrap().clean);
    assert_eq!(decide(&[a, c]), Err(Cannot::DirtyDegraded(vec![1])));
}

#[test]
fn no_bytes_make_it_panic() {
    let mut numbers = Numbers(5);
    for round in 0..500 {
        let name = NAMES[round % NAMES.len()];
        let mut all = Vec::new();
        for _ in 0..2 {
            let mut bytes = images::device(name);
            for _ in 0..numbers.next() % 6 {
                let word = [
                    numbers.next() as usize % 70,
                    128 + numbers.next() as usize % 140,
                    992 + numbers.next() as usize % 5,
                ];
                let at = AT + 4 * word[numbers.next() as usize % 3] + numbers.next() as usize % 4;
                bytes[at] =
                    [0, 1, 0x7f, 0x80, 0xff, numbers.next() as u8][(numbers.next() % 6) as usize];
            }
            if let Some(found) = inspect(&mut Disk(bytes.clone())).seen.first() {
                let is_big =
                    found.superblock.v0.as_ref().is_some_and(|v0| v0.order == ByteOrder::Big);
                let sum = if is_big {
                    found.checksums.1.to_be_bytes()
                } else {
                    found.checksums.1.to_le_bytes()
                };
                bytes[AT + 152..AT + 156].copy_from_slice(&sum);
                let mut again = bytes[AT..AT + 4096].to_vec();
                found.superblock.emit(&mut again).unwrap();
                assert_eq!(again, bytes[AT..AT + 4096], "round {round}");
                let _ = layout(&found.superblock, &[], None);
            }
            all.push(seen(bytes));
        }
        let _ = assemble(&all, &Allowed::default());
    }
}

/// The members of an array of three, and what writes to them.
fn three_members(one: &Superblock) -> ([Disk; 3], RecordWriter) {
    let mut disks = [0, 1, 2].map(|place| Disk(device(&member("five", place, &same))));
    let area = MetaArea { log: Sectors(0), pages: 0, used: true };
    let config = Config::uniform(layout(one, &[], None).unwrap(), Sectors(16_256));
    let mut writer = RecordWriter::new(one.array, &config, &area);
    for (member, disk) in (0..).map(MemberIndex).zip(&mut disks) {
        writer.know(member, &MD.examine(disk));
    }
    (disks, writer)
}

/// A drive that was added and waits for its rebuild, behind a resync, is a spare with a number of its own; as member 0
/// it would be taken at the next start, with all that it does not have.
#[test]
fn a_drive_that_waits_for_its_rebuild_is_a_spare() {
    let one = read("five");
    let (mut disks, mut writer) = three_members(&one);
    let model = writer.places(MemberIndex(0)).clone();
    let mut fresh = Disk(vec![0; DEVICE]);
    let ready = MD.ready(&mut fresh, &model, writer.device_numbers(), [0; 16]).unwrap();
    writer.set_places(MemberIndex(1), ready.places);
    let waits = Said { events: 30, failed: [0b10, 0], ..Said::default() };
    let rebuilt = Said { failed: [0; 2], rebuilding: [0b10, 0], ..waits };
    for said in [waits, rebuilt] {
        for (place, disk) in [(0, &mut disks[0]), (1, &mut fresh)] {
            let record = Record::Superblock(said);
            let (at, payload, member) = (Sector(0), SegmentList::EMPTY, MemberIndex(place));
            let meta = MetaIo { member, record, at, payload, flush: false, fua: true };
            let mut head = vec![0; MD.head()];
            let none = (0, 0, &mut std::iter::empty() as &mut dyn Iterator<Item = &[u8]>);
            let put = writer.encode(&MD, &mut head, &meta, none).unwrap();
            disk.0[put.at.bytes() as usize..][..put.bytes].copy_from_slice(&head[..put.bytes]);
        }
        let own = inspect(&mut fresh).superblock().unwrap().clone();
        assert_eq!(
            (own.number, own.role(), own.v0.as_ref().unwrap().own.number),
            (3, Role::Spare, 3)
        );
        let other = inspect(&mut disks[0]).superblock().unwrap().clone();
        assert_eq!((other.roles[1], other.roles[3]), (Role::Faulty, Role::Spare));
        assert_eq!(other.v0.as_ref().unwrap().counts, [2, 3, 1, 1]);
    }
}

/// What is written of a state of the array is what the kernel would write: on member 0 of three.
#[test]
fn a_state_is_written_as_the_kernel_has_it() {
    let written = |said: Said| {
        let one = read("five");
        let (mut disks, mut writer) = three_members(&one);
        let (record, payload) = (Record::Superblock(said), SegmentList::EMPTY);
        let meta = MetaIo {
            member: MemberIndex(0),
            record,
            at: Sector(0),
            payload,
            flush: false,
            fua: true,
        };
        let mut head = vec![0; MD.head()];
        let put = writer.encode(&MD, &mut head, &meta, (0, 0, &mut std::iter::empty())).unwrap();
        disks[0].0[put.at.bytes() as usize..][..put.bytes].copy_from_slice(&head[..put.bytes]);
        inspect(&mut disks[0]).superblock().unwrap().clone()
    };
    let said = |clean, synced_to| Said {
        events: 30,
        clean,
        synced_to: Sector(synced_to),
        ..Said::default()
    };
    let state = |one: &Superblock| {
        let v0 = one.v0.as_ref().unwrap();
        (v0.state, v0.resync, v0.checkpoint, one.resync)
    };
    assert_eq!(state(&written(said(true, ALL))), (1, u32::MAX, 30, ALL));
    assert_eq!(state(&written(said(false, ALL))), (0, 0, 30, 0));
    assert_eq!(state(&written(said(true, 4096))), (0, 4096, 30, 4096));
    // Where there is no room for it, from the start.
    assert_eq!(state(&written(said(true, (1 << 32) + 4096))), (0, 0, 30, 0));
    let failed = written(Said { failed: [0b110, 0], ..said(true, ALL) });
    let v0 = failed.v0.as_ref().unwrap();
    assert_eq!((v0.counts, v0.devices, failed.events), ([1, 1, 2, 0], 1, 30));
    let lines: Vec<_> =
        v0.table.iter().take(4).map(|line| (line.number, line.major, line.state)).collect();
    assert_eq!(lines, [(0, 98, 6), (1, 0, 9), (2, 0, 9), (0, 0, 0)]);
}

#[test]
fn what_version_0_90_cannot_hold_is_refused() {
    const TIB: u64 = 1 << 31;
    let plan = |layout: &str, sectors: u64, change: &dyn Fn(&mut Creation)| {
        let mut creation = creation(layout.parse().unwrap(), sectors);
        (creation.version, creation.name) = (Version::V0_90, "md7".into());
        change(&mut creation);
        creation
            .plan()
            .map(|plan| plan.members[0].as_ref().unwrap().superblock.clone())
            .map_err(|error| error.0)
    };
    let refused = |layout, sectors, change: &dyn Fn(&mut Creation), words: &str| {
        let error = plan(layout, sectors, change).expect_err(words);
        assert!(error.contains(words), "{words}: {error}");
    };
    let spare = |one: &mut Creation| one.spares.extend(one.devices[0]);
    plan("raid6(27)", 1 << 16, &|_| {}).unwrap();
    refused("raid6(28)", 1 << 16, &|_| {}, "27 devices, and 28 are needed");
    refused("raid6(27)", 1 << 16, &spare, "27 devices, and 28 are needed");
    refused("raid5(27)", 1 << 16, &|_| {}, "(--assume-clean needs one less)");
    plan("raid5(27)", 1 << 16, &|one| one.assume_clean = true).unwrap();
    refused("raid5(3)", 1 << 16, &|one| one.ppl = true, "partial parity");
    refused("raid5(3)", 1 << 16, &|one| one.data_offset = Some(Sectors(2048)), "--data-offset");
    for name in ["data", "nas:md0", "md", "md-1", "md1048576"] {
        refused("raid5(3)", 1 << 16, &|one| one.name = name.into(), name);
    }
    let unequal = |one: &mut Creation| one.devices[1].as_mut().unwrap().sectors = Sectors(1 << 17);
    refused("raid0(2)", 1 << 16, &unequal, "members of one size");
    plan("linear(2)", 1 << 16, &unequal).unwrap();
    // As mdadm: 4 TiB less what is kept is taken, more only as far as is asked for.
    assert_eq!(plan("raid1(2)", 2 * TIB * 2, &|_| {}).unwrap().size, 4 * TIB - 128);
    refused("raid1(2)", 5 * TIB, &|_| {}, "give --size");
    let asked =
        plan("raid1(2)", 5 * TIB, &|one| one.size = Some(Sectors(2 * 4_294_967_232))).unwrap();
    assert_eq!((asked.size, asked.v0.unwrap().size), (2 * 4_294_967_232, 4_294_967_232));
}

/// As mdadm 4.2 makes it, but for the numbers that block devices had: the line of a device that is being rebuilt.
#[test]
fn a_new_array_says_what_mdadm_says() {
    let made = |layout: &str, change: &dyn Fn(&mut Creation)| {
        let mut creation = creation(layout.parse().unwrap(), (DEVICE / 512) as u64);
        (creation.version, creation.name) = (Version::V0_90, "md7".into());
        change(&mut creation);
        let plan = creation.plan().unwrap();
        let made = plan.members.into_iter().flatten().chain(plan.spares);
        let device = |made: raidlab_metadata::md::Made| {
            let mut bytes = vec![0; DEVICE];
            for (at, piece) in &made.pieces {
                bytes[at.bytes() as usize..][..piece.len()].copy_from_slice(piece);
            }
            let found = seen(bytes);
            assert_eq!(found.superblock(), Some(&made.superblock));
            found
        };
        made.map(device).collect::<Vec<_>>()
    };
    let five = made("raid5(3) chunk=64K", &|one| one.spares.extend(one.devices[0]));
    let one = five[0].superblock().unwrap();
    let v0 = one.v0.as_ref().unwrap();
    assert_eq!((one.events, one.is_clean(), one.size, one.name()), (1, true, 16_256, "md7".into()));
    assert_eq!((v0.counts, v0.devices), ([2, 4, 1, 2], 4));
    let states: Vec<_> =
        v0.table.iter().take(6).map(|line| (line.number, line.place, line.state)).collect();
    assert_eq!(states, [(0, 0, 6), (1, 1, 6), (2, 2, 9), (3, 3, 0), (4, 4, 0), (0, 0, 0)]);
    let numbers = five.iter().map(|one| one.superblock().unwrap().number).collect::<Vec<_>>();
    assert_eq!(numbers, [0, 1, 4, 3]);
    let mirror = made("raid1(2)", &|one| one.bitmap = WantedBitmap::Internal);
    let BitmapSeen::Found(head, bits) = &mirror[0].bitmap else { panic!("{:?}", mirror[0].bitmap) };
    assert_eq!((head.events, head.covered, head.chunk, *bits), (1, 16_256, 64 << 20, Some(1)));
    assert_eq!(mirror[0].superblock().unwrap().resync, 0);
    let ten = made("raid10(4) chunk=64K", &|one| (one.devices[0], one.assume_clean) = (None, true));
    let one = ten[0].superblock().unwrap();
    assert_eq!((one.number, &one.roles[..2]), (1, &[Role::Faulty, Role::Member(1)][..]));
    assert_eq!((one.is_clean(), one.v0.as_ref().unwrap().table[0].state), (true, 8));
}
