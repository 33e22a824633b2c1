//! Ranges that are zeroed or discarded: part by part, since they may be as long as the array.

use raidlab_core::contract::{IoOp, RequestId};
use raidlab_core::geometry::Geometry;
use raidlab_core::{SECTOR_BYTES, Sector, Sectors};
use raidlab_engine::{Engine, EngineError};

/// What is zeroed or discarded at once, so that others have their turn: a drive of 100 MB/s writes it in a third of a
/// second.
const MOST: u64 = 32 << 20;

/// What is left of a range, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    at: u64,
    end: u64,
}

impl Range {
    pub(crate) const fn new(at: u64, len: u64) -> Self {
        Self { at, end: at.saturating_add(len) }
    }

    /// Whether all of it was handed over.
    pub(crate) const fn is_done(&self) -> bool {
        self.at >= self.end
    }

    /// Hands over the next part: parts end with stripes.
    ///
    /// # Errors
    /// As [`Engine::submit_range`].
    pub(crate) fn submit(
        &mut self,
        engine: &mut Engine,
        op: IoOp,
    ) -> Result<RequestId, EngineError> {
        let block = u64::from(engine.array().logical_block()) * SECTOR_BYTES;
        let unit = stripe(engine).unwrap_or(block);
        let most = (self.at + MOST.max(2 * unit)) / unit * unit;
        let (at, to) = (self.at, self.end.min(most));
        self.at = to;
        let len = Sectors((to - at) / SECTOR_BYTES);
        engine.submit_range(op, Sector(at / SECTOR_BYTES), len)
    }
}

/// Bytes that parity belongs to; a sector without parity, and `None` where it is not that simple.
pub(crate) fn stripe(engine: &Engine) -> Option<u64> {
    match engine.array().geometry() {
        Geometry::Parity(parity) => Some(parity.stripe_sectors() * SECTOR_BYTES),
        Geometry::Raid3(_) | Geometry::Nested(_) => None,
        _ => Some(SECTOR_BYTES),
    }
}
