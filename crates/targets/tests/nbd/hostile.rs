//! Clients that send anything, stall anywhere, take nothing, and come in crowds: the array goes on.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use raidlab_core::Level;
use raidlab_nbd::{Command, ErrorCode, Framing};
use raidlab_targets::NbdLimits;

use super::{Served, array, engine, narrow};
use crate::common::Random;
use crate::nbd_client::{Client, READ};

/// A server of one array with limits.
fn limited(limits: NbdLimits) -> Served {
    Served::with(limits, || Ok(vec![array(engine(Level::Raid5, 3, 1 << 14), "a", false)]))
}

/// The other side has closed it, whatever it sent before; whether it did is waited for.
fn is_closed(stream: &mut UnixStream) -> bool {
    let mut rest = Vec::new();
    // Data of ours that nobody read make an error of the end.
    let _ = stream.read_to_end(&mut rest);
    true
}

/// The array answers.
fn is_served(served: &Served) {
    let mut client = served.client();
    client.write(4096, &[0x5a; 4096]);
    assert_eq!(client.read(4096, 4096), [0x5a; 4096]);
}

#[test]
fn who_does_not_finish_the_handshake_is_dropped() {
    let served = limited(narrow());
    // Says nothing; says half; goes on asking for ever.
    let mut silent = served.stream();
    let mut half = served.stream();
    half.write_all(&[0, 0, 0, 3, b'I', b'H']).unwrap();
    let mut asking = served.stream();
    asking.write_all(&[0, 0, 0, 3]).unwrap();
    let list = [&b"IHAVEOPT"[..], &[0, 0, 0, 3, 0, 0, 0, 0]].concat();
    while asking.write_all(&list).is_ok() {
        let mut answer = [0; 4096];
        if asking.read(&mut answer).unwrap_or(0) == 0 {
            break;
        }
    }
    assert!(is_closed(&mut silent) && is_closed(&mut half));
    assert!(served.server.report(0).unwrap().dropped >= 3);
    is_served(&served);
}

#[test]
fn more_clients_than_there_may_be_are_closed_as_they_come() {
    let served = limited(NbdLimits { connections: 4, ..NbdLimits::default() });
    let mut clients: Vec<Client> = (0..4).map(|_| served.client()).collect();
    let mut fifth = served.stream();
    assert!(is_closed(&mut fifth));
    assert_eq!(served.server.report(0).unwrap().refused, 1);
    clients[3].write(0, &[1; 512]);
    drop(clients);
    // A place is free when the end of the others was noticed.
    while Client::over(served.stream(), "a", Framing::Structured).is_err() {}
}

/// A client that asks for much and takes nothing keeps half of the memory at most, and loses its
/// connection when others wait for it.
#[test]
fn slow_readers_are_held_back_and_then_dropped() {
    let served = limited(narrow());
    let mut slow: Vec<Client> = (0..3).map(|_| served.client()).collect();
    for client in &mut slow {
        for number in 0..200 {
            client.ask(READ, number % 16 * 65_536, 65_536, false, &[]);
        }
        client.send().unwrap();
    }
    // Two of them have all memory between them; a third client needs some.
    for _ in 0..3 {
        is_served(&served);
    }
    let report = served.server.report(0).unwrap();
    assert!(report.memory <= 1 << 20, "{report:?}");
    // Who reads on gets all, or is told that the connection ended; nobody waits for ever.
    for mut client in slow {
        while client.under_way() > 0 && client.answer().is_ok() {}
    }
}

/// The head of a write, and then nothing: its memory goes to others when they need it.
#[test]
fn half_a_write_does_not_keep_memory_from_others() {
    let served = limited(narrow());
    let mut half: Vec<Client> = (0..4).map(|_| served.client()).collect();
    for client in &mut half {
        // The session counts a request of 512 KiB, and only a part of its data comes.
        client.ask(Command::Write, 0, 512 << 10, false, &[1; 1000]);
        client.send().unwrap();
    }
    let mut client = served.client();
    let bytes = vec![7; 256 << 10];
    client.write(0, &bytes);
    assert!(client.read(0, 256 << 10) == bytes);
    // A part of what was never whole is nowhere.
    drop(half);
    assert!(client.read(0, 256 << 10) == bytes);
}

