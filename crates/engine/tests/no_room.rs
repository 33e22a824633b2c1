//! A member whose file may not take more data. A test binary of its own: the limit is per process.

mod common;

use common::{Random, TestDirectory};
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
        };
        Member::File(Box::new(FileMember::open(&path, options).unwrap()))
    };
    let single = EngineConfig::new(Layout::new(Level::Linear, 1).with_chunk(Sectors(8)));
    let mut alone = Engine::new(&single, vec![open("alone", 1024)]).unwrap();
    let mirror = EngineConfig::new(Layout::new(Level::Raid1, 2));
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
}
