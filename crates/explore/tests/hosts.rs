//! Hosts of layouts, filesystems of kernels, and workloads that run on a part of the matrix.

use raidlab_explore::Ablation;
use raidlab_models::host::{FilesystemSpec, Kernel, Mechanism};
use raidlab_predict::Modelled;
use raidlab_sim::HostCosts;
use raidlab_study::{CellKey, Sample, Study, StudyError, StudyErrorKind, cells, parse};

/// A study of two drives; `top` are keys of its own, `layout` keys of the second layout, `workload` of the
/// workload.
fn text(top: &str, layout: &str, workload: &str) -> String {
    format!(
        "title = \"hosts\"\nprocesses = [1, 4]\n{top}\n\
         [[drives]]\nname = \"disk\"\nmodel = \"sata-250gb-7200\"\ncount = 2\n\
         [[layouts]]\nname = \"one\"\nlevel = \"raid1\"\nmembers = 2\n\
         [[layouts]]\nname = \"two\"\nlevel = \"raid1\"\nmembers = 2\n{layout}\n\
         [[workloads]]\nkind = \"cp-parallel\"\nfiles = 4\nsize = \"12MiB\"\n{workload}\n"
    )
}

fn study(top: &str, layout: &str, workload: &str) -> Study {
    parse(&text(top, layout, workload), "hosts.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn refused(top: &str, layout: &str, workload: &str) -> StudyError {
    let result = parse(&text(top, layout, workload), "hosts.toml");
    result.expect_err("must be refused")
}

const FREE_BSD: &str = "filesystem = \"native\"\n\
    host = { kernel = \"freebsd-6.2\", processor = \"athlon-x2-5000\", memory = \"1GiB\", read_max = 64 }";
const LINUX: &str = "filesystem = \"native\"\n\
    host = { kernel = \"linux-2.6.20\", processor = \"athlon-x2-5000\", memory = \"1GiB\" }";

/// What every cell gives.
fn run(study: &Study) -> Vec<(CellKey, Sample)> {
    let modelled = Modelled::new(study, HostCosts::default()).unwrap_or_else(|e| panic!("{e}"));
    let one = |key: CellKey| {
        let mut world = modelled.world_in(key.layout, key.state, 3).expect("a world");
        (key, modelled.run_on(&mut world, &key, 3).unwrap_or_else(|error| panic!("{error}")))
    };
    cells(study).into_iter().map(one).collect()
}

fn of_layout(run: &[(CellKey, Sample)], layout: usize) -> Vec<&Sample> {
    run.iter().filter(|(key, _)| key.layout == layout).map(|(_, sample)| sample).collect()
}

#[test]
fn a_layouts_host_says_what_it_says_and_the_study_the_rest() {
    let study = study(FREE_BSD, "host = { kernel = \"linux-2.6.20\" }", "");
    let (of_study, own) = (study.host_of(0).expect("a host"), study.host_of(1).expect("a host"));
    assert_eq!(of_study.spec.kernel, Kernel::FreeBsd6_2);
    assert_eq!(of_study.spec.read_ahead, Some(1 << 20));
    assert_eq!(of_study.spec.filesystem, Kernel::FreeBsd6_2.spec().filesystem);
    assert_eq!(own.spec.kernel, Kernel::Linux2_6_20);
    assert_eq!((own.spec.memory, own.processor), (1 << 30, of_study.processor));
    assert_eq!(own.spec.filesystem, Kernel::Linux2_6_20.spec().filesystem);
    assert_eq!(own.spec.read_ahead, None, "the other kernel's is not taken over");
    let with =
        |layout| self::study(FREE_BSD, layout, "").layouts[1].host.clone().expect("a host").spec;
    let more = with("host = { memory = \"512MiB\" }");
    assert_eq!((more.memory, more.read_ahead), (512 << 20, Some(1 << 20)));
    let ahead = with("host = { read_ahead = \"256KiB\" }");
    assert_eq!(ahead.read_ahead, Some(256 << 10));
    let filesystem =
        self::study(LINUX, "filesystem = \"ext2\"", "").layouts[1].host.clone().expect("one");
    let ext2 = FilesystemSpec::of("ext2".parse().expect("known"));
    assert_eq!(filesystem.spec.filesystem, ext2);
    assert_eq!(filesystem.spec.memory, 1 << 30);
}

#[test]
fn what_of_memory_caches_and_whether_a_lone_reader_waits_are_said_for_hosts() {
    let with = |keys: &str| LINUX.replace("\"1GiB\"", &format!("\"1GiB\", {keys}"));
    let top = with("cache = \"600MiB\", lone_reader_waits = true");
    let of = |top: &str, layout: &str| {
        let spec = study(top, layout, "").host_of(1).expect("a host").spec;
        (spec.memory >> 20, spec.cache.map(|bytes| bytes >> 20), spec.lone_reader_waits)
    };
    assert_eq!(of(LINUX, ""), (1_024, None, false));
    assert_eq!(of(&top, ""), (1_024, Some(600), true));
    assert_eq!(of(&top, "host = { cores = 1 }"), (1_024, Some(600), true), "the study's");
    let own = "host = { cache = \"100MiB\", lone_reader_waits = false }";
    assert_eq!(of(&top, own), (1_024, Some(100), false));
    for (keys, key, words) in [
        ("cache = \"4MiB\"", "host.cache", "at least 8 MiB"),
        ("cache = 100", "host.cache", "found integer"),
        ("lone_reader_waits = 1", "host.lone_reader_waits", "true or false"),
    ] {
        let error = refused(&with(keys), "", "");
        assert_eq!((error.line, error.key.as_str()), (Some(4), key), "{error}");
        assert!(error.reason.contains(words), "{error}");
    }
}

/// A layout with a host of its own behaves as in a study of that host, to the bit: drives' queues, costs
/// and read-ahead are its own.
#[test]
fn a_layout_on_another_host_is_as_in_a_study_of_that_host() {
    let mixed = run(&study(FREE_BSD, "host = { kernel = \"linux-2.6.20\" }", ""));
    let (free_bsd, linux) = (run(&study(FREE_BSD, "", "")), run(&study(LINUX, "", "")));
    assert_eq!(of_layout(&mixed, 0), of_layout(&free_bsd, 0));
    assert_eq!(of_layout(&mixed, 1), of_layout(&linux, 1));
    assert_ne!(of_layout(&mixed, 0), of_layout(&mixed, 1));
    let slow = run(&study(FREE_BSD, "host = { processor = \"pentium3-860\" }", ""));
    assert_eq!(of_layout(&slow, 0), of_layout(&free_bsd, 0));
    let all_slow = run(&study(&FREE_BSD.replace("athlon-x2-5000", "pentium3-860"), "", ""));
    assert_eq!(of_layout(&slow, 1), of_layout(&all_slow, 1));
    assert_ne!(of_layout(&slow, 1), of_layout(&free_bsd, 1));
}

/// Two stripes are what the kernel reads ahead on an array that it knows of; behind a controller it knows of
/// one disk.
#[test]
fn behind_a_controller_is_read_ahead_as_on_one_disk() {
    let of = |keys: &str, ahead: &str| {
        let stripe =
            format!("[[layouts]]\nname = \"stripe\"\nlevel = \"raid0\"\nmembers = 2\n{keys}");
        let study = study(LINUX, &stripe, ahead);
        let window = raidlab_explore::tune::default_window(&study, 2);
        let run = run(&study);
        (window, of_layout(&run, 2).into_iter().cloned().collect::<Vec<_>>())
    };
    let (ahead, card) = ("read_ahead = \"128KiB\"", "controller = \"ite8212-bios\"");
    assert_eq!((of(card, "").0, of("", "").0), (128 << 10, 2 << 20));
    assert_eq!(of(card, "").1, of(card, ahead).1);
    assert_ne!(of("", "").1, of("", ahead).1, "md's own is larger");
}

/// The window of a workload takes the place of the host's.
#[test]
fn a_workload_reads_ahead_as_it_says() {
    let narrow = "filesystem = \"native\"\nhost = { kernel = \"linux-2.6.20\", \
                  processor = \"athlon-x2-5000\", memory = \"1GiB\", read_ahead = \"32KiB\" }";
    let said = run(&study(LINUX, "", "read_ahead = \"32KiB\""));
    assert_eq!(said, run(&study(narrow, "", "")));
    assert_ne!(said, run(&study(LINUX, "", "")));
    assert_eq!(run(&study(narrow, "", "read_ahead = \"128KiB\"")), run(&study(LINUX, "", "")));
}

#[test]
fn workloads_run_on_the_part_of_the_matrix_they_name() {
    let study = study(
        LINUX,
        "",
        "only_layouts = [\"two\"]\nonly_processes = [2]\n\
         [[workloads]]\nkind = \"cp-parallel\"\nname = \"more\"\nfiles = 3\nonly_processes = [3, 1]",
    );
    let cells: Vec<_> =
        cells(&study).iter().map(|key| (key.workload, key.processes, key.layout)).collect();
    assert_eq!(cells, [(0, 2, 1), (1, 3, 0), (1, 3, 1), (1, 1, 0), (1, 1, 1)]);
    // Five processes for four files are nothing wrong where they are not run.
    let only = "only_processes = [2]";
    let mut more = self::study(LINUX, "", only);
    more.processes = vec![1, 5];
    Modelled::new(&more, HostCosts::default()).expect("they are not run");
}

#[test]
fn what_cannot_be_names_line_and_key() {
    let cases = [
        (LINUX, "", "only_layouts = [\"tow\"]", "workloads.only_layouts", "`two`"),
        (LINUX, "", "only_layouts = [\"two\", \"two\"]", "workloads.only_layouts", "twice"),
        (LINUX, "", "only_layouts = []", "workloads.only_layouts", "empty"),
        (LINUX, "", "only_processes = [0]", "workloads.only_processes", "out of range"),
        (LINUX, "", "only_processes = [1, 1]", "workloads.only_processes", "twice"),
        (LINUX, "", "read_ahead = 128", "workloads.read_ahead", "unit"),
        (LINUX, "host = { kernel = \"linux-2.7\" }", "", "host.kernel", "linux-2.6.27"),
        (LINUX, "host = { kernels = \"linux-2.6.27\" }", "", "host.kernels", "`kernel`"),
        (LINUX, "host = { read_max = 8 }", "", "host.read_max", "read_ahead = "),
        (
            FREE_BSD,
            "host = { read_max = 8, read_ahead = \"1MiB\" }",
            "",
            "host.read_max",
            "give one",
        ),
        (FREE_BSD, "filesystem = \"ext3\"", "", "layouts.filesystem", "freebsd-6.2 has no ext3"),
        (LINUX, "filesystem = \"ffs\"", "", "layouts.filesystem", "linux-2.6.20 has no ffs"),
        (LINUX, "filesystem = \"ext5\"", "", "layouts.filesystem", "`ext"),
        ("", "filesystem = \"ext2\"", "", "layouts.filesystem", "without filesystem"),
        ("filesystem = \"ext2\"", "filesystem = \"ext3\"", "", "layouts.filesystem", "add host"),
        (
            "host = { kernel = \"freebsd-6.2\" }\nfilesystem = \"ext3\"",
            "",
            "",
            "filesystem",
            "no ext3",
        ),
    ];
    for (top, layout, workload, key, reason) in cases {
        let error = refused(top, layout, workload);
        assert_eq!(error.key, key, "{error}");
        assert!(error.line.is_some() && error.reason.contains(reason), "{error}");
    }
}

#[test]
fn what_only_modelled_hosts_have_is_refused_elsewhere() {
    let error = study(LINUX, "", "").check_real().expect_err("a modelled filesystem");
    assert_eq!((error.kind, error.key.as_str()), (StudyErrorKind::NotSupported, "filesystem"));
    assert!(error.reason.contains("ext4") && error.line == Some(3), "{error}");
    let ext4 = "filesystem = \"ext4\"";
    study(ext4, "", "").check_real().expect("nothing against it");
    let error = study(ext4, "", "read_ahead = \"1MiB\"").check_real().expect_err("read-ahead");
    assert_eq!(error.kind, StudyErrorKind::NotSupported);
    assert_eq!(error.key, "workloads.read_ahead");
    assert!(error.line.is_some() && error.reason.contains("blockdev --setra"), "{error}");
    // Nothing reads ahead on the array itself. (Files of the workload do not run there either.)
    let raw = "title = \"raw\"\n[[drives]]\nname = \"disk\"\nmodel = \"sata-250gb-7200\"\n\
               [[layouts]]\nlevel = \"single\"\n\
               [[workloads]]\nkind = \"dd-read\"\nsize = \"6MiB\"\nread_ahead = \"1MiB\"\n";
    let raw = parse(raw, "raw.toml").expect("a study");
    let error = Modelled::new(&raw, HostCosts::default()).expect_err("no filesystem");
    assert_eq!((error.key.as_str(), error.line), ("workloads.read_ahead", Some(10)), "{error}");
}

#[test]
fn another_filesystem_is_put_below_every_host() {
    let mut study = study(LINUX, "host = { kernel = \"linux-2.6.27\" }", "");
    study.set_filesystem("ext2").expect("Linux has it");
    let ext2 = FilesystemSpec::of("ext2".parse().expect("known"));
    for layout in 0..2 {
        assert_eq!(study.host_of(layout).expect("a host").spec.filesystem, ext2);
    }
    let error = study.set_filesystem("ffs").expect_err("Linux has it not");
    assert!(error.contains("linux-2.6.20 has no ffs"), "{error}");
    let error = study.set_filesystem("zfs").expect_err("unknown");
    assert!(error.contains("native, ffs"), "{error}");
}

/// A mechanism that is switched off is off on every host, and on the CPU of each.
#[test]
fn a_mechanism_is_switched_off_on_every_host() {
    let own = "host = { kernel = \"linux-2.6.20\", processor = \"pentium3-860\" }";
    let study = study(FREE_BSD, own, "");
    let bare = Ablation::Host(Mechanism::ReadAhead).out_of_study(&study).expect("can be");
    for layout in 0..2 {
        let ahead = bare.host_of(layout).expect("a host").spec.read_ahead;
        assert_eq!(ahead, Some(0), "{layout}");
    }
    let key = cells(&study)[1];
    let run = |modelled: Modelled<'_>| {
        let mut world = modelled.world_in(key.layout, key.state, 3).expect("a world");
        modelled.run_on(&mut world, &key, 3).expect("runs").system_cpu_s
    };
    let modelled = Modelled::new(&study, HostCosts::default()).expect("it fits");
    let (free, paid) = (run(Ablation::RequestCost.out_of_drives(modelled.clone())), run(modelled));
    assert!(key.layout == 1 && free < paid, "{free:?} and {paid:?} s");
}
