//! Which cells a study has, in which order a round runs them, and the seed of each run.

use raidlab_random::{Random, mix};
use raidlab_workload::WorkloadSpec;

use crate::study::{IDLE_REBUILD, NamedLayout, State, Study, runs_on};

/// What seeds are drawn for: different purposes never share one.
const FOR_ORDER: u64 = 1;
const FOR_CELL: u64 = 2;

/// A cell of a study: one layout x workload x process count x state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellKey {
    /// The index of the layout in the study.
    pub layout: usize,
    /// The index of the workload in the study; one past the last for a rebuild while nothing else goes
    /// on.
    pub workload: usize,
    /// How many processes at once; 0 for a rebuild alone.
    pub processes: u32,
    /// The state of the array.
    pub state: State,
    /// The layout is measured once more under another name: what that shows to differ is noise.
    pub again: bool,
}

impl CellKey {
    /// The workload; `None` for a rebuild while nothing else goes on.
    pub fn workload<'a>(&self, study: &'a Study) -> Option<&'a WorkloadSpec> {
        study.workloads.get(self.workload)
    }
}

/// Every cell of a study in the order of its results: by workload, processes, state and layout; then, with the state
/// `rebuilding`, the rebuilds alone. Layouts without redundancy have healthy cells only, those with hot spares none
/// that are degraded, and workloads may run on some layouts only, or with process counts of their own; `study.only`
/// may limit them further. Where rounds are measured in real time, the first layout of the baseline is there once
/// more, at the end.
pub fn cells(study: &Study) -> Vec<CellKey> {
    let mut cells = Vec::new();
    for (workload, spec) in study.workloads.iter().enumerate() {
        for &processes in study.processes_of(spec) {
            for &state in &study.states {
                let layouts = having(study, state, |layout| runs_on(spec, layout));
                cells.extend(layouts.map(|layout| CellKey {
                    layout,
                    workload,
                    processes,
                    state,
                    again: false,
                }));
            }
        }
    }
    if study.states.contains(&State::Rebuilding) {
        let (workload, processes, state) = (study.workloads.len(), 0, State::Rebuilding);
        let layouts = having(study, state, |_| true);
        cells.extend(layouts.map(|layout| CellKey {
            layout,
            workload,
            processes,
            state,
            again: false,
        }));
    }
    cells.retain(|key| study.runs(key));
    let baseline = study.baseline_layouts();
    if study.measured
        && let [first, ..] = baseline[..]
    {
        let again: Vec<_> = cells
            .iter()
            .filter(|key| key.layout == first && is_compared(key, &baseline, &cells))
            .map(|key| CellKey { again: true, ..*key })
            .collect();
        cells.extend(again);
    }
    cells
}

/// Whether something is compared with a cell of the baseline.
fn is_compared(key: &CellKey, baseline: &[usize], cells: &[CellKey]) -> bool {
    cells.iter().any(|other| {
        let same = CellKey { layout: key.layout, ..*other } == *key;
        same && !baseline.contains(&other.layout)
    })
}

/// The layouts of those wanted that can be in a state.
fn having(
    study: &Study,
    state: State,
    wanted: impl Fn(&NamedLayout) -> bool,
) -> impl Iterator<Item = usize> {
    let layouts = study.layouts.iter().enumerate();
    let able = layouts.filter(move |(_, one)| one.can_be(state));
    able.filter(move |(_, one)| wanted(one)).map(|(index, _)| index)
}

/// The order in which a round (from 0) runs the cells: each once, and over as many rounds as there are cells (twice
/// as many, when those are odd) each comes right after each other one equally often.
///
/// A Williams design (E. J. Williams, "Experimental designs balanced for the estimation of residual effects of
/// treatments", Australian Journal of Scientific Research A2, 1949, 149-168), with the cells and its rows in an order
/// drawn from the study's seed: drift, neighbours and what the cell before left behind spread over all cells alike.
pub fn order(study: &Study, round: u32) -> Vec<CellKey> {
    let cells = cells(study);
    order_of(study, round, cells.len()).into_iter().map(|index| cells[index]).collect()
}

/// The same as indices into [`cells`].
pub(crate) fn order_of(study: &Study, round: u32, cells: usize) -> Vec<usize> {
    let design = if cells.is_multiple_of(2) { cells } else { 2 * cells }.max(1);
    let (repeat, place) = (round as usize / design, round as usize % design);
    let drawn = |what: u64, count: usize| {
        let mut order: Vec<usize> = (0..count).collect();
        Random::new(mix(&[study.seed, FOR_ORDER, what, repeat as u64])).shuffle(&mut order);
        order
    };
    let (names, row) = (drawn(0, cells), drawn(1, design)[place]);
    // 0, n-1, 1, n-2, ..: neighbours differ by every number once; each row adds one to all.
    let zigzag = (0..cells).map(|at| if at % 2 == 0 { at / 2 } else { cells - 1 - at / 2 });
    let mut order: Vec<usize> = zigzag.map(|at| names[(at + row) % cells]).collect();
    // With an odd number of cells a difference comes up in one direction only: the other half runs backwards.
    if row >= cells {
        order.reverse();
    }
    order
}

/// The seed of one run of a cell in a round (from 0).
///
/// The layout does not enter: within a round all layouts meet the same random draws, so that the
/// ratio of two of them shows the layouts and not the luck of the draw (common random numbers).
pub fn cell_seed(study: &Study, key: &CellKey, round: u32) -> u64 {
    mix(&[
        study.seed,
        FOR_CELL,
        u64::from(round),
        key.workload as u64,
        u64::from(key.processes),
        key.state as u64,
    ])
}

/// A cell as people say it: `raid5(4), dd-write 6MiB, 2 processes`, and the state unless healthy.
pub fn cell_title(study: &Study, key: &CellKey) -> String {
    let name = &study.layouts[key.layout].name;
    let layout = if key.again { &format!("{name} again") } else { name };
    let Some(workload) = key.workload(study).map(|workload| &workload.name) else {
        return format!("{layout}, {IDLE_REBUILD}");
    };
    let processes = if key.processes == 1 { "process" } else { "processes" };
    let state = if key.state == State::Healthy { "" } else { &format!(", {}", key.state) };
    format!("{layout}, {workload}, {} {processes}{state}", key.processes)
}
