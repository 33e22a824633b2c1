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

/// A rebuild begins with all that md may have under way at once, 32 MiB on raid10. By what is done from then on its
/// pace is reckoned.
const SETTLED: std::time::Duration = std::time::Duration::from_secs(1);

/// How far md says that it is, in KiB of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Progress {
    done: u64,
    of: u64,
}

impl Progress {
    /// The share of what was left then that was done since.
    fn share_since(self, then: Self) -> f64 {
        let left = self.of.saturating_sub(then.done).max(1);
        self.done.saturating_sub(then.done) as f64 / left as f64
    }
}

/// How far a rebuild is by `/proc/mdstat`, which counts neither what is under way nor what others write; `None` where
/// there is none.
fn progress(array: &str) -> Result<Option<Progress>, String> {
    let text = fs::read_to_string("/proc/mdstat").map_err(|error| format!("mdstat: {error}"))?;
    Ok(progress_in(&text, array))
}

/// In lines of `md0 : active raid5 ...` and, below, `[=>...]  recovery =  8.1% (85504/1046528) finish=0.1min ...`.
fn progress_in(text: &str, array: &str) -> Option<Progress> {
    let of_array = text.lines().skip_while(|line| line.split(' ').next() != Some(array));
    let own = of_array.skip(1).take_while(|line| line.starts_with(' '));
    let (_, told) = own.filter_map(|line| line.split_once("recovery =")).next()?;
    let (_, told) = told.split_once('(')?;
    let (told, _) = told.split_once(')')?;
    let (done, of) = told.split_once('/')?;
    Some(Progress { done: done.parse().ok()?, of: of.parse().ok()? })
}

/// A rebuild that has begun.
pub(crate) struct Watched {
    directory: PathBuf,
    array: String,
    began: u64,
    /// How far it was after [`SETTLED`], and when.
    settled: Arc<Mutex<Option<(u64, Progress)>>>,
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
        let settled = Arc::new(Mutex::new(None));
        let (told, array) = (settled.clone(), job.array.clone());
        std::thread::spawn(move || {
            std::thread::sleep(SETTLED);
            if let (Ok(progress), Ok(mut told)) = (progress(&array), told.lock()) {
                *told = progress.map(|progress| (now(), progress));
            }
        });
        let array = job.array.clone();
        Ok(Self { directory, array, began, settled, ended, most: job.most })
    }

    /// What it did up to `time` on the clock of the guest.
    pub(crate) fn up_to(self, time: u64) -> Result<Rebuild, String> {
        let ended = self.ended.lock().ok().and_then(|ended| *ended);
        if let Some(ended) = ended.filter(|ended| *ended <= time) {
            return self.whole(ended);
        }
        let settled = self.settled.lock().ok().and_then(|settled| *settled);
        let (since, before) = settled.unwrap_or((self.began, Progress { done: 0, of: u64::MAX }));
        let elapsed = Nanos(time.saturating_sub(since));
        // Its last superblocks are part of it.
        let done = progress(&self.array)?.map_or(0.0, |now| now.share_since(before)).min(0.999_999);
        Ok(Rebuild { elapsed, done })
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

    /// What a load wrote to the fresh drive was counted as rebuilt, 16 times as much as was.
    #[test]
    fn a_rebuild_is_as_far_as_md_says_since_it_settled() {
        let text = "Personalities : [raid10] [raid6] [raid5]\n\
                    md1 : active raid5 sdd[3] sdc[1] sdb[0]\n\
                    \x20     4096 blocks super 1.2\n\
                    \x20     [=>.......]  recovery =  8.1% (85504/1046528) finish=0.1min speed=8K/sec\n\n\
                    md0 : active raid10 sde[4] sdc[2]\n\
                    \x20     50298880 blocks super 1.2 512K chunks 2 near-copies [4/3] [UUU_]\n\
                    \x20     [>........]  recovery =  0.1% (32768/25149440) finish=25.5min speed=16384K/sec\n\
                    \x20     bitmap: 0/1 pages [0KB], 65536KB chunk\n\n\
                    unused devices: <none>\n";
        let settled = progress_in(text, "md0").expect("a rebuild");
        assert_eq!(settled, Progress { done: 32_768, of: 25_149_440 });
        assert_eq!(progress_in(text, "md"), None);
        assert_eq!(progress_in("md0 : active raid1\n      4096 blocks\n\nunused\n", "md0"), None);
        let later = Progress { done: 32_768 + 25_116, of: 25_149_440 };
        assert!((later.share_since(settled) - 0.001).abs() < 1e-6);
    }

    #[test]
    fn the_kernel_says_how_much_is_done() {
        assert_eq!(done_of("512 / 2048"), Some((512, 2_048)));
        assert_eq!(done_of("none"), None);
        assert_eq!(done_of("delayed"), None);
    }
}
