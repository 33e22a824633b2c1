//! The host alone: requests are answered in order, each after a millisecond.

mod ext4;
mod mixed;

use super::*;

const ROOT: Inode = Inode(0);
const FILE: Inode = Inode(1);

struct Harness {
    host: Host,
    now: Time,
    /// Requests that are not answered yet, and all of them.
    waiting: VecDeque<BlockIo>,
    seen: Vec<BlockIo>,
    wake: Option<Time>,
}

fn spec() -> HostSpec {
    HostSpec { memory: 64 << 20, ..HostSpec::default() }
}

fn step(name: u64, file: Option<Inode>) -> PathComponent {
    PathComponent { directory: ROOT, name, file }
}

fn create(file: Inode, is_directory: bool) -> Call {
    let path = vec![step(file.0, None)];
    Call::Names { path, change: Change::Create { file, is_directory } }
}

impl Harness {
    fn new(spec: &HostSpec) -> Self {
        let host = Host::new(spec, Sectors(1 << 24), ROOT).expect("possible");
        let (waiting, seen) = (VecDeque::new(), Vec::new());
        Self { host, now: Time::ZERO, waiting, seen, wake: None }
    }

    /// Calls and waits for the end; what was moved.
    fn call(&mut self, call: Call) -> Result<u64, Failure> {
        self.begin(call);
        loop {
            if let Some(result) = self.heed() {
                return result;
            }
            self.answer_one();
        }
    }

    fn begin(&mut self, call: Call) {
        self.host.handle(self.now, HostInput::Call { task: TaskId(3), process: 7, call });
    }

    /// Does what the host asks for until it has nothing to say; the result of the call, if it has ended.
    fn heed(&mut self) -> Option<Result<u64, Failure>> {
        let mut result = None;
        while let Some(output) = self.host.poll() {
            match output {
                HostOutput::Block(io) => {
                    self.seen.push(io);
                    self.waiting.push_back(io);
                }
                HostOutput::Compute { task, cost, .. } => {
                    self.now = self.now + cost;
                    self.host.handle(self.now, HostInput::Computed(task));
                }
                HostOutput::Last { cost, .. } => {
                    self.now = self.now + cost;
                    result = Some(Ok(0));
                }
                HostOutput::Moved { .. } => {}
                HostOutput::Done { moved, .. } => result = Some(Ok(moved)),
                HostOutput::Failed { failure, .. } => result = Some(Err(failure)),
                HostOutput::WakeAt(at) => self.wake = Some(at),
            }
        }
        result
    }

    fn answer_one(&mut self) {
        let io = self.waiting.pop_front().expect("a call under way waits for a request");
        self.now = self.now + Nanos::from_millis(1);
        self.host.handle(self.now, HostInput::Ended(io.id));
    }

    /// Whether a call had to wait for requests.
    fn waits(&mut self, call: Call) -> bool {
        let before = self.now;
        self.call(call).expect("can be");
        self.now.since(before) >= Nanos::from_millis(1)
    }

    fn made(&mut self, file: Inode) -> HostDescriptor {
        self.call(create(file, false)).expect("room");
        self.host.open(file, false, false).expect("there")
    }

    fn take_seen(&mut self) -> Vec<(IoOp, u64)> {
        self.seen.drain(..).map(|io| (io.op, io.len.bytes())).collect()
    }
}

fn write(handle: HostDescriptor, at: u64, len: u64) -> Call {
    Call::Write { handle, at, len, times: 1 }
}

fn read(handle: HostDescriptor, at: u64, len: u64) -> Call {
    Call::Read { handle, at, len, times: 1, copies: true }
}

const SYNC: Call = Call::Sync { file: FILE, data_only: false };

#[test]
fn a_part_of_a_page_that_is_not_in_memory_is_read_first() {
    let mut harness = Harness::new(&spec());
    let handle = harness.made(FILE);
    harness.call(write(handle, 0, 20_000)).expect("room");
    harness.call(SYNC).expect("there");
    harness.host.drop_cached(None);
    harness.take_seen();
    harness.call(write(handle, 5_000, 10)).expect("room");
    assert_eq!(harness.take_seen(), [(IoOp::Read, 4_096)]);
    harness.call(write(handle, 5_100, 10)).expect("room");
    harness.call(write(handle, 8_192, 4_096)).expect("room");
    harness.call(write(handle, 16_384, 9_000)).expect("room");
    assert_eq!(harness.take_seen(), [], "in memory, whole, behind the end");
    assert_eq!(harness.host.size(FILE), 25_384);
}

