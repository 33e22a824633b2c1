//! The memory that payload lies in, by token.
//!
//! Every buffer is zeroed lazily by the kernel and starts where direct I/O of all members allows, but
//! buffers start at different places of their pages as far as that leaves a choice: parity is computed from
//! many of them at once, and those on the same place compete for the same few lines of the cache. A buffer
//! that a request is using cannot be looked at: [`Buffers::bytes`] refuses.
//!
//! **Who may use what at once.** Requests that only read their memory, writes of the array, may share it. What a
//! read of the array fills belongs to it alone until it is answered: the engine's thread computes parity from, and
//! into, memory that the kernel or another thread would be writing meanwhile, which is a data race; and a write
//! whose payload changed under way would leave parity that fits neither. [`Engine::submit`](crate::Engine::submit)
//! refuses both. Other parts of the same buffer are free.

use std::ptr::NonNull;

use raidlab_core::SECTOR_BYTES;
use raidlab_core::contract::{Scratch, Segment, Token};

use crate::error::{EngineError, EngineErrorKind};
use crate::member::{CacheState, Member};

/// Bytes in a sector, for memory.
const SECTOR: usize = SECTOR_BYTES as usize;

/// Where memory from the system is aligned to, in bytes: a page, which is all that direct I/O can ask for.
pub(crate) const ALIGNMENT: usize = 4096;

/// A run of bytes in memory that a member reads or writes, laid out as the system's `iovec`, so that a
/// list of them is handed to the kernel as it is.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Piece {
    /// Where it starts.
    pub start: *mut u8,
    /// Bytes.
    pub len: usize,
}

const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<Piece>() == size_of::<libc::iovec>());
    assert!(offset_of!(Piece, start) == offset_of!(libc::iovec, iov_base));
    assert!(offset_of!(Piece, len) == offset_of!(libc::iovec, iov_len));
};

// SAFETY: a piece is handed to one member thread at a time, and the buffer it lies in is neither freed
// nor looked at while the I/O is under way (`Buffers::bytes`, `FileMember`'s Drop).
unsafe impl Send for Piece {}

/// Memory from the system itself: on a page boundary, zero, and taken only as it is touched.
///
/// The global allocator would write zeroes to every page of a large aligned area at once.
#[derive(Debug)]
pub struct Area {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: an area is plain memory that only its owner gives out.
unsafe impl Send for Area {}

impl Area {
    /// So many bytes.
    ///
    /// # Errors
    /// [`EngineErrorKind::NoMemory`] when the system has no more.
    pub fn new(bytes: usize) -> Result<Self, EngineError> {
        let len = bytes.max(1);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory there is.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, -1, 0) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => Ok(Self { start, len }),
            _ => {
                let reason = format!("{bytes} bytes are not to be had");
                Err(EngineError::new(EngineErrorKind::NoMemory, "allocate a buffer", reason))
            }
        }
    }

    /// Where it starts.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// All of it. Sound only while nothing else uses it: callers hold it alone or check.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the allocation is that long, initialised, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// The same, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this length, unmapped once; nothing uses it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Who reads and writes the buffers besides the user, and what that asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Users {
    /// Where direct I/O allows a buffer to start, in bytes: a power of two up to [`ALIGNMENT`].
    alignment: usize,
    /// Payload is copied by the processor on its way to a member.
    copying: bool,
}

impl Users {
    fn of(members: &[Member]) -> Self {
        let direct = |member: &Member| matches!(member, Member::File(file) if file.cache_state() == CacheState::Direct);
        let there = |member: &Member| !matches!(member, Member::Null(_) | Member::Absent);
        let copies = |member: &Member| there(member) && !direct(member);
        // Nothing is known of members that are not named. Direct I/O often takes less than a page, but
        // 4 KiB that cross a page are two pieces to the device, which had cost a quarter of its rate.
        let pages = members.is_empty() || members.iter().any(direct);
        Self {
            alignment: if pages { ALIGNMENT } else { SECTOR },
            copying: members.is_empty() || members.iter().any(copies),
        }
    }

    /// How far into its first page buffer number `index` starts.
    fn stagger(&self, index: usize) -> usize {
        index % (ALIGNMENT / self.alignment) * self.alignment
    }
}

#[derive(Debug)]
struct Slot {
    area: Area,
    /// Where the buffer starts in the area.
    offset: usize,
    sectors: u64,
    /// Segments of unanswered requests that lie in this buffer.
    in_flight: u32,
    /// Segments of unanswered requests that have a part of each [`BLOCK`] of it, and [`FILLS`] times those that are
    /// filled. (Not a structure: numbers are zeroed by the system, when they are touched.)
    uses: Vec<u64>,
}

