//! What mdadm prints of a superblock of version 0.90.

use std::fmt::Write;
use std::path::Path;

use raidlab_metadata::md::{ByteOrder, Seen, Superblock, V0, V0Device, level_name};
use raidlab_store::asctime;
use serde_json::{Value, json};

use super::examine::{array_size, checksum, chunk, human, layout_name, uuid};

/// The devices that numbers of block devices stand for on this machine are left out, which mdadm adds: members are
/// often copies, and of another machine.
pub(super) fn text(path: &Path, seen: &Seen, v0: &V0) -> String {
    let one = &seen.superblock;
    let mut out = format!("{}:\n", path.display());
    // Writing to a string cannot fail.
    let mut line = |key: &str, value: String| {
        let _ = writeln!(out, "{key:>15} : {value}");
    };
    line("Magic", "a92b4efc".into());
    line("Version", format!("0.{}.{:02}", v0.minor_version, v0.patch));
    line("UUID", uuid(&one.array));
    line("Creation Time", asctime(one.created));
    line("Raid Level", level_name(one.level).into());
    if one.level > 0 {
        line("Used Dev Size", kib(one.size.into()));
        if let Some(bytes) = array_size(one) {
            line("Array Size", kib(bytes / 512));
        }
    }
    line("Raid Devices", one.members.to_string());
    line("Total Devices", v0.devices.to_string());
    line("Preferred Minor", v0.md_minor.to_string());
    out.push('\n');
    if v0.minor_version > 90 {
        reshape(&mut out, one);
    }
    state(&mut out, seen, v0);
    devices(&mut out, one, v0);
    out
}

/// What only such a superblock says.
pub(super) fn as_json(v0: &V0) -> Value {
    let device = |one: &V0Device| {
        let V0Device { number, major, minor, place, state } = *one;
        let state = words(state).trim_start().to_owned();
        json!({ "number": number, "major": major, "minor": minor, "place": place, "state": state })
    };
    let used = v0.table.iter().filter(|one| **one != V0Device::default());
    json!({
        "minor_version": v0.minor_version,
        "byte_order": match v0.order {
            ByteOrder::Little => "little-endian",
            ByteOrder::Big => "big-endian",
        },
        "preferred_minor": v0.md_minor,
        "devices": used.map(device).collect::<Value>(),
    })
}

/// Sectors in KiB, with their size.
fn kib(sectors: u128) -> String {
    format!("{}{}", sectors / 2, human(sectors * 512))
}

fn reshape(out: &mut String, one: &Superblock) {
    let reshape = one.reshape;
    let mut line = |key: &str, value: String| {
        let _ = writeln!(out, "{key:>15} : {value}");
    };
    line("Reshape pos'n", kib(reshape.position.into()));
    if reshape.delta != 0 {
        let members = one.members;
        let before = members.wrapping_add_signed(reshape.delta.wrapping_neg());
        line("Delta Devices", format!("{} ({before}->{members})", reshape.delta));
    }
    if reshape.level != one.level {
        line("New Level", level_name(reshape.level).into());
    }
    // In the words of the level that it has, as mdadm.
    let word = reshape.layout;
    match one.level {
        _ if word == one.layout => {}
        5 | 6 => line("New Layout", layout_name(one.level, word)),
        10 => {
            let far = if word >> 16 & 1 == 1 { "offset" } else { "far" };
            line("New Layout", format!("near={}, {far}={}", word & 255, word >> 8 & 255));
        }
        _ => {}
    }
    if reshape.chunk != one.chunk {
        line("New Chunksize", (u64::from(reshape.chunk) * 512).to_string());
    }
    out.push('\n');
}

fn state(out: &mut String, seen: &Seen, v0: &V0) {
    let one = &seen.superblock;
    let mut line = |key: &str, value: String| {
        let _ = writeln!(out, "{key:>15} : {value}");
    };
    line("Update Time", asctime(one.updated));
    line("State", if v0.state & 1 != 0 { "clean" } else { "active" }.into());
    if v0.state & 256 != 0 {
        line("Internal Bitmap", "present".into());
    }
    let names = ["Active Devices", "Working Devices", "Failed Devices", "Spare Devices"];
    for (name, count) in names.iter().zip(v0.counts) {
        line(name, count.to_string());
    }
    line("Checksum", checksum(seen));
    line("Events", one.events.to_string());
    out.push('\n');
    let mut line = |key: &str, value: String| {
        let _ = writeln!(out, "{key:>15} : {value}");
    };
    if matches!(one.level, 5 | 6 | 10) {
        line("Layout", layout_name(one.level, one.layout));
    }
    if let Some((name, chunk)) = chunk(one) {
        line(name, chunk);
    }
    out.push('\n');
}

fn devices(out: &mut String, one: &Superblock, v0: &V0) {
    out.push_str("      Number   Major   Minor   RaidDevice State\n");
    out.push_str(&line("this", &v0.own));
    out.push('\n');
    // Members that a reshape takes away are behind the others.
    let gone = one.reshape.delta.min(0).unsigned_abs();
    let count = u64::from(one.members) + u64::from(gone) + u64::from(v0.counts[3]);
    for (number, device) in (0..count).zip(&v0.table) {
        out.push_str(&line(&number.to_string(), device));
    }
}

/// A line of the table.
fn line(name: &str, device: &V0Device) -> String {
    let V0Device { number, major, minor, place, state } = device;
    format!(
        "{name:>4} {number:>5}   {major:>5}    {minor:>5}    {place:>5}     {}\n",
        words(*state)
    )
}

/// The state of a device in words.
fn words(state: u32) -> String {
    let aside = V0Device::WRITE_MOSTLY | V0Device::FAIL_FAST;
    let mut words = String::new();
    for (bit, word) in [
        (V0Device::FAULTY, " faulty"),
        (V0Device::ACTIVE, " active"),
        (V0Device::IN_SYNC, " sync"),
        (V0Device::REMOVED, " removed"),
        (V0Device::WRITE_MOSTLY, " write-mostly"),
        (V0Device::FAIL_FAST, " failfast"),
    ] {
        if state & bit != 0 {
            words.push_str(word);
        }
    }
    if state & !aside == 0 {
        words.push_str(" spare");
    }
    words
}
