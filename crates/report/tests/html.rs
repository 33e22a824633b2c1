//! The HTML report: self-contained, well-formed, complete, and safe with any name.

mod common;

use raidlab_report::{Exporter, Html, replay_html};
use raidlab_results::document::Results;

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
    }
}

#[test]
fn nothing_is_asked_of_another_host_and_no_script_runs() {
    let page = export(&common::full());
    for word in ["http:", "https:", "src=", "href=", "xmlns", "url(", "@import", "javascript:"] {
        assert!(!page.contains(word), "{word}");
    }
    let page = export(&evil());
    for tag in tags(&page) {
        let allowed = [
            "!DOCTYPE",
            "html",
            "head",
            "meta",
            "title",
            "style",
            "body",
            "header",
            "main",
            "h1",
            "h2",
            "p",
            "ul",
            "li",
            "strong",
            "small",
            "dl",
            "div",
            "dt",
            "dd",
            "span",
            "table",
            "thead",
            "tbody",
            "tr",
            "th",
            "td",
            "section",
            "figure",
            "figcaption",
            "svg",
            "desc",
            "g",
            "rect",
            "path",
            "line",
            "text",
            "tspan",
            "details",
            "summary",
            "footer",
            "script",
        ];
        assert!(allowed.contains(&tag.name), "<{}>", tag.name);
        assert!(tag.name != "script" || tag.closes || tag.attributes.contains("application/json"));
        let names = tag.attributes.split('"').step_by(2);
        for name in names {
            assert!(!name.trim_start().starts_with("on"), "{}", tag.attributes);
        }
    }
    assert!(page.contains("http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';"));
}

#[test]
fn names_are_escaped_everywhere() {
    let page = export(&evil());
    assert!(!page.contains("<img"));
    assert_eq!(count(&page, "</script"), 1);
    assert_eq!(count(&page, "<!--"), 0);
    assert!(page.contains("&lt;img src=x onerror=alert(1)&gt; &amp; &quot;quoted&quot;"));
}

#[test]
fn every_layout_row_and_cell_is_there() {
    let results = common::full();
    let page = export(&results);
    let table = &page[page.find("<table class=\"overview\"").expect("a table")..];
    let table = &table[..table.find("</table>").expect("its end")];
    for layout in &results.layouts {
        assert_eq!(count(table, &format!("<th scope=\"col\">{}", layout.name)), 1);
    }
    assert_eq!(count(table, "baseline"), 1);
    assert!(table.contains("single<small>baseline</small>"));
    assert_eq!(count(table, "<th scope=\"rowgroup\""), 4);
    for label in ["1\u{a0}process<", "2\u{a0}processes<", "4\u{a0}processes<"] {
        assert_eq!(count(table, &format!("<th scope=\"row\">{label}")), 4, "{label}");
    }
    assert_eq!(count(table, "title=\"median "), results.cells.len());
    // Twelve rows; in those of random-read one more may be the best.
    assert_eq!(count(table, "<td class=\"best\""), 12);
    assert_eq!(count(table, "may be the best"), 3);
    for cell in table.split("<td").skip(1) {
        assert_eq!(cell.starts_with(" class=\"best\""), cell.contains("★"), "{cell}");
    }
    assert_eq!(count(&page, "<svg "), 12);
    assert_eq!(count(&page, "role=\"img\" aria-labelledby="), 12);
    assert_eq!(count(&page, "<rect "), results.cells.len());
    assert_eq!(count(&page, "<line class=\"baseline\""), 12);
}

#[test]
fn identifiers_are_unique_and_what_is_referred_to_exists() {
    let page = replay_html(&[common::full(), common::replay()]).expect("a report");
    let values = |attribute: &str| -> Vec<String> {
        let start = format!(" {attribute}=\"");
        page.split(&start)
            .skip(1)
            .map(|part| part[..part.find('"').expect("a quote")].to_owned())
            .collect()
    };
    let mut ids = values("id");
    let all = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all);
    for label in values("aria-labelledby").iter().flat_map(|label| label.split(' ')) {
        assert!(ids.iter().any(|id| id == label), "{label}");
    }
}

#[test]
fn the_document_can_be_read_back_from_the_page() {
    for results in [common::small(), evil()] {
        let page = export(&results);
        let start = "<script type=\"application/json\" id=\"raidlab-results\">";
        let json = &page[page.find(start).expect("the data block") + start.len()..];
        let json = &json[..json.find("</script>").expect("its end")];
        let back: Results = serde_json::from_str(json).expect("the document");
        assert_eq!(back, results);
    }
}

#[test]
fn the_default_study_stays_small() {
    let size = export(&common::full()).len();
    assert!(size < 200_000, "{size} bytes");
}

#[test]
fn bars_lie_within_their_picture() {
    let attribute = |tag: &Tag<'_>, name: &str| -> f64 {
        let start = format!("{name}=\"");
        let value = tag.attributes.split(&start).nth(1).expect("the attribute");
        value[..value.find('"').expect("a quote")].parse().expect("a number")
    };
    for results in [common::full(), common::real()] {
        let page = export(&results);
        let (mut width, mut height, mut below) = (0.0, 0.0, 0.0);
        for tag in tags(&page).iter().filter(|tag| !tag.closes) {
            if tag.name == "svg" {
                let size = tag.attributes.split('"').nth(1).expect("a view box");
                let size: Vec<f64> =
                    size.split(' ').map(|one| one.parse().expect("a number")).collect();
                (width, height, below) = (size[2], size[3], 0.0);
            }
            if tag.name == "rect" {
                assert!(attribute(tag, " y") >= below, "bars overlap");
                below = attribute(tag, " y") + attribute(tag, " height");
                assert!(below < height);
                assert!(attribute(tag, " width") >= 0.0);
                assert!(attribute(tag, " x") + attribute(tag, " width") < width - 90.0);
            }
        }
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
    let start = "<script type=\"application/json\" id=\"raidlab-results\">";
    let json = &page[page.find(start).expect("the data block") + start.len()..];
    let json = &json[..json.find("</script>").expect("its end")];
    let back: raidlab_results::Replays = serde_json::from_str(json).expect("the documents");
    assert_eq!(back.replays, documents);
}
