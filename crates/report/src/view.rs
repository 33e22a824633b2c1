//! The document arranged as every report shows it: sections of rows of cells, checked once.

use std::collections::{BTreeMap, BTreeSet};

use raidlab_results::comparison::fewest_rounds;
use raidlab_results::document::{Better, Cell, Results, SCHEMA_VERSION, TooShort, WorkloadRow};
use raidlab_results::find::{REBUILD, row_metric};

use crate::{ReportError, ReportErrorKind, number};

/// Rounds below which no distribution-free interval of the median with 95 % coverage exists.
pub(crate) const ROUNDS_FOR_INTERVAL: usize = 6;

/// A document whose cells are all accounted for.
pub(crate) struct View<'a> {
    pub(crate) results: &'a Results,
    pub(crate) sections: Vec<Section<'a>>,
}

/// What one workload measured, in one metric.
pub(crate) struct Section<'a> {
    pub(crate) workload: &'a WorkloadRow,
    /// As it is printed: `IOPS` for operations a second.
    pub(crate) unit: &'a str,
    pub(crate) better: Better,
    /// The workload's name, and the metric's where the workload has several.
    pub(crate) title: String,
    pub(crate) rows: Vec<Row<'a>>,
}

/// The cells that are compared with each other, one for each layout.
pub(crate) struct Row<'a> {
    pub(crate) processes: u32,
    pub(crate) state: &'a str,
    pub(crate) settings: &'a BTreeMap<String, String>,
    /// In the order of the document's layouts; `None` where a layout was not measured.
    pub(crate) cells: Vec<Option<&'a Cell>>,
    /// The layouts that were run, but too shortly to tell.
    pub(crate) too_short: BTreeMap<usize, &'a TooShort>,
    /// The layout with the best median.
    pub(crate) best: usize,
    /// What the rounds show of who is best.
    pub(crate) lead: Lead,
    /// The mean of the baseline's medians, when all of them were measured.
    pub(crate) baseline: Option<f64>,
}

/// How a layout is marked in its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The best, or as good.
    Best,
    /// Nobody is shown to be better.
    MayBe,
    None,
}

/// What the rounds show of who is best in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lead {
    /// Rounds are too few for a verdict: the layout with the best median.
    Preliminary(usize),
    /// No other may be the best, or be as good.
    Winner(usize),
    /// Several layouts are as good as the best within the floor; of others that is not shown, but they may be the best.
    Shared { good: Vec<usize>, open: Vec<usize> },
    /// These may be the best, and of none is it shown that it is as good; none where that of no layout is said.
    Open(Vec<usize>),
    /// All are as good as the best.
    Alike,
    /// Some of it was over before what goes on beside a rebuild had settled: nothing is compared.
    Unsettled,
}

/// What tells rows apart within a section.
type RowKey<'a> = (u32, &'a str, &'a BTreeMap<String, String>);

impl<'a> View<'a> {
    /// Arranges the document.
    pub(crate) fn new(results: &'a Results) -> Result<Self, ReportError> {
        check(results)?;
        let sections: Vec<_> =
            results.workloads.iter().flat_map(|workload| sections_of(results, workload)).collect();
        Ok(Self { results, sections })
    }

    /// Every measured cell in the order of the report.
    pub(crate) fn cells(&self) -> impl Iterator<Item = &'a Cell> + '_ {
        self.sections
            .iter()
            .flat_map(|section| &section.rows)
            .flat_map(|row| row.cells.iter().copied().flatten())
    }

    /// Where each cell stands in the document.
    pub(crate) fn places(&self) -> BTreeMap<*const Cell, usize> {
        let cells = self.results.cells.iter().enumerate();
        cells.map(|(at, cell)| (std::ptr::from_ref(cell), at)).collect()
    }

    /// Where a cell stands, in words: `random reads, latency that 99 % of requests stay within, with 1 process`.
    pub(crate) fn place(&self, cell: &Cell) -> String {
        let rows = self.sections.iter().flat_map(|one| one.rows.iter().map(move |row| (one, row)));
        let holds = |(_, row): &(&Section<'_>, &Row<'_>)| {
            row.cells.iter().flatten().any(|one| std::ptr::eq(*one, cell))
        };
        match rows.into_iter().find(holds) {
            Some((section, row)) if section.title == section.workload.name => {
                format!("{} with {}", section.title, row.label())
            }
            Some((section, row)) => format!("{}, with {}", section.title, row.label()),
            None => cell.title(),
        }
    }

    /// How many further figures of workloads the document has besides what is shown; in words.
    pub(crate) fn more(&self) -> Option<String> {
        let details = self.results.cells.iter().filter(|cell| cell.detail);
        let metrics: BTreeSet<_> = details.map(|cell| (&cell.workload, &cell.metric)).collect();
        (!metrics.is_empty()).then(|| {
            format!("{} further figures of the workloads are in the results as JSON", metrics.len())
        })
    }

