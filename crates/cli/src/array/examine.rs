//! `raidlab array examine`: what stands on members, in mdadm's words.

use std::fmt::Write;
use std::path::Path;

use raidlab_core::layout::ZoneOrder;
use raidlab_core::{Rotation, Sectors};
pub(super) use raidlab_metadata::md::uuid;
use raidlab_metadata::md::{
    Aside, BitmapSeen, Damage, Features, Inspected, LogSeen, Role, Seen, Superblock, level_name,
};
use raidlab_store::asctime;
use serde_json::{Value, json};

use super::args::Examine;
use super::stack::{self, Part};
use super::synced::Synced;
use super::{ddf, disk, examine_v0, geom, lvm, scan};
use crate::failure::Failure;
use crate::json::pretty;
use crate::output;

/// The seconds of a time stamp.
const SECONDS: u64 = (1 << 40) - 1;

pub(super) fn run(options: &Examine) -> Result<(), Failure> {
    let mut found = Vec::new();
    let mut failures = Vec::new();
    for path in &options.members {
        match disk::look(path) {
            Ok(inspected) => found.push((path.as_path(), inspected)),
            Err(failure) => failures.push(failure),
        }
    }
    let parts = found.iter().map(|(path, inspected)| Part {
        path: path.to_path_buf(),
        inspected: inspected.clone(),
        lower: None,
    });
    let arrays = stack::members(&parts.collect::<Vec<_>>());
    found.extend(arrays.iter().map(|(name, inspected)| (name.as_path(), inspected.clone())));
    let text = match (options.scan, options.json) {
        (true, _) => scan::lines(&found, options.verbose) + &geom::lines(&found),
        (_, true) => pretty(&json!({
            "schema_version": 1,
            "members": found.iter().map(|(path, one)| as_json(path, one)).collect::<Value>(),
        })),
        _ => found.iter().filter_map(|(path, one)| told(path, one)).collect(),
    };
    output::print(&text)?;
    for (path, one) in &found {
        if options.scan && shown(one).is_none() && one.ddf.is_some() {
            output::note(&format!(
                "{}: of a DDF container, of which --scan has no line; without --scan its arrays are shown",
                path.display()
            ));
        }
        if options.scan && shown(one).is_none() && one.lvm.is_some() {
            output::note(&format!(
                "{}: a physical volume of LVM, of which --scan has no line; without --scan its RAID volumes are shown",
                path.display()
            ));
        }
        if shown(one).is_none() && !is_foreign(one) && !options.scan {
            failures.push(Failure::failed(format!("{}: {}", path.display(), why_not(one))));
        }
    }
    let Some(last) = failures.pop() else { return Ok(()) };
    for failure in &failures {
        output::note(&format!("error: {}", failure.what()));
    }
    Err(last)
}

/// What is said of a device that carries something.
fn told(path: &Path, one: &Inspected) -> Option<String> {
    match (shown(one), &one.ddf, &one.geom, &one.lvm) {
        (Some(seen), ..) => Some(text(path, one, seen)),
        (None, Some(found), ..) => Some(ddf::text(path, found)),
        (None, None, Some(seen), Some(physical)) => {
            let both = [geom::text(path, seen), lvm::text(path, physical)];
            Some(both.into_iter().flatten().collect())
        }
        (None, None, Some(seen), None) => geom::text(path, seen),
        (None, None, None, Some(seen)) => lvm::text(path, seen),
        (None, None, None, None) => None,
    }
}

/// Whether a device is of an array of another kind than md's, by what can be used.
fn is_foreign(one: &Inspected) -> bool {
    let has_label = one.geom.as_ref().is_some_and(|seen| seen.whole().is_some());
    one.ddf.is_some()
        || has_label
        || one.lvm.as_ref().is_some_and(|seen| seen.is_whole() && seen.damaged.is_empty())
}

/// The superblock that is told of: also one with a wrong checksum, but none that says it stands elsewhere.
pub(super) fn shown(one: &Inspected) -> Option<&Seen> {
    one.seen.iter().find(|seen| {
        let misplaced = matches!(seen.damage, Some(Damage::Misplaced(_) | Damage::OfPartition));
        let place = seen.version.superblock(one.sectors);
        !misplaced && place.is_some_and(|at| at.0 == seen.superblock.super_offset)
    })
}

