//! The decision: one recommendation, the next best, by how much, how sure, and what would change it.

use raidlab_risk::{Mission, NoAnswer, Question, Span, Stop, WriteHole};
use raidlab_study::State;

use crate::candidate::{Candidate, Candidates, Mode, candidates, modes};
use crate::fidelity::{Figure, spread};
use crate::growth::{Growth, growth};
use crate::meter::{self, Measured};
use crate::objectives::{Costs, Objective, Weights, dominates, score, weights};
use crate::relax;
use crate::risks::{Batch, batches, stop};
use crate::search::{
    Finalist, NoAdvice, Pool, Search, Spent, counted_state, gather, median, violation,
};
use crate::wanted::{Prefer, Wanted};

/// A recommendation stands alone where the model's error could hardly turn it round: 19 times of 20.
pub const SURE: f64 = 0.95;

/// The relative standard error of the chances of the last candidates, which are told with one digit.
const RISK_ERROR: f64 = 0.02;

/// What the last runs' seeds are drawn for.
const FRESH: u64 = 2;

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
    pub risks: Vec<Mission>,
    /// What a batch makes of losing the array, in the same order.
    pub batches: Vec<Batch>,
    /// Which of them no other dominates.
    pub front: Vec<usize>,
    /// The recommendation against the next best of another structure.
    pub verdict: Verdict,
    /// What another chunk is worth on the recommended structure.
    pub variants: Vec<Variant>,
    /// What keeping it consistent costs.
    pub consistency: Vec<Consistency>,
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

/// How surely one of two is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lean {
    /// Up to 60 in 100.
    TossUp,
    /// Up to 79.
    Leaning,
    /// Below [`SURE`].
    Probably,
    /// From [`SURE`] on, or the other one is no rival.
    Plain,
}

/// Another chunk of the recommended structure.
#[derive(Clone, Debug)]
pub struct Variant {
    /// It.
    pub candidate: Candidate,
    /// By how many steps it is better than the pick; below 0 worse.
    pub lead: f64,
    /// Its speed over that of the pick, all drives working.
    pub speed: f64,
    /// Its p99 over that of the pick, in the state that counts.
    pub tail: f64,
    /// Whether the model's error could flip that.
    pub is_alike: bool,
}

/// What keeping the recommendation consistent over a crash costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Consistency {
    /// By what.
    pub mode: Mode,
    /// Speed with it over speed without.
    pub speed: f64,
    /// p99 with it over p99 without, all drives working.
    pub tail: f64,
}

/// Something else, and what is best then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What, as a condition: `if space counts most`.
    pub when: String,
    /// The finalist that is then best; the pick where nothing changes.
    pub then: usize,
    /// The recommendation and the next best are both less than a step behind the best then: a toss-up stays one.
    pub either: bool,
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
    meter::check(wanted, &found.all).map_err(NoAdvice::Input)?;
    let weights = weights(wanted.prefer, wanted.limits.capacity.is_some());
    let mut search = Search::new(wanted, pool, &found.all, weights);
    let left = search.halved(raidlab_random::mix(&[wanted.seed, 1]))?;
    let mut finalists = search.finals(&left, raidlab_random::mix(&[wanted.seed, FRESH]))?;
    if finalists.iter().all(|one| violation(wanted, &one.rounds).is_some()) {
        return Err(NoAdvice::Limits(relax::after_runs(wanted, &finalists)));
    }
    finalists.retain(|one| violation(wanted, &one.rounds).is_none());
    let order = |one: &Finalist| score(&one.costs, &weights);
    finalists.sort_by(|one, other| order(one).total_cmp(&order(other)));
    let (mut finalists, others) = represented(wanted, finalists, &weights);
    finalists.sort_by(|one, other| order(one).total_cmp(&order(other)));
    let verdict = verdict(wanted, &finalists, &weights);
    let consistency = consistency(wanted, &mut search, &finalists[verdict.pick])?;
    let spent = search.spent;
    let front = front(&finalists);
    let variants = variants(wanted, &finalists[verdict.pick], &others, &weights);
    let changes = changes(wanted, &finalists, &weights);
    let risks = risks(wanted, pool, &finalists)?;
    let rebuilds = |one: &Finalist| one.median(|run| run.rebuild(wanted)).unwrap_or(0.0);
    let asked: Vec<(&Candidate, f64)> =
        finalists.iter().map(|one| (&one.candidate, rebuilds(one))).collect();
    let batches = batches(wanted, pool, &asked)?;
    let growths = growths(wanted, &finalists, stop(pool));
    if stop(pool).is_set() {
        return Err(NoAdvice::Stopped);
    }
    Ok(Advice {
        dropped: found,
        spent,
        finalists,
        risks,
        batches,
        front,
        verdict,
        variants,
        consistency,
        changes,
        growths,
    })
}

