//! The labels of gmirror and graid3 as a format that an array's records are kept in.
//!
//! Fault model: as [`super`]; a disk has one label, in one place, which a power cut leaves as it was or makes new. Why
//! it is safe all the same: labels tell only who is out of date, and whether redundancy may differ; a state that only
//! some of the disks have been told of is one that nothing was answered by yet, and [`super::assemble()`] decides by it
//! as by the one before, or leaves disks out that miss nothing. Tests: `tests/geom.rs`, and with power cuts
//! `crates/engine/tests/geom_crash.rs`.

use raidlab_core::consistency::Examined;
use raidlab_core::contract::Record;
use raidlab_core::{SECTOR_BYTES, Sectors};

use super::kept::Fresh;
use super::{Kept, look};
use crate::md::{Ready, Version, inspect};
use crate::{Entry, Looked, MetadataFormat, Places, Put, Source};

/// Bytes of a head: of what a device writes together at most.
const HEAD: usize = 4096;

/// The labels of gmirror and graid3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geom;

impl MetadataFormat for Geom {
    fn head(&self) -> usize {
        HEAD
    }

    /// Where the label stands; what it means only all of them together tell.
    fn examine(&self, device: &mut dyn Source) -> Looked {
        let (sectors, logical_block) = (device.sectors(), device.logical_block());
        let kept = look(device).and_then(|seen| Kept::of(device, &seen, logical_block));
        let places = match kept {
            Some(kept) => {
                let data = Sectors(kept.label().used() / SECTOR_BYTES);
                Places::of_geom(sectors, data, kept)
            }
            None => Places::default(),
        };
        let examined = Examined { sectors, logical_block, ..Examined::default() };
        Looked { examined, places, sequence: 0 }
    }

    fn put(
        &self,
        head: &mut [u8],
        device: &mut Places,
        entry: &Entry<'_>,
        _payload: &mut dyn Iterator<Item = &[u8]>,
    ) -> Option<Put> {
        let Record::Superblock(said) = &entry.meta.record else { return None };
        device.geom_mut()?.put(head, said, (entry.label.device, entry.generation))
    }

    fn in_turn(&self) -> bool {
        true
    }
}

impl Geom {
    /// What makes a device ready for a place of an array, whose member `model` is in service; `disk` is its number by
    /// chance, `others` are those of all other members. Until it is named by a label it has none.
    ///
    /// # Errors
    /// When it does not fit, in words.
    pub fn ready(
        &self,
        device: &mut dyn Source,
        model: &Places,
        (place, disk): (u16, u32),
        others: &[u32],
    ) -> Result<Ready, String> {
        let Some(model) = model.geom() else {
            return Err("no member is known to be like it".into());
        };
        let (sectors, block) = (device.sectors(), device.logical_block());
        let (sector, needed) = (model.sector(), Sectors(model.label().used() / SECTOR_BYTES));
        if !sectors.0.is_multiple_of(sector.0) || sectors < needed + sector {
            return Err(format!(
                "it has {sectors}, and needs {needed} and a sector of {sector} behind"
            ));
        }
        let own = inspect(device);
        let label = own.geom.as_ref().and_then(|seen| seen.whole());
        // One that comes back is who it was, unless it is a copy of another.
        let known =
            label.filter(|one| one.array() == model.label().array() && !others.contains(&one.disk));
        let disk = known.map_or(disk, |one| one.disk);
        let kept = model.like(place, Fresh { device: sectors, sector, block, disk });
        kept.label().check(sectors, sector).map_err(|damage| damage.to_string())?;
        let mut pieces = Vec::new();
        for version in Version::ALL {
            if let Some(at) = version.superblock(sectors)
                && own.seen.iter().any(|seen| seen.version == version)
            {
                pieces.push((at, vec![0; HEAD]));
            }
        }
        let blank = |len: Sectors| vec![0; len.bytes() as usize];
        pieces.extend(own.geom.iter().map(|seen| (seen.at, blank(Sectors(u64::from(block))))));
        let (at, len) = kept.place();
        pieces.push((at, blank(len)));
        Ok(Ready { places: Places::of_geom(sectors, needed, kept), data: needed, pieces })
    }
}
