//! `cp -rf` of a tree of source files to another directory of the target.
//!
//! Today's cp visits the entries of a directory by inode number, which it takes from the listing; here
//! numbers are taken as rising in the order in which the entries were made. That of 2005 takes them as
//! listed. Each entry is looked up before it is copied, and each directory once more when it was made.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use raidlab_core::{Size, Time};

use super::{FileCopy, Profile, TODAY_BLOCK, Way, Year};
use crate::error::WorkloadError;
use crate::kinds::Workload;
use crate::metric::Metric;
use crate::op::{Entry, FilePath, Mark, Op, OpResult};
use crate::parameters::Parameters;
use crate::plan::{Expected, Plan, Planned, Process, Setting};
use crate::record::RunRecord;
use crate::steps::{
    Measured, Start, blocks, copy_path, make_file, one_phase, planned, read_file, wrong,
};
use crate::tree::{Shape, TOP, Tree};

pub(crate) const SUMMARY: &str = "a tree of source files copied to another directory: files=19000 \
    size=215MB (of all files) cached=false just_written=false profile=today|2005 block=4KiB (2005) \
    metric=seconds|mib_per_s|mb_per_s";

#[derive(Clone, Debug)]
struct CpRf {
    shape: Shape,
    start: Start,
    profile: Profile,
    measured: Measured,
}

pub(crate) fn make(parameters: &mut Parameters) -> Result<Arc<dyn Workload>, WorkloadError> {
    let shape = Shape::from(parameters)?;
    let start = Start::from(parameters, false)?;
    let has_block = parameters.has("block");
    let profile = Profile::from(parameters)?;
    if has_block && profile.year == Year::Today {
        return Err(wrong("block", "means nothing with profile=today, which copies in the kernel"));
    }
    let measured = Measured::from(parameters, Metric::SECONDS)?;
    Ok(Arc::new(CpRf { shape, start, profile, measured }))
}

/// The place of each path in the order of making, where that decides.
type Ranks = Option<Arc<BTreeMap<Arc<str>, usize>>>;

#[derive(Debug)]
enum State {
    Begin,
    /// Take the next entry.
    Next,
    /// An entry was looked up.
    Found {
        path: FilePath,
        is_directory: bool,
    },
    /// The directory that stands for one was made.
    Made {
        path: FilePath,
        made: FilePath,
    },
    MadeFound {
        path: FilePath,
    },
    /// A directory was listed.
    Listed {
        path: FilePath,
    },
    File(FileCopy),
    Over,
}

/// Copies what is below `from` to below `to`.
#[derive(Debug)]
struct TreeCopy {
    from: Arc<str>,
    to: Arc<str>,
    ranks: Ranks,
    way: Way,
    year: Year,
    state: State,
    /// Entries still to come in the directories that are open, the innermost last, the next entry of
    /// each last.
    left: Vec<Vec<(FilePath, bool)>>,
    /// Where paths are put together.
    text: String,
}

impl TreeCopy {
    /// Where a path below `from` is copied to.
    fn copy_of(&mut self, path: &FilePath) -> FilePath {
        self.text.clear();
        self.text.push_str(&self.to);
        self.text.push_str(&path.text[self.from.len()..]);
        FilePath::target(&*self.text)
    }

    /// The next entry, or the end.
    fn advance(&mut self) -> (Op, State) {
        while let Some(directory) = self.left.last_mut() {
            if let Some((path, is_directory)) = directory.pop() {
                return (Op::Stat { path: path.clone() }, State::Found { path, is_directory });
            }
            self.left.pop();
        }
        (Op::Mark(Mark::End(0)), State::Over)
    }

    fn enter(&mut self, directory: &FilePath, entries: &[Entry]) {
        let text = &mut self.text;
        let full = |entry: &Entry| {
            text.clear();
            text.push_str(&directory.text);
            text.push('/');
            text.push_str(&entry.name);
            (FilePath::target(&**text), entry.is_directory)
        };
        let mut left: Vec<(FilePath, bool)> = entries.iter().rev().map(full).collect();
        if let Some(ranks) = &self.ranks {
            let below = self.from.len() + 1;
            left.sort_by_key(|(path, _)| Reverse(ranks.get(&path.text[below..]).copied()));
        }
        self.left.push(left);
    }

    fn file(&mut self, mut file: FileCopy, last: &OpResult) -> (Op, State) {
        match file.next(last) {
            Some(op) => (op, State::File(file)),
            None => self.advance(),
        }
    }
}

impl Process for TreeCopy {
    fn next(&mut self, _now: Time, last: OpResult) -> Op {
        let (op, state) = match std::mem::replace(&mut self.state, State::Over) {
            State::Begin => (Op::Mark(Mark::Begin(0)), State::Next),
            State::Next => self.advance(),
            State::Found { path, is_directory: true } => {
                let made = self.copy_of(&path);
                (Op::Mkdir { path: made.clone() }, State::Made { path, made })
            }
            State::Found { path, .. } => {
                let to = self.copy_of(&path);
                self.file(FileCopy::new(path, to, self.way, self.year), &last)
            }
            State::Made { path, made } => (Op::Stat { path: made }, State::MadeFound { path }),
            State::MadeFound { path } => (Op::List { path: path.clone() }, State::Listed { path }),
            State::Listed { path } => {
                if let OpResult::Entries(entries) = last {
                    self.enter(&path, &entries);
                }
                self.advance()
            }
            State::File(file) => self.file(file, &last),
            State::Over => (Op::Done, State::Over),
        };
        self.state = state;
        op
    }
}

