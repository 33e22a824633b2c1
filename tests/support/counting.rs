//! The system's allocator, counting: for tests that nothing is allocated.
//!
//! Used from the tests of a crate by `#[path = "../../../tests/support/counting.rs"] mod counting;`.
#![allow(dead_code, reason = "no test uses every helper")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    static OF_THREAD: Cell<u64> = const { Cell::new(0) };
}

static OF_ALL: AtomicU64 = AtomicU64::new(0);

struct Counting;

fn count() {
    OF_ALL.fetch_add(1, Ordering::Relaxed);
    // A thread that is ending has nothing to count with any more.
    let _ = OF_THREAD.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: everything is handed to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    // SAFETY: the caller's promises are those that the system's allocator asks for.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    // SAFETY: the caller's promises are those that the system's allocator asks for.
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }

    // SAFETY: the caller's promises are those that the system's allocator asks for.
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, bytes) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often this thread has taken memory, or taken it anew; those of the test harness are none of it.
pub(crate) fn of_this_thread() -> u64 {
    OF_THREAD.get()
}

/// The same of all threads.
pub(crate) fn of_all_threads() -> u64 {
    OF_ALL.load(Ordering::Relaxed)
}

/// How often `work` takes memory, or takes it anew, on this thread.
pub(crate) fn allocations(work: impl FnOnce()) -> u64 {
    let before = of_this_thread();
    work();
    of_this_thread() - before
}
