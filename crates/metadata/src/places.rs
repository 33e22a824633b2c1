//! Where the records of a device lie, and which of two places is written next.

use raidlab_core::consistency::{ArrayId, Parameters};
use raidlab_core::{Sector, Sectors};

use crate::geom;
use crate::md::Kept;

/// Where the records of a device lie, and which of two places is the older.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Sectors in all.
    pub total: Sectors,
    /// Sectors for data, behind which the log lies; none on a log device.
    pub data: Sectors,
    /// The place that is written next, of the superblock and then of each page.
    next: Vec<bool>,
    /// What stands on a device of an md array.
    md: Option<Box<Kept>>,
    /// What stands on a device of a gmirror or graid3.
    geom: Option<Box<geom::Kept>>,
}

impl Places {
    /// Of a device of so many sectors with no record of this array yet, whose superblocks say this.
    pub fn blank(total: Sectors, parameters: &Parameters) -> Self {
        let next = vec![false; parameters.pages as usize + 1];
        Self { total, data: parameters.data, next, md: None, geom: None }
    }

    /// Of a device of an md array.
    pub(crate) fn of_md(total: Sectors, data: Sectors, kept: Kept) -> Self {
        Self { total, data, next: Vec::new(), md: Some(Box::new(kept)), geom: None }
    }

    /// Of a device of a gmirror or graid3.
    pub(crate) fn of_geom(total: Sectors, data: Sectors, kept: geom::Kept) -> Self {
        Self { total, data, next: Vec::new(), md: None, geom: Some(Box::new(kept)) }
    }

    /// What stands on it, if it is of an md array.
    pub fn md(&self) -> Option<&Kept> {
        self.md.as_deref()
    }

    /// What stands on it, if it is of a gmirror or graid3.
    pub fn geom(&self) -> Option<&geom::Kept> {
        self.geom.as_deref()
    }

    pub(crate) fn geom_mut(&mut self) -> Option<&mut geom::Kept> {
        self.geom.as_deref_mut()
    }

    /// Whether it is of the log device of this md array.
    pub(crate) fn is_journal_of(&self, array: &ArrayId) -> bool {
        self.md().is_some_and(|kept| kept.superblock().array == *array && kept.journal().is_some())
    }

    /// The superblock of a log device of md's with another tail of the journal.
    pub fn with_journal_tail(&mut self, tail: u64) -> Option<(Sector, Vec<u8>)> {
        self.md_mut()?.with_tail(tail)
    }

    pub(crate) fn md_mut(&mut self) -> Option<&mut Kept> {
        self.md.as_deref_mut()
    }

    /// Of a device that carries this, whose older places are `next`.
    pub(crate) fn found(total: Sectors, parameters: &Parameters, next: Vec<bool>) -> Self {
        Self { total, data: parameters.data, next, md: None, geom: None }
    }

    /// Where records may lie besides data: from where, and how many sectors.
    pub fn beside_data(&self) -> (Sector, Sectors) {
        match (self.md(), self.geom()) {
            (Some(kept), _) => kept.beside_data(self.total),
            (None, Some(kept)) => kept.place(),
            (None, None) => self.behind_data(),
        }
    }

    /// Everything behind the data: from where, and how many sectors.
    pub fn behind_data(&self) -> (Sector, Sectors) {
        (Sector(self.data.0), Sectors(self.total.0.saturating_sub(self.data.0)))
    }

    /// The older of two places, 0 or 1, of a record; the other one is then.
    pub(crate) fn turn(&mut self, record: usize) -> u32 {
        let Some(next) = self.next.get_mut(record) else { return 0 };
        let place = u32::from(*next);
        *next = !*next;
        place
    }
}
