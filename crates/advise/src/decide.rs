//! The decision: one recommendation, the next best, by how much, how sure, and what would change it.

use raidlab_risk::{Answer, NoAnswer, Question, Span, WriteHole};
use raidlab_study::State;

use crate::candidate::{Candidates, candidates};
use crate::fidelity::{Figure, median_error, spread};
use crate::growth::{Growth, growth};
use crate::objectives::{Costs, Objective, Weights, dominates, score, weights};
use crate::relax;
use crate::search::{Finalist, NoAdvice, Pool, Search, Spent, median, violation};
use crate::wanted::{Prefer, Wanted};

/// A recommendation stands alone where the model's error could hardly turn it round: 19 times of 20.
pub const SURE: f64 = 0.95;

/// The whole advice.
#[derive(Clone, Debug)]
pub struct Advice {
    /// What was left out before anything was simulated.
    pub dropped: Candidates,
    /// What was spent.
    pub spent: Spent,
    /// Who came to the last runs, the best first.
    pub finalists: Vec<Finalist>,
    /// Their chances of losing data, in the same order.
    pub risks: Answer,
    /// Which of them no other dominates.
    pub front: Vec<usize>,
    /// The recommendation against the next best of another structure.
    pub verdict: Verdict,
    /// What chunk and consistency are worth on the recommended structure.
    pub variants: Vec<Variant>,
    /// What would change the answer.
    pub changes: Vec<Change>,
    /// What growing costs, of each finalist that is of another structure; empty where nobody asked.
    pub growths: Vec<(usize, Growth)>,
}

/// The recommendation against the next best.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Which finalist.
    pub pick: usize,
    /// The next best of another structure, if there is any.
    pub next: Option<usize>,
    /// By how many steps, all objectives together, as they are weighted.
    pub lead: f64,
    /// The chance that the lead is one, by what the model is off.
    pub sure: f64,
    /// What each objective adds to the lead, in steps.
    pub by: Vec<(Objective, f64)>,
}

impl Verdict {
    /// Whether the model's error could flip it: then it is either.
    pub fn is_either(&self) -> bool {
        self.next.is_some() && self.sure < SURE
    }
}

/// Another chunk or consistency of the recommended structure.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Which finalist.
    pub finalist: usize,
    /// By how many steps it is better than the pick; below 0 worse.
    pub lead: f64,
    /// Whether the model's error could flip that.
    pub is_alike: bool,
}

/// Something else, and what is best then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What, as a condition: `if space counts most`.
    pub when: String,
    /// The finalist that is then best; the pick where nothing changes.
    pub then: usize,
}

/// Answers.
///
/// # Errors
/// See [`NoAdvice`].
pub fn advise(wanted: &Wanted, pool: &dyn Pool) -> Result<Advice, NoAdvice> {
    wanted.check().map_err(NoAdvice::Input)?;
    let found = candidates(wanted);
    if found.all.is_empty() {
        return Err(NoAdvice::Limits(relax::before_runs(wanted)));
    }
    let weights = weights(wanted.prefer, wanted.limits.capacity.is_some());
    let mut search = Search::new(wanted, pool, &found.all, weights);
    let left = search.halved(raidlab_random::mix(&[wanted.seed, 1]))?;
    let mut finalists = search.finals(&left, raidlab_random::mix(&[wanted.seed, 2]))?;
    let mut spent = search.spent;
    let full = search.wanted.requests;
    spent.exhaustive = full * 3 * found.all.len() as u64 * crate::search::ROUNDS;
    if finalists.iter().all(|one| violation(wanted, &one.rounds).is_some()) {
        return Err(NoAdvice::Limits(relax::after_runs(wanted, &finalists)));
    }
    finalists.retain(|one| violation(wanted, &one.rounds).is_none());
    let order = |one: &Finalist| score(&one.costs, &weights);
    finalists.sort_by(|one, other| order(one).total_cmp(&order(other)));
    let pick = pick(wanted, &finalists, &weights);
    let verdict = verdict(wanted, &finalists, &weights, pick);
    let front = front(&finalists);
    let variants = variants(wanted, &finalists, &weights, pick);
    let changes = changes(wanted, &finalists, &weights, &verdict);
    let risks = risks(wanted, pool, &finalists)?;
    let growths = growths(wanted, &finalists, pick);
    Ok(Advice {
        dropped: found,
        spent,
        finalists,
        risks,
        front,
        verdict,
        variants,
        changes,
        growths,
    })
}

/// The best structure, as mdadm makes it unless another chunk or consistency is better beyond the model's error.
fn pick(wanted: &Wanted, finalists: &[Finalist], weights: &Weights) -> usize {
    let structure = finalists[0].candidate.structure();
    let default = finalists
        .iter()
        .position(|one| one.candidate.structure() == structure && one.candidate.is_default());
    match default {
        Some(default) if compared(wanted, finalists, weights, (0, default)).sure < SURE => default,
        _ => 0,
    }
}

