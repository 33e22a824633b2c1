//! `raidlab array create` and the other commands to arrays that do not run: names, policies, copies of metadata.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use crate::support::{Ran, Scratch, raidlab};

/// Files of zeroes.
fn files(scratch: &Scratch, names: &[&str]) -> Vec<String> {
    let path = |name: &&str| scratch.path().join(name).to_str().expect("text").to_owned();
    let paths: Vec<String> = names.iter().map(path).collect();
    paths.iter().for_each(|path| fs::write(path, vec![0; 8 << 20]).unwrap());
    paths
}

/// `raidlab array` with these words, then these paths.
fn array(words: &[&str], paths: &[String]) -> Ran {
    let words = words.iter().map(|word| (*word).to_owned());
    raidlab(std::iter::once("array".to_owned()).chain(words).chain(paths.iter().cloned()))
}

/// Gives a member of version 1.2 another name, under a checksum that is right.
fn rename(path: &str, name: &[u8]) {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let mut bytes = [0; 1024];
    file.read_exact_at(&mut bytes, 4096).unwrap();
    bytes[32..64].fill(0);
    bytes[32..32 + name.len()].copy_from_slice(name);
    bytes[216..220].fill(0);
    let devices = u32::from_le_bytes(bytes[220..224].try_into().unwrap()) as usize;
    let words = bytes[..256 + 2 * devices].chunks(4);
    let sum: u64 =
        words.map(|word| word.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))).sum();
    let sum = (sum as u32).wrapping_add((sum >> 32) as u32);
    bytes[216..220].copy_from_slice(&sum.to_le_bytes());
    file.write_all_at(&bytes, 4096).unwrap();
}

/// No name from a superblock reaches the terminal, or mdadm.conf, as it is there.
#[test]
fn names_of_superblocks_are_escaped_wherever_they_are_printed() {
    let scratch = Scratch::new("array-names");
    let own = files(&scratch, &["a", "b"]);
    let other = files(&scratch, &["c", "d"]);
    for paths in [&own, &other] {
        array(&["create", "raid1", "--assume-clean"], paths).good();
        paths.iter().for_each(|path| rename(path, b"h\x1b[2J:a\nDEVICE b\x1b[31m"));
    }
    let escaped = r"h\u{1b}[2J:a\nDEVICE b\u{1b}[31m";
    let both: Vec<String> = own.iter().chain(&other).cloned().collect();
    let saved = scratch.path().join("saved").to_str().unwrap().to_owned();
    array(&["dump-metadata", "--to", &saved], &own).good();
    for ran in [
        array(&["examine"], &own),
        array(&["examine", "--scan"], &own),
        array(&["examine", "--scan", "--verbose"], &own),
        array(&["status"], &own),
        array(&["status"], &both),
        array(&["create", "raid1"], &own),
        array(&["restore-metadata", "--overwrite", "--from", &saved], &own),
    ] {
        let text = ran.stdout.clone() + &ran.stderr;
        assert!(text.contains(escaped), "{ran:?}");
        assert!(!text.contains('\x1b') && !text.contains("\nDEVICE"), "{ran:?}");
    }
    assert_eq!(array(&["examine", "--scan"], &own).good().stdout.lines().count(), 1);
}

/// Copies of metadata do not replace each other, and nothing is written before that is known.
#[test]
fn saved_metadata_are_each_a_file_of_their_own() {
    let scratch = Scratch::new("array-dump");
    fs::create_dir(scratch.path().join("dup")).unwrap();
    let paths = files(&scratch, &["a", "dup/a"]);
    array(&["create", "raid1", "--assume-clean"], &paths).good();
    let saved = scratch.path().join("saved").to_str().unwrap().to_owned();
    let dump = |paths: &[String]| array(&["dump-metadata", "--to", &saved], paths);
    let ran = dump(&paths);
    assert!(ran.code == Some(2) && ran.stderr.contains("have the same file name"), "{ran:?}");
    assert!(fs::metadata(&saved).is_err(), "nothing was written");
    let blank = files(&scratch, &["blank"]);
    assert_eq!(dump(&[paths[0].clone(), blank[0].clone()]).code, Some(1));
    assert!(fs::metadata(&saved).is_err(), "nothing was written");
    dump(&paths[..1]).good();
    let ran = dump(&[blank[0].clone(), paths[0].clone()]);
    assert!(ran.code == Some(3) && ran.stderr.contains("exists already: name another"), "{ran:?}");
    assert_eq!(fs::read_dir(&saved).unwrap().count(), 1);
}

/// Metadata go back where they were lost; over anything else only when told.
#[test]
fn metadata_go_back_over_other_data_only_when_told() {
    let scratch = Scratch::new("array-restore");
    let paths = files(&scratch, &["a", "b"]);
    array(&["create", "raid1", "--assume-clean", "--bitmap", "internal"], &paths).good();
    let saved = scratch.path().join("saved").to_str().unwrap().to_owned();
    array(&["dump-metadata", "--to", &saved], &paths).good();
    let whole = fs::read(&paths[0]).unwrap();
    let restore = |flags: &[&str]| {
        let words = ["restore-metadata", "--from", &saved, "--destructive"];
        array(&[&words[..], flags].concat(), &paths[..1])
    };
    // Over what is there, over zeroes with a bitmap that is newer, and over a bitmap alone.
    let mut lost = whole.clone();
    lost[4096..8192].fill(0);
    let mut newer = lost.clone();
    newer[8192 + 24] ^= 1;
    for bytes in [&whole, &lost, &newer] {
        fs::write(&paths[0], bytes).unwrap();
        restore(&[]).good();
        assert!(fs::read(&paths[0]).unwrap() == whole);
    }
    let other = |at: usize| {
        let mut bytes = lost.clone();
        bytes[at..at + 512].fill(7);
        bytes
    };
    for bytes in [other(4096), other(8192), vec![9; whole.len()]] {
        fs::write(&paths[0], &bytes).unwrap();
        let ran = restore(&[]);
        assert!(ran.code == Some(3) && ran.stderr.contains("--overwrite"), "{ran:?}");
        assert!(fs::read(&paths[0]).unwrap() == bytes, "nothing was written");
    }
    restore(&["--overwrite"]).good();
    // A member of another array.
    let both = files(&scratch, &["a", "b"]);
    array(&["create", "raid1", "--assume-clean"], &both).good();
    let ran = restore(&[]);
    assert!(ran.code == Some(3) && ran.stderr.contains("of another md array"), "{ran:?}");
    restore(&["--overwrite"]).good();
}
