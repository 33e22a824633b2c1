//! Operations on open files, and those that need no file.

use raidlab_core::Nanos;
use raidlab_models::host::{Call, HostDescriptor, Source};
use raidlab_workload::names::{FileId, OpenFile};
use raidlab_workload::{Class, FileDescriptor, Io, Op, OpResult, Root};

use super::{Answered, Measured, StudyError, Target, failed, host_file};

/// Bytes that `copy_file_range` moves at once.
const COPY: u64 = 256 << 10;

/// Where an open file lies.
pub(super) enum Place {
    /// On the filesystem.
    Host(FileId, HostDescriptor),
    /// In memory, from elsewhere; its length.
    Source(u64),
    /// `/dev/null`.
    Null,
}

/// A copy from one open file to another: where it begins, and its bytes.
struct Copied {
    source: Place,
    from_at: u64,
    handle: HostDescriptor,
    at: u64,
    moved: u64,
}

impl Target<'_> {
    /// Begins an operation on a file or its name; gives its result when it took no time.
    pub(super) fn begin_file(
        &mut self,
        index: usize,
        op: Op,
    ) -> Result<Option<OpResult>, StudyError> {
        match op {
            Op::Read { fd, len, times } => {
                let (place, file) = self.place(index, fd)?;
                Ok(self.read(index, &place, Some(fd), (file.position, len, times)))
            }
            Op::Write { fd, len, times, .. } => {
                let (place, file) = self.place(index, fd)?;
                self.write(index, &place, Some(fd), (file.position, len, times))
            }
            Op::At(Io::Read { fd, at, len }) => {
                let (place, _) = self.place(index, fd)?;
                Ok(self.read(index, &place, None, (at, len, 1)))
            }
            Op::At(Io::Write { fd, at, len, .. }) => {
                let (place, _) = self.place(index, fd)?;
                self.write(index, &place, None, (at, len, 1))
            }
            Op::Seek { fd, to } => {
                let (place, _) = self.place(index, fd)?;
                let size = self.size(&place);
                if let Some(file) = self.running[index].fds.get(fd) {
                    file.seek(to, size);
                }
                Ok(Some(OpResult::Done))
            }
            Op::Fsync { fd } => self.fsync(index, fd, false),
            Op::Fdatasync { fd } => self.fsync(index, fd, true),
            Op::SyncAll => {
                let done = Answered::With(OpResult::Done);
                self.begin_script(index, Some(Class::Other), [Call::SyncAll], done);
                Ok(None)
            }
            Op::CopyRange { from, to, len } => self.copy(index, (from, to), len),
            Op::Rewrite { fd, len, times, .. } => self.rewrite(index, fd, (len, times)),
            Op::Copy { from, to, len } => self.copy_in_blocks(index, (from, to), len),
            Op::ReadStdioBytes { fd, len, times } => self.characters(index, fd, (len, times), true),
            Op::WriteStdioBytes { fd, len, times } => {
                self.characters(index, fd, (len, times), false)
            }
            Op::DropCached { fd } => {
                if let Place::Host(id, _) = self.place(index, fd)?.0 {
                    self.host.drop_cached(Some(host_file(id)));
                }
                Ok(Some(OpResult::Done))
            }
            other => self.begin_names(index, other),
        }
    }

    /// What a file descriptor of a process holds.
    pub(super) fn place(
        &mut self,
        index: usize,
        fd: FileDescriptor,
    ) -> Result<(Place, OpenFile), StudyError> {
        let one = &mut self.running[index];
        let Some(file) = one.fds.get(fd).copied() else {
            return Err(failed(index, "an operation", format!("fd {} holds nothing", fd.0)));
        };
        let handle = one.handles.get(usize::from(fd.0)).copied().flatten();
        let place = match (file.id, handle) {
            (Some(id), Some(handle)) => Place::Host(id, handle),
            (Some(id), None) => Place::Source(self.names.status(id).size),
            (None, _) => Place::Null,
        };
        Ok((place, file))
    }

    pub(super) fn size(&self, place: &Place) -> u64 {
        match place {
            Place::Host(id, _) => self.host.size(host_file(*id)),
            Place::Source(size) => *size,
            Place::Null => 0,
        }
    }

    /// Operations in memory alone: calls of the system, and copying.
    fn in_memory(
        &mut self,
        index: usize,
        fd: Option<FileDescriptor>,
        (class, calls, bytes): (Class, u64, u64),
        copied: u64,
    ) -> Option<OpResult> {
        if calls == 0 {
            return Some(OpResult::Moved(0));
        }
        let costs = &self.spec.costs;
        let cost = Nanos(costs.call.0 * calls) + costs.copy(copied);
        let script = self.begin_operation(index, Answered::Moved(fd));
        (script.moved, script.in_memory) = (bytes, Some((class, calls, bytes)));
        self.use_cpu(index, cost.max(Nanos(1)), false);
        None
    }

    fn read(
        &mut self,
        index: usize,
        place: &Place,
        fd: Option<FileDescriptor>,
        (at, len, times): (u64, u64, u64),
    ) -> Option<OpResult> {
        let size = self.size(place);
        let there = len.saturating_mul(times).min(size.saturating_sub(at));
        if there == 0 {
            return Some(OpResult::Moved(0));
        }
        let Place::Host(_, handle) = place else {
            let moves = (Class::Read, there.div_ceil(len), there);
            return self.in_memory(index, fd, moves, there);
        };
        let call = Call::Read { handle: *handle, at, len, times, copies: true };
        self.begin_script(index, None, [call], Answered::Moved(fd));
        None
    }

    fn write(
        &mut self,
        index: usize,
        place: &Place,
        fd: Option<FileDescriptor>,
        (at, len, times): (u64, u64, u64),
    ) -> Result<Option<OpResult>, StudyError> {
        if len == 0 || times == 0 {
            return Ok(Some(OpResult::Moved(0)));
        }
        match place {
            Place::Null => {
                let moves = (Class::Write, times, len * times);
                Ok(self.in_memory(index, fd, moves, 0))
            }
            Place::Source(_) => Err(failed(index, "write", "material from elsewhere is read only")),
            Place::Host(_, handle) => {
                let end = len.checked_mul(times).and_then(|bytes| at.checked_add(bytes));
                if end.is_none() {
                    return Err(failed(index, "write", "File too large"));
                }
                let call = Call::Write { handle: *handle, at, len, times };
                self.begin_script(index, None, [call], Answered::Moved(fd));
                Ok(None)
            }
        }
    }

    fn fsync(
        &mut self,
        index: usize,
        fd: FileDescriptor,
        data_only: bool,
    ) -> Result<Option<OpResult>, StudyError> {
        let done = Answered::With(OpResult::Done);
        let calls = match self.place(index, fd)?.0 {
            Place::Host(id, _) => Some(Call::Sync { file: host_file(id), data_only }),
            _ => None,
        };
        self.begin_script(index, Some(Class::Other), calls, done);
        Ok(None)
    }

    /// Moves the positions of two files over what a copy of `most` bytes moves; `None` when that is nothing.
    fn pass(
        &mut self,
        index: usize,
        what: &str,
        (from, to): (FileDescriptor, FileDescriptor),
        most: u64,
    ) -> Result<Option<Copied>, StudyError> {
        let (source, read) = self.place(index, from)?;
        let (target, written) = self.place(index, to)?;
        let Place::Host(_, handle) = target else {
            return Err(failed(index, what, "the target is no file of the filesystem"));
        };
        let moved = most.min(self.size(&source).saturating_sub(read.position));
        if moved == 0 {
            return Ok(None);
        }
        for (fd, file) in [(from, read), (to, written)] {
            if let Some(open) = self.running[index].fds.get(fd) {
                open.position = file.position + moved;
            }
        }
        let (from_at, at) = (read.position, written.position);
        Ok(Some(Copied { source, from_at, handle, at, moved }))
    }

    /// Copies within the kernel: read without copying to the process, write with.
    fn copy(
        &mut self,
        index: usize,
        fds: (FileDescriptor, FileDescriptor),
        len: u64,
    ) -> Result<Option<OpResult>, StudyError> {
        let Some(copied) = self.pass(index, "copy_file_range", fds, len)? else {
            return Ok(Some(OpResult::Moved(0)));
        };
        let Copied { source, from_at, handle, at, moved } = copied;
        let mut calls = Vec::new();
        let mut done = 0;
        while done < moved {
            let len = COPY.min(moved - done);
            if let Place::Host(_, handle) = source {
                let at = from_at + done;
                calls.push(Call::Read { handle, at, len, times: 1, copies: false });
            }
            calls.push(Call::Write { handle, at: at + done, len, times: 1 });
            done += len;
        }
        let answer = Answered::With(OpResult::Moved(moved));
        self.begin_script_of(index, Class::Write, moved, calls, answer);
        Ok(None)
    }

    /// Copies by reads and writes.
    fn copy_in_blocks(
        &mut self,
        index: usize,
        fds: (FileDescriptor, FileDescriptor),
        len: u64,
    ) -> Result<Option<OpResult>, StudyError> {
        let most = if len == 0 { 0 } else { u64::MAX };
        let Some(copied) = self.pass(index, "copy", fds, most)? else {
            return Ok(Some(OpResult::Moved(0)));
        };
        let Copied { source, from_at, handle, at, moved } = copied;
        let source = match source {
            Place::Host(_, handle) => Source::File(handle),
            _ => Source::Memory { size: from_at + moved },
        };
        let times = moved.div_ceil(len);
        let call = Call::Copy { from: source, from_at, to: handle, at, len, times };
        self.begin_copy(index, Measured::Each, call, Answered::With(OpResult::Moved(moved)));
        Ok(None)
    }

    /// The file in a file descriptor, and from where to where `times` times `len` bytes are, all there when `is_there`.
    fn span(
        &mut self,
        index: usize,
        what: &str,
        (fd, is_there): (FileDescriptor, bool),
        (len, times): (u64, u64),
    ) -> Result<(HostDescriptor, std::ops::Range<u64>), StudyError> {
        let (place, file) = self.place(index, fd)?;
        let (at, size) = (file.position, self.size(&place));
        let Place::Host(_, handle) = place else {
            return Err(failed(index, what, "no file of the filesystem"));
        };
        let end = len.checked_mul(times).and_then(|bytes| at.checked_add(bytes));
        let Some(end) = end.filter(|end| len > 0 && (!is_there || *end <= size)) else {
            let reason = format!("{times} times {len} bytes from {at} on, of {size}");
            return Err(failed(index, what, reason));
        };
        Ok((handle, at..end))
    }

    /// Reads, goes back and writes what was read.
    fn rewrite(
        &mut self,
        index: usize,
        fd: FileDescriptor,
        (len, times): (u64, u64),
    ) -> Result<Option<OpResult>, StudyError> {
        let (handle, span) = self.span(index, "rewrite", (fd, true), (len, times))?;
        let (from, at) = (Source::File(handle), span.start);
        let call = Call::Copy { from, from_at: at, to: handle, at, len, times };
        self.begin_copy(index, Measured::Pairs, call, Answered::Moved(Some(fd)));
        Ok(None)
    }

    /// Reads or writes, and works on every byte.
    fn characters(
        &mut self,
        index: usize,
        fd: FileDescriptor,
        (len, times): (u64, u64),
        is_read: bool,
    ) -> Result<Option<OpResult>, StudyError> {
        let what = if is_read { "getc" } else { "putc" };
        let (handle, span) = self.span(index, what, (fd, is_read), (len, times))?;
        let call = Call::StdioBytes { handle, at: span.start, len, times, is_read };
        self.begin_script(index, None, [call], Answered::Moved(Some(fd)));
        Ok(None)
    }

    /// Starts a read or write that is not waited for.
    pub(super) fn start(&mut self, index: usize, tag: u32, io: Io) -> Result<(), StudyError> {
        let (fd, at, len, class) = match io {
            Io::Read { fd, at, len } => (fd, at, len, Class::Read),
            Io::Write { fd, at, len, .. } => (fd, at, len, Class::Write),
        };
        let (place, _) = self.place(index, fd)?;
        let size = self.size(&place);
        match place {
            Place::Host(_, handle) if class == Class::Write && len > 0 => {
                let call = Call::Write { handle, at, len, times: 1 };
                self.call(index, Some(tag), Measured::Each, call);
            }
            Place::Host(_, handle) if len > 0 && at < size => {
                let call = Call::Read { handle, at, len, times: 1, copies: true };
                self.call(index, Some(tag), Measured::Each, call);
            }
            Place::Source(_) if class == Class::Write => {
                return Err(failed(index, "write", "material from elsewhere is read only"));
            }
            // In memory, or nothing to be moved: done at once.
            Place::Null if class == Class::Write => self.ended_at_once(index, tag, class, len),
            _ => self.ended_at_once(index, tag, class, len.min(size.saturating_sub(at))),
        }
        Ok(())
    }

    fn ended_at_once(&mut self, index: usize, tag: u32, class: Class, bytes: u64) {
        let moved = (u64::from(bytes > 0), bytes);
        self.processes.measured(index, class, moved, Nanos::ZERO);
        self.processes.started_ended(index, tag, bytes);
    }

    /// Whether a root is on the filesystem.
    pub(super) fn is_target(root: Root) -> bool {
        root == Root::Target
    }
}
