//! What an array is made of.

use super::settings::{ConfigError, Settings};
use crate::layout::{Layout, Level, Redundancy};
use crate::policy::{CopyKind, MemberTraits, ReadPolicy};
use crate::units::Sectors;

/// A member as the array sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberConfig {
    /// Sectors usable for data.
    pub sectors: Sectors,
    /// The smallest unit it reads and writes, in sectors: a power of two, 1 or 8 in practice.
    pub logical_block: u32,
}

/// How much the array may hold at once. All memory is taken at set-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests accepted and not yet answered, at least 1.
    pub requests: u32,
    /// Segments of one request, at least 1.
    pub segments: u32,
    /// Member I/Os in flight; raised to four a member.
    pub ios: u32,
    /// Stripes being worked on (parity levels), at least 1.
    pub plans: u32,
    /// Ranges that background work (rebuild, resync, scrub, healing) holds at once, at least 1.
    pub windows: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { requests: 128, segments: 256, ios: 1024, plans: 32, windows: 8 }
    }
}

/// What an array is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Level and parameters.
    pub layout: Layout,
    /// The members in order, as many as the layout has drives.
    pub members: Vec<MemberConfig>,
    /// Which copy a read takes; raid3: whether a read uses parity.
    pub read_policy: ReadPolicy,
    /// What the policy must know of each member; empty for drives that rotate and are all alike.
    pub traits: Vec<MemberTraits>,
    /// How much at once.
    pub limits: Limits,
    /// How it keeps redundancy consistent, and what it does about errors.
    pub settings: Settings,
}

impl Config {
    /// `layout` over members of one size with 512-byte blocks, default policy and limits.
    pub fn uniform(layout: Layout, sectors: Sectors) -> Self {
        let member = MemberConfig { sectors, logical_block: 1 };
        Self {
            members: vec![member; usize::from(layout.drives())],
            layout,
            read_policy: ReadPolicy::default(),
            traits: Vec::new(),
            limits: Limits::default(),
            settings: Settings::default(),
        }
    }
}

pub(super) fn logical_block(config: &Config) -> Result<u32, ConfigError> {
    let error = |reason: String| ConfigError { key: "logical_block", reason };
    let mut largest = 1;
    for (index, member) in config.members.iter().enumerate() {
        if !member.logical_block.is_power_of_two() {
            return Err(error(format!(
                "member {index}: {} sectors is not a power of two",
                member.logical_block
            )));
        }
        largest = largest.max(member.logical_block);
    }
    let chunk = config.layout.chunk.0;
    if chunk != 0 && !chunk.is_multiple_of(u64::from(largest)) {
        return Err(error(format!(
            "the chunk of {} is not a multiple of the members' block of {}",
            Sectors(chunk),
            Sectors(u64::from(largest))
        )));
    }
    // Without chunks, a member that does not end on a block would put the next one off its blocks.
    if layout_needs_whole_blocks(&config.layout)
        && config.members.iter().any(|m| !m.sectors.0.is_multiple_of(u64::from(largest)))
    {
        return Err(error(format!(
            "every member of a linear array must be a multiple of the members' block of {}",
            Sectors(u64::from(largest))
        )));
    }
    Ok(largest)
}

fn layout_needs_whole_blocks(layout: &Layout) -> bool {
    layout.level == Level::Linear && layout.chunk == Sectors::ZERO
}

pub(super) fn copy_kind(layout: &Layout) -> CopyKind {
    match layout.level.redundancy() {
        Redundancy::Copies => CopyKind::Raid10 { near: layout.near > 1, far: layout.far > 1 },
        _ => CopyKind::Raid1,
    }
}

/// Whether a read policy is defined for a layout; the error says which are.
///
/// # Errors
/// For a policy of mirrors on a level without copies, and the like.
pub fn check_policy(policy: ReadPolicy, layout: &Layout) -> Result<(), String> {
    match layout.level.redundancy() {
        Redundancy::Mirror | Redundancy::Copies => policy.check_copies(copy_kind(layout)),
        Redundancy::Parity(_) if layout.level.is_cut_by_sectors() => policy.check_raid3(),
        _ if policy == ReadPolicy::default() => Ok(()),
        _ => Err(format!(
            "{} has one copy of each block to read; leave the policy out",
            layout.level
        )),
    }
}

pub(super) fn traits(config: &Config) -> Result<Vec<MemberTraits>, ConfigError> {
    let members = usize::from(config.layout.members);
    match config.traits.len() {
        0 => Ok(vec![MemberTraits::default(); members]),
        given if given == members => Ok(config.traits.clone()),
        given => {
            let reason = format!("{given} given for {members} members; give none, or one for each");
            Err(ConfigError { key: "traits", reason })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_know_which_copies_there_are() {
        let kind = |near, far| copy_kind(&Layout { near, far, ..Layout::new(Level::Raid10, 4) });
        assert_eq!(kind(2, 1), CopyKind::Raid10 { near: true, far: false });
        assert_eq!(kind(1, 2), CopyKind::Raid10 { near: false, far: true });
        assert_eq!(copy_kind(&Layout::new(Level::Raid1, 2)), CopyKind::Raid1);
    }

    #[test]
    fn blocks_fit_chunks_and_members() {
        let config = |layout: Layout, blocks: &[u32], sectors| Config {
            members: blocks
                .iter()
                .map(|block| MemberConfig { sectors: Sectors(sectors), logical_block: *block })
                .collect(),
            ..Config::uniform(layout, Sectors(sectors))
        };
        let raid0 = Layout::new(Level::Raid0, 2).with_chunk(Sectors(16));
        let linear = Layout::new(Level::Linear, 2);
        let block = |config: &Config| logical_block(config).ok();
        assert_eq!(block(&config(raid0.clone(), &[1, 8], 160)), Some(8));
        assert_eq!(block(&config(raid0.clone(), &[8, 1], 160)), Some(8));
        assert_eq!(block(&config(raid0.clone(), &[1, 3], 160)), None);
        assert_eq!(block(&config(raid0.clone(), &[1, 32], 160)), None);
        assert_eq!(block(&config(raid0, &[1, 8], 163)), Some(8), "chunks leave the rest");
        assert_eq!(block(&config(linear.clone(), &[1, 8], 163)), None);
        assert_eq!(block(&config(linear, &[1, 8], 160)), Some(8));
        assert_eq!(block(&config(Layout::new(Level::Raid1, 2), &[1, 8], 163)), Some(8));
    }
}
