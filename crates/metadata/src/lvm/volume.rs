//! The RAID volumes of a group, by its text.

use super::group::{Extent, Group, Logical, Segment};
use super::superblock::MOST;
use super::text::Node;
use crate::printable;

/// Types of volumes, with level and layout as dm-raid has them; raid10 by its copies.
const KINDS: [(&str, (i32, u32)); 22] = [
    ("raid0", (0, 0)),
    ("raid0_meta", (0, 0)),
    ("raid1", (1, 0)),
    // Parity on the first member.
    ("raid4", (5, 4)),
    ("raid5", (5, 2)),
    ("raid5_la", (5, 0)),
    ("raid5_ra", (5, 1)),
    ("raid5_ls", (5, 2)),
    ("raid5_rs", (5, 3)),
    ("raid5_n", (5, 5)),
    ("raid6", (6, 8)),
    ("raid6_zr", (6, 8)),
    ("raid6_nr", (6, 9)),
    ("raid6_nc", (6, 10)),
    ("raid6_la_6", (6, 16)),
    ("raid6_ra_6", (6, 17)),
    ("raid6_ls_6", (6, 18)),
    ("raid6_rs_6", (6, 19)),
    ("raid6_n_6", (6, 5)),
    ("raid6_0_6", (6, 20)),
    ("raid10", (10, 0x100)),
    ("raid10_near", (10, 0x100)),
];

/// Flags of volumes that change nothing of what is read.
const HARMLESS: [&str; 8] = [
    "READ",
    "WRITE",
    "VISIBLE",
    "FIXED_MINOR",
    "ACTIVATION_SKIP",
    "NOAUTOACTIVATE",
    "LOCKED",
    "WRITEMOSTLY",
];

/// What stands in the way of a volume whose shape is being changed.
pub(super) const RESHAPE: &str = "a reshape of it is under way or was interrupted; LVM goes on with it when the \
                                  volume is activated";

/// A member of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its name.
    pub name: String,
    /// Its identity.
    pub id: String,
    /// Where its data lie; nowhere where they were lost for good.
    pub data: Vec<Extent>,
    /// Where its superblock and bitmap lie; nowhere for raid0 without any.
    pub metadata: Vec<Extent>,
    /// Nothing on it may be believed: it is to be rebuilt.
    pub is_to_be_rebuilt: bool,
    /// It is read last.
    pub is_write_mostly: bool,
}

/// A RAID volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Its group and its own name, with a slash between them.
    pub name: String,
    /// Its identity.
    pub id: String,
    /// Its type, as LVM names it.
    pub kind: String,
    /// As dm-raid counts levels.
    pub level: i32,
    /// As dm-raid has it for the level.
    pub layout: u32,
    /// Sectors of a chunk; 0 for levels without.
    pub chunk: u64,
    /// Sectors of the volume.
    pub sectors: u64,
    /// Sectors used of each member.
    pub used: u64,
    /// Its redundancy was never made.
    pub is_not_synced: bool,
    /// It has superblocks.
    pub has_metadata: bool,
    /// How often its group was changed.
    pub seqno: u64,
    /// Its members in order.
    pub images: Vec<Image>,
}

impl Volume {
    /// Its group and its own name, safe to print.
    pub fn shown_name(&self) -> String {
        printable(self.name.as_bytes())
    }

    /// How many members have data of their own.
    pub const fn data_members(&self) -> u64 {
        data_members(self.images.len() as u64, self.level, self.layout)
    }
}

const fn data_members(members: u64, level: i32, layout: u32) -> u64 {
    match level {
        0 | 4..=6 => members.saturating_sub(parity(level)),
        10 => members / copies(layout),
        _ => 1,
    }
}

/// Members of a stripe that have parity.
const fn parity(level: i32) -> u64 {
    match level {
        4 | 5 => 1,
        6 => 2,
        _ => 0,
    }
}

/// Sectors that a volume of so many has of each member; `None` where these are not the same of all, in whole chunks.
fn used(sectors: u64, chunk: u64, members: u64, (level, layout): (i32, u32)) -> Option<u64> {
    let (sectors, over) = match level {
        // Copies lie on any number of members.
        10 => (sectors.checked_mul(copies(layout))?, members),
        _ => (sectors, data_members(members, level, layout)),
    };
    let is_whole = over > 0 && sectors.is_multiple_of(over);
    let used = sectors.checked_div(over).filter(|_| is_whole)?;
    (chunk == 0 || used.is_multiple_of(chunk)).then_some(used)
}

const fn copies(layout: u32) -> u64 {
    if layout & 0xff == 0 { 1 } else { (layout & 0xff) as u64 }
}

impl Group {
    /// Its RAID volumes by name, each with why it cannot be read where that is so. Volumes of other types are not among
    /// them, nor is what pvmove makes while it moves extents.
    pub fn volumes(&self) -> Vec<(String, Result<Volume, String>)> {
        let is_raid = |one: &Segment| one.kind.starts_with("raid") || one.plain_kind() == "mirror";
        let raid = self
            .logical
            .iter()
            .filter(|(_, one)| !one.is_pvmove() && one.segments.first().is_some_and(is_raid));
        raid.map(|(name, one)| (name.clone(), self.volume(name, one))).collect()
    }

