//! How a guest sets an array and a filesystem up: a script for its shell.

use std::fmt::Write;

use raidlab_core::contract::Pacing;
use raidlab_core::{Consistency, Layout, Level, SECTOR_BYTES, Sectors, Tie};
use raidlab_kernel_lab::guest::drive_name;
use raidlab_metadata::md::usual_data_offset;
use raidlab_study::{NamedLayout, State};
use raidlab_targets::{InitialSync, mdadm_arguments};

use crate::job::RebuildJob;

/// The array of the guest; of nested levels the upper one.
pub(crate) const ARRAY: &str = "md0";
/// Where its filesystem is mounted.
pub(crate) const MOUNTED: &str = "/run/mnt";

/// Stripes that md keeps at least and at most: `stripe_cache_size`.
const STRIPES: std::ops::RangeInclusive<u32> = 17..=32_768;

/// Tables of large arrays are larger than the memory of a small guest, and hardly touched: they may be asked for.
const HEAD: &str = "set -eu\nexec 3>&1 1>&2\necho 1 >/proc/sys/vm/overcommit_memory\n";

/// From here on drives take the time they need. Before, md marks its array clean (after 200 ms), and ext4 reads all of
/// its block bitmaps, which it begins up to 5 s after it was mounted (`ext4_lazyinit_thread` in fs/ext4/super.c): on a
/// drive of 6 TB those are 2,798 reads in 7 s, and nobody means to measure them.
const SET_UP: &str = "sleep 6\ncat /sys/block/vd*/serial >/dev/null\n";

/// What an array is set up with.
pub(crate) struct Setup<'a> {
    pub(crate) layout: &'a NamedLayout,
    pub(crate) state: State,
    /// The drive that states besides healthy do without.
    pub(crate) lost: usize,
    pub(crate) filesystem: Option<&'a str>,
    /// The window of read-ahead in bytes, in place of the kernel's own.
    pub(crate) read_ahead: Option<u64>,
}

/// Whether there is no array at all, but one drive.
pub(crate) fn is_bare(layout: &NamedLayout) -> bool {
    let Layout { level, members, .. } = layout.layout;
    level == Level::Linear && members == 1 && layout.settings.consistency == Consistency::None
}

/// The block device that workloads run on.
pub(crate) fn target(layout: &NamedLayout) -> String {
    if is_bare(layout) { drive_name(0) } else { ARRAY.to_owned() }
}

const fn has_journal(layout: &NamedLayout) -> bool {
    matches!(layout.settings.consistency, Consistency::Journal { .. })
}

/// The bytes that a drive needs for a layout's journal to be as large as the study says, if it is the journal's: md
/// takes all of a drive behind where the data of members begin, which have so many bytes.
pub(crate) fn journal_drive(layout: &NamedLayout, place: usize, member: u64) -> Option<u64> {
    let Consistency::Journal { sectors } = layout.settings.consistency else { return None };
    let front = usual_data_offset(Sectors(member / SECTOR_BYTES), layout.layout.chunk);
    (place == usize::from(layout.layout.drives())).then(|| front.bytes() + sectors.bytes())
}

/// How many drives a guest has: members, then the journal's, then hot spares, or the fresh drive of a rebuild.
pub(crate) fn drives(layout: &NamedLayout, state: State) -> usize {
    first_fresh(layout) + fresh(layout, state)
}

/// The place of the first of what takes a lost member's place.
pub(crate) fn first_fresh(layout: &NamedLayout) -> usize {
    usize::from(layout.layout.drives()) + usize::from(has_journal(layout))
}

fn fresh(layout: &NamedLayout, state: State) -> usize {
    match layout.spares {
        0 => usize::from(state == State::Rebuilding),
        spares => usize::from(spares),
    }
}

/// Whether md can be told of a layout.
pub(crate) fn check(layout: &NamedLayout) -> Result<(), String> {
    if is_bare(layout) {
        return Ok(());
    }
    for floor in layout.layout.floors() {
        arguments(&floor.upper(), layout)?;
    }
    let stripes = layout.settings.cached_stripes;
    if stripes != 0 && !STRIPES.contains(&stripes) {
        let (least, most) = (STRIPES.start(), STRIPES.end());
        return Err(format!("md keeps {least} to {most} stripes, not cached_stripes = {stripes}"));
    }
    if layout.layout.inner.is_some() && layout.spares > 0 {
        return Err("spares of nested levels are shared by `mdadm --monitor`, which guests do not run; leave `spares` \
                    out"
        .to_owned());
    }
    Ok(())
}

