//! The tests of this crate as one program: each program more is linked and holds the shared parts once more.

mod common;

mod columns;
mod conclusions;
mod diff;
mod document;
mod exports;
mod figures;
mod html;
mod meaning;
mod replay;
mod risk;
mod sheets;
mod spreadsheet;
mod terminal;
mod trust;
mod unsettled;
