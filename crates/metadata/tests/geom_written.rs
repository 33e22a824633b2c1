//! Labels of gmirror and graid3 as they go on being written: what each says of the state of an array, who an array is
//! started with by what labels say, and what a device is made ready by.

#[path = "md/memory.rs"]
mod memory;

use raidlab_core::consistency::{Allow, Wanted};
use raidlab_core::contract::{MetaIo, Record, SegmentList, Superblock as Said};
use raidlab_core::{Array, Config, Consistency, Layout, Level, MemberIndex, Sector, Sectors};
use raidlab_metadata::geom::{Beside, Creation, Geom, Label, look};
use raidlab_metadata::md::{Allowed, Cannot, Inspected, Joined, Why, assemble, inspect, join};
use raidlab_metadata::{MetadataFormat, RecordWriter};

use memory::Disk;

const SECTORS: u64 = 64;
const DIRTY: u64 = 1;
const SYNCHRONIZING: u64 = 2;
const FORCE_SYNC: u64 = 4;

/// New disks, of whose labels `change` makes what is to be there.
fn disks(level: Level, members: u16, change: impl Fn(usize, &mut Label)) -> Vec<Disk> {
    let creation = Creation {
        layout: Layout::new(level, members),
        name: "gm0".into(),
        id: 9,
        devices: (0..members).map(|disk| (Sectors(SECTORS), u32::from(disk) + 1)).collect(),
        sector: Sectors(1),
    };
    let disk = |(number, mut label): (usize, Label)| {
        change(number, &mut label);
        let mut bytes = vec![0x77; SECTORS as usize * 512 - 512];
        bytes.extend(label.bytes());
        Disk(bytes)
    };
    creation.labels().unwrap().labels.into_iter().enumerate().map(disk).collect()
}

fn inspected(disks: &mut [Disk]) -> Vec<Inspected> {
    disks.iter_mut().map(|disk| inspect(disk)).collect()
}

fn joined(disks: &mut [Disk]) -> Result<Joined, Cannot> {
    join(&inspected(disks), &Allowed::default())
}

/// What a disk says.
fn seen(disk: &mut Disk) -> (Label, Option<Beside>) {
    let seen = look(disk).expect("a label");
    (seen.whole().expect("whole").clone(), seen.beside)
}

/// An array that runs, as far as its labels go.
struct Running {
    disks: Vec<Disk>,
    /// The disk of each member.
    order: Vec<Option<usize>>,
    writer: RecordWriter,
    /// The newest that was told.
    said: Said,
}

impl Running {
    fn start(mut disks: Vec<Disk>, epoch: u64) -> Self {
        let joined = joined(&mut disks).expect("it starts");
        let order = joined.order.clone();
        let mut looked: Vec<_> =
            order.iter().map(|one| one.map(|one| Geom.examine(&mut disks[one]))).collect();
        let found = joined.found(&mut looked, joined.block, epoch);
        let mut config = Config::uniform(joined.layout.clone(), Sectors::ZERO);
        config.settings.consistency = Consistency::Resync;
        let allow = Allow { without: joined.absent, dirty_degraded: true, ..Allow::default() };
        let assembled = Array::assemble(&Wanted::from(&config), &found, allow).expect("enough");
        let mut writer = RecordWriter::new(assembled.identity, &assembled.config, &assembled.area);
        writer.begin_generation(epoch);
        for (member, looked) in (0..).map(MemberIndex).zip(&looked) {
            looked.iter().for_each(|looked| drop(writer.know(member, looked)));
        }
        let said = assembled.array.superblock();
        Self { disks, order, writer, said }
    }

    /// Tells these members a state, with an event more than the one before.
    fn tell(&mut self, members: &[u16], change: impl Fn(&mut Said)) {
        self.said.events += 1;
        change(&mut self.said);
        self.tell_again(members);
    }

    /// Tells these members the newest state.
    fn tell_again(&mut self, members: &[u16]) {
        for member in members.iter().copied().map(MemberIndex) {
            let (record, at, payload) =
                (Record::Superblock(self.said), Sector(0), SegmentList::EMPTY);
            let meta = MetaIo { member, record, at, payload, flush: false, fua: true };
            let mut head = vec![0; Geom.head()];
            let nothing = &mut std::iter::empty();
            let put =
                self.writer.encode(&Geom, &mut head, &meta, (0, 0, nothing)).expect("a label");
            let disk = &mut self.disks[self.order[member.at()].expect("there")];
            disk.0[put.at.bytes() as usize..][..put.bytes].copy_from_slice(&head[..put.bytes]);
        }
    }

