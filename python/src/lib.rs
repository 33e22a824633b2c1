//! The native half of the Python package `raidlab`: what must be fast, or must not be written twice.
//!
//! Every entry releases the interpreter and turns a panic into an exception; those that take long look for Ctrl-C
//! meanwhile. What is handed over is text, JSON mostly; frames and plots are made of it in Python.
// A program of unit tests, which `cargo test --lib` makes, has no Python to link with: it is empty.
#![cfg(not(test))]
// Not `forbid`: what macros of pyo3 make is unsafe.
#![deny(unsafe_code)]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use raidlab_cli::in_process::{self, OpenArray, Refused, StudyText};
use raidlab_core::Layout;
use raidlab_core::geometry::{Chunk, ChunkMap};
use raidlab_store::shards::{Manifest, Merge, Shards, ranges};
use raidlab_store::{StoreError, StoreErrorKind};
use raidlab_sweep::{Ended, Job, SweepError, estimate, run_shard};
use serde_json::json;

create_exception!(
    raidlab,
    RaidlabError,
    PyException,
    "Something could not be done; the text says what and why."
);
create_exception!(
    raidlab,
    InputError,
    RaidlabError,
    "A study, a drive file or an argument that cannot be."
);
create_exception!(
    raidlab,
    InternalError,
    RaidlabError,
    "A defect of raidlab, which is to be reported."
);

/// How often Ctrl-C is looked for, and progress told.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Flags that stop work. They must live as long as the program, so they are used again.
static FLAGS: Mutex<Vec<&'static AtomicBool>> = Mutex::new(Vec::new());

/// A flag of one's own while something runs.
struct Flag(&'static AtomicBool);

impl Flag {
    fn new() -> Self {
        // After a fork another thread of the parent may have held the lock for good: then a new one is made.
        let kept = FLAGS.try_lock().ok().and_then(|mut flags| flags.pop());
        let flag = kept.unwrap_or_else(|| Box::leak(Box::new(AtomicBool::new(false))));
        flag.store(false, Ordering::Relaxed);
        Self(flag)
    }
}

impl Drop for Flag {
    fn drop(&mut self) {
        if let Ok(mut flags) = FLAGS.try_lock() {
            flags.push(self.0);
        }
    }
}

fn refused(error: Refused) -> PyErr {
    match error.status {
        2 | 3 => InputError::new_err(error.what),
        130 => PyKeyboardInterrupt::new_err("stopped"),
        _ => RaidlabError::new_err(error.what),
    }
}

fn stored(error: StoreError) -> PyErr {
    match error.kind {
        StoreErrorKind::Mixed | StoreErrorKind::NotThere => InputError::new_err(error.to_string()),
        _ => RaidlabError::new_err(error.to_string()),
    }
}

fn swept(error: SweepError) -> PyErr {
    match error {
        SweepError::Study(error) => InputError::new_err(error.to_string()),
        SweepError::Store(error) => stored(error),
        other => RaidlabError::new_err(other.to_string()),
    }
}

/// Input that cannot be.
fn input(error: impl ToString) -> PyErr {
    InputError::new_err(error.to_string())
}

/// What cannot go wrong went wrong.
fn internal(error: impl ToString) -> PyErr {
    InternalError::new_err(error.to_string())
}

/// Does some work; a panic is an exception.
fn caught<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    let work = || {
        #[cfg(feature = "panics")]
        panics::on_purpose();
        work()
    };
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(&*panic)))
}

fn panicked(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    InternalError::new_err(format!("a defect of raidlab: {}", text.unwrap_or("a panic")))
}

/// Does something short without the interpreter.
fn guarded<T: Send>(py: Python<'_>, work: impl FnOnce() -> PyResult<T> + Send) -> PyResult<T> {
    py.detach(|| caught(work))
}

/// How far something is.
#[derive(Default)]
struct Progress {
    done: AtomicU64,
    total: AtomicU64,
}

