//! The raw target: workloads run, what they read is verified, wrong bytes are found and named.

use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::common::{Random, TestDirectory, file_members, layouts, memory_members};
use raidlab_core::contract::{IoOp, IoOutcome};
use raidlab_core::geometry::{Holds, Place};
use raidlab_core::{Layout, Level, MemberIndex, Sector, Sectors};
use raidlab_engine::{
    Engine, EngineConfig, EngineErrorKind, FileIo, FileMember, FileOptions, Holding, MdOptions,
    Member, MemberRequest, MemberStore, NullMember,
};
use raidlab_metadata::md::{Creation, Device as MdDevice, Version, WantedBitmap};
use raidlab_targets::{RawTarget, RunDirectory, UncheckedTarget};
use raidlab_workload::raw::RawPlan;
use raidlab_workload::{Kind, RunRecord, Setting, Simple, Workload};

static GO: AtomicBool = AtomicBool::new(false);
const MEMBER: Sectors = Sectors(1024);

/// Nested levels among them: parity below, above and on both levels.
fn all_layouts() -> impl Iterator<Item = Layout> {
    let nested = [
        "raid5+0(2x3) chunk=8K",
        "raid6+0(2x4) chunk=8K outer-chunk=16K",
        "raid1+5(3x2) chunk=8K",
        "raid0+6(4x2) chunk=8K",
        "raid5+5(3x3) chunk=2K",
        "raid0+1(2x2) chunk=8K",
    ];
    layouts().into_iter().chain(nested.map(|name| name.parse().expect("is a layout")))
}

fn target(layout: &Layout) -> RawTarget {
    let members = memory_members(layout.drives(), MEMBER);
    let engine = Engine::new(&EngineConfig::new(layout.clone()), members).unwrap();
    RawTarget::new(engine, true).unwrap()
}

fn processes(target: &RawTarget, kind: Kind, block: u64, size: u64, count: u32) -> RawPlan {
    let spec = Simple { block, ..Simple::new(kind, size) };
    let space = target.engine().array().capacity().bytes();
    let setting = Setting { space: Some(space), ..Setting::new(count, 11) };
    RawPlan::new(spec.plan(&setting).unwrap(), space).unwrap()
}

fn fill_all(target: &mut RawTarget) {
    let bytes = target.engine().array().capacity().bytes() / 4096 * 4096;
    target.fill(0, bytes, &GO).unwrap();
}

