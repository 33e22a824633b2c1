//! Workloads on a target without files: an array or a device as one run of bytes.
//!
//! Each file of a plan gets a fixed extent ([`RawPlan::new`]). What processes ask of files becomes reads and
//! writes of the target's bytes; names and positions cost nothing here. Material from elsewhere and
//! `/dev/null` cost nothing either. What a write puts down is the target's business, so that it can
//! verify what is read. Workloads that make directories need a filesystem, and are refused.

mod places;
mod request;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use raidlab_core::Time;

use crate::error::{WorkloadError, WorkloadErrorKind};
use crate::names::{Descriptors, FileId};
use crate::op::{self, FileDescriptor, Io, Root, Status};
use crate::plan::{Plan, Planned};
use crate::processes::Asked;

use places::Places;
pub use places::check;
pub use request::Request;

/// How the last operation of a process went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpResult {
    /// There was none yet.
    Start,
    /// It was carried out.
    Done,
    /// A ticket.
    Ticket(i64),
}

impl From<op::OpResult> for OpResult {
    fn from(result: op::OpResult) -> Self {
        match result {
            op::OpResult::Start => Self::Start,
            op::OpResult::Ticket(ticket) => Self::Ticket(ticket),
            _ => Self::Done,
        }
    }
}

/// A plan for a raw target.
#[derive(Debug)]
pub struct RawPlan {
    /// The processes of the run.
    pub processes: Vec<Process>,
    /// The names of the phases.
    pub phases: Vec<&'static str>,
    /// How many processes come to each barrier.
    pub barriers: Vec<u32>,
    /// How many queues of tickets there are.
    pub queues: u16,
    /// The bytes of the target that files lie in: first byte and the one behind the last.
    pub extents: Vec<(u64, u64)>,
    /// The processes look at the time: what they will ask for cannot be known far ahead.
    pub asks_time: bool,
}

impl RawPlan {
    /// Places the files of a plan on a target of `space` bytes.
    ///
    /// # Errors
    /// [`WorkloadErrorKind::NotSupported`] when the plan needs a filesystem,
    /// [`WorkloadErrorKind::DoesNotFit`] when the files do not fit.
    pub fn new(plan: Plan, space: u64) -> Result<Self, WorkloadError> {
        let plan = plan.in_single_operations();
        let mut places = Places::new(&plan, space)?;
        let extents = places.extents();
        for source in &plan.sources {
            places.add_source(&source.name, source.bytes.len())?;
        }
        let places = Rc::new(RefCell::new(places));
        let process = |planned: Planned| Process::new(planned, places.clone());
        for planned in plan.prepare.into_iter().chain(plan.warm) {
            process(planned).rehearse()?;
        }
        Ok(Self {
            processes: plan.run.into_iter().map(process).collect(),
            phases: plan.phases,
            barriers: plan.barriers,
            queues: plan.queues,
            extents,
            asks_time: plan.asks_time,
        })
    }
}

/// One process on a raw target: a generator of operations. Same seed and results, same operations.
#[derive(Debug)]
pub struct Process {
    planned: Planned,
    places: Rc<RefCell<Places>>,
    fds: Descriptors,
    /// What is left of an operation that is carried out in several.
    rest: Option<Rest>,
    /// What was started and is not waited for yet, the earliest first.
    started: VecDeque<Started>,
    last: op::OpResult,
    /// Nothing is carried out: only names and lengths matter.
    is_rehearsing: bool,
    failure: Option<WorkloadError>,
    is_done: bool,
}

/// A read or write that was started.
#[derive(Clone, Copy, Debug)]
struct Started {
    tag: u32,
    moved: u64,
    /// The target was asked for nothing: at the end of the file, or of a file from elsewhere.
    is_nothing: bool,
    /// It is to be durable when it is waited for.
    sync: bool,
}

/// Operations that one operation of the process stands for.
#[derive(Clone, Copy, Debug)]
enum Rest {
    /// Reads or writes of `len` bytes from `at` to `end`, `sync` after each.
    Run { is_read: bool, at: u64, end: u64, len: u64, sync: bool, moved: u64 },
    /// A flush, and then what is left.
    Sync { at: u64, end: u64, len: u64, moved: u64 },
    /// A write of what was read, for a copy within the target, and a flush after it with `sync`.
    Copy { to: u64, len: u64, sync: bool },
    /// A flush.
    Flush,
}

