//! Which devices make an array: missing, out of date, half rebuilt, gone on alone, dirty, copies, of another array.

use raidlab_core::{MemberIndex, Sector, Sectors};
use raidlab_metadata::MetadataFormat;
use raidlab_metadata::md::{
    Allowed, Assembly, Cannot, Features, Inspected, Md, Obstacle, Out, Purpose, Role, Superblock,
    Why, assemble, inspect, join, not_used, uuid,
};

use super::device::{disk, raid5, seen};

fn three() -> [Superblock; 3] {
    [0, 1, 2].map(|place| raid5(3, place))
}

/// md's levels without redundancy use all that devices have for data, whatever superblocks say of a size.
#[test]
fn striped_and_linear_arrays_go_by_what_devices_have() {
    for (level, chunk, layout) in [(0, 128, 0), (-1, 0, 0)] {
        let of = |size: u64, data_size: u64, place: u16| Superblock {
            level,
            chunk,
            layout,
            size,
            data_size,
            ..raid5(2, place)
        };
        for size in [0, 512] {
            // Zones of unequal members have an order of their own.
            let second = if level == 0 { 1024 } else { 2048 };
            let decided = decide(&[of(size, 1024, 0), of(size, second, 1)]).unwrap();
            let sectors: Vec<u64> = decided.places.iter().map(|place| place.sectors.0).collect();
            assert_eq!(sectors, [1024, second], "level {level}, size {size}");
        }
    }
}

fn decide(all: &[Superblock]) -> Result<Assembly, Cannot> {
    decide_with(all, &Allowed::default())
}

fn decide_with(all: &[Superblock], allowed: &Allowed) -> Result<Assembly, Cannot> {
    let all: Vec<Inspected> = all.iter().map(seen).collect();
    assemble(&all, allowed)
}

/// Why each device is out, by the order it was given in.
fn out(assembly: &Assembly) -> Vec<(usize, Why)> {
    let mut out: Vec<_> = assembly.out.iter().map(|out| (out.given, out.why.clone())).collect();
    out.sort_by_key(|(given, _)| *given);
    out
}

#[test]
fn members_are_taken_by_their_role_whatever_their_order() {
    let [a, b, c] = three();
    let whole = decide(&[c.clone(), a.clone(), b.clone()]).unwrap();
    let given: Vec<_> = whole.places.iter().map(|place| place.given).collect();
    assert_eq!(given, [Some(1), Some(2), Some(0)]);
    assert_eq!((whole.name.as_str(), whole.events, whole.clean), ("nas:data", 100, true));
    let place = &whole.places[0];
    assert_eq!((place.data_offset, place.sectors), (Sectors(2048), Sectors(1024)));
    // Without one, and without two.
    let degraded = decide(&[c.clone(), a.clone()]).unwrap();
    assert_eq!(degraded.missing(), [1]);
    assert!(matches!(decide(&[c]), Err(Cannot::TooFew { missing, .. }) if missing == [0, 1]));
    assert!(matches!(decide(&[]), Err(Cannot::NoMember(_))));
}

#[test]
fn who_missed_something_is_out() {
    let [a, b, c] = three();
    // One behind is what a power cut between two superblocks leaves.
    let one_behind = Superblock { events: 99, ..b.clone() };
    assert_eq!(decide(&[a.clone(), one_behind, c.clone()]).unwrap().missing(), []);
    let stale = Superblock { events: 98, ..b.clone() };
    let degraded = decide(&[a.clone(), stale, c.clone()]).unwrap();
    assert_eq!((degraded.missing(), out(&degraded)), (vec![1], vec![(1, Why::Stale(98, 100))]));
    // The newest says that it failed, although its events are not behind.
    let mut newer = [a, c];
    for one in &mut newer {
        (one.events, one.roles[1]) = (101, Role::Faulty);
    }
    let [a, c] = newer;
    let degraded = decide(&[a, b, c]).unwrap();
    assert_eq!(out(&degraded), [(1, Why::Failed)]);
}

