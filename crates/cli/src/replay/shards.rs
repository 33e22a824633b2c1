//! Replays in shards: each run of a cell is an item, and its row holds what it measured.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use raidlab_predict::Modelled;
use raidlab_store::StoreErrorKind;
use raidlab_store::shards::{
    Head, Merge, SHARDS_SCHEMA_VERSION, ShardWriter, Shards, hash_of, ranges,
};
use raidlab_study::{
    CellKey, CellRun, Runner, Sample, StudyErrorKind, cell_seed, cell_title, cells,
};
use serde_json::{Value, json};

use super::args::Replay;
use super::study::Prepared;
use crate::failure::Failure;
use crate::output::note;
use crate::progress::Bar;
use crate::{parallel, sweep};

/// Unless somebody says otherwise: all replays together take minutes.
const USUAL_SHARDS: u64 = 16;
/// A run during which so many processes ended is not run again.
const MOST_CRASHES: u32 = 2;

/// One run of a cell.
struct Item {
    study: usize,
    key: CellKey,
    /// Which of the study's cells.
    cell: usize,
    round: u32,
}

/// All runs of some studies, shared by the threads of this process and by others.
pub(super) struct Work<'a> {
    studies: &'a [Prepared],
    modelled: Vec<Modelled<'a>>,
    items: Vec<Item>,
    shards: Shards,
}

impl<'a> Work<'a> {
    /// The work of a directory, which is made unless it is there.
    pub(super) fn new(
        studies: &'a [Prepared],
        directory: &Path,
        options: &Replay,
        cancel: &'static AtomicBool,
    ) -> Result<Self, Failure> {
        let modelled = studies.iter().map(|one| Ok(one.modelled()?.stopping_on(cancel)));
        let modelled = modelled.collect::<Result<Vec<_>, Failure>>()?;
        let items: Vec<Item> = studies.iter().enumerate().flat_map(items_of).collect();
        let there = Shards::open(directory).ok().map(|shards| shards.head().shards);
        let of = options.shard.map(|(_, of)| of).or(there).unwrap_or(USUAL_SHARDS);
        let count = items.len() as u64;
        if options.shard.is_some() && of > count {
            return Err(Failure::input(format!(
                "{of} shards of {count} runs: {count} are the most"
            )));
        }
        let version = sweep::version();
        // Also drive files that are read from where the command is given.
        let drives = modelled.iter().map(|one| format!("{:?}", one.drives()));
        let whole = studies.iter().map(|one| raidlab_store::spelled_out(&one.study).to_string());
        let told: Vec<String> = whole.chain(drives).collect();
        let parts = [version.raidlab.as_str(), version.commit.as_deref().unwrap_or_default()];
        let head = Head {
            schema_version: SHARDS_SCHEMA_VERSION,
            id: hash_of(parts.into_iter().chain(told.iter().map(String::as_str))),
            title: studies.iter().map(|one| one.study.title.clone()).collect::<Vec<_>>().join("; "),
            raidlab: version.raidlab,
            commit: version.commit,
            items: count,
            shards: of.min(count),
        };
        let shards = Shards::create(directory, &head)?;
        Ok(Self { studies, modelled, items, shards })
    }

    /// Runs what is missing of all shards, or of one.
    pub(super) fn run(&self, options: &Replay, cancel: &AtomicBool) -> Result<(), Failure> {
        let of = self.shards.head().shards;
        let (first, last) = options.shard.map_or((1, of), |(shard, _)| (shard, shard));
        let next = AtomicU64::new(first);
        let runs: usize = (first..=last).map(|shard| self.shards.items(shard).count()).sum();
        let bar = Bar::new(options.quiet);
        let threads = parallel::threads(options.threads).min((last - first + 1) as usize);
        let result = thread::scope(|scope| {
            let (notes, received) = channel::<()>();
            let next = &next;
            let workers: Vec<_> = (0..threads)
                .map(|_| {
                    let notes = notes.clone();
                    scope.spawn(move || {
                        loop {
                            let shard = next.fetch_add(1, Ordering::Relaxed);
                            if shard > last || cancel.load(Ordering::Relaxed) {
                                return Ok(());
                            }
                            // The receiver outlives all threads.
                            let told = || {
                                let _ = notes.send(());
                            };
                            self.shard(shard, options.shard.is_some(), cancel, &told)?;
                        }
                    })
                })
                .collect();
            drop(notes);
            for (before, ()) in received.iter().enumerate() {
                bar.show(before + 1, runs, format!("{of} shards"));
            }
            workers.into_iter().try_for_each(|worker| {
                worker.join().unwrap_or_else(|_| Err(Failure::failed("a thread panicked")))
            })
        });
        bar.clear();
        result?;
        if cancel.load(Ordering::Relaxed) { Err(Failure::Interrupted) } else { Ok(()) }
    }

