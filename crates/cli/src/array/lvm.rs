//! RAID volumes of LVM: which of a volume group is meant, and what physical volumes carry.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use raidlab_core::layout::MOST_MEMBERS;
use raidlab_core::{Layout, Level, Sectors, Size};
use raidlab_metadata::lvm::{
    Device, DmSuperblock, Group, Member, Members, Membership, Older, Piece, Seen, Untold, Volume,
};
use raidlab_metadata::md::{ALL, Assembly, Inspected, Place};
use raidlab_metadata::{Source, printable};
use serde_json::{Value, json};

use super::args;
use super::disk::Disk;
use super::open::Found;
use super::stack::Part;
use crate::failure::Failure;
use crate::output;

type Named = (String, Result<Volume, String>);

/// Has physical volumes tell of a RAID volume of their group, as members of md's would. Where a device has a superblock
/// of md, or no group has a RAID volume, nothing is changed; nor where one has a label of GEOM that can be used, unless
/// a volume is asked for.
pub(super) fn choose(parts: Vec<Part>, options: &args::Members) -> Result<Vec<Part>, Failure> {
    let volume = options.volume.as_deref();
    let is_md = parts.iter().any(|part| part.inspected.superblock().is_some());
    let is_labelled = |part: &&Part| part.inspected.geom.is_some() && group(part).is_some();
    if let Some(part) = parts.iter().find(is_labelled).filter(|_| volume.is_none() && !is_md) {
        output::note(&format!(
            "note: {} has a GEOM label and is a physical volume of LVM, too: the label counts; --volume GROUP/VOLUME \
             reads a RAID volume of LVM",
            part.path.display()
        ));
        return Ok(parts);
    }
    let groups = if is_md { Vec::new() } else { groups(&parts, &options.without)? };
    let all: Vec<Named> = groups.iter().flat_map(|group| volumes(group)).collect();
    if volume.is_none() && all.is_empty() {
        return Ok(parts);
    }
    if groups.is_empty() {
        let what = "--volume: none of the devices is of a DDF container, or has metadata of an LVM volume group";
        return Err(Failure::input(what));
    }
    let chosen = one(all, &groups, volume)?;
    members(parts, &chosen, &options.without)
}

/// The group that a device is of, as the newest text on it says.
fn group(part: &Part) -> Option<&Group> {
    part.inspected.lvm.as_ref()?.group.as_ref()
}

/// The groups that devices are of, each as the newest of its devices has it. Those that are left out have a say only
/// where no other has.
fn groups<'a>(parts: &'a [Part], without: &[PathBuf]) -> Result<Vec<&'a Group>, Failure> {
    let mut groups: Vec<(&Path, &Group)> = Vec::new();
    let texts = || parts.iter().filter_map(|part| Some((part.path.as_path(), group(part)?)));
    let is_left_out = |path: &Path| without.iter().any(|one| one == path);
    let has_others = texts().any(|(path, _)| !is_left_out(path));
    let texts = || texts().filter(|(path, _)| !(has_others && is_left_out(path)));
    // Old ones may differ from each other as they like.
    let is_newest = |group: &Group| {
        texts().all(|(_, other)| other.id != group.id || other.seqno <= group.seqno)
    };
    for (path, group) in texts().filter(|(_, group)| is_newest(group)) {
        let Some((first, known)) = groups.iter().find(|(_, known)| known.id == group.id) else {
            groups.push((path, group));
            continue;
        };
        if group.checksum != known.checksum {
            return Err(Failure::failed(format!(
                "{} and {} have different metadata of the volume group {} with seqno {}: two halves each went on \
                 without the other; give the devices of one",
                first.display(),
                path.display(),
                group.shown_name(),
                group.seqno
            )));
        }
    }
    for (path, group) in texts() {
        let newest = groups.iter().find(|(_, known)| known.id == group.id);
        if let Some((_, newest)) = newest.filter(|(_, newest)| newest.seqno > group.seqno) {
            output::note(&format!(
                "note: {}: its metadata of the volume group {} are older (seqno {}, the newest {}) and not used",
                path.display(),
                group.shown_name(),
                group.seqno,
                newest.seqno
            ));
        }
    }
    Ok(groups.into_iter().map(|(_, group)| group).collect())
}

