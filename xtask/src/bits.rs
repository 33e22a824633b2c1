//! Whether what raidlab computes has the same bits in every build: hashes of the default study, of cells of the
//! replays, of a fit and of the check, of a release, a debug and a wasm32 build of one program.

use std::collections::BTreeMap;
use std::env;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// The program: `bits`, an example of this crate.
const PROGRAM: [&str; 5] = ["run", "--quiet", "--package", "raidlab-explore", "--example=bits"];

/// The second target: 32 bits, no processor's own instructions, and an engine that compiles it anew.
const TARGET: &str = "wasm32-wasip1";

/// Runs programs for it.
const RUNNER: &str = "node --no-warnings xtask/src/wasi.mjs";

/// Most differences that are shown of a build.
const SHOWN: usize = 10;

/// A build and the arguments of cargo that make it.
struct Build {
    name: &'static str,
    arguments: &'static [&'static str],
    needs: &'static [Need],
}

/// Something a build needs besides the toolchain: how to see whether it is there and how to get it.
struct Need {
    what: &'static str,
    is_there: fn(&Path) -> bool,
    get: &'static [&'static str],
}

/// The first is what the others are compared with.
const BUILDS: [Build; 3] = [
    Build { name: "release", arguments: &["--release"], needs: &[] },
    Build { name: "debug", arguments: &[], needs: &[] },
    Build {
        name: "wasm32",
        arguments: &["--release", "--target", TARGET],
        needs: &[
            Need {
                what: "the standard library of wasm32-wasip1",
                is_there: has_target,
                get: &["rustup", "target", "add", TARGET],
            },
            Need {
                what: "node with WASI",
                is_there: has_node,
                get: &["apt-get", "install", "-y", "--no-install-recommends", "nodejs"],
            },
        ],
    },
];

fn has_target(root: &Path) -> bool {
    let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.current_dir(root).args(["--print", "target-libdir", "--target", TARGET]);
    let path = rustc.stderr(Stdio::null()).output().map(|output| output.stdout);
    path.is_ok_and(|path| Path::new(String::from_utf8_lossy(&path).trim()).is_dir())
}

fn has_node(_: &Path) -> bool {
    let script = "new (require('node:wasi').WASI)({ version: 'preview1' })";
    let mut node = Command::new("node");
    node.args(["--no-warnings", "-e", script]).stdout(Stdio::null()).stderr(Stdio::null());
    node.status().is_ok_and(|status| status.success())
}

impl Need {
    /// What to tell of it when it is not there.
    fn told(&self) -> String {
        format!("needs {}: {}", self.what, self.get.join(" "))
    }
}

/// The first thing missing, after having tried to get it where that is wanted.
fn missing<'a>(needs: &'a [Need], root: &Path, install: bool) -> Option<&'a Need> {
    needs.iter().find(|need| {
        if !(need.is_there)(root) && install {
            // Whether that worked shows in what follows.
            let _ = Command::new(need.get[0]).args(&need.get[1..]).current_dir(root).status();
        }
        !(need.is_there)(root)
    })
}

/// The task by its arguments.
pub(crate) fn task(root: &Path, arguments: &[&str]) -> io::Result<bool> {
    match arguments {
        [] => run(root, false),
        ["--install"] => run(root, true),
        _ => Err(io::Error::other("bits takes --install")),
    }
}

/// Runs all builds that can be had here; true if they agree.
fn run(root: &Path, install: bool) -> io::Result<bool> {
    let mut first: Option<Printed> = None;
    let mut agree = true;
    for build in &BUILDS {
        if let Some(need) = missing(build.needs, root, install) {
            println!("skipped: bits of {}: {}", build.name, need.told());
            continue;
        }
        print!("{}: ", build.name);
        io::stdout().flush()?;
        let printed = printed_by(root, build)?;
        let Some(first) = &first else {
            println!();
            printed.hashes.iter().for_each(|(name, hash)| println!("  {hash}  {name}"));
            first = Some(printed);
            continue;
        };
        let differences = first.differences(&printed);
        match differences.len() {
            0 => println!("the same {} values", printed.values.len()),
            count => println!("{count} of {} values differ", first.values.len()),
        }
        differences.iter().take(SHOWN).for_each(|line| println!("  {line}"));
        agree &= differences.is_empty();
    }
    Ok(agree)
}

