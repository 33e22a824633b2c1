//! Which cells a study has, in which order a round runs them, and the seed of each run.

use raidlab_workload::WorkloadSpec;
use raidlab_workload::random::{Random, mix};

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
}

impl CellKey {
    /// The workload; `None` for a rebuild while nothing else goes on.
    pub fn workload<'a>(&self, study: &'a Study) -> Option<&'a WorkloadSpec> {
        study.workloads.get(self.workload)
    }
}

/// Every cell of a study in the order of its results: by workload, processes, state and layout; then, with
/// the state `rebuilding`, the rebuilds alone. Layouts without redundancy have healthy cells only, and
/// workloads may run on some layouts only, or with process counts of their own; `study.only` may
/// limit them further.
pub fn cells(study: &Study) -> Vec<CellKey> {
    let mut cells = Vec::new();
    for (workload, spec) in study.workloads.iter().enumerate() {
        for &processes in study.processes_of(spec) {
            for &state in &study.states {
                let layouts = having(study, state, |layout| runs_on(spec, layout));
                cells.extend(layouts.map(|layout| CellKey { layout, workload, processes, state }));
            }
        }
    }
    if study.states.contains(&State::Rebuilding) {
        let (workload, processes, state) = (study.workloads.len(), 0, State::Rebuilding);
        let layouts = having(study, state, |_| true);
        cells.extend(layouts.map(|layout| CellKey { layout, workload, processes, state }));
    }
    cells.retain(|key| study.runs(key));
    cells
}

/// The layouts of those wanted that can be in a state.
fn having(
    study: &Study,
    state: State,
    wanted: impl Fn(&NamedLayout) -> bool,
) -> impl Iterator<Item = usize> {
    let layouts = study.layouts.iter().enumerate();
    let able = layouts.filter(move |(_, one)| state == State::Healthy || one.is_redundant());
    able.filter(move |(_, one)| wanted(one)).map(|(index, _)| index)
}

/// The order in which a round (from 0) runs the cells: each once, in a fresh random order drawn
/// from the study's seed, so that drift and neighbours spread over all cells alike.
pub fn order(study: &Study, round: u32) -> Vec<CellKey> {
    let cells = cells(study);
    order_of(study, round, cells.len()).into_iter().map(|index| cells[index]).collect()
}

/// The same as indices into [`cells`].
pub(crate) fn order_of(study: &Study, round: u32, cells: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..cells).collect();
    Random::new(mix(&[study.seed, FOR_ORDER, u64::from(round)])).shuffle(&mut order);
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
    let layout = &study.layouts[key.layout].name;
    let Some(workload) = key.workload(study).map(|workload| &workload.name) else {
        return format!("{layout}, {IDLE_REBUILD}");
    };
    let processes = if key.processes == 1 { "process" } else { "processes" };
    let state = if key.state == State::Healthy { "" } else { &format!(", {}", key.state) };
    format!("{layout}, {workload}, {} {processes}{state}", key.processes)
}
