//! Paths and controllers against what follows from their figures. Each mechanism is also switched off, and
//! then its effect must be gone.

use raidlab_core::contract::{IoOp, Outcome};
use raidlab_core::policy::ReadPolicy;
use raidlab_core::{Config, Layout, Level, Nanos, Sector, Sectors, Time};
use raidlab_models::disk::policy::ReadAhead;
use raidlab_models::{
    ControllerSpec, Drive, DriveKind, HardDiskFigures, HardDiskSpec, LinkKind, LinkSpec, PathSpec,
    QueueSpec, Scheduler, WritePolicy, load,
};
use raidlab_sim::{HostCosts, SimErrorKind, World};

const FREE: HostCosts = HostCosts { request: Nanos(0), parity_rate: u64::MAX };
const MB: f64 = 1e6;
const READ: IoOp = IoOp::Read;
const WRITE: IoOp = IoOp::Write;
/// 64 KiB.
const CHUNK: u64 = 128;

/// A disk of 60 MB/s everywhere on an interface of 1 GB/s, 5,400 turns a minute, 0.1 ms a command.
fn disk_with(change: impl Fn(&mut HardDiskFigures)) -> DriveKind {
    let DriveKind::HardDisk(spec) = load("pata-40gb-5400").expect("built in").kind else {
        panic!("a hard disk")
    };
    let mut figures = spec.figures().clone();
    figures.outer_rate = 60_000_000;
    figures.inner_rate = 60_000_000;
    figures.zones = 1;
    figures.link_rate = 1_000_000_000;
    figures.command_overhead = Nanos::from_micros(100);
    figures.segment = Sectors(1_024);
    figures.cache.hold = Sectors(0);
    figures.write_buffer = Sectors(2_048);
    change(&mut figures);
    DriveKind::HardDisk(HardDiskSpec::new(figures).expect("can be"))
}

fn disk() -> DriveKind {
    disk_with(|_| ())
}

/// A drive that is hardly ever what one waits for: 6.8 GB/s.
fn quick() -> DriveKind {
    load("ssd-nvme4-2tb-dc").expect("built in").kind
}

fn layout(level: Level, members: u16) -> Layout {
    let layout = Layout::new(level, members);
    if level.has_chunks() && level != Level::Linear {
        layout.with_chunk(Sectors(CHUNK))
    } else {
        layout
    }
}

fn config_of(kind: &DriveKind, layout: &Layout) -> Config {
    let capacity = Drive::new(kind, 0).capacity();
    let behind = World::metadata_sectors(&Config::uniform(layout.clone(), capacity));
    let behind = behind.expect("can be");
    Config::uniform(layout.clone(), Sectors((capacity.0 - behind.0) / CHUNK * CHUNK))
}

fn world(kind: &DriveKind, level: Level, members: u16) -> World {
    world_of(kind, &config_of(kind, &layout(level, members)))
}

fn world_of(kind: &DriveKind, config: &Config) -> World {
    let members = config.members.len() as u64;
    let drives: Vec<_> = (0..members).map(|seed| Drive::new(kind, seed)).collect();
    World::new(config, drives, FREE).expect("fits")
}

/// Requests at places that a function gives, `depth` in flight; the seconds until the last answer.
fn run(
    world: &mut World,
    op: IoOp,
    (depth, count): (u64, u64),
    place: impl Fn(u64) -> (u64, u64),
) -> f64 {
    let start = world.now();
    let (mut asked, mut answered) = (0, 0);
    let mut last = start;
    while answered < count {
        while asked < count && asked - answered < depth {
            let (at, len) = place(asked);
            world.submit(op, Sector(at), Sectors(len), false);
            asked += 1;
        }
        assert!(world.step(), "a request is always answered");
        while let Some(answer) = world.next_answer() {
            assert_eq!(answer.outcome, Outcome::Done);
            last = answer.at;
            answered += 1;
        }
    }
    last.since(start).as_secs()
}

/// One stream of requests of so many sectors; bytes per second.
fn stream(world: &mut World, op: IoOp, len: u64, flight: (u64, u64)) -> f64 {
    let seconds = run(world, op, flight, |index| (index * len, len));
    (flight.1 * len * 512) as f64 / seconds
}

