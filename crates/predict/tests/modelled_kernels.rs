//! Kernels, filesystems and processors of the modelled host: what each mechanism does to times.

use raidlab_core::contract::IoOp;
use raidlab_core::{Config, Layout, Level, MemberIndex, Nanos, Sectors, Time};
use raidlab_models::host::{DirtyLimit, FilesystemKind, FilesystemSpec, Kernel, Mechanism};
use raidlab_models::{Drive, HostSpec, LinkSpec, PathSpec, Scheduler, load};
use raidlab_predict::host::{HostRun, run};
use raidlab_sim::{HostCosts, World};
use raidlab_workload::{
    Content, FileDescriptor, FilePath, Memory, Op, OpResult, OpenFlags, Plan, Planned, Process,
};

const MIB: u64 = 1 << 20;
const KIB: u64 = 1 << 10;
const S: FileDescriptor = FileDescriptor(0);

#[derive(Debug)]
struct Script(std::vec::IntoIter<Op>);

impl Process for Script {
    fn next(&mut self, _now: Time, _last: OpResult) -> Op {
        self.0.next().unwrap_or(Op::Done)
    }
}

fn script(ops: Vec<Op>) -> Planned {
    Planned { copy: 0, process: Box::new(Script(ops.into_iter())) }
}

fn layout(level: Level, members: u16) -> Layout {
    let layout = Layout::new(level, members);
    Layout { chunk: if layout.chunk.0 > 0 { Sectors(128) } else { layout.chunk }, ..layout }
}

fn single() -> Layout {
    layout(Level::Linear, 1)
}

fn world(layout: &Layout, kernel: Kernel) -> World {
    world_with(layout, kernel.scheduler())
}

fn world_with(layout: &Layout, scheduler: Scheduler) -> World {
    let drive = load("pata-80gb-7200").expect("built in");
    let drives: Vec<_> =
        (0..u64::from(layout.members)).map(|member| Drive::new(&drive.kind, member)).collect();
    let config = Config::uniform(layout.clone(), drives[0].capacity());
    let world = World::new(&config, drives, HostCosts::default()).expect("fits");
    world.with_queues(&scheduler.spec(1))
}

fn on(layout: &Layout, host: &HostSpec, plan: Plan) -> HostRun {
    run(&mut world(layout, host.kernel), host, plan).expect("runs")
}

fn path(index: u64) -> FilePath {
    FilePath::target(format!("d{index}/file"))
}

fn open(index: u64, flags: OpenFlags) -> Op {
    Op::Open { fd: S, path: path(index), flags }
}

fn write(len: u64, times: u64) -> Op {
    Op::Write { fd: S, len, content: Content::Zeroes, times }
}

fn read(len: u64, times: u64) -> Op {
    Op::Read { fd: S, len, times }
}

/// One file of each process in a directory of its own.
fn made(index: u64, bytes: u64) -> Vec<Op> {
    let mkdir = Op::Mkdir { path: FilePath::target(format!("d{index}")) };
    vec![
        mkdir,
        open(index, OpenFlags::WRITE),
        write(64 * KIB, bytes / (64 * KIB)),
        Op::Close { fd: S },
    ]
}

/// Several processes read a file each, by 64 KiB.
fn readers(processes: u64, bytes: u64) -> Plan {
    let one =
        |index| script([open(index, OpenFlags::READ), read(64 * KIB, bytes / (64 * KIB))].into());
    Plan {
        prepare: (0..processes).map(|index| script(made(index, bytes))).collect(),
        // Without barriers, drives still hold what was written; idle, they write it.
        warm: vec![script(vec![Op::Sleep(Nanos::from_millis(2_000))])],
        run: (0..processes).map(one).collect(),
        ..Plan::default()
    }
}

fn seconds(run: &HostRun) -> f64 {
    run.record.last_done().as_secs()
}

fn old() -> HostSpec {
    HostSpec { memory: 256 * MIB, ..Kernel::Linux2_6_12.spec() }
}

