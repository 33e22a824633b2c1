//! Which crate may use which: the arrows of the design.

use super::tree::{Breach, Tree};

const RULE: &str = "arrows";

/// What each crate may depend on, besides in its tests.
const ARROWS: [(&str, &[&str]); 30] = [
    ("advise", ADVISE),
    ("allocator", &[]),
    ("core", &[]),
    ("parity", &[]),
    ("random", &[]),
    ("toml-file", &["core"]),
    ("models", &["core", "random", "toml-file"]),
    ("risk", &["core", "random"]),
    ("sim", &["core", "models"]),
    ("kernel-lab", &["core", "models"]),
    ("checker", &["core", "random", "metadata"]),
    ("workload", &["core", "random"]),
    ("metadata", &["core"]),
    ("nbd", &[]),
    ("engine", &["core", "parity", "metadata"]),
    ("targets", &["core", "parity", "random", "engine", "nbd", "workload"]),
    ("results", &[]),
    ("kernel-study", KERNEL_STUDY),
    ("study", &["core", "random", "toml-file", "models", "workload", "results"]),
    ("predict", &["core", "metadata", "random", "models", "sim", "workload", "results", "study"]),
    ("measure", &["core", "random", "metadata", "engine", "targets", "workload", "study"]),
    ("explore", &["core", "models", "sim", "workload", "study", "predict", "results"]),
    ("report", &["results"]),
    ("store", &["core", "workload", "results", "study"]),
    ("sweep", &["core", "models", "sim", "results", "study", "predict", "store"]),
    ("what-if", &["core", "models", "sim", "results", "study", "predict", "report"]),
    ("cli", CLI),
    ("fuzz", FUZZ),
    ("python", &["cli", "core", "store", "sweep"]),
    ("hot-paths", &["core", "parity", "models", "sim", "workload", "engine"]),
];

/// Advice asks the models and the chances of loss.
const ADVISE: &[&str] =
    &["core", "random", "models", "sim", "workload", "study", "predict", "results", "risk"];

/// The command line joins everything.
const CLI: &[&str] = &[
    "advise",
    "allocator",
    "core",
    "parity",
    "random",
    "metadata",
    "models",
    "sim",
    "kernel-lab",
    "kernel-study",
    "checker",
    "workload",
    "engine",
    "targets",
    "results",
    "study",
    "predict",
    "measure",
    "explore",
    "report",
    "risk",
    "store",
    "sweep",
];

/// Cells of studies, in guests and by the same programs as on real directories.
const KERNEL_STUDY: &[&str] = &[
    "core",
    "metadata",
    "random",
    "models",
    "sim",
    "kernel-lab",
    "engine",
    "targets",
    "workload",
    "results",
    "study",
    "store",
    "predict",
];

/// Fuzzing drives whatever reads what comes from outside.
const FUZZ: &[&str] = &[
    "core", "models", "metadata", "nbd", "workload", "engine", "targets", "results", "study",
    "store", "report",
];

/// Crates that also use nothing from outside.
const ALONE: [&str; 3] = ["core", "parity", "random"];

/// Checks the manifest of each crate.
pub(crate) fn check(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (path, text) in &tree.files {
        let Some(directory) = path.strip_suffix("/Cargo.toml") else { continue };
        let arrows = if directory == "xtask" {
            // Its statistics are those of reports.
            Some(("xtask", &["results"] as &[&str]))
        } else if directory == "python" || directory.starts_with("crates/") {
            let name = directory.trim_start_matches("crates/");
            ARROWS.into_iter().find(|(of, _)| *of == name)
        } else {
            continue;
        };
        match arrows {
            Some((name, allowed)) => manifest(path, text, name, allowed, &mut breaches),
            None => {
                let message = "a crate the table of arrows in xtask does not know: add its row";
                breaches.push(Breach::new(path, 1, RULE, message));
            }
        }
    }
    breaches
}

