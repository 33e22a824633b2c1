//! Arrays that are members of arrays, as md and GEOM stack them: which array on the devices is a member of which.
//!
//! Devices are put together by the array that their superblocks name. What such an array holds is looked at as a device
//! is: where it carries a superblock, it is a device of the array that this one names, on up to [`MOST_FLOORS`] floors.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use raidlab_metadata::md::Inspected;

use super::args::Members;
use super::examine::uuid;
use super::open::{Found, parts};
use crate::failure::Failure;

type ArrayId = [u8; 16];

/// Floors of arrays at most. Each is read through all below it, and a small image may hold thousands.
const MOST_FLOORS: usize = 8;

/// A device, or an array that is a member.
#[derive(Clone)]
pub(super) struct Part {
    /// Where it is; of an array its name.
    pub(super) path: PathBuf,
    pub(super) inspected: Inspected,
    pub(super) lower: Option<Found>,
}

impl Part {
    /// Whether it is, or lies on, one of these devices.
    pub(super) fn is_of(&self, devices: &[PathBuf]) -> bool {
        let ranges = self.lower.as_ref().filter(|lower| lower.is_member);
        let has_one =
            ranges.is_some_and(|lower| lower.paths.iter().any(|path| devices.contains(path)));
        has_one || devices.contains(&self.path)
    }
}

/// An array as far as it is known.
struct Group {
    array: ArrayId,
    name: String,
    parts: Vec<Part>,
    /// Of which arrays the parts are that are arrays.
    below: Vec<ArrayId>,
    /// Everything is there that is known to belong to it.
    found: Option<Found>,
    above: Option<ArrayId>,
}

/// The array above all others that stand on these devices; `None` where no array on them is a member of another.
pub(super) fn find(parts: &[Part], options: &Members) -> Result<Option<Found>, Failure> {
    let mut groups = grouped(parts);
    stack(&mut groups, options)?;
    let mut tops: Vec<&Group> = groups.iter().filter(|group| group.above.is_none()).collect();
    if !tops.iter().any(|top| !top.below.is_empty()) {
        return Ok(None);
    }
    let is_whole = |top: &&Group| top.found.as_ref().is_some_and(|found| found.decision.is_ok());
    let stacked = tops.iter().position(|top| !top.below.is_empty());
    let whole: Vec<&Group> = tops.iter().copied().filter(|top| is_whole(top)).collect();
    let is_one = tops.iter().filter(|top| !top.below.is_empty()).count() == 1;
    let mut top = match (stacked, whole.as_slice()) {
        (Some(one), []) if is_one => tops.remove(one),
        (Some(one), [other]) if is_one && other.array == tops[one].array => tops.remove(one),
        _ => return Err(several(&groups, &tops)),
    }
    .found
    .clone()
    .ok_or_else(|| Failure::failed("an array was not looked at"))?;
    top.beside = tops.iter().map(|other| not_started(other)).collect();
    let strange = parts.iter().filter(|part| part.inspected.array().is_none());
    top.beside.extend(
        strange.map(|part| format!("{}: no md superblock that could be used", part.path.display())),
    );
    Ok(Some(top))
}

/// Arrays on these devices that carry a superblock themselves, each by its name.
pub(super) fn members(parts: &[Part]) -> Vec<(PathBuf, Inspected)> {
    let mut groups = grouped(parts);
    let (allow_dirty_degraded, ignore_journal) = (true, true);
    let only_looked_at =
        Members { allow_dirty_degraded, ignore_journal, ..Members::plain(Vec::new()) };
    // Those that say that each is a member of the other are told where they are to be assembled.
    let _ = stack(&mut groups, &only_looked_at);
    let arrays = groups.into_iter().flat_map(|group| group.parts);
    let arrays = arrays.filter(|part| part.lower.is_some());
    arrays.map(|part| (part.path, part.inspected)).collect()
}

