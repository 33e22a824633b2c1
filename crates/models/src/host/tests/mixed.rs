//! Buffered and direct calls on one file, and memory that is full of what is being read.

use super::*;

/// Begins a call of another task.
fn begin(harness: &mut Harness, task: u32, call: Call) {
    let input = HostInput::Call { task: TaskId(task), process: task, call };
    harness.host.handle(harness.now, input);
    harness.heed();
}

/// A direct write forgets a page that is being read; another reader has it read again, and that request may end before
/// or after the first one.
#[test]
fn a_page_that_a_direct_write_forgot_comes_with_the_request_for_it() {
    for last_first in [true, false] {
        let mut harness = Harness::new(&spec());
        let handle = harness.made(FILE);
        harness.call(write(handle, 0, 1 << 20)).expect("room");
        harness.call(SYNC).expect("there");
        harness.host.drop_cached(None);
        let open =
            |harness: &mut Harness, direct| harness.host.open(FILE, direct, false).expect("there");
        let (one, direct) = (open(&mut harness, false), open(&mut harness, true));
        let other = open(&mut harness, false);
        begin(&mut harness, 10, read(one, 0, 128 << 10));
        let mut rest = std::mem::take(&mut harness.waiting);
        let first = rest.pop_front().expect("it is read");
        assert_eq!(first.len, Sectors(256));
        begin(&mut harness, 11, write(direct, 0, 4_096));
        let written = harness.waiting.pop_front().expect("it is written");
        harness.host.handle(harness.now, HostInput::Ended(written.id));
        harness.heed();
        begin(&mut harness, 12, read(other, 0, 128 << 10));
        let again = harness.waiting.pop_front().expect("its first page is read again");
        assert!((again.op, again.at) == (IoOp::Read, first.at));
        let order = if last_first { [again.id, first.id] } else { [first.id, again.id] };
        harness.host.handle(harness.now, HostInput::Ended(order[0]));
        harness.heed();
        let page = harness.host.cache.page(FILE.0, 0);
        assert_eq!(page == Page::Present, last_first, "it comes with the second request");
        harness.host.handle(harness.now, HostInput::Ended(order[1]));
        harness.heed();
        harness.waiting.extend(rest);
        while !harness.waiting.is_empty() {
            harness.answer_one();
            harness.heed();
        }
        assert_eq!(harness.host.cache.page(FILE.0, 0), Page::Present);
        assert_eq!(harness.host.tasks.iter().flatten().count(), 0, "all calls have ended");
    }
}

/// Names are looked up in blocks that were never written, while readers hold more memory than there is.
#[test]
fn names_are_made_while_memory_is_full_of_what_is_being_read() {
    let mut harness = Harness::new(&HostSpec { memory: 8 << 20, ..spec() });
    let handle = harness.made(FILE);
    harness.call(write(handle, 0, 16 << 20)).expect("room");
    harness.call(SYNC).expect("there");
    harness.host.drop_cached(None);
    for reader in 0..12 {
        let handle = harness.host.open(FILE, false, false).expect("there");
        begin(&mut harness, 10 + reader, read(handle, u64::from(reader) << 20, 1 << 20));
    }
    assert!(harness.host.cached() > 4 << 20, "{}", harness.host.cached());
    for file in 50..60 {
        begin(&mut harness, 3, create(Inode(file), false));
        while harness.host.files.get(&file).is_none() {
            harness.answer_one();
            harness.heed();
        }
    }
}
