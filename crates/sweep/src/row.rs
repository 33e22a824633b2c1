//! The row of a cell.

use std::collections::BTreeMap;

use raidlab_core::Sectors;
use raidlab_results::{Bottleneck, Cell, LatencyRow, MembersRow};
use raidlab_study::Value;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::error::SweepError;

/// What a cell of a sweep gave, or why it gave nothing; as a line of JSON, its keys in this order.
#[derive(Clone, Debug, Serialize)]
pub struct Row<'a> {
    /// The address of the cell; empty where the point is no study.
    pub cell: String,
    /// The point of the sweep, from 0.
    pub point: u64,
    /// Which of the point's cells, from 0.
    pub part: u32,
    /// How many cells the point has.
    pub parts: u32,
    /// What the sweep set.
    #[serde(serialize_with = "map")]
    pub keys: &'a [(String, Value)],
    /// Those of them that are of another layout's, so that they change nothing of this cell; absent where there are
    /// none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub of_others: Vec<&'a str>,
    /// The layout.
    pub layout: Option<&'a str>,
    /// The workload.
    pub workload: Option<&'a str>,
    /// How many processes; 0 for a rebuild alone.
    pub processes: Option<u32>,
    /// The state of the array.
    pub state: Option<&'a str>,
    /// What tells the workload from others of its name; absent where it has no settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<&'a BTreeMap<String, String>>,
    /// The seed of the point's study.
    pub seed: Option<u64>,
    /// How often it was run.
    pub rounds: Option<u32>,
    /// Usable bytes of the layout.
    pub capacity: Option<u64>,
    /// The lost members that it survives, whichever they are.
    pub survives: Option<u16>,
    /// The workload's own figure first.
    pub metrics: Vec<Figure>,
    /// Latencies, as in results.
    pub latency_ms: Option<LatencyRow>,
    /// What the members did, as in results.
    pub members: Option<MembersRow>,
    /// The busiest resource.
    pub bottleneck: Option<Bottleneck>,
    /// What a reader must know.
    pub note: Option<String>,
    /// Why there are no figures.
    pub error: Option<String>,
}

/// A figure of a cell, with the names of the results document.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    metric: String,
    unit: String,
    better: raidlab_results::Better,
    samples: Vec<f64>,
    median: f64,
    ci95: Option<[f64; 2]>,
    /// The kernel's figure lies in it 90 of 100 times; null where the model was not checked.
    interval90: Option<[f64; 2]>,
}

fn map<S: Serializer>(keys: &[(String, Value)], to: S) -> Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(Some(keys.len()))?;
    for (key, value) in keys {
        map.serialize_entry(key, value)?;
    }
    map.end()
}

impl<'a> Row<'a> {
    /// Without figures, for a reason.
    pub(crate) fn failed(
        point: u64,
        place: (u32, u32),
        keys: &'a [(String, Value)],
        why: String,
    ) -> Self {
        Self {
            cell: String::new(),
            point,
            part: place.0,
            parts: place.1,
            keys,
            of_others: Vec::new(),
            layout: None,
            workload: None,
            processes: None,
            state: None,
            settings: None,
            seed: None,
            rounds: None,
            capacity: None,
            survives: None,
            metrics: Vec::new(),
            latency_ms: None,
            members: None,
            bottleneck: None,
            note: None,
            error: Some(why),
        }
    }

    /// Takes over what a cell shows.
    pub(crate) fn measured(&mut self, cells: Vec<Cell>, capacity: Option<Sectors>) {
        self.capacity = capacity.map(Sectors::bytes);
        for cell in cells {
            if self.metrics.is_empty() {
                self.latency_ms = cell.latency_ms;
                self.members = cell.members;
                self.bottleneck = cell.bottleneck;
                self.note = cell.note;
            }
            self.metrics.push(Figure {
                metric: cell.metric,
                unit: cell.unit,
                better: cell.better,
                samples: cell.samples,
                median: cell.median,
                ci95: cell.ci95,
                interval90: cell.trust.and_then(|trust| trust.interval90),
            });
        }
        self.error = self.metrics.is_empty().then(|| "nothing was measured".to_owned());
    }