/// The devices of each array that is a member of none, for who serves several; and those that are of no array.
pub(super) fn arrays(options: &Members) -> Result<(Vec<Vec<PathBuf>>, Vec<PathBuf>), Failure> {
    let parts = parts(options)?;
    let mut groups = grouped(&parts);
    if !options.flat {
        stack(&mut groups, options)?;
    }
    let tops: Vec<&Group> = groups.iter().filter(|group| group.above.is_none()).collect();
    let has_stack = tops.iter().filter(|top| !top.below.is_empty()).count() == 1;
    let does_not_start =
        |top: &Group| top.found.as_ref().is_some_and(|found| found.decision.is_err());
    let mut arrays: Vec<Vec<PathBuf>> = Vec::new();
    let mut left: Vec<PathBuf> = Vec::new();
    let mut stacked = 0;
    for top in tops {
        let devices = devices(&groups, top);
        if !top.below.is_empty() {
            stacked = arrays.len();
        }
        // What it would be a member of can be told of the others alone.
        match has_stack && top.below.is_empty() && does_not_start(top) {
            true => left.extend(devices),
            false => arrays.push(devices),
        }
    }
    if let Some(stacked) = arrays.get_mut(stacked) {
        stacked.extend(left);
    }
    let others = parts.iter().filter(|part| part.inspected.array().is_none());
    Ok((arrays, others.map(|part| part.path.clone()).collect()))
}

/// The devices of each array.
fn grouped(parts: &[Part]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for part in parts {
        let Some((array, name)) = part.inspected.array() else { continue };
        match groups.iter_mut().find(|group| group.array == array) {
            Some(group) => group.parts.push(part.clone()),
            None => groups.push(Group::new(array, name, part.clone())),
        }
    }
    groups
}

impl Group {
    fn new(array: ArrayId, name: String, part: Part) -> Self {
        Self { array, name, parts: vec![part], below: Vec::new(), found: None, above: None }
    }
}

/// Puts arrays into the arrays that they are members of, until nothing changes.
fn stack(groups: &mut Vec<Group>, options: &Members) -> Result<(), Failure> {
    while let Some(index) = groups.iter().position(|group| group.found.is_none()) {
        let (array, parts) = (groups[index].array, groups[index].parts.clone());
        let found = Found::of(parts, options);
        let content = found.content();
        let floors = floors(&found);
        groups[index].found = Some(found.clone());
        let Some((above, name)) = content.as_ref().and_then(Inspected::array) else { continue };
        // A copy of one of its own members says nothing of what it is a member of.
        if above == array {
            continue;
        }
        if floors >= MOST_FLOORS {
            return Err(too_many(groups, &groups[index], &name));
        }
        let Some(inspected) = content else { continue };
        // Commands tell it from the one above by its name.
        let called = match short(groups, index) {
            same if same == short_name(&name, &above) => uuid(&array).replace(':', ""),
            own => own,
        };
        let path = PathBuf::from(called);
        let part = Part { path, inspected, lower: Some(found) };
        groups[index].above = Some(above);
        match groups.iter().position(|group| group.array == above) {
            Some(place) if reaches(groups, above, array) => {
                let names = format!("{} and {}", groups[index].name, groups[place].name);
                return Err(Failure::input(format!(
                    "{names} say that each is a member of the other"
                )));
            }
            Some(place) => groups[place].take(array, part),
            None => {
                groups.push(Group::new(above, name, part));
                let last = groups.len() - 1;
                groups[last].below.push(array);
            }
        }
    }
    Ok(())
}

impl Group {
    /// Takes an array as a member, instead of what it was before; everything is to be decided again.
    fn take(&mut self, array: ArrayId, part: Part) {
        let before = self.below.iter().position(|one| *one == array);
        let devices = self.parts.len() - self.below.len();
        match before {
            Some(before) => self.parts[devices + before] = part,
            None => {
                self.below.push(array);
                self.parts.push(part);
            }
        }
        self.found = None;
    }
}

/// How many floors an array has with those below it.
fn floors(found: &Found) -> usize {
    1 + found.lower.iter().flatten().map(floors).max().unwrap_or(0)
}