/// Does something long on a thread of its own; on this one `told(done, total)` is called again and again,
/// and Ctrl-C stops it, or what `told` raises.
fn watched<T: Send>(
    py: Python<'_>,
    told: Option<Py<PyAny>>,
    work: impl FnOnce(&'static AtomicBool, &Progress) -> PyResult<T> + Send,
) -> PyResult<T> {
    let flag = Flag::new();
    let stop = flag.0;
    let progress = Progress::default();
    let look = || {
        let now = (progress.done.load(Ordering::Relaxed), progress.total.load(Ordering::Relaxed));
        Python::attach(|py| {
            py.check_signals()?;
            told.as_ref().map_or(Ok(()), |told| told.call1(py, now).map(|_| ()))
        })
    };
    py.detach(|| {
        std::thread::scope(|scope| {
            let (send, receive) = channel();
            let progress = &progress;
            scope.spawn(move || {
                // Who listens is there until this is over.
                let _ = send.send(caught(|| work(stop, progress)));
            });
            loop {
                let received = receive.recv_timeout(BETWEEN_LOOKS);
                if let Err(error) = look() {
                    stop.store(true, Ordering::Relaxed);
                    // The thread ends before this scope does.
                    return Err(error);
                }
                match received {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(result) => return result,
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err(internal("a thread has ended without a result"));
                    }
                }
            }
        })
    })
}

fn study(text: String, path: String, directory: PathBuf) -> StudyText {
    StudyText { text, path, directory }
}

/// The version, and the commit where that is known.
#[pyfunction]
fn version(py: Python<'_>) -> PyResult<(String, Option<String>)> {
    guarded(py, || {
        let version = in_process::version();
        Ok((version.raidlab, version.commit))
    })
}

/// Runs a study in virtual time; gives its results document as JSON.
#[pyfunction]
#[pyo3(signature = (text, path, directory, seed=None, rounds=None, threads=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "the half in Python has names for them")]
fn run(
    py: Python<'_>,
    text: String,
    path: String,
    directory: PathBuf,
    seed: Option<u64>,
    rounds: Option<u32>,
    threads: Option<u32>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    watched(py, progress, move |stop, made| {
        let mut told = |done: usize, total: usize| {
            made.done.store(done as u64, Ordering::Relaxed);
            made.total.store(total as u64, Ordering::Relaxed);
        };
        let study = study(text, path, directory);
        let results = in_process::run_study(&study, seed, rounds, threads, stop, &mut told)
            .map_err(refused)?;
        results.to_json().map_err(internal)
    })
}

/// What a command prints: of advise, drive, layout, risk, schema and study.
#[pyfunction]
fn command(py: Python<'_>, arguments: Vec<String>) -> PyResult<String> {
    watched(py, None, move |stop, _| in_process::command(&arguments, stop).map_err(refused))
}

/// A layout by its name, as JSON.
#[pyfunction]
#[pyo3(signature = (name, rows=None))]
fn layout(py: Python<'_>, name: String, rows: Option<u64>) -> PyResult<String> {
    guarded(py, move || {
        let layout: Layout =
            name.parse().map_err(|error: raidlab_core::LayoutError| input(error))?;
        let map = ChunkMap::new(&layout, rows).map_err(input)?;
        let rows: Vec<Vec<String>> =
            map.rows.iter().map(|row| row.iter().map(Chunk::to_string).collect()).collect();
        let chunk = layout.level.has_chunks().then(|| layout.chunk.bytes());
        Ok(json!({
            "name": layout.to_string(), "members": layout.drives(), "survives": layout.survives(), "chunk": chunk,
            "blocks": rows,
        })
        .to_string())
    })
}

/// A study file with a `[sweep]`.
#[pyclass(module = "raidlab._raidlab", frozen)]
struct SweepJob {
    job: Job,
}

#[pymethods]
impl SweepJob {
    #[new]
    fn new(py: Python<'_>, text: String, path: String, directory: PathBuf) -> PyResult<Self> {
        guarded(py, move || {
            let job = in_process::sweep_job(&study(text, path, directory)).map_err(refused)?;
            Ok(Self { job })
        })
    }

