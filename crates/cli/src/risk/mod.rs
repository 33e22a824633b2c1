//! `raidlab risk`: how likely layouts are to lose data.

pub(crate) mod args;
mod inputs;
mod json;
pub(crate) mod print;
pub(crate) mod rebuild;
pub(crate) mod values;

use std::path::Path;

use raidlab_risk::NoAnswer;

use crate::failure::Failure;
use crate::interrupt;
use crate::output;
use crate::progress::Bar;
use args::RiskOptions;

pub(crate) fn run(options: &RiskOptions) -> Result<(), Failure> {
    output::check(&[("--json", options.json.as_deref())], &[])?;
    let stop = interrupt::flag()?;
    let bar = Bar::share(options.quiet);
    let asked = inputs::asked(options, &bar)?;
    let answer = asked.question.answer(&mut |done, total| {
        bar.show(done, total, "what nobody knows".into());
        rebuild::goes_on(stop)
    });
    bar.clear();
    let answer = answer.map_err(|error| match error {
        NoAnswer::Layout(error) => Failure::input(error),
        NoAnswer::Input(what) => Failure::input(what),
        NoAnswer::Stopped => Failure::Interrupted,
    })?;
    let Some(path) = &options.json else { return output::print(&print::text(&asked, &answer)) };
    let written = output::write(path, &json::document(&asked, &answer));
    let is_shown = !(options.quiet || path == Path::new("-"));
    output::told(written, is_shown, || print::text(&asked, &answer))
}
