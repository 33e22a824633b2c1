//! What a run on member files tells besides its samples: the machine, the filesystem, warnings.

use std::collections::BTreeMap;
use std::path::Path;

use raidlab_core::Size;
use raidlab_engine::CacheState;
use raidlab_engine::mounts::{self, Mount};
use raidlab_study::Study;
use raidlab_workload::{Memory, Setting};

use crate::sizes::Sizes;

/// What a reader must know of files below one directory.
pub fn warnings(parent: &Path, cache: Option<CacheState>) -> Vec<String> {
    let mut warnings = vec![format!(
        "all members share the device below {}: layouts compete with themselves for it, so this \
         table shows what the engine costs, not which layout suits separate drives",
        parent.display()
    )];
    let in_memory = mount(parent).is_some_and(|there| ["tmpfs", "ramfs"].contains(&&*there.kind));
    if in_memory {
        warnings.push("the filesystem lies in memory: no drive takes part in this".into());
    } else if cache == Some(CacheState::Buffered) {
        warnings.push(
            "the filesystem has no direct I/O: reads may come from the page cache".to_string(),
        );
    }
    warnings
}

/// What layouts have in virtual time only.
pub fn without(study: &Study) -> Option<String> {
    let layouts = study.only_modelled();
    let what = "only virtual time has what these layouts say besides their arrays, which were measured without it";
    (!layouts.is_empty()).then(|| format!("{what}: {}", layouts.join("; ")))
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
            parent
                .and_then(mount)
                .map(|there| format!("{} on {}", there.kind, there.source.display())),
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
        Some(_) => format!(
            "{} made for each run on arrays on {what}, through FUSE and a loop device with direct \
             I/O; {}",
            filesystems(study),
            memory_before(study)
        ),
    }
}

/// Those of a study's layouts.
fn filesystems(study: &Study) -> String {
    let mut names: Vec<&str> =
        (0..study.layouts.len()).filter_map(|layout| study.filesystem_of(layout)).collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

/// What memory holds of the files when a run starts, with the workloads where that is not the same for all.
fn memory_before(study: &Study) -> String {
    let mut kinds: Vec<(&str, Vec<&str>)> = Vec::new();
    for spec in &study.workloads {
        let processes = study.processes_of(spec).first().copied().unwrap_or(1);
        let host_memory = crate::memory::host_memory();
        let setting = Setting { host_memory, checked: false, ..Setting::new(processes, 0) };
        // One that cannot be planned is refused before anything runs.
        let Ok(plan) = spec.workload.plan(&setting) else { continue };
        let words = match plan.memory {
            Memory::Cold => "caches dropped before",
            Memory::Warm => "caches dropped before, then files read into memory",
            Memory::JustWritten => "files in memory as preparing left them",
            Memory::AsIs => "files synced, no caches dropped before",
        };
        match kinds.iter_mut().find(|(known, _)| *known == words) {
            Some((_, names)) if names.contains(&&*spec.name) => {}
            Some((_, names)) => names.push(&spec.name),
            None => kinds.push((words, vec![&spec.name])),
        }
    }
    match &kinds[..] {
        [(words, _)] => (*words).to_owned(),
        _ => {
            let each = kinds.iter().map(|(words, names)| format!("{}: {words}", names.join(", ")));
            each.collect::<Vec<_>>().join("; ")
        }
    }
}

/// The mount that a directory lies in; `None` where the system does not tell.
pub fn mount(directory: &Path) -> Option<Mount> {
    mounts::over(&mounts::all().ok()?, &directory.canonicalize().ok()?).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was just written lies in memory: of such workloads nothing was dropped.
    #[test]
    fn what_memory_holds_before_is_told_workload_by_workload() {
        let text = |workloads: &str| {
            let text = format!(
                "title = \"t\"\nprocesses = [1]\nfilesystem = \"ext4\"\n\
                 drives = [{{ name = \"d\", model = \"nas-8tb-7200\", count = 1 }}]\n\
                 layouts = [{{ level = \"single\" }}]\nworkloads = [{workloads}]\n"
            );
            let study = raidlab_study::parse(&text, "t.toml").expect("a study");
            target(&study, "files")
        };
        let cold = "{ kind = \"cp-null\", name = \"a\", size = \"1MiB\" }";
        let all = "ext4 made for each run on arrays on files, through FUSE and a loop device with direct I/O; ";
        assert_eq!(text(cold), format!("{all}caches dropped before"));
        let others = ", { kind = \"cp-null\", name = \"b\", size = \"1MiB\", just_written = true }, \
                      { kind = \"cp-null\", name = \"c\", size = \"2MiB\", just_written = true }, \
                      { kind = \"cp-tar\", name = \"d\", size = \"1MiB\" }";
        let told = "a: caches dropped before; b, c: files in memory as preparing left them; \
                    d: caches dropped before, then files read into memory";
        assert_eq!(text(&format!("{cold}{others}")), format!("{all}{told}"));
    }

    #[test]
    fn memory_is_told_in_the_words_of_a_reader() {
        assert_eq!(gibibytes(24_684_096 << 10), "23.5 GiB");
        assert_eq!(gibibytes(512 << 20), "0.5 GiB");
    }
}
