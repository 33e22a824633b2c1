//! Panics, which the core never has on any input: where one is caught, it is a broken promise like others,
//! with its log and what replays it.

use std::panic::AssertUnwindSafe;

use crate::breach::Breach;

/// Runs something; gives what it panicked with.
///
/// What it borrowed is left as it was at that moment: fit for reading its log, and for nothing else.
pub(crate) fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    std::panic::catch_unwind(AssertUnwindSafe(run)).map_err(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        format!("the code panicked: {}", text.unwrap_or("without a message"))
    })
}

/// The same where what is run ends with a broken promise, if any.
pub(crate) fn caught_as_broken(run: impl FnOnce() -> Option<Breach>) -> Option<Breach> {
    caught(run).unwrap_or_else(|what| Some(what.into()))
}
