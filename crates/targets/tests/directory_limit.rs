//! More files open than the process may have at first. A test binary of its own: the limit is per process.

#[path = "../../engine/tests/common/mod.rs"]
mod common;
mod directory_support;

use common::TestDirectory;
use directory_support::*;
use raidlab_workload::OpenFlags;

/// Lowers what this process may have open, to be raised again up to `most`.
fn limit_open_files(now: u64, most: u64) {
    let limit = libc::rlimit { rlim_cur: now, rlim_max: most };
    // SAFETY: the limit is a valid value.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
}

#[test]
fn the_limit_of_open_files_is_raised_as_far_as_it_goes() {
    let directory = TestDirectory::new();
    let opens =
        |count: u16| (0..count).map(|n| open(n, &n.to_string(), OpenFlags::WRITE)).collect();
    limit_open_files(32, 200);
    run_steps(directory.path(), opens(100)).unwrap();
    let error = run_steps(directory.path(), opens(300)).err().unwrap();
    assert!(error.to_string().contains("Too many open files"), "{error}");
    assert_eq!(names(directory.path()), [""; 0], "all is removed");
}
