//! What hdparm asks of a loop device, from the output of `strace`.
#![allow(dead_code, reason = "no test uses every helper")]

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;

#[path = "../../../../tests/support/packages.rs"]
mod packages;

use packages::Package;

const NEEDED: [Package; 3] = [
    Package { name: "hdparm", commands: &["hdparm"], files: &[] },
    Package { name: "strace", commands: &["strace"], files: &[] },
    Package { name: "mount", commands: &["losetup"], files: &[] },
];

/// Four reads, so that the device ends long before three seconds have passed.
pub(crate) const SIZE: u64 = 8 << 20;

/// A loop device that goes away with the last that has it open, so even when this process is killed.
pub(crate) struct Loop {
    device: String,
    _open: File,
    image: PathBuf,
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.image);
    }
}

fn run(program: &str, arguments: &[&OsStr]) -> Result<String, String> {
    let administration = "/usr/sbin:/sbin";
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(program);
    command.args(arguments).env("PATH", format!("{path}:{administration}")).env("LC_ALL", "C");
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

impl Loop {
    fn new(name: &str) -> Result<Self, String> {
        let image = std::env::temp_dir().join(format!("{name}.{}", std::process::id()));
        let file = File::create(&image).map_err(|error| format!("{}: {error}", image.display()))?;
        file.set_len(SIZE).map_err(|error| format!("{}: {error}", image.display()))?;
        let attached = run("losetup", &["-f".as_ref(), "--show".as_ref(), image.as_os_str()]);
        let device = attached.map(|text| text.trim().to_string()).inspect_err(|_| {
            let _ = std::fs::remove_file(&image);
        })?;
        let open = File::open(&device).map_err(|error| format!("{device}: {error}"));
        // Detaching what is open only has it detached when the last one closes it.
        let detached = run("losetup", &["-d".as_ref(), device.as_ref()]);
        let made = Self { _open: open?, device, image };
        detached.map(|_| made)
    }
}

/// A loop device for a test, unless something is missing here.
pub(crate) fn loop_or_skip(test: &str) -> Option<Loop> {
    let missing = packages::missing(&NEEDED);
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    let made = if !missing.is_empty() {
        Err(packages::reason(&missing))
    } else if !is_root {
        Err("not root".to_string())
    } else {
        run("strace", &["-o/dev/null".as_ref(), "true".as_ref()]).and_then(|_| Loop::new(test))
    };
    match made {
        Ok(made) => Some(made),
        Err(why) => {
            // Written past the test harness, which would keep the output of a test that passes.
            let line = format!("skipped: {test}: {why}\n");
            std::io::stderr().write_all(line.as_bytes()).expect("standard error is open");
            None
        }
    }
}

/// What hdparm asks of the device and of the system, without what it asks to learn of the drive. Its
/// sleeps are seen but not slept, and so is its writing down of what the whole machine has in memory.
pub(crate) fn hdparm_calls(device: &Loop, options: &[&str]) -> Vec<String> {
    let trace = device.image.with_extension("trace");
    let calls = "openat,read,lseek,sync,fsync,fdatasync,ioctl,nanosleep,clock_nanosleep";
    let mut arguments: Vec<String> = vec![
        "-e".into(),
        format!("trace={calls}"),
        "-e".into(),
        "inject=nanosleep,clock_nanosleep,sync:retval=0".into(),
        "-o".into(),
        trace.display().to_string(),
        "hdparm".into(),
    ];
    arguments.extend(options.iter().map(|option| option.to_string()));
    arguments.push(device.device.clone());
    let arguments: Vec<&OsStr> = arguments.iter().map(|argument| argument.as_ref()).collect();
    let traced = run("strace", &arguments);
    let text = std::fs::read_to_string(&trace).expect("strace has written its file");
    std::fs::remove_file(&trace).expect("it is there");
    traced.expect("hdparm ends well");
    calls_on(&text, &device.device)
}

/// The calls of a thread on the device, or on the file that stands for it, from its opening on.
pub(crate) fn calls_on(text: &str, device: &str) -> Vec<String> {
    let opened = |line: &&str| line.contains(&format!("\"{device}\""));
    let all: Vec<&str> = text.lines().skip_while(|line| !opened(line)).collect();
    let (_, descriptor) = all[0].rsplit_once("= ").expect("opening answers with a number");
    all.iter().filter_map(|line| call(line, device, descriptor)).collect()
}

fn call(line: &str, device: &str, descriptor: &str) -> Option<String> {
    let (name, rest) = line.split_once('(')?;
    let of_device = rest.strip_prefix(descriptor).filter(|rest| rest.starts_with([',', ')']));
    let last = || rest.rsplit_once(')').map(|(arguments, _)| arguments.rsplit(", ").next())?;
    Some(match name {
        "openat" if rest.contains(&format!("\"{device}\"")) => {
            format!("open{}", if rest.contains("O_DIRECT)") { " direct" } else { "" })
        }
        "sync" => "sync".to_string(),
        "nanosleep" | "clock_nanosleep" => {
            let (_, seconds) = rest.split_once("tv_sec=")?;
            format!("sleep {}", seconds.split(',').next()?)
        }
        "fsync" | "fdatasync" if of_device.is_some() => name.to_string(),
        "read" if of_device.is_some() => format!("read {}", last()?),
        "lseek" if of_device.is_some() => format!("seek {}", of_device?.split(", ").nth(1)?),
        "ioctl" if of_device?.starts_with(", BLKFLSBUF") => "drop".to_string(),
        // What drops a file from memory.
        "fadvise64" if of_device?.ends_with("POSIX_FADV_DONTNEED) = 0") => "drop".to_string(),
        _ => return None,
    })
}

pub(crate) fn reads(calls: &[String]) -> u64 {
    calls.iter().filter(|call| call.starts_with("read")).count() as u64
}
