//! The kernel's own RAID as a target for workloads on files: `mdadm` makes an array of loop devices over
//! member files, a filesystem is made on it and mounted.
//!
//! Member files lie in a run directory of their own and read as zeroes, so that copies are equal and
//! parity is right from the start: by default md is told so (`--assume-clean`). Fault model and why it is
//! safe: as in `mounted`; a killed run leaves mount, array and loop devices, which
//! [`clean_mounts`](crate::clean_mounts) finds. Tests: `tests/mounted_md.rs`, in a guest with the md driver.

pub(crate) mod devices;
mod mdadm;

pub use mdadm::mdadm_arguments;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use raidlab_core::{Consistency, Layout, Level, MemberTotals};
use raidlab_engine::{EngineError, EngineErrorKind};

use crate::mounted::loops::{LoopDevice, need_loops};
use crate::mounted::mounts::{need_root, wait_for};
use crate::mounted::{Filesystem, MountedDevice, Place, Programs, StripeHint, hint, tools};
use crate::rundir::RunDirectory;

const MAKE: &str = "make an array of the md driver";

/// Where the driver tells what it can.
const STATUS: &str = "/proc/mdstat";

/// How the copies and the parity of a new array become right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InitialSync {
    /// They are: the members are new files that read as zeroes. md is told so.
    #[default]
    AssumeClean,
    /// md makes them so, which is waited for.
    Wait,
}

/// How an array of the md driver is set up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelMdOptions {
    /// How copies and parity become right.
    pub initial: InitialSync,
    /// Whether mkfs is told how the array lies on its members; md tells by itself.
    pub stripe: StripeHint,
}

/// A filesystem on an array of the kernel's md driver, mounted. Dropped, everything is taken down and the
/// member files are removed.
#[derive(Debug)]
pub struct KernelMdArray {
    // In the order in which they are taken down.
    mount: Option<MountedDevice>,
    array: Option<RunningArray>,
    members: Vec<LoopDevice>,
    programs: Programs,
    place: Place,
    run: RunDirectory,
}

/// An array that is stopped when dropped.
#[derive(Debug)]
struct RunningArray {
    mdadm: PathBuf,
    device: PathBuf,
}

impl RunningArray {
    fn stop(&self) -> Result<(), EngineError> {
        let arguments = ["--stop".as_ref(), self.device.as_os_str()];
        tools::run_well("stop an array of md", &self.mdadm, &arguments)
    }

    /// A file of the driver about the array.
    fn told(&self, name: &str) -> Option<String> {
        let number = self.device.file_name()?;
        let path = Path::new("/sys/block").join(number).join("md").join(name);
        std::fs::read_to_string(path).ok().map(|text| text.trim().to_string())
    }

    /// Waits until md has made copies and parity right.
    fn wait_for_sync(&self) -> Result<(), EngineError> {
        const AGAIN: std::time::Duration = std::time::Duration::from_millis(20);
        while self.told("sync_action").is_some_and(|action| action != "idle") {
            std::thread::sleep(AGAIN);
        }
        match self.told("degraded").as_deref() {
            None | Some("0") => Ok(()),
            Some(count) => {
                let reason = format!("{count} members failed while md made parity right");
                Err(EngineError::new(EngineErrorKind::Member, MAKE, reason))
            }
        }
    }
}

impl Drop for RunningArray {
    fn drop(&mut self) {
        if !self.device.as_os_str().is_empty() {
            // What cannot be stopped is found again by `clean_mounts`.
            let _ = self.stop();
        }
    }
}

/// What an array is made with.
struct Needed {
    arguments: Vec<String>,
    mdadm: PathBuf,
    programs: Programs,
}

impl Needed {
    fn find(
        layout: &Layout,
        filesystem: Filesystem,
        options: KernelMdOptions,
    ) -> Result<Self, EngineError> {
        need_root(MAKE)?;
        let arguments = mdadm_arguments(layout, options.initial, Consistency::None)?;
        need_driver(layout.level)?;
        need_loops()?;
        let mdadm = tools::find("mdadm", "mdadm")?;
        Ok(Self { arguments, mdadm, programs: Programs::find(filesystem)? })
    }
}

impl KernelMdArray {
    /// Whether such an array can be made here; changes nothing. [`new`](Self::new) asks too.
    ///
    /// # Errors
    /// [`EngineErrorKind::NotSupported`] and [`EngineErrorKind::Config`], as [`new`](Self::new).
    pub fn check_host(
        layout: &Layout,
        filesystem: Filesystem,
        options: KernelMdOptions,
    ) -> Result<(), EngineError> {
        Needed::find(layout, filesystem, options).map(|_| ())
    }