#[test]
fn fdatasync_leaves_times_alone_and_fsync_does_not() {
    let mut harness = Harness::new(&spec());
    let handle = harness.made(FILE);
    harness.call(write(handle, 0, 8_192)).expect("room");
    harness.call(SYNC).expect("there");
    harness.take_seen();
    let (w, f) = (IoOp::Write, IoOp::Flush);
    harness.call(write(handle, 0, 4_096)).expect("room");
    harness.call(Call::Sync { file: FILE, data_only: true }).expect("there");
    assert_eq!(harness.take_seen(), [(w, 4_096), (f, 0)]);
    harness.call(write(handle, 0, 4_096)).expect("room");
    harness.call(SYNC).expect("there");
    // Data; the inode behind its descriptor; flush; commit block.
    assert_eq!(harness.take_seen(), [(w, 4_096), (w, 8_192), (f, 0), (w, 4_096)]);
    harness.call(SYNC).expect("there");
    assert_eq!(harness.take_seen(), [(f, 0)], "nothing is left");
}

#[test]
fn long_pieces_begin_at_multiples_of_their_length() {
    let mut harness = Harness::new(&spec());
    for (number, bytes) in [(7, 12 << 10), (8, 1 << 20), (9, 16 << 20)] {
        let handle = harness.made(Inode(number));
        harness.call(write(handle, 0, bytes)).expect("room");
        harness.call(Call::Sync { file: Inode(number), data_only: true }).expect("there");
        let (block, _) =
            harness.host.files.get(&number).and_then(|file| file.place(0)).expect("a place");
        let alignment = (bytes / BLOCK).next_power_of_two().min(2_048);
        assert!(bytes < 64 << 10 || block.is_multiple_of(alignment), "{bytes} bytes at {block}");
        harness.host.close(handle);
    }
}

#[test]
fn without_a_journal_the_inode_goes_to_its_place() {
    let filesystem = FilesystemSpec { journal: None, ..FilesystemSpec::default() };
    let mut harness = Harness::new(&HostSpec { filesystem, ..spec() });
    let handle = harness.made(FILE);
    harness.call(write(handle, 0, 4_096)).expect("room");
    harness.call(SYNC).expect("there");
    let (w, f) = (IoOp::Write, IoOp::Flush);
    assert_eq!(harness.take_seen(), [(w, 4_096), (w, 4_096), (f, 0)]);
}

#[test]
fn places_are_chosen_at_write_back_or_at_once() {
    for delayed_allocation in [true, false] {
        let filesystem = FilesystemSpec { delayed_allocation, ..FilesystemSpec::default() };
        let mut harness = Harness::new(&HostSpec { filesystem, ..spec() });
        let handles = [harness.made(FILE), harness.made(Inode(2))];
        for part in 0..8 {
            for handle in handles {
                harness.call(write(handle, part << 18, 1 << 18)).expect("room");
            }
        }
        let pieces = harness.host.extents(FILE).len();
        assert_eq!(pieces, if delayed_allocation { 0 } else { 8 }, "writers in turn");
        harness.call(Call::SyncAll).expect("there");
        assert_eq!(harness.host.extents(FILE).len(), if delayed_allocation { 1 } else { 8 });
        assert_eq!(harness.host.dirty(), 0);
    }
}