/// Clients that have all memory between them and send a byte now and then: of a write that it is for, or of another one
/// that is refused, while they take nothing of what they have read.
#[test]
fn who_trickles_does_not_keep_memory_from_others() {
    const ALL: u64 = 16 << 20;
    for command in [Command::Write, READ] {
        // Longer than a loaded machine leaves a thread waiting: a byte comes in time.
        let stall = Duration::from_secs(1);
        let served = limited(NbdLimits { memory: ALL, stall, ..NbdLimits::default() });
        let is_done = AtomicBool::new(false);
        let told = std::thread::scope(|scope| {
            for _ in 0..2 {
                let mut stream = served.stream();
                let client = Client::over(stream.try_clone().unwrap(), "a", Framing::Structured);
                let mut client = client.unwrap();
                client.ask(command, 0, ALL / 2, false, &[]);
                if command == READ {
                    client.ask(Command::Write, client.chosen.size, ALL / 2, false, &[]);
                }
                client.send().unwrap();
                let (served, is_done) = (&served, &is_done);
                // The server has a turn between any two bytes.
                scope.spawn(move || {
                    while !is_done.load(Ordering::Relaxed) && stream.write_all(&[1]).is_ok() {
                        served.server.report(0).unwrap();
                    }
                    drop(client);
                });
            }
            while served.server.report(0).unwrap().memory < ALL {}
            let stream = served.stream();
            // So that it ends: nothing depends on it while all is well.
            stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            let mut client = Client::over(stream, "a", Framing::Structured).unwrap();
            client.ask(READ, 0, 4096, false, &[]);
            let told = client.answer();
            is_done.store(true, Ordering::Relaxed);
            told
        });
        told.unwrap_or_else(|error| panic!("{command:?}: {error}")).1.good();
        assert!(served.server.report(0).unwrap().dropped >= 1);
    }
}

#[test]
fn requests_that_cannot_be_are_refused_and_the_connection_goes_on() {
    let served = limited(NbdLimits::default());
    let mut client = served.client();
    let size = client.chosen.size;
    let most = u64::from(client.chosen.blocks.maximum);
    assert_eq!(most, 32 << 20);
    for (command, at, len, wanted) in [
        (READ, 0, 0, ErrorCode::Invalid),
        (READ, 1, 512, ErrorCode::Invalid),
        (READ, 0, 511, ErrorCode::Invalid),
        (READ, size, 512, ErrorCode::Invalid),
        (READ, size - 512, 1024, ErrorCode::Invalid),
        (READ, u64::MAX - 511, 1024, ErrorCode::Invalid),
        (READ, u64::MAX - 511, 512, ErrorCode::Invalid),
        (Command::Trim, size, 512, ErrorCode::Invalid),
        (Command::Trim, u64::MAX - 511, u64::from(u32::MAX) & !511, ErrorCode::Invalid),
        (Command::Flush, 512, 0, ErrorCode::Invalid),
        (Command::Cache, 0, 512, ErrorCode::Invalid),
    ] {
        let refused = client.once(command, at, len, false, &[]);
        assert_eq!(refused.error, Some(wanted), "{command:?} {at} {len}");
    }
    // Data of a write that is refused are passed over.
    let refused = client.once(Command::Write, size, 4096, false, &[1; 4096]);
    assert_eq!(refused.error, Some(ErrorCode::NoSpace));
    client.write(0, &[3; 4096]);
    assert_eq!(client.read(0, 4096), [3; 4096]);
}

