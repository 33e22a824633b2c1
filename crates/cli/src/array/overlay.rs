//! Members that are only read: what is written to them goes to one file beside, and is read back from there.
//!
//! ```text
//! | head: which devices, how long | maps: a bit for each 4 KiB of each device | blocks, in place, sparse |
//! ```
//!
//! Of a map only the pages are kept and written in which bits are set: a large device costs what is written to it.
//!
//! Fault model: the power may go at any moment, the disk of the file may be full. Why it is safe: a bit is written
//! only at a flush, when what it stands for is durable; so a block is the device's or whole. The devices are open for
//! reading only. Tests: here, and `tests/array_running.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raidlab_core::contract::{IoOp, IoOutcome};
use raidlab_core::{Sector, Sectors};
use raidlab_engine::{Member, MemberRequest, MemberStore, ReadHold};
use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::disk::{Disk, LOOKED_AT};
use crate::failure::Failure;
use raidlab_metadata::Source;
use raidlab_metadata::md::{Inspected, inspect};

const MAGIC: &[u8; 16] = b"raidlab overlay2";
/// Bytes of a block, of the head, and of a page of a map, in which they are read and written.
const BLOCK: u64 = 4096;
/// What ranges of zeroes are written from.
static ZEROES: [u8; 64 << 10] = [0; 64 << 10];
/// Bytes that the head has for each device: its identity, its sectors, and a sum of its ends.
const ENTRY: usize = 32;
/// Of them those that say which device it is.
const WHICH: usize = 24;
/// Devices that the head has room for.
const MOST: usize = (BLOCK as usize - MAGIC.len()) / ENTRY;

/// The file.
#[derive(Debug)]
struct Overlay {
    file: File,
    maps: Vec<Map>,
    /// Why what was written is not known to be durable, ever: the system tells of it once, to whoever comes first, of
    /// whatever the file holds.
    failed: Option<String>,
}

/// A page of a map: a bit for each of the blocks of 128 MiB.
type Page = Box<[u8; BLOCK as usize]>;

/// What of a device stands in the file.
#[derive(Debug)]
struct Map {
    /// Its pages that have a bit.
    pages: BTreeMap<u64, Page>,
    /// Where its map and its blocks stand, and the bytes of the map.
    at: u64,
    blocks: u64,
    len: u64,
    /// Pages with bits that are not durable yet.
    dirty: BTreeSet<u64>,
}

impl Map {
    /// The page of a block's bit, its byte there, and the bit.
    const fn place(block: u64) -> (u64, usize, u8) {
        (block / (BLOCK * 8), (block / 8 % BLOCK) as usize, 1 << (block % 8))
    }

    fn has(&self, block: u64) -> bool {
        let (page, byte, bit) = Self::place(block);
        self.pages.get(&page).is_some_and(|bits| bits[byte] & bit != 0)
    }

    fn set(&mut self, block: u64) {
        let (page, byte, bit) = Self::place(block);
        let bits = self.pages.entry(page).or_insert_with(|| Box::new([0; BLOCK as usize]));
        if bits[byte] & bit == 0 {
            bits[byte] |= bit;
            self.dirty.insert(page);
        }
    }

    /// What stands of it in the file; what is a hole there has no bit.
    fn read(&mut self, file: &File) -> io::Result<()> {
        let mut from = self.at;
        while let Some((start, end)) = data(file, from, self.at + self.len)? {
            for number in (start - self.at) / BLOCK..(end - self.at).div_ceil(BLOCK) {
                let mut bits: Page = Box::new([0; BLOCK as usize]);
                file.read_exact_at(&mut bits[..], self.at + number * BLOCK)?;
                if bits.iter().any(|byte| *byte != 0) {
                    self.pages.insert(number, bits);
                }
            }
            from = end;
        }
        Ok(())
    }
}

