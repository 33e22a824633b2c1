//! How likely the layouts of a study are to lose data, as `raidlab risk` without flags says it, beside their speed.
//!
//! Layouts on the same drives are one question: what nobody knows of drives is then the same for all of them. A
//! structure is computed once, however many chunks the study has of it; threads change nothing, as each draws by the
//! study's seed.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use raidlab_advise::{Candidate, Mode, class};
use raidlab_core::{Layout, Level};
use raidlab_models::DriveSpec;
use raidlab_results::find::is_too_little;
use raidlab_results::risk::{Assumed, DrivesRisk, LayoutRisk, LeftOut, Risks};
use raidlab_risk::{Chances, NoAnswer, Precision, Question, REPLACED, Span, YEAR, words};
use raidlab_study::{DriveSource, Drives, Samples, State, Study};

use crate::parallel;
use crate::risk::rebuild::{Simulated, assumed, assumed_in_words, full_pass};
use crate::risk::values::{percents, time};

mod rows;

/// Seconds that all structures may take together, and up to which they are computed as `raidlab risk` does.
const MOST_SECONDS: f64 = 2.0;
const FULL_SECONDS: f64 = 1.5;
/// How much less brief computing takes.
const BRIEF: f64 = 0.12;

/// What is said where drives are modelled: those of each group of the study. `None` where nothing is to be said: no
/// layout has redundancy, or the study is a published one.
pub(super) fn on_modelled(
    study: &Study,
    drives: &[DriveSpec],
    samples: &Samples,
    threads: usize,
) -> Option<Risks> {
    if !is_wanted(study) {
        return None;
    }
    let (mut questions, mut left_out) = (questions(study, drives, samples), Vec::new());
    leave_out_classes(study, &mut questions, &mut left_out);
    let precision = afford(study, &mut questions, &mut left_out);
    let chances = compute(&questions, precision, threads);
    let answered = questions.iter().zip(&chances).filter(|(asked, _)| !asked.layouts.is_empty());
    let drives = answered.map(|(asked, chances)| asked.told(study, chances)).collect();
    Some(Risks { scope: words::SCOPE.into(), main_mission_years: 5.0, drives, left_out })
}

/// What is said where drives are real: nothing is known of them.
pub(super) fn on_real(study: &Study) -> Option<Risks> {
    let layouts: Vec<String> = study.layouts.iter().map(|one| one.name.clone()).collect();
    let why = "which class the drives here are of, and how fast, is not known; name a drive like them: raidlab risk \
               LAYOUT... --drive NAME (raidlab drive list)";
    let left_out = vec![LeftOut { layouts, why: why.into() }];
    let scope = words::SCOPE.into();
    is_wanted(study).then(|| Risks { scope, main_mission_years: 5.0, drives: Vec::new(), left_out })
}

/// Published studies are about how near the model comes to their figures.
fn is_wanted(study: &Study) -> bool {
    study.given.is_empty() && study.layouts.iter().any(|layout| layout.is_redundant())
}

/// The layouts on one set of drives.
struct Asked<'a> {
    /// The distinct drives, with their names in the study.
    drives: Vec<(&'a str, &'a DriveSpec)>,
    /// Of the study.
    layouts: Vec<usize>,
    question: Question,
    /// What the study's own rebuilds took, by layout; `None` where they do not tell.
    simulated: Vec<Option<Simulated>>,
}

fn questions<'a>(study: &'a Study, drives: &'a [DriveSpec], samples: &Samples) -> Vec<Asked<'a>> {
    let mut found: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
    for (at, named) in study.layouts.iter().enumerate() {
        let members = usize::from(named.layout.drives());
        let mut groups: Vec<usize> = (0..members).map(|place| named.group(place)).collect();
        groups.sort_unstable();
        groups.dedup();
        match found.iter_mut().find(|(known, _)| *known == groups) {
            Some((_, layouts)) => layouts.push(at),
            None => found.push((groups, vec![at])),
        }
    }
    let asked = found.into_iter().map(|(groups, layouts)| {
        let of = |group: &usize| (model_name(&study.drives[*group]), &drives[*group]);
        Asked::new(study, groups.iter().map(of).collect(), layouts, samples)
    });
    asked.collect()
}

/// What a study calls the model of a group of drives.
fn model_name(group: &Drives) -> &str {
    match &group.source {
        DriveSource::Model(name) => name,
        DriveSource::File(_) => &group.name,
    }
}

