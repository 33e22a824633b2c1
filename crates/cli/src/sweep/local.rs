//! The shards of a sweep by processes of this machine: one a CPU, so that one that goes takes nothing
//! else with it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use raidlab_store::shards::Shards;
use raidlab_sweep::Estimate;

use super::args::SweepOptions;
use crate::failure::Failure;
use crate::output::note;
use crate::progress::Bar;

/// So long Ctrl-C is not looked for.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
/// A shard whose process ends so often without one more row is given up.
const MOST_STARTS: u32 = 4;

/// What all processes came to.
#[derive(Debug, Default)]
pub(super) struct Total {
    pub(super) rows: u64,
    pub(super) errors: u64,
    /// Rows that were not there before.
    pub(super) rows_now: u64,
    /// Processes that ended otherwise than by returning.
    pub(super) crashes: u64,
    /// CPU seconds within cells, and of the processes.
    pub(super) cells_cpu: f64,
    pub(super) process_cpu: f64,
}

/// What a slot, which has one process after the other, tells.
enum Note {
    /// Its shard has so many rows.
    Rows(usize, u64),
    /// CPU seconds.
    Cpu(f64, f64),
    /// Its process has ended by itself, and is begun anew.
    Crashed(u64, String),
    /// A shard is finished, with rows and errors, and how many rows there were before.
    Done(usize, u64, u64, u64),
    Failed(Failure),
}

struct Slots<'a> {
    options: &'a SweepOptions,
    out: &'a Path,
    shards: &'a Shards,
    next: AtomicU64,
    stop: AtomicBool,
    /// What holds the processes: they stop when it is closed.
    held: Vec<Mutex<Option<ChildStdin>>>,
}

pub(super) fn run(
    options: &SweepOptions,
    out: &Path,
    shards: &Shards,
    expected: &Estimate,
    processes: usize,
    cancel: &AtomicBool,
) -> Result<Total, Failure> {
    let processes = processes.min(shards.head().shards as usize);
    let held = (0..processes).map(|_| Mutex::new(None)).collect();
    let slots =
        Slots { options, out, shards, next: AtomicU64::new(1), stop: AtomicBool::new(false), held };
    let bar = Bar::new(options.quiet);
    let mut total = Total::default();
    let mut under_way = vec![0; processes];
    let mut failure = None;
    thread::scope(|scope| {
        let (notes, received) = channel();
        for slot in 0..processes {
            let (slots, notes) = (&slots, notes.clone());
            scope.spawn(move || slots.work(slot, &notes));
        }
        drop(notes);
        loop {
            if cancel.load(Ordering::Relaxed) {
                failure.get_or_insert(Failure::Interrupted);
            }
            if failure.is_some() {
                slots.end();
            }
            match received.recv_timeout(BETWEEN_LOOKS) {
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => break,
                Ok(Note::Rows(slot, rows)) => under_way[slot] = rows,
                Ok(Note::Cpu(cells, process)) => {
                    total.cells_cpu += cells;
                    total.process_cpu += process;
                }
                Ok(Note::Crashed(shard, how)) => {
                    total.crashes += 1;
                    bar.above(&format!(
                        "the process of shard {shard} ended ({how}); another goes on"
                    ));
                }
                Ok(Note::Done(slot, rows, errors, before)) => {
                    under_way[slot] = 0;
                    total.rows += rows;
                    total.errors += errors;
                    total.rows_now += rows - before.min(rows);
                }
                Ok(Note::Failed(why)) => {
                    failure.get_or_insert(why);
                }
            }
            let done = total.rows + under_way.iter().sum::<u64>();
            let all = (expected.cells as u64).max(done);
            bar.show(done as usize, all as usize, format!("{} shards", shards.head().shards));
        }
    });
    bar.clear();
    match failure {
        Some(failure) => Err(failure),
        None => Ok(total),
    }
}

impl Slots<'_> {
    /// No more are begun, and those that run are told to stop.
    fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
        for held in &self.held {
            if let Ok(mut held) = held.lock() {
                *held = None;
            }
        }
    }

    fn work(&self, slot: usize, notes: &Sender<Note>) {
        loop {
            let shard = self.next.fetch_add(1, Ordering::Relaxed);
            if shard > self.shards.head().shards || self.stop.load(Ordering::Relaxed) {
                return;
            }
            // The receiver outlives all threads, so sending does not fail.
            let _ = notes.send(match self.shard(slot, shard, notes) {
                Ok((rows, errors, before)) => Note::Done(slot, rows, errors, before),
                Err(failure) => Note::Failed(failure),
            });
        }
    }

    /// Has a shard finished by as many processes as it takes; gives rows, errors, and rows there were before.
    fn shard(
        &self,
        slot: usize,
        shard: u64,
        notes: &Sender<Note>,
    ) -> Result<(u64, u64, u64), Failure> {
        if let Some(manifest) = self.shards.manifest(shard)? {
            return Ok((manifest.rows, manifest.errors, manifest.rows));
        }
        let mut before = None;
        let mut starts = 0;
        loop {
            let (rows, how) = self.process(slot, shard, notes)?;
            let _ = before.get_or_insert(rows.0);
            if let Some(manifest) = self.shards.manifest(shard)? {
                return Ok((manifest.rows, manifest.errors, before.unwrap_or_default()));
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err(Failure::Interrupted);
            }
            starts = if rows.1 > rows.0 { 1 } else { starts + 1 };
            match how {
                Some(how) if starts < MOST_STARTS => {
                    let _ = notes.send(Note::Crashed(shard, how));
                }
                Some(how) => {
                    return Err(Failure::failed(format!(
                        "shard {shard}: {MOST_STARTS} processes ended ({how}) without one more row"
                    )));
                }
                None => {
                    return Err(Failure::failed(format!(
                        "shard {shard}: its process failed; see above"
                    )));
                }
            }
        }
    }

    /// One process: rows before and after, and how it ended unless by returning.
    fn process(
        &self,
        slot: usize,
        shard: u64,
        notes: &Sender<Note>,
    ) -> Result<((u64, u64), Option<String>), Failure> {
        let before = self.shards.rows_so_far(shard)?;
        let mut child = self.begin(shard)?;
        if let Ok(mut held) = self.held[slot].lock() {
            *held = child.stdin.take();
        }
        if self.stop.load(Ordering::Relaxed) {
            self.end();
        }
        if let Some(output) = child.stdout.take() {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let mut words = line.split(' ');
                match (words.next(), words.next(), words.next()) {
                    (Some("rows"), Some(rows), None) => {
                        let _ = rows.parse().map(|rows| notes.send(Note::Rows(slot, rows)));
                    }
                    (Some("cpu"), Some(cells), Some(process)) => {
                        if let (Ok(cells), Ok(process)) = (cells.parse(), process.parse()) {
                            let _ = notes.send(Note::Cpu(cells, process));
                        }
                    }
                    _ => note(&line),
                }
            }
        }
        let status =
            child.wait().map_err(|error| Failure::failed(format!("shard {shard}: {error}")))?;
        let crashed = status.code().is_none().then(|| status.to_string());
        Ok(((before, self.shards.rows_so_far(shard)?), crashed))
    }

    fn begin(&self, shard: u64) -> Result<Child, Failure> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::failed(format!("where this program is: {error}")))?;
        let of = self.shards.head().shards;
        let mut command = Command::new(program);
        command.arg("sweep").arg("--worker").arg("--shard").arg(format!("{shard}/{of}"));
        command.arg("--out").arg(self.out).arg("--").arg(&self.options.study);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.spawn().map_err(|error| Failure::failed(format!("cannot begin a process: {error}")))
    }
}
