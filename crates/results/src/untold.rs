//! Rebuild times that are unknown, against which nothing is compared.

use std::collections::BTreeSet;

use crate::document::{Cell, Results};
use crate::find::{REBUILD, row_metric};

/// What cells have in common that are compared with each other, besides their metric.
type Axes = (String, u32, String, Vec<(String, String)>);

fn axes(cell: &Cell) -> Axes {
    let settings = cell.settings.iter().map(|(key, value)| (key.clone(), value.clone()));
    (cell.workload.clone(), cell.processes, cell.state.clone(), settings.collect())
}

impl Results {
    /// Takes out what earlier versions compared with rebuild times that nobody knows: percentages and verdicts of
    /// those and of all that have them for a baseline, and who of their row is as good as the best.
    pub(crate) fn forget_untold(&mut self) {
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
                cell.percent_vs_baseline = None;
                cell.percent_interval = None;
                cell.verdict = None;
                cell.more_rounds = None;
                if let Some(trust) = &mut cell.trust {
                    trust.sign_of_100 = None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::document::Results;

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
