//! What the other commands ask a running array for.

use std::path::{Path, PathBuf};

use raidlab_core::MemberIndex;
use raidlab_core::contract::{Refusal, RepairSource, Scrub};
use raidlab_engine::{Engine, EngineError, is_served};
use raidlab_metadata::md::{Role, Superblock, inspect};
use serde_json::{Value, json};

use super::super::disk::{Disk, is_blank};
use super::super::examine::uuid;
use super::args::Assemble;
use super::floors::Floors;
use super::hook::Hooks;
use super::metrics;
use super::owner::Owner;
use super::socket::VERSION;
use super::state::{FAILED, Mode, Names, absolute};
use super::{open_device, serve};
use crate::failure::Failure;

pub(super) fn failed(what: impl std::fmt::Display) -> Value {
    json!({ "error": what.to_string() })
}

/// An array to which something is done, with who hears of its events.
pub(super) struct Attended<'a> {
    pub(super) owner: &'a mut Owner,
    pub(super) names: &'a mut Names,
    pub(super) hooks: &'a Hooks,
}

impl Attended<'_> {
    /// Does something with the engine. What happened before is told first, by the names of before: a member that failed
    /// is not the device that takes its place.
    pub(super) fn on_engine<R: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Engine) -> Result<R, EngineError> + Send + 'static,
    ) -> Result<R, Value> {
        let work = move |engine: &mut Engine| (engine.take_events(), work(engine));
        let (events, done) = self.owner.with(work).map_err(failed)?;
        events.iter().for_each(|event| serve::tell(event, self.names, self.hooks));
        done.map_err(failed)
    }
}

/// Whether a command means what it means here, as far as it says; what is answered otherwise.
pub(super) fn check_version(command: &Value) -> Result<(), Value> {
    match &command["version"] {
        Value::Null => Ok(()),
        version if *version == VERSION => Ok(()),
        version => {
            Err(failed(format!("version {version} of a command: this raidlab has {VERSION}")))
        }
    }
}

/// Carries out a command; gives what is answered, either way.
pub(super) fn carry_out(
    mut array: Attended<'_>,
    floors: &mut Floors,
    options: &Assemble,
    command: &Value,
) -> Result<Value, Value> {
    let text = |key: &str| {
        let given = command[key].as_str();
        given.map(str::to_owned).ok_or_else(|| failed(format!("`{key}` is missing")))
    };
    check_version(command)?;
    let what = text("do")?;
    let Attended { owner, names, .. } = &mut array;
    if what == "metrics" {
        let status = serve::document(owner, names).map_err(|error| failed(error.what()))?;
        return Ok(json!({ "text": metrics::text(&names.short(), &status, owner.report()) }));
    }
    if what == "status" {
        return serve::document(owner, names).map_err(|error| failed(error.what()));
    }
    if names.mode == Mode::Read {
        return Err(failed("the array runs for reading only: assemble it with --write"));
    }
    if names.mode == Mode::Overlay && ["add", "replace"].contains(&what.as_str()) {
        let what = "with an overlay nothing else is written to: assemble the array with --write";
        return Err(failed(what));
    }
    for key in ["member", "distrust"] {
        command[key].as_str().map_or(Ok(()), |meant| names.is_plain(meant)).map_err(failed)?;
    }
    let array = &mut array;
    match what.as_str() {
        "fail" => fail(array, &text("member")?, command["force"] == true),
        "remove" => remove(array, &text("member")?),
        "add" if !command["journal"].is_null() => Err(failed(
            "an array that runs gets no journal: stop it, and give it one with `raidlab array add --journal LOG MEMBER \
             MEMBER MEMBER`",
        )),
        "add" if command["array"] == true => {
            let devices = command["devices"].as_array().map_or(&[][..], Vec::as_slice);
            let devices =
                devices.iter().filter_map(Value::as_str).map(|one| absolute(Path::new(one)));
            let (devices, overwrite) = (devices.collect(), command["overwrite"] == true);
            floors.add(array, options, devices, overwrite)
        }
        "add" => {
            let overwrite = command["overwrite"] == true;
            add(array, &absolute(Path::new(&text("device")?)), overwrite)
        }
        "replace" => {
            let overwrite = command["overwrite"] == true;
            let device = absolute(Path::new(&text("device")?));
            replace(array, &text("member")?, &device, overwrite)
        }
        "check" => scrub(array, Scrub::Check),
        "repair" => {
            let source = repair_source(array.names, command).map_err(failed)?;
            scrub(array, Scrub::Repair(source))
        }
        other => Err(failed(format!("`{other}` is no command"))),
    }
}