    /// The baseline in words: `single`, `the mean of disk1 and disk2`.
    pub(crate) fn baseline(&self) -> String {
        match self.results.baseline.as_slice() {
            [] => "none".to_owned(),
            [one] => one.clone(),
            several => format!("the mean of {}", number::listed(several)),
        }
    }

    /// How many rounds the cells have: `6`, `6 to 12`.
    pub(crate) fn rounds(&self) -> String {
        let counts: BTreeSet<_> = self.cells().map(|cell| cell.samples.len()).collect();
        match (counts.first(), counts.last()) {
            (Some(low), Some(high)) if low < high => {
                format!("{low} to {high}")
            }
            (_, Some(high)) => high.to_string(),
            _ => "none".to_owned(),
        }
    }

    pub(crate) fn is_baseline(&self, layout: usize) -> bool {
        self.results.baseline.contains(&self.results.layouts[layout].name)
    }
}

impl Section<'_> {
    /// `MiB/s, higher is better`.
    pub(crate) fn direction(&self) -> String {
        let way = match self.better {
            Better::Higher => "higher is better",
            Better::Lower => "lower is better",
        };
        if self.unit.is_empty() { way.to_owned() } else { format!("{}, {way}", self.unit) }
    }
}

impl Row<'_> {
    /// What tells the row from its neighbours: `4 processes, degraded, block=64KiB`.
    pub(crate) fn label(&self) -> String {
        let mut label = number::processes(self.processes);
        for part in self.qualifiers() {
            label.push_str(", ");
            label.push_str(&part);
        }
        label
    }

    /// The state when it is not healthy, and the settings that vary.
    pub(crate) fn qualifiers(&self) -> Vec<String> {
        let state = (self.state != "healthy").then(|| self.state.to_owned());
        let settings = self.settings.iter().map(|(key, value)| format!("{key}={value}"));
        state.into_iter().chain(settings).collect()
    }

    /// How a layout is marked.
    pub(crate) fn mark(&self, layout: usize) -> Mark {
        match &self.lead {
            // Who is best among what is partly unknown, nobody knows.
            _ if !self.has_best() => Mark::None,
            Lead::Preliminary(best) | Lead::Winner(best) if *best == layout => Mark::Best,
            Lead::Shared { good, .. } if good.contains(&layout) => Mark::Best,
            Lead::Shared { open, .. } | Lead::Open(open) if open.contains(&layout) => Mark::MayBe,
            _ => Mark::None,
        }
    }

    /// Rounds are too few for any verdict.
    pub(crate) fn is_preliminary(&self) -> bool {
        matches!(self.lead, Lead::Preliminary(_))
    }

    /// Of a cell it is not known how long its rebuild takes.
    pub(crate) fn has_unknown(&self) -> bool {
        self.cells.iter().flatten().any(|cell| cell.tells_too_little())
    }

    /// A cell was over before what goes on beside its rebuild had settled, so that none of the row is compared.
    pub(crate) fn has_unsettled(&self) -> bool {
        self.lead == Lead::Unsettled
    }

    /// Whether anything can be said of who is best: not where a layout may be better than all that are known, nor
    /// where nothing has settled.
    pub(crate) fn has_best(&self) -> bool {
        !self.has_unknown() && !self.has_unsettled() && self.too_short.is_empty()
    }

    /// How many layouts were measured.
    pub(crate) fn measured(&self) -> usize {
        self.cells.iter().flatten().count()
    }

    /// The layout that sentences are about: who wins by the rounds, whatever the medians are, or else the one with the
    /// best median.
    pub(crate) fn leader(&self) -> usize {
        if let Lead::Winner(at) = self.lead { at } else { self.best }
    }

    /// The cell with the best median.
    pub(crate) fn best_cell(&self) -> Option<&Cell> {
        self.cells[self.best]
    }
}

/// The smallest and the largest sample.
pub(crate) fn extent(cell: &Cell) -> (f64, f64) {
    let first = cell.samples.first().copied().unwrap_or(cell.median);
    cell.samples.iter().fold((first, first), |(low, high), &sample| {
        (if sample < low { sample } else { low }, if sample > high { sample } else { high })
    })
}

/// Half of largest minus smallest sample, in percent of the median; `None` for a single sample.
pub(crate) fn half_range(cell: &Cell) -> Option<f64> {
    let (low, high) = extent(cell);
    let size = if cell.median < 0.0 { -cell.median } else { cell.median };
    (cell.samples.len() > 1 && size > 0.0).then(|| (high - low) / 2.0 / size * 100.0)
}

