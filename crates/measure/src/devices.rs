//! Block devices in the places of drives, claimed for as long as they are used.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use raidlab_core::{SECTOR_BYTES, Sectors, Size};
use raidlab_engine::{Claim, Device, EngineError, EngineErrorKind};
use raidlab_metadata::md::Version;
use raidlab_study::Study;

use crate::error::MeasureError;
use crate::fill::Filling;
use crate::places::Places;
use crate::sizes::Sizes;

/// Bytes of a superblock at most.
const SUPERBLOCK: usize = 4096;

/// Devices in the places of drives: members first, then the spare, then the log device.
#[derive(Debug)]
pub struct Devices {
    claims: Vec<Claim>,
    places: Places,
    has_spare: bool,
}

impl Devices {
    fn open(&self, index: usize) -> Result<(File, PathBuf), EngineError> {
        let claim = &self.claims[index.min(self.claims.len() - 1)];
        Ok((claim.file()?, claim.device().path.clone()))
    }

    pub(super) fn member(&self, layout: usize, index: u16) -> Result<(File, PathBuf), EngineError> {
        self.open(self.members(layout)[usize::from(index)])
    }

    /// The devices of a layout's members among all, in the order of the members.
    pub fn members(&self, layout: usize) -> &[usize] {
        self.places.of_layout(layout)
    }

    pub(super) fn spare(&self) -> Result<(File, PathBuf), EngineError> {
        self.open(self.places.count())
    }

    pub(super) fn journal(&self) -> Result<(File, PathBuf), EngineError> {
        self.open(self.places.count() + usize::from(self.has_spare))
    }

    /// Clears the place of the superblock on each.
    pub(super) fn clear_superblocks(&self) -> Result<(), EngineError> {
        for claim in &self.claims {
            let path = &claim.device().path;
            let Some(at) = Version::V1_2.superblock(Sectors(claim.device().size / SECTOR_BYTES))
            else {
                continue;
            };
            let file = claim.cached_file()?;
            let cleared = file.write_all_at(&[0; SUPERBLOCK], at.bytes());
            cleared
                .and_then(|()| file.sync_all())
                .map_err(|error| EngineError::io("clear a superblock", path, error))?;
        }
        Ok(())
    }

    /// What each is, in the order they were named.
    pub fn each(&self) -> impl Iterator<Item = &Device> {
        self.claims.iter().map(Claim::device)
    }

    /// The claims, in the same order.
    pub fn claims(&self) -> &[Claim] {
        &self.claims
    }

    /// What a device is used for.
    pub fn role(&self, index: usize) -> String {
        match index.checked_sub(self.places.count()) {
            None => match self.places.group(index) {
                None => format!("member {index}"),
                Some(group) => format!("member, for {group}"),
            },
            Some(0) if self.has_spare => "spare".to_string(),
            Some(_) => "log device".to_string(),
        }
    }