#[test]
fn room_is_given_back() {
    let mut harness = Harness::new(&spec());
    let first = harness.made(FILE);
    harness.call(write(first, 0, 4_096)).expect("room");
    harness.call(Call::SyncAll).expect("there");
    let before = harness.host.available();
    let handle = harness.made(Inode(2));
    harness.call(write(handle, 0, 10 << 20)).expect("room");
    assert_eq!(harness.host.available(), before - (10 << 20), "promised");
    harness.call(Call::Sync { file: Inode(2), data_only: false }).expect("there");
    assert_eq!(harness.host.available(), before - (10 << 20), "placed");
    harness.call(write(handle, 10 << 20, 1 << 20)).expect("room");
    let cut = Change::Truncate(Inode(2), 1 << 20);
    harness.call(Call::Names { path: vec![], change: cut }).expect("there");
    assert_eq!(harness.host.available(), before - (1 << 20));
    let gone = Change::Remove { file: Inode(2), is_last: true };
    let path = vec![step(2, Some(Inode(2)))];
    harness.call(Call::Names { path, change: gone }).expect("there");
    assert_eq!(harness.call(read(handle, 0, 8_192)), Ok(8_192), "it is open");
    harness.host.close(handle);
    assert_eq!((harness.host.available(), harness.host.size(Inode(2))), (before, 0));
    assert!(harness.host.cached() < 1 << 20, "its pages are gone: {}", harness.host.cached());
    assert_eq!(harness.call(read(handle, 0, 1)), Err(Failure::NoFile));
}

#[test]
fn full_is_named_and_nothing_more_is_promised() {
    let spec = HostSpec { memory: 1 << 30, ..spec() };
    let mut host = Harness::new(&spec);
    host.host = Host::new(&spec, Sectors(1 << 16), ROOT).expect("32 MiB");
    let handle = host.made(FILE);
    let room = host.host.available();
    let failure = host.call(write(handle, 0, room + 1)).expect_err("too much");
    assert_eq!(failure, Failure::NoSpace { of: 32 << 20 });
    let at = host.host.size(FILE);
    assert_eq!(host.call(write(handle, at, room - at)), Ok(room - at));
    assert_eq!(host.host.available(), 0);
    host.call(Call::SyncAll).expect("promised");
}

#[test]
fn holes_and_what_was_never_written_are_not_read() {
    let mut harness = Harness::new(&spec());
    let handle = harness.made(FILE);
    let long = Change::Truncate(FILE, 1 << 20);
    harness.call(Call::Names { path: vec![], change: long }).expect("there");
    assert_eq!(harness.call(read(handle, 0, 2 << 20)), Ok(1 << 20), "to the end of the file");
    assert_eq!(harness.take_seen(), []);
}

#[test]
fn names_are_read_from_where_they_lie() {
    let mut harness = Harness::new(&spec());
    harness.made(FILE);
    harness.call(Call::SyncAll).expect("there");
    let stat = Call::Names { path: vec![step(1, Some(FILE))], change: Change::Nothing };
    harness.call(stat.clone()).expect("there");
    harness.take_seen();
    harness.host.drop_cached(None);
    harness.call(stat).expect("there");
    // The block of the directory, then the inode with those around it.
    assert_eq!(harness.take_seen(), [(IoOp::Read, 4_096), (IoOp::Read, 32 * 4_096)]);
}

#[test]
fn timers_are_those_of_journal_and_age() {
    let mut harness = Harness::new(&spec());
    let handle = harness.made(FILE);
    harness.call(write(handle, 0, 4_096)).expect("room");
    let began = harness.wake.expect("a commit is due");
    assert!((Time(5_000_000_000)..Time(5_001_000_000)).contains(&began), "{began:?}");
    harness.call(SYNC).expect("there");
    // Nothing of the file is dirty, but the metadata must go to their places.
    assert_eq!(harness.wake, Some(Time(35_000_000_000)));
}

#[test]
fn spans_beyond_the_window_are_asked_for_in_requests_of_the_device() {
    let mut harness = Harness::new(&spec());
    let handle = harness.made(FILE);
    harness.call(write(handle, 0, 4 << 20)).expect("room");
    harness.call(Call::SyncAll).expect("there");
    harness.host.drop_cached(None);
    harness.take_seen();
    harness.call(read(handle, 0, 4 << 20)).expect("there");
    let reads = harness.take_seen();
    assert_eq!(reads.iter().map(|(_, len)| len).sum::<u64>(), 4 << 20, "{reads:?}");
    assert!(reads.iter().all(|(_, len)| *len <= 1 << 20));
    assert!(reads.len() <= 8, "{reads:?}");
}