/// The first bytes of a range of a file that are no hole; all of them where the filesystem does not tell.
fn data(file: &File, from: u64, end: u64) -> io::Result<Option<(u64, u64)>> {
    if from >= end {
        return Ok(None);
    }
    let start = match rustix::fs::seek(file, SeekFrom::Data(from)) {
        Ok(start) => start,
        Err(Errno::NXIO) => return Ok(None),
        Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(Some((from, end))),
        Err(error) => return Err(error.into()),
    };
    if start >= end {
        return Ok(None);
    }
    let hole = rustix::fs::seek(file, SeekFrom::Hole(start))?;
    Ok(Some((start, hole.min(end))))
}

/// A device with what was written to it.
struct Layered {
    base: File,
    _held: ReadHold,
    sectors: Sectors,
    number: usize,
    overlay: Arc<Mutex<Overlay>>,
}

/// Opens devices for reading, with one file for what is written.
pub(super) fn open(paths: &[PathBuf], overlay: &Path) -> Result<Vec<Member>, Failure> {
    let failed = |error: io::Error| Failure::failed(format!("{}: {error}", overlay.display()));
    let mut disks = paths.iter().map(|path| Disk::open(path)).collect::<Result<Vec<_>, _>>()?;
    if disks.len() > MOST {
        return Err(Failure::input(format!("an overlay is for at most {MOST} devices")));
    }
    // Opening is enough for some devices to do something.
    if let Ok(there) = overlay.metadata() {
        check(&there, overlay)?;
    }
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(overlay);
    let file = file.map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(std::fs::TryLockError::Error(error)) => return Err(failed(error)),
        Err(std::fs::TryLockError::WouldBlock) => {
            let what = "is the overlay of an array that runs";
            return Err(Failure::Refused(format!("{} {what}", overlay.display())));
        }
    }
    let known = known(&file, overlay)?;
    let made = |_: &Failure| {
        if known.is_none() {
            let _ = std::fs::remove_file(overlay);
        }
    };
    let held = hold(paths, &disks).inspect_err(made)?;
    let failed_below = |error| Failure::failed(format!("an overlay's members: {error}"));
    let head = head(&mut disks).map_err(failed_below)?;
    let sizes: Vec<u64> = disks.iter().map(|disk| disk.sectors().bytes()).collect();
    let maps = match &known {
        None => new_maps(&file, &sizes, &head, overlay).inspect_err(made)?,
        Some(known) => {
            fits(known, &head, paths, overlay)?;
            known_maps(&file, &sizes, overlay)?
        }
    };
    let overlay = Arc::new(Mutex::new(Overlay { file, maps, failed: None }));
    let member = |(number, (disk, held)): (usize, (Disk, ReadHold))| {
        let (sectors, overlay) = (disk.sectors(), Arc::clone(&overlay));
        Member::from(Layered { base: disk.into_file(), _held: held, sectors, number, overlay })
    };
    Ok(disks.into_iter().zip(held).enumerate().map(member).collect())
}

/// That it is a file: a device has a length of 0 to who asks for it, as a new file has.
fn check(there: &Metadata, overlay: &Path) -> Result<(), Failure> {
    if there.is_file() {
        return Ok(());
    }
    let what =
        "is no regular file, and is left as it is: name a file, which is made where it is missing";
    Err(Failure::input(format!("--overlay: {} {what}", overlay.display())))
}

/// The head of an overlay; `None` of a new one.
fn known(file: &File, overlay: &Path) -> Result<Option<Vec<u8>>, Failure> {
    let failed = |error: io::Error| Failure::failed(format!("{}: {error}", overlay.display()));
    let there = file.metadata().map_err(failed)?;
    check(&there, overlay)?;
    if there.len() == 0 {
        return Ok(None);
    }
    let mut known = vec![0; BLOCK as usize];
    let read = file.read_exact_at(&mut known, 0);
    if read.is_err() || !known.starts_with(MAGIC) {
        let what = "is no overlay, and is left as it is: name a file that does not exist";
        return Err(Failure::input(format!("{} {what}", overlay.display())));
    }
    Ok(Some(known))
}

