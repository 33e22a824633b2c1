//! Study files that are right.

use std::sync::Arc;

use raidlab_core::contract::{Pacing, PacingRule};
use raidlab_core::{Consistency, Level, Sectors, Size, Tie};
use raidlab_study::{DriveSource, StudyErrorKind, cell_title, cells, default_study, load, parse};
use raidlab_study::{State, Study};
use raidlab_workload::{Kind, Simple, Span, WorkloadSpec};

fn default() -> Study {
    parse(default_study(), "default").unwrap()
}

fn simple(name: &str, simple: Simple) -> WorkloadSpec {
    WorkloadSpec { name: name.into(), ..WorkloadSpec::new(Arc::new(simple)) }
}

#[test]
fn the_default_study() {
    let study = default();
    assert_eq!(study.title, "Four NAS drives, which layout?");
    assert_eq!((study.seed, study.rounds, study.max_rounds), (1, 9, 9));
    assert_eq!(study.precision_percent, 5.0);
    assert_eq!(study.baseline, ["single"]);
    assert_eq!(study.baseline_layouts(), [0]);
    assert_eq!(study.processes, [1, 2, 4]);
    assert_eq!(study.states, [State::Healthy]);
    assert_eq!(study.filesystem, None);
    assert_eq!(study.drives.len(), 1);
    assert_eq!(study.drives[0].source, DriveSource::Model("nas-8tb-7200".into()));
    assert_eq!((study.drives[0].name.as_str(), study.drives[0].count), ("nas", 4));
    let names: Vec<_> = study.layouts.iter().map(|layout| layout.name.as_str()).collect();
    let expected = [
        "single",
        "linear(4)",
        "raid0(4)",
        "raid1(2)",
        "raid4(4)",
        "raid5(4)",
        "raid6(4)",
        "raid10(4)",
        "raid10(4) far2",
    ];
    assert_eq!(names, expected);
    let policies: Vec<_> = study.layouts.iter().map(|layout| layout.read_policy.name()).collect();
    let (plain, md) = ("least-busy", "md");
    assert_eq!(policies, [plain, plain, plain, md, plain, plain, plain, md, md]);
    let striped = study.layouts.iter().filter(|layout| layout.layout.level.has_chunks());
    assert!(striped.map(|layout| layout.layout.chunk).eq([Sectors(1024); 6]));
    let workload = |name, kind, size| simple(name, Simple::new(kind, size));
    let files =
        |name, kind, size| simple(name, Simple { span: Span::Together, ..Simple::new(kind, size) });
    assert_eq!(
        study.workloads,
        [
            files("dd-write 6MiB", Kind::DdWrite, 4 << 30),
            files("dd-read 6MiB", Kind::DdRead, 4 << 30),
            workload("random-read 4KiB", Kind::RandomRead, 4 << 20),
            workload("random-write 4KiB", Kind::RandomWrite, 4 << 20),
        ]
    );
    assert_eq!(cells(&study).len(), 9 * 4 * 3);
    assert_eq!(cell_title(&study, &cells(&study)[16]), "raid10(4), dd-write 6MiB, 2 processes");
}