    fn volume(&self, name: &str, one: &Logical) -> Result<Volume, String> {
        let [segment] = &one.segments[..] else {
            return Err("it consists of several segments, which RAID volumes do not".into());
        };
        self.above(name)?;
        let (level, layout) = kind(segment)?;
        let is_not_synced = one.flags.iter().any(|flag| flag == "NOTSYNCED");
        flags(&one.flags, &["NOTSYNCED"])?;
        let images = self.images(segment)?;
        let members = images.len() as u64;
        let chunk = if level == 1 { 0 } else { segment.said.number("stripe_size").unwrap_or(0) };
        // Room that a change of shape needed is counted in its length: of each member, but as many as have parity.
        let with_room = members.saturating_sub(parity(level));
        let room = segment.said.number("reshape_count").unwrap_or(0).checked_mul(with_room);
        let extents = room.and_then(|room| segment.extents.checked_sub(room));
        let sectors =
            extents.and_then(|extents| extents.checked_mul(self.extent)).filter(|all| *all > 0);
        let used = sectors.and_then(|all| used(all, chunk, members, (level, layout)));
        let is_shape = level == 1 || (chunk > 0 && chunk <= u64::from(u32::MAX));
        let (Some(sectors), Some(used), true) = (sectors, used, is_shape) else {
            return Err("its members, chunk or length cannot be".into());
        };
        let is_short = |one: &Image| {
            let there: u64 = one.data.iter().map(|part| part.sectors).sum();
            !one.data.is_empty() && there < used
        };
        if let Some(short) = images.iter().find(|one| is_short(one)) {
            let name = printable(short.name.as_bytes());
            return Err(format!("{name} is shorter than a member of it must be"));
        }
        Ok(Volume {
            name: format!("{}/{name}", self.name),
            id: one.id.clone(),
            kind: segment.plain_kind().to_owned(),
            level,
            layout,
            chunk,
            sectors,
            used,
            is_not_synced,
            has_metadata: segment.plain_kind() != "raid0",
            seqno: self.seqno,
            images,
        })
    }

    /// Whether what a volume holds is elsewhere, too, or in part: as with a cache above it.
    fn above(&self, name: &str) -> Result<(), String> {
        for (other, one) in &self.logical {
            for segment in &one.segments {
                let said = &segment.said;
                let is_origin =
                    ["origin", "external_origin"].iter().any(|key| said.text(key) == Some(name));
                let other = printable(other.as_bytes());
                match segment.plain_kind() {
                    "cache" | "writecache" if is_origin => {
                        return Err(format!(
                            "it lies below a cache ({other}), which may hold what it does not"
                        ));
                    }
                    "snapshot" if is_origin && said.text("merging_store").is_some() => {
                        return Err(format!("a snapshot ({other}) is being merged into it"));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn images(&self, segment: &Segment) -> Result<Vec<Image>, String> {
        let has_metadata = segment.plain_kind() != "raid0";
        let list = segment.said.list(if has_metadata { "raids" } else { "raid0_lvs" });
        let name = |node: &&Node| match node {
            Node::Text(name) => Some(name.clone()),
            _ => None,
        };
        let names: Vec<String> = list.iter().filter_map(name).collect();
        let said = segment.said.number("device_count").or(segment.said.number("stripe_count"));
        let each = if has_metadata { 2 } else { 1 };
        let count = names.len() / each;
        if names.len() != list.len()
            || !names.len().is_multiple_of(each)
            || said != Some(count as u64)
            || count == 0
            || count > MOST as usize
        {
            return Err("the list of what it is made of cannot be".into());
        }
        let image = |pair: &[String]| {
            let (name, metadata) = (&pair[each - 1], has_metadata.then(|| &pair[0]));
            let own = self.logical.get(name);
            let of: &[String] = own.map_or(&[], |own| &own.flags);
            flags(of, &["REBUILD"])?;
            let data = self.extents(name)?;
            let metadata = metadata.map(|name| self.extents(name)).transpose()?;
            let is_lost = data.is_none() || metadata == Some(None);
            let has = |flag: &str| of.iter().any(|one| one == flag);
            Ok(Image {
                name: name.clone(),
                id: own.map_or_else(String::new, |own| own.id.clone()),
                data: data.filter(|_| !is_lost).unwrap_or_default(),
                metadata: metadata.flatten().filter(|_| !is_lost).unwrap_or_default(),
                is_to_be_rebuilt: has("REBUILD"),
                is_write_mostly: has("WRITEMOSTLY"),
            })
        };
        names.chunks_exact(each).map(image).collect()
    }
}

/// Level and layout of a type.
fn kind(segment: &Segment) -> Result<(i32, u32), String> {
    let known = KINDS.iter().find(|(kind, _)| *kind == segment.plain_kind());
    let (level, layout) = known.map(|(_, shape)| *shape).ok_or_else(|| {
        format!(
            "volumes of type {} are not read in this version",
            printable(segment.kind.as_bytes())
        )
    })?;
    let flags: Vec<String> = segment.flags().map(str::to_owned).collect();
    // Both stay when the change of shape has ended.
    self::flags(&flags, &["RESHAPE", "RESHAPE_DATA_OFFSET"])?;
    if level != 10 {
        return Ok((level, layout));
    }
    // LVM writes 1 when it has changed the shape, and takes it for 2.
    match segment.said.number("data_copies").map_or(2, |copies| copies.max(2)) {
        copies @ 2..=255 => Ok((level, layout | copies as u32)),
        _ => Err("the number of its copies cannot be".into()),
    }
}

/// Whether all flags are known to change nothing of what is read, or are looked at elsewhere.
fn flags(all: &[String], besides: &[&str]) -> Result<(), String> {
    let is_known =
        |flag: &&String| HARMLESS.contains(&flag.as_str()) || besides.contains(&flag.as_str());
    match all.iter().find(|flag| !is_known(flag)) {
        Some(flag) if flag.contains("RESHAPE") => Err(RESHAPE.into()),
        Some(flag) => {
            Err(format!("it is flagged {}, which is not known here", printable(flag.as_bytes())))
        }
        None => Ok(()),
    }
}
