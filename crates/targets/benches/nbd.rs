//! What serving costs, compared with programs that do the same: IOPS, and processor time of the server for each I/O.
//! NBD clients beside nbdkit's `memory` plugin, a mirror beside qemu's `quorum`, a file by FUSE beside
//! qemu-storage-daemon's; and both at once of one array, of which one is used.
//!
//! `cargo bench -p raidlab-targets --bench nbd -- [ROUNDS] [SECONDS] [COMPARISON]`: 0 to 5, or all of them. fio is the
//! client, on a processor of its own; the server has the other. Rounds are interleaved, servers in turn within each,
//! and ratios are those of one round: what else the machine does then tells on both. Needs fio and taskset; nbdkit,
//! qemu-storage-daemon and, for FUSE, root each for the comparisons with them.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use raidlab_core::{Layout, Level, Sectors};
use raidlab_engine::{
    Engine, EngineConfig, EngineError, FileMember, FileOptions, Member, MemoryMember,
};
use raidlab_targets::{
    ExportCache, FuseExport, NbdAddress, NbdArray, NbdLimits, NbdServer, NbdSockets,
};

const MIB: u64 = 1 << 20;
/// Bytes that are served.
const SIZE: u64 = 256 * MIB;

/// What serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    /// Its plugin `memory`.
    Nbdkit,
    /// Ours, with members in its memory.
    Ours(Level, u16),
    /// The same with files there.
    OnFiles(Level, u16, Place),
    /// qemu-storage-daemon's mirror of two files there.
    Quorum(Place),
    /// qemu-storage-daemon's FUSE export of a file on tmpfs.
    QemuFile,
    /// Our FUSE export of one member in memory.
    OurFile,
    /// The same with a file on tmpfs.
    OurFileOnFile,
    /// Ours of one member in memory, with the file that it is served as besides.
    OursBesideFile,
    /// That file, with nobody at NBD.
    OurFileBesideNbd,
}

/// Where files of members are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// On tmpfs.
    Memory,
    /// Below the directory for temporary files, past the kernel's pages.
    Disk,
}

impl Server {
    fn is_ours(self) -> bool {
        !matches!(self, Self::Nbdkit | Self::Quorum(_) | Self::QemuFile)
    }

    /// Files of members, as many as any server has.
    fn files(self) -> [PathBuf; 2] {
        let directory = match self {
            Self::Quorum(Place::Disk) | Self::OnFiles(.., Place::Disk) => std::env::temp_dir(),
            _ => "/dev/shm".into(),
        };
        [0, 1].map(|member| directory.join(format!("raidlab-bench-nbd-{member}")))
    }

    fn needs_root(self) -> bool {
        self.is_fuse() || self == Self::OursBesideFile
    }

    fn is_fuse(self) -> bool {
        use Server::{OurFile, OurFileBesideNbd, OurFileOnFile, QemuFile};
        matches!(self, QemuFile | OurFile | OurFileOnFile | OurFileBesideNbd)
    }
}

/// A load's name, and what fio is told.
type Load = (&'static str, &'static [&'static str]);

/// Servers that do the same, the one that others are compared with first.
struct Comparison {
    needs: &'static str,
    servers: &'static [(&'static str, Server)],
    loads: &'static [Load],
}

const READS: Load = ("4 KiB random reads, depth 32", &["--rw=randread", "--bs=4k", "--iodepth=32"]);
const WRITES: Load =
    ("4 KiB random writes, depth 32", &["--rw=randwrite", "--bs=4k", "--iodepth=32"]);
const LONG_READS: Load = ("1 MiB reads, depth 8", &["--rw=read", "--bs=1m", "--iodepth=8"]);
const LONG_WRITES: Load = ("1 MiB writes, depth 8", &["--rw=write", "--bs=1m", "--iodepth=8"]);

