//! `raidlab array export-file`: what an array holds, as a file.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use raidlab_core::{SECTOR_BYTES, Sector, Size};
use raidlab_engine::{Engine, EngineError, EngineErrorKind};

use super::args::Export;
use super::open::Found;
use crate::failure::Failure;
use crate::interrupt;
use crate::output;
use crate::progress::Bar;

/// Read at once.
const STEP: u64 = 8 << 20;
/// Zeroes of so many bytes become a hole.
const HOLE: usize = 64 << 10;
/// Where something cannot be read, so much is given up at least, and whole blocks of the array.
const LEAST: u64 = 4096;
/// Ranges that are told of.
const TOLD: usize = 20;

pub(super) fn run(options: &Export) -> Result<(), Failure> {
    let stop = interrupt::flag()?;
    check_name(&options.out)?;
    let found = Found::new(&options.members)?;
    let mut engine = found.held_engine()?;
    let part = Part::new(&options.out)?;
    let copied = copy(&mut engine, &part, options, stop)?;
    part.keep(&options.out)?;
    for one in &found.beside {
        output::note(&format!("not used: {one}"));
    }
    let assembly = found.assembly()?;
    let missing = assembly.missing().len();
    let degraded =
        if missing > 0 { format!(", without {missing} of its members") } else { String::new() };
    output::print(&format!(
        "{}: {} of {} ({}) copied{degraded}, {} of it zero\n",
        options.out.display(),
        Size(copied.bytes),
        assembly.name,
        assembly.layout,
        Size(copied.zeroes)
    ))?;
    if copied.lost.is_empty() {
        return Ok(());
    }
    let mut lines: Vec<_> = copied
        .lost
        .iter()
        .take(TOLD)
        .map(|(at, len)| format!("  bytes {at} to {} of the array", at + len - 1))
        .collect();
    if copied.lost.len() > TOLD {
        lines.push(format!("  and {} ranges more", copied.lost.len() - TOLD));
    }
    let total: u64 = copied.lost.iter().map(|(_, len)| len).sum();
    let what = format!("{total} bytes could not be read and are zero in the copy:");
    Err(Failure::failed(format!("{what}\n{}", lines.join("\n"))))
}

/// Before members are looked at, of which the last one is taken for the copy where that was forgotten.
fn check_name(out: &Path) -> Result<(), Failure> {
    let shown = out.display();
    if out == Path::new("-") {
        let what = "-: a copy with holes is made, which cannot be printed: name a file, such as ./copy.img";
        return Err(Failure::input(what));
    }
    if out.symlink_metadata().is_ok() {
        let what =
            "exists already; the last name is that of the copy, a file that is not there yet";
        return Err(Failure::input(format!("{shown} {what}")));
    }
    Ok(())
}

/// What was copied.
#[derive(Default)]
struct Copied {
    bytes: u64,
    zeroes: u64,
    lost: Vec<(u64, u64)>,
}

/// A file that is being written, which goes away unless it is kept.
struct Part {
    file: File,
    path: Option<PathBuf>,
}

impl Part {
    fn new(out: &Path) -> Result<Self, Failure> {
        let mut name = out.as_os_str().to_owned();
        name.push(".part");
        let path = PathBuf::from(name);
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = file.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Failure::input(format!(
                "{} exists already: the copy is made under that name, which a copy that was killed leaves, and one \
                 that is under way has; remove it if none is, or give the copy another name",
                path.display()
            )),
            _ => Failure::failed(format!("{}: {error}", path.display())),
        })?;
        Ok(Self { file, path: Some(path) })
    }

    /// Gives the file its name.
    fn keep(mut self, out: &Path) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::failed(format!("{}: {error}", out.display()));
        self.file.sync_all().map_err(failed)?;
        let Some(path) = self.path.take() else { return Ok(()) };
        fs::rename(path, out).map_err(failed)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(path) = self.path.take() {
            // What failed before is the error to tell.
            let _ = fs::remove_file(path);
        }
    }
}