/// RAID volumes by the names of group and volume.
fn volumes(group: &Group) -> Vec<Named> {
    let named = |(name, found)| (format!("{}/{name}", group.name), found);
    group.volumes().into_iter().map(named).collect()
}

/// The volume of this name, or the only one.
fn one(all: Vec<Named>, groups: &[&Group], volume: Option<&str>) -> Result<Volume, Failure> {
    let shown = |name: &str| printable(name.as_bytes());
    let listed: Vec<String> = all.iter().map(|(name, _)| shown(name)).collect();
    let listed = if listed.is_empty() { "none".to_owned() } else { listed.join(", ") };
    let is_meant = |(name, _): &Named| {
        let own = name.split_once('/').map_or(name.as_str(), |(_, own)| own);
        volume.is_none_or(|volume| [name, own].contains(&volume))
    };
    let mut meant: Vec<Named> = all.into_iter().filter(is_meant).collect();
    match (meant.pop(), volume) {
        (Some((name, found)), _) if meant.is_empty() => {
            found.map_err(|why| Failure::failed(format!("volume {}: {why}", shown(&name))))
        }
        (Some(_), None) => {
            let what = "there are several RAID volumes of LVM, say which with --volume:";
            Err(Failure::input(format!("{what} {listed}")))
        }
        (Some(_), Some(volume)) => {
            let what = "--volume: several volume groups have a volume";
            Err(Failure::input(format!("{what} {}: give GROUP/VOLUME of {listed}", shown(volume))))
        }
        (None, _) => {
            let what = no_such_volume(groups, volume.unwrap_or_default());
            Err(Failure::input(format!("--volume: {what}; RAID volumes: {listed}")))
        }
    }
}

/// Why a name is that of no RAID volume.
fn no_such_volume(groups: &[&Group], volume: &str) -> String {
    let shown = |name: &str| printable(name.as_bytes());
    let (of, own) = match volume.split_once('/') {
        Some((of, own)) => (Some(of), own),
        None => (None, volume),
    };
    let is_meant = |group: &&&Group| of.is_none_or(|of| group.name == of);
    if let Some(of) = of.filter(|_| !groups.iter().any(|group| is_meant(&group))) {
        return format!("none of the devices has metadata of a volume group {}", shown(of));
    }
    let mut meant = groups.iter().filter(is_meant);
    match meant.find_map(|group| group.logical.get(own)?.segments.first()) {
        Some(one) => format!(
            "the volume {} is of type {}; of LVM only RAID volumes are read",
            shown(volume),
            shown(&one.kind)
        ),
        None => format!("the volume groups have no volume {}", shown(volume)),
    }
}

/// The members of a volume in the places of the devices that they begin on, and what else was given. Devices that are
/// left out have no part in any.
fn members(parts: Vec<Part>, volume: &Volume, without: &[PathBuf]) -> Result<Vec<Part>, Failure> {
    let is_physical = |part: &&Part| {
        let is_whole = part.inspected.lvm.as_ref().is_some_and(|seen| seen.is_whole());
        is_whole && !without.contains(&part.path)
    };
    let physical: Vec<&Part> = parts.iter().filter(is_physical).collect();
    let Members { mut members, older } = looked(volume, &physical)?;
    let used: Vec<PathBuf> = members
        .iter()
        .flat_map(|one| one.pieces.iter().map(|piece| physical[piece.given].path.clone()))
        .collect();
    let begins = |one: &Member, path: &Path| {
        one.pieces.first().is_some_and(|piece| physical[piece.given].path == path)
    };
    let mut all = Vec::new();
    for part in &parts {
        let (here, others) = members.into_iter().partition(|one| begins(one, &part.path));
        members = others;
        let here: Vec<Member> = here;
        for one in here {
            all.push(member(one, &physical)?);
        }
        let copy = older.iter().find(|one| physical[one.given].path == part.path);
        match copy {
            Some(copy) => all.push(older_copy(part, copy, &physical[copy.newer].path)),
            None if !used.contains(&part.path) => all.push(part.clone()),
            None => {}
        }
    }
    Ok(all)
}

/// A device of which another that was given is a newer copy.
fn older_copy(part: &Part, copy: &Older, newer: &Path) -> Part {
    let why = format!("an older copy of {} ({})", newer.display(), copy.what);
    let told = Membership { why: Some(why), ..Membership::default() };
    let inspected = Inspected {
        sectors: part.inspected.sectors,
        of_volume: Some(Box::new(told)),
        ..Inspected::default()
    };
    Part { path: part.path.clone(), inspected, lower: None }
}

