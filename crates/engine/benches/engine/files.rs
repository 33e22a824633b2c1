//! Random reads of 4 KiB from four files of a real directory: the engine through `io_uring` and through threads,
//! beside `fio` with `io_uring` on the same files.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use raidlab_core::contract::{IoOp, Outcome, Segment};
use raidlab_core::{Layout, Level, Sector, Sectors};
use raidlab_engine::{
    CacheState, Engine, EngineConfig, FileIo, FileMember, FileOptions, Member, Reply,
};

/// Files, each of a member.
const FILES: u16 = 4;
/// Bytes of one.
const BYTES: u64 = 256 << 20;
/// How long one measurement of one case takes.
const SPAN: Duration = Duration::from_millis(1000);
const BLOCK: u64 = 4096;

/// Files of the benchmark's own, removed at the end.
struct Files {
    directory: PathBuf,
    paths: Vec<PathBuf>,
}

impl Files {
    fn new(parent: &Path) -> Self {
        let directory = parent.join(format!("raidlab-bench-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory for the files");
        let paths = (0..FILES).map(|n| directory.join(format!("{n}.img"))).collect();
        let files = Self { directory, paths };
        let block: Vec<u8> = (0..1u32 << 20).map(|n| (n * 7 + n / 256) as u8).collect();
        for path in &files.paths {
            let mut file = std::fs::File::create(path).expect("a file");
            for _ in 0..BYTES >> 20 {
                file.write_all(&block).expect("there is room");
            }
            file.sync_all().expect("the disk takes it");
        }
        files
    }

    fn engine(&self, level: Level, engine: FileIo) -> Engine {
        let options = FileOptions { engine, threads: 32, ..FileOptions::default() };
        let open = |path: &PathBuf| {
            let member = FileMember::open(path, options).expect("a member");
            assert_eq!((member.cache_state(), member.file_io()), (CacheState::Direct, engine));
            Member::File(Box::new(member))
        };
        let members = self.paths.iter().map(open).collect();
        let layout = Layout::new(level, self.paths.len() as u16);
        let layout = if level.has_chunks() { layout.with_chunk(Sectors(128)) } else { layout };
        Engine::new(&EngineConfig::new(layout), members).expect("the layout is possible")
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Operations a second, and microseconds of CPU time of this process an operation.
type Figures = (f64, f64);

fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let ticks =
        |n: usize| after.split(' ').nth(n).and_then(|word| word.parse().ok()).unwrap_or(0.0);
    // User and system time, in hundredths of a second (proc_pid_stat(5)).
    (ticks(11) + ticks(12)) / 100.0
}

fn run(engine: &mut Engine, depth: u32, random: &mut u64) -> Figures {
    let token = engine.allocate(u64::from(depth) * BLOCK).expect("there is memory");
    let places = engine.array().capacity().bytes() / BLOCK;
    let mut replies: Vec<Reply> = Vec::new();
    let (mut slots, mut slot_of) = ((0..depth).collect::<Vec<_>>(), Vec::new());
    let (start, before, mut done) = (Instant::now(), cpu(), 0u64);
    loop {
        let over = start.elapsed() > SPAN;
        while let Some(slot) = slots.pop().filter(|_| !over) {
            *random ^= *random << 13;
            *random ^= *random >> 7;
            *random ^= *random << 17;
            let at = Sector(*random % places * 8);
            let segment = Segment { token, offset: slot * 8, len: 8 };
            let id = engine.submit(IoOp::Read, at, &[segment], false).expect("there is room");
            slot_of.push((id, slot));
        }
        if engine.outstanding() == 0 {
            break;
        }
        replies.clear();
        engine.wait_replies(&mut replies).expect("the members answer");
        for reply in &replies {
            assert_eq!(reply.outcome, Outcome::Done);
            let known = slot_of.iter().position(|(id, _)| *id == reply.id).expect("it was asked");
            slots.push(slot_of.swap_remove(known).1);
        }
        done += replies.len() as u64;
    }
    let figures =
        (done as f64 / start.elapsed().as_secs_f64(), (cpu() - before) * 1e6 / done as f64);
    engine.release(token).expect("nothing uses it");
    figures
}

/// `None` without fio.
fn fio(paths: &[PathBuf], depth: u32) -> Option<Figures> {
    let names: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    let output = Command::new("fio")
        .args(["--name=x", "--rw=randread", "--bs=4k", "--direct=1", "--ioengine=io_uring"])
        .args(["--time_based", "--norandommap", "--output-format=terse", "--terse-version=3"])
        .arg(format!("--runtime={}ms", SPAN.as_millis()))
        .args([format!("--filesize={BYTES}"), format!("--iodepth={depth}")])
        // A place anywhere, as that of the array.
        .args(["--file_service_type=random", &format!("--filename={}", names.join(":"))])
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    // Fields of the terse form 3, from 1: 8 read operations a second, 88 and 89 CPU of user and system.
    let fields: Vec<&str> = text.lines().last()?.split(';').collect();
    let number = |n: usize| fields.get(n)?.trim_end_matches('%').parse::<f64>().ok();
    let rate = number(7)?;
    Some((rate, (number(87)? + number(88)?) * 1e4 / rate))
}

/// The median and the range.
fn summary(values: impl Iterator<Item = f64>) -> (f64, f64, f64) {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let at = |n: usize| values.get(n).copied().unwrap_or(f64::NAN);
    (at(values.len() / 2), at(0), at(values.len().wrapping_sub(1)))
}

/// Prints the table of this file.
pub(crate) fn run_all(repetitions: usize) {
    let parent = std::env::var_os("RAIDLAB_BENCH_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")), PathBuf::from);
    let files = Files::new(&parent);
    println!("\n{FILES} files in {}, random 4 KiB reads, direct I/O", parent.display());
    println!("operations a second and CPU us an operation: medians of {repetitions} repetitions;");
    println!("ratios of operations within a repetition: medians and ranges\n");
    let mut random = 0x9e37_79b9;
    for (level, depth) in [Level::Raid0, Level::Raid1].into_iter().flat_map(|l| [(l, 1), (l, 32)]) {
        let mut samples: [Vec<Figures>; 3] = Default::default();
        for _ in 0..repetitions {
            for (way, samples) in [FileIo::Uring, FileIo::Threads].into_iter().zip(&mut samples) {
                // Of one repetition alone: what is a member of one array cannot be one of another.
                samples.push(run(&mut files.engine(level, way), depth, &mut random));
            }
            samples[2].extend(fio(&files.paths, depth));
        }
        println!("{level}({FILES}) depth {depth}");
        for (name, samples) in ["io_uring", "threads", "fio"].into_iter().zip(&samples) {
            let [rate, cpu] =
                [summary(samples.iter().map(|s| s.0)), summary(samples.iter().map(|s| s.1))];
            println!("  {name:<9} {:>8.0} {:>6.2}", rate.0, cpu.0);
        }
        let ratio = |of: usize| {
            let pairs = samples[0].iter().zip(&samples[of]);
            let (median, least, most) = summary(pairs.map(|(one, other)| one.0 / other.0));
            format!("{median:.2} ({least:.2} to {most:.2})")
        };
        println!("  io_uring to threads {}, to fio {}", ratio(1), ratio(2));
    }
}