    fn labels(&mut self) -> Vec<(u32, u64, u64)> {
        let of = |disk: &mut Disk| {
            let (label, _) = seen(disk);
            (label.syncid, label.device_flags, label.sync_offset)
        };
        self.disks.iter_mut().map(of).collect()
    }
}

#[test]
fn labels_say_the_state_of_the_array() {
    for level in [Level::Raid1, Level::Raid3] {
        let mut array = Running::start(disks(level, 3, |_, _| {}), 5);
        // Nothing new, for who is behind.
        array.tell_again(&[0, 1, 2]);
        assert_eq!(array.labels(), [(1, 0, 0); 3], "{level:?}");
        array.tell(&[0, 1, 2], |said| said.clean = false);
        assert_eq!(array.labels(), [(1, DIRTY, 0); 3], "{level:?}");
        // Not all of it is consistent, though it was stopped.
        array.tell(&[0, 1, 2], |said| (said.clean, said.synced_to) = (true, Sector(8)));
        assert_eq!(array.labels(), [(1, DIRTY, 0); 3], "{level:?}");
        array.tell(&[0, 1, 2], |said| said.synced_to = Sector::MAX);
        assert_eq!(array.labels(), [(1, 0, 0); 3], "{level:?}");
        // One leaves: told once, whatever else is said then.
        array.tell(&[0, 2], |said| said.failed = [0b010, 0]);
        array.tell(&[0, 2], |said| said.clean = false);
        assert_eq!(array.labels(), [(2, DIRTY, 0), (1, 0, 0), (2, DIRTY, 0)], "{level:?}");
        let left = if level == Level::Raid3 { 2 } else { 0 };
        let beside = Some(Beside { epoch: 5, left, out: 1 });
        assert_eq!(seen(&mut array.disks[0]).1, beside, "{level:?}");
        // It comes back, is filled, and is whole.
        array.tell(&[0, 1, 2], |said| {
            (said.failed, said.rebuilding, said.rebuilt_to) = ([0; 2], [0b010, 0], Sector(24));
        });
        let filling = [(2, DIRTY, 0), (2, SYNCHRONIZING, 24 * 512), (2, DIRTY, 0)];
        assert_eq!(array.labels(), filling, "{level:?}");
        array.tell(&[0, 1, 2], |said| said.rebuilt_to = Sector::MAX);
        assert_eq!(
            array.labels()[1],
            (2, SYNCHRONIZING, 63 * 512),
            "{level:?}: no more than there is"
        );
        array.tell(&[0, 1, 2], |said| (said.rebuilding, said.clean) = ([0; 2], true));
        assert_eq!(array.labels(), [(2, 0, 0); 3], "{level:?}");
        // Who left before may be in service no more under the same syncid.
        array.tell(&[0, 2], |said| said.failed = [0b010, 0]);
        assert_eq!(array.labels(), [(3, 0, 0), (2, 0, 0), (3, 0, 0)], "{level:?}");
    }
}

/// All that a label says besides the state stays as it was, in its version.
#[test]
fn labels_stay_as_they_were_otherwise() {
    for (level, versions) in [(Level::Raid1, 0..=4), (Level::Raid3, 0..=5)] {
        for version in versions {
            let change = |_: usize, one: &mut Label| {
                one.version = version;
                one.array_flags = 1;
                one.device_flags = if level == Level::Raid1 { 16 | 64 } else { 8 };
                one.provider = "ada1p2".into();
            };
            let mut before = disks(level, 3, change);
            let labels: Vec<_> = before.iter_mut().map(|disk| seen(disk).0).collect();
            let mut array = Running::start(before, 5);
            array.tell(&[0, 1, 2], |said| said.clean = false);
            for (disk, before) in array.disks.iter_mut().zip(labels) {
                let mut expected = before;
                expected.device_flags |= DIRTY;
                assert_eq!(seen(disk).0, expected, "{level:?}, version {version}");
                assert!(disk.0[..63 * 512].iter().all(|byte| *byte == 0x77));
            }
        }
    }
}