#[test]
fn who_is_half_rebuilt_is_out_as_is_who_serves_otherwise() {
    let [a, b, mut c] = three();
    (c.features, c.recovery) = (Features::RECOVERY, 512);
    let degraded = decide(&[a.clone(), b.clone(), c]).unwrap();
    assert_eq!(out(&degraded), [(2, Why::Rebuilding(Sector(512)))]);
    let [_, _, c] = three();
    let spare = Superblock { number: 3, device: [77; 16], ..c.clone() };
    let whole = decide(&[a.clone(), b.clone(), c.clone(), spare]).unwrap();
    assert_eq!((whole.missing(), out(&whole)), (vec![], vec![(3, Why::Spare)]));
    // A replacement is out as long as the member is there, and in when it is not.
    let mut all = [a, b, c.clone(), c];
    all.iter_mut().for_each(|one| one.roles[5] = Role::Member(2));
    (all[3].number, all[3].device, all[3].features) = (5, [78; 16], Features::REPLACEMENT);
    assert_eq!(out(&decide(&all).unwrap()), [(3, Why::Replacement)]);
    let [a, b, _, d] = all;
    assert_eq!(decide(&[a, b, d]).unwrap().missing(), []);
}

/// For writing: a member that is not there and not said to be gone may have gone on alone.
#[test]
fn a_replacement_serves_for_its_member_when_it_alone_is_named() {
    let join = |all: &[Superblock]| {
        let all: Vec<Inspected> = all.iter().map(seen).collect();
        join(&all, &Allowed::default()).unwrap()
    };
    let [a, b, c] = three();
    let mut all = [a, b, c.clone(), c];
    all.iter_mut().for_each(|one| one.roles[5] = Role::Member(2));
    (all[3].number, all[3].device, all[3].features) = (5, [78; 16], Features::REPLACEMENT);
    let [a, b, c, complete] = all.clone();
    let mut partial = complete.clone();
    (partial.features, partial.recovery) = (Features::REPLACEMENT.with(Features::RECOVERY), 512);
    for other in [&complete, &partial] {
        let both = join(&[a.clone(), b.clone(), c.clone(), other.clone()]);
        assert_eq!((both.replacement, both.out.len(), both.absent), (Some((3, 2)), 0, [0, 0]));
        let alone = join(&[a.clone(), b.clone(), other.clone()]);
        assert_eq!((alone.replacement, alone.absent), (None, [0b100, 0]));
        assert_eq!(alone.out.iter().map(|out| &out.why).collect::<Vec<_>>(), [&Why::Replacement]);
    }
    // Nobody knows which of its blocks are good.
    let given = [&a, &b, &c, &partial].map(seen);
    let [one, two, three, four] = given;
    let unknown = Inspected { bad: None, ..four };
    let without =
        raidlab_metadata::md::join(&[one, two, three, unknown], &Allowed::default()).unwrap();
    assert_eq!((without.replacement, &without.out[0].why), (None, &Why::BadBlocksUnreadable));
    // The others call the member faulty: what replaced it is the member.
    let mut gone = [a, b, complete, partial];
    gone.iter_mut().for_each(|one| one.roles[2] = Role::Faulty);
    let [a, b, complete, partial] = gone;
    let whole = join(&[a.clone(), b.clone(), complete]);
    assert_eq!((whole.order, whole.absent), (vec![Some(0), Some(1), Some(2)], [0, 0]));
    assert_eq!(join(&[a, b, partial]).absent, [0b100, 0]);
    // One that is named no more, and of an older state, is no half that went on alone.
    let [mut a, mut b, mut c, _] = all.clone();
    for one in [&mut a, &mut b, &mut c] {
        (one.roles[5], one.events) = (Role::Faulty, 103);
    }
    let after = join(&[a, b, c, all[3].clone()]);
    assert_eq!((after.replacement, after.out.len()), (None, 1));
}

