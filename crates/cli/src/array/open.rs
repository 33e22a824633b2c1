//! An array that is found on its members, opened for reading only.

use std::fs::File;
use std::path::{Path, PathBuf};

use raidlab_core::{SECTOR_BYTES, Sector, Sectors};
use raidlab_engine::{
    Engine, EngineErrorKind, FileMember, FileOptions, LowerArray, Member, ReadHold,
};
use raidlab_metadata::geom::Kind;
use raidlab_metadata::lvm::Membership;
use raidlab_metadata::md::{
    Allowed, Assembly, Cannot, Inspected, Out, Purpose, assemble, inspect, not_used,
};
use raidlab_metadata::{Source, Unreadable, printable};

use super::args::Members;
use super::disk::{self, LOOKED_AT, look};
use super::stack::{self, Part};
use super::synced::Synced;
use super::{ddf, lvm};
use crate::failure::Failure;
use crate::output;

/// An array by labels of GEOM.
#[derive(Clone, Copy, Debug)]
pub(super) struct Labelled {
    pub(super) kind: Kind,
    /// Its number.
    pub(super) id: u32,
    /// Sectors of 512 bytes that the last sector of its devices has, which the label is in.
    pub(super) sector: u32,
}

/// What was found on the devices that were given.
#[derive(Clone)]
pub(super) struct Found {
    /// The devices; of an array that is a member its name.
    pub(super) paths: Vec<PathBuf>,
    pub(super) inspected: Vec<Inspected>,
    pub(super) decision: Result<Assembly, Cannot>,
    /// Where there is none, which devices are not used, whatever else is missing.
    pub(super) not_used: Vec<Out>,
    /// In the places of arrays that are members what was found of each.
    pub(super) lower: Vec<Option<Found>>,
    /// What was given besides and why nothing of it is used, in words: such as arrays that do not start.
    pub(super) beside: Vec<String>,
    /// Its devices have ranges that are one member of a RAID volume of LVM.
    pub(super) is_member: bool,
}

impl Found {
    /// Looks at all devices, and decides; then at what the arrays on them are members of.
    pub(super) fn new(options: &Members) -> Result<Self, Failure> {
        let parts = parts(options)?;
        if !options.flat
            && let Some(stacked) = stack::find(&parts, options)?
        {
            return Ok(stacked);
        }
        let mut found = Self::of(parts, options);
        if let Err(Cannot::SeveralArrays(_)) = found.decision {
            found.beside = stack::each(&found, options);
        }
        Ok(found)
    }

    /// Decides what these are.
    pub(super) fn of(parts: Vec<Part>, options: &Members) -> Self {
        let without = parts.iter().enumerate();
        let without = without.filter(|(_, one)| one.is_of(&options.without));
        let without = without.map(|(given, _)| given).collect();
        let (dirty_degraded, ignore_journal) =
            (options.allow_dirty_degraded, options.ignore_journal);
        let (twice, zones) = (twice(&parts), options.zones);
        let allowed = Allowed { dirty_degraded, ignore_journal, without, twice, zones };
        let (mut paths, mut inspected, mut lower) = (Vec::new(), Vec::new(), Vec::new());
        for part in parts {
            paths.push(part.path);
            inspected.push(part.inspected);
            lower.push(part.lower);
        }
        let decision = assemble(&inspected, &allowed);
        let not_used = match &decision {
            Ok(_) => Vec::new(),
            Err(why) => not_used(&inspected, &allowed, Purpose::Read, why),
        };
        let (beside, is_member) = (Vec::new(), false);
        Self { paths, inspected, decision, not_used, lower, beside, is_member }
    }

    /// What its contents carry of md, if they can be read.
    pub(super) fn content(&self) -> Option<Inspected> {
        let mut engine = self.engine().ok()?;
        let block = engine.block().max(self.sector()).0 as u32;
        Some(inspect(&mut Content { engine: &mut engine, block }))
    }

    /// What a sector of the array has, in those of 512 bytes: of a graid3 one sector of each member with data, as
    /// FreeBSD shows it, so that the label of an array above lies in the last of these; of others not more than a
    /// member's.
    pub(super) fn sector(&self) -> Sectors {
        let labelled = self.geom().filter(|labelled| labelled.kind == Kind::Raid3);
        let Some((labelled, assembly)) = labelled.zip(self.decision.as_ref().ok()) else {
            return Sectors(1);
        };
        let data = u64::from(assembly.layout.members.saturating_sub(1));
        Sectors(u64::from(labelled.sector) * data)
    }

    /// Whether a device, or one below an array that is a member, is of a DDF container.
    pub(super) fn is_ddf(&self) -> bool {
        let own = self.inspected.iter().any(|one| one.ddf.is_some());
        own || self.lower.iter().flatten().any(Self::is_ddf)
    }

    /// Whether it is a RAID volume of LVM, or stands on one.
    pub(super) fn is_lvm(&self) -> bool {
        let own = self.inspected.iter().any(|one| one.of_volume.is_some());
        own || self.lower.iter().flatten().any(Self::is_lvm)
    }

