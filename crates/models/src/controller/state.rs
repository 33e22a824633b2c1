//! A controller at work.

use std::collections::VecDeque;

use raidlab_core::contract::{IoOutcome, Outcome};
use raidlab_core::units::{Nanos, Sector, Sectors, Time};

use super::{ControllerSpec, WritePolicy};
use crate::disk::write_buffer::WriteBuffer;
use crate::drive::{DriveIo, DriveIoId, DriveOp};
use crate::queue::{Queue, QueueInput, QueueOutput, QueueSpec};

/// Requests from this number on are destages, not requests of the host.
const DESTAGE: u32 = 1 << 31;
/// The wake-up of the request queue.
const QUEUE: u32 = u32::MAX;

/// An input to a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerInput {
    /// A request of the host.
    Submit {
        /// The caller's name for it; comes back in [`ControllerOutput::Complete`].
        id: u32,
        /// What it asks for.
        op: DriveOp,
        /// The first sector of the array.
        at: Sector,
        /// How many sectors; none for a flush.
        len: Sectors,
        /// Writes: answer when on the media, unless the cache has a battery.
        fua: bool,
        /// On whose behalf.
        process: u32,
    },
    /// What [`ControllerOutput::Transfer`] asked for has passed between host and controller.
    Transferred {
        /// For which request of the controller.
        request: u32,
    },
    /// The array has answered what [`ControllerOutput::Request`] gave it.
    Answered {
        /// Which.
        request: u32,
        /// How it went.
        outcome: Outcome,
    },
    /// The time asked for by [`ControllerOutput::WakeAt`] has come. Needless ones do no harm.
    Wake {
        /// As it was asked for.
        what: u32,
    },
}

/// An output of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerOutput {
    /// Hand this to the array.
    Request {
        /// The controller's name for it.
        request: u32,
        /// What it asks for.
        op: DriveOp,
        /// The first sector of the array.
        at: Sector,
        /// How many sectors.
        len: Sectors,
        /// Writes: answer when durable.
        fua: bool,
    },
    /// Pass so much between host and controller, which can have begun at `from`.
    Transfer {
        /// For which request of the controller.
        request: u32,
        /// Not before then.
        from: Time,
        /// How much.
        len: Sectors,
        /// [`DriveOp::Read`]: to the host.
        op: DriveOp,
    },
    /// A request of the host ended.
    Complete {
        /// The caller's name for it.
        id: u32,
        /// How it went.
        outcome: Outcome,
    },
    /// Hand in [`ControllerInput::Wake`] at this time.
    WakeAt {
        /// For what.
        what: u32,
        /// When.
        at: Time,
    },
}

/// A request of the host, of which some pieces are not back.
#[derive(Clone, Copy, Debug)]
struct Asked {
    id: u32,
    left: u32,
    outcome: Outcome,
}

/// A request that the queue has sent to the controller.
#[derive(Clone, Copy, Debug)]
struct Work {
    io: DriveIo,
    /// When it came, then when it went to the array.
    sent: Time,
    outcome: Outcome,
    is_ready: bool,
    /// Writes that pass through: whether the array, or the transfer, is done with it.
    is_half_done: bool,
}

/// One server, first come, first served.
#[derive(Clone, Copy, Debug, Default)]
struct Processor {
    free: Time,
    busy: Nanos,
}

impl Processor {
    fn serve(&mut self, now: Time, cost: Nanos) -> Time {
        self.free = self.free.max(now) + cost;
        self.busy += cost;
        self.free
    }
}

/// Posted writes.
#[derive(Clone, Debug)]
struct Posted {
    dirty: WriteBuffer,
    /// On their way to the array; a slot without sectors is free.
    flying: Vec<(u64, u64)>,
    /// Writes that wait for room.
    waiting: VecDeque<u32>,
}

impl Posted {
    fn room(&self) -> u64 {
        let flying: u64 = self.flying.iter().map(|(start, end)| end - start).sum();
        self.dirty.room().saturating_sub(flying)
    }

    fn takes(&self, io: &DriveIo) -> bool {
        let end = io.at.0 + u64::from(io.len);
        self.room() >= u64::from(io.len) && self.dirty.can_insert(io.at.0, end, 0)
    }