#[test]
fn the_next_window_is_asked_for_before_it_is_needed() {
    let mut harness = Harness::new(&spec());
    let handle = harness.made(FILE);
    harness.call(write(handle, 0, 1 << 20)).expect("room");
    harness.call(Call::SyncAll).expect("there");
    harness.host.drop_cached(None);
    harness.take_seen();
    harness.call(read(handle, 0, 4_096)).expect("there");
    assert_eq!(harness.take_seen(), [(IoOp::Read, 16_384)]);
    harness.call(read(handle, 4_096, 4_096)).expect("there");
    assert_eq!(harness.take_seen(), [(IoOp::Read, 32_768)], "the mark was in the second page");
    harness.call(read(handle, 8_192, 8_192)).expect("there");
    assert_eq!(harness.take_seen(), []);
}

fn on(filesystem: FilesystemKind) -> HostSpec {
    HostSpec { filesystem: FilesystemSpec::of(filesystem), ..spec() }
}

/// Where a file of 8 MiB lies: first page, first block and number of blocks of each piece.
fn pieces(spec: &HostSpec) -> Vec<(u64, u64, u64)> {
    let mut harness = Harness::new(spec);
    let handle = harness.made(FILE);
    harness.call(write(handle, 0, 8 << 20)).expect("room");
    harness.call(Call::SyncAll).expect("there");
    let blocks = |(at, sector, len): (u64, Sector, Sectors)| {
        (at / BLOCK, sector.0 / BLOCK_SECTORS, len.0 / BLOCK_SECTORS)
    };
    harness.host.extents(FILE).into_iter().map(blocks).collect()
}

#[test]
fn indirect_blocks_lie_in_the_way_of_a_file() {
    let pieces_of = pieces(&on(FilesystemKind::Ext3));
    let pages: Vec<u64> = pieces_of.iter().map(|(page, _, _)| *page).collect();
    assert_eq!(pages, [0, 12, 1_036]);
    let gaps: Vec<u64> = pieces_of.windows(2).map(|two| two[1].1 - two[0].1 - two[0].2).collect();
    assert_eq!(gaps, [1, 2], "an indirect block; another with the double one");
    assert_eq!(pieces(&on(FilesystemKind::Ext3).without(Mechanism::IndirectBlocks)).len(), 1);
    assert_eq!(pieces(&on(FilesystemKind::Ext4)).len(), 1);
}

#[test]
fn a_reader_waits_for_the_indirect_block() {
    for direct in [false, true] {
        let mut harness = Harness::new(&on(FilesystemKind::Ext2));
        let handle = harness.made(FILE);
        harness.call(write(handle, 0, 1 << 20)).expect("room");
        harness.call(Call::SyncAll).expect("there");
        harness.host.drop_cached(None);
        harness.take_seen();
        let handle = harness.host.open(FILE, direct, false).expect("there");
        harness.call(read(handle, 100 << 12, 8_192)).expect("there");
        let of = |bytes| (IoOp::Read, bytes);
        assert_eq!(harness.take_seen(), [of(4_096), of(8_192)], "pointers, then data");
        harness.call(read(handle, 200 << 12, 4_096)).expect("there");
        assert_eq!(harness.take_seen(), [of(4_096)], "pointers stay in memory");
        harness.call(read(handle, 4 << 12, 4_096)).expect("there");
        assert_eq!(harness.take_seen(), [of(4_096)], "the inode names the first blocks");
    }
}

#[test]
fn cutting_a_file_reads_its_indirect_blocks_and_gives_them_back() {
    let mut harness = Harness::new(&on(FilesystemKind::Ext3));
    let before = harness.host.available();
    let handle = harness.made(FILE);
    harness.call(write(handle, 0, 16 << 20)).expect("room");
    harness.call(Call::SyncAll).expect("there");
    harness.host.drop_cached(None);
    harness.take_seen();
    let gone = Change::Remove { file: FILE, is_last: true };
    harness.host.close(handle);
    harness.call(Call::Names { path: vec![step(1, Some(FILE))], change: gone }).expect("there");
    let reads = harness.take_seen().into_iter().filter(|(op, _)| *op == IoOp::Read);
    let bytes: u64 = reads.map(|(_, bytes)| bytes).sum();
    // 4,096 pages: 12, and four pieces of 1,024; a double one. The directory, the inodes, their bitmap.
    assert_eq!(bytes / BLOCK, 5 + 3);
    assert_eq!(harness.host.available(), before);
}

