//! md's journal, replayed to the members of an engine before the array does anything: how is in
//! `raidlab_metadata::md::journal`. Tests: `tests/md_journal.rs`, `tests/md_journal_replay.rs`,
//! `tests/md_journal_guest.rs`.

use raidlab_core::Sector;
use raidlab_metadata::md::journal::{ReplayDevices, ReplayError};
use raidlab_metadata::md::{Md, Superblock, tell_failed};
use raidlab_metadata::{MetadataFormat, Source};
use raidlab_parity::{Kernels, ParityError, pq, xor};

use super::journal_lost::lost;
use super::md::{put, write};
use crate::error::{EngineError, EngineErrorKind};
use crate::member::Member;

pub(super) const REPLAY: &str = "replay the journal";

/// Members, and the log device whose journal is replayed to them.
pub(super) struct Devices<'a> {
    pub(super) members: &'a mut [Member],
    pub(super) log: &'a mut Member,
}

impl ReplayDevices for Devices<'_> {
    type Error = EngineError;

    fn read(&mut self, member: usize, at: Sector, into: &mut [u8]) -> Result<(), EngineError> {
        self.members[member].read_direct(at, into)
    }

    fn write(&mut self, member: usize, at: Sector, bytes: &[u8]) -> Result<(), EngineError> {
        put(&mut self.members[member], (at, bytes), false, REPLAY)
    }

    fn flush(&mut self, member: usize) -> Result<(), EngineError> {
        self.members[member].flush_direct(REPLAY)
    }

    fn with_log<T>(&mut self, look: impl FnOnce(&mut dyn Source) -> T) -> T {
        look(self.log)
    }

    fn write_log(&mut self, at: Sector, bytes: &[u8]) -> Result<(), EngineError> {
        write(self.log, at, bytes, REPLAY)
    }

    fn parities(
        &mut self,
        sources: &[&[u8]],
        exponents: &[u8],
        (p, q): (&mut [u8], Option<&mut [u8]>),
    ) -> Result<(), EngineError> {
        match q {
            Some(q) => pq(Some(p), Some(q), sources, exponents),
            None => xor(p, sources),
        }
        .map_err(parity)
    }

    fn recover(
        &mut self,
        lost: &[u8],
        [p, q]: [Option<&[u8]>; 2],
        (sources, exponents): (&[&[u8]], &[u8]),
        [one, other]: [&mut [u8]; 2],
    ) -> Result<(), EngineError> {
        let kernels = Kernels::default();
        match (lost, p, q) {
            ([_], Some(p), _) => kernels.recover_by_p(one, p, sources),
            ([only], None, Some(q)) => kernels.recover_by_q(one, *only, q, sources, exponents),
            ([first, second], Some(p), Some(q)) => {
                kernels.recover_two([one, other], [*first, *second], (p, q), sources, exponents)
            }
            _ => return Err(broken("more is lost than can be computed")),
        }
        .map_err(parity)
    }
}

/// What it says of the journal on this log device.
pub(super) fn not_replayed(
    error: ReplayError<EngineError>,
    log: &Member,
    one: Option<&Superblock>,
) -> EngineError {
    match (error, one) {
        (ReplayError::Device(error) | ReplayError::Member(_, error), _) => error,
        (ReplayError::Journal(damage), Some(one)) => lost(log, one, &damage),
        (ReplayError::Journal(damage), None) => broken(&damage.to_string()),
        (ReplayError::Other(reason), _) => broken(reason),
    }
}

/// Has the superblocks of members and of the log device, in this order, say that the device with this number failed.
/// Until the first does the journal holds all that the device lacks; after that nobody believes it. With an error which
/// of them could not be written.
pub(super) fn record_failure<'a>(
    md: Md,
    devices: impl Iterator<Item = &'a mut Member>,
    number: u16,
) -> Result<(), (usize, EngineError)> {
    let mut devices: Vec<&mut Member> = devices.collect();
    let mut places: Vec<_> = devices.iter_mut().map(|one| md.examine(*one).places).collect();
    let writes = tell_failed(&mut places, number);
    let no_room = || (usize::MAX, broken("a superblock has no room"));
    for (device, at, bytes) in writes.ok_or_else(no_room)? {
        write(devices[device], at, &bytes, REPLAY).map_err(|error| (device, error))?;
    }
    Ok(())
}

fn broken(reason: &str) -> EngineError {
    EngineError::new(EngineErrorKind::Assemble, REPLAY, reason.to_owned())
}

fn parity(error: ParityError) -> EngineError {
    broken(&error.to_string())
}