#[test]
fn two_replacements_at_once_are_told() {
    let [a, b, c] = three();
    let mut all = [a, b.clone(), c.clone(), b, c];
    for (place, number, member) in [(3, 5, 1), (4, 6, 2)] {
        all.iter_mut().for_each(|one| one.roles[number] = Role::Member(member));
        let one: &mut Superblock = &mut all[place];
        (one.number, one.device) = (number as u32, [70 + place as u8; 16]);
        (one.features, one.recovery) = (Features::REPLACEMENT.with(Features::RECOVERY), 512);
    }
    let all: Vec<Inspected> = all.iter().map(seen).collect();
    let told = join(&all, &Allowed::default()).unwrap_err().to_string();
    assert!(told.contains("devices 4 and 5 of those given are each about to replace"), "{told}");
}

/// One of both is a spare that was rebuilt under the log device's number, or a copy of it: neither is to be
/// overwritten.
#[test]
fn two_log_devices_are_told() {
    let [a, b, c] = three();
    let mut all = [a.clone(), b, c, a.clone(), a];
    all.iter_mut().for_each(|one| {
        (one.features, one.roles[3]) = (Features::JOURNAL, Role::Journal);
    });
    for (place, id) in [(3, 71), (4, 72)] {
        (all[place].number, all[place].device) = (3, [id; 16]);
    }
    let all: Vec<Inspected> = all.iter().map(seen).collect();
    let told = join(&all, &Allowed::default()).unwrap_err().to_string();
    assert!(
        told.contains("devices 4 and 5 of those given each say that they are its journal"),
        "{told}"
    );
    assert_eq!(join(&all[..4], &Allowed::default()).unwrap().journal, Some(3));
}

#[test]
fn halves_that_went_on_alone_are_told_apart() {
    let mut pair =
        [0, 1].map(|place| Superblock { level: 1, layout: 0, chunk: 0, ..raid5(2, place) });
    (pair[0].events, pair[0].roles[1]) = (120, Role::Faulty);
    (pair[1].events, pair[1].roles[0]) = (110, Role::Faulty);
    // md takes the first, which has more events, and drops what was written to the second.
    let diverged = Cannot::Diverged(vec![0], vec![1]);
    assert!(diverged.to_string().contains("in the order given, 1 and 2;"));
    assert_eq!(decide(&pair), Err(diverged));
    for (without, kept) in [(0, 1), (1, 0)] {
        let allowed = Allowed { without: vec![without], ..Allowed::default() };
        let half = decide_with(&pair, &allowed).unwrap();
        assert_eq!(out(&half), [(without, Why::LeftOut)]);
        assert_eq!(half.places[kept].given, Some(kept));
    }
    // One that was exchanged for a device which it does not know is no half: the device has another number.
    let [a, b, c] = three();
    let mut exchanged = [a, Superblock { number: 5, device: [55; 16], ..b.clone() }, c];
    for one in &mut exchanged {
        (one.events, one.roles[1], one.roles[5]) = (120, Role::Faulty, Role::Member(1));
    }
    let [a, fresh, c] = exchanged;
    let whole = decide(&[fresh, b.clone(), a, c]).unwrap();
    assert_eq!((whole.missing(), out(&whole)), (vec![], vec![(1, Why::Stale(100, 120))]));
    // One that only missed things names the other still.
    pair[1].roles[0] = Role::Member(0);
    assert_eq!(out(&decide(&pair).unwrap()), [(1, Why::Stale(110, 120))]);
}

#[test]
fn parity_that_may_be_wrong_is_not_used_without_consent() {
    let dirty = three().map(|one| Superblock { resync: 0, ..one });
    let whole = decide(&dirty).unwrap();
    assert!(!whole.clean && whole.missing().is_empty());
    assert_eq!(decide(&dirty[..2]), Err(Cannot::DirtyDegraded(vec![2])));
    let allowed = Allowed { dirty_degraded: true, ..Allowed::default() };
    assert_eq!(decide_with(&dirty[..2], &allowed).unwrap().missing(), [2]);
}

