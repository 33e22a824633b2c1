//! A device in memory.

use raidlab_core::{Sector, Sectors};
use raidlab_metadata::{Source, Unreadable};

/// A device in memory.
pub(crate) struct Disk(pub(crate) Vec<u8>);

impl Source for Disk {
    fn sectors(&self) -> Sectors {
        Sectors(self.0.len() as u64 / 512)
    }

    fn logical_block(&self) -> u32 {
        1
    }

    fn read(&mut self, at: Sector, into: &mut [u8]) -> Result<(), Unreadable> {
        let from = usize::try_from(at.bytes()).map_err(|_| Unreadable)?;
        let there = from.checked_add(into.len()).and_then(|end| self.0.get(from..end));
        into.copy_from_slice(there.ok_or(Unreadable)?);
        Ok(())
    }
}
