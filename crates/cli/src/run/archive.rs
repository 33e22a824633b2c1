//! `tar-xf archive=FILE`: the user's own archive.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use raidlab_workload::{Archive, Bytes, Parameters, TarXf, Workload};

use crate::failure::Failure;

/// An archive in a file.
#[derive(Debug)]
struct ArchiveFile {
    file: File,
    len: u64,
}

impl Bytes for ArchiveFile {
    fn len(&self) -> u64 {
        self.len
    }

    fn fill(&self, at: u64, into: &mut [u8]) {
        // The file was read from start to end before; should it shrink now, what is missing are zeroes,
        // which the comparison after the run finds.
        if self.file.read_exact_at(into, at).is_err() {
            into.fill(0);
        }
    }
}

/// The workload that unpacks the archive named by the parameter at `position`.
pub(super) fn workload(
    mut pairs: Vec<(String, String)>,
    position: usize,
) -> Result<Arc<dyn Workload>, Failure> {
    let (_, path) = pairs.remove(position);
    let wrong = |what: String| Failure::input(format!("archive={path}: {what}"));
    let file = File::open(&path).map_err(|error| wrong(error.to_string()))?;
    let metadata = file.metadata().map_err(|error| wrong(error.to_string()))?;
    if !metadata.is_file() {
        return Err(wrong("is not a regular file".into()));
    }
    let len = metadata.len();
    let mut read = |at, into: &mut [u8]| {
        file.read_exact_at(into, at).map_err(|error| format!("byte {at}: {error}"))
    };
    let archive = Archive::parse(len, &mut read).map_err(|error| wrong(error.to_string()))?;
    let bytes = Arc::new(ArchiveFile { file, len });
    let made = Parameters::new(pairs).and_then(|given| TarXf::of(archive, bytes, given));
    Ok(Arc::new(made.map_err(|error| Failure::input(format!("tar-xf: {error}")))?))
}
