//! Events of nested levels: of drives, and of all arrays together where they do one thing.

use super::Stack;
use crate::contract::{Admin, Event, Input, Output, Work};
use crate::units::{MemberIndex, Sectors};

/// A comparison under way in several arrays.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scrubbing {
    /// The first has told that it began.
    begun: bool,
    /// In one it was broken off.
    interrupted: bool,
    to_end: usize,
    mismatched: u64,
    lost: u64,
}

impl Scrubbing {
    pub(super) const fn of(arrays: usize) -> Self {
        Self { begun: false, interrupted: false, to_end: arrays, mismatched: 0, lost: 0 }
    }
}

impl Stack {
    /// What the driver is told of an event of the outer array.
    pub(super) fn outer_event(&mut self, event: Event) -> Option<Event> {
        let work = |work| self.outer_work(work);
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
        let work = |work| self.inner_work(index, work);
        Some(match event {
            Event::MemberFailed(member) => Event::MemberFailed(drive(member)),
            Event::Degraded { .. } => Event::Degraded { missing: self.missing() },
            Event::ArrayFailed => return self.inner_failed(index),
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
            Event::Stopped => return self.inner_stopped(index),
            Event::JournalFailed | Event::Refused(_) => event,
        })
    }

    /// What the outer array works on, by drives: an array by its first one.
    pub(super) fn outer_work(&self, work: Work) -> Work {
        match work {
            Work::Rebuild(array) => Work::Rebuild(self.first_drive(array)),
            Work::Replace(_) | Work::LogReplay | Work::Resync | Work::Scrub(_) => work,
        }
    }

    /// What an inner array works on, by drives.
    pub(super) fn inner_work(&self, index: usize, work: Work) -> Work {
        match work {
            Work::Rebuild(member) => Work::Rebuild(self.drive(index, member)),
            Work::Replace(member) => Work::Replace(self.drive(index, member)),
            Work::LogReplay | Work::Resync | Work::Scrub(_) => work,
        }
    }

    fn first_drive(&self, array: MemberIndex) -> MemberIndex {
        MemberIndex(self.inner[array.at()].first)
    }

    /// A lost array is whole again: its fresh drives are.
    fn tell_restored(&mut self, index: usize) {
        let one = &mut self.inner[index];
        one.array.believe_parity();
        let returned = std::mem::take(&mut one.returned);
        for member in (0..one.members).filter(|member| returned >> member & 1 == 1) {
            let drive = MemberIndex(one.first + member);
            self.outputs.push_back(Output::Event(Event::Restored(drive)));
        }
    }

    /// One comparison begins with the first array's and ends with the last. It is whole if that of each was.
    fn scrub_event(&mut self, work: Work, event: Event) -> Option<Event> {
        let Some(one) = &mut self.scrubbing else { return Some(event) };
        match event {
            Event::Started(_) => {
                let is_first = !std::mem::replace(&mut one.begun, true);
                return is_first.then_some(event);
            }
            Event::Finished { mismatched, lost, .. } => {
                one.mismatched += mismatched.0;
                one.lost += lost.0;
            }
            _ => one.interrupted = true,
        }
        one.to_end -= 1;
        if one.to_end > 0 {
            return None;
        }
        let Scrubbing { interrupted, mismatched, lost, .. } = *one;
        self.scrubbing = None;
        Some(match interrupted {
            true => Event::Interrupted(work),
            false => Event::Finished { work, mismatched: Sectors(mismatched), lost: Sectors(lost) },
        })
    }

    /// An inner array is lost, or loses one more drive when it is.
    fn inner_failed(&mut self, index: usize) -> Option<Event> {
        if !self.is_lost(index) {
            let array = MemberIndex(index as u16);
            self.outer.handle(self.now, Input::Admin(Admin::Fail(array)));
        }
        // It never says that it has stopped.
        self.inner_stopped(index)
    }

    /// The outer array is stopped: now those below it.
    fn stop_inner(&mut self) {
        self.stopping = Some(0);
        for index in 0..self.inner.len() {
            if self.is_lost(index) {
                self.inner_stopped(index).into_iter().for_each(|event| {
                    self.outputs.push_back(Output::Event(event));
                });
                continue;
            }
            self.inner[index].array.handle(self.now, Input::Admin(Admin::Stop));
        }
    }

    /// An inner array has stopped, or is lost, in a stop of all. Without too many of them nothing was.
    fn inner_stopped(&mut self, index: usize) -> Option<Event> {
        let stopped = self.stopping.as_mut()?;
        *stopped |= 1 << index;
        if stopped.count_ones() as usize != self.inner.len() {
            return None;
        }
        self.stopping = None;
        let is_lost = self.outer.reason_against(Admin::Stop).is_some();
        (!is_lost).then_some(Event::Stopped)
    }
}
