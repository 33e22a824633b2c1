//! The memory allocator of raidlab's command: mimalloc. Modelled hosts create and drop a hundred thousand files a
//! second; with the system's allocator a replay takes a seventh longer.
//!
//! It knows nothing of raidlab. Libraries must not use it, since the choice of an allocator is the program's. A program
//! that links this crate takes all its memory from it. Called once at the start, [`keep_freed_memory`] makes the
//! allocator keep freed memory for 1,000 milliseconds:
//!
//! ```
//! raidlab_allocator::keep_freed_memory();
//! let numbers: Vec<u64> = (1..=1_000).collect();
//! assert_eq!(numbers.iter().sum::<u64>(), 500_500);
//! ```

use std::ffi::{c_int, c_long};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of mimalloc 2: for how many milliseconds freed memory is kept.
const PURGE_DELAY: c_int = 15;

/// Keeps freed memory for a second, unless the environment says otherwise (`MIMALLOC_PURGE_DELAY`, in
/// milliseconds): by default it goes back to the kernel after 10 ms, so that each of many runs in a row has
/// all of its memory cleared anew, a thirtieth of a replay.
pub fn keep_freed_memory() {
    set_default(PURGE_DELAY, 1_000);
}

fn set_default(option: c_int, value: c_long) {
    // SAFETY: options are numbers in a table that the function checks the index of; they may be set at any
    // time, from any thread.
    unsafe { libmimalloc_sys::mi_option_set_default(option, value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(option: c_int) -> c_long {
        // SAFETY: as for setting.
        unsafe { libmimalloc_sys::mi_option_get(option) }
    }

    #[test]
    fn freed_memory_is_kept_for_a_second() {
        if std::env::var_os("MIMALLOC_PURGE_DELAY").is_some() {
            eprintln!("skipped: the environment says how long");
            return;
        }
        // The default tells that this is the option it is taken for.
        assert_eq!(get(PURGE_DELAY), 10);
        keep_freed_memory();
        assert_eq!(get(PURGE_DELAY), 1_000);
    }
}
