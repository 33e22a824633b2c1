//! The whole answer for layouts: chances by mission, their ranges, ratios, and what would change them.

use std::ops::ControlFlow;

use raidlab_core::{Layout, LayoutError, Sectors};
use raidlab_random::{Random, mix};

use crate::array::Array;
use crate::model::{Model, WriteHole};
use crate::prior::{self, Class, Range};
use crate::simulate::{Effort, Outcome, Stop, simulate, years};
use crate::span::Span;
use crate::words;

/// The relative standard error of central figures.
const CENTRAL: f64 = 0.007;
/// The chances of losing the array and of losing anything, by draw.
type Drawn = Vec<(f64, f64)>;

/// Draws of what nobody knows.
const DRAWS: u64 = 64;
/// Paths of each draw: to about a seventh of a chance, where ranges span factors of ten.
const PATHS: u64 = 1_200;
/// The same where little may be spent: to about a third.
const FEW_PATHS: u64 = 160;
/// The relative standard error of central figures where little may be spent, and the paths that it takes at most.
const BRIEF: f64 = 0.02;
const BRIEF_PATHS: u64 = 20_000;

/// How well chances are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Central figures to 0.7 %, which is negligible beside the ranges.
    Full,
    /// Central figures to some percent and coarser ranges, for a quarter of the work: large arrays.
    Brief,
}

impl Precision {
    /// For central figures, and for each draw.
    fn efforts(self, effort: Effort) -> [Effort; 2] {
        match self {
            Self::Full => {
                [Effort { error: CENTRAL, ..effort }, Effort { error: 0.1, paths: PATHS, ..effort }]
            }
            Self::Brief => [
                Effort { error: BRIEF, paths: BRIEF_PATHS, least: words::LEAST, ..effort },
                Effort { error: 0.2, paths: FEW_PATHS, ..effort },
            ],
        }
    }
}

/// A question about layouts of equal drives.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The layouts.
    pub layouts: Vec<Layout>,
    /// What each drive holds.
    pub drive: Sectors,
    /// What is assumed of all of them, with the central figures. The write hole is per layout: see
    /// [`write_holes`](Self::write_holes).
    pub model: Model,
    /// The write hole of each layout.
    pub write_holes: Vec<WriteHole>,
    /// The same if nothing ever scrubbed, where that makes it another; empty: it does not.
    pub write_holes_without_scrub: Vec<WriteHole>,
    /// Lengths of rebuilds of each layout; empty: those of the model.
    pub rebuilds: Vec<Span>,
    /// Hot spares of each layout; empty: those of the model.
    pub spares: Vec<u16>,
    /// Failures a year; the central one is what the model's hazard stands for.
    pub failures: Range,
    /// Defects a year of each drive.
    pub defects: Range,
    /// The chance that a failure takes another drive with it.
    pub common_cause: Range,
    /// Missions in hours.
    pub missions: Vec<f64>,
    /// The one that what-if rows and ratios are about: its place in `missions`.
    pub main: usize,
    /// Draws everything.
    pub seed: u64,
    /// What breaks it off in the middle of a step.
    pub stop: Stop,
}

/// A chance with its range over what nobody knows: 5 % of draws lie below, 5 % above.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Within {
    /// With the central figures.
    pub central: f64,
    /// 5 %.
    pub low: f64,
    /// 95 %.
    pub high: f64,
}

/// What a layout loses by the end of a mission.
#[derive(Clone, Debug, PartialEq)]
pub struct Mission {
    /// With the central figures.
    pub outcome: Outcome,
    /// Losing the array.
    pub array: Within,
    /// Losing anything.
    pub sector: Within,
}

/// The chances of a layout, and what each draw of what nobody knows gave for the main mission.
#[derive(Clone, Debug, PartialEq)]
pub struct Chances {
    /// By mission.
    pub missions: Vec<Mission>,
    drawn: Drawn,
}

/// The answer with something changed.
#[derive(Clone, Debug, PartialEq)]
pub struct WhatIf {
    /// What is changed, in a few words.
    pub what: String,
    /// What is lost then by the end of the main mission.
    pub outcome: Outcome,
}

