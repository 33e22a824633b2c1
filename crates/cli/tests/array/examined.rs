//! Superblocks that no kernel would write, examined by raidlab and by mdadm: the same text.

use std::process::Command;

use raidlab_core::Sectors;
use raidlab_metadata::md::{ALL, Aside, BadBlockLog, Features, Reshape, Role, Superblock, Version};

use super::text;
use crate::guest::guest_or_skip;
use crate::support::{Scratch, command};

/// Numbers that are the same in each run (SplitMix64).
pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(super) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[(self.next() % all.len() as u64) as usize]
    }
}

/// Levels with their layouts.
const LAYOUTS: [(i32, u32); 16] = [
    (-1, 0),
    (0, 0),
    (1, 0),
    (4, 0),
    (5, 2),
    (5, 0),
    (5, 4),
    (6, 2),
    (6, 9),
    (6, 17),
    (6, 20),
    (10, 0x102),
    (10, 0x201),
    (10, 0x1_0201),
    (10, 0x202),
    (10, 0x103),
];

/// A superblock with all sorts of things in it.
fn superblock(numbers: &mut Numbers, device: Sectors) -> Superblock {
    let version = numbers.one_of(&Version::ALL[1..]);
    let at = version.superblock(device).unwrap().0;
    let (level, layout) = numbers.one_of(&LAYOUTS);
    let members = 2 + (numbers.next() % 7) as u32 * 2;
    let mut roles = vec![Role::Spare; 128];
    for (number, role) in (0..).zip(roles.iter_mut().take(members as usize + 2)) {
        // The last two as replacements.
        let member = Role::Member(number % members as u16);
        *role = numbers.one_of(&[member, member, member, Role::Faulty, Role::Spare, Role::Journal]);
    }
    let behind = version != Version::V1_0;
    let mut features = 0;
    let sign = if behind { 1 } else { -1 };
    let mut aside = Aside::Nothing;
    let mut bad = 16;
    if numbers.next().is_multiple_of(4) {
        (features, bad) = (2048, 2056);
        let offset = if behind { 8 } else { -2056 };
        aside = Aside::PartialParity { offset, size: 2048 };
    }
    features |= numbers.one_of(&[0, 0, 2, 8, 16, 4096, 512]);
    let data_size = [40_000, 90_000, 30_000_000, 5_000_000_000];
    let data_size = numbers.one_of(&data_size);
    let size = match level {
        -1 | 0 => 0,
        _ => data_size - numbers.one_of(&[0, 0, 128, 1000]),
    };
    Superblock {
        features: Features(features),
        array: [numbers.next() as u8; 16],
        name: *numbers.one_of(&[
            b"nas:data\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
            b"plain\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
            b"abcdefghijklmnopqrstuvwxyz:abcd\0",
        ]),
        created: numbers.next() % 4_000_000_000,
        level,
        layout,
        size,
        chunk: numbers.one_of(&[8, 128, 1024, 2048]),
        members,
        aside,
        reshape: Reshape::default(),
        data_offset: if behind { numbers.one_of(&[2048, 4096, 262_144]) } else { 0 },
        data_size,
        super_offset: at,
        recovery: numbers.one_of(&[0, 1, 4096]),
        number: (numbers.next() % u64::from(members)) as u32,
        corrected: 0,
        device: [numbers.next() as u8; 16],
        flags: 0,
        bad_blocks: BadBlockLog { shift: 0, size: 8, offset: sign * bad },
        updated: numbers.next() % 4_000_000_000,
        events: numbers.next() % 1_000_000,
        resync: numbers.one_of(&[ALL, 0, 4096]),
        logical_block: 0,
        roles,
        v0: None,
    }
}

#[test]
fn superblocks_of_all_kinds_are_shown_in_mdadms_words() {
    if guest_or_skip("superblocks_of_all_kinds_are_shown_in_mdadms_words").is_none() {
        return;
    }
    let scratch = Scratch::new("array-examine");
    let mut numbers = Numbers(11);
    let device = Sectors(6_000_000_000);
    let paths: Vec<String> = (0..80)
        .map(|number| {
            let one = superblock(&mut numbers, device);
            let path = scratch.file(&format!("m{number:02}"), "");
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            file.set_len(device.bytes()).unwrap();
            let mut bytes = vec![0; 4096];
            one.emit(&mut bytes).unwrap();
            if number % 8 == 0 {
                // A wrong checksum is shown.
                bytes[216] ^= 0x10;
            }
            std::os::unix::fs::FileExt::write_all_at(&file, &bytes, one.super_offset * 512)
                .unwrap();
            text(&path)
        })
        .collect();
    let mdadm = Command::new("mdadm").arg("--examine").args(&paths).env("TZ", "UTC").output();
    let expected = String::from_utf8(mdadm.unwrap().stdout).unwrap();
    let ours = command().args(["array", "examine"]).args(&paths).output().unwrap();
    let ours = String::from_utf8(ours.stdout).unwrap();
    for (ours, expected) in ours.split("\n/").zip(expected.split("\n/")) {
        assert_eq!(ours, expected);
    }
    assert_eq!(ours.len(), expected.len());
}
