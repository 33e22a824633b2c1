//! Replays of a row of which data stand alone behind parity: a log has parity of a row only while all of it is in
//! service, and rows stand in it until much later. P of the row fails between two entries, and is rebuilt or not; or
//! the second entry is one of write-back mode of md, which is on no member before its parity is logged, too.

use raidlab_core::geometry::{Geometry, Parity};
use raidlab_core::{Sector, Sectors};
use raidlab_metadata::Source;
use raidlab_metadata::md::journal::{Replay, ReplayDevices, begin_anew};
use raidlab_metadata::md::{
    Allowed, Features, Inspected, Joined, Journal, JournalFound, Md, Role, Superblock, join,
};

use super::device::{Disk, disk, raid5, seen};

/// Chunks of data in a row.
const CHUNKS: u16 = 3;
/// Levels with one parity, and with two.
const LEVELS: [i32; 2] = [5, 6];
/// The row that is written, in the second stripe, whose chunks have 128 sectors.
const ROW: u64 = 128 + 8;
const STRIPE: u64 = 1;
const PAGE: usize = 4096;
const START: u64 = 2048;
const RING: u64 = 2048;

fn members(level: i32) -> u16 {
    CHUNKS + if level == 6 { 2 } else { 1 }
}

/// The superblock of a member, or behind them of the log device.
fn superblock(level: i32, place: u16) -> Superblock {
    let members = members(level);
    let mut one = raid5(members, place);
    one.roles[usize::from(members)] = Role::Journal;
    let data_size = if place == members { RING } else { one.data_size };
    Superblock { level, features: Features::JOURNAL, data_size, ..one }
}

struct Array {
    level: i32,
    joined: Joined,
    geometry: Parity,
}

impl Array {
    fn new(level: i32) -> Self {
        let all = (0..=members(level)).map(|place| seen(&superblock(level, place)));
        let joined = join(&all.collect::<Vec<Inspected>>(), &Allowed::default()).unwrap();
        let sizes = vec![Sectors(1024); usize::from(members(level))];
        let Ok(Geometry::Parity(geometry)) = Geometry::new(&joined.layout, &sizes) else {
            unreachable!("both levels have parity")
        };
        Self { level, joined, geometry }
    }

    /// The members with the chunks of the stripe, with P, with Q.
    fn order(&self) -> Vec<usize> {
        let data = (0..CHUNKS).map(|k| self.geometry.data_member(STRIPE, k).at());
        let q = self.geometry.q_member(STRIPE).map(|q| q.at());
        data.chain([self.p()]).chain(q).collect()
    }

    fn p(&self) -> usize {
        self.geometry.p_member(STRIPE).at()
    }

    /// Whether the journal is replayed without these members.
    fn replays(&self, devices: &mut Devices, out: u64) -> bool {
        let Self { joined, geometry, .. } = self;
        Replay { joined, geometry, out: [out, 0], devices, md: Md { block: 8 } }.run(1).is_ok()
    }
}

/// What each byte of a chunk's page is before, with parity, and where it stands alone.
const VERSIONS: [[u8; CHUNKS as usize]; 3] =
    [[0x13, 0x14, 0x15], [0x25, 0x26, 0x27], [0xc9, 0xca, 0xcb]];

/// P, and Q by turned bits: as good as md's where one chunk is missing.
fn parities(data: impl Iterator<Item = (u8, u8)>) -> [u8; 2] {
    data.fold([0; 2], |[p, q], (byte, exponent)| {
        [p ^ byte, q ^ byte.rotate_left(u32::from(exponent))]
    })
}

/// The row's pages by members, the log device, and writes until the power goes.
#[derive(Clone)]
struct Devices {
    members: Vec<Vec<u8>>,
    log: Vec<u8>,
    left: usize,
}

impl Devices {
    fn count(&mut self) -> Result<(), &'static str> {
        self.left = self.left.checked_sub(1).ok_or("the power is gone")?;
        Ok(())
    }
}

impl ReplayDevices for &mut Devices {
    type Error = &'static str;

