//! What an array is made of, checked, and its memory.

use std::collections::VecDeque;
use std::fmt;

use super::background::{Background, Unit, unit_rows};
use super::gather::Gather;
use super::issue::{IoState, Run};
use super::lists::{EMPTY, ListPool};
use super::locks::RangeLocks;
use super::log::{Log, least_sectors};
use super::member::{Member, MemberSet};
use super::meta::{MOST_ROUNDS, NO_META, Round};
use super::permit::{Bitmap, Permits, check_bitmap};
use super::request::{RequestState, Trouble};
use super::settings::{Consistency, Settings};
use super::slab::Slab;
use super::stripe::{Cache, JOBS_PER_PLAN, JobState, Plan};
use super::timers::Timers;
use super::{Array, Segment};
use crate::contract::Role;
use crate::geometry::Geometry;
use crate::layout::{Layout, LayoutError, Level};
use crate::policy::{CopyKind, MemberTraits, PolicyState, ReadPolicy};
use crate::units::{MemberIndex, Sectors, Time};

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
    pub units: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { requests: 128, segments: 256, ios: 1024, plans: 32, units: 8 }
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

/// Jobs a unit has in flight at most: one for each parity it compares.
const JOBS_PER_UNIT: u32 = 2;
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
    fn of(geometry: &Geometry, settings: &Settings, logical_block: u64) -> Self {
        match geometry {
            Geometry::Parity(parity) => Self {
                data_chunks: parity.data_chunks(),
                parities: parity.parities(),
                plan_rows: parity.chunk().0.min(settings.plan_rows.0),
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

/// How much of everything an array has room for.
struct Room {
    ios: u32,
    plans: u32,
    jobs: u32,
    operands: usize,
    /// Slices of stripes kept in memory.
    cached: u32,
    /// Nodes of segment lists.
    nodes: usize,
    /// What asks for permission to write: plans, or requests.
    owners: u32,
    outputs: usize,
    requests: usize,
    /// Members, their replacements, the journal.
    devices: usize,
    /// Sectors that requests start and end on.
    logical_block: u32,
    /// Sectors of a range of background work.
    rows: u64,
}

impl Room {
    fn new(config: &Config, shape: &Shape, geometry: &Geometry) -> Self {
        let (limits, copies) = (config.limits, geometry.copies());
        let block = config.members.iter().map(|member| member.logical_block).max().unwrap_or(1);
        let members = u32::from(config.layout.members);
        // A plan or unit sends three ranges to each member at most, replacements among them.
        let ios = limits.ios.max(8 * members + 8);
        let plans = if shape.parities > 0 { limits.plans } else { 0 };
        let is_redundant = shape.parities > 0 || copies > 1;
        let unit_jobs = if is_redundant { limits.units * JOBS_PER_UNIT } else { 0 };
        let jobs = plans * JOBS_PER_PLAN + unit_jobs;
        // Old and new data of every chunk and the old P, then P and Q as targets; or all copies.
        let operands = (2 * usize::from(shape.data_chunks) + 3).max(copies.into());
        // raid3 writes nothing but whole rows.
        let caches = shape.atom == 0 && plans > 0;
        Self {
            ios,
            plans,
            jobs,
            operands: jobs as usize * operands,
            cached: if caches { config.settings.cached_stripes } else { 0 },
            // Enough that the largest step of one request always fits when nothing else is in flight.
            nodes: 2 * ios as usize
                + 2 * (limits.segments as usize + 6) * (members as usize + 2)
                + 2 * shape.atoms(),
            owners: if shape.parities > 0 { plans } else { limits.requests },
            outputs: (2 * ios + limits.requests + jobs + 4 * members + 16 * limits.units) as usize,
            requests: limits.requests as usize,
            devices: 2 * members as usize + 1,
            // A sector of raid3 is one of each data member's.
            logical_block: if shape.atom > 0 {
                block * u32::from(shape.data_chunks)
            } else {
                block
            },
            rows: unit_rows(geometry, &config.layout, u64::from(block)),
        }
    }
}

pub(super) fn build(config: &Config) -> Result<Array, ConfigError> {
    if config.layout.inner.is_some() {
        let reason = format!("{} is nested: arrays over arrays, not one", config.layout);
        return Err(ConfigError { key: "level", reason });
    }
    let sizes: Vec<Sectors> = config.members.iter().map(|member| member.sectors).collect();
    let block = logical_block(config)?;
    let geometry = Geometry::with_block(&config.layout, &sizes, block)?;
    check_policy(config.read_policy, &config.layout)
        .map_err(|reason| ConfigError { key: "policy", reason })?;
    let policy = PolicyState::new(config.read_policy, &traits(config)?);
    let limits = config.limits;
    if limits.requests == 0 || limits.segments == 0 || limits.plans == 0 || limits.units == 0 {
        let reason = "requests, segments, plans and units must each be at least 1".into();
        return Err(ConfigError { key: "limits", reason });
    }
    config.settings.check(&config.layout)?;
    check_plan_rows(config.settings.plan_rows, block)?;
    let shape = Shape::of(&geometry, &config.settings, u64::from(block));
    check_journal(config.settings.consistency, &shape)?;
    check_bitmap(config.settings.consistency, covered(&geometry, &shape))?;
    Ok(with_room(config, geometry, &shape, policy))
}

/// What bits and flags are of: array sectors on mirrors, rows of the members for parity.
fn covered(geometry: &Geometry, shape: &Shape) -> u64 {
    match shape.data_chunks {
        0 => geometry.capacity().0,
        _ => geometry.used(MemberIndex(0)).0,
    }
}

fn permits(config: &Config, covered: u64, owners: u32) -> Permits {
    let mode = config.settings.consistency;
    let bitmap = Bitmap::new(mode, covered);
    Permits::new(mode.has_superblocks(), config.layout.members, owners, bitmap)
}

/// The array with all its memory; everything was checked.
fn with_room(config: &Config, geometry: Geometry, shape: &Shape, policy: PolicyState) -> Array {
    let (layout, limits, settings) = (&config.layout, config.limits, config.settings);
    let room = Room::new(config, shape, &geometry);
    let block = u64::from(room.logical_block);
    Array {
        capacity: geometry.capacity().0 / block * block,
        copies: geometry.copies(),
        logical_block: room.logical_block,
        most_segments: limits.segments,
        policy_watches: policy.watches(),
        policy,
        cuts_reads: matches!(config.read_policy, ReadPolicy::GmirrorSplit { .. }),
        copy_kind: copy_kind(layout),
        members: vec![Member::new(settings.most_bad_blocks); room.devices],
        failed: MemberSet::NONE,
        rebuilding: MemberSet::NONE,
        partial: MemberSet::NONE,
        replacing: MemberSet::NONE,
        stopped: false,
        settings,
        sizes: config.members.iter().map(|member| member.sectors).collect(),
        metas: vec![NO_META; room.ios as usize],
        rounds: Slab::new(MOST_ROUNDS, Round::idle()),
        starved_rounds: VecDeque::with_capacity(MOST_ROUNDS as usize),
        timers: Timers::default(),
        held_replies: VecDeque::with_capacity(room.requests),
        log: Log::new(settings.consistency, layout, room.plans),
        permits: permits(config, covered(&geometry, shape), room.owners),
        background: Background::new(room.rows, settings.pacing),
        units: Slab::new(limits.units, Unit::idle()),
        starved_units: VecDeque::with_capacity(limits.units as usize),
        #[cfg(feature = "seeded-bugs")]
        bug: None,
        requests: Slab::new(limits.requests, RequestState::idle()),
        troubles: vec![Trouble::NONE; room.requests],
        user_segments: vec![Segment::default(); (limits.requests * limits.segments) as usize],
        ios: Slab::new(room.ios, IoState::idle()),
        waiting: Vec::with_capacity(room.ios as usize),
        lists: ListPool::new(room.nodes),
        // Requests or plans, then units of background work.
        locks: RangeLocks::new(limits.requests.max(room.plans) + limits.units),
        plans: Slab::new(room.plans, Plan::idle()),
        data_chunks: shape.data_chunks,
        parities: shape.parities,
        atom: shape.atom,
        has_payload: true,
        plan_rows: shape.plan_rows,
        jobs: Slab::new(room.jobs, JobState::idle()),
        operands: vec![EMPTY; room.operands],
        roles: vec![Role::default(); room.operands],
        runs: vec![Run::idle(); room.devices - 1],
        active_runs: 0,
        outputs: VecDeque::with_capacity(room.outputs),
        starved_requests: VecDeque::with_capacity(room.requests),
        starved_plans: VecDeque::with_capacity(room.plans as usize),
        plugged: false,
        holding: false,
        nested: false,
        scratch_base: 0,
        held: VecDeque::with_capacity(room.requests),
        gather: Gather::new(limits.requests),
        cache: Cache::new(room.cached, shape.data_chunks + shape.parities),
        now: Time::ZERO,
        layout: layout.clone(),
        geometry,
    }
}

/// A slice starts and ends where logical blocks do.
fn check_plan_rows(rows: Sectors, block: u32) -> Result<(), ConfigError> {
    if rows.0.is_power_of_two() && rows.0 >= u64::from(block) {
        return Ok(());
    }
    let reason =
        format!("{rows} is not a power of two of at least a logical block ({block} sectors)");
    Err(ConfigError { key: "plan_rows", reason })
}

/// A journal holds at least the entries of one plan.
fn check_journal(mode: Consistency, shape: &Shape) -> Result<(), ConfigError> {
    let Consistency::Journal { sectors } = mode else { return Ok(()) };
    let least = least_sectors(shape.data_chunks + shape.parities, shape.plan_rows);
    if sectors.0 >= least {
        return Ok(());
    }
    let least = Sectors(least);
    let reason = format!("a journal of {sectors} is too small; a stripe takes up to {least}");
    Err(ConfigError { key: "consistency", reason })
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
