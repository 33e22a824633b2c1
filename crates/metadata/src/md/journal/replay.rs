//! What stands in md's journal when an array starts, written out before the array does anything.
//!
//! Fault model: a crash at any point of it, members that are missing or being rebuilt, a journal of any bytes.
//! Why it is safe: rows with data and parity are written as they stand, so that a replay that was interrupted is done
//! again. Data without parity (md's write-back mode) are logged with the parity that is made of them, behind everything
//! that is found, before the tail moves there and any of them is written: parity made of what is on the members is not
//! to be made a second time of half of what replaced it. Parity that was logged before data that stand alone is never
//! written: rows stand in the journal until long after they are durable, and with one of two parities out of service
//! data were written through. A chunk of such a row that is missing is computed of it or of the members' parity
//! ([`Replay::older`]).
//! The tail moves when all that is before it is durable on the members, to a block without pages, with a number that
//! nothing left in the ring has. A member that fails meanwhile, or that is left out although superblocks have it in
//! service, is known to the others before that
//! ([`Joined::untold`]), and the replay begins anew without it.
//!
//! The engine and the checker both replay by it: what is checked is what runs. Tests: `tests/md/journal_replay.rs`, the
//! checker's with md's journal, and the engine's `tests/md_journal.rs`, `tests/md_journal_replay.rs`,
//! `tests/md_journal_guest.rs`.

use std::collections::BTreeMap;

use raidlab_core::contract::MemberBits;
use raidlab_core::geometry::Parity;
use raidlab_core::{Sector, Sectors};

use super::{
    BLOCK, Journal, JournalDamage, JournalFound, JournalRow, PAGE, Superblock, begin_anew, recover,
};
use crate::md::{Joined, Md, inspect};
use crate::{Looked, MetadataFormat, Source};

type Page = Vec<u8>;

/// The devices of an array whose journal is replayed, and what is computed of what they hold.
pub trait ReplayDevices {
    /// What is wrong with a device.
    type Error;

    /// Reads sectors of a member's device.
    ///
    /// # Errors
    /// When not all of them can be read.
    fn read(&mut self, member: usize, at: Sector, into: &mut [u8]) -> Result<(), Self::Error>;

    /// Writes sectors of a member's device, durable with the next flush.
    ///
    /// # Errors
    /// When not all of them can be written.
    fn write(&mut self, member: usize, at: Sector, bytes: &[u8]) -> Result<(), Self::Error>;

    /// Makes durable what was written to a member.
    ///
    /// # Errors
    /// When it is not known to be.
    fn flush(&mut self, member: usize) -> Result<(), Self::Error>;

    /// Looks at the log device.
    fn with_log<T>(&mut self, look: impl FnOnce(&mut dyn Source) -> T) -> T;

    /// Writes sectors of the log device, durably.
    ///
    /// # Errors
    /// When not all of them can be written.
    fn write_log(&mut self, at: Sector, bytes: &[u8]) -> Result<(), Self::Error>;

    /// Makes P of these chunks, and where it is wanted Q by the exponent of each.
    ///
    /// # Errors
    /// When there are too many.
    fn parities(
        &mut self,
        sources: &[&[u8]],
        exponents: &[u8],
        into: (&mut [u8], Option<&mut [u8]>),
    ) -> Result<(), Self::Error>;

    /// Makes one or two chunks with these exponents, which are lost, of the others and of as many parities as are given
    /// and needed; the first parity where either would do.
    ///
    /// # Errors
    /// When there are too many.
    fn recover(
        &mut self,
        lost: &[u8],
        parities: [Option<&[u8]>; 2],
        others: (&[&[u8]], &[u8]),
        into: [&mut [u8]; 2],
    ) -> Result<(), Self::Error>;
}

/// Why a journal is not replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayError<E> {
    /// A device, or what is computed of what it holds.
    Device(E),
    /// This member could not be written.
    Member(usize, E),
    /// What stands there, or is not known to.
    Journal(JournalDamage),
    /// Something else, in words.
    Other(&'static str),
}

/// How many rows were written out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// With the parity that stood there, too.
    pub whole: u64,
    /// With parity that was made of them.
    pub alone: u64,
}

/// A journal that is being replayed.
#[derive(Debug)]
pub struct Replay<'a, D> {
    /// The array that starts.
    pub joined: &'a Joined,
    /// How its rows lie.
    pub geometry: &'a Parity,
    /// Members that are out of service.
    pub out: MemberBits,
    /// Its devices.
    pub devices: D,
    /// How the log device is written.
    pub md: Md,
}