    fn read(&mut self, member: usize, at: Sector, into: &mut [u8]) -> Result<(), &'static str> {
        assert_eq!(at, Sector(START + ROW));
        into.copy_from_slice(&self.members[member]);
        Ok(())
    }

    fn write(&mut self, member: usize, at: Sector, bytes: &[u8]) -> Result<(), &'static str> {
        self.count()?;
        assert_eq!(at, Sector(START + ROW));
        self.members[member].copy_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self, _: usize) -> Result<(), &'static str> {
        Ok(())
    }

    fn with_log<T>(&mut self, look: impl FnOnce(&mut dyn Source) -> T) -> T {
        let mut log = Disk(std::mem::take(&mut self.log));
        let seen = look(&mut log);
        self.log = log.0;
        seen
    }

    fn write_log(&mut self, at: Sector, bytes: &[u8]) -> Result<(), &'static str> {
        self.count()?;
        self.log[at.bytes() as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn parities(
        &mut self,
        sources: &[&[u8]],
        exponents: &[u8],
        (p, q): (&mut [u8], Option<&mut [u8]>),
    ) -> Result<(), &'static str> {
        let bytes = sources.iter().map(|source| source[0]).zip(exponents.iter().copied());
        let [one, other] = parities(bytes);
        p.fill(one);
        if let Some(q) = q {
            q.fill(other);
        }
        Ok(())
    }

    fn recover(
        &mut self,
        lost: &[u8],
        both: [Option<&[u8]>; 2],
        (others, exponents): (&[&[u8]], &[u8]),
        [into, _]: [&mut [u8]; 2],
    ) -> Result<(), &'static str> {
        let [exponent] = lost else { return Err("one is missing at most") };
        let bytes = others.iter().map(|other| other[0]).zip(exponents.iter().copied());
        let [p, q] = parities(bytes);
        into.fill(match both {
            [Some(known), _] => known[0] ^ p,
            [None, Some(known)] => (known[0] ^ q).rotate_right(u32::from(*exponent)),
            [None, None] => return Err("no parity is there"),
        });
        Ok(())
    }
}

/// What reached the members before the power was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reached {
    /// Both entries.
    All,
    /// The second one, and of the first what was in the cache of a drive is lost.
    Second,
    /// Nothing of the second, as in write-back mode, and of the first parity alone.
    Parity,
    /// Nothing of the second, and of the first data alone.
    Data,
    /// The first entry.
    First,
    /// Nothing: all of it was in the caches of drives.
    Nothing,
}

use Reached::{All, Data, First, Nothing, Parity as OnlyParity, Second};

/// What stands where: chunks that were logged with parity, and those that then were alone; P is out of service, or was
/// rebuilt since.
#[derive(Clone, Copy, Debug)]
struct Case {
    level: i32,
    first: u64,
    second: u64,
    reached: Reached,
    p_is_back: bool,
    /// What the row held before, and what stands alone.
    old: [u8; CHUNKS as usize],
    new: [u8; CHUNKS as usize],
}

fn has(set: u64, chunk: u16) -> bool {
    set >> chunk & 1 == 1
}

impl Case {
    /// All sets of chunks, of newer data that are others than the row held before, and of such that are the same.
    fn all(level: i32) -> impl Iterator<Item = Self> {
        // Of one parity two members are out only if one of them was out, and is back with all that was written without.
        let reached: &[_] = match level {
            6 => &[All, Second, OnlyParity, Data, First, Nothing],
            _ => &[All, OnlyParity, Data, First, Nothing],
        };
        let p: &[_] = if level == 6 { &[false, true] } else { &[true] };
        let [old, _, other] = VERSIONS;
        let sets = (1..8).flat_map(|first| (1..8).map(move |second| (first, second)));
        sets.flat_map(move |(first, second)| {
            reached.iter().flat_map(move |reached| {
                p.iter().flat_map(move |p| {
                    let (reached, p_is_back) = (*reached, *p);
                    [other, old].map(|new| Self {
                        level,
                        first,
                        second,
                        reached,
                        p_is_back,
                        old,
                        new,
                    })
                })
            })
        })
    }

    /// Whether the log and the members, without this chunk, may have come about in two ways that differ in it: with one
    /// parity, the first data alone on their members, and newer data that replace none of them, as they were before.
    /// They look like all of it on the members.
    fn is_not_told(&self, lost: Option<u16>) -> bool {
        let is_rest = lost.is_some_and(|k| !has(self.first | self.second, k));
        let is_same = self.old == self.new;
        self.level == 5
            && self.reached == Data
            && is_same
            && is_rest
            && self.first & self.second == 0
    }

