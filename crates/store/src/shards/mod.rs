//! Work in many parts that any number of processes and machines share: each shard is a file of rows,
//! written once.
//!
//! A directory holds the rows of some shards. Each item of the work gives one or more rows, JSON objects
//! that say to which item they belong. A shard has a run of items, and its rows stand in their order, so
//! that what is merged depends neither on how many shards there are nor on who wrote them.
//!
//! | file | holds |
//! |---|---|
//! | `sweep.json` | the [`Head`]: which work it is, by a hash of all that has a say in it |
//! | `shard-0000001.part` | rows so far, locked by who writes it |
//! | `shard-0000001.at` | the row that was begun last, and how often, so that one that kills its process is known |
//! | `shard-0000001.jsonl` | the rows, once all are there; the same file, locked until the manifest is there |
//! | `shard-0000001.json` | the [`Manifest`]: how many rows and bytes, and their SHA-256 |
//!
//! Fault model: that of a [run's file](crate::Writer). Whatever was written of a part is read again and
//! checked before more is added, and the first row that is torn, or is not the next one, ends it.

mod merge;
mod writer;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use merge::{Merge, ranges};
pub use writer::{Place, ShardWriter};

use crate::error::{StoreError, StoreErrorKind};
use crate::store::hex;

/// The schema of heads and manifests.
pub const SHARDS_SCHEMA_VERSION: u32 = 1;

/// The most shards: so many names of files there are.
pub const MOST_SHARDS: u64 = 9_999_999;

const HEAD: &str = "sweep.json";

/// The hash of some texts, which tells apart where one ends and the next begins: SHA-256 in hexadecimal digits.
pub fn hash_of<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hex(&hash.finalize())
}

/// Which work it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// [`SHARDS_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// A hash of all that has a say in the rows.
    pub id: String,
    /// What it is, for people.
    pub title: String,
    /// The version that makes the rows.
    pub raidlab: String,
    /// The commit it was built from; null where that is not known.
    pub commit: Option<String>,
    /// How many items there are.
    pub items: u64,
    /// Into how many shards they are divided.
    pub shards: u64,
}

/// What a finished shard holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`SHARDS_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The `id` of the work.
    pub id: String,
    /// Which shard, from 1.
    pub shard: u64,
    /// Of how many.
    pub shards: u64,
    /// Its first item.
    pub first: u64,
    /// How many items it has.
    pub items: u64,
    /// How many rows these gave.
    pub rows: u64,
    /// How many of the rows tell of an error.
    pub errors: u64,
    /// The length of the file of rows.
    pub bytes: u64,
    /// Its SHA-256 in hexadecimal digits.
    pub sha256: String,
}

/// A directory with shards of one work.
#[derive(Clone, Debug)]
pub struct Shards {
    directory: PathBuf,
    head: Head,
}

impl Shards {
    /// A directory for the work, which is made unless it is there.
    ///
    /// # Errors
    /// When it cannot be made, or holds shards of other work, of another version or divided otherwise.
    pub fn create(directory: &Path, head: &Head) -> Result<Self, StoreError> {
        fs::create_dir_all(directory).map_err(|error| StoreError::io(directory, error))?;
        let path = directory.join(HEAD);
        if !path.exists() {
            write_first(&path, head)?;
        }
        let there = Self::open(directory)?;
        if let Some(difference) = differences(&there.head, head) {
            let what = format!(
                "{}: holds shards of something else: {difference}; name another directory, or remove this one",
                directory.display()
            );
            return Err(StoreError::new(StoreErrorKind::Mixed, what));
        }
        Ok(there)
    }

