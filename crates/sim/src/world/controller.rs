//! A controller in front of the array, which presents it to the host as one disk.

use raidlab_core::contract::{IoOp, Outcome, RequestId};
use raidlab_core::{Sector, Sectors, Time};
use raidlab_models::controller::{ControllerInput, ControllerOutput};
use raidlab_models::{Controller, ControllerSpec, DriveOp, QueueSpec};

use super::gather::GATHERED;
use super::{Answer, KERNEL, Pending, TimedEvent, Way, World};
use crate::error::SimError;

/// Marks requests to the array that a controller made; the host's requests are numbered from 0.
const MADE: u64 = 1 << 63;

impl World {
    /// Puts a controller in front of the array; call it before the first request. The host then sees one disk, with one
    /// request queue of the controller's scheduler, or of the kind of the queues in front of the members, which it
    /// replaces.
    ///
    /// # Errors
    /// When the controller's description is not valid.
    pub fn with_controller(mut self, spec: &ControllerSpec) -> Result<Self, SimError> {
        spec.check().map_err(|wrong| SimError::controller(&wrong))?;
        // Requests are cut to whole blocks of the array.
        let spec = spec.clone().with_longest(self.whole_blocks(spec.longest));
        spec.check().map_err(|wrong| SimError::controller(&wrong))?;
        let block = Sectors(self.array.logical_block().into());
        let stripe = self.array.layout().full_stripe().unwrap_or(block);
        let queue = self.queue_spec.take().unwrap_or(spec.queue());
        self.queues.clear();
        self.queue_wakes.clear();
        self.controller = Some(Box::new(Controller::new(&spec, stripe)));
        self.set_controller_queue(&queue);
        self.writes_through = spec.writes_through();
        Ok(self)
    }

    /// So many sectors in whole blocks of the array, at least one.
    fn whole_blocks(&self, sectors: Sectors) -> Sectors {
        let block = u64::from(self.array.logical_block());
        Sectors((sectors.0 / block).max(1) * block)
    }

    /// Puts a request queue in front of the controller, if there is one; the queue cuts requests to whole blocks, too.
    pub(super) fn set_controller_queue(&mut self, queue: &QueueSpec) {
        let longest = self.whole_blocks(queue.longest);
        if let Some(controller) = &mut self.controller {
            controller.set_queue(&QueueSpec { longest, ..*queue });
        }
    }

    /// A request of the host reaches the controller.
    #[inline(never)]
    pub(super) fn ask(&mut self, slot: u32) {
        let Pending { op, at, len, fua, process, .. } = self.pending[slot as usize];
        let op = match op {
            IoOp::Read => DriveOp::Read,
            IoOp::Write => DriveOp::Write,
            IoOp::Flush => DriveOp::Flush,
            IoOp::Discard | IoOp::WriteZeroes => return self.backlog.push_back(slot),
        };
        // What cannot be is for the array to refuse.
        let block = u64::from(self.array.logical_block());
        let aligned = at.0.is_multiple_of(block) && len.0.is_multiple_of(block);
        let within = at.0.checked_add(len.0).is_some_and(|end| end <= self.array.capacity().0);
        if op != DriveOp::Flush && (!aligned || !within || len == Sectors::ZERO) {
            return self.backlog.push_back(slot);
        }
        self.feed_controller(ControllerInput::Submit { id: slot, op, at, len, fua, process });
    }

    #[inline(never)]
    pub(super) fn wake_controller(&mut self, what: u32) {
        self.feed_controller(ControllerInput::Wake { what });
    }

    #[inline(never)]
    pub(super) fn transferred(&mut self, request: u32) {
        self.feed_controller(ControllerInput::Transferred { request });
    }

    /// The array answers a request: the host's own, or one that the controller made.
    #[inline]
    pub(super) fn reply(&mut self, id: RequestId, outcome: Outcome) {
        if id.0 & GATHERED != 0 {
            return self.gathered(id, outcome);
        }
        if id.0 & MADE == 0 {
            self.answers.push_back(Answer { id, outcome, at: self.now });
            return;
        }
        let request = (id.0 & !MADE) as u32;
        self.feed_controller(ControllerInput::Answered { request, outcome });
    }

    /// When parity over this many bytes of operands will be computed, by the controller or the host's CPU.
    #[inline]
    pub(super) fn compute(&mut self, bytes: u64) -> Time {
        let now = self.now;
        let controller = self.controller.as_mut();
        let done = controller.and_then(|controller| controller.compute(now, bytes));
        done.unwrap_or_else(|| self.cores.serve_request(now, self.costs.parity(bytes)))
    }

    /// Hands an input to the controller, and carries out its outputs until there are none. Its requests wait for the
    /// array in the backlog.
    #[inline(never)]
    fn feed_controller(&mut self, input: ControllerInput) {
        let Some(mut controller) = self.controller.take() else { return };
        controller.handle(self.now, input);
        while let Some(output) = controller.poll() {
            match output {
                ControllerOutput::Request { request, op, at, len, fua } => {
                    self.made(request, op, (at, len), fua);
                }
                ControllerOutput::Transfer { request, from, len, op } => {
                    let now = self.now;
                    let paths = self.paths.as_mut();
                    let done = paths.map(|paths| paths.host_transfer(from, len.bytes(), op));
                    match done.filter(|done| *done > now) {
                        Some(done) => self.schedule(done, TimedEvent::Transferred(request)),
                        None => controller.handle(now, ControllerInput::Transferred { request }),
                    }
                }
                ControllerOutput::Complete { id, outcome } => {
                    let Pending { id: asked, .. } = self.pending[id as usize];
                    self.free_pending.push(id);
                    self.answers.push_back(Answer { id: asked, outcome, at: self.now });
                }
                ControllerOutput::WakeAt { what, at } => {
                    self.schedule(at, TimedEvent::Controller(what));
                }
            }
        }
        self.controller = Some(controller);
    }

    /// The controller sends a request to the array.
    fn made(&mut self, request: u32, op: DriveOp, (at, len): (Sector, Sectors), fua: bool) {
        let op = match op {
            DriveOp::Read => IoOp::Read,
            DriveOp::Write => IoOp::Write,
            DriveOp::Flush => IoOp::Flush,
        };
        let id = RequestId(MADE | u64::from(request));
        let slot = self.hold(Pending { id, op, at, len, fua, process: KERNEL, way: Way::Whole });
        self.backlog.push_back(slot);
    }
}
