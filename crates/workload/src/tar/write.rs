//! An archive of a tree, made piece by piece where it is read: `ustar`, as `tar --format=ustar` packs it.

use std::sync::Arc;

use super::archive::{Archive, ArchiveMember, ArchiveMemberKind, BLOCK, sum};
use crate::plan::{Bytes, SeededBytes};
use crate::tree::Tree;

/// Bytes of a record: tar reads and pads by 20 blocks.
pub(crate) const RECORD: u64 = 20 * BLOCK;

/// The time of everything in the archive: 29 August 2005, 00:00 UTC, when Linux 2.6.13 was new.
const TIME: u64 = 1_125_273_600;

/// The bytes of an archive of a tree.
#[derive(Debug)]
pub(crate) struct TarBytes {
    archive: Arc<Archive>,
    contents: Vec<Option<SeededBytes>>,
}

impl TarBytes {
    /// Lays the members out, in the order of the tree.
    pub(crate) fn new(tree: &Tree) -> Self {
        let mut at = 0;
        let mut members = Vec::with_capacity(tree.entries.len());
        for entry in &tree.entries {
            let (kind, len) = match entry.bytes {
                Some(bytes) => (ArchiveMemberKind::File { len: bytes.len }, bytes.len),
                None => (ArchiveMemberKind::Directory, 0),
            };
            members.push(ArchiveMember { path: entry.path.clone(), kind, data_at: at + BLOCK });
            at += BLOCK + len.next_multiple_of(BLOCK);
        }
        let read_to = at + 2 * BLOCK;
        let archive = Archive::from_members(members, read_to, read_to.next_multiple_of(RECORD));
        let archive = Arc::new(archive);
        Self { archive, contents: tree.entries.iter().map(|entry| entry.bytes).collect() }
    }

    /// What is in it.
    pub(crate) fn archive(&self) -> &Arc<Archive> {
        &self.archive
    }

    /// Fills as much of `into` from `at` on as lies in one header, contents or padding; says how much.
    fn fill_some(&self, at: u64, into: &mut [u8]) -> usize {
        let members = self.archive.members();
        let index = members.partition_point(|member| member.data_at - BLOCK <= at);
        let Some(member) = index.checked_sub(1).and_then(|index| members.get(index)) else {
            into.fill(0);
            return into.len();
        };
        let most = |until: u64, into: &[u8]| (until - at).min(into.len() as u64) as usize;
        if at < member.data_at {
            let len = most(member.data_at, into);
            let from = (at + BLOCK - member.data_at) as usize;
            into[..len].copy_from_slice(&header(member)[from..from + len]);
            return len;
        }
        match self.contents.get(index - 1).copied().flatten() {
            Some(bytes) if at < member.data_at + bytes.len => {
                let len = most(member.data_at + bytes.len, into);
                bytes.fill(at - member.data_at, &mut into[..len]);
                len
            }
            _ => {
                let next =
                    members.get(index).map_or(self.archive.bytes(), |next| next.data_at - BLOCK);
                let len = most(next, into);
                into[..len].fill(0);
                len
            }
        }
    }
}

impl Bytes for TarBytes {
    fn len(&self) -> u64 {
        self.archive.bytes()
    }

    fn fill(&self, at: u64, into: &mut [u8]) {
        let mut done = 0;
        while done < into.len() {
            done += self.fill_some(at + done as u64, &mut into[done..]);
        }
    }
}

/// A header. Names of trees made here have less than 100 bytes.
pub(super) fn header(member: &ArchiveMember) -> [u8; 512] {
    let mut header = [0; 512];
    let mut put = |at: usize, text: &[u8]| header[at..at + text.len()].copy_from_slice(text);
    let (size, mode, kind, end) = match member.kind {
        ArchiveMemberKind::File { len } => (len, 0o644, b'0', ""),
        _ => (0, 0o755, b'5', "/"),
    };
    let name = format!("{}{end}", member.path);
    put(0, &name.as_bytes()[..name.len().min(100)]);
    put(100, format!("{mode:07o}").as_bytes());
    put(108, b"0000000");
    put(116, b"0000000");
    if size < 1 << 33 {
        put(124, format!("{size:011o}").as_bytes());
    } else {
        put(124, &[0x80]);
        put(128, &size.to_be_bytes());
    }
    put(136, format!("{TIME:011o}").as_bytes());
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    put(265, b"root");
    put(297, b"root");
    let check = format!("{:06o}\0 ", sum(&header));
    header[148..156].copy_from_slice(check.as_bytes());
    header
}

/// A file's bytes where they lie in an archive.
#[derive(Debug)]
pub(crate) struct Part {
    /// The archive.
    pub(crate) whole: Arc<dyn Bytes>,
    /// The first byte.
    pub(crate) at: u64,
    /// How many.
    pub(crate) len: u64,
}

impl Bytes for Part {
    fn len(&self) -> u64 {
        self.len
    }

    fn fill(&self, at: u64, into: &mut [u8]) {
        self.whole.fill(self.at + at, into);
    }
}
