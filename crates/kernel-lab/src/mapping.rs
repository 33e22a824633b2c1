//! Memory that is shared with the guest. The only part of this crate that the compiler
//! cannot check.

use std::ffi::c_void;
use std::os::fd::AsFd;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::failure::Failure;

/// A part of a file, mapped so that both sides see what the other writes.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<c_void>,
    length: usize,
}

impl Mapping {
    /// Maps so many bytes of a file. The file must keep at least this length, or touching what is gone ends this
    /// process: the guest never shortens its memory, and the page of the clock is ours. So does touching a page for
    /// which there is no room: [`Memory`](crate::memory::Memory) knows which the guest has touched.
    pub(crate) fn new(file: impl AsFd, length: usize, offset: u64) -> Result<Self, Failure> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::NORESERVE;
        // SAFETY: no address is asked for, so the kernel takes one at which nothing of this process lies; the mapping
        // is reached through `load` and `store` only.
        let start = unsafe { mmap(std::ptr::null_mut(), length, protection, flags, file, offset) };
        let start = start.map_err(|error| Failure::system("mapping the guest's memory", error))?;
        let start = NonNull::new(start).expect("the kernel never maps at zero");
        Ok(Self { start, length })
    }

    /// Copies bytes out; false when they do not all lie within.
    pub(crate) fn load(&self, at: u64, into: &mut [u8]) -> bool {
        let Some(at) = self.within(at, into.len()) else { return false };
        // SAFETY: the range lies within the mapping; `into` is memory of this process, which nothing maps twice. The
        // guest is another process, so no reference to the mapped bytes exists here, and it is at rest meanwhile.
        unsafe {
            let from = self.start.as_ptr().cast::<u8>().add(at);
            std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len());
        }
        true
    }

    /// Copies bytes in; false when they do not all lie within.
    pub(crate) fn store(&self, at: u64, from: &[u8]) -> bool {
        let Some(at) = self.within(at, from.len()) else { return false };
        // SAFETY: as in `load`, the other way.
        unsafe {
            let to = self.start.as_ptr().cast::<u8>().add(at);
            std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len());
        }
        true
    }

    fn within(&self, at: u64, length: usize) -> Option<usize> {
        let at = usize::try_from(at).ok()?;
        (at.checked_add(length)? <= self.length).then_some(at)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `start` and `length` are those of a mapping that was made here and is unmapped once; no reference to
        // it exists.
        let unmapped = unsafe { munmap(self.start.as_ptr(), self.length) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    #[test]
    fn both_sides_see_what_is_written_and_nothing_lies_outside() {
        let file = memfd_create("test", MemfdFlags::CLOEXEC).expect("can be made");
        ftruncate(&file, 8192).expect("can be made longer");
        let one = Mapping::new(&file, 8192, 0).expect("can be mapped");
        let other = Mapping::new(&file, 4096, 4096).expect("can be mapped");
        assert!(one.store(4096 + 8, b"abc"));
        let mut found = [0; 3];
        assert!(other.load(8, &mut found));
        assert_eq!(found, *b"abc");
        assert!(other.load(4093, &mut found) && !other.load(4094, &mut found));
        assert!(!other.store(u64::MAX, &found) && !other.store(u64::MAX - 1, &found));
    }
}
