//! Replays of a row of raid6 of which data stand alone behind parity: a log has parity of a row only while P and Q are
//! in service, and rows stand in it until much later. P of the row fails between two entries, and is rebuilt or not.

use raidlab_core::geometry::{Geometry, Parity};
use raidlab_core::{Sector, Sectors};
use raidlab_metadata::Source;
use raidlab_metadata::md::journal::{Replay, ReplayDevices, begin_anew};
use raidlab_metadata::md::{
    Allowed, Features, Inspected, Joined, Journal, JournalFound, Md, Role, Superblock, join,
};

use super::device::{Disk, disk, raid5, seen};

const MEMBERS: u16 = 5;
/// Chunks of data in a row.
const CHUNKS: u16 = 3;
/// The row that is written, in the second stripe, whose chunks have 128 sectors.
const ROW: u64 = 128 + 8;
const STRIPE: u64 = 1;
const PAGE: usize = 4096;
const START: u64 = 2048;
const RING: u64 = 2048;

/// The superblock of a member, or behind them of the log device.
fn superblock(place: u16) -> Superblock {
    let mut one = raid5(MEMBERS, place);
    one.roles[usize::from(MEMBERS)] = Role::Journal;
    let data_size = if place == MEMBERS { RING } else { one.data_size };
    Superblock { level: 6, features: Features::JOURNAL, data_size, ..one }
}

fn array() -> (Joined, Parity) {
    let all: Vec<Inspected> = (0..=MEMBERS).map(|place| seen(&superblock(place))).collect();
    let joined = join(&all, &Allowed::default()).unwrap();
    let Ok(Geometry::Parity(geometry)) = Geometry::new(&joined.layout, &[Sectors(1024); 5]) else {
        unreachable!("raid6 has parity")
    };
    (joined, geometry)
}

/// What each byte of a chunk's page is, of each of its versions: before, with parity, alone.
fn version(chunk: u16, version: u8) -> u8 {
    [0x13, 0x25, 0xc9][usize::from(version)] + chunk as u8
}

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
        q.expect("raid6 has Q").fill(other);
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
}

/// What stands where: chunks that were logged with parity, and those that then were alone; P is out of service, or was
/// rebuilt since.
#[derive(Clone, Copy, Debug)]
struct Case {
    first: u64,
    second: u64,
    reached: Reached,
    p_is_back: bool,
}

fn has(set: u64, chunk: u16) -> bool {
    set >> chunk & 1 == 1
}

impl Case {
    fn all() -> impl Iterator<Item = Self> {
        let reached = [Reached::All, Reached::Second, Reached::Parity];
        (0..2 * 3 * 7 * 7).map(move |at| Self {
            p_is_back: at % 2 == 1,
            reached: reached[at / 2 % 3],
            first: at as u64 / 6 % 7 + 1,
            second: at as u64 / 42 + 1,
        })
    }

    /// The byte of a chunk with those of the first entry, and with those of the second one.
    fn byte(&self, chunk: u16, (first, second): (bool, bool)) -> u8 {
        match chunk {
            _ if second && has(self.second, chunk) => version(chunk, 2),
            _ if first && has(self.first, chunk) => version(chunk, 1),
            _ => version(chunk, 0),
        }
    }

    fn left(&self, geometry: &Parity) -> Devices {
        let row = |entries: (bool, bool)| -> Vec<u8> {
            let data: Vec<u8> = (0..CHUNKS).map(|k| self.byte(k, entries)).collect();
            let with = (0..CHUNKS).map(|k| geometry.q_exponent(STRIPE, k));
            let both = parities(data.iter().copied().zip(with));
            data.into_iter().chain(both).collect()
        };
        let on_members = match self.reached {
            Reached::All => row((true, true)),
            Reached::Second => {
                let parity = row((true, true)).split_off(usize::from(CHUNKS));
                let data = (0..CHUNKS).map(|k| self.byte(k, (false, true)));
                data.chain(parity).collect()
            }
            Reached::Parity => {
                let parity = row((true, false)).split_off(usize::from(CHUNKS));
                (0..CHUNKS).map(|k| self.byte(k, (false, false))).chain(parity).collect()
            }
        };
        let mut members = vec![Vec::new(); usize::from(MEMBERS)];
        for (member, byte) in order(geometry).into_iter().zip(on_members) {
            members[member] = vec![byte; PAGE];
        }
        if !self.p_is_back {
            members[geometry.p_member(STRIPE).at()].fill(0xee);
        }
        Devices { members, log: self.log(&row((true, false))), left: usize::MAX }
    }

