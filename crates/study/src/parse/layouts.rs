//! `[[layouts]]`: the layouts that are compared.

use raidlab_core::layout::chunk_from_size;
use raidlab_core::policy::ReadPolicy;
use raidlab_core::{Layout, LayoutError, Level, Rotation};

use super::table::{Table, check_unique};
use crate::error::{StudyError, StudyErrorKind as Kind};
use crate::study::{Drives, NamedLayout};
use crate::suggest::did_you_mean;

const KEYS: [&str; 7] = ["name", "level", "members", "chunk", "rotation", "near", "drives"];

/// The level of one drive alone: linear with one member.
const SINGLE: &str = "single";

pub(super) fn read(
    tables: &[Table<'_>],
    drives: &[Drives],
) -> Result<Vec<NamedLayout>, StudyError> {
    let mut layouts: Vec<NamedLayout> = Vec::new();
    for table in tables {
        let layout = read_one(table, drives)?;
        check_unique(table, &layout.name, layouts.iter().map(|layout| layout.name.as_str()))?;
        layouts.push(layout);
    }
    Ok(layouts)
}

fn read_one(table: &Table<'_>, drives: &[Drives]) -> Result<NamedLayout, StudyError> {
    table.check_keys(&KEYS)?;
    let mut layout = level_and_members(table)?;
    let impossible = |error: LayoutError| {
        table.error(Kind::ImpossibleLayout, error.key, error.reason.clone()).with_source(error)
    };
    let level = layout.level;
    if let Some(size) = table.size("chunk")? {
        only_for(table, "chunk", level.has_chunks() || level == Level::Linear, level)?;
        layout.chunk = chunk_from_size(size).map_err(impossible)?;
    }
    if let Some(name) = table.text("rotation")? {
        only_for(table, "rotation", level == Level::Raid5, level)?;
        layout.rotation = name.parse().map_err(|error: LayoutError| {
            let hint = did_you_mean(name, &Rotation::ALL.map(Rotation::name));
            let reason = format!("{}{hint}", error.reason);
            table.error(Kind::UnknownName, "rotation", reason).with_source(error)
        })?;
    }
    if let Some(near) = table.integer("near", 1..=u64::from(u16::MAX))? {
        only_for(table, "near", level == Level::Raid10, level)?;
        layout.near = near as u16;
    }
    layout.check().map_err(impossible)?;

    let group = group(table, drives)?;
    let available = drives[group].count;
    if layout.members > available {
        let (members, name) = (layout.members, &drives[group].name);
        let reason = format!(
            "{members} members need more drives than the {available} of `{name}`; \
             use fewer members or raise `count`"
        );
        return Err(table.error(Kind::TooFewDrives, "members", reason));
    }
    let name = table.optional_name("name")?.map_or_else(|| layout.to_string(), str::to_string);
    Ok(NamedLayout { name, layout, read_policy: ReadPolicy::default(), drives: group })
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
fn only_for(table: &Table<'_>, key: &str, has_it: bool, level: Level) -> Result<(), StudyError> {
    if has_it {
        return Ok(());
    }
    let reason = format!("{level} has no {key}; leave it out");
    Err(table.error(Kind::ImpossibleLayout, key, reason))
}

/// The index of the group of drives, the first where none is named.
fn group(table: &Table<'_>, drives: &[Drives]) -> Result<usize, StudyError> {
    let Some(name) = table.text("drives")? else { return Ok(0) };
    drives.iter().position(|group| group.name == name).ok_or_else(|| {
        let names: Vec<&str> = drives.iter().map(|group| group.name.as_str()).collect();
        let (hint, known) = (did_you_mean(name, &names), names.join(", "));
        let reason = format!("`{name}` names no group of drives{hint}; they are: {known}");
        table.error(Kind::UnknownName, "drives", reason)
    })
}
