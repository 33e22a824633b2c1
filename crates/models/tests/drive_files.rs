//! Drive files: the ones compiled in, and what is wrong with bad ones.

use raidlab_core::Sectors;
use raidlab_models::{
    DriveKind, HardDiskSpec, ModelErrorKind as Kind, Status, builtin, load, parse,
};

#[test]
fn the_drives_compiled_in_are_right_and_sourced() {
    assert_eq!(builtin().len(), 2);
    for (name, text) in builtin() {
        let drive = load(name).unwrap();
        assert_eq!(drive.name, *name);
        assert!(!drive.title.is_empty());
        assert_eq!(drive.figures.len(), 18);
        assert!(drive.figures.iter().all(|figure| figure.source != "default of raidlab"));
        let DriveKind::HardDisk(spec) = &drive.kind;
        assert_eq!(spec.figures().capacity, drive.capacity);
        assert_eq!(*text, std::fs::read_to_string(path(name)).unwrap());
        assert_eq!(load(&path(name)).unwrap(), drive, "by path");
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
    builtin()[1].1.to_owned()
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
            value("link_rate", "mb_per_s = 33"),
            Kind::Contradiction,
            "link_rate",
            "slower link",
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
            "average_seek",
        ),
        ("kind", with("kind", "kind = \"drum\""), Kind::OutOfRange, "kind", "hard-disk"),
        ("title", with("title", "title = 8"), Kind::WrongType, "title", "string"),
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
    let DriveKind::HardDisk(spec) = load("pata-80gb-7200").unwrap().kind;
    let mut f = spec.figures().clone();
    (f.capacity, f.zones, f.segment) = (Sectors(200_000), 4, Sectors(200_001));
    let bad = HardDiskSpec::new(f.clone()).unwrap_err();
    assert_eq!((bad.key, bad.contradicts), ("segment_size", true), "{bad}");
    f.segment = Sectors(200_000);
    assert_eq!(HardDiskSpec::new(f.clone()).unwrap().figures(), &f);
}

#[test]
fn every_figure_without_a_default_is_missed() {
    let drive = load("pata-80gb-7200").unwrap();
    for figure in drive.figures {
        let text = with(figure.key, "");
        match figure.key {
            "zones" | "write_cache" | "write_extents" => {
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
    assert!(error.to_string().contains("nas-8tb-7200, pata-80gb-7200"), "{error}");
    let error = load("no/such/drive.toml").unwrap_err();
    assert_eq!(error.kind(), Kind::Unreadable);
    assert!(std::error::Error::source(&error).is_some());
    let error = parse("title = \"x\"\nkind = \n", "x.toml").unwrap_err();
    assert_eq!((error.kind(), error.line()), (Kind::Syntax, Some(2)));
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
