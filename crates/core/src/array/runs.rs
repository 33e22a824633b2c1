//! Member I/Os being gathered while one request is planned: a range of each member.

use super::lists::ListBuilder;
use crate::units::{MemberIndex, Sector};

/// A member I/O being gathered: one range of the member, pieces of the request's payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) at: u64,
    pub(super) len: u32,
    pub(super) list: ListBuilder,
}

impl Run {
    const IDLE: Self = Self { at: 0, len: 0, list: ListBuilder::new() };
}

/// The range gathered for each device.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    runs: Vec<Run>,
    active: usize,
}

impl Runs {
    pub(super) fn new(devices: usize) -> Self {
        Self { runs: vec![Run::IDLE; devices], active: 0 }
    }

    /// How many there are.
    #[inline]
    pub(super) const fn active(&self) -> usize {
        self.active
    }

    /// Whether a piece at `at` must wait until what is gathered for the device has gone out: it does not go on from
    /// it, or its list is long enough.
    #[inline]
    pub(super) fn is_in_the_way(&self, device: MemberIndex, at: Sector, most_nodes: u32) -> bool {
        let run = &self.runs[device.at()];
        run.len > 0 && (run.at + u64::from(run.len) != at.0 || run.list.nodes() >= most_nodes)
    }

    /// The run of a device, `len` sectors longer; begun at `at` if there was none.
    #[inline]
    pub(super) fn extend(&mut self, device: MemberIndex, at: Sector, len: u32) -> &mut Run {
        let run = &mut self.runs[device.at()];
        if run.len == 0 {
            run.at = at.0;
            self.active += 1;
        }
        run.len += len;
        run
    }

    /// Takes out what was gathered for a device.
    #[inline]
    pub(super) fn take(&mut self, device: MemberIndex) -> Option<Run> {
        let run = std::mem::replace(&mut self.runs[device.at()], Run::IDLE);
        if run.len == 0 {
            return None;
        }
        self.active -= 1;
        Some(run)
    }

    /// Devices that something may be gathered for.
    pub(super) fn devices(&self) -> u16 {
        self.runs.len() as u16
    }

    /// Where a device's next I/O would start, and how many it has, if what is gathered were sent: from `load`.
    #[inline]
    pub(super) fn load(&self, device: MemberIndex, load: (Sector, u32)) -> (Sector, u32) {
        let run = &self.runs[device.at()];
        match run.len {
            0 => load,
            len => (Sector(run.at + u64::from(len)), load.1 + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_from_a_run_is_one_with_it() {
        let mut runs = Runs::new(2);
        let (one, other) = (MemberIndex(0), MemberIndex(1));
        assert!(!runs.is_in_the_way(one, Sector(8), 4), "nothing is gathered");
        runs.extend(one, Sector(8), 8);
        assert!(!runs.is_in_the_way(one, Sector(16), 4));
        assert!(runs.is_in_the_way(one, Sector(17), 4), "a gap");
        assert!(!runs.is_in_the_way(other, Sector(17), 4), "another member");
        runs.extend(one, Sector(16), 8);
        assert!(
            runs.is_in_the_way(one, Sector(24), 0),
            "a list with as many nodes as there may be"
        );
        assert_eq!(runs.active(), 1);
        assert_eq!(runs.load(one, (Sector(3), 5)), (Sector(24), 6));
        assert_eq!(runs.load(other, (Sector(3), 5)), (Sector(3), 5));
        let run = runs.take(one).expect("it was gathered");
        assert_eq!((run.at, run.len), (8, 16));
        assert!(runs.take(one).is_none());
        assert_eq!(runs.active(), 0);
    }
}
