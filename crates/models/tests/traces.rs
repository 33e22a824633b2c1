//! Modelled drives against measured ones, and what is wrong with bad traces.
//!
//! The traces are not part of this project: `RAIDLAB_TRACES` says where they lie, by default
//! `../shared/traces` beside the project. Without them the tests that need them say so and pass.

use std::io::Write as _;
use std::path::PathBuf;

use raidlab_core::units::{Nanos, Sector};
use raidlab_models::trace::{
    Detail, Measured, Parameters, compare, parse_parameters, parse_requests, replay, validate,
};
use raidlab_models::{DriveKind, DriveOp, ModelErrorKind as Kind, load};

const DRIVES: [&str; 5] = ["cheetah9LP", "atlas10k", "barracuda", "atlas_III", "hp_c3323a"];

/// Where the traces are; says so if they are not.
fn traces_or_skip(test: &str) -> Option<PathBuf> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces");
    let path = std::env::var_os("RAIDLAB_TRACES").map_or(PathBuf::from(default), PathBuf::from);
    if path.join("cheetah9LP.trace").is_file() {
        return Some(path);
    }
    // Written past the test harness, which would keep the output of a test that passes.
    let line = format!("skipped: {test}: no traces at {} (RAIDLAB_TRACES)\n", path.display());
    std::io::stderr().write_all(line.as_bytes()).expect("standard error is open");
    None
}

fn measured(directory: &std::path::Path, name: &str) -> (Parameters, Vec<Measured>) {
    let text = |kind: &str| {
        let path = directory.join(format!("{name}.{kind}"));
        (std::fs::read_to_string(&path).unwrap(), path.display().to_string())
    };
    let (toml, path) = text("toml");
    let parameters = parse_parameters(&toml, &path).unwrap_or_else(|error| panic!("{error}"));
    let (trace, path) = text("trace");
    let capacity = parameters.spec(Detail::Full).figures().capacity.0;
    let requests = parse_requests(&trace, &path, capacity).unwrap();
    (parameters, requests)
}

#[test]
fn modelled_drives_come_as_near_as_promised() {
    let Some(path) = traces_or_skip("modelled_drives_come_as_near_as_promised") else { return };
    let mut as_good = 0;
    for name in DRIVES {
        let (parameters, requests) = measured(&path, name);
        assert_eq!(requests.len(), parameters.requests);
        let full = compare(parameters.spec(Detail::Full), &requests, 1);
        let sheet = compare(parameters.spec(Detail::Sheet), &requests, 1);
        let disksim = parameters.disksim_percent();
        println!(
            "{name:11} {:5.2} % ({:5.2} % by sheet), DiskSim {disksim:4.2} %",
            full.demerit_percent, sheet.demerit_percent
        );
        assert!((full.measured_mean_ms - parameters.mean_response_ms).abs() < 0.001, "{name}");
        assert!(full.demerit_percent <= 6.0, "{name}: {full:?}");
        assert!(sheet.demerit_percent <= 8.0, "{name}: {sheet:?}");
        // What it has come to; not to be lost again.
        assert!(full.demerit_percent <= 2.6, "{name}: {full:?}");
        assert!(sheet.demerit_percent <= 3.8, "{name}: {sheet:?}");
        assert!(full.mean_error_percent.abs() < 1.0, "{name}: {full:?}");
        let hits = full.modelled_read_hits_percent - full.measured_read_hits_percent;
        assert!(hits.abs() < 2.0, "{name}: {full:?}");
        as_good += u32::from(full.demerit_percent <= disksim);
    }
    assert_eq!(as_good, 5, "at or under the demerit of DiskSim");
}

#[test]
fn the_seed_hardly_matters() {
    let Some(path) = traces_or_skip("the_seed_hardly_matters") else { return };
    let (parameters, requests) = measured(&path, "atlas10k");
    let of = |seed| compare(parameters.spec(Detail::Sheet), &requests, seed).demerit_percent;
    assert!((1..6).all(|seed| (of(seed) - of(0)).abs() < 0.1));
}

