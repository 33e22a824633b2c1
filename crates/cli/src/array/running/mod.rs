//! Arrays that run: `assemble` holds the members, keeps the array going and carries out what the other commands ask
//! it for through a socket.

pub(crate) mod args;
pub(super) mod client;
mod commands;
mod metrics;
mod nbd;
mod notify;
mod owner;
mod serve;
mod socket;
mod state;

use std::path::{Path, PathBuf};

use raidlab_core::{Nanos, Settings, Size};
use raidlab_engine::{Engine, FileMember, FileOptions, MdFound, MdOptions, Member};
use raidlab_metadata::md::{Allowed, Inspected, Out};
use raidlab_targets::{NbdLimits, hold_memory};

use super::args::Members;
use super::open::Found;
use super::overlay;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::note;
use args::Assemble;
use owner::Owner;
use state::{Mode, Names};

pub(super) fn assemble(options: &Assemble) -> Result<(), Failure> {
    let stop = interrupt::flag()?;
    check(options)?;
    if !options.nbd.is_empty() || options.fuse.is_some() {
        // Clients may be on this machine. Where it is not permitted there is only less protection when memory is short.
        hold_memory();
    }
    if !options.nbd.is_empty() {
        return nbd::run(options, stop);
    }
    let asked = options.clone();
    let make = move || start_with_spares(&asked).map(|Started { engine, names }| (engine, names));
    let is_read = !options.write && options.overlay.is_none();
    let (mut owner, names) = Owner::new(make, options.fuse.as_deref(), is_read)?;
    let listening = socket::path(options, &names)
        .and_then(|path| socket::listen(&path).map(|requests| (path, requests)));
    let (path, requests) = match listening {
        Ok(listening) => listening,
        Err(failure) => {
            let mode = names.mode;
            // The first error is the one to tell.
            let _ = owner.end(mode);
            return Err(failure);
        }
    };
    notify::ready();
    let served = serve::run(owner, names, &requests, options, stop);
    drop(requests);
    // Whoever comes now finds nobody.
    let _ = std::fs::remove_file(&path);
    served
}

/// Starts an array, and takes the devices that are to wait as its spares.
fn start_with_spares(options: &Assemble) -> Result<Started, Failure> {
    let mut started = start(options)?;
    for path in &options.spare {
        commands::consent(path, options.overwrite, &started.names.array)?;
        started.engine.add_spare(device(path)?).map_err(Failure::failed)?;
        started.names.spares.push(state::absolute(path));
    }
    Ok(started)
}

fn check(options: &Assemble) -> Result<(), Failure> {
    let writes = options.write || options.overlay.is_some();
    if !options.spare.is_empty() && !options.write {
        return Err(Failure::input("--spare: give --write, as a spare is written to"));
    }
    if options.run && !writes {
        return Err(Failure::input("--run: for reading members may be missing as it is"));
    }
    if let Some(file) = &options.fuse
        && file.symlink_metadata().is_ok()
    {
        return Err(Failure::input(format!("--fuse: {} exists already", file.display())));
    }
    if options.nbd_memory.0 < NbdLimits::LEAST_MEMORY {
        let least = Size(NbdLimits::LEAST_MEMORY);
        return Err(Failure::input(format!(
            "--nbd-memory: at least {least}, for the longest requests"
        )));
    }
    Ok(())
}

/// An array that begins.
struct Started {
    engine: Engine,
    names: Names,
}

fn start(options: &Assemble) -> Result<Started, Failure> {
    if !options.write && options.overlay.is_none() {
        let found = Found::new(&options.members)?;
        let engine = found.engine()?;
        let assembly = found.assembly()?;
        let order: Vec<_> = assembly.places.iter().map(|place| place.given).collect();
        let names = Names::new(Mode::Read, &found.paths, &order, &[]);
        let names = names.of(&assembly.name, assembly.array, &assembly.layout);
        tell(&found.paths, &assembly.out, &assembly.notes);
        return Ok(Started { engine, names });
    }
    let paths = &options.members.members;
    let (devices, mode) = match &options.overlay {
        Some(file) => (overlay::open(paths, file)?, Mode::Overlay),
        None => {
            let all = paths.iter().map(|path| device(path)).collect::<Result<Vec<_>, _>>()?;
            (all, Mode::Write)
        }
    };
    let wanted = wanted(&options.members, options.run)?;
    let (engine, found) = Engine::assemble_md(devices, &wanted).map_err(|error| {
        let hint = hint(options, &error.to_string());
        Failure::failed(error).and(hint)
    })?;
    let MdFound { joined, inspected, .. } = found;
    let names = Names::new(mode, paths, &joined.order, &joined.spares);
    let names = names.of(&joined.name, joined.array, &joined.layout);
    let others: Vec<Out> =
        joined.out.iter().filter(|out| !joined.spares.contains(&out.given)).cloned().collect();
    tell(paths, &others, &joined.notes);
    tell_beginning(&engine, &inspected);
    Ok(Started { engine, names })
}

/// What would be allowed by which flag.
fn hint(options: &Assemble, error: &str) -> Option<String> {
    let flag = |flag: &str, what: &str| Some(format!("{flag} {what}"));
    if !options.run && error.contains("members cannot be used that may hold the newest data") {
        return flag(
            "--run",
            "starts without them: what they missed is rebuilt when they are added",
        );
    }
    if !options.members.allow_dirty_degraded && error.contains("not stopped cleanly") {
        return flag("--allow-dirty-degraded", "starts it nevertheless");
    }
    None
}

fn wanted(members: &Members, run: bool) -> Result<MdOptions, Failure> {
    let paths = &members.members;
    let mut without = Vec::new();
    for path in &members.without {
        match paths.iter().position(|one| one == path) {
            Some(given) => without.push(given),
            None => {
                let what = "is not among the members given, so it cannot be left out";
                return Err(Failure::input(format!("--without: {} {what}", path.display())));
            }
        }
    }
    let dirty_degraded = members.allow_dirty_degraded;
    let ignore_journal = members.ignore_journal;
    let allowed = Allowed { dirty_degraded, ignore_journal, without, zones: members.zones };
    let room_wait = Some(Nanos::from_millis(60_000));
    let settings = Settings { room_wait, ..Settings::default() };
    Ok(MdOptions { allowed, run, settings, ..MdOptions::default() })
}

/// Opens a device for reading and writing, from its first sector to its last, and claims it.
fn device(path: &Path) -> Result<Member, Failure> {
    open_device(path).map_err(Failure::failed)
}

fn open_device(path: &Path) -> Result<Member, raidlab_engine::EngineError> {
    FileMember::open(path, FileOptions::default()).map(Member::from)
}

fn tell(paths: &[PathBuf], out: &[Out], notes: &[String]) {
    for out in out {
        let of = out.place.map_or_else(String::new, |place| format!(" (member {place})"));
        note(&format!("not used: {}{of}: {}", paths[out.given].display(), out.why));
    }
    for one in notes {
        note(&format!("note: {one}"));
    }
}

fn tell_beginning(engine: &Engine, inspected: &[Inspected]) {
    let beginning = engine.beginning();
    let resync = beginning.resync;
    let is_dirty = inspected.iter().filter_map(Inspected::superblock).any(|one| !one.is_clean());
    if resync.0 > 0 && is_dirty {
        note(&format!("it was not stopped cleanly: {resync} are made consistent"));
    }
}
