//! `cargo xtask python`: builds the Python package and tests it.
//!
//! Its tests compare it with the program of the same tree. Examples of `docs/python.md`, and the notebooks in
//! `docs/notebooks`, which are scripts whose cells begin with `# %%`, are run as scripts, or with `--notebooks` as
//! notebooks. What tests need comes from pip, by the versions and hashes in `python/requirements`, and is kept in
//! `target/python`.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::fuzz::target_directory;
use crate::markdown::{Block, Document};
use crate::suite::Outcome;
use crate::{cargo, docs};

mod wheel;

pub(crate) use wheel::{try_in_clean_environment, wheel};

/// The document whose examples are run.
const DOCUMENT: &str = "docs/python.md";
/// What they are called as a script.
const EXAMPLES: &str = "document";
/// Scripts with cells.
const NOTEBOOKS: &str = "docs/notebooks";
/// What scripts read of the repository.
const READ: [&str; 2] = ["studies", "drives"];
/// What is asked of Python: the pinned versions of what tests need are for these.
const PYTHON: &str = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))";

/// What to do.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    /// This program instead of building one.
    with: Option<PathBuf>,
    /// Try so many mutated studies, and nothing else.
    mutants: Option<u32>,
    /// Run notebooks as notebooks, and nothing else.
    notebooks: bool,
    /// One of the scripts, by this number, instead of all.
    sample: Option<usize>,
}

impl Options {
    fn parse(arguments: &[&str]) -> Option<Self> {
        let mut options = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match *argument {
                "--with" => options.with = Some(PathBuf::from(arguments.next()?)),
                "--mutate" => options.mutants = Some(arguments.next()?.parse().ok()?),
                "--notebooks" => options.notebooks = true,
                "--sample" => options.sample = Some(arguments.next()?.parse().ok()?),
                _ => return None,
            }
        }
        Some(options)
    }
}

/// What the command line asks for.
pub(crate) fn task(root: &Path, arguments: &[&str]) -> io::Result<bool> {
    let usage = "usage: cargo xtask python [--with FILE] [--sample N] [--notebooks | --mutate N]";
    let options = Options::parse(arguments).ok_or_else(|| io::Error::other(usage))?;
    Ok(match run(root, &options)? {
        Outcome::Passed => true,
        Outcome::Failed => false,
        Outcome::LeftOut(why) => {
            println!("skipped: python: {why}");
            true
        }
    })
}

fn run(root: &Path, options: &Options) -> io::Result<Outcome> {
    let place = target_directory(root).join("python");
    let wanted: &[&str] = if options.notebooks { &["test", "notebooks"] } else { &["test"] };
    let python = match environment(root, &place.join("environment"), wanted)? {
        Ok(python) => python,
        Err(why) => return Ok(Outcome::LeftOut(why)),
    };
    let Some(package) = package(root, &place)? else { return Ok(Outcome::Failed) };
    let python = Python { python, package: Some(package) };
    if let Some(count) = options.mutants {
        return mutants(root, &python, count).map(Outcome::from);
    }
    if options.notebooks {
        return notebooks(&python, &scripts(root, &place)?).map(Outcome::from);
    }
    let program = match &options.with {
        Some(program) => fs::canonicalize(program)?,
        None => match program(root)? {
            Some(program) => program,
            None => return Ok(Outcome::Failed),
        },
    };
    let scripts = scripts(root, &place)?;
    let good = types(root, &python, &scripts)? & tests(root, &python, &program)?;
    Ok((good & examples(&python, &scripts, options.sample)?).into())
}

/// A Python, with the package or where it is installed.
struct Python {
    python: PathBuf,
    /// Where the package is, unless it is installed.
    package: Option<PathBuf>,
}

impl Python {
    /// Python in a directory that is not that of the sources, which are without their native half.
    fn command(&self, directory: &Path) -> Command {
        let mut command = Command::new(&self.python);
        command.current_dir(directory).env("MPLBACKEND", "Agg").env("RAIDLAB_STORE", "off");
        command.env("PYTHONDONTWRITEBYTECODE", "1").env_remove("PYTHONPATH");
        if let Some(package) = &self.package {
            command.env("PYTHONPATH", package);
        }
        command
    }
}

/// Runs a command that tells the user what it does.
fn done(command: &mut Command) -> io::Result<bool> {
    Ok(command.status()?.success())
}

