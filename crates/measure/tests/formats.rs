//! What stands on the members of a study's arrays while they run: files are looked at when the study is done, as
//! nothing stops an array or clears it then.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use raidlab_core::Sectors;
use raidlab_engine::{Engine, FileMember, FileOptions, MdOptions, Member};
use raidlab_measure::{Drives, MeasureError, MemberFormat, Rounds, Sizes};
use raidlab_metadata::md::{Inspected, Version, inspect};
use raidlab_study::Study;
use raidlab_targets::RunDirectory;

static GO: AtomicBool = AtomicBool::new(false);

/// A study of one layout, by its keys.
fn study(layout: &str, states: &str) -> Study {
    let text = format!(
        "title = \"t\"\nrounds = 1\nmax_rounds = 1\nstates = [{states}]\n\
         drives = [{{ name = \"d\", file = \"16MiB\", count = 6 }}]\nlayouts = [{{ {layout} }}]\n\
         [[workloads]]\nkind = \"random-write\"\nsize = \"128KiB\"\nspan = \"1MiB\"\n\
         [[workloads]]\nkind = \"dd-read\"\nblock = \"64KiB\"\nsize = \"512KiB\"\n"
    );
    raidlab_study::parse(&text, "study.toml").expect(layout)
}

/// Runs the study in a directory of its own; what is found there is handed to `look`.
fn run(study: &Study, look: impl FnOnce(&Sizes, &RunDirectory)) -> Result<(), MeasureError> {
    let sizes = Sizes::of(study).expect("sizes");
    let members = study.layouts[0].layout.drives();
    let made =
        RunDirectory::create_with(&std::env::temp_dir(), members, sizes.file, sizes.extra(study));
    let drives = Drives::Files(made.expect("files"));
    let rounds = Rounds::new(study, &drives, &sizes, &GO)?;
    rounds.run(Vec::new(), &mut |_| ControlFlow::Continue(()))?;
    let Drives::Files(directory) = &drives else { unreachable!("files") };
    look(&sizes, directory);
    Ok(())
}

fn open(path: &Path, sectors: Sectors) -> Member {
    let options = FileOptions { sectors: Some(sectors), ..FileOptions::default() };
    Member::File(Box::new(FileMember::open(path, options).expect("a member file")))
}

fn paths(directory: &RunDirectory, members: u16) -> Vec<PathBuf> {
    (0..members).map(|index| directory.member_path(index).expect("a member file")).collect()
}

/// Every level in every mode that md has runs on md's metadata, healthy, degraded and while it is rebuilt, and
/// verifies. What its members carry is an array of md's, with as many sectors as the study's sizes say.
#[test]
fn arrays_of_studies_are_arrays_of_md() {
    for (layout, members, mode) in [
        ("level = \"raid0\", members = 3", 3, ""),
        ("level = \"linear\", members = 2", 2, ""),
        ("level = \"raid1\", members = 2", 2, "resync"),
        ("level = \"raid1\", members = 3", 3, "bitmap"),
        ("level = \"raid10\", members = 4, far = 2", 4, "resync"),
        ("level = \"raid10\", members = 3", 3, "bitmap"),
        ("level = \"raid4\", members = 3", 3, "resync"),
        ("level = \"raid4\", members = 3", 3, "bitmap"),
        ("level = \"raid4\", members = 3", 3, "journal"),
        ("level = \"raid5\", members = 3", 3, "resync"),
        ("level = \"raid5\", members = 4", 4, "bitmap"),
        ("level = \"raid5\", members = 3", 3, "ppl"),
        ("level = \"raid5\", members = 3", 3, "journal"),
        ("level = \"raid6\", members = 4", 4, "resync"),
        ("level = \"raid6\", members = 5", 5, "bitmap"),
        ("level = \"raid6\", members = 4", 4, "journal"),
    ] {
        let mut keys = layout.to_string();
        if !matches!(layout, text if text.contains("raid1\"") || text.contains("linear")) {
            keys += ", chunk = \"64KiB\"";
        }
        let states = match mode {
            "" => "\"healthy\"",
            _ => "\"healthy\", \"degraded\", \"rebuilding\"",
        };
        let more = match mode {
            "" => String::new(),
            "journal" => ", consistency = \"journal\", journal_size = \"8MiB\"".into(),
            mode => format!(", consistency = \"{mode}\""),
        };
        let study = study(&format!("{keys}{more}"), states);
        let told = format!("{keys}{more}");
        let done = run(&study, |sizes, directory| {
            assert!(sizes.formats[0].is_md(), "{told}: {}", sizes.formats[0]);
            let each = paths(directory, members);
            check_members(&each, sizes.members[0], &told);
            // The last cell left it as a kill would: with a member out, or under way.
            let healthy = mode.is_empty();
            let devices = each.iter().map(|path| open(path, sizes.members[0])).collect();
            if healthy {
                let (engine, _) = Engine::assemble_md(devices, &MdOptions::default()).expect(&told);
                assert_eq!(engine.array().capacity(), sizes.capacities[0], "{told}");
            }
        });
        done.unwrap_or_else(|error| panic!("{told}: {error}"));
    }
}