fn copy(
    engine: &mut Engine,
    part: &Part,
    options: &Export,
    stop: &AtomicBool,
) -> Result<Copied, Failure> {
    let out = |error: io::Error| {
        let hint =
            if error.kind() == io::ErrorKind::StorageFull { "; nothing of it is kept" } else { "" };
        Failure::failed(format!("{}: {error}{hint}", options.out.display()))
    };
    let capacity = engine.array().capacity().bytes();
    part.file.set_len(capacity).map_err(out)?;
    let mut copied = Copied { bytes: capacity, ..Copied::default() };
    let mut bytes = vec![0; STEP as usize];
    let bar = Bar::share(options.quiet);
    let mut at = 0;
    while at < capacity {
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted);
        }
        let len = STEP.min(capacity - at);
        let here = &mut bytes[..len as usize];
        read(engine, at, here, options.skip_unreadable, &mut copied.lost)?;
        for (index, block) in here.chunks(HOLE).enumerate() {
            if block.iter().all(|byte| *byte == 0) {
                copied.zeroes += block.len() as u64;
            } else {
                part.file.write_all_at(block, at + (index * HOLE) as u64).map_err(out)?;
            }
        }
        at += len;
        let amount = format!("{} of {} copied", Size(at), Size(capacity));
        bar.show((at >> 20) as usize, (capacity >> 20).max(1) as usize, amount);
    }
    bar.clear();
    Ok(copied)
}

/// Reads a range; where that fails and zeroes are wanted instead, as much of it as can be had.
fn read(
    engine: &mut Engine,
    at: u64,
    into: &mut [u8],
    skip: bool,
    lost: &mut Vec<(u64, u64)>,
) -> Result<(), Failure> {
    let error = match engine.read_at(Sector(at / SECTOR_BYTES), into) {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    if !skip || !is_of_the_medium(&error) {
        let hint = is_of_the_medium(&error).then(|| {
            "--skip-unreadable goes on with zeroes in its place, and tells which".to_owned()
        });
        return Err(Failure::failed(error).and(hint));
    }
    let len = into.len() as u64;
    let block = u64::from(engine.array().logical_block()) * SECTOR_BYTES;
    let least = LEAST.next_multiple_of(block);
    if len <= least {
        into.fill(0);
        match lost.last_mut() {
            Some((start, before)) if *start + *before == at => *before += len,
            _ => lost.push((at, len)),
        }
        return Ok(());
    }
    let half = (len / 2).next_multiple_of(least);
    let (first, second) = into.split_at_mut(half as usize);
    read(engine, at, first, skip, lost)?;
    read(engine, at + half, second, skip, lost)
}

fn is_of_the_medium(error: &EngineError) -> bool {
    matches!(error.kind(), EngineErrorKind::MediaError)
}

#[cfg(test)]
mod tests {
    use raidlab_core::{Config, Layout, Level, MemberIndex, Sectors};
    use raidlab_engine::{Member, MemoryMember};

    use super::*;

    /// Blocks of raid3 are as large as all members' sectors together, larger than what is given up otherwise.
    #[test]
    fn what_cannot_be_read_is_given_up_in_blocks_of_the_array() {
        for (sector, members, block) in [(8, 5, 16384), (1, 5, 4096), (1, 17, 8192)] {
            let mut config =
                Config::uniform(Layout::new(Level::Raid3, members), Sectors(sector * 24));
            config.members.iter_mut().for_each(|member| member.logical_block = sector as u32);
            let count = usize::from(members);
            let disk = || MemoryMember::new(Sectors(sector * 24)).map(Member::from).unwrap();
            let disks = || (0..count).map(|n| (n > 0).then(disk)).collect::<Vec<_>>();
            // One sector of a member beside one that is missing.
            let bad = [(MemberIndex(1), Sector(sector * 9), Sectors(sector))];
            let mut engine = Engine::read_only(&config, disks(), &bad).unwrap();
            let mut bytes = vec![1; engine.array().capacity().bytes() as usize];
            let mut lost = Vec::new();
            read(&mut engine, 0, &mut bytes, true, &mut lost).unwrap();
            let stripe = sector * 512 * u64::from(members - 1);
            assert_eq!(lost, [(9 * stripe / block * block, block)], "{sector} {members}");
            assert!(read(&mut engine, 0, &mut bytes, false, &mut lost).is_err());
        }
    }
}
