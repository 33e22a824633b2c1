//! Worlds against what follows from their parts.

#[path = "../examples/processes.rs"]
mod processes_example;

use raidlab_core::contract::{IoOp, Outcome};
use raidlab_core::{Config, Consistency, Layout, Level, MemberIndex, Nanos, Sector, Sectors, Time};
use raidlab_models::{
    DriveKind, DriveOp, HardDisk, HardDiskFigures, HardDiskSpec, Scheduler, load,
};
use raidlab_sim::{Answer, DriveRequest, HostCosts, SimErrorKind, World};

fn spec() -> HardDiskSpec {
    let DriveKind::HardDisk(spec) = load("nas-8tb-7200").expect("built in").kind else { panic!() };
    spec
}

fn world(layout: Layout, seed: u64) -> World {
    let spec = spec();
    let drives: Vec<_> =
        (0..u64::from(layout.members)).map(|m| HardDisk::new(&spec, seed * 100 + m)).collect();
    let size = drives[0].capacity();
    World::new(&Config::uniform(layout, size), drives, HostCosts::default()).expect("fits")
}

fn one(world: &mut World, op: IoOp, at: u64, len: u64) -> Answer {
    world.submit(op, Sector(at), Sectors(len), false);
    loop {
        if let Some(answer) = world.next_answer() {
            return answer;
        }
        assert!(world.step(), "a request is always answered");
    }
}

/// 200 requests at places drawn from the seed; the times of the answers.
fn run(layout: Layout, op: IoOp, seed: u64) -> (Vec<Time>, u64) {
    let mut world = world(layout, seed);
    let places = world.array().capacity().0 / 8;
    let mut state = seed + 1;
    let times = (0..200)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let answer = one(&mut world, op, (state >> 11) % places * 8, 8);
            assert_eq!(answer.outcome, Outcome::Done);
            answer.at
        })
        .collect();
    (times, world.member_requests())
}

#[test]
fn the_same_seed_gives_the_same_times() {
    for level in [Level::Raid0, Level::Raid1, Level::Raid5, Level::Raid10] {
        let layout = Layout::new(level, 4);
        for op in [IoOp::Read, IoOp::Write] {
            assert_eq!(run(layout.clone(), op, 3), run(layout.clone(), op, 3));
        }
        // Few writes show nothing of the seed: the drives' buffers take them all.
        let read = |seed| run(layout.clone(), IoOp::Read, seed).0;
        assert_ne!(read(3), read(4));
    }
}

#[test]
fn member_requests_follow_the_level() {
    let count = |layout, op| run(layout, op, 1).1;
    let raid5 = Layout::new(Level::Raid5, 5);
    assert_eq!(count(Layout::new(Level::Raid0, 4), IoOp::Write), 200);
    assert_eq!(count(Layout::new(Level::Raid1, 3), IoOp::Write), 600);
    assert_eq!(count(Layout::new(Level::Raid10, 4), IoOp::Write), 400);
    assert_eq!(count(raid5.clone(), IoOp::Read), 200);
    assert_eq!(count(raid5, IoOp::Write), 800, "a small write is four");
}

#[test]
fn a_lost_member_is_computed_from_the_others() {
    let mut world = world(Layout::new(Level::Raid5, 5), 1);
    world.start_record();
    world.fail(MemberIndex(0));
    assert_eq!(one(&mut world, IoOp::Read, 0, 8).outcome, Outcome::Done);
    let members: Vec<_> = world.record().iter().map(|io| (io.op, io.member.0)).collect();
    assert_eq!(members, [1, 2, 3, 4].map(|m| (IoOp::Read, m)));
}

#[test]
fn the_cpu_takes_its_time_and_one_thing_after_another() {
    let costs = HostCosts { request: Nanos::from_millis(50), parity_rate: 1 << 30 };
    let spec = spec();
    let drives: Vec<_> = (0..3).map(|m| HardDisk::new(&spec, m)).collect();
    let config = Config::uniform(Layout::new(Level::Raid5, 3), drives[0].capacity());
    let mut world = World::new(&config, drives, costs).expect("fits");
    // Two requests of 50 ms CPU each, then 2 MiB of parity operands at 1 GiB/s for a full stripe.
    world.submit(IoOp::Read, Sector(0), Sectors(8), false);
    world.submit(IoOp::Write, Sector(0), Sectors(2048), false);
    while world.step() {}
    let answers: Vec<_> = std::iter::from_fn(|| world.next_answer()).collect();
    assert_eq!(answers.len(), 2);
    assert!(answers[1].at >= Time(100_000_000));
    assert_eq!(world.cpu_busy(), Nanos(100_000_000 + 976_562), "1 MiB of operands: 1/1024 s");
}

