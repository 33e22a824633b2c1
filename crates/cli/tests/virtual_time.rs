//! `raidlab compare` on modelled drives: the same bytes every time, and what is printed where.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Ran, Running, SMALL, Scratch, command, names, raidlab};
use raidlab_results::{Clock, Results};

/// The small study with these arguments.
fn compare(scratch: &Scratch, arguments: &[&str]) -> Command {
    let study = scratch.file("study.toml", SMALL);
    let mut command = command();
    command.arg("compare").arg(study).args(arguments);
    command
}

fn ran(mut command: Command) -> Ran {
    Ran::from(command.output().expect("the binary runs")).good()
}

#[test]
fn one_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let scratch = Scratch::new("determinism");
    let json = |arguments: &[&str]| {
        let common = ["--json", "-", "--rounds", "6"];
        ran(compare(&scratch, &[&common, arguments].concat())).stdout
    };
    let first = json(&["--threads", "1"]);
    assert_eq!(first, json(&["--threads", "1"]));
    assert_eq!(first, json(&["--threads", "2"]));
    assert_eq!(first, json(&[]));
    assert_eq!(first, json(&["--seed", "1"]), "the study's seed");
    assert_ne!(first, json(&["--seed", "2"]));
    let results = Results::from_json(&first).expect("a results document");
    assert_eq!((results.clock, results.seed, results.cells.len()), (Clock::Virtual, 1, 16));
    assert!(results.cells.iter().all(|cell| cell.samples.len() == 6));
}

/// One layout has the arrays that studies have, not those of the default study's first layout: of far copies md reads
/// the outer one, as any `compare` does.
#[test]
fn a_run_reads_copies_as_a_study_does() {
    const HALF: u64 = 15_628_053_168 / 2;
    let scratch = Scratch::new("run_policy");
    let trace = scratch.path().join("trace.txt");
    let path = trace.to_str().expect("text");
    let workload = ["run", "random-read", "size=256KiB", "--target", "modelled-raw"];
    let layout = ["--layout", "raid10(4) far2", "--trace", path];
    raidlab([&workload[..], &layout].concat()).good();
    let text = fs::read_to_string(&trace).expect("a trace");
    let place = |line: &str| line.split(' ').nth(4).and_then(|at| at.parse::<u64>().ok());
    let places: Vec<u64> = text.lines().skip(1).map(|line| place(line).expect("a place")).collect();
    assert!(places.len() >= 64 && places.iter().all(|at| *at < HALF), "{text}");
}

/// A title for each run of a cell, and below it what its drives got: those of the document moved so much.
#[test]
fn requests_of_modelled_drives_are_kept() {
    let scratch = Scratch::new("trace");
    let trace = scratch.path().join("trace.txt");
    let path = trace.to_str().expect("text");
    ran(compare(&scratch, &["--rounds", "1", "--json", "-", "--trace", path]));
    let text = fs::read_to_string(&trace).expect("a trace");
    let titles = text.lines().filter(|line| line.starts_with("# ")).count();
    assert_eq!(titles, 16, "the cells of the study");
    let is_request = |line: &&str| line.split(' ').count() == 7 && !line.starts_with('#');
    assert_eq!(text.lines().filter(is_request).count() + titles, text.lines().count(), "{text}");
    let words = ["run", "dd-write", "size=1MiB", "--target", "modelled-raw", "--trace", path];
    raidlab(words).good();
    let text = fs::read_to_string(&trace).expect("a trace");
    let bytes =
        text.lines().skip(1).map(|line| line.split(' ').nth(5).and_then(|b| b.parse::<u64>().ok()));
    assert_eq!(bytes.map(|bytes| bytes.expect("bytes")).sum::<u64>(), 1 << 20, "{text}");
    raidlab(["run", "dd", "--target", "null", "--trace", path])
        .refused(&["--trace: means nothing on"]);
}

