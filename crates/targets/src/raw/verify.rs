//! Finds wrong bytes: in what was read, and on the members themselves.

use std::sync::atomic::{AtomicBool, Ordering};

use raidlab_core::geometry::Place;
use raidlab_core::{MemberIndex, SECTOR_BYTES, Sector, Sectors};
use raidlab_engine::{EngineError, EngineErrorKind, Member, Mismatch};
use raidlab_workload::processes::Asked;
use raidlab_workload::raw::Request;

use super::batch::Client;
use super::known::{Area, Expected, Known, Wrong, sweep};
use super::pattern::{self, BLOCK};
use super::{RawTarget, Source};

/// Bytes in a sector, for buffers.
const SECTOR: usize = SECTOR_BYTES as usize;
impl RawTarget {
    /// Checks every read of a batch.
    pub(super) fn verify_batch<S: Source>(
        &mut self,
        client: &mut Client<'_, S>,
        cancel: &AtomicBool,
    ) -> Result<(), EngineError> {
        let Some(token) = client.token else { return Ok(()) };
        let begun = client.prepared[..client.cursor].iter().filter_map(Asked::operation);
        for read in begun {
            let Request::Read(at, len) = read.request else { continue };
            if cancel.load(Ordering::Relaxed) {
                return Err(EngineError::cancelled("verify the bytes read"));
            }
            let all = self.engine.bytes(token)?;
            let bytes = &all[read.offset as usize..(read.offset + len) as usize];
            let versions = &self.expected[read.expected..];
            let found = bytes.chunks_exact(BLOCK as usize).zip(versions).enumerate().find_map(
                |(n, (block, version))| {
                    let at = at + n as u64 * BLOCK;
                    if *version == 0 && !self.zeroed {
                        return None;
                    }
                    let position = pattern::first_difference(at, *version, block)?;
                    let wrong = (at + position as u64, *version, block[position]);
                    Some(wrong)
                },
            );
            if let Some((offset, version, found)) = found {
                let mismatch = self.locate(offset, version, found, at + len, cancel)?;
                return Err(EngineError::from_mismatch(mismatch));
            }
        }
        Ok(())
    }

    /// Finds the member that a wrong byte came from, of a read up to `end`.
    fn locate(
        &mut self,
        offset: u64,
        version: u32,
        found: u8,
        end: u64,
        cancel: &AtomicBool,
    ) -> Result<Mismatch, EngineError> {
        // Each copy of what was read, from the wrong byte's sector to the end of the read.
        for sector in offset / SECTOR_BYTES..end / SECTOR_BYTES {
            for copy in 0..self.engine.array().geometry().copies() {
                let place = self.engine.array().geometry().place(Sector(sector), copy);
                if let Some(mismatch) = self.check_sector(place)? {
                    return Ok(mismatch);
                }
            }
        }
        // Not there: it may have been computed from other members.
        if let Some(mismatch) = self.verify_members(cancel)?.into_iter().next() {
            return Ok(mismatch);
        }
        let mut expected = [0; BLOCK as usize];
        pattern::fill(offset / BLOCK * BLOCK, version, &mut expected);
        Ok(Mismatch {
            member: None,
            member_offset: 0,
            array_offset: Some(offset),
            holding: None,
            expected: expected[(offset % BLOCK) as usize],
            found,
            confirmed: true,
        })
    }

    /// Reads the block of a member around one sector and checks that sector.
    fn check_sector(&mut self, place: Place) -> Result<Option<Mismatch>, EngineError> {
        let array = self.engine.array();
        if array.is_failed(place.member) || place.at >= array.good_to(place.member) {
            return Ok(None);
        }
        let start = self.engine.data_start(place.member);
        let Some(member) = self.engine.member_mut(place.member) else { return Ok(None) };
        let block = u64::from(member.config().logical_block);
        let from = Sector(place.at.0 / block * block);
        let mut bytes = vec![0; block as usize * SECTOR];
        member.read_direct(from + start, &mut bytes)?;
        let skip = (place.at.0 - from.0) as usize * SECTOR;
        Ok(self.compare(place, &bytes[skip..skip + SECTOR]))
    }

    /// Reads everything the array keeps on its members and checks it: data copies against the pattern,
    /// P and Q against those of the pattern of their stripe. Untimed. Members out of service are left out,
    /// and what is not rebuilt yet.
    ///
    /// Gives the first wrong byte of each member, after a second look at its sector; one that is right then is not
    /// [`confirmed`](Mismatch::confirmed).
    ///
    /// # Errors
    /// When a member cannot be read, [`EngineErrorKind::NotSupported`] for null members,
    /// [`EngineErrorKind::Busy`] while requests are outstanding, [`EngineErrorKind::Cancelled`].
    pub fn verify_members(&mut self, cancel: &AtomicBool) -> Result<Vec<Mismatch>, EngineError> {
        if self.engine.outstanding() > 0 {
            let reason = "requests are outstanding";
            return Err(EngineError::new(EngineErrorKind::Busy, "verify the members", reason));
        }
        let array = self.engine.array();
        let geometry = array.geometry().clone();
        let mut areas = Vec::new();
        for (index, member) in self.engine.members().iter().enumerate() {
            let index = MemberIndex(index as u16);
            let start = self.engine.data_start(index);
            let block = u64::from(member.config().logical_block);
            let used = geometry.used(index).0;
            let room = member.config().sectors.0.saturating_sub(start.0);
            let whole = used.next_multiple_of(block).min(room);
            // A member being rebuilt is good so far only.
            let end = whole.min(array.good_to(index).0 / block * block);
            areas.push(Area { start, end: if array.is_failed(index) { 0 } else { end } });
        }
        let (members, versions) = (self.engine.members().len() as u16, &self.versions);
        let known = Known { members, geometry, versions, zeroed: self.zeroed };
        let wrong = sweep(self.engine.members_mut(), &areas, &known, cancel)?;
        let mut found = Vec::new();
        for Wrong { place, bytes } in wrong {
            let second = self.check_sector(place)?;
            let unconfirmed = |first| Mismatch { confirmed: false, ..first };
            found.extend(second.or_else(|| self.compare(place, &bytes).map(unconfirmed)));
        }
        Ok(found)
    }

    /// Compares one sector of a member with what it should hold.
    fn compare(&self, place: Place, found: &[u8]) -> Option<Mismatch> {
        let mut expected = [0; SECTOR];
        let (holding, at) = match self.expected_sector(place, &mut expected) {
            Expected::Bytes(holding, at) => (holding, at),
            Expected::Unknown => return None,
        };
        let position = (0..SECTOR).find(|i| expected[*i] != found[*i])?;
        let before = self.engine.members().get(place.member.at()).map_or(0, Member::data_offset);
        let data_offset = before + self.engine.data_start(place.member).bytes();
        Some(Mismatch {
            member: Some(place.member),
            member_offset: data_offset + place.at.bytes() + position as u64,
            array_offset: at.map(|at| at.bytes() + position as u64),
            holding: Some(holding),
            expected: expected[position],
            found: found[position],
            confirmed: true,
        })
    }

    fn expected_sector(&self, place: Place, into: &mut [u8; SECTOR]) -> Expected {
        let geometry = self.engine.array().geometry().clone();
        let (members, versions) = (self.engine.members().len() as u16, &self.versions);
        let known = Known { members, geometry, versions, zeroed: self.zeroed };
        known.sector(place, into)
    }

    /// Sectors of the array that a write has reached; the rest is as it was at the start.
    pub fn written(&self) -> Sectors {
        Sectors(self.versions.written().count() as u64 * BLOCK / SECTOR_BYTES)
    }
}
