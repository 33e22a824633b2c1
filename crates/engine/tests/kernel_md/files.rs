//! The member files on this side, and what the guest leaves.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use raidlab_core::{MemberIndex, Sectors};
use raidlab_engine::{Engine, EngineConfig, FileMember, FileOptions, Member};

use super::arrays::{Arrays, FILES, Set, TestArray};
use super::content::pattern_file;
use crate::guest::TempDir;

/// The sets of member files and a directory shared with the guest; removed when dropped.
#[derive(Debug)]
pub(crate) struct Files {
    share: PathBuf,
    sets: [Vec<PathBuf>; 3],
    _directory: TempDir,
}

impl Files {
    /// New files, the first set all zero; the share holds the pattern.
    pub(crate) fn new(arrays: &Arrays) -> Self {
        let directory = TempDir::new("kernel-md");
        let share = directory.path().join("share");
        fs::create_dir(&share).expect("the share is made");
        fs::write(share.join("pattern"), pattern_file(arrays)).expect("the pattern is written");
        let length = arrays.sections().iter().sum();
        let sound = (0..FILES).map(|file| directory.file(&format!("sound{file}"), length));
        let later = |set: &str| {
            (0..FILES).map(|file| directory.path().join(format!("{set}{file}"))).collect()
        };
        let sets = [sound.collect(), later("degraded"), later("filled")];
        Self { share, sets, _directory: directory }
    }

    pub(crate) fn share(&self) -> &Path {
        &self.share
    }

    pub(crate) fn paths(&self, set: Set) -> Vec<PathBuf> {
        self.sets[set as usize].clone()
    }

    /// Makes a set from another one.
    pub(crate) fn copy(&self, from: Set, to: Set) {
        for (from, to) in self.sets[from as usize].iter().zip(&self.sets[to as usize]) {
            fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", to.display()));
        }
    }

    /// What md read, as [`script::seen`](super::script::seen) names it; it is there once only.
    pub(crate) fn take_seen(&self, name: &str) -> Vec<u8> {
        let path = self.share.join(name);
        let bytes = fs::read(&path).and_then(|bytes| fs::remove_file(&path).map(|()| bytes));
        bytes.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub(crate) fn path(&self, array: &TestArray, set: Set, member: usize) -> &Path {
        &self.sets[set as usize][array.members[member].0]
    }

    /// raidlab's engine over the members; each is told where its data start and how long they may be.
    pub(crate) fn engine(&self, array: &TestArray, set: Set) -> Engine {
        let members = (0..array.members.len())
            .map(|member| (self.path(array, set, member), array.data_start(member)));
        engine(array, members)
    }

    /// One member of an array, for the engine.
    pub(crate) fn member(&self, array: &TestArray, set: Set, member: u16) -> Member {
        let member = usize::from(member);
        let path = self.path(array, set, member);
        open(array, path, array.data_start(member), array.sizes()[member])
    }

    /// What lies in each member's section before and behind its data; the whole of it for members that
    /// are missing.
    pub(crate) fn outside_data(
        &self,
        array: &TestArray,
        set: Set,
        missing: &[u16],
    ) -> Vec<Vec<u8>> {
        let geometry = array.geometry();
        let read = |(member, (start, size)): (usize, &(u64, u64))| {
            let mut bytes = vec![0; *size as usize];
            let file = fs::File::open(self.path(array, set, member));
            let read = file.and_then(|file| file.read_exact_at(&mut bytes, *start));
            read.unwrap_or_else(|error| panic!("{array}, member {member}: {error}"));
            let index = member as u16;
            if !missing.contains(&index) {
                let start = (array.data_start(member) - start) as usize;
                bytes.drain(start..start + geometry.used(MemberIndex(index)).bytes() as usize);
            }
            bytes
        };
        array.sections.iter().enumerate().map(read).collect()
    }
}

/// raidlab's engine over the members of an array: path of each, and the byte its data start at. It is
/// told how long they may be.
pub(crate) fn engine<'a>(
    array: &TestArray,
    members: impl Iterator<Item = (&'a Path, u64)>,
) -> Engine {
    let members = members
        .zip(array.sizes())
        .map(|((path, start), sectors)| open(array, path, start, sectors))
        .collect();
    let config = EngineConfig::new(array.layout.clone());
    Engine::new(&config, members).unwrap_or_else(|error| panic!("{array}: {error}"))
}

fn open(array: &TestArray, path: &Path, start: u64, sectors: Sectors) -> Member {
    let data_offset = Sectors::from_bytes(start).expect("sections are whole sectors");
    let sectors = Some(sectors);
    let options = FileOptions { data_offset, sectors, ..FileOptions::default() };
    let opened = FileMember::open(path, options);
    Member::File(Box::new(opened.unwrap_or_else(|error| panic!("{array}: {error}"))))
}

/// The same engine with these members out of service, keeping a record.
pub(crate) fn without(mut engine: Engine, array: &TestArray, missing: &[u16]) -> Engine {
    for member in missing {
        engine.fail(MemberIndex(*member)).unwrap_or_else(|error| panic!("{array}: {error}"));
    }
    engine.record(true);
    engine
}
