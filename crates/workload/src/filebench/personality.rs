//! The six personalities as values: which files there are, which threads, and what each does again and again.
//!
//! Facts of the workload files of filebench 1.5 (`fileserver.f`, `varmail.f`, `webserver.f`, `webproxy.f`, `oltp.f`,
//! `videoserver.f`), in raidlab's own words.

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Which one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Fileserver,
    Varmail,
    Webserver,
    Webproxy,
    Oltp,
    Videoserver,
}

impl Name {
    pub(super) const ALL: [(&'static str, Self); 6] = [
        ("fileserver", Self::Fileserver),
        ("varmail", Self::Varmail),
        ("webserver", Self::Webserver),
        ("webproxy", Self::Webproxy),
        ("oltp", Self::Oltp),
        ("videoserver", Self::Videoserver),
    ];

    pub(super) fn text(self) -> &'static str {
        Self::ALL.iter().find(|(_, name)| *name == self).map_or("", |(text, _)| text)
    }

    /// What it is scaled by, where nobody says.
    pub(super) const fn usual(self) -> Scale {
        let scale = Scale {
            files: 1_000,
            size: 16 * KIB,
            threads: 100,
            writers: 0,
            passive: 0,
            rate: 0,
            interval: 0,
        };
        match self {
            Self::Fileserver => Scale { files: 10_000, size: 128 * KIB, threads: 50, ..scale },
            Self::Varmail => Scale { threads: 16, ..scale },
            Self::Webserver => scale,
            Self::Webproxy => Scale { files: 10_000, ..scale },
            Self::Oltp => Scale { files: 10, size: 10 * MIB, threads: 200, writers: 10, ..scale },
            Self::Videoserver => Scale {
                files: 32,
                size: 10 << 30,
                threads: 48,
                passive: 194,
                rate: 96,
                interval: 10_000_000_000,
                ..scale
            },
        }
    }

    /// Whether it makes and deletes files with many threads, which takes files enough for all of them.
    pub(super) const fn makes_files(self) -> bool {
        matches!(self, Self::Fileserver | Self::Varmail | Self::Webproxy)
    }
}

/// What users scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scale {
    /// Files of the set that the threads work on: of videos, those that are watched.
    pub(super) files: u64,
    /// Their mean size.
    pub(super) size: u64,
    /// Threads, or processes of one thread.
    pub(super) threads: u32,
    /// Database writers.
    pub(super) writers: u32,
    /// Videos that nobody watches.
    pub(super) passive: u64,
    /// Events a second; 0 for no limit.
    pub(super) rate: u64,
    /// Nanoseconds from one new video to the next.
    pub(super) interval: u64,
}

/// A set of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SetSpec {
    pub(super) name: &'static str,
    pub(super) files: u64,
    /// The mean size.
    pub(super) size: u64,
    /// Whether sizes are drawn from the Gamma law of shape [`SHAPE`]; else all are alike.
    pub(super) varies: bool,
    /// Entries of a directory, in the mean.
    pub(super) width: u64,
    /// So many of a hundred are there from the start.
    pub(super) share: u64,
    /// Opened for reading only.
    pub(super) is_read_only: bool,
}

/// The shape of the laws that sizes of files, and widths and depths of directories, are drawn from.
pub(super) const SHAPE: f64 = 1.5;
/// A directory that holds everything.
const ONE: u64 = 1_000_000;

/// What a thread does, in the words of filebench.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flowop {
    /// `createfile`: one that is not there.
    Create { set: u8, fd: u8 },
    /// `openfile`: the next that is there.
    Open { set: u8, fd: u8 },
    /// `closefile`.
    Close { fd: u8 },
    /// `writewholefile`: as much as the file was drawn to have.
    WriteWhole { fd: u8, len: u64 },
    /// `readwholefile`: from its start to its end.
    ReadWhole { fd: u8, len: u64 },
    /// `appendfilerand`: less than `len`; opens a file of the set where none is open.
    Append { set: u8, fd: u8, len: u64 },
    /// `fsync`.
    Fsync { fd: u8 },
    /// `deletefile`: the next that is there, unless it is open.
    Delete { set: u8 },
    /// `statfile`: the next that is there.
    Stat { set: u8 },
    /// `read` at the position, back to the start at the end.
    ReadNext { set: u8, fd: u8, len: u64 },
    /// `read`, `random`, `opennext`: of each file in turn.
    ReadRandom { set: u8, len: u64 },
    /// `aiowrite`, `random`, `dsync`, so many times; `opennext`: to each file in turn, else to one.
    WriteAhead { set: u8, len: u64, times: u32, turns: bool },
    /// `aiowait`: for half of what is under way, at least one.
    Wait,
    /// `hog`: so many rounds of a loop.
    Hog(u64),
    /// `semblock` of the thread's own semaphores: lets so many posts come, then waits for as many.
    Block(u32),
    /// `sempost` to these semaphores, one each, and waits where none may come.
    Post { first: u32, count: u32 },
    /// `eventlimit`: an event each time.
    EventLimit,
    /// `bwlimit`: an event for each MiB that the thread has read.
    BandwidthLimit,
    /// `delay`, in nanoseconds.
    Delay(u64),
}

