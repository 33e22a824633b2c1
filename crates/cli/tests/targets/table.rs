//! Every kind of workload, what it measures at a small size, and where it can run.

/// What the members below a filesystem are asked for while the workload runs, whatever lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Below {
    /// Reads: memory was empty at the start.
    Reads,
    /// Writes: they are made durable within the run.
    Writes,
    /// Nothing that is sure: all may lie in memory.
    Memory,
}

/// A kind of workload, small.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) kind: &'static str,
    /// On the command line, separated by spaces.
    pub(crate) parameters: &'static str,
    /// Its phases; one that is in brackets may take no time.
    pub(crate) phases: &'static str,
    /// Its metrics; one that is in brackets may be nothing in so small a run.
    pub(crate) metrics: &'static str,
    pub(crate) below: Below,
    /// Why it cannot run on a target without a filesystem; nothing when it can.
    pub(crate) not_raw: Option<&'static str>,
}

const fn row(
    kind: &'static str,
    parameters: &'static str,
    phases: &'static str,
    metrics: &'static str,
    below: Below,
) -> Row {
    Row { kind, parameters, phases, metrics, below, not_raw: None }
}

impl Row {
    /// Another one for every row.
    pub(crate) fn name(&self) -> String {
        let is_variant = VARIANTS.iter().any(|row| std::ptr::eq(row, self));
        format!("{}{}", self.kind, if is_variant { "-variant" } else { "" })
    }

    const fn not_raw(mut self, why: &'static str) -> Self {
        self.not_raw = Some(why);
        self
    }
}

const BONNIE_PHASES: &str = "character_write block_write rewrite character_read block_read seeks \
    create_sequential stat_sequential delete_sequential create_random stat_random delete_random";
/// Rates of less than half a second are not told.
const BONNIE: &str = "(block_write_kps) (block_write_cp) (rewrite_kps) (rewrite_cp) (block_read_kps) \
    (block_read_cp) (seeks_per_s) (seeks_cp) (character_write_kps) (character_write_cp) \
    (character_read_kps) (character_read_cp) (create_sequential_per_s) (create_sequential_cp) \
    (stat_sequential_per_s) (stat_sequential_cp) (delete_sequential_per_s) (delete_sequential_cp) \
    (create_random_per_s) (create_random_cp) (stat_random_per_s) (stat_random_cp) \
    (delete_random_per_s) (delete_random_cp) seconds";
const FAST_PHASES: &str = "block_write rewrite block_read seeks create_sequential stat_sequential \
    delete_sequential create_random stat_random delete_random";
const FAST: &str = "(block_write_kps) (block_write_cp) (rewrite_kps) (rewrite_cp) (block_read_kps) \
    (block_read_cp) (seeks_per_s) (seeks_cp) (create_sequential_per_s) (create_sequential_cp) \
    (stat_sequential_per_s) (stat_sequential_cp) (delete_sequential_per_s) (delete_sequential_cp) \
    (create_random_per_s) (create_random_cp) (stat_random_per_s) (stat_random_cp) \
    (delete_random_per_s) (delete_random_cp) seconds";
const LARGE: &str = "(block_write_kps) (block_write_cp) (rewrite_kps) (rewrite_cp) (block_read_kps) \
    (block_read_cp) (seeks_per_s) (seeks_cp) seconds";
const BONNIE_NOT_RAW: &str = "bonnie++ makes small files; with n=0 it needs none";
const TIOBENCH_PHASES: &str = "seq_write rand_write seq_read rand_read";
const TIOBENCH: &str = "seq_write_mib_per_s seq_write_mean_latency_ms seq_write_longest_latency_ms \
    (seq_write_over_2s_percent) (seq_write_over_10s_percent) rand_write_mib_per_s \
    rand_write_mean_latency_ms rand_write_longest_latency_ms (rand_write_over_2s_percent) \
    (rand_write_over_10s_percent) seq_read_mib_per_s seq_read_mean_latency_ms \
    seq_read_longest_latency_ms (seq_read_over_2s_percent) (seq_read_over_10s_percent) \
    rand_read_mib_per_s rand_read_mean_latency_ms rand_read_longest_latency_ms \
    (rand_read_over_2s_percent) (rand_read_over_10s_percent)";
const TIMES: &str = "seconds mib_per_s mb_per_s";

use Below::{Memory, Reads, Writes};

