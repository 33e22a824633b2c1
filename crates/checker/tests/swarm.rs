//! The swarm keeps every promise: a sample of seeds that changes with the commit.
//!
//! `raidlab check --seeds N` runs more, and `raidlab check --replay SEED` shows one with its events.

use raidlab_checker::swarm::{self, Options, Shares, Special};

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

/// Classes that random arrays and faults hardly ever come to have a share of the seeds each.
#[test]
fn every_generator_has_its_share() {
    let mut shares = Shares::default();
    for seed in 0..4000 {
        let outcome =
            swarm::run(seed, &Options::default()).unwrap_or_else(|wrong| panic!("{wrong}"));
        shares.add(&outcome.shares);
    }
    for special in Special::ALL {
        assert!(shares.of(special) > 0, "{}", special.name());
    }
}