/// An environment with what some files of `python/requirements` name, its Python; or what is missing. One that is there
/// is taken as long as they are the same.
fn environment(root: &Path, path: &Path, wanted: &[&str]) -> io::Result<Result<PathBuf, String>> {
    let python = Command::new("python3").args(["-c", PYTHON]).stderr(Stdio::null()).status();
    if !python.is_ok_and(|status| status.success()) {
        return Ok(Err("needs python3, 3.11 or newer, with venv".to_owned()));
    }
    for name in wanted {
        let list = root.join("python/requirements").join(format!("{name}.txt"));
        let (text, kept) = (fs::read(&list)?, path.join(format!("{name}.txt")));
        if fs::read(&kept).is_ok_and(|kept| kept == text) {
            continue;
        }
        if kept.exists() || !path.exists() {
            println!("python: making {}", path.display());
            fresh(path)?;
        }
        let mut pip = Command::new(path.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        if !done(pip.args(["--require-hashes", "--only-binary", ":all:", "-r"]).arg(&list))? {
            return Ok(Err(format!("pip cannot get what python/requirements/{name}.txt names")));
        }
        fs::write(kept, text)?;
    }
    Ok(Ok(path.join("bin/python")))
}

/// An environment without packages.
fn fresh(path: &Path) -> io::Result<()> {
    if path.exists() {
        fs::remove_dir_all(path)?;
    }
    fs::create_dir_all(path)?;
    match done(Command::new("python3").args(["-m", "venv"]).arg(path))? {
        true => Ok(()),
        false => Err(io::Error::other("python3 makes no environment")),
    }
}

/// Builds something of the workspace as tests have it; true if that went well. Beside this program, as that uses
/// features of crates which all would be built again without.
fn built(root: &Path, package: &str, more: &[&str]) -> io::Result<bool> {
    let mut build = cargo(root);
    build.args(["build", "--quiet", "--locked", "--package", "xtask", "--package", package]);
    done(build.args(more))
}

/// Builds the native half of crates that tests have built, and puts it beside the sources; `None` when that fails. (A
/// wheel by maturin would build pyo3 anew each time, as its settings are others.)
fn package(root: &Path, place: &Path) -> io::Result<Option<PathBuf>> {
    if !built(root, "raidlab-python", &["--features", "raidlab-python/panics"])? {
        return Ok(None);
    }
    let package = place.join("package");
    if package.exists() {
        fs::remove_dir_all(&package)?;
    }
    fs::create_dir_all(package.join("raidlab"))?;
    for entry in fs::read_dir(root.join("python/python/raidlab"))? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            symlink(entry.path(), package.join("raidlab").join(entry.file_name()))?;
        }
    }
    let library = target_directory(root).join("debug/lib_raidlab.so");
    symlink(library, package.join("raidlab/_raidlab.abi3.so"))?;
    Ok(Some(package))
}

fn program(root: &Path) -> io::Result<Option<PathBuf>> {
    let path = target_directory(root).join("debug/raidlab");
    Ok(built(root, "raidlab-cli", &[])?.then_some(path))
}

fn mutants(root: &Path, python: &Python, count: u32) -> io::Result<bool> {
    let mut command = python.command(&root.join("python/tests"));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    command.arg("mutate.py").args(["--count", &count.to_string()]);
    done(command.args(["--jobs", &cores.to_string(), "--studies"]).arg(root.join("studies")))
}

/// Package and scripts agree in their types, and the stubs are those of the native half.
fn types(root: &Path, python: &Python, scripts: &[Script]) -> io::Result<bool> {
    let place = target_directory(root).join("python");
    let mut checked = python.command(&place);
    // Dask, pandas and pyarrow are without types.
    checked.args(["-m", "mypy", "--strict", "--no-error-summary", "--ignore-missing-imports"]);
    checked.arg("--untyped-calls-exclude=distributed");
    checked.arg(root.join("python/python/raidlab")).args(scripts.iter().map(Script::path));
    let mut stubs = python.command(&place);
    stubs.args(["-m", "mypy.stubtest", "--concise", "raidlab._raidlab", "--allowlist"]);
    stubs.arg(root.join("python/stubtest.txt"));
    Ok(done(&mut checked)? & done(&mut stubs)?)
}

