//! Work on a filesystem: the personalities of filebench, and the workloads of a study.

use raidlab_advise::{Advice, Among, Group, InTurn, NoAdvice, Profile, Wanted, advise, profiles};
use raidlab_core::Sectors;
use raidlab_study::State;

/// A short question with a few layouts.
fn wanted(profile: Profile, among: &[&str]) -> Wanted {
    let drive = raidlab_models::load("nas-8tb-7200").expect("compiled in");
    let layout = |name: &str| Among::Layout(name.parse().expect("a layout"));
    let mut wanted = Wanted::new(4..=4, drive, profile);
    wanted.among = among.iter().map(|name| layout(name)).collect();
    wanted.chunks = vec![Sectors(1024)];
    wanted.spares = 0;
    wanted.requests = 300;
    wanted
}

fn advised(profile: Profile) -> (Wanted, Advice) {
    let wanted = wanted(profile, &["raid5(4)"]);
    let advice = advise(&wanted, &InTurn).unwrap_or_else(|error| panic!("{error:?}"));
    (wanted, advice)
}

/// Rates and p99 in each state, and hours of a rebuild, which is no faster than a full pass: 12 h.
fn check(name: &str, wanted: &Wanted, advice: &Advice) {
    assert_eq!(advice.finalists.len(), 1, "{name}");
    for one in &advice.finalists {
        let name = format!("{name} on {}", one.candidate);
        for state in State::ALL {
            for part in 0..wanted.profile.parts.len() {
                let rate = one.median(|run| run.rate(wanted, part, state)).expect("a rate");
                assert!(rate > 0.0 && rate.is_finite(), "{name}: {rate}");
            }
            let tail = one.median(|run| run.tail(wanted, state)).expect("a p99");
            assert!((1e-7..60.0).contains(&tail), "{name} {state:?}: {tail} s");
        }
        let hours = one.median(|run| run.rebuild(wanted)).expect("redundant");
        assert!((12.0..300.0).contains(&hours), "{name}: {hours} h");
    }
}

#[test]
fn each_work_on_files_is_work_in_every_state() {
    let all = profiles();
    let on_files = all.into_iter().filter(|one| one.filesystem.is_some());
    let mut names = Vec::new();
    for profile in on_files {
        let name = profile.name.clone();
        let (wanted, advice) = advised(profile);
        check(&name, &wanted, &advice);
        names.push(name);
    }
    let of_people = ["nas", "media", "capture", "backup"];
    let of_filebench = ["fileserver", "varmail", "webserver", "webproxy", "oltp", "videoserver"];
    assert_eq!(names, [&of_people[..], &of_filebench].concat());
}

/// What is written through a page cache fills rows of parity, of which nothing is read first: seven or six of eight
/// drives with data take more than four.
#[test]
fn files_are_written_faster_beside_parity_than_twice() {
    for work in ["backup", "capture"] {
        let mut wanted = wanted(Profile::named(work).expect("there"), &["raid6(8)", "raid10(8)"]);
        (wanted.drives, wanted.requests) = (8..=8, 1_000);
        let advice = advise(&wanted, &InTurn).unwrap_or_else(|error| panic!("{error:?}"));
        let written = |layout: &str| {
            let of = |one: &&raidlab_advise::Finalist| one.candidate.to_string() == layout;
            let one = advice.finalists.iter().find(of).expect("comes to the last runs");
            one.median(|run| run.rate(&wanted, 0, State::Healthy)).expect("a rate")
        };
        let (parity, copies) = (written("raid6(8)"), written("raid10(8)"));
        assert!(parity > 1.15 * copies, "{work}: {parity} and {copies} bytes a second");
    }
}

/// A rebuild goes on beside work on files for as long as it takes to tell, as on the array itself.
#[test]
fn rebuilds_beside_files_are_told() {
    let mut wanted = wanted(Profile::named("nas").expect("there"), &["raid5(4)"]);
    wanted.requests = 1_500;
    let advice = advise(&wanted, &InTurn).unwrap_or_else(|error| panic!("{error:?}"));
    for one in &advice.finalists {
        assert!(one.tells_rebuild(), "{}", one.candidate);
    }
    // A seventeenth of that is a glance, which no work that is nine times as long makes up for.
    wanted.requests = 90;
    let advice = advise(&wanted, &InTurn).unwrap_or_else(|error| panic!("{error:?}"));
    assert!(!advice.finalists[0].tells_rebuild());
}

