//! Background work without an array: which there is, ranges, and what becomes of one.

mod ranges;
mod sweeps;

use super::window::Steps;
use super::*;
use crate::array::locks::RangeLocks;
use crate::array::roles::Roles;
use crate::array::settings::Consistency;
use crate::array::setup::tests::setup;
use crate::contract::{Event, IoOutcome, JobResult, Pacing, PacingRule, ParityOp, Scrub};
use crate::layout::Level;
use crate::units::{Sector, Sectors};

const PACING: Pacing = Pacing::between(1, u64::MAX);
const ONE: MemberIndex = MemberIndex(1);
const NO: Roles = Roles::NONE;

fn set(roles: &[u16]) -> Roles {
    roles.iter().copied().collect()
}

struct Bench {
    setup: Setup,
    members: Members,
    bitmap: Bitmap,
    locks: RangeLocks,
    background: Background,
}

fn bench(level: Level, members: u16, consistency: Consistency) -> Bench {
    let layout = match level {
        Level::Raid1 => Layout::new(level, members),
        _ => Layout::new(level, members).with_chunk(Sectors(64)),
    };
    bench_of(&layout, consistency)
}

fn no_barrier() -> Barrier {
    Barrier::new(None, (0, 0), crate::policy::CopyKind::Raid1, 0, 4)
}

fn bench_of(layout: &Layout, consistency: Consistency) -> Bench {
    let setup = setup(layout, consistency);
    Bench {
        bitmap: Bitmap::new(consistency, setup.covered(), false),
        setup,
        members: Members::new(usize::from(layout.members) * 2 + 1, 8),
        locks: RangeLocks::new(8),
        background: Background::new(usize::from(layout.members) * 2 + 1, 4, PACING, no_barrier()),
    }
}

impl Bench {
    fn next(&self) -> Option<Work> {
        self.background.next_work(&self.setup, &self.members)
    }

    fn begin(&mut self, work: Work) {
        self.background.begin(&self.setup, &self.members, Time(1), work);
    }

    /// The next range, in its slot.
    fn range(&mut self) -> Option<u32> {
        let Self { setup, members, bitmap, locks, background } = self;
        let window = background.next_range(setup, members, bitmap, locks, Time(1))?;
        background.windows.insert(window)
    }

    fn end(&mut self, slot: u32) -> (Option<Event>, Option<u64>) {
        let window = self.background.windows[slot];
        self.background.windows.remove(slot);
        assert!(self.background.window_ended(&window, Time(2), 0));
        self.background.moved_on(&self.setup, &mut self.members, Time(2))
    }
}

#[test]
fn a_resync_comes_before_a_rebuild_and_that_before_a_replacement() {
    let mut bench = bench(Level::Raid1, 3, Consistency::None);
    assert_eq!(bench.next(), None);
    bench.members.begin_replace(ONE, bench.setup.replacement(ONE), (0, 0));
    assert_eq!(bench.next(), Some(Work::Replace(ONE)));
    bench.members.fail(MemberIndex(2));
    bench.members.begin_rebuild(MemberIndex(2), None);
    assert_eq!(bench.next(), Some(Work::Rebuild(MemberIndex(2))));
    bench.background.replay_over(false);
    assert_eq!(bench.next(), Some(Work::Resync));
    assert!(bench.background.is_busy(&bench.setup, &bench.members));
    bench.background.halt();
    assert_eq!(bench.next(), None, "until a command asks for it");
    bench.background.wake();
    bench.background.begin_taking_over(ONE);
    assert_eq!(bench.next(), None, "a superblock is waited for");
}

#[test]
fn parity_that_may_be_wrong_says_nothing_of_who_is_away() {
    let mut bench = bench(Level::Raid5, 4, Consistency::None);
    bench.background.replay_over(false);
    assert!(
        bench.background.can_rebuild(&bench.setup, ONE) == bench.background.trust.contains(ONE)
    );
    bench.members.fail(ONE);
    assert_eq!(bench.next(), None);
    bench.background.trust.insert(ONE);
    assert_eq!(bench.next(), Some(Work::Resync), "the administrator said so");
    let trusted = |lacking| bench.background.is_parity_trusted(&bench.bitmap, 0, 8, lacking);
    assert!(trusted(bench.members.failed) && !trusted(MemberSet::NONE));
    bench.background.resynced();
    assert!(bench.background.is_parity_consistent(&bench.bitmap, 0, u64::MAX));
}

