//! What is in an archive, read from its headers.
//!
//! The format is that of POSIX.1-1988 `ustar` with the extensions GNU tar and POSIX.1-2001 `pax` add for
//! long names and large sizes: blocks of 512 bytes; a header has the name at 0 (100 bytes), the size in
//! octal at 124 (12), the checksum at 148 (8), the type at 156, the name a link points to at 157 (100),
//! `ustar` at 257 and a prefix of the name at 345 (155); two blocks of zeroes end the archive.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Bytes of a block of an archive.
pub(crate) const BLOCK: u64 = 512;

/// The longest name or extended header that is read.
const LONGEST: u64 = 1 << 20;

/// What a member of an archive is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchiveMemberKind {
    /// A directory.
    Directory,
    /// A file of so many bytes.
    File {
        /// How many.
        len: u64,
    },
    /// Another name of a file that came before.
    HardLink {
        /// The file.
        to: Arc<str>,
    },
    /// A symbolic link.
    Symlink {
        /// What it says.
        text: Arc<str>,
    },
}

/// A member of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveMember {
    /// Its path, relative, without `.` and `..` and without `/` at the end.
    pub path: Arc<str>,
    /// What it is.
    pub kind: ArchiveMemberKind,
    /// Where its contents start in the archive, in bytes: behind all its headers.
    pub data_at: u64,
}

/// The members of an archive and where they lie in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    members: Vec<ArchiveMember>,
    /// Bytes that are read before the end is known.
    read_to: u64,
    len: u64,
}

