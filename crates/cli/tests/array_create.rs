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

/// Gives a member of version 1.2 another name.
fn rename(path: &str, name: &[u8]) {
    change(path, |superblock| {
        superblock[32..64].fill(0);
        superblock[32..32 + name.len()].copy_from_slice(name);
    });
}

/// Changes the superblock of a member of version 1.2, under a checksum that is right.
fn change(path: &str, change: impl FnOnce(&mut [u8])) {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let mut bytes = [0; 1024];
    file.read_exact_at(&mut bytes, 4096).unwrap();
    change(&mut bytes);
    bytes[216..220].fill(0);
    let devices = u32::from_le_bytes(bytes[220..224].try_into().unwrap()) as usize;
    let words = bytes[..256 + 2 * devices].chunks(4);
    let sum: u64 =
        words.map(|word| word.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))).sum();
    let sum = (sum as u32).wrapping_add((sum >> 32) as u32);
    bytes[216..220].copy_from_slice(&sum.to_le_bytes());
    file.write_all_at(&bytes, 4096).unwrap();
}

/// An array that was just made is told from one that was not stopped cleanly, also where a member is missing.
#[test]
fn a_new_array_is_not_called_dirty() {
    for (layout, version) in [
        ("raid6 chunk=64K", "1.2"),
        ("raid1", "1.0"),
        ("raid10 chunk=64K", "1.1"),
        ("raid6 chunk=64K", "0.90"),
    ] {
        let scratch = Scratch::new("array-new");
        let paths = files(&scratch, &["a", "b", "c", "d"]);
        array(&["create", layout, "--metadata", version], &paths).good();
        let text = array(&["status"], &paths).good().stdout;
        let words = "all members there; never synchronised yet, its first resync is pending";
        assert!(text.contains(words) && !text.contains("cleanly"), "{layout}: {text}");
        let document = array(&["status", "--json"], &paths).good().stdout;
        let examined = array(&["examine", "--json"], &paths[..1]).good().stdout;
        for document in [document, examined] {
            assert!(document.contains("\"redundancy\": \"never synchronised\""), "{document}");
        }
        if layout.starts_with("raid6") {
            let ran = array(&["status"], &paths[1..]);
            assert!(ran.stderr.contains("parity was never made"), "{layout}: {ran:?}");
        }
    }
}

/// A filesystem that was made since a member lost its superblock is not taken for nothing, wherever metadata stand.
#[test]
fn metadata_do_not_go_back_over_a_filesystem_unasked() {
    for version in ["0.90", "1.0", "1.1", "1.2"] {
        let scratch = Scratch::new("array-restore-over");
        let paths = files(&scratch, &["a", "b"]);
        let flags = ["create", "raid1", "--assume-clean", "--metadata", version];
        array(&flags, &paths).good();
        let saved = scratch.path().join("saved").to_str().unwrap().to_owned();
        array(&["dump-metadata", "--to", &saved], &paths).good();
        let whole = fs::read(&paths[0]).unwrap();
        let restore = |flags: &[&str]| {
            let words = ["restore-metadata", "--from", &saved, "--destructive"];
            array(&[&words[..], flags].concat(), &paths[..1])
        };
        // The array's own filesystem is no obstacle where the superblock is there, nor is a blank device.
        let at_end = ["0.90", "1.0"].contains(&version);
        let mut own = whole.clone();
        if at_end {
            own[0x438..0x43a].copy_from_slice(&[0x53, 0xef]);
        }
        for bytes in [own, vec![0; whole.len()]] {
            fs::write(&paths[0], bytes).unwrap();
            restore(&[]).good();
        }
        let mut other = vec![0; whole.len()];
        other[0x438..0x43a].copy_from_slice(&[0x53, 0xef]);
        fs::write(&paths[0], &other).unwrap();
        let ran = restore(&[]);
        assert!(ran.code == Some(3) && ran.stderr.contains("--overwrite"), "{ran:?}");
        // With 1.1 it stands where the metadata were.
        let words = "an ext2, ext3 or ext4 filesystem stands at its start";
        assert!(version == "1.1" || ran.stderr.contains(words), "{version}: {ran:?}");
        assert!(ran.stderr.contains("what the array holds") == at_end, "{version}: {ran:?}");
        assert!(fs::read(&paths[0]).unwrap() == other, "something was written");
        restore(&["--overwrite"]).good();
        let found = array(&["status"], &paths).good().stdout;
        assert!(found.contains("all members there"), "{found}");
    }
}