fn printed_by(root: &Path, build: &Build) -> io::Result<Printed> {
    let mut command = crate::cargo(root);
    command.args(PROGRAM).args(build.arguments).args(["--", "--values"]);
    command.env("CARGO_TARGET_WASM32_WASIP1_RUNNER", RUNNER).stderr(Stdio::inherit());
    let output = command.output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("the build {} did not run", build.name)));
    }
    Ok(Printed::read(&String::from_utf8_lossy(&output.stdout)))
}

/// What the program printed: hashes by name, and the values they are made of.
#[derive(Debug, Default)]
struct Printed {
    hashes: BTreeMap<String, String>,
    values: BTreeMap<String, String>,
}

impl Printed {
    fn read(text: &str) -> Self {
        let mut printed = Self::default();
        for line in text.lines() {
            // Values have a colon, hashes have not.
            let (to, parts) = match line.rsplit_once(": ") {
                Some(parts) => (&mut printed.values, parts),
                None => (&mut printed.hashes, line.rsplit_once(' ').unwrap_or((line, ""))),
            };
            to.insert(parts.0.to_owned(), parts.1.to_owned());
        }
        printed
    }

    /// Where another build printed something else, a line each: values first, as they tell more.
    fn differences(&self, other: &Self) -> Vec<String> {
        let values = differences(&self.values, &other.values);
        if values.is_empty() { differences(&self.hashes, &other.hashes) } else { values }
    }
}

fn differences(one: &BTreeMap<String, String>, other: &BTreeMap<String, String>) -> Vec<String> {
    let of =
        |map: &BTreeMap<String, String>, name| map.get(name).map_or("-", |bits| bits).to_owned();
    let mut names: Vec<&String> = one.keys().chain(other.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let differing = names.into_iter().filter(|name| one.get(*name) != other.get(*name));
    differing.map(|name| format!("{name}: {} became {}", of(one, name), of(other, name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "study, raid0(4), a: 3ff0 4000\nstudy, raid5(4), a: 3ff0\nstudy 12ab\n";

    #[test]
    fn a_difference_names_the_cell_that_differs() {
        let one = Printed::read(TEXT);
        assert_eq!(one.hashes.get("study").map(String::as_str), Some("12ab"));
        assert_eq!(one.differences(&Printed::read(TEXT)), [""; 0]);
        let other = Printed::read(&TEXT.replace("4000", "4001").replace("12ab", "34cd"));
        let expected = ["study, raid0(4), a: 3ff0 4000 became 3ff0 4001"];
        assert_eq!(one.differences(&other), expected);
    }

    #[test]
    fn what_is_missing_or_only_in_the_hash_is_a_difference_too() {
        let one = Printed::read(TEXT);
        let derived = Printed::read(&TEXT.replace("12ab", "34cd"));
        assert_eq!(one.differences(&derived), ["study: 12ab became 34cd"]);
        let short = Printed::read("study, raid5(4), a: 3ff0\nstudy 12ab\n");
        assert_eq!(one.differences(&short), ["study, raid0(4), a: 3ff0 4000 became -"]);
        assert_eq!(short.differences(&one), ["study, raid0(4), a: - became 3ff0 4000"]);
        assert_eq!(one.differences(&Printed::default()).len(), 2);
    }

    #[test]
    fn what_is_missing_is_named_or_fetched() {
        let needs = [
            Need { what: "a", is_there: |_| true, get: &["false"] },
            Need { what: "b", is_there: |root| root.join("b").is_dir(), get: &["mkdir", "b"] },
        ];
        let root = env::temp_dir().join(format!("raidlab-bits-{}", std::process::id()));
        std::fs::create_dir(&root).expect("a directory");
        let told = || missing(&needs, &root, false).map(Need::told);
        let before = (told(), told());
        let is_left = missing(&needs, &root, true).is_some();
        std::fs::remove_dir_all(&root).expect("is there");
        let expected = Some("needs b: mkdir b".to_owned());
        assert_eq!(before, (expected.clone(), expected));
        assert!(!is_left);
    }
}