fn arguments(floor: &Layout, layout: &NamedLayout) -> Result<Vec<String>, String> {
    mdadm_arguments(floor, InitialSync::AssumeClean, layout.settings.consistency)
        .map_err(|error| error.to_string())
}

/// The script; it ends with what is mounted, or the array, ready.
pub(crate) fn script(setup: &Setup<'_>) -> Result<String, String> {
    let layout = setup.layout;
    let device_of_run = format!("/dev/{}", target(layout));
    let mut script = HEAD.to_owned();
    if !is_bare(layout) {
        create(&mut script, setup)?;
    }
    if let Some(bytes) = setup.read_ahead {
        let file = format!("/sys/block/{}/queue/read_ahead_kb", target(layout));
        let _ = writeln!(script, "echo {} >{file}", bytes >> 10);
    }
    if let Some(filesystem) = setup.filesystem {
        script += &filesystem_on(filesystem, &device_of_run);
    }
    script += SET_UP;
    Ok(script)
}

/// An array of a guest, with the names of its members; those that are missing have none.
struct Array<'a> {
    name: String,
    floor: Layout,
    layout: &'a NamedLayout,
    members: Vec<Option<String>>,
}

impl Array<'_> {
    fn create(&self, script: &mut String) -> Result<(), String> {
        let mut words = arguments(&self.floor, self.layout)?;
        if has_journal(self.layout) {
            let journal = drive_name(usize::from(self.layout.layout.drives()));
            words.push(format!("--write-journal=/dev/{journal}"));
        }
        let spares = usize::from(self.layout.spares);
        if spares > 0 {
            words.push(format!("--spare-devices={spares}"));
        }
        let device = |name: &String| format!("/dev/{name}");
        let member =
            |member: &Option<String>| member.as_ref().map_or_else(|| "missing".to_owned(), device);
        words.extend(self.members.iter().map(member));
        let first = first_fresh(self.layout);
        words.extend((first..first + spares).map(|place| device(&drive_name(place))));
        let _ = writeln!(script, "mdadm --create /dev/{} {}", self.name, words.join(" "));
        self.settings(script);
        Ok(())
    }

    fn settings(&self, script: &mut String) {
        let settings = &self.layout.settings;
        let mut set = |file: &str, value: u64| {
            let _ = writeln!(script, "echo {value} >/sys/block/{}/md/{file}", self.name);
        };
        if self.floor.level.has_stripes() {
            if settings.cached_stripes != 0 {
                set("stripe_cache_size", settings.cached_stripes.into());
            }
            if self.layout.group_threads != 0 {
                set("group_thread_cnt", self.layout.group_threads.into());
            }
            match settings.tie {
                Tie::ReconstructWrite => {}
                Tie::ReadModifyWrite => set("rmw_level", 2),
                Tie::NeverModify => set("rmw_level", 0),
            }
        }
        let plain = Pacing::default();
        if self.floor.level.is_redundant() {
            if settings.pacing.least != plain.least {
                set("sync_speed_min", settings.pacing.least >> 10);
            }
            if settings.pacing.most != plain.most {
                set("sync_speed_max", settings.pacing.most >> 10);
            }
        }
    }
}

/// What a guest's array is made of, and what a rebuild takes.
struct Plan<'a> {
    /// In the order in which they are made.
    arrays: Vec<Array<'a>>,
    /// Which of them rebuilds.
    rebuilds: String,
    /// The device that takes the lost one's place.
    fresh: Vec<String>,
}

