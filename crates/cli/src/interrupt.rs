//! Ctrl-C, and requests to terminate: a flag that everything long looks at.

use std::cell::Cell;
use std::io::{PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

static FLAG: AtomicBool = AtomicBool::new(false);
static PIPE: OnceLock<(PipeReader, PipeWriter)> = OnceLock::new();
static INSTALLED: OnceLock<Result<(), String>> = OnceLock::new();

thread_local! {
    /// What stops this thread's work, where another program has raidlab within itself.
    static OWN: Cell<Option<&'static AtomicBool>> = const { Cell::new(None) };
}

/// Does something that ends when the flag is set: Ctrl-C is the business of the program that has raidlab within
/// itself, and no handler is installed.
pub(crate) fn stopped_by<T>(stop: &'static AtomicBool, work: impl FnOnce() -> T) -> T {
    let _ = INSTALLED.set(Ok(()));
    OWN.set(Some(stop));
    let done = work();
    OWN.set(None);
    done
}

/// Installs the handler on first use; gives the flag it sets, or this thread's own.
///
/// A second Ctrl-C does not kill: what is being removed is removed to the end.
pub(crate) fn flag() -> Result<&'static AtomicBool, Failure> {
    let installed = INSTALLED.get_or_init(|| {
        ctrlc::set_handler(|| {
            FLAG.store(true, Ordering::Relaxed);
            if let Some((_, writer)) = PIPE.get() {
                // Whoever waits is woken by one byte, however many there are.
                let _ = (&*writer).write(&[0]);
            }
        })
        .map_err(|e| e.to_string())
    });
    installed.clone().map_err(|error| Failure::failed(format!("cannot catch Ctrl-C: {error}")))?;
    Ok(OWN.get().unwrap_or(&FLAG))
}

/// What becomes readable on Ctrl-C, for those that wait for descriptors.
pub(crate) fn descriptor() -> Result<BorrowedFd<'static>, Failure> {
    let flag = flag()?;
    if PIPE.get().is_none() {
        let made = std::io::pipe()
            .map_err(|error| Failure::failed(format!("cannot catch Ctrl-C: {error}")))?;
        // Another thread may have made one meanwhile, which is as good.
        let _ = PIPE.set(made);
    }
    let (reader, writer) = PIPE.get().ok_or_else(|| Failure::failed("no pipe for Ctrl-C"))?;
    if flag.load(Ordering::Relaxed) {
        let _ = (&*writer).write(&[0]);
    }
    Ok(reader.as_fd())
}