    /// Whether the cache holds all of a range.
    fn holds(&self, mut at: u64, end: u64) -> bool {
        while at < end {
            let flying = self.flying.iter().find(|(from, to)| (*from..*to).contains(&at));
            let to = self.dirty.covers(at).or(flying.map(|(_, to)| *to));
            let Some(to) = to else { return false };
            at = to;
        }
        true
    }
}

/// A controller at work. See [the module](super) for what is modelled.
///
/// Hand in what happens with [`handle`](Self::handle), then drain [`poll`](Self::poll).
#[derive(Clone, Debug)]
pub struct Controller {
    spec: ControllerSpec,
    queue: Queue,
    asked: Vec<Asked>,
    free_asked: Vec<u32>,
    /// By the queue's own number.
    works: Vec<Work>,
    processor: Processor,
    parity: Processor,
    posted: Option<Posted>,
    /// Sectors of writes under way, and those that wait for room among them.
    writing: u64,
    held: VecDeque<u32>,
    /// How the request ended that the queue is just being told of.
    ending: Outcome,
    outputs: VecDeque<ControllerOutput>,
}

impl Controller {
    /// An idle controller. The specification was [checked](ControllerSpec::check). `stripe` is what a
    /// full stripe of the array holds, for levels without a block of it; `longest`, of the controller and of its
    /// request queue, is whole blocks.
    pub fn new(spec: &ControllerSpec, stripe: Sectors) -> Self {
        let mut spec = spec.clone();
        if stripe > Sectors::ZERO {
            let stripes = (spec.destage.0 / stripe.0).max(1);
            spec.destage = Sectors(stripes * stripe.0);
        }
        let posted = match spec.writes {
            WritePolicy::Posted { capacity, extents } => Some(Posted {
                dirty: WriteBuffer::new(capacity.0, extents),
                flying: vec![(0, 0); spec.destages as usize],
                waiting: VecDeque::with_capacity(spec.outstanding as usize),
            }),
            WritePolicy::Pass | WritePolicy::Through => None,
        };
        Self {
            queue: Queue::new(&spec.queue()),
            spec,
            asked: Vec::with_capacity(256),
            free_asked: Vec::with_capacity(256),
            works: Vec::with_capacity(256),
            processor: Processor::default(),
            parity: Processor::default(),
            posted,
            writing: 0,
            held: VecDeque::with_capacity(256),
            ending: Outcome::Done,
            outputs: VecDeque::with_capacity(64),
        }
    }

    /// The figures, `destage` rounded to full stripes.
    pub fn spec(&self) -> &ControllerSpec {
        &self.spec
    }

    /// Puts another request queue in front, within the controller's limits. Before the first request.
    pub fn set_queue(&mut self, queue: &QueueSpec) {
        self.spec.scheduler = queue.scheduler;
        self.queue = Queue::new(&self.spec.limit(*queue));
    }

    /// How long the controller's processor worked on requests, and how long on parity.
    pub fn busy(&self) -> (Nanos, Nanos) {
        (self.processor.busy, self.parity.busy)
    }

    /// When parity over so many bytes of operands is computed; none when that is the host's affair.
    pub fn compute(&mut self, now: Time, bytes: u64) -> Option<Time> {
        let rate = u128::from(self.spec.parity_rate?.max(1));
        let cost = Nanos((u128::from(bytes) * 1_000_000_000 / rate) as u64);
        Some(self.parity.serve(now, cost))
    }

    /// Takes an input; `now` never goes back.
    pub fn handle(&mut self, now: Time, input: ControllerInput) {
        match input {
            ControllerInput::Submit { id, op, at, len, fua, process } => {
                self.submit(now, id, (op, at, len, fua), process);
            }
            ControllerInput::Transferred { request } => match self.works[request as usize].io.op {
                DriveOp::Write if self.passes_through() => self.half_done(now, request),
                DriveOp::Write => self.execute(now, request),
                _ => self.end(now, request),
            },
            ControllerInput::Answered { request, outcome } if request >= DESTAGE => {
                self.destaged(now, request - DESTAGE, outcome);
            }
            ControllerInput::Answered { request, outcome } => {
                self.answered(now, request, outcome);
            }
            ControllerInput::Wake { what: QUEUE } => {
                self.queue.handle(now, QueueInput::Wake);
                self.drain_queue(now);
            }
            ControllerInput::Wake { what } => self.ready(now, what),
        }
    }

