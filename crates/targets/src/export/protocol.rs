//! What the kernel's FUSE device says and hears: messages as values, no I/O.
//!
//! Format: `include/uapi/linux/fuse.h` of Linux, interface version 7.31, in the byte order of the
//! machine. Only what a filesystem of one file is asked is known; everything else is answered with
//! `ENOSYS`, upon which the kernel does without, mostly for good.

/// Bytes of the header of a request.
const REQUEST_HEADER: usize = 40;
/// Bytes before the payload of a write: a header and what the write says of itself.
pub(super) const WRITE_HEAD: usize = REQUEST_HEADER + 40;
/// Bytes of the header of an answer.
pub(super) const ANSWER_HEADER: usize = 16;
/// The least a read from the device must have room for.
pub(super) const LEAST_ROOM: usize = 8192;

/// The node of the directory.
const ROOT: u64 = 1;
/// The node of the one file in it.
const FILE: u64 = 2;
/// The name of the one file.
pub(crate) const NAME: &str = "array";

/// Version of the interface that is spoken.
const MAJOR: u32 = 7;
const MINOR: u32 = 31;
/// The first minor version whose answers have the sizes written here.
const OLDEST_MINOR: u32 = 28;

/// Reads of a file may overtake each other.
const ASYNC_READ: u32 = 1 << 0;
/// Writes may be longer than a page.
const BIG_WRITES: u32 = 1 << 5;
/// Direct I/O is handed over without waiting for each part.
const ASYNC_DIRECT: u32 = 1 << 15;
/// The answer says how many pages a request may have.
const MAX_PAGES: u32 = 1 << 22;

/// The file's pages are not kept.
pub(super) const OPEN_DIRECT: u32 = 1 << 0;
/// Pages are kept from one opening to the next.
pub(super) const OPEN_KEEP_CACHE: u32 = 1 << 1;
/// Direct writes need not wait for each other.
pub(super) const OPEN_PARALLEL_WRITES: u32 = 1 << 6;

/// Longest payload of a request in bytes, when the kernel takes that many pages.
pub(super) const LONGEST: u32 = 1 << 20;
/// The same for kernels that have 32 pages a request.
const LONGEST_BEFORE: u32 = 128 << 10;
/// Pages a request may have: room for the longest one that starts within a page would be one more, but
/// 256 is the most the kernel takes.
const PAGES: u16 = 256;
/// Requests without a waiting process that the kernel hands out before it holds them back.
const BACKGROUND: u16 = 256;

/// Names and attributes never change: the kernel may keep them this long, in seconds.
const VALID: u64 = 1 << 30;

/// A hole is made where there were data.
const PUNCH_HOLE: u32 = 2;
/// The file stays as long as it is.
const KEEP_SIZE: u32 = 1;
/// Data become zeroes.
const ZERO_RANGE: u32 = 16;

/// What one message asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words of each variant tell of its fields")]
pub enum Ask {
    /// The first message: versions and abilities.
    Init { minor: u32, flags: u32 },
    /// Whether there is a file of this name in the directory: `true` when it is the one there is.
    Lookup { known: bool },
    /// Attributes of a node.
    Attributes { node: u64 },
    /// The change of attributes; `size` is the length wanted.
    Change { node: u64, size: Option<u64> },
    /// The opening of a file.
    Open { node: u64 },
    /// The opening of a directory.
    OpenDirectory,
    /// Names in the directory, from the `from`th on.
    List { from: u64, room: u32 },
    /// Something is closed.
    Close,
    /// Room in the filesystem.
    Room,
    /// Bytes of the file.
    Read { offset: u64, len: u32 },
    /// Bytes for the file; they follow the first `WRITE_HEAD` bytes. `durable`: the file was opened for writes that are
    /// durable when they are answered (`O_DSYNC`, `O_SYNC`), or this one is to be (`RWF_DSYNC`).
    Write { offset: u64, len: u32, durable: bool },
    /// All that was written shall be durable.
    Sync,
    /// A range shall read as zeroes.
    Zero { offset: u64, len: u64 },
    /// The file shall have other room than it has, in a way that this file cannot.
    Allocate,
    /// The filesystem is being unmounted.
    Destroy,
    /// Something that gets no answer.
    Nothing,
    /// Something that is not known here.
    Unknown,
}

