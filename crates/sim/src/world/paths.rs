//! Paths between the host and the drives of a world.

use raidlab_core::{Nanos, Time};
use raidlab_models::path::{PathInput, PathOutput};
use raidlab_models::{DriveInput, PathSpec, Paths};

use super::{TimedEvent, World};
use crate::error::SimError;

impl World {
    /// Puts paths between the host and the drives; call it before the first request.
    ///
    /// # Errors
    /// When the paths are not valid, or do not have one route for each drive.
    pub fn with_paths(mut self, spec: &PathSpec) -> Result<Self, SimError> {
        spec.check(self.drives.len()).map_err(|wrong| SimError::paths(&wrong))?;
        self.paths = Some(Box::new(Paths::new(spec)));
        for drive in 0..self.drives.len() {
            self.predict_completions_of(drive);
        }
        Ok(self)
    }

    /// How long each link of the paths has worked, and the controller with its parity, by name. Work that is scheduled
    /// counts in full, so while requests are in flight it may be more than the time that has passed.
    pub fn path_busy(&self) -> Vec<(String, Nanos)> {
        let links = self.paths.iter().flat_map(|paths| paths.busy());
        let mut busy: Vec<_> = links.map(|(name, busy)| (name.to_owned(), busy)).collect();
        if let Some(controller) = &self.controller {
            let (requests, parity) = controller.busy();
            let spec = controller.spec();
            busy.push((spec.name.clone(), requests));
            if spec.parity_rate.is_some() {
                busy.push((format!("{} parity", spec.name), parity));
            }
        }
        busy
    }

    /// Whether the paths have a link for the host's memory.
    pub fn has_memory_path(&self) -> bool {
        self.paths.as_ref().is_some_and(|paths| paths.has_memory())
    }

    /// A copy by a CPU that takes this long and begins at `at`; returns when it is done. On the memory path it
    /// waits for transfers and copies that were scheduled before, so hand it in when it begins, not ahead. A time
    /// in the past counts as now. Without a memory path it waits for nothing.
    pub fn memory_copy(&mut self, cost: Nanos, at: Time) -> Time {
        let at = at.max(self.now);
        self.paths.as_mut().map_or(at + cost, |paths| paths.copy(at, cost))
    }

    /// Holds up reads in flight on PATA channels for this long.
    pub fn pause_transfers(&mut self, cost: Nanos) {
        if let Some(paths) = &mut self.paths {
            paths.pause(cost);
        }
    }

    /// Makes a drive and its path ask only for the wake-ups that ends of commands need, where that is possible.
    pub(super) fn predict_completions_of(&mut self, drive: usize) {
        if self.drives[drive].predict_completions()
            && let Some(paths) = &mut self.paths
        {
            paths.predict_completions(drive);
        }
    }

    /// A drive asks for a wake-up; that of a write is not before its data are through.
    #[inline]
    pub(super) fn wait_for_drive(&mut self, member: u16, at: Time) {
        let passed = self.paths.as_ref().map_or(Time::ZERO, |paths| paths.passed(member));
        let until = at.max(passed);
        self.wakes[usize::from(member)] = Some(until);
        self.schedule(until, TimedEvent::Drive(member));
    }

    #[inline(never)]
    pub(super) fn wake_path(&mut self, command: u32) {
        if let Some(paths) = &mut self.paths {
            paths.handle(self.now, PathInput::Wake { command });
            self.settle_paths();
        }
    }

    /// Drains the outputs of the paths until there are none: commands reach drives, and their ends reach the host,
    /// which sends more.
    #[inline]
    pub(super) fn settle_paths(&mut self) {
        if self.paths.as_ref().is_some_and(|paths| paths.has_output()) {
            self.hear_paths();
        }
    }

    #[inline(never)]
    fn hear_paths(&mut self) {
        while let Some(output) = self.paths.as_mut().and_then(|paths| paths.poll()) {
            match output {
                PathOutput::Dispatch { drive, io, at } => {
                    let to = &mut self.drives[usize::from(drive)];
                    if at > self.now {
                        to.submit_at(at, io);
                    } else {
                        to.handle(self.now, DriveInput::Submit(io));
                    }
                    self.hear_drive(drive);
                }
                PathOutput::Complete { drive, id, outcome } => self.completed(drive, id, outcome),
                PathOutput::WakeAt { command, at } => self.schedule(at, TimedEvent::Path(command)),
            }
        }
    }
}
