//! `raidlab calibrate`: a study's free parameters, fitted to its published cells.

pub(crate) mod args;
mod evaluate;
mod report;
mod rewrite;

use std::path::Path;
use std::sync::atomic::Ordering;

use raidlab_explore::calibrate::{Fit, GivenRun, Problem, fit, given_runs};
use raidlab_predict::Modelled;
use raidlab_results::statistics::median;
use raidlab_sim::HostCosts;
use raidlab_study::{Calibration, Parameter, Study, most_free};

use crate::failure::Failure;
use crate::progress::Bar;
use crate::{interrupt, output, parallel};
use args::Calibrate;
use evaluate::Cells;
use report::Report;
use rewrite::Changes;

pub(crate) fn run(options: &Calibrate) -> Result<(), Failure> {
    let path = options.study.display().to_string();
    let text = read(&options.study)?;
    let mut study = raidlab_study::parse(&text, &path).map_err(Failure::input)?;
    study.origin.set_file(&options.study);
    let target = options.output.as_ref().unwrap_or(&options.study);
    let written = (!options.dry_run).then_some(("STUDY or --output", target.as_path()));
    let json = options.json.as_deref().map(|file| ("--json", file));
    let outputs: Vec<_> = written.into_iter().chain(json).map(|(a, b)| (a, Some(b))).collect();
    output::check_places(&outputs)?;
    // The study that is written may be the one that is read; figures may not take its place.
    output::check(&[("--json", options.json.as_deref())], &[Some(&options.study)])?;
    let work = Work::new(&study)?;
    let cancel = interrupt::flag()?;
    let threads = parallel::threads(options.threads);
    let bar = Bar::new(options.quiet);
    let (text, path, seeds) = (text.as_str(), path.as_str(), options.seeds);
    let mut cells = Cells { text, path, seeds, threads, cancel, bar: &bar, done: 0 };
    let report = work.fit(&study, &mut cells)?;
    bar.clear();
    let figures = match &options.json {
        Some(file) => output::write(file, &report.json()),
        None => Ok(()),
    };
    let is_study_printed = written.is_some_and(|(_, file)| file == Path::new(output::STDOUT));
    let printed = is_study_printed || options.json.as_deref() == Some(Path::new(output::STDOUT));
    let is_shown = !(printed || options.quiet && options.json.is_some());
    // The study is what it was about, and is written whatever becomes of the figures.
    let figures = if is_study_printed && figures.is_err() {
        output::note(&report.text());
        figures
    } else {
        output::told(figures, is_shown, || report.text())
    };
    // Values that cannot be bettered are worth a record, once.
    let is_news = report.fit.is_better || study.calibration.is_none();
    let said = if options.dry_run || !is_news {
        report.unwritten(options.dry_run)
    } else {
        let new = work.rewritten(text, path, &report)?;
        if cancel.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted);
        }
        if read(&options.study)? != text {
            let reason = "it was changed while it was calibrated; nothing is written";
            return Err(Failure::failed(format!("{path}: {reason}")));
        }
        output::write(target, &new)?;
        format!("written to {}\n", target.display())
    };
    if is_study_printed && !is_news {
        output::note(said.trim_end());
    }
    figures.and(if printed || options.quiet { Ok(()) } else { output::print(&said) })
}

fn read(study: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(study).map_err(|error| {
        let path = study.display();
        let is_name = study.extension().is_none() && study.components().count() == 1;
        let hint = if is_name {
            "; calibrate takes the path of a study file: for a built-in study, of a copy of \
             studies/replay/NAME.toml"
        } else {
            ""
        };
        Failure::input(format!("{path}: cannot read the study file: {error}{hint}"))
    })
}

/// What is fitted to what.
struct Work<'a> {
    /// The free parameters with their positions in the file.
    free: Vec<(usize, &'a Parameter)>,
    /// Positions of the given figures that are fitted, and of those that are only looked at.
    fitted: Vec<usize>,
    watched: Vec<usize>,
    /// The runs that give them.
    fitted_runs: Vec<GivenRun>,
    watched_runs: Vec<GivenRun>,
}