fn flip(target: &mut RawTarget, member: u16, at: usize) {
    match target.engine_mut().member_mut(MemberIndex(member)).unwrap() {
        Member::Memory(member) => member.bytes_mut()[at] ^= 0x10,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_workload_runs_on_every_level() {
    for layout in all_layouts() {
        let mut target = target(&layout);
        fill_all(&mut target);
        for kind in [Kind::DdRead, Kind::DdWrite, Kind::RandomWrite, Kind::RandomRead] {
            for count in [1, 2, 4] {
                let (block, size) =
                    if kind.is_random() { (4096, 200 << 12) } else { (1 << 15, 1 << 17) };
                let all = processes(&target, kind, block, size, count);
                let result = target.run(all, &GO).unwrap();
                assert_eq!(result.bytes(), size * u64::from(count), "{layout} {kind}");
                assert_eq!(result.operations(), size / block * u64::from(count));
                let (first, last) = (result.record.first_done(), result.record.last_done());
                assert!(first <= last && last.0 > 0);
                assert_eq!(result.batches, 1);
            }
        }
        assert_eq!(target.verify_members(&GO).unwrap(), [], "{layout}");
    }
}

#[test]
fn writers_of_the_same_blocks_leave_one_right_answer() {
    // 8 processes on 64 blocks: they meet all the time.
    let layout = Layout::new(Level::Raid10, 4).with_chunk(Sectors(8));
    let members = memory_members(4, Sectors(256));
    let engine = Engine::new(&EngineConfig::new(layout), members).unwrap();
    let mut target = RawTarget::new(engine, true).unwrap();
    for round in 0..4 {
        let mut all = processes(&target, Kind::RandomWrite, 4096 << (round % 2), 1 << 20, 8);
        all.processes.extend(processes(&target, Kind::RandomRead, 4096, 1 << 20, 8).processes);
        let result = target.run(all, &GO).unwrap();
        assert_eq!(result.bytes(), 16 << 20);
        assert_eq!(target.verify_members(&GO).unwrap(), []);
    }
}

#[test]
fn more_than_the_memory_holds_runs_in_batches() {
    let layout = Layout::new(Level::Raid0, 2).with_chunk(Sectors(16));
    let members = memory_members(2, Sectors(4 << 11));
    let engine = Engine::new(&EngineConfig::new(layout), members).unwrap();
    let mut target = RawTarget::new(engine, true).unwrap();
    target.set_memory(1 << 20);
    for kind in [Kind::DdWrite, Kind::DdRead, Kind::RandomWrite, Kind::RandomRead] {
        let all = processes(&target, kind, 96 << 10, 3 << 20, 2);
        let result = target.run(all, &GO).unwrap();
        assert_eq!((result.bytes(), result.operations()), (6 << 20, 64));
        assert!(result.batches >= 6, "{result:?}");
        // What is prepared and verified between batches has no part in what is timed.
        assert_eq!(result.timed.len() as u64, result.batches);
        let (first, now) = (result.timed[0].0, target.engine().clock());
        let timed = result.timed_up_to(now);
        assert!(timed >= result.record.processes.iter().map(|one| one.ended).max().unwrap());
        assert!(timed.0 < now.since(first).0, "{result:?}");
        assert_eq!(result.timed_up_to(first), raidlab_core::Time::ZERO);
        // The last process ends in the last batch: its time goes on where those before it ended.
        let last = result.timed_up_to(result.timed[result.timed.len() - 1].0);
        assert!(result.record.last_done().0 > last.0, "{result:?}");
    }
    // The engine is told of the beginning once, in however many batches.
    let all = processes(&target, Kind::DdWrite, 96 << 10, 3 << 20, 2);
    let mut began = 0;
    let mut begin = |_: &mut Engine| {
        began += 1;
        Ok(())
    };
    assert!(target.run_beginning(all, &GO, &mut begin).unwrap().batches > 1);
    assert_eq!(began, 1);
    // One operation larger than a process's share of the memory.
    let all = processes(&target, Kind::DdWrite, 3 << 20, 3 << 20, 2);
    assert_eq!(target.run(all, &GO).unwrap().operations(), 2);
    assert_eq!(target.verify_members(&GO).unwrap(), []);
}

/// A run counts what members did in it, and each operation from when it was begun: of a process that does one after
/// the other they are together no longer than the run.
#[test]
fn a_run_counts_what_was_done_in_it() {
    let layout = Layout::new(Level::Raid0, 2).with_chunk(Sectors(16));
    let mut target = target(&layout);
    fill_all(&mut target);
    for kind in [Kind::DdRead, Kind::DdWrite, Kind::RandomRead, Kind::RandomWrite] {
        let block = if kind.is_random() { 4 << 10 } else { 16 << 10 };
        let run = processes(&target, kind, block, 256 << 10, 1);
        check_counts(&target.run(run, &GO).unwrap().record, kind);
    }
}

/// Of one process that moves 256 KiB.
fn check_counts(record: &RunRecord, kind: Kind) {
    let (members, totals) = (record.members.unwrap(), record.totals());
    assert_eq!(members.bytes_read, totals.reads.bytes, "{kind}");
    assert_eq!(members.bytes_written, totals.writes.bytes, "{kind}");
    assert_eq!(totals.reads.bytes + totals.writes.bytes, 256 << 10, "{kind}");
    let took = totals.reads.total + totals.writes.total + totals.others.total;
    assert!(took <= record.last_done() && took.0 > 0, "{kind}: {took:?} {record:?}");
}

/// The same where nobody looks at the bytes.
#[test]
fn an_unchecked_run_counts_what_was_done_in_it() {
    let layout = Layout::new(Level::Raid0, 2).with_chunk(Sectors(16));
    let planner = target(&layout);
    let mut target = UncheckedTarget::new(target(&layout).into_engine()).unwrap();
    for kind in [Kind::DdWrite, Kind::DdRead, Kind::RandomRead, Kind::RandomWrite] {
        let run = processes(&planner, kind, 4 << 10, 256 << 10, 1);
        check_counts(&target.run(run, &GO).unwrap(), kind);
    }
}

/// Flushes of the drive.
#[derive(Default)]
struct Flushed {
    bytes: Vec<u8>,
    flushes: Arc<AtomicUsize>,
}

impl MemberStore for Flushed {
    fn sectors(&self) -> Sectors {
        Sectors(self.bytes.len() as u64 / 512)
    }

    fn submit(&mut self, request: MemberRequest) {
        let from = request.at().bytes() as usize;
        let range = from..from + request.len().bytes() as usize;
        match request.op() {
            IoOp::Read => return request.complete_read(&self.bytes[range]),
            IoOp::Write => self.bytes[range].copy_from_slice(request.payload()),
            IoOp::WriteZeroes | IoOp::Discard => self.bytes[range].fill(0),
            IoOp::Flush => _ = self.flushes.fetch_add(1, Ordering::Relaxed),
        }
        request.complete(IoOutcome::Ok);
    }
}

/// What is filled is durable before anything is timed, and what a workload syncs is when that is over.
#[test]
fn filling_and_syncing_reach_the_drive() {
    let store = Flushed { bytes: vec![0; 1 << 20], ..Flushed::default() };
    let flushes = Arc::clone(&store.flushes);
    let config = EngineConfig::new(Layout::new(Level::Linear, 1));
    let engine = Engine::new(&config, vec![store.into()]).unwrap();
    let mut target = RawTarget::new(engine, true).unwrap();
    let since = |what: &str, least| {
        let count = flushes.swap(0, Ordering::Relaxed);
        assert!(count >= least && (least > 0 || count == 0), "{what}: {count}");
    };
    fill_all(&mut target);
    since("filled", 1);
    for (kind, least) in [(Kind::DdRead, 0), (Kind::DdWrite, 1), (Kind::RandomWrite, 1)] {
        let all = processes(&target, kind, 4096, 64 << 10, 2);
        target.run(all, &GO).unwrap();
        since(kind.name(), least);
    }
}

#[test]
fn what_a_batch_leaves_over_is_done_in_the_next() {
    let layout = Layout::new(Level::Raid5, 3).with_chunk(Sectors(16));
    let members = memory_members(3, Sectors(4 << 11));
    let engine = Engine::new(&EngineConfig::new(layout), members).unwrap();
    let mut target = RawTarget::new(engine, true).unwrap();
    target.set_memory(512 << 10);
    // One process moves 16 times as much at a time, so its share is used up long before the other's.
    for (small, large) in [
        (Kind::RandomWrite, Kind::DdWrite),
        (Kind::RandomRead, Kind::DdRead),
        (Kind::DdRead, Kind::RandomWrite),
    ] {
        let mut all = processes(&target, small, 4 << 10, 1 << 20, 1);
        all.processes.extend(processes(&target, large, 64 << 10, 4 << 20, 1).processes);
        let result = target.run(all, &GO).unwrap();
        assert_eq!((result.bytes(), result.operations()), (5 << 20, 256 + 64));
        let ends: Vec<_> = result.record.processes.iter().map(|one| one.ended).collect();
        assert_ne!(ends[0], ends[1]);
        assert_eq!(target.verify_members(&GO).unwrap(), []);
    }
}

#[test]
fn a_flipped_byte_is_found_by_the_reader_on_every_level() {
    for layout in all_layouts() {
        let mut target = target(&layout);
        fill_all(&mut target);
        // Sector 0 of member 0 holds data in every layout, and raid1 has a good copy beside it: all copies
        // are flipped there, or the reader might be served the good one.
        let copies = target.engine().array().geometry().copies();
        for copy in 0..copies {
            let place = target.engine().array().geometry().place(Sector(9), copy);
            flip(&mut target, place.member.0, place.at.bytes() as usize + 77);
        }
        let first = target.engine().array().geometry().place(Sector(9), 0);
        let all = processes(&target, Kind::DdRead, 1 << 16, 1 << 18, 1);
        let error = target.run(all, &GO).unwrap_err();
        assert_eq!(error.kind(), EngineErrorKind::Mismatch, "{layout}");
        let mismatch = error.mismatch().unwrap();
        assert_eq!(mismatch.member, Some(first.member), "{layout}");
        assert_eq!(mismatch.member_offset, first.at.bytes() + 77);
        assert_eq!(mismatch.array_offset, Some(9 * 512 + 77));
        assert_eq!(mismatch.holding, Some(Holding::Data { copy: 0 }));
        assert_eq!(mismatch.expected ^ mismatch.found, 0x10);
    }
}

/// What each of several processes reads is compared, whichever of them it is.
#[test]
fn what_any_process_reads_is_compared() {
    let layout = Layout::new(Level::Linear, 1);
    for process in 0..3 {
        let mut target = target(&layout);
        fill_all(&mut target);
        let all = processes(&target, Kind::DdRead, 4096, 64 << 10, 3);
        let (at, end) = all.extents[process];
        flip(&mut target, 0, end as usize - 1);
        let error = target.run(all, &GO).unwrap_err();
        let found = error.mismatch().expect("wrong bytes").array_offset;
        assert_eq!(found, Some(end - 1), "process {process}, from {at} on: {error}");
    }
}

/// Of members that hold something unknown only what was written is known: other reads are right whatever they find.
#[test]
fn what_nobody_wrote_may_hold_anything() {
    let layout = Layout::new(Level::Raid0, 2).with_chunk(Sectors(8));
    let mut before = target(&layout);
    fill_all(&mut before);
    let mut target = RawTarget::new(before.into_engine(), false).unwrap();
    let reads = || processes(&target, Kind::DdRead, 8192, 64 << 10, 1);
    let (first, second) = (reads(), reads());
    target.run(first, &GO).unwrap();
    // The second half of the first block that is read, and no more.
    target.fill(4096, 4096, &GO).unwrap();
    target.run(second, &GO).unwrap();
    assert_eq!(target.written(), Sectors(8));
    assert_eq!(target.verify_members(&GO).unwrap(), []);
    let all = processes(&target, Kind::DdRead, 8192, 64 << 10, 1);
    flip(&mut target, 1, 9);
    assert_eq!(target.run(all, &GO).unwrap_err().kind(), EngineErrorKind::Mismatch);
}

/// Each copy of what was written is compared, also those that lie far from the first, where nothing else is known.
#[test]
fn all_copies_are_compared_wherever_they_lie() {
    let chunk = Sectors(128);
    let raid10 = |members| Layout::new(Level::Raid10, members).with_chunk(chunk);
    for layout in [raid10(4).with_far(2), raid10(3), Layout::new(Level::Raid1, 3)] {
        let members = memory_members(layout.members, Sectors(6 * 2048));
        let engine = Engine::new(&EngineConfig::new(layout.clone()), members).unwrap();
        let mut target = RawTarget::new(engine, false).unwrap();
        let at = 17 * chunk.bytes();
        target.fill(at, chunk.bytes(), &GO).unwrap();
        let geometry = target.engine().array().geometry().clone();
        assert!(geometry.copies() > 1);
        for copy in 0..geometry.copies() {
            let Place { member, at } = geometry.place(Sector(at / 512 + 9), copy);
            flip(&mut target, member.0, at.bytes() as usize + 3);
            let found = target.verify_members(&GO).unwrap();
            let places: Vec<_> = found.iter().map(|one| (one.member, one.member_offset)).collect();
            assert_eq!(places, [(Some(member), at.bytes() + 3)], "{layout}: copy {copy}");
            flip(&mut target, member.0, at.bytes() as usize + 3);
        }
    }
}

/// Ranges are filled to their ends, however long they are, and nothing between them.
#[test]
fn all_of_the_ranges_is_filled_and_nothing_else() {
    let members = memory_members(1, Sectors(32 << 11));
    let config = EngineConfig::new(Layout::new(Level::Linear, 1));
    let mut target = RawTarget::new(Engine::new(&config, members).unwrap(), true).unwrap();
    let step = 6 << 20;
    let ranges =
        [0..4096, 8192..8192 + step, (8 << 20)..(8 << 20) + step + 4096, (20 << 20)..(32 << 20)];
    target.fill_all(&ranges, &GO).unwrap();
    let all: u64 = ranges.iter().map(|range| range.end - range.start).sum();
    assert_eq!(target.written().bytes(), all);
    let Some(Member::Memory(member)) = target.engine_mut().member_mut(MemberIndex(0)) else {
        panic!("a member in memory");
    };
    for (block, bytes) in (0..).zip(member.bytes_mut().chunks(4096)) {
        let is_within = ranges.iter().any(|range| range.contains(&(block * 4096)));
        assert_eq!(bytes.iter().any(|byte| *byte != 0), is_within, "{block}");
    }
}

#[test]
fn the_sweep_finds_any_flipped_byte() {
    let mut random = Random(21);
    // Of members that held zeroes all is known, whether it was written since or not.
    for (layout, part) in all_layouts().flat_map(|layout| [(layout.clone(), 1), (layout, 4)]) {
        let mut target = target(&layout);
        let capacity = target.engine().array().capacity().bytes();
        target.fill(0, capacity / part / 4096 * 4096, &GO).unwrap();
        assert_eq!(target.verify_members(&GO).unwrap(), [], "{layout}");
        for _ in 0..24 {
            let member = random.below(u64::from(layout.drives())) as u16;
            let used = target.engine().array().geometry().used(MemberIndex(member));
            let at = random.below(used.bytes()) as usize;
            let sector = Sector(at as u64 / 512);
            let place = Place { member: MemberIndex(member), at: sector };
            let holds = target.engine().array().geometry().holds(place);
            flip(&mut target, member, at);
            let found = target.verify_members(&GO).unwrap();
            if holds == Holds::Nothing {
                assert_eq!(found, []);
            } else {
                assert_eq!(found.len(), 1, "{layout}, member {member}, byte {at}, {holds:?}");
                assert_eq!(found[0].member, Some(MemberIndex(member)));
                assert_eq!(found[0].member_offset, at as u64);
                assert!(found[0].confirmed);
            }
            flip(&mut target, member, at);
        }
    }
}

/// A store that gives a wrong byte at one read of it, and the right one at the next.
struct Lying {
    bytes: Vec<u8>,
    /// The byte; none has the largest number.
    at: Arc<AtomicUsize>,
}

impl MemberStore for Lying {
    fn sectors(&self) -> Sectors {
        MEMBER
    }

    fn submit(&mut self, request: MemberRequest) {
        let from = request.at().bytes() as usize;
        let range = from..from + request.len().bytes() as usize;
        match request.op() {
            IoOp::Read => {
                let mut bytes = self.bytes[range.clone()].to_vec();
                let at = self.at.load(Ordering::Relaxed);
                if range.contains(&at) {
                    bytes[at - from] ^= 1;
                    self.at.store(usize::MAX, Ordering::Relaxed);
                }
                request.complete_read(&bytes);
            }
            IoOp::Write => {
                self.bytes[range].copy_from_slice(request.payload());
                request.complete(IoOutcome::Ok);
            }
            IoOp::WriteZeroes | IoOp::Discard => {
                self.bytes[range].fill(0);
                request.complete(IoOutcome::Ok);
            }
            IoOp::Flush => request.complete(IoOutcome::Ok),
        }
    }
}

/// A wrong byte that is right at a second look was read all the same.
#[test]
fn what_a_second_look_does_not_confirm_is_told() {
    for layout in ["raid1(3)", "raid5(3) chunk=8K", "raid6(4) chunk=8K"] {
        let layout: Layout = layout.parse().expect("is a layout");
        let lies = Arc::new(AtomicUsize::new(usize::MAX));
        let mut members = memory_members(layout.drives(), MEMBER);
        let bytes = vec![0; MEMBER.bytes() as usize];
        members[1] = Lying { bytes, at: Arc::clone(&lies) }.into();
        let engine = Engine::new(&EngineConfig::new(layout.clone()), members).unwrap();
        let mut target = RawTarget::new(engine, true).unwrap();
        fill_all(&mut target);
        for at in [0, 8191, 70_001] {
            assert_eq!(target.verify_members(&GO).unwrap(), [], "{layout}");
            lies.store(at, Ordering::Relaxed);
            let found = target.verify_members(&GO).unwrap();
            assert_eq!(found.len(), 1, "{layout}: {at}");
            let one = &found[0];
            assert_eq!((one.member, one.member_offset), (Some(MemberIndex(1)), at as u64));
            assert_eq!((one.expected ^ one.found, one.confirmed), (1, false), "{layout}: {one}");
            assert!(one.to_string().contains("the right byte at a second look"), "{one}");
        }
    }
}

/// An array of md's on members in memory, whose data do not start where members do.
fn target_of_md(layout: &str) -> RawTarget {
    const SECTORS: Sectors = Sectors(6144);
    let layout: Layout = layout.parse().expect("is a layout");
    let device = MdDevice { sectors: SECTORS, id: [0; 16] };
    let members = memory_members(layout.drives(), SECTORS);
    let creation = Creation {
        devices: vec![Some(device); layout.members.into()],
        layout,
        version: Version::V1_2,
        spares: Vec::new(),
        bitmap: WantedBitmap::None,
        ppl: false,
        journal: None,
        assume_clean: true,
        data_offset: None,
        size: None,
        array: [0; 16],
        name: "raw".into(),
        now: 0,
    };
    let engine = Engine::new_md(&creation, members, None, &MdOptions::default()).unwrap();
    RawTarget::new(engine, true).unwrap()
}

/// A byte counts from where the member's data start, and is named by where it is on the member.
#[test]
fn a_flipped_byte_of_an_array_of_md_is_found() {
    for layout in ["raid5(3) chunk=64K", "raid1(2)", "raid0(2) chunk=64K"] {
        let mut target = target_of_md(layout);
        let start = target.engine().data_start(MemberIndex(1)).bytes();
        assert!(start >= 1 << 20, "{layout}: {start}");
        target.fill(0, 1 << 20, &GO).unwrap();
        assert_eq!(target.verify_members(&GO).unwrap(), [], "{layout}");
        for at in [0, 4096 + 77, (300 << 10) + 1] {
            flip(&mut target, 1, start as usize + at);
            let found = target.verify_members(&GO).unwrap();
            assert_eq!(found.len(), 1, "{layout}: {at}");
            assert_eq!(found[0].member_offset, start + at as u64, "{layout}");
            flip(&mut target, 1, start as usize + at);
        }
        // Where nothing of the array is.
        flip(&mut target, 1, (1 << 20) - 300);
        assert_eq!(target.verify_members(&GO).unwrap(), [], "{layout}");
    }
}

/// Members whose contents nobody knows but here and there: what was written is compared wherever it lies between.
#[test]
fn what_was_written_is_compared_wherever_it_lies() {
    let chunk = Sectors(128);
    let of = |level, members| Layout::new(level, members).with_chunk(chunk);
    for layout in [
        Layout::new(Level::Raid1, 2),
        of(Level::Raid0, 3),
        of(Level::Raid5, 3),
        of(Level::Raid6, 5),
    ] {
        let members = memory_members(layout.members, Sectors(3 * 2048 + 512));
        let engine = Engine::new(&EngineConfig::new(layout.clone()), members).unwrap();
        let mut target = RawTarget::new(engine, false).unwrap();
        let stripe = layout.full_stripe().unwrap_or(chunk).bytes();
        // In rows of chunks: within the first MiB of each member, over the border of two, at the very end.
        for rows in [5..7, 15..18, 33..34, 51..52] {
            target.fill(rows.start * stripe, (rows.end - rows.start) * stripe, &GO).unwrap();
        }
        assert_eq!(target.verify_members(&GO).unwrap(), [], "{layout}");
        for row in [5, 6, 15, 16, 17, 33, 51] {
            for member in 0..layout.members {
                let at = (row * chunk.bytes()) as usize + 4321;
                flip(&mut target, member, at);
                let found = target.verify_members(&GO).unwrap();
                let places: Vec<_> =
                    found.iter().map(|one| (one.member, one.member_offset)).collect();
                assert_eq!(places, [(Some(MemberIndex(member)), at as u64)], "{layout}, row {row}");
                flip(&mut target, member, at);
            }
        }
        // What nobody wrote may be anything.
        flip(&mut target, 0, (30 * chunk.bytes()) as usize);
        assert_eq!(target.verify_members(&GO).unwrap(), [], "{layout}");
    }
}

/// Drives of 4 TiB of which a workload touches some places: neither time nor memory is for the rest.
#[test]
fn a_few_places_all_over_large_members_are_verified() {
    let layouts = [
        "raid0(3) chunk=64K",
        "raid1(2)",
        "raid5(4) chunk=64K",
        "raid10(4) far2 chunk=64K",
        "raid5+0(2x3) chunk=64K",
        "raid1+5(3x2) chunk=64K",
    ];
    for name in layouts {
        let layout: Layout = name.parse().unwrap();
        let directory = TestDirectory::new();
        let members =
            file_members(&directory, layout.drives(), Sectors(8 << 30), FileIo::Threads).unwrap();
        let engine = Engine::new(&EngineConfig::new(layout.clone()), members).unwrap();
        let mut target = RawTarget::new(engine, false).unwrap();
        let capacity = target.engine().array().capacity().bytes();
        let unit = layout.full_stripe().map_or(64 << 10, Sectors::bytes);
        let mut random = Random(5);
        let places: Vec<u64> = (0..12).map(|_| random.below(capacity / unit) * unit).collect();
        for at in &places {
            target.fill(*at, unit, &GO).unwrap();
        }
        assert!(target.written().bytes() <= 12 * unit, "{name}");
        assert_eq!(target.verify_members(&GO).unwrap(), [], "{name}");
        for at in &places[..2] {
            // A byte of data, and of every other member there that holds a part of the stripe.
            let geometry = target.engine().array().geometry().clone();
            let place = geometry.place(Sector(at / 512 + 9), 0);
            for member in (0..layout.drives()).map(MemberIndex) {
                let is_known = match geometry.holds(Place { member, ..place }) {
                    Holds::Data { at: other, .. } => other.bytes() / unit == at / unit,
                    Holds::P { .. } | Holds::Q { .. } => true,
                    Holds::Nothing => false,
                };
                let path = directory.path().join(format!("member-{}", member.0));
                let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
                let mut byte = [0];
                file.read_exact_at(&mut byte, place.at.bytes() + 3).unwrap();
                file.write_all_at(&[!byte[0]], place.at.bytes() + 3).unwrap();
                file.sync_all().unwrap();
                let found = target.verify_members(&GO).unwrap();
                assert_eq!(found.len(), usize::from(is_known), "{name}: {member:?} {found:?}");
                file.write_all_at(&byte, place.at.bytes() + 3).unwrap();
                file.sync_all().unwrap();
            }
        }
    }
}

#[test]
fn flipped_parity_is_named_when_a_degraded_read_meets_it() {
    let layout = Layout::new(Level::Raid5, 4).with_chunk(Sectors(8));
    let mut target = target(&layout);
    fill_all(&mut target);
    // Left-symmetric: stripe 0 has its parity on member 3 and its first chunk on member 0.
    flip(&mut target, 3, 600);
    let healthy = target.run(processes(&target, Kind::DdRead, 1 << 16, 1 << 18, 1), &GO);
    healthy.unwrap();
    target.engine_mut().fail(MemberIndex(0)).unwrap();
    let all = processes(&target, Kind::DdRead, 1 << 16, 1 << 18, 1);
    let error = target.run(all, &GO).unwrap_err();
    let mismatch = error.mismatch().unwrap();
    assert_eq!(mismatch.member, Some(MemberIndex(3)));
    assert_eq!(mismatch.member_offset, 600);
    assert_eq!(mismatch.holding, Some(Holding::Parity { stripe: 0 }));
    assert!(error.to_string().contains("parity of stripe 0"), "{error}");
}

#[test]
fn degraded_arrays_run_and_verify() {
    for layout in layouts().into_iter().filter(|layout| layout.survives() > 0) {
        let mut target = target(&layout);
        fill_all(&mut target);
        target.engine_mut().fail(MemberIndex(layout.members - 1)).unwrap();
        for kind in [Kind::RandomRead, Kind::RandomWrite, Kind::RandomRead] {
            let all = processes(&target, kind, 4096, 1 << 20, 3);
            target.run(all, &GO).unwrap();
        }
        assert_eq!(target.verify_members(&GO).unwrap(), [], "{layout}");
    }
}

#[test]
fn files_are_verified_with_their_data_offset() {
    let directory = TestDirectory::new();
    let run = RunDirectory::create(directory.path(), 4, 8 << 20).unwrap();
    let options = FileOptions { data_offset: Sectors(2048), ..FileOptions::default() };
    let members = (0..4)
        .map(|n| {
            let path = run.member_path(n).unwrap();
            let file = FileMember::new(run.open_member(n).unwrap(), &path, options).unwrap();
            Member::File(Box::new(file))
        })
        .collect();
    let layout = Layout::new(Level::Raid5, 4).with_chunk(Sectors(128));
    let engine = Engine::new(&EngineConfig::new(layout), members).unwrap();
    let mut target = RawTarget::new(engine, true).unwrap();
    for kind in [Kind::DdWrite, Kind::DdRead, Kind::RandomWrite, Kind::RandomRead] {
        let block = if kind.is_random() { 4096 } else { 192 << 10 };
        let all = processes(&target, kind, block, 3 << 20, 4);
        assert_eq!(target.run(all, &GO).unwrap().bytes(), 12 << 20, "{kind}");
    }
    assert_eq!(target.verify_members(&GO).unwrap(), []);
    // Behind the array's back, in the file, as `dd conv=notrunc` would.
    let path = run.member_path(2).unwrap();
    let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
    let offset = (1 << 20) + 4096 * 3 + 17;
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[!byte[0]], offset).unwrap();
    file.sync_all().unwrap();
    let found = target.verify_members(&GO).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].member, found[0].member_offset), (Some(MemberIndex(2)), offset));
    assert_eq!((found[0].expected, found[0].found), (byte[0], !byte[0]));
}

