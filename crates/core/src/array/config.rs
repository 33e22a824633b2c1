//! What an array is made of, checked, and its memory.

use std::collections::VecDeque;
use std::fmt;

use super::issue::{IoState, Run};
use super::lists::{EMPTY, ListPool};
use super::locks::RangeLocks;
use super::member::{Member, MemberSet};
use super::request::{RequestState, Trouble};
use super::slab::Slab;
use super::stripe::{JOBS_PER_PLAN, JobState, Plan};
use super::{Array, Segment};
use crate::contract::Role;
use crate::geometry::Geometry;
use crate::layout::{Layout, LayoutError, Level};
use crate::policy::{CopyKind, MemberTraits, PolicyState, ReadPolicy};
use crate::units::{Sectors, Time};

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
}

impl Default for Limits {
    fn default() -> Self {
        Self { requests: 128, segments: 256, ios: 1024, plans: 32 }
    }
}

/// What an array is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Level and parameters.
    pub layout: Layout,
    /// The members in order, as many as the layout says.
    pub members: Vec<MemberConfig>,
    /// Which copy a read takes; raid3: whether a read uses parity.
    pub read_policy: ReadPolicy,
    /// What the policy must know of each member; empty for drives that rotate and are all alike.
    pub traits: Vec<MemberTraits>,
    /// How much at once.
    pub limits: Limits,
}

impl Config {
    /// `layout` over members of one size with 512-byte blocks, default policy and limits.
    pub fn uniform(layout: Layout, sectors: Sectors) -> Self {
        let member = MemberConfig { sectors, logical_block: 1 };
        Self {
            members: vec![member; usize::from(layout.members)],
            layout,
            read_policy: ReadPolicy::default(),
            traits: Vec::new(),
            limits: Limits::default(),
        }
    }
}

/// A configuration that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The parameter: a key of the layout, `limits` or `logical_block`.
    pub key: &'static str,
    /// What is wrong and what would be right.
    pub reason: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.reason)
    }
}

impl std::error::Error for ConfigError {}

impl From<LayoutError> for ConfigError {
    fn from(error: LayoutError) -> Self {
        Self { key: error.key, reason: error.reason }
    }
}

/// One plan holds at most this many rows (1 MiB), so that a huge chunk does not need huge scratch.
const MOST_PLAN_ROWS: u64 = 2048;
/// raid3: one plan holds at most this many atoms of payload, a list node each.
const MOST_PLAN_ATOMS: u64 = 512;

/// What the parity code needs to know of a geometry.
struct Shape {
    data_chunks: u16,
    parities: u16,
    plan_rows: u64,
    atom: u64,
}

impl Shape {
    fn of(geometry: &Geometry, logical_block: u64) -> Self {
        match geometry {
            Geometry::Parity(parity) => Self {
                data_chunks: parity.data_chunks(),
                parities: parity.parities(),
                plan_rows: parity.chunk().0.min(MOST_PLAN_ROWS),
                atom: 0,
            },
            Geometry::Raid3(raid3) => {
                let data = u64::from(raid3.data_members());
                let rows = (MOST_PLAN_ATOMS / data).max(1) * logical_block;
                let data_chunks = raid3.data_members();
                Self { data_chunks, parities: 1, plan_rows: rows, atom: logical_block }
            }
            _ => Self { data_chunks: 0, parities: 0, plan_rows: 0, atom: 0 },
        }
    }

    /// Pieces of one atom in the largest plan.
    fn atoms(&self) -> usize {
        match self.atom {
            0 => 0,
            atom => (self.plan_rows / atom) as usize * usize::from(self.data_chunks),
        }
    }
}

