//! A rebuild by md, begun and watched by what the kernel says of it under `/sys/block/*/md`.

use std::fs::{self, File};
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use raidlab_core::{Nanos, SECTOR_BYTES};
use raidlab_study::Rebuild;
use rustix::event::{PollFd, PollFlags, poll};

use crate::inside::now;
use crate::job::RebuildJob;

/// A rebuild that has begun.
pub(crate) struct Watched {
    directory: PathBuf,
    /// The names of fresh drives, and how many sectors were written to them before.
    fresh: Vec<String>,
    written_before: u64,
    began: u64,
    /// When it ended, once it has.
    ended: Arc<Mutex<Option<u64>>>,
    most: Option<u64>,
}

impl Watched {
    /// Adds the fresh drive, or lets a member fail that has a hot spare: md begins.
    pub(crate) fn begin(job: &RebuildJob) -> Result<Self, String> {
        let directory = Path::new("/sys/block").join(&job.array).join("md");
        if let Some(most) = job.most {
            write(&directory, "sync_max", &(most / SECTOR_BYTES).to_string())?;
        }
        let began = now();
        match (&job.fails, job.fresh.first()) {
            (Some(member), _) => mdadm(&job.array, "--fail", member)?,
            (None, Some(fresh)) => mdadm(&job.array, "--add", fresh)?,
            (None, None) => return Err("neither a fresh drive nor one that fails".to_owned()),
        }
        let ended = Arc::new(Mutex::new(None));
        let (told, watched) = (ended.clone(), directory.clone());
        std::thread::spawn(move || {
            if wait_until(&watched.join("sync_action"), |text| text == "idle").is_ok()
                && let Ok(mut told) = told.lock()
            {
                *told = Some(now());
            }
        });
        let fresh = job.fresh.clone();
        let written_before = written(&fresh)?;
        Ok(Self { directory, fresh, written_before, began, ended, most: job.most })
    }

    /// What it did up to `time` on the clock of the guest.
    pub(crate) fn up_to(self, time: u64) -> Result<Rebuild, String> {
        let ended = self.ended.lock().ok().and_then(|ended| *ended);
        if let Some(ended) = ended.filter(|ended| *ended <= time) {
            return self.whole(ended);
        }
        let elapsed = Nanos(time.saturating_sub(self.began));
        // md says seldom how far it is: what the fresh drive has taken tells it to the request.
        let size: u64 = read(&self.directory, "component_size")?.parse().unwrap_or(u64::MAX);
        let written = written(&self.fresh)?.saturating_sub(self.written_before) * SECTOR_BYTES;
        let done = written as f64 / (size.saturating_mul(1024)) as f64;
        // Its last superblocks are part of it.
        Ok(Rebuild { elapsed, done: done.min(0.999_999) })
    }

    /// Waits for its end, or until as much is done as was asked for.
    pub(crate) fn wait(self) -> Result<Rebuild, String> {
        let Some(most) = self.most else {
            wait_until(&self.directory.join("sync_action"), |text| text == "idle")?;
            let ended = now();
            return self.whole(ended);
        };
        let mut share = None;
        wait_until(&self.directory.join("sync_completed"), |text| {
            let done = done_of(text);
            share = done.map(|(done, of)| done as f64 / of.max(1) as f64);
            let is_whole = || read(&self.directory, "degraded").is_ok_and(|text| text == "0");
            is_far_enough(done, most / SECTOR_BYTES, is_whole)
        })?;
        let ended = now();
        match share {
            Some(done) => Ok(Rebuild { elapsed: Nanos(ended - self.began), done }),
            None => self.whole(ended),
        }
    }

    fn whole(self, ended: u64) -> Result<Rebuild, String> {
        match read(&self.directory, "degraded")?.as_str() {
            "0" => Ok(Rebuild { elapsed: Nanos(ended - self.began), done: 1.0 }),
            missing => Err(format!("the rebuild ended and {missing} members are missing")),
        }
    }
}

/// Whether as many sectors are done as were asked for. Where md says that nothing goes on it has not begun yet, or all
/// of it is done.
fn is_far_enough(done: Option<(u64, u64)>, sectors: u64, is_whole: impl FnOnce() -> bool) -> bool {
    done.map_or_else(is_whole, |(done, _)| done >= sectors)
}

/// How many sectors md says are done, and of how many: `123 / 456`; `None` where nothing goes on.
fn done_of(text: &str) -> Option<(u64, u64)> {
    let (done, of) = text.split_once(" / ")?;
    Some((done.parse().ok()?, of.parse().ok()?))
}

fn read(directory: &Path, name: &str) -> Result<String, String> {
    let path = directory.join(name);
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(text.trim().to_owned())
}

fn mdadm(array: &str, what: &str, device: &str) -> Result<(), String> {
    let mut command = Command::new("mdadm");
    command.arg("--quiet").arg(Path::new("/dev").join(array)).arg(what);
    command.arg(Path::new("/dev").join(device)).stdin(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("mdadm {what} {device}: {status}")),
        Err(error) => Err(format!("mdadm: {error}")),
    }
}

/// Sectors written to drives.
fn written(drives: &[String]) -> Result<u64, String> {
    let of = |drive: &String| {
        let text = read(&Path::new("/sys/block").join(drive), "stat")?;
        let sectors: Option<u64> =
            text.split_whitespace().nth(6).and_then(|word| word.parse().ok());
        sectors.ok_or_else(|| format!("/sys/block/{drive}/stat: {text}"))
    };
    drives.iter().map(of).sum()
}

fn write(directory: &Path, name: &str, text: &str) -> Result<(), String> {
    let path = directory.join(name);
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Waits until a file of the kernel's, which it says to have changed, holds what is wanted.
fn wait_until(path: &Path, mut is_wanted: impl FnMut(&str) -> bool) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut file = File::open(path).map_err(failed)?;
    loop {
        let mut text = String::new();
        file.rewind().and_then(|()| file.read_to_string(&mut text)).map_err(failed)?;
        if is_wanted(text.trim()) {
            return Ok(());
        }
        let mut polled = [PollFd::new(&file, PollFlags::PRI)];
        poll(&mut polled, None).map_err(|error| failed(error.into()))?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rebuild of 8 TB whose beginning md had not told yet was taken for one that had ended and failed.
    #[test]
    fn a_rebuild_that_has_not_begun_is_not_over() {
        let is_over = |text, is_whole| is_far_enough(done_of(text), 8, || is_whole);
        assert!(!is_over("none", false) && is_over("none", true));
        assert!(!is_over("delayed", false));
        assert!(!is_over("7 / 16", true) && is_over("8 / 16", false));
    }

    #[test]
    fn the_kernel_says_how_much_is_done() {
        assert_eq!(done_of("512 / 2048"), Some((512, 2_048)));
        assert_eq!(done_of("none"), None);
        assert_eq!(done_of("delayed"), None);
    }
}
