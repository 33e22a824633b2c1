//! A work tree of another commit, with today's benches laid into it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::child;
use crate::targets::{self, Bench, Built};

/// Below the root of the repository: the work tree, what is built of it, what runs, and a lock.
const PLACE: &str = "target/against";
const SUPPORT: &str = "tests/support";
const MANIFEST: &str = "Cargo.toml";

/// The work tree, which goes when this is dropped.
pub(crate) struct Older {
    root: PathBuf,
    tree: PathBuf,
    commit: String,
    /// Locked as long as the work tree is there.
    _lock: File,
}

/// A bench of the other commit.
pub(crate) struct OlderBench {
    pub(crate) program: PathBuf,
    /// What is to be told about it.
    pub(crate) note: Option<String>,
}

/// The full name of a commit.
pub(crate) fn resolve(root: &Path, commit: &str) -> io::Result<String> {
    let name = format!("{commit}^{{commit}}");
    let arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options", &name];
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if !output.status.success() || text.is_empty() {
        return Err(io::Error::other(format!("there is no commit `{commit}` here")));
    }
    Ok(text)
}

impl Older {
    /// Checks a commit out; what a killed run left is replaced.
    pub(crate) fn check_out(root: &Path, commit: &str) -> io::Result<Self> {
        let place = root.join(PLACE);
        fs::create_dir_all(&place)?;
        let lock = File::create(place.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::other("another `bench --against` is under way here"));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let (root, tree) = (root.to_owned(), place.join("tree"));
        let older = Self { root, tree, commit: commit.to_owned(), _lock: lock };
        older.remove()?;
        let mut git = Command::new("git");
        git.arg("-C").arg(&older.root).args(["worktree", "add", "--quiet", "--detach"]);
        run(git.arg(&older.tree).arg(commit))?;
        Ok(older)
    }

    /// Where a program of either side is laid for a run.
    pub(crate) fn stand(&self) -> PathBuf {
        self.root.join(PLACE).join("running")
    }

    fn remove(&self) -> io::Result<()> {
        let git = |arguments: &[&str], path: Option<&Path>| {
            let mut git = Command::new("git");
            git.arg("-C").arg(&self.root).args(arguments).args(path);
            git.stdout(Stdio::null()).stderr(Stdio::null()).status()
        };
        // Twice `--force`: also one that was being made when its run was killed, which is locked.
        git(&["worktree", "remove", "--force", "--force"], Some(&self.tree))?;
        if self.tree.exists() {
            fs::remove_dir_all(&self.tree)?;
        }
        match fs::remove_file(self.stand()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        git(&["worktree", "prune"], None).map(drop)
    }

    /// Builds a bench: today's, or where that does not compile the commit's own, if it prints lines.
    /// The inner error says why there is none.
    pub(crate) fn build(&self, now: &Bench) -> io::Result<Result<OlderBench, String>> {
        let own = self.reset()?.into_iter().find(|bench| bench.name == now.name);
        let commit = &self.commit[..7];
        let Some(bench) = self.lay(now, own.as_ref())? else {
            return Ok(Err(format!("{commit} has no bench {}", now.name)));
        };
        let why = match self.program(&bench)? {
            Built::Program(program) => return Ok(Ok(OlderBench { program, note: None })),
            Built::Error(why) => why,
        };
        let fails = format!("{}: today's bench does not compile at {commit}", now.name);
        self.reset()?;
        let Some(own) = own.filter(Bench::prints_lines) else {
            let none = format!("{fails}, and its own is from before benches printed lines:");
            return Ok(Err(format!("{none}\n{why}")));
        };
        Ok(match self.program(&own)? {
            Built::Program(program) => {
                let note = Some(format!("{fails}; its own is compared:\n{why}"));
                Ok(OlderBench { program, note })
            }
            Built::Error(why) => Err(format!("{fails}, and neither does its own:\n{why}")),
        })
    }

    fn program(&self, bench: &Bench) -> io::Result<Built> {
        let mut command = crate::cargo(&self.tree);
        command.args(["bench", "--no-run", "--target-dir"]);
        command.arg(self.root.join(PLACE).join("target"));
        targets::build(&mut command, bench)
    }

    /// Puts everything back as it was committed, but for the profiles, which are today's; its benches.
    fn reset(&self) -> io::Result<Vec<Bench>> {
        for arguments in [&["checkout", "--quiet", "--force", "."][..], &["clean", "-qfd"]] {
            run(Command::new("git").arg("-C").arg(&self.tree).args(arguments))?;
        }
        let manifest = self.tree.join(MANIFEST);
        let now = fs::read_to_string(self.root.join(MANIFEST))?;
        let text = with_profiles(&fs::read_to_string(&manifest)?, &now);
        fs::write(&manifest, text)?;
        targets::benches(&self.tree)
    }

    /// Lays today's bench, and what benches share, over the commit's own or, if it is a package of nothing but
    /// benches, beside the commit's packages. `None` where the commit has no place for it.
    fn lay(&self, now: &Bench, own: Option<&Bench>) -> io::Result<Option<Bench>> {
        let path = |of: &Bench| of.source.strip_prefix(&of.directory).map(Path::to_owned).ok();
        let own = own.filter(|own| path(own) == path(now));
        let bench = if let Some(own) = own {
            copy(&now.directory.join("benches"), &own.directory.join("benches"))?;
            own.clone()
        } else if let (true, Ok(below)) = (now.alone, now.directory.strip_prefix(&self.root)) {
            let directory = self.tree.join(below);
            copy(&now.directory, &directory)?;
            Bench { directory, ..now.clone() }
        } else {
            return Ok(None);
        };
        copy(&self.root.join(SUPPORT), &self.tree.join(SUPPORT))?;
        Ok(Some(bench))
    }
}

impl Drop for Older {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            eprintln!("xtask: {} is left: {error}; the next run removes it", self.tree.display());
        }
    }
}