/// The answer for a layout.
#[derive(Clone, Debug, PartialEq)]
pub struct Risk {
    /// The layout.
    pub layout: Layout,
    /// Bytes that users have.
    pub usable: u64,
    /// By mission.
    pub missions: Vec<Mission>,
    /// The share of the array's risk that is due to waiting for a drive; 0 where there is no risk.
    pub waiting: f64,
    /// Rows of what would change the answer.
    pub what_ifs: Vec<WhatIf>,
}

/// How many times as likely one layout loses as another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The place of the layout in the question that loses more.
    pub more: usize,
    /// That of the one that loses less.
    pub less: usize,
    /// Losing the array, over the main mission.
    pub array: Within,
    /// Losing anything.
    pub sector: Within,
    /// How many times as likely at least it loses the array, and anything, where that of `less` is below
    /// [`words::LEAST`]: counted down to that only, as other causes dominate what is below.
    pub at_least: [Option<f64>; 2],
}

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// For each layout.
    pub risks: Vec<Risk>,
    /// From each layout to the safest one.
    pub ratios: Vec<Ratio>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq)]
pub enum NoAnswer {
    /// A layout is impossible over these drives.
    Layout(LayoutError),
    /// An input cannot be, in words.
    Input(String),
    /// Whoever asked has broken off.
    Stopped,
}

impl Question {
    /// What is usual of a class of drives where nobody says anything ([`Model::usual`], and how well that is known),
    /// over one year and, mainly, five. The rebuild is to be set.
    pub fn usual(layouts: Vec<Layout>, drive: Sectors, class: Class, seed: u64) -> Self {
        Self {
            layouts,
            drive,
            model: Model::usual(class),
            write_holes: Vec::new(),
            write_holes_without_scrub: Vec::new(),
            rebuilds: Vec::new(),
            spares: Vec::new(),
            failures: class.failures(),
            defects: class.defects(),
            common_cause: prior::COMMON_CAUSE,
            missions: [1.0, 5.0].map(years).to_vec(),
            main: 1,
            seed,
            stop: Stop::NEVER,
        }
    }

    fn effort(&self) -> Effort {
        Effort { stop: self.stop, ..Effort::new(self.seed) }
    }

    /// Whether what was simulated may be used.
    fn goes_on(&self) -> Result<(), NoAnswer> {
        if self.stop.is_set() { Err(NoAnswer::Stopped) } else { Ok(()) }
    }

    /// What is assumed of a layout.
    pub fn model_of(&self, layout: usize) -> Model {
        let mut model = self.model.clone();
        if let Some(hole) = self.write_holes.get(layout) {
            model.write_hole = *hole;
        }
        if let Some(rebuild) = self.rebuilds.get(layout) {
            model.rebuild = rebuild.clone();
        }
        if let Some(spares) = self.spares.get(layout) {
            model.spares = *spares;
        }
        model
    }

    /// The model of a draw of what nobody knows.
    fn drawn(&self, layout: usize, draw: u64) -> Model {
        let mut random = Random::new(mix(&[self.seed, draw]));
        let mut model = self.model_of(layout);
        let failures = self.failures.at(strata(draw, 0, self.seed, &mut random));
        if self.failures.central > 0.0 {
            model.hazard = model.hazard.times(failures / self.failures.central);
        }
        let per_hour = self.model.latent.rate / self.defects.central.max(f64::MIN_POSITIVE);
        let defects = self.defects.at(strata(draw, 1, self.seed, &mut random));
        model.latent.rate = defects * per_hour;
        let cause = self.common_cause.at(strata(draw, 2, self.seed, &mut random));
        model.common_cause = cause.min(1.0);
        model
    }

