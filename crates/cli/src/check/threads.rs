//! Work spread over threads: its parts are made as they are taken, and their reports are handed on in order, so
//! that any number of parts takes the same memory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::failure::Failure;

/// How often progress is shown, and Ctrl-C looked at.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// Parts begun at most before an earlier one has ended: so many reports wait for it to be handed on.
const MOST_AHEAD: u64 = 4096;

/// One part of the work.
pub(crate) trait Part {
    /// What it gives.
    type Report: Send + 'static;

    /// About how much it is, in any unit.
    fn cost(&self) -> u64;

    /// Its name, in a few words.
    fn name(&self) -> String;

    /// Does it; `progress` is told how much of the cost is done.
    fn run(&self, progress: &mut dyn FnMut(u64)) -> Self::Report;
}

/// All parts, each made when it is taken.
pub(crate) trait Parts: Send + Sync + 'static {
    /// One of them.
    type Part: Part;

    /// How many there are.
    fn count(&self) -> u64;

    /// About how much all of them are.
    fn cost(&self) -> u64;

    /// Makes the part `index`, which is below [`Parts::count`].
    fn part(&self, index: u64) -> Option<Self::Part>;
}

impl<P: Part + Clone + Send + Sync + 'static> Parts for Vec<P> {
    type Part = P;

    fn count(&self) -> u64 {
        self.len() as u64
    }

    fn cost(&self) -> u64 {
        self.iter().map(Part::cost).sum()
    }

    fn part(&self, index: u64) -> Option<P> {
        self.get(index as usize).cloned()
    }
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

/// Which parts may be taken.
#[derive(Default)]
struct Queue {
    /// The first part not taken yet.
    next: u64,
    /// The first part whose report was not handed on yet.
    first: u64,
    stop: bool,
}

/// What threads share.
struct Shared<P> {
    parts: P,
    queue: Mutex<Queue>,
    /// More may be taken, or all is to stop.
    more: Condvar,
    done: AtomicU64,
    what: Mutex<String>,
}

/// The report of a part, by its number.
type Numbered<P> = (u64, <<P as Parts>::Part as Part>::Report);

impl<P: Parts> Shared<P> {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what may be taken, and says so.
    fn change(&self, change: impl FnOnce(&mut Queue)) {
        change(&mut self.queue());
        self.more.notify_all();
    }