fn run(command: &mut Command) -> io::Result<()> {
    let (status, _) = child::output(command)?;
    if status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{:?} failed: {status}", command.get_program())))
}

/// Copies a directory with all below it.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (entry, to) = (entry?, |name| to.join(name));
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to(entry.file_name()))?;
        } else {
            fs::copy(entry.path(), to(entry.file_name()))?;
        }
    }
    Ok(())
}

/// A manifest with the profiles of another one.
fn with_profiles(manifest: &str, of: &str) -> String {
    part(manifest, false) + &part(of, true)
}

/// The profiles of a manifest, or all but them.
fn part(manifest: &str, profiles: bool) -> String {
    let mut in_profile = false;
    let mut kept = String::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            in_profile = line.starts_with("[profile.");
        }
        if in_profile == profiles {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_takes_over_the_profiles() {
        let old = "[workspace]\nmembers = []\n[profile.release]\nlto = true\n\n\
                   [profile.release.package.\"*\"]\nopt-level = 1\n[workspace.lints]\na = 1\n";
        let now =
            "[profile.bench]\nlto = false\n[workspace]\nmembers = [1]\n[profile.dev]\nb = 2\n";
        let expected = "[workspace]\nmembers = []\n[workspace.lints]\na = 1\n\
                        [profile.bench]\nlto = false\n[profile.dev]\nb = 2\n";
        assert_eq!(with_profiles(old, now), expected);
    }

    #[test]
    fn a_commit_has_one_full_name() {
        let root = crate::root();
        if !root.join(".git").exists() {
            println!("skipped: a_commit_has_one_full_name: needs the repository of the sources");
            return;
        }
        let head = resolve(&root, "HEAD").expect("there is a commit");
        assert!(head.len() >= 40 && resolve(&root, &head[..12]).expect("the same") == head);
        for unknown in ["no-such-commit", "--help", "0000000"] {
            let error = resolve(&root, unknown).expect_err("is no commit").to_string();
            assert!(error.contains(&format!("no commit `{unknown}`")), "{error}");
        }
    }
}