#[test]
fn what_is_done_ends_where_the_lowest_range_in_flight_begins() {
    let mut bench = bench(Level::Raid5, 4, Consistency::None);
    bench.members.fail(ONE);
    bench.members.begin_rebuild(ONE, None);
    bench.begin(Work::Rebuild(ONE));
    let ranges: Vec<u32> = (0..3).map(|_| bench.range().expect("there is work")).collect();
    assert_eq!(
        bench.background.may_begin(&bench.setup, Time(1), 0, || false),
        MayBegin::No,
        "one is for healing"
    );
    bench.end(ranges[1]);
    assert_eq!(bench.members[ONE].good_to, 0, "the first is not done");
    bench.end(ranges[0]);
    assert_eq!(bench.members[ONE].good_to, 2 * bench.setup.window_rows);
    let progress = bench.background.progress(Time(3), false).expect("it is under way");
    assert_eq!(progress.done, Sectors(2 * bench.setup.window_rows));
    assert!(bench.background.ends_without(&bench.setup, &bench.members, ONE));
    assert!(!bench.background.ends_without(&bench.setup, &bench.members, MemberIndex(0)));
}

#[test]
fn a_resync_by_the_bitmap_leaves_out_what_it_does_not_name() {
    let rows = 64;
    let mut bench = bench(Level::Raid5, 4, Consistency::Bitmap { chunk: Sectors(rows) });
    bench.bitmap.begin_with(&[0b100], 0);
    let todo = Todo { resync: Resync::ByBitmap, synced_to: 0, ..Todo::default() };
    assert!(bench.background.begin_at_start(todo, &mut bench.members));
    bench.begin(Work::Resync);
    let found: Vec<bool> = (0..4).map(|_| bench.range().is_some()).collect();
    assert_eq!(found, [false, false, true, false]);
    let trusted = |from| bench.background.is_parity_consistent(&bench.bitmap, from, from + rows);
    assert!(trusted(0) && !trusted(2 * rows));
}

#[test]
fn progress_is_recorded_after_a_flush() {
    let mut bench = bench(Level::Raid5, 4, Consistency::Resync);
    bench.members.fail(ONE);
    bench.members.begin_rebuild(ONE, None);
    bench.begin(Work::Rebuild(ONE));
    let to = std::iter::from_fn(|| {
        let slot = bench.range()?;
        Some(bench.end(slot).1)
    })
    .flatten()
    .next()
    .expect("a sixteenth is done");
    bench.background.flush_to_keep(to);
    assert!(bench.background.is_settling());
    assert_eq!(bench.members[ONE].kept_to, 0, "not durable");
    assert_eq!(bench.background.flushed(&bench.setup, &mut bench.members), Kept::Progress);
    assert_eq!(bench.members[ONE].kept_to, to);
    // A flush of work that was interrupted counts for nothing.
    bench.background.flush_to_keep(2 * to);
    assert_eq!(bench.background.interrupt(), Some(Work::Rebuild(ONE)));
    bench.begin(Work::Scrub(Scrub::Check));
    assert_eq!(bench.background.flushed(&bench.setup, &mut bench.members), Kept::Nothing);
}

#[test]
fn a_member_is_restored_when_superblocks_say_so() {
    let mut bench = bench(Level::Raid1, 2, Consistency::Resync);
    bench.begin(Work::Rebuild(ONE));
    bench.background.begin_restoring(ONE);
    let failed = |set: &mut MemberSet| {
        set.insert(ONE);
        *set
    };
    bench.background.restoring_said(failed(&mut MemberSet::default()));
    assert_eq!(bench.background.restoring_recorded(), None, "those name it as failed");
    bench.background.restoring_said(MemberSet::NONE);
    assert_eq!(bench.background.restoring_recorded(), Some(ONE));
    assert_eq!(bench.background.restoring_recorded(), None);
}

/// A window of some work over a chunk of the first stripe.
fn window(setup: &Setup, task: Task) -> ResyncWindow {
    let mut window = ResyncWindow::at(setup, MemberIndex(0), 0, 64).expect("the array uses it");
    window.task = task;
    window
}

fn sources(bench: &Bench, window: &ResyncWindow) -> Option<sources::Sources> {
    window.sources(&bench.setup, &bench.members, &bench.background.trust(&bench.bitmap))
}

