//! The memory that payload lies in, by token.
//!
//! Every buffer starts on a multiple of 4,096 bytes, as direct I/O wants it, and is zeroed lazily by
//! the kernel. A buffer that a request is using cannot be looked at: [`Buffers::bytes`] refuses.

use std::ptr::NonNull;

use raidlab_core::SECTOR_BYTES;
use raidlab_core::contract::{Scratch, Segment, Token};

use crate::error::{EngineError, EngineErrorKind};

/// Where every buffer is aligned to, in bytes.
pub(crate) const ALIGNMENT: usize = 4096;

/// A run of bytes in memory that a member reads or writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) start: *mut u8,
    pub(crate) len: usize,
}

// SAFETY: a piece is handed to one member thread at a time, and the buffer it lies in is neither freed
// nor looked at while the I/O is under way (`Buffers::bytes`, `FileMember`'s Drop).
unsafe impl Send for Piece {}

/// Memory from the system itself: on a page boundary, zero, and taken only as it is touched.
///
/// The global allocator would write zeroes to every page of a large aligned area at once.
#[derive(Debug)]
pub(crate) struct Area {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: an area is plain memory that only its owner gives out.
unsafe impl Send for Area {}

impl Area {
    pub(crate) fn new(bytes: usize) -> Result<Self, EngineError> {
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

    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// All of it. Sound only while nothing else uses it: callers hold it alone or check.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the allocation is that long, initialised, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
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

#[derive(Debug)]
struct Slot {
    area: Area,
    bytes: usize,
    /// Segments of unanswered requests that lie in this buffer.
    in_flight: u32,
}

/// The buffers of one engine: those its user allocates, and the scratch buffers of the core.
#[derive(Debug)]
pub(crate) struct Buffers {
    slots: Vec<Option<Slot>>,
    scratch: Area,
    scratch_count: usize,
    scratch_bytes: usize,
    scratch_stride: usize,
}

impl Buffers {
    /// Buffers with the scratch space the core asks for.
    pub(crate) fn new(scratch: Scratch) -> Result<Self, EngineError> {
        let scratch_bytes = scratch.len as usize * SECTOR_BYTES as usize;
        let scratch_stride = scratch_bytes.next_multiple_of(ALIGNMENT);
        let scratch_count = scratch.count as usize;
        let total = scratch_stride.saturating_mul(scratch_count);
        let area = Area::new(total)?;
        Ok(Self { slots: Vec::new(), scratch: area, scratch_count, scratch_bytes, scratch_stride })
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
        let slot = Slot { area: Area::new(bytes as usize)?, bytes: bytes as usize, in_flight: 0 };
        let free = self.slots.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
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
        Ok(&slot.area.bytes()[..slot.bytes])
    }

    /// The contents of a buffer, to be changed.
    ///
    /// # Errors
    /// When there is no such buffer, or a request is using it.
    pub(crate) fn bytes_mut(&mut self, token: Token) -> Result<&mut [u8], EngineError> {
        self.idle(token, "fill a buffer")?;
        match self.slots[token.0 as usize].as_mut() {
            Some(slot) => Ok(&mut slot.area.bytes_mut()[..slot.bytes]),
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

    /// Whether the segment lies within a buffer of the user's.
    pub(crate) fn fits(&self, segment: Segment) -> bool {
        Scratch::index(segment.token).is_none() && self.piece(segment).is_some()
    }

    /// The memory of a segment, scratch included; `None` when it does not lie within a buffer.
    #[inline]
    pub(crate) fn piece(&self, segment: Segment) -> Option<Piece> {
        let offset = segment.offset as usize * SECTOR_BYTES as usize;
        let len = segment.len as usize * SECTOR_BYTES as usize;
        let (start, bytes) = match Scratch::index(segment.token) {
            None => {
                let slot = self.slots.get(segment.token.0 as usize)?.as_ref()?;
                (slot.area.start(), slot.bytes)
            }
            Some(index) if index < self.scratch_count => {
                (self.scratch.start().wrapping_add(index * self.scratch_stride), self.scratch_bytes)
            }
            Some(_) => return None,
        };
        let inside = offset + len <= bytes;
        inside.then(|| Piece { start: start.wrapping_add(offset), len })
    }

    /// A request starts using a buffer.
    #[inline]
    pub(crate) fn hold(&mut self, token: Token) {
        if let Some(Some(slot)) = self.slots.get_mut(token.0 as usize) {
            slot.in_flight += 1;
        }
    }

    /// A request that used a buffer was answered.
    #[inline]
    pub(crate) fn let_go(&mut self, token: Token) {
        if let Some(Some(slot)) = self.slots.get_mut(token.0 as usize) {
            slot.in_flight -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffers() -> Buffers {
        Buffers::new(Scratch { count: 3, len: 9 }).unwrap()
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
    fn a_buffer_in_flight_is_out_of_reach() {
        let mut buffers = buffers();
        let token = buffers.allocate(512).unwrap();
        buffers.hold(token);
        assert_eq!(buffers.bytes(token).unwrap_err().kind(), EngineErrorKind::Busy);
        assert_eq!(buffers.bytes_mut(token).unwrap_err().kind(), EngineErrorKind::Busy);
        assert_eq!(buffers.release(token).unwrap_err().kind(), EngineErrorKind::Busy);
        buffers.let_go(token);
        assert!(buffers.bytes(token).is_ok());
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
