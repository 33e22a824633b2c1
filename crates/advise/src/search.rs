//! The search: all candidates shortly, fewer for longer, the last ones again on fresh seeds.

use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use raidlab_study::State;

use crate::candidate::{Candidate, Structure};
use crate::meter::{self, Measured, Plan};
use crate::objectives::{Costs, Figures, NO_TAIL, Weights, halve, keep, score};
use crate::risks::{self, Risks};
use crate::wanted::Wanted;

/// Runs of the last candidates, each with a seed that nobody chose by.
pub const ROUNDS: u64 = 7;
/// How many structures come to the last runs at most.
const FINALISTS: usize = 8;
/// What is a reason to look at another candidate first: a limit that is violated.
const VIOLATED: f64 = 1e4;

/// Where jobs are carried out, on as many threads as there are.
pub trait Pool {
    /// Carries out so many jobs, each once; `what` is told while they go on.
    ///
    /// # Errors
    /// Of the first job that failed; [`NoAdvice::Stopped`] when the user broke it off.
    fn run(
        &self,
        count: usize,
        what: &str,
        one: &(dyn Fn(usize) -> Result<(), String> + Sync),
    ) -> Result<(), NoAdvice>;

    /// What ends runs early when it is set.
    fn stop(&self) -> Option<&'static AtomicBool> {
        None
    }
}

/// One job after the other, in the thread that asks.
#[derive(Clone, Copy, Debug, Default)]
pub struct InTurn;

impl Pool for InTurn {
    fn run(
        &self,
        count: usize,
        _what: &str,
        one: &(dyn Fn(usize) -> Result<(), String> + Sync),
    ) -> Result<(), NoAdvice> {
        (0..count).try_for_each(|job| one(job).map_err(NoAdvice::Failed))
    }
}

/// What so many jobs of a pool give, in order.
pub(crate) fn gather<T: Send + Sync>(
    pool: &dyn Pool,
    count: usize,
    what: &str,
    one: &(dyn Fn(usize) -> Result<T, String> + Sync),
) -> Result<Vec<T>, NoAdvice> {
    let found: Vec<OnceLock<T>> = (0..count).map(|_| OnceLock::new()).collect();
    pool.run(count, what, &|job| {
        let given = one(job)?;
        // A job that is done twice gives the same.
        let _ = found[job].set(given);
        Ok(())
    })?;
    let all: Option<Vec<T>> = found.into_iter().map(OnceLock::into_inner).collect();
    all.ok_or_else(|| NoAdvice::Failed("not all jobs were carried out".to_owned()))
}

/// Why there is no advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAdvice {
    /// What was asked cannot be, in words.
    Input(String),
    /// No layout meets the limits: which to relax, by how much.
    Limits(Vec<String>),
    /// A run failed.
    Failed(String),
    /// Broken off.
    Stopped,
}

/// A candidate that came to the last runs.
#[derive(Clone, Debug)]
pub struct Finalist {
    /// The candidate.
    pub candidate: Candidate,
    /// Usable bytes.
    pub usable: u64,
    /// Its runs, on seeds that all finalists share.
    pub rounds: Vec<Measured>,
    /// Chance of losing the array by the end of the mission, with the central figures.
    pub risk: f64,
    /// Its medians as costs.
    pub costs: Costs,
}

/// What was spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Candidates.
    pub candidates: usize,
    /// Runs.
    pub runs: usize,
    /// Simulated requests.
    pub requests: u64,
}

/// Measures candidates and remembers what it spent.
pub struct Search<'a> {
    wanted: &'a Wanted,
    pool: &'a dyn Pool,
    candidates: &'a [Candidate],
    weights: Weights,
    /// What was spent.
    pub spent: Spent,
    risks: Risks,
}

impl<'a> Search<'a> {
    /// Nothing is measured yet.
    pub fn new(
        wanted: &'a Wanted,
        pool: &'a dyn Pool,
        candidates: &'a [Candidate],
        weights: Weights,
    ) -> Self {
        let count = candidates.len();
        let spent = Spent { candidates: count, ..Spent::default() };
        Self { wanted, pool, candidates, weights, spent, risks: Risks::default() }
    }