/// What is wrong with an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArchiveError {
    /// It ends within a member.
    Truncated {
        /// The member's header or contents, in bytes from the start.
        at: u64,
    },
    /// A header's checksum is not the sum of its bytes.
    Checksum {
        /// The header, in bytes from the start.
        at: u64,
    },
    /// A number in a header is none.
    Number {
        /// The header, in bytes from the start.
        at: u64,
        /// Which.
        field: &'static str,
    },
    /// A member of a type that is not unpacked here.
    Unsupported {
        /// The member.
        path: String,
        /// Its type in words.
        what: String,
    },
    /// A name that is not safe to unpack, or comes twice.
    Name {
        /// The name.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// There is nothing in it.
    Empty,
    /// It could not be read.
    Read(String),
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { at } => {
                write!(f, "the archive ends within the member at byte {at}; use one that is whole")
            }
            Self::Checksum { at } => write!(
                f,
                "no tar header at byte {at}: the checksum is wrong; is it damaged, or compressed? \
                 unpack `.tar.gz` and the like to `.tar` first"
            ),
            Self::Number { at, field } => {
                write!(f, "the {field} in the header at byte {at} is no number")
            }
            Self::Unsupported { path, what } => {
                write!(f, "{path}: {what}; pack an archive without it")
            }
            Self::Name { path, reason } => write!(f, "{path}: {reason}"),
            Self::Empty => f.write_str("the archive is empty; use one with files in it"),
            Self::Read(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for ArchiveError {}

/// How an archive is read: fills a buffer from a place; the error says what kept it.
pub type ReadArchive<'a> = dyn FnMut(u64, &mut [u8]) -> Result<(), String> + 'a;

impl Archive {
    /// The members of the archive of `len` bytes that `read` gives. Contents are not read.
    ///
    /// # Errors
    /// What is wrong with it, at which byte.
    pub fn parse(len: u64, read: &mut ReadArchive<'_>) -> Result<Self, ArchiveError> {
        let mut parser = Parser {
            len,
            read,
            at: 0,
            long: Long::default(),
            members: Vec::new(),
            seen: BTreeSet::new(),
            directories: BTreeSet::new(),
        };
        let read_to = parser.all()?;
        if parser.members.is_empty() {
            return Err(ArchiveError::Empty);
        }
        Ok(Self { members: parser.members, read_to, len })
    }

    /// From members whose places are known.
    pub(crate) fn from_members(members: Vec<ArchiveMember>, read_to: u64, len: u64) -> Self {
        Self { members, read_to, len }
    }

    /// The members, in the order of the archive.
    pub fn members(&self) -> &[ArchiveMember] {
        &self.members
    }

    /// Bytes of the archive.
    pub fn bytes(&self) -> u64 {
        self.len
    }

    /// Bytes in its files.
    pub fn content_bytes(&self) -> u64 {
        let of = |member: &ArchiveMember| match member.kind {
            ArchiveMemberKind::File { len } => len,
            _ => 0,
        };
        self.members.iter().map(of).sum()
    }

    /// Bytes that tar reads before it knows that there is nothing more.
    pub(crate) fn read_to(&self) -> u64 {
        self.read_to
    }
}

/// What extension headers say about the next member.
#[derive(Debug, Default)]
struct Long {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
}

struct Parser<'a, 'b> {
    len: u64,
    read: &'a mut ReadArchive<'b>,
    at: u64,
    long: Long,
    members: Vec<ArchiveMember>,
    seen: BTreeSet<Arc<str>>,
    /// Directories, also those that only names of other members tell of.
    directories: BTreeSet<Arc<str>>,
}

impl Parser<'_, '_> {
    fn fetch(&mut self, at: u64, into: &mut [u8]) -> Result<(), ArchiveError> {
        if at.checked_add(into.len() as u64).is_none_or(|end| end > self.len) {
            return Err(ArchiveError::Truncated { at: self.at });
        }
        (self.read)(at, into).map_err(ArchiveError::Read)
    }

    /// Reads all members; gives how far tar reads.
    fn all(&mut self) -> Result<u64, ArchiveError> {
        loop {
            if self.at >= self.len {
                // No blocks of zeroes: tar finds the end by a read that gives nothing.
                return Ok(self.at.saturating_add(1));
            }
            let mut header = [0; BLOCK as usize];
            self.fetch(self.at, &mut header)?;
            if header == [0; BLOCK as usize] {
                return Ok(self.at.saturating_add(2 * BLOCK));
            }
            self.member(&header)?;
        }
    }

    fn member(&mut self, header: &[u8; 512]) -> Result<(), ArchiveError> {
        check_sum(self.at, header)?;
        let kind = header[156];
        let mut size =
            number(&header[124..136]).ok_or(ArchiveError::Number { at: self.at, field: "size" })?;
        let data_at = self.at + BLOCK;
        if matches!(kind, b'L' | b'K' | b'x' | b'g') {
            self.extension(kind, data_at, size)?;
        } else {
            let long = std::mem::take(&mut self.long);
            size = long.size.unwrap_or(size);
            size = self.plain(header, kind, long, size)?;
        }
        let padded = size.checked_next_multiple_of(BLOCK);
        let end = padded.and_then(|size| data_at.checked_add(size));
        let contents_end = data_at.checked_add(size).filter(|end| *end <= self.len);
        self.at = end.zip(contents_end).ok_or(ArchiveError::Truncated { at: self.at })?.0;
        Ok(())
    }

    fn extension(&mut self, kind: u8, at: u64, size: u64) -> Result<(), ArchiveError> {
        if size > LONGEST {
            let what = format!("an extended header of {size} bytes");
            return Err(ArchiveError::Unsupported { path: format!("byte {at}"), what });
        }
        let mut text = vec![0; size as usize];
        self.fetch(at, &mut text)?;
        match kind {
            b'L' => self.long.path = Some(up_to_zero(&text).to_vec()),
            b'K' => self.long.link = Some(up_to_zero(&text).to_vec()),
            b'x' => self.pax(at, &text)?,
            _ => {} // Global headers, as git writes them: comments.
        }
        Ok(())
    }

    /// Records `LENGTH KEY=VALUE\n`.
    fn pax(&mut self, at: u64, mut text: &[u8]) -> Result<(), ArchiveError> {
        let wrong = ArchiveError::Number { at, field: "extended header" };
        while !text.is_empty() {
            let space = text.iter().position(|byte| *byte == b' ').ok_or_else(|| wrong.clone())?;
            let len = decimal(&text[..space]).and_then(|len| usize::try_from(len).ok());
            let len = len.ok_or_else(|| wrong.clone())?;
            let record = text.get(space + 1..len).and_then(|record| record.strip_suffix(b"\n"));
            let record = record.ok_or_else(|| wrong.clone())?;
            let equals = record.iter().position(|byte| *byte == b'=');
            let (key, value) = record.split_at(equals.ok_or_else(|| wrong.clone())?);
            let value = &value[1..];
            match key {
                b"path" => self.long.path = Some(value.to_vec()),
                b"linkpath" => self.long.link = Some(value.to_vec()),
                b"size" => {
                    self.long.size = Some(decimal(value).ok_or_else(|| wrong.clone())?);
                }
                key if key.starts_with(b"GNU.sparse.") => {
                    let path = String::from_utf8_lossy(self.long.path.as_deref().unwrap_or(b"?"));
                    let (path, what) = (path.into_owned(), "a file with holes".to_string());
                    return Err(ArchiveError::Unsupported { path, what });
                }
                _ => {}
            }
            text = &text[len..];
        }
        Ok(())
    }

    /// A member that is unpacked; gives the bytes of its contents.
    fn plain(
        &mut self,
        header: &[u8; 512],
        kind: u8,
        long: Long,
        size: u64,
    ) -> Result<u64, ArchiveError> {
        let raw = long.path.unwrap_or_else(|| short_name(header));
        let names_directory = raw.ends_with(b"/");
        let path = clean(&raw)?;
        let link = long.link.unwrap_or_else(|| up_to_zero(&header[157..257]).to_vec());
        let kind = match kind {
            b'5' => ArchiveMemberKind::Directory,
            0 | b'0' if names_directory => ArchiveMemberKind::Directory,
            0 | b'0' | b'7' => ArchiveMemberKind::File { len: size },
            b'1' => ArchiveMemberKind::HardLink { to: self.linked(&path, &link)? },
            b'2' => ArchiveMemberKind::Symlink { text: symlink(&path, link)? },
            other => {
                let what = unsupported(other);
                return Err(ArchiveError::Unsupported { path: path.to_string(), what });
            }
        };
        let size = if matches!(kind, ArchiveMemberKind::File { .. }) { size } else { 0 };
        if path.is_empty() {
            // `./`, where the archive is unpacked: there already.
            return Ok(0);
        }
        if !self.seen.insert(path.clone()) {
            let reason = "is in the archive twice; pack it once";
            return Err(ArchiveError::Name { path: path.to_string(), reason });
        }
        self.check_place(&path, kind == ArchiveMemberKind::Directory)?;
        self.members.push(ArchiveMember { path, kind, data_at: self.at + BLOCK });
        Ok(size)
    }

    /// A name lies in directories only, and is none itself unless it says so.
    fn check_place(&mut self, path: &Arc<str>, is_directory: bool) -> Result<(), ArchiveError> {
        let wrong = |reason| Err(ArchiveError::Name { path: path.to_string(), reason });
        for (end, _) in path.match_indices('/') {
            let parent: Arc<str> = path[..end].into();
            if !self.directories.contains(&parent) && self.seen.contains(&parent) {
                return wrong("lies below a file or a link; pack directories as directories");
            }
            self.directories.insert(parent);
        }
        if is_directory {
            self.directories.insert(path.clone());
        } else if self.directories.contains(path) {
            return wrong("is a directory for members before it");
        }
        Ok(())
    }

    fn linked(&self, path: &str, link: &[u8]) -> Result<Arc<str>, ArchiveError> {
        let to = clean(link)?;
        if self.seen.contains(&to) {
            return Ok(to);
        }
        let reason = "is a link to what did not come before it in the archive";
        Err(ArchiveError::Name { path: path.to_string(), reason })
    }
}

fn unsupported(kind: u8) -> String {
    match kind {
        b'3' | b'4' => "a device".into(),
        b'6' => "a pipe (FIFO)".into(),
        b'S' => "a file with holes".into(),
        b'M' => "a file continued from another volume".into(),
        b'D' | b'N' | b'V' => "a record of GNU dumps".into(),
        other => format!("a member of the unknown type `{}`", char::from(other).escape_default()),
    }
}

fn up_to_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn short_name(header: &[u8; 512]) -> Vec<u8> {
    let name = up_to_zero(&header[..100]);
    // GNU's own format has other things where POSIX has the prefix.
    let prefix = if &header[257..263] == b"ustar\0" { up_to_zero(&header[345..500]) } else { &[] };
    if prefix.is_empty() { name.to_vec() } else { [prefix, b"/", name].concat() }
}

/// A path without `.`, `//` and `/` at the end.
fn clean(raw: &[u8]) -> Result<Arc<str>, ArchiveError> {
    let lossy = || String::from_utf8_lossy(raw).into_owned();
    let unsafe_name = |reason| Err(ArchiveError::Name { path: lossy(), reason });
    let Ok(text) = std::str::from_utf8(raw) else {
        return unsafe_name("is not UTF-8; use names that are");
    };
    if text.starts_with('/') {
        return unsafe_name("is absolute; pack relative names");
    }
    if text.is_empty() {
        return unsafe_name("is an empty name");
    }
    if text.split('/').any(|part| part == "..") || text.contains('\0') {
        return unsafe_name("leads out of the directory; pack names without `..`");
    }
    let parts = text.split('/').filter(|part| !part.is_empty() && *part != ".");
    Ok(parts.collect::<Vec<_>>().join("/").into())
}

/// tar makes absolute links and those with `..` last, by another sequence of calls.
fn symlink(path: &str, link: Vec<u8>) -> Result<Arc<str>, ArchiveError> {
    let text = String::from_utf8(link).unwrap_or_default();
    let is_plain = !text.starts_with('/') && text.split('/').all(|part| part != "..");
    if text.is_empty() || !is_plain {
        let what = "a symbolic link that is absolute or has `..` in it".to_string();
        return Err(ArchiveError::Unsupported { path: path.to_string(), what });
    }
    Ok(text.into())
}

fn decimal(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A number of a header: octal, or, with the first bit set, binary (GNU).
pub(crate) fn number(field: &[u8]) -> Option<u64> {
    if field.first().is_some_and(|first| *first == 0x80) {
        let (high, low) = field.split_at(field.len().saturating_sub(8));
        let fits = high.iter().skip(1).all(|byte| *byte == 0);
        return low.try_into().ok().filter(|_| fits).map(u64::from_be_bytes);
    }
    let text = std::str::from_utf8(up_to_zero(field)).ok()?.trim_matches(' ');
    if text.is_empty() {
        return Some(0);
    }
    u64::from_str_radix(text, 8).ok().filter(|_| !text.starts_with('+'))
}

/// The sum of a header's bytes, its checksum taken as spaces.
pub(crate) fn sum(header: &[u8; 512]) -> u64 {
    let bytes = header.iter().enumerate();
    bytes.map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u64::from(*byte) }).sum()
}

fn check_sum(at: u64, header: &[u8; 512]) -> Result<(), ArchiveError> {
    let wrong = ArchiveError::Checksum { at };
    match number(&header[148..156]) {
        Some(told) if told == sum(header) => Ok(()),
        _ => Err(wrong),
    }
}