/// Why a device is no member.
fn why_not(one: &Inspected) -> String {
    if let Some(seen) = &one.geom
        && let Some(damage) = &seen.damage
    {
        return format!("byte {}: {damage}", seen.at.bytes());
    }
    if let Some(damaged) = one.lvm.as_ref().and_then(|seen| seen.damaged.first()) {
        return damaged.to_string();
    }
    if let Some(version) = one.unreadable.first() {
        return format!("the place of a superblock of version {version} cannot be read");
    }
    match (one.seen.first().and_then(|seen| seen.damage), one.broken.first()) {
        (Some(damage), _) => damage.to_string(),
        (None, Some((_, damage))) => damage.to_string(),
        (None, None) => "no md superblock".into(),
    }
}

/// A size in units of two and of ten, as mdadm adds it behind one in sectors; nothing for less than 5,000 KiB.
pub(super) fn human(bytes: u128) -> String {
    let (binary, decimal, letter) = match bytes {
        0..5_120_000 => return String::new(),
        5_120_000..0x8000_0000 => (1_u128 << 20, 1_000_000, 'M'),
        0x8000_0000..0x200_0000_0000 => (1 << 30, 1_000_000_000, 'G'),
        _ => (1 << 40, 1_000_000_000_000, 'T'),
    };
    let hundredths = |unit: u128| {
        let value = (bytes * 200 / unit).div_ceil(2);
        (value / 100, value % 100)
    };
    let decimal_hundredths = {
        let value = (bytes / (decimal / 200)).div_ceil(2);
        (value / 100, value % 100)
    };
    let ((whole, part), (ten, tenth)) = (hundredths(binary), decimal_hundredths);
    format!(" ({whole}.{part:02} {letter}iB {ten}.{tenth:02} {letter}B)")
}

/// Sectors with their size.
fn sectors(count: u64) -> String {
    format!("{count} sectors{}", human(u128::from(count) * 512))
}

/// The name of this machine.
pub(super) fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim_end().to_owned()
}

/// The bytes of the array, as md counts them; `None` for levels without a size of their own.
pub(super) fn array_size(one: &Superblock) -> Option<u128> {
    let members = u128::from(one.members);
    let (data, share) = match one.level {
        1 => (1, 1),
        4 | 5 => (members.checked_sub(1)?, 1),
        6 => (members.checked_sub(2)?, 1),
        10 => {
            let copies = u128::from((one.layout & 255) * (one.layout >> 8 & 255));
            (members, copies.max(1))
        }
        _ => return None,
    };
    (data > 0).then(|| u128::from(one.size) * 512 * data / share)
}

/// Sectors before and behind the data that nothing uses; `None` where mdadm says nothing of them: 1 behind stands for
/// unknown there, and so does nothing before a superblock at the end.
fn unused(device: Sectors, inspected: &Inspected, one: &Superblock) -> Option<(u64, u64)> {
    let size = one.used();
    let bad = (one.bad_blocks.size > 0 && one.bad_blocks.offset != 0)
        .then(|| one.super_offset as i128 + i128::from(one.bad_blocks.offset));
    let beside = match one.aside {
        Aside::Bitmap(offset) => i128::from(offset),
        Aside::PartialParity { offset, .. } => i128::from(offset),
        Aside::Nothing => 0,
    };
    if one.data_offset < one.super_offset {
        let mut end = one.super_offset as i128;
        end = end.min(bad.unwrap_or(end)).min(one.super_offset as i128 + beside);
        let after = end - size as i128 - one.data_offset as i128;
        return (after > 1).then_some((one.data_offset, after as u64));
    }
    // md keeps 32 KiB and 4 KiB behind the superblock to itself.
    let mut used = one.super_offset as i128 + 72;
    let len = match (&inspected.bitmap, one.aside) {
        (BitmapSeen::Found(bitmap, _), _) => bitmap.sectors().map_or(0, |len| len.0 as i128),
        (_, Aside::PartialParity { size, .. }) => i128::from(size),
        _ => 0,
    };
    if beside > 0 {
        used = used.max(beside + len);
    }
    if let Some(bad) = bad {
        used = used.max(bad + i128::from(one.bad_blocks.size));
    }
    if one.role() == Role::Journal {
        return Some(((one.data_offset as i128 - used).max(0) as u64, 0));
    }
    let after = device.0 as i128 - size as i128 - one.data_offset as i128;
    (after != 1).then_some(((one.data_offset as i128 - used).max(0) as u64, after.max(0) as u64))
}

