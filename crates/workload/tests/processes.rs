//! The loop that drives processes, on a target whose operations take as long as they say.

use std::collections::{BTreeMap, VecDeque};

use raidlab_core::{Nanos, Time};
use raidlab_workload::processes::{Asked, Begun, Fault, Processes, Ran, Target, Work, run};
use raidlab_workload::{MOST_STARTED, OpResult, Synchroniser};

/// An operation: how long it takes; nothing at all takes no time.
type Takes = u64;

/// Whose, with which number if it was started.
type Started = (usize, Option<u32>);

struct Timed {
    processes: Processes,
    asks: Vec<VecDeque<Asked<Takes>>>,
    now: u64,
    /// By the time of the end and the order of beginning.
    under_way: BTreeMap<(u64, usize), Started>,
    rests: BTreeMap<(u64, usize), usize>,
    begun: usize,
    /// One operation at a time; others are refused.
    one_at_a_time: bool,
    held: Vec<Option<Asked<Takes>>>,
    /// Nobody goes on when nothing is known of one.
    stops_at_nothing: bool,
    /// Who asked when, and what it was told.
    heard: Vec<(usize, u64, OpResult)>,
}

fn timed(asks: Vec<Vec<Asked<Takes>>>) -> Timed {
    let synchroniser = Synchroniser::new(&[2], 1);
    Timed {
        processes: Processes::new(asks.iter().map(|_| 0), 1, synchroniser),
        held: vec![None; asks.len()],
        asks: asks.into_iter().map(VecDeque::from).collect(),
        now: 0,
        under_way: BTreeMap::new(),
        rests: BTreeMap::new(),
        begun: 0,
        one_at_a_time: false,
        stops_at_nothing: false,
        heard: Vec::new(),
    }
}

impl Target for Timed {
    type Operation = Takes;
    type Error = (usize, Fault);

    fn processes(&mut self) -> &mut Processes {
        &mut self.processes
    }

    fn now(&self) -> Time {
        Time(self.now)
    }

    fn ask(
        &mut self,
        process: usize,
        now: Time,
        last: OpResult,
    ) -> Result<Asked<Takes>, Self::Error> {
        if let Some(held) = self.held[process].take() {
            return Ok(held);
        }
        self.heard.push((process, now.0, last));
        let asked = self.asks[process].pop_front().unwrap_or(Asked::Done);
        if self.stops_at_nothing && asked == Asked::Nothing {
            self.processes.stop();
        }
        Ok(asked)
    }

    fn begin(
        &mut self,
        process: usize,
        tag: Option<u32>,
        takes: Takes,
    ) -> Result<Begun, Self::Error> {
        if self.one_at_a_time && !self.under_way.is_empty() {
            let asked = Asked::Operation(takes);
            self.held[process] = Some(tag.map_or(asked, |tag| Asked::Start(tag, takes)));
            return Ok(Begun::Refused);
        }
        if takes == 0 {
            return Ok(Begun::Ended(OpResult::Moved(0)));
        }
        self.begun += 1;
        self.under_way.insert((self.now + takes, self.begun), (process, tag));
        Ok(Begun::UnderWay)
    }

    fn sleep(&mut self, process: usize, time: Nanos) {
        self.begun += 1;
        self.rests.insert((self.now + time.0, self.begun), process);
    }

    fn compute(&mut self, process: usize, work: Work) -> Result<(), Self::Error> {
        let (Work::Time(Nanos(time)) | Work::StdioBytes(time)) = work;
        self.sleep(process, Nanos(time));
        Ok(())
    }

    fn wait(&mut self) -> Result<bool, Self::Error> {
        if self.processes.is_stopped() && self.under_way.is_empty() {
            return Ok(false);
        }
        let ends = self.under_way.keys().chain(self.rests.keys()).map(|(at, _)| *at).min();
        let Some(at) = ends else { return Ok(false) };
        self.now = at;
        let end = (at, usize::MAX);
        while let Some(first) = self.under_way.first_entry().filter(|one| *one.key() < end) {
            match first.remove_entry() {
                ((_, number), (process, Some(tag))) => {
                    self.processes.started_ended(process, tag, number as u64);
                }
                (_, (process, None)) => self.processes.ended(process, OpResult::Moved(1)),
            }
        }
        while let Some(first) = self.rests.first_entry().filter(|one| *one.key() < end) {
            let process = first.remove();
            self.processes.ended(process, OpResult::Done);
        }
        Ok(true)
    }

    fn fault(&self, process: usize, fault: Fault) -> Self::Error {
        (process, fault)
    }
}

/// Who asked when.
fn asked(target: &Timed) -> Vec<(usize, u64)> {
    target.heard.iter().map(|(process, at, _)| (*process, *at)).collect()
}

