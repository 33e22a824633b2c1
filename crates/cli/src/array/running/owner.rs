//! Who has the engine: this thread, or the one that serves the array as a file or to NBD clients.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use raidlab_core::contract::{Event, Refusal};
use raidlab_engine::{Engine, EngineError, LowerArray};
use raidlab_report::number;
use raidlab_targets::{ExportCache, FuseExport, NbdReport, NbdServer};

use super::Started;
use super::floors::Lower;
use super::state::{Mode, Names, absolute};
use crate::failure::Failure;

/// The engine, wherever it is.
pub(super) enum Owner {
    Here(Box<Engine>),
    Served(Box<Served>),
    Nbd(NbdOwner),
    /// It is a member of another array, or was.
    Lower(LowerArray),
}

/// How an array ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Everything is durable, and it is marked clean.
    InOrder,
    /// More members were lost than the level survives, so that nothing could be written.
    Lost,
}

/// How an array ended, and what happened to it that nobody has heard of.
pub(super) struct End {
    pub(super) ended: Ended,
    pub(super) events: Vec<Event>,
}

impl End {
    /// In words. What failed by the end was found by the last flushes and superblocks.
    pub(super) fn told(&self) -> String {
        if self.ended == Ended::Lost {
            let told = "stopped; more members are lost than the level survives, so nothing was marked clean";
            return told.into();
        }
        let failed = self.events.iter().filter_map(|event| match event {
            Event::MemberFailed(member) => Some(member.to_string()),
            _ => None,
        });
        let failed: Vec<String> = failed.collect();
        match failed.as_slice() {
            [] => "stopped".into(),
            [one] => format!("stopped, degraded: member {one} failed"),
            several => format!("stopped, degraded: members {} failed", number::listed(several)),
        }
    }
}

/// An array of an NBD server.
pub(super) struct NbdOwner {
    /// Ends with the last array.
    server: Arc<NbdServer>,
    array: usize,
    uris: Vec<String>,
    /// Of the array that is served as a file, too.
    place: Option<Place>,
}

impl NbdOwner {
    pub(super) const fn new(
        server: Arc<NbdServer>,
        array: usize,
        uris: Vec<String>,
        place: Option<Place>,
    ) -> Self {
        Self { server, array, uris, place }
    }

    /// Takes the file away, if there is one, and ends serving the array; then it is stopped. While somebody uses the
    /// file that is refused and nothing ends, unless it is to be at any price.
    fn end(
        &self,
        at_any_price: bool,
        stop: impl FnOnce(&mut Engine) -> Result<End, EngineError> + Send + 'static,
    ) -> Result<End, EngineError> {
        let unmounted = match &self.place {
            Some(_) => self.server.unmount(),
            None => Ok(()),
        };
        if !at_any_price {
            unmounted?;
            return self.server.end(self.array, stop)?;
        }
        let ended = self.server.end(self.array, stop)??;
        unmounted.map(|()| ended)
    }
}

/// A file that is served.
pub(super) struct Served {
    export: FuseExport,
    /// Goes when nothing is mounted there any more.
    place: Place,
    /// It was told that somebody else has unmounted it.
    is_told: bool,
}

/// A directory on which a file is mounted, and the link to it that was asked for. Both go with it.
pub(super) struct Place {
    directory: PathBuf,
    /// With where it leads.
    link: Option<(PathBuf, PathBuf)>,
}

