//! The kinds of workloads: what each must be able to tell, and how it is made from parameters.

use std::fmt;
use std::sync::Arc;

use crate::bonnie;
use crate::error::{WorkloadError, WorkloadErrorKind};
use crate::metric::Metric;
use crate::parameters::Parameters;
use crate::plan::{Plan, Setting};
use crate::record::RunRecord;

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
    KindEntry { name: bonnie::KIND_103, summary: bonnie::SUMMARY_103, make: bonnie::make_103 },
    KindEntry { name: bonnie::KIND_200, summary: bonnie::SUMMARY_200, make: bonnie::make_200 },
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
