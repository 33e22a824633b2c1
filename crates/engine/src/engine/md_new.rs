//! New arrays of Linux md: what `mdadm --create` would write, and then a start as of any other array.
//!
//! Fault model: the process may be killed, or the power go, at any moment. Why it is safe: superblocks are the last
//! that is written, after everything else of all devices; each write of one flushes its device, and a device without
//! one is no member. Nobody has been answered anything by then. Tests: `tests/md_new.rs`.

use raidlab_core::{SECTOR_BYTES, Sector};
use raidlab_metadata::md::{Creation, Device, LogDevice, Made, Version, inspect};

use super::Engine;
use super::md::{MdOptions, on, put};
use crate::error::{EngineError, EngineErrorKind};
use crate::member::Member;
use crate::metadata::{now, random};

const MAKE: &str = "make an md array";

impl Engine {
    /// A new array of md's on these members, in order, and a log device where there is to be a journal. What
    /// `creation` says of devices and identities does not count: it is made for those given, and identities are by
    /// chance.
    ///
    /// Members are whole devices, as for [`assemble_md`](Self::assemble_md). Superblocks of md's other versions on
    /// them are wiped.
    ///
    /// # Errors
    /// [`EngineErrorKind::Config`] when there can be no such array on these, before anything is written; an error of a
    /// medium, and as [`assemble_md`](Self::assemble_md).
    pub fn new_md(
        creation: &Creation,
        members: Vec<Member>,
        journal: Option<Member>,
        options: &MdOptions,
    ) -> Result<Self, EngineError> {
        let creation = on_devices(creation, &members, journal.as_ref())?;
        let impossible = |reason: String| EngineError::new(EngineErrorKind::Config, MAKE, reason);
        let plan = creation.plan().map_err(|error| impossible(error.to_string()))?;
        let count = members.len();
        let mut devices: Vec<Member> = members.into_iter().chain(journal).collect();
        let made: Vec<&Made> = plan.members.iter().flatten().chain(&plan.journal).collect();
        if made.len() != devices.len() {
            let reason = format!("{} devices are given, {} are needed", devices.len(), made.len());
            return Err(impossible(reason));
        }
        for (device, made) in devices.iter_mut().zip(&made) {
            wipe_others(device, creation.version)?;
            let beside = made.pieces.split_last().map_or(&[][..], |(_, beside)| beside);
            beside.iter().try_for_each(|(at, bytes)| in_blocks(device, (*at, bytes), false))?;
        }
        for (device, made) in devices.iter_mut().zip(&made) {
            let Some((at, bytes)) = made.pieces.last() else { continue };
            in_blocks(device, (*at, bytes), true)?;
        }
        let (engine, found) = Self::assemble_md(devices, options)?;
        match found.joined.order.iter().flatten().count() {
            all if all == count => Ok(engine),
            some => {
                let reason = format!("{some} of {count} members were found again");
                Err(EngineError::new(EngineErrorKind::Assemble, MAKE, reason))
            }
        }
    }
}

/// What is asked for, of these devices.
fn on_devices(
    creation: &Creation,
    members: &[Member],
    journal: Option<&Member>,
) -> Result<Creation, EngineError> {
    let device = |one: &Member| Ok(Device { sectors: one.config().sectors, id: random()? });
    let log =
        |one: &Member| Ok(LogDevice { device: device(one)?, first: u32::from_le_bytes(random()?) });
    Ok(Creation {
        devices: members
            .iter()
            .map(|one| device(one).map(Some))
            .collect::<Result<_, EngineError>>()?,
        spares: Vec::new(),
        journal: journal.map(log).transpose()?,
        array: random()?,
        now: now(),
        ..creation.clone()
    })
}

/// Takes superblocks of other versions away, of which one might be taken for the newer one.
fn wipe_others(device: &mut Member, version: Version) -> Result<(), EngineError> {
    let sectors = device.config().sectors;
    let seen: Vec<Version> = inspect(device).seen.iter().map(|seen| seen.version).collect();
    for at in
        seen.iter().filter(|seen| **seen != version).filter_map(|seen| seen.superblock(sectors))
    {
        in_blocks(device, (at, &[0; 4096]), false)?;
    }
    Ok(())
}

/// Writes bytes in whole blocks of a device; what lies behind them in the last is zero then.
fn in_blocks(
    device: &mut Member,
    (at, bytes): (Sector, &[u8]),
    durable: bool,
) -> Result<(), EngineError> {
    let block = device.config().logical_block as usize * SECTOR_BYTES as usize;
    let mut whole = bytes.to_vec();
    whole.resize(bytes.len().next_multiple_of(block), 0);
    put(device, (at, &whole), durable, MAKE).map_err(|error| on(error, device))
}
