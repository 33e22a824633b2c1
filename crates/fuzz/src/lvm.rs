//! Physical volumes of LVM with a RAID volume on them.

use raidlab_core::Array;
use raidlab_metadata::lvm::{Device, Group, Member, Untold, Volume, look, parse};
use raidlab_metadata::md::{Allowed, Inspected, Role, assemble, inspect};

use crate::disk::{Disk, SECTOR};
use crate::script::Script;

/// Where the area of metadata begins, where its text begins in it, and its bytes.
const AREA: usize = 4096;
const TEXT: usize = 512;
const ROOM: usize = 8192;
/// The first sector of the first extent, sectors of an extent, and extents of a physical volume.
const START: usize = 32;
const EXTENT: usize = 16;
const EXTENTS: usize = 6;
/// Physical volumes, on which the members lie.
const COUNT: usize = 3;
/// The most changes to a text, and to a superblock.
const MOST_CHANGES: usize = 6;
/// What a byte of a text is changed to.
const LETTERS: &[u8] = b"0123456789\"{}[]=,# \\-\n\0\x1b\xff";
/// Types of volumes with level and layout of their superblocks.
const KINDS: [(&str, u32, u32); 6] = [
    ("raid5_ls", 5, 2),
    ("raid1", 1, 0),
    ("raid4", 5, 4),
    ("raid0_meta", 0, 0),
    ("raid5_n+RESHAPE", 5, 5),
    ("raid10", 10, 0x102),
];

fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0xf597_a6cf, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 }
        })
    })
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// The text of the group, as short as it may be.
fn text(kind: &str, seqno: usize) -> Vec<u8> {
    let mut text =
        format!("g {{\nid=\"G\"\nseqno={seqno}\nextent_size={EXTENT}\nphysical_volumes {{\n");
    for of in 0..COUNT {
        let id = format!("PVPV0{of}-PVPV-PVPV-PVPV-PVPV-PVPV-PVPVPV");
        text += &format!("p{of} {{\nid=\"{id}\"\npe_start={START}\npe_count={EXTENTS}\n}}\n");
    }
    text += "}\nlogical_volumes {\n";
    let plain = |name: &str, of: usize, from: usize, extents: usize| {
        format!(
            "{name}{of} {{\nid=\"{name}{of}\"\nsegment1 {{\nstart_extent=0\nextent_count={extents}\n\
             type=\"striped\"\nstripes=[\"p{of}\",{from}]\n}}\n}}\n"
        )
    };
    let lists: Vec<String> = (0..COUNT).map(|of| format!("\"m{of}\",\"i{of}\"")).collect();
    for of in 0..COUNT {
        text += &plain("i", of, 1, 2);
        text += &plain("m", of, 0, 1);
    }
    let extents = if kind == "raid1" { 2 } else { 3 };
    text += &format!(
        "v {{\nid=\"V\"\nstatus=[\"READ\"]\nsegment1 {{\nstart_extent=0\nextent_count={extents}\ntype=\"{kind}\"\n\
         device_count={COUNT}\nstripe_size=8\nraids=[{}]\n}}\n}}\n}}\n}}\n",
        lists.join(",")
    );
    text.into_bytes()
}

/// A physical volume with a text.
fn physical(of: usize, text: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; (START + EXTENTS * EXTENT) * SECTOR];
    put(&mut bytes, SECTOR, b"LABELONE");
    put(&mut bytes, SECTOR + 8, &[1]);
    put(&mut bytes, SECTOR + 20, &[32]);
    put(&mut bytes, SECTOR + 24, b"LVM2 001PVPV0?PVPVPVPVPVPVPVPVPVPVPVPVPV");
    bytes[SECTOR + 37] = b'0' + of as u8;
    let words = [START * SECTOR, 0, 0, 0, AREA, ROOM];
    for (n, word) in words.into_iter().enumerate() {
        put(&mut bytes, SECTOR + 72 + 8 * n, &(word as u64).to_le_bytes());
    }
    put(&mut bytes, AREA + 4, b" LVM2 x[5A%r0N*>\x01");
    for (n, word) in [AREA, ROOM, TEXT, text.len()].into_iter().enumerate() {
        put(&mut bytes, AREA + 24 + 8 * n, &(word as u64).to_le_bytes());
    }
    put(&mut bytes, AREA + 56, &checksum(text).to_le_bytes());
    put(&mut bytes, AREA + TEXT, text);
    bytes
}

/// Puts the checksums of label and area right.
fn seal(bytes: &mut [u8]) {
    let label = checksum(&bytes[SECTOR + 20..2 * SECTOR]);
    put(bytes, SECTOR + 16, &label.to_le_bytes());
    let area = checksum(&bytes[AREA + 4..AREA + SECTOR]);
    put(bytes, AREA, &area.to_le_bytes());
}

/// The superblock of a member, and its bitmap.
fn superblock(bytes: &mut [u8], of: usize, (level, layout): (u32, u32)) {
    let at = START * SECTOR;
    put(bytes, at, b"DmRd");
    let chunk = if level == 1 { 0 } else { 8 };
    let words = [
        (4, 1),
        (8, COUNT as u32),
        (12, of as u32),
        (16, 9),
        (48, level),
        (52, layout),
        (56, chunk),
    ];
    for (field, word) in words {
        put(bytes, at + field, &word.to_le_bytes());
    }
    put(bytes, at + 32, &[0xff; 16]);
    put(bytes, at + 4096, b"bitm\x04");
    put(bytes, at + 4096 + 24, &[9]);
    put(bytes, at + 4096 + 40, &[32]);
    put(bytes, at + 4096 + 53, &[16]);
}

