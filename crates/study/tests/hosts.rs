//! The modelled machine of a study: hosts, controllers, and what is checked of layouts beside them.

use raidlab_core::{Level, Sectors};
use raidlab_study::{Only, StudyErrorKind, cells, parse};

fn study(head: &str, layouts: &str, workload: &str) -> String {
    format!(
        "title = \"t\"\nprocesses = [1, 2]\n{head}\n\
         drives = [{{ name = \"d\", model = \"nas-8tb-7200\", count = 12 }}]\nlayouts = [{layouts}]\n\
         workloads = [{workload}]\n"
    )
}

const READ: &str = "{ kind = \"random-read\", name = \"read\", size = \"64KiB\" }";
const MIRROR: &str = "{ level = \"raid1\", members = 2 }";

#[test]
fn a_host_has_what_is_said_and_the_kernel_s_otherwise() {
    let host = |keys: &str| {
        let text = study(&format!("host = {{ {keys} }}"), MIRROR, READ);
        let study = parse(&text, "t.toml").unwrap_or_else(|error| panic!("{error}"));
        study.host_of(0).expect("a host").spec
    };
    let plain = host("kernel = \"linux-6.1\"");
    assert_eq!((plain.hz, plain.memory, plain.cache), (250, 8 << 30, None));
    for hz in [24, 100, 1_000] {
        assert_eq!(host(&format!("hz = {hz}")).hz, hz);
    }
    for hz in [23, 1_001] {
        let text = study(&format!("host = {{ hz = {hz} }}"), MIRROR, READ);
        assert_eq!(parse(&text, "t.toml").expect_err("out of range").key, "host.hz");
    }
    let said = host("memory = \"756MiB\", cache = \"512MiB\", cores = 3, copy_rate = \"250MB/s\"");
    assert_eq!((said.memory, said.cache, said.cores), (756 << 20, Some(512 << 20), 3));
    assert_eq!(said.costs.copy_rate, 250_000_000);
    assert_eq!(host("read_ahead = \"2MiB\"").read_ahead, Some(2 << 20));
    let blocks =
        |count: u32| host(&format!("kernel = \"freebsd-6.2\", read_max = {count}")).read_ahead;
    let (eight, sixteen) = (blocks(8).expect("said"), blocks(16).expect("said"));
    assert_eq!(sixteen, 2 * eight, "in blocks");
}

#[test]
fn read_ahead_is_said_once_and_in_the_kernel_s_unit() {
    let refused = |keys: &str| {
        let text = study(&format!("host = {{ {keys} }}"), MIRROR, READ);
        let error = parse(&text, "t.toml").expect_err(keys);
        assert_eq!(
            (error.kind, &*error.key),
            (StudyErrorKind::WrongValue, "host.read_max"),
            "{error}"
        );
        error.reason.clone()
    };
    assert!(
        refused("kernel = \"freebsd-6.2\", read_max = 8, read_ahead = \"128KiB\"")
            .contains("give one")
    );
    assert!(refused("kernel = \"linux-6.1\", read_max = 8").contains("FreeBSD's"));
}

/// Keys that a layout's host lacks are the study's, except read-ahead when it names a kernel.
#[test]
fn a_layout_s_host_takes_the_rest_from_the_study_s() {
    let head =
        "host = { kernel = \"linux-6.1\", memory = \"2GiB\", hz = 100, read_ahead = \"1MiB\" }";
    let of = |own: &str| {
        let layout = format!("{{ level = \"raid1\", members = 2, host = {{ {own} }} }}");
        let study =
            parse(&study(head, &layout, READ), "t.toml").unwrap_or_else(|error| panic!("{error}"));
        study.host_of(0).expect("a host").spec
    };
    let less = of("memory = \"1GiB\"");
    assert_eq!((less.memory, less.hz, less.read_ahead), (1 << 30, 100, Some(1 << 20)));
    let own = of("read_ahead = \"64KiB\"");
    assert_eq!((own.memory, own.read_ahead), (2 << 30, Some(64 << 10)));
    let other = of("kernel = \"linux-6.12\"");
    assert_eq!((other.memory, other.hz, other.read_ahead), (2 << 30, 100, None));
    let both = of("kernel = \"linux-6.12\", read_ahead = \"64KiB\"");
    assert_eq!(both.read_ahead, Some(64 << 10));
}

