//! The tests of this crate that boot guests as one program: `cargo xtask test` begins it early, as guests wait.

mod common;
#[path = "../../../tests/support/extent.rs"]
mod extent;
#[path = "../../../tests/support/guest.rs"]
mod guest;
mod held;
mod made;
#[path = "../../../tests/support/power.rs"]
mod power;

mod grub;
mod kernel_md;
mod md_bad_blocks_guest;
mod md_both_ways;
mod md_decisions;
mod md_journal_added_guest;
mod md_journal_guest;
mod md_journal_made_guest;
mod md_journal_unreadable_guest;
mod md_logs_guest;
mod md_ppl_guest;
mod md_replace_guest;
