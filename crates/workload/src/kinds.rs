//! The kinds of workloads: what each must be able to tell, and how it is made from parameters.

use std::fmt;
use std::sync::Arc;

use crate::bonnie;
use crate::error::{WorkloadError, WorkloadErrorKind};
use crate::metric::Metric;
use crate::parameters::Parameters;
use crate::plan::{FileNeed, Plan, Setting};
use crate::record::RunRecord;
use crate::simple;
use crate::{hdparm, readers, real_life, sweep, tiobench};

/// A workload with its parameters.
pub trait Workload: fmt::Debug + Send + Sync {
    /// The name of its kind, as study files and the command line have it.
    fn kind(&self) -> &'static str;

    /// Its name where nobody gives one.
    fn default_name(&self) -> String;

    /// In words, for reports: what each copy does, with sizes and units.
    fn description(&self) -> String;

    /// The same where it runs on a filesystem, and its files lie where that puts them.
    fn description_on_files(&self) -> String {
        self.description()
    }

    /// What is measured; the first is what layouts are compared by.
    fn metrics(&self) -> Vec<Metric>;

    /// The values of a run, in the order of [`metrics`](Self::metrics); `None` where it took too short
    /// a time to tell.
    fn values(&self, record: &RunRecord) -> Vec<Option<f64>>;

    /// All choices made: processes, files, phases.
    ///
    /// # Errors
    /// When it cannot be in this setting; names the parameter.
    fn plan(&self, setting: &Setting) -> Result<Plan, WorkloadError>;

    /// The same workload with so many bytes for each copy: what `--size` does.
    ///
    /// # Errors
    /// When it has no such size, or cannot be of this one.
    fn resized(&self, bytes: u64) -> Result<Arc<dyn Workload>, WorkloadError>;

    /// Requests of at most `longest` bytes that so many copies make; `None` where that is not known before.
    fn requests(&self, copies: u32, longest: u64) -> Option<u64> {
        let _ = (copies, longest);
        None
    }

    /// The same workload with its random places within so many bytes, be it of an array or of a file;
    /// `None` where a workload has no such span.
    fn spanning(&self, bytes: u64) -> Option<Arc<dyn Workload>> {
        let _ = bytes;
        None
    }

    /// Checks that `copies` fit on a target of `space` bytes without a filesystem, which reads and
    /// writes whole blocks of `logical_block` bytes.
    ///
    /// # Errors
    /// When it needs a filesystem, does not fit, or does not work in whole blocks.
    fn check_raw(&self, space: u64, copies: u32, logical_block: u64) -> Result<(), WorkloadError> {
        let setting = Setting { space: Some(space), ..Setting::new(copies, 0) };
        crate::raw::check(&self.plan(&setting)?, space, logical_block)
    }

    /// Bytes that a target without a filesystem must have at least for so many copies.
    ///
    /// # Errors
    /// When it cannot be planned.
    fn raw_room(&self, copies: u32) -> Result<u64, WorkloadError> {
        let plan = self.plan(&Setting::new(copies, 0))?;
        let room = |file: &FileNeed| file.bytes.next_multiple_of(file.unit.max(1)) + file.unit;
        Ok(plan.files.iter().map(room).fold(0, u64::saturating_add))
    }

    /// The forms in which a run can be printed as the original program prints it, such as `text` and
    /// `csv`; the first is the one people know.
    fn formats(&self) -> &'static [&'static str] {
        &[]
    }

    /// A run in one of [`formats`](Self::formats), ending with a newline; `host` is the name of the
    /// machine. `None` for other formats.
    fn format(&self, format: &str, record: &RunRecord, host: &str) -> Option<String> {
        let _ = (format, record, host);
        None
    }
}

/// Makes a workload from its parameters.
type Make = fn(&mut Parameters) -> Result<Arc<dyn Workload>, WorkloadError>;

/// A kind of workload.
#[derive(Clone, Copy, Debug)]
pub struct KindEntry {
    /// Its name.
    pub name: &'static str,
    /// In a line, with its parameters and their defaults.
    pub summary: &'static str,
    make: Make,
}