impl<'a> Asked<'a> {
    fn new(
        study: &Study,
        drives: Vec<(&'a str, &'a DriveSpec)>,
        layouts: Vec<usize>,
        samples: &Samples,
    ) -> Self {
        let smallest = drives.iter().map(|(_, drive)| drive.capacity).min().unwrap_or_default();
        let named = layouts.iter().map(|at| &study.layouts[*at]);
        let plain = named.clone().map(|named| named.layout.clone()).collect();
        let mut question = Question::usual(plain, smallest, class(drives[0].1), study.seed);
        question.spares = named.map(|named| named.spares).collect();
        // Of unequal drives as much is used, and rebuilt, as the smallest has.
        let pass = |drive: &DriveSpec| {
            full_pass(drive) * smallest.0 as f64 / (drive.capacity.0 as f64).max(1.0)
        };
        let longest = drives.iter().map(|(_, drive)| pass(drive)).fold(0.0, f64::max);
        question.model.rebuild = assumed(longest);
        let simulated: Vec<_> =
            layouts.iter().map(|at| rebuilt(study, *at, &drives, samples)).collect();
        let spans = simulated.iter().map(|one| one.as_ref().map(|one| one.span.clone()));
        question.rebuilds =
            spans.map(|span| span.unwrap_or_else(|| question.model.rebuild.clone())).collect();
        Self { drives, layouts, question, simulated }
    }

    /// Takes layouts out.
    fn leave_out(&mut self, study: &Study, at: &[usize]) -> Vec<String> {
        let kept = |place: &usize| !at.contains(place);
        let places: Vec<usize> = (0..self.layouts.len()).filter(kept).collect();
        let names = at.iter().map(|place| study.layouts[self.layouts[*place]].name.clone());
        let names = names.collect();
        let question = &mut self.question;
        self.layouts = places.iter().map(|place| self.layouts[*place]).collect();
        question.layouts = places.iter().map(|place| question.layouts[*place].clone()).collect();
        question.rebuilds = places.iter().map(|place| question.rebuilds[*place].clone()).collect();
        question.spares = places.iter().map(|place| question.spares[*place]).collect();
        self.simulated = places.iter().map(|place| self.simulated[*place].clone()).collect();
        names
    }

    /// What tells what is computed for a layout from what is for others: not the chunk.
    fn structure(&self, place: usize) -> String {
        let layout = self.question.layouts[place].clone();
        let spares = self.question.spares[place];
        let structure = Candidate { layout, spares, mode: Mode::None }.structure();
        format!("{structure} {:?}", self.question.rebuilds[place])
    }

    /// The places of the layouts that are computed, and for each layout which of them it is alike.
    fn structures(&self) -> (Vec<usize>, Vec<usize>) {
        let (mut known, mut places) = (BTreeMap::new(), Vec::new());
        let mut alike = Vec::new();
        for place in 0..self.layouts.len() {
            let number = *known.entry(self.structure(place)).or_insert_with(|| {
                places.push(place);
                places.len() - 1
            });
            alike.push(number);
        }
        (places, alike)
    }

    fn told(&self, study: &Study, chances: &[Chances]) -> DrivesRisk {
        let ratios = self.question.ratios(chances);
        let safest = ratios.first().map_or(0, |ratio| ratio.less);
        let layouts = self.layouts.iter().enumerate().map(|(place, at)| {
            let ratio = ratios.iter().find(|ratio| ratio.more == place);
            let simulated = self.simulated[place].as_ref();
            LayoutRisk {
                layout: study.layouts[*at].name.clone(),
                spares: self.question.spares[place],
                rebuilt: self.rebuilt_in_words(study, place),
                rebuild_hours: simulated.map_or_else(Vec::new, |one| one.runs.clone()),
                times_array: ratio.and_then(|one| rows::ratio(one.array, one.at_least[0])),
                times_sector: ratio.and_then(|one| rows::ratio(one.sector, one.at_least[1])),
                missions: chances[place].missions.iter().map(rows::mission).collect(),
            }
        });
        let outcomes = chances.iter().flat_map(|one| &one.missions).map(|one| one.outcome);
        let figures = outcomes.flat_map(|one| [one.array, one.sector]);
        let shown = figures.filter(|one| one.value >= words::LEAST);
        let titles: Vec<&str> = self.drives.iter().map(|(_, drive)| &*drive.title).collect();
        DrivesRisk {
            drives: titles.join("; "),
            assumed: self.assumed(),
            commands: self.commands(),
            computing_error: shown.map(|one| one.error).fold(0.0, f64::max),
            note: self.note(study, safest, &chances[safest]),
            safest: study.layouts[self.layouts[safest]].name.clone(),
            layouts: layouts.collect(),
        }
    }