/// Whether an overlay is of these devices as they are now.
fn fits(known: &[u8], head: &[u8], paths: &[PathBuf], overlay: &Path) -> Result<(), Failure> {
    let changed = entries(known)
        .zip(entries(head))
        .position(|(known, now)| known[..WHICH] == now[..WHICH] && known[WHICH..] != now[WHICH..]);
    if let Some(path) = changed.and_then(|changed| paths.get(changed)) {
        let what = "was written to since, beside the overlay, which does not fit it any more: name a new file, or \
                    leave --overlay out";
        return Err(Failure::Refused(format!("{} {what}", path.display())));
    }
    if known != head {
        let what = "holds what was written to other devices, or to these in another order";
        return Err(Failure::input(format!("{} {what}", overlay.display())));
    }
    Ok(())
}

/// Keeps writers away from what lies below an overlay.
fn hold(paths: &[PathBuf], disks: &[Disk]) -> Result<Vec<ReadHold>, Failure> {
    let hold = |(path, disk): (&PathBuf, &Disk)| {
        let what = "what is written there would change the overlay's array";
        ReadHold::take(disk.file(), path)
            .map_err(|error| Failure::Refused(format!("{error}: {what}")))
    };
    paths.iter().zip(disks).map(hold).collect()
}

/// Which devices it is for, and what stands at their ends, where every program that writes to an array writes, too.
fn head(disks: &mut [Disk]) -> io::Result<Vec<u8>> {
    let mut head = vec![0; BLOCK as usize];
    head[..MAGIC.len()].copy_from_slice(MAGIC);
    for (disk, entry) in disks.iter_mut().zip(head[MAGIC.len()..].chunks_exact_mut(ENTRY)) {
        entry[..16].copy_from_slice(&identity(&inspect(disk)));
        entry[16..WHICH].copy_from_slice(&disk.sectors().0.to_le_bytes());
        entry[WHICH..].copy_from_slice(&sum(disk)?.to_le_bytes());
    }
    Ok(head)
}

/// What the head has for each device.
fn entries(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    head[MAGIC.len()..].chunks_exact(ENTRY)
}