fn manifest(path: &str, text: &str, name: &str, allowed: &[&str], breaches: &mut Vec<Breach>) {
    let mut section = "";
    let mut lints = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']').trim();
        }
        lints |= section == "lints" && line.replace(' ', "") == "workspace=true";
        if !is_dependencies(section) || line.is_empty() {
            continue;
        }
        for used in crates_named_in(line) {
            if !allowed.contains(&used) {
                let message = format!("{name} may not use {used}; it may use {}", list(allowed));
                breaches.push(Breach::new(path, index + 1, RULE, message));
            }
        }
        let outside = !line.starts_with('[') || section.contains("dependencies.");
        if outside && ALONE.contains(&name) && crates_named_in(line).next().is_none() {
            let message = format!("{name} uses nothing from outside");
            breaches.push(Breach::new(path, index + 1, RULE, message));
        }
    }
    if !lints {
        let message = "the lints of the workspace are off: add `[lints]` `workspace = true`";
        breaches.push(Breach::new(path, 1, RULE, message));
    }
}

/// Whether a section such as `target.'cfg(unix)'.build-dependencies.libc` names what the crate
/// needs outside its tests.
fn is_dependencies(section: &str) -> bool {
    let mut parts = section.split('.');
    parts.any(|part| part == "dependencies" || part == "build-dependencies")
}

fn crates_named_in(line: &str) -> impl Iterator<Item = &str> {
    line.split("raidlab-").skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_');
        &rest[..end.unwrap_or(rest.len())]
    })
}

fn list(allowed: &[&str]) -> String {
    if allowed.is_empty() { "none of ours".to_owned() } else { allowed.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINTS: &str = "[lints]\nworkspace = true\n";

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let text = format!("{text}{LINTS}");
        let tree = Tree::of(&[(path, &text)]);
        let mut lines: Vec<usize> = check(&tree).into_iter().map(|breach| breach.line).collect();
        lines.dedup();
        lines
    }

    #[test]
    fn an_arrow_upward_is_a_breach_in_every_spelling() {
        let path = "crates/sim/Cargo.toml";
        assert_eq!(lines(path, "[dependencies]\nraidlab-core.workspace = true\n"), [0; 0]);
        assert_eq!(lines(path, "[dependencies]\nraidlab-engine.workspace = true\n"), [2]);
        assert_eq!(lines(path, "[dependencies]\ne = { package = \"raidlab-engine\" }\n"), [2]);
        assert_eq!(lines(path, "[dependencies.raidlab-engine]\npath = \"../engine\"\n"), [1]);
        assert_eq!(lines(path, "[build-dependencies]\nraidlab-study = \"1\"\n"), [2]);
        assert_eq!(lines(path, "[target.'cfg(unix)'.dependencies]\nraidlab-cli = \"1\"\n"), [2]);
        assert_eq!(lines(path, "[dev-dependencies]\nraidlab-engine.workspace = true\n"), [0; 0]);
        assert_eq!(lines(path, "[dependencies] # raidlab-engine\n# raidlab-cli = \"1\"\n"), [0; 0]);
        assert_eq!(lines("xtask/Cargo.toml", "[dependencies]\nraidlab-core = \"1\"\n"), [2]);
    }

    #[test]
    fn core_and_parity_stand_alone() {
        for path in ["crates/core/Cargo.toml", "crates/parity/Cargo.toml"] {
            assert_eq!(
                lines(path, "[dependencies]\n\n[dev-dependencies]\nproptest = \"1\"\n"),
                [0; 0]
            );
            assert_eq!(lines(path, "[dependencies]\nlibc = \"0.2\"\n"), [2]);
            assert_eq!(lines(path, "[dependencies.libc]\nversion = \"0.2\"\n"), [1, 2]);
        }
    }

    #[test]
    fn an_unknown_crate_and_missing_lints_are_breaches() {
        assert_eq!(lines("crates/other/Cargo.toml", "[dependencies]\n"), [1]);
        let tree = Tree::of(&[("crates/core/Cargo.toml", "[dependencies]\n")]);
        assert!(check(&tree)[0].message.contains("[lints]"), "{:?}", check(&tree));
    }

    #[test]
    fn the_arrows_go_downward_only() {
        for (name, allowed) in ARROWS {
            for used in allowed {
                let (_, below) = ARROWS.into_iter().find(|(of, _)| of == used).expect("has a row");
                assert!(!below.contains(&name), "{name} and {used} use each other");
            }
        }
    }
}