    fn note(&self, study: &Study, safest: usize, chances: &Chances) -> Option<String> {
        let name = &study.layouts[self.layouts[safest]].name;
        let central = chances.missions[self.question.main].array.central;
        (central < words::LEAST && self.layouts.len() > 1).then(|| words::dominated(name))
    }

    fn rebuilt_in_words(&self, study: &Study, place: usize) -> String {
        if self.question.layouts[place].survives() == 0 {
            return "never: no redundancy".into();
        }
        if let Some(simulated) = &self.simulated[place] {
            let told = simulated.told();
            return format!(
                "{told}; simulated by this study, alone and beside its work, which does not stop then, each as likely"
            );
        }
        let words = assumed_in_words(&self.question.model.rebuild);
        if study.states.contains(&State::Rebuilding) {
            return format!("{words} (assumed: this study's own rebuilds tell too little)");
        }
        format!("{words} (assumed: the state `rebuilding` simulates it)")
    }

    /// In the words of `raidlab risk`.
    fn assumed(&self) -> Vec<Assumed> {
        let (question, class) = (&self.question, class(self.drives[0].1));
        let (failures, defects) = (question.failures, question.defects);
        let scrub = question.model.latent.found.as_ref().map_or(0.0, |found| 2.0 * found.mean());
        let told = [
            ("drives", "new, of one batch".to_owned()),
            ("failing", format!("{} a year: {}", percents(failures), class.failures_source())),
            ("latent errors", format!("{} a year: {}", percents(defects), class.defects_source())),
            ("scrubbed", format!("every {}", time(scrub))),
            ("replaced", format!("after {}", time(REPLACED))),
            ("together", {
                let share = percents(question.common_cause);
                format!("{share} of failures take one other drive along, any of the array's")
            }),
        ];
        told.map(|(what, words)| Assumed { what: what.into(), words }).into()
    }

    /// One for each number of spares.
    fn commands(&self) -> Vec<String> {
        let question = &self.question;
        let mut by_spares: BTreeMap<u16, Vec<&Layout>> = BTreeMap::new();
        for (layout, spares) in question.layouts.iter().zip(&question.spares) {
            let layouts = by_spares.entry(*spares).or_default();
            if !layouts.contains(&layout) {
                layouts.push(layout);
            }
        }
        let smallest = self.drives.iter().min_by_key(|(_, drive)| drive.capacity);
        let rebuild = match (&question.model.rebuild, self.drives.len()) {
            (Span::Uniform(least, most), 2..) => format!(" --rebuild {least:.1}h..{most:.1}h"),
            _ => String::new(),
        };
        let years: Vec<String> =
            question.missions.iter().map(|one| (one / YEAR).to_string()).collect();
        let command = |(spares, layouts): (u16, Vec<&Layout>)| {
            let layouts: Vec<String> = layouts.iter().map(|one| format!("'{one}'")).collect();
            let spares = if spares > 0 { format!(" --spares {spares}") } else { String::new() };
            format!(
                "raidlab risk {} --drive {}{spares}{rebuild} --years {} --seed {}",
                layouts.join(" "),
                smallest.map_or("", |(name, _)| name),
                years.join(","),
                question.seed
            )
        };
        by_spares.into_iter().map(command).collect()
    }
}

