//! The directory of one mounted target, and what killed runs left.
//!
//! `DIR/raidlab-mount-PID-N/` holds `owner`, a marker that is locked (`flock`) while its run lives, and
//! two mount points: `export`, where the array is one file, and `files`, where the filesystem is. What is
//! mounted there and attached to it the kernel knows, so nothing of it is written down. Fault model: the
//! run may be killed at any point, also between any two steps of setting up; others may mount things of
//! their own, attach loop devices to files of their own, and clean up at the same time. Why it is safe: a
//! cleaner works only with the lock of a marker of raidlab's in hand, and takes down only mounts on these
//! two mount points whose source is raidlab's, loop devices of files on an exported array mounted here, and
//! loop devices, and md arrays made of them, of files that the run which the marker names has made: by
//! device and inode as that run's own marker has them, with the lock of that in hand too, so that a marker
//! which names a run that lives takes nothing from it. Directories go only when they are empty.
//! Tests: `tests/mounted.rs`, `tests/cleanup.rs`.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::mounts::{self, lies_in, wait_for};
use super::{loops, tools};
use crate::export::system::TYPE;
use crate::kernel_md::devices;
use crate::rundir::system::{Directory, Identity, Locked, said};
use crate::rundir::{self, Cleaned, Leftover, MARKER, marker_lines};
use raidlab_engine::EngineError;
use raidlab_engine::mounts::{Mount, all as all_mounts};

/// What names of these directories begin with.
const PREFIX: &str = "raidlab-mount-";
const MAGIC: &str = "raidlab mount directory, format 1; what is mounted in it belongs to raidlab";
/// Markers longer than this are not ours.
const LONGEST_MARKER: u64 = 4096;
const EXPORT: &str = "export";
const FILES: &str = "files";

const MAKE: &str = "make a directory to mount in";

/// A directory with two mount points; removed when dropped, as far as nothing is mounted any more.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    parent: Directory,
    name: String,
    directory: Directory,
    marker: Locked,
}

impl Place {
    /// Makes one in `parent`; `run` is the name of a run directory there whose files are members.
    pub(crate) fn create(parent: &Path, run: Option<&str>) -> Result<Self, EngineError> {
        let failed = |path: &Path, error| EngineError::io(MAKE, path, error);
        let parent = parent.canonicalize().map_err(|error| failed(parent, error))?;
        let within = Directory::open(&parent).map_err(|error| failed(&parent, error))?;
        let made = within.make_own_directory(PREFIX);
        let name = made.map_err(|(name, error)| failed(&parent.join(name), error))?;
        let path = parent.join(&name);
        match prepare(&within, &name, run) {
            Ok((directory, marker)) => Ok(Self { path, parent: within, name, directory, marker }),
            Err(error) => {
                if let Ok(directory) = within.directory(&name) {
                    let made = directory.identity(MARKER).ok();
                    remove_insides(&directory, made);
                }
                let _ = within.remove_directory(&name);
                Err(failed(&path, error))
            }
        }
    }

    /// Where the array is one file.
    pub(crate) fn export(&self) -> PathBuf {
        self.path.join(EXPORT)
    }

    /// Where the filesystem is.
    pub(crate) fn files(&self) -> PathBuf {
        self.path.join(FILES)
    }
}

fn prepare(within: &Directory, name: &str, run: Option<&str>) -> io::Result<(Directory, Locked)> {
    let directory = within.directory(name)?;
    let mut marker = Locked::take(directory.make_file(MARKER)?, true)?;
    marker.write_all(format!("{MAGIC}\n{}\n", run.unwrap_or("")).as_bytes())?;
    marker.sync_all()?;
    directory.make_directory(EXPORT)?;
    directory.make_directory(FILES)?;
    Ok((directory, marker))
}

/// Removes what raidlab makes in a directory; mount points in use and files of others stay.
fn remove_insides(directory: &Directory, marker: Option<Identity>) -> bool {
    let gone = |outcome: io::Result<()>| match outcome {
        Ok(()) => true,
        Err(error) => error.raw_os_error() == Some(libc::ENOENT),
    };
    // The marker last: without it nothing is known as ours again.
    [FILES, EXPORT].iter().all(|name| gone(directory.remove_directory(name)))
        && directory.others(MARKER).is_ok_and(|others| others.is_empty())
        && gone(directory.remove_file(MARKER, marker))
}

impl Drop for Place {
    fn drop(&mut self) {
        // What stays is found again by `clean_mounts`, as long as the marker is there.
        if remove_insides(&self.directory, Identity::of(&self.marker).ok()) {
            let _ = self.parent.remove_directory(&self.name);
        }
    }
}

/// Takes down what killed runs left mounted in `parent`: filesystem, loop devices, md array, exported
/// file, directory. Leaves runs that live, and all that is not raidlab's.
///
/// # Errors
/// When `parent` cannot be read. What cannot be taken down is reported in [`Cleaned::kept`].
pub fn clean_mounts(parent: &Path) -> Result<Cleaned, EngineError> {
    const OPERATION: &str = "look for mounts of killed runs";
    let failed = |error| EngineError::io(OPERATION, parent, error);
    let whole = parent.canonicalize().map_err(failed)?;
    let within = Directory::open(&whole).map_err(failed)?;
    let names: io::Result<Vec<_>> = std::fs::read_dir(&whole)
        .and_then(|entries| entries.map(|entry| entry.map(|e| e.file_name())).collect());
    let mut names = names.map_err(failed)?;
    names.sort();
    let mut cleaned = Cleaned::default();
    for name in names.iter().filter_map(|name| name.to_str()) {
        if !name.starts_with(PREFIX) {
            continue;
        }
        let path = parent.join(name);
        match clean_one(&whole, &within, name) {
            Ok(()) => cleaned.removed.push(path),
            Err(reason) => cleaned.kept.push((path, reason)),
        }
    }
    Ok(cleaned)
}