impl CpRf {
    fn process(&self, copy: u32, ranks: &Ranks) -> TreeCopy {
        let way = match self.profile.year {
            Year::Today => Way::Range(TODAY_BLOCK),
            Year::Y2005 => Way::Blocks(self.profile.block),
        };
        let from: Arc<str> = format!("cp-rf-{copy}/{TOP}").into();
        TreeCopy {
            left: vec![vec![(FilePath::target(from.clone()), true)]],
            from,
            to: format!("cp-rf-{copy}/copy").into(),
            text: String::new(),
            ranks: ranks.clone(),
            way,
            year: self.profile.year,
            state: State::Begin,
        }
    }

    fn prepare(copy: u32, tree: &Arc<Tree>) -> Planned {
        let tree = tree.clone();
        let above = copy_path("cp-rf", copy, "/").text;
        let made = (0..tree.entries.len()).flat_map(move |index| {
            let entry = &tree.entries[index];
            let path = FilePath::target([&*above, &entry.path].concat());
            let (directory, file) = match entry.bytes {
                None => (Some(Op::Mkdir { path }), None),
                Some(bytes) => (None, Some(make_file(path, bytes.len, bytes.seed))),
            };
            directory.into_iter().chain(file.into_iter().flatten())
        });
        planned(copy, std::iter::once(Op::Mkdir { path: copy_path("cp-rf", copy, "") }).chain(made))
    }

    fn warm(copy: u32, tree: &Arc<Tree>) -> Planned {
        let tree = tree.clone();
        let read = (0..tree.entries.len()).flat_map(move |index| {
            let entry = &tree.entries[index];
            let path = copy_path("cp-rf", copy, &format!("/{}", entry.path));
            entry.bytes.map(|bytes| read_file(path, bytes.len)).into_iter().flatten()
        });
        planned(copy, read)
    }

    fn expected(copy: u32, tree: &Tree) -> impl Iterator<Item = Expected> {
        tree.files().map(move |(path, bytes)| {
            let below = path.get(TOP.len()..).unwrap_or_default();
            let path = copy_path("cp-rf", copy, &format!("/copy{below}"));
            Expected { path, bytes: Arc::new(bytes) }
        })
    }
}

/// Each path below the tree's own directory, and its place in the order of making.
fn ranks(tree: &Tree) -> BTreeMap<Arc<str>, usize> {
    let below = |path: &str| -> Arc<str> { path.get(TOP.len() + 1..).unwrap_or_default().into() };
    let entries = tree.entries.iter().enumerate();
    entries.map(|(index, entry)| (below(&entry.path), index)).collect()
}

impl Workload for CpRf {
    fn kind(&self) -> &'static str {
        "cp-rf"
    }

    fn default_name(&self) -> String {
        let year = if self.profile.year == Year::Today { "" } else { " 2005" };
        format!("cp-rf{year}")
    }

    fn description(&self) -> String {
        let Shape { files, bytes } = self.shape;
        let memory = self.start.words();
        let how = match self.profile.year {
            Year::Today => "cp of coreutils 9.1, copy_file_range".to_string(),
            Year::Y2005 => self.profile.words(),
        };
        format!(
            "copies a tree of {files} files with {}{memory} to another directory ({how})",
            Size(bytes)
        )
    }

    fn metrics(&self) -> Vec<Metric> {
        self.measured.metrics()
    }

    fn values(&self, record: &RunRecord) -> Vec<Option<f64>> {
        self.measured.values(record.totals().writes.bytes, record)
    }

    fn plan(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let tree = Arc::new(Tree::new(self.shape, setting.seed));
        let ranks = (self.profile.year == Year::Today).then(|| Arc::new(ranks(&tree)));
        let in_blocks =
            |entry: &crate::tree::Entry| entry.bytes.map_or(4096, |one| blocks(one.len));
        let room: u64 = tree.entries.iter().map(in_blocks).sum();
        let mut plan = Plan {
            phases: one_phase("copy"),
            needs_filesystem: Some("cp -rf makes directories and files by name"),
            room: room.saturating_mul(2 * u64::from(setting.copies)),
            memory: self.start.memory(),
            ..Plan::default()
        };
        for copy in 0..setting.copies {
            plan.prepare.push(Self::prepare(copy, &tree));
            if self.start == Start::Cached {
                plan.warm.push(Self::warm(copy, &tree));
            }
            let process = Box::new(self.process(copy, &ranks));
            plan.run.push(Planned { copy, process });
            if setting.checked {
                plan.expected.extend(Self::expected(copy, &tree));
            }
        }
        Ok(plan)
    }

    fn resized(&self, bytes: u64) -> Result<Arc<dyn Workload>, WorkloadError> {
        Ok(Arc::new(Self { shape: self.shape.resized(bytes)?, ..self.clone() }))
    }
}

/// The order in which files of a directory are visited that were made in one order and listed in another.
#[cfg(test)]
pub(super) fn order_of(year: Year, made: &[&str], listed: OpResult) -> Vec<String> {
    let ranks = made.iter().enumerate().map(|(rank, name)| (Arc::from(*name), rank)).collect();
    let mut copy = TreeCopy {
        from: "from".into(),
        to: "to".into(),
        ranks: (year == Year::Today).then(|| Arc::new(ranks)),
        way: Way::Blocks(4096),
        year,
        state: State::Listed { path: FilePath::target("from") },
        left: vec![],
        text: String::new(),
    };
    let mut last = listed;
    let mut visited = Vec::new();
    loop {
        match copy.next(Time::ZERO, last) {
            Op::Stat { path } => visited.push(path.text.trim_start_matches("from/").to_string()),
            Op::Done => return visited,
            _ => {}
        }
        last = OpResult::Moved(0);
    }
}