/// Who uses memory is counted for this many sectors together (4 KiB).
const BLOCK: u32 = 8;
/// One segment that is filled, in [`Slot::uses`].
const FILLS: u64 = 1 << 32;

impl Slot {
    fn bytes(&self) -> usize {
        self.sectors as usize * SECTOR
    }

    /// Of each block that a segment has a part of. Most are one whole block, for which no loop is set up.
    #[inline]
    fn uses(&mut self, segment: Segment, mut each: impl FnMut(&mut u64)) {
        let first = (segment.offset / BLOCK) as usize;
        if segment.len == BLOCK && segment.offset.is_multiple_of(BLOCK) {
            each(&mut self.uses[first]);
        } else {
            let end = u64::from(segment.offset) + u64::from(segment.len);
            let end = end.div_ceil(u64::from(BLOCK)) as usize;
            self.uses[first..end].iter_mut().for_each(each);
        }
    }
}

/// The buffers of one engine: those its user allocates, and the scratch buffers of the core.
#[derive(Debug)]
pub(crate) struct Buffers {
    slots: Vec<Option<Slot>>,
    scratch: Area,
    scratch_count: usize,
    scratch_bytes: usize,
    scratch_stride: usize,
    users: Users,
}

impl Buffers {
    /// Buffers for these members, with the scratch space the core asks for.
    pub(crate) fn for_members(scratch: Scratch, members: &[Member]) -> Result<Self, EngineError> {
        Self::used_by(scratch, Users::of(members))
    }

    fn used_by(scratch: Scratch, users: Users) -> Result<Self, EngineError> {
        let scratch_bytes = scratch.len as usize * SECTOR;
        // Each starts a step further within its page than the one before.
        let scratch_stride = scratch_bytes.next_multiple_of(ALIGNMENT) + users.stagger(1);
        let scratch_count = scratch.count as usize;
        let total = scratch_stride.saturating_mul(scratch_count);
        let scratch = Area::new(total)?;
        let slots = Vec::new();
        Ok(Self { slots, scratch, scratch_count, scratch_bytes, scratch_stride, users })
    }

    /// Whether what is put into a buffer for a member is copied from there by the processor.
    pub(crate) fn copying(&self) -> bool {
        self.users.copying
    }

    /// A new buffer of `bytes` bytes, all zero.
    ///
    /// # Errors
    /// When there is no such memory, or `bytes` is not a positive multiple of 512 below 2 TiB.
    pub(crate) fn allocate(&mut self, bytes: u64) -> Result<Token, EngineError> {
        let sectors = bytes / SECTOR_BYTES;
        if bytes == 0 || !bytes.is_multiple_of(SECTOR_BYTES) || u32::try_from(sectors).is_err() {
            let reason = format!("{bytes} bytes: must be a positive multiple of 512 below 2 TiB");
            return Err(EngineError::new(
                EngineErrorKind::InvalidRequest,
                "allocate a buffer",
                reason,
            ));
        }
        let bytes = bytes as usize;
        let free = self.slots.iter().position(Option::is_none);
        let index = free.unwrap_or(self.slots.len());
        // Half way round from the scratch buffer of the same number, which is used together with it.
        let offset = self.users.stagger(index + ALIGNMENT / self.users.alignment / 2);
        let uses = vec![0; (sectors as usize).div_ceil(BLOCK as usize)];
        let slot = Slot { area: Area::new(bytes + offset)?, offset, sectors, in_flight: 0, uses };
        if free.is_none() {
            self.slots.push(None);
        }
        self.slots[index] = Some(slot);
        Ok(Token(index as u32))
    }

    /// Gives a buffer back.
    ///
    /// # Errors
    /// When there is no such buffer, or a request is using it.
    pub(crate) fn release(&mut self, token: Token) -> Result<(), EngineError> {
        self.idle(token, "release a buffer")?;
        self.slots[token.0 as usize] = None;
        Ok(())
    }

    /// The contents of a buffer.
    ///
    /// # Errors
    /// When there is no such buffer, or a request is using it.
    pub(crate) fn bytes(&self, token: Token) -> Result<&[u8], EngineError> {
        let slot = self.idle(token, "look at a buffer")?;
        Ok(&slot.area.bytes()[slot.offset..][..slot.bytes()])
    }

    /// The contents of a buffer, to be changed.
    ///
    /// # Errors
    /// When there is no such buffer, or a request is using it.
    pub(crate) fn bytes_mut(&mut self, token: Token) -> Result<&mut [u8], EngineError> {
        self.idle(token, "fill a buffer")?;
        match self.slots[token.0 as usize].as_mut() {
            Some(slot) => {
                let (offset, bytes) = (slot.offset, slot.bytes());
                Ok(&mut slot.area.bytes_mut()[offset..][..bytes])
            }
            None => Ok(&mut []),
        }
    }

