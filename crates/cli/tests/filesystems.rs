//! Studies on a filesystem: made on real arrays for each cell, which needs root, or modelled.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::extent::Extent;
use crate::root::{can_mount, skip, traces};
use crate::support::{self, Ran, Running, Scratch, names};
use raidlab_results::{Cell, Clock, Results};

const EXT4: [&str; 2] = ["mkfs.ext4", "e2fsck"];
/// Waits until all is on the members, where the everyday workloads end in memory.
const SYNCED: &str = "[[workloads]]\nkind = \"dd\"\nname = \"synced\"\nbs = \"1MiB\"\ncount = 8\n\
                      conv = \"fdatasync\"\n";

/// The small study of everyday workloads: what is above the workloads, and each of these.
fn everyday() -> (String, Vec<String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/pata-2005-small.toml");
    let text = fs::read_to_string(path).expect("the study");
    let mut parts = text.split("[[workloads]]");
    let head = parts.next().expect("a head").to_string();
    let workloads: Vec<_> = parts.map(|part| format!("[[workloads]]{part}\n")).collect();
    assert_eq!(workloads.len(), 6);
    assert!(head.contains("processes = [1, 2, 3, 4]") && head.contains("filesystem = \"ext4\""));
    (head, workloads)
}

/// One layout of two drives that writes until it is stopped.
fn endless(level: &str) -> String {
    format!(
        "title = \"Endless\"\nrounds = 10000\nfilesystem = \"ext4\"\n\
         [[drives]]\nname = \"d\"\nfile = \"160MiB\"\ncount = 2\n\
         [[layouts]]\nlevel = \"{level}\"\nmembers = 2\n{SYNCED}"
    )
}

/// A study and a directory to run it in.
struct Bench {
    scratch: Scratch,
    on: PathBuf,
}

impl Bench {
    /// `None` where nothing can be mounted, which is told.
    fn new(test: &str) -> Option<Self> {
        can_mount(test, &EXT4).then(|| {
            let scratch = Scratch::new(test);
            let on = scratch.directory("on");
            Self { scratch, on }
        })
    }

    fn arguments(&self, text: &str, more: &[&str]) -> Vec<OsString> {
        let study = self.scratch.file("study.toml", text);
        let first: [&std::ffi::OsStr; 4] =
            ["compare".as_ref(), study.as_ref(), "--on".as_ref(), self.on.as_ref()];
        first.into_iter().map(Into::into).chain(more.iter().map(Into::into)).collect()
    }

    fn run(&self, text: &str, more: &[&str]) -> Ran {
        support::raidlab(self.arguments(text, more))
    }

    /// Nothing is mounted, attached or left.
    fn assert_clean(&self) {
        assert_eq!(traces(self.scratch.path()), [""; 0]);
        assert_eq!(names(&self.on), [""; 0]);
    }

    /// Where a run has its filesystem.
    fn files(&self, run: &mut Running) -> PathBuf {
        self.on.join(format!("raidlab-mount-{}-0/files", run.id()))
    }
}

fn is_mounted(point: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    mounts.lines().any(|line| line.split(' ').nth(4) == point.to_str())
}

fn results(text: &str) -> Results {
    Results::from_json(text).expect("a results document")
}

fn amplification(cell: &Cell) -> f64 {
    let members = cell.members.as_ref().expect("members are counted");
    members.write_amplification.expect("something was written")
}

#[test]
fn everyday_workloads_run_on_every_layout() {
    let Some(bench) = Bench::new("everyday_workloads_run_on_every_layout") else { return };
    let (head, workloads) = everyday();
    let extent = Extent::from_environment();
    let head = match extent {
        Extent::All => head,
        Extent::Sample(_) => head.replace("[1, 2, 3, 4]", "[1, 4]"),
    };
    let chosen = extent.choose(workloads, 1);
    let text = format!("{head}{}{SYNCED}", chosen.concat());
    let found =
        results(&bench.run(&text, &["--rounds", "1", "--json", "-", "--quiet"]).good().stdout);
    bench.assert_clean();
    assert_eq!((found.clock, found.layouts.len()), (Clock::Real, 4));
    assert!(found.settings["target"].starts_with("ext4 made for each run"), "{found:?}");
    let processes: &[u32] = if extent == Extent::All { &[1, 2, 3, 4] } else { &[1, 4] };
    for workload in &found.workloads {
        for &count in processes {
            let amplified = ["single", "raid1(2)"].map(|layout| {
                let cell = found.cell(layout, &workload.name, count, "healthy");
                let cell = cell.unwrap_or_else(|| panic!("{layout}, {}, {count}", workload.name));
                if workload.name == "synced" { amplification(cell) } else { 0.0 }
            });
            if workload.name == "synced" {
                let [single, raid1] = amplified;
                assert!(single >= 1.0, "{count}: {single}");
                assert!((1.8..2.2).contains(&(raid1 / single)), "{count}: {raid1} of {single}");
            }
        }
    }
    let headline = |cell: &&Cell| !cell.detail && cell.metric != "p99_ms";
    let cells: Vec<&Cell> = found.cells.iter().filter(headline).collect();
    assert_eq!(cells.len(), 4 * (chosen.len() + 1) * processes.len());
    for cell in cells {
        assert!(cell.median > 0.0 && cell.members.is_some(), "{cell:?}");
        assert!(cell.first_done_s <= cell.last_done_s && cell.last_done_s > 0.0, "{cell:?}");
        assert_eq!(cell.fairness.is_some(), cell.processes > 1, "{cell:?}");
        let fair = cell.fairness.unwrap_or(1.0) * f64::from(cell.processes);
        assert!((1.0..=f64::from(cell.processes) + 1e-9).contains(&fair), "{cell:?}");
    }
}

