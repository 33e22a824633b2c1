//! How near the model comes to a kernel: cells are drawn, run on both and compared.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How it is used.
const USAGE: &str = "\
usage: cargo xtask fidelity [--seed N] [--cells N] [--kernel 6.1|6.12] [--stored] [--minutes N] [--threads N]
                            [--worst N] [--commit NAME]
       cargo xtask fidelity --trust [--record]

  Draws cells by the generator of the kernel lab (docs/kernel-lab.md), runs them on a kernel in virtual time and on the
  model, with the same drives, and prints by group: errors, orderings with limits, false differences, what a naive
  guess is worth, and the kernel against itself. What was run is kept in target/fidelity, and the next call goes on
  from there. Needs the kernel (cargo xtask kernel VERSION) and the guest's programs (cargo xtask kernel programs).

  --seed N      of the drawing; 1, if not said
  --cells N     the first so many of it; 300, if not said
  --kernel      6.12, if not said
  --stored      takes cells of the same seed, kernel and drives from crates/kernel-study/cells, and runs the others
  --minutes N   begins no cell of the kernel after so many; with 0 only what is there is compared, which needs no kernel
  --threads N   as many as there are processors, if not said
  --worst N     lists so many cells with the largest errors; 20, if not said
  --commit NAME also prints a row of the record in docs/fidelity.md

  --trust       compares crates/results/src/trust.json, from which reports tell how far predictions can be trusted, with
                today's model and the measured cells of the repository; with --record writes it
";

/// Where measured cells are in the repository.
const STORED: &str = "crates/kernel-study/cells";
/// What reports tell of the model's error.
const TRUST: &str = "crates/results/src/trust.json";

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    seed: u64,
    cells: usize,
    kernel: String,
    stored: bool,
    /// For the kernel's part.
    run: Vec<String>,
    /// For the model's part.
    model: Vec<String>,
}

impl Options {
    /// `None` where the words are none of its own.
    fn parse(words: &[&str]) -> Option<Self> {
        let (mut seed, mut cells, mut kernel, mut stored) = (1, 300, "6.12".to_owned(), false);
        let (mut run, mut model) = (Vec::new(), Vec::new());
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().map(|value| (*value).to_owned());
            match *word {
                "--stored" => stored = true,
                "--seed" => seed = value()?.parse().ok()?,
                "--cells" => cells = value()?.parse().ok()?,
                "--kernel" => kernel = value().filter(|one| ["6.1", "6.12"].contains(&&**one))?,
                "--minutes" => run.extend(["--minutes".to_owned(), number(value()?)?]),
                "--threads" => {
                    let threads = number(value()?)?;
                    run.extend(["--threads".to_owned(), threads.clone()]);
                    model.extend(["--threads".to_owned(), threads]);
                }
                "--worst" => model.extend(["--worst".to_owned(), number(value()?)?]),
                "--commit" => model.extend(["--commit".to_owned(), value()?]),
                _ => return None,
            }
        }
        Some(Self { seed, cells, kernel, stored, run, model })
    }
}

impl Options {
    fn runs_nothing(&self) -> bool {
        let minutes = self.run.iter().position(|word| word == "--minutes");
        minutes.is_some_and(|at| self.run.get(at + 1).is_some_and(|value| value == "0"))
    }
}

fn number(word: String) -> Option<String> {
    word.parse::<u32>().is_ok().then_some(word)
}

/// Carries out what the words ask for; whether it succeeded.
pub(crate) fn task(root: &Path, words: &[&str]) -> io::Result<bool> {
    if words.iter().any(|word| ["--help", "-h"].contains(word)) {
        print!("{USAGE}");
        return Ok(true);
    }
    match words {
        ["--trust"] => return trust(root, false),
        ["--trust", "--record"] => return trust(root, true),
        _ => {}
    }
    match Options::parse(words) {
        Some(options) => run(root, &options),
        None => Err(io::Error::other(format!("{}: not understood\n{USAGE}", words.join(" ")))),
    }
}

fn run(root: &Path, options: &Options) -> io::Result<bool> {
    let program = build(root)?;
    let Options { seed, kernel, .. } = options;
    let own = root.join(format!("target/fidelity/linux-{kernel}-seed-{seed}.jsonl"));
    fs::create_dir_all(own.parent().unwrap_or(root))?;
    let beside = if options.stored { stored(root, kernel, *seed)? } else { Vec::new() };
    let first = options.cells.to_string();
    if !options.runs_nothing() && !kernel_part(root, &program, options, &own, &beside)? {
        return Ok(false);
    }
    let own = Some(own).filter(|path| path.exists());
    let files: Vec<PathBuf> = beside.into_iter().chain(own).collect();
    if files.is_empty() {
        let has = if options.stored { "has none of this seed and kernel" } else { "is not asked" };
        let what = format!(
            "nothing was measured yet: --minutes 0 runs nothing, and what the repository stores \
             (--stored) {has}"
        );
        return Err(io::Error::other(what));
    }
    let mut command = Command::new(&program);
    command.current_dir(root).arg("model").args(files).args(["--first", &first]);
    succeeded(command.args(&options.model))
}