#[test]
fn cancelling_stops_and_leaves_the_target_usable() {
    let layout = Layout::new(Level::Raid1, 2);
    let mut target = target(&layout);
    let stop = AtomicBool::new(true);
    let all = processes(&target, Kind::DdWrite, 1 << 16, 1 << 18, 2);
    let error = target.run(all, &stop).unwrap_err();
    assert_eq!(error.kind(), EngineErrorKind::Cancelled);
    assert_eq!(target.verify_members(&stop).unwrap_err().kind(), EngineErrorKind::Cancelled);
    let all = processes(&target, Kind::DdWrite, 1 << 16, 1 << 18, 2);
    target.run(all, &GO).unwrap();
}

#[test]
fn what_the_target_cannot_do_is_named() {
    let layout = Layout::new(Level::Raid0, 2).with_chunk(Sectors(8));
    let mut target = target(&layout);
    let odd = processes(&target, Kind::RandomWrite, 512, 1 << 16, 1);
    let error = target.run(odd, &GO).unwrap_err();
    assert_eq!(error.kind(), EngineErrorKind::NotSupported);
    assert!(error.to_string().contains("whole blocks of 4KiB"), "{error}");
    let error = target.fill(0, 1 << 40, &GO).unwrap_err();
    assert_eq!(error.kind(), EngineErrorKind::InvalidRequest);

    let nulls = (0..2).map(|_| Member::Null(NullMember::new(MEMBER))).collect();
    let layout = Layout::new(Level::Raid0, 2).with_chunk(Sectors(8));
    let engine = Engine::new(&EngineConfig::new(layout), nulls).unwrap();
    let mut target = RawTarget::new(engine, true).unwrap();
    assert_eq!(target.verify_members(&GO).unwrap_err().kind(), EngineErrorKind::NotSupported);
    // Null members leave the buffer as it is; that is noticed.
    let all = processes(&target, Kind::DdRead, 1 << 16, 1 << 16, 1);
    assert!(target.run(all, &GO).is_err());
}

