//! Drives with a cache that a power cut empties, in memory: of what was written and not flushed any part is there then.
#![allow(dead_code, unreachable_pub, reason = "shared by tests that use different parts")]

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use raidlab_core::Sectors;
use raidlab_core::contract::{IoOp, IoOutcome};
use raidlab_engine::{MemberRequest, MemberStore};

const SECTOR: usize = 512;
/// Sectors that are kept together.
const TOGETHER: u64 = 8;
type Together = [[u8; SECTOR]; TOGETHER as usize];

/// A drive with a cache.
#[derive(Clone)]
pub struct Drive(Arc<Mutex<Cached>>);

struct Cached {
    sectors: u64,
    /// By their first sector; what is not there is zeroes.
    durable: HashMap<u64, Box<Together>>,
    /// What was written and is not durable: of each sector all versions, the newest last.
    cache: BTreeMap<u64, Vec<[u8; SECTOR]>>,
    is_off: bool,
}

impl Drive {
    /// One of so many sectors of zeroes.
    pub fn new(sectors: u64) -> Self {
        Self::of(sectors, HashMap::new())
    }

    fn of(sectors: u64, durable: HashMap<u64, Box<Together>>) -> Self {
        let cached = Cached { sectors, durable, cache: BTreeMap::new(), is_off: false };
        Self(Arc::new(Mutex::new(cached)))
    }

    fn lock(&self) -> MutexGuard<'_, Cached> {
        self.0.lock().unwrap()
    }

    /// Writes bytes durably from sector `at` on; zeroes to the end of the last sector.
    pub fn put(&self, at: u64, bytes: &[u8]) {
        let mut bytes = bytes.to_vec();
        bytes.resize(bytes.len().next_multiple_of(SECTOR), 0);
        self.lock().write(at, &bytes, true);
    }

    /// All that it holds, without what is not durable.
    pub fn bytes(&self) -> Vec<u8> {
        let drive = self.lock();
        let mut bytes = vec![0; drive.sectors as usize * SECTOR];
        for (first, together) in &drive.durable {
            let from = *first as usize * SECTOR;
            let into = &mut bytes[from..];
            let len = into.len().min(together.as_flattened().len());
            into[..len].copy_from_slice(&together.as_flattened()[..len]);
        }
        bytes
    }

    /// Whether this holds for all that a sector may hold after a power cut.
    pub fn always(&self, sector: u64, holds: impl FnMut(&[u8; SECTOR]) -> bool) -> bool {
        let drive = self.lock();
        let first = sector / TOGETHER * TOGETHER;
        let durable = drive.durable.get(&first).map(|found| &found[(sector - first) as usize]);
        let cached = drive.cache.get(&sector).into_iter().flatten();
        std::iter::once(durable.unwrap_or(&[0; SECTOR])).chain(cached).all(holds)
    }

    /// It answers that it is gone from now on.
    pub fn turn_off(&self) {
        self.lock().is_off = true;
    }
}

/// What is there of drives whose power is cut at once, while others may use them. `below` draws a number below another.
pub fn cut<'a>(
    drives: impl IntoIterator<Item = &'a Drive>,
    mut below: impl FnMut(u64) -> u64,
) -> Vec<Drive> {
    let all: Vec<_> = drives.into_iter().map(Drive::lock).collect();
    all.iter().map(|drive| drive.cut(&mut below)).collect()
}

impl Cached {
    fn cut(&self, below: &mut impl FnMut(u64) -> u64) -> Drive {
        let left = Drive::of(self.sectors, self.durable.clone());
        // None, all, or any.
        let kept = below(4);
        for (sector, versions) in &self.cache {
            let count = match kept {
                0 => 0,
                1 => versions.len(),
                _ => below(versions.len() as u64 + 1) as usize,
            };
            if let Some(newest) = count.checked_sub(1) {
                left.lock().settle(*sector, &versions[newest]);
            }
        }
        left
    }

    fn settle(&mut self, sector: u64, bytes: &[u8; SECTOR]) {
        let first = sector / TOGETHER * TOGETHER;
        let together = self.durable.entry(first).or_insert_with(|| Box::new([[0; SECTOR]; 8]));
        together[(sector - first) as usize] = *bytes;
    }

    fn flush(&mut self) {
        for (sector, versions) in std::mem::take(&mut self.cache) {
            self.settle(sector, versions.last().expect("one at least"));
        }
    }

    fn write(&mut self, at: u64, bytes: &[u8], durable: bool) {
        for (sector, content) in (at..).zip(bytes.chunks_exact(SECTOR)) {
            let content = content.try_into().expect("a sector");
            if durable {
                self.cache.remove(&sector);
                self.settle(sector, content);
            } else {
                self.cache.entry(sector).or_default().push(*content);
            }
        }
    }

    fn read(&self, at: u64, len: u64) -> Vec<u8> {
        let mut bytes = vec![0; len as usize * SECTOR];
        for (sector, into) in (at..).zip(bytes.chunks_exact_mut(SECTOR)) {
            let first = sector / TOGETHER * TOGETHER;
            if let Some(found) = self.durable.get(&first) {
                into.copy_from_slice(&found[(sector - first) as usize]);
            }
        }
        for (sector, versions) in self.cache.range(at..at + len) {
            let newest = versions.last().expect("one at least");
            bytes[(sector - at) as usize * SECTOR..][..SECTOR].copy_from_slice(newest);
        }
        bytes
    }
}

impl MemberStore for Drive {
    fn sectors(&self) -> Sectors {
        Sectors(self.lock().sectors)
    }

    fn submit(&mut self, request: MemberRequest) {
        let mut drive = self.lock();
        if drive.is_off {
            return request.complete(IoOutcome::Gone);
        }
        let (at, len) = (request.at().0, request.len().0);
        if request.flushes_first() {
            drive.flush();
        }
        match request.op() {
            IoOp::Read => return request.complete_read(&drive.read(at, len)),
            IoOp::Write => drive.write(at, request.payload(), request.is_durable()),
            IoOp::WriteZeroes => {
                drive.write(at, &vec![0; len as usize * SECTOR], request.is_durable());
            }
            IoOp::Flush => drive.flush(),
            IoOp::Discard => {}
        }
        request.complete(IoOutcome::Ok);
    }
}