/// Of copies that may differ always the same is read: the others only when there is none.
#[test]
fn unequal_copies_are_read_in_one_order() {
    let mirror = |place| Superblock { level: 1, layout: 0, chunk: 0, ..raid5(3, place) };
    let clean = [0, 1, 2].map(mirror);
    assert_eq!(decide(&clean).unwrap().last, [0, 0]);
    let dirty = clean.map(|one| Superblock { resync: 0, ..one });
    let assembly = decide(&dirty).unwrap();
    assert_eq!(assembly.last, [0b110, 0]);
    // The core takes no other where it can.
    let traits = assembly.config().traits;
    let write_mostly: Vec<_> = traits.iter().map(|one| one.write_mostly).collect();
    assert_eq!(write_mostly, [false, true, true]);
    assert_eq!(decide(&dirty[1..]).unwrap().last, [0b100, 0]);
    let raid10 = |place| Superblock { level: 10, layout: 0x102, resync: 0, ..raid5(4, place) };
    assert_eq!(decide(&[0, 1, 2, 3].map(raid10)).unwrap().last, [0b1010, 0]);
}

#[test]
fn copies_and_strangers_are_named() {
    let [a, b, c] = three();
    let copy = Superblock { events: 90, ..b.clone() };
    let whole = decide(&[a.clone(), copy, b.clone(), c.clone()]).unwrap();
    assert_eq!((whole.missing(), out(&whole)), (vec![], vec![(1, Why::Copy(2))]));
    let whole = decide(&[a.clone(), b.clone(), c.clone(), c.clone()]).unwrap();
    assert_eq!(out(&whole), [(3, Why::Copy(2))]);
    let stranger = Superblock { array: [8; 16], device: [70; 16], ..c.clone() };
    let same_name = "nas:data, UUID 08080808:08080808:08080808:08080808";
    let degraded = decide(&[a.clone(), b.clone(), stranger.clone()]).unwrap();
    assert_eq!(out(&degraded), [(2, Why::AnotherArray(same_name.into()))]);
    // Most devices decide, wherever they stand.
    let degraded = decide(&[stranger.clone(), a.clone(), b.clone()]).unwrap();
    assert_eq!(out(&degraded), [(0, Why::AnotherArray(same_name.into()))]);
    let several = decide(&[a.clone(), stranger.clone()]).unwrap_err();
    assert!(matches!(several, Cannot::SeveralArrays(_)));
    // Of one name they are told apart by what they are.
    for one in [&a, &stranger] {
        let named = format!("nas:data (UUID {})", uuid(&one.array));
        assert!(several.to_string().contains(&named), "{several}");
    }
    let mut other = stranger;
    other.name[..4].copy_from_slice(b"box:");
    let degraded = decide(&[a.clone(), b.clone(), other]).unwrap();
    assert_eq!(out(&degraded), [(2, Why::AnotherArray("box:data".into()))]);
    // Two devices that are not copies and say that they are one member.
    let rival = Superblock { device: [79; 16], ..c.clone() };
    let degraded = decide(&[a, b, c, rival]).unwrap();
    assert_eq!(out(&degraded), [(2, Why::Contested(2)), (3, Why::Contested(2))]);
}

#[test]
fn what_is_cut_off_is_out() {
    let [a, b, c] = three();
    let long = Superblock { size: 4096, ..c };
    let all = [a, b, long].map(|one| Superblock { events: 100, ..one });
    let degraded = decide(&all).unwrap();
    assert_eq!(out(&degraded), [(2, Why::TooSmall(Sectors(6144)))]);
    assert_eq!(degraded.missing(), [2]);
}

#[test]
fn what_is_not_carried_out_is_refused() {
    let all = three().map(|one| Superblock { features: Features::RESHAPE, ..one });
    assert_eq!(decide(&all), Err(Cannot::Obstacle(Obstacle::Reshape)));
}

