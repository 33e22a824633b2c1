//! Runs as tiobench prints them: the tables of its front end (`text`), and the lines that its program
//! gives to the front end (`terse`).
//!
//! Columns are those of the front end of May 2002 (0.3) and of August 2020 (0.4). Where no target tells
//! CPU times, their columns are empty. A number too wide for its column makes it wider, as Perl did then;
//! today's Perl prints `#` instead. The front end knows no skipped phases: their tables are left out, and
//! their terse lines are zeroes. `CPU Eff` is rate / (CPU share + 0.00001), which 0.3 lacked: a run without
//! CPU time was a division by zero there.

use std::fmt::Write;

use raidlab_core::Nanos;

use super::{Generation, MIB, Phase, Tiobench};
use crate::record::{Cpu, RunRecord};

/// What is printed of a phase.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    /// MiB that the phase is credited with.
    amount: f64,
    seconds: f64,
    cpu: Option<Cpu>,
    count: u64,
    /// The sum of latencies.
    total: Nanos,
    longest: Nanos,
    over_2s: u64,
    over_10s: u64,
}

impl Line {
    fn percent(&self, count: u64) -> f64 {
        if self.count == 0 { 0.0 } else { count as f64 * 100.0 / self.count as f64 }
    }

    fn mean_ms(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.total.as_secs() / self.count as f64 * 1000.0 }
    }

    fn longest_ms(&self) -> f64 {
        self.longest.as_secs() * 1000.0
    }

    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.total += other.total;
        self.longest = self.longest.max(other.longest);
        self.over_2s += other.over_2s;
        self.over_10s += other.over_10s;
    }
}

/// The tables in their order: phases and titles.
const TABLES: [(Phase, &str); 4] = [
    (Phase::SequentialRead, "Sequential Reads"),
    (Phase::RandomRead, "Random Reads"),
    (Phase::SequentialWrite, "Sequential Writes"),
    (Phase::RandomWrite, "Random Writes"),
];

const UNITS_03: &str = "
Unit information
================
File size = megabytes
Blk Size  = bytes
Rate      = megabytes per second
CPU%      = percentage of CPU used during the test
Latency   = milliseconds
Lat%      = percent of requests that took longer than X seconds
CPU Eff   = Rate divided by CPU% - throughput per cpu load
";

const HEAD_03: &str = "                              \
File  Blk   Num                   Avg      Maximum      Lat%     Lat%    CPU
Identifier                    Size  Size  Thr   Rate  (CPU%)  Latency    Latency      >2s      >10s    Eff
---------------------------- ------ ----- ---  ------ ------ --------- -----------  -------- -------- -----
";

const HEAD_04: &str = "                              \
File   Blk   Num                         Avg      Maximum      Lat%     Lat%     CPU
Identifier                    Size   Size  Thr      Rate     (CPU%)  Latency    Latency      >2s      >10s     Eff
---------------------------- ------ ------ ---  ------------ ------ --------- -----------  -------- -------- -------
";

impl Tiobench {
    fn line(&self, phase: Phase, record: &RunRecord) -> Option<Line> {
        let joined = record.phase(phase as u16)?;
        let operations = phase.operations(&joined);
        Some(Line {
            amount: self.credited(phase, &joined, record) as f64 / MIB as f64,
            seconds: joined.took().as_secs(),
            cpu: joined.cpu,
            count: operations.count,
            total: operations.total,
            longest: operations.max,
            over_2s: operations.over_2s,
            over_10s: operations.over_10s,
        })
    }

    /// The four tables with one row each.
    pub(super) fn text(&self, record: &RunRecord, host: &str) -> String {
        let mut text = UNITS_03.to_string();
        if self.generation == Generation::V04 {
            text = text.replace("megabytes\n", "megabytes (2^20 bytes, 1,048,576 bytes)\n");
        }
        for (phase, title) in TABLES {
            let Some(line) = self.line(phase, record).filter(|line| line.seconds > 0.0) else {
                continue;
            };
            let _ = writeln!(text, "\n{title}");
            match self.generation {
                Generation::V03 => text.push_str(HEAD_03),
                Generation::V04 => {
                    let _ = write!(text, "{}\n{HEAD_04}", "=".repeat(title.len()));
                }
            }
            text.push_str(&self.row(&line, record, host));
        }
        text
    }