#[test]
fn a_lost_chunk_is_computed_from_all_others() {
    let mut bench = bench(Level::Raid6, 5, Consistency::None);
    let member = bench.setup.role_member(0, 1);
    bench.members.fail(member);
    bench.members.begin_rebuild(member, None);
    let mut window = window(&bench.setup, Task::Rebuild(member));
    let found = sources(&bench, &window).expect("two parities are there");
    assert_eq!((found.read, found.write), (set(&[0, 2, 3]), set(&[1])), "data and P");
    window.plan(found);
    let job = window.recovery(&bench.setup).expect("it is computed");
    assert_eq!(job.op, ParityOp::Xor);
    assert_eq!((job.sources, job.targets), ((set(&[0, 2, 3]), NO), (set(&[1]), NO)));
    assert_eq!(window.parity(&bench.setup), None);
    // P out of service too: Q serves.
    bench.members.fail(bench.setup.role_member(0, 3));
    window.plan(sources(&bench, &window).expect("Q is there"));
    let job = window.recovery(&bench.setup).expect("it is computed");
    assert_eq!((job.op, job.sources.0), (ParityOp::Recover, set(&[0, 2, 4])));
    bench.members.fail(bench.setup.role_member(0, 4));
    assert_eq!(sources(&bench, &window), None, "three are lost");
}

#[test]
fn a_window_that_cannot_be_had_is_tried_block_by_block() {
    let bench = bench(Level::Raid5, 4, Consistency::None);
    let mut window = window(&bench.setup, Task::Rebuild(ONE));
    assert!(window.lacks_sources(&bench.setup));
    assert_eq!((window.part, window.phase), ((0, 1), Phase::Plan));
    assert!(!window.lacks_sources(&bench.setup), "a block that cannot be had is lost");
    window.next_window(&bench.setup);
    assert_eq!(window.part, (1, 2));
    window.part = (63, 64);
    window.next_window(&bench.setup);
    assert_eq!(window.phase, Phase::Done);
}

#[test]
fn a_scrub_compares_then_steps_through_what_differs() {
    let bench = bench(Level::Raid5, 4, Consistency::None);
    let mut window = window(&bench.setup, Task::Scrub(Scrub::Check));
    let parity = window.parity(&bench.setup).expect("it is made beside");
    assert_eq!((parity.sources, parity.targets), ((set(&[0, 1, 2]), NO), (NO, set(&[0]))));
    let compare: Vec<_> = ResyncWindow::comparisons(&bench.setup).collect();
    assert_eq!(compare.len(), 1);
    assert_eq!(places(&bench.setup, compare[0].sources).collect::<Vec<_>>(), [3, 4]);
    window.pending = 1;
    window.computed(JobResult::Differs { from: 5, to: 7 });
    assert!(!window.compared(&bench.setup));
    assert_eq!((window.part, window.phase), ((5, 6), Phase::Compare));
    window.pending = 1;
    window.computed(JobResult::Differs { from: 0, to: 1 });
    assert!(window.compared(&bench.setup), "one block: it is told");
    assert_eq!(window.block_differs(&bench.setup, Scrub::Check), None);
    assert_eq!((window.mismatched, window.phase), (1, Phase::Next));
    assert_eq!(window.add_finding(0, Finding::Mismatch(None)), None);
    window.next_window(&bench.setup);
    assert_eq!(window.add_finding(0, Finding::Mismatch(None)), None, "joined");
    assert_eq!(window.add_finding(0, Finding::Healed), Some((Finding::Mismatch(None), 5, 7)));
}

#[test]
fn a_block_is_written_anew_as_often_as_it_may_be() {
    let bench = bench(Level::Raid5, 4, Consistency::None);
    let mut window = window(&bench.setup, Task::Heal(MemberIndex(0)));
    let bad = IoOutcome::MediaError { first_bad: Sector(9) };
    window.phase = Phase::Probe;
    for tries in 1..=bench.setup.settings.heal_tries {
        window.begin_probe();
        window.pending = 1;
        window.phase = Phase::Probe;
        window.io_ended(bad);
        assert!(!window.probe_ended(&bench.setup, 0), "it is bad still");
        assert!(!window.mend_probed(&bench.setup));
        assert_eq!((window.part, window.tries), ((9, 10), tries));
    }
    let mut mended = window;
    for (window, outcome, healed) in [(&mut window, bad, false), (&mut mended, IoOutcome::Ok, true)]
    {
        window.begin_probe();
        window.pending = 1;
        window.phase = Phase::Probe;
        window.io_ended(outcome);
        assert_eq!(window.probe_ended(&bench.setup, 0), healed);
        assert_eq!(window.mend_probed(&bench.setup), !healed, "too often");
    }
    assert_eq!(mended.phase, Phase::Done);
    window.give_up_window();
    assert_eq!((window.part, window.phase), ((10, 64), Phase::Probe));
}
