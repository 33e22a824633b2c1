//! Pages that raidlab writes, opened in headless Chromium and used as people use them: the default run, a run with
//! members lost and rebuilt, one on member files beside the model, a replay, one on a kernel, and 10,000 cells.
//!
//! `pages.mjs` looks for errors, requests, figures that are missing, what is cut off, what sorting takes, and by
//! axe-core for what people cannot read or reach.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What npm fetches: a driver for browsers, and Deque's checks of accessibility (MPL-2.0; a tool, no part of raidlab).
const PACKAGES: [&str; 2] = ["playwright-core@1", "axe-core@4"];
const DEBIAN: [&str; 3] = ["chromium", "nodejs", "npm"];

/// A page: its name, the arguments that write it, and the figures that it must have. `{html}` is the page,
/// `{members}` a directory.
struct Page {
    name: &'static str,
    arguments: &'static [&'static str],
    figures: &'static str,
    needs_kernel: bool,
}

const SMALL: &[&str] = &["--size", "4MiB", "--rounds", "2", "--no-store", "--quiet"];

const PAGES: [Page; 5] = [
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
        name: "files",
        arguments: &["compare", "--on", "virtual,{members}", "--html", "{html}"],
        figures: "percent,rate,latency,ecdf,residuals",
        needs_kernel: false,
    },
    Page {
        name: "replay",
        arguments: &["replay", "sata-2018", "--seeds", "3", "--quiet", "--html", "{html}"],
        figures: "published,busy,blocks,choice",
        needs_kernel: false,
    },
    Page {
        name: "kernel",
        arguments: &["compare", "--on", "virtual,kernel:6.12", "--html", "{html}"],
        figures: "residuals,latency,choice",
        needs_kernel: true,
    },
];

/// Writes the pages and opens them; `--shots` names a directory for pictures. Whether all are good.
pub(crate) fn run(root: &Path, options: &[&str]) -> io::Result<bool> {
    let shots = match options {
        [] => None,
        ["--install"] => {
            apt_get()?;
            None
        }
        ["--shots", directory] => Some(*directory),
        _ => return Err(io::Error::other("pages takes --install or --shots DIR")),
    };
    let Some(browser) = found("chromium").filter(|_| found("npm").is_some()) else {
        let packages = DEBIAN.join(" ");
        println!(
            "SKIPPED pages: needs {packages}; cargo xtask pages --install gets them by apt-get"
        );
        return Ok(true);
    };
    let place = root.join("target/pages");
    fs::create_dir_all(&place)?;
    let mut npm = Command::new("npm");
    npm.current_dir(&place).args(["install", "--no-audit", "--no-fund", "--silent"]).args(PACKAGES);
    good(&mut npm)?;
    let mut cargo = super::cargo(root);
    good(cargo.args(["build", "--release", "--package", "raidlab-cli"]))?;
    let mut pages = Vec::new();
    for page in &PAGES {
        if page.needs_kernel && !has_kernel(root) {
            println!(
                "SKIPPED page {}: no kernel 6.12; cargo xtask kernel 6.12 builds it",
                page.name
            );
            continue;
        }
        pages.push(format!("{}={}", written(root, &place, page)?.display(), page.figures));
    }
    pages.push(large(root, &place)?.display().to_string());
    let mut node = Command::new("node");
    node.arg(root.join("xtask/src/pages.mjs")).arg(&place).arg(browser);
    node.arg(shots.unwrap_or("-")).args(&pages);
    Ok(node.status()?.success())
}

fn apt_get() -> io::Result<()> {
    let mut install = Command::new("apt-get");
    good(install.args(["install", "-y", "--no-install-recommends"]).args(DEBIAN))
}

/// A program by its name.
fn found(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

fn good(command: &mut Command) -> io::Result<()> {
    let status = command.status()?;
    if status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{command:?} failed: {status}")))
}

fn raidlab(root: &Path) -> Command {
    Command::new(root.join("target/release/raidlab"))
}

/// Whether a kernel is built: a study of one cell runs on it.
fn has_kernel(root: &Path) -> bool {
    let mut run = raidlab(root);
    run.args(["run", "dd-read", "--target", "kernel-raw:6.12", "--size", "1MiB"]);
    run.output().is_ok_and(|output| output.status.success())
}

/// Writes a page anew.
fn written(root: &Path, place: &Path, page: &Page) -> io::Result<PathBuf> {
    let html = place.join(format!("{}.html", page.name));
    let members = place.join("members");
    fs::create_dir_all(&members)?;
    let argument = |word: &&str| {
        let word = word.replace("{html}", &html.display().to_string());
        word.replace("{members}", &members.display().to_string())
    };
    let mut run = raidlab(root);
    run.args(page.arguments.iter().map(argument));
    if page.arguments.contains(&"--on") {
        run.args(SMALL);
    }
    good(&mut run)?;
    Ok(html)
}

/// A page of 10,000 made-up cells, by an example of the crate of reports.
fn large(root: &Path, place: &Path) -> io::Result<PathBuf> {
    let html = place.join("ten-thousand.html");
    let mut cargo = super::cargo(root);
    cargo.args(["run", "--quiet", "--package", "raidlab-report", "--example=golden", "--"]);
    cargo.args(["--html", "large"]).stdout(fs::File::create(&html)?);
    good(&mut cargo)?;
    Ok(html)
}