#[test]
fn a_stripe_reads_like_one_disk_unless_the_window_spans_it() {
    let bytes = 400 * MIB;
    let one = on(&single(), &old(), readers(1, bytes));
    assert_eq!(one.host.read_ahead, Some(128 * KIB));
    let stripe = Layout::new(Level::Raid0, 4);
    let wide = on(&stripe, &old(), readers(1, bytes));
    assert_eq!(wide.host.read_ahead, Some(4 * MIB), "two stripes of 4 x 512 KiB");
    let narrow = on(&stripe, &old().without(Mechanism::ArrayReadAhead), readers(1, bytes));
    assert_eq!(narrow.host.read_ahead, Some(128 * KIB));
    let gain = |run: &HostRun| seconds(&one) / seconds(run);
    // Two windows of 128 KiB, and drives that wait read ahead into segments of 256 KiB: where chunks of
    // 512 KiB meet, two drives work.
    assert!((1.2..1.6).contains(&gain(&narrow)), "{}", gain(&narrow));
    assert!((2.9..4.0).contains(&gain(&wide)), "{}", gain(&wide));
    // With one stripe in a window, two of the drives work; with two, all do.
    let of = |read_ahead| {
        let host = HostSpec { read_ahead: Some(read_ahead), ..old() };
        seconds(&on(&stripe, &host, readers(1, bytes)))
    };
    assert!(of(MIB) > of(4 * MIB) && of(512 * KIB) > of(MIB));
}

/// Marks are seen on pages that are being read, so that two windows are under way: a reader of a stripe keeps
/// both drives busy, where waiting for each window first leaves it little more than one.
#[test]
fn one_reader_of_a_stripe_of_two_has_both_drives_read() {
    let bytes = 200 * MIB;
    let took = |layout: &Layout, host: &HostSpec| seconds(&on(layout, host, readers(1, bytes)));
    let stripe = layout(Level::Raid0, 2);
    for kernel in [Kernel::Linux2_6_12, Kernel::Linux2_6_27] {
        let host = HostSpec { memory: 256 * MIB, ..kernel.spec() };
        // As wide as md has it from two drives with chunks of 64 KiB: two stripes.
        let wide = HostSpec { read_ahead: Some(256 * KIB), ..host };
        let gain = took(&single(), &host) / took(&stripe, &wide);
        assert!(gain > 1.6, "{kernel}: {gain}");
    }
}

/// A quarter of the journal makes a transaction: with a small one, those who make files wait for commits; all
/// of them get there.
#[test]
fn makers_of_small_files_wait_for_a_small_journal() {
    let files = |process: u64, most| {
        let path = move |file| FilePath::target(format!("d{process}/{file}"));
        let make = move |file| {
            let open = Op::Open { fd: S, path: path(file), flags: OpenFlags::WRITE };
            [open, write(4 * KIB, 1), Op::Close { fd: S }]
        };
        let mkdir = Op::Mkdir { path: FilePath::target(format!("d{process}")) };
        std::iter::once(mkdir).chain((0..most).flat_map(make)).collect()
    };
    let took = |bytes, processes| {
        let mut host = HostSpec { memory: 256 * MIB, ..Kernel::Linux2_6_12.spec() };
        if let Some(journal) = &mut host.filesystem.journal {
            journal.bytes = bytes;
        }
        let run_all =
            (0..processes).map(|process| script(files(process, 16_000 / processes))).collect();
        seconds(&on(&single(), &host, Plan { run: run_all, ..Plan::default() }))
    };
    for processes in [1, 4] {
        let (small, large) = (took(MIB, processes), took(128 * MIB, processes));
        assert!(small > 1.5 * large, "{processes}: {small} {large}");
    }
}