#[test]
fn validate_finds_parameters_beside_a_trace_and_drives_compiled_in() {
    let name = "validate_finds_parameters_beside_a_trace_and_drives_compiled_in";
    let Some(path) = traces_or_skip(name) else { return };
    let trace = path.join("barracuda.trace").display().to_string();
    let report = validate("barracuda", &trace, 1).unwrap();
    assert_eq!(report.title, "Seagate Barracuda ST32171W");
    assert!(report.drive.ends_with("barracuda.toml"));
    assert!((report.disksim_percent.unwrap() - 5.24).abs() < 0.01);
    assert!(report.sheet.is_some() && report.full.requests == 10_000);
    let toml = path.join("barracuda.toml").display().to_string();
    assert_eq!(validate(&toml, &trace, 1).unwrap().full, report.full);
    // Another drive fits badly, and says so.
    let other = validate("pata-80gb-7200", &trace, 1).unwrap();
    assert!(other.full.demerit_percent > 20.0 && other.sheet.is_none(), "{other:?}");
    let error = validate("atlas", &trace, 1).unwrap_err();
    assert_eq!(error.kind(), Kind::UnknownDrive);
    assert!(error.to_string().contains("pata-80gb-7200"), "{error}");
}

#[test]
fn missing_files_are_named() {
    let error = validate("pata-80gb-7200", "no/such.trace", 1).unwrap_err();
    assert_eq!((error.kind(), error.path()), (Kind::Unreadable, "no/such.trace"));
}

#[test]
fn bad_traces_are_refused_with_line_and_column() {
    const GOOD: &str = "W Hit 4583176 4 663.0 45422.0\nR Miss 0 8 1000 0\n";
    let requests = parse_requests(GOOD, "x.trace", 5_000_000).unwrap();
    let first = Measured {
        op: DriveOp::Write,
        at: Sector(4_583_176),
        len: 4,
        response: Nanos(663_000),
        delay: Nanos(45_422_000),
    };
    assert_eq!((requests.len(), requests[0]), (2, first));
    for (line, kind, key, remedy) in [
        ("R Hit 0 8 -1.0 5", Kind::OutOfRange, "response time", "from 0 to 60000000 microseconds"),
        ("R Hit 0 8 1.0 -5", Kind::OutOfRange, "delay", "from 0 to 60000000 microseconds"),
        ("R Hit 0 8 nan 5", Kind::OutOfRange, "response time", "not nan"),
        ("R Hit 0 8 1e300 5", Kind::OutOfRange, "response time", "from 0"),
        ("R Hit 4999996 8 1.0 5", Kind::OutOfRange, "first sector", "holds 5000000 sectors"),
        ("R Hit 18446744073709551615 8 1 5", Kind::OutOfRange, "first sector", "beyond the drive"),
        ("R Hit -8 8 1.0 5", Kind::WrongType, "first sector", "whole number of sectors"),
        ("R Hit 0 0 1.0 5", Kind::OutOfRange, "sectors", "from 1 to 65536"),
        ("X Hit 0 8 1.0 5", Kind::OutOfRange, "operation", "R or W"),
        ("R Hit 0 8 1.0", Kind::Syntax, "line", "6 columns"),
        ("R Hit 0 8 1.0 5 6", Kind::Syntax, "line", "not 7"),
    ] {
        let text = format!("{GOOD}\n{line}\n{GOOD}");
        let error = parse_requests(&text, "some/x.trace", 5_000_000).expect_err(line);
        assert_eq!((error.kind(), error.key()), (kind, Some(key)), "{error}");
        assert_eq!(error.line(), Some(4), "{error}");
        assert!(error.to_string().starts_with("some/x.trace:4: "), "{error}");
        assert!(error.reason().contains(remedy), "{error}");
    }
    let error = parse_requests("\n", "x.trace", 5_000_000).unwrap_err();
    assert_eq!(error.kind(), Kind::Missing);
}

/// A drive with every key that a measured one has.
const PARAMETERS: &str = include_str!("parameters.toml");

fn line_of(key: &str) -> usize {
    1 + PARAMETERS.lines().position(|line| line.starts_with(&format!("{key} = "))).unwrap()
}

