//! The real-life job: whatever the processes do at the same time, the outcome is that of doing all
//! operations in their order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use raidlab_core::Time;
use raidlab_random::Random;
use raidlab_workload::null::{NullStep, NullTarget};
use raidlab_workload::{
    Content, FileDescriptor, FilePath, Mark, Op, OpResult, Parameters, Plan, Planned,
    ProcessRecord, RunRecord, Setting, Synchroniser, Workload, WorkloadErrorKind, content, make,
};

fn real_life(parameters: &[(&str, &str)]) -> Arc<dyn Workload> {
    let given = Parameters::new(parameters.iter().copied()).expect("no key twice");
    make("real-life", given).expect("it can be")
}

fn small(seed: &str, processes: &str) -> Arc<dyn Workload> {
    let sizes = [("smallest", "5B"), ("largest", "700B"), ("blocks", "16B,100B,1000B")];
    let others = [("seed", seed), ("processes", processes)];
    real_life(&[&sizes[..], &others].concat())
}

/// A target in memory that carries operations out in a random order.
#[derive(Default)]
struct Memory {
    files: BTreeMap<FilePath, Vec<u8>>,
}

#[derive(Default)]
struct Running {
    fds: BTreeMap<u16, (FilePath, usize)>,
    buffer: Vec<u8>,
}

impl Memory {
    fn stage(
        &mut self,
        planned: Vec<Planned>,
        synchroniser: &mut Synchroniser,
        random: &mut Random,
    ) {
        let mut processes: Vec<_> =
            planned.into_iter().map(|one| (one.process, Running::default())).collect();
        let mut ready: Vec<(usize, OpResult)> =
            (0..processes.len()).map(|index| (index, OpResult::Start)).collect();
        let mut done = 0;
        while !ready.is_empty() {
            let (index, last) = ready.swap_remove(random.below(ready.len() as u64) as usize);
            let (process, running) = &mut processes[index];
            match process.next(Time::ZERO, last) {
                Op::Done => done += 1,
                Op::Barrier(barrier) => {
                    let Some(freed) = synchroniser.arrive(index, barrier) else { continue };
                    ready.extend(freed.into_iter().chain([index]).map(|one| (one, OpResult::Done)));
                }
                Op::Put { queue, ticket, times } => {
                    let freed = synchroniser.put(queue, ticket, times);
                    ready.extend(
                        freed.into_iter().map(|(one, ticket)| (one, OpResult::Ticket(ticket))),
                    );
                    ready.push((index, OpResult::Done));
                }
                Op::Take { queue } => {
                    let ticket = synchroniser.take(index, queue);
                    ready.extend(ticket.map(|ticket| (index, OpResult::Ticket(ticket))));
                }
                op => ready.push((index, self.file_op(running, op))),
            }
        }
        assert_eq!(done, processes.len(), "processes wait for ever");
    }

    fn file_op(&mut self, running: &mut Running, op: Op) -> OpResult {
        match op {
            Op::Open { fd, path, flags } => {
                assert!(flags.create || self.files.contains_key(&path), "{path} is missing");
                let file = self.files.entry(path.clone()).or_default();
                if flags.truncate {
                    file.clear();
                }
                assert!(running.fds.insert(fd.0, (path, 0)).is_none());
            }
            Op::Close { fd } => assert!(running.fds.remove(&fd.0).is_some()),
            Op::Unlink { path } => assert!(self.files.remove(&path).is_some(), "{path} is missing"),
            Op::Read { fd, len, times: 1 } => {
                let (path, position) = running.fds.get_mut(&fd.0).expect("open");
                let file = &self.files[path];
                let end = file.len().min(*position + len as usize);
                running.buffer = file[*position..end].to_vec();
                *position = end;
                return OpResult::Moved(running.buffer.len() as u64);
            }
            Op::Write { fd, len, content, times } => {
                for _ in 0..times {
                    self.write(running, fd, len as usize, content);
                }
                return OpResult::Moved(len * times);
            }
            Op::Fsync { .. } | Op::SyncAll | Op::Mark(_) => {}
            other => panic!("not expected: {other:?}"),
        }
        OpResult::Done
    }

