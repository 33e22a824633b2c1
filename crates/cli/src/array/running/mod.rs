//! Arrays that run: `assemble` holds the members, keeps the array going and carries out what the other commands ask
//! it for through a socket.

pub(crate) mod args;
pub(super) mod client;
mod commands;
mod floors;
mod hook;
mod metrics;
mod nbd;
mod notify;
mod owner;
mod scrub;
mod serve;
mod socket;
mod spares;
mod state;

use std::path::{Path, PathBuf};

use raidlab_core::{Nanos, Settings, Size};
use raidlab_engine::{Engine, FileMember, FileOptions, MdFound, MdOptions, Member};
use raidlab_metadata::md::{Allowed, Inspected, Joined, Out};
use raidlab_targets::{NbdLimits, hold_memory};

use super::open::{Found, refuse_twice};
use super::overlay;
use super::synced::Synced;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{self, note};
use args::Assemble;
pub(super) use commands::{consent, not_itself};
use floors::{Floors, Lower};
use owner::Owner;
use socket::Sockets;
pub(super) use socket::is_meant as is_running;
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
    let prepared = Prepared::new(options)?;
    // Whatever is refused is refused while every member is as it was.
    let Sockets { own: listening, lower: below } = prepared.sockets()?;
    let make = move || prepared.start();
    let is_read = !options.write && options.overlay.is_none();
    let (mut owner, names, lower) = Owner::new(make, options.fuse.as_deref(), is_read)?;
    let mut floors = match Floors::new(lower, below, options) {
        Ok(floors) => floors,
        Err(failure) => {
            let mode = names.mode;
            // The first error is the one to tell.
            let _ = owner.end(mode, true);
            return Err(failure);
        }
    };
    notify::ready();
    let served = serve::run(owner, names, &listening.requests, (options, stop), &mut floors);
    notify::stopping();
    floors.end();
    served
}

/// An array that is to begin, of which nothing is written yet.
struct Prepared {
    options: Assemble,
    found: Found,
}

impl Prepared {
    fn new(options: &Assemble) -> Result<Self, Failure> {
        let found = Found::new(&options.members)?;
        if !options.spare.is_empty() && found.lower.iter().any(Option::is_some) {
            let what = "belongs to one array, and these devices are of several: give it to the one that is to have it \
                        (raidlab array add NAME DEVICE)";
            return Err(Failure::input(format!("--spare {what}")));
        }
        if (options.write || options.overlay.is_some()) && found.is_ddf() {
            let what = "arrays of a DDF container are only read in this version: leave out --write and --overlay";
            return Err(Failure::input(what));
        }
        if (options.write || options.overlay.is_some()) && found.is_lvm() {
            let what = "RAID volumes of LVM are only read in this version: leave out --write and --overlay";
            return Err(Failure::input(what));
        }
        Ok(Self { options: options.clone(), found })
    }

    /// Takes the sockets that commands come in by.
    fn sockets(&self) -> Result<Sockets, Failure> {
        Sockets::new(&self.options, &self.found)
    }

    /// Starts it, with the devices that are to wait as its spares. Those are claimed first, here, where the engine is
    /// to have them.
    fn start(&self) -> Result<Started, Failure> {
        let array = self.found.decision.as_ref().map_or([0; 16], |assembly| assembly.array);
        let claim = |path: &PathBuf| -> Result<_, Failure> {
            consent(path, self.options.overwrite, &array)?;
            Ok((path.clone(), device(path)?))
        };
        let mut spares =
            self.options.spare.iter().map(claim).collect::<Result<Vec<_>, Failure>>()?;
        spares::check(&self.found, &mut spares)?;
        let mut started = start(&self.options, &self.found)?;
        for (path, spare) in spares {
            if let Err(error) = started.engine.add_spare(spare) {
                started.abandon();
                return Err(Failure::failed(format!("--spare {}: {error}", path.display())));
            }
            started.names.spares.push(state::absolute(&path));
        }
        Ok(started)
    }
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
    output::check_places(&[("--fuse", options.fuse.as_deref())])?;
    if let Some(program) = &options.program {
        hook::check(program)?;
    }
    if options.nbd_memory.0 < NbdLimits::LEAST_MEMORY {
        let least = Size(NbdLimits::LEAST_MEMORY);
        return Err(Failure::input(format!(
            "--nbd-memory: at least {least}, for the longest requests"
        )));
    }
    Ok(())
}

/// An array that begins, and those below it.
struct Started {
    engine: Engine,
    names: Names,
    lower: Vec<Lower>,
}

impl Started {
    /// Stops it, where something else that is to begin with it does not.
    fn abandon(mut self) {
        if self.names.mode != Mode::Read {
            // Why it is abandoned is what is told.
            let _ = self.engine.stop();
        }
        Lower::abandon(self.lower);
    }
}

fn start(options: &Assemble, found: &Found) -> Result<Started, Failure> {
    let shown = floors::shown(found);
    let started = match options.write || options.overlay.is_some() {
        true => write(options, found, &shown)?,
        false => read(found, &shown)?,
    };
    for one in &found.beside {
        note(&format!("not used: {one}"));
    }
    Ok(started)
}

/// The array for reading: what is below it is a part of it.
fn read(found: &Found, shown: &[PathBuf]) -> Result<Started, Failure> {
    let engine = found.held_engine()?;
    let assembly = found.assembly()?;
    let order: Vec<_> = assembly.places.iter().map(|place| place.given).collect();
    let names = Names::new(Mode::Read, shown, &order, &[]);
    let names = names.of(&assembly.name, assembly.array, &assembly.layout).with_geom(found.geom());
    let names = names.with_volume(found.volume_id());
    tell(shown, &assembly.out, &assembly.notes);
    Ok(Started { engine, names, lower: Vec::new() })
}

