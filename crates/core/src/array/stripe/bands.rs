//! How a piece of a stripe divides into bands of rows, and how parity is made in each.
//!
//! A row is a sector address within the chunks of a stripe; P of a row is the XOR of the data of
//! that row on all data members. A request covers the end of one chunk, whole chunks, and the start
//! of another, so the rows of its piece fall into at most three bands, in each of which the same
//! consecutive chunks are covered from end to end.

/// The part of a stripe that a request covers: data sectors `start..end`, counted through the
/// stripe's data chunks in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// How the P of a band comes about, or how its lost chunk is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::array) enum Method {
    /// Read: every covered chunk is readable.
    #[default]
    Direct,
    /// Read: this chunk is lost and computed from all others.
    Recover(u16),
    /// Write: every data chunk is covered; nothing is read.
    FullStripe,
    /// Write: the chunks not covered are read, P made from all.
    ReconstructWrite,
    /// Write: the covered chunks and P are read, P changed by the difference.
    ReadModifyWrite,
    /// Write: P is out of service; the data are written alone.
    DataOnly,
}

/// Rows `from..to`, in which chunks `first..=last` are covered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::array) struct Band {
    pub(in crate::array) from: u64,
    pub(in crate::array) to: u64,
    pub(in crate::array) first: u16,
    pub(in crate::array) last: u16,
    pub(in crate::array) method: Method,
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
        let last = highest as u16;
        bands[count] = Band { from, to, first: lowest, last, method: Method::Direct };
        count += 1;
    }
    (bands, count)
}

/// Which chunks of a stripe cannot be used.
#[derive(Clone, Copy, Debug)]
pub(in crate::array) struct Health<F: Fn(u16) -> bool> {
    /// Data chunks of the stripe.
    pub(in crate::array) data: u16,
    /// P is on a member out of service.
    pub(in crate::array) p_failed: bool,
    /// P cannot be read (out of service, or its read failed).
    pub(in crate::array) p_unreadable: bool,
    /// Whether data chunk k cannot be read.
    pub(in crate::array) unreadable: F,
}

impl<F: Fn(u16) -> bool> Health<F> {
    /// How to read a band, or `None` when too much is lost.
    pub(in crate::array) fn read_method(&self, band: &Band) -> Option<Method> {
        let mut lost = (0..self.data).filter(|k| (self.unreadable)(*k));
        let wanted = (0..self.data).find(|k| band.covers(*k) && (self.unreadable)(*k));
        match wanted {
            None => Some(Method::Direct),
            Some(_) if self.p_unreadable => None,
            Some(k) => {
                lost.next();
                lost.next().is_none().then_some(Method::Recover(k))
            }
        }
    }

    /// How to write a band, or `None` when what it needs cannot be read.
    ///
    /// Fewest chunks read wins; of equals reconstruct-write, as Linux md with `rmw_level` 1.
    pub(in crate::array) fn write_method(&self, band: &Band) -> Option<Method> {
        if self.p_failed {
            return Some(Method::DataOnly);
        }
        let covered = band.covered();
        if covered == self.data {
            return Some(Method::FullStripe);
        }
        let readable = |inside: bool| {
            (0..self.data).all(|k| band.covers(k) != inside || !(self.unreadable)(k))
        };
        let modify = (readable(true) && !self.p_unreadable).then_some(covered + 1);
        let reconstruct = readable(false).then_some(self.data - covered);
        match (modify, reconstruct) {
            (Some(modify), Some(reconstruct)) if modify < reconstruct => {
                Some(Method::ReadModifyWrite)
            }
            (_, Some(_)) => Some(Method::ReconstructWrite),
            (Some(_), None) => Some(Method::ReadModifyWrite),
            (None, None) => None,
        }
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

    fn method(data: u16, covered: u16, lost: Option<u16>, p_lost: bool) -> Option<Method> {
        let health = Health {
            data,
            p_failed: p_lost,
            p_unreadable: p_lost,
            unreadable: |k| Some(k) == lost,
        };
        let band = Band { from: 0, to: 1, first: 0, last: covered - 1, method: Method::Direct };
        health.write_method(&band)
    }

    #[test]
    fn writes_choose_by_counting_reads() {
        use Method::{DataOnly, FullStripe, ReadModifyWrite, ReconstructWrite};
        // covered + 1 reads against data - covered.
        assert_eq!(method(3, 1, None, false), Some(ReconstructWrite), "2 against 2: a tie");
        assert_eq!(method(4, 1, None, false), Some(ReadModifyWrite), "2 against 3");
        assert_eq!(method(4, 2, None, false), Some(ReconstructWrite), "3 against 2");
        assert_eq!(method(4, 4, None, false), Some(FullStripe));
        assert_eq!(method(4, 1, None, true), Some(DataOnly));
        assert_eq!(method(4, 1, Some(0), false), Some(ReconstructWrite), "the written one is lost");
        assert_eq!(method(2, 1, Some(1), false), Some(ReadModifyWrite), "another one is lost");
        assert_eq!(method(4, 4, Some(2), false), Some(FullStripe));
    }

    #[test]
    fn writes_refuse_what_cannot_be_known() {
        let health =
            Health { data: 4, p_failed: false, p_unreadable: true, unreadable: |k| k == 3 };
        let band = Band { from: 0, to: 1, first: 0, last: 0, method: Method::Direct };
        assert_eq!(health.write_method(&band), None);
        let wanted = Band { first: 3, last: 3, ..band };
        assert_eq!(health.read_method(&wanted), None, "P is lost too");
        assert_eq!(health.read_method(&band), Some(Method::Direct));
    }
}
