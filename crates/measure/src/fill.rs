//! What of an array is filled before its processes run, so that every byte they read is known and parity is right where
//! they write.
//!
//! Where a plan's requests are known beforehand, which they are but for those that look at the time or deal in tickets,
//! and lie here and there, only the stripes that they touch are filled, of a healthy array that is only read the blocks
//! alone; otherwise all that its files lie in. Of a healthy array on members that are [written throughout](Before)
//! nothing is filled that the plan puts down itself: whole stripes, and any block where there is no parity.

use std::ops::Range;

use raidlab_core::layout::least_common;
use raidlab_core::{Layout, SECTOR_BYTES, Sectors, Time};
use raidlab_study::{CellKey, NamedLayout, State, Study, cell_seed, cells};
use raidlab_targets::RawTarget;
use raidlab_workload::processes::Asked;
use raidlab_workload::raw::{OpResult, RawPlan, Request};
use raidlab_workload::{ProcessIndex, Setting, Synchroniser, Workload, WorkloadError};

use crate::sizes::{Sizes, smallest_request};

pub(super) const BLOCK: u64 = RawTarget::BLOCK;
/// A disk writes about as many bytes in the time that going to another place takes it.
const A_PLACE: u64 = 1 << 20;
/// Places that are kept at most, 16 bytes each: with more, all is filled.
const MOST_PLACES: usize = 1 << 22;

/// A workload planned for an array of so many bytes.
pub(super) fn plan(
    workload: &dyn Workload,
    space: u64,
    copies: u32,
    seed: u64,
) -> Result<RawPlan, WorkloadError> {
    let setting = Setting { space: Some(space), ..Setting::new(copies, seed) };
    workload.plan(&setting).and_then(|plan| RawPlan::new(plan, space))
}

/// What was written to members before any cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// Perhaps nothing. A first write takes longer on files (the filesystem notes that there is something now) and on
    /// flash, so that what cells write is filled too.
    Unknown,
    /// Every byte, with whatever.
    WrittenThroughout,
}

/// The parts of an array to be filled before the processes of a plan like this run, in bytes. They are gone through.
pub(super) fn filled(
    plan: RawPlan,
    (layout, state): (&Layout, State),
    capacity: Sectors,
    before: Before,
) -> Vec<Range<u64>> {
    let end = capacity.bytes() / BLOCK * BLOCK;
    let unit = unit(layout);
    let stripes = |ranges: Vec<Range<u64>>| {
        merged(ranges.into_iter().map(|range| whole(range, unit, end)).collect())
    };
    let bytes =
        |ranges: &[Range<u64>]| -> u64 { ranges.iter().map(|one| one.end - one.start).sum() };
    let all = stripes(plan.extents.iter().map(|(from, to)| *from..*to).collect());
    let most = bytes(&all);
    let overwritten = match (before, state) {
        (Before::WrittenThroughout, State::Healthy) => {
            Some(if layout.has_parity() { unit } else { BLOCK })
        }
        _ => None,
    };
    let touched = touched(plan, end, most, overwritten).map(|touched| {
        let needs_stripes = (touched.writes && overwritten.is_none()) || state != State::Healthy;
        if needs_stripes { stripes(touched.blocks) } else { touched.blocks }
    });
    touched.filter(|touched| cost(bytes(touched), touched.len()) < most).unwrap_or(all)
}

/// In bytes that are written in one run.
const fn cost(bytes: u64, places: usize) -> u64 {
    bytes.saturating_add(A_PLACE * places as u64)
}

/// What is filled as one: requests of the array, and whole stripes where there is parity.
fn unit(layout: &Layout) -> u64 {
    let request = SECTOR_BYTES * u64::from(smallest_request(layout));
    match layout.full_stripe() {
        Some(stripe) if layout.has_parity() => {
            let sector = SECTOR_BYTES * u64::from(layout.sectors_at_once());
            least_common(request, sector * stripe.0)
        }
        _ => request,
    }
}

fn whole(range: Range<u64>, unit: u64, end: u64) -> Range<u64> {
    range.start / unit * unit..range.end.next_multiple_of(unit).min(end)
}

/// The units that a range has a part of only, at its two ends: one at most where it lies within one.
fn partly(range: &Range<u64>, unit: u64, end: u64) -> [Range<u64>; 2] {
    let of = |at: u64| whole(at..at, unit, end);
    let first = if range.start.is_multiple_of(unit) { 0..0 } else { of(range.start) };
    let last = if range.end.is_multiple_of(unit) { 0..0 } else { of(range.end) };
    [first, last]
}

