//! Fuzzing with libFuzzer: programs of `crates/fuzz`, built by the pinned toolchain with coverage of the compiler's
//! own, and the corpora that tests replay.
//!
//! `RUSTC_BOOTSTRAP=1` lets the stable compiler take what is not stable yet: the sanitizers' flags. They are given
//! for a named target, so that build scripts and macros stay plain, and what is built lies in a directory of its own.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::corpus;

/// How it is used.
pub(crate) const USAGE: &str = "\
usage: cargo xtask fuzz [TARGET...] [--runs N] [--seconds N] [--minimise] [--plain]

  Without a target: lists them. With targets: fuzzes one after the other with libFuzzer, from the corpus in the
  tree, from what earlier runs found (target/fuzz/corpus) and, for studies and drives, from the files of the tree.
  What makes one panic, hang or take too much memory goes to target/fuzz/artifacts; the run ends with it.

  --runs N      ends after so many executions
  --seconds N   ends after so much time; 60 s where neither is said
  --minimise    fuzzes only where a length is said; then writes as few inputs as reach all that was
                reached to crates/fuzz/corpora, which tests replay
  --plain       without AddressSanitizer: twice as fast, for code without `unsafe`

examples:
  cargo xtask fuzz                                  which targets there are
  cargo xtask fuzz study                            a minute
  cargo xtask fuzz fuse tar --runs 100000000 --plain
  cargo xtask fuzz metadata --seconds 14400
  cargo xtask fuzz metadata --minimise
";

/// Where a target's program is written in.
const PROGRAMS: &str = "crates/fuzz/programs";
/// Where the corpora are that tests replay, and words that help to find more.
const CORPORA: &str = "crates/fuzz/corpora";
const DICTIONARIES: &str = "crates/fuzz/dictionaries";
/// Files of the tree to begin with.
const SEEDS: [(&str, &str); 2] = [("study", "studies"), ("drive", "drives")];
/// Targets that are more than a parser, and what all may take: MiB in all and in one piece, seconds for an input,
/// bytes of an input.
const LARGE: [&str; 2] = ["assembly", "metadata"];
const MEMORY: [&str; 2] = ["-rss_limit_mb=512", "-malloc_limit_mb=256"];
const MORE_MEMORY: [&str; 2] = ["-rss_limit_mb=2048", "-malloc_limit_mb=512"];
const LIMITS: [&str; 2] = ["-timeout=10", "-max_len=8192"];
const SECONDS: u64 = 60;
/// The longest input, and the bytes of all inputs of a target, that go into the tree.
const LONGEST: u64 = 8192;
const MOST_BYTES: usize = 180_000;

/// Inputs that reach every edge, and as often; as few as reach every edge however often.
const ALL: [&str; 1] = ["-merge=1"];
const EDGES: [&str; 2] = ["-set_cover_merge=1", "-use_counters=0"];

/// What every sanitized build is for.
pub(crate) const TRIPLE: &str = "x86_64-unknown-linux-gnu";
pub(crate) const SANITIZER: &str = "-Zsanitizer=address";
/// Coverage as libFuzzer reads it: counters of edges, where they lie, and what is compared.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing";

/// What is asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    targets: Vec<String>,
    runs: Option<u64>,
    seconds: Option<u64>,
    minimises: bool,
    is_plain: bool,
}

impl Options {
    /// Reads the arguments of the command; `None` where they make no sense.
    pub(crate) fn parse(arguments: &[&str]) -> Option<Self> {
        let mut options = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match *argument {
                "--runs" => options.runs = Some(arguments.next()?.parse().ok()?),
                "--seconds" => options.seconds = Some(arguments.next()?.parse().ok()?),
                "--minimise" => options.minimises = true,
                "--plain" => options.is_plain = true,
                target if target.starts_with('-') => return None,
                target => options.targets.push(target.to_owned()),
            }
        }
        let asks = options != Self { targets: options.targets.clone(), ..Self::default() };
        (!options.targets.is_empty() || !asks).then_some(options)
    }

    /// How long libFuzzer runs; `None` when only to minimise.
    fn length(&self) -> Option<Vec<String>> {
        let runs = self.runs.map(|runs| format!("-runs={runs}"));
        let seconds = self.seconds.map(|seconds| format!("-max_total_time={seconds}"));
        let said: Vec<String> = runs.into_iter().chain(seconds).collect();
        match (said.is_empty(), self.minimises) {
            (true, true) => None,
            (true, false) => Some(vec![format!("-max_total_time={SECONDS}")]),
            _ => Some(said),
        }
    }
}

