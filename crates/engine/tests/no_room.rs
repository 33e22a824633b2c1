//! A member whose file may not take more data. A test binary of its own: the limit is per process.

mod common;

use common::{Random, TestDirectory};
use raidlab_core::contract::{Event, IoOp, Segment};
use raidlab_core::{Layout, Level, MemberIndex, Sector, Sectors};
use raidlab_engine::{
    Engine, EngineConfig, EngineErrorKind, FileIo, FileMember, FileOptions, Member,
};

/// From now on no file of this process may be written at or behind `bytes`.
fn limit_file_size(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the limit is a valid value; ignoring the signal leaves the error number.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit), 0);
    }
}

#[test]
fn a_full_member_fails_the_write_or_leaves_it_to_the_mirror() {
    let directory = TestDirectory::new();
    let open = |name: &str, offset: u64| {
        let path = directory.path().join(name);
        std::fs::File::create(&path).unwrap().set_len(1 << 20).unwrap();
        let options = FileOptions {
            data_offset: Sectors(offset),
            sectors: Some(Sectors(1024)),
            direct: false,
            threads: 2,
            engine: FileIo::Auto,
            read_only: false,
        };
        Member::File(Box::new(FileMember::open(&path, options).unwrap()))
    };
    let mut single = EngineConfig::new(Layout::new(Level::Linear, 1).with_chunk(Sectors(8)));
    single.settings.room_wait = None;
    let mut alone = Engine::new(&single, vec![open("alone", 1024)]).unwrap();
    let mut mirror = EngineConfig::new(Layout::new(Level::Raid1, 2));
    let mut patient = Engine::new(&mirror, vec![open("waits", 1024), open("has", 0)]).unwrap();
    mirror.settings.room_wait = None;
    let mut pair = Engine::new(&mirror, vec![open("full", 1024), open("other", 0)]).unwrap();
    let mut data = vec![0; 64 << 10];
    Random(6).fill(&mut data);
    // Data of the full members start at 512 KiB, those of the other end there.
    limit_file_size(768 << 10);

    alone.write_at(Sector(0), &data).unwrap();
    let error = alone.write_at(Sector(512), &data).unwrap_err();
    // Such a limit is told by the write only: the member is lost, and said to be without room.
    assert_eq!(error.kind(), EngineErrorKind::NoRoom, "{error}");
    assert!(error.to_string().contains("alone"), "{error}");

    pair.write_at(Sector(512), &data).unwrap();
    assert!(pair.array().is_failed(MemberIndex(0)) && !pair.array().is_failed(MemberIndex(1)));
    let told = pair.no_room().expect("a member was full").to_string();
    assert!(told.contains("full"), "{told}");
    let mut back = vec![0; data.len()];
    pair.read_at(Sector(512), &mut back).unwrap();
    assert!(back == data);

    // Who waits goes on when there is room.
    let token = patient.allocate(data.len() as u64).unwrap();
    patient.bytes_mut(token).unwrap().copy_from_slice(&data);
    let len = Sectors(data.len() as u64 / 512).0 as u32;
    let segment = Segment { token, offset: 0, len };
    patient.submit(IoOp::Write, Sector(512), &[segment], false).unwrap();
    let mut replies = Vec::new();
    while !patient.take_events().contains(&Event::WaitsForRoom(MemberIndex(0))) {
        patient.poll_replies(&mut replies).unwrap();
    }
    assert!(replies.is_empty());
    assert_eq!(patient.array().status().waiting, 1);
    limit_file_size(libc::RLIM_INFINITY);
    patient.wait_replies(&mut replies).unwrap();
    assert_eq!(replies.len(), 1);
    assert!((0..2).all(|member| !patient.array().is_failed(MemberIndex(member))));
    patient.fail(MemberIndex(1)).unwrap();
    patient.read_at(Sector(512), &mut back).unwrap();
    assert!(back == data);
}
