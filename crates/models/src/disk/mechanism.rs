//! Arm and platters: where the head is, and when it is over a sector.

use raidlab_core::units::{Nanos, Time};

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
    /// One past the last sector to be read.
    pub limit: u64,
    charged: u64,
}

impl Stream {
    /// When the head has come to this media time; long ago for what lies before the stream.
    pub(crate) fn time(&self, media: u64) -> Time {
        if media <= self.origin { Time::ZERO } else { self.at + Nanos(media - self.origin) }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Mechanism {
    geometry: Geometry,
    curve: SeekCurve,
    turn: u64,
    phase: u64,
    head_switch: u64,
    write_settle: u64,
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
        Self {
            geometry,
            curve,
            turn,
            phase: super::Random::new(seed).below(turn),
            head_switch: f.head_switch.0,
            write_settle: f.write_settle.0,
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

    /// When the head is over `to`, leaving the track `from` (cylinder, surface) at `now` and waiting
    /// at least until `not_before`. Exact: the platters' angle is a function of time.
    fn arrive(
        &self,
        from: (u32, u32),
        now: Time,
        to: &Spot,
        write: bool,
        not_before: Time,
    ) -> Time {
        let distance = from.0.abs_diff(to.cylinder);
        let mut moved = self.curve.time(distance);
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
        there + Nanos(wait)
    }

    /// When a stream has read up to sector `end`, from which on it is at rest or goes on.
    pub(crate) fn passed(&self, stream: &Stream, end: u64) -> Time {
        if end == 0 {
            return Time::ZERO;
        }
        let last = self.geometry.locate(end - 1);
        stream.time(self.geometry.end(&last, end - 1, 1).0)
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

    /// Ends a stream; gives its segment and the first sector it did not read.
    pub(crate) fn stop(&mut self, now: Time) -> Option<(usize, u64)> {
        let Work::Reading(stream) = self.work else { return None };
        let (at, cylinder, head) = self.reached(&stream, now);
        (self.cylinder, self.head) = (cylinder, head);
        self.work = Work::Idle;
        Some((stream.segment, at))
    }

    /// Reads `start .. end` and on up to `limit`; gives the time when `end` has passed. The
    /// mechanism is at rest. `asked`: for a command, not for reading ahead.
    pub(crate) fn read(
        &mut self,
        now: Time,
        (start, end): (u64, u64),
        (segment, limit): (usize, u64),
        asked: bool,
    ) -> Time {
        let spot = self.geometry.locate(start);
        let at = self.arrive((self.cylinder, self.head), now, &spot, false, now);
        let (media, _) = self.geometry.end(&spot, start, end - start);
        let until = at + Nanos(media - spot.media);
        let mut charged = spot.media;
        if asked {
            self.busy += until.since(now);
            charged = media;
        }
        (self.cylinder, self.head) = (spot.cylinder, spot.head);
        self.work = Work::Reading(Stream { segment, origin: spot.media, at, limit, charged });
        until
    }

    /// Writes `start .. start + len`, whose first data are there at `not_before`; gives the time
    /// when they are on the medium. The mechanism is at rest.
    pub(crate) fn write(
        &mut self,
        now: Time,
        (start, len): (u64, u64),
        not_before: Time,
        destage: bool,
    ) -> Time {
        let spot = self.geometry.locate(start);
        let at = self.arrive((self.cylinder, self.head), now, &spot, true, not_before);
        let (media, last) = self.geometry.end(&spot, start, len);
        let until = at + Nanos(media - spot.media);
        self.busy += until.since(now);
        (self.cylinder, self.head) = (last.cylinder, last.head);
        self.work = Work::Writing { until, destage };
        until
    }

    /// Counts the part of the stream up to media time `media` as work that was asked for.
    pub(crate) fn charge(&mut self, media: u64) {
        if let Work::Reading(stream) = &mut self.work
            && media > stream.charged
        {
            self.busy += Nanos(media - stream.charged);
            stream.charged = media;
        }
    }

    /// Whether moving the head to `spot` at `now` gets there before the stream, which comes there at
    /// `streamed`. Within a turn it cannot: both have to be there when the sector passes.
    pub(crate) fn quicker(&self, stream: &Stream, now: Time, spot: &Spot, streamed: Time) -> bool {
        if streamed.since(now).0 <= self.turn {
            return false;
        }
        let (_, cylinder, head) = self.reached(stream, now);
        self.arrive((cylinder, head), now, spot, false, now) < streamed
    }
}
