//! The header of a log of partial parity that takes one at a time, as md's PPL does.
//!
//! md finds the newest header of a member's log and nothing else, so that all that is not durable yet must stand in
//! it. Why it is safe: a header is begun when everything that was logged before on its member is durable, and gets
//! entries within one input of the array only, which its driver writes together. A header that is torn or missing
//! protects nothing: no data went out before it was durable, and what the one before protected is durable, too.
//! Tests: `log/tests.rs::what_a_header_protects_is_durable_before_the_next_is_begun`, and power cuts in the engine's
//! `tests/md_ppl.rs`.

/// The header that entries are gathered in, or were last.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct Header {
    /// Sectors of partial parity that one takes.
    most: u64,
    /// Those that it has.
    taken: u64,
    /// It was begun in this input: more may join it.
    open: bool,
}

impl Header {
    pub(super) const fn new(most: u64) -> Self {
        Self { most, taken: 0, open: false }
    }

    /// Whether it takes so many sectors more; if none is open, whether one may be begun: `is_idle` when everything that
    /// was logged is durable.
    pub(super) fn has_room_for(&self, sectors: u64, is_idle: impl FnOnce() -> bool) -> bool {
        if self.open { self.taken + sectors <= self.most } else { is_idle() }
    }

    /// Takes so many sectors, in a new header if none is open.
    pub(super) const fn take(&mut self, sectors: u64) {
        if !self.open {
            (self.open, self.taken) = (true, 0);
        }
        self.taken += sectors;
    }

    /// The input is over: what comes later waits for the next header.
    pub(super) const fn close(&mut self) {
        self.open = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_join_a_header_until_it_is_full_or_closed() {
        let mut header = Header::new(16);
        assert!(!header.has_room_for(8, || false) && header.has_room_for(8, || true));
        header.take(8);
        assert!(header.has_room_for(8, || false), "it is open");
        assert!(!header.has_room_for(9, || true), "it is full");
        header.close();
        assert!(!header.has_room_for(0, || false));
        header.take(16);
        assert!(header.has_room_for(0, || false) && !header.has_room_for(1, || false));
    }
}
