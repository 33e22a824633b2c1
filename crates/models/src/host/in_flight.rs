//! Requests to the array that are under way.

use super::Purpose;

/// A request under way, and the calls that wait for it.
#[derive(Clone, Debug)]
pub(super) struct InFlight {
    purpose: Purpose,
    /// The first of them: most have no other.
    first: Option<u32>,
    others: Vec<u32>,
}

impl InFlight {
    pub(super) fn new(purpose: Purpose) -> Self {
        Self { purpose, first: None, others: Vec::new() }
    }

    /// A call waits for its end.
    pub(super) fn wait(&mut self, id: u32) {
        match self.first {
            None => self.first = Some(id),
            Some(_) => self.others.push(id),
        }
    }

    /// What it was for, and those that wait, in the order in which they came.
    pub(super) fn ended(self) -> (Purpose, impl Iterator<Item = u32>) {
        (self.purpose, self.first.into_iter().chain(self.others))
    }
}

/// The requests that read pages, by the file and the first page of each. Few are at once, so they are a
/// sorted list.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading(Vec<((u64, u64), u32)>);

impl Reading {
    fn place(&self, file: u64, page: u64) -> Result<usize, usize> {
        self.0.binary_search_by_key(&(file, page), |(key, _)| *key)
    }

    /// A request reads pages from `page` on, in place of one that did so before.
    pub(super) fn insert(&mut self, file: u64, page: u64, slot: u32) {
        match self.place(file, page) {
            Ok(index) => self.0[index].1 = slot,
            Err(index) => self.0.insert(index, ((file, page), slot)),
        }
    }

    /// A request ended; another one that reads the same pages again stays.
    pub(super) fn remove(&mut self, file: u64, page: u64, slot: u32) {
        if let Ok(index) = self.place(file, page)
            && self.0[index].1 == slot
        {
            self.0.remove(index);
        }
    }

    /// The request that begins at a page of a file, or the last one before it.
    pub(super) fn before(&self, file: u64, page: u64) -> Option<u32> {
        let next = self.place(file, page).map_or_else(|next| next, |index| index + 1);
        let ((of, _), slot) = self.0[..next].last()?;
        (*of == file).then_some(*slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_that_reads_a_page_is_found() {
        let mut reading = Reading::default();
        for (file, page, slot) in [(7, 32, 1), (7, 0, 2), (3, 90, 3), (8, 5, 4)] {
            reading.insert(file, page, slot);
        }
        let before = [(7, 0), (7, 31), (7, 32), (7, 99), (3, 89), (3, 90), (8, 4), (9, 0)];
        let found = before.map(|(file, page)| reading.before(file, page));
        assert_eq!(found, [Some(2), Some(2), Some(1), Some(1), None, Some(3), None, None]);
        reading.insert(7, 32, 9);
        reading.remove(7, 32, 1);
        assert_eq!(reading.before(7, 40), Some(9), "read once more meanwhile");
        reading.remove(7, 32, 9);
        assert_eq!(reading.before(7, 40), Some(2));
    }

    #[test]
    fn calls_go_on_in_the_order_in_which_they_came() {
        let mut flight = InFlight::new(Purpose::Commit);
        [5, 3, 9].into_iter().for_each(|id| flight.wait(id));
        assert_eq!(flight.ended().1.collect::<Vec<_>>(), [5, 3, 9]);
    }
}
