//! RAID volumes of LVM: texts that LVM wrote, labels and areas that are damaged, members that are believed or not, and
//! any bytes at all under right checksums.

#[path = "lvm/made.rs"]
mod made;

use raidlab_core::{Layout, Level, Sector, Sectors};
use raidlab_metadata::geom::Creation;
use raidlab_metadata::lvm::{Extent, Group, Older, Untold, Volume, look};
use raidlab_metadata::md::{Allowed, Cannot, Role, Why, assemble, inspect};
use raidlab_metadata::{Source, Unreadable};

use made::{
    AREA, Disk, Dm, EXTENT, Made, ROOM, START, assembled, found, group, id, members, physical, put,
    seal, told, volume,
};

/// `vgcfgbackup` of LVM 2.03.16 under Linux 6.1, of a group on four physical volumes with: five (`--type raid5 -i 2`,
/// with a snapshot), ten (`--type raid10 --nosync`), int (`--type raid1 --raidintegrity y`), old (`--type mirror`),
/// orig (`--type raid1`, then `lvconvert --type cache`), plain.
const TEXT: &str = include_str!("lvm/group.txt");

fn golden() -> Group {
    // Longer than the areas of the other tests.
    let mut bytes = vec![0; 96 << 10];
    let disk = physical(0, "", 512);
    bytes[..disk.0.len().min(8192)].copy_from_slice(&disk.0[..8192]);
    let room = 80_u64 << 10;
    put(&mut bytes, 584 + 40, &room.to_le_bytes());
    put(&mut bytes, AREA + 32, &room.to_le_bytes());
    put(&mut bytes, AREA + 48, &(TEXT.len() as u64).to_le_bytes());
    put(&mut bytes, AREA + 512, TEXT.as_bytes());
    put(&mut bytes, AREA + 56, &made::checksum(TEXT.as_bytes()).to_le_bytes());
    seal(&mut bytes);
    let seen = look(&mut Disk(bytes)).expect("a label");
    assert_eq!(seen.damaged, []);
    seen.group.expect("a group")
}

#[test]
fn a_text_of_lvm_tells_its_volumes() {
    let group = golden();
    assert_eq!((&*group.name, group.seqno, group.extent), ("vg", 19, 1024));
    assert_eq!(group.id, "mv13u0-fhsy-gFEW-l2p9-yJfl-VAkE-X0dIVJ");
    assert_eq!(group.physical.len(), 4);
    let all = group.volumes();
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["five", "int", "old", "orig_corig", "ten"]);
    let found = |name: &str| all.iter().find(|(one, _)| one == name).expect("there").1.clone();
    let five = found("five").expect("is read");
    assert_eq!((&*five.name, &*five.kind, five.level, five.layout), ("vg/five", "raid5", 5, 2));
    assert_eq!((five.chunk, five.sectors, five.used), (128, 4096, 2048));
    let on = group.physical["pv0"].id.clone();
    assert_eq!(five.images[0].data, [Extent { on: on.clone(), at: 2048 + 1024, sectors: 2048 }]);
    assert_eq!(five.images[0].metadata, [Extent { on, at: 2048, sectors: 1024 }]);
    let ten = found("ten").expect("is read");
    assert_eq!((ten.level, ten.layout, ten.used, ten.is_not_synced), (10, 0x102, 2048, true));
    for (name, why) in [
        ("int", "int_rimage_0, which it is made of, is of type integrity"),
        ("old", "volumes of type mirror are not read"),
        ("orig_corig", "it lies below a cache (orig)"),
    ] {
        let error = found(name).expect_err(name);
        assert!(error.contains(why), "{name}: {error}");
    }
}

#[test]
fn a_text_is_read_wherever_its_ring_begins() {
    let text = Made::raid5().text();
    let expected = group(&mut [physical(2, &text, 512)]).expect("is read");
    assert_eq!(expected.name, "vg");
    for offset in (512..ROOM).step_by(97) {
        let seen = look(&mut physical(2, &text, offset)).expect("a label");
        assert_eq!(
            (seen.group.as_ref(), &seen.damaged[..]),
            (Some(&expected), &[][..]),
            "{offset}"
        );
        assert_eq!((seen.id, seen.areas), (id(2).1, 1));
    }
}

