//! How large arrays on member files and their members are.

use raidlab_core::geometry::Geometry;
use raidlab_core::{Layout, LayoutError, Level, SECTOR_BYTES, Sectors};
use raidlab_study::{DriveSource, NamedLayout, Study, StudyError, StudyErrorKind};
use raidlab_workload::{Span, WorkloadSpec};

/// Member files whose size the study leaves open are a multiple of this, in bytes.
const ROUND: u64 = 1 << 20;
/// Arrays whose size the study leaves open are at least this large, in bytes: random places of less
/// would lie in the caches of any drive.
const SMALLEST_ARRAY: u64 = 64 << 20;
/// Real files are read and written in whole blocks of this many sectors (4 KiB).
const BLOCK: u32 = 8;

/// How large the arrays and their members are.
pub(super) struct Sizes {
    /// Bytes of each member file.
    pub(super) file: u64,
    /// The study says how large files are.
    pub(super) given: bool,
    /// Sectors of each member, by layout.
    pub(super) members: Vec<Sectors>,
    /// Sectors of each array, by layout.
    pub(super) capacities: Vec<Sectors>,
}

impl Sizes {
    /// For groups of files the size they give; else such that each array just holds every workload,
    /// and all arrays are of about one size.
    pub(super) fn of(study: &Study) -> Result<Self, StudyError> {
        let needed = study
            .workloads
            .iter()
            .flat_map(|workload| study.processes.iter().map(|count| needed(workload, *count)))
            .fold(SMALLEST_ARRAY, u64::max);
        let mut sizes = Self { file: 0, given: false, members: Vec::new(), capacities: Vec::new() };
        for (index, named) in study.layouts.iter().enumerate() {
            let impossible = |error: LayoutError| {
                let place = ("layouts", index, error.key);
                study.origin.error(StudyErrorKind::ImpossibleLayout, place, error.reason)
            };
            let member = match study.drives[named.drives].source {
                DriveSource::File(size) => {
                    sizes.given = true;
                    Sectors(size.0 / SECTOR_BYTES)
                }
                DriveSource::Model(_) => member_for(named, needed).map_err(impossible)?,
            };
            let capacity = capacity(named, member).map_err(impossible)?;
            sizes.file = sizes.file.max(member.bytes());
            sizes.members.push(member);
            sizes.capacities.push(capacity);
        }
        let blocks: Vec<u32> = study.layouts.iter().map(|named| block(&named.layout)).collect();
        study.check_capacity(&sizes.capacities, &blocks)?;
        Ok(sizes)
    }
}

/// The smallest request of an array, in sectors: raid3 takes a sector of each data member at least,
/// and their number is a power of two.
fn block(layout: &Layout) -> u32 {
    match layout.level {
        Level::Raid3 => BLOCK.max(u32::from(layout.members) - 1),
        _ => BLOCK,
    }
}

fn capacity(named: &NamedLayout, member: Sectors) -> Result<Sectors, LayoutError> {
    let members = vec![member; usize::from(named.layout.members)];
    Geometry::new(&named.layout, &members).map(|geometry| geometry.capacity())
}

/// Bytes an array must have for a workload: evenly spread files start on whole blocks.
fn needed(workload: &WorkloadSpec, processes: u32) -> u64 {
    let files = if workload.kind.is_random() {
        workload.block
    } else {
        (workload.size.next_multiple_of(workload.block) + workload.block)
            .saturating_mul(u64::from(processes))
    };
    match workload.span {
        Span::Percent(percent) => files.saturating_mul(100).div_ceil(u64::from(percent)),
        Span::Bytes(bytes) => bytes.max(workload.block),
    }
}

/// The smallest member, in whole MiB and chunks, with which the array holds `needed` bytes.
fn member_for(named: &NamedLayout, needed: u64) -> Result<Sectors, LayoutError> {
    let step = ROUND.max(named.layout.chunk.bytes()).next_multiple_of(ROUND) / SECTOR_BYTES;
    let (mut low, mut high) = (0, needed / (step * SECTOR_BYTES) + 1);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        let enough = capacity(named, Sectors(middle * step))?.bytes() >= needed;
        if enough { high = middle } else { low = middle }
    }
    Ok(Sectors(high * step))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study(changes: &[(&str, &str)]) -> Study {
        let mut text = raidlab_study::default_study().to_string();
        for (old, new) in changes {
            assert!(text.contains(old), "{old}");
            text = text.replace(old, new);
        }
        raidlab_study::parse(&text, "study.toml").expect("a study")
    }

    #[test]
    fn every_array_just_holds_every_workload() {
        for changes in [&[][..], &[("4GiB", "10MiB")], &[("4GiB", "6MiB"), ("100%", "7%")]] {
            let study = study(changes);
            let sizes = Sizes::of(&study).expect("sizes");
            let processes = 4;
            let all = study.workloads.iter().map(|workload| needed(workload, processes));
            let needed = all.fold(SMALLEST_ARRAY, u64::max);
            for (named, (member, capacity)) in
                study.layouts.iter().zip(sizes.members.iter().zip(&sizes.capacities))
            {
                assert!(capacity.bytes() >= needed, "{} holds too little", named.name);
                let smaller = Sectors(member.0 - ROUND / SECTOR_BYTES);
                let less = super::capacity(named, smaller).expect("possible");
                assert!(less.bytes() < needed, "{} is larger than it must be", named.name);
            }
        }
    }

    #[test]
    fn a_span_in_bytes_is_held() {
        let study = study(&[("span = \"100%\"", "span = \"1GiB\""), ("4GiB", "12MiB")]);
        let sizes = Sizes::of(&study).expect("sizes");
        assert!(sizes.capacities.iter().all(|capacity| capacity.bytes() >= 1 << 30));
    }

    #[test]
    fn files_that_are_too_small_are_told_with_the_line() {
        let study = study(&[("model = \"nas-8tb-7200\"", "file = \"256KiB\"")]);
        let error = Sizes::of(&study).err().expect("no sizes").to_string();
        assert!(error.starts_with("study.toml:"), "{error}");
        assert!(error.contains("layouts.members: member 0 has room for 256KiB only"), "{error}");
    }
}