fn tests(root: &Path, python: &Python, program: &Path) -> io::Result<bool> {
    let mut tests = python.command(&target_directory(root).join("python"));
    tests.args(["-m", "pytest", "--quiet", "--import-mode=importlib", "-p", "no:cacheprovider"]);
    done(tests.arg(root.join("python/tests")).env("RAIDLAB_PROGRAM", program))
}

/// A script in a directory of its own, with what it reads and nothing else.
struct Script {
    name: String,
    directory: PathBuf,
}

impl Script {
    fn make(root: &Path, place: &Path, name: &str, text: &str) -> io::Result<Self> {
        let directory = place.join("examples").join(name);
        if directory.exists() {
            fs::remove_dir_all(&directory)?;
        }
        fs::create_dir_all(&directory)?;
        for read in READ {
            symlink(root.join(read), directory.join(read))?;
        }
        let script = Self { name: name.to_owned(), directory };
        fs::write(script.path(), text)?;
        Ok(script)
    }

    fn path(&self) -> PathBuf {
        self.directory.join(format!("{}.py", self.name))
    }
}

/// The examples of the document as one script, and the notebooks.
fn scripts(root: &Path, place: &Path) -> io::Result<Vec<Script>> {
    let text = examples_of(&fs::read_to_string(root.join(DOCUMENT))?);
    let mut all = vec![Script::make(root, place, EXAMPLES, &text)?];
    for entry in fs::read_dir(root.join(NOTEBOOKS))? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "py") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            all.push(Script::make(root, place, &name, &fs::read_to_string(&path)?)?);
        }
    }
    all.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(all)
}

/// Runs the scripts, or one of them.
fn examples(python: &Python, scripts: &[Script], sample: Option<usize>) -> io::Result<bool> {
    let chosen = sample.map(|sample| sample % scripts.len());
    let mut passed = true;
    for (at, script) in scripts.iter().enumerate() {
        if chosen.is_none_or(|chosen| chosen == at) {
            let good = done(python.command(&script.directory).arg(script.path()))?;
            println!("python: {}: {}", script.name, if good { "ok" } else { "FAILED" });
            passed &= good;
        }
    }
    Ok(passed)
}

/// Runs the notebooks in a kernel of Jupyter, each as a notebook of its own, which stays for readers.
fn notebooks(python: &Python, scripts: &[Script]) -> io::Result<bool> {
    let mut passed = true;
    for script in scripts.iter().filter(|script| script.name != EXAMPLES) {
        let mut jupytext = python.command(&script.directory);
        jupytext.args([
            "-m",
            "jupytext",
            "--quiet",
            "--to",
            "ipynb",
            "--execute",
            "--set-kernel",
            "python3",
        ]);
        // Plots are drawn into the notebook.
        let good = done(jupytext.arg(script.path()).env_remove("MPLBACKEND"))?;
        let notebook = script.path().with_extension("ipynb");
        println!("python: {}: {}", notebook.display(), if good { "ok" } else { "FAILED" });
        passed &= good;
    }
    Ok(passed)
}

/// The examples of a document as a script, with blank lines for all else, so that errors name its lines.
fn examples_of(text: &str) -> String {
    let document = Document::parse(text);
    let mut lines: Vec<String> = vec![String::new(); text.lines().count()];
    let is_run =
        |block: &&Block| block.language == "python" && docs::block::reason(block).is_none();
    for block in document.blocks.iter().filter(is_run) {
        for (at, line) in block.lines.iter().enumerate() {
            lines[block.line - 1 + at].clone_from(line);
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_stand_at_their_lines() {
        let text = "# A\n\n```python\na = 1\n```\n\n<!-- not run: a cluster -->\n```python\nb = a\n```\n\n\
                    ```python\nprint(a)\n```\n";
        let script = examples_of(text);
        let lines: Vec<&str> = script.lines().collect();
        assert_eq!((lines[3], lines[8], lines[12]), ("a = 1", "", "print(a)"));
    }

    #[test]
    fn options_are_read() {
        let parsed = Options::parse(&["--with", "a", "--mutate", "5", "--notebooks"]);
        let with = Some("a".into());
        let options = Options { with, mutants: Some(5), notebooks: true, sample: None };
        assert_eq!(parsed, Some(options));
        assert_eq!(Options::parse(&["--sample", "x"]), None);
        assert_eq!(Options::parse(&["--nothing"]), None);
    }
}