fn with(key: &str, value: &str) -> String {
    let replaced = |line: &str| {
        let this = line.starts_with(&format!("{key} = "));
        if this { format!("{key} = {value}") } else { line.to_owned() }
    };
    PARAMETERS.lines().map(replaced).collect::<Vec<_>>().join("\n")
}

#[test]
fn bad_parameters_are_refused_with_line_and_key() {
    let good = parse_parameters(PARAMETERS, "x.toml").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(good.title, "A drive of round figures");
    let (full, sheet) = (good.spec(Detail::Full).figures(), good.spec(Detail::Sheet).figures());
    assert_eq!((full.zone_table.len(), full.seek_points.len()), (2, 5));
    // By sheet there are three points and two rates: of 320 and 280 sectors a turn, less switches.
    assert!(sheet.zone_table.is_empty() && sheet.seek_points.is_empty());
    let points = [sheet.track_to_track, sheet.average_seek, sheet.full_stroke];
    assert_eq!(points, [900_000, 5_000_000, 11_000_000].map(Nanos));
    let turns = 4.0 / (4.0 + (3.0 * 0.5 + 0.9) * 0.12);
    for (rate, sectors) in [(sheet.outer_rate, 320.0), (sheet.inner_rate, 280.0)] {
        let expected = sectors * 512.0 * 120.0 * turns;
        assert!((rate as f64 / expected - 1.0).abs() < 1e-4, "{rate} against {expected}");
    }
    let seek = "[[2, 1.0], [1, 0.9]]";
    for (key, value, kind, remedy) in [
        ("rpm", "0", Kind::OutOfRange, "from 1000 to 30000"),
        ("rpm", "\"fast\"", Kind::WrongType, "a number"),
        ("blocks", "9000000", Kind::Contradiction, "do not fit zones"),
        ("blocks", "500000", Kind::Contradiction, "a track of each cylinder"),
        ("blocks", "2400000.5", Kind::OutOfRange, "whole number"),
        ("segments", "-1", Kind::OutOfRange, "from 1 to 256"),
        ("bus_ms_per_sector", "0", Kind::OutOfRange, "from 0.00001"),
        ("buffer_continuous_read", "5", Kind::OutOfRange, "from 0 to 4"),
        ("readahead_trigger", "\"sometimes\"", Kind::OutOfRange, "\"every read\""),
        ("title", "7", Kind::WrongType, "a text in quotes"),
        ("zones", "[]", Kind::Missing, "at least one row"),
        ("zones", "[[0, 9, 100, 10]]", Kind::WrongType, "rows [first cylinder"),
        ("zones", "[[0, 9, 100, 100, 10]]", Kind::Contradiction, "skews are less"),
        ("zones", "[[9, 0, 100, 10, 10]]", Kind::Contradiction, "zones must ascend"),
        ("seek", seek, Kind::Contradiction, "ascending distance"),
        ("seek", "[[1, -1.0], [2, 3.0]]", Kind::WrongType, "rows [cylinders, ms]"),
        ("overhead_read_hit_after_read_ms", "-0.1", Kind::OutOfRange, "from 0 to 100"),
    ] {
        let error = parse_parameters(&with(key, value), "some/x.toml").expect_err(key);
        assert_eq!((error.kind(), error.key()), (kind, Some(key)), "{error}");
        assert_eq!(error.line(), Some(line_of(key)), "{error}");
        assert!(error.reason().contains(remedy), "{error}");
    }
    let error = parse_parameters(&format!("{PARAMETERS}\nrmp = 5400\n"), "x.toml").unwrap_err();
    assert_eq!((error.kind(), error.key()), (Kind::UnknownKey, Some("rmp")));
    let error = parse_parameters("title = \n", "x.toml").unwrap_err();
    assert_eq!((error.kind(), error.line()), (Kind::Syntax, Some(1)));
}