impl Process {
    fn new(planned: Planned, places: Rc<RefCell<Places>>) -> Self {
        Self {
            planned,
            places,
            fds: Descriptors::default(),
            rest: None,
            started: VecDeque::new(),
            last: op::OpResult::Start,
            is_rehearsing: false,
            failure: None,
            is_done: false,
        }
    }

    /// Which copy of the workload it belongs to.
    pub fn copy(&self) -> u32 {
        self.planned.copy
    }

    /// Why the process ended early: it asked for something a raw target has not.
    pub fn failure(&self) -> Option<&WorkloadError> {
        self.failure.as_ref()
    }

    /// Goes through its operations without carrying them out: lengths of files become known.
    fn rehearse(mut self) -> Result<(), WorkloadError> {
        self.is_rehearsing = true;
        while self.next(Time::ZERO, OpResult::Done) != Asked::Done {}
        self.failure.map_or(Ok(()), Err)
    }

    /// What to do next. `now` is the time by the target's clock, `last` how the operation before
    /// went. After [`Asked::Done`] it gives [`Asked::Done`] for ever.
    pub fn next(&mut self, now: Time, last: OpResult) -> Asked<Request> {
        if let OpResult::Ticket(ticket) = last {
            self.last = op::OpResult::Ticket(ticket);
        }
        loop {
            if let Some(op) = self.go_on() {
                return op;
            }
            if self.is_done || self.failure.is_some() {
                return Asked::Done;
            }
            let last = std::mem::replace(&mut self.last, op::OpResult::Done);
            let asked = self.planned.process.next(now, last);
            if let Some(op) = self.translate(asked.into()) {
                return op;
            }
        }
    }

    /// The next of the operations that the last one stands for.
    fn go_on(&mut self) -> Option<Asked<Request>> {
        match self.rest.take()? {
            Rest::Run { is_read, at, end, len, sync, moved } => {
                let part = len.min(end - at);
                let (next, moved) = (at + part, moved + part);
                self.last = op::OpResult::Moved(moved);
                if sync {
                    self.rest = Some(Rest::Sync { at: next, end, len, moved });
                } else if next < end {
                    self.rest = Some(Rest::Run { is_read, at: next, end, len, sync, moved });
                }
                Some(Asked::Operation(request(is_read, at, part)))
            }
            Rest::Sync { at, end, len, moved } => {
                if at < end {
                    let (is_read, sync) = (false, true);
                    self.rest = Some(Rest::Run { is_read, at, end, len, sync, moved });
                }
                Some(Asked::Operation(Request::Sync))
            }
            Rest::Copy { to, len, sync } => {
                self.rest = sync.then_some(Rest::Flush);
                Some(Asked::Operation(Request::Write(to, len)))
            }
            Rest::Flush => Some(Asked::Operation(Request::Sync)),
        }
    }

    /// The same of the target; `None` when it costs nothing there.
    fn translate(&mut self, asked: Asked<op::Op>) -> Option<Asked<Request>> {
        match asked {
            Asked::Operation(op) => self.operation(op),
            Asked::Start(tag, op::Op::At(io)) => self.start(tag, io),
            Asked::Finish => self.finish(),
            other => {
                self.is_done = matches!(other, Asked::Done);
                other.try_map(|_| Err(())).ok()
            }
        }
    }

