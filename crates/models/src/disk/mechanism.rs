//! Arm and platters: where the head is, and when it is over a sector.

use raidlab_core::units::{Nanos, Time};
use raidlab_random::SplitMix64;

use super::geometry::{Geometry, Spot, turn};
use super::seek::SeekCurve;
use crate::spec::HardDiskFigures;

/// What the mechanism does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    /// Nothing.
    Idle,
    /// Reads sector after sector into a segment, until the limit or until stopped.
    Reading(Stream),
    /// Writes until this time; `destage`: from the write buffer.
    Writing { until: Time, destage: bool },
}

/// Reading without end: at `at` the head is over the sector with media time `origin`, and from
/// there media time and time run alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    /// Where the data go.
    pub segment: usize,
    origin: u64,
    at: Time,
    /// When the head came to the track.
    settled: Time,
    /// The first sector of the track, and sectors that pass in a turn.
    track: (u64, u64),
    /// The first sector that was read for itself, not in passing.
    start: u64,
    /// One past the last sector to be read, and when that has passed.
    pub limit: u64,
    pub rests: Time,
    charged: u64,
}

impl Stream {
    /// When the head has come to this media time; long ago for what lies before the stream.
    pub(crate) fn time(&self, media: u64) -> Time {
        if media <= self.origin { Time::ZERO } else { self.at + Nanos(media - self.origin) }
    }
}

/// When a read has its data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passed {
    /// When the first sector begins to pass.
    pub first: Time,
    /// When the last one has passed.
    pub last: Time,
}

/// Settling anew without a seek - on another surface, or between writing and reading, for which
/// separate elements lie beside each other on the arm - takes this share of a seek to the next
/// cylinder, which is little else. The same for all drives; `docs/fidelity.md` says how it was found.
const SETTLE: (u64, u64) = (3, 4);

#[derive(Clone, Debug)]
pub(crate) struct Mechanism {
    geometry: Geometry,
    curve: SeekCurve,
    turn: u64,
    phase: u64,
    head_switch: u64,
    settle: u64,
    write_settle: u64,
    /// Where the last access ended and whether it was a write: going on there is no new positioning.
    ended: (u64, bool),
    cylinder: u32,
    head: u32,
    busy: Nanos,
    /// What it does now.
    pub work: Work,
}

impl Mechanism {
    pub(crate) fn new(f: &HardDiskFigures, seed: u64) -> Self {
        let geometry = Geometry::new(f);
        let curve = SeekCurve::new(f, geometry.count());
        let turn = turn(f);
        let settle = curve.time(1) / SETTLE.1 * SETTLE.0;
        Self {
            geometry,
            curve,
            turn,
            phase: SplitMix64::new(seed).below(turn),
            head_switch: f.head_switch.0,
            settle,
            write_settle: f.write_settle.0,
            ended: (0, false),
            cylinder: 0,
            head: 0,
            busy: Nanos::ZERO,
            work: Work::Idle,
        }
    }

