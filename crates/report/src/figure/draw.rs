//! Figures as SVG. Colours come from classes, so that a page's figures follow light and dark; every mark also has its
//! words, for readers of screens and for the page's tooltips.

mod bars;
mod grid;
mod plot;

use maud::{Markup, PreEscaped, html};

use super::model::{Body, Figure, Panel};
use super::palette;

/// Width of a picture in its own units, which are about a pixel each.
pub(super) const WIDTH: f64 = 420.0;
/// Room for a letter of running text.
pub(super) const LETTER: f64 = 6.6;
/// The same of small text.
pub(super) const SMALL: f64 = 6.0;
/// Above each picture of a figure that stands alone.
const HEAD: f64 = 30.0;
/// Above all of them, and for each line of the caption.
const TITLE: f64 = 26.0;
const LINE: f64 = 15.0;

/// What is drawn, and how high it is.
pub(super) struct Drawn {
    pub(super) height: f64,
    pub(super) marks: Markup,
}

fn drawn(body: &Body) -> Drawn {
    match body {
        Body::Bars(bars) => bars::draw(bars),
        Body::Plot(plot) => plot::draw(plot),
        Body::Grid(grid) => grid::draw(grid),
    }
}

/// A panel as a picture within a page.
pub(crate) fn picture(figure: &Figure, panel: &Panel) -> Markup {
    let Drawn { height, marks } = drawn(&panel.body);
    let name = if panel.title.is_empty() || panel.title == figure.title {
        figure.title.clone()
    } else {
        format!("{}: {}", figure.title, panel.title)
    };
    html! {
        svg.fig viewBox=(format!("0 0 {WIDTH} {}", px(height))) role="group" aria-label=(name) { (marks) }
    }
}

impl Figure {
    /// The figure as a file of its own, which asks nothing of any other. It follows light and dark where a browser
    /// shows it, and is light elsewhere.
    pub fn svg(&self) -> String {
        let caption = wrapped(&self.caption, (WIDTH / SMALL) as usize);
        let mut y = TITLE + LINE * caption.len() as f64 + 4.0;
        let mut placed = Vec::new();
        for panel in &self.panels {
            let Drawn { height, marks } = drawn(&panel.body);
            placed.push((panel, y, marks));
            y += HEAD + height + 14.0;
        }
        let more = self.more();
        let height = y + if more.is_some() { LINE + 6.0 } else { 0.0 };
        let (width, height) = (WIDTH + 20.0, px(height));
        let picture = html! {
            svg.fig xmlns="http://www.w3.org/2000/svg" viewBox=(format!("-10 0 {width} {height}"))
                width=(width) height=(height) {
                title { (self.title) }
                desc { (self.caption) }
                style { (PreEscaped(palette::standalone())) }
                rect x="-10" y="0" width=(width) height=(height) class="sheet" {}
                text.head x="0" y="18" { (self.title) }
                @for (at, line) in caption.iter().enumerate() {
                    text.note x="0" y=(px(TITLE + LINE * at as f64 + 8.0)) { (line) }
                }
                @for (panel, y, marks) in placed {
                    g transform=(format!("translate(0 {})", px(y))) {
                        text.head x="0" y="16" { (panel.title) }
                        g transform=(format!("translate(0 {HEAD})")) { (marks) }
                    }
                }
                @if let Some(more) = more { text.note x="0" y=(px(y + 4.0)) { (more) } }
            }
        };
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", picture.into_string())
    }

    /// How many panels are not shown, in words.
    pub(crate) fn more(&self) -> Option<String> {
        (self.left_out > 0).then(|| format!("{} more of these are not drawn here.", self.left_out))
    }
}

/// A coordinate to a tenth of a unit.
pub(crate) fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").map(str::to_owned).unwrap_or(text);
    if text == "-0" { "0".to_owned() } else { text }
}

/// About how wide a text is, at so much a letter.
pub(super) fn width_of(text: &str, letter: f64) -> f64 {
    text.chars().count() as f64 * letter
}

/// A text in lines of at most so many letters, broken at blanks, words behind hyphens and the like, and else anywhere.
pub(super) fn wrapped(text: &str, most: usize) -> Vec<String> {
    let most = most.max(1);
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_inclusive([' ', '-', '_', '=']) {
        let letters: Vec<char> = word.chars().collect();
        let cut = if word.trim_end().chars().count() > most { most } else { letters.len() };
        for piece in letters.chunks(cut) {
            let piece: String = piece.iter().collect();
            let room = most.saturating_sub(piece.trim_end().chars().count());
            match lines.last_mut().filter(|line| line.chars().count() <= room) {
                Some(line) => line.push_str(&piece),
                None => lines.push(piece),
            }
        }
    }
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short() {
        assert_eq!((px(12.0), px(12.34), px(-0.04)), ("12".into(), "12.3".into(), "0".into()));
    }

    #[test]
    fn texts_are_broken_at_blanks_and_hyphens() {
        assert_eq!(wrapped("random-write 4KiB", 8), ["random-", "write", "4KiB"]);
        assert_eq!(wrapped("random-write 4KiB", 30), ["random-write 4KiB"]);
        assert_eq!(wrapped("blocksize_sweep", 10), ["blocksize_", "sweep"]);
        assert_eq!(wrapped("blocksize_sweep", 6), ["blocks", "ize_", "sweep"]);
    }
}
