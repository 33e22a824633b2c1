//! The thread that owns the engine: takes in as many messages as there are, has the array work on all
//! of them together, and answers each as its reply comes.

use std::io::Read;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use raidlab_engine::{Engine, EngineError, Reply};

use super::requests::Order;
use super::session::{Device, Session, device_error};
use super::{Ended, Shared, system};

/// What the owner of an export asks of its thread.
pub(super) enum Command {
    /// End the export, whoever uses it.
    Stop,
    /// Do something with the engine.
    Do(OnEngine),
    /// End the export, do this with the engine, here, and then let go of it.
    Last(OnEngine),
}

/// Something that is done with the engine.
pub(super) type OnEngine = Box<dyn FnOnce(&mut Engine) + Send>;

/// Does the last thing with an engine that is let go of here; one that is not comes back.
pub(super) fn let_go(mut engine: Engine, last: Option<OnEngine>) -> Option<Engine> {
    let Some(work) = last else { return Some(engine) };
    work(&mut engine);
    None
}

/// The state of the thread.
pub(super) struct ServerLoop {
    session: Session,
    engine: Engine,
    order: Order,
    /// The ticket of each request of the array, by the engine's place for it.
    owners: Vec<u32>,
    replies: Vec<Reply>,
    shared: Arc<Shared>,
    commands: Receiver<Command>,
    stopping: bool,
    /// What is done at the end with an engine that is let go of here.
    last: Option<OnEngine>,
}

impl ServerLoop {
    pub(super) fn new(
        (session, engine): (Session, Engine),
        shared: Arc<Shared>,
        commands: Receiver<Command>,
        last: Option<OnEngine>,
    ) -> Self {
        Self {
            session,
            engine,
            order: Order::default(),
            owners: Vec::new(),
            replies: Vec::new(),
            shared,
            commands,
            stopping: false,
            last,
        }
    }

    /// Serves until the owner stops it, and goes on without the file where somebody else unmounts that. The device is
    /// closed then, which ends whatever still waits for an answer; the engine comes back idle, unless something is
    /// done with it at the end here.
    pub(super) fn run(mut self) -> Ended {
        let mut outcome = self.serve();
        let buffers = self.session.close();
        self.replies.clear();
        if outcome.is_ok() {
            outcome = self.engine.run_until_idle(&mut self.replies);
        }
        for buffer in buffers {
            // One of a request that is never answered goes with the engine.
            let _ = self.engine.release(buffer);
        }
        self.engine.disarm();
        self.shared.publish(self.engine.totals());
        // A command may have come after the last look.
        for command in self.commands.try_iter() {
            if let Command::Last(work) = command {
                self.last = Some(work);
            }
        }
        (let_go(self.engine, self.last), outcome)
    }

    fn serve(&mut self) -> Result<(), EngineError> {
        let mut replies = std::mem::take(&mut self.replies);
        loop {
            let (device, took) = self.session.hear(&mut self.engine, &mut self.order)?;
            self.hand_over()?;
            self.engine.poll_replies(&mut replies)?;
            // Before anybody can know that something was done.
            self.shared.publish(self.engine.totals());
            let idle = replies.is_empty() && !took;
            for Reply { id, outcome, .. } in replies.drain(..) {
                let ticket = self.owners[id.0 as u32 as usize];
                self.session.replied(ticket, outcome, &mut self.engine, &mut self.order)?;
            }
            if device == Device::Gone {
                self.shared.is_mounted.store(false, Ordering::Release);
            }
            self.obey();
            if self.stopping {
                return Ok(());
            }
            if idle {
                self.wait()?;
            }
        }
    }

    fn hand_over(&mut self) -> Result<(), EngineError> {
        while self.engine.can_accept() {
            let Some(ticket) = self.order.take() else { break };
            let Some(id) = self.session.begin(ticket, &mut self.engine, &mut self.order)? else {
                continue;
            };
            let place = id.0 as u32 as usize;
            if self.owners.len() <= place {
                self.owners.resize(place + 1, 0);
            }
            self.owners[place] = ticket;
        }
        Ok(())
    }

    /// Sleeps until there is a message, an answer of a member or a command.
    fn wait(&mut self) -> Result<(), EngineError> {
        let Shared { members, bell, .. } = &*self.shared;
        if !self.engine.arm(members) {
            return Ok(());
        }
        let device = self.session.device().filter(|_| self.session.has_room());
        // The ring of the members can be read when it has answers.
        let others = [self.engine.ring_descriptor(), device];
        let watched =
            [bell.as_fd(), members.as_fd()].into_iter().chain(others.into_iter().flatten());
        system::wait(watched, self.engine.wake_in()).map_err(device_error)?;
        for mut event in [&**members, &**bell] {
            // Nothing to read is as good as something read.
            let _ = event.read(&mut [0; 8]);
        }
        Ok(())
    }

    fn obey(&mut self) {
        for command in self.commands.try_iter() {
            match command {
                Command::Stop => self.stopping = true,
                Command::Do(work) => work(&mut self.engine),
                Command::Last(work) => {
                    self.last = Some(work);
                    self.stopping = true;
                }
            }
        }
    }
}