/// Fuzzes what is asked for, or lists what there is; true if nothing was found.
pub(crate) fn run(root: &Path, options: &Options) -> io::Result<bool> {
    let known = targets(root)?;
    if options.targets.is_empty() {
        return list(root, &known);
    }
    if let Some(strange) = options.targets.iter().find(|target| !known.contains(*target)) {
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let reason = format!("`{strange}` is no target; there are {}", known.join(", "));
        return Err(io::Error::other(reason));
    }
    let place = place(root);
    let built = build(root, &place, options)?;
    for target in &options.targets {
        let corpus = gather(root, &place, target)?;
        let program = built.join(format!("fuzz-{target}"));
        let fuzzer = Fuzzer { root, program, target, corpus, place: &place };
        let found_nothing = match options.length() {
            Some(length) => fuzzer.fuzz(&length)?,
            None => true,
        };
        if !found_nothing || options.minimises && !fuzzer.minimise()? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn targets(root: &Path) -> io::Result<BTreeSet<String>> {
    let stem = |path: PathBuf| Some(path.file_stem()?.to_str()?.to_owned());
    Ok(files(&root.join(PROGRAMS))?.into_iter().filter_map(stem).collect())
}

fn list(root: &Path, targets: &BTreeSet<String>) -> io::Result<bool> {
    for target in targets {
        let packed = fs::read(packed(root, target)).unwrap_or_default();
        let inputs = corpus::unpack(&packed).map_or(0, |inputs| inputs.len());
        println!("{target:12} {inputs:5} inputs in {:7} bytes", packed.len());
    }
    println!("\n`cargo xtask fuzz TARGET` fuzzes one for a minute; --help says more");
    Ok(true)
}

fn packed(root: &Path, target: &str) -> PathBuf {
    root.join(CORPORA).join(target).with_extension("corpus")
}

/// The files in a directory.
fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    Ok(entries.iter().map(fs::DirEntry::path).filter(|path| path.is_file()).collect())
}

/// Where everything lies that fuzzing makes.
fn place(root: &Path) -> PathBuf {
    target_directory(root).join("fuzz")
}

/// Where cargo builds.
pub(crate) fn target_directory(root: &Path) -> PathBuf {
    root.join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// Cargo with flags for what it builds for [`TRIPLE`], in a directory of its own.
pub(crate) fn sanitized(root: &Path, flags: &str, place: &Path) -> Command {
    let mut command = crate::cargo(root);
    command.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", flags).env("CARGO_TARGET_DIR", place);
    command
}

/// Builds the programs; gives where they are.
fn build(root: &Path, place: &Path, options: &Options) -> io::Result<PathBuf> {
    let (flags, name) = match options.is_plain {
        true => (COVERAGE.to_owned(), "plain"),
        false => (format!("{COVERAGE} {SANITIZER}"), "address"),
    };
    let place = place.join(name);
    let mut command = sanitized(root, &flags, &place);
    command.args(["build", "--quiet", "--locked", "--package", "raidlab-fuzz"]);
    command.args(["--features", "libfuzzer", "--profile", "fuzz", "--target", TRIPLE]);
    options.targets.iter().for_each(|target| {
        command.args(["--bin", &format!("fuzz-{target}")]);
    });
    if !command.status()?.success() {
        return Err(io::Error::other("the programs for libFuzzer were not built"));
    }
    Ok(place.join(TRIPLE).join("fuzz"))
}

/// Puts the inputs of the tree beside those of earlier runs; gives where they are.
fn gather(root: &Path, place: &Path, target: &str) -> io::Result<PathBuf> {
    let corpus = place.join("corpus").join(target);
    fs::create_dir_all(&corpus)?;
    let packed = fs::read(packed(root, target)).unwrap_or_default();
    let inputs = corpus::unpack(&packed).ok_or_else(|| io::Error::other("a corpus is cut off"))?;
    for (index, input) in inputs.into_iter().enumerate() {
        fs::write(corpus.join(format!("tree-{index}")), input)?;
    }
    for (_, directory) in SEEDS.iter().filter(|(of, _)| *of == target) {
        for file in files(&root.join(directory))? {
            let name = file.file_name().unwrap_or_default();
            fs::copy(&file, corpus.join(name))?;
        }
    }
    Ok(corpus)
}

/// A program of a target.
struct Fuzzer<'a> {
    root: &'a Path,
    program: PathBuf,
    target: &'a str,
    corpus: PathBuf,
    place: &'a Path,
}

impl Fuzzer<'_> {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(self.root).args(LIMITS);
        command.args(if LARGE.contains(&self.target) { MORE_MEMORY } else { MEMORY });
        command
    }

    /// Fuzzes; true when nothing was found.
    fn fuzz(&self, length: &[String]) -> io::Result<bool> {
        let artifacts = self.place.join("artifacts").join(self.target);
        fs::create_dir_all(&artifacts)?;
        let mut command = self.command();
        command.args(length).args(["-print_final_stats=1", "-reload=0"]);
        command.arg(format!("-artifact_prefix={}/", artifacts.display()));
        let dictionary = self.root.join(DICTIONARIES).join(self.target).with_extension("dict");
        if dictionary.exists() {
            command.arg(format!("-dict={}", dictionary.display()));
        }
        println!("xtask: fuzzing {}", self.target);
        Ok(command.arg(&self.corpus).status()?.success())
    }

    /// Writes inputs into the tree: those that reach all that was reached, as often, or, where these are too many, as
    /// few as reach every edge.
    fn minimise(&self) -> io::Result<bool> {
        let Some(mut inputs) = self.merged(&ALL)? else { return Ok(false) };
        if keep_small(&mut inputs) > 0 {
            let Some(fewer) = self.merged(&EDGES)? else { return Ok(false) };
            inputs = fewer;
        }
        let left_out = keep_small(&mut inputs);
        let packed = corpus::pack(&mut inputs);
        fs::create_dir_all(self.root.join(CORPORA))?;
        fs::write(self::packed(self.root, self.target), &packed)?;
        let (count, bytes) = (inputs.len(), packed.len());
        println!("xtask: {}: {count} inputs in {bytes} bytes, {left_out} left out", self.target);
        Ok(true)
    }

    /// What is left of the corpus, but for inputs that are too long; `None` when that failed.
    fn merged(&self, how: &[&str]) -> io::Result<Option<Vec<Vec<u8>>>> {
        let merged = self.place.join("merged").join(self.target);
        if merged.exists() {
            fs::remove_dir_all(&merged)?;
        }
        fs::create_dir_all(&merged)?;
        let mut command = self.command();
        if !command.args(how).args([&merged, &self.corpus]).status()?.success() {
            return Ok(None);
        }
        let files = files(&merged)?.into_iter();
        let is_short = |path: &PathBuf| path.metadata().is_ok_and(|one| one.len() <= LONGEST);
        files.filter(is_short).map(fs::read).collect::<io::Result<_>>().map(Some)
    }
}