/// raid5 of two members is a mirror, a mirror of one member a single drive.
#[test]
fn small_arrays_are_what_they_amount_to() {
    let pair = [0, 1].map(|place| raid5(2, place));
    assert_eq!(decide(&pair).unwrap().layout.to_string(), "raid1(2)");
    let alone = Superblock { level: 1, layout: 0, chunk: 0, ..raid5(1, 0) };
    assert_eq!(decide(&[alone]).unwrap().layout.to_string(), "single");
}

/// As Linux 6.1 was seen to take them: entries count from the start of the device, not from that of the data.
#[test]
fn bad_blocks_count_from_the_start_of_the_device() {
    let [mut a, ..] = three();
    a.features = Features::BAD_BLOCKS;
    let mut bytes = vec![0; (super::device::SECTORS * 512) as usize];
    a.emit(&mut bytes[8 * 512..]).unwrap();
    let list = (8 + 16) * 512;
    bytes[list..list + 4096].fill(0xff);
    for (place, (at, len)) in [(2048 + 104, 8_u64), (2040, 16), (100, 8)].into_iter().enumerate() {
        let entry: u64 = at << 10 | len;
        bytes[list + 8 * place..][..8].copy_from_slice(&entry.to_le_bytes());
    }
    let found = inspect(&mut super::device::Disk(bytes));
    let ranges = [(104, 8), (0, 8)].map(|(at, len)| (Sector(at), Sectors(len)));
    assert_eq!(found.bad.as_deref(), Some(&ranges[..]));
}

/// All that a list names is known to who reads the array, and to who goes on writing it.
#[test]
fn every_range_of_a_list_is_told() {
    let [mut a, b, c] = three();
    a.features = Features::BAD_BLOCKS;
    let ranges = [(104, 8), (200, 512), (800, 16)];
    let entry = |(at, len): (u64, u64)| ((a.data_offset + at) << 10 | len).to_le_bytes();
    let mut list: Vec<u8> = ranges.iter().copied().flat_map(entry).collect();
    list.resize(4096, 0xff);
    let mut disks = [disk(&a, &[(24, list)]), disk(&b, &[]), disk(&c, &[])];
    let all = disks.each_mut().map(|one| inspect(one));
    let ranges = ranges.map(|(at, len)| (Sector(at), Sectors(len)));
    let read = assemble(&all, &Allowed::default()).unwrap();
    assert_eq!(read.places[0].bad, ranges.map(|(at, len)| (MemberIndex(0), at, len)));
    assert_eq!(Md { block: 1 }.examine(&mut disks[0]).examined.bad, ranges);
}

/// As a disk that was full leaves copies of them: where data begin, nothing is left.
#[test]
fn that_all_are_cut_off_is_told() {
    let mut all = three().map(|one| seen(&one));
    all.iter_mut().for_each(|one| one.sectors = Sectors(2048));
    let cannot = assemble(&all, &Allowed::default()).unwrap_err();
    let Cannot::TooFew { missing, out, .. } = &cannot else { panic!("{cannot:?}") };
    assert_eq!(missing, &[0, 1, 2]);
    let why = Why::TooSmall(Sectors(3072));
    let cut = |given| Out { given, place: Some(given as u16), why: why.clone() };
    assert_eq!(out, &[0, 1, 2].map(cut));
    assert_eq!(&not_used(&all, &Allowed::default(), Purpose::Read, &cannot), out);
}

#[test]
fn who_is_not_used_is_told_whatever_keeps_the_others_from_being() {
    let mut all = three();
    all.iter_mut().for_each(|one| one.resync = 0);
    all[1].events = 90;
    let all = all.map(|one| seen(&one));
    let cannot = assemble(&all, &Allowed::default()).unwrap_err();
    assert_eq!(cannot, Cannot::DirtyDegraded(vec![1]));
    let out = not_used(&all, &Allowed::default(), Purpose::Read, &cannot);
    assert_eq!(out, [Out { given: 1, place: Some(1), why: Why::Stale(90, 100) }]);
}