#[test]
fn every_parameter_is_missed() {
    let keys = PARAMETERS.lines().filter_map(|line| line.split_once(" = ").map(|(key, _)| key));
    for key in keys {
        let without: Vec<_> =
            PARAMETERS.lines().filter(|line| !line.starts_with(&format!("{key} = "))).collect();
        let error = parse_parameters(&without.join("\n"), "x.toml").expect_err(key);
        assert_eq!((error.kind(), error.key()), (Kind::Missing, Some(key)), "{error}");
    }
}

/// Any text gives a drive or an error.
#[test]
fn damaged_files_never_panic() {
    for cut in 0..PARAMETERS.len() {
        let mut damaged = PARAMETERS.as_bytes().to_vec();
        damaged[cut] = b"0=[{9\"-."[cut % 8];
        if let Ok(text) = String::from_utf8(damaged)
            && let Ok(parameters) = parse_parameters(&text, "x.toml")
        {
            let request = "R Hit 7 8 1000 1000\nW Hit 15 8 1000 1000\nR Hit 15 8 1000 1000\n";
            let capacity = parameters.spec(Detail::Full).figures().capacity.0;
            let requests = parse_requests(request, "x.trace", capacity).unwrap();
            for detail in [Detail::Full, Detail::Sheet] {
                compare(parameters.spec(detail), &requests, 1);
            }
        }
    }
}

/// The loop is closed: what the model takes too long moves all that follows.
#[test]
fn each_request_waits_for_the_one_before() {
    let DriveKind::HardDisk(spec) = load("pata-80gb-7200").unwrap().kind else { panic!() };
    let request = |at, delay| Measured {
        op: DriveOp::Read,
        at: Sector(at),
        len: 128,
        response: Nanos(5_000_000),
        delay: Nanos(delay),
    };
    // In order and without a pause the medium sets the pace. After a pause there are only hits.
    let requests: Vec<_> = (0..100).map(|n| request(n * 128, 0)).collect();
    let hit = spec.figures().command_overhead.0 + 65_536_000_000_000 / spec.figures().link_rate;
    let times = replay(&spec, &requests, 1);
    let mean = times.iter().map(|time| time.0).sum::<u64>() / 100;
    assert!(mean > hit + hit / 5, "{mean} and {hit}");
    let paused: Vec<_> = (0..100).map(|n| request(n * 128, 50_000_000)).collect();
    let times = replay(&spec, &paused, 1);
    assert!(times[1..].iter().all(|time| time.0 <= hit + 10), "{times:?}");
    let score = compare(&spec, &paused, 1);
    assert_eq!((score.requests, score.measured_read_hits_percent), (100, 0.0));
    assert_eq!(score.modelled_read_hits_percent, 99.0);
    assert_eq!(score.measured_mean_ms, 5.0);
}

#[test]
fn a_model_that_is_the_measurement_has_no_demerit() {
    let DriveKind::HardDisk(spec) = load("pata-80gb-7200").unwrap().kind else { panic!() };
    let mut requests: Vec<_> = (0..200u64)
        .map(|n| Measured {
            op: if n % 3 == 0 { DriveOp::Write } else { DriveOp::Read },
            at: Sector(n * 7_919_113 % 150_000_000),
            len: 8,
            response: Nanos(0),
            delay: Nanos(20_000_000),
        })
        .collect();
    let times = replay(&spec, &requests, 1);
    for (request, time) in requests.iter_mut().zip(&times) {
        request.response = *time;
    }
    let score = compare(&spec, &requests, 1);
    assert_eq!((score.demerit_ms, score.mean_error_percent), (0.0, 0.0));
    assert_eq!((score.p50_ratio, score.p95_ratio, score.p99_ratio), (1.0, 1.0, 1.0));
    // A millisecond off at every rank is a demerit of a millisecond.
    for request in &mut requests {
        request.response = Nanos(request.response.0 + 1_000_000);
    }
    let score = compare(&spec, &requests, 1);
    assert!((score.demerit_ms - 1.0).abs() < 1e-9, "{score:?}");
    let percent = 100.0 / score.measured_mean_ms;
    assert!((score.demerit_percent - percent).abs() < 1e-9, "{score:?}");
    assert!((score.mean_error_percent + percent).abs() < 1e-9, "{score:?}");
}
