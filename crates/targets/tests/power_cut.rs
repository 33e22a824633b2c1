//! Filesystems on arrays of Linux md over FUSE and loop whose drives lose what was not flushed when the power is cut:
//! whatever is left starts again, holds every file that was synced, and is clean. Needs root.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread;

use raidlab_core::contract::Pacing;
use raidlab_core::{Layout, Sector, Sectors};
use raidlab_engine::{Engine, MdOptions, Member};
use raidlab_metadata::md::{Creation, WantedBitmap};
use raidlab_random::SplitMix64;
use raidlab_targets::{ExportCache, FuseExport};

use crate::common::TestDirectory;
use crate::extent::Extent;
use crate::made::creation;
use crate::numbered;
use crate::power::{Drive, cut};
use crate::root::{can_mount, tool};

type Array = (&'static str, u64);
/// How it is made and checked, and by what its arrays are smaller.
type Filesystem = (&'static [&'static str], &'static [&'static str], u64);

/// Every level with redundancy, and the MiB of each member for xfs, which needs 300 in all; ext4 has a third.
const LAYOUTS: [Array; 8] = [
    ("raid1(2)", 320),
    ("raid1(3)", 320),
    ("raid4(4) chunk=64K", 120),
    ("raid5(4) chunk=64K", 120),
    ("raid6(5) chunk=64K", 120),
    ("raid10(4) chunk=64K", 180),
    ("raid10(4) far2 chunk=64K", 180),
    ("raid10(5) offset2 chunk=64K", 150),
];
const FILESYSTEMS: [Filesystem; 2] = [
    (&["mkfs.ext4", "-q", "-F"], &["e2fsck", "-f", "-n"], 3),
    (&["mkfs.xfs", "-q", "-f"], &["xfs_repair", "-n"], 1),
];
/// How often the power is cut under one load; in a whole run four times as often.
const CUTS: usize = 2;
/// Files that are synced between cuts, at most.
const BETWEEN: u64 = 24;
/// Files that there are at once; older ones give way.
const FILES: u64 = 200;

/// All by `RAIDLAB_FULL=1`; otherwise two, others with each commit.
#[test]
fn what_was_synced_survives_a_power_cut_below_a_filesystem() {
    const TEST: &str = "what_was_synced_survives_a_power_cut_below_a_filesystem";
    if !can_mount(TEST, &["mkfs.ext4", "e2fsck", "mkfs.xfs", "xfs_repair", "losetup"]) {
        return;
    }
    let extent = Extent::from_environment().of_slow_tests();
    let (cuts, seed) = match extent {
        Extent::All => (4 * CUTS, 0),
        Extent::Sample(number) => (CUTS, number.into()),
    };
    let cases = FILESYSTEMS.into_iter().flat_map(|one| LAYOUTS.map(|layout| (layout, one)));
    for (number, case) in extent.choose(cases.enumerate().collect(), 2) {
        cut_below(case, cuts, SplitMix64::new(seed ^ (number as u64) << 32));
    }
}

fn cut_below(
    ((layout, mebibytes), (make, check, share)): (Array, Filesystem),
    cuts: usize,
    mut random: SplitMix64,
) {
    let drives = created(&layout.parse().unwrap(), (mebibytes << 11) / share);
    let served = Served::new(&drives);
    tool(make[0], &[&make[1..], &[served.node.as_str()]].concat()).expect("a filesystem");
    served.mount();
    let files = Files { at: served.mounted.clone(), ..Files::default() };
    let left: Vec<_> = thread::scope(|scope| {
        scope.spawn(|| files.write());
        let cuts = (0..cuts).map(|_| {
            let before = files.wait_for(1 + random.next_u64() % BETWEEN);
            let left = cut(&drives, |end| random.next_u64() % end);
            // What was removed meanwhile may be gone.
            (before.intersection(&files.synced()).copied().collect::<Vec<_>>(), left)
        });
        let left = cuts.collect();
        files.is_done.store(true, Ordering::Relaxed);
        left
    });
    served.unmount();
    served.end();
    for (number, (promised, drives)) in left.iter().enumerate() {
        let told = format!("{layout}, {}, cut {number}", make[0]);
        let served = Served::new(drives);
        served.mount();
        for file in promised {
            let found = fs::read(numbered::path(&served.mounted, *file)).unwrap_or_default();
            let (read, all) = (found.len(), promised.len());
            assert!(
                found == numbered::bytes(*file),
                "{told}: file {file} of {all} has {read} bytes"
            );
        }
        served.unmount();
        tool(check[0], &[&check[1..], &[served.node.as_str()]].concat())
            .unwrap_or_else(|why| panic!("{told}: {why}"));
        let mut engine = served.end();
        engine.finish_background(&AtomicBool::new(false)).unwrap();
        assert_eq!(engine.scrub(&AtomicBool::new(false)).unwrap(), Sectors(0), "{told}");
        println!("{told}: {} files", promised.len());
    }
}

