//! What a process asks of a target, one operation after the other.

use std::fmt;
use std::sync::Arc;

use raidlab_core::Nanos;

/// A process's own number for an open file, chosen by the process; below [`MOST_SLOTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileDescriptor(pub u16);

/// The most files a process has open at once.
pub const MOST_SLOTS: usize = 1024;

/// Where a path starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Root {
    /// The directory under test, or the raw device: what is measured.
    Target,
    /// Material from elsewhere, such as an archive to be unpacked; see
    /// [`SourceFile`](crate::SourceFile).
    Source,
    /// `/dev/null`: takes every write at once. The text is empty.
    Null,
}

/// The name of a file: a root and a relative path with `/` between its parts, never `..` or absolute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilePath {
    /// Where it starts.
    pub root: Root,
    /// The rest; empty for the root itself.
    pub text: Arc<str>,
}

impl FilePath {
    /// A path below the directory under test.
    pub fn target(text: impl Into<Arc<str>>) -> Self {
        Self { root: Root::Target, text: text.into() }
    }

    /// A path of material from elsewhere.
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
    /// Made when it is not there (`O_CREAT`), with mode 0644.
    pub create: bool,
    /// An error when it is there (`O_EXCL`).
    pub exclusive: bool,
    /// Emptied (`O_TRUNC`).
    pub truncate: bool,
    /// Past the page cache (`O_DIRECT`).
    pub direct: bool,
    /// Every write is durable when it is answered (`O_SYNC`).
    pub sync: bool,
}

impl OpenFlags {
    /// For reading.
    pub const READ: Self = Self { read: true, ..Self::NOTHING };
    /// For writing, made or emptied.
    pub const WRITE: Self = Self { write: true, create: true, truncate: true, ..Self::NOTHING };
    /// For reading and writing what is there.
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

/// What a write puts down. Each process has one buffer, at first all zeroes, as long as its longest
/// operation so far; reads fill it from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    /// Zeroes; the buffer stays as it is.
    Zeroes,
    /// The buffer, from this byte on: what was read last.
    Buffer {
        /// The first byte of the buffer that is written.
        from: u32,
    },
    /// The buffer after its byte `number` (modulo the length of the write) was increased by one; with
    /// `times`, the number increases by one each time. What bonnie++ writes.
    Stamp {
        /// The number.
        number: u64,
    },
    /// Bytes that are a function of `seed` and the place in the file: [`crate::content::fill`].
    Seeded {
        /// The seed.
        seed: u64,
    },
}

/// A read or a write at a place, for operations that overlap.
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
        /// What is written; not [`Content::Buffer`] or [`Content::Stamp`].
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
    /// So many bytes from the start.
    Start(u64),
    /// So many bytes from where the position is.
    Current(i64),
    /// To the end.
    End,
}

/// Attributes that are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Attribute {
    /// Times (`utimensat`).
    Times,
    /// Mode (`fchmod`, `fchmodat`).
    Mode,
    /// Owner and group (`fchown`, `fchownat`): those it has.
    Owner,
}

/// What attributes are set on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AttributeTarget {
    /// An open file.
    Descriptor(FileDescriptor),
    /// A name.
    Path(FilePath),
}

/// What is measured as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Everything else that was asked to be measured.
    Other,
}

/// What takes no time: where measuring starts and ends. Outside a phase nothing is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mark {
    /// A phase begins for this process, by its index in the plan. Phases of a process do not overlap.
    Begin(u16),
    /// It ends.
    End(u16),
    /// What follows up to [`Mark::GroupEnd`] counts as one operation with one latency.
    GroupBegin,
    /// The group ends and is counted as an operation of this class, with the bytes that were moved.
    GroupEnd(Class),
}