#[test]
fn read_max_of_free_bsd_is_what_a_stripe_needs() {
    let host = HostSpec { memory: 256 * MIB, ..Kernel::FreeBsd6_2.spec() };
    let stripe = layout(Level::Raid0, 4);
    let of = |blocks| seconds(&on(&stripe, &host.with_read_max(blocks), readers(1, 400 * MIB)));
    let by_default = seconds(&on(&stripe, &host, readers(1, 400 * MIB)));
    assert_eq!(of(8), by_default);
    assert!(of(128) < 0.6 * of(8), "{} {}", of(128), of(8));
}

#[test]
fn two_readers_on_one_disk_pay_for_each_change_of_stream() {
    let bytes = 100 * MIB;
    let took = |scheduler, processes, read_ahead| {
        let host = HostSpec { read_ahead: Some(read_ahead), ..old() };
        let mut world = world_with(&single(), scheduler);
        seconds(&run(&mut world, &host, readers(processes, bytes)).expect("runs"))
    };
    let noop = |processes, read_ahead| took(Scheduler::Noop, processes, read_ahead);
    let (one, two) = (noop(1, 128 * KIB), noop(2, 128 * KIB));
    // In turn, each window of 128 KiB is behind a seek: 2 ms at least, and half a turn on average.
    let windows = (2 * bytes / (128 * KIB)) as f64;
    assert!(two > 2.0 * one + windows * 0.002, "{two} {one}");
    assert!(two < 2.0 * one + windows * 0.030, "{two} {one}");
    // Eight times the window, an eighth of the seeks.
    let wide = noop(2, MIB);
    let (extra, wide_extra) = (two - 2.0 * one, wide - 2.0 * one);
    assert!(wide_extra < extra / 4.0, "{extra} {wide_extra}");
    // A scheduler that waits for the next read of a stream makes the windows matter little.
    let anticipatory = |read_ahead| took(Scheduler::Anticipatory, 2, read_ahead);
    assert!(anticipatory(128 * KIB) < 2.0 * one + extra / 4.0);
    assert!((anticipatory(128 * KIB) / anticipatory(MIB) - 1.0).abs() < 0.1);
}

#[test]
fn a_lone_reader_overlaps_copying_with_read_ahead_only() {
    let bytes = 32 * MIB;
    // Copying takes four times as long as the disk.
    let mut host = HostSpec { memory: 256 * MIB, ..Kernel::Linux2_6_12.spec() };
    host.costs.copy_rate = 10_000_000;
    let copying = host.costs.copy(bytes).as_secs();
    let with = seconds(&on(&single(), &host, readers(1, bytes)));
    let without = host.without(Mechanism::ReadAhead);
    let alone = seconds(&on(&single(), &without, readers(1, bytes)));
    let free = without.without(Mechanism::CopyCost);
    let disk = seconds(&on(&single(), &free, readers(1, bytes)));
    assert!(with > copying && with < copying * 1.03 + 0.05, "{with} {copying}");
    // The drive reads ahead into its own cache, but moving data from there is waited for: UDMA 100.
    let transfer = bytes as f64 / 100e6;
    assert!(alone > copying + transfer, "{alone} {copying} {transfer}");
    assert!(alone < copying + disk * 1.5, "{alone} {copying} {disk}");
}

/// A drive that is hardly waited for on a channel of 100 MB/s, behind the memory of the host where that has
/// a rate.
fn behind(memory: Option<u64>) -> World {
    let channel = LinkSpec::pata_udma100("ide").with_rate(100_000_000);
    let mut spec = PathSpec::shared(vec![channel], &[0]);
    if let Some(rate) = memory {
        spec = spec.behind(LinkSpec::memory("memory", rate));
    }
    let drive = Drive::new(&load("ssd-nvme4-2tb-dc").expect("built in").kind, 1);
    let config = Config::uniform(single(), drive.capacity());
    let world = World::new(&config, vec![drive], HostCosts::default()).expect("fits");
    world.with_queues(&Scheduler::Noop.spec(1)).with_paths(&spec).expect("can be")
}