/// Of each structure one: with mdadm's chunk, unless another is better beyond the model's error; and the rest.
fn represented(
    wanted: &Wanted,
    finalists: Vec<Finalist>,
    weights: &Weights,
) -> (Vec<Finalist>, Vec<Finalist>) {
    let (mut shown, mut others): (Vec<Finalist>, Vec<Finalist>) = (Vec::new(), Vec::new());
    for one in finalists {
        let structure = one.candidate.structure();
        let Some(at) = shown.iter().position(|other| other.candidate.structure() == structure)
        else {
            shown.push(one);
            continue;
        };
        // The first one is the better one.
        let is_taken =
            one.candidate.is_default() && compared(wanted, (&shown[at], &one), weights).sure < SURE;
        others.push(if is_taken { std::mem::replace(&mut shown[at], one) } else { one });
    }
    (shown, others)
}

/// How much better one finalist is than another, and how surely.
struct Compared {
    lead: f64,
    sure: f64,
    by: Vec<(Objective, f64)>,
}

fn compared(wanted: &Wanted, (one, other): (&Finalist, &Finalist), weights: &Weights) -> Compared {
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
    let deviations =
        if variance > 0.0 { lead / libm::sqrt(variance) } else { lead * f64::INFINITY };
    let sure =
        if lead == 0.0 { 0.5 } else { 0.5 * libm::erfc(-deviations / std::f64::consts::SQRT_2) };
    Compared { lead, sure, by }
}

