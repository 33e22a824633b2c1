//! Which mutant is on: the one whose number `RAIDLAB_MUTANT` holds.
#![feature(core_intrinsics, const_eval_select)]
#![allow(internal_features)]

use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether this one is on. Never where the compiler asks.
pub const fn on(number: u32) -> bool {
    core::intrinsics::const_eval_select((number,), never, asked)
}

const fn never(_: u32) -> bool {
    false
}

fn asked(number: u32) -> bool {
    static CHOSEN: OnceLock<(u32, Option<Reached>)> = OnceLock::new();
    let (chosen, reached) = CHOSEN.get_or_init(|| (chosen(), Reached::new()));
    if let Some(reached) = reached {
        reached.note(number);
    }
    *chosen == number
}

fn chosen() -> u32 {
    env::var("RAIDLAB_MUTANT").ok().and_then(|text| text.parse().ok()).unwrap_or(u32::MAX)
}

/// A file to which the number of each mutant goes that is asked for, named by `RAIDLAB_MUTANTS_REACHED`.
struct Reached {
    path: std::ffi::OsString,
    noted: Vec<AtomicBool>,
}

impl Reached {
    fn new() -> Option<Self> {
        let path = env::var_os("RAIDLAB_MUTANTS_REACHED")?;
        Some(Self { path, noted: (0..1 << 16).map(|_| AtomicBool::new(false)).collect() })
    }

    fn note(&self, number: u32) {
        if !self.noted[number as usize].swap(true, Ordering::Relaxed) {
            // Without memory of its own: some tests count what is allocated.
            let mut line = [b'\n'; 8];
            write!(&mut line[..7], "{number}").unwrap();
            let mut file = OpenOptions::new().append(true).create(true).open(&self.path).unwrap();
            file.write_all(&line).unwrap();
        }
    }
}