/// Takes what is to replace a member out of service, or a member; one that data would be lost without only by force.
fn fail(array: &mut Attended<'_>, device: &str, force: bool) -> Result<Value, Value> {
    if let Some(member) = array.names.replacement(device) {
        array.on_engine(move |engine| engine.fail_replacement(member))?;
        return Ok(json!({ "done": format!("{device} replaces member {member} no more") }));
    }
    let member = array.names.member(device).map_err(failed)?;
    let work = move |engine: &mut Engine| {
        let array = engine.array();
        let is_last = !array.is_lost_without(None) && array.is_lost_without(Some(member));
        if is_last && !force {
            return Ok(false);
        }
        engine.fail(member).map(|()| true)
    };
    if array.on_engine(work)? {
        return Ok(json!({ "done": format!("member {member} is out of service") }));
    }
    let what = "without it the array would be lost; --force takes it out of service nevertheless";
    Err(json!({ "refused": format!("member {member}: {what}") }))
}

/// What a repair is to believe.
fn repair_source(names: &Names, command: &Value) -> Result<RepairSource, String> {
    let (trust, distrust) = (&command["trust"], &command["distrust"]);
    match (trust.as_str(), distrust.as_str()) {
        (None, None) if trust.is_null() && distrust.is_null() => Ok(RepairSource::Data),
        (Some("data"), None) => Ok(RepairSource::Data),
        (Some("parity-and-data"), None) => Ok(RepairSource::Nobody),
        (None, Some(member)) => names.member(member).map(RepairSource::NotMember),
        (Some(_), Some(_)) => Err("`trust` and `distrust` exclude each other".into()),
        _ => Err(format!("`trust` is data or parity-and-data, not {trust}")),
    }
}

fn scrub(array: &mut Attended<'_>, scrub: Scrub) -> Result<Value, Value> {
    let begun = array.on_engine(move |engine| match engine.array().layout().survives() {
        0 => Ok(None),
        _ => Ok(Some(engine.start_scrub(scrub))),
    })?;
    let layout = array.names.layout();
    match begun {
        None => {
            let what = "has no redundancy: there is nothing that could be compared or repaired";
            Err(failed(format!("{layout} {what}")))
        }
        Some(Err(error)) if error.refusal() == Some(Refusal::NobodyToBelieve) => {
            let what = "has no P and Q, which only together tell which block is wrong (raid6): repair it by its data, \
                        or by all but a member known to be wrong (--distrust MEMBER)";
            Err(failed(format!("{layout} {what}")))
        }
        Some(Err(error)) => Err(failed(error)),
        Some(Ok(())) => Ok(json!({ "done": "begun", "scrubs": array.names.scrubs.ended })),
    }
}

