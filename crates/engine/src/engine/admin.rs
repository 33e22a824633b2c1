//! Commands of the administrator, devices that come and go, and background work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use raidlab_core::contract::{Admin, Event, Input, IoOp, Pacing, Refusal, Scrub, Work};
use raidlab_core::{MemberIndex, SECTOR_BYTES, Sector, Sectors, Time};

use super::Engine;
use crate::error::{EngineError, EngineErrorKind};
use crate::member::{Member, Submission};
use crate::metadata::{Form, look};
use raidlab_metadata::{Own, Places};

/// How long nothing is looked at but members' answers, while background work is waited for.
const PATIENCE: Duration = Duration::from_millis(100);

impl Engine {
    /// Carries out a command that needs no device; see [`add`](Self::add), [`re_add`](Self::re_add) and
    /// [`replace`](Self::replace) for those that do.
    ///
    /// Returns when the command was accepted: what it begins goes on while the engine is used.
    ///
    /// # Errors
    /// [`EngineErrorKind::Refused`] with the core's reason; nothing has changed then.
    pub fn admin(&mut self, command: Admin) -> Result<(), EngineError> {
        self.hand_in(Input::Admin(command));
        // The refusal is the answer to this command, and comes first.
        let before = self.events.len();
        self.turn_awhile();
        self.check_fault()?;
        let told = self
            .events
            .iter()
            .skip(before)
            .position(|(_, event)| matches!(event, Event::Refused(_)));
        match told.map(|position| self.events.remove(before + position)) {
            Some((_, Event::Refused(refusal))) => Err(EngineError::refused(command, refusal)),
            _ => Ok(()),
        }
    }

    /// Takes a member out of service, as an administrator would.
    ///
    /// # Errors
    /// When there is no such member.
    pub fn fail(&mut self, member: MemberIndex) -> Result<(), EngineError> {
        self.existing(member, "take a member out of service")?;
        self.admin(Admin::Fail(member))
    }

    /// Takes the device out that is to replace a member, which stays in service;
    /// [`take_replacement`](Self::take_replacement) gives it up.
    ///
    /// # Errors
    /// When there is no such member, or nothing is to replace it.
    pub fn fail_replacement(&mut self, member: MemberIndex) -> Result<(), EngineError> {
        self.existing(member, "take a replacement out")?;
        self.admin(Admin::FailReplacement(member))
    }

    /// Sets how fast background work goes.
    ///
    /// # Errors
    /// As [`admin`](Self::admin).
    pub fn pace(&mut self, pacing: Pacing) -> Result<(), EngineError> {
        self.admin(Admin::Pace(pacing))
    }

    /// Puts a fresh device into the place of a failed member and rebuilds it. Old metadata on it are
    /// wiped.
    ///
    /// # Errors
    /// [`EngineErrorKind::Refused`] with the core's reason, [`EngineErrorKind::Config`] when the device
    /// does not suit; the array is as before then, but the device may have been wiped.
    pub fn add(&mut self, member: MemberIndex, device: Member) -> Result<(), EngineError> {
        const OPERATION: &str = "add a member";
        self.existing(member, OPERATION)?;
        self.idle(member, OPERATION)?;
        self.drain(member)?;
        let (device, sectors, known) = self.prepare(member, device, OPERATION)?;
        self.with_device((member, known), device, Admin::Add { member, sectors })
    }

