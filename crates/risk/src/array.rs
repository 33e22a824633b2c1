//! Which losses an array survives, asked of the core.

use std::collections::BTreeMap;

use raidlab_core::geometry::Geometry;
use raidlab_core::{Layout, LayoutError, MemberIndex, Sectors};

/// An array's drives: what of each is exposed while others are gone. What was asked once is remembered.
#[derive(Clone, Debug)]
pub struct Array {
    rule: Rule,
    drives: u16,
    /// Drives of each lower array of nested levels; else all.
    together: u16,
    usable: u64,
    numbers: BTreeMap<Vec<u16>, usize>,
    states: Vec<Known>,
}

/// A state that was asked for.
#[derive(Clone, Debug)]
struct Known {
    /// The drives that are gone, in ascending order.
    gone: Vec<u16>,
    /// What of each drive nothing else holds.
    exposed: Box<[f64]>,
    /// By drive, the state after it is lost, or back; [`UNKNOWN`] until it is asked for.
    changed: Box<[usize]>,
}

const UNKNOWN: usize = usize::MAX;

#[derive(Clone, Debug)]
enum Rule {
    Layout(Box<Geometry>),
    /// Any so many may be gone.
    Any(u16),
}

impl Array {
    /// A layout over drives of one size.
    ///
    /// # Errors
    /// When the layout is impossible or the drives are too small for it.
    pub fn new(layout: &Layout, drive: Sectors) -> Result<Self, LayoutError> {
        let sizes = vec![drive; usize::from(layout.drives())];
        let geometry = Geometry::new(layout, &sizes)?;
        let usable = geometry.capacity().bytes();
        let together = layout.inner.as_ref().map_or(layout.members, |inner| inner.members);
        let array = Self::of(Rule::Layout(Box::new(geometry)), layout.drives(), usable);
        Ok(Self { together, ..array })
    }

    /// Drives of which any `tolerated` may be gone: for checks against published figures, of which some are about
    /// levels that no layout has.
    pub fn tolerating(drives: u16, tolerated: u16) -> Self {
        Self::of(Rule::Any(tolerated), drives, 0)
    }

    fn of(rule: Rule, drives: u16, usable: u64) -> Self {
        Self {
            rule,
            drives,
            together: drives,
            usable,
            numbers: BTreeMap::new(),
            states: Vec::new(),
        }
    }

    /// How many drives.
    pub const fn drives(&self) -> u16 {
        self.drives
    }

    /// So many drives in a row are of one array whose rebuilds may wait for each other.
    pub(crate) const fn together(&self) -> u16 {
        self.together
    }

    /// Bytes that users have.
    pub const fn usable(&self) -> u64 {
        self.usable
    }

    /// The number of a state in which these drives are gone, in ascending order; the state must not be a lost one.
    pub(crate) fn state(&mut self, gone: &[u16]) -> usize {
        if let Some(number) = self.numbers.get(gone) {
            return *number;
        }
        let missing = |drive: MemberIndex| gone.binary_search(&drive.0).is_ok();
        let share = |drive: u16| {
            if gone.binary_search(&drive).is_ok() {
                return 0.0;
            }
            match &self.rule {
                Rule::Any(tolerated) => f64::from(gone.len() >= usize::from(*tolerated)),
                Rule::Layout(geometry) => {
                    let (parts, of) = geometry.exposed(&missing, MemberIndex(drive));
                    parts as f64 / of as f64
                }
            }
        };
        let exposed: Box<[f64]> = (0..self.drives).map(share).collect();
        let changed = vec![UNKNOWN; usize::from(self.drives)].into();
        self.states.push(Known { gone: gone.to_vec(), exposed, changed });
        self.numbers.insert(gone.to_vec(), self.states.len() - 1);
        self.states.len() - 1
    }

    /// The state after a drive of a state was lost, or is back.
    pub(crate) fn changed(&mut self, state: usize, drive: u16) -> usize {
        let known = self.states[state].changed[usize::from(drive)];
        if known != UNKNOWN {
            return known;
        }
        let mut gone = self.states[state].gone.clone();
        match gone.binary_search(&drive) {
            Ok(at) => drop(gone.remove(at)),
            Err(at) => gone.insert(at, drive),
        }
        let number = self.state(&gone);
        self.states[state].changed[usize::from(drive)] = number;
        number
    }

    /// What of each drive nothing else holds in a state, from 0 to 1. Losing a drive of which something is exposed
    /// loses the array.
    pub(crate) fn exposed(&self, state: usize) -> &[f64] {
        &self.states[state].exposed
    }

    /// The state in which no drive is gone.
    pub(crate) fn whole(&mut self) -> usize {
        self.state(&[])
    }

    /// Whether it has lost data as soon as a first drive is gone.
    pub fn is_redundant(&mut self) -> bool {
        let whole = self.whole();
        self.exposed(whole).iter().all(|share| *share == 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_the_same_whichever_way_it_is_reached() {
        let mut array = Array::tolerating(6, 2);
        let whole = array.whole();
        let lost = [array.changed(whole, 4), array.changed(whole, 1)];
        let both = array.state(&[1, 4]);
        // Asked twice: what is remembered is right, too.
        for _ in 0..2 {
            assert_eq!(array.changed(lost[0], 1), both);
            assert_eq!(array.changed(lost[1], 4), both);
            assert_eq!(array.changed(both, 4), lost[1]);
            assert_eq!(array.changed(lost[1], 1), whole);
        }
        assert_eq!(array.exposed(both), [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]);
    }
}
