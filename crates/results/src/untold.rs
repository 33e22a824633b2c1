//! Rebuild times that are unknown, and what was over before it had settled: with neither anything is compared.

use std::collections::BTreeSet;

use crate::document::{Cell, Clock, Results};
use crate::find::{PACED_SECONDS, REBUILD, REBUILD_ESTIMATE, row_metric};

/// What cells have in common that are compared with each other, besides their metric.
type Axes = (String, u32, String, Vec<(String, String)>);

fn axes(cell: &Cell) -> Axes {
    let settings = cell.settings.iter().map(|(key, value)| (key.clone(), value.clone()));
    (cell.workload.clone(), cell.processes, cell.state.clone(), settings.collect())
}

impl Results {
    /// Takes out what earlier versions compared with what tells nothing.
    pub(crate) fn forget_untold(&mut self) {
        self.forget_unknown();
        self.forget_unsettled();
    }

    /// Takes out what was compared beside the first seconds of a rebuild, and says of the cells that these are all
    /// they saw: md paces one by its last seconds, raidlab's own engine on real members from the start.
    fn forget_unsettled(&mut self) {
        if self.clock == Clock::Real {
            return;
        }
        let layout = |cell: &Cell| (cell.layout.clone(), axes(cell));
        let estimates =
            self.cells.iter().filter(|cell| cell.metric == REBUILD_ESTIMATE).map(layout);
        let short = self.too_short.iter().filter(|one| one.metric == REBUILD_ESTIMATE);
        let short = short.map(|one| {
            let settings = one.settings.clone().into_iter().collect();
            let axes = (one.workload.clone(), one.processes, one.state.clone(), settings);
            (one.layout.clone(), axes)
        });
        let went_on: BTreeSet<(String, Axes)> = estimates.chain(short).collect();
        let is_work = |cell: &Cell| cell.processes > 0 && row_metric(&cell.metric) != REBUILD;
        let mut rows = BTreeSet::new();
        for cell in self.cells.iter_mut().filter(|cell| is_work(cell)) {
            cell.unsettled |= cell.last_done_s < PACED_SECONDS && went_on.contains(&layout(cell));
            if cell.unsettled {
                rows.insert(axes(cell));
            }
        }
        for cell in self.cells.iter_mut().filter(|cell| is_work(cell)) {
            if rows.contains(&axes(cell)) {
                forget(cell);
                (cell.floor_percent, cell.dependence) = (None, None);
                (cell.may_be_best, cell.as_good_as_best) = (false, false);
            }
        }
    }

    /// Percentages and verdicts of rebuild times that nobody knows and of all that have them for a baseline, and who of
    /// their row is as good as the best.
    fn forget_unknown(&mut self) {
        let untold = || self.cells.iter().filter(|cell| cell.tells_too_little());
        let rows: BTreeSet<Axes> = untold().map(axes).collect();
        if rows.is_empty() {
            return;
        }
        let bases: BTreeSet<Axes> =
            untold().filter(|cell| self.baseline.contains(&cell.layout)).map(axes).collect();
        for cell in self.cells.iter_mut().filter(|cell| row_metric(&cell.metric) == REBUILD) {
            let row = axes(cell);
            if !rows.contains(&row) {
                continue;
            }
            cell.as_good_as_best = false;
            if cell.tells_too_little() || bases.contains(&row) {
                forget(cell);
            }
        }
    }
}

/// What a cell is against the baseline.
fn forget(cell: &mut Cell) {
    cell.percent_vs_baseline = None;
    cell.percent_interval = None;
    cell.verdict = None;
    cell.more_rounds = None;
    if let Some(trust) = &mut cell.trust {
        trust.sign_of_100 = None;
    }
}

#[cfg(test)]
mod tests {
    use crate::document::Results;

