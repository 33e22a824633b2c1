//! The drives' services with what lies between the kernel and them: who is asked how long something takes, and what is
//! to happen when.

use std::collections::VecDeque;

use raidlab_core::units::{Nanos, Time};
use raidlab_models::path::{PathInput, PathOutput};
use raidlab_models::{DriveInput, DriveIo, DriveOutput, PathSpec, Paths};

use crate::paths::{self, PathError};
use crate::service::Service;

/// Something that is to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// The request at this place of a drive is done, now.
    Finish { drive: usize, place: usize },
    /// The service of a drive is to be woken then, and not when it was to be before.
    WakeDrive { drive: usize, at: Time },
    /// A command on its path is to be woken then.
    WakePath { command: u32, at: Time },
}

/// Services, and the paths to them if there are any: without, a drive has an I/O as soon as the kernel sends it.
pub(crate) struct Attached {
    services: Vec<Service>,
    paths: Option<Paths>,
    plans: VecDeque<Plan>,
}

impl Attached {
    pub(crate) fn new(services: Vec<Service>) -> Self {
        Self { services, paths: None, plans: VecDeque::new() }
    }

    /// Puts paths before the drives. Before the first I/O.
    pub(crate) fn put_behind(&mut self, spec: &PathSpec) -> Result<(), PathError> {
        paths::check(spec, self.services.len())?;
        self.paths = (*spec != PathSpec::default()).then(|| Paths::new(spec));
        Ok(())
    }

    /// How long each link has worked, by name.
    pub(crate) fn path_busy(&self) -> Vec<(String, Nanos)> {
        let links = self.paths.iter().flat_map(Paths::busy);
        links.map(|(name, busy)| (name.to_owned(), busy)).collect()
    }

    /// The next thing to happen; drain until `None` after every input.
    pub(crate) fn poll(&mut self) -> Option<Plan> {
        self.plans.pop_front()
    }

    /// Takes an I/O for a drive; its number is that of the request's place, and comes back when it is done.
    pub(crate) fn submit(&mut self, now: Time, drive: usize, io: DriveIo) {
        match &mut self.paths {
            Some(paths) => {
                paths.handle(now, PathInput::Submit { drive: drive as u16, io });
                self.hear_paths(now);
            }
            None => self.serve(now, drive, DriveInput::Submit(io)),
        }
    }

    /// A request is done that no drive had to do with.
    pub(crate) fn done(&mut self, drive: usize, place: usize) {
        self.plans.push_back(Plan::Finish { drive, place });
    }

    /// The time has come for which a drive asked.
    pub(crate) fn wake_drive(&mut self, now: Time, drive: usize) {
        self.serve(now, drive, DriveInput::Wake);
        self.hear_paths(now);
    }

    /// The time has come for which a command on its path asked.
    pub(crate) fn wake_path(&mut self, now: Time, command: u32) {
        if let Some(paths) = &mut self.paths {
            paths.handle(now, PathInput::Wake { command });
            self.hear_paths(now);
        }
    }

    /// Hands an input to a drive and takes what it has to say; ends of commands go to the paths.
    fn serve(&mut self, now: Time, drive: usize, input: DriveInput) {
        let service = &mut self.services[drive];
        service.handle(now, input);
        while let Some(output) = service.poll() {
            match (output, &mut self.paths) {
                (DriveOutput::Complete { id, outcome }, Some(paths)) => {
                    paths.handle(now, PathInput::Ended { id, outcome });
                }
                (DriveOutput::Complete { id, .. }, None) => {
                    self.plans.push_back(Plan::Finish { drive, place: id.0 as usize });
                }
                (DriveOutput::WakeAt(at), _) => {
                    self.plans.push_back(Plan::WakeDrive { drive, at });
                }
            }
        }
    }

    /// Takes what the paths have to say until they are silent.
    fn hear_paths(&mut self, now: Time) {
        while let Some(output) = self.paths.as_mut().and_then(Paths::poll) {
            match output {
                // No drive of the lab predicts its ends, so what is dispatched is there now.
                PathOutput::Dispatch { drive, io, .. } => {
                    self.serve(now, usize::from(drive), DriveInput::Submit(io));
                }
                PathOutput::Complete { drive, id, .. } => {
                    let (drive, place) = (usize::from(drive), id.0 as usize);
                    self.plans.push_back(Plan::Finish { drive, place });
                }
                PathOutput::WakeAt { command, at } => {
                    self.plans.push_back(Plan::WakePath { command, at });
                }
            }
        }
    }
}