    /// The log device; the first entry's parity is that of this row.
    fn log(&self, row: &[u8]) -> Vec<u8> {
        let one = superblock(MEMBERS);
        let begun = begin_anew(&one.array, &JournalFound::default(), 7).1;
        let mut log = disk(&one, &[(START, begun)]);
        let mut journal = Journal::of(&mut log, &one).unwrap();
        let first = (0..).zip(row).filter(|(role, _)| *role >= CHUNKS || has(self.first, *role));
        let first: Vec<(u16, u8)> = first.map(|(role, byte)| (role, *byte)).collect();
        let second = (0..CHUNKS).filter(|k| has(self.second, *k));
        let second: Vec<(u16, u8)> = second.map(|k| (k, version(k, 2))).collect();
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
    fn out(&self, geometry: &Parity, lost: Option<u16>) -> u64 {
        let p = if self.p_is_back { 0 } else { 1 << geometry.p_member(STRIPE).at() };
        p | lost.map_or(0, |k| 1 << geometry.data_member(STRIPE, k).at())
    }

    /// Everything that was logged is there, and what is lost is computed of it.
    fn holds(&self, geometry: &Parity, devices: &Devices, lost: Option<u16>) -> bool {
        let order = order(geometry);
        let byte = |role: u16| devices.members[order[usize::from(role)]][0];
        let data = |k: u16| self.byte(k, (true, true));
        let with = (0..CHUNKS).map(|k| (data(k), geometry.q_exponent(STRIPE, k)));
        let [p, q] = parities(with);
        (0..CHUNKS).filter(|k| Some(*k) != lost).all(|k| byte(k) == data(k))
            && byte(CHUNKS + 1) == q
            && (!self.p_is_back || byte(CHUNKS) == p)
    }
}

/// The members with the chunks of the stripe, with P, with Q.
fn order(geometry: &Parity) -> Vec<usize> {
    let data = (0..CHUNKS).map(|k| geometry.data_member(STRIPE, k).at());
    let q = geometry.q_member(STRIPE).unwrap().at();
    data.chain([geometry.p_member(STRIPE).at(), q]).collect()
}

fn replays(joined: &Joined, geometry: &Parity, devices: &mut Devices, out: u64) -> bool {
    Replay { joined, geometry, out: [out, 0], devices, md: Md { block: 8 } }.run(1).is_ok()
}

/// A chunk that no entry has, and that is missing, is what it was; so is one that the first entry has.
#[test]
fn what_is_missing_is_not_made_of_parity_that_is_older_than_the_rest() {
    let (joined, geometry) = array();
    let mut known = [0; 3];
    for case in Case::all() {
        for lost in [None, Some(0), Some(1), Some(2)] {
            let mut devices = case.left(&geometry);
            let out = case.out(&geometry, lost);
            assert!(replays(&joined, &geometry, &mut devices, out), "{case:?}, {lost:?}");
            assert!(case.holds(&geometry, &devices, lost), "{case:?}, without {lost:?}");
            known[case.reached as usize] += 1;
        }
    }
    assert_eq!(known, [2 * 7 * 7 * 4; 3]);
}

/// The power is cut after each number of writes of a replay, and the member with any chunk is lost then.
#[test]
fn a_member_that_is_lost_after_a_replay_was_cut_off_is_what_it_was() {
    let (joined, geometry) = array();
    let mut cut_off = 0;
    for case in Case::all().filter(|case| case.reached == Reached::All) {
        for most in 0..12 {
            let mut cut = Devices { left: most, ..case.left(&geometry) };
            cut_off += u32::from(!replays(&joined, &geometry, &mut cut, case.out(&geometry, None)));
            for lost in 0..CHUNKS {
                let mut devices = Devices { left: usize::MAX, ..cut.clone() };
                let out = case.out(&geometry, Some(lost));
                assert!(replays(&joined, &geometry, &mut devices, out), "{case:?}, {lost:?}");
                let told = || format!("{case:?}, cut off after {most} writes, without {lost}");
                // A replay that had ended has nothing left of the row.
                assert!(case.holds(&geometry, &devices, Some(lost)), "{}", told());
            }
        }
    }
    assert!(cut_off > 100, "{cut_off}");
}
