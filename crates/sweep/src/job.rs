//! A sweep with all that its rows depend on.

use std::collections::BTreeMap;
use std::path::Path;

use raidlab_store::shards::{Head, SHARDS_SCHEMA_VERSION, hash_of};
use raidlab_study::{DriveSource, Study, Sweep};

use crate::error::SweepError;

/// The version of the program, which the models come with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Such as `0.1.0`.
    pub raidlab: String,
    /// The commit it was built from, where that is known.
    pub commit: Option<String>,
}

impl Version {
    fn parts(&self) -> [&str; 2] {
        [&self.raidlab, self.commit.as_deref().unwrap_or_default()]
    }
}

/// A sweep with all that its rows depend on.
#[derive(Clone, Debug)]
pub struct Job {
    sweep: Sweep,
    title: String,
    version: Version,
    /// The hashes of drive files by their paths in the study.
    drives: BTreeMap<String, String>,
    id: String,
}

impl Job {
    /// Of the text of a study file with a `[sweep]`; drive files are looked for in its `directory`.
    ///
    /// # Errors
    /// When the study or a drive file cannot be used, or no point of the sweep can be.
    pub fn parse(
        text: &str,
        path: &str,
        directory: &Path,
        version: &Version,
    ) -> Result<Self, SweepError> {
        let sweep = Sweep::parse(text, path, directory)?;
        let (title, models) = first_study(&sweep)?;
        let mut drives = BTreeMap::new();
        for model in models.into_iter().chain(sweep.models()) {
            if raidlab_models::is_drive_file(&model) && !drives.contains_key(&model) {
                let file = sweep.directory().join(&model);
                let text = std::fs::read_to_string(&file).map_err(|error| {
                    SweepError::Other(format!(
                        "{}: cannot read the drive file: {error}",
                        file.display()
                    ))
                })?;
                drives.insert(model, hash_of([text.as_str()]));
            }
        }
        let files = drives.iter().flat_map(|(path, hash)| [path.as_str(), hash.as_str()]);
        let id = hash_of(version.parts().into_iter().chain([text]).chain(files));
        Ok(Self { sweep, title, version: version.clone(), drives, id })
    }

    /// The sweep.
    pub fn sweep(&self) -> &Sweep {
        &self.sweep
    }

    /// What its results are called.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// What directories of its shards begin with, when there are so many.
    pub fn head(&self, shards: u64) -> Head {
        Head {
            schema_version: SHARDS_SCHEMA_VERSION,
            id: self.id.clone(),
            title: self.title.clone(),
            raidlab: self.version.raidlab.clone(),
            commit: self.version.commit.clone(),
            items: self.sweep.points(),
            shards,
        }
    }

    /// The address of a cell: a hash of its study, its drive files, the version and which cell it is. It
    /// does not depend on what else is swept over.
    pub(crate) fn address(&self, study: &Study, canonical: &str, cell: &[&str]) -> String {
        let of_group = |drives: &raidlab_study::Drives| match &drives.source {
            DriveSource::Model(model) => self.drives.get(model).map(String::as_str),
            DriveSource::File(_) => None,
        };
        let drives = study.drives.iter().filter_map(of_group);
        let parts = self.version.parts().into_iter().chain([canonical]).chain(drives);
        let mut hash = hash_of(parts.chain(cell.iter().copied()));
        hash.truncate(32);
        hash
    }
}

/// Title and models of the first point that can be.
fn first_study(sweep: &Sweep) -> Result<(String, Vec<String>), SweepError> {
    const TRIED: u64 = 1000;
    let mut first_error = None;
    for number in spread(sweep.points(), TRIED) {
        match sweep.study(&sweep.point(number)) {
            Ok(one) => {
                let models = one.study.drives.iter().filter_map(|drives| match &drives.source {
                    DriveSource::Model(model) => Some(model.clone()),
                    DriveSource::File(_) => None,
                });
                return Ok((one.study.title.clone(), models.collect()));
            }
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    match first_error {
        Some(error) if sweep.points() > TRIED => Err(SweepError::Other(format!(
            "none of {TRIED} points of the sweep can be; the first says: {error}"
        ))),
        Some(error) => {
            Err(SweepError::Other(format!("no point of the sweep can be; the first says: {error}")))
        }
        None => Err(SweepError::Other("the sweep has no points".to_owned())),
    }
}

/// At most so many numbers of those below `count`, rising: one from each of as many parts of equal length, not always
/// the first, or else the last axes would have the same values in all of them.
pub(crate) fn spread(count: u64, most: u64) -> impl Iterator<Item = u64> {
    // 2^64 by the golden ratio, whose multiples fall into all shares of a part evenly.
    const FRACTION: u64 = 0x9e37_79b9_7f4a_7c15;
    let chosen = count.min(most);
    let start = move |part: u64| u128::from(part) * u128::from(count) / u128::from(chosen);
    (0..chosen).map(move |part| {
        let length = start(part + 1) - start(part);
        let share = u128::from(part.wrapping_mul(FRACTION));
        (start(part) + ((share * length) >> 64)) as u64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_from_all_over_have_all_values_of_the_last_axes() {
        for count in [1, 2, 255, 256] {
            assert!(spread(count, 256).eq(0..count), "{count}: all of them");
        }
        for count in [257, 512, 1000, 1024, 4096, 1 << 20, 999_999_999_999] {
            let all: Vec<u64> = spread(count, 256).collect();
            assert_eq!((all.len(), all[0]), (256, 0));
            assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{count}: {all:?}");
            assert!(all.iter().all(|number| *number < count));
            let parts = all.iter().zip(0..).map(|(number, part)| {
                u128::from(*number) * 256 / u128::from(count) == part
                    || u128::from(*number + 1) * 256 / u128::from(count) == part
            });
            assert!(parts.into_iter().all(|is_there| is_there), "{count}: {all:?}");
            for values in [2, 4, 7, 8].into_iter().filter(|values| count % values == 0) {
                let mut times = vec![0; values as usize];
                all.iter().for_each(|number| times[(number % values) as usize] += 1);
                let fair = 256 / values as usize;
                let is_fair = |times: &usize| (fair / 2..=fair * 2).contains(times);
                assert!(times.iter().all(is_fair), "{count} by {values}: {times:?}");
            }
        }
        assert_eq!(spread(0, 256).count(), 0);
    }
}
