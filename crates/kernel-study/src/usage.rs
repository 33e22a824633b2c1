//! How busy drives were, by the requests that the kernel sent them.

use raidlab_kernel_lab::Record;

/// When each drive had requests, as a list of stretches in order.
#[derive(Debug, Default)]
pub(crate) struct Usage(Vec<Vec<(u64, u64)>>);

impl Usage {
    /// Counts a request; those of a drive come in the order of their ends.
    pub(crate) fn add(&mut self, record: &Record) {
        if self.0.len() <= record.drive {
            self.0.resize_with(record.drive + 1, Vec::new);
        }
        let stretches = &mut self.0[record.drive];
        let (mut began, ended) = (record.arrived.0, record.ended.0);
        // Requests that overlap are one stretch, also where one arrived before several that were served first.
        while let Some((from, until)) = stretches.last().copied().filter(|last| last.1 >= began) {
            began = began.min(from);
            debug_assert!(until <= ended, "ends in order");
            stretches.pop();
        }
        stretches.push((began, ended));
    }

    /// The share of the time between two times that each of the first `drives` drives was busy, 0 to 1; empty when no
    /// time passed.
    pub(crate) fn shares(&self, [from, until]: [u64; 2], drives: usize) -> Vec<f64> {
        let span = until.saturating_sub(from);
        if span == 0 {
            return Vec::new();
        }
        let busy = |stretches: &Vec<(u64, u64)>| -> u64 {
            let within =
                |&(began, ended): &(u64, u64)| ended.min(until).saturating_sub(began.max(from));
            stretches.iter().map(within).sum()
        };
        self.0.iter().take(drives).map(|one| busy(one) as f64 / span as f64).collect()
    }
}

/// The busiest drive by its share; of equals the first.
pub(crate) fn busiest(shares: &[f64]) -> Option<(usize, f64)> {
    let shares = shares.iter().copied().enumerate();
    shares.reduce(|most, one| if one.1 > most.1 { one } else { most })
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_core::Time;
    use raidlab_kernel_lab::Operation;

    fn record(drive: usize, arrived: u64, ended: u64) -> Record {
        Record {
            arrived: Time(arrived),
            ended: Time(ended),
            drive,
            operation: Operation::Read,
            sector: 0,
            bytes: 512,
            depth: 0,
            succeeded: true,
        }
    }

    #[test]
    fn requests_that_overlap_count_once() {
        let mut usage = Usage::default();
        for (drive, arrived, ended) in
            [(0, 10, 20), (0, 30, 40), (0, 5, 50), (1, 0, 30), (1, 60, 100)]
        {
            usage.add(&record(drive, arrived, ended));
        }
        assert_eq!(usage.0[0], [(5, 50)]);
        assert_eq!(busiest(&usage.shares([0, 100], 2)), Some((1, 0.7)));
        assert_eq!(busiest(&usage.shares([0, 100], 1)), Some((0, 0.45)));
        assert_eq!(busiest(&usage.shares([10, 30], 2)), Some((0, 1.0)));
        assert_eq!(busiest(&usage.shares([10, 10], 2)), None);
    }
}
