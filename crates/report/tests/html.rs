//! The HTML report: self-contained, well-formed, complete, and safe with any name.

use crate::common;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use raidlab_report::{Exporter, Html, replay_html};
use raidlab_results::LATENCY_SHARES;
use raidlab_results::document::{Results, TimelineRow};
use sha2::{Digest, Sha256};

const EVIL: &str = "<img src=x onerror=alert(1)> & \"quoted\" 'too' </script><!--";

fn export(results: &Results) -> String {
    Html.export(results).expect("a report")
}

fn evil() -> Results {
    let mut results = common::small();
    results.study = EVIL.to_owned();
    results.warnings.push(EVIL.to_owned());
    results.settings.insert(EVIL.to_owned(), EVIL.to_owned());
    results.workloads[0].description = EVIL.to_owned();
    let old = std::mem::replace(&mut results.layouts[2].name, EVIL.to_owned());
    for cell in results.cells.iter_mut().filter(|cell| cell.layout == old) {
        cell.layout = EVIL.to_owned();
        cell.bottleneck.as_mut().expect("a bottleneck").resource = EVIL.to_owned();
    }
    results
}

/// A tag: its name, its attributes, and whether it closes.
struct Tag<'a> {
    name: &'a str,
    attributes: &'a str,
    closes: bool,
}

/// The tags of a page whose text and attributes are escaped; the insides of style and script are
/// passed over.
fn tags(page: &str) -> Vec<Tag<'_>> {
    let mut tags = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        let inside = &rest[start + 1..];
        let end = inside.find('>').expect("a tag ends");
        let (tag, closes) = match inside[..end].strip_prefix('/') {
            Some(tag) => (tag, true),
            None => (&inside[..end], false),
        };
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        rest = &inside[end + 1..];
        if !closes && (name == "style" || name == "script") {
            rest = &rest[rest.find(&format!("</{name}")).expect("it closes")..];
        }
        tags.push(Tag { name, attributes, closes });
    }
    tags
}

fn count(page: &str, part: &str) -> usize {
    page.matches(part).count()
}

/// What stands in the element that begins so.
fn inside<'p>(page: &'p str, start: &str, end: &str) -> &'p str {
    let inside = &page[page.find(start).expect(start) + start.len()..];
    &inside[..inside.find(end).expect(end)]
}

const DATA: &str = "<script type=\"application/json\" id=\"raidlab-results\">";

#[test]
fn every_element_closes_in_order() {
    let several = replay_html(&[common::replay(), evil(), common::full()]).expect("a report");
    let pages = [
        common::small(),
        common::full(),
        common::real(),
        common::empty(),
        common::replay(),
        evil(),
    ];
    for page in pages.iter().map(export).chain([several]) {
        let mut open = Vec::new();
        for tag in tags(&page) {
            match tag.name {
                "!DOCTYPE" | "meta" => {}
                name if tag.closes => assert_eq!(open.pop(), Some(name)),
                name => open.push(name),
            }
        }
        assert!(open.is_empty(), "{open:?}");
        let ids: Vec<&str> = tags(&page)
            .iter()
            .filter_map(|tag| tag.attributes.split("id=\"").nth(1)?.split('"').next())
            .collect();
        let mut unique = ids.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), ids.len(), "{ids:?}");
    }
}

#[test]
fn nothing_is_asked_of_anybody_and_names_stay_names() {
    for page in [export(&evil()), replay_html(&[evil(), common::replay()]).expect("a report")] {
        assert!(!page.contains("<img"), "a name is markup");
        let markup = &page[..page.find(DATA).expect("the data block")];
        for part in [" style=\"", "url(", "@import", "http://", "https://"] {
            assert!(!markup.contains(part), "{part}");
        }
        for tag in tags(&page) {
            assert!(
                !["img", "link", "iframe", "object", "base"].contains(&tag.name),
                "{}",
                tag.name
            );
            let is_handler = tag.attributes.split(' ').any(|one| one.starts_with("on"));
            assert!(!is_handler || tag.attributes.contains("&lt;"), "{}", tag.attributes);
        }
    }
}

/// The policy names exactly the styles and the script that the page has.
#[test]
fn the_policy_has_the_hashes_of_what_is_inline() {
    let page = export(&common::full());
    let policy = inside(&page, "Content-Security-Policy\" content=\"", "\">");
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe") && policy.contains("base-uri 'none'"), "{policy}");
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
    let style = inside(&page, "<style>", "</style>");
    let script = inside(&page, "<script>", "</script>");
    assert!(policy.contains(&format!("style-src 'sha256-{}'", hash(style))), "{policy}");
    assert!(policy.contains(&format!("script-src 'sha256-{}'", hash(script))), "{policy}");
    assert_eq!(count(&page, "<style>") + count(&page, "<script>"), 2);
}

