//! `[[layouts]]`: the layouts that are compared.

use raidlab_core::array::check_policy;
use raidlab_core::layout::{Parameter, ZoneOrder, chunk_from_size, has_far_sets, nested_levels};
use raidlab_core::policy::ReadPolicy;
use raidlab_core::suggest::did_you_mean;
use raidlab_core::{Layout, LayoutError, Level, Rotation};
use raidlab_models::LinkSpec;

use super::errors::Errors;
use super::hardware;
use super::settings::{self, Given};
use super::table::{StudyTable, Table, check_unique, read_all};
use crate::error::{StudyError, StudyErrorKind as Kind};
use crate::study::{Drives, GROUP_THREADS, Hardware, Host, NamedLayout, not_modelled};

const KEYS: [&str; 20] = [
    "name",
    "level",
    "members",
    "arrays",
    "chunk",
    "outer_chunk",
    "rotation",
    "near",
    "far",
    "offset",
    "far_sets",
    "zones",
    "policy",
    "drives",
    "spares",
    "route",
    "controller",
    "longest_request",
    "host",
    "filesystem",
];

/// The level of one drive alone: linear with one member.
const SINGLE: &str = "single";

/// What of the study is around layouts.
pub(super) struct Around<'a, 't> {
    pub(super) drives: &'a [Drives],
    pub(super) servers: &'a [LinkSpec],
    /// The study itself, for its host.
    pub(super) root: &'a Table<'t>,
    pub(super) filesystem: Option<&'a str>,
}

