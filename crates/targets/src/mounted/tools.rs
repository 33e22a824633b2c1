//! Programs of the system: found, run, and their complaints passed on.

use raidlab_engine::{EngineError, EngineErrorKind};
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program, or which package has it.
pub(crate) fn find(name: &str, package: &str) -> Result<PathBuf, EngineError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Programs for root lie where an ordinary user's PATH often does not lead.
    let more = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut places = std::env::split_paths(&path).chain(more).map(|place| place.join(name));
    places.find(|place| place.is_file()).ok_or_else(|| {
        let reason = format!("`{name}` is not here; install it (package {package})");
        EngineError::new(EngineErrorKind::NotSupported, "find a program", reason)
    })
}

/// What a program left.
#[derive(Debug)]
pub(crate) struct Ran {
    /// `None`: killed by a signal.
    pub(crate) status: Option<i32>,
    /// What it printed, in short, for messages.
    pub(crate) said: String,
}

/// Runs a program without input. It has a process group of its own: Ctrl-C on a terminal is for the
/// run, which takes down what it has set up, and not for the program that it needs for that.
pub(crate) fn run(program: &Path, arguments: &[&OsStr]) -> Result<Ran, EngineError> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).env("LC_ALL", "C").env("MDADM_NO_UDEV", "1");
    command.process_group(0);
    let output =
        command.output().map_err(|error| EngineError::io("run a program", program, error))?;
    let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.push_str(&String::from_utf8_lossy(&output.stderr));
    let last: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    // The cause stands first or last.
    let said = match last.as_slice() {
        [first, .., two, one] if last.len() > 8 => [*first, "...", *two, *one].join("; "),
        few => few.join("; "),
    };
    Ok(Ran { status: output.status.code(), said })
}

/// The same for one that must succeed.
pub(crate) fn run_well(
    operation: &'static str,
    program: &Path,
    arguments: &[&OsStr],
) -> Result<(), EngineError> {
    let ran = run(program, arguments)?;
    match ran.status {
        Some(0) => Ok(()),
        status => {
            let how = status.map_or("was killed".into(), |status| format!("ended with {status}"));
            let reason = format!("{} {how}: {}", program.display(), ran.said);
            Err(EngineError::new(EngineErrorKind::Io, operation, reason))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_missing_is_told_with_its_package() {
        let error = find("mkfs.no-such-filesystem", "no-such-package").unwrap_err();
        assert_eq!(error.kind(), EngineErrorKind::NotSupported);
        let text = error.to_string();
        assert!(text.contains("mkfs.no-such-filesystem") && text.contains("no-such-package"));
        assert!(find("sh", "dash").is_ok());
    }

    #[test]
    fn what_a_program_complains_of_is_passed_on() {
        let Ok(shell) = find("sh", "dash") else { return };
        let script = |text| ["-c".as_ref(), OsStr::new(text)];
        assert!(run_well("run a test", &shell, &script("true")).is_ok());
        let error = run_well("run a test", &shell, &script("echo no room >&2; exit 3"));
        let text = error.unwrap_err().to_string();
        assert!(text.contains("ended with 3: no room"), "{text}");
        let error = run_well("run a test", &shell, &script("kill -9 $$"));
        assert!(error.unwrap_err().to_string().contains("was killed"));
    }
}
