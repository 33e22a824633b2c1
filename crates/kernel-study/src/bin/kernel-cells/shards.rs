//! Cells measured in shards, which any number of processes and machines share, and joined into a file.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use raidlab_kernel_study::Binaries;
use raidlab_kernel_study::drawn::{Drawing, Drawn};
use raidlab_kernel_study::measured::{Head, Measured, add, read};
use raidlab_store::StoreErrorKind;
use raidlab_store::shards::{self, Merge, SHARDS_SCHEMA_VERSION, ShardWriter, Shards, ranges};
use serde::{Deserialize, Serialize};

use super::{Asked, Bench, Error, load_comparable};

/// A cell during which so many processes ended is not run again.
const MOST_CRASHES: u32 = 2;

/// All that has a say in what is measured; as text, the id of the shards.
#[derive(Serialize, Deserialize)]
struct Work {
    head: Head,
    /// The cells, which are the items of the shards in this order.
    cells: Vec<usize>,
}

/// The row of a cell.
#[derive(Serialize, Deserialize)]
struct Row {
    point: u64,
    part: u32,
    parts: u32,
    error: Option<String>,
    measured: Measured,
}

/// Measures the cells that are asked for, shard by shard, into a directory.
pub(super) fn run(directory: &Path, asked: &Asked) -> Result<(), Error> {
    let began = Instant::now();
    let drawing = asked.drawing();
    if let Some(cell) = asked.cells.iter().flatten().find(|cell| **cell >= drawing.cells.len()) {
        return Err(format!("--cells {cell}: there are {} cells", drawing.cells.len()).into());
    }
    let (stop, _kept) = io::pipe()?;
    let bench = Bench { asked, binaries: Binaries::find(&asked.kernel)?, stop: &stop };
    let own = bench.head()?;
    if let Some(path) = &asked.into {
        // Before hours are spent on what could not be kept.
        Cells::read(path, &own)?;
    }
    let work = Work { cells: cells(asked, &drawing, &own)?, head: own };
    if work.cells.is_empty() {
        eprintln!("no cell is asked for that is not measured");
        return Ok(());
    }
    let shards = Shards::create(directory, &head(&work, asked, directory)?)?;
    let of = shards.head().shards;
    let (first, last) = asked.shard.map_or((1, of), |(shard, _)| (shard, shard));
    let next = AtomicU64::new(first);
    let is_late = || asked.time.is_some_and(|time| began.elapsed() >= time);
    let measure = |thread: usize| -> Result<(), String> {
        loop {
            let shard = next.fetch_add(1, Ordering::Relaxed);
            if shard > last || is_late() {
                return Ok(());
            }
            let writer = match shards.take(shard, false) {
                Ok(Some(writer)) => writer,
                Ok(None) => continue,
                // Another process has it.
                Err(error) if error.kind == StoreErrorKind::Locked => continue,
                Err(error) => return Err(error.to_string()),
            };
            let tell = |cell: &Drawn| {
                eprintln!("shard {shard} of {of}: cell {}: {}", cell.number, cell.name());
            };
            let place = Place { bench: &bench, thread, work: &work, drawing: &drawing };
            place.fill(writer, &is_late, &tell).map_err(|error| error.to_string())?;
        }
    };
    std::thread::scope(|scope| {
        let measure = &measure;
        let threads: Vec<_> =
            (0..asked.threads).map(|thread| scope.spawn(move || measure(thread))).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err("a thread has failed".to_owned()))
        })
    })?;
    Ok(())
}

/// Which cells are asked for: not those that the file beside has.
fn cells(asked: &Asked, drawing: &Drawing, head: &Head) -> Result<Vec<usize>, Error> {
    let mut measured = Vec::new();
    let into = asked.into.iter().filter(|path| path.exists());
    for path in asked.beside.iter().chain(into) {
        measured.extend(beside(path, head)?);
    }
    let is_asked = |cell: &usize| {
        *cell < asked.first
            && !measured.contains(cell)
            && asked.cells.as_ref().is_none_or(|cells| cells.contains(cell))
    };
    Ok(drawing.cells.iter().map(|cell| cell.number).filter(is_asked).collect())
}

/// Into how many shards: as is said, or as there are, or one for each cell.
fn head(work: &Work, asked: &Asked, directory: &Path) -> Result<shards::Head, Error> {
    let there = Shards::open(directory).ok().map(|shards| shards.head().shards);
    let count = asked.shard.map(|(_, of)| of).or(there).unwrap_or(work.cells.len() as u64);
    let items = work.cells.len() as u64;
    if count > items {
        return Err(format!("--shard: {count} shards of {items} cells").into());
    }
    Ok(shards::Head {
        schema_version: SHARDS_SCHEMA_VERSION,
        id: serde_json::to_string(work)?,
        title: format!("cells of seed {} on {}", work.head.seed, work.head.kernel),
        raidlab: env!("CARGO_PKG_VERSION").to_owned(),
        commit: None,
        items,
        shards: count,
    })
}