impl<D: ReplayDevices> Replay<'_, D> {
    /// Replays it, and begins it anew, with this number where nothing was logged before; what the log device carries
    /// then.
    ///
    /// # Errors
    /// [`ReplayError`].
    pub fn run(mut self, random: u32) -> Result<(Looked, Replayed), ReplayError<D::Error>> {
        let inspected = self.devices.with_log(|log| inspect(log));
        let Some(one) = inspected.superblock() else {
            return Err(ReplayError::Other("it has no superblock"));
        };
        let found = self.devices.with_log(|log| recover(log, one));
        let mut found = found.map_err(ReplayError::Journal)?;
        let mut replayed = Replayed::default();
        for (row, journalled) in &found.rows {
            if journalled.alone.is_empty() {
                replayed.whole += 1;
                self.write_whole(one, *row, journalled)?;
            } else {
                replayed.alone += 1;
            }
        }
        self.flush()?;
        let mut tail = self.begin_anew(one, &found, random)?;
        if replayed.alone > 0 {
            let anew = one.with_tail(tail);
            found.next = Some(self.replay_alone(one, &anew, &found)?);
            tail = self.begin_anew(one, &found, random)?;
        }
        self.move_tail(tail)?;
        Ok((self.examine(), replayed))
    }

    fn examine(&mut self) -> Looked {
        let md = self.md;
        self.devices.with_log(|log| md.examine(log))
    }

    /// Writes a block without pages behind what was found, and gives its place.
    fn begin_anew(
        &mut self,
        one: &Superblock,
        found: &JournalFound,
        random: u32,
    ) -> Result<u64, ReplayError<D::Error>> {
        let (position, block) = begin_anew(&one.array, found, random);
        self.write_log(Sector(one.data_offset + position), &block)?;
        Ok(position)
    }

    /// Has the log device's superblock name this tail.
    fn move_tail(&mut self, tail: u64) -> Result<(), ReplayError<D::Error>> {
        let mut looked = self.examine();
        let put = looked.places.with_journal_tail(tail);
        let Some((at, bytes)) = put else {
            return Err(ReplayError::Other("its superblock has no room"));
        };
        self.write_log(at, &bytes)
    }

    fn write_log(&mut self, at: Sector, bytes: &[u8]) -> Result<(), ReplayError<D::Error>> {
        self.devices.write_log(at, bytes).map_err(ReplayError::Device)
    }

    /// Writes a row's data and the parity that stood with them.
    fn write_whole(
        &mut self,
        one: &Superblock,
        row: u64,
        journalled: &JournalRow,
    ) -> Result<(), ReplayError<D::Error>> {
        let Some(parity) = journalled.parity else { return Ok(()) };
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
    ) -> Result<(u64, u64), ReplayError<D::Error>> {
        let rows = || found.rows.iter().filter(|(_, row)| !row.alone.is_empty());
        let log = self.devices.with_log(|log| Journal::of(log, anew));
        let Some(mut log) = log else {
            return Err(ReplayError::Other("it could not be begun anew"));
        };
        // A block for each row, and those that fill the end of the ring.
        let pages = |row: &JournalRow| row.newest().len() as u64 + 3;
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
                return Err(ReplayError::Other(
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
    ) -> Result<(), ReplayError<D::Error>> {
        let mut roles = [0; 2];
        pages.iter().for_each(|(role, _)| roles[usize::from(role / 64)] |= 1 << (role % 64));
        let entry = log.entry(row, roles);
        let rows = log.rows(&entry).ok_or(ReplayError::Other("a row is not whole"))?;
        let sums: Vec<u32> =
            pages.iter().map(|(_, page)| log.sum(std::iter::once(&page[..]))).collect();
        loop {
            log.begin();
            let has_room = log.takes(&rows);
            if has_room {
                log.add(&rows, 0, &sums);
            }
            let mut bytes = vec![0; BLOCK];
            let put = log.put(&mut bytes).ok_or(ReplayError::Other("it is full"))?;
            if has_room {
                pages.iter().for_each(|(_, page)| bytes.extend(page));
            }
            debug_assert!(put.at.0 >= one.data_offset, "a block lies in the ring");
            self.write_log(put.at, &bytes)?;
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
    ) -> Result<Made, ReplayError<D::Error>> {
        let stripe = row / self.geometry.chunk().0;
        let new = journalled.newest();
        let mut data = Vec::new();
        let mut depends = false;
        for k in 0..self.chunks() {
            data.push(match new.contains_key(&k) {
                true => Page::new(),
                false => self.page(k, row).unwrap_or_default(),
            });
            depends |= data[usize::from(k)].is_empty() && !new.contains_key(&k);
        }
        if depends {
            data = self.older(one, row, journalled)?;
        }
        for (k, place) in &new {
            data[usize::from(*k)] = self.logged(one, *place)?;
        }
        let exponents: Vec<u8> =
            (0..self.chunks()).map(|k| self.geometry.q_exponent(stripe, k)).collect();
        let sources: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
        let (mut p, mut q) = (vec![0; BLOCK], vec![0; BLOCK]);
        let has_q = self.geometry.parities() == 2;
        let into = (&mut p[..], has_q.then_some(&mut q[..]));
        self.devices.parities(&sources, &exponents, into).map_err(ReplayError::Device)?;
        let mut pages: Vec<(u16, Page)> = Vec::new();
        for k in new.keys() {
            pages.push((*k, std::mem::take(&mut data[usize::from(*k)])));
        }
        let both = (self.chunks()..).zip([p, q]).take(usize::from(self.geometry.parities()));
        pages.extend(both);
        Ok(Made { pages, depends })
    }

    /// All data of a row in which data stand alone, as some parity has them, those that cannot be read made of that.
    ///
    /// Where parity was logged before, with data, either that has what is missing, with these data and what the others
    /// held before the newer ones, or the members' parity has it, with all that is logged. It is decided by what both
    /// leave alone until all of it is logged anew, so that a replay that was cut off is done again as it was begun.
    fn older(
        &mut self,
        one: &Superblock,
        row: u64,
        journalled: &JournalRow,
    ) -> Result<Vec<Page>, ReplayError<D::Error>> {
        let on_members = [self.page(self.chunks(), row), self.second_parity(row)];
        let Some(places) = journalled.parity.filter(|_| !journalled.data.is_empty()) else {
            return self.recovered(row, &BTreeMap::new(), &on_members);
        };
        let mut logged = [None, None];
        for (page, place) in logged.iter_mut().zip(places).take(self.parities()) {
            *page = Some(self.logged(one, place)?);
        }
        let first = self.all_logged(one, &journalled.data)?;
        let others = (0..self.chunks()).filter(|k| !first.contains_key(k));
        let lost = others.filter(|k| self.page(*k, row).is_none()).count();
        if let ([Some(_), Some(_)], 1) = (&logged, lost) {
            // Both that were logged have it, and agree about it unless newer data have replaced what they are of.
            let [p, q] = logged.clone();
            let by_p = self.recovered(row, &first, &[p, None])?;
            if by_p == self.recovered(row, &first, &[None, q])? {
                return Ok(by_p);
            }
        } else if !self.is_newest_on_members(one, row, journalled)? || is_same(&on_members, &logged)
        {
            return self.recovered(row, &first, &logged);
        }
        let newest = self.all_logged(one, &journalled.newest())?;
        self.recovered(row, &newest, &on_members)
    }

    /// Whether the members hold everything that is logged of a row, as far as they can be read, and anything of it that
    /// stands alone and was not logged before. What an array has written without one of its parities was made durable
    /// before that parity is back.
    fn is_newest_on_members(
        &mut self,
        one: &Superblock,
        row: u64,
        journalled: &JournalRow,
    ) -> Result<bool, ReplayError<D::Error>> {
        let mut is_any = false;
        for (k, place) in journalled.newest() {
            let Some(page) = self.page(k, row) else { continue };
            if page != self.logged(one, place)? {
                return Ok(false);
            }
            is_any |= !journalled.data.contains_key(&k);
        }
        Ok(is_any)
    }

    /// All data of a row, of pages that are known and what is on the members; those that are neither made of parity.
    fn recovered(
        &mut self,
        row: u64,
        known: &BTreeMap<u16, Page>,
        [p, q]: &[Option<Page>; 2],
    ) -> Result<Vec<Page>, ReplayError<D::Error>> {
        let stripe = row / self.geometry.chunk().0;
        let mut data = Vec::new();
        let mut lost = Vec::new();
        for k in 0..self.chunks() {
            let page = known.get(&k).cloned().or_else(|| self.page(k, row));
            if page.is_none() {
                lost.push(usize::from(k));
            }
            data.push(page.unwrap_or_default());
        }
        let exponent = |k: usize| self.geometry.q_exponent(stripe, k as u16);
        let there: Vec<usize> = (0..data.len()).filter(|k| !lost.contains(k)).collect();
        let exponents: Vec<u8> = there.iter().map(|k| exponent(*k)).collect();
        let lost_exponents: Vec<u8> = lost.iter().map(|k| exponent(*k)).collect();
        if lost.is_empty() || lost.len() > p.iter().chain(q).count() {
            let why = "more members are missing than it can be replayed without";
            return Err(ReplayError::Other(why));
        }
        let sources: Vec<&[u8]> = there.iter().map(|k| &data[*k][..]).collect();
        let (mut one, mut other) = (vec![0; BLOCK], vec![0; BLOCK]);
        self.devices
            .recover(
                &lost_exponents,
                [p.as_deref(), q.as_deref()],
                (&sources, &exponents),
                [&mut one, &mut other],
            )
            .map_err(ReplayError::Device)?;
        for (k, page) in lost.into_iter().zip([one, other]) {
            data[k] = page;
        }
        Ok(data)
    }

    fn parities(&self) -> usize {
        usize::from(self.geometry.parities())
    }

    /// Q of a row as it is on its member.
    fn second_parity(&mut self, row: u64) -> Option<Page> {
        if self.parities() == 2 { self.page(self.chunks() + 1, row) } else { None }
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
        self.is_in_service(member)
            && row + PAGE <= self.joined.filled_to(member)
            && !self.joined.is_listed(member, Sector(row), Sectors(PAGE))
    }

    fn at(&self, member: usize, row: u64) -> Sector {
        Sector(self.joined.starts[member].0 + row)
    }

    /// A role's page of a row as it is on its member; `None` of one that is out of service, that its list calls bad, or
    /// that cannot be read: it is made of the others.
    fn page(&mut self, role: u16, row: u64) -> Option<Page> {
        if !self.is_readable(role, row) {
            return None;
        }
        let member = self.member(role, row);
        let mut page = vec![0; BLOCK];
        let at = self.at(member, row);
        self.devices.read(member, at, &mut page).ok().map(|()| page)
    }

    /// These pages of the journal.
    fn all_logged(
        &mut self,
        one: &Superblock,
        places: &BTreeMap<u16, u64>,
    ) -> Result<BTreeMap<u16, Page>, ReplayError<D::Error>> {
        places.iter().map(|(k, place)| Ok((*k, self.logged(one, *place)?))).collect()
    }

    /// A page of the journal.
    fn logged(&mut self, one: &Superblock, place: u64) -> Result<Page, ReplayError<D::Error>> {
        let mut page = vec![0; BLOCK];
        let at = Sector(one.data_offset + place);
        let read = self.devices.with_log(|log| log.read(at, &mut page));
        read.map_err(|_| ReplayError::Journal(JournalDamage::Unreadable(place)))?;
        Ok(page)
    }

    /// Writes a role's page of a row; durable with the next flush.
    fn write_page(
        &mut self,
        role: u16,
        row: u64,
        page: &[u8],
    ) -> Result<(), ReplayError<D::Error>> {
        let member = self.member(role, row);
        if !self.is_in_service(member) {
            return Ok(());
        }
        let at = self.at(member, row);
        let written = self.devices.write(member, at, page);
        written.map_err(|error| ReplayError::Member(member, error))
    }

    fn flush(&mut self) -> Result<(), ReplayError<D::Error>> {
        for member in 0..usize::from(self.joined.layout.members) {
            if self.is_in_service(member) {
                let flushed = self.devices.flush(member);
                flushed.map_err(|error| ReplayError::Member(member, error))?;
            }
        }
        Ok(())
    }
}

/// Whether parities that are on members are the logged ones.
fn is_same(on_members: &[Option<Page>; 2], logged: &[Option<Page>; 2]) -> bool {
    let mut both = on_members.iter().zip(logged).filter(|(page, _)| page.is_some());
    both.all(|(page, logged)| page == logged)
}

/// What is written of a row in which data stood alone.
struct Made {
    /// By their roles.
    pages: Vec<(u16, Page)>,
    /// It was made from parity as that was on the members: a second time it would not be the same.
    depends: bool,
}
