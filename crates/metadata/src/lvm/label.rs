//! What a physical volume of LVM begins with: its label, and where the metadata of its volume group are.

use std::fmt;

use raidlab_core::{SECTOR_BYTES, Sector, Sectors};

use super::Group;
use super::text::{self, Wrong};
use crate::Source;
use crate::md::fields::{u32_at, u64_at};
use crate::md::read;

const SECTOR: usize = SECTOR_BYTES as usize;
/// Sectors of which one has the label.
const LABELS: u64 = 4;
/// How a label begins, and what kind it is.
const LABEL: &[u8] = b"LABELONE";
const KIND: &[u8] = b"LVM2 001";
/// How an area of metadata begins, behind its checksum.
const AREA: &[u8] = b" LVM2 x[5A%r0N*>";
/// Bytes of an area before the ring that texts lie in.
const HEAD: u64 = 512;
/// The longest text that is read: that of some 100,000 volumes.
const LONGEST: u64 = 64 << 20;
/// A flag of a text's place: LVM does not keep the text there up to date.
const IGNORED: u32 = 1;
/// Areas of data or of metadata that are looked for.
const MOST_AREAS: usize = 16;

/// Why a physical volume, or metadata on it, cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The checksum that stands there, and that of the bytes.
    Checksum {
        /// What stands there.
        stored: u32,
        /// What the bytes amount to.
        computed: u32,
    },
    /// It lies, wholly or in part, where the device has nothing, or cannot be read.
    Unreadable,
    /// It does not begin as it should, or is of a version that is not known.
    Kind(&'static str),
    /// The text is not one.
    Text(Wrong),
    /// The text lacks something that every volume group has; what.
    Lacks(String),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checksum { stored, computed } => {
                write!(f, "the checksum is {stored:08x}, the bytes give {computed:08x}")
            }
            Self::Unreadable => f.write_str("cannot be read, or lies beyond the end of the device"),
            Self::Kind(what) => f.write_str(what),
            Self::Text(wrong) => wrong.fmt(f),
            Self::Lacks(what) => write!(f, "its text has no {what}"),
        }
    }
}

/// Something of LVM that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// What it is.
    pub what: &'static str,
    /// The byte of the device that it begins at.
    pub at: u64,
    /// Why not.
    pub damage: Damage,
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of LVM at byte {}: {}", self.what, self.at, self.damage)
    }
}

/// What a device carries of LVM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The identity of the physical volume; empty where its label cannot be used.
    pub id: String,
    /// Areas for metadata that it has.
    pub areas: usize,
    /// Of these the ones that LVM does not use (`pvchange --metadataignore y`), nor does anything here: their texts are
    /// of any age.
    pub ignored: usize,
    /// The newest metadata on it, if there are any.
    pub group: Option<Group>,
    /// What of it cannot be used.
    pub damaged: Vec<Damaged>,
}

impl Seen {
    /// Whether its label can be used.
    pub fn is_whole(&self) -> bool {
        !self.id.is_empty()
    }
}

/// What a byte adds to a CRC-32 of the usual polynomial. A text may have 64 MiB.
const CRC: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// CRC-32, begun with LVM's number and not inverted.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| crc >> 8 ^ CRC[(crc as u8 ^ byte) as usize];
    bytes.iter().fold(0xf597_a6cf, step)
}

/// An identity as LVM prints it: with hyphens. What is no such identity has none.
pub(super) fn id(bytes: &[u8]) -> Option<String> {
    if bytes.len() != 32 || !bytes.iter().all(u8::is_ascii_graphic) {
        return None;
    }
    let text = String::from_utf8_lossy(bytes);
    let mut parts = Vec::new();
    let mut from = 0;
    for len in [6, 4, 4, 4, 4, 4, 6] {
        parts.push(&text[from..from + len]);
        from += len;
    }
    Some(parts.join("-"))
}

/// Bytes of a device; `None` where not all of them can be had.
fn bytes(device: &mut dyn Source, at: u64, len: u64) -> Option<Vec<u8>> {
    let first = at / SECTOR_BYTES;
    let end = at.checked_add(len)?.div_ceil(SECTOR_BYTES);
    // What is taken of the memory is what the device has.
    if end > device.sectors().0 {
        return None;
    }
    let mut all = read(device, Sector(first), Sectors(end - first))?;
    let from = usize::try_from(at - first * SECTOR_BYTES).ok()?;
    all.truncate(from + usize::try_from(len).ok()?);
    Some(all.split_off(from))
}

