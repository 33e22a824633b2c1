//! Sweeps: many studies of one file with a `[sweep]`, in virtual time, in shards that any number of
//! machines run.
//!
//! * [`Job`] is a sweep with what its rows depend on: the study file, the drive files and the version.
//! * [`run_shard`] runs what is missing of a [shard](raidlab_store::shards), on one thread; who wants more threads or
//!   machines runs more shards. A cell that panics, or during which two processes ended, gives a row that says so.
//! * [`estimate`] counts cells and says how long they will take.
//! * [`script`] hands shards to Slurm or GNU parallel; [`csv`], [`ParquetFile`] and [`Report`] show
//!   rows.
//!
//! It knows no terminals and starts no processes. Times are in seconds, capacities in bytes.
//!
//! ```
//! use std::path::Path;
//! use std::sync::atomic::AtomicBool;
//!
//! use raidlab_store::shards::{Merge, Shards};
//! use raidlab_sweep::{Ended, Job, Version, run_shard};
//!
//! # fn main() -> Result<(), raidlab_sweep::SweepError> {
//! # let directory = std::env::temp_dir().join(format!("raidlab-sweep-doc-{}", std::process::id()));
//! let text = r#"
//! title = "Does a longer queue help?"
//! rounds = 1
//! drives = [{ name = "nas", model = "nas-8tb-7200", count = 4 }]
//! layouts = [{ level = "raid0", members = 4 }]
//! workloads = [{ kind = "random-read", size = "64KiB" }]
//!
//! [[sweep.axes]]
//! key = "processes"
//! values = [[1], [2], [4]]
//! "#;
//! let version = Version { raidlab: "0.1.0".into(), commit: None };
//! let job = Job::parse(text, "mine.toml", Path::new(""), &version)?;
//! let shards = Shards::create(&directory, &job.head(2))?;
//! static STOP: AtomicBool = AtomicBool::new(false);
//! for shard in 1..=2 {
//!     let ran = run_shard(&job, &shards, shard, &STOP, false, &mut |_| {})?;
//!     assert!(matches!(ran.ended, Ended::Finished(_)));
//! }
//! let mut rows = 0;
//! Merge::of(&[directory.clone()])?.rows(|_| {
//!     rows += 1;
//!     Ok::<(), raidlab_sweep::SweepError>(())
//! })?;
//! assert_eq!(rows, 3, "a point each, with one cell");
//! # std::fs::remove_dir_all(&directory).expect("ours");
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod error;
mod estimate;
mod job;
mod parquet;
mod report;
mod row;
mod run;
pub mod script;
mod table;

pub use error::SweepError;
pub use estimate::{Estimate, SHARD_SECONDS, count, estimate};
pub use job::{Job, Version};
pub use parquet::{ParquetColumns, ParquetFile};
pub use report::Report;
pub use row::Row;
pub use run::{Ended, Ran, process_cpu, run_shard};
pub use table::csv;
