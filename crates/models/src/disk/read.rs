//! Reading: hits, following the stream, going to the medium, reading ahead.

use raidlab_core::units::{Nanos, Time};

use super::mechanism::{Passed, Stream, Work};
use super::policy::{Delivered, ReadAhead, Trigger};
use super::{CommandStep, HardDisk};

impl HardDisk {
    /// A read for which the electronics are done.
    pub(super) fn read(&mut self, index: usize) {
        let from = self.commands[index].io.at.0;
        if self.policy.immediate_report && !self.writes.is_clean() {
            self.wait_for_mechanism(index, from);
            self.commands[index].looked = Time::ZERO;
            return;
        }
        self.commands_since_destage = self.commands_since_destage.saturating_add(1);
        let end = self.commands[index].end();
        let Some(from) = self.hit(index, from) else { return };
        // What passes anyhow while the mechanism is reserved needs no turn of its own.
        if let Work::Reading(stream) = self.mechanism.work
            && end <= stream.limit
            && self.kept(&stream, from, self.now)
        {
            let passed = self.mechanism.passes(&stream, from, end);
            if passed.last <= self.reserved {
                let start = self.commands[index].io.at.0;
                let continued = self.segments.continues(start);
                self.extend(&stream, (start, end), continued);
                self.mechanism.charge(passed.last);
                self.served(stream.segment, end);
                return self.finish_read(index, from, passed);
            }
        }
        self.wait_for_mechanism(index, from);
    }

    /// A read up to `end` was served from a segment.
    fn served(&mut self, segment: usize, end: u64) {
        self.segments.served(segment, end);
        if self.policy.delivered == Delivered::GivenUp {
            self.segments.drop_before(segment, end);
        }
    }

    fn wait_for_mechanism(&mut self, index: usize, from: u64) {
        let command = &mut self.commands[index];
        command.step = CommandStep::Read { from };
        command.looked = self.now;
        command.spot = self.mechanism.geometry().locate(from);
    }

    /// Answers a read from the caches if they hold all of it from `from` on; gives the first sector
    /// that they do not.
    fn hit(&mut self, index: usize, from: u64) -> Option<u64> {
        let (start, end) = (self.commands[index].io.at.0, self.commands[index].end());
        let continued = self.segments.continues(start);
        let (from, segment) = self.cached(from, end, continued);
        if from < end {
            return Some(from);
        }
        let at = self.take_link(self.commands[index].ready, end - start);
        self.finish(index, at);
        if let Some(segment) = segment {
            self.served(segment, end);
            if self.policy.resumes_on_hit {
                self.read_ahead_again(segment, (start, end), continued);
            }
        }
        None
    }

    /// A read gets the mechanism.
    pub(super) fn read_now(&mut self, index: usize, from: u64) {
        let mut from = from;
        // Since it began to wait, another command may have brought the data in.
        if self.commands[index].looked < self.now {
            let Some(missed) = self.hit(index, from) else { return };
            from = missed;
        }
        let command = &self.commands[index];
        let (start, end) = (command.io.at.0, command.end());
        let continued = self.segments.continues(start);
        let passed = match self.follow((start, from, end), continued) {
            Some(passed) => passed,
            None => {
                self.stop_reading(self.now);
                self.stays_since = self.now;
                let segment = self.segments.open(from);
                let limit = self.ahead(start, end, continued);
                self.make_room(segment, continued, (from, limit));
                self.mechanism.read(self.now, (from, end), (segment, limit), true)
            }
        };
        self.reserved = passed.last;
        if let Work::Reading(stream) = self.mechanism.work {
            self.served(stream.segment, end);
            if continued && self.policy.hold.0 > 0 {
                let until = (end + self.policy.hold.0).min(stream.limit);
                self.reserved = self.reserved.max(self.mechanism.passed(&stream, until));
            }
        }
        self.finish_read(index, from, passed);
    }

    /// Whether the first sector of a read is in a cache, or the stream will come to it.
    pub(super) fn in_reach(&self, at: u64) -> bool {
        let stream = match &self.mechanism.work {
            Work::Reading(stream) => Some(stream),
            _ => None,
        };
        self.writes.covers(at).is_some()
            || self.written.find(at, None).is_some()
            || self.segments.find(at, stream.map(|stream| stream.segment)).is_some()
            || stream.is_some_and(|stream| self.kept(stream, at, self.now))
    }

    /// The first sector of `from .. end` that is in no cache now, and the last segment used.
    fn cached(&mut self, mut from: u64, end: u64, continued: bool) -> (u64, Option<usize>) {
        let mut used = None;
        let start = from;
        while from < end {
            if let Some(to) = self.writes.covers(from) {
                from = to;
                continue;
            }
            let mut filling = None;
            if let Work::Reading(stream) = self.mechanism.work {
                filling = Some(stream.segment);
                if let Some(to) = self.read_by(&stream, (start, from, end), continued) {
                    from = to;
                    used = filling;
                    continue;
                }
            }
            if let Some((segment, to)) = self.segments.find(from, filling) {
                self.segments.touch(segment);
                let asked = self.segments.count(segment, end);
                self.mechanism.charge_read_ahead(asked);
                used = Some(segment);
                from = to;
            } else if let Some((_, to)) = self.written.find(from, None) {
                from = to;
            } else {
                break;
            }
        }
        (from, used)
    }

