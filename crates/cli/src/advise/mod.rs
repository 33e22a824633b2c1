//! `raidlab advise`: which layout to use.

pub(crate) mod args;
mod html;
pub(crate) mod inputs;
mod json;
mod merged;
mod pool;
mod print;

use std::path::Path;

use raidlab_advise::{NoAdvice, advise};

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
    output::check(&[("--json", options.json.as_deref()), ("--html", options.html.as_deref())])?;
    let wanted = inputs::wanted(&merged::all(options)?)?;
    let stop = interrupt::flag()?;
    let bar = Bar::share(options.quiet);
    let pool = Threads { count: parallel::threads(options.threads), bar: &bar, stop };
    let advice = advise(&wanted, &pool);
    bar.clear();
    let advice = advice.map_err(|error| match error {
        NoAdvice::Input(what) => Failure::input(what),
        NoAdvice::Failed(what) => Failure::failed(what),
        NoAdvice::Stopped => Failure::Interrupted,
        NoAdvice::Limits(relax) => Failure::input(print::no_layout(&relax)),
    })?;
    if let Some(path) = &options.json {
        output::write(path, &json::document(&wanted, &advice))?;
    }
    if let Some(path) = &options.html {
        output::write(path, &html::page(&wanted, &advice)?)?;
    }
    let is_printed = options.json.as_deref() == Some(Path::new("-"));
    let is_written = options.json.is_some() || options.html.is_some();
    if is_printed || (options.quiet && is_written) {
        return Ok(());
    }
    output::print(&print::text(&wanted, &advice))
}
