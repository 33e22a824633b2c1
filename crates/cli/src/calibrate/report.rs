//! What a fit came to, for people and for programs.

use raidlab_explore::calibrate::Fit;
use raidlab_results::MISS_PERCENT;
use raidlab_study::{Calibration, GivenCell, Parameter, Study};
use serde_json::{Value, json};

use crate::json::pretty;

/// A fit with everything it is about.
pub(super) struct Report<'a> {
    pub(super) study: &'a Study,
    /// The free parameters.
    pub(super) free: Vec<&'a Parameter>,
    /// Positions of the given figures that were fitted.
    pub(super) fitted: Vec<usize>,
    /// Positions of those that were only looked at, and these as modelled before and after.
    pub(super) checks: Vec<usize>,
    pub(super) watched: Vec<Vec<f64>>,
    pub(super) fit: Fit,
    pub(super) calibration: Calibration,
}

/// A given figure and its errors in percent.
struct Row<'a> {
    cell: &'a GivenCell,
    before: f64,
    after: f64,
    left_out: Option<f64>,
}

impl Report<'_> {
    fn rows(&self) -> Vec<Row<'_>> {
        let fit = &self.fit;
        let error = |modelled: f64, cell: &GivenCell| (modelled / cell.value - 1.0) * 100.0;
        let row = |(at, index): (usize, &usize)| {
            let cell = &self.study.given[*index];
            let left_out = fit.left_out.get(at).map(|modelled| error(*modelled, cell));
            let (before, after) = (error(fit.before[at], cell), error(fit.after[at], cell));
            Row { cell, before, after, left_out }
        };
        let check = |(at, index): (usize, &usize)| {
            let cell = &self.study.given[*index];
            let of = |point: usize| error(self.watched[point][at], cell);
            Row { cell, before: of(0), after: of(1), left_out: None }
        };
        let fitted = self.fitted.iter().enumerate().map(row);
        fitted.chain(self.checks.iter().enumerate().map(check)).collect()
    }

    /// Tables of parameters and cells.
    pub(super) fn text(&self) -> String {
        let (done, fit) = (&self.calibration, &self.fit);
        let mut text = format!(
            "{}\n{}, {}, {}\n\n",
            self.study.title,
            counted(done.parameters, "free parameter"),
            counted(done.cells, "given cell"),
            counted(done.evaluations, "evaluation"),
        );
        let mut table = vec![["parameter", "before", "after", "range", "unit"].map(String::from)];
        for (index, one) in self.free.iter().enumerate() {
            let range = one.range.map_or(String::new(), |[from, to]| format!("{from} to {to}"));
            let (before, after) = (one.value.to_string(), fit.values[index].to_string());
            table.push([one.title(), before, after, range, one.unit.to_string()]);
        }
        text.push_str(&aligned(&table));
        let mut table =
            vec![["cell", "published", "before", "after", "left out"].map(String::from)];
        let percent = |error: f64| format!("{error:+.1} %");
        for row in self.rows() {
            let left_out = row.left_out.map_or("-".into(), percent);
            let (published, before) = (row.cell.value.to_string(), percent(row.before));
            table.push([title(row.cell), published, before, percent(row.after), left_out]);
        }
        let middle = |error: f64| format!("{error:.1} %");
        let left_out = done.median_error_left_out.map_or("-".into(), middle);
        let (before, after) = (middle(done.median_error_before), middle(done.median_error));
        table.push(["median of fitted, unsigned".into(), String::new(), before, after, left_out]);
        text.push('\n');
        text.push_str(&aligned(&table));
        text.push('\n');
        for note in self.notes() {
            text.push_str(&note);
            text.push('\n');
        }
        text
    }

    /// What must be known besides the tables.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let rows = self.rows();
        let unexplained = rows.iter().filter(|row| row.after.abs() > MISS_PERCENT);
        let names: Vec<String> =
            unexplained.map(|row| format!("{} ({:+.1} %)", title(row.cell), row.after)).collect();
        if !names.is_empty() {
            notes.push(format!("not explained (beyond {MISS_PERCENT} %): {}", names.join("; ")));
        }
        for (index, one) in self.free.iter().enumerate() {
            let value = self.fit.values[index];
            if self.fit.without_effect[index] {
                let title = one.title();
                notes.push(format!("no cell depends on {title}: set free = false"));
            } else if one.range.is_some_and(|range| range.contains(&value)) {
                notes.push(format!("{} is at the end of its range", one.title()));
            }
        }
        if !self.checks.is_empty() {
            let names: Vec<String> =
                self.checks.iter().map(|index| title(&self.study.given[*index])).collect();
            notes.push(format!("not fitted, only looked at: {}", names.join("; ")));
        }
        notes
    }

    /// Why no file was written.
    pub(super) fn unwritten(&self, dry_run: bool) -> String {
        match (self.fit.is_better, dry_run) {
            (false, _) => "not written: no values were found that fit better\n".into(),
            (true, _) => "not written: --dry-run\n".into(),
        }
    }

    /// The same as JSON; errors in percent.
    pub(super) fn json(&self) -> String {
        let done = &self.calibration;
        let parameters = self.free.iter().enumerate().map(|(index, one)| {
            json!({
                "of": one.of,
                "property": one.property,
                "unit": one.unit,
                "before": one.value,
                "after": self.fit.values[index],
                "range": one.range.into_iter().flatten().collect::<Value>(),
                "has_effect": !self.fit.without_effect[index],
            })
        });
        let fitted = self.fitted.len();
        let rows = self.rows();
        let cells = rows.iter().enumerate().map(|(at, row)| {
            json!({
                "layout": row.cell.layout,
                "workload": row.cell.workload,
                "processes": row.cell.processes,
                "metric": row.cell.metric,
                "published": row.cell.value,
                "fitted": at < fitted,
                "error_before": row.before,
                "error": row.after,
                "error_left_out": row.left_out,
            })
        });
        pretty(&json!({
            "raidlab": done.raidlab,
            "study": self.study.title,
            "seed": self.study.seed,
            "seeds": done.seeds,
            "evaluations": done.evaluations,
            "is_better": self.fit.is_better,
            "median_error_before": done.median_error_before,
            "median_error": done.median_error,
            "median_error_left_out": done.median_error_left_out,
            "parameters": parameters.collect::<Value>(),
            "cells": cells.collect::<Value>(),
        }))
    }
}

/// `R0-2, seq_write, 4 processes, mib_per_s`
fn title(cell: &GivenCell) -> String {
    let GivenCell { layout, workload, processes, metric, .. } = cell;
    let processes =
        if *processes == 1 { String::new() } else { format!(", {processes} processes") };
    format!("{layout}, {workload}{processes}, {metric}")
}

fn counted(number: u32, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// Columns as wide as their widest entry; the first to the left, the others to the right.
fn aligned(rows: &[[String; 5]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..5).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = format!("{:<1$}", row[0], widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            line.push_str(&format!("  {cell:>width$}"));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