fn created(layout: &Layout, sectors: u64) -> Vec<Drive> {
    // All zeroes are consistent on every level.
    let bitmap = WantedBitmap::Internal;
    let creation = Creation { bitmap, ..creation(layout.clone(), sectors) };
    let plan = creation.plan().unwrap();
    let drive = |pieces: &[(Sector, Vec<u8>)]| {
        let drive = Drive::new(sectors);
        for (at, piece) in pieces {
            drive.put(at.0, piece);
        }
        drive
    };
    plan.members.iter().flatten().map(|made| drive(&made.pieces)).collect()
}

/// An array that is served as a file, with a loop device over it; what is left of it goes with the test.
struct Served {
    _directory: TestDirectory,
    export: Option<FuseExport>,
    node: String,
    mounted: PathBuf,
}

impl Served {
    fn new(drives: &[Drive]) -> Self {
        let members = drives.iter().map(|drive| Member::from(drive.clone())).collect();
        let (mut engine, _) = Engine::assemble_md(members, &MdOptions::default()).unwrap();
        engine.pace(Pacing::between(u64::MAX, u64::MAX)).unwrap();
        let directory = TestDirectory::new();
        let below = |name: &str| {
            let path = directory.path().join(name);
            fs::create_dir(&path).unwrap();
            path
        };
        let (array, mounted) = (below("array"), below("mounted"));
        let export = FuseExport::new(engine, &array, ExportCache::Kept).unwrap();
        let file = export.file().display().to_string();
        let node = tool("losetup", &["--find", "--show", &file]).expect("a loop device");
        Self { _directory: directory, export: Some(export), node, mounted }
    }

    fn mount(&self) {
        let place = self.mounted.display().to_string();
        tool("mount", &[&self.node, &place]).expect("it can be mounted");
    }

    fn unmount(&self) {
        tool("umount", &[&self.mounted.display().to_string()]).expect("nothing uses it");
    }

    fn end(mut self) -> Engine {
        tool("losetup", &["--detach", &self.node]).expect("nothing uses the loop device");
        self.export.take().expect("until now").finish().unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if self.export.is_some() {
            let _ = tool("umount", &[&self.mounted.display().to_string()]);
            let _ = tool("losetup", &["--detach", &self.node]);
        }
        drop(self.export.take());
    }
}

/// Files that are written, each of which has a number that no other has.
#[derive(Default)]
struct Files {
    at: PathBuf,
    /// Those that are synced, and not about to be removed.
    synced: Mutex<BTreeSet<u64>>,
    one_more: Condvar,
    is_done: AtomicBool,
}

impl Files {
    fn synced(&self) -> BTreeSet<u64> {
        self.synced.lock().unwrap().clone()
    }

    /// Waits for so many more that are synced.
    fn wait_for(&self, more: u64) -> BTreeSet<u64> {
        let mut synced = self.synced.lock().unwrap();
        for _ in 0..more {
            synced = self.one_more.wait(synced).unwrap();
        }
        synced.clone()
    }

    /// Writes until it is told to stop: one file in three is synced, with its directory; others are written anew,
    /// renamed and removed at once or later.
    fn write(&self) {
        for number in 0.. {
            if self.is_done.load(Ordering::Relaxed) {
                return;
            }
            let path = numbered::path(&self.at, number);
            let directory = path.parent().expect("a directory");
            fs::create_dir_all(directory).unwrap();
            // Longer first, and cut and overwritten then.
            fs::write(&path, vec![0xee; 150_000]).unwrap();
            let mut file = File::create(&path).unwrap();
            file.write_all(&numbered::bytes(number)).unwrap();
            match number % 3 {
                0 => {
                    file.sync_all().unwrap();
                    for directory in [directory, &self.at] {
                        File::open(directory).and_then(|opened| opened.sync_all()).unwrap();
                    }
                    self.synced.lock().unwrap().insert(number);
                    self.one_more.notify_all();
                }
                1 => fs::rename(&path, path.with_extension("renamed")).unwrap(),
                _ if number.is_multiple_of(2) => fs::remove_file(&path).unwrap(),
                _ => {}
            }
            if let Some(old) = number.checked_sub(FILES) {
                self.synced.lock().unwrap().remove(&old);
                let path = numbered::path(&self.at, old);
                // Those that were removed at once are gone.
                let _ = fs::remove_file(&path);
                let _ = fs::remove_file(path.with_extension("renamed"));
            }
        }
    }
}