/// All of them, in the order of `raidlab run --list`.
#[rustfmt::skip]
pub(crate) static TABLE: &[Row] = &[
    row("dd-write", "size=1MiB block=64KiB", "run", "mib_per_s", Writes),
    row("dd-read", "size=1MiB block=64KiB", "run", "mib_per_s", Reads),
    row("random-read", "size=64KiB span=1MiB", "run", "iops", Reads),
    row("random-write", "size=64KiB span=1MiB", "run", "iops", Writes),
    row("bonnie-1.03", "size=4MiB ram=1MiB n=1:100:10:2 seeks=32 settle=0s", BONNIE_PHASES, BONNIE, Memory)
        .not_raw(BONNIE_NOT_RAW),
    // Without millions of calls for single bytes, and with empty small files: all are made durable.
    row("bonnie-2.00", "size=4MiB ram=1MiB n=1:0:0:2 seeks=32 settle=0s fast=true", FAST_PHASES, FAST,
        Writes)
        .not_raw(BONNIE_NOT_RAW),
    row("tiobench-0.3", "size=2MiB operations=32 threads=2", TIOBENCH_PHASES, TIOBENCH, Writes),
    row("tiobench-0.4", "size=2MiB operations=32 threads=2", TIOBENCH_PHASES, TIOBENCH, Writes),
    row("hdparm-t", "size=4MiB time=10ms settle=0s", "device_reads", "mib_per_s", Reads),
    row("hdparm-T", "size=4MiB time=10ms settle=0s", "cached_reads (overhead)", "mib_per_s", Memory),
    row("cp-parallel", "files=2 size=1MiB", "read", "mb_per_s", Reads),
    row("blocksize-sweep", "size=256KiB blocks=4KiB,64KiB", "write_4KiB write_64KiB",
        "mib_per_s_4KiB mib_per_s_64KiB", Writes),
    row("real-life", "processes=2 files=4 operations=8 smallest=16KiB largest=64KiB blocks=4KiB,32KiB",
        "work", "seconds", Writes)
        .not_raw("deletes files and creates them again, so it needs a filesystem"),
    row("dd", "bs=4KiB size=256KiB conv=fdatasync", "write", "mib_per_s seconds mb_per_s", Writes),
    row("cp-null", "size=1MiB", "copy", TIMES, Reads),
    row("cp-tar", "size=1MiB", "copy", TIMES, Memory),
    row("tar-xf", "files=20 size=200KB", "unpack", TIMES, Memory)
        .not_raw("tar -xf makes directories and files by name"),
    row("cp-rf", "files=20 size=200KB", "copy", TIMES, Reads)
        .not_raw("cp -rf makes directories and files by name"),
    row("small-files", "files=20 dirs=2", "create stat delete",
        "create_per_s stat_per_s delete_per_s seconds", Memory)
        .not_raw("small-files makes and deletes files by name"),
    row("filebench", "personality=varmail files=20 threads=2 loops=2", "work",
        "ops_per_s mib_per_s latency_mean_ms latency_p99_ms", Writes)
        .not_raw("filebench makes and deletes files by name"),
    row("fio", "rw=randread size=1m", "run", "iops mib_per_s latency_mean_ms latency_p99_ms", Reads),
];

/// The same with other parameters, which lets them run where they could not.
#[rustfmt::skip]
pub(crate) static VARIANTS: &[Row] = &[
    row("bonnie-1.03", "size=4MiB ram=1MiB n=0 seeks=32 settle=0s fast=true",
        "block_write rewrite block_read seeks", LARGE, Memory),
    row("bonnie-2.00", "size=4MiB ram=1MiB n=0 seeks=32 settle=0s fast=true",
        "block_write rewrite block_read seeks", LARGE, Writes),
];

/// Targets with their names in the document, and whether they have names of files.
pub(crate) const TARGETS: [(&str, bool); 8] = [
    ("null", true),
    ("modelled", true),
    ("modelled-raw", false),
    ("DIR", true),
    ("raw:memory", false),
    ("raw:DIR", false),
    ("mounted:DIR", true),
    ("md:DIR", true),
];

/// The table as the document has it.
pub(crate) fn as_markdown() -> String {
    let names = TARGETS.map(|(name, _)| format!("`{name}`")).join(" | ");
    let mut text = format!("| workload | {names} | why not |\n|{}\n", "---|".repeat(10));
    for row in TABLE {
        let can = |(_, has_names): (&str, bool)| match row.not_raw {
            Some(_) if !has_names => "no",
            _ => "yes",
        };
        let cells = TARGETS.map(can).join(" | ");
        text.push_str(&format!("| `{}` | {cells} | {} |\n", row.kind, row.not_raw.unwrap_or("")));
    }
    text
}