    /// The next output; drain until `None` after every [`handle`](Self::handle).
    pub fn poll(&mut self) -> Option<ControllerOutput> {
        self.outputs.pop_front()
    }

    fn submit(
        &mut self,
        now: Time,
        id: u32,
        (op, at, len, fua): (DriveOp, Sector, Sectors, bool),
        process: u32,
    ) {
        let longest = self.queue.spec().longest.0;
        let left = len.0.div_ceil(longest).max(1) as u32;
        let asked = Asked { id, left, outcome: Outcome::Done };
        let slot = if let Some(slot) = self.free_asked.pop() {
            self.asked[slot as usize] = asked;
            slot
        } else {
            self.asked.push(asked);
            self.asked.len() as u32 - 1
        };
        let id = DriveIoId(slot);
        for piece in 0..u64::from(left) {
            let from = piece * longest;
            let len = (len.0 - from).min(longest) as u32;
            let io = DriveIo { id, op, at: Sector(at.0 + from), len, fua };
            self.queue.handle(now, QueueInput::Submit { io, process });
        }
        self.drain_queue(now);
    }

    fn drain_queue(&mut self, now: Time) {
        while let Some(output) = self.queue.poll() {
            match output {
                QueueOutput::Dispatch(io) => self.take(now, io),
                QueueOutput::Complete { id, outcome } => self.piece_done(id.0, outcome),
                QueueOutput::WakeAt(at) => {
                    self.outputs.push_back(ControllerOutput::WakeAt { what: QUEUE, at });
                }
            }
        }
    }

    /// The queue holds back no piece that failed: pieces are no longer than it takes, and behind a write that
    /// failed it sends no flush. So what is not as the queue says went as the request of which it is just told.
    fn piece_done(&mut self, slot: u32, outcome: IoOutcome) {
        let asked = &mut self.asked[slot as usize];
        asked.left -= 1;
        asked.outcome = match (asked.outcome, outcome) {
            (before, IoOutcome::Ok) => before,
            (Outcome::Done, IoOutcome::MediaError { first_bad }) => {
                Outcome::MediaError { first_bad }
            }
            (Outcome::MediaError { first_bad: before }, IoOutcome::MediaError { first_bad }) => {
                Outcome::MediaError { first_bad: before.min(first_bad) }
            }
            (Outcome::Done, _) => self.ending,
            (before, _) => before,
        };
        if asked.left == 0 {
            let (id, outcome) = (asked.id, asked.outcome);
            self.free_asked.push(slot);
            self.outputs.push_back(ControllerOutput::Complete { id, outcome });
        }
    }

    /// The controller takes a request from the queue.
    fn take(&mut self, now: Time, io: DriveIo) {
        let request = io.id.0;
        let (outcome, is_ready, is_half_done) = (Outcome::Done, false, false);
        let work = Work { io, sent: now, outcome, is_ready, is_half_done };
        if self.works.len() <= request as usize {
            self.works.resize(request as usize + 1, work);
        }
        self.works[request as usize] = work;
        let ready = self.processor.serve(now, self.spec.request);
        if ready > now {
            self.outputs.push_back(ControllerOutput::WakeAt { what: request, at: ready });
        } else {
            self.ready(now, request);
        }
    }

    /// The processor is done with a request.
    fn ready(&mut self, now: Time, request: u32) {
        let work = &mut self.works[request as usize];
        if std::mem::replace(&mut work.is_ready, true) {
            return;
        }
        let DriveIo { op, len, .. } = work.io;
        if op == DriveOp::Write && self.posted.is_none() {
            if !self.has_room(u64::from(len)) || !self.held.is_empty() {
                self.held.push_back(request);
                return;
            }
            self.writing += u64::from(len);
        }
        self.start(now, request);
    }

    /// Whether so many sectors more may be written at once.
    fn has_room(&self, sectors: u64) -> bool {
        let most = self.spec.write_buffer;
        self.writing == 0 || most.is_none_or(|most| self.writing + sectors <= most.0)
    }