    fn operation(&mut self, op: op::Op) -> Option<Asked<Request>> {
        const SYNC: Asked<Request> = Asked::Operation(Request::Sync);
        match op {
            op::Op::Read { fd, len, times } => self.run(fd, len, times, true),
            op::Op::Write { fd, len, times, .. } => self.run(fd, len, times, false),
            op::Op::At(io) => match self.place(io) {
                Ok(Some((is_read, at, len))) => {
                    let sync = !is_read && self.fds.get(io.fd()).is_some_and(|f| f.flags.sync);
                    let end = at + len;
                    self.rest = Some(Rest::Run { is_read, at, end, len, sync, moved: 0 });
                    self.go_on()
                }
                other => self.nothing(other.map(|_| ())),
            },
            op::Op::Fsync { fd } | op::Op::Fdatasync { fd } => match self.fds.get(fd) {
                None => self.nothing(Err(no_file(fd))),
                Some(file) => {
                    let id = file.id;
                    id.is_some_and(|id| self.places.borrow().is_on_target(id)).then_some(SYNC)
                }
            },
            op::Op::SyncAll => Some(SYNC),
            op::Op::CopyRange { from, to, len } => self.copy_range(from, to, len),
            other => {
                let named = self.name_op(&other);
                self.nothing(named)
            }
        }
    }

    /// What costs nothing, or ends the process.
    fn nothing(&mut self, outcome: Result<(), WorkloadError>) -> Option<Asked<Request>> {
        self.failure = outcome.err();
        None
    }

    fn start(&mut self, tag: u32, io: Io) -> Option<Asked<Request>> {
        let placed = match self.place(io) {
            Ok(placed) => placed,
            Err(error) => return self.nothing(Err(error)),
        };
        // How much is moved is told when it is waited for.
        let moved = std::mem::replace(&mut self.last, op::OpResult::Done).moved();
        let is_read = matches!(io, Io::Read { .. });
        let sync = !is_read && self.fds.get(io.fd()).is_some_and(|file| file.flags.sync);
        let is_nothing = placed.is_none();
        self.started.push_back(Started { tag, moved, is_nothing, sync: sync && !is_nothing });
        // Who of them ended is known to the process only.
        placed.map(|(is_read, at, len)| Asked::Start(0, request(is_read, at, len)))
    }

    /// What is done at once is done first. Of the others the target waits for whichever is first; the
    /// process is told the earliest.
    fn finish(&mut self) -> Option<Asked<Request>> {
        let at_once = self.started.iter().position(|one| one.is_nothing).unwrap_or(0);
        let Some(Started { tag, moved, is_nothing, sync }) = self.started.remove(at_once) else {
            let reason = "the workload waits for what it started, and has started nothing";
            let kind = WorkloadErrorKind::NotSupported;
            return self.nothing(Err(WorkloadError::new(kind, "target", reason)));
        };
        self.last = op::OpResult::Finished { tag, moved };
        self.rest = sync.then_some(Rest::Flush);
        (!is_nothing).then_some(Asked::Finish)
    }

    fn run(
        &mut self,
        fd: FileDescriptor,
        len: u64,
        times: u64,
        is_read: bool,
    ) -> Option<Asked<Request>> {
        let wanted = len.saturating_mul(times);
        let Some(file) = self.fds.get(fd) else { return self.nothing(Err(no_file(fd))) };
        let (position, sync) = (file.position, file.flags.sync && !is_read);
        let id = file.id;
        let placed = self.part(id, position, wanted, is_read);
        let (at, moved) = match placed {
            Ok(placed) => placed,
            Err(error) => return self.nothing(Err(error)),
        };
        if let Some(file) = self.fds.get(fd) {
            file.position = position + moved;
        }
        self.last = op::OpResult::Moved(moved);
        let at = at.filter(|_| moved > 0 && !self.is_rehearsing)?;
        self.rest = Some(Rest::Run { is_read, at, end: at + moved, len, sync, moved: 0 });
        self.go_on()
    }

    /// Where a read or write at a place lies; `None` when nothing is moved on the target.
    fn place(&mut self, io: Io) -> Result<Option<(bool, u64, u64)>, WorkloadError> {
        let (fd, from, len, is_read) = match io {
            Io::Read { fd, at, len } => (fd, at, len, true),
            Io::Write { fd, at, len, .. } => (fd, at, len, false),
        };
        let Some(file) = self.fds.get(fd) else { return Err(no_file(fd)) };
        let id = file.id;
        let (at, moved) = self.part(id, from, len, is_read)?;
        self.last = op::OpResult::Moved(moved);
        Ok(at.filter(|_| moved > 0).map(|at| (is_read, at, moved)))
    }

