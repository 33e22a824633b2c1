//! A volume group, by its text: physical volumes, logical volumes, and where these lie.

use std::collections::BTreeMap;

use raidlab_core::SECTOR_BYTES;

use super::text::{Node, Section};
use crate::printable;

/// Sectors that can be counted in bytes, too.
const MOST_SECTORS: u64 = u64::MAX / SECTOR_BYTES;

/// A physical volume of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Physical {
    /// Its identity.
    pub id: String,
    /// Where it was last, as a hint.
    pub device: String,
    /// It was missing when the group was changed last.
    pub is_missing: bool,
    /// The sector that its first extent begins at.
    pub start: u64,
    /// How many extents it has.
    pub extents: u64,
}

/// A part of a logical volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its type, as LVM names it.
    pub kind: String,
    /// Extents from the start of the volume.
    pub start: u64,
    /// How many it has.
    pub extents: u64,
    /// What else is said of it.
    pub(super) said: Section,
}

impl Segment {
    /// The type without the flags that may follow it.
    pub fn plain_kind(&self) -> &str {
        self.kind.split('+').next().unwrap_or_default()
    }

    /// These flags.
    pub(super) fn flags(&self) -> impl Iterator<Item = &str> {
        self.kind.split('+').skip(1)
    }
}

/// A logical volume, or one that such a volume is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logical {
    /// Its identity.
    pub id: String,
    /// Its states and flags.
    pub flags: Vec<String>,
    /// Its parts in order.
    pub segments: Vec<Segment>,
}

/// A volume group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name, as it stands there.
    pub name: String,
    /// Its identity.
    pub id: String,
    /// Grows with each change.
    pub seqno: u64,
    /// The checksum of the text.
    pub checksum: u32,
    /// Sectors of an extent.
    pub extent: u64,
    /// Physical volumes, by the names that segments have for them.
    pub physical: BTreeMap<String, Physical>,
    /// Logical volumes by name.
    pub logical: BTreeMap<String, Logical>,
}

/// A range of a physical volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The identity of the physical volume.
    pub on: String,
    /// Its first sector there.
    pub at: u64,
    /// Sectors.
    pub sectors: u64,
}

impl Group {
    /// What a text says, whose checksum this is; or what it lacks.
    pub(super) fn new(text: &Section, checksum: u32) -> Result<Self, String> {
        let is_group = |one: &(&str, &Section)| one.1.number("seqno").is_some();
        let (name, said) = text.sections().find(is_group).ok_or("volume group")?;
        let section = |section: &str| said.section(section).into_iter().flat_map(Section::sections);
        let physical = section("physical_volumes").map(|(name, one)| {
            let lacks = |what: &str| format!("{what} of {}", printable(name.as_bytes()));
            let physical = Physical {
                id: one.text("id").ok_or_else(|| lacks("identity"))?.to_owned(),
                device: one.text("device").unwrap_or("").to_owned(),
                is_missing: one.texts("flags").contains(&"MISSING"),
                start: one.number("pe_start").ok_or_else(|| lacks("pe_start"))?,
                extents: one.number("pe_count").ok_or_else(|| lacks("pe_count"))?,
            };
            Ok((name.to_owned(), physical))
        });
        let physical = physical.collect::<Result<_, String>>()?;
        let logical = section("logical_volumes").map(|(name, one)| {
            let logical = Logical::new(one);
            let lacks = |what| format!("{what} of {}", printable(name.as_bytes()));
            logical.map(|logical| (name.to_owned(), logical)).map_err(lacks)
        });
        let logical = logical.collect::<Result<_, String>>()?;
        let extent = said.number("extent_size").filter(|size| *size > 0);
        Ok(Self {
            name: name.to_owned(),
            id: said.text("id").ok_or("identity")?.to_owned(),
            seqno: said.number("seqno").unwrap_or_default(),
            checksum,
            extent: extent.ok_or("size of an extent")?,
            physical,
            logical,
        })
    }

    /// Its name, safe to print.
    pub fn shown_name(&self) -> String {
        printable(self.name.as_bytes())
    }

