//! What layouts are compared by, in steps of indifference: fixed and printed.

use crate::wanted::Prefer;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objective {
    /// What is done in a time, all drives working.
    Speed,
    /// What 99 of 100 requests take at most with a drive missing.
    Tail,
    /// Usable bytes.
    Capacity,
    /// The chance of losing the array.
    Risk,
    /// Money.
    Price,
    /// Watts.
    Watts,
}

/// How many objectives there are.
pub(crate) const COUNT: usize = 6;

impl Objective {
    /// All, in the order of [`Costs`].
    pub const ALL: [Self; COUNT] =
        [Self::Speed, Self::Tail, Self::Capacity, Self::Risk, Self::Price, Self::Watts];

    /// Its place in [`Costs`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Speed => "speed",
            Self::Tail => "degraded p99",
            Self::Capacity => "capacity",
            Self::Risk => "risk",
            Self::Price => "price",
            Self::Watts => "watts",
        }
    }

    /// The factor by which figures may differ and mean nothing to anybody.
    pub const fn step(self) -> f64 {
        match self {
            Self::Speed | Self::Capacity | Self::Price | Self::Watts => 1.05,
            Self::Tail => 1.10,
            Self::Risk => 1.5,
        }
    }

    /// A factor as a number of steps.
    pub fn steps(self, factor: f64) -> f64 {
        libm::log(factor) / libm::log(self.step())
    }
}

/// A chance below which other causes dominate: layouts are not told apart there.
pub const LEAST_RISK: f64 = raidlab_risk::words::LEAST;
/// What a degraded p99 counts for that there is none of, as all data are gone: so many times the healthy one.
pub const NO_TAIL: f64 = 100.0;

/// A candidate's figures in steps, the fewer the better.
pub type Costs = [f64; COUNT];

/// Figures that are made costs of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// What is done in a time, over the parts of the work.
    pub speed: f64,
    /// Seconds.
    pub tail: f64,
    /// Bytes.
    pub capacity: f64,
    /// From 0 to 1.
    pub risk: f64,
    /// Money, 0 where nobody named any.
    pub price: f64,
    /// Watts, 0 where nobody named any.
    pub watts: f64,
}

impl Figures {
    /// In steps.
    pub fn costs(&self) -> Costs {
        let steps = |objective: Objective, value: f64| objective.steps(value.max(1e-12));
        [
            -steps(Objective::Speed, self.speed),
            steps(Objective::Tail, self.tail),
            -steps(Objective::Capacity, self.capacity),
            steps(Objective::Risk, self.risk.max(LEAST_RISK)),
            if self.price > 0.0 { steps(Objective::Price, self.price) } else { 0.0 },
            if self.watts > 0.0 { steps(Objective::Watts, self.watts) } else { 0.0 },
        ]
    }
}

/// How much each objective counts.
pub type Weights = [f64; COUNT];

/// What a preferred objective counts more than others.
const PREFERRED: f64 = 3.0;
/// What space counts beyond the capacity that was asked for.
const BEYOND: f64 = 0.25;

/// The weights of a preference; with `has_capacity` some space was asked for, and more of it is worth less.
pub const fn weights(prefer: Prefer, has_capacity: bool) -> Weights {
    let mut weights = [1.0; COUNT];
    if has_capacity {
        weights[2] = BEYOND;
    }
    match prefer {
        Prefer::Balance => {}
        Prefer::Speed => {
            weights[0] = PREFERRED;
            weights[1] = PREFERRED;
        }
        Prefer::Capacity => weights[2] = PREFERRED,
        Prefer::Safety => weights[3] = PREFERRED,
    }
    weights
}

/// The weighted sum of costs: the less, the better.
pub fn score(costs: &Costs, weights: &Weights) -> f64 {
    costs.iter().zip(weights).map(|(cost, weight)| cost * weight).sum()
}

/// Whether one is nowhere worse by more than a step, and somewhere better by more than one.
pub fn dominates(one: &Costs, other: &Costs) -> bool {
    let pairs = || one.iter().zip(other);
    pairs().all(|(one, other)| *one <= other + 1.0)
        && pairs().any(|(one, other)| *one < other - 1.0)
}

