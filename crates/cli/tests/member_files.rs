//! `raidlab compare --on DIR`: real bytes in files of its own, and nothing else touched.

use std::fs;
use std::path::Path;

use crate::root;
use crate::support::{self, LONG, Ran, Running, SMALL, Scratch, names, raidlab, small_on_files};
use raidlab_results::{Clock, Results};

/// Runs a study in the directory `on` of a scratch directory.
fn compare(scratch: &Scratch, text: &str, arguments: &[&str]) -> Ran {
    let study = scratch.file("study.toml", text);
    let on = scratch.path().join("on");
    let mut command = support::command();
    command.arg("compare").arg(study).arg("--on").arg(on).args(arguments);
    command.output().expect("the binary runs").into()
}

#[test]
fn a_study_runs_and_leaves_the_directory_as_it_was() {
    let scratch = Scratch::new("runs");
    let on = scratch.directory("on");
    fs::write(on.join("letter.txt"), "not raidlab's").expect("a file");
    let ran = compare(&scratch, &small_on_files("4MiB"), &["--json", "-"]).good();
    let results = Results::from_json(&ran.stdout).expect("a results document");
    assert_eq!((results.clock, results.cells.len()), (Clock::Real, 16));
    for cell in &results.cells {
        assert!(cell.median > 0.0 && cell.last_done_s > 0.0, "{cell:?}");
        assert!(cell.first_done_s <= cell.last_done_s, "{cell:?}");
        assert!(cell.process_cpu_s.is_some(), "{cell:?}");
    }
    let shared = format!("all members share the device below {}", on.display());
    assert!(results.warnings.iter().any(|one| one.starts_with(&shared)), "{:?}", results.warnings);
    assert_eq!(results.settings["verified"], "every byte read, and all members after each run");
    assert!(results.host.contains_key("cpu") && results.host.contains_key("filesystem"));
    assert_eq!(names(&on), ["letter.txt"]);
    assert_eq!(fs::read_to_string(on.join("letter.txt")).expect("there"), "not raidlab's");
}

/// A table to look at while the other rounds go on, which is not the report's.
#[test]
fn the_first_round_is_shown_while_others_follow() {
    let scratch = Scratch::new("first");
    scratch.directory("on");
    let text = small_on_files("4MiB");
    let shown = |arguments: &[&str]| {
        let ran = compare(&scratch, &text, arguments);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(!ran.stdout.contains("rovisional"), "{}", ran.stdout);
        ran.stderr
    };
    let table = shown(&["--rounds", "3"]);
    assert_eq!(table.matches("Provisional, after 1 round: A small study").count(), 1, "{table}");
    assert!(table.contains("raid5(3)") && table.contains("More rounds follow."), "{table}");
    assert_eq!(shown(&["--rounds", "1"]), "", "the report comes at once");
    assert_eq!(shown(&["--rounds", "3", "--quiet"]), "");
}

/// On a terminal the table takes the place of the bar, which is drawn anew below.
#[test]
fn the_first_round_is_shown_above_the_bar() {
    let scratch = Scratch::new("first-terminal");
    let (on, study) = (scratch.directory("on"), scratch.file("s.toml", small_on_files("4MiB")));
    let (binary, study, on) = (env!("CARGO_BIN_EXE_raidlab"), study.display(), on.display());
    let line = format!("{binary} compare {study} --on {on} --rounds 3 --color never");
    let mut script = std::process::Command::new("script");
    script
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .env("RAIDLAB_STORE", "off");
    let Ok(output) = script.stdin(std::process::Stdio::null()).output() else {
        return root::skip("the_first_round_is_shown_above_the_bar", "no `script`");
    };
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}");
    let cleared = "\r\x1b[2KProvisional, after 1 round: A small study\r\n";
    assert_eq!(told.matches(cleared).count(), 1, "{told}");
    let (_, behind) = told.split_once("More rounds follow.\r\n").expect("the table's end");
    assert!(behind.lines().next().is_some_and(|line| line.contains(" runs, ")), "{told}");
}

