//! Going through every order in which a program's steps can come, with a crash after each.

use raidlab_core::contract::IoOp;

use super::judge::Judge;
use super::{Counts, CrashConfig, Op};
use crate::breach::Breach;
use crate::caught::{caught, caught_as_broken};
use crate::content::{Content, mix};
use crate::device::Fate;
use crate::harness::{Fault, Harness, Work};
use crate::seen::Seen;
use crate::shape::{Set, has};
use raidlab_random::SplitMix64;

/// How a violation was reached.
#[derive(Clone, Debug)]
pub(super) struct Trace {
    pub(super) program: Vec<Op>,
    pub(super) steps: Vec<u32>,
    pub(super) picks: Vec<u32>,
    pub(super) lost: Set,
}

const SUBMIT: u32 = 0;
const WAKE: u32 = 1;
const FINISH: u32 = 2;

/// States of a program remembered at most, and images remembered at most.
const MOST_SEEN: usize = 1 << 21;

/// Paths drawn for a program at most.
const MOST_PATHS: u32 = 2000;

/// Where in a program a harness is.
#[derive(Clone, Copy, Debug)]
struct Place {
    next: usize,
    wakes: u32,
}

/// Goes through programs.
pub(super) struct Walk<'a> {
    config: &'a CrashConfig,
    progress: &'a mut dyn FnMut(&Counts),
    counts: Counts,
    /// Where the program's share of states ends.
    until: u64,
    /// States of the array that may still be gone into.
    nodes: u64,
    /// States whose steps were gone into.
    visited: Seen,
    /// Moments whose crashes were gone into.
    crashed: Seen,
    judge: Judge,
    /// Rigs to copy others into.
    pool: Vec<Harness>,
    steps: Vec<u32>,
    program: Vec<Op>,
    image: Vec<Content>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        config: &'a CrashConfig,
        base: &Harness,
        progress: &'a mut dyn FnMut(&Counts),
    ) -> Self {
        Self {
            config,
            progress,
            counts: Counts::default(),
            until: 0,
            nodes: 0,
            visited: Seen::new(MOST_SEEN),
            crashed: Seen::new(MOST_SEEN),
            judge: Judge::new(config, base, MOST_SEEN * 4),
            pool: Vec::new(),
            steps: Vec::new(),
            program: Vec::new(),
            image: Vec::new(),
        }
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    /// Goes through the orders of a program: all of them, or, when that takes more than its share
    /// of states, as many again along paths drawn by the seed.
    pub(super) fn program(
        &mut self,
        base: &Harness,
        program: &[Op],
        share: u64,
    ) -> Result<(), Box<Trace>> {
        self.counts.programs += 1;
        self.visited.clear();
        self.steps.clear();
        self.program = program.to_vec();
        let mut quiet = base.clone();
        quiet.log_mut().stop();
        let base = &quiet;
        self.until = self.counts.states + share;
        self.nodes = share;
        let walk = || self.walk(base, Place { next: 0, wakes: 0 });
        let ended = caught(walk).unwrap_or_else(|_| Err(self.trace(&[], Set::MAX)));
        if ended.is_ok() && self.is_over() {
            self.counts.partly += 1;
            self.until = self.counts.states + share;
            self.steps.clear();
            let mut random = SplitMix64::new(mix(self.config.seed, self.counts.programs));
            for _ in 0..MOST_PATHS {
                if self.counts.states >= self.until {
                    break;
                }
                let path = || self.path(base, &mut random);
                caught(path).unwrap_or_else(|_| Err(self.trace(&[], Set::MAX)))?;
            }
        }
        (self.progress)(&self.counts);
        ended
    }

    /// One path through the program, with a crash after every step.
    fn path(&mut self, base: &Harness, random: &mut SplitMix64) -> Result<(), Box<Trace>> {
        let mut harness = self.pool.pop().unwrap_or_else(|| base.clone());
        harness.clone_from(base);
        let mut place = Place { next: 0, wakes: 0 };
        self.steps.clear();
        loop {
            if harness.violation().is_some() {
                return Err(self.trace(&[], Set::MAX));
            }
            self.crash(&harness)?;
            let steps = steps(self.config, &harness, &self.program, place);
            if steps.is_empty() {
                self.ended(&harness)?;
                self.pool.push(harness);
                self.steps.clear();
                return Ok(());
            }
            let step = steps[random.below(steps.len() as u64) as usize];
            self.steps.push(step);
            take(self.config, &mut harness, &self.program, &mut place, step);
        }
    }

    /// Whether the program's share is used up. Orders that lead to no new crash count too.
    fn is_over(&self) -> bool {
        self.counts.states >= self.until || self.nodes == 0
    }

    fn trace(&self, picks: &[u32], lost: Set) -> Box<Trace> {
        let (program, steps) = (self.program.clone(), self.steps.clone());
        Box::new(Trace { program, steps, picks: picks.to_vec(), lost })
    }

    /// Crashes here, then takes every step there is from here.
    fn walk(&mut self, harness: &Harness, place: Place) -> Result<(), Box<Trace>> {
        if harness.violation().is_some() {
            return Err(self.trace(&[], Set::MAX));
        }
        let key = mix(harness.key(), (place.next as u64) << 32 | u64::from(place.wakes));
        if !self.visited.add(key) || self.is_over() {
            return Ok(());
        }
        self.nodes -= 1;
        self.crash(harness)?;
        let steps = steps(self.config, harness, &self.program, place);
        if steps.is_empty() {
            return self.ended(harness);
        }
        for step in steps {
            let mut next = self.pool.pop().map_or_else(
                || harness.clone(),
                |mut spare| {
                    spare.clone_from(harness);
                    spare
                },
            );
            let mut place = place;
            self.steps.push(step);
            take(self.config, &mut next, &self.program, &mut place, step);
            let ended = self.walk(&next, place);
            self.steps.pop();
            self.pool.push(next);
            ended?;
        }
        Ok(())
    }

    /// A program has come to its end: everything was answered, and all is as it should be without
    /// any crash.
    fn ended(&mut self, harness: &Harness) -> Result<(), Box<Trace>> {
        match self.judge.quiet(harness, &self.program) {
            None => Ok(()),
            Some(_) => Err(self.trace(&[], Set::MAX)),
        }
    }

    /// Every crash at this moment.
    fn crash(&mut self, harness: &Harness) -> Result<(), Box<Trace>> {
        if !self.crashed.add(mix(harness.drives().key(), harness.oracle().key())) {
            return Ok(());
        }
        self.counts.moments += 1;
        let fates = harness.drives().fates();
        let out = harness.out_of_service();
        for set in harness.shape().survivable(out) {
            let lost = set & !out;
            if lost.count_ones() > self.config.lost {
                continue;
            }
            self.subsets(harness, &fates, lost)?;
        }
        Ok(())
    }

    /// Every subset of what is not durable on the drives that are not lost.
    fn subsets(&mut self, harness: &Harness, fates: &[Fate], lost: Set) -> Result<(), Box<Trace>> {
        let there = |fate: &Fate| !has(lost, fate.device.0);
        let legal = Judge::legal(harness, lost);
        let limit = u64::from(self.config.subsets);
        let ways = fates.iter().filter(|f| there(f)).map(|f| u64::from(f.ways));
        let all = ways.fold(1u64, |all, ways| all.saturating_mul(ways));
        let mut picks = vec![0; fates.len()];
        if all <= limit {
            loop {
                self.state(harness, fates, &picks, (lost, legal))?;
                let next =
                    (0..fates.len()).find(|k| there(&fates[*k]) && picks[*k] + 1 < fates[*k].ways);
                let Some(next) = next else { return Ok(()) };
                picks[next] += 1;
                picks[..next].fill(0);
            }
        }
        self.counts.drawn += 1;
        let mut random = SplitMix64::new(mix(self.config.seed, legal));
        for draw in 0..limit {
            for (pick, fate) in picks.iter_mut().zip(fates) {
                *pick = match draw {
                    0 => 0,
                    1 => fate.ways - 1,
                    _ => random.below(u64::from(fate.ways)) as u32,
                };
            }
            self.state(harness, fates, &picks, (lost, legal))?;
        }
        Ok(())
    }

    fn state(
        &mut self,
        harness: &Harness,
        fates: &[Fate],
        picks: &[u32],
        (lost, legal): (Set, u64),
    ) -> Result<(), Box<Trace>> {
        self.counts.states += 1;
        if self.counts.states.is_multiple_of(1 << 16) {
            (self.progress)(&self.counts);
        }
        harness.drives().image(fates, picks, &mut self.image);
        match caught(|| self.judge.image(harness, &self.image, (lost, legal), &mut self.counts)) {
            Ok(true) => Ok(()),
            _ => Err(self.trace(picks, lost)),
        }
    }
}

