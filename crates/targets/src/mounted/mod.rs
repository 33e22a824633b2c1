//! A filesystem on an array, as a target for workloads on files: the array is exported as one file
//! ([`FuseExport`]), a loop device with direct I/O makes a block device of it, a filesystem is made on that
//! and mounted.
//!
//! Fault model: members fail while the filesystem is in use; the process is killed or interrupted at any
//! point; tools are missing. Why it is safe: what is needed is looked for before anything is changed;
//! whatever was set up is taken down in reverse order by `Drop`, by force if it must; what a killed run
//! left is found by [`clean_mounts`]. The process may use the filesystem with any of its threads, as the
//! thread that serves the array never does. Tests: `tests/mounted.rs`.

mod filesystem;
pub(crate) mod loops;
pub(crate) mod mounts;
mod place;
pub(crate) mod tools;

pub use filesystem::{Filesystem, StripeHint};
pub(crate) use filesystem::{Programs, hint};
pub(crate) use place::Place;
pub use place::clean_mounts;

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use raidlab_core::{MemberIndex, MemberTotals};
use raidlab_engine::{Engine, EngineError, EngineErrorKind};

use crate::export::{ExportCache, FuseExport, need_device};
use loops::LoopDevice;

const SET_UP: &str = "set up a filesystem on the array";

/// How a filesystem is set up on an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MountOptions {
    /// Whether mkfs is told how the array lies on its members.
    pub stripe: StripeHint,
    /// What the kernel keeps of the exported file. The loop device goes past that in any case.
    pub cache: ExportCache,
}

/// A filesystem on an array, mounted. Dropped, everything is taken down, whoever still uses it, and what
/// was not written yet is lost.
#[derive(Debug)]
pub struct MountedArray {
    // In the order in which they are taken down.
    mount: Option<MountedDevice>,
    device: Option<LoopDevice>,
    export: Option<FuseExport>,
    programs: Programs,
    place: Place,
}

/// A mount that is taken down when dropped.
#[derive(Debug)]
pub(crate) struct MountedDevice(PathBuf);

impl MountedDevice {
    /// Makes a filesystem on a device and mounts it.
    pub(crate) fn new(
        programs: &Programs,
        device: &Path,
        at: PathBuf,
        hint: Option<(u64, u64)>,
    ) -> Result<Self, EngineError> {
        programs.make(device, hint)?;
        programs.mount(device, &at)?;
        Ok(Self(at))
    }

    /// Writes everything out and unmounts.
    pub(crate) fn finish(mut self) -> Result<(), EngineError> {
        mounts::sync(&self.0)?;
        mounts::unmount(&self.0)?;
        self.0.clear();
        Ok(())
    }
}

impl Drop for MountedDevice {
    fn drop(&mut self) {
        if self.0.as_os_str().is_empty() {
            return;
        }
        // What cannot be unmounted is found again by `clean_mounts`.
        let _ = mounts::unmount_lazily(&self.0);
    }
}

impl MountedArray {
    /// Whether arrays can be mounted here; changes nothing. [`new`](Self::new) asks too.
    ///
    /// # Errors
    /// [`EngineErrorKind::NotSupported`] when this is not root, or FUSE, loop devices, the filesystem or
    /// its programs are not here.
    pub fn check_host(filesystem: Filesystem) -> Result<(), EngineError> {
        Self::programs(filesystem).map(|_| ())
    }

    fn programs(filesystem: Filesystem) -> Result<Programs, EngineError> {
        mounts::need_root(SET_UP)?;
        need_device()?;
        loops::need_loops()?;
        Programs::find(filesystem)
    }

    /// Exports the array, makes a filesystem on it and mounts it, in a directory of its own in
    /// `directory`. Needs root.
    ///
    /// # Errors
    /// [`EngineErrorKind::NotSupported`] when this is not root, or FUSE, loop devices, the filesystem or
    /// its programs are not here: nothing was changed then. [`EngineErrorKind::Io`] when the system or
    /// mkfs refuses: everything is taken down again.
    pub fn new(
        engine: Engine,
        directory: &Path,
        filesystem: Filesystem,
        options: MountOptions,
    ) -> Result<Self, EngineError> {
        let programs = Self::programs(filesystem)?;
        let hint = hint(engine.array().layout(), options.stripe);
        let block = engine.block().bytes() as u32;
        let place = Place::create(directory, None)?;
        let mut mounted = Self { mount: None, device: None, export: None, programs, place };
        let export = FuseExport::new(engine, &mounted.place.export(), options.cache)?;
        let path = export.file();
        mounted.export = Some(export);
        let file = OpenOptions::new().read(true).write(true).open(&path);
        let file = file.map_err(|error| EngineError::io(SET_UP, &path, error))?;
        let device = mounted.device.insert(LoopDevice::attach(&file, &path, block)?);
        drop(file);
        if !device.is_direct() {
            let reason = "the loop device does not take direct I/O, so memory would answer";
            return Err(EngineError::new(EngineErrorKind::NotSupported, SET_UP, reason));
        }
        let at = mounted.place.files();
        mounted.mount = Some(MountedDevice::new(&mounted.programs, &device.path(), at, hint)?);
        Ok(mounted)
    }

    /// Where the filesystem is mounted.
    pub fn path(&self) -> PathBuf {
        self.place.files()
    }

    /// What was asked of the members since the engine was made; see [`FuseExport::totals`]. What lies in
    /// memory only has not been asked of them: `sync` first where that matters.
    pub fn totals(&self) -> MemberTotals {
        self.export.as_ref().map(FuseExport::totals).unwrap_or_default()
    }

    /// Takes a member out of service, as [`Engine::fail`].
    ///
    /// # Errors
    /// As there.
    pub fn fail(&self, member: MemberIndex) -> Result<(), EngineError> {
        self.export()?.fail(member)
    }

    /// Lets a member in memory vanish, as [`FuseExport::vanish`].
    ///
    /// # Errors
    /// As there.
    pub fn vanish(&self, member: MemberIndex) -> Result<(), EngineError> {
        self.export()?.vanish(member)
    }

    fn export(&self) -> Result<&FuseExport, EngineError> {
        self.export.as_ref().ok_or_else(no_longer)
    }

    /// Writes everything out, unmounts, has the filesystem checked, takes everything down and gives the
    /// engine back.
    ///
    /// # Errors
    /// What could not be written; [`EngineErrorKind::Busy`] when somebody still uses a file;
    /// [`EngineErrorKind::Mismatch`] with the checker's verdict when the filesystem is not sound. All is
    /// taken down in any case.
    pub fn finish(mut self) -> Result<Engine, EngineError> {
        if let Some(mount) = self.mount.take() {
            mount.finish()?;
        }
        if let Some(device) = self.device.take() {
            self.programs.check(&device.path())?;
            device.detach()?;
        }
        self.export.take().ok_or_else(no_longer)?.finish()
    }
}

fn no_longer() -> EngineError {
    EngineError::new(EngineErrorKind::Internal, SET_UP, "it was taken down already")
}
