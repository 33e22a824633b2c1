//! Many requests at once whose answers need nothing of the members: each is answered, without another word of the
//! client.

use std::time::Duration;

use raidlab_core::{Level, Sectors};
use raidlab_engine::{FileMember, FileOptions, Member, MemoryMember};
use raidlab_nbd::{ErrorCode, Extent, Framing};

use super::{Served, engine, engine_of};
use crate::common::TestDirectory;
use crate::nbd_client::{Client, READ, STATUS};

/// Nothing depends on it while all is well.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client that says so when an answer does not come.
fn patient(served: &Served) -> Client {
    let stream = served.stream();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    Client::over(stream, "a", Framing::Structured).unwrap()
}

/// 8 KiB of answer each, which soon are more than a client may leave unread.
#[test]
fn states_in_many_pieces_are_told_to_who_asks_many_times_at_once() {
    let sectors = Sectors(1 << 14);
    let directory = TestDirectory::new();
    let path = directory.path().join("blank");
    std::fs::File::create(&path).unwrap().set_len(sectors.bytes()).unwrap();
    let blank = Member::from(FileMember::open(&path, FileOptions::default()).unwrap());
    // Nothing is known of members in memory: every other chunk of 8 KiB is a hole.
    let members = vec![blank, MemoryMember::new(sectors).unwrap().into()];
    let served = Served::new(move || engine_of(Level::Raid0, members));
    let mut client = patient(&served);
    for _ in 0..100 {
        client.ask(STATUS, 0, 8 << 20, false, &[]);
    }
    while client.under_way() > 0 {
        let (_, answer) = client.answer().unwrap();
        let extents = &answer.good().extents["base:allocation"];
        assert_eq!(extents.len(), 1024);
        for (number, extent) in extents.iter().enumerate() {
            let flags = if number % 2 == 0 { Extent::HOLE | Extent::ZERO } else { 0 };
            assert_eq!(*extent, Extent { len: 8192, flags }, "{number}");
        }
    }
}

/// Few bytes each, of very many requests that come in one piece.
#[test]
fn refusals_are_told_to_who_asks_many_times_at_once() {
    let served = Served::new(|| engine(Level::Raid1, 2, 1024));
    let mut client = patient(&served);
    let beyond = client.chosen.size;
    for _ in 0..3000 {
        client.ask(READ, beyond, 512, false, &[]);
    }
    while client.under_way() > 0 {
        let (_, answer) = client.answer().unwrap();
        assert_eq!(answer.error, Some(ErrorCode::Invalid));
    }
}