/// A host that copies at a rate and is free otherwise.
fn copying(rate: u64, lone_reader_waits: bool) -> HostSpec {
    let mut host = HostSpec { lone_reader_waits, ..old() }.without(Mechanism::CallCost);
    host.costs.copy_rate = rate;
    host
}

/// What crosses memory and what the CPU copies there take turns, where the host has a memory path.
#[test]
fn copies_and_transfers_share_the_memory_path() {
    let bytes = 64 * MIB;
    let took = |memory, plan| {
        let run = run(&mut behind(memory), &copying(60_000_000, false), plan).expect("runs");
        (seconds(&run), run.record.process_cpu.expect("counted").system.as_secs())
    };
    let once = bytes as f64 / 60e6;
    let (free, cpu) = took(None, readers(1, bytes));
    assert!((free / once - 1.0).abs() < 0.03, "{free} {once}: copying alone");
    assert!((cpu / once - 1.0).abs() < 0.01, "{cpu}");
    let (shared, cpu) = took(Some(60_000_000), readers(1, bytes));
    assert!((shared / (2.0 * once) - 1.0).abs() < 0.04, "{shared}, expected {}", 2.0 * once);
    assert!(cpu > 1.03 * once, "who copies waits on the CPU: {cpu}");
    // A path that is never in the way changes next to nothing, and what is in memory crosses nothing.
    let (wide, _) = took(Some(1_000_000_000_000), readers(1, bytes));
    assert!((wide / free - 1.0).abs() < 0.02, "{wide} {free}");
    let warm = || Plan { memory: Memory::AsIs, ..readers(1, bytes) };
    assert_eq!(took(Some(60_000_000), warm()).0, took(None, warm()).0);
}

/// A lone reader's copying and its transfers take turns where a host says so; with two processes, for a writer,
/// and without a memory path nothing changes.
#[test]
fn copies_of_a_lone_reader_hold_up_its_transfers() {
    let wide = Some(1_000_000_000_000);
    let took = |memory, waits, plan| {
        let run = run(&mut behind(memory), &copying(60_000_000, waits), plan).expect("runs");
        (run.record.ends(), seconds(&run))
    };
    let bytes = 64 * MIB;
    let (free, turns) =
        (took(wide, false, readers(1, bytes)).1, took(wide, true, readers(1, bytes)).1);
    // Crossing the channel, then copying.
    let sum = bytes as f64 * (1.0 / 100e6 + 1.0 / 60e6);
    assert!((free * 60e6 / bytes as f64 - 1.0).abs() < 0.03, "copying alone: {free}");
    assert!((turns / sum - 1.0).abs() < 0.05, "{turns}, expected {sum}");
    let same = |memory, plan: &dyn Fn() -> Plan| {
        assert_eq!(took(memory, true, plan()).0, took(memory, false, plan()).0);
    };
    same(None, &|| readers(1, bytes));
    same(wide, &|| readers(2, bytes / 2));
    let ops = || [made(0, bytes), vec![Op::SyncAll]].concat();
    same(wide, &|| Plan { run: vec![script(ops())], ..Plan::default() });
    // Copied within the kernel: only the writes copy anything, while the file is read ahead.
    let copy = || {
        let from = FileDescriptor(1);
        let mkdir = Op::Mkdir { path: FilePath::target("d1") };
        let source = Op::Open { fd: from, path: path(0), flags: OpenFlags::READ };
        let all = Op::CopyRange { from, to: S, len: bytes };
        let run = vec![script(vec![mkdir, source, open(1, OpenFlags::WRITE), all])];
        Plan { run, ..readers(1, bytes) }
    };
    same(wide, &copy);
}

