//! How far predicted figures can be trusted, in words: what the document says of each cell, once for those alike.

use raidlab_results::document::{Cell, Verdict};
use raidlab_results::trust::CellTrust;

use crate::number;
use crate::shown;
use crate::view::View;

/// Above the lines.
pub(crate) const TITLE: &str = "How far to trust this";
/// What the lines are about, and what not.
pub(crate) const ABOUT: &str = "The modelled host against a Linux kernel on equal drives, by cells that both \
                                ran; how far these drives are from real ones is apart.";

/// Figures of which the same is known.
pub(crate) struct Known {
    /// Which figures: `dd-write 6MiB, random-write 4KiB, healthy`.
    pub(crate) title: String,
    /// What is known of them.
    pub(crate) text: String,
}

/// What is known of all figures that are shown, each thing once.
pub(crate) fn lines(view: &View<'_>) -> Vec<Known> {
    let mut found: Vec<(Kind<'_>, Vec<String>, Vec<&Cell>)> = Vec::new();
    for section in &view.sections {
        for row in &section.rows {
            for cell in row.cells.iter().flatten() {
                let Some(trust) = &cell.trust else { continue };
                let title = match row.state {
                    "healthy" | "" => section.title.clone(),
                    state => format!("{} {state}", section.title),
                };
                let kind = Kind::new(trust);
                let at = found.iter().position(|(one, ..)| *one == kind).unwrap_or_else(|| {
                    found.push((kind, Vec::new(), Vec::new()));
                    found.len() - 1
                });
                if !found[at].1.contains(&title) {
                    found[at].1.push(title);
                }
                found[at].2.push(cell);
            }
        }
    }
    let known = |(at, (kind, titles, cells)): (usize, &(Kind<'_>, Vec<String>, Vec<&Cell>))| {
        let others = found.iter().enumerate().filter(|(other, _)| *other != at);
        // Of a row of which not all is alike it is said whose figures are meant.
        let is_shared = |title: &String| others.clone().any(|(_, one)| one.1.contains(title));
        let of = if titles.iter().any(is_shared) { layouts(cells) } else { String::new() };
        let title = if found.len() == 1 && titles.len() > MOST_NAMED {
            "all figures".to_owned()
        } else {
            some(titles)
        };
        Known { title: format!("{title}{of}"), text: kind.text(cells) }
    };
    found.iter().enumerate().map(known).collect()
}

/// How many titles, or layouts, are named.
const MOST_NAMED: usize = 6;

fn some(names: &[String]) -> String {
    match names.len().checked_sub(MOST_NAMED) {
        Some(more) if more > 0 => {
            format!("{} and {} more", names[..MOST_NAMED - 1].join(", "), more + 1)
        }
        _ => names.join(", "),
    }
}

/// The layouts of cells, in brackets.
fn layouts(cells: &[&Cell]) -> String {
    let mut names: Vec<String> = Vec::new();
    for cell in cells {
        if !names.contains(&cell.layout) {
            names.push(cell.layout.clone());
        }
    }
    format!(" ({})", some(&names))
}

/// What is alike of cells.
#[derive(PartialEq)]
enum Kind<'a> {
    NotChecked(&'a str),
    Checked { group: &'a str, cells: usize, floor: Option<u32> },
}

impl<'a> Kind<'a> {
    fn new(trust: &'a CellTrust) -> Self {
        match &trust.not_checked {
            Some(reason) => Self::NotChecked(reason),
            None => Self::Checked {
                group: trust.group.as_deref().unwrap_or_default(),
                cells: trust.cells.unwrap_or(0),
                floor: trust.floor_percent,
            },
        }
    }

    fn text(&self, alike: &[&Cell]) -> String {
        let Self::Checked { group, cells, floor } = self else {
            let Self::NotChecked(reason) = self else { return String::new() };
            return (*reason).to_owned();
        };
        let mut text = match alike.iter().find_map(|cell| ends_percent(cell)) {
            None => String::new(),
            Some([low, high]) => format!(
                "a kernel's figure lies within {} to {} of these 90 of 100 times",
                number::percent(low),
                number::percent(high)
            ),
        };
        text.push_str(&format!(" (by {}: {group})", number::counted(*cells, "cell")));
        match floor {
            Some(floor) => {
                text.push_str(&format!("; differences below {floor} % are not resolved"));
            }
            None => text.push_str("; no difference is resolved"),
        }
        let shown = alike
            .iter()
            .filter(|cell| matches!(cell.verdict, Some(Verdict::Faster | Verdict::Slower)));
        let signs = shown.filter_map(|cell| cell.trust.as_ref()?.sign_of_100);
        if let Some(least) = signs.min() {
            text.push_str(&format!(
                ", and of 100 as large as those shown at least {least} have their sign"
            ));
        }
        text
    }
}

/// The ends of the interval in percent of the median.
fn ends_percent(cell: &Cell) -> Option<[f64; 2]> {
    let ends = cell.trust.as_ref()?.interval90.filter(|_| cell.median > 0.0)?;
    Some(ends.map(|end| (end / cell.median - 1.0) * 100.0))
}

/// Of one cell: `a kernel's 90 of 100 times 640..880; of 100 such differences 97 have this sign`.
pub(crate) fn of_cell(cell: &Cell) -> Option<String> {
    let trust = cell.trust.as_ref()?;
    let Some([low, high]) = trust.interval90 else { return trust.not_checked.clone() };
    let mut text = format!("a kernel's 90 of 100 times {}", shown::range(cell, (low, high)));
    if let Some(sign) = trust.sign_of_100 {
        text.push_str(&format!("; of 100 such differences {sign} have this sign"));
    }
    Some(text)
}
