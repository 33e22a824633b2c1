//! One client asks for much, and the others are answered all the same. How much was done for one between a request of
//! another and its answer is counted; of some tries the one in the middle counts, as a test may be kept waiting itself.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use raidlab_core::{Level, Sectors};
use raidlab_engine::{Engine, EngineConfig, FileIo, FileMember, FileOptions, Member};
use raidlab_nbd::{Command, ErrorCode, Framing};
use raidlab_targets::{NbdAddress, NbdLimits, NbdReport, NbdSockets};

use super::{Served, array, engine, engine_of, layout};
use crate::common::TestDirectory;
use crate::nbd_client::{Client, READ, STATUS, ZERO};

const TRIES: usize = 20;

/// A client whose answers are not waited for longer than any machine takes.
fn patient(served: &Served) -> Client {
    let stream = served.stream();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    Client::over(stream, "a", Framing::Structured).unwrap()
}

/// What `count` says of the server's report grows by, while somebody reads one block.
fn meanwhile(served: &Served, client: &mut Client, count: impl Fn(&NbdReport) -> u64) -> u64 {
    let counted = || count(&served.server.report(0).unwrap());
    let before = counted();
    client.ask(READ, 0, 4096, false, &[]);
    client.answer().unwrap().1.good();
    counted() - before
}

fn middle(counts: impl Iterator<Item = u64>) -> u64 {
    let mut counts: Vec<u64> = counts.collect();
    counts.sort_unstable();
    counts[counts.len() / 2]
}

/// Requests of one client, over and over, as many at once as are taken, while `judge` looks on.
fn beside<T>(
    served: &Served,
    (command, len): (Command, u64),
    judge: impl FnOnce(&mut Client) -> T,
) -> T {
    const AT_ONCE: usize = 1000;
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut busy = served.client();
            while !is_done.load(Ordering::Relaxed) {
                while busy.under_way() < AT_ONCE {
                    busy.ask(command, 0, len, false, &[]);
                }
                busy.send().unwrap();
                busy.answer().unwrap().1.good();
            }
        });
        let mut client = patient(served);
        let judged = judge(&mut client);
        is_done.store(true, Ordering::Relaxed);
        judged
    })
}

/// Zeroes of all of the array, 256 times, are not all made before somebody else reads a block.
#[test]
fn ranges_of_one_client_do_not_go_before_what_others_want() {
    let served = Served::new(|| engine(Level::Raid5, 3, 1 << 14));
    let size = served.client().chosen.size;
    let middle = beside(&served, (ZERO, size), |client| {
        middle((0..TRIES).map(|_| meanwhile(&served, client, |report| report.counters.zeroes)))
    });
    assert!(middle < 50, "{middle} ranges were zeroed meanwhile");
}

/// A member that is a new file of holes.
fn sparse(path: &Path, bytes: u64) -> Member {
    std::fs::File::create(path).unwrap().set_len(bytes).unwrap();
    let options = FileOptions {
        data_offset: Sectors::ZERO,
        sectors: None,
        direct: false,
        threads: 1,
        engine: FileIo::Threads,
        read_only: false,
    };
    Member::File(Box::new(FileMember::open(path, options).unwrap()))
}

/// Sparse files of which one has data and the other none: each chunk is an extent of its own.
fn holes(directory: &TestDirectory) -> Vec<Member> {
    let open = |name: &str| sparse(&directory.path().join(name), 4 << 20);
    vec![open("written"), open("empty")]
}

/// Of 1,024 extents the places are looked up on the thread that serves: not for one request after the other, as long as
/// there are any.
#[test]
fn block_status_of_one_client_leaves_others_their_turn() {
    let directory = TestDirectory::new();
    let members = holes(&directory);
    let served = Served::new(move || engine_of(Level::Raid0, members));
    let mut client = served.client();
    let chunk = 16 * 512;
    for at in (0..8 << 20).step_by(2 * chunk) {
        client.ask(Command::Write, at as u64, chunk as u64, false, &vec![1; chunk]);
        client.answer().unwrap().1.good();
    }
    let size = client.chosen.size;
    assert!(client.states("base:allocation", 0, size).len() > 900);
    let middle = beside(&served, (STATUS, size), |client| {
        middle((0..TRIES).map(|_| meanwhile(&served, client, |report| report.counters.others)))
    });
    assert!(middle < 16, "{middle} answers were made meanwhile");
}

/// Two clients that keep reading, and take all that they get at once, have all memory between them; another one wants
/// more than comes free at any one time.
#[test]
fn who_waits_for_much_memory_gets_it_in_turn() {
    const MEMORY: u64 = 4 << 20;
    const PIECE: u64 = 128 << 10;
    let limits = NbdLimits { memory: MEMORY, ..NbdLimits::default() };
    let served =
        Served::with(limits, || Ok(vec![array(engine(Level::Raid0, 2, 1 << 14), "a", false)]));
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut busy = served.client();
                while !is_done.load(Ordering::Relaxed) {
                    while busy.under_way() < 64 {
                        busy.ask(READ, 0, PIECE, false, &[]);
                    }
                    busy.answer().unwrap().1.good();
                }
            });
        }
        while served.server.report(0).unwrap().memory < MEMORY - PIECE {}
        let mut client = patient(&served);
        let told = (0..3).try_for_each(|_| {
            client.ask(READ, 0, MEMORY / 2, false, &[]);
            client.answer().map(|(_, answer)| assert_eq!(answer.error, None))
        });
        is_done.store(true, Ordering::Relaxed);
        told.expect("is answered");
    });
}

