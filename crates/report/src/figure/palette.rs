//! Colours of figures and pages, in one table, and the style sheet of figures made from them.
//!
//! Series have the colours of Okabe and Ito (2008), which people with any colour vision tell apart; besides each series
//! has a marker and a dash of its own, and bars carry their numbers.

/// A colour: its name in style sheets, on light and on dark paper.
pub(crate) const COLOURS: [(&str, &str, &str); 19] = [
    ("paper", "#ffffff", "#14181d"),
    ("ink", "#1b1f24", "#e6eaee"),
    ("soft", "#57606a", "#a0a9b3"),
    ("rule", "#d8dde3", "#363d46"),
    ("tint", "#f0f6fb", "#1d3040"),
    ("faster", "#0072b2", "#56b4e9"),
    ("slower", "#b84a00", "#f0a348"),
    ("slower-bar", "#d55e00", "#e69f00"),
    ("same", "#8a929b", "#7d8690"),
    ("c0", "#0072b2", "#56a9e9"),
    ("c1", "#d55e00", "#f07b2d"),
    ("c2", "#007a59", "#2bc79a"),
    ("c3", "#b0508a", "#dd8fbd"),
    ("c4", "#a06f00", "#f0b429"),
    ("c5", "#3d9fd6", "#8fd3fa"),
    ("c6", "#1b1f24", "#e6eaee"),
    ("c7", "#6b7480", "#9aa4ae"),
    ("heat", "#0072b2", "#3d9fd6"),
    ("parity", "#e69f00", "#b87f00"),
];

/// How many colours series have.
pub(super) const SERIES: usize = 8;

/// What figures look like, by the names of the colours.
pub(crate) const STYLE: &str = include_str!("style.css");

/// The colours as properties of a page: those of light paper, and those of dark on a screen that is.
pub(crate) fn properties() -> String {
    let of = |pick: fn(&(&str, &'static str, &'static str)) -> &'static str| -> String {
        COLOURS.iter().map(|colour| format!("--{}:{};", colour.0, pick(colour))).collect()
    };
    let (light, dark) = (of(|colour| colour.1), of(|colour| colour.2));
    format!(":root{{{light}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n")
}

/// The style of a figure that stands alone: programs that draw SVG outside of browsers know no properties.
pub(super) fn standalone() -> String {
    let with = |pick: fn(&(&str, &'static str, &'static str)) -> &'static str| {
        // Longer names first, as some begin with others.
        let mut colours: Vec<_> = COLOURS.iter().collect();
        colours.sort_by_key(|colour| std::cmp::Reverse(colour.0.len()));
        colours.into_iter().fold(STYLE.to_owned(), |style, colour| {
            style.replace(&format!("var(--{})", colour.0), pick(colour))
        })
    };
    let (light, dark) = (with(|colour| colour.1), with(|colour| colour.2));
    format!("{light}@media (prefers-color-scheme:dark){{\n{dark}}}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance, WCAG 2.1; the exponent 2.4 taken as the product of squares is near enough at this distance.
    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| {
            let value = u8::from_str_radix(&colour[at..at + 2], 16).expect("hexadecimal");
            let share = f64::from(value) / 255.0;
            if share <= 0.040_45 { share / 12.92 } else { libm::pow((share + 0.055) / 1.055, 2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn text_and_lines_stand_out_from_the_paper() {
        let of = |name: &str| COLOURS.iter().find(|one| one.0 == name).expect("a colour");
        let paper = of("paper");
        for (name, least) in [("ink", 7.0), ("soft", 4.5), ("faster", 4.5), ("slower", 4.5)] {
            let colour = of(name);
            assert!(contrast(colour.1, paper.1) >= least, "{name}, light");
            assert!(contrast(colour.2, paper.2) >= least, "{name}, dark");
        }
        for colour in COLOURS.iter().filter(|one| one.0.starts_with('c')) {
            assert!(contrast(colour.1, paper.1) >= 2.9, "{}, light", colour.0);
            assert!(contrast(colour.2, paper.2) >= 3.0, "{}, dark", colour.0);
        }
    }

    #[test]
    fn a_figure_alone_has_no_properties() {
        let style = standalone();
        assert!(!style.contains("var("), "{style}");
        assert!(style.contains("#0072b2") && style.contains("#56a9e9"));
    }
}
