//! Cells on member files: what is filled before, what counts of a run, the state that the array is in, and what is
//! compared afterwards.

use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use raidlab_core::Time;
use raidlab_measure::{Drives, Filling, MeasureError, Rounds, Sizes};
use raidlab_study::{CellKey, Event, Sample, State, Study, cell_seed, cells};
use raidlab_targets::RunDirectory;
use raidlab_workload::Setting;
use raidlab_workload::processes::Asked;
use raidlab_workload::raw::{OpResult, RawPlan};

static GO: AtomicBool = AtomicBool::new(false);
const KIB: u64 = 1 << 10;

/// A study of one round on files of 8 MiB, by the keys of its layouts and workloads.
fn study(layouts: &str, states: &str, workloads: &str) -> Study {
    study_on("8MiB", layouts, states, workloads)
}

/// The same on files of so much.
fn study_on(file: &str, layouts: &str, states: &str, workloads: &str) -> Study {
    let text = format!(
        "title = \"t\"\nrounds = 1\nmax_rounds = 1\nprocesses = [2]\nstates = [{states}]\n\
         drives = [{{ name = \"d\", file = \"{file}\", count = 6 }}]\nlayouts = [{layouts}]\n\
         workloads = [{workloads}]\n"
    );
    raidlab_study::parse(&text, "study.toml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Runs a study in a directory of its own; `look` is handed each cell as it is finished.
fn run(
    study: &Study,
    look: &mut dyn FnMut(&CellKey, &Sample, &RunDirectory),
) -> Result<(), MeasureError> {
    let sizes = Sizes::of(study).expect("sizes");
    let members = study.layouts.iter().map(|one| one.layout.drives()).max().expect("a layout");
    let made =
        RunDirectory::create_with(&std::env::temp_dir(), members, sizes.file, sizes.extra(study));
    let drives = Drives::Files(made.expect("files"));
    let Drives::Files(directory) = &drives else { unreachable!("files") };
    let mut seen = 0;
    Rounds::new(study, &drives, &sizes, &GO)?.run(Vec::new(), &mut |progress| {
        if let Event::Finished(sample) = progress.event {
            seen += 1;
            look(progress.key, sample, directory);
        }
        ControlFlow::Continue(())
    })?;
    assert_eq!(seen, cells(study).len() * study.rounds as usize);
    Ok(())
}

fn block(path: &Path, at: u64) -> [u8; 4096] {
    let mut bytes = [0; 4096];
    let file = File::open(path).expect("there");
    file.read_exact_at(&mut bytes, at).expect("as long as that");
    bytes
}

/// Two processes move all that each is to, once; a degraded array computes what it lost, which is the member with the
/// first byte, from all others; only a rebuilding one has a rebuild, and alone it goes on to its end.
#[test]
fn samples_are_of_what_was_asked_for_in_the_state_of_the_cell() {
    let layout = "{ level = \"raid5\", members = 3, chunk = \"64KiB\" }";
    let states = "\"healthy\", \"degraded\", \"rebuilding\"";
    let workloads = "{ kind = \"dd-read\", name = \"first\", size = \"64KiB\", block = \"64KiB\" }, \
        { kind = \"dd-read\", size = \"1MiB\", block = \"64KiB\" }, \
        { kind = \"dd-write\", size = \"1MiB\", block = \"128KiB\" }, \
        { kind = \"random-read\", size = \"256KiB\" }";
    let study = study(layout, states, workloads);
    let of = [(64, 1), (1024, 16), (1024, 8), (256, 64)];
    run(&study, &mut |key, sample, directory| {
        let told = format!("{key:?}: {sample:?}");
        let Some(spec) = key.workload(&study) else {
            let rebuild = sample.rebuild.expect("a rebuild");
            assert_eq!((rebuild.done, sample.last_done), (1.0, rebuild.elapsed), "{told}");
            let spare = directory.open_spare().expect("a spare").1;
            // From the first to the last of its chunks.
            for at in [0, 4 << 20, (8 << 20) - (64 << 10)] {
                assert!(block(&spare, at).iter().any(|byte| *byte != 0), "{told}: {at}");
            }
            return;
        };
        let (kib, operations) = of[key.workload];
        assert_eq!((sample.bytes, sample.ops), (2 * kib * KIB, 2 * operations), "{told}");
        assert!(sample.first_done <= sample.last_done && sample.first_done.0 > 0, "{told}");
        assert_eq!(sample.rebuild.is_some(), key.state == State::Rebuilding, "{told}");
        let members = sample.members.expect("counted");
        if spec.workload.kind() == "dd-write" {
            assert_eq!(sample.bytes_written, sample.bytes, "{told}");
            // Whole stripes of two chunks and their parity, of which a degraded one leaves a third out.
            let least = if key.state == State::Healthy { 3 } else { 2 };
            assert!(members.bytes_written >= sample.bytes * least / 2, "{told}");
            return;
        }
        assert_eq!(sample.bytes_written, 0, "{told}");
        match key.state {
            State::Healthy => assert_eq!(members.bytes_read, sample.bytes, "{told}"),
            State::Degraded if kib == 64 => {
                // The first of the two chunks is lost: two others tell what it held.
                assert!(members.bytes_read >= 3 * 64 * KIB, "{told}");
            }
            _ => assert!(members.bytes_read > sample.bytes, "{told}"),
        }
    })
    .unwrap_or_else(|error| panic!("{error}"));
}

/// All that the processes read was written before: by the plan of the cell's own seed, on a single drive, where a byte
/// of the array is that of the member.
#[test]
fn what_a_cell_reads_was_filled_before() {
    // Large enough that places are filled, not all of it.
    let study = study_on(
        "64MiB",
        "{ level = \"single\" }",
        "\"healthy\"",
        "{ kind = \"random-read\", size = \"64KiB\" }",
    );
    run(&study, &mut |key, sample, directory| {
        let space = Sizes::of(&study).expect("sizes").capacities[0].bytes();
        let seed = cell_seed(&study, key, 0);
        let setting = Setting { space: Some(space), ..Setting::new(key.processes, seed) };
        let plan = key.workload(&study).expect("a workload").workload.plan(&setting);
        let mut plan = RawPlan::new(plan.expect("it fits"), space).expect("it needs no files");
        let (mut read, mut furthest) = (0, 0);
        for process in &mut plan.processes {
            loop {
                let asked = process.next(Time::ZERO, OpResult::Done);
                let Some(request) = asked.operation() else {
                    if asked == Asked::Done {
                        break;
                    }
                    continue;
                };
                let (at, len) = request.span();
                let path = directory.member_path(0).expect("a member");
                assert!(block(&path, at).iter().any(|byte| *byte != 0), "{at}");
                (read, furthest) = (read + len, furthest.max(at));
            }
        }
        assert_eq!(read, sample.bytes);
        assert!(furthest > space / 2, "all over it");
    })
    .unwrap_or_else(|error| panic!("{error}"));
}

/// What is filled before lies where the processes write then: the member holds nothing else.
#[test]
fn a_cell_writes_where_it_was_filled() {
    let write = "{ kind = \"random-write\", size = \"64KiB\" }";
    let study = study_on("64MiB", "{ level = \"single\" }", "\"healthy\"", write);
    run(&study, &mut |_, sample, directory| {
        let path = directory.member_path(0).expect("a member");
        let bytes = std::fs::read(path).expect("there");
        let blocks = bytes.chunks(4096).filter(|block| block.iter().any(|byte| *byte != 0)).count();
        // Some places are drawn twice.
        let most = sample.bytes as usize / 4096;
        assert!(blocks <= most && blocks > most / 2, "{blocks} of {most}");
    })
    .unwrap_or_else(|error| panic!("{error}"));
}

/// Layouts share seeds and members: what one wrote may not be taken for what another was to write.
#[test]
fn layouts_write_other_bytes_to_the_same_members() {
    let study = study(
        "{ level = \"single\", name = \"a\" }, { level = \"single\", name = \"b\" }",
        "\"healthy\"",
        "{ kind = \"dd-write\", size = \"64KiB\", block = \"64KiB\" }",
    );
    let mut blocks = Vec::new();
    run(&study, &mut |key, _, directory| {
        if !key.again {
            blocks.push(block(&directory.member_path(0).expect("a member"), 0));
        }
    })
    .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(blocks.len(), 2);
    assert!(blocks[0] != blocks[1] && blocks.iter().all(|block| *block != [0; 4096]));
}

/// A block as direct I/O takes it.
#[repr(align(4096))]
struct Aligned([u8; 4096]);

/// Set when this goes, also by a panic: who waits for it would wait for ever.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs a study while its first block on a member file, or on the spare, is overwritten again and again; what it says.
fn with_wrong_bytes(study: &Study, name: &str) -> String {
    let is_over = AtomicBool::new(false);
    let sizes = Sizes::of(study).expect("sizes");
    let made = RunDirectory::create_with(&std::env::temp_dir(), 2, sizes.file, sizes.extra(study));
    let drives = Drives::Files(made.expect("files"));
    let Drives::Files(directory) = &drives else { unreachable!("files") };
    // Past the page cache where members are: what lies in it would keep them from being written.
    let path = directory.path().join(name);
    let open = |flags| File::options().write(true).custom_flags(flags).open(&path);
    let file = open(libc::O_DIRECT).or_else(|_| open(0)).expect("a file of the run");
    let wrong = Aligned([0x5a; 4096]);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                file.write_all_at(&wrong.0, 0).expect("written");
            }
        });
        let _over = Over(&is_over);
        let rounds = Rounds::new(study, &drives, &sizes, &GO).expect("possible");
        rounds.run(Vec::new(), &mut |_| ControlFlow::Continue(()))
    });
    outcome.map_or_else(|error| error.to_string(), |_| "all right".into())
}

