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

/// A study of one layout on four drives, with a host.
fn on_host(host: &str, model: &str, layout: &str) -> Study {
    let text = format!(
        "title = \"one\"\n{host}\n[[drives]]\nname = \"disk\"\nmodel = \"{model}\"\ncount = 4\n\
         [[layouts]]\n{layout}\n[[workloads]]\nkind = \"dd-read\"\nsize = \"48MiB\"\n"
    );
    parse(&text, "one.toml").unwrap_or_else(|error| panic!("{error}"))
}

/// What md of 6.12 begins with: 256 stripes of a page (`NR_STRIPES`), which are 1 MiB of each member; ranges under way
/// of 2 MiB on raid1 (`RESYNC_DEPTH` of 32 by 64 KiB, here 128 KiB each) and 512 of 64 KiB on raid10, and one for
/// healing; and members that do not turn are known as such.
#[test]
fn md_begins_with_what_its_source_says() {
    let md = "host = { kernel = \"linux-6.12\" }";
    let config = |model, layout: &str| {
        let study = on_host(md, model, layout);
        modelled(&study).config(0).unwrap_or_else(|error| panic!("{error}"))
    };
    let (nas, flash) = ("nas-8tb-7200", "ssd-nvme4-2tb");
    for chunk in ["4KiB", "64KiB", "512KiB"] {
        for (keys, bytes) in [("", 1 << 20), ("cached_stripes = 1024", 4 << 20)] {
            let layout = format!("level = \"raid5\"\nmembers = 4\nchunk = \"{chunk}\"\n{keys}");
            let config = config(nas, &layout);
            let row = config.layout.chunk.0.min(config.settings.plan_rows.0) * SECTOR_BYTES;
            assert_eq!(u64::from(config.settings.cached_stripes) * row, bytes, "{chunk} {keys}");
        }
    }
    let mirror = "level = \"raid1\"\nmembers = 2";
    assert_eq!(config(nas, mirror).limits.windows, (32 * 64) / 128 + 1);
    assert_eq!(config(nas, "level = \"raid10\"\nmembers = 4").limits.windows, 512 + 1);
    let turns = |model| config(model, mirror).traits.iter().map(|one| one.rotational).collect();
    let both: [Vec<bool>; 2] = [turns(nas), turns(flash)];
    assert_eq!(both, [vec![true; 2], vec![false; 2]]);
    let old = on_host("host = { kernel = \"linux-2.6.27\" }", flash, mirror);
    assert_eq!(modelled(&old).config(0).expect("a config").traits, [], "it does not ask");
}

/// A `member_size` makes members no larger than their drives, and those of smaller drives no smaller.
#[test]
fn members_are_as_large_as_their_drives_at_most() {
    let sizes = |size: &str| {
        let study = on_host(size, "nas-8tb-7200", "level = \"raid5\"\nmembers = 4");
        let config = modelled(&study).config(0).unwrap_or_else(|error| panic!("{error}"));
        config.members.iter().map(|member| member.sectors.bytes()).collect::<Vec<_>>()
    };
    let whole = sizes("");
    assert!(whole.iter().all(|bytes| *bytes > 8_000_000_000_000 && *bytes <= 8_001_563_222_016));
    assert_eq!(sizes("member_size = \"100TiB\""), whole);
    assert_eq!(sizes("member_size = \"1GiB\""), [1 << 30; 4]);
}

/// Members are cut to their drives; a log is as large as the study says, and told before a run where it has no room.
#[test]
fn a_log_that_its_drive_has_no_room_for_is_refused_before_a_run() {
    let journal = |size: &str| {
        let layout = "level = \"raid5\"\nmembers = 4\nconsistency = \"journal\"";
        on_host("", "nas-8tb-7200", &format!("{layout}\njournal_size = \"{size}\""))
    };
    let study = journal("8TB");
    assert!(modelled(&study).world(0, 1).is_ok());
    let study = journal("9TB");
    let told = Modelled::new(&study, HostCosts::default()).unwrap_err().to_string();
    let unchecked = Modelled::unchecked(&study, HostCosts::default()).unwrap();
    assert_eq!(unchecked.world(0, 1).err().map(|error| error.to_string()).as_ref(), Some(&told));
    assert!(
        told.contains("layouts.level: drive 4 has ") && told.contains("the log on it"),
        "{told}"
    );
}

/// Linux 6.12 sends flushes off beside writes to md, which hands requests on; not to a single disk, a card, or before.
#[test]
fn only_md_of_6_12_flushes_beside_writes() {
    let is_beside = |kernel: &str, layout: &str| {
        let host = format!("host = {{ kernel = \"{kernel}\" }}");
        let study = on_host(&host, "pata-40gb-5400", layout);
        modelled(&study).host_spec(0).flushes_beside_writes
    };
    let mirror = "level = \"raid1\"\nmembers = 2";
    assert!(is_beside("linux-6.12", mirror));
    assert!(!is_beside("linux-6.12", "level = \"single\""));
    assert!(!is_beside("linux-6.12", &format!("{mirror}\ncontroller = \"ite8212-bios\"")));
    assert!(!is_beside("linux-6.1", mirror));
}

/// What the file says of its drives counts, not what their kernel would take.
#[test]
fn drives_have_the_scheduler_that_is_said_of_them() {
    let text = |host: &str, own: &str| {
        format!(
            "title = \"one\"\n{host}\n[[drives]]\nname = \"disk\"\nmodel = \"nas-8tb-7200\"\ncount = 2\n{own}\n\
             [[layouts]]\nlevel = \"raid1\"\nmembers = 2\n\
             [[workloads]]\nkind = \"dd-read\"\nsize = \"1MiB\"\n"
        )
    };
    let of = |host: &str, own: &str| {
        let study = parse(&text(host, own), "one.toml").unwrap_or_else(|error| panic!("{error}"));
        modelled(&study).scheduler(0)
    };
    let (md, own) = ("host = { kernel = \"linux-6.12\" }", "scheduler = \"cfq\"");
    let (of_kernel, of_drives) = (of(md, ""), of("", own));
    assert!(of_kernel.is_some() && of_drives.is_some());
    assert_ne!(of_kernel, of_drives);
    assert_eq!(of(md, own), of_drives);
    assert_eq!(of("", ""), None);
}

/// A channel with one member on it is busy with that member; one that members share is what holds them back.
#[test]
fn only_a_shared_channel_is_a_bottleneck_of_its_own() {
    let named = |route: &str, resource: &str| {
        let route = format!("route = [{route}]");
        let study = study(OLD, OLD_PATA, &route, "");
        let mut resource = resource.to_string();
        modelled(&study).name_the_drive(0, &mut resource);
        resource
    };
    let own = "[\"pci\", \"one\"]";
    assert_eq!(named("\"pci\", \"one\"", "one"), "one", "{own}: both members");
    assert_eq!(named("\"one | two\"", "one"), "member 0");
    assert_eq!(named("\"two | one\"", "one"), "member 1");
    assert_eq!(named("\"one | two\"", "two"), "two", "a SATA link is no channel");
    assert_eq!(named("\"pci\", \"one | two\"", "pci"), "pci");
    assert_eq!(named("\"one | two\"", "cpu"), "cpu");
}
