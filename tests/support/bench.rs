//! What benches have in common: the clock, and the lines that `cargo xtask bench --against` reads.
//!
//! Used from a bench by `#[path = "../../../tests/support/bench.rs"] mod bench;`. It needs nothing but the
//! standard library, as it is laid into older trees together with the benches.
#![allow(dead_code, reason = "no bench uses every helper")]

/// How often [`print_lines`] measures each case. Spans are short and many, so that the median is of those that
/// nothing else on the machine has hit.
const SAMPLES: usize = 15;

/// Whether this run is to print lines instead of a table: once all cases, for one of many rounds.
pub(crate) fn lines_asked() -> bool {
    std::env::args().skip(1).any(|argument| argument == "--lines")
}

/// Prints a line for each case: its name, a tab, and the median of the nanoseconds that `sample` gives. The
/// cases take turns.
pub(crate) fn print_lines<T>(
    cases: &mut [T],
    name: impl Fn(&T) -> String,
    mut sample: impl FnMut(&mut T) -> f64,
) {
    let mut samples = vec![Vec::with_capacity(SAMPLES); cases.len()];
    for _ in 0..SAMPLES {
        for (case, samples) in cases.iter_mut().zip(&mut samples) {
            samples.push(sample(case));
        }
    }
    for (case, samples) in cases.iter().zip(&mut samples) {
        samples.sort_by(f64::total_cmp);
        println!("{}\t{:.3}", name(case), samples[SAMPLES / 2]);
    }
}

/// Nanoseconds that this thread has been on a CPU, so that other work on the machine counts little; elsewhere
/// than on Linux, nanoseconds that have passed.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub(crate) fn cpu_time() -> f64 {
    use std::ffi::{c_int, c_long};

    #[repr(C)]
    struct Timespec {
        seconds: c_long,
        nanos: c_long,
    }
    // SAFETY: clock_gettime(2) of the C library, which the standard library links too.
    unsafe extern "C" {
        fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
    }
    /// `CLOCK_THREAD_CPUTIME_ID`, clock_gettime(2).
    const OF_THREAD: c_int = 3;

    let mut time = Timespec { seconds: 0, nanos: 0 };
    // SAFETY: it writes one timespec, which on Linux of 64 bits is laid out like this.
    let failed = unsafe { clock_gettime(OF_THREAD, &raw mut time) };
    assert_eq!(failed, 0, "there is a clock of the thread's CPU time");
    time.seconds as f64 * 1e9 + time.nanos as f64
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
pub(crate) fn cpu_time() -> f64 {
    use std::sync::LazyLock;
    use std::time::Instant;

    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_nanos() as f64
}
