//! What a run of a workload measured.

mod series;
mod text;

use hdrhistogram::Histogram;
use raidlab_core::{MemberTotals, Nanos, Time};

use crate::op::{Class, Mark};

pub use series::{TimeBin, TimeSeries};

/// The longest latency that is told apart from longer ones: a day, in nanoseconds.
const LONGEST: u64 = 86_400_000_000_000;

/// Operations of one class in one phase.
#[derive(Clone, Debug, Default)]
pub struct IoRecord {
    /// How many.
    pub count: u64,
    /// Bytes they moved, those within groups that count as an operation of another class included.
    pub bytes: u64,
    /// The sum of their latencies.
    pub total: Nanos,
    /// The shortest latency; zero when there was no operation.
    pub min: Nanos,
    /// The longest latency.
    pub max: Nanos,
    /// How many took more than 2 s.
    pub over_2s: u64,
    /// How many took more than 10 s.
    pub over_10s: u64,
    /// Sum of squares of latencies in seconds, for the standard deviation.
    squares: f64,
    histogram: Option<Box<Histogram<u64>>>,
}

impl IoRecord {
    /// Counts an operation.
    pub fn add(&mut self, bytes: u64, latency: Nanos) {
        self.add_equal(1, bytes, latency);
    }

    /// Counts operations that together took so long and moved so many bytes, each as long as the others to
    /// a nanosecond. With none of them only the bytes count, as moved within an operation of another class.
    pub fn add_equal(&mut self, count: u64, bytes: u64, took: Nanos) {
        self.bytes += bytes;
        if count == 0 {
            return;
        }
        let (shortest, longest) = match count {
            1 => (took, took),
            _ => (Nanos(took.0 / count), Nanos(took.0.div_ceil(count))),
        };
        self.min = if self.count == 0 { shortest } else { self.min.min(shortest) };
        self.count += count;
        self.total += took;
        self.max = self.max.max(longest);
        self.over_2s += if shortest.0 > 2_000_000_000 { count } else { 0 };
        self.over_10s += if shortest.0 > 10_000_000_000 { count } else { 0 };
        self.squares += took.as_secs() * took.as_secs() / count as f64;
        let histogram = self.histogram.get_or_insert_with(histogram);
        histogram.saturating_record_n(shortest.0.max(1), count);
    }

    /// Adds what another one counted.
    pub fn merge(&mut self, other: &Self) {
        self.bytes += other.bytes;
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.count += other.count;
        self.total += other.total;
        self.max = self.max.max(other.max);
        self.over_2s += other.over_2s;
        self.over_10s += other.over_10s;
        self.squares += other.squares;
        if let Some(theirs) = &other.histogram {
            // Both have the same bounds and precision, the only things that can be wrong here.
            let _ = self.histogram.get_or_insert_with(histogram).add(&**theirs);
        }
    }

    /// The latency that this share of the operations (0 to 1) did not exceed, to 1 % and at most the
    /// longest; `None` when there was none.
    pub fn quantile(&self, share: f64) -> Option<Nanos> {
        let histogram = self.histogram.as_ref()?;
        Some(Nanos(histogram.value_at_quantile(share)).min(self.max).max(self.min))
    }

    /// The mean latency; `None` when there was no operation.
    pub fn mean(&self) -> Option<Nanos> {
        self.total.0.checked_div(self.count).map(Nanos)
    }

    /// The standard deviation of the latencies in seconds (of the sample, n - 1); zero below two.
    pub fn deviation(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let (count, sum) = (self.count as f64, self.total.as_secs());
        ((self.squares - sum * sum / count).max(0.0) / (count - 1.0)).sqrt()
    }

    /// How many operations took each latency: upper ends of buckets and their counts, rising.
    pub fn buckets(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        let histogram = self.histogram.as_deref();
        let recorded = histogram.into_iter().flat_map(|histogram| histogram.iter_recorded());
        recorded.map(|step| (Nanos(step.value_iterated_to()), step.count_since_last_iteration()))
    }
}

fn histogram() -> Box<Histogram<u64>> {
    let made = Histogram::new_with_bounds(1, LONGEST, 2);
    Box::new(made.expect("the bounds and two digits are allowed"))
}

/// CPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// In user mode.
    pub user: Nanos,
    /// In the kernel.
    pub system: Nanos,
}

impl Cpu {
    /// Both.
    pub fn sum(self) -> Nanos {
        self.user + self.system
    }

    /// What was used since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        let less = |now: Nanos, then: Nanos| Nanos(now.0.saturating_sub(then.0));
        Self { user: less(self.user, earlier.user), system: less(self.system, earlier.system) }
    }
}

/// A phase of one process.
#[derive(Clone, Debug, Default)]
pub struct PhaseRecord {
    /// When it began, since the run's start; `None` when it never did.
    pub began: Option<Time>,
    /// When it ended.
    pub ended: Option<Time>,
    /// CPU time of this process within it; `None` where nothing tells.
    pub cpu: Option<Cpu>,
    /// Reads.
    pub reads: IoRecord,
    /// Writes.
    pub writes: IoRecord,
    /// What else was measured: syncs, names.
    pub others: IoRecord,
    /// Writes that were flushed at once, where something tells: without the flush, as they are among the writes, ...
    pub unflushed: IoRecord,
    /// ... and with it.
    pub flushed: IoRecord,
}

impl PhaseRecord {
    /// How long it took; zero unless it began and ended.
    pub fn took(&self) -> Nanos {
        match (self.began, self.ended) {
            (Some(began), Some(ended)) => ended.since(began),
            _ => Nanos::ZERO,
        }
    }

    /// Adds the operations of another one.
    fn merge(&mut self, other: &Self) {
        self.reads.merge(&other.reads);
        self.writes.merge(&other.writes);
        self.others.merge(&other.others);
        self.unflushed.merge(&other.unflushed);
        self.flushed.merge(&other.flushed);
    }

    /// The latency that this share (0 to 1) of reads and writes did not exceed, where a write that was flushed at once
    /// takes until the flush has ended, as it does to who waits for both; `None` where nothing tells of such.
    pub fn quantile_with_flushes(&self, share: f64) -> Option<Nanos> {
        let Self { reads, writes, unflushed, flushed, .. } = self;
        let mut all = flushed.clone();
        all.merge(reads);
        all.merge(writes);
        let (histogram, less) = (
            all.histogram.as_mut()?,
            unflushed.histogram.as_deref().filter(|_| flushed.count > 0)?,
        );
        // They are among the writes.
        histogram.subtract(less).ok()?;
        all.quantile(share)
    }

    /// The operations of a class.
    pub fn of_mut(&mut self, class: Class) -> &mut IoRecord {
        match class {
            Class::Read => &mut self.reads,
            Class::Write => &mut self.writes,
            Class::Other => &mut self.others,
        }
    }
}

/// What a process measured.
#[derive(Clone, Debug, Default)]
pub struct ProcessRecord {
    /// Which copy of the workload it belongs to.
    pub copy: u32,
    /// When it was done, since the run's start.
    pub ended: Time,
    /// Its phases, by the indices of the plan.
    pub phases: Vec<PhaseRecord>,
}

/// What a run measured.
#[derive(Clone, Debug, Default)]
pub struct RunRecord {
    /// The names of the phases.
    pub phases: Vec<&'static str>,
    /// The processes, in the order of the plan.
    pub processes: Vec<ProcessRecord>,
    /// CPU time of the processes together; `None` where nothing tells.
    pub process_cpu: Option<Cpu>,
    /// Busy CPU time of the whole system over the run; `None` where nothing tells.
    pub system_cpu: Option<Nanos>,
    /// What the members did, up to the end of the run; `None` where nothing counts that.
    pub members: Option<MemberTotals>,
    /// The busiest resource and the share of the time it was busy, 0 to 1, where something tells.
    pub bottleneck: Option<(String, f64)>,
    /// How busy each resource was, 0 to 1; empty where nothing tells.
    pub busy: Vec<(String, f64)>,
    /// Reads and writes over time; `None` where nobody saw when they ended.
    pub series: Option<TimeSeries>,
    /// What memory held at the start, in words for reports.
    pub memory: String,
    /// What a reader must know, such as that memory could not be dropped.
    pub warnings: Vec<String>,
}