    /// What was over within 3 s of a rebuild that went on, whichever version wrote it, is compared with nothing.
    #[test]
    fn nothing_is_compared_beside_the_first_seconds_of_a_rebuild() {
        let beside = |clock: &str, metric: &str, last_done: f64| {
            let mut value: serde_json::Value = serde_json::from_str(
                &document(&[("a", "50.00"), ("b", "50.00")]).to_json().expect("JSON"),
            )
            .expect("JSON");
            value["clock"] = clock.into();
            let rebuilds = value["cells"].as_array().expect("cells").clone();
            for mut cell in rebuilds {
                cell["metric"] = "iops".into();
                cell["last_done_s"] = if cell["layout"] == "a" { 9.0 } else { last_done }.into();
                cell.as_object_mut().expect("a cell").remove("note");
                value["cells"].as_array_mut().expect("cells").push(cell);
            }
            for cell in value["cells"].as_array_mut().expect("cells").iter_mut().take(2) {
                cell["metric"] = metric.into();
            }
            let read = Results::from_json(&value.to_string()).expect("a document");
            let work: Vec<_> = read.cells.iter().filter(|cell| cell.metric == "iops").collect();
            let compared = work.iter().map(|cell| cell.verdict.is_some() || cell.may_be_best);
            let compared: Vec<bool> = compared.collect();
            assert_eq!(compared[0], compared[1], "both, or none of the row");
            ([work[0].unsettled, work[1].unsettled], compared[0])
        };
        assert_eq!(beside("virtual", "rebuild_estimate_s", 2.9), ([false, true], false));
        assert_eq!(beside("virtual", "rebuild_estimate_s", 3.0), ([false, false], true));
        // Its rebuild ended, or went on at raidlab's own pace.
        assert_eq!(beside("virtual", "rebuild_s", 2.9), ([false, false], true));
        assert_eq!(beside("real", "rebuild_estimate_s", 2.9), ([false, false], true));
    }

    /// A document with rebuilds beside load, of layouts of which so many percent were done.
    fn document(cells: &[(&str, &str)]) -> Results {
        let cell = |(layout, percent): &(&str, &str)| {
            serde_json::json!({
                "layout": layout, "workload": "w", "processes": 1, "state": "rebuilding",
                "metric": "rebuild_estimate_s", "better": "lower", "unit": "s", "samples": [9000.0],
                "median": 9000.0, "mean": 9000.0, "settings": {}, "first_done_s": 1.0, "last_done_s": 5.0,
                "note": format!("estimated from {percent} % of the rebuild"),
                "percent_vs_baseline": -64.0, "percent_interval": [-65.0, -63.0], "verdict": "faster",
                "may_be_best": true, "as_good_as_best": true
            })
        };
        let document = serde_json::json!({
            "schema_version": 2, "raidlab": "1.0.0", "study": "t", "seed": 1, "clock": "virtual", "host": {},
            "settings": {}, "warnings": [], "baseline": ["a"], "layouts": [], "workloads": [],
            "cells": cells.iter().map(cell).collect::<Vec<_>>()
        });
        Results::from_json(&document.to_string()).expect("a document")
    }

    #[test]
    fn nothing_is_compared_with_a_time_that_is_unknown() {
        let known = |results: &Results| -> Vec<(bool, bool, bool)> {
            let is = |cell: &crate::Cell| {
                let percent = cell.percent_vs_baseline.is_some() && cell.percent_interval.is_some();
                (percent, cell.verdict.is_some(), cell.as_good_as_best)
            };
            results.cells.iter().map(is).collect()
        };
        let (all, none, compared) =
            ((true, true, true), (false, false, false), (true, true, false));
        assert_eq!(known(&document(&[("a", "50.00"), ("b", "50.00")])), [all, all]);
        // The baseline is unknown.
        assert_eq!(known(&document(&[("a", "0.04"), ("b", "50.00")])), [none, none]);
        // Another one is: it may be the best, and the others are compared without it.
        let third = document(&[("a", "50.00"), ("b", "0.04"), ("c", "50.00")]);
        assert_eq!(known(&third), [compared, none, compared]);
    }
}
