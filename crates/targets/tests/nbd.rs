//! Arrays served to NBD clients: what is promised of flushes, zeroes and states; clients that are slow
//! or hostile.

mod beside;
mod fair;
mod hostile;
mod pipelined;
mod power;
mod semantics;

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::{Random, TestDirectory, memory_members};
use crate::nbd_client::{Client, READ};
use raidlab_core::{Layout, Level, Sectors};
use raidlab_engine::{Engine, EngineConfig, EngineError, Member};
use raidlab_nbd::{Command, Framing};
use raidlab_targets::{NbdAddress, NbdArray, NbdLimits, NbdServer, NbdSockets};

/// A server of a test, on a Unix socket. Dropped in this order, so that nothing is mounted in the directory at its end.
struct Served {
    server: NbdServer,
    directory: TestDirectory,
}

impl Served {
    /// Serves one array, `a`.
    fn new(engine: impl FnOnce() -> Engine + Send + 'static) -> Self {
        Self::with(NbdLimits::default(), move || Ok(vec![array(engine(), "a", false)]))
    }

    fn with(
        limits: NbdLimits,
        make: impl FnOnce() -> Result<Vec<NbdArray>, EngineError> + Send + 'static,
    ) -> Self {
        Self::start(|sockets, _| NbdServer::new(sockets, None, limits, make))
    }