#[test]
fn dirty_limits_say_what_is_left_at_the_end() {
    let plan = || Plan {
        run: vec![script(vec![
            Op::Open { fd: S, path: FilePath::target("file"), flags: OpenFlags::WRITE },
            write(MIB, 1_000),
        ])],
        ..Plan::default()
    };
    let left = |kernel: Kernel| {
        let host = HostSpec { memory: 512 * MIB, ..kernel.spec() };
        let run = on(&single(), &host, plan());
        let warned = run.record.warnings.iter().any(|warning| warning.contains("in memory only"));
        assert!(warned, "{:?}", run.record.warnings);
        (run.unwritten / MIB, seconds(&run))
    };
    let (much, soon) = left(Kernel::Linux2_6_20);
    let (little, late) = left(Kernel::Linux2_6_27);
    // 40 % and 10 % of 512 MiB, less what was being copied.
    assert!((200..=205).contains(&much), "{much}");
    assert!((48..=52).contains(&little), "{little}");
    assert!(soon < late, "{soon} {late}");
    let host = HostSpec { memory: 512 * MIB, ..Kernel::Linux2_6_20.spec() };
    let free = on(&single(), &host.without(Mechanism::DirtyLimit), plan());
    assert!((380..=384).contains(&(free.unwritten / MIB)), "{}", free.unwritten / MIB);
    let bytes = HostSpec { dirty: DirtyLimit::Bytes(64 * MIB), ..host };
    assert!(on(&single(), &bytes, plan()).unwritten <= 64 * MIB);
}

#[test]
fn a_journal_costs_writes_and_seeks_of_small_files() {
    let files = || {
        let path = |index| FilePath::target(format!("file{index}"));
        let make = |index| {
            let open = Op::Open { fd: S, path: path(index), flags: OpenFlags::WRITE };
            [open, write(8 * KIB, 1), Op::Fsync { fd: S }, Op::Close { fd: S }]
        };
        Plan { run: vec![script((0..300).flat_map(make).collect())], ..Plan::default() }
    };
    let of = |kind| HostSpec { filesystem: FilesystemSpec::of(kind), ..old() };
    let took = |host: &HostSpec| {
        let run = on(&single(), host, files());
        (seconds(&run), run.record.members.expect("counted").bytes_written)
    };
    let (ext2, ext3) = (took(&of(FilesystemKind::Ext2)), took(&of(FilesystemKind::Ext3)));
    let without = took(&of(FilesystemKind::Ext3).without(Mechanism::Journal));
    // Two blocks of data; ext2 writes the inode too, ext3 a descriptor, four blocks and a commit.
    assert!(ext3.1 > ext2.1 * 3 / 2, "{ext3:?} {ext2:?}");
    assert!(ext3.0 > ext2.0, "{ext3:?} {ext2:?}");
    assert_eq!(without.1, ext2.1);
}

#[test]
fn many_small_files_of_ext3_are_committed_each_5_s_with_their_data() {
    let mut ops = made(0, 10 * MIB);
    ops.push(Op::Sleep(Nanos::from_millis(7_000)));
    let plan = |ops: &[Op]| Plan { run: vec![script(ops.to_vec())], ..Plan::default() };
    let written = |kind| {
        let host = HostSpec { filesystem: FilesystemSpec::of(kind), ..old() };
        let members = on(&single(), &host, plan(&ops)).record.members;
        members.expect("counted").bytes_written / MIB
    };
    assert_eq!(written(FilesystemKind::Ext2), 0, "nothing is 30 s old");
    assert_eq!(written(FilesystemKind::Ext3), 10, "ordered: data before metadata");
    assert_eq!(written(FilesystemKind::Ext4), 0, "no places yet, so nothing to order");
}

#[test]
fn indirect_blocks_are_read_with_a_file() {
    let bytes = 64 * MIB;
    let host = old();
    let reads = |host: &HostSpec| {
        let run = on(&single(), host, readers(1, bytes));
        (run.record.members.expect("counted").bytes_read, seconds(&run))
    };
    let (with, without) = (reads(&host), reads(&host.without(Mechanism::IndirectBlocks)));
    // 16,384 pages: 12, then 16 pieces of 1,024 pages and a double one.
    assert_eq!(with.0 - without.0, 17 * 4_096);
    assert!(with.1 > without.1, "{with:?} {without:?}");
    // They lie just before what they name: a drive that reads on has them already.
    assert!(with.1 < without.1 * 1.02, "{with:?} {without:?}");
}