/// In ascending order, and those that meet as one.
fn merged(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// What the processes of a plan read or write.
#[derive(Default)]
struct Touched {
    /// In ascending order.
    blocks: Vec<Range<u64>>,
    writes: bool,
}

impl Touched {
    /// Adds a request to an array that ends at `end`. Where units of so many bytes may be `overwritten`, writes count
    /// with those that they have a part of only.
    fn add(&mut self, request: Request, end: u64, overwritten: Option<u64>) {
        let (Request::Read(at, len) | Request::Write(at, len)) = request else { return };
        let range = whole(at..at.saturating_add(len), BLOCK, end);
        let is_write = matches!(request, Request::Write(..));
        self.writes |= is_write;
        match overwritten.filter(|_| is_write) {
            Some(unit) => {
                let parts = partly(&range, unit, end);
                self.blocks.extend(parts.into_iter().filter(|part| !part.is_empty()));
            }
            None => self.blocks.push(range),
        }
    }
}

/// What the processes of a plan read or write; `None` when it is not known beforehand, or filling it costs as much as
/// `most` bytes in one run. Where units of so many bytes may be `overwritten`, writes count with those that they have a
/// part of only.
fn touched(mut plan: RawPlan, end: u64, most: u64, overwritten: Option<u64>) -> Option<Touched> {
    if plan.asks_time || plan.queues > 0 {
        return None;
    }
    let mut touched = Touched::default();
    let mut ready: Vec<ProcessIndex> = (0..plan.processes.len()).collect();
    let mut barriers = Synchroniser::new(&plan.barriers, 0);
    // Only sleeping takes time here. Whoever waits for a time all the same is not asked for ever.
    let mut clocks = vec![Time::ZERO; plan.processes.len()];
    // In turn, as they are prepared: they may share files, whose lengths behind a barrier others have made.
    while !ready.is_empty() {
        let mut freed = Vec::new();
        ready.retain(|process| {
            let clock = &mut clocks[*process];
            match plan.processes[*process].next(*clock, OpResult::Done) {
                Asked::Operation(request) | Asked::Start(_, request) => {
                    touched.add(request, end, overwritten);
                }
                Asked::Sleep(time) => *clock = Time(clock.0.saturating_add(time.0)),
                Asked::Barrier(barrier) => match barriers.arrive(*process, barrier) {
                    Some(others) => freed.extend(others),
                    None => return false,
                },
                Asked::Done => return false,
                _ => {}
            }
            true
        });
        if !freed.is_empty() {
            ready.append(&mut freed);
            ready.sort_unstable();
        }
        if touched.blocks.len() > MOST_PLACES {
            touched.blocks = merged(touched.blocks);
            let places = touched.blocks.len();
            if places > MOST_PLACES / 2 || cost(0, places) >= most {
                return None;
            }
        }
    }
    touched.blocks = merged(touched.blocks);
    Some(touched)
}

/// What is filled before the cells of a round, and read again after them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filling {
    /// Bytes of arrays.
    pub bytes: u64,
    /// Runs that they lie in.
    pub places: u64,
}

impl Filling {
    /// Of the first round on devices; the places of others are others, and about as many.
    ///
    /// # Errors
    /// When a workload cannot be planned.
    pub fn of(study: &Study, sizes: &Sizes) -> Result<Self, WorkloadError> {
        Self::after(study, sizes, Before::Unknown)
    }

    pub(super) fn after(
        study: &Study,
        sizes: &Sizes,
        before: Before,
    ) -> Result<Self, WorkloadError> {
        let mut filling = Self::default();
        for key in cells(study) {
            let (named, capacity) = (&study.layouts[key.layout], sizes.capacities[key.layout]);
            for range in of_cell(study, &key, (named, capacity), before)? {
                filling.bytes = filling.bytes.saturating_add(range.end - range.start);
                filling.places += 1;
            }
        }
        Ok(filling)
    }
}

fn of_cell(
    study: &Study,
    key: &CellKey,
    (named, capacity): (&NamedLayout, Sectors),
    before: Before,
) -> Result<Vec<Range<u64>>, WorkloadError> {
    let Some(spec) = key.workload(study) else {
        debug_assert_eq!(key.state, State::Rebuilding, "others have a workload");
        let all = 0..capacity.bytes() / BLOCK * BLOCK;
        return Ok(std::iter::once(all).collect());
    };
    let seed = cell_seed(study, key, 0);
    let plan = plan(&*spec.workload, capacity.bytes(), key.processes, seed)?;
    Ok(filled(plan, (&named.layout, key.state), capacity, before))
}

