//! What clients are told of blocks: which are zero, as far as that is proven, and where redundancy is
//! not whole.

use raidlab_core::{SECTOR_BYTES, Sector};
use raidlab_engine::Engine;
use raidlab_nbd::Extent;

/// The contexts of every export.
pub(super) const CONTEXTS: [&str; 2] = ["base:allocation", REDUNDANCY];
/// Of `raidlab:redundancy`: [`DEGRADED`], [`REBUILDING`], [`UNSYNCED`].
const REDUNDANCY: &str = "raidlab:redundancy";

/// A member that has a part of it is missing: less can be lost than the level survives.
const DEGRADED: u64 = 1;
/// A member that has a part of it is being rebuilt, and that part is not there yet.
const REBUILDING: u64 = 2;
/// Copies or parity may disagree, after an unclean stop or since the array was made.
const UNSYNCED: u64 = 4;

/// Places that are looked at for one answer; what is behind them the client asks for again.
pub(super) const MOST_LOOKS: usize = 1024;

/// Extents of a context from a byte on, at least one, up to a length or less; and how many places were looked at.
pub(super) fn extents(engine: &Engine, context: &str, at: u64, len: u64) -> (Vec<Extent>, usize) {
    let sector = |bytes: u64| bytes / SECTOR_BYTES;
    let (from, end) = (Sector(sector(at)), Sector(sector(at + len)));
    let state = |at: Sector| match context {
        REDUNDANCY => redundancy(engine, at, end),
        _ => {
            let (is_zero, sectors) = engine.zero_run(at, end - at);
            (if is_zero { Extent::HOLE | Extent::ZERO } else { 0 }, sectors.0)
        }
    };
    let mut extents: Vec<Extent> = Vec::new();
    let (mut at, mut looks) = (from, 0);
    while looks < MOST_LOOKS && at < end {
        looks += 1;
        let (flags, sectors) = state(at);
        let sectors = sectors.clamp(1, end.0 - at.0);
        let len = sectors * SECTOR_BYTES;
        match extents.last_mut().filter(|last| last.flags == flags) {
            Some(last) => last.len += len,
            None => extents.push(Extent { len, flags }),
        }
        at.0 += sectors;
    }
    (extents, looks)
}

/// The redundancy of a sector, and for how many sectors from there on it is the same at least.
fn redundancy(engine: &Engine, at: Sector, end: Sector) -> (u64, u64) {
    let (lacking, sectors) = engine.array().lacking(at, end - at);
    let flag = |is: bool, flag: u64| if is { flag } else { 0 };
    let flags = flag(lacking.member, DEGRADED)
        | flag(lacking.rebuilt, REBUILDING)
        | flag(lacking.consistency, UNSYNCED);
    (flags, sectors.0)
}
