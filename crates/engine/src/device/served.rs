//! Files that this process serves itself, as an array's content. The thread that serves one must not ask anything of
//! it, nor of loop devices over it: nobody would answer.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::place;

/// The directories that such files are in.
static SERVED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn directories() -> MutexGuard<'static, Vec<PathBuf>> {
    SERVED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says of a directory that this process serves what is in it, until it is dropped.
#[derive(Debug)]
pub struct Serving(PathBuf);

impl Serving {
    /// Of a directory by its canonical path.
    pub fn new(directory: PathBuf) -> Self {
        directories().push(directory.clone());
        Self(directory)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let mut all = directories();
        if let Some(at) = all.iter().position(|one| *one == self.0) {
            all.swap_remove(at);
        }
    }
}

/// Whether a path, by which the kernel knows a file, is of one that this process serves.
pub(super) fn serves(path: &Path) -> bool {
    directories().iter().any(|directory| path.starts_with(directory))
}

/// Whether a file or block device is, or is made of, what this process serves: an array must not be a member of
/// itself. Not to be asked by the thread that serves it.
pub fn is_served(path: &Path) -> bool {
    let Ok(path) = path.canonicalize() else { return false };
    if serves(&path) {
        return true;
    }
    let Ok(there) = fs::metadata(&path) else { return false };
    if !there.file_type().is_block_device() {
        return false;
    }
    let place = place::of_device(there.rdev(), None, 0..1);
    let last = place.devices.last().copied();
    last.and_then(place::backing_path).is_some_and(|file| serves(&file))
}
