//! The pure parts of `cargo bench --bench originals`: parsing what programs print, and the table.
//!
//! The golden outputs were printed by bonnie++ 2.00a, dd of coreutils 9.1, fio 3.33 and `raidlab run`.

#[path = "../benches/originals/mounts.rs"]
mod mounts;
#[path = "../benches/originals/parse.rs"]
mod parse;
#[path = "../benches/originals/table.rs"]
mod table;

use std::path::Path;

use mounts::mounted;
use raidlab_results::statistics::Interval;
use table::{Row, Verdict};

const BONNIE: &str = include_str!("../benches/originals/golden/bonnie.csv");
const DD: &str = include_str!("../benches/originals/golden/dd.txt");
const FIO: &str = include_str!("../benches/originals/golden/fio.json");
const RAIDLAB: &str = include_str!("../benches/originals/golden/raidlab.json");

#[test]
fn bonnie_in_csv() {
    let figures = parse::bonnie(BONNIE).unwrap();
    assert_eq!(figures, [Some(45_590.0), Some(300_088.0), Some(1_060_158.0)]);
    let short = "1.98,2.00a,here,1,1,64M,,8,5,,,+++++,+++,7,+++,,,+++++,+++,+++++,+++,,,,\n";
    assert_eq!(parse::bonnie(short).unwrap(), [None, Some(7.0), None]);
    let missing = BONNIE.replace("300088", "");
    assert!(parse::bonnie(&missing).unwrap_err().contains("a rate"));
    assert!(parse::bonnie("1.98,2.00a").unwrap_err().contains("more cells"));
    assert!(parse::bonnie("usage:\n").unwrap_err().contains("usage:"));
}

#[test]
fn dd_by_bytes_and_seconds() {
    let figures = parse::dd(DD).unwrap();
    assert_eq!(figures, [Some(DD_BYTES / DD_SECONDS / 1_048_576.0)]);
    let small = "0+1 records in\n0+1 records out\n512 bytes copied, 0.5 s, 1.0 kB/s\n";
    assert_eq!(parse::dd(small).unwrap(), [Some(1024.0 / 1_048_576.0)]);
    assert!(parse::dd("512 bytes copied, 0 s, Infinity B/s\n").is_err());
    assert!(parse::dd("dd: failed to open 'x'\n").unwrap_err().contains("failed to open"));
}

const DD_BYTES: f64 = 16_777_216.0;
const DD_SECONDS: f64 = 0.022_163_1;

#[test]
fn fio_in_json() {
    assert_eq!(parse::fio(FIO, "read").unwrap(), [Some(FIO_IOPS)]);
    let noted = format!("fio: a note before the document\n{FIO}");
    assert_eq!(parse::fio(&noted, "read").unwrap(), [Some(FIO_IOPS)]);
    assert!(parse::fio(FIO, "write").unwrap_err().contains("iops above 0"), "nothing was written");
    let failed = FIO.replacen("\"error\" : 0", "\"error\" : 28", 1);
    assert!(parse::fio(&failed, "read").unwrap_err().contains("error 28"));
    assert!(parse::fio("", "read").unwrap_err().contains("JSON"));
}

const FIO_IOPS: f64 = 16395.604396;

#[test]
fn raidlab_in_json() {
    let metrics = ["rewrite_kps", "block_write_kps"];
    let ours = parse::ours(RAIDLAB, &metrics).unwrap();
    assert_eq!(ours.figures, [None, None], "phases of less than half a second are not told");
    assert!(ours.memory.starts_with("cold: synced"));
    assert_eq!(ours.warnings, [""; 0]);
    let told = RAIDLAB.replacen("\"warnings\": []", "\"warnings\": [\"beware\"]", 1);
    assert_eq!(parse::ours(&told, &[]).unwrap().warnings, ["beware"]);
    let rate = r#"{"values": [{"metric": "iops", "unit": "1/s", "value": 12.5}]}"#;
    assert_eq!(parse::ours(rate, &["iops"]).unwrap().figures, [Some(12.5)]);
    assert!(parse::ours(RAIDLAB, &["iops"]).unwrap_err().contains("the metric iops"));
}

#[test]
fn verdicts() {
    let of = |low, high| Verdict::of(Some(Interval { low, high, coverage: 0.97 }));
    assert_eq!(of(0.9, 1.1), Verdict::Within);
    assert_eq!(of(0.89, 1.0), Verdict::NotShown);
    assert_eq!(of(1.0, 1.11), Verdict::NotShown);
    assert_eq!(of(0.7, 0.8), Verdict::Outside);
    assert_eq!(of(0.3, 0.69), Verdict::Outside);
    assert_eq!(of(1.11, 2.0), Verdict::Outside);
    assert_eq!(of(0.89, 1.1), Verdict::NotShown);
    assert_eq!(of(0.5, 1.0), Verdict::NotShown);
    assert_eq!(Verdict::of(None), Verdict::TooFew);
}

#[test]
fn the_table() {
    let row = |name: &str, pairs: &[(f64, f64)]| Row {
        name: name.into(),
        unit: "1/s".into(),
        pairs: pairs.to_vec(),
        untold: 0,
    };
    let equal = [(1000.0, 1010.0), (1000.0, 990.0), (1200.0, 1200.0)];
    let slower = [(100.0, 60.0), (100.0, 61.0), (100.0, 62.0)];
    let rows = [
        row("equal", &[equal, equal].concat()),
        row("slower", &[slower, slower].concat()),
        Row { untold: 3, ..row("short", &equal) },
        row("nothing", &[]),
    ];
    let wanted = "\
| name    | unit |           pairs | original |  ours | ratio | 95 % interval  | verdict           |
|---------|------|----------------:|---------:|------:|------:|----------------|-------------------|
| equal   | 1/s  |               6 |     1000 |  1010 | 1.000 | 0.990 to 1.010 | within 0.9 to 1.1 |
| slower  | 1/s  |               6 |    100.0 | 61.00 | 0.610 | 0.600 to 0.620 | outside           |
| short   | 1/s  | 3 (3 too short) |     1000 |  1010 | 1.000 | -              | too few pairs     |
| nothing | 1/s  |               0 |        - |     - |     - | -              | too few pairs     |
";
    assert_eq!(table::table(&rows), wanted);
    assert_eq!(table::pairs(&rows[2..]), "short: 1000/1010 1000/990.0 1200/1200\nnothing:\n");
}

#[test]
fn the_filesystem_of_a_path() {
    let text = "\
21 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
30 21 0:5 / /mnt/a\\040b rw,nosuid shared:7 master:2 - tmpfs tmpfs rw,size=1k
31 21 0:6 / /mnt/a rw - xfs /dev/vdb rw
";
    let what = |path: &str| mounted(text, Path::new(path)).map(|mounted| mounted.what);
    assert_eq!(what("/srv/x").unwrap(), "ext4 on /dev/vda (rw,relatime; rw,discard)");
    assert_eq!(what("/mnt/a b/x").unwrap(), "tmpfs on tmpfs (rw,nosuid; rw,size=1k)");
    assert_eq!(what("/mnt/a/x").unwrap(), "xfs on /dev/vdb (rw; rw)");
    assert_eq!(what("/mnt/ab").unwrap(), "ext4 on /dev/vda (rw,relatime; rw,discard)");
    assert_eq!(mounted("", Path::new("/")), None);
}
