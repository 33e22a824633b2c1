//! What a study's machine comes to in a world: requests no longer than they can be, and whose switch counts.

use super::*;
use raidlab_study::{State, parse};

const PATHS: &str = "[[paths]]\nname = \"one\"\nkind = \"pata-udma100\"\n\
    [[paths]]\nname = \"two\"\nkind = \"sata-150\"\n\
    [[paths]]\nname = \"pci\"\nkind = \"pci-32-33\"\n";
const OLD: &str = "host = { kernel = \"linux-2.6.20\", processor = \"sempron-2600\" }";

/// A study of one layout on drives of two models; `layout` are keys of it, `behind` stands at the end.
fn study(host: &str, drives: [&str; 2], layout: &str, behind: &str) -> Study {
    let group = |number: usize| {
        let model = drives[number];
        format!("[[drives]]\nname = \"disk{number}\"\nmodel = \"{model}\"\ncount = 2\n")
    };
    let text = format!(
        "title = \"machines\"\nfilesystem = \"native\"\n{host}\n{PATHS}{}{}\
         [[layouts]]\nlevel = \"raid0\"\nmembers = 2\ndrives = [\"disk0\", \"disk1\"]\n{layout}\n\
         [[workloads]]\nkind = \"cp-null\"\nsize = \"4MiB\"\n{behind}\n",
        group(0),
        group(1),
    );
    parse(&text, "machines.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn modelled(study: &Study) -> Modelled<'_> {
    Modelled::new(study, HostCosts::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// The longest request to the array, and to a drive.
fn longest(host: &str, drives: [&str; 2], layout: &str) -> (u64, u64) {
    let study = study(host, drives, layout, "");
    let modelled = modelled(&study);
    let queue = modelled.queue(0, Scheduler::Deadline, 1);
    (modelled.host_spec(0).longest_request >> 10, queue.longest.bytes() >> 10)
}

const OLD_PATA: [&str; 2] = ["pata-40gb-5400"; 2];
const LARGE: [&str; 2] = ["sata-250gb-7200"; 2];

/// A command of a 28-bit address moves 256 sectors at most: drives below 137 GB on PATA channels.
#[test]
fn small_drives_on_pata_channels_get_short_commands() {
    let channel = "route = [\"pci\", \"one\"]";
    assert_eq!(longest(OLD, OLD_PATA, channel), (128, 128));
    assert_eq!(longest(OLD, LARGE, channel), (512, 512), "48-bit addresses");
    let mixed = ["sata-250gb-7200", "pata-120gb-7200"];
    assert_eq!(longest(OLD, mixed, channel), (128, 128), "one of them is enough");
    assert_eq!(longest(OLD, OLD_PATA, "route = [\"pci\", \"two\"]"), (512, 512), "a SATA link");
    assert_eq!(longest(OLD, OLD_PATA, ""), (512, 512), "no path at all");
    let card = format!("{channel}\ncontroller = \"ite8212-bios\"");
    assert_eq!(longest(OLD, OLD_PATA, &card).0, 512, "it is the controller that drives them");
}

/// So are all requests that reach the members when a cell is run, and those of a large drive are not.
#[test]
fn requests_of_a_cell_are_as_short_as_its_commands() {
    let longest = |drives| {
        let study = study(OLD, drives, "chunk = \"1MiB\"\nroute = [\"pci\", \"one\"]", "");
        let modelled = modelled(&study);
        let key = raidlab_study::cells(&study).remove(0);
        let mut world = modelled.world(0, 1).expect("a world");
        world.start_record();
        modelled.run_on(&mut world, &key, 1).unwrap_or_else(|error| panic!("{error}"));
        world.record().iter().map(|io| io.len).max()
    };
    assert_eq!(longest(OLD_PATA), Some(256));
    assert_eq!(longest(LARGE), Some(1_024));
}

/// Merging in a queue makes no longer request than the host's kernel does; without a host that is up to
/// the scheduler.
#[test]
fn queues_make_no_longer_requests_than_the_kernel() {
    let of = |host: &str| {
        let study = study(host, LARGE, "", "");
        modelled(&study).queue(0, Scheduler::Deadline, 4)
    };
    assert_eq!(of("host = { kernel = \"linux-2.6.12\" }").longest, Sectors(256));
    assert_eq!(of("host = { kernel = \"freebsd-6.2\" }\n").longest, Sectors(256));
    assert_eq!(of("").longest, Scheduler::Deadline.spec(4).longest);
    assert_eq!(of(OLD).depth, 4);
}

/// A controller's own switch takes the place of its channels', and of nothing else.
#[test]
fn a_controller_switches_its_channels_as_it_does() {
    let card = "controller = \"ite8212-bios\"\nroute = [\"pci\", \"one\"]";
    let own = "[[parameters]]\nof = \"controller ite8212-bios\"\nproperty = \"switch\"\n\
               value = { us = 250 }\nsource = \"a test\"\n";
    let switches = |layout, behind| {
        let study = study(OLD, OLD_PATA, layout, behind);
        let spec = modelled(&study).paths_of(0, 2);
        assert_eq!(spec.check(2), Ok(()));
        spec.links.iter().map(|link| link.switch.0 / 1_000).collect::<Vec<_>>()
    };
    assert_eq!(switches(card, ""), [1_000, 0, 0], "the channel's");
    assert_eq!(switches(card, own), [250, 0, 0]);
    let bare = "route = [\"pci\", \"one\"]\n\
                [[layouts]]\nname = \"card\"\nlevel = \"raid0\"\nmembers = 2\ncontroller = \"ite8212-bios\"";
    assert_eq!(switches(bare, own), [1_000, 0, 0], "no controller there");
}

/// What the members of an array get of one process with blocks of 6 MiB: the longest request in sectors, how many
/// reads.
fn of_long_blocks(host: &str, layout: &str, kind: &str) -> (u32, usize) {
    let text = format!(
        "title = \"long\"\n{host}\n[[drives]]\nname = \"disk\"\nmodel = \"nas-8tb-7200\"\ncount = 4\n\
         [[layouts]]\n{layout}\n[[workloads]]\nkind = \"{kind}\"\nsize = \"48MiB\"\n"
    );
    let study = parse(&text, "long.toml").unwrap_or_else(|error| panic!("{error}"));
    let modelled = modelled(&study);
    let key = raidlab_study::cells(&study).remove(0);
    let mut world = modelled.world(0, 1).expect("a world");
    world.start_record();
    modelled.run_on(&mut world, &key, 1).unwrap_or_else(|error| panic!("{error}"));
    let all = world.record();
    let longest = all.iter().map(|io| io.len).max().expect("requests");
    (longest, all.iter().filter(|io| io.op == raidlab_core::contract::IoOp::Read).count())
}

/// A kernel's requests are 1 MiB long, and md's raid1 cuts each at 168 pieces of memory, which is 1,344 sectors: it
/// chooses a mirror for each, and where a raid5's stripes run out within a call it reads what a stripe lacks. Without a
/// host an array gets calls as they are.
#[test]
fn long_calls_come_to_md_as_requests_of_a_kernel() {
    let md = "host = { kernel = \"linux-6.12\" }";
    let mirror = "level = \"raid1\"\nmembers = 2";
    assert_eq!(of_long_blocks(md, mirror, "dd-read"), (1_344, 96));
    assert_eq!(of_long_blocks("", mirror, "dd-read"), (12_288, 8));
    let parity = "level = \"raid5\"\nmembers = 4";
    assert!(of_long_blocks(md, parity, "dd-write").1 > 0);
    assert_eq!(of_long_blocks("", parity, "dd-write").1, 0);
    // Enough stripes for a call, or requests of whole stripes.
    let cached = format!("{parity}\ncached_stripes = 1024");
    assert_eq!(of_long_blocks(md, &cached, "dd-write").1, 0);
    assert_eq!(of_long_blocks(md, "level = \"raid6\"\nmembers = 4", "dd-write").1, 0);
}

/// The longest request that drives get from a rebuild in its first second, in KiB.
fn of_a_rebuild(host: &str, layout: &str) -> u32 {
    let text = format!(
        "title = \"long\"\nstates = [\"rebuilding\"]\n{host}\n[[drives]]\nname = \"disk\"\n\
         model = \"nas-8tb-7200\"\ncount = 4\n[[layouts]]\n{layout}\n\
         [[workloads]]\nkind = \"dd-read\"\nsize = \"1GiB\"\n"
    );
    let study = parse(&text, "long.toml").unwrap_or_else(|error| panic!("{error}"));
    let mut world = modelled(&study).world_in(0, State::Rebuilding, 1).expect("a world");
    world.start().expect("a fresh drive");
    world.start_trace();
    while world.now() < raidlab_core::Time(1_000_000_000) && world.step() {}
    let all = std::iter::from_fn(|| world.next_traced()).map(|request| request.io.len / 2);
    all.max().expect("requests")
}

/// Ranges that md begins at one event come to a drive as one request, as long as their pages allow: in traces of 6.12
/// 640 KiB on raid1, 672 on raid5, of which ranges here are not a part, and 1,280 on raid10.
#[test]
fn ranges_of_a_rebuild_are_merged_under_the_plug_of_md() {
    let md = "host = { kernel = \"linux-6.12\" }";
    assert_eq!(of_a_rebuild(md, "level = \"raid1\"\nmembers = 2"), 640);
    assert_eq!(of_a_rebuild(md, "level = \"raid5\"\nmembers = 4"), 640);
    assert_eq!(of_a_rebuild(md, "level = \"raid10\"\nmembers = 4"), 1_280);
    assert_eq!(of_a_rebuild("", "level = \"raid1\"\nmembers = 2"), 128, "no request queue");
}
