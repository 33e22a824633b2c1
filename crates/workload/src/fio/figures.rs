//! What a report says of each job, and of each group of jobs: the figures of fio from a run's record.

use raidlab_core::Nanos;

use super::options::Job;
use super::task;
use super::worker::{RUN, VERIFY};
use super::workload::FioWorkload;
use crate::record::{Cpu, IoRecord, PhaseRecord, RunRecord};

/// Operations one way, and the time in which they were done.
#[derive(Clone, Debug, Default)]
pub(super) struct Direction {
    pub(super) io: IoRecord,
    /// The time of the phase in which they could be; of several processes the longest.
    pub(super) runtime: Nanos,
}

impl Direction {
    fn join(&mut self, io: &IoRecord, runtime: Nanos) {
        self.io.merge(io);
        self.runtime = self.runtime.max(runtime);
    }

    /// Bytes per second; 0 when no time passed.
    pub(super) fn bytes_per_second(&self) -> f64 {
        rate(self.io.bytes, self.runtime)
    }

    /// Operations per second; 0 when no time passed.
    pub(super) fn per_second(&self) -> f64 {
        rate(self.io.count, self.runtime)
    }

    /// The runtime in ms, as fio has it: at least 1 when there was any.
    pub(super) fn millis(&self) -> u64 {
        millis(self.runtime)
    }
}

fn rate(amount: u64, time: Nanos) -> f64 {
    crate::metric::per_second(amount as f64, time).unwrap_or(0.0)
}

pub(super) fn millis(time: Nanos) -> u64 {
    if time == Nanos::ZERO { 0 } else { ((time.0 + 500_000) / 1_000_000).max(1) }
}

/// An entry of the report: one process, or all of a group.
#[derive(Clone, Debug)]
pub(super) struct Entry<'a> {
    pub(super) job: &'a Job,
    pub(super) group: u32,
    /// How many processes.
    pub(super) processes: u32,
    pub(super) read: Direction,
    pub(super) write: Direction,
    /// Flushes.
    pub(super) sync: IoRecord,
    /// The time of all processes together.
    pub(super) runtime: Nanos,
    /// CPU time of all processes; `None` where nothing tells.
    pub(super) cpu: Option<Cpu>,
}

impl<'a> Entry<'a> {
    fn new(job: &'a Job, group: u32) -> Self {
        Self {
            job,
            group,
            processes: 0,
            read: Direction::default(),
            write: Direction::default(),
            sync: IoRecord::default(),
            runtime: Nanos::ZERO,
            cpu: Some(Cpu::default()),
        }
    }

    fn add(&mut self, job: &Job, phases: &[PhaseRecord]) {
        self.processes += 1;
        for (index, phase) in (0..).zip(phases) {
            let took = phase.took();
            // Of a phase in which nothing can be read, no time is counted for reading.
            let reads = if index == RUN { job.reads } else { index == VERIFY };
            if reads {
                self.read.join(&phase.reads, took);
            }
            if index == RUN && job.writes {
                self.write.join(&phase.writes, took);
            }
            self.sync.merge(&phase.others);
            self.runtime += took;
            if phase.began.is_some() {
                let sum =
                    |(a, b): (Cpu, Cpu)| Cpu { user: a.user + b.user, system: a.system + b.system };
                self.cpu = self.cpu.zip(phase.cpu).map(sum);
            }
        }
    }

    /// User and system time as percentages of the runtime.
    pub(super) fn cpu_percent(&self) -> Option<[f64; 2]> {
        let cpu = self.cpu.filter(|_| self.runtime != Nanos::ZERO)?;
        Some([cpu.user, cpu.system].map(|time| 100.0 * time.as_secs() / self.runtime.as_secs()))
    }

    /// Which part of the reads and writes, in percent, took less than each of [`BOUNDS`], and more than
    /// the one before; the last number is for the rest.
    pub(super) fn latencies(&self) -> [f64; BOUNDS.len() + 1] {
        let mut counts = [0u64; BOUNDS.len() + 1];
        for (upto, count) in self.read.io.buckets().chain(self.write.io.buckets()) {
            counts[BOUNDS.partition_point(|bound| *bound <= upto.0)] += count;
        }
        let all = (self.read.io.count + self.write.io.count).max(1);
        counts.map(|count| 100.0 * count as f64 / all as f64)
    }
}

const STEPS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

/// The bounds of fio's classes of latency in ns: the same ten steps of ns, us and ms, and 2 s.
pub(super) const BOUNDS: [u64; 31] = {
    let mut bounds = [2_000_000_000; 31];
    let mut index = 0;
    while index < 30 {
        let unit = [1, 1_000, 1_000_000][index / 10];
        bounds[index] = STEPS[index % 10] * unit;
        index += 1;
    }
    bounds
};

/// The names of the classes of a unit: its ten steps.
pub(super) fn steps() -> impl Iterator<Item = String> {
    STEPS.iter().map(u64::to_string)
}

/// The entries of a report, job by job; with `group_reporting` those of a group are one.
pub(super) fn entries<'a>(workload: &'a FioWorkload, record: &RunRecord) -> Vec<Entry<'a>> {
    let places = task::places(&workload.jobs);
    let mut order: Vec<(usize, usize)> =
        (0..record.processes.len()).map(|process| (workload.job_of(process).0, process)).collect();
    order.sort_unstable();
    let mut entries: Vec<Entry<'a>> = Vec::new();
    for (index, process) in order {
        let (job, group) = (&*workload.jobs[index], places[index].group);
        let joins = |last: &Entry<'_>| job.group_reporting && last.group == group;
        if !entries.last().is_some_and(joins) {
            entries.push(Entry::new(job, group));
        }
        if let Some(entry) = entries.last_mut() {
            entry.add(job, &record.processes[process].phases);
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes of a group run side by side: their time is that of the longest, what they did adds up.
    #[test]
    fn a_group_takes_as_long_as_the_longest_of_its_processes() {
        let mut all = Direction::default();
        for (millis, bytes) in [(200, 3_000_000), (500, 1_000_000), (100, 2_000_000)] {
            let mut io = IoRecord::default();
            (io.bytes, io.count) = (bytes, bytes / 1000);
            all.join(&io, Nanos::from_millis(millis));
        }
        assert_eq!((all.millis(), all.io.bytes), (500, 6_000_000));
        assert_eq!((all.bytes_per_second(), all.per_second()), (12e6, 12e3));
    }

    /// Of two processes of 200 ms each: user time 100 and 60 ms, system time 20 and 60.
    #[test]
    fn cpu_is_a_share_of_the_time_of_all_processes() {
        let job = Job::default();
        let mut entry = Entry::new(&job, 0);
        for (user, system) in [(100, 20), (60, 60)] {
            let cpu =
                Some(Cpu { user: Nanos::from_millis(user), system: Nanos::from_millis(system) });
            let (began, ended) =
                (Some(raidlab_core::Time(0)), Some(raidlab_core::Time(200_000_000)));
            // Phases that never began have no CPU time and hide none.
            entry.add(
                &job,
                &[
                    PhaseRecord { began, ended, cpu, ..PhaseRecord::default() },
                    PhaseRecord::default(),
                ],
            );
        }
        assert_eq!(entry.cpu_percent(), Some([40.0, 20.0]));
        entry.runtime = Nanos::ZERO;
        assert_eq!(entry.cpu_percent(), None);
    }
}