    /// Of a RAID volume of LVM what its superblocks do not say.
    pub(super) fn volume(&self) -> Option<&Membership> {
        self.inspected
            .iter()
            .filter(|one| one.superblock().is_some())
            .find_map(|one| one.of_volume.as_deref())
    }

    /// The identity of such a volume.
    pub(super) fn volume_id(&self) -> Option<String> {
        self.volume().map(|told| printable(told.id.as_bytes()))
    }

    /// A device in words; of a member that lies in several ranges the devices of these.
    pub(super) fn device(&self, given: usize) -> String {
        let own = self.paths[given].display();
        match self.lower[given].as_ref().filter(|lower| lower.is_member) {
            Some(ranges) => {
                let paths: Vec<_> =
                    ranges.paths.iter().map(|path| path.display().to_string()).collect();
                let count = ranges.assembly().map_or(0, |assembly| assembly.places.len());
                format!("{} ({own}, {count} ranges)", paths.join(", "))
            }
            None => own.to_string(),
        }
    }

    /// Whether devices are put together by labels of GEOM.
    pub(super) fn is_geom(&self) -> bool {
        let is_md = self.inspected.iter().any(|one| one.superblock().is_some());
        !is_md && self.inspected.iter().any(|one| one.geom.is_some())
    }

    /// What an array of GEOM is known by while it runs.
    pub(super) fn geom(&self) -> Option<Labelled> {
        let labelled = |one: &Inspected| {
            let seen = one.geom.as_ref()?;
            let (label, sector) = (seen.whole()?, seen.sector.0 as u32);
            Some(Labelled { kind: label.kind, id: label.id, sector })
        };
        self.inspected.iter().find_map(labelled).filter(|_| self.is_geom())
    }

    /// What is to be assembled.
    pub(super) fn assembly(&self) -> Result<&Assembly, Failure> {
        self.decision.as_ref().map_err(|cannot| Failure::failed(self.why(cannot)))
    }

    /// Why there is no array, with what is to be said of each device.
    pub(super) fn why(&self, cannot: &Cannot) -> String {
        let lines = self.not_used.iter().map(|out| format!("\n  {}", self.told(out)));
        let halves = match cannot {
            Cannot::Diverged(one, other) => {
                let half = |of: &[usize]| {
                    let names: Vec<_> =
                        of.iter().map(|one| self.paths[*one].display().to_string()).collect();
                    let states = of.iter().filter_map(|one| self.state(*one));
                    let newest = states.max_by_key(|one| one.0).map(|one| format!(", {}", one.1));
                    format!("{}{}", names.join(", "), newest.unwrap_or_default())
                };
                format!("\n  one half: {}\n  the other: {}", half(one), half(other))
            }
            _ => String::new(),
        };
        let never = match cannot {
            Cannot::DirtyDegraded(_) if Synced::of(&self.inspected) == Some(Synced::Never) => {
                "\n  it was never synchronised yet: parity was never made of what the members hold"
            }
            _ => "",
        };
        let beside = self.beside.iter().map(|one| format!("\n  {one}")).collect::<String>();
        format!("{cannot}{}{halves}{never}{beside}", lines.collect::<String>())
    }

    /// Whether redundancy is consistent.
    pub(super) fn synced(&self, assembly: &Assembly) -> Synced {
        let members = assembly.places.iter().filter_map(|one| one.given);
        let said = Synced::of(members.map(|given| &self.inspected[given]));
        said.unwrap_or(if assembly.clean { Synced::Clean } else { Synced::Dirty })
    }

    /// How new what a device says is, as a number to compare and in words.
    fn state(&self, given: usize) -> Option<((u64, u64), String)> {
        let found = &self.inspected[given];
        if let Some(one) = found.superblock() {
            return Some(((one.events, 0), format!("events {}", one.events)));
        }
        let one = found.geom.as_ref()?.whole()?;
        let state = (u64::from(one.genid), u64::from(one.syncid));
        Some((state, format!("genid {}, syncid {}", one.genid, one.syncid)))
    }

    /// A device that is not in service, in words.
    pub(super) fn told(&self, out: &Out) -> String {
        out.told(&self.device(out.given))
    }

    /// Keeps writers away from its devices, as long as what is given lives. A note tells of those that somebody else
    /// may be writing, from whom nothing is taken.
    fn hold(&self) -> Result<Vec<ReadHold>, Failure> {
        let mut holds = Vec::new();
        let devices = self.paths.iter().zip(&self.lower).filter(|(_, lower)| lower.is_none());
        for (path, _) in devices {
            let file = File::open(path)
                .map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
            match ReadHold::take(&file, path) {
                Ok(hold) => holds.push(hold),
                Err(error) if error.kind() == EngineErrorKind::Busy => {
                    output::note(&format!("{error}: what is read may change meanwhile"));
                }
                Err(error) => return Err(Failure::failed(error)),
            }
        }
        for lower in self.lower.iter().flatten() {
            holds.extend(lower.hold()?);
        }
        Ok(holds)
    }

