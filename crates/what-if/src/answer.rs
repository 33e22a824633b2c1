//! What is answered: JSON with what the page shows, in the words and digits of reports.

use raidlab_core::geometry::{Chunk, ChunkMap, drawn_chunk};
use raidlab_core::{Layout, Level, Size};
use raidlab_models::DriveKind;
use raidlab_predict::Modelled;
use raidlab_report::{
    About, Exporter, Glance, Json, ReportError, charts_html, conclusions, glances, number,
    trust_lines,
};
use raidlab_results::document::{Better, Bottleneck, Cell, Results};
use raidlab_results::find::{REBUILD, REBUILD_ESTIMATE, row_metric};
use raidlab_study::{NamedLayout, StudyError};
use serde_json::{Value, json};

/// The figures that are drawn where there are data for them.
const CHARTS: [&str; 3] = ["ecdf", "rate", "busy"];

/// A resource that is busy for less of the time holds nothing up.
const BUSY: f64 = 0.8;
/// Below this share requests wait for one another, and not for a resource.
const IDLE: f64 = 0.5;

/// Everything that is wrong with a study.
pub(crate) fn errors(error: &StudyError) -> Value {
    let all = std::iter::once(error).chain(&error.also);
    let each = |one: &StudyError| json!({ "key": one.key, "line": one.line, "reason": one.reason });
    json!({ "errors": all.map(each).collect::<Vec<_>>() })
}

/// What the layouts are, in the study's order.
pub(crate) fn layouts(modelled: &Modelled<'_>, results: &Results) -> Vec<Value> {
    let rows = results.layouts.iter().zip(&modelled.study().layouts);
    rows.map(|(row, named)| {
        let layout = &named.layout;
        json!({
            "name": row.name,
            "layout": layout.to_string(),
            "capacity": number::bytes(row.capacity),
            "capacity_bytes": row.capacity,
            "survives": row.survives,
            "survives_words": survives(row.survives),
            "efficiency": efficiency(modelled, named, row.capacity),
            "blocks": row.blocks,
            "lost": lost(layout),
            "drawn": drawn(layout),
        })
    })
    .collect()
}

fn survives(count: u16) -> String {
    match count {
        0 => "no lost drive".to_owned(),
        1 => "any 1 lost drive".to_owned(),
        count => format!("any {count} lost drives"),
    }
}

/// The share of all drives' space that is usable.
fn efficiency(modelled: &Modelled<'_>, named: &NamedLayout, capacity: u64) -> String {
    let members = 0..usize::from(named.layout.drives());
    let of = |member: usize| modelled.drives()[named.group(member)].capacity.bytes();
    let raw: u64 = members.map(of).sum();
    number::share(capacity as f64 / raw.max(1) as f64)
}

/// The member that degraded and rebuilding states do without: where the first copy of the first chunk lies.
fn lost(layout: &Layout) -> Option<usize> {
    let map = ChunkMap::new(layout, Some(1)).ok()?;
    let first = Chunk::Data { number: 0, copy: 0 };
    map.rows.first()?.iter().position(|chunk| *chunk == first)
}

/// What a field of the map is, and what is not drawn.
fn drawn(layout: &Layout) -> String {
    let size = Size(drawn_chunk(layout).bytes());
    let field = match layout.level.has_chunks() && layout.inner.is_none() {
        true => format!("Each field is a chunk of {size}."),
        false => format!("Each field is a piece of {size}."),
    };
    match layout.level {
        Level::Linear => format!("{field} Drives are drawn as if they ended after the last row."),
        _ if layout.far > 1 && !layout.offset => format!(
            "{field} Each further copy begins another {} of the drive further in; rows between are left out.",
            match layout.far {
                2 => "half".to_owned(),
                far => format!("1/{far}"),
            }
        ),
        _ => field,
    }
}

/// What a study shows.
pub(crate) fn of(modelled: &Modelled<'_>, results: &Results) -> Value {
    match shown(modelled, results) {
        Ok(shown) => json!({
            "layouts": layouts(modelled, results),
            "rows": shown.rows,
            "limits": shown.limits,
            "sentences": shown.sentences,
            "charts": shown.charts,
            "trust": shown.trust,
            "warnings": results.warnings,
            "rounds": results.settings.get("rounds"),
            "document": shown.document,
        }),
        // Not a document that this crate has made, unless there is a defect.
        Err(error) => json!({
            "errors": [{ "key": "", "line": null, "reason": error.to_string() }]
        }),
    }
}

