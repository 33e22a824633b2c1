//! What a new array is made of: files, and block devices once they are confirmed.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use raidlab_core::{SECTOR_BYTES, Sector, Sectors};
use raidlab_engine::{Claim, Device, FileMember, FileOptions};
use raidlab_metadata::Source;
use raidlab_metadata::md::inspect;

use super::args::Create;
use super::create::{MISSING, clear};
use super::disk::{Disk, is_blank};
use super::examine::uuid;
use crate::consent;
use crate::failure::Failure;

/// A file or block device that becomes part of a new array.
pub(super) struct Target {
    pub(super) path: PathBuf,
    pub(super) file: File,
    pub(super) sectors: Sectors,
    /// What one sector of its own has.
    pub(super) sector: Sectors,
    /// Places of superblocks that are there.
    old: Vec<Sector>,
    /// Keeps other programs, and other members, away.
    pub(super) claim: Option<FileMember>,
    /// The right to a block device, which is opened exclusively from before it is looked at.
    device: Option<Claim>,
}

/// Refuses what is given twice, and block devices that share sectors: claimed one after the other they would be busy by
/// ourselves.
pub(super) fn distinct<'a>(all: impl Iterator<Item = &'a Path>) -> Result<(), Failure> {
    let mut seen: Vec<Device> = Vec::new();
    let all: Vec<_> = all.filter(|path| *path != Path::new(MISSING)).collect();
    if let Some((_, path)) = all.iter().enumerate().find(|(at, path)| all[..*at].contains(path)) {
        return Err(Failure::input(format!("{} is given twice", path.display())));
    }
    for path in all.into_iter().filter(|path| consent::is_device(path)) {
        let own = Device::inspect(path).map_err(Failure::failed)?;
        if let Some(other) = seen.iter().find(|other| other.overlaps(&own)) {
            let both = format!("{} and {}", other.path.display(), path.display());
            let what = "are the same device, or one is part of the other";
            return Err(Failure::input(format!("{both} {what}")));
        }
        seen.push(own);
    }
    Ok(())
}

/// Opens and claims each member, and looks at what is on it.
pub(super) fn targets(options: &Create) -> Result<Vec<Option<Target>>, Failure> {
    let all = options.members.iter().chain(&options.spare).chain(&options.write_journal);
    distinct(all.map(PathBuf::as_path))?;
    let mut targets: Vec<Option<Target>> = Vec::new();
    for path in &options.members {
        if path == Path::new(MISSING) {
            targets.push(None);
            continue;
        }
        targets.push(Some(target(path, options)?));
    }
    Ok(targets)
}

/// The same of one.
pub(super) fn target(path: &Path, options: &Create) -> Result<Target, Failure> {
    if path.metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        let shown = path.display();
        let what = "no such file: make it first, as large as the member is to be";
        return Err(Failure::input(format!("{shown}: {what} (truncate -s 1G {shown})")));
    }
    let mut disk = Disk::open(path)?;
    if consent::is_device(path) {
        return device(path, &mut disk, options);
    }
    let old = old(&mut disk, options.overwrite, path)?;
    if !options.overwrite && !is_blank(&disk).map_err(|error| failed(path, &error))? {
        let what = "something stands on it; --overwrite makes the array nevertheless";
        return Err(Failure::Refused(format!("{}: {what}", path.display())));
    }
    let claim = Some(claimed(path)?);
    let file = OpenOptions::new().read(true).write(true).open(path);
    let file = file.map_err(|error| failed(path, &error))?;
    let sectors = disk.sectors();
    let sector = Sectors(1);
    Ok(Target { path: path.to_owned(), file, sectors, sector, old, claim, device: None })
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("{}: {error}", path.display()))
}

/// Through the page cache, as it is written here.
pub(super) fn claimed(path: &Path) -> Result<FileMember, Failure> {
    let options = FileOptions { direct: false, ..FileOptions::default() };
    FileMember::open(path, options).map_err(Failure::failed)
}

/// Where superblocks are already, which only `overwrite` allows.
fn old(disk: &mut Disk, overwrite: bool, path: &Path) -> Result<Vec<Sector>, Failure> {
    let found = inspect(disk);
    if let Some(seen) = found.seen.first().filter(|_| !overwrite) {
        let (name, id) = (seen.superblock.name(), uuid(&seen.superblock.array));
        let what = format!("is a member of an md array already ({name}, {id})");
        let hint = "; --overwrite makes the array nevertheless";
        return Err(Failure::Refused(format!("{} {what}{hint}", path.display())));
    }
    Ok(found.seen.iter().filter_map(|seen| seen.version.superblock(found.sectors)).collect())
}

/// A block device, which nobody else may use, and nothing known may stand on.
fn device(path: &Path, disk: &mut Disk, options: &Create) -> Result<Target, Failure> {
    let destructive = options.consent.destructive;
    let claim = consent::claim(path, destructive)?;
    let problems = consent::problems(claim.device(), (!options.overwrite).then_some("--overwrite"));
    if !problems.is_empty() {
        return Err(consent::refused(&problems));
    }
    let old = old(disk, options.overwrite, path)?;
    // A claim of this process is known to members.
    let member = destructive.then(|| claimed(path)).transpose()?;
    let file = if destructive { claim.cached_file() } else { claim.file() };
    let file = file.map_err(Failure::failed)?;
    let sectors = Sectors(claim.device().size / SECTOR_BYTES);
    let sector = Sectors(u64::from(claim.device().sector) / SECTOR_BYTES);
    let path = path.to_owned();
    Ok(Target { path, file, sectors, sector, old, claim: member, device: Some(claim) })
}

impl Target {
    /// Nothing stays that says what it was: superblocks that are there; of a block device all that is saved.
    pub(super) fn clear_old(&self) -> Result<(), Failure> {
        let failed = |error: io::Error| failed(&self.path, &error);
        self.old.iter().try_for_each(|at| clear(&self.file, *at)).map_err(failed)?;
        match &self.device {
            Some(claim) => consent::clear_ends(&self.file, claim.device()).map_err(failed),
            None => Ok(()),
        }
    }
}

/// Whether the array is to be made of these. Block devices are shown first, and are written only when that is wanted
/// and each of them is confirmed; their ends are saved then.
///
/// # Errors
/// When they are not confirmed, or flags for block devices are given without any.
pub(super) fn approve(options: &Create, all: &[&Target]) -> Result<bool, Failure> {
    let claims: Vec<&Claim> = all.iter().filter_map(|one| one.device.as_ref()).collect();
    if claims.is_empty() {
        let example = "array create raid1 /dev/sdb /dev/sdc --destructive";
        consent::refuse_flags(&options.consent.given(), example)?;
        return Ok(!options.dry_run);
    }
    let array = options.name.as_deref().unwrap_or("array");
    let becomes = format!("becomes part of the array {array}");
    consent::ask(&options.consent, "The array would be made on:", &claims, &becomes)
}
