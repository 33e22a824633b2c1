//! New arrays of Linux md, and what is written to them.
#![allow(dead_code, reason = "shared by tests that use different parts")]

use raidlab_core::{Layout, Sectors};
use raidlab_metadata::md::{Creation, Device, Version, WantedBitmap};

/// Bytes that compress to nothing and repeat nowhere.
pub(crate) fn pattern(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let word = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..bytes / 8).flat_map(word).collect()
}

/// A new array of Linux md on devices of so many sectors, all of them there.
pub(crate) fn creation(layout: Layout, sectors: u64) -> Creation {
    let device = |place: u16| Some(Device { sectors: Sectors(sectors), id: [place as u8 + 1; 16] });
    Creation {
        devices: (0..layout.members).map(device).collect(),
        spares: Vec::new(),
        layout,
        version: Version::V1_2,
        bitmap: WantedBitmap::None,
        ppl: false,
        assume_clean: true,
        data_offset: None,
        size: None,
        array: [5; 16],
        name: "host:name".into(),
        now: 1_700_000_000,
    }
}

/// A name that an array of this version may have.
pub(crate) fn name(version: Version) -> String {
    if version == Version::V0_90 { "md5" } else { "host:name" }.into()
}
