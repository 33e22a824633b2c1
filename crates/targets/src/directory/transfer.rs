//! Operations on open files: moving bytes, positions, durability.

use raidlab_engine::EngineError;
use raidlab_workload::{Class, Content, FileDescriptor, FilePath, Io, Op, OpResult, Seek};
use rustix::fs::SeekFrom;

use super::system;
use super::worker::{Worker, invalid, length};
use super::worker_pool::Halt;

const READ: &str = "read";
const WRITE: &str = "write";
const COPY: &str = "copy a range";

/// A copy by reading and writing goes in steps of this many bytes.
const STEP: usize = 256 << 10;

/// What may be started or done at a place.
pub(super) fn check_content(content: Content) -> Result<(), EngineError> {
    match content {
        Content::Zeroes | Content::Seeded { .. } => Ok(()),
        Content::Buffer { .. } | Content::Stamp { .. } => {
            Err(invalid("a write at a place can only be of zeroes or of seeded bytes"))
        }
    }
}

impl Worker<'_> {
    /// Reads at the position. An answer shorter than `len` is the end of the file, as it is on regular
    /// files and block devices; nothing at all is not counted as a read.
    pub(super) fn read(
        &mut self,
        fd: FileDescriptor,
        len: u64,
        times: u64,
    ) -> Result<OpResult, Halt> {
        let len = length(len)?;
        let file = self.descriptor(fd)?;
        self.blocks.reserve(len, None)?;
        let mut moved = 0;
        let mut failure = None;
        for _ in 0..times {
            self.run.pool.check()?;
            match system::read(&file, self.blocks.buffer(len)) {
                Ok(0) => {
                    self.tick();
                    break;
                }
                Ok(got) => {
                    self.measured(Class::Read, got as u64);
                    moved += got as u64;
                    if got < len {
                        break;
                    }
                }
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        let open = self.fds.get(fd)?;
        open.position += moved;
        let at = open.position;
        match failure {
            Some(error) => Err(self.failed(READ, fd, error).at_offset(at).into()),
            None => Ok(OpResult::Moved(moved)),
        }
    }

    pub(super) fn write(
        &mut self,
        fd: FileDescriptor,
        len: u64,
        content: Content,
        times: u64,
    ) -> Result<OpResult, Halt> {
        let len = length(len)?;
        let open = self.fds.get(fd)?;
        let (file, start) = (open.descriptor(), open.position);
        self.blocks.reserve(len, Some(content))?;
        let mut at = start;
        for turn in 0..times {
            self.run.pool.check()?;
            let bytes = self.blocks.content(content, len, at, turn);
            let written = system::in_full(bytes, at, |rest, _| system::write(&file, rest));
            if let Err(error) = written {
                return Err(self.failed(WRITE, fd, error).at_offset(at).into());
            }
            at += len as u64;
            self.measured(Class::Write, len as u64);
        }
        self.fds.get(fd)?.position = at;
        Ok(OpResult::Moved(at - start))
    }

    pub(super) fn at(&mut self, io: Io) -> Result<OpResult, Halt> {
        self.run.pool.check()?;
        let (class, moved) = match io {
            Io::Read { fd, at, len } => {
                let len = length(len)?;
                let file = self.descriptor(fd)?;
                self.blocks.reserve(len, None)?;
                let read = system::read_at(&file, self.blocks.buffer(len), at);
                let failed = |error| self.failed(READ, fd, error).at_offset(at);
                (Class::Read, read.map_err(failed)?)
            }
            Io::Write { fd, at, len, content } => {
                let len = length(len)?;
                let file = self.descriptor(fd)?;
                check_content(content)?;
                self.blocks.reserve(len, Some(content))?;
                let bytes = self.blocks.content(content, len, at, 0);
                let write = |rest: &[u8], at| system::write_at(&file, rest, at);
                let written = system::in_full(bytes, at, write);
                written.map_err(|error| self.failed(WRITE, fd, error).at_offset(at))?;
                (Class::Write, len)
            }
        };
        self.measured(class, moved as u64);
        Ok(OpResult::Moved(moved as u64))
    }

    /// What the system copies by itself; where it cannot, by reading and writing, which is said.
    pub(super) fn copy_range(
        &mut self,
        from: FileDescriptor,
        to: FileDescriptor,
        len: u64,
    ) -> Result<OpResult, Halt> {
        self.run.pool.check()?;
        // More than a call can move may be asked for, and cp does: the system does what it can.
        let wanted = usize::try_from(len).unwrap_or(usize::MAX);
        let (source, target) = (self.descriptor(from)?, self.descriptor(to)?);
        let moved = match system::copy_range(source, target, wanted) {
            Ok(moved) => moved as u64,
            Err(error) if by_hand(&error) => {
                self.run.pool.warn(format!(
                    "the kernel does not copy ranges between files here ({error}): they were copied by \
                     reading and writing"
                ));
                self.copy_by_hand(from, to, length(len.min(0x7fff_f000))?)?
            }
            Err(error) => return Err(self.failed(COPY, to, error).into()),
        };
        self.fds.get(from)?.position += moved;
        self.fds.get(to)?.position += moved;
        self.measured(Class::Write, moved);
        Ok(OpResult::Moved(moved))
    }

    fn copy_by_hand(
        &mut self,
        from: FileDescriptor,
        to: FileDescriptor,
        len: usize,
    ) -> Result<u64, Halt> {
        let (source, target) = (self.descriptor(from)?, self.descriptor(to)?);
        let step = len.min(STEP);
        self.blocks.reserve_made(step)?;
        let mut moved = 0;
        while moved < len {
            self.run.pool.check()?;
            let bytes = self.blocks.made(step.min(len - moved));
            let got = match system::read(&source, bytes) {
                Ok(0) => break,
                Ok(got) => got,
                Err(error) => return Err(self.failed(READ, from, error).into()),
            };
            let bytes = &self.blocks.made(step)[..got];
            let written =
                system::in_full(bytes, moved as u64, |rest, _| system::write(&target, rest));
            written.map_err(|error| self.failed(WRITE, to, error))?;
            moved += got;
        }
        Ok(moved as u64)
    }

    /// Operations on open files that move no bytes.
    pub(super) fn file_op(&mut self, op: Op) -> Result<OpResult, Halt> {
        Ok(match op {
            Op::Open { fd, path, flags } => {
                self.fds.check_free(fd)?;
                let file = self.run.roots.open_file(&path, flags, &mut self.names[0])?;
                self.fds.put(fd, path, file);
                self.unmeasured()
            }
            Op::Close { fd } => {
                let (path, closed): (FilePath, _) = self.fds.close(fd)?;
                closed.map_err(|error| self.failed_name("close", &path, error))?;
                self.unmeasured()
            }
            Op::Seek { fd, to } => {
                self.seek(fd, to)?;
                self.unmeasured()
            }
            Op::Fsync { fd } => {
                let done = system::fsync(self.descriptor(fd)?);
                done.map_err(|error| self.failed("fsync", fd, error))?;
                self.measured(Class::Other, 0);
                OpResult::Done
            }
            Op::Fdatasync { fd } => {
                let done = system::fdatasync(self.descriptor(fd)?);
                done.map_err(|error| self.failed("fdatasync", fd, error))?;
                self.measured(Class::Other, 0);
                OpResult::Done
            }
            Op::SyncAll => {
                system::sync_all();
                self.measured(Class::Other, 0);
                OpResult::Done
            }
            Op::Truncate { fd, len } => {
                let done = system::truncate(self.descriptor(fd)?, len);
                done.map_err(|error| self.failed("truncate", fd, error))?;
                self.unmeasured()
            }
            Op::Allocate { fd, len } => {
                let done = system::allocate(self.descriptor(fd)?, len);
                done.map_err(|error| self.failed("reserve room for", fd, error))?;
                self.unmeasured()
            }
            Op::DropCached { fd } => {
                let done = system::drop_cached(self.descriptor(fd)?);
                done.map_err(|error| self.failed("drop what memory holds of", fd, error))?;
                self.unmeasured()
            }
            other => return Err(invalid(format!("{other:?} is none on a file")).into()),
        })
    }

    fn seek(&mut self, fd: FileDescriptor, to: Seek) -> Result<(), EngineError> {
        let far = |_| invalid("a position beyond what a file can have");
        let to = match to {
            Seek::Start(at) => SeekFrom::Start(i64::try_from(at).map_err(far)?.cast_unsigned()),
            Seek::Current(by) => SeekFrom::Current(by),
            Seek::End => SeekFrom::End(0),
        };
        let position = system::seek(self.descriptor(fd)?, to);
        let position = position.map_err(|error| self.failed("seek", fd, error))?;
        self.fds.get(fd)?.position = position;
        Ok(())
    }
}

/// Whether a range must be copied by reading and writing: other filesystems, old kernels, special files.
fn by_hand(error: &std::io::Error) -> bool {
    let unable = [libc::EXDEV, libc::ENOSYS, libc::EOPNOTSUPP, libc::EINVAL];
    error.raw_os_error().is_some_and(|number| unable.contains(&number))
}
