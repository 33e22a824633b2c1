//! The text reports of both versions.

use super::options::{DEFAULT_CHUNK, DEFAULT_SEEKS, Options, Small};
use super::report::{
    Figures, SEEKS_WITHOUT_FRACTION, VERSION_200, chunk_cell, copies, files_cell, latency_cell,
    size_cell,
};
use super::{Version, phases, small};
use crate::record::RunRecord;

const LARGE_HEAD: &str = "------Sequential Output------ --Sequential Input- --Random-\n";
const LARGE_PHASES: &str =
    "                    -Per Chr- --Block-- -Rewrite- -Per Chr- --Block-- --Seeks--\n";
const LARGE_COLUMNS_103: &str =
    "Machine        Size K/sec %CP K/sec %CP K/sec %CP K/sec %CP K/sec %CP  /sec %CP\n";
const LARGE_COLUMNS_200: &str =
    "Name:Size etc        /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP\n";
const SMALL_HEAD: &str = "------Sequential Create------ --------Random Create--------\n";
const SMALL_PHASES: &str = "-Create-- --Read--- -Delete-- -Create-- --Read--- -Delete--\n";
const SMALL_COLUMNS: &str = " /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP\n";

/// The report of every copy.
pub(super) fn text(options: &Options, record: &RunRecord, host: &str) -> String {
    let print = |copy| {
        let figures = Figures::of(options, record, copy);
        let printer = Printer { options, figures, host };
        printer.large() + &printer.small()
    };
    (0..copies(record)).map(print).collect()
}

/// Prints one copy.
struct Printer<'a> {
    options: &'a Options,
    figures: Figures,
    host: &'a str,
}

impl Printer<'_> {
    fn version(&self) -> String {
        match self.options.version {
            Version::V103 => format!("Version {:>5}       ", "1.03"),
            Version::V200 => format!("Version {VERSION_200:>5}       "),
        }
    }

    fn large(&self) -> String {
        if self.figures.size == 0 {
            return String::new();
        }
        let columns = match self.options.version {
            Version::V103 => LARGE_COLUMNS_103,
            Version::V200 => LARGE_COLUMNS_200,
        };
        let phases = 0..phases::CREATE_SEQUENTIAL;
        let head = self.version() + LARGE_HEAD + LARGE_PHASES + columns;
        head + &self.name_and_size() + &self.cells(phases.clone()) + "\n" + &self.latencies(phases)
    }

    /// The name of the machine, cut to what its 19 characters leave beside the size.
    fn name_and_size(&self) -> String {
        let chunk = match self.options.chunk {
            DEFAULT_CHUNK => String::new(),
            chunk => chunk_cell(chunk),
        };
        let size = size_cell(self.figures.size);
        let size = match self.options.version {
            Version::V103 => format!("{size}:{chunk}"),
            Version::V200 => {
                let seeks = match self.options.seeks {
                    DEFAULT_SEEKS => String::new(),
                    seeks => seeks.to_string(),
                };
                // Seekers of one digit are lost in the original, whose end of the text is one off.
                let seekers = match self.options.seekers {
                    ..=9 => String::new(),
                    seekers => seekers.to_string(),
                };
                format!("{size}:{chunk}::{seeks}:{seekers}")
            }
        };
        let size = size.trim_end_matches(':');
        match 18_usize.checked_sub(size.len()) {
            Some(room) => format!("{:room$.room$} {size}", self.host),
            None => size.to_string(),
        }
    }

    fn small(&self) -> String {
        let is_103 = self.options.version == Version::V103;
        let Some(small) = &self.options.small else {
            return if is_103 { String::new() } else { "\n".into() };
        };
        let (version, name) = match is_103 && self.figures.size > 0 {
            true => (" ".repeat(20), " ".repeat(20)),
            false => (self.version(), format!("{:<19.19} ", self.host)),
        };
        let columns = match small.made {
            small::Made::Files { most: 0, .. } => "              files ",
            small::Made::Files { least: 0, .. } | small::Made::Links | small::Made::Symlinks => {
                "files:max           "
            }
            small::Made::Files { .. } => "files:max:min       ",
        };
        let phases = phases::CREATE_SEQUENTIAL..phases::COUNT as u16;
        let head = version + SMALL_HEAD + &name + SMALL_PHASES + columns + SMALL_COLUMNS;
        let files = files_label(small);
        head + &files + &self.cells(phases.clone()) + "\n" + &self.latencies(phases)
    }

    fn cells(&self, phases: std::ops::Range<u16>) -> String {
        phases.map(|phase| self.cell(phase)).collect()
    }

    /// Rate and CPU share of a phase, in ten columns.
    fn cell(&self, phase: u16) -> String {
        let Some(timed) = self.figures.phases[usize::from(phase)] else {
            return " ".repeat(10);
        };
        let Some(rate) = timed.rate(self.figures.amount(self.options, phase)) else {
            return " +++++ +++".into();
        };
        let whole = rate.trunc();
        let rate = match phase {
            phases::SEEKS if rate < SEEKS_WITHOUT_FRACTION => format!("{rate:.1}"),
            phases::SEEKS => format!("{rate:.0}"),
            0..phases::SEEKS if self.options.version == Version::V200 => scaled(rate),
            // 2.00 prints garbage for small files; this is what it meant.
            _ => format!("{whole:.0}"),
        };
        let percent = timed.cpu_percent().map_or_else(String::new, |cpu| format!("{cpu:.0}"));
        format!(" {rate:>5} {percent:>3}")
    }

    /// The longest latencies, a line of 2.00 only.
    fn latencies(&self, phases: std::ops::Range<u16>) -> String {
        if self.options.version == Version::V103 {
            return String::new();
        }
        let cell = |phase| latency_cell(&self.figures.phases[usize::from(phase)]);
        let cells: String = phases.map(|phase| format!(" {:>9}", cell(phase))).collect();
        format!("Latency          {cells}\n")
    }
}

fn files_label(small: &Small) -> String {
    format!("{:>19}", files_cell(small))
}

/// KiB/s with a unit: k below 10000 k, then m, from 1000 m on g.
fn scaled(kib: f64) -> String {
    let mib = kib / 1024.0;
    if kib < 10_000.0 {
        format!("{:.0}k", kib.trunc())
    } else if mib < 100.0 {
        format!("{mib:.1}m")
    } else if mib < 1000.0 {
        format!("{:.0}m", (mib + 0.5).trunc())
    } else {
        format!("{:.1}g", mib / 1024.0)
    }
}