    /// Where a part of a file lies, and how much of it there is; `/dev/null` takes all and gives nothing.
    fn part(
        &self,
        id: Option<FileId>,
        position: u64,
        len: u64,
        is_read: bool,
    ) -> Result<(Option<u64>, u64), WorkloadError> {
        match id {
            Some(id) => self.places.borrow_mut().range(id, position, len, is_read),
            None => Ok((None, if is_read { 0 } else { len })),
        }
    }

    fn copy_range(
        &mut self,
        from: FileDescriptor,
        to: FileDescriptor,
        len: u64,
    ) -> Option<Asked<Request>> {
        let is_there = |fds: &mut Descriptors, fd| fds.get(fd).map(|file| *file);
        let Some(source) = is_there(&mut self.fds, from) else {
            return self.nothing(Err(no_file(from)));
        };
        let Some(target) = is_there(&mut self.fds, to) else {
            return self.nothing(Err(no_file(to)));
        };
        let read = self.part(source.id, source.position, len, true);
        let moved = read.as_ref().map_or(0, |(_, moved)| *moved);
        let written = self.part(target.id, target.position, moved, false);
        let (Ok((from_at, _)), Ok((to_at, _))) = (&read, &written) else {
            return self.nothing(read.and(written).map(|_| ()));
        };
        for fd in [from, to] {
            if let Some(file) = self.fds.get(fd) {
                file.position += moved;
            }
        }
        self.last = op::OpResult::Moved(moved);
        if moved == 0 {
            return None;
        }
        match (*from_at, *to_at) {
            (Some(at), to) => {
                let sync = target.flags.sync;
                self.rest = to.map(|to| Rest::Copy { to, len: moved, sync });
                Some(Asked::Operation(Request::Read(at, moved)))
            }
            (None, Some(to)) => {
                self.rest = target.flags.sync.then_some(Rest::Flush);
                Some(Asked::Operation(Request::Write(to, moved)))
            }
            (None, None) => None,
        }
    }

    /// Operations on names and positions.
    fn name_op(&mut self, asked: &op::Op) -> Result<(), WorkloadError> {
        let mut places = self.places.borrow_mut();
        match asked {
            op::Op::Open { fd, path, flags } => {
                let id = match path.root {
                    Root::Null => None,
                    _ => Some(places.open(path, *flags)?),
                };
                // What a descriptor held before is closed by this.
                let before = self.fds.close(*fd).and_then(|file| file.id);
                before.into_iter().for_each(|id| places.close(id));
                self.fds.open(*fd, id, *flags);
            }
            op::Op::Close { fd } => {
                let file = self.fds.close(*fd).ok_or_else(|| no_file(*fd))?;
                file.id.into_iter().for_each(|id| places.close(id));
            }
            op::Op::Seek { fd, to } => {
                let file = self.fds.get(*fd).ok_or_else(|| no_file(*fd))?;
                let size = file.id.map_or(0, |id| places.size(id));
                file.seek(*to, size);
            }
            op::Op::Truncate { fd, len } => {
                let file = self.fds.get(*fd).ok_or_else(|| no_file(*fd))?;
                if let Some(id) = file.id {
                    places.set_size(id, *len)?;
                }
            }
            op::Op::Unlink { path } => places.unlink(path)?,
            op::Op::Stat { path } => {
                let size = places.stat(path)?;
                self.last = op::OpResult::Status(Status { size, is_directory: false });
            }
            op::Op::Set { .. }
            | op::Op::Allocate { .. }
            | op::Op::DropCached { .. }
            | op::Op::FsyncDirectory { .. } => {}
            other => {
                let reason = format!("{other:?} needs a filesystem");
                return Err(WorkloadError::new(WorkloadErrorKind::NotSupported, "target", reason));
            }
        }
        Ok(())
    }
}

fn request(is_read: bool, at: u64, len: u64) -> Request {
    if is_read { Request::Read(at, len) } else { Request::Write(at, len) }
}

fn no_file(fd: FileDescriptor) -> WorkloadError {
    let reason = format!("the workload uses fd {}, which holds no file", fd.0);
    WorkloadError::new(WorkloadErrorKind::NotSupported, "target", reason)
}