/// Leaves out the longest inputs, so that what is left is small together; gives how many.
fn keep_small(inputs: &mut Vec<Vec<u8>>) -> usize {
    inputs.sort_by_key(Vec::len);
    let mut bytes = 0;
    let fits = |input: &&Vec<u8>| {
        bytes += input.len() + 4;
        bytes <= MOST_BYTES
    };
    let kept = inputs.iter().take_while(fits).count();
    let left_out = inputs.len() - kept;
    inputs.truncate(kept);
    left_out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let none = Options::default();
        assert_eq!(Options::parse(&[]), Some(none));
        let all = ["tar", "--runs", "7", "fuse", "--plain", "--seconds", "8", "--minimise"];
        let targets = vec!["tar".to_owned(), "fuse".to_owned()];
        let (runs, seconds) = (Some(7), Some(8));
        let expected = Options { targets, runs, seconds, minimises: true, is_plain: true };
        assert_eq!(Options::parse(&all), Some(expected));
        for wrong in [&["--runs"][..], &["tar", "--runs", "x"], &["--plain"], &["tar", "--fast"]] {
            assert_eq!(Options::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_length_that_nobody_said_is_a_minute_of_fuzzing_or_none_of_minimising() {
        let length = |arguments: &[&str]| Options::parse(arguments).expect("is read").length();
        assert_eq!(length(&["tar"]), Some(vec!["-max_total_time=60".to_owned()]));
        assert_eq!(length(&["tar", "--runs", "5"]), Some(vec!["-runs=5".to_owned()]));
        assert_eq!(length(&["tar", "--minimise"]), None);
        assert_eq!(length(&["tar", "--minimise", "--runs", "5"]), Some(vec!["-runs=5".to_owned()]));
    }

    #[test]
    fn the_longest_inputs_are_left_out() {
        let mut inputs = vec![vec![1; MOST_BYTES - 5], vec![2; 1], vec![3; 2]];
        assert_eq!(keep_small(&mut inputs), 1);
        assert_eq!(inputs, [vec![2; 1], vec![3; 2]]);
    }
}
