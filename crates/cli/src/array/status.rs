//! `raidlab array status`: whether an array can be read from the members that are there.

use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use raidlab_core::{Array, Size};
use raidlab_metadata::md::{Assembly, LogSeen, Out, Why};
use serde_json::{Value, json};

use super::args::Status;
use super::examine::uuid;
use super::geom;
use super::open::Found;
use super::running::client;
use super::synced::Synced;
use crate::failure::Failure;
use crate::json::pretty;
use crate::output;

pub(super) fn run(options: &Status) -> Result<(), Failure> {
    if let [one] = &options.members.members[..]
        && let Some(array) = running(one)
    {
        if options.metrics {
            return client::metrics(array);
        }
        return client::status(array, (options.json, options.watch, options.test));
    }
    if options.watch || options.test || options.metrics {
        let what = "for one array that runs, by its name or socket";
        return Err(Failure::input(format!("--watch, --test and --metrics are {what}")));
    }
    let found = Found::new(&options.members)?;
    if options.json {
        output::print(&pretty(&as_json(&found)))?;
        return found.assembly().map(|_| ());
    }
    let assembly = found.assembly()?;
    output::print(&text(&found, assembly))
}

/// The name or socket of a running array, where no member is given.
fn running(one: &Path) -> Option<&str> {
    let text = one.to_str()?;
    match one.metadata() {
        Ok(there) => there.file_type().is_socket().then_some(text),
        Err(_) => (!text.contains('/')).then_some(text),
    }
}

/// Bytes of the array.
pub(super) fn capacity(assembly: &Assembly) -> u64 {
    let array = Array::new(&assembly.config());
    array.map_or(0, |array| array.capacity().bytes())
}

/// What it is, and what of it is there.
fn state(found: &Found, assembly: &Assembly) -> String {
    let missing = assembly.missing();
    let whole = match missing.len() {
        0 => "all members there".to_owned(),
        1 => format!("degraded, without member {}", missing[0]),
        _ => {
            let list: Vec<_> = missing.iter().map(u16::to_string).collect();
            format!("degraded, without members {}", list.join(", "))
        }
    };
    let told = found.volume();
    let stopped = match (found.synced(assembly), assembly.dirty_bits) {
        _ if told.is_some_and(|told| told.is_not_synced) => {
            "its redundancy was never made (--nosync)".to_owned()
        }
        _ if told.is_some_and(|told| told.is_unsure) => {
            "whether it was stopped cleanly is not recorded".to_owned()
        }
        (Synced::Clean, _) => "stopped cleanly".to_owned(),
        (Synced::Never, _) => "never synchronised yet, its first resync is pending".to_owned(),
        (Synced::Partly(to), _) => format!("stopped during a resync, which had come to {to}"),
        (Synced::Dirty, None) => "not stopped cleanly".to_owned(),
        (Synced::Dirty, Some((dirty, bits))) => {
            format!("not stopped cleanly, {dirty} of {bits} ranges may be inconsistent")
        }
    };
    format!("{whole}; {stopped}")
}

fn text(found: &Found, assembly: &Assembly) -> String {
    let name = if assembly.name.is_empty() { "(no name)" } else { &assembly.name };
    let known = match &assembly.geom {
        Some(known) => geom::state(known),
        None => match found.volume_id() {
            Some(id) => format!("events {}, LV UUID {id}", assembly.events),
            None => format!("events {}, UUID {}", assembly.events, uuid(&assembly.array)),
        },
    };
    let size = Size(capacity(assembly));
    let mut text =
        format!("{name}: {}, {size}, {known}\n{}\n\n", assembly.layout, state(found, assembly));
    for (place, one) in assembly.places.iter().enumerate() {
        let device = one.given.map_or_else(|| "missing".into(), |given| found.device(given));
        text.push_str(&format!("  member {place}  {device}"));
        let bad: u64 = one.bad.iter().map(|(_, _, len)| len.0).sum();
        if bad > 0 {
            text.push_str(&format!("  ({bad} sectors listed as bad)"));
        }
        text.push('\n');
    }
    for out in &assembly.out {
        text.push_str(&match out.why {
            Why::Journal => format!("  journal   {}\n", found.paths[out.given].display()),
            _ => format!("  not used  {}\n", found.told(out)),
        });
    }
    for one in &found.beside {
        text.push_str(&format!("  not used  {one}\n"));
    }
    for note in notes(found, assembly) {
        text.push_str(&format!("note: {note}\n"));
    }
    for below in found.lower.iter().flatten().filter(|below| !below.is_member) {
        if let Ok(assembly) = &below.decision {
            text.push_str(&format!("\n{}", self::text(below, assembly)));
        }
    }
    text
}

/// What is worth knowing.
fn notes(found: &Found, assembly: &Assembly) -> Vec<String> {
    let mut notes = assembly.notes.clone();
    if assembly.has_unequal_copies() {
        notes.push("copies of a block may differ; always the same one is read".into());
    }
    let logs = assembly.places.iter().filter_map(|one| one.given);
    let is_logged = logs.map(|given| found.inspected[given].log).any(|log| log == LogSeen::Used);
    if is_logged && !assembly.clean {
        notes.push(
            "partial parity was logged, by which `raidlab array assemble --write` and md recover parity".into(),
        );
    }
    notes
}

fn as_json(found: &Found) -> Value {
    let assembly = match &found.decision {
        Ok(assembly) => assembly,
        Err(cannot) => {
            return json!({ "schema_version": 1, "readable": false, "reason": found.why(cannot) });
        }
    };
    let path = |given: usize| found.device(given);
    let members = assembly.places.iter().enumerate().map(|(place, one)| {
        json!({
            "member": place,
            "path": one.given.map(path),
            "data_offset_sectors": one.data_offset.0,
            "sectors": one.sectors.0,
            "bad_sectors": one.bad.iter().map(|(_, _, len)| len.0).sum::<u64>(),
        })
    });
    let synced = found.synced(assembly);
    let is_log = |out: &&Out| out.why == Why::Journal;
    let log = assembly.out.iter().find(is_log).map(|out| path(out.given));
    let out = assembly.out.iter().filter(|out| !is_log(out)).map(|out| {
        json!({ "path": path(out.given), "member": out.place, "reason": out.why.to_string() })
    });
    json!({
        "schema_version": 1,
        "readable": true,
        "name": assembly.name,
        "array_uuid": uuid(&assembly.array),
        "layout": assembly.layout.to_string(),
        "bytes": capacity(assembly),
        "events": assembly.events,
        "lvm_uuid": found.volume_id(),
        "geom": assembly.geom.as_ref().map(geom::state_as_json),
        "clean": assembly.clean,
        "redundancy": match found.volume() {
            Some(told) if told.is_not_synced => Synced::Never.name(),
            Some(told) if told.is_unsure => "not recorded",
            _ => synced.name(),
        },
        "resynced_sectors": match synced {
            Synced::Partly(to) => Some(to.0),
            Synced::Clean | Synced::Never | Synced::Dirty => None,
        },
        "missing": assembly.missing(),
        "members": members.collect::<Value>(),
        "journal": log,
        "not_used": out.collect::<Value>(),
        "not_started": found.beside,
        "notes": notes(found, assembly),
        "lower": found.lower.iter().flatten().filter(|below| !below.is_member).map(as_json).collect::<Value>(),
    })
}