    /// What its rows depend on, as a hash.
    #[getter]
    fn id(&self, py: Python<'_>) -> PyResult<String> {
        guarded(py, || Ok(self.job.head(1).id))
    }

    #[getter]
    fn points(&self, py: Python<'_>) -> PyResult<u64> {
        guarded(py, || Ok(self.job.sweep().points()))
    }

    /// A point as a study file.
    fn study_file(&self, py: Python<'_>, point: u64) -> PyResult<String> {
        guarded(py, || {
            let sweep = self.job.sweep();
            if point >= sweep.points() {
                let last = sweep.points() - 1;
                return Err(InputError::new_err(format!(
                    "there is no point {point}: they are 0 to {last}"
                )));
            }
            sweep.study_file(&sweep.point(point)).map_err(input)
        })
    }

    /// How many cells there are and how long they take, as JSON.
    fn estimate(&self, py: Python<'_>) -> PyResult<String> {
        watched(py, None, |stop, _| {
            let found = estimate(&self.job, stop);
            Ok(json!({
                "points": found.points, "cells": found.cells, "cells_exact": found.is_exact,
                "impossible": found.impossible, "looked_at": found.looked_at, "why": found.why,
                "cell_cpu_s": found.cell_seconds, "cpu_s": found.seconds(), "shards": found.shards(),
            })
            .to_string())
        })
    }

    /// How many shards a directory has; `None` where there are none yet.
    fn shards_of(&self, py: Python<'_>, out: PathBuf) -> PyResult<Option<u64>> {
        guarded(py, || match Shards::open(&out) {
            Ok(shards) => Ok(Some(shards.head().shards)),
            Err(error) if error.kind == StoreErrorKind::NotThere => Ok(None),
            Err(error) => Err(stored(error)),
        })
    }

    /// Runs what is missing of a shard; gives its manifest as JSON.
    #[pyo3(signature = (out, shard, shards, progress=None))]
    fn run_shard(
        &self,
        py: Python<'_>,
        out: PathBuf,
        shard: u64,
        shards: u64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        watched(py, progress, |stop, made| {
            let points = self.job.sweep().points();
            if shards == 0 || shards > points || shard == 0 || shard > shards {
                return Err(input(format!("shard {shard} of {shards} of {points} points")));
            }
            let of = Shards::create(&out, &self.job.head(shards)).map_err(stored)?;
            let manifest = finished(&self.job, &of, shard, stop, &made.done)?;
            serde_json::to_string(&manifest).map_err(internal)
        })
    }
}

/// Runs what is missing of a shard. One that another process has is waited for: if that process is killed, what it has
/// not finished is run here.
fn finished(
    job: &Job,
    of: &Shards,
    shard: u64,
    stop: &'static AtomicBool,
    rows: &AtomicU64,
) -> PyResult<Manifest> {
    let mut told = |done| rows.store(done, Ordering::Relaxed);
    loop {
        // Not by a wait of the system's, which Ctrl-C could not end.
        match run_shard(job, of, shard, stop, false, &mut told) {
            Err(SweepError::Store(error)) if error.kind == StoreErrorKind::Locked => {
                std::thread::sleep(BETWEEN_LOOKS);
            }
            Err(error) => return Err(swept(error)),
            Ok(ran) => match ran.ended {
                Ended::Before(manifest) | Ended::Finished(manifest) => return Ok(manifest),
                Ended::Stopped => {}
            },
        }
        if stop.load(Ordering::Relaxed) {
            return Err(PyKeyboardInterrupt::new_err("stopped"));
        }
    }
}

/// Why rows are not handed over.
enum NotMerged {
    Store(StoreError),
    Python(PyErr),
}

