//! The timed span: submits what was prepared, takes the answers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use raidlab_core::contract::{IoOp, Outcome, Segment};
use raidlab_core::{Nanos, SECTOR_BYTES, Sector, Time};
use raidlab_engine::{EngineError, EngineErrorKind, Reply, check_outcome};
use raidlab_workload::processes::Work;
use raidlab_workload::{Class, Mark};

use super::batch::{Action, Client, Flying, Prepared, State};
use super::pattern::BLOCK;
use super::{RUN, RawTarget, Run, Source, nanos};
use crate::work;

/// How long a sleeper sleeps at once, so that it hears of Ctrl-C.
const NAP: Duration = Duration::from_millis(50);

impl RawTarget {
    /// One batch; whether any process came further.
    pub(super) fn timed<S: Source>(
        &mut self,
        run: &mut Run<'_, S>,
        start: Instant,
    ) -> Result<bool, EngineError> {
        let mut moved = false;
        let mut idle: Vec<usize> = Vec::with_capacity(run.clients.len());
        idle.extend(0..run.clients.len());
        let mut stopping = false;
        loop {
            let cancelled = run.cancel.load(Ordering::Relaxed);
            if !stopping && !cancelled {
                moved |= self.go_on(run, &mut idle, start, &mut stopping)?;
            }
            if self.flying.is_empty() {
                if cancelled {
                    return Err(EngineError::cancelled(RUN));
                }
                if stopping || !sleep(run, &mut idle, start) {
                    return Ok(moved);
                }
                continue;
            }
            self.replies.clear();
            self.engine.wait_replies(&mut self.replies)?;
            let now = Instant::now();
            for position in 0..self.replies.len() {
                let reply = self.replies[position];
                idle.extend(self.answered(run, reply, now)?);
            }
            wake_sleepers(run, &mut idle, start);
        }
    }

    /// Lets each idle process go on until it waits for something; whether any did something.
    fn go_on<S: Source>(
        &mut self,
        run: &mut Run<'_, S>,
        idle: &mut Vec<usize>,
        start: Instant,
        stopping: &mut bool,
    ) -> Result<bool, EngineError> {
        let (mut moved, mut waiting, mut position) = (false, 0, 0);
        // Processes that others free are added behind.
        while position < idle.len() {
            let index = idle[position];
            position += 1;
            while run.clients[index].is_ready() {
                let Some(next) = run.clients[index].next() else {
                    *stopping |= !self.ended(run, index, start);
                    break;
                };
                if !self.step(run, index, next, idle, start)? {
                    idle[waiting] = index;
                    waiting += 1;
                    break;
                }
                moved = true;
            }
        }
        idle.truncate(waiting);
        Ok(moved)
    }

    /// A process has nothing prepared: notes its end, if it is that. False when the batch must end, so that
    /// more is prepared for it; for one that waits for a ticket, that is up to others.
    fn ended<S: Source>(&mut self, run: &mut Run<'_, S>, index: usize, start: Instant) -> bool {
        let now = Time((run.elapsed + nanos(start)).0);
        let client = &mut run.clients[index];
        if !client.ended || client.under_way > 0 {
            return client.ended || client.wants_ticket;
        }
        if let Some(recorder) = client.recorder.take() {
            run.result.record.processes[index] = recorder.finish(now, || None);
            run.done += 1;
        }
        true
    }

    /// Carries out one prepared operation; false when it must be tried again later.
    fn step<S: Source>(
        &mut self,
        run: &mut Run<'_, S>,
        index: usize,
        next: Prepared,
        idle: &mut Vec<usize>,
        start: Instant,
    ) -> Result<bool, EngineError> {
        let client = &mut run.clients[index];
        match next.action {
            Action::Read | Action::Write { .. } | Action::Sync => {
                let conflict = self.flying.iter().any(|other| other.conflicts(&next));
                if conflict || !self.engine.can_accept() {
                    return Ok(false);
                }
                self.submit(client, index, next)?;
                if next.is_started {
                    client.under_way += 1;
                } else {
                    client.state = State::Waiting;
                }
            }
            Action::Finish if client.finished > 0 => client.finished -= 1,
            Action::Finish if client.under_way > 0 => client.state = State::Finishing,
            Action::Finish => {}
            Action::Sleep(time) => {
                client.state = State::Sleeping(run.elapsed + nanos(start) + time);
            }
            Action::Compute(time) => spend(Work::Time(time), run.cancel),
            Action::Characters(bytes) => spend(Work::Characters(bytes), run.cancel),
            Action::Mark(mark) => client.mark(mark, run.elapsed + nanos(start)),
            Action::Barrier(barrier) => match run.conductor.arrive(index, barrier) {
                None => client.state = State::Waiting,
                Some(freed) => {
                    client.cursor += 1;
                    for other in freed {
                        run.clients[other].state = State::Ready;
                        idle.push(other);
                    }
                    return Ok(true);
                }
            },
        }
        run.clients[index].cursor += 1;
        Ok(true)
    }