#[test]
fn more_requests_than_the_array_takes_are_all_answered() {
    let mut world = world(Layout::new(Level::Raid0, 4), 1);
    for index in 0..1000 {
        world.submit(IoOp::Read, Sector(index * 8), Sectors(8), false);
    }
    while world.step() {}
    let done = std::iter::from_fn(|| world.next_answer());
    assert_eq!(done.filter(|answer| answer.outcome == Outcome::Done).count(), 1000);
}

#[test]
fn drives_that_do_not_fit_are_refused() {
    let config = Config::uniform(Layout::new(Level::Raid0, 2), Sectors(1 << 40));
    let drives: Vec<_> = (0..2).map(|m| HardDisk::new(&spec(), m)).collect();
    let one_drive = vec![drives[0].clone()];
    let error = World::new(&config, drives, HostCosts::default()).expect_err("too small");
    assert_eq!(error.kind(), SimErrorKind::Drives);
    let error = World::new(&config, one_drive, HostCosts::default()).expect_err("too few");
    assert!(error.to_string().contains("1 drives for 2 members"), "{error}");
}

#[test]
fn members_are_counted_idle_time_passes_and_work_takes_the_cpu() {
    let mut world = world(Layout::new(Level::Raid5, 5), 1);
    one(&mut world, IoOp::Write, 0, 8);
    let totals = world.member_totals();
    assert_eq!((totals.reads, totals.writes), (2, 2), "old data and parity, new data and parity");
    assert_eq!((totals.bytes_read, totals.bytes_written), (8_192, 8_192));
    while world.step() {}
    let now = world.now();
    assert_eq!(world.next_at(), None);
    assert!(world.idle_until(Time::ZERO) && world.now() == now, "times gone by are now");
    assert!(world.idle_until(now + Nanos::from_millis(3)));
    assert_eq!(world.now(), now + Nanos::from_millis(3));
    let busy = world.cpu_busy();
    let done = world.work(Nanos::from_millis(2));
    assert_eq!((done, world.cpu_free()), (now + Nanos::from_millis(5), done));
    assert_eq!(world.cpu_busy(), busy + Nanos::from_millis(2));
    world.submit(IoOp::Read, Sector(0), Sectors(8), false);
    let next = world.next_at().expect("a request arrives");
    assert!(next >= done && !world.idle_until(next), "what happens is not passed over");
    assert!(world.step() && world.now() == next);
}

/// What processes need goes past the core that has requests to work on, as long as another is free no later.
#[test]
fn requests_take_the_first_core_and_processes_the_others() {
    let mut world = world(Layout::new(Level::Raid0, 2), 1);
    world.set_cores(3);
    let (ms, busy) = (Nanos::from_millis, |world: &World| world.cores_busy().collect::<Vec<_>>());
    let ends = [5, 4, 3, 3].map(|cost| world.work(ms(cost)));
    assert_eq!(
        ends,
        [5, 4, 3, 6].map(|end| Time::ZERO + ms(end)),
        "the last that is idle is first"
    );
    assert_eq!(busy(&world), [ms(6), ms(4), ms(5)]);
    let request = HostCosts::default().request;
    world.submit(IoOp::Read, Sector(0), Sectors(8), false);
    assert_eq!(world.cpu_free(), Time::ZERO + ms(6) + request, "though others are free before");
    assert_eq!(world.cpu_busy(), ms(15) + request);
}

#[test]
fn what_is_laid_out_costs_the_drives_nothing_and_can_be_read_then() {
    let mut world = world(Layout::new(Level::Raid5, 5), 1);
    assert!(world.prefill(true));
    let before = world.now();
    for index in 0..100 {
        assert_eq!(one(&mut world, IoOp::Write, index * 999, 1_000).outcome, Outcome::Done);
    }
    assert_eq!(one(&mut world, IoOp::Flush, 0, 0).outcome, Outcome::Done);
    // The CPU has worked on requests and parity; no disk has turned.
    let took = world.now().since(before);
    assert!(took < Nanos::from_millis(40), "{took:?}");
    assert!((0..5).all(|member| world.drive_busy(MemberIndex(member)) == Nanos::ZERO));
    assert!(!world.prefill(false));
    let answer = one(&mut world, IoOp::Read, 5_000, 8);
    assert_eq!(answer.outcome, Outcome::Done);
    assert!(answer.at.since(before) > took + Nanos::from_millis(1), "a disk had to move");
}

