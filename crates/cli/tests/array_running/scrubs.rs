//! Checks and repairs of arrays whose redundancy was spoiled.

use serde_json::Value;

use super::*;

/// What P, Q and copies are compared by.
const BLOCK: u64 = 4096;
const CHUNK: u64 = 64 << 10;

/// Where spoiling is to lie: the member, and the byte of its data.
type At = (usize, u64);

/// An array of random data with consistent redundancy, which does not run.
struct Filled {
    harness: Harness,
    devices: Vec<String>,
    /// The byte of each member where its data start.
    start: u64,
}

impl Filled {
    fn new(name: &str, layout: &str, members: usize) -> Self {
        let flags = ["--assume-clean", "--bitmap", "none"];
        let harness = Harness::new(name, layout, members, &flags);
        let devices: Vec<String> = (0..members).map(|member| member.to_string()).collect();
        let paths = devices.iter().map(|device| harness.path(device));
        let status = ["array".into(), "status".into(), "--json".into()];
        let status = raidlab(status.into_iter().chain(paths).collect::<Vec<String>>()).good();
        let status: Value = serde_json::from_str(&status.stdout).unwrap();
        let starts = status["members"].as_array().unwrap().iter();
        let starts: Vec<_> = starts.map(|one| one["data_offset_sectors"].as_u64()).collect();
        let start = 512 * starts[0].unwrap();
        assert!(starts.iter().all(|one| *one == starts[0]));
        let filled = Self { harness, devices, start };
        for member in 0..members {
            filled.spoil((member, 0), 8 * MIB - start);
        }
        let run = filled.run();
        filled.harness.ask("repair", &[]).good();
        filled.harness.stop(run);
        filled
    }

    fn run(&self) -> Run {
        let devices: Vec<&str> = self.devices.iter().map(String::as_str).collect();
        self.harness.assemble(&devices, &["--write"])
    }

    /// Writes other random bytes to a member, from there on.
    fn spoil(&self, (member, at): At, len: u64) {
        use std::os::unix::fs::FileExt;
        let mut number = at + member as u64;
        let mut next = || {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(len | 1);
            (number >> 56) as u8
        };
        let bytes: Vec<u8> = (0..len).map(|_| next()).collect();
        let file = self.harness.path(&self.devices[member]);
        let file = fs::File::options().write(true).open(file).unwrap();
        file.write_all_at(&bytes, self.start + at).unwrap();
    }

    /// What each member holds of data and parity.
    fn data(&self) -> Vec<Vec<u8>> {
        let devices: Vec<&str> = self.devices.iter().map(String::as_str).collect();
        let mut bytes = self.harness.bytes(&devices);
        bytes.iter_mut().for_each(|one| drop(one.drain(..self.start as usize)));
        bytes
    }

    /// Blocks in which the members hold something else than they did.
    fn changed(&self, before: &[Vec<u8>]) -> Vec<At> {
        let mut changed = Vec::new();
        for (member, (now, then)) in self.data().iter().zip(before).enumerate() {
            let blocks = now.chunks(BLOCK as usize).zip(then.chunks(BLOCK as usize));
            let differ = blocks.enumerate().filter(|(_, (now, then))| now != then);
            changed.extend(differ.map(|(block, _)| (member, block as u64 * BLOCK)));
        }
        changed
    }
}

/// What a command found, by its JSON.
fn found(ran: &Ran, keys: &[&str]) -> Vec<u64> {
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    keys.iter().map(|key| document[key].as_u64().unwrap()).collect()
}

const FOUND: [&str; 3] = ["mismatched_sectors", "mended_sectors", "lost_sectors"];
const BY_BOTH: [&str; 3] = ["--trust", "parity-and-data", "--json"];

