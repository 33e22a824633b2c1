//! Joining the shards of several directories.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use super::{Head, Shards, differences};
use crate::error::{StoreError, StoreErrorKind};
use crate::store::hex;

/// The shards of several directories, each found once.
#[derive(Debug)]
pub struct Merge {
    head: Head,
    directories: Vec<Shards>,
    /// For each shard the directory that has it.
    places: Vec<Option<u32>>,
}

impl Merge {
    /// Looks for the shards of a work in directories.
    ///
    /// # Errors
    /// [`StoreErrorKind::Mixed`] when they are of different works or versions, or divided differently;
    /// [`StoreErrorKind::Damaged`] when a shard is in two of them, or is cut off.
    pub fn of(directories: &[PathBuf]) -> Result<Self, StoreError> {
        let directories: Vec<Shards> =
            directories.iter().map(|path| Shards::open(path)).collect::<Result<_, _>>()?;
        let Some(first) = directories.first() else {
            return Err(StoreError::new(StoreErrorKind::NotThere, "no directory was named"));
        };
        let head = first.head().clone();
        for other in &directories[1..] {
            if let Some(difference) = differences(other.head(), &head) {
                let (one, other) = (first.directory().display(), other.directory().display());
                let what = format!("{other} does not belong to {one}: {difference}");
                return Err(StoreError::new(StoreErrorKind::Mixed, what));
            }
        }
        let mut places: Vec<Option<u32>> = vec![None; head.shards as usize];
        for (index, shards) in directories.iter().enumerate() {
            for (shard, place) in (1..).zip(&mut places) {
                let Some(manifest) = shards.manifest(shard)? else { continue };
                if let Some(earlier) = place {
                    let earlier = &directories[*earlier as usize];
                    let same = earlier
                        .manifest(shard)?
                        .is_some_and(|other| other.sha256 == manifest.sha256);
                    let how = if same { "with the same rows" } else { "with different rows" };
                    let (one, other) =
                        (earlier.directory().display(), shards.directory().display());
                    let what = format!(
                        "shard {shard} is in {one} and in {other}, {how}: remove one of them"
                    );
                    return Err(StoreError::new(StoreErrorKind::Damaged, what));
                }
                *place = Some(index as u32);
            }
        }
        Ok(Self { head, directories, places })
    }

    /// Which work it is.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The shards that none of the directories has.
    pub fn missing(&self) -> Vec<u64> {
        let shards = (1..).zip(&self.places);
        shards.filter(|(_, place)| place.is_none()).map(|(shard, _)| shard).collect()
    }

    /// Hands out all rows in their order, each with its newline, and checks them against the manifests.
    /// Memory does not grow with their number.
    ///
    /// # Errors
    /// When a shard does not hold what was written; what `to` says.
    pub fn rows<E: From<StoreError>>(
        &self,
        mut to: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        for (shard, place) in (1..).zip(&self.places) {
            let Some(place) = place else { continue };
            let shards = &self.directories[*place as usize];
            let Some(manifest) = shards.manifest(shard)? else { continue };
            let path = shards.file(shard, "jsonl");
            let refused = |error| StoreError::io(&path, error);
            let mut reader = BufReader::new(File::open(&path).map_err(refused)?);
            let (mut hash, mut line) = (Sha256::new(), Vec::new());
            while reader.read_until(b'\n', &mut line).map_err(refused)? > 0 {
                hash.update(&line);
                to(&line)?;
                line.clear();
            }
            let found: String = hex(&hash.finalize());
            if found != manifest.sha256 {
                let why = format!("has SHA-256 {found}, {} was written", manifest.sha256);
                return Err(shards.broken(shard, &why).into());
            }
        }
        Ok(())
    }
}

/// Numbers that rise, in words: `1, 4-7, 12`.
pub fn ranges(numbers: &[u64]) -> String {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let shown = runs.into_iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}
