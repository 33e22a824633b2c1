//! Work spread over threads, with its results in order.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::failure::Failure;

/// How often progress is shown, and Ctrl-C looked at.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// One part of the work.
pub(crate) trait Part: Send + Sync + 'static {
    /// What it gives.
    type Report: Send + 'static;

    /// About how much it is, in any unit.
    fn cost(&self) -> u64;

    /// Its name, in a few words.
    fn name(&self) -> String;

    /// Does it; `progress` is told how much of the cost is done.
    fn run(&self, progress: &mut dyn FnMut(u64)) -> Self::Report;
}

/// How far everything is.
pub(crate) struct Watch {
    /// Of all costs.
    pub(crate) done: u64,
    /// All costs.
    pub(crate) total: u64,
    /// What was begun last.
    pub(crate) what: String,
}

/// What threads share.
struct Shared<P> {
    parts: Vec<P>,
    next: AtomicUsize,
    done: AtomicU64,
    stop: AtomicBool,
    what: Mutex<String>,
}

/// Runs all parts; gives their reports in order, `None` for those that Ctrl-C left out.
///
/// After Ctrl-C parts that are under way are left to themselves: they hold nothing but memory, and
/// end with the process.
pub(crate) fn run<P: Part>(
    parts: Vec<P>,
    threads: usize,
    cancel: &AtomicBool,
    mut watch: impl FnMut(&Watch),
) -> Result<Vec<Option<P::Report>>, Failure> {
    let count = parts.len();
    let total = parts.iter().map(Part::cost).sum();
    let shared = Arc::new(Shared {
        parts,
        next: AtomicUsize::new(0),
        done: AtomicU64::new(0),
        // What is cancelled before it begins does not begin.
        stop: AtomicBool::new(cancel.load(Ordering::Relaxed)),
        what: Mutex::new(String::new()),
    });
    let (sender, receiver) = mpsc::channel();
    for number in 0..threads.clamp(1, count.max(1)) {
        let (shared, sender) = (Arc::clone(&shared), sender.clone());
        let thread = std::thread::Builder::new().name(format!("check-{number}"));
        thread
            .spawn(move || work(&shared, &sender))
            .map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))?;
    }
    drop(sender);
    let mut reports: Vec<Option<P::Report>> = (0..count).map(|_| None).collect();
    loop {
        match receiver.recv_timeout(BETWEEN_LOOKS) {
            Ok((index, report)) => reports[index] = Some(report),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if cancel.load(Ordering::Relaxed) {
            shared.stop.store(true, Ordering::Relaxed);
            reports_so_far(&receiver, &mut reports);
            break;
        }
        let what = shared.what.lock().unwrap_or_else(PoisonError::into_inner).clone();
        watch(&Watch { done: shared.done.load(Ordering::Relaxed), total, what });
    }
    let interrupted = cancel.load(Ordering::Relaxed);
    if !interrupted && reports.iter().any(Option::is_none) {
        return Err(Failure::failed("a thread ended before its work was done"));
    }
    Ok(reports)
}

fn reports_so_far<R>(receiver: &mpsc::Receiver<(usize, R)>, reports: &mut [Option<R>]) {
    while let Ok((index, report)) = receiver.try_recv() {
        reports[index] = Some(report);
    }
}

fn work<P: Part>(shared: &Shared<P>, sender: &mpsc::Sender<(usize, P::Report)>) {
    while !shared.stop.load(Ordering::Relaxed) {
        let index = shared.next.fetch_add(1, Ordering::Relaxed);
        let Some(part) = shared.parts.get(index) else { return };
        *shared.what.lock().unwrap_or_else(PoisonError::into_inner) = part.name();
        let mut told = 0;
        let report = part.run(&mut |done| {
            let done = done.clamp(told, part.cost());
            shared.done.fetch_add(done - told, Ordering::Relaxed);
            told = done;
        });
        shared.done.fetch_add(part.cost() - told, Ordering::Relaxed);
        if sender.send((index, report)).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Square(u64);

    impl Part for Square {
        type Report = u64;

        fn cost(&self) -> u64 {
            1
        }

        fn name(&self) -> String {
            self.0.to_string()
        }

        fn run(&self, progress: &mut dyn FnMut(u64)) -> u64 {
            progress(1);
            self.0 * self.0
        }
    }

    #[test]
    fn reports_come_in_order_for_any_number_of_threads() {
        let never = AtomicBool::new(false);
        for threads in [1, 2, 7, 1000] {
            let parts = (0..100).map(Square).collect();
            let reports = run(parts, threads, &never, |watch| assert!(watch.done <= watch.total));
            let reports: Vec<_> = reports.expect("runs").into_iter().flatten().collect();
            assert_eq!(reports, (0..100).map(|n| n * n).collect::<Vec<u64>>());
        }
        assert!(run(Vec::<Square>::new(), 2, &never, |_| ()).expect("runs").is_empty());
    }

    #[test]
    fn what_was_left_out_has_no_report() {
        let at_once = AtomicBool::new(true);
        let parts: Vec<Square> = (0..100_000).map(Square).collect();
        let reports = run(parts, 2, &at_once, |_| ()).expect("runs");
        assert_eq!(reports.len(), 100_000);
        assert!(reports.iter().all(Option::is_none));
    }
}