/// Where P and Q together name a block, that is mended, be it data or parity; what they cannot name stays. Without
/// being told so, parity follows what members hold, as it does with md.
#[test]
fn a_raid6_is_mended_by_what_parity_and_data_say() {
    let filled = Filled::new("scrub-raid6", "raid6 chunk=64K", 4);
    let good = filled.data();
    // The first stripe's data are on members 1 and 2; the second's on 0 and 1, its P on 2.
    let (data, parity, both) = ((1, 0), (2, CHUNK), [(0, CHUNK + 8192), (1, CHUNK + 8192)]);
    for at in [data, parity, both[0], both[1]] {
        filled.spoil(at, BLOCK);
    }
    let run = filled.run();
    let ran = filled.harness.ask("check", &["--json"]);
    assert_eq!((ran.code, found(&ran, &FOUND)), (Some(1), vec![24, 0, 0]), "{ran:?}");
    let text = filled.harness.ask("check", &[]).stdout;
    let places: Vec<&str> = text.lines().skip(1).map(str::trim_start).collect();
    assert_eq!(
        places,
        [
            "sectors 0 to 7 of members' data; member 1 is wrong, by P and Q: bytes 0 to 4095 of the array",
            "sectors 128 to 135 of members' data; member 2 is wrong, by P and Q: its P",
            "sectors 144 to 151 of members' data; within bytes 131072 to 262143 of the array",
        ]
    );
    let ran = filled.harness.ask("repair", &BY_BOTH);
    assert_eq!((ran.code, found(&ran, &FOUND)), (Some(1), vec![24, 16, 0]), "{ran:?}");
    let ran = filled.harness.ask("repair", &BY_BOTH[..2]);
    let words = "8 sectors differ, 8 are left as found";
    assert!(ran.code == Some(1) && ran.stdout.contains(words), "{ran:?}");
    filled.harness.stop(run);
    assert_eq!(filled.changed(&good), both);
    // One block of data again, and what nobody could be named for.
    filled.spoil(data, BLOCK);
    let run = filled.run();
    let ran = filled.harness.ask("repair", &["--json"]);
    assert_eq!((ran.code, found(&ran, &FOUND)), (Some(0), vec![16, 16, 0]), "{ran:?}");
    assert!(filled.harness.ask("check", &[]).good().stdout.contains("0 sectors differ"));
    filled.harness.stop(run);
    let [one, other] = both;
    let (p, q) = ((2, CHUNK + 8192), (3, CHUNK + 8192));
    assert_eq!(filled.changed(&good), [(0, 0), one, data, other, p, (3, 0), q]);
}

/// A member of which it is known that it lies is mended from the others, on levels that cannot tell by themselves.
#[test]
fn a_member_that_is_not_trusted_is_mended() {
    for (layout, members) in [("raid1", 2), ("raid5 chunk=64K", 3), ("raid6 chunk=64K", 4)] {
        let filled = Filled::new("scrub-distrust", layout, members);
        let good = filled.data();
        // The first copy, which the others are made like otherwise; data, and parity.
        for stripe in 0..3 {
            filled.spoil((0, stripe * CHUNK), 2 * BLOCK);
        }
        let run = filled.run();
        if layout.starts_with("raid5") {
            let ran = filled.harness.ask("repair", &BY_BOTH);
            assert!(ran.code == Some(1) && ran.stderr.contains("has no P and Q"), "{ran:?}");
        }
        let text = filled.harness.ask("check", &[]).stdout;
        let places: Vec<&str> = text.lines().skip(1).map(str::trim_start).collect();
        let from = ["sectors 0 to 15 of ", "sectors 128 to 143 of ", "sectors 256 to 271 of "];
        let is_told = |(place, from): (&&str, &str)| place.starts_with(from);
        assert!(places.len() == 3 && places.iter().zip(from).all(is_told), "{text}");
        let device = filled.harness.path("0");
        let ran = filled.harness.ask("repair", &["--distrust", &device, "--json"]);
        assert_eq!((ran.code, found(&ran, &FOUND)), (Some(0), vec![48, 48, 0]), "{ran:?}");
        filled.harness.stop(run);
        assert_eq!(filled.changed(&good), [], "{layout}");
    }
}

#[test]
fn what_a_repair_cannot_believe_is_refused() {
    let harness = Harness::new("scrub-refused", "raid1", 2, &["--assume-clean"]);
    let run = harness.assemble(&["0", "1"], &["--write"]);
    for (flags, code, words) in [
        (&["--trust", "parity-and-data"][..], 1, "raid1(2) has no P and Q"),
        (&["--trust", "parity"], 2, "parity-and-data"),
        (&["--distrust", "2"], 1, "the array has members 0 to 1"),
        (&["--distrust", "other"], 1, "is no member"),
        (&["--distrust", "1", "--trust", "data"], 2, "cannot be used with"),
    ] {
        let ran = harness.ask("repair", flags);
        assert!(ran.code == Some(code) && ran.stderr.contains(words), "{flags:?}: {ran:?}");
    }
    assert!(harness.status().contains("\"scrubs\": 0"));
    harness.stop(run);
}