    /// Copies a member to a fresh device while it goes on serving, then swaps them; the old device is
    /// [`take_retired`](Self::take_retired)'s.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn replace(
        &mut self,
        member: MemberIndex,
        device: Member,
        consent: bool,
    ) -> Result<(), EngineError> {
        const OPERATION: &str = "replace a member";
        self.existing(member, OPERATION)?;
        let place = self.array.replacement(member);
        self.idle(place, OPERATION)?;
        self.settle_work()?;
        if self.metadata.as_ref().is_some_and(|one| matches!(one.form, Form::Geom)) {
            let reason = "labels of GEOM cannot say that a device replaces a member that is still there, which would \
                          count as a member still: take the member out of service, and add the device";
            return Err(EngineError::new(EngineErrorKind::NotSupported, OPERATION, reason));
        }
        let known = self.metadata.as_ref().and_then(|one| one.records.places(member).md());
        if known.is_some_and(|kept| !kept.can_replace()) {
            let reason = "superblocks of version 0.90 cannot say that a device replaces a member that is still there: \
                          take the member out of service, and add the device";
            return Err(EngineError::new(EngineErrorKind::NotSupported, OPERATION, reason));
        }
        let (device, sectors, known) = self.prepare(member, device, OPERATION)?;
        self.with_device((place, known), device, Admin::Replace { member, sectors, consent })
    }

    /// Brings a member back that was away: `device`, or the one that was there where it is `None`. What
    /// changed meanwhile is rebuilt, by the bitmap.
    ///
    /// # Errors
    /// As [`add`](Self::add); [`EngineErrorKind::Member`] when it may not come back as it is, and why.
    pub fn re_add(
        &mut self,
        member: MemberIndex,
        device: Option<Member>,
    ) -> Result<(), EngineError> {
        const OPERATION: &str = "bring a member back";
        self.existing(member, OPERATION)?;
        self.idle(member, OPERATION)?;
        self.drain(member)?;
        let wrong = |reason: String| EngineError::new(EngineErrorKind::Member, OPERATION, reason);
        let Some(metadata) = &mut self.metadata else {
            return Err(wrong("the array has no metadata that tell what changed; add it".into()));
        };
        if device.is_none() && self.dead[member.at()] {
            let reason = "it failed after it had been given up, and may have lost what it was told to \
                          keep: open it again";
            return Err(wrong(reason.into()));
        }
        if matches!(metadata.form, Form::Geom) {
            let reason = "labels of GEOM do not say what changed since: add it, so that all of it is rebuilt";
            return Err(EngineError::new(EngineErrorKind::NotSupported, OPERATION, reason));
        }
        let mut device = device;
        let candidate = device.as_mut().unwrap_or(&mut self.members[member.at()]);
        let mut looked = look(&metadata.form, candidate);
        let Some(array) = self.array.flat() else {
            return Err(wrong(
                "nested levels have no metadata that tell what changed; add it".into(),
            ));
        };
        if let Form::Md(md) = metadata.form {
            md.returning(&mut looked, &array.superblock(), metadata.records.device_numbers());
            md.say_journal(&mut looked, array.consistency());
        }
        let judged = array.judge_return(metadata.records.array(), member, &looked.examined);
        let command = judged.map_err(|refusal| {
            let error = wrong(refusal.to_string());
            match candidate {
                Member::File(file) => error.at_path(file.path()),
                _ => error,
            }
        })?;
        let before = metadata.records.know(member, &looked);
        let outcome = match device {
            Some(device) => self.with_device((member, None), device, command),
            None => self.admin(command),
        };
        if outcome.is_err() {
            self.swap_metadata(member, before);
        }
        outcome
    }

    /// Devices that were replaced, oldest first.
    pub fn take_retired(&mut self) -> Vec<Member> {
        let mut retired = std::mem::take(&mut self.retired);
        if self.any_hangs() {
            detach(&mut retired);
        } else {
            // As dropping a member waits for its threads: nothing may be written late.
            while self.fault.is_none() && self.is_in_ring(&retired) {
                self.work_on(PATIENCE);
            }
        }
        for member in &mut retired {
            if let Member::File(file) = member {
                file.disconnect(&mut self.ring);
            }
        }
        retired
    }

    /// The events of the array since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        self.events.drain(..).map(|(_, event)| event).collect()
    }

    /// The same with the time of each, by [`clock`](Self::clock).
    pub fn take_timed_events(&mut self) -> Vec<(Time, Event)> {
        std::mem::take(&mut self.events)
    }

    /// What goes on in the background.
    pub fn background(&self) -> &[Work] {
        &self.background
    }

    /// Works until nothing goes on in the background any more.
    ///
    /// # Errors
    /// [`EngineErrorKind::Cancelled`] when `cancel` was set: it goes on at the next call then;
    /// [`EngineErrorKind::Busy`] while requests are outstanding.
    pub fn finish_background(&mut self, cancel: &AtomicBool) -> Result<(), EngineError> {
        const OPERATION: &str = "wait for background work";
        if self.outstanding > 0 {
            let reason = format!("{} requests are outstanding", self.outstanding);
            return Err(EngineError::new(EngineErrorKind::Busy, OPERATION, reason));
        }
        self.turn_awhile();
        while !self.background.is_empty() || self.is_between_works() {
            self.check_fault()?;
            if cancel.load(Ordering::Relaxed) {
                return Err(EngineError::cancelled(OPERATION));
            }
            let is_waiting = self.at_threads > 0 || self.wake.is_some();
            if !self.goes_on() && !is_waiting && self.stalled.is_empty() {
                let reason = format!("{:?} waits for nothing", self.background);
                return Err(EngineError::new(EngineErrorKind::Internal, OPERATION, reason));
            }
            let wake = self.wake.map(|at| Duration::from_nanos(at.since(self.clock()).0));
            self.work_on(wake.map_or(PATIENCE, |w| w.min(PATIENCE)));
        }
        self.check_fault()
    }

    /// Begins to compare redundancy everywhere, or to mend it. What work has done that is being made durable is waited
    /// for: a member is in service a moment before its rebuild has ended.
    ///
    /// # Errors
    /// As [`admin`](Self::admin).
    pub fn start_scrub(&mut self, scrub: Scrub) -> Result<(), EngineError> {
        self.settle_work()?;
        self.admin(Admin::StartScrub(scrub))
    }

    /// Waits until what background work has done is durable: a member is in service a moment before its rebuild has
    /// ended, and whoever saw that may ask for the next.
    fn settle_work(&mut self) -> Result<(), EngineError> {
        self.turn_awhile();
        while self.array.status().settling && (self.goes_on() || self.at_threads > 0) {
            self.check_fault()?;
            self.work_on(PATIENCE);
        }
        Ok(())
    }

    /// Compares redundancy everywhere, as fast as it goes from now on; gives the sectors that differ.
    /// Its events stay for [`take_events`](Self::take_events).
    ///
    /// # Errors
    /// As [`finish_background`](Self::finish_background); [`EngineErrorKind::Refused`] for a level
    /// without redundancy, and while a member is missing.
    pub fn scrub(&mut self, cancel: &AtomicBool) -> Result<Sectors, EngineError> {
        self.pace(Pacing::between(u64::MAX, u64::MAX))?;
        // Earlier scrubs may have left their events.
        let before = self.events.len();
        self.start_scrub(Scrub::Check)?;
        self.finish_background(cancel)?;
        let differing = |(_, event): &(Time, Event)| match event {
            Event::Finished { work: Work::Scrub(_), mismatched, .. } => Some(*mismatched),
            _ => None,
        };
        self.events.iter().skip(before).find_map(differing).ok_or_else(|| {
            let reason = "it was broken off";
            EngineError::new(EngineErrorKind::Internal, "compare redundancy", reason)
        })
    }

    /// Fills the data of all members with zeroes, past the array: redundancy of nothing is consistent.
    /// Their metadata and logs stay.
    ///
    /// # Errors
    /// [`EngineErrorKind::Busy`] while requests are outstanding or work goes on in the background; an
    /// error of a medium, with the member's file where it has one.
    pub fn clear_members(&mut self) -> Result<(), EngineError> {
        const OPERATION: &str = "clear a member";
        /// Sectors of one call: a device that writes them itself should not take long.
        const STEP: u64 = 1 << 17;
        if self.outstanding > 0 || !self.background.is_empty() {
            let reason = "requests are outstanding, or work goes on in the background";
            return Err(EngineError::new(EngineErrorKind::Busy, OPERATION, reason));
        }
        let metadata = self.metadata.as_ref();
        for (index, member) in (0..).map(MemberIndex).zip(&mut self.members[..self.count]) {
            let start = self.starts[index.at()];
            // An array without records has data up to the end of its members.
            let all = member.config().sectors.0.saturating_sub(start);
            let sectors = metadata.map_or(all, |metadata| metadata.records.places(index).data.0);
            for at in (0..sectors).step_by(STEP as usize) {
                let len = Sectors(STEP.min(sectors - at));
                member.zero_direct(OPERATION, Sector(start + at), len, false)?;
            }
        }
        Ok(())
    }

    /// Works until the core no longer writes anything, or `limit` has passed: what the state of the array
    /// asks for after the last request, such as marking it clean.
    ///
    /// # Errors
    /// A fault of raidlab itself.
    pub fn settle(&mut self, limit: Duration) -> Result<(), EngineError> {
        let end = Time(self.clock().0.saturating_add(limit.as_nanos() as u64));
        self.turn_awhile();
        while self.clock() < end && (self.goes_on() || self.at_threads > 0 || self.wake.is_some()) {
            let until = self.wake.map_or(end, |wake| wake.min(end));
            let pause = Duration::from_nanos(until.since(self.clock()).0);
            self.work_on(pause.min(PATIENCE));
        }
        self.check_fault()
    }

    /// Stops the array in order: everything durable, marked clean. No more requests are carried out.
    ///
    /// # Errors
    /// [`EngineErrorKind::Refused`] with the core's reason; as that of an array that is lost also where it is lost
    /// while it stops, since then nothing is written any more, and nothing is marked clean.
    pub fn stop(&mut self) -> Result<(), EngineError> {
        self.admin(Admin::Stop)?;
        while !self.events.iter().any(|(_, event)| *event == Event::Stopped) {
            self.check_fault()?;
            let waits = self.goes_on() || self.at_threads > 0;
            if !waits && self.array.is_lost_without(None) {
                return Err(EngineError::refused(Admin::Stop, Refusal::ArrayFailed));
            }
            if !waits && self.wake.is_none() {
                let reason = "stopping the array waits for nothing";
                return Err(EngineError::new(EngineErrorKind::Internal, "stop the array", reason));
            }
            self.work_on(PATIENCE);
        }
        Ok(())
    }

    /// One work has ended and the next, which waits for it, has not begun.
    fn is_between_works(&self) -> bool {
        let status = self.array.status();
        let waits = status.rebuilding != [0, 0] || status.replacing != [0, 0];
        waits && !status.stopped && self.at_threads > 0
    }

    /// Takes note of events of the array.
    pub(super) fn event(&mut self, event: Event) {
        match event {
            Event::Started(work) => self.background.push(work),
            Event::Finished { work, .. } | Event::Interrupted(work) => {
                self.background.retain(|one| *one != work);
            }
            Event::Replaced(member) => self.swap_in(member),
            // Only how far it is now is of interest.
            Event::Progress { .. } => {
                if let Some((_, Event::Progress { .. })) = self.events.last() {
                    self.events.pop();
                }
            }
            _ => {}
        }
        self.events.push((self.now, event));
    }

    /// From now on the replacement of a member is the member.
    fn swap_in(&mut self, member: MemberIndex) {
        let place = self.array.replacement(member).at();
        let fresh = std::mem::replace(&mut self.members[place], Member::Absent);
        let mut old = std::mem::replace(&mut self.members[member.at()], fresh);
        if let Member::File(file) = &mut old {
            // What was queued for it must not wait for a batch that never comes.
            let listed = file.hand_over(&mut self.ring);
            self.check_ring(listed);
        }
        self.retired.push(old);
        self.swap_in_flight(self.array.replacement(member), member);
        self.starts.swap(place, member.at());
        self.turns.swap(place, member.at());
        if let Some(metadata) = &mut self.metadata {
            metadata.records.take_over(member, self.array.replacement(member));
        }
    }

    pub(super) fn existing(
        &self,
        member: MemberIndex,
        operation: &'static str,
    ) -> Result<(), EngineError> {
        if member.at() < self.count {
            return Ok(());
        }
        let reason = format!("the array has members 0 to {}, not {member}", self.count - 1);
        Err(EngineError::new(EngineErrorKind::InvalidRequest, operation, reason))
    }

    /// No thread is at work on the device that was there before: it might write late.
    fn idle(&self, place: MemberIndex, operation: &'static str) -> Result<(), EngineError> {
        if !self.hangs(place) {
            return Ok(());
        }
        let reason = "a system call on the device that was there before has not come back yet";
        Err(EngineError::new(EngineErrorKind::Busy, operation, reason))
    }

    /// Waits until what is in flight to a device that failed has come back.
    fn drain(&mut self, place: MemberIndex) -> Result<(), EngineError> {
        self.turn_awhile();
        while self.array.is_failed(place) && self.in_flight(place) {
            self.work_on(PATIENCE);
            self.check_fault()?;
        }
        self.check_fault()
    }

    /// Makes a fresh device ready for a member's place; gives it, its sectors for data, and where its records lie.
    fn prepare(
        &mut self,
        member: MemberIndex,
        device: Member,
        operation: &'static str,
    ) -> Result<(Member, Sectors, Option<Places>), EngineError> {
        let config = device.config();
        self.check_block(&device, operation)?;
        let mut device = device;
        let Some(metadata) = &self.metadata else { return Ok((device, config.sectors, None)) };
        if !matches!(metadata.form, Form::Own) {
            return self.prepare_known(member, device, operation);
        }
        let sectors = metadata.records.room(member, config.sectors);
        // One that is too small is refused, and stays as it is.
        if sectors >= metadata.records.least(member) {
            self.make_ready(member, &mut device)?;
        }
        Ok((device, sectors, None))
    }

    /// That the array writes a device in its own blocks.
    pub(super) fn check_block(
        &self,
        device: &Member,
        operation: &'static str,
    ) -> Result<(), EngineError> {
        let block = device.config().logical_block;
        if block <= self.block {
            return Ok(());
        }
        let reason =
            format!("it works in blocks of {block} sectors, the array in blocks of {}", self.block);
        Err(EngineError::new(EngineErrorKind::Config, operation, reason))
    }

    /// Makes all that lies behind the data of a fresh device known, durably.
    fn make_ready(&mut self, member: MemberIndex, device: &mut Member) -> Result<(), EngineError> {
        const OPERATION: &str = "clear old metadata of a member";
        let Some(metadata) = &mut self.metadata else { return Ok(()) };
        let total = device.config().sectors;
        let (from, len) = metadata.records.fresh(member, total).behind_data();
        device.zero_direct(OPERATION, from, len, true)?;
        for at in Own.superblocks(total) {
            let Some((block, piece)) = metadata.begin_vacant(member, at) else { continue };
            let len = Sectors(piece.len as u64 / SECTOR_BYTES);
            let (op, fua) = (IoOp::Write, true);
            let submission = Submission { op, at, len, fua, flush_first: false };
            let outcome = device.write_now(&submission, piece);
            metadata.end(block);
            device.direct(outcome, OPERATION, at)?;
        }
        Ok(())
    }

    /// Hands in a command with a device in its place, whose records lie as `ready` says; takes the device out again
    /// when it is refused.
    pub(super) fn with_device(
        &mut self,
        (place, ready): (MemberIndex, Option<Places>),
        mut device: Member,
        command: Admin,
    ) -> Result<(), EngineError> {
        device.connect(&self.hub, &mut self.ring, self.ios);
        if device.answers_later() {
            self.expect_files();
        }
        let total = device.config().sectors;
        let fresh = !matches!(command, Admin::ReAdd { .. } | Admin::ResumeReplace { .. });
        let metadata = self.metadata.as_ref().filter(|_| fresh);
        let known = ready.or_else(|| metadata.map(|metadata| metadata.records.fresh(place, total)));
        let before = std::mem::replace(&mut self.members[place.at()], device);
        let was_dead = self.dead[place.at()];
        self.set_dead(place, false);
        let known = known.map(|known| self.swap_metadata(place, known));
        let started = self.starts[place.at()];
        self.note_start(place);
        let outcome = self.admin(command);
        if outcome.is_err() {
            self.starts[place.at()] = started;
            self.set_dead(place, was_dead);
            let mut refused = std::mem::replace(&mut self.members[place.at()], before);
            if let Member::File(file) = &mut refused {
                file.disconnect(&mut self.ring);
            }
            if let Some(known) = known {
                self.swap_metadata(place, known);
            }
        } else if !matches!(before, Member::Absent) {
            self.retired.push(before);
        }
        outcome
    }

    fn is_in_ring(&self, members: &[Member]) -> bool {
        let Some(ring) = &self.ring else { return false };
        members.iter().any(|one| matches!(one, Member::File(file) if file.is_in(ring)))
    }

    fn swap_metadata(&mut self, place: MemberIndex, device: Places) -> Places {
        match &mut self.metadata {
            Some(metadata) => metadata.records.set_places(place, device),
            None => device,
        }
    }

    pub(super) fn check_fault(&mut self) -> Result<(), EngineError> {
        match self.fault.take() {
            Some(fault) => Err(fault),
            None => Ok(()),
        }
    }
}

fn detach(members: &mut [Member]) {
    for member in members {
        if let Member::File(file) = member {
            file.detach();
        }
    }
}

impl Drop for Engine {
    /// Where a thread hangs nobody waits for it; see `io`.
    fn drop(&mut self) {
        if self.any_hangs() {
            detach(&mut self.members);
            detach(&mut self.retired);
            if let Some(ring) = &mut self.ring {
                ring.detach();
            }
        }
    }
}
