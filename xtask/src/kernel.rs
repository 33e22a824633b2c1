//! The kernels of the kernel lab: built from Debian's source packages, kept in the user's cache.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

mod archive;
mod programs;

/// How it is used.
pub(crate) const USAGE: &str = "\
usage: cargo xtask kernel VERSION [--hz N] [--source FILE.deb] [--jobs N] [--again] [--keep]
       cargo xtask kernel programs

  Builds a User Mode Linux kernel for the kernel lab (docs/kernel-lab.md) from Debian's package linux-source-VERSION,
  which is fetched by apt-get without rights, with the configuration and the patches of crates/kernel-lab/kernel. It
  takes 4 to 14 minutes and 2.5 GB meanwhile; what stays are 8 MB in $XDG_CACHE_HOME/raidlab/kernel-lab
  (~/.cache/raidlab/kernel-lab). A kernel that was built from the same is there at once.

  VERSION       6.1 or 6.12
  --hz N        so many ticks a second, in place of 100; such a kernel is called VERSION-hzN: --on kernel:6.12-hz250
  --source FILE the package, in place of the one that apt-get finds
  --jobs N      as many as there are processors, if not said
  --again       builds it even if it is there
  --keep        keeps the source and the build beside the kernel

  programs      puts the guest's programs into an archive in the same place, from the versions of packages in
                crates/kernel-lab/guest/packages, which are fetched and compared with their hashes, and
                guest-load and guest-cell, which are built
";

/// The kernels that the patches fit.
const VERSIONS: [&str; 2] = ["6.1", "6.12"];
/// Ticks a second of User Mode Linux, and what may be had in their place.
const UML_HZ: u32 = 100;
const HZ: std::ops::RangeInclusive<u32> = 24..=1000;
/// Where they are set, by text alone: no configuration reaches it.
const HZ_FILE: &str = "arch/um/Kconfig";
/// The guest's programs, in place of a version.
const PROGRAMS: &str = "programs";
/// What a kernel is built from, beside its source.
const FOLDER: &str = "crates/kernel-lab/kernel";
/// What unpacking and building takes, in KiB.
const SPACE: u64 = 2_600_000;
/// Programs and the packages that have them.
const TOOLS: [(&str, &str); 9] = [
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("make", "make"),
    ("gcc", "gcc"),
    ("patch", "patch"),
    ("xz", "xz-utils"),
    ("strip", "binutils"),
    ("dpkg-deb", "dpkg"),
];

/// What to build.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    version: String,
    /// Ticks a second, where not as many as User Mode Linux has.
    hz: Option<u32>,
    source: Option<PathBuf>,
    jobs: Option<usize>,
    again: bool,
    keep: bool,
}

impl Options {
    /// Reads the arguments; `None` where one is unknown or the version is missing.
    pub(crate) fn parse(arguments: &[&str]) -> Option<Self> {
        let mut options = Self::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match *argument {
                "--source" => options.source = Some(rest.next()?.into()),
                "--hz" => {
                    let hz = rest.next()?.parse().ok().filter(|hz| HZ.contains(hz))?;
                    options.hz = Some(hz).filter(|hz| *hz != UML_HZ);
                }
                "--jobs" => options.jobs = Some(rest.next()?.parse().ok()?),
                "--again" => options.again = true,
                "--keep" => options.keep = true,
                version if options.version.is_empty() && is_known(version) => {
                    version.clone_into(&mut options.version);
                }
                _ => return None,
            }
        }
        let has_ticks = options.version != PROGRAMS || options.hz.is_none();
        (!options.version.is_empty() && has_ticks).then_some(options)
    }
}

fn is_known(version: &str) -> bool {
    version == PROGRAMS || VERSIONS.contains(&version)
}