#[test]
fn piped_output_is_plain() {
    let scratch = Scratch::new("plain");
    let table = ran(compare(&scratch, &[])).stdout;
    assert!(!table.contains(['\x1b', '\r']), "{table}");
    assert!(table.contains("raid5(3)") && table.contains("seed"), "{table}");
    let coloured = ran(compare(&scratch, &["--color", "always"])).stdout;
    assert!(coloured.contains("\x1b["), "{coloured}");
    assert_eq!(without_escapes(&coloured), table);
    let mut always = compare(&scratch, &["--color", "always"]);
    always.env("NO_COLOR", "1");
    assert_eq!(ran(always).stdout, coloured, "what is asked for counts more");
    assert_eq!(ran(compare(&scratch, &["--color", "never"])).stdout, table);
}

/// Text without escape sequences of the form ESC [ ... m.
fn without_escapes(text: &str) -> String {
    let mut pieces = text.split("\x1b[");
    let first = pieces.next().unwrap_or_default().to_string();
    pieces.fold(first, |text, piece| text + piece.split_once('m').map_or("", |(_, rest)| rest))
}

/// On a terminal there is colour and progress, unless NO_COLOR or --quiet say otherwise.
#[test]
fn a_terminal_gets_colour_and_progress() {
    let scratch = Scratch::new("terminal");
    let on_terminal = |arguments: &[&str], no_color: &str| {
        let inner = compare(&scratch, arguments);
        let quote = |text: &std::ffi::OsStr| format!("'{}'", text.to_string_lossy());
        let words: Vec<String> =
            std::iter::once(inner.get_program()).chain(inner.get_args()).map(quote).collect();
        let mut script = Command::new("script");
        script.args(["-qefc", &words.join(" "), "/dev/null"]);
        script.env("TERM", "xterm-256color").env("NO_COLOR", no_color).stdin(Stdio::null());
        script.env("RAIDLAB_STORE", "off");
        Ran::from(script.output().expect("script, of util-linux")).good().stdout
    };
    let shown = on_terminal(&[], "");
    assert!(shown.contains("96 runs, ") && shown.contains(" left"), "{shown}");
    assert!(shown.contains("round 1: "), "{shown}");
    let colours = |text: &str| text.contains("\x1b[1m") || text.contains("\x1b[3");
    assert!(colours(&shown), "{shown}");
    let plain = on_terminal(&["--quiet"], "1");
    assert!(!plain.contains("\x1b["), "{plain}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let scratch = Scratch::new("pipe");
    // The reader is gone long before a hundred rounds are done and the document is written.
    let mut command = compare(&scratch, &["--json", "-", "--rounds", "100"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("runs");
    drop(child.stdout.take());
    let mut said = String::new();
    for line in BufReader::new(child.stderr.take().expect("piped")).lines() {
        said += &line.expect("text");
    }
    assert_eq!((child.wait().expect("a child").code(), said.as_str()), (Some(0), ""));
}

#[test]
fn a_reader_of_errors_that_goes_away_is_no_panic() {
    let mut command = command();
    command.args(["compare", "missing.toml"]).stderr(Stdio::piped());
    let mut child = command.spawn().expect("runs");
    drop(child.stderr.take());
    assert_eq!(child.wait().expect("a child").code(), Some(2));
}

#[test]
fn reports_are_written_whole_and_replace_what_was_there() {
    let scratch = Scratch::new("reports");
    let json = scratch.file("out.json", "old and much longer than nothing");
    let target = scratch.file("target.html", "old");
    let link = scratch.path().join("link.html");
    std::os::unix::fs::symlink(&target, &link).expect("a link");
    let (json_text, link_text) = (json.display().to_string(), link.display().to_string());
    let both = ran(compare(&scratch, &["--json", &json_text, "--html", &link_text]));
    assert!(both.stdout.contains("A small study"), "the table is printed too");
    let quiet = ["--json", &json_text, "--html", &link_text, "--quiet"];
    assert_eq!(ran(compare(&scratch, &quiet)).stdout, "");
    let written = fs::read_to_string(&json).expect("written");
    assert_eq!(written, ran(compare(&scratch, &["--json", "-"])).stdout);
    Results::from_json(&written).expect("a results document");
    assert!(fs::symlink_metadata(&link).expect("there").is_symlink(), "the link stays one");
    self_contained(&target);
    assert_eq!(names(scratch.path()), ["link.html", "out.json", "study.toml", "target.html"]);
    assert_eq!(ran(compare(&scratch, &["--json", "/dev/null", "-q"])).stdout, "");
}

/// What took long to measure is not lost because one of its files has no room: the others are written, and it is shown.
#[test]
fn a_report_that_cannot_be_written_costs_no_other() {
    for (full, other) in
        [("--json", "--html"), ("--html", "--json"), ("--json", "--csv"), ("--csv", "--markdown")]
    {
        let scratch = Scratch::new("full");
        let path = scratch.path().join("other");
        let path = path.to_str().expect("UTF-8");
        let mut command = compare(&scratch, &[full, "/dev/full", other, path, "--quiet"]);
        let ran = Ran::from(command.output().expect("the binary runs"));
        assert_eq!(ran.code, Some(1), "{full}: {}", ran.stderr);
        assert!(ran.stderr.contains("/dev/full"), "{}", ran.stderr);
        assert!(ran.stdout.contains("A small study"), "it is shown rather than lost");
        let written = fs::read_to_string(path).expect("written all the same");
        assert!(written.len() > 100, "{full}, {other}: {written}");
    }
}

/// A page that needs nothing but a browser.
fn self_contained(path: &Path) {
    let html = fs::read_to_string(path).expect("written");
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains("<svg"), "{}", &html[..200]);
    // The name of a namespace, and links within the page: nothing is fetched for them.
    let html = html.replace("http://www.w3.org/2000/svg", "").replace("href=\"#", "");
    for asks in ["http:", "https:", "src=", "href=", "url(", "@import"] {
        assert!(!html.contains(asks), "{asks}");
    }
}

#[test]
fn the_default_study_is_what_it_says() {
    let json = raidlab(["compare", "--json", "-", "--size", "6MiB", "--rounds", "1"]).good();
    let results = Results::from_json(&json.stdout).expect("a results document");
    let names: Vec<_> = results.layouts.iter().map(|layout| layout.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "single",
            "linear(4)",
            "raid0(4)",
            "raid1(2)",
            "raid4(4)",
            "raid5(4)",
            "raid6(4)",
            "raid10(4)",
            "raid10(4) far2"
        ]
    );
    assert_eq!(results.cells.len(), 9 * 4 * 3);
    assert!(results.workloads.iter().all(|workload| workload.description.contains("6MiB")));
    assert_eq!(results.baseline, ["single"]);
}

/// One cell goes on for minutes; what asks it to end is heard inside of it.
#[test]
fn a_long_modelled_cell_ends_when_it_is_asked_to() {
    let scratch = Scratch::new("long-cell");
    let absurd =
        SMALL.replace("size = \"64KiB\"", "size = \"640GiB\"").replace("\"1MiB\"", "\"9GiB\"");
    let study = scratch.file("absurd.toml", absurd);
    for signal in ["INT", "TERM"] {
        let mut run = Running::start([Path::new("compare"), &study]);
        let id = run.id();
        // In hundredths of a second of CPU time (proc_pid_stat(5)), by when cells run.
        run.wait_until("a cell", || {
            let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
            let user = stat.rsplit(')').next()?.split_whitespace().nth(11)?;
            (user.parse::<u64>().ok()? > 30).then_some(())
        });
        run.signal(signal);
        let ran = run.finish();
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(130), ""), "{}", ran.stderr);
        assert!(ran.stderr.contains("note: this study models about "), "{}", ran.stderr);
        assert!(ran.stderr.ends_with("interrupted\n"), "{}", ran.stderr);
    }
}

