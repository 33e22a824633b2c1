//! What tests that mount need, and whether it is here.

#![allow(dead_code, unreachable_pub)]

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

/// Whether the test named `test` can mount here; if not, says so on standard error, past the test
/// harness, which would keep the output of a test that passes.
pub fn can_mount(test: &str, programs: &[&str]) -> bool {
    let mut missing = Vec::new();
    // A process's own directory belongs to who it runs as.
    let runs_as = std::fs::metadata("/proc/self").map(|metadata| metadata.uid());
    if runs_as.ok() != Some(0) {
        missing.push("root".to_string());
    }
    for device in ["/dev/fuse", "/dev/loop-control"] {
        if !Path::new(device).exists() {
            missing.push(device.to_string());
        }
    }
    let places = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];
    for program in programs {
        if !places.iter().any(|place| Path::new(place).join(program).exists()) {
            missing.push(program.to_string());
        }
    }
    if missing.is_empty() {
        return true;
    }
    skip(test, &format!("needs {}", missing.join(", ")));
    false
}

/// Says on standard error, past the test harness, that a test or a part of it cannot run here.
pub fn skip(test: &str, why: &str) {
    let line = format!("skipped: {test}: {why}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

/// What a program of the administrator's prints; what it complains of when it fails.
pub fn tool(program: &str, arguments: &[&str]) -> Result<String, String> {
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let output = Command::new(program).args(arguments).env("PATH", path).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_string());
    }
    Err(format!("{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// Lines of `/proc/self/mountinfo` and paths behind loop devices that name this directory.
pub fn traces(directory: &Path) -> Vec<String> {
    let name = directory.to_str().unwrap();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mut found: Vec<String> =
        mounts.lines().filter(|line| line.contains(name)).map(str::to_string).collect();
    for entry in std::fs::read_dir("/sys/block").unwrap().flatten() {
        let backing = std::fs::read_to_string(entry.path().join("loop/backing_file"));
        found.extend(backing.into_iter().filter(|backing| backing.contains(name)));
    }
    found
}
