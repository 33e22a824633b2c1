//! A member in a file or on a block device, read and written through the engine's `io_uring`, or by
//! `preadv` and `pwritev` on threads.
//!
//! Fault model: the device behind the file may refuse any call, do part of it, or vanish. Safe because
//! every outcome goes to the core as data, and no buffer is freed before its call has returned (the
//! member's threads are joined first, and the ring drained). Tests: `tests/members.rs`.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use raidlab_core::contract::IoOutcome;
use raidlab_core::{SECTOR_BYTES, Sector, Sectors};
use rustix::fs::{OFlags, SeekFrom, fcntl_getfl, fcntl_setfl, seek};
use rustix::io::{Errno, pread};

use super::reach::Reach;
use super::room::Room;
use super::system::Disk;
use super::uring::{self, Ring};
use super::worker::{Finished, Hub, Ticket, Work, Workers, carry_out};
use super::{Submission, read_of, zeroing};
use crate::buffers::{ALIGNMENT, Area, Piece};
use crate::device::Hold;
use crate::error::{EngineError, EngineErrorKind};

/// Whether the kernel's page cache takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CacheState {
    /// No: reads and writes go to the device.
    Direct,
    /// Yes: what was read or written before may come from memory.
    Buffered,
}

/// Who carries out the I/O of a member file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FileIo {
    /// `io_uring` for direct I/O where the kernel has it, threads otherwise: through the page cache the
    /// kernel hands an I/O to threads of its own, which costs more than ours.
    #[default]
    Auto,
    /// The kernel's `io_uring`, one for all members of an engine.
    Uring,
    /// Threads with system calls that wait.
    Threads,
}

/// How to use a member file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileOptions {
    /// Where the member's data start in the file, in sectors.
    pub data_offset: Sectors,
    /// How many sectors are data; what is left of the file when `None`.
    pub sectors: Option<Sectors>,
    /// Past the page cache where the filesystem has that.
    pub direct: bool,
    /// The most I/Os under way at once, each on a thread, where threads carry them out.
    pub threads: usize,
    /// Who carries them out.
    pub engine: FileIo,
    /// It is opened for reading only: whatever goes wrong, no byte of it changes. Nothing is claimed of it; a
    /// [`ReadHold`](crate::ReadHold) keeps writers away.
    pub read_only: bool,
}

impl Default for FileOptions {
    /// The whole file, direct where possible, by `io_uring` where that helps, 8 threads otherwise.
    fn default() -> Self {
        let (data_offset, engine) = (Sectors::ZERO, FileIo::Auto);
        Self { data_offset, sectors: None, direct: true, threads: 8, engine, read_only: false }
    }
}

/// A member in a file or on a block device.
#[derive(Debug)]
pub struct FileMember {
    disk: Arc<Disk>,
    path: PathBuf,
    threads: usize,
    logical_block: u32,
    cache: CacheState,
    /// What a sparse file has room for.
    room: Room,
    /// An I/O found none.
    full: bool,
    /// Whether zeroes cost no writing, once somebody has asked.
    zeroes: OnceLock<bool>,
    /// The engine's ring takes its I/Os.
    in_ring: bool,
    /// Its place among the ring's registered files.
    slot: Option<u32>,
    batch: Vec<Work>,
    /// Dropping them waits for the work under way.
    workers: Option<Workers>,
}

const OPEN: &str = "open a member";

impl FileMember {
    /// Opens a member for reading and writing, and claims it: as long as this lives, no other member, engine
    /// or process gets the bytes it uses, by whatever name. With [`FileOptions::read_only`] neither.
    ///
    /// # Errors
    /// [`EngineErrorKind::Busy`] when something else uses any of these bytes. When it cannot be opened, is
    /// neither a file nor a block device, or is too short for the data offset and size asked for;
    /// [`EngineErrorKind::NotSupported`] for [`FileIo::Uring`] where the kernel refuses that.
    pub fn open(path: &Path, options: FileOptions) -> Result<Self, EngineError> {
        let file = OpenOptions::new().read(true).write(!options.read_only).open(path);
        Self::new(file.map_err(|error| EngineError::io(OPEN, path, error))?, path, options)
    }

