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
    /// The metrics that are shown, and what each is called then; all, under their names, when empty.
    pub shown: Vec<(String, String)>,
    /// What tells it from others of its name, such as a block size.
    pub settings: BTreeMap<String, String>,
}

impl WorkloadSpec {
    /// Under its default name.
    pub fn new(workload: Arc<dyn Workload>) -> Self {
        let (shown, settings) = (Vec::new(), BTreeMap::new());
        Self { name: workload.default_name(), workload, shown, settings }
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