/// What mdadm prints.
fn text(path: &Path, inspected: &Inspected, seen: &Seen) -> String {
    let one = &seen.superblock;
    if let Some(v0) = &one.v0 {
        return examine_v0::text(path, seen, v0);
    }
    let mut out = format!("{}:\n", path.display());
    // Writing to a string cannot fail.
    let mut line = |key: &str, value: &str| {
        let _ = writeln!(out, "{key:>15} : {value}");
    };
    line("Magic", "a92b4efc");
    line("Version", seen.version.name());
    line("Feature Map", &one.features.to_string());
    line("Array UUID", &uuid(&one.array));
    line("Name", &named(one));
    line("Creation Time", &asctime(one.created & SECONDS));
    line("Raid Level", level_name(one.level));
    line("Raid Devices", &format!("{}", one.members));
    out.push('\n');
    sizes(&mut out, inspected, seen);
    let mut line = |key: &str, value: &str| {
        let _ = writeln!(out, "{key:>15} : {value}");
    };
    line("State", if one.is_clean() { "clean" } else { "active" });
    line("Device UUID", &uuid(&one.device));
    out.push('\n');
    beside(&mut out, one);
    if one.features.has(Features::RESHAPE) {
        reshape(&mut out, one);
    }
    state(&mut out, seen);
    out
}

fn named(one: &Superblock) -> String {
    let (name, host) = (one.name(), hostname());
    let is_local =
        !host.is_empty() && name.strip_prefix(&host).is_some_and(|rest| rest.starts_with(':'));
    let local = if is_local { format!("  (local to host {host})") } else { String::new() };
    format!("{name}{local}")
}

fn sizes(out: &mut String, inspected: &Inspected, seen: &Seen) {
    let one = &seen.superblock;
    let mut line = |key: &str, value: String| {
        let _ = writeln!(out, "{key:>15} : {value}");
    };
    line("Avail Dev Size", sectors(one.data_size));
    if let Some(bytes) = array_size(one) {
        line("Array Size", format!("{} KiB{}", bytes >> 10, human(bytes)));
    }
    if one.level != 0 && one.size != one.data_size {
        line("Used Dev Size", sectors(one.size));
    }
    if one.data_offset > 0 {
        line("Data Offset", format!("{} sectors", one.data_offset));
    }
    if one.features.has(Features::NEW_OFFSET) && one.reshape.offset != 0 {
        let moved = one.data_offset.wrapping_add_signed(i64::from(one.reshape.offset));
        line("New Offset", format!("{moved} sectors"));
    }
    line("Super Offset", format!("{} sectors", one.super_offset));
    if let Some(to) = one.rebuilt_to() {
        line("Recovery Offset", format!("{to} sectors"));
    }
    if let Some((before, after)) = unused(inspected.sectors, inspected, one) {
        line("Unused Space", format!("before={before} sectors, after={after} sectors"));
    }
}

/// What lies beside the superblock.
fn beside(out: &mut String, one: &Superblock) {
    let _ = match one.aside {
        Aside::Bitmap(offset) => {
            writeln!(out, "Internal Bitmap : {offset} sectors from superblock")
        }
        Aside::PartialParity { offset, size } => {
            writeln!(
                out,
                "{:>15} : {size} sectors at offset {offset} sectors from superblock",
                "PPL"
            )
        }
        Aside::Nothing => Ok(()),
    };
}

fn reshape(out: &mut String, one: &Superblock) {
    let reshape = one.reshape;
    let mut line = |key: &str, value: String| {
        let _ = writeln!(out, "{key:>15} : {value}");
    };
    let kib = reshape.position / 2;
    line("Reshape pos'n", format!("{kib}{}", human(u128::from(kib) << 10)));
    if reshape.delta != 0 {
        let members = one.members;
        let before = members.wrapping_add_signed(reshape.delta.wrapping_neg());
        line("Delta Devices", format!("{} ({before}->{members})", reshape.delta));
    }
    if reshape.level != one.level {
        line("New Level", level_name(reshape.level).to_owned());
    }
    if reshape.layout != one.layout {
        line("New Layout", layout_name(reshape.level, reshape.layout));
    }
    if reshape.chunk != one.chunk {
        line("New Chunksize", format!("{}K", reshape.chunk / 2));
    }
    out.push('\n');
}

