//! Disks of FreeBSD's gmirror, graid3, gstripe and gconcat: what their labels say, and making new ones.

use std::fmt::Write;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use raidlab_core::{Layout, SECTOR_BYTES, Sectors};
use raidlab_metadata::geom::{Beside, Creation, Kind, Label, Made, Seen, State};
use raidlab_metadata::md::Inspected;
use serde_json::{Value, json};

use super::args::{BitmapChoice, Create};
use super::create::random;
use super::examine::human;
use super::targets::{Target, approve, targets};
use crate::failure::Failure;
use crate::output;

/// How a mirror shares reads out, as `gmirror` calls it.
const BALANCE: [&str; 5] = ["none", "round-robin", "load", "split", "prefer"];

/// What `examine` prints of a device, with the words of `gmirror dump`.
pub(super) fn text(path: &Path, seen: &Seen) -> Option<String> {
    let one = seen.label.as_ref()?;
    let mut text = format!("{}:\n", path.display());
    let mut line = |name: &str, value: String| {
        writeln!(text, "{name:>16} : {value}").expect("a string takes it");
    };
    line("Magic", one.kind.magic().into());
    line("Version", one.version.to_string());
    line("Name", one.shown_name());
    line("ID", one.id.to_string());
    match one.kind {
        Kind::Mirror => line("Disk ID", one.disk.to_string()),
        _ => line("Number", one.number.to_string()),
    }
    line("Devices", one.members.to_string());
    if one.kind == Kind::Stripe {
        line("Stripe Size", one.stripe.to_string());
    }
    if one.kind.is_redundant() {
        line("Genid", one.genid.to_string());
        line("Syncid", one.syncid.to_string());
        if one.kind == Kind::Mirror {
            line("Priority", one.priority.to_string());
            line("Slice", one.slice.to_string());
            line("Balance", balance(one).into());
        }
        line("Media Size", format!("{}{}", one.array_bytes, human(one.array_bytes.into())));
        line("Sector Size", one.sector_bytes.to_string());
        line("Sync Offset", one.sync_offset.to_string());
        line("Array Flags", array_flags(one));
        line("Device Flags", one.flags().names());
    }
    if !one.provider.is_empty() {
        line("Provider", raidlab_metadata::printable(one.provider.as_bytes()));
    }
    if one.provider_bytes > 0 {
        line("Provider Size", one.provider_bytes.to_string());
    }
    // What raidlab keeps there and FreeBSD does not look at.
    if let Some(beside) = &seen.beside {
        line("Epoch", format!("{:016x}", beside.epoch));
        line("Missing", missing(beside));
    }
    if let Some(damage) = &seen.damage {
        line("Not used", damage.to_string());
    }
    text.push('\n');
    Some(text)
}

/// Who was out of service when the syncid was raised last, as far as it is kept.
fn missing(beside: &Beside) -> String {
    match (beside.out, beside.left.checked_sub(1)) {
        (0, _) => "none".into(),
        (count, Some(number)) => format!("{count}, number {number}"),
        (count, None) => count.to_string(),
    }
}

fn balance(one: &Label) -> &'static str {
    BALANCE.get(usize::from(one.balance)).unwrap_or(&"none")
}

/// Flags of the array, in the words of `gmirror dump` and `graid3 dump`.
fn array_flags(one: &Label) -> String {
    let names: &[&str] = match one.kind {
        Kind::Mirror => &["NOAUTOSYNC", "NOFAILSYNC"],
        _ => &["NOAUTOSYNC", "ROUND-ROBIN", "VERIFY", "NOFAILSYNC"],
    };
    let set = names.iter().enumerate().filter(|(bit, _)| one.array_flags >> bit & 1 == 1);
    let set: Vec<_> = set.map(|(_, name)| *name).collect();
    if set.is_empty() { "NONE".into() } else { set.join(", ") }
}

/// The same as JSON.
pub(super) fn as_json(seen: &Seen) -> Value {
    let damage = seen.damage.as_ref().map(ToString::to_string);
    let Some(one) = &seen.label else {
        return json!({ "geom": { "sector": seen.at.0, "damage": damage } });
    };
    let mut value = json!({
        "sector": seen.at.0,
        "damage": damage,
        "class": one.kind.name(),
        "version": one.version,
        "name": one.name,
        "id": one.id,
        "devices": one.members,
        "provider": one.provider,
        "provider_bytes": one.provider_bytes,
    });
    match one.kind {
        Kind::Mirror => value["disk_id"] = json!(one.disk),
        _ => value["number"] = json!(one.number),
    }
    if one.kind == Kind::Stripe {
        value["stripe_bytes"] = json!(one.stripe);
    }
    if one.kind == Kind::Mirror {
        value["priority"] = json!(one.priority);
        value["slice"] = json!(one.slice);
        value["balance"] = json!(balance(one));
    }
    if one.kind.is_redundant() {
        value["genid"] = json!(one.genid);
        value["syncid"] = json!(one.syncid);
        value["array_bytes"] = json!(one.array_bytes);
        value["sector_bytes"] = json!(one.sector_bytes);
        value["sync_offset"] = json!(one.sync_offset);
        value["array_flags"] = json!(array_flags(one));
        value["device_flags"] = json!(one.flags().names());
    }
    if let Some(beside) = &seen.beside {
        value["epoch"] = json!(format!("{:016x}", beside.epoch));
        value["missing"] = json!(beside.out);
        value["left_number"] = json!(beside.left.checked_sub(1));
    }
    json!({ "geom": value })
}