/// The head of a bitmap has no checksum: whatever it says of its length, no data are saved, and none brought back.
#[test]
fn a_damaged_head_of_a_bitmap_brings_no_data_back() {
    for (version, superblock) in [("1.1", 0), ("1.2", 4096)] {
        // Bits of 4 MiB, which are beyond the data's start, and of 4 TiB.
        for (covered, chunk) in [(1_u64 << 42, 64_u32 << 20), (1 << 45, 512)] {
            let scratch = Scratch::new("array-restore-head");
            let paths = files(&scratch, &["a", "b"]);
            let flags = ["--assume-clean", "--bitmap", "internal", "--metadata", version];
            array(&[&["create", "raid1"][..], &flags].concat(), &paths).good();
            let read = |path: &str| fs::read(path).unwrap();
            let mut bytes = read(&paths[0]);
            let word = |at: usize, len: usize| {
                bytes[superblock + at..][..len]
                    .iter()
                    .rev()
                    .fold(0, |all, one| all << 8 | *one as usize)
            };
            let (data, bitmap) = (word(128, 8) * 512, superblock + word(96, 4) * 512);
            assert!(bitmap < data && bytes[bitmap..].starts_with(b"bitm"));
            bytes[bitmap + 40..][..8].copy_from_slice(&covered.to_le_bytes());
            bytes[bitmap + 52..][..4].copy_from_slice(&chunk.to_le_bytes());
            bytes[data..].fill(0x11);
            fs::write(&paths[0], &bytes).unwrap();
            let saved = scratch.path().join("saved").to_str().unwrap().to_owned();
            let ran = array(&["dump-metadata", "--to", &saved], &paths[..1]);
            let kept = read(&format!("{saved}/a"));
            assert!(kept[data..].iter().all(|byte| *byte == 0), "data were saved");
            assert!(kept[bitmap..][..4096] == bytes[bitmap..][..4096], "what was saved of it");
            let words = "which does not fit where it lies: its head may be damaged";
            assert!(ran.code == Some(0) && ran.stderr.contains(words), "{ran:?}");
            bytes[data..].fill(0x22);
            fs::write(&paths[0], &bytes).unwrap();
            let words = ["restore-metadata", "--destructive", "--from", &saved];
            array(&words, &paths[..1]).good();
            assert!(read(&paths[0]) == bytes, "{version}: data were written over");
        }
    }
}

/// Heads of bitmaps that differ are told with the members that have them, and which of these to leave out.
#[test]
fn members_with_other_bitmaps_are_named() {
    let scratch = Scratch::new("array-bitmaps");
    let paths = files(&scratch, &["a", "b", "c"]);
    array(&["create", "raid1", "--assume-clean", "--bitmap", "internal"], &paths).good();
    let mut bytes = fs::read(&paths[1]).unwrap();
    let at = (4096..).step_by(512).find(|at| bytes[*at..].starts_with(b"bitm")).unwrap();
    bytes[at + 40..][..8].copy_from_slice(&2048_u64.to_le_bytes());
    fs::write(&paths[1], &bytes).unwrap();
    let [a, b, c] = [0, 1, 2].map(|place| &paths[place]);
    let ran = array(&["assemble", "--write"], &paths);
    let words = [
        "are not alike",
        &format!("{a} and {c} say a bit for"),
        &format!("{b} says a bit for"),
        &format!("start it without {b}, and add that again"),
    ];
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(words.iter().all(|words| ran.stderr.contains(words)), "{ran:?}");
    // Of two nobody knows which is right.
    let ran = array(&["assemble", "--write", "--run"], &paths[..2]);
    let words = [&format!("{a} says"), &format!("{b} says"), "without those of one kind"];
    assert!(words.iter().all(|words| ran.stderr.contains(words)), "{ran:?}");
    let examined = array(&["examine", "--json"], &paths[1..2]).good().stdout;
    assert!(examined.contains("\"covered_sectors\": 2048"), "{examined}");
}

/// What a copy that was killed left is named with what to do, and left alone.
#[test]
fn what_a_killed_copy_left_is_named() {
    let scratch = Scratch::new("array-part");
    let paths = files(&scratch, &["a", "b"]);
    array(&["create", "raid1", "--assume-clean"], &paths).good();
    let part = scratch.file("copy.part", "left");
    let copy = scratch.path().join("copy").to_str().unwrap().to_owned();
    let given = [&paths[..], &[copy]].concat();
    let words = ["copy.part exists already", "a copy that was killed leaves", "remove it"];
    array(&["export-file", "--quiet"], &given).refused(&words);
    assert_eq!(fs::read(&part).unwrap(), b"left");
    fs::remove_file(&part).unwrap();
    array(&["export-file", "--quiet"], &given).good();
}

