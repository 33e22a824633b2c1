//! How a piece of a stripe divides into bands of rows, and how parity is made in each.
//!
//! A row is a sector address within the chunks of a stripe; P and Q of a row are computed from the data
//! of that row on all data members. A request covers the end of one chunk, whole chunks, and the start
//! of another, so the rows of its piece fall into at most three bands, in each of which the same
//! consecutive chunks are covered from end to end.

use crate::array::roles::Roles;
use crate::array::settings::Tie;

/// The part of a stripe that a request covers: data sectors `start..end`, counted through the
/// stripe's data chunks in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::array) struct Piece {
    pub(in crate::array) start: u64,
    pub(in crate::array) end: u64,
}

impl Piece {
    /// First and last covered chunk.
    pub(in crate::array) fn chunks(self, chunk: u64) -> (u16, u16) {
        ((self.start / chunk) as u16, ((self.end - 1) / chunk) as u16)
    }
}

/// How the parity of a band comes about, or how its lost chunks are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::array) enum Method {
    /// Read: every covered chunk is readable.
    #[default]
    Direct,
    /// Read: lost chunks are computed from all others.
    Recover,
    /// Read: P is read too, and must agree with the data.
    Verify,
    /// Write: every data chunk is covered; nothing is read.
    FullStripe,
    /// Write: the chunks not covered are read, parity made from all.
    ReconstructWrite,
    /// Write: the covered chunks and parity are read, parity changed by the difference.
    ReadModifyWrite,
    /// Write: everything readable is read, what is lost computed, parity made from all.
    RecoverWrite,
    /// Write: no parity is in service; the data are written alone.
    DataOnly,
}

/// P in a set of parities.
pub(in crate::array) const P: u8 = 1;
/// Q in a set of parities.
pub(in crate::array) const Q: u8 = 2;

/// What computing lost data takes: which are lost, and which parities are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::array) struct Recovery {
    /// The lost data chunks, in the front of the array.
    chunks: [u16; 2],
    count: u8,
    /// The parities to read, as a set of [`P`] and [`Q`].
    pub(in crate::array) parities: u8,
}

impl Recovery {
    pub(in crate::array) fn lost(&self) -> &[u16] {
        &self.chunks[..usize::from(self.count)]
    }
}

/// Rows `from..to`, in which chunks `first..=last` are covered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::array) struct Band {
    pub(in crate::array) from: u64,
    pub(in crate::array) to: u64,
    pub(in crate::array) first: u16,
    pub(in crate::array) last: u16,
    pub(in crate::array) method: Method,
    /// For [`Method::Recover`] and [`Method::RecoverWrite`].
    pub(in crate::array) recovery: Recovery,
    /// The parities in service when the method was chosen, as a set.
    pub(in crate::array) live: u8,
}

impl Band {
    pub(in crate::array) const fn covers(&self, k: u16) -> bool {
        self.first <= k && k <= self.last
    }

    pub(in crate::array) const fn covered(&self) -> u16 {
        self.last - self.first + 1
    }
}

/// At most this many bands a piece.
pub(in crate::array) const MOST_BANDS: usize = 3;

/// The bands of `piece` within the rows `rows.0..rows.1`; how many, in the front of the array.
pub(in crate::array) fn split(
    piece: Piece,
    rows: (u64, u64),
    chunk: u64,
) -> ([Band; MOST_BANDS], usize) {
    let (first, last) = piece.chunks(chunk);
    let head = piece.start - u64::from(first) * chunk;
    let tail = piece.end - u64::from(last) * chunk;
    let mut cuts = [rows.0, head, tail, rows.1].map(|cut| cut.clamp(rows.0, rows.1));
    cuts.sort_unstable();
    let mut bands = [Band::default(); MOST_BANDS];
    let mut count = 0;
    for pair in cuts.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        if from == to {
            continue;
        }
        // In these rows the first chunk is covered from `head` on, the last one up to `tail`.
        let lowest = if from >= head { first } else { first + 1 };
        let highest = if to <= tail { i32::from(last) } else { i32::from(last) - 1 };
        if i32::from(lowest) > highest {
            continue;
        }
        bands[count] = Band { from, to, first: lowest, last: highest as u16, ..Band::default() };
        count += 1;
    }
    (bands, count)
}

