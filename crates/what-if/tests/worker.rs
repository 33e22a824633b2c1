//! The page's worker beside programs that fail: whatever ends one, the page hears of it, and of nothing behind it.

use std::process::Command;

use crate::root::skip;

#[test]
fn whatever_ends_the_program_the_page_is_told() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/");
    let path = |name: &str| format!("{directory}{name}");
    let node =
        Command::new("node").args([path("tests/worker.mjs"), path("page/worker.js")]).output();
    let node = match node {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return skip("whatever_ends_the_program_the_page_is_told", "node is not installed");
        }
        node => node.expect("node runs"),
    };
    let told = String::from_utf8_lossy(&node.stdout);
    let expected = "7:plan 7:answer 7:answer 7:done\n7:plan 7:answer\n7:plan 7:defect\n7:defect\n";
    assert!(told == expected, "{told}{}", String::from_utf8_lossy(&node.stderr));
}