    /// The byte of a chunk with those of the first entry, and with those of the second one.
    fn byte(&self, chunk: u16, (first, second): (bool, bool)) -> u8 {
        let at = usize::from(chunk);
        match chunk {
            _ if second && has(self.second, chunk) => self.new[at],
            _ if first && has(self.first, chunk) => VERSIONS[1][at],
            _ => self.old[at],
        }
    }

    fn left(&self, array: &Array) -> Devices {
        let row = |entries: (bool, bool)| -> Vec<u8> {
            let data: Vec<u8> = (0..CHUNKS).map(|k| self.byte(k, entries)).collect();
            let with = (0..CHUNKS).map(|k| array.geometry.q_exponent(STRIPE, k));
            let both = parities(data.iter().copied().zip(with));
            data.into_iter().chain(both).take(usize::from(members(self.level))).collect()
        };
        let (data, parity) = match self.reached {
            All => ((true, true), (true, true)),
            Second => ((false, true), (true, true)),
            OnlyParity => ((false, false), (true, false)),
            Data => ((true, false), (false, false)),
            First => ((true, false), (true, false)),
            Nothing => ((false, false), (false, false)),
        };
        let data = (0..CHUNKS).map(|k| self.byte(k, data));
        let on_members = data.chain(row(parity).split_off(usize::from(CHUNKS)));
        let mut members = vec![Vec::new(); usize::from(members(self.level))];
        for (member, byte) in array.order().into_iter().zip(on_members) {
            members[member] = vec![byte; PAGE];
        }
        if !self.p_is_back {
            members[array.p()].fill(0xee);
        }
        Devices { members, log: self.log(&row((true, false))), left: usize::MAX }
    }

