//! Discrete-event simulation of arrays over modelled drives.
//!
//! The [`World`] joins one array of the core, its modelled drives and the CPU of the host ([`HostCosts`]) in
//! virtual time, which is in nanoseconds starting at 0. It knows neither workloads nor studies, and moves no bytes:
//! segments name a buffer that is never read. A seed determines the run, which is the same on any machine. A world
//! runs on one thread; for parallel runs, create several worlds.
//!
//! What a raid5 reads from its members for 4 KiB, healthy and with a member lost; then the member is rebuilt:
//!
//! ```
//! use raidlab_core::contract::{Event, IoOp};
//! use raidlab_core::{Config, Layout, Level, MemberIndex, Sector, Sectors};
//! use raidlab_models::{Drive, load};
//! use raidlab_sim::{HostCosts, World};
//!
//! fn read(world: &mut World) {
//!     world.submit(IoOp::Read, Sector(0), Sectors(8), false);
//!     while world.next_answer().is_none() {
//!         assert!(world.step(), "something happens until it is answered");
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let kind = load("nas-8tb-7200")?.kind;
//! let drives = (0..4).map(|seed| Drive::new(&kind, seed)).collect();
//! // Of each drive 16 MiB, so that a rebuild is over soon.
//! let config = Config::uniform(Layout::new(Level::Raid5, 4), Sectors(32 << 10));
//! let mut world = World::new(&config, drives, HostCosts::default())?;
//! read(&mut world);
//! assert_eq!(world.member_totals().reads, 1);
//!
//! let lost = MemberIndex(0);
//! world.fail(lost);
//! read(&mut world);
//! assert_eq!(world.member_totals().reads, 1 + 3, "computed from all the others");
//!
//! world.add(lost, Drive::new(&kind, 9))?;
//! while world.step() {}
//! assert!(world.events().contains(&Event::Restored(lost)));
//! assert!(world.member_totals().bytes_written >= config.members[0].sectors.bytes());
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod error;
mod host;
mod world;

pub use error::{SimError, SimErrorKind};
pub use host::HostCosts;
pub use world::{Answer, AtStart, DriveRequest, IoRecord, World};