/// The standard deviation of an objective's ratio in steps: what the model is off, and what the draw of the seeds is.
fn off(wanted: &Wanted, objective: Objective, (one, other): (&Finalist, &Finalist)) -> f64 {
    let group = |at: usize| wanted.profile.parts[at].group;
    let parts = wanted.profile.parts.len();
    let of = |figure| {
        let spreads = (0..parts).map(|at| spread(group(at), figure, false));
        spreads.fold(0.0, f64::max)
    };
    let (modelled, drawn) = match objective {
        Objective::Speed if !wanted.is_paced() => {
            let speed = |one: &Finalist, at: usize| one.rounds[at].speed(wanted, State::Healthy);
            (of(Figure::Rate), luck(one, other, speed))
        }
        // What a page cache takes is alike, however far the model is off.
        Objective::Tail if wanted.is_buffered() && !wanted.is_paced() => return 0.0,
        Objective::Tail => {
            let tail =
                |one: &Finalist, at: usize| one.rounds[at].tail(wanted, counted_state(wanted));
            (of(Figure::Tail), luck(one, other, tail))
        }
        // Rebuild times are the model's; what else nobody knows is the same for both.
        Objective::Risk if one.risk.max(other.risk) > crate::objectives::LEAST_RISK => {
            let spreads = (0..parts).map(|at| spread(group(at), Figure::Rate, true));
            (spreads.fold(0.0, f64::max), 0.0)
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

/// The first against the second.
fn verdict(wanted: &Wanted, finalists: &[Finalist], weights: &Weights) -> Verdict {
    let [pick, next, ..] = finalists else {
        return Verdict { pick: 0, next: None, lead: 0.0, sure: 1.0, by: Vec::new() };
    };
    let Compared { lead, sure, by } = compared(wanted, (pick, next), weights);
    Verdict { pick: 0, next: Some(1), lead, sure, by }
}

/// Those that no other dominates beyond the steps of indifference.
fn front(finalists: &[Finalist]) -> Vec<usize> {
    let costs: Vec<Costs> = finalists.iter().map(|one| one.costs).collect();
    let free = |at: &usize| !costs.iter().any(|other| dominates(other, &costs[*at]));
    (0..costs.len()).filter(free).collect()
}

fn variants(
    wanted: &Wanted,
    pick: &Finalist,
    others: &[Finalist],
    weights: &Weights,
) -> Vec<Variant> {
    let structure = pick.candidate.structure();
    let variant = |one: &Finalist| {
        let Compared { lead, sure, .. } = compared(wanted, (one, pick), weights);
        let is_alike = (1.0 - SURE..=SURE).contains(&sure);
        let ratio = |of: &dyn Fn(&Measured) -> Option<f64>| {
            one.median(of).zip(pick.median(of)).map_or(1.0, |(one, pick)| one / pick)
        };
        let speed = ratio(&|run| run.speed(wanted, State::Healthy));
        let tail = ratio(&|run| run.tail(wanted, counted_state(wanted)));
        Variant { candidate: one.candidate.clone(), lead, speed, tail, is_alike }
    };
    others.iter().filter(|one| one.candidate.structure() == structure).map(variant).collect()
}

impl Advice {
    /// Whether the model's error could flip the verdict: then it is either. Whom another dominates is no rival, however
    /// little it is behind.
    pub fn is_either(&self) -> bool {
        let Verdict { next, sure, .. } = self.verdict;
        next.is_some_and(|next| self.front.contains(&next)) && sure < SURE
    }

    /// How surely the recommendation is the better one.
    pub fn lean(&self) -> Lean {
        match self.verdict.sure {
            _ if !self.is_either() => Lean::Plain,
            sure if sure < 0.605 => Lean::TossUp,
            sure if sure < 0.795 => Lean::Leaning,
            _ => Lean::Probably,
        }
    }

    /// Whether a change makes another answer: of a toss-up also that one of the two is best alone.
    pub fn is_changed_by(&self, change: &Change) -> bool {
        match self.lean() {
            Lean::TossUp => !change.either,
            _ => change.then != self.verdict.pick,
        }
    }

    /// What each of the two is better at by a step or more: the recommendation, then the next best.
    pub fn better_at(&self) -> [Vec<Objective>; 2] {
        let by = |sign: f64| {
            let is_better = |one: &&(Objective, f64)| one.1 * sign >= 1.0;
            self.verdict.by.iter().filter(is_better).map(|(one, _)| *one).collect()
        };
        [by(1.0), by(-1.0)]
    }

    /// How the recommendation is made: with a bitmap where that costs less than a step of anything, else as it was
    /// compared, without.
    pub fn kept(&self, wanted: &Wanted) -> Mode {
        let is_cheap = |one: &&Consistency| {
            one.mode == Mode::Bitmap
                && (wanted.is_paced()
                    || one.speed * Objective::Speed.step() >= 1.0
                        && (wanted.is_buffered() || one.tail <= Objective::Tail.step()))
        };
        self.consistency.iter().find(is_cheap).map_or(Mode::None, |one| one.mode)
    }
}

/// The recommendation with what keeps it consistent, on the same seeds.
fn consistency(
    wanted: &Wanted,
    search: &mut Search<'_>,
    pick: &Finalist,
) -> Result<Vec<Consistency>, NoAdvice> {
    let with = |mode: Mode| Candidate { mode, ..pick.candidate.clone() };
    let all: Vec<Candidate> = modes(&pick.candidate.layout).into_iter().map(with).collect();
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let seed = raidlab_random::mix(&[wanted.seed, FRESH]);
    let measured = search.runs_of(all, seed, "what consistency costs")?;
    let figures = |one: &Finalist| {
        let speed = one.median(|run| run.speed(wanted, State::Healthy));
        let tail = one.median(|run| run.tail(wanted, State::Healthy));
        (speed.unwrap_or(1.0), tail.unwrap_or(1.0))
    };
    let (speed, tail) = figures(pick);
    let cost = |one: &Finalist| {
        let with = figures(one);
        Consistency { mode: one.candidate.mode, speed: with.0 / speed, tail: with.1 / tail }
    };
    Ok(measured.iter().map(cost).collect())
}

fn changes(wanted: &Wanted, finalists: &[Finalist], given: &Weights) -> Vec<Change> {
    // Who says that one thing counts most wants the best at that, or one that is less than a step behind.
    let least = |at: usize| finalists.iter().map(|one| one.costs[at]).fold(f64::INFINITY, f64::min);
    let best = |weights: &Weights, able: &dyn Fn(&Finalist) -> bool| {
        let able_to = |at: usize| able(&finalists[at]);
        let able = (0..finalists.len()).filter(|at| able_to(*at));
        let of = |at: &usize| score(&finalists[*at].costs, weights);
        let best = able.min_by(|one, other| of(one).total_cmp(&of(other)))?;
        // The recommendation, the first of them, stays where it is less than a step behind.
        let stays = |at: usize| at < finalists.len() && able_to(at) && of(&at) - of(&best) < 1.0;
        Some((if stays(0) { 0 } else { best }, stays(0) && stays(1)))
    };
    let mut changes = Vec::new();
    let mut note = |when: String, then: Option<(usize, bool)>| {
        if let Some((then, either)) = then {
            changes.push(Change { when, then, either });
        }
    };
    for prefer in Prefer::ALL {
        if prefer != wanted.prefer {
            let weights = weights(prefer, wanted.limits.capacity.is_some());
            let (when, first) = match prefer {
                Prefer::Balance => ("if all counts alike", None),
                Prefer::Speed => ("if speed counts most", Some(Objective::Speed.index())),
                Prefer::Capacity => ("if space counts most", Some(Objective::Capacity.index())),
                Prefer::Safety => ("if safety counts most", Some(Objective::Risk.index())),
            };
            let able = |one: &Finalist| first.is_none_or(|at| one.costs[at] < least(at) + 1.0);
            note(when.to_owned(), best(&weights, &able));
        }
    }
    for (when, then) in parts(wanted, finalists) {
        note(when, Some(then));
    }
    let more = wanted.limits.survive + 1;
    let when = format!("if any {more} drives may be lost");
    note(when, best(given, &|one| one.candidate.layout.survives() >= more));
    note("if no spare may stand idle".to_owned(), best(given, &|one| one.candidate.spares == 0));
    changes
}

/// Of work of several parts, who is fastest at each: their mean may hide it. Whoever is less than a step behind is as
/// good, the first of them best.
fn parts(wanted: &Wanted, finalists: &[Finalist]) -> Vec<(String, (usize, bool))> {
    let parts = wanted.profile.parts.iter().enumerate();
    if parts.len() < 2 {
        return Vec::new();
    }
    let fastest = parts.filter_map(|(part, of)| {
        let rate = |one: &Finalist| one.median(|run| run.rate(wanted, part, State::Healthy));
        let most = finalists.iter().filter_map(rate).reduce(f64::max)?;
        let near =
            |one: &Finalist| rate(one).is_some_and(|rate| rate * Objective::Speed.step() > most);
        let then = finalists.iter().position(near)?;
        let either = finalists.len() > 1 && finalists[..2].iter().all(near);
        Some((format!("if {} counts most", of.name), (then, either)))
    });
    fastest.collect()
}

/// The chances of all finalists, with their ranges.
fn risks(
    wanted: &Wanted,
    pool: &dyn Pool,
    finalists: &[Finalist],
) -> Result<Vec<Mission>, NoAdvice> {
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
        write_holes_without_scrub: Vec::new(),
        rebuilds: finalists.iter().map(rebuilds).collect(),
        spares: finalists.iter().map(|one| one.candidate.spares).collect(),
        failures,
        defects,
        common_cause,
        missions: vec![wanted.mission],
        main: 0,
        seed: wanted.seed,
        stop: stop(pool),
    };
    gather(pool, finalists.len(), "the ranges of what nobody knows", &|one| {
        question.mission(one, RISK_ERROR).map_err(|error| match error {
            NoAnswer::Layout(error) => error.to_string(),
            NoAnswer::Input(error) => error,
            NoAnswer::Stopped => "broken off".to_owned(),
        })
    })
}

/// What growing each of them costs.
fn growths(wanted: &Wanted, finalists: &[Finalist], stop: Stop) -> Vec<(usize, Growth)> {
    let Some(later) = wanted.later else { return Vec::new() };
    finalists.iter().enumerate().map(|(at, one)| (at, growth(wanted, one, later, stop))).collect()
}

impl Finalist {
    /// The median over the rounds of what a figure is.
    pub fn median(&self, of: impl Fn(&Measured) -> Option<f64>) -> Option<f64> {
        median(&self.rounds.iter().filter_map(of).collect::<Vec<f64>>())
    }

    /// Whether all its runs tell how long a rebuild beside the work takes, or it has none.
    pub fn tells_rebuild(&self) -> bool {
        self.rounds.iter().all(Measured::tells_rebuild)
    }
}

#[cfg(test)]
mod tests;
