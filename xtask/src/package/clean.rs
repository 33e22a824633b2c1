//! The package in a Debian that has nothing else: installed, used as people use it, removed again.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::checked;

/// The Debian that packages are tried in, and what it has besides the least there is: what shows man pages, and shells
/// that complete.
const SUITE: &str = "bookworm";
const WITH: &str = "man-db,bash-completion,zsh,fish";
const PACKAGE: &str = "/raidlab.deb";

/// What programs of the Debian itself write while packages come and go.
const NOT_OURS: [&str; 6] = ["var/lib/dpkg", "var/cache", "var/log", "tmp", "root", "raidlab.deb"];

/// A command in the Debian, and a word that it must print.
struct Use {
    what: &'static str,
    command: &'static [&'static str],
    prints: &'static str,
}

const USES: [Use; 8] = [
    Use { what: "version", command: &["raidlab", "--version"], prints: "raidlab " },
    Use { what: "studies", command: &["raidlab", "study", "list"], prints: "nas-4-bays" },
    Use {
        what: "doctor",
        command: &["raidlab", "doctor", "--need", "virtual-time"],
        prints: "virtual-time",
    },
    Use {
        what: "study",
        command: &["raidlab", "compare", "nas-4-bays", "--rounds", "1", "--no-store"],
        prints: "Conclusions",
    },
    Use {
        what: "man page",
        command: &["man", "--pager=cat", "raidlab-compare"],
        prints: "raidlab-compare",
    },
    Use { what: "bash", command: &["bash", "-c", BASH], prints: "compare" },
    Use { what: "zsh", command: &["zsh", "-f", "-c", ZSH], prints: "_raidlab" },
    Use {
        what: "fish",
        command: &["fish", "-c", "complete --do-complete 'raidlab comp'"],
        prints: "compare",
    },
];

/// What bash does when Tab is pressed behind `raidlab comp`.
const BASH: &str = ". /usr/share/bash-completion/bash_completion
_completion_loader raidlab
COMP_WORDS=(raidlab comp) COMP_CWORD=1 COMP_LINE='raidlab comp' COMP_POINT=12
_raidlab raidlab comp raidlab
printf '%s\\n' \"${COMPREPLY[@]}\"";

/// Whether zsh takes the function of the package for the command, and can read it.
const ZSH: &str = "autoload -Uz compinit && compinit -u -D
autoload -Uz +X _raidlab && print -r -- $_comps[raidlab]";

/// Tries the package in a Debian at `place`, which is made where it is not there yet.
pub(super) fn tried(package: &Path, place: &Path) -> io::Result<()> {
    if !place.join("usr/bin/fish").is_file() {
        println!("making a Debian {SUITE} in {}", place.display());
        let include = format!("--include={WITH}");
        let mut debootstrap = Command::new("debootstrap");
        debootstrap.args(["--variant=minbase", &include, SUITE]).arg(place);
        checked(&mut debootstrap).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                io::Error::other("--try needs debootstrap: apt-get install debootstrap")
            }
            _ => error,
        })?;
    }
    let inside = Inside { place };
    // What an earlier try that failed has left.
    inside.run(&["dpkg", "--purge", "raidlab"])?;
    let before = files(place)?;
    fs::copy(package, place.join(PACKAGE.trim_start_matches('/')))?;
    inside.run(&["dpkg", "--install", PACKAGE])?;
    println!("dpkg --install: {} files and directories more", files(place)?.len() - before.len());
    for one in &USES {
        let printed = inside.run(one.command)?;
        if !printed.contains(one.prints) {
            let what = one.what;
            return Err(io::Error::other(format!("{what}: no `{}` in: {printed}", one.prints)));
        }
        println!("{}: {} bytes printed, with `{}`", one.what, printed.len(), one.prints);
    }
    inside.run(&["dpkg", "--remove", "raidlab"])?;
    let after = files(place)?;
    if let Some(left) = after.difference(&before).next() {
        return Err(io::Error::other(format!("dpkg --remove leaves {}", left.display())));
    }
    println!("dpkg --remove: nothing is left");
    Ok(())
}

/// Runs the program in an empty root directory: no library, no shell, no `/proc`.
pub(super) fn alone(program: &Path, place: &Path) -> io::Result<()> {
    fs::create_dir_all(place)?;
    fs::copy(program, place.join("raidlab"))?;
    let printed = Inside { place }.run(&["/raidlab", "study", "list"])?;
    println!("in an empty root directory: {} bytes printed", printed.len());
    Ok(())
}

/// A root directory with a Debian in it.
struct Inside<'a> {
    place: &'a Path,
}

impl Inside<'_> {
    /// What a command prints there.
    fn run(&self, command: &[&str]) -> io::Result<String> {
        let mut chroot = Command::new("/usr/sbin/chroot");
        chroot
            .arg(self.place)
            .args(command)
            .env_clear()
            .env("HOME", "/root")
            .env("LANG", "C.UTF-8");
        chroot.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("MANROFFOPT", "-c");
        let done = chroot.output()?;
        if done.status.success() {
            return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
        }
        let told = String::from_utf8_lossy(&done.stderr);
        Err(io::Error::other(format!("{}: {}: {told}", command.join(" "), done.status)))
    }
}

/// Every file and directory, but for what the Debian itself writes.
fn files(place: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut left = vec![PathBuf::new()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(place.join(&directory))? {
            let entry = entry?;
            let path = directory.join(entry.file_name());
            if NOT_OURS.iter().any(|one| path.starts_with(one)) {
                continue;
            }
            if entry.file_type()?.is_dir() {
                left.push(path.clone());
            }
            found.insert(path);
        }
    }
    Ok(found)
}
