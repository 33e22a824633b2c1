//! The documents agree with the code: invariants name their tests, the README its commands, and
//! files that hold a protocol with the disk their fault model.

use super::tree::{Breach, Tree};

/// Files that hold a protocol with the disk.
const PROTOCOLS: [&str; 15] = [
    "crates/core/src/array/mod.rs",
    "crates/core/src/array/metadata_updates.rs",
    "crates/core/src/array/write_intent/mod.rs",
    "crates/core/src/array/write_intent/superblock.rs",
    "crates/core/src/array/write_intent/bitmap.rs",
    "crates/core/src/array/background/mod.rs",
    "crates/core/src/array/log/partial.rs",
    "crates/core/src/array/log/journal.rs",
    "crates/core/src/array/log/replay.rs",
    "crates/core/src/consistency/assembly.rs",
    "crates/core/src/array/locks.rs",
    "crates/core/src/array/stripe/mod.rs",
    "crates/core/src/stack/mod.rs",
    "crates/targets/src/rundir.rs",
    "crates/store/src/write.rs",
];

/// Checks all documents.
pub(crate) fn check(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    invariants(tree, &mut breaches);
    commands(tree, &mut breaches);
    protocols(tree, &mut breaches);
    contents(tree, &mut breaches);
    if tree.get("CHANGELOG.md").is_none() {
        breaches.push(Breach::new("CHANGELOG.md", 1, "changelog", "there is none"));
    }
    breaches
}

/// The site's table of contents has every document. What links lead to is checked in `names`.
fn contents(tree: &Tree, breaches: &mut Vec<Breach>) {
    const SUMMARY: &str = "docs/SUMMARY.md";
    let Some(summary) = tree.get(SUMMARY) else { return };
    let names = tree.files.keys().filter_map(|path| path.strip_prefix("docs/"));
    let names = names.filter(|name| name.ends_with(".md") && !name.contains('/'));
    let names: Vec<String> = names.map(str::to_owned).collect();
    let wrong = crate::book::unlisted(&names, summary);
    breaches.extend(wrong.into_iter().map(|what| Breach::new(SUMMARY, 1, "contents", what)));
}

/// Files with a protocol open with what may go wrong, why that is safe, and what shows it.
fn protocols(tree: &Tree, breaches: &mut Vec<Breach>) {
    for path in PROTOCOLS {
        let Some(text) = tree.get(path) else {
            let message = "is listed in PROTOCOLS in xtask/src/tidy/documents.rs, but not there";
            breaches.push(Breach::new(path, 1, "fault-model", message));
            continue;
        };
        let lines = text.lines().take_while(|line| line.starts_with("//!"));
        let docs: Vec<&str> = lines.map(|line| line[3..].trim()).collect();
        let docs = docs.join("\n");
        let shown = |name: &str| is_test(tree, name) || is_test_file(tree, path, name);
        let parts = ["Fault model", "Why it is safe", "Test"].map(|part| docs.contains(part));
        if parts.contains(&false) || !quoted(&docs).any(shown) {
            let message = "holds a protocol with the disk: its docs at the top must have \
                           `Fault model:`, `Why it is safe:` and `Tests:`, which names one that exists";
            breaches.push(Breach::new(path, 1, "fault-model", message));
        }
    }
}

/// Whether `name` is a file with tests, seen from the crate that `path` belongs to.
fn is_test_file(tree: &Tree, path: &str, name: &str) -> bool {
    let own = path.split_once("/src/").map(|(root, _)| format!("{root}/{name}"));
    let text = tree.get(name).or_else(|| tree.get(&own?));
    name.ends_with(".rs") && text.is_some_and(|text| text.contains("#[test]"))
}

const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// Invariants are numbered from 1 on, and each names a test that exists.
fn invariants(tree: &Tree, breaches: &mut Vec<Breach>) {
    let Some(text) = tree.get(ARCHITECTURE) else {
        breaches.push(Breach::new(ARCHITECTURE, 1, "invariants", "there is none"));
        return;
    };
    let found = numbered(text);
    if found.is_empty() {
        let message = "no invariant: number them `**I1.**`, `**I2.**`, ...";
        breaches.push(Breach::new(ARCHITECTURE, 1, "invariants", message));
    }
    for (index, (line, number, body)) in found.into_iter().enumerate() {
        let mut add =
            |message| breaches.push(Breach::new(ARCHITECTURE, line, "invariants", message));
        if number != (index + 1).to_string() {
            add(format!("I{number} stands where I{} is expected", index + 1));
        }
        let named: Vec<&str> = quoted(&body).filter(|name| name.contains("::")).collect();
        let exists = |name: &&str| is_test(tree, name);
        for gone in named.iter().filter(|name| must_be_a_test(name) && !exists(name)) {
            add(format!("I{number} names the test `{gone}`, which does not exist"));
        }
        if !named.iter().any(exists) {
            add(format!(
                "I{number} names no test that exists: `crate::path::test_name` or `tests/file.rs::test_name`"
            ));
        }
    }
}