/// Builds the kernel, or finds it built; prints where it is.
pub(crate) fn run(root: &Path, options: &Options) -> io::Result<bool> {
    let version = &options.version;
    if version == PROGRAMS {
        return programs::run(root);
    }
    check_tools()?;
    let cache = cache()?;
    fs::create_dir_all(&cache)?;
    check_space(&cache)?;
    let work = cache.join(format!("build-{version}"));
    // What an interrupted run has left.
    remove(&work)?;
    fs::create_dir_all(&work)?;
    let built = build(root, options, &cache, &work);
    if !options.keep {
        remove(&work)?;
    }
    println!("xtask: {}", built?.display());
    Ok(true)
}

fn build(root: &Path, options: &Options, cache: &Path, work: &Path) -> io::Result<PathBuf> {
    let version = &options.version;
    let package = match &options.source {
        Some(file) => fs::canonicalize(file)?,
        None => fetch(work, version)?,
    };
    let of_package = output(Command::new("dpkg-deb").arg("-f").arg(&package).arg("Version"))?;
    let parts = Parts::read(&root.join(FOLDER), version)?;
    let ticks = options.hz.map_or_else(String::new, |hz| format!("-hz{hz}"));
    let name = format!("linux-{version}-{}-{:016x}{ticks}", of_package.trim(), parts.hash());
    let kernel = cache.join(&name);
    if options.again || !kernel.is_file() {
        println!("xtask: building {name} ...");
        let made = compile(&parts, options, &package, work)?;
        fs::rename(made, &kernel)?;
        let hash = output(Command::new("sha256sum").arg(&package))?;
        let hash = hash.split(' ').next().unwrap_or_default();
        let about = format!("linux-source-{version} {} sha256 {hash}\n", of_package.trim());
        fs::write(cache.join(format!("{name}.source")), about)?;
    }
    link_to(cache, &name, &format!("linux-{version}{ticks}"))
}

/// Lets a name lead to what was built last.
fn link_to(cache: &Path, built: &str, name: &str) -> io::Result<PathBuf> {
    let (link, fresh) = (cache.join(name), cache.join(format!("{name}.link")));
    remove(&fresh)?;
    symlink(built, &fresh)?;
    fs::rename(fresh, &link)?;
    Ok(link)
}

/// Where kernels are kept.
fn cache() -> io::Result<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    let cache = cache.ok_or_else(|| io::Error::other("neither XDG_CACHE_HOME nor HOME is set"))?;
    Ok(cache.join("raidlab/kernel-lab"))
}

