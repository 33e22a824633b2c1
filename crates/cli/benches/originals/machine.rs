//! Where figures come from: machine, kernel, filesystem, date.

use std::fs::{self, read_to_string};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use crate::mounts::mounted;

/// Lines about this machine and the filesystem of a directory.
pub(crate) fn describe(directory: &Path) -> Vec<String> {
    let read = |path: &str| read_to_string(path).map(|text| text.trim().to_string());
    let unknown = || "not known".to_string();
    let value = |path: &str, key: &str| {
        let text = read_to_string(path).ok()?;
        let line = text.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(':')?.1.trim().to_string())
    };
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    let mountinfo = read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let absolute = fs::canonicalize(directory).unwrap_or_else(|_| directory.to_path_buf());
    let filesystem = mounted(&mountinfo, &absolute).map_or_else(unknown, |mounted| mounted.what);
    vec![
        format!(
            "machine: {processors} x {}, memory {}",
            value("/proc/cpuinfo", "model name").unwrap_or_else(unknown),
            value("/proc/meminfo", "MemTotal").unwrap_or_else(unknown)
        ),
        format!("kernel: {}", read("/proc/sys/kernel/osrelease").unwrap_or_else(|_| unknown())),
        format!("filesystem: {filesystem}{}", queue(&absolute)),
        format!("date: {}", date()),
    ]
}

/// The date in UTC.
fn date() -> String {
    line_with("date", &["-u", "+%Y-%m-%d %H:%M UTC"], "").unwrap_or_else(|| "not known".into())
}

/// How many threads wanted to run lately.
pub(crate) fn load() -> String {
    let text = read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// The first line a program prints that begins with `start`; `None` when it is not there or prints none.
pub(crate) fn line_with(program: &str, arguments: &[&str], start: &str) -> Option<String> {
    let output = Command::new(program).args(arguments).env("LC_ALL", "C").output().ok()?;
    let all = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&all);
    text.lines().map(str::trim).find(|line| line.starts_with(start)).map(str::to_string)
}

/// Settings of the request queue below a directory, where it has one.
fn queue(directory: &Path) -> String {
    let Ok(metadata) = fs::metadata(directory) else { return String::new() };
    // The numbers of a device in `st_dev`: `makedev(3)`.
    let device = metadata.dev();
    let major = (device >> 8) & 0xfff | (device >> 32) & !0xfff;
    let minor = device & 0xff | (device >> 12) & 0xffff_ff00;
    let setting = |name: &str| {
        let path = format!("/sys/dev/block/{major}:{minor}/queue/{name}");
        let text = read_to_string(path).ok()?;
        Some(format!("; {name} {}", text.trim()))
    };
    ["scheduler", "nr_requests", "read_ahead_kb"].into_iter().filter_map(setting).collect()
}