    /// Costs of all candidates, measured at full length: what halving saves.
    ///
    /// # Errors
    /// Of the first run that failed.
    pub fn exhaustive(&mut self, seed: u64) -> Result<Vec<Costs>, NoAdvice> {
        let all: Vec<usize> = (0..self.candidates.len()).collect();
        self.look(&all, 1, seed)
    }

    /// The candidates that are left, with their costs at full length.
    ///
    /// # Errors
    /// Of the first run that failed.
    pub fn halved(&mut self, seed: u64) -> Result<Vec<(usize, Costs)>, NoAdvice> {
        let weights = self.weights;
        let mut look = 0;
        halve(self.candidates.len(), &weights, |left, share| {
            look += 1;
            self.look(left, share, raidlab_random::mix(&[seed, look]))
        })
    }

    /// Costs of some candidates by one run of each plan.
    fn look(&mut self, left: &[usize], share: u64, seed: u64) -> Result<Vec<Costs>, NoAdvice> {
        let (plans, of) = plans(left.iter().map(|at| &self.candidates[*at]));
        let what = format!("{} candidates, 1/{share} of the length", left.len());
        let requests = (self.wanted.requests / share).max(90);
        let measured = self.measure(&plans, requests, &[seed], &what)?;
        let candidates = self.candidates;
        let runs: Vec<(&Candidate, &[Measured])> = left
            .iter()
            .zip(of)
            .map(|(at, plan)| (&candidates[*at], &measured[plan..=plan]))
            .collect();
        let asked: Vec<(&Candidate, f64)> =
            runs.iter().map(|(candidate, runs)| (*candidate, self.rebuild(runs))).collect();
        let risks = self.risks.rough(self.wanted, self.pool, &asked)?;
        let of = |((candidate, runs), risk): (&(&Candidate, &[Measured]), f64)| {
            self.costs(candidate, runs, risk)
        };
        Ok(runs.iter().zip(risks).map(of).collect())
    }

    /// Runs of plans, by plan and then by seed.
    fn measure(
        &mut self,
        plans: &[Plan],
        requests: u64,
        seeds: &[u64],
        what: &str,
    ) -> Result<Vec<Measured>, NoAdvice> {
        let studies = meter::studies(self.wanted, plans, requests).map_err(NoAdvice::Failed)?;
        let bench = meter::bench(self.wanted, &studies, self.pool.stop());
        let bench = bench.map_err(NoAdvice::Input)?;
        let count = plans.len() * seeds.len();
        let measured = gather(self.pool, count, what, &|job| {
            meter::run(&bench, job / seeds.len(), seeds[job % seeds.len()])
        })?;
        self.spent.runs += measured.iter().map(|one| one.samples.len()).sum::<usize>();
        self.spent.requests += measured.iter().map(Measured::requests).sum::<u64>();
        Ok(measured)
    }

    /// The hours that a rebuild takes by the median of some runs; none without redundancy.
    fn rebuild(&self, runs: &[Measured]) -> f64 {
        let hours = runs.iter().filter_map(|one| one.rebuild(self.wanted)).collect::<Vec<f64>>();
        median(&hours).unwrap_or(0.0)
    }

    /// Figures of a candidate as costs: the medians of its runs.
    fn costs(&self, candidate: &Candidate, runs: &[Measured], risk: f64) -> Costs {
        let wanted = self.wanted;
        let figures = figures(wanted, candidate, runs, risk);
        let mut costs = figures.costs();
        if let Some(violation) = violation(wanted, runs) {
            costs[0] += VIOLATED * violation;
        }
        costs
    }

    /// The last runs, on seeds that nobody chose by: of the best structures of those that are left each as it did best
    /// and as mdadm makes it.
    ///
    /// # Errors
    /// Of the first run that failed.
    pub fn finals(
        &mut self,
        left: &[(usize, Costs)],
        seed: u64,
    ) -> Result<Vec<Finalist>, NoAdvice> {
        let chosen = self.chosen(left);
        let what = format!("the last {} on fresh seeds", chosen.len());
        self.runs_of(chosen, seed, &what)
    }

