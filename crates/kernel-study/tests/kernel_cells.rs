//! The command line of `kernel-cells`.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// Runs it in an empty directory of the test's own; gives the names of the files that it leaves there, too.
fn kernel_cells(test: &str, words: &[&str]) -> (Output, Vec<PathBuf>) {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).expect("can be made");
    let mut command = Command::new(env!("CARGO_BIN_EXE_kernel-cells"));
    // Without kernels: nothing is measured, whatever it takes the words for.
    command.env("XDG_CACHE_HOME", &directory).current_dir(&directory).args(words);
    let output = command.output().expect("can be started");
    let left = fs::read_dir(&directory).expect("is there");
    (output, left.map(|entry| entry.expect("is there").path()).collect())
}

#[test]
fn every_command_answers_help_and_takes_no_option_for_a_file() {
    let commands: [&[&str]; 6] =
        [&["list"], &["show"], &["run"], &["model"], &["try"], &["report"]];
    for command in commands.into_iter().chain([&["run", "cells.jsonl", "--kernel", "6.12"][..]]) {
        for help in ["--help", "-h"] {
            let words: Vec<&str> = command.iter().copied().chain([help]).collect();
            let (output, left) = kernel_cells("help", &words);
            assert!(output.status.success() && output.stderr.is_empty(), "{words:?}: {output:?}");
            assert!(output.stdout.starts_with(b"usage: kernel-cells list"), "{words:?}");
            assert!(left.is_empty(), "{left:?}");
        }
    }
    let (output, left) = kernel_cells("no-cell", &["run", "cells.jsonl", "--cells", "2,9999"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("--cells 9999: there are") && left.is_empty(), "{said} {left:?}");
    let wrong: [&[&str]; 5] = [
        &["run", "--kernel", "6.12"],
        &["model", "--worst"],
        &["try", "--rounds"],
        &["report", "-x"],
        &["report", "cells.jsonl", "-x"],
    ];
    for words in wrong {
        let (output, left) = kernel_cells("no-file", words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
        assert!(said.contains("the name of a file goes here"), "{words:?}: {said}");
        assert!(left.is_empty(), "{words:?}: {left:?}");
    }
}
