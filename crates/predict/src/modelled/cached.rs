//! Whether what a run wrote stayed in caches of its drives, so that its figures are not what lasts.

use raidlab_core::Nanos;
use raidlab_models::{DriveKind, DriveSpec, SmrFigures, SsdFigures};
use raidlab_study::State;
use raidlab_workload::RunRecord;

use super::Modelled;

/// Less than so many times its write buffer says more of the buffer than of the flash behind it.
const BUFFERS: u64 = 3;
/// Writes that flash could take if each were written so many times over never fill the buffer: collecting what is out
/// of date writes data again, of random writes to a full drive about five times (ssd-nvme4-2tb-dc, by its sheet).
const REWRITTEN: u64 = 8;
const MIB: u64 = 1 << 20;

impl Modelled<'_> {
    /// What a reader must know of a run of a layout whose members wrote so little that their caches took it. In the
    /// state `degraded` one member less wrote; `rebuilt` bytes were the rebuild's.
    pub fn cache_warnings(
        &self,
        layout: usize,
        (state, rebuilt): (State, u64),
        record: &RunRecord,
    ) -> Vec<String> {
        let lost = u64::from(state == State::Degraded);
        warnings(&self.members(layout).collect::<Vec<_>>(), (lost, rebuilt), record)
    }
}

fn warnings(drives: &[&DriveSpec], (lost, rebuilt): (u64, u64), record: &RunRecord) -> Vec<String> {
    let totals = record.totals();
    let members = record.members.filter(|_| totals.writes.bytes > 0 && !drives.is_empty());
    let Some(members) = members else { return Vec::new() };
    let writing = (drives.len() as u64).saturating_sub(lost).max(1);
    let run = Run {
        each: members.bytes_written.saturating_sub(rebuilt) / writing,
        writes: members.writes / writing,
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
    /// Bytes written for the workload.
    each: u64,
    /// Writes, those of a rebuild too.
    writes: u64,
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

/// Of writes in order nothing goes to the media cache, which no counter tells apart here.
fn shingled(name: &str, figures: &SmrFigures, run: Run) -> Option<String> {
    let (cache, places) = (figures.media_cache.bytes(), u64::from(figures.media_cache_extents));
    (run.each < cache && run.writes < places).then(|| {
        format!(
            "each member wrote {} MiB, and writes out of order go to the media cache of {name}, a shingled drive, \
             which had room for them ({} GiB, {places} writes): beyond that they wait until zones of {} MiB are \
             rewritten, and are many times slower than here and than on conventional drives",
            run.each.div_ceil(MIB),
            cache >> 30,
            figures.zone.bytes() / MIB
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The media cache has so many places, whatever they hold.
    #[test]
    fn a_media_cache_without_places_has_no_room() {
        let drive = raidlab_models::load("smr-8tb-5400").expect("a drive");
        let DriveKind::Smr(spec) = &drive.kind else { panic!("{:?}", drive.kind) };
        let figures = spec.figures();
        let told = |each: u64, writes: u64| {
            let run = Run { each, writes, took: Nanos(1), flushes: false };
            shingled("s", figures, run).is_some()
        };
        let (room, places) = (figures.media_cache.bytes(), u64::from(figures.media_cache_extents));
        assert!(told(room - 1, places - 1));
        assert!(!told(room - 1, places) && !told(room, places - 1));
    }
}
