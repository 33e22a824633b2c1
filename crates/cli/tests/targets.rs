//! Every kind of workload on every target it can run on, small; and the reason where it cannot.

mod table;

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use crate::extent::Extent;
use crate::guest::{TempDir, guest_or_skip};
use crate::root::{can_mount, traces};
use crate::support::{Ran, Scratch, command, names, raidlab};
use raidlab_workload::{Parameters, make};
use serde_json::Value;
use table::{Below, Row, TABLE, TARGETS, VARIANTS};

/// Mounted runs take about a second each.
const MOUNTED_SAMPLE: usize = 7;
/// Real runs wait for disks most of the time.
const AT_ONCE: usize = 4;

/// What a run must tell of its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Members {
    /// There are none.
    No,
    /// Below a filesystem, which keeps things in memory.
    BelowMemory,
    /// Without anything in between.
    Bare,
}

fn members_of(target: &str) -> Members {
    match target {
        "null" | "DIR" => Members::No,
        "modelled" | "mounted:DIR" | "md:DIR" => Members::BelowMemory,
        _ => Members::Bare,
    }
}

fn arguments<'a>(row: &'a Row, target: &'a str) -> Vec<&'a str> {
    let mut arguments = vec!["run", row.kind];
    arguments.extend(row.parameters.split(' '));
    arguments.extend(["--target", target, "--json", "-"]);
    if target.contains(':') || target.starts_with("modelled") {
        arguments.extend(["--layout", "raid1(2)"]);
    }
    arguments
}

/// Runs a workload in a directory of its own, and looks whether it is empty afterwards.
fn ran(row: &Row, target: &str) -> Ran {
    let scratch = Scratch::new(&format!("{}-{}", row.name(), target.replace(':', "-")));
    let (on, elsewhere) = (scratch.directory("on"), scratch.directory("elsewhere"));
    let named = target.replace("DIR", on.to_str().expect("text"));
    let mut command = command();
    command.args(arguments(row, &named)).current_dir(&elsewhere).env("TMPDIR", &elsewhere);
    let ran: Ran = command.output().expect("the binary runs").into();
    let left = [names(&on), names(&elsewhere), traces(scratch.path())].concat();
    assert!(left.is_empty(), "{} on {target} left {left:?}", row.kind);
    ran
}

/// Checks what a run printed.
fn check(row: &Row, target: &str, printed: &str) {
    let title = format!("{} on {target}:\n{printed}", row.kind);
    let document: Value = serde_json::from_str(printed).expect(&title);
    assert_eq!(document["schema_version"], 1, "{title}");
    assert_eq!(document["workload"], row.kind, "{title}");
    let is_virtual = target == "null" || target.starts_with("modelled");
    assert_eq!(document["clock"], if is_virtual { "virtual" } else { "real" }, "{title}");
    check_values(row, &document, &title);
    let phases = document["phases"].as_array().expect(&title);
    let found: Vec<&str> = phases.iter().filter_map(|phase| phase["name"].as_str()).collect();
    let expected: Vec<&str> = row.phases.split_whitespace().collect();
    assert_eq!(found, expected.iter().map(|name| plain(name)).collect::<Vec<_>>(), "{title}");
    for (phase, expected) in phases.iter().zip(expected) {
        let took = phase["seconds"].as_f64();
        let is_timed = took.is_some_and(|seconds| seconds > 0.0);
        assert!(is_timed || expected != plain(expected), "{expected}: {title}");
    }
    assert!(document["last_done_s"].as_f64().is_some_and(|seconds| seconds > 0.0), "{title}");
    let asked = |what: &str| document["members"][what].as_u64().unwrap_or(0) > 0;
    let counted = !document["members"].is_null();
    match (members_of(target), row.below) {
        (Members::No, _) => assert!(!counted, "{title}"),
        (Members::Bare, _) => {
            assert!(asked("bytes_read") || asked("bytes_written"), "{title}");
        }
        (_, Below::Reads) => assert!(asked("reads") && asked("bytes_read"), "{title}"),
        (_, Below::Writes) => assert!(asked("writes") && asked("bytes_written"), "{title}"),
        (_, Below::Memory) => assert!(counted, "{title}"),
    }
}

