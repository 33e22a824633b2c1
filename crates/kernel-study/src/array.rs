//! How a guest sets an array and a filesystem up: a script for its shell.

use std::fmt::Write;

use raidlab_core::contract::Pacing;
use raidlab_core::{Consistency, Layout, Level, Tie};
use raidlab_kernel_lab::guest::drive_name;
use raidlab_study::{NamedLayout, State};
use raidlab_targets::{InitialSync, mdadm_arguments};

/// The array of the guest.
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
    /// The member that states besides healthy do without.
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

/// Whether md can be told of a layout.
pub(crate) fn check(layout: &NamedLayout) -> Result<(), String> {
    if is_bare(layout) {
        return Ok(());
    }
    arguments(layout)?;
    let stripes = layout.settings.cached_stripes;
    if stripes != 0 && !STRIPES.contains(&stripes) {
        let (least, most) = (STRIPES.start(), STRIPES.end());
        return Err(format!("md keeps {least} to {most} stripes, not cached_stripes = {stripes}"));
    }
    Ok(())
}

fn arguments(layout: &NamedLayout) -> Result<Vec<String>, String> {
    let consistency = layout.settings.consistency;
    mdadm_arguments(&layout.layout, InitialSync::AssumeClean, consistency)
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

fn create(script: &mut String, setup: &Setup<'_>) -> Result<(), String> {
    let layout = setup.layout;
    let members = usize::from(layout.layout.members);
    let is_missing = |place: usize| setup.state != State::Healthy && place == setup.lost;
    let member = |place: usize| match is_missing(place) {
        true => "missing".to_owned(),
        false => format!("/dev/{}", drive_name(place)),
    };
    let mut words = arguments(layout)?;
    if matches!(layout.settings.consistency, Consistency::Journal { .. }) {
        words.push(format!("--write-journal=/dev/{}", drive_name(members)));
    }
    words.extend((0..members).map(member));
    let _ = writeln!(script, "mdadm --create /dev/{ARRAY} {}", words.join(" "));
    let settings = &layout.settings;
    let mut set = |file: &str, value: u64| {
        let _ = writeln!(script, "echo {value} >/sys/block/{ARRAY}/md/{file}");
    };
    if settings.cached_stripes != 0 {
        set("stripe_cache_size", settings.cached_stripes.into());
    }
    let plain = Pacing::default();
    if settings.pacing.least != plain.least {
        set("sync_speed_min", settings.pacing.least >> 10);
    }
    if settings.pacing.most != plain.most {
        set("sync_speed_max", settings.pacing.most >> 10);
    }
    match settings.tie {
        Tie::ReconstructWrite => {}
        Tie::ReadModifyWrite => set("rmw_level", 2),
        Tie::NeverModify => set("rmw_level", 0),
    }
    Ok(())
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
    fn a_journal_has_a_drive_of_its_own() {
        let layout = layout("level = \"raid5\"\nmembers = 3\nconsistency = \"journal\"");
        let text = script_of(&layout, State::Healthy, Some("xfs"));
        assert!(text.contains("--write-journal=/dev/vdd /dev/vda /dev/vdb /dev/vdc\n"), "{text}");
        assert!(!text.contains("--bitmap") && text.contains("mkfs.xfs"), "{text}");
    }
}