    /// The array, for reading, with writers kept away from all of its devices as long as it lives.
    pub(super) fn held_engine(&self) -> Result<Engine, Failure> {
        let held = self.hold()?;
        let mut engine = self.engine()?;
        engine.keep(held);
        Ok(engine)
    }

    /// The array, for reading. Its members are open for reading only.
    pub(super) fn engine(&self) -> Result<Engine, Failure> {
        let assembly = self.assembly()?;
        let open = |(given, data_offset, sectors): (Option<usize>, Sectors, Sectors)| {
            given.map(|given| self.open(given, data_offset, sectors)).transpose()
        };
        let places = assembly.places.iter().map(|one| (one.given, one.data_offset, one.sectors));
        let members = places.map(open).collect::<Result<Vec<_>, _>>()?;
        let bad: Vec<_> = assembly.places.iter().flat_map(|one| one.bad.iter().copied()).collect();
        Engine::read_only(&assembly.config(), members, &bad).map_err(Failure::failed)
    }

    /// Whether what it holds is zero at both ends.
    pub(super) fn is_blank(&self) -> Result<bool, Failure> {
        let mut engine = self.engine()?;
        let length = engine.array().capacity().bytes();
        let len = LOOKED_AT.min(length);
        let mut bytes = vec![0; len as usize];
        for at in [0, (length - len) / SECTOR_BYTES] {
            engine.read_at(Sector(at), &mut bytes)?;
            if bytes.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A member, from where its data start on.
    fn open(&self, given: usize, start: Sectors, sectors: Sectors) -> Result<Member, Failure> {
        let Some(lower) = &self.lower[given] else {
            return member(&self.paths[given], start, sectors);
        };
        let lower = lower.clone();
        let (array, ()) = LowerArray::new(move || Ok::<_, Failure>((lower.engine()?, ())))?;
        Ok(array.part(start, sectors))
    }
}

/// Devices that are one that was given before, each with that one. Ranges of one device may be members of a volume.
fn twice(parts: &[Part]) -> Vec<(usize, usize)> {
    let is_old = |part: &&Part| {
        let superblock = part.inspected.superblock().filter(|_| part.lower.is_none());
        superblock.is_some_and(|one| one.v0.is_some())
            && part.inspected.ddf.is_none()
            && part.inspected.of_volume.is_none()
    };
    let old: Vec<_> = parts.iter().enumerate().filter(|(_, part)| is_old(part)).collect();
    let ids: Vec<_> = old.iter().map(|(_, part)| disk::identity(&part.path)).collect();
    let first = |at: usize| ids[..at].iter().position(|one| one.is_some() && *one == ids[at]);
    (0..old.len()).filter_map(|at| Some((old[at].0, old[first(at)?].0))).collect()
}

/// Refuses a device that was given twice, by whatever name, where that is to be written.
pub(super) fn refuse_twice(options: &Members) -> Result<(), Failure> {
    let used: Vec<&PathBuf> =
        options.members.iter().filter(|path| !options.without.contains(path)).collect();
    let ids: Vec<_> = used.iter().map(|path| disk::identity(path)).collect();
    for (at, path) in used.iter().enumerate() {
        let Some(first) = ids[..at].iter().position(|one| one.is_some() && *one == ids[at]) else {
            continue;
        };
        let shown = path.display();
        return Err(Failure::input(match used[first] == *path {
            true => format!("{shown}: given twice"),
            false => format!("{shown}: given twice, first as {}", used[first].display()),
        }));
    }
    Ok(())
}

/// The devices, each looked at.
pub(super) fn parts(options: &Members) -> Result<Vec<Part>, Failure> {
    let paths = &options.members;
    for path in &options.without {
        if !paths.contains(path) {
            let what = "is not among the members given, so it cannot be left out";
            return Err(Failure::input(format!("--without: {} {what}", path.display())));
        }
    }
    let part =
        |path: &PathBuf| Ok(Part { path: path.clone(), inspected: look(path)?, lower: None });
    let mut parts = paths.iter().map(part).collect::<Result<Vec<_>, Failure>>()?;
    if parts.iter().any(|part| part.inspected.ddf.is_some()) {
        ddf::choose(&mut parts, options.volume.as_deref())?;
        return Ok(parts);
    }
    lvm::choose(parts, options)
}

/// What an array holds.
struct Content<'a> {
    engine: &'a mut Engine,
    /// Sectors of 512 bytes that one of it has.
    block: u32,
}

impl Source for Content<'_> {
    fn sectors(&self) -> Sectors {
        self.engine.array().capacity()
    }

    fn logical_block(&self) -> u32 {
        self.block
    }

    fn read(&mut self, at: Sector, into: &mut [u8]) -> Result<(), Unreadable> {
        self.engine.read_at(at, into).map_err(|_| Unreadable)
    }
}

fn member(path: &Path, data_offset: Sectors, sectors: Sectors) -> Result<Member, Failure> {
    // Through the page cache: any sector may be read alone.
    let options = FileOptions {
        data_offset,
        sectors: Some(sectors),
        direct: false,
        read_only: true,
        ..FileOptions::default()
    };
    FileMember::open(path, options).map(Member::from).map_err(Failure::failed)
}
