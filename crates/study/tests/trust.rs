//! What results say of how far predicted cells can be trusted, and what verdicts make of it.

use std::collections::BTreeMap;

use crate::support::{on, sample};
use raidlab_core::{Nanos, Sectors};
use raidlab_results::trust::{Access, Members, Traits, Trust};
use raidlab_results::{Cell, Clock, Results, Verdict};
use raidlab_study::{CellKey, Latency, Runner, Sample, Study, parse, run_rounds, summarise};

/// Three layouts, of which the model cannot tell the second from the first.
struct Near;

impl Runner for Near {
    type Error = String;

    fn run(&mut self, key: &CellKey, _: u32, seed: u64) -> Result<Sample, String> {
        let noise = 1.0 + (seed % 1_000) as f64 * 1e-6;
        Ok(sample([100.0, 103.0, 2_000.0][key.layout] * noise))
    }
}

fn study(head: &str, drive: &str, third: &str) -> Study {
    let text = format!(
        "title = \"test\"\nprocesses = [1]\nrounds = 9\nmax_rounds = 9\nbaseline = [\"raid0(2)\"]\n{head}\n\
         [[drives]]\nname = \"d\"\nmodel = \"{drive}\"\ncount = 4\n\
         [[layouts]]\nlevel = \"raid0\"\nmembers = 2\n[[layouts]]\nlevel = \"raid0\"\nmembers = 3\n\
         [[layouts]]\n{third}\n[[workloads]]\nkind = \"random-read\"\nsize = \"1MiB\"\n"
    );
    Study { modelled: true, ..parse(&text, "test").expect("a study") }
}

fn results(study: &Study) -> Results {
    let samples = run_rounds(study, &mut Near, &mut on).expect("runs");
    let capacities = vec![Sectors(1 << 20); study.layouts.len()];
    let none = BTreeMap::new;
    summarise(study, &samples, Clock::Virtual, none(), none(), Vec::new(), &capacities)
}

fn first(results: &Results, layout: usize) -> &Cell {
    let name = &results.layouts[layout].name;
    results.cells.iter().find(|cell| cell.layout == *name).expect("is there")
}

const RAID5: &str = "level = \"raid5\"\nmembers = 4";
const MD: &str = "host = { kernel = \"linux-6.12\" }";

#[test]
fn cells_like_those_of_the_lab_have_an_interval_and_differences_below_the_floor_none() {
    let study = study(MD, "nas-8tb-7200", RAID5);
    let found = results(&study);
    let like_it = Traits {
        filesystem: Some(false),
        members: Some(Members::Healthy),
        access: Some(Access::Random),
        writes: Some(false),
    };
    let raw = Trust::recorded().groups.iter().find(|group| group.traits == like_it);
    let raw = raw.expect("such cells were compared");
    let cell = first(&found, 2);
    let trust = cell.trust.as_ref().expect("modelled");
    assert_eq!((trust.not_checked.as_deref(), trust.cells), (None, Some(raw.cells)));
    assert_eq!(trust.interval90, Some(raw.interval(cell.median)));
    assert_eq!((cell.verdict, trust.sign_of_100), (Some(Verdict::Faster), Some(100)));
    let near = first(&found, 1);
    assert!(raw.floor() > 0.04, "3 % is nothing the model can tell");
    assert_eq!((near.verdict, near.more_rounds), (Some(Verdict::NotResolved), None));
    // The rounds alone show it: of a kernel it would count.
    let of_kernel = results(&Study { modelled: false, ..study });
    let near = first(&of_kernel, 1);
    assert_eq!((near.verdict, near.trust.as_ref()), (Some(Verdict::Faster), None));
}

