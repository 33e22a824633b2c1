//! Writing a shard, and going on with one.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::IgnoredAny;
use sha2::{Digest, Sha256};

use super::{Manifest, SHARDS_SCHEMA_VERSION, Shards, write_whole};
use crate::error::{StoreError, StoreErrorKind};
use crate::store::hex;
use crate::write::lock;

/// Which row it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its item.
    pub item: u64,
    /// Which of the item's rows, from 0.
    pub part: u32,
    /// How many rows the item has.
    pub parts: u32,
    /// It tells of an error.
    pub is_error: bool,
}

/// What every row has.
#[derive(Deserialize)]
struct RowHead {
    point: u64,
    part: u32,
    parts: u32,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

impl Place {
    /// That of a line; `None` of one that is torn.
    pub(super) fn of(line: &[u8]) -> Option<Self> {
        line.ends_with(b"\n").then_some(())?;
        let row: RowHead = serde_json::from_slice(line).ok()?;
        let is_error = row.error.is_some();
        (row.part < row.parts).then_some(Self {
            item: row.point,
            part: row.part,
            parts: row.parts,
            is_error,
        })
    }

    /// The place of the row behind it.
    fn next(self) -> (u64, u32) {
        if self.part + 1 < self.parts { (self.item, self.part + 1) } else { (self.item + 1, 0) }
    }
}

/// A shard that is being written, locked.
#[derive(Debug)]
pub struct ShardWriter {
    shards: Shards,
    shard: u64,
    end: u64,
    path: PathBuf,
    file: File,
    at: File,
    /// Where the next row belongs.
    next: (u64, u32),
    /// How often it was begun.
    begun: u32,
    rows: u64,
    errors: u64,
    bytes: u64,
    hash: Sha256,
}

impl Shards {
    /// Takes a shard to write what is missing of it; `None` when it is finished. Where another process
    /// has it, it is waited for with `wait`.
    ///
    /// # Errors
    /// [`StoreErrorKind::Locked`] without `wait`; when there is no such shard, or the system refuses.
    pub fn take(&self, shard: u64, wait: bool) -> Result<Option<ShardWriter>, StoreError> {
        if shard == 0 || shard > self.head.shards {
            let what = format!("there is no shard {shard}: they are 1 to {}", self.head.shards);
            return Err(StoreError::new(StoreErrorKind::NotThere, what));
        }
        loop {
            if self.manifest(shard)?.is_some() {
                return Ok(None);
            }
            let (path, file) = self.open_rows(shard)?;
            let refused = |error| StoreError::io(&path, error);
            if wait {
                file.lock().map_err(refused)?;
            } else if !lock(&file).map_err(refused)? {
                let what = format!("{}: another process is writing this shard", path.display());
                return Err(StoreError::new(StoreErrorKind::Locked, what));
            }
            // Who had it may have finished it, and then it has another name, or a manifest.
            let own = file.metadata().map_err(refused)?.ino();
            let is_there = fs::metadata(&path).is_ok_and(|there| there.ino() == own);
            if !is_there {
                continue;
            }
            let rows = self.file(shard, "jsonl");
            if path != rows && rows.exists() {
                // Another finished the shard between the looks for its two names, and this file was made in
                // vain. It is locked, so that nobody writes it. Before the manifest is looked for, which may be
                // there by now: who goes by that leaves the file.
                remove(&path)?;
                continue;
            }
            if self.manifest(shard)?.is_some() {
                continue;
            }
            return ShardWriter::resume(self.clone(), shard, path, file).map(Some);
        }
    }

    /// The file of a shard that is not finished, whichever of its two names it has. Only who has it locked gives
    /// it the second one, and nobody takes that back: a name that was seen to be there says nothing until the
    /// file is locked.
    fn open_rows(&self, shard: u64) -> Result<(PathBuf, File), StoreError> {
        let options = OpenOptions::new().read(true).append(true).clone();
        // All rows were there when a process went, but no manifest yet, or it is about to write one.
        let rows = self.file(shard, "jsonl");
        match options.open(&rows) {
            Ok(file) => return Ok((rows, file)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(StoreError::io(&rows, error)),
        }
        let path = self.file(shard, "part");
        let file = options.clone().create(true).open(&path);
        let file = file.map_err(|error| StoreError::io(&path, error))?;
        Ok((path, file))
    }
}

/// Removes a file that another may remove as well.
fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(StoreError::io(path, error)),
        _ => Ok(()),
    }
}