impl From<StoreError> for NotMerged {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Bytes that are handed over at once.
const PIECE: usize = 1 << 20;

/// Hands the rows of directories to `each`, some lines at a time, once all are found to be of one sweep; gives
/// what they are of as JSON.
#[pyfunction]
fn merge(
    py: Python<'_>,
    directories: Vec<PathBuf>,
    partial: bool,
    each: Py<PyAny>,
) -> PyResult<String> {
    let hand = |piece: &mut Vec<u8>| {
        let handed = Python::attach(|py| {
            py.check_signals()?;
            each.call1(py, (PyBytes::new(py, piece),)).map(|_| ())
        });
        piece.clear();
        handed.map_err(NotMerged::Python)
    };
    guarded(py, move || {
        let merge = Merge::of(&directories).map_err(stored)?;
        let (missing, head) = (merge.missing(), merge.head());
        if !missing.is_empty() && !partial {
            let (count, which) = (missing.len(), ranges(&missing));
            let what = format!("{count} of {} shards are missing: {which}", head.shards);
            return Err(RaidlabError::new_err(what));
        }
        let mut piece: Vec<u8> = Vec::new();
        let all = merge.rows(|line| {
            piece.extend_from_slice(line);
            if piece.len() >= PIECE { hand(&mut piece) } else { Ok(()) }
        });
        let all = all.and_then(|_| if piece.is_empty() { Ok(()) } else { hand(&mut piece) });
        all.map_err(|why| match why {
            NotMerged::Store(error) => stored(error),
            NotMerged::Python(error) => error,
        })?;
        let told = json!({
            "id": head.id, "title": head.title, "missing": missing, "shards": head.shards,
        });
        serde_json::to_string(&told).map_err(internal)
    })
}

/// An array of Linux md on files or devices, for reading.
#[pyclass(module = "raidlab._raidlab", frozen)]
struct ArrayFile {
    array: Mutex<OpenArray>,
    #[pyo3(get)]
    size: u64,
    #[pyo3(get)]
    title: String,
    #[pyo3(get)]
    without: Vec<String>,
}

#[pymethods]
impl ArrayFile {
    #[new]
    fn new(py: Python<'_>, members: Vec<PathBuf>) -> PyResult<Self> {
        guarded(py, move || {
            let array = OpenArray::open(&members).map_err(refused)?;
            let (size, title, without) =
                (array.bytes(), array.title.clone(), array.without.clone());
            Ok(Self { array: Mutex::new(array), size, title, without })
        })
    }

    /// Some bytes from a place on, at most [`PIECE`]; fewer at the end.
    fn read_at<'py>(
        &self,
        py: Python<'py>,
        at: u64,
        length: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let length = self.size.saturating_sub(at).min(length.min(PIECE) as u64) as usize;
        let bytes = guarded(py, || {
            let mut bytes = vec![0; length];
            let mut array = self
                .array
                .lock()
                .map_err(|_| InternalError::new_err("an earlier read has failed"))?;
            let read = array.read_at(at, &mut bytes).map_err(refused)?;
            bytes.truncate(read);
            Ok(bytes)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }
}

/// Panics for tests of what becomes of them.
#[cfg(feature = "panics")]
mod panics {
    use std::sync::atomic::{AtomicBool, Ordering};

    use pyo3::prelude::*;

    static NEXT: AtomicBool = AtomicBool::new(false);

    pub(super) fn on_purpose() {
        if NEXT.swap(false, Ordering::Relaxed) {
            panic!("on purpose");
        }
    }

    /// The next entry panics.
    #[pyfunction]
    pub(super) fn _panic_next() {
        NEXT.store(true, Ordering::Relaxed);
    }
}

#[pymodule]
fn _raidlab(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("RaidlabError", py.get_type::<RaidlabError>())?;
    module.add("InputError", py.get_type::<InputError>())?;
    module.add("InternalError", py.get_type::<InternalError>())?;
    module.add_class::<SweepJob>()?;
    module.add_class::<ArrayFile>()?;
    module.add_function(wrap_pyfunction!(version, module)?)?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(command, module)?)?;
    module.add_function(wrap_pyfunction!(layout, module)?)?;
    module.add_function(wrap_pyfunction!(merge, module)?)?;
    #[cfg(feature = "panics")]
    module.add_function(wrap_pyfunction!(panics::_panic_next, module)?)?;
    Ok(())
}