/// A message of the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// What the answer must name.
    pub unique: u64,
    /// What is asked.
    pub ask: Ask,
}

/// Numbers at places of a message; 0 where it is too short.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn word(&self, at: usize) -> u32 {
        let bytes = self.0.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_ne_bytes)
    }

    fn long(&self, at: usize) -> u64 {
        let bytes = self.0.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_ne_bytes)
    }
}

/// Reads a message; of a write the first `WRITE_HEAD` bytes are enough. `None` when it is shorter
/// than a header.
pub fn parse(message: &[u8]) -> Option<Message> {
    if message.len() < REQUEST_HEADER {
        return None;
    }
    let head = Fields(message);
    let (operation, unique, node) = (head.word(4), head.long(8), head.long(16));
    let body = Fields(&message[REQUEST_HEADER..]);
    let ask = match operation {
        1 => Ask::Lookup { known: node == ROOT && is_name(body.0) },
        2 | 42 => Ask::Nothing,
        3 => Ask::Attributes { node },
        4 => {
            const SIZE: u32 = 1 << 3;
            Ask::Change { node, size: (body.word(0) & SIZE != 0).then(|| body.long(16)) }
        }
        14 => Ask::Open { node },
        15 => Ask::Read { offset: body.long(8), len: body.word(16) },
        16 => {
            let durable = body.word(32) & libc::O_DSYNC.cast_unsigned() != 0;
            Ask::Write { offset: body.long(8), len: body.word(16), durable }
        }
        17 => Ask::Room,
        18 | 29 => Ask::Close,
        20 => Ask::Sync,
        26 => Ask::Init { minor: body.word(4), flags: body.word(12) },
        27 => Ask::OpenDirectory,
        28 => Ask::List { from: body.long(8), room: body.word(16) },
        38 => Ask::Destroy,
        43 => {
            let zeroes = [PUNCH_HOLE | KEEP_SIZE, ZERO_RANGE, ZERO_RANGE | KEEP_SIZE];
            if zeroes.contains(&body.word(24)) {
                Ask::Zero { offset: body.long(8), len: body.long(16) }
            } else {
                Ask::Allocate
            }
        }
        _ => Ask::Unknown,
    };
    Some(Message { unique, ask })
}

/// Whether a body is the name of the one file, ended by a zero.
fn is_name(body: &[u8]) -> bool {
    body.strip_suffix(&[0]).is_some_and(|name| name == NAME.as_bytes())
}

/// The header of an answer with `payload` bytes behind it, or of one that says an error (a number
/// from `errno.h`).
pub(super) fn answer_header(unique: u64, payload: usize, error: i32) -> [u8; ANSWER_HEADER] {
    let mut header = [0; ANSWER_HEADER];
    header[..4].copy_from_slice(&((ANSWER_HEADER + payload) as u32).to_ne_bytes());
    header[4..8].copy_from_slice(&(-error).to_ne_bytes());
    header[8..].copy_from_slice(&unique.to_ne_bytes());
    header
}

/// Numbers put behind each other.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn words<const N: usize>(mut self, words: [u32; N]) -> Self {
        words.iter().for_each(|word| self.0.extend(word.to_ne_bytes()));
        self
    }

    fn longs<const N: usize>(mut self, longs: [u64; N]) -> Self {
        longs.iter().for_each(|long| self.0.extend(long.to_ne_bytes()));
        self
    }
}

/// What is agreed on with the kernel, and the answer that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Agreed {
    /// The longest read or write in bytes.
    pub(super) longest: u32,
    /// The body of the answer.
    pub(super) body: Vec<u8>,
}