fn device(script: &mut Script<'_>, of: usize, (kind, level, layout): (&str, u32, u32)) -> Vec<u8> {
    let mut text = text(kind, 5 + script.below(8) / 7);
    for _ in 0..script.below(MOST_CHANGES) / 2 {
        let at = script.below(text.len());
        text[at] = LETTERS[script.below(LETTERS.len())];
    }
    let mut bytes = physical(of, &text);
    superblock(&mut bytes, of, (level, layout));
    for _ in 0..script.below(MOST_CHANGES) {
        let at = match script.below(8) {
            0 => script.below(bytes.len()),
            1 => SECTOR + script.below(140),
            2 => AREA + script.below(80),
            3 => START * SECTOR + 4096 + script.below(300),
            _ => START * SECTOR + script.below(150),
        };
        bytes[at] = [0, 1, 9, 10, 0xff, script.byte()][script.below(6)];
    }
    if script.below(8) > 0 {
        seal(&mut bytes);
    }
    bytes.truncate(bytes.len() - script.below(bytes.len()) * usize::from(script.below(16) == 15));
    bytes
}

/// Physical volumes with this text, whatever it says of a volume that may be theirs.
fn group(text: &[u8]) {
    if text.len() > ROOM - TEXT {
        return;
    }
    let disk = |of| {
        let mut bytes = physical(of, text);
        superblock(&mut bytes, of, (5, 2));
        seal(&mut bytes);
        Disk(bytes)
    };
    let mut disks: Vec<Disk> = (0..COUNT).map(disk).collect();
    let Some(group) = look(&mut disks[0]).and_then(|seen| seen.group) else { return };
    volumes(&group, &mut disks, &Allowed::default());
}

/// Three physical volumes that have, or look as if they had, the members of a RAID volume, and a text of any bytes.
/// What is put in service is a member in its place, wholly on its device, and there are as many as the level needs.
/// Bytes that are a text are also the text of such devices.
pub fn lvm(data: &[u8]) {
    if let Ok(section) = parse(data) {
        assert_eq!(parse(data), Ok(section), "the same each time");
        group(data);
    }
    let mut script = Script::new(data);
    let kind = KINDS[script.below(KINDS.len())];
    let allowed = Allowed { dirty_degraded: script.flag(), ..Allowed::default() };
    let mut disks: Vec<Disk> = (0..COUNT).map(|of| Disk(device(&mut script, of, kind))).collect();
    let seen: Vec<_> = disks.iter_mut().map(|disk| look(disk)).collect();
    for (disk, seen) in disks.iter_mut().zip(&seen) {
        let found = inspect(disk);
        assert!(found.lvm.is_none() || found.lvm.as_deref() == seen.as_ref());
    }
    let groups = seen.iter().flatten().filter_map(|seen| seen.group.as_ref());
    let Some(newest) = groups.max_by_key(|group| group.seqno).cloned() else { return };
    volumes(&newest, &mut disks, &allowed);
}

fn volumes(group: &Group, disks: &mut [Disk], allowed: &Allowed) {
    for (_, volume) in group.volumes() {
        let Ok(volume) = volume else { continue };
        if let Ok(members) = members(&volume, disks) {
            judge(disks, &volume, &members, allowed);
        }
    }
}

fn members(volume: &Volume, disks: &mut [Disk]) -> Result<Vec<Member>, Untold> {
    let devices = disks.iter_mut().map(|disk| {
        let seen = look(disk).unwrap_or_default();
        Device { id: seen.id, seqno: seen.group.map(|group| group.seqno), source: disk }
    });
    let mut devices: Vec<_> = devices.collect();
    volume.members(&mut devices).map(|found| found.members)
}

fn judge(disks: &[Disk], volume: &Volume, members: &[Member], allowed: &Allowed) {
    for piece in members.iter().flat_map(|one| &one.pieces) {
        assert!(piece.given < disks.len());
    }
    let all: Vec<Inspected> = members.iter().map(|one| one.inspected.clone()).collect();
    let Ok(assembly) = assemble(&all, allowed) else { return };
    let array = Array::read_only(&assembly.config(), assembly.failed(), &[]);
    assert!(array.is_ok(), "{assembly:?}");
    let mut used = vec![false; all.len()];
    for (place, member) in (0..).zip(&assembly.places) {
        let Some(given) = member.given else { continue };
        assert!(!std::mem::replace(&mut used[given], true), "once");
        let one = all[given].superblock().expect("a whole superblock");
        assert_eq!((one.role(), members[given].place), (Role::Member(place), place));
        assert!(one.events.saturating_add(1) >= assembly.events && one.rebuilt_to().is_none());
        let end = member.data_offset.0.saturating_add(member.sectors.0);
        assert!(end <= all[given].sectors.0, "data lie on the device");
        assert!(member.sectors.0 >= volume.used, "as long as the volume needs");
    }
    assert_eq!(used.iter().filter(|used| !**used).count(), assembly.out.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the inputs begin with is whole: all members are in service.
    #[test]
    fn what_nothing_was_changed_of_is_put_together() {
        for kind in KINDS {
            let mut disks: Vec<Disk> =
                (0..COUNT).map(|of| Disk(device(&mut Script::new(&[1]), of, kind))).collect();
            disks.iter_mut().for_each(|disk| seal(&mut disk.0));
            let group = look(&mut disks[0]).and_then(|seen| seen.group).expect("a group");
            let (_, volume) = group.volumes().pop().expect("a volume");
            let members = members(&volume.expect("is read"), &mut disks).expect("are told of");
            let all: Vec<Inspected> = members.into_iter().map(|one| one.inspected).collect();
            let assembly = assemble(&all, &Allowed::default()).expect("all are there");
            assert!(assembly.missing().is_empty() && assembly.clean, "{kind:?}");
        }
    }
}