pub(super) fn read(
    tables: &[Table<'_>],
    around: &Around<'_, '_>,
    study: &Given,
    errors: &mut Errors,
) -> Vec<NamedLayout> {
    let mut layouts: Vec<NamedLayout> = Vec::new();
    let known = [&KEYS[..], &settings::KEYS[..]].concat();
    for table in tables {
        let layout = read_all(table, |table| read_one(table, around, study));
        let layout = errors.keep_of_table(table.check_keys(&known), layout);
        let Some(layout) = layout else { continue };
        let earlier = layouts.iter().map(|layout| layout.name.as_str());
        errors.keep(check_unique(table, &layout.name, earlier));
        layouts.push(layout);
    }
    layouts
}

fn read_one(
    table: &Table<'_>,
    around: &Around<'_, '_>,
    study: &Given,
) -> Result<NamedLayout, StudyError> {
    let drives = around.drives;
    let layout = match table.text("level")?.and_then(nested_levels) {
        Some(_) => nested(table)?,
        None => one_level(table)?,
    };
    let each = each_group(table, drives, layout.drives())?;
    let group = match each.first() {
        Some(first) => *first,
        None => group(table, drives)?,
    };
    let spares = spares(table, &layout)?;
    enough_drives(table, drives, &layout, (group, spares), &each)?;
    let read_policy = policy(table, &layout)?;
    let name = table.optional_name("name")?;
    let given = settings::read(table)?;
    let settings = given.over(study, &layout, table)?;
    let group_threads = given.group_threads(study, &layout, table)?;
    let of_threads = match group_threads {
        0 => String::new(),
        threads => format!(" {GROUP_THREADS}={threads}"),
    };
    let of_spares = if spares > 0 { format!(" spares={spares}") } else { String::new() };
    let default = || {
        default_name(&layout, read_policy) + &settings::suffix(&settings) + &of_threads + &of_spares
    };
    let name = name.map_or_else(default, str::to_string);
    let routes = hardware::routes(table, around.servers, layout.drives())?;
    let controller = hardware::controller(table)?;
    if controller.is_none() && table.has("longest_request") {
        let reason = "is a controller's; name a `controller`, or leave it out";
        return Err(table.error(Kind::WrongValue, "longest_request", reason));
    }
    let hardware = Hardware { routes, controller };
    let host = host(table, around)?;
    let filesystem = super::filesystem(table)?.map(str::to_owned);
    let member_size = None;
    let drives = group;
    Ok(NamedLayout {
        name,
        layout,
        read_policy,
        settings,
        group_threads,
        drives,
        each,
        spares,
        hardware,
        host,
        filesystem,
        member_size,
    })
}

/// A layout over drives.
fn one_level(table: &Table<'_>) -> Result<Layout, StudyError> {
    let mut layout = level_and_members(table)?;
    for key in ["arrays", "outer_chunk"] {
        if table.has(key) {
            let reason = format!("is for nested levels, such as raid5+0, not {}", layout.level);
            return Err(table.error(Kind::ImpossibleLayout, key, reason));
        }
    }
    let impossible = |error: LayoutError| {
        table.error(Kind::ImpossibleLayout, error.key, error.reason.clone()).with_source(error)
    };
    let level = layout.level;
    if let Some(size) = table.size("chunk")? {
        only_for(table, Parameter::Chunk, level)?;
        layout.chunk = chunk_from_size(size).map_err(impossible)?;
    }
    if let Some(name) = table.text("rotation")? {
        only_for(table, Parameter::Rotation, level)?;
        layout.rotation = rotation(table, name, level)?;
    }
    copies(table, &mut layout)?;
    if let Some(name) = table.text("zones")? {
        only_for(table, Parameter::Zones, level)?;
        layout.zones = name.parse().map_err(|error: LayoutError| {
            let hint = did_you_mean(name, &ZoneOrder::ALL.map(ZoneOrder::name));
            let reason = format!("{}{hint}", error.reason);
            table.error(Kind::UnknownName, "zones", reason).with_source(error)
        })?;
    }
    layout.check().map_err(impossible)?;
    Ok(layout)
}

/// Nested levels: the keys are those of the lower level, or of the upper one where only that has them.
fn nested(table: &Table<'_>) -> Result<Layout, StudyError> {
    let levels = table.required_text("level", "level = \"raid5+0\"")?;
    let most = u64::from(u16::MAX);
    let arrays = table.integer("arrays", 1..=most)?.unwrap_or(2);
    let members = table.integer("members", 1..=most)?;
    let members = members.ok_or_else(|| table.missing("members", "members = 6"))?;
    if !members.is_multiple_of(arrays) {
        let reason = format!("{members} drives cannot be {arrays} arrays of one size");
        return Err(table.error(Kind::ImpossibleLayout, "members", reason));
    }
    let mut name = format!("{levels}({arrays}x{})", members / arrays);
    for (key, word) in [("chunk", "chunk="), ("outer_chunk", "outer-chunk=")] {
        if let Some(size) = table.size(key)? {
            name += &format!(" {word}{}", size.0);
        }
    }
    for key in ["rotation", "zones"] {
        name += &table.text(key)?.map_or_else(String::new, |word| format!(" {word}"));
    }
    for key in ["near", "far", "offset"] {
        if let Some(copies) = table.integer(key, 1..=most)? {
            name += &format!(" {key}{copies}");
        }
    }
    let impossible = |error: LayoutError| {
        let key = if table.has(error.key) { error.key } else { "level" };
        table.error(Kind::ImpossibleLayout, key, error.reason.clone()).with_source(error)
    };
    let sets = table.integer("far_sets", 0..=most)?.unwrap_or(0) as u16;
    if has_far_sets(sets).map_err(impossible)? {
        name += " sets";
    }
    name.parse().map_err(impossible)
}

/// The host of a layout, where it is not the study's.
fn host(table: &Table<'_>, around: &Around<'_, '_>) -> Result<Option<Host>, StudyError> {
    let own = super::filesystem(table)?;
    let filesystem = own.map(|name| (table, name));
    let filesystem = filesystem.or(around.filesystem.map(|name| (table, name)));
    let wrong = |reason: &str| Err(table.error(Kind::WrongValue, "filesystem", reason));
    if let Some(reason) = own.and_then(not_modelled) {
        return Err(table.error(Kind::NotSupported, "filesystem", reason));
    }
    if own.is_some() && around.filesystem.is_none() {
        return wrong("the study runs without filesystem; name one there too");
    }
    if own.is_some() && !table.has("host") && !around.root.has("host") {
        return wrong("is the modelled host's; add host = { kernel = \"linux-6.1\" }");
    }
    hardware::layout_host(table, around.root, filesystem)
}

/// Of nested levels, that of the upper one which has a choice.
pub(crate) fn default_policy(layout: &Layout) -> ReadPolicy {
    let mut policies = layout.floors().map(|floor| ReadPolicy::of_level(floor.level));
    policies.find(|policy| *policy != ReadPolicy::default()).unwrap_or_default()
}

fn policy(table: &Table<'_>, layout: &Layout) -> Result<ReadPolicy, StudyError> {
    let Some(name) = table.text("policy")? else { return Ok(default_policy(layout)) };
    let policy: ReadPolicy = name.parse().map_err(|reason: String| {
        let hint = did_you_mean(name, &ReadPolicy::ALL.map(ReadPolicy::name));
        table.error(Kind::UnknownName, "policy", format!("{reason}{hint}"))
    })?;
    // Of nested levels at least one must take it.
    let checked = layout.floors().map(|floor| check_policy(policy, floor));
    let checked = checked.reduce(|one, other| one.or(other)).unwrap_or(Ok(()));
    checked.map_err(|reason| table.error(Kind::ImpossibleLayout, "policy", reason))?;
    Ok(policy)
}

/// The layout's name, and the policy where it is not the default.
fn default_name(layout: &Layout, policy: ReadPolicy) -> String {
    if policy == default_policy(layout) {
        return layout.to_string();
    }
    format!("{layout} policy={policy}")
}

fn rotation(table: &Table<'_>, name: &str, level: Level) -> Result<Rotation, StudyError> {
    name.parse().map_err(|error: LayoutError| {
        let names: Vec<_> = level.rotations().iter().map(|rotation| rotation.name()).collect();
        let (hint, known) = (did_you_mean(name, &names), names.join(", "));
        let reason = format!("`{name}` is not a rotation{hint}; {level} has: {known}");
        table.error(Kind::UnknownName, "rotation", reason).with_source(error)
    })
}

/// The copies of raid10: `near`, and `far` or `offset`, which say how many copies as the letters
/// n, f and o of mdadm do.
fn copies(table: &Table<'_>, layout: &mut Layout) -> Result<(), StudyError> {
    let number = |parameter: Parameter, range| match table.integer(parameter.key(), range)? {
        Some(number) => {
            only_for(table, parameter, layout.level)?;
            Ok(Some(number as u16))
        }
        None => Ok(None),
    };
    const MOST: u64 = u16::MAX as u64;
    let near = number(Parameter::Near, 1..=MOST)?;
    let far = number(Parameter::Far, 1..=MOST)?;
    let offset = number(Parameter::Offset, 2..=MOST)?;
    let far_sets = number(Parameter::FarSets, 0..=MOST)?;
    if far.is_some() && offset.is_some() {
        let reason = "beside `far`; offset copies are far copies in the next row, so give one";
        return Err(table.error(Kind::ImpossibleLayout, "offset", reason));
    }
    let mut with = layout.clone();
    if let Some(copies) = far.or(offset) {
        with = with.with_far(copies).with_offset(offset.is_some());
    }
    if let Some(near) = near {
        with = with.with_near(near);
    }
    *layout = with.with_far_sets(far_sets.unwrap_or(0));
    Ok(())
}

fn level_and_members(table: &Table<'_>) -> Result<Layout, StudyError> {
    let name = table.required_text("level", "level = \"raid5\"")?;
    let members = table.integer("members", 1..=u64::from(u16::MAX))?;
    if name == SINGLE {
        if members.is_some_and(|members| members != 1) {
            let reason =
                "`single` is one drive alone; leave `members` out, or use level = \"linear\"";
            return Err(table.error(Kind::ImpossibleLayout, "members", reason));
        }
        return Ok(Layout::new(Level::Linear, 1));
    }
    let level: Level = name.parse().map_err(|error: LayoutError| {
        let mut names = Level::ALL.map(Level::name).to_vec();
        names.push(SINGLE);
        let reason = format!("{}, {SINGLE}{}", error.reason, did_you_mean(name, &names));
        table.error(Kind::UnknownName, "level", reason).with_source(error)
    })?;
    let members = members.ok_or_else(|| table.missing("members", "members = 4"))?;
    Ok(Layout::new(level, members as u16))
}

/// Refuses a parameter that the level does not have: it would be read and ignored.
fn only_for(table: &Table<'_>, parameter: Parameter, level: Level) -> Result<(), StudyError> {
    if level.takes(parameter) {
        return Ok(());
    }
    let key = parameter.key();
    let reason = format!("{level} has no {key}; leave it out");
    Err(table.error(Kind::ImpossibleLayout, key, reason))
}

/// Hot spares, which only a level that survives a loss can use.
fn spares(table: &Table<'_>, layout: &Layout) -> Result<u16, StudyError> {
    let spares = table.integer("spares", 0..=u64::from(u16::MAX))?.unwrap_or(0) as u16;
    if spares > 0 && layout.survives() == 0 {
        let reason = format!("{} has nothing to rebuild a spare from; leave it out", layout.level);
        return Err(table.error(Kind::ImpossibleLayout, "spares", reason));
    }
    Ok(spares)
}

/// No group has fewer drives than the layout takes of it: members, and `spares` of the group named with them.
fn enough_drives(
    table: &Table<'_>,
    drives: &[Drives],
    layout: &Layout,
    (group, spares): (usize, u16),
    each: &[usize],
) -> Result<(), StudyError> {
    for (index, of) in drives.iter().enumerate() {
        let members = match each {
            [] if index == group => layout.drives(),
            [] => 0,
            each => each.iter().filter(|one| **one == index).count() as u16,
        };
        let spares = if index == group { spares } else { 0 };
        let (available, name) = (of.count, &of.name);
        if u32::from(members) + u32::from(spares) > u32::from(available) {
            let (with, fewer, key) = match spares {
                0 => (String::new(), "members", "members"),
                1 => (" and 1 spare".into(), "of them", "spares"),
                many => (format!(" and {many} spares"), "of them", "spares"),
            };
            let reason = format!(
                "{members} members{with} need more drives than the {available} of `{name}`; \
                 use fewer {fewer} or raise `count`"
            );
            return Err(table.error(Kind::TooFewDrives, key, reason));
        }
    }
    Ok(())
}

/// The groups of the members, `drives = ["disk2", "disk1"]`; none where all are of one.
fn each_group(
    table: &Table<'_>,
    drives: &[Drives],
    members: u16,
) -> Result<Vec<usize>, StudyError> {
    if !table.is_list("drives") {
        return Ok(Vec::new());
    }
    let named = table.texts("drives", "drives = [\"disk1\", \"disk2\"]")?.unwrap_or_default();
    if named.len() != usize::from(members) {
        let reason = format!("{} groups for {members} members; name one for each", named.len());
        return Err(table.error(Kind::WrongValue, "drives", reason));
    }
    named.into_iter().map(|(name, _)| find_group(table, drives, name)).collect()
}

/// The index of the group of drives, the first where none is named.
fn group(table: &Table<'_>, drives: &[Drives]) -> Result<usize, StudyError> {
    let Some(name) = table.text("drives")? else { return Ok(0) };
    find_group(table, drives, name)
}

fn find_group(table: &Table<'_>, drives: &[Drives], name: &str) -> Result<usize, StudyError> {
    drives.iter().position(|group| group.name == name).ok_or_else(|| {
        let names: Vec<&str> = drives.iter().map(|group| group.name.as_str()).collect();
        let (hint, known) = (did_you_mean(name, &names), names.join(", "));
        let reason = format!("`{name}` names no group of drives{hint}; they are: {known}");
        table.error(Kind::UnknownName, "drives", reason)
    })
}
