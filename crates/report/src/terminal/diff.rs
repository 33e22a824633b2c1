//! Two documents against each other: what else differs, the cells that moved, how many did not.

use raidlab_results::diff::{CellDiff, CellName, Change, Diff, DiffKind, FALSE_SHARE, Side};
use raidlab_results::{Better, Clock, Origin};

use super::text::{self, Line, Span, Style};
use super::{Page, Terminal};
use crate::number::{self, counted};
use crate::shown;

/// Cells that are named of those that nothing is shown of, and of those that only one document has.
const MOST_NAMED: usize = 12;

impl Terminal {
    /// What two documents tell of each other: cells that moved, the largest effect first; of a modelled run beside a
    /// measured one every cell with what the model is off.
    pub fn diff(&self, diff: &Diff) -> String {
        let mut page = Page { terminal: *self, lines: Vec::new() };
        page.diff_sides(diff);
        for warning in &diff.warnings {
            page.hanging(vec![Span::new("warning: ", Style::Warning)], warning, Style::Plain);
        }
        match diff.kind {
            DiffKind::Change => page.changes(diff),
            DiffKind::Residual => page.residuals(diff),
        }
        page.missing(&diff.before, &diff.only_before);
        page.missing(&diff.after, &diff.only_after);
        page.diff_conclusion(diff);
        page.painted()
    }
}

/// A row of a table: the cell, and what stands in the columns.
type Row = (Line, Vec<Span>);

impl Page {
    fn diff_sides(&mut self, diff: &Diff) {
        self.heading(heading(diff));
        for (title, side) in [("before", &diff.before), ("after", &diff.after)] {
            let title = side_title(diff.kind, title, side.origin);
            let clock = match side.clock {
                Clock::Virtual => "virtual time",
                Clock::Real => "real time",
            };
            let studies = side.studies.join("; ");
            self.setting(title, &format!("{}: {studies}, {clock}", side.name));
        }
        if diff.kind == DiffKind::Change && !diff.cells.is_empty() {
            self.setting("compared", paired(diff));
        }
        let none = || "none".to_owned();
        for (at, one) in diff.setup.iter().enumerate() {
            let (before, after) = (one.before.clone(), one.after.clone());
            let (before, after) = (before.unwrap_or_else(none), after.unwrap_or_else(none));
            let what = format!("{}: {before} -> {after}", one.what);
            self.setting(if at == 0 { "differs" } else { "" }, &what);
        }
        self.gap();
    }

    fn changes(&mut self, diff: &Diff) {
        let of = |wanted: &[Change]| -> Vec<&CellDiff> {
            let is = |cell: &&CellDiff| cell.verdict.is_some_and(|one| wanted.contains(&one));
            diff.cells.iter().filter(is).collect()
        };
        let moved = of(&[Change::Regressed, Change::Improved]);
        if !moved.is_empty() {
            self.heading("Moved by more than the floor, the largest effect first");
            self.diff_table(&moved, diff);
        }
        let open = of(&[Change::NotResolved]);
        if !open.is_empty() {
            self.heading("Not resolved: neither a change nor equality is shown");
            self.diff_table(&open[..open.len().min(MOST_NAMED)], diff);
            self.and_more(open.len());
        }
        let (equal, unchanged) = (diff.counts.equal, diff.counts.unchanged);
        self.gap();
        if equal > 0 {
            let what =
                format!("{}: shown to differ by less than the floor", counted(equal, "cell"));
            self.hanging(vec![Span::new("  equal:     ", Style::Plain)], &what, Style::Dim);
        }
        if unchanged > 0 {
            let what = format!("{}: every round to the last bit", counted(unchanged, "cell"));
            self.hanging(vec![Span::new("  unchanged: ", Style::Plain)], &what, Style::Dim);
        }
    }

    fn residuals(&mut self, diff: &Diff) {
        if !diff.cells.is_empty() {
            self.gap();
            self.diff_table(&diff.cells.iter().collect::<Vec<_>>(), diff);
            self.gap();
        }
    }

