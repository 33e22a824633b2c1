//! Pages that raidlab writes, opened in headless Chromium and used as people use them: the default run, a run with
//! members lost and rebuilt, one of layouts with long names over block sizes, one on member files and one beside the
//! model, a replay, one on a kernel, 10,000 cells, and the what-if page.
//!
//! `what-if.mjs` moves the controls of the last and compares what it shows with the command line. `pages.mjs` looks
//! for errors, requests, figures that are missing, what is cut off, what sorting takes, and by axe-core for what people
//! cannot read or reach.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::packages;

/// What npm fetches: a driver for browsers, and Deque's checks of accessibility (MPL-2.0; a tool, no part of raidlab).
const PACKAGES: [&str; 2] = ["playwright-core@1", "axe-core@4"];

/// A page: its name, the arguments that write it, and the figures that it must have. `{html}` is the page,
/// `{members}` a directory, `{on-kernel}` and `{block-sizes}` are studies.
struct Page {
    name: &'static str,
    arguments: &'static [&'static str],
    figures: &'static str,
    needs_kernel: bool,
}

/// The page of made-up cells.
const LARGE: &str = "ten-thousand";
/// The page that computes what it shows.
const WHAT_IF: &str = "what-if";
const SMALL: &[&str] = &["--size", "4MiB", "--rounds", "2", "--no-store", "--quiet"];

const PAGES: [Page; 7] = [
    Page {
        name: "default",
        arguments: &["compare", "--no-store", "--quiet", "--html", "{html}"],
        figures: "percent,scaling,finish,latency,ecdf,rate,heat,busy,blocks,choice",
        needs_kernel: false,
    },
    Page {
        name: "states",
        arguments: &[
            "compare",
            "--states",
            "healthy,degraded,rebuilding",
            "--rounds",
            "6",
            "--no-store",
            "--quiet",
            "--html",
            "{html}",
        ],
        figures: "states,rebuild,rate,latency",
        needs_kernel: false,
    },
    Page {
        name: "sizes",
        arguments: &["compare", "{block-sizes}", "--no-store", "--quiet", "--html", "{html}"],
        figures: "sweep,percent,rate,latency,ecdf,busy,blocks,choice",
        needs_kernel: false,
    },
    Page {
        name: "real",
        arguments: &["compare", "--on", "{members}", "--html", "{html}"],
        figures: "percent,scaling,finish,latency,ecdf,rate,heat,blocks,choice",
        needs_kernel: false,
    },
    Page {
        name: "files",
        arguments: &["compare", "--on", "virtual,{members}", "--html", "{html}"],
        figures: "percent,rate,latency,ecdf,residuals",
        needs_kernel: false,
    },
    Page {
        name: "replay",
        arguments: &["replay", "sata-2018", "--seeds", "3", "--quiet", "--html", "{html}"],
        figures: "published,sweep,busy,blocks,choice",
        needs_kernel: false,
    },
    Page {
        name: "kernel",
        arguments: &["compare", "{on-kernel}", "--on", "virtual,kernel:6.12", "--html", "{html}"],
        figures: "residuals,latency,choice",
        needs_kernel: true,
    },
];

/// What to do.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    /// Fetch the browser and what drives it.
    install: bool,
    /// A directory for pictures.
    shots: Option<PathBuf>,
    /// This raidlab instead of building one.
    with: Option<PathBuf>,
    /// This page alone.
    only: Option<String>,
}

impl Options {
    fn parse(arguments: &[&str]) -> Option<Self> {
        let mut options = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match *argument {
                "--install" => options.install = true,
                "--shots" => options.shots = Some(arguments.next()?.into()),
                "--with" => options.with = Some(arguments.next()?.into()),
                "--only" => options.only = Some((*arguments.next()?).to_owned()),
                _ => return None,
            }
        }
        Some(options)
    }

    fn has(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only == name)
    }
}

/// What opens pages.
pub(crate) struct Opener {
    browser: PathBuf,
    /// Where npm has put the packages.
    place: PathBuf,
}

impl Opener {
    /// Looks for all it needs; with `install` it fetches that. What is missing otherwise.
    pub(crate) fn find(root: &Path, install: bool) -> io::Result<Result<Self, String>> {
        let place = root.join("target/pages");
        if install {
            apt_get()?;
        }
        let missing = packages::missing(&packages::BROWSER);
        let Some(browser) = found("chromium").filter(|_| missing.is_empty()) else {
            return Ok(Err(packages::reason(&missing)));
        };
        fs::create_dir_all(&place)?;
        let there = |package: &str| {
            let name = package.split('@').next().unwrap_or(package);
            place.join("node_modules").join(name).is_dir()
        };
        if !PACKAGES.iter().all(|package| there(package)) {
            if !install {
                return Ok(Err("needs playwright-core and axe-core of npm".to_owned()));
            }
            let mut npm = Command::new("npm");
            npm.current_dir(&place).args(["install", "--no-audit", "--no-fund", "--silent"]);
            good(npm.args(PACKAGES))?;
        }
        Ok(Ok(Self { browser, place }))
    }

