//! Small files: all made, all looked up, all deleted, each a phase of its own.
//!
//! No program's habits are followed. The copies wait for each other between the phases, so that each
//! phase is measured alone. Nothing is dropped from memory in between: the phase `stat` finds what
//! making the files has left there.

use std::sync::Arc;

use raidlab_core::Size;

use crate::error::WorkloadError;
use crate::kinds::Workload;
use crate::metric::{Metric, per_second};
use crate::op::{Content, FileDescriptor, FilePath, Op, OpenFlags};
use crate::parameters::Parameters;
use crate::plan::{Plan, Setting};
use crate::record::RunRecord;
use crate::steps::{PIECE, blocks, copy_path, phase, planned, writes, wrong};
use raidlab_random::{Random, mix};

pub(crate) const SUMMARY: &str = "files made, looked up and deleted: files=10000 dirs=10 \
    file_size=4KiB (0: empty) fsync=false order=made|random \
    metric=create_per_s|stat_per_s|delete_per_s|seconds";

const CREATE: Metric = Metric::rate("create_per_s", "files/s");
const STAT: Metric = Metric::rate("stat_per_s", "files/s");
const DELETE: Metric = Metric::rate("delete_per_s", "files/s");
const METRICS: [Metric; 4] = [CREATE, STAT, DELETE, Metric::SECONDS];
const PHASES: [&str; 3] = ["create", "stat", "delete"];

#[derive(Clone, Debug)]
struct SmallFiles {
    files: u64,
    dirs: u64,
    file_size: u64,
    fsync: bool,
    is_random: bool,
    headline: Metric,
}

pub(crate) fn make(parameters: &mut Parameters) -> Result<Arc<dyn Workload>, WorkloadError> {
    let files = parameters.number("files", 10_000, 1..=10_000_000)?;
    let dirs = parameters.number("dirs", 10.min(files), 1..=1_000_000)?;
    let file_size = match parameters.text("file_size") {
        None => 4096,
        Some(text) => match text.parse::<Size>() {
            Ok(size) if size.0 <= 1 << 30 => size.0,
            Ok(_) => return Err(wrong("file_size", "is too large; at most 1GiB")),
            Err(reason) => return Err(wrong("file_size", reason)),
        },
    };
    if dirs > files {
        return Err(wrong("dirs", format!("{dirs} are more than the {files} files")));
    }
    let fsync = parameters.flag("fsync", false)?;
    let is_random = parameters.choice("order", false, &[("made", false), ("random", true)])?;
    let metrics = METRICS.map(|metric| (metric.name, metric));
    let headline = parameters.choice("metric", CREATE, &metrics)?;
    Ok(Arc::new(SmallFiles { files, dirs, file_size, fsync, is_random, headline }))
}

impl SmallFiles {
    fn directory(copy: u32, directory: u64) -> FilePath {
        copy_path("small", copy, &format!("/d{directory}"))
    }

    /// File `index`: the first ones in the first directory, and so on.
    fn file(&self, copy: u32, index: u64) -> FilePath {
        let directory = (u128::from(index) * u128::from(self.dirs) / u128::from(self.files)) as u64;
        copy_path("small", copy, &format!("/d{directory}/f{index}"))
    }

    /// The order of looking up (`round` 1) or deleting (2).
    fn order(&self, seed: u64, copy: u32, round: u64) -> Vec<u64> {
        let mut order: Vec<u64> = (0..self.files).collect();
        if self.is_random {
            Random::new(mix(&[seed, copy.into(), round])).shuffle(&mut order);
        }
        order
    }

    fn create(&self, copy: u32, seed: u64) -> impl Iterator<Item = Op> + use<> {
        let this = self.clone();
        let fd = FileDescriptor(0);
        let top = Op::Mkdir { path: copy_path("small", copy, "") };
        let mkdir = move |directory| Op::Mkdir { path: Self::directory(copy, directory) };
        let made = (0..self.files).flat_map(move |index| {
            let flags = OpenFlags { exclusive: true, truncate: false, ..OpenFlags::WRITE };
            let path = this.file(copy, index);
            let content = Content::Seeded { seed: mix(&[seed, copy.into(), index]) };
            std::iter::once(Op::Open { fd, path, flags })
                .chain(writes(fd, this.file_size, PIECE, content))
                .chain(this.fsync.then_some(Op::Fsync { fd }))
                .chain([Op::Close { fd }])
        });
        std::iter::once(top).chain((0..self.dirs).map(mkdir)).chain(made)
    }