    /// Where a volume lies that is nothing but ranges; `None` of one whose ranges were lost for good.
    ///
    /// # Errors
    /// What else it is, or what of it cannot be.
    pub(super) fn extents(&self, name: &str) -> Result<Option<Vec<Extent>>, String> {
        let shown = printable(name.as_bytes());
        let logical = self.logical.get(name).ok_or_else(|| format!("the group has no {shown}"))?;
        let mut all: Vec<Extent> = Vec::new();
        let mut next = 0_u64;
        for one in &logical.segments {
            let kind = printable(one.kind.as_bytes());
            let is_plain = matches!(&*one.kind, "striped" | "linear")
                && one.said.number("stripe_count").is_none_or(|count| count == 1);
            if one.kind == "error" {
                return Ok(None);
            }
            if !is_plain {
                return Err(format!("{shown}, which it is made of, is of type {kind}"));
            }
            let wrong = || format!("the ranges of {shown} cannot be");
            let stripes = one.said.list("stripes");
            let (Some(Node::Text(on)), Some(Node::Number(from)), 2) =
                (stripes.first(), stripes.get(1), stripes.len())
            else {
                return Err(wrong());
            };
            if self.logical.get(on).is_some_and(Logical::is_pvmove) {
                return Err(under_way(&shown, on));
            }
            let physical = self.physical.get(on).ok_or_else(wrong)?;
            let from = u64::try_from(*from).map_err(|_| wrong())?;
            let end = from.checked_add(one.extents).filter(|end| *end <= physical.extents);
            if one.start != next || end.is_none() || one.extents == 0 {
                return Err(wrong());
            }
            next = next.checked_add(one.extents).ok_or_else(wrong)?;
            let sectors = |extents: u64| extents.checked_mul(self.extent);
            let at = sectors(from).and_then(|from| from.checked_add(physical.start));
            let (at, sectors) = at.zip(sectors(one.extents)).ok_or_else(wrong)?;
            // No range, nor all of them together, may reach to where numbers of bytes end.
            let all_sectors = next.checked_mul(self.extent);
            let ends = [at.checked_add(sectors), all_sectors];
            if !ends.into_iter().all(|end| end.is_some_and(|end| end <= MOST_SECTORS)) {
                return Err(wrong());
            }
            match all.last_mut() {
                Some(last) if last.on == physical.id && last.at + last.sectors == at => {
                    last.sectors += sectors;
                }
                _ => all.push(Extent { on: physical.id.clone(), at, sectors }),
            }
        }
        if all.is_empty() { Err(format!("{shown} is empty")) } else { Ok(Some(all)) }
    }
}

/// Where extents are being moved, which of their copies is the newest is known to LVM only.
fn under_way(shown: &str, on: &str) -> String {
    let on = printable(on.as_bytes());
    format!(
        "a pvmove of {shown} is under way or was interrupted ({on}); LVM goes on with it when the volume is \
         activated, or takes it back with pvmove --abort"
    )
}

impl Logical {
    /// Whether pvmove made it for what it moves.
    pub(super) fn is_pvmove(&self) -> bool {
        self.flags.iter().any(|flag| flag == "PVMOVE")
    }

    fn new(said: &Section) -> Result<Self, String> {
        let flags = ["status", "flags"].into_iter().flat_map(|list| said.texts(list));
        let mut segments = said
            .sections()
            .filter(|(name, _)| name.starts_with("segment"))
            .map(|(_, one)| {
                Ok(Segment {
                    kind: one.text("type").ok_or("type of a segment")?.to_owned(),
                    start: one.number("start_extent").ok_or("start of a segment")?,
                    extents: one.number("extent_count").ok_or("length of a segment")?,
                    said: one.clone(),
                })
            })
            .collect::<Result<Vec<_>, &str>>()?;
        segments.sort_by_key(|one| one.start);
        Ok(Self {
            id: said.text("id").ok_or("identity")?.to_owned(),
            flags: flags.map(str::to_owned).collect(),
            segments,
        })
    }
}
