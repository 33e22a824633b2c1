//! A job with its sizes worked out: what one of its processes does, and on which bytes of which files.

use std::sync::Arc;

use raidlab_core::Size;

use super::options::Job;
use super::value::Amount;
use crate::error::{WorkloadError, WorkloadErrorKind};
use crate::op::FilePath;
use crate::plan::Setting;
use raidlab_random::mix;

/// A file of a process, and the part of it that is read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) path: FilePath,
    /// The first byte.
    pub(super) offset: u64,
    /// How many.
    pub(super) len: u64,
}

impl Extent {
    pub(super) fn end(&self) -> u64 {
        self.offset + self.len
    }
}

/// What one process does.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Task {
    pub(super) job: Arc<Job>,
    /// Which job of the file, from 0.
    pub(super) index: usize,
    /// Which copy of the job file.
    pub(super) copy: u32,
    /// Which of the job's `numjobs`.
    pub(super) clone: u32,
    /// The reporting group.
    pub(super) group: u32,
    /// How many walls stand before it.
    pub(super) wave: u32,
    pub(super) files: Vec<Extent>,
    /// Bytes of one pass over the files.
    pub(super) pass: u64,
    /// Bytes of one loop: `io_size`, or the size.
    pub(super) total: u64,
    pub(super) seed: u64,
    /// Seeds of what is written to each file.
    pub(super) contents: Vec<u64>,
}

fn wrong(job: &Job, key: &str, reason: impl std::fmt::Display) -> WorkloadError {
    let reason = format!("of job `{}`: {reason}", job.name);
    WorkloadError::new(WorkloadErrorKind::Parameter, key, reason)
}

/// The job's parts of its files with their sizes, and the bytes of one pass.
fn lengths(
    job: &Job,
    setting: &Setting,
    clone: u32,
) -> Result<(u64, Vec<u64>, u64), WorkloadError> {
    let count = files_of(job);
    let block = job.smallest_block();
    let whole = job.filesize.or(setting.space.map(|space| space / count));
    let increment = job.offset_increment.saturating_mul(clone.into());
    let offset = match (job.offset, whole) {
        (None, _) => 0,
        (Some(Amount::Bytes(bytes)), _) => bytes,
        (Some(Amount::Percent(percent)), Some(whole)) => {
            part(whole, percent).next_multiple_of(block)
        }
        (Some(Amount::Percent(percent)), None) => {
            let reason = format!("{percent}% of a file whose size nobody gives; add filesize=");
            return Err(wrong(job, "offset", reason));
        }
    };
    let offset = offset.saturating_add(increment);
    let beyond = |whole: u64| wrong(job, "offset", format!("lies behind the {}", Size(whole)));
    let mut lens = match (job.filesize, job.size) {
        (None, Some(Amount::Bytes(size))) => {
            let each = size / count;
            let larger = (size - each * count) / block;
            (0..count).map(|file| each + if file < larger { block } else { 0 }).collect()
        }
        _ => {
            let Some(whole) = whole else {
                let reason = "is needed here: there is no file or device whose size it could be";
                return Err(wrong(job, "size", reason));
            };
            let len = whole.checked_sub(offset).ok_or_else(|| beyond(whole))?;
            vec![len; count as usize]
        }
    };
    if let Some(Amount::Percent(percent)) = job.size {
        for len in &mut lens {
            let most = part(*len + offset, percent).min(*len);
            *len = most - most % block;
        }
    }
    let all = lens.iter().fold(0u64, |all, len| all.saturating_add(*len));
    let size = match job.size {
        Some(Amount::Bytes(size)) => size.min(all),
        _ => all,
    };
    if size < block {
        let reason =
            format!("a block of {} is larger than the size of {}", Size(block), Size(size));
        return Err(wrong(job, "bs", reason));
    }
    Ok((offset, lens, size))
}

fn part(whole: u64, percent: u64) -> u64 {
    (u128::from(whole) * u128::from(percent) / 100) as u64
}

/// How many files each process of a job has.
pub(super) fn files_of(job: &Job) -> u64 {
    match job.filenames.len() {
        0 => job.nrfiles.unwrap_or(1),
        names => names as u64,
    }
}

/// The names of the files, with the mark of the copy where there are several.
fn names(job: &Job, setting: &Setting, copy: u32, clone: u32) -> Vec<FilePath> {
    let own = |file: u64| {
        let format = &job.filename_format;
        let name = format.replace("$jobname", &job.name.replace('/', "_"));
        name.replace("$jobnum", &clone.to_string()).replace("$filenum", &file.to_string())
    };
    let names: Vec<String> = match job.filenames.len() {
        0 => (0..files_of(job)).map(own).collect(),
        _ => job.filenames.clone(),
    };
    let placed = |name: String| {
        let below = match &job.directory {
            Some(directory) => format!("{directory}/{name}"),
            None => name,
        };
        FilePath::target(if setting.copies > 1 { format!("copy{copy}.{below}") } else { below })
    };
    names.into_iter().map(placed).collect()
}