/// Threads that do the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) threads: u32,
    pub(super) flowops: Vec<Flowop>,
    /// Whether a run by loops is over when these have done theirs; others go on until then.
    pub(super) is_counted: bool,
    /// The semaphores of its first thread, and how many posts may come before it blocks for the first time.
    pub(super) semaphores: Option<(u32, i64)>,
}

/// A personality at a scale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Personality {
    pub(super) sets: Vec<SetSpec>,
    /// Those that are counted first.
    pub(super) groups: Vec<Group>,
}

impl Personality {
    pub(super) fn new(name: Name, scale: &Scale) -> Self {
        match name {
            Name::Fileserver => fileserver(scale),
            Name::Varmail => varmail(scale),
            Name::Webserver => webserver(scale),
            Name::Webproxy => webproxy(scale),
            Name::Oltp => oltp(scale),
            Name::Videoserver => videoserver(scale),
        }
    }

    pub(super) fn threads(&self) -> u32 {
        self.groups.iter().map(|group| group.threads).sum()
    }

    /// Bytes of the pieces that whole files are written in; 0: none are.
    pub(super) fn written_by(&self) -> u64 {
        let flowops = self.groups.iter().flat_map(|group| &group.flowops);
        let pieces = flowops.filter_map(|flowop| match flowop {
            Flowop::WriteWhole { len, .. } => Some(*len),
            _ => None,
        });
        pieces.max().unwrap_or(0)
    }
}

/// The set that most have.
fn big(scale: &Scale) -> SetSpec {
    SetSpec {
        name: "bigfileset",
        files: scale.files,
        size: scale.size,
        varies: true,
        width: 20,
        share: 80,
        is_read_only: false,
    }
}

fn all_alike(threads: u32, flowops: Vec<Flowop>) -> Vec<Group> {
    vec![Group { threads, flowops, is_counted: true, semaphores: None }]
}

/// Reads a file of the set, which is opened before and closed after.
fn open_read_close(set: u8, fd: u8) -> [Flowop; 3] {
    [Flowop::Open { set, fd }, Flowop::ReadWhole { fd, len: MIB }, Flowop::Close { fd }]
}

fn fileserver(scale: &Scale) -> Personality {
    let (set, fd) = (0, 1);
    let flowops = vec![
        Flowop::Create { set, fd },
        Flowop::WriteWhole { fd, len: MIB },
        Flowop::Close { fd },
        Flowop::Open { set, fd },
        Flowop::Append { set, fd, len: 16 * KIB },
        Flowop::Close { fd },
        Flowop::Open { set, fd },
        Flowop::ReadWhole { fd, len: MIB },
        Flowop::Close { fd },
        Flowop::Delete { set },
        Flowop::Stat { set },
    ];
    Personality { sets: vec![big(scale)], groups: all_alike(scale.threads, flowops) }
}

fn varmail(scale: &Scale) -> Personality {
    let (set, fd) = (0, 1);
    let append = Flowop::Append { set, fd, len: 16 * KIB };
    let mut flowops = vec![
        Flowop::Delete { set },
        Flowop::Create { set, fd },
        append,
        Flowop::Fsync { fd },
        Flowop::Close { fd },
        Flowop::Open { set, fd },
        Flowop::ReadWhole { fd, len: MIB },
        append,
        Flowop::Fsync { fd },
        Flowop::Close { fd },
    ];
    flowops.extend(open_read_close(set, fd));
    let sets = vec![SetSpec { width: ONE, ..big(scale) }];
    Personality { sets, groups: all_alike(scale.threads, flowops) }
}

fn webserver(scale: &Scale) -> Personality {
    let pages = SetSpec { share: 100, is_read_only: true, ..big(scale) };
    let log = SetSpec { name: "logfiles", files: 1, share: 100, ..big(scale) };
    let mut flowops: Vec<Flowop> = (0..10).flat_map(|_| open_read_close(0, 1)).collect();
    flowops.push(Flowop::Append { set: 1, fd: 2, len: 16 * KIB });
    Personality { sets: vec![pages, log], groups: all_alike(scale.threads, flowops) }
}