/// A line for each array: mdadm.conf has no word for them, so they are remarks in it.
pub(super) fn lines(found: &[(&Path, Inspected)]) -> String {
    let mut arrays: Vec<(&Label, usize)> = Vec::new();
    let labels = found.iter().filter_map(|(_, one)| one.geom.as_ref()?.whole());
    for one in labels {
        match arrays.iter_mut().find(|(known, _)| known.array() == one.array()) {
            Some((_, count)) => *count += 1,
            None => arrays.push((one, 1)),
        }
    }
    let line = |(one, there): &(&Label, usize)| {
        let (kind, name, members, id) = (one.kind.name(), one.shown_name(), one.members, one.id);
        format!("# {kind} {name} id={id} num-devices={members} given={there}\n")
    };
    arrays.iter().map(line).collect()
}

/// What `status` prints in the place of events and identity.
pub(super) fn state(one: &State) -> String {
    let newest = one.newest.map(|(genid, syncid)| format!(", genid {genid}, syncid {syncid}"));
    format!("{}, ID {}{}", one.kind.name(), one.id, newest.unwrap_or_default())
}

/// The same as JSON.
pub(super) fn state_as_json(one: &State) -> Value {
    json!({
        "class": one.kind.name(),
        "id": one.id,
        "genid": one.newest.map(|(genid, _)| genid),
        "syncid": one.newest.map(|(_, syncid)| syncid),
    })
}

/// `raidlab array create --metadata geom`.
pub(super) fn create(options: &Create, layout: Layout) -> Result<(), Failure> {
    check(options)?;
    let targets: Option<Vec<Target>> = targets(options)?.into_iter().collect();
    let targets = targets.ok_or_else(|| {
        Failure::input(
            "missing: labels of GEOM do not say which member is not there: give all of them",
        )
    })?;
    let number = || random().map(|[a, b, c, d, ..]| u32::from_le_bytes([a, b, c, d]));
    let device = |target: &Target| Ok((target.sectors, number()?));
    let creation = Creation {
        layout,
        name: options.name.clone().unwrap_or_else(|| "array".into()),
        id: number()?,
        devices: targets.iter().map(device).collect::<Result<_, Failure>>()?,
        sector: sector(targets.iter().map(|target| target.sector)).map_err(Failure::input)?,
    };
    let made = creation.labels().map_err(Failure::input)?;
    if made.kind.is_redundant() && options.overwrite && !options.assume_clean {
        let what = "labels of a new array say that its redundancy is consistent, and FreeBSD does not look";
        return Err(Failure::input(format!("--overwrite: {what}; --assume-clean says that it is")));
    }
    let writes = approve(options, &targets.iter().collect::<Vec<_>>())?;
    if writes {
        targets.iter().try_for_each(Target::clear_old)?;
        write(&targets, &made, creation.sector)?;
    }
    output::print(&told(options, writes, &creation, &made))
}

/// What labels have no room for is refused.
fn check(options: &Create) -> Result<(), Failure> {
    for (is_given, flag) in [
        (!options.spare.is_empty(), "--spare"),
        (options.consistency.is_some(), "--consistency"),
        (options.bitmap == BitmapChoice::Internal, "--bitmap"),
        (options.ppl, "--ppl"),
        (options.write_journal.is_some(), "--write-journal"),
        (options.homehost.is_some(), "--homehost"),
        (options.uuid.is_some(), "--uuid"),
        (options.data_offset.is_some(), "--data-offset"),
        (options.size.is_some(), "--size"),
    ] {
        if is_given {
            return Err(Failure::input(format!("{flag}: labels of GEOM have no room for it")));
        }
    }
    Ok(())
}

fn at(target: &Target, error: &io::Error) -> Failure {
    Failure::failed(format!("{}: {error}", target.path.display()))
}

/// What a sector of each disk has: labels stand in the last one, and of a mirror and of raid3 they say one size for
/// all.
fn sector(mut of: impl Iterator<Item = Sectors>) -> Result<Sectors, String> {
    let one = of.next().unwrap_or(Sectors(1));
    match of.find(|other| *other != one) {
        None => Ok(one),
        Some(other) => Err(format!(
            "disks with sectors of {} and of {} bytes cannot be of one array of GEOM",
            one.bytes(),
            other.bytes()
        )),
    }
}

/// Writes the labels; when that fails those that were written go again.
fn write(targets: &[Target], made: &Made, sector: Sectors) -> Result<(), Failure> {
    let place = |label: &Label| label.provider_bytes.saturating_sub(sector.bytes());
    let all = || targets.iter().zip(&made.labels);
    let written = all().try_for_each(|(target, label)| {
        let written = target.file.write_all_at(&label.bytes(), place(label));
        written.and_then(|()| target.file.sync_all()).map_err(|error| at(target, &error))
    });
    if written.is_err() {
        for (target, label) in all() {
            // The first error is the one to tell.
            let _ = target.file.write_all_at(&[0; SECTOR_BYTES as usize], place(label));
        }
    }
    written
}

fn told(options: &Create, writes: bool, creation: &Creation, made: &Made) -> String {
    let did = if writes { "made" } else { "would be made" };
    let (name, layout, kind, id) =
        (&creation.name, &creation.layout, made.kind.name(), creation.id);
    let mut text = format!("{name}: {layout}, {kind}, ID {id}, {did}\n");
    for (place, path) in options.members.iter().enumerate() {
        text.push_str(&format!("  member {place}  {}\n", path.display()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_for_sectors_of_one_size() {
        let of = |sizes: &[u64]| sector(sizes.iter().map(|size| Sectors(*size)));
        assert_eq!((of(&[1, 1]), of(&[8, 8, 8])), (Ok(Sectors(1)), Ok(Sectors(8))));
        assert!(of(&[8, 8, 1]).is_err_and(|why| why.contains("of 4096 and of 512 bytes")));
    }
}
