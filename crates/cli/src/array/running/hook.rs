//! The administrator's program (`--program`), run at events as `mdadm --monitor --program` runs one.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::state::Names;
use crate::failure::Failure;

/// That the program can be run, before the array begins: when a member fails is too late to hear that it cannot.
pub(super) fn check(program: &Path) -> Result<(), Failure> {
    let wrong = |what: &str| Failure::input(format!("--program: {} {what}", program.display()));
    let is_name = !program.as_os_str().as_encoded_bytes().contains(&b'/');
    let search = std::env::var_os("PATH").filter(|_| is_name);
    let places: Vec<PathBuf> = match &search {
        Some(search) => std::env::split_paths(search).map(|one| one.join(program)).collect(),
        None => vec![program.to_owned()],
    };
    let there: Vec<_> = places.iter().filter_map(|place| place.metadata().ok()).collect();
    match () {
        () if there.iter().any(|one| one.is_file() && one.permissions().mode() & 0o111 != 0) => {
            Ok(())
        }
        () if there.iter().any(|one| one.is_file()) => {
            Err(wrong("is not executable: make it so (chmod +x)"))
        }
        () if !there.is_empty() => Err(wrong("is no file")),
        () if is_name => Err(wrong("is not found in PATH: give its path, such as ./handler")),
        () => Err(wrong("does not exist")),
    }
}

/// Runs the program, beside the array.
pub(super) fn run(program: Option<&Path>, names: &Names, event: &str, device: Option<&Path>) {
    let Some(program) = program else { return };
    let device = device.map_or_else(|| OsStr::new(""), Path::as_os_str);
    match Command::new(program).arg(event).arg(names.short()).arg(device).spawn() {
        // Waited for beside: the array goes on.
        Ok(mut child) => drop(std::thread::spawn(move || child.wait())),
        Err(error) => names.tell(&format!("--program {}: {error}", program.display())),
    }
}