/// How much better one finalist is than another, and how surely.
struct Compared {
    lead: f64,
    sure: f64,
    by: Vec<(Objective, f64)>,
}

fn compared(
    wanted: &Wanted,
    finalists: &[Finalist],
    weights: &Weights,
    (one, other): (usize, usize),
) -> Compared {
    let (one, other) = (&finalists[one], &finalists[other]);
    let gain = |at: usize| (other.costs[at] - one.costs[at]) * weights[at];
    let by = Objective::ALL.into_iter().enumerate().map(|(at, objective)| (objective, gain(at)));
    let by: Vec<(Objective, f64)> = by.collect();
    let lead: f64 = by.iter().map(|(_, gain)| gain).sum();
    let variance: f64 = by
        .iter()
        .zip(weights)
        .map(|((objective, _), weight)| off(wanted, *objective, (one, other)) * weight)
        .map(|off| off * off)
        .sum();
    let deviations = if variance > 0.0 { lead / libm::sqrt(variance) } else { lead * f64::INFINITY };
    let sure = if lead == 0.0 { 0.5 } else { 0.5 * libm::erfc(-deviations / std::f64::consts::SQRT_2) };
    Compared { lead, sure, by }
}

/// The standard deviation of an objective's ratio in steps: what the model is off, and what the draw of the seeds is.
fn off(wanted: &Wanted, objective: Objective, (one, other): (&Finalist, &Finalist)) -> f64 {
    let group = |at: usize| wanted.profile.parts[at].group;
    let parts = wanted.profile.parts.len();
    let of = |figure| {
        let errors = (0..parts).map(|at| median_error(group(at), figure, false));
        spread(errors.fold(0.0, f64::max))
    };
    let is_paced = wanted.profile.demand(wanted.streams).is_some();
    let (modelled, drawn) = match objective {
        Objective::Speed if !is_paced => {
            let speed = |one: &Finalist, at: usize| one.rounds[at].speed(wanted, State::Healthy);
            (of(Figure::Rate), luck(one, other, speed))
        }
        Objective::Tail => {
            let tail = |one: &Finalist, at: usize| one.rounds[at].tail(State::Degraded);
            (of(Figure::Tail), luck(one, other, tail))
        }
        // Rebuild times are the model's; what else nobody knows is the same for both.
        Objective::Risk if one.risk.max(other.risk) > crate::objectives::LEAST_RISK => {
            let errors = (0..parts).map(|at| median_error(group(at), Figure::Rate, true));
            (spread(errors.fold(0.0, f64::max)), 0.0)
        }
        _ => return 0.0,
    };
    let log = libm::sqrt(modelled * modelled + drawn * drawn);
    log / libm::log(objective.step())
}

/// The standard error of the mean log ratio over the rounds.
fn luck(one: &Finalist, other: &Finalist, of: impl Fn(&Finalist, usize) -> Option<f64>) -> f64 {
    let rounds = one.rounds.len().min(other.rounds.len());
    let log = |at| Some(libm::log(of(one, at)? / of(other, at)?));
    let logs: Vec<f64> = (0..rounds).filter_map(log).collect();
    let count = logs.len() as f64;
    if count < 2.0 {
        return 0.0;
    }
    let mean = logs.iter().sum::<f64>() / count;
    let squares: f64 = logs.iter().map(|log| (log - mean) * (log - mean)).sum();
    libm::sqrt(squares / (count - 1.0) / count)
}

fn verdict(wanted: &Wanted, finalists: &[Finalist], weights: &Weights, pick: usize) -> Verdict {
    let structure = finalists[pick].candidate.structure();
    let next = finalists.iter().position(|one| one.candidate.structure() != structure);
    let Some(next) = next else {
        return Verdict { pick, next: None, lead: 0.0, sure: 1.0, by: Vec::new() };
    };
    // The next best, too, as mdadm makes it where that is no worse beyond the error.
    let structure = finalists[next].candidate.structure();
    let default = finalists
        .iter()
        .position(|one| one.candidate.structure() == structure && one.candidate.is_default());
    let next = match default {
        Some(default) if compared(wanted, finalists, weights, (next, default)).sure < SURE => default,
        _ => next,
    };
    let Compared { lead, sure, by } = compared(wanted, finalists, weights, (pick, next));
    if lead < 0.0 {
        // Only a chunk that nobody can vouch for made the difference.
        let by = by.into_iter().map(|(objective, gain)| (objective, -gain)).collect();
        return Verdict { pick: next, next: Some(pick), lead: -lead, sure: 1.0 - sure, by };
    }
    Verdict { pick, next: Some(next), lead, sure, by }
}

