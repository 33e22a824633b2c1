//! An array made of its configuration: checked, with all its memory.

use std::collections::VecDeque;

use super::Array;
use crate::array::background::{Background, Barrier, window_rows};
use crate::array::config::{Config, check_policy, copy_kind, logical_block, traits};
use crate::array::ios::Ios;
use crate::array::jobs::Jobs;
use crate::array::lists::ListPool;
use crate::array::locks::RangeLocks;
use crate::array::log::{Log, least_sectors};
use crate::array::member::Members;
use crate::array::metadata_updates::{MOST_UPDATES, MetadataUpdates};
use crate::array::requests::Requests;
use crate::array::room::Room;
use crate::array::runs::Runs;
use crate::array::settings::{ConfigError, Consistency, Settings};
use crate::array::setup::Setup;
use crate::array::slab::Slab;
use crate::array::starved::Starved;
use crate::array::stripe::{Cache, JOBS_PER_PLAN, StripePlan};
use crate::array::timers::Timers;
use crate::array::write_intent::{Bitmap, WriteIntentGate, check_bitmap};
use crate::geometry::Geometry;
use crate::policy::{PolicyState, ReadPolicy};
use crate::units::{MemberIndex, Sectors, Time};

/// Jobs a window has in flight at most: one for each parity it compares.
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

    /// Sectors that requests start and end on: a sector of raid3 is one of each data member's.
    fn logical_block(&self, block: u32) -> u32 {
        if self.atom > 0 { block * u32::from(self.data_chunks) } else { block }
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
struct Sizes {
    ios: u32,
    plans: u32,
    jobs: u32,
    /// Operands of a job.
    operands: usize,
    /// Slices of stripes kept in memory.
    cached: u32,
    /// Nodes of segment lists.
    nodes: usize,
    /// What asks for permission to write: plans, or requests.
    owners: u32,
    outputs: usize,
    /// Members, their replacements, the journal.
    devices: usize,
    /// Sectors that requests start and end on.
    logical_block: u32,
    /// Sectors of a range of background work.
    rows: u64,
}

impl Sizes {
    fn new(config: &Config, shape: &Shape, geometry: &Geometry) -> Self {
        let (limits, copies) = (config.limits, geometry.copies());
        let block = config.members.iter().map(|member| member.logical_block).max().unwrap_or(1);
        let members = u32::from(config.layout.members);
        // A plan or window sends three ranges to each member at most, replacements among them.
        let ios = limits.ios.max(8 * members + 8);
        let plans = if shape.parities > 0 { limits.plans } else { 0 };
        let is_redundant = shape.parities > 0 || copies > 1;
        let unit_jobs = if is_redundant { limits.windows * JOBS_PER_UNIT } else { 0 };
        let jobs = plans * JOBS_PER_PLAN + unit_jobs;
        // Old and new data of every chunk and the old P, then P and Q as targets; or all copies.
        let operands = (2 * usize::from(shape.data_chunks) + 3).max(copies.into());
        // raid3 writes nothing but whole rows.
        let caches = shape.atom == 0 && plans > 0;
        let of_md = config.settings.resync_tick.is_some();
        Self {
            ios,
            plans,
            jobs,
            operands,
            cached: if caches { config.settings.cached_stripes } else { 0 },
            // Enough that the largest step of one request always fits when nothing else is in flight.
            nodes: 2 * ios as usize
                + 2 * (limits.segments as usize + 6) * (members as usize + 2)
                + 2 * shape.atoms(),
            owners: if shape.parities > 0 { plans } else { limits.requests },
            outputs: (2 * ios + limits.requests + jobs + 4 * members + 16 * limits.windows)
                as usize,
            devices: 2 * members as usize + 1,
            logical_block: shape.logical_block(block),
            rows: window_rows(geometry, &config.layout, u64::from(block), of_md),
        }
    }
}

pub(super) fn build(config: &Config) -> Result<Array, ConfigError> {
    let (geometry, shape, policy) = checked(config)?;
    Ok(with_room(config, geometry, &shape, policy))
}

/// Usable sectors, and those that requests start and end on: all checks, and none of the memory.
pub(super) fn extent(config: &Config) -> Result<(Sectors, u32), ConfigError> {
    let (geometry, shape, _) = checked(config)?;
    let block = shape.logical_block(logical_block(config)?);
    Ok((whole_blocks(&geometry, block), block))
}

fn whole_blocks(geometry: &Geometry, block: u32) -> Sectors {
    let block = u64::from(block);
    Sectors(geometry.capacity().0 / block * block)
}

/// Checks a configuration.
fn checked(config: &Config) -> Result<(Geometry, Shape, PolicyState), ConfigError> {
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
    if limits.requests == 0 || limits.segments == 0 || limits.plans == 0 || limits.windows == 0 {
        let reason = "requests, segments, plans and windows must each be at least 1".into();
        return Err(ConfigError { key: "limits", reason });
    }
    config.settings.check(&config.layout)?;
    check_plan_rows(config.settings.plan_rows, block)?;
    let shape = Shape::of(&geometry, &config.settings, u64::from(block));
    check_journal(config.settings.consistency, &shape)?;
    check_bitmap(config.settings.consistency, covered(&geometry, &shape))?;
    Ok((geometry, shape, policy))
}

/// What bits and flags are of: array sectors on mirrors, rows of the members for parity.
fn covered(geometry: &Geometry, shape: &Shape) -> u64 {
    match shape.data_chunks {
        0 => geometry.capacity().0,
        _ => geometry.used(MemberIndex(0)).0,
    }
}

fn write_intent_gate(config: &Config, covered: u64, owners: u32) -> WriteIntentGate {
    let mode = config.settings.consistency;
    let bitmap = Bitmap::new(mode, covered, config.settings.packed_bitmap);
    WriteIntentGate::new(
        mode.has_superblocks(),
        config.layout.members,
        owners,
        config.limits.requests,
        bitmap,
    )
}

/// What never changes of the array.
fn setup(
    config: &Config,
    geometry: Geometry,
    shape: &Shape,
    sizes: &Sizes,
    watches: bool,
) -> Setup {
    let (layout, limits, settings) = (&config.layout, config.limits, config.settings);
    Setup {
        capacity: whole_blocks(&geometry, sizes.logical_block).0,
        copies: geometry.copies(),
        logical_block: sizes.logical_block,
        most_segments: limits.segments,
        policy_watches: watches,
        cuts_reads: matches!(config.read_policy, ReadPolicy::GmirrorSplit { .. }),
        rebuild_step: match settings.resync_tick {
            Some(_) => (geometry.used(MemberIndex(0)).0 >> 4).max(1),
            None => 1,
        },
        copy_kind: copy_kind(layout),
        settings,
        sizes: config.members.iter().map(|member| member.sectors).collect(),
        data_chunks: shape.data_chunks,
        parities: shape.parities,
        atom: shape.atom,
        plan_rows: shape.plan_rows,
        window_rows: sizes.rows,
        requests: limits.requests,
        plans: sizes.plans,
        windows: limits.windows,
        has_payload: true,
        nested: false,
        scratch_base: 0,
        #[cfg(debug_assertions)]
        bug: None,
        layout: layout.clone(),
        geometry,
    }
}

/// The array with all its memory; everything was checked.
fn with_room(config: &Config, geometry: Geometry, shape: &Shape, policy: PolicyState) -> Array {
    let (layout, limits, settings) = (&config.layout, config.limits, config.settings);
    let sizes = Sizes::new(config, shape, &geometry);
    let gate = write_intent_gate(config, covered(&geometry, shape), sizes.owners);
    let (tick, copies) = (settings.resync_tick, geometry.copies());
    let stripes = u64::from(sizes.cached) * shape.plan_rows;
    let barrier =
        Barrier::new(tick, (copies, shape.parities), copy_kind(layout), stripes, limits.requests);
    Array {
        setup: setup(config, geometry, shape, &sizes, policy.watches()),
        policy,
        members: Members::new(sizes.devices, settings.most_bad_blocks),
        requests: Requests::new(limits.requests, limits.segments),
        ios: Ios::new(sizes.ios),
        room: Room::new(sizes.ios),
        runs: Runs::new(sizes.devices - 1),
        plans: Slab::new(sizes.plans, StripePlan::idle()),
        cache: Cache::new(sizes.cached, shape.data_chunks + shape.parities),
        jobs: Jobs::new(sizes.jobs, sizes.operands),
        lists: ListPool::new(sizes.nodes),
        // Requests or plans, then windows of background work.
        locks: RangeLocks::new(limits.requests.max(sizes.plans) + limits.windows),
        starved: Starved::new(MOST_UPDATES, limits.windows, sizes.plans, limits.requests),
        gate,
        log: Log::new(settings.consistency, layout, sizes.plans, settings.log_header),
        background: Background::new(sizes.devices, limits.windows, settings.pacing, barrier),
        updates: MetadataUpdates::new(),
        timers: Timers::default(),
        outputs: VecDeque::with_capacity(sizes.outputs),
        now: Time::ZERO,
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