    /// How far the present stream has read from `from` on by now, if it has to `end` or if it has
    /// come to its limit; otherwise it is to be followed.
    fn read_by(
        &mut self,
        stream: &Stream,
        (start, from, end): (u64, u64, u64),
        continued: bool,
    ) -> Option<u64> {
        if self.policy.whole_track {
            let front = self.mechanism.passed_in_front(stream, self.now);
            self.segments.reach_back(stream.segment, front);
        }
        if !self.kept(stream, from, self.now) {
            return None;
        }
        // What an earlier stream read into the segment.
        let asked = self.segments.count(stream.segment, end);
        self.mechanism.charge_read_ahead(asked);
        if end <= stream.limit {
            let passed = self.mechanism.passes(stream, from, end).last;
            if passed <= self.now {
                self.mechanism.charge(passed);
                self.extend(stream, (start, end), continued);
                return Some(end);
            }
        }
        (stream.rests <= self.now).then_some(stream.limit)
    }

    /// Whether sector `at` has a place in the segment of the stream: not dropped, not beyond.
    pub(super) fn kept(&self, stream: &Stream, at: u64, now: Time) -> bool {
        if at >= stream.limit || at < self.segments.start(stream.segment, 0) {
            return false;
        }
        at + self.segments.room(stream.segment) >= stream.limit
            || at >= self.segments.start(stream.segment, self.mechanism.front(stream, now))
    }

    /// How far to read after a read of `start .. end`; `continued`: it goes on where another ended.
    fn ahead(&self, start: u64, end: u64, continued: bool) -> u64 {
        let policy = &self.policy;
        if policy.trigger == Trigger::Continued && !continued {
            return end;
        }
        let geometry = self.mechanism.geometry();
        let last = geometry.locate(end - 1);
        let track_end = end + u64::from(last.used - last.sector - 1);
        let limit = match policy.read_ahead {
            ReadAhead::None => end,
            ReadAhead::Track => track_end,
            ReadAhead::Cylinder => geometry.cylinder_end(end - 1),
            ReadAhead::Segment | ReadAhead::Stream if policy.whole_track && !continued => track_end,
            ReadAhead::Segment | ReadAhead::Stream => {
                let kept = policy.delivered == Delivered::Kept;
                let from = if kept { start } else { end };
                let full = (from + self.segments.size()).max(end);
                full.min(end.saturating_add(policy.most_ahead.0))
            }
        };
        let limit = match policy.read_ahead {
            ReadAhead::Stream if continued => limit.max(end + u64::from(last.sectors)),
            _ => limit,
        };
        limit.min(self.capacity)
    }

    /// A stream in order that has to stay a track ahead takes as large a segment as that needs.
    fn make_room(&mut self, segment: usize, continued: bool, (from, limit): (u64, u64)) {
        if continued && self.policy.read_ahead == ReadAhead::Stream {
            self.segments.enlarge(segment, limit - from);
        }
    }

    /// Lets the stream read on beyond `end`, if it has not come to rest by now.
    fn extend(&mut self, stream: &Stream, (start, end): (u64, u64), continued: bool) {
        let limit = self.ahead(start, end, continued);
        if limit > stream.limit && stream.rests > self.now {
            self.make_room(stream.segment, continued, (start, limit));
            self.mechanism.limit(limit);
        }
    }

    /// If the present stream gets to `from` no later than the head could by itself: when `from ..
    /// end` passes.
    fn follow(&mut self, (start, from, end): (u64, u64, u64), continued: bool) -> Option<Passed> {
        let Work::Reading(stream) = self.mechanism.work else { return None };
        if !self.kept(&stream, from, self.now) || stream.rests <= self.now {
            return None;
        }
        let spot = self.mechanism.geometry().locate(from);
        if self.mechanism.quicker(self.now, &spot, stream.time(spot.media)) {
            return None;
        }
        self.extend(&stream, (start, end), continued);
        if let Work::Reading(stream) = &self.mechanism.work
            && stream.limit < end
        {
            self.mechanism.limit(end);
        }
        let passed = self.mechanism.passes(&stream, from, end);
        self.mechanism.charge(passed.last);
        Some(passed)
    }

    /// The data cross the interface as they come in, the last block after the medium has passed; or
    /// all of them then.
    fn finish_read(&mut self, index: usize, from: u64, passed: Passed) {
        let command = &self.commands[index];
        let (ready, len) = (command.ready, u64::from(command.io.len));
        let missed = command.end() - from;
        let all = self.take_link(ready, len);
        let at = if self.policy.read_overlap {
            let block = len.min(self.block);
            let sector = Nanos(passed.last.since(passed.first).0 / missed);
            let begun = passed.first + sector + self.link(missed);
            (passed.last + self.link(block)).max(all).max(begun)
        } else {
            all.max(passed.last + self.link(len))
        };
        self.finish(index, at);
    }

    /// Starts reading ahead again when a reader of `start .. end` has made room in its segment.
    fn read_ahead_again(&mut self, segment: usize, (start, end): (u64, u64), continued: bool) {
        if !self.writes.is_empty() || self.reserved > self.now {
            return;
        }
        match self.mechanism.work {
            Work::Writing { .. } => return,
            Work::Idle => {}
            Work::Reading(stream) => {
                if stream.rests > self.now {
                    return;
                }
                self.stop_reading(self.now);
            }
        }
        let from = self.segments.end(segment);
        let limit = self.ahead(start, end, continued);
        if (end..limit).contains(&from) {
            let segment = self.segments.open(from);
            self.make_room(segment, continued, (start, limit));
            self.mechanism.read(self.now, (from, from + 1), (segment, limit), false);
        }
    }

    pub(super) fn stop_reading(&mut self, now: Time) {
        let Some((stream, end)) = self.mechanism.stop(now) else { return };
        if self.policy.whole_track {
            let front = self.mechanism.passed_in_front(&stream, now);
            self.segments.reach_back(stream.segment, front);
        }
        let (begun, counted) = self.mechanism.charged(&stream);
        self.segments.close_ahead(stream.segment, begun, (counted.min(end), end));
    }
}
