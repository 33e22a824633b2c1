//! The six personalities of filebench 1.5: `fileserver`, `varmail`, `webserver`, `webproxy`, `oltp`, `videoserver`.
//!
//! Files, threads, the order of what each does, sizes of reads, writes and appends, what is made durable, semaphores
//! and the limit by events are those of the workload files and of how filebench carries them out: which file is the
//! next, that one which is open is not deleted, that `opennext` goes through 128 file descriptors, that a whole file is
//! written in whole pieces. What differs is in docs/workloads.md. Threads share what is in [`shared`]: filebench's
//! shared memory.
//!
//! What a thread asks for depends on what the others have done, and so on how long everything takes, as in filebench.

mod draws;
mod files;
mod personality;
mod shared;
#[cfg(test)]
mod tests;
mod thread;

use std::sync::{Arc, Mutex};

use raidlab_core::{Nanos, Size};
use raidlab_random::mix;

use crate::MOST_PROCESSES;
use crate::error::WorkloadError;
use crate::kinds::Workload;
use crate::metric::{Better, Metric, mib_per_second, per_second};
use crate::op::Op;
use crate::parameters::Parameters;
use crate::plan::{Expected, Plan, Planned, SeededBytes, Setting};
use crate::record::{IoRecord, RunRecord};
use crate::steps::{Start, planned, wrong};
use files::FileSet;
use personality::{Name, Personality, Scale};
use shared::{End, Events, Semaphores, Shared};
use thread::{Place, Thread};

pub(crate) const SUMMARY: &str = "filebench: \
    personality=fileserver|varmail|webserver|webproxy|oltp|videoserver files= size= (mean of a file) threads= \
    time=60s|loops= (of each thread) writers= (oltp) passive= interval= (videoserver) rate= (oltp, videoserver) \
    just_written=false metric=ops_per_s|mib_per_s|latency_mean_ms|latency_p99_ms";

const OPS: Metric = Metric::rate("ops_per_s", "1/s");
const MEAN: Metric = Metric { name: "latency_mean_ms", unit: "ms", better: Better::Lower };
const P99: Metric = Metric { name: "latency_p99_ms", unit: "ms", better: Better::Lower };
const METRICS: [Metric; 4] = [OPS, Metric::MIB_PER_SECOND, MEAN, P99];

/// Of a set whose files are made and deleted there are so many times as many as threads, at least: else threads run
/// out of files at once.
const FILES_A_THREAD: u64 = 10;
const MOST_FILES: u64 = 1_000_000;
const MINUTE: Nanos = Nanos(60_000_000_000);

#[derive(Clone, Debug)]
struct Filebench {
    name: Name,
    scale: Scale,
    end: End,
    start: Start,
    headline: Metric,
}

pub(crate) fn make(given: &mut Parameters) -> Result<Arc<dyn Workload>, WorkloadError> {
    let name = given.choice("personality", Name::Fileserver, &Name::ALL)?;
    let (by_loops, by_time) = (given.has("loops"), given.has("time"));
    if by_loops && by_time {
        return Err(wrong("loops", "a run ends by time or by loops; leave one out"));
    }
    let time = given.duration("time", MINUTE)?;
    if time == Nanos::ZERO {
        return Err(wrong("time", "is 0; a run takes some time"));
    }
    let loops = given.number("loops", 1, 1..=1_000_000_000)?;
    let end = if by_loops { End::Loops(loops) } else { End::After(time) };
    let metrics = METRICS.map(|metric| (metric.name, metric));
    let made = Filebench {
        name,
        scale: scale(name, given)?,
        end,
        start: Start::uncached(given)?,
        headline: given.choice("metric", OPS, &metrics)?,
    };
    made.check()?;
    Ok(Arc::new(made))
}

