//! Serving NBD clients takes no memory per request once as many were under way as there will be: a counting allocator
//! on the thread that serves, under two connections, with so few requests that all are taken in at once, and with
//! more. Who asks about blocks is told lists, which do take some.

#[path = "../../engine/tests/common/mod.rs"]
mod common;
#[path = "../../../tests/support/counting.rs"]
mod counting;
#[path = "../../../tests/support/nbd.rs"]
mod nbd_client;
#[path = "../../../tests/support/root.rs"]
mod root;

use common::{Random, TestDirectory, file_members, memory_members};
use nbd_client::{Client, READ, ZERO};
use raidlab_core::{Layout, Level, MemberIndex, Sectors};
use raidlab_engine::{Engine, EngineConfig, EngineErrorKind, FileIo, Member};
use raidlab_nbd::Command;
use raidlab_targets::{NbdAddress, NbdArray, NbdLimits, NbdServer, NbdSockets};

const MEMBER: Sectors = Sectors(1 << 14);
/// Requests of a client at once; of the larger number some wait until others are answered.
const DEPTHS: [u64; 2] = [32, 300];
/// Rounds that are counted together.
const ROUNDS: u64 = 5;
/// How often it is counted: how many requests are under way at once, and so how much memory is in use, is up to the
/// machine, and is seldom at its most in the first of them.
const WINDOWS: usize = 20;

/// All that clients do on their way through an array, in one round: each has a part of it of its own.
fn round(clients: &mut [Client; 2], depth: u64, random: &mut Random) {
    for (part, client) in (0..).zip(clients.iter_mut()) {
        let room = client.chosen.size / 2;
        let data = [7; 64 << 10];
        for number in 0..depth {
            let len = [4, 4, 4, 16, 64][number as usize % 5] << 10;
            let at = part * room + random.below((room - len) / 4096) * 4096;
            match number {
                0 => client.ask(Command::Flush, 0, 0, false, &[]),
                1 => client.ask(ZERO, at, len, false, &[]),
                2 => client.ask(Command::Trim, at, len, false, &[]),
                number if number % 2 == 0 => client.ask(READ, at, len, false, &[]),
                number => {
                    let data = &data[..len as usize];
                    client.ask(Command::Write, at, len, number % 8 == 3, data)
                }
            };
        }
        client.send().unwrap();
    }
    for client in clients {
        while client.under_way() > 0 {
            client.answer().unwrap().1.good();
        }
    }
}

/// What the serving thread has taken so far, with what telling it takes.
fn taken(server: &NbdServer) -> u64 {
    server.with_engine(0, |_| counting::of_this_thread()).unwrap()
}

/// Serves an array; what was taken in each window, up to the first in which it was nothing.
fn windows(layout: &Layout, members: Vec<Member>, degraded: bool, depth: u64) -> Vec<u64> {
    let directory = TestDirectory::new();
    let path = directory.path().join("socket");
    let sockets = NbdSockets::bind(&[NbdAddress::Unix(path.clone())], false).unwrap();
    let config = EngineConfig::new(layout.clone());
    let make = move || {
        let mut engine = Engine::new(&config, members)?;
        if degraded {
            engine.fail(MemberIndex(1))?;
        }
        let (name, description) = ("a".into(), String::new());
        Ok(vec![NbdArray { engine, name, description, read_only: false }])
    };
    let server = NbdServer::new(sockets, None, NbdLimits::default(), make).unwrap();
    let mut clients = [0, 1].map(|_| Client::unix(&path, "a"));
    let mut random = Random(5);
    let mut windows = Vec::new();
    let telling = {
        let before = taken(&server);
        taken(&server) - before
    };
    while windows.len() < WINDOWS && windows.last() != Some(&0) {
        let before = taken(&server);
        (0..ROUNDS).for_each(|_| round(&mut clients, depth, &mut random));
        windows.push(taken(&server) - before - telling);
    }
    let answered = windows.len() as u64 * ROUNDS * depth;
    let report = server.report(0).unwrap().counters;
    let count = report.reads + report.writes + report.flushes + report.trims + report.zeroes;
    assert_eq!((count, report.errors), (2 * answered, 0), "{layout}");
    drop(clients);
    server.end(0, |_| ()).unwrap();
    windows
}

fn cases() -> impl Iterator<Item = (Layout, bool)> {
    let levels = [(Level::Raid0, 2), (Level::Raid1, 2), (Level::Raid5, 4), (Level::Raid6, 5)];
    levels.into_iter().flat_map(|(level, members)| {
        let layout = Layout::new(level, members);
        let layout = if level.has_chunks() { layout.with_chunk(Sectors(64)) } else { layout };
        let degraded = (layout.survives() > 0).then(|| (layout.clone(), true));
        [(layout, false)].into_iter().chain(degraded)
    })
}

#[test]
fn serving_takes_no_memory_per_request() {
    for (layout, degraded) in cases() {
        let is_deep = layout.level == Level::Raid1;
        for depth in DEPTHS.into_iter().take(if is_deep { 2 } else { 1 }) {
            let members = memory_members(layout.members, MEMBER);
            let windows = windows(&layout, members, degraded, depth);
            let what = format!("{layout}, degraded: {degraded}, {depth} at once: {windows:?}");
            assert_eq!(windows.last(), Some(&0), "{what}");
        }
    }
}

#[test]
fn serving_files_takes_no_memory_per_request() {
    let test = "serving_files_takes_no_memory_per_request";
    for (layout, degraded) in cases().filter(|(layout, _)| layout.level != Level::Raid5) {
        let directory = TestDirectory::new();
        let members = match file_members(&directory, layout.members, MEMBER, FileIo::Uring) {
            Ok(members) => members,
            Err(error) if error.kind() == EngineErrorKind::NotSupported => {
                return root::skip(test, &error.to_string());
            }
            Err(error) => panic!("{error}"),
        };
        let windows = windows(&layout, members, degraded, DEPTHS[0]);
        assert_eq!(windows.last(), Some(&0), "{layout}, degraded: {degraded}: {windows:?}");
    }
}