    fn write(&mut self, running: &mut Running, fd: FileDescriptor, len: usize, what: Content) {
        let (path, position) = running.fds.get_mut(&fd.0).expect("open");
        let mut bytes = vec![0; len];
        match what {
            Content::Seeded { seed } => content::fill(seed, *position as u64, &mut bytes),
            Content::Buffer { from: 0 } => bytes.copy_from_slice(&running.buffer[..len]),
            other => panic!("not expected: {other:?}"),
        }
        let file = self.files.get_mut(path).expect("nobody removed it meanwhile");
        file.resize(file.len().max(*position + len), 0);
        file[*position..*position + len].copy_from_slice(&bytes);
        *position += len;
    }

    /// The files in the end, and what is expected of them.
    fn run(plan: Plan, seed: u64) -> Self {
        let (mut memory, mut random) = (Self::default(), Random::new(seed));
        memory.stage(plan.prepare, &mut Synchroniser::new(&[], 0), &mut random);
        let synchroniser = &mut Synchroniser::new(&plan.barriers, plan.queues);
        memory.stage(plan.run, synchroniser, &mut random);
        memory
    }
}

#[test]
fn any_order_of_processes_gives_the_expected_files() {
    let mut deleted = 0;
    for seed in 0..40 {
        let processes = (1 + seed % 7).to_string();
        let workload = small(&seed.to_string(), &processes);
        let plan = || workload.plan(&Setting::new(2, 1)).expect("it can be");
        let memory = Memory::run(plan(), seed);
        let expected = plan().expected;
        deleted += 30 - expected.len();
        let names: BTreeSet<&FilePath> = expected.iter().map(|one| &one.path).collect();
        assert!(memory.files.keys().eq(names), "no file more or less");
        for one in &expected {
            let mut bytes = vec![0; one.bytes.len() as usize];
            one.bytes.fill(0, &mut bytes);
            assert_eq!(memory.files[&one.path], bytes, "{} with seed {seed}", one.path);
        }
    }
    assert!(deleted > 0, "no file is ever gone in the end");
}

fn steps(workload: &dyn Workload, setting: Setting) -> (Vec<NullStep>, RunRecord) {
    let mut target = NullTarget::default();
    target.keep_steps();
    let record = target.run(workload.plan(&setting).expect("it can be")).expect("it runs");
    (target.steps().to_vec(), record)
}

#[test]
fn the_order_is_the_same_every_time() {
    let (first, record) = steps(&*small("3", "4"), Setting::new(1, 1));
    let (again, _) = steps(&*small("3", "4"), Setting::new(1, 99));
    assert_eq!(first, again, "the seed of the run changes nothing");
    let (other, _) = steps(&*small("4", "4"), Setting::new(1, 1));
    assert_ne!(first, other);
    assert_eq!(record.processes.len(), 4);
    let took = record.last_done().as_secs();
    assert_eq!(small("3", "4").values(&record), [Some(took)]);
    assert_eq!(small("3", "4").metrics()[0].name, "seconds");
}

/// 120 operations: as many openings for reading as reads and copies, removals, and the rest.
#[test]
fn all_operations_are_done_by_processes_with_their_own_blocks() {
    let workload = small("1", "3");
    let (steps, _) = steps(&*workload, Setting::new(1, 1));
    let count = |of: &dyn Fn(&Op) -> bool| steps.iter().filter(|step| of(&step.op)).count();
    let unlinks = count(&|op| matches!(op, Op::Unlink { .. }));
    let sources = count(&|op| matches!(op, Op::Open { flags, .. } if flags.read));
    let copies = count(&|op| matches!(op, Op::Open { flags, .. } if flags.truncate));
    let rewrites =
        count(&|op| matches!(op, Op::Open { flags, .. } if flags.write && !flags.truncate));
    assert_eq!((sources, copies, unlinks + rewrites), (60, 30, 60));
    assert!(unlinks > 20, "{unlinks}");
    for (process, block) in [16, 100, 1000].into_iter().enumerate() {
        let read = |step: &NullStep| match step.op {
            Op::Read { len, .. } if step.process == process => Some(len),
            _ => None,
        };
        let lengths: BTreeSet<u64> = steps.iter().filter_map(read).collect();
        assert_eq!(lengths, BTreeSet::from([block]));
    }
}