fn check_tools() -> io::Result<()> {
    let there = |name: &str| {
        let mut command = Command::new(name);
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok()
    };
    let missing: Vec<&str> =
        TOOLS.into_iter().filter(|(name, _)| !there(name)).map(|(_, package)| package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let text = format!("needs packages: apt-get install {}", missing.join(" "));
    Err(io::Error::other(text))
}

fn check_space(cache: &Path) -> io::Result<()> {
    let text = output(Command::new("df").args(["-Pk"]).arg(cache))?;
    let free = text.lines().nth(1).and_then(|line| line.split_whitespace().nth(3));
    let free = free.and_then(|word| word.parse::<u64>().ok());
    match free {
        Some(free) if free < SPACE => {
            let (needed, free) = (SPACE >> 10, free >> 10);
            let text = format!("{}: {free} MiB free, of {needed} needed", cache.display());
            Err(io::Error::other(text))
        }
        _ => Ok(()),
    }
}

/// Fetches the source package into a directory.
fn fetch(work: &Path, version: &str) -> io::Result<PathBuf> {
    let name = format!("linux-source-{version}");
    let mut command = Command::new("apt-get");
    command
        .args(["-q", "-o", "APT::Sandbox::User=root", "download", &name])
        .current_dir(work)
        .stdin(Stdio::null());
    let went_well = command.status().is_ok_and(|status| status.success());
    let found = fs::read_dir(work)?.filter_map(Result::ok).map(|entry| entry.path());
    let package = { found }.find(|path| path.extension().is_some_and(|ending| ending == "deb"));
    package.filter(|_| went_well).ok_or_else(|| {
        let text = format!(
            "no package {name} to be had by `apt-get download {name}`: is it a package of this Debian, and has \
             `apt-get update` been run? --source takes the file of one"
        );
        io::Error::other(text)
    })
}

/// What is laid over the source: name and text of each file, in the order of their names.
struct Parts {
    fragments: Vec<(PathBuf, String)>,
    patches: Vec<(PathBuf, String)>,
}

impl Parts {
    fn read(folder: &Path, version: &str) -> io::Result<Self> {
        let mut paths: Vec<PathBuf> = fs::read_dir(folder)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<_>>()?;
        paths.sort();
        let read = |ending: &str| -> io::Result<Vec<(PathBuf, String)>> {
            let files = paths.iter().filter(|path| is_for(path, ending, version));
            files.map(|path| Ok((path.clone(), fs::read_to_string(path)?))).collect()
        };
        Ok(Self { fragments: read(".config")?, patches: read(".patch")? })
    }

    /// Another kernel has another hash.
    fn hash(&self) -> u64 {
        hash_of(self.fragments.iter().chain(&self.patches).map(|(_, text)| text.as_bytes()))
    }
}

/// FNV-1a over parts.
fn hash_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let bytes = parts.into_iter().flat_map(|part| part.iter().chain(&[0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Whether a file is for all versions or for this one: a version stands at the end of its name.
fn is_for(path: &Path, ending: &str, version: &str) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some(stem) = name.strip_suffix(ending) else { return false };
    match stem.rsplit_once('-') {
        Some((_, last)) if last.starts_with(|c: char| c.is_ascii_digit()) => last == version,
        _ => true,
    }
}

/// Unpacks, patches, configures and builds; gives the stripped kernel.
fn compile(parts: &Parts, options: &Options, package: &Path, work: &Path) -> io::Result<PathBuf> {
    let version = &options.version;
    let (unpacked, build) = (work.join("package"), work.join("build"));
    fs::create_dir_all(&build)?;
    done(Command::new("dpkg-deb").arg("-x").arg(package).arg(&unpacked))?;
    let archive = unpacked.join(format!("usr/src/linux-source-{version}.tar.xz"));
    done(Command::new("tar").arg("-xJf").arg(&archive).arg("-C").arg(work))?;
    remove(&unpacked)?;
    let source = work.join(format!("linux-source-{version}"));
    for (patch, _) in &parts.patches {
        done(Command::new("patch").args(["-s", "-p1", "-d"]).arg(&source).arg("-i").arg(patch))?;
    }
    if let Some(hz) = options.hz {
        let path = source.join(HZ_FILE);
        fs::write(&path, with_hz(&fs::read_to_string(&path)?, hz)?)?;
    }
    let fragment: String = parts.fragments.iter().map(|(_, text)| text.as_str()).collect();
    let all = work.join("fragment");
    fs::write(&all, &fragment)?;
    let make = || {
        let mut command = Command::new("make");
        command.arg("-s").arg("-C").arg(&source).arg("ARCH=um").current_dir(work);
        command.arg(format!("O={}", build.display())).env("KCONFIG_ALLCONFIG", &all);
        // The same bytes whenever and wherever it is built.
        command.env("KBUILD_BUILD_TIMESTAMP", "2020-01-01").env("KBUILD_BUILD_VERSION", "1");
        command.env("KBUILD_BUILD_USER", "raidlab").env("KBUILD_BUILD_HOST", "raidlab");
        command
    };
    done(make().arg("allnoconfig").stdout(Stdio::null()))?;
    let lost = lost(&fragment, &fs::read_to_string(build.join(".config"))?);
    if !lost.is_empty() {
        let text = format!("the kernel does not take these settings: {}", lost.join(", "));
        return Err(io::Error::other(text));
    }
    let jobs = options.jobs.or_else(|| Some(std::thread::available_parallelism().ok()?.get()));
    done(make().arg(format!("-j{}", jobs.unwrap_or(1))).arg("linux"))?;
    let kernel = work.join("stripped");
    done(Command::new("strip").arg("-o").arg(&kernel).arg(build.join("linux")))?;
    Ok(kernel)
}

/// The file that says how many ticks a second there are, with another number.
fn with_hz(text: &str, hz: u32) -> io::Result<String> {
    let entry = |hz| format!("config HZ\n\tint\n\tdefault {hz}\n");
    let plain = entry(UML_HZ);
    match text.contains(&plain) {
        true => Ok(text.replace(&plain, &entry(hz))),
        false => Err(io::Error::other(format!("{HZ_FILE}: does not set {UML_HZ} ticks a second"))),
    }
}

/// Settings of the fragment that the configuration does not have.
fn lost<'a>(fragment: &'a str, configuration: &str) -> Vec<&'a str> {
    let has = |line: &str| configuration.lines().any(|other| other == line);
    let is_off = |name: &str| {
        let prefix = format!("{name}=");
        !configuration.lines().any(|other| other.starts_with(&prefix))
    };
    let settings = fragment.lines().filter(|line| line.starts_with("CONFIG_"));
    settings.filter(|line| !line.strip_suffix("=n").map_or_else(|| has(line), is_off)).collect()
}

fn remove(path: &Path) -> io::Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Runs a program that must go well.
fn done(command: &mut Command) -> io::Result<()> {
    let status = command.stdin(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(failed(command, &status.to_string())) }
}

/// The standard output of a program that must go well.
fn output(command: &mut Command) -> io::Result<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(failed(command, &output.status.to_string()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn failed(command: &Command, status: &str) -> io::Error {
    io::Error::other(format!("{}: {status}", command.get_program().display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_needed_and_only_known_ones_are_built() {
        let version = |arguments: &[&str]| Options::parse(arguments).map(|options| options.version);
        assert_eq!(version(&["6.12"]).as_deref(), Some("6.12"));
        assert_eq!(version(&["--jobs", "1", "6.1", "--again"]).as_deref(), Some("6.1"));
        let hz = |hz: &str| Options::parse(&["6.12", "--hz", hz]).map(|options| options.hz);
        assert_eq!(["100", "250"].map(hz), [Some(None), Some(Some(250))]);
        assert_eq!(["0", "1001", "x"].map(hz), [None; 3]);
        assert_eq!(Options::parse(&["programs", "--hz", "250"]), None);
        for wrong in
            [&[][..], &["6.6"], &["6.1", "6.12"], &["6.1", "--jobs"], &["6.1", "--jobs", "x"]]
        {
            assert_eq!(version(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn ticks_are_set_where_the_kernel_sets_them() {
        let file =
            |hz| format!("config X\n\tbool\n\nconfig HZ\n\tint\n\tdefault {hz}\n\nconfig Y\n");
        assert_eq!(with_hz(&file(100), 250).expect("is there"), file(250));
        assert!(with_hz(&file(1000), 250).is_err());
    }

    #[test]
    fn settings_that_were_dropped_are_named() {
        let fragment = "# Why.\nCONFIG_A=y\nCONFIG_B=n\nCONFIG_C=n\nCONFIG_D=\"x\"\n";
        let configuration = "CONFIG_A=y\nCONFIG_C=y\nCONFIG_AB=y\n# CONFIG_B is not set\n";
        assert_eq!(lost(fragment, configuration), ["CONFIG_C=n", "CONFIG_D=\"x\""]);
    }

    #[test]
    fn parts_of_another_version_are_left_out() {
        let is = |name: &str| is_for(Path::new(name), ".patch", "6.1");
        assert!(is("cpu-cost.patch") && is("virtio-blk-fua-6.1.patch"));
        assert!(!is("virtio-blk-fua-6.12.patch") && !is("uml.config"));
    }

    #[test]
    fn each_version_has_its_parts_and_the_folder_says_its_licence() {
        let folder = crate::root().join(FOLDER);
        let parts = VERSIONS.map(|version| Parts::read(&folder, version).expect("is there"));
        assert!(parts.iter().all(|parts| parts.patches.len() == 4), "four patches each");
        assert_ne!(parts[0].hash(), parts[1].hash());
        let readme = fs::read_to_string(folder.join("README.md")).expect("is there");
        assert!(readme.contains("GPL-2.0-only"));
    }
}
