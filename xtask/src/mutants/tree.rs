//! A copy of the repository in which mutants are switched, and what is built of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::list::{Mutant, PACKAGES};
use super::switch::{Laid, Reach, Source, Switch, guilty};

/// Whose tests mutants of the population meet: the packages they are in, and the simulator. The checker comes after all
/// tests.
pub(crate) fn tested() -> Vec<String> {
    PACKAGES.into_iter().chain(["sim"]).map(str::to_owned).collect()
}

/// Every package with tests but the checker's own, for bugs that may be anywhere.
pub(crate) fn all_packages(root: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root.join("crates"))? {
        let path = entry?.path();
        if path.join("src").is_dir() {
            names.push(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
        }
    }
    names.retain(|name| name != "checker" && name != "allocator");
    names.sort();
    Ok(names)
}

/// Asks which mutant is on. A function that the compiler may call has to be `const`, and there it cannot ask: it is
/// told no. The feature for that is the reason why `RUSTC_BOOTSTRAP` is set, for this crate alone.
const SWITCH: &str = include_str!("asked.rs");
const SWITCH_NAME: &str = "mutant_switch";
const SWITCH_MANIFEST: &str =
    "[package]\nname = \"mutant-switch\"\nversion = \"0.0.0\"\nedition = \"2024\"\n";

/// The compiler's errors by which a mutant's own text can never be right, wherever its switch is: of types, and of
/// matches and structs that lack something.
const FINAL: [&str; 7] = ["E0004", "E0063", "E0277", "E0308", "E0369", "E0599", "E0600"];

/// How a mutant is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// By a switch.
    Switched(Reach),
    /// By a build of its own.
    Rebuilt,
    /// Not at all: it does not compile.
    Unviable,
}

/// A program with tests.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// The package's directory in `crates`.
    pub(crate) package: String,
    /// Its name.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// Its tests that are not run.
    pub(crate) left_out: Vec<String>,
}

/// The copy.
pub(crate) struct Tree<'a> {
    /// Where it is.
    pub(crate) path: PathBuf,
    built: PathBuf,
    /// Whose tests are built.
    tested: Vec<&'a str>,
    mutants: &'a [Mutant],
    sources: BTreeMap<&'a str, Source>,
    spans: Vec<Range<usize>>,
    /// By mutant.
    pub(crate) ways: Vec<Way>,
    laid: BTreeMap<&'a str, Vec<Laid>>,
}

/// The source of each file with mutants.
pub(crate) fn sources<'a>(
    root: &Path,
    mutants: &'a [Mutant],
) -> io::Result<BTreeMap<&'a str, Source>> {
    let files: BTreeSet<&str> = mutants.iter().map(|mutant| &mutant.file[..]).collect();
    let read = |file: &'a str| {
        let source = Source::parse(fs::read_to_string(root.join(file))?);
        Ok((file, source.map_err(|error| io::Error::other(format!("{file}: {error}")))?))
    };
    files.into_iter().map(read).collect()
}

impl<'a> Tree<'a> {
    /// Copies the repository to `path`, and lays a switch for each mutant.
    pub(crate) fn lay(
        root: &Path,
        place: &Path,
        mutants: &'a [Mutant],
        tested: &'a [String],
    ) -> io::Result<Self> {
        let path = place.join("tree");
        copy(root, &path)?;
        let own = path.join("crates/mutant-switch");
        write(&own.join("Cargo.toml"), SWITCH_MANIFEST)?;
        write(&own.join("src/lib.rs"), SWITCH)?;
        let packages: BTreeSet<&str> = mutants.iter().map(Mutant::package).collect();
        for package in packages {
            let manifest = path.join("crates").join(package).join("Cargo.toml");
            let with = "[dependencies]\nmutant-switch = { path = \"../mutant-switch\" }\n";
            let text = fs::read_to_string(root.join("crates").join(package).join("Cargo.toml"))?;
            write(&manifest, &text.replacen("[dependencies]\n", with, 1))?;
        }
        let sources = sources(root, mutants)?;
        let spans: Vec<_> =
            mutants.iter().map(|it| sources[&it.file[..]].bytes(&it.span)).collect();
        let way = |(mutant, span): (&Mutant, &Range<usize>)| {
            let source = &sources[&mutant.file[..]];
            let reach = if mutant.is_body { Reach::Body } else { Reach::Expression };
            source.host(span, reach).map_or(Way::Rebuilt, |_| Way::Switched(reach))
        };
        let ways = mutants.iter().zip(&spans).map(way).collect();
        let built = place.join("build");
        let tested = tested.iter().map(String::as_str).collect();
        let laid = BTreeMap::new();
        let mut tree = Self { path, built, tested, mutants, sources, spans, ways, laid };
        let files: Vec<&str> = tree.sources.keys().copied().collect();
        files.into_iter().try_for_each(|file| tree.write_switches(file))?;
        Ok(tree)
    }

    /// Whether no switch is on where the compiler calls what has this mutant.
    pub(crate) fn is_const(&self, number: usize) -> bool {
        self.sources[&self.mutants[number].file[..]].is_const(&self.spans[number])
    }