    /// Time spent for commands and for destaging. Read-ahead counts once its data are asked for.
    pub(crate) fn busy(&self) -> Nanos {
        self.busy
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// When the head has settled on the track of `to` and when it is over `to`, leaving the track
    /// `from` (cylinder, surface) at `now` and waiting at least until `not_before`. `on`: it goes on
    /// where the last access ended. Exact: the platters' angle is a function of time.
    fn arrive(
        &self,
        from: (u32, u32),
        (now, not_before): (Time, Time),
        to: &Spot,
        write: bool,
        on: bool,
    ) -> (Time, Time) {
        let distance = from.0.abs_diff(to.cylinder);
        let mut moved = self.curve.time(distance);
        if !on {
            moved = moved.max(self.settle);
        }
        if from.1 != to.head {
            moved = moved.max(self.head_switch);
        }
        if write && distance > 1 {
            moved += self.write_settle;
        }
        let there = (now + Nanos(moved)).max(not_before);
        let angle = (there.0 + self.phase) % self.turn;
        let wanted = to.media % self.turn;
        let wait = if wanted >= angle { wanted - angle } else { wanted + self.turn - angle };
        (there, there + Nanos(wait))
    }

    /// When a stream has read up to sector `end`, from which on it is at rest or goes on.
    pub(crate) fn passed(&self, stream: &Stream, end: u64) -> Time {
        if end == 0 {
            return Time::ZERO;
        }
        let last = self.geometry.locate(end - 1);
        stream.time(self.geometry.end(&last, end - 1, 1).0)
    }

    /// Has the present stream read up to `limit`.
    pub(crate) fn limit(&mut self, limit: u64) {
        let Work::Reading(mut stream) = self.work else { return };
        (stream.limit, stream.rests) = (limit, self.passed(&stream, limit));
        self.work = Work::Reading(stream);
    }

    /// When a stream has read `start .. end`.
    pub(crate) fn passes(&self, stream: &Stream, start: u64, end: u64) -> Passed {
        let spot = self.geometry.locate(start);
        let (media, _) = self.geometry.end(&spot, start, end - start);
        Passed { first: stream.time(spot.media), last: stream.time(media) }
    }

    /// When all of the track on which the stream began has passed under the head.
    pub(crate) fn whole_track(&self, stream: &Stream) -> Time {
        stream.settled + Nanos(self.turn)
    }

    /// The first sector of the track on which the stream began that has passed since the head came
    /// there: those in front of the stream's start passed while it waited, or a turn later.
    pub(crate) fn passed_in_front(&self, stream: &Stream, now: Time) -> u64 {
        let (first, sectors) = stream.track;
        if now >= self.whole_track(stream) {
            return first;
        }
        let waited = stream.at.since(stream.settled).0 * sectors / self.turn;
        first.max(stream.start.saturating_sub(waited))
    }

    /// The first sector a stream has not read at `now`, and the track the head is on.
    fn reached(&self, stream: &Stream, now: Time) -> (u64, u32, u32) {
        let media = stream.origin + now.since(stream.at).0;
        let here = self.geometry.reached(media);
        if here.0 < stream.limit {
            return here;
        }
        let last = self.geometry.locate(stream.limit.saturating_sub(1));
        (stream.limit, last.cylinder, last.head)
    }

    /// The first sector the present stream has not read at `now`.
    pub(crate) fn front(&self, stream: &Stream, now: Time) -> u64 {
        self.reached(stream, now).0
    }

    /// Where the head is at `now`: cylinder and surface.
    pub(crate) fn place(&self, now: Time) -> (u32, u32) {
        match &self.work {
            Work::Reading(stream) => {
                let (_, cylinder, head) = self.reached(stream, now);
                (cylinder, head)
            }
            _ => (self.cylinder, self.head),
        }
    }

    /// Ends a stream; gives it and the first sector it did not read.
    pub(crate) fn stop(&mut self, now: Time) -> Option<(Stream, u64)> {
        let Work::Reading(stream) = self.work else { return None };
        let (at, cylinder, head) = self.reached(&stream, now);
        (self.cylinder, self.head) = (cylinder, head);
        self.ended = (at, false);
        self.work = Work::Idle;
        Some((stream, at))
    }

    /// Reads `start .. end` and on up to `limit`; says when `start .. end` passes. The mechanism is
    /// at rest. `asked`: for a command, not for reading ahead.
    pub(crate) fn read(
        &mut self,
        now: Time,
        (start, end): (u64, u64),
        (segment, limit): (usize, u64),
        asked: bool,
    ) -> Passed {
        let spot = self.geometry.locate(start);
        let on = self.ended == (start, false);
        let place = (self.cylinder, self.head);
        let (settled, at) = self.arrive(place, (now, now), &spot, false, on);
        let (media, _) = self.geometry.end(&spot, start, end - start);
        let last = at + Nanos(media - spot.media);
        let mut charged = spot.media;
        if asked {
            self.busy += last.since(now);
            charged = media;
        }
        (self.cylinder, self.head) = (spot.cylinder, spot.head);
        let origin = spot.media;
        let track = (start - u64::from(spot.sector), u64::from(spot.sectors));
        let rests = Time::ZERO;
        let stream = Stream { segment, origin, at, settled, track, start, limit, rests, charged };
        self.work = Work::Reading(stream);
        self.limit(limit);
        Passed { first: at, last }
    }

    /// Writes `start .. start + len`, whose first data are there at `not_before` and whose last at
    /// `all`; gives the time when they are on the medium. The mechanism is at rest.
    pub(crate) fn write(
        &mut self,
        now: Time,
        (start, len): (u64, u64),
        (not_before, all): (Time, Time),
        destage: bool,
    ) -> Time {
        let spot = self.geometry.locate(start);
        let (media, last) = self.geometry.end(&spot, start, len);
        let takes = Nanos(media - spot.media);
        // A slow interface must not fall behind the medium.
        let not_before = not_before.max(Time(all.0.saturating_sub(takes.0)));
        let on = self.ended == (start, true);
        let place = (self.cylinder, self.head);
        let (_, at) = self.arrive(place, (now, not_before), &spot, true, on);
        let until = at + takes;
        self.ended = (start + len, true);
        self.busy += until.since(now);
        (self.cylinder, self.head) = (last.cylinder, last.head);
        self.work = Work::Writing { until, destage };
        until
    }

    /// Counts the part of the stream up to `until`, when data that were asked for have passed, as
    /// work that was asked for.
    pub(crate) fn charge(&mut self, until: Time) {
        if let Work::Reading(stream) = &mut self.work {
            let media = stream.origin + until.since(stream.at).0;
            if until > stream.at && media > stream.charged {
                self.busy += Nanos(media - stream.charged);
                stream.charged = media;
            }
        }
    }

    /// Counts the reading of sectors, long past, as work that was asked for.
    pub(crate) fn charge_read_ahead(&mut self, (start, end): (u64, u64)) {
        if start < end {
            let first = self.geometry.locate(start);
            let (media, _) = self.geometry.end(&first, start, end - start);
            self.busy += Nanos(media - first.media);
        }
    }

    /// Where a stream began, and the first sector of it that is not counted as work.
    pub(crate) fn charged(&self, stream: &Stream) -> (u64, u64) {
        (stream.start, self.geometry.reached(stream.charged).0.max(stream.start))
    }

    /// When the head, moved at `now` from `place`, would be over `spot`.
    pub(crate) fn reach(&self, place: (u32, u32), now: Time, spot: &Spot, write: bool) -> Time {
        self.arrive(place, (now, now), spot, write, false).1
    }

    /// Whether moving the head to `spot` at `now` gets there before the stream, which comes there at
    /// `streamed`. Within a turn it cannot: both have to be there when the sector passes.
    pub(crate) fn quicker(&self, now: Time, spot: &Spot, streamed: Time) -> bool {
        streamed.since(now).0 > self.turn
            && self.arrive(self.place(now), (now, now), spot, false, false).1 < streamed
    }
}
