//! Jobs that do not depend on each other, on threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use crate::failure::Failure;

/// How many threads to use: as many as asked for, else one a CPU.
pub(crate) fn threads(asked: Option<u32>) -> usize {
    let available = || thread::available_parallelism().map_or(1, usize::from);
    asked.map_or_else(available, |count| count as usize)
}

/// Why not all jobs were done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended<E> {
    Interrupted,
    /// Of those that failed, the first by its number.
    Failed(E),
}

impl From<Ended<Failure>> for Failure {
    fn from(ended: Ended<Failure>) -> Self {
        match ended {
            Ended::Interrupted => Self::Interrupted,
            Ended::Failed(failure) => failure,
        }
    }
}

/// Does the jobs 0 to `count` on so many threads; gives what they came to, in their order. `told` is told after each
/// how many are done and which one it was. After a failure, or when `stop` is set, no more are begun.
pub(crate) fn all<T: Send, E: Send>(
    count: usize,
    threads: usize,
    stop: &AtomicBool,
    mut told: impl FnMut(usize, usize),
    one: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, Ended<E>> {
    let (next, (send, receive)) = (AtomicUsize::new(0), channel());
    let mut results: Vec<Option<T>> = (0..count).map(|_| None).collect();
    let mut failure: Option<(usize, E)> = None;
    thread::scope(|scope| {
        for _ in 0..threads.min(count) {
            let (send, next, one) = (send.clone(), &next, &one);
            scope.spawn(move || {
                loop {
                    let job = next.fetch_add(1, Ordering::Relaxed);
                    // Who listens has an error already.
                    if job >= count || send.send((job, one(job))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        for (done, (job, result)) in receive.iter().enumerate() {
            told(done + 1, job);
            match result {
                Ok(result) => results[job] = Some(result),
                Err(error) => {
                    next.store(count, Ordering::Relaxed);
                    if failure.as_ref().is_none_or(|(of, _)| job < *of) {
                        failure = Some((job, error));
                    }
                }
            }
            if stop.load(Ordering::Relaxed) {
                next.store(count, Ordering::Relaxed);
            }
        }
    });
    match failure {
        _ if stop.load(Ordering::Relaxed) => Err(Ended::Interrupted),
        Some((_, error)) => Err(Ended::Failed(error)),
        None => results.into_iter().collect::<Option<_>>().ok_or(Ended::Interrupted),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn results_come_in_the_order_of_jobs_and_the_first_failure_counts() {
        let stop = AtomicBool::new(false);
        for threads in [1, 3, 50] {
            let seen = RefCell::new(Vec::new());
            let told = |done, job| seen.borrow_mut().push((done, job));
            let squares = all(20, threads, &stop, told, |job| Ok::<_, ()>(job * job));
            assert_eq!(squares, Ok((0..20).map(|job| job * job).collect()), "{threads}");
            let mut seen = seen.into_inner();
            assert!(seen.iter().map(|(done, _)| *done).eq(1..=20));
            seen.sort_by_key(|(_, job)| *job);
            assert!(seen.iter().map(|(_, job)| *job).eq(0..20));
            let odd = |job: usize| if job >= 7 { Err(job) } else { Ok(job) };
            assert_eq!(all(20, threads, &stop, |_, _| {}, odd), Err(Ended::Failed(7)), "{threads}");
        }
        assert_eq!(all(0, 3, &stop, |_, _| {}, |_| Ok::<(), ()>(())), Ok(Vec::new()));
    }

    #[test]
    fn no_job_is_begun_after_a_stop() {
        let stop = AtomicBool::new(false);
        let begun = AtomicUsize::new(0);
        let ended = all(
            1000,
            1,
            &stop,
            |_, _| stop.store(true, Ordering::Relaxed),
            |_| {
                begun.fetch_add(1, Ordering::Relaxed);
                // Until whoever listens has set it.
                while !stop.load(Ordering::Relaxed) && begun.load(Ordering::Relaxed) > 1 {
                    thread::yield_now();
                }
                Ok::<(), ()>(())
            },
        );
        assert_eq!(ended, Err(Ended::Interrupted));
        assert!(begun.load(Ordering::Relaxed) < 1000);
    }
}