/// What belongs to a run that is over.
struct Ours {
    /// Where its array is one file, if it is exported still.
    export: Option<PathBuf>,
    /// The run whose files its devices are made of; locked as long as this lives.
    run: Option<Leftover>,
}

/// Takes one down; the error says why it stays.
fn clean_one(parent: &Path, within: &Directory, name: &str) -> Result<(), String> {
    let directory =
        within.directory(name).map_err(|e| format!("is no directory of ours: {}", said(&e)))?;
    let mut marker = rundir::over(&directory)?;
    let run = named_run(within, &mut marker)?;
    let refused = |what: &str, error: io::Error| format!("{what}: {error}");
    let export = parent.join(name).join(EXPORT);
    let mounted = mounted_on(&export)?;
    if let Some(other) = mounted.iter().find(|mount| mount.kind != TYPE) {
        return Err(format!("a {} is mounted on its `{EXPORT}`", other.kind));
    }
    let ours = Ours { export: (!mounted.is_empty()).then(|| export.clone()), run };
    unmount_files(&parent.join(name).join(FILES), &ours)?;
    stop_arrays(&ours)?;
    take_down_loops(&ours)?;
    for _ in mounted {
        mounts::unmount_lazily(&export)
            .map_err(|error| refused("its exported file cannot be unmounted", error))?;
    }
    if !remove_insides(&directory, Identity::of(&marker).ok()) {
        return Err("something in it is not raidlab's".into());
    }
    within.remove_directory(name).map_err(|error| refused("cannot be removed", error))
}

/// The run that a marker names, if it names one that is still there; an error when that lives.
fn named_run(within: &Directory, marker: &mut File) -> Result<Option<Leftover>, String> {
    let lines = marker_lines(marker, &[MAGIC], LONGEST_MARKER)?;
    let Some(name) = lines.into_iter().next() else { return Ok(None) };
    if !name.starts_with(rundir::PREFIX) || name.contains('/') {
        return Err(format!("its marker names `{name}`, which raidlab would not"));
    }
    match within.identity(&name) {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        _ => {
            let run = Leftover::open(within, &name);
            run.map(Some).map_err(|why| format!("its marker names {name}: {why}"))
        }
    }
}

fn mounted_on(point: &Path) -> Result<Vec<Mount>, String> {
    let all = all_mounts().map_err(|error| format!("what is mounted is not known: {error}"))?;
    Ok(all.into_iter().filter(|mount| mount.point == point).collect())
}

fn our_loops(ours: &Ours) -> io::Result<Vec<PathBuf>> {
    let is_ours = |one: &loops::Attached| {
        let exported = |export| lies_in(&one.backing, export);
        let made = |run: &Leftover| one.file.is_some_and(|file| run.has_made(file));
        ours.export.as_deref().is_some_and(exported) || ours.run.as_ref().is_some_and(made)
    };
    let all = loops::attached(ours.run.as_ref().and_then(Leftover::device))?.into_iter();
    Ok(all.filter(is_ours).map(|one| one.device).collect())
}

/// Arrays of the md driver made of our loop devices only.
fn our_arrays(ours: &Ours) -> io::Result<Vec<PathBuf>> {
    let loops = our_loops(ours)?;
    let arrays = devices::arrays()?.into_iter();
    let is_ours = |members: &[PathBuf]| {
        !members.is_empty() && members.iter().all(|member| loops.contains(member))
    };
    Ok(arrays.filter(|(_, members)| is_ours(members)).map(|(array, _)| array).collect())
}

const LOOK: &str = "what is attached is not known";

fn unmount_files(point: &Path, ours: &Ours) -> Result<(), String> {
    let unknown = |error: io::Error| format!("{LOOK}: {error}");
    let mounted = mounted_on(point)?;
    let mut sources = our_loops(ours).map_err(unknown)?;
    sources.extend(our_arrays(ours).map_err(unknown)?);
    // All before the first is unmounted, since the uppermost goes first, whoever mounted it.
    if let Some(other) = mounted.iter().find(|mount| !sources.contains(&mount.source)) {
        return Err(format!("{}, mounted in it, is not raidlab's", other.source.display()));
    }
    for _ in mounted {
        mounts::unmount_lazily(point)
            .map_err(|error| format!("its filesystem cannot be unmounted: {error}"))?;
    }
    Ok(())
}

fn stop_arrays(ours: &Ours) -> Result<(), String> {
    for array in our_arrays(ours).map_err(|error| format!("{LOOK}: {error}"))? {
        let mdadm = tools::find("mdadm", "mdadm").map_err(|error| error.to_string())?;
        let arguments = ["--stop".as_ref(), array.as_os_str()];
        tools::run_well("stop an array of md", &mdadm, &arguments)
            .map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn take_down_loops(ours: &Ours) -> Result<(), String> {
    let unknown = |error: io::Error| format!("{LOOK}: {error}");
    for device in our_loops(ours).map_err(unknown)? {
        loops::take_down(&device)
            .map_err(|error| format!("{} cannot be detached: {error}", device.display()))?;
    }
    let gone = wait_for(|| Ok(our_loops(ours)?.is_empty().then_some(()))).map_err(unknown)?;
    gone.ok_or_else(|| "somebody still uses its loop device".to_string())
}
