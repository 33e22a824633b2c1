//! `raidlab array dump-metadata` and `restore-metadata`: what stands on members besides data, kept in sparse files.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use raidlab_core::SECTOR_BYTES;
use raidlab_engine::{Claim, EngineErrorKind, ReadHold};
use raidlab_metadata::Source;
use raidlab_metadata::md::{Aside, BitmapSeen, Inspected, LARGEST_BITMAP, Superblock, inspect};

use super::args::{Dump, Restore};
use super::disk::Disk;
use super::examine::uuid;
use super::{signature, targets};
use crate::consent;
use crate::failure::Failure;
use crate::output;

/// Bytes by which a bitmap (its magic, version and array) and a log are known.
const KNOWN_BY: usize = 24;
/// Bytes that are copied at once.
const STEP: u64 = 1 << 20;

/// Ranges of a member, in sectors, that hold metadata. None goes on where something else begins, and none but the
/// superblock begins in the data: what says how long a bitmap is has no checksum, and what stands behind a bitmap would
/// be written over data when it is brought back.
fn ranges(found: &Inspected, one: &Superblock) -> Vec<(u64, u64)> {
    let sectors = (one.len() as u64).div_ceil(SECTOR_BYTES);
    let mut ranges = vec![(one.super_offset, sectors)];
    let mut add = |offset: i32, len: u64| {
        if let Some(at) = one.beside(offset).filter(|_| len > 0) {
            ranges.push((at.0, len));
        }
    };
    add(one.bad_blocks.offset, u64::from(one.bad_blocks.size));
    match (one.aside, &found.bitmap) {
        (Aside::Bitmap(offset), BitmapSeen::Found(bitmap, _)) => {
            add(offset, bitmap.sectors().map_or(0, |len| len.min(LARGEST_BITMAP).0));
        }
        (Aside::PartialParity { offset, size }, _) => add(i32::from(offset), u64::from(size)),
        _ => {}
    }
    let data = one.data_offset..one.data_offset.saturating_add(one.used().min(one.data_size));
    let others = [one.data_offset, found.sectors.0];
    let starts: Vec<u64> = ranges.iter().map(|(at, _)| *at).chain(others).collect();
    for (at, len) in ranges.iter_mut().skip(1) {
        let next = starts.iter().copied().filter(|start| *start > *at).min();
        let room = next.filter(|_| !data.contains(&*at)).map_or(0, |next| next - *at);
        *len = room.min(*len);
    }
    let is_inside =
        |(at, len): &(u64, u64)| at.checked_add(*len).is_some_and(|end| end <= found.sectors.0);
    ranges.retain(|range| range.1 > 0 && is_inside(range));
    ranges
}

/// What of a bitmap is not saved, in words: its head may be damaged, which cannot be told from what it says.
fn left_out(found: &Inspected, one: &Superblock, ranges: &[(u64, u64)]) -> Option<String> {
    let (Aside::Bitmap(offset), BitmapSeen::Found(bitmap, _)) = (one.aside, &found.bitmap) else {
        return None;
    };
    let said = bitmap.sectors().map_or(0, |len| len.0);
    let at = one.beside(offset).map_or(0, |at| at.0);
    let saved = ranges.iter().skip(1).find(|range| range.0 == at).map_or(0, |range| range.1);
    (saved != said || said == 0).then(|| {
        format!(
            "the bitmap at sector {at} says that it takes {said} sectors, which does not fit where it lies: its head \
             may be damaged; {saved} sectors of it are saved"
        )
    })
}

/// Where what was saved of a member lies.
fn saved(directory: &Path, member: &Path) -> Result<PathBuf, Failure> {
    let name = member.file_name();
    let name = name.ok_or_else(|| Failure::input(format!("{} has no name", member.display())))?;
    Ok(directory.join(name))
}

fn at(path: &Path) -> impl Fn(io::Error) -> Failure + '_ {
    move |error| Failure::failed(format!("{}: {error}", path.display()))
}