    /// Gets on with a request, or lets its data come first.
    fn start(&mut self, now: Time, request: u32) {
        let DriveIo { op, len, .. } = self.works[request as usize].io;
        if op == DriveOp::Write {
            let len = Sectors(u64::from(len));
            self.outputs.push_back(ControllerOutput::Transfer { request, from: now, len, op });
        }
        if op != DriveOp::Write || self.passes_through() {
            self.execute(now, request);
        }
    }

    /// Without memory for it, data of a write go to the drives as they come from the host.
    fn passes_through(&self) -> bool {
        self.spec.writes == WritePolicy::Pass
    }

    /// The array, or the transfer, is done with a write that passes through.
    fn half_done(&mut self, now: Time, request: u32) {
        if std::mem::replace(&mut self.works[request as usize].is_half_done, true) {
            self.end(now, request);
        }
    }

    fn execute(&mut self, now: Time, request: u32) {
        self.works[request as usize].sent = now;
        let DriveIo { op, at, len, fua, .. } = self.works[request as usize].io;
        let sectors = Sectors(u64::from(len));
        let Some(posted) = &mut self.posted else {
            let output = ControllerOutput::Request { request, op, at, len: sectors, fua };
            self.outputs.push_back(output);
            return;
        };
        match op {
            DriveOp::Flush => self.end(now, request),
            DriveOp::Write => {
                posted.waiting.push_back(request);
                self.post(now);
                self.destage();
            }
            DriveOp::Read if posted.holds(at.0, at.0 + sectors.0) => {
                self.outputs.push_back(ControllerOutput::Transfer {
                    request,
                    from: now,
                    len: sectors,
                    op,
                });
            }
            DriveOp::Read => {
                let output = ControllerOutput::Request { request, op, at, len: sectors, fua };
                self.outputs.push_back(output);
            }
        }
    }

    /// Takes the writes for which there is room, in order.
    fn post(&mut self, now: Time) {
        while let Some(posted) = &mut self.posted
            && let Some(request) = posted.waiting.front().copied()
        {
            let io = self.works[request as usize].io;
            if !posted.takes(&io) {
                return;
            }
            posted.waiting.pop_front();
            posted.dirty.insert(io.at.0, io.at.0 + u64::from(io.len));
            self.end(now, request);
        }
    }

    /// Sends dirty data to the array, as many pieces at once as may be.
    fn destage(&mut self) {
        let Some(posted) = &mut self.posted else { return };
        let piece = self.spec.destage.0;
        while let Some(slot) = posted.flying.iter().position(|(start, end)| start == end)
            && let Some((start, end)) = posted.dirty.next()
        {
            let end = end.min((start / piece + 1) * piece);
            posted.dirty.send(start, end - start);
            // What is under way is counted here, since there may be several.
            posted.dirty.arrived();
            posted.flying[slot] = (start, end);
            self.outputs.push_back(ControllerOutput::Request {
                request: DESTAGE + slot as u32,
                op: DriveOp::Write,
                at: Sector(start),
                len: Sectors(end - start),
                fua: false,
            });
        }
    }

    /// A piece is on the media. One that failed is lost: the controller has nowhere else to put it.
    fn destaged(&mut self, now: Time, slot: u32, _outcome: Outcome) {
        if let Some(posted) = &mut self.posted {
            posted.flying[slot as usize] = (0, 0);
        }
        self.post(now);
        self.destage();
    }

    fn answered(&mut self, now: Time, request: u32, outcome: Outcome) {
        let work = &mut self.works[request as usize];
        work.outcome = outcome;
        let (io, from) = (work.io, work.sent);
        if io.op == DriveOp::Read && outcome == Outcome::Done {
            let (len, op) = (Sectors(u64::from(io.len)), io.op);
            self.outputs.push_back(ControllerOutput::Transfer { request, from, len, op });
        } else if io.op == DriveOp::Write && self.passes_through() {
            self.half_done(now, request);
        } else {
            self.end(now, request);
        }
    }