    /// Full runs of candidates on seeds that they share.
    pub(crate) fn runs_of(
        &mut self,
        chosen: Vec<Candidate>,
        seed: u64,
        what: &str,
    ) -> Result<Vec<Finalist>, NoAdvice> {
        let (plans, of) = plans(chosen.iter());
        let seeds: Vec<u64> =
            (0..ROUNDS).map(|round| raidlab_random::mix(&[seed, round])).collect();
        let requests = self.wanted.requests;
        let measured = self.measure(&plans, requests, &seeds, what)?;
        let of_plan = |plan: usize| &measured[plan * seeds.len()..(plan + 1) * seeds.len()];
        let asked = chosen.iter().zip(&of);
        let asked: Vec<(&Candidate, f64)> =
            asked.map(|(one, plan)| (one, self.rebuild(of_plan(*plan)))).collect();
        let risks = risks::shown(self.wanted, self.pool, &asked)?;
        let mut finalists = Vec::new();
        for ((candidate, plan), risk) in chosen.into_iter().zip(of).zip(risks) {
            let runs = of_plan(plan).to_vec();
            let costs = self.costs(&candidate, &runs, risk);
            let usable = candidate.usable(self.wanted.member()).unwrap_or(0);
            finalists.push(Finalist { candidate, usable, rounds: runs, risk, costs });
        }
        Ok(finalists)
    }

    fn chosen(&self, left: &[(usize, Costs)]) -> Vec<Candidate> {
        // Of each structure that is left the best one.
        let mut best: Vec<(Structure, usize, Costs)> = Vec::new();
        for (at, costs) in left {
            let structure = self.candidates[*at].structure();
            let better = |other: &Costs| score(costs, &self.weights) < score(other, &self.weights);
            match best.iter_mut().find(|(one, _, _)| *one == structure) {
                Some(one) if better(&one.2) => (one.1, one.2) = (*at, *costs),
                Some(_) => {}
                None => best.push((structure, *at, *costs)),
            }
        }
        // Who names a few layouts wants to see each.
        if !self.wanted.among.is_empty() {
            for candidate in self.candidates {
                let structure = candidate.structure();
                if best.len() < FINALISTS && !best.iter().any(|(one, _, _)| *one == structure) {
                    let at = self.candidates.iter().position(|one| one == candidate).unwrap_or(0);
                    best.push((structure, at, [f64::MAX / 1e300; 6]));
                }
            }
        }
        // Who names a few chunks wants to see each.
        let each =
            !self.wanted.chunks.is_empty() && best.len() * self.wanted.chunks.len() <= FINALISTS;
        let costs: Vec<Costs> = best.iter().map(|(_, _, costs)| *costs).collect();
        let mut chosen = Vec::new();
        for place in keep(&costs, &self.weights, FINALISTS) {
            let (structure, at, _) = &best[place];
            let of = |one: &&Candidate| one.structure() == *structure && one.is_default();
            for candidate in [Some(&self.candidates[*at]), self.candidates.iter().find(of)] {
                if let Some(candidate) = candidate.filter(|one| !chosen.contains(*one)) {
                    chosen.push(candidate.clone());
                }
            }
            let named = self.candidates.iter().filter(|one| each && one.structure() == *structure);
            let named: Vec<Candidate> =
                named.filter(|one| !chosen.contains(*one)).cloned().collect();
            chosen.extend(named);
        }
        chosen
    }
}

/// The plans of candidates, each once, and which of them is each candidate's.
fn plans<'c>(candidates: impl Iterator<Item = &'c Candidate>) -> (Vec<Plan>, Vec<usize>) {
    let (mut plans, mut of): (Vec<Plan>, Vec<usize>) = (Vec::new(), Vec::new());
    for candidate in candidates {
        let plan = Plan::from(candidate);
        let at = plans.iter().position(|one| *one == plan).unwrap_or_else(|| {
            plans.push(plan);
            plans.len() - 1
        });
        of.push(at);
    }
    (plans, of)
}