impl ShardWriter {
    fn resume(shards: Shards, shard: u64, path: PathBuf, file: File) -> Result<Self, StoreError> {
        let items = shards.items(shard);
        let at_path = shards.file(shard, "at");
        let at =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&at_path);
        let at = at.map_err(|error| StoreError::io(&at_path, error))?;
        let mut writer = Self {
            shards,
            shard,
            end: items.end,
            path,
            file,
            at,
            next: (items.start, 0),
            begun: 0,
            rows: 0,
            errors: 0,
            bytes: 0,
            hash: Sha256::new(),
        };
        writer.read_rows().map_err(|error| StoreError::io(&writer.path, error))?;
        writer.begun = writer.read_mark();
        Ok(writer)
    }

    /// Counts the rows that are there, and cuts off what is none.
    fn read_rows(&mut self) -> std::io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        let mut reader = BufReader::new(self.file.try_clone()?);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            match Place::of(&line).filter(|place| (place.item, place.part) == self.next) {
                Some(place) if place.item < self.end => self.count(place, &line),
                _ => break,
            }
            line.clear();
        }
        self.file.set_len(self.bytes)
    }

    fn count(&mut self, place: Place, line: &[u8]) {
        self.hash.update(line);
        self.rows += 1;
        self.errors += u64::from(place.is_error);
        self.bytes += line.len() as u64;
        self.next = place.next();
    }

    /// How often the next row was begun before.
    fn read_mark(&self) -> u32 {
        let mut bytes = [0; MARK];
        let Ok(()) = self.at.read_exact_at(&mut bytes, 0) else { return 0 };
        let text = String::from_utf8_lossy(&bytes);
        let mut words = text.split_ascii_whitespace().map(str::parse::<u64>);
        match (words.next(), words.next(), words.next()) {
            (Some(Ok(item)), Some(Ok(part)), Some(Ok(begun)))
                if (item, part) == (self.next.0, u64::from(self.next.1)) =>
            {
                begun as u32
            }
            _ => 0,
        }
    }

    fn mark(&mut self, begun: u32) -> Result<(), StoreError> {
        self.begun = begun;
        let mut text = String::with_capacity(MARK);
        // A text that takes what is written takes all of it.
        let _ = writeln!(text, "{:>20} {:>10} {begun:>4}", self.next.0, self.next.1);
        self.at.write_all_at(text.as_bytes(), 0).map_err(|error| self.full(error))
    }

    /// Which shard it is.
    pub fn shard(&self) -> u64 {
        self.shard
    }

    /// Where the next row belongs: its item, and which of the item's rows; `None` when all rows are there.
    pub fn next(&self) -> Option<(u64, u32)> {
        (self.next.0 < self.end).then_some(self.next)
    }

    /// How many rows are there.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// How often the next row was begun by processes that went before it was there.
    pub fn crashes(&self) -> u32 {
        self.begun
    }

    /// The next row is begun: should the process go before it is there, that counts as a crash of it.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn begin(&mut self) -> Result<(), StoreError> {
        self.mark(self.begun + 1)
    }

    /// The next row was begun and is left for later: that it is not there is nobody's fault.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn leave(&mut self) -> Result<(), StoreError> {
        self.mark(self.begun.saturating_sub(1))
    }

    /// Adds the next row, one line of JSON that names its place.
    ///
    /// # Errors
    /// When it is not the next row, or the system refuses; what was there stays.
    pub fn push(&mut self, line: &[u8]) -> Result<(), StoreError> {
        let place = Place::of(line).filter(|place| (place.item, place.part) == self.next);
        let Some(place) = place else {
            let why = format!("row {:?} was to follow", self.next);
            return Err(StoreError::damaged(&self.path, self.rows as usize + 1, why));
        };
        if let Err(error) = self.file.write_all(line) {
            // What was written of it is no row; who goes on cuts it off if this cannot.
            let _ = self.file.set_len(self.bytes);
            return Err(self.full(error));
        }
        self.count(place, line);
        self.begun = 0;
        Ok(())
    }

    fn full(&self, error: std::io::Error) -> StoreError {
        let mut error = StoreError::io(&self.path, error);
        error
            .context
            .push_str(": the rows before are kept, and the same command goes on behind them");
        error
    }

    /// All rows are there: from now on the shard is finished and its file is not written again, unless it is
    /// [opened again](Shards::reopen_errors).
    ///
    /// # Errors
    /// When rows are missing, or the system refuses.
    pub fn finish(self) -> Result<Manifest, StoreError> {
        if let Some(next) = self.next() {
            let why = format!("row {next:?} is missing");
            return Err(StoreError::damaged(&self.path, self.rows as usize + 1, why));
        }
        self.file.sync_data().map_err(|error| StoreError::io(&self.path, error))?;
        let rows = self.shards.file(self.shard, "jsonl");
        let part = self.shards.file(self.shard, "part");
        if self.path == part {
            fs::rename(&part, &rows).map_err(|error| StoreError::io(&rows, error))?;
        } else {
            // What stands beside it under the first name was made in vain.
            remove(&part)?;
        }
        let (head, items) = (&self.shards.head, self.shards.items(self.shard));
        let sha256 = hex(&self.hash.finalize());
        let manifest = Manifest {
            schema_version: SHARDS_SCHEMA_VERSION,
            id: head.id.clone(),
            shard: self.shard,
            shards: head.shards,
            first: items.start,
            items: items.end - items.start,
            rows: self.rows,
            errors: self.errors,
            bytes: self.bytes,
            sha256,
        };
        // The rows are locked until this function returns.
        write_whole(&self.shards.file(self.shard, "json"), &manifest)?;
        // It says nothing any more.
        let _ = fs::remove_file(self.shards.file(self.shard, "at"));
        Ok(manifest)
    }
}

/// Bytes of a mark.
const MARK: usize = 20 + 1 + 10 + 1 + 4 + 1;
