//! Drive files: the ones compiled in, and what is wrong with bad ones.

use raidlab_core::units::{Nanos, Sectors};
use raidlab_models::{
    Delivered, DriveKind, HardDiskFigures, HardDiskSpec, ModelErrorKind as Kind, ReadAhead, Status,
    Trigger, builtin, load, parse,
};

/// Figures of a hard disk that a drive file may leave to the default.
const DEFAULTS: [&str; 15] = [
    "rotation_tolerance",
    "zones",
    "write_cache",
    "write_extents",
    "read_ahead_limit",
    "read_ahead_in_order_only",
    "stays_a_track_ahead",
    "whole_track_reads",
    "keeps_delivered",
    "written_ranges",
    "sequential_hold",
    "immediate_report",
    "queue_depth",
    "queue_choice",
    "queue_age_limit",
];

#[test]
fn the_drives_compiled_in_are_right_and_sourced() {
    let directory = std::fs::read_dir(format!("{}/../../drives", env!("CARGO_MANIFEST_DIR")));
    assert_eq!(builtin().len(), directory.unwrap().count(), "every file is compiled in");
    for (name, text) in builtin() {
        let drive = load(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(drive.name, *name);
        assert!(!drive.title.is_empty());
        assert_eq!(*text, std::fs::read_to_string(path(name)).unwrap());
        assert_eq!(load(&path(name)).unwrap(), drive, "by path");
        let DriveKind::HardDisk(spec) = &drive.kind else { continue };
        assert_eq!(spec.figures().capacity, drive.capacity);
        for figure in &drive.figures {
            let given = figure.source != "default of raidlab";
            assert!(given || DEFAULTS.contains(&figure.key), "{name}: {}", figure.key);
            assert!(given || figure.status == Status::Estimate, "{name}: {}", figure.key);
        }
    }
    let nas = load("nas-8tb-7200").unwrap();
    assert_eq!(nas.capacity.bytes(), 8_001_563_222_016);
    let seek = nas.figures.iter().find(|figure| figure.key == "average_seek").unwrap();
    assert_eq!((seek.value.as_str(), seek.status), ("8.0 ms", Status::DataSheet));
}

fn path(name: &str) -> String {
    format!("{}/../../drives/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

fn good() -> String {
    std::fs::read_to_string(path("pata-80gb-7200")).unwrap()
}

/// The line of a key in the good file, from 1.
fn line_of(key: &str) -> usize {
    1 + good().lines().position(|line| line.starts_with(&format!("{key} = "))).unwrap()
}

/// The good file with the line of `key` replaced.
fn with(key: &str, line: &str) -> String {
    let replaced = |old: &str| {
        if old.starts_with(&format!("{key} = ")) { line.to_owned() } else { old.to_owned() }
    };
    good().lines().map(replaced).collect::<Vec<_>>().join("\n")
}

/// A value in place of the value of `key`.
fn value(key: &str, value: &str) -> String {
    with(key, &format!("{key} = {{ {value}, status = \"estimate\", source = \"a test\" }}"))
}

/// Key whose line is bad, the file, the kind, the key named, words of the remedy.
type Bad = (&'static str, String, Kind, &'static str, &'static str);

fn bad_files_0() -> Vec<Bad> {
    vec![
        ("rotation", value("rotation", "rpm = 0"), Kind::OutOfRange, "rotation", "1000 to 30000"),
        (
            "average_seek",
            value("average_seek", "ms = 1.9"),
            Kind::Contradiction,
            "average_seek",
            "track_to_track_seek (2 ms)",
        ),
        (
            "full_stroke_seek",
            value("full_stroke_seek", "ms = 8"),
            Kind::Contradiction,
            "full_stroke_seek",
            "average_seek (8.9 ms)",
        ),
        (
            "outer_rate",
            value("outer_rate", "mb_per_s = 29"),
            Kind::Contradiction,
            "outer_rate",
            "inner_rate (30 MB/s)",
        ),
        (
            "link_rate",
            value("link_rate", "mbit_per_s = 7"),
            Kind::OutOfRange,
            "link_rate",
            "from 1",
        ),
        ("capacity", value("capacity", "mib = 2"), Kind::Contradiction, "capacity", "cylinders"),
        (
            "capacity",
            value("capacity", "bytes = 80026361857"),
            Kind::OutOfRange,
            "capacity.bytes",
            "multiple of the sector",
        ),
        ("capacity", value("capacity", "kib = 100"), Kind::OutOfRange, "capacity", "from 1024 to"),
    ]
}

fn bad_files_1() -> Vec<Bad> {
    vec![
        (
            "segment_size",
            value("segment_size", "gib = 64"),
            Kind::OutOfRange,
            "segment_size",
            "from 4 to",
        ),
        ("heads", value("heads", "count = 2.5"), Kind::OutOfRange, "heads.count", "whole number"),
        ("heads", value("heads", "count = -2"), Kind::OutOfRange, "heads.count", "from 0 up"),
        ("heads", value("heads", "count = 1e300"), Kind::OutOfRange, "heads.count", "too large"),
        (
            "heads",
            value("heads", "count = \"4\""),
            Kind::WrongType,
            "heads.count",
            "decimal number",
        ),
        ("heads", value("heads", "ms = 4"), Kind::UnknownKey, "heads.ms", "`count`"),
        ("write_cache", value("write_cache", "on = 1"), Kind::WrongType, "write_cache.on", "true"),
        (
            "average_seek",
            value("average_seek", "ms = 9, us = 9000"),
            Kind::Contradiction,
            "average_seek.us",
            "twice",
        ),
    ]
}

fn bad_files_2() -> Vec<Bad> {
    vec![
        (
            "average_seek",
            value("average_seek", "seconds = 0.009"),
            Kind::UnknownKey,
            "average_seek.seconds",
            "`ms` or `us`",
        ),
        (
            "average_seek",
            value("average_seek", "ms = nan"),
            Kind::OutOfRange,
            "average_seek.ms",
            "number",
        ),
        (
            "average_seek",
            with("average_seek", "average_seek = 8.9"),
            Kind::WrongType,
            "average_seek",
            "must be a table, such as average_seek = { ms",
        ),
        (
            "average_seek",
            with("average_seek", "average_seek = { status = \"measured\", source = \"x\" }"),
            Kind::Missing,
            "average_seek",
            "`ms` or `us`",
        ),
        (
            "average_seek",
            with("average_seek", "average_seek = { ms = 9, source = \"x\" }"),
            Kind::Missing,
            "average_seek",
            "`status`",
        ),
        (
            "average_seek",
            with("average_seek", "average_seek = { ms = 9, status = \"measured\" }"),
            Kind::Missing,
            "average_seek",
            "`source`",
        ),
        (
            "average_seek",
            with("average_seek", "average_seek = { ms = 9, status = \"guess\", source = \"x\" }"),
            Kind::OutOfRange,
            "average_seek.status",
            "\"data sheet\", \"measured\", \"estimate\"",
        ),
        (
            "average_seek",
            with("average_seek", "average_seek = { ms = 9, status = \"estimate\", source = \"\" }"),
            Kind::WrongType,
            "average_seek.source",
            "where the figure comes from",
        ),
    ]
}

fn bad_files_3() -> Vec<Bad> {
    vec![
        (
            "average_seek",
            with("average_seek", "averageseek = { ms = 9 }"),
            Kind::UnknownKey,
            "averageseek",
            "unknown key (did you mean `average_seek`?); known here: title, kind, capacity, ",
        ),
        ("kind", with("kind", "kind = \"drum\""), Kind::OutOfRange, "kind", "hard-disk"),
        ("kind", with("kind", "kind = \"sdd\""), Kind::OutOfRange, "kind", "did you mean `ssd`?"),
        ("title", with("title", "title = 8"), Kind::WrongType, "title", "text in quotes"),
    ]
}

#[test]
fn bad_files_are_refused_with_line_key_and_remedy() {
    let cases = [bad_files_0(), bad_files_1(), bad_files_2(), bad_files_3()].concat();
    for (line, text, kind, key, remedy) in cases {
        let error = parse(&text, "some/drive.toml").expect_err(key);
        let shown = error.to_string();
        assert_eq!(error.kind(), kind, "{shown}");
        assert_eq!(error.key(), Some(key), "{shown}");
        assert_eq!(error.line(), Some(line_of(line)), "{shown}");
        assert!(error.reason().contains(remedy), "{shown}");
        let start = format!("some/drive.toml:{}: {key}: ", line_of(line));
        assert!(shown.starts_with(&start), "{shown}");
    }
}

#[test]
fn figures_made_by_hand_are_checked_too() {
    let DriveKind::HardDisk(spec) = load("pata-80gb-7200").unwrap().kind else { panic!() };
    let mut f = spec.figures().clone();
    (f.capacity, f.zones, f.segment) = (Sectors(200_000), 4, Sectors(200_001));
    let bad = HardDiskSpec::new(f.clone()).unwrap_err();
    assert_eq!((bad.key, bad.contradicts), ("segment_size", true), "{bad}");
    f.segment = Sectors(200_000);
    assert_eq!(HardDiskSpec::new(f.clone()).unwrap().figures(), &f);
}

#[test]
fn every_choice_of_the_firmware_comes_from_its_key() {
    let with = |key: &str, value: &str| {
        let line = format!("{key} = {{ {value}, status = \"estimate\", source = \"x\" }}\n");
        let others =
            good().lines().filter(|line| !line.starts_with(key)).collect::<Vec<_>>().join("\n");
        let DriveKind::HardDisk(spec) = parse(&format!("{others}\n{line}"), "x.toml").unwrap().kind
        else {
            panic!("{key}")
        };
        spec.figures().clone()
    };
    let DriveKind::HardDisk(plain) = parse(&good(), "x.toml").unwrap().kind else { panic!() };
    let changed = |change: fn(&mut HardDiskFigures)| {
        let mut figures = plain.figures().clone();
        change(&mut figures);
        figures
    };
    type Change = fn(&mut HardDiskFigures);
    let cases: [(&str, &str, Change); 11] = [
        ("read_ahead_limit", "kib = 64", |f| f.cache.most_ahead = Sectors(128)),
        ("read_ahead_in_order_only", "on = true", |f| f.cache.trigger = Trigger::Continued),
        ("stays_a_track_ahead", "on = true", |f| f.cache.read_ahead = ReadAhead::Stream),
        ("whole_track_reads", "on = true", |f| f.cache.whole_track = true),
        ("keeps_delivered", "on = true", |f| f.cache.delivered = Delivered::Kept),
        ("written_ranges", "count = 3", |f| f.cache.written_ranges = 3),
        ("sequential_hold", "kib = 32", |f| f.cache.hold = Sectors(64)),
        ("immediate_report", "on = true", |f| f.cache.immediate_report = true),
        ("queue_depth", "count = 31", |f| f.queue_depth = 31),
        ("queue_choice", "count = 5", |f| f.queue_choice = 5),
        ("queue_age_limit", "ms = 70", |f| f.queue_age_limit = Nanos(70_000_000)),
    ];
    for (key, value, change) in cases {
        assert_eq!(with(key, value), changed(change), "{key}");
        assert_ne!(with(key, value), *plain.figures(), "{key}");
    }
}

#[test]
fn nothing_is_reported_at_once_without_a_write_cache() {
    let off = value("write_cache", "on = false");
    let both = format!(
        "{off}\nimmediate_report = {{ on = true, status = \"estimate\", source = \"x\" }}\n"
    );
    let error = parse(&both, "x.toml").unwrap_err();
    assert_eq!((error.kind(), error.key()), (Kind::Contradiction, Some("immediate_report")));
    assert!(error.reason().contains("write_cache"), "{error}");
}

#[test]
fn every_figure_without_a_default_is_missed() {
    let drive = load("pata-80gb-7200").unwrap();
    for figure in drive.figures {
        let text = with(figure.key, "");
        match figure.key {
            key if DEFAULTS.contains(&key) => {
                let parsed = parse(&text, "x.toml").unwrap();
                let default = parsed.figures.iter().find(|one| one.key == figure.key).unwrap();
                assert_eq!(default.status, Status::Estimate);
                assert_eq!(default.source, "default of raidlab");
            }
            _ => {
                let error = parse(&text, "x.toml").unwrap_err();
                assert_eq!(error.kind(), Kind::Missing);
                assert_eq!(error.key(), Some(figure.key));
            }
        }
    }
}

#[test]
fn drives_that_are_not_there() {
    let error = load("nas-9tb").unwrap_err();
    assert_eq!(error.kind(), Kind::UnknownDrive);
    assert!(error.to_string().contains(" nas-8tb-7200, "), "{error}");
    let error = load("no/such/drive.toml").unwrap_err();
    assert_eq!(error.kind(), Kind::Unreadable);
    assert!(std::error::Error::source(&error).is_some());
    let error = parse("title = \"x\"\nkind = \n", "x.toml").unwrap_err();
    assert_eq!((error.kind(), error.line()), (Kind::Syntax, Some(2)));
}

#[test]
fn a_seek_curve_is_read_and_checked() {
    let file = |points: &str| {
        let curve = "status = \"measured\", source = \"a test\" }";
        format!("{}seek_curve = {{ points = {points}, {curve}\n", good())
    };
    let drive = parse(&file("[[1, 0.8], [100, 2], [30000, 9.5]]"), "x.toml").unwrap();
    let DriveKind::HardDisk(spec) = &drive.kind else { panic!() };
    let points = [(1, 800_000), (100, 2_000_000), (30_000, 9_500_000)];
    let points = points.map(|(cylinders, time)| (cylinders, Nanos(time)));
    assert_eq!(spec.figures().seek_points, points);
    let figure = drive.figures.last().unwrap();
    assert_eq!((figure.key, figure.status), ("seek_curve", Status::Measured));
    for (points, kind, key, remedy) in [
        ("[[100, 2], [1, 0.8]]", Kind::Contradiction, "seek_curve", "ascending distance"),
        ("[[1, 0.8]]", Kind::Contradiction, "seek_curve", "two points or more"),
        ("[[0, 0.8], [4, 1]]", Kind::Contradiction, "seek_curve", "from 1 cylinder up"),
        ("[[1, 0], [4, 1]]", Kind::Contradiction, "seek_curve", "0.001 to 1000 ms"),
        ("[[1, -1], [4, 1]]", Kind::WrongType, "seek_curve.points", "[cylinders, ms]"),
        ("[[1], [4, 1]]", Kind::WrongType, "seek_curve.points", "[cylinders, ms]"),
        ("7", Kind::WrongType, "seek_curve.points", "[cylinders, ms]"),
    ] {
        let error = parse(&file(points), "x.toml").unwrap_err();
        assert_eq!((error.kind(), error.key()), (kind, Some(key)), "{error}");
        assert_eq!(error.line(), Some(good().lines().count() + 1), "{error}");
        assert!(error.reason().contains(remedy), "{error}");
    }
}

/// Any text gives a drive or an error.
#[test]
fn damaged_files_never_panic() {
    let text = good();
    for cut in (0..text.len()).step_by(7) {
        let _ = parse(&text[..cut], "x.toml");
        let mut damaged = text.clone().into_bytes();
        damaged[cut] = b"0={}\"x-9"[cut % 8];
        if let Ok(damaged) = String::from_utf8(damaged) {
            let _ = parse(&damaged, "x.toml");
        }
    }
}