/// Whether a cell's time is that of a rebuild alone, estimated from where disks are fastest.
fn is_start_of_a_disk(modelled: &Modelled<'_>, cell: &Cell) -> bool {
    let layouts = &modelled.study().layouts;
    let named = layouts.iter().find(|named| named.name == cell.layout);
    let is_disk = named
        .is_some_and(|named| !matches!(modelled.drives()[named.drives].kind, DriveKind::Ssd(_)));
    is_disk && cell.metric == REBUILD_ESTIMATE && cell.processes == 0
}

struct Shown {
    rows: Vec<Value>,
    limits: Vec<String>,
    sentences: Vec<String>,
    charts: String,
    trust: Vec<Value>,
    document: String,
}

fn shown(modelled: &Modelled<'_>, results: &Results) -> Result<Shown, ReportError> {
    let mut glances = glances(results)?;
    for glance in &mut glances {
        if let Some(note) =
            glance.note.as_mut().filter(|_| is_start_of_a_disk(modelled, glance.cell))
        {
            note.push_str(", at the start of the drives; disks are slower further in, so the whole takes longer");
        }
    }
    let of_layout = |layout: &str| {
        let mut cells = results.cells.iter();
        cells.find(|cell| cell.layout == layout && !cell.busy.is_empty())
    };
    // By the medians that the figure of what was busy shows.
    let limits = results.layouts.iter().filter_map(|layout| {
        let busy = &of_layout(&layout.name)?.busy;
        let most = busy.iter().reduce(|most, one| if one.busy > most.busy { one } else { most })?;
        Some(limit(most))
    });
    let limits = limits.collect();
    let sentences = match results.layouts.len() {
        0 | 1 => Vec::new(),
        // What limits each has a row of its own.
        _ => {
            let all = conclusions(results)?.into_iter();
            all.filter(|one| one.about != About::Limit).map(|one| one.text).collect()
        }
    };
    let trust = trust_lines(results)?;
    let trust = trust.into_iter().map(|(title, text)| json!({ "title": title, "text": text }));
    Ok(Shown {
        rows: rows(results, &glances),
        limits,
        sentences,
        charts: charts_html(results, &CHARTS)?,
        trust: trust.collect(),
        document: Json.export(results)?,
    })
}

/// What holds a layout up, in words.
fn limit(most: &Bottleneck) -> String {
    let (what, share) = (&most.resource, number::share(most.busy));
    match most.busy {
        busy if busy >= BUSY && what.starts_with("cpu") => format!(
            "limited by the modelled host, which does all requests on one core, at work {share} of the time; a kernel \
             spreads them over its cores, so that fast drives get more"
        ),
        busy if busy >= BUSY => format!("limited by {what}, at work {share} of the time"),
        busy if busy >= IDLE => {
            format!("nothing is at work all the time; most {what}, {share}")
        }
        _ => format!(
            "nothing is at work for half of the time (most {what}, {share}): requests wait for one another, and \
             more of them at once would get more"
        ),
    }
}

/// The rows of figures: a metric each, with a cell for each layout.
fn rows(results: &Results, glances: &[Glance<'_>]) -> Vec<Value> {
    let mut keys: Vec<(&str, u32)> = Vec::new();
    for glance in glances {
        let key = key_of(glance);
        if title(key).is_some() && !keys.contains(&key) {
            keys.push(key);
        }
    }
    // Work that has the latency as a figure of its own shows that one.
    let has_own = keys.iter().any(|(metric, _)| *metric == OWN_P99);
    keys.retain(|(metric, _)| !(has_own && *metric == P99));
    let mut rows: Vec<Value> = Vec::new();
    for key in keys {
        let of = |layout: &str| {
            glances.iter().find(|one| one.cell.layout == layout && key_of(one) == key)
        };
        if matches!(key.0, OWN_P99 | P99) {
            rows.extend(half(results));
        }
        let names = || results.layouts.iter().map(|layout| layout.name.as_str());
        let better = names().find_map(of).map(|one| one.cell.better);
        let cells: Vec<Value> = names().map(|name| of(name).map_or(Value::Null, cell)).collect();
        rows.push(json!({
            "metric": key.0,
            "title": title(key),
            "better": match better { Some(Better::Higher) => "higher", _ => "lower" },
            "cells": cells,
        }));
    }
    rows
}

/// What tells the rows of figures apart.
fn key_of<'g>(glance: &'g Glance<'_>) -> (&'g str, u32) {
    (row_metric(&glance.cell.metric), glance.cell.processes)
}

/// The metrics of latency: fio's own figure, and that of cells that are not healthy.
const OWN_P99: &str = "latency_p99_ms";
const P99: &str = "p99_ms";