#[test]
fn the_whole_table_is_there_and_results_come_before_settings() {
    let results = common::full();
    let page = export(&results);
    let table = inside(&page, "<table class=\"overview", "</table>");
    for layout in &results.layouts {
        assert_eq!(count(table, &format!("<th scope=\"col\">{}", layout.name)), 1);
    }
    assert!(table.contains("single<small>baseline</small>"));
    assert_eq!(count(table, "<th scope=\"rowgroup\""), 4);
    for label in ["1\u{a0}process<", "2\u{a0}processes<", "4\u{a0}processes<"] {
        assert_eq!(count(table, &format!("<th scope=\"row\">{label}")), 4, "{label}");
    }
    assert_eq!(count(table, ": median "), results.cells.len());
    // Twelve rows; in those of random-read one more may be the best.
    assert_eq!(count(table, "<td class=\"best\""), 12);
    assert_eq!(count(table, "may be the best"), 3);
    for cell in table.split("<td").skip(1) {
        assert_eq!(cell.starts_with(" class=\"best\""), cell.contains("★"), "{cell}");
    }
    let place = |part: &str| page.find(part).unwrap_or_else(|| panic!("{part}"));
    let order = [
        "<h2>What it shows",
        "<h2>All layouts",
        "<h2>Across the rows",
        "<h2>How far to trust this",
        "<h2>At a glance",
        "<h2>More figures",
        "<h2>Row by row",
    ];
    assert!(order.map(place).is_sorted());
    let mut sentences = 0;
    for one in raidlab_report::conclusions(&results).expect("conclusions") {
        let Some(section) = one.section.filter(|_| one.about != raidlab_report::About::Best) else {
            continue;
        };
        // Without its workload it would say something about all of them.
        let sentence = format!("<strong>{section}: </strong>{}</li>", one.text);
        assert!(page.contains(&sentence), "{sentence}");
        sentences += 1;
    }
    assert!(sentences > 0, "sentences across the rows of a workload");
    assert!(place("Row by row") < place("<details class=\"settings\">"));
}

/// Of each workload the first row is drawn without script; the script has what it needs for the others.
/// What layouts do is said first; where there is much to say, of latencies and rebuilds it is said on demand.
#[test]
fn much_that_is_said_is_folded() {
    let mut results = common::full();
    assert_eq!(count(&export(&results), "details class=\"words\""), 0);
    let latencies = results.cells.clone().into_iter().map(|mut cell| {
        (cell.metric, cell.unit) = ("p99_ms".into(), "ms".into());
        cell
    });
    results.cells.extend(latencies);
    let page = export(&results);
    let first = inside(&page, "<h2>What it shows</h2>", "<details class=\"words\"");
    assert_eq!(count(first, "<strong>"), 4, "{first}");
    let folded = inside(&page, "<details class=\"words\">", "</details>");
    assert!(folded.contains("Latency and rebuilds in words: 4 more"), "{folded}");
    assert_eq!(count(folded, "<strong>"), 4, "{folded}");
}

#[test]
fn top_rows_are_drawn_and_the_others_can_be() {
    let results = common::full();
    let page = export(&results);
    let start = page.find("At a glance").expect("figures");
    let top = &page[start..page.find("More figures").expect("more")];
    // Four rows, capacity beside speed, the map of heat.
    assert_eq!(count(top, "<svg class=\"fig\""), 6);
    assert_eq!(count(top, "class=\"base\""), 4);
    let rows: serde_json::Value = serde_json::from_str(inside(
        &page,
        "<script type=\"application/json\" id=\"raidlab-rows\">",
        "</script>",
    ))
    .expect("rows");
    let rows = rows.as_object().expect("by their numbers");
    assert_eq!(rows.len(), 8);
    for (number, row) in rows {
        assert_eq!(count(&page, &format!("<details data-row=\"{number}\">")), 1);
        for bar in row["c"].as_array().expect("bars") {
            let cell = &results.cells[bar[0].as_u64().expect("a place") as usize];
            let processes = cell.processes.to_string();
            let title = row["n"].as_str().expect("a title");
            assert!(title.contains(&cell.workload) && title.contains(&processes), "{title}");
            let shown = raidlab_report::number::number(cell.median);
            assert!(bar[1].as_str().expect("a text").starts_with(&shown), "{bar}");
        }
    }
}