    /// The next part, once it is not too far ahead; `None` when there is none any more.
    fn take(&self) -> Option<(u64, P::Part)> {
        let mut queue = self.queue();
        while !queue.stop && queue.next >= queue.first + MOST_AHEAD {
            queue = self.more.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        if queue.stop || queue.next >= self.parts.count() {
            return None;
        }
        let index = queue.next;
        queue.next += 1;
        drop(queue);
        Some((index, self.parts.part(index)?))
    }

    fn work(&self, sender: &mpsc::Sender<Numbered<P>>) {
        while let Some((index, part)) = self.take() {
            *self.what.lock().unwrap_or_else(PoisonError::into_inner) = part.name();
            let mut told = 0;
            let report = part.run(&mut |done| {
                let done = done.clamp(told, part.cost());
                self.done.fetch_add(done - told, Ordering::Relaxed);
                told = done;
            });
            self.done.fetch_add(part.cost() - told, Ordering::Relaxed);
            if sender.send((index, report)).is_err() {
                return;
            }
        }
    }
}

/// Runs all parts and hands their reports to `take`, in the order of the parts; gives how many there were.
/// Those that Ctrl-C left out have none.
///
/// After Ctrl-C parts that are under way are left to themselves: they hold nothing but memory, and
/// end with the process.
pub(crate) fn run<P: Parts>(
    parts: P,
    threads: usize,
    cancel: &AtomicBool,
    mut watch: impl FnMut(&Watch),
    mut take: impl FnMut(u64, <P::Part as Part>::Report),
) -> Result<u64, Failure> {
    let (count, total) = (parts.count(), parts.cost());
    let shared = Arc::new(Shared {
        parts,
        // What is cancelled before it begins does not begin.
        queue: Mutex::new(Queue { stop: cancel.load(Ordering::Relaxed), ..Queue::default() }),
        more: Condvar::new(),
        done: AtomicU64::new(0),
        what: Mutex::new(String::new()),
    });
    let (sender, receiver) = mpsc::channel();
    for number in 0..threads.clamp(1, count.clamp(1, 1 << 16) as usize) {
        let (shared, sender) = (Arc::clone(&shared), sender.clone());
        let thread = std::thread::Builder::new().name(format!("check-{number}"));
        thread
            .spawn(move || shared.work(&sender))
            .map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))?;
    }
    drop(sender);
    let (mut waiting, mut first, mut given) = (BTreeMap::new(), 0, 0);
    loop {
        match receiver.recv_timeout(BETWEEN_LOOKS) {
            Ok((index, report)) => drop(waiting.insert(index, report)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let before = first;
        while let Some(report) = waiting.remove(&first) {
            take(first, report);
            first += 1;
        }
        given += first - before;
        if first > before {
            shared.change(|queue| queue.first = first);
        }
        if cancel.load(Ordering::Relaxed) {
            shared.change(|queue| queue.stop = true);
            waiting.extend(receiver.try_iter());
            break;
        }
        let what = shared.what.lock().unwrap_or_else(PoisonError::into_inner).clone();
        watch(&Watch { done: shared.done.load(Ordering::Relaxed), total, what });
    }
    for (index, report) in waiting {
        take(index, report);
        given += 1;
    }
    if !cancel.load(Ordering::Relaxed) && given < count {
        return Err(Failure::failed("a thread ended before its work was done"));
    }
    Ok(given)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[derive(Clone)]
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
            let parts: Vec<Square> = (0..100).map(Square).collect();
            let mut reports = Vec::new();
            let watch = |watch: &Watch| assert!(watch.done <= watch.total);
            let given = run(parts, threads, &never, watch, |index, report| {
                assert_eq!(index, reports.len() as u64);
                reports.push(report);
            });
            assert_eq!(given.expect("runs"), 100);
            assert_eq!(reports, (0..100).map(|n| n * n).collect::<Vec<u64>>());
        }
        let none = run(Vec::<Square>::new(), 2, &never, |_| (), |_, _| ());
        assert_eq!(none.expect("runs"), 0);
    }

    #[test]
    fn what_was_left_out_has_no_report() {
        let at_once = AtomicBool::new(true);
        let parts: Vec<Square> = (0..100_000).map(Square).collect();
        let given = run(parts, 2, &at_once, |_| (), |_, _| panic!("a report"));
        assert_eq!(given.expect("runs"), 0);
    }

    /// Parts and reports that are held now, and that were at most.
    #[derive(Default)]
    struct Held {
        now: AtomicUsize,
        most: AtomicUsize,
    }

    struct Counted(Arc<Held>);

    impl Counted {
        fn new(held: &Arc<Held>) -> Self {
            let now = held.now.fetch_add(1, Ordering::SeqCst) + 1;
            held.most.fetch_max(now, Ordering::SeqCst);
            Self(Arc::clone(held))
        }
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.now.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// A first part that waits until nothing but itself can go on, and 10^18 that are over at once.
    struct Many {
        held: Arc<Held>,
        count: u64,
    }

    struct One {
        index: u64,
        held: Counted,
    }

    impl Part for One {
        type Report = Counted;

        fn cost(&self) -> u64 {
            1
        }

        fn name(&self) -> String {
            String::new()
        }

        fn run(&self, _: &mut dyn FnMut(u64)) -> Counted {
            let all = &self.held.0;
            while self.index == 0 && all.now.load(Ordering::SeqCst) < MOST_AHEAD as usize {
                std::thread::yield_now();
            }
            Counted::new(all)
        }
    }

    impl Parts for Many {
        type Part = One;

        fn count(&self) -> u64 {
            self.count
        }

        fn cost(&self) -> u64 {
            self.count
        }

        fn part(&self, index: u64) -> Option<One> {
            Some(One { index, held: Counted::new(&self.held) })
        }
    }

    #[test]
    fn no_more_parts_and_reports_are_held_than_wait_for_the_first() {
        const THREADS: usize = 4;
        let (held, cancel) = (Arc::new(Held::default()), AtomicBool::new(false));
        let parts = Many { held: Arc::clone(&held), count: 1_000_000_000_000_000_000 };
        let mut given = 0;
        run(
            parts,
            THREADS,
            &cancel,
            |_| (),
            |index, report| {
                // Once it is cancelled, parts under way are left out between others.
                assert!(index == given || cancel.load(Ordering::Relaxed) && index > given);
                given = index + 1;
                drop(report);
                // Many times as many as may be held.
                if given > 10 * MOST_AHEAD {
                    cancel.store(true, Ordering::Relaxed);
                }
            },
        )
        .expect("runs");
        let most = held.most.load(Ordering::SeqCst);
        assert!(most >= MOST_AHEAD as usize, "all that may be held were: {most}");
        assert!(most <= MOST_AHEAD as usize + 2 * THREADS, "{most}");
    }
}
