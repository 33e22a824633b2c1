//! What memory holds of the target when a run starts: written down, dropped, and told in words.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use raidlab_engine::EngineError;
use raidlab_workload::Memory;

use super::files::Roots;
use super::system;
use super::worker_pool::Warnings;

/// Where root drops the caches of the whole system: `proc_sys_vm(5)`.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Writes everything down and drops what the plan says; gives in words what memory holds then.
pub(super) fn settle(
    memory: Memory,
    roots: &Roots,
    system_caches: bool,
    warnings: &Warnings,
) -> Result<String, EngineError> {
    if memory != Memory::JustWritten {
        // Only what has been written down can be dropped.
        system::sync_all();
    }
    let state = match memory {
        Memory::AsIs => "as it was: synced, nothing dropped".to_string(),
        Memory::JustWritten => "as preparing left it: neither synced nor dropped".to_string(),
        Memory::Cold => format!("cold: synced, then {}", drop_all(roots, system_caches, warnings)?),
        Memory::Warm => format!(
            "warm: synced, {}, then what the run is to find was read",
            drop_all(roots, system_caches, warnings)?
        ),
    };
    if let Some((file, path)) = roots.directories().next() {
        if matches!(memory, Memory::Cold | Memory::Warm)
            && system::is_in_memory(file.as_fd()).unwrap_or(false)
        {
            warnings.add(format!(
                "{} is a filesystem in memory: nothing of it can be dropped, and no drive is measured",
                path.display()
            ));
        }
        return Ok(match read_ahead(file) {
            Some(kib) => format!("{state}; read-ahead {kib} KiB"),
            None => format!("{state}; read-ahead not known"),
        });
    }
    Ok(state)
}

fn drop_all(
    roots: &Roots,
    system_caches: bool,
    warnings: &Warnings,
) -> Result<&'static str, EngineError> {
    if system_caches {
        match std::fs::write(DROP_CACHES, "3") {
            Ok(()) => return Ok("the caches of the whole system dropped (drop_caches = 3)"),
            Err(error) => warnings.add(format!(
                "the caches of the system could not be dropped ({DROP_CACHES}: {error}): the target's own \
                 files were dropped instead; names and what lies below the filesystem may still be in memory"
            )),
        }
    }
    for (_, path) in roots.directories() {
        drop_files(path)
            .map_err(|error| EngineError::io("drop what memory holds of files", path, error))?;
    }
    Ok("the target's files dropped (posix_fadvise)")
}

/// Drops what memory holds of all files below a directory.
fn drop_files(directory: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            drop_files(&entry.path())?;
        } else if kind.is_file() {
            let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
            let file =
                std::fs::OpenOptions::new().read(true).custom_flags(flags).open(entry.path())?;
            system::drop_cached(&file)?;
        }
    }
    Ok(())
}

/// The read-ahead of the device a directory lies on, in KiB: sysfs by device number, of the disk where
/// that is a partition, or of the filesystem where it has no device of its own.
fn read_ahead(directory: &File) -> Option<u64> {
    let device = directory.metadata().ok()?.dev();
    let number = format!("{}:{}", libc::major(device), libc::minor(device));
    let places = [
        format!("/sys/class/bdi/{number}/read_ahead_kb"),
        format!("/sys/dev/block/{number}/queue/read_ahead_kb"),
        format!("/sys/dev/block/{number}/../queue/read_ahead_kb"),
    ];
    let text = places.iter().find_map(|place| std::fs::read_to_string(place).ok())?;
    text.trim().parse().ok()
}