    /// Uses a file that is already open for reading and writing, and claims it as [`open`](Self::open) does;
    /// `path` is for messages.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn new(file: File, path: &Path, options: FileOptions) -> Result<Self, EngineError> {
        let unusable =
            |reason: String| EngineError::new(EngineErrorKind::Member, OPEN, reason).at_path(path);
        let metadata = file.metadata().map_err(|error| EngineError::io(OPEN, path, error))?;
        let kind = metadata.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            return Err(unusable("a member must be a regular file or a block device".into()));
        }
        let length = length(&file).map_err(|error| EngineError::io(OPEN, path, error))?;
        let room = (length / SECTOR_BYTES).saturating_sub(options.data_offset.0);
        let sectors = options.sectors.unwrap_or(Sectors(room));
        if sectors == Sectors::ZERO || sectors.0 > room {
            let needed = options.data_offset.bytes() + sectors.bytes().max(SECTOR_BYTES);
            return Err(unusable(format!("is {length} bytes long, must be at least {needed}")));
        }
        let start = options.data_offset.bytes();
        let (file, hold) = match options.read_only {
            true => (file, Hold::default()),
            false => Hold::take(file, path, start..start + sectors.bytes())?,
        };
        let (mut logical_block, mut cache) = (1, CacheState::Buffered);
        if options.direct
            && let Some(block) = probe_direct(&file, options.data_offset, sectors)
        {
            (logical_block, cache) = (block, CacheState::Direct);
        }
        let in_ring = match options.engine {
            FileIo::Auto => cache == CacheState::Direct && uring::unusable().is_none(),
            FileIo::Uring => true,
            FileIo::Threads => false,
        };
        if let (FileIo::Uring, Some(why)) = (options.engine, uring::unusable()) {
            let reason = format!("{why}; choose `Auto` or `Threads`");
            let error = EngineError::new(EngineErrorKind::NotSupported, OPEN, reason);
            return Err(error.at_path(path));
        }
        let alignment = match cache {
            CacheState::Direct => logical_block as usize * SECTOR_BYTES as usize,
            CacheState::Buffered => 1,
        };
        let room = match options.read_only {
            true => Ok(Room::default()),
            false => Room::of(&file, sectors),
        };
        let room = room.map_err(|e| EngineError::io(OPEN, path, e))?;
        let disk = Disk {
            file,
            data_offset: options.data_offset,
            sectors,
            alignment,
            reach: Reach::of(kind.is_file(), options.data_offset + sectors),
            _hold: hold,
            #[cfg(test)]
            gate: Arc::default(),
        };
        Ok(Self {
            disk: Arc::new(disk),
            path: path.to_path_buf(),
            threads: options.threads,
            logical_block,
            cache,
            room,
            full: false,
            zeroes: OnceLock::new(),
            in_ring,
            slot: None,
            batch: Vec::new(),
            workers: None,
        })
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Usable sectors.
    pub fn sectors(&self) -> Sectors {
        self.disk.sectors
    }

    /// Where its data start in the file, in sectors.
    pub fn data_offset(&self) -> Sectors {
        self.disk.data_offset
    }

    /// The smallest unit of an I/O, in sectors: 1 or 8.
    pub fn logical_block(&self) -> u32 {
        self.logical_block
    }

    /// Whether the page cache takes part.
    pub fn cache_state(&self) -> CacheState {
        self.cache
    }

    /// The descriptor of its file.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.disk.file.as_raw_fd()
    }

    /// Who carries out its I/O: [`FileIo::Uring`] or [`FileIo::Threads`].
    ///
    /// When an engine can have no ring after all (no memory or descriptors left), that is threads.
    pub fn file_io(&self) -> FileIo {
        if self.in_ring { FileIo::Uring } else { FileIo::Threads }
    }

    /// Whether a write may find the filesystem full.
    #[inline]
    pub(crate) fn may_need_room(&self) -> bool {
        self.room.is_missing()
    }

    /// Has the filesystem keep room for a range.
    pub(crate) fn reserve(&mut self, at: Sector, len: Sectors) -> Result<(), EngineError> {
        const RESERVE: &str = "make room for a write to a member";
        let Disk { file, data_offset, .. } = &*self.disk;
        self.room.reserve(file, *data_offset, (at, len)).map_err(|error| {
            let reason = format!("its filesystem has none ({error}); nothing was written");
            EngineError::new(EngineErrorKind::NoRoom, RESERVE, reason).at_path(&self.path)
        })
    }

    /// Whether a range is known to have room.
    pub(crate) fn has_room(&self, at: Sector, len: Sectors) -> bool {
        self.room.has(at, len)
    }

    /// Whether a range of the file was never written, so that it reads as zeroes.
    pub(crate) fn is_hole(&self, at: Sector, len: Sectors) -> bool {
        self.hole_run(at, len) == (true, len)
    }

    /// Whether the sectors from `at` on are a hole, and how many of them, at most `most`, have this answer.
    pub(crate) fn hole_run(&self, at: Sector, most: Sectors) -> (bool, Sectors) {
        let start = self.disk.file_offset(at);
        let end = start + most.bytes();
        // Behind the end of a file that was cut there is no hole.
        if !length(&self.disk.file).is_ok_and(|length| end <= length) {
            return (false, most);
        }
        let file = &self.disk.file;
        match seek(file, SeekFrom::Data(start)) {
            Err(Errno::NXIO) => (true, most),
            Err(_) => (false, most),
            Ok(data) if data >= end => (true, most),
            Ok(data) if data - start >= SECTOR_BYTES => {
                (true, Sectors((data - start) / SECTOR_BYTES))
            }
            Ok(_) => {
                let hole = seek(file, SeekFrom::Hole(start)).unwrap_or(end).min(end);
                (false, Sectors((hole - start).div_ceil(SECTOR_BYTES).max(1)))
            }
        }
    }

    /// Whether zeroing and discarding cost no writing and leave zeroes.
    pub(crate) fn zeroes_cheaply(&self) -> bool {
        *self.zeroes.get_or_init(|| zeroing::is_cheap(&self.disk.file, &self.path))
    }

    /// A range goes back to the filesystem.
    pub(crate) fn give_back(&mut self, at: Sector, len: Sectors) {
        self.room.give_back(at, len);
    }

    /// An I/O found the filesystem full.
    pub(crate) fn note_full(&mut self) {
        self.full = true;
    }

    /// Whether an I/O found the filesystem full.
    pub(crate) fn was_full(&self) -> bool {
        self.full
    }

    /// Held for writing, it keeps every system call from coming back.
    #[cfg(test)]
    pub(crate) fn gate(&self) -> Arc<std::sync::RwLock<()>> {
        self.disk.gate.clone()
    }

    /// Where answers go from now on; before the first submission. Makes the engine's ring if it is the
    /// first to need one. Memory for `ios` I/Os at once is taken here.
    pub(crate) fn connect(&mut self, hub: &Arc<Hub>, ring: &mut Option<Ring>, ios: usize) {
        self.workers = Some(Workers::new(self.disk.clone(), hub.clone(), self.threads, ios));
        self.batch.reserve(ios);
        if self.in_ring && ring.is_none() {
            *ring = Ring::new(hub, ios).ok();
        }
        self.in_ring &= ring.is_some();
        self.slot = ring.as_mut().filter(|_| self.in_ring).and_then(|one| one.register(&self.disk));
    }

    /// Leaves the engine's ring; its I/Os there must have been answered, or be given up.
    pub(crate) fn disconnect(&mut self, ring: &mut Option<Ring>) {
        if let (Some(slot), Some(ring)) = (self.slot.take(), ring) {
            ring.unregister(slot);
        }
    }

    /// Whether the ring has an I/O of this member.
    pub(crate) fn is_in(&self, ring: &Ring) -> bool {
        ring.is_using(&self.disk)
    }

    /// Queues an I/O for [`hand_over`](Self::hand_over).
    pub(crate) fn queue(&mut self, work: Work) {
        self.batch.push(work);
    }

    /// Lists the queued I/Os in the ring, and gives those that do not suit it to the member's threads.
    pub(crate) fn hand_over(&mut self, ring: &mut Option<Ring>) -> io::Result<()> {
        let mut listed = Ok(());
        if self.batch.is_empty() {
            return listed;
        }
        // A file that was cut short the threads answer for.
        let is_short = self.disk.is_short();
        if let Some(ring) = ring.as_mut().filter(|_| self.in_ring && !is_short) {
            let suited = self.batch.extract_if(.., |work| uring::suits(work, &self.disk));
            for work in suited {
                listed = listed.and(ring.push(work, &self.disk, self.slot));
            }
        }
        match &mut self.workers {
            Some(workers) if !self.batch.is_empty() => workers.hand_over(&mut self.batch),
            _ => {}
        }
        listed
    }

    /// Takes back the I/O queued last, to be done here.
    pub(crate) fn take_last(&mut self) -> Option<Work> {
        self.batch.pop()
    }

    /// Does a piece of work on the calling thread.
    pub(crate) fn do_here(&self, work: Work) -> Finished {
        // Of what it says all I/Os take note, reads too, which do not look by themselves.
        self.disk.is_short();
        carry_out(&self.disk, work)
    }

    /// Takes an I/O back that no thread has begun, and says whether it was handed over; `None` when a
    /// thread has.
    pub(crate) fn cancel(&mut self, ticket: Ticket) -> Option<(Work, bool)> {
        if let Some(position) = self.batch.iter().position(|work| work.ticket == ticket) {
            return Some((self.batch.remove(position), false));
        }
        let workers = self.workers.as_mut()?;
        workers.cancel(ticket).map(|work| (work, true))
    }

    /// Nobody waits for its threads any more; only for members whose I/Os all have memory of their own.
    pub(crate) fn detach(&mut self) {
        if let Some(workers) = &mut self.workers {
            workers.detach();
        }
    }

    /// Writes one piece on the calling thread.
    pub(crate) fn write_now(&self, submission: &Submission, piece: Piece) -> IoOutcome {
        // SAFETY: the caller's piece is valid and in nobody else's use.
        unsafe { self.disk.carry_out(submission, &mut [piece]) }
    }

    /// Fills with zeroes on the calling thread.
    pub(crate) fn zero_now(&self, submission: &Submission) -> IoOutcome {
        // SAFETY: there is no payload.
        unsafe { self.disk.carry_out(submission, &mut []) }
    }

    /// Reads on the calling thread.
    pub(crate) fn read_now(&self, at: Sector, into: &mut [u8]) -> Result<IoOutcome, EngineError> {
        let submission = read_of(at, into.len());
        let block = (u64::from(self.logical_block) * SECTOR_BYTES) as usize;
        let aligned = at.0.is_multiple_of(u64::from(self.logical_block));
        if !aligned || !into.len().is_multiple_of(block) {
            let reason = format!("reads start and end on multiples of {block} bytes");
            let error = EngineError::new(EngineErrorKind::InvalidRequest, "read a member", reason);
            return Err(error.at_path(&self.path).at_offset(at.bytes()));
        }
        let piece = Piece { start: into.as_mut_ptr(), len: into.len() };
        // SAFETY: the piece is exactly the slice, which is ours alone.
        Ok(unsafe { self.disk.carry_out(&submission, &mut [piece]) })
    }
}

