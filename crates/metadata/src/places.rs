//! Where the records of a device lie, and which of two places is written next.

use raidlab_core::consistency::{MetaArea, Parameters};
use raidlab_core::{Sector, Sectors};

/// Where the records of a device lie, and which of two places is the older.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Sectors in all.
    pub total: Sectors,
    /// Sectors for data, behind which the log lies; none on a log device.
    pub data: Sectors,
    /// Sectors of the log.
    pub log: Sectors,
    /// Pages of the bitmap.
    pub pages: u32,
    /// The place that is written next, of the superblock and then of each page.
    next: Vec<bool>,
}

impl Places {
    /// Of a device with no record of this array yet.
    pub fn blank(total: Sectors, data: Sectors, area: &MetaArea) -> Self {
        let MetaArea { log, pages, .. } = *area;
        Self { total, data, log, pages, next: vec![false; pages as usize + 1] }
    }

    /// Of an array's log device with a log of so many sectors, with no record of this array yet.
    pub fn log_device(total: Sectors, log: Sectors) -> Self {
        Self::blank(total, Sectors::ZERO, &MetaArea { log, pages: 0, used: true })
    }

    /// Of a device that carries this, whose older places are `next`.
    pub(crate) fn found(total: Sectors, parameters: &Parameters, next: Vec<bool>) -> Self {
        let Parameters { data, log, pages, .. } = *parameters;
        Self { total, data, log, pages, next }
    }

    /// Everything behind the data: from where, and how many sectors.
    pub fn behind_data(&self) -> (Sector, Sectors) {
        (Sector(self.data.0), Sectors(self.total.0.saturating_sub(self.data.0)))
    }

    /// Puts what is this device's own into what its superblock says.
    pub fn describe(&self, parameters: &mut Parameters) {
        parameters.data = self.data;
        parameters.log = self.log;
        parameters.pages = self.pages;
    }

    /// The older of two places, 0 or 1, of a record; the other one is then.
    pub(crate) fn turn(&mut self, record: usize) -> u32 {
        let Some(next) = self.next.get_mut(record) else { return 0 };
        let place = u32::from(*next);
        *next = !*next;
        place
    }
}
