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
    /// The names of the layouts that it runs on; all of the study's when empty.
    pub only_layouts: Vec<String>,
    /// How many processes at once, in turn, in place of the study's; those when empty.
    pub only_processes: Vec<u32>,
    /// The window of read-ahead in bytes, in place of the modelled host's; 0 reads nothing ahead.
    pub read_ahead: Option<u64>,
}

impl WorkloadSpec {
    /// Under its default name.
    pub fn new(workload: Arc<dyn Workload>) -> Self {
        Self {
            name: workload.default_name(),
            workload,
            shown: Vec::new(),
            settings: BTreeMap::new(),
            only_layouts: Vec::new(),
            only_processes: Vec::new(),
            read_ahead: None,
        }
    }
}

impl fmt::Debug for WorkloadSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {:?}", self.name, self.shown, self.settings)?;
        write!(f, " {:?} {:?} {:?}", self.only_layouts, self.only_processes, self.read_ahead)?;
        write!(f, ": {:?}", self.workload)
    }
}

impl PartialEq for WorkloadSpec {
    /// By name and all parameters.
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}
