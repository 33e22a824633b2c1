//! `dd`: one process, one file, one block after the other.
//!
//! What GNU coreutils 9.1 asks the kernel for, seen by `strace` (`tests/copy_strace.rs`), with these
//! differences: `/dev/zero` is not read, blocks of zeroes come from memory
//! ([`Content::Zeroes`]); a read's write to `/dev/null` follows after up to 256 reads instead of after
//! each; `oflag=dsync` opens with `O_SYNC`, which promises the times of the file besides what `O_DSYNC`
//! promises; calls that find out about files (`fstat`, `lseek` by nothing) are left out. The time dd
//! prints starts when both files are open and ends when they are closed.

mod text;

use std::sync::Arc;

use raidlab_core::Size;

use crate::error::WorkloadError;
use crate::kinds::Workload;
use crate::metric::Metric;
use crate::op::{Content, FileDescriptor, FilePath, Op, OpenFlags, Seek};
use crate::parameters::Parameters;
use crate::plan::{Expected, FileNeed, Plan, Setting, Zeroes};
use crate::record::RunRecord;
use crate::simple::LARGEST_BLOCK;
use crate::steps::{
    Measured, check_raw_whole, check_whole, copy_path, make_file, one_phase, planned, sector,
    writes, wrong,
};
use raidlab_random::mix;

/// How many reads go before their writes to `/dev/null`.
pub(crate) const BATCH: u64 = 256;

/// The default number of bytes: `dd` itself has none and would never end.
const SIZE: u64 = 1 << 30;

