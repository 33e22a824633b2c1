//! `raidlab plot`: a figure of results as SVG.

pub(crate) mod args;

use std::path::Path;

use raidlab_report::figure::{self, FIGURES};
use raidlab_results::{Cell, Diff, Results};

use crate::diff::load::load;
use crate::failure::Failure;
use crate::output;
use args::Plot;

pub(crate) fn run(options: &Plot) -> Result<(), Failure> {
    let Some(run) = &options.run else { return output::print(&list(None)) };
    let documents = load(run, &options.store)?;
    let chosen = match options.study.as_deref() {
        // Two studies side by side have no scale in common.
        None if documents.len() > 1 => {
            let titles = titles(&documents);
            let count = documents.len();
            let reason = format!("holds {count} studies; name one with --study: {titles}");
            return Err(Failure::input(format!("{run}: {reason}")));
        }
        None => documents.into_iter().next(),
        Some(title) => {
            let titles = titles(&documents);
            let found = documents.into_iter().find(|one| one.study == title);
            let missing = || Failure::input(format!("--study {title}: {run} has {titles}"));
            Some(found.ok_or_else(missing)?)
        }
    };
    let Some(mut results) = chosen else {
        return Err(Failure::input(format!("{run}: no document")));
    };
    if options.list {
        let available = figure::available(&results).map_err(Failure::input)?;
        return output::print(&list(Some(&available)));
    }
    let Some(name) = &options.figure else {
        let available = figure::available(&results).map_err(Failure::input)?;
        let names = available.join(", ");
        return Err(Failure::input(format!("name a FIGURE; {run} has the data for {names}")));
    };
    output::check(&[("--svg", Some(options.svg.as_path()))], &[Some(Path::new(run))])?;
    choose(&mut results, options)?;
    let most = options.panels as usize;
    let figure = match &options.against {
        Some(other) if name == "residuals" => {
            let others = load(other, &options.store)?;
            let one = std::slice::from_ref(&results);
            let diff = Diff::of((run, one), (other, &others), None);
            figure::diff_figure(&diff, most)
        }
        Some(_) => {
            let what = "--against goes with the figure `residuals`";
            return Err(Failure::input(what));
        }
        None => figure::figure(&results, name, most),
    };
    let figure = figure.map_err(Failure::input)?;
    match figure.left_out {
        0 => {}
        1 => output::note("1 more panel is left out; choose cells, or draw more with --panels"),
        more => output::note(&format!(
            "{more} more panels are left out; choose cells, or draw more with --panels"
        )),
    }
    output::write(&options.svg, &figure.svg())
}

fn titles(documents: &[Results]) -> String {
    documents.iter().map(|one| one.study.as_str()).collect::<Vec<_>>().join("; ")
}

/// All figures, or those of a document, with what they show and need.
fn list(available: Option<&[&str]>) -> String {
    let shown = FIGURES.iter().filter(|one| available.is_none_or(|some| some.contains(&one.name)));
    let line =
        |one: &figure::FigureKind| format!("{:<10} {}; needs {}\n", one.name, one.title, one.needs);
    shown.map(line).collect()
}

/// A flag, the names that are given with it, and what of a cell they are about.
type Choice<'o> = (&'static str, &'o [String], fn(&Cell) -> &str);

/// Leaves the cells that are asked for.
fn choose(results: &mut Results, options: &Plot) -> Result<(), Failure> {
    let has =
        |names: &[String], name: &str| names.is_empty() || names.iter().any(|one| one == name);
    let flags: [Choice<'_>; 4] = [
        ("--workload", &options.workload, |cell| &cell.workload),
        ("--layout", &options.layout, |cell| &cell.layout),
        ("--state", &options.state, |cell| &cell.state),
        ("--metric", &options.metric, |cell| &cell.metric),
    ];
    for (flag, names, of) in flags {
        let mut known: Vec<&str> = Vec::new();
        for cell in &results.cells {
            if !known.contains(&of(cell)) {
                known.push(of(cell));
            }
        }
        if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
            let hint = raidlab_study::did_you_mean(name, &known);
            let known = known.join(", ");
            return Err(Failure::input(format!(
                "{flag} `{name}`: no cell has that{hint}; there are {known}"
            )));
        }
        results.cells.retain(|cell| has(names, of(cell)));
    }
    if !options.processes.is_empty() {
        results.cells.retain(|cell| options.processes.contains(&cell.processes));
    }
    results.layouts.retain(|layout| has(&options.layout, &layout.name));
    results.baseline.retain(|name| has(&options.layout, name));
    if results.cells.is_empty() {
        return Err(Failure::input("no cell has all that is asked for at once"));
    }
    Ok(())
}
