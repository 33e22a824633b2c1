//! An array served to NBD clients and as a file at once: what one writes the other reads, and what one makes durable
//! is durable of both; parts of blocks, stalls, and ends.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::atomic::{AtomicBool, Ordering};

use raidlab_core::{Level, Sector};
use raidlab_engine::{Engine, EngineError, EngineErrorKind};
use raidlab_nbd::Command;
use raidlab_targets::{NbdAddress, NbdArray, NbdLimits, NbdServer, NbdSockets};

use super::power::{Rack, cases};
use super::{Served, array, engine, narrow};
use crate::common::{Random, TestDirectory};
use crate::nbd_client::{Client, READ, ZERO};
use crate::root::{can_mount, traces};

const BLOCK: u64 = 512;

impl Served {
    /// Serves one array, `a`, as a file besides.
    fn beside_file(engine: impl FnOnce() -> Engine + Send + 'static) -> Self {
        Self::with_file(NbdLimits::default(), move || Ok(vec![array(engine(), "a", false)]))
    }

    fn with_file(
        limits: NbdLimits,
        make: impl FnOnce() -> Result<Vec<NbdArray>, EngineError> + Send + 'static,
    ) -> Self {
        Self::start(|sockets, directory| {
            let at = directory.join("mount");
            std::fs::create_dir(&at).unwrap();
            NbdServer::with_file(sockets, None, limits, &at, make)
        })
    }

    fn file(&self) -> File {
        OpenOptions::new().read(true).write(true).open(self.server.file().unwrap()).unwrap()
    }

    /// Ends in order; all that the array holds.
    fn end(self) -> Vec<u8> {
        self.server.unmount().unwrap();
        let bytes = self.server.end(0, content).unwrap();
        assert_eq!(traces(self.directory.path()), [""; 0]);
        bytes
    }
}

/// All of the array, as the engine has it.
fn content(engine: &mut Engine) -> Vec<u8> {
    let mut bytes = vec![0; engine.array().capacity().bytes() as usize];
    engine.read_at(Sector(0), &mut bytes).unwrap();
    bytes
}