#[test]
fn a_syncid_that_cannot_be_raised_raises_the_genid() {
    let mut array = Running::start(disks(Level::Raid1, 2, |_, one| one.syncid = u32::MAX), 5);
    array.tell(&[0], |said| said.failed = [0b10, 0]);
    let one = seen(&mut array.disks[0]).0;
    assert_eq!((one.genid, one.syncid), (1, 1));
    assert_eq!(joined(&mut array.disks).unwrap().order, [Some(0), None]);
}

/// Who is missing at a start may come back: the syncid is raised with the first that is told, for each start.
#[test]
fn a_start_without_a_member_raises_the_syncid() {
    let mut old = disks(Level::Raid1, 2, |_, _| {});
    let mut array = Running::start(vec![old.remove(0)], 5);
    array.tell_again(&[0]);
    assert_eq!(array.labels(), [(1, 0, 0)], "nothing is written yet");
    array.tell(&[0], |said| said.clean = false);
    assert_eq!(array.labels(), [(2, DIRTY, 0)]);
    array.tell(&[0], |said| said.clean = true);
    // It says so itself from then on.
    let joined = joined(&mut array.disks).unwrap();
    assert_eq!((joined.order, joined.absent), (vec![Some(0), None], [0; 2]));
    let mut array = Running::start(array.disks, 6);
    array.tell(&[0], |said| said.clean = false);
    assert_eq!(array.labels(), [(3, DIRTY, 0)]);
}

/// Each half was started without the other: both raised the same syncid.
#[test]
fn halves_that_each_went_on_are_told_apart() {
    let mut halves =
        disks(Level::Raid1, 2, |_, _| {}).into_iter().enumerate().map(|(number, half)| {
            let mut array = Running::start(vec![half], 5 + number as u64);
            array.tell(&[0], |said| said.clean = false);
            array.disks.remove(0)
        });
    let mut both: Vec<Disk> = [halves.next(), halves.next()].into_iter().flatten().collect();
    assert_eq!(seen(&mut both[0]).0.syncid, seen(&mut both[1]).0.syncid);
    let all = inspected(&mut both);
    for decided in
        [join(&all, &Allowed::default()).map(drop), assemble(&all, &Allowed::default()).map(drop)]
    {
        assert_eq!(decided, Err(Cannot::Diverged(vec![0], vec![1])));
    }
    let one = Allowed { without: vec![1], ..Allowed::default() };
    assert_eq!(join(&all, &one).unwrap().order, [Some(0), None]);
}

/// Also beside a disk that says nothing of its own, wherever among them it is given; that one is of neither half.
#[test]
fn halves_are_told_apart_beside_one_that_says_nothing() {
    for (epochs, halves) in
        [([0, 5, 6], ([1], [2])), ([5, 0, 6], ([0], [2])), ([5, 6, 0], ([0], [1]))]
    {
        let mut disks = disks(Level::Raid1, 3, |_, _| {});
        for (disk, epoch) in disks.iter_mut().zip(epochs) {
            let at = disk.0.len() - 512;
            Beside { epoch, left: 0, out: 0 }.put(&mut disk.0[at..]);
        }
        let (one, other) = halves;
        let diverged = Cannot::Diverged(one.to_vec(), other.to_vec());
        assert_eq!(joined(&mut disks).map(drop), Err(diverged), "{epochs:?}");
    }
}

