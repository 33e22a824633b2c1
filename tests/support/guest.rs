//! A guest with the Linux md driver, for tests against the real thing.
//!
//! Used from the tests of a crate by `#[path = "../../../tests/support/guest.rs"] mod guest;`.
//! The work is done by `tests/md-guest.sh`; its head says what a script finds in the guest.
#![allow(dead_code, reason = "no test uses every helper")]

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

#[path = "packages.rs"]
mod packages;

/// What the test command says about guests: `available`, or `missing:` and why.
const VARIABLE: &str = "RAIDLAB_GUEST";
/// The same about GRUB.
const GRUB: &str = "RAIDLAB_GRUB";

/// A way to run scripts under the Linux md driver. Each run boots a guest of its own.
pub(crate) struct Guest {
    runner: PathBuf,
    sections: Vec<u64>,
    seconds: u32,
    memory: Option<&'static str>,
}

/// What a script left.
#[derive(Debug)]
pub(crate) struct Output {
    /// The exit status of the script; 124 to 126 and 2 are the runner's own, see its head.
    pub(crate) status: i32,
    /// What it wrote to standard output.
    pub(crate) stdout: String,
    /// What it wrote to standard error; also the guest's console when the guest failed.
    pub(crate) stderr: String,
}

/// A guest for the test named `test`; or `None`, after a line about the skipped test on standard
/// error, on a machine that lacks what a guest needs.
pub(crate) fn guest_or_skip(test: &str) -> Option<Guest> {
    unless_absent(test, [absence(VARIABLE, &packages::GUEST)])
}

/// The same for a test that needs `grub-fstest` too.
pub(crate) fn grub_and_guest_or_skip(test: &str) -> Option<Guest> {
    let grub = absence(GRUB, &packages::GRUB);
    unless_absent(test, [absence(VARIABLE, &packages::GUEST), grub])
}

/// Whether `grub-fstest` is here; if not, after the same line.
pub(crate) fn has_grub(test: &str) -> bool {
    unless_absent(test, [absence(GRUB, &packages::GRUB)]).is_some()
}

/// The same for a test in which the guest's kernel is a client of NBD.
pub(crate) fn nbd_client_and_guest_or_skip(test: &str) -> Option<Guest> {
    let missing = packages::missing(&packages::NBD_CLIENT);
    let client = (!missing.is_empty()).then(|| packages::reason(&missing));
    unless_absent(test, [absence(VARIABLE, &packages::GUEST), client])
}

/// The same for a test with the rules of udev.
pub(crate) fn udev_and_guest_or_skip(test: &str) -> Option<Guest> {
    let missing = packages::missing(&packages::UDEV);
    let udev = (!missing.is_empty()).then(|| packages::reason(&missing));
    unless_absent(test, [absence(VARIABLE, &packages::GUEST), udev])
}

/// The same for a test with volumes of LVM.
pub(crate) fn lvm_and_guest_or_skip(test: &str) -> Option<Guest> {
    let missing = packages::missing(&packages::LVM);
    let lvm = (!missing.is_empty()).then(|| packages::reason(&missing));
    unless_absent(test, [absence(VARIABLE, &packages::GUEST), lvm])
}

fn unless_absent<const N: usize>(test: &str, reasons: [Option<String>; N]) -> Option<Guest> {
    let reasons: Vec<String> = reasons.into_iter().flatten().collect();
    if reasons.is_empty() {
        let (sections, seconds, memory) = (Vec::new(), 120, None);
        return Some(Guest { runner: runner(), sections, seconds, memory });
    }
    // Written past the test harness, which would keep the output of a test that passes.
    let line = format!("skipped: {test}: {}\n", reasons.join("; "));
    std::io::stderr().write_all(line.as_bytes()).expect("standard error is open");
    None
}

/// Why something made of `packages` is not to be had here, if so.
fn absence(variable: &str, packages: &[packages::Package]) -> Option<String> {
    let told = std::env::var(variable).ok();
    absence_from(variable, told.as_deref(), || packages::missing(packages))
}

fn absence_from(
    variable: &str,
    told: Option<&str>,
    look: impl Fn() -> Vec<&'static str>,
) -> Option<String> {
    match told {
        Some("available") => None,
        Some(other) => match other.strip_prefix("missing:") {
            Some(why) => Some(why.to_owned()),
            None => panic!("{variable}={other}: expected `available` or `missing:<why>`"),
        },
        None => {
            let missing = look();
            if missing.is_empty() { None } else { Some(packages::reason(&missing)) }
        }
    }
}