#[test]
fn nothing_is_laid_out_over_requests_rebuilds_or_what_remembers_writes() {
    let mut busy = world(Layout::new(Level::Raid1, 2), 1);
    busy.submit(IoOp::Read, Sector(0), Sectors(8), false);
    while busy.member_requests() == 0 {
        assert!(busy.step());
    }
    assert!(!busy.prefill(true), "a read is under way");
    let mut rebuilds = world(Layout::new(Level::Raid1, 2), 1);
    rebuilds.fail(MemberIndex(0));
    assert!(rebuilds.prefill(true), "without a member, but at rest");
    rebuilds.prefill(false);
    rebuilds.add(MemberIndex(0), HardDisk::new(&spec(), 7)).expect("fits");
    assert!(!rebuilds.prefill(true), "it rebuilds");
    let ssd = load("ssd-sata-1tb").expect("built in");
    let drives = vec![raidlab_models::Drive::new(&ssd.kind, 1)];
    let config = Config::uniform(Layout::new(Level::Linear, 1), drives[0].capacity());
    let mut ssd = World::new(&config, drives, HostCosts::default()).expect("fits");
    assert!(!ssd.prefill(true), "an SSD knows what was written");
}

/// A line for each request that a drive got, merged by its queue: what the members moved, in the order of its ends.
#[test]
fn a_trace_has_what_drives_got() {
    let layout: Layout = "raid1(2)".parse().expect("is a layout");
    let world = world(layout, 1);
    let mut world = world.with_queues(&Scheduler::MqDeadline.spec(1));
    one(&mut world, IoOp::Write, 4096, 8);
    world.start_trace();
    for piece in 0..4 {
        world.submit(IoOp::Write, Sector(8 * piece), Sectors(8), false);
    }
    world.submit(IoOp::Flush, Sector(0), Sectors(0), false);
    while world.step() {}
    let traced: Vec<DriveRequest> = std::iter::from_fn(|| world.next_traced()).collect();
    let of = |drive: u16, op: DriveOp| {
        let is_it = move |one: &&DriveRequest| one.drive == drive && one.io.op == op;
        traced.iter().filter(is_it).collect::<Vec<_>>()
    };
    for drive in [0, 1] {
        let writes = of(drive, DriveOp::Write);
        let sectors: u32 = writes.iter().map(|one| one.io.len).sum();
        assert_eq!(sectors, 32, "{writes:?}");
        assert!(
            writes.len() < 4,
            "the drive takes one at a time, so what waits is merged: {writes:?}"
        );
        assert!(
            writes.iter().all(|one| one.depth == 0 && one.succeeded && one.ended > one.arrived)
        );
        assert_eq!(of(drive, DriveOp::Flush).len(), 1);
    }
    assert!(traced.is_sorted_by_key(|one| one.ended));
    let first = traced.iter().find(|one| one.drive == 1).expect("a request");
    let text = first.to_string();
    let words: Vec<&str> = text.split(' ').collect();
    let (arrived, ended) = (first.arrived.0.to_string(), first.ended.0.to_string());
    assert_eq!(words, [&arrived, &ended, "1", "W", "0", "4096", "0"]);
}

/// As mdadm makes an array of 8 TB drives: superblock and bitmap of each member lie in front of its data.
#[test]
fn records_of_md_lie_in_front_of_the_data() {
    let layout: Layout = "raid1(2)".parse().expect("is a layout");
    let front = Sectors(264_192);
    let made = |room: u64| {
        let drives: Vec<_> = (0..2).map(|seed| HardDisk::new(&spec(), seed)).collect();
        let mut config = Config::uniform(layout.clone(), Sectors(drives[0].capacity().0 - room));
        config.settings.consistency = Consistency::Bitmap { chunk: Sectors(64 << 11) };
        World::new(&config, drives, HostCosts::default())
    };
    let mut world = made(1 << 20).expect("fits").with_data_from(front).expect("fits");
    world.start_trace();
    one(&mut world, IoOp::Write, 4096, 8);
    one(&mut world, IoOp::Flush, 0, 0);
    while world.step() {}
    let traced: Vec<DriveRequest> = std::iter::from_fn(|| world.next_traced()).collect();
    let written = |drive: u16| {
        let own = traced.iter().filter(|one| one.drive == drive && one.io.op == DriveOp::Write);
        let mut places: Vec<u64> = own.map(|one| one.io.at.0).collect();
        places.sort_unstable();
        places.dedup();
        places
    };
    assert_eq!([written(0), written(1)], [[8, 16, front.0 + 4096]; 2].map(Vec::from));
    let full = made(1 << 17).expect("fits with its records").with_data_from(front);
    assert_eq!(full.expect_err("is too large").kind(), SimErrorKind::Drives);
}