    fn idle(&self, token: Token, operation: &'static str) -> Result<&Slot, EngineError> {
        let slot = self.slots.get(token.0 as usize).and_then(Option::as_ref).ok_or_else(|| {
            let reason = format!("there is no buffer with token {}", token.0);
            EngineError::new(EngineErrorKind::InvalidRequest, operation, reason)
        })?;
        if slot.in_flight > 0 {
            let reason = format!("buffer {} belongs to a request under way", token.0);
            return Err(EngineError::new(EngineErrorKind::Busy, operation, reason));
        }
        Ok(slot)
    }

    /// Whether the segment lies within a buffer of the user's, which scratch is not.
    #[inline]
    pub(crate) fn fits(&self, segment: Segment) -> bool {
        let Some(Some(slot)) = self.slots.get(segment.token.0 as usize) else { return false };
        let end = u64::from(segment.offset) + u64::from(segment.len);
        end <= slot.sectors
    }

    /// The memory of a segment, scratch included; `None` when it does not lie within a buffer.
    #[inline]
    pub(crate) fn piece(&self, segment: Segment) -> Option<Piece> {
        let offset = segment.offset as usize * SECTOR;
        let len = segment.len as usize * SECTOR;
        let (start, bytes) = match Scratch::index(segment.token) {
            None => {
                let slot = self.slots.get(segment.token.0 as usize)?.as_ref()?;
                (slot.area.start().wrapping_add(slot.offset), slot.bytes())
            }
            Some(index) if index < self.scratch_count => {
                (self.scratch.start().wrapping_add(index * self.scratch_stride), self.scratch_bytes)
            }
            Some(_) => return None,
        };
        let inside = offset + len <= bytes;
        inside.then(|| Piece { start: start.wrapping_add(offset), len })
    }

    /// A request starts using a segment, which lies within its buffer, and `fills` or reads it. Whether it could meet
    /// one under way that does not bear it, as both have a part of one block: then their segments have to be compared.
    #[inline]
    pub(crate) fn hold(&mut self, segment: Segment, fills: bool) -> bool {
        let Some(Some(slot)) = self.slots.get_mut(segment.token.0 as usize) else { return false };
        slot.in_flight += 1;
        // What reads memory meets who fills it, what fills it anyone. All counts are joined and compared once, which
        // several blocks at a time do.
        let (one, unbearable) = if fills { (FILLS + 1, 0) } else { (1, FILLS - 1) };
        let mut all = 0;
        slot.uses(segment, |uses| {
            all |= *uses;
            *uses += one;
        });
        all > unbearable
    }

