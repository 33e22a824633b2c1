//! Devices in memory with md's superblocks.

use raidlab_core::{Layout, Sectors};
use raidlab_metadata::md::{
    ALL, Aside, BadBlockLog, Creation, Device, Features, Inspected, Reshape, Role, Superblock,
    Version, WantedBitmap, inspect,
};

pub(crate) use super::memory::Disk;

/// Numbers that are the same in each run.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(crate) fn bytes(&mut self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.next().to_le_bytes());
        bytes[8..].copy_from_slice(&self.next().to_le_bytes());
        bytes
    }
}

/// Sectors of the devices of these tests.
pub(crate) const SECTORS: u64 = 4096;

/// The superblock of a member of a clean raid5 of version 1.2, whose numbers are its members.
pub(crate) fn raid5(members: u16, place: u16) -> Superblock {
    let mut roles = vec![Role::Spare; 128];
    for member in 0..members {
        roles[usize::from(member)] = Role::Member(member);
    }
    Superblock {
        features: Features(0),
        array: [9; 16],
        name: *b"nas:data\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        created: 1_700_000_000,
        level: 5,
        layout: 2,
        size: 1024,
        chunk: 128,
        members: u32::from(members),
        aside: Aside::Nothing,
        reshape: Reshape::default(),
        data_offset: 2048,
        data_size: 2048,
        super_offset: 8,
        recovery: 0,
        number: u32::from(place),
        corrected: 0,
        device: [place as u8 + 1; 16],
        flags: 0,
        bad_blocks: BadBlockLog { shift: 0, size: 8, offset: 16 },
        updated: 1_700_000_000,
        events: 100,
        resync: ALL,
        logical_block: 0,
        roles,
        v0: None,
    }
}

/// A device with this superblock, and with these blocks at sectors of it.
pub(crate) fn disk(one: &Superblock, blocks: &[(u64, Vec<u8>)]) -> Disk {
    let mut bytes = vec![0; (SECTORS * 512) as usize];
    one.emit(&mut bytes[(one.super_offset * 512) as usize..]).unwrap();
    for (at, block) in blocks {
        bytes[(at * 512) as usize..][..block.len()].copy_from_slice(block);
    }
    Disk(bytes)
}

/// What is seen of a device with this superblock.
pub(crate) fn seen(one: &Superblock) -> Inspected {
    inspect(&mut disk(one, &[]))
}

/// A new array of devices of one size.
pub(crate) fn creation(layout: Layout, sectors: u64) -> Creation {
    let device = |place: u16| Some(Device { sectors: Sectors(sectors), id: [place as u8; 16] });
    Creation {
        version: Version::V1_2,
        devices: (0..layout.members).map(device).collect(),
        spares: Vec::new(),
        layout,
        bitmap: WantedBitmap::None,
        ppl: false,
        journal: None,
        assume_clean: false,
        data_offset: None,
        size: None,
        array: [5; 16],
        name: "nas:new".into(),
        now: 1_700_000_000,
    }
}
