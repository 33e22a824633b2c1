//! A workload under its name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::kinds::Workload;

/// A workload under its name in studies and results.
#[derive(Clone)]
pub struct WorkloadSpec {
    /// The name.
    pub name: String,
    /// What it does.
    pub workload: Arc<dyn Workload>,
    /// The one metric that is shown, where not all are, and what it is called then.
    pub shown: Option<(String, String)>,
    /// What tells it from others of its name, such as a block size.
    pub settings: BTreeMap<String, String>,
}

impl WorkloadSpec {
    /// Under its default name.
    pub fn new(workload: Arc<dyn Workload>) -> Self {
        Self { name: workload.default_name(), workload, shown: None, settings: BTreeMap::new() }
    }
}

impl fmt::Debug for WorkloadSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {:?}: {:?}", self.name, self.shown, self.settings, self.workload)
    }
}

impl PartialEq for WorkloadSpec {
    /// By name and all parameters.
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}