    /// `begin` has the sockets, and the directory of the test.
    fn start(begin: impl FnOnce(NbdSockets, &Path) -> Result<NbdServer, EngineError>) -> Self {
        let directory = TestDirectory::new();
        let address = NbdAddress::Unix(directory.path().join("socket"));
        let sockets = NbdSockets::bind(&[address], false).unwrap();
        Self { server: begin(sockets, directory.path()).unwrap(), directory }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    fn client(&self) -> Client {
        Client::unix(&self.path(), "a")
    }

    fn stream(&self) -> UnixStream {
        UnixStream::connect(self.path()).unwrap()
    }

    /// Sectors where redundancy disagrees.
    fn scrub(&self) -> Sectors {
        let scrub =
            |engine: &mut Engine| engine.scrub(&std::sync::atomic::AtomicBool::new(false)).unwrap();
        self.server.with_engine(0, scrub).unwrap()
    }
}

fn array(engine: Engine, name: &str, read_only: bool) -> NbdArray {
    NbdArray { engine, name: name.into(), description: format!("array {name}"), read_only }
}

fn layout(level: Level, members: u16) -> Layout {
    let layout = Layout::new(level, members);
    if layout.chunk > Sectors::ZERO { layout.with_chunk(Sectors(16)) } else { layout }
}

fn engine_of(level: Level, members: Vec<Member>) -> Engine {
    Engine::new(&EngineConfig::new(layout(level, members.len() as u16)), members).unwrap()
}

/// An array of members in memory.
fn engine(level: Level, members: u16, sectors: u64) -> Engine {
    engine_of(level, memory_members(members, Sectors(sectors)))
}

/// Random requests on two connections at once, whole blocks at any place, against memory.
#[test]
fn any_blocks_are_read_and_written_on_any_connection() {
    for (level, members) in [(Level::Raid0, 2), (Level::Raid1, 2), (Level::Raid5, 4)] {
        for framing in [Framing::Simple, Framing::Structured, Framing::Extended] {
            let served = Served::new(move || engine(level, members, 2048));
            let mut clients = [0, 1].map(|_| Client::over(served.stream(), "a", framing).unwrap());
            assert_eq!(clients[0].chosen.framing, framing);
            let size = clients[0].chosen.size;
            let mut model = vec![0; size as usize];
            let mut random = Random(level as u64 + 7);
            for round in 0..20 {
                // Those under way at once do not meet: each has a part of its own.
                let part = size / 16;
                let mut reads = Vec::new();
                for number in 0..16 {
                    let client = &mut clients[(number + round) as usize % 2];
                    let at = random.below(part / 512) * 512;
                    let len = (1 + random.below((part - at) / 512)) * 512;
                    let at = number * part + at;
                    if random.below(2) == 0 {
                        let mut bytes = vec![0; len as usize];
                        random.fill(&mut bytes);
                        model[at as usize..][..len as usize].copy_from_slice(&bytes);
                        client.ask(Command::Write, at, len, random.below(4) == 0, &bytes);
                    } else {
                        let cookie = client.ask(READ, at, len, false, &[]);
                        reads.push(((number + round) % 2, cookie, at, len));
                    }
                }
                for (which, client) in clients.iter_mut().enumerate() {
                    client.send().unwrap();
                    while client.under_way() > 0 {
                        let (cookie, answer) = client.answer().unwrap();
                        let answer = answer.good();
                        let wanted = (which as u64, cookie);
                        let read = reads.iter().find(|read| (read.0, read.1) == wanted);
                        if let Some((_, _, at, len)) = read {
                            assert!(answer.data == model[*at as usize..][..*len as usize]);
                        }
                    }
                }
            }
            assert!(clients[1].read(0, size) == model, "{level:?} {framing:?}");
            let end = served.server.end(0, move |engine| {
                let mut bytes = vec![0; size as usize];
                engine.read_at(raidlab_core::Sector(0), &mut bytes).map(|()| bytes)
            });
            assert!(end.unwrap().unwrap() == model);
        }
    }
}

#[test]
fn several_arrays_are_exports_of_one_server() {
    let served = Served::with(NbdLimits::default(), || {
        Ok(vec![
            array(engine(Level::Raid0, 2, 1024), "a", false),
            array(engine(Level::Raid1, 2, 512), "b", true),
        ])
    });
    let (mut a, mut b) = (served.client(), Client::unix(&served.path(), "b"));
    assert_eq!((a.chosen.size, b.chosen.size), (2048 * 512, 512 * 512));
    assert!(b.chosen.abilities.read_only && !a.chosen.abilities.read_only);
    let refused = b.once(Command::Write, 0, 512, false, &[1; 512]).error;
    assert_eq!(refused, Some(raidlab_nbd::ErrorCode::NotPermitted));
    b.flush();
    a.write(0, &[7; 4096]);
    // One ends, and the other is served on.
    served.server.end(1, |_| ()).unwrap();
    assert!(b.answer().is_err(), "it is closed");
    assert!(Client::over(served.stream(), "b", Framing::Structured).is_err());
    assert_eq!(a.read(0, 4096), [7; 4096]);
    assert!(served.server.report(1).is_err());
    assert_eq!(served.server.report(0).unwrap().counters.bytes_written, 4096);
    served.server.end(0, |_| ()).unwrap();
    drop(served.server);
    assert!(!served.directory.path().join("socket").exists(), "the socket is gone");
}

/// What was sent as a whole is answered before the end, and is in the array.
#[test]
fn an_end_answers_what_is_under_way() {
    let served = Served::new(|| engine(Level::Raid5, 3, 4096));
    let mut client = served.client();
    for number in 0..100u64 {
        client.ask(Command::Write, number * 4096, 4096, false, &[number as u8 + 1; 4096]);
    }
    client.send().unwrap();
    // The first answer: the others came with it.
    client.answer().unwrap();
    let bytes = served.server.end(0, |engine| {
        let mut bytes = vec![0; 100 * 4096];
        engine.read_at(raidlab_core::Sector(0), &mut bytes).unwrap();
        bytes
    });
    let bytes = bytes.unwrap();
    let mut answered = 1;
    while let Ok((_, answer)) = client.answer() {
        answer.good();
        answered += 1;
    }
    let there = (0..100).filter(|number| bytes[number * 4096] == *number as u8 + 1).count();
    assert!(there >= answered, "{there} are there, {answered} were answered");
}

#[test]
fn tcp_serves_as_a_unix_socket_does() {
    let sockets = NbdSockets::bind(&[NbdAddress::Tcp("127.0.0.1".into(), 0)], false).unwrap();
    let uri = sockets.places()[0].uri("a", false);
    let address = uri.strip_prefix("nbd://").unwrap().strip_suffix("/a").unwrap();
    let make = || Ok(vec![array(engine(Level::Raid6, 4, 8192), "a", false)]);
    let server = NbdServer::new(sockets, None, NbdLimits::default(), make).unwrap();
    let mut client = Client::tcp(address, "");
    let data: Vec<u8> = (0..3 << 20).map(|byte| (byte / 255) as u8).collect();
    client.write(512, &data);
    assert!(client.read(512, 3 << 20) == data);
    server.end(0, |_| ()).unwrap();
}

/// What is done with the engine between requests takes nobody's answer away.
#[test]
fn commands_between_requests_confuse_nothing() {
    let served = Served::new(|| engine(Level::Raid6, 4, 2048));
    let mut client = served.client();
    std::thread::scope(|scope| {
        let commands = scope.spawn(|| {
            for round in 0..300u32 {
                let work = move |engine: &mut Engine| {
                    let member = raidlab_core::MemberIndex(round as u16 % 4);
                    engine.settle(Duration::ZERO)?;
                    if round == 150 { engine.fail(member) } else { Ok(()) }
                };
                served.server.with_engine(0, work).unwrap().unwrap();
            }
        });
        let mut round = 0u64;
        while !commands.is_finished() {
            round += 1;
            let bytes = |block: u64| vec![(round * 7 + block) as u8; 4096];
            for block in 0..32 {
                client.ask(Command::Write, block * 4096, 4096, false, &bytes(block));
            }
            while client.under_way() > 0 {
                client.answer().unwrap().1.good();
            }
            let reads: Vec<u64> =
                (0..32).map(|block| client.ask(READ, block * 4096, 4096, false, &[])).collect();
            while client.under_way() > 0 {
                let (cookie, answer) = client.answer().unwrap();
                let block = reads.iter().position(|read| *read == cookie).unwrap();
                assert!(answer.good().data == bytes(block as u64), "round {round}, block {block}");
            }
        }
    });
}

/// Limits that are soon reached.
fn narrow() -> NbdLimits {
    let short = Duration::from_millis(50);
    NbdLimits { connections: 8, memory: 1 << 20, handshake: short, stall: short, drain: short }
}