/// Mail that is delivered waits for the drives; its p99 is that of the fsync, not of writing into memory.
#[test]
fn the_p99_of_mail_has_its_fsyncs() {
    let (wanted, advice) = advised(Profile::named("varmail").expect("there"));
    for one in &advice.finalists {
        let tail = one.median(|run| run.tail(&wanted, State::Healthy)).expect("a p99");
        assert!(tail > 5e-3, "{}: {tail} s", one.candidate);
    }
}

#[test]
fn viewers_get_their_rate() {
    let (wanted, advice) = advised(Profile::named("videoserver").expect("there"));
    for one in &advice.finalists {
        let kept = one.median(|run| Some(run.keeps_up(&wanted))).expect("a share");
        assert!((0.95..1.5).contains(&kept), "{}: {kept}", one.candidate);
    }
}

const STUDY: &str = "title = \"files and places\"\nfilesystem = \"ext4\"\nprocesses = [1, 2]\n\
    [[drives]]\nname = \"d\"\ncount = 2\nmodel = \"nas-4tb-5400\"\n\
    [[layouts]]\nlevel = \"raid0\"\nmembers = 2\n\
    [[workloads]]\nkind = \"small-files\"\nname = \"mail\"\nfiles = 40\nfsync = true\nonly_processes = [3]\n\
    [[workloads]]\nkind = \"cp-null\"\nname = \"copy\"\nsize = \"4MiB\"\nonly_layouts = [\"raid0(2)\"]\n";

fn study(text: &str) -> raidlab_study::Study {
    raidlab_study::parse(text, "mine.toml").unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_study_s_workloads_are_the_work() {
    let profile = Profile::of_study(&study(STUDY), "mine.toml", None).expect("work");
    assert_eq!((profile.streams, profile.filesystem.as_deref()), (3, Some("ext4")));
    let processes: Vec<u32> = profile.parts.iter().map(|part| part.processes()).collect();
    assert_eq!(processes, [3, 2], "the most that each has");
    let units: Vec<&str> = profile.parts.iter().map(|part| part.counted.unit()).collect();
    assert_eq!(units, ["files/s", "s"]);
    let (wanted, advice) = advised(profile);
    check("a study", &wanted, &advice);
    let one = Profile::of_study(&study(STUDY), "mine.toml", Some("Copy")).expect("one of them");
    assert_eq!((one.parts.len(), one.parts[0].name.as_str()), (1, "copy"));
    let group = |text: &str| {
        Profile::of_study(&study(text), "mine.toml", None).expect("work").parts[0].group
    };
    assert_eq!(group(STUDY), Group::Files);
    assert_eq!(
        group(&STUDY.replace("filesystem = \"ext4\"\n", "")),
        Group::Streams,
        "the worse one"
    );
}

#[test]
fn a_study_that_is_no_work_is_told_why() {
    let of = |text: &str, workload| {
        Profile::of_study(&study(text), "mine.toml", workload).expect_err("no work")
    };
    let error = of(STUDY, Some("mial"));
    assert!(error.contains("did you mean `mail`?") && error.contains("mail, copy"), "{error}");
    let error = of(&STUDY.replace("ext4", "btrfs"), None);
    assert!(error.contains("btrfs is not modelled"), "{error}");
    let mut none = study(STUDY);
    none.workloads.clear();
    let error = Profile::of_study(&none, "mine.toml", None).expect_err("nothing");
    assert!(error.contains("no workloads"), "{error}");
    let refused = |text: &str| {
        let profile = Profile::of_study(&study(text), "mine.toml", None).expect("work");
        match advise(&wanted(profile, &["raid5(4)", "raid10(4)"]), &InTurn) {
            Err(NoAdvice::Input(why)) => why,
            other => panic!("{other:?}"),
        }
    };
    // Three drives of 8 TB hold it, two do not.
    let error = refused(&STUDY.replace("4MiB", "9TB"));
    assert!(
        error.starts_with("mine.toml: copy on raid10(4)") && error.contains("--among"),
        "{error}"
    );
    let error = refused(&STUDY.replace("filesystem = \"ext4\"\n", ""));
    assert!(error.contains("mail on ") && error.contains("by name"), "{error}");
}
