//! Rounds on several threads, for virtual time: the only module of this crate that uses threads.
//!
//! Every run of a cell has its own seed and its own place in the samples, so which thread runs it
//! and when makes no difference: any number of threads gives the same samples.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use crate::matrix::cell_seed;
use crate::run::{
    CellRun, Collected, Event, Progress, Runner, Sample, Samples, Task, rounds_in_batches,
};
use crate::study::Study;

/// As [`run_rounds`](crate::run_rounds), on several threads, each with a runner of its own.
///
/// `progress` is called on the calling thread. `threads` is 1 or more; 0 counts as 1.
///
/// # Errors
/// The error of the earliest run, in the order of the rounds, that fails: the same for any number
/// of threads.
///
/// # Panics
/// When a runner panics.
pub fn run_rounds_parallel<R, F>(
    study: &Study,
    threads: usize,
    make_runner: F,
    progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
) -> Result<Samples, R::Error>
where
    R: Runner,
    R::Error: Send,
    F: Fn() -> R + Sync,
{
    resume_rounds_parallel(study, Vec::new(), threads, make_runner, progress)
}

/// As [`run_rounds_parallel`], where some runs are `finished` already; see
/// [`resume_rounds`](crate::resume_rounds).
///
/// # Errors
/// As [`run_rounds_parallel`].
///
/// # Panics
/// When a runner panics.
pub fn resume_rounds_parallel<R, F>(
    study: &Study,
    finished: Vec<CellRun>,
    threads: usize,
    make_runner: F,
    progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
) -> Result<Samples, R::Error>
where
    R: Runner,
    R::Error: Send,
    F: Fn() -> R + Sync,
{
    rounds_in_batches(study, finished, |collected, rounds| {
        let tasks = collected.tasks(study, rounds);
        batch(study, &tasks, threads.max(1), &make_runner, collected, progress)
    })
}

/// What a thread tells of a task.
enum Note<E> {
    Started(usize),
    Finished(usize, Box<Result<Sample, E>>),
}

/// The tasks of a batch, shared by the threads.
struct Queue<'a> {
    study: &'a Study,
    tasks: &'a [Task],
    keys: &'a [crate::CellKey],
    next: AtomicUsize,
    stop: AtomicBool,
}

impl Queue<'_> {
    /// Runs tasks until there are none left or the study is stopped.
    ///
    /// A task that was taken is always run to its end: with tasks taken in order, every task
    /// before a failed one gives its result, which makes the first error the same in every run.
    fn work<R: Runner>(&self, mut runner: R, notes: &Sender<Note<R::Error>>) {
        while !self.stop.load(Ordering::Relaxed) {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(task) = self.tasks.get(index) else { return };
            let key = &self.keys[task.cell];
            // The receiver outlives all threads, so sending does not fail.
            let _ = notes.send(Note::Started(index));
            let result = runner.run(key, task.round, cell_seed(self.study, key, task.round));
            if result.is_err() {
                self.stop.store(true, Ordering::Relaxed);
            }
            let _ = notes.send(Note::Finished(index, Box::new(result)));
        }
    }
}

fn batch<R, F>(
    study: &Study,
    tasks: &[Task],
    threads: usize,
    make_runner: &F,
    collected: &mut Collected,
    progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, R::Error>
where
    R: Runner,
    R::Error: Send,
    F: Fn() -> R + Sync,
{
    let keys = collected.cells.clone();
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let queue = Queue { study, tasks, keys: &keys, next, stop };
    let mut flow = ControlFlow::Continue(());
    let mut first_error: Option<(usize, R::Error)> = None;
    thread::scope(|scope| {
        let (notes, received) = channel();
        for _ in 0..threads.min(tasks.len()) {
            let (queue, notes) = (&queue, notes.clone());
            scope.spawn(move || queue.work(make_runner(), &notes));
        }
        drop(notes);
        for note in received {
            let told = match note {
                Note::Started(index) => collected.report(&tasks[index], Event::Started, progress),
                Note::Finished(index, result) => match *result {
                    Ok(sample) => collected.finish(&tasks[index], sample, progress),
                    Err(error) if R::is_stop(&error) => ControlFlow::Break(()),
                    Err(error) => {
                        if first_error.as_ref().is_none_or(|(first, _)| index < *first) {
                            first_error = Some((index, error));
                        }
                        ControlFlow::Continue(())
                    }
                },
            };
            if told.is_break() {
                flow = told;
                queue.stop.store(true, Ordering::Relaxed);
            }
        }
    });
    match first_error {
        Some((_, error)) => Err(error),
        None => Ok(flow),
    }
}