fn runner() -> PathBuf {
    let candidates = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut runners = candidates.map(|directory| directory.join("tests/md-guest.sh"));
    runners.find(|runner| runner.is_file()).expect("tests/md-guest.sh is in the repository")
}

impl Guest {
    /// Cuts each member file into sections of these sizes in bytes, whole KiB, from its start on.
    ///
    /// Section `i` of the first file is `/dev/ubda{i + 1}` in the guest; on this side it starts at
    /// the sum of the sizes before it, so a member's data offset counts from there.
    pub(crate) fn cut(mut self, sizes: &[u64]) -> Self {
        assert!(sizes.iter().all(|size| *size > 0 && size % 1024 == 0), "not in KiB: {sizes:?}");
        self.sections = sizes.to_vec();
        self
    }

    /// Stops a run after this many seconds, with status 124; 120 unless said otherwise.
    pub(crate) fn limit(mut self, seconds: u32) -> Self {
        self.seconds = seconds;
        self
    }

    /// Gives the guest this much memory, such as `128M`, instead of what is usual.
    pub(crate) fn memory(mut self, memory: &'static str) -> Self {
        self.memory = Some(memory);
        self
    }

    /// Boots a guest and runs `script` by bash in it, with `members` as `/dev/ubda`, `/dev/ubdb`, ...
    /// and the directory `share` at `$SHARE`, both read-write.
    pub(crate) fn run(&self, script: &str, members: &[PathBuf], share: &Path) -> Output {
        let mut command = Command::new(&self.runner);
        command.arg("-t").arg(self.seconds.to_string()).arg("-s").arg(share);
        command.args(self.memory.iter().flat_map(|memory| ["-m", memory]));
        if !self.sections.is_empty() {
            let kib = |size: &u64| format!("{}K", size / 1024);
            let sizes: Vec<String> = self.sections.iter().map(kib).collect();
            command.arg("-p").arg(sizes.join(","));
        }
        command.arg("-").args(members);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the guest runner starts");
        let mut stdin = child.stdin.take().expect("standard input is piped");
        // A runner that refuses its arguments does not read the script; its status says why.
        let _ = stdin.write_all(script.as_bytes());
        drop(stdin);
        let output = child.wait_with_output().expect("the guest runner ends");
        Output {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Output {
    /// The standard output of a script that must have ended with status 0.
    pub(crate) fn expect_success(self, what: &str) -> String {
        let Output { status, stdout, stderr } = self;
        assert_eq!(status, 0, "{what}\nstandard output:\n{stdout}\nstandard error:\n{stderr}");
        stdout
    }
}

/// A directory of its own for one test, removed with all in it at the end, also after a panic.
#[derive(Debug)]
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    /// Makes an empty directory with `name` in its name.
    pub(crate) fn new(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut leaf = OsString::from("raidlab-test-");
        leaf.push(format!("{name}-{}-{number}", std::process::id()));
        let path = std::env::temp_dir().join(leaf);
        std::fs::create_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self(path)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Makes a file of `bytes` zeroes in it.
    pub(crate) fn file(&self, name: &str, bytes: u64) -> PathBuf {
        let path = self.0.join(name);
        let file = std::fs::File::create_new(&path);
        file.and_then(|file| file.set_len(bytes))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // A test that fails for another reason shall say that reason.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn what_is_told_goes_before_what_is_found() {
    let nothing = || Vec::new();
    let something = || vec!["mdadm"];
    let absence = |told, look: fn() -> Vec<&'static str>| absence_from("GUEST", told, look);
    assert_eq!(absence(Some("available"), something), None);
    assert_eq!(absence(Some("missing:needs mdadm"), nothing).as_deref(), Some("needs mdadm"));
    assert_eq!(absence(None, nothing), None);
    assert_eq!(absence(None, something).as_deref(), Some("needs mdadm"));
}

#[test]
fn a_temporary_directory_removes_itself() {
    let directory = TempDir::new("self");
    let path = directory.path().to_owned();
    directory.file("member", 4096);
    assert!(path.join("member").is_file());
    drop(directory);
    assert!(!path.exists());
}
