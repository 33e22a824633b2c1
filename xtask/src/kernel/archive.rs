//! An archive that the kernel unpacks into its first root: cpio, "new ASCII". The same entries give the same bytes:
//! sorted by name, without owners, times and numbers of this machine.

use std::collections::BTreeMap;

const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const CHARACTER_DEVICE: u32 = 0o020_000;

/// What stands under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Directory,
    File {
        mode: u32,
        contents: Vec<u8>,
    },
    /// A symbolic link, and where it leads.
    Link(String),
    /// The device of the kernel's console.
    Console,
}

/// Entries by name.
#[derive(Debug, Default)]
pub(crate) struct Archive(BTreeMap<String, Entry>);

impl Archive {
    /// Adds an entry, unless there is one of that name.
    pub(crate) fn add(&mut self, name: &str, entry: Entry) {
        self.0.entry(name.to_owned()).or_insert(entry);
    }

    /// All of it. Directories come before what is in them, as their names are shorter.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut raw = Vec::new();
        for (number, (name, entry)) in self.0.iter().enumerate() {
            let (mode, contents, device) = match entry {
                Entry::Directory => (DIRECTORY | 0o755, &[][..], [0, 0]),
                Entry::File { mode, contents } => (FILE | mode, &contents[..], [0, 0]),
                Entry::Link(to) => (LINK | 0o777, to.as_bytes(), [0, 0]),
                Entry::Console => (CHARACTER_DEVICE | 0o600, &[][..], [5, 1]),
            };
            put(&mut raw, number as u32 + 1, name, (mode, contents, device));
        }
        put(&mut raw, 0, "TRAILER!!!", (0, &[], [0, 0]));
        raw
    }
}

fn put(
    raw: &mut Vec<u8>,
    number: u32,
    name: &str,
    (mode, contents, [major, minor]): (u32, &[u8], [u32; 2]),
) {
    let lengths = (contents.len() as u32, name.len() as u32 + 1);
    // Number, mode, owner, group, links, time, length, device, device of its own, length of the name, checksum.
    let fields = [number, mode, 0, 0, 1, 0, lengths.0, 0, 0, major, minor, lengths.1, 0]
        .map(|field| format!("{field:08x}"));
    raw.extend_from_slice(b"070701");
    fields.iter().for_each(|field| raw.extend_from_slice(field.as_bytes()));
    raw.extend_from_slice(name.as_bytes());
    raw.push(0);
    raw.resize(raw.len().next_multiple_of(4), 0);
    raw.extend_from_slice(contents);
    raw.resize(raw.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_sorted_and_the_first_of_a_name_counts() {
        let mut one = Archive::default();
        one.add("b", Entry::Link("a".to_owned()));
        one.add("a", Entry::File { mode: 0o755, contents: b"text".to_vec() });
        let mut other = Archive::default();
        other.add("a", Entry::File { mode: 0o755, contents: b"text".to_vec() });
        other.add("b", Entry::Link("a".to_owned()));
        other.add("b", Entry::Directory);
        assert_eq!(one.bytes(), other.bytes());
    }

    #[test]
    fn an_entry_has_the_form_that_the_kernel_reads() {
        let mut archive = Archive::default();
        archive.add("init", Entry::File { mode: 0o755, contents: b"#!a\n!".to_vec() });
        let raw = archive.bytes();
        assert!(raw.starts_with(b"07070100000001000081ed"));
        // 110 bytes of head and "init" with its zero are 115; the contents begin at 116 and end at 121.
        assert_eq!(&raw[110..116], b"init\0\0");
        assert_eq!(&raw[116..121], b"#!a\n!");
        assert_eq!(&raw[121..124], [0; 3]);
        assert!(raw[124..].starts_with(b"070701"));
        assert!(raw.trim_ascii_end().windows(10).any(|part| part == b"TRAILER!!!"));
        assert!(raw.len().is_multiple_of(4));
    }
}
