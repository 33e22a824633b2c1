//! What is known of a running array besides what its engine knows.

use std::path::{Path, PathBuf};

use raidlab_core::contract::Work;
use raidlab_core::{Consistency, Layout, MemberIndex};
use raidlab_engine::Engine;
use serde_json::{Value, json};

use super::super::examine::uuid;
use super::super::open::Labelled;
use super::super::stack::short_name;
use super::scrub::Scrubs;
use crate::output::note;

/// What of the members may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Nothing.
    Read,
    /// Nothing: what is written goes elsewhere.
    Overlay,
    /// All of them.
    Write,
}

impl Mode {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Read => "read-only",
            Self::Overlay => "overlay",
            Self::Write => "writing",
        }
    }
}

/// Instead of a device: all that failed, as mdadm's `--remove` has it.
pub(super) const FAILED: &str = "failed";

/// Names of an array and its devices.
#[derive(Clone, Debug)]
pub(super) struct Names {
    pub(super) mode: Mode,
    pub(super) array: [u8; 16],
    name: String,
    /// As which member of an array above it is known, and by which name.
    called: Option<String>,
    layout: String,
    /// Devices of members, then of what is to replace them.
    pub(super) members: Vec<Option<PathBuf>>,
    pub(super) spares: Vec<PathBuf>,
    /// Devices that were to replace a member and do so no longer, until they are let go of; whether the member failed,
    /// so that they may be its spare.
    pub(super) left: Vec<(PathBuf, MemberIndex, bool)>,
    /// Devices that failed and in whose places others are, which let go of them, with whose they were; until they are
    /// removed.
    pub(super) failed: Vec<(PathBuf, MemberIndex)>,
    /// The log device.
    journal: Option<PathBuf>,
    /// It was told that more is lost than the level survives.
    pub(super) is_lost: bool,
    /// The member that failed last since the work that goes on in the background began.
    pub(super) failed_last: Option<MemberIndex>,
    pub(super) scrubs: Scrubs,
    /// What an array of GEOM is known by.
    pub(super) geom: Option<Labelled>,
    /// The identity of a RAID volume of LVM.
    volume: Option<String>,
}

/// The place of a device, by its path or name.
fn place_of(devices: &[Option<PathBuf>], text: &str) -> Option<MemberIndex> {
    let (path, name) = (absolute(Path::new(text)), Path::new(text));
    let is_meant =
        |one: &Option<PathBuf>| one.as_deref().is_some_and(|one| one == path || one == name);
    devices.iter().position(is_meant).map(|place| MemberIndex(place as u16))
}

impl Names {
    /// Of devices, and arrays below, by the order they were given in.
    pub(super) fn new(
        mode: Mode,
        paths: &[PathBuf],
        order: &[Option<usize>],
        spares: &[usize],
    ) -> Self {
        let path = |given: usize| paths[given].clone();
        let members = order.iter().map(|given| given.map(path));
        Self {
            mode,
            array: [0; 16],
            name: String::new(),
            called: None,
            layout: String::new(),
            members: members.chain(order.iter().map(|_| None)).collect(),
            spares: spares.iter().copied().map(path).collect(),
            left: Vec::new(),
            failed: Vec::new(),
            journal: None,
            is_lost: false,
            failed_last: None,
            scrubs: Scrubs::default(),
            geom: None,
            volume: None,
        }
    }

    pub(super) fn of(self, name: &str, array: [u8; 16], layout: &Layout) -> Self {
        Self { name: name.to_owned(), array, layout: layout.to_string(), ..self }
    }

    /// The same with the device that goes on replacing this member.
    pub(super) fn replacing(mut self, replacement: Option<(PathBuf, u16)>) -> Self {
        if let Some((path, member)) = replacement {
            let place = self.count() + usize::from(member);
            self.members[place] = Some(path);
        }
        self
    }

    /// The same with this log device.
    pub(super) fn logged_on(self, journal: Option<PathBuf>) -> Self {
        Self { journal, ..self }
    }

    /// The same of an array of GEOM.
    pub(super) fn with_geom(self, geom: Option<Labelled>) -> Self {
        Self { geom, ..self }
    }

