//! Where ext4 of today places data, and what its commits wait for.

use super::*;

impl Harness {
    /// Where the first blocks of a file lie.
    fn block_of(&self, file: u64, page: u64) -> u64 {
        let file = self.host.files.get(&file).expect("there");
        file.place(page).expect("has a place").0
    }

    fn sync(&mut self, file: u64) {
        self.call(Call::Sync { file: Inode(file), data_only: false }).expect("there");
    }

    /// A directory in the root, and a file in it.
    fn made_below(&mut self, directory: u64, file: u64) -> HostDescriptor {
        self.call(create(Inode(directory), true)).expect("room");
        let above = step(directory, Some(Inode(directory)));
        let name = PathComponent { directory: Inode(directory), name: file, file: None };
        let change = Change::Create { file: Inode(file), is_directory: false };
        self.call(Call::Names { path: vec![above, name], change }).expect("room");
        self.host.open(Inode(file), false, false).expect("there")
    }
}

/// md of 6.12 has the commit block and the flush before it at once, and the block first.
#[test]
fn a_commit_block_goes_beside_its_flush_where_the_array_takes_it_so() {
    let (w, f) = ((IoOp::Write, 4_096), (IoOp::Flush, 0));
    for flushes_beside_writes in [false, true] {
        let mut harness = Harness::new(&HostSpec { flushes_beside_writes, ..spec() });
        let handle = harness.made(FILE);
        harness.call(write(handle, 0, 4_096)).expect("room");
        harness.begin(SYNC);
        let mut most = 0;
        while harness.heed().is_none() {
            most = most.max(harness.waiting.len());
            harness.answer_one();
        }
        assert_eq!(most, 1 + usize::from(flushes_beside_writes));
        let seen = harness.take_seen();
        let last = if flushes_beside_writes { [w, f] } else { [f, w] };
        assert_eq!(seen[seen.len() - 2..], last);
    }
}

/// So an array of disks flushes one place for the files of many processes, not one for each of their
/// directories.
#[test]
fn small_files_lie_one_behind_the_other_whatever_their_directories() {
    let mut harness = Harness::new(&spec());
    let files: Vec<_> = (0..8).map(|one| harness.made_below(10 + one, 100 + one)).collect();
    for (number, handle) in (100..).zip(&files) {
        harness.call(write(*handle, 0, 8_192)).expect("room");
        harness.sync(number);
    }
    let first = harness.block_of(100, 0);
    for number in 0..8 {
        assert_eq!(harness.block_of(100 + number, 0), first + 2 * number);
    }
    let available = harness.host.available();
    assert!(harness.host.give_back_all_kept() && !harness.host.give_back_all_kept());
    assert_eq!(harness.host.available(), available, "what was kept counts as free");
}

#[test]
fn large_files_go_on_behind_what_was_given_last_to_any_of_them() {
    let mut harness = Harness::new(&HostSpec { memory: 256 << 20, ..spec() });
    let files: Vec<_> = (0..3).map(|one| harness.made_below(10 + one, 100 + one)).collect();
    for part in 0..2 {
        for (number, handle) in (100..).zip(&files) {
            harness.call(write(*handle, part * (8 << 20), 8 << 20)).expect("room");
            harness.sync(number);
        }
    }
    let first = harness.block_of(100, 0);
    for (number, part) in (0..3).flat_map(|number| [(number, 0), (number, 1)]) {
        let block = harness.block_of(100 + number, part * 2_048);
        assert_eq!(block, first + (part * 3 + number) * 2_048, "{part} of {number}");
    }
}

/// Else writes at random places of a new file would lie in the order in which they came, and be as fast
/// as one in order.
#[test]
fn writes_into_holes_lie_where_their_place_in_the_file_is() {
    let mut harness = Harness::new(&spec());
    let handle = harness.made(FILE);
    let pages = [5_000, 17, 4_096, 9_999, 18, 2_047, 5_001, 16, 6_143];
    for page in pages {
        harness.call(write(handle, page * BLOCK, 4_096)).expect("room");
        harness.call(SYNC).expect("there");
    }
    for page in pages {
        let window = page / 2_048 * 2_048;
        let others = pages.iter().filter(|other| **other / 2_048 * 2_048 == window);
        for other in others {
            let apart =
                harness.block_of(FILE.0, *other).wrapping_sub(harness.block_of(FILE.0, page));
            assert_eq!(apart, other.wrapping_sub(page), "{page} and {other}");
        }
    }
    let available = harness.host.available();
    harness.host.close(handle);
    assert_eq!(harness.host.available(), available, "what was around them is given back");
    harness.host.open(FILE, false, false).expect("there");
    let change = Change::Truncate(FILE, 0);
    harness.call(Call::Names { path: vec![step(1, Some(FILE))], change }).expect("there");
    assert_eq!(harness.host.available(), available + (pages.len() as u64) * BLOCK);
}

/// A file whose data come to the drive when a commit has begun is in the next one: so of several
/// processes that sync, one is in every other commit, and the others in those between.
#[test]
fn data_that_come_after_a_commit_began_wait_for_the_next() {
    for (kernel, commits) in [(Kernel::Linux6_12, 2), (Kernel::Linux2_6_27, 1)] {
        let mut harness = Harness::new(&HostSpec { kernel, ..spec() });
        let files = [harness.made(FILE), harness.made(Inode(2))];
        harness.sync(2);
        for handle in files {
            harness.call(write(handle, 0, 4_096)).expect("room");
        }
        harness.take_seen();
        let sync = |file| Call::Sync { file: Inode(file), data_only: false };
        for (task, file) in [(3, 1), (4, 2)] {
            let input = HostInput::Call { task: TaskId(task), process: task, call: sync(file) };
            harness.host.handle(harness.now, input);
        }
        let mut ended = 0;
        while ended < 2 {
            if harness.heed().is_some() {
                ended += 1;
            } else {
                harness.answer_one();
            }
            if harness.waiting.is_empty() && harness.host.outputs.is_empty() {
                break;
            }
        }
        let flushes = harness.seen.iter().filter(|io| io.op == IoOp::Flush).count();
        assert_eq!(flushes, commits, "{kernel}");
    }
}

/// Times of files are those of the last tick.
#[test]
fn who_writes_again_within_a_tick_changes_no_metadata() {
    let mut harness = Harness::new(&HostSpec { hz: 100, ..spec() });
    let handle = harness.made(FILE);
    harness.call(write(handle, 0, 4_096)).expect("room");
    harness.call(SYNC).expect("there");
    let (w, f) = ((IoOp::Write, 4_096), (IoOp::Flush, 0));
    let log = [w, (IoOp::Write, 8_192), f, w];
    harness.now = Time(1_000_000_000);
    let mut written = |at| {
        harness.now = Time(at);
        harness.take_seen();
        harness.call(write(handle, 0, 4_096)).expect("room");
        harness.call(SYNC).expect("there");
        harness.take_seen()
    };
    assert_eq!(written(1_000_000_000), log);
    assert_eq!(written(1_006_000_000), [w, f], "the data, and a flush");
    assert_eq!(written(1_010_000_000), log);
}