#[test]
fn files_are_as_large_as_the_study_says_or_as_its_workloads_need() {
    let scratch = Scratch::new("sizes");
    let on = scratch.directory("on");
    let capacities = |text: &str| -> Vec<u64> {
        let ran = compare(&scratch, text, &["--json", "-"]).good();
        let results = Results::from_json(&ran.stdout).expect("a results document");
        results.layouts.iter().map(|layout| layout.capacity).collect()
    };
    assert_eq!(capacities(&small_on_files("8MiB")), [8 << 20, 16 << 20]);
    // One workload of one process is enough here.
    let (small, _) = SMALL.split_once("[[workloads]]\nkind = \"dd-read\"").expect("workloads");
    let small = small.replace("[1, 2]", "[1]");
    assert_eq!(capacities(&small), [64 << 20, 64 << 20], "less is not worth while");
    let table = compare(&scratch, &small_on_files("4MiB"), &[]).good().stdout;
    assert!(table.contains("raid5(3)") && table.contains("warning: all members share"), "{table}");
    assert!(!table.contains(['\x1b', '\r']), "{table}");
    assert!(names(&on).is_empty());
}

#[test]
fn a_directory_without_room_is_refused_with_what_is_needed_and_there() {
    let scratch = Scratch::new("room");
    let on = scratch.directory("on");
    fs::write(on.join("letter.txt"), "mine").expect("a file");
    let ran = compare(&scratch, &small_on_files("900TiB"), &[]);
    ran.refused(&["3 members of 900TiB need 2700TiB", "bytes free", "make `file`", "smaller"]);
    let (_, free) = ran.stderr.split_once("there are ").expect("what is there");
    assert!(free.starts_with(|c: char| c.is_ascii_digit()), "{}", ran.stderr);
    compare(&scratch, SMALL, &["--size", "900TiB"]).refused(&["bytes free", "with --size"]);
    assert_eq!(names(&on), ["letter.txt"]);
}

/// Starts a run that goes on until it is stopped; gives it with its run directory.
fn start_long(scratch: &Scratch) -> (Running, std::path::PathBuf) {
    let study = scratch.file("long.toml", LONG);
    let on = scratch.path().join("on");
    let mut run = Running::start([Path::new("compare"), &study, Path::new("--on"), &on]);
    let directory = run.wait_for_files(&on, 3);
    (run, directory)
}

#[test]
fn leftovers_of_a_killed_run_are_removed_and_nothing_else() {
    let scratch = Scratch::new("killed");
    let on = scratch.directory("on");
    let (run, first) = start_long(&scratch);
    run.kill();
    let (run, second) = start_long(&scratch);
    assert!(!first.exists(), "the next run has removed it already");
    run.kill();
    fs::write(second.join("diary.txt"), "mine").expect("a file");
    fs::write(on.join("member-0.img"), "mine").expect("a file");
    fs::create_dir(on.join("raidlab-run-mine")).expect("a directory");

    let ran = compare(&scratch, &small_on_files("4MiB"), &["--json", "-"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let results = Results::from_json(&ran.stdout).expect("a results document");
    let about = |path: &Path| {
        let start = format!("left alone: {}: ", path.display());
        results.warnings.iter().any(|warning| warning.starts_with(&start))
    };
    assert!(about(&second) && about(&on.join("raidlab-run-mine")), "{:?}", results.warnings);
    let left = second.file_name().expect("a name").to_string_lossy().into_owned();
    let mut expected = vec!["member-0.img".to_string(), "raidlab-run-mine".into(), left];
    expected.sort();
    assert_eq!(names(&on), expected);
    assert!(!second.join("member-0.img").exists(), "what is raidlab's went");
    assert_eq!(fs::read_to_string(second.join("diary.txt")).expect("there"), "mine");

    fs::remove_file(second.join("diary.txt")).expect("ours");
    let ran = compare(&scratch, &small_on_files("4MiB"), &[]);
    let said = format!("removed what a killed run left behind: {}\n", second.display());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), said.as_str()));
    assert!(!second.exists());
}

