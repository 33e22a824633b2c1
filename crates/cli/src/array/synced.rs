//! Whether redundancy of an array that does not run is consistent, by its newest superblock.

use raidlab_core::Sectors;
use raidlab_metadata::md::{ALL, Inspected, Superblock};

/// How far redundancy is consistent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Synced {
    /// Everywhere: the array was stopped cleanly.
    Clean,
    /// Nowhere yet: the array is new and did not run, and its first resync is pending.
    Never,
    /// Up to here: it was stopped during a resync.
    Partly(Sectors),
    /// Where writes were under way it may not be.
    Dirty,
}

impl Synced {
    /// By the newest of the superblocks of an array's devices, if they have any.
    pub(super) fn of<'a>(devices: impl IntoIterator<Item = &'a Inspected>) -> Option<Self> {
        let superblocks = devices.into_iter().filter_map(Inspected::superblock);
        superblocks.max_by_key(|one| one.events).map(Self::by)
    }

    /// By this superblock.
    pub(super) fn by(one: &Superblock) -> Self {
        // Version 0.90 begins with the first event.
        Self::said((one.events, one.v0.is_some().into()), one.resync)
    }

    /// Of an array with so many events, where a new one has so many: whoever starts it adds to them.
    const fn said((events, first): (u64, u64), resync: u64) -> Self {
        match resync {
            ALL => Self::Clean,
            0 if events <= first => Self::Never,
            0 => Self::Dirty,
            to => Self::Partly(Sectors(to)),
        }
    }

    /// In the documents of a status.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Clean => "consistent",
            Self::Never => "never synchronised",
            Self::Partly(_) => "resync",
            Self::Dirty => "not stopped cleanly",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_superblock_says_of_redundancy() {
        for (events, resync, expected) in [
            ((0, 0), ALL, Synced::Clean),
            ((0, 0), 0, Synced::Never),
            ((1, 0), 0, Synced::Dirty),
            ((1, 1), 0, Synced::Never),
            ((2, 1), 0, Synced::Dirty),
            ((0, 0), 128, Synced::Partly(Sectors(128))),
            ((7, 0), 128, Synced::Partly(Sectors(128))),
            ((7, 0), ALL, Synced::Clean),
        ] {
            assert_eq!(Synced::said(events, resync), expected, "{events:?}, {resync}");
        }
    }
}
