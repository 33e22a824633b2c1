//! What stands in md's journal when an array starts, written out before the array does anything.
//!
//! Fault model: a crash at any point of it, members that are missing or being rebuilt, a journal of any bytes.
//! Why it is safe: rows with data and parity are written as they stand, so that a replay that was interrupted is done
//! again. Data without parity (md's write-back mode) are logged with the parity that is made of them, behind everything
//! that is found, before the tail moves there and any of them is written: parity made of what is on the members is not
//! to be made a second time of half of what replaced it. The tail moves when all that is before it is durable on the
//! members, to a block without pages, with a number that nothing left in the ring has. A member that fails meanwhile is
//! known to the others before that, and the replay begins anew without it. Tests: `tests/md_journal.rs`,
//! `tests/md_journal_replay.rs`, `tests/md_journal_guest.rs`.

use raidlab_core::Sector;
use raidlab_core::contract::MemberBits;
use raidlab_core::geometry::Parity;
use raidlab_metadata::md::journal::{PAGE, begin_anew, recover};
use raidlab_metadata::md::{
    Joined, Journal, JournalDamage, JournalFound, JournalRow, Md, Superblock, inspect, tell_failed,
};
use raidlab_metadata::{Looked, MetadataFormat};
use raidlab_parity::{Kernels, ParityError, pq, xor};

use super::journal_lost::lost;
use super::md::{put, write};
use crate::error::{EngineError, EngineErrorKind};
use crate::member::Member;
use crate::metadata::random;

pub(super) const REPLAY: &str = "replay the journal";
const BYTES: usize = 4096;

type Page = Vec<u8>;

/// A journal that is being replayed.
pub(super) struct Replay<'a> {
    pub(super) joined: &'a Joined,
    pub(super) geometry: &'a Parity,
    pub(super) members: &'a mut [Member],
    /// Members that are out of service.
    pub(super) out: MemberBits,
    /// The one that could not be written.
    pub(super) unwritable: &'a mut Option<usize>,
    pub(super) log: &'a mut Member,
    pub(super) md: Md,
}

/// How many rows were written out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// With the parity that stood there, too.
    pub whole: u64,
    /// With parity that was made of them.
    pub alone: u64,
}