/// Random 4 KiB requests; a second.
fn random(world: &mut World, op: IoOp, flight: (u64, u64)) -> f64 {
    let block = u64::from(world.array().logical_block()).max(8);
    let places = world.array().capacity().0 / block;
    let seconds = run(world, op, flight, |index| {
        let mixed = (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (((mixed ^ (mixed >> 29)) % places) * block, block)
    });
    flight.1 as f64 / seconds
}

fn channel(name: &str) -> LinkSpec {
    let free = Nanos::ZERO;
    LinkSpec::pata_udma100(name).with_rate(50_000_000).with_switch(free).with_overhead(free)
}

fn channels(of: &[usize]) -> PathSpec {
    PathSpec::shared(vec![channel("ide0"), channel("ide1")], of)
}

fn near(got: f64, expected: f64, within: f64, what: &str) {
    println!("{what}: {got:.3e}, expected {expected:.3e}");
    assert!((got / expected - 1.0).abs() <= within, "{what}: {got}, expected {expected}");
}

fn busy(world: &World, name: &str) -> Nanos {
    let all = world.path_busy();
    all.iter().find(|(one, _)| one == name).map(|(_, busy)| *busy).expect("a link")
}

/// The seconds that `bytes` take at a rate, as an integer of nanoseconds.
fn takes(bytes: u64, rate: u64) -> Nanos {
    Nanos((u128::from(bytes) * 1_000_000_000 / u128::from(rate)) as u64)
}

#[test]
fn without_paths_nothing_changes() {
    let empty = PathSpec { routes: vec![Vec::new(); 4], ..PathSpec::default() };
    let off = channels(&[0, 0, 1, 1]).without_kind(LinkKind::PataChannel);
    assert_eq!(off, empty);
    for scheduler in [None, Some(Scheduler::Anticipatory)] {
        for op in [READ, WRITE] {
            let result = |paths: Option<&PathSpec>| {
                let mut world = world(&disk(), Level::Raid5, 4);
                if let Some(paths) = paths {
                    world = world.with_paths(paths).expect("can be");
                }
                if let Some(scheduler) = scheduler {
                    world = world.with_queues(&scheduler.spec(1));
                }
                random(&mut world, op, (8, 300)).to_bits()
            };
            assert_eq!(result(None), result(Some(&empty)), "{scheduler:?} {op:?}");
            let behind = channels(&[0, 0, 1, 1]);
            assert_ne!(result(None), result(Some(&behind)), "{scheduler:?} {op:?}");
            assert_eq!(result(Some(&behind)), result(Some(&behind)), "the same every time");
        }
    }
}

/// Quick drives on channels of 50 MB/s: one drive 50, two on one channel 50, on two channels 100. Of three
/// in a stripe the fuller channel moves two thirds of the data: 75.
#[test]
fn a_stripe_is_paced_by_the_fuller_channel() {
    let rate = |of: &[usize], spec: &PathSpec, op| {
        let mut world = world(&quick(), Level::Raid0, of.len() as u16);
        world = world.with_paths(spec).expect("can be");
        stream(&mut world, op, CHUNK * of.len() as u64, (4, 400))
    };
    let cases = [
        (&[0][..], 50.0),
        (&[0, 0], 50.0),
        (&[0, 1], 100.0),
        (&[0, 0, 1], 75.0),
        (&[0, 0, 1, 1], 100.0),
    ];
    for (of, expected) in cases {
        let spec = channels(of);
        for op in [READ, WRITE] {
            near(rate(of, &spec, op), expected * MB, 0.02, &format!("{op:?} {of:?}"));
            let off = rate(of, &spec.without_kind(LinkKind::PataChannel), op);
            assert!(off > 5.0 * expected * MB, "without channels: {off}");
        }
    }
}

/// Disks that do not read ahead, so that all of a command is media wait: two on a channel together read as one
/// does, on two channels twice as much.
#[test]
fn a_channel_is_held_while_the_medium_is_waited_for() {
    let kind = disk_with(|figures| figures.cache.read_ahead = ReadAhead::None);
    let rate = |members: u16, of: Option<&[usize]>| {
        let mut world = world(&kind, Level::Raid0, members);
        if let Some(of) = of {
            world = world.with_paths(&channels(of)).expect("can be");
        }
        random(&mut world, READ, (u64::from(members) * 16, 600))
    };
    let one = rate(1, Some(&[0]));
    near(rate(2, Some(&[0, 0])), one, 0.05, "two disks on one channel");
    assert!(rate(2, Some(&[0, 1])) > 1.8 * one, "two channels");
    assert!(rate(2, None) > 1.8 * one, "without channels");
}

/// Two streams that take turns, each on its own drive of one channel: each command waits for the switch.
#[test]
fn a_switch_costs_at_every_change_of_device() {
    let time = |spec: &PathSpec| {
        let mut world = world(&quick(), Level::Linear, 2).with_paths(spec).expect("can be");
        let second = world.array().capacity().0 / 2;
        run(&mut world, READ, (1, 1_000), |index| (index / 2 * 8 + index % 2 * second, 8))
    };
    let one = |switch| PathSpec::shared(vec![channel("ide0").with_switch(switch)], &[0, 0]);
    let spec = one(Nanos::from_micros(700));
    let free = time(&spec.without_switching());
    assert_eq!(free.to_bits(), time(&one(Nanos::ZERO)).to_bits());
    near(time(&spec) - free, 999.0 * 700e-6, 1e-6, "999 switches of 0.7 ms");
    let mut two = PathSpec::shared(vec![spec.links[0].clone(), channel("ide1")], &[0, 1]);
    two.links[1].switch = Nanos::from_micros(700);
    assert_eq!(time(&two).to_bits(), free.to_bits(), "nothing to switch with one device each");
}

#[test]
fn a_bus_caps_the_drives_behind_it() {
    let bus = LinkSpec::pci_32_33("pci").with_overhead(Nanos::ZERO);
    let links = PathSpec::each_its_own(4, |drive| LinkSpec::sata_300(&format!("link{drive}")));
    let spec = links.behind(bus);
    let rate = |spec: &PathSpec, op| {
        let mut world = world(&disk(), Level::Raid0, 4).with_paths(spec).expect("can be");
        world = world.with_queues(&Scheduler::Deadline.spec(1));
        stream(&mut world, op, 4 * CHUNK, (4, 800))
    };
    near(rate(&spec, READ), 100.0 * MB, 0.02, "reading");
    near(rate(&spec, WRITE), 100.0 * MB, 0.03, "writing");
    let off = spec.without("pci").expect("there");
    for op in [READ, WRITE] {
        let free = rate(&off, op);
        assert!(free > 1.7 * 100.0 * MB, "{op:?} without the bus: {free}");
    }
    // What a command costs besides its bytes counts when they are few.
    let costly = spec.clone();
    let costly = |overhead| {
        let mut spec = costly.clone();
        spec.links[4].overhead = overhead;
        let mut world = world(&quick(), Level::Raid0, 4).with_paths(&spec).expect("can be");
        random(&mut world, READ, (64, 4_000))
    };
    near(costly(Nanos::from_micros(59)), 1e9 / (40_960.0 + 59_000.0), 0.02, "4 KiB over the bus");
    near(costly(Nanos::ZERO), 1e9 / 40_960.0, 0.02, "4 KiB over the bus at no cost besides");
}

/// Reads and writes that take turns turn the bus each time.
#[test]
fn a_bus_costs_its_turns() {
    let time = |turn| {
        let bus = LinkSpec { turn, ..LinkSpec::pci_32_33("pci") };
        let spec = PathSpec::shared(vec![bus], &[0]);
        let mut world = world(&quick(), Level::Linear, 1).with_paths(&spec).expect("can be");
        for index in 0..500 {
            let op = if index % 2 == 0 { READ } else { WRITE };
            run(&mut world, op, (1, 1), |_| (index * 8, 8));
        }
        busy(&world, "pci").as_secs()
    };
    near(time(Nanos::from_micros(30)) - time(Nanos::ZERO), 499.0 * 30e-6, 1e-6, "499 turns");
}

/// n member writes pass the memory path, one read does; a write to three mirrors is paced by a third.
#[test]
fn mirrored_writes_pass_the_memory_path_once_for_each_copy() {
    let rate = 200_000_000;
    for copies in [1_u16, 2, 3] {
        let level = if copies == 1 { Level::Linear } else { Level::Raid1 };
        let routes = vec![Vec::new(); usize::from(copies)];
        let spec = PathSpec { routes, ..PathSpec::default() };
        let spec = spec.behind(LinkSpec::memory("memory", rate));
        let mut one = world(&quick(), level, copies).with_paths(&spec).expect("can be");
        let got = stream(&mut one, WRITE, 256, (4, 500));
        near(got, rate as f64 / f64::from(copies), 0.01, &format!("{copies} copies"));
        let bytes = 500 * 256 * 512;
        let written = busy(&one, "memory");
        near(written.as_secs(), takes(bytes * u64::from(copies), rate).as_secs(), 1e-6, "busy");
        stream(&mut one, READ, 256, (4, 500));
        let read = busy(&one, "memory").0 - written.0;
        near(read as f64, takes(bytes, rate).0 as f64, 1e-6, "a read passes once");
        let off = spec.without("memory").expect("there");
        let mut free = world(&quick(), level, copies).with_paths(&off).expect("can be");
        assert!(stream(&mut free, WRITE, 256, (4, 500)) > 4.0 * got);
        assert_eq!(free.path_busy(), []);
    }
}

#[test]
fn copies_and_transfers_wait_for_each_other_on_the_memory_path() {
    let rate = 100_000_000;
    let spec = PathSpec { routes: vec![Vec::new()], ..PathSpec::default() };
    let spec = spec.behind(LinkSpec::memory("memory", rate));
    let mut world = world(&quick(), Level::Linear, 1);
    let cost = Nanos(10_000_000);
    assert_eq!(world.memory_copy(cost, Time(5)), Time(10_000_005), "nothing to wait for");
    assert!(!world.has_memory_path());
    world = world.with_paths(&spec).expect("can be");
    assert!(world.has_memory_path());
    assert_eq!(world.memory_copy(cost, Time::ZERO), Time(10_000_000), "10 ms");
    assert_eq!(world.memory_copy(cost, Time(4)), Time(20_000_000), "behind the first");
    let seconds = run(&mut world, WRITE, (1, 1), |_| (0, 2_000));
    near(seconds, 0.020 + 1_024_000.0 / rate as f64, 0.02, "a write behind two copies");
    let copied = world.memory_copy(cost, Time::ZERO);
    assert_eq!(copied, world.now() + cost, "times gone by are now");
    run(&mut world, READ, (1, 1), |_| (0, 2_000));
    assert!(world.now() >= copied + takes(1_024_000, rate), "a read behind a copy");
}

/// What passes a PATA channel to the host stands still while the CPU copies, for just so long, and only
/// what is under way; a link's does not.
#[test]
fn a_pause_prolongs_what_is_under_way_on_a_channel_by_itself() {
    let took = |link: &LinkSpec, (op, len): (IoOp, u64), pauses: &[u64]| {
        let spec = PathSpec::shared(vec![link.clone()], &[0]);
        let mut world = world(&quick(), Level::Linear, 1).with_paths(&spec).expect("can be");
        world.pause_transfers(Nanos(1_000_000_000));
        let times = [pauses, &[]].map(|pauses| {
            let before = world.now();
            world.submit(op, Sector(0), Sectors(len), false);
            assert!(world.step());
            pauses.iter().for_each(|pause| world.pause_transfers(Nanos(*pause)));
            loop {
                if let Some(answer) = world.next_answer() {
                    break answer.at.since(before);
                }
                assert!(world.step(), "it ends");
            }
        });
        times.map(|time| time.0)
    };
    let (ide, sata) = (channel("ide0"), LinkSpec::sata_150("link"));
    let read = (READ, 1_024);
    let [plain, again] = took(&ide, read, &[]);
    // A pause before it is none of its business.
    let expected = takes(1_024 * 512, 50_000_000).0;
    assert!((expected..expected + 1_000_000).contains(&plain), "{plain}");
    assert_eq!(took(&ide, read, &[3_000_000]), [plain + 3_000_000, again]);
    assert_eq!(took(&ide, read, &[5, 3_000_000]), [plain + 3_000_005, again], "they add up");
    for (link, what) in [(&sata, read), (&ide, (WRITE, 1_024))] {
        assert_eq!(took(link, what, &[3_000_000]), took(link, what, &[]), "{what:?}");
    }
}

/// Links and buses are busy for their bytes, channels while a command has them, nobody longer than time.
#[test]
fn utilisation_adds_up() {
    let links = [channel("ide0"), channel("ide1"), LinkSpec::sata_150("link"), channel("unused")];
    let spec = PathSpec {
        links: links.to_vec(),
        routes: vec![vec![0], vec![1], vec![2]],
        host: Vec::new(),
    };
    let mut pci = LinkSpec::pci_32_33("pci").with_overhead(Nanos::ZERO);
    pci.turn = Nanos::ZERO;
    let spec = spec.behind(pci).behind(LinkSpec::memory("memory", 300_000_000));
    for op in [READ, WRITE] {
        let mut world = world(&disk(), Level::Raid0, 3).with_paths(&spec).expect("can be");
        run(&mut world, op, (9, 900), |index| (index * 7 % 900 * CHUNK, CHUNK));
        let elapsed = world.now().since(Time::ZERO);
        let (all, third) = (900 * CHUNK * 512, 300 * CHUNK * 512);
        let close = |name, expected: Nanos| {
            let got = busy(&world, name);
            assert!(got <= elapsed, "{name}: {got:?} of {elapsed:?}");
            assert!(got.0.abs_diff(expected.0) <= 900, "{name}: {got:?}, expected {expected:?}");
        };
        close("pci", takes(all, 100_000_000));
        close("memory", takes(all, 300_000_000));
        close("link", takes(third, 135_000_000) + Nanos(300 * 2_000));
        assert_eq!(busy(&world, "unused"), Nanos::ZERO);
        for name in ["ide0", "ide1"] {
            let got = busy(&world, name);
            assert!(takes(third, 50_000_000) <= got && got <= elapsed, "{name}: {got:?}");
        }
        let busiest = world.path_busy().into_iter().max_by_key(|(_, busy)| *busy);
        println!("{op:?}: {busiest:?} of {elapsed:?}");
    }
}

/// With one request outstanding a stripe reads a request's pieces and waits for all of them.
#[test]
fn firmware_raid_reads_slower_than_md_on_the_same_drives() {
    let firmware = ControllerSpec::ite8212_bios("card");
    // What is read ahead takes its time on the interface as well.
    let kind = disk_with(|figures| figures.link_rate = 90_000_000);
    let md = {
        let world = world(&kind, Level::Raid0, 4);
        stream(&mut world.with_queues(&Scheduler::Deadline.spec(1)), READ, 256, (8, 1_000))
    };
    let rate = |spec: &ControllerSpec| {
        let world = world(&kind, Level::Raid0, 4).with_controller(spec).expect("can be");
        stream(&mut world.with_queues(&Scheduler::Deadline.spec(1)), READ, 256, (8, 1_000))
    };
    let (one, many) = (rate(&firmware), rate(&firmware.clone().with_outstanding(32)));
    println!("md {md:.3e}, firmware {one:.3e}, with 32 outstanding {many:.3e}");
    assert!(one < 0.6 * md, "{one} against {md}");
    assert!(many > 1.3 * one, "{many} against {one}");
    // Random reads do not overlap at all.
    let random_rate = |spec: &ControllerSpec| {
        let world = world(&disk(), Level::Raid0, 4).with_controller(spec).expect("can be");
        random(&mut world.with_queues(&Scheduler::Noop.spec(1)), READ, (16, 400))
    };
    let single = random(&mut world(&disk(), Level::Linear, 1), READ, (1, 400));
    near(random_rate(&firmware), single, 0.1, "one at a time");
    assert!(random_rate(&firmware.with_outstanding(16)) > 2.5 * single);
}

/// A request's time at the controller, one after another; requests longer than the controller takes are cut.
#[test]
fn a_controller_takes_its_time_for_each_request() {
    let spec = ControllerSpec::ite8212_bios("card").with_outstanding(4);
    let spec = ControllerSpec { request: Nanos::from_millis(1), ..spec };
    let mut world = world(&quick(), Level::Raid0, 2).with_controller(&spec).expect("can be");
    world.start_record();
    // Far apart, so that nothing merges: 100 requests of 300 sectors are 200 of at most 256.
    let seconds = run(&mut world, READ, (8, 100), |index| (index * 4_096, 300));
    near(seconds, 0.200, 0.01, "200 requests of 1 ms");
    assert_eq!(world.path_busy(), [("card".to_string(), Nanos::from_millis(200))]);
    let sectors: u64 = world.record().iter().map(|io| u64::from(io.len)).sum();
    assert_eq!(sectors, 30_000);
}

/// Data of a write pass through firmware: it takes as long as the slower of the bus to the card and the channel
/// behind it. Written through, the drive gets them when the card has them: both times. So do reads.
#[test]
fn writes_through_firmware_take_the_bus_or_the_drive_whichever_is_slower() {
    let mean = |policy, bus: u64, op| {
        let card = ControllerSpec::ite8212_bios("card").with_writes(policy);
        let card = ControllerSpec { request: Nanos::ZERO, ..card };
        let mut pci = LinkSpec::pci_32_33("pci").with_overhead(Nanos::ZERO).with_rate(bus);
        pci.turn = Nanos::ZERO;
        let paths = PathSpec::shared(vec![channel("ide0")], &[0]).behind_host(pci);
        let plain = world(&quick(), Level::Linear, 1).with_controller(&card).expect("can be");
        let mut world = plain.with_paths(&paths).expect("can be");
        run(&mut world, op, (1, 100), |index| (index * 256, 256)) / 100.0
    };
    let at = |rate| 131_072.0 / rate as f64;
    let (fast, slow, ide) = (100_000_000, 20_000_000, 50_000_000);
    let near = |got: f64, expected: f64, what: &str| near(got, expected, 0.02, what);
    near(mean(WritePolicy::Pass, fast, WRITE), at(ide), "the channel");
    near(mean(WritePolicy::Pass, slow, WRITE), at(slow), "the bus");
    near(mean(WritePolicy::Through, fast, WRITE), at(ide) + at(fast), "one behind the other");
}

/// Written data under way are bounded: with room for one request, two channels are no faster than one.
#[test]
fn a_write_buffer_keeps_channels_from_working_side_by_side() {
    let rate = |write_buffer: Option<u64>, op| {
        let write_buffer = write_buffer.map(Sectors);
        let card =
            ControllerSpec::ite8212_bios("card").with_outstanding(8).with_longest(Sectors(CHUNK));
        let card = ControllerSpec { request: Nanos::ZERO, write_buffer, ..card };
        let plain = world(&quick(), Level::Raid0, 2).with_controller(&card).expect("can be");
        let mut world = plain.with_paths(&channels(&[0, 1])).expect("can be");
        stream(&mut world, op, CHUNK, (8, 400)) / MB
    };
    near(rate(None, WRITE), 100.0, 0.02, "two channels");
    near(rate(Some(2 * CHUNK), WRITE), 100.0, 0.02, "room for two");
    for room in [CHUNK, 2 * CHUNK - 1, CHUNK / 2] {
        near(rate(Some(room), WRITE), 50.0, 0.02, "room for one, or not even that");
    }
    near(rate(Some(CHUNK), READ), 100.0, 0.02, "reads need none");
}

/// Adjacent writes of 4 KiB to the media: when one is there its successor's place has just come by, so it takes
/// a turn and the 4 KiB. Posted writes and the drive's own cache take none.
#[test]
fn write_through_loses_a_turn_for_each_request() {
    let kind = disk_with(|figures| figures.command_overhead = Nanos::from_micros(10));
    let mean = |policy: WritePolicy| {
        let spec = ControllerSpec::smart_array_e200i("e200i", false).with_writes(policy);
        let spec = ControllerSpec { request: Nanos::ZERO, ..spec };
        let mut world = world(&kind, Level::Linear, 1).with_controller(&spec).expect("can be");
        run(&mut world, WRITE, (1, 1), |_| (0, 8));
        // Within one track: 60 MB/s make over 600 KiB of a turn.
        run(&mut world, WRITE, (1, 100), |index| (8 + index * 8, 8)) / 100.0
    };
    let turn = 60.0 / 5_400.0;
    near(mean(WritePolicy::Through), turn + 4_096.0 / 65e6, 0.01, "a turn");
    let posted = WritePolicy::Posted { capacity: Sectors(8_192), extents: 64 };
    for policy in [posted, WritePolicy::Pass] {
        let mean = mean(policy);
        assert!(mean < 0.02 * turn, "{policy:?}: {mean}");
    }
}

/// Small adjacent writes to parity: posted they come to the media as full stripes, written through each is a
/// read-modify-write. A flush waits for nothing; a cache that is full is as fast as the media.
#[test]
fn a_cache_with_battery_gathers_what_is_written() {
    let kind = disk();
    let world = |has_battery, capacity| {
        let mut spec = ControllerSpec::smart_array_e200i("e200i", has_battery);
        if let WritePolicy::Posted { extents, .. } = spec.writes {
            spec.writes = WritePolicy::Posted { capacity: Sectors(capacity), extents };
        }
        world(&kind, Level::Raid5, 4).with_controller(&spec).expect("can be")
    };
    let mut posted = world(true, 16_384);
    let fast = stream(&mut posted, WRITE, 8, (1, 1_000));
    assert!(fast > 20.0 * MB, "4 KiB in the controller's 0.1 ms each: {fast}");
    let flush = run(&mut posted, IoOp::Flush, (1, 1), |_| (0, 0));
    assert!(flush < 0.001, "a flush waits for nothing: {flush} s");
    // Read back from the cache, before it comes to the media.
    let mut fresh = world(true, 16_384);
    run(&mut fresh, WRITE, (1, 1), |_| (0, 2_048));
    let reads = fresh.member_totals().reads;
    run(&mut fresh, READ, (1, 1), |_| (1_024, 1_024));
    assert_eq!(fresh.member_totals().reads, reads, "the cache holds it");
    while posted.step() {}
    let totals = posted.member_totals();
    assert_eq!(totals.bytes_written % 512, 0);
    let share = totals.bytes_written as f64 / (1_000.0 * 4_096.0);
    assert!((1.3..1.6).contains(&share), "a third more for parity: {share}");
    let mut through = world(false, 0);
    let slow = stream(&mut through, WRITE, 8, (1, 200));
    assert!(fast > 50.0 * slow, "{slow} written through");
    let more = through.member_totals().bytes_written as f64 / (200.0 * 4_096.0);
    near(more, 2.0, 1e-9, "each write is one of data and one of parity");
    // Far beyond the cache: at the pace of the media, on which each chunk loses a turn.
    let mut full = world(true, 2_048);
    let sustained = stream(&mut full, WRITE, 256, (8, 1_600));
    let most = (3 * CHUNK * 512) as f64 / (60.0 / 5_400.0);
    assert!((0.5 * most..most).contains(&sustained), "{sustained}, at most {most}");
}

/// The controller computes parity at its own rate, the host's CPU does nothing for it.
#[test]
fn a_controller_computes_parity_itself() {
    let spec = ControllerSpec::smart_array_e200i("e200i", false);
    let mut own = world(&quick(), Level::Raid5, 4).with_controller(&spec).expect("can be");
    stream(&mut own, WRITE, 3 * CHUNK, (1, 100));
    let computed = busy(&own, "e200i parity");
    assert!(computed >= takes(100 * 3 * CHUNK * 512, 200_000_000), "{computed:?}");
    let spec = ControllerSpec { parity_rate: None, ..spec };
    let mut host = world(&quick(), Level::Raid5, 4).with_controller(&spec).expect("can be");
    stream(&mut host, WRITE, 3 * CHUNK, (1, 100));
    assert!(!host.path_busy().iter().any(|(name, _)| name.contains("parity")));
    assert!(host.now() < own.now());
}

/// What lies between host and controller is passed once, whatever the array makes of a request.
#[test]
fn the_way_to_a_controller_is_passed_once() {
    let routes = vec![Vec::new(); 2];
    let spec = PathSpec { routes, ..PathSpec::default() };
    let spec = spec.behind_host(LinkSpec::pci_32_33("pci").with_overhead(Nanos::ZERO));
    for op in [READ, WRITE] {
        let card = ControllerSpec::bios_mirror("card").with_outstanding(8);
        let plain = world(&quick(), Level::Raid1, 2).with_controller(&card).expect("can be");
        let mut world = plain.with_paths(&spec).expect("can be");
        near(stream(&mut world, op, 256, (8, 400)), 100.0 * MB, 0.02, &format!("{op:?}"));
        let passed = busy(&world, "pci");
        assert!(passed.0.abs_diff(takes(400 * 256 * 512, 100_000_000).0) <= 1_000, "{passed:?}");
    }
}

/// What a controller cannot carry out, the array refuses, and what it has no business with passes it by.
#[test]
fn requests_that_cannot_be_are_refused_behind_a_controller() {
    let spec = ControllerSpec::smart_array_e200i("e200i", true);
    let mut world = world(&disk(), Level::Raid0, 2).with_controller(&spec).expect("can be");
    let end = world.array().capacity().0;
    for (op, at, outcome) in [
        (WRITE, end, Outcome::OutOfRange),
        (READ, u64::MAX - 4, Outcome::OutOfRange),
        (IoOp::WriteZeroes, 0, Outcome::Done),
        (IoOp::Flush, 0, Outcome::Done),
    ] {
        let len = if op == IoOp::Flush { 0 } else { 8 };
        let id = world.submit(op, Sector(at), Sectors(len), false);
        let answer = std::iter::from_fn(|| world.step().then(|| world.next_answer()));
        let answer = answer.flatten().next().expect("an answer");
        assert_eq!((answer.id, answer.outcome), (id, outcome), "{op:?}");
    }
}

/// Pieces are whole blocks of the array, whatever the controller's longest request.
#[test]
fn requests_to_raid3_are_cut_at_its_blocks() {
    let card = ControllerSpec::ite8212_bios("card").with_longest(Sectors(100));
    let plain = world(&disk(), Level::Raid3, 9);
    let mut cut = plain.with_controller(&card).expect("can be");
    assert_eq!(cut.array().logical_block(), 8, "100 is no multiple");
    run(&mut cut, READ, (1, 1), |_| (0, 800));
    run(&mut cut, WRITE, (1, 1), |_| (8, 800));
    // Nor does a request queue cut them elsewhere, put there before or after the controller.
    let queue = QueueSpec { longest: Sectors(100), ..Scheduler::Deadline.spec(1) };
    let card = card.with_longest(Sectors(4_096));
    let before = world(&disk(), Level::Raid3, 9).with_queues(&queue).with_controller(&card);
    let after = world(&disk(), Level::Raid3, 9).with_controller(&card);
    for mut world in [before.expect("can be"), after.expect("can be").with_queues(&queue)] {
        run(&mut world, READ, (1, 1), |_| (0, 800));
    }
}

/// A scheduler in front of the one disk that waits for a process's next read is woken when that does not come.
#[test]
fn the_scheduler_stands_above_the_array() {
    let card = ControllerSpec::ite8212_bios("card").with_scheduler(Scheduler::Anticipatory);
    let mut world = world(&disk(), Level::Raid0, 2).with_controller(&card).expect("can be");
    let far = world.array().capacity().0 / 256 * 128;
    for (process, at) in [(1, 0), (1, 8), (1, 16)] {
        world.submit_for(process, READ, Sector(at), Sectors(8), false);
        while world.next_answer().is_none() {
            assert!(world.step());
        }
    }
    let since = world.now();
    world.submit_for(2, READ, Sector(far), Sectors(8), false);
    let answer = loop {
        if let Some(answer) = world.next_answer() {
            break answer;
        }
        assert!(world.step(), "the scheduler waits for ever");
    };
    let waited = answer.at.since(since);
    assert!(waited >= Nanos::from_millis(6), "process 1 was waited for: {waited:?}");
}

#[test]
fn raid3_reads_no_two_things_at_once() {
    let reads =
        |level, members, depth| random(&mut world(&disk(), level, members), READ, (depth, 400));
    let alone = reads(Level::Raid3, 5, 1);
    let gain = reads(Level::Raid3, 5, 16) / alone;
    let striped = reads(Level::Raid0, 4, 16) / reads(Level::Raid0, 4, 1);
    println!("16 at once: raid3 {gain:.2}, raid0 {striped:.2} times one at a time");
    assert!(gain < 1.3 && striped > 2.5, "{gain} and {striped}");
}

#[test]
fn linear_is_as_fast_as_the_member_that_holds_the_files() {
    let spec = channels(&[0, 0]);
    let one = PathSpec { routes: vec![vec![0]], ..spec.clone() };
    for op in [READ, WRITE] {
        let linear = world(&disk(), Level::Linear, 2);
        let single = world(&disk(), Level::Linear, 1);
        let linear = stream(&mut linear.with_paths(&spec).expect("can be"), op, 256, (4, 300));
        let single = stream(&mut single.with_paths(&one).expect("can be"), op, 256, (4, 300));
        assert_eq!(linear.to_bits(), single.to_bits(), "{op:?}");
    }
}

#[test]
fn mirrors_in_turn_do_not_double_one_stream() {
    let kind = disk_with(|figures| figures.segment = Sectors(256));
    let rate = |members, policy| {
        let level = if members == 1 { Level::Linear } else { Level::Raid1 };
        let mut config = config_of(&kind, &layout(level, members));
        if members > 1 {
            config.read_policy = policy;
        }
        stream(&mut world_of(&kind, &config), READ, 256, (2, 600))
    };
    let policy = ReadPolicy::GmirrorRoundRobin;
    let (single, mirror) = (rate(1, policy), rate(2, policy));
    println!("single {single:.3e}, in turn {mirror:.3e}");
    assert!(mirror < 1.2 * single, "{mirror} against {single}");
    // Two streams, each on a copy of its own, do double.
    let mut two = world_of(&kind, &config_of(&kind, &layout(Level::Raid0, 2)));
    assert!(stream(&mut two, READ, 512, (4, 300)) > 1.6 * single);
}

#[test]
fn a_drive_added_later_takes_the_place_of_the_other_on_its_path() {
    let spec = channels(&[0, 1]);
    let mut world = world(&disk(), Level::Raid1, 2).with_paths(&spec).expect("can be");
    world.fail(raidlab_core::MemberIndex(1));
    run(&mut world, WRITE, (1, 50), |index| (index * 8, 8));
    let before = busy(&world, "ide1");
    world.add(raidlab_core::MemberIndex(1), Drive::new(&disk(), 7)).expect("fits");
    run(&mut world, WRITE, (1, 50), |index| (index * 8, 8));
    assert!(busy(&world, "ide1") > before);
}

#[test]
fn paths_and_controllers_that_cannot_be_are_refused() {
    let reason = |spec: &PathSpec| {
        let error = world(&disk(), Level::Raid0, 3).with_paths(spec).expect_err("cannot be");
        assert_eq!(error.kind(), SimErrorKind::Paths);
        error.to_string()
    };
    let good = channels(&[0, 0, 1]);
    assert_eq!(good.check(3), Ok(()));
    assert!(reason(&channels(&[0, 0])).contains("2 routes for 3 drives"));
    assert!(reason(&channels(&[0, 0, 0])).contains("ide0: 3 drives; a PATA channel takes 2"));
    assert!(reason(&channels(&[0, 0, 2])).contains("link 2 of 2"));
    let twice = PathSpec::shared(vec![channel("a"), channel("a")], &[0, 0, 1]);
    assert!(reason(&twice).contains("two links are called `a`"));
    let crossed = PathSpec { routes: vec![vec![0, 1], vec![1], vec![0]], ..good.clone() };
    assert!(reason(&crossed).contains("passes two PATA channels"));
    let slow = PathSpec::shared(vec![channel("a").with_rate(10), channel("b")], &[0, 0, 1]);
    assert!(reason(&slow).contains("rate: a: 10 bytes/s"));
    let link = LinkSpec::sata_150("l").with_switch(Nanos(1));
    assert!(reason(&PathSpec::shared(vec![link], &[0, 0, 0])).contains("only a PATA channel"));
    let error = good.without("pci").expect_err("not there");
    assert!(error.to_string().contains("there are: ide0, ide1"), "{error}");

    let card = ControllerSpec::bios_mirror("card");
    for (spec, reason) in [
        (card.clone().with_outstanding(0), "outstanding"),
        (card.clone().with_longest(Sectors(1)), "longest"),
        (card.with_writes(WritePolicy::Posted { capacity: Sectors(8), extents: 1 }), "capacity"),
    ] {
        let error = world(&disk(), Level::Raid0, 3).with_controller(&spec).expect_err("cannot be");
        assert_eq!(error.kind(), SimErrorKind::Controller);
        assert!(error.to_string().contains(reason), "{error}");
    }
}
