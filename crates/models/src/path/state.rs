//! Paths at work: commands waiting for their channel, passing, and the links' time.

use std::collections::VecDeque;

use raidlab_core::contract::IoOutcome;
use raidlab_core::units::{Nanos, SECTOR_BYTES, Time};

use super::{LinkKind, LinkSpec, PathSpec};
use crate::drive::{DriveIo, DriveIoId, DriveOp};

/// An input to paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathInput {
    /// A command for a drive; its id is the caller's and comes back in [`PathOutput::Complete`].
    Submit {
        /// Which drive.
        drive: u16,
        /// The command.
        io: DriveIo,
    },
    /// The drive has ended what [`PathOutput::Dispatch`] gave it, by the id it had there.
    Ended {
        /// Which.
        id: DriveIoId,
        /// How it went.
        outcome: IoOutcome,
    },
    /// The time asked for by [`PathOutput::WakeAt`] has come.
    Wake {
        /// For which command.
        command: u32,
    },
}

/// An output of paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathOutput {
    /// Hand this to the drive. The id is the paths' own.
    Dispatch {
        /// Which drive.
        drive: u16,
        /// The command.
        io: DriveIo,
        /// When it comes there: now, or later at a drive that [predicts completions](Paths::predict_completions).
        at: Time,
    },
    /// A command's completion has reached the host.
    Complete {
        /// From which drive.
        drive: u16,
        /// The caller's name for it.
        id: DriveIoId,
        /// How it went.
        outcome: IoOutcome,
    },
    /// Hand in [`PathInput::Wake`] for this command at this time, exactly once.
    WakeAt {
        /// Which command.
        command: u32,
        /// When.
        at: Time,
    },
}

/// Where a command is.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Waits for its channel, or for its transfer to begin.
    Before,
    /// With the drive.
    AtDrive,
    /// The drive is done, the path is not.
    Behind(IoOutcome),
}

/// A command under way.
#[derive(Clone, Copy, Debug)]
struct Command {
    drive: u16,
    io: DriveIo,
    stage: Stage,
    /// When it got its channel; without one, when it came.
    granted: Time,
    /// When the drive got it.
    sent: Time,
    /// When its transfer is done; writes only.
    passed: Time,
}

#[derive(Clone, Debug)]
struct Link {
    spec: LinkSpec,
    /// Nanoseconds per byte, 32 fractional bits.
    byte: u64,
    free: Time,
    busy: Nanos,
    /// Buses: whether the last transfer was a write.
    last: Option<DriveOp>,
    /// Channels: the device that was selected last, whether a command has it, and who waits.
    selected: Option<u16>,
    is_held: bool,
    /// Channels: for how long the transfer of the command that has it stood still.
    paused: Nanos,
    waiting: VecDeque<u32>,
}

impl Link {
    fn new(spec: &LinkSpec) -> Self {
        Self {
            spec: spec.clone(),
            byte: ((1_000_000_000_u128 << 32) / u128::from(spec.rate.max(1))) as u64,
            free: Time::ZERO,
            busy: Nanos::ZERO,
            last: None,
            selected: None,
            is_held: false,
            paused: Nanos::ZERO,
            waiting: VecDeque::with_capacity(64),
        }
    }

    fn bytes(&self, bytes: u64) -> Nanos {
        Nanos(((u128::from(bytes) * u128::from(self.byte)) >> 32) as u64)
    }

    /// Passes `bytes` from `from` on; gives when that begins and ends.
    fn pass(&mut self, from: Time, bytes: u64, op: DriveOp) -> (Time, Time) {
        let turned = self.last.replace(op).is_some_and(|last| last != op);
        let turn = if turned { self.spec.turn } else { Nanos::ZERO };
        let cost = self.spec.overhead + turn + self.bytes(bytes);
        let begin = self.free.max(from);
        self.free = begin + cost;
        self.busy += cost;
        (begin, self.free)
    }
}

/// Where the links of a drive's route are.
#[derive(Clone, Debug)]
struct Route {
    channel: Option<usize>,
    /// Those that transfers pass one after another.
    shared: Vec<usize>,
    /// When the drive ended its last command.
    ended: Time,
    /// Behind a channel: the drive takes commands ahead of time and says when they end.
    predicts: bool,
    /// When the data of the write that such a drive has are through.
    passed: Time,
}