/// Where each member is saved, a file of its own that is not there yet.
fn places(options: &Dump) -> Result<Vec<PathBuf>, Failure> {
    let mut places: Vec<PathBuf> = Vec::new();
    for (number, member) in options.members.iter().enumerate() {
        let place = saved(&options.to, member)?;
        if let Some(other) = places.iter().position(|other| *other == place) {
            let (other, own) =
                (options.members[other].display(), options.members[number].display());
            let what = "have the same file name: save them by a command each, into directories of their own (--to)";
            return Err(Failure::input(format!("{other} and {own} {what}")));
        }
        if place.symlink_metadata().is_ok() {
            let what = "exists already: name another directory (--to), or move it away";
            return Err(Failure::Refused(format!("{} {what}", place.display())));
        }
        places.push(place);
    }
    Ok(places)
}

pub(super) fn dump(options: &Dump) -> Result<(), Failure> {
    let places = places(options)?;
    let mut looked = Vec::new();
    let mut held = Vec::new();
    for member in &options.members {
        let mut disk = Disk::open(member)?;
        match ReadHold::take(disk.file(), member) {
            Ok(hold) => held.push(hold),
            Err(error) if error.kind() == EngineErrorKind::Busy => {
                output::note(&format!("{error}: what is saved may change meanwhile"));
            }
            Err(error) => return Err(Failure::failed(error)),
        }
        let found = inspect(&mut disk);
        let Some(one) = found.superblock() else {
            return Err(Failure::failed(format!("{}: no md superblock", member.display())));
        };
        let ranges = ranges(&found, one);
        if let Some(what) = left_out(&found, one, &ranges) {
            output::note(&format!("{}: {what}", member.display()));
        }
        looked.push((disk, ranges, found.sectors.bytes()));
    }
    fs::create_dir_all(&options.to).map_err(at(&options.to))?;
    for (number, (path, (disk, ranges, length))) in places.iter().zip(&looked).enumerate() {
        if let Err(error) = save(disk, path, ranges, *length) {
            // Nothing of it stays, but what another program made meanwhile; the first error is the one to tell.
            let is_own = error.kind() != io::ErrorKind::AlreadyExists;
            for path in &places[..number + usize::from(is_own)] {
                let _ = fs::remove_file(path);
            }
            return Err(at(path)(error));
        }
    }
    let line = |(member, path): (&PathBuf, &PathBuf)| {
        format!("{} saved as {}\n", member.display(), path.display())
    };
    output::print(&options.members.iter().zip(&places).map(line).collect::<String>())
}

fn save(disk: &Disk, path: &Path, ranges: &[(u64, u64)], length: u64) -> io::Result<()> {
    let file = File::create_new(path)?;
    file.set_len(length)?;
    for (at, len) in ranges {
        copy(disk.file(), &file, *at, *len)?;
    }
    file.sync_all()
}

fn copy(from: &File, to: &File, at: u64, len: u64) -> io::Result<()> {
    let (mut at, end) = (at * SECTOR_BYTES, (at + len) * SECTOR_BYTES);
    let mut bytes = vec![0; STEP.min(end - at) as usize];
    while at < end {
        let step = &mut bytes[..STEP.min(end - at) as usize];
        from.read_exact_at(step, at)?;
        to.write_all_at(step, at)?;
        at += step.len() as u64;
    }
    Ok(())
}

/// What stands on a member that is none of the array's metadata, where those are to go.
fn other(
    there: &mut Disk,
    saved: &Disk,
    ranges: &[(u64, u64)],
    one: &Superblock,
) -> io::Result<Option<String>> {
    if let Some(own) = inspect(there).superblock() {
        return Ok(match own.array == one.array {
            false => {
                let (name, array) = (own.name(), uuid(&own.array));
                Some(format!("it is a member of another md array ({name}, {array})"))
            }
            true if own.events > one.events => Some(format!(
                "the superblock there is newer, of event {}, and the saved one of event {}: with that, what was \
                 recorded since, such as members that failed, is forgotten, and older contents are taken for current",
                own.events, one.events
            )),
            true => None,
        });
    }
    // Where a superblock is lost, the rest may be as it was or newer: that tells itself by how it begins.
    for (number, (at, len)) in ranges.iter().enumerate() {
        let compared = if number == 0 { (len * SECTOR_BYTES) as usize } else { KNOWN_BY };
        let (mut now, mut then) = (vec![0; compared], vec![0; compared]);
        there.file().read_exact_at(&mut now, at * SECTOR_BYTES)?;
        saved.file().read_exact_at(&mut then, at * SECTOR_BYTES)?;
        let is_list =
            number > 0 && *at as i64 - one.super_offset as i64 == i64::from(one.bad_blocks.offset);
        if !is_list && now != then && now.iter().any(|byte| *byte != 0) {
            return Ok(Some("something else stands where its metadata were".into()));
        }
    }
    // Whoever made a filesystem of it since may have left the places of metadata alone.
    let start = signature::at_start(there);
    let start = start.map_err(|_| io::Error::other("its start cannot be read"))?;
    Ok(start.map(|what| match one.data_offset {
        0 => format!(
            "its superblock is lost and {what} stands at its start, which may be what the array holds, whose data \
             begin there, or something that was made since"
        ),
        _ => format!("its superblock is lost and {what} stands at its start, before the array's data"),
    }))
}