/// The medians of runs, and what is known without any.
pub(crate) fn figures(
    wanted: &Wanted,
    candidate: &Candidate,
    runs: &[Measured],
    risk: f64,
) -> Figures {
    let of = |figure: &dyn Fn(&Measured) -> Option<f64>| {
        median(&runs.iter().filter_map(figure).collect::<Vec<f64>>())
    };
    let drives = f64::from(candidate.drives());
    let limits = &wanted.limits;
    let price = limits.budget.map(|budget| budget.1).or(limits.price).unwrap_or(0.0);
    let healthy = of(&|run| run.tail(wanted, State::Healthy)).unwrap_or(0.0);
    // Work that comes at a rate of its own is done at that rate.
    let is_paced = wanted.is_paced();
    let speed = of(&|run| run.speed(wanted, State::Healthy)).unwrap_or(0.0);
    let tail = of(&|run| run.tail(wanted, counted_state(wanted))).unwrap_or(healthy * NO_TAIL);
    Figures {
        speed: if is_paced { 1.0 } else { speed },
        tail: if wanted.is_buffered() { tail.max(BUFFERED) } else { tail },
        capacity: candidate.usable(wanted.member()).unwrap_or(0) as f64,
        risk,
        price: drives * price,
        watts: drives * limits.watts.map_or(0.0, |watts| watts.1),
    }
}

/// Seconds that who must keep up buffers, or a page cache that nothing is read from: whatever is answered sooner is as
/// good.
const BUFFERED: f64 = 1.0;

/// The state whose p99 counts: who need survive no loss does not ask what comes after one.
pub(crate) const fn counted_state(wanted: &Wanted) -> State {
    if wanted.limits.survive == 0 { State::Healthy } else { State::Degraded }
}

/// By what factor, as a logarithm, runs miss limits that only runs can tell; `None` where they meet them.
pub(crate) fn violation(wanted: &Wanted, runs: &[Measured]) -> Option<f64> {
    let limits = &wanted.limits;
    let mut missed = 0.0;
    let mut miss = |factor: f64| missed += libm::log(factor.max(1.0));
    if let Some(most) = limits.tail {
        miss(worst_tail(wanted, runs) / most);
    }
    if let Some((least, unit)) = limits.speed {
        miss(least / slowest(wanted, runs, unit).max(1e-9));
    }
    let kept: Vec<f64> = runs.iter().map(|run| run.keeps_up(wanted)).collect();
    miss(KEEPS_UP / median(&kept).unwrap_or(1.0).max(1e-9));
    (missed > 0.0).then_some(missed)
}

/// What the slowest part that is counted in a unit does, of the median run.
pub(crate) fn slowest(wanted: &Wanted, runs: &[Measured], unit: &str) -> f64 {
    let speeds: Vec<f64> = runs.iter().filter_map(|run| run.slowest(wanted, unit)).collect();
    median(&speeds).unwrap_or(0.0)
}

/// Streams that get this share of their rate are kept up with. fio's `thinktime` comes after a write has ended, so one
/// that takes a tenth of the time between two makes the stream so much slower, though a camera goes on by its clock.
pub(crate) const KEEPS_UP: f64 = 0.9;

/// The p99 of the worse of both states, of the median run.
pub(crate) fn worst_tail(wanted: &Wanted, runs: &[Measured]) -> f64 {
    let of = |state| {
        median(&runs.iter().filter_map(|run| run.tail(wanted, state)).collect::<Vec<f64>>())
    };
    let tails = [State::Healthy, State::Degraded].into_iter().filter_map(of);
    tails.fold(0.0, f64::max)
}

