//! The memory that a process reads into and writes from: aligned for direct I/O, taken before it is
//! needed and kept, so that no operation allocates once its length has been seen.

use raidlab_engine::{Area, EngineError};
use raidlab_workload::{Content, content};

/// Memory that grows and keeps what is in it; what is new is zero.
#[derive(Debug, Default)]
pub(super) struct Block(Option<Area>);

impl Block {
    pub(super) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |area| area.bytes().len())
    }

    /// Makes it at least so long.
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<(), EngineError> {
        if self.len() >= bytes && self.0.is_some() {
            return Ok(());
        }
        // The system gives memory only as it is touched.
        let mut area = Area::new(bytes.max(1).next_power_of_two())?;
        if let Some(old) = &self.0 {
            area.bytes_mut()[..old.bytes().len()].copy_from_slice(old.bytes());
        }
        self.0 = Some(area);
        Ok(())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], Area::bytes)
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.as_mut().map_or(&mut [], Area::bytes_mut)
    }

    /// Where it starts, for I/O that is under way while nobody looks at it.
    pub(super) fn start(&self) -> *mut u8 {
        self.0.as_ref().map_or(std::ptr::null_mut(), Area::start)
    }
}

/// The memory of a process.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// The process's one buffer.
    buffer: Block,
    /// Apart from the buffer: writing zeroes leaves that as it is.
    zeroes: Block,
    /// How many bytes of `zeroes` have memory of their own: what was never touched would all be one page
    /// of the kernel's, which no program writes from.
    touched: usize,
    /// Bytes made from a seed, apart from the buffer for the same reason.
    made: Block,
}

impl Blocks {
    /// The buffer's first bytes, to read into.
    pub(super) fn buffer(&mut self, len: usize) -> &mut [u8] {
        &mut self.buffer.bytes_mut()[..len]
    }

    /// Takes memory for an operation before it begins.
    pub(super) fn reserve(
        &mut self,
        len: usize,
        content: Option<Content>,
    ) -> Result<(), EngineError> {
        match content {
            None | Some(Content::Stamp { .. }) => self.buffer.reserve(len),
            Some(Content::Buffer { from }) => self.buffer.reserve(from as usize + len),
            Some(Content::Zeroes) => {
                // "As long as its longest operation so far", whatever that writes.
                self.buffer.reserve(len)?;
                self.zeroes.reserve(len)?;
                if self.touched < len {
                    // The part before it was touched has been copied with a growth.
                    self.zeroes.bytes_mut()[self.touched..len].fill(0);
                    self.touched = len;
                }
                Ok(())
            }
            Some(Content::Seeded { .. }) => {
                self.buffer.reserve(len)?;
                self.made.reserve(len)
            }
        }
    }

    /// What write number `turn` of an operation puts down at byte `at` of the file; memory was reserved.
    #[inline]
    pub(super) fn content(&mut self, content: Content, len: usize, at: u64, turn: u64) -> &[u8] {
        match content {
            Content::Zeroes => &self.zeroes.bytes()[..len],
            Content::Buffer { from } => &self.buffer.bytes()[from as usize..from as usize + len],
            Content::Stamp { number } => {
                let bytes = &mut self.buffer.bytes_mut()[..len];
                if len > 0 {
                    let place = number.wrapping_add(turn) % len as u64;
                    let byte = &mut bytes[place as usize];
                    *byte = byte.wrapping_add(1);
                }
                bytes
            }
            Content::Seeded { seed } => {
                let bytes = &mut self.made.bytes_mut()[..len];
                content::fill(seed, at, bytes);
                bytes
            }
        }
    }
}

impl Blocks {
    /// Takes memory for [`made`](Self::made).
    pub(super) fn reserve_made(&mut self, len: usize) -> Result<(), EngineError> {
        self.made.reserve(len)
    }

    /// Memory apart from the buffer; what is in it goes with the next seeded write.
    pub(super) fn made(&mut self, len: usize) -> &mut [u8] {
        &mut self.made.bytes_mut()[..len]
    }
}
