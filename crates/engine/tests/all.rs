//! The tests of this crate as one program: each program more is linked and holds the shared parts once more. What needs
//! a process for itself stays apart, and what boots guests is in `guests`.

mod common;
#[path = "../../../tests/support/extent.rs"]
mod extent;
#[path = "../examples/files.rs"]
mod files_example;
mod held;
mod made;
#[path = "../../../tests/support/power.rs"]
mod power;
#[path = "../../../tests/support/root.rs"]
mod root;

mod claims;
mod cut_short;
mod devices;
mod engine;
mod full;
mod geom;
mod geom_crash;
mod hostile;
mod losses;
mod lower_arrays;
mod md;
mod md_bitmap;
mod md_bitmap_power;
mod md_crash;
mod md_journal;
mod md_journal_added;
mod md_journal_replay;
mod md_journal_unreadable;
mod md_list_parts;
mod md_new;
mod md_ppl;
mod md_refused;
mod md_replace;
mod members;
mod metadata;
mod own_members;
mod read_only;
mod scrub;