/// A graid3 needs all but one: that only some of them were told who left must not cost the array.
#[test]
fn who_was_not_told_that_another_member_left_is_in_service() {
    for told in [&[0][..], &[3], &[1, 4], &[0, 1, 3], &[0, 1, 3, 4]] {
        let mut array = Running::start(disks(Level::Raid3, 5, |_, _| {}), 5);
        array.tell(&[0, 1, 2, 3, 4], |said| said.clean = false);
        array.tell(told, |said| said.failed = [0b00100, 0]);
        let all = inspected(&mut array.disks);
        let decided =
            join(&all, &Allowed::default()).unwrap_or_else(|why| panic!("{told:?}: {why}"));
        let order = [Some(0), Some(1), None, Some(3), Some(4)];
        assert_eq!((&decided.order[..], decided.absent), (&order[..], [0; 2]), "{told:?}");
        let allowed = Allowed { dirty_degraded: true, ..Allowed::default() };
        let read = assemble(&all, &allowed).unwrap_or_else(|why| panic!("{told:?}: {why}"));
        assert_eq!(read.missing(), [2], "{told:?}");
        // What goes on from there brings all of them to what some had.
        let mut array = Running::start(array.disks, 6);
        array.tell_again(&[0, 1, 3, 4]);
        let syncids: Vec<u32> = array.labels().iter().map(|one| one.0).collect();
        assert_eq!(syncids, [2, 2, 1, 2, 2], "{told:?}");
    }
    // Two behind, or behind by labels of FreeBSD's, is out of date.
    let mut array = Running::start(disks(Level::Raid3, 3, |_, _| {}), 5);
    array.tell(&[0, 1], |said| said.failed = [0b100, 0]);
    let mut label = seen(&mut array.disks[1]).0;
    label.syncid = 1;
    array.disks[1].0[63 * 512..].copy_from_slice(&label.bytes());
    assert_eq!(joined(&mut array.disks).unwrap().order, [Some(0), Some(1), None]);
    label.syncid = 0;
    array.disks[1].0[63 * 512..].copy_from_slice(&label.bytes());
    assert!(matches!(joined(&mut array.disks), Err(Cannot::TooFew { .. })));
    let mut plain = disks(Level::Raid3, 3, |number, one| one.syncid = u32::from(number == 0));
    assert!(matches!(joined(&mut plain), Err(Cannot::TooFew { .. })));
}

/// Whose label is the newest decides of what shape the array is: it does not say who is in service and is then left out
/// for its shape, since the next start would ask it again.
#[test]
fn the_newest_label_decides_the_shape() {
    let mut disks = disks(Level::Raid3, 3, |number, one| {
        if number == 0 {
            (one.syncid, one.array_bytes) = (2, one.array_bytes - 2048);
        }
    });
    let at = disks[0].0.len() - 512;
    Beside { epoch: 5, left: 1, out: 0 }.put(&mut disks[0].0[at..]);
    let refused = joined(&mut disks).map(|it| it.order);
    assert!(matches!(refused, Err(Cannot::TooFew { .. })), "{refused:?}");
    let all = inspected(&mut disks);
    let others = Allowed { without: vec![0], ..Allowed::default() };
    assert_eq!(join(&all, &others).unwrap().order, [None, Some(1), Some(2)]);
}

/// A copy of a disk from before somebody left, beside the disk, is not one that was not told.
#[test]
fn a_copy_of_before_is_out_of_date_beside_who_was_told() {
    for first in [true, false] {
        let mut array = Running::start(disks(Level::Raid3, 3, |_, _| {}), 5);
        let copy = Disk(array.disks[0].0.clone());
        array.tell(&[0, 1], |said| said.failed = [0b100, 0]);
        let mut disks = array.disks;
        let place = if first { 0 } else { disks.len() };
        disks.insert(place, copy);
        let joined = joined(&mut disks).unwrap();
        let behind = usize::from(first);
        assert_eq!(joined.order, [Some(behind), Some(1 + behind), None]);
        let out = joined.out.iter().find(|out| out.given == place).unwrap();
        let told = out.told(&"the copy");
        assert!(told.contains("out of date: its syncid"), "{told}");
    }
}

/// A state that disks are found in: their syncids and flags, and which are given.
type Row = (Level, [(u32, u64); 3], &'static [usize], &'static str);

