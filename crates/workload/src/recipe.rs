//! What a workload was made from, as text: another program makes the same workload of it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::WorkloadError;
use crate::fio;
use crate::kinds::{Workload, make};
use crate::parameters::Parameters;

/// Kind and parameters of a workload, and what was changed of it since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipe {
    source: Source,
    changes: Vec<Change>,
}

/// A change of the workload that the source makes; they are made in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Change {
    /// Another size in bytes.
    Size(u64),
    /// Its random places lie in this many bytes.
    Span(u64),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Source {
    Kind {
        name: String,
        parameters: Vec<(String, String)>,
    },
    /// A fio job file with the values of its variables.
    FioJobs {
        text: String,
        path: String,
        variables: Vec<(String, String)>,
    },
}

impl Recipe {
    /// A workload of [`KINDS`](crate::KINDS).
    pub fn of_kind(name: &str, parameters: Vec<(String, String)>) -> Self {
        Self::of(Source::Kind { name: name.to_owned(), parameters })
    }

    /// The jobs of a fio job file; errors name its path. `variables` are the values of `${NAME}`.
    pub fn of_fio_jobs(text: &str, path: &str, variables: Vec<(String, String)>) -> Self {
        Self::of(Source::FioJobs { text: text.to_owned(), path: path.to_owned(), variables })
    }

    const fn of(source: Source) -> Self {
        Self { source, changes: Vec::new() }
    }

    /// Makes the workload.
    ///
    /// # Errors
    /// As [`make`], [`fio::parse`], and [`Workload::resized`].
    pub fn make(&self) -> Result<Arc<dyn Workload>, WorkloadError> {
        let mut workload = match &self.source {
            Source::Kind { name, parameters } => make(name, Parameters::new(parameters.clone())?)?,
            Source::FioJobs { text, path, variables } => {
                let value = |name: &str| variables.iter().find(|(of, _)| of == name);
                let value = |name: &str| value(name).map(|(_, value)| value.clone());
                fio::parse(text, path, &value)?.workload()
            }
        };
        for change in &self.changes {
            workload = match *change {
                Change::Size(bytes) => workload.resized(bytes)?,
                Change::Span(bytes) => workload.spanning(bytes).unwrap_or(workload),
            };
        }
        Ok(workload)
    }

    pub(crate) fn resize(&mut self, bytes: u64) {
        self.changes.push(Change::Size(bytes));
    }

    pub(crate) fn span(&mut self, bytes: u64) {
        self.changes.push(Change::Span(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WorkloadSpec;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_recipe_makes_the_workload_it_was_taken_from() {
        let recipe = Recipe::of_kind("random-read", pairs(&[("size", "64MiB"), ("block", "8KiB")]));
        let mut spec = WorkloadSpec::from_recipe(recipe).expect("is right");
        let same = |spec: &WorkloadSpec| {
            let text = serde_json::to_string(spec.recipe.as_ref().expect("one")).expect("is text");
            let read: Recipe = serde_json::from_str(&text).expect("is the same");
            format!("{:?}", read.make().expect("is right")) == format!("{:?}", spec.workload)
        };
        assert!(same(&spec));
        let before = format!("{:?}", spec.workload);
        spec.resize(32 << 20).expect("another size");
        assert!(same(&spec) && format!("{:?}", spec.workload) != before);
        let before = format!("{:?}", spec.workload);
        spec.span(1 << 30);
        assert!(same(&spec) && format!("{:?}", spec.workload) != before);
    }

    #[test]
    fn fio_jobs_are_a_recipe_too() {
        let text = "[one]\nrw=randread\nsize=${SIZE}\n";
        let recipe = Recipe::of_fio_jobs(text, "jobs.fio", pairs(&[("SIZE", "1m")]));
        assert_eq!(recipe.make().expect("is right").kind(), "fio");
        let error = Recipe::of_fio_jobs("[one]\nrw=around\n", "jobs.fio", Vec::new()).make();
        assert!(error.expect_err("is wrong").to_string().contains("jobs.fio"));
    }
}