#[test]
fn a_run_that_lives_is_left_alone() {
    let scratch = Scratch::new("alive");
    let on = scratch.directory("on");
    let (mut run, directory) = start_long(&scratch);
    let ran = compare(&scratch, &small_on_files("4MiB"), &["--json", "-"]).good();
    let warning = format!("left alone: {}: its run is still going on", directory.display());
    let results = Results::from_json(&ran.stdout).expect("a results document");
    assert!(results.warnings.contains(&warning), "{:?}", results.warnings);
    assert!(run.is_going_on() && directory.join("member-2.img").exists());
    run.interrupt();
    assert_eq!(run.finish().code, Some(130));
    assert!(names(&on).is_empty());
}

#[test]
fn after_ctrl_c_nothing_is_left() {
    let scratch = Scratch::new("interrupted");
    let on = scratch.directory("on");
    fs::write(on.join("letter.txt"), "mine").expect("a file");
    let (mut run, _) = start_long(&scratch);
    run.interrupt();
    let ran = run.finish();
    let said = "stopped; the member files have been removed\ninterrupted\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(130), said));
    assert_eq!(names(&on), ["letter.txt"]);
}

#[test]
fn rounds_that_were_complete_at_ctrl_c_are_reported() {
    let scratch = Scratch::new("partly");
    let on = scratch.directory("on");
    let json = scratch.path().join("out.json");
    // Rounds of a few milliseconds, so many that their end is far away.
    let text = LONG.replace("rounds = 100", "rounds = 10000").replace("64MiB", "4KiB");
    let study = scratch.file("short.toml", text);
    let compare = Path::new("compare");
    let mut run =
        Running::start([compare, &study, Path::new("--on"), &on, Path::new("--json"), &json]);
    // What the run has read and written tells that rounds have passed.
    let id = run.id();
    run.wait_until("some rounds", || {
        let io = fs::read_to_string(format!("/proc/{id}/io")).ok()?;
        let read = io.lines().find_map(|line| line.strip_prefix("rchar: "))?;
        (read.parse::<u64>().ok()? > 100 << 20).then_some(())
    });
    run.interrupt();
    let ran = run.finish();
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    let results = fs::read_to_string(&json).expect("results");
    let results = Results::from_json(&results).expect("a results document");
    let rounds = results.cells[0].samples.len();
    assert!((1..10_000).contains(&rounds), "{rounds}");
    let told = |warning: &String| warning.contains("interrupted") || warning.contains("stopped");
    assert!(results.warnings.iter().any(told), "{:?}", results.warnings);
    assert!(ran.stdout.contains("raid5(3)"), "the table is printed, too");
    assert!(names(&on).is_empty());
}

/// A byte of a member file, flipped behind the run's back.
struct Damage {
    file: fs::File,
    at: u64,
    /// What was written there.
    wrong: Option<u8>,
}

impl Damage {
    fn byte(&self) -> Option<u8> {
        let mut byte = [0];
        std::os::unix::fs::FileExt::read_exact_at(&self.file, &mut byte, self.at).ok()?;
        Some(byte[0])
    }

    /// Flips the byte, again when the run has put the right one back.
    fn keep(&mut self) {
        let Some(now) = self.byte().filter(|now| Some(*now) != self.wrong) else { return };
        let wrong = !now;
        if std::os::unix::fs::FileExt::write_all_at(&self.file, &[wrong], self.at).is_ok() {
            self.wrong = Some(wrong);
        }
    }
}

/// Flips a byte of a member's file while a run goes on; gives the message, past the title.
fn flipped(scratch: &Scratch, member: u16, at: u64) -> String {
    let (mut run, directory) = start_long(scratch);
    let path = directory.join(format!("member-{member}.img"));
    let open = fs::OpenOptions::new().read(true).write(true).open(path).expect("a member file");
    let mut damage = Damage { file: open, at, wrong: None };
    run.wait_until("data", || damage.byte().filter(|byte| *byte != 0));
    run.wait_until_end(|| damage.keep());
    let ran = run.finish();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
    assert!(names(&scratch.path().join("on")).is_empty());
    let title = "raid5(3) chunk=64K, random-read 4KiB, 1 process: wrong bytes ";
    let (_, message) = ran.stderr.split_once(title).expect(&ran.stderr);
    // The page cache writes whole pages: other bytes of the page may be stale, too.
    let (_, offset) = message.split_once(&format!("member {member}, byte ")).expect(message);
    let offset: u64 = offset.split(' ').next().and_then(|n| n.parse().ok()).expect("an offset");
    assert_eq!(offset / 4096, at / 4096, "{message}");
    message.to_string()
}

