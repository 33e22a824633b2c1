//! `cargo xtask package`: a static program, man pages, completions, and a Debian package of them.
//!
//! The program is linked statically with glibc, which needs nothing from where it runs. The package is put together by
//! `dpkg-deb`, which every Debian has.

mod clean;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo;
use crate::fuzz::target_directory;

const TARGET: &str = "x86_64-unknown-linux-gnu";
const ARCHITECTURE: &str = "amd64";
/// What the program is built with beside what it always has.
pub(crate) const FEATURES: &str = "mimalloc,tls,parquet";

/// What to do.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// This program instead of building one.
    with: Option<PathBuf>,
    /// Install what was packed in a Debian that has nothing else, use it, and remove it there.
    is_tried: bool,
}

impl Options {
    pub(crate) fn parse(arguments: &[&str]) -> Option<Self> {
        let mut options = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match *argument {
                "--try" => options.is_tried = true,
                "--with" => options.with = Some(PathBuf::from(arguments.next()?)),
                _ => return None,
            }
        }
        Some(options)
    }
}

/// Packs, and tries what was packed.
pub(crate) fn run(root: &Path, options: &Options) -> io::Result<bool> {
    let program = match &options.with {
        Some(program) => program.clone(),
        None => build(root, &[("RUSTFLAGS", "-C target-feature=+crt-static".to_owned())])?,
    };
    let packed = pack(root, &program, &[])?;
    if options.is_tried {
        try_packed(root, &packed)?;
    }
    Ok(true)
}

/// Tries a program and its package where nothing else is.
pub(crate) fn try_packed(root: &Path, [program, package]: &[PathBuf; 2]) -> io::Result<()> {
    let place = place(root);
    clean::alone(program, &place.join("root"))?;
    clean::tried(package, &place.join("debian"))
}

/// Where everything is made.
fn place(root: &Path) -> PathBuf {
    target_directory(root).join("package")
}

/// The program as it is packed, and its package; with variables for what packs it.
pub(crate) fn pack(
    root: &Path,
    program: &Path,
    settings: &[(&str, String)],
) -> io::Result<[PathBuf; 2]> {
    let place = place(root);
    let staged = place.join("staged");
    if staged.exists() {
        fs::remove_dir_all(&staged)?;
    }
    fs::create_dir_all(&place)?;
    let own = place.join("raidlab");
    fs::copy(program, &own)?;
    stage(root, &own, &staged)?;
    let version = env!("CARGO_PKG_VERSION");
    let package = place.join(format!("raidlab_{version}_{ARCHITECTURE}.deb"));
    let mut deb = Command::new("dpkg-deb");
    deb.args(["--build", "--root-owner-group"]).args([&staged, &package]);
    checked(deb.envs(settings.iter().map(|(name, value)| (name, value))))?;
    println!("{}\n{}", own.display(), package.display());
    Ok([own, package])
}

/// As packages have it: all crates as one, its own memory, static; with variables for cargo.
pub(crate) fn build(root: &Path, settings: &[(&str, String)]) -> io::Result<PathBuf> {
    let mut command = cargo(root);
    command.envs(settings.iter().map(|(name, value)| (name, value)));
    command.args(["build", "--locked", "--profile", "dist", "--features", FEATURES]);
    // Four fifths of the program would be for debuggers; the names of functions stay.
    command.env("CARGO_PROFILE_DIST_DEBUG", "0");
    checked(command.args(["--package", "raidlab-cli", "--target", TARGET]))?;
    Ok(target_directory(root).join(TARGET).join("dist/raidlab"))
}

/// The tree of the package.
fn stage(root: &Path, program: &Path, staged: &Path) -> io::Result<()> {
    let share = staged.join("usr/share");
    install(program, &staged.join("usr/bin/raidlab"), 0o755)?;
    let man = share.join("man/man1");
    checked(Command::new(program).arg("man").arg(&man))?;
    let mut pages: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(&man)? {
        pages.push(entry?.path());
    }
    checked(Command::new("gzip").args(["--best", "--no-name"]).args(&pages))?;
    for (shell, path) in [
        ("bash", "bash-completion/completions/raidlab"),
        ("zsh", "zsh/vendor-completions/_raidlab"),
        ("fish", "fish/vendor_completions.d/raidlab.fish"),
    ] {
        let printed = Command::new(program).args(["completions", shell]).output()?;
        if !printed.status.success() {
            return Err(io::Error::other(format!(
                "raidlab completions {shell}: {}",
                printed.status
            )));
        }
        let path = share.join(path);
        fs::create_dir_all(path.parent().unwrap_or(&share))?;
        fs::write(&path, printed.stdout)?;
    }
    let documents = share.join("doc/raidlab");
    for name in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        install(&root.join(name), &documents.join(name), 0o644)?;
    }
    for (from, ending) in [("docs", "md"), ("studies", "toml")] {
        for entry in fs::read_dir(root.join(from))? {
            let path = entry?.path();
            if path.extension() == Some(OsStr::new(ending)) {
                let name = path.file_name().unwrap_or_default();
                install(&path, &documents.join(from).join(name), 0o644)?;
            }
        }
    }
    let copyright = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\n\
                     Files: *\nCopyright: The raidlab authors\nLicense: MIT or Apache-2.0\n \
                     The texts are in LICENSE-MIT and LICENSE-APACHE beside this file.\n";
    fs::write(documents.join("copyright"), copyright)?;
    fs::create_dir_all(staged.join("DEBIAN"))?;
    fs::write(staged.join("DEBIAN/control"), control(size(staged)?))
}

/// What dpkg is told; the size is in KiB.
fn control(size: u64) -> String {
    format!(
        "Package: raidlab\nVersion: {}\nArchitecture: {ARCHITECTURE}\nInstalled-Size: {size}\n\
         Maintainer: The raidlab authors <raidlab@localhost>\nSection: utils\nPriority: optional\n\
         Recommends: e2fsprogs, util-linux\nSuggests: mdadm, fio, bonnie++, xfsprogs, btrfs-progs\n\
         Description: which RAID level, layout and chunk suit your work\n \
         Compares RAID layouts by evidence, from one study file: on modelled drives in virtual\n \
         time, or on real files and disks, through the same RAID code.\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// The bytes of a tree, in KiB.
fn size(of: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    let mut left = vec![of.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => left.push(entry.path()),
                false => bytes += entry.metadata()?.len(),
            }
        }
    }
    Ok(bytes.div_ceil(1024))
}

fn install(from: &Path, to: &Path, mode: u32) -> io::Result<()> {
    fs::create_dir_all(to.parent().unwrap_or(to))?;
    fs::copy(from, to)?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode))
}

fn checked(command: &mut Command) -> io::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(io::Error::other(format!("{name}: {status}"))),
        Err(error) => Err(io::Error::new(error.kind(), format!("{name}: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_refused() {
        let with = Options { with: Some("a".into()), is_tried: true };
        assert_eq!(Options::parse(&["--with", "a", "--try"]), Some(with));
        assert_eq!(Options::parse(&["--with"]), None);
        assert_eq!(Options::parse(&["--tries"]), None);
    }

    #[test]
    fn dpkg_is_told_all_it_must_know() {
        let text = control(7);
        for key in ["Package: ", "Version: ", "Architecture: ", "Maintainer: ", "Description: "] {
            assert!(text.lines().any(|line| line.starts_with(key)), "{key}: {text}");
        }
        assert!(text.ends_with('\n') && !text.contains("\n\n"), "{text}");
    }
}
