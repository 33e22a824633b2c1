//! Run directories of processes that were killed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use raidlab_targets::{Extra, RunDirectory};

const DIRECTORY: &str = "RAIDLAB_TEST_RUN_IN";
const TREE: &str = "RAIDLAB_TEST_RUN_OF_A_TREE";

/// Not a test: the process that is killed, when it is run as such.
#[test]
fn a_process_to_be_killed() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let directory = Path::new(&directory);
    let extra = Extra { spare: Some(8192), journal: Some(12288) };
    let _run = if std::env::var_os(TREE).is_some() {
        RunDirectory::create_tree(directory)
    } else {
        RunDirectory::create_with(directory, 2, 4096, extra)
    }
    .unwrap();
    std::process::abort();
}

/// What a killed run left in `directory`, under another name; with a tree or with member files.
pub(crate) fn leftover(directory: &Path, name: &str, tree: bool) -> PathBuf {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "killed::a_process_to_be_killed"]).env(DIRECTORY, directory);
    if tree {
        command.env(TREE, "1");
    }
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    assert!(!child.wait().unwrap().success());
    let left = directory.join(format!("raidlab-run-{}-0", child.id()));
    let named = directory.join(name);
    std::fs::rename(left, &named).unwrap();
    named
}