impl<'a> Work<'a> {
    /// Checks that there is something to fit and that it can be run.
    fn new(study: &'a Study) -> Result<Self, Failure> {
        let path = &study.origin.path;
        let all = study.parameters.iter().enumerate();
        let free: Vec<_> = all.filter(|(_, one)| one.free).collect();
        let (fitted, watched): (Vec<usize>, Vec<usize>) =
            (0..study.given.len()).partition(|index| study.given[*index].fit);
        if fitted.is_empty() {
            let reason = "there is no [[given]] cell to fit parameters to";
            return Err(Failure::input(format!("{path}: given: {reason}")));
        }
        if free.is_empty() {
            let reason = "no parameter is free; mark those to be fitted in [[parameters]] with \
                          free = true and give their range";
            return Err(Failure::input(format!("{path}: parameters: {reason}")));
        }
        let most = most_free(fitted.len());
        if free.len() > most {
            let reason =
                format!("{} are free, with {} cells at most {most}", free.len(), fitted.len());
            return Err(Failure::input(format!("{path}: parameters.free: {reason}")));
        }
        Modelled::new(study, HostCosts::default()).map_err(Failure::input)?;
        let runs = given_runs(study).map_err(Failure::input)?;
        let with = |wanted: &[usize]| -> Vec<GivenRun> {
            let figures = |run: &GivenRun| run.figures.iter().any(|(one, _)| wanted.contains(one));
            runs.iter().filter(|run| figures(run)).cloned().collect()
        };
        let (fitted_runs, watched_runs) = (with(&fitted), with(&watched));
        Ok(Self { free, fitted, watched, fitted_runs, watched_runs })
    }

    fn fit<'s>(&self, study: &'s Study, cells: &mut Cells<'_>) -> Result<Report<'s>, Failure>
    where
        'a: 's,
    {
        let value = |(_, one): &(usize, &Parameter)| one.value;
        let range = |(_, one): &(usize, &Parameter)| one.range.unwrap_or([one.value; 2]);
        let problem = Problem {
            published: self.fitted.iter().map(|index| study.given[*index].value).collect(),
            start: self.free.iter().map(value).collect(),
            ranges: self.free.iter().map(range).collect(),
        };
        let fit = fit(&problem, &mut |points: &[Vec<f64>]| {
            cells.evaluate(&self.fitted_runs, &self.fitted, points)
        })?;
        let mut watched = Vec::new();
        if !self.watched.is_empty() {
            let points = [problem.start, fit.values.clone()];
            watched = cells.evaluate(&self.watched_runs, &self.watched, &points)?;
        }
        let calibration = calibration(&problem.published, &fit, cells.seeds);
        let free = self.free.iter().map(|(_, parameter)| *parameter).collect();
        let (fitted, checks) = (self.fitted.clone(), self.watched.clone());
        Ok(Report { study, free, fitted, checks, watched, fit, calibration })
    }

    /// The text of the study with the fit; checked by reading it.
    fn rewritten(&self, text: &str, path: &str, report: &Report<'_>) -> Result<String, Failure> {
        let values = self.free.iter().zip(&report.fit.values);
        let parameters: Vec<_> =
            values.map(|((index, one), value)| (*index, one.unit, *value)).collect();
        let changes = Changes {
            parameters: &parameters,
            cells: &self.fitted,
            calibration: &report.calibration,
        };
        let new = rewrite::rewrite(text, &changes)
            .map_err(|reason| Failure::failed(format!("{path}: cannot be rewritten: {reason}")))?;
        let read = raidlab_study::parse(&new, path).map_err(|error| {
            Failure::failed(format!("nothing is written: the new text would be wrong: {error}"))
        })?;
        let same =
            read.free_parameters().map(|one| one.value).eq(report.fit.values.iter().copied());
        if !same {
            let reason = "nothing is written: the new text would not have the fitted values";
            return Err(Failure::failed(format!("{path}: {reason}")));
        }
        Ok(new)
    }
}

/// The sizes of errors in percent.
fn errors(modelled: &[f64], published: &[f64]) -> Vec<f64> {
    let error = |(one, other): (&f64, &f64)| ((one / other - 1.0) * 100.0).abs();
    modelled.iter().zip(published).map(error).collect()
}

fn calibration(published: &[f64], fit: &Fit, seeds: u32) -> Calibration {
    // There are cells, so that there is a median.
    let middle = |modelled: &[f64]| median(&errors(modelled, published));
    Calibration {
        raidlab: env!("CARGO_PKG_VERSION").into(),
        cells: published.len() as u32,
        parameters: fit.values.len() as u32,
        seeds,
        evaluations: fit.evaluations,
        median_error_before: middle(&fit.before).unwrap_or_default(),
        median_error: middle(&fit.after).unwrap_or_default(),
        median_error_left_out: middle(&fit.left_out),
    }
}
