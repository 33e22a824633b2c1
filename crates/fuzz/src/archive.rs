//! Archives of the user's.

use std::collections::BTreeSet;
use std::sync::Arc;

use raidlab_workload::null::NullTarget;
use raidlab_workload::{Archive, ArchiveMemberKind, Bytes, Parameters, Setting, TarXf, Workload};

/// An archive in memory.
#[derive(Debug)]
struct Memory(Vec<u8>);

impl Bytes for Memory {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn fill(&self, at: u64, into: &mut [u8]) {
        into.copy_from_slice(&self.0[at as usize..][..into.len()]);
    }
}

/// Bytes of a header, and where its checksum lies in it.
const HEADER: usize = 512;
const CHECKSUM: std::ops::Range<usize> = 148..156;

/// An archive, its first byte aside: when that is odd, every block that looks like a header gets the checksum that it
/// should have, so that more than the checksum is tried. What is read stays below where it is unpacked and within the
/// archive, and can be unpacked.
pub fn tar(data: &[u8]) {
    let Some((how, archive)) = data.split_first() else { return };
    let mut bytes = archive.to_vec();
    if how % 2 == 1 {
        bytes.chunks_exact_mut(HEADER).for_each(seal);
    }
    let len = bytes.len() as u64;
    let mut read = |at: u64, into: &mut [u8]| {
        into.copy_from_slice(&bytes[at as usize..][..into.len()]);
        Ok(())
    };
    let archive = match Archive::parse(len, &mut read) {
        Ok(archive) => archive,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let mut paths = BTreeSet::new();
    for member in archive.members() {
        assert!(paths.insert(member.path.clone()), "{} is there twice", member.path);
        assert!(!member.path.starts_with('/') && member.path.split('/').all(|part| part != ".."));
        if let ArchiveMemberKind::File { len: size } = member.kind {
            assert!(member.data_at.checked_add(size).is_some_and(|end| end <= len), "{member:?}");
        }
    }
    assert!(archive.content_bytes() <= len);
    let none = Parameters::new([("", ""); 0]).expect("there are none");
    let unpacked = TarXf::of(archive, Arc::new(Memory(bytes)), none).expect("has no parameters");
    let plan = unpacked.plan(&Setting::new(1, 1)).expect("is unpacked anywhere");
    let done = NullTarget::default().run(plan);
    assert!(done.is_ok(), "{done:?}");
}

fn seal(header: &mut [u8]) {
    if !header.iter().any(|byte| *byte != 0) {
        return;
    }
    header[CHECKSUM].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[CHECKSUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}