    /// A request that used a segment was answered.
    #[inline]
    pub(crate) fn let_go(&mut self, segment: Segment, fills: bool) {
        if let Some(Some(slot)) = self.slots.get_mut(segment.token.0 as usize) {
            slot.in_flight -= 1;
            let one = if fills { FILLS + 1 } else { 1 };
            slot.uses(segment, |uses| *uses -= one);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::{MemoryMember, NullMember};

    fn buffers() -> Buffers {
        Buffers::for_members(Scratch { count: 3, len: 9 }, &[]).unwrap()
    }

    #[test]
    fn buffers_are_aligned_zeroed_and_reused() {
        let mut buffers = buffers();
        let first = buffers.allocate(512).unwrap();
        let second = buffers.allocate(1 << 20).unwrap();
        for token in [first, second] {
            let bytes = buffers.bytes(token).unwrap();
            assert_eq!(bytes.as_ptr().align_offset(ALIGNMENT), 0);
            assert!(bytes.iter().all(|byte| *byte == 0));
        }
        assert_eq!(buffers.bytes(first).unwrap().len(), 512);
        buffers.release(first).unwrap();
        assert!(buffers.bytes(first).is_err());
        assert_eq!(buffers.allocate(4096).unwrap(), first);
        for wrong in [0, 511, 513, 1 << 42] {
            assert!(buffers.allocate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn buffers_start_at_different_places_of_their_pages_as_far_as_members_allow() {
        for alignment in [512, 1024, 4096] {
            let users = Users { alignment, copying: false };
            let mut buffers = Buffers::used_by(Scratch { count: 9, len: 16 }, users).unwrap();
            let mut places = Vec::new();
            for index in 0..9 {
                let token = buffers.allocate(4096).unwrap();
                let own = buffers.bytes(token).unwrap().as_ptr().addr();
                let segment = Segment { token, offset: 0, len: 8 };
                assert_eq!(buffers.piece(segment).unwrap().start.addr(), own);
                let token = Token(Scratch::FIRST + index);
                let segment = Segment { token, offset: 0, len: 16 };
                let scratch = buffers.piece(segment).unwrap().start.addr();
                assert!(own.is_multiple_of(alignment) && scratch.is_multiple_of(alignment));
                assert_eq!(own % 4096 == scratch % 4096, alignment == 4096);
                places.push(own % 4096);
                buffers.bytes_mut(Token(index)).unwrap().fill(index as u8 + 1);
            }
            for index in 0..9u8 {
                let bytes = buffers.bytes(Token(index.into())).unwrap();
                assert!(bytes.len() == 4096 && bytes.iter().all(|byte| *byte == index + 1));
            }
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), 4096 / alignment, "all places there are");
        }
    }

    #[test]
    fn what_members_ask_for() {
        let memory = Member::Memory(MemoryMember::new(raidlab_core::Sectors(8)).unwrap());
        let null = Member::Null(NullMember::new(raidlab_core::Sectors(8)));
        let cautious = Users { alignment: 4096, copying: true };
        assert_eq!(Users::of(&[]), cautious);
        assert_eq!(Users::of(&[null]), Users { alignment: 512, copying: false });
        let mixed = [Member::Null(NullMember::new(raidlab_core::Sectors(8))), memory];
        assert_eq!(Users::of(&mixed), Users { alignment: 512, copying: true });
        assert!(buffers().copying());
    }

    #[test]
    fn a_buffer_in_flight_is_out_of_reach() {
        let mut buffers = buffers();
        let token = buffers.allocate(8192).unwrap();
        let part = |offset, len| Segment { token, offset, len };
        assert!(!buffers.hold(part(2, 3), false));
        assert_eq!(buffers.bytes(token).unwrap_err().kind(), EngineErrorKind::Busy);
        assert_eq!(buffers.bytes_mut(token).unwrap_err().kind(), EngineErrorKind::Busy);
        assert_eq!(buffers.release(token).unwrap_err().kind(), EngineErrorKind::Busy);
        buffers.let_go(part(2, 3), false);
        assert!(buffers.bytes(token).is_ok());
    }

    #[test]
    fn who_has_a_part_of_one_block_has_to_be_compared() {
        let mut buffers = buffers();
        let token = buffers.allocate(8192).unwrap();
        let part = |offset, len| Segment { token, offset, len };
        let (held, near, far, both) = (part(2, 3), part(5, 1), part(8, 8), part(7, 2));
        // Who is under way, who comes, whether both bear it.
        let meets = |buffers: &mut Buffers, first: (Segment, bool), second: (Segment, bool)| {
            assert!(!buffers.hold(first.0, first.1), "nobody is there");
            let meets = buffers.hold(second.0, second.1);
            buffers.let_go(second.0, second.1);
            buffers.let_go(first.0, first.1);
            meets
        };
        let (reads, fills) = (false, true);
        for (one, other) in [(held, held), (held, near), (held, both), (far, both), (both, far)] {
            assert!(!meets(&mut buffers, (one, reads), (other, reads)));
            assert!(meets(&mut buffers, (one, reads), (other, fills)));
            assert!(meets(&mut buffers, (one, fills), (other, reads)));
            assert!(meets(&mut buffers, (one, fills), (other, fills)));
        }
        assert!(!meets(&mut buffers, (held, fills), (far, fills)));
        assert!(!meets(&mut buffers, (held, fills), (far, reads)));
    }

    #[test]
    fn segments_must_lie_within_their_buffer() {
        let mut buffers = buffers();
        let token = buffers.allocate(1024).unwrap();
        let at = |token, offset, len| Segment { token, offset, len };
        assert!(buffers.fits(at(token, 0, 2)) && buffers.fits(at(token, 1, 1)));
        assert!(!buffers.fits(at(token, 1, 2)) && !buffers.fits(at(token, u32::MAX, u32::MAX)));
        assert!(!buffers.fits(at(Token(77), 0, 1)));
        let scratch = |n| Token(Scratch::FIRST + n);
        assert!(!buffers.fits(at(scratch(0), 0, 1)), "scratch is not the user's");
        assert!(buffers.piece(at(scratch(2), 8, 1)).is_some());
        assert!(buffers.piece(at(scratch(2), 8, 2)).is_none());
        assert!(buffers.piece(at(scratch(3), 0, 1)).is_none());
        let one = buffers.piece(at(scratch(1), 0, 1)).unwrap();
        assert_eq!(one.start.align_offset(ALIGNMENT), 0);
    }
}
