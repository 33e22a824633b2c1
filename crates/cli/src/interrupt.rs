//! Ctrl-C, and requests to terminate: a flag that everything long looks at.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

static FLAG: AtomicBool = AtomicBool::new(false);
static INSTALLED: OnceLock<Result<(), String>> = OnceLock::new();

/// Installs the handler on first use; gives the flag it sets.
///
/// A second Ctrl-C does not kill: what is being removed is removed to the end.
pub(crate) fn flag() -> Result<&'static AtomicBool, Failure> {
    let installed = INSTALLED.get_or_init(|| {
        ctrlc::set_handler(|| FLAG.store(true, Ordering::Relaxed)).map_err(|e| e.to_string())
    });
    installed.clone().map_err(|error| Failure::failed(format!("cannot catch Ctrl-C: {error}")))?;
    Ok(&FLAG)
}
