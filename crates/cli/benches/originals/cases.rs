//! What is compared: the same parameters for an original and for `raidlab run`.

use std::path::Path;

use raidlab_core::Size;

use crate::parse;

const MIB: u64 = 1 << 20;

/// Bytes of bonnie++'s file: its phases last a second even where memory holds the file.
const BONNIE_SIZE: Size = Size(4 << 30);
/// Bytes of dd's file.
const DD_SIZE: Size = Size(2 << 30);

/// The file that dd and fio work on.
pub(crate) const FILE: &str = "original";

/// Who prints the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Bonnie,
    Dd,
    /// With the direction whose rate is told.
    Fio(&'static str),
}

/// A figure of a case: its name here, its unit, and which of raidlab's metrics it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) metric: &'static str,
}

const fn figure(name: &'static str, unit: &'static str, metric: &'static str) -> Figure {
    Figure { name, unit, metric }
}

const BONNIE: [Figure; 3] = [
    figure("bonnie-block-write", "KiB/s", "block_write_kps"),
    figure("bonnie-rewrite", "KiB/s", "rewrite_kps"),
    figure("bonnie-block-read", "KiB/s", "block_read_kps"),
];
const DD_WRITE: [Figure; 1] = [figure("dd-write", "MiB/s", "mib_per_s")];
const DD_READ: [Figure; 1] = [figure("dd-read", "MiB/s", "mib_per_s")];
const RANDREAD_1: [Figure; 1] = [figure("fio-randread-1", "1/s", "iops")];
const RANDREAD_32: [Figure; 1] = [figure("fio-randread-32", "1/s", "iops")];
const RANDWRITE_1: [Figure; 1] = [figure("fio-randwrite-1", "1/s", "iops")];
const RANDWRITE_32: [Figure; 1] = [figure("fio-randwrite-32", "1/s", "iops")];

/// One run of an original and what stands beside it.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    program: Program,
    /// What a run measures, in the order in which it is parsed.
    pub(crate) figures: &'static [Figure],
    /// What memory holds when either begins.
    pub(crate) cache: &'static str,
    /// Bytes of a file that must be there for the original; raidlab makes its own.
    pub(crate) needs: Option<Size>,
    /// What the original is run with before, besides its arguments, to lay out its file.
    prefill: Option<&'static str>,
    /// The original's arguments; those that name a place in the directory begin with `@`.
    original: Vec<String>,
    /// Kind and parameters for `raidlab run`.
    ours: Vec<String>,
}

impl Case {
    /// The original's name.
    pub(crate) const fn program(&self) -> &'static str {
        match self.program {
            Program::Bonnie => "bonnie++",
            Program::Dd => "dd",
            Program::Fio(_) => "fio",
        }
    }

    /// The original's arguments in a directory.
    pub(crate) fn original(&self, directory: &Path) -> Vec<String> {
        let place = directory.display().to_string();
        self.original.iter().map(|argument| argument.replace('@', &place)).collect()
    }

    /// The same for laying out its file before caches are dropped, where it does that.
    pub(crate) fn prefill(&self, directory: &Path) -> Option<Vec<String>> {
        let mut all = self.original(directory);
        all.push(self.prefill?.into());
        Some(all)
    }

    /// The arguments of `raidlab` in a directory.
    pub(crate) fn ours(&self, directory: &Path) -> Vec<String> {
        let mut all = vec!["run".to_string()];
        all.extend(self.ours.iter().cloned());
        let place = directory.display().to_string();
        all.extend(["--target".into(), place, "--json".into(), "-".into()]);
        all
    }

    /// The figures in what the original printed: on its output, and on the other one.
    pub(crate) fn parse(&self, output: &str, errors: &str) -> Result<Vec<Option<f64>>, String> {
        match self.program {
            Program::Bonnie => parse::bonnie(output),
            Program::Dd => parse::dd(errors),
            Program::Fio(direction) => parse::fio(output, direction),
        }
    }

    /// The metrics of `raidlab run`, in the order of the figures.
    pub(crate) fn metrics(&self) -> Vec<&'static str> {
        self.figures.iter().map(|figure| figure.metric).collect()
    }
}

/// All cases; `size` instead of the sizes of the files that bonnie++ and dd move.
pub(crate) fn all(size: Option<Size>, is_root: bool) -> Vec<Case> {
    vec![
        bonnie(size.unwrap_or(BONNIE_SIZE), is_root),
        dd(size.unwrap_or(DD_SIZE), false),
        dd(size.unwrap_or(DD_SIZE), true),
        fio(&RANDREAD_1, false, 1),
        fio(&RANDWRITE_1, true, 1),
        fio(&RANDREAD_32, false, 32),
        fio(&RANDWRITE_32, true, 32),
    ]
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_string).collect()
}

fn bonnie(size: Size, is_root: bool) -> Case {
    let mib = size.0 / MIB;
    let user = if is_root { " -u root" } else { "" };
    Case {
        program: Program::Bonnie,
        figures: &BONNIE,
        cache: "dropped before the run; between the phases as bonnie++ leaves it, which is in memory as far \
                as the file fits",
        needs: None,
        prefill: None,
        original: words(&format!("-d @ -s {mib}:8k:64:5 -n 0 -f -r 0 -z 1 -m here -q{user}")),
        ours: words(&format!(
            "bonnie-2.00 size={mib}MiB chunk=8KiB seeks=64 seekers=5 n=0 fast=true ram=0 seed=1"
        )),
    }
}

fn dd(size: Size, reads: bool) -> Case {
    let count = size.0 / MIB;
    let ways = match reads {
        true => format!("if=@/{FILE} of=/dev/null bs=1M count={count}"),
        false => format!("if=/dev/zero of=@/{FILE} bs=1M count={count} conv=fdatasync"),
    };
    let ours = match reads {
        true => format!("dd if=file of=null bs=1MiB count={count}"),
        false => format!("dd if=zero of=file bs=1MiB count={count} conv=fdatasync"),
    };
    Case {
        program: Program::Dd,
        figures: if reads { &DD_READ } else { &DD_WRITE },
        cache: "dropped before the run",
        needs: reads.then_some(size),
        prefill: None,
        original: words(&ways),
        ours: words(&ours),
    }
}

fn fio(figures: &'static [Figure], writes: bool, depth: u32) -> Case {
    let (rw, direction) = if writes { ("randwrite", "write") } else { ("randread", "read") };
    let engine = if depth == 1 { "psync" } else { "io_uring" };
    let mut options = words(&format!(
        "name=originals rw={rw} bs=4k size=512m ioengine={engine} iodepth={depth} direct=1 runtime=2s \
         time_based=1 fallocate=none"
    ));
    if writes {
        // Else one writes into room that is reserved, the other into holes.
        options.push("overwrite=1".into());
    }
    let mut original = words("--output-format=json --directory=@");
    original.extend(options.iter().map(|option| format!("--{option}")));
    let mut ours = words("fio");
    ours.extend(options);
    Case {
        program: Program::Fio(direction),
        figures,
        cache: "direct I/O; dropped when the file has been laid out, before the run",
        needs: None,
        prefill: Some("--create_only=1"),
        original,
        ours,
    }
}