/// No name of a disk adds a word to a line of mdadm.conf.
#[test]
fn names_are_one_word_of_the_line_for_mdadm() {
    let scratch = Scratch::new("array-scan-name");
    let paths = files(&scratch, &["a", "b"]);
    array(&["create", "raid1", "--assume-clean"], &paths).good();
    paths.iter().for_each(|path| rename(path, b"h:x y\" devices=/dev/sda"));
    let line = array(&["examine", "--scan"], &paths).good().stdout;
    assert!(line.starts_with("ARRAY /dev/md/x_y__devices=-dev-sda  metadata="), "{line}");
    assert!(line.ends_with(" name='h:x y\" devices=/dev/sda'\n"), "{line}");
    let other = files(&scratch, &["c d"]);
    fs::copy(&paths[0], &other[0]).unwrap();
    let lines = array(&["examine", "--scan", "--verbose"], &other).good().stdout;
    assert!(lines.ends_with(&format!("   devices=\"{}\"\n", other[0])), "{lines}");
}

/// Flags of a member are told in mdadm's words; of space that nothing uses nothing is told where mdadm has no word.
#[test]
fn members_are_told_in_mdadms_words() {
    let scratch = Scratch::new("array-words");
    let paths = files(&scratch, &["a", "b"]);
    array(&["create", "raid1", "--assume-clean"], &paths).good();
    let flags = [
        (0, None),
        (1, Some("write-mostly")),
        (2, Some("failfast")),
        (3, Some("write-mostly failfast")),
    ];
    for (flag, words) in flags {
        change(&paths[0], |superblock| superblock[184] = flag);
        let text = array(&["examine"], &paths[..1]).good().stdout;
        let told = text.lines().find_map(|line| line.strip_prefix("          Flags : "));
        assert_eq!(told, words, "{text}");
        let before = text.find("Update Time").unwrap();
        assert!(told.is_none_or(|_| text[..before].contains("Flags")), "{text}");
    }
    let paths = files(&scratch, &["c", "d"]);
    array(&["create", "raid0", "--metadata", "1.0"], &paths).good();
    let text = array(&["examine"], &paths[..1]).good().stdout;
    assert!(text.contains("Super Offset") && !text.contains("Unused Space"), "{text}");
}