/// In the last stripe, 63: what was filled there is what the whole array was filled with.
const IN_LAST_STRIPE: u64 = (4 << 20) - 1234;

#[test]
fn a_flipped_byte_of_data_is_reported_with_layout_member_and_offset() {
    let scratch = Scratch::new("flipped");
    scratch.directory("on");
    let message = flipped(&scratch, 1, IN_LAST_STRIPE);
    assert!(message.contains(" of the array: expected 0x"), "{message}");
}

/// Parity is not read by a healthy array: only looking at the members themselves shows it.
#[test]
fn a_flipped_byte_of_parity_is_reported_with_layout_member_and_offset() {
    let scratch = Scratch::new("flipped-parity");
    scratch.directory("on");
    let message = flipped(&scratch, 2, IN_LAST_STRIPE);
    assert!(message.starts_with("found on members after the run"), "{message}");
    assert!(message.contains(", parity of stripe 63: expected 0x"), "{message}");
}

/// A filesystem in memory has no direct I/O, or none that means something.
#[test]
fn files_in_memory_are_called_that() {
    let memory = Path::new("/dev/shm");
    let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
    if !mounts.lines().any(|line| line.starts_with("tmpfs /dev/shm ")) {
        return;
    }
    let scratch = Scratch::within(memory, "memory");
    let study = scratch.file("study.toml", small_on_files("4MiB"));
    let ran = raidlab([Path::new("compare"), &study, Path::new("--on"), scratch.path()]).good();
    let words = "warning: the filesystem lies in memory: no drive takes part";
    assert!(ran.stdout.contains(words), "{}", ran.stdout);
    assert_eq!(names(scratch.path()), ["study.toml"]);
}

/// Degraded and rebuilt arrays are verified in full, with every consistency.
#[test]
fn states_run_on_real_files_and_every_byte_is_verified() {
    let scratch = Scratch::new("states");
    let on = scratch.directory("on");
    let layouts: String = ["none", "resync", "bitmap", "ppl", "journal"]
        .map(|mode| {
            let key = format!("consistency = \"{mode}\"");
            format!("[[layouts]]\nlevel = \"raid5\"\nmembers = 3\nchunk = \"64KiB\"\n{key}\n")
        })
        .concat();
    let text = format!(
        "title = \"States\"\nrounds = 1\nstates = [\"degraded\", \"rebuilding\"]\n\
         journal_size = \"16MiB\"\npacing = {{ least = \"1GB/s\", most = \"1GB/s\" }}\n\
         [[drives]]\nname = \"f\"\nfile = \"24MiB\"\ncount = 3\n{layouts}\
         [[workloads]]\nkind = \"random-write\"\nsize = \"256KiB\"\nspan = \"1MiB\"\n\
         [[workloads]]\nkind = \"dd-read\"\nblock = \"128KiB\"\nsize = \"1MiB\"\n"
    );
    let ran = compare(&scratch, &text, &["--json", "-"]).good();
    let results = Results::from_json(&ran.stdout).expect("a results document");
    for layout in &results.layouts {
        let own = |state: &str, metric: &str| {
            let cells = results.cells.iter().filter(|cell| cell.layout == layout.name);
            cells.filter(|cell| cell.state == state && cell.metric == metric).count()
        };
        assert_eq!((own("degraded", "iops"), own("degraded", "p99_ms")), (1, 2), "{}", layout.name);
        assert_eq!(own("rebuilding", "mib_per_s"), 1, "{}", layout.name);
        let (ended, not) =
            (own("rebuilding", "rebuild_s"), own("rebuilding", "rebuild_estimate_s"));
        assert_eq!(ended + not, 3, "two under load, one alone: {}", layout.name);
        assert!(ended >= 1, "alone to its end: {}", layout.name);
    }
    assert!(names(&on).is_empty());
}
