//! `cargo xtask release`: everything that is handed out, with checksums, in `target/release-files`.
//!
//! The static program and the Debian package, the wheel and the source distribution of the Python package, the
//! what-if page, the crates that are published (only packed and checked here), a list of what the program is made of,
//! and the SHA-256 of each file. From the same commit and toolchain come the same bytes, wherever cargo builds.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fuzz::target_directory;
use crate::{cargo, metadata, package, python, what_if};

/// The crates that are of use without the rest, have no dependencies among ours, and whose interfaces follow
/// semantic versioning: all others may change from one version to the next.
const PUBLISHED: [&str; 2] = ["raidlab-nbd", "raidlab-parity"];

/// What the command line asks for.
pub(crate) fn task(root: &Path, arguments: &[&str]) -> io::Result<bool> {
    match *arguments {
        [] => run(root, false),
        ["--try"] => run(root, true),
        _ => Err(io::Error::other("usage: cargo xtask release [--try]")),
    }
}

/// Makes all files; what needs a program that is not here is left out by name.
fn run(root: &Path, is_tried: bool) -> io::Result<bool> {
    let place = target_directory(root).join("release-files");
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    fs::create_dir_all(&place)?;
    for name in PUBLISHED {
        // What is not committed is refused, as it would not be what is published.
        let publish = ["publish", "--dry-run", "--locked", "--package", name];
        if !cargo(root).args(publish).status()?.success() {
            return Ok(false);
        }
    }
    let settings = Settings::of(root)?;
    let program = package::build(root, &settings.all(&["-C", "target-feature=+crt-static"]))?;
    let [program, deb] = package::pack(root, &program, &settings.all(&[]))?;
    let mut made = vec![program.clone(), deb.clone()];
    match python::wheel(root, &settings.all(&[]))? {
        Err(why) => println!("skipped: wheel: {why}"),
        Ok([wheel, sources]) => {
            if is_tried && !python::try_in_clean_environment(root, &wheel, &program)? {
                return Ok(false);
            }
            made.extend([wheel, sources]);
        }
    }
    made.extend(what_if_page(root, &settings)?);
    made.extend(bill_of_materials(root, &settings)?);
    if is_tried {
        package::try_packed(root, &[program, deb])?;
    }
    sums(&place, &made)?;
    println!("in {}", place.display());
    Ok(true)
}

/// Copies files to where they are handed out, with their checksums beside them.
fn sums(place: &Path, made: &[PathBuf]) -> io::Result<()> {
    let mut names = Vec::new();
    for file in made {
        let name = file.file_name().unwrap_or_default();
        fs::copy(file, place.join(name))?;
        names.push(name.to_owned());
    }
    names.sort();
    let sums = Command::new("sha256sum").current_dir(place).args(&names).output()?;
    if !sums.status.success() {
        return Err(io::Error::other("sha256sum failed"));
    }
    fs::write(place.join("SHA256SUMS"), &sums.stdout)?;
    print!("{}", String::from_utf8_lossy(&sums.stdout));
    Ok(())
}

/// What makes builds the same wherever they are made.
struct Settings {
    /// Seconds since 1970 of the commit, which files in archives have as their time.
    time: String,
    /// Places that compilers write into what they make, and what stands for them.
    places: [(PathBuf, &'static str); 3],
}

impl Settings {
    fn of(root: &Path) -> io::Result<Self> {
        let log = ["log", "-1", "--format=%ct"];
        let time = Command::new("git").arg("-C").arg(root).args(log).output()?;
        if !time.status.success() {
            return Err(io::Error::other("a release is made of a commit, and there is none"));
        }
        let home = env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(env::home_dir()?.join(".cargo")));
        let home = home.ok_or_else(|| io::Error::other("no home directory"))?;
        // The last that matches counts.
        let target = target_directory(root);
        let places = [(home, "/cargo"), (root.to_owned(), "/raidlab"), (target, "/target")];
        Ok(Self { time: String::from_utf8_lossy(&time.stdout).trim().to_owned(), places })
    }

    /// Variables for cargo, with more flags for rustc.
    fn all(&self, more: &[&str]) -> Vec<(&'static str, String)> {
        let mut rust: Vec<String> = more.iter().map(|&flag| flag.to_owned()).collect();
        let mut c = Vec::new();
        for (place, name) in &self.places {
            let place = place.display();
            rust.push(format!("--remap-path-prefix={place}={name}"));
            c.push(format!("-ffile-prefix-map={place}={name}"));
        }
        vec![
            ("SOURCE_DATE_EPOCH", self.time.clone()),
            // Unlike RUSTFLAGS it takes paths with spaces.
            ("CARGO_ENCODED_RUSTFLAGS", rust.join("\x1f")),
            ("CFLAGS", c.join(" ")),
        ]
    }
}

/// The what-if page, unless what it is built with is missing.
fn what_if_page(root: &Path, settings: &Settings) -> io::Result<Option<PathBuf>> {
    if let Some(missing) = what_if::missing(root)? {
        println!("skipped: what-if page: {missing}");
        return Ok(None);
    }
    let page = target_directory(root).join("what-if/raidlab-what-if.html");
    match what_if::build(root, &page, &settings.all(&[]))? {
        true => Ok(Some(page)),
        false => Err(io::Error::other("the what-if page is too large")),
    }
}

/// What the program is made of, by cargo-cyclonedx.
fn bill_of_materials(root: &Path, settings: &Settings) -> io::Result<Option<PathBuf>> {
    if !cargo(root).args(["cyclonedx", "--version"]).output()?.status.success() {
        println!(
            "skipped: bill of materials: needs cargo-cyclonedx (cargo install --locked cargo-cyclonedx)"
        );
        return Ok(None);
    }
    // It writes beside each manifest of the workspace, of which one is wanted.
    let name = "raidlab.cdx";
    let mut command = cargo(root);
    command.args(["cyclonedx", "--format", "json", "--override-filename", name]);
    command.args(["--no-build-deps", "--features", package::FEATURES]);
    command.args(["--manifest-path", "crates/cli/Cargo.toml"]);
    let made = command.env("SOURCE_DATE_EPOCH", &settings.time).status()?.success();
    let file = format!("{name}.json");
    let kept = target_directory(root).join(&file);
    let packages = metadata(root, &["--no-deps"])?;
    for package in packages["packages"].as_array().into_iter().flatten() {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
        let beside = manifest.with_file_name(&file);
        if package["name"] == "raidlab-cli" && made {
            let text = fs::read_to_string(&beside)?;
            fs::write(&kept, text.replace(&root.display().to_string(), "/raidlab"))?;
        }
        if beside.exists() {
            fs::remove_file(beside)?;
        }
    }
    if made { Ok(Some(kept)) } else { Err(io::Error::other("cargo cyclonedx failed")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_are_told_to_write_no_places() {
        let places = [("/home", "/cargo"), ("/a b", "/raidlab"), ("/t", "/target")];
        let places = places.map(|(place, name)| (PathBuf::from(place), name));
        let settings = Settings { time: "5".to_owned(), places };
        let all = settings.all(&["-C", "x"]);
        let flags = "-C\x1fx\x1f--remap-path-prefix=/home=/cargo\x1f--remap-path-prefix=/a b=/raidlab\
                     \x1f--remap-path-prefix=/t=/target";
        assert_eq!(
            all[..2],
            [("SOURCE_DATE_EPOCH", "5".to_owned()), ("CARGO_ENCODED_RUSTFLAGS", flags.to_owned())]
        );
    }
}
