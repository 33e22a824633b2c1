//! Which layout to use: everything there is to choose from, measured on modelled drives, and one recommendation.
//!
//! [`Wanted`] is what is asked: drives, work ([`profiles`]), limits, people. [`candidates`] enumerates level, copies,
//! width, chunk, spares and nesting, and says why others are left out. [`advise`] looks at all of them shortly and at
//! the better ones for longer ([`halve`]), runs the last ones again on seeds that nobody chose by, and gives an
//! [`Advice`]: a [`Verdict`] that becomes "either" where the model's error could flip it, what would change it, what
//! growing costs. [`warnings`], [`checks`] and [`commands`] are what a reader needs besides.
//!
//! The crate knows no terminals, files, threads or clock: runs are carried out by a [`Pool`] of the caller's, or
//! [`InTurn`]. Sizes are bytes or sectors by their types, times seconds or hours as their names say, chances from 0 to
//! 1; costs are in steps of indifference ([`Objective::step`]), the fewer the better. A seed gives the same advice on
//! every machine.
//!
//! Two drives, of which one may fail: there is only one answer, and it runs in no time.
//!
//! ```
//! use raidlab_advise::{InTurn, Profile, Wanted, advise, commands};
//!
//! let drive = raidlab_models::load("nas-8tb-7200").unwrap();
//! let mut wanted = Wanted::new(2..=2, drive, Profile::named("vm").unwrap());
//! wanted.requests = 300;
//! let advice = advise(&wanted, &InTurn).unwrap();
//! let pick = &advice.finalists[advice.verdict.pick].candidate;
//! assert_eq!(pick.to_string(), "raid1(2)");
//! assert!(commands(pick, advice.kept(&wanted))[0].starts_with("mdadm --create /dev/md0 --level=1 --raid-devices=2"));
//! ```
#![forbid(unsafe_code)]

mod candidate;
mod decide;
mod fidelity;
mod first;
mod growth;
mod machine;
#[cfg(test)]
mod made_up;
mod meter;
mod objectives;
mod personality;
mod profile;
mod relax;
mod remarks;
mod risks;
mod search;
mod sizes;
mod software;
mod versus;
mod wanted;
mod wear;

pub use candidate::{
    BARE, Candidate, Candidates, Dropped, Mode, Structure, candidates, modes, terabytes,
};
pub use decide::{Advice, Change, Consistency, Lean, SURE, Variant, Verdict, advise};
pub use fidelity::{Figure, Group, spread, told_apart};
pub use first::first;
pub use growth::{Growth, growth};
pub use machine::{FoundDrive, Machine};
pub use meter::{Measured, Plan, UNTOLD, seen, study};
pub use objectives::{
    Costs, Figures, LEAST_RISK, NO_TAIL, Objective, Weights, distance, dominates, front, halve,
    keep, score, weights,
};
pub use profile::{Counted, Part, Profile, profiles};
pub use remarks::{
    checks, chunk_in_words, commands, commands_of, days, growth_in_words, warnings, years_in_words,
};
pub use risks::{BAD_BATCH, Batch};
pub use search::{Finalist, InTurn, NoAdvice, Pool, ROUNDS, Search, Spent};
pub use software::Software;
pub use versus::{in_words, seconds, survives};
pub use wanted::{
    Among, CHUNKS, Limits, Prefer, REQUESTS, Wanted, class, idle_rebuild, rebuild_hours,
};
