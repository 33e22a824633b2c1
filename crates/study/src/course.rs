//! What of the rounds of a cell figures show: finish times, latencies, what was busy, a round over its time.

use std::collections::BTreeMap;

use raidlab_results::statistics::median;
use raidlab_results::{Bottleneck, TimelineRow};
use raidlab_workload::{TimeBin, TimeSeries};

use crate::run::Sample;

/// What figures show of a cell; empty where not every round tells.
#[derive(Debug, Default)]
pub(crate) struct Course {
    pub(crate) done_s: Vec<f64>,
    pub(crate) latency_curve_ms: Vec<f64>,
    pub(crate) busy: Vec<Bottleneck>,
    pub(crate) timeline: Option<TimelineRow>,
}

impl Course {
    /// Of the rounds of a cell, whose values are given in the same order and have this unit.
    pub(crate) fn of(own: &[Sample], values: &[f64], unit: &str) -> Self {
        let ends = medians(own, |sample| &sample.detail.ends, 1e-9);
        Self {
            done_s: if ends.len() > 1 { ends } else { Vec::new() },
            latency_curve_ms: medians(own, |sample| &sample.detail.latencies, 1e-6),
            busy: busy(own),
            timeline: timeline(own, values, unit),
        }
    }
}

/// The medians over the rounds of a list that is equally long in all.
fn medians(own: &[Sample], list: impl Fn(&Sample) -> &Vec<u64>, unit: f64) -> Vec<f64> {
    let length = own.first().map_or(0, |sample| list(sample).len());
    if own.iter().any(|sample| list(sample).len() != length) {
        return Vec::new();
    }
    let at = |at: usize| {
        let values: Vec<f64> = own.iter().map(|sample| list(sample)[at] as f64 * unit).collect();
        median(&values).map(rounded)
    };
    (0..length).filter_map(at).collect()
}

/// The resources in the order of the first round.
fn busy(own: &[Sample]) -> Vec<Bottleneck> {
    let mut shares: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (resource, share) in own.iter().flat_map(|sample| &sample.detail.busy) {
        shares.entry(resource).or_default().push(*share);
    }
    let first = own.first().map(|sample| sample.detail.busy.as_slice()).unwrap_or_default();
    let row = |(resource, _): &(String, f64)| {
        let busy = median(shares.get(resource.as_str())?).map(rounded)?;
        Some(Bottleneck { resource: resource.clone(), busy })
    };
    first.iter().filter_map(row).collect()
}

/// The round in the middle over its time.
fn timeline(own: &[Sample], values: &[f64], unit: &str) -> Option<TimelineRow> {
    let mut order: Vec<usize> = (0..own.len().min(values.len())).collect();
    order.sort_by(|one, other| values[*one].total_cmp(&values[*other]).then(one.cmp(other)));
    let round = *order.get(order.len().checked_sub(1)? / 2)?;
    Some(row(round as u32 + 1, &own[round], own[round].detail.series.as_ref()?, unit))
}

fn row(round: u32, sample: &Sample, series: &TimeSeries, unit: &str) -> TimelineRow {
    let width = series.width().as_secs();
    let bins = series.bins();
    let in_bytes = unit != "1/s" && bins.iter().any(|bin| bin.bytes > 0);
    // The run ended within the last bin.
    let last = sample.last_done.as_secs() - width * bins.len().saturating_sub(1) as f64;
    let last = if last > 0.0 && last < width { last } else { width };
    let rate = |(at, bin): (usize, &TimeBin)| {
        let width = if at + 1 == bins.len() { last } else { width };
        let done = if in_bytes { bin.bytes as f64 / f64::from(1 << 20) } else { bin.count as f64 };
        rounded(done / width)
    };
    let millis = |seconds: f64| rounded(seconds * 1e3);
    let mean =
        |bin: &TimeBin| (bin.count > 0).then(|| millis(bin.took.as_secs() / bin.count as f64));
    let longest = |bin: &TimeBin| (bin.count > 0).then(|| millis(bin.longest.as_secs()));
    let is_rebuilt = bins.iter().any(|bin| bin.rebuilt.is_some());
    let rebuilt = |bin: &TimeBin| bin.rebuilt.map(|millionths| f64::from(millionths) / 1e4);
    TimelineRow {
        round,
        bin_s: width,
        unit: if in_bytes { "MiB/s" } else { "1/s" }.to_string(),
        rate: bins.iter().enumerate().map(rate).collect(),
        mean_ms: bins.iter().map(mean).collect(),
        max_ms: bins.iter().map(longest).collect(),
        rebuilt_percent: if is_rebuilt { bins.iter().map(rebuilt).collect() } else { Vec::new() },
    }
}

/// To four significant digits, which are more than a figure can show.
fn rounded(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}
