//! What a study file does not say is what docs/study-files.md says of it, and no table takes a key that is not its own.

use raidlab_core::Sectors;
use raidlab_models::WritePolicy;
use raidlab_study::{State, Study, StudyErrorKind, Sweep, cells, parse};

/// As little as a study can say.
const LEAST: &str = r#"
title = "Least"
[[drives]]
name = "disks"
model = "nas-8tb-7200"
count = 4
[[drives]]
name = "one"
model = "nas-8tb-7200"
[[layouts]]
level = "raid10"
members = 4
[[layouts]]
level = "raid5"
members = 3
[[workloads]]
kind = "dd-write"
size = "6MiB"
[[given]]
layout = "raid5(3)"
workload = "dd-write 6MiB"
metric = "mib_per_s"
value = 100.0
"#;

fn study(text: &str) -> Study {
    parse(text, "t.toml").unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn what_is_not_said_is_as_documented() {
    let least = study(LEAST);
    assert_eq!((least.seed, least.rounds, least.max_rounds), (1, 6, 6));
    assert_eq!(least.precision_percent, 5.0);
    assert_eq!(least.baseline, ["raid10(4)"], "the first layout");
    assert_eq!((&least.processes[..], &least.states[..]), (&[1][..], &[State::Healthy][..]));
    assert_eq!(
        (least.member_size, least.filesystem.as_ref(), least.host.as_ref()),
        (None, None, None)
    );
    assert_eq!(least.drives[1].count, 1);
    assert_eq!(least.drives[0].scheduler, None);
    let [mirror, parity] = &least.layouts[..] else { panic!("two layouts") };
    assert_eq!((mirror.layout.near, mirror.layout.far, mirror.layout.offset), (2, 1, false));
    assert_eq!([mirror, parity].map(|one| one.layout.chunk.bytes()), [512 << 10; 2]);
    assert_eq!(parity.layout.rotation.name(), "left-symmetric");
    assert_eq!((parity.spares, parity.group_threads, parity.settings.cached_stripes), (0, 0, 0));
    assert_eq!(
        (parity.settings.pacing.least, parity.settings.pacing.most),
        (1_024_000, 204_800_000)
    );
    let given = &least.given[0];
    assert_eq!((given.processes, given.calibrated, given.fit), (1, false, true));
    assert_eq!(least.workloads[0].name, "dd-write 6MiB", "kind and block");
    // Of the rounds only one is said.
    let more = study(&LEAST.replace("title", "rounds = 9\ntitle"));
    assert_eq!((more.rounds, more.max_rounds), (9, 9));
    let most = study(&LEAST.replace("title", "max_rounds = 9\ntitle"));
    assert_eq!((most.rounds, most.max_rounds), (6, 9));
}

/// A key that nothing reads would be a setting that does nothing.
#[test]
fn no_table_takes_a_key_that_it_does_not_have() {
    let whole = r#"
title = "Whole"
filesystem = "ext4"
pacing = { least = "1MB/s" }
host = { kernel = "linux-2.6.12" }
[calibration]
raidlab = "1"
cells = 1
parameters = 1
seeds = 1
evaluations = 1
median_error_before = "2%"
median_error = "1%"
[[paths]]
name = "ide"
kind = "pata-udma100"
[[drives]]
name = "disks"
model = "nas-8tb-7200"
count = 4
[[layouts]]
level = "raid1"
members = 2
route = ["ide"]
[layouts.host]
kernel = "linux-2.6.20"
[layouts.pacing]
most = "9MB/s"
[[workloads]]
kind = "dd-write"
size = "6MiB"
[[given]]
layout = "raid1(2)"
workload = "dd-write 6MiB"
metric = "mib_per_s"
value = 100.0
[[parameters]]
of = "path ide"
property = "rate"
value = { mb_per_s = 70 }
source = "a test"
"#;
    study(whole);
    let mut places = 0;
    let heads = whole.lines().filter(|line| line.starts_with('['));
    let inline = ["pacing = { least", "host = { kernel"];
    for at in heads.chain(inline).chain(["title ="]) {
        let text = match at.starts_with('[') {
            true => whole.replacen(at, &format!("{at}\ncolour = 1"), 1),
            false if at == "title =" => whole.replacen(at, "colour = 1\ntitle =", 1),
            false => whole.replacen(at, &at.replacen("{ ", "{ colour = 1, ", 1), 1),
        };
        let error = parse(&text, "t.toml").expect_err(at);
        assert_eq!(error.kind, StudyErrorKind::UnknownKey, "{at}: {error}");
        assert!(error.key.ends_with("colour"), "{at}: {error}");
        places += 1;
    }
    assert_eq!(places, 12);
}

/// Nor do the tables of a sweep.
#[test]
fn no_table_of_a_sweep_takes_a_key_that_it_does_not_have() {
    let swept = "title = \"Swept\"\ndrives = [{ name = \"d\", model = \"nas-8tb-7200\", count = 4 }]\n\
                 layouts = [{ level = \"raid1\", members = 2 }]\n\
                 workloads = [{ kind = \"dd-write\", size = \"6MiB\" }]\n\
                 [sweep]\n[[sweep.axes]]\nkey = \"seed\"\nvalues = [1, 2]\n\
                 [sweep.samples]\ncount = 3\n[[sweep.samples.of]]\nkey = \"rounds\"\nvalues = [1, 2]\n";
    let sweep = |text: &str| Sweep::parse(text, "t.toml", std::path::Path::new(""));
    sweep(swept).unwrap_or_else(|error| panic!("{error}"));
    for head in swept.lines().filter(|line| line.starts_with('[')) {
        let text = swept.replacen(head, &format!("{head}\ncolour = 1"), 1);
        let error = sweep(&text).expect_err(head);
        assert_eq!(error.kind, StudyErrorKind::UnknownKey, "{head}: {error}");
    }
}

/// A machine of the years of PATA, with all that can be said of its paths.
#[test]
fn the_modelled_machine_is_as_it_is_said() {
    let text = |route: &str, host: &str, controller: &str| {
        format!(
            "title = \"t\"\nfilesystem = \"native\"\nhost = {{ {host} }}\n\
             paths = [{{ name = \"pci\", kind = \"pci-32-33\" }},\n\
             {{ name = \"a\", kind = \"pata-udma100\", rate = \"70MB/s\", switch = \"2ms\", overhead = \"150us\" }},\n\
             {{ name = \"b\", kind = \"bus\", rate = \"400MB/s\" }}, {{ name = \"c\", kind = \"sata-150\" }}]\n\
             drives = [{{ name = \"d\", model = \"nas-8tb-7200\", count = 5 }}]\n\
             layouts = [{{ level = \"raid0\", members = 5, route = {route}{controller} }}]\n\
             workloads = [{{ kind = \"cp-null\", size = \"4MiB\" }}]\n"
        )
    };
    let of = |route: &str| {
        study(&text(route, "kernel = \"linux-6.1\"", "")).layouts[0].hardware.routes.clone()
    };
    // Where members differ, alternatives in turn.
    assert_eq!(of("[\"pci\", \"a | b\"]"), [[0, 1], [0, 2], [0, 1], [0, 2], [0, 1]]);
    assert_eq!(of("[\"a|b|c\"]"), [[1], [2], [3], [1], [2]]);
    let plain = study(&text("[\"pci\"]", "kernel = \"linux-6.1\"", ""));
    let path = &plain.paths[1];
    assert_eq!((path.rate, path.switch.0, path.overhead.0), (70_000_000, 2_000_000, 150_000));
    assert_eq!(plain.paths[2].rate, 400_000_000);
    let waits = |host: &str| {
        let study = study(&text("[\"pci\"]", host, ""));
        study.host_of(0).expect("a host").spec.lone_reader_waits
    };
    assert!(!waits("kernel = \"linux-6.1\"") && !waits("lone_reader_waits = false"));
    assert!(waits("lone_reader_waits = true"));
    let writes = |name: &str| {
        let controller = format!(", controller = \"{name}\"");
        let study = study(&text("[\"pci\"]", "kernel = \"linux-6.1\"", &controller));
        study.layouts[0].hardware.controller.as_ref().expect("one").writes
    };
    // Without its battery nothing is posted, and drive write caches are off.
    assert_eq!(writes("smart-array-e200i"), WritePolicy::Through);
    assert!(matches!(writes("smart-array-e200i-battery"), WritePolicy::Posted { .. }));
}

#[test]
fn bounds_are_those_that_are_documented() {
    let pacing = |share: &str| {
        let text = LEAST.replace("title", &format!("pacing = {{ share = \"{share}\" }}\ntitle"));
        parse(&text, "t.toml").map_err(|error| error.kind)
    };
    assert!(["1%", "100%"].into_iter().all(|share| pacing(share).is_ok()));
    for share in ["0%", "101%", "200%", "1.5%", "30"] {
        assert_eq!(pacing(share).expect_err(share), StudyErrorKind::WrongUnit, "{share}");
    }
    let member_size = |size: &str| {
        parse(&LEAST.replace("title", &format!("member_size = \"{size}\"\ntitle")), "t.toml")
    };
    assert_eq!(member_size("12KiB").expect("whole pages").member_size, Some(Sectors(24)));
    let file = |size: &str| {
        let text = LEAST.replacen("model = \"nas-8tb-7200\"", &format!("file = \"{size}\""), 1);
        parse(&text, "t.toml").map_err(|error| error.kind)
    };
    assert!(file("12KiB").is_ok());
    for size in ["512", "6KiB"] {
        assert_eq!(file(size).expect_err(size), StudyErrorKind::WrongValue);
        assert_eq!(member_size(size).expect_err(size).kind, StudyErrorKind::WrongValue);
    }
}

/// Process counts of a workload take the place of the study's, and only its.
#[test]
fn a_workload_has_its_own_process_counts() {
    let text = LEAST
        .replace("title", "processes = [1, 2, 4]\ntitle")
        .replace("kind = \"dd-write\"", "kind = \"dd-write\"\nonly_processes = [8]")
        + "[[workloads]]\nkind = \"dd-read\"\nsize = \"6MiB\"\n";
    let study = study(&text);
    let of = |workload: usize| -> Vec<u32> {
        let own =
            cells(&study).into_iter().filter(|key| (key.workload, key.layout) == (workload, 0));
        own.map(|key| key.processes).collect()
    };
    assert_eq!((of(0), of(1)), (vec![8], vec![1, 2, 4]));
}