    /// Makes member files of `member_bytes` bytes each in `directory`, an array of them, and a filesystem
    /// on it, and mounts that. Needs root and a kernel with the md driver.
    ///
    /// # Errors
    /// [`EngineErrorKind::NotSupported`] when this is not root, or the driver, the level, loop devices, the
    /// filesystem or a program is not here; [`EngineErrorKind::Config`] for a layout that cannot be: nothing
    /// was changed then. [`EngineErrorKind::NoRoom`] and [`EngineErrorKind::Io`] when the system or a
    /// program refuses: everything is taken down again.
    pub fn new(
        directory: &Path,
        layout: &Layout,
        member_bytes: u64,
        filesystem: Filesystem,
        options: KernelMdOptions,
    ) -> Result<Self, EngineError> {
        let Needed { arguments, mdadm, programs } = Needed::find(layout, filesystem, options)?;
        let directory =
            directory.canonicalize().map_err(|error| EngineError::io(MAKE, directory, error))?;
        let run = RunDirectory::create(&directory, layout.members, member_bytes)?;
        let name = run.path().file_name().and_then(OsStr::to_str);
        let place = Place::create(&directory, name)?;
        let mut made = Self { mount: None, array: None, members: Vec::new(), programs, place, run };
        for index in 0..layout.members {
            let file = made.run.open_member(index)?;
            let path = made.run.member_path(index).unwrap_or_default();
            made.members.push(LoopDevice::attach(&file, &path, 0)?);
        }
        let array = made.array.insert(create(mdadm, &arguments, &made.members)?);
        if options.initial == InitialSync::Wait {
            array.wait_for_sync()?;
        }
        let hint = hint(layout, options.stripe);
        let at = made.place.files();
        made.mount = Some(MountedDevice::new(&made.programs, &array.device, at, hint)?);
        Ok(made)
    }

    /// Where the filesystem is mounted.
    pub fn path(&self) -> PathBuf {
        self.place.files()
    }

    /// Whether all member files are read and written past the page cache; where the filesystem they lie in
    /// cannot do that, they are not.
    pub fn is_direct(&self) -> bool {
        self.members.iter().all(LoopDevice::is_direct)
    }

    /// What was done by the members since they were attached, as their block devices count it: with the
    /// metadata of md, and after the kernel has joined neighbouring requests.
    pub fn totals(&self) -> MemberTotals {
        let mut totals = MemberTotals::default();
        for [reads, writes, bytes_read, bytes_written] in
            self.members.iter().map(LoopDevice::counts)
        {
            totals.reads += reads;
            totals.writes += writes;
            totals.bytes_read += bytes_read;
            totals.bytes_written += bytes_written;
        }
        totals
    }

    /// Writes everything out, unmounts, has the filesystem checked, stops the array, and removes the
    /// member files.
    ///
    /// # Errors
    /// As [`MountedArray::finish`](crate::MountedArray::finish). All is taken down in any case.
    pub fn finish(mut self) -> Result<(), EngineError> {
        if let Some(mount) = self.mount.take() {
            mount.finish()?;
        }
        if let Some(mut array) = self.array.take() {
            self.programs.check(&array.device)?;
            array.stop()?;
            array.device.clear();
        }
        self.members.drain(..).try_for_each(LoopDevice::detach)
    }
}

/// Creates and starts the array, under the first number that is free.
fn create(
    mdadm: PathBuf,
    arguments: &[String],
    members: &[LoopDevice],
) -> Result<RunningArray, EngineError> {
    // From above, where nobody numbers arrays by hand.
    let mut numbers = (64..128).rev().map(|number| format!("md{number}"));
    let free = numbers.find(|name| !Path::new("/sys/block").join(name).exists());
    let Some(name) = free else {
        let reason = "md64 to md127 are all taken; stop some (`mdadm --stop`)";
        return Err(EngineError::new(EngineErrorKind::Busy, MAKE, reason));
    };
    let device = Path::new("/dev").join(name);
    let paths: Vec<PathBuf> = members.iter().map(LoopDevice::path).collect();
    let mut all: Vec<&OsStr> = vec!["--create".as_ref(), device.as_os_str()];
    all.extend(arguments.iter().map(OsStr::new));
    all.extend(paths.iter().map(|path| path.as_os_str()));
    tools::run_well(MAKE, &mdadm, &all)?;
    let shown = wait_for(|| Ok::<_, io::Error>(device.exists().then_some(())));
    match shown {
        Ok(Some(())) => Ok(RunningArray { mdadm, device }),
        _ => {
            let array = RunningArray { mdadm, device };
            let reason = format!("{} does not appear", array.device.display());
            Err(EngineError::new(EngineErrorKind::Io, MAKE, reason))
        }
    }
}

/// That the kernel has md, with this level; modules are loaded, if there are any.
fn need_driver(level: Level) -> Result<(), EngineError> {
    let word = match level {
        Level::Raid3 => "raid3",
        other => other.name(),
    };
    let personality = format!("[{word}]");
    let known = |what: &str| std::fs::read_to_string(STATUS).is_ok_and(|text| text.contains(what));
    for module in ["md_mod".to_string(), format!("md-{word}")] {
        if !known(&personality)
            && let Ok(modprobe) = tools::find("modprobe", "kmod")
        {
            tools::run(&modprobe, &["-q".as_ref(), OsStr::new(&module)])?;
        }
    }
    if known(&personality) {
        return Ok(());
    }
    let reason = if Path::new(STATUS).exists() {
        format!("this kernel's md driver has no {word} (`{STATUS}`)")
    } else {
        format!(
            "this kernel has no md driver: {STATUS} is not there; use a kernel with CONFIG_BLK_DEV_MD"
        )
    };
    Err(EngineError::new(EngineErrorKind::NotSupported, MAKE, reason))
}
