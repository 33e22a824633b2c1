//! The host alone: requests are answered in order, each after a millisecond.

use super::*;

const ROOT: HostFile = HostFile(0);
const FILE: HostFile = HostFile(1);

struct Rig {
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

fn step(name: u64, file: Option<HostFile>) -> Step {
    Step { directory: ROOT, name, file }
}

fn create(file: HostFile, is_directory: bool) -> Call {
    let path = vec![step(file.0, None)];
    Call::Names { path, change: Change::Create { file, is_directory } }
}

impl Rig {
    fn new(spec: &HostSpec) -> Self {
        let host = Host::new(spec, Sectors(1 << 24), ROOT).expect("possible");
        let (waiting, seen) = (VecDeque::new(), Vec::new());
        Self { host, now: Time::ZERO, waiting, seen, wake: None }
    }

    /// Calls and waits for the end; what was moved.
    fn call(&mut self, call: Call) -> Result<u64, Failure> {
        let task = TaskId(3);
        self.host.handle(self.now, HostInput::Call { task, process: 7, call });
        let mut result = None;
        loop {
            while let Some(output) = self.host.poll() {
                match output {
                    HostOutput::Block(io) => {
                        self.seen.push(io);
                        self.waiting.push_back(io);
                    }
                    HostOutput::Compute { task, cost } => {
                        self.now = self.now + cost;
                        self.host.handle(self.now, HostInput::Computed(task));
                    }
                    HostOutput::Moved { .. } => {}
                    HostOutput::Done { moved, .. } => result = Some(Ok(moved)),
                    HostOutput::Failed { failure, .. } => result = Some(Err(failure)),
                    HostOutput::WakeAt(at) => self.wake = Some(at),
                }
            }
            if let Some(result) = result {
                return result;
            }
            let io = self.waiting.pop_front().expect("a call under way waits for a request");
            self.now = self.now + Nanos::from_millis(1);
            self.host.handle(self.now, HostInput::Ended(io.id));
        }
    }

    fn made(&mut self, file: HostFile) -> Handle {
        self.call(create(file, false)).expect("room");
        self.host.open(file, false, false).expect("there")
    }