/// What is given of a personality's scale; what it does not have is not looked for.
fn scale(name: Name, given: &mut Parameters) -> Result<Scale, WorkloadError> {
    let usual = name.usual();
    for (key, by) in [
        ("writers", &[Name::Oltp][..]),
        ("passive", &[Name::Videoserver]),
        ("interval", &[Name::Videoserver]),
        ("rate", &[Name::Oltp, Name::Videoserver]),
    ] {
        if given.has(key) && !by.contains(&name) {
            let by: Vec<&str> = by.iter().map(|name| name.text()).collect();
            let reason = format!("is none of {}'s but of {}", name.text(), by.join(" and "));
            return Err(wrong(key, reason));
        }
    }
    let most = u64::from(MOST_PROCESSES);
    Ok(Scale {
        files: given.number("files", usual.files, 1..=MOST_FILES)?,
        size: given.size("size", usual.size)?,
        // At most MOST_PROCESSES, so they fit.
        threads: given.number("threads", usual.threads.into(), 1..=most)? as u32,
        writers: given.number("writers", usual.writers.into(), 1..=most)? as u32,
        passive: given.number("passive", usual.passive, 2..=MOST_FILES)?,
        rate: given.number("rate", usual.rate, 0..=1_000_000)?,
        interval: given.duration("interval", Nanos(usual.interval))?.0,
    })
}

impl Filebench {
    fn check(&self) -> Result<(), WorkloadError> {
        let scale = &self.scale;
        let least = u64::from(scale.threads) * FILES_A_THREAD;
        if self.name.makes_files() && scale.files < least {
            let (files, threads) = (scale.files, scale.threads);
            let reason = format!(
                "{files} are too few for {threads} threads that make and delete them; at least {least}"
            );
            return Err(wrong("files", reason));
        }
        if scale.size > 1 << 44 {
            return Err(wrong("size", format!("{} is too large; at most 16TiB", Size(scale.size))));
        }
        if self.name == Name::Oltp && scale.size < 2 << 10 {
            let reason = format!("{} is less than a read of 2KiB", Size(scale.size));
            return Err(wrong("size", reason));
        }
        let threads = Personality::new(self.name, scale).threads();
        if threads > MOST_PROCESSES {
            let reason = format!("{threads} in all are more than {MOST_PROCESSES}");
            return Err(wrong("threads", reason));
        }
        Ok(())
    }

    fn personality(&self) -> Personality {
        Personality::new(self.name, &self.scale)
    }

    /// The time until all threads that are counted were done.
    fn took(&self, record: &RunRecord) -> Nanos {
        let personality = self.personality();
        let counted = personality.groups.iter().filter(|group| group.is_counted);
        let counted: u32 = counted.map(|group| group.threads).sum();
        let all = personality.threads() as usize;
        let of_copies = record.processes.chunks(all.max(1));
        let ended = of_copies.flat_map(|of| of.iter().take(counted as usize)).map(|one| one.ended);
        Nanos(ended.max().map_or(0, |ended| ended.0))
    }

    /// A copy: what makes its files, and its threads.
    fn copy(&self, copy: u32, seed: u64, plan: &mut Plan, checked: bool) {
        let personality = self.personality();
        let seed = mix(&[seed, copy.into()]);
        // One rotor is everybody's.
        let rotors = 1 + personality.threads() as usize;
        let set = |(at, spec): (usize, &personality::SetSpec)| {
            FileSet::new(*spec, copy, mix(&[seed, 1, at as u64]), rotors)
        };
        let sets: Vec<FileSet> = personality.sets.iter().enumerate().map(set).collect();
        let append = if self.name.makes_files() { 16 << 10 } else { 0 };
        let piece = personality.written_by();
        plan.room += sets.iter().map(|set| set.room(piece, append)).sum::<u64>() + self.logged();
        if checked {
            let fixed = sets.iter().filter(|set| self.stays(&set.spec));
            plan.expected.extend(fixed.flat_map(FileSet::there).map(|entry| Expected {
                path: entry.path.clone(),
                bytes: Arc::new(SeededBytes { seed: entry.seed, len: entry.size }),
            }));
        }
        let prepare: Vec<Op> = sets.iter().flat_map(FileSet::prepare).collect();
        plan.prepare.push(planned(copy, prepare.into_iter()));
        let blocks = personality.groups.iter().filter_map(|group| {
            group.semaphores.map(|(_, high)| (0..group.threads).map(move |_| Semaphores::new(high)))
        });
        let counted = personality.groups.iter().filter(|group| group.is_counted);
        let counted = counted.map(|group| group.threads).sum();
        let events = Events::new(self.scale.rate);
        let shared = Shared::new(sets, blocks.flatten().collect(), events, (self.end, counted));
        let shared = Arc::new(Mutex::new(shared));
        let mut rotor = 0;
        for group in &personality.groups {
            let flowops: Arc<[personality::Flowop]> = group.flowops.as_slice().into();
            for thread in 0..group.threads {
                rotor += 1;
                let place = Place {
                    queue: plan.queues,
                    rotor,
                    semaphores: group.semaphores.map_or(0, |(first, _)| first + thread) as usize,
                    is_counted: group.is_counted,
                };
                plan.queues += 1;
                let seed = mix(&[seed, 2, rotor as u64]);
                let process = Thread::new(Arc::clone(&shared), Arc::clone(&flowops), seed, place);
                plan.run.push(Planned { copy, process: Box::new(process) });
            }
        }
    }