/// A layout may have a filesystem of its own: what was compared on the study's says nothing of it, and the other way.
#[test]
fn a_layout_is_trusted_by_its_own_filesystem() {
    let said = |of_study: &str, of_third: &str| {
        let head = format!("filesystem = \"{of_study}\"\n{MD}");
        let third = format!("{RAID5}\nfilesystem = \"{of_third}\"");
        let found = results(&study(&head, "nas-8tb-7200", &third));
        [0, 2].map(|layout| first(&found, layout).trust.clone().expect("modelled").not_checked)
    };
    let is_not = |of_study, of_third| {
        let what =
            "not checked against a kernel: no cells on ext2 were compared; differences below ";
        said(of_study, of_third).map(|one| one.is_some_and(|one| one.starts_with(what)))
    };
    assert_eq!(said("ext4", "ext4"), [None, None]);
    assert_eq!(is_not("ext4", "ext2"), [false, true]);
    assert_eq!(is_not("ext2", "ext4"), [true, false]);
    assert_eq!(is_not("native", "ext2"), [false, true]);
    assert_eq!(said("ext4", "ext2")[0], None);
}

#[test]
fn what_no_cell_is_like_was_not_checked_and_the_reason_is_given() {
    let reason = |study: &Study| {
        let found = results(study);
        let trust = first(&found, 2).trust.clone().expect("modelled");
        assert_eq!((trust.interval90, trust.cells), (None, None));
        trust.not_checked.expect("was not checked")
    };
    let nas = "nas-8tb-7200";
    for (head, drive, third, what) in [
        ("", nas, RAID5, "without a host"),
        ("", nas, "level = \"raid3\"\nmembers = 3", "the level"),
        ("", nas, "level = \"raid1+0\"\narrays = 2\nmembers = 4", "the level"),
        ("", "ssd-nvme4-2tb", RAID5, "drives of this kind"),
        // It may well be a hard disk, which were compared.
        (MD, "mine.toml", RAID5, "a drive file of your own"),
        ("", nas, "level = \"raid5\"\nmembers = 4\nconsistency = \"ppl\"", "partial parity"),
        ("filesystem = \"ext3\"", nas, RAID5, "no cells on ext3"),
        (
            "filesystem = \"native\"\nhost = { memory = \"1GiB\", kernel = \"linux-2.6.20\" }",
            nas,
            RAID5,
            "the host's kernel",
        ),
    ] {
        let said = reason(&study(head, drive, third));
        assert!(said.starts_with("not checked against a kernel: "), "{said}");
        assert!(said.contains(what), "{third}: {said}");
    }
}

/// Where any of a row was compared with the kernel, its verdicts go by that floor: each of them has it, with the words.
#[test]
fn the_floor_that_a_verdict_goes_by_stands_with_it() {
    struct Degraded;
    impl Runner for Degraded {
        type Error = String;

        fn run(&mut self, key: &CellKey, _: u32, seed: u64) -> Result<Sample, String> {
            let time = |millis: u64| Nanos(millis * 1_000_000);
            let slow = key.layout as u64 + 100;
            let latency =
                Latency { p50: time(1), p99: time(slow), p999: time(slow), max: time(slow) };
            Ok(Sample { latency: Some(latency), ..Near.run(key, 0, seed)? })
        }
    }
    let of = |third: &str, state: &str| {
        let head = format!("{MD}\nstates = [{state}]");
        let mut study = study(&head, "nas-8tb-7200", third);
        for layout in &mut study.layouts {
            layout.layout = "raid5(4)".parse().expect("a layout");
        }
        let samples = run_rounds(&study, &mut Degraded, &mut on).expect("runs");
        let none = BTreeMap::new;
        let capacities = [Sectors(1 << 20); 3];
        summarise(&study, &samples, Clock::Virtual, none(), none(), Vec::new(), &capacities)
    };
    let found = of("level = \"raid5\"\nmembers = 4\nconsistency = \"ppl\"", "\"degraded\"");
    let floor = found.cells[0].trust.as_ref().expect("modelled").floor_percent.expect("compared");
    assert!(floor > 1 && found.cells.len() == 6, "{found:?}");
    for cell in &found.cells {
        let trust = cell.trust.as_ref().expect("modelled");
        assert_eq!(trust.floor_percent, Some(floor), "{}: {trust:?}", cell.title());
        let end = format!("; differences below {floor} % are not resolved, as of others");
        let is_checked = cell.metric == "iops" && cell.layout != found.layouts[2].name;
        let said = trust.not_checked.as_deref();
        assert_eq!(said.is_none(), is_checked, "{}: {trust:?}", cell.title());
        assert!(said.is_none_or(|said| said.ends_with(&end)), "{said:?}");
    }
    let what = |metric: &str, at: usize| {
        let mut own = found.cells.iter().filter(|cell| cell.metric == metric);
        own.nth(at).and_then(|cell| cell.trust.clone()?.not_checked).unwrap_or_default()
    };
    assert!(what("p99_ms", 0).contains("only the first figure of each workload"));
    assert!(what("iops", 2).contains("partial parity"), "{}", what("iops", 2));
}