fn remove(array: &mut Attended<'_>, member: &str) -> Result<Value, Value> {
    if member == FAILED {
        return remove_failed(array);
    }
    let Attended { owner, names, .. } = &mut *array;
    let path = absolute(Path::new(member));
    let is_meant = |failed: &PathBuf| {
        let is_in_use = names.members.iter().flatten().any(|used| used == failed);
        !is_in_use && (*failed == path || failed.as_path() == Path::new(member))
    };
    if let Some(index) = names.failed.iter().position(|(failed, _)| is_meant(failed)) {
        return Ok(json!({ "done": let_go_of(names.failed.remove(index)) }));
    }
    let is_meant = |spare: &PathBuf| *spare == path || spare.as_path() == Path::new(member);
    if let Some(index) = names.spares.iter().position(is_meant) {
        owner.with(move |engine| drop(engine.take_spare(index))).map_err(failed)?;
        names.spares.remove(index);
        return Ok(json!({ "done": format!("{} is no spare any more", path.display()) }));
    }
    if let Some(replaced) = names.replacement(member) {
        let what = format!(
            "{member} is to replace member {replaced}: take it out of service first (`raidlab array fail`), which lets \
             go of it"
        );
        return Err(failed(what));
    }
    let member = names.member(member).map_err(failed)?;
    Ok(json!({ "done": take_out(array, member)? }))
}

/// Takes out the device of a member that failed.
fn take_out(array: &mut Attended<'_>, member: MemberIndex) -> Result<String, Value> {
    array.on_engine(move |engine| {
        // It is closed where it was opened.
        engine.take_out(member).map(drop)
    })?;
    let was = array.names.members[member.at()].take();
    let device = was.map_or_else(|| "nothing".to_owned(), |path| path.display().to_string());
    Ok(format!("{device} is let go of; member {member} is missing"))
}

fn let_go_of((device, member): (PathBuf, MemberIndex)) -> String {
    format!("{} is let go of; another device is member {member}", device.display())
}

/// Lets go of all devices that failed.
fn remove_failed(array: &mut Attended<'_>) -> Result<Value, Value> {
    let Attended { owner, names, .. } = &mut *array;
    let members = (0..names.members.len() as u16 / 2).map(MemberIndex);
    let there: Vec<_> = members.filter(|member| names.members[member.at()].is_some()).collect();
    let is_failed = move |engine: &mut Engine| {
        there.into_iter().filter(|member| engine.array().is_failed(*member)).collect::<Vec<_>>()
    };
    let mut done: Vec<String> = names.failed.drain(..).map(let_go_of).collect();
    for member in owner.with(is_failed).map_err(failed)? {
        match take_out(array, member) {
            Ok(told) => done.push(told),
            Err(error) => {
                done.push(error["error"].as_str().unwrap_or_default().to_owned());
                return Err(failed(done.join("\n")));
            }
        }
    }
    Ok(json!({ "done": if done.is_empty() { "no device failed".into() } else { done.join("\n") } }))
}

/// That a device may be written all over.
pub(in super::super) fn consent(
    path: &Path,
    overwrite: bool,
    array: &[u8; 16],
) -> Result<(), Failure> {
    if overwrite {
        return Ok(());
    }
    let mut disk = Disk::open(path)?;
    let hint = "; --overwrite takes it nevertheless, and all that is on it is lost";
    let found = inspect(&mut disk);
    if let Some(seen) = found.seen.first() {
        let one = &seen.superblock;
        if one.array == *array && one.role() == Role::Spare {
            return Ok(());
        }
        let (name, id) = (one.name(), uuid(&one.array));
        let what = format!("is a member of an md array ({name}, {id})");
        return Err(Failure::Refused(format!("{} {what}{hint}", path.display())));
    }
    if let Some(one) = found.geom.as_ref().and_then(|seen| seen.whole()) {
        let of = if one.array() == *array { "this" } else { "a" };
        let what = format!("is a disk of {of} {} ({})", one.kind.name(), one.shown_name());
        return Err(Failure::Refused(format!("{} {what}{hint}", path.display())));
    }
    let blank = is_blank(&disk);
    let blank = blank.map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
    if blank {
        return Ok(());
    }
    Err(Failure::Refused(format!("{}: something stands on it{hint}", path.display())))
}

pub(super) fn refused(failure: &Failure) -> Value {
    match failure {
        Failure::Refused(what) => json!({ "refused": what }),
        other => failed(other.what()),
    }
}