fn webproxy(scale: &Scale) -> Personality {
    let (set, fd) = (0, 1);
    let mut flowops = vec![
        Flowop::Delete { set },
        Flowop::Create { set, fd },
        Flowop::Append { set, fd, len: 16 * KIB },
        Flowop::Close { fd },
    ];
    flowops.extend((0..5).flat_map(|_| open_read_close(set, fd)));
    // Its `opslimit` limits nothing: nobody generates events.
    let sets = vec![SetSpec { varies: false, width: ONE, ..big(scale) }];
    Personality { sets, groups: all_alike(scale.threads, flowops) }
}

fn oltp(scale: &Scale) -> Personality {
    let data = SetSpec { name: "datafiles", varies: false, width: 1024, share: 100, ..big(scale) };
    let log = SetSpec { name: "logfile", files: 1, size: 10 * MIB, ..data };
    let shadows = vec![
        Flowop::ReadRandom { set: 0, len: 2 * KIB },
        Flowop::Hog(200_000),
        Flowop::Post { first: 0, count: 1 },
        Flowop::Post { first: 1, count: scale.writers },
        Flowop::EventLimit,
    ];
    let log_writer = vec![
        Flowop::WriteAhead { set: 1, len: 256 * KIB, times: 1, turns: false },
        Flowop::Wait,
        Flowop::Block(3_200),
    ];
    let writers = vec![
        Flowop::WriteAhead { set: 0, len: 2 * KIB, times: 100, turns: true },
        Flowop::Hog(10_000),
        Flowop::Block(1_000),
        Flowop::Wait,
    ];
    let group = |threads, flowops, is_counted, semaphores| Group {
        threads,
        flowops,
        is_counted,
        semaphores,
    };
    let groups = vec![
        group(scale.threads, shadows, true, None),
        group(1, log_writer, false, Some((0, 1_000))),
        group(scale.writers, writers, false, Some((1, 2_000))),
    ];
    Personality { sets: vec![data, log], groups }
}

fn videoserver(scale: &Scale) -> Personality {
    let active = SetSpec { name: "activevids", varies: false, width: 4, share: 100, ..big(scale) };
    let passive =
        SetSpec { name: "passivevids", files: scale.passive, width: 20, share: 50, ..active };
    let readers = vec![Flowop::ReadNext { set: 0, fd: 0, len: 256 * KIB }, Flowop::BandwidthLimit];
    let (set, fd) = (1, 1);
    let writer = vec![
        Flowop::Delete { set },
        Flowop::Create { set, fd },
        Flowop::WriteWhole { fd, len: MIB },
        Flowop::Close { fd },
        Flowop::Delay(scale.interval),
    ];
    let mut groups = all_alike(scale.threads, readers);
    groups.push(Group { threads: 1, flowops: writer, is_counted: false, semaphores: None });
    Personality { sets: vec![active, passive], groups }
}

#[cfg(test)]
mod tests {
    use raidlab_core::Size;

    use super::*;

    /// A length as the workload files write it.
    fn size(bytes: u64) -> String {
        Size(bytes).to_string().replace("iB", "").to_lowercase()
    }

    /// A flowop, with the numbers of sets and file descriptors.
    fn flowop(flowop: &Flowop) -> String {
        match *flowop {
            Flowop::Create { set, fd } => format!("create {set} {fd}"),
            Flowop::Open { set, fd } => format!("open {set} {fd}"),
            Flowop::Close { fd } => format!("close {fd}"),
            Flowop::WriteWhole { fd, len } => format!("write-whole {fd} by {}", size(len)),
            Flowop::ReadWhole { fd, len } => format!("read-whole {fd} by {}", size(len)),
            Flowop::Append { set, fd, len } => format!("append {set} {fd} < {}", size(len)),
            Flowop::Fsync { fd } => format!("fsync {fd}"),
            Flowop::Delete { set } => format!("delete {set}"),
            Flowop::Stat { set } => format!("stat {set}"),
            Flowop::ReadNext { set, fd, len } => format!("read {set} {fd} by {}", size(len)),
            Flowop::ReadRandom { set, len } => {
                format!("read-random {set} by {} in turn", size(len))
            }
            Flowop::WriteAhead { set, len, times, turns } => {
                let turn = if turns { " in turn" } else { "" };
                format!("write-ahead {set} {times} by {}{turn}", size(len))
            }
            Flowop::Wait => "wait".into(),
            Flowop::Hog(rounds) => format!("hog {rounds}"),
            Flowop::Block(posts) => format!("block {posts}"),
            Flowop::Post { first, count } => format!("post {first}+{count}"),
            Flowop::EventLimit => "event".into(),
            Flowop::BandwidthLimit => "events by MiB".into(),
            Flowop::Delay(time) => format!("delay {}s", time / 1_000_000_000),
        }
    }

