//! Replay of a measured trace on a modelled drive, in a closed loop.

use raidlab_core::contract::IoOutcome;
use raidlab_core::units::{Nanos, Time};

use super::requests::Measured;
use crate::disk::HardDisk;
use crate::drive::{DriveInput, DriveIo, DriveIoId, DriveOutput};
use crate::spec::HardDiskSpec;

/// Replays requests: the first at time 0, each next one its delay after the modelled completion of
/// the one before. Gives the modelled response times, in order. `seed` gives the angle of the
/// platters at time 0.
///
/// A request beyond the drive has the response time of its error.
pub fn replay(spec: &HardDiskSpec, requests: &[Measured], seed: u64) -> Vec<Nanos> {
    let mut disk = HardDisk::new(spec, seed);
    let mut now = Time::ZERO;
    let mut wake = None;
    let mut responses = Vec::with_capacity(requests.len());
    for (index, request) in requests.iter().enumerate() {
        let io = DriveIo {
            id: DriveIoId(index as u32),
            op: request.op,
            at: request.at,
            len: request.len,
            fua: false,
        };
        let issued = now;
        disk.handle(now, DriveInput::Submit(io));
        while drain(&mut disk, &mut wake).is_none() {
            let Some(at) = wake.take() else { break };
            now = at;
            disk.handle(now, DriveInput::Wake);
        }
        responses.push(now.since(issued));
        let next = now + request.delay;
        while let Some(at) = wake.filter(|at| *at <= next) {
            wake = None;
            disk.handle(at, DriveInput::Wake);
            drain(&mut disk, &mut wake);
        }
        now = next;
    }
    responses
}

fn drain(disk: &mut HardDisk, wake: &mut Option<Time>) -> Option<IoOutcome> {
    let mut ended = None;
    while let Some(output) = disk.poll() {
        match output {
            DriveOutput::Complete { outcome, .. } => ended = Some(outcome),
            DriveOutput::WakeAt(at) => *wake = Some(at),
        }
    }
    ended
}
