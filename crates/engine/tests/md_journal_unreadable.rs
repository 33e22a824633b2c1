//! A journal of md's that is there and cannot be read as a whole: the start ends before anything is written, and goes
//! on without the journal only when it is told to.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use raidlab_core::contract::{IoOp, IoOutcome};
use raidlab_core::{Consistency, Sector, Sectors};
use raidlab_engine::{Engine, EngineError, MdFound, MdOptions, Member, MemberRequest, MemberStore};
use raidlab_metadata::md::journal::{PAGE, recover};
use raidlab_metadata::md::{Features, Role, Superblock, Why, inspect};

use crate::extent::Extent;
use crate::held::{Bench, Drive};
use crate::md_journal_replay::left;

/// A drive with a sector that cannot be read.
struct Unreadable(Drive, u64);

impl MemberStore for Unreadable {
    fn sectors(&self) -> Sectors {
        self.0.sectors()
    }

    fn submit(&mut self, request: MemberRequest) {
        let from = request.at().0;
        let is_bad = (from..from + request.len().0).contains(&self.1);
        match request.op() {
            IoOp::Read if is_bad => {
                request.complete(IoOutcome::MediaError { first_bad: Sector(self.1) });
            }
            _ => self.0.submit(request),
        }
    }
}

/// Starts an array without the drives that are `lost`; of its log device a sector cannot be read.
fn start(
    bench: &Bench,
    log: usize,
    bad: u64,
    lost: &[usize],
) -> Result<(Engine, MdFound), EngineError> {
    let there = bench.drives.iter().enumerate().filter(|(number, _)| !lost.contains(number));
    let device = |(number, drive): (usize, &Drive)| match number == log {
        true => Member::from(Unreadable(drive.clone(), bad)),
        false => Member::from(drive.clone()),
    };
    let allowed = bench.allowed.clone();
    let options = MdOptions { allowed, run: true, ..MdOptions::default() };
    Engine::assemble_md(there.map(device).collect(), &options)
}

/// Sectors of the log device that a replay needs: a block, pages of rows, and the place behind the last block.
fn needed(log: &Drive) -> BTreeSet<u64> {
    let mut device = Member::from(log.clone());
    let inspected = inspect(&mut device);
    let one: &Superblock = inspected.superblock().unwrap();
    let found = recover(&mut device, one).unwrap();
    let mut places = BTreeSet::from([one.recovery, found.next.unwrap().0]);
    for row in found.rows.values() {
        places.extend(row.data.values().chain(row.alone.values()).copied());
        places.extend(row.parity.into_iter().flat_map(|of| of.into_iter().take(1)));
    }
    // Any sector of a page.
    places.into_iter().map(|place| one.data_offset + place + place / PAGE % PAGE).collect()
}

/// Whatever of it cannot be read, the start says where and writes nothing; when it can be read again nothing is lost.
#[test]
fn a_journal_that_cannot_be_read_ends_the_start() {
    let mut rows = 0;
    for seed in Extent::from_environment().seeds(4, 10) {
        let (mut bench, log) = left(seed);
        let before: Vec<Vec<u8>> = bench.drives.iter().map(Drive::bytes).collect();
        for bad in needed(&bench.drives[log]) {
            let told = format!("seed {seed}, sector {bad}");
            let Err(error) = start(&bench, log, bad, &[]) else { panic!("{told}: it started") };
            assert_eq!(error.offset(), Some(bad / PAGE * PAGE * 512), "{told}: {error}");
            let text = error.to_string();
            assert!(text.contains("of the journal cannot be read"), "{told}: {text}");
            assert!(text.contains("--ignore-journal gives the journal up"), "{told}: {text}");
            rows += 1;
        }
        let after: Vec<Vec<u8>> = bench.drives.iter().map(Drive::bytes).collect();
        assert!(before == after, "seed {seed}: something was written");
        let mut engine = bench.start(&[]).unwrap();
        let found = bench.read(&mut engine);
        bench.compare(&found, None, &format!("seed {seed}"));
    }
    assert!(rows > 20, "{rows}");
}

/// When it is told to, the array goes on without such a journal, as without one whose device is lost; with a member
/// missing that takes a word more.
#[test]
fn a_journal_that_cannot_be_read_is_given_up_when_told() {
    for seed in Extent::from_environment().seeds(4, 10) {
        let (mut bench, log) = left(seed);
        let all: Vec<u64> = needed(&bench.drives[log]).into_iter().collect();
        let bad = all[seed as usize % all.len()];
        bench.allowed.ignore_journal = true;
        let why = start(&bench, log, bad, &[0]).map(drop).unwrap_err().to_string();
        assert!(why.contains("not stopped cleanly"), "seed {seed}: {why}");
        // One that can be read is not given up.
        let why = bench.start(&[]).unwrap_err();
        assert!(why.contains("can be replayed"), "seed {seed}: {why}");
        let (mut engine, MdFound { joined, .. }) = start(&bench, log, bad, &[]).unwrap();
        let is_damaged = |why: &Why| matches!(why, Why::JournalDamaged(_));
        assert!(joined.out.iter().any(|out| out.given == log && is_damaged(&out.why)));
        assert_eq!((joined.journal, joined.consistency), (None, Consistency::Resync));
        assert_eq!(engine.beginning().resync, Sectors(4096), "seed {seed}");
        engine.finish_background(&AtomicBool::new(false)).unwrap();
        assert_eq!(engine.scrub(&AtomicBool::new(false)).unwrap(), Sectors(0), "seed {seed}");
        bench.believe(&mut engine);
        let left = bench.live(engine, 200);
        bench.restart(left);
        // All of it can be read again, and none of it is replayed.
        bench.allowed.ignore_journal = false;
        let inspected = inspect(&mut Member::from(bench.drives[0].clone()));
        let one = inspected.superblock().unwrap();
        assert_eq!((one.features, one.roles[log]), (Features(0), Role::Faulty), "seed {seed}");
        let mut engine = bench.start(&[]).unwrap();
        let found = bench.read(&mut engine);
        bench.compare(&found, None, &format!("seed {seed}, after it was given up"));
    }
}
