//! Looking things up in a results document.

use crate::document::{Better, Cell, Results};

/// The metric of a rebuild's time, in seconds.
pub const REBUILD: &str = "rebuild_s";
/// The metric of a rebuild's time that was extrapolated, in seconds.
pub const REBUILD_ESTIMATE: &str = "rebuild_estimate_s";
/// A rebuild beside load is not extrapolated from less than this many percent of it in less than so many seconds: in
/// the first moments of a load the array's turns between both are not what they are later. md averages over 3 s.
pub const LEAST_REBUILT_PERCENT: f64 = 1.0;
/// In less than this a rebuild of less than [`LEAST_REBUILT_PERCENT`] is not extrapolated.
pub const LEAST_REBUILT_SECONDS: f64 = 10.0;

/// In less than this none is: md paces rebuilds by what they did in the last 3 s, and whatever begins goes unpaced.
pub const PACED_SECONDS: f64 = 3.0;

/// Whether so many percent of a rebuild, seen in so many seconds, say nothing of how long it takes beside load.
pub fn is_too_little(percent: f64, seconds: f64) -> bool {
    let is_short = seconds < PACED_SECONDS;
    percent < LEAST_REBUILT_PERCENT && seconds < LEAST_REBUILT_SECONDS
        || is_short && percent < 100.0
}

/// The metric of the row that cells of a metric stand in: rebuilds that ended and those that were extrapolated are
/// compared with each other.
pub fn row_metric(metric: &str) -> &str {
    if metric == REBUILD_ESTIMATE { REBUILD } else { metric }
}

impl Cell {
    /// Whether it says nothing of how long its rebuild takes: too little of it was done beside load.
    pub fn tells_too_little(&self) -> bool {
        let percent = || {
            let note = self.note.as_deref()?.strip_prefix("estimated from ")?;
            note.split(' ').next()?.parse::<f64>().ok()
        };
        self.metric == REBUILD_ESTIMATE
            && self.processes > 0
            && percent().is_some_and(|percent| is_too_little(percent, self.last_done_s))
    }

    /// Its axes as people say them: `raid5(4), dd-write 6MiB, 2 processes`, and the state unless
    /// healthy.
    pub fn title(&self) -> String {
        if self.processes == 0 {
            return format!("{}, {}", self.layout, self.workload);
        }
        let processes = if self.processes == 1 { "process" } else { "processes" };
        let state = if self.state == "healthy" { "" } else { &format!(", {}", self.state) };
        format!("{}, {}, {} {processes}{state}", self.layout, self.workload, self.processes)
    }

    /// Whether its median is better than another's.
    pub fn beats(&self, other: &Self) -> bool {
        match self.better {
            Better::Higher => self.median > other.median,
            Better::Lower => self.median < other.median,
        }
    }
}

impl Results {
    /// The cell with these axes.
    pub fn cell(&self, layout: &str, workload: &str, processes: u32, state: &str) -> Option<&Cell> {
        self.row(workload, processes, state).find(|cell| cell.layout == layout)
    }

    /// The cell with the best median among all layouts; of equals the first of the document.
    pub fn best(&self, workload: &str, processes: u32, state: &str) -> Option<&Cell> {
        self.row(workload, processes, state).reduce(
            |best, cell| {
                if cell.beats(best) { cell } else { best }
            },
        )
    }

    /// The cells of one workload, process count and state in the metric that comes first: one per layout that has it.
    /// A further figure stands in for it only where no layout has another. Of workloads of one name, which differ in
    /// their settings, it is the one whose cell comes first.
    pub fn row<'a, 'k>(
        &'a self,
        workload: &'k str,
        processes: u32,
        state: &'k str,
    ) -> impl Iterator<Item = &'a Cell> + use<'a, 'k> {
        let is_here = move |cell: &&Cell| {
            cell.workload == workload && cell.processes == processes && cell.state == state
        };
        let first = self.cells.iter().filter(is_here).find(|cell| !cell.detail);
        let first = first.or_else(|| self.cells.iter().find(is_here));
        let key = |cell: &'a Cell| (row_metric(&cell.metric), &cell.settings);
        let first = first.map(key);
        self.cells.iter().filter(is_here).filter(move |cell| Some(key(cell)) == first)
    }
}