const COMPARISONS: [Comparison; 6] = [
    Comparison {
        needs: "nbdkit",
        servers: &[
            ("nbdkit memory", Server::Nbdkit),
            ("raidlab, 1 member", Server::Ours(Level::Linear, 1)),
            ("raidlab, raid1 of 2", Server::Ours(Level::Raid1, 2)),
            ("raidlab, raid5 of 3", Server::Ours(Level::Raid5, 3)),
        ],
        loads: &[
            READS,
            WRITES,
            (
                "the same, reads on two connections",
                &["--rw=randread", "--bs=4k", "--iodepth=32", "--numjobs=2", "--group_reporting"],
            ),
            LONG_READS,
        ],
    },
    Comparison {
        needs: "qemu-storage-daemon",
        servers: &[
            ("qemu quorum, tmpfs", Server::Quorum(Place::Memory)),
            ("raidlab, raid1, tmpfs", Server::OnFiles(Level::Raid1, 2, Place::Memory)),
            ("raidlab, raid1, memory", Server::Ours(Level::Raid1, 2)),
        ],
        loads: &[WRITES, READS],
    },
    Comparison {
        needs: "qemu-storage-daemon",
        servers: &[
            ("qemu quorum, disk", Server::Quorum(Place::Disk)),
            ("raidlab, raid1, disk", Server::OnFiles(Level::Raid1, 2, Place::Disk)),
        ],
        loads: &[WRITES, READS],
    },
    Comparison {
        needs: "qemu-storage-daemon",
        servers: &[
            ("qemu FUSE, a file", Server::QemuFile),
            ("raidlab, FUSE, file", Server::OurFileOnFile),
            ("raidlab, FUSE, memory", Server::OurFile),
        ],
        loads: &[READS, WRITES, LONG_READS, LONG_WRITES],
    },
    Comparison {
        needs: "fio",
        servers: &[
            ("raidlab, NBD alone", Server::Ours(Level::Linear, 1)),
            ("the same, and a file", Server::OursBesideFile),
        ],
        loads: &[READS, WRITES],
    },
    Comparison {
        needs: "fio",
        servers: &[
            ("raidlab, FUSE alone", Server::OurFile),
            ("the same, and NBD", Server::OurFileBesideNbd),
        ],
        loads: &[READS, WRITES],
    },
];

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let first = arguments.next();
    if first.as_deref() == Some("serve") {
        let mut number = || arguments.next().and_then(|number| number.parse::<usize>().ok());
        let (comparison, server) = (number().expect("a comparison"), number().expect("a server"));
        let (_, server) = COMPARISONS[comparison].servers[server];
        return serve(server, Path::new(&arguments.next().expect("a place")));
    }
    let rounds = first.map_or(7, |rounds| rounds.parse().expect("rounds"));
    let seconds = arguments.next().map_or(2, |seconds| seconds.parse().expect("seconds"));
    let only = arguments.next().map(|number| number.parse::<usize>().expect("a comparison"));
    for number in (0..COMPARISONS.len()).filter(|number| only.is_none_or(|only| only == *number)) {
        let programs = ["fio", "taskset", COMPARISONS[number].needs];
        let needs_root = COMPARISONS[number].servers.iter().any(|(_, server)| server.needs_root());
        match programs.into_iter().find(|program| !has(program)) {
            Some(missing) => println!("{missing} is not installed: it is not compared"),
            None if needs_root && !can_mount() => println!("FUSE needs root: it is not compared"),
            None => compare(number, rounds, seconds),
        }
    }
}

fn has(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    found.is_ok_and(|found| found.status.success())
}

fn can_mount() -> bool {
    let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    is_root && Path::new("/dev/fuse").exists()
}

/// An array of ours that holds `SIZE` bytes.
fn engine(server: Server) -> Result<Engine, EngineError> {
    let (level, members) = match server {
        Server::Ours(level, members) | Server::OnFiles(level, members, _) => (level, members),
        _ => (Level::Linear, 1),
    };
    let layout = Layout::new(level, members);
    let data = u64::from(members - layout.survives());
    let is_on_files = matches!(server, Server::OnFiles(..) | Server::OurFileOnFile);
    let member = |member: u16| match is_on_files {
        false => MemoryMember::new(Sectors(SIZE / data / 512)).map(Member::from),
        true => FileMember::open(&server.files()[usize::from(member)], FileOptions::default())
            .map(Member::from),
    };
    let members = (0..members).map(member).collect::<Result<Vec<_>, _>>()?;
    Engine::new(&EngineConfig::new(layout), members)
}

/// Serves until standard input ends: at a socket, or a file in a directory.
fn serve(server: Server, place: &Path) {
    let wait = || std::io::stdin().read(&mut [0]).expect("standard input");
    if server.is_fuse() && server != Server::OurFileBesideNbd {
        let engine = engine(server).expect("an array");
        let _export = FuseExport::new(engine, place, ExportCache::Kept).expect("FUSE");
        wait();
        return;
    }
    let make = move || {
        let (name, description) = ("a".into(), String::new());
        Ok(vec![NbdArray { engine: engine(server)?, name, description, read_only: false }])
    };
    // Where it is mounted, and the socket that is not used.
    let beside = place.with_extension("beside");
    let (socket, directory) = match server {
        Server::OurFileBesideNbd => (beside.as_path(), place),
        _ => (place, beside.as_path()),
    };
    let sockets = NbdSockets::bind(&[NbdAddress::Unix(socket.to_owned())], false).unwrap();
    let limits = NbdLimits::default();
    let _server = match server {
        Server::OursBesideFile | Server::OurFileBesideNbd => {
            fs::create_dir_all(directory).expect("a directory");
            NbdServer::with_file(sockets, None, limits, directory, make).expect("FUSE")
        }
        _ => NbdServer::new(sockets, None, limits, make).unwrap(),
    };
    wait();
}

/// A server on the first processor.
struct Running {
    server: Server,
    child: Child,
    directory: PathBuf,
}

