//! How a drive's firmware uses its buffer: what differs between drives of equal mechanics.
//!
//! The rules behind these switches are the same for every drive; a drive file or the parameters
//! of a measured drive only say which of them its firmware follows.

use raidlab_core::units::{Nanos, Sectors};

/// How far a drive reads on after a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReadAhead {
    /// Not at all.
    None,
    /// To the end of the track.
    Track,
    /// To the end of the cylinder.
    Cylinder,
    /// Until the segment is full.
    Segment,
    /// Until the segment is full; behind a reader in order, at least one track ahead of it.
    Stream,
}

/// Which reads start reading ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// Every read.
    EveryRead,
    /// A read that goes on where an earlier one ended.
    Continued,
}

/// What becomes of data in a segment once they were delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Delivered {
    /// They stay; reading ahead ends where the segment is full.
    Kept,
    /// Reading ahead may overwrite them.
    Overwritten,
    /// Their place is free at once: they do not answer another read.
    GivenUp,
}

/// What the firmware does with the buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachePolicy {
    /// How far the drive reads on after a read.
    pub read_ahead: ReadAhead,
    /// Which reads start it.
    pub trigger: Trigger,
    /// The most sectors read beyond the end of a read, unless [`ReadAhead::Stream`] has found a
    /// reader in order.
    pub most_ahead: Sectors,
    /// With a reader in order: sectors read beyond the end of its read before the mechanism goes
    /// to another command. Keeps several readers in order from losing a seek for each read.
    pub hold: Sectors,
    /// What becomes of data that were delivered.
    pub delivered: Delivered,
    /// A hit lets an idle drive read ahead again.
    pub resumes_on_hit: bool,
    /// Reads all of a track it comes to, also what lies in front of the read.
    pub whole_track: bool,
    /// How many separate ranges of written data still answer reads when they are on the medium.
    pub written_ranges: u32,
    /// Data cross the interface while the medium still delivers; otherwise after the last sector.
    pub read_overlap: bool,
    /// The medium is written while data still cross the interface; otherwise after the last sector.
    pub write_overlap: bool,
    /// Immediate report: a write completes when in the buffer only if the buffer is clean or holds
    /// what it appends to; dirty data go to the medium before anything else is served. Without it
    /// (and with the write cache on) written data are collected and sorted.
    pub immediate_report: bool,
}

impl Default for CachePolicy {
    fn default() -> Self {
        Self {
            read_ahead: ReadAhead::Segment,
            trigger: Trigger::EveryRead,
            most_ahead: Sectors(u64::MAX),
            hold: Sectors(0),
            delivered: Delivered::Overwritten,
            resumes_on_hit: true,
            whole_track: false,
            written_ranges: 0,
            read_overlap: true,
            write_overlap: true,
            immediate_report: false,
        }
    }
}

/// What the electronics take for a command, by what it finds in the buffer and by the command
/// before it (`[after a read, after a write]`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandOverheads {
    /// Reads whose first sector is in the buffer or about to come.
    pub read_hit: [Nanos; 2],
    /// Other reads.
    pub read_miss: [Nanos; 2],
    /// Writes that the buffer takes at once.
    pub write_hit: [Nanos; 2],
    /// Other writes.
    pub write_miss: [Nanos; 2],
    /// At the end of a read.
    pub read_completion: Nanos,
    /// At the end of a write.
    pub write_completion: Nanos,
}

impl CommandOverheads {
    /// The same for every command, nothing at its end.
    pub const fn same(each: Nanos) -> Self {
        Self {
            read_hit: [each; 2],
            read_miss: [each; 2],
            write_hit: [each; 2],
            write_miss: [each; 2],
            read_completion: Nanos::ZERO,
            write_completion: Nanos::ZERO,
        }
    }
}

/// A group of cylinders with equally many sectors per track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneRow {
    /// The first cylinder.
    pub first: u32,
    /// The last cylinder.
    pub last: u32,
    /// Sectors per track.
    pub sectors: u32,
    /// Sectors that the next track of a cylinder begins later.
    pub track_skew: u32,
    /// Sectors that the first track of the next cylinder begins later than the last of this one.
    pub cylinder_skew: u32,
}