#[test]
fn growing_files_keep_room_behind_their_end() {
    let pieces = |spec: &HostSpec| {
        let mut harness = Harness::new(spec);
        let handles = [harness.made(FILE), harness.made(Inode(2))];
        for part in 0..64 {
            for handle in handles {
                harness.call(write(handle, part << 17, 1 << 17)).expect("room");
            }
        }
        let room = harness.host.available();
        handles.into_iter().for_each(|handle| harness.host.close(handle));
        assert!(harness.host.available() >= room, "given back");
        harness.host.extents(FILE).len()
    };
    let ext3 = on(FilesystemKind::Ext3).without(Mechanism::IndirectBlocks);
    let (with, without) = (pieces(&ext3), pieces(&ext3.without(Mechanism::Reservation)));
    assert_eq!(without, 64, "writers in turn");
    assert!((2..16).contains(&with), "{with}");
}

#[test]
fn full_counts_what_others_keep() {
    let spec = HostSpec { memory: 1 << 30, ..on(FilesystemKind::Ext3) };
    let mut harness = Harness::new(&spec);
    harness.host = Host::new(&spec, Sectors(1 << 16), ROOT).expect("32 MiB");
    let (first, other) = (harness.made(FILE), harness.made(Inode(2)));
    for part in 0..16 {
        harness.call(write(other, part << 17, 1 << 17)).expect("room");
    }
    // Room for its own indirect blocks is not counted.
    let room = (harness.host.available() >> 17 << 17) - (1 << 17);
    let mut at = 0;
    while at < room {
        harness.call(write(first, at, 1 << 17)).expect("room");
        at += 1 << 17;
    }
    let failure = harness.call(write(first, at, 4 << 20)).expect_err("full");
    assert_eq!(failure, Failure::NoSpace { of: 32 << 20 });
}

#[test]
fn files_of_ffs_go_on_in_the_next_group() {
    let spec = HostSpec { memory: 1 << 30, ..on(FilesystemKind::Ffs) };
    let mut harness = Harness::new(&spec);
    let handle = harness.made(FILE);
    harness.call(write(handle, 0, 80 << 20)).expect("room");
    harness.call(Call::SyncAll).expect("there");
    let group = |(at, sector, _): (u64, Sector, Sectors)| {
        (at >> 10, sector.0 * 512 / spec.filesystem.group_bytes)
    };
    let mut groups: Vec<_> = harness.host.extents(FILE).into_iter().map(group).collect();
    groups.dedup_by_key(|(_, group)| *group);
    // 12 blocks of 16 KiB, then 32 MiB in each.
    let expected = [(0, 0), (192, 1), (192 + 32_768, 2), (192 + 65_536, 3)];
    assert_eq!(groups, expected);
}

#[test]
fn blocks_of_ffs_are_read_as_a_whole() {
    let mut harness = Harness::new(&on(FilesystemKind::Ffs));
    let handle = harness.made(FILE);
    harness.call(write(handle, 0, 128 << 10)).expect("room");
    harness.call(Call::SyncAll).expect("there");
    harness.host.drop_cached(None);
    harness.take_seen();
    harness.call(read(handle, 70_000, 100)).expect("there");
    assert_eq!(harness.take_seen(), [(IoOp::Read, 16_384)]);
}

#[test]
fn without_read_ahead_each_read_is_a_request() {
    let mut harness = Harness::new(&spec().without(Mechanism::ReadAhead));
    let handle = harness.made(FILE);
    harness.call(write(handle, 0, 1 << 20)).expect("room");
    harness.call(Call::SyncAll).expect("there");
    harness.host.drop_cached(None);
    harness.take_seen();
    let all = Call::Read { handle, at: 0, len: 65_536, times: 16, copies: true };
    harness.call(all).expect("there");
    assert_eq!(harness.take_seen(), vec![(IoOp::Read, 65_536); 16]);
}

#[test]
fn two_windows_are_in_flight_in_old_kernels() {
    let old = Kernel::Linux2_6_12.spec();
    let mut harness = Harness::new(&HostSpec { memory: 64 << 20, ..old });
    let handle = harness.made(FILE);
    harness.call(write(handle, 0, 40 << 10)).expect("room");
    harness.call(write(handle, 40 << 10, 1 << 20)).expect("room");
    harness.call(Call::SyncAll).expect("there");
    harness.host.drop_cached(None);
    harness.take_seen();
    let (window, page) = (128 << 10, 4_096);
    harness.call(read(handle, 0, 1)).expect("there");
    // A quarter of the window; page 12 on lies behind an indirect block.
    assert_eq!(harness.take_seen(), [(IoOp::Read, window / 4)]);
    harness.call(read(handle, 1 << 12, 1)).expect("there");
    let of = |bytes| (IoOp::Read, bytes);
    assert_eq!(harness.take_seen(), [of(4 * page), of(page), of(12 * page)]);
}