    /// The same of a RAID volume of LVM with this identity.
    pub(super) fn with_volume(self, volume: Option<String>) -> Self {
        Self { volume, ..self }
    }

    /// The same of an array below another one, which is known by this name there.
    pub(super) fn called(self, name: &Path) -> Self {
        Self { called: Some(name.display().to_string()), ..self }
    }

    /// The name without the machine's.
    pub(super) fn short(&self) -> String {
        let called = self.called.clone();
        called.unwrap_or_else(|| short_name(&self.name, &self.array))
    }

    /// Something to be told of it, with its name where several arrays run.
    pub(super) fn tell(&self, what: &str) {
        match &self.called {
            Some(name) => note(&format!("{name}: {what}")),
            None => note(what),
        }
    }

    /// Its layout, as reports name it.
    pub(super) fn layout(&self) -> &str {
        &self.layout
    }

    /// What it is, for people.
    pub(super) fn description(&self) -> String {
        format!("{}: {}, {}", self.name, self.layout, self.mode.name())
    }

    fn count(&self) -> usize {
        self.members.len() / 2
    }

    /// That it can be told what is meant: arrays below may be called by numbers, as those of mdadm often are.
    pub(super) fn is_plain(&self, text: &str) -> Result<(), String> {
        let Some(number) = text.parse::<usize>().ok().filter(|number| *number < self.count())
        else {
            return Ok(());
        };
        let is_called = |place: &usize| self.members[*place].as_deref() == Some(Path::new(text));
        match (0..self.count()).find(|place| *place != number && is_called(place)) {
            None => Ok(()),
            Some(other) => Err(format!(
                "{text} is the number of a member, and the name of another one: give the number of the one that is \
                 meant, with a zero before it (0{text} is member {number}; the array called {text} is 0{other})"
            )),
        }
    }

    /// The member that is meant by its number or its device.
    pub(super) fn member(&self, text: &str) -> Result<MemberIndex, String> {
        if let Ok(number) = text.parse::<u16>() {
            return match usize::from(number) < self.count() {
                true => Ok(MemberIndex(number)),
                false => Err(format!("the array has members 0 to {}", self.count() - 1)),
            };
        }
        let found = place_of(&self.members[..self.count()], text);
        found.ok_or_else(|| format!("{text} is no member, by number or device"))
    }

    /// Which member a device is to replace.
    pub(super) fn replacement(&self, text: &str) -> Option<MemberIndex> {
        place_of(&self.members[self.count()..], text)
    }

    /// What was to replace a member does so no longer, as that failed, or itself.
    pub(super) fn replaces_no_more(&mut self, member: MemberIndex, has_failed: bool) {
        let place = member.at() + self.count();
        let device = self.members[place].take();
        self.left.extend(device.map(|path| (path, member, has_failed)));
    }

    /// A device has taken the place of a member that failed.
    pub(super) fn took_over(&mut self, member: MemberIndex, device: PathBuf) {
        self.failed.retain(|(path, _)| *path != device);
        let before = self.members[member.at()].replace(device.clone());
        self.failed.extend(before.filter(|path| *path != device).map(|path| (path, member)));
    }

    /// A replacement is the member from now on.
    pub(super) fn replaced(&mut self, member: MemberIndex) {
        let place = member.at();
        let replacement = place + self.count();
        self.members[place] = self.members[replacement].take();
    }