    /// How many are not named.
    fn and_more(&mut self, count: usize) {
        if count > MOST_NAMED {
            let more = format!("and {} more, all in the JSON", count - MOST_NAMED);
            self.hanging(vec![Span::blank(2)], &more, Style::Dim);
        }
    }

    fn diff_table(&mut self, cells: &[&CellDiff], diff: &Diff) {
        let terminal = self.terminal;
        let heads: Vec<Span> =
            heads(diff).into_iter().map(|head| Span::new(head, Style::Dim)).collect();
        let mut rows: Vec<Row> = vec![(vec![Span::new("  cell", Style::Dim)], heads)];
        rows.extend(cells.iter().map(|cell| row(cell, diff.kind, terminal)));
        let columns = rows[0].1.len();
        let width =
            |at: usize| rows.iter().map(|(_, row)| text::width(&row[at].text)).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let figures: usize = widths.iter().map(|width| 2 + width).sum();
        let names = rows.iter().map(|(name, _)| text::line_width(name)).max().unwrap_or(0);
        // Where both do not fit beside each other, figures stand below their cell.
        let below = terminal.width.is_some_and(|width| names + figures > usize::from(width));
        for (mut line, spans) in rows {
            let taken = if below { 2 } else { text::line_width(&line) };
            if below {
                self.lines.push(std::mem::replace(&mut line, vec![Span::blank(2)]));
            }
            line.push(Span::blank(if below { 0 } else { names - taken }));
            for (span, width) in spans.into_iter().zip(&widths) {
                line.push(Span::blank(2 + width - text::width(&span.text)));
                line.push(span);
            }
            self.lines.push(line);
        }
    }

    fn missing(&mut self, side: &Side, names: &[CellName]) {
        if names.is_empty() {
            return;
        }
        self.heading(&format!("{} only in {}", counted(names.len(), "cell"), side.name));
        for name in names.iter().take(MOST_NAMED) {
            self.hanging(vec![Span::blank(2)], &title(name), Style::Plain);
        }
        self.and_more(names.len());
    }

    fn diff_conclusion(&mut self, diff: &Diff) {
        self.gap();
        self.hanging(Vec::new(), &conclusion(diff), Style::Bold);
    }
}

/// What the comparison is about.
pub(crate) const fn heading(diff: &Diff) -> &'static str {
    match (diff.kind, diff.before.origin, diff.after.origin) {
        (DiffKind::Change, ..) => "What changed",
        (DiffKind::Residual, Origin::Kernel, _) => "Modelled beside the kernel",
        (DiffKind::Residual, _, Origin::Kernel) => "A kernel on modelled drives beside measured",
        (DiffKind::Residual, ..) => "Modelled beside measured",
    }
}

/// What a side is: of changes `title`.
pub(crate) const fn side_title(
    kind: DiffKind,
    title: &'static str,
    origin: Origin,
) -> &'static str {
    match (kind, origin) {
        (DiffKind::Change, _) => title,
        (DiffKind::Residual, Origin::Measured) => "measured",
        (DiffKind::Residual, Origin::Kernel) => "kernel",
        (DiffKind::Residual, Origin::Modelled) => "modelled",
    }
}

/// The heads of the columns.
pub(crate) fn heads(diff: &Diff) -> Vec<&'static str> {
    let sides = [("before", &diff.before), ("after", &diff.after)];
    let mut heads = sides.map(|(title, side)| side_title(diff.kind, title, side.origin)).to_vec();
    heads.extend(match diff.kind {
        DiffKind::Change => &["change", "interval", "chance", ""][..],
        DiffKind::Residual => &["off", "interval"],
    });
    heads
}

/// What it comes to.
pub(crate) fn conclusion(diff: &Diff) -> String {
    let counts = diff.counts;
    match (diff.kind, diff.median_residual_percent) {
        (DiffKind::Residual, Some(median)) => format!(
            "{} is {} off in the median of {} (absolute residual).",
            if diff.after.origin == Origin::Kernel { "The kernel" } else { "The model" },
            number::percent(median).trim_start_matches('+'),
            counted(diff.cells.len(), "cell"),
        ),
        (DiffKind::Residual, None) => "No cell is in both.".to_owned(),
        (DiffKind::Change, _) => format!(
            "Of {} {} regressed, {} improved, {} equal, {} unchanged, {} not resolved. Of those called, \
             {:.0}{}% are false on average, at most.",
            counted(diff.cells.len(), "cell"),
            counts.regressed,
            counts.improved,
            counts.equal,
            counts.unchanged,
            counts.not_resolved,
            FALSE_SHARE * 100.0,
            number::NO_BREAK,
        ),
    }
}