impl RunRecord {
    /// When each copy of the workload was done: when the last of its processes was.
    pub fn ends(&self) -> Vec<Nanos> {
        let copies = self.processes.iter().map(|process| process.copy + 1).max().unwrap_or(0);
        let mut ends = vec![Nanos::ZERO; copies as usize];
        for process in &self.processes {
            let end = &mut ends[process.copy as usize];
            *end = (*end).max(process.ended.since(Time::ZERO));
        }
        ends
    }

    /// When the first copy was done.
    pub fn first_done(&self) -> Nanos {
        self.ends().into_iter().min().unwrap_or(Nanos::ZERO)
    }

    /// When the last copy was done: the time of the run.
    pub fn last_done(&self) -> Nanos {
        self.ends().into_iter().max().unwrap_or(Nanos::ZERO)
    }

    /// Jain's index of the rates of the copies, taking their work as equal: 1 when all end together,
    /// 1/n when one is infinitely faster than the others. R. Jain, D. Chiu and W. Hawe, "A quantitative
    /// measure of fairness", DEC TR-301 (1984). `None` below two copies or when no time passed.
    pub fn fairness(&self) -> Option<f64> {
        let ends = self.ends();
        if ends.len() < 2 || ends.contains(&Nanos::ZERO) {
            return None;
        }
        let rates: Vec<f64> = ends.iter().map(|end| 1.0 / end.as_secs()).collect();
        let sum: f64 = rates.iter().sum();
        let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
        Some(sum * sum / (rates.len() as f64 * squares))
    }

    /// A phase over all processes that had it: from the first start to the last end, CPU and operations
    /// added. `None` when none had.
    pub fn phase(&self, index: u16) -> Option<PhaseRecord> {
        let mut joined: Option<PhaseRecord> = None;
        for phase in self.processes.iter().filter_map(|one| one.phases.get(usize::from(index))) {
            if phase.began.is_none() {
                continue;
            }
            let all = joined.get_or_insert_with(|| PhaseRecord {
                began: phase.began,
                ended: phase.ended,
                cpu: Some(Cpu::default()),
                ..PhaseRecord::default()
            });
            all.began = all.began.min(phase.began);
            all.ended = all.ended.max(phase.ended);
            all.cpu = all
                .cpu
                .zip(phase.cpu)
                .map(|(a, b)| Cpu { user: a.user + b.user, system: a.system + b.system });
            all.merge(phase);
        }
        joined
    }

    /// Reads, writes and others of all phases and processes.
    pub fn totals(&self) -> PhaseRecord {
        let mut all = PhaseRecord::default();
        for phase in self.processes.iter().flat_map(|process| &process.phases) {
            all.merge(phase);
        }
        all
    }

    /// Bytes written to the members for each byte the processes wrote; `None` where members are not
    /// counted or nothing was written.
    pub fn write_amplification(&self) -> Option<f64> {
        let written = self.totals().writes.bytes;
        let members = self.members?;
        (written > 0).then(|| members.bytes_written as f64 / written as f64)
    }
}

/// Gathers a process's record while it runs; used by every target, so that all measure alike.
///
/// Within a phase, targets report each read and write (`CopyRange` is a write), syncs and operations
/// on names (list, stat, unlink, mkdir, rmdir, rename, link, symlink) as [`Class::Other`]; open,
/// close, seek, truncate and set are not operations of their own, but their time counts within a
/// group.
#[derive(Clone, Debug)]
pub struct Recorder {
    record: ProcessRecord,
    phase: Option<(u16, Option<Cpu>)>,
    group: Option<Group>,
    /// How long the last operation took, where that was a write.
    wrote: Option<Nanos>,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    began: Time,
    /// Bytes by the direction they went in: read, written, and others.
    bytes: [u64; 3],
}

impl Recorder {
    /// For a process of a plan with this many phases.
    pub fn new(copy: u32, phases: usize) -> Self {
        let phases = vec![PhaseRecord::default(); phases];
        let record = ProcessRecord { copy, ended: Time::ZERO, phases };
        Self { record, phase: None, group: None, wrote: None }
    }