    fn take_seen(&mut self) -> Vec<(RequestOp, u64)> {
        self.seen.drain(..).map(|io| (io.op, io.len.bytes())).collect()
    }
}

fn write(handle: Handle, at: u64, len: u64) -> Call {
    Call::Write { handle, at, len, times: 1 }
}

fn read(handle: Handle, at: u64, len: u64) -> Call {
    Call::Read { handle, at, len, times: 1, copies: true }
}

const SYNC: Call = Call::Sync { file: FILE, data_only: false };

#[test]
fn a_part_of_a_page_that_is_not_in_memory_is_read_first() {
    let mut rig = Rig::new(&spec());
    let handle = rig.made(FILE);
    rig.call(write(handle, 0, 20_000)).expect("room");
    rig.call(SYNC).expect("there");
    rig.host.drop_cached(None);
    rig.take_seen();
    rig.call(write(handle, 5_000, 10)).expect("room");
    assert_eq!(rig.take_seen(), [(RequestOp::Read, 4_096)]);
    rig.call(write(handle, 5_100, 10)).expect("room");
    rig.call(write(handle, 8_192, 4_096)).expect("room");
    rig.call(write(handle, 16_384, 9_000)).expect("room");
    assert_eq!(rig.take_seen(), [], "in memory, whole, behind the end");
    assert_eq!(rig.host.size(FILE), 25_384);
}

#[test]
fn fdatasync_leaves_times_alone_and_fsync_does_not() {
    let mut rig = Rig::new(&spec());
    let handle = rig.made(FILE);
    rig.call(write(handle, 0, 8_192)).expect("room");
    rig.call(SYNC).expect("there");
    rig.take_seen();
    let (w, f) = (RequestOp::Write, RequestOp::Flush);
    rig.call(write(handle, 0, 4_096)).expect("room");
    rig.call(Call::Sync { file: FILE, data_only: true }).expect("there");
    assert_eq!(rig.take_seen(), [(w, 4_096), (f, 0)]);
    rig.call(write(handle, 0, 4_096)).expect("room");
    rig.call(SYNC).expect("there");
    // Data; the inode behind its descriptor; flush; commit block.
    assert_eq!(rig.take_seen(), [(w, 4_096), (w, 8_192), (f, 0), (w, 4_096)]);
    rig.call(SYNC).expect("there");
    assert_eq!(rig.take_seen(), [(f, 0)], "nothing is left");
}

#[test]
fn without_a_journal_the_inode_goes_to_its_place() {
    let filesystem = FilesystemSpec { journal: None, ..FilesystemSpec::default() };
    let mut rig = Rig::new(&HostSpec { filesystem, ..spec() });
    let handle = rig.made(FILE);
    rig.call(write(handle, 0, 4_096)).expect("room");
    rig.call(SYNC).expect("there");
    let (w, f) = (RequestOp::Write, RequestOp::Flush);
    assert_eq!(rig.take_seen(), [(w, 4_096), (w, 4_096), (f, 0)]);
}

#[test]
fn places_are_chosen_at_write_back_or_at_once() {
    for delayed_allocation in [true, false] {
        let filesystem = FilesystemSpec { delayed_allocation, ..FilesystemSpec::default() };
        let mut rig = Rig::new(&HostSpec { filesystem, ..spec() });
        let handles = [rig.made(FILE), rig.made(HostFile(2))];
        for part in 0..8 {
            for handle in handles {
                rig.call(write(handle, part << 18, 1 << 18)).expect("room");
            }
        }
        let pieces = rig.host.extents(FILE).len();
        assert_eq!(pieces, if delayed_allocation { 0 } else { 8 }, "writers in turn");
        rig.call(Call::SyncAll).expect("there");
        assert_eq!(rig.host.extents(FILE).len(), if delayed_allocation { 1 } else { 8 });
        assert_eq!(rig.host.dirty(), 0);
    }
}

#[test]
fn room_is_given_back() {
    let mut rig = Rig::new(&spec());
    let first = rig.made(FILE);
    rig.call(write(first, 0, 4_096)).expect("room");
    rig.call(Call::SyncAll).expect("there");
    let before = rig.host.available();
    let handle = rig.made(HostFile(2));
    rig.call(write(handle, 0, 10 << 20)).expect("room");
    assert_eq!(rig.host.available(), before - (10 << 20), "promised");
    rig.call(Call::Sync { file: HostFile(2), data_only: false }).expect("there");
    assert_eq!(rig.host.available(), before - (10 << 20), "placed");
    rig.call(write(handle, 10 << 20, 1 << 20)).expect("room");
    let cut = Change::Truncate(HostFile(2), 1 << 20);
    rig.call(Call::Names { path: vec![], change: cut }).expect("there");
    assert_eq!(rig.host.available(), before - (1 << 20));
    let gone = Change::Remove { file: HostFile(2), is_last: true };
    let path = vec![step(2, Some(HostFile(2)))];
    rig.call(Call::Names { path, change: gone }).expect("there");
    assert_eq!(rig.call(read(handle, 0, 8_192)), Ok(8_192), "it is open");
    rig.host.close(handle);
    assert_eq!((rig.host.available(), rig.host.size(HostFile(2))), (before, 0));
    assert!(rig.host.cached() < 1 << 20, "its pages are gone: {}", rig.host.cached());
    assert_eq!(rig.call(read(handle, 0, 1)), Err(Failure::NoFile));
}

#[test]
fn full_is_named_and_nothing_more_is_promised() {
    let spec = HostSpec { memory: 1 << 30, ..spec() };
    let mut host = Rig::new(&spec);
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
    let mut rig = Rig::new(&spec());
    let handle = rig.made(FILE);
    let long = Change::Truncate(FILE, 1 << 20);
    rig.call(Call::Names { path: vec![], change: long }).expect("there");
    assert_eq!(rig.call(read(handle, 0, 2 << 20)), Ok(1 << 20), "to the end of the file");
    assert_eq!(rig.take_seen(), []);
}

#[test]
fn names_are_read_from_where_they_lie() {
    let mut rig = Rig::new(&spec());
    rig.made(FILE);
    rig.call(Call::SyncAll).expect("there");
    let stat = Call::Names { path: vec![step(1, Some(FILE))], change: Change::Nothing };
    rig.call(stat.clone()).expect("there");
    rig.take_seen();
    rig.host.drop_cached(None);
    rig.call(stat).expect("there");
    // The block of the directory, then the inode with those around it.
    assert_eq!(rig.take_seen(), [(RequestOp::Read, 4_096), (RequestOp::Read, 32 * 4_096)]);
}

#[test]
fn timers_are_those_of_journal_and_age() {
    let mut rig = Rig::new(&spec());
    let handle = rig.made(FILE);
    rig.call(write(handle, 0, 4_096)).expect("room");
    let began = rig.wake.expect("a commit is due");
    assert!(began > Time(5_000_000_000) && began < Time(5_001_000_000), "{began:?}");
    rig.call(SYNC).expect("there");
    // Nothing of the file is dirty, but the metadata must go to their places.
    assert_eq!(rig.wake, Some(Time(35_000_000_000)));
}

#[test]
fn spans_beyond_the_window_are_asked_for_in_requests_of_the_device() {
    let mut rig = Rig::new(&spec());
    let handle = rig.made(FILE);
    rig.call(write(handle, 0, 4 << 20)).expect("room");
    rig.call(Call::SyncAll).expect("there");
    rig.host.drop_cached(None);
    rig.take_seen();
    rig.call(read(handle, 0, 4 << 20)).expect("there");
    let reads = rig.take_seen();
    assert_eq!(reads.iter().map(|(_, len)| len).sum::<u64>(), 4 << 20, "{reads:?}");
    assert!(reads.iter().all(|(_, len)| *len <= 512 << 10));
    assert!(reads.len() <= 12, "{reads:?}");
}

#[test]
fn the_next_window_is_asked_for_before_it_is_needed() {
    let mut rig = Rig::new(&spec());
    let handle = rig.made(FILE);
    rig.call(write(handle, 0, 1 << 20)).expect("room");
    rig.call(Call::SyncAll).expect("there");
    rig.host.drop_cached(None);
    rig.take_seen();
    rig.call(read(handle, 0, 4_096)).expect("there");
    assert_eq!(rig.take_seen(), [(RequestOp::Read, 16_384)]);
    rig.call(read(handle, 4_096, 4_096)).expect("there");
    assert_eq!(rig.take_seen(), [(RequestOp::Read, 32_768)], "the mark was in the second page");
    rig.call(read(handle, 8_192, 8_192)).expect("there");
    assert_eq!(rig.take_seen(), []);
}
