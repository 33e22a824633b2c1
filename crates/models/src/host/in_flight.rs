//! Requests to the array that are under way.

use std::ops::Range;

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

/// A request that reads pages.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PageRead {
    file: u64,
    pages: Range<u64>,
    slot: u32,
    /// Grows with each request: pages that were forgotten while one read them may be on their way again.
    number: u64,
}

/// The requests that read pages, in order of the file and the first page of each, older ones first. Few are at once,
/// so they are a sorted list.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    all: Vec<PageRead>,
    numbers: u64,
}

impl Reading {
    /// How many begin at a page of a file, or before it.
    fn up_to(&self, file: u64, page: u64) -> usize {
        self.all.partition_point(|read| (read.file, read.pages.start) <= (file, page))
    }

    /// A request reads pages.
    pub(super) fn insert(&mut self, file: u64, pages: Range<u64>, slot: u32) {
        let index = self.up_to(file, pages.start);
        self.numbers += 1;
        self.all.insert(index, PageRead { file, pages, slot, number: self.numbers });
    }

    /// The last request that began to read a page of a file.
    fn last_of(&self, file: u64, page: u64) -> Option<&PageRead> {
        let before = self.all[..self.up_to(file, page)].iter().rev();
        let reads = before.take_while(|read| read.file == file);
        reads.filter(|read| read.pages.contains(&page)).max_by_key(|read| read.number)
    }

    /// The request with which a page of a file that is being read comes.
    pub(super) fn of(&self, file: u64, page: u64) -> Option<u32> {
        self.last_of(file, page).map(|read| read.slot)
    }

    /// A request for pages of a file ended: these came with it, and not those that a later one reads again.
    pub(super) fn ended(
        &mut self,
        file: u64,
        pages: Range<u64>,
        slot: u32,
    ) -> impl Iterator<Item = Range<u64>> {
        let number = match self.all.iter().position(|read| read.slot == slot) {
            Some(index) => self.all.remove(index).number,
            None => u64::MAX,
        };
        let later = |read: &PageRead| {
            read.file == file
                && read.number > number
                && read.pages.start < pages.end
                && pages.start < read.pages.end
        };
        let cut = self.all.iter().any(later);
        let step = if cut { 1 } else { pages.end - pages.start };
        let parts = (pages.start..pages.end).step_by(step as usize);
        parts.map(move |from| from..from + step).filter(move |part| {
            !cut || self.last_of(file, part.start).is_none_or(|read| read.number < number)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_that_reads_a_page_is_found() {
        let mut reading = Reading::default();
        for (file, pages, slot) in [(7, 32..40, 1), (7, 0..32, 2), (3, 90..91, 3), (8, 5..9, 4)] {
            reading.insert(file, pages, slot);
        }
        let pages = [(7, 0), (7, 31), (7, 32), (7, 39), (7, 40), (3, 89), (3, 90), (8, 4), (9, 0)];
        let found = pages.map(|(file, page)| reading.of(file, page));
        let (one, two, three) = (Some(1), Some(2), Some(3));
        assert_eq!(found, [two, two, one, one, None, None, three, None, None]);
    }

    #[test]
    fn pages_that_are_read_again_come_with_the_later_request() {
        let mut reading = Reading::default();
        reading.insert(7, 0..32, 2);
        reading.insert(7, 32..64, 1);
        // Two were forgotten meanwhile, and one of them twice.
        reading.insert(7, 4..6, 3);
        reading.insert(7, 4..5, 5);
        let found = [3, 4, 5, 6, 32].map(|page| reading.of(7, page));
        assert_eq!(found, [Some(2), Some(5), Some(3), Some(2), Some(1)]);
        let mut later = reading.clone();
        let ended = |reading: &mut Reading, pages: Range<u64>, slot| {
            reading.ended(7, pages, slot).flatten().collect::<Vec<_>>()
        };
        assert_eq!(ended(&mut reading, 4..5, 5), [4]);
        assert_eq!(reading.of(7, 6), Some(2), "that one is still under way");
        assert_eq!(ended(&mut reading, 4..6, 3), [4, 5]);
        assert_eq!(ended(&mut reading, 0..32, 2), (0..32).collect::<Vec<_>>());
        let most: Vec<_> = (0..32).filter(|page| !(4..6).contains(page)).collect();
        assert_eq!(ended(&mut later, 0..32, 2), most, "two are on their way");
        assert_eq!(ended(&mut later, 4..6, 3), [5]);
        assert_eq!(ended(&mut later, 32..64, 1), (32..64).collect::<Vec<_>>());
        assert_eq!(later.of(7, 4), Some(5));
    }

    #[test]
    fn calls_go_on_in_the_order_in_which_they_came() {
        let mut flight = InFlight::new(Purpose::Commit);
        [5, 3, 9].into_iter().for_each(|id| flight.wait(id));
        assert_eq!(flight.ended().1.collect::<Vec<_>>(), [5, 3, 9]);
    }
}
