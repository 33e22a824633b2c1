//! Whether what a run wrote stayed in caches of its drives, so that its figures are not what lasts.

use raidlab_core::Nanos;
use raidlab_models::{DriveKind, DriveSpec, SmrFigures, SsdFigures};
use raidlab_workload::RunRecord;

use super::Modelled;

/// Less than so many times its write buffer says more of the buffer than of the flash behind it.
const BUFFERS: u64 = 3;
/// Writes that flash could take if each were written so many times over never fill the buffer: collecting what is out
/// of date writes data again, of random writes to a full drive about five times (ssd-nvme4-2tb-dc, by its sheet).
const REWRITTEN: u64 = 8;
const MIB: u64 = 1 << 20;

impl Modelled<'_> {
    /// What a reader must know of a run of a layout whose members wrote so little that their caches took it.
    pub fn cache_warnings(&self, layout: usize, record: &RunRecord) -> Vec<String> {
        warnings(&self.members(layout).collect::<Vec<_>>(), record)
    }
}

fn warnings(drives: &[&DriveSpec], record: &RunRecord) -> Vec<String> {
    let totals = record.totals();
    let members = record.members.filter(|_| totals.writes.bytes > 0 && !drives.is_empty());
    let Some(members) = members else { return Vec::new() };
    let run = Run {
        each: members.bytes_written / drives.len() as u64,
        took: record.last_done(),
        flushes: totals.others.count > 0,
    };
    let mut told: Vec<String> = Vec::new();
    for drive in drives {
        let text = match &drive.kind {
            DriveKind::HardDisk(_) => None,
            DriveKind::Ssd(spec) => buffered(&drive.name, spec.figures(), run),
            DriveKind::Smr(spec) => shingled(&drive.name, spec.figures(), run),
        };
        told.extend(text.filter(|text| !told.contains(text)));
    }
    told
}

/// What a run did to each member.
#[derive(Clone, Copy)]
struct Run {
    /// Bytes written.
    each: u64,
    took: Nanos,
    /// Something was flushed, were it at the end.
    flushes: bool,
}

fn buffered(name: &str, figures: &SsdFigures, run: Run) -> Option<String> {
    let buffer = figures.write_buffer.bytes();
    // A flush waits for the flash, so that its time is in the figure.
    let waits = run.flushes && !figures.power_loss_protection;
    let is_small = run.each < BUFFERS * buffer;
    let program = u128::from(figures.program_unit().bytes()) * u128::from(figures.dies);
    // Bytes in so many nanoseconds, both sides times the time of a program.
    let written = u128::from(run.each) * u128::from(figures.page_program.0);
    let is_fast = written * u128::from(REWRITTEN) > program * u128::from(run.took.0);
    (is_small && is_fast && !waits).then(|| {
        format!(
            "each member wrote {} MiB, and the write buffer of {name} holds {} MiB: the figures are more of it than \
             of the flash, and layouts that differ may look equal; a size {BUFFERS} times the buffer for each member, \
             {} MiB, or more tells what lasts",
            run.each.div_ceil(MIB),
            buffer / MIB,
            BUFFERS * buffer / MIB
        )
    })
}

fn shingled(name: &str, figures: &SmrFigures, run: Run) -> Option<String> {
    let cache = figures.media_cache.bytes();
    (run.each < cache).then(|| {
        format!(
            "each member wrote {} MiB, for which the media cache of {name}, a shingled drive, has room, of {} GiB: \
             writes out of order beyond that wait until zones of {} MiB are rewritten, and are many times slower than \
             here and than on conventional drives",
            run.each.div_ceil(MIB),
            cache >> 30,
            figures.zone.bytes() / MIB
        )
    })
}