/// A later run on the same members must not find an earlier run's bytes right.
#[test]
fn a_lost_write_does_not_pass_for_an_earlier_run_s() {
    let layout = Layout::new(Level::Raid0, 2);
    let bytes = |salt| {
        let mut target = target(&layout).salted(salt);
        fill_all(&mut target);
        let mut read = vec![0; 4096];
        target.into_engine().read_at(Sector(0), &mut read).unwrap();
        read
    };
    assert_eq!(bytes(7), bytes(7));
    assert_ne!(bytes(7), bytes(8));
    let mut first = target(&layout).salted(1);
    fill_all(&mut first);
    let mut second = RawTarget::new(first.into_engine(), false).unwrap().salted(2);
    fill_all(&mut second);
    // What the first run left at the start of member 0 comes back, as if the second never wrote it.
    let mut earlier = target(&layout).salted(1);
    fill_all(&mut earlier);
    let Some(Member::Memory(old)) = earlier.engine_mut().member_mut(MemberIndex(0)) else {
        panic!("members in memory");
    };
    let old = old.bytes()[..4096].to_vec();
    if let Some(Member::Memory(member)) = second.engine_mut().member_mut(MemberIndex(0)) {
        member.bytes_mut()[..4096].copy_from_slice(&old);
    }
    assert_eq!(second.verify_members(&GO).unwrap().len(), 1);
}