#[test]
fn directories_lie_on_the_members_of_a_linear_array() {
    let members = |host: &HostSpec| {
        let mut world = world(&layout(Level::Linear, 2), host.kernel);
        let mut plan = Plan::default();
        let all: Vec<Op> = (0..8).flat_map(|index| made(index, MIB)).collect();
        plan.run = vec![script([all, vec![Op::SyncAll]].concat())];
        world.start_record();
        run(&mut world, host, plan).expect("runs");
        let data = world.record().iter().filter(|io| io.op == IoOp::Write && io.len == 256);
        let of: Vec<MemberIndex> = data.map(|io| io.member).collect();
        [0, 1].map(|member| of.iter().filter(|of| of.0 == member).count())
    };
    let spread = members(&old());
    assert!(spread[0] > 0 && spread[1] > 0, "{spread:?}");
    let together = members(&old().without(Mechanism::BlockGroups));
    assert_eq!(together[1], 0, "{together:?}");
    assert!(together[0] >= 8 * 6, "{together:?}");
}

#[test]
fn a_tree_is_read_once_while_memory_holds_what_processes_copy() {
    let twice = |processes: u64| {
        let bytes = 40 * MIB;
        let mut plan = readers(processes, bytes);
        let one = |index| {
            let all = [open(index, OpenFlags::READ), read(64 * KIB, bytes / (64 * KIB))];
            let again = [Op::Close { fd: S }];
            script([&all[..], &again, &all].concat())
        };
        plan.run = (0..processes).map(one).collect();
        plan.memory = Memory::Cold;
        let host = HostSpec { memory: 100 * MIB, ..Kernel::Linux2_6_12.spec() };
        let read = on(&single(), &host, plan).record.members.expect("counted").bytes_read;
        read / MIB
    };
    assert_eq!((twice(1), twice(2)), (40, 80));
    assert!(twice(4) > 240, "{}", twice(4));
}

#[test]
fn every_kernel_runs_the_same_way_twice() {
    for kernel in Kernel::ALL {
        let host = HostSpec { memory: 32 * MIB, ..kernel.spec() };
        let once = || {
            let mut plan = readers(3, 16 * MIB);
            plan.run.push(script(made(9, 32 * MIB)));
            let mut world = world(&layout(Level::Raid5, 4), kernel);
            let run = run(&mut world, &host, plan).expect("runs");
            (run.record.ends(), run.record.members, run.unwritten, world.happened())
        };
        assert_eq!(once(), once(), "{kernel}");
    }
}

#[test]
fn every_mechanism_can_be_switched_off() {
    let took = |host: &HostSpec| {
        let mut plan = readers(2, 16 * MIB);
        let file = |index| FilePath::target(format!("d0/file{index}"));
        let open = |index| Op::Open { fd: S, path: file(index), flags: OpenFlags::WRITE };
        let writer = |index| script(vec![open(index), write(64 * KIB, 1_000), Op::SyncAll]);
        plan.run.extend((1..3).map(writer));
        let run = on(&layout(Level::Raid0, 2), host, plan);
        (run.record.ends(), run.record.members, run.record.system_cpu, run.unwritten)
    };
    let in_none = [
        Mechanism::DelayedAllocation,
        Mechanism::Barriers,
        Mechanism::Expiry,
        Mechanism::LoneReader,
    ];
    let host = HostSpec { memory: 64 * MIB, ..Kernel::Linux2_6_12.spec() };
    let with = took(&host);
    for mechanism in Mechanism::ALL {
        let without = took(&host.without(mechanism));
        // ext3 of 2005 has neither of the first two, the run is over before anything expires, and
        // there is no memory path.
        assert_eq!(without == with, in_none.contains(&mechanism), "{mechanism}");
    }
}