/// What stands on physical volumes of the members of a volume.
fn looked(volume: &Volume, physical: &[&Part]) -> Result<Members, Failure> {
    let open = |part: &&Part| Disk::open(&part.path);
    let mut disks = physical.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let device = |(part, disk): (&&Part, _)| {
        let is_of = |group: &&Group| volume.name.starts_with(&format!("{}/", group.name));
        let seqno = group(part).filter(is_of).map(|group| group.seqno);
        let id = part.inspected.lvm.as_ref().map(|seen| seen.id.clone()).unwrap_or_default();
        Device { id, seqno, source: disk }
    };
    let disks = disks.iter_mut().map(|disk| disk as &mut dyn Source);
    let mut devices: Vec<_> = physical.iter().zip(disks).map(device).collect();
    volume.members(&mut devices).map_err(|untold| {
        let why = match untold {
            Untold::Why(why) => why,
            Untold::Copies(given) => {
                let path = |given: &usize| physical[*given].path.display().to_string();
                let paths: Vec<_> = given.iter().map(path).collect();
                format!(
                    "{} are copies of one physical volume, and nothing tells which of them is the newest; leave the \
                     others out with --without",
                    paths.join(" and ")
                )
            }
        };
        Failure::failed(format!("volume {}: {why}", volume.shown_name()))
    })
}

/// A member, which is the range of a device or several such ranges, one behind the other.
fn member(one: Member, physical: &[&Part]) -> Result<Part, Failure> {
    let Member { inspected, pieces, .. } = one;
    if let [piece] = &pieces[..] {
        let path = physical[piece.given].path.clone();
        return Ok(Part { path, inspected, lower: None });
    }
    let name = inspected.of_volume.as_ref().map_or_else(String::new, |told| told.image.clone());
    if pieces.len() > usize::from(MOST_MEMBERS) {
        let what =
            format!("{name} lies in {} ranges, at most {MOST_MEMBERS} are read", pieces.len());
        return Err(Failure::failed(what));
    }
    let lower = Some(joined(&name, &pieces, physical));
    Ok(Part { path: PathBuf::from(name), inspected, lower })
}

/// Ranges of devices as one.
fn joined(name: &str, pieces: &[Piece], physical: &[&Part]) -> Found {
    let mut devices: Vec<usize> = pieces.iter().map(|piece| piece.given).collect();
    devices.sort_unstable();
    devices.dedup();
    let place = |piece: &Piece| Place {
        given: devices.iter().position(|device| *device == piece.given),
        data_offset: Sectors(piece.at.0),
        sectors: piece.sectors,
        bad: Vec::new(),
    };
    let layout = Layout::new(Level::Linear, pieces.len() as u16).with_chunk(Sectors::ZERO);
    let assembly = Assembly {
        layout,
        array: [0; 16],
        name: name.to_owned(),
        events: 0,
        clean: true,
        dirty_bits: None,
        places: pieces.iter().map(place).collect(),
        out: Vec::new(),
        last: [0; 2],
        notes: Vec::new(),
        block: 1,
        geom: None,
    };
    let of = |device: &usize| Inspected {
        sectors: physical[*device].inspected.sectors,
        ..Inspected::default()
    };
    Found {
        paths: devices.iter().map(|device| physical[*device].path.clone()).collect(),
        inspected: devices.iter().map(of).collect(),
        decision: Ok(assembly),
        not_used: Vec::new(),
        lower: vec![None; devices.len()],
        beside: Vec::new(),
        is_member: true,
    }
}

/// What the superblock of a member says, in words.
fn state(told: &Membership) -> String {
    let mut words = Vec::new();
    if let Some(one) = &told.superblock {
        words.push(format!("events {}", one.events));
        if one.synced_to != ALL {
            words.push(format!("redundancy made up to sector {}", one.synced_to));
        }
        if !one.is_rebuilt() {
            words.push(format!("being rebuilt, good up to sector {}", one.rebuilt_to));
        }
        let failed: Vec<_> = failed(one).map(|place| place.to_string()).collect();
        if !failed.is_empty() {
            words.push(format!("without member {}", failed.join(", ")));
        }
    }
    words.extend(told.why.clone());
    if words.is_empty() { "no superblock, as usual of raid0".into() } else { words.join("; ") }
}