/// Each carries a superblock of one array, which mdadm finds right.
fn check_members(each: &[PathBuf], sectors: Sectors, told: &str) {
    let seen: Vec<Inspected> = each.iter().map(|path| inspect(&mut open(path, sectors))).collect();
    let mut arrays = Vec::new();
    for one in &seen {
        let superblock = one.superblock().unwrap_or_else(|| panic!("{told}: no superblock"));
        assert_eq!(one.seen.len(), 1, "{told}");
        assert_eq!(
            superblock.name.split(|byte| *byte == 0).next(),
            Some(&b"raidlab-study"[..]),
            "{told}"
        );
        arrays.push(superblock.array);
    }
    arrays.dedup();
    assert_eq!(arrays.len(), 1, "{told}: one array");
    for path in each {
        let Ok(ran) = Command::new("mdadm").arg("--examine").arg(path).output() else {
            let line = "skipped: mdadm --examine: it is not installed\n";
            return std::io::stderr().write_all(line.as_bytes()).expect("standard error is open");
        };
        let text = String::from_utf8_lossy(&ran.stdout);
        for word in ["Version : 1.2", "Name : raidlab-study", "- correct"] {
            assert!(text.contains(word), "{told}: `{word}` is not in {text}");
        }
    }
}

/// The capacity that was planned is that of the array, in every mode: of a healthy study.
#[test]
fn arrays_are_as_large_as_was_planned() {
    for (layout, members, more) in [
        ("raid1", 2, ", consistency = \"resync\""),
        ("raid10", 5, ", chunk = \"64KiB\", consistency = \"bitmap\", bitmap_chunk = \"1MiB\""),
        ("raid5", 3, ", chunk = \"64KiB\", consistency = \"ppl\""),
        ("raid6", 4, ", consistency = \"bitmap\""),
        ("raid5", 4, ", chunk = \"64KiB\", consistency = \"journal\", journal_size = \"8MiB\""),
    ] {
        let keys = format!("level = \"{layout}\", members = {members}{more}");
        let study = study(&keys, "\"healthy\"");
        let done = run(&study, |sizes, directory| {
            let mut devices: Vec<Member> =
                paths(directory, members).iter().map(|path| open(path, sizes.members[0])).collect();
            if let Some(sectors) =
                sizes.formats[0].log_sectors(study.layouts[0].settings.consistency)
            {
                let (_, path) = directory.open_journal().expect("a log device");
                devices.push(open(&path, sectors));
            }
            let (engine, found) = Engine::assemble_md(devices, &MdOptions::default()).expect(&keys);
            assert_eq!(engine.array().capacity(), sizes.capacities[0], "{keys}");
            let MemberFormat::Md(planned) = &sizes.formats[0] else { panic!("{keys}") };
            assert!(
                found.joined.starts.iter().all(|start| *start == planned.data_offset),
                "{keys}"
            );
        });
        done.unwrap_or_else(|error| panic!("{keys}: {error}"));
    }
}

/// What md has no form for runs as before: nothing of md's stands on its members.
#[test]
fn what_md_does_not_have_runs_without_it() {
    for (layout, members) in [
        ("level = \"raid3\", members = 3, consistency = \"resync\"", 3),
        ("level = \"raid5\", members = 3, chunk = \"64KiB\"", 3),
        ("level = \"single\"", 1),
    ] {
        let study = study(layout, "\"healthy\"");
        let done = run(&study, |sizes, directory| {
            assert!(!sizes.formats[0].is_md(), "{layout}");
            for path in paths(directory, members) {
                let seen = inspect(&mut open(&path, sizes.members[0]));
                assert!(seen.seen.is_empty(), "{layout}: {:?}", Version::V1_2);
                // Behind the data only what keeps redundancy consistent, in a format of its own.
                let bytes = std::fs::read(&path).expect("there");
                let data = sizes.capacities[0].bytes() / u64::from(members.max(2) - 1);
                let behind = bytes.iter().skip(data as usize).any(|byte| *byte != 0);
                assert_eq!(behind, layout.contains("resync"), "{layout}: behind {data}");
            }
        });
        done.unwrap_or_else(|error| panic!("{layout}: {error}"));
    }
}
