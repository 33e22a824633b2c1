//! The labels of FreeBSD's GEOM classes gmirror, graid3, gstripe and gconcat: read, and made anew; never changed.
//!
//! A label stands at the start of the last sector of a device; all numbers are little-endian, packed. The table is in
//! `docs/md-format.md`. Labels of gmirror and graid3 end with an MD5 of what stands before it; those of gstripe and
//! gconcat have no checksum, so that all that can be told from their fields and the size of the device is.
//!
//! Fault model: any bytes at all in any label; labels of different times, arrays and sizes together. No input makes a
//! function here panic. Tests: `tests/geom.rs`, the fuzz target `geom`, `crates/cli/tests/geom.rs`. Not tried
//! with disks of FreeBSD.

mod assemble;
mod beside;
mod create;
mod format;
mod join;
mod kept;
mod label;

pub(crate) use assemble::is_meant;
pub use assemble::{State, assemble};
pub use beside::Beside;
pub use create::{Creation, Made};
pub use format::Geom;
pub(crate) use join::join;
pub use kept::{Generation, Kept};
pub use label::{Damage, Flags, Kind, Label};

use raidlab_core::{SECTOR_BYTES, Sector, Sectors};

use crate::Source;

/// Sectors that the sectors of a device may have: 512 bytes, or 4096.
const SECTOR_SIZES: [u64; 2] = [1, 8];

/// A label that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Where it stands.
    pub at: Sector,
    /// What one sector of the device has.
    pub sector: Sectors,
    /// What it says; `None` where that cannot be told.
    pub label: Option<Label>,
    /// Why it cannot be used.
    pub damage: Option<Damage>,
    /// What stands behind it.
    pub beside: Option<Beside>,
}

impl Seen {
    /// What a label says that can be used.
    pub fn whole(&self) -> Option<&Label> {
        self.label.as_ref().filter(|_| self.damage.is_none())
    }
}

/// Looks for a label: a device with sectors of 512 bytes has it in the last 512, one with sectors of 4096 in the last
/// 4096. Where something stands in both places, what can be used counts, and then what is nearer to the end.
pub fn look(device: &mut dyn Source) -> Option<Seen> {
    let block = u64::from(device.logical_block());
    let mut sizes: Vec<u64> = SECTOR_SIZES.into_iter().filter(|size| *size >= block).collect();
    if !sizes.contains(&block) {
        sizes.push(block);
    }
    let mut found: Vec<Seen> =
        sizes.into_iter().filter_map(|size| look_at(device, Sectors(size))).collect();
    found.sort_by_key(|seen| seen.damage.is_some());
    found.into_iter().next()
}

/// The label of a device with such sectors.
fn look_at(device: &mut dyn Source, sector: Sectors) -> Option<Seen> {
    let whole = device.sectors();
    if sector.0 == 0 || !whole.0.is_multiple_of(sector.0) {
        return None;
    }
    let at = Sector(whole.0.checked_sub(sector.0)?);
    let mut bytes = vec![0; usize::try_from(device.logical_block()).ok()? * SECTOR_BYTES as usize];
    device.read(at, &mut bytes).ok()?;
    let kind = Kind::of(&bytes)?;
    let (label, damage) = match Label::parse(kind, &bytes) {
        Ok(label) => {
            let damage = label.check(whole, sector).err();
            (Some(label), damage)
        }
        Err(damage) => (None, Some(damage)),
    };
    Some(Seen { at, sector, label, damage, beside: Beside::parse(&bytes) })
}
