//! What a run on member files tells besides its samples: the machine, the filesystem, warnings.

use std::collections::BTreeMap;
use std::path::Path;

use raidlab_core::Size;
use raidlab_engine::CacheState;
use raidlab_study::Study;

use crate::sizes::Sizes;

/// What a reader must know of files below one directory.
pub fn warnings(parent: &Path, cache: Option<CacheState>) -> Vec<String> {
    let mut warnings = vec![format!(
        "all members share the device below {}: layouts compete with themselves for it, so this \
         table shows what the engine costs, not which layout suits separate drives",
        parent.display()
    )];
    let in_memory = filesystem(parent).is_some_and(|(kind, _)| kind == "tmpfs" || kind == "ramfs");
    if in_memory {
        warnings.push("the filesystem lies in memory: no drive takes part in this".into());
    } else if cache == Some(CacheState::Buffered) {
        warnings.push(
            "the filesystem has no direct I/O: reads may come from the page cache".to_string(),
        );
    }
    warnings
}

/// The machine, and the filesystem where members are files.
pub fn host(parent: Option<&Path>) -> BTreeMap<String, String> {
    let first_line = |path: &str, key: &str| {
        let text = std::fs::read_to_string(path).ok()?;
        let line = text.lines().find(|line| line.starts_with(key))?;
        Some(line[key.len()..].trim_start_matches([':', ' ', '\t']).trim().to_string())
    };
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let facts = [
        ("kernel", first_line("/proc/sys/kernel/osrelease", "")),
        ("cpu", first_line("/proc/cpuinfo", "model name").map(|name| format!("{cpus} x {name}"))),
        ("memory", crate::memory::host_memory().map(gibibytes)),
        (
            "filesystem",
            parent.and_then(filesystem).map(|(kind, device)| format!("{kind} on {device}")),
        ),
    ];
    facts.into_iter().filter_map(|(key, value)| Some((key.to_string(), value?))).collect()
}

/// Memory as people speak of it: `23.5 GiB`.
fn gibibytes(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64)
}

/// What was run on, and how.
pub fn settings(
    study: &Study,
    target: String,
    sizes: &Sizes,
    cache: Option<CacheState>,
    probed: Option<f64>,
) -> BTreeMap<String, String> {
    let cache = match cache {
        Some(CacheState::Direct) => "direct I/O, past the page cache",
        _ => "buffered, through the page cache",
    };
    let mut settings = BTreeMap::from([
        ("target".to_string(), target),
        ("cache state".to_string(), format!("members: {cache}")),
        ("member file".to_string(), Size(sizes.file).to_string()),
        ("metadata".to_string(), metadata(study, sizes)),
        ("verified".to_string(), verified(study).to_string()),
    ]);
    if let Some(rate) = probed {
        let sizes = format!("the default's, for {rate:.0} random writes a second in a probe");
        settings.insert("sizes".to_string(), sizes);
    }
    settings
}

/// What members carry besides data, with the layouts where that is not the same for all.
fn metadata(study: &Study, sizes: &Sizes) -> String {
    let mut kinds: Vec<(String, Vec<&str>)> = Vec::new();
    for (named, format) in study.layouts.iter().zip(&sizes.formats) {
        let kind = format.to_string();
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, layouts)) => layouts.push(&named.name),
            None => kinds.push((kind, vec![&named.name])),
        }
    }
    match &kinds[..] {
        [(kind, _)] => kind.clone(),
        _ => {
            let each =
                kinds.iter().map(|(kind, layouts)| format!("{}: {kind}", layouts.join(", ")));
            each.collect::<Vec<_>>().join("; ")
        }
    }
}

/// What is compared with what it should be, outside the timed span.
fn verified(study: &Study) -> &'static str {
    match study.filesystem {
        None => "every byte read, and all members after each run",
        Some(_) => {
            "files that workloads leave with known contents, the filesystem by its checker, copies and \
             parity, after each run"
        }
    }
}

/// What workloads run on: arrays on `what`.
pub fn target(study: &Study, what: &str) -> String {
    match &study.filesystem {
        None => format!("raw: arrays on {what}"),
        Some(name) => format!(
            "{name} made for each run on arrays on {what}, through FUSE and a loop device with direct \
             I/O; caches dropped before"
        ),
    }
}

/// The mount that a directory lies in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The kind of the filesystem, such as `ext4`.
    pub kind: String,
    /// What is mounted.
    pub device: String,
    /// The options of the mount, then those of the filesystem.
    pub options: String,
}

/// The mount that a directory lies in; `None` where the system does not tell.
pub fn mount(directory: &Path) -> Option<Mount> {
    let directory = directory.canonicalize().ok()?;
    in_mounts(&directory, &std::fs::read_to_string("/proc/self/mountinfo").ok()?)
}

/// Kind and device of the filesystem that a directory lies in.
fn filesystem(directory: &Path) -> Option<(String, String)> {
    mount(directory).map(|mount| (mount.kind, mount.device))
}

/// The last mount of the longest mount point above the directory (proc_pid_mountinfo(5)).
fn in_mounts(directory: &Path, mounts: &str) -> Option<Mount> {
    let above = mounts.lines().filter_map(|line| {
        let (place, device) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(4);
        let (point, own) = (unescaped(place.next()?), place.next()?);
        let mut device = device.split(' ');
        let (kind, device, of_filesystem) = (device.next()?, device.next()?, device.next());
        let found = Mount {
            kind: kind.to_string(),
            device: unescaped(device),
            options: format!("{own}; {}", of_filesystem.unwrap_or_default()),
        };
        directory.starts_with(&point).then_some((point.len(), found))
    });
    above.max_by_key(|(length, _)| *length).map(|(_, found)| found)
}

/// Blanks, tabs, newlines and backslashes stand there as octal numbers.
fn unescaped(text: &str) -> String {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    escapes.iter().fold(text.to_string(), |text, (code, plain)| text.replace(code, plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_told_in_the_words_of_a_reader() {
        assert_eq!(gibibytes(24_684_096 << 10), "23.5 GiB");
        assert_eq!(gibibytes(512 << 20), "0.5 GiB");
    }

    #[test]
    fn the_mount_nearest_to_the_directory_counts() {
        let mounts = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
24 22 0:21 / /mnt/my\\040disk rw shared:2 - xfs /dev/sdb1 rw
25 22 0:22 / /mnt rw - tmpfs none rw
26 22 0:23 / /mnt rw - btrfs /dev/sdc rw
";
        let found = |path: &str| {
            let Mount { kind, device, .. } = in_mounts(Path::new(path), mounts).expect("a mount");
            format!("{kind} on {device}")
        };
        let options = |path: &str| in_mounts(Path::new(path), mounts).expect("a mount").options;
        assert_eq!(options("/home"), "rw,relatime; rw");
        assert_eq!(found("/home"), "ext4 on /dev/vda");
        assert_eq!(found("/mnt/my disk/x"), "xfs on /dev/sdb1");
        assert_eq!(found("/mnt/other"), "btrfs on /dev/sdc");
        assert_eq!(found("/mntx"), "ext4 on /dev/vda");
        assert_eq!(in_mounts(Path::new("/"), "nonsense\n - \n"), None);
    }
}