/// Members in service by the disk each has, `-` none, `r` after those being synchronised, `~` after who is one behind;
/// then whether redundancy is consistent, and members that only the administrator can do without.
const ROWS: [Row; 14] = [
    (Level::Raid1, [(1, 0), (1, 0), (1, 0)], &[0, 1, 2], "0 1 2, clean"),
    (Level::Raid1, [(1, 0), (1, 0), (1, 0)], &[2, 1], "1 0 -, clean, without 2"),
    (Level::Raid1, [(1, 1), (1, 1), (1, 1)], &[0, 1, 2], "2 1 0, dirty"),
    (Level::Raid1, [(1, 0), (1, 1), (1, 1)], &[0, 1, 2], "0 2 1, dirty"),
    (Level::Raid1, [(2, 0), (1, 0), (2, 0)], &[0, 1, 2], "0 2 -, clean"),
    (Level::Raid1, [(2, 1), (1, 1), (1, 0)], &[0, 1, 2], "0 - -, dirty"),
    (Level::Raid1, [(2, 0), (1, 0), (1, 0)], &[0, 1], "0 - -, clean, without 2"),
    (Level::Raid1, [(1, SYNCHRONIZING), (1, 0), (1, 0)], &[0, 1, 2], "1 2 0r, clean"),
    (Level::Raid1, [(1, FORCE_SYNC), (1, 1), (1, 1)], &[0, 1, 2], "2 1 0r, dirty"),
    (Level::Raid3, [(1, 0), (1, 0), (1, 0)], &[2, 0, 1], "1 2 0, clean"),
    (Level::Raid3, [(1, 1), (1, 1), (1, 1)], &[0, 1, 2], "0 1 2, dirty"),
    (Level::Raid3, [(1, 0), (1, 1), (1, 0)], &[0, 1, 2], "0 1r 2, clean"),
    (Level::Raid3, [(2, 0), (2, 0), (1, 0)], &[0, 1, 2], "0 1 -, clean"),
    (Level::Raid3, [(1, 1), (1, SYNCHRONIZING), (1, 1)], &[0, 1, 2], "0 1r 2, dirty"),
];

#[test]
fn who_an_array_is_started_with() {
    for (level, labels, given, expected) in ROWS {
        let mut all = disks(level, 3, |number, one| {
            (one.syncid, one.device_flags) = labels[number];
            one.sync_offset = if one.device_flags & SYNCHRONIZING > 0 { 8192 } else { 0 };
        });
        let mut offered: Vec<Disk> = given.iter().map(|one| Disk(all[*one].0.clone())).collect();
        let one = joined(&mut offered).unwrap_or_else(|why| panic!("{labels:?}, {given:?}: {why}"));
        let mut looked: Vec<_> = (one.order.iter())
            .map(|place| place.map(|place| Geom.examine(&mut offered[place])))
            .collect();
        let found = one.found(&mut looked, 1, 0);
        let states: Vec<Option<Said>> = (found.members.iter())
            .map(|member| member.superblock.whole().map(|carried| carried.superblock))
            .collect();
        let newest = states.iter().flatten().max_by_key(|said| said.events).expect("some");
        let told = |(place, state): (usize, &Option<Said>)| match (one.order[place], state) {
            (Some(disk), Some(state)) => {
                let fills = newest.rebuilding[0] >> place & 1 == 1;
                let is_behind = state.events < newest.events;
                format!(
                    "{disk}{}{}",
                    if fills { "r" } else { "" },
                    if is_behind { "~" } else { "" }
                )
            }
            _ => "-".to_owned(),
        };
        let mut text = states.iter().enumerate().map(told).collect::<Vec<_>>().join(" ");
        text.push_str(if newest.clean { ", clean" } else { ", dirty" });
        for place in (0..3).filter(|place| one.absent[0] >> place & 1 == 1) {
            text.push_str(&format!(", without {place}"));
        }
        assert_eq!(text, expected, "{level:?}, {labels:?}, {given:?}");
        let filled = if text.contains('r') { newest.rebuilt_to } else { Sector(16) };
        let resumes = labels.iter().any(|(_, flags)| flags & SYNCHRONIZING > 0);
        assert_eq!(filled == Sector(16), resumes || !text.contains('r'), "{text}");
        all.clear();
    }
}

#[test]
fn what_labels_forbid_is_not_written() {
    for (level, flags) in [(Level::Raid1, 2), (Level::Raid3, 8)] {
        let why = joined(&mut disks(level, 3, |_, one| one.array_flags = flags)).unwrap_err();
        assert!(matches!(&why, Cannot::NotWritten(what) if what.contains("NOFAILSYNC")), "{why}");
        // Nor is one synchronised that is not to be by itself.
        let change = |number, one: &mut Label| {
            one.array_flags = 1;
            one.device_flags = if number == 2 { SYNCHRONIZING } else { 0 };
        };
        let joined = joined(&mut disks(level, 3, change)).unwrap();
        assert_eq!(joined.order, [Some(0), Some(1), None], "{level:?}");
        assert!(matches!(joined.out[0].why, Why::Label(_)));
    }
}