/// The layout as mdadm names it.
pub(super) fn layout_name(level: i32, word: u32) -> String {
    match level {
        10 => {
            let (near, far, offset) = (word & 255, word >> 8 & 255, word >> 16 & 1 == 1);
            let mut names = Vec::new();
            if near > 1 {
                names.push(format!("near={near}"));
            }
            if far > 1 {
                names.push(format!("{}={far}", if offset { "offset" } else { "far" }));
            }
            if near * far <= 1 {
                names.push("NO REDUNDANCY".into());
            }
            names.join(", ")
        }
        0 => match word {
            0 => "dangerous".into(),
            known => zones(known).into(),
        },
        5 | 6 => {
            let found = Rotation::ALL.iter().find(|one| one.md_number() == word);
            found.map_or("-unknown-", |one| one.name()).to_owned()
        }
        _ => String::new(),
    }
}

/// The checksum, and what it should be.
pub(super) fn checksum(seen: &Seen) -> String {
    let (stored, computed) = seen.checksums;
    match stored == computed {
        true => format!("{stored:x} - correct"),
        false => format!("{stored:x} - expected {computed:x}"),
    }
}

/// What levels with chunks call them, and their size.
pub(super) fn chunk(one: &Superblock) -> Option<(&'static str, String)> {
    let name = match one.level {
        0 | 4 | 5 | 6 | 10 => "Chunk Size",
        -1 => "Rounding",
        _ => return None,
    };
    Some((name, format!("{}K", one.chunk / 2)))
}

fn state(out: &mut String, seen: &Seen) {
    let one = &seen.superblock;
    if one.flags != 0 {
        let named = [(1, " write-mostly"), (2, " failfast")];
        let set = named.into_iter().filter(|(flag, _)| one.flags & flag != 0);
        let set: String = set.map(|(_, name)| name).collect();
        let _ = writeln!(out, "{:>15} :{set}", "Flags");
    }
    let mut line = |key: &str, value: String| {
        let _ = writeln!(out, "{key:>15} : {value}");
    };
    line("Update Time", asctime(one.updated & SECONDS));
    let bad = one.bad_blocks;
    if bad.size > 0 && bad.offset != 0 {
        let present =
            if one.features.has(Features::BAD_BLOCKS) { " - bad blocks present." } else { "" };
        let entries = u64::from(bad.size) * 512 / 8;
        line(
            "Bad Block Log",
            format!("{entries} entries available at offset {} sectors{present}", bad.offset),
        );
    }
    line("Checksum", checksum(seen));
    line("Events", one.events.to_string());
    out.push('\n');
    let mut line = |key: &str, value: String| {
        let _ = writeln!(out, "{key:>15} : {value}");
    };
    let has_zones = one.level == 0 && one.features.has(Features::RAID0_LAYOUT);
    if has_zones || matches!(one.level, 5 | 6 | 10) {
        line("Layout", layout_name(one.level, one.layout));
    }
    if let Some((name, chunk)) = chunk(one) {
        line(name, chunk);
    }
    out.push('\n');
    let mut line = |key: &str, value: String| {
        let _ = writeln!(out, "{key:>14} : {value}");
    };
    line("Device Role", role(one));
    let state = members(one);
    line("Array State", format!("{state} ('A' == active, '.' == missing, 'R' == replacing)"));
    if state.contains('?') {
        out.push_str("WARNING Array state is inconsistent - each number should appear only once\n");
        for (number, role) in one.roles.iter().enumerate() {
            let _ = match role {
                Role::Member(_) | Role::Journal => write!(out, " {number}:{}", role.number()),
                _ => write!(out, " {number}:-"),
            };
        }
        out.push('\n');
    }
}

fn role(one: &Superblock) -> String {
    match one.role() {
        Role::Member(place) if one.features.has(Features::REPLACEMENT) => {
            format!("Replacement device {place}")
        }
        Role::Member(place) => format!("Active device {place}"),
        Role::Journal => "Journal".into(),
        Role::Spare | Role::Faulty => "spare".into(),
    }
}

