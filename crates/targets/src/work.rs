//! What a process uses the CPU for, really done.

use raidlab_core::Nanos;
use raidlab_workload::processes::Work;

/// Does it on this thread. Asks `go_on` now and then and ends early with its error.
///
/// So much time is time on the CPU, not by the clock, on all real targets: processes that share a processor take
/// longer, as programs do. Where one thread serves all processes, the others wait for it, as they would for the CPU.
pub(crate) fn carry_out<E>(work: Work, go_on: impl FnMut() -> Result<(), E>) -> Result<(), E> {
    match work {
        Work::Time(time) => spin(time, go_on),
        Work::StdioBytes(bytes) => put(bytes, go_on),
    }
}

fn spin<E>(time: Nanos, mut go_on: impl FnMut() -> Result<(), E>) -> Result<(), E> {
    let end = thread_time() + time;
    while thread_time() < end {
        go_on()?;
        (0..100).for_each(|_| std::hint::spin_loop());
    }
    Ok(())
}

/// CPU time of this thread to the nanosecond.
fn thread_time() -> Nanos {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Work byte by byte, as `putc` and `getc` of the C library do it: a byte goes into a buffer, unless that is full. Asks
/// `go_on` before each 4 KiB.
fn put<E>(bytes: u64, mut go_on: impl FnMut() -> Result<(), E>) -> Result<(), E> {
    let mut buffer = [0_u8; 4_096];
    let mut left = bytes;
    while left > 0 {
        go_on()?;
        let now = left.min(buffer.len() as u64) as usize;
        for (index, byte) in buffer[..now].iter_mut().enumerate() {
            *byte = std::hint::black_box(index as u8);
        }
        std::hint::black_box(&buffer);
        left -= now as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computing_is_time_on_the_cpu() {
        let before = thread_time();
        std::thread::sleep(std::time::Duration::from_millis(5));
        let slept = thread_time();
        assert!(slept.0 - before.0 < 4_000_000, "sleep is none");
        assert_eq!(carry_out(Work::Time(Nanos::from_millis(2)), || Ok::<_, ()>(())), Ok(()));
        assert!(thread_time().0 - slept.0 >= 2_000_000);
        assert_eq!(carry_out(Work::Time(Nanos(u64::MAX / 2)), || Err(7)), Err(7));
    }

    #[test]
    fn all_is_done_in_pieces_unless_somebody_says_stop() {
        let most = |limit: u32| {
            let mut asked = 0;
            move || {
                asked += 1;
                if asked > limit { Err(asked) } else { Ok(()) }
            }
        };
        assert_eq!(put(0, most(0)), Ok(()), "nothing to do");
        assert_eq!(put(3 * 4_096 + 1, most(4)), Ok(()), "four pieces");
        assert_eq!(put(4 * 4_096 + 1, most(4)), Err(5), "a fifth");
        assert_eq!(put(u64::MAX, most(2)), Err(3));
    }
}
