//! The programs of guests: files of named versions of Debian packages, in one archive that the kernel starts from.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::archive::{Archive, Entry};
use super::{cache, done, hash_of, link_to, output, remove};

/// The packages and the files that are taken of each.
const LIST: &str = "crates/kernel-lab/guest/packages";
/// The guest's first program.
const INIT: &str = "crates/kernel-lab/src/init.sh";
/// Programs of ours, each with its package: what sends requests, and what runs the cells of studies.
const OURS: [(&str, &str); 2] =
    [("guest-load", "raidlab-kernel-lab"), ("guest-cell", "raidlab-kernel-study")];
/// What they are built for.
const MUSL: &str = "x86_64-unknown-linux-musl";
/// Directories in which `/usr` is merged.
const MERGED: [&str; 4] = ["bin", "sbin", "lib", "lib64"];
/// Where something is mounted.
const MOUNTS: [&str; 5] = ["dev", "proc", "run", "sys", "tmp"];

/// A package as the list has it.
#[derive(Debug, PartialEq, Eq)]
struct Package<'a> {
    name: &'a str,
    version: &'a str,
    hash: &'a str,
    files: Vec<&'a str>,
}

/// Builds the archive, or finds it built; prints where it is.
pub(crate) fn run(root: &Path) -> io::Result<bool> {
    let cache = cache()?;
    fs::create_dir_all(&cache)?;
    let (list, init) = (fs::read_to_string(root.join(LIST))?, fs::read_to_string(root.join(INIT))?);
    let packages = packages(&list)?;
    let ours = ours(root)?;
    let texts = [list.as_bytes(), init.as_bytes()].into_iter();
    let texts = texts.chain(ours.iter().map(|(_, program)| program.as_slice()));
    let name = format!("programs-{:016x}.cpio", hash_of(texts));
    if !cache.join(&name).is_file() {
        let work = cache.join("build-programs");
        remove(&work)?;
        fs::create_dir_all(&work)?;
        let built = build(&packages, &init, ours, &work);
        remove(&work)?;
        let fresh = cache.join(format!("{name}.new"));
        fs::write(&fresh, built?)?;
        fs::rename(&fresh, cache.join(&name))?;
    }
    let link = link_to(&cache, &name, "programs.cpio")?;
    println!("xtask: {}", link.display());
    Ok(true)
}

fn packages(list: &str) -> io::Result<Vec<Package<'_>>> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    let refused = |line| io::Error::other(format!("{LIST}: {line}: name, version, SHA-256, files"));
    lines.map(|line| package(line).ok_or_else(|| refused(line))).collect()
}

fn package(line: &str) -> Option<Package<'_>> {
    let mut words = line.split(' ');
    let (name, version, hash) = (words.next()?, words.next()?, words.next()?);
    let files: Vec<&str> = words.collect();
    let is_whole = hash.len() == 64 && !files.is_empty();
    is_whole.then_some(Package { name, version, hash, files })
}

/// Builds our own programs, which need nothing of the guest; by the pinned compiler and its own C library, and without
/// the names of directories of this machine.
fn ours(root: &Path) -> io::Result<Vec<(&'static str, Vec<u8>)>> {
    let target = crate::fuzz::target_directory(root).join("guest");
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home =
        cargo_home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cargo")));
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]).current_dir(root))?;
    let mut flags = format!("-Cstrip=symbols --remap-path-prefix={}=raidlab", root.display());
    flags += &format!(" --remap-path-prefix={}=rust", sysroot.trim());
    if let Some(home) = cargo_home {
        flags += &format!(" --remap-path-prefix={}=cargo", home.display());
    }
    let mut command = crate::cargo(root);
    command.args(["build", "-q", "--release", "--locked", "--target", MUSL]);
    for (program, package) in OURS {
        command.args(["--package", package, "--bin", program]);
    }
    command.arg("--target-dir").arg(&target);
    let built = done(command.env("RUSTFLAGS", flags).env("CARGO_INCREMENTAL", "0"));
    built
        .map_err(|error| io::Error::other(format!("{error}; needs `rustup target add {MUSL}`")))?;
    let built = target.join(MUSL).join("release");
    OURS.into_iter().map(|(program, _)| Ok((program, fs::read(built.join(program))?))).collect()
}

