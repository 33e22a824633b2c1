//! What is looked for: files, devices and programs, by looking alone.

use std::fs::{self, OpenOptions};
use std::path::PathBuf;

use raidlab_kernel_lab::{Root, cache};

/// Whether something is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Present,
    /// Some of it.
    Part,
    Missing,
}

impl State {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Present => "yes",
            Self::Part => "in part",
            Self::Missing => "no",
        }
    }
}

/// What was looked for.
#[derive(Debug)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) state: State,
    /// What was found, in words.
    pub(super) found: String,
    /// What cannot be done without it.
    pub(super) used_for: &'static str,
    /// How to get what is missing, a command or sentence each.
    pub(super) get: Vec<String>,
}

/// A group of programs: each with the Debian package that has it.
struct Programs {
    name: &'static str,
    used_for: &'static str,
    each: &'static [(&'static str, &'static str)],
}

const PROGRAMS: [Programs; 4] = [
    Programs {
        name: "block-tools",
        used_for: "block devices: what is on them, before anything is written",
        each: &[("lsblk", "util-linux"), ("blkid", "util-linux"), ("losetup", "mount")],
    },
    Programs {
        name: "mkfs",
        used_for: "real filesystems: `raidlab compare --on DIR --filesystem KIND`",
        each: &[
            ("mkfs.ext4", "e2fsprogs"),
            ("mkfs.xfs", "xfsprogs"),
            ("mkfs.btrfs", "btrfs-progs"),
        ],
    },
    Programs {
        name: "mdadm",
        used_for: "the kernel's own md: `raidlab run ... --target md:DIR`",
        each: &[("mdadm", "mdadm")],
    },
    Programs {
        name: "originals",
        used_for: "comparing workloads with the original benchmarks (docs/originals.md); raidlab itself needs none",
        each: &[
            ("bonnie++", "bonnie++"),
            ("fio", "fio"),
            ("hdparm", "hdparm"),
            ("strace", "strace"),
        ],
    },
];

/// The kernels of the lab.
const KERNELS: [&str; 2] = ["6.1", "6.12"];

/// Everything, in the order in which a newcomer meets it.
pub(super) fn all() -> Vec<Check> {
    let mut checks = vec![virtual_time(), root(), io_uring()];
    checks.push(device(
        "fuse",
        "/dev/fuse",
        "filesystems on raidlab's arrays: `raidlab compare --on DIR --filesystem ext4`",
        &["modprobe fuse; in a container: --device /dev/fuse"],
    ));
    checks.push(device(
        "loop",
        "/dev/loop-control",
        "filesystems on raidlab's arrays, and md on member files",
        &["modprobe loop; in a container: --device /dev/loop-control and loop devices"],
    ));
    checks.push(md());
    checks.extend(PROGRAMS.iter().map(programs));
    checks.extend([kernels(), guest()]);
    checks
}

fn check(
    name: &'static str,
    found: Result<String, String>,
    used_for: &'static str,
    get: &[&str],
) -> Check {
    let (state, found, get) = match found {
        Ok(found) => (State::Present, found, &[][..]),
        Err(found) => (State::Missing, found, get),
    };
    let get = get.iter().map(|one| (*one).to_owned()).collect();
    Check { name, state, found, used_for, get }
}

fn virtual_time() -> Check {
    let drives = raidlab_models::builtin().len();
    let found = format!("{drives} modelled drives, nothing else needed");
    check("virtual-time", Ok(found), "`raidlab compare`", &[])
}

fn root() -> Check {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let effective = uid.and_then(|uid| uid.split_whitespace().nth(1)).unwrap_or("unknown");
    let found = match effective {
        "0" => Ok("running as root".to_owned()),
        other => Err(format!("running as user {other}")),
    };
    check(
        "root",
        found,
        "block devices, `--filesystem` with `--on`, `mounted:` and `md:` targets, dropping the page cache",
        &["sudo raidlab ..."],
    )
}