fn sections_of<'a>(results: &'a Results, workload: &'a WorkloadRow) -> Vec<Section<'a>> {
    let own: Vec<&Cell> = results
        .cells
        .iter()
        .filter(|cell| cell.workload == workload.name && !cell.detail)
        .collect();
    let key = |cell: &'a Cell| (row_metric(&cell.metric), cell.unit.as_str(), cell.better);
    let mut metrics: Vec<(&str, &str, Better)> = Vec::new();
    for cell in &own {
        let metric = key(cell);
        if !metrics.contains(&metric) {
            metrics.push(metric);
        }
    }
    let rates = metrics.iter().filter(|(metric, ..)| is_rate(metric)).count();
    let several = metrics.len() > 1;
    metrics
        .into_iter()
        .map(|(metric, unit, better)| {
            let mine = || own.iter().copied().filter(|cell| key(cell) == (metric, unit, better));
            let title = match what(metric, mine()) {
                _ if is_rate(metric) && rates == 1 => workload.name.clone(),
                _ if is_rate(metric) => format!("{}, {metric}", workload.name),
                Some(what) => format!("{}, {what}", workload.name),
                None if several => format!("{}, {metric}", workload.name),
                None => workload.name.clone(),
            };
            let unit = self::unit(metric, unit);
            let mut rows = rows_of(results, mine(), better);
            for row in &mut rows {
                row.too_short = too_short(results, workload, metric, row);
            }
            Section { workload, unit, better, title, rows }
        })
        .collect()
}

/// The layouts of a row that were run too shortly to tell.
fn too_short<'a>(
    results: &'a Results,
    workload: &WorkloadRow,
    metric: &str,
    row: &Row<'_>,
) -> BTreeMap<usize, &'a TooShort> {
    let is_here = |one: &&TooShort| {
        (&one.workload, row_metric(&one.metric)) == (&workload.name, metric)
            && (one.processes, one.state.as_str()) == (row.processes, row.state)
            && one.settings == *row.settings
    };
    let place = |one: &'a TooShort| {
        let at = results.layouts.iter().position(|layout| layout.name == one.layout)?;
        row.cells[at].is_none().then_some((at, one))
    };
    results.too_short.iter().filter(is_here).filter_map(place).collect()
}

/// A unit as it is printed: `IOPS` for operations a second.
pub(crate) fn unit<'a>(metric: &str, unit: &'a str) -> &'a str {
    if (metric, unit) == ("iops", "1/s") { "IOPS" } else { unit }
}

/// Whether it is a rate that a workload is about.
fn is_rate(metric: &str) -> bool {
    matches!(metric, "mib_per_s" | "iops")
}

/// What a metric is, in words.
fn what<'a>(metric: &str, mut cells: impl Iterator<Item = &'a Cell>) -> Option<&'static str> {
    match metric {
        "p99_ms" => Some("latency that 99 % of requests stay within"),
        REBUILD => {
            let first = cells.next().is_some_and(|cell| cell.metric == REBUILD);
            let mixed = cells.any(|cell| (cell.metric == REBUILD) != first);
            Some(match (first, mixed) {
                (_, true) => "time of the whole rebuild, some estimated",
                (true, _) => "time of the whole rebuild",
                (false, _) => "time of the whole rebuild, estimated",
            })
        }
        _ => None,
    }
}

fn rows_of<'a>(
    results: &'a Results,
    cells: impl Iterator<Item = &'a Cell>,
    better: Better,
) -> Vec<Row<'a>> {
    let mut found: Vec<(RowKey<'a>, Vec<Option<&'a Cell>>)> = Vec::new();
    let mut settings: Vec<&BTreeMap<String, String>> = Vec::new();
    let mut states = vec!["healthy", "degraded", "rebuilding"];
    for cell in cells {
        let key = (cell.processes, cell.state.as_str(), &cell.settings);
        let at = found.iter().position(|(one, _)| *one == key).unwrap_or_else(|| {
            found.push((key, vec![None; results.layouts.len()]));
            found.len() - 1
        });
        if let Some(layout) = results.layouts.iter().position(|one| one.name == cell.layout) {
            found[at].1[layout] = Some(cell);
        }
        if !settings.contains(&&cell.settings) {
            settings.push(&cell.settings);
        }
        if !states.contains(&cell.state.as_str()) {
            states.push(&cell.state);
        }
    }
    // Settings and unknown states in the study's order, which their names need not sort into.
    found.sort_by_key(|((processes, state, own), _)| {
        (
            settings.iter().position(|one| one == own),
            states.iter().position(|one| one == state),
            *processes,
        )
    });
    found.into_iter().map(|(key, cells)| row(results, key, cells, better)).collect()
}