/// The requests that a read asks for before it waits for the first of them.
fn asked_before_waiting(harness: &mut Harness, call: Call) -> Vec<(IoOp, u64)> {
    harness.take_seen();
    harness.begin(call);
    assert_eq!(harness.heed(), None, "it waits");
    let asked = harness.take_seen();
    while harness.heed().is_none() {
        harness.answer_one();
    }
    asked
}

/// Linux sees the mark on a page that is still being read, so that two windows are under way; FreeBSD
/// waits for the block first.
#[test]
fn marks_are_seen_on_pages_that_are_being_read() {
    let harness = |rule| {
        let mut spec = HostSpec { read_ahead_rule: rule, ..spec() };
        if rule == ReadAheadRule::Clusters {
            spec.longest_request = 8 << 12;
        }
        let mut harness = Harness::new(&spec);
        let handle = harness.made(FILE);
        harness.call(write(handle, 0, 4 << 20)).expect("room");
        harness.call(Call::SyncAll).expect("there");
        harness.host.drop_cached(None);
        (harness, handle)
    };
    let of = |pages: u64| (IoOp::Read, pages << 12);
    // Windows of 4 and 8 pages by the second page; the mark of the second one is on page 4.
    let (mut on_demand, handle) = harness(ReadAheadRule::OnDemand);
    for page in 0..4 {
        on_demand.call(read(handle, page << 12, 4_096)).expect("there");
    }
    assert_eq!(asked_before_waiting(&mut on_demand, read(handle, 4 << 12, 4_096)), [of(16)]);
    // Windows of 8 and 16 pages; the mark is on page 8.
    let (mut two, handle) = harness(ReadAheadRule::TwoWindows);
    for page in 0..8 {
        two.call(read(handle, page << 12, 4_096)).expect("there");
    }
    assert_eq!(asked_before_waiting(&mut two, read(handle, 8 << 12, 4_096)), [of(32)]);
    // Clusters of 8 pages; the one from page 32 on has a mark, and the next two are asked for behind it.
    let (mut clusters, handle) = harness(ReadAheadRule::Clusters);
    for cluster in 0..4 {
        clusters.call(read(handle, cluster << 15, 8 << 12)).expect("there");
    }
    assert_eq!(asked_before_waiting(&mut clusters, read(handle, 4 << 15, 8 << 12)), []);
    assert_eq!(clusters.take_seen(), [of(8), of(8)], "when it is there");
}

/// How many directories can be made in a row without waiting for a request, at most `most`, and the host
/// as it is then. Each is in a group of its own, and changes blocks of its own.
fn directories_without_waiting(journal: u64, most: u64) -> (u64, Harness, HostDescriptor) {
    let journal = Some(JournalSpec { bytes: journal, ..JournalSpec::default() });
    let filesystem = FilesystemSpec { journal, group_bytes: 16 << 20, ..FilesystemSpec::default() };
    let kernel = Kernel::Linux2_6_27;
    let mut harness = Harness::new(&HostSpec { kernel, filesystem, ..spec() });
    let handle = harness.made(FILE);
    for made in 0..most {
        if harness.waits(create(Inode(2 + made), true)) {
            return (made, harness, handle);
        }
    }
    (most, harness, handle)
}

/// A transaction is full with a quarter of the journal: who changes metadata then waits while the one
/// before is being committed, and goes on when it is.
#[test]
fn a_full_transaction_makes_those_wait_who_change_metadata() {
    let (small, large) = (1 << 20, 64 << 20);
    let (made, mut harness, _) = directories_without_waiting(small, 400);
    // Two transactions of 64 blocks: three or four a directory.
    assert!((20..60).contains(&made), "{made}");
    let mut waited = 0;
    for file in 0..400 {
        waited += u32::from(harness.waits(create(Inode(1_000 + file), true)));
    }
    assert!(waited >= 4, "again and again: {waited}");
    let (all, mut free, handle) = directories_without_waiting(large, 400);
    assert_eq!(all, 400);
    assert!(!free.waits(write(handle, 0, 4_096)));
    // A writer changes metadata as well; who only looks does not.
    let (_, mut full, handle) = directories_without_waiting(small, made);
    let stat = Call::Names { path: vec![step(1, Some(FILE))], change: Change::Nothing };
    assert!(!full.waits(stat), "to look changes nothing");
    assert!(full.waits(write(handle, 0, 4_096)));
}

