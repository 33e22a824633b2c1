//! `raidlab array add --journal`: a journal for an array that has none and does not run.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use raidlab_core::{Sectors, Size};
use raidlab_engine::{Claim, FileMember, FileOptions, Member, add_md_journal};
use raidlab_metadata::md::AddedJournal;

use super::disk::look;
use super::examine::uuid;
use super::running::args::Add;
use super::running::{self, device, is_running, not_itself};
use super::targets::distinct;
use crate::consent;
use crate::failure::Failure;
use crate::output;

pub(super) fn run(options: &Add, log: &Path) -> Result<(), Failure> {
    let first = PathBuf::from(&options.running.array);
    let paths: Vec<PathBuf> = [first].into_iter().chain(options.devices.iter().cloned()).collect();
    if paths.len() == 1 || is_running(&paths[0]) {
        let (array, log) = (paths[0].display(), log.display());
        return Err(Failure::input(format!(
            "--journal: an array gets a journal while it does not run: stop {array}, and give all its members, as in \
             `raidlab array add --journal {log} MEMBER MEMBER MEMBER`"
        )));
    }
    distinct(paths.iter().map(PathBuf::as_path).chain([log]))?;
    let asked = options.consent.destructive;
    let array = paths.iter().find_map(|path| Some(look(path).ok()?.superblock()?.array));
    let all = paths.iter().map(|path| taken(path, asked, None));
    // Nobody else gets a block device before all is written.
    let (mut members, _claims): (Vec<Member>, Vec<Option<Claim>>) =
        all.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
    not_itself(log)?;
    if !consent::is_device(log) {
        running::consent(log, options.overwrite, &array.unwrap_or_default())?;
    }
    let (mut log_device, claim) = taken(log, asked, (!options.overwrite).then_some("--overwrite"))?;
    let would = add_md_journal(&mut members, &mut log_device, false).map_err(Failure::failed)?;
    if !approve(options, claim.as_ref(), &would)? {
        return output::print(&told(false, (&paths, log), &would));
    }
    if let Some(claim) = &claim {
        clear(claim)?;
    }
    let added = add_md_journal(&mut members, &mut log_device, true).map_err(Failure::failed)?;
    output::print(&told(true, (&paths, log), &added))
}

/// A file or block device; `destroys`: the flag that allows to destroy what is there, unless it was given or nothing is
/// destroyed. Who only looks at a block device opens it for reading: udev looks at what was open for writing again,
/// and would have md assemble the array.
fn taken(
    path: &Path,
    writes: bool,
    destroys: Option<&str>,
) -> Result<(Member, Option<Claim>), Failure> {
    if !consent::is_device(path) {
        return Ok((device(path)?, None));
    }
    let claim = consent::claim(path, writes)?;
    let problems = consent::problems(claim.device(), destroys);
    if !problems.is_empty() {
        return Err(consent::refused(&problems));
    }
    // A claim of this process is known to members.
    let options = FileOptions { read_only: !writes, ..FileOptions::default() };
    let member = FileMember::open(path, options).map_err(Failure::failed)?;
    Ok((member.into(), Some(claim)))
}

/// Whether it is to be done: what is on the log device is lost, and of members only superblocks change.
fn approve(options: &Add, claim: Option<&Claim>, would: &AddedJournal) -> Result<bool, Failure> {
    let Some(claim) = claim else {
        let given = options.consent.given();
        let others: Vec<_> = given.into_iter().filter(|one| one.0 != "--destructive").collect();
        let example = "array add --journal /dev/sde /dev/sdb /dev/sdc /dev/sdd --destructive";
        consent::refuse_flags(&others, example)?;
        return Ok(options.consent.destructive);
    };
    let becomes = format!("becomes the log device of the array {}", would.joined.name);
    consent::ask(&options.consent, "The journal would be on:", &[claim], &becomes)
}

/// No signature of before stays beside the new superblock.
fn clear(claim: &Claim) -> Result<(), Failure> {
    let failed =
        |error: io::Error| Failure::failed(format!("{}: {error}", claim.device().path.display()));
    let file: File = claim.cached_file().map_err(Failure::failed)?;
    consent::clear_ends(&file, claim.device()).and_then(|()| file.sync_all()).map_err(failed)
}

fn told(is_done: bool, (paths, log): (&[PathBuf], &Path), added: &AddedJournal) -> String {
    let joined = &added.joined;
    let has = if is_done { "has a journal now" } else { "would get a journal" };
    let mut text =
        format!("{}: {}, UUID {}, {has}\n", joined.name, joined.layout, uuid(&joined.array));
    let places = joined.order.iter().enumerate();
    for (place, path) in places.filter_map(|(place, given)| Some((place, paths.get((*given)?)?))) {
        text.push_str(&format!("  member {place}  {}\n", path.display()));
    }
    for path in joined.spares.iter().filter_map(|given| paths.get(*given)) {
        text.push_str(&format!("  spare     {}\n", path.display()));
    }
    let size = Size(Sectors(added.superblock.data_size).bytes());
    text.push_str(&format!("  journal   {}  {size}\n", log.display()));
    for out in joined.out.iter().filter(|out| !joined.spares.contains(&out.given)) {
        text.push_str(&format!("  not used  {}\n", out.told(&paths[out.given].display())));
    }
    if !is_done {
        text.push_str(
            "nothing was written; --destructive does it, and what is on the log device is lost\n",
        );
    }
    text
}
