//! The operations that a process asks a target for, one after the other.
//!
//! Most are calls on files ([`Op::Open`], [`Op::Read`], [`Op::Unlink`], ...). The others control the process
//! itself: reads and writes that it does not wait for ([`Op::Start`], [`Op::Finish`]), barriers, queues of
//! *tickets* (numbers that processes hand to each other, such as the position to seek to next), and marks where
//! measuring starts and ends. Positions and lengths are in bytes.

use std::fmt;
use std::sync::Arc;

use raidlab_core::Nanos;

/// A process's number for an open file, chosen by the process; below [`MOST_SLOTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileDescriptor(pub u16);

/// The most files a process has open at once.
pub const MOST_SLOTS: usize = 1024;

/// Where a path starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Root {
    /// The directory under test, or the raw device: what is measured.
    Target,
    /// Files from outside the target, such as an archive to be unpacked; see [`SourceFile`](crate::SourceFile).
    Source,
    /// `/dev/null`, which accepts every write at once. The text is empty.
    Null,
}

/// The name of a file: a root and a relative path with `/` between its parts, never `..` or absolute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilePath {
    /// The root.
    pub root: Root,
    /// The relative path; empty for the root itself.
    pub text: Arc<str>,
}

impl FilePath {
    /// A path below the directory under test.
    pub fn target(text: impl Into<Arc<str>>) -> Self {
        Self { root: Root::Target, text: text.into() }
    }

    /// The path of a file from outside the target.
    pub fn source(text: impl Into<Arc<str>>) -> Self {
        Self { root: Root::Source, text: text.into() }
    }

    /// `/dev/null`.
    pub fn null() -> Self {
        Self { root: Root::Null, text: "".into() }
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.root {
            Root::Target => write!(f, "{}", self.text),
            Root::Source => write!(f, "source:{}", self.text),
            Root::Null => f.write_str("/dev/null"),
        }
    }
}

/// How a file is opened: the flags of `open(2)` that matter here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OpenFlags {
    /// For reading.
    pub read: bool,
    /// For writing.
    pub write: bool,
    /// Created if it does not exist (`O_CREAT`), with mode 0644.
    pub create: bool,
    /// An error if it exists (`O_EXCL`).
    pub exclusive: bool,
    /// Emptied (`O_TRUNC`).
    pub truncate: bool,
    /// Bypasses the page cache (`O_DIRECT`).
    pub direct: bool,
    /// Every write is durable when it is answered (`O_SYNC`).
    pub sync: bool,
}

impl OpenFlags {
    /// For reading.
    pub const READ: Self = Self { read: true, ..Self::NOTHING };
    /// For writing; created or emptied.
    pub const WRITE: Self = Self { write: true, create: true, truncate: true, ..Self::NOTHING };
    /// For reading and writing an existing file.
    pub const BOTH: Self = Self { read: true, write: true, ..Self::NOTHING };
    const NOTHING: Self = Self {
        read: false,
        write: false,
        create: false,
        exclusive: false,
        truncate: false,
        direct: false,
        sync: false,
    };
}

/// The data of a write. Each process has one buffer, at first all zeroes, as long as its longest operation so far;
/// reads fill it from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    /// Zeroes; the buffer stays as it is.
    Zeroes,
    /// The buffer from this byte on, that is, what was read last.
    Buffer {
        /// The first byte of the buffer that is written.
        from: u32,
    },
    /// The buffer, after adding one to its byte `number` (modulo the length of the write); with `times`, the number
    /// increases by one each time. This is what bonnie++ writes.
    Stamp {
        /// The number.
        number: u64,
    },
    /// Bytes that are a function of `seed` and the position in the file: [`crate::content::fill`].
    Seeded {
        /// The seed.
        seed: u64,
    },
}

/// A read or a write at a given position, for operations that overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Io {
    /// Read.
    Read {
        /// The file.
        fd: FileDescriptor,
        /// The first byte.
        at: u64,
        /// How many bytes.
        len: u64,
    },
    /// Write.
    Write {
        /// The file.
        fd: FileDescriptor,
        /// The first byte.
        at: u64,
        /// How many bytes.
        len: u64,
        /// The data; not [`Content::Buffer`] or [`Content::Stamp`].
        content: Content,
    },
}

impl Io {
    /// The file.
    pub const fn fd(self) -> FileDescriptor {
        match self {
            Self::Read { fd, .. } | Self::Write { fd, .. } => fd,
        }
    }
}

/// Where a seek goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Seek {
    /// To this many bytes from the start.
    Start(u64),
    /// By this many bytes from the current position.
    Current(i64),
    /// To the end.
    End,
}

