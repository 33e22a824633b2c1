//! The memory of guests: what those that run may still take of where it lies, and how drives read and write it.

use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::fs::{fstat, statvfs};
use rustix::io::{Errno, pread, pwrite};

use crate::failure::Failure;
use crate::mapping::Mapping;
use crate::vhost::Region;

/// Where the guest's memory lies: it must be mapped executable, and its size is set aside there.
pub(crate) const PLACE: &str = "/dev/shm";

/// The kernel's pages, of which each is there or not.
const PAGE: u64 = 4096;

/// A region of a guest's memory. A page of it takes room only when it is first touched, and where there is none left a
/// touch ends the process that did. So drives touch by themselves what is known to be there, and have the kernel read
/// and write the rest, which says that there is no room.
#[derive(Debug)]
pub(crate) struct Memory {
    region: Region,
    mapping: Mapping,
    file: OwnedFd,
    /// The pages that were written from here, by number: nothing takes them away again.
    there: Vec<bool>,
}

impl Memory {
    pub(crate) fn new(region: Region, file: OwnedFd) -> Result<Self, Failure> {
        let mapping = Mapping::new(&file, region.length as usize, region.offset)?;
        let there = vec![false; region.length.div_ceil(PAGE) as usize];
        Ok(Self { region, mapping, file, there })
    }

    /// Whether so many bytes from this address on are part of it.
    pub(crate) fn has(&self, address: u64, length: usize) -> bool {
        let within = address.checked_sub(self.region.address);
        let end = within.and_then(|within| within.checked_add(length as u64));
        end.is_some_and(|end| end <= self.region.length)
    }

    /// Reads what the guest has written there: entries of queues and heads of requests.
    pub(crate) fn load(&self, address: u64, into: &mut [u8]) -> Result<(), Failure> {
        let length = into.len();
        let loaded =
            self.has(address, length) && self.mapping.load(address - self.region.address, into);
        if loaded { Ok(()) } else { Err(Failure::Address { address, length }) }
    }