/// The length of a file or block device in bytes.
fn length(file: &File) -> io::Result<u64> {
    // Seeking moves only the position, which nothing here uses.
    Ok(seek(file, SeekFrom::End(0))?)
}

/// Switches direct I/O on if the filesystem has it, and finds the unit it works in.
///
/// Takes the kernel's word (`STATX_DIOALIGN`, Linux 6.1) for what cannot be, then tries a read of 512
/// bytes at an odd sector, then one of 4,096 bytes. A data offset that is not on a multiple of the unit
/// leaves direct I/O off: every I/O would be misaligned.
fn probe_direct(file: &File, data_offset: Sectors, sectors: Sectors) -> Option<u32> {
    let told = told_alignment(file);
    if told == Some(0) {
        return None;
    }
    let flags = fcntl_getfl(file).ok()?;
    fcntl_setfl(file, flags | OFlags::DIRECT).ok()?;
    let works = |block: u64| {
        let mut area = Area::new(ALIGNMENT).ok()?;
        let base = data_offset.0;
        let from = if block == 1 && sectors.0 > 1 { base | 1 } else { base };
        let (offset, len) = (from * SECTOR_BYTES, (block * SECTOR_BYTES) as usize);
        let read = pread(file, &mut area.bytes_mut()[..len], offset);
        (read == Ok(len) && base.is_multiple_of(block)).then_some(block as u32)
    };
    let small =
        if told.is_none_or(|bytes| u64::from(bytes) <= SECTOR_BYTES) { works(1) } else { None };
    let block = small.or_else(|| if sectors.0 >= 8 { works(8) } else { None });
    if block.is_none() {
        // Direct I/O that does not work is an error of each I/O then.
        let _ = fcntl_setfl(file, flags);
    }
    block
}