/// Arrays over arrays as mdadm stacks them: drives are counted through the lower ones in order. A lower array that
/// survives its loss lacks a drive; one that does not is missing in the upper one, and comes back as a new array.
fn plan<'a>(setup: &Setup<'a>) -> Plan<'a> {
    let layout = setup.layout;
    let lost = (setup.state != State::Healthy && layout.spares == 0).then_some(setup.lost);
    let drive = |place: usize| (Some(place) != lost).then(|| drive_name(place));
    let fresh: Vec<String> =
        (first_fresh(layout)..drives(layout, setup.state)).map(drive_name).collect();
    let members = usize::from(layout.layout.members);
    let whole = layout.layout.upper();
    let upper = |members| Array { name: ARRAY.to_owned(), floor: whole, layout, members };
    let Some(inner) = layout.layout.inner.as_deref() else {
        let arrays = vec![upper((0..members).map(drive).collect())];
        return Plan { arrays, rebuilds: ARRAY.to_owned(), fresh };
    };
    let each = usize::from(inner.members);
    let name = |array: usize| format!("md{}", array + 1);
    let lower = |name: String, members| Array { name, floor: inner.clone(), layout, members };
    let of = |array: usize| array * each..(array + 1) * each;
    let hit = lost.map(|lost| lost / each);
    let survives = inner.survives() > 0;
    let mut arrays = Vec::new();
    for array in (0..members).filter(|array| survives || Some(*array) != hit) {
        arrays.push(lower(name(array), of(array).map(drive).collect()));
    }
    let there = |array: usize| (survives || Some(array) != hit).then(|| name(array));
    arrays.push(upper((0..members).map(there).collect()));
    let Some(hit) = hit else { return Plan { arrays, rebuilds: ARRAY.to_owned(), fresh } };
    if survives {
        return Plan { arrays, rebuilds: name(hit), fresh };
    }
    if setup.state == State::Rebuilding {
        // The array comes back with the fresh drive; the upper one gets all of it anew.
        let place = |place: usize| drive(place).or_else(|| fresh.first().cloned());
        arrays.push(lower(name(hit), of(hit).map(place).collect()));
    }
    Plan { arrays, rebuilds: ARRAY.to_owned(), fresh: vec![name(hit)] }
}

fn create(script: &mut String, setup: &Setup<'_>) -> Result<(), String> {
    plan(setup).arrays.iter().try_for_each(|array| array.create(script))
}

/// The rebuild that begins with the run, if the state has one.
pub(crate) fn rebuild(setup: &Setup<'_>, most: Option<u64>) -> Option<RebuildJob> {
    (setup.state == State::Rebuilding).then(|| {
        let Plan { rebuilds, fresh, .. } = plan(setup);
        // A hot spare is there already: it takes the place by itself once the member has failed.
        let fails = (setup.layout.spares > 0).then(|| drive_name(setup.lost));
        RebuildJob { array: rebuilds, fresh, fails, most }
    })
}

