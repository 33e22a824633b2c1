//! The ring on pipes, which answer short, late or never, and on a file with more I/Os than it has room for.

use std::io::Write;
use std::os::fd::OwnedFd;

use raidlab_core::Sectors;

use super::*;
use crate::buffers::{Area, Piece};
use crate::member::{Submission, Ticket};

/// A disk of this many sectors that is the reading end of a pipe, and the writing end.
fn pipe(sectors: u64) -> (Arc<Disk>, File) {
    let (reader, writer) = io::pipe().unwrap();
    let file = File::from(OwnedFd::from(reader));
    let disk = Disk {
        file,
        data_offset: Sectors::ZERO,
        sectors: Sectors(sectors),
        alignment: 1,
        reach: Default::default(),
        _hold: Default::default(),
        gate: Arc::default(),
    };
    (Arc::new(disk), File::from(OwnedFd::from(writer)))
}

/// An I/O on an area of its own, cut into pieces of `piece` bytes.
fn work(ticket: u32, op: IoOp, (at, len): (u64, u64), piece: usize) -> Work {
    let area = Area::new((len * SECTOR_BYTES) as usize).unwrap();
    let bytes = (len * SECTOR_BYTES) as usize;
    let pieces = (0..bytes / piece)
        .map(|n| Piece { start: area.start().wrapping_add(n * piece), len: piece })
        .collect();
    let (at, len) = (Sector(at), Sectors(len));
    let submission = Submission { op, at, len, fua: false, flush_first: false };
    Work { ticket: Ticket(ticket), submission, pieces, bounce: Some(area) }
}

fn wait_for(ring: &mut Ring, count: usize) -> Vec<Finished> {
    let mut finished = Vec::new();
    while finished.len() < count {
        ring.wait(false, None).unwrap();
        ring.reap(&mut finished).unwrap();
    }
    finished
}

#[test]
fn what_comes_in_parts_is_gone_on_with_where_it_stopped() {
    for piece in [512, 1024, 4096] {
        let hub = Hub::default();
        let mut ring = Ring::new(&hub, 0).unwrap();
        let (disk, mut writer) = pipe(8);
        let slot = ring.register(&disk);
        ring.push(work(3, IoOp::Read, (0, 8), piece), &disk, slot).unwrap();
        let data: Vec<u8> = (0..4096u32).map(|n| (n * 7 + n / 256) as u8).collect();
        let mut finished = Vec::new();
        for part in data.chunks(600) {
            assert!(finished.is_empty());
            writer.write_all(part).unwrap();
            ring.wait(false, None).unwrap();
            ring.reap(&mut finished).unwrap();
        }
        let done = finished.pop().unwrap();
        assert_eq!((done.ticket, done.outcome), (Ticket(3), IoOutcome::Ok));
        assert_eq!(done.bounce.unwrap().bytes(), data, "pieces of {piece}");
        assert_eq!(ring.in_flight(), 0);
    }
}

#[test]
fn the_end_is_a_media_error_at_the_sector_it_was_met() {
    let hub = Hub::default();
    let mut ring = Ring::new(&hub, 0).unwrap();
    let (disk, mut writer) = pipe(8);
    ring.push(work(0, IoOp::Read, (2, 6), 3072), &disk, None).unwrap();
    writer.write_all(&[1; 1100]).unwrap();
    drop(writer);
    let first_bad = Sector(4);
    assert_eq!(wait_for(&mut ring, 1)[0].outcome, IoOutcome::MediaError { first_bad });
}

#[test]
fn what_hangs_is_not_waited_for_once_given_up() {
    let hub = Hub::default();
    let mut ring = Ring::new(&hub, 0).unwrap();
    let (disk, mut writer) = pipe(8);
    let slot = ring.register(&disk);
    ring.push(work(0, IoOp::Read, (0, 8), 4096), &disk, slot).unwrap();
    ring.wait(false, Some(Duration::from_millis(1))).unwrap();
    assert!(ring.is_using(&disk));
    ring.detach();
    drop(ring);
    // Whether the kernel has let the pipe go already or not, nothing of ours is written any more.
    let _ = writer.write_all(&[1; 4096]);
}

#[test]
fn dropping_waits_for_what_is_under_way_to_its_last_step() {
    let hub = Hub::default();
    let mut ring = Ring::new(&hub, 0).unwrap();
    let (disk, mut writer) = pipe(8);
    let slot = ring.register(&disk);
    let mut read = work(0, IoOp::Read, (0, 8), 1024);
    let area = read.bounce.take().unwrap();
    ring.push(read, &disk, slot).unwrap();
    let late = std::thread::spawn(move || {
        for part in [[7; 2048], [9; 2048]] {
            writer.write_all(&part).unwrap();
        }
        writer
    });
    drop(ring);
    assert!(area.bytes()[..2048].iter().all(|byte| *byte == 7));
    assert!(area.bytes()[2048..4096].iter().all(|byte| *byte == 9));
    drop(late.join().unwrap());
    assert_eq!(Arc::strong_count(&disk), 1, "nothing holds the disk any more");
}

