//! What serving NBD clients costs, compared with nbdkit's `memory` plugin: IOPS, and processor time of
//! the server for each I/O.
//!
//! `cargo bench -p raidlab-targets --bench nbd [ROUNDS] [SECONDS]`. fio (with its engine `nbd`) is the
//! client, on a processor of its own; the server has the other. Rounds are interleaved, servers in turn
//! within each, and ratios are those of one round: what else the machine does then tells on both. Needs
//! fio, nbdkit and taskset.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use raidlab_core::{Layout, Level, Sectors};
use raidlab_engine::{Engine, EngineConfig, Member, MemoryMember};
use raidlab_targets::{NbdAddress, NbdArray, NbdLimits, NbdServer, NbdSockets};

const MIB: u64 = 1 << 20;
/// Bytes of the export.
const SIZE: u64 = 256 * MIB;

/// Servers: ours of a level, and the peer.
const SERVERS: [(&str, Option<(Level, u16)>); 4] = [
    ("nbdkit memory", None),
    ("raidlab, 1 member", Some((Level::Linear, 1))),
    ("raidlab, raid1 of 2", Some((Level::Raid1, 2))),
    ("raidlab, raid5 of 3", Some((Level::Raid5, 3))),
];

/// Loads: name, and what fio is told.
const LOADS: [(&str, &[&str]); 4] = [
    ("4 KiB random reads, depth 32", &["--rw=randread", "--bs=4k", "--iodepth=32"]),
    ("4 KiB random writes, depth 32", &["--rw=randwrite", "--bs=4k", "--iodepth=32"]),
    (
        "the same, reads on two connections",
        &["--rw=randread", "--bs=4k", "--iodepth=32", "--numjobs=2", "--group_reporting"],
    ),
    ("1 MiB reads, depth 8", &["--rw=read", "--bs=1m", "--iodepth=8"]),
];

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let first = arguments.next();
    if first.as_deref() == Some("serve") {
        let number = arguments.next().and_then(|number| number.parse().ok());
        return serve(number.expect("a server"), Path::new(&arguments.next().expect("a socket")));
    }
    let rounds = first.map_or(7, |rounds| rounds.parse().expect("rounds"));
    let seconds = arguments.next().map_or(2, |seconds| seconds.parse().expect("seconds"));
    for program in ["fio", "nbdkit", "taskset"] {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
        if !found.is_ok_and(|found| found.status.success()) {
            println!("{program} is not installed: nothing is compared");
            return;
        }
    }
    compare(rounds, seconds);
}

/// Serves until it is killed.
fn serve(number: usize, socket: &Path) {
    let (level, members) = SERVERS[number].1.expect("ours");
    let make = move || {
        let layout = Layout::new(level, members);
        let data = u64::from(members - layout.survives());
        let member = |_| MemoryMember::new(Sectors(SIZE / data / 512)).map(Member::from);
        let members = (0..members).map(member).collect::<Result<Vec<_>, _>>()?;
        let engine = Engine::new(&EngineConfig::new(layout), members)?;
        Ok(vec![NbdArray {
            engine,
            name: "a".into(),
            description: String::new(),
            read_only: false,
        }])
    };
    let sockets = NbdSockets::bind(&[NbdAddress::Unix(socket.to_owned())], false).unwrap();
    let _server = NbdServer::new(sockets, None, NbdLimits::default(), make).unwrap();
    loop {
        std::thread::park();
    }
}

/// A server on the first processor.
struct Running {
    child: Child,
    socket: PathBuf,
}

impl Running {
    fn new(number: usize) -> Self {
        let socket = std::env::temp_dir().join(format!("raidlab-bench-nbd-{}", std::process::id()));
        let _ = fs::remove_file(&socket);
        let mut command = Command::new("taskset");
        command.args(["-c", "0"]);
        match SERVERS[number].1 {
            None => command.args(["nbdkit", "-f", "-U"]).arg(&socket).args(["memory", "256M"]),
            Some(_) => {
                command.arg(std::env::current_exe().unwrap());
                command.args(["serve", &number.to_string()]).arg(&socket)
            }
        };
        let child = command.stdin(Stdio::null()).spawn().unwrap();
        while UnixStream::connect(&socket).is_err() {
            std::thread::sleep(Duration::from_millis(5));
        }
        Self { child, socket }
    }

    /// Processor time so far, in seconds: of the process, which `taskset` has become.
    fn cpu(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat[stat.rfind(')').unwrap()..].split_whitespace().collect();
        let ticks: u64 = fields[12].parse::<u64>().unwrap() + fields[13].parse::<u64>().unwrap();
        ticks as f64 / 100.0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.socket);
    }
}

/// IOPS, and the server's microseconds of processor time for each I/O.
#[derive(Clone, Copy)]
struct Measured {
    iops: f64,
    micros: f64,
}

fn measure(server: usize, load: &[&str], seconds: u64) -> Measured {
    let running = Running::new(server);
    let uri = format!("--uri=nbd+unix:///?socket={}", running.socket.display());
    let fio = |seconds: u64, rw: Option<&str>| {
        let mut fio = Command::new("taskset");
        fio.args(["-c", "1", "fio", "--name=x", "--ioengine=nbd", &uri, "--size=256m"]).args(load);
        fio.args(rw).args(["--time_based", &format!("--runtime={seconds}"), "--minimal"]);
        let output = fio.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let fields: Vec<f64> =
            text.trim().split(';').map(|field| field.parse().unwrap_or(0.0)).collect();
        // Of the terse format, version 3: IOPS and KiB of reads, and of writes.
        (fields[7] + fields[48], fields[5] + fields[46])
    };
    // All memory is touched before, and the load is warm.
    fio(1, Some("--rw=write"));
    let before = running.cpu();
    let (iops, kib) = fio(seconds, None);
    let block = if load.contains(&"--bs=1m") { 1024.0 } else { 4.0 };
    Measured { iops, micros: (running.cpu() - before) * 1e6 / (kib / block) }
}

fn compare(rounds: usize, seconds: u64) {
    for (name, load) in LOADS {
        let mut all: Vec<Vec<Measured>> = vec![Vec::new(); SERVERS.len()];
        for round in 0..rounds {
            for turn in 0..SERVERS.len() {
                let server = (turn + round) % SERVERS.len();
                all[server].push(measure(server, load, seconds));
            }
        }
        println!(
            "{name}: {rounds} rounds of {seconds} s, medians; ratios to nbdkit in the same round"
        );
        for (server, (title, _)) in SERVERS.iter().enumerate() {
            let of = |each: &dyn Fn(usize) -> f64| median((0..rounds).map(each).collect());
            let (ours, peer) = (&all[server], &all[0]);
            println!(
                "  {title:<22} {:>7.0} IOPS ({:.2})   {:>6.2} us of CPU an I/O ({:.2})",
                of(&|round| ours[round].iops),
                of(&|round| ours[round].iops / peer[round].iops),
                of(&|round| ours[round].micros),
                of(&|round| ours[round].micros / peer[round].micros),
            );
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
