//! The runs of a search on threads, with progress.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use raidlab_advise::{Measured, NoAdvice, Pool};

use crate::progress::Bar;

/// Threads that runs are shared out to.
pub(super) struct Threads<'a> {
    pub(super) count: usize,
    pub(super) bar: &'a Bar,
    pub(super) stop: &'static AtomicBool,
}

impl Pool for Threads<'_> {
    fn run(
        &self,
        count: usize,
        what: &str,
        one: &(dyn Fn(usize) -> Result<Measured, String> + Sync),
    ) -> Result<Vec<Measured>, NoAdvice> {
        let (next, (send, receive)) = (AtomicUsize::new(0), channel());
        let mut results: Vec<Option<Measured>> = vec![None; count];
        let mut failure: Option<(usize, String)> = None;
        thread::scope(|scope| {
            for _ in 0..self.count.min(count) {
                let (send, next) = (send.clone(), &next);
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
                self.bar.show(done + 1, count, what.to_owned());
                match result {
                    Ok(measured) => results[job] = Some(measured),
                    Err(error) => {
                        next.store(count, Ordering::Relaxed);
                        let is_earlier = failure.as_ref().is_none_or(|(of, _)| job < *of);
                        if is_earlier {
                            failure = Some((job, error));
                        }
                    }
                }
                if self.stop.load(Ordering::Relaxed) {
                    next.store(count, Ordering::Relaxed);
                }
            }
        });
        if self.stop.load(Ordering::Relaxed) {
            return Err(NoAdvice::Stopped);
        }
        if let Some((_, error)) = failure {
            return Err(NoAdvice::Failed(error));
        }
        results.into_iter().collect::<Option<_>>().ok_or(NoAdvice::Stopped)
    }

    fn stop(&self) -> Option<&'static AtomicBool> {
        Some(self.stop)
    }

    fn goes_on(&self) -> ControlFlow<()> {
        match self.stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}