    /// Opens pages, each with the figures it must have; whether all are good, or why none was opened.
    fn open(
        &self,
        root: &Path,
        shots: Option<&Path>,
        pages: &[String],
    ) -> io::Result<Result<bool, String>> {
        let shots = shots.unwrap_or(Path::new("-"));
        let arguments: Vec<&Path> =
            std::iter::once(shots).chain(pages.iter().map(Path::new)).collect();
        self.script(root, "pages.mjs", &arguments)
    }

    /// Runs a script of this directory that opens pages, with the browser and what drives it; whether all was good, or
    /// why nothing was opened.
    pub(crate) fn script(
        &self,
        root: &Path,
        name: &str,
        arguments: &[&Path],
    ) -> io::Result<Result<bool, String>> {
        let mut node = Command::new("node");
        node.arg(root.join("xtask/src").join(name)).arg(&self.place).arg(&self.browser);
        let status = node.args(arguments).status()?;
        Ok(match status.code() {
            Some(NO_BROWSER) => Err("needs a chromium that starts here".to_owned()),
            _ => Ok(status.success()),
        })
    }
}

/// How `pages.mjs` ends when the browser does not start.
const NO_BROWSER: i32 = 77;

/// The study of the page on a kernel: each of its cells starts a guest, and the default study has 108.
const ON_KERNEL: &str = "title = \"Three layouts on a kernel\"
baseline = [\"single\"]
processes = [1, 4]

[[drives]]
name = \"nas\"
model = \"nas-8tb-7200\"
count = 4

[[layouts]]
level = \"single\"

[[layouts]]
level = \"raid10\"
members = 4

[[layouts]]
level = \"raid5\"
members = 4

[[workloads]]
kind = \"dd-read\"
block = \"1MiB\"
size = \"4MiB\"

[[workloads]]
kind = \"random-write\"
size = \"1MiB\"
span = \"256MiB\"
";

/// The study of the page over block sizes, but for its workloads.
const BLOCK_SIZES: &str = "title = \"Blocks of four sizes\"
baseline = [\"raid5(4) chunk=64K\"]

[[drives]]
name = \"nas\"
model = \"nas-8tb-7200\"
count = 4

[[layouts]]
level = \"raid5\"
members = 4
chunk = \"64KiB\"

[[layouts]]
level = \"raid10\"
members = 4
chunk = \"256KiB\"
";

/// That study, with a workload for each size: below a chunk, a chunk of either layout, several.
fn block_sizes() -> String {
    let workload = |block: &str| {
        format!("\n[[workloads]]\nkind = \"random-write\"\nblock = \"{block}\"\nsize = \"24MiB\"\n")
    };
    BLOCK_SIZES.to_owned() + &["4KiB", "64KiB", "256KiB", "768KiB"].map(workload).concat()
}

/// Writes the pages and opens them. Whether all are good.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> io::Result<bool> {
    let Some(options) = Options::parse(arguments) else {
        let what = "pages takes --install, --shots DIR, --with FILE and --only PAGE";
        return Err(io::Error::other(what));
    };
    let opener = match Opener::find(root, options.install)? {
        Ok(opener) => opener,
        Err(missing) => {
            println!("SKIPPED pages: {missing}; cargo xtask pages --install gets them");
            return Ok(true);
        }
    };
    let program = match &options.with {
        Some(program) => program.clone(),
        None => {
            let mut cargo = super::cargo(root);
            good(cargo.args(["build", "--release", "--package", "raidlab-cli"]))?;
            crate::fuzz::target_directory(root).join("release/raidlab")
        }
    };
    let mut pages = Vec::new();
    for page in PAGES.iter().filter(|page| options.has(page.name)) {
        if page.needs_kernel && !has_kernel(&program) {
            println!(
                "SKIPPED page {}: no kernel 6.12, or no programs for its guests; cargo xtask kernel 6.12 and \
                 cargo xtask kernel programs build them",
                page.name
            );
            continue;
        }
        let html = written(&program, &opener.place, page)?;
        pages.push(format!("{}={}", html.display(), page.figures));
    }
    if options.has(LARGE) {
        pages.push(large(root, &opener.place)?.display().to_string());
    }
    let mut is_good = true;
    if options.has(WHAT_IF) {
        is_good &= what_if(root, &opener, &program, options.shots.as_deref())?;
    } else if pages.is_empty() {
        return Err(io::Error::other("no such page"));
    }
    if !pages.is_empty() {
        let opened = opener.open(root, options.shots.as_deref(), &pages)?;
        is_good &= opened.map_err(io::Error::other)?;
    }
    Ok(is_good)
}

/// Builds the what-if page and uses it, with this raidlab beside it.
fn what_if(root: &Path, opener: &Opener, program: &Path, shots: Option<&Path>) -> io::Result<bool> {
    if let Some(missing) = crate::what_if::missing(root)? {
        println!("SKIPPED page {WHAT_IF}: {missing}");
        return Ok(true);
    }
    let page = opener.place.join("what-if.html");
    let is_small = crate::what_if::build(root, &page, &[])?;
    let arguments = [&page, program, shots.unwrap_or(Path::new("-"))];
    let is_good = opener.script(root, "what-if.mjs", &arguments)?.map_err(io::Error::other)?;
    Ok(is_small && is_good)
}

/// Fetches what [`one`] needs, so that the test command counts that as packages; without it the page is left out.
pub(crate) fn fetch(root: &Path) {
    if let Err(error) = Opener::find(root, true) {
        println!("xtask: no page will be opened: {error}");
    }
}

/// The default run's page by this raidlab, for the test command; or why it is left out.
pub(crate) fn one(root: &Path, program: &Path) -> io::Result<Result<bool, String>> {
    let opener = match Opener::find(root, false)? {
        Ok(opener) => opener,
        Err(missing) => return Ok(Err(missing)),
    };
    let html = written(program, &opener.place, &PAGES[0])?;
    let page = format!("{}={}", html.display(), PAGES[0].figures);
    opener.open(root, None, &[page])
}

/// Installs what is missing.
fn apt_get() -> io::Result<()> {
    let missing = packages::missing(&packages::BROWSER);
    if missing.is_empty() {
        return Ok(());
    }
    let mut install = Command::new("apt-get");
    good(install.args(["install", "-y", "--no-install-recommends"]).args(missing))
}

/// A program by its name.
fn found(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

pub(crate) fn good(command: &mut Command) -> io::Result<()> {
    let status = command.status()?;
    if status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{command:?} failed: {status}")))
}

/// Whether a kernel is built: a study of one cell runs on it.
fn has_kernel(program: &Path) -> bool {
    let mut run = Command::new(program);
    run.args(["run", "dd-read", "size=1MiB", "--target", "kernel-raw:6.12"]);
    run.output().is_ok_and(|output| output.status.success())
}

/// Writes a page anew.
fn written(program: &Path, place: &Path, page: &Page) -> io::Result<PathBuf> {
    let html = place.join(format!("{}.html", page.name));
    let members = place.join("members");
    fs::create_dir_all(&members)?;
    let (on_kernel, sizes) = (place.join("kernel.toml"), place.join("sizes.toml"));
    fs::write(&on_kernel, ON_KERNEL)?;
    fs::write(&sizes, block_sizes())?;
    let argument = |word: &&str| {
        let word = word.replace("{on-kernel}", &on_kernel.display().to_string());
        let word = word.replace("{block-sizes}", &sizes.display().to_string());
        let word = word.replace("{html}", &html.display().to_string());
        word.replace("{members}", &members.display().to_string())
    };
    let mut run = Command::new(program);
    run.args(page.arguments.iter().map(argument));
    if page.arguments.contains(&"--on") {
        run.args(SMALL);
    }
    good(&mut run)?;
    Ok(html)
}

/// A page of 10,000 made-up cells, by an example of the crate of reports.
fn large(root: &Path, place: &Path) -> io::Result<PathBuf> {
    let html = place.join(format!("{LARGE}.html"));
    let mut cargo = super::cargo(root);
    cargo.args(["run", "--quiet", "--package", "raidlab-report", "--example=golden", "--"]);
    cargo.args(["--html", "large"]).stdout(fs::File::create(&html)?);
    good(&mut cargo)?;
    Ok(html)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_refused() {
        let some =
            Options { only: Some("real".into()), with: Some("a".into()), ..Options::default() };
        assert_eq!(Options::parse(&["--only", "real", "--with", "a"]), Some(some));
        assert_eq!(Options::parse(&["--shots"]), None);
        assert_eq!(Options::parse(&["--nothing"]), None);
    }
}