/// An attribute of a file that can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Attribute {
    /// Times (`utimensat`).
    Times,
    /// Mode (`fchmod`, `fchmodat`).
    Mode,
    /// Owner and group (`fchown`, `fchownat`), set to those the file has already.
    Owner,
}

/// The object whose attribute is set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AttributeTarget {
    /// An open file.
    Descriptor(FileDescriptor),
    /// A name.
    Path(FilePath),
}

/// The classes in which operations are counted and timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// All other operations that are to be measured.
    Other,
}

/// Where measuring starts and ends. A mark takes no time; outside a phase nothing is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mark {
    /// A phase begins for this process, by its index in the plan. Phases of a process do not overlap.
    Begin(u16),
    /// It ends.
    End(u16),
    /// The operations up to [`Mark::GroupEnd`] count as one operation with one latency.
    GroupBegin,
    /// The group ends and is counted as an operation of this class. The bytes that it read count as read, those that it
    /// wrote as written, whatever the class.
    GroupEnd(Class),
}

/// An operation. The first one that fails ends the run with an error that names it; no failure is tolerated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Opens a file under a file descriptor that is not in use.
    Open {
        /// The file descriptor.
        fd: FileDescriptor,
        /// The file.
        path: FilePath,
        /// The flags.
        flags: OpenFlags,
    },
    /// Closes a file descriptor.
    Close {
        /// The file descriptor.
        fd: FileDescriptor,
    },
    /// Reads at the file's position and advances it, `times` times; ends early at the end of the file. Answered by
    /// [`OpResult::Moved`].
    Read {
        /// The file.
        fd: FileDescriptor,
        /// Bytes of each read.
        len: u64,
        /// How often, at least 1.
        times: u64,
    },
    /// Writes at the file's position and advances it, `times` times. Answered by [`OpResult::Moved`].
    Write {
        /// The file.
        fd: FileDescriptor,
        /// Bytes of each write.
        len: u64,
        /// The data.
        content: Content,
        /// How often, at least 1.
        times: u64,
    },
    /// Reads at the file's position, seeks back, and writes what was read with a stamp, `times` times. Each time is a
    /// group that counts as one write. The file must be long enough. Answered by [`OpResult::Moved`], with the bytes
    /// written. See [`Plan::in_single_operations`](crate::Plan::in_single_operations).
    Rewrite {
        /// The file.
        fd: FileDescriptor,
        /// Bytes of each read and write.
        len: u64,
        /// The number of the first stamp; see [`Content::Stamp`].
        number: u64,
        /// How often, at least 1.
        times: u64,
    },
    /// Reads at the position of one file and writes what it read at that of another, until a read returns nothing.
    /// Answered by [`OpResult::Moved`]. See [`Plan::in_single_operations`](crate::Plan::in_single_operations).
    Copy {
        /// From: a file on the target or from outside.
        from: FileDescriptor,
        /// To: a file.
        to: FileDescriptor,
        /// Bytes of each read, and of each write but the last.
        len: u64,
    },
    /// Reads at the file's position and advances it, `times` times, and takes what it read from its buffer byte by
    /// byte, as `getc` of the C library does. The file must be long enough. Answered by [`OpResult::Moved`]. See
    /// [`Plan::in_single_operations`](crate::Plan::in_single_operations).
    ReadStdioBytes {
        /// The file.
        fd: FileDescriptor,
        /// Bytes of each read.
        len: u64,
        /// How often, at least 1.
        times: u64,
    },
    /// Puts zeroes into a buffer byte by byte, as `putc` of the C library does, writes it at the file's position and
    /// advances that, `times` times. Answered by [`OpResult::Moved`]. See
    /// [`Plan::in_single_operations`](crate::Plan::in_single_operations).
    WriteStdioBytes {
        /// The file.
        fd: FileDescriptor,
        /// Bytes of each write.
        len: u64,
        /// How often, at least 1.
        times: u64,
    },
    /// Reads or writes at a given position; the file's own position stays. Answered by [`OpResult::Moved`].
    At(Io),
    /// Moves the file's position.
    Seek {
        /// The file.
        fd: FileDescriptor,
        /// Where to.
        to: Seek,
    },
    /// Makes a file's data and metadata durable (`fsync`).
    Fsync {
        /// The file.
        fd: FileDescriptor,
    },
    /// Makes a file's data durable (`fdatasync`).
    Fdatasync {
        /// The file.
        fd: FileDescriptor,
    },
    /// Makes everything durable (`sync`).
    SyncAll,
    /// Makes the names in a directory durable (`open`, `fsync`, `close`).
    FsyncDirectory {
        /// The directory.
        path: FilePath,
    },
    /// Shortens or extends a file (`ftruncate`).
    Truncate {
        /// The file.
        fd: FileDescriptor,
        /// Its new length.
        len: u64,
    },
    /// Reserves space for a file up to a length, and extends the file to that length if it is shorter (`fallocate`).
    /// Nothing happens where that is not supported or where there is no filesystem.
    Allocate {
        /// The file.
        fd: FileDescriptor,
        /// How long it is to be.
        len: u64,
    },
    /// Copies from one file's position to another's within the kernel (`copy_file_range`), and advances both. Answered
    /// by [`OpResult::Moved`]; zero bytes mean the end of the file.
    CopyRange {
        /// From.
        from: FileDescriptor,
        /// To.
        to: FileDescriptor,
        /// At most this many bytes.
        len: u64,
    },
    /// Removes a name (`unlink`).
    Unlink {
        /// The name.
        path: FilePath,
    },
    /// Creates a directory, with mode 0755.
    Mkdir {
        /// Its path.
        path: FilePath,
    },
    /// Removes an empty directory.
    Rmdir {
        /// Its path.
        path: FilePath,
    },
    /// Gives a file another name (`rename`).
    Rename {
        /// The old name.
        from: FilePath,
        /// The new name.
        to: FilePath,
    },
    /// Gives a file another name besides those it has (`link`).
    Link {
        /// The file.
        from: FilePath,
        /// The name.
        to: FilePath,
    },
    /// Creates a symbolic link.
    Symlink {
        /// The path it points to.
        text: Arc<str>,
        /// Its name.
        path: FilePath,
    },
    /// Lists a directory, in the directory's own order. Answered by [`OpResult::Entries`].
    List {
        /// The directory.
        path: FilePath,
    },
    /// Looks a name up (`stat`). Answered by [`OpResult::Status`].
    Stat {
        /// The name.
        path: FilePath,
    },
    /// Sets an attribute.
    Set {
        /// The object.
        of: AttributeTarget,
        /// The attribute.
        attribute: Attribute,
    },
    /// Drops the cached pages of the open file or device: `BLKFLSBUF` on a device,
    /// `posix_fadvise(DONTNEED)` on a file.
    DropCached {
        /// The file.
        fd: FileDescriptor,
    },
    /// Sleeps for this long.
    Sleep(Nanos),
    /// Uses the CPU for this long.
    Compute(Nanos),
    /// Puts this many bytes into a buffer one by one, or takes them from it, as `putc` and `getc` of the C library do.
    StdioBytes(u64),
    /// Waits at a barrier until as many processes have arrived as the plan says for it; it can be used again
    /// afterwards.
    Barrier(u16),
    /// Puts a ticket into a queue, `times` times.
    Put {
        /// The queue.
        queue: u16,
        /// The ticket.
        ticket: i64,
        /// How often.
        times: u64,
    },
    /// Takes a ticket from a queue, and waits until there is one. Answered by [`OpResult::Ticket`].
    Take {
        /// The queue.
        queue: u16,
    },
    /// Starts a read or write without waiting for it; this makes queue depths above 1. At most [`MOST_STARTED`] may be
    /// in flight.
    Start {
        /// The process's own number for it, which must not be in use.
        tag: u32,
        /// The read or write.
        io: Io,
    },
    /// Waits until one of the operations started has ended. Answered by [`OpResult::Finished`].
    Finish,
    /// Where measuring starts and ends.
    Mark(Mark),
    /// The process is done, and is not asked again.
    Done,
}

/// The most operations of a process that may be in flight at once.
pub const MOST_STARTED: u32 = 4096;

/// An entry of a directory; `.` and `..` are left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// Its name.
    pub name: Arc<str>,
    /// Whether it is a directory.
    pub is_directory: bool,
}

/// The result of `stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Status {
    /// Bytes.
    pub size: u64,
    /// Whether it is a directory.
    pub is_directory: bool,
}

/// The result of a process's last operation. An operation that failed has ended the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpResult {
    /// There was no operation yet.
    Start,
    /// It was carried out.
    Done,
    /// This many bytes were read, written or copied.
    Moved(u64),
    /// The started operation with this tag has ended and moved this many bytes.
    Finished {
        /// The tag.
        tag: u32,
        /// Bytes.
        moved: u64,
    },
    /// A ticket.
    Ticket(i64),
    /// The entries of a directory, in the directory's own order.
    Entries(Vec<Entry>),
    /// The result of `stat`.
    Status(Status),
}

impl OpResult {
    /// Bytes moved by a read, write or copy; nothing for others.
    pub fn moved(&self) -> u64 {
        match self {
            Self::Moved(bytes) | Self::Finished { moved: bytes, .. } => *bytes,
            _ => 0,
        }
    }
}