/// How cells are compared.
fn paired(diff: &Diff) -> &'static str {
    let pairs = diff.cells.iter().filter(|cell| cell.paired).count();
    if pairs == diff.cells.len() {
        "round by round: one seed, modelled"
    } else if pairs > 0 {
        "round by round where both met the same draws, else as two runs apart"
    } else {
        "as two runs apart: their rounds share nothing but the work"
    }
}

fn row(cell: &CellDiff, kind: DiffKind, terminal: Terminal) -> Row {
    let way = match cell.better {
        Better::Higher => "",
        Better::Lower => ", lower is better",
    };
    let is_rebuild = shown::is_rebuild(&cell.name.metric);
    let name = match is_rebuild {
        true => format!("  {} (shorter is better)", title(&cell.name)),
        false => format!("  {} ({}{way})", title(&cell.name), cell.name.unit),
    };
    let name = vec![terminal.span(&name, Style::Plain)];
    let plain = |text: String| terminal.span(&text, Style::Plain);
    let (sign, style) = match cell.verdict {
        Some(Change::Regressed) => ("regressed", Style::Slower),
        Some(Change::Improved) => ("improved", Style::Faster),
        Some(Change::Equal) => ("=", Style::Dim),
        Some(Change::NotResolved) => ("~", Style::Dim),
        Some(Change::Unchanged) | None => ("", Style::Plain),
    };
    let [before, after, percent, interval] = figures(cell);
    let mut spans = vec![
        plain(before),
        plain(after),
        terminal.span(&percent, style),
        terminal.span(&interval, Style::Dim),
    ];
    if kind == DiffKind::Change {
        spans.push(terminal.span(&chance_of(cell), Style::Dim));
        spans.push(Span::new(sign, style));
    }
    (name, spans)
}

/// Values before and after, the change in percent, its interval.
pub(crate) fn figures(cell: &CellDiff) -> [String; 4] {
    let is_rebuild = shown::is_rebuild(&cell.name.metric);
    let amount =
        |value: f64| if is_rebuild { number::duration(value) } else { number::number(value) };
    let percent = cell.percent.map_or("-".to_owned(), number::percent);
    let interval = cell.percent_interval.map_or("-".to_owned(), |[low, high]| {
        let low = number::percent(low);
        let low = low.trim_end_matches(['%', number::NO_BREAK]);
        format!("{low}..{}", number::percent(high))
    });
    [amount(cell.before), amount(cell.after), percent, interval]
}

/// The chance of what was seen without a change.
pub(crate) fn chance_of(cell: &CellDiff) -> String {
    cell.chance_corrected.map_or("-".to_owned(), chance)
}

/// A chance in percent: `0.3 %`, `<0.1 %`.
fn chance(share: f64) -> String {
    if share < 0.001 {
        return format!("<0.1{}%", number::NO_BREAK);
    }
    number::percent(share * 100.0).trim_start_matches('+').to_owned()
}

/// `raid5(4), write, 2 processes, degraded, block=4KiB, p99_ms`, before which the study stands where there are several.
pub(crate) fn title(name: &CellName) -> String {
    let study = name.study.as_deref().and_then(|study| study.split(':').next());
    let mut parts: Vec<String> = study.into_iter().map(str::to_owned).collect();
    parts.extend([name.layout.clone(), name.workload.clone()]);
    parts.push(number::processes(name.processes));
    parts.extend((name.state != "healthy").then(|| name.state.clone()));
    parts.extend(name.settings.iter().map(|(key, value)| format!("{key}={value}")));
    if !["mib_per_s", "iops", "seconds"].contains(&name.metric.as_str()) {
        parts.push(name.metric.clone());
    }
    parts.join(", ")
}