/// An operation. The first that fails ends the run with an error that names it; nothing is tolerated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Opens a file into a file descriptor that is free.
    Open {
        /// The file descriptor.
        fd: FileDescriptor,
        /// The file.
        path: FilePath,
        /// How.
        flags: OpenFlags,
    },
    /// Closes it.
    Close {
        /// The file descriptor.
        fd: FileDescriptor,
    },
    /// Reads at the position and moves it, `times` times; ends early where the file ends. Answered by
    /// [`OpResult::Moved`].
    Read {
        /// The file.
        fd: FileDescriptor,
        /// Bytes of each read.
        len: u64,
        /// How often, at least 1.
        times: u64,
    },
    /// Writes at the position and moves it, `times` times. Answered by [`OpResult::Moved`].
    Write {
        /// The file.
        fd: FileDescriptor,
        /// Bytes of each write.
        len: u64,
        /// What.
        content: Content,
        /// How often, at least 1.
        times: u64,
    },
    /// Reads at the position, goes back, and writes what was read with a stamp, `times` times: each a group
    /// that counts as one write. The file is at least so long. Answered by [`OpResult::Moved`], with what
    /// was written. See [`Plan::in_single_operations`](crate::Plan::in_single_operations).
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
    /// Reads at one position and writes what came at the other, until a read finds nothing. Answered by
    /// [`OpResult::Moved`]. See [`Plan::in_single_operations`](crate::Plan::in_single_operations).
    Copy {
        /// From: a file, or material from elsewhere.
        from: FileDescriptor,
        /// To: a file.
        to: FileDescriptor,
        /// Bytes of each read, and of each write but the last.
        len: u64,
    },
    /// Reads at the position and moves it, `times` times, and takes what came from its buffer one byte
    /// after the other, as `getc` of the C library does. The file is at least so long. Answered by
    /// [`OpResult::Moved`]. See [`Plan::in_single_operations`](crate::Plan::in_single_operations).
    ReadStdioBytes {
        /// The file.
        fd: FileDescriptor,
        /// Bytes of each read.
        len: u64,
        /// How often, at least 1.
        times: u64,
    },
    /// Puts zeroes into a buffer one after the other, as `putc` of the C library does, writes it at the
    /// position and moves that, `times` times. Answered by [`OpResult::Moved`]. See
    /// [`Plan::in_single_operations`](crate::Plan::in_single_operations).
    WriteStdioBytes {
        /// The file.
        fd: FileDescriptor,
        /// Bytes of each write.
        len: u64,
        /// How often, at least 1.
        times: u64,
    },
    /// Reads or writes at a place; the position stays. Answered by [`OpResult::Moved`].
    At(Io),
    /// Moves the position.
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
    /// Cuts or lengthens a file (`ftruncate`).
    Truncate {
        /// The file.
        fd: FileDescriptor,
        /// Its new length.
        len: u64,
    },
    /// Reserves room for a file up to a length, which becomes its length when it is shorter (`fallocate`);
    /// where that is not supported nothing happens, as where there is no filesystem to reserve it.
    Allocate {
        /// The file.
        fd: FileDescriptor,
        /// How long it is to be.
        len: u64,
    },
    /// Copies from one position to the other within the kernel (`copy_file_range`), moving both.
    /// Answered by [`OpResult::Moved`]; nothing moved is the end of the file.
    CopyRange {
        /// From.
        from: FileDescriptor,
        /// To.
        to: FileDescriptor,
        /// At most so many bytes.
        len: u64,
    },
    /// Removes a name.
    Unlink {
        /// Which.
        path: FilePath,
    },
    /// Makes a directory, with mode 0755.
    Mkdir {
        /// Which.
        path: FilePath,
    },
    /// Removes an empty directory.
    Rmdir {
        /// Which.
        path: FilePath,
    },
    /// Gives a file another name (`rename`).
    Rename {
        /// The old name.
        from: FilePath,
        /// The new name.
        to: FilePath,
    },
    /// Gives a file one name more.
    Link {
        /// The file.
        from: FilePath,
        /// The name.
        to: FilePath,
    },
    /// Makes a symbolic link.
    Symlink {
        /// What it says.
        text: Arc<str>,
        /// Its name.
        path: FilePath,
    },
    /// Lists a directory in its own order. Answered by [`OpResult::Entries`].
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
        /// Of what.
        of: AttributeTarget,
        /// Which.
        attribute: Attribute,
    },
    /// Drops what memory holds of the open file or device: `BLKFLSBUF` on a device,
    /// `posix_fadvise(DONTNEED)` on a file.
    DropCached {
        /// The file.
        fd: FileDescriptor,
    },
    /// Does nothing for a while.
    Sleep(Nanos),
    /// Uses the CPU for a while.
    Compute(Nanos),
    /// Puts so many bytes into a buffer one by one, or takes them from it, as `putc` and `getc` of the C
    /// library do.
    StdioBytes(u64),
    /// Waits until as many processes have come here as the plan says for this barrier; may be used
    /// again afterwards.
    Barrier(u16),
    /// Puts tickets into a queue: `times` times the same.
    Put {
        /// The queue.
        queue: u16,
        /// The ticket.
        ticket: i64,
        /// How often.
        times: u64,
    },
    /// Takes a ticket from a queue, waiting until there is one. Answered by [`OpResult::Ticket`].
    Take {
        /// The queue.
        queue: u16,
    },
    /// Starts a read or write and does not wait for it: how queue depth comes about. At most
    /// [`MOST_STARTED`] are under way.
    Start {
        /// The process's own number for it, not in use.
        tag: u32,
        /// What.
        io: Io,
    },
    /// Waits until one of those that were started is done. Answered by [`OpResult::Finished`].
    Finish,
    /// Where measuring starts and ends.
    Mark(Mark),
    /// Nothing more: the process is done, and is not asked again.
    Done,
}

/// The most operations of a process that are under way at once.
pub const MOST_STARTED: u32 = 4096;

/// An entry of a directory; `.` and `..` are left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// Its name.
    pub name: Arc<str>,
    /// Whether it is a directory.
    pub is_directory: bool,
}

/// What `stat` tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Status {
    /// Bytes.
    pub size: u64,
    /// Whether it is a directory.
    pub is_directory: bool,
}

/// How the last operation of a process went. An operation that failed has ended the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpResult {
    /// There was none yet.
    Start,
    /// It was carried out.
    Done,
    /// So many bytes were read, written or copied.
    Moved(u64),
    /// An operation with this tag was carried out and moved so many bytes.
    Finished {
        /// The tag.
        tag: u32,
        /// Bytes.
        moved: u64,
    },
    /// A ticket.
    Ticket(i64),
    /// The entries of a directory, in its own order.
    Entries(Vec<Entry>),
    /// What `stat` told.
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