/// A device that counts what is read of it.
struct Counting(Disk, u64);

impl Source for Counting {
    fn sectors(&self) -> Sectors {
        self.0.sectors()
    }

    fn logical_block(&self) -> u32 {
        self.0.logical_block()
    }

    fn read(&mut self, at: Sector, into: &mut [u8]) -> Result<(), Unreadable> {
        self.1 += into.len() as u64;
        self.0.read(at, into)
    }
}

/// A label that names one area again and again has one, and its text, which may be long, is read once.
#[test]
fn an_area_that_is_named_often_is_read_once() {
    let text = Made::raid5().text();
    let named = |times: usize| {
        let mut bytes = physical(1, &text, 600).0;
        for number in 0..times {
            put(&mut bytes, 616 + 16 * number, &(AREA as u64).to_le_bytes());
            put(&mut bytes, 624 + 16 * number, &(ROOM as u64).to_le_bytes());
        }
        seal(&mut bytes);
        let mut disk = Counting(Disk(bytes), 0);
        let seen = look(&mut disk).expect("a label");
        assert!(seen.group.is_some() && seen.damaged.is_empty(), "{seen:?}");
        (seen.areas, disk.1)
    };
    let once = named(1);
    assert_eq!(once.0, 1);
    assert_eq!(named(16), once);
}