/// A name of the table without its brackets.
fn plain(name: &str) -> &str {
    name.trim_matches(['(', ')'])
}

/// All metrics are there, and more than nothing unless they may be less.
fn check_values(row: &Row, document: &Value, title: &str) {
    let values = document["values"].as_array().expect(title);
    let metrics: Vec<&str> = row.metrics.split_whitespace().collect();
    assert_eq!(values.len(), metrics.len(), "{title}");
    for (value, metric) in values.iter().zip(metrics) {
        let name = plain(metric);
        assert_eq!(value["metric"], name, "{title}");
        let figure = value["value"].as_f64();
        let is_right = if name == metric {
            figure.is_some_and(|figure| figure > 0.0)
        } else {
            figure.is_none_or(|figure| figure >= 0.0)
        };
        assert!(is_right, "{metric} is {figure:?}: {title}");
    }
}

/// Runs rows on targets, some at once: what can be gives figures, what cannot is refused with its reason.
fn run_all(rows: &[&Row], targets: &[&str]) {
    let pairs = rows.iter().flat_map(|row| targets.iter().map(move |target| (*row, *target)));
    let left = Mutex::new(pairs.collect::<Vec<_>>());
    let next = || left.lock().expect("no panic while locked").pop();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((row, target)) = next() {
                    let ran = ran(row, target);
                    let has_names = TARGETS.iter().any(|(name, names)| *name == target && *names);
                    match row.not_raw.filter(|_| !has_names) {
                        Some(why) => ran.refused(&[why, "needs a filesystem", row.kind]),
                        None => check(row, target, &ran.good().stdout),
                    }
                }
            });
        }
    });
}

fn all() -> Vec<&'static Row> {
    TABLE.iter().chain(VARIANTS).collect()
}

#[test]
fn every_kind_that_is_listed_is_in_the_table() {
    let listed = raidlab(["run", "--list"]).good().stdout;
    let listed: Vec<&str> =
        listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let rows: Vec<&str> = TABLE.iter().map(|row| row.kind).collect();
    assert_eq!(listed, rows, "give a new kind its row in targets/table.rs and docs/workloads.md");
}

#[test]
fn without_a_disk() {
    run_all(&all(), &["null", "modelled", "modelled-raw", "raw:memory"]);
}

#[test]
fn in_a_directory() {
    run_all(&all(), &["DIR"]);
}

#[test]
fn on_member_files() {
    run_all(&all(), &["raw:DIR"]);
}

#[test]
fn on_mounted_arrays() {
    if can_mount("on_mounted_arrays", &["mkfs.ext4", "e2fsck"]) {
        let rows = Extent::from_environment().choose(all(), MOUNTED_SAMPLE);
        run_all(&rows, &["mounted:DIR"]);
    }
}

#[test]
fn a_host_without_md_says_so() {
    if !can_mount("a_host_without_md_says_so", &["mkfs.ext4", "e2fsck", "mdadm"]) {
        return;
    }
    if Path::new("/proc/mdstat").exists() {
        return;
    }
    for row in TABLE.iter().take(1) {
        ran(row, "md:DIR").refused(&["this kernel has no md driver", "CONFIG_BLK_DEV_MD"]);
    }
}

/// The script of the guest: each kind, its exit status, and what it left.
fn guest_script() -> String {
    // Member files need a filesystem with direct I/O: one on the guest's disk.
    let mut script = "set -e
        busybox insmod $(find /usr/lib/uml/modules -name loop.ko | head -n 1)
        mkfs.ext4 -q -F /dev/ubda
        mkdir /tmp/place
        mount -t ext4 /dev/ubda /tmp/place
        mkdir /tmp/place/work
        set +e\n"
        .to_string();
    for row in TABLE {
        let arguments = arguments(row, "md:/tmp/place/work");
        let quoted: Vec<String> = arguments.iter().map(|word| format!("'{word}'")).collect();
        script.push_str(&format!(
            "$SHARE/raidlab {} >$SHARE/{kind}.json 2>$SHARE/{kind}.err
            {{ echo $? $(ls -A /tmp/place/work); grep /tmp/place/ /proc/mounts
            cat /sys/block/loop*/loop/backing_file; grep active /proc/mdstat; }} \
            >$SHARE/{kind}.left 2>/dev/null\n",
            quoted.join(" "),
            kind = row.kind,
        ));
    }
    script + "umount /tmp/place\n"
}