/// What offsets and memory of direct I/O must be multiples of, in bytes, as the kernel tells; zero
/// without direct I/O.
fn told_alignment(file: &File) -> Option<u32> {
    // SAFETY: all zeroes is a valid value of this plain structure.
    let mut told: libc::statx = unsafe { std::mem::zeroed() };
    let flags = libc::AT_EMPTY_PATH;
    // SAFETY: the descriptor is open, the path an empty string, and the structure ours.
    let status = unsafe {
        libc::statx(file.as_raw_fd(), c"".as_ptr(), flags, libc::STATX_DIOALIGN, &raw mut told)
    };
    let known = status == 0 && told.stx_mask & libc::STATX_DIOALIGN != 0;
    known.then(|| told.stx_dio_offset_align.max(told.stx_dio_mem_align))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    /// What was written shows wherever it lies in a range; what is behind it and before it stays a hole.
    #[test]
    fn a_range_is_a_hole_if_nothing_in_it_was_written() {
        let path = std::env::temp_dir().join(format!("raidlab-engine-hole-{}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.set_len(1 << 20).unwrap();
        file.write_all_at(&[7; 4096], 512 << 10).unwrap();
        let sectors = Some(Sectors(2048));
        let member =
            FileMember::new(file, &path, FileOptions { sectors, ..FileOptions::default() })
                .unwrap();
        let is_hole = |from: u64, to: u64| member.is_hole(Sector(from), Sectors(to - from));
        if !is_hole(0, 8) {
            println!("skipped: this filesystem tells of no holes");
            return;
        }
        assert!(is_hole(0, 1024) && is_hole(1032, 2048));
        for (from, to) in
            [(0, 2048), (0, 1025), (1024, 1025), (1031, 2048), (1000, 1028), (512, 1536)]
        {
            assert!(!is_hole(from, to), "{from}..{to}");
        }
        assert!(!is_hole(2040, 2056), "behind the end there is no hole");
    }
}
