//! The chance of losing data, by simulation of rare events.

mod cycle;
mod path;
mod state;

use std::sync::atomic::{AtomicBool, Ordering};

use raidlab_random::mix;

use crate::array::Array;
use crate::hazard::YEAR;
use crate::model::{Law, Model};
use path::{Paths, Sums};
use state::State;

/// How rare events are found. All give the same within their errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Failures as often as they happen; the last one, which loses the array, in closed form.
    Conditional,
    /// Failures far more often than they happen, with weights; also the last one.
    Balanced,
    /// Failures more often than they happen, and the last one in closed form.
    #[default]
    Both,
}

impl Method {
    const fn is_conditional(self) -> bool {
        matches!(self, Self::Conditional | Self::Both)
    }

    const fn is_biased(self) -> bool {
        matches!(self, Self::Balanced | Self::Both)
    }
}

/// Which losses count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Losses {
    /// The first: results are chances.
    #[default]
    First,
    /// Each: results are numbers of losses. After one the array waits for its drives and goes on.
    Every,
}

/// How much is simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// Draws everything.
    pub seed: u64,
    /// The relative standard error of both chances at which it is enough.
    pub error: f64,
    /// Paths at most.
    pub paths: u64,
    /// How rare events are found.
    pub method: Method,
    /// Which losses count.
    pub losses: Losses,
    /// A chance that is surely (by four standard errors) below this need not be known better.
    pub least: f64,
    /// What ends it before that: what it gave until then is no answer.
    pub stop: Stop,
}

impl Effort {
    /// To a relative standard error of 0.5 %, with at most a million paths.
    pub const fn new(seed: u64) -> Self {
        let (method, losses) = (Method::Both, Losses::First);
        let (paths, stop) = (1_000_000, Stop::NEVER);
        Self { seed, error: 0.005, paths, method, losses, least: 0.0, stop }
    }
}

/// A flag that breaks a simulation off when it is set. It is no part of what is asked: all are equal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stop(Option<&'static AtomicBool>);

impl Stop {
    /// Nobody breaks it off.
    pub const NEVER: Self = Self(None);

    /// When this flag is set.
    pub const fn on(flag: &'static AtomicBool) -> Self {
        Self(Some(flag))
    }