/// Drawn cells have drives of one model each.
#[test]
fn an_array_of_different_drives_was_not_compared() {
    let said = |second: &str| {
        let text = format!(
            "title = \"t\"\nprocesses = [1]\nrounds = 2\nmax_rounds = 2\n{MD}\n\
             drives = [{{ name = \"d\", model = \"nas-8tb-7200\", count = 2 }}, {{ name = \"s\", model = \
             \"{second}\", count = 2 }}]\n\
             layouts = [{{ level = \"raid1\", members = 2, drives = [\"d\", \"s\"] }}]\n\
             workloads = [{{ kind = \"random-read\", size = \"1MiB\" }}]\n"
        );
        let study = Study { modelled: true, ..parse(&text, "test").expect("a study") };
        first(&results(&study), 0).trust.clone().expect("modelled").not_checked
    };
    let not = "not checked against a kernel: arrays of different drives were not compared";
    // Both are of the lab, each by itself.
    assert_eq!(said("ssd-sata-1tb").as_deref(), Some(not));
    assert_eq!(said("nas-8tb-7200"), None, "two groups of one model");
}

/// Computing takes no time in the lab: a figure that only the processor holds back was not checked there, however many
/// cells its group has. Nor was a workload that no cell has.
#[test]
fn what_the_lab_cannot_judge_was_not_checked() {
    struct Computes;
    impl Runner for Computes {
        type Error = String;

        fn run(&mut self, key: &CellKey, _: u32, _: u64) -> Result<Sample, String> {
            let (resource, busy) = [("cpu", 0.95), ("cpu", 0.5), ("member 0", 1.0)][key.layout];
            Ok(Sample { bottleneck: Some((resource.to_owned(), busy)), ..sample(800_000.0) })
        }
    }
    let told = |study: &Study| {
        let samples = run_rounds(study, &mut Computes, &mut on).expect("runs");
        let none = BTreeMap::new;
        let capacities = [Sectors(1 << 20); 3];
        let found =
            summarise(study, &samples, Clock::Virtual, none(), none(), Vec::new(), &capacities);
        [0, 1, 2].map(|layout| first(&found, layout).trust.clone().expect("modelled").not_checked)
    };
    let is_known = study(MD, "nas-8tb-7200", RAID5);
    let [computes, half, drive] = told(&is_known);
    assert!(computes.expect("a reason").contains("the processor sets the pace"));
    assert_eq!([half, drive], [None, None]);
    let other = study(&format!("filesystem = \"ext4\"\n{MD}"), "nas-8tb-7200", RAID5);
    let other = |kind: &str| {
        let text = format!("kind = \"{kind}\"\n");
        let mut other = other.clone();
        let parameters = raidlab_workload::Parameters::new([("size", "4MiB")]).expect("one");
        other.workloads[0].workload = raidlab_workload::make(kind, parameters).expect(&text);
        told(&other)[2].clone()
    };
    assert_eq!(other("dd-write"), None);
    let said = other("hdparm-T").expect("no cell has it");
    assert!(said.contains("workloads of this kind were not compared"), "{said}");
}