    /// A mark at time `now`; `cpu` is asked for only where a phase begins or ends. Marks that make no
    /// sense (an unknown phase, an end without a beginning) are ignored.
    pub fn mark(&mut self, mark: Mark, now: Time, cpu: impl FnOnce() -> Option<Cpu>) {
        match mark {
            Mark::Begin(index) => {
                if let Some(phase) = self.record.phases.get_mut(usize::from(index)) {
                    phase.began = Some(now);
                    self.phase = Some((index, cpu()));
                }
            }
            Mark::End(index) => {
                let Some((open, before)) = self.phase.take_if(|(open, _)| *open == index) else {
                    return;
                };
                let phase = &mut self.record.phases[usize::from(open)];
                phase.ended = Some(now);
                phase.cpu = before.and_then(|before| Some(cpu()?.since(before)));
            }
            Mark::GroupBegin => self.group = Some(Group { began: now, bytes: [0; 3] }),
            Mark::GroupEnd(class) => {
                if let Some(group) = self.group.take() {
                    self.count(class, 1, 0, now.since(group.began));
                    let classes = [Class::Read, Class::Write, Class::Other];
                    for (class, bytes) in classes.into_iter().zip(group.bytes) {
                        self.count(class, 0, bytes, Nanos::ZERO);
                    }
                }
            }
        }
    }

    /// Whether latencies of single operations are wanted now.
    pub fn is_measuring(&self) -> bool {
        self.phase.is_some()
    }

    /// An operation of a class that moved `bytes` and took `latency`. Within a group only its bytes
    /// count, for its own class: what a group reads is not written, whatever the group counts as.
    #[inline]
    pub fn operation(&mut self, class: Class, bytes: u64, latency: Nanos) {
        self.operations(class, 1, bytes, latency);
    }

    /// Operations of a class that together took so long and moved so many bytes, each like the others.
    #[inline]
    pub fn operations(&mut self, class: Class, count: u64, bytes: u64, took: Nanos) {
        match &mut self.group {
            Some(group) => group.bytes[class as usize] += bytes,
            None => {
                self.wrote = (class == Class::Write && count == 1).then_some(took);
                self.count(class, count, bytes, took);
            }
        }
    }

    /// A flush that took so long. The write that the process had before it, if that was the last it did, was not safe
    /// until then.
    pub fn flush(&mut self, took: Nanos) {
        let wrote = self.wrote.filter(|_| self.group.is_none());
        self.operation(Class::Other, 0, took);
        if let (Some(write), Some((open, _))) = (wrote, self.phase) {
            let phase = &mut self.record.phases[usize::from(open)];
            phase.unflushed.add(0, write);
            phase.flushed.add(0, write + took);
        }
    }

    #[inline]
    fn count(&mut self, class: Class, count: u64, bytes: u64, took: Nanos) {
        if let Some((open, _)) = self.phase {
            let phase = &mut self.record.phases[usize::from(open)];
            phase.of_mut(class).add_equal(count, bytes, took);
        }
    }

    /// The record of a process that is done.
    pub fn finish(mut self, now: Time, cpu: impl FnOnce() -> Option<Cpu>) -> ProcessRecord {
        if let Some((open, _)) = self.phase {
            self.mark(Mark::End(open), now, cpu);
        }
        self.record.ended = now;
        self.record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time(millis * 1_000_000)
    }

    #[test]
    fn phases_and_groups_are_gathered() {
        let cpu =
            |millis| move || Some(Cpu { user: Nanos::from_millis(millis), system: Nanos::ZERO });
        let mut recorder = Recorder::new(1, 2);
        recorder.operation(Class::Read, 5, Nanos(1)); // outside a phase: not measured
        recorder.mark(Mark::Begin(1), at(10), cpu(1));
        recorder.operation(Class::Read, 100, Nanos::from_millis(2));
        recorder.mark(Mark::GroupBegin, at(20), || None);
        recorder.operation(Class::Read, 8, Nanos(1));
        recorder.operation(Class::Write, 16, Nanos(1));
        recorder.mark(Mark::GroupEnd(Class::Write), at(25), || None);
        recorder.mark(Mark::GroupBegin, at(25), || None);
        recorder.operation(Class::Write, 32, Nanos(1));
        recorder.mark(Mark::GroupEnd(Class::Other), at(25), || None);
        recorder.mark(Mark::End(0), at(26), cpu(9)); // not open
        recorder.mark(Mark::End(1), at(30), cpu(4));
        let record = recorder.finish(at(31), || None);
        assert_eq!((record.copy, record.ended), (1, at(31)));
        assert!(record.phases[0].began.is_none());
        let phase = &record.phases[1];
        assert_eq!(phase.took(), Nanos::from_millis(20));
        assert_eq!(phase.cpu.map(Cpu::sum), Some(Nanos::from_millis(3)));
        assert_eq!((phase.reads.count, phase.reads.bytes), (1, 108), "8 of them within a write");
        assert_eq!((phase.writes.count, phase.writes.bytes), (1, 48), "32 of them within another");
        assert_eq!((phase.others.count, phase.others.bytes), (1, 0));
        assert_eq!(phase.writes.max, Nanos::from_millis(5));
    }