/// What is left for data used once bounds the pages in memory; what may be dirty is a share of all memory.
#[test]
fn a_cache_smaller_than_memory_bounds_pages_and_not_dirty_limits() {
    let whole = spec();
    let part = HostSpec { cache: Some(32 << 20), ..whole };
    assert_eq!((part.limit(), part.background()), (whole.limit(), whole.background()));
    assert_eq!((whole.limit(), part.pages()), ((64 << 20) / 5 / BLOCK, (32 << 20) / BLOCK));
    let more = HostSpec { cache: Some(1 << 30), ..whole };
    assert_eq!(more.pages(), whole.pages(), "no more than there is memory");
    // Never more than three quarters of the pages there are.
    let small = HostSpec { cache: Some(8 << 20), dirty: DirtyLimit::Percent(90), ..whole };
    assert_eq!(small.limit(), (6 << 20) / BLOCK);
    let most = |spec: &HostSpec| {
        let mut harness = Harness::new(spec);
        let handle = harness.made(FILE);
        let (mut most, mut dirty) = (0, 0);
        for part in 0..384 {
            harness.call(write(handle, part << 18, 1 << 18)).expect("room");
            (most, dirty) = (most.max(harness.host.cached()), dirty.max(harness.host.unwritten()));
        }
        for part in 0..384 {
            harness.call(read(handle, part << 18, 1 << 18)).expect("there");
            most = most.max(harness.host.cached());
        }
        (most >> 20, dirty >> 20)
    };
    let (cached, dirty) = most(&part);
    assert!((30..=32).contains(&cached), "{cached} MiB");
    assert_eq!(dirty, most(&whole).1, "the same limit");
    assert!(most(&whole).0 > 60);
    let none = HostSpec { cache: Some(4 << 20), ..whole };
    assert!(none.check().expect_err("too small").contains("cache: at least 8 MiB"));
}

/// Bytes through `putc`: so many times its cost, in whole nanoseconds.
#[test]
fn characters_cost_what_each_of_them_does() {
    let costs = CallCosts { character: 65_432, ..CallCosts::default() };
    assert_eq!(costs.characters(1_000_000), Nanos(65_432_000));
    assert_eq!((costs.characters(1), costs.characters(0)), (Nanos(65), Nanos::ZERO));
    assert_eq!(costs.characters(1 << 40).0, ((1_u128 << 40) * 65_432 / 1_000) as u64);
    let free = spec().without(Mechanism::CallCost);
    assert_eq!(free.costs.characters(1 << 30), Nanos::ZERO);
    let pentium = Processor::named("pentium3-860").expect("known");
    // 65 clocks of 860 MHz.
    assert_eq!(pentium.costs.character, 75_581);
}

#[test]
fn reading_changes_the_inode_once_a_second_where_times_of_access_are_kept() {
    let old = HostSpec { memory: 64 << 20, ..Kernel::Linux2_6_12.spec() };
    let (w, f) = (IoOp::Write, IoOp::Flush);
    let without = old.without(Mechanism::AccessTimes);
    for (spec, keeps) in [(old, true), (without, false), (spec(), false)] {
        let mut harness = Harness::new(&spec);
        let handle = harness.made(FILE);
        harness.call(write(handle, 0, 8_192)).expect("room");
        harness.call(SYNC).expect("there");
        harness.take_seen();
        harness.now = harness.now + Nanos::from_millis(2_000);
        harness.call(read(handle, 0, 4_096)).expect("there");
        harness.call(read(handle, 4_096, 4_096)).expect("there");
        harness.call(SYNC).expect("there");
        let changed: Vec<_> =
            harness.take_seen().into_iter().filter(|seen| *seen != (f, 0)).collect();
        // The inode behind its descriptor, and the commit block.
        let expected: &[_] = if keeps { &[(w, 8_192), (w, 4_096)] } else { &[] };
        assert_eq!(changed, expected);
        harness.call(read(handle, 0, 4_096)).expect("there");
        harness.call(SYNC).expect("there");
        let again = harness.take_seen().into_iter().any(|(op, _)| op == w);
        assert!(!again, "within the same second nothing changes");
    }
}