/// What the study's own rebuilds of a layout took, where those beside its work tell: all of them, alone too, each as
/// likely. Rebuilds of a part of the drives say nothing of a whole one.
fn rebuilt(
    study: &Study,
    layout: usize,
    drives: &[(&str, &DriveSpec)],
    samples: &Samples,
) -> Option<Simulated> {
    let named = &study.layouts[layout];
    let smallest = drives.iter().map(|(_, drive)| drive.capacity).min()?;
    let part = named.member_size.or(study.member_size);
    if !named.is_redundant() || part.is_some_and(|part| part < smallest) {
        return None;
    }
    let cells = samples.cells.iter().zip(&samples.samples);
    let of_layout = cells.filter(|(key, _)| key.layout == layout && key.state == State::Rebuilding);
    let (mut told, mut beside_work) = (Vec::new(), 0);
    for (key, sample) in of_layout.flat_map(|(key, own)| own.iter().map(move |one| (key, one))) {
        let Some(rebuild) = sample.rebuild else { continue };
        // Reports do not show it either.
        let too_little = is_too_little(rebuild.done * 100.0, sample.last_done.as_secs());
        let Some((seconds, is_estimate)) = rebuild.seconds() else { continue };
        if key.processes > 0 && too_little {
            continue;
        }
        beside_work += u32::from(key.processes > 0);
        told.push((seconds / 3_600.0, is_estimate));
    }
    (beside_work > 0).then(|| Simulated::of(&told))
}

/// Takes out what is on drives of two classes: no figures are about these.
fn leave_out_classes(study: &Study, all: &mut [Asked<'_>], left_out: &mut Vec<LeftOut>) {
    for asked in all {
        let first = class(asked.drives[0].1);
        if asked.drives.iter().all(|(_, drive)| class(drive) == first) {
            continue;
        }
        let places: Vec<usize> = (0..asked.layouts.len()).collect();
        let layouts = asked.leave_out(study, &places);
        let why = "hard disks and SSDs in one array: failure rates are known of either alone";
        left_out.push(LeftOut { layouts, why: why.into() });
    }
}

/// About the seconds that a structure takes: states multiply where arrays are made of groups.
fn seconds(layout: &Layout) -> f64 {
    let drives = f64::from(layout.drives());
    match layout.survives() {
        0 => 0.0,
        _ if layout.inner.is_some() || layout.level == Level::Raid10 => {
            0.0015 * drives.powi(3) * (drives / 12.0).powi(2).max(1.0)
        }
        _ => 0.005 * drives.powi(2),
    }
}

/// How well all is computed within the time there is; takes out what is too large even so.
fn afford(study: &Study, all: &mut [Asked<'_>], left_out: &mut Vec<LeftOut>) -> Precision {
    let of_asked = |asked: &Asked<'_>| -> f64 {
        let places = asked.structures().0;
        places.iter().map(|place| seconds(&asked.question.layouts[*place])).sum()
    };
    if all.iter().map(of_asked).sum::<f64>() <= FULL_SECONDS {
        return Precision::Full;
    }
    let mut left = MOST_SECONDS;
    let mut too_large = Vec::new();
    for asked in all {
        let (places, alike) = asked.structures();
        let fits: Vec<bool> = places
            .iter()
            .map(|place| {
                let takes = BRIEF * seconds(&asked.question.layouts[*place]);
                let fits = takes <= left;
                left -= if fits { takes } else { 0.0 };
                fits
            })
            .collect();
        let out: Vec<usize> = (0..alike.len()).filter(|place| !fits[alike[*place]]).collect();
        too_large.extend(asked.leave_out(study, &out));
    }
    if !too_large.is_empty() {
        let why = "takes longer than belongs beside a comparison: raidlab risk LAYOUT... says it";
        left_out.push(LeftOut { layouts: too_large, why: why.into() });
    }
    Precision::Brief
}

/// The chances of each question's layouts.
fn compute(all: &[Asked<'_>], precision: Precision, threads: usize) -> Vec<Vec<Chances>> {
    let structures: Vec<(Vec<usize>, Vec<usize>)> = all.iter().map(Asked::structures).collect();
    let of_asked = |(asked, of): (usize, &(Vec<usize>, Vec<usize>))| -> Vec<(usize, usize)> {
        of.0.iter().map(|place| (asked, *place)).collect()
    };
    let jobs: Vec<(usize, usize)> = structures.iter().enumerate().flat_map(of_asked).collect();
    let one = |job: usize| -> Result<Chances, NoAnswer> {
        let (asked, place) = jobs[job];
        all[asked].question.chances(place, precision)
    };
    // It takes a moment: nobody stops it.
    let never = AtomicBool::new(false);
    let found = parallel::all(jobs.len(), threads, &never, |_, _| {}, one);
    let mut found = found.unwrap_or_default().into_iter();
    structures
        .iter()
        .map(|(places, alike)| {
            let own: Vec<Chances> = found.by_ref().take(places.len()).collect();
            alike.iter().filter_map(|number| own.get(*number).cloned()).collect()
        })
        .collect()
}