fn row<'a>(
    results: &Results,
    (processes, state, settings): RowKey<'a>,
    cells: Vec<Option<&'a Cell>>,
    better: Better,
) -> Row<'a> {
    let mut best: Option<(usize, &Cell)> = None;
    for (at, cell) in cells.iter().enumerate() {
        let Some(cell) = cell else { continue };
        let beats = best.is_none_or(|(_, leader)| match better {
            Better::Higher => cell.median > leader.median,
            Better::Lower => cell.median < leader.median,
        });
        if beats {
            best = Some((at, cell));
        }
    }
    let best = best.map_or(0, |(at, _)| at);
    let lead = lead(&cells, best);
    let medians: Option<Vec<f64>> = results
        .baseline
        .iter()
        .map(|name| {
            let at = results.layouts.iter().position(|layout| layout.name == *name)?;
            cells[at].map(|cell| cell.median)
        })
        .collect();
    let baseline =
        medians.filter(|all| !all.is_empty()).map(|all| all.iter().sum::<f64>() / all.len() as f64);
    Row { processes, state, settings, cells, too_short: BTreeMap::new(), best, lead, baseline }
}

/// Who is best, by what the cells say.
fn lead(cells: &[Option<&Cell>], best: usize) -> Lead {
    let of = |wanted: &dyn Fn(&Cell) -> bool| -> Vec<usize> {
        (0..cells.len()).filter(|at| cells[*at].is_some_and(wanted)).collect()
    };
    let all = of(&|_| true);
    if !of(&|cell| cell.unsettled).is_empty() {
        return Lead::Unsettled;
    }
    let rounds = cells.iter().flatten().map(|cell| cell.samples.len()).min().unwrap_or(0);
    let needed = fewest_rounds(all.len().saturating_sub(1)).max(ROUNDS_FOR_INTERVAL as u32);
    if rounds < needed as usize {
        return Lead::Preliminary(best);
    }
    let (good, candidates) = (of(&|cell| cell.as_good_as_best), of(&|cell| cell.may_be_best));
    match (good.as_slice(), candidates.as_slice()) {
        (good, _) if good.len() == all.len() && all.len() > 1 => Lead::Alike,
        // Who is best of the study is not in the document.
        ([], []) => Lead::Open(Vec::new()),
        ([], [one]) => Lead::Winner(*one),
        ([one], candidates) if candidates.iter().all(|at| at == one) => Lead::Winner(*one),
        ([], _) => Lead::Open(candidates),
        _ => {
            let open = candidates.into_iter().filter(|at| !good.contains(at)).collect();
            Lead::Shared { good, open }
        }
    }
}

fn check(results: &Results) -> Result<(), ReportError> {
    let wrong = |kind, context: String| Err(ReportError::new(kind, context));
    if results.schema_version != SCHEMA_VERSION {
        let found = results.schema_version;
        return wrong(
            ReportErrorKind::SchemaVersion,
            format!("schema_version is {found}, this raidlab reads {SCHEMA_VERSION}"),
        );
    }
    let names: Vec<&str> = results.layouts.iter().map(|layout| layout.name.as_str()).collect();
    let listed = number::listed(&names);
    if let Some(name) = results.baseline.iter().find(|name| !names.contains(&name.as_str())) {
        return wrong(
            ReportErrorKind::UnknownLayout,
            format!("baseline names the layout `{name}`; the document lists {listed}"),
        );
    }
    let workloads: Vec<&str> = results.workloads.iter().map(|one| one.name.as_str()).collect();
    let mut seen = BTreeSet::new();
    for (at, cell) in results.cells.iter().enumerate() {
        let place = place(at, cell);
        if !names.contains(&cell.layout.as_str()) {
            return wrong(
                ReportErrorKind::UnknownLayout,
                format!("{place} names the layout `{}`; the document lists {listed}", cell.layout),
            );
        }
        if !workloads.contains(&cell.workload.as_str()) {
            let (name, listed) = (&cell.workload, number::listed(&workloads));
            return wrong(
                ReportErrorKind::UnknownWorkload,
                format!("{place} names the workload `{name}`; the document lists {listed}"),
            );
        }
        if cell.samples.is_empty() {
            return wrong(
                ReportErrorKind::NoSamples,
                format!("{place} has no samples; leave out cells that were not measured"),
            );
        }
        let named = (&cell.layout, &cell.workload, row_metric(&cell.metric));
        if !seen.insert((named, cell.processes, &cell.state, &cell.settings)) {
            return wrong(
                ReportErrorKind::DuplicateCell,
                format!("{place} stands there twice; a cell has all its rounds in `samples`"),
            );
        }
    }
    Ok(results.check_finite()?)
}

/// Where a cell stands in the document, and what it is.
fn place(at: usize, cell: &Cell) -> String {
    let Cell { layout, workload, processes, state, .. } = cell;
    format!("cells[{at}] ({layout}, {workload}, processes {processes}, {state})")
}
