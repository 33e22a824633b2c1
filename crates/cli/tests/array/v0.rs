//! Superblocks of version 0.90: shown in mdadm's words, and refused by name where they cannot be used.

use std::process::Command;

use raidlab_metadata::md::{Superblock, inspect};
use raidlab_metadata::{Source, Unreadable};

use super::examined::Numbers;
use super::text;
use crate::guest::guest_or_skip;
use crate::images::{self, AT, NAMES};
use crate::support::{Scratch, command, raidlab};

#[test]
fn what_mdadm_printed_is_printed() {
    let scratch = Scratch::new("array-v0");
    for name in NAMES {
        let path = text(&scratch.file(name, images::device(name)));
        let shown = raidlab(["array", "examine", &path]).good().stdout;
        assert_eq!(shown, images::examined(name, &path), "{name}");
    }
    let [five, spare, big] = ["five", "spare", "big"].map(|name| text(&scratch.path().join(name)));
    let lines = raidlab(["array", "examine", "--scan", &big, &five, &spare]).good().stdout;
    assert_eq!(
        lines,
        "ARRAY /dev/md5 UUID=ac6a88ec:5ea111c2:c7780c0e:bc15422d\n   spares=1\n\
         ARRAY /dev/md2 UUID=c0a6eedb:eada4691:fb428d18:f68b8dd7\n"
    );
    let lines = raidlab(["array", "examine", "--scan", "--verbose", &five, &spare]).good().stdout;
    let head =
        "ARRAY /dev/md5 level=raid5 num-devices=3 UUID=ac6a88ec:5ea111c2:c7780c0e:bc15422d\n";
    assert_eq!(lines, format!("{head}   spares=1   devices={five},{spare}\n"));
    let json = raidlab(["array", "examine", "--json", &big, &spare]).good().stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let of = |member: usize, key: &str| json["members"][member][key].clone();
    assert_eq!((of(0, "version"), of(0, "device_uuid")), ("0.90".into(), serde_json::Value::Null));
    assert_eq!(of(0, "version_0_90")["byte_order"], "big-endian");
    assert_eq!((of(1, "role_name"), of(1, "name")), ("spare".into(), "md5".into()));
    assert_eq!(of(1, "version_0_90")["devices"][3]["state"], "spare");
}

#[test]
fn what_cannot_be_used_says_why() {
    let scratch = Scratch::new("array-v0-not");
    type Change = fn(&mut Vec<u8>);
    let whole_disk: Change = |bytes| {
        bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
        (bytes[450], bytes[455], bytes[459]) = (0xfd, 8, 0x38);
    };
    let cases: [(&str, Change, &str); 4] = [
        ("disk", whole_disk, "lies within a partition of this disk"),
        ("cut", |bytes| bytes.truncate(AT + 4096), "no md superblock"),
        ("minor", |bytes| bytes[AT + 8] = 92, "of version 0.92, of which only 0.90 and 0.91"),
        ("members", |bytes| bytes[AT + 40] = 28, "28 members, 1 to 27 are possible"),
    ];
    for (name, change, words) in cases {
        let mut bytes = images::device("five");
        change(&mut bytes);
        if name == "members" {
            let sum = seen(&bytes).1;
            bytes[AT + 152..AT + 156].copy_from_slice(&sum.to_le_bytes());
        }
        let path = text(&scratch.file(name, &bytes));
        let ran = raidlab(["array", "status", &path]);
        assert_eq!(ran.code, Some(1), "{name}: {ran:?}");
        assert!(ran.stderr.contains(words) && ran.stderr.contains(&path), "{name}: {ran:?}");
    }
    let path = text(&scratch.file("reshaped", images::device("reshaped")));
    let ran = raidlab(["array", "status", &path]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("a reshape of it was interrupted"), "{ran:?}");
}

/// A device in memory.
struct Disk<'a>(&'a [u8]);

impl Source for Disk<'_> {
    fn sectors(&self) -> raidlab_core::Sectors {
        raidlab_core::Sectors(self.0.len() as u64 / 512)
    }

    fn logical_block(&self) -> u32 {
        1
    }

    fn read(&mut self, at: raidlab_core::Sector, into: &mut [u8]) -> Result<(), Unreadable> {
        let from = at.bytes() as usize;
        into.copy_from_slice(self.0.get(from..from + into.len()).ok_or(Unreadable)?);
        Ok(())
    }
}

/// The superblock of a device, and its checksum.
fn seen(bytes: &[u8]) -> (Superblock, u32) {
    let found = inspect(&mut Disk(bytes));
    let one = found.seen.first().expect("a superblock");
    (one.superblock.clone(), one.checksums.1)
}

