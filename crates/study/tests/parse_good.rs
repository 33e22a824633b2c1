//! Study files that are right.

use raidlab_core::{Level, Sectors, Size};
use raidlab_study::{DriveSource, StudyErrorKind, cell_title, cells, default_study, load, parse};
use raidlab_study::{State, Study};
use raidlab_workload::{Kind, Span};

fn default() -> Study {
    parse(default_study(), "default").unwrap()
}

#[test]
fn the_default_study() {
    let study = default();
    assert_eq!(study.title, "Four NAS drives, which layout?");
    assert_eq!((study.seed, study.rounds, study.max_rounds), (1, 6, 6));
    assert_eq!(study.precision_percent, 5.0);
    assert_eq!(study.baseline, ["single"]);
    assert_eq!(study.baseline_layouts(), [0]);
    assert_eq!(study.processes, [1, 2, 4]);
    assert_eq!(study.states, [State::Healthy]);
    assert_eq!(study.drives.len(), 1);
    assert_eq!(study.drives[0].source, DriveSource::Model("nas-8tb-7200".into()));
    assert_eq!((study.drives[0].name.as_str(), study.drives[0].count), ("nas", 4));
    let names: Vec<_> = study.layouts.iter().map(|layout| layout.name.as_str()).collect();
    let expected = ["single", "linear(4)", "raid0(4)", "raid1(2)", "raid5(4)", "raid10(4)"];
    assert_eq!(names, expected);
    let striped = study.layouts.iter().filter(|layout| layout.layout.level.has_chunks());
    assert!(striped.map(|layout| layout.layout.chunk).eq([Sectors(1024); 3]));
    let workloads: Vec<_> = study.workloads.iter().map(|w| (w.name.as_str(), w.size)).collect();
    assert_eq!(
        workloads,
        [
            ("dd-write 6MiB", 4 << 30),
            ("dd-read 6MiB", 4 << 30),
            ("random-read 4KiB", 4 << 20),
            ("random-write 4KiB", 4 << 20),
        ]
    );
    assert!(study.workloads.iter().all(|workload| workload.span == Span::Percent(100)));
    assert_eq!(cells(&study).len(), 6 * 4 * 3);
    assert_eq!(cell_title(&study, &cells(&study)[11]), "raid10(4), dd-write 6MiB, 2 processes");
}

/// The comment in the default study: 6 MiB are whole stripes of each of its layouts.
#[test]
fn the_default_block_is_a_whole_number_of_stripes() {
    let study = default();
    let layouts = study.layouts.iter().map(|layout| &layout.layout);
    for layout in layouts.filter(|layout| layout.level.has_chunks()) {
        let data_chunks = match layout.level {
            Level::Raid0 => layout.members,
            Level::Raid5 => layout.members - 1,
            Level::Raid10 => layout.members / layout.near,
            other => unreachable!("{other} has no stripes"),
        };
        let stripe = u64::from(data_chunks) * layout.chunk.bytes();
        assert!(study.workloads[0].block.is_multiple_of(stripe), "{layout}");
    }
}

#[test]
fn everything_that_can_be_said() {
    let text = r#"
        title = "All of it"
        seed = 0xffff_ffff_ffff_ffff
        rounds = 8
        max_rounds = 30
        precision = "2.5 %"
        baseline = ["one", "two"]
        processes = [3]
        states = ["healthy"]
        drives = [
            { name = "files", file = "64MiB", count = 3 },
            { name = "mine", model = "./mine.toml", count = 6 },
        ]
        [[layouts]]
        name = "one"
        level = "raid5"
        members = 3
        chunk = "64KiB"
        rotation = "left-symmetric"
        [[layouts]]
        name = "two"
        level = "raid10"
        members = 6
        near = 3
        drives = "mine"
        [[layouts]]
        level = "raid10"
        members = 5
        chunk = "64K"
        near = 3
        drives = "mine"
        [[layouts]]
        level = "linear"
        members = 1
        chunk = "4KiB"
        [[workloads]]
        kind = "random-write"
        name = "scatter"
        block = "8KiB"
        size = "80KiB"
        span = "1GiB"
        [[workloads]]
        kind = "dd-read"
        size = "1MiB"
    "#;
    let study = parse(text, "all").unwrap();
    assert_eq!((study.seed, study.rounds, study.max_rounds), (u64::MAX, 8, 30));
    assert_eq!(study.precision_percent, 2.5);
    assert_eq!(study.baseline_layouts(), [0, 1]);
    assert_eq!(study.drives[0].source, DriveSource::File(Size(64 << 20)));
    let names: Vec<_> = study.layouts.iter().map(|layout| layout.name.as_str()).collect();
    assert_eq!(names, ["one", "two", "raid10(5) chunk=64K near3", "single"]);
    let groups: Vec<_> = study.layouts.iter().map(|layout| layout.drives).collect();
    assert_eq!(groups, [0, 1, 1, 0]);
    assert_eq!(study.layouts[0].layout.chunk, Sectors(128));
    assert_eq!(study.layouts[1].layout.near, 3);
    let scatter = &study.workloads[0];
    assert_eq!((scatter.name.as_str(), scatter.kind), ("scatter", Kind::RandomWrite));
    assert_eq!((scatter.block, scatter.size), (8 << 10, 80 << 10));
    assert_eq!(scatter.span, Span::Bytes(1 << 30));
    assert_eq!(study.workloads[1].block, 6 << 20, "the default block");
    assert_eq!(study.origin.line("layouts", 1, "near"), Some(24));
    assert_eq!(study.origin.line("layouts", 1, "chunk"), Some(20), "that of the table");
    assert_eq!(study.origin.line("layouts", 9, "chunk"), None);
    assert_eq!(study.origin.lines["rounds"], 4);
}

#[test]
fn capacities_are_checked_when_they_are_known() {
    let study = default();
    let large = vec![Sectors(1 << 34); 6];
    study.check_capacity(&large, &[8; 6]).unwrap();
    let mut small = large.clone();
    small[3] = Sectors::from_bytes(10 << 30).unwrap();
    let error = study.check_capacity(&small, &[8; 6]).unwrap_err();
    assert_eq!(error.kind, StudyErrorKind::DoesNotFit);
    assert_eq!(
        error.to_string(),
        "default:46: workloads.size: dd-write 6MiB on raid1(2): 4 files of 4GiB do not fit in \
         10GiB of the array's 10GiB; at most 2556MiB per process"
    );
    let error = study.check_capacity(&large, &[8, 8, 8, 8, 24, 8]).unwrap_err();
    assert_eq!(error.kind, StudyErrorKind::WrongValue);
    assert!(error.reason.contains("raid5(4)") && error.reason.contains("multiple"), "{error}");
}

#[test]
fn files_are_read_from_a_path() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let study = load(&root.join("studies/default.toml")).unwrap();
    assert_eq!(study.layouts, default().layouts);
    assert!(study.origin.path.ends_with("default.toml"));
    let error = load(&root.join("studies/no-such-study.toml")).unwrap_err();
    assert_eq!((error.kind, error.line), (StudyErrorKind::Unreadable, None));
    assert!(
        error.to_string().contains("no-such-study.toml: cannot read the study file"),
        "{error}"
    );
}