#[cfg(test)]
mod tests {
    use raidlab_core::Level;

    use super::*;
    use raidlab_workload::{Kind, Op, OpResult as Last, Plan, Planned, Process, Simple, Span, fio};

    #[test]
    fn ranges_that_meet_are_one_as_long_as_all_of_them() {
        let ranges = vec![20..30, 0..10, 2..4, 10..12, 40..41];
        assert_eq!(merged(ranges), [0..12, 20..30, 40..41]);
    }

    fn parts(
        workload: &Simple,
        (layout, state): (&Layout, State),
        capacity: u64,
        processes: u32,
    ) -> Vec<[u64; 2]> {
        parts_after(workload, (layout, state), (capacity, processes), Before::Unknown)
    }

    fn parts_after(
        workload: &dyn Workload,
        (layout, state): (&Layout, State),
        (capacity, processes): (u64, u32),
        before: Before,
    ) -> Vec<[u64; 2]> {
        let plan = plan(workload, capacity, processes, 1).expect("it fits");
        let ranges = filled(plan, (layout, state), Sectors(capacity / 512), before);
        ranges.into_iter().map(|range| [range.start, range.end]).collect()
    }

    #[test]
    fn only_what_is_used_is_filled_in_whole_stripes() {
        let chunk = Sectors(16);
        let raid5 = Layout::new(Level::Raid5, 4).with_chunk(chunk);
        let stripe = 3 * chunk.bytes();
        let parts = |workload: &Simple, layout: &Layout, processes| {
            parts(workload, (layout, State::Healthy), 100 * stripe, processes)
        };
        let mut workload = Simple { block: BLOCK, ..Simple::new(Kind::DdRead, 2 * BLOCK) };
        assert_eq!(parts(&workload, &raid5, 1), [[0, stripe]]);
        assert_eq!(parts(&workload, &raid5, 2), [[0, stripe], [50 * stripe, 51 * stripe]]);
        let raid0 = Layout::new(Level::Raid0, 3).with_chunk(chunk);
        assert_eq!(parts(&workload, &raid0, 1), [[0, 2 * BLOCK]]);
        // Neighbours in one stripe are filled once.
        workload.span = Span::Bytes(2 * stripe);
        assert_eq!(parts(&workload, &raid5, 6), [[0, 2 * stripe]]);
        let mut random = Simple::new(Kind::RandomWrite, BLOCK);
        random.span = Span::Percent(50);
        assert_eq!(parts(&random, &raid5, 3), [[0, 50 * stripe]]);
    }

    /// On members that are written throughout: what is read, and stripes with parity that a write has a part of.
    #[test]
    fn what_is_put_down_anyway_is_not_filled() {
        let chunk = Sectors(4096);
        let [raid5, raid10] =
            [Level::Raid5, Level::Raid10].map(|level| Layout::new(level, 4).with_chunk(chunk));
        let stripe = 3 * chunk.bytes();
        let capacity = 100 * stripe;
        let parts = |kind, block, size, layout: &Layout, state| {
            let workload = Simple { block, span: Span::Bytes(capacity), ..Simple::new(kind, size) };
            parts_after(&workload, (layout, state), (capacity, 1), Before::WrittenThroughout)
        };
        let (write, healthy) = (Kind::DdWrite, State::Healthy);
        assert!(parts(write, 2 * stripe, 8 * stripe, &raid5, healthy).is_empty());
        // Requests of a stripe and a third, two of them: the second begins within a stripe and ends within one.
        let (third, both) = (stripe / 3, 2 * (stripe + stripe / 3));
        let partly = [[stripe, 3 * stripe]];
        assert_eq!(parts(write, stripe + third, both, &raid5, healthy), partly);
        let smaller = [[0, stripe]];
        assert_eq!(parts(write, BLOCK, 2 * BLOCK, &raid5, healthy), smaller);
        assert!(parts(write, BLOCK, 2 * BLOCK, &raid10, healthy).is_empty());
        assert!(parts(Kind::RandomWrite, BLOCK, 9 * BLOCK, &raid10, healthy).is_empty());
        for layout in [&raid5, &raid10] {
            let read = parts(Kind::DdRead, BLOCK, 2 * BLOCK, layout, healthy);
            assert_eq!(read, [[0, 2 * BLOCK]]);
            let all = parts(write, 2 * stripe, 8 * stripe, layout, State::Degraded);
            assert_eq!(all[0][0], 0, "a lost member is rebuilt from what is there");
        }
    }