/// What a row is called; nothing of figures that the page does not show.
fn title((metric, processes): (&str, u32)) -> Option<&'static str> {
    match metric {
        "mib_per_s" => Some("Throughput"),
        "iops" => Some("Operations a second"),
        "latency_mean_ms" => Some("Latency, mean"),
        OWN_P99 | P99 => Some("Latency, 99 of 100 within"),
        REBUILD if processes == 0 => Some("Rebuild alone"),
        REBUILD => Some("Rebuild beside this work"),
        _ => None,
    }
}

/// The row of the latency that half of the requests stay within, which is no metric of its own.
fn half(results: &Results) -> Option<Value> {
    let of = |name: &str| {
        let mut cells = results.cells.iter();
        cells.find_map(|cell| cell.latency_ms.filter(|_| cell.layout == name))
    };
    let cells = results.layouts.iter().map(|layout| {
        of(&layout.name)
            .map(|latency| json!({ "value": number::number(latency.p50), "unit": "ms" }))
    });
    let cells: Vec<Option<Value>> = cells.collect();
    cells.iter().any(Option::is_some).then(|| {
        json!({ "metric": "p50_ms", "title": "Latency, half within", "better": "lower", "cells": cells })
    })
}

fn cell(glance: &Glance<'_>) -> Value {
    // That the further figures of work were not compared with a kernel's need not stand at each.
    let trust = glance.trust.as_ref().filter(|_| !glance.cell.detail);
    json!({
        "value": glance.value,
        "unit": glance.unit,
        "median": glance.cell.median,
        "confidence": glance.confidence,
        "trust": trust,
        "percent": glance.percent,
        "percent_interval": glance.percent_interval,
        "verdict": glance.verdict,
        "note": glance.note,
        "words": glance.words,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is at work for four fifths of the time holds a layout up; below a half requests wait for each other.
    #[test]
    fn what_holds_a_layout_up_is_told_by_how_busy_it_is() {
        let told =
            |resource: &str, busy: f64| limit(&Bottleneck { resource: resource.to_owned(), busy });
        for busy in [0.8, 0.97] {
            assert!(told("member 2", busy).starts_with("limited by member 2, at work "), "{busy}");
            assert!(told("cpu", busy).starts_with("limited by the modelled host"), "{busy}");
        }
        for busy in [0.5, 0.79] {
            let words = told("member 2", busy);
            assert!(
                words.starts_with("nothing is at work all the time; most member 2, "),
                "{words}"
            );
            assert!(told("cpu", busy).starts_with("nothing is at work all the time"), "{busy}");
        }
        let words = told("member 2", 0.49);
        assert!(
            words.starts_with("nothing is at work for half of the time (most member 2, "),
            "{words}"
        );
        assert!(words.contains("49"), "{words}");
    }

    #[test]
    fn losses_and_fields_in_words() {
        assert_eq!(
            [0, 1, 2].map(survives),
            ["no lost drive", "any 1 lost drive", "any 2 lost drives"]
        );
        let of = |layout: &str| {
            let layout: Layout = layout.parse().expect("a layout");
            (drawn(&layout), lost(&layout))
        };
        let (words, member) = of("raid10(4) far2 chunk=64K");
        assert_eq!(
            words,
            "Each field is a chunk of 64KiB. Each further copy begins another half of the drive further in; rows \
             between are left out."
        );
        assert_eq!(member, Some(0));
        assert!(of("raid10(4) far3").0.contains("begins another 1/3 of the drive further in"));
        for plain in ["raid10(4)", "raid10(4) offset2", "raid5(4)", "raid0(2)"] {
            assert_eq!(
                of(plain),
                ("Each field is a chunk of 512KiB.".to_owned(), Some(0)),
                "{plain}"
            );
        }
        assert!(
            of("linear(2)").0.ends_with(" Drives are drawn as if they ended after the last row.")
        );
        assert!(of("raid1(2)").0.starts_with("Each field is a piece of "), "{:?}", of("raid1(2)"));
        assert!(of("raid5+0(2x3)").0.starts_with("Each field is a piece of "));
    }

    #[test]
    fn rows_are_of_what_the_page_shows() {
        let titles =
            ["mib_per_s", "iops", "latency_mean_ms", OWN_P99, P99].map(|metric| title((metric, 4)));
        let expected = [
            "Throughput",
            "Operations a second",
            "Latency, mean",
            "Latency, 99 of 100 within",
            "Latency, 99 of 100 within",
        ];
        assert_eq!(titles, expected.map(Some));
        assert_eq!(
            (title((REBUILD, 0)), title((REBUILD, 1))),
            (Some("Rebuild alone"), Some("Rebuild beside this work"))
        );
        assert_eq!(title(("cpu_s", 4)), None);
    }
}