    fn row(&self, line: &Line, record: &RunRecord, host: &str) -> String {
        let (block_width, rate_width, efficiency_width) = match self.generation {
            Generation::V03 => (5, 6, 5),
            Generation::V04 => (6, 12, 7),
        };
        let rate = line.amount / line.seconds;
        let share = line.cpu.map(|cpu| cpu.sum().as_secs() / line.seconds);
        let percent = share.map_or_else(String::new, |share| cut(share * 100.0));
        let efficiency =
            share.map_or_else(String::new, |share| format!("{:.0}", rate / (share + 0.00001)));
        format!(
            "{:<28.28} {} {} {:>3}  {rate:>rate_width$.2} {percent:>5}% {:>9.3} {:>11.2}  {:>8.5} \
             {:>8.5} {efficiency:>efficiency_width$}\n",
            host,
            centred(&self.printed_size(record).to_string(), 6),
            centred(&self.block.to_string(), block_width),
            record.processes.len(),
            line.mean_ms(),
            line.longest_ms(),
            line.percent(line.over_2s),
            line.percent(line.over_10s),
        )
    }

    /// The total size in MiB: what was asked for, or what the files came to.
    fn printed_size(&self, record: &RunRecord) -> u64 {
        let copies = record.ends().len() as u64;
        let whole = |phase: Phase| {
            let joined = record.phase(phase as u16)?;
            Some(phase.operations(&joined).bytes / MIB)
        };
        match (self.size, self.threads) {
            (Some(size), super::Threads::Copies) => size / MIB,
            (Some(size), super::Threads::Fixed(_)) => size / MIB * copies,
            (None, _) => {
                whole(Phase::SequentialWrite).or_else(|| whole(Phase::SequentialRead)).unwrap_or(0)
            }
        }
    }

    /// A line for each phase, and one for all of them.
    pub(super) fn terse(&self, record: &RunRecord) -> String {
        let names = ["write", "rwrite", "read", "rread"];
        let (mut text, mut all) = (String::new(), Line::default());
        for (phase, name) in Phase::ALL.into_iter().zip(names) {
            let none = Line { cpu: Some(Cpu::default()), ..Line::default() };
            let line = self.line(phase, record).unwrap_or(none);
            all.add(&line);
            let time = |time: Option<Nanos>| {
                time.map_or_else(String::new, |time| format!("{:.5}", time.as_secs()))
            };
            let _ = writeln!(
                text,
                "{name}:{:.5},{:.5},{},{},{}",
                line.amount,
                line.seconds,
                time(line.cpu.map(|cpu| cpu.user)),
                time(line.cpu.map(|cpu| cpu.system)),
                latencies(&line)
            );
        }
        let _ = writeln!(text, "total:{}", latencies(&all));
        text
    }
}

fn latencies(line: &Line) -> String {
    let (over_2s, over_10s) = (line.percent(line.over_2s), line.percent(line.over_10s));
    format!("{:.5},{:.5},{over_2s:.5},{over_10s:.5}", line.mean_ms(), line.longest_ms())
}

/// In the middle, the odd space behind.
fn centred(text: &str, width: usize) -> String {
    let before = width.saturating_sub(text.len()) / 2;
    format!("{:<width$}", format!("{}{text}", " ".repeat(before)))
}

/// The first five characters of a number with 15 digits, as a Perl text field shows it.
fn cut(number: f64) -> String {
    let rounded = format!("{number:.14e}").parse::<f64>().unwrap_or(number);
    rounded.to_string().chars().take(5).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_as_perl_fills_them() {
        assert_eq!((centred("100", 6), centred("4096", 5)), (" 100  ".into(), "4096 ".into()));
        assert_eq!(centred("1048576", 6), "1048576");
        assert_eq!([cut(12.5), cut(20.0), cut(0.875)], ["12.5", "20", "0.875"]);
        assert_eq!([cut(100.0 / 3.0), cut(0.1 + 0.2)], ["33.33", "0.3"]);
    }
}
