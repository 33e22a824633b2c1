//! The sheets: which cell holds what.

use std::collections::BTreeMap;

use raidlab_results::document::{Cell as ResultCell, Results, TooShort};

use super::Picture;
use super::xml::{self, Cell, column};
use crate::shown;
use crate::view::{Section, View};

/// The heads of what tells one line from another, on both sheets.
const AXES: [&str; 7] = ["study", "workload", "layout", "processes", "state", "settings", "unit"];
/// The heads of what follows on the sheet of results.
const FIGURES: [&str; 10] = [
    "rounds",
    "median",
    "mean",
    "smallest",
    "largest",
    "spread %",
    "median from",
    "median to",
    "% against baseline",
    "verdict",
];
/// Where the medians and percentages of the sheet of results stand.
const MEDIAN: usize = AXES.len() + 1;
const PERCENT: usize = AXES.len() + 8;

/// A cell of a document with the line that it has on both sheets, from 1.
struct Line<'a> {
    results: &'a Results,
    section: usize,
    cell: &'a ResultCell,
    number: usize,
}

pub(super) fn content(views: &[View<'_>], pictures: &[Picture]) -> String {
    let lines = lines(views);
    let sheets = [
        xml::sheet("Results", &[results(&lines), without_figures(views)].concat(), ""),
        xml::sheet("Means", &means(views, &lines), ""),
        xml::sheet("Raw", &raw(&lines), ""),
        xml::sheet("About", &about(views), ""),
        xml::sheet("Figures", &[], &shapes(pictures)),
    ];
    let names = [
        ("office", "office"),
        ("table", "table"),
        ("text", "text"),
        ("style", "style"),
        ("draw", "drawing"),
    ];
    let names: String = names
        .iter()
        .map(|(prefix, name)| {
            format!(" xmlns:{prefix}=\"urn:oasis:names:tc:opendocument:xmlns:{name}:1.0\"")
        })
        .collect();
    format!(
        "{}<office:document-content{names} \
         xmlns:fo=\"urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0\" \
         xmlns:svg=\"urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0\" \
         xmlns:xlink=\"http://www.w3.org/1999/xlink\" \
         xmlns:of=\"urn:oasis:names:tc:opendocument:xmlns:of:1.2\" office:version=\"1.3\">\n\
         <office:automatic-styles><style:style style:name=\"head\" style:family=\"table-cell\">\
         <style:text-properties fo:font-weight=\"bold\"/></style:style></office:automatic-styles>\n\
         <office:body><office:spreadsheet>\n{}</office:spreadsheet></office:body>\
         </office:document-content>\n",
        xml::HEAD,
        sheets.concat()
    )
}

/// Every cell that reports show, in their order.
fn lines<'a>(views: &'a [View<'_>]) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    for view in views {
        for (section, of) in view.sections.iter().enumerate() {
            for cell in of.rows.iter().flat_map(|row| row.cells.iter().copied().flatten()) {
                // The first line has the heads.
                let number = lines.len() + 2;
                lines.push(Line { results: view.results, section, cell, number });
            }
        }
    }
    lines
}

fn in_words(settings: &BTreeMap<String, String>) -> Cell {
    let settings: Vec<String> =
        settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
    Cell::text(settings.join(", "))
}