/// The steps that can come next.
fn steps(config: &CrashConfig, harness: &Harness, program: &[Op], place: Place) -> Vec<u32> {
    let mut steps = Vec::new();
    if place.next < program.len() && harness.can_submit() {
        steps.push(SUBMIT);
    }
    // What ends next: of the I/Os to one drive that commute, any. A flush and a write do not.
    steps.extend((0..harness.outstanding() as u32).map(|index| FINISH + index));
    if harness.wakes_at().is_some() && place.wakes < config.wakes {
        steps.push(WAKE);
    }
    steps
}

fn take(config: &CrashConfig, harness: &mut Harness, program: &[Op], place: &mut Place, step: u32) {
    match step {
        SUBMIT => {
            program[place.next].submit(harness);
            place.next += 1;
        }
        WAKE => {
            harness.wake();
            place.wakes += 1;
        }
        step => harness.finish((step - FINISH) as usize, Fault::None),
    }
    if config.reads_at_once {
        let is_read = |work: &Work| matches!(work, Work::Io(io) if io.op == IoOp::Read);
        while let Some(index) = (0..harness.outstanding()).find(|k| is_read(harness.work(*k))) {
            harness.finish(index, Fault::None);
        }
    }
}

/// Takes the steps of a trace, crashes and judges; gives what is wrong.
pub(super) fn follow(config: &CrashConfig, harness: &mut Harness, trace: &Trace) -> Option<Breach> {
    caught_as_broken(|| take_all(config, harness, trace))
}

fn take_all(config: &CrashConfig, harness: &mut Harness, trace: &Trace) -> Option<Breach> {
    let mut place = Place { next: 0, wakes: 0 };
    for step in &trace.steps {
        take(config, harness, &trace.program, &mut place, *step);
    }
    if let Some(violation) = harness.violation() {
        return Some(violation.clone());
    }
    if trace.lost == Set::MAX {
        return Judge::ended(harness, &trace.program);
    }
    let mut image = Vec::new();
    let fates = harness.drives().fates();
    if trace.picks.len() != fates.len() {
        return Some(format!("a crash decides {} things there", fates.len()).into());
    }
    harness.drives().image(&fates, &trace.picks, &mut image);
    harness.log_crash(&fates, &trace.picks);
    let mut judge = Judge::new(config, harness, 16);
    judge.verbose(harness, &image, trace.lost)
}
