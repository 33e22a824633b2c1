//! A record as text, for a program that ran the workload somewhere else: every number to its last bit.

use std::error::Error;

use raidlab_core::{MemberTotals, Nanos, Time};
use serde::{Deserialize, Serialize};

use super::{Cpu, IoRecord, PhaseRecord, ProcessRecord, RunRecord, TimeSeries, histogram};

#[derive(Serialize, Deserialize)]
struct Run {
    processes: Vec<Process>,
    process_cpu: Option<[u64; 2]>,
    system_cpu: Option<u64>,
    /// Reads, writes, bytes read, bytes written.
    members: Option<[u64; 4]>,
    bottleneck: Option<(String, f64)>,
    #[serde(default)]
    busy: Vec<(String, f64)>,
    #[serde(default)]
    series: Option<TimeSeries>,
    memory: String,
    warnings: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Process {
    copy: u32,
    ended: u64,
    phases: Vec<Phase>,
}

#[derive(Serialize, Deserialize)]
struct Phase {
    began: Option<u64>,
    ended: Option<u64>,
    cpu: Option<[u64; 2]>,
    io: [Io; 3],
}

#[derive(Serialize, Deserialize)]
struct Io {
    /// Count, bytes, total, shortest, longest, over 2 s, over 10 s, bits of the sum of squares.
    figures: [u64; 8],
    /// Latencies and how often each was seen.
    buckets: Vec<(u64, u64)>,
}

impl RunRecord {
    /// The record as JSON, without the names of its phases.
    ///
    /// # Errors
    /// When a number cannot be written.
    pub fn to_text(&self) -> Result<String, Box<dyn Error>> {
        let process = |one: &ProcessRecord| Process {
            copy: one.copy,
            ended: one.ended.0,
            phases: one.phases.iter().map(Phase::of).collect(),
        };
        let run = Run {
            processes: self.processes.iter().map(process).collect(),
            process_cpu: self.process_cpu.map(cpu_text),
            system_cpu: self.system_cpu.map(|time| time.0),
            members: self
                .members
                .map(|done| [done.reads, done.writes, done.bytes_read, done.bytes_written]),
            bottleneck: self.bottleneck.clone(),
            busy: self.busy.clone(),
            series: self.series.clone(),
            memory: self.memory.clone(),
            warnings: self.warnings.clone(),
        };
        Ok(serde_json::to_string(&run)?)
    }

    /// The record of a text; the names of the phases are those of the plan.
    ///
    /// # Errors
    /// When it is no record, or of a plan with another number of phases.
    pub fn from_text(text: &str, phases: &[&'static str]) -> Result<Self, Box<dyn Error>> {
        let run: Run = serde_json::from_str(text)?;
        if run.processes.iter().any(|process| process.phases.len() != phases.len()) {
            return Err(format!("not every process has {} phases", phases.len()).into());
        }
        let process = |one: Process| ProcessRecord {
            copy: one.copy,
            ended: Time(one.ended),
            phases: one.phases.into_iter().map(Phase::into_record).collect(),
        };
        let members = |[reads, writes, bytes_read, bytes_written]: [u64; 4]| MemberTotals {
            reads,
            writes,
            bytes_read,
            bytes_written,
        };
        Ok(Self {
            phases: phases.to_vec(),
            processes: run.processes.into_iter().map(process).collect(),
            process_cpu: run.process_cpu.map(cpu_of),
            system_cpu: run.system_cpu.map(Nanos),
            members: run.members.map(members),
            bottleneck: run.bottleneck,
            busy: run.busy,
            series: run.series,
            memory: run.memory,
            warnings: run.warnings,
        })
    }
}

const fn cpu_text(cpu: Cpu) -> [u64; 2] {
    [cpu.user.0, cpu.system.0]
}

const fn cpu_of([user, system]: [u64; 2]) -> Cpu {
    Cpu { user: Nanos(user), system: Nanos(system) }
}

impl Phase {
    fn of(record: &PhaseRecord) -> Self {
        Self {
            began: record.began.map(|time| time.0),
            ended: record.ended.map(|time| time.0),
            cpu: record.cpu.map(cpu_text),
            io: [Io::of(&record.reads), Io::of(&record.writes), Io::of(&record.others)],
        }
    }

    fn into_record(self) -> PhaseRecord {
        let [reads, writes, others] = self.io;
        PhaseRecord {
            began: self.began.map(Time),
            ended: self.ended.map(Time),
            cpu: self.cpu.map(cpu_of),
            reads: reads.into_record(),
            writes: writes.into_record(),
            others: others.into_record(),
            ..PhaseRecord::default()
        }
    }
}

impl Io {
    fn of(record: &IoRecord) -> Self {
        let IoRecord { count, bytes, total, min, max, over_2s, over_10s, squares, .. } = *record;
        Self {
            figures: [count, bytes, total.0, min.0, max.0, over_2s, over_10s, squares.to_bits()],
            buckets: record.buckets().map(|(latency, count)| (latency.0, count)).collect(),
        }
    }

    fn into_record(self) -> IoRecord {
        let [count, bytes, total, min, max, over_2s, over_10s, squares] = self.figures;
        let mut counts = None;
        for (latency, times) in self.buckets {
            // The upper end of a bucket falls into that bucket.
            counts.get_or_insert_with(histogram).saturating_record_n(latency, times);
        }
        IoRecord {
            count,
            bytes,
            total: Nanos(total),
            min: Nanos(min),
            max: Nanos(max),
            over_2s,
            over_10s,
            squares: f64::from_bits(squares),
            histogram: counts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_the_same_after_it_was_text() {
        let mut reads = IoRecord::default();
        for latency in [3, 70_123, 70_124, 5_000_000_001, 86_400_000_000_000] {
            reads.add(4096, Nanos(latency));
        }
        let cpu = Cpu { user: Nanos(5), system: Nanos(7) };
        let phase = PhaseRecord {
            began: Some(Time(1)),
            ended: Some(Time(9_000)),
            cpu: Some(cpu),
            reads,
            ..PhaseRecord::default()
        };
        let process = ProcessRecord { copy: 1, ended: Time(9_001), phases: vec![phase] };
        let record = RunRecord {
            phases: vec!["read"],
            processes: vec![process],
            process_cpu: Some(cpu),
            system_cpu: Some(Nanos(12)),
            members: Some(MemberTotals { reads: 5, bytes_read: 20480, ..Default::default() }),
            bottleneck: Some(("member 0".to_owned(), 0.1 + 0.2)),
            busy: vec![("member 0".to_owned(), 0.1 + 0.2), ("cpu".to_owned(), 0.0)],
            series: Some(TimeSeries::default()),
            memory: "cold".to_owned(),
            warnings: vec!["one".to_owned()],
        };
        let text = record.to_text().expect("is text");
        let read = RunRecord::from_text(&text, &["read"]).expect("is a record");
        assert_eq!(read.to_text().expect("is text"), text);
        assert_eq!((&read.busy, &read.series), (&record.busy, &record.series));
        assert_eq!(read.phases, record.phases);
        let quantiles =
            |record: &RunRecord| [0.5, 0.99].map(|at| record.totals().reads.quantile(at));
        assert_eq!(quantiles(&read), quantiles(&record));
        assert!(RunRecord::from_text(&text, &["read", "write"]).is_err());
        assert!(RunRecord::from_text("{}", &[]).is_err());
    }
}