/// Which cells another file has values of, that the same kernel measured, each with the drive as it is.
fn beside(path: &Path, head: &Head) -> Result<Vec<usize>, Error> {
    let path = path.to_str().ok_or("--beside: the name is not text")?;
    let (of_file, cells) = load_comparable(path, &head.drives)?;
    let same = |head: &Head| (head.seed, head.kernel.clone());
    if same(&of_file) != same(head) {
        return Err(format!("{path}: is of {of_file:?}, not of {head:?}").into());
    }
    Ok(cells.into_iter().filter(|cell| cell.error.is_none()).map(|cell| cell.cell).collect())
}

/// A thread that measures.
struct Place<'a> {
    bench: &'a Bench<'a>,
    thread: usize,
    work: &'a Work,
    drawing: &'a Drawing,
}

impl Place<'_> {
    /// Measures what is missing of a shard.
    fn fill(
        &self,
        mut writer: ShardWriter,
        is_late: &dyn Fn() -> bool,
        tell: &dyn Fn(&Drawn),
    ) -> Result<(), Error> {
        while let Some((item, _)) = writer.next() {
            if is_late() {
                return Ok(());
            }
            let number = self.work.cells.get(item as usize).ok_or("a cell too many")?;
            let cell = self.drawing.cells.get(*number).ok_or("there is no such cell")?;
            let measured = if writer.crashes() >= MOST_CRASHES {
                Err(format!("the process ended {MOST_CRASHES} times while this cell ran"))
            } else {
                writer.begin()?;
                self.bench.measure(cell, self.thread).map_err(|error| error.to_string())
            };
            let measured = measured.unwrap_or_else(|error| Measured {
                cell: *number,
                metric: String::new(),
                values: Vec::new(),
                other_costs: [0.0; 2],
                members: [0; 4],
                error: Some(error),
            });
            let error = measured.error.clone();
            let row = Row { point: item, part: 0, parts: 1, error, measured };
            let mut line = serde_json::to_vec(&row)?;
            line.push(b'\n');
            writer.push(&line)?;
            tell(cell);
        }
        writer.finish()?;
        Ok(())
    }
}

/// Adds what directories have to a file of cells, which is begun unless it is there. Cells that it has stay, but for
/// those without values, which give way to those with some.
pub(super) fn join(path: &Path, directories: &[PathBuf]) -> Result<(), Error> {
    let merge = Merge::of(directories)?;
    let work: Work = serde_json::from_str(&merge.head().id)
        .map_err(|error| format!("these are no shards of cells: {error}"))?;
    let mut cells = Cells::read(path, &work.head)?;
    let mut added = 0;
    merge.rows(|line| -> Result<(), Error> {
        let row: Row = serde_json::from_slice(line)?;
        added += usize::from(add(&mut cells.all, row.measured));
        Ok(())
    })?;
    cells.write(path).map_err(|error| format!("{}: {error}: nothing was added", path.display()))?;
    let missing = merge.missing();
    eprintln!("{added} cells added to {}", path.display());
    if !missing.is_empty() {
        let of = merge.head().shards;
        eprintln!("{} of {of} shards are missing: {}", missing.len(), ranges(&missing));
    }
    Ok(())
}

/// A file of cells.
struct Cells {
    head: Head,
    all: Vec<Measured>,
}

impl Cells {
    /// One that is not there has none yet.
    fn read(path: &Path, own: &Head) -> Result<Self, Error> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { head: own.clone(), all: Vec::new() });
            }
            Err(error) => return Err(format!("{}: {error}", path.display()).into()),
        };
        let (mut head, all) =
            read(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        if !head.goes_with(own) {
            let what = "give it another name, and say --beside";
            let path = path.display();
            return Err(format!("{path}: is of {head:?}, not of {own:?}: {what}").into());
        }
        head.count = head.count.max(own.count);
        Ok(Self { head, all })
    }

    /// Beside it first, so that a full disk leaves it whole.
    fn write(&self, path: &Path) -> io::Result<()> {
        let mut lines = serde_json::to_vec(&self.head)?;
        for cell in &self.all {
            lines.push(b'\n');
            lines.extend(serde_json::to_vec(cell)?);
        }
        lines.push(b'\n');
        let new = path.with_added_extension("new");
        let written = File::create(&new).and_then(|mut file| {
            file.write_all(&lines)?;
            file.sync_all()?;
            fs::rename(&new, path)
        });
        if written.is_err() {
            let _ = fs::remove_file(&new);
        }
        written
    }
}
