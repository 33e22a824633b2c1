//! New arrays of Linux md, and what is written to them.
#![allow(dead_code, reason = "shared by tests that use different parts")]

use std::ops::Range;
use std::sync::{Arc, Mutex};

use raidlab_core::contract::{IoOp, IoOutcome};
use raidlab_core::{Layout, Sector, Sectors};
use raidlab_engine::{MemberRequest, MemberStore};
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
        journal: None,
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

/// A drive that cannot read some of its sectors until they are written.
#[derive(Clone)]
pub(crate) struct Spoilt(Arc<Mutex<(Vec<u8>, Range<u64>)>>);

impl Spoilt {
    /// Of these bytes, with these sectors of the device that cannot be read.
    pub(crate) fn new(bytes: &[u8], bad: Range<u64>) -> Self {
        Self(Arc::new(Mutex::new((bytes.to_vec(), bad))))
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().0.clone()
    }
}

impl MemberStore for Spoilt {
    fn sectors(&self) -> Sectors {
        Sectors(self.0.lock().unwrap().0.len() as u64 / 512)
    }

    fn submit(&mut self, request: MemberRequest) {
        let mut drive = self.0.lock().unwrap();
        let (bytes, bad) = &mut *drive;
        let (from, to) = (request.at().0, request.at().0 + request.len().0);
        let overlaps = from < bad.end && bad.start < to;
        let range = (from * 512) as usize..(to * 512) as usize;
        match request.op() {
            IoOp::Read if overlaps => {
                let first_bad = Sector(bad.start.max(from));
                return request.complete(IoOutcome::MediaError { first_bad });
            }
            IoOp::Read => return request.complete_read(&bytes[range]),
            IoOp::Write => {
                bytes[range].copy_from_slice(request.payload());
                if overlaps {
                    *bad = 0..0;
                }
            }
            _ => {}
        }
        request.complete(IoOutcome::Ok);
    }
}