    fn end(&mut self, now: Time, request: u32) {
        let DriveIo { op, len, .. } = self.works[request as usize].io;
        if op == DriveOp::Write && self.posted.is_none() {
            self.writing = self.writing.saturating_sub(u64::from(len));
            while let Some(next) = self.held.front().copied()
                && let sectors = u64::from(self.works[next as usize].io.len)
                && self.has_room(sectors)
            {
                self.held.pop_front();
                self.writing += sectors;
                self.start(now, next);
            }
        }
        self.ending = self.works[request as usize].outcome;
        let outcome = match self.ending {
            Outcome::Done => IoOutcome::Ok,
            Outcome::MediaError { first_bad } => IoOutcome::MediaError { first_bad },
            _ => IoOutcome::Gone,
        };
        self.queue.handle(now, QueueInput::Ended { id: DriveIoId(request), outcome });
        self.drain_queue(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Scheduler;

    fn write(id: u32, at: u64, len: u64) -> ControllerInput {
        let (op, at, len) = (DriveOp::Write, Sector(at), Sectors(len));
        ControllerInput::Submit { id, op, at, len, fua: false, process: 0 }
    }

    /// Hands in an input and what transfers of its own accord; gives the requests to the array and the
    /// ends of the host's.
    fn hand(
        controller: &mut Controller,
        input: ControllerInput,
    ) -> (Vec<(u32, u64, u64)>, Vec<u32>) {
        let (mut requests, mut ends) = (Vec::new(), Vec::new());
        controller.handle(Time::ZERO, input);
        while let Some(output) = controller.poll() {
            match output {
                ControllerOutput::Request { request, at, len, .. } => {
                    requests.push((request, at.0, len.0));
                }
                ControllerOutput::Transfer { request, .. } => {
                    controller.handle(Time::ZERO, ControllerInput::Transferred { request });
                }
                ControllerOutput::Complete { id, .. } => ends.push(id),
                ControllerOutput::WakeAt { what, at } => panic!("wakes {what} at {at:?}"),
            }
        }
        (requests, ends)
    }

    /// Dirty data leave in order and cut at stripes, two at a time; who finds no room waits for it.
    #[test]
    fn posted_writes_leave_as_full_stripes() {
        let spec = ControllerSpec {
            request: Nanos::ZERO,
            longest: Sectors(1_024),
            destages: 2,
            ..ControllerSpec::smart_array_e200i("c", true)
        };
        let spec = spec.with_writes(WritePolicy::Posted { capacity: Sectors(1_200), extents: 8 });
        let mut controller = Controller::new(&spec, Sectors(384));
        assert_eq!(controller.spec().destage, Sectors(384), "512 rounded down to a stripe");
        let first = DESTAGE;
        let (requests, ends) = hand(&mut controller, write(7, 100, 1_000));
        assert_eq!(requests, [(first, 100, 284), (first + 1, 384, 384)]);
        assert_eq!(ends, [7], "at once");
        let (requests, ends) = hand(&mut controller, write(8, 5_000, 400));
        assert!(requests.is_empty() && ends.is_empty(), "no room and no more at once");
        let answered = |request| ControllerInput::Answered { request, outcome: Outcome::Done };
        let (requests, ends) = hand(&mut controller, answered(first + 1));
        assert_eq!((requests, ends), (vec![(first + 1, 768, 332)], vec![8]));
        let (requests, _) = hand(&mut controller, answered(first));
        assert_eq!(requests, [(first, 5_000, 376)], "up to the end of its stripe");
    }

    /// A card that passes writes through and takes eight requests at once.
    fn passing(write_buffer: Option<Sectors>) -> Controller {
        let spec = ControllerSpec { request: Nanos::ZERO, ..ControllerSpec::ite8212_bios("c") };
        let spec = ControllerSpec { write_buffer, longest: Sectors(1_024), ..spec };
        Controller::new(&spec.with_outstanding(8), Sectors::ZERO)
    }

    /// What a controller says to an input: transfers, requests to the array, ends.
    #[derive(Debug, Default, PartialEq)]
    struct Said(Vec<u32>, Vec<u32>, Vec<(u32, Outcome)>);

    fn say(controller: &mut Controller, input: ControllerInput) -> Said {
        controller.handle(Time::ZERO, input);
        let mut said = Said::default();
        while let Some(output) = controller.poll() {
            match output {
                ControllerOutput::Transfer { request, .. } => said.0.push(request),
                ControllerOutput::Request { request, .. } => said.1.push(request),
                ControllerOutput::Complete { id, outcome } => said.2.push((id, outcome)),
                ControllerOutput::WakeAt { what, at } => panic!("wakes {what} at {at:?}"),
            }
        }
        said
    }

    fn answered(request: u32, outcome: Outcome) -> ControllerInput {
        ControllerInput::Answered { request, outcome }
    }

    /// Bus and array have a write at once, and it ends with the later of them, whichever that is.
    #[test]
    fn writes_that_pass_through_end_when_both_bus_and_array_are_done() {
        let done = Outcome::Done;
        for (bus_first, outcome) in [(true, done), (false, done), (true, Outcome::OutOfRange)] {
            let mut controller = passing(None);
            let said = say(&mut controller, write(7, 0, 8));
            assert_eq!((said.0.len(), said.1.len()), (1, 1), "both begin: {said:?}");
            let request = said.1[0];
            let both = [ControllerInput::Transferred { request }, answered(request, outcome)];
            let [first, second] = if bus_first { both } else { [both[1], both[0]] };
            assert_eq!(say(&mut controller, first), Said::default(), "half of it");
            assert_eq!(say(&mut controller, second).2, [(7, outcome)]);
        }
        // One that writes through has the data first, and a cache has no need of the array.
        let spec = ControllerSpec::smart_array_e200i("c", false);
        let mut through = Controller::new(&spec, Sectors::ZERO);
        through.handle(Time::ZERO, write(7, 0, 8));
        let at = std::iter::from_fn(|| through.poll());
        let wakes = at.filter(|one| matches!(one, ControllerOutput::WakeAt { .. })).count();
        assert_eq!(wakes, 1);
        let said = say(&mut through, ControllerInput::Wake { what: 0 });
        assert_eq!((said.0.len(), said.1.len()), (1, 0), "the transfer alone");
        assert_eq!(say(&mut through, ControllerInput::Transferred { request: 0 }).1, [0]);
    }

    /// Written data under way are bounded, in order; what is larger goes alone. Reads wait for nobody.
    #[test]
    fn a_write_buffer_bounds_written_data_under_way() {
        let mut controller = passing(Some(Sectors(100)));
        let end = |controller: &mut Controller, request| {
            say(controller, ControllerInput::Transferred { request });
            say(controller, answered(request, Outcome::Done))
        };
        assert_eq!(say(&mut controller, write(0, 0, 60)).1.len(), 1);
        assert_eq!(say(&mut controller, write(1, 2_000, 40)).1.len(), 1, "100 of 100");
        assert_eq!(say(&mut controller, write(2, 4_000, 8)), Said::default(), "no room");
        assert_eq!(say(&mut controller, write(3, 6_000, 400)), Said::default());
        assert_eq!(say(&mut controller, write(4, 8_000, 8)), Said::default());
        let (op, at, len) = (DriveOp::Read, Sector(9_000), Sectors(64));
        let read = ControllerInput::Submit { id: 5, op, at, len, fua: false, process: 0 };
        assert_eq!(say(&mut controller, read).1.len(), 1, "a read");
        let said = end(&mut controller, 1);
        assert_eq!((said.1, said.2), (vec![2], vec![(1, Outcome::Done)]), "8 more, and not 400");
        assert_eq!(say(&mut controller, write(6, 12_000, 8)), Said::default(), "in order");
        assert_eq!(end(&mut controller, 0).1, [], "8 are under way");
        assert_eq!(end(&mut controller, 2).1, [3], "larger than the buffer, alone");
        assert_eq!(end(&mut controller, 3).1, [4, 1], "both fit; 1 is a number used again");
        assert_eq!(end(&mut controller, 4).2, [(4, Outcome::Done)]);
        // Without a bound all go at once.
        let mut free = passing(None);
        for id in 0..8 {
            assert_eq!(say(&mut free, write(id, u64::from(id) * 2_000, 800)).1.len(), 1);
        }
    }

    /// An old scheduler takes 512 KiB. A request of 1.5 MiB comes to the controller in pieces, of which any may fail.
    #[test]
    fn a_request_fails_with_any_of_its_pieces() {
        let bad = Outcome::MediaError { first_bad: Sector(2_500) };
        for (scheduler, pieces) in [(Scheduler::Deadline, 3), (Scheduler::MqDeadline, 2)] {
            let card = ControllerSpec { request: Nanos::ZERO, ..ControllerSpec::bios_mirror("c") };
            let spec = card.with_longest(Sectors(2_048)).with_scheduler(scheduler);
            let any = (0..pieces).map(|piece| (piece, Outcome::ArrayFailed));
            for (failing, outcome) in any.chain([(pieces - 1, bad)]) {
                let mut controller = Controller::new(&spec, Sectors::ZERO);
                let (op, at, len) = (DriveOp::Read, Sector(0), Sectors(3_072));
                let read = ControllerInput::Submit { id: 7, op, at, len, fua: false, process: 0 };
                let mut said = say(&mut controller, read);
                for piece in 0..pieces {
                    let request = said.1[0];
                    let ends = if piece == failing { outcome } else { Outcome::Done };
                    said = say(&mut controller, answered(request, ends));
                    if piece != failing {
                        said = say(&mut controller, ControllerInput::Transferred { request });
                    }
                }
                assert_eq!(said.2, [(7, outcome)], "{scheduler}: {failing} of {pieces}");
            }
        }
    }

    /// Of two reads that were merged, the one before the bad sector is well.
    #[test]
    fn a_bad_sector_fails_what_it_is_in() {
        let card = ControllerSpec { request: Nanos::ZERO, ..ControllerSpec::bios_mirror("c") };
        let mut controller = Controller::new(&card, Sectors::ZERO);
        let read = |id, at| {
            let (op, at, len) = (DriveOp::Read, Sector(at), Sectors(8));
            ControllerInput::Submit { id, op, at, len, fua: false, process: 0 }
        };
        let first = say(&mut controller, read(0, 10_000)).1[0];
        [100, 108].iter().zip(1..).for_each(|(at, id)| drop(say(&mut controller, read(id, *at))));
        say(&mut controller, answered(first, Outcome::Done));
        let merged = say(&mut controller, ControllerInput::Transferred { request: first });
        assert_eq!(merged.2, [(0, Outcome::Done)]);
        let bad = Outcome::MediaError { first_bad: Sector(110) };
        let said = say(&mut controller, answered(merged.1[0], bad));
        assert_eq!(said.2, [(1, Outcome::Done), (2, bad)]);
    }

    /// A durable write that failed is answered so; no flush follows that would go well.
    #[test]
    fn a_durable_write_that_failed_is_not_flushed_to_the_good() {
        let mut controller = passing(None);
        let queue =
            QueueSpec { merges_flushes: true, has_fua: false, ..Scheduler::MqDeadline.spec(8) };
        controller.set_queue(&queue);
        let (op, at, len) = (DriveOp::Write, Sector(0), Sectors(8));
        let durable = ControllerInput::Submit { id: 7, op, at, len, fua: true, process: 0 };
        let request = say(&mut controller, durable).1[0];
        say(&mut controller, ControllerInput::Transferred { request });
        let said = say(&mut controller, answered(request, Outcome::ArrayFailed));
        assert_eq!((said.1, said.2), (vec![], vec![(7, Outcome::ArrayFailed)]));
    }

    #[test]
    fn the_bounds_of_what_firmware_says_are_checked() {
        let card = ControllerSpec::ite8212_bios("card");
        let switch = |nanos| ControllerSpec { switch: Some(Nanos(nanos)), ..card.clone() };
        let buffer =
            |sectors| ControllerSpec { write_buffer: Some(Sectors(sectors)), ..card.clone() };
        for good in [switch(0), switch(1_000_000_000), buffer(8), buffer(1 << 20)] {
            assert_eq!(good.check(), Ok(()));
        }
        for (bad, key) in [
            (switch(1_000_000_001), "switch"),
            (buffer(7), "write_buffer"),
            (buffer((1 << 20) + 1), "write_buffer"),
        ] {
            let error = bad.check().expect_err(key);
            assert_eq!(error.key, key);
            assert!(error.reason.starts_with("card: ") && error.reason.contains("must be"));
        }
    }
}