#[test]
fn what_is_damaged_is_named_with_its_byte() {
    let text = Made::raid5().text();
    let whole = || physical(1, &text, 600).0;
    let damaged = |bytes: Vec<u8>| {
        let seen = look(&mut Disk(bytes)).expect("a label");
        assert!(seen.group.is_none());
        seen.damaged.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    let changed = |at: usize| {
        let mut bytes = whole();
        bytes[at] ^= 1;
        damaged(bytes)
    };
    assert!(changed(700).starts_with("the label of LVM at byte 512: the checksum is "));
    assert!(
        changed(AREA + 300)
            .starts_with("the area of metadata of LVM at byte 4096: the checksum is ")
    );
    assert!(
        changed(AREA + 650)
            .starts_with("the text of metadata of LVM at byte 4696: the checksum is ")
    );
    let sealed = |at: usize, value: &[u8]| {
        let mut bytes = whole();
        put(&mut bytes, at, value);
        seal(&mut bytes);
        damaged(bytes)
    };
    assert!(sealed(520, &[3]).contains("in another sector"));
    assert!(sealed(544, &[0]).contains("names no physical volume"));
    assert!(sealed(AREA + 4, b"x").contains("does not begin as one of version 1"));
    assert!(sealed(AREA + 24, &[1]).contains("lies elsewhere"));
    assert!(
        sealed(AREA + 40, &[9; 8]).contains("byte 651061555542694153: it does not lie in its area")
    );
    assert!(sealed(AREA + 48, &[9; 8]).contains("does not lie in its area"));
    assert!(sealed(616, &[9; 6]).contains("cannot be read, or lies beyond the end"));
    let text_of = |text: &str| damaged(physical(0, text, 600).0);
    assert!(
        text_of("vg {\nseqno = 1")
            .contains("byte 4696: byte 14 of its text: the text ends within a section")
    );
    assert!(text_of("vg {\nseqno = 1\n}").contains("its text has no identity"));
    assert!(text_of("a = 1").contains("its text has no volume group"));
    // Cut off: nothing but the label, and less.
    let mut short = whole();
    short.truncate(4096);
    assert!(damaged(short).contains("byte 4096: cannot be read"));
    assert!(look(&mut Disk(vec![0; 512])).is_none());
    assert!(look(&mut Disk(Vec::new())).is_none());
}

/// LVM keeps no text up to date in an area that it was told to ignore.
#[test]
fn an_area_that_lvm_ignores_holds_nothing() {
    let mut disk = physical(1, &Made::raid5().text(), 600);
    disk.0[AREA + 60] = 1;
    seal(&mut disk.0);
    let seen = look(&mut disk).expect("a label");
    assert_eq!((seen.group, &seen.damaged[..], seen.areas, seen.ignored), (None, &[][..], 1, 1));
    // A text that the flag has nothing to do with.
    disk.0[AREA + 60] = 2;
    seal(&mut disk.0);
    let seen = look(&mut disk).expect("a label");
    assert_eq!((seen.group.is_some(), seen.ignored), (true, 0));
}

#[test]
fn members_lie_where_the_text_says() {
    let mut disks = Made::raid5().disks(&Dm::all(3));
    disks.rotate_left(1);
    let pieces: Vec<usize> =
        members(&mut disks).expect("can be told").iter().map(|one| one.pieces[0].given).collect();
    assert_eq!(pieces, [3, 0, 1]);
    let assembly = assembled(&mut disks).expect("all are there");
    assert!(assembly.clean && assembly.name == "vg/lv");
    for place in &assembly.places {
        assert_eq!(
            (place.data_offset, place.sectors),
            (Sectors(START + EXTENT), Sectors(2 * EXTENT))
        );
    }
}

#[test]
fn who_missed_something_is_not_believed() {
    let allowed = Allowed::default();
    let with = |change: &dyn Fn(&mut Vec<Dm>)| {
        let mut members = Dm::all(3);
        change(&mut members);
        told(&mut Made::raid5().disks(&members)).expect("can be told")
    };
    let out = |change: &dyn Fn(&mut Vec<Dm>)| {
        let assembly = assemble(&with(change), &allowed).expect("one may be lost");
        assembly.out.iter().map(|out| (out.place, out.why.clone())).collect::<Vec<_>>()
    };
    assert_eq!(out(&|_| {}), []);
    let stale = out(&|all| all[1].events = 17);
    assert_eq!(stale, [(Some(1), Why::Stale(17, 20))]);
    let failed = out(&|all| {
        all[1].events = 19;
        (all[0].failed, all[2].failed) = (2, 2);
    });
    assert_eq!(failed, [(Some(1), Why::Failed)]);
    let rebuilding = out(&|all| all[2].rebuilt = 8);
    assert_eq!(rebuilding, [(Some(2), Why::Rebuilding(Sector(8)))]);
    let reason = |change: &dyn Fn(&mut Vec<Dm>)| match &out(change)[..] {
        [(None, Why::NoSuperblock(why))] => why.clone(),
        other => panic!("{other:?}"),
    };
    assert!(
        reason(&|all| all[0].place = 1).contains("it is member 1 of 3, the volume group 0 of 3")
    );
    assert!(reason(&|all| all[0].members = 4).contains("member 0 of 4"));
    assert!(reason(&|all| all[0].shape = (5, 3, 8)).contains("layout 0x3"));
    assert!(reason(&|all| all[0].shape.2 = 16).contains("chunk of 16 sectors"));
    assert!(reason(&|all| (all[0].incompatible, all[0].events) = (1, 19)).contains("features"));
    // Two that each went on without the other.
    let halves = with(&|all| (all[0].failed, all[1].failed, all[2].failed) = (6, 5, 3));
    assert!(matches!(assemble(&halves, &allowed), Err(Cannot::Diverged(..))));
    // What the newest says of itself holds for all.
    let whole = |change: &dyn Fn(&mut Vec<Dm>)| {
        let mut members = Dm::all(3);
        change(&mut members);
        told(&mut Made::raid5().disks(&members)).expect_err("cannot be told")
    };
    assert!(whole(&|all| (all[1].flags, all[1].events) = (1, 21)).contains("a reshape of it"));
    assert!(
        whole(&|all| (all[1].incompatible, all[1].events) = (8, 21))
            .contains("features (0x1, 0x8)")
    );
}

type Change<'a> = &'a dyn Fn(&mut Vec<Dm>);

#[test]
fn redundancy_that_may_be_wrong_is_not_used_unasked() {
    let without = |change: &dyn Fn(&mut Vec<Dm>), made: Made| {
        let mut members = Dm::all(3);
        change(&mut members);
        let mut disks = made.disks(&members);
        disks.remove(1);
        assembled(&mut disks)
    };
    let raid5 = Made::raid5;
    let notes = without(&|_| {}, raid5()).expect("clean").notes;
    assert_eq!(notes, Vec::<String>::new());
    let dirty: [(&str, Change<'_>); 5] = [
        ("a bit", &|all| all[2].bits = 1),
        ("a bitmap that lacks bits", &|all| all[2].bitmap_state = 2),
        ("resync", &|all| all.iter_mut().for_each(|one| one.synced = 16)),
        ("an old bitmap", &|all| all[0].bitmap_events = 19),
        ("grown", &|all| all.iter_mut().for_each(|one| one.sectors = EXTENT)),
    ];
    for (what, change) in dirty {
        assert_eq!(without(change, raid5()).unwrap_err(), Cannot::DirtyDegraded(vec![1]), "{what}");
    }
    let nosync = Made { flags: ", \"NOTSYNCED\"", ..raid5() };
    assert_eq!(without(&|_| {}, nosync).unwrap_err(), Cannot::DirtyDegraded(vec![1]));
    // Bits stay while a member is missing.
    let degraded: &dyn Fn(&mut Vec<Dm>) = &|all| {
        for one in all {
            (one.failed, one.bits) = (2, 2);
        }
    };
    let found = without(degraded, raid5()).expect("may be right");
    assert!(
        found.notes.iter().any(|note| note.contains("LVM does not record")),
        "{:?}",
        found.notes
    );
    // A superblock that is not used says nothing of the others, be its events what they may.
    let mut members = Dm::all(3);
    members.iter_mut().for_each(|one| one.bits = 1);
    (members[0].members, members[0].events) = (4, 50);
    let told = told(&mut raid5().disks(&members)).expect("can be told");
    let anyway = Allowed { dirty_degraded: true, ..Allowed::default() };
    let found = assemble(&told, &anyway).expect("one may be lost");
    assert_eq!((found.missing(), found.clean), (vec![0], false));
    assert_eq!(assemble(&told, &Allowed::default()), Err(Cannot::DirtyDegraded(vec![0])));
    // Copies are read, always the same one.
    let mirror = Made { kind: "raid1", extents: 2, ..raid5() };
    let shaped =
        |all: &mut Vec<Dm>| all.iter_mut().for_each(|one| (one.shape, one.bits) = ((1, 0, 0), 1));
    let found = without(&shaped, mirror).expect("copies");
    assert!(found.has_unequal_copies() && found.last != [0; 2]);
}

#[test]
fn a_member_may_lie_in_several_ranges() {
    let images =
        vec![vec![(0, 1, 1), (3, 4, 1)], vec![(1, 5, 1), (1, 6, 1)], vec![(2, 3, 1), (2, 1, 1)]];
    let made = Made { images, ..Made::raid5() };
    let mut disks = made.disks(&Dm::all(3));
    let volume = volume(&mut disks).expect("is read");
    let ranges: Vec<usize> = volume.images.iter().map(|image| image.data.len()).collect();
    // The second lies one behind the other.
    assert_eq!(ranges, [2, 1, 2]);
    let all = told(&mut disks).expect("can be told");
    let place = |n: usize| {
        let one = all[n].superblock().expect("whole");
        (one.role(), one.data_offset, all[n].sectors.0)
    };
    assert_eq!(place(0), (Role::Member(0), 0, 2 * EXTENT));
    assert_eq!(place(1), (Role::Member(1), START + 5 * EXTENT, START + 10 * EXTENT));
    assert_eq!(place(2), (Role::Member(2), 0, 2 * EXTENT));
    // A device that ends within a range, or before one: its superblock still counts, its data do not.
    for (of, place, sectors) in
        [(3, 0, START + 5 * EXTENT - 1), (3, 0, START), (2, 2, START + 2 * EXTENT + 3)]
    {
        let whole = disks[of].0.clone();
        disks[of].0.truncate(sectors as usize * 512);
        let all = told(&mut disks).expect("can be told");
        assert!(all[place].superblock().is_some());
        let assembly = assemble(&all, &Allowed::default()).expect("one may be lost");
        assert_eq!(assembly.missing(), [place as u16]);
        let out: Vec<_> = assembly.out.iter().map(|out| (out.given, out.why.clone())).collect();
        assert_eq!(out, [(place, Why::TooSmall(Sectors(2 * EXTENT)))]);
        disks[of].0 = whole;
    }
    // Half of the first is lost.
    disks.remove(3);
    let all = told(&mut disks).expect("can be told");
    assert!(all[0].superblock().is_none());
    let assembly = assemble(&all, &Allowed::default()).expect("one may be lost");
    assert_eq!(assembly.missing(), [0]);
    assert!(assembly.out[0].why.to_string().contains("on a physical volume that is not there"));
}

/// Replaces the text of a physical volume.
fn rewrite(disk: &mut Disk, of: usize, made: &Made) {
    let bytes = physical(of, &made.text(), 900).0;
    disk.0[..START as usize * 512].copy_from_slice(&bytes[..START as usize * 512]);
}

#[test]
fn the_newest_text_counts() {
    let mut disks = Made::raid5().disks(&Dm::all(3));
    // A physical volume that knows of an earlier state, in which images lay elsewhere.
    let images = (0..3).map(|on| vec![(on, 4, 2)]).collect();
    rewrite(&mut disks[0], 0, &Made { seqno: 6, images, ..Made::raid5() });
    assert_eq!(assembled(&mut disks).expect("all are there").missing(), []);
}

/// Which of several copies of a physical volume counts is told by the group's `seqno` and by events, never by the
/// order that they were given in.
#[test]
fn the_newest_of_copies_counts() {
    let older = Made { seqno: 6, ..Made::raid5() };
    for order in [[0, 1], [1, 0]] {
        let with = |copy: &dyn Fn(&mut Disk)| {
            let mut disks = Made::raid5().disks(&Dm::all(3));
            let mut clone = Disk(disks[1].0.clone());
            copy(&mut clone);
            disks.insert(1 + order[0], clone);
            found(&mut disks)
        };
        let (good, copy) = (1 + order[1], 1 + order[0]);
        for (change, what) in [
            (
                &(|disk: &mut Disk| rewrite(disk, 1, &older)) as &dyn Fn(&mut Disk),
                "seqno 6, there 7",
            ),
            (&|disk| disk.0[START as usize * 512 + 16] = 19, "events 19, there 20"),
            (&|disk| disk.0[AREA + 700] ^= 1, "seqno none, there 7"),
            (&|disk| disk.0[START as usize * 512] = 0, "events none, there 20"),
            // As new by a superblock that is not of this member.
            (
                &|disk| disk.0[START as usize * 512 + 12..][..5].copy_from_slice(&[2, 0, 0, 0, 90]),
                "events none, there 20",
            ),
        ] {
            let found = with(change).expect("one is older");
            let given: Vec<usize> = found.members.iter().map(|one| one.pieces[0].given).collect();
            assert_eq!(given, [0, good, 3], "{what}");
            assert_eq!(found.older, [Older { given: copy, newer: good, what: what.into() }]);
        }
        let as_new = with(&|_| {}).expect_err("nothing tells them apart");
        assert_eq!(as_new, Untold::Copies(vec![1, 2]));
        assert!(as_new.to_string().contains("2 and 3 are copies"));
        // In use on its own since, without a change of the group.
        let both = with(&|disk| {
            rewrite(disk, 1, &older);
            disk.0[START as usize * 512 + 16] = 21;
        });
        assert_eq!(both, Err(Untold::Copies(vec![1, 2])));
    }
    // Of what the volume does not lie on any number may be there.
    let mut disks = Made::raid5().disks(&Dm::all(3));
    disks.push(Disk(disks[3].0.clone()));
    assert_eq!(assembled(&mut disks).expect("all are there").missing(), []);
}

/// An image in two ranges is put together of devices of one time, also where only the second has a copy.
#[test]
fn copies_are_told_apart_before_ranges_are_put_together() {
    let images = vec![vec![(0, 1, 1), (3, 4, 1)], vec![(1, 1, 2)], vec![(2, 1, 2)]];
    let made = Made { images, ..Made::raid5() };
    let older = Made { seqno: 6, ..made.clone() };
    for copy in [3, 4] {
        let mut disks = made.disks(&Dm::all(3));
        let mut clone = Disk(disks[3].0.clone());
        rewrite(&mut clone, 3, &older);
        disks.insert(copy, clone);
        let found = found(&mut disks).expect("one is older");
        let on = |place: usize| -> Vec<usize> {
            found.members[place].pieces.iter().map(|piece| piece.given).collect()
        };
        assert_eq!((on(0), found.members.len()), (vec![0, 7 - copy], 3));
        let what = "seqno 6, there 7".to_owned();
        assert_eq!(found.older, [Older { given: copy, newer: 7 - copy, what }]);
    }
    let mut disks = made.disks(&Dm::all(3));
    disks.insert(0, Disk(disks[3].0.clone()));
    assert_eq!(found(&mut disks), Err(Untold::Copies(vec![0, 4])));
    // Of a device with the first range events tell.
    let mut disks = made.disks(&Dm::all(3));
    let mut clone = Disk(disks[0].0.clone());
    clone.0[START as usize * 512 + 16] = 18;
    disks.insert(0, clone);
    let found = found(&mut disks).expect("one is older");
    assert_eq!(found.members[0].pieces.iter().map(|piece| piece.given).collect::<Vec<_>>(), [1, 4]);
}

#[test]
fn what_pvmove_moves_is_named() {
    let text = Made::raid5().text();
    let moving = text.replacen("stripes = [\"pv0\", 1]", "stripes = [\"pvmove0\", 0]", 1).replacen(
        "lv_rimage_1 {",
        "pvmove0 {\nid = \"MOVE\"\nstatus = [\"READ\", \"PVMOVE\", \"LOCKED\"]\nsegment1 {\n\
         start_extent = 0\nextent_count = 2\ntype = \"mirror\"\nmirror_count = 2\n\
         mirrors = [\"pv0\", 1, \"pv3\", 1]\n}\n}\nlv_rimage_1 {",
        1,
    );
    let group = group(&mut [physical(0, &moving, 512)]).expect("is read");
    assert!(group.logical.contains_key("pvmove0"));
    let volumes = group.volumes();
    assert_eq!(volumes.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["lv"]);
    let why = volumes[0].1.as_ref().expect_err("is not read");
    assert!(
        why.contains("a pvmove of lv_rimage_0 is under way or was interrupted (pvmove0)"),
        "{why}"
    );
}

#[test]
fn what_is_not_read_is_named() {
    let why = |made: Made| {
        let mut disks = made.disks(&Dm::all(3));
        volume(&mut disks).expect_err("is not read")
    };
    let raid5 = Made::raid5;
    for (made, words) in [
        (Made { kind: "raid7", ..raid5() }, "type raid7 are not read"),
        (Made { kind: "raid5+NEW", ..raid5() }, "flagged NEW"),
        (Made { kind: "raid5\u{1b}[31m", ..raid5() }, "type raid5\\u{1b}[31m are"),
        (Made { flags: ", \"NEW\\n\"", ..raid5() }, "flagged NEWn"),
        (Made { flags: ", \"RESHAPE_DELTA_DISKS_PLUS\"", ..raid5() }, "a reshape of it"),
        (Made { image_flags: ["", ", \"X\"", "", "", ""], ..raid5() }, "flagged X"),
        (Made { extents: 0, ..raid5() }, "cannot be"),
        (Made { extents: 5, ..raid5() }, "lv_rimage_0 is shorter"),
        (Made { kind: "raid0_meta", extents: 4, ..raid5() }, "cannot be"),
        (Made { extents: u64::MAX / 4, ..raid5() }, "cannot be"),
        (Made { images: vec![vec![(0, 9, 2)]; 3], ..raid5() }, "ranges of lv_rimage_0 cannot be"),
        (Made { images: vec![vec![(9, 1, 2)]; 3], ..raid5() }, "ranges of lv_rimage_0 cannot be"),
        (Made { segment: "device_count_ = 1\nreshape_count = 9\n", ..raid5() }, "cannot be"),
    ] {
        let mut made = made;
        if made.images[0][0].0 == 9 {
            made.images.iter_mut().for_each(|image| image[0].0 = 9);
            let text = made.text();
            let error = volume(&mut [physical(0, &text, 600)]).expect_err("is not read");
            assert!(error.contains(words), "{error}");
            continue;
        }
        let error = why(made);
        assert!(error.contains(words), "{words}: {error}");
    }
    // To be rebuilt: nothing of it is believed.
    let rebuilt = Made { image_flags: [", \"REBUILD\"", "", "", "", ""], ..raid5() };
    let assembly = assembled(&mut rebuilt.disks(&Dm::all(3))).expect("one may be lost");
    assert_eq!(assembly.missing(), [0]);
    // Room that a change of shape left is no part of the volume.
    let images = (0..3).map(|on| vec![(on, 1, 3)]).collect();
    let shaped = Made {
        kind: "raid5_ls+RESHAPE",
        extents: 6,
        segment: "reshape_count = 1\n",
        images,
        ..raid5()
    };
    let found: Volume = volume(&mut shaped.disks(&Dm::all(3))).expect("is read");
    assert_eq!((found.sectors, found.used), (4 * EXTENT, 2 * EXTENT));
    // Of copies every member has that room, as `lvconvert --stripes` left it: 48 extents with 4 of room of 6 members
    // are a volume of 24.
    let images = (0..4).map(|on| vec![(on, 1, 3)]).collect();
    let kind = "raid10+RESHAPE+RESHAPE_DATA_OFFSET";
    let segment = "reshape_count = 1\ndata_copies = 1\n";
    let copies = Made { kind, extents: 8, segment, images, ..shaped };
    let found: Volume = volume(&mut copies.disks(&Dm::all(4))).expect("is read");
    assert_eq!(found.layout, 0x102);
    assert_eq!((found.sectors, found.used), (4 * EXTENT, 2 * EXTENT));
}

/// Ranges whose lengths, alone or together, are more than can be counted: in an image, or in its metadata.
#[test]
fn lengths_that_cannot_be_counted_are_refused() {
    let text = Made::raid5().text();
    // That of the physical volumes.
    let text = text.replace("pe_count = 10\n", &format!("pe_count = {}\n", i64::MAX));
    let one = "segment1 {\nstart_extent = 0\nextent_count = 2\ntype = \"striped\"\nstripe_count = 1\n\
               stripes = [\"pv0\", 1]\n}\n";
    assert!(text.contains(one));
    let ranges = |count: u64, extents: u64| {
        let range = |n: u64| {
            one.replace("segment1", &format!("segment{}", n + 1))
                .replace("start_extent = 0", &format!("start_extent = {}", n * extents))
                .replace("extent_count = 2", &format!("extent_count = {extents}"))
        };
        (0..count).map(range).collect::<String>()
    };
    let meta =
        one.replace("extent_count = 2", "extent_count = 1").replace("\"pv0\", 1", "\"pv0\", 0");
    let long_meta = meta.replace("extent_count = 1", &format!("extent_count = {}", 1_u64 << 54));
    for (changed, of) in [
        (text.replacen(one, &ranges(3, 1 << 58), 1), "lv_rimage_0"),
        (text.replacen(one, &ranges(3, 1 << 50), 1), "lv_rimage_0"),
        (text.replacen(one, &ranges(1, 1 << 51), 1), "lv_rimage_0"),
        (text.replacen(&meta, &long_meta, 1), "lv_rmeta_0"),
    ] {
        assert_ne!(changed, text);
        let mut disks = Made::raid5().disks(&Dm::all(3));
        for (of, disk) in disks.iter_mut().enumerate() {
            let bytes = physical(of, &changed, 600).0;
            disk.0[..START as usize * 512].copy_from_slice(&bytes[..START as usize * 512]);
        }
        let error = told(&mut disks).expect_err("cannot be");
        assert!(error.contains(&format!("the ranges of {of} cannot be")), "{error}");
    }
}

/// Numbers that are the same in each run.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn any_bytes_under_right_checksums_are_answered() {
    let mut state = 5;
    let (mut read, mut put_together) = (0, 0);
    for round in 0..2000_u32 {
        let mut text = Made::raid5().text().into_bytes();
        for _ in 0..next(&mut state) % 3 {
            let at = next(&mut state) as usize % text.len();
            text[at] = b"0123456789\"{}[]=, \n\0\xff"[next(&mut state) as usize % 21];
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut disks = Made::raid5().disks(&Dm::all(3));
        for (of, disk) in disks.iter_mut().enumerate() {
            let first = physical(of, &text, 600).0;
            disk.0[..START as usize * 512].copy_from_slice(&first[..START as usize * 512]);
            for _ in 0..next(&mut state) % 2 {
                let at = START as usize * 512 + next(&mut state) as usize % 150;
                disk.0[at] = next(&mut state) as u8;
            }
        }
        let Some(_) = group(&mut disks) else { continue };
        read += 1;
        let Ok(told) = told(&mut disks) else { continue };
        let Ok(assembly) = assemble(&told, &Allowed::default()) else { continue };
        put_together += 1;
        for (n, place) in assembly.places.iter().enumerate() {
            let Some(given) = place.given else { continue };
            let own = told[given].superblock().expect("in service");
            assert_eq!(own.role(), Role::Member(n as u16), "round {round}");
            let end = place.data_offset.0 + place.sectors.0;
            assert!(end <= told[given].sectors.0, "round {round}: {end}");
        }
    }
    // The changes are not so many that nothing is left to look at.
    assert!(read > 1000 && put_together > 500, "{read}, {put_together}");
}

/// A superblock of md counts before LVM's. A label of GEOM hides a physical volume neither where it can be used nor
/// where it cannot.
#[test]
fn inspect_finds_it_beside_labels_of_geom() {
    let mut disk = physical(0, &Made::raid5().text(), 512);
    let is_whole = |disk: &mut Disk| inspect(disk).lvm.is_some_and(|seen| seen.is_whole());
    assert!(is_whole(&mut disk) && inspect(&mut disk).array().is_none());
    let end = disk.0.len() - 512;
    disk.0[end..][..12].copy_from_slice(b"GEOM::MIRROR");
    disk.0[end + 16] = 4;
    let found = inspect(&mut disk);
    assert!(found.lvm.is_some() && found.geom.is_none());
    // The label of LVM is no better.
    let mut both = Disk(disk.0.clone());
    both.0[700] ^= 1;
    let found = inspect(&mut both);
    assert!(found.lvm.is_none() && found.geom.is_some());
    // One that can be used.
    let label = Creation {
        layout: Layout::new(Level::Raid1, 2),
        name: "gm".into(),
        id: 1,
        devices: [(disk.sectors(), 3), (disk.sectors(), 4)].into(),
        sector: Sectors(1),
    };
    let label = label.labels().expect("can be").labels[0].bytes();
    disk.0[end..].fill(0);
    disk.0[end..][..label.len()].copy_from_slice(&label);
    let found = inspect(&mut disk);
    assert!(found.geom.as_ref().is_some_and(|seen| seen.whole().is_some()));
    assert!(is_whole(&mut disk) && found.array().is_some());
}