    /// Whether it is to end.
    pub fn is_set(self) -> bool {
        self.0.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

impl PartialEq for Stop {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A chance with the standard error of its computing, relative to it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Chance {
    /// From 0 to 1; the number of losses where each counts.
    pub value: f64,
    /// Relative standard error; 0 where it is exact.
    pub error: f64,
}

/// What is lost by the end of a mission.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The mission in hours.
    pub until: f64,
    /// Losing the array.
    pub array: Chance,
    /// Losing anything: a sector, a stripe, or the array.
    pub sector: Chance,
    /// Bytes expected to be lost for each usable byte.
    pub lost_share: f64,
    /// Hours with a drive missing, expected.
    pub degraded: f64,
    /// The mean weight of all walks: 1 but for chance.
    pub mass: f64,
    /// Paths that were simulated; 0 where the result is a closed form.
    pub paths: u64,
}

/// Paths of one batch factor, and what they told.
#[derive(Clone, Debug)]
struct Node {
    factor: f64,
    share: f64,
    paths: u64,
    sum: Sums,
    squares: (f64, f64),
}

impl Node {
    fn new(factor: f64, share: f64) -> Self {
        Self { factor, share, paths: 0, sum: Sums::default(), squares: (0.0, 0.0) }
    }

    fn add(&mut self, told: &Sums) {
        self.paths += 1;
        self.sum.array += told.array;
        self.sum.any += told.any;
        self.sum.defects += told.defects;
        self.sum.degraded += told.degraded;
        self.sum.mass += told.mass;
        self.sum.cycles += told.cycles;
        self.squares.0 += told.array * told.array;
        self.squares.1 += told.any * told.any;
    }

    fn mean(&self, sum: f64) -> f64 {
        if self.paths == 0 { 0.0 } else { self.share * sum / self.paths as f64 }
    }

    /// The variance of what this node adds to a chance.
    fn variance(&self, sum: f64, squares: f64) -> f64 {
        if self.paths < 2 {
            return 0.0;
        }
        let paths = self.paths as f64;
        let mean = sum / paths;
        self.share * self.share * (squares / paths - mean * mean).max(0.0) / (paths - 1.0)
    }
}

/// The share of each batch factor: the log-normal law in steps of half a standard deviation, which integrates what is
/// smooth to many digits. Far above the middle, as it takes several failures.
fn nodes(sigma: f64) -> Vec<Node> {
    if sigma == 0.0 {
        return vec![Node::new(1.0, 1.0)];
    }
    let places = (-7..=12).map(|step| f64::from(step) * 0.5);
    let density = |place: f64| libm::exp(-place * place / 2.0);
    let all: f64 = places.clone().map(density).sum();
    let factor = |place: f64| libm::exp(sigma * place - sigma * sigma / 2.0);
    places.map(|place| Node::new(factor(place), density(place) / all)).collect()
}

/// What an array loses within a mission of `until` hours.
pub fn simulate(array: &mut Array, model: &Model, until: f64, effort: Effort) -> Outcome {
    of_batches(array, model, until, effort, nodes(model.batch))
}

/// The same where the batch of the first drives is known: they fail `factor` times as often as the model has it, and
/// drives put in later do not.
pub fn simulate_in_batch(
    array: &mut Array,
    model: &Model,
    until: f64,
    effort: Effort,
    factor: f64,
) -> Outcome {
    of_batches(array, model, until, effort, vec![Node::new(factor, 1.0)])
}

fn of_batches(
    array: &mut Array,
    model: &Model,
    until: f64,
    effort: Effort,
    nodes: Vec<Node>,
) -> Outcome {
    if !array.is_redundant() {
        return without_redundancy(array, model, until, &nodes);
    }
    let mut paths = Paths {
        model,
        array,
        method: effort.method,
        losses: effort.losses,
        until,
        walked: State::default(),
        tried: State::default(),
        stories: 0,
    };
    let nodes = run(&mut paths, nodes, effort);
    let usable = paths.array.usable();
    outcome(model, &nodes, until, usable)
}

/// Paths of each factor at least: of one alone nobody knows how far it is off.
const FEWEST: u64 = 4;

/// Paths until the error is small enough: a round over all factors, then where the error comes from.
fn run(paths: &mut Paths<'_>, mut nodes: Vec<Node>, effort: Effort) -> Vec<Node> {
    let count = nodes.len() as u64;
    let first = (effort.paths / (8 * count)).clamp(FEWEST, 1_000);
    let mut done = 0;
    for (index, node) in nodes.iter_mut().enumerate() {
        add(paths, node, index, first, effort);
        done += first;
    }
    while done < effort.paths && !effort.stop.is_set() && !is_enough(&nodes, effort) {
        let total = |of: fn(&Node) -> f64| nodes.iter().map(of).sum::<f64>();
        let sums = (total(|node| node.mean(node.sum.array)), total(|node| node.mean(node.sum.any)));
        // What a path more takes off the relative variances.
        let gain = |node: &Node| {
            let array =
                node.variance(node.sum.array, node.squares.0) / (sums.0 * sums.0).max(1e-300);
            let any = node.variance(node.sum.any, node.squares.1) / (sums.1 * sums.1).max(1e-300);
            (array + any) / node.paths as f64
        };
        let gains = nodes.iter().map(gain).enumerate();
        let best = gains.fold((0, -1.0), |one, other| if other.1 > one.1 { other } else { one });
        let more = nodes[best.0].paths.clamp(1, effort.paths - done);
        add(paths, &mut nodes[best.0], best.0, more, effort);
        done += more;
    }
    nodes
}

fn add(paths: &mut Paths<'_>, node: &mut Node, index: usize, count: u64, effort: Effort) {
    for _ in 0..count {
        if effort.stop.is_set() {
            break;
        }
        let told = paths.path(mix(&[effort.seed, index as u64, node.paths]), node.factor);
        node.add(&told);
    }
}

/// Whether both chances are known as well as they need to be.
fn is_enough(nodes: &[Node], effort: Effort) -> bool {
    let near = |one: Chance| {
        one.error <= effort.error || one.value * (1.0 + 4.0 * one.error) < effort.least
    };
    chances(nodes).into_iter().all(near)
}

/// Losing the array, and losing anything, with their relative standard errors.
fn chances(nodes: &[Node]) -> [Chance; 2] {
    let of = |sum: fn(&Node) -> f64, squares: fn(&Node) -> f64| {
        let value: f64 = nodes.iter().map(|node| node.mean(sum(node))).sum();
        let variance: f64 = nodes.iter().map(|node| node.variance(sum(node), squares(node))).sum();
        Chance { value, error: if value > 0.0 { variance.sqrt() / value } else { 0.0 } }
    };
    let array = of(|node| node.sum.array, |node| node.squares.0);
    [array, of(|node| node.sum.any, |node| node.squares.1)]
}

fn outcome(model: &Model, nodes: &[Node], until: f64, usable: u64) -> Outcome {
    let total = |of: fn(&Sums) -> f64| nodes.iter().map(|node| node.mean(of(&node.sum))).sum();
    let [array, any] = chances(nodes);
    let (defects, degraded): (f64, f64) = (total(|told| told.defects), total(|told| told.degraded));
    let hole = model.write_hole;
    let torn = hole.whole * (until - degraded).max(0.0) + hole.degraded * degraded;
    let sector = any.value + (1.0 - any.value) * -libm::expm1(-torn);
    let bytes = defects * model.latent.bytes + torn * hole.bytes;
    let all = |of: fn(&Sums) -> f64| nodes.iter().map(|node| of(&node.sum)).sum::<f64>();
    let part = if sector > 0.0 { any.value / sector } else { 0.0 };
    Outcome {
        until,
        array,
        sector: Chance { value: sector, error: any.error * part },
        lost_share: array.value + if usable > 0 { bytes / usable as f64 } else { 0.0 },
        degraded,
        mass: all(|told| told.mass) / all(|told| told.cycles).max(1.0),
        paths: nodes.iter().map(|node| node.paths).sum(),
    }
}

/// Every failure loses all of it, and every defect a sector.
fn without_redundancy(array: &Array, model: &Model, until: f64, nodes: &[Node]) -> Outcome {
    let drives = f64::from(array.drives());
    let ages = (model.age + until, model.age);
    let each = model.hazard.cumulative(ages.0) - model.hazard.cumulative(ages.1);
    let defects = match model.latent.law {
        Law::PerRebuild => 0.0,
        Law::Independent | Law::OneAtATime => drives * model.latent.rate * until,
    };
    let of = |more: f64| {
        let lost = |node: &Node| node.share * -libm::expm1(-node.factor * drives * each - more);
        nodes.iter().map(lost).sum::<f64>()
    };
    let (array_lost, sector) = (of(0.0), of(defects));
    let bytes = defects * model.latent.bytes / array.usable().max(1) as f64;
    Outcome {
        until,
        array: Chance { value: array_lost, error: 0.0 },
        sector: Chance { value: sector, error: 0.0 },
        lost_share: array_lost + bytes,
        degraded: 0.0,
        mass: 1.0,
        paths: 0,
    }
}

/// Years as hours.
pub fn years(years: f64) -> f64 {
    years * YEAR
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hazard::Hazard;
    use crate::model::Latent;

    /// Of two drives without redundancy each failure loses all, each defect a sector: in closed form, and from the age
    /// on that drives have.
    #[test]
    fn without_redundancy_it_is_a_closed_form() {
        let mut array =
            Array::new(&"raid0(2)".parse().expect("one"), raidlab_core::Sectors(1 << 30))
                .expect("fits");
        let usable = array.usable() as f64;
        let told =
            |array: &mut Array, model: &Model| simulate(array, model, years(2.0), Effort::new(1));
        let latent = Latent { rate: 1e-5, law: Law::Independent, bytes: 4_096.0, ..Latent::NONE };
        let model = Model { latent, ..Model::plain(0.05, 10.0) };
        let failures = 2.0 * model.hazard.cumulative(years(2.0));
        let defects = 2.0 * 1e-5 * years(2.0);
        let found = told(&mut array, &model);
        let near = |found: f64, expected: f64| {
            assert!((found / expected - 1.0).abs() < 1e-9, "{found}, not {expected}")
        };
        near(found.array.value, -libm::expm1(-failures));
        near(found.sector.value, -libm::expm1(-failures - defects));
        near(found.lost_share, found.array.value + defects * 4_096.0 / usable);
        assert_eq!((found.array.error, found.degraded, found.paths), (0.0, 0.0, 0));
        // A drive that wears out fails oftener later: what counts is what comes after its age.
        let hazard = Hazard::Weibull { scale: 1e5, shape: 2.0 };
        let old = Model { hazard, age: years(3.0), ..Model::plain(0.05, 10.0) };
        let cumulative = |hours: f64| (hours / 1e5) * (hours / 1e5);
        near(
            told(&mut array, &old).array.value,
            -libm::expm1(-2.0 * (cumulative(years(5.0)) - cumulative(years(3.0)))),
        );
        // Defects that only rebuilds meet are met by none.
        let per_rebuild = Latent { law: Law::PerRebuild, rate: 0.5, ..model.latent.clone() };
        let met = told(&mut array, &Model { latent: per_rebuild, ..Model::plain(0.05, 10.0) });
        near(met.sector.value, met.array.value);
    }

    /// A path alone has no variance, which was taken for one of 0: all was known after one path of each factor.
    #[test]
    fn few_paths_are_still_as_many_as_the_error_takes() {
        let mut array =
            Array::new(&"raid5(8)".parse().expect("one"), raidlab_core::Sectors(1 << 30))
                .expect("fits");
        let model = Model { batch: 0.7, ..Model::plain(0.05, 100.0) };
        let effort = |error| Effort { error, paths: 160, ..Effort::new(3) };
        let mut told = |error| simulate(&mut array, &model, years(5.0), effort(error));
        let (rough, best) = (told(0.5), told(1e-9));
        assert!(rough.paths >= 80 && rough.array.error > 0.0, "{rough:?}");
        assert_eq!(best.paths, 160, "all there are, and no more: {best:?}");
    }

    /// Where each loss of a drive loses the array there is no story without a loss: none is looked for, thousands of
    /// times over.
    #[test]
    fn what_is_certain_is_not_told_on() {
        let layout = "raid5(4)".parse().expect("one");
        let plain = Model::plain(0.05, 10.0);
        let found = [
            Model { common_cause: 1.0, ..plain.clone() },
            Model { wrong_pull: 1.0, ..plain.clone() },
            plain.clone(),
        ]
        .map(|model| {
            let mut array = Array::new(&layout, raidlab_core::Sectors(1 << 30)).expect("fits");
            let mut paths = Paths {
                model: &model,
                array: &mut array,
                method: Method::Both,
                losses: Losses::First,
                until: years(5.0),
                walked: State::default(),
                tried: State::default(),
                stories: 0,
            };
            let told: Vec<f64> = (0..100).map(|seed| paths.path(seed, 1.0).array).collect();
            (told.iter().sum::<f64>() / 100.0, paths.stories)
        });
        // As likely as any of four drives fails.
        let any = -libm::expm1(-4.0 * plain.hazard.cumulative(years(5.0)));
        for (value, stories) in &found[..2] {
            assert!((value / any - 1.0).abs() < 0.02, "{value}, not {any}");
            assert!(*stories < 100, "{stories} for 100 paths");
        }
        assert!(found[2].1 >= 100, "{found:?}: what is likely goes on");
    }

    /// Both chances have to be known well enough, but for what is surely below the least.
    #[test]
    fn it_is_enough_when_both_chances_are_known() {
        let node = |arrays: [f64; 4], any: [f64; 4]| {
            let mut node = Node::new(1.0, 1.0);
            for (array, any) in arrays.into_iter().zip(any) {
                node.add(&Sums { array, any, ..Sums::default() });
            }
            vec![node]
        };
        let (known, unknown) = ([0.1; 4], [0.1, 0.9, 0.2, 0.8]);
        let effort = |least| Effort { error: 0.01, least, ..Effort::new(1) };
        assert!(is_enough(&node(known, known), effort(0.0)));
        assert!(!is_enough(&node(known, unknown), effort(0.0)));
        assert!(!is_enough(&node(unknown, known), effort(0.0)));
        // Mean 0.5, standard error 0.2: surely below 1.4, and not surely below 1.2.
        assert!(is_enough(&node(unknown, unknown), effort(1.4)));
        assert!(!is_enough(&node(unknown, unknown), effort(1.2)));
    }
}
