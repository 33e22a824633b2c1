//! Calls of the host under way, and operations that are made of them.

use raidlab_core::Nanos;
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
        let now = self.timeline.now();
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
        script.began = self.timeline.now();
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
    pub(super) fn next_call(&mut self, index: usize) {
        let one = &mut self.running[index];
        let script = &mut one.script;
        if let Some(call) = script.calls.pop_front() {
            let class = script.class;
            self.script_call(index, class, call);
            return;
        }
        let Some(answer) = script.answer.take() else { return };
        let took = self.timeline.now().since(script.began);
        if let Some(class) = script.class {
            self.processes.measured(index, class, (1, script.moved), took);
        }
        if let Some((class, calls, bytes)) = script.in_memory {
            self.processes.measured(index, class, (calls, bytes), took);
        }
        let result = match answer {
            Answered::With(result) => result,
            Answered::Moved(slot) => {
                if let Some(file) = slot.and_then(|slot| one.fds.get(slot)) {
                    file.position += script.moved;
                }
                OpResult::Moved(script.moved)
            }
        };
        self.processes.ended(index, result);
    }

    /// Reads or writes of a call ended.
    pub(super) fn moved(&mut self, task: TaskId, is_read: bool, calls: u64, bytes: u64) {
        let now = self.timeline.now();
        let Some(Some(used)) = self.uses.get_mut(task.0 as usize) else { return };
        let class = if is_read { Class::Read } else { Class::Write };
        match used.measured {
            Measured::Not => return,
            // It ends with the write; what it read is not written.
            Measured::Pairs if is_read => {
                let process = used.process;
                return self.processes.measured(process, class, (0, bytes), Nanos::ZERO);
            }
            Measured::Each | Measured::Pairs => {}
        }
        let took = now.since(used.since);
        used.since = now;
        self.processes.measured(used.process, class, (calls, bytes), took);
    }

    /// A call is done.
    pub(super) fn call_done(&mut self, task: TaskId, moved: u64) {
        let Some(used) = self.uses.get_mut(task.0 as usize).and_then(Option::take) else { return };
        self.free_uses.push(task.0);
        let Some(tag) = used.tag else {
            let one = &mut self.running[used.process];
            if one.script.class.is_none() {
                one.script.moved += moved;
            }
            self.next_call(used.process);
            return;
        };
        self.processes.started_ended(used.process, tag, moved);
    }

    /// A process uses the CPU, in user mode or in the kernel, and is answered then.
    pub(super) fn use_cpu(&mut self, index: usize, cost: Nanos, user: bool) {
        let one = &mut self.running[index];
        let cpu = if user { &mut one.cpu.user } else { &mut one.cpu.system };
        *cpu += cost;
        self.compute(Timer::Process(index, cost), cost);
    }
}