/// Line, number and text of each invariant. One ends where the next begins, or at a heading.
fn numbered(text: &str) -> Vec<(usize, String, String)> {
    let mut found: Vec<(usize, String, String)> = Vec::new();
    let mut open = false;
    for (index, line) in text.lines().enumerate() {
        let number = line
            .find("**I")
            .and_then(|at| line[at + 3..].split_once(".**"))
            .map(|(number, _)| number);
        if let Some(number) = number.filter(|number| number.chars().all(|c| c.is_ascii_digit())) {
            found.push((index + 1, number.to_owned(), String::new()));
            open = true;
        } else if line.starts_with('#') {
            open = false;
        }
        if let Some((.., body)) = found.last_mut().filter(|_| open) {
            body.push_str(line);
            body.push('\n');
        }
    }
    found
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Whether a name can only be that of a test.
fn must_be_a_test(name: &str) -> bool {
    name.contains(".rs::") || name.contains("::tests::")
}

/// Whether `name` is `crate::path::test` or `path/file.rs::test` of a test that exists.
fn is_test(tree: &Tree, name: &str) -> bool {
    let Some((place, test)) = name.rsplit_once("::") else { return false };
    if place.ends_with(".rs") {
        let whole = |path: &str| path == place || path.ends_with(&format!("/{place}"));
        return tree.rust().any(|(path, text)| whole(path) && declares(text, test));
    }
    let root = place.split("::").next().unwrap_or_default();
    let root = root.strip_prefix("raidlab_").unwrap_or(root);
    let below = if root == "xtask" { "xtask/".to_owned() } else { format!("crates/{root}/") };
    tree.rust().any(|(path, text)| path.starts_with(&below) && declares(text, test))
}

/// Whether the text declares a function of this name with `#[test]` above it.
fn declares(text: &str, test: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let signature = format!("fn {test}(");
    lines.iter().enumerate().any(|(index, line)| {
        let above = lines[..index].iter().rev();
        let mut attributes =
            above.take_while(|line| line.starts_with("#[") || line.starts_with("//"));
        line.starts_with(&signature) && attributes.any(|line| line.starts_with("#[test]"))
    })
}

const CI: &str = ".ci/run";

/// The README has two commands in blocks of code: one that runs raidlab, and the test command, which
/// is the very one that CI runs.
fn commands(tree: &Tree, breaches: &mut Vec<Breach>) {
    let test = "cargo xtask test --install";
    let runs = |line: &str| line.trim().strip_prefix("exec ").unwrap_or(line.trim()) == test;
    if !tree.get(CI).is_some_and(|text| text.lines().any(runs)) {
        breaches.push(Breach::new(CI, 1, "commands", format!("must run `{test}`")));
    } else if !tree.executable.contains(CI) {
        breaches.push(Breach::new(CI, 1, "commands", "must be executable"));
    }
    let Some(readme) = tree.get("README.md") else {
        breaches.push(Breach::new("README.md", 1, "commands", "there is none"));
        return;
    };
    let code: Vec<&str> = code_lines(readme).collect();
    for (command, what) in [("cargo run ", "runs raidlab"), (test, "runs all tests")] {
        if !code.iter().any(|line| line.starts_with(command)) {
            let message = format!("no block of code with the command that {what} (`{command}`)");
            breaches.push(Breach::new("README.md", 1, "commands", message));
        }
    }
}

/// The lines of blocks of code, fenced or indented, without what comes before them.
fn code_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter_map(move |line| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return None;
        }
        let code = fenced || line.starts_with("    ");
        code.then(|| line.trim().trim_start_matches("$ "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTS: &str = "#[cfg(test)]\nmod tests {\n    #[test]\n    // Why.\n    fn good() {}\n\n\
                         \x20   fn helper() {}\n}\n";

    fn of_architecture(text: &str) -> Vec<usize> {
        let files = [
            (ARCHITECTURE, text),
            ("crates/core/src/a.rs", TESTS),
            ("crates/sim/tests/b.rs", TESTS),
        ];
        let mut breaches = Vec::new();
        invariants(&Tree::of(&files), &mut breaches);
        breaches.into_iter().map(|breach| breach.line).collect()
    }

    #[test]
    fn an_invariant_names_a_test_that_exists() {
        assert_eq!(of_architecture("**I1.** A. `core::a::tests::good`\n"), [0; 0]);
        assert_eq!(of_architecture("- **I1.** A\n  `core::A`, `tests/b.rs::good`\n"), [0; 0]);
        assert_eq!(of_architecture("**I1.** A. `crates/sim/tests/b.rs::good`\n"), [0; 0]);
        for bad in [
            "**I1.** A.\n",
            "**I1.** A. core::a::tests::good\n",
            "**I1.** A. `core::a::helper`\n",
            "**I1.** A. `sim::a::missing`\n",
            "**I1.** A.\n## Next\n`core::a::tests::good`\n",
            "**I2.** A. `core::a::tests::good`\n",
            "**I1.** A. `core::a::tests::good`, `tests/b.rs::missing`\n",
            "No invariants.\n",
        ] {
            assert_eq!(of_architecture(bad), [1], "{bad}");
        }
        let second = "**I1.** A. `core::a::tests::good`\n**I2.** B.\n";
        assert_eq!(of_architecture(second), [2]);
        let twice = "**I1.** A. `core::a::good`\n**I1.** B. `core::a::good`\n";
        assert_eq!(of_architecture(twice), [2]);
    }

    fn of_commands(readme: &str, ci: &str, executable: bool) -> Vec<String> {
        let mut tree = Tree::of(&[("README.md", readme), (CI, ci)]);
        if executable {
            tree.executable.insert(CI.to_owned());
        }
        let mut breaches = Vec::new();
        commands(&tree, &mut breaches);
        breaches.into_iter().map(|breach| breach.path).collect()
    }

    #[test]
    fn the_readme_and_ci_share_the_test_command() {
        let readme = "# a\n\n```sh\ncargo run --release\n```\n\n    $ cargo xtask test --install\n";
        assert_eq!(of_commands(readme, "exec cargo xtask test --install\n", true), [""; 0]);
        assert_eq!(of_commands(readme, "exec cargo xtask test --install\n", false), [CI]);
        assert_eq!(of_commands(readme, "cargo xtask test\n", true), [CI]);
        let prose = "cargo run --release and cargo xtask test\n";
        assert_eq!(of_commands(prose, "cargo xtask test --install\n", true), ["README.md"; 2]);
    }

    #[test]
    fn a_protocol_opens_with_its_fault_model() {
        let count = |text: &str| {
            let mut breaches = Vec::new();
            let tests = ("crates/targets/tests/rundir.rs", TESTS);
            let path = "crates/targets/src/rundir.rs";
            protocols(&Tree::of(&[(path, text), tests]), &mut breaches);
            breaches.into_iter().filter(|breach| breach.path == path).count()
        };
        let good = "//! Runs.\n//!\n//! Fault model: a kill. Why it is safe: a\n//! lock. Test: `tests/rundir.rs`.\n";
        assert_eq!(count(good), 0);
        assert_eq!(count(&good.replace("rundir.rs", "rundir.rs::good")), 0);
        assert_eq!(count(&good.replace("rundir.rs", "rundir.rs::missing")), 1);
        assert_eq!(count(&good.replace("tests/rundir.rs", "tests/missing.rs")), 1);
        for part in ["Fault model", "Why it is safe", "Test"] {
            assert_eq!(count(&good.replace(part, "")), 1, "{part}");
        }
        assert_eq!(count(&format!("fn f() {{}}\n{good}")), 1);
        let mut breaches = Vec::new();
        protocols(&Tree::default(), &mut breaches);
        assert_eq!(breaches.len(), PROTOCOLS.len());
    }

    #[test]
    fn missing_documents_are_breaches() {
        let missing: Vec<String> =
            check(&Tree::default()).into_iter().map(|breach| breach.path).collect();
        let mut expected = vec![ARCHITECTURE, CI, "README.md"];
        expected.extend(PROTOCOLS);
        expected.push("CHANGELOG.md");
        assert_eq!(missing, expected);
    }
}