/// A letter for each member: how many devices have its place.
pub(super) fn members(one: &Superblock) -> String {
    let letter = |place| match one.roles.iter().filter(|role| **role == Role::Member(place)).count()
    {
        0 => '.',
        1 => 'A',
        2 if one.level != 0 => 'R',
        _ => '?',
    };
    (0..one.members.min(0xff00) as u16).map(letter).collect()
}

fn as_json(path: &Path, inspected: &Inspected) -> Value {
    let device = json!({ "path": path.display().to_string(), "sectors": inspected.sectors.0 });
    let Some(seen) = shown(inspected) else {
        if let Some(found) = &inspected.ddf {
            return merged(device, ddf::as_json(found));
        }
        let label = inspected.geom.as_ref().map(|seen| geom::as_json(seen));
        let physical = inspected.lvm.as_ref().map(|seen| lvm::as_json(path, seen));
        if label.is_some() || physical.is_some() {
            return [label, physical].into_iter().flatten().fold(device, merged);
        }
        return merged(device, json!({ "md": false, "reason": why_not(inspected) }));
    };
    let one = &seen.superblock;
    let role = match one.role() {
        Role::Member(place) => json!(place),
        _ => Value::Null,
    };
    merged(
        device,
        json!({
            "md": true,
            "damage": seen.damage.map(|damage| damage.to_string()),
            "version": seen.version.name(),
            "feature_map": one.features.0,
            "array_uuid": uuid(&one.array),
            "name": one.name(),
            "created": one.created & SECONDS,
            "level": level_name(one.level),
            "layout": one.layout,
            "layout_name": layout_name(one.level, one.layout),
            "zones": one.features.has(Features::RAID0_LAYOUT).then(|| zones(one.layout)),
            "chunk_sectors": one.chunk,
            "members": one.members,
            "size_sectors": one.size,
            "array_bytes": array_size(one).and_then(|bytes| u64::try_from(bytes).ok()),
            "data_offset_sectors": one.data_offset,
            "data_size_sectors": one.data_size,
            "super_offset_sectors": one.super_offset,
            "rebuilt_to_sectors": one.rebuilt_to(),
            "clean": one.is_clean(),
            "redundancy": Synced::by(one).name(),
            "device_uuid": one.v0.is_none().then(|| uuid(&one.device)),
            "device_number": one.number,
            "role": role,
            "role_name": self::role(one),
            "updated": one.updated & SECONDS,
            "events": one.events,
            "checksum_correct": seen.checksums.0 == seen.checksums.1,
            "array_state": members(one),
            "bitmap": bitmap_json(&inspected.bitmap),
            "bad_blocks": inspected.bad.as_ref().map(|all| {
                all.iter().map(|(at, len)| json!({ "sector": at.0, "sectors": len.0 })).collect::<Value>()
            }),
            "log": match inspected.log {
                LogSeen::None => Value::Null,
                LogSeen::Empty => json!("empty"),
                LogSeen::Used => json!("holds writes"),
                LogSeen::Lost => json!("unreadable"),
            },
            "version_0_90": one.v0.as_deref().map(examine_v0::as_json),
        }),
    )
}

fn zones(word: u32) -> &'static str {
    match word {
        1 => ZoneOrder::Original.name(),
        2 => ZoneOrder::Alternate.name(),
        _ => "-unknown-",
    }
}

fn bitmap_json(bitmap: &BitmapSeen) -> Value {
    match bitmap {
        BitmapSeen::None => Value::Null,
        BitmapSeen::Lost => json!({ "readable": false }),
        BitmapSeen::Found(head, dirty) => json!({
            "readable": true,
            "version": head.kind.version(),
            "events": head.events,
            "events_cleared": head.events_cleared,
            "chunk_bytes": head.chunk,
            "covered_sectors": head.covered,
            "bits": head.bits(),
            "dirty": dirty,
        }),
    }
}

/// Both objects as one.
fn merged(mut one: Value, other: Value) -> Value {
    if let (Some(one), Value::Object(other)) = (one.as_object_mut(), other) {
        one.extend(other);
    }
    one
}