/// A pager or a file is read somewhere, too.
#[test]
fn columns_are_honoured_in_pipes() {
    let scratch = Scratch::new("columns");
    let widest = |columns: &str| {
        let mut command = compare(&scratch, &[]);
        command.env("COLUMNS", columns);
        let lines = ran(command).stdout;
        lines.lines().map(|line| line.chars().count()).max().expect("lines")
    };
    assert!(widest("60") <= 60, "{}", widest("60"));
    assert!(widest("200") > 60);
    assert_eq!(widest("wide"), widest("0"), "what is no width is left alone");
}

/// Files next to one another lie on one drive of a linear array: several processes gain nothing there, and did
/// only as long as their files lay at even shares of the whole array.
#[test]
fn files_of_several_processes_lie_on_one_drive_of_a_linear_array() {
    let flags = ["--json", "-", "--size", "60MiB", "--rounds", "1"];
    let json = raidlab([&["compare"][..], &flags].concat()).good();
    let results = Results::from_json(&json.stdout).expect("a results document");
    for workload in ["dd-write 6MiB", "dd-read 6MiB"] {
        let median = |layout: &str| {
            let cells = results.cells.iter().filter(|cell| cell.processes == 4);
            let found = cells.filter(|cell| cell.layout == layout && cell.workload == workload);
            found.map(|cell| cell.median).next().expect("a cell")
        };
        assert_eq!(median("linear(4)"), median("single"), "{workload}");
    }
}