    /// A directory that holds shards.
    ///
    /// # Errors
    /// When it holds none, or of a schema that this code does not read.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        let path = directory.join(HEAD);
        let head: Option<Head> = read(&path)?;
        let head = head.ok_or_else(|| {
            let what = format!("{}: no shards are here: there is no {HEAD}", directory.display());
            StoreError::new(StoreErrorKind::NotThere, what)
        })?;
        if head.schema_version != SHARDS_SCHEMA_VERSION {
            return Err(StoreError::schema(&path, head.schema_version, SHARDS_SCHEMA_VERSION));
        }
        if head.shards == 0 || head.shards > head.items.min(MOST_SHARDS) {
            let why = format!("{} shards of {} items", head.shards, head.items);
            return Err(StoreError::damaged(&path, 1, why));
        }
        Ok(Self { directory: directory.to_owned(), head })
    }

    /// Which work it is.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The items of a shard, which is counted from 1.
    pub fn items(&self, shard: u64) -> Range<u64> {
        items(&self.head, shard)
    }

    /// The manifest of a shard; `None` while it is not finished.
    ///
    /// # Errors
    /// When it is not that of this shard, or the file of rows is missing or not as long as it says.
    pub fn manifest(&self, shard: u64) -> Result<Option<Manifest>, StoreError> {
        let path = self.file(shard, "json");
        let mut found = read::<Manifest>(&path)?;
        while let Some(manifest) = found {
            let Err(error) = self.check(shard, &manifest) else { return Ok(Some(manifest)) };
            // Another process may have opened the shard again while it was looked at.
            found = read(&path)?;
            if found.as_ref() == Some(&manifest) {
                return Err(error);
            }
        }
        Ok(None)
    }

    /// A manifest is that of this shard, and its rows are there.
    fn check(&self, shard: u64, manifest: &Manifest) -> Result<(), StoreError> {
        let (path, head) = (self.file(shard, "json"), &self.head);
        if manifest.schema_version != SHARDS_SCHEMA_VERSION {
            return Err(StoreError::schema(&path, manifest.schema_version, SHARDS_SCHEMA_VERSION));
        }
        let own = (&manifest.id, manifest.shard, manifest.shards);
        if own != (&head.id, shard, head.shards) {
            let what = format!(
                "{}: is shard {} of {} of {}, not shard {shard} of {} of {}; remove it and its rows",
                path.display(),
                manifest.shard,
                manifest.shards,
                short(&manifest.id),
                head.shards,
                short(&head.id)
            );
            return Err(StoreError::new(StoreErrorKind::Mixed, what));
        }
        let rows = self.file(shard, "jsonl");
        let bytes = match fs::metadata(&rows) {
            Ok(there) => there.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(self.without_rows(shard));
            }
            Err(error) => return Err(StoreError::io(&rows, error)),
        };
        if bytes != manifest.bytes {
            let why = format!("has {bytes} bytes, {} were written", manifest.bytes);
            return Err(self.broken(shard, &why));
        }
        Ok(())
    }

    /// The error of a manifest without its rows. Two
    /// processes of earlier versions in one directory could leave it so.
    fn without_rows(&self, shard: u64) -> StoreError {
        let (path, rows) = (self.file(shard, "json"), self.file(shard, "jsonl"));
        let part = self.file(shard, "part");
        let kept = match part.exists() {
            true => format!(", which keeps the rows in {}", part.display()),
            false => String::new(),
        };
        let what = format!(
            "{}: says that the shard is finished, but {} is not there; remove {0}, and run shard {shard} of {} \
             again{kept}",
            path.display(),
            rows.display(),
            self.head.shards
        );
        StoreError::new(StoreErrorKind::Damaged, what)
    }

    /// The error of a finished shard that is not as it was.
    fn broken(&self, shard: u64, why: &str) -> StoreError {
        let what = format!(
            "{}: {why}: it was changed or cut off; remove it with its .json, and run shard {shard} of {} again",
            self.file(shard, "jsonl").display(),
            self.head.shards
        );
        StoreError::new(StoreErrorKind::Damaged, what)
    }

    fn file(&self, shard: u64, ending: &str) -> PathBuf {
        self.directory.join(format!("shard-{shard:07}.{ending}"))
    }

    /// The shards that are not finished.
    ///
    /// # Errors
    /// As [`manifest`](Self::manifest).
    pub fn missing(&self) -> Result<Vec<u64>, StoreError> {
        let mut missing = Vec::new();
        for shard in 1..=self.head.shards {
            if self.manifest(shard)?.is_none() {
                missing.push(shard);
            }
        }
        Ok(missing)
    }

    /// How many rows of a shard are there, whether it is finished or not.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn rows_so_far(&self, shard: u64) -> Result<u64, StoreError> {
        // The second may have got the first's name between the looks.
        for ending in ["jsonl", "part", "jsonl"] {
            let path = self.file(shard, ending);
            match fs::read(&path) {
                Ok(bytes) => return Ok(bytes.iter().filter(|byte| **byte == b'\n').count() as u64),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(StoreError::io(&path, error)),
            }
        }
        Ok(0)
    }

    /// Finished shards in which rows tell of errors are opened again from the first such row on; gives
    /// how many.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn reopen_errors(&self) -> Result<u64, StoreError> {
        let mut count = 0;
        for shard in 1..=self.head.shards {
            let Some(manifest) = self.manifest(shard)? else { continue };
            if manifest.errors == 0 {
                continue;
            }
            let (rows, path) = (self.file(shard, "jsonl"), self.file(shard, "json"));
            let refused = |error| StoreError::io(&rows, error);
            let mut file = File::options().read(true).write(true).open(&rows).map_err(refused)?;
            file.lock().map_err(refused)?;
            if self.manifest(shard)?.is_none_or(|manifest| manifest.errors == 0) {
                // Another process did the same, or went on from there.
                continue;
            }
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(refused)?;
            let mut keep = 0;
            for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                if Place::of(line).is_none_or(|place| place.is_error) {
                    break;
                }
                keep += line.len() as u64;
            }
            fs::remove_file(&path).map_err(|error| StoreError::io(&path, error))?;
            file.set_len(keep).map_err(refused)?;
            count += 1;
        }
        Ok(count)
    }
}

