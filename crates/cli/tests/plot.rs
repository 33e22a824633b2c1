//! `raidlab plot`: a figure of results as a file, and what is refused before any file is written.

use std::fs;
use std::path::PathBuf;

use crate::support::{Ran, Scratch, raidlab};

const STUDY: &str = "title = \"small\"\nrounds = 6\nprocesses = [1, 2]\n\
    [[drives]]\nname = \"disk\"\nmodel = \"nas-8tb-7200\"\ncount = 2\n\
    [[layouts]]\nlevel = \"single\"\n[[layouts]]\nlevel = \"raid1\"\nmembers = 2\n\
    [[workloads]]\nkind = \"random-read\"\nsize = \"256KiB\"\n";

/// What `compare --json` writes of a study of this title, and the path of it.
fn document(scratch: &Scratch, title: &str) -> PathBuf {
    let study = scratch.file(&format!("{title}.toml"), STUDY.replace("small", title));
    let path = scratch.path().join(format!("{title}.json"));
    let [study, json] = [&study, &path].map(|path| path.to_str().expect("text"));
    raidlab(["compare", study, "--quiet", "--json", json]).good();
    path
}

fn plot(run: &std::path::Path, flags: &[&str]) -> Ran {
    let run = run.to_str().expect("text");
    raidlab(["plot", run].into_iter().chain(flags.iter().copied()))
}

fn names(scratch: &Scratch) -> Vec<String> {
    let entries = fs::read_dir(scratch.path()).expect("a directory");
    let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("text");
    let mut names: Vec<String> = entries.map(|entry| name(entry.expect("an entry"))).collect();
    names.sort();
    names
}

#[test]
fn every_figure_that_a_run_has_the_data_for_is_drawn() {
    let scratch = Scratch::new("plot-all");
    let run = document(&scratch, "small");
    let all = raidlab(["plot", "--list"]).good().stdout;
    let own = plot(&run, &["--list"]).good().stdout;
    assert!(own.lines().all(|line| all.contains(line)), "{own}");
    let listed: Vec<&str> = own.lines().filter_map(|line| line.split(' ').next()).collect();
    for name in ["bars", "percent", "scaling", "finish", "latency", "ecdf", "rate", "busy"] {
        assert!(listed.contains(&name), "{name} is not in {listed:?}");
    }
    assert!(!listed.contains(&"states") && !listed.contains(&"published"), "{listed:?}");
    for name in listed {
        let printed = plot(&run, &[name, "--panels", "1000"]).good().stdout;
        assert!(printed.starts_with("<?xml ") && printed.trim_end().ends_with("</svg>"), "{name}");
    }
    let file = scratch.path().join("bars.svg");
    let path = file.to_str().expect("text");
    assert_eq!(plot(&run, &["bars", "--layout", "raid1(2)", "--svg", path]).good().stdout, "");
    let svg = fs::read_to_string(&file).expect("a picture");
    assert!(svg.contains("raid1(2)") && !svg.contains(">single<"), "{svg}");
    // What is left out is said.
    let one = plot(&run, &["bars", "--panels", "1", "--svg", path]);
    assert_eq!((one.code, one.stdout.as_str()), (Some(0), ""));
    assert!(one.stderr.contains("1 more panel is left out"), "{}", one.stderr);
}

#[test]
fn what_cannot_be_drawn_is_refused_and_nothing_is_written() {
    let scratch = Scratch::new("plot-refused");
    let run = document(&scratch, "small");
    let before = names(&scratch);
    let file = scratch.path().join("out.svg");
    let svg = file.to_str().expect("text");
    let refused = |flags: &[&str], words: &[&str]| {
        plot(&run, &[flags, &["--svg", svg]].concat()).refused(words);
        assert_eq!(names(&scratch), before, "{flags:?}");
    };
    refused(&["pie"], &["no figure `pie`", "there are bars, percent"]);
    refused(&["states"], &["`states` needs cells in states besides healthy", "data for bars"]);
    refused(&["published"], &["`published` needs published figures"]);
    refused(&["residuals"], &["--against RUN"]);
    refused(&[], &["name a FIGURE", "has the data for bars"]);
    refused(&["bars", "--layout", "raid1(3)"], &["--layout `raid1(3)`", "single, raid1(2)"]);
    refused(&["bars", "--processes", "9"], &["no cell has all that is asked for"]);
    refused(&["bars", "--study", "another"], &["--study another", "has small"]);
    refused(&["bars", "--against", svg], &["residuals"]);
    let nowhere = scratch.path().join("no/such.svg");
    plot(&run, &["bars", "--svg", nowhere.to_str().expect("text")]).refused(&[
        "--svg",
        "no/such.svg",
        "cannot be written",
    ]);
    plot(&run, &["bars", "--svg", scratch.path().to_str().expect("text")])
        .refused(&["--svg", "it is a directory"]);
    assert_eq!(names(&scratch), before);
}

#[test]
fn documents_that_cannot_be_read_are_named() {
    let scratch = Scratch::new("plot-documents");
    let run = document(&scratch, "small");
    let text = fs::read_to_string(&run).expect("a document");
    let newer = text.replacen("\"schema_version\": 2", "\"schema_version\": 3", 1);
    assert_ne!(text, newer);
    let newer = scratch.file("newer.json", newer);
    plot(&newer, &["bars"]).refused(&["newer.json", "schema_version 3", "reads 2"]);
    plot(&newer, &["--list"]).refused(&["newer.json", "schema_version 3"]);
    plot(&scratch.file("torn.json", &text[..text.len() / 2]), &["bars"]).refused(&["torn.json"]);
    plot(&scratch.path().join("gone.json"), &["bars"]).refused(&["gone.json", "--json"]);
    // Two studies have no axis in common: side by side one is chosen, and against each other they are refused.
    let two = format!(
        "{{\"schema_version\": 2, \"replays\": [{text}, {}]}}",
        text.replace("\"small\"", "\"other\"")
    );
    let two = scratch.file("two.json", two);
    plot(&two, &["bars"]).refused(&["two.json", "holds 2 studies", "--study", "small; other"]);
    plot(&two, &["bars", "--study", "other"]).good();
    let other = scratch.file("other.json", text.replace("random-read", "random-write"));
    let against = ["residuals", "--against", other.to_str().expect("text")];
    plot(&run, &against).refused(&["no cell in common"]);
    // A layout that is listed twice contradicts the cells.
    let torn = text.replacen("\"raid1(2)\"", "\"raid1(9)\"", 1);
    plot(&scratch.file("wrong.json", torn), &["bars"]).refused(&["raid1("]);
}

/// Who was sent a document has its report, too.
#[test]
fn a_document_is_shown_as_a_recorded_run_is() {
    let scratch = Scratch::new("plot-shown");
    let run = document(&scratch, "small");
    let path = run.to_str().expect("text");
    let shown = raidlab(["show", path]).good().stdout;
    assert!(shown.starts_with("small\n") && shown.contains("Conclusions"), "{shown}");
    let again = raidlab(["show", path, "--json", "-"]).good().stdout;
    assert_eq!(again, fs::read_to_string(&run).expect("a document"));
    let replay = scratch.path().join("replay.json");
    let replay = replay.to_str().expect("text");
    let chosen = ["--layout", "disk1", "--processes", "1", "--seeds", "1", "--quiet"];
    raidlab(["replay", "pata-2005", "--json", replay].into_iter().chain(chosen)).good();
    let shown = raidlab(["show", replay]).good().stdout;
    assert!(shown.contains("published"), "{shown}");
    raidlab(["show", scratch.path().to_str().expect("text")]).refused(&["directory"]);
}