    /// Reads what the guest need not have touched.
    pub(crate) fn load_contents(&self, address: u64, into: &mut [u8]) -> Result<(), Failure> {
        if self.is_there(address, into.len()) {
            return self.load(address, into);
        }
        let length = into.len();
        let missing = Failure::Address { address, length };
        let Some(mut at) = self.in_file(address, length) else { return Err(missing) };
        let mut left = into;
        while !left.is_empty() {
            match pread(&self.file, &mut *left, at) {
                Ok(0) => return Err(missing),
                Ok(count) => {
                    at += count as u64;
                    left = &mut left[count..];
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(Failure::system("reading the guest's memory", error)),
            }
        }
        Ok(())
    }

    /// Writes it.
    pub(crate) fn store(&mut self, address: u64, from: &[u8]) -> Result<(), Failure> {
        if self.is_there(address, from.len())
            && self.mapping.store(address - self.region.address, from)
        {
            return Ok(());
        }
        let length = from.len();
        let missing = Failure::Address { address, length };
        let Some(mut at) = self.in_file(address, length) else { return Err(missing) };
        let mut left = from;
        while !left.is_empty() {
            match pwrite(&self.file, left, at) {
                Ok(0) => return Err(missing),
                Ok(count) => {
                    at += count as u64;
                    left = &left[count..];
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(unwritten(error)),
            }
        }
        let pages = self.pages(address, length);
        self.there[pages].fill(true);
        Ok(())
    }

    /// Whether all of it is known to be there.
    fn is_there(&self, address: u64, length: usize) -> bool {
        self.has(address, length) && self.there[self.pages(address, length)].iter().all(|is| *is)
    }

    /// The numbers of the pages that a range of the region touches.
    fn pages(&self, address: u64, length: usize) -> Range<usize> {
        // It begins with a page, or it could not be mapped.
        let at = address - self.region.address;
        let first = at / PAGE;
        let end = (at + length as u64).div_ceil(PAGE).max(first);
        first as usize..end as usize
    }

    fn in_file(&self, address: u64, length: usize) -> Option<u64> {
        let within = self.has(address, length).then(|| address - self.region.address)?;
        self.region.offset.checked_add(within)
    }
}

fn unwritten(error: Errno) -> Failure {
    if error == Errno::NOSPC {
        let text = format!(
            "{PLACE} has no room left for the guest's memory, which is taken as it is used: make room there, give \
             guests less memory or run fewer at once"
        );
        return Failure::system(text, error);
    }
    Failure::system("writing the guest's memory", error)
}

/// The memory that a guest of this process may take, until this is dropped.
pub(crate) struct Promise(Arc<Promised>);

struct Promised {
    bytes: u64,
    /// Its memory, once a drive is told of it.
    file: OnceLock<OwnedFd>,
}

/// What was promised to guests that run.
struct Promises(Mutex<Vec<Arc<Promised>>>);

/// To guests of this process.
static PROMISES: Promises = Promises(Mutex::new(Vec::new()));

impl Promise {
    /// Promises a guest that is about to start so many MiB, unless less is free than it and those that run may take.
    pub(crate) fn of(mib: u64) -> Result<Self, Failure> {
        let free = || {
            let space = statvfs(PLACE).map_err(|error| Failure::system(PLACE, error))?;
            Ok(space.f_bavail.saturating_mul(space.f_frsize))
        };
        PROMISES.add(mib, free).map(Self)
    }

    /// Says which file the memory is, so that what is taken of it is not counted twice.
    pub(crate) fn lies_in(&self, file: impl AsFd) -> Result<(), Failure> {
        if self.0.file.get().is_none() {
            let own = file.as_fd().try_clone_to_owned();
            let own = own.map_err(|error| Failure::system("the guest's memory", error))?;
            // Another drive cannot have been told before: one thread serves a guest.
            let _ = self.0.file.set(own);
        }
        Ok(())
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        PROMISES.all().retain(|one| !Arc::ptr_eq(one, &self.0));
    }
}

impl Promised {
    /// What of it is not taken yet; all of it, as long as its file is not known.
    fn left(&self) -> u64 {
        let status = self.file.get().and_then(|file| fstat(file).ok());
        let taken = status.map_or(0, |status| status.st_blocks as u64 * 512);
        self.bytes.saturating_sub(taken)
    }
}

impl Promises {
    fn all(&self) -> MutexGuard<'_, Vec<Arc<Promised>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(
        &self,
        mib: u64,
        free: impl FnOnce() -> Result<u64, Failure>,
    ) -> Result<Arc<Promised>, Failure> {
        let mut all = self.all();
        // Before it is asked what is free: what a guest takes in between is counted twice, and not left out.
        let left = all.iter().fold(0, |sum: u64, one| sum.saturating_add(one.left()));
        let (free, bytes) = (free()?, mib.saturating_mul(1 << 20));
        if free < bytes.saturating_add(left) {
            let others = match left >> 20 {
                0 => String::new(),
                left => format!(", of which guests that run may still take {left} MiB"),
            };
            let free = free >> 20;
            let text =
                format!("a guest of {mib} MiB of memory: {PLACE} has {free} MiB free{others}");
            return Err(Failure::Refused(text));
        }
        let promised = Arc::new(Promised { bytes, file: OnceLock::new() });
        all.push(promised.clone());
        Ok(promised)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

    /// Two pages of a file from its second one on, from address 0x5000 on.
    const REGION: Region = Region { address: 0x5000, length: 8192, offset: 4096 };

    fn file() -> OwnedFd {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("test", flags).expect("can be made");
        ftruncate(&file, 3 * 4096).expect("can be made longer");
        file
    }

    #[test]
    fn what_is_stored_is_loaded_either_way_and_nothing_lies_outside() {
        let mut memory = Memory::new(REGION, file()).expect("can be mapped");
        memory.store(0x6fff, b"x").expect("is within");
        memory.store(0x5ffe, b"abcd").expect("is within");
        let mut found = [0; 4];
        memory.load(0x5ffe, &mut found).expect("is within");
        assert_eq!(found, *b"abcd");
        memory.load_contents(0x6ffc, &mut found).expect("is within");
        assert_eq!(found, *b"\0\0\0x");
        // Once more, when the pages are known to be there.
        memory.store(0x5ffe, b"efgh").expect("is within");
        memory.load_contents(0x5ffd, &mut found).expect("is within");
        assert_eq!(found, *b"\0efg");
        for address in [0x4fff, 0x6ffd, 0x7000, 0, u64::MAX] {
            let outside = |ended| matches!(ended, Err(Failure::Address { length: 4, .. }));
            assert!(outside(memory.store(address, &found)), "{address:#x}");
            assert!(outside(memory.load(address, &mut found)), "{address:#x}");
            assert!(outside(memory.load_contents(address, &mut found)), "{address:#x}");
        }
    }

    #[test]
    fn memory_that_cannot_be_had_is_an_error_and_not_the_end_of_this_process() {
        let mut memory = Memory::new(REGION, file()).expect("can be mapped");
        memory.store(0x5000, b"abcd").expect("is there");
        // As where there is no room, a touch of what is gone is a SIGBUS.
        ftruncate(&memory.file, 2 * 4096).expect("can be made shorter");
        fcntl_add_seals(&memory.file, SealFlags::GROW).expect("can be sealed");
        let failure = memory.store(0x5ffe, b"abcd").expect_err("half of it is gone");
        assert!(matches!(failure, Failure::System { .. }), "{failure}");
        let failure = memory.load_contents(0x5ffe, &mut [0; 4]).expect_err("half of it is gone");
        assert!(matches!(failure, Failure::Address { .. }), "{failure}");
    }

    #[test]
    fn a_place_without_room_is_named_with_what_to_do() {
        let full = std::fs::File::options().read(true).write(true).open("/dev/full");
        let mut memory = Memory::new(REGION, file()).expect("can be mapped");
        memory.file = full.expect("is there").into();
        let failure = memory.store(0x5000, b"abcd");
        let text = failure.expect_err("there is no room").to_string();
        assert!(text.starts_with("/dev/shm has no room left for the guest's memory"), "{text}");
        assert!(text.contains("run fewer at once: No space left"), "{text}");
    }

    #[test]
    fn guests_that_run_are_promised_no_more_than_is_free() {
        let promises = Promises(Mutex::new(Vec::new()));
        let mib = |free: u64| move || Ok(free << 20);
        let first = promises.add(600, mib(1000)).expect("is free");
        let refused = promises.add(401, mib(1000)).err().expect("is promised").to_string();
        let expected = "a guest of 401 MiB of memory: /dev/shm has 1000 MiB free, of which guests that run may still \
                        take 600 MiB";
        assert_eq!(refused, expected);
        // It takes 100 of its 600 MiB.
        let file = memfd_create("test", MemfdFlags::CLOEXEC).expect("can be made");
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 100 << 20)
            .expect("there is room");
        Promise(first.clone()).lies_in(&file).expect("can be kept");
        assert!(promises.add(401, mib(900)).is_err());
        let second = promises.add(400, mib(900)).expect("is free");
        promises.all().retain(|one| !Arc::ptr_eq(one, &first));
        assert!(promises.add(600, mib(999)).is_err());
        promises.add(600, mib(1000)).expect("is free again");
        assert_eq!(second.left(), 400 << 20);
    }
}
