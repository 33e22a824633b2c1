//! `tar -xf` of an archive that lies on the target: that of a tree of source files by seed, or the
//! user's own.
//!
//! The operations are those of GNU tar 1.34 as root, seen by `strace` (`tests/copy_strace.rs`): the
//! archive is read in records of 10,240 bytes, each when its first block is needed; a file is opened
//! with `O_CREAT | O_EXCL`, written up to the end of the record at a time, given its times, owner and
//! mode, and closed; a directory is made, and given its attributes when the first member outside it
//! comes, or at the end. Modes at making are not modelled (tar makes files with 0600 and directories with
//! 0700 and sets the mode at the end), nor is what only finds out (`fstat`, opening a directory with
//! `O_PATH` to set its mode), nor the times and the owner of the directory itself that an archive of `.`
//! sets at the end. A directory that comes after what is in it gets a mode that tar may find it has.

mod archive;
mod unpack;
mod write;

use std::sync::Arc;

use raidlab_core::Size;

pub use archive::{Archive, ArchiveError, ArchiveMember, ArchiveMemberKind, ReadArchive};
use unpack::Unpack;
use write::{Part, TarBytes};

use crate::error::{WorkloadError, WorkloadErrorKind};
use crate::kinds::Workload;
use crate::metric::Metric;
use crate::op::FilePath;
use crate::op::Op;
use crate::parameters::Parameters;
use crate::plan::{Bytes, Expected, Plan, Setting, SourceFile};
use crate::record::RunRecord;
use crate::steps::{
    Measured, Start, blocks, copy_file, copy_path, one_phase, phase, planned, read_file,
};
use crate::tree::{Shape, Tree};

pub(crate) const SUMMARY: &str = "an archive of source files unpacked where it lies: files=19000 \
    size=215MB (of all files) cached=true just_written=false metric=seconds|mib_per_s|mb_per_s; archive=PATH unpacks \
    your own";

/// The name of the archive below the source, and in each copy's directory.
const NAME: &str = "linux.tar";

#[derive(Clone, Debug)]
enum What {
    Tree(Shape),
    Own { archive: Arc<Archive>, bytes: Arc<dyn Bytes> },
}

/// `tar -xf`.
#[derive(Clone, Debug)]
pub struct TarXf {
    what: What,
    start: Start,
    measured: Measured,
}

pub(crate) fn make(parameters: &mut Parameters) -> Result<Arc<dyn Workload>, WorkloadError> {
    if parameters.has("archive") {
        let reason =
            "has to be read before: only where files can be read is it unpacked; leave it out";
        return Err(WorkloadError::new(WorkloadErrorKind::NotSupported, "archive", reason));
    }
    let shape = Shape::from(parameters)?;
    let (start, measured) = common(parameters)?;
    Ok(Arc::new(TarXf { what: What::Tree(shape), start, measured }))
}

fn common(parameters: &mut Parameters) -> Result<(Start, Measured), WorkloadError> {
    Ok((Start::from(parameters, true)?, Measured::from(parameters, Metric::SECONDS)?))
}

impl TarXf {
    /// Unpacks the user's own archive: what [`Archive::parse`] found in it, and its bytes. The
    /// parameters are those of the kind but `archive`, `files` and `size`.
    ///
    /// # Errors
    /// What is wrong with a parameter.
    pub fn of(
        archive: Archive,
        bytes: Arc<dyn Bytes>,
        mut parameters: Parameters,
    ) -> Result<Self, WorkloadError> {
        let (start, measured) = common(&mut parameters)?;
        parameters.finish()?;
        Ok(Self { what: What::Own { archive: Arc::new(archive), bytes }, start, measured })
    }

    fn archive(&self, seed: u64) -> (Arc<Archive>, Arc<dyn Bytes>) {
        match &self.what {
            What::Tree(shape) => {
                let bytes = TarBytes::new(&Tree::new(*shape, seed));
                (bytes.archive().clone(), Arc::new(bytes))
            }
            What::Own { archive, bytes } => (archive.clone(), bytes.clone()),
        }
    }
}

fn directory(copy: u32) -> String {
    format!("tar-xf-{copy}")
}

fn archive_path(copy: u32) -> FilePath {
    copy_path("tar-xf", copy, &format!("/{NAME}"))
}

/// What a copy unpacks.
fn expected(
    copy: u32,
    archive: &Archive,
    bytes: &Arc<dyn Bytes>,
) -> impl Iterator<Item = Expected> {
    archive.members().iter().filter_map(move |member| {
        let ArchiveMemberKind::File { len } = member.kind else { return None };
        let path = FilePath::target(format!("{}/{}", directory(copy), member.path));
        let bytes = Part { whole: bytes.clone(), at: member.data_at, len };
        Some(Expected { path, bytes: Arc::new(bytes) })
    })
}

impl Workload for TarXf {
    fn kind(&self) -> &'static str {
        "tar-xf"
    }

    fn default_name(&self) -> String {
        "tar-xf".into()
    }

    fn description(&self) -> String {
        let memory = self.start.words();
        let what = match &self.what {
            What::Tree(Shape { files, bytes }) => {
                format!("an archive of {files} source files with {}", Size(*bytes))
            }
            What::Own { archive, .. } => {
                format!(
                    "an archive of {} members in {}",
                    archive.members().len(),
                    Size(archive.bytes())
                )
            }
        };
        format!("unpacks {what}{memory} where it lies (GNU tar 1.34)")
    }

    fn metrics(&self) -> Vec<Metric> {
        self.measured.metrics()
    }

    fn values(&self, record: &RunRecord) -> Vec<Option<f64>> {
        self.measured.values(record.totals().writes.bytes, record)
    }

    fn plan(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let (archive, bytes) = self.archive(setting.seed);
        let files = archive.members().iter().map(|member| match member.kind {
            ArchiveMemberKind::File { len } => blocks(len),
            _ => 4096,
        });
        let room = blocks(archive.bytes()) + files.sum::<u64>();
        let mut plan = Plan {
            phases: one_phase("unpack"),
            needs_filesystem: Some("tar -xf makes directories and files by name"),
            sources: vec![SourceFile { name: NAME.into(), bytes: bytes.clone() }],
            room: room.saturating_mul(setting.copies.into()),
            memory: self.start.memory(),
            ..Plan::default()
        };
        for copy in 0..setting.copies {
            let (path, len) = (archive_path(copy), archive.bytes());
            let mkdir = Op::Mkdir { path: copy_path("tar-xf", copy, "") };
            let copied = copy_file(FilePath::source(NAME), path.clone(), len);
            plan.prepare.push(planned(copy, std::iter::once(mkdir).chain(copied)));
            if self.start == Start::Cached {
                plan.warm.push(planned(copy, read_file(path.clone(), len)));
            }
            let unpack = Unpack::new(archive.clone(), path, directory(copy));
            plan.run.push(planned(copy, phase(0, unpack)));
            if setting.checked {
                plan.expected.extend(expected(copy, &archive, &bytes));
            }
        }
        Ok(plan)
    }

    fn resized(&self, bytes: u64) -> Result<Arc<dyn Workload>, WorkloadError> {
        let What::Tree(shape) = &self.what else {
            let reason = "an archive of your own has the size it has; leave the size out";
            return Err(WorkloadError::new(WorkloadErrorKind::Size, "size", reason));
        };
        Ok(Arc::new(Self { what: What::Tree(shape.resized(bytes)?), ..self.clone() }))
    }
}

#[cfg(test)]
mod tests;
