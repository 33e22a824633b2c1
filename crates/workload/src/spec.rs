//! A workload under its name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::error::WorkloadError;
use crate::kinds::Workload;
use crate::recipe::Recipe;

/// A workload under its name in studies and results.
#[derive(Clone)]
pub struct WorkloadSpec {
    /// The name.
    pub name: String,
    /// What it does.
    pub workload: Arc<dyn Workload>,
    /// What it was made from; `None` where that is no text.
    pub recipe: Option<Recipe>,
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
            recipe: None,
            shown: Vec::new(),
            settings: BTreeMap::new(),
            only_layouts: Vec::new(),
            only_processes: Vec::new(),
            read_ahead: None,
        }
    }

    /// Under the default name of what the recipe makes.
    ///
    /// # Errors
    /// As [`Recipe::make`].
    pub fn from_recipe(recipe: Recipe) -> Result<Self, WorkloadError> {
        let spec = Self::new(recipe.make()?);
        Ok(Self { recipe: Some(recipe), ..spec })
    }

    /// Which of the workload's metrics its cells are judged by: the first of those that are shown.
    pub fn headline(&self) -> usize {
        let metrics = self.workload.metrics();
        let is_shown = |name: &str| self.shown.iter().any(|(shown, _)| shown == name);
        metrics.iter().position(|metric| is_shown(metric.name)).unwrap_or(0)
    }

    /// Gives the workload another size in bytes.
    ///
    /// # Errors
    /// As [`Workload::resized`].
    pub fn resize(&mut self, bytes: u64) -> Result<(), WorkloadError> {
        self.workload = self.workload.resized(bytes)?;
        self.recipe.iter_mut().for_each(|recipe| recipe.resize(bytes));
        Ok(())
    }

    /// Has its random places lie in this many bytes, if it has any.
    pub fn span(&mut self, bytes: u64) {
        if let Some(fitting) = self.workload.spanning(bytes) {
            self.workload = fitting;
            self.recipe.iter_mut().for_each(|recipe| recipe.span(bytes));
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
