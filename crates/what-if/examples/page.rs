//! Writes the page, with a program for wasm32 that gzip has packed: `page PROGRAM.wasm.gz PAGE.html`.
//! `cargo xtask what-if` builds the program and runs this.
#![forbid(unsafe_code)]

use std::env;
use std::error::Error;
use std::fs;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [program, page] = arguments.as_slice() else {
        eprintln!("usage: page PROGRAM.wasm.gz PAGE.html");
        return ExitCode::from(2);
    };
    match write(program, page) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("page: {program}, {page}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(program: &str, page: &str) -> Result<(), Box<dyn Error>> {
    let page_text = raidlab_what_if::page(&fs::read(program)?)?;
    Ok(fs::write(page, page_text)?)
}