/// Makes what reports tell of the model's error, and writes it or compares it with what is there.
fn trust(root: &Path, record: bool) -> io::Result<bool> {
    let program = build(root)?;
    let files = all_stored(root)?;
    let mut command = Command::new(&program);
    command.current_dir(root).arg("trust").args(files);
    if record {
        command.args(["--write", TRUST]);
    }
    succeeded(&mut command)
}

/// Runs on the kernel what is not there yet.
fn kernel_part(
    root: &Path,
    program: &Path,
    options: &Options,
    own: &Path,
    beside: &[PathBuf],
) -> io::Result<bool> {
    let (seed, first) = (options.seed.to_string(), options.cells.to_string());
    // A drawing begins as a larger one of its seed does: any number of cells goes on with the same file.
    let count = options.cells.max(600).to_string();
    let shards = own.with_extension("shards");
    // What a run that was killed had finished.
    if !joined(root, program, own, &shards)? {
        return Ok(false);
    }
    let mut command = Command::new(program);
    command.current_dir(root).arg("run").arg(&shards).args(["--kernel", &options.kernel]);
    command.args(["--seed", &seed, "--count", &count, "--first", &first]).args(&options.run);
    command.arg("--into").arg(own);
    for known in beside {
        command.arg("--beside").arg(known);
    }
    Ok(succeeded(&mut command)? && joined(root, program, own, &shards)?)
}

/// Adds what shards have to the file of cells, and removes them.
fn joined(root: &Path, program: &Path, own: &Path, shards: &Path) -> io::Result<bool> {
    if !shards.exists() {
        return Ok(true);
    }
    let mut command = Command::new(program);
    let joined = succeeded(command.current_dir(root).arg("join").arg(own).arg(shards))?;
    if joined {
        fs::remove_dir_all(shards)?;
    }
    Ok(joined)
}

/// The repository's files of measured cells.
fn all_stored(root: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(root.join(STORED))?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    Ok(files)
}

/// Those of a kernel and a seed: others have nothing to give.
fn stored(root: &Path, kernel: &str, seed: u64) -> io::Result<Vec<PathBuf>> {
    let mut files = all_stored(root)?;
    files.retain(|path| is_of(path, kernel, seed));
    Ok(files)
}

/// Whether the first line of a file names the kernel, of which the version is told, and the seed.
fn is_of(path: &Path, kernel: &str, seed: u64) -> bool {
    let text = fs::read_to_string(path).unwrap_or_default();
    let head = text.lines().next().unwrap_or_default();
    let head: serde_json::Value = serde_json::from_str(head).unwrap_or_default();
    let name = head["kernel"].as_str().unwrap_or_default();
    head["seed"] == seed && name.starts_with(&format!("linux-{kernel}-"))
}

/// The program that draws, runs and compares.
fn build(root: &Path) -> io::Result<PathBuf> {
    let mut command = crate::cargo(root);
    command.args([
        "build",
        "--release",
        "-q",
        "-p",
        "raidlab-kernel-study",
        "--bin",
        "kernel-cells",
    ]);
    if !succeeded(&mut command)? {
        return Err(io::Error::other("kernel-cells does not build"));
    }
    let metadata = crate::metadata(root, &["--no-deps"])?;
    let target = metadata["target_directory"].as_str().unwrap_or("target");
    Ok(Path::new(target).join("release/kernel-cells"))
}

fn succeeded(command: &mut Command) -> io::Result<bool> {
    Ok(command.status()?.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_of_a_kernel_and_a_seed_are_taken() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("is in the workspace");
        let names = |kernel: &str, seed: u64| -> Vec<String> {
            let files = stored(root, kernel, seed).expect("are there");
            files
                .iter()
                .map(|path| path.file_name().expect("a file").to_string_lossy().into())
                .collect()
        };
        let first = names("6.12", 1);
        let has = |name: &&str| first.iter().any(|one| one == name);
        assert!(["linux-6.12.jsonl", "linux-6.12-second.jsonl"].iter().all(has), "{first:?}");
        assert!(!has(&"linux-6.1.jsonl") && !has(&"linux-6.12-seed2.jsonl"), "{first:?}");
        assert_eq!(names("6.1", 1), ["linux-6.1.jsonl"]);
        assert_eq!(names("6.12", 4), ["linux-6.12-seed4.jsonl"]);
        assert!(names("6.12", 99).is_empty());
    }

    #[test]
    fn options_are_read_and_others_refused() {
        let plain = Options::parse(&[]).expect("all have defaults");
        assert_eq!((plain.seed, plain.cells, &*plain.kernel), (1, 300, "6.12"));
        assert!(!plain.stored && !plain.runs_nothing());
        let words =
            ["--seed", "7", "--kernel", "6.1", "--stored", "--minutes", "0", "--threads", "1"];
        let all = Options::parse(&words).expect("are known");
        assert_eq!((all.seed, &*all.kernel), (7, "6.1"));
        assert!(all.stored && all.runs_nothing());
        assert_eq!(all.run, ["--minutes", "0", "--threads", "1"]);
        assert_eq!(all.model, ["--threads", "1"]);
        for wrong in [&["--kernel", "5.10"][..], &["--cells"], &["--minutes", "soon"], &["what"]] {
            assert_eq!(Options::parse(wrong), None, "{wrong:?}");
        }
    }
}