    /// Claims as many devices as the study needs, exclusively, until they are dropped; to be written with `write`.
    ///
    /// # Errors
    /// When they are not as many as needed, not apart, too small, or somebody else's.
    pub fn claim(
        study: &Study,
        sizes: &Sizes,
        paths: &[PathBuf],
        write: bool,
    ) -> Result<Self, MeasureError> {
        let places = Places::of(study);
        let extra = sizes.extra(study);
        let needed = places.count()
            + usize::from(extra.spare.is_some())
            + usize::from(extra.journal.is_some());
        let on = |what: String| MeasureError::input(format!("--on: {what}"));
        if paths.len() != needed {
            let with = match (extra.spare, extra.journal) {
                (None, None) => "",
                (Some(_), None) => ", the last as the spare",
                (None, Some(_)) => ", the last as the log device",
                (Some(_), Some(_)) => ", the last two as spare and log device",
            };
            let given = paths.len();
            let of = places.each_group();
            let reason = format!("{given} devices are given, the study uses {needed}{of}{with}");
            return Err(on(format!("{reason}; name as many, or change the study")));
        }
        let mut devices = Self { claims: Vec::new(), places, has_spare: extra.spare.is_some() };
        for path in paths {
            // The same twice would be busy by ourselves.
            let own = Device::inspect(path).map_err(|error| on(error.to_string()))?;
            if let Some(other) = devices.each().find(|other| other.overlaps(&own)) {
                let both = format!("{} and {}", other.path.display(), path.display());
                return Err(on(format!("{both} are the same device, or one is part of the other")));
            }
            let claim = Claim::take(path, write).map_err(|error| match error.kind() {
                EngineErrorKind::Io => on(format!("{error}; block devices need root, as a rule")),
                _ => on(error.to_string()),
            })?;
            devices.claims.push(claim);
        }
        let sizes_needed = (0..needed).map(|index| match extra.journal {
            Some(bytes) if index + 1 == needed => bytes,
            _ if index >= devices.places.count() => sizes.file,
            _ => devices.places.largest(index, &sizes.members).bytes(),
        });
        for (device, bytes) in devices.each().zip(sizes_needed) {
            if device.size < bytes && device.refusals.is_empty() {
                let hint = "make member_size, file or --size smaller";
                let (path, size) = (device.path.display(), Size(device.size));
                return Err(on(format!(
                    "{path} has {size}, the study needs {}; {hint}",
                    Size(bytes)
                )));
            }
        }
        Ok(devices)
    }

    /// Says which part of the largest device is used, where that is less than half of it: random places are
    /// that near to each other, on a disk with seeks as short.
    pub fn parts_used(&self, study: &Study, bytes: u64) -> Option<String> {
        part_used(study, bytes, self.each().map(|device| device.size).max()?)
    }

    /// About how many seconds it takes to write or read so much in so many places once, one drive at a time.
    pub fn seconds(&self, filling: Filling) -> f64 {
        let [rate, place] =
            if self.each().any(|device| device.rotational) { [150e6, 0.01] } else { [500e6, 1e-4] };
        filling.bytes as f64 / rate + filling.places as f64 * place
    }

    /// What a reader must know of these devices.
    pub fn warnings(&self) -> Vec<String> {
        let all: Vec<&Device> = self.each().collect();
        let mut warnings = Vec::new();
        for (index, device) in all.iter().enumerate() {
            if let Some(other) = all[..index].iter().find(|other| other.disk == device.disk) {
                warnings.push(format!(
                    "devices {} and {} are parts of one disk: layouts compete with themselves for it",
                    other.name, device.name
                ));
            }
        }
        if all.iter().any(|device| device.backing_file.is_some()) {
            warnings.push("loop devices are files: what is below them sets the pace".into());
        }
        warnings
    }
}

fn part_used(study: &Study, bytes: u64, device: u64) -> Option<String> {
    if bytes.saturating_mul(2) >= device {
        return None;
    }
    let percent = bytes as f64 / device as f64 * 100.0;
    let percent = if percent < 0.1 { "less than 0.1".to_string() } else { format!("{percent:.1}") };
    let why = if study.member_size.is_some() {
        ", as member_size says"
    } else {
        "; member_size = \"64GiB\" in the study makes arrays use so much of each, which is filled, rebuilt \
         and verified for every cell that goes all over it"
    };
    Some(format!(
        "only the first {} of each device are used, {percent} % of {}: random places are that near to each \
         other{why}",
        Size(bytes),
        Size(device)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_part_of_a_device_is_told() {
        let mut study = raidlab_study::parse(raidlab_study::default_study(), "").expect("a study");
        let told = part_used(&study, 22 << 20, 8_000_000_000_000).expect("a small part");
        assert!(
            told.starts_with(
                "only the first 22MiB of each device are used, less than 0.1 % of 8TB:"
            )
        );
        assert!(told.contains("member_size = \"64GiB\" in the study"), "{told}");
        study.member_size = Some(Sectors(1 << 21));
        let told = part_used(&study, 1 << 30, 10 << 30).expect("a small part");
        assert!(told.contains("1GiB of each device are used, 10.0 % of 10GiB"), "{told}");
        assert!(told.ends_with("each other, as member_size says"), "{told}");
        assert_eq!(part_used(&study, 5 << 30, 10 << 30), None);
    }
}