/// Those that no other dominates beyond the steps of indifference.
fn front(finalists: &[Finalist]) -> Vec<usize> {
    let costs: Vec<Costs> = finalists.iter().map(|one| one.costs).collect();
    let free = |at: &usize| !costs.iter().any(|other| dominates(other, &costs[*at]));
    (0..costs.len()).filter(free).collect()
}

fn variants(wanted: &Wanted, finalists: &[Finalist], weights: &Weights, pick: usize) -> Vec<Variant> {
    let structure = finalists[pick].candidate.structure();
    let others = (0..finalists.len())
        .filter(|at| *at != pick && finalists[*at].candidate.structure() == structure);
    others
        .map(|finalist| {
            let Compared { lead, sure, .. } = compared(wanted, finalists, weights, (finalist, pick));
            let is_alike = (1.0 - SURE..=SURE).contains(&sure);
            Variant { finalist, lead, is_alike }
        })
        .collect()
}

fn changes(
    wanted: &Wanted,
    finalists: &[Finalist],
    given: &Weights,
    verdict: &Verdict,
) -> Vec<Change> {
    let best = |weights: &Weights, able: &dyn Fn(&Finalist) -> bool| {
        let able = (0..finalists.len()).filter(|at| able(&finalists[*at]));
        let of = |at: &usize| score(&finalists[*at].costs, weights);
        able.min_by(|one, other| of(one).total_cmp(&of(other)))
    };
    let pick = verdict.pick;
    let same = |at: usize| finalists[at].candidate.structure() == finalists[pick].candidate.structure();
    let mut changes = Vec::new();
    let mut note = |when: String, then: Option<usize>| {
        if let Some(then) = then {
            changes.push(Change { when, then: if same(then) { pick } else { then } });
        }
    };
    for prefer in Prefer::ALL {
        if prefer != wanted.prefer {
            let weights = weights(prefer, wanted.limits.capacity.is_some());
            let when = match prefer {
                Prefer::Balance => "if all counts alike".to_owned(),
                Prefer::Speed => "if speed counts most".to_owned(),
                Prefer::Capacity => "if space counts most".to_owned(),
                Prefer::Safety => "if safety counts most".to_owned(),
            };
            note(when, best(&weights, &|_| true));
        }
    }
    let more = wanted.limits.survive + 1;
    let when = format!("if any {more} drives may be lost");
    note(when, best(given, &|one| one.candidate.layout.survives() >= more));
    note("if no spare may stand idle".to_owned(), best(given, &|one| one.candidate.spares == 0));
    changes
}

/// The chances of all finalists, with their ranges.
fn risks(wanted: &Wanted, pool: &dyn Pool, finalists: &[Finalist]) -> Result<Answer, NoAdvice> {
    let rebuilds = |one: &Finalist| {
        let hours: Vec<f64> = one.rounds.iter().filter_map(|run| run.rebuild(wanted)).collect();
        if hours.is_empty() { Span::Fixed(0.0) } else { Span::Samples(hours) }
    };
    let [failures, defects, common_cause] = wanted.unknown;
    let question = Question {
        layouts: finalists.iter().map(|one| one.candidate.layout.clone()).collect(),
        drive: wanted.member(),
        model: wanted.model.clone(),
        write_holes: vec![WriteHole::default(); finalists.len()],
        rebuilds: finalists.iter().map(rebuilds).collect(),
        spares: finalists.iter().map(|one| one.candidate.spares).collect(),
        failures,
        defects,
        common_cause,
        missions: vec![wanted.mission],
        main: 0,
        seed: wanted.seed,
    };
    question.answer(&mut |_, _| pool.goes_on()).map_err(|error| match error {
        NoAnswer::Layout(error) => NoAdvice::Input(error.to_string()),
        NoAnswer::Input(error) => NoAdvice::Input(error),
        NoAnswer::Stopped => NoAdvice::Stopped,
    })
}

/// What growing costs, of the first finalist of each structure.
fn growths(wanted: &Wanted, finalists: &[Finalist], pick: usize) -> Vec<(usize, Growth)> {
    let Some(later) = wanted.later else { return Vec::new() };
    let mut seen = Vec::new();
    let mut all = Vec::new();
    let order = [pick].into_iter().chain((0..finalists.len()).filter(|at| *at != pick));
    for at in order {
        let structure = finalists[at].candidate.structure();
        if !seen.contains(&structure) {
            all.push((at, growth(wanted, &finalists[at], later)));
            seen.push(structure);
        }
    }
    all
}

impl Finalist {
    /// The median over the rounds of what a figure is.
    pub fn median(&self, of: impl Fn(&crate::meter::Measured) -> Option<f64>) -> Option<f64> {
        median(&self.rounds.iter().filter_map(of).collect::<Vec<f64>>())
    }
}
