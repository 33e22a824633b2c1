//! The advice as a page: the report of the last runs, with figures and filters, and the advice in words.

use std::collections::BTreeMap;

use raidlab_advise::{
    Advice, Plan, Wanted, checks, commands_of, first, growth_in_words, study, warnings,
};
use raidlab_core::Sectors;
use raidlab_report::html_with_words;
use raidlab_results::Clock;
use raidlab_risk::YEAR;
use raidlab_study::{CellKey, CellRun, Runner, Sample, cells, resume_rounds, summarise};

use super::print;
use crate::failure::Failure;

/// Every run is finished before.
struct Nothing;

impl Runner for Nothing {
    type Error = String;

    fn run(&mut self, _key: &CellKey, _round: u32, _seed: u64) -> Result<Sample, String> {
        Err("a run of the last ones is missing".into())
    }
}

pub(super) fn page(wanted: &Wanted, advice: &Advice) -> Result<String, Failure> {
    let plans: Vec<Plan> = advice.finalists.iter().map(|one| Plan::from(&one.candidate)).collect();
    let mut study = study(wanted, &plans, wanted.requests).map_err(Failure::failed)?;
    for (layout, one) in study.layouts.iter_mut().zip(&advice.finalists) {
        layout.name = one.candidate.to_string();
    }
    let pick = &advice.finalists[advice.verdict.pick];
    study.baseline = vec![pick.candidate.to_string()];
    study.rounds = pick.rounds.len() as u32;
    study.max_rounds = study.rounds;
    let mut finished = Vec::new();
    for (at, key) in cells(&study).into_iter().enumerate() {
        for (round, run) in advice.finalists[key.layout].rounds.iter().enumerate() {
            let of = |one: &&(usize, raidlab_study::State, Sample)| {
                one.0 == key.workload && one.1 == key.state
            };
            // Rebuilds while nothing goes on are not among them.
            if let Some((_, _, sample)) = run.samples.iter().find(of) {
                finished.push(CellRun { round: round as u32, cell: at, sample: sample.clone() });
            }
        }
    }
    let names = study.workloads.iter().map(|one| one.name.clone()).collect();
    study.only.workloads = names;
    let samples =
        resume_rounds(&study, finished, &mut Nothing, &mut |_| std::ops::ControlFlow::Continue(()));
    let samples = samples.map_err(Failure::failed)?;
    let capacities: Vec<Sectors> =
        advice.finalists.iter().map(|one| Sectors(one.usable / 512)).collect();
    let settings = BTreeMap::from([
        ("drive".to_owned(), wanted.drive.title.clone()),
        ("work".to_owned(), format!("{}: {}", wanted.profile.name, wanted.profile.source)),
    ]);
    let results = summarise(
        &study,
        &samples,
        Clock::Virtual,
        BTreeMap::new(),
        settings,
        Vec::new(),
        &capacities,
    );
    html_with_words(&results, &parts(wanted, advice)).map_err(Failure::failed)
}

fn parts(wanted: &Wanted, advice: &Advice) -> Vec<(String, Vec<String>)> {
    let asked = first(wanted, advice).into_iter();
    let mut parts = vec![
        ("Advice".to_owned(), asked.chain(print::verdict_in_words(wanted, advice)).collect()),
        ("Losing data".to_owned(), print::risks_in_words(wanted, advice)),
    ];
    if advice.finalists.len() > 1 {
        parts.push(("What would change the answer".to_owned(), print::changes_in_words(advice)));
    }
    let growths = advice.growths.iter().map(|(at, growth)| {
        let name = advice.finalists[*at].candidate.to_string();
        growth_in_words(&name, growth, wanted.mission / YEAR)
    });
    let growths: Vec<String> = growths.collect();
    if !growths.is_empty() {
        parts.push(("Growing later".to_owned(), growths));
    }
    parts.push(("Warnings".to_owned(), warnings(wanted, advice)));
    parts.push(("Check first".to_owned(), checks(wanted, advice)));
    parts.push(("To make it".to_owned(), commands_of(wanted, advice)));
    parts
}