    fn write_switches(&mut self, file: &'a str) -> io::Result<()> {
        let source = &self.sources[file];
        let switch = |number: usize| {
            let Way::Switched(reach) = self.ways[number] else { return None };
            let span = self.spans[number].clone();
            let host = source.host(&span, reach)?;
            Some(Switch {
                number,
                host,
                span,
                replacement: self.mutants[number].replacement.clone(),
            })
        };
        let of_file = (0..self.mutants.len()).filter(|number| self.mutants[*number].file == file);
        let (text, laid) = source.switched(of_file.filter_map(switch).collect());
        self.laid.insert(file, laid);
        write(&self.path.join(file), &text)
    }

    /// Puts a mutant into its file for good, without any switch there; [`Self::put_back`] ends that.
    pub(crate) fn put(&self, number: usize) -> io::Result<()> {
        let mutant = &self.mutants[number];
        let source = &self.sources[&mutant.file[..]];
        let text = source.replaced(&self.spans[number], &mutant.replacement);
        write(&self.path.join(&mutant.file), &text)
    }

    /// Ends [`Self::put`].
    pub(crate) fn put_back(&mut self, number: usize) -> io::Result<()> {
        let mutants = self.mutants;
        self.write_switches(&mutants[number].file)
    }

    /// Builds all tests; mutants that do not compile leave on the way.
    pub(crate) fn build(&mut self) -> io::Result<Vec<Program>> {
        loop {
            // Quicker than building, and mostly enough to find them.
            let errors = self.compile(&mut self.cargo(&["check", "--lib"], &self.tested))?.1;
            if errors.is_empty() {
                let (programs, errors) =
                    self.compile(&mut self.cargo(&["test", "--no-run"], &self.tested))?;
                if errors.is_empty() {
                    return Ok(programs);
                }
                self.take_out(&errors)?;
            } else {
                self.take_out(&errors)?;
            }
        }
    }

    /// Builds the tests of one package; `None` where they do not compile.
    pub(crate) fn build_package(&self, package: &str) -> io::Result<Option<Vec<Program>>> {
        let (programs, errors) =
            self.compile(&mut self.cargo(&["test", "--no-run"], &[package]))?;
        Ok(errors.is_empty().then_some(programs))
    }

    /// Builds the checker, with optimisation.
    pub(crate) fn build_checker(&self) -> io::Result<PathBuf> {
        let mut command = self.cargo(&["build", "--profile", "checker"], &["cli"]);
        if !self.compile(&mut command)?.1.is_empty() {
            return Err(io::Error::other("the checker cannot be built with the mutants in it"));
        }
        Ok(self.built.join("checker/raidlab"))
    }

    fn cargo(&self, arguments: &[&str], packages: &[&str]) -> Command {
        let mut command = crate::cargo(&self.path);
        command.args(arguments).args(["--offline", "--message-format=json"]);
        packages.iter().for_each(|name| {
            command.args(["--package", &format!("raidlab-{name}")]);
        });
        command.env("CARGO_TARGET_DIR", &self.built).env("RUSTFLAGS", "--cap-lints=allow");
        command.env("RUSTC_BOOTSTRAP", SWITCH_NAME).stderr(Stdio::null());
        if arguments[0] == "check" {
            command.arg("--keep-going");
        }
        command
    }

    /// Runs cargo: the programs with tests and the compiler's errors.
    fn compile(&self, command: &mut Command) -> io::Result<(Vec<Program>, Vec<Value>)> {
        let (status, text) = crate::child::output(command)?;
        let (mut programs, mut errors) = (Vec::new(), Vec::new());
        for message in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            programs.extend(program(&message));
            let said = &message["message"];
            if said["level"] == "error" && said["spans"].as_array().is_some_and(|it| !it.is_empty())
            {
                errors.push(said.clone());
            }
        }
        if !status.success() && errors.is_empty() {
            return Err(io::Error::other(format!("cargo failed in {}", self.path.display())));
        }
        Ok((programs, errors))
    }

    /// Finds the mutants that errors come from: their switches are laid further around, or they are unviable.
    fn take_out(&mut self, errors: &[Value]) -> io::Result<()> {
        let mut found = BTreeMap::new();
        for error in errors {
            let own = self.guilty_of(error);
            if own.is_empty() {
                let text = error["rendered"].as_str().unwrap_or_default();
                return Err(io::Error::other(format!("no mutant made this error:\n{text}")));
            }
            for (number, is_final) in own {
                *found.entry(number).or_insert(false) |= is_final;
            }
        }
        println!("mutants: {} do not compile where they are", found.len());
        let mut files = BTreeSet::new();
        for (number, is_final) in found {
            self.ways[number] = match self.ways[number] {
                _ if is_final => Way::Unviable,
                Way::Switched(Reach::Expression) => Way::Switched(Reach::Body),
                _ => Way::Rebuilt,
            };
            files.insert(&self.mutants[number].file[..]);
        }
        files.into_iter().try_for_each(|file| self.write_switches(file))
    }

    /// The mutants that an error comes from, and whether it is theirs wherever they are.
    fn guilty_of(&self, error: &Value) -> Vec<(usize, bool)> {
        let code = error["code"]["code"].as_str().unwrap_or_default();
        let spans = error["spans"].as_array().into_iter().flatten();
        let mut found = Vec::new();
        for span in spans.filter(|span| span["is_primary"] == true) {
            let Some((file, range)) = place(span, &self.laid) else { continue };
            let (numbers, is_own) = guilty(&self.laid[file], &range);
            // What the whole function may not do by itself, it may not do without a switch either.
            let is_final = |number: usize| {
                FINAL.contains(&code) || self.ways[number] == Way::Switched(Reach::Body)
            };
            found.extend(numbers.into_iter().map(|number| (number, is_own && is_final(number))));
        }
        found
    }
}

