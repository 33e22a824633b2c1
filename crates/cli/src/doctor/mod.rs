//! `raidlab doctor`: what this machine can run, and how to get the rest.

mod checks;

use clap::Args;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::json::pretty;
use crate::output;
use checks::{Check, State};

/// Says what this machine can run, and how to get the rest; changes nothing
///
/// Virtual time needs nothing but raidlab. Runs on real files, filesystems, block devices and kernels need what is
/// listed here, with the command that installs it on Debian. Nothing is installed, loaded or written.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    raidlab doctor                         what can be run here\n  \
    raidlab doctor --need root,fuse,loop   for scripts: whether `--filesystem` with `--on` can\n  \
    raidlab doctor --json\n\n\
    Exit status: 0 done, whatever is missing; 1 when something that --need names is missing; 2 bad input.")]
pub(crate) struct Doctor {
    /// Fail unless these are there: names of the first column, separated by commas
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    need: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &Doctor) -> Result<(), Failure> {
    let checks = checks::all();
    let names: Vec<&str> = checks.iter().map(|check| check.name).collect();
    if let Some(unknown) = options.need.iter().find(|name| !names.contains(&name.as_str())) {
        let hint = raidlab_study::did_you_mean(unknown, &names);
        let known = names.join(", ");
        return Err(Failure::input(format!(
            "--need {unknown}: no such check{hint}; known: {known}"
        )));
    }
    output::print(&if options.json { pretty(&document(&checks)) } else { text(&checks) })?;
    let missing: Vec<&str> = checks
        .iter()
        .filter(|check| {
            check.state == State::Missing && options.need.iter().any(|name| name == check.name)
        })
        .map(|check| check.name)
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Failure::failed(format!("missing: {}", missing.join(", "))))
    }
}

fn document(checks: &[Check]) -> Value {
    let each = |check: &Check| {
        json!({
            "name": check.name,
            "state": check.state.word(),
            "found": check.found,
            "for": check.used_for,
            "get": check.get,
        })
    };
    json!({
        "schema_version": 1,
        "raidlab": env!("CARGO_PKG_VERSION"),
        "commit": option_env!("RAIDLAB_COMMIT"),
        "checks": checks.iter().map(each).collect::<Value>(),
    })
}

/// A line for each check, and below what is missing how to get it.
fn text(checks: &[Check]) -> String {
    let mut lines = format!("raidlab {}\n\n", crate::args::long_version());
    let room = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    for check in checks {
        let state = check.state.word();
        lines += &format!("  {:room$}  {state:8} {}\n", check.name, check.found);
        if check.state != State::Present {
            let indent = " ".repeat(room + 13);
            lines += &format!("{indent}for {}\n", check.used_for);
            for part in &check.get {
                lines += &format!("{indent}-> {part}\n");
            }
        }
    }
    let missing = checks.iter().filter(|check| check.state != State::Present).count();
    let end = match missing {
        0 => "Everything raidlab can do runs here.".to_owned(),
        count => format!(
            "Virtual time, member files and `raidlab check` run here; {count} of {} are missing or in part.",
            checks.len()
        ),
    };
    lines + "\n" + &end + "\n"
}