impl Place {
    pub(super) fn new() -> Result<Self, Failure> {
        let name = format!("raidlab-array-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir(&directory).map_err(|error| failed(&directory, &error))?;
        Ok(Self { directory, link: None })
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes `file` a link to what is served.
    pub(super) fn link(&mut self, served: &Path, file: &Path) -> Result<(), Failure> {
        let link = std::path::absolute(file).unwrap_or_else(|_| absolute(file));
        symlink(served, &link).map_err(|error| failed(&link, &error))?;
        self.link = Some((link, served.to_owned()));
        Ok(())
    }

    fn unlink(&mut self) {
        // What is left is named by whoever finds it in the way. Not what somebody else has put there since.
        if let Some((link, served)) = self.link.take()
            && fs::read_link(&link).is_ok_and(|leads| leads == served)
        {
            let _ = fs::remove_file(link);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.unlink();
        let _ = fs::remove_dir(&self.directory);
    }
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("{}: {error}", path.display()))
}

impl Owner {
    /// Serves an array as `file`, if there is to be one. It is made where it will be: the thread that serves it has
    /// descriptors of its own.
    pub(super) fn new(
        make: impl FnOnce() -> Result<Started, Failure> + Send + 'static,
        file: Option<&Path>,
        is_read: bool,
    ) -> Result<(Self, Names, Vec<Lower>), Failure> {
        let Some(file) = file else {
            let Started { engine, names, lower } = make()?;
            return Ok((Self::Here(Box::new(engine)), names, lower));
        };
        let (told, names) = channel();
        let make = move || {
            let (engine, names) = match make() {
                Ok(Started { engine, names, lower }) => (Ok(engine), Ok((names, lower))),
                Err(failure) => (Err(EngineError::cancelled("serve the array")), Err(failure)),
            };
            // Somebody waits for it as long as the process lives.
            let _ = told.send(names);
            engine
        };
        // What began in order ends so, also where it cannot be served.
        let last = move |engine: &mut Engine| {
            if !is_read {
                // Why it is not served is what is told.
                let _ = engine.stop();
            }
        };
        let mut place = Place::new()?;
        let cache = if is_read { ExportCache::ReadOnly } else { ExportCache::Kept };
        let export = FuseExport::of(make, last, place.directory(), cache);
        let ((names, lower), export) = match names.try_recv() {
            Ok(Ok(named)) => (named, export),
            // The first error is the one to tell.
            Ok(Err(failure)) => return Err(failure),
            Err(_) => {
                let error = export.err().map(Failure::failed);
                return Err(error.unwrap_or_else(|| Failure::failed("the array was not made")));
            }
        };
        let linked = export.map_err(Failure::failed).and_then(|export| {
            place.link(&export.file(), file)?;
            Ok(export)
        });
        match linked {
            Ok(export) => {
                let served = Served { export, place, is_told: false };
                Ok((Self::Served(Box::new(served)), names, lower))
            }
            Err(failure) => {
                Lower::abandon(lower);
                Err(failure)
            }
        }
    }

    /// Whether somebody else has unmounted its file since this was asked last. The link goes then: what is written by
    /// one that leads nowhere would become a file beside.
    pub(super) fn has_lost_its_file(&mut self) -> bool {
        let Self::Served(served) = self else { return false };
        if served.is_told || served.export.is_mounted() {
            return false;
        }
        served.is_told = true;
        served.place.unlink();
        true
    }

    /// The file that is served.
    pub(super) fn file(&self) -> Option<&Path> {
        let place = match self {
            Self::Here(_) | Self::Lower(_) => None,
            Self::Nbd(NbdOwner { place, .. }) => place.as_ref(),
            Self::Served(served) => Some(&served.place),
        };
        place?.link.as_ref().map(|(link, _)| link.as_path())
    }

    /// Where NBD clients find it.
    pub(super) fn uris(&self) -> &[String] {
        match self {
            Self::Nbd(NbdOwner { uris, .. }) => uris,
            Self::Here(_) | Self::Served(_) | Self::Lower(_) => &[],
        }
    }

    /// What its NBD clients do, if it has an NBD server that answers.
    pub(super) fn report(&self) -> Option<NbdReport> {
        match self {
            Self::Nbd(NbdOwner { server, array, .. }) => server.report(*array).ok(),
            Self::Here(_) | Self::Served(_) | Self::Lower(_) => None,
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
            Self::Nbd(NbdOwner { server, array, .. }) => server.with_engine(*array, work),
            Self::Lower(array) => array.with(work),
        }
    }

    /// Has the engine work for a while, if nobody else does.
    pub(super) fn work(&mut self, limit: Duration) -> Result<(), EngineError> {
        match self {
            Self::Here(engine) => engine.settle(limit),
            Self::Served(_) | Self::Nbd(_) | Self::Lower(_) => Ok(()),
        }
    }

    /// Ends serving, then stops the array: everything durable, marked clean. At any price also under who uses the
    /// file that is served beside NBD, which is told as an error then. Of an array that is lost nothing is written any
    /// more: it ends as it is.
    pub(super) fn end(&mut self, mode: Mode, at_any_price: bool) -> Result<End, EngineError> {
        let stop = move |engine: &mut Engine| {
            let ended = match mode {
                Mode::Read => Ended::InOrder,
                Mode::Overlay | Mode::Write => match engine.stop() {
                    Err(error) if error.refusal() == Some(Refusal::ArrayFailed) => Ended::Lost,
                    stopped => stopped.map(|()| Ended::InOrder)?,
                },
            };
            // The engine may go with this.
            Ok(End { ended, events: engine.take_events() })
        };
        match self {
            Self::Here(engine) => stop(engine),
            Self::Served(served) => served.export.end(stop)?,
            Self::Nbd(owner) => owner.end(at_any_price, stop),
            Self::Lower(array) => array.with(stop)?,
        }
    }

    /// Whether an array above stands on it.
    pub(super) fn is_member(&self) -> bool {
        matches!(self, Self::Lower(array) if array.is_member())
    }
}

#[cfg(test)]
mod tests {
    use raidlab_core::MemberIndex;

    use super::*;

    #[test]
    fn an_end_names_the_members_that_failed_by_it() {
        let told = |ended, failed: &[u16]| {
            let events = failed.iter().map(|member| Event::MemberFailed(MemberIndex(*member)));
            End { ended, events: events.collect() }.told()
        };
        assert_eq!(told(Ended::InOrder, &[]), "stopped");
        assert_eq!(told(Ended::InOrder, &[3]), "stopped, degraded: member 3 failed");
        let three = "stopped, degraded: members 3, 0 and 1 failed";
        assert_eq!(told(Ended::InOrder, &[3, 0, 1]), three);
        assert!(told(Ended::Lost, &[0]).starts_with("stopped; more members are lost"));
    }
}