/// Where a span of the compiler's is; of what a macro made, where the macro is used.
fn place<'a>(span: &Value, laid: &BTreeMap<&'a str, Vec<Laid>>) -> Option<(&'a str, Range<usize>)> {
    let name = span["file_name"].as_str()?;
    let byte = |key: &str| span[key].as_u64().map(|byte| byte as usize);
    match laid.get_key_value(name) {
        Some((file, _)) => Some((file, byte("byte_start")?..byte("byte_end")?)),
        None => place(span["expansion"].get("span")?, laid),
    }
}

/// The program with tests that a message of cargo's is about.
fn program(message: &Value) -> Option<Program> {
    let path = PathBuf::from(message["executable"].as_str()?);
    let manifest = Path::new(message["manifest_path"].as_str()?);
    let is_test = message["profile"]["test"] == true;
    is_test.then_some(())?;
    let target = &message["target"];
    Some(Program {
        package: manifest.parent()?.file_name()?.to_str()?.to_owned(),
        name: target["name"].as_str()?.to_owned(),
        path,
        left_out: Vec::new(),
    })
}

/// Takes away the files below a directory of the copy at `to` that have none of these names.
fn take_away(to: &Path, directory: &Path, names: &BTreeSet<&str>) -> io::Result<()> {
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let path = entry?.path();
        let name = path.strip_prefix(to).ok().and_then(Path::to_str).unwrap_or_default();
        if path.is_dir() {
            take_away(to, &path, names)?;
        } else if !names.contains(name) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// Copies what git knows of or would take, and takes out what went.
fn copy(root: &Path, to: &Path) -> io::Result<()> {
    let mut git = Command::new("git");
    git.arg("-C").arg(root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let output = git.output()?;
    if !output.status.success() {
        return Err(io::Error::other("`mutants` needs the repository of the sources"));
    }
    let names = String::from_utf8_lossy(&output.stdout).into_owned();
    let names: BTreeSet<&str> = names.split_terminator('\0').collect();
    // Of a file that was taken out or moved, cargo would still build the one that is left.
    take_away(to, &to.join("crates"), &names)?;
    for name in names {
        match fs::read(root.join(name)) {
            Ok(text) => write_bytes(&to.join(name), &text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    write_bytes(path, text.as_bytes())
}

/// Writes a file, if it holds anything else: cargo builds anew what is newer.
fn write_bytes(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_are_placed_where_a_macro_is_used() {
        let laid = BTreeMap::from([("a.rs", Vec::new())]);
        let own = json!({"file_name": "a.rs", "byte_start": 3, "byte_end": 5});
        let within = json!({"file_name": "std.rs", "expansion": {"span": own}});
        assert_eq!(place(&own, &laid), Some(("a.rs", 3..5)));
        assert_eq!(place(&within, &laid), Some(("a.rs", 3..5)));
        assert_eq!(place(&json!({"file_name": "b.rs", "expansion": null}), &laid), None);
    }

    #[test]
    fn programs_with_tests_are_known_by_their_packages() {
        let message = |test: bool| {
            json!({"executable": "/t/model-1", "manifest_path": "/r/crates/core/Cargo.toml",
                "profile": {"test": test}, "target": {"name": "model", "kind": ["test"]}})
        };
        let found = program(&message(true)).expect("has tests");
        assert_eq!((&found.package[..], &found.name[..]), ("core", "model"));
        assert!(program(&message(false)).is_none() && program(&json!({})).is_none());
    }

    #[test]
    fn what_was_moved_is_taken_away() {
        let root = std::env::temp_dir().join(format!("raidlab-taken-away-{}", std::process::id()));
        let source = root.join("crates/core/src");
        fs::create_dir_all(source.join("stack")).expect("can be made");
        for name in ["stack.rs", "stack/mod.rs"] {
            fs::write(source.join(name), "").expect("can be written");
        }
        let names = BTreeSet::from(["crates/core/src/stack/mod.rs"]);
        take_away(&root, &root.join("crates"), &names).expect("can be taken away");
        let left = [source.join("stack.rs").exists(), source.join("stack/mod.rs").exists()];
        fs::remove_dir_all(&root).expect("can be removed");
        assert_eq!(left, [false, true]);
    }
}