fn add(array: &mut Attended<'_>, device: &Path, overwrite: bool) -> Result<Value, Value> {
    not_itself(device).map_err(|error| refused(&error))?;
    let id = array.names.array;
    let role = of_this_array(device, &id).map_err(|error| refused(&error))?;
    if let Some(what) = in_use(array.owner, array.names, device)? {
        return Err(json!({ "refused": what }));
    }
    match role {
        Some(Role::Member(place)) if !overwrite => {
            return come_back(array, place, device);
        }
        Some(Role::Journal) if !overwrite => {
            let log = device.display();
            let what = "was the log device of this array, which gets a journal only while it does not run: stop it, \
                        and give all its members, as in `raidlab array add --overwrite --journal";
            let hint = "--overwrite takes it as a fresh device";
            let told = format!("{log} {what} {log} MEMBER MEMBER MEMBER`; {hint}");
            return Err(json!({ "refused": told }));
        }
        _ => {}
    }
    consent(device, overwrite, &id).map_err(|error| refused(&error))?;
    let (path, sector) = (device.to_owned(), array.names.geom.map(|one| one.sector));
    let taken = array.on_engine(move |engine| {
        let count = engine.members().len() as u16;
        let mut places = (0..count).map(MemberIndex);
        let missing = places.find(|one| engine.array().is_failed(*one));
        match missing {
            Some(member) => engine.add(member, open_device(&path, sector)?).map(|()| Some(member)),
            None => engine.add_spare(open_device(&path, sector)?).map(|()| None),
        }
    })?;
    let (names, shown) = (&mut *array.names, device.display());
    Ok(match taken {
        Some(member) => {
            names.took_over(member, device.to_owned());
            json!({ "done": format!("{shown} is rebuilt as member {member}") })
        }
        None => {
            names.failed.retain(|(path, _)| path != device);
            names.spares.push(device.to_owned());
            json!({ "done": format!("{shown} waits as a spare") })
        }
    })
}

/// Why a device is not added that the array uses already; one that failed may come back.
fn in_use(owner: &mut Owner, names: &Names, device: &Path) -> Result<Option<String>, Value> {
    let shown = device.display();
    if names.spares.iter().any(|one| one == device) {
        return Ok(Some(format!("{shown} is a spare of the array already")));
    }
    let count = names.members.len() / 2;
    let Some(place) = names.members.iter().position(|one| one.as_deref() == Some(device)) else {
        return Ok(None);
    };
    if place >= count {
        return Ok(Some(format!("{shown} is to replace member {} already", place - count)));
    }
    let member = MemberIndex(place as u16);
    let is_failed = owner.with(move |engine| engine.array().is_failed(member));
    Ok(match is_failed.map_err(failed)? {
        true => None,
        false => Some(format!("{shown} is member {member}, in service: there is nothing to add")),
    })
}

/// That a device is not made of what is served here: the array would wait for itself.
pub(in super::super) fn not_itself(device: &Path) -> Result<(), Failure> {
    if is_served(device) {
        let what = "holds what an array of this process serves, and cannot be a part of one";
        return Err(Failure::Refused(format!("{} {what}", device.display())));
    }
    Ok(())
}

/// The role in this array that a device says it has.
fn of_this_array(device: &Path, array: &[u8; 16]) -> Result<Option<Role>, Failure> {
    let found = inspect(&mut Disk::open(device)?);
    Ok(found.superblock().filter(|one| one.array == *array).map(Superblock::role))
}

/// A device that was a member comes back.
fn come_back(array: &mut Attended<'_>, place: u16, device: &Path) -> Result<Value, Value> {
    let member = MemberIndex(place);
    if usize::from(place) >= array.names.members.len() / 2 {
        return Err(failed(format!("{}: the array has no member {place}", device.display())));
    }
    let path = device.to_owned();
    let back = array.on_engine(move |engine| {
        if !engine.array().is_failed(member) {
            return Ok(Err("another device is in its place".to_owned()));
        }
        Ok(engine
            .re_add(member, Some(open_device(&path, None)?))
            .map_err(|error| error.to_string()))
    })?;
    match back {
        Ok(()) => {
            array.names.took_over(member, device.to_owned());
            Ok(json!({ "done": format!("{} is member {member} again", device.display()) }))
        }
        Err(why) => Err(json!({
            "refused": format!(
                "{} was member {member}, and cannot come back as it is: {why}; --overwrite adds it as a fresh device",
                device.display()
            )
        })),
    }
}