/// The items of a shard: all shards have as many, but for one.
fn items(head: &Head, shard: u64) -> Range<u64> {
    let bound =
        |shard: u64| (u128::from(head.items) * u128::from(shard) / u128::from(head.shards)) as u64;
    bound(shard.saturating_sub(1))..bound(shard)
}

/// The beginning of an id, which tells enough of them apart.
fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

/// In what two heads differ, in words.
fn differences(there: &Head, wanted: &Head) -> Option<String> {
    let commit = |head: &Head| head.commit.clone().unwrap_or_else(|| "not known".to_owned());
    let pairs = [
        ("version", there.raidlab.clone(), wanted.raidlab.clone()),
        ("commit", commit(there), commit(wanted)),
        ("shards", there.shards.to_string(), wanted.shards.to_string()),
        ("points", there.items.to_string(), wanted.items.to_string()),
        ("study", there.title.clone(), wanted.title.clone()),
    ];
    let told: Vec<String> = pairs
        .into_iter()
        .filter(|(_, there, wanted)| there != wanted)
        .map(|(what, there, wanted)| format!("{what} {there}, not {wanted}"))
        .collect();
    if !told.is_empty() {
        return Some(told.join("; "));
    }
    (there.id != wanted.id)
        .then(|| "the study file or a drive file was changed since (its id is another)".to_owned())
}

/// A file of JSON; `None` where there is none.
fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, StoreError> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| StoreError::damaged(path, error.line(), error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io(path, error)),
    }
}

/// A new file beside one that is to be made: other threads, and processes of other machines with the same number,
/// have others.
fn beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let mut number = 0u64;
    loop {
        let part = path.with_extension(format!("json.{}.{number}", std::process::id()));
        match File::create_new(&part) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            made => return made.map(|file| (part, file)),
        }
    }
}

/// Writes a file of JSON whole or not at all; who does the same at the same time writes the same.
fn write_whole(path: &Path, value: &impl Serialize) -> Result<(), StoreError> {
    put(&written(path, value)?, path, |part| fs::rename(part, path))
}

/// The same, but a file that is there by then stays: others may want to write something else.
fn write_first(path: &Path, value: &impl Serialize) -> Result<(), StoreError> {
    let part = written(path, value)?;
    put(&part, path, |part| match fs::hard_link(part, path) {
        Ok(()) => fs::remove_file(part),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs::remove_file(part),
        // A filesystem without links: the last that writes wins.
        Err(_) => fs::rename(part, path),
    })
}

/// Writes a file of JSON beside where it is to be.
fn written(path: &Path, value: &impl Serialize) -> Result<PathBuf, StoreError> {
    let (part, mut file) = beside(path).map_err(|error| StoreError::io(path, error))?;
    put(&part, path, |_| {
        let mut text = serde_json::to_vec_pretty(value)?;
        text.push(b'\n');
        file.write_all(&text)?;
        file.sync_data()
    })?;
    Ok(part)
}

/// Does something with the file beside, which goes when that fails.
fn put(
    part: &Path,
    path: &Path,
    action: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<(), StoreError> {
    action(part).map_err(|error| {
        // What cannot be removed is not worth another error.
        let _ = fs::remove_file(part);
        StoreError::io(path, error)
    })
}