/// What `Results` has behind all lines: those that have no figure, as rounds were too short to tell. `Raw` has no
/// rounds of them.
fn without_figures(views: &[View<'_>]) -> Vec<Vec<Cell>> {
    let row = |results: &Results, short: &TooShort| {
        let axes = [
            Cell::text(&results.study),
            Cell::text(&short.workload),
            Cell::text(&short.layout),
            Cell::Number(f64::from(short.processes)),
            Cell::text(&short.state),
            in_words(&short.settings),
            Cell::text(&short.metric),
            Cell::Number(f64::from(short.of)),
        ];
        let unknown = vec![Cell::Empty; FIGURES.len() - 2];
        let why = format!("{} ({} of {})", shown::TOO_SHORT, short.rounds, short.of);
        axes.into_iter().chain(unknown).chain([Cell::text(why)]).collect()
    };
    let all = views.iter().map(|view| view.results);
    all.flat_map(|results| results.too_short.iter().map(move |short| row(results, short))).collect()
}

fn axes(line: &Line<'_>) -> Vec<Cell> {
    let cell = line.cell;
    vec![
        Cell::text(&line.results.study),
        Cell::text(&cell.workload),
        Cell::text(&cell.layout),
        Cell::Number(f64::from(cell.processes)),
        Cell::text(&cell.state),
        in_words(&cell.settings),
        Cell::text(format!("{}, {}", cell.metric, cell.unit)),
    ]
}

fn heads(more: impl IntoIterator<Item = String>) -> Vec<Cell> {
    AXES.iter().map(|head| Cell::head(*head)).chain(more.into_iter().map(Cell::head)).collect()
}

/// The rounds of a line on the sheet of raw rounds, at most so many.
fn rounds(line: &Line<'_>, most: usize) -> String {
    let count = line.cell.samples.len().min(most);
    let (first, last) = (column(AXES.len()), column(AXES.len() + count - 1));
    let number = line.number;
    format!("[$Raw.{first}{number}:.{last}{number}]")
}

fn raw(lines: &[Line<'_>]) -> Vec<Vec<Cell>> {
    let most = lines.iter().map(|line| line.cell.samples.len()).max().unwrap_or(0);
    let mut rows = vec![heads((1..=most).map(|round| format!("round {round}")))];
    rows.extend(lines.iter().map(|line| {
        let samples = line.cell.samples.iter().map(|sample| Cell::Number(*sample));
        axes(line).into_iter().chain(samples).collect()
    }));
    rows
}

fn results(lines: &[Line<'_>]) -> Vec<Vec<Cell>> {
    let mut rows = vec![heads(FIGURES.map(str::to_owned))];
    rows.extend(lines.iter().map(|line| {
        let own = rounds(line, usize::MAX);
        let of = |function: &str| Cell::Formula(format!("of:={function}({own})"));
        let figures = [
            of("COUNT"),
            of("MEDIAN"),
            of("AVERAGE"),
            of("MIN"),
            of("MAX"),
            Cell::Formula(format!("of:=(MAX({own})-MIN({own}))/AVERAGE({own})*100")),
            end(line, &own, 0),
            end(line, &own, 1),
            percent(line, lines),
            line.cell.verdict.map_or(Cell::Empty, |verdict| Cell::text(crate::csv::word(verdict))),
        ];
        axes(line).into_iter().chain(figures).collect()
    }));
    rows
}

/// An end of the interval of the median, which is one of the rounds by its rank.
fn end(line: &Line<'_>, own: &str, at: usize) -> Cell {
    let Some(ends) = line.cell.ci95 else { return Cell::Empty };
    let mut sorted = line.cell.samples.clone();
    sorted.sort_by(f64::total_cmp);
    let below = sorted.iter().filter(|one| **one < ends[at]).count();
    let equal = sorted.iter().filter(|one| **one == ends[at]).count();
    // Ranks that have the same value: the low end takes the first, the high end the last.
    let rank = if at == 0 { below + 1 } else { below + equal };
    if equal == 0 { Cell::Empty } else { Cell::Formula(format!("of:=SMALL({own};{rank})")) }
}

/// The centre over the rounds of the ratios to the baseline, in percent: the median of the means of every two
/// logarithms, each with itself too. Layouts of a baseline of several stand beside the mean of their medians.
fn percent(line: &Line<'_>, lines: &[Line<'_>]) -> Cell {
    let (results, cell) = (line.results, line.cell);
    let is_same = |other: &&Line<'_>| {
        std::ptr::eq(other.results, results)
            && other.section == line.section
            && (other.cell.processes, &other.cell.state, &other.cell.settings)
                == (cell.processes, &cell.state, &cell.settings)
            && results.baseline.contains(&other.cell.layout)
    };
    let base: Vec<&Line<'_>> = lines.iter().filter(is_same).collect();
    if cell.percent_vs_baseline.is_none() || base.is_empty() || base.len() < results.baseline.len()
    {
        return Cell::Empty;
    }
    if base.len() > 1 && results.baseline.contains(&cell.layout) {
        let median = column(MEDIAN);
        let medians: Vec<String> =
            base.iter().map(|one| format!("[.{median}{}]", one.number)).collect();
        let (own, medians) = (line.number, medians.join(";"));
        return Cell::Formula(format!("of:=([.{median}{own}]/AVERAGE({medians})-1)*100"));
    }
    let all = || base.iter().map(|one| one.cell).chain([cell]);
    if all().flat_map(|one| &one.samples).any(|one| *one <= 0.0) {
        return Cell::Empty;
    }
    let most = all().map(|one| one.samples.len()).min().unwrap_or(0);
    let own = rounds(line, most);
    let each: Vec<String> = base.iter().map(|one| rounds(one, most)).collect();
    let against = match each.as_slice() {
        [one] => one.clone(),
        several => format!("(({})/{})", several.join("+"), several.len()),
    };
    let log = format!("LN({own}/{against})");
    Cell::Matrix(format!(
        "of:=(EXP(MEDIAN(IF(COLUMN({own})>=TRANSPOSE(COLUMN({own}));({log}+TRANSPOSE({log}))/2;\"\")))-1)*100"
    ))
}

/// For each workload and layout the mean of its percentages, as the study of 2005 had it.
fn means(views: &[View<'_>], lines: &[Line<'_>]) -> Vec<Vec<Cell>> {
    let head = ["study", "workload", "layout", "rows", "mean of % against baseline"];
    let mut rows = vec![head.map(Cell::head).to_vec()];
    for view in views {
        for (at, section) in view.sections.iter().enumerate() {
            for layout in &view.results.layouts {
                rows.extend(mean_of(view, at, section, &layout.name, lines));
            }
        }
    }
    rows
}

fn mean_of(
    view: &View<'_>,
    at: usize,
    section: &Section<'_>,
    layout: &str,
    lines: &[Line<'_>],
) -> Option<Vec<Cell>> {
    let own = lines.iter().filter(|line| {
        std::ptr::eq(line.results, view.results) && line.section == at && line.cell.layout == layout
    });
    let known =
        own.filter(|line| percent(line, lines) != Cell::Empty && !line.cell.tells_too_little());
    let percents: Vec<String> =
        known.map(|line| format!("[$Results.{}{}]", column(PERCENT), line.number)).collect();
    (!percents.is_empty()).then(|| {
        vec![
            Cell::text(&view.results.study),
            Cell::text(&section.title),
            Cell::text(layout),
            Cell::Number(percents.len() as f64),
            Cell::Formula(format!("of:=AVERAGE({})", percents.join(";"))),
        ]
    })
}

fn about(views: &[View<'_>]) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for view in views {
        let results = view.results;
        rows.push(vec![Cell::head(&results.study)]);
        let mut tell = |key: &str, value: &str| rows.push(vec![Cell::text(key), Cell::text(value)]);
        tell("raidlab", &results.raidlab);
        tell("clock", shown::clock(results.origin()));
        tell("seed", &results.seed.to_string());
        tell("baseline", &view.baseline());
        for (key, value) in results.host.iter().chain(&results.settings) {
            tell(key, value);
        }
        for warning in &results.warnings {
            tell("warning", warning);
        }
        for workload in &results.workloads {
            tell(&workload.name, &workload.description);
        }
        rows.push(Vec::new());
    }
    rows
}

/// The pictures from left to right.
fn shapes(pictures: &[Picture]) -> String {
    if pictures.is_empty() {
        return String::new();
    }
    let shape = |(at, picture): (usize, &Picture)| {
        let size = |name: &str| {
            let start = format!(" {name}=\"");
            let rest = picture.svg.split(&start).nth(1)?;
            rest[..rest.find('"')?].parse::<f64>().ok()
        };
        // A unit is 1/96 of an inch.
        let cm = |units: f64| units / 96.0 * 2.54;
        let (width, height) =
            (cm(size("width").unwrap_or(440.0)), cm(size("height").unwrap_or(300.0)));
        let x = (cm(440.0) + 0.5) * at as f64 + 0.3;
        format!(
            "<draw:frame draw:name=\"{}\" svg:x=\"{x:.2}cm\" svg:y=\"0.3cm\" svg:width=\"{width:.2}cm\" \
             svg:height=\"{height:.2}cm\"><draw:image xlink:href=\"{}\" xlink:type=\"simple\" \
             xlink:show=\"embed\" xlink:actuate=\"onLoad\"/></draw:frame>",
            xml::escaped(&picture.path),
            xml::escaped(&picture.path)
        )
    };
    let shapes: String = pictures.iter().enumerate().map(shape).collect();
    format!("<table:shapes>{shapes}</table:shapes>")
}