#[test]
fn a_thread_that_delivers_wakes_who_waits_for_the_ring() {
    let hub = Arc::<Hub>::default();
    let mut ring = Ring::new(&hub, 0).unwrap();
    let (disk, writer) = pipe(8);
    ring.push(work(0, IoOp::Read, (0, 8), 4096), &disk, None).unwrap();
    let mut finished = Vec::new();
    for _ in 0..3 {
        let thread = {
            let hub = hub.clone();
            let one = Finished {
                ticket: Ticket(9),
                outcome: IoOutcome::Ok,
                pieces: Vec::new(),
                bounce: None,
            };
            std::thread::spawn(move || hub.deliver(one))
        };
        let mut taken = Vec::new();
        while taken.is_empty() {
            if hub.expect_bell() {
                ring.wait(true, None).unwrap();
            }
            hub.ignore_bell();
            ring.reap(&mut finished).unwrap();
            hub.take(&mut taken);
        }
        thread.join().unwrap();
        assert!(finished.is_empty() && taken[0].ticket == Ticket(9));
    }
    drop(writer);
}

#[test]
fn a_batch_larger_than_the_ring_is_done_in_full() {
    let count = ANSWERS + ENTRIES + 3;
    let path = std::env::temp_dir().join(format!("raidlab-engine-ring-{}", std::process::id()));
    let open = File::options().read(true).write(true).create_new(true).open(&path);
    std::fs::remove_file(&path).unwrap();
    let (data_offset, sectors) = (Sectors(3), Sectors(u64::from(count)));
    let file = open.unwrap();
    file.set_len((data_offset + sectors).bytes()).unwrap();
    let (_hold, gate) = Default::default();
    let reach = Default::default();
    let disk = Arc::new(Disk { file, data_offset, sectors, alignment: 1, reach, _hold, gate });
    let hub = Hub::default();
    let mut ring = Ring::new(&hub, 0).unwrap();
    let slot = ring.register(&disk);
    for op in [IoOp::Write, IoOp::Read] {
        for n in 0..count {
            let mut one = work(n, op, (u64::from(n), 1), 512);
            if op == IoOp::Write {
                let bytes = one.bounce.as_mut().unwrap().bytes_mut();
                bytes.fill(n as u8);
                bytes[..4].copy_from_slice(&n.to_le_bytes());
                one.submission.fua = n % 100 == 0;
                one.submission.flush_first = n % 150 == 0;
            }
            ring.push(one, &disk, slot).unwrap();
        }
        let finished = wait_for(&mut ring, count as usize);
        for one in finished {
            assert_eq!(one.outcome, IoOutcome::Ok);
            let area = one.bounce.unwrap();
            assert_eq!(area.bytes()[..4], one.ticket.0.to_le_bytes());
            assert!(area.bytes()[4..].iter().all(|byte| *byte == one.ticket.0 as u8));
        }
    }
}

/// An I/O with both flushes, answered by hand.
#[test]
fn errors_mean_what_they_mean_for_threads() {
    let (disk, _writer) = pipe(8);
    let op = |stage| {
        let mut work = work(0, IoOp::Write, (1, 4), 2048);
        (work.submission.fua, work.submission.flush_first) = (true, true);
        Op { work, disk: disk.clone(), slot: None, stage, next: 0, done: 0 }
    };
    let mut good = op(Stage::FlushFirst);
    assert_eq!(good.first_stage(), Stage::FlushFirst);
    for passing in [libc::EINTR, libc::EAGAIN, libc::ECANCELED] {
        assert_eq!((good.answered(-passing), good.stage), (None, Stage::FlushFirst));
    }
    for (result, stage, done) in
        [(0, Stage::Transfer, 0), (600, Stage::Transfer, 600), (1448, Stage::FlushAfter, 2048)]
    {
        assert_eq!(good.answered(result), None);
        assert_eq!((good.stage, good.done), (stage, done));
    }
    assert_eq!(good.answered(0), Some(IoOutcome::Ok));
    for stage in [Stage::FlushFirst, Stage::FlushAfter] {
        assert_eq!(op(stage).answered(-libc::EIO), Some(IoOutcome::Gone), "{stage:?}");
    }
    let mut bad = op(Stage::Transfer);
    assert_eq!(bad.answered(1024), None);
    let first_bad = Sector(3);
    assert_eq!(bad.answered(-libc::EIO), Some(IoOutcome::MediaError { first_bad }));
    assert_eq!(op(Stage::Transfer).answered(-libc::ENOSPC), Some(IoOutcome::NoSpace));
    assert_eq!(op(Stage::Transfer).answered(-libc::ENODEV), Some(IoOutcome::Gone));
}

#[test]
fn what_is_rare_is_left_to_threads() {
    let (disk, _writer) = pipe(8);
    let disk = Disk { alignment: 4096, ..Arc::into_inner(disk).unwrap() };
    let suited = |work: &Work| suits(work, &disk);
    assert!(suited(&work(0, IoOp::Read, (0, 8), 4096)));
    assert!(!suited(&work(0, IoOp::Write, (0, 8), 512)), "pieces that are too small");
    let mut shifted = work(0, IoOp::Read, (0, 8), 4096);
    shifted.pieces[0].start = shifted.pieces[0].start.wrapping_add(512);
    assert!(!suited(&shifted), "memory that is misaligned");
    assert!(!suited(&work(0, IoOp::Read, (4, 8), 4096)), "beyond the end");
    for op in [IoOp::Discard, IoOp::WriteZeroes] {
        assert!(!suited(&work(0, op, (0, 8), 4096)));
    }
    assert!(suited(&work(0, IoOp::Flush, (0, 0), 512)));
}
