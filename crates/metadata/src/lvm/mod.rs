//! RAID volumes of LVM, which Linux runs by dm-raid: only read.
//!
//! A label in one of the first sectors of a physical volume says where the metadata of its volume group are. These are
//! a text: physical volumes, logical volumes, and which extents of the former the latter lie on. A RAID volume is made
//! of pairs of such volumes, an image with data and one with dm-raid's superblock and bitmap. What that superblock says
//! is told as one of md, so that the same rules decide who is believed. The tables are in `docs/md-format.md`.
//!
//! Fault model: any bytes at all, under right checksums too; texts of different times; copies of a physical volume. The
//! superblock of dm-raid has no checksum: it is compared with the text. No input makes a function here panic. What
//! a text takes of the memory has a limit: that of its length, and of the names and values in it. Tests:
//! `tests/lvm.rs`, the fuzz target `lvm`, and against LVM and the kernel `crates/cli/tests/array/lvm.rs`.

mod copies;
mod group;
mod label;
mod members;
mod superblock;
mod text;
mod volume;

pub use copies::{Device, Older, Untold};
pub use group::{Extent, Group, Logical, Physical, Segment};
pub use label::{Damage, Damaged, Seen, look};
pub use members::{Member, Members, Membership, Piece};
pub use superblock::DmSuperblock;
pub use text::{Node, Section, Wrong, parse};
pub use volume::{Image, Volume};
