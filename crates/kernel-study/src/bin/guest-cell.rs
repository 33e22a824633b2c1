//! Runs one cell inside of a guest of the kernel lab: reads a job, prints a report.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use raidlab_kernel_study::{Job, inside};

fn main() -> ExitCode {
    match run() {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("guest-cell: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<String, String> {
    let path = std::env::args_os().nth(1).ok_or("usage: guest-cell JOB")?;
    let text = std::fs::read_to_string(&path);
    let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
    let job: Job = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let report = inside::run(&job)?;
    serde_json::to_string(&report).map_err(|error| error.to_string())
}