/// The median; `None` of none.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let above = *values.get(middle)?;
    Some(if values.len().is_multiple_of(2) { (values[middle - 1] + above) / 2.0 } else { above })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{finalist, wanted};

    /// By the sum of the logarithms of what is missed; what is met twice over makes up for nothing.
    #[test]
    fn limits_that_only_runs_tell_are_missed_by_their_factors() {
        let mut wanted = wanted(4, "nas-8tb-7200", "vm");
        let one = finalist(&wanted, "raid5(4)", &[100], [Some(20), Some(40)]);
        let mut missed = |tail: Option<f64>, speed: Option<f64>| {
            (wanted.limits.tail, wanted.limits.speed) = (tail, speed.map(|least| (least, "I/O/s")));
            violation(&wanted, &one.rounds)
        };
        let near = |found: Option<f64>, factor: f64| {
            (found.expect("missed") - libm::log(factor)).abs() < 1e-9
        };
        assert_eq!(missed(None, None), None);
        assert_eq!(missed(Some(0.04), Some(100.0)), None, "just met");
        assert!(near(missed(Some(0.02), None), 2.0), "degraded, the worse of both");
        assert!(near(missed(None, Some(300.0)), 3.0));
        assert!(near(missed(Some(0.02), Some(300.0)), 6.0));
        assert!(near(missed(Some(0.02), Some(1.0)), 2.0));
    }

    /// Not what all parts do by their mean: the backup that is written and the one that is verified each.
    #[test]
    fn each_part_has_to_be_fast_enough() {
        let mut wanted = wanted(4, "nas-8tb-7200", "backup");
        let one = finalist(&wanted, "raid5(4)", &[400, 100], [Some(20), Some(40)]);
        let mut missed = |least: f64, unit: &'static str| {
            wanted.limits.speed = Some((least, unit));
            let told = crate::relax::after_runs(&wanted, std::slice::from_ref(&one));
            (violation(&wanted, &one.rounds), told[0].clone())
        };
        assert_eq!(missed(100e6, "MB/s").0, None);
        // The geometric mean is 200 MB/s.
        let (violation, told) = missed(150e6, "MB/s");
        assert!((violation.expect("missed") - libm::log(1.5)).abs() < 1e-9);
        assert_eq!(told, "--speed: 67 % of what is asked (raid5(4))");
        assert!(missed(1.0, "I/O/s").0.is_some(), "nothing is counted so");
    }

    #[test]
    fn medians_of_even_numbers_lie_between_both() {
        assert_eq!(median(&[4.0, 1.0, 2.0, 10.0]), Some(3.0));
        assert_eq!((median(&[5.0, 1.0, 2.0]), median(&[])), (Some(2.0), None));
    }

    const CHUNKS_OF_64K_256K_512K: [&str; 3] =
        ["raid5(4) chunk=64K", "raid5(4) chunk=256K", "raid5(4)"];

    fn named(layout: &str) -> Candidate {
        let layout = layout.parse().expect("a layout");
        Candidate { layout, spares: 0, mode: crate::candidate::Mode::None }
    }

    /// Who comes to the last runs, of candidates of which some are left with these costs in all objectives.
    fn last(wanted: &Wanted, all: &[Candidate], left: &[(usize, f64)]) -> Vec<String> {
        let search = Search::new(wanted, &InTurn, all, [1.0; 6]);
        let left: Vec<(usize, Costs)> = left.iter().map(|(at, cost)| (*at, [*cost; 6])).collect();
        search.chosen(&left).iter().map(ToString::to_string).collect()
    }

    /// A structure comes as it did best, and as mdadm makes it; each once, and none that is no longer left.
    #[test]
    fn structures_come_to_the_last_runs_as_they_did_best_and_as_mdadm_makes_them() {
        let wanted = wanted(4, "nas-8tb-7200", "vm");
        let mut all: Vec<Candidate> = CHUNKS_OF_64K_256K_512K.map(named).to_vec();
        all.extend(["raid6(4) chunk=64K", "raid6(4)", "raid10(4)"].map(named));
        let of_raid5 = |left: &[(usize, f64)]| last(&wanted, &all, left);
        let both = ["raid5(4) chunk=256K", "raid5(4)"];
        assert_eq!(of_raid5(&[(0, 20.0), (1, 10.0)]), both);
        assert_eq!(of_raid5(&[(1, 10.0), (0, 20.0)]), both, "whichever was looked at first");
        assert_eq!(of_raid5(&[(0, 20.0), (2, 10.0)]), ["raid5(4)"]);
        assert_eq!(
            of_raid5(&[(3, 10.0), (0, 30.0), (1, 20.0)]),
            ["raid6(4) chunk=64K", "raid6(4)", "raid5(4) chunk=256K", "raid5(4)"],
            "the best first"
        );
    }

    #[test]
    fn what_is_named_is_seen_whatever_it_did() {
        let mut asked = wanted(4, "nas-8tb-7200", "vm");
        let layouts =
            ["raid5(4)", "raid5(4) chunk=64K", "raid6(4)", "raid6(4) chunk=64K", "raid10(4)"];
        let all = layouts.map(named);
        assert_eq!(last(&asked, &all, &[(1, 5.0)]), ["raid5(4) chunk=64K", "raid5(4)"]);
        asked.among = ["raid5(4)", "raid6(4)", "raid10(4)"]
            .map(|one| crate::wanted::Among::Layout(one.parse().expect("a layout")))
            .to_vec();
        assert_eq!(
            last(&asked, &all, &[(1, 5.0)]),
            ["raid5(4) chunk=64K", "raid5(4)", "raid6(4)", "raid10(4)"]
        );
        // Chunks that are named are seen of each structure that is left, beside no other structure's.
        asked.among.clear();
        asked.chunks = vec![raidlab_core::Sectors(128), raidlab_core::Sectors(1024)];
        assert_eq!(
            last(&asked, &all, &[(2, 5.0), (1, 9.0)]),
            ["raid6(4)", "raid6(4) chunk=64K", "raid5(4) chunk=64K", "raid5(4)"]
        );
        // Of three structures three chunks each would be more than come to the last runs.
        let chunks = ["64K", "128K", "256K"];
        let many: Vec<Candidate> = ["raid5(4)", "raid6(4)", "raid10(4)"]
            .iter()
            .flat_map(|level| chunks.map(|chunk| named(&format!("{level} chunk={chunk}"))))
            .collect();
        asked.chunks = [128, 256, 512].map(raidlab_core::Sectors).to_vec();
        assert_eq!(
            last(&asked, &many, &[(0, 5.0), (3, 9.0), (6, 14.0)]),
            ["raid5(4) chunk=64K", "raid6(4) chunk=64K", "raid10(4) chunk=64K"]
        );
    }

    #[test]
    fn eight_structures_come_to_the_last_runs() {
        let asked = wanted(8, "nas-8tb-7200", "vm");
        let all: Vec<Candidate> =
            (2..=12).map(|drives| named(&format!("raid5({})", drives + 1))).collect();
        let left: Vec<(usize, f64)> = (0..11).map(|at| (at, at as f64 * 3.0)).collect();
        let chosen = last(&asked, &all, &left);
        assert_eq!(chosen.len(), 8, "{chosen:?}");
        assert_eq!(chosen[0], "raid5(3)", "the best among them");
    }

    /// All drives are paid for, spares too, at the price of the budget where there is one.
    #[test]
    fn prices_are_those_of_all_drives() {
        let mut asked = wanted(4, "nas-8tb-7200", "vm");
        let one = finalist(&asked, "raid5(3) + spare", &[100], [Some(20), Some(40)]);
        let price = |asked: &Wanted| figures(asked, &one.candidate, &one.rounds, 0.1).price;
        assert_eq!(price(&asked), 0.0);
        asked.limits.price = Some(150.0);
        assert_eq!(price(&asked), 600.0);
        asked.limits.budget = Some((1_000.0, 200.0));
        assert_eq!(price(&asked), 800.0);
        asked.limits.watts = Some((100.0, 8.0));
        let found = figures(&asked, &one.candidate, &one.rounds, 0.1);
        assert_eq!((found.watts, found.tail), (32.0, 0.04));
        asked.limits.survive = 0;
        assert_eq!(figures(&asked, &one.candidate, &one.rounds, 0.1).tail, 0.02, "healthy alone");
    }

    #[test]
    fn who_must_keep_up_has_a_second_of_buffers() {
        let asked = wanted(4, "nas-8tb-7200", "surveillance");
        let rates = vec![100; asked.profile.parts.len()];
        let tail = |p99: u64| {
            let one = finalist(&asked, "raid5(4)", &rates, [Some(20), Some(p99)]);
            let found = figures(&asked, &one.candidate, &one.rounds, 0.1);
            (found.speed, found.tail)
        };
        assert_eq!((tail(40), tail(3_000)), ((1.0, 1.0), (1.0, 3.0)));
    }

    /// Of who only writes to files a page cache takes what comes within a second: no array is better for taking it in
    /// one millisecond and not in two. Who reads waits.
    #[test]
    fn what_only_ends_in_a_page_cache_is_not_told_apart_by_milliseconds() {
        for (work, counted) in [("capture", 1.0), ("nas", 0.04), ("backup", 0.04)] {
            let asked = wanted(8, "ssd-sata-1tb", work);
            assert_eq!(asked.is_buffered(), work == "capture", "{work}");
            let rates = vec![100; asked.profile.parts.len()];
            let one = finalist(&asked, "raid5(8)", &rates, [Some(20), Some(40)]);
            let found = figures(&asked, &one.candidate, &one.rounds, 0.1);
            assert!((found.tail - counted).abs() < 1e-9, "{work}: {}", found.tail);
        }
    }

    /// Streams that get less than nine tenths of their rate miss it by what is left to that.
    #[test]
    fn streams_that_are_not_kept_up_with_are_a_miss() {
        let mut asked = wanted(4, "nas-8tb-7200", "surveillance");
        let rates = vec![9; asked.profile.parts.len()];
        asked.streams = 36;
        let one = finalist(&asked, "raid5(4)", &rates, [Some(20), Some(40)]);
        // 36 streams of 0.5 MB/s are 18 MB/s: half of it.
        let missed = violation(&asked, &one.rounds).expect("missed");
        assert!((missed - libm::log(0.9 / 0.5)).abs() < 1e-9, "{missed}");
        asked.streams = 18;
        assert_eq!(violation(&asked, &one.rounds), None);
    }

    /// Whatever misses a limit comes behind all that meet it, by how far it misses it.
    #[test]
    fn a_missed_limit_weighs_more_than_anything() {
        let mut asked = wanted(4, "nas-8tb-7200", "vm");
        asked.limits.tail = Some(0.02);
        let all = [named("raid5(4)")];
        let search = Search::new(&asked, &InTurn, &all, [1.0; 6]);
        let cost = |rate: u64, p99: u64| {
            let one = finalist(&asked, "raid5(4)", &[rate], [Some(10), Some(p99)]);
            score(&search.costs(&one.candidate, &one.rounds, 0.1), &[1.0; 6])
        };
        assert!(cost(1, 20) < cost(1_000_000, 21));
        assert!(cost(1_000_000, 21) < cost(1_000_000, 40) && cost(100, 40) < cost(100, 80));
    }

    /// Whose data are gone with a drive missing is as good as nothing where a loss is to be survived.
    #[test]
    fn what_loses_all_has_no_degraded_p99() {
        let mut asked = wanted(4, "nas-8tb-7200", "vm");
        let bare = finalist(&asked, "raid0(4)", &[100], [Some(20), None]);
        let of = |asked: &Wanted| figures(asked, &bare.candidate, &bare.rounds, 0.1);
        assert_eq!(of(&asked).tail, 0.02 * NO_TAIL);
        assert!((of(&asked).speed - 100.0).abs() < 1e-9);
        asked.limits.survive = 0;
        assert_eq!(of(&asked).tail, 0.02);
        assert_eq!(of(&asked).capacity, bare.usable as f64);
        // Medians of each figure by itself: of seven rounds the fourth.
        let rounds = [3, 1, 2, 9, 8, 7, 4].map(|rate| {
            finalist(&asked, "raid0(4)", &[rate * 100], [Some(rate), None]).rounds[0].clone()
        });
        let found = figures(&asked, &bare.candidate, &rounds, 0.1);
        assert!((found.speed - 400.0).abs() < 1e-9 && found.tail == 0.004, "{found:?}");
    }

    /// Looks are drawn each anew, from the seed of the search.
    #[test]
    fn looks_have_seeds_of_their_own() {
        let mut asked = wanted(4, "nas-8tb-7200", "vm");
        asked.requests = 90;
        let all = [named("raid10(4)")];
        let speed = |seed: Option<u64>| {
            let mut search = Search::new(&asked, &InTurn, &all, [1.0; 6]);
            let costs = match seed {
                Some(seed) => search.look(&[0], 3, seed).expect("runs")[0],
                None => search.halved(7).expect("runs")[0].1,
            };
            costs[0]
        };
        let first = raidlab_random::mix(&[7, 1]);
        assert_eq!(speed(None), speed(Some(first)));
        assert_ne!(speed(None), speed(Some(7)));
    }
}