    /// Runs what is missing of a shard. One of all that another process has is left to that.
    fn shard(
        &self,
        shard: u64,
        alone: bool,
        cancel: &AtomicBool,
        told: &dyn Fn(),
    ) -> Result<(), Failure> {
        let mut writer = match self.shards.take(shard, false) {
            Ok(Some(writer)) => writer,
            Ok(None) => {
                self.shards.items(shard).for_each(|_| told());
                return Ok(());
            }
            Err(error) if error.kind == StoreErrorKind::Locked && !alone => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        (0..writer.rows()).for_each(|_| told());
        let mut runners: Vec<Option<Modelled<'_>>> = vec![None; self.modelled.len()];
        while let Some((number, _)) = writer.next() {
            if cancel.load(Ordering::Relaxed) {
                return Ok(());
            }
            let Some(item) = self.items.get(number as usize) else {
                return Err(Failure::failed(format!("shard {shard}: there is no run {number}")));
            };
            let runner =
                runners[item.study].get_or_insert_with(|| self.modelled[item.study].clone());
            let Some(result) = self.one(item, runner, &mut writer)? else { return Ok(()) };
            let study = &self.studies[item.study].study;
            let (error, sample) = match result {
                Ok(sample) => (None, serde_json::to_value(&sample).map_err(Failure::failed)?),
                Err(why) => (Some(why), Value::Null),
            };
            let row = json!({
                "point": number, "part": 0, "parts": 1, "error": error, "study": study.title,
                "cell": cell_title(study, &item.key), "round": item.round, "sample": sample,
            });
            writer.push(format!("{row}\n").as_bytes())?;
            told();
        }
        writer.finish()?;
        Ok(())
    }

    /// One run; `None` when it was stopped.
    fn one(
        &self,
        item: &Item,
        runner: &mut Modelled<'_>,
        writer: &mut ShardWriter,
    ) -> Result<Option<Result<Sample, String>>, Failure> {
        if writer.crashes() >= MOST_CRASHES {
            let why = format!("the process ended {MOST_CRASHES} times during this run");
            return Ok(Some(Err(why)));
        }
        writer.begin()?;
        let seed = cell_seed(&self.studies[item.study].study, &item.key, item.round);
        match runner.run(&item.key, item.round, seed) {
            Ok(sample) => Ok(Some(Ok(sample))),
            Err(error) if error.kind == StudyErrorKind::Stopped => {
                writer.leave()?;
                Ok(None)
            }
            Err(error) => Ok(Some(Err(error.to_string()))),
        }
    }

    /// All runs of each study.
    pub(super) fn finished(&self) -> Result<Vec<Vec<CellRun>>, Failure> {
        let merge = Merge::of(&[self.shards.directory().to_owned()])?;
        let missing = merge.missing();
        if !missing.is_empty() {
            return Err(Failure::failed(format!(
                "{}: shards {} are not finished: another process has them, or was to run them",
                self.shards.directory().display(),
                ranges(&missing)
            )));
        }
        let mut all: Vec<Vec<CellRun>> = vec![Vec::new(); self.studies.len()];
        merge.rows(|line| -> Result<(), Failure> {
            let mut row: Value = serde_json::from_slice(line).map_err(Failure::failed)?;
            let number = row["point"].as_u64().unwrap_or(u64::MAX);
            let Some(item) = self.items.get(number as usize) else {
                return Err(Failure::failed(format!(
                    "a row of a run {number}, which there is not"
                )));
            };
            if let Some(why) = row["error"].as_str() {
                let cell = row["cell"].as_str().unwrap_or_default();
                return Err(Failure::failed(format!("{cell}: {why}")));
            }
            let sample = serde_json::from_value(row["sample"].take()).map_err(Failure::failed)?;
            all[item.study].push(CellRun { round: item.round, cell: item.cell, sample });
            Ok(())
        })?;
        Ok(all)
    }

    /// Tells what is there after one shard was run.
    pub(super) fn tell(&self, (shard, of): (u64, u64)) -> Result<(), Failure> {
        let rows = self.shards.manifest(shard)?.map_or(0, |manifest| manifest.rows);
        note(&format!("shard {shard} of {of}: {rows} runs"));
        Ok(())
    }
}

fn items_of((at, prepared): (usize, &Prepared)) -> impl Iterator<Item = Item> {
    let keys = cells(&prepared.study);
    let rounds = prepared.study.rounds;
    keys.into_iter().enumerate().flat_map(move |(cell, key)| {
        (0..rounds).map(move |round| Item { study: at, key, cell, round })
    })
}