impl Replay<'_> {
    /// Replays it, and begins it anew; what the log device carries then.
    pub(super) fn run(mut self) -> Result<(Looked, Replayed), EngineError> {
        let inspected = inspect(self.log);
        let Some(one) = inspected.superblock() else { return Err(broken("it has no superblock")) };
        let mut found = recover(self.log, one).map_err(|damage| lost(self.log, one, &damage))?;
        let mut replayed = Replayed::default();
        for (row, journalled) in &found.rows {
            replayed.whole += u64::from(!journalled.data.is_empty());
            replayed.alone += u64::from(!journalled.alone.is_empty());
            self.write_whole(one, *row, journalled)?;
        }
        self.flush()?;
        let random = u32::from_le_bytes(random()?);
        let mut tail = self.begin_anew(one, &found, random)?;
        if replayed.alone > 0 {
            let anew = one.with_tail(tail);
            found.next = Some(self.replay_alone(one, &anew, &found)?);
            tail = self.begin_anew(one, &found, random)?;
        }
        self.move_tail(tail)?;
        Ok((self.md.examine(self.log), replayed))
    }

    /// Writes a block without pages behind what was found, and gives its place.
    fn begin_anew(
        &mut self,
        one: &Superblock,
        found: &JournalFound,
        random: u32,
    ) -> Result<u64, EngineError> {
        let (position, block) = begin_anew(&one.array, found, random);
        write(self.log, Sector(one.data_offset + position), &block, REPLAY)?;
        Ok(position)
    }

    /// Has the log device's superblock name this tail.
    fn move_tail(&mut self, tail: u64) -> Result<(), EngineError> {
        let mut looked = self.md.examine(self.log);
        let put = looked.places.with_journal_tail(tail);
        let Some((at, bytes)) = put else { return Err(broken("its superblock has no room")) };
        write(self.log, at, &bytes, REPLAY)
    }

    /// Writes a row's data and the parity that stood with them.
    fn write_whole(
        &mut self,
        one: &Superblock,
        row: u64,
        journalled: &JournalRow,
    ) -> Result<(), EngineError> {
        let Some(parity) = journalled.parity.filter(|_| !journalled.data.is_empty()) else {
            return Ok(());
        };
        let both = (self.chunks()..).zip(parity).take(usize::from(self.geometry.parities()));
        for (role, place) in journalled.data.iter().map(|(k, at)| (*k, *at)).chain(both) {
            let page = self.logged(one, place)?;
            self.write_page(role, row, &page)?;
        }
        Ok(())
    }

    /// Makes parity of data that stand alone, logs all of it where the journal begins anew, and writes it; the place
    /// and the number of the block behind.
    fn replay_alone(
        &mut self,
        one: &Superblock,
        anew: &Superblock,
        found: &JournalFound,
    ) -> Result<(u64, u64), EngineError> {
        let rows = || found.rows.iter().filter(|(_, row)| !row.alone.is_empty());
        let Some(mut log) = Journal::of(self.log, anew) else {
            return Err(broken("it could not be begun anew"));
        };
        // A block for each row, and those that fill the end of the ring.
        let pages = |row: &JournalRow| row.alone.len() as u64 + 3;
        let most: u64 =
            rows().map(|(_, row)| pages(row)).sum::<u64>() + u64::from(self.chunks()) + 3;
        let ring = one.data_size / PAGE * PAGE;
        let taken = (anew.recovery + ring - one.recovery) % ring;
        let has_room = taken + most * PAGE < ring;
        for (row, journalled) in rows() {
            let made = self.made(one, *row, journalled)?;
            if has_room {
                self.log_row(anew, &mut log, *row, &made.pages)?;
            } else if made.depends {
                return Err(broken(
                    "it has no room for the parity of data that stand in it alone, which is made without a member: \
                     give that member, or let mdadm --assemble replay it",
                ));
            }
        }
        if has_room {
            self.move_tail(anew.recovery)?;
        }
        for (row, journalled) in rows() {
            for (role, page) in self.made(one, *row, journalled)?.pages {
                self.write_page(role, *row, &page)?;
            }
        }
        self.flush()?;
        Ok(log.next())
    }

    /// Logs the pages of a row in a block of their own.
    fn log_row(
        &mut self,
        one: &Superblock,
        log: &mut Journal,
        row: u64,
        pages: &[(u16, Page)],
    ) -> Result<(), EngineError> {
        let mut roles = [0; 2];
        pages.iter().for_each(|(role, _)| roles[usize::from(role / 64)] |= 1 << (role % 64));
        let entry = log.entry(row, roles);
        let rows = log.rows(&entry).ok_or_else(|| broken("a row is not whole"))?;
        let sums: Vec<u32> =
            pages.iter().map(|(_, page)| log.sum(std::iter::once(&page[..]))).collect();
        loop {
            log.begin();
            let has_room = log.takes(&rows);
            if has_room {
                log.add(&rows, 0, &sums);
            }
            let mut bytes = vec![0; BYTES];
            let put = log.put(&mut bytes).ok_or_else(|| broken("it is full"))?;
            if has_room {
                pages.iter().for_each(|(_, page)| bytes.extend(page));
            }
            debug_assert!(put.at.0 >= one.data_offset, "a block lies in the ring");
            write(self.log, put.at, &bytes, REPLAY)?;
            if has_room {
                return Ok(());
            }
        }
    }

    /// The new pages of a row in which data stand alone: these, and P and Q of what it holds then.
    fn made(
        &mut self,
        one: &Superblock,
        row: u64,
        journalled: &JournalRow,
    ) -> Result<Made, EngineError> {
        let stripe = row / self.geometry.chunk().0;
        let missing: Vec<u16> = (0..self.chunks())
            .filter(|k| !journalled.alone.contains_key(k) && !self.is_readable(*k, row))
            .collect();
        let depends = !missing.is_empty();
        let mut data: Vec<Page> = match depends {
            true => self.recovered(row)?,
            false => vec![Page::new(); usize::from(self.chunks())],
        };
        for k in 0..self.chunks() {
            let known = &mut data[usize::from(k)];
            match journalled.alone.get(&k) {
                Some(place) => *known = self.logged(one, *place)?,
                None if known.is_empty() => *known = self.page(k, row)?,
                None => {}
            }
        }
        let exponents: Vec<u8> =
            (0..self.chunks()).map(|k| self.geometry.q_exponent(stripe, k)).collect();
        let sources: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
        let (mut p, mut q) = (vec![0; BYTES], vec![0; BYTES]);
        let has_q = self.geometry.parities() == 2;
        match has_q {
            true => pq(Some(&mut p), Some(&mut q), &sources, &exponents),
            false => xor(&mut p, &sources),
        }
        .map_err(parity)?;
        let mut pages: Vec<(u16, Page)> = Vec::new();
        for k in journalled.alone.keys() {
            pages.push((*k, std::mem::take(&mut data[usize::from(*k)])));
        }
        let both = (self.chunks()..).zip([p, q]).take(usize::from(self.geometry.parities()));
        pages.extend(both);
        Ok(Made { pages, depends })
    }

    /// All data of a row as they were on the members, those that cannot be read made from parity.
    fn recovered(&mut self, row: u64) -> Result<Vec<Page>, EngineError> {
        let stripe = row / self.geometry.chunk().0;
        let mut data = Vec::new();
        let mut lost = Vec::new();
        for k in 0..self.chunks() {
            if self.is_readable(k, row) {
                data.push(self.page(k, row)?);
            } else {
                lost.push(usize::from(k));
                data.push(Page::new());
            }
        }
        let exponent = |k: usize| self.geometry.q_exponent(stripe, k as u16);
        let there: Vec<usize> = (0..data.len()).filter(|k| !lost.contains(k)).collect();
        let exponents: Vec<u8> = there.iter().map(|k| exponent(*k)).collect();
        let (p, q) = (self.chunks(), self.chunks() + 1);
        let has_q = self.geometry.parities() == 2 && self.is_readable(q, row);
        let (has_p, lost_exponents) =
            (self.is_readable(p, row), lost.iter().map(|k| exponent(*k)).collect::<Vec<_>>());
        let read = |one: &mut Self, role: u16, is_there: bool| match is_there {
            true => one.page(role, row),
            false => Ok(Page::new()),
        };
        let (p, q) = (read(self, p, has_p)?, read(self, q, has_q)?);
        let sources: Vec<&[u8]> = there.iter().map(|k| &data[*k][..]).collect();
        let kernels = Kernels::default();
        let (mut one, mut other) = (vec![0; BYTES], vec![0; BYTES]);
        match (lost_exponents.as_slice(), has_p, has_q) {
            ([_], true, _) => kernels.recover_by_p(&mut one, &p, &sources),
            ([only], false, true) => {
                kernels.recover_by_q(&mut one, *only, &q, &sources, &exponents)
            }
            ([first, second], true, true) => {
                let targets = [&mut one[..], &mut other[..]];
                kernels.recover_two(targets, [*first, *second], (&p, &q), &sources, &exponents)
            }
            _ => return Err(broken("more members are missing than it can be replayed without")),
        }
        .map_err(parity)?;
        for (k, page) in lost.into_iter().zip([one, other]) {
            data[k] = page;
        }
        Ok(data)
    }

    fn chunks(&self) -> u16 {
        self.geometry.data_chunks()
    }

    /// The member with a role of the stripe of a row.
    fn member(&self, role: u16, row: u64) -> usize {
        let stripe = row / self.geometry.chunk().0;
        let member = match role.checked_sub(self.chunks()) {
            None => self.geometry.data_member(stripe, role),
            Some(0) => self.geometry.p_member(stripe),
            Some(_) => self.geometry.q_member(stripe).unwrap_or_default(),
        };
        member.at()
    }

    fn is_in_service(&self, member: usize) -> bool {
        self.out[member / 64] >> (member % 64) & 1 == 0
    }

    fn is_readable(&self, role: u16, row: u64) -> bool {
        let member = self.member(role, row);
        self.is_in_service(member) && row + PAGE <= self.joined.filled_to(member)
    }

    fn at(&self, member: usize, row: u64) -> Sector {
        Sector(self.joined.starts[member].0 + row)
    }

    /// A role's page of a row as it is on its member.
    fn page(&mut self, role: u16, row: u64) -> Result<Page, EngineError> {
        let member = self.member(role, row);
        let mut page = vec![0; BYTES];
        let at = self.at(member, row);
        self.members[member].read_direct(at, &mut page)?;
        Ok(page)
    }

    /// A page of the journal.
    fn logged(&mut self, one: &Superblock, place: u64) -> Result<Page, EngineError> {
        let mut page = vec![0; BYTES];
        let read = self.log.read_direct(Sector(one.data_offset + place), &mut page);
        read.map_err(|_| lost(self.log, one, &JournalDamage::Unreadable(place)))?;
        Ok(page)
    }

    /// Writes a role's page of a row; durable with the next flush.
    fn write_page(&mut self, role: u16, row: u64, page: &[u8]) -> Result<(), EngineError> {
        let member = self.member(role, row);
        if !self.is_in_service(member) {
            return Ok(());
        }
        let at = self.at(member, row);
        let written = put(&mut self.members[member], (at, page), false, REPLAY);
        self.note(member, written)
    }

    fn flush(&mut self) -> Result<(), EngineError> {
        for member in 0..usize::from(self.joined.layout.members) {
            if self.is_in_service(member) {
                let flushed = self.members[member].flush_direct(REPLAY);
                self.note(member, flushed)?;
            }
        }
        Ok(())
    }

    /// Whose failure it is.
    fn note(&mut self, member: usize, done: Result<(), EngineError>) -> Result<(), EngineError> {
        done.inspect_err(|_| *self.unwritable = Some(member))
    }
}

/// Has the superblocks of members and of the log device, in this order, say that the device with this number failed.
/// Until the first does the journal holds all that the device lacks; after that nobody believes it.
pub(super) fn record_failure<'a>(
    md: Md,
    devices: impl Iterator<Item = &'a mut Member>,
    number: u16,
) -> Result<(), EngineError> {
    let mut devices: Vec<&mut Member> = devices.collect();
    let mut places: Vec<_> = devices.iter_mut().map(|one| md.examine(*one).places).collect();
    let writes = tell_failed(&mut places, number);
    for (device, at, bytes) in writes.ok_or_else(|| broken("a superblock has no room"))? {
        write(devices[device], at, &bytes, REPLAY)?;
    }
    Ok(())
}

/// What is written of a row in which data stood alone.
struct Made {
    /// By their roles.
    pages: Vec<(u16, Page)>,
    /// It was made from parity as that was on the members: a second time it would not be the same.
    depends: bool,
}

fn broken(reason: &str) -> EngineError {
    EngineError::new(EngineErrorKind::Assemble, REPLAY, reason.to_owned())
}

fn parity(error: ParityError) -> EngineError {
    broken(&error.to_string())
}
