//! News of nested levels: of drives, and of all arrays together where they do one thing.

use super::Stack;
use crate::contract::{Admin, Event, Input, Output, Work};
use crate::units::{MemberIndex, Sectors};

/// A comparison under way in several arrays.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scrubbing {
    to_begin: usize,
    to_end: usize,
    all: usize,
    mismatched: u64,
    lost: u64,
}

impl Scrubbing {
    pub(super) const fn of(arrays: usize) -> Self {
        Self { to_begin: arrays, to_end: arrays, all: arrays, mismatched: 0, lost: 0 }
    }
}

/// A stop under way: how many of the inner arrays are stopped, once the outer one is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stopping {
    stopped: Option<usize>,
}

impl Stack {
    /// What the driver is told of an event of the outer array.
    pub(super) fn outer_event(&mut self, event: Event) -> Option<Event> {
        let work = |work: Work| match work {
            Work::Rebuild(array) => Work::Rebuild(self.first_drive(array)),
            other => other,
        };
        match event {
            // Its members are arrays: their drives have told.
            Event::MemberFailed(_)
            | Event::Degraded { .. }
            | Event::Corrected { .. }
            | Event::BadBlocks { .. }
            | Event::ReadRecovered(_)
            | Event::WaitsForRoom(_) => None,
            Event::Started(of @ Work::Scrub(_))
            | Event::Finished { work: of @ Work::Scrub(_), .. }
            | Event::Interrupted(of @ Work::Scrub(_)) => self.scrub_event(of, event),
            Event::Started(of) => Some(Event::Started(work(of))),
            Event::Interrupted(of) => Some(Event::Interrupted(work(of))),
            Event::Progress { work: of, done, of: all, ends } => {
                Some(Event::Progress { work: work(of), done, of: all, ends })
            }
            Event::Finished { work: of, mismatched, lost } => {
                Some(Event::Finished { work: work(of), mismatched, lost })
            }
            Event::Restored(array) => {
                self.tell_restored(array.at());
                None
            }
            Event::Mismatch { at, len, .. } => Some(Event::Mismatch { at, len, guilty: None }),
            Event::Mended { member, at, len } => {
                Some(Event::Mended { member: self.first_drive(member), at, len })
            }
            Event::Stopped => {
                self.stop_inner();
                None
            }
            Event::ArrayFailed
            | Event::Replaced(_)
            | Event::ReplacementFailed(_)
            | Event::JournalFailed
            | Event::Refused(_) => Some(event),
        }
    }

    /// What the driver is told of an event of an inner array.
    pub(super) fn inner_event(&mut self, index: usize, event: Event) -> Option<Event> {
        let drive = |member| self.drive(index, member);
        let work = |work: Work| match work {
            Work::Rebuild(member) => Work::Rebuild(drive(member)),
            Work::Replace(member) => Work::Replace(drive(member)),
            other => other,
        };
        Some(match event {
            Event::MemberFailed(member) => Event::MemberFailed(drive(member)),
            Event::Degraded { .. } => Event::Degraded { missing: self.missing() },
            Event::ArrayFailed => {
                let array = MemberIndex(index as u16);
                self.outer.handle(self.now, Input::Admin(Admin::Fail(array)));
                return None;
            }
            Event::ReadRecovered(member) => Event::ReadRecovered(drive(member)),
            Event::Corrected { member, at, len } => {
                Event::Corrected { member: drive(member), at, len }
            }
            Event::BadBlocks { member, at, len } => {
                Event::BadBlocks { member: drive(member), at, len }
            }
            Event::Started(of @ Work::Scrub(_))
            | Event::Finished { work: of @ Work::Scrub(_), .. }
            | Event::Interrupted(of @ Work::Scrub(_)) => return self.scrub_event(of, event),
            Event::Started(of) => Event::Started(work(of)),
            Event::Interrupted(of) => Event::Interrupted(work(of)),
            Event::Progress { work: of, done, of: all, ends } => {
                Event::Progress { work: work(of), done, of: all, ends }
            }
            Event::Finished { work: of, mismatched, lost } => {
                Event::Finished { work: work(of), mismatched, lost }
            }
            Event::WaitsForRoom(member) => Event::WaitsForRoom(drive(member)),
            Event::Mismatch { at, len, guilty } => {
                Event::Mismatch { at, len, guilty: guilty.map(drive) }
            }
            Event::Mended { member, at, len } => Event::Mended { member: drive(member), at, len },
            Event::Restored(member) => Event::Restored(drive(member)),
            Event::Replaced(member) => Event::Replaced(drive(member)),
            Event::ReplacementFailed(member) => Event::ReplacementFailed(drive(member)),
            Event::Stopped => return self.inner_stopped(),
            Event::JournalFailed | Event::Refused(_) => event,
        })
    }

    fn first_drive(&self, array: MemberIndex) -> MemberIndex {
        MemberIndex(self.inner[array.at()].first)
    }

    /// A lost array is whole again: its fresh drives are.
    fn tell_restored(&mut self, index: usize) {
        let one = &mut self.inner[index];
        let returned = std::mem::take(&mut one.returned);
        for member in (0..one.members).filter(|member| returned >> member & 1 == 1) {
            let drive = MemberIndex(one.first + member);
            self.outputs.push_back(Output::Event(Event::Restored(drive)));
        }
    }

    /// One comparison begins with the first array's and ends with the last.
    fn scrub_event(&mut self, work: Work, event: Event) -> Option<Event> {
        let Some(one) = &mut self.scrubbing else { return Some(event) };
        match event {
            Event::Started(_) => {
                one.to_begin = one.to_begin.saturating_sub(1);
                return (one.to_begin + 1 == one.all).then_some(event);
            }
            Event::Finished { mismatched, lost, .. } => {
                one.mismatched += mismatched.0;
                one.lost += lost.0;
            }
            _ => {}
        }
        one.to_end -= 1;
        if one.to_end > 0 {
            return None;
        }
        let (mismatched, lost) = (Sectors(one.mismatched), Sectors(one.lost));
        self.scrubbing = None;
        match event {
            Event::Interrupted(_) => Some(event),
            _ => Some(Event::Finished { work, mismatched, lost }),
        }
    }

    /// The outer array is stopped: now those below it.
    fn stop_inner(&mut self) {
        let Some(stopping) = &mut self.stopping else { return };
        stopping.stopped = Some(0);
        for index in 0..self.inner.len() {
            if self.is_lost(index) {
                self.inner_stopped().into_iter().for_each(|event| {
                    self.outputs.push_back(Output::Event(event));
                });
                continue;
            }
            self.inner[index].array.handle(self.now, Input::Admin(Admin::Stop));
        }
    }

    fn inner_stopped(&mut self) -> Option<Event> {
        let stopped = self.stopping.as_mut()?.stopped.as_mut()?;
        *stopped += 1;
        let all = *stopped == self.inner.len();
        if all {
            self.stopping = None;
        }
        all.then_some(Event::Stopped)
    }
}
