//! How likely data are lost, on a page.

use maud::{Markup, html};

use crate::risk::{self, Entry, Table};
use crate::view::View;

/// The section; nothing where the document says nothing of it.
pub(super) fn section(view: &View<'_>) -> Markup {
    let Some(risks) = risk::of(view) else { return html! {} };
    html! {
        section {
            h2 { (risk::TITLE) }
            p { strong { (risk::scope(risks)) } }
            @for table in risk::tables(risks) { (one(&table)) }
            @for told in risk::left_out(risks) { p.note { (told) } }
        }
    }
}

fn one(table: &Table<'_>) -> Markup {
    html! {
        div.scroll role="region" aria-label=(risk::TITLE) tabindex="0" {
            table.diff.risk {
                thead { tr { td {} @for head in &table.heads { th scope="col" { (head) } } } }
                tbody {
                    @for (name, cells) in &table.rows {
                        tr {
                            th scope="row" { (name) }
                            @for (head, told) in table.heads.iter().zip(cells) { (cell(head, told)) }
                        }
                    }
                }
            }
        }
        ul.remarks {
            @for (what, words) in &table.notes { li { strong { (what) ": " } (words) } }
        }
    }
}

fn cell(head: &str, told: &Entry) -> Markup {
    html! {
        td data-head=(head) {
            (told.about)
            @if let Some(between) = &told.between { " " small { (between) } }
        }
    }
}