fn write(options: &Assemble, found: &Found, shown: &[PathBuf]) -> Result<Started, Failure> {
    refuse_twice(&options.members)?;
    let paths = &options.members.members;
    let (mut overlaid, mode) = match &options.overlay {
        Some(file) => {
            let devices = overlay::open(paths, file)?;
            (paths.iter().cloned().zip(devices.into_iter().map(Some)).collect(), Mode::Overlay)
        }
        None => (Vec::new(), Mode::Write),
    };
    let mut open = |path: &Path, sector: Option<u32>| match mode {
        Mode::Overlay => {
            let of: Option<&mut (PathBuf, Option<Member>)> =
                overlaid.iter_mut().find(|(of, member)| of == path && member.is_some());
            let member = of.and_then(|(_, member)| member.take());
            member.ok_or_else(|| Failure::input(format!("{}: given twice", path.display())))
        }
        _ => open_device(path, sector).map_err(Failure::failed),
    };
    let (devices, lower) = floors::members(found, (options, mode), &mut open)?;
    let begun = Engine::assemble_md(devices, &wanted(found, options));
    let (engine, MdFound { joined, inspected, .. }) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            Lower::abandon(lower);
            let hint = hint(options, &error.to_string());
            let beside = found.beside.iter().map(|one| format!("\n  {one}")).collect::<String>();
            return Err(Failure::failed(format!("{error}{beside}")).and(hint).and(below(found)));
        }
    };
    let names = Names::new(mode, shown, &joined.order, &joined.spares);
    let names = names.of(&joined.name, joined.array, &joined.layout);
    let names = names.logged_on(joined.journal.map(|given| shown[given].clone()));
    let names = names.with_geom(found.geom());
    let filled = joined.replacement.map(|(given, member)| (shown[given].clone(), member));
    let names = names.replacing(filled);
    tell(shown, &unused(&joined), &joined.notes);
    tell_beginning(&engine, &inspected, &names);
    Ok(Started { engine, names, lower })
}

/// What was given and is not in service, nor a spare.
fn unused(joined: &Joined) -> Vec<Out> {
    joined.out.iter().filter(|out| !joined.spares.contains(&out.given)).cloned().collect()
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

/// What may have been meant instead of an array on arrays that does not start.
fn below(found: &Found) -> Option<String> {
    let is_one = |lower: &&Found| lower.decision.is_ok();
    let lower: Vec<&Found> = found.lower.iter().flatten().filter(is_one).collect();
    match lower.as_slice() {
        [_] => Some(
            "--flat assembles the array that the devices themselves are members of, and leaves it to others to put \
             together what that is a member of"
                .into(),
        ),
        _ => None,
    }
}

fn wanted(found: &Found, options: &Assemble) -> MdOptions {
    let members = &options.members;
    let is_out = |given: &usize| members.without.contains(&found.paths[*given]);
    let without = (0..found.paths.len()).filter(is_out).collect();
    let dirty_degraded = members.allow_dirty_degraded;
    let ignore_journal = members.ignore_journal;
    let zones = members.zones;
    let allowed = Allowed { dirty_degraded, ignore_journal, without, zones, ..Allowed::default() };
    let room_wait = Some(Nanos::from_millis(60_000));
    let settings = Settings { room_wait, ..Settings::default() };
    MdOptions { allowed, run: options.run, settings, ..MdOptions::default() }
}

/// Opens a device for reading and writing, from its first sector to its last, and claims it.
pub(super) fn device(path: &Path) -> Result<Member, Failure> {
    open_device(path, None).map_err(Failure::failed)
}

/// The same of a device with a label of GEOM in a last sector of so many sectors of 512 bytes: that is through the page
/// cache where a file takes only larger blocks past it, as what lies before the label ends on any sector.
fn open_device(path: &Path, sector: Option<u32>) -> Result<Member, raidlab_engine::EngineError> {
    let options = FileOptions::default();
    let member = FileMember::open(path, options).map(Member::from)?;
    if sector.is_none_or(|sector| member.config().logical_block <= sector) {
        return Ok(member);
    }
    // It is claimed once more.
    drop(member);
    FileMember::open(path, FileOptions { direct: false, ..options }).map(Member::from)
}

fn tell(paths: &[PathBuf], out: &[Out], notes: &[String]) {
    for out in out {
        note(&format!("not used: {}", out.told(&paths[out.given].display())));
    }
    for one in notes {
        note(&format!("note: {one}"));
    }
}

fn tell_beginning(engine: &Engine, inspected: &[Inspected], names: &Names) {
    let beginning = engine.beginning();
    let rows = beginning.replayed.whole + beginning.replayed.alone;
    if rows > 0 {
        names.tell(&format!("its journal was replayed: {rows} rows, of 4 KiB on each member"));
    }
    let resync = beginning.resync;
    let is_dirty = |one: &Inspected| {
        let label = one.geom.as_ref().and_then(|seen| seen.whole());
        let by_label = label.is_some_and(|label| label.flags().dirty);
        one.superblock().map_or(by_label, |superblock| !superblock.is_clean())
    };
    let is_dirty = inspected.iter().any(is_dirty);
    if resync.0 > 0 && is_dirty {
        let why = match Synced::of(inspected) {
            Some(Synced::Never) => "it was never synchronised yet",
            Some(Synced::Partly(_)) => "it was stopped during a resync",
            _ => "it was not stopped cleanly",
        };
        names.tell(&format!("{why}: {resync} are made consistent"));
    }
}