/// Its random places lie in a file there, as the size of the array says nothing of files.
#[test]
fn the_default_study_runs_on_a_filesystem() {
    let flags = ["--filesystem", "ext4", "--size", "6MiB", "--rounds", "1", "--json", "-"];
    let json = raidlab([&["compare"][..], &flags].concat()).good();
    let results = Results::from_json(&json.stdout).expect("a results document");
    assert_eq!(results.cells.len(), 9 * 4 * 3);
}

/// Nobody has a file of the default study: errors name it, or the flag that is wrong.
#[test]
fn errors_name_what_the_user_gave() {
    let ran = raidlab(["compare", "--filesystem", "zfs"]);
    ran.refused(&["error: --filesystem: `zfs` is not a filesystem"]);
    let scratch = Scratch::new("names");
    let study = scratch.file("mine.toml", SMALL);
    let mut command = command();
    command.arg("compare").arg(&study).args(["--filesystem", "ext4"]);
    let ran: Ran = command.output().expect("the binary runs").into();
    let place = format!("error: --filesystem ext4: {}:", study.display());
    ran.refused(&[&place, "workloads.span", "random places need a size, such as span=1GiB"]);
    let on = scratch.path().display().to_string();
    let ran = raidlab(["compare", "--filesystem", "ffs", "--on", &on]);
    ran.refused(&["error: --filesystem: `ffs` is for modelled hosts"]);
}

/// Not modelled as ext4 without a word: XFS may take five times as long, or a fifth.
#[test]
fn filesystems_that_are_not_modelled_are_refused() {
    for name in ["xfs", "btrfs"] {
        let ran = raidlab(["compare", "--filesystem", name]);
        let not_modelled = format!("error: --filesystem: {name} is not modelled");
        ran.refused(&[&not_modelled, "ext2, ext3, ext4, ffs", "--on kernel:6.12"]);
        let scratch = Scratch::new(name);
        let title = "title = \"A small study\"\n";
        let named = format!("{title}filesystem = \"{name}\"\n");
        let text = SMALL
            .replace(title, &named)
            .replace("size = \"64KiB\"", "size = \"64KiB\"\nspan = \"1MiB\"");
        let study = scratch.file("mine.toml", &text).display().to_string();
        let line = format!("{study}:3: filesystem: {name} is not modelled");
        raidlab(["compare", &study]).refused(&[&line]);
        raidlab(["compare", &study, "--on", "virtual,kernel:6.12"]).refused(&[&line]);
        let good = raidlab(["study", "check", &study]).good();
        assert!(good.stdout.contains("with --on DIR or --on kernel:6.12 only"), "{}", good.stdout);
        let around = format!("{title}filesystem = \"ext4\"\nhost = {{ kernel = \"linux-6.1\" }}\n");
        let of_layout = format!("level = \"single\"\nfilesystem = \"{name}\"\n");
        let text = SMALL.replace(title, &around).replace("level = \"single\"\n", &of_layout);
        let study = scratch.file("layout.toml", text).display().to_string();
        raidlab(["compare", &study]).refused(&["filesystem", &format!("{name} is not modelled")]);
    }
}