    /// The log device; the first entry's parity is that of this row.
    fn log(&self, row: &[u8]) -> Vec<u8> {
        let one = superblock(self.level, members(self.level));
        let begun = begin_anew(&one.array, &JournalFound::default(), 7).1;
        let mut log = disk(&one, &[(START, begun)]);
        let mut journal = Journal::of(&mut log, &one).unwrap();
        let first = (0..).zip(row).filter(|(role, _)| *role >= CHUNKS || has(self.first, *role));
        let first: Vec<(u16, u8)> = first.map(|(role, byte)| (role, *byte)).collect();
        let second = (0..CHUNKS).filter(|k| has(self.second, *k));
        let second: Vec<(u16, u8)> = second.map(|k| (k, self.new[usize::from(k)])).collect();
        for entry in [first, second] {
            let roles = entry.iter().fold(0, |roles, (role, _)| roles | 1 << role);
            let rows = journal.rows(&journal.entry(ROW, [roles, 0])).unwrap();
            let pages: Vec<_> = entry.iter().map(|(_, byte)| vec![*byte; PAGE]).collect();
            let sum = |page: &Vec<u8>| journal.sum(std::iter::once(&page[..]));
            let sums: Vec<u32> = pages.iter().map(sum).collect();
            journal.begin();
            journal.add(&rows, 0, &sums);
            let mut bytes = vec![0; PAGE];
            let at = journal.put(&mut bytes).unwrap().at.bytes() as usize;
            bytes.extend(pages.concat());
            log.0[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        log.0
    }

    /// Members that are out of service besides one with a chunk.
    fn out(&self, array: &Array, lost: Option<u16>) -> u64 {
        let p = if self.p_is_back { 0 } else { 1 << array.p() };
        p | lost.map_or(0, |k| 1 << array.geometry.data_member(STRIPE, k).at())
    }

    /// Everything that was logged is there, and what is lost is computed of it.
    fn holds(&self, array: &Array, devices: &Devices, lost: Option<u16>) -> bool {
        let order = array.order();
        let byte = |role: u16| devices.members[order[usize::from(role)]][0];
        let data = |k: u16| self.byte(k, (true, true));
        let with = (0..CHUNKS).map(|k| (data(k), array.geometry.q_exponent(STRIPE, k)));
        let [p, q] = parities(with);
        (0..CHUNKS).filter(|k| Some(*k) != lost).all(|k| byte(k) == data(k))
            && (self.level == 5 || byte(CHUNKS + 1) == q)
            && (!self.p_is_back || byte(CHUNKS) == p)
    }
}

/// A chunk that no entry has, and that is missing, is what it was; so is one that the first entry has.
#[test]
fn what_is_missing_is_not_made_of_parity_that_is_older_than_the_rest() {
    for array in LEVELS.map(Array::new) {
        let level = array.level;
        let (mut known, mut not_told) = (0, 0);
        for case in Case::all(level) {
            for lost in [None, Some(0), Some(1), Some(2)] {
                let mut devices = case.left(&array);
                assert!(array.replays(&mut devices, case.out(&array, lost)), "{case:?}, {lost:?}");
                let is_told = !case.is_not_told(lost);
                // What cannot be told is taken as on the members.
                assert_eq!(
                    case.holds(&array, &devices, lost),
                    is_told,
                    "{case:?}, without {lost:?}"
                );
                known += u32::from(is_told);
                not_told += u32::from(!is_told);
            }
        }
        // The two others have one entry each.
        let expected =
            if level == 5 { (7 * 7 * 5 * 2 * 4 - 6, 6) } else { (7 * 7 * 6 * 2 * 2 * 4, 0) };
        assert_eq!((known, not_told), expected, "raid{level}");
    }
}

/// With one parity the same bytes are left of two histories in which the missing chunk is not the same, so that no
/// replay can tell it.
#[test]
fn two_histories_of_a_row_with_one_parity_leave_the_same_bytes() {
    let array = Array::new(5);
    let [old, first, _] = VERSIONS;
    let (reached, p_is_back) = (Data, true);
    let one = Case { level: 5, first: 0b001, second: 0b100, reached, p_is_back, old, new: old };
    assert!(one.is_not_told(Some(1)));
    // What the first entry made of parity was there in the others before, and went with the second one.
    let by = old[0] ^ first[0];
    let other = Case { reached: All, old: [old[0], old[1] ^ by, old[2] ^ by], ..one };
    let left = [one, other].map(|case| {
        let mut devices = case.left(&array);
        devices.members[array.order()[1]].clear();
        (devices.members, devices.log)
    });
    assert!(left[0] == left[1]);
    assert_ne!(one.byte(1, (true, true)), other.byte(1, (true, true)));
}

/// The power is cut after each number of writes of a replay, and the member with any chunk is lost then.
#[test]
fn a_member_that_is_lost_after_a_replay_was_cut_off_is_what_it_was() {
    let mut cut_off = 0;
    for array in LEVELS.map(Array::new) {
        for case in Case::all(array.level).filter(|case| case.reached == All) {
            let left = case.left(&array);
            for most in 0..12 {
                let mut cut = Devices { left: most, ..left.clone() };
                cut_off += u32::from(!array.replays(&mut cut, case.out(&array, None)));
                for lost in (0..CHUNKS).map(Some) {
                    let mut devices = Devices { left: usize::MAX, ..cut.clone() };
                    let told =
                        || format!("{case:?}, cut off after {most} writes, without {lost:?}");
                    assert!(array.replays(&mut devices, case.out(&array, lost)), "{}", told());
                    // A replay that had ended has nothing left of the row.
                    assert!(case.holds(&array, &devices, lost), "{}", told());
                }
            }
        }
    }
    assert!(cut_off > 100, "{cut_off}");
}

/// The same of a chunk that no entry has, and that was missing before.
#[test]
fn a_replay_that_was_cut_off_is_done_again_as_it_was_begun() {
    let mut cut_off = 0;
    for array in LEVELS.map(Array::new) {
        for case in Case::all(array.level).filter(|case| case.old == case.new) {
            let rest = (0..CHUNKS).filter(|k| !has(case.first | case.second, *k)).map(Some);
            for lost in rest.filter(|lost| !case.is_not_told(*lost)) {
                let (left, out) = (case.left(&array), case.out(&array, lost));
                for most in 0..12 {
                    let mut devices = Devices { left: most, ..left.clone() };
                    cut_off += u32::from(!array.replays(&mut devices, out));
                    devices.left = usize::MAX;
                    let told =
                        || format!("{case:?}, cut off after {most} writes, without {lost:?}");
                    assert!(array.replays(&mut devices, out), "{}", told());
                    assert!(case.holds(&array, &devices, lost), "{}", told());
                }
            }
        }
    }
    assert!(cut_off > 100, "{cut_off}");
}