    fn submit<S>(
        &mut self,
        client: &mut Client<'_, S>,
        index: usize,
        next: Prepared,
    ) -> Result<(), EngineError> {
        let at = Sector(next.at / SECTOR_BYTES);
        let segment = client.token.map(|token| Segment {
            token,
            offset: (next.offset / SECTOR_BYTES) as u32,
            len: (next.len / SECTOR_BYTES) as u32,
        });
        let blocks = (next.at / BLOCK) as usize..((next.at + next.len) / BLOCK) as usize;
        let op = match next.action {
            Action::Read => {
                client.prepared[client.cursor].expected = self.expected.len();
                self.expected.extend_from_slice(&self.versions[blocks]);
                IoOp::Read
            }
            Action::Write { version } => {
                self.versions[blocks].fill(version);
                IoOp::Write
            }
            _ => IoOp::Flush,
        };
        let segments = match (&segment, op) {
            (Some(segment), IoOp::Read | IoOp::Write) => std::slice::from_ref(segment),
            _ => &[],
        };
        let id = self.engine.submit(op, at, segments, false)?;
        self.flying.push(Flying { id, client: index, op, next, since: Instant::now() });
        Ok(())
    }

    /// Takes an answer; gives the process it is for when that can go on.
    fn answered<S>(
        &mut self,
        run: &mut Run<'_, S>,
        reply: Reply,
        now: Instant,
    ) -> Result<Option<usize>, EngineError> {
        let Some(position) = self.flying.iter().position(|one| one.id == reply.id) else {
            let reason = "an answer came to a request that was not made";
            return Err(EngineError::new(EngineErrorKind::Internal, RUN, reason));
        };
        let flying = self.flying.swap_remove(position);
        if reply.outcome != Outcome::Done {
            let at = Sector(flying.next.at / SECTOR_BYTES);
            let checked = check_outcome(reply.outcome, flying.op, at);
            checked.map_err(|error| self.engine.explain(error))?;
        }
        let class = match flying.op {
            IoOp::Read => Class::Read,
            IoOp::Write => Class::Write,
            _ => Class::Other,
        };
        let client = &mut run.clients[flying.client];
        if let Some(recorder) = &mut client.recorder {
            let took = now.saturating_duration_since(flying.since).as_nanos() as u64;
            recorder.operation(class, flying.next.len, Nanos(took));
        }
        if flying.next.is_started {
            client.under_way -= 1;
            client.finished += 1;
            if client.state != State::Finishing {
                // A process at its end goes on when the last it started is done.
                return Ok((client.is_done() && client.under_way == 0).then_some(flying.client));
            }
            client.finished -= 1;
        }
        client.state = State::Ready;
        Ok(Some(flying.client))
    }
}

impl<S> Client<'_, S> {
    /// The operation to be carried out next; `None` when nothing is prepared any more.
    fn next(&self) -> Option<Prepared> {
        self.prepared.get(self.cursor).copied()
    }

    fn is_ready(&self) -> bool {
        self.state == State::Ready
    }

    fn mark(&mut self, mark: Mark, now: Nanos) {
        if let Some(recorder) = &mut self.recorder {
            recorder.mark(mark, Time(now.0), || None);
        }
    }
}

/// Uses the CPU. Who is cancelled hears of it when nothing is under way any more.
fn spend(work: Work, cancel: &AtomicBool) {
    work::carry_out(work, || if cancel.load(Ordering::Relaxed) { Err(()) } else { Ok(()) }).ok();
}

/// Sleeps towards the next sleeper's time; false when nobody sleeps.
fn sleep<S>(run: &mut Run<'_, S>, idle: &mut Vec<usize>, start: Instant) -> bool {
    let until = run.clients.iter().filter_map(|client| match client.state {
        State::Sleeping(until) => Some(until),
        _ => None,
    });
    let Some(until) = until.min() else { return false };
    let now = run.elapsed + nanos(start);
    if until > now {
        std::thread::sleep(Duration::from_nanos(until.0 - now.0).min(NAP));
    }
    wake_sleepers(run, idle, start);
    true
}

/// Sleepers whose time has come go on.
fn wake_sleepers<S>(run: &mut Run<'_, S>, idle: &mut Vec<usize>, start: Instant) {
    let now = run.elapsed + nanos(start);
    for (index, client) in run.clients.iter_mut().enumerate() {
        if matches!(client.state, State::Sleeping(until) if until <= now) {
            client.state = State::Ready;
            idle.push(index);
        }
    }
}