/// What of a stripe can be used.
#[derive(Clone, Copy, Debug)]
pub(in crate::array) struct Health<F: Fn(u16) -> bool> {
    /// Data chunks of the stripe.
    pub(in crate::array) data: u16,
    /// Parities in service, as a set of [`P`] and [`Q`].
    pub(in crate::array) live: u8,
    /// Parities that can be read, as a set.
    pub(in crate::array) readable: u8,
    /// Whether data chunk k cannot be read.
    pub(in crate::array) unreadable: F,
    /// What wins when both ways of writing read equally much.
    pub(in crate::array) tie: Tie,
    /// Roles that need not be read, since they are in memory: data chunks, then parities.
    pub(in crate::array) cached: Roles,
}

impl<F: Fn(u16) -> bool> Health<F> {
    const fn is_cached(&self, role: u16) -> bool {
        self.cached.contains(role)
    }

    /// Whether a data chunk can be had neither from its member nor from memory.
    fn lacks(&self, k: u16) -> bool {
        !self.is_cached(k) && (self.unreadable)(k)
    }

    /// How lost data are computed, or `None` when too much is lost.
    fn recovery(&self) -> Option<Recovery> {
        let mut recovery = Recovery::default();
        for k in (0..self.data).filter(|k| self.lacks(*k)) {
            let next = usize::from(recovery.count);
            *recovery.chunks.get_mut(next)? = k;
            recovery.count += 1;
        }
        recovery.parities = match (recovery.count, self.readable) {
            (0, _) => 0,
            (1, readable) if readable & P != 0 => P,
            (1, readable) if readable & Q != 0 => Q,
            (2, readable) if readable == P | Q => P | Q,
            _ => return None,
        };
        Some(recovery)
    }

    /// Chooses how to read a band; false when too much is lost.
    pub(in crate::array) fn choose_read(&self, band: &mut Band) -> bool {
        band.live = self.live;
        band.method = Method::Direct;
        if !(band.first..=band.last).any(|k| self.lacks(k)) {
            return true;
        }
        let Some(recovery) = self.recovery() else { return false };
        band.method = Method::Recover;
        band.recovery = recovery;
        true
    }

