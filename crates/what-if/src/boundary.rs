//! What a browser's worker calls: texts go in and out through memory.
//!
//! The worker asks for room by [`allocate`], writes a study's text there, and calls [`plan`] or [`run`], which take
//! that memory back and give the answer's address and length; it reads the answer and gives it back by [`release`].
#![allow(unsafe_code)]

use std::panic;
use std::sync::Once;

use serde_json::Value;

// SAFETY: what the worker hands in has these types: `page` in page/worker.js.
#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// So many runs of cells are done, of so many.
    fn progress(done: u32, total: u32);
    /// A defect of raidlab's, in words; the call ends by a trap.
    fn failed(at: *const u8, length: usize);
}

/// Room for a text of so many bytes.
// SAFETY: nothing else of the program has this name, nor those of the functions below.
#[unsafe(no_mangle)]
extern "C" fn allocate(length: usize) -> *mut u8 {
    Box::into_raw(vec![0_u8; length].into_boxed_slice()).cast()
}

/// Gives an answer back.
///
/// # Safety
/// `at` and `length` are those of one answer, which nobody reads any more.
#[unsafe(no_mangle)]
unsafe extern "C" fn release(at: *mut u8, length: usize) {
    // SAFETY: as the caller promises; answers are boxes of so many bytes, see `handed_out`.
    drop(unsafe { taken(at, length) });
}

/// [`crate::plan`] of a text.
///
/// # Safety
/// `at` is from [`allocate`] with this length, and used once.
#[unsafe(no_mangle)]
unsafe extern "C" fn plan(at: *mut u8, length: usize) -> u64 {
    // SAFETY: as the caller promises.
    let text = unsafe { taken(at, length) };
    handed_out(&crate::plan(&words(&text)))
}

/// [`crate::run`] of a text; without rounds where that is 0.
///
/// # Safety
/// `at` is from [`allocate`] with this length, and used once.
#[unsafe(no_mangle)]
unsafe extern "C" fn run(at: *mut u8, length: usize, rounds: u32) -> u64 {
    // SAFETY: as the caller promises.
    let text = unsafe { taken(at, length) };
    let mut told = |done: usize, total: usize| {
        // SAFETY: takes numbers and gives nothing.
        unsafe { progress(done as u32, total as u32) }
    };
    handed_out(&crate::run(&words(&text), (rounds > 0).then_some(rounds), &mut told))
}

/// The memory of a text, which is ours again.
///
/// # Safety
/// `at` and `length` are of a box that was handed out, by [`allocate`] or as an answer, and taken back once.
unsafe fn taken(at: *mut u8, length: usize) -> Box<[u8]> {
    static PREPARED: Once = Once::new();
    PREPARED.call_once(|| panic::set_hook(Box::new(|defect| tell(&defect.to_string()))));
    // SAFETY: as the caller promises.
    unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(at, length)) }
}

fn words(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// The address of an answer in the upper half, its length in the lower.
fn handed_out(answer: &Value) -> u64 {
    let text = answer.to_string().into_bytes().into_boxed_slice();
    let length = text.len() as u64;
    let at = Box::into_raw(text).cast::<u8>() as usize as u64;
    at << 32 | length
}

fn tell(defect: &str) {
    // SAFETY: the text lives until the call is over, and is read within it.
    unsafe { failed(defect.as_ptr(), defect.len()) }
}
