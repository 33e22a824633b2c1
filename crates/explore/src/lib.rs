//! Predicts a study many times with something changed each time, to fit parameters, explain effects or find the best
//! read-ahead.
//!
//! * [`calibrate`] fits a study's free parameters to published figures.
//! * [`Ablation`] takes a mechanism out of a study, to show what that mechanism does.
//! * [`tune`] searches for the smallest read-ahead window that is as good as any.
//! * [`throttle`] paces rebuilds by policies and says what each costs the foreground.
//!
//! It knows neither terminals nor reports. Windows are in bytes, rates in whatever unit the caller measures them.
//!
//! A search where rates grow with the window up to 1 MiB and no further:
//!
//! ```
//! use raidlab_explore::tune::{Ended, Rule, Search};
//!
//! let rule = Rule { gain: 0.02, misses: 2, margin: 0.02, most: 64 << 20, grain: 4096 };
//! let mut search = Search::new(128 << 10, rule)?;
//! while let Some(window) = search.next() {
//!     search.record(vec![window.min(1 << 20) as f64])?;
//! }
//! let found = search.found().expect("nothing more is asked for");
//! assert_eq!((found.knee, found.ended), (1 << 20, Ended::NoGain));
//! # Ok::<(), String>(())
//! ```
#![forbid(unsafe_code)]

mod ablation;
pub mod calibrate;
pub mod throttle;
pub mod tune;

pub use ablation::Ablation;
