//! Runs the Linux kernel in virtual time on modelled drives: its own md, page cache, schedulers and filesystems, in one
//! unprivileged process that gets its clock and its drives from this crate.
//!
//! The kernel is User Mode Linux with an external clock (`time-travel=ext`) and virtio drives by vhost-user. It
//! runs or waits. While it waits, drives take no real time at all, so a run takes only as long as its computation,
//! and two runs with the same seed send the same requests at the same nanoseconds. `docs/kernel-lab.md` says what
//! that can and cannot judge.
//!
//! * [`Lab`] is the logic without I/O: messages of the clock ([`clock`]) and of the drives ([`vhost`],
//!   [`virtqueue`]) come in through its methods and go out through a [`Bus`]; drives are [`Service`]s, described to
//!   the kernel by a [`Class`].
//! * Between kernel and drives may lie [`paths`]: buses, channels and links that drives share.
//! * [`guest`] starts a kernel and serves it. Only the mapping of the guest's memory needs unsafe code.
//!
//! It knows neither arrays nor workloads nor studies. Times are integer nanoseconds since the guest's start; addresses
//! of the guest's memory and of drives are in bytes unless stated otherwise.
//!
//! A drive that transfers a byte in 10 ns and needs 5 ms for a seek, as the kernel sees it:
//!
//! ```
//! use raidlab_kernel_lab::{Class, ClosedForm, Service, drives};
//! use raidlab_core::units::Nanos;
//!
//! let (class, service) = drives::parse("size=1GiB,positioning=5ms,byte=10ns", 1)?;
//! assert_eq!(class, Class::plain(1 << 30));
//! let Service::ClosedForm(form) = service else { panic!("no model was named") };
//! assert_eq!((form.positioning, form.byte_picos), (Nanos::from_millis(5), 10_000));
//!
//! // One of raidlab's drives is told to the kernel with all that its bus has.
//! let (class, _) = drives::parse("model=ssd-nvme4-2tb", 1)?;
//! assert!(class.fua && !class.rotational);
//! # Ok::<(), raidlab_kernel_lab::drives::SpecError>(())
//! ```

mod attached;
pub mod bus;
pub mod cache;
pub mod class;
pub mod clock;
mod connection;
pub mod contents;
mod drive;
pub mod drives;
mod failure;
#[cfg(test)]
mod fake;
pub mod guest;
mod host;
mod lab;
mod mapping;
mod memory;
pub mod paths;
mod service;
pub mod tape;
mod units;
pub mod vhost;
pub mod virtqueue;

pub use bus::{Bus, Operation, Record};
pub use class::{Class, Scheduler};
pub use contents::Room;
pub use failure::Failure;
pub use guest::{End, Guest, GuestError, Outcome, Root, Written, run};
pub use lab::{Counts, Lab};
pub use service::{ClosedForm, Service};
