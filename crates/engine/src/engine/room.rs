//! Room for a request on sparse member files, before the array begins with it.

use raidlab_core::contract::{IoOp, MemberIo};
use raidlab_core::{MemberIndex, Sector, Sectors};

use super::Engine;
use crate::error::{EngineError, EngineErrorKind};
use crate::member::Member;

impl Engine {
    /// Has room made for what a request writes, parity and records with it, at all members in service. A
    /// request that finds none changes nothing anywhere, and no member fails for it.
    #[inline]
    pub(super) fn make_room(
        &mut self,
        op: IoOp,
        at: Sector,
        len: Sectors,
    ) -> Result<(), EngineError> {
        if !self.has_files || !matches!(op, IoOp::Write | IoOp::WriteZeroes) {
            return Ok(());
        }
        let needs = |member: &Member| matches!(member, Member::File(file) if file.may_need_room());
        if self.members.iter().any(needs) { self.ask_for_room(at, len) } else { Ok(()) }
    }

    #[cold]
    fn ask_for_room(&mut self, at: Sector, len: Sectors) -> Result<(), EngineError> {
        self.ask_for_records()?;
        // What lies outside is refused by the array.
        let capacity = self.array.capacity();
        let end = at.0.saturating_add(len.0).min(capacity.0);
        let with_parity = self.array.layout().has_parity();
        let mut at = at;
        while at.0 < end {
            let geometry = self.array.geometry();
            let run = geometry.run(at).min(Sectors(end - at.0)).max(Sectors(1));
            for copy in 0..geometry.copies() {
                let place = self.array.geometry().place(at, copy);
                if with_parity {
                    // Parity lies in the same rows, of nested levels as of one.
                    for member in 0..self.count {
                        self.reserve_data(member, place.at, run)?;
                    }
                } else {
                    self.reserve_data(place.member.at(), place.at, run)?;
                }
            }
            at += run;
        }
        Ok(())
    }

    /// Whether an I/O writes zeroes where a sparse file has a hole: they are there, and take no room. What is
    /// made consistent or rebuilt is mostly that.
    #[cold]
    pub(super) fn is_in_hole(&self, io: MemberIo) -> bool {
        let Member::File(file) = &self.members[io.member.at()] else { return false };
        let len = Sectors(u64::from(io.len));
        let at = Sector(io.at.0 + self.starts[io.member.at()]);
        // A durable write makes more durable than itself.
        if io.op != IoOp::Write || io.fua || file.has_room(at, len) || !file.is_hole(at, len) {
            return false;
        }
        let pieces = self.array.segments(&io.segments).map(|one| self.buffers.piece(one));
        pieces.into_iter().all(|piece| {
            piece.is_some_and(|piece| {
                // SAFETY: the core lends the segments' memory to this I/O; nobody writes it meanwhile.
                let bytes = unsafe { std::slice::from_raw_parts(piece.start, piece.len) };
                bytes.chunks(64).all(|part| part.iter().fold(0, |all, byte| all | byte) == 0)
            })
        })
    }

    /// Room for superblocks, bitmap and logs.
    fn ask_for_records(&mut self) -> Result<(), EngineError> {
        for index in 0..self.count {
            let Some(metadata) = &self.metadata else { break };
            let places = metadata.records.places(MemberIndex(index as u16));
            let (from, len) = places.beside_data();
            let total = self.members[index].config().sectors;
            self.reserve(index, from, Sectors(total.0.saturating_sub(from.0)).min(len))?;
        }
        match self.members.last_mut() {
            Some(Member::File(log)) => log.reserve(Sector(0), log.sectors()),
            _ => Ok(()),
        }
    }

    /// Room for data at a member and at what is to replace it.
    fn reserve_data(&mut self, member: usize, at: Sector, len: Sectors) -> Result<(), EngineError> {
        self.reserve(member, Sector(at.0 + self.starts[member]), len)
    }

    /// Room at a member and at what is to replace it.
    fn reserve(&mut self, member: usize, at: Sector, len: Sectors) -> Result<(), EngineError> {
        for place in [member, member + self.count] {
            if self.array.is_failed(MemberIndex(place as u16)) {
                continue;
            }
            if let Some(Member::File(file)) = self.members.get_mut(place) {
                file.reserve(at, len)?;
            }
        }
        Ok(())
    }

    /// An error of this engine's, said in other words where members are lost for want of room.
    pub fn explain(&self, error: EngineError) -> EngineError {
        match error.kind() {
            EngineErrorKind::ArrayFailed => self.no_room().unwrap_or(error),
            _ => error,
        }
    }

    /// The error of a request that a member had no room for, where the filesystem said so only when it was
    /// written; `None` when no member was without room.
    pub fn no_room(&self) -> Option<EngineError> {
        let full = self.members.iter().find_map(|member| match member {
            Member::File(file) if file.was_full() => Some(file.path()),
            _ => None,
        })?;
        let reason = "its filesystem had no room for what was written; make room and bring it back";
        Some(EngineError::new(EngineErrorKind::NoRoom, "write a member", reason).at_path(full))
    }
}
