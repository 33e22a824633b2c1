//! A study that was stopped goes on as if it had not been.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::support::{on, sample};
use raidlab_study::{
    CellKey, CellRun, Event, Progress, Runner, Sample, Samples, Study, cells, default_study, parse,
    resume_rounds, resume_rounds_parallel, run_rounds,
};

/// Two layouts and one workload, with further rounds until the precision is reached.
fn study() -> Study {
    let mut study = parse(default_study(), "default").unwrap();
    study.layouts.retain(|layout| ["single", "raid5(4)"].contains(&&*layout.name));
    study.workloads.truncate(1);
    Study { baseline: vec!["single".into()], max_rounds: 30, precision_percent: 0.2, ..study }
}

/// What a run of a cell gives, and which were asked for.
#[derive(Default)]
struct Fake(Vec<(CellKey, u32, u64)>);

impl Runner for Fake {
    type Error = String;

    fn run(&mut self, key: &CellKey, round: u32, seed: u64) -> Result<Sample, String> {
        self.0.push((*key, round, seed));
        // The first rounds scatter, so that their intervals are too wide.
        let noise = if round < 2 { (seed % 100) as f64 / 100.0 } else { 0.0 };
        Ok(sample(100.0 * (key.layout + 1) as f64 + noise))
    }
}

/// The whole study: its samples, its runs in order, what the runner was asked.
fn uninterrupted(study: &Study) -> (Samples, Vec<CellRun>, Vec<(CellKey, u32, u64)>) {
    let keys = cells(study);
    let (mut runs, mut fake) = (Vec::new(), Fake::default());
    let samples = run_rounds(study, &mut fake, &mut |told| {
        if let Event::Finished(sample) = told.event {
            let cell = keys.iter().position(|key| key == told.key).unwrap();
            runs.push(CellRun { round: told.round, cell, sample: sample.clone() });
        }
        ControlFlow::Continue(())
    });
    (samples.unwrap(), runs, fake.0)
}

/// Stopped after any number of runs, the rest follows in its order and with its seeds.
#[test]
fn a_study_stopped_anywhere_goes_on_as_if_it_had_not_been() {
    let study = study();
    let (samples, runs, asked) = uninterrupted(&study);
    assert!((7..30).contains(&samples.rounds), "further rounds, and an end: {}", samples.rounds);
    for stop in 0..=runs.len() {
        let mut fake = Fake::default();
        let mut counted = stop;
        let again = resume_rounds(&study, runs[..stop].to_vec(), &mut fake, &mut |told| {
            counted += usize::from(told.event != Event::Started);
            assert_eq!(told.done, counted);
            ControlFlow::Continue(())
        });
        assert_eq!(again.unwrap(), samples, "{stop}");
        assert_eq!(fake.0, asked[stop..], "{stop}");
    }
}

/// Whoever stops it when the last cell has just been run gets the whole, and nothing about being stopped.
#[test]
fn a_study_stopped_after_its_last_cell_is_done() {
    let study = study();
    let (samples, runs, _) = uninterrupted(&study);
    for (threads, stop, is_done) in
        [(0, runs.len(), true), (1, runs.len(), true), (0, runs.len() - 1, false)]
    {
        let mut counted = 0;
        let mut told = |told: Progress<'_>| {
            counted += usize::from(told.event != Event::Started);
            if counted == stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let again = match threads {
            0 => resume_rounds(&study, Vec::new(), &mut Fake::default(), &mut told),
            _ => resume_rounds_parallel(&study, Vec::new(), threads, Fake::default, &mut told),
        };
        let again = again.unwrap();
        assert_eq!(again.aborted, !is_done, "{threads} threads, stopped after {stop}");
        assert_eq!(again == samples, is_done);
    }
}

/// Threads finish runs in any order: any of them may be there, in any order.
#[test]
fn any_runs_may_be_there_before() {
    let study = study();
    let (samples, runs, _) = uninterrupted(&study);
    for step in [2, 3, 5] {
        let some: Vec<CellRun> = runs.iter().rev().step_by(step).cloned().collect();
        let left = runs.len() - some.len();
        for threads in [1, 3] {
            let mut done = 0;
            let again =
                resume_rounds_parallel(&study, some.clone(), threads, Fake::default, &mut |told| {
                    done += usize::from(told.event != Event::Started);
                    ControlFlow::Continue(())
                });
            assert_eq!((again.unwrap(), done), (samples.clone(), left));
        }
        let again = resume_rounds(&study, some, &mut Fake::default(), &mut on).unwrap();
        assert_eq!(again, samples);
    }
}

/// What the study has not is left out, and what is there twice counts once.
#[test]
fn runs_of_another_study_do_not_count() {
    let study = study();
    let (samples, runs, _) = uninterrupted(&study);
    let mut more = runs.clone();
    more.push(CellRun { round: study.max_rounds, ..runs[0].clone() });
    more.push(CellRun { cell: 1000, ..runs[0].clone() });
    more.push(runs[0].clone());
    assert_eq!(resume_rounds(&study, more, &mut Fake::default(), &mut on).unwrap(), samples);
}

#[test]
fn complete_rounds_are_told_from_the_others() {
    let study = study();
    let (samples, runs, _) = uninterrupted(&study);
    let each = cells(&study).len();
    for stop in 0..=runs.len() {
        let some = Samples::of_complete_rounds(&study, runs[..stop].to_vec());
        let complete = stop / each;
        assert_eq!((some.rounds as usize, some.aborted), (complete, true));
        let kept: BTreeSet<usize> = some.samples.iter().map(Vec::len).collect();
        assert_eq!(kept, BTreeSet::from([complete]));
        for (cell, all) in some.samples.iter().zip(&samples.samples) {
            assert_eq!(cell[..], all[..complete]);
        }
        assert!(some.warnings[0].starts_with(&format!("stopped early: {complete} complete")));
    }
}

/// Several threads do not finish rounds in their order: behind one with a gap none counts, complete or not.
#[test]
fn rounds_behind_a_gap_do_not_count() {
    let study = study();
    let (samples, runs, _) = uninterrupted(&study);
    let each = cells(&study).len();
    for gap in 0..runs.len() {
        let mut some = runs.clone();
        some.remove(gap);
        let found = Samples::of_complete_rounds(&study, some);
        assert_eq!(found.rounds as usize, gap / each, "without run {gap}");
        for (cell, all) in found.samples.iter().zip(&samples.samples) {
            assert_eq!(cell[..], all[..gap / each]);
        }
    }
}
