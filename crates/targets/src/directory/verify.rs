//! Files from elsewhere, made before a run, and files compared with what is expected, after it.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use raidlab_engine::{EngineError, EngineErrorKind};
use raidlab_workload::{Bytes, Expected, OpenFlags, SourceFile};

use super::files::Roots;
use super::system;

/// Bytes that are made or compared at once.
const STEP: usize = 1 << 20;

fn check(cancel: &AtomicBool, operation: &'static str) -> Result<(), EngineError> {
    if cancel.load(Ordering::Relaxed) { Err(EngineError::cancelled(operation)) } else { Ok(()) }
}

/// Makes the files from elsewhere below `directory`, with the directories they lie in.
pub(super) fn make_sources(
    directory: &Path,
    sources: &[SourceFile],
    cancel: &AtomicBool,
) -> Result<(), EngineError> {
    const MAKE: &str = "make a file from elsewhere";
    let mut bytes = vec![0; STEP];
    for source in sources {
        if source.name.split('/').any(|part| part.is_empty() || part == "..") {
            let reason = format!("`{}` is not a name below a directory", source.name);
            return Err(EngineError::new(EngineErrorKind::InvalidRequest, MAKE, reason));
        }
        let path = directory.join(&*source.name);
        let failed = |error| EngineError::io(MAKE, &path, error);
        path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(failed)?;
        let mut file = File::create_new(&path).map_err(failed)?;
        let mut at = 0;
        while at < source.bytes.len() {
            check(cancel, MAKE)?;
            let len = (source.bytes.len() - at).min(STEP as u64) as usize;
            source.bytes.fill(at, &mut bytes[..len]);
            file.write_all(&bytes[..len]).map_err(failed)?;
            at += len as u64;
        }
    }
    Ok(())
}

/// Compares every file with what is expected in it.
pub(super) fn verify(
    roots: &Roots,
    expected: &[Expected],
    cancel: &AtomicBool,
) -> Result<(), EngineError> {
    let mut memory = (vec![0; STEP], vec![0; STEP]);
    for one in expected {
        let path = roots.full(&one.path);
        let opened = roots.open_file(&one.path, OpenFlags::READ, &mut Vec::new());
        let mut file = File::from(opened?);
        // What the drives hold is to be compared, not what memory does: written down first, since only
        // that can be dropped. Where nothing can be dropped, what is there is compared.
        let synced = system::fsync(&file);
        synced.map_err(|error| EngineError::io("fsync", &path, error))?;
        let _ = system::drop_cached(&file);
        compare(&mut file, &path, one.bytes.as_ref(), &mut memory, cancel)?;
    }
    Ok(())
}

const VERIFY: &str = "verify a file after the run";

fn compare(
    file: &mut File,
    path: &Path,
    bytes: &dyn Bytes,
    (found, wanted): &mut (Vec<u8>, Vec<u8>),
    cancel: &AtomicBool,
) -> Result<(), EngineError> {
    let differs = |at: u64, reason: String| {
        EngineError::new(EngineErrorKind::Mismatch, VERIFY, reason).at_path(path).at_offset(at)
    };
    let failed = |error| EngineError::io(VERIFY, path, error);
    let len = file.metadata().map_err(failed)?.len();
    let mut at = 0;
    while at < bytes.len().min(len) {
        check(cancel, VERIFY)?;
        let step = (bytes.len().min(len) - at).min(STEP as u64) as usize;
        file.read_exact(&mut found[..step]).map_err(failed)?;
        bytes.fill(at, &mut wanted[..step]);
        if found[..step] != wanted[..step] {
            let first = found.iter().zip(&*wanted).position(|(found, wanted)| found != wanted);
            let first = first.unwrap_or(0);
            let reason = format!(
                "{:#04x} was read where {:#04x} was written: the data are damaged",
                found[first], wanted[first]
            );
            return Err(differs(at + first as u64, reason));
        }
        at += step as u64;
    }
    if len != bytes.len() {
        return Err(differs(
            at,
            format!("the file has {len} bytes, {} were expected", bytes.len()),
        ));
    }
    Ok(())
}
