//! `raidlab diff`: what changed from one run to another.

pub(crate) mod args;
pub(crate) mod load;

use std::path::Path;

use raidlab_results::Diff;

use crate::failure::Failure;
use crate::output;
use args::DiffOptions;

pub(crate) fn run(options: &DiffOptions) -> Result<(), Failure> {
    let before = load::load(&options.before, &options.store)?;
    let after = load::load(&options.after, &options.store)?;
    let outputs = [("--json", options.json.as_deref()), ("--html", options.html.as_deref())];
    let runs = [&options.before, &options.after].map(|run| Some(Path::new(run)));
    output::check(&outputs, &runs)?;
    let diff = Diff::of((&options.before, &before), (&options.after, &after), options.floor);
    let is_printed = |path: &Option<_>| path.as_deref() == Some(Path::new("-"));
    let printed = is_printed(&options.json) || is_printed(&options.html);
    let mut written = Ok(());
    if let Some(path) = &options.json {
        let text = raidlab_report::diff_json(&diff).map_err(Failure::failed);
        written = text.and_then(|text| output::write(path, &text));
    }
    if let Some(path) = &options.html {
        let page = raidlab_report::diff_html(&diff).map_err(Failure::failed);
        written = written.and(page.and_then(|page| output::write(path, &page)));
    }
    let is_shown = !(printed || options.quiet);
    output::told(written, is_shown, || output::terminal(options.color).diff(&diff))?;
    match diff.counts.regressed {
        0 => Ok(()),
        1 => Err(Failure::Regressed("1 cell".into())),
        cells => Err(Failure::Regressed(format!("{cells} cells"))),
    }
}