/// Answers the first message; `None` for a kernel that is too old.
pub(super) fn agree(minor: u32, offered: u32) -> Option<Agreed> {
    if minor < OLDEST_MINOR {
        return None;
    }
    let longest = if offered & MAX_PAGES == 0 { LONGEST_BEFORE } else { LONGEST };
    let flags = offered & (ASYNC_READ | BIG_WRITES | ASYNC_DIRECT | MAX_PAGES);
    let background = u32::from_ne_bytes(pair(BACKGROUND, BACKGROUND));
    let pages = u32::from_ne_bytes(pair(PAGES, 0));
    let read_ahead = LONGEST_BEFORE;
    let body = Bytes::default()
        .words([MAJOR, minor.min(MINOR), read_ahead, flags, background, longest, 1, pages])
        .words([0; 8]);
    Some(Agreed { longest, body: body.0 })
}

fn pair(first: u16, second: u16) -> [u8; 4] {
    let ([a, b], [c, d]) = (first.to_ne_bytes(), second.to_ne_bytes());
    [a, b, c, d]
}

fn attributes(body: Bytes, node: u64, size: u64, block: u32) -> Bytes {
    const DIRECTORY: u32 = 0o040_500;
    const REGULAR: u32 = 0o100_600;
    let (mode, links, size) = if node == ROOT { (DIRECTORY, 2, 0) } else { (REGULAR, 1, size) };
    // Number, size, blocks of 512 bytes, three times; their nanoseconds; the rest.
    body.longs([node, size, size / 512, 0, 0, 0])
        .words([0, 0, 0])
        .words([mode, links, 0, 0, 0, block, 0])
}

/// The body that answers a lookup that found the file.
pub(super) fn entry(size: u64, block: u32) -> Vec<u8> {
    attributes(Bytes::default().longs([FILE, 0, VALID, VALID]).words([0, 0]), FILE, size, block).0
}

/// The body that answers a question for attributes; `None` when there is no such node.
pub(super) fn attribute_body(node: u64, size: u64, block: u32) -> Option<Vec<u8>> {
    let known = node == ROOT || node == FILE;
    known.then(|| attributes(Bytes::default().longs([VALID]).words([0, 0]), node, size, block).0)
}

/// The body that answers an opening.
pub(super) fn open_body(flags: u32) -> Vec<u8> {
    Bytes::default().longs([0]).words([flags, 0]).0
}

/// Whether a node is the file.
pub(super) fn is_file(node: u64) -> bool {
    node == FILE
}

/// The body that answers a write of `len` bytes.
pub(super) fn written(len: u32) -> [u8; 8] {
    let mut body = [0; 8];
    body[..4].copy_from_slice(&len.to_ne_bytes());
    body
}

/// The body that tells room: all of it taken.
pub(super) fn room(size: u64, block: u32) -> Vec<u8> {
    let blocks = size / u64::from(block.max(1));
    Bytes::default().longs([blocks, 0, 0, 1, 0]).words([block, 255, block, 0]).words([0; 6]).0
}

