//! Tables of coloured fields.

use maud::html;

use super::{Drawn, SMALL, WIDTH, px, width_of, wrapped};
use crate::figure::model::Grid;

/// Height of a field.
const FIELD: f64 = 24.0;
/// Between the lines of a head.
const LINE: f64 = 12.0;
/// Room for a letter of a name: names such as `raid10(4) chunk=256K` have wider ones than running text.
const NAME_LETTER: f64 = 7.0;
/// The widest field.
const WIDEST: f64 = 92.0;

pub(super) fn draw(grid: &Grid) -> Drawn {
    let names = grid.rows.iter().map(|(name, _)| width_of(name, NAME_LETTER));
    let left = (names.fold(0.0, f64::max) + 8.0).min(170.0);
    let width = ((WIDTH - left - 2.0) / grid.columns.len().max(1) as f64).min(WIDEST);
    let letters = ((width - 2.0) / SMALL) as usize;
    let heads: Vec<Vec<String>> = grid.columns.iter().map(|head| wrapped(head, letters)).collect();
    let lines = heads.iter().map(Vec::len).max().unwrap_or(0) as f64;
    let top = LINE * lines + 6.0;
    let x = |column: usize| left + width * column as f64;
    let y = |row: usize| top + FIELD * row as f64;
    let bottom = y(grid.rows.len());
    let marks = html! {
        @for (column, head) in heads.iter().enumerate() {
            @for (at, line) in head.iter().enumerate() {
                @let height = top - 6.0 - LINE * (head.len() - at - 1) as f64;
                text.tick.mid x=(px(x(column) + width / 2.0)) y=(px(height)) { (line) }
            }
        }
        @for (row, (name, fields)) in grid.rows.iter().enumerate() {
            text.end x=(px(left - 6.0)) y=(px(y(row) + 16.0)) { (name) }
            @for (column, field) in fields.iter().enumerate() {
                @if let Some(field) = field {
                    g role="img" aria-label=(field.words) {
                        rect class=(if field.parity { "par" } else { "cell" }) x=(px(x(column)))
                            y=(px(y(row))) width=(px(width)) height=(FIELD)
                            fill-opacity=(format!("{:.2}", 0.04 + 0.46 * field.share)) {}
                        text.mid x=(px(x(column) + width / 2.0)) y=(px(y(row) + 16.0)) { (field.text) }
                    }
                } @else {
                    rect.none x=(px(x(column))) y=(px(y(row))) width=(px(width)) height=(FIELD) {}
                }
            }
        }
        @if !grid.legend.is_empty() {
            @for (at, line) in wrapped(&grid.legend, (WIDTH / SMALL) as usize).iter().enumerate() {
                text.note x="0" y=(px(bottom + 16.0 + 14.0 * at as f64)) { (line) }
            }
        }
    };
    let legend = wrapped(&grid.legend, (WIDTH / SMALL) as usize).len() as f64;
    Drawn {
        height: bottom + 6.0 + if grid.legend.is_empty() { 0.0 } else { 14.0 * legend + 4.0 },
        marks,
    }
}