/// The paths of a host at work. See [the module](super) for what is modelled.
///
/// Hand in what happens with [`handle`](Self::handle), then drain [`poll`](Self::poll).
#[derive(Clone, Debug)]
pub struct Paths {
    links: Vec<Link>,
    routes: Vec<Route>,
    host: Vec<usize>,
    memory: Option<usize>,
    commands: Vec<Command>,
    free_commands: Vec<u32>,
    outputs: VecDeque<PathOutput>,
}

impl Paths {
    /// Idle paths. The specification was [checked](PathSpec::check).
    pub fn new(spec: &PathSpec) -> Self {
        let kind = |link: &usize| spec.links[*link].kind;
        let route = |route: &Vec<usize>| Route {
            channel: route.iter().copied().find(|one| kind(one) == LinkKind::PataChannel),
            shared: route
                .iter()
                .copied()
                .filter(|one| kind(one) != LinkKind::PataChannel)
                .collect(),
            ended: Time::ZERO,
            predicts: false,
            passed: Time::ZERO,
        };
        Self {
            links: spec.links.iter().map(Link::new).collect(),
            routes: spec.routes.iter().map(route).collect(),
            host: spec.host.clone(),
            memory: spec.links.iter().position(|one| one.kind == LinkKind::Memory),
            commands: Vec::with_capacity(256),
            free_commands: Vec::with_capacity(256),
            outputs: VecDeque::with_capacity(64),
        }
    }

    /// A further drive takes the place of another, with its route.
    pub fn add_drive(&mut self, like: usize) {
        let (ended, passed) = (Time::ZERO, Time::ZERO);
        let nowhere = Route { channel: None, shared: Vec::new(), ended, predicts: false, passed };
        let route = self.routes.get(like).cloned().unwrap_or(nowhere);
        self.routes.push(Route { predicts: false, passed, ..route });
    }

    /// The drive added last is not attached any more. It has no command.
    pub fn remove_last_drive(&mut self) {
        self.routes.pop();
    }

    /// A drive takes a command ahead of time and says when it will have ended. Behind a channel, whose
    /// commands go one by one, nothing can come in between: so there are fewer wake-ups.
    pub fn predict_completions(&mut self, drive: usize) {
        if let Some(route) = self.routes.get_mut(drive) {
            route.predicts = route.channel.is_some();
        }
    }

    /// Of a drive that predicts ends: when the data of the write that it has are through, before which
    /// nobody need know of its end.
    #[inline]
    pub fn passed(&self, drive: u16) -> Time {
        self.routes[usize::from(drive)].passed
    }

    /// Takes an input; `now` never goes back.
    #[inline(always)]
    pub fn handle(&mut self, now: Time, input: PathInput) {
        match input {
            PathInput::Submit { drive, io } => self.submit(now, drive, io),
            PathInput::Ended { id, outcome } => self.ended(now, id.0, outcome),
            PathInput::Wake { command } => match self.commands[command as usize].stage {
                Stage::Before => self.dispatch(now, command),
                Stage::Behind(outcome) => self.complete(now, command, outcome),
                Stage::AtDrive => {}
            },
        }
    }

    /// Whether there is an output.
    #[inline]
    pub fn has_output(&self) -> bool {
        !self.outputs.is_empty()
    }

    /// The next output; drain until `None` after every [`handle`](Self::handle).
    #[inline]
    pub fn poll(&mut self) -> Option<PathOutput> {
        self.outputs.pop_front()
    }

    /// Whether there is a memory path.
    pub fn has_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// A copy by the CPU that takes so long and begins at `at`, behind what the memory path was given
    /// before; gives when it is done. Without a memory path it waits for nothing.
    pub fn copy(&mut self, at: Time, cost: Nanos) -> Time {
        let Some(memory) = self.memory else { return at + cost };
        let memory = &mut self.links[memory];
        memory.free = memory.free.max(at) + cost;
        memory.busy += cost;
        memory.free
    }

    /// Reads under way on PATA channels stand still for so long: the CPU has the memory. A drive that takes
    /// longer on its medium does not notice.
    pub fn pause(&mut self, cost: Nanos) {
        for link in self.links.iter_mut().filter(|one| one.is_held) {
            link.paused += cost;
        }
    }

    /// Passes so many bytes between host and controller from `from` on; gives when they are through.
    pub fn host_transfer(&mut self, from: Time, bytes: u64, op: DriveOp) -> Time {
        let links = &mut self.links;
        let through = self.host.iter().map(|link| links[*link].pass(from, bytes, op).1);
        through.max().unwrap_or(from)
    }

