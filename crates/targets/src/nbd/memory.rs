//! Memory for payload: buffers of an engine by size, kept for the next request, all of them within one limit.

use raidlab_core::contract::Token;
use raidlab_engine::{Engine, EngineError};

/// The smallest buffer, in bytes, as a power of two.
const SMALLEST: u32 = 12;
/// Sizes: 4 KiB to 32 MiB.
const SIZES: usize = 14;

/// How much memory all buffers of all arrays may take, and do, in bytes.
#[derive(Debug)]
pub(super) struct Budget {
    limit: u64,
    used: u64,
}

impl Budget {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, used: 0 }
    }

    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    pub(super) fn used(&self) -> u64 {
        self.used
    }

    fn has(&self, bytes: u64) -> bool {
        self.used + bytes <= self.limit
    }
}

/// Memory of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Buffer {
    pub(super) token: Token,
    size: u8,
}

impl Buffer {
    /// What it counts for.
    pub(super) fn bytes(self) -> u64 {
        bytes(self.size.into())
    }
}

fn bytes(size: usize) -> u64 {
    1 << (SMALLEST as usize + size)
}

/// The size that so many bytes need.
fn size(wanted: u64) -> usize {
    let bits = wanted.next_power_of_two().trailing_zeros();
    (bits.saturating_sub(SMALLEST) as usize).min(SIZES - 1)
}

/// What a request of so many bytes counts for.
pub(super) fn weight(wanted: u64) -> u64 {
    bytes(size(wanted))
}

/// Buffers of one engine.
#[derive(Debug, Default)]
pub(super) struct Pool {
    /// Those in no use, by size.
    free: [Vec<Token>; SIZES],
    /// Bytes of all of them.
    all: u64,
}

impl Pool {
    /// Memory of at least so many bytes, at most 32 MiB; `None` when there is none within the limit.
    ///
    /// # Errors
    /// When the system has none.
    #[inline]
    pub(super) fn take(
        &mut self,
        engine: &mut Engine,
        budget: &mut Budget,
        wanted: u64,
    ) -> Result<Option<Buffer>, EngineError> {
        let size = size(wanted);
        if let Some(token) = self.free[size].pop() {
            return Ok(Some(Buffer { token, size: size as u8 }));
        }
        if !budget.has(bytes(size)) {
            self.shrink(engine, budget)?;
            if !budget.has(bytes(size)) {
                return Ok(None);
            }
        }
        let token = engine.allocate(bytes(size))?;
        budget.used += bytes(size);
        self.all += bytes(size);
        Ok(Some(Buffer { token, size: size as u8 }))
    }

    /// Takes memory back.
    #[inline]
    pub(super) fn give(&mut self, buffer: Buffer) {
        self.free[usize::from(buffer.size)].push(buffer.token);
    }

    /// Gives what is in no use back to the system.
    ///
    /// # Errors
    /// A fault of raidlab itself.
    pub(super) fn shrink(
        &mut self,
        engine: &mut Engine,
        budget: &mut Budget,
    ) -> Result<(), EngineError> {
        for (size, free) in self.free.iter_mut().enumerate() {
            for token in free.drain(..) {
                engine.release(token)?;
                budget.used -= bytes(size);
                self.all -= bytes(size);
            }
        }
        Ok(())
    }
}

impl Pool {
    /// The engine is gone, and its buffers with it, whoever has them.
    pub(super) fn forget(&mut self, budget: &mut Budget) {
        budget.used -= std::mem::take(&mut self.all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_core::{Layout, Level, Sectors};
    use raidlab_engine::{EngineConfig, NullMember};

    #[test]
    fn memory_stays_within_the_limit_and_is_used_again() {
        let members = (0..2).map(|_| NullMember::new(Sectors(1 << 20)).into()).collect();
        let config = EngineConfig::new(Layout::new(Level::Raid0, 2));
        let mut engine = Engine::new(&config, members).unwrap();
        let (mut pool, mut budget) = (Pool::default(), Budget::new(64 << 10));
        let mut taken = Vec::new();
        while let Some(buffer) = pool.take(&mut engine, &mut budget, 4096).unwrap() {
            taken.push(buffer);
        }
        assert_eq!((taken.len(), budget.used()), (16, 64 << 10));
        // Larger ones take the place of smaller ones that are free.
        assert_eq!(pool.take(&mut engine, &mut budget, 5000).unwrap(), None);
        for buffer in taken.drain(..2) {
            pool.give(buffer);
        }
        let larger = pool.take(&mut engine, &mut budget, 5000).unwrap().unwrap();
        assert_eq!((larger.bytes(), budget.used()), (8192, 64 << 10));
        for buffer in taken.into_iter().chain([larger]) {
            pool.give(buffer);
        }
        pool.shrink(&mut engine, &mut budget).unwrap();
        assert_eq!(budget.used(), 0);
        assert_eq!((weight(1), weight(4097), weight(32 << 20)), (4096, 8192, 32 << 20));
    }
}
