//! What members carry that say what a test wants them to.

use raidlab_core::consistency::{
    Allow, AssembleError, Assembled, Carried, Examined, Finding, Found, MetaArea, Parameters,
    Unusable, Unused, Wanted,
};
use raidlab_core::contract::{Epoch, History, Superblock};
use raidlab_core::{
    Array, Config, Consistency, Layout, Level, Limits, MemberIndex, Nanos, Sector, Sectors,
};

use super::records::{IDENTITY, next_nonce};

/// Sectors of each member of these arrays.
pub(crate) const MEMBER: u64 = 64;

/// An array that takes little at once and is marked clean soon.
fn config(layout: Layout, consistency: Consistency) -> Config {
    let mut config = Config::uniform(layout, Sectors(MEMBER));
    config.limits = Limits { requests: 2, segments: 2, ios: 1, plans: 1, windows: 1 };
    config.settings.consistency = consistency;
    config.settings.clean_after = Nanos(30);
    config
}

pub(crate) fn mirror(members: u16) -> Config {
    config(Layout::new(Level::Raid1, members), Consistency::Resync)
}

pub(crate) fn raid5(members: u16, consistency: Consistency) -> Config {
    config(Layout::new(Level::Raid5, members).with_chunk(Sectors(8)), consistency)
}

pub(crate) fn superblock(events: u64, failed: u64) -> Superblock {
    let (synced_to, mut history) = (Sector::MAX, History::default());
    history[0] = Epoch::FIRST;
    let failed = [failed, 0];
    Superblock { events, failed, clean: true, synced_to, history, ..Superblock::default() }
}

pub(crate) fn carries(config: &Config, device: u16, superblock: Superblock) -> Examined {
    let array = Array::new(config).expect("possible");
    let area = MetaArea::of(&array, config.settings.consistency, config.members[0].sectors);
    let parameters = Parameters::of(config, &area, MemberIndex(device));
    let superblock = Finding::Whole(Carried { array: IDENTITY, device, parameters, superblock });
    let bitmap = vec![Finding::Blank; area.pages as usize];
    let sectors = Sectors(100_000);
    Examined { sectors, logical_block: 1, superblock, bitmap, ..Examined::default() }
}

/// Members that carry these superblocks, or nothing; the log device has the newest.
pub(crate) fn found(config: &Config, superblocks: &[Option<Superblock>]) -> Found {
    let newest = superblocks.iter().flatten().max_by_key(|superblock| superblock.events);
    let carries = |(device, superblock): (u16, &Option<Superblock>)| match superblock {
        Some(superblock) => carries(config, device, *superblock),
        None => Examined::absent(),
    };
    let journal = carries((2 * config.layout.members, &newest.copied()));
    Found { members: (0..).zip(superblocks).map(carries).collect(), journal, nonce: next_nonce() }
}

pub(crate) fn start(config: &Config, found: &Found) -> Result<Assembled, AssembleError> {
    Array::assemble(&Wanted::from(config), found, Allow::default())
}

pub(crate) fn unused(member: u16, why: Unusable) -> Unused {
    Unused { member: MemberIndex(member), why }
}