#[test]
fn one_process_syncs_when_all_are_done() {
    for (sync, syncs) in [("true", 1), ("false", 0)] {
        let (steps, record) =
            steps(&*real_life(&[("sync", sync), ("largest", "2MiB")]), Setting::new(1, 1));
        let is_sync = |step: &&NullStep| step.op == Op::SyncAll;
        assert_eq!(steps.iter().filter(is_sync).count(), syncs);
        if let Some(index) = steps.iter().position(|step| step.op == Op::SyncAll) {
            let rest = &steps[index..];
            let ends = |step: &NullStep| {
                matches!(step.op, Op::SyncAll | Op::Done | Op::Mark(Mark::End(0)))
            };
            assert!(rest.iter().all(ends), "{rest:?}");
            assert_eq!(rest.last().map(|step| step.process), Some(0), "the sync is timed");
        }
        let ended = |process: &ProcessRecord| process.ended.0;
        let last = record.processes.iter().map(ended).max();
        assert_eq!(last, Some(record.processes[0].ended.0));
    }
}

#[test]
fn room_and_needs_are_told() {
    let workload = real_life(&[]);
    let plan = workload.plan(&Setting::new(2, 1)).expect("it can be");
    assert!(plan.needs_filesystem.is_some() && plan.files.is_empty());
    assert_eq!((plan.run.len(), plan.queues), (8, 240));
    let raw = Setting { space: Some(1 << 40), ..Setting::new(1, 1) };
    assert_eq!(workload.plan(&raw).expect_err("raw").kind, WorkloadErrorKind::NotSupported);
    // No file becomes longer than the longest.
    assert!(plan.room >= 1 << 20 && plan.room <= 2 * 15 * (64 << 20));
    let small = workload.resized(1 << 20).expect("it can be");
    let mut memory = Memory::default();
    let first = small.plan(&Setting::new(1, 1)).expect("it can be").prepare;
    memory.stage(first, &mut Synchroniser::new(&[], 0), &mut Random::new(1));
    let whole: usize = memory.files.values().map(Vec::len).sum();
    assert!(whole.abs_diff(1 << 20) < 1 << 14, "{whole}");
    assert_eq!(workload.resized(1).expect_err("15 files in one byte").key, "size");
}

#[test]
fn nonsense_is_refused() {
    for (parameters, key) in [
        (&[("processes", "0")][..], "processes"),
        (&[("files", "1")], "files"),
        (&[("operations", "0")], "operations"),
        (&[("smallest", "1MiB"), ("largest", "1MiB")], "largest"),
        (&[("largest", "2PiB")], "largest"),
        (&[("largest", "2000TiB")], "largest"),
        (&[("blocks", "0")], "blocks"),
        (&[("blocks", "4KiB,,8KiB")], "blocks"),
        (&[("blocks", "2GiB")], "blocks"),
        (&[("seed", "-1")], "seed"),
        (&[("count", "1")], "count"),
    ] {
        let given = Parameters::new(parameters.iter().copied()).expect("no key twice");
        assert_eq!(make("real-life", given).expect_err(key).key, key, "{parameters:?}");
    }
    let many = |parameters: &[(&str, &str)], copies| {
        real_life(parameters).plan(&Setting::new(copies, 1)).expect_err("too many").key
    };
    assert_eq!(many(&[("processes", "4096")], 2), "processes");
    assert_eq!(many(&[("operations", "60000")], 2), "operations");
    let words = real_life(&[]).description();
    assert_eq!(
        words,
        "reads, copies into each other, deletes and rewrites 15 files of 1MiB to 64MiB: 120 operations \
         by 4 processes in blocks of 4KiB, 32KiB, 256KiB, 1MiB, and syncs"
    );
}