/// As mdadm prints it today, of superblocks that no kernel would write.
#[test]
fn superblocks_of_all_kinds_are_shown_in_mdadms_words() {
    if guest_or_skip("superblocks_of_all_kinds_are_shown_in_mdadms_words").is_none() {
        return;
    }
    let scratch = Scratch::new("array-v0-all");
    let mut numbers = Numbers(21);
    let levels = [
        (-1, 0),
        (0, 0),
        (1, 0),
        (4, 0),
        (5, 2),
        (5, 0),
        (6, 9),
        (10, 0x102),
        (10, 0x201),
        (10, 0x1_0201),
    ];
    let mut paths = Vec::new();
    for number in 0..60 {
        let name = numbers.one_of(&["five", "ten", "dirty", "reshaped"]);
        let (mut one, _) = seen(&images::device(name));
        (one.level, one.layout) = numbers.one_of(&levels);
        if name == "reshaped" {
            one.reshape.level = numbers.one_of(&levels).0;
            let layouts = if one.level == 10 { [0x102, 0x201, 0x1_0201] } else { [0, 1, 2] };
            one.reshape.layout = numbers.one_of(&layouts);
            one.reshape.chunk = numbers.one_of(&[8, 128, 1024]);
            one.reshape.delta = numbers.one_of(&[-1, 0, 1]);
            one.reshape.position = numbers.next() % 10_000_000_000;
        }
        (one.created, one.updated) =
            (numbers.next() % 4_000_000_000, numbers.next() % 4_000_000_000);
        (one.chunk, one.members) = (numbers.one_of(&[8, 128, 1024]), numbers.one_of(&[4, 6, 20]));
        one.events = numbers.next() % (1 << 40);
        let v0 = one.v0.as_mut().expect("of this version");
        (v0.patch, v0.md_minor) = (numbers.next() as u32 % 100, numbers.next() as u32 % 200);
        v0.size = numbers.one_of(&[4000, 5000, 8128, 3_000_000, 2_000_000_000]);
        // Of a bitmap that is not there mdadm says that the superblock names none, and that its checksum is wrong.
        v0.state = numbers.one_of(&[0, 1, 2, 3]);
        v0.counts[3] = numbers.one_of(&[0, 1, 3]);
        for device in v0.table.iter_mut().take(6) {
            device.state = numbers.one_of(&[device.state, 0, 1, 2, 6, 8, 9, 512, 1536, 518]);
        }
        let mut bytes = images::device(name);
        one.emit(&mut bytes[AT..]).unwrap();
        if number % 8 == 0 {
            // A wrong checksum is shown.
            bytes[AT + 152] ^= 0x10;
        }
        paths.push(text(&scratch.file(&format!("m{number:02}"), bytes)));
    }
    let mdadm = Command::new("mdadm").arg("--examine").args(&paths).env("TZ", "UTC").output();
    let expected = String::from_utf8(mdadm.unwrap().stdout).unwrap();
    let ours = command().args(["array", "examine"]).args(&paths).output().unwrap();
    let ours = String::from_utf8(ours.stdout).unwrap();
    for (ours, expected) in ours.split("\n/").zip(expected.split("\n/")) {
        assert_eq!(ours, expected);
    }
    assert_eq!(ours.len(), expected.len());
}

/// By its path, by links, and by a path that goes round: one member, and so many copies.
#[test]
fn a_member_that_is_given_twice_is_one() {
    let scratch = Scratch::new("array-v0-twice");
    let [one, two] = ["one", "two"].map(|name| text(&scratch.file(name, vec![0; 4 << 20])));
    let create = ["array", "create", "raid1", "--metadata", "0.90", "--assume-clean", &one, &two];
    raidlab(create).good();
    let named = |name: &str| text(&scratch.path().join(name));
    let (soft, hard, round) = (named("soft"), named("hard"), named("./one"));
    std::os::unix::fs::symlink(&one, &soft).unwrap();
    std::fs::hard_link(&one, &hard).unwrap();
    let all = [&one, &soft, &two, &hard, &round, &one];
    let words = ["array", "status", "--json"].into_iter();
    let shown = raidlab(words.chain(all.map(String::as_str))).good().stdout;
    let json: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(json["missing"], serde_json::json!([]), "{json}");
    let out = json["not_used"].as_array().unwrap();
    let copy = |one: &serde_json::Value| {
        one.to_string().contains("the same device as number 1 of those given")
    };
    assert!(out.len() == 4 && out.iter().all(copy), "{json}");
}