fn failed(one: &DmSuperblock) -> impl Iterator<Item = usize> {
    (0..one.members as usize).filter(|place| one.has_failed(*place)).take(256)
}

/// A volume's members on one device.
fn here(volume: &Volume, path: &Path, seen: &Seen) -> Vec<Member> {
    let Ok(mut disk) = Disk::open(path) else { return Vec::new() };
    let device = Device { id: seen.id.clone(), seqno: None, source: &mut disk };
    volume.members(&mut [device]).map(|told| told.members).unwrap_or_default()
}

/// Where an image lies, in words: physical volumes by their names in the group.
fn lies(group: &Group, volume: &Volume, place: usize) -> String {
    let name = |id: &str| {
        let found = group.physical.iter().find(|(_, one)| one.id == id);
        found.map_or_else(String::new, |(name, _)| printable(name.as_bytes()))
    };
    let mut names: Vec<String> =
        volume.images[place].data.iter().map(|part| name(&part.on)).collect();
    names.dedup();
    if names.is_empty() { "lost for good".into() } else { format!("on {}", names.join(", ")) }
}

/// What `examine` prints of a device; nothing where nothing of it can be used.
pub(super) fn text(path: &Path, seen: &Seen) -> Option<String> {
    if !seen.is_whole() {
        return None;
    }
    let mut text = format!("{}:\n", path.display());
    let mut line = |name: &str, value: String| {
        writeln!(text, "{name:>16} : {value}").expect("a string takes it");
    };
    line("Magic", "LABELONE".into());
    line("PV UUID", printable(seen.id.as_bytes()));
    for damaged in &seen.damaged {
        line("Damaged", damaged.to_string());
    }
    let Some(group) = &seen.group else {
        let what = match seen.areas {
            0 => "none on this device",
            areas if areas == seen.ignored => "ignored on this device (pvchange --metadataignore)",
            _ => "none, or none that can be used",
        };
        line("Metadata", what.into());
        return Some(text + "\n");
    };
    line("VG Name", group.shown_name());
    line("VG UUID", printable(group.id.as_bytes()));
    line("Seqno", group.seqno.to_string());
    line("Extent Size", Size(group.extent.saturating_mul(512)).to_string());
    line("PVs", group.physical.len().to_string());
    for (name, one) in &group.physical {
        let own = if one.id == seen.id { " (this one)" } else { "" };
        let missing = if one.is_missing { ", was missing" } else { "" };
        let [name, id, device] =
            [name, &one.id, &one.device].map(|text| printable(text.as_bytes()));
        line("PV", format!("{name} {id}{own}, last {device}{missing}"));
    }
    let volumes = group.volumes();
    line("RAID Volumes", volumes.len().to_string());
    for (name, found) in volumes {
        line("LV Name", printable(name.as_bytes()));
        match found {
            Ok(volume) => described(&mut line, group, &volume, &here(&volume, path, seen)),
            Err(why) => line("Not read", why),
        }
    }
    Some(text + "\n")
}

/// The lines of a volume.
fn described(line: &mut impl FnMut(&str, String), group: &Group, volume: &Volume, here: &[Member]) {
    line("LV UUID", printable(volume.id.as_bytes()));
    line("Type", volume.kind.clone());
    line("Members", volume.images.len().to_string());
    if volume.chunk > 0 {
        line("Stripes", volume.data_members().to_string());
        line("Stripe Size", Size(volume.chunk * 512).to_string());
    }
    line("Size", Size(volume.sectors.saturating_mul(512)).to_string());
    if volume.is_not_synced {
        line("Synchronised", "never (made with --nosync)".into());
    }
    for (place, image) in volume.images.iter().enumerate() {
        let name = printable(image.name.as_bytes());
        let own = here.iter().find(|one| usize::from(one.place) == place);
        let state = own.and_then(|one| one.inspected.of_volume.as_deref()).map(state);
        let state = state.map_or_else(String::new, |state| format!(": {state}"));
        line("Member", format!("{place} {name}, {}{state}", lies(group, volume, place)));
    }
}