    fn set(set: &SetSpec) -> String {
        let SetSpec { name, files, width, share, .. } = *set;
        let law = if set.varies { " gamma" } else { "" };
        let reads = if set.is_read_only { ", read only" } else { "" };
        format!(
            "{name}: {files} of {}{law}, {width} a directory, {share} % there{reads}",
            size(set.size)
        )
    }

    fn group(group: &Group) -> String {
        let flowops: Vec<String> = group.flowops.iter().map(flowop).collect();
        let counted = if group.is_counted { "" } else { ", as long as the others" };
        format!("{} threads{counted}: {}", group.threads, flowops.join("; "))
    }

    fn check(name: Name, sets: &[String], groups: &[String]) {
        let found = Personality::new(name, &name.usual());
        assert_eq!(found.sets.iter().map(set).collect::<Vec<_>>(), sets, "{name:?}");
        assert_eq!(found.groups.iter().map(group).collect::<Vec<_>>(), groups, "{name:?}");
    }

    /// All that the workload files say of files and threads: `fileserver.f` and the others, at the scale they have
    /// themselves.
    #[test]
    fn servers_are_those_of_the_workload_files() {
        let read = "open 0 1; read-whole 1 by 1m; close 1";
        let reads = |times| vec![read; times].join("; ");
        let big = |files: &str| format!("bigfileset: {files} a directory");
        for (name, sets, groups) in [
            (
                Name::Fileserver,
                vec![big("10000 of 128k gamma, 20") + ", 80 % there"],
                vec![format!(
                    "50 threads: create 0 1; write-whole 1 by 1m; close 1; open 0 1; append 0 1 < 16k; \
                     close 1; {read}; delete 0; stat 0"
                )],
            ),
            (
                Name::Varmail,
                vec![big("1000 of 16k gamma, 1000000") + ", 80 % there"],
                vec![format!(
                    "16 threads: delete 0; create 0 1; append 0 1 < 16k; fsync 1; close 1; open 0 1; \
                     read-whole 1 by 1m; append 0 1 < 16k; fsync 1; close 1; {read}"
                )],
            ),
            (
                Name::Webserver,
                vec![
                    big("1000 of 16k gamma, 20") + ", 100 % there, read only",
                    "logfiles: 1 of 16k gamma, 20 a directory, 100 % there".into(),
                ],
                vec![format!("100 threads: {}; append 1 2 < 16k", reads(10))],
            ),
            (
                Name::Webproxy,
                vec![big("10000 of 16k, 1000000") + ", 80 % there"],
                vec![format!(
                    "100 threads: delete 0; create 0 1; append 0 1 < 16k; close 1; {}",
                    reads(5)
                )],
            ),
        ] {
            check(name, &sets, &groups);
        }
    }

    #[test]
    fn databases_and_videos_are_those_of_the_workload_files() {
        for (name, sets, groups) in [
            (
                Name::Oltp,
                vec![
                    "datafiles: 10 of 10m, 1024 a directory, 100 % there".into(),
                    "logfile: 1 of 10m, 1024 a directory, 100 % there".into(),
                ],
                vec![
                    "200 threads: read-random 0 by 2k in turn; hog 200000; post 0+1; post 1+10; event"
                        .into(),
                    "1 threads, as long as the others: write-ahead 1 1 by 256k; wait; block 3200"
                        .into(),
                    "10 threads, as long as the others: write-ahead 0 100 by 2k in turn; hog 10000; \
                     block 1000; wait"
                        .into(),
                ],
            ),
            (
                Name::Videoserver,
                vec![
                    "activevids: 32 of 10g, 4 a directory, 100 % there".into(),
                    "passivevids: 194 of 10g, 20 a directory, 50 % there".into(),
                ],
                vec![
                    "48 threads: read 0 0 by 256k; events by MiB".into(),
                    "1 threads, as long as the others: delete 1; create 1 1; write-whole 1 by 1m; \
                     close 1; delay 10s"
                        .into(),
                ],
            ),
        ] {
            check(name, &sets, &groups);
        }
        assert_eq!(Name::Videoserver.usual().rate, 96, "events a second");
        assert_eq!(Name::Oltp.usual().rate, 0, "no limit");
    }
}