#[test]
fn degraded_runs_and_rebuilding_is_refused_by_name() {
    let Some(bench) = Bench::new("degraded_runs_and_rebuilding_is_refused_by_name") else { return };
    let text = endless("raid1").replace("10000", "1");
    let both = ["--states", "healthy,degraded", "--json", "-"];
    let found = results(&bench.run(&text, &both).good().stdout);
    let [healthy, degraded] = ["healthy", "degraded"].map(|state| {
        let cell = found.cell("raid1(2)", "synced", 1, state);
        amplification(cell.unwrap_or_else(|| panic!("{state}")))
    });
    assert!((1.8..2.2).contains(&(healthy / degraded)), "{healthy} {degraded}: one copy less");
    bench.run(&text, &["--states", "rebuilding"]).refused(&[
        "states: `rebuilding` on a filesystem",
        "not supported on real drives",
        "leave it out",
    ]);
    bench.assert_clean();
}

#[test]
fn after_ctrl_c_nothing_is_left_and_complete_rounds_are_reported() {
    let name = "after_ctrl_c_nothing_is_left_and_complete_rounds_are_reported";
    let Some(bench) = Bench::new(name) else { return };
    let json = bench.scratch.path().join("out.json");
    let more = ["--json", json.to_str().expect("a plain path")];
    let mut run = Running::start(bench.arguments(&endless("raid1"), &more));
    let files = bench.files(&mut run);
    // One cell a round: the second begins when the first has been taken down.
    run.wait_until("the first cell", || is_mounted(&files).then_some(()));
    run.wait_until("its end", || (!is_mounted(&files)).then_some(()));
    run.wait_until("the second cell", || is_mounted(&files).then_some(()));
    run.interrupt();
    let ran = run.finish();
    bench.assert_clean();
    let said = "stopped; the member files have been removed\ninterrupted\n";
    let (told, first) = (&ran.stderr, "Provisional, after 1 round: ");
    assert!(ran.code == Some(130) && told.starts_with(first) && told.ends_with(said), "{told}");
    let found = results(&fs::read_to_string(&json).expect("results"));
    let rounds = found.cells[0].samples.len();
    assert!((1..10_000).contains(&rounds), "{rounds}");
    assert!(found.warnings.iter().any(|one| one.contains("interrupted")), "{:?}", found.warnings);
}

#[test]
fn what_a_killed_run_left_mounted_is_taken_down_by_the_next() {
    let name = "what_a_killed_run_left_mounted_is_taken_down_by_the_next";
    let Some(bench) = Bench::new(name) else { return };
    let mut run = Running::start(bench.arguments(&endless("raid1"), &[]));
    let files = bench.files(&mut run);
    run.wait_until("a filesystem", || is_mounted(&files).then_some(()));
    let members = bench.on.join(format!("raidlab-run-{}-0", run.id()));
    run.kill();
    assert!(!traces(&bench.on).is_empty() && members.exists(), "it left something");

    let ran = bench.run(&endless("raid1").replace("10000", "1"), &["--json", "-"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for left in [files.parent().expect("a directory"), &members] {
        let said = format!("removed what a killed run left behind: {}\n", left.display());
        assert!(ran.stderr.contains(&said), "{said} is not in {}", ran.stderr);
    }
    assert_eq!(ran.stderr.lines().count(), 2, "{}", ran.stderr);
    bench.assert_clean();
}

#[test]
fn who_is_not_root_is_told_before_anything_is_changed() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let name = "who_is_not_root_is_told_before_anything_is_changed";
    if !can_mount(name, &[]) {
        return;
    }
    // Where others can reach it.
    let scratch = Scratch::within(&std::env::temp_dir(), name);
    let on = scratch.directory("on");
    fs::write(on.join("letter.txt"), "mine").expect("a file");
    fs::set_permissions(&on, fs::Permissions::from_mode(0o777)).expect("ours");
    let program = scratch.path().join("raidlab");
    // By another program: a file that any process still has open for writing cannot be run.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_raidlab")).arg(&program).status();
    assert!(copied.expect("cp").success());
    let study = scratch.file("study.toml", endless("raid1"));
    let mut command = Command::new(program);
    command
        .env("RAIDLAB_STORE", "off")
        .arg("compare")
        .arg(study)
        .arg("--on")
        .arg(&on)
        .current_dir("/");
    let ran: Ran = command.gid(65534).uid(65534).output().expect("it runs").into();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("mounting needs root; run raidlab as root"), "{}", ran.stderr);
    assert_eq!(names(&on), ["letter.txt"]);
}

