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

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use raidlab_core::contract::IoOp;
    use raidlab_core::units::{Sector, Sectors};
    use raidlab_core::{Config, MemberIndex};
    use raidlab_models::{Drive, DriveIoId, DriveOp, LinkSpec, load};
    use raidlab_sim::{HostCosts, World};

    use super::*;

    const CHUNK: u64 = 128;

    /// A request: what, which chunk of raid0, how many sectors of it.
    type Request = (DriveOp, u64, u32);

    fn drives() -> Vec<Drive> {
        let spec = load("nas-8tb-7200").expect("is compiled in");
        (0..2).map(|seed| Drive::new(&spec.kind, seed)).collect()
    }

    /// When requests that come at once are done, in a lab.
    fn in_the_lab(paths: &PathSpec, requests: &[Request]) -> Vec<Time> {
        let mut attached = Attached::new(drives().into_iter().map(Service::Modelled).collect());
        attached.put_behind(paths).expect("can be");
        for (number, &(op, chunk, len)) in requests.iter().enumerate() {
            let (drive, at) = ((chunk % 2) as usize, Sector(chunk / 2 * CHUNK));
            let id = DriveIoId(number as u32);
            attached.submit(Time::ZERO, drive, DriveIo { id, op, at, len, fua: false });
        }
        let mut ends = vec![Time::ZERO; requests.len()];
        let (mut paths_wake, mut drives_wake) = (BTreeSet::new(), BTreeMap::new());
        let mut now = Time::ZERO;
        loop {
            while let Some(plan) = attached.poll() {
                match plan {
                    Plan::Finish { place, .. } => ends[place] = now,
                    Plan::WakeDrive { drive, at } => _ = drives_wake.insert(drive, at),
                    Plan::WakePath { command, at } => _ = paths_wake.insert((at, command)),
                }
            }
            let of_path = paths_wake.first().copied();
            let of_drive = drives_wake.iter().map(|(drive, at)| (*at, *drive)).min();
            match (of_path, of_drive) {
                (Some((at, command)), other) if other.is_none_or(|(drive, _)| at <= drive) => {
                    now = at;
                    paths_wake.pop_first();
                    attached.wake_path(now, command);
                }
                (_, Some((at, drive))) => {
                    now = at.max(now);
                    drives_wake.remove(&drive);
                    attached.wake_drive(now, drive);
                }
                (_, None) => return ends,
            }
        }
    }

    /// The same of a raid0 in the simulator, whose host takes no time.
    fn in_the_world(paths: &PathSpec, requests: &[Request]) -> Vec<Time> {
        let layout = "raid0(2) chunk=64K".parse().expect("is a layout");
        let config = Config::uniform(layout, Sectors(1 << 24));
        let costs = HostCosts { request: Nanos::ZERO, ..HostCosts::default() };
        let world = World::new(&config, drives(), costs).expect("a world");
        let mut world = if *paths == PathSpec::default() {
            world
        } else {
            world.with_paths(paths).expect("can be")
        };
        for &(op, chunk, len) in requests {
            let op = if op == DriveOp::Read { IoOp::Read } else { IoOp::Write };
            world.submit(op, Sector(chunk * CHUNK), Sectors(len.into()), false);
        }
        let mut ends = vec![Time::ZERO; requests.len()];
        while world.step() {
            while let Some(answer) = world.next_answer() {
                ends[answer.id.0 as usize] = answer.at;
            }
        }
        assert!(world.drive_busy(MemberIndex(1)) > Nanos::ZERO);
        ends
    }

    #[test]
    fn requests_end_when_they_do_in_the_simulator() {
        let chunk = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 100_000;
        let reads: Vec<Request> = (0..40).map(|n| (DriveOp::Read, chunk(n), 128)).collect();
        let writes: Vec<Request> = (0..40).map(|n| (DriveOp::Write, n, 128)).collect();
        let mixed: Vec<Request> = reads.iter().zip(&writes).flat_map(|(a, b)| [*a, *b]).collect();
        let channel = PathSpec::shared(vec![LinkSpec::pata_udma100("channel")], &[0, 0]);
        let each = PathSpec::each_its_own(2, |drive| LinkSpec::sata_150(&drive.to_string()));
        let bus = each.clone().behind(LinkSpec::pci_32_33("pci"));
        for paths in [PathSpec::default(), each, bus, channel] {
            for requests in [&reads, &writes, &mixed] {
                let [lab, world] = [in_the_lab(&paths, requests), in_the_world(&paths, requests)];
                assert!(world.iter().all(|end| *end > Time::ZERO));
                assert_eq!(lab, world, "{paths:?}");
            }
        }
    }
}