/// Lengths that no memory could hold cost none: a write of 4 GiB is passed over as it comes.
#[test]
fn an_oversized_write_takes_no_memory() {
    let served = limited(narrow());
    let mut client = served.client();
    let most = u64::from(client.chosen.blocks.maximum);
    assert_eq!(most, 512 << 10);
    let bytes = vec![1; (2 * most) as usize];
    let refused = client.once(Command::Write, 0, 2 * most, false, &bytes);
    assert_eq!(refused.error, Some(ErrorCode::Invalid));
    let refused = client.once(READ, 0, 2 * most, false, &[]);
    assert_eq!(refused.error, Some(ErrorCode::Invalid));
    assert_eq!(served.server.report(0).unwrap().memory, 0);
    is_served(&served);
}

/// Bytes that are no protocol, at every stage, in any pieces.
#[test]
fn noise_ends_its_own_connection_and_nothing_else() {
    let served = limited(NbdLimits { stall: Duration::from_millis(50), ..NbdLimits::default() });
    let mut other = served.client();
    other.write(1 << 20, &[0x77; 65_536]);
    let mut random = Random(99);
    for _ in 0..300 {
        let mut stream = served.stream();
        let mut noise = vec![0; random.below(3000) as usize];
        random.fill(&mut noise);
        let _ = match random.below(3) {
            0 => stream.write_all(&noise),
            1 => stream.write_all(&[&[0, 0, 0, 3][..], &noise].concat()),
            _ => {
                // A request of a client that was in order so far.
                let mut client = served.client();
                client.ask(READ, random.below(1 << 20) * 512, 512, false, &noise);
                client.send()
            }
        };
    }
    assert_eq!(other.read(1 << 20, 65_536), [0x77; 65_536]);
    is_served(&served);
}

/// Clients that come and go, with requests under way.
#[test]
fn crowds_come_and_go() {
    let many = match std::env::var("RAIDLAB_FULL").as_deref() {
        Ok("1") => 10_000,
        _ => 300,
    };
    let served = limited(NbdLimits::default());
    let mut stay = served.client();
    for number in 0..many {
        let mut client = served.client();
        client.ask(Command::Write, 1 << 20, 65_536, false, &[1; 65_536]);
        client.ask(READ, 0, 1 << 20, false, &[]);
        client.send().unwrap();
        if number % 2 == 0 {
            client.answer().unwrap();
        }
        drop(client);
        if number % 50 == 0 {
            stay.write(0, &[number as u8; 4096]);
            assert_eq!(stay.read(0, 4096), [number as u8; 4096]);
        }
    }
    while served.server.report(0).unwrap().clients > 1 {
        stay.read(0, 512);
    }
    let report = served.server.report(0).unwrap();
    assert!(report.memory <= NbdLimits::default().memory, "{report:?}");
    assert_eq!(report.counters.connections, many + 1);
}

/// A thousand that stay, all of which are served; a descriptor each on both sides.
#[test]
fn a_thousand_connections_are_served() {
    let many = match std::env::var("RAIDLAB_FULL").as_deref() {
        Ok("1") => 1000,
        _ => 200,
    };
    let served = limited(NbdLimits::default());
    let mut clients: Vec<Client> = (0..many).map(|_| served.client()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        let at = number as u64 * 4096;
        client.ask(Command::Write, at, 4096, false, &[number as u8; 4096]);
        client.ask(READ, at, 4096, false, &[]);
        client.send().unwrap();
    }
    for client in &mut clients {
        client.answer().unwrap().1.good();
        client.answer().unwrap().1.good();
    }
    let report = served.server.report(0).unwrap();
    assert_eq!(report.clients as usize, many);
    assert!(report.memory <= NbdLimits::default().memory);
    for (number, client) in clients.iter_mut().enumerate().step_by(97) {
        assert_eq!(client.read(number as u64 * 4096, 4096), [number as u8; 4096]);
    }
}