fn zero(file: &File, offset: u64, len: u64) {
    const PUNCH: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: an open descriptor and plain numbers.
    let done = unsafe { libc::fallocate(file.as_raw_fd(), PUNCH, offset as i64, len as i64) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// Neither keeps anything that the other would not learn of: the kernel has read all of the file before.
#[test]
fn what_one_writes_the_other_reads_at_once() {
    if !can_mount("what_one_writes_the_other_reads_at_once", &[]) {
        return;
    }
    for (level, members) in [(Level::Raid1, 2), (Level::Raid5, 4)] {
        let both = Served::beside_file(move || engine(level, members, 512));
        let (file, mut client) = (both.file(), both.client());
        let mut model = vec![0; client.chosen.size as usize];
        file.read_exact_at(&mut model, 0).unwrap();
        let mut random = Random(level as u64 + 3);
        for round in 0..400 {
            let (by_client, is_zero) = (random.below(2) == 0, random.below(4) == 0);
            // The file alone is written in parts of blocks.
            let unit = if by_client || is_zero { BLOCK } else { 1 };
            let len = (1 + random.below(20_000 / unit)) * unit;
            let at = random.below((model.len() as u64 - len) / unit) * unit;
            let mut bytes = vec![0; len as usize];
            if !is_zero {
                random.fill(&mut bytes);
            }
            match (by_client, is_zero) {
                (true, true) => drop(client.once(ZERO, at, len, false, &[]).good()),
                (true, false) => client.write(at, &bytes),
                (false, true) => zero(&file, at, len),
                (false, false) => file.write_all_at(&bytes, at).unwrap(),
            }
            model[at as usize..][..bytes.len()].copy_from_slice(&bytes);
            let from = (at / BLOCK * BLOCK) as usize;
            let len = (at + len).next_multiple_of(BLOCK) as usize - from;
            let mut found = vec![0xee; len];
            file.read_exact_at(&mut found, from as u64).unwrap();
            assert!(found == model[from..][..len], "{level:?}, round {round}: by the file");
            let found = client.read(from as u64, len as u64);
            assert!(found == model[from..][..len], "{level:?}, round {round}: by the client");
        }
        drop(file);
        drop(client);
        assert!(both.end() == model, "{level:?}");
    }
}

/// What a client writes is not undone by the rest of a block that was read before, for a part of it that the file
/// writes.
#[test]
fn parts_of_blocks_undo_nothing_that_clients_write() {
    const TEST: &str = "parts_of_blocks_undo_nothing_that_clients_write";
    const BLOCKS: u64 = 4;
    if !can_mount(TEST, &[]) {
        return;
    }
    for (level, members) in [(Level::Raid0, 2), (Level::Raid5, 3)] {
        let both = Served::beside_file(move || engine(level, members, 512));
        let is_over = AtomicBool::new(false);
        let in_middle = |byte: u64| (100..140).contains(&(byte % BLOCK));
        std::thread::scope(|scope| {
            for block in 0..BLOCKS {
                let (file, is_over) = (both.file(), &is_over);
                scope.spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        file.write_all_at(&[0xff; 40], block * BLOCK + 100).unwrap();
                    }
                });
            }
            let mut client = both.client();
            for round in 0..2000u64 {
                let value = (round % 251) as u8;
                let len = BLOCKS * BLOCK;
                match value {
                    0 => drop(client.once(ZERO, 0, len, false, &[]).good()),
                    _ => client.write(0, &vec![value; len as usize]),
                }
                for (byte, found) in (0..).zip(client.read(0, len)) {
                    let is_right = found == value || in_middle(byte) && found == 0xff;
                    if !is_right {
                        is_over.store(true, Ordering::Relaxed);
                        panic!("{level:?}, round {round}, byte {byte}: {found}, not {value}");
                    }
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
        both.end();
    }
}

/// A flush by a client covers what was written by the file, and a sync of the file what clients wrote; what a file that
/// was opened for it writes is durable by itself.
#[test]
fn what_one_makes_durable_is_durable_of_both() {
    if !can_mount("what_one_makes_durable_is_durable_of_both", &[]) {
        return;
    }
    const LEN: u64 = 3 << 10;
    for config in cases() {
        for seed in 0..4 {
            let mut random = Random(seed * 2 + 1);
            let mut rack = Rack::new(&config);
            let made = rack.clone();
            let both = Served::with_file(NbdLimits::default(), move || {
                Ok(vec![array(made.assemble(None), "a", false)])
            });
            let (file, mut client) = (both.file(), both.client());
            let mut at_once = OpenOptions::new();
            at_once.write(true).custom_flags(libc::O_DSYNC);
            let at_once = at_once.open(both.server.file().unwrap()).unwrap();
            let mut wanted = Vec::new();
            for value in 1..10u8 {
                // Also in parts of blocks.
                let (by, at) = (random.below(3), random.below(100) * BLOCK);
                let at = if by == 0 { at } else { at + random.below(2) * 7 };
                let bytes = vec![value; LEN as usize];
                match by {
                    0 => client.write(at, &bytes),
                    1 => file.write_all_at(&bytes, at).unwrap(),
                    _ => at_once.write_all_at(&bytes, at).unwrap(),
                }
                wanted.push((at, value));
                match by {
                    0 => file.sync_all().unwrap(),
                    1 => client.flush(),
                    _ => {}
                }
            }
            // Not durable, and not in the way of what is.
            client.write(200 * BLOCK, &[0xee; 512]);
            let before = rack.clone();
            rack.cut(&mut random);
            before.turn_off();
            drop((file, at_once, client, both));
            let mut engine = rack.assemble(None);
            let bytes = content(&mut engine);
            let mut model = vec![0; 110 * BLOCK as usize];
            for (at, value) in wanted {
                model[at as usize..][..LEN as usize].fill(value);
            }
            let told = format!("{}, {:?}", config.layout, config.settings.consistency);
            assert!(bytes[..model.len()] == model, "{told}, seed {seed}");
        }
    }
}

/// Clients that stand still with all memory there is: the file is read and written, and memory stays within its limit.
#[test]
fn clients_that_stand_still_do_not_block_the_file() {
    if !can_mount("clients_that_stand_still_do_not_block_the_file", &[]) {
        return;
    }
    let never = std::time::Duration::from_secs(3600);
    let limits = NbdLimits { stall: never, handshake: never, ..narrow() };
    let both =
        Served::with_file(limits, || Ok(vec![array(engine(Level::Raid5, 3, 1 << 14), "a", false)]));
    let mut slow: Vec<Client> = (0..3).map(|_| both.client()).collect();
    for (number, client) in slow.iter_mut().enumerate() {
        for read in 0..200 {
            client.ask(READ, read % 16 * 65_536, 65_536, false, &[]);
        }
        // One does not send what it said it would write.
        if number == 2 {
            client.ask(Command::Write, 0, 512 << 10, false, &[1; 1000]);
        }
        client.send().unwrap();
    }
    let file = both.file();
    let bytes: Vec<u8> = (0..3 << 20).map(|byte| (byte / 511) as u8).collect();
    for at in [7, 4096, 1 << 20] {
        file.write_all_at(&bytes, at).unwrap();
        let mut found = vec![0; bytes.len()];
        file.read_exact_at(&mut found, at).unwrap();
        assert!(found == bytes);
    }
    file.sync_all().unwrap();
    let report = both.server.report(0).unwrap();
    assert!(report.memory <= 1 << 20 && report.has_file && report.clients == 3, "{report:?}");
}

/// As many as can write by the file at once, more than are taken in: a client is served all the while.
#[test]
fn crowds_at_the_file_do_not_block_clients() {
    if !can_mount("crowds_at_the_file_do_not_block_clients", &[]) {
        return;
    }
    const WRITERS: u64 = 100;
    let both = Served::beside_file(|| engine(Level::Raid6, 4, 1 << 14));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (file, is_over) = (both.file(), &is_over);
            scope.spawn(move || {
                // One in two at parts of blocks.
                let at = (1 << 20) + writer * 32_768 + writer % 2 * 7;
                while !is_over.load(Ordering::Relaxed) {
                    file.write_all_at(&[writer as u8; 20_000], at).unwrap();
                }
            });
        }
        let mut client = both.client();
        for round in 0..500 {
            client.write(round % 64 * 4096, &[round as u8; 4096]);
            assert_eq!(client.read(round % 64 * 4096, 4096), [round as u8; 4096]);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let bytes = both.end();
    for writer in 0..WRITERS {
        let at = (1 << 20) + writer * 32_768 + writer % 2 * 7;
        assert!(bytes[at as usize..][..20_000].iter().all(|byte| *byte == writer as u8));
    }
}

/// An end takes in nothing more, and answers what came by either: what was answered is there.
#[test]
fn an_end_answers_what_came_by_either() {
    if !can_mount("an_end_answers_what_came_by_either", &[]) {
        return;
    }
    let both = Served::beside_file(|| engine(Level::Raid5, 3, 4096));
    let mut client = both.client();
    for number in 0..100u64 {
        client.ask(Command::Write, number * 4096, 4096, false, &[number as u8 + 1; 4096]);
    }
    client.send().unwrap();
    let (begun, has_begun) = std::sync::mpsc::channel();
    let (file, at) = (both.file(), 1 << 20);
    let writer = std::thread::spawn(move || {
        // Until there is nobody who would answer.
        let mut last = 0u64;
        while file.write_all_at(&(last + 1).to_ne_bytes(), at + 3).is_ok() {
            last += 1;
            let _ = begun.send(());
        }
        last
    });
    has_begun.recv().unwrap();
    client.answer().unwrap();
    // The file is in use: whoever ends it all the same takes it away.
    let refused = both.server.unmount().unwrap_err();
    assert_eq!(refused.kind(), EngineErrorKind::Busy, "{refused}");
    let bytes = both.server.end(0, content).unwrap();
    let last = writer.join().unwrap();
    let mut answered = 1;
    while let Ok((_, answer)) = client.answer() {
        answer.good();
        answered += 1;
    }
    let there = (0..100).filter(|number| bytes[number * 4096] == *number as u8 + 1).count();
    assert!(there >= answered, "{there} are there, {answered} were answered");
    let found = u64::from_ne_bytes(bytes[at as usize + 3..][..8].try_into().unwrap());
    assert!(found >= last && last > 0, "{found} is there, {last} was answered");
    let place = both.directory.path().to_owned();
    drop(both.server);
    assert_eq!(traces(&place), [""; 0]);
}

/// Without the file the array is served on; also where somebody else unmounts it.
#[test]
fn an_array_is_served_on_without_its_file() {
    if !can_mount("an_array_is_served_on_without_its_file", &["umount"]) {
        return;
    }
    for by_hand in [false, true] {
        let both = Served::beside_file(|| engine(Level::Raid1, 2, 512));
        let (file, mut client) = (both.file(), both.client());
        file.write_all_at(&[3; 100], 700).unwrap();
        drop(file);
        match by_hand {
            false => both.server.unmount().unwrap(),
            true => {
                let at = both.directory.path().join("mount");
                crate::root::tool("umount", &[at.to_str().unwrap()]).unwrap();
            }
        }
        while both.server.report(0).unwrap().has_file {}
        both.server.unmount().unwrap();
        client.write(0, &[5; 512]);
        assert_eq!(
            client.read(0, 1024),
            [vec![5; 512], vec![0; 188], vec![3; 100], vec![0; 224]].concat()
        );
        client.flush();
        both.server.end(0, |_| ()).unwrap();
    }
}

/// An array that nobody may write to.
#[test]
fn a_file_beside_a_read_only_export_is_read_only() {
    if !can_mount("a_file_beside_a_read_only_export_is_read_only", &[]) {
        return;
    }
    let make = || Ok(vec![array(engine(Level::Raid1, 2, 512), "a", true)]);
    let both = Served::with_file(NbdLimits::default(), make);
    let file = File::open(both.server.file().unwrap()).unwrap();
    file.read_exact_at(&mut [0; 4096], 0).unwrap();
    let refused = OpenOptions::new().write(true).open(both.server.file().unwrap()).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EROFS));
    drop(file);
    both.end();
}

/// Nothing is mounted where an array cannot be made, and a place that is not there is told.
#[test]
fn what_cannot_be_served_leaves_no_mount() {
    if !can_mount("what_cannot_be_served_leaves_no_mount", &[]) {
        return;
    }
    let directory = TestDirectory::new();
    let begin = |at: &std::path::Path, is_made: bool| {
        let address = NbdAddress::Unix(directory.path().join("socket"));
        let sockets = NbdSockets::bind(&[address], false).unwrap();
        let make = move || match is_made {
            true => Ok(vec![array(engine(Level::Raid1, 2, 64), "a", false)]),
            false => Err(EngineError::cancelled("make it")),
        };
        NbdServer::with_file(sockets, None, NbdLimits::default(), at, make)
    };
    assert!(begin(directory.path(), false).is_err());
    assert!(begin(&directory.path().join("none"), true).is_err());
    assert_eq!(traces(directory.path()), [""; 0]);
    assert!(!directory.path().join("socket").exists(), "the socket is gone");
}
