//! What must hold whatever drives and hosts are like: each mechanism on hardware made up for it, from the
//! study file to the figure. docs/fidelity.md lists them, with those on worlds alone.

use std::collections::BTreeMap;

use raidlab_predict::Modelled;
use raidlab_sim::HostCosts;
use raidlab_study::{cells, parse};

const MB: f64 = 1e6;
/// A drive that is hardly ever what one waits for.
const QUICK: &str = "ssd-nvme4-2tb-dc";
/// A hard disk with one command at a time.
const DISK: &str = "sata-250gb-7200";

/// Bytes a second and requests a second of every layout, by its name and processes.
struct Rates(BTreeMap<(String, u32), (f64, f64)>);

impl Rates {
    /// Of a study with so many drives of a model; `rest` is the rest of the file, `top` keys of its own.
    fn of(top: &str, model: &str, rest: &str) -> Self {
        let text = format!(
            "title = \"sanity\"\n{top}\n\
             [[drives]]\nname = \"disk\"\nmodel = \"{model}\"\ncount = 8\n{rest}"
        );
        let study = parse(&text, "sanity.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
        let modelled = Modelled::new(&study, HostCosts::default());
        let modelled = modelled.unwrap_or_else(|error| panic!("{error}"));
        let rates = cells(&study).into_iter().map(|key| {
            let mut world = modelled.world_in(key.layout, key.state, 1).expect("a world");
            let run = modelled.run_on(&mut world, &key, 1);
            let sample = run.unwrap_or_else(|error| panic!("{error}"));
            let seconds = sample.last_done.as_secs();
            let name = study.layouts[key.layout].name.clone();
            // What cp writes to /dev/null does not count.
            let is_copy = key.workload(&study).is_some_and(|spec| spec.name == "cp_parallel");
            let bytes = if is_copy { sample.bytes / 2 } else { sample.bytes };
            let rates = (bytes as f64 / seconds, sample.ops as f64 / seconds);
            println!("{name}, {}: {:.2} MB/s, {:.1}/s", key.processes, rates.0 / MB, rates.1);
            ((name, key.processes), rates)
        });
        Self(rates.collect())
    }

    fn bytes(&self, layout: &str, processes: u32) -> f64 {
        self.0[&(layout.to_string(), processes)].0
    }

    fn requests(&self, layout: &str, processes: u32) -> f64 {
        self.0[&(layout.to_string(), processes)].1
    }
}

fn layout(name: &str, level: &str, members: u16, keys: &str) -> String {
    format!("[[layouts]]\nname = \"{name}\"\nlevel = \"{level}\"\nmembers = {members}\n{keys}\n")
}

fn near(got: f64, expected: f64, within: f64) {
    assert!((got / expected - 1.0).abs() <= within, "{got}, expected {expected}");
}

/// Parallel readers of 48 MB each on a host of the time.
const COPIES: &str = "[[workloads]]\nkind = \"cp-parallel\"\nfiles = 3\nsize = \"48MB\"\n";

fn host(kernel: &str, keys: &str) -> String {
    format!(
        "filesystem = \"native\"\n\
         host = {{ kernel = \"{kernel}\", processor = \"athlon-x2-5000\", memory = \"1GiB\"{keys} }}"
    )
}

#[test]
fn linear_is_as_fast_as_the_member_that_holds_the_files() {
    let layouts = layout("one", "linear", 1, "") + &layout("four", "linear", 4, "");
    for kernel in ["linux-2.6.12", "linux-2.6.20", "freebsd-6.2"] {
        let top = host(kernel, "") + "\nprocesses = [1, 3]";
        let rates = Rates::of(&top, DISK, &(layouts.clone() + COPIES));
        for processes in [1, 3] {
            near(rates.bytes("four", processes), rates.bytes("one", processes), 0.01);
        }
    }
    let raw = "[[workloads]]\nkind = \"dd-read\"\nsize = \"96MiB\"\nspan = \"10%\"\n";
    let rates = Rates::of("", DISK, &(layouts + raw));
    near(rates.bytes("four", 1), rates.bytes("one", 1), 0.01);
}

/// Two of three members on a channel of 20 MB/s: it moves two thirds of the data, so the stripe comes to 30.
#[test]
fn a_stripe_is_paced_by_the_fuller_channel() {
    let channel = |name: &str| {
        format!(
            "[[paths]]\nname = \"{name}\"\nkind = \"pata-udma100\"\nrate = \"20MB/s\"\n\
             switch = \"0s\"\noverhead = \"0s\"\n"
        )
    };
    let chunk = "chunk = \"64KiB\"\n";
    let routed = |name, members, route: &str| {
        layout(name, "raid0", members, &format!("{chunk}route = [\"{route}\"]"))
    };
    let rest = channel("ide0")
        + &channel("ide1")
        + &routed("one", 1, "ide0")
        + &routed("two on one", 2, "ide0")
        + &routed("two", 2, "ide0 | ide1")
        + &routed("three", 3, "ide0 | ide1 | ide0")
        + &routed("four", 4, "ide0 | ide1")
        + &layout("free", "raid0", 3, chunk);
    for kind in ["dd-read", "dd-write"] {
        let work =
            format!("[[workloads]]\nkind = \"{kind}\"\nsize = \"60MiB\"\nblock = \"6MiB\"\n");
        let rates = Rates::of("", QUICK, &(rest.clone() + &work));
        for (name, expected) in
            [("one", 20.0), ("two on one", 20.0), ("two", 40.0), ("three", 30.0), ("four", 40.0)]
        {
            near(rates.bytes(name, 1), expected * MB, 0.02);
        }
        assert!(rates.bytes("free", 1) > 20.0 * rates.bytes("three", 1), "the drives are no limit");
    }
}

/// With one request of one disk's window outstanding, on the channels of its card. (Where drives have links of their
/// own, what they read ahead makes up for it with one reader.)
#[test]
fn firmware_raid_reads_slower_than_md_on_the_same_drives() {
    let channel = |name: &str| format!("[[paths]]\nname = \"{name}\"\nkind = \"pata-udma100\"\n");
    let keys = "chunk = \"64KiB\"\nroute = [\"ide0 | ide1\"]\n";
    let card = format!("{keys}controller = \"ite8212-bios\"");
    let rest = channel("ide0")
        + &channel("ide1")
        + &layout("md(2)", "raid0", 2, keys)
        + &layout("card(2)", "raid0", 2, &card)
        + &layout("md(4)", "raid0", 4, keys)
        + &layout("card(4)", "raid0", 4, &card);
    let top = host("linux-2.6.16", "") + "\nprocesses = [1, 2]";
    let rates = Rates::of(&top, "pata-120gb-7200", &(rest.clone() + COPIES));
    for processes in [1, 2] {
        assert!(rates.bytes("card(2)", processes) < 0.95 * rates.bytes("md(2)", processes));
        assert!(rates.bytes("card(4)", processes) < 0.75 * rates.bytes("md(4)", processes));
    }
    // Random reads of eight processes do not overlap at all.
    let random = "[[workloads]]\nkind = \"random-read\"\nsize = \"2MiB\"\n";
    let rates = Rates::of("processes = [1, 8]", "pata-120gb-7200", &(rest + random));
    near(rates.requests("card(2)", 8), rates.requests("card(2)", 1), 0.05);
    assert!(rates.requests("md(2)", 8) > 1.5 * rates.requests("md(2)", 1));
}

/// Every request moves every spindle: besides not waiting for the slowest of four angles each time (on average
/// four fifths of a turn in place of a half) there is nothing to gain.
#[test]
fn raid3_reads_no_two_things_at_once() {
    let layouts = layout("raid3", "raid3", 5, "")
        + &layout("raid5", "raid5", 5, "")
        + &layout("raid0", "raid0", 5, "");
    let random = "[[workloads]]\nkind = \"random-read\"\nsize = \"2MiB\"\n";
    let rates = Rates::of("processes = [1, 8]", DISK, &(layouts + random));
    let gain = |name| rates.requests(name, 8) / rates.requests(name, 1);
    let turn = 60.0 / 7_200.0;
    let alone = 1.0 / rates.requests("raid3", 1);
    let most = alone / (alone - 0.3 * turn);
    assert!(gain("raid3") < 1.03 * most, "{}, at most {most}", gain("raid3"));
    assert!(gain("raid5") > 2.5 && gain("raid0") > 2.5, "{} {}", gain("raid5"), gain("raid0"));
}

#[test]
fn mirrors_in_turn_do_not_double_one_stream() {
    let policy = "policy = \"gmirror-round-robin\"";
    let layouts = layout("one", "linear", 1, "")
        + &layout("two", "raid1", 2, policy)
        + &layout("three", "raid1", 3, policy)
        + &layout("stripe", "raid0", 2, "chunk = \"64KiB\"");
    let rates = Rates::of(&host("freebsd-6.2", ", read_max = 128"), DISK, &(layouts + COPIES));
    let one = rates.bytes("one", 1);
    for name in ["two", "three"] {
        assert!(rates.bytes(name, 1) < 1.15 * one, "{name}");
    }
    assert!(rates.bytes("stripe", 1) > 1.5 * one, "the window is no limit");
}

#[test]
fn a_mirror_of_md_gives_each_of_two_streams_a_drive() {
    let layouts = layout("one", "linear", 1, "")
        + &layout("md", "raid1", 2, "policy = \"md-2.6\"")
        + &layout("in turn", "raid1", 2, "policy = \"gmirror-round-robin\"");
    let top = host("linux-2.6.20", ", read_ahead = \"2MiB\"") + "\nprocesses = [1, 2]";
    let rates = Rates::of(&top, DISK, &(layouts + COPIES));
    let gain = rates.bytes("md", 2) / rates.bytes("md", 1);
    assert!((1.8..=2.2).contains(&gain), "{gain}");
    assert!(rates.bytes("one", 2) < 1.1 * rates.bytes("one", 1), "one drive has one head");
    assert!(rates.bytes("in turn", 2) < 1.3 * rates.bytes("one", 1));
}

/// Written through, each small write in order waits for its place to come by again: a turn of 1/120 s.
#[test]
fn write_through_loses_a_turn_for_each_request() {
    let layouts = layout("through", "linear", 1, "controller = \"smart-array-e200i\"")
        + &layout("posted", "linear", 1, "controller = \"smart-array-e200i-battery\"");
    let small = "[[workloads]]\nkind = \"dd-write\"\nblock = \"4KiB\"\nsize = \"800KiB\"\n";
    let rates = Rates::of("", DISK, &(layouts + small));
    near(rates.requests("through", 1), 120.0, 0.03);
    assert!(rates.requests("posted", 1) > 20.0 * rates.requests("through", 1));
}

#[test]
fn mirrored_writes_pass_the_memory_path_once_for_each_copy() {
    let memory = "[[paths]]\nname = \"memory\"\nkind = \"memory\"\nrate = \"120MB/s\"\n";
    let routed = |name, level, members| layout(name, level, members, "route = [\"memory\"]");
    let rest = memory.to_string()
        + &routed("1", "linear", 1)
        + &routed("2", "raid1", 2)
        + &routed("3", "raid1", 3)
        + &routed("4", "raid1", 4)
        + &layout("free", "raid1", 4, "");
    let write = "[[workloads]]\nkind = \"dd-write\"\nsize = \"120MiB\"\n";
    let rates = Rates::of("", QUICK, &(rest.clone() + write));
    for copies in 1..=4_u32 {
        near(rates.bytes(&copies.to_string(), 1), 120.0 * MB / f64::from(copies), 0.02);
    }
    assert!(rates.bytes("free", 1) > 10.0 * rates.bytes("4", 1), "the drives are no limit");
    let read = "[[workloads]]\nkind = \"dd-read\"\nsize = \"120MiB\"\n";
    let rates = Rates::of("", QUICK, &(rest + read));
    for copies in ["1", "2", "3", "4"] {
        near(rates.bytes(copies, 1), 120.0 * MB, 0.02);
    }
}
