//! `raidlab array` against mdadm and the md driver of a real kernel: arrays that md made are examined in mdadm's
//! words and read, degraded and dirty too, and no byte of a member changes.

mod ddf;
mod examined;
mod kernel_made;
mod lvm;
mod made;
mod stacked;
mod v0;

use std::fs;
use std::path::Path;

use crate::support::{Scratch, raidlab};

/// A file of zeroes.
fn zeroes(scratch: &Scratch, name: &str, bytes: u64) -> String {
    let path = scratch.file(name, "");
    fs::File::options().write(true).open(&path).unwrap().set_len(bytes).unwrap();
    text(&path)
}

fn text(path: &Path) -> String {
    path.to_str().expect("text").to_owned()
}

#[test]
fn what_is_no_member_is_named() {
    let scratch = Scratch::new("array-none");
    let blank = zeroes(&scratch, "blank", 1 << 20);
    let tiny = zeroes(&scratch, "tiny", 100);
    let missing = text(&scratch.path().join("missing"));
    for (file, words) in
        [(&blank, "no md superblock"), (&tiny, "no md superblock"), (&missing, "No such file")]
    {
        for command in ["examine", "status"] {
            let ran = raidlab(["array", command, file]);
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
            assert!(ran.stderr.contains(words) && ran.stderr.contains(file), "{ran:?}");
        }
    }
    let out = text(&scratch.path().join("out"));
    let ran = raidlab(["array", "export-file", &blank, &out]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let left: Vec<_> =
        fs::read_dir(scratch.path()).unwrap().map(|one| one.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "nothing is left behind: {left:?}");
    // The copy was forgotten, or is to be printed.
    raidlab(["array", "export-file", &blank, &tiny])
        .refused(&[&tiny, "the last name is that of the copy"]);
    raidlab(["array", "export-file", &blank, "-"]).refused(&["name a file"]);
    raidlab(["array", "create", "raid1(2)", &missing, &blank])
        .refused(&[&missing, "truncate -s 1G"]);
    let directory = text(scratch.path());
    raidlab(["array", "examine", &directory]).refused(&["neither a file nor a block device"]);
    raidlab(["array", "status", &blank, "--without", &tiny]).refused(&["not among the members"]);
}