/// Every process of the job file, copy by copy, job by job.
pub(super) fn tasks(jobs: &[Arc<Job>], setting: &Setting) -> Result<Vec<Task>, WorkloadError> {
    let mut tasks = Vec::new();
    for copy in 0..setting.copies {
        for (index, (job, place)) in jobs.iter().zip(places(jobs)).enumerate() {
            for clone in 0..job.numjobs {
                let (offset, lens, pass) = lengths(job, setting, clone)?;
                let total = match job.io_size {
                    None => pass,
                    Some(Amount::Bytes(bytes)) => bytes,
                    Some(Amount::Percent(percent)) => part(pass, percent),
                };
                let files = names(job, setting, copy, clone).into_iter().zip(lens);
                let numbers = [copy.into(), index as u64, clone.into()];
                let base = if job.randrepeat { job.randseed } else { setting.seed };
                tasks.push(Task {
                    job: job.clone(),
                    index,
                    copy,
                    clone,
                    group: place.group,
                    wave: place.wave,
                    files: files.map(|(path, len)| Extent { path, offset, len }).collect(),
                    pass,
                    total,
                    seed: mix(&[base, numbers[0], numbers[1], numbers[2]]),
                    contents: Vec::new(),
                });
            }
        }
    }
    Ok(tasks)
}

/// Where a job stands among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Its reporting group: `stonewall` and `new_group` begin another one.
    pub(super) group: u32,
    /// How many walls stand before it.
    pub(super) wave: u32,
}

/// The places of the jobs. A wall before the first job is none.
pub(super) fn places(jobs: &[Arc<Job>]) -> Vec<Place> {
    let mut place = Place { group: 0, wave: 0 };
    let mut places = Vec::new();
    for (index, job) in jobs.iter().enumerate() {
        if index > 0 {
            place.wave += u32::from(job.stonewall);
            place.group += u32::from(job.stonewall || job.new_group);
        }
        places.push(place);
    }
    places
}

