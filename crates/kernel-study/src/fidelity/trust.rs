//! What reports tell of the error of the model's host: made of measured cells and of what the model says of them.

use std::collections::BTreeMap;

use raidlab_results::statistics::median;
use raidlab_results::trust::{Access, GroupRow, Members, Traits, Trust};

use super::{Compared, Refusal, predict_all};
use crate::drawn::{Drawing, Drawn, draw};
use crate::measured::{Head, Measured};

/// The command that makes the data anew.
const COMMAND: &str = "cargo xtask fidelity --trust --record";
/// What they are about.
const ERROR_OF: &str = "the modelled host against a Linux kernel on equal drives; \
                        drives against measured drives are apart";

/// A file of measured cells with what was drawn.
#[derive(Clone, Debug)]
pub struct Stored {
    head: Head,
    drawing: Drawing,
    cells: Vec<Measured>,
}

impl Stored {
    /// Of a file that was read; of its cells those that tell something: with values, without a say of the processor,
    /// and without pauses, which are most of the time of those that have them and flatter.
    pub fn new(head: Head, mut cells: Vec<Measured>) -> Self {
        let drawing = draw(head.seed, head.count);
        cells.retain(|cell| {
            let drawn = drawing.cells.get(cell.cell);
            drawn.is_some_and(|drawn| drawn.value("think") == "none")
                && cell.error.is_none()
                && !cell.is_cpu_sensitive()
        });
        cells.sort_by_key(|cell| cell.cell);
        Self { head, drawing, cells }
    }

    /// The cells, each with its figure.
    pub fn asked(&self) -> Vec<(&Drawn, &str)> {
        let asked = |cell: &'_ Measured| self.drawing.cells.get(cell.cell);
        self.cells.iter().filter_map(|cell| Some((asked(cell)?, cell.metric.as_str()))).collect()
    }

    /// The kernel, as the file names it.
    pub fn kernel(&self) -> &str {
        &self.head.kernel
    }

    /// The seed that cells are drawn and run with.
    pub fn seed(&self) -> u64 {
        self.head.seed
    }

    /// What its numbers of cells are of: the kernel, and the seed of the drawing.
    pub fn drawing_name(&self) -> String {
        format!("{} seed {}", self.head.kernel, self.head.seed)
    }

    /// What the model says of its cells, as far as it says anything.
    pub fn model(&self, threads: usize, progress: &(dyn Fn(usize) + Sync)) -> BTreeMap<usize, f64> {
        let asked = self.asked();
        let values = predict_all(&asked, (self.head.seed, &self.head.kernel), threads, progress);
        let figure = |values: Result<Vec<f64>, Refusal>| median(&values.ok()?).map(short);
        let all = asked.iter().zip(values);
        all.filter_map(|((drawn, _), values)| Some((drawn.number, figure(values)?))).collect()
    }
}

/// Six digits: the rest is none of the model's.
fn short(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// What is told of all kernels' cells, by what the model said of them.
pub fn trust_of(stored: &[Stored], model: &BTreeMap<String, BTreeMap<usize, f64>>) -> Trust {
    let mut compared: Vec<Compared<'_>> = Vec::new();
    let mut kernels = BTreeMap::new();
    for file in stored {
        let before = compared.len();
        let said = model.get(&file.drawing_name());
        for cell in &file.cells {
            let figure = said.and_then(|said| said.get(&cell.cell));
            if let (Some(drawn), Some(figure)) = (file.drawing.cells.get(cell.cell), figure) {
                let values = cell.values.clone();
                compared.extend(Compared::new(drawn, &cell.metric, values, vec![*figure]));
            }
        }
        *kernels.entry(file.head.kernel.clone()).or_insert(0) += compared.len() - before;
    }
    let mut filesystems: Vec<String> =
        compared.iter().map(|cell| cell.drawn.value("filesystem").to_owned()).collect();
    filesystems.retain(|name| name != "none");
    filesystems.sort();
    filesystems.dedup();
    let group = |traits: Traits| {
        let own = compared.iter().filter(|cell| traits.has(traits_of(cell.drawn, &cell.metric)));
        let errors: Vec<(f64, &str)> =
            own.map(|cell| (cell.log_error(), cell.drawn.value("workload"))).collect();
        GroupRow::of(traits, &errors)
    };
    Trust {
        made_by: COMMAND.to_owned(),
        error_of: ERROR_OF.to_owned(),
        kernels,
        filesystems,
        groups: Traits::all().into_iter().filter_map(group).collect(),
        model: model.clone(),
    }
}

/// What reports know of such a cell as well.
fn traits_of(drawn: &Drawn, metric: &str) -> Traits {
    let reads = ["dd-read", "cp", "random-read"];
    Traits {
        filesystem: Some(drawn.value("filesystem") != "none"),
        members: Some(match drawn.value("state") {
            "healthy" => Members::Healthy,
            "degraded" => Members::Lost,
            _ => Members::Rebuilding,
        }),
        access: Some(Access::of_metric(metric)),
        writes: Some(!reads.contains(&drawn.value("workload"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawn_cell_writes_where_its_workload_does() {
        let drawing = draw(1, 0);
        let of = |workload: &str| {
            let cell = drawing.cells.iter().find(|cell| cell.value("workload") == workload);
            traits_of(cell.expect("is drawn"), "iops").writes
        };
        assert_eq!(["dd-read", "cp", "random-read"].map(of), [Some(false); 3]);
        assert_eq!(["dd-write", "random-mixed", "tar", "bonnie"].map(of), [Some(true); 4]);
    }

    #[test]
    fn groups_are_of_cells_without_pauses_that_both_ran() {
        let drawing = draw(1, 600);
        let head = Head {
            seed: 1,
            count: 600,
            kernel: "k".into(),
            programs: "p".into(),
            jobs: crate::measured::JOBS,
            drives: BTreeMap::new(),
        };
        let measured = |cell: usize| Measured {
            cell,
            metric: "iops".into(),
            values: vec![100.0; 5],
            other_costs: [100.0; 2],
            members: [0; 4],
            error: None,
        };
        let stored = Stored::new(head, (0..600).map(measured).collect());
        let asked = stored.asked();
        assert!(asked.iter().all(|(drawn, _)| drawn.value("think") == "none"));
        let said: BTreeMap<usize, f64> =
            asked.iter().map(|(drawn, _)| (drawn.number, 110.0)).collect();
        let count = said.len();
        let trust = trust_of(&[stored], &BTreeMap::from([("k seed 1".to_owned(), said)]));
        assert_eq!((trust.kernels["k"], trust.groups.len()), (count, 24));
        assert_eq!(trust.filesystems, ["ext4", "xfs"]);
        let widest = trust.groups.last().expect("has groups");
        assert_eq!((widest.cells, widest.median_percent), (count, 10.0));
        assert!((widest.times - 1.1).abs() < 1e-4);
        assert_eq!(widest.covered, [count, count]);
        assert_eq!(widest.sign_of_100(2.0), 100, "all are off alike");
        let pauses = drawing.cells.iter().filter(|cell| cell.value("think") != "none").count();
        assert_eq!(count + pauses, 600);
    }
}
