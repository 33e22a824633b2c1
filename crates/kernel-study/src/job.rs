//! What a guest is asked to run, and what it reports: both are JSON.

use std::path::PathBuf;

use raidlab_study::Rebuild;
use raidlab_workload::Recipe;
use serde::{Deserialize, Serialize};

/// A cell, as the guest runs it on an array that is set up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// What is run; `None` for a rebuild alone.
    pub workload: Option<Recipe>,
    /// How many copies of it at once.
    pub copies: u32,
    /// Every random choice is drawn from this.
    pub seed: u64,
    /// Memory of the guest in bytes.
    pub memory: u64,
    /// Where it runs.
    pub place: Place,
    /// The members, by the names of their block devices: what they did is counted.
    pub members: Vec<String>,
    /// A rebuild that begins with the run.
    pub rebuild: Option<RebuildJob>,
    /// When processes begin.
    pub start: Start,
}

/// Where a workload runs in the guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// In a directory of a mounted filesystem.
    Directory(PathBuf),
    /// On a block device, without a page cache.
    Device(PathBuf),
}

/// A rebuild by md.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RebuildJob {
    /// The array, such as `md0`.
    pub array: String,
    /// The block devices of which one takes the place of the lost member, by name. It is added, unless a member fails.
    pub fresh: Vec<String>,
    /// The member that fails as the rebuild begins; a hot spare takes its place. `None` where it is lost already.
    pub fails: Option<String>,
    /// After how many bytes of each member a rebuild alone is broken off and its time estimated.
    pub most: Option<u64>,
}

/// When processes begin: nothing on a real machine is in step with the kernel's timers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Nanoseconds between preparing and the run.
    pub wait: u64,
    /// Each process begins up to this many nanoseconds later than the run, drawn from the seed.
    pub spread: u64,
}

/// What a guest reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The record as [`RunRecord::to_text`](raidlab_workload::RunRecord::to_text) writes it.
    pub record: Option<String>,
    /// What the rebuild did meanwhile.
    pub rebuild: Option<Rebuild>,
    /// Bytes of the block device; `None` on a filesystem.
    pub space: Option<u64>,
    /// The guest's monotonic clock when the run began and when it ended, in nanoseconds.
    pub span: [u64; 2],
}
