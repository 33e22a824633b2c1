//! Whether zeroes cost no writing on the filesystem that a member file lies on.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, fcntl_getfl, fstat, open};

/// Whether the filesystem zeroes ranges of files without writing zeroes, and punches holes, which read as zeroes too.
///
/// It is tried with a file of no name beside the member: nothing of the member can change by it.
pub(super) fn is_cheap(file: &File, path: &Path) -> bool {
    tried(file, path).unwrap_or(false)
}

fn tried(file: &File, path: &Path) -> Option<bool> {
    let is_file = file.metadata().ok()?.is_file();
    if !is_file || !fcntl_getfl(file).ok()?.contains(OFlags::RDWR) {
        return Some(false);
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let beside = open(directory.unwrap_or(Path::new(".")), flags, mode).ok()?;
    if fstat(&beside).ok()?.st_dev != fstat(file).ok()?.st_dev {
        return Some(false);
    }
    for mode in [FallocateFlags::ZERO_RANGE, FallocateFlags::PUNCH_HOLE] {
        fallocate(&beside, mode | FallocateFlags::KEEP_SIZE, 0, 64 << 10).ok()?;
    }
    Some(true)
}