#[test]
fn a_controller_takes_requests_as_long_as_is_said() {
    let longest = |key: &str| {
        let layout =
            format!("{{ level = \"raid1\", members = 2, controller = \"bios-mirror\"{key} }}");
        let study =
            parse(&study("", &layout, READ), "t.toml").unwrap_or_else(|error| panic!("{error}"));
        study.layouts[0].hardware.controller.as_ref().expect("a controller").longest
    };
    assert_eq!(longest(", longest_request = \"64KiB\""), Sectors(128));
    assert_ne!(longest(""), Sectors(128));
    let alone = "{ level = \"raid1\", members = 2, longest_request = \"64KiB\" }";
    let error = parse(&study("", alone, READ), "t.toml").expect_err("no controller");
    assert_eq!(error.key, "layouts.longest_request");
}

/// md's own are layouts of one array on a host of today's kernels, without a controller between.
#[test]
fn what_is_md_s_is_told_from_what_is_not() {
    let is_md = |kernel: &str, layout: &str| {
        let head = format!("host = {{ kernel = \"{kernel}\" }}");
        parse(&study(&head, layout, READ), "t.toml").expect("good").is_md(0)
    };
    let nested = "{ level = \"raid50\", members = 6 }";
    let behind = "{ level = \"raid1\", members = 2, controller = \"bios-mirror\" }";
    assert!(is_md("linux-6.1", MIRROR) && is_md("linux-6.12", MIRROR));
    assert!(
        !is_md("linux-6.1", nested) && !is_md("linux-6.1", behind) && !is_md("freebsd-6.2", MIRROR)
    );
    assert!(!parse(&study("", MIRROR, READ), "t.toml").expect("good").is_md(0), "no host");
}

#[test]
fn settings_of_stripes_are_those_of_any_floor() {
    let with = |level: &str, key: &str| {
        let layout = format!("{{ level = \"{level}\", members = 6, {key} }}");
        parse(&study("", &layout, READ), "t.toml")
    };
    for key in ["cached_stripes = 7", "tie = \"never-modify\""] {
        let study = with("raid50", key).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            study.layouts[0].layout.level,
            Level::Raid0,
            "stripes are of the lower floor only"
        );
        let error = with("raid1+0", key).expect_err("no stripes at all");
        assert_eq!(error.kind, StudyErrorKind::ImpossibleLayout, "{error}");
    }
    // A share of the time takes the place of the least, so `most` may be less than that.
    let pacing = with("raid1", "pacing = { share = \"30%\", most = \"500KB/s\" }").expect("good");
    assert_eq!(pacing.layouts[0].settings.pacing.most, 500_000);
    assert_eq!(
        with("raid1", "pacing = { most = \"0KB/s\" }").expect_err("nothing").kind,
        StudyErrorKind::WrongUnit
    );
    let long =
        with("raid5", "consistency = \"journal\"").expect("good").layouts[0].settings.consistency;
    assert_eq!(long, raidlab_core::Consistency::Journal { sectors: Sectors(256 << 11) });
    let bits =
        with("raid5", "consistency = \"bitmap\"").expect("good").layouts[0].settings.consistency;
    assert_eq!(bits, raidlab_core::Consistency::Bitmap { chunk: Sectors(64 << 11) });
}

#[test]
fn what_only_modelled_hosts_have_is_refused_on_drives() {
    let check = |head: &str, layout: &str, workload: &str| {
        let study = parse(&study(head, layout, workload), "t.toml").expect("good");
        study.check_real().err().map(|error| error.key)
    };
    let spare = "{ level = \"raid1\", members = 2, spares = 1 }";
    let ahead = "{ kind = \"random-read\", size = \"64KiB\", read_ahead = \"1MiB\" }";
    assert_eq!(check("", MIRROR, READ), None);
    assert_eq!(check("filesystem = \"ext4\"", MIRROR, READ), None);
    assert_eq!(check("filesystem = \"native\"", MIRROR, READ).as_deref(), Some("filesystem"));
    let old = "host = { kernel = \"linux-6.1\" }\nfilesystem = \"ext4\"";
    let own = "{ level = \"raid1\", members = 2, filesystem = \"native\" }";
    assert_eq!(check(old, own, READ).as_deref(), Some("layouts.filesystem"));
    assert_eq!(check("", spare, READ).as_deref(), Some("layouts.spares"));
    let study = parse(&study("filesystem = \"ext4\"", MIRROR, ahead), "t.toml").expect("good");
    assert_eq!(study.workloads[0].read_ahead, Some(1 << 20));
    assert_eq!(study.check_real().expect_err("read-ahead").key, "workloads.read_ahead");
}