fn io_uring() -> Check {
    let found = match raidlab_engine::io_uring_unusable() {
        None => Ok("works".to_owned()),
        Some(why) => Err(format!("{why}; threads are used instead")),
    };
    check(
        "io_uring",
        found,
        "less CPU time for each request on member files and devices",
        &[
            "Linux 5.11 or newer; sysctl kernel.io_uring_disabled=0; in a container: a seccomp profile that allows it",
        ],
    )
}

/// Whether a device node can be opened for reading and writing, which changes nothing.
fn device(name: &'static str, path: &str, used_for: &'static str, get: &[&str]) -> Check {
    let found = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(_) => Ok(format!("{path} opens")),
        Err(error) => Err(format!("{path}: {error}")),
    };
    check(name, found, used_for, get)
}

fn md() -> Check {
    let found = match fs::read_to_string("/proc/mdstat") {
        Ok(text) => {
            let levels = text.lines().find_map(|line| line.strip_prefix("Personalities :"));
            Ok(format!("the driver is loaded:{}", levels.map(str::trim_end).unwrap_or_default()))
        }
        Err(error) => Err(format!("/proc/mdstat: {error}")),
    };
    check(
        "md",
        found,
        "the kernel's own md: `raidlab run ... --target md:DIR`",
        &["modprobe md_mod; modprobe raid456; modprobe raid10"],
    )
}

fn programs(of: &Programs) -> Check {
    let (there, gone): (Vec<_>, Vec<_>) =
        of.each.iter().partition(|(name, _)| path_of(name).is_some());
    let names =
        |all: &[&(&str, &str)]| all.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let (state, found) = match (there.len(), gone.len()) {
        (_, 0) => (State::Present, names(&there)),
        (0, _) => (State::Missing, format!("none of {}", names(&gone))),
        _ => (State::Part, format!("{}; not {}", names(&there), names(&gone))),
    };
    let mut packages: Vec<&str> = gone.iter().map(|(_, package)| *package).collect();
    packages.dedup();
    let get = match packages.is_empty() {
        true => Vec::new(),
        false => vec![format!("apt-get install {}", packages.join(" "))],
    };
    Check { name: of.name, state, found, used_for: of.used_for, get }
}

/// A program on the path, or where only root's path leads.
fn path_of(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    places.map(|place| place.join(name)).find(|path| path.is_file())
}

fn kernels() -> Check {
    let (there, gone): (Vec<&str>, Vec<&str>) =
        KERNELS.iter().partition(|version| cache::kernel(version).is_ok_and(|path| path.is_file()));
    let place = cache::directory().unwrap_or_default();
    let (state, found) = match (there.len(), gone.len()) {
        (_, 0) => (State::Present, there.join(", ")),
        (0, _) => (State::Missing, format!("none in {}", place.display())),
        _ => (State::Part, format!("{}; not {}", there.join(", "), gone.join(", "))),
    };
    let get = gone.iter().map(|version| {
        format!(
            "cargo xtask kernel {version}, in raidlab's sources: 4 to 14 minutes, 2.5 GB meanwhile"
        )
    });
    Check {
        name: "lab-kernels",
        state,
        found,
        used_for: "Linux itself in virtual time: `raidlab compare --on kernel:6.12` (docs/kernel-lab.md)",
        get: get.collect(),
    }
}

fn guest() -> Check {
    let found = match Root::found() {
        Some(Root::Archive(path)) => Ok(path.display().to_string()),
        Some(Root::Machine { busybox }) => {
            Ok(format!("this machine's own, with {}", busybox.display()))
        }
        None => Err("no archive of programs and no busybox".to_owned()),
    };
    let get =
        ["cargo xtask kernel programs, in raidlab's sources", "apt-get install busybox-static"];
    let used_for = "the programs in the guest of `--on kernel:VERSION`";
    check("lab-programs", found, used_for, &get)
}