    /// Chooses how to write a band; false when what it needs cannot be read.
    ///
    /// Fewest chunks read wins; of equals what the tie rule says. Zeroes
    /// (`zeroes`) have no payload to take a difference to and are never read-modify-written.
    pub(in crate::array) fn choose_write(&self, band: &mut Band, zeroes: bool) -> bool {
        band.live = self.live;
        let covered = band.covered();
        if self.live == 0 {
            band.method = Method::DataOnly;
            return true;
        }
        if covered == self.data {
            band.method = Method::FullStripe;
            return true;
        }
        let parity_readable = self.live & !self.readable == 0;
        let lacks = |mut chunks: std::ops::Range<u16>| chunks.any(|k| self.lacks(k));
        // What is in memory is not read.
        let wanted = |chunks: std::ops::Range<u16>| match self.cached.is_empty() {
            true => chunks.len() as u16,
            false => chunks.filter(|k| !self.is_cached(*k)).count() as u16,
        };
        let (inside, before, after) =
            (band.first..band.last + 1, 0..band.first, band.last + 1..self.data);
        let parities = (self.data..self.data + 2)
            .filter(|role| self.live >> (role - self.data) & 1 == 1 && !self.is_cached(*role));
        let modify = (!zeroes && parity_readable && !lacks(inside.clone()))
            .then(|| wanted(inside) + parities.count() as u16);
        let reconstruct = (!lacks(before.clone()) && !lacks(after.clone()))
            .then(|| wanted(before) + wanted(after));
        let wins = |modify: u16, reconstruct: u16| match self.tie {
            Tie::ReconstructWrite => modify < reconstruct,
            Tie::ReadModifyWrite => modify <= reconstruct,
            Tie::NeverModify => false,
        };
        band.method = match (modify, reconstruct) {
            (Some(modify), Some(reconstruct)) if wins(modify, reconstruct) => {
                Method::ReadModifyWrite
            }
            (_, Some(_)) => Method::ReconstructWrite,
            (Some(_), None) => Method::ReadModifyWrite,
            (None, None) => {
                let Some(recovery) = self.recovery() else { return false };
                band.recovery = recovery;
                Method::RecoverWrite
            }
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bands(start: u64, end: u64) -> Vec<(u64, u64, u16, u16)> {
        let (bands, count) = split(Piece { start, end }, (0, 8), 8);
        bands[..count].iter().map(|b| (b.from, b.to, b.first, b.last)).collect()
    }

    #[test]
    fn bands_cover_each_sector_once() {
        assert_eq!(bands(2, 5), [(2, 5, 0, 0)], "inside one chunk");
        assert_eq!(bands(0, 24), [(0, 8, 0, 2)], "three whole chunks");
        assert_eq!(bands(5, 10), [(0, 2, 1, 1), (5, 8, 0, 0)], "end of one, start of the next");
        assert_eq!(bands(2, 13), [(0, 2, 1, 1), (2, 5, 0, 1), (5, 8, 0, 0)], "overlapping rows");
        assert_eq!(bands(5, 18), [(0, 2, 1, 2), (2, 5, 1, 1), (5, 8, 0, 1)], "a whole one between");
        for start in 0..32 {
            for end in start + 1..=32 {
                let mut seen = [0; 32];
                for rows in [(0, 3), (3, 6), (6, 8)] {
                    let (bands, count) = split(Piece { start, end }, rows, 8);
                    for band in &bands[..count] {
                        for k in band.first..=band.last {
                            for row in band.from..band.to {
                                seen[(u64::from(k) * 8 + row) as usize] += 1;
                            }
                        }
                    }
                }
                for (sector, count) in seen.iter().enumerate() {
                    let inside = (start..end).contains(&(sector as u64));
                    assert_eq!(*count, i32::from(inside), "{start}..{end} sector {sector}");
                }
            }
        }
    }

    /// How a write of the first `covered` of `data` chunks is done, with chunks `lost` and the
    /// parities `live`.
    fn write(data: u16, covered: u16, live: u8, lost: &[u16]) -> Option<Method> {
        let unreadable = |k: u16| lost.contains(&k);
        let tie = Tie::default();
        let health = Health { data, live, readable: live, unreadable, tie, cached: Roles::NONE };
        let mut band = Band { to: 1, last: covered - 1, ..Band::default() };
        health.choose_write(&mut band, false).then_some(band.method)
    }

    #[test]
    fn writes_choose_by_counting_reads() {
        use Method::{DataOnly, FullStripe, ReadModifyWrite, ReconstructWrite, RecoverWrite};
        // One parity: covered + 1 reads against data - covered.
        assert_eq!(write(3, 1, P, &[]), Some(ReconstructWrite), "2 against 2: a tie");
        assert_eq!(write(4, 1, P, &[]), Some(ReadModifyWrite), "2 against 3");
        assert_eq!(write(4, 2, P, &[]), Some(ReconstructWrite), "3 against 2");
        assert_eq!(write(4, 4, P, &[]), Some(FullStripe));
        assert_eq!(write(4, 1, 0, &[]), Some(DataOnly));
        assert_eq!(write(4, 1, P, &[0]), Some(ReconstructWrite), "the written one is lost");
        assert_eq!(write(2, 1, P, &[1]), Some(ReadModifyWrite), "another one is lost");
        assert_eq!(write(4, 4, P, &[2]), Some(FullStripe));
        // Two parities: covered + 2 reads.
        assert_eq!(write(4, 1, P | Q, &[]), Some(ReconstructWrite), "3 against 3: a tie");
        assert_eq!(write(5, 1, P | Q, &[]), Some(ReadModifyWrite), "3 against 4");
        assert_eq!(write(5, 1, Q, &[]), Some(ReadModifyWrite), "2 against 4");
        assert_eq!(write(5, 1, P | Q, &[3, 4]), Some(ReadModifyWrite), "the others are lost");
        assert_eq!(write(5, 2, P | Q, &[0, 1]), Some(ReconstructWrite));
        assert_eq!(write(5, 2, P | Q, &[0, 4]), Some(RecoverWrite), "one inside, one outside");
        assert_eq!(write(5, 2, P, &[0, 4]), None, "three are lost");
        let unreadable = |_| false;
        let tie = Tie::default();
        let (live, readable) = (P | Q, P | Q);
        let health = Health { data: 5, live, readable, unreadable, tie, cached: Roles::NONE };
        let mut band = Band { to: 1, ..Band::default() };
        assert!(health.choose_write(&mut band, true));
        assert_eq!(band.method, ReconstructWrite, "zeroes have no payload");
    }

    #[test]
    fn reads_recover_from_what_is_there() {
        let read = |readable: u8, lost: &[u16]| {
            let unreadable = |k: u16| lost.contains(&k);
            let tie = Tie::default();
            let live = readable;
            let health = Health { data: 4, live, readable, unreadable, tie, cached: Roles::NONE };
            let mut band = Band { to: 1, last: 1, ..Band::default() };
            let chosen = health.choose_read(&mut band);
            chosen.then(|| (band.method, band.recovery.lost().to_vec(), band.recovery.parities))
        };
        assert_eq!(read(P, &[3]), Some((Method::Direct, vec![], 0)), "what is lost is not wanted");
        assert_eq!(read(P, &[1]), Some((Method::Recover, vec![1], P)));
        assert_eq!(read(P | Q, &[1]), Some((Method::Recover, vec![1], P)), "P is cheaper");
        assert_eq!(read(Q, &[1]), Some((Method::Recover, vec![1], Q)));
        assert_eq!(read(P | Q, &[1, 3]), Some((Method::Recover, vec![1, 3], P | Q)));
        assert_eq!(read(P, &[1, 3]), None);
        assert_eq!(read(0, &[1]), None);
        assert_eq!(read(P | Q, &[0, 1, 2]), None);
    }

    /// Every way in which a band of a stripe of four chunks may be covered, readable and cached, with any parity.
    #[test]
    fn the_way_that_reads_least_is_taken_whatever_is_lost_or_cached() {
        use Method::{DataOnly, FullStripe, ReadModifyWrite, ReconstructWrite, RecoverWrite};
        let ties = [Tie::ReconstructWrite, Tie::ReadModifyWrite, Tie::NeverModify];
        for case in 0..1u32 << 16 {
            let bits = |shift: u32, count: u32| case >> shift & ((1 << count) - 1);
            let (first, last) = (bits(0, 2) as u16, bits(2, 2) as u16);
            let (live, readable, lost) = (bits(4, 2) as u8, bits(6, 2) as u8, bits(8, 4));
            let (tie, zeroes) = (bits(12, 2) as usize, bits(14, 1) == 1);
            if first > last || tie == 3 || readable & !live != 0 {
                continue;
            }
            // What is cached follows from the rest, differently each time.
            let cached: Roles = (0..6)
                .filter(|role| case.wrapping_mul(0x9e37_79b1) >> (20 + role) & 1 == 1)
                .collect();
            let cached = if bits(15, 1) == 1 { cached } else { Roles::NONE };
            let is_lost = |k: u16| lost >> k & 1 == 1;
            let health =
                Health { data: 4, live, readable, unreadable: is_lost, tie: ties[tie], cached };
            let mut band = Band { to: 1, first, last, ..Band::default() };
            let chosen = health.choose_write(&mut band, zeroes).then_some(band.method);
            let inside = |k: &u16| (first..=last).contains(k);
            let lacks = |k: &u16| is_lost(*k) && !cached.contains(*k);
            let reads = |role: &u16| !cached.contains(*role);
            let modify =
                (!zeroes && live & !readable == 0 && !(0..4).any(|k| inside(&k) && lacks(&k)))
                    .then(|| {
                        let parities =
                            [(P, 4), (Q, 5)].into_iter().filter(|(parity, _)| live & parity != 0);
                        (first..=last).filter(reads).count()
                            + parities.filter(|(_, role)| reads(role)).count()
                    });
            let anew = (!(0..4).any(|k| !inside(&k) && lacks(&k)))
                .then(|| (0..4).filter(|k| !inside(k) && reads(k)).count());
            let wins = modify.zip(anew).is_none_or(|(modify, anew)| match ties[tie] {
                Tie::ReconstructWrite => modify < anew,
                Tie::ReadModifyWrite => modify <= anew,
                Tie::NeverModify => false,
            });
            let missing = (0..4).filter(lacks).count();
            let expected = match (modify, anew) {
                _ if live == 0 => Some(DataOnly),
                _ if last - first == 3 => Some(FullStripe),
                (Some(_), _) if wins => Some(ReadModifyWrite),
                (_, Some(_)) => Some(ReconstructWrite),
                (Some(_), None) => Some(ReadModifyWrite),
                (None, None) => (missing <= readable.count_ones() as usize).then_some(RecoverWrite),
            };
            assert_eq!(
                chosen,
                expected,
                "{health:?} {band:?}",
                health = (live, readable, lost, cached)
            );
            assert_eq!(band.live, live);
        }
    }
}