#[test]
fn the_modelled_host_gives_the_same_bytes_on_any_number_of_threads() {
    let scratch = Scratch::new("modelled");
    let (head, workloads) = everyday();
    let study = scratch.file("study.toml", format!("{head}{}", workloads.concat()));
    let compare = |threads: &str| {
        let states = ["--states", "healthy,degraded,rebuilding"];
        let first = ["compare", study.to_str().expect("a plain path"), "--rounds", "1"];
        let last = ["--threads", threads, "--json", "-"];
        support::raidlab([&first[..], &states, &last].concat()).good().stdout
    };
    let one = compare("1");
    assert!(one == compare("2"), "threads change nothing");
    let found = results(&one);
    assert_eq!(found.clock, Clock::Virtual);
    assert!(found.settings["target"].contains("model of a Linux host"), "{:?}", found.settings);
    for layout in &found.layouts {
        for workload in found.workloads.iter().filter(|one| one.name != "rebuild") {
            for processes in 1..=4 {
                for state in ["healthy", "degraded", "rebuilding"] {
                    let cell = found.cell(&layout.name, &workload.name, processes, state);
                    let is_there = state == "healthy" || layout.survives > 0;
                    let what = format!("{}, {}, {state}", layout.name, workload.name);
                    assert_eq!(cell.is_some(), is_there, "{what}");
                    assert!(cell.is_none_or(|cell| cell.members.is_some()), "{what}");
                }
            }
        }
    }
}

/// Loop devices over files; taken away at the end.
struct Loops(Vec<(String, PathBuf)>);

impl Loops {
    fn new(scratch: &Scratch) -> Option<Self> {
        let mut loops = Self(Vec::new());
        for n in 0..2 {
            let file = scratch.file(&format!("disk{n}.img"), []);
            let opened = fs::File::options().write(true).open(&file).expect("the file");
            opened.set_len(160 << 20).expect("a sparse file");
            let output = Command::new("losetup").args(["--find", "--show"]).arg(&file).output();
            let output = output.ok().filter(|output| output.status.success())?;
            let node = String::from_utf8_lossy(&output.stdout).trim().to_string();
            loops.0.push((node, file));
        }
        Some(loops)
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        for (node, _) in &self.0 {
            let gone = Command::new("losetup").arg("--detach").arg(node).status();
            assert!(std::thread::panicking() || gone.is_ok_and(|status| status.success()));
        }
    }
}

/// On devices filesystems are mounted among temporary files; a killed run's are found there, too.
#[test]
fn devices_carry_filesystems_and_are_free_afterwards() {
    let name = "devices_carry_filesystems_and_are_free_afterwards";
    let Some(bench) = Bench::new(name) else { return };
    let Some(loops) = Loops::new(&bench.scratch) else {
        skip(name, "needs losetup and loop devices");
        return;
    };
    let join = |parts: [String; 2]| parts.join(",");
    let nodes = join([0, 1].map(|n: usize| loops.0[n].0.clone()));
    let ids = join([0, 1].map(|n: usize| loops.0[n].1.display().to_string()));
    let command = |text: &str| {
        let study = bench.scratch.file("study.toml", text);
        let mut command = support::command();
        command.env("TMPDIR", &bench.on).arg("compare").arg(study);
        command.args(["--on", &nodes, "--destructive", "--yes", "--confirm-id", &ids]);
        command.args(["--overwrite-signatures", "--filesystem", "ext4", "--json", "-"]);
        command.arg("--save-dir").arg(bench.scratch.path().join("saved"));
        command
    };
    // `--filesystem` says it, not the study.
    let text = |level| endless(level).replace("filesystem = \"ext4\"\n", "");
    let ran: Ran = command(&text("raid1").replace("10000", "1")).output().expect("runs").into();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let found = results(&ran.stdout);
    assert_eq!(
        found.settings["target"].split(',').next(),
        Some("ext4 made for each run on arrays on block devices")
    );
    assert!((2.0..2.5).contains(&amplification(&found.cells[0])), "{:?}", found.cells[0]);
    assert_eq!(names(&bench.on), [""; 0]);

    let mut run = Running::of(&mut command(&text("raid0")));
    let files = bench.files(&mut run);
    run.wait_until("a filesystem", || is_mounted(&files).then_some(()));
    run.kill();
    assert!(!traces(&bench.on).is_empty(), "it left something");
    let ran: Ran = command(&text("raid0").replace("10000", "1")).output().expect("runs").into();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let left = files.parent().expect("a directory").display().to_string();
    let said = format!("removed what a killed run left behind: {left}\n");
    assert!(ran.stderr.contains(&said), "{}", ran.stderr);
    assert_eq!((traces(&bench.on), names(&bench.on)), (Vec::new(), Vec::new()));
}