/// Makes and mounts a filesystem. Nothing is left to be initialised in the background, nor is it written now: drives of
/// guests hold zeroes. XFS writes its log out, 2 GiB on large arrays, so that is made smaller: 128 MiB are more than
/// what a guest has time to write in it.
fn filesystem_on(filesystem: &str, device: &str) -> String {
    let extended = "-E lazy_itable_init=1,lazy_journal_init=1,nodiscard";
    let (make, kind, options) = match filesystem {
        "xfs" => ("mkfs.xfs -q -f -K -l size=128m".to_owned(), "xfs", ""),
        "btrfs" => ("mkfs.btrfs -q -f -K".to_owned(), "btrfs", ""),
        "ext2" | "ext3" => (format!("mke2fs -q -F -t {filesystem} -E nodiscard"), filesystem, ""),
        _ => (format!("mke2fs -q -F -t ext4 {extended}"), "ext4", " -o noinit_itable"),
    };
    format!("{make} {device}\nmount -t {kind}{options} {device} {MOUNTED}\nsync\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(text: &str) -> NamedLayout {
        let text = format!(
            "title = \"test\"\n[[drives]]\nname = \"nas\"\nmodel = \"nas-8tb-7200\"\ncount = 6\n[[layouts]]\n{text}\n\
             [[workloads]]\nkind = \"dd-read\"\nsize = \"64MiB\"\n"
        );
        raidlab_study::parse(&text, "test").expect("a study").layouts.remove(0)
    }

    fn script_of(layout: &NamedLayout, state: State, filesystem: Option<&str>) -> String {
        let setup = Setup { layout, state, lost: 0, filesystem, read_ahead: Some(1 << 20) };
        script(&setup).expect("can be")
    }

    #[test]
    fn one_drive_is_no_array() {
        let text = script_of(&layout("level = \"single\""), State::Healthy, Some("ext4"));
        assert!(!text.contains("mdadm") && text.contains("ext4 -E lazy_itable_init=1"), "{text}");
        assert!(text.contains("echo 1024 >/sys/block/vda/queue/read_ahead_kb"), "{text}");
        assert!(text.contains("mount -t ext4 -o noinit_itable /dev/vda /run/mnt"), "{text}");
        assert!(text.ends_with(SET_UP), "{text}");
    }

    #[test]
    fn settings_of_a_layout_are_those_of_md() {
        let layout = layout(
            "level = \"raid5\"\nmembers = 4\nchunk = \"64KiB\"\ncached_stripes = 4096\n\
             consistency = \"bitmap\"\npacing = { least = \"10MiB/s\", most = \"100MiB/s\" }\n\
             tie = \"read-modify-write\"",
        );
        let text = script_of(&layout, State::Degraded, None);
        for part in [
            "--level=5",
            "--chunk=64",
            "--bitmap=internal",
            "--assume-clean",
            "missing /dev/vdb /dev/vdc /dev/vdd\n",
            "echo 4096 >/sys/block/md0/md/stripe_cache_size",
            "echo 10240 >/sys/block/md0/md/sync_speed_min",
            "echo 102400 >/sys/block/md0/md/sync_speed_max",
            "echo 2 >/sys/block/md0/md/rmw_level",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("mount"));
    }

    #[test]
    fn lower_arrays_are_made_first_and_lack_what_is_lost() {
        let nested = layout("level = \"raid5+0\"\narrays = 2\nmembers = 6\ngroup_thread_cnt = 2");
        let text = script_of(&nested, State::Degraded, None);
        let arrays: Vec<&str> = text.lines().filter(|line| line.contains("--create")).collect();
        assert_eq!(arrays.len(), 3, "{text}");
        assert!(
            arrays[0].starts_with("mdadm --create /dev/md1 ") && arrays[0].contains("--level=5")
        );
        assert!(arrays[0].ends_with(" missing /dev/vdb /dev/vdc"), "{text}");
        assert!(arrays[1].ends_with(" /dev/vdd /dev/vde /dev/vdf"), "{text}");
        assert!(arrays[2].ends_with(" /dev/md1 /dev/md2") && arrays[2].contains("--level=0"));
        assert!(text.contains("echo 2 >/sys/block/md1/md/group_thread_cnt"), "{text}");
        assert!(!text.contains("md0/md/group_thread_cnt"), "{text}");
        let job = rebuild_of(&nested).expect("rebuilds");
        assert_eq!((job.array.as_str(), &job.fresh[..]), ("md1", &["vdg".to_owned()][..]));
    }

    #[test]
    fn a_lower_array_that_is_lost_comes_back_as_a_new_one() {
        let nested = layout("level = \"raid0+1\"\narrays = 2\nmembers = 4");
        let text = script_of(&nested, State::Degraded, None);
        let arrays: Vec<&str> = text.lines().filter(|line| line.contains("--create")).collect();
        assert!(arrays.len() == 2 && arrays[0].ends_with(" /dev/vdc /dev/vdd"), "{text}");
        assert!(arrays[1].ends_with(" missing /dev/md2"), "{text}");
        let text = script_of(&nested, State::Rebuilding, None);
        let last = text.lines().rfind(|line| line.contains("--create")).expect("three");
        assert!(last.contains("/dev/md1 ") && last.ends_with(" /dev/vde /dev/vdb"), "{text}");
        let job = rebuild_of(&nested).expect("rebuilds");
        assert_eq!((job.array.as_str(), &job.fresh[..]), ("md0", &["md1".to_owned()][..]));
    }

    #[test]
    fn a_hot_spare_waits_until_a_member_fails() {
        let spared = layout("level = \"raid5\"\nmembers = 3\nspares = 2");
        for state in [State::Healthy, State::Rebuilding] {
            let text = script_of(&spared, state, None);
            assert!(
                text.contains("--spare-devices=2 /dev/vda /dev/vdb /dev/vdc /dev/vdd /dev/vde\n")
            );
            assert_eq!(drives(&spared, state), 5);
        }
        let job = rebuild_of(&spared).expect("rebuilds");
        assert_eq!((job.fails.as_deref(), job.fresh.len()), (Some("vda"), 2));
        let nested = layout("level = \"raid5+0\"\narrays = 2\nmembers = 6");
        let nested = NamedLayout { spares: 1, ..nested };
        assert!(check(&nested).is_err_and(|error| error.contains("mdadm --monitor")));
    }

    fn rebuild_of(layout: &NamedLayout) -> Option<RebuildJob> {
        let state = State::Rebuilding;
        rebuild(&Setup { layout, state, lost: 0, filesystem: None, read_ahead: None }, None)
    }

    #[test]
    fn a_journal_has_a_drive_of_its_own() {
        let layout = layout("level = \"raid5\"\nmembers = 3\nconsistency = \"journal\"");
        let text = script_of(&layout, State::Healthy, Some("xfs"));
        assert!(text.contains("--write-journal=/dev/vdd /dev/vda /dev/vdb /dev/vdc\n"), "{text}");
        assert!(!text.contains("--bitmap") && text.contains("mkfs.xfs"), "{text}");
    }
}