    /// As a line with its newline.
    ///
    /// # Errors
    /// When a figure is no number.
    pub(crate) fn line(&self) -> Result<Vec<u8>, SweepError> {
        let figures = self.metrics.iter().flat_map(|figure| &figure.samples);
        if let Some(wrong) = figures.into_iter().find(|value| !value.is_finite()) {
            return Err(SweepError::Other(format!("the figure {wrong} is no number")));
        }
        let mut line =
            serde_json::to_vec(self).map_err(|error| SweepError::Other(error.to_string()))?;
        line.push(b'\n');
        Ok(line)
    }
}

/// A row as it is read again, as far as tables and reports need it.
#[derive(Clone, Debug, serde::Deserialize)]
pub(crate) struct ReadRow {
    pub(crate) cell: String,
    pub(crate) point: u64,
    pub(crate) keys: BTreeMap<String, serde_json::Value>,
    #[serde(default)]
    pub(crate) of_others: Vec<String>,
    pub(crate) layout: Option<String>,
    pub(crate) workload: Option<String>,
    pub(crate) processes: Option<u32>,
    pub(crate) state: Option<String>,
    #[serde(default)]
    pub(crate) settings: BTreeMap<String, String>,
    pub(crate) seed: Option<u64>,
    pub(crate) rounds: Option<u32>,
    pub(crate) capacity: Option<u64>,
    pub(crate) survives: Option<u16>,
    pub(crate) metrics: Vec<ReadFigure>,
    pub(crate) latency_ms: Option<LatencyRow>,
    pub(crate) members: Option<MembersRow>,
    pub(crate) bottleneck: Option<Bottleneck>,
    pub(crate) note: Option<String>,
    pub(crate) error: Option<String>,
}

/// A figure of it.
#[derive(Clone, Debug, serde::Deserialize)]
pub(crate) struct ReadFigure {
    pub(crate) metric: String,
    pub(crate) unit: String,
    pub(crate) better: raidlab_results::Better,
    pub(crate) median: f64,
    pub(crate) ci95: Option<[f64; 2]>,
    pub(crate) interval90: Option<[f64; 2]>,
}

impl ReadRow {
    pub(crate) fn parse(line: &[u8]) -> Result<Self, SweepError> {
        serde_json::from_slice(line).map_err(|error| {
            SweepError::Other(format!("a row is not as this version writes them: {error}"))
        })
    }

    /// The settings of its workload in words; empty where there are none.
    pub(crate) fn settings(&self) -> String {
        let each = self.settings.iter().map(|(key, value)| format!("{key}={value}"));
        each.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A figure that is no number would come back as nothing: its row is not written.
    #[test]
    fn a_figure_that_is_no_number_is_refused() {
        let cell = |sample: f64| {
            let text = r#"{"layout": "l", "workload": "w", "processes": 1, "state": "healthy", "metric": "iops",
                "better": "higher", "unit": "1/s", "samples": [1.0, 2.0], "median": 1.5, "mean": 1.5, "settings": {},
                "first_done_s": 1.0, "last_done_s": 1.0, "note": "so it is"}"#;
            let mut cell: Cell = serde_json::from_str(text).expect("a cell");
            cell.samples[1] = sample;
            cell
        };
        let row = |cells: Vec<Cell>| {
            let mut row = Row::failed(0, (0, 1), &[], String::new());
            row.measured(cells, Some(Sectors(3)));
            row
        };
        let good = row(vec![cell(2.0)]);
        assert!(good.line().is_ok_and(|line| line.ends_with(b"\n")));
        assert_eq!(
            (good.capacity, good.note.as_deref(), &good.error),
            (Some(1_536), Some("so it is"), &None)
        );
        for sample in [f64::NAN, f64::INFINITY] {
            let error =
                row(vec![cell(2.0), cell(sample)]).line().expect_err("no number").to_string();
            assert!(error.contains("is no number"), "{error}");
        }
        assert_eq!(row(Vec::new()).error.as_deref(), Some("nothing was measured"));
    }
}