    fn ops(&self, copy: u32, seed: u64) -> impl Iterator<Item = Op> + use<> {
        let stats = {
            let this = self.clone();
            let order = self.order(seed, copy, 1).into_iter();
            order.map(move |index| Op::Stat { path: this.file(copy, index) })
        };
        let deletes = {
            let this = self.clone();
            let order = self.order(seed, copy, 2).into_iter();
            let rmdir = move |directory| Op::Rmdir { path: Self::directory(copy, directory) };
            let top = Op::Rmdir { path: copy_path("small", copy, "") };
            order
                .map(move |index| Op::Unlink { path: this.file(copy, index) })
                .chain((0..self.dirs).map(rmdir))
                .chain([top])
        };
        phase(0, self.create(copy, seed))
            .chain([Op::Barrier(0)])
            .chain(phase(1, stats))
            .chain([Op::Barrier(0)])
            .chain(phase(2, deletes))
    }
}

impl Workload for SmallFiles {
    fn kind(&self) -> &'static str {
        "small-files"
    }

    fn default_name(&self) -> String {
        format!("small-files {}", Size(self.file_size))
    }

    fn description(&self) -> String {
        let (files, dirs) = (self.files, self.dirs);
        let fsync = if self.fsync { ", each with fsync," } else { "" };
        let order = if self.is_random { "a random order" } else { "the order of making" };
        let directories = if dirs == 1 { "directory" } else { "directories" };
        format!(
            "makes {files} files of {}{fsync} in {dirs} {directories}, looks them up and deletes them, \
             in {order}",
            Size(self.file_size)
        )
    }

    fn metrics(&self) -> Vec<Metric> {
        let others = METRICS.into_iter().filter(|metric| *metric != self.headline);
        std::iter::once(self.headline).chain(others).collect()
    }

    fn values(&self, record: &RunRecord) -> Vec<Option<f64>> {
        let copies = record.ends().len() as u64;
        let rate = |index: u16| {
            let took = record.phase(index)?.took();
            per_second((self.files * copies) as f64, took)
        };
        let value = |metric: Metric| match metric {
            CREATE => rate(0),
            STAT => rate(1),
            DELETE => rate(2),
            _ => Some(record.last_done().as_secs()),
        };
        self.metrics().into_iter().map(value).collect()
    }

    fn plan(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let each = self.files.saturating_mul(blocks(self.file_size) + 256) + self.dirs * 4096;
        let ops = |copy| planned(copy, self.ops(copy, setting.seed));
        Ok(Plan {
            run: (0..setting.copies).map(ops).collect(),
            phases: PHASES.to_vec(),
            barriers: vec![setting.copies],
            needs_filesystem: Some("small-files makes and deletes files by name"),
            room: each.saturating_mul(setting.copies.into()),
            ..Plan::default()
        })
    }

    fn resized(&self, bytes: u64) -> Result<Arc<dyn Workload>, WorkloadError> {
        let Some(files) = bytes.checked_div(self.file_size) else {
            return Err(wrong("file_size", "is 0, so that no number of files has this size"));
        };
        if !(1..=10_000_000).contains(&files) {
            let each = Size(self.file_size);
            let reason = format!("{} is not 1 to 10000000 files of {each}", Size(bytes));
            return Err(wrong("size", reason));
        }
        Ok(Arc::new(Self { files, dirs: self.dirs.min(files), ..self.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;
    use crate::null::NullTarget;
    use crate::op::Root;

    fn parameters(text: &str) -> Parameters {
        let pairs = text.split_whitespace().map(|pair| pair.split_once('=').expect("key=value"));
        Parameters::new(pairs).expect("no key twice")
    }

    fn small(text: &str) -> Arc<dyn Workload> {
        kinds::make("small-files", parameters(text)).expect(text)
    }

    fn run(text: &str, copies: u32) -> (NullTarget, RunRecord) {
        let mut target = NullTarget::default();
        target.keep_steps();
        let plan = small(text).plan(&Setting::new(copies, 1)).expect("a plan");
        assert!(plan.needs_filesystem.is_some());
        let record = target.run(plan).expect("runs");
        (target, record)
    }

    #[test]
    fn nonsense_is_named() {
        for (text, words) in [
            ("files=0", "files: `0` is not a whole number from 1"),
            ("files=3 dirs=4", "dirs: 4 are more than the 3 files"),
            ("file_size=x", "file_size: `x` is not a size"),
            ("file_size=2GiB", "file_size: is too large"),
            ("fsync=yes", "fsync: `yes` is neither"),
            ("order=sorted", "order: `sorted` is not one of made, random"),
            ("metric=iops", "metric: `iops` is not one of create_per_s,"),
            ("file-size=1", "file-size: is not a parameter"),
        ] {
            let error = kinds::make("small-files", parameters(text)).expect_err(text).to_string();
            assert!(error.starts_with(words), "{text}: {error}");
        }
    }

    #[test]
    fn every_file_is_made_looked_up_and_deleted() {
        for text in ["files=7 dirs=3 file_size=5000B", "files=7 dirs=3 fsync=true order=random"] {
            let (target, record) = run(text, 2);
            let ops =
                |is: fn(&Op) -> bool| target.steps().iter().filter(|step| is(&step.op)).count();
            assert_eq!(ops(|op| matches!(op, Op::Open { .. })), 14);
            assert_eq!(ops(|op| matches!(op, Op::Stat { .. })), 14);
            assert_eq!(ops(|op| matches!(op, Op::Unlink { .. })), 14);
            assert_eq!(ops(|op| matches!(op, Op::Mkdir { .. })), 8);
            let fsyncs = if text.contains("fsync") { 14 } else { 0 };
            assert_eq!(ops(|op| matches!(op, Op::Fsync { .. })), fsyncs);
            let root = FilePath { root: Root::Target, text: "".into() };
            assert_eq!(target.names().list(&root), Ok(vec![]), "nothing remains");
            // Phases do not overlap: looking up begins when the last file is made.
            let of = |index| record.phase(index).expect("a phase");
            assert!(of(0).ended <= of(1).began && of(1).ended <= of(2).began);
        }
    }

    /// The first files lie in the first directory, and no directory has two more than another.
    #[test]
    fn files_are_spread_over_the_directories_in_order() {
        let (target, _) = run("files=7 dirs=3", 1);
        let path = |step: &crate::null::NullStep| match &step.op {
            Op::Open { path, .. } => Some(path.to_string()),
            _ => None,
        };
        let made: Vec<String> = target.steps().iter().filter_map(path).collect();
        let expected = [(0, 0), (0, 1), (0, 2), (1, 3), (1, 4), (2, 5), (2, 6)];
        assert_eq!(made, expected.map(|(directory, file)| format!("small-0/d{directory}/f{file}")));
        let looked_up =
            target.steps().iter().filter(|step| matches!(step.op, Op::Stat { .. })).count();
        assert_eq!(looked_up, 7);
    }

    #[test]
    fn the_order_is_random_where_asked_for() {
        let looked_up = |text| -> Vec<String> {
            let (target, _) = run(text, 1);
            let path = |step: &crate::null::NullStep| match &step.op {
                Op::Stat { path } => Some(path.to_string()),
                _ => None,
            };
            target.steps().iter().filter_map(path).collect()
        };
        let (made, random) =
            (looked_up("files=50 dirs=1"), looked_up("files=50 dirs=1 order=random"));
        assert_eq!(made[49], "small-0/d0/f49");
        assert_ne!(made, random);
        let sorted = |mut names: Vec<String>| {
            names.sort();
            names
        };
        assert_eq!(sorted(made), sorted(random));
    }

    #[test]
    fn values_words_and_sizes() {
        let small = small("files=20 dirs=2 metric=stat_per_s");
        let words = "makes 20 files of 4KiB in 2 directories, looks them up and deletes them, \
            in the order of making";
        assert_eq!(small.description(), words);
        let names: Vec<&str> = small.metrics().iter().map(|metric| metric.name).collect();
        assert_eq!(names, ["stat_per_s", "create_per_s", "delete_per_s", "seconds"]);
        let plan = small.plan(&Setting::new(2, 1)).expect("a plan");
        let mut record = NullTarget::default().run(plan).expect("runs");
        for process in &mut record.processes {
            for (phase, (second, took)) in process.phases.iter_mut().zip([(0, 1), (1, 2), (3, 4)]) {
                phase.began = Some(raidlab_core::Time(second * 1_000_000_000));
                phase.ended = Some(raidlab_core::Time((second + took) * 1_000_000_000));
            }
            process.ended = raidlab_core::Time(8_000_000_000);
        }
        // 40 files in 2 s, in 1 s, in 4 s: the named one first.
        assert_eq!(small.values(&record), [Some(20.0), Some(40.0), Some(10.0), Some(8.0)]);
        let resized = small.resized(40 << 10).expect("a size");
        assert!(resized.description().starts_with("makes 10 files"), "{}", resized.description());
        assert!(small.resized(100).is_err());
        let empty = kinds::make("small-files", parameters("file_size=0")).expect("empty files");
        assert!(
            empty.resized(100).expect_err("no size").to_string().starts_with("file_size: is 0")
        );
    }
}
