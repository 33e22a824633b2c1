//! Calls of the host under way, and operations that are made of them.

use raidlab_core::{Nanos, Time};
use raidlab_models::host::{Call, HostInput, TaskId};
use raidlab_workload::{Class, OpResult};

use super::{Answered, Measured, Script, Target, Timer, Use};

impl Target<'_> {
    /// Hands a call to the host.
    pub(super) fn call(
        &mut self,
        process: usize,
        tag: Option<u32>,
        measured: Measured,
        call: Call,
    ) {
        let now = self.world.now();
        let free = self.free_uses.pop();
        let id = free.unwrap_or_else(|| {
            self.uses.push(None);
            self.uses.len() as u32 - 1
        });
        self.uses[id as usize] = Some(Use { process, tag, measured, since: now });
        let (task, process) = (TaskId(id), process as u32);
        self.host.handle(now, HostInput::Call { task, process, call });
    }

    /// A process begins an operation, as yet without calls. It is written where it is kept: processors wait
    /// when what was written in small pieces is moved at once.
    #[inline]
    pub(super) fn begin_operation(&mut self, index: usize, answer: Answered) -> &mut Script {
        let script = &mut self.running[index].script;
        script.class = None;
        script.began = self.world.now();
        script.moved = 0;
        script.in_memory = None;
        script.answer = Some(answer);
        script
    }

    /// Begins an operation that is made of calls.
    pub(super) fn begin_script(
        &mut self,
        index: usize,
        class: Option<Class>,
        calls: impl IntoIterator<Item = Call>,
        answer: Answered,
    ) {
        let mut calls = calls.into_iter();
        let next = calls.next();
        let script = self.begin_operation(index, answer);
        script.class = class;
        script.calls.extend(calls);
        match next {
            Some(call) => self.script_call(index, class, call),
            None => self.next_call(index),
        }
    }

    /// The same for an operation of a class that moves so many bytes.
    pub(super) fn begin_script_of(
        &mut self,
        index: usize,
        class: Class,
        moved: u64,
        calls: Vec<Call>,
        answer: Answered,
    ) {
        let script = self.begin_operation(index, answer);
        (script.calls, script.class, script.moved) = (calls.into(), Some(class), moved);
        self.next_call(index);
    }

    /// Begins an operation that is one call which reads and writes in turns.
    pub(super) fn begin_copy(
        &mut self,
        index: usize,
        measured: Measured,
        call: Call,
        answer: Answered,
    ) {
        self.begin_operation(index, answer);
        self.call(index, None, measured, call);
    }

    /// A call of a process's operation of a class.
    fn script_call(&mut self, index: usize, of: Option<Class>, call: Call) {
        // Operations of a class of their own are counted as a whole.
        let measured = if of.is_none() { Measured::Each } else { Measured::Not };
        self.call(index, None, measured, call);
    }

    /// The next call of a process's operation, or its end.
    fn next_call(&mut self, index: usize) {
        let one = &mut self.running[index];
        let script = &mut one.script;
        if let Some(call) = script.calls.pop_front() {
            let class = script.class;
            self.script_call(index, class, call);
            return;
        }
        let Some(answer) = script.answer.take() else { return };
        let took = self.world.now().since(script.began);
        if let Some(class) = script.class {
            one.recorder.operation(class, script.moved, took);
        }
        if let Some((class, calls, bytes)) = script.in_memory {
            one.recorder.operations(class, calls, bytes, took);
        }
        one.last = match answer {
            Answered::With(result) => result,
            Answered::Moved(slot) => {
                if let Some(file) = slot.and_then(|slot| one.slots.get(slot)) {
                    file.position += script.moved;
                }
                OpResult::Moved(script.moved)
            }
        };
        self.ready.push_back(index);
    }

    /// A process that waited goes on.
    pub(super) fn wake(&mut self, index: usize, last: OpResult) {
        self.running[index].last = last;
        self.ready.push_back(index);
    }

    /// Reads or writes of a call ended.
    pub(super) fn moved(&mut self, task: TaskId, is_read: bool, calls: u64, bytes: u64) {
        let now = self.world.now();
        let Some(Some(used)) = self.uses.get_mut(task.0 as usize) else { return };
        let (class, bytes) = match used.measured {
            Measured::Not => return,
            Measured::Each if is_read => (Class::Read, bytes),
            Measured::Each => (Class::Write, bytes),
            // It ends with the write.
            Measured::Pairs if is_read => return,
            Measured::Pairs => (Class::Write, 2 * bytes),
        };
        let took = now.since(used.since);
        used.since = now;
        let index = used.process;
        self.running[index].recorder.operations(class, calls, bytes, took);
    }

    /// A call is done.
    pub(super) fn call_done(&mut self, task: TaskId, moved: u64) {
        let Some(used) = self.uses.get_mut(task.0 as usize).and_then(Option::take) else { return };
        self.free_uses.push(task.0);
        let one = &mut self.running[used.process];
        let Some(tag) = used.tag else {
            if one.script.class.is_none() {
                one.script.moved += moved;
            }
            self.next_call(used.process);
            return;
        };
        self.ended(used.process, tag, moved);
    }

    /// An operation that was started ended.
    pub(super) fn ended(&mut self, index: usize, tag: u32, moved: u64) {
        let one = &mut self.running[index];
        one.ended.push_back((tag, moved));
        if one.finishes {
            one.finishes = false;
            if let Some(result) = self.take_ended(index) {
                self.wake(index, result);
            }
        }
    }

    pub(super) fn take_ended(&mut self, index: usize) -> Option<OpResult> {
        let one = &mut self.running[index];
        let (tag, moved) = one.ended.pop_front()?;
        one.started -= 1;
        Some(OpResult::Finished { tag, moved })
    }

    /// A process uses the CPU, in user mode or in the kernel, and is answered then.
    pub(super) fn use_cpu(&mut self, index: usize, cost: Nanos, user: bool) {
        let one = &mut self.running[index];
        let cpu = if user { &mut one.cpu.user } else { &mut one.cpu.system };
        *cpu += cost;
        self.compute(Timer::Process(index, cost), cost);
    }

    /// A process sleeps until a time.
    pub(super) fn sleep(&mut self, index: usize, until: Time) {
        self.begin_operation(index, Answered::With(OpResult::Done));
        self.timers.set(until, Timer::Process(index, Nanos::ZERO));
    }

    /// A process has slept, or used the CPU.
    pub(super) fn rested(&mut self, index: usize) {
        self.next_call(index);
    }
}