/// Those that none of the better ones dominates, by score: the best first.
pub fn front(costs: &[Costs], weights: &Weights) -> Vec<usize> {
    let mut kept: Vec<usize> = Vec::new();
    for at in by_score(costs, weights) {
        if !kept.iter().any(|better| dominates(&costs[*better], &costs[at])) {
            kept.push(at);
        }
    }
    kept
}

fn by_score(costs: &[Costs], weights: &Weights) -> Vec<usize> {
    let mut order: Vec<usize> = (0..costs.len()).collect();
    let of = |at: usize| score(&costs[at], weights);
    order.sort_by(|one, other| of(*one).total_cmp(&of(*other)).then(one.cmp(other)));
    order
}

/// So many to look closer at: of the front those that are furthest from each other, then the others by score.
pub fn keep(costs: &[Costs], weights: &Weights, count: usize) -> Vec<usize> {
    let mut front = front(costs, weights);
    if front.len() < count {
        let others = by_score(costs, weights).into_iter().filter(|at| !front.contains(at));
        let others: Vec<usize> = others.take(count - front.len()).collect();
        front.extend(others);
        return front;
    }
    let mut kept = vec![front.remove(0)];
    while kept.len() < count {
        let near = |at: &usize| {
            let distances = kept.iter().map(|one| distance(&costs[*one], &costs[*at]));
            distances.fold(f64::INFINITY, f64::min)
        };
        let furthest = (0..front.len()).max_by(|one, other| {
            near(&front[*one]).total_cmp(&near(&front[*other])).then(other.cmp(one))
        });
        let Some(furthest) = furthest else { break };
        kept.push(front.remove(furthest));
    }
    kept
}

/// The steps between two in the objective in which they differ most.
pub fn distance(one: &Costs, other: &Costs) -> f64 {
    one.iter().zip(other).map(|(one, other)| (one - other).abs()).fold(0.0, f64::max)
}

/// The share of the full length of each look; between looks so many times fewer are left. There is no look at full
/// length: who comes to the last runs is chosen by the last look, and runs on seeds that nobody chose by.
pub(crate) const LOOKS: [u64; 3] = [27, 9, 3];
const FEWER: usize = 2;
/// No look is at fewer than these, where there are as many.
pub(crate) const FEWEST: usize = 8;