fn too_many(groups: &[Group], top: &Group, above: &str) -> Failure {
    let devices: Vec<String> =
        devices(groups, top).iter().map(|path| path.display().to_string()).collect();
    Failure::input(format!(
        "{}: {} is the array on floor {MOST_FLOORS}, and holds a member of another one, {above}: of arrays in arrays \
         at most {MOST_FLOORS} floors are put together; --flat leaves it at those that stand on the devices themselves",
        devices.join(", "),
        top.name
    ))
}

/// Whether the way up from an array comes to another.
fn reaches(groups: &[Group], from: ArrayId, to: ArrayId) -> bool {
    let above = |array: &ArrayId| {
        groups.iter().find(|group| group.array == *array).and_then(|group| group.above)
    };
    std::iter::successors(Some(from), above).take(groups.len() + 1).any(|one| one == to)
}

/// What an array is called as a member: its name without the machine's, or its identity where that says nothing.
fn short(groups: &[Group], index: usize) -> String {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for group in groups {
        *counts.entry(short_name(&group.name, &group.array)).or_default() += 1;
    }
    let own = short_name(&groups[index].name, &groups[index].array);
    match counts.get(&own) {
        Some(1) => own,
        _ => uuid(&groups[index].array).replace(':', ""),
    }
}

/// An array's name without the machine's, that of a volume of LVM with a hyphen behind its group, as the device mapper
/// has it; its identity where that is no name for a file.
pub(super) fn short_name(name: &str, array: &ArrayId) -> String {
    let short = name.split_once(':').map_or(name, |(_, name)| name).replacen('/', "-", 1);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    match !short.is_empty() && short.bytes().all(is_plain) && !short.starts_with('.') {
        true => short,
        false => uuid(array).replace(':', ""),
    }
}

/// Why an array is not used that is there besides.
fn not_started(group: &Group) -> String {
    let why = match &group.found {
        Some(found) => found.decision.as_ref().err().map(|cannot| found.why(cannot)),
        None => None,
    };
    let why = why.unwrap_or_else(|| "not a member of it".into());
    format!("{} does not start: {}", group.name, why.replace('\n', "\n  "))
}

/// Devices that are not of one array.
fn several(groups: &[Group], tops: &[&Group]) -> Failure {
    let mut text = "the devices belong to several arrays; give those of one:".to_owned();
    for top in tops {
        let devices: Vec<String> =
            devices(groups, top).iter().map(|path| path.display().to_string()).collect();
        text.push_str(&format!("\n  {} ({}): {}", top.name, uuid(&top.array), devices.join(", ")));
    }
    Failure::input(text)
}

/// All devices that an array stands on.
fn devices(groups: &[Group], of: &Group) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = Vec::new();
    for part in &of.parts {
        match &part.lower {
            Some(lower) if lower.is_member => all.extend(lower.paths.iter().cloned()),
            Some(_) => {}
            None => all.push(part.path.clone()),
        }
    }
    // A physical volume may have several members of a volume.
    let mut seen = HashSet::new();
    all.retain(|path| seen.insert(path.clone()));
    for below in &of.below {
        if let Some(group) = groups.iter().find(|group| group.array == *below) {
            all.extend(devices(groups, group));
        }
    }
    all
}

/// Which devices an array has.
fn belonging(group: &Group) -> String {
    let superblock = group.parts.iter().find_map(|part| part.inspected.superblock());
    let id = superblock.map_or_else(String::new, |one| format!(" ({})", uuid(&one.array)));
    let devices = group.parts.iter().map(|part| part.path.display().to_string());
    format!("{}{id}: {}", group.name, devices.collect::<Vec<_>>().join(", "))
}

/// What there is to say of each of several arrays that do not belong together.
pub(super) fn each(found: &Found, options: &Members) -> Vec<String> {
    let parts: Vec<Part> = found
        .paths
        .iter()
        .zip(&found.inspected)
        .map(|(path, inspected)| Part {
            path: path.clone(),
            inspected: inspected.clone(),
            lower: None,
        })
        .collect();
    let groups = grouped(&parts);
    let mut lines: Vec<String> = groups.iter().map(belonging).collect();
    for mut group in groups {
        let found = Found::of(group.parts.clone(), options);
        if found.decision.is_err() {
            group.found = Some(found);
            lines.push(not_started(&group));
        }
    }
    lines
}
