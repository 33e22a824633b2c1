//! Job files of fio as workloads: the options that decide what is read and written, each carried out
//! or refused by name. `docs/fio.md` tells what is the same as in fio, and what is not.
//!
//! Written from fio's manual page and from what fio 3.33 was seen to do; no part of it is fio's.

mod figures;
mod ini;
mod json;
mod layout;
mod options;
mod order;
mod task;
mod text;
mod value;
mod worker;
mod workload;

use std::fmt;
use std::sync::Arc;

use crate::error::{WorkloadError, WorkloadErrorKind};
use crate::kinds::Workload;
use crate::parameters::Parameters;

use options::Job;
use workload::FioWorkload;

/// The kind in a line.
pub(crate) const SUMMARY: &str = "a job of fio by its options: rw=read, bs=4k, size=, ioengine=psync, \
    iodepth=1, numjobs=1, direct=0, runtime=, time_based=0, rwmixread=50, fsync=0, and others of docs/fio.md";

/// What keeps a job file from being carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line of the file, from 1.
    pub line: usize,
    /// The option, as the file has it.
    pub option: String,
    /// What is wrong, with the option's name.
    pub reason: String,
}

impl Problem {
    fn new(line: usize, option: &str, reason: impl Into<String>) -> Self {
        Self { line, option: option.into(), reason: reason.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

/// A job file that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct JobFile {
    jobs: Vec<Arc<Job>>,
    global: Vec<(String, String)>,
    name: String,
}

impl JobFile {
    /// The workload: each copy runs the whole job file on files of its own.
    pub fn workload(&self) -> Arc<dyn Workload> {
        Arc::new(FioWorkload::new(self.name.clone(), self.jobs.clone(), self.global.clone()))
    }

    /// The names of the jobs, in their order.
    pub fn jobs(&self) -> Vec<&str> {
        self.jobs.iter().map(|job| job.name.as_str()).collect()
    }
}

/// Reads a job file. `path` is its name for messages; `variables` gives the value of `${NAME}`.
///
/// # Errors
/// [`WorkloadErrorKind::JobFile`], with the file and the line, for the first thing that is wrong; other
/// options that are wrong or not supported are listed after it.
pub fn parse(
    text: &str,
    path: &str,
    variables: &dyn Fn(&str) -> Option<String>,
) -> Result<JobFile, WorkloadError> {
    read(text, path, variables).map_err(|problems| {
        let mut problems = problems.into_iter();
        let first = problems.next().unwrap_or_else(|| Problem::new(1, "", "nothing can be read"));
        let others: Vec<String> = problems.map(|problem| problem.to_string()).collect();
        let key = format!("job file {path}, line {}", first.line);
        let reason = match others.len() {
            0 => first.reason,
            _ => format!("{}; also {}", first.reason, others.join("; ")),
        };
        WorkloadError::new(WorkloadErrorKind::JobFile, key, reason)
    })
}

/// All that keeps a job file from being carried out, by its lines; nothing when [`parse`] reads it.
pub fn problems(text: &str, variables: &dyn Fn(&str) -> Option<String>) -> Vec<Problem> {
    read(text, "", variables).err().unwrap_or_default()
}

fn read(
    text: &str,
    path: &str,
    variables: &dyn Fn(&str) -> Option<String>,
) -> Result<JobFile, Vec<Problem>> {
    let mut problems = Vec::new();
    let sections = ini::sections(text, variables, &mut problems);
    let mut global = Job::default();
    let mut jobs = Vec::new();
    for section in &sections {
        let mut own = Job { name: section.name.clone(), given: Vec::new(), ..global.clone() };
        let job = if section.is_global() { &mut global } else { &mut own };
        for entry in &section.entries {
            if let Some(problem) = set(job, entry) {
                problems.push(problem);
            }
        }
        if section.is_global() {
            continue;
        }
        if let Some((key, reason)) = own.conflict() {
            // Where the option stands; in a [global] section perhaps.
            let of_key = |entry: &&ini::Entry| entry.key == key;
            let line = section.entries.iter().find(of_key).map_or(section.line, |entry| entry.line);
            problems.push(Problem::new(line, key, format!("{key}: {reason}")));
        }
        jobs.push(Arc::new(own));
    }
    if jobs.is_empty() && problems.is_empty() {
        problems.push(Problem::new(1, "", "there is no job: no section but [global]"));
    }
    problems.sort_by_key(|problem| problem.line);
    if !problems.is_empty() {
        return Err(problems);
    }
    let name = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".fio").to_string();
    Ok(JobFile { jobs, global: global.given, name })
}

fn set(job: &mut Job, entry: &ini::Entry) -> Option<Problem> {
    let key = entry.key.as_str();
    let reason = match job.set(key, entry.value.as_deref()) {
        Some(Ok(())) => return None,
        Some(Err(reason)) => format!("{key}: {reason}"),
        None => format!("option `{key}` is not supported"),
    };
    Some(Problem::new(entry.line, key, reason))
}

/// A single job from parameters, as `raidlab run fio rw=randread bs=4k` has it.
///
/// # Errors
/// Names the parameter.
pub(crate) fn make(parameters: &mut Parameters) -> Result<Arc<dyn Workload>, WorkloadError> {
    let wrong = |key: &str, reason| WorkloadError::new(WorkloadErrorKind::Parameter, key, reason);
    let mut job = Job { name: "fio".into(), ..Job::default() };
    for key in options::NAMES {
        let Some(value) = parameters.text(key) else { continue };
        if let Some(Err(reason)) = job.set(key, Some(&value)) {
            return Err(wrong(key, reason));
        }
    }
    if let Some((key, reason)) = job.conflict() {
        return Err(wrong(key, reason));
    }
    let name = format!("fio {}", job.pattern);
    Ok(Arc::new(FioWorkload::new(name, vec![Arc::new(job)], Vec::new())))
}
