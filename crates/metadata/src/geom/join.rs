//! An array of GEOM that is to be written: who is in service, in the words of the core.
//!
//! gstripe and gconcat have no redundancy, and their labels never change: nobody is behind, as each of them is needed.
//! So is a gmirror of one disk.
//!
//! Labels of gmirror and graid3 have no events, and do not name the other disks. Who is in service is at the newest
//! events, or one behind where its label was not raised with the others'. Who is missing is out of service where labels
//! say how many are (raidlab's do), or where disks that are out of date are given, as many as the array has: FreeBSD
//! starts with these, too, and waits for others. Of whoever else is missing the administrator must say it.

use raidlab_core::contract::{MemberBits, Superblock as Said};
use raidlab_core::{Consistency, SECTOR_BYTES, Sector};

use super::assemble::{Decided, Purpose, decide};
use super::{Kind, State};
use crate::md::{Allowed, Cannot, HISTORY, Inspected, Joined};

/// Labels count changes in 32 bits; of an array that counts more than so many none is written.
const MOST_COUNTED: u64 = u32::MAX as u64 - (1 << 20);

/// Decides which devices make an array that is written.
///
/// # Errors
/// As [`super::assemble()`]; [`Cannot::NotWritten`] for what this version does not write.
pub(crate) fn join(all: &[Inspected], allowed: &Allowed) -> Result<Joined, Cannot> {
    let decided = decide(all, allowed, Purpose::Write)?;
    let assembly = &decided.assembly;
    // The genid, which is raised where a syncid cannot be.
    let counted = assembly.events >> 32;
    if counted > MOST_COUNTED {
        return Err(Cannot::NotWritten(format!(
            "its labels have the genid {counted}, which is damage, or leaves too few: they count to {}",
            u32::MAX
        )));
    }
    let is_redundant = assembly.layout.level.is_redundant();
    if is_redundant {
        writable(all, assembly.geom)?;
    }
    let mut absent = assembly.failed();
    absent.iter_mut().zip(decided.known).for_each(|(word, known)| *word &= !known);
    let state = state(&decided);
    let is_behind = |place: usize| has(decided.behind, place);
    let events = |place: usize| state.events - u64::from(is_behind(place));
    let events = (0..assembly.places.len()).map(events).collect();
    let assembly = decided.assembly;
    Ok(Joined {
        consistency: if is_redundant { Consistency::Resync } else { Consistency::None },
        array: assembly.array,
        traits: Vec::new(),
        order: assembly.places.iter().map(|place| place.given).collect(),
        starts: assembly.places.iter().map(|place| place.data_offset).collect(),
        spares: Vec::new(),
        journal: None,
        former_journal: None,
        replacement: None,
        absent,
        log_header: None,
        block: assembly.block,
        geom: assembly.geom,
        state,
        events,
        journal_events: 0,
        sectors: assembly.places.iter().map(|place| place.sectors).collect(),
        bad: Vec::new(),
        layout: assembly.layout,
        name: assembly.name,
        out: assembly.out,
        notes: assembly.notes,
    })
}

const fn has(bits: MemberBits, place: usize) -> bool {
    bits[place / 64] >> (place % 64) & 1 == 1
}

/// Whether this version writes such an array: where a power cut is not to be looked for, labels do not say that writes
/// were under way.
fn writable(all: &[Inspected], state: Option<State>) -> Result<(), Cannot> {
    let no_failsync = |kind: Kind| if kind == Kind::Mirror { 2 } else { 8 };
    let labels = all.iter().filter_map(|one| one.geom.as_ref()?.whole());
    let is_without = |one: &crate::geom::Label| one.array_flags & no_failsync(one.kind) != 0;
    if labels.into_iter().any(is_without) {
        let kind = state.map_or("gmirror", |state| state.kind.name());
        return Err(Cannot::NotWritten(format!(
            "its labels say that it is not synchronised after a power failure (NOFAILSYNC; {kind} configure -f changes \
             that)"
        )));
    }
    Ok(())
}

/// The state of the array, which labels tell each in part.
fn state(decided: &Decided) -> Said {
    let clean = decided.assembly.clean;
    let is_filling = decided.synchronizing != [0; 2];
    Said {
        // One behind is not below none.
        events: decided.assembly.events.saturating_add(1),
        failed: decided.known,
        rebuilding: decided.synchronizing,
        clean,
        rebuilt_to: Sector(if is_filling { decided.filled_to / SECTOR_BYTES } else { 0 }),
        synced_to: if clean { Sector::MAX } else { Sector(0) },
        history: HISTORY,
        left: 1,
        ..Said::default()
    }
}