impl Running {
    fn new(comparison: usize, number: usize) -> Self {
        let (_, server) = COMPARISONS[comparison].servers[number];
        let directory = std::env::temp_dir().join(format!("raidlab-bench-{}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        for file in server.files() {
            File::create(file).and_then(|file| file.set_len(SIZE)).unwrap();
        }
        let mut command = Command::new("taskset");
        command.args(["-c", "0"]);
        let place = directory.join("socket");
        match server {
            Server::Nbdkit => {
                command.args(["nbdkit", "-f", "-U"]).arg(&place).args(["memory", "256M"]);
            }
            Server::Quorum(_) | Server::QemuFile => {
                storage_daemon(&mut command, server, &directory)
            }
            _ => {
                let place = if server.is_fuse() { &directory } else { &place };
                let number = [comparison.to_string(), number.to_string()];
                command.arg(std::env::current_exe().unwrap()).arg("serve").args(number).arg(place);
            }
        };
        let child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut running = Self { server, child, directory };
        while !running.is_there() {
            assert!(running.child.try_wait().unwrap().is_none(), "{server:?} does not serve");
            std::thread::sleep(Duration::from_millis(5));
        }
        running
    }

    /// The socket, or the file.
    fn place(&self) -> PathBuf {
        let name = if self.server.is_fuse() { "array" } else { "socket" };
        self.directory.join(name)
    }

    fn is_there(&self) -> bool {
        match self.server.is_fuse() {
            true => fs::metadata(self.place()).is_ok_and(|file| file.len() == SIZE),
            false => UnixStream::connect(self.place()).is_ok(),
        }
    }

    /// How fio reaches it.
    fn reached(&self) -> [String; 2] {
        let place = self.place();
        match self.server.is_fuse() {
            true => ["--ioengine=io_uring".into(), format!("--filename={}", place.display())],
            false => {
                let export = if self.server == Server::Nbdkit { "" } else { "a" };
                let uri = format!("--uri=nbd+unix:///{export}?socket={}", place.display());
                ["--ioengine=nbd".into(), uri]
            }
        }
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
        drop(self.child.stdin.take());
        if !self.server.is_ours() {
            // In order, so that nothing stays mounted.
            let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        }
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.directory);
        self.server.files().iter().for_each(|file| drop(fs::remove_file(file)));
    }
}

fn storage_daemon(command: &mut Command, server: Server, directory: &Path) {
    command.arg("qemu-storage-daemon");
    let way = match server {
        Server::Quorum(Place::Disk) => ",cache.direct=on,aio=io_uring",
        _ => "",
    };
    for (number, file) in server.files().iter().enumerate() {
        let node = format!("driver=file,node-name=file{number},filename={}{way}", file.display());
        command.args(["--blockdev", &node]);
    }
    if server == Server::QemuFile {
        let file = directory.join("array");
        File::create(&file).unwrap();
        let export = "type=fuse,id=out,node-name=file0,writable=on,mountpoint=";
        command.args(["--export", &format!("{export}{}", file.display())]);
        return;
    }
    // One answer is enough for a read, as for a mirror; a write goes to both.
    let quorum = "driver=quorum,node-name=a,vote-threshold=1,read-pattern=fifo";
    command.args(["--blockdev", &format!("{quorum},children.0=file0,children.1=file1")]);
    let socket = directory.join("socket");
    command.args(["--nbd-server", &format!("addr.type=unix,addr.path={}", socket.display())]);
    command.args(["--export", "type=nbd,id=out,node-name=a,name=a,writable=on"]);
}

/// IOPS, and the server's microseconds of processor time for each I/O.
#[derive(Clone, Copy)]
struct Measured {
    iops: f64,
    micros: f64,
}

fn measure(comparison: usize, server: usize, load: &[&str], seconds: u64) -> Measured {
    let running = Running::new(comparison, server);
    let reached = running.reached();
    let fio = |seconds: u64, rw: Option<&str>| {
        let mut fio = Command::new("taskset");
        fio.args(["-c", "1", "fio", "--name=x", "--direct=1", "--size=256m"]).args(&reached);
        fio.args(load).args(rw);
        fio.args(["--time_based", &format!("--runtime={seconds}"), "--minimal"]);
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

fn compare(number: usize, rounds: usize, seconds: u64) {
    let Comparison { servers, loads, .. } = &COMPARISONS[number];
    for (name, load) in *loads {
        let mut all: Vec<Vec<Measured>> = vec![Vec::new(); servers.len()];
        for round in 0..rounds {
            for turn in 0..servers.len() {
                let server = (turn + round) % servers.len();
                all[server].push(measure(number, server, load, seconds));
            }
        }
        let first = servers[0].0;
        println!("{name}: {rounds} rounds of {seconds} s, medians; ratios to {first} in a round");
        for (server, (title, _)) in servers.iter().enumerate() {
            let of = |each: &dyn Fn(usize) -> f64| median((0..rounds).map(each).collect());
            let (ours, peer) = (&all[server], &all[0]);
            println!(
                "  {title:<24} {:>7.0} IOPS ({:.2})   {:>6.2} us of CPU an I/O ({:.2})",
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
