//! The RAID planner as a value: it plans member I/O and parity, and carries out neither.
//!
//! It has no clock, I/O, threads or randomness, and sees no bytes; a *driver* provides these. The same [`Array`] is
//! driven by the engine over real members, by the simulator in virtual time, and by the checker under injected
//! faults. The module [`contract`] has the rules between array and driver; in one sentence: **hand in every input
//! that is ready at `now`, then drain [`Array::poll`] until it gives `None`.**
//!
//! * [`Layout`] is a level with its parameters, [`Config`] a layout with its members, [`Array`] the planner;
//!   [`Stack`] is an array of arrays, and [`Volume`] either.
//! * [`geometry`] says where each sector lies and, the other way, what a sector of a member holds.
//! * [`consistency`] says what each consistency mode guarantees across a crash, and how current members are told from
//!   outdated ones.
//!
//! Addresses and lengths are in sectors of 512 bytes, time in nanoseconds since a start that the driver chooses
//! ([`units`]). Addresses on members are relative to the start of their data; the driver knows where data start on a
//! drive.
//!
//! The example carries a mirrored write out by hand. The planner asks for one I/O to each of two members, and answers
//! when both are done:
//!
//! ```
//! use raidlab_core::contract::{
//!     Completion, Input, IoOp, IoOutcome, Outcome, Output, Request, RequestId, Segment, Token,
//! };
//! use raidlab_core::{Array, Config, Layout, Level, Sector, Sectors, Time};
//!
//! let layout = Layout::new(Level::Raid10, 4).with_chunk(Sectors(128));
//! let mut array = Array::new(&Config::uniform(layout, Sectors(1 << 20)))?;
//! assert_eq!(array.capacity(), Sectors(2 << 20), "half of four members");
//!
//! let (id, at, len) = (RequestId(1), Sector(128), Sectors(8));
//! let segments = &[Segment { token: Token(0), offset: 0, len: 8 }];
//! let write = Request { id, op: IoOp::Write, at, len, segments, fua: false };
//! array.handle(Time(0), Input::Request(write));
//!
//! let (mut in_flight, mut answer) = (Vec::new(), None);
//! while answer.is_none() {
//!     while let Some(output) = array.poll() {
//!         match output {
//!             Output::MemberIo(io) => in_flight.push(io),
//!             Output::Reply { outcome, .. } => answer = Some(outcome),
//!             _ => {}
//!         }
//!     }
//!     // Both copies of the second chunk lie at the start of the second pair of members.
//!     let places: Vec<_> = in_flight.iter().map(|io| (io.member.0, io.at)).collect();
//!     assert_eq!(places, [(2, Sector(0)), (3, Sector(0))]);
//!     for io in &in_flight {
//!         let done = Completion { io: io.io, outcome: IoOutcome::Ok };
//!         array.handle(Time(1), Input::Completion(done));
//!     }
//! }
//! assert_eq!(answer, Some(Outcome::Done));
//! # Ok::<(), raidlab_core::ConfigError>(())
//! ```
#![forbid(unsafe_code)]

pub mod array;
pub mod bugs;
pub mod consistency;
pub mod contract;
pub mod geometry;
pub mod layout;
pub mod policy;
pub mod stack;
pub mod suggest;
mod totals;
pub mod units;
mod volume;

pub use array::{
    Array, Config, ConfigError, Consistency, Lacking, Limits, MemberConfig, Settings, Tie,
};
pub use layout::{Layout, LayoutError, Level, Redundancy, Rotation};
pub use stack::{Stack, StackConfig};
pub use totals::MemberTotals;
pub use units::{MemberIndex, Nanos, SECTOR_BYTES, Sector, Sectors, Size, Time};
pub use volume::Volume;
