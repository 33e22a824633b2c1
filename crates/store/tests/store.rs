//! Runs on disk: torn at any byte, of another schema, written by two, a thousand of them.

use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use raidlab_core::{MemberTotals, Nanos};
use raidlab_results::Clock;
use raidlab_store::{
    Age, Conditions, Drive, Guest, Machine, Options, Outcome, PathText, RunRecord, SCHEMA_VERSION,
    Setting, Source, State, Store, StoreError, StoreErrorKind, Writer, cell_names, date_of,
    default_directory, spelled_out,
};
use raidlab_study::{CellRun, Detail, Latency, Rebuild, Sample, Samples, Study, parse, summarise};

const STUDY: &str = r#"
title = "Two cells"
rounds = 2
max_rounds = 3
[[drives]]
name = "d"
model = "nas-8tb-7200"
count = 3
[[layouts]]
level = "single"
[[layouts]]
level = "raid5"
members = 3
chunk = "64KiB"
[[workloads]]
kind = "random-read"
size = "64KiB"
"#;

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> (Self, Store) {
        let path = std::env::temp_dir();
        let path = path.join(format!("raidlab-store-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        let store = Store::new(path.join("runs"));
        store.make().expect("a store");
        (Self(path), store)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn study() -> Study {
    parse(STUDY, "two.toml").expect("a study")
}

fn record(clock: Clock) -> RunRecord {
    let study = study();
    RunRecord {
        schema_version: SCHEMA_VERSION,
        id: String::new(),
        date: String::new(),
        title: study.title.clone(),
        clock,
        on: "virtual".into(),
        rounds: [study.rounds, study.max_rounds],
        pid: std::process::id(),
        command: vec!["raidlab".into(), "compare".into()],
        directory: PathText::from(Path::new("/")),
        options: Options::default(),
        conditions: Conditions {
            raidlab: "1.0.0".into(),
            machine: Machine { kernel: Some("6.1".into()), cores: 2, ..Machine::default() },
            study_file: Source { path: "two.toml".into(), text: STUDY.into() },
            ..Conditions::default()
        },
        probed: None,
        study: spelled_out(&study),
        cells: cell_names(&study),
        setting: Setting { capacities: vec![8, 16], ..Setting::default() },
    }
}

/// The conditions of a run on a kernel, and those of the same with other guests.
fn in_guests() -> (Conditions, Guest) {
    let guest = Guest {
        kernel: "linux-6.12.48-1a2b".into(),
        kernel_hash: Some("01".into()),
        programs: "programs-3c4d.cpio".into(),
        programs_hash: Some("02".into()),
    };
    let conditions = record(Clock::Virtual).conditions;
    (Conditions { guest: Some(guest.clone()), ..conditions }, guest)
}

/// What guests run is none of the machine's: a kernel of another patch level, other programs, or another file under the
/// same name.
#[test]
fn another_kernel_or_other_programs_in_guests_are_differences() {
    let (was, guest) = in_guests();
    let found = |is: Option<Guest>| {
        was.differences(&Conditions { guest: is, ..was.clone() }, Clock::Virtual)
    };
    assert_eq!(found(Some(guest.clone())), [""; 0]);
    let kernel = Guest { kernel: "linux-6.12.49-1a2b".into(), ..guest.clone() };
    let said = "guest.kernel: was linux-6.12.48-1a2b, is linux-6.12.49-1a2b";
    assert_eq!(found(Some(kernel)), [said]);
    let programs = Guest { programs: "programs-5e6f.cpio".into(), ..guest.clone() };
    let said = "guest.programs: was programs-3c4d.cpio, is programs-5e6f.cpio";
    assert_eq!(found(Some(programs)), [said]);
    let rebuilt = Guest { kernel_hash: Some("03".into()), ..guest };
    assert_eq!(found(Some(rebuilt)), ["guest.kernel_hash: was 01, is 03"]);
    assert_eq!(found(None).len(), 4);
}

/// Records of before say nothing of guests, and neither do those of runs without.
#[test]
fn a_record_without_guests_is_read() {
    let (conditions, _) = in_guests();
    let mut value = serde_json::to_value(&conditions).expect("JSON");
    assert_eq!(serde_json::from_value::<Conditions>(value.clone()).expect("read"), conditions);
    value.as_object_mut().expect("an object").remove("guest").expect("there");
    let before: Conditions = serde_json::from_value(value).expect("read");
    assert_eq!(before.guest, None);
    let found = before.differences(&conditions, Clock::Virtual);
    assert!(found.len() == 4 && found[0].starts_with("guest.kernel: was not known"), "{found:?}");
    let text = serde_json::to_string(&before).expect("JSON");
    assert!(!text.contains("guest"), "{text}");
}

/// A sample with something in every field; which depends on `n`.
fn sample(n: u64) -> Sample {
    // No decimal number of few digits is this one.
    let odd = f64::from_bits(0x3fb9_9999_9999_9000 + n * 7919);
    Sample {
        values: vec![Some(odd), None, Some(f64::MIN_POSITIVE), Some(-0.0), Some(f64::MAX)],
        first_done: Nanos(n),
        last_done: Nanos(u64::MAX - n),
        bytes: u64::MAX,
        ops: n,
        process_cpu_s: Some(1.0 / 3.0 * odd),
        system_cpu_s: None,
        bottleneck: Some(("member \"2\"\n".into(), odd)),
        latency: Some(Latency { p50: Nanos(1), p99: Nanos(2), p999: Nanos(3), max: Nanos(n) }),
        fairness: Some(0.1 + 0.2),
        members: Some(MemberTotals { reads: 1, writes: 2, bytes_read: 3, bytes_written: n }),
        bytes_written: 1 << 60,
        rebuild: Some(Rebuild { elapsed: Nanos(n), done: 0.999_999 }),
        // Older files have none.
        warnings: (0..n % 3).map(|at| format!("\"{at}\" was left as it is\n")).collect(),
        detail: Detail {
            ends: vec![n, u64::MAX],
            latencies: vec![1, n],
            busy: vec![("cpu".into(), odd)],
            series: None,
            flushed_p99: (n > 3).then_some(n),
        },
    }
}

fn run(n: u32) -> CellRun {
    CellRun { round: n / 2, cell: n as usize % 2, sample: sample(n.into()) }
}

fn write(writer: &mut Writer, runs: std::ops::Range<u32>) {
    for n in runs {
        writer.cell(&run(n), u64::from(n) + 1).expect("recorded");
    }
}

fn path(store: &Store, id: &str) -> PathBuf {
    store.directory().join(format!("{id}.jsonl"))
}

fn kind<T: std::fmt::Debug>(result: Result<T, StoreError>) -> StoreErrorKind {
    result.expect_err("refused").kind
}

/// Names are in the order of the runs, also of those that began in one second: `last` is the last.
#[test]
fn names_are_in_the_order_of_the_runs() {
    let (_scratch, store) = Scratch::new("order");
    let begin = |_| {
        let id = store.begin(record(Clock::Virtual)).expect("a run").id().to_string();
        // The next 1,024th of a second.
        let parts = || {
            let now = std::time::UNIX_EPOCH.elapsed().expect("later");
            now.as_nanos() * 1_024 / 1_000_000_000
        };
        let now = parts();
        while parts() < now + 1 {}
        id
    };
    let ids: Vec<String> = (0..20).map(begin).collect();
    let mut sorted = ids.clone();
    sorted.sort();
    assert_eq!(ids, sorted);
}

#[test]
fn what_was_recorded_is_read_to_the_last_bit() {
    let (_scratch, store) = Scratch::new("bits");
    for clock in [Clock::Real, Clock::Virtual] {
        let mut writer = store.begin(record(clock)).expect("a run");
        let id = writer.id().to_string();
        assert!(date_of(&id).is_some(), "{id}");
        write(&mut writer, 0..5);
        assert_eq!(writer.complete_rounds(), 2);
        drop(writer);
        let stored = store.read(&id).expect("a run");
        assert_eq!(stored.runs, (0..5).map(run).collect::<Vec<_>>());
        let zero = stored.runs[0].sample.values[3].expect("there");
        assert!(zero.is_sign_negative(), "minus nothing is a value of its own");
        assert_eq!((stored.complete_rounds(), stored.torn_bytes, stored.is_done()), (2, 0, false));
        let expected = RunRecord { id, date: stored.record.date.clone(), ..record(clock) };
        assert_eq!(stored.record, expected);
        assert_eq!(expected.differences(&record(clock)), [""; 0]);
    }
}

#[test]
fn a_number_that_is_none_is_refused_and_the_file_stays() {
    let (_scratch, store) = Scratch::new("nan");
    let mut writer = store.begin(record(Clock::Real)).expect("a run");
    let path = path(&store, writer.id());
    let before = fs::read(&path).expect("there");
    for value in [f64::NAN, f64::INFINITY] {
        let of = |sample: Sample| CellRun { round: 0, cell: 0, sample };
        let good = || sample(1);
        for sample in [
            Sample { values: vec![None, Some(value)], ..good() },
            Sample { fairness: Some(value), ..good() },
            Sample { bottleneck: Some(("cpu".into(), value)), ..good() },
            Sample { rebuild: Some(Rebuild { elapsed: Nanos(1), done: value }), ..good() },
        ] {
            assert_eq!(kind(writer.cell(&of(sample), 1)), StoreErrorKind::Damaged);
        }
    }
    assert_eq!(fs::read(&path).expect("there"), before);
    assert_eq!(writer.complete_rounds(), 0, "what is refused is not there");
}

/// A whole run, stopped once: record, two cells, its end, going on, two cells, results, end.
fn whole(store: &Store) -> String {
    let mut writer = store.begin(record(Clock::Real)).expect("a run");
    let id = writer.id().to_string();
    write(&mut writer, 0..2);
    writer.end(Outcome::Failed, Some("a cell".into()), None).expect("recorded");
    let mut writer = store.take(&id).expect("free").go_on(vec!["again".into()]).expect("goes on");
    write(&mut writer, 2..4);
    let runs = (0..4).map(|n| {
        // The results document holds no such values as `sample` has.
        CellRun { sample: Sample { values: vec![Some(f64::from(n) + 0.1)], ..sample(1) }, ..run(n) }
    });
    let samples = Samples::of_complete_rounds(&study(), runs.collect());
    let (host, settings) = Default::default();
    let capacities = record(Clock::Real).setting.capacities();
    let results =
        summarise(&study(), &samples, Clock::Real, host, settings, Vec::new(), &capacities);
    writer.end(Outcome::Done, None, Some(&results)).expect("recorded");
    let stored = store.read(&id).expect("a run");
    assert_eq!(stored.results().expect("a document"), Some(results));
    id
}

/// Cut at any byte, the complete lines count, and nothing is changed by reading or listing.
#[test]
fn a_run_cut_at_any_byte_is_its_complete_lines() {
    let (_scratch, store) = Scratch::new("cut");
    let id = whole(&store);
    let path = path(&store, &id);
    let bytes = fs::read(&path).expect("there");
    let first = bytes.iter().position(|byte| *byte == b'\n').expect("a line") + 1;
    let file = OpenOptions::new().write(true).open(&path).expect("there");
    for length in (0..bytes.len()).rev() {
        file.set_len(length as u64).expect("cut");
        let read = store.read(&id);
        let list = store.list().expect("a list");
        if length < first {
            assert_eq!(kind(read), StoreErrorKind::Damaged, "{length}");
            assert!(list[0].head.is_err(), "{length}");
            continue;
        }
        let stored = read.expect("complete lines");
        let complete = bytes[..length].iter().rposition(|byte| *byte == b'\n').expect("a line") + 1;
        assert_eq!(stored.complete_bytes, complete as u64);
        assert_eq!(stored.torn_bytes, (length - complete) as u64);
        let text = String::from_utf8_lossy(&bytes[..complete]).into_owned();
        assert_eq!(stored.runs.len(), text.matches("\n{\"cell\":").count(), "{length}");
        let head = list[0].head.as_ref().expect("a run");
        let last = text.lines().last().expect("a line");
        let is_failed = last.contains("\"outcome\":\"failed\"");
        assert_eq!(head.state == State::Failed("a cell".into()), is_failed, "{length}");
        assert_eq!(head.rounds, stored.complete_rounds(), "{length}");
    }
    assert_eq!(fs::metadata(&path).expect("there").len(), 0);
}

#[test]
fn who_goes_on_cuts_off_what_is_torn_and_keeps_every_line() {
    let (_scratch, store) = Scratch::new("torn");
    let id = whole(&store);
    let path = path(&store, &id);
    let bytes = fs::read(&path).expect("there");
    let first = bytes.iter().position(|byte| *byte == b'\n').expect("a line") + 1;
    for length in (first..=bytes.len()).step_by(101) {
        fs::write(&path, &bytes[..length]).expect("a file");
        drop(store.take(&id).expect("free"));
        assert_eq!(fs::read(&path).expect("there"), bytes[..length], "taking changes nothing");
        let taken = store.take(&id).expect("free");
        let (complete, runs) = (taken.stored.complete_bytes as usize, taken.stored.runs.len());
        let mut writer = taken.go_on(vec!["again".into()]).expect("goes on");
        write(&mut writer, 4..5);
        drop(writer);
        let now = fs::read(&path).expect("there");
        assert_eq!(now[..complete], bytes[..complete]);
        let stored = store.read(&id).expect("a run");
        assert_eq!((stored.runs.len(), stored.torn_bytes), (runs + 1, 0));
        assert_eq!((stored.end.as_ref(), stored.results().expect("none")), (None, None));
        assert_eq!(stored.last_writer(), std::process::id());
    }
}

/// The body of the test below where no file may grow: records cells until one finds no room, from the start or as who
/// goes on with a run whose last line has only so many bytes.
fn record_until_full(store: &Store, clock: Clock, torn: usize) {
    let mut writer = store.begin(record(clock)).expect("room for a record");
    let id = writer.id().to_owned();
    let path = path(store, &id);
    if torn > 0 {
        drop(writer);
        let mut file = OpenOptions::new().append(true).open(&path).expect("there");
        file.write_all(&vec![b'{'; torn]).expect("room for a part of a line");
        drop(file);
        writer = store.take(&id).expect("free").go_on(vec!["again".into()]).expect("room");
    }
    let content = || fs::read(&path).expect("there");
    let (mut next, mut before) = (0, content());
    while writer.cell(&run(next), 1).is_ok() {
        (next, before) = (next + 1, content());
    }
    assert!(content() == before, "{clock:?}: not as before cell {next}");
    assert_eq!(kind(writer.cell(&run(next), 1)), StoreErrorKind::Io);
    assert!(content() == before, "{clock:?}: not as before another try");
    let why = "why".repeat(1 << 20);
    assert_eq!(kind(writer.end(Outcome::Failed, Some(why.clone()), None)), StoreErrorKind::Io);
    assert!(content() == before, "{clock:?}: not as before the end");
    let taken = store.take(&id).expect("free");
    assert_eq!(kind(taken.go_on(vec![why])), StoreErrorKind::Io);
    assert!(content() == before, "{clock:?}: not as before somebody went on");
}

/// Whatever finds no room leaves what was recorded before, which goes on when there is room.
#[test]
fn a_line_without_room_costs_no_line_before_it() {
    const PLACE: &str = "RAIDLAB_TEST_STORE_THAT_RUNS_FULL";
    const RUNS: [(Clock, usize); 4] =
        [(Clock::Real, 0), (Clock::Virtual, 0), (Clock::Real, 900), (Clock::Virtual, 900)];
    if let Some(place) = std::env::var_os(PLACE) {
        let store = Store::new(&place);
        RUNS.iter().for_each(|(clock, torn)| record_until_full(&store, *clock, *torn));
        return;
    }
    let (_scratch, store) = Scratch::new("full");
    // A process of its own: the limit, 8 or 16 KiB for each file, is of all that it writes, and kills unless ignored.
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 16; exec \"$@\"", "sh"]);
    limited.arg(std::env::current_exe().expect("this")).arg("--exact");
    limited.arg("a_line_without_room_costs_no_line_before_it").env(PLACE, store.directory());
    let ran = limited.output().expect("a shell");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
    let ids = store.ids().expect("runs");
    assert_eq!(ids.len(), RUNS.len());
    for id in ids {
        let taken = store.take(&id).expect("free");
        let (there, torn) = (taken.stored.runs.len() as u32, taken.stored.torn_bytes);
        assert!(there > 1 && torn == 0, "{there} cells and {torn} bytes");
        let mut writer = taken.go_on(vec!["again".into()]).expect("goes on");
        write(&mut writer, there..there + 3);
        drop(writer);
        let stored = store.read(&id).expect("a run");
        assert_eq!(stored.runs, (0..there + 3).map(run).collect::<Vec<_>>());
    }
}

#[test]
fn another_schema_is_told_and_left_alone() {
    let (_scratch, store) = Scratch::new("schema");
    let id = whole(&store);
    let path = path(&store, &id);
    let text = fs::read_to_string(&path).expect("there");
    let other = text.replace("\"schema_version\":1,\"id\"", "\"schema_version\":7,\"id\"");
    assert_ne!(other, text);
    // What else stands there may mean anything.
    let other = format!("{other}{{\"new\":[]}}\n");
    fs::write(&path, &other).expect("a file");
    let error = store.read(&id).expect_err("another schema");
    assert_eq!(error.kind, StoreErrorKind::SchemaVersion);
    assert!(error.to_string().ends_with("schema_version 7; this version of raidlab reads 1"));
    assert_eq!(kind(store.take(&id)), StoreErrorKind::SchemaVersion);
    let list = store.list().expect("a list");
    assert!(matches!(&list[0].head, Err(error) if error.kind == StoreErrorKind::SchemaVersion));
    assert_eq!(kind(store.last_unfinished()), StoreErrorKind::NotThere);
    assert_eq!(fs::read_to_string(&path).expect("there"), other);
}

#[test]
fn what_is_no_run_is_named_with_its_line() {
    let (_scratch, store) = Scratch::new("damaged");
    let id = whole(&store);
    let path = path(&store, &id);
    let lines: Vec<String> =
        fs::read_to_string(&path).expect("there").lines().map(str::to_string).collect();
    for (at, with) in [(2, "{}"), (3, "\u{fffd}"), (2, lines[0].as_str()), (1, r#"{"cell":{}}"#)] {
        let mut changed = lines.clone();
        changed[at - 1] = with.to_string();
        fs::write(&path, changed.join("\n") + "\n").expect("a file");
        let error = store.read(&id).expect_err("damaged");
        assert_eq!(error.kind, StoreErrorKind::Damaged);
        assert!(error.to_string().contains(&format!(".jsonl:{at}: ")), "{error}");
    }
    let far = lines[1].replace("\"cell\":0", "\"cell\":2");
    fs::write(&path, format!("{}\n{far}\n", lines[0])).expect("a file");
    assert!(store.read(&id).expect_err("damaged").to_string().contains("a cell the run has not"));
}

#[test]
fn a_second_writer_is_refused_with_the_process_of_the_first() {
    let (_scratch, store) = Scratch::new("two");
    let mut writer = store.begin(record(Clock::Real)).expect("a run");
    let id = writer.id().to_string();
    write(&mut writer, 0..3);
    let before = fs::read(path(&store, &id)).expect("there");
    let error = store.take(&id).expect_err("taken");
    assert_eq!(error.kind, StoreErrorKind::Locked);
    let who = format!("another raidlab (process {}) is writing", std::process::id());
    assert!(error.to_string().contains(&who), "{error}");
    assert_eq!(kind(store.remove(&id)), StoreErrorKind::Locked);
    let state = |store: &Store| {
        let list = store.list().expect("a list");
        let head = list[0].head.as_ref().expect("a run");
        (head.state.clone(), head.rounds, head.most_rounds)
    };
    assert_eq!(state(&store), (State::Running, 1, 3));
    assert!(store.last_unfinished().expect_err("taken").to_string().contains(&who));
    assert_eq!(fs::read(path(&store, &id)).expect("there"), before);
    drop(writer);
    assert_eq!(store.last_unfinished().expect("this one"), id);
    assert_eq!(state(&store), (State::Killed, 1, 3));
    store.remove(&id).expect("nobody has it");
    assert_eq!(store.ids().expect("a list"), [""; 0]);
}

#[test]
fn names_may_be_shortened() {
    let (_scratch, store) = Scratch::new("names");
    assert_eq!(kind(store.find("last")), StoreErrorKind::NotThere);
    let names = ["20260101-000000-aaaa", "20260101-000000-aabb", "20260102-000000-aaaa"];
    for name in names {
        fs::write(path(&store, name), "").expect("a file");
    }
    fs::write(store.directory().join("notes.jsonl"), "mine").expect("a file");
    assert_eq!(store.ids().expect("a list"), names);
    assert_eq!(store.find("last").expect("there"), names[2]);
    assert_eq!(store.find("20260102").expect("there"), names[2]);
    assert_eq!(store.find(names[0]).expect("there"), names[0]);
    assert_eq!(kind(store.find("20260101")), StoreErrorKind::Ambiguous);
    for name in ["2025", "", "notes", "../salt"] {
        assert_eq!(kind(store.find(name)), StoreErrorKind::NotThere, "{name}");
    }
    let nowhere = Store::new(store.directory().join("nowhere"));
    assert!(nowhere.list().expect("nothing").is_empty());
}

/// Only the ends of the files are read: between them lie gigabytes of what is no line.
#[test]
fn a_thousand_runs_are_listed_by_their_first_and_last_lines() {
    let (_scratch, store) = Scratch::new("thousand");
    let id = whole(&store);
    let text = fs::read_to_string(path(&store, &id)).expect("there");
    let (first, rest) = text.split_once('\n').expect("lines");
    let last = rest.lines().last().expect("a line");
    for number in 0..1000 {
        let name = format!("20260101-{:02}{:02}00-aaaa", number / 60, number % 60);
        let mut file = fs::File::create(path(&store, &name)).expect("a file");
        file.write_all(format!("{first}\n").as_bytes()).expect("written");
        file.seek(SeekFrom::Start(1 << 32)).expect("a hole");
        file.write_all(format!("\n{last}\n").as_bytes()).expect("written");
    }
    let list = store.list().expect("a list");
    assert_eq!(list.len(), 1001);
    for entry in &list {
        let head = entry.head.as_ref().expect("a run");
        assert_eq!((&head.state, head.rounds, &*head.title), (&State::Done, 2, "Two cells"));
    }
}

#[test]
fn serial_numbers_are_hashed_with_a_salt_that_stays() {
    let (scratch, store) = Scratch::new("salt");
    let salt = store.make().expect("made before");
    assert_eq!(store.make().expect("made before"), salt);
    let other = Store::new(scratch.0.join("other"));
    assert_ne!(other.make().expect("a store").hash("WD-1"), salt.hash("WD-1"));
    assert_eq!(fs::read_dir(store.directory()).expect("there").count(), 1, "only the salt");
    fs::write(store.directory().join("salt"), "short").expect("a file");
    assert_eq!(kind(store.make()), StoreErrorKind::Damaged);
}

#[test]
fn what_differs_is_named() {
    let was = record(Clock::Real);
    let found = |change: &dyn Fn(&mut RunRecord)| {
        let mut is = was.clone();
        change(&mut is);
        was.differences(&is)
    };
    let study = |text: String| {
        let conditions = Conditions {
            study_file: Source { path: "two.toml".into(), text },
            ..was.conditions.clone()
        };
        found(&|is| is.conditions = conditions.clone())
    };
    let changed = study(STUDY.replace("rounds = 2", "rounds = 4"));
    assert_eq!(changed, ["two.toml:3: was `rounds = 2`, is `rounds = 4`"]);
    assert_eq!(study(format!("{STUDY}x")), ["two.toml:18: was nothing, is `x`"]);
    assert_eq!(study(STUDY.replace('\n', "\r\n")), ["two.toml: line endings were changed"]);
    let kernel = found(&|is| is.conditions.machine.kernel = Some("6.2".into()));
    assert_eq!(kernel, ["kernel: was 6.1, is 6.2"]);
    let commit = found(&|is| is.conditions.commit = Some("abc".into()));
    assert_eq!(commit, ["commit: was not known, is abc"]);
    let other = found(&|is| is.conditions.raidlab = "1.0.1".into());
    assert_eq!(other, ["raidlab: was 1.0.0, is 1.0.1"]);
    let binary = found(&|is| is.conditions.binary = Some("00ff".into()));
    assert_eq!(binary, ["binary: was not known, is 00ff"]);
    let drives = found(&|is| is.conditions.drives.push(Drive::default()));
    assert!(drives.len() == 1 && drives[0].starts_with("drives: was [], is ["), "{drives:?}");
    let layout = found(&|is| is.study["layouts"][1]["chunk"] = 4096.into());
    assert_eq!(layout, ["study.layouts[1].chunk: was 65536, is 4096"]);
    assert_eq!(found(&|is| is.setting.capacities[1] = 0), ["capacities[1]: was 16, is 0"]);
    assert_eq!(found(&|is| is.conditions.machine.cores = 3), ["cores: was 2, is 3"]);
    // Nobody's result depends on it in virtual time.
    let mut is = record(Clock::Virtual);
    is.conditions.machine.cores = 3;
    assert_eq!(record(Clock::Virtual).differences(&is), [""; 0]);
}

#[test]
fn runs_are_kept_where_the_specification_says() {
    let of = |data: Option<&str>, home: Option<&str>| {
        default_directory(|name| match name {
            "XDG_DATA_HOME" => data.map(Into::into),
            "HOME" => home.map(Into::into),
            _ => None,
        })
    };
    let expected = |path: &str| Some(PathBuf::from(path));
    assert_eq!(of(Some("/data"), Some("/people/a")), expected("/data/raidlab/runs"));
    assert_eq!(
        of(Some("data"), Some("/people/a")),
        expected("/people/a/.local/share/raidlab/runs")
    );
    assert_eq!(of(Some(""), Some("/people/a")), expected("/people/a/.local/share/raidlab/runs"));
    assert_eq!(of(None, Some("")), None);
    assert_eq!("1d".parse::<Age>().map(|age| age.0.as_secs()), Ok(86_400));
}

/// What was run is known from what else could have been: spares among it, where there are any.
#[test]
fn layouts_are_spelled_out_with_what_sets_them_apart() {
    let of = |more: &str| {
        let text = STUDY
            .replace("count = 3", "count = 5")
            .replace("members = 3", &format!("members = 3\n{more}"));
        let study = parse(&text, "two.toml").unwrap_or_else(|error| panic!("{error}"));
        spelled_out(&study)["layouts"][1].clone()
    };
    let plain = of("");
    assert_eq!(
        (&plain["spares"], &plain["drives"]),
        (&serde_json::Value::Null, &serde_json::json!(["d", "d", "d"]))
    );
    assert_eq!(of("spares = 1")["spares"], 1);
    assert_eq!(of("spares = 2")["spares"], 2);
    assert_eq!(of("pacing = { sync_io_depth = 4 }")["sync_io_depth"], 4);
    assert_eq!(of("pacing = { share = \"30%\" }")["pacing_share"], 30);
    assert_eq!(plain["chunk"], 65_536);
}

/// A store is for its owner only: serial numbers and directories are nobody else's.
#[test]
fn nobody_else_reads_a_store() {
    use std::os::unix::fs::PermissionsExt;
    let (scratch, store) = Scratch::new("private");
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(store.directory()), 0o700);
    for file in fs::read_dir(store.directory()).expect("readable") {
        let path = file.expect("readable").path();
        assert_eq!(mode(&path) & 0o077, 0, "{}", path.display());
        assert!(
            !path.display().to_string().ends_with(&std::process::id().to_string()),
            "the part is gone"
        );
    }
    drop(scratch);
}

/// The newest that is not done, whatever was done after it.
#[test]
fn the_last_unfinished_run_is_the_newest_that_is_not_done() {
    let (_scratch, store) = Scratch::new("unfinished");
    assert_eq!(kind(store.last_unfinished()), StoreErrorKind::NotThere);
    let open = store.begin(record(Clock::Virtual)).expect("begun").id().to_owned();
    assert_eq!(store.last_unfinished().expect("one"), open);
    whole(&store);
    assert_eq!(store.last_unfinished().expect("one"), open);
}

/// One that another process writes does not hide an older one that was stopped; alone it is told.
#[test]
fn the_last_unfinished_run_is_none_that_is_being_written() {
    let (_scratch, store) = Scratch::new("being-written");
    let stopped = store.begin(record(Clock::Virtual)).expect("begun").id().to_owned();
    let mut newer = store.begin(record(Clock::Virtual)).expect("begun");
    assert_eq!(store.last_unfinished().expect("the older one"), stopped);
    write(&mut newer, 0..1);
    assert_eq!(store.last_unfinished().expect("the older one"), stopped);
    // Somebody goes on with the older one, too.
    let taken = store.take(&stopped).expect("free");
    let error = store.last_unfinished().expect_err("both are being written");
    assert_eq!(error.kind, StoreErrorKind::Locked);
    // Those of one 1,024th of a second may be in any order.
    let newest = stopped.max(newer.id().to_owned());
    assert!(error.to_string().contains(&newest), "{error}");
    drop(taken);
    drop(newer);
    assert_eq!(store.last_unfinished().expect("the newest"), newest);
}
