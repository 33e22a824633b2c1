//! A kernel that refuses `io_uring`, as in many containers. In a process of its own: the filter stays.

mod common;

use common::TestDirectory;
use raidlab_core::{Layout, Level, Sector, Sectors};
use raidlab_engine::{
    Engine, EngineConfig, EngineErrorKind, FileIo, FileMember, FileOptions, Member,
};

/// Makes `io_uring_setup` fail with `EPERM` for this thread and those it starts.
fn refuse_rings() {
    let op = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let answer = libc::BPF_RET | libc::BPF_K;
    // The number of the call is the first word a filter sees (seccomp(2)).
    let mut program = [
        op(load, 0, 0, 0),
        op(equal, 0, 1, libc::SYS_io_uring_setup as u32),
        op(answer, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        op(answer, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the program is whole, and read by the kernel before the call returns.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_MODE_FILTER;
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const filter), 0);
    }
}

#[test]
fn without_a_ring_threads_do_the_work() {
    refuse_rings();
    let directory = TestDirectory::new();
    let path = directory.path().join("file");
    std::fs::File::create(&path).unwrap().set_len(1 << 20).unwrap();
    let open = |engine| FileMember::open(&path, FileOptions { engine, ..FileOptions::default() });
    let error = open(FileIo::Uring).unwrap_err();
    assert_eq!(error.kind(), EngineErrorKind::NotSupported);
    assert!(error.to_string().contains("the kernel refuses io_uring"), "{error}");
    let member = open(FileIo::Auto).unwrap();
    assert_eq!(member.file_io(), FileIo::Threads);
    let layout = Layout::new(Level::Linear, 1).with_chunk(Sectors(8));
    let only = vec![Member::File(Box::new(member))];
    let mut engine = Engine::new(&EngineConfig::new(layout), only).unwrap();
    engine.write_at(Sector(0), &[7; 8192]).unwrap();
    let mut back = [0; 8192];
    engine.read_at(Sector(0), &mut back).unwrap();
    assert_eq!(back, [7; 8192]);
}
