//! CPU time used, by this process and by the whole machine.

use raidlab_core::Nanos;

/// CPU times at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuTimes {
    process: u64,
    system: Option<u64>,
}

impl CpuTimes {
    pub(crate) fn now() -> Self {
        Self { process: process_nanos(), system: system_nanos() }
    }

    pub(crate) fn process_since(&self, earlier: &Self) -> Nanos {
        Nanos(self.process.saturating_sub(earlier.process))
    }

    pub(crate) fn system_since(&self, earlier: &Self) -> Option<Nanos> {
        Some(Nanos(self.system?.saturating_sub(earlier.system?)))
    }
}

fn process_nanos() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn system_nanos() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let ticks = busy_ticks(&text)?;
    let per_second = rustix::param::clock_ticks_per_second();
    (per_second > 0).then(|| ticks * (1_000_000_000 / per_second))
}

/// Ticks of all processors that were neither idle nor stolen, from the text of `/proc/stat`.
fn busy_ticks(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("cpu "))?;
    let fields: Vec<u64> = line.split_whitespace().skip(1).map_while(|f| f.parse().ok()).collect();
    // user nice system idle iowait irq softirq: man 5 proc_stat.
    let busy = [0, 1, 2, 5, 6];
    busy.iter().map(|i| fields.get(*i).copied()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_leaves_idle_out() {
        let text = "cpu  10 20 30 4000 500 6 7 80 9 0\ncpu0 1 2 3\n";
        assert_eq!(busy_ticks(text), Some(73));
        assert_eq!(busy_ticks("cpu0 1 2 3\n"), None);
        assert_eq!(busy_ticks("cpu 1 2\n"), None);
    }

    #[test]
    fn working_takes_time() {
        let before = CpuTimes::now();
        let mut sum = 0u64;
        while CpuTimes::now().process_since(&before) == Nanos::ZERO {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(CpuTimes::now().process_since(&before) > Nanos::ZERO);
    }
}
