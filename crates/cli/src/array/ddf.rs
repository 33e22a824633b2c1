//! Disks of a DDF container, as hardware controllers make them: which array of it is meant, and what they carry.

use std::fmt::Write;
use std::path::Path;

use raidlab_metadata::md::ddf::{Array, Ddf, Guid, PhysicalDisk, VirtualDisk, arrays};
use raidlab_metadata::md::level_name;
use serde_json::{Value, json};

use super::examine::human;
use super::stack::Part;
use crate::failure::Failure;

type Named = (VirtualDisk, Result<Array, String>);

/// Has devices of a container tell of one of its arrays, as members of md's would. Where one has a superblock of md
/// nothing is changed.
pub(super) fn choose(parts: &mut [Part], volume: Option<&str>) -> Result<(), Failure> {
    let is_md = parts.iter().any(|part| part.inspected.superblock().is_some());
    let all: Vec<&Ddf> = parts.iter().filter_map(|part| part.inspected.ddf.as_deref()).collect();
    let Some(first) = all.first().filter(|_| !is_md) else {
        return match volume {
            Some(_) => Err(Failure::input("--volume: none of the devices is of a DDF container")),
            None => Ok(()),
        };
    };
    if all.iter().any(|one| one.guid != first.guid) {
        let what = "the devices are of several DDF containers: give those of one";
        return Err(Failure::failed(what));
    }
    let chosen = one(arrays(&all), volume)?;
    for part in parts {
        if let Some(ddf) = part.inspected.ddf.take() {
            part.inspected = chosen.on(&ddf, part.inspected.sectors);
        }
    }
    Ok(())
}

/// The array of this name, or the only one.
fn one(all: Vec<Named>, volume: Option<&str>) -> Result<Array, Failure> {
    let listed: Vec<_> = all.iter().map(|(disk, _)| disk.name.clone()).collect();
    let listed = listed.join(", ");
    let is_meant = |(disk, _): &Named| volume.is_none_or(|volume| disk.name == volume);
    let mut meant: Vec<Named> = all.into_iter().filter(is_meant).collect();
    match (meant.pop(), volume) {
        (Some((disk, found)), _) if meant.is_empty() => {
            found.map_err(|why| Failure::failed(format!("array {}: {why}", disk.name)))
        }
        (Some(_), None) => {
            let what = "the container has several arrays, say which with --volume:";
            Err(Failure::input(format!("{what} {listed}")))
        }
        (Some((disk, _)), Some(_)) => {
            let what = "--volume: several arrays of the container have the name";
            Err(Failure::input(format!("{what} {}", disk.name)))
        }
        (None, Some(volume)) => {
            let what = format!("--volume: the container has no array {volume}");
            Err(Failure::input(format!("{what}; it has: {listed}")))
        }
        (None, None) => Err(Failure::failed("the DDF container has no array")),
    }
}

/// The bytes as mdadm prints them.
fn guid(bytes: &Guid) -> String {
    let word = |word: &[u8]| word.iter().map(|byte| format!("{byte:02X}")).collect::<String>();
    bytes.chunks(4).map(word).collect::<Vec<_>>().join(":")
}

/// Its state in mdadm's words.
fn state(one: &VirtualDisk) -> String {
    let names =
        ["Optimal", "Degraded", "Deleted", "Missing", "Failed", "Partially Optimal", "-reserved-"];
    let word = names.get(usize::from(one.state & 7)).unwrap_or(&"-reserved-");
    let consistent = if one.state & 16 == 0 { "Consistent" } else { "Not Consistent" };
    format!("{word}, {consistent}")
}

/// What `examine` prints of a device.
pub(super) fn text(path: &Path, one: &Ddf) -> String {
    let mut text = format!("{}:\n", path.display());
    let mut line = |name: &str, value: String| {
        writeln!(text, "{name:>16} : {value}").expect("a string takes it");
    };
    line("Magic", "de11de11".into());
    line("Container GUID", guid(&one.guid));
    line("Seq", format!("{:08x}", one.sequence));
    line("Virtual Disks", one.arrays.len().to_string());
    for (array, found) in arrays(&[one]) {
        line("Name", array.name.clone());
        line("VD GUID", guid(&array.guid));
        line("State", state(&array));
        match found {
            Ok(found) => {
                line("Raid Level", level_name(found.level).into());
                line("Raid Devices", found.members.len().to_string());
                if found.chunk > 0 && found.level != 1 {
                    line("Chunk Size", format!("{} sectors", found.chunk));
                }
                let size = human(u128::from(found.size) * 512);
                line("Device Size", format!("{} sectors{size}", found.size));
            }
            Err(why) => line("Not read", why),
        }
    }
    line("Physical Disks", one.disks.len().to_string());
    for disk in &one.disks {
        let own = if disk.reference == one.own { " (this one)" } else { "" };
        let state = if disk.is_in_service() { "in service" } else { "not in service" };
        line("RefNo", format!("{:08x}{own}, {state}", disk.reference));
    }
    text.push('\n');
    text
}

/// The same as JSON.
pub(super) fn as_json(one: &Ddf) -> Value {
    let array = |(array, found): Named| {
        let mut value = json!({
            "name": array.name,
            "guid": guid(&array.guid),
            "consistent": array.state & 16 == 0,
            "initialised": array.initialised == 2,
        });
        match found {
            Ok(found) => {
                value["level"] = json!(level_name(found.level));
                value["members"] = json!(found.members.len());
                value["chunk_sectors"] = json!(found.chunk);
                value["member_sectors"] = json!(found.size);
            }
            Err(why) => value["not_read"] = json!(why),
        }
        value
    };
    let disk = |disk: &PhysicalDisk| {
        let reference = format!("{:08x}", disk.reference);
        json!({ "reference": reference, "in_service": disk.is_in_service() })
    };
    json!({
        "ddf": {
            "container": guid(&one.guid),
            "sequence": one.sequence,
            "reference": format!("{:08x}", one.own),
            "arrays": arrays(&[one]).into_iter().map(array).collect::<Value>(),
            "disks": one.disks.iter().map(disk).collect::<Value>(),
        },
    })
}