    /// How long each link has worked, by name: channels were owned by a command, others passed
    /// bytes. Work that was promised counts in full, so for the moment it may be more than has passed.
    pub fn busy(&self) -> impl Iterator<Item = (&str, Nanos)> {
        self.links.iter().map(|link| (link.spec.name.as_str(), link.busy))
    }

    fn submit(&mut self, now: Time, drive: u16, io: DriveIo) {
        let (stage, zero) = (Stage::Before, Time::ZERO);
        let command = Command { drive, io, stage, granted: now, sent: zero, passed: zero };
        let slot = if let Some(slot) = self.free_commands.pop() {
            self.commands[slot as usize] = command;
            slot
        } else {
            self.commands.push(command);
            self.commands.len() as u32 - 1
        };
        if let Some(channel) = self.routes[usize::from(drive)].channel {
            let channel = &mut self.links[channel];
            if channel.is_held {
                channel.waiting.push_back(slot);
                return;
            }
            channel.is_held = true;
        }
        self.begin(now, slot);
    }

    /// A command has its channel, if it needs one.
    fn begin(&mut self, now: Time, slot: u32) {
        let command = &mut self.commands[slot as usize];
        command.granted = now;
        let route = &mut self.routes[usize::from(command.drive)];
        let mut ready = now;
        if let Some(channel) = route.channel {
            let channel = &mut self.links[channel];
            ready = ready + channel.spec.overhead;
            let before = channel.selected.replace(command.drive);
            if before.is_some_and(|before| before != command.drive) {
                ready = ready + channel.spec.switch;
            }
        }
        if command.io.op == DriveOp::Write {
            let bytes = u64::from(command.io.len) * SECTOR_BYTES;
            let (mut starts, mut ends) = (ready, ready);
            for link in &route.shared {
                let (begin, end) = self.links[*link].pass(ready, bytes, DriveOp::Write);
                (starts, ends) = (starts.max(begin), ends.max(end));
            }
            if let Some(channel) = route.channel {
                ends = ends.max(starts + self.links[channel].bytes(bytes));
            }
            (ready, command.passed) = (starts, ends);
        }
        if route.predicts {
            route.passed = command.passed;
        }
        if ready > now && !route.predicts {
            self.outputs.push_back(PathOutput::WakeAt { command: slot, at: ready });
        } else {
            self.dispatch(ready, slot);
        }
    }

    fn dispatch(&mut self, at: Time, slot: u32) {
        let command = &mut self.commands[slot as usize];
        command.stage = Stage::AtDrive;
        command.sent = at;
        let io = DriveIo { id: DriveIoId(slot), ..command.io };
        self.outputs.push_back(PathOutput::Dispatch { drive: command.drive, io, at });
    }

    fn ended(&mut self, now: Time, slot: u32, outcome: IoOutcome) {
        let command = self.commands[slot as usize];
        let route = &mut self.routes[usize::from(command.drive)];
        // A drive begins with a command when it has it and is done with the one before.
        let from = command.sent.max(route.ended);
        route.ended = now;
        let mut done = command.passed;
        if command.io.op == DriveOp::Read && outcome == IoOutcome::Ok {
            let bytes = u64::from(command.io.len) * SECTOR_BYTES;
            for link in &route.shared {
                done = done.max(self.links[*link].pass(from, bytes, DriveOp::Read).1);
            }
            if let Some(channel) = route.channel {
                let channel = &self.links[channel];
                done = done.max(from + channel.bytes(bytes) + channel.paused);
            }
        }
        if done > now {
            self.commands[slot as usize].stage = Stage::Behind(outcome);
            self.outputs.push_back(PathOutput::WakeAt { command: slot, at: done });
        } else {
            self.complete(now, slot, outcome);
        }
    }

    fn complete(&mut self, now: Time, slot: u32, outcome: IoOutcome) {
        let Command { drive, io, granted, .. } = self.commands[slot as usize];
        self.free_commands.push(slot);
        self.outputs.push_back(PathOutput::Complete { drive, id: io.id, outcome });
        let Some(index) = self.routes[usize::from(drive)].channel else { return };
        let channel = &mut self.links[index];
        channel.busy += now.since(granted);
        channel.paused = Nanos::ZERO;
        match channel.waiting.pop_front() {
            Some(next) => self.begin(now, next),
            None => channel.is_held = false,
        }
    }
}
