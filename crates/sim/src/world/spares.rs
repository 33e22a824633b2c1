//! Drives that take the places of failed ones: added by a caller, kept for the start of a run, or standing by as hot
//! spares.

use std::collections::VecDeque;

use raidlab_core::contract::{Admin, Event, Input, Refusal};
use raidlab_core::{MemberIndex, Sectors, Time};
use raidlab_models::{Drive, Queue};

use super::World;
use crate::error::SimError;

fn wrong(reason: String) -> SimError {
    SimError::drives(format!("add a drive: {reason}"))
}

/// Drives that wait for members, and members that wait for drives.
#[derive(Debug, Default)]
pub(super) struct Spares {
    /// Hot spares that stand by.
    standing_by: VecDeque<Drive>,
    /// Failed members that have no new drive yet.
    pub(super) wanted: VecDeque<MemberIndex>,
    /// What is kept for the start of what is measured.
    at_start: Vec<AtStart>,
    /// When that was.
    started: Option<Time>,
}

/// What becomes of a member when what is measured begins ([`World::start`]), not while files are laid out for it.
#[derive(Debug)]
pub enum AtStart {
    /// It fails; a hot spare takes its place.
    Fail(MemberIndex),
    /// It has failed before, and a fresh drive takes its place.
    Add(MemberIndex, Box<Drive>),
}

impl World {
    /// Keeps a change of members for [`start`](Self::start).
    pub fn keep_for_start(&mut self, change: AtStart) {
        self.spares.at_start.push(change);
    }

    /// What is measured begins now: members change as was kept for it. A second start changes nothing.
    ///
    /// # Errors
    /// As of [`add`](Self::add).
    pub fn start(&mut self) -> Result<(), SimError> {
        let now = self.now;
        self.spares.started.get_or_insert(now);
        for change in std::mem::take(&mut self.spares.at_start) {
            match change {
                AtStart::Fail(member) => self.fail(member),
                AtStart::Add(member, drive) => self.add(member, *drive)?,
            }
        }
        Ok(())
    }

    /// When what is measured began; zero before.
    pub fn started(&self) -> Time {
        self.spares.started.unwrap_or(Time::ZERO)
    }

    /// Puts a fresh drive into the place of a failed member, which is rebuilt from now on.
    ///
    /// # Errors
    /// When the drive is too small or the array refuses it; the array is then unchanged.
    pub fn add(&mut self, member: MemberIndex, drive: impl Into<Drive>) -> Result<(), SimError> {
        let drive = drive.into();
        if self.places.get(member.at()).is_none() {
            return Err(wrong(format!("there is no member {member}")));
        }
        if drive.capacity() < Sectors(self.front) + self.area.sectors() {
            return Err(wrong(format!("it has {} only", drive.capacity())));
        }
        self.put(member, drive).map_err(|(_, reason)| wrong(format!("refused: {reason:?}")))?;
        self.hand_in();
        Ok(())
    }

    /// Adds a fresh drive as a hot spare. It takes the place of the first member that fails and has no new drive yet,
    /// which is rebuilt from then on. Nested levels share their spares, whichever array has lost a drive; an array that
    /// has lost too many drives is rebuilt when there is a spare for each.
    ///
    /// # Errors
    /// When the drive is smaller than a member.
    pub fn add_spare(&mut self, drive: impl Into<Drive>) -> Result<(), SimError> {
        let drive = drive.into();
        let data = self.data.iter().copied().max().unwrap_or_default();
        let needed = Sectors(self.front) + data + self.area.sectors();
        if drive.capacity() < needed {
            let capacity = drive.capacity();
            return Err(wrong(format!("it has {capacity}, a member needs {needed}")));
        }
        self.spares.standing_by.push_back(drive);
        self.place_spares();
        Ok(())
    }

    /// How many hot spares stand by.
    pub fn spares(&self) -> usize {
        self.spares.standing_by.len()
    }

    /// Gives failed members the spares that stand by, as far as the array accepts them now.
    #[inline]
    pub(super) fn place_spares(&mut self) {
        if !self.spares.standing_by.is_empty() && !self.spares.wanted.is_empty() {
            self.place_all_spares();
        }
    }

    fn place_all_spares(&mut self) {
        while let Some(member) = self.spares.wanted.front().copied()
            && let Some(spare) = self.spares.standing_by.pop_front()
        {
            let told = self.events.len();
            if let Err((spare, reason)) = self.put(member, spare) {
                self.spares.standing_by.push_front(spare);
                // Nobody asked for it.
                let refused = |event: &Event| matches!(event, Event::Refused(_));
                if let Some(at) = self.events[told..].iter().position(refused) {
                    self.events.remove(told + at);
                    self.event_times.remove(told + at);
                }
                // Asked again when something has happened. Others have a drive by now, or cannot be rebuilt.
                if reason == Refusal::InFlight {
                    return;
                }
            }
            self.spares.wanted.pop_front();
            self.hand_in();
        }
    }

    /// Puts a drive into the place of a failed member, or returns it with the reason why the array refuses it.
    #[expect(clippy::result_large_err, reason = "a drive goes in and comes back as it is")]
    fn put(&mut self, member: MemberIndex, drive: Drive) -> Result<(), (Drive, Refusal)> {
        let sectors = Sectors(drive.capacity().0 - self.front - self.area.sectors().0);
        let place = self.places[member.at()];
        let index = self.drives.len();
        self.drives.push(drive);
        self.wakes.push(None);
        if let Some(spec) = &self.queue_spec {
            self.queues.push(Queue::new(spec));
            self.queue_wakes.push(None);
        }
        if let Some(paths) = &mut self.paths {
            paths.add_drive(member.at());
        }
        self.predict_completions_of(index);
        self.places[member.at()] = Some(index as u16);
        let told = self.events.len();
        self.array.handle(self.now, Input::Admin(Admin::Add { member, sectors }));
        self.drain();
        let refusal = self.events[told..].iter().find_map(|event| match event {
            Event::Refused(reason) => Some(*reason),
            _ => None,
        });
        let Some(reason) = refusal else { return Ok(()) };
        self.places[member.at()] = place;
        // Nothing was sent to it.
        self.wakes.pop();
        if self.queue_spec.is_some() {
            self.queues.pop();
            self.queue_wakes.pop();
        }
        if let Some(paths) = &mut self.paths {
            paths.remove_last_drive();
        }
        match self.drives.pop() {
            Some(drive) => Err((drive, reason)),
            None => Ok(()),
        }
    }
}
