//! Which copy a read takes: named policies over what the array knows of its members.

use crate::units::Sector;

/// A named rule for choosing among the copies of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReadPolicy {
    /// A copy that goes on where its member's last I/O ended; else the member with the fewest I/Os
    /// in flight; of equals the one whose last I/O ended nearest; of equals the first copy.
    #[default]
    LeastBusy,
}

/// What a policy may know of a member that holds a copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// Which copy.
    pub(crate) copy: u16,
    /// Where it lies on the member.
    pub(crate) at: Sector,
    /// I/Os in flight on the member.
    pub(crate) pending: u32,
    /// Where the member's last planned I/O ended.
    pub(crate) head: Sector,
}

impl ReadPolicy {
    /// The copy to read, or `None` without candidates.
    #[inline]
    pub(crate) fn choose(self, candidates: impl Iterator<Item = Candidate>) -> Option<u16> {
        match self {
            Self::LeastBusy => least_busy(candidates),
        }
    }
}

#[inline]
fn least_busy(candidates: impl Iterator<Item = Candidate>) -> Option<u16> {
    let mut best: Option<((u32, u64), u16)> = None;
    for candidate in candidates {
        if candidate.head == candidate.at {
            return Some(candidate.copy);
        }
        let score = (candidate.pending, candidate.at.0.abs_diff(candidate.head.0));
        if best.is_none_or(|(least, _)| score < least) {
            best = Some((score, candidate.copy));
        }
    }
    best.map(|(_, copy)| copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(of: &[(u64, u32, u64)]) -> Option<u16> {
        let all = of.iter().enumerate().map(|(copy, (at, pending, head))| Candidate {
            copy: copy as u16,
            at: Sector(*at),
            pending: *pending,
            head: Sector(*head),
        });
        ReadPolicy::LeastBusy.choose(all)
    }

    #[test]
    fn least_busy_follows_its_rule() {
        assert_eq!(choose(&[]), None);
        assert_eq!(choose(&[(8, 0, 0), (8, 5, 8)]), Some(1), "a stream stays on its member");
        assert_eq!(choose(&[(8, 1, 0), (8, 0, 100)]), Some(1), "the idle one");
        assert_eq!(choose(&[(50, 1, 0), (50, 1, 60)]), Some(1), "the nearest of equals");
        assert_eq!(choose(&[(50, 1, 40), (50, 1, 60)]), Some(0), "the first of equals");
    }
}