#[test]
fn a_copy_reads_and_writes_in_turns_to_the_end_of_the_source() {
    let mut harness = Harness::new(&spec());
    let (source, target) = (harness.made(FILE), harness.made(Inode(2)));
    harness.call(write(source, 0, 600_000)).expect("room");
    let before = harness.now;
    let from = Source::File(source);
    let copy = Call::Copy { from, from_at: 10_000, to: target, at: 5, len: 4_096, times: 1_000 };
    assert_eq!(harness.call(copy), Ok(590_000));
    assert_eq!(harness.host.size(Inode(2)), 590_005);
    // As many reads as writes, the last ones shorter; all in memory.
    let (calls, costs) = (590_000_u64.div_ceil(4_096), spec().costs);
    let each = Nanos(2 * calls * costs.call.0 + 2 * costs.copy(590_000).0);
    let took = harness.now.since(before);
    assert!(took.0.abs_diff(each.0) < 20, "{took:?} {each:?}: rounding by pieces");
    let (from, size) = (Source::Memory { size: 7_000 }, 7_000);
    let call = Call::Copy { from, from_at: 1_000, to: target, at: 0, len: 4_096, times: 9 };
    assert_eq!(harness.call(call), Ok(size - 1_000));
}

#[test]
fn names_whose_blocks_are_in_memory_are_cpu_time_from_the_start() {
    let mut harness = Harness::new(&spec());
    harness.begin(create(FILE, false));
    let cost = spec().costs.name;
    let last = HostOutput::Last { task: TaskId(3), cost };
    let outputs: Vec<_> = std::iter::from_fn(|| harness.host.poll()).collect();
    assert_eq!(outputs.iter().filter(|output| **output == last).count(), 1, "{outputs:?}");
    assert!(harness.host.open(FILE, false, false).is_some());
    // What must be read first is waited for.
    harness.call(Call::SyncAll).expect("can be");
    harness.host.drop_cached(None);
    assert!(harness.waits(create(Inode(2), false)));
}

#[test]
fn a_copy_past_the_page_cache_is_not_supported() {
    let mut harness = Harness::new(&spec());
    harness.made(FILE);
    let to = harness.host.open(FILE, true, false).expect("there");
    let from = Source::Memory { size: 8_192 };
    let call = Call::Copy { from, from_at: 0, to, at: 0, len: 4_096, times: 2 };
    assert_eq!(harness.call(call), Err(Failure::Direct));
    for is_read in [false, true] {
        let call = Call::StdioBytes { handle: to, at: 0, len: 4096, times: 1, is_read };
        assert_eq!(harness.call(call), Err(Failure::Direct));
    }
}

#[test]
fn what_is_prefilled_has_the_places_it_would_have_and_is_not_written() {
    let old = HostSpec { memory: 64 << 20, ..Kernel::Linux2_6_12.spec() };
    let lie = |prefills| {
        let mut harness = Harness::new(&old);
        harness.host.prefill(prefills);
        let (one, two) = (harness.made(FILE), harness.made(Inode(2)));
        for index in 0..20 {
            harness.call(write(one, index << 20, 1 << 20)).expect("room");
            harness.call(write(two, index << 20, 5 << 17)).expect("room");
        }
        let dirty = harness.host.dirty();
        harness.call(Call::SyncAll).expect("there");
        let data = harness.seen.iter().filter(|io| io.len.bytes() > 64 << 10).count();
        (harness.host.extents(FILE), harness.host.extents(Inode(2)), dirty, data)
    };
    let (written, prefilled) = (lie(false), lie(true));
    assert_eq!((&prefilled.0, &prefilled.1), (&written.0, &written.1));
    assert!(written.3 > 100 && written.2 > 8 << 20, "{written:?}");
    assert!(prefilled.3 < 5 && prefilled.2 < 1 << 20, "{prefilled:?}: metadata alone");
}