fn build(
    packages: &[Package<'_>],
    init: &str,
    ours: Vec<(&str, Vec<u8>)>,
    work: &Path,
) -> io::Result<Vec<u8>> {
    let mut archive = Archive::default();
    for name in MERGED {
        archive.add(name, Entry::Link(format!("usr/{name}")));
        archive.add(&format!("usr/{name}"), Entry::Directory);
    }
    for name in ["usr", "etc"].into_iter().chain(MOUNTS) {
        archive.add(name, Entry::Directory);
    }
    archive.add("dev/console", Entry::Console);
    archive.add("etc/mtab", Entry::Link("/proc/mounts".to_owned()));
    let init = init.replace("@BUSYBOX@", "/bin/busybox");
    archive.add("init", Entry::File { mode: 0o755, contents: init.into_bytes() });
    archive.add("usr/bin", Entry::Directory);
    for (name, contents) in ours {
        archive.add(&format!("usr/bin/{name}"), Entry::File { mode: 0o755, contents });
    }
    for package in packages {
        let unpacked = unpack(package, work)?;
        let mut found = Vec::new();
        walk(&unpacked, &mut found)?;
        for wanted in &package.files {
            let taken = found.iter().filter(|path| is_wanted(path, wanted));
            let mut any = false;
            for path in taken {
                any = true;
                take(&mut archive, &unpacked, path)?;
            }
            if !any {
                let text = format!("{} {} has no {wanted}", package.name, package.version);
                return Err(io::Error::other(text));
            }
        }
    }
    Ok(archive.bytes())
}

/// Fetches a package, compares its hash, and unpacks it.
fn unpack(package: &Package<'_>, work: &Path) -> io::Result<PathBuf> {
    let Package { name, version, hash, .. } = package;
    let into = work.join(name);
    fs::create_dir_all(&into)?;
    let mut command = Command::new("apt-get");
    command
        .args(["-qq", "-o", "APT::Sandbox::User=root", "download", &format!("{name}={version}")])
        .current_dir(&into);
    let fetched = command.stdin(Stdio::null()).status().is_ok_and(|status| status.success());
    let entry = fs::read_dir(&into)?.next().transpose()?.filter(|_| fetched);
    let file = entry.map(|entry| entry.path()).ok_or_else(|| {
        io::Error::other(format!("no package {name} {version} to be had by apt-get; see {LIST}"))
    })?;
    let found = output(Command::new("sha256sum").arg(&file))?;
    if found.split(' ').next() != Some(*hash) {
        return Err(io::Error::other(format!("{}: is not {hash}", file.display())));
    }
    let unpacked = into.join("unpacked");
    done(Command::new("dpkg-deb").arg("-x").arg(&file).arg(&unpacked))?;
    Ok(unpacked)
}

/// All files and links below a directory.
fn walk(directory: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), found)?;
        } else {
            found.push(entry.path());
        }
    }
    Ok(())
}

fn is_wanted(path: &Path, wanted: &str) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match wanted.strip_suffix('*') {
        Some(front) => name.starts_with(front),
        None => name == wanted,
    }
}

fn take(archive: &mut Archive, unpacked: &Path, path: &Path) -> io::Result<()> {
    let within = path.strip_prefix(unpacked).map_err(io::Error::other)?;
    let within = within.to_str().ok_or_else(|| io::Error::other("a name that is no text"))?;
    let first = within.split('/').next().unwrap_or_default();
    let place = if MERGED.contains(&first) { format!("usr/{within}") } else { within.to_owned() };
    let mut parent = Path::new(&place).parent();
    while let Some(directory) = parent.and_then(Path::to_str).filter(|name| !name.is_empty()) {
        archive.add(directory, Entry::Directory);
        parent = Path::new(directory).parent();
    }
    if path.is_symlink() {
        let to = fs::read_link(path)?;
        let to = to.to_str().ok_or_else(|| io::Error::other("a link that is no text"))?;
        archive.add(&place, Entry::Link(to.to_owned()));
        return Ok(());
    }
    let mode = fs::metadata(path)?.permissions().mode() & 0o777;
    archive.add(&place, Entry::File { mode, contents: fs::read(path)? });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_names_each_package_with_version_hash_and_files() {
        let text = fs::read_to_string(crate::root().join(LIST)).expect("is there");
        let packages = packages(&text).expect("is right");
        let mdadm = packages.iter().find(|package| package.name == "mdadm").expect("is there");
        assert_eq!(mdadm.files, ["mdadm"]);
        for wrong in ["bash 5.2 abc bash", "bash 5.2", &format!("bash 5.2 {:064}", 0)] {
            assert!(super::packages(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_star_stands_for_any_end() {
        let is = |wanted| is_wanted(Path::new("lib/libuuid.so.1.3.0"), wanted);
        assert!(is("libuuid.so.1*") && is("libuuid.so.1.3.0"));
        assert!(!is("libuuid.so.1") && !is("lib/libuuid*"));
    }
}