/// The names in the directory from the `from`th on that fit into `room` bytes.
pub(super) fn list(from: u64, room: u32) -> Vec<u8> {
    const DIRECTORY: u32 = 4;
    const REGULAR: u32 = 8;
    let all = [(ROOT, DIRECTORY, "."), (ROOT, DIRECTORY, ".."), (FILE, REGULAR, NAME)];
    let mut body = Bytes::default();
    for (index, (node, kind, name)) in (1u64..).zip(all).skip(from.min(3) as usize) {
        let padded = (24 + name.len()).next_multiple_of(8);
        if body.0.len() + padded > room as usize {
            break;
        }
        let end = body.0.len() + padded;
        body = body.longs([node, index]).words([name.len() as u32, kind]);
        body.0.extend(name.as_bytes());
        body.0.resize(end, 0);
    }
    body.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(operation: u32, node: u64, body: &[u8]) -> Vec<u8> {
        let len = (REQUEST_HEADER + body.len()) as u32;
        let head = Bytes::default().words([len, operation]).longs([77, node]).words([0; 4]);
        [head.0, body.to_vec()].concat()
    }

    fn ask(operation: u32, node: u64, body: &[u8]) -> Ask {
        let message = parse(&request(operation, node, body)).unwrap();
        assert_eq!(message.unique, 77);
        message.ask
    }

    #[test]
    fn messages_are_understood() {
        let io = Bytes::default().longs([9, 4096]).words([512, 0]).longs([0]).words([0, 0]).0;
        assert_eq!(ask(15, FILE, &io), Ask::Read { offset: 4096, len: 512 });
        let write = |durable| Ask::Write { offset: 4096, len: 512, durable };
        assert_eq!(ask(16, FILE, &io), write(false));
        for (flags, durable) in
            [(libc::O_SYNC, true), (libc::O_DSYNC, true), (libc::O_WRONLY, false)]
        {
            let io = Bytes(io[..32].to_vec()).words([flags.cast_unsigned(), 0]).0;
            assert_eq!(ask(16, FILE, &io), write(durable));
        }
        assert_eq!(ask(1, ROOT, b"array\0"), Ask::Lookup { known: true });
        for wrong in [&b"array"[..], b"arrays\0", b"\0", b""] {
            assert_eq!(ask(1, ROOT, wrong), Ask::Lookup { known: false });
        }
        assert_eq!(ask(1, FILE, b"array\0"), Ask::Lookup { known: false });
        let range = |mode| Bytes::default().longs([9, 512, 1024]).words([mode, 0]).0;
        for mode in [3, 16, 17] {
            assert_eq!(ask(43, FILE, &range(mode)), Ask::Zero { offset: 512, len: 1024 });
        }
        for mode in [0, 1, 2, 8] {
            assert_eq!(ask(43, FILE, &range(mode)), Ask::Allocate);
        }
        assert_eq!(ask(4, FILE, &[0; 88]), Ask::Change { node: FILE, size: None });
        assert_eq!(ask(9999, FILE, &[]), Ask::Unknown);
        assert_eq!(parse(&[0; REQUEST_HEADER - 1]), None);
    }

    #[test]
    fn a_message_that_is_cut_short_is_read_as_zeroes() {
        for operation in 0..60 {
            for len in 0..48 {
                let message = request(operation, ROOT, &[0; 48][..len]);
                assert!(parse(&message).is_some());
            }
        }
        assert_eq!(ask(15, FILE, &[]), Ask::Read { offset: 0, len: 0 });
    }

    #[test]
    fn answers_have_the_sizes_of_the_format() {
        let agreed = agree(45, u32::MAX).unwrap();
        assert_eq!((agreed.body.len(), agreed.longest), (64, LONGEST));
        assert_eq!(agree(31, !MAX_PAGES).unwrap().longest, LONGEST_BEFORE);
        assert_eq!(agree(OLDEST_MINOR - 1, u32::MAX), None);
        assert_eq!(entry(1 << 30, 512).len(), 128);
        assert_eq!(attribute_body(FILE, 1 << 30, 512).unwrap().len(), 104);
        assert_eq!(attribute_body(3, 0, 512), None);
        assert_eq!(open_body(2).len(), 16);
        assert_eq!(room(1 << 20, 512).len(), 80);
        assert_eq!(answer_header(5, 8, 0)[..4], 24u32.to_ne_bytes());
        assert_eq!(answer_header(5, 0, 5)[4..8], (-5i32).to_ne_bytes());
    }

    #[test]
    fn the_directory_lists_one_file() {
        let all = list(0, 4096);
        assert_eq!(all.len(), 32 + 32 + 32);
        assert_eq!(&all[64 + 24..64 + 29], b"array");
        assert_eq!(list(2, 4096), &all[64..]);
        assert_eq!(list(0, 40), &all[..32]);
        assert!(list(3, 4096).is_empty() && list(u64::MAX, 4096).is_empty());
    }
}