/// Arrays without redundancy have data on all of a device, whatever their superblocks say of a size.
#[test]
fn metadata_that_lie_on_data_bring_none_back() {
    let scratch = Scratch::new("array-restore-data");
    let paths = files(&scratch, &["a", "b"]);
    array(&["create", "raid0"], &paths).good();
    let mut data = 0;
    change(&paths[0], |superblock| {
        data = superblock[128..136].iter().rev().fold(0, |all, one| all << 8 | usize::from(*one));
        // A size of 8 sectors, and a list of bad blocks of as many, 1000 behind the data's start.
        superblock[80..88].copy_from_slice(&8_u64.to_le_bytes());
        superblock[186..188].copy_from_slice(&8_u16.to_le_bytes());
        superblock[188..192].copy_from_slice(&(data as u32 + 1000 - 8).to_le_bytes());
    });
    let fill = |value: u8| {
        let mut bytes = fs::read(&paths[0]).unwrap();
        bytes[data * 512..].fill(value);
        fs::write(&paths[0], &bytes).unwrap();
        bytes
    };
    fill(0x11);
    let saved = scratch.path().join("saved").to_str().unwrap().to_owned();
    array(&["dump-metadata", "--to", &saved], &paths[..1]).good();
    let kept = fs::read(format!("{saved}/a")).unwrap();
    assert!(kept[data * 512..].iter().all(|byte| *byte == 0), "data were saved");
    let bytes = fill(0x22);
    array(&["restore-metadata", "--destructive", "--from", &saved], &paths[..1]).good();
    assert!(fs::read(&paths[0]).unwrap() == bytes, "data were written over");
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

#[test]
fn names_that_could_not_be_used_are_refused() {
    let scratch = Scratch::new("array-name");
    let paths = files(&scratch, &["a", "b"]);
    for (flag, name, words) in [
        ("--name", "a\nb", "--name \"a\\nb\": control characters"),
        ("--name", "a\x1b[31m", "--name \"a\\u{1b}[31m\": control characters"),
        ("--name", "../a", "leave out '/'"),
        ("--name", "", "at least one letter"),
        ("--homehost", "a\tb", "--homehost \"a\\tb\": control characters"),
        ("--homehost", "a/b", "leave out '/'"),
    ] {
        let ran = array(&["create", "raid1", flag, name], &paths);
        assert!(ran.code == Some(2) && ran.stderr.contains(words), "{name:?}: {ran:?}");
    }
    assert!(fs::read(&paths[0]).unwrap().iter().all(|byte| *byte == 0), "nothing was written");
}

/// Each policy is the same as the flags that it stands for, and nothing else goes with it.
#[test]
fn a_policy_is_what_its_flags_are() {
    let scratch = Scratch::new("array-policy");
    let paths = files(&scratch, &["a", "b", "c"]);
    let log = scratch.path().join("log").to_str().unwrap().to_owned();
    fs::write(&log, vec![0; 8 << 20]).unwrap();
    let made = |flags: &[&str]| {
        array(&[&["create", "raid5 chunk=64K", "--overwrite", "--uuid"], flags].concat(), &paths)
    };
    let id = "00112233445566778899aabbccddeeff";
    let aside = |flags: &[&str]| {
        made(&[&[id], flags].concat()).good();
        let document = array(&["examine", "--json"], &paths[..1]).good().stdout;
        // What differs from one creation to the next.
        let is_same = |line: &&str| {
            !["device_uuid", "checksum", "created", "updated", "id\""]
                .iter()
                .any(|key| line.contains(key))
        };
        document.lines().filter(is_same).collect::<Vec<_>>().join("\n")
    };
    let flags: [(&str, &[&str]); 4] = [
        ("resync", &["--bitmap", "none"]),
        ("bitmap", &["--bitmap", "internal"]),
        ("ppl", &["--ppl"]),
        ("journal", &["--write-journal", &log]),
    ];
    let mut seen: Vec<String> = Vec::new();
    for (policy, flags) in flags {
        let besides = if policy == "journal" { flags } else { &[] };
        let by_policy = aside(&[&["--consistency", policy], besides].concat());
        assert_eq!(by_policy, aside(flags), "{policy}");
        assert!(!seen.contains(&by_policy), "{policy} is as another one");
        seen.push(by_policy);
        for (other, flags) in flags_of_others(policy, &log) {
            let ran = made(&[&[id, "--consistency", policy], &flags[..]].concat());
            let words = format!("--consistency {policy} and {other} cannot both be");
            assert!(ran.code == Some(2) && ran.stderr.contains(&words), "{words}: {ran:?}");
        }
    }
    let ran = made(&[id, "--consistency", "journal"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("--write-journal FILE"), "{ran:?}");
}

/// What cannot go with a policy.
fn flags_of_others<'a>(policy: &str, log: &'a str) -> Vec<(&'static str, Vec<&'a str>)> {
    let mut all = vec![
        ("--ppl", vec!["--ppl"]),
        ("--write-journal", vec!["--write-journal", log]),
        ("--bitmap internal", vec!["--bitmap", "internal"]),
    ];
    if policy == "bitmap" {
        all.push(("--bitmap none", vec!["--bitmap", "none"]));
    }
    all.retain(|(flag, _)| match policy {
        "ppl" => *flag != "--ppl",
        "journal" => *flag != "--write-journal",
        "bitmap" => *flag != "--bitmap internal",
        _ => true,
    });
    all
}

#[test]
fn a_new_array_is_told_with_its_size_and_chunk() {
    let scratch = Scratch::new("array-size");
    let paths = files(&scratch, &["a", "b", "c"]);
    for (layout, flags, words) in [
        ("raid5 chunk=64K", &[][..], "the array holds 14MiB, in chunks of 64KiB\n"),
        ("raid5", &["--ppl"], "the array holds 10MiB, in chunks of 512KiB\n"),
        ("raid1", &[], "the array holds 7MiB\n"),
        ("raid0 chunk=1M", &[], "the array holds 15MiB, in chunks of 1MiB\n"),
    ] {
        let ran = array(&[&["create", "--dry-run", layout], flags].concat(), &paths).good();
        assert!(ran.stdout.contains(words), "{ran:?}");
    }
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