/// The comment in the default study: 6 MiB are whole stripes of each of its layouts.
#[test]
fn the_default_block_is_a_whole_number_of_stripes() {
    let study = default();
    let layouts = study.layouts.iter().map(|layout| &layout.layout);
    for layout in layouts.filter(|layout| layout.level.has_chunks()) {
        let data_chunks = match layout.level {
            Level::Raid0 => layout.members,
            Level::Raid4 | Level::Raid5 => layout.members - 1,
            Level::Raid6 => layout.members - 2,
            Level::Raid10 => layout.members / (layout.near * layout.far),
            other => unreachable!("{other} has no stripes"),
        };
        let stripe = u64::from(data_chunks) * layout.chunk.bytes();
        assert!(Kind::DdWrite.default_block().is_multiple_of(stripe), "{layout}");
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
    let expected = ["one", "two", "raid10(5) chunk=64K near3", "single chunk=4K"];
    assert_eq!(names, expected);
    let groups: Vec<_> = study.layouts.iter().map(|layout| layout.drives).collect();
    assert_eq!(groups, [0, 1, 1, 0]);
    assert_eq!(study.layouts[0].layout.chunk, Sectors(128));
    assert_eq!(study.layouts[1].layout.near, 3);
    let span = Span::Bytes(1 << 30);
    let scatter = Simple { kind: Kind::RandomWrite, block: 8 << 10, size: 80 << 10, span };
    assert_eq!(study.workloads[0], simple("scatter", scatter));
    let text = format!("{:?}", study.workloads[1]);
    assert!(text.contains("block: 6291456"), "the default block: {text}");
    assert_eq!(study.origin.line("layouts", 1, "near"), Some(24));
    assert_eq!(study.origin.line("layouts", 1, "chunk"), Some(20), "that of the table");
    assert_eq!(study.origin.line("layouts", 9, "chunk"), None);
    assert_eq!(study.origin.lines["rounds"], 4);
}

/// Reports print `chunk=64K`; whoever writes the size as everywhere else names the same layout.
#[test]
fn layouts_are_named_however_their_chunk_is_written() {
    for (size, name) in [("64KiB", "64K"), ("64K", "64KiB"), ("65536", "64k")] {
        let text = format!(
            "title = \"Names\"\nbaseline = [\"raid0(2) chunk={name}\"]\n\
             [[drives]]\nname = \"files\"\nfile = \"64MiB\"\ncount = 2\n\
             [[layouts]]\nlevel = \"single\"\n\
             [[layouts]]\nlevel = \"raid0\"\nmembers = 2\nchunk = \"{size}\"\n\
             [[workloads]]\nkind = \"dd-read\"\nsize = \"1MiB\"\n\
             only_layouts = [\"raid0(2) chunk={name}\", \"single\"]\n"
        );
        let study = parse(&text, "names.toml").expect("a study");
        assert_eq!(study.layouts[1].name, "raid0(2) chunk=64K");
        assert_eq!(study.baseline, ["raid0(2) chunk=64K"]);
        assert_eq!(study.baseline_layouts(), [1]);
        assert_eq!(study.workloads[0].only_layouts, ["raid0(2) chunk=64K", "single"]);
        let twice = text.replace("\"single\"]", &format!("\"raid0(2) chunk={name}\"]"));
        assert!(parse(&twice, "").is_err_and(|error| error.to_string().contains("twice")));
    }
}

#[test]
fn every_kind_of_layout() {
    let head = r#"
        title = "Layouts"
        seed = 1
        rounds = 6
        precision = "5%"
        baseline = ["raid3(5)"]
        processes = [1]
        drives = [{ name = "files", file = "64MiB", count = 9 }]
        workloads = [{ kind = "dd-read", size = "1MiB" }]
    "#;
    let mut text = head.to_string();
    let cases = [
        ("raid3\"\nmembers = 5", "raid3(5)"),
        ("raid4\"\nmembers = 4", "raid4(4)"),
        ("raid5\"\nmembers = 4\nrotation = \"parity-first\"", "raid5(4) parity-first"),
        ("raid6\"\nmembers = 5", "raid6(5)"),
        ("raid6\"\nmembers = 5\nrotation = \"la\"", "raid6(5) left-asymmetric"),
        ("raid6\"\nmembers = 5\nrotation = \"ddf-N-continue\"", "raid6(5) ddf-N-continue"),
        ("raid10\"\nmembers = 5\nfar = 2", "raid10(5) far2"),
        ("raid10\"\nmembers = 5\noffset = 2", "raid10(5) offset2"),
        ("raid10\"\nmembers = 5\nfar = 1", "raid10(5)"),
        ("raid10\"\nmembers = 8\nnear = 2\nfar = 2", "raid10(8) near2 far2"),
        ("raid10\"\nmembers = 8\nfar = 2\nfar_sets = 2", "raid10(8) far2 sets"),
        ("raid0\"\nmembers = 3\nzones = \"alternate\"", "raid0(3) alternate"),
    ];
    for (keys, _) in cases {
        text += &format!("[[layouts]]\nlevel = \"{keys}\n");
    }
    let study = parse(&text, "layouts").unwrap();
    let names: Vec<_> = study.layouts.iter().map(|layout| layout.name.as_str()).collect();
    assert_eq!(names, cases.map(|(_, name)| name));
    let layout = &study.layouts[7].layout;
    assert_eq!((layout.near, layout.far, layout.offset), (1, 2, true));
    let layout = &study.layouts[9].layout;
    assert_eq!((layout.near, layout.far, layout.far_sets), (2, 2, 0));
    assert_eq!(study.layouts[10].layout.far_sets, 2);
    assert_eq!(study.layouts[5].layout.rotation.md_number(), 10);
}

#[test]
fn capacities_are_checked_when_they_are_known() {
    let study = default();
    let large = vec![Sectors(1 << 34); 9];
    study.check_capacity(&large, &[8; 9], |_| None).unwrap();
    let mut small = large.clone();
    small[3] = Sectors::from_bytes(10 << 30).unwrap();
    let error = study.check_capacity(&small, &[8; 9], |_| None).unwrap_err();
    assert_eq!(error.kind, StudyErrorKind::DoesNotFit);
    assert_eq!(
        error.to_string(),
        "default:59: workloads.size: dd-write 6MiB on raid1(2): 4 files of 4GiB do not fit in \
         the array's 10GiB; at most 2556MiB per process"
    );
    let error = study.check_capacity(&large, &[8, 8, 8, 8, 8, 24, 8, 8, 8], |_| None).unwrap_err();
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
    let error = load(std::path::Path::new("nas-5-bays")).unwrap_err().to_string();
    assert!(error.contains("(did you mean `nas-4-bays`?)"), "{error}");
    assert!(error.contains("`raidlab study list`"), "{error}");
}

#[test]
fn policies_are_read_and_named() {
    let text = |level: &str, policy: &str| {
        let members = if level == "raid3" { 5 } else { 4 };
        format!(
            "title = \"t\"\n[[drives]]\nname = \"d\"\nmodel = \"nas-8tb-7200\"\ncount = 5\n\
             [[layouts]]\nlevel = \"{level}\"\nmembers = {members}\npolicy = \"{policy}\"\n\
             [[workloads]]\nkind = \"dd-read\"\nsize = \"6MiB\"\n"
        )
    };
    let name = |level, policy| {
        parse(&text(level, policy), "test.toml").map(|study| study.layouts[0].name.clone())
    };
    assert_eq!(name("raid1", "md-2.6").unwrap(), "raid1(4) policy=md-2.6");
    assert_eq!(name("raid1", "md").unwrap(), "raid1(4)", "the default is not named");
    assert_eq!(name("raid3", "graid3-r").unwrap(), "raid3(5) policy=graid3-r");
    for (level, policy, words) in [
        ("raid5", "md", "raid5 has one copy of each block to read"),
        ("raid10", "md-2.6", "is the rule of raid1"),
        ("raid1", "md-2.7", "did you mean `md-2.6`"),
    ] {
        let error = name(level, policy).unwrap_err().to_string();
        assert!(error.starts_with("test.toml:9: layouts.policy: "), "{error}");
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn states_and_settings() {
    let text = r#"
        title = "All states"
        states = ["rebuilding", "degraded", "healthy"]
        member_size = "8GiB"
        consistency = "bitmap"
        bitmap_chunk = "1MiB"
        cached_stripes = 7
        group_thread_cnt = 2
        pacing = { least = "2MB/s" }
        drives = [{ name = "nas", model = "nas-8tb-7200", count = 6 }]
        layouts = [
            { level = "single" },
            { level = "raid1", members = 2, pacing = { share = "30%" } },
            { level = "raid5", members = 4, consistency = "ppl", tie = "never-modify" },
            { level = "raid5", members = 4, consistency = "journal", journal_size = "1GiB", cached_stripes = 0 },
            { level = "raid6", members = 6, consistency = "none", group_thread_cnt = 0,
              pacing = { sync_io_depth = 4 } },
            { level = "raid0", members = 2 },
        ]
        workloads = [{ kind = "dd-read", size = "6MiB" }]
    "#;
    let study = parse(text, "s.toml").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(study.states, [State::Rebuilding, State::Degraded, State::Healthy]);
    assert_eq!(study.member_size, Some(Sectors(16 << 20)));
    let layouts = &study.layouts;
    let names: Vec<&str> = layouts.iter().map(|layout| layout.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "single",
            "raid1(2) bitmap bitmap_chunk=1M",
            "raid5(4) ppl tie=never-modify cached_stripes=7 group_thread_cnt=2",
            "raid5(4) journal group_thread_cnt=2",
            "raid6(6) cached_stripes=7",
            "raid0(2)",
        ]
    );
    let mode = |n: usize| layouts[n].settings.consistency;
    assert_eq!(mode(0), Consistency::None);
    assert_eq!(mode(1), Consistency::Bitmap { chunk: Sectors(2048) });
    assert_eq!(mode(2), Consistency::PartialParity { slots: 32 });
    assert_eq!(mode(3), Consistency::Journal { sectors: Sectors(2 << 20) });
    assert_eq!(mode(4), Consistency::None);
    let pacing = |n: usize| layouts[n].settings.pacing;
    let share = Pacing { rule: PacingRule::Share(30), ..pacing(1) };
    assert_eq!((pacing(1), pacing(1).least), (share, Pacing::default().least));
    assert_eq!((pacing(2).rule, pacing(2).least), (PacingRule::Activity, 2_000_000));
    assert_eq!(pacing(4).rule, PacingRule::Depth(4));
    assert_eq!(layouts[2].settings.tie, Tie::NeverModify);
    assert_eq!(study.without_redundancy(), ["single", "raid0(2)"]);
    // Without redundancy only healthy cells; a rebuild alone for each other layout.
    let cells = cells(&study);
    assert_eq!(cells.len(), 6 + 4 + 4 + 4);
    let alone: Vec<_> = cells.iter().filter(|key| key.workload(&study).is_none()).collect();
    assert_eq!(alone.len(), 4);
    assert!(alone.iter().all(|key| key.processes == 0 && key.state == State::Rebuilding));
    assert_eq!(cell_title(&study, alone[0]), format!("{}, rebuild", names[1]));
}

#[test]
fn nested_levels() {
    let text = |layout: &str| {
        format!(
            "title = \"Nested\"\n[[drives]]\nname = \"nas\"\nmodel = \"nas-8tb-7200\"\n\
             count = 12\n[[layouts]]\n{layout}\n\
             [[workloads]]\nkind = \"dd-read\"\nsize = \"1GiB\"\n"
        )
    };
    let named = |layout: &str| {
        let study = parse(&text(layout), "my.toml").expect("good");
        (study.layouts[0].name.clone(), study.layouts[0].layout.drives())
    };
    for (keys, name, drives) in [
        ("level = \"raid50\"\nmembers = 6", "raid5+0(2x3)", 6),
        (
            "level = \"raid5+0\"\nmembers = 12\narrays = 3\nchunk = \"64KiB\"",
            "raid5+0(3x4) chunk=64K",
            12,
        ),
        (
            "level = \"raid60\"\nmembers = 8\nchunk = \"64KiB\"\nouter_chunk = \"1MiB\"\n\
             rotation = \"right-symmetric\"",
            "raid6+0(2x4) chunk=64K right-symmetric outer-chunk=1M",
            8,
        ),
        (
            "level = \"raid1+0\"\nmembers = 6\narrays = 3\nchunk = \"64KiB\"",
            "raid1+0(3x2) chunk=64K",
            6,
        ),
        ("level = \"raid0+10\"\nmembers = 8\narrays = 4\nfar = 2", "raid0+10(4x2) outer-far2", 8),
        ("level = \"raid10+0\"\nmembers = 8\nfar = 2\nfar_sets = 2", "raid10+0(2x4) far2 sets", 8),
        ("level = \"raid10+0\"\nmembers = 8\nfar = 2\nfar_sets = 0", "raid10+0(2x4) far2", 8),
        (
            "level = \"raid0+1\"\nmembers = 4\npolicy = \"least-busy\"",
            "raid0+1(2x2) policy=least-busy",
            4,
        ),
    ] {
        assert_eq!(named(keys), (name.to_string(), drives), "{keys}");
    }
    // What a study says for all layouts that have it, nested ones leave out.
    let study = text("level = \"raid50\"\nmembers = 6");
    let study = parse(&format!("consistency = \"bitmap\"\n{study}"), "my.toml");
    assert_eq!(study.expect("good").layouts[0].settings.consistency, Consistency::None);
    let bad = |layout: &str, words: &str| {
        let error = parse(&text(layout), "my.toml").expect_err(layout).to_string();
        assert!(error.contains(words), "{layout}: {error}");
    };
    bad(
        "level = \"raid50\"\nmembers = 7",
        "layouts.members: 7 drives cannot be 2 arrays of one size",
    );
    bad(
        "level = \"raid50\"\nmembers = 6\narrays = 1",
        "layouts.arrays: raid0 over arrays takes 2 to 127",
    );
    bad("level = \"raid50\"\nmembers = 14", "14 members need more drives than the 12");
    bad("level = \"raid50\"", "members");
    let bitmap = "level = \"raid50\"\nmembers = 6\nconsistency = \"bitmap\"";
    bad(bitmap, "nested levels keep no superblocks");
    bad("level = \"raid50\"\nmembers = 6\nfar = 2", "`far2` says nothing about raid5");
    bad("level = \"raid50\"\nmembers = 6\npolicy = \"md-2.6\"", "leave the policy out");
    let sets = |mode: u16| format!("level = \"raid10+0\"\nmembers = 8\nfar = 2\nfar_sets = {mode}");
    bad(&sets(1), "my.toml:10: layouts.far_sets: mode 1 of md may keep");
    bad(&sets(3), "layouts.far_sets: 3 is not a mode of far sets; 0 or 2");
}