pub(crate) const SUMMARY: &str = "one file from start to end as dd: bs=512 size=1GiB|count=N \
    if=zero|file of=file|null conv=none|fdatasync|fsync oflag=direct,dsync,sync iflag=direct seek=0 \
    skip=0 metric=mib_per_s|mb_per_s|seconds";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Amount {
    /// So many blocks (`count=`).
    Count(u64),
    /// So many bytes: of the file read to its end, or with `iflag=count_bytes`.
    Bytes(u64),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Flags {
    direct: bool,
    sync: bool,
    dsync: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Dd {
    block: u64,
    amount: Amount,
    reads: bool,
    flags: Flags,
    fdatasync: bool,
    fsync: bool,
    /// Blocks that are skipped in the file that is read (`skip`) or written (`seek`).
    skip: u64,
    measured: Measured,
}

/// A `dd` from its parameters.
pub(crate) fn make(parameters: &mut Parameters) -> Result<Arc<dyn Workload>, WorkloadError> {
    let block = parameters.size("bs", 512)?;
    if block > LARGEST_BLOCK {
        let most = Size(LARGEST_BLOCK);
        return Err(wrong("bs", format!("{} is too large; at most {most}", Size(block))));
    }
    let has_count = parameters.has("count");
    let count = parameters.number("count", 1, 1..=u64::MAX / LARGEST_BLOCK)?;
    let size = parameters.optional_size("size")?;
    let amount = match (has_count, size) {
        (true, Some(_)) => return Err(wrong("size", "is given besides count; give one of them")),
        (true, None) => Amount::Count(count),
        (false, size) => Amount::Bytes(size.unwrap_or(SIZE)),
    };
    let reads = direction(parameters)?;
    let flags = flags(parameters, reads)?;
    let (fdatasync, fsync) = conversions(parameters, reads)?;
    let (key, other) = if reads { ("skip", "seek") } else { ("seek", "skip") };
    let skip = parameters.number(key, 0, 0..=u64::MAX / LARGEST_BLOCK)?;
    if parameters.text(other).is_some() {
        let right = if reads { "of=null; use skip" } else { "if=zero; use seek" };
        return Err(wrong(other, format!("means nothing with {right}")));
    }
    let measured = Measured::from(parameters, Metric::MIB_PER_SECOND)?;
    let dd = Dd { block, amount, reads, flags, fdatasync, fsync, skip, measured };
    dd.check()?;
    Ok(Arc::new(dd))
}

/// Whether a file is read rather than written.
fn direction(parameters: &mut Parameters) -> Result<bool, WorkloadError> {
    let input = parameters.choice("if", None, &[("zero", Some(false)), ("file", Some(true))])?;
    let output = parameters.choice("of", None, &[("file", Some(false)), ("null", Some(true))])?;
    match (input, output) {
        (Some(false), Some(true)) => {
            Err(wrong("of", "null with if=zero moves nothing on what is tested; use of=file"))
        }
        (Some(true), Some(false)) => {
            Err(wrong("of", "file with if=file is a copy; use of=null, or the kind cp-tar"))
        }
        (input, output) => Ok(input.or(output).unwrap_or(false)),
    }
}

fn flags(parameters: &mut Parameters, reads: bool) -> Result<Flags, WorkloadError> {
    let (key, other) = if reads { ("iflag", "oflag") } else { ("oflag", "iflag") };
    if parameters.text(other).is_some() {
        let side = if reads { "/dev/null" } else { "/dev/zero" };
        return Err(wrong(other, format!("would be a flag of {side}; use {key}")));
    }
    let mut flags = Flags::default();
    let text = parameters.text(key);
    for word in text.iter().flat_map(|text| text.split(',')) {
        match word {
            "direct" => flags.direct = true,
            "sync" if !reads => flags.sync = true,
            "dsync" if !reads => flags.dsync = true,
            _ => {
                let known = if reads { "direct" } else { "direct, dsync, sync" };
                return Err(wrong(key, format!("`{word}` is not one of {known}")));
            }
        }
    }
    Ok(flags)
}

fn conversions(parameters: &mut Parameters, reads: bool) -> Result<(bool, bool), WorkloadError> {
    let Some(text) = parameters.text("conv") else { return Ok((false, false)) };
    let (mut fdatasync, mut fsync) = (false, false);
    for word in text.split(',') {
        match word {
            "none" => {}
            "fdatasync" | "fsync" if reads => {
                return Err(wrong("conv", "nothing is made durable with of=null; leave conv out"));
            }
            "fdatasync" => fdatasync = true,
            "fsync" => fsync = true,
            _ => {
                let reason = format!("`{word}` is not one of none, fdatasync, fsync");
                return Err(wrong("conv", reason));
            }
        }
    }
    Ok((fdatasync, fsync))
}

impl Dd {
    fn check(&self) -> Result<(), WorkloadError> {
        let skipped = self.skip.checked_mul(self.block);
        if skipped.and_then(|skipped| skipped.checked_add(self.bytes())).is_none() {
            let key = if self.reads { "skip" } else { "seek" };
            return Err(wrong(key, "the file would be longer than any can be"));
        }
        if self.flags.direct && !self.block.is_multiple_of(512) {
            let reason = format!("{} is not a multiple of 512, as direct asks for", self.block);
            return Err(wrong("bs", reason));
        }
        if self.flags.direct && !self.bytes().is_multiple_of(self.block) {
            let reason = "must be a multiple of bs with direct: dd would end without direct";
            return Err(wrong("size", reason));
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        match self.amount {
            Amount::Count(count) => count * self.block,
            Amount::Bytes(bytes) => bytes,
        }
    }

    fn skipped(&self) -> u64 {
        self.skip * self.block
    }

    fn path(&self, copy: u32) -> FilePath {
        copy_path("dd", copy, "")
    }

    fn write_ops(&self, copy: u32) -> impl Iterator<Item = Op> + use<> {
        let fd = FileDescriptor(0);
        let flags = OpenFlags {
            read: self.skip > 0,
            truncate: self.skip == 0,
            direct: self.flags.direct,
            sync: self.flags.sync || self.flags.dsync,
            ..OpenFlags::WRITE
        };
        let at = self.skipped();
        let behind = [Op::Truncate { fd, len: at }, Op::Seek { fd, to: Seek::Start(at) }];
        let behind = behind.into_iter().filter(move |_| at > 0);
        let fdatasync = self.fdatasync.then_some(Op::Fdatasync { fd });
        let fsync = self.fsync.then_some(Op::Fsync { fd });
        let timed = behind
            .chain(writes(fd, self.bytes(), self.block, Content::Zeroes))
            .chain(fdatasync)
            .chain(fsync)
            .chain([Op::Close { fd }]);
        std::iter::once(Op::Open { fd, path: self.path(copy), flags })
            .chain(crate::steps::phase(0, timed))
    }

    fn read_ops(&self, copy: u32) -> impl Iterator<Item = Op> + use<> {
        let (fd, null) = (FileDescriptor(0), FileDescriptor(1));
        let opens = [
            Op::Open {
                fd,
                path: self.path(copy),
                flags: OpenFlags { direct: self.flags.direct, ..OpenFlags::READ },
            },
            Op::Open { fd: null, path: FilePath::null(), flags: OpenFlags::WRITE },
        ];
        let at = self.skipped();
        let skip = (at > 0).then_some(Op::Seek { fd, to: Seek::Start(at) });
        let to_the_end = matches!(self.amount, Amount::Bytes(_));
        let timed = skip
            .into_iter()
            .chain(to_null(fd, null, self.bytes(), self.block, to_the_end))
            .chain([Op::Close { fd }, Op::Close { fd: null }]);
        opens.into_iter().chain(crate::steps::phase(0, timed))
    }
}

/// Reads `bytes` in blocks and writes what was read to `/dev/null`; `to_the_end` with a last read that
/// finds nothing.
pub(crate) fn to_null(
    fd: FileDescriptor,
    null: FileDescriptor,
    bytes: u64,
    block: u64,
    to_the_end: bool,
) -> impl Iterator<Item = Op> {
    let content = Content::Buffer { from: 0 };
    let (whole, rest) = (bytes / block, bytes % block);
    let batch = move |index: u64| {
        let times = BATCH.min(whole - index * BATCH);
        [Op::Read { fd, len: block, times }, Op::Write { fd: null, len: block, content, times }]
    };
    let last = [
        Op::Read { fd, len: block, times: 1 },
        Op::Write { fd: null, len: rest, content, times: 1 },
    ];
    (0..whole.div_ceil(BATCH))
        .flat_map(batch)
        .chain(last.into_iter().filter(move |_| rest > 0))
        .chain(to_the_end.then_some(Op::Read { fd, len: block, times: 1 }))
}

impl Workload for Dd {
    fn kind(&self) -> &'static str {
        "dd"
    }

    fn default_name(&self) -> String {
        let way = if self.reads { "read" } else { "write" };
        format!("dd-{way} {}", Size(self.block))
    }

    fn description(&self) -> String {
        let (bytes, block) = (Size(self.bytes()), Size(self.block));
        let mut text = if self.reads {
            format!("dd reads a file of {bytes} to /dev/null in blocks of {block}")
        } else {
            format!("dd writes {bytes} of zeroes to a file in blocks of {block}")
        };
        if self.skip > 0 {
            text += &format!(", from byte {} on", self.skipped());
        }
        let notes = [
            (self.flags.direct, ", past the page cache"),
            (self.flags.sync, ", each write durable (O_SYNC)"),
            (self.flags.dsync, ", each write durable (O_SYNC in place of O_DSYNC)"),
            (self.fdatasync, ", then fdatasync"),
            (self.fsync, ", then fsync"),
        ];
        text.extend(notes.iter().filter(|(is, _)| *is).map(|(_, note)| *note));
        let is_durable = self.fdatasync || self.fsync || self.flags.sync || self.flags.dsync;
        if !self.reads && !is_durable && !self.flags.direct {
            text += "; nothing makes it durable within the time measured";
        }
        text
    }

    fn metrics(&self) -> Vec<Metric> {
        self.measured.metrics()
    }

    fn values(&self, record: &RunRecord) -> Vec<Option<f64>> {
        let totals = record.totals();
        let moved = if self.reads { &totals.reads } else { &totals.writes };
        self.measured.values(moved.bytes, record)
    }

    fn plan(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let len = self.skipped() + self.bytes();
        check_whole(sector(setting), len, ("bs", self.block))?;
        let mut plan = Plan {
            phases: one_phase(if self.reads { "read" } else { "write" }),
            room: len.saturating_mul(setting.copies.into()),
            ..Plan::default()
        };
        for copy in 0..setting.copies {
            let path = self.path(copy);
            if self.reads {
                let seed = mix(&[setting.seed, copy.into()]);
                plan.prepare.push(planned(copy, make_file(path.clone(), len, seed)));
                plan.run.push(planned(copy, self.read_ops(copy)));
            } else {
                plan.run.push(planned(copy, self.write_ops(copy)));
                let bytes = Arc::new(Zeroes { len });
                plan.expected.push(Expected { path: path.clone(), bytes });
            }
            plan.files.push(FileNeed { path, bytes: len, unit: self.block });
        }
        Ok(plan)
    }

    fn resized(&self, bytes: u64) -> Result<Arc<dyn Workload>, WorkloadError> {
        if bytes == 0 {
            return Err(wrong("size", "must be more than nothing"));
        }
        let resized = Self { amount: Amount::Bytes(bytes), ..self.clone() };
        resized.check()?;
        Ok(Arc::new(resized))
    }

    fn check_raw(&self, space: u64, copies: u32, logical_block: u64) -> Result<(), WorkloadError> {
        let len = self.skipped() + self.bytes();
        check_raw_whole(self, len, ("bs", self.block), (space, copies, logical_block))
    }

    fn formats(&self) -> &'static [&'static str] {
        &["text"]
    }

    fn format(&self, format: &str, record: &RunRecord, _host: &str) -> Option<String> {
        if format != "text" {
            return None;
        }
        let (bytes, block) = (self.bytes(), self.block);
        let records = format!("{}+{}", bytes / block, u64::from(!bytes.is_multiple_of(block)));
        let phases = record.processes.iter().filter_map(|process| process.phases.first());
        let lines = phases.map(|phase| {
            let copied = text::copied(bytes, phase.took());
            format!("{records} records in\n{records} records out\n{copied}\n")
        });
        Some(lines.collect())
    }
}

#[cfg(test)]
mod tests;
