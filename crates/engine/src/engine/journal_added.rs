//! A journal for an md array that has none and does not run.
//!
//! What is written, in which order and why that is safe: [`raidlab_metadata::md::journal::add`].

use raidlab_metadata::MetadataFormat;
use raidlab_metadata::md::{AddedJournal, Device, Inspected, LogDevice, Md, inspect, journal};

use super::md::{block, on, write};
use crate::error::{EngineError, EngineErrorKind};
use crate::member::Member;
use crate::metadata::{now, random};

const ADD: &str = "add a journal";

/// Gives the md array of these devices, in any order, a journal on another device; without `carry_out` only what would
/// be written is found out. What stands on the log device is lost.
///
/// # Errors
/// [`EngineErrorKind::Assemble`] when the array cannot have one, or not yet, with what to do; nothing is written then.
/// An error of a medium else: what was written until then does no harm.
pub fn add_md_journal(
    devices: &mut [Member],
    log: &mut Member,
    carry_out: bool,
) -> Result<AddedJournal, EngineError> {
    let inspected: Vec<Inspected> = devices.iter_mut().map(|one| inspect(one)).collect();
    let md = Md { block: block(devices.iter().chain([&*log]), true) };
    let mut places: Vec<_> = devices.iter_mut().map(|one| md.examine(one).places).collect();
    let there = inspect(log);
    let device = Device { sectors: there.sectors, id: random()? };
    let new = LogDevice { device, first: u32::from_le_bytes(random()?) };
    let added = journal::add((&inspected, &mut places), (&new, &there), now())
        .map_err(|why| EngineError::new(EngineErrorKind::Assemble, ADD, why.to_string()))?;
    for (place, given) in added.joined.order.iter().enumerate() {
        let Some(given) = *given else { continue };
        added.joined.check(place, &places[given]).map_err(|why| {
            let error = EngineError::new(EngineErrorKind::NotSupported, ADD, why.to_string());
            on(error, &devices[given])
        })?;
    }
    for (given, at, bytes) in added.writes.iter().filter(|_| carry_out) {
        let device = match given {
            Some(given) => &mut devices[*given],
            None => &mut *log,
        };
        write(device, *at, bytes, ADD)?;
    }
    Ok(added)
}
