//! How long a drive takes: as one of raidlab's models says, or by a closed form.

use std::collections::VecDeque;

use raidlab_core::contract::IoOutcome;
use raidlab_core::units::{Nanos, Sector, Time};
use raidlab_models::{Drive, DriveInput, DriveIo, DriveIoId, DriveOp, DriveOutput};

/// How long requests take.
#[expect(clippy::large_enum_variant, reason = "there is one for each drive of a lab")]
pub enum Service {
    /// One of raidlab's models.
    Modelled(Drive),
    /// One formula, whose results can be worked out by hand.
    ClosedForm(ClosedForm),
}

impl Service {
    /// Takes an input, at this time.
    pub(crate) fn handle(&mut self, now: Time, input: DriveInput) {
        match self {
            Self::Modelled(drive) => drive.handle(now, input),
            Self::ClosedForm(drive) => drive.handle(now, input),
        }
    }

    /// The next output.
    pub(crate) fn poll(&mut self) -> Option<DriveOutput> {
        match self {
            Self::Modelled(drive) => drive.poll(),
            Self::ClosedForm(drive) => drive.outputs.pop_front(),
        }
    }
}

/// First come, first served: so long for each request, so long for one that does not begin where the last ended, so
/// long for each byte. A flush takes no time of its own.
#[derive(Clone, Debug)]
pub struct ClosedForm {
    /// For each request.
    pub fixed: Nanos,
    /// For one that does not follow the last.
    pub positioning: Nanos,
    /// For each byte, in picoseconds.
    pub byte_picos: u64,
    free_at: Time,
    follows: Sector,
    queue: VecDeque<(Time, DriveIoId)>,
    outputs: VecDeque<DriveOutput>,
}

impl ClosedForm {
    /// A drive at rest at its first sector.
    pub fn new(fixed: Nanos, positioning: Nanos, byte_picos: u64) -> Self {
        Self {
            fixed,
            positioning,
            byte_picos,
            free_at: Time::ZERO,
            follows: Sector(0),
            queue: VecDeque::new(),
            outputs: VecDeque::new(),
        }
    }

    fn handle(&mut self, now: Time, input: DriveInput) {
        if let DriveInput::Submit(io) = input {
            let end = Time(self.free_at.max(now).0 + self.duration(&io));
            self.free_at = end;
            self.queue.push_back((end, io.id));
            if self.queue.len() == 1 {
                self.outputs.push_back(DriveOutput::WakeAt(end));
            }
            return;
        }
        while let Some(&(end, id)) = self.queue.front() {
            if end > now {
                self.outputs.push_back(DriveOutput::WakeAt(end));
                break;
            }
            self.queue.pop_front();
            self.outputs.push_back(DriveOutput::Complete { id, outcome: IoOutcome::Ok });
        }
    }

    fn duration(&mut self, io: &DriveIo) -> u64 {
        if io.op == DriveOp::Flush {
            return 0;
        }
        let positioning = if io.at == self.follows { Nanos::ZERO } else { self.positioning };
        self.follows = Sector(io.at.0 + u64::from(io.len));
        let bytes = u64::from(io.len) * 512;
        self.fixed.0 + positioning.0 + bytes * self.byte_picos / 1000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(drive: &mut ClosedForm, ios: &[(u64, DriveOp, u64, u32)]) -> Vec<(u32, u64)> {
        let mut done = Vec::new();
        let mut wake = None;
        let mut drain = |drive: &mut ClosedForm, now: u64, wake: &mut Option<u64>| {
            while let Some(output) = drive.outputs.pop_front() {
                match output {
                    DriveOutput::WakeAt(at) => *wake = Some(at.0),
                    DriveOutput::Complete { id, .. } => done.push((id.0, now)),
                }
            }
        };
        for (number, (at, op, sector, len)) in ios.iter().enumerate() {
            let id = DriveIoId(number as u32);
            let io = DriveIo { id, op: *op, at: Sector(*sector), len: *len, fua: false };
            drive.handle(Time(*at), DriveInput::Submit(io));
            drain(drive, *at, &mut wake);
        }
        while let Some(at) = wake.take() {
            drive.handle(Time(at), DriveInput::Wake);
            drain(drive, at, &mut wake);
        }
        done
    }

    #[test]
    fn requests_take_what_the_formula_says_one_after_the_other() {
        let mut drive = ClosedForm::new(Nanos(7), Nanos(5_000_000), 10_000);
        let ios = [
            (0, DriveOp::Read, 0, 8),
            (0, DriveOp::Read, 8, 8),
            (10, DriveOp::Write, 100, 8),
            (20, DriveOp::Flush, 0, 0),
        ];
        let (first, second) = (7 + 40_960, 2 * (7 + 40_960));
        let third = second + 7 + 5_000_000 + 40_960;
        assert_eq!(run(&mut drive, &ios), [(0, first), (1, second), (2, third), (3, third)]);
    }

    #[test]
    fn an_idle_drive_begins_when_a_request_comes() {
        let mut drive = ClosedForm::new(Nanos::ZERO, Nanos(1000), 0);
        assert_eq!(run(&mut drive, &[(50, DriveOp::Read, 9, 1)]), [(0, 1050)]);
        assert_eq!(run(&mut drive, &[(5000, DriveOp::Flush, 0, 0)]), [(0, 5000)]);
    }
}