    /// Of 100 reads and writes of 1 ms one is flushed, for 9 ms: one in a hundred takes 10 ms.
    #[test]
    fn a_write_that_is_flushed_at_once_takes_as_long_as_both() {
        let mut recorder = Recorder::new(0, 1);
        recorder.mark(Mark::Begin(0), at(0), || None);
        let millis = Nanos::from_millis;
        for turn in 0..50 {
            recorder.operation(Class::Write, 8, millis(1));
            if turn == 7 {
                recorder.flush(millis(9));
                recorder.flush(millis(100)); // of nothing
            }
            recorder.operation(Class::Read, 8, millis(1));
        }
        recorder.flush(millis(100)); // what was written before was read since
        let record = recorder.finish(at(300), || None);
        let run = RunRecord { processes: vec![record], ..RunRecord::default() };
        for phase in [run.totals(), run.phase(0).expect("it was")] {
            let told = (phase.writes.count, phase.others.count, phase.flushed.count);
            assert_eq!((told, phase.writes.max), ((50, 3, 1), millis(1)));
            let near = |share, expected: f64| {
                let found = phase.quantile_with_flushes(share).expect("flushes").as_secs();
                assert!((found / expected - 1.0).abs() < 0.01, "{share}: {found}");
            };
            near(0.99, 1e-3);
            near(0.995, 10e-3);
            near(0.5, 1e-3);
        }
        assert_eq!(PhaseRecord::default().quantile_with_flushes(0.99), None);
        let mut plain = PhaseRecord::default();
        plain.writes.add(8, millis(1));
        assert_eq!(plain.quantile_with_flushes(0.99), None, "nothing is flushed");
    }