/// Bits all over the drives take a write of their 4 KiB each time, of a member, not one for each 64 of them.
#[test]
fn bits_of_md_are_cleared_by_the_block() {
    let drives: Vec<_> = (0..2).map(|seed| HardDisk::new(&spec(), seed)).collect();
    let layout: Layout = "raid1(2)".parse().expect("is a layout");
    let mut config = Config::uniform(layout, Sectors(drives[0].capacity().0 - (1 << 20)));
    let chunk = 128 << 11;
    config.settings.consistency = Consistency::Bitmap { chunk: Sectors(chunk) };
    config.settings.packed_bitmap = true;
    // No look before all of them are set.
    config.settings.bitmap_delay = Nanos(60_000_000_000);
    let front = Sectors(264_192);
    let world = World::new(&config, drives, HostCosts::default()).expect("fits");
    let mut world = world.with_data_from(front).expect("fits");
    for page in 0..600 {
        one(&mut world, IoOp::Write, page * 64 * chunk, 8);
    }
    world.start_trace();
    while world.step() {}
    let traced: Vec<DriveRequest> = std::iter::from_fn(|| world.next_traced()).collect();
    let of_bitmap = traced.iter().filter(|one| {
        let io = one.io;
        one.drive == 0 && io.op == DriveOp::Write && (16..front.0).contains(&io.at.0)
    });
    let places: Vec<u64> = of_bitmap.map(|one| one.io.at.0).collect();
    assert_eq!(places, [16, 24], "480 pages in the first 4 KiB, behind the head, and the others");
}

/// The log of partial parity lies there, too, where mdadm keeps 1 MiB for it: behind the data each write would cost a
/// seek to the other end of the drive.
#[test]
fn partial_parity_lies_in_front_of_the_data() {
    let front = Sectors(264_192);
    let drives: Vec<_> = (0..3).map(|seed| HardDisk::new(&spec(), seed)).collect();
    let layout: Layout = "raid5(3) chunk=64K".parse().expect("is a layout");
    let mut config = Config::uniform(layout, Sectors(drives[0].capacity().0 - (1 << 20)));
    config.settings.consistency = Consistency::PartialParity { slots: 128 };
    let world = World::new(&config, drives, HostCosts::default()).expect("fits");
    let mut world = world.with_data_from(front).expect("fits");
    world.start_trace();
    for request in 0..200 {
        one(&mut world, IoOp::Write, request * 1024, 8);
    }
    let traced: Vec<DriveRequest> = std::iter::from_fn(|| world.next_traced()).collect();
    let written = traced.iter().filter(|one| one.io.op == DriveOp::Write);
    let (log, data): (Vec<u64>, Vec<u64>) =
        written.map(|one| one.io.at.0).partition(|at| *at < front.0);
    assert!(log.len() >= 200 && log.iter().all(|at| (8..16 + 2048).contains(at)), "{log:?}");
    assert!(data.iter().all(|at| *at < front.0 + (1 << 20)), "{data:?}");
}

/// A spare must have room for what lies in front of the data, too.
#[test]
fn a_spare_has_room_for_the_records_in_front() {
    let drive = |sectors: u64| {
        let figures = HardDiskFigures { capacity: Sectors(sectors), ..spec().figures().clone() };
        HardDisk::new(&HardDiskSpec::new(figures).expect("possible"), 7)
    };
    let capacity = spec().figures().capacity.0;
    let (front, area) = (Sectors(264_192), 1 << 14);
    let room = front.0 + area;
    let drives: Vec<_> = (0..2).map(|_| drive(capacity)).collect();
    let mut config =
        Config::uniform("raid1(2)".parse().expect("is a layout"), Sectors(capacity - room));
    config.settings.consistency = Consistency::Resync;
    let world = World::new(&config, drives, HostCosts::default()).expect("fits");
    let mut world = world.with_data_from(front).expect("fits");
    world.add_spare(drive(capacity)).expect("as large as the others");
    // Large enough for data and records, if these were not behind what lies in front.
    let refused = world.add_spare(drive(capacity - area)).expect_err("too small");
    assert_eq!(refused.kind(), SimErrorKind::Drives);
    assert_eq!(world.spares(), 1);
    world.fail(MemberIndex(0));
    assert_eq!(world.spares(), 0, "the first takes the place");
}