/// A sum of both ends of a device.
fn sum(disk: &Disk) -> io::Result<u64> {
    let length = disk.sectors().bytes();
    let len = LOOKED_AT.min(length);
    let mut bytes = vec![0; len as usize];
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    for at in [0, length - len] {
        disk.file().read_exact_at(&mut bytes, at)?;
        for byte in &bytes {
            sum = (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    Ok(sum)
}

/// What tells a device from the others of its array, and of others: nothing where it carries neither a superblock nor a
/// label.
fn identity(found: &Inspected) -> [u8; 16] {
    let label = found.geom.as_ref().and_then(|seen| seen.whole());
    match (found.superblock(), label) {
        (Some(one), _) => one.device,
        (None, Some(one)) => one.device(),
        (None, None) => [0; 16],
    }
}

/// Maps without a bit, and where the last block ends; `None` where no file is so long.
fn maps(sizes: &[u64]) -> Option<(Vec<Map>, u64)> {
    let mut at = BLOCK;
    let mut maps = Vec::new();
    for size in sizes {
        let len = size.div_ceil(BLOCK).div_ceil(8).next_multiple_of(BLOCK);
        maps.push(Map { pages: BTreeMap::new(), at, blocks: 0, len, dirty: BTreeSet::new() });
        at = at.checked_add(len)?;
    }
    for (map, size) in maps.iter_mut().zip(sizes) {
        map.blocks = at;
        at = at.checked_add(size.checked_next_multiple_of(BLOCK)?)?;
    }
    Some((maps, at))
}

/// An overlay as long as all of its devices, which no file is.
fn too_long(overlay: &Path) -> Failure {
    let what = "an overlay is as long as all of its devices together, and no file is that long";
    Failure::failed(format!("{}: {what}", overlay.display()))
}

/// A new file gets its length, then its head: one that has a head and is shorter was cut.
fn new_maps(file: &File, sizes: &[u64], head: &[u8], overlay: &Path) -> Result<Vec<Map>, Failure> {
    let (maps, end) = maps(sizes).ok_or_else(|| too_long(overlay))?;
    let failed = |error: io::Error| Failure::failed(format!("{}: {error}", overlay.display()));
    file.set_len(end).map_err(|error| match error.kind() {
        // What is no length for the system's calls.
        io::ErrorKind::InvalidInput => too_long(overlay),
        io::ErrorKind::FileTooLarge => Failure::failed(format!(
            "{}: {error}: an overlay is as long as all of its devices together, here {end} bytes, of which it takes \
             what is written; name a file on a filesystem that has files of that length, such as XFS",
            overlay.display()
        )),
        _ => failed(error),
    })?;
    file.write_all_at(head, 0).map_err(failed)?;
    Ok(maps)
}

/// The maps of a file that is there. What was cut off of it is nowhere: zeroes would be in its place.
fn known_maps(file: &File, sizes: &[u64], overlay: &Path) -> Result<Vec<Map>, Failure> {
    let failed = |error: io::Error| Failure::failed(format!("{}: {error}", overlay.display()));
    let (mut maps, end) = maps(sizes).ok_or_else(|| too_long(overlay))?;
    let there = file.metadata().map_err(failed)?.len();
    if there < end {
        return Err(Failure::failed(format!(
            "{} was cut short: it ends at byte {there} instead of {end}, and what was written there is lost; give a \
             whole copy of it, or name a new file",
            overlay.display()
        )));
    }
    for map in &mut maps {
        map.read(file).map_err(failed)?;
    }
    Ok(maps)
}

/// What failed.
#[derive(Debug)]
enum Failed {
    /// The device cannot be read where it must be.
    Device,
    /// The file.
    File(io::Error),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

impl Failed {
    /// What it is to who asked: of a write a device with a bad place is still there, without the file nothing is.
    fn outcome(&self, op: IoOp, first_bad: Sector) -> IoOutcome {
        match (self, op) {
            (Self::File(error), _) if error.kind() == io::ErrorKind::StorageFull => {
                IoOutcome::NoSpace
            }
            (Self::Device, _) | (_, IoOp::Read) => IoOutcome::MediaError { first_bad },
            (Self::File(_), _) => IoOutcome::Gone,
        }
    }
}

impl Overlay {
    fn has(&self, number: usize, block: u64) -> bool {
        self.maps[number].has(block)
    }

    /// Has what was written durable, then the bits that say so. A block that has its bit needs none again.
    fn flush(&mut self) -> io::Result<()> {
        self.sync()?;
        if self.maps.iter().all(|map| map.dirty.is_empty()) {
            return Ok(());
        }
        for map in &self.maps {
            for (number, bits) in map.dirty.iter().filter_map(|one| map.pages.get_key_value(one)) {
                self.file.write_all_at(&bits[..], map.at + number * BLOCK)?;
            }
        }
        self.sync()?;
        self.maps.iter_mut().for_each(|map| map.dirty.clear());
        Ok(())
    }

    /// Has the file durable. Once that has failed it fails for every member: what the system could not write it does
    /// not try again, and says so no more.
    fn sync(&mut self) -> io::Result<()> {
        if self.failed.is_none() {
            self.failed = self.file.sync_data().err().map(|error| error.to_string());
        }
        match &self.failed {
            // Also where there was no room: room that comes later brings nothing back.
            Some(why) => Err(io::Error::other(format!("a flush of the overlay failed: {why}"))),
            None => Ok(()),
        }
    }
}

impl Layered {
    fn overlay(&self) -> MutexGuard<'_, Overlay> {
        // What a thread that panicked left is whole: bits are set last.
        self.overlay.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, overlay: &Overlay, at: u64, into: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < into.len() {
            let from = at + done as u64;
            let block = from / BLOCK;
            let len = ((BLOCK - from % BLOCK) as usize).min(into.len() - done);
            let part = &mut into[done..done + len];
            match overlay.has(self.number, block) {
                true => {
                    overlay.file.read_exact_at(part, overlay.maps[self.number].blocks + from)?
                }
                false => self.base.read_exact_at(part, from)?,
            }
            done += len;
        }
        Ok(())
    }

    /// Of a block of which a part is written the rest comes from the device; what is written need not be read there,
    /// and may be just what cannot be.
    fn write(&self, overlay: &mut Overlay, at: u64, from: &[u8]) -> Result<(), Failed> {
        let length = self.sectors.bytes();
        let mut done = 0;
        while done < from.len() {
            let here = at + done as u64;
            let block = here / BLOCK;
            let len = ((BLOCK - here % BLOCK) as usize).min(from.len() - done);
            let blocks = overlay.maps[self.number].blocks;
            let start = block * BLOCK;
            let whole = BLOCK.min(length - start) as usize;
            if !overlay.has(self.number, block) && len < whole {
                let mut bytes = vec![0; whole];
                let (before, rest) = bytes.split_at_mut((here - start) as usize);
                let behind = &mut rest[len..];
                let read = self.base.read_exact_at(before, start);
                let read = read.and_then(|()| self.base.read_exact_at(behind, here + len as u64));
                read.map_err(|_| Failed::Device)?;
                overlay.file.write_all_at(&bytes, blocks + start)?;
            }
            overlay.file.write_all_at(&from[done..done + len], blocks + here)?;
            overlay.maps[self.number].set(block);
            done += len;
        }
        Ok(())
    }

    /// However long the range is: it may be all of the array.
    fn write_zeroes(&self, overlay: &mut Overlay, at: u64, len: u64) -> Result<(), Failed> {
        let (mut from, end) = (at, at + len);
        while from < end {
            // Pieces end with blocks.
            let to = end.min((from + 1).next_multiple_of(ZEROES.len() as u64));
            self.write(overlay, from, &ZEROES[..(to - from) as usize])?;
            from = to;
        }
        Ok(())
    }

    fn carry_out(&self, request: &MemberRequest) -> Result<Option<Vec<u8>>, Failed> {
        let mut overlay = self.overlay();
        let (at, len) = (request.at().bytes(), request.len().bytes() as usize);
        match request.op() {
            IoOp::Read => {
                let mut bytes = vec![0; len];
                self.read(&overlay, at, &mut bytes)?;
                return Ok(Some(bytes));
            }
            IoOp::Write | IoOp::WriteZeroes => {
                if request.flushes_first() {
                    overlay.flush()?;
                }
                match request.op() {
                    IoOp::Write => self.write(&mut overlay, at, request.payload())?,
                    _ => self.write_zeroes(&mut overlay, at, request.len().bytes())?,
                }
                if request.is_durable() {
                    overlay.flush()?;
                }
            }
            IoOp::Flush => overlay.flush()?,
            // What is discarded may be anything, so it may be what it was.
            IoOp::Discard => {}
        }
        Ok(None)
    }
}

impl MemberStore for Layered {
    fn sectors(&self) -> Sectors {
        self.sectors
    }

    fn submit(&mut self, request: MemberRequest) {
        match self.carry_out(&request) {
            Ok(Some(bytes)) => request.complete_read(&bytes),
            Ok(None) => request.complete(IoOutcome::Ok),
            Err(failed) => {
                let outcome = failed.outcome(request.op(), request.at());
                request.complete(outcome);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The system tells of what it could not write once only; the next flush, for whichever member, does not hide it.
    #[test]
    fn a_flush_that_failed_is_not_forgotten() {
        let (mut dirty, _) = maps(&[BLOCK]).unwrap();
        dirty[0].set(0);
        let scratch = std::env::temp_dir().join(format!("raidlab-overlay-{}", std::process::id()));
        let open =
            || OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&scratch);
        let mut overlay = Overlay { file: open().unwrap(), maps: dirty, failed: None };
        // It takes what is written, and cannot make it durable.
        let null = OpenOptions::new().write(true).open("/dev/null").unwrap();
        let file = std::mem::replace(&mut overlay.file, null);
        assert!(overlay.flush().is_err());
        overlay.file = file;
        assert!(overlay.flush().is_err(), "forgotten");
        assert!(!overlay.maps[0].dirty.is_empty());
        overlay.failed = None;
        overlay.flush().unwrap();
        assert!(overlay.maps[0].dirty.is_empty());
        std::fs::remove_file(&scratch).unwrap();
    }

    fn open(path: &Path) -> File {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).open(path).unwrap()
    }

    /// A device of so many sectors which begins with these bytes, and an overlay beside it. No other test has its name.
    fn layered(own: &str, bytes: &[u8], sectors: Sectors) -> (Layered, [PathBuf; 2]) {
        let name = |what: &str| {
            let own = format!("raidlab-overlay-{own}-{what}-{}", std::process::id());
            std::env::temp_dir().join(own)
        };
        let paths = [name("below"), name("beside")];
        let base = open(&paths[0]);
        base.write_all_at(bytes, 0).unwrap();
        let (maps, _) = maps(&[sectors.bytes()]).unwrap();
        let overlay = Overlay { file: open(&paths[1]), maps, failed: None };
        let held = ReadHold::take(&base, &paths[0]).unwrap();
        let overlay = Arc::new(Mutex::new(overlay));
        (Layered { base, _held: held, sectors, number: 0, overlay }, paths)
    }

    /// A flush writes what changed, however long the device is: its map may be gigabytes.
    #[test]
    fn what_a_flush_writes_does_not_depend_on_the_size_of_the_device() {
        let written = |sectors: Sectors| {
            let (layered, paths) = layered("sizes", &[], sectors);
            let mut overlay = layered.overlay();
            overlay.file.set_len(2 * BLOCK).unwrap();
            layered.write(&mut overlay, 0, &[1; BLOCK as usize]).map_err(|_| "written").unwrap();
            overlay.flush().unwrap();
            let length = overlay.file.metadata().unwrap().len();
            let (mut from, mut sum) = (0, 0);
            while let Some((start, end)) = data(&overlay.file, from, length).unwrap() {
                (from, sum) = (end, sum + end - start);
            }
            drop(overlay);
            paths.iter().for_each(|path| std::fs::remove_file(path).unwrap());
            sum
        };
        let small = written(Sectors(8));
        assert!(small <= 64 << 10, "{small} bytes");
        assert_eq!(written(Sectors(1 << 29)), small, "256 GiB, whose map is 8 MiB");
    }

    /// Who is killed finds what was flushed, wherever it lies, and the device's where nothing was.
    #[test]
    fn what_was_flushed_is_found_again() {
        // Blocks of the first page of the map, of the third and of the last.
        let sectors = Sectors(1 << 21);
        let last = sectors.bytes() / BLOCK - 1;
        let (layered, paths) = layered("again", &[], sectors);
        layered.base.set_len(sectors.bytes()).unwrap();
        let mut overlay = layered.overlay();
        let (_, end) = maps(&[sectors.bytes()]).unwrap();
        overlay.file.set_len(end).unwrap();
        let blocks = [0, 9, 2 * 32768 + 5, last];
        for (number, block) in (1..).zip(blocks) {
            let bytes = [number; BLOCK as usize];
            layered.write(&mut overlay, block * BLOCK, &bytes).map_err(|_| "written").unwrap();
            if block != 9 {
                overlay.flush().unwrap();
            }
        }
        let lost = [10, 3 * 32768, 2 * 32768 + 6];
        for block in lost {
            let bytes = [0xff; BLOCK as usize];
            layered.write(&mut overlay, block * BLOCK, &bytes).map_err(|_| "written").unwrap();
        }
        let found = known_maps(&overlay.file, &[sectors.bytes()], &paths[1]).unwrap();
        overlay.maps = found;
        for (number, block) in (1..).zip(blocks).chain(lost.map(|block| (0, block))) {
            let mut read = [0xaa; BLOCK as usize];
            layered.read(&overlay, block * BLOCK, &mut read).unwrap();
            assert!(read == [number; BLOCK as usize], "block {block}");
        }
        drop(overlay);
        paths.iter().for_each(|path| std::fs::remove_file(path).unwrap());
    }

    /// Sizes that no file can have are refused, and nothing is taken of the memory for them.
    #[test]
    fn devices_that_no_overlay_is_long_enough_for_are_refused() {
        let sizes = [7 << 60, 7 << 60];
        let (_, paths) = layered("large", &[], Sectors(8));
        let file = open(&paths[1]);
        let failure = new_maps(&file, &sizes, &[0; 16], &paths[1]).unwrap_err();
        let told = failure.what();
        assert!(told.contains(paths[1].to_str().unwrap()) && told.contains("as long as"), "{told}");
        let failure = new_maps(&file, &[7 << 60; 3], &[0; 16], &paths[1]).unwrap_err();
        let told = failure.what();
        assert!(told.contains("no file is that long"), "{told}");
        paths.iter().for_each(|path| std::fs::remove_file(path).unwrap());
    }

    /// A range of zeroes is as long as it is, whatever it is made of.
    #[test]
    fn zeroes_are_written_from_end_to_end() {
        const SECTORS: u64 = 1024;
        let base: Vec<u8> = (0..SECTORS * 512).map(|at| (at / 512) as u8 | 1).collect();
        for (at, len) in [(1, 1), (0, 128), (3, 128), (127, 2), (5, 900), (0, SECTORS)] {
            let (layered, paths) = layered("zeroes", &base, Sectors(SECTORS));
            let mut overlay = layered.overlay();
            layered.write_zeroes(&mut overlay, at * 512, len * 512).map_err(|_| "written").unwrap();
            let mut expected = base.clone();
            expected[at as usize * 512..][..len as usize * 512].fill(0);
            let mut read = vec![1; expected.len()];
            layered.read(&overlay, 0, &mut read).unwrap();
            assert!(read == expected, "{len} at {at}");
            drop(overlay);
            paths.iter().for_each(|path| std::fs::remove_file(path).unwrap());
        }
    }

    /// Of a block of which a part is written, wherever that lies, the rest is what the device has.
    #[test]
    fn what_is_not_written_of_a_block_comes_from_the_device() {
        let base: Vec<u8> = (0..2 * BLOCK).map(|at| (at / 512) as u8 + 1).collect();
        for (at, len) in [(0, 512), (512, 1024), (3584, 512), (3584, 1024), (0, 4096), (4096, 512)]
        {
            let (layered, paths) = layered("parts", &base, Sectors(16));
            let mut overlay = layered.overlay();
            layered.write(&mut overlay, at, &vec![0xff; len]).map_err(|_| "written").unwrap();
            let mut expected = base.clone();
            expected[at as usize..at as usize + len].fill(0xff);
            let mut read = vec![0; expected.len()];
            layered.read(&overlay, 0, &mut read).unwrap();
            assert!(read == expected, "{len} at {at}");
            drop(overlay);
            paths.iter().for_each(|path| std::fs::remove_file(path).unwrap());
        }
    }

    /// Of a block of which one sector can be read, all others may be written, and that one not alone.
    #[test]
    fn what_is_written_need_not_be_read() {
        // What lies behind the end cannot be read, as what is bad.
        let (layered, paths) = layered("bad", &[7; 512], Sectors(8));
        let mut overlay = layered.overlay();
        let failed = layered.write(&mut overlay, 0, &[1; 512]).unwrap_err();
        let first_bad = Sector(0);
        assert_eq!(failed.outcome(IoOp::Write, first_bad), IoOutcome::MediaError { first_bad });
        assert!(!overlay.has(0, 0));
        layered.write(&mut overlay, 512, &[2; 7 * 512]).map_err(|_| "cannot be written").unwrap();
        let mut read = [0; BLOCK as usize];
        layered.read(&overlay, 0, &mut read).unwrap();
        assert!(read[..512] == [7; 512] && read[512..].iter().all(|byte| *byte == 2));
        drop(overlay);
        paths.iter().for_each(|path| std::fs::remove_file(path).unwrap());
    }
}
