//! md's journal, replayed to the drives of an array that is about to start, as an engine does: by
//! `raidlab_metadata::md::journal`.
//!
//! Fault model: the power may go at any write of it; that write, and all that was not flushed, is then there or not,
//! as of any other. A drive of which something cannot be read or written for good fails.

use raidlab_core::contract::{MemberBits, ParityOp, Role};
use raidlab_core::geometry::Parity;
use raidlab_core::{MemberIndex, Sector};
use raidlab_metadata::md::journal::{Replay, ReplayDevices, ReplayError, recover};
use raidlab_metadata::md::{Inspected, Joined, Md, inspect, tell_failed};
use raidlab_metadata::{Looked, Source};

use super::bytes::{Records, SECTOR, View};
use super::{Drives, IN_FLIGHT, Pending, Ticket};
use crate::content::{self, Content};

/// Why a journal was not replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotReplayed {
    /// The power went.
    Cut,
    /// This member could not be written.
    Member(u16),
    /// What stands in it cannot be used.
    Lost,
    /// Something else, in words.
    Other(String),
}

/// What is wrong with a drive.
enum Stopped {
    Cut,
    Unreadable,
    Unwritable,
    TooMuchLost,
}

/// Drives of which the log device's journal is replayed.
struct Held<'a> {
    drives: &'a mut Drives,
    records: &'a mut Records,
    log: MemberIndex,
    /// Writes until the power goes.
    left: Option<u32>,
}

impl Held<'_> {
    /// Sends a write; the power may go before it ends.
    fn send(
        &mut self,
        device: MemberIndex,
        at: Sector,
        bytes: &[u8],
        durable: bool,
    ) -> Result<(), Stopped> {
        let Ticket(ticket) = self.drives.ticket();
        let mut bad = false;
        for (at, bytes) in (at.0..).zip(bytes.chunks_exact(SECTOR)) {
            let Some(place) = self.records.place(device, at) else { continue };
            let value = self.records.intern(bytes.try_into().unwrap_or(&[0; SECTOR]));
            bad |= self.drives.first_bad(device, place, 1, true).is_some();
            let whole = self.drives.whole(device, place);
            let (at, done) = (self.drives.index(device, place), IN_FLIGHT);
            let pending = Pending { at, device: device.0, whole, value, ticket, done, after: 0 };
            self.drives.pending.push(pending);
        }
        if self.left == Some(0) {
            return Err(Stopped::Cut);
        }
        self.left = self.left.map(|left| left - 1);
        if bad || self.drives.is_gone(device) {
            self.drives.lose(Ticket(ticket));
            return Err(Stopped::Unwritable);
        }
        self.drives.complete(Ticket(ticket), durable);
        Ok(())
    }
}

/// The words of sectors.
fn words(bytes: &[u8]) -> impl Iterator<Item = Content> + '_ {
    bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word))
}

impl ReplayDevices for Held<'_> {
    type Error = Stopped;

    fn read(&mut self, member: usize, at: Sector, into: &mut [u8]) -> Result<(), Stopped> {
        let device = MemberIndex(member as u16);
        let read = View::of(self.drives, self.records, device).read(at, into);
        read.map_err(|_| Stopped::Unreadable)
    }

    fn write(&mut self, member: usize, at: Sector, bytes: &[u8]) -> Result<(), Stopped> {
        self.send(MemberIndex(member as u16), at, bytes, false)
    }

    fn flush(&mut self, member: usize) -> Result<(), Stopped> {
        let sent = self.drives.send_flush();
        self.drives.complete_flush(MemberIndex(member as u16), sent);
        Ok(())
    }

    fn with_log<T>(&mut self, look: impl FnOnce(&mut dyn Source) -> T) -> T {
        look(&mut View::of(self.drives, self.records, self.log))
    }

    fn write_log(&mut self, at: Sector, bytes: &[u8]) -> Result<(), Stopped> {
        self.send(self.log, at, bytes, true)
    }

    fn parities(
        &mut self,
        sources: &[&[u8]],
        exponents: &[u8],
        (p, q): (&mut [u8], Option<&mut [u8]>),
    ) -> Result<(), Stopped> {
        for (which, into) in [(Role::P, Some(p)), (Role::Q, q)] {
            let Some(into) = into else { continue };
            let mut sources: Vec<_> = sources.iter().map(|source| words(source)).collect();
            for word in into.as_chunks_mut::<8>().0 {
                let values = sources.iter_mut().map(|words| words.next().unwrap_or_default());
                let roles = exponents.iter().map(|exponent| Role::Data(*exponent));
                *word = content::parity(which, roles.zip(values)).to_le_bytes();
            }
        }
        Ok(())
    }

    fn recover(
        &mut self,
        lost: &[u8],
        parities: [Option<&[u8]>; 2],
        (others, exponents): (&[&[u8]], &[u8]),
        into: [&mut [u8]; 2],
    ) -> Result<(), Stopped> {
        let both = [Role::P, Role::Q].into_iter().zip(parities);
        let known = both.filter_map(|(role, page)| Some((role, page?))).take(lost.len());
        let data = exponents.iter().map(|exponent| Role::Data(*exponent));
        let all: Vec<(Role, &[u8])> = data.zip(others.iter().copied()).chain(known).collect();
        let mut roles: Vec<Role> = all.iter().map(|(role, _)| *role).collect();
        roles.extend(lost.iter().map(|exponent| Role::Data(*exponent)));
        let mut sources: Vec<_> = all.iter().map(|(_, page)| words(page)).collect();
        let [one, other] = into;
        let pages = one.as_chunks_mut::<8>().0.iter_mut().zip(other.as_chunks_mut::<8>().0);
        for (one, other) in pages {
            let values: Vec<Content> =
                sources.iter_mut().map(|words| words.next().unwrap_or_default()).collect();
            let mut targets = [0; 2];
            let wanted = &mut targets[..lost.len().min(2)];
            if !content::row(ParityOp::Recover, &roles, &values, wanted) {
                return Err(Stopped::TooMuchLost);
            }
            (*one, *other) = (targets[0].to_le_bytes(), targets[1].to_le_bytes());
        }
        Ok(())
    }
}

