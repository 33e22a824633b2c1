//! A study in virtual time, as `raidlab compare` runs it, in one thread.

use std::ops::ControlFlow;

use raidlab_predict::{Conditions, Modelled};
use raidlab_results::{Clock, Results};
use raidlab_sim::HostCosts;
use raidlab_study::{Event, Samples, Study, StudyError, parse, run_rounds, summarise};
use serde_json::{Value, json};

use crate::answer;

/// What errors call the study.
const PATH: &str = "what-if.toml";

/// How many runs of cells are done, of how many.
type Progress<'a> = dyn FnMut(usize, usize) + 'a;

/// What a study's layouts are, without running it: `{"layouts": [..]}`, or `{"errors": [..]}`, each with its `key`,
/// `line` and `reason`.
pub fn plan(text: &str) -> Value {
    planned(text).unwrap_or_else(|error| answer::errors(&error))
}

fn planned(text: &str) -> Result<Value, StudyError> {
    let study = load(text, None)?;
    let modelled = Modelled::new(&study, HostCosts::default())?;
    let none = Samples::of_complete_rounds(&study, Vec::new());
    let results = document(&modelled, &none);
    Ok(json!({ "layouts": answer::layouts(&modelled, &results) }))
}

/// What a study shows: [`plan`]'s layouts, `rows` of figures in words, the figures drawn, how far to trust them, and
/// the results `document`. `rounds` is what `--rounds` is on the command line. `progress` is told of every run of a
/// cell.
pub fn run(text: &str, rounds: Option<u32>, progress: &mut Progress<'_>) -> Value {
    let answered = load(text, rounds).and_then(|study| {
        let mut modelled = Modelled::new(&study, HostCosts::default())?;
        let results = simulated(&mut modelled, progress)?;
        Ok(answer::of(&modelled, &results))
    });
    answered.unwrap_or_else(|error| answer::errors(&error))
}

/// The results document of a study, as `raidlab compare --json` writes it but for `risk`.
///
/// # Errors
/// A study that cannot be run.
pub fn results(text: &str, rounds: Option<u32>) -> Result<Results, StudyError> {
    let study = load(text, rounds)?;
    simulated(&mut Modelled::new(&study, HostCosts::default())?, &mut |_, _| {})
}

/// The study, as the command line changes it.
fn load(text: &str, rounds: Option<u32>) -> Result<Study, StudyError> {
    let mut study = parse(text, PATH)?;
    match rounds {
        Some(rounds) => (study.rounds, study.max_rounds) = (rounds, rounds),
        None => study.raise_rounds(),
    }
    study.modelled = true;
    Ok(study)
}

fn simulated(
    modelled: &mut Modelled<'_>,
    progress: &mut Progress<'_>,
) -> Result<Results, StudyError> {
    let samples = run_rounds(modelled.study(), modelled, &mut |made| {
        if let Event::Finished(_) = made.event {
            progress(made.done, made.total);
        }
        ControlFlow::Continue(())
    })?;
    Ok(document(modelled, &samples))
}

fn document(modelled: &Modelled<'_>, samples: &Samples) -> Results {
    let study = modelled.study();
    let Conditions { host, settings, warnings, capacities } = Conditions::of(modelled);
    summarise(study, samples, Clock::Virtual, host, settings, warnings, &capacities)
}
