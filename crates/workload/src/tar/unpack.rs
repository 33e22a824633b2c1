//! What tar asks for to unpack an archive, member by member.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::archive::{Archive, ArchiveMember, ArchiveMemberKind};
use super::write::RECORD;
use crate::op::{Attribute, AttributeTarget, Content, FileDescriptor, FilePath, Op, OpenFlags};

const ARCHIVE: FileDescriptor = FileDescriptor(0);
const FILE: FileDescriptor = FileDescriptor(1);

/// The operations, each member's when those of the one before are used up.
#[derive(Debug)]
pub(super) struct Unpack {
    archive: Arc<Archive>,
    path: FilePath,
    /// Where it is unpacked.
    directory: String,
    /// The next member.
    next: usize,
    is_over: bool,
    ops: VecDeque<Op>,
    /// Records read.
    records: u64,
    /// Directories whose attributes are still to be set, the innermost last.
    delayed: Vec<Arc<str>>,
    made: BTreeSet<Arc<str>>,
}

impl Unpack {
    pub(super) fn new(archive: Arc<Archive>, path: FilePath, directory: String) -> Self {
        let flags = OpenFlags::READ;
        let open = Op::Open { fd: ARCHIVE, path: path.clone(), flags };
        Self {
            archive,
            path,
            directory,
            next: 0,
            is_over: false,
            ops: VecDeque::from([open]),
            records: 0,
            delayed: Vec::new(),
            made: BTreeSet::new(),
        }
    }

    fn target(&self, path: &str) -> FilePath {
        FilePath { root: self.path.root, text: [&self.directory, "/", path].concat().into() }
    }

    /// Reads records until the bytes below `end` were read.
    fn need(&mut self, end: u64) {
        while self.records * RECORD < end {
            self.records += 1;
            self.ops.push_back(Op::Read { fd: ARCHIVE, len: RECORD, times: 1 });
        }
    }

    fn set(&mut self, of: &AttributeTarget, attributes: &[Attribute]) {
        let set = attributes.iter().map(|&attribute| Op::Set { of: of.clone(), attribute });
        self.ops.extend(set);
    }

    /// Sets the attributes of directories that `path` is not in.
    fn leave(&mut self, path: &str) {
        let is_in = |directory: &str| {
            path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
        };
        while let Some(directory) = self.delayed.pop_if(|directory| !is_in(directory)) {
            let of = AttributeTarget::Path(self.target(&directory));
            self.set(&of, &[Attribute::Times, Attribute::Owner, Attribute::Mode]);
        }
    }

    /// Directories above `path` that the archive does not have.
    fn make_parents(&mut self, path: &str) {
        // Where the innermost is, all are: most often the one that was entered last.
        let innermost = path.rfind('/').map_or("", |end| &path[..end]);
        let is_entered = self.delayed.last().is_some_and(|entered| **entered == *innermost);
        if is_entered || self.made.contains(innermost) {
            return;
        }
        for (end, _) in path.match_indices('/') {
            let parent: Arc<str> = path[..end].into();
            if self.made.insert(parent.clone()) {
                self.ops.push_back(Op::Mkdir { path: self.target(&parent) });
            }
        }
    }

    fn member(&mut self, member: &ArchiveMember) {
        self.need(member.data_at);
        self.leave(&member.path);
        self.make_parents(&member.path);
        let path = self.target(&member.path);
        match &member.kind {
            ArchiveMemberKind::Directory => {
                // One that a member before it has made keeps its place, and gets its attributes too.
                if self.made.insert(member.path.clone()) {
                    self.ops.push_back(Op::Mkdir { path });
                }
                self.delayed.push(member.path.clone());
            }
            ArchiveMemberKind::File { len } => {
                let flags = OpenFlags { exclusive: true, truncate: false, ..OpenFlags::WRITE };
                self.ops.push_back(Op::Open { fd: FILE, path, flags });
                self.contents(member.data_at, member.data_at + len);
                let of = AttributeTarget::Descriptor(FILE);
                self.set(&of, &[Attribute::Times, Attribute::Owner, Attribute::Mode]);
                self.ops.push_back(Op::Close { fd: FILE });
            }
            ArchiveMemberKind::HardLink { to } => {
                self.ops.push_back(Op::Link { from: self.target(to), to: path });
            }
            ArchiveMemberKind::Symlink { text } => {
                self.ops.push_back(Op::Symlink { text: text.clone(), path: path.clone() });
                self.set(&AttributeTarget::Path(path), &[Attribute::Times, Attribute::Owner]);
            }
        }
    }

    /// Writes the bytes from `at` to `end` as they come with the records.
    fn contents(&mut self, mut at: u64, end: u64) {
        while at < end {
            self.need(at + 1);
            let len = (RECORD - at % RECORD).min(end - at);
            let content = Content::Buffer { from: (at % RECORD) as u32 };
            self.ops.push_back(Op::Write { fd: FILE, len, content, times: 1 });
            at += len;
        }
    }
}

impl Iterator for Unpack {
    type Item = Op;

    fn next(&mut self) -> Option<Op> {
        while self.ops.is_empty() && !self.is_over {
            let archive = self.archive.clone();
            if let Some(member) = archive.members().get(self.next) {
                self.next += 1;
                self.member(member);
            } else {
                self.is_over = true;
                self.need(archive.read_to());
                self.ops.push_back(Op::Close { fd: ARCHIVE });
                self.leave("");
            }
        }
        self.ops.pop_front()
    }
}