    #[test]
    fn latencies_by_hand() {
        let mut record = IoRecord::default();
        assert_eq!((record.quantile(0.5), record.mean()), (None, None));
        for millis in 1..=100 {
            record.add(1, Nanos::from_millis(millis));
        }
        record.add(1, Nanos::from_millis(11_000));
        assert_eq!((record.over_2s, record.over_10s, record.count), (1, 1, 101));
        let half = record.quantile(0.5).expect("operations").as_secs();
        assert!((half - 0.051).abs() < 0.001, "{half}");
        assert_eq!(record.quantile(1.0), Some(Nanos::from_millis(11_000)));
        assert_eq!(record.min, Nanos::from_millis(1));
        let mut other = IoRecord::default();
        other.merge(&record);
        other.merge(&IoRecord { bytes: 7, ..IoRecord::default() });
        assert_eq!((other.bytes, other.min), (record.bytes + 7, record.min), "bytes of groups");
        assert_eq!((other.count, other.quantile(0.99)), (101, record.quantile(0.99)));
        let mut two = IoRecord::default();
        two.add(0, Nanos::from_millis(1_000));
        two.add(0, Nanos::from_millis(3_000));
        assert!((two.deviation() - 2f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn equal_operations_share_the_time_they_took_together() {
        let mut record = IoRecord::default();
        record.add_equal(3, 30, Nanos(10));
        record.add_equal(0, 4, Nanos(5));
        assert_eq!((record.count, record.bytes, record.total), (3, 34, Nanos(10)));
        assert_eq!((record.min, record.max), (Nanos(3), Nanos(4)));
        assert!(record.deviation() < 1e-15 && record.over_2s == 0);
        record.add_equal(2, 0, Nanos::from_millis(6_000));
        assert_eq!((record.over_2s, record.quantile(0.5)), (2, Some(Nanos(3))));
        // Each of them by itself, not all together.
        record.add_equal(1_000, 0, Nanos::from_millis(12_000));
        assert_eq!((record.over_2s, record.over_10s), (2, 0));
    }

    #[test]
    fn fairness_by_hand() {
        let process = |copy, millis| ProcessRecord { copy, ended: at(millis), phases: vec![] };
        let record = |processes| RunRecord { processes, ..RunRecord::default() };
        let run = record(vec![process(0, 500), process(1, 1000), process(0, 1000)]);
        assert_eq!(run.fairness(), Some(1.0));
        assert_eq!(
            (run.first_done(), run.last_done()),
            (Nanos(1_000_000_000), Nanos(1_000_000_000))
        );
        // Rates 1 and 1/3: (4/3)^2 / (2 x 10/9) = 0.8.
        let run = record(vec![process(0, 1000), process(1, 3000)]);
        assert!((run.fairness().expect("two copies") - 0.8).abs() < 1e-12);
        assert_eq!(record(vec![process(0, 1)]).fairness(), None);
    }

    /// Counted by two and joined in either order is as counted by one.
    #[test]
    fn what_is_joined_is_what_one_would_have_counted() {
        let of = |all: &[u64]| {
            let mut record = IoRecord::default();
            all.iter().for_each(|millis| record.add(*millis * 10, Nanos::from_millis(*millis)));
            record
        };
        let (all, [one, other]) =
            (of(&[3, 700, 2_500, 11_000]), [of(&[3, 11_000]), of(&[700, 2_500])]);
        for (first, second) in [(&one, &other), (&other, &one)] {
            let mut joined = first.clone();
            joined.merge(second);
            assert_eq!((joined.min, joined.max, joined.total), (all.min, all.max, all.total));
            assert_eq!((joined.count, joined.bytes, joined.mean()), (4, all.bytes, all.mean()));
            assert_eq!((joined.over_2s, joined.over_10s), (2, 1));
            assert!((joined.deviation() - all.deviation()).abs() < 1e-9 && all.deviation() > 5.0);
            assert_eq!(joined.quantile(0.5), all.quantile(0.5));
        }
    }

    #[test]
    fn a_phase_lasts_from_the_first_start_to_the_last_end() {
        let process = |began: u64, ended: u64, millis: u64| {
            let cpu = Some(Cpu {
                user: Nanos::from_millis(millis),
                system: Nanos::from_millis(2 * millis),
            });
            let phase = PhaseRecord {
                began: Some(at(began)),
                ended: Some(at(ended)),
                cpu,
                ..PhaseRecord::default()
            };
            ProcessRecord { copy: 0, ended: at(ended), phases: vec![phase] }
        };
        let mut record = RunRecord {
            processes: vec![process(30, 50, 1), process(10, 40, 2)],
            ..RunRecord::default()
        };
        let phase = record.phase(0).expect("both had it");
        assert_eq!((phase.began, phase.ended), (Some(at(10)), Some(at(50))));
        let cpu = phase.cpu.expect("told");
        assert_eq!((cpu.user, cpu.system), (Nanos::from_millis(3), Nanos::from_millis(6)));
        record.processes[1].phases[0].cpu = None;
        assert_eq!(record.phase(0).expect("both had it").cpu, None, "a part tells nothing of all");
        assert!(record.phase(1).is_none());
    }

    #[test]
    fn members_are_written_so_much_for_each_byte_written() {
        let mut phase = PhaseRecord::default();
        phase.writes.add(1_000, Nanos(1));
        phase.reads.add(9_000, Nanos(1));
        let processes = vec![ProcessRecord { phases: vec![phase], ..ProcessRecord::default() }];
        let members = Some(MemberTotals { bytes_written: 2_500, ..MemberTotals::default() });
        let mut record = RunRecord { processes, members, ..RunRecord::default() };
        assert_eq!(record.write_amplification(), Some(2.5));
        assert_eq!(record.fairness(), None, "of one copy");
        record.members = None;
        assert_eq!(record.write_amplification(), None);
    }
}