/// Beside the mean of several layouts, too, as many rounds are drawn as the report asks for.
#[test]
fn a_report_beside_the_mean_of_several_layouts_is_not_preliminary() {
    let scratch = Scratch::new("several");
    let head = "rounds = 1\nmax_rounds = 1\nbaseline = [\"single\", \"raid1(2)\"]\n";
    let mirror = "[[layouts]]\nlevel = \"raid1\"\nmembers = 2\n[[workloads]]\n";
    let text = SMALL.replacen("rounds = 1\n", head, 1).replacen("[[workloads]]\n", mirror, 1);
    let study = scratch.file("several.toml", text);
    let told = |arguments: &[&str]| {
        let mut command = command();
        command.arg("compare").arg(&study).args(arguments);
        ran(command).stdout
    };
    let is_preliminary =
        |table: &str| table.contains("preliminary") || table.contains("too few rounds");
    let table = told(&[]);
    assert!(!is_preliminary(&table), "{table}");
    assert!(is_preliminary(&told(&["--rounds", "6"])), "one fewer is");
    let results = Results::from_json(&told(&["--json", "-"])).expect("a results document");
    assert!(results.cells.iter().all(|cell| cell.samples.len() == 7));
}

#[test]
fn states_are_columns_of_every_report() {
    let scratch = Scratch::new("states");
    let html = scratch.path().join("report.html");
    let html = html.to_str().expect("a plain path");
    let states = ["--states", "healthy,degraded,rebuilding", "--rounds", "2"];
    let table = ran(compare(&scratch, &[&states[..], &["--html", html]].concat())).stdout;
    let json = ran(compare(&scratch, &[&states[..], &["--json", "-"]].concat())).stdout;
    let results = Results::from_json(&json).expect("a results document");
    let html = fs::read_to_string(html).expect("a report");
    for state in ["degraded", "rebuilding"] {
        assert!(table.contains(&format!("1 process, {state}")), "{table}");
        assert!(html.contains(state));
        let of_state = results.cells.iter().filter(|cell| cell.state == state);
        assert!(of_state.clone().count() > 8);
        assert!(of_state.clone().all(|cell| cell.layout == "raid5(3) chunk=64K"));
        assert!(of_state.clone().any(|cell| cell.metric == "p99_ms"));
    }
    for words in
        ["latency that 99 % of requests stay within", "time of the whole rebuild, estimated"]
    {
        assert!(table.contains(words) && html.contains(words), "{words}: {table}");
    }
    assert!(table.contains("no load, rebuilding") && table.contains("are estimates"), "{table}");
    assert!(table.contains("neither degraded nor rebuilding: single"), "{table}");
    // A rebuild of little is measured to its end.
    let small = SMALL.replacen("rounds", "member_size = \"64MiB\"\nrounds", 1);
    let study = scratch.file("cut.toml", small);
    let mut cut = command();
    cut.arg("compare").arg(study).args(["--states", "rebuilding", "--json", "-"]);
    let results = Results::from_json(&ran(cut).stdout).expect("a results document");
    let alone = results.cells.iter().find(|cell| cell.workload == "rebuild").expect("a rebuild");
    assert_eq!((alone.metric.as_str(), alone.unit.as_str()), ("rebuild_s", "s"));
    assert!(alone.median > 0.2 && alone.median < 2.0, "{}", alone.median);
    assert_eq!(results.layouts[0].capacity, 64 << 20);
}