    /// Whether the files of a set are at the end as they were at the beginning.
    fn stays(&self, spec: &personality::SetSpec) -> bool {
        self.name == Name::Oltp || spec.is_read_only || spec.name == "activevids"
    }

    /// Bytes that a log grows by, where that is known.
    fn logged(&self) -> u64 {
        match (self.name, self.end) {
            (Name::Webserver, End::Loops(loops)) => {
                loops.saturating_mul(self.scale.threads.into()).saturating_mul(16 << 10)
            }
            _ => 0,
        }
    }
}

/// All that counts as one operation of filebench.
fn all(record: &RunRecord) -> IoRecord {
    let totals = record.totals();
    let mut all = totals.reads;
    all.merge(&totals.writes);
    all.merge(&totals.others);
    all
}

impl Workload for Filebench {
    fn kind(&self) -> &'static str {
        "filebench"
    }

    fn default_name(&self) -> String {
        self.name.text().to_string()
    }

    fn description(&self) -> String {
        let Scale { files, size, threads, .. } = self.scale;
        let end = match self.end {
            End::After(time) => format!("for {} s", time.as_secs()),
            End::Loops(1) => "once".to_string(),
            End::Loops(loops) => format!("{loops} times each"),
        };
        let mean = if matches!(self.name, Name::Oltp | Name::Videoserver | Name::Webproxy) {
            String::new()
        } else {
            " in the mean".to_string()
        };
        format!(
            "filebench's {}: {threads} threads on {files} files of {}{mean}, {end}",
            self.name.text(),
            Size(size)
        )
    }

    fn metrics(&self) -> Vec<Metric> {
        let others = METRICS.into_iter().filter(|metric| *metric != self.headline);
        std::iter::once(self.headline).chain(others).collect()
    }

    fn values(&self, record: &RunRecord) -> Vec<Option<f64>> {
        let (all, took) = (all(record), self.took(record));
        let milliseconds = |time: Nanos| time.as_secs() * 1e3;
        let value = |metric: Metric| match metric {
            OPS => per_second(all.count as f64, took),
            MEAN => all.mean().map(milliseconds),
            P99 => all.quantile(0.99).map(milliseconds),
            _ => mib_per_second(all.bytes, took),
        };
        self.metrics().into_iter().map(value).collect()
    }

    fn plan(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let threads = u64::from(self.personality().threads()) * u64::from(setting.copies);
        if threads > u64::from(MOST_PROCESSES) {
            let reason = format!(
                "{} copies have {threads}, more than {MOST_PROCESSES} in all",
                setting.copies
            );
            return Err(wrong("threads", reason));
        }
        let mut plan = Plan {
            phases: vec!["work"],
            memory: self.start.memory(),
            needs_filesystem: Some("filebench makes and deletes files by name"),
            asks_time: true,
            ..Plan::default()
        };
        for copy in 0..setting.copies {
            self.copy(copy, setting.seed, &mut plan, setting.checked);
        }
        Ok(plan)
    }

    /// So many bytes in the files of each copy: files of another size where a database or videos are large, else
    /// another number of them.
    fn resized(&self, bytes: u64) -> Result<Arc<dyn Workload>, WorkloadError> {
        let mut scale = self.scale;
        match self.name {
            Name::Oltp | Name::Videoserver => scale.size = bytes / (scale.files + scale.passive),
            _ => scale.files = (bytes / scale.size).min(MOST_FILES),
        }
        let made = Self { scale, ..self.clone() };
        if scale.size == 0 || scale.files == 0 {
            return Err(wrong("size", format!("{} are too few for any file", Size(bytes))));
        }
        made.check()?;
        Ok(Arc::new(made))
    }
}