pub(super) fn build(config: &Config) -> Result<Array, ConfigError> {
    let layout = &config.layout;
    let sizes: Vec<Sectors> = config.members.iter().map(|member| member.sectors).collect();
    let block = logical_block(config)?;
    let geometry = Geometry::with_block(layout, &sizes, block)?;
    // A sector of raid3 is one of each data member's.
    let logical_block = match &geometry {
        Geometry::Raid3(raid3) => block * u32::from(raid3.data_members()),
        _ => block,
    };
    check_policy(config.read_policy, layout)
        .map_err(|reason| ConfigError { key: "policy", reason })?;
    let policy = PolicyState::new(config.read_policy, &traits(config)?);
    let limits = config.limits;
    if limits.requests == 0 || limits.segments == 0 || limits.plans == 0 {
        let reason = "requests, segments and plans must each be at least 1".into();
        return Err(ConfigError { key: "limits", reason });
    }
    let members = u32::from(layout.members);
    let ios = limits.ios.max(4 * members);
    let parity = Shape::of(&geometry, u64::from(block));
    let plans = if parity.parities > 0 { limits.plans } else { 0 };
    let jobs = plans * JOBS_PER_PLAN;
    // Old and new data of every chunk and the old P, then P and Q as targets.
    let operands = jobs as usize * (2 * usize::from(parity.data_chunks) + 3);
    // Enough that the largest step of one request always fits when nothing else is in flight.
    let nodes = 2 * ios as usize
        + 2 * (limits.segments as usize + 6) * (members as usize + 2)
        + 2 * parity.atoms();
    let capacity = geometry.capacity().0 / u64::from(logical_block) * u64::from(logical_block);
    let outputs = (ios + limits.requests + jobs + 4 * members) as usize;
    Ok(Array {
        capacity,
        copies: geometry.copies(),
        logical_block,
        most_segments: limits.segments,
        policy_watches: policy.watches(),
        policy,
        cuts_reads: matches!(config.read_policy, ReadPolicy::GmirrorSplit { .. }),
        copy_kind: copy_kind(layout),
        members: vec![Member::default(); usize::from(layout.members)],
        failed: MemberSet::default(),
        requests: Slab::new(limits.requests, RequestState::idle()),
        troubles: vec![Trouble::NONE; limits.requests as usize],
        user_segments: vec![Segment::default(); (limits.requests * limits.segments) as usize],
        ios: Slab::new(ios, IoState::idle()),
        lists: ListPool::new(nodes),
        locks: RangeLocks::new(limits.requests.max(plans)),
        plans: Slab::new(plans, Plan::idle()),
        data_chunks: parity.data_chunks,
        parities: parity.parities,
        atom: parity.atom,
        plan_rows: parity.plan_rows,
        jobs: Slab::new(jobs, JobState::idle()),
        operands: vec![EMPTY; operands],
        roles: vec![Role::default(); operands],
        runs: vec![Run::idle(); usize::from(layout.members)],
        active_runs: 0,
        outputs: VecDeque::with_capacity(outputs),
        starved_requests: VecDeque::with_capacity(limits.requests as usize),
        starved_plans: VecDeque::with_capacity(plans as usize),
        plugged: false,
        nested: false,
        scratch_base: 0,
        held: VecDeque::with_capacity(limits.requests as usize),
        now: Time::ZERO,
        layout: layout.clone(),
        geometry,
    })
}

fn logical_block(config: &Config) -> Result<u32, ConfigError> {
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

fn copy_kind(layout: &Layout) -> CopyKind {
    match layout.level {
        Level::Raid10 => CopyKind::Raid10 { near: layout.near > 1, far: layout.far > 1 },
        _ => CopyKind::Raid1,
    }
}

/// Whether a read policy is defined for a layout; the error says which are.
///
/// # Errors
/// For a policy of mirrors on a level without copies, and the like.
pub fn check_policy(policy: ReadPolicy, layout: &Layout) -> Result<(), String> {
    match layout.level {
        Level::Raid1 | Level::Raid10 => policy.check_copies(copy_kind(layout)),
        Level::Raid3 => policy.check_raid3(),
        _ if policy == ReadPolicy::default() => Ok(()),
        level => Err(format!("{level} has one copy of each block to read; leave the policy out")),
    }
}

fn traits(config: &Config) -> Result<Vec<MemberTraits>, ConfigError> {
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