/// A filesystem that goes with this.
struct Small(std::path::PathBuf);

impl Drop for Small {
    fn drop(&mut self) {
        let _ =
            std::process::Command::new("umount").args(["-l".as_ref(), self.0.as_os_str()]).status();
    }
}

/// Of several ranges at once each is answered when a member's filesystem has no room for one of them.
#[test]
fn ranges_that_find_no_room_are_all_answered() {
    const RANGE: u64 = 4 << 20;
    let directory = TestDirectory::new();
    let place = directory.path().join("small");
    std::fs::create_dir(&place).unwrap();
    let mut mount = std::process::Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=9m", "none"]).arg(&place);
    if !mount.output().is_ok_and(|told| told.status.success()) {
        eprintln!(
            "skipped: ranges_that_find_no_room_are_all_answered: no filesystem can be mounted"
        );
        return;
    }
    let small = Small(place);
    let open = |name: &str| sparse(&small.0.join(name), 8 * RANGE);
    let members = vec![open("0"), open("1")];
    let served = Served::new(move || {
        let mut config = EngineConfig::new(layout(Level::Raid1, 2));
        config.settings.room_wait = None;
        Engine::new(&config, members).unwrap()
    });
    let mut client = patient(&served);
    for range in 0..6 {
        client.ask(ZERO, range * RANGE, RANGE, false, &[]);
    }
    let mut refused = 0;
    while client.under_way() > 0 {
        let (_, answer) = client.answer().expect("each is answered");
        refused += usize::from(answer.error == Some(ErrorCode::NoSpace));
    }
    assert!((1..6).contains(&refused), "{refused} found no room");
    drop(client);
    served.server.end(0, |_| ()).unwrap();
}

/// Who comes back without a name after the first array has ended must not find another one.
#[test]
fn without_a_name_the_first_array_is_meant_or_none() {
    let served = Served::with(NbdLimits::default(), || {
        Ok(vec![
            array(engine(Level::Raid0, 2, 1024), "a", false),
            array(engine(Level::Raid1, 2, 512), "b", false),
        ])
    });
    let size =
        |name| Client::over(served.stream(), name, Framing::Structured).map(|one| one.chosen.size);
    assert_eq!(size(""), Ok(2048 * 512));
    served.server.end(0, |_| ()).unwrap();
    assert!(size("").is_err());
    assert_eq!(size("b"), Ok(512 * 512));
}

/// What a client has sent before it goes is carried out.
#[test]
fn a_client_that_goes_at_once_has_its_requests_carried_out() {
    let served = Served::new(|| engine(Level::Raid1, 2, 1 << 12));
    for round in 1..=TRIES as u64 {
        let mut client = served.client();
        for number in 0..8 {
            client.ask(Command::Write, number * 4096, 4096, false, &[round as u8; 4096]);
        }
        client.send().unwrap();
        drop(client);
        while served.server.report(0).unwrap().connections > 0 {}
        let mut client = served.client();
        assert!(client.read(0, 8 * 4096) == [round as u8; 8 * 4096], "round {round}");
        drop(client);
        while served.server.report(0).unwrap().connections > 0 {}
    }
}

/// What the protocol's part refuses is an answer with an error, too.
#[test]
fn refused_requests_are_counted() {
    let served = Served::new(|| engine(Level::Raid1, 2, 1024));
    let mut client = served.client();
    for at in [1 << 40, 1] {
        assert_eq!(client.once(READ, at, 512, false, &[]).error, Some(ErrorCode::Invalid));
    }
    client.read(0, 512);
    let counters = served.server.report(0).unwrap().counters;
    assert_eq!((counters.errors, counters.others, counters.reads), (2, 2, 1));
}

/// A socket of another kind, which cannot be connected to, is somebody's.
#[test]
fn a_socket_of_another_program_is_left_alone() {
    let directory = TestDirectory::new();
    let path = directory.path().join("socket");
    let theirs = UnixDatagram::bind(&path).unwrap();
    let address = [NbdAddress::Unix(path.clone())];
    let error = NbdSockets::bind(&address, false).unwrap_err().to_string();
    assert!(error.contains("perhaps another program's"), "{error}");
    UnixDatagram::unbound().unwrap().send_to(b"here", &path).unwrap();
    let mut told = [0; 4];
    assert_eq!(theirs.recv(&mut told).unwrap(), 4);
    drop(theirs);
    assert!(NbdSockets::bind(&address, false).is_ok(), "nobody has it any more");
}