/// A block device that nobody else uses.
fn claimed(member: &Path, destructive: bool) -> Result<Claim, Failure> {
    let claim = consent::claim(member, destructive)?;
    match &consent::problems(claim.device(), None)[..] {
        [] => Ok(claim),
        problems => Err(consent::refused(problems)),
    }
}

/// Whether it is to be written.
fn approve(options: &Restore, claims: &[Claim]) -> Result<bool, Failure> {
    if claims.is_empty() {
        let given = options.consent.given();
        let others: Vec<_> = given.into_iter().filter(|one| one.0 != "--destructive").collect();
        consent::refuse_flags(&others, "array restore-metadata --from saved /dev/sdb")?;
        return Ok(options.consent.destructive);
    }
    let claims: Vec<&Claim> = claims.iter().collect();
    let what = "Metadata would be written back to:";
    consent::ask(&options.consent, what, &claims, "gets back its metadata of md")
}

pub(super) fn restore(options: &Restore) -> Result<(), Failure> {
    let mut ready = Vec::new();
    let mut claims = Vec::new();
    // Nobody else, such as an array that runs, writes them from before they are looked at.
    let mut held = Vec::new();
    for member in &options.members {
        let path = saved(&options.from, member)?;
        let mut disk = Disk::open(&path)?;
        let found = inspect(&mut disk);
        let Some(one) = found.superblock().cloned() else {
            return Err(Failure::failed(format!("{}: no md superblock was saved", path.display())));
        };
        if consent::is_device(member) {
            claims.push(claimed(member, options.consent.destructive)?);
        }
        let mut there = Disk::open(member)?;
        if options.consent.destructive {
            held.push(targets::claimed(member)?);
        }
        if there.sectors() != found.sectors {
            let (now, then) = (there.sectors(), found.sectors);
            return Err(Failure::input(format!(
                "{} has {now}, it had {then} when it was saved",
                member.display()
            )));
        }
        let ranges = ranges(&found, &one);
        if !options.overwrite
            && let Some(what) = other(&mut there, &disk, &ranges, &one).map_err(at(member))?
        {
            let hint = "; --overwrite writes the metadata nevertheless";
            return Err(Failure::Refused(format!("{}: {what}{hint}", member.display())));
        }
        ready.push((member, disk, ranges, one));
    }
    let writes = approve(options, &claims)?;
    let mut text = String::new();
    for (member, disk, ranges, one) in ready {
        let bytes: u64 = ranges.iter().map(|(_, len)| len * SECTOR_BYTES).sum();
        let what = format!(
            "{}: {bytes} bytes of metadata of {} {}",
            member.display(),
            one.name(),
            uuid(&one.array)
        );
        if !writes {
            text.push_str(&format!("{what} would be written; --destructive does it\n"));
            continue;
        }
        let file = OpenOptions::new().write(true).open(member).map_err(at(member))?;
        // The superblock, which comes first, is written last: without it the rest is nothing.
        for (from, len) in ranges.iter().rev() {
            copy(disk.file(), &file, *from, *len).map_err(at(member))?;
            file.sync_all().map_err(at(member))?;
        }
        text.push_str(&format!("{what} written\n"));
    }
    output::print(&text)
}