/// Looks for a physical volume; `None` where none begins.
pub fn look(device: &mut dyn Source) -> Option<Seen> {
    let sectors = device.sectors().0.min(LABELS);
    let first = read(device, Sector(0), Sectors(sectors))?;
    let is_label = |sector: &&[u8]| sector.starts_with(LABEL) && sector.get(24..32) == Some(KIND);
    let at = first.chunks_exact(SECTOR).position(|sector| is_label(&sector))?;
    let sector = &first[at * SECTOR..][..SECTOR];
    let mut seen = Seen::default();
    let mut damage = |damage| {
        let at = at as u64 * SECTOR_BYTES;
        seen.damaged.push(Damaged { what: "the label", at, damage });
        Some(seen.clone())
    };
    let (stored, computed) = (u32_at(sector, 16), checksum(&sector[20..]));
    if stored != computed {
        return damage(Damage::Checksum { stored, computed });
    }
    if u64_at(sector, 8) != at as u64 {
        return damage(Damage::Kind("it says that it stands in another sector"));
    }
    let head = u32_at(sector, 20) as usize;
    let Some(own) = sector.get(head..head.saturating_add(32)).and_then(id) else {
        return damage(Damage::Kind("it names no physical volume"));
    };
    seen.id = own;
    // Places of data, then of metadata, each list with zeroes at its end.
    let places = (head + 40..SECTOR - 15).step_by(16);
    let mut places = places.map(|at| (u64_at(sector, at), u64_at(sector, at + 8)));
    let data = places.by_ref().take_while(|(at, _)| *at != 0).count();
    // One place named often is one area, whose text is read once.
    let mut areas = Vec::new();
    for place in places.take_while(|(at, _)| *at != 0).take(MOST_AREAS) {
        if !areas.contains(&place) {
            areas.push(place);
        }
    }
    seen.areas = if data > MOST_AREAS { 0 } else { areas.len() };
    for (at, size) in areas.into_iter().take(seen.areas) {
        match area(device, at, size) {
            Ok(Held::Ignored) => seen.ignored += 1,
            Ok(Held::Group(group))
                if seen.group.as_ref().is_none_or(|one| one.seqno < group.seqno) =>
            {
                seen.group = Some(group);
            }
            Ok(_) => {}
            Err(damaged) => seen.damaged.push(damaged),
        }
    }
    Some(seen)
}

/// What an area of metadata holds.
enum Held {
    Nothing,
    /// Nothing that counts.
    Ignored,
    Group(Group),
}

fn area(device: &mut dyn Source, at: u64, size: u64) -> Result<Held, Damaged> {
    let broken = |damage| Damaged { what: "the area of metadata", at, damage };
    let head = bytes(device, at, HEAD).ok_or_else(|| broken(Damage::Unreadable))?;
    let (stored, computed) = (u32_at(&head, 0), checksum(&head[4..]));
    if stored != computed {
        return Err(broken(Damage::Checksum { stored, computed }));
    }
    if head.get(4..20) != Some(AREA) || u32_at(&head, 20) != 1 {
        return Err(broken(Damage::Kind("it does not begin as one of version 1")));
    }
    if u64_at(&head, 24) != at || u64_at(&head, 32) != size || size <= HEAD {
        return Err(broken(Damage::Kind("it says that it lies elsewhere, or is of another size")));
    }
    let (offset, len, stored) = (u64_at(&head, 40), u64_at(&head, 48), u32_at(&head, 56));
    if u32_at(&head, 60) & IGNORED != 0 {
        return Ok(Held::Ignored);
    }
    if offset == 0 {
        return Ok(Held::Nothing);
    }
    let begins = at.saturating_add(offset);
    let broken = |damage| Damaged { what: "the text of metadata", at: begins, damage };
    if offset < HEAD || offset >= size || len > size - HEAD || len > LONGEST {
        return Err(broken(Damage::Kind("it does not lie in its area, or is too long")));
    }
    // Behind the end of the area a text goes on behind its head.
    let to_end = len.min(size - offset);
    let mut all = bytes(device, begins, to_end).ok_or_else(|| broken(Damage::Unreadable))?;
    if to_end < len {
        let rest = at.checked_add(HEAD).and_then(|from| bytes(device, from, len - to_end));
        all.extend(rest.ok_or_else(|| broken(Damage::Unreadable))?);
    }
    let computed = checksum(&all);
    if stored != computed {
        return Err(broken(Damage::Checksum { stored, computed }));
    }
    let section = text::parse(&all).map_err(|wrong| broken(Damage::Text(wrong)))?;
    let group = Group::new(&section, stored);
    group.map(Held::Group).map_err(|what| broken(Damage::Lacks(what)))
}
