//! How likely an array loses data: by drives that fail, defects that nobody has noticed, rebuilds, and the people who
//! replace drives. Not by fire, theft, deletion, ransomware or software.
//!
//! [`Question::answer`] is the whole answer for some layouts, which `raidlab risk` prints and `advise` may ask for.
//! Below it: a [`Model`] says what is assumed, an [`Array`] which losses the layout survives (the core's own rule), and
//! [`simulate()`] gives chances, by conditional Monte Carlo and balanced failure biasing; [`markov`] has exact ones
//! where nothing remembers its age. [`prior`] has what is known of drives, with sources, and [`words`] says chances to
//! one digit. The crate knows no drives' models, no workloads, no terminals, no clock; a seed gives the same numbers on
//! every machine. Times are hours, rates an hour, chances from 0 to 1.
//!
//! Four drives, three days until a failed one is replaced, a day of rebuilding. What a hot spare is worth:
//!
//! ```
//! use raidlab_core::Sectors;
//! use raidlab_risk::{Array, Effort, Model, Span, simulate, years};
//!
//! let layout = "raid5(4)".parse().unwrap();
//! let mut array = Array::new(&layout, Sectors(1 << 30)).unwrap();
//! let by_hand = Model { replace: Span::Fixed(72.0), ..Model::plain(0.014, 24.0) };
//! let with_spare = Model { spares: 1, ..by_hand.clone() };
//!
//! let effort = Effort { error: 0.01, ..Effort::new(1) };
//! let mut lost = |model| simulate(&mut array, &model, years(5.0), effort).array.value;
//! let ratio = lost(by_hand) / lost(with_spare);
//! assert!((3.8..4.1).contains(&ratio), "96 hours at risk instead of 24: {ratio}");
//! ```
#![forbid(unsafe_code)]

mod answer;
mod array;
mod hazard;
pub mod markov;
mod model;
pub mod prior;
mod simulate;
mod span;
pub mod words;

pub use answer::{
    AT_ONCE, Answer, Chances, Mission, NoAnswer, Precision, Question, Ratio, Risk, WhatIf, Within,
};
pub use array::Array;
pub use hazard::{Hazard, YEAR};
pub use model::{Latent, Law, Model, REPLACED, RepairOrder, WriteHole};
pub use simulate::{
    Chance, Effort, Losses, Method, Outcome, Stop, simulate, simulate_in_batch, years,
};
pub use span::Span;