/// Where nothing is synchronised by itself, whose rebuild was asked for need not be asked for again.
#[test]
fn a_rebuild_that_was_asked_for_goes_on() {
    for level in [Level::Raid1, Level::Raid3] {
        let mut array = Running::start(disks(level, 3, |_, one| one.array_flags = 1), 5);
        array.tell(&[0, 1], |said| said.failed = [0b100, 0]);
        array.tell(&[0, 1, 2], |said| {
            (said.failed, said.rebuilding, said.rebuilt_to) = ([0; 2], [0b100, 0], Sector(24));
        });
        assert_eq!(array.labels()[2], (2, SYNCHRONIZING | FORCE_SYNC, 24 * 512), "{level:?}");
        let again = joined(&mut array.disks).unwrap();
        let order = [Some(0), Some(1), Some(2)];
        assert_eq!((&again.order[..], again.filled_to(2)), (&order[..], 0), "{level:?}");
    }
}

/// That who was not told is in service holds of graid3 only: of a mirror another one may have left, too.
#[test]
fn who_was_not_told_is_out_of_a_mirror() {
    for (level, order) in
        [(Level::Raid1, [Some(0), Some(2), None]), (Level::Raid3, [Some(0), Some(1), Some(2)])]
    {
        let mut all = disks(level, 3, |number, one| one.syncid = 2 - u32::from(number == 1));
        for number in [0, 2] {
            Beside { epoch: 5, left: 3, out: 1 }.put(&mut all[number].0[63 * 512..]);
        }
        assert_eq!(joined(&mut all).unwrap().order, order, "{level:?}");
        assert!(assemble(&inspected(&mut all), &Allowed::default()).is_ok(), "{level:?}");
    }
}

/// A fresh disk has no label until it is named, and then that of its place.
#[test]
fn a_device_is_made_ready_for_a_place() {
    for level in [Level::Raid1, Level::Raid3] {
        let change = |_: usize, one: &mut Label| {
            (one.device_flags, one.provider) =
                (if level == Level::Raid1 { 16 } else { 8 }, "ada0".into());
        };
        let mut array = Running::start(disks(level, 3, change), 5);
        array.tell(&[0, 2], |said| said.failed = [0b010, 0]);
        let model = array.writer.places(MemberIndex(0)).clone();
        let mut small = Disk(vec![0; 63 * 512]);
        let why = Geom.ready(&mut small, &model, (1, 77), &[]).unwrap_err();
        assert!(why.contains("and needs"), "{why}");
        // Whatever stands where the label will be, a label that is not seen beside a superblock of md's too.
        let nothing = Geom.ready(&mut Disk(vec![0; 64 * 512]), &model, (1, 77), &[]).unwrap();
        assert_eq!(nothing.pieces, [(Sector(63), vec![0; 512])], "{level:?}");
        // One that was a member of another array, and is larger.
        let mut fresh = disks(level, 3, |_, one| one.id = 3).remove(1);
        let label = fresh.0.split_off(63 * 512);
        fresh.0.resize(70 * 512, 0x77);
        fresh.0.extend(&label);
        let ready = Geom.ready(&mut fresh, &model, (1, 77), &[]).unwrap();
        for (at, piece) in &ready.pieces {
            fresh.0[at.bytes() as usize..][..piece.len()].copy_from_slice(piece);
        }
        assert_eq!(look(&mut fresh), None, "{level:?}");
        array.writer.set_places(MemberIndex(1), ready.places);
        array.disks[1] = fresh;
        array.tell(&[0, 1, 2], |said| (said.failed, said.rebuilding) = ([0; 2], [0b010, 0]));
        let (old, new) = (seen(&mut array.disks[0]).0, seen(&mut array.disks[1]).0);
        let expected = Label {
            device_flags: SYNCHRONIZING,
            provider: String::new(),
            provider_bytes: 71 * 512,
            disk: if level == Level::Raid1 { 77 } else { 0 },
            number: if level == Level::Raid3 { 1 } else { 0 },
            ..old
        };
        assert_eq!(new, expected, "{level:?}");
        assert_eq!(
            joined(&mut array.disks).unwrap().filled_to(if level == Level::Raid1 { 2 } else { 1 }),
            0
        );
    }
}