    /// What keeps redundancy consistent, as md calls its policies; `None` of an array that is only read, which keeps
    /// nothing.
    fn consistency(&self, engine: &Engine) -> Option<&'static str> {
        let array = engine.array().flat().filter(|_| self.mode != Mode::Read)?;
        Some(match array.consistency() {
            _ if engine.array().layout().survives() == 0 => "none",
            Consistency::None => "none",
            Consistency::Resync => "resync",
            Consistency::Bitmap { .. } => "bitmap",
            Consistency::PartialParity { .. } => "ppl",
            Consistency::Journal { .. } => "journal",
        })
    }

    /// The array as it is, as a document.
    pub(super) fn document(&self, engine: &Engine, fuse: Option<&Path>) -> Value {
        let status = engine.array().status();
        let bit = |bits: [u64; 2], place: usize| bits[place / 64] >> (place % 64) & 1 == 1;
        let state = |place: usize| match () {
            () if bit(status.failed, place) && self.members[place].is_none() => "missing",
            () if bit(status.failed, place) => "failed",
            () if bit(status.rebuilding, place) => "rebuilding",
            () if bit(status.replacing, place) => "being replaced",
            () => "in service",
        };
        let members: Vec<Value> = (0..self.count())
            .map(|place| {
                let path = self.members[place].as_ref().map(|path| path.display().to_string());
                let by = self.members[place + self.count()].as_ref();
                let by = by.map(|path| path.display().to_string());
                json!({ "member": place, "path": path, "state": state(place), "replacement": by })
            })
            .collect();
        let out = (0..self.count()).filter(|place| bit(status.failed, *place)).count();
        let incomplete = (0..self.count()).filter(|place| bit(status.rebuilding, *place)).count();
        let survives = usize::from(engine.array().layout().survives());
        let work = status.work.map(|work| {
            let left = work.ends.map(|ends| ends.since(engine.clock()).0 / 1_000_000_000);
            let member = match work.work {
                Work::Rebuild(member) | Work::Replace(member) => Some(member.0),
                _ => None,
            };
            json!({
                "kind": kind(work.work),
                "member": member,
                "done_sectors": work.done.0,
                "of_sectors": work.of.0,
                "seconds_left": left,
            })
        });
        json!({
            "schema_version": 1,
            "name": self.name,
            "array_uuid": uuid(&self.array),
            "geom": self.geom.map(|one| json!({ "class": one.kind.name(), "id": one.id })),
            "lvm_uuid": self.volume,
            "layout": self.layout,
            "bytes": engine.array().capacity().bytes(),
            "mode": self.mode.name(),
            "consistency": self.consistency(engine),
            "missing": out,
            "incomplete": incomplete,
            "survives_more": survives.saturating_sub(out + incomplete),
            "lost": engine.array().is_lost_without(None),
            "consistent": status.synced_to == raidlab_core::Sector::MAX,
            "members": members,
            "spares": self.spares.iter().map(|path| path.display().to_string()).collect::<Value>(),
            "failed_devices": self
                .failed
                .iter()
                .filter(|(path, _)| !self.members.iter().flatten().any(|used| used == path))
                .map(|(path, member)| json!({ "path": path.display().to_string(), "was_member": member.0 }))
                .collect::<Value>(),
            "journal": self.journal.as_ref().map(|path| path.display().to_string()),
            "work": work,
            "scrubs": self.scrubs.ended,
            "scrubbed": self.scrubs.document(engine.array().geometry()),
            "file": fuse.map(|path| path.display().to_string()),
        })
    }
}

/// Background work in a word.
pub(super) const fn kind(work: Work) -> &'static str {
    match work {
        Work::LogReplay => "replay of the log",
        Work::Resync => "resync",
        Work::Rebuild(_) => "rebuild",
        Work::Replace(_) => "replace",
        Work::Scrub(raidlab_core::contract::Scrub::Check) => "check",
        Work::Scrub(_) => "repair",
    }
}

/// A path that means the same in every directory; as it is given when it cannot be told.
pub(super) fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arrays below that are called 1 and 0, as they may have been given.
    #[test]
    fn a_number_that_is_a_name_is_not_guessed() {
        let of = |paths: &[&str]| {
            let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
            Names::new(Mode::Write, &paths, &[Some(0), Some(1)], &[])
        };
        let names = of(&["1", "0"]);
        for (text, other) in [("0", "01"), ("1", "00")] {
            let why = names.is_plain(text).unwrap_err();
            let words = format!("(0{text} is member {text}; the array called {text} is {other})");
            assert!(why.ends_with(&words), "{why}");
        }
        for (text, member) in [("00", 0), ("01", 1)] {
            names.is_plain(text).unwrap();
            assert_eq!(names.member(text), Ok(MemberIndex(member)));
        }
        // What is no number of a member is no question.
        names.is_plain("5").unwrap();
        of(&["0", "1"]).is_plain("1").unwrap();
        of(&["/dev/sdb", "/dev/sdc"]).is_plain("1").unwrap();
    }
}