/// The jobs with their sizes changed so that all processes together have `bytes`; sizes stay multiples
/// of the block, and a job without a size is given as much as the others have on average.
pub(super) fn scaled(jobs: &[Arc<Job>], bytes: u64) -> Vec<Arc<Job>> {
    let own = |job: &Job| match (job.size, job.filesize) {
        (Some(Amount::Bytes(size)), _) => Some(size),
        (_, Some(size)) => Some(size.saturating_mul(files_of(job))),
        _ => None,
    };
    let known: Vec<u64> = jobs.iter().filter_map(|job| own(job)).collect();
    let sum: u128 = known.iter().map(|size| u128::from(*size)).sum();
    let usual = sum.checked_div(known.len() as u128).unwrap_or(1).max(1) as u64;
    let weight = |job: &Job| own(job).unwrap_or(usual).max(1);
    let all: u128 = jobs.iter().map(|job| u128::from(weight(job)) * u128::from(job.numjobs)).sum();
    let all = all.max(1);
    let scaled = |job: &Arc<Job>| {
        let block = job.largest_block();
        let by = |size: u64| {
            let exact = u128::from(size) * u128::from(bytes) / all;
            u64::try_from(exact).unwrap_or(u64::MAX) / block * block
        };
        let least = block * files_of(job);
        let mut new = Job::clone(job);
        new.size = match job.size {
            Some(Amount::Percent(percent)) if job.filesize.is_some() => {
                Some(Amount::Percent(percent))
            }
            _ => Some(Amount::Bytes(by(weight(job)).max(least))),
        };
        new.filesize = job.filesize.map(|size| by(size).max(block));
        new.offset_increment = by(job.offset_increment);
        new.offset = job.offset.map(|offset| match offset {
            Amount::Bytes(offset) => Amount::Bytes(by(offset)),
            // Nothing is left that it could be a part of.
            Amount::Percent(_) if job.filesize.is_none() => Amount::Bytes(0),
            percent => percent,
        });
        new.io_size = job.io_size.map(|size| match size {
            Amount::Bytes(size) => Amount::Bytes(by(size).max(block)),
            percent => percent,
        });
        Arc::new(new)
    };
    jobs.iter().map(scaled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(pairs: &[(&str, &str)]) -> Arc<Job> {
        let mut job = Job { name: "j".into(), ..Job::default() };
        for (key, value) in pairs {
            job.set(key, Some(value)).expect("known").expect("right");
        }
        Arc::new(job)
    }

    fn extents(
        pairs: &[(&str, &str)],
        space: Option<u64>,
    ) -> Result<(Vec<(u64, u64)>, u64), String> {
        let setting = Setting { space, ..Setting::new(1, 1) };
        let tasks = tasks(&[job(pairs)], &setting).map_err(|error| error.to_string())?;
        let task = tasks.last().expect("one job");
        Ok((task.files.iter().map(|file| (file.offset, file.len)).collect(), task.pass))
    }

    /// What fio 3.33 does with the same options, seen by tracing its calls.
    #[test]
    fn sizes_are_worked_out_as_fio_does() {
        for (pairs, space, files, pass) in [
            (&[("size", "10k")][..], None, &[(0, 10_240)][..], 10_240),
            (&[("size", "40k"), ("nrfiles", "3")], None, &[(0, 13_653); 3], 40_959),
            (&[("size", "16k"), ("offset", "6k")], None, &[(6144, 16_384)], 16_384),
            (&[("size", "32k"), ("filesize", "16k")], None, &[(0, 16_384)], 16_384),
            (&[("size", "8k"), ("filesize", "16k")], None, &[(0, 16_384)], 8192),
            (&[("size", "50%"), ("filesize", "16k")], None, &[(0, 8192)], 8192),
            (&[("filesize", "16k"), ("offset", "30%")], None, &[(8192, 8192)], 8192),
            (
                &[("size", "8k"), ("numjobs", "3"), ("offset_increment", "1m")],
                None,
                &[(2 << 20, 8192)],
                8192,
            ),
            (&[], Some(1 << 20), &[(0, 1 << 20)], 1 << 20),
            (&[("size", "30%")], Some(1 << 20), &[(0, 311_296)], 311_296),
            // Of the whole file, and no more than lies behind the offset.
            (
                &[("size", "30%"), ("filesize", "1m"), ("offset", "512k")],
                None,
                &[(512 << 10, 311_296)],
                311_296,
            ),
            (
                &[("size", "60%"), ("filesize", "1m"), ("offset", "512k")],
                None,
                &[(512 << 10, 512 << 10)],
                512 << 10,
            ),
        ] {
            assert_eq!(extents(pairs, space), Ok((files.to_vec(), pass)), "{pairs:?}");
        }
        for (pairs, words) in [
            (&[][..], "size: of job `j`: is needed"),
            (&[("size", "1k")], "bs: of job `j`: a block of 4KiB is larger than the size of 1KiB"),
            (&[("size", "1m"), ("offset", "10%")], "offset: of job `j`: 10%"),
            (&[("filesize", "1m"), ("offset", "2m")], "offset: of job `j`: lies behind the 1MiB"),
        ] {
            let error = extents(pairs, None).expect_err(words);
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn names_are_those_of_fio() {
        let paths = |pairs: &[(&str, &str)], copies| -> Vec<String> {
            let all = tasks(&[job(pairs)], &Setting::new(copies, 1)).expect("right");
            all.iter().flat_map(|task| &task.files).map(|file| file.path.to_string()).collect()
        };
        let size = ("size", "1m");
        assert_eq!(
            paths(&[size, ("numjobs", "2"), ("nrfiles", "2")], 1),
            ["j.0.0", "j.0.1", "j.1.0", "j.1.1"]
        );
        assert_eq!(
            paths(&[size, ("directory", "d/e"), ("filename", "a:b")], 1),
            ["d/e/a", "d/e/b"]
        );
        assert_eq!(paths(&[size, ("directory", "d")], 2), ["copy0.d/j.0.0", "copy1.d/j.0.0"]);
        assert_eq!(paths(&[size, ("filename_format", "x.$filenum.$jobname")], 1), ["x.0.j"]);
    }

    #[test]
    fn groups_and_walls() {
        let jobs = [
            job(&[("stonewall", "")]),
            job(&[]),
            job(&[("new_group", "")]),
            job(&[("stonewall", "")]),
        ];
        let found: Vec<(u32, u32)> =
            places(&jobs).iter().map(|one| (one.group, one.wave)).collect();
        assert_eq!(found, [(0, 0), (0, 0), (1, 0), (2, 1)]);
    }

    #[test]
    fn seeds_repeat_unless_told_otherwise() {
        let seeds = |pairs: &[(&str, &str)], seed| -> Vec<u64> {
            let all = tasks(&[job(pairs)], &Setting::new(2, seed)).expect("right");
            all.iter().map(|task| task.seed).collect()
        };
        let own = [("size", "1m"), ("numjobs", "2")];
        assert_eq!(seeds(&own, 1), seeds(&own, 2));
        let mut four = seeds(&own, 1);
        four.sort_unstable();
        four.dedup();
        assert_eq!(four.len(), 4);
        let drawn = [("size", "1m"), ("randrepeat", "0")];
        assert_ne!(seeds(&drawn, 1), seeds(&drawn, 2));
        assert_ne!(seeds(&own[..1], 1), seeds(&[own[0], ("randseed", "7")], 1));
    }

    #[test]
    fn sizes_are_scaled_together() {
        let jobs = [
            job(&[("size", "3g"), ("io_size", "6g"), ("bs", "64k")]),
            job(&[("size", "1g"), ("offset", "1g"), ("numjobs", "3")]),
            job(&[("nrfiles", "4")]),
        ];
        // Weights 3 + 3 x 1 + 2 (the mean of 3 and 1) = 8 GiB.
        let small = scaled(&jobs, 8 << 20);
        let bytes = |size| Some(Amount::Bytes(size));
        assert_eq!((small[0].size, small[0].io_size), (bytes(3 << 20), bytes(6 << 20)));
        assert_eq!((small[1].size, small[1].offset), (bytes(1 << 20), bytes(1 << 20)));
        assert_eq!(small[2].size, bytes(2 << 20));
        assert_eq!(scaled(&jobs, 1)[2].size, bytes(4 * 4096));
    }
}
