//! What is learned by predicting a study many times, with something changed each time.
//!
//! * [`calibrate`] fits a study's free parameters to published figures.
//! * [`Ablation`] takes a mechanism out of a study, to show what that mechanism does.
//! * [`tune`] looks for the smallest window of read-ahead that is as good as any.
#![forbid(unsafe_code)]

mod ablation;
pub mod calibrate;
pub mod tune;

pub use ablation::Ablation;