/// Successive halving: all candidates for a short time, half of them for three times as long, and so on.
/// `look` gives the costs of those that are left, at a share of the full length.
///
/// # Errors
/// What `look` gave.
pub fn halve<E>(
    count: usize,
    weights: &Weights,
    mut look: impl FnMut(&[usize], u64) -> Result<Vec<Costs>, E>,
) -> Result<Vec<(usize, Costs)>, E> {
    let mut left: Vec<usize> = (0..count).collect();
    let mut costs = Vec::new();
    // Where there are few, the first looks would leave as many.
    let first = match count {
        0..=FEWEST => 2,
        count if count <= 3 * FEWEST => 1,
        _ => 0,
    };
    for share in &LOOKS[first..] {
        if !costs.is_empty() {
            let most = left.len().div_ceil(FEWER).max(FEWEST);
            let mut kept = keep(&costs, weights, most);
            kept.sort_unstable();
            left = kept.into_iter().map(|at| left[at]).collect();
        }
        costs = look(&left, *share)?;
    }
    Ok(left.into_iter().zip(costs).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEIGHTS: Weights = [1.0; COUNT];

    fn of(speed: f64, capacity: f64) -> Costs {
        [-speed, 0.0, -capacity, 0.0, 0.0, 0.0]
    }

    #[test]
    fn a_step_is_a_step() {
        assert!((Objective::Risk.steps(2.25) - 2.0).abs() < 1e-12);
        let figures =
            Figures { speed: 1.0, tail: 1.0, capacity: 1.0, risk: 1e-9, price: 0.0, watts: 0.0 };
        let rarer = Figures { risk: 1e-7, ..figures };
        assert_eq!(figures.costs(), rarer.costs(), "other causes dominate both");
    }

    #[test]
    fn within_a_step_nobody_dominates() {
        assert!(dominates(&of(5.0, 5.0), &of(3.9, 5.9)));
        assert!(!dominates(&of(5.0, 5.0), &of(4.1, 5.0)), "less than a step better");
        assert!(!dominates(&of(9.0, 5.0), &of(5.0, 6.1)), "more than a step worse");
        let costs = [of(0.0, 9.0), of(5.0, 5.0), of(9.0, 0.0), of(3.0, 3.0)];
        let mut front = front(&costs, &WEIGHTS);
        front.sort_unstable();
        assert_eq!(front, [0, 1, 2]);
    }

    #[test]
    fn what_is_kept_of_a_front_lies_far_apart() {
        let costs: Vec<Costs> =
            (0..30).map(|at| of(f64::from(at) * 3.0, 90.0 - f64::from(at) * 3.0)).collect();
        let kept = keep(&costs, &WEIGHTS, 3);
        assert!(kept.contains(&0) && kept.contains(&29), "{kept:?}: both ends");
        assert!((13..=16).contains(&kept[2]), "{kept:?}: and the middle, far from both");
        assert_eq!(keep(&costs[..2], &WEIGHTS, 5).len(), 2);
    }

    /// Each look is three times as long over a third: at most a fifth of a full look at all.
    #[test]
    fn halving_finds_the_front_at_a_fifth_of_the_cost() {
        for count in [200usize, 400, 1_000] {
            let truth: Vec<Costs> = (0..count)
                .map(|at| of((at * 37 % count) as f64 / 4.0, (at * 91 % count) as f64 / 4.0))
                .collect();
            let mut spent = 0.0;
            let found = halve(count, &WEIGHTS, |left, share| {
                spent += left.len() as f64 / share as f64;
                Ok::<_, ()>(left.iter().map(|at| truth[*at]).collect())
            });
            let found = found.expect("nothing fails");
            assert!(spent <= count as f64 / 5.0, "{spent} of {count}");
            let near = |at: usize| {
                found.iter().any(|(_, costs)| {
                    costs.iter().zip(&truth[at]).all(|(one, other)| *one <= other + 1.0)
                })
            };
            let best = front(&truth, &WEIGHTS)[0];
            assert!(near(best), "the best of {count}");
        }
    }

    /// Few candidates are looked at once or twice: the looks before would leave as many.
    #[test]
    fn looks_are_as_many_as_there_is_to_leave_out() {
        for (count, looks) in [
            (1, &[(1, 3)][..]),
            (8, &[(8, 3)]),
            (9, &[(9, 9), (8, 3)]),
            (24, &[(24, 9), (12, 3)]),
            (25, &[(25, 27), (13, 9), (8, 3)]),
        ] {
            let mut seen = Vec::new();
            let found = halve(count, &WEIGHTS, |left, share| {
                seen.push((left.len(), share));
                Ok::<_, ()>(left.iter().map(|at| of(*at as f64 * 3.0, 0.0)).collect())
            });
            assert_eq!(seen, looks, "{count}");
            let left: Vec<usize> = found.expect("nothing fails").iter().map(|one| one.0).collect();
            assert!(left.is_sorted() && left.contains(&(count - 1)), "{left:?}");
        }
    }

    #[test]
    fn weights_and_costs_are_what_they_are_said_to_be() {
        assert_eq!(weights(Prefer::Balance, false), [1.0; COUNT]);
        assert_eq!(weights(Prefer::Balance, true), [1.0, 1.0, 0.25, 1.0, 1.0, 1.0]);
        assert_eq!(weights(Prefer::Speed, true), [3.0, 3.0, 0.25, 1.0, 1.0, 1.0]);
        assert_eq!(weights(Prefer::Capacity, true), [1.0, 1.0, 3.0, 1.0, 1.0, 1.0]);
        assert_eq!(weights(Prefer::Safety, false), [1.0, 1.0, 1.0, 3.0, 1.0, 1.0]);
        let one =
            Figures { speed: 1.0, tail: 1.0, capacity: 1.0, risk: 0.1, price: 1.0, watts: 1.0 };
        let twice =
            Figures { speed: 2.0, tail: 2.0, capacity: 2.0, risk: 0.2, price: 2.0, watts: 2.0 };
        let step = |at: usize| {
            (twice.costs()[at] - one.costs()[at]) * libm::log(Objective::ALL[at].step())
        };
        for (at, sign) in [-1.0, 1.0, -1.0, 1.0, 1.0, 1.0].into_iter().enumerate() {
            assert!((step(at) - sign * libm::log(2.0)).abs() < 1e-9, "{:?}", Objective::ALL[at]);
        }
    }

    /// docs/answers.md, "How it is decided": what nobody minds, and what other causes dominate.
    #[test]
    fn steps_are_those_of_the_docs() {
        let steps = Objective::ALL.map(Objective::step);
        assert_eq!(steps, [1.05, 1.10, 1.05, 1.5, 1.05, 1.05]);
        assert_eq!(Objective::ALL.map(Objective::index), [0, 1, 2, 3, 4, 5]);
        let names = Objective::ALL.map(Objective::name);
        assert_eq!(names, ["speed", "degraded p99", "capacity", "risk", "price", "watts"]);
        assert_eq!(LEAST_RISK, 1e-5);
        // Nobody prefers data that are gone to a p99 that is ten times as long.
        let tail = |times: f64| Objective::Tail.steps(times);
        assert!(tail(NO_TAIL) > 1.9 * tail(10.0));
        let free =
            Figures { speed: 1.0, tail: 1.0, capacity: 1.0, risk: 0.1, price: 0.0, watts: 0.0 };
        assert_eq!(free.costs()[4..], [0.0, 0.0], "nobody named any");
        let little = Figures { price: 0.5, watts: 0.5, ..free };
        assert!(little.costs()[4..].iter().all(|cost| *cost < -10.0), "{:?}", little.costs());
        let costs = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
        assert_eq!(score(&costs, &[3.0, 1.0, 0.25, 1.0, 0.0, 3.0]), 3.0 + 2.0 + 1.0 + 8.0 + 96.0);
    }

    /// Just a step is no difference, on either side.
    #[test]
    fn a_difference_of_a_step_is_none() {
        let one = of(5.0, 5.0);
        assert!(dominates(&one, &of(3.0, 6.0)), "worse by a step, better by two");
        assert!(!dominates(&one, &of(3.0, 6.001)) && !dominates(&one, &of(4.0, 5.0)));
        assert!(!dominates(&one, &one) && !dominates(&of(3.0, 6.0), &one));
        assert_eq!((distance(&one, &of(3.0, 6.0)), distance(&of(3.0, 6.0), &one)), (2.0, 2.0));
    }

    /// Of drawn costs the front is what no better one dominates, the best first; what fills it up are the best others.
    #[test]
    fn fronts_of_drawn_costs_are_what_they_are_said_to_be() {
        let mut random = raidlab_random::Random::new(5);
        for _ in 0..200 {
            let count = 1 + random.below(12) as usize;
            let mut draw = || random.below(60) as f64 / 4.0;
            let costs: Vec<Costs> = (0..count).map(|_| of(draw(), draw())).collect();
            let of_score = |at: &usize| score(&costs[*at], &WEIGHTS);
            let found = front(&costs, &WEIGHTS);
            let scores: Vec<f64> = found.iter().map(of_score).collect();
            assert!(scores.is_sorted());
            for at in 0..count {
                let is_beaten = found.iter().any(|one| {
                    of_score(one) <= of_score(&at) && dominates(&costs[*one], &costs[at])
                });
                assert_eq!(found.contains(&at), !is_beaten, "{at} of {costs:?}");
            }
            let kept = keep(&costs, &WEIGHTS, count);
            let all: std::collections::BTreeSet<usize> = kept.iter().copied().collect();
            assert_eq!((kept.len(), all.len(), kept[0]), (count, count, found[0]), "each once");
            if found.len() < count {
                // One more than the front: the best of the others.
                let more = keep(&costs, &WEIGHTS, found.len() + 1);
                let others = (0..count).filter(|at| !found.contains(at));
                let best = others.map(|at| of_score(&at)).fold(f64::INFINITY, f64::min);
                assert_eq!(of_score(&more[found.len()]), best, "{costs:?}");
            }
        }
    }
}