/// What is only written is compared on the members after the run; what a degraded array lost, when it is whole again.
#[test]
fn wrong_bytes_on_members_are_found_after_the_run() {
    let copies = "{ level = \"raid1\", members = 2 }";
    let write = "{ kind = \"dd-write\", size = \"1MiB\", block = \"64KiB\" }";
    for (states, name) in [
        ("\"healthy\"", "member-1.img"),
        ("\"degraded\"", "member-1.img"),
        ("\"degraded\"", "spare.img"),
        ("\"rebuilding\"", "spare.img"),
    ] {
        // Somebody who writes at the same time may come too late in a round, not in all of them.
        let study = Study { rounds: 40, max_rounds: 40, ..study(copies, states, write) };
        let said = with_wrong_bytes(&study, name);
        let is_told = said.contains("wrong bytes found on members after the run:\n");
        assert!(is_told && said.starts_with("round "), "{states} {name}: {said}");
        let study = Study { rounds: 1, max_rounds: 1, ..study };
        run(&study, &mut |_, _, _| ()).unwrap_or_else(|error| panic!("{states}: {error}"));
    }
}

/// A rebuild while nothing else goes on is compared too.
#[test]
fn wrong_bytes_of_a_rebuild_alone_are_found() {
    let layouts = "{ level = \"raid1\", members = 2 }, { level = \"single\", name = \"one\" }";
    let read =
        "{ kind = \"dd-read\", size = \"64KiB\", block = \"64KiB\", only_layouts = [\"one\"] }";
    let study =
        Study { rounds: 40, max_rounds: 40, ..study(layouts, "\"healthy\", \"rebuilding\"", read) };
    let rebuilt: Vec<CellKey> =
        cells(&study).into_iter().filter(|key| key.state == State::Rebuilding).collect();
    assert!(rebuilt.len() == 1 && rebuilt[0].workload(&study).is_none(), "{rebuilt:?}");
    let said = with_wrong_bytes(&study, "spare.img");
    assert!(said.contains("wrong bytes found on members after the run:\n"), "{said}");
}

/// Each process's bytes, in a run of each, and all of the array for a rebuild alone.
#[test]
fn filling_is_all_that_cells_fill() {
    let filling = |states: &str| {
        let layout = "{ level = \"raid1\", members = 2 }";
        let read = "{ kind = \"dd-read\", size = \"512KiB\", block = \"64KiB\" }";
        let less = read.replace("512KiB\"", "256KiB\", name = \"less\"");
        let study = study(layout, states, &format!("{read}, {less}"));
        Filling::of(&study, &Sizes::of(&study).expect("sizes")).expect("it can be planned")
    };
    let once = Filling { bytes: 2 * 768 * KIB, places: 4 };
    assert_eq!(filling("\"healthy\""), once);
    let both = Filling { bytes: 2 * once.bytes + (8 << 20), places: 2 * once.places + 1 };
    assert_eq!(filling("\"healthy\", \"rebuilding\""), both);
}
