//! What clients wrote, and what of it an array must hold after a crash.
//!
//! Used from the tests of a crate by `#[path = "../../../tests/support/nbd_writer.rs"] mod nbd_writer;`,
//! beside `nbd.rs`.
#![allow(dead_code, reason = "no test uses every helper")]

use raidlab_nbd::Command;

use super::nbd_client::{Client, ZERO};

const SECTOR: usize = 512;
/// Blocks that are written.
pub(crate) const BLOCKS: u64 = 64;
/// Bytes of one.
pub(crate) const BLOCK: u64 = 4096;

/// A value that a sector may have: in the order in which they were sent, with numbers.
type Version = (u64, u8);

/// What is known of what clients wrote.
pub(crate) struct Model {
    /// What is answered survives, flushed or not.
    keeps_answered: bool,
    /// Of each sector the last value that is durable, and all that were sent later.
    sectors: Vec<Vec<Version>>,
    /// Of each block the last version that was answered, and whether one is under way.
    answered: Vec<u64>,
    is_under_way: Vec<bool>,
    next: u64,
    /// Changes that are answered and not known to be durable: their first block, and their version.
    volatile: Vec<(u64, u64)>,
    pub(crate) counts: Counts,
}

/// What clients were told, and what was compared after crashes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Changes that were answered.
    pub(crate) changes: u64,
    /// Of these, those with FUA, or that a flush covered.
    pub(crate) durable: u64,
    pub(crate) flushes: u64,
    pub(crate) crashes: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.changes += other.changes;
        self.durable += other.durable;
        self.flushes += other.flushes;
        self.crashes += other.crashes;
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { changes, durable, flushes, crashes } = self;
        write!(
            f,
            "{crashes} crashes: {changes} changes answered, {durable} durable by FUA or {flushes} flushes; lost: 0"
        )
    }
}

/// A request of a client.
#[derive(Debug)]
pub(crate) enum Asked {
    Change {
        block: u64,
        len: u64,
        version: u64,
        fua: bool,
    },
    /// With the versions that were answered when it was sent.
    Flush(Vec<u64>),
}

impl Model {
    pub(crate) fn new(keeps_answered: bool) -> Self {
        Self {
            keeps_answered,
            sectors: vec![vec![(0, 0)]; (BLOCKS * 8) as usize],
            answered: vec![0; BLOCKS as usize],
            is_under_way: vec![false; BLOCKS as usize],
            next: 1,
            volatile: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// Sends something on a connection.
    pub(crate) fn ask(
        &mut self,
        client: &mut Client,
        mut below: impl FnMut(u64) -> u64,
    ) -> Option<(u64, Asked)> {
        if below(6) == 0 {
            let asked = Asked::Flush(self.answered.clone());
            return Some((client.ask(Command::Flush, 0, 0, false, &[]), asked));
        }
        let block = below(BLOCKS);
        let len = (1 + below(8)).min(BLOCKS - block);
        let range = block as usize..(block + len) as usize;
        if self.is_under_way[range.clone()].iter().any(|is| *is) {
            return None;
        }
        let version = self.next;
        self.next += 1;
        let (fua, zero) = (below(4) == 0, below(5) == 0);
        let value = if zero { 0 } else { (version % 255) as u8 + 1 };
        self.is_under_way[range].fill(true);
        for sector in block * 8..(block + len) * 8 {
            self.sectors[sector as usize].push((version, value));
        }
        let (at, bytes) = (block * BLOCK, len * BLOCK);
        let cookie = match zero {
            true => client.ask(ZERO, at, bytes, fua, &[]),
            false => client.ask(Command::Write, at, bytes, fua, &vec![value; bytes as usize]),
        };
        Some((cookie, Asked::Change { block, len, version, fua }))
    }

    /// Something was answered.
    pub(crate) fn told(&mut self, asked: &Asked) {
        match asked {
            Asked::Change { block, len, version, fua } => {
                self.counts.changes += 1;
                match fua {
                    true => self.counts.durable += 1,
                    false => self.volatile.push((*block, *version)),
                }
                for one in *block..block + len {
                    self.answered[one as usize] = *version;
                    self.is_under_way[one as usize] = false;
                    if *fua || self.keeps_answered {
                        self.is_durable(one, *version);
                    }
                }
            }
            Asked::Flush(answered) => {
                self.counts.flushes += 1;
                let before = self.volatile.len();
                self.volatile.retain(|(block, version)| answered[*block as usize] < *version);
                self.counts.durable += (before - self.volatile.len()) as u64;
                for (block, version) in (0..).zip(answered) {
                    self.is_durable(block, *version);
                }
            }
        }
    }

    fn is_durable(&mut self, block: u64, version: u64) {
        for sector in block * 8..(block + 1) * 8 {
            self.sectors[sector as usize].retain(|(one, _)| *one >= version);
        }
    }

    /// Compares what an array holds after a crash, but not in stripes of `hole` sectors where writes
    /// were under way. Gives sectors that are torn, as they may be there: they are to be written with
    /// zeroes.
    pub(crate) fn check(&mut self, bytes: &[u8], hole: Option<u64>, told: &str) -> Vec<usize> {
        let stripe = hole.unwrap_or(1) as usize;
        let known: Vec<bool> = (self.sectors.chunks(stripe))
            .flat_map(|all| {
                let is_known = hole.is_none() || all.iter().all(|versions| versions.len() == 1);
                std::iter::repeat_n(is_known, all.len())
            })
            .collect();
        let mut torn = Vec::new();
        for (at, content) in bytes.chunks(SECTOR).enumerate() {
            let first = content[0];
            let whole = content.iter().all(|byte| *byte == first);
            let versions = &mut self.sectors[at];
            let can_be = whole && versions.iter().any(|(_, value)| *value == first);
            assert!(can_be || !known[at], "{told}: sector {at} holds {first}, of {versions:?}");
            if !whole {
                torn.push(at);
            }
            // What is there now is read from now on.
            *versions = vec![(0, if whole { first } else { 0 })];
        }
        self.counts.crashes += u64::from(self.next > 1);
        self.volatile.clear();
        self.answered.fill(0);
        self.is_under_way.fill(false);
        self.next = 1;
        torn
    }
}