#[test]
fn a_process_is_done_when_all_it_started_has_ended() {
    let mut target = timed(vec![vec![Asked::Start(1, 30), Asked::Start(2, 20)]]);
    assert_eq!(run(&mut target), Ok(Ran::Done));
    assert_eq!(asked(&target), [(0, 0); 3]);
    assert_eq!(target.processes.into_records()[0].ended, Time(30));
}

#[test]
fn what_was_started_is_told_in_the_order_in_which_it_ended() {
    let started = vec![Asked::Start(1, 30), Asked::Start(2, 20), Asked::Start(3, 10)];
    let asks = started.into_iter().chain([Asked::Operation(25)]);
    let mut target = timed(vec![asks.chain([Asked::Finish; 3]).collect()]);
    assert_eq!(run(&mut target), Ok(Ran::Done));
    let told = target.heard.split_off(4);
    let finished = |at, tag, moved| (0, at, OpResult::Finished { tag, moved });
    let all = [finished(25, 3, 3), finished(25, 2, 2), finished(30, 1, 1)];
    assert_eq!(told[0], (0, 25, OpResult::Moved(1)));
    assert_eq!(told[1..], all);
    for (asks, fault) in [
        (vec![Asked::Finish], Fault::NothingStarted),
        (vec![Asked::Start(0, 1); MOST_STARTED as usize + 1], Fault::TooManyStarted),
    ] {
        assert_eq!(run(&mut timed(vec![vec![], asks])), Err((1, fault)));
    }
}

#[test]
fn those_that_are_freed_go_on_behind_those_that_could_before() {
    let ticket = vec![Asked::Take(0), Asked::Operation(5)];
    let put = vec![Asked::Put(0, 7, 2), Asked::Operation(0), Asked::Barrier(0)];
    let mut target = timed(vec![ticket.clone(), ticket, put, vec![Asked::Barrier(0)]]);
    assert_eq!(run(&mut target), Ok(Ran::Done));
    let order: Vec<usize> = asked(&target).into_iter().map(|(process, _)| process).collect();
    // The last frees the third, and is done.
    assert_eq!(order, [0, 1, 2, 2, 2, 3, 3, 0, 1, 2, 0, 1]);
    assert_eq!(target.heard[7].2, OpResult::Ticket(7));
}

#[test]
fn no_time_at_all_is_nobody_elses_turn() {
    let nothing = [Asked::Sleep(Nanos::ZERO), Asked::Compute(Work::StdioBytes(0))];
    let mut target = timed(vec![nothing.into(), vec![Asked::Sleep(Nanos(3))]]);
    assert_eq!(run(&mut target), Ok(Ran::Done));
    assert_eq!(asked(&target), [(0, 0), (0, 0), (0, 0), (1, 0), (1, 3)]);
}

#[test]
fn what_was_refused_is_asked_for_again_before_anything_else() {
    let started = vec![Asked::Start(4, 10), Asked::Finish];
    let mut target = timed(vec![
        vec![Asked::Operation(10), Asked::Operation(10)],
        vec![Asked::Operation(10)],
        started,
    ]);
    target.one_at_a_time = true;
    assert_eq!(run(&mut target), Ok(Ran::Done));
    // By the time each got its turn: the third before the first's second.
    let ended: Vec<Time> =
        target.processes.into_records().into_iter().map(|one| one.ended).collect();
    assert_eq!(ended, [Time(40), Time(20), Time(30)]);
}

#[test]
fn who_waits_for_what_never_ends_stops_the_loop() {
    let mut target = timed(vec![vec![Asked::Take(0)], vec![Asked::Nothing, Asked::Put(0, 1, 1)]]);
    assert_eq!(run(&mut target), Ok(Ran::Waiting));
    assert_eq!((target.processes.left(), target.processes.steps()), (2, 1));
    // More is known of it.
    target.processes.resume();
    assert_eq!(run(&mut target), Ok(Ran::Done));
}

#[test]
fn a_loop_that_is_stopped_ends_what_is_under_way_and_goes_on_later() {
    let mut target = timed(vec![
        vec![Asked::Operation(10), Asked::Operation(10)],
        vec![Asked::Sleep(Nanos(100))],
        vec![Asked::Operation(5), Asked::Nothing],
    ]);
    target.stops_at_nothing = true;
    assert_eq!(run(&mut target), Ok(Ran::Waiting));
    assert_eq!((target.now, target.processes.left()), (10, 3));
    target.processes.resume();
    assert_eq!(run(&mut target), Ok(Ran::Done));
    let ended: Vec<Time> =
        target.processes.into_records().into_iter().map(|one| one.ended).collect();
    assert_eq!(ended, [Time(20), Time(100), Time(10)]);
}
