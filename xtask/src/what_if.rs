//! `cargo xtask what-if`: the what-if page, one offline HTML file with the simulator for wasm32 in it; and
//! how long its cells take beside those of the command line.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::pages::Opener;

/// The target of browsers: no system at all.
const TARGET: &str = "wasm32-unknown-unknown";

/// The profile that the program is built by.
const PROFILE: &str = "what-if";

/// The page must be smaller.
const LIMIT: u64 = 3_000_000;

/// What to do.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    /// Where the page goes.
    out: Option<PathBuf>,
    /// Time cells, with this raidlab beside the page.
    time: Option<PathBuf>,
}

impl Options {
    fn parse(arguments: &[&str]) -> Option<Self> {
        let mut options = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match *argument {
                "--out" => options.out = Some(arguments.next()?.into()),
                "--time" => options.time = Some(arguments.next()?.into()),
                _ => return None,
            }
        }
        Some(options)
    }
}

/// Builds the page, and times it where that is wanted; skipped by name where something is missing.
pub(crate) fn task(root: &Path, arguments: &[&str]) -> io::Result<bool> {
    let Some(options) = Options::parse(arguments) else {
        return Err(io::Error::other("what-if takes --out FILE and --time PROGRAM"));
    };
    if let Some(missing) = missing(root)? {
        println!("skipped: what-if: {missing}");
        return Ok(true);
    }
    let own = crate::fuzz::target_directory(root).join("what-if/raidlab-what-if.html");
    let page = options.out.clone().unwrap_or(own);
    let is_small = build(root, &page, &[])?;
    let Some(program) = &options.time else { return Ok(is_small) };
    let opener = match Opener::find(root, false)? {
        Ok(opener) => opener,
        Err(missing) => {
            println!("skipped: what-if --time: {missing}; cargo xtask pages --install gets them");
            return Ok(is_small);
        }
    };
    opener.script(root, "what-if-time.mjs", &[&page, program])?.map_err(io::Error::other)
}

/// What the page cannot be built without.
pub(crate) fn missing(root: &Path) -> io::Result<Option<String>> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.current_dir(root).args(["--print", "target-libdir", "--target", TARGET]);
    let output = rustc.stderr(Stdio::null()).output()?;
    let library = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let is_there = output.status.success() && Path::new(&library).is_dir();
    Ok((!is_there)
        .then(|| format!("needs the standard library of {TARGET}: rustup target add {TARGET}")))
}

/// Writes the page, with variables for cargo; whether it is small enough.
pub(crate) fn build(root: &Path, page: &Path, settings: &[(&str, String)]) -> io::Result<bool> {
    let mut cargo = crate::cargo(root);
    cargo.envs(settings.iter().map(|(name, value)| (name, value)));
    cargo.args([
        "rustc",
        "--locked",
        "--package",
        "raidlab-what-if",
        "--lib",
        "--crate-type=cdylib",
    ]);
    cargo.args(["--profile", PROFILE, "--target", TARGET]);
    crate::pages::good(&mut cargo)?;
    let built = crate::fuzz::target_directory(root).join(TARGET).join(PROFILE);
    let program = built.join("raidlab_what_if.wasm");
    crate::pages::good(
        Command::new("gzip").args(["--best", "--no-name", "--keep", "--force"]).arg(&program),
    )?;
    let packed = built.join("raidlab_what_if.wasm.gz");
    if let Some(directory) = page.parent() {
        fs::create_dir_all(directory)?;
    }
    let mut write = crate::cargo(root);
    write.args(["run", "--locked", "--quiet", "--package", "raidlab-what-if"]);
    write.args(["--example=page", "--"]);
    crate::pages::good(write.args([&packed, page]))?;
    let [plain, packed, whole] =
        [&program, &packed, page].map(|file| fs::metadata(file).map(|of| of.len()));
    let whole = whole?;
    println!("{}: {whole} bytes; its program {} bytes, {} packed", page.display(), plain?, packed?);
    if whole >= LIMIT {
        println!("the page has {whole} bytes; it must have fewer than {LIMIT}");
    }
    Ok(whole < LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_refused() {
        let out = Options { out: Some("a.html".into()), ..Options::default() };
        assert_eq!(Options::parse(&["--out", "a.html"]), Some(out));
        let time = Options { time: Some("raidlab".into()), ..Options::default() };
        assert_eq!(Options::parse(&["--time", "raidlab"]), Some(time));
        assert_eq!(Options::parse(&["--out"]), None);
        assert_eq!(Options::parse(&["--fast"]), None);
    }
}