#[test]
fn the_document_can_be_read_back_from_the_page() {
    for results in [common::small(), evil()] {
        let page = export(&results);
        let json = inside(&page, DATA, "</script>");
        let back: Results = serde_json::from_str(json).expect("the document");
        assert_eq!(back, results);
    }
}

/// 10,000 cells: at most 15 MB, without curves and timelines, and with words that say so.
#[test]
fn a_page_of_ten_thousand_cells_is_not_too_large() {
    let mut results = common::large(10_000);
    results.latency_shares = LATENCY_SHARES.to_vec();
    for cell in results.cells.iter_mut().step_by(500) {
        cell.latency_curve_ms = vec![1.0; LATENCY_SHARES.len()];
        let (rate, mean_ms) = (vec![1.0], vec![Some(1.0)]);
        let max_ms = mean_ms.clone();
        let (unit, rebuilt_percent) = ("MiB/s".to_owned(), Vec::new());
        let one =
            TimelineRow { round: 1, bin_s: 0.5, unit, rate, mean_ms, max_ms, rebuilt_percent };
        cell.timeline = Some(one);
    }
    let page = export(&results);
    assert!(page.len() < 15_000_000, "{} bytes", page.len());
    assert!(page.contains("are left out of this page"));
    let json = inside(&page, DATA, "</script>");
    let back: Results = serde_json::from_str(json).expect("the document");
    assert_eq!(back.cells.len(), 10_000);
    assert!(back.cells.iter().all(|cell| cell.timeline.is_none() && cell.samples.len() == 9));
    assert!(back.cells.iter().all(|cell| cell.latency_curve_ms.is_empty()));
    assert!(back.latency_shares.is_empty());
    assert!(count(&page, "<svg class=\"fig\"") < 200);
    assert_eq!(count(&page, "class=\"overview"), 1);
}

#[test]
fn bars_lie_within_their_picture() {
    let attribute = |tag: &Tag<'_>, name: &str| -> f64 {
        let start = format!(" {name}=\"");
        let attributes = format!(" {}", tag.attributes);
        let value = attributes.split(&start).nth(1).expect("the attribute");
        value[..value.find('"').expect("a quote")].parse().expect("a number")
    };
    for results in [common::full(), common::real()] {
        let page = export(&results);
        let start = page.find("At a glance").expect("figures");
        let top = &page[start..page.find("More figures").expect("more")];
        let (mut width, mut height, mut bars) = (0.0, 0.0, 0);
        for tag in tags(top).iter().filter(|tag| !tag.closes) {
            if tag.name == "svg" {
                let size = tag.attributes.split("viewBox=\"").nth(1).expect("a view box");
                let size = size.split('"').next().expect("its end");
                let size: Vec<f64> =
                    size.split(' ').map(|one| one.parse().expect("a number")).collect();
                (width, height) = (size[2], size[3]);
            }
            if tag.name == "rect" && tag.attributes.contains("class=\"bar ") {
                bars += 1;
                assert!(attribute(tag, "y") + attribute(tag, "height") < height);
                assert!(attribute(tag, "width") >= 0.0);
                assert!(attribute(tag, "x") + attribute(tag, "width") < width - 40.0);
            }
        }
        assert!(bars > 0);
    }
}

#[test]
fn a_replay_shows_what_was_published_and_found() {
    let results = common::replay();
    let page = export(&results);
    for part in [
        "published 80.0, +25\u{a0}%",
        "published 61.0, -1.6\u{a0}% *",
        "pci 97\u{a0}%",
        "Not explained: </strong>single, cp",
        "Findings, computed from these numbers",
        "<th scope=\"row\" title=\"it is not there\">journal</th>",
        "data-figure=\"published\"",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for finding in &results.findings {
        assert!(page.contains(&format!("<li>{}</li>", finding.text)), "{}", finding.text);
    }
    assert!(!page.contains("Advice"), "three seeds are meant to be");
    let plain = export(&common::full());
    assert!(!plain.contains("Fidelity") && !plain.contains("class=\"busiest\""));
}

#[test]
fn several_replays_are_read_back_from_one_page() {
    let documents = [common::replay(), evil()];
    let page = replay_html(&documents).expect("a report");
    assert!(!page.contains("<img"));
    let back: raidlab_results::Replays =
        serde_json::from_str(inside(&page, DATA, "</script>")).expect("the documents");
    assert_eq!(back.replays, documents);
}