/// The same as JSON.
pub(super) fn as_json(path: &Path, seen: &Seen) -> Value {
    let damaged = seen.damaged.iter().map(ToString::to_string);
    json!({
        "lvm": {
            "physical_volume": printable(seen.id.as_bytes()),
            "damaged": damaged.collect::<Value>(),
            "group": seen.group.as_ref().map(|group| group_as_json(path, seen, group)),
        },
    })
}

fn group_as_json(path: &Path, seen: &Seen, group: &Group) -> Value {
    let physical = group.physical.iter().map(|(name, one)| {
        json!({
            "name": printable(name.as_bytes()),
            "uuid": printable(one.id.as_bytes()),
            "device": printable(one.device.as_bytes()),
            "this": one.id == seen.id,
            "missing": one.is_missing,
        })
    });
    let volume = |(name, found): Named| {
        let name = printable(name.as_bytes());
        match found {
            Ok(volume) => volume_as_json(&name, group, &volume, &here(&volume, path, seen)),
            Err(why) => json!({ "name": name, "not_read": why }),
        }
    };
    json!({
        "name": group.shown_name(),
        "uuid": printable(group.id.as_bytes()),
        "seqno": group.seqno,
        "extent_sectors": group.extent,
        "physical_volumes": physical.collect::<Value>(),
        "raid_volumes": group.volumes().into_iter().map(volume).collect::<Value>(),
    })
}

fn volume_as_json(name: &str, group: &Group, volume: &Volume, here: &[Member]) -> Value {
    let member = |(place, image): (usize, &raidlab_metadata::lvm::Image)| {
        let own = here.iter().find(|one| usize::from(one.place) == place);
        let told = own.and_then(|one| one.inspected.of_volume.as_deref());
        let superblock = told.and_then(|told| told.superblock.as_ref());
        json!({
            "member": place,
            "name": printable(image.name.as_bytes()),
            "lies": lies(group, volume, place),
            "events": superblock.map(|one| one.events),
            "rebuilt_to_sectors": superblock.filter(|one| !one.is_rebuilt()).map(|one| one.rebuilt_to),
            "synced_to_sectors": superblock.filter(|one| one.synced_to != ALL).map(|one| one.synced_to),
            "failed": superblock.map(|one| failed(one).collect::<Value>()),
            "reason": told.and_then(|told| told.why.clone()),
        })
    };
    json!({
        "name": name,
        "uuid": printable(volume.id.as_bytes()),
        "type": volume.kind,
        "members": volume.images.len(),
        "stripes": volume.data_members(),
        "stripe_sectors": volume.chunk,
        "bytes": volume.sectors.saturating_mul(512),
        "synchronised": !volume.is_not_synced,
        "images": volume.images.iter().enumerate().map(member).collect::<Value>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(path: &str, seqno: u64, checksum: u32) -> Part {
        let group = Group {
            name: "vg".into(),
            id: "GROUP".into(),
            seqno,
            checksum,
            extent: 8,
            physical: Default::default(),
            logical: Default::default(),
        };
        let seen = Seen { id: path.into(), group: Some(group), ..Seen::default() };
        let inspected = Inspected { lvm: Some(Box::new(seen)), ..Inspected::default() };
        Part { path: path.into(), inspected, lower: None }
    }

    /// Whatever the order, old texts may differ, those with the highest `seqno` may not.
    #[test]
    fn the_newest_texts_alone_must_be_the_same() {
        let texts = [part("a", 5, 1), part("b", 5, 2), part("c", 7, 3), part("d", 7, 4)];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let parts = order.map(|one| texts[one].clone());
            let found = groups(&parts, &[]).expect("the newest are the same");
            assert_eq!(found.iter().map(|group| group.seqno).collect::<Vec<_>>(), [7]);
            let [mut old, newest, other] = [0, 2, 3].map(|one| texts[one].clone());
            old.path = "old".into();
            let parts = order.map(|one| [&old, &newest, &other][one].clone());
            assert!(groups(&parts, &[]).is_err(), "two halves");
            // One half is left out.
            let found = groups(&parts, &["d".into()]).expect("the newest are the same");
            assert_eq!(found.iter().map(|group| group.checksum).collect::<Vec<_>>(), [3]);
        }
        // Where all are left out they have a say nevertheless.
        let all: Vec<PathBuf> = ["a", "b", "c"].map(PathBuf::from).into();
        assert_eq!(groups(&texts[..3], &all).expect("the newest is one")[0].seqno, 7);
    }
}
