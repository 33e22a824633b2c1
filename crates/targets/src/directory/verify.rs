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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;
    use std::sync::Arc;

    use raidlab_workload::SeededBytes;

    use super::*;

    static GO: AtomicBool = AtomicBool::new(false);

    /// Files of lengths about those of the pieces that are made and compared at once: all of each is made, and all of
    /// it is compared, with how long it is.
    #[test]
    fn every_byte_is_made_and_compared() {
        let directory = std::env::temp_dir().join(format!("raidlab-verify-{}", std::process::id()));
        std::fs::create_dir(&directory).expect("a new directory");
        let step = STEP as u64;
        for len in [0, 1, 4_097, step - 1, step, step + 1, 2 * step + 77] {
            let bytes = SeededBytes { seed: 5, len };
            let source = SourceFile { name: format!("{len}").into(), bytes: Arc::new(bytes) };
            make_sources(&directory, &[source], &GO).expect("made");
            let path = directory.join(format!("{len}"));
            let compared = || {
                let mut file = File::options().read(true).write(true).open(&path).expect("there");
                let mut memory = (vec![0; STEP], vec![0; STEP]);
                compare(&mut file, &path, &bytes, &mut memory, &GO)
            };
            assert!(compared().is_ok(), "{len}");
            let wrong = |at: u64| {
                let error = compared().expect_err("it differs");
                assert_eq!(error.kind(), EngineErrorKind::Mismatch, "{error}");
                assert_eq!(error.offset(), Some(at), "{at} of {len}: {error}");
            };
            let file = File::options().read(true).write(true).open(&path).expect("there");
            for at in [0, 1, 4_096, step - 1, step, 2 * step, len.saturating_sub(1)] {
                let mut byte = [0];
                if at < len {
                    file.read_exact_at(&mut byte, at).expect("read");
                    file.write_all_at(&[!byte[0]], at).expect("written");
                    wrong(at);
                    file.write_all_at(&byte, at).expect("written");
                }
            }
            file.set_len(len + 1).expect("longer");
            wrong(len);
            if len > 0 {
                file.set_len(len - 1).expect("shorter");
                wrong(len - 1);
            }
        }
        std::fs::remove_dir_all(&directory).expect("ours");
    }
}