/// Layouts may have a filesystem of their own, on real drives and kernels too; what else is theirs is told.
#[test]
fn layouts_have_filesystems_of_their_own() {
    let layouts = format!(
        "{MIRROR}, {{ name = \"old\", level = \"raid1\", members = 2, filesystem = \"ext2\" }}, \
         {{ name = \"6.12\", level = \"raid1\", members = 2, host = {{ kernel = \"linux-6.12\" }} }}, \
         {{ name = \"both\", level = \"raid1\", members = 2, filesystem = \"ext2\", host = {{ memory = \"1GiB\" }} }}"
    );
    let text = study("host = { kernel = \"linux-6.1\" }\nfilesystem = \"ext4\"", &layouts, READ);
    let mut study = parse(&text, "t.toml").unwrap_or_else(|error| panic!("{error}"));
    study.check_real().expect("real drives have them");
    let of = |study: &raidlab_study::Study| {
        let names = (0..4).map(|layout| study.filesystem_of(layout).unwrap_or("none").to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(of(&study), ["ext4", "ext2", "ext4", "ext2"]);
    assert_eq!(study.only_modelled(), ["6.12 (host)", "both (host)"], "a filesystem is no host");
    study.set_filesystem("xfs").expect("is known");
    assert_eq!(of(&study), ["xfs"; 4]);
    study.filesystem = None;
    assert_eq!(of(&study), ["none"; 4]);
}

#[test]
fn a_filesystem_is_one_that_is_known_and_the_kernel_has() {
    let mut of_linux =
        parse(&study("host = { kernel = \"linux-6.1\" }", MIRROR, READ), "t.toml").expect("good");
    for known in ["ext4", "xfs", "native"] {
        of_linux.set_filesystem(known).unwrap_or_else(|reason| panic!("{reason}"));
        assert_eq!(of_linux.filesystem.as_deref(), Some(known));
    }
    assert!(of_linux.set_filesystem("ext5").expect_err("unknown").contains("known: "));
    assert!(of_linux.set_filesystem("ffs").expect_err("FreeBSD's").contains("has no ffs"));
    let mut of_bsd =
        parse(&study("host = { kernel = \"freebsd-6.2\" }", MIRROR, READ), "t.toml").expect("good");
    of_bsd.set_filesystem("ffs").expect("its own");
    assert!(of_bsd.set_filesystem("ext4").expect_err("Linux's").contains("has no ext4"));
}

/// An eighth for what the filesystem needs, and 128 MiB.
#[test]
fn files_on_a_filesystem_need_room_beside_them() {
    assert_eq!(raidlab_study::filesystem_room(8 << 30), (9 << 30) + (128 << 20));
    let write = "{ kind = \"dd-write\", size = \"8GiB\" }";
    let study = parse(&study("filesystem = \"ext4\"", MIRROR, write), "t.toml").expect("good");
    // Two processes have a file each.
    let needed = (18 << 30) + (128 << 20);
    let check = |bytes: u64| study.check_capacity(&[Sectors(bytes / 512)], &[8], |_| None);
    check(needed).expect("just enough");
    assert_eq!(check(needed - 512).expect_err("a sector less").kind, StudyErrorKind::DoesNotFit);
}

#[test]
fn cells_are_limited_by_each_name_that_is_said() {
    let two = format!("{READ}, {{ kind = \"random-read\", name = \"other\", size = \"128KiB\" }}");
    let layouts = format!("{MIRROR}, {{ level = \"raid0\", members = 2 }}");
    let mut study = parse(&study("", &layouts, &two), "t.toml").expect("good");
    let mut count = |layouts: &[&str], workloads: &[&str], processes: &[u32]| {
        let list = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        study.only = Only {
            layouts: list(layouts),
            workloads: list(workloads),
            processes: processes.to_vec(),
        };
        cells(&study).len()
    };
    assert_eq!(count(&[], &[], &[]), 8);
    assert_eq!(count(&["raid0(2)"], &[], &[]), 4);
    assert_eq!(count(&[], &["other"], &[]), 4);
    assert_eq!(count(&[], &[], &[2]), 4);
    assert_eq!(count(&["raid0(2)"], &["other"], &[2]), 1);
    let only = Only { processes: vec![2], ..Only::default() };
    study.only = only;
    assert!(cells(&study).iter().all(|key| key.processes == 2));
    assert_eq!(cells(&study).len(), 4);
}

/// The layout that is measured twice is so only where another one is compared with it.
#[test]
fn nothing_is_measured_twice_that_nothing_is_compared_with() {
    let alone = "{ kind = \"random-read\", name = \"alone\", size = \"128KiB\", only_layouts = [\"raid1(2)\"] }";
    let layouts = format!("{MIRROR}, {{ level = \"raid0\", members = 2 }}");
    let text = study("baseline = [\"raid1(2)\"]", &layouts, &format!("{READ}, {alone}"));
    let mut study = parse(&text, "t.toml").expect("good");
    let again = |study: &raidlab_study::Study| cells(study).iter().filter(|key| key.again).count();
    assert_eq!(again(&study), 0, "in virtual time nothing is");
    study.measured = true;
    assert_eq!(again(&study), 2, "for each number of processes");
}

#[test]
fn seeds_are_one_where_nothing_is_said() {
    assert_eq!(parse(&study("", MIRROR, READ), "t.toml").expect("good").seed, 1);
    assert_eq!(parse(&study("seed = 0", MIRROR, READ), "t.toml").expect("good").seed, 0);
    let whole = parse(&study("precision = \"100%\"", MIRROR, READ), "t.toml").expect("good");
    assert_eq!((whole.precision_percent, whole.modelled), (100.0, false));
}

/// A filesystem of a layout alone would stand for nothing where the study has none.
#[test]
fn a_layout_has_no_filesystem_where_the_study_has_none() {
    let host = "host = { kernel = \"linux-6.1\" }";
    let layout = "{ level = \"raid1\", members = 2, filesystem = \"ext3\" }";
    let error = parse(&study(host, layout, READ), "t.toml").expect_err("a raw study");
    assert_eq!((error.kind, &*error.key), (StudyErrorKind::WrongValue, "layouts.filesystem"));
    assert!(error.reason.contains("name one there too"), "{error}");
    let head = format!("{host}\nfilesystem = \"ext4\"");
    parse(&study(&head, layout, READ), "t.toml").unwrap_or_else(|error| panic!("{error}"));
}

/// Of groups of drives each member has one, no more and no fewer.
#[test]
fn each_member_has_one_group_of_drives() {
    for (groups, is_good) in
        [("\"d\"", false), ("\"d\", \"d\"", true), ("\"d\", \"d\", \"d\"", false)]
    {
        let layout = format!("{{ level = \"raid1\", members = 2, drives = [{groups}] }}");
        let found = parse(&study("", &layout, READ), "t.toml");
        assert_eq!(found.is_ok(), is_good, "{groups}");
        if let Err(error) = found {
            assert_eq!((error.kind, &*error.key), (StudyErrorKind::WrongValue, "layouts.drives"));
        }
    }
}

/// A path has a property once, also where two parameters are of several paths and have only one in common.
#[test]
fn a_property_of_a_path_is_given_once() {
    let paths = ["one", "two", "three"]
        .map(|name| format!("{{ name = \"{name}\", kind = \"pata-udma100\" }}"))
        .join(", ");
    let parameter = |paths: &str| {
        format!(
            "{{ of = \"path {paths}\", property = \"rate\", value = {{ mb_per_s = 70 }}, source = \"a test\" }}"
        )
    };
    let found = |first: &str, second: &str| {
        let both = [first, second].map(parameter).join(", ");
        let head = format!("paths = [{paths}]\nparameters = [{both}]");
        parse(&study(&head, MIRROR, READ), "t.toml")
    };
    found("one, two", "three").unwrap_or_else(|error| panic!("{error}"));
    for (first, second) in [("one", "one"), ("one, two", "two, three"), ("three, one, two", "two")]
    {
        let error = found(first, second).expect_err(second);
        assert_eq!(error.kind, StudyErrorKind::DuplicateName, "{first}, {second}: {error}");
        assert!(error.reason.contains("keep one"), "{error}");
    }
}