impl Drives {
    /// Whether the journal that these devices have can be replayed: it can be read, and lists what can be.
    pub(super) fn has_whole_journal(
        &self,
        records: &Records,
        log: MemberIndex,
        seen: &Inspected,
    ) -> bool {
        let mut view = View::of(self, records, log);
        seen.superblock().is_some_and(|one| recover(&mut view, one).is_ok())
    }

    /// Replays the journal of an array that is about to start, without members that are out of service; gives what the
    /// log device carries then. The power goes before so many writes more, or never.
    pub(crate) fn replay_journal(
        &mut self,
        joined: &Joined,
        (geometry, out): (&Parity, MemberBits),
        left: Option<u32>,
    ) -> Result<Looked, NotReplayed> {
        let Some(mut records) = self.bytes.take() else {
            return Err(NotReplayed::Other("records are no bytes".into()));
        };
        let (log, md) = (MemberIndex(self.count() - 1), Md { block: records.block });
        let devices = Held { drives: self, records: &mut records, log, left };
        let ended = Replay { joined, geometry, out, devices, md }.run(1);
        self.bytes = Some(records);
        let (looked, _) = ended.map_err(|error| match error {
            ReplayError::Device(Stopped::Cut) | ReplayError::Member(_, Stopped::Cut) => {
                NotReplayed::Cut
            }
            ReplayError::Member(member, _) => NotReplayed::Member(member as u16),
            ReplayError::Journal(_) => NotReplayed::Lost,
            ReplayError::Device(Stopped::Unwritable) => NotReplayed::Lost,
            ReplayError::Device(_) => NotReplayed::Other("a page cannot be read".into()),
            ReplayError::Other(what) => NotReplayed::Other(what.into()),
        })?;
        Ok(looked)
    }

    /// The number of a member's drive, which failed while the journal was replayed.
    pub(crate) fn number_of(&self, member: u16) -> Option<u16> {
        let records = self.bytes.as_deref()?;
        let seen = inspect(&mut View::of(self, records, MemberIndex(member)));
        seen.superblock().and_then(|one| u16::try_from(one.number).ok())
    }

    /// A drive with this number is out of service, and is no member's that is not: all others are told, the log device
    /// last. The power goes before so many writes more, or never; whether it did.
    pub(crate) fn tell_failed(
        &mut self,
        joined: &Joined,
        (number, failed): (u16, Option<u16>),
        mut left: Option<u32>,
    ) -> bool {
        let Some(mut records) = self.bytes.take() else { return false };
        let members = (0..).map(MemberIndex).zip(&joined.order);
        let there = members.filter(|(place, given)| given.is_some() && Some(place.0) != failed);
        let log = MemberIndex(self.count() - 1);
        let devices: Vec<MemberIndex> = there.map(|(place, _)| place).chain([log]).collect();
        let mut places: Vec<_> =
            devices.iter().map(|device| self.look(&records, *device).places).collect();
        for (device, at, bytes) in tell_failed(&mut places, number).unwrap_or_default() {
            if left == Some(0) {
                break;
            }
            left = left.map(|left| left - 1);
            self.put(&mut records, devices[device], at, &bytes);
        }
        self.bytes = Some(records);
        left == Some(0)
    }
}