    /// Answers; `step` is told how many of how many steps are done, and may break off between them.
    ///
    /// # Errors
    /// When an input cannot be, or `step` or [`stop`](Self::stop) broke off.
    pub fn answer(
        &self,
        step: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<Answer, NoAnswer> {
        let mut arrays = Vec::new();
        for (index, layout) in self.layouts.iter().enumerate() {
            self.model_of(index).check().map_err(NoAnswer::Input)?;
            arrays.push(Array::new(layout, self.drive).map_err(NoAnswer::Layout)?);
        }
        let changes: Vec<_> = (0..self.layouts.len()).map(|layout| self.changes(layout)).collect();
        let what_ifs: usize = changes.iter().map(Vec::len).sum();
        let each = self.missions.len() * (DRAWS as usize + 1);
        let total = self.layouts.len() * each + what_ifs;
        let mut done = 0;
        let mut told = || {
            done += 1;
            step(done, total).is_continue().then_some(()).ok_or(NoAnswer::Stopped)
        };
        let (mut risks, mut all) = (Vec::new(), Vec::new());
        for (index, (array, changes)) in arrays.iter_mut().zip(changes).enumerate() {
            let chances = self.chances_of(index, array, Precision::Full, &mut told)?;
            let central = chances.missions[self.main].outcome;
            let (mut what_ifs, mut waiting) = (Vec::new(), 0.0);
            for (what, model) in changes {
                let effort = Effort { error: 0.02, paths: 50_000, ..self.effort() };
                let outcome = simulate(array, &model, central.until, effort);
                self.goes_on()?;
                if what == AT_ONCE && central.array.value > 0.0 {
                    waiting = (1.0 - outcome.array.value / central.array.value).clamp(0.0, 1.0);
                }
                what_ifs.push(WhatIf { what: what.into(), outcome });
                told()?;
            }
            let (layout, usable) = (self.layouts[index].clone(), array.usable());
            let missions = chances.missions.clone();
            risks.push(Risk { layout, usable, missions, waiting, what_ifs });
            all.push(chances);
        }
        let ratios = self.ratios(&all);
        Ok(Answer { risks, ratios })
    }

    /// The chances of a layout by the end of the main mission, and their ranges, without what would change them.
    /// Chances below [`LEAST`](crate::words::LEAST) are not known well: words tell none apart there.
    ///
    /// # Errors
    /// When an input cannot be, or [`stop`](Self::stop) broke off.
    pub fn mission(&self, layout: usize, error: f64) -> Result<Mission, NoAnswer> {
        self.model_of(layout).check().map_err(NoAnswer::Input)?;
        let mut array = Array::new(&self.layouts[layout], self.drive).map_err(NoAnswer::Layout)?;
        let effort = Effort { error, least: words::LEAST, ..self.effort() };
        let each = Effort { error: 0.1, paths: PATHS, ..effort };
        let until = self.missions[self.main];
        let told = self.mission_of(layout, &mut array, (until, [effort, each]), &mut || Ok(()));
        told.map(|told| told.0)
    }

    /// The chances of a layout alone, as [`answer`](Self::answer) gives them with [`Precision::Full`].
    ///
    /// # Errors
    /// When an input cannot be, or [`stop`](Self::stop) broke off.
    pub fn chances(&self, layout: usize, precision: Precision) -> Result<Chances, NoAnswer> {
        self.model_of(layout).check().map_err(NoAnswer::Input)?;
        let mut array = Array::new(&self.layouts[layout], self.drive).map_err(NoAnswer::Layout)?;
        self.chances_of(layout, &mut array, precision, &mut || Ok(()))
    }

    /// Each mission of a layout.
    fn chances_of(
        &self,
        layout: usize,
        array: &mut Array,
        precision: Precision,
        told: &mut dyn FnMut() -> Result<(), NoAnswer>,
    ) -> Result<Chances, NoAnswer> {
        let (mut missions, mut main) = (Vec::new(), Vec::new());
        for (index, until) in self.missions.iter().enumerate() {
            let efforts = precision.efforts(self.effort());
            let (mission, drawn) = self.mission_of(layout, array, (*until, efforts), told)?;
            missions.push(mission);
            if index == self.main {
                main = drawn;
            }
        }
        Ok(Chances { missions, drawn: main })
    }

    /// A mission of a layout with so much effort for its central figures and for each draw, and what each draw gave.
    fn mission_of(
        &self,
        layout: usize,
        array: &mut Array,
        (until, [central, each]): (f64, [Effort; 2]),
        told: &mut dyn FnMut() -> Result<(), NoAnswer>,
    ) -> Result<(Mission, Drawn), NoAnswer> {
        let outcome = simulate(array, &self.model_of(layout), until, central);
        self.goes_on()?;
        told()?;
        let mut drawn = Vec::new();
        for draw in 0..DRAWS {
            let outcome = simulate(array, &self.drawn(layout, draw), until, each);
            self.goes_on()?;
            drawn.push((outcome.array.value, outcome.sector.value));
            told()?;
        }
        let array = within(outcome.array.value, drawn.iter().map(|one| one.0));
        let sector = within(outcome.sector.value, drawn.iter().map(|one| one.1));
        Ok((Mission { outcome, array, sector }, drawn))
    }

    /// Models with something changed that belongs to the structure of the question.
    fn changes(&self, layout: usize) -> Vec<(&'static str, Model)> {
        let base = self.model_of(layout);
        let with = |what, change: &dyn Fn(&mut Model)| {
            let mut model = base.clone();
            change(&mut model);
            (what, model)
        };
        let mut rows = Vec::new();
        if base.replace.mean() > 0.0 {
            rows.push(with(AT_ONCE, &|model| model.replace = Span::Fixed(0.0)));
        }
        if base.spares > 0 {
            rows.push(with("no hot spare", &|model| model.spares = 0));
        } else {
            rows.push(with("one hot spare", &|model| model.spares = 1));
        }
        if base.latent.rate > 0.0 {
            rows.push(with("latent errors x 10", &|model| model.latent.rate *= 10.0));
            rows.push(with("latent errors / 10", &|model| model.latent.rate /= 10.0));
        }
        // A scrub also mends what a crash tore, where nothing else does.
        let torn = self.write_holes_without_scrub.get(layout).copied().unwrap_or(base.write_hole);
        let is_found = base.latent.rate > 0.0 || torn != base.write_hole;
        if base.latent.found.is_some() && is_found {
            rows.push(with("no scrub", &|model| {
                model.latent.found = None;
                model.write_hole = torn;
            }));
        }
        rows.push(with("common cause 5 %", &|model| model.common_cause = 0.05));
        if base.batch > 0.0 {
            rows.push(with("drives of mixed batches", &|model| model.batch = 0.0));
        }
        if base.wrong_pull == 0.0 {
            rows.push(with("wrong drive pulled 1 %", &|model| model.wrong_pull = 0.01));
        } else {
            rows.push(with("never the wrong drive pulled", &|model| model.wrong_pull = 0.0));
        }
        if !matches!(base.rebuild, Span::Fixed(_)) {
            let mean = Span::Fixed(base.rebuild.mean());
            rows.push(with("rebuild always its mean", &|model| model.rebuild = mean.clone()));
        }
        rows
    }

    /// How many times as likely the layouts lose as the safest of them, over the main mission; in the order of theirs.
    pub fn ratios(&self, of: &[Chances]) -> Vec<Ratio> {
        let central = |index: usize| of[index].missions[self.main].outcome;
        let safest = (0..of.len())
            .min_by(|one, other| central(*one).array.value.total_cmp(&central(*other).array.value));
        let Some(less) = safest else { return Vec::new() };
        let ratio = |more: usize| {
            let quotient = |one: f64, other: f64| if other > 0.0 { one / other } else { f64::NAN };
            let pairs = || of[more].drawn.iter().zip(&of[less].drawn);
            let array = pairs().map(|(one, other)| quotient(one.0, other.0));
            let sector = pairs().map(|(one, other)| quotient(one.1, other.1));
            let (one, other) = (central(more), central(less));
            Ratio {
                more,
                less,
                array: within(quotient(one.array.value, other.array.value), array),
                sector: within(quotient(one.sector.value, other.sector.value), sector),
                at_least: [
                    words::counted_down(one.array.value, other.array.value),
                    words::counted_down(one.sector.value, other.sector.value),
                ],
            }
        };
        (0..of.len()).filter(|more| *more != less).map(ratio).collect()
    }
}

/// The what-if row that tells what waiting for a drive is worth.
pub const AT_ONCE: &str = "drive replaced at once";

/// A normal number for a draw: each of equal parts of the law has one draw, in an order of its own for each figure.
fn strata(draw: u64, figure: u64, seed: u64, random: &mut Random) -> f64 {
    let mut order: Vec<u64> = (0..DRAWS).collect();
    Random::new(mix(&[seed, figure, DRAWS])).shuffle(&mut order);
    let within = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    normal((order[draw as usize] as f64 + within.clamp(1e-9, 1.0 - 1e-9)) / DRAWS as f64)
}

/// The normal quantile of a chance, by bisection of the error function.
fn normal(chance: f64) -> f64 {
    let below = |value: f64| 0.5 * libm::erfc(-value / std::f64::consts::SQRT_2);
    let (mut low, mut high) = (-9.0, 9.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if below(middle) < chance { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

fn within(central: f64, drawn: impl Iterator<Item = f64>) -> Within {
    let mut drawn: Vec<f64> = drawn.filter(|one| one.is_finite()).collect();
    drawn.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = share * drawn.len().saturating_sub(1) as f64;
        let (below, part) = (place as usize, place.fract());
        let above = drawn.get(below + 1).or(drawn.last()).copied().unwrap_or(central);
        drawn.get(below).map_or(central, |one| one + part * (above - one))
    };
    Within { central, low: at(0.05), high: at(0.95) }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// The chances without what would change them are those of the whole answer; below what words tell apart little is
    /// spent.
    #[test]
    fn a_mission_alone_is_that_of_the_answer() {
        let question = Question {
            layouts: ["raid5(4)", "raid6(8)"].map(|name| name.parse().expect("one")).to_vec(),
            drive: Sectors(1 << 30),
            model: Model::plain(0.004, 10.0),
            write_holes: Vec::new(),
            write_holes_without_scrub: Vec::new(),
            rebuilds: Vec::new(),
            spares: Vec::new(),
            failures: Range { low: 0.002, central: 0.004, high: 0.008 },
            defects: Range { low: 0.0, central: 0.0, high: 0.0 },
            common_cause: Range { low: 0.0, central: 0.0, high: 0.0 },
            missions: vec![years(5.0)],
            main: 0,
            seed: 3,
            stop: Stop::NEVER,
        };
        let answer = question.answer(&mut |_, _| ControlFlow::Continue(())).expect("an answer");
        let [alone, rare] = [0, 1].map(|one| question.mission(one, 0.02).expect("a mission"));
        let all = &answer.risks[0].missions[0].array;
        assert!((alone.array.central / all.central - 1.0).abs() < 0.08, "{alone:?} {all:?}");
        assert!(rare.array.high < words::LEAST, "{rare:?}");
        assert!(
            rare.outcome.paths * 4 < answer.risks[1].missions[0].outcome.paths,
            "{} and {}",
            rare.outcome.paths,
            answer.risks[1].missions[0].outcome.paths
        );
    }

    /// What is computed beside a comparison is the answer's own: all of it, or by fewer paths near it.
    #[test]
    fn chances_alone_are_those_of_the_answer() {
        let layouts = ["raid5(4)", "raid6(4)", "raid0(4)"].map(|name| name.parse().expect("one"));
        let mut question = Question::usual(layouts.to_vec(), Sectors(1 << 30), Class::HardDisk, 5);
        question.model.rebuild = Span::Uniform(10.0, 30.0);
        question.missions = vec![years(5.0)];
        question.main = 0;
        let answer = question.answer(&mut |_, _| ControlFlow::Continue(())).expect("an answer");
        let of = |precision| -> Vec<Chances> {
            (0..3).map(|one| question.chances(one, precision).expect("chances")).collect()
        };
        let full = of(Precision::Full);
        for (chances, risk) in full.iter().zip(&answer.risks) {
            assert_eq!(chances.missions, risk.missions);
            // What waiting for a drive is worth is what is left of the chance where nobody waits.
            let at_once = risk.what_ifs.iter().find(|one| one.what == AT_ONCE).expect("told");
            let left = at_once.outcome.array.value / risk.missions[0].outcome.array.value;
            assert_eq!(risk.waiting, (1.0 - left).clamp(0.0, 1.0));
        }
        assert!(answer.risks[0].waiting > 0.2 && answer.risks[2].waiting == 0.0);
        assert_eq!(question.ratios(&full), answer.ratios);
        for (brief, full) in of(Precision::Brief).iter().zip(&full) {
            let (brief, full) = (brief.missions[0].array, full.missions[0].array);
            assert!((brief.central / full.central - 1.0).abs() < 0.08, "{brief:?} {full:?}");
            for (brief, full) in [(brief.low, full.low), (brief.high, full.high)] {
                assert!((0.5..2.0).contains(&(brief / full)), "{brief:?} {full:?}");
            }
        }
    }

    #[test]
    fn draws_are_normal() {
        let all: Vec<f64> =
            (0..DRAWS).map(|draw| strata(draw, 0, 7, &mut Random::new(draw))).collect();
        let mean = all.iter().sum::<f64>() / DRAWS as f64;
        let square = all.iter().map(|one| one * one).sum::<f64>() / DRAWS as f64;
        assert!(mean.abs() < 0.05 && (square - 1.0).abs() < 0.1, "{mean} {square}");
        assert!((normal(0.95) - 1.644_853_6).abs() < 1e-6);
        let range = within(5.0, (0..=100).map(f64::from));
        assert_eq!((range.low, range.high), (5.0, 95.0));
    }

    /// Each row changes what its name says, and nothing else.
    #[test]
    fn what_ifs_change_one_thing_each() {
        let mut question = Question::usual(
            vec!["raid5(4)".parse().expect("one")],
            Sectors(1 << 30),
            Class::HardDisk,
            5,
        );
        question.model.rebuild = Span::Uniform(10.0, 30.0);
        let base = question.model_of(0);
        let changed = |change: &dyn Fn(&mut Model)| {
            let mut model = base.clone();
            change(&mut model);
            model
        };
        let expected = [
            (AT_ONCE, changed(&|model| model.replace = Span::Fixed(0.0))),
            ("one hot spare", changed(&|model| model.spares = 1)),
            ("latent errors x 10", changed(&|model| model.latent.rate *= 10.0)),
            ("latent errors / 10", changed(&|model| model.latent.rate /= 10.0)),
            ("no scrub", changed(&|model| model.latent.found = None)),
            ("common cause 5 %", changed(&|model| model.common_cause = 0.05)),
            ("drives of mixed batches", changed(&|model| model.batch = 0.0)),
            ("wrong drive pulled 1 %", changed(&|model| model.wrong_pull = 0.01)),
            ("rebuild always its mean", changed(&|model| model.rebuild = Span::Fixed(20.0))),
        ];
        assert_eq!(question.changes(0), expected);
        // What only a scrub mends is torn for longer without one.
        let hole = |whole| WriteHole { whole, degraded: 1e-6, bytes: 4_096.0 };
        question.write_holes = vec![hole(1e-9)];
        question.write_holes_without_scrub = vec![hole(1e-7)];
        let holes = |question: &Question| -> Vec<(&str, f64)> {
            let rows = question.changes(0).into_iter();
            rows.map(|(what, model)| (what, model.write_hole.whole)).collect()
        };
        assert!(holes(&question).contains(&("no scrub", 1e-7)));
        assert!(holes(&question).contains(&("common cause 5 %", 1e-9)));
        question.model.latent.rate = 0.0;
        assert!(holes(&question).contains(&("no scrub", 1e-7)), "it is there without defects");
        (question.write_holes, question.write_holes_without_scrub) = (Vec::new(), Vec::new());
        let plain = Model { spares: 2, wrong_pull: 0.02, ..Model::plain(0.01, 20.0) };
        question.model = plain.clone();
        let expected = [
            ("no hot spare", Model { spares: 0, ..plain.clone() }),
            ("common cause 5 %", Model { common_cause: 0.05, ..plain.clone() }),
            ("never the wrong drive pulled", Model { wrong_pull: 0.0, ..plain }),
        ];
        assert_eq!(question.changes(0), expected, "what is not there is not changed");
    }

    #[test]
    fn each_layout_has_what_is_its_own() {
        let names = ["raid5(4)", "raid6(4)"].map(|name| name.parse().expect("one"));
        let mut question = Question::usual(names.to_vec(), Sectors(1 << 30), Class::Ssd, 5);
        assert_eq!(question.model_of(1), question.model);
        question.spares = vec![1, 2];
        question.rebuilds = vec![Span::Fixed(3.0), Span::Fixed(4.0)];
        let hole = WriteHole { whole: 1e-9, degraded: 1e-6, bytes: 4_096.0 };
        question.write_holes = vec![WriteHole::default(), hole];
        let model = question.model_of(1);
        assert_eq!((model.spares, &model.rebuild, model.write_hole), (2, &Span::Fixed(4.0), hole));
        assert_eq!(question.model_of(0).spares, 1);
    }

    /// Each figure is drawn once from each of equal parts of its law, in an order of its own, around what the model
    /// has.
    #[test]
    fn what_nobody_knows_is_drawn_around_the_model() {
        let mut question = Question::usual(
            vec!["raid5(4)".parse().expect("one")],
            Sectors(1 << 30),
            Class::HardDisk,
            5,
        );
        question.model.latent.rate *= 3.0;
        let base = question.model.clone();
        let all: Vec<Model> = (0..DRAWS).map(|draw| question.drawn(0, draw)).collect();
        let hazards: Vec<f64> = all
            .iter()
            .map(|one| one.hazard.cumulative(1e4) / base.hazard.cumulative(1e4))
            .collect();
        let rates: Vec<f64> = all.iter().map(|one| one.latent.rate / base.latent.rate).collect();
        let causes: Vec<f64> = all.iter().map(|one| one.common_cause).collect();
        let order = |values: &[f64]| {
            let mut order: Vec<usize> = (0..values.len()).collect();
            order.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
            order
        };
        assert!(order(&hazards) != order(&rates) && order(&rates) != order(&causes));
        let around = |values: &[f64], range: Range| {
            let (low, high) = (range.low / range.central, range.high / range.central);
            let beyond = |is: &dyn Fn(f64) -> bool| values.iter().filter(|one| is(**one)).count();
            let tail = DRAWS as usize / 20;
            for (found, end) in [(beyond(&|one| one < low), low), (beyond(&|one| one > high), high)]
            {
                assert!(found.abs_diff(tail) <= 1, "{found} of {DRAWS} beyond {end}");
            }
            let mut sorted = values.to_vec();
            sorted.sort_by(f64::total_cmp);
            let middle = sorted[sorted.len() / 2];
            assert!((0.8..1.25).contains(&middle), "{middle}");
        };
        around(&hazards, question.failures);
        around(&rates, question.defects);
        assert!(causes.iter().all(|one| (0.0..=1.0).contains(one)));
    }

    /// Without redundancy there is nothing to simulate: the steps are those of the question, waiting is worth nothing.
    #[test]
    fn steps_are_counted_to_the_last_and_may_end_it() {
        let mut question = Question::usual(
            vec!["raid0(4)".parse().expect("one"); 2],
            Sectors(1 << 30),
            Class::HardDisk,
            5,
        );
        question.model.rebuild = Span::Fixed(20.0);
        let mut told = Vec::new();
        let answer = question.answer(&mut |done, total| {
            told.push((done, total));
            ControlFlow::Continue(())
        });
        let answer = answer.expect("an answer");
        let total = 2 * (2 * (DRAWS as usize + 1) + 8);
        assert_eq!(told, (1..=total).map(|done| (done, total)).collect::<Vec<_>>());
        let risk = &answer.risks[0];
        assert_eq!((risk.missions.len(), risk.what_ifs.len(), risk.waiting), (2, 8, 0.0));
        assert!(risk.missions[0].array.central < risk.missions[1].array.central, "one year, five");
        let [ratio] = &answer.ratios[..] else { panic!("one") };
        assert_eq!((ratio.less, ratio.more), (0, 1));
        assert_eq!((ratio.array.low, ratio.array.central, ratio.array.high), (1.0, 1.0, 1.0));
        let mut left = 5;
        let broken_off = question.answer(&mut |_, _| {
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!((broken_off, left), (Err(NoAnswer::Stopped), 0));
    }

    /// A flag ends a simulation of which each step would take hours: between its paths.
    #[test]
    fn a_flag_breaks_off_within_a_step() {
        static STOP: AtomicBool = AtomicBool::new(true);
        let names = vec!["raid6(24)".parse().expect("one")];
        let mut question = Question::usual(names, Sectors(1 << 30), Class::HardDisk, 5);
        question.model.rebuild = Span::Fixed(20.0);
        question.stop = Stop::on(&STOP);
        let mut steps = 0;
        let answer = question.answer(&mut |_, _| {
            steps += 1;
            ControlFlow::Continue(())
        });
        assert_eq!((answer, steps), (Err(NoAnswer::Stopped), 0));
        assert_eq!(question.mission(0, 0.0), Err(NoAnswer::Stopped));
        assert_eq!(question.chances(0, Precision::Brief), Err(NoAnswer::Stopped));
        let mut array = Array::new(&question.layouts[0], question.drive).expect("can be");
        let effort = Effort { error: 0.0, paths: u64::MAX, ..question.effort() };
        let broken_off = simulate(&mut array, &question.model_of(0), years(5.0), effort);
        assert_eq!(broken_off.paths, 0);
    }

    /// Only down to what other causes dominate is counted: the second of these layouts loses the array less often.
    #[test]
    fn a_ratio_says_how_many_times_at_least_where_other_causes_dominate_the_safest() {
        let names = ["raid5(4)", "raid6(4)"].map(|name| name.parse().expect("one"));
        let mut question = Question::usual(names.to_vec(), Sectors(1 << 30), Class::HardDisk, 5);
        (question.model.rebuild, question.missions, question.main) =
            (Span::Fixed(20.0), vec![years(5.0)], 0);
        let of = |one| question.chances(one, Precision::Brief).expect("chances");
        let (more, less) = (of(0), of(1));
        let outcome = |of: &Chances| of.missions[0].outcome;
        assert!(outcome(&less).array.value < words::LEAST, "{:?}", outcome(&less).array);
        let [ratio] = question.ratios(&[more.clone(), less.clone()])[..] else { panic!("one") };
        let [array, sector] = ratio.at_least;
        let counted = outcome(&more).array.value / words::LEAST;
        assert!(
            (array.expect("below") / counted - 1.0).abs() < 1e-12 && counted < ratio.array.central
        );
        assert_eq!(sector.is_some(), outcome(&less).sector.value < words::LEAST);
        question.missions = vec![years(100.0)];
        let of = |one| question.chances(one, Precision::Brief).expect("chances");
        let [ratio] = question.ratios(&[of(0), of(1)])[..] else { panic!("one") };
        assert_eq!(ratio.at_least[1], None, "in a hundred years more than that");
    }

    /// Ratios are those of the main mission, whichever place that has.
    #[test]
    fn ratios_are_over_the_main_mission() {
        let names = ["raid0(2)", "raid0(4)"].map(|name| name.parse().expect("one"));
        let mut question = Question::usual(names.to_vec(), Sectors(1 << 30), Class::HardDisk, 5);
        question.model.rebuild = Span::Fixed(20.0);
        let mut ratios = |missions: &[f64], main: usize| {
            (question.missions, question.main) =
                (missions.iter().map(|one| years(*one)).collect(), main);
            let of = |one| question.chances(one, Precision::Brief).expect("chances");
            question.ratios(&[of(0), of(1)])
        };
        assert_eq!(ratios(&[1.0, 5.0], 1), ratios(&[5.0], 0));
        assert_eq!(ratios(&[1.0, 5.0], 0), ratios(&[1.0], 0));
        assert_ne!(ratios(&[1.0], 0), ratios(&[5.0], 0));
        let of_draws = ratios(&[1.0, 5.0], 1)[0].array;
        assert!(
            of_draws.low < of_draws.central && of_draws.central < of_draws.high,
            "{of_draws:?}"
        );
    }

    #[test]
    fn ranges_are_quantiles_between_draws() {
        let found = within(5.0, (0..=10).map(f64::from));
        assert_eq!((found.central, found.low, found.high), (5.0, 0.5, 9.5));
        let some = within(5.0, [f64::NAN, 3.0, f64::INFINITY, 1.0].into_iter());
        assert_eq!((some.low, some.high), (1.1, 2.9));
        let none = within(5.0, std::iter::empty());
        assert_eq!((none.low, none.high), (5.0, 5.0));
    }
}
