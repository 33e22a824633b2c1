//! `raidlab advise`: which layout to use.

pub(crate) mod args;
mod html;
pub(crate) mod inputs;
mod json;
mod merged;
mod pool;
mod print;

use std::path::Path;

use raidlab_advise::{Advice, NoAdvice, Wanted, advise};

use crate::failure::Failure;
use crate::interrupt;
use crate::output;
use crate::parallel;
use crate::progress::Bar;
use args::AdviseOptions;
use pool::Threads;

pub(crate) fn run(options: &AdviseOptions) -> Result<(), Failure> {
    if options.list {
        return output::print(&print::kinds_of_work());
    }
    check(options, options)?;
    let all = merged::all(options)?;
    check(options, &all)?;
    let works: Vec<String> = match &all.work {
        Some(names) => names.split(',').map(|name| name.trim().to_owned()).collect(),
        None => Vec::new(),
    };
    if works.len() > 1 {
        return of_each(options, &all, &works);
    }
    let wanted = inputs::wanted(&all)?;
    let advice = advised(options, &wanted)?;
    let mut written = Ok(());
    if let Some(path) = &options.json {
        written = output::write(path, &json::document(&wanted, &advice));
    }
    if let Some(path) = &options.html {
        let page = html::page(&wanted, &advice);
        written = written.and(page.and_then(|page| output::write(path, &page)));
    }
    let is_printed = options.json.as_deref() == Some(Path::new("-"));
    let is_written = options.json.is_some() || options.html.is_some();
    let is_shown = !(is_printed || (options.quiet && is_written));
    output::told(written, is_shown, || print::text(&wanted, &advice))
}

/// Checks that what is written takes the place of nothing that is read.
fn check(options: &AdviseOptions, all: &AdviseOptions) -> Result<(), Failure> {
    let outputs = [("--json", options.json.as_deref()), ("--html", options.html.as_deref())];
    let inputs = [&options.file, &all.study, &all.lsblk, &all.mdstat].map(|path| path.as_deref());
    output::check(&outputs, &inputs)
}

/// Advice for each of several kinds of work on the same drives, after whether it is the same.
fn of_each(options: &AdviseOptions, all: &AdviseOptions, works: &[String]) -> Result<(), Failure> {
    if options.json.is_some() || options.html.is_some() {
        let reason = "--json and --html take one kind of work: ask once for each";
        return Err(Failure::input(format!("--work {}: {reason}", works.join(","))));
    }
    let of =
        |work: &String| inputs::wanted(&AdviseOptions { work: Some(work.clone()), ..all.clone() });
    // What cannot be is said before anything runs.
    let asked = works.iter().map(of).collect::<Result<Vec<Wanted>, Failure>>()?;
    let mut answers = Vec::new();
    for wanted in asked {
        let advice = advised(options, &wanted)?;
        answers.push((wanted, advice));
    }
    output::print(&print::of_each(&answers))
}

fn advised(options: &AdviseOptions, wanted: &Wanted) -> Result<Advice, Failure> {
    let stop = interrupt::flag()?;
    let bar = Bar::share(options.quiet);
    let pool = Threads { count: parallel::threads(options.threads), bar: &bar, stop };
    let advice = advise(wanted, &pool);
    bar.clear();
    advice.map_err(|error| match error {
        NoAdvice::Input(what) => Failure::input(what),
        NoAdvice::Failed(what) => Failure::failed(what),
        NoAdvice::Stopped => Failure::Interrupted,
        NoAdvice::Limits(relax) => Failure::input(print::no_layout(&relax)),
    })
}
