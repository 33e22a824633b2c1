//! Writes the expected texts of the tests anew, and the HTML of a study to look at:
//!
//!     cargo run -p raidlab-report --example golden -- crates/report/tests/golden
//!     cargo run -p raidlab-report --example golden -- --html full > report.html
//!
//! Read the differences before committing them.

#[path = "../tests/common/mod.rs"]
mod common;

use std::error::Error;
use std::path::Path;

use raidlab_report::{Exporter, Html};

fn main() -> Result<(), Box<dyn Error>> {
    let Some(target) = std::env::args().nth(1) else {
        return Err("name the directory of the expected texts, or --html".into());
    };
    if target == "--html" {
        let results = match std::env::args().nth(2).as_deref() {
            None | Some("full") => common::full(),
            Some("small") => common::small(),
            Some("real") => common::real(),
            Some(other) => return Err(format!("no study `{other}`: full, small or real").into()),
        };
        print!("{}", Html.export(&results)?);
        return Ok(());
    }
    for (name, terminal, results) in common::golden_cases() {
        std::fs::write(Path::new(&target).join(name), terminal.export(&results)?)?;
    }
    Ok(())
}