/// Every kind, in the order in which they are listed.
pub const KINDS: &[KindEntry] = &[
    KindEntry {
        name: "dd-write",
        summary: "each writes a file from start to end and flushes: size, block=6MiB, span=100%",
        make: |parameters| simple::make(simple::Kind::DdWrite, parameters),
    },
    KindEntry {
        name: "dd-read",
        summary: "each reads a file from start to end: size, block=6MiB, span=100%",
        make: |parameters| simple::make(simple::Kind::DdRead, parameters),
    },
    KindEntry {
        name: "random-read",
        summary: "each reads blocks at random places: size, block=4KiB, span=100%",
        make: |parameters| simple::make(simple::Kind::RandomRead, parameters),
    },
    KindEntry {
        name: "random-write",
        summary: "each writes blocks at random places and flushes: size, block=4KiB, span=100%",
        make: |parameters| simple::make(simple::Kind::RandomWrite, parameters),
    },
    KindEntry { name: bonnie::KIND_103, summary: bonnie::SUMMARY_103, make: bonnie::make_103 },
    KindEntry { name: bonnie::KIND_200, summary: bonnie::SUMMARY_200, make: bonnie::make_200 },
    KindEntry {
        name: "tiobench-0.3",
        summary: "tiobench of the 2000s: size (twice memory, 200 to 2000MiB), block=4KiB, operations=4000, \
                  threads=copies, sync=false, sequential_writers=false, skip",
        make: tiobench::make_0_3,
    },
    KindEntry {
        name: "tiobench-0.4",
        summary: "tiobench since 2003-12: size (twice memory), block=4KiB, operations=4000, \
                  threads=copies, sync=false, sequential_writers=false, skip, direct=false, count=real",
        make: tiobench::make_0_4,
    },
    KindEntry {
        name: "hdparm-t",
        summary: "hdparm -t: size (the device, or a file of 2GiB), offset=0B, time=3s, settle=3s, \
                  direct=false",
        make: hdparm::make_device,
    },
    KindEntry {
        name: "hdparm-T",
        summary: "hdparm -T: size (the device, or a file of 2GiB), time=2s, settle=3s, direct=false",
        make: hdparm::make_cache,
    },
    KindEntry {
        name: "cp-parallel",
        summary: "each copy copies a file of its own to /dev/null: files=5, size=3200MB, block=64KiB",
        make: readers::make,
    },
    KindEntry {
        name: "blocksize-sweep",
        summary: "a file is written in blocks of a size, or of each of some: size=1GiB, block=4KiB, or \
                  blocks such as 4KiB,64KiB",
        make: sweep::make,
    },
    KindEntry {
        name: "real-life",
        summary: "files are read, copied, deleted and rewritten at once: processes=4, files=15, \
                  operations=120, smallest=1MiB, largest=64MiB, blocks=4KiB,32KiB,256KiB,1MiB, seed=1, \
                  sync=true",
        make: real_life::make,
    },
    KindEntry { name: "dd", summary: crate::dd::SUMMARY, make: crate::dd::make },
    KindEntry { name: "cp-null", summary: crate::cp::NULL_SUMMARY, make: crate::cp::make_null },
    KindEntry { name: "cp-tar", summary: crate::cp::TAR_SUMMARY, make: crate::cp::make_tar },
    KindEntry { name: "tar-xf", summary: crate::tar::SUMMARY, make: crate::tar::make },
    KindEntry { name: "cp-rf", summary: crate::cp::RF_SUMMARY, make: crate::cp::make_rf },
    KindEntry {
        name: "small-files",
        summary: crate::small_files::SUMMARY,
        make: crate::small_files::make,
    },
    KindEntry {
        name: "filebench",
        summary: crate::filebench::SUMMARY,
        make: crate::filebench::make,
    },
    KindEntry { name: "fio", summary: crate::fio::SUMMARY, make: crate::fio::make },
];

/// A workload of a kind.
///
/// # Errors
/// [`WorkloadErrorKind::UnknownKind`]; what is wrong with a parameter; a parameter that the kind does
/// not have.
pub fn make(kind: &str, mut parameters: Parameters) -> Result<Arc<dyn Workload>, WorkloadError> {
    let entry = KINDS.iter().find(|entry| entry.name == kind).ok_or_else(|| {
        let known: Vec<&str> = KINDS.iter().map(|entry| entry.name).collect();
        let reason = format!("`{kind}` is not a kind of workload; known: {}", known.join(", "));
        let known = known.into_iter().map(str::to_string).collect();
        let error = WorkloadError::new(WorkloadErrorKind::UnknownKind, "kind", reason);
        WorkloadError { known, ..error }
    })?;
    let workload = (entry.make)(&mut parameters)?;
    parameters.finish()?;
    Ok(workload)
}