fn replace(
    array: &mut Attended<'_>,
    member: &str,
    device: &Path,
    overwrite: bool,
) -> Result<Value, Value> {
    let member = array.names.member(member).map_err(failed)?;
    not_itself(device).map_err(|error| refused(&error))?;
    consent(device, overwrite, &array.names.array).map_err(|error| refused(&error))?;
    let path = device.to_owned();
    array.on_engine(move |engine| {
        // Who asks for it has made up their mind.
        engine.replace(member, open_device(&path, None)?, true)
    })?;
    let count = array.names.members.len() / 2;
    array.names.members[count + member.at()] = Some(device.to_owned());
    Ok(json!({ "done": format!("member {member} is copied to {}", device.display()) }))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use raidlab_core::{Layout, Level, Sectors};
    use raidlab_engine::{EngineConfig, Member, MemoryMember};

    use super::*;

    /// Two mirrors in memory, by these names, at which something may have happened that nobody has been told of yet.
    fn mirrors(happened: impl FnOnce(&mut Engine)) -> (Owner, Names) {
        let blank = || Member::Memory(MemoryMember::new(Sectors(2048)).unwrap());
        let config = EngineConfig::new(Layout::new(Level::Raid1, 2));
        let mut engine = Engine::new(&config, vec![blank(), blank()]).unwrap();
        happened(&mut engine);
        let paths = ["/first".into(), "/second".into()];
        let names = Names::new(Mode::Write, &paths, &[Some(0), Some(1)], &[]);
        (Owner::Here(Box::new(engine)), names)
    }

    fn asked((owner, names): &mut (Owner, Names), hooks: &Hooks, command: Value) -> Value {
        let options = serve::tests::options();
        let array = Attended { owner, names, hooks };
        carry_out(array, &mut Floors::none(), &options, &command).unwrap()
    }

    /// Who waits for the end of a check is not told of the one before.
    #[test]
    fn a_check_is_not_taken_for_the_one_before() {
        let check = |engine: &mut Engine| engine.start_scrub(Scrub::Check).unwrap();
        let mut array = mirrors(|engine| {
            check(engine);
            while !engine.background().is_empty() {
                engine.settle(std::time::Duration::from_millis(1)).unwrap();
            }
        });
        let hooks = Hooks::new(None, &array.1);
        let begun = asked(&mut array, &hooks, json!({ "do": "check" }));
        assert_eq!(begun["scrubs"], 1, "the first one has ended");
    }

    /// The program hears which device failed, also where another one takes its place before that was told.
    #[test]
    fn a_device_that_is_added_is_not_the_one_that_failed() {
        let name = format!("raidlab-commands-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir(&directory).unwrap();
        let path = |name: &str| directory.join(name).display().to_string();
        let script = format!("#!/bin/sh\necho \"$1 $3\" >>{}\n", path("log"));
        std::fs::write(path("program"), script).unwrap();
        std::fs::set_permissions(path("program"), PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::write(path("new"), vec![0; 1 << 20]).unwrap();
        let mut array = mirrors(|engine| engine.fail(MemberIndex(1)).unwrap());
        let hooks = Hooks::new(Some(Path::new(&path("program"))), &array.1);
        let done = asked(&mut array, &hooks, json!({ "do": "add", "device": path("new") }));
        assert!(done["done"].as_str().unwrap().ends_with("is rebuilt as member 1"), "{done}");
        hooks.end();
        assert_eq!(std::fs::read_to_string(path("log")).unwrap(), "Fail /second\n");
        assert_eq!(array.1.failed_last, Some(MemberIndex(1)));
        drop(array);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
