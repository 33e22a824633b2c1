//! Who has the engine: this thread, or the one that serves the array as a file.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use raidlab_engine::{Engine, EngineError};
use raidlab_targets::{ExportCache, FuseExport};

use super::state::{Mode, absolute};
use crate::failure::Failure;

/// The engine, wherever it is.
pub(super) enum Owner {
    Here(Box<Engine>),
    Served(Box<Served>),
}

/// A file that is served: a link to where it is mounted.
pub(super) struct Served {
    export: FuseExport,
    directory: PathBuf,
    link: PathBuf,
}

impl Owner {
    /// Serves the array as `file`, if there is to be one.
    pub(super) fn new(engine: Engine, file: Option<&Path>, mode: Mode) -> Result<Self, Failure> {
        let Some(file) = file else { return Ok(Self::Here(Box::new(engine))) };
        let name = format!("raidlab-array-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let failed = |path: &Path, error: std::io::Error| {
            Failure::failed(format!("{}: {error}", path.display()))
        };
        fs::create_dir(&directory).map_err(|error| failed(&directory, error))?;
        let cache = if mode == Mode::Read { ExportCache::ReadOnly } else { ExportCache::Kept };
        let export = FuseExport::new(engine, &directory, cache).map_err(|error| {
            // The first error is the one to tell.
            let _ = fs::remove_dir(&directory);
            Failure::failed(error)
        })?;
        let link = std::path::absolute(file).unwrap_or_else(|_| absolute(file));
        if let Err(error) = symlink(export.file(), &link) {
            drop(export);
            let _ = fs::remove_dir(&directory);
            return Err(failed(&link, error));
        }
        Ok(Self::Served(Box::new(Served { export, directory, link })))
    }

    /// The file that is served.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Self::Here(_) => None,
            Self::Served(served) => Some(&served.link),
        }
    }

    /// Does something with the engine, where it is. What is opened for it is opened there.
    pub(super) fn with<R: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Engine) -> R + Send + 'static,
    ) -> Result<R, EngineError> {
        match self {
            Self::Here(engine) => Ok(work(engine)),
            Self::Served(served) => served.export.with_engine(work),
        }
    }

    /// Has the engine work for a while, if nobody else does.
    pub(super) fn work(&mut self, limit: Duration) -> Result<(), EngineError> {
        match self {
            Self::Here(engine) => engine.settle(limit),
            Self::Served(_) => Ok(()),
        }
    }

    /// Ends serving, then stops the array: everything durable, marked clean.
    pub(super) fn end(&mut self, mode: Mode) -> Result<(), EngineError> {
        let stop = move |engine: &mut Engine| match mode {
            Mode::Read => Ok(()),
            Mode::Overlay | Mode::Write => engine.stop(),
        };
        match self {
            Self::Here(engine) => stop(engine),
            Self::Served(served) => served.export.end(stop)?,
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // What is left of them is named by whoever finds them in the way.
        let _ = fs::remove_file(&self.link);
        let _ = fs::remove_dir(&self.directory);
    }
}
