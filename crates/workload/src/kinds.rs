//! The kinds of workloads: what each must be able to tell, and how it is made from parameters.

use std::fmt;
use std::sync::Arc;

use crate::error::{WorkloadError, WorkloadErrorKind};
use crate::metric::Metric;
use crate::parameters::Parameters;
use crate::plan::{FileNeed, Plan, Setting};
use crate::record::RunRecord;
use crate::simple;

/// A workload with its parameters.
pub trait Workload: fmt::Debug + Send + Sync {
    /// The name of its kind, as study files and the command line have it.
    fn kind(&self) -> &'static str;

    /// Its name where nobody gives one.
    fn default_name(&self) -> String;

    /// In words, for reports: what each copy does, with sizes and units.
    fn description(&self) -> String;

    /// What is measured; the first is what layouts are compared by.
    fn metrics(&self) -> Vec<Metric>;

    /// The values of a run, in the order of [`metrics`](Self::metrics); `None` where it took too short
    /// a time to tell.
    fn values(&self, record: &RunRecord) -> Vec<Option<f64>>;

    /// All choices made: processes, files, phases.
    ///
    /// # Errors
    /// When it cannot be in this setting; names the parameter.
    fn plan(&self, setting: &Setting) -> Result<Plan, WorkloadError>;

    /// The same workload with so many bytes for each copy: what `--size` does.
    ///
    /// # Errors
    /// When it has no such size, or cannot be of this one.
    fn resized(&self, bytes: u64) -> Result<Arc<dyn Workload>, WorkloadError>;

    /// Checks that `copies` fit on a target of `space` bytes without a filesystem, which reads and
    /// writes whole blocks of `logical_block` bytes.
    ///
    /// # Errors
    /// When it needs a filesystem, does not fit, or does not work in whole blocks.
    fn check_raw(&self, space: u64, copies: u32, logical_block: u64) -> Result<(), WorkloadError> {
        let setting = Setting { space: Some(space), ..Setting::new(copies, 0) };
        crate::raw::check(&self.plan(&setting)?, space, logical_block)
    }

    /// Bytes that a target without a filesystem must have at least for so many copies.
    ///
    /// # Errors
    /// When it cannot be planned.
    fn raw_room(&self, copies: u32) -> Result<u64, WorkloadError> {
        let plan = self.plan(&Setting::new(copies, 0))?;
        let room = |file: &FileNeed| file.bytes.next_multiple_of(file.unit.max(1)) + file.unit;
        Ok(plan.files.iter().map(room).fold(0, u64::saturating_add))
    }

    /// The forms in which a run can be printed as the original program prints it, such as `text` and
    /// `csv`; the first is the one people know.
    fn formats(&self) -> &'static [&'static str] {
        &[]
    }

    /// A run in one of [`formats`](Self::formats), ending with a newline; `host` is the name of the
    /// machine. `None` for other formats.
    fn format(&self, format: &str, record: &RunRecord, host: &str) -> Option<String> {
        let _ = (format, record, host);
        None
    }
}

/// Makes a workload from its parameters.
type Make = fn(&mut Parameters) -> Result<Arc<dyn Workload>, WorkloadError>;

/// A kind of workload.
#[derive(Clone, Copy, Debug)]
pub struct KindEntry {
    /// Its name.
    pub name: &'static str,
    /// In a line, with its parameters and their defaults.
    pub summary: &'static str,
    make: Make,
}

/// Every kind, in the order in which they are listed.
pub const KINDS: &[KindEntry] = &[
    KindEntry {
        name: "dd-write",
        summary: "each writes a file from start to end and flushes: size, block=6MiB, span=100%",
        make: |parameters| simple::make(simple::Kind::DdWrite, parameters),
    },
    KindEntry {
        name: "dd-read",
        summary: "each reads a file from start to end: size, block=6MiB, span=100%",
        make: |parameters| simple::make(simple::Kind::DdRead, parameters),
    },
    KindEntry {
        name: "random-read",
        summary: "each reads blocks at random places: size, block=4KiB, span=100%",
        make: |parameters| simple::make(simple::Kind::RandomRead, parameters),
    },
    KindEntry {
        name: "random-write",
        summary: "each writes blocks at random places and flushes: size, block=4KiB, span=100%",
        make: |parameters| simple::make(simple::Kind::RandomWrite, parameters),
    },
];

/// A workload of a kind.
///
/// # Errors
/// [`WorkloadErrorKind::UnknownKind`]; what is wrong with a parameter; a parameter that the kind does
/// not have.
pub fn make(kind: &str, mut parameters: Parameters) -> Result<Arc<dyn Workload>, WorkloadError> {
    let entry = KINDS.iter().find(|entry| entry.name == kind).ok_or_else(|| {
        let known: Vec<&str> = KINDS.iter().map(|entry| entry.name).collect();
        let reason = format!("`{kind}` is not a kind of workload; known: {}", known.join(", "));
        WorkloadError::new(WorkloadErrorKind::UnknownKind, "kind", reason)
    })?;
    let workload = (entry.make)(&mut parameters)?;
    parameters.finish()?;
    Ok(workload)
}
