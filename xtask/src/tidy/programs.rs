//! Files with tests of a crate that lists its test programs itself: one that no program holds is never run.

use super::tree::{Breach, Tree};

const RULE: &str = "test-programs";

/// The test programs that a manifest lists; none where cargo finds them.
pub(crate) fn listed(manifest: &str) -> Option<Vec<&str>> {
    manifest.lines().find(|line| line.replace(' ', "") == "autotests=false")?;
    let tests = manifest.split("\n[[test]]\n").skip(1);
    let lines = tests.filter_map(|text| text.split("\n[").next()).flat_map(str::lines);
    Some(lines.filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"')).collect())
}

/// Finds files beside the programs of a crate that are neither one nor a module of one.
pub(crate) fn check(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (path, manifest) in &tree.files {
        let Some(directory) = path.strip_suffix("Cargo.toml") else { continue };
        let Some(programs) = listed(manifest) else { continue };
        let tests = format!("{directory}tests/");
        let texts: Vec<&str> =
            programs.iter().filter_map(|name| tree.get(&format!("{tests}{name}.rs"))).collect();
        for file in tree.files.keys() {
            let name = file.strip_prefix(&tests).and_then(|name| name.strip_suffix(".rs"));
            let Some(name) = name.filter(|name| !name.contains('/')) else { continue };
            let module = format!("mod {name};");
            let is_held = || texts.iter().any(|text| text.lines().any(|line| line == module));
            if !programs.contains(&name) && !is_held() {
                let message = format!("no test program of {path} holds it: `{module}` in one");
                breaches.push(Breach::new(file, 1, RULE, message));
            }
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "\
[package]
autotests = false

[[test]]
name = \"all\"

[[test]]
name = \"b\"

[[bench]]
name = \"d\"
";

    #[test]
    fn a_file_that_no_program_holds_is_found() {
        let of = |manifest: &str| {
            let tree = Tree::of(&[
                ("crates/a/Cargo.toml", manifest),
                ("crates/a/tests/all.rs", "mod c;\nmod support;\n"),
                ("crates/a/tests/b.rs", ""),
                ("crates/a/tests/c.rs", ""),
                ("crates/a/tests/d.rs", ""),
                ("crates/a/tests/support/e.rs", ""),
            ]);
            let breaches = check(&tree).into_iter();
            breaches.map(|breach| breach.path).collect::<Vec<String>>()
        };
        assert_eq!(of(MANIFEST), ["crates/a/tests/d.rs"]);
        assert_eq!(of("[package]\n"), [""; 0]);
        assert_eq!(listed(MANIFEST), Some(vec!["all", "b"]));
    }
}