#[test]
fn on_arrays_of_the_kernels_md() {
    let Some(guest) = guest_or_skip("on_arrays_of_the_kernels_md") else { return };
    let directory = TempDir::new("targets-md");
    let disk = directory.file("disk", 1 << 30);
    let share = directory.path().join("share");
    fs::create_dir(&share).expect("a directory");
    fs::copy(env!("CARGO_BIN_EXE_raidlab"), share.join("raidlab")).expect("a copy");
    guest.limit(400).run(&guest_script(), &[disk], &share).expect_success("the guest");
    for row in TABLE {
        let told = |end: &str| {
            fs::read_to_string(share.join(format!("{}.{end}", row.kind))).expect("a file")
        };
        assert_eq!((told("left").trim(), &*told("err")), ("0", ""), "{}", row.kind);
        check(row, "md:DIR", &told("json"));
    }
}

/// The document's table, and for each kind its parameters, formats and metrics, are the program's.
#[test]
fn the_document_says_the_same() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/workloads.md");
    let document = fs::read_to_string(&path).expect("docs/workloads.md");
    let table = table::as_markdown();
    assert!(document.contains(&table), "docs/workloads.md must have this table:\n{table}");
    // Lines are broken for people.
    let words = document.split_whitespace().collect::<Vec<_>>().join(" ");
    let list: Value = serde_json::from_str(&raidlab(["run", "--list", "--json"]).good().stdout)
        .expect("a list in JSON");
    for (kind, row) in list["kinds"].as_array().expect("kinds").iter().zip(TABLE) {
        assert_eq!(kind["kind"], row.kind);
        let section = words.split(&format!("### {} ", row.kind)).nth(1).expect(row.kind);
        let section = section.split(" ### ").next().expect("a section");
        let parameters = kind["parameters"].as_str().expect("text");
        assert!(section.contains(&format!("`{parameters}`")), "{}: `{parameters}`", row.kind);
        let pairs = row.parameters.split(' ').filter_map(|pair| pair.split_once('='));
        let workload = make(row.kind, Parameters::new(pairs).expect("pairs")).expect(row.kind);
        for format in workload.formats() {
            assert!(section.contains(&format!("`{format}`")), "{}: {format}", row.kind);
        }
        for metric in row.metrics.split_whitespace() {
            let metric = plain(metric);
            assert!(section.contains(&format!("`{metric}`")), "{}: {metric}", row.kind);
        }
    }
}

/// What `compare --size` does: each workload moves as much as it is told to.
#[test]
fn every_kind_takes_the_size_it_is_given() {
    let room = |row: &Row, bytes: u64| {
        let pairs = row.parameters.split(' ').filter_map(|pair| pair.split_once('='));
        let workload = make(row.kind, Parameters::new(pairs).expect("pairs")).expect(row.kind);
        let resized = workload.resized(bytes).expect(row.kind);
        let plan = resized.plan(&raidlab_workload::Setting::new(1, 1)).expect(row.kind);
        (plan.room, resized.description() == workload.description())
    };
    for row in TABLE {
        let ((small, _), (large, is_same)) = (room(row, 8 << 20), room(row, 64 << 20));
        // Random places lie in a file of the span; hdparm does not tell the size.
        let is_random = row.kind.starts_with("random-");
        assert!(row.kind.starts_with("hdparm") || !is_same, "{}: the same words", row.kind);
        let ratio = large as f64 / small as f64;
        assert!(is_random || (7.0..=9.0).contains(&ratio), "{}: {small} {large}", row.kind);
    }
}