    /// Of a large array the places that are drawn are filled, and each of them lies in what is filled.
    #[test]
    fn few_places_of_a_large_array_are_filled_alone() {
        let raid6 = Layout::new(Level::Raid6, 5);
        let stripe = raid6.full_stripe().expect("chunks").bytes();
        let capacity = 1 << 40;
        let (reads, writes) = (Kind::RandomRead, Kind::RandomWrite);
        for (kind, state, unit) in [
            (reads, State::Healthy, BLOCK),
            (reads, State::Degraded, stripe),
            (writes, State::Healthy, stripe),
        ] {
            let workload = Simple::new(kind, 100 * BLOCK);
            let filled = parts(&workload, (&raid6, state), capacity, 2);
            let bytes: u64 = filled.iter().map(|[from, to]| to - from).sum();
            assert!(filled.len() > 190 && bytes <= 200 * unit, "{} {bytes}", filled.len());
            assert!(filled.iter().flatten().all(|at| at.is_multiple_of(unit)));
            let mut again = plan(&workload, capacity, 2, 1).expect("it fits");
            for process in &mut again.processes {
                let asked = std::iter::from_fn(|| {
                    let asked = process.next(Time::ZERO, OpResult::Done);
                    (asked != Asked::Done).then_some(asked)
                });
                for (at, len) in asked.filter_map(|asked| Some(asked.operation()?.span())) {
                    let there = |[from, to]: &[u64; 2]| *from <= at && at + len <= *to;
                    assert!(len == 0 || filled.iter().any(there), "{at}");
                }
            }
        }
        // So many places that one run over all takes no longer.
        let capacity = 100 * stripe + BLOCK;
        let many = Simple::new(writes, 1_000 * BLOCK);
        assert_eq!(parts(&many, (&raid6, State::Healthy), capacity, 1), [[0, capacity]]);
    }
    /// What a file holds behind a barrier is what was written before it, whoever is asked first.
    #[test]
    fn what_is_read_behind_a_barrier_is_filled() {
        let jobs = "[read]\nstonewall\nfilename=x\nrw=read\nbs=64k\nsize=16m\n";
        let jobs = format!("[write]\nfilename=x\nrw=write\nbs=4k\nsize=16m\n{jobs}");
        let jobs = fio::parse(&jobs, "jobs", &|_| None).expect("a job file").workload();
        let raid10 = Layout::new(Level::Raid10, 4);
        let array = (&raid10, State::Healthy);
        // Writes of whole blocks are not filled there, so that only what is read is.
        let filled = parts_after(&*jobs, array, (1 << 40, 1), Before::WrittenThroughout);
        assert_eq!(filled, [[0, 16 << 20]]);
    }

    /// What depends on the time, or on who takes which ticket, is not known beforehand: all is filled.
    #[test]
    fn what_is_not_known_beforehand_is_not_guessed() {
        let known = |plan: Plan| {
            let done = RawPlan::new(plan, 1 << 20).expect("it has no files");
            touched(done, 1 << 20, 1 << 20, None).is_some()
        };
        assert!(known(Plan::default()));
        assert!(!known(Plan { asks_time: true, ..Plan::default() }));
        assert!(!known(Plan { queues: 1, ..Plan::default() }));
    }

    /// Sleeps until a time, as long as it is asked.
    #[derive(Debug)]
    struct Late(u32);

    impl Process for Late {
        fn next(&mut self, now: Time, _last: Last) -> Op {
            self.0 += 1;
            assert!(self.0 < 100, "it is asked for ever");
            let until = Time(1_000);
            if now < until { Op::Sleep(until.since(now)) } else { Op::Done }
        }
    }

    #[test]
    fn who_waits_for_a_time_is_not_asked_for_ever() {
        let late = Planned { copy: 0, process: Box::new(Late(0)) };
        let stuck = Planned { copy: 0, process: Box::new(Barrier) };
        let plan = Plan { run: vec![late, stuck], barriers: vec![2], ..Plan::default() };
        let plan = RawPlan::new(plan, 1 << 20).expect("it has no files");
        let touched = touched(plan, 1 << 20, 1 << 20, None).expect("it is known");
        assert!(touched.blocks.is_empty());
    }

    /// Waits for somebody who never comes.
    #[derive(Debug)]
    struct Barrier;

    impl Process for Barrier {
        fn next(&mut self, _now: Time, _last: Last) -> Op {
            Op::Barrier(0)
        }
    }
}
