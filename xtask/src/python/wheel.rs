//! The wheel that is handed out, and whether it works where nothing else is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Python, done, environment, fresh, tests};
use crate::fuzz::target_directory;

/// What a wheel must do alone: without pyarrow, pandas, or any other package.
const ALONE: &str = "import raidlab
results = raidlab.run({'title': 'Alone', 'drives': [{'name': 'nas', 'model': 'nas-8tb-7200', 'count': 2}],
    'layouts': [{'level': 'raid1', 'members': 2}], 'workloads': [{'kind': 'random-read', 'size': '16KiB'}]}, rounds=1)
print('alone:', results, 'by raidlab', raidlab.__version__)
assert not hasattr(raidlab._raidlab, '_panic_next')";

/// Builds the wheel and the source distribution, as `settings` of cargo say; or what is missing.
pub(crate) fn wheel(
    root: &Path,
    settings: &[(&str, String)],
) -> io::Result<Result<[PathBuf; 2], String>> {
    let place = target_directory(root).join("python");
    let python = match environment(root, &place.join("build"), &["build"])? {
        Ok(python) => python,
        Err(why) => return Ok(Err(why)),
    };
    let wheels = place.join("wheels");
    if wheels.exists() {
        fs::remove_dir_all(&wheels)?;
    }
    // The wheel not of the source distribution, as it were then built in a place of a random name.
    for what in [&["sdist"] as &[&str], &["build", "--release", "--locked"]] {
        let mut maturin = Command::new(python.with_file_name("maturin"));
        maturin.current_dir(root).args(what).arg("--out").arg(&wheels);
        if !done(maturin.envs(settings.iter().map(|(name, value)| (name, value))))? {
            return Err(io::Error::other("maturin failed"));
        }
    }
    Ok(Ok([made(&wheels, ".whl")?, made(&wheels, ".tar.gz")?]))
}

/// The one file of a directory whose name ends so.
fn made(directory: &Path, end: &str) -> io::Result<PathBuf> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(end) {
            return Ok(path);
        }
    }
    Err(io::Error::other(format!("maturin has made no {end}")))
}

/// Installs a wheel into an environment that has nothing, uses it, tests it there with what tests need against a
/// program, and removes it.
pub(crate) fn try_in_clean_environment(
    root: &Path,
    wheel: &Path,
    program: &Path,
) -> io::Result<bool> {
    let place = target_directory(root).join("python");
    let clean = place.join("clean");
    fresh(&clean)?;
    let python = Python { python: clean.join("bin/python"), package: None };
    let pip = |arguments: &[&str]| {
        let mut pip = python.command(&place);
        done(pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check"]).args(arguments))
    };
    let wheel = wheel.to_string_lossy();
    if !pip(&["install", "--no-index", &wheel])?
        || !done(python.command(&place).args(["-c", ALONE]))?
    {
        return Ok(false);
    }
    let list = root.join("python/requirements/test.txt");
    let list = list.to_string_lossy();
    if !pip(&["install", "--require-hashes", "--only-binary", ":all:", "-r", &list])? {
        println!(
            "skipped: tests of the wheel: pip cannot get what python/requirements/test.txt names"
        );
    } else if !tests(root, &python, program)? {
        return Ok(false);
    }
    if !pip(&["uninstall", "--yes", "raidlab"])? {
        return Ok(false);
    }
    let left = Command::new("find").arg(&clean).args(["-iname", "*raidlab*"]).output()?;
    print!("{}", String::from_utf8_lossy(&left.stdout));
    println!(
        "pip uninstall: {}",
        if left.stdout.is_empty() { "nothing is left" } else { "is left" }
    );
    Ok(left.stdout.is_empty())
}
