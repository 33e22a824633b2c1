//! An array of GEOM that is to be written.
//!
//! gstripe and gconcat have no redundancy, and their labels never change: nobody is behind, as each of them is needed.
//! So is a gmirror of one disk.

use raidlab_core::Consistency;
use raidlab_core::contract::Superblock as Said;

use super::assemble;
use crate::md::{Allowed, Cannot, Inspected, Joined};

/// Decides which devices make an array that is written.
///
/// # Errors
/// As [`assemble`]; [`Cannot::NotWritten`] for what this version does not write.
pub(crate) fn join(all: &[Inspected], allowed: &Allowed) -> Result<Joined, Cannot> {
    let assembly = assemble(all, allowed)?;
    if assembly.layout.level.is_redundant() {
        let kind = assembly.geom.map_or("GEOM", |state| state.kind.name());
        return Err(Cannot::NotWritten(format!("it is a {kind}")));
    }
    Ok(Joined {
        consistency: Consistency::None,
        array: assembly.array,
        traits: Vec::new(),
        order: assembly.places.iter().map(|place| place.given).collect(),
        starts: assembly.places.iter().map(|place| place.data_offset).collect(),
        spares: Vec::new(),
        journal: None,
        former_journal: None,
        absent: [0; 2],
        log_header: None,
        block: assembly.block,
        geom: assembly.geom,
        state: Said::default(),
        events: vec![0; assembly.places.len()],
        journal_events: 0,
        sectors: assembly.places.iter().map(|place| place.sectors).collect(),
        layout: assembly.layout,
        name: assembly.name,
        out: assembly.out,
        notes: assembly.notes,
    })
}
