//! Writes the expected texts of the tests anew, and the HTML of a study to look at:
//!
//!     cargo run -p raidlab-report --example golden -- crates/report/tests/golden
//!     cargo run -p raidlab-report --example golden -- --html full > report.html
//!     cargo run -p raidlab-report --example golden -- --of out.json html > report.html
//!     cargo run -p raidlab-report --example golden -- --of out.json plot bars > bars.svg
//!
//! Read the differences before committing them.

#[path = "../tests/common/mod.rs"]
mod common;

use std::error::Error;
use std::io::Write;
use std::path::Path;

use raidlab_report::figure::figure;
use raidlab_report::{Exporter, FORMS, Html};
use raidlab_results::Results;

fn main() -> Result<(), Box<dyn Error>> {
    let Some(target) = std::env::args().nth(1) else {
        return Err("name the directory of the expected texts, or --html".into());
    };
    if target == "--of" {
        return of_document();
    }
    if target == "--html" {
        let results = match std::env::args().nth(2).as_deref() {
            None | Some("full") => common::full(),
            Some("small") => common::small(),
            Some("real") => common::real(),
            Some("large") => common::large(10_000),
            Some(other) => {
                return Err(format!("no study `{other}`: full, small, real or large").into());
            }
        };
        print!("{}", Html.export(&results)?);
        return Ok(());
    }
    for (name, terminal, results) in common::golden_cases() {
        std::fs::write(Path::new(&target).join(name), terminal.export(&results)?)?;
    }
    Ok(())
}

/// A form or a figure of a document.
fn of_document() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(2).collect();
    let [path, what, name @ ..] = words.as_slice() else { return Err("--of FILE FORM".into()) };
    let documents = Results::all_from_json(&std::fs::read_to_string(path)?)?;
    let bytes = match name {
        [name] if what == "plot" => figure(&documents[0], name, 24)?.svg().into_bytes(),
        _ => {
            let form = FORMS.iter().find(|form| form.flag == what).ok_or("no such form")?;
            form.exporter.write(&documents)?
        }
    };
    Ok(std::io::stdout().write_all(&bytes)?)
}
