//! The swarm keeps every promise: a sample of seeds that changes with the commit.
//!
//! `raidlab check --seeds N` runs more, and `raidlab check --replay SEED` shows one with its events.

use raidlab_checker::swarm::{self, Options};

/// Seeds of one sample.
const SEEDS: u64 = 500;
/// Samples to choose from.
const SAMPLES: u64 = 300;

#[test]
fn seeds_keep_every_promise() {
    let sample = std::env::var("RAIDLAB_SAMPLE").ok().and_then(|text| text.parse().ok());
    let first = sample.unwrap_or(0u64) % SAMPLES * SEEDS;
    for seed in first..first + SEEDS {
        if let Err(violation) = swarm::run(seed, &Options::default()) {
            let Err(told) = swarm::run(seed, &Options { lines: true, ..Options::default() }) else {
                panic!("not the same again: {violation}");
            };
            panic!("{told}");
        }
    }
}
