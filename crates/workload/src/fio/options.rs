//! The options of a job: which there are, what they mean, which are refused.

use raidlab_core::Nanos;

use super::value::{self, Amount};
use crate::op::MOST_STARTED;

/// How reads and writes are handed to the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    /// Seek, then read or write: one at a time.
    Sync,
    /// At a place: one at a time.
    Positional,
    /// Up to `iodepth` at once.
    Queued,
    /// Nowhere.
    Null,
}

/// Every option of a job with its value; as fio has it where a file says nothing.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Job {
    pub(super) name: String,
    pub(super) description: Option<String>,
    /// The value of `rw`, as fio prints it.
    pub(super) pattern: &'static str,
    pub(super) reads: bool,
    pub(super) writes: bool,
    pub(super) random: bool,
    /// Bytes a sequential job skips after each operation; backwards when negative.
    pub(super) skip: i64,
    /// Bytes of a read and of a write.
    pub(super) blocks: [u64; 2],
    pub(super) size: Option<Amount>,
    pub(super) io_size: Option<Amount>,
    pub(super) filesize: Option<u64>,
    pub(super) filenames: Vec<String>,
    pub(super) directory: Option<String>,
    pub(super) filename_format: String,
    /// The name of the engine, as fio prints it.
    pub(super) engine_name: String,
    pub(super) engine: Engine,
    pub(super) iodepth: u32,
    pub(super) direct: bool,
    pub(super) sync: bool,
    pub(super) numjobs: u32,
    pub(super) runtime: Nanos,
    pub(super) time_based: bool,
    /// Room for files is reserved before the run.
    pub(super) allocates: bool,
    pub(super) ramp: Nanos,
    pub(super) start_delay: Nanos,
    pub(super) group_reporting: bool,
    pub(super) new_group: bool,
    pub(super) stonewall: bool,
    /// Reads of a hundred operations of a mixed job.
    pub(super) read_percent: u64,
    /// A flush after so many writes; 0 for none.
    pub(super) fsync: u64,
    pub(super) fdatasync: u64,
    pub(super) end_fsync: bool,
    pub(super) random_map: bool,
    pub(super) randrepeat: bool,
    pub(super) randseed: u64,
    /// The checksum that was asked for.
    pub(super) verify: Option<String>,
    pub(super) do_verify: bool,
    pub(super) offset: Option<Amount>,
    pub(super) offset_increment: u64,
    pub(super) nrfiles: Option<u64>,
    pub(super) loops: u64,
    pub(super) invalidate: bool,
    pub(super) number_ios: u64,
    pub(super) thinktime: Nanos,
    pub(super) thinktime_blocks: u64,
    pub(super) unlink: bool,
    pub(super) overwrite: bool,
    pub(super) zero_buffers: bool,
    pub(super) percentiles: Vec<f64>,
    /// The options as they were given, for the report; bare keys are left out there, as by fio.
    pub(super) given: Vec<(String, String)>,
}

/// The percentiles fio reports where nobody names others.
const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

impl Default for Job {
    fn default() -> Self {
        Self {
            name: String::new(),
            description: None,
            pattern: "read",
            reads: true,
            writes: false,
            random: false,
            skip: 0,
            blocks: [4096; 2],
            size: None,
            io_size: None,
            filesize: None,
            filenames: Vec::new(),
            directory: None,
            filename_format: "$jobname.$jobnum.$filenum".into(),
            engine_name: "psync".into(),
            engine: Engine::Positional,
            iodepth: 1,
            direct: false,
            sync: false,
            numjobs: 1,
            runtime: Nanos::ZERO,
            time_based: false,
            allocates: true,
            ramp: Nanos::ZERO,
            start_delay: Nanos::ZERO,
            group_reporting: false,
            new_group: false,
            stonewall: false,
            read_percent: 50,
            fsync: 0,
            fdatasync: 0,
            end_fsync: false,
            random_map: true,
            randrepeat: true,
            randseed: 0,
            verify: None,
            do_verify: true,
            offset: None,
            offset_increment: 0,
            nrfiles: None,
            loops: 1,
            invalidate: true,
            number_ios: 0,
            thinktime: Nanos::ZERO,
            thinktime_blocks: 1,
            unlink: false,
            overwrite: false,
            zero_buffers: false,
            percentiles: PERCENTILES.to_vec(),
            given: Vec::new(),
        }
    }
}

/// Every option there is, fio's second names included.
pub(super) const NAMES: &[&str] = &[
    "name",
    "description",
    "rw",
    "readwrite",
    "bs",
    "blocksize",
    "bsrange",
    "blocksize_range",
    "size",
    "io_size",
    "io_limit",
    "filesize",
    "filename",
    "directory",
    "filename_format",
    "ioengine",
    "iodepth",
    "direct",
    "buffered",
    "sync",
    "numjobs",
    "thread",
    "threads",
    "runtime",
    "timeout",
    "time_based",
    "ramp_time",
    "startdelay",
    "group_reporting",
    "new_group",
    "stonewall",
    "wait_for_previous",
    "rwmixread",
    "rwmixwrite",
    "fsync",
    "fdatasync",
    "end_fsync",
    "fsync_on_close",
    "norandommap",
    "randrepeat",
    "randseed",
    "verify",
    "do_verify",
    "verify_fatal",
    "offset",
    "offset_increment",
    "nrfiles",
    "nr_files",
    "file_service_type",
    "disable_slat",
    "scramble_buffers",
    "create_serialize",
    "create_fsync",
    "allow_file_create",
    "loops",
    "invalidate",
    "number_ios",
    "thinktime",
    "thinktime_blocks",
    "unlink",
    "overwrite",
    "fallocate",
    "create_on_open",
    "zero_buffers",
    "refill_buffers",
    "percentile_list",
    "clat_percentiles",
    "continue_on_error",
    "iodepth_batch",
    "iodepth_batch_submit",
    "iodepth_batch_complete",
    "iodepth_batch_complete_min",
];

type Answer = Result<(), String>;

impl Job {
    /// Sets an option; `None` when there is no such option here.
    pub(super) fn set(&mut self, key: &str, value: Option<&str>) -> Option<Answer> {
        if !NAMES.contains(&key) {
            return None;
        }
        self.given.retain(|(other, _)| other != key);
        self.given.extend(value.map(|value| (key.to_string(), value.to_string())));
        let text = value.unwrap_or_default();
        let answer = self
            .set_switch(key, value)
            .or_else(|| self.set_place(key, text))
            .or_else(|| self.set_number(key, text))
            .or_else(|| self.set_word(key, text))
            .or_else(|| only(key, text))?;
        Some(answer)
    }

    fn set_switch(&mut self, key: &str, value: Option<&str>) -> Option<Answer> {
        let (field, inverted) = match key {
            "direct" => (&mut self.direct, false),
            "buffered" => (&mut self.direct, true),
            "time_based" => (&mut self.time_based, false),
            "group_reporting" => (&mut self.group_reporting, false),
            "new_group" => (&mut self.new_group, false),
            "stonewall" | "wait_for_previous" => (&mut self.stonewall, false),
            "end_fsync" | "fsync_on_close" => (&mut self.end_fsync, false),
            "norandommap" => (&mut self.random_map, true),
            "randrepeat" => (&mut self.randrepeat, false),
            "do_verify" => (&mut self.do_verify, false),
            "invalidate" => (&mut self.invalidate, false),
            "unlink" => (&mut self.unlink, false),
            "overwrite" => (&mut self.overwrite, false),
            "zero_buffers" => (&mut self.zero_buffers, false),
            // Each process of a target is a thread, and every write has bytes of its own.
            "thread" | "threads" | "refill_buffers" => return Some(value::switch(value).map(drop)),
            _ => return None,
        };
        Some(value::switch(value).map(|on| *field = on != inverted))
    }

    fn set_place(&mut self, key: &str, text: &str) -> Option<Answer> {
        Some(match key {
            "bs" | "blocksize" => value::blocks(text, self.blocks).map(|new| self.blocks = new),
            "bsrange" | "blocksize_range" => match text.split_once('-') {
                Some((least, most)) if least == most => {
                    value::blocks(most, self.blocks).map(|new| self.blocks = new)
                }
                _ => {
                    Err(format!("`{text}`: blocks of different sizes are not supported; write bs="))
                }
            },
            // To fio a size of nothing is one that nobody gave.
            "size" => value::amount(text).map(|new| self.size = new.unless_none()),
            "io_size" | "io_limit" => {
                value::amount(text).map(|new| self.io_size = new.unless_none())
            }
            "filesize" if text.contains(['-', ',']) => {
                Err(format!("`{text}`: a range of sizes is not supported; write one size"))
            }
            "filesize" => value::bytes(text).map(|new| self.filesize = Some(new)),
            "filename" => {
                let names = value::names(text);
                let names: Result<Vec<String>, String> =
                    names.iter().map(|name| value::relative(name)).collect();
                names.map(|new| self.filenames = new)
            }
            "directory" if text.contains(':') => {
                Err(format!("`{text}`: a list of directories is not supported; write one"))
            }
            "directory" => value::relative(text).map(|new| self.directory = Some(new)),
            "filename_format" => format_of(text).map(|new| self.filename_format = new),
            "offset" => value::amount(text).map(|new| self.offset = Some(new)),
            "offset_increment" => value::bytes(text).map(|new| self.offset_increment = new),
            _ => return None,
        })
    }

    fn set_number(&mut self, key: &str, text: &str) -> Option<Answer> {
        const MANY: u64 = 1 << 48;
        let second = Nanos(1_000_000_000);
        let to_u64 = |from, to| value::number(text, from, to);
        Some(match key {
            "iodepth" => to_u64(1, MOST_STARTED.into()).map(|new| self.iodepth = new as u32),
            "numjobs" => {
                to_u64(1, crate::MOST_PROCESSES.into()).map(|new| self.numjobs = new as u32)
            }
            "runtime" | "timeout" => value::time(text, second).map(|new| self.runtime = new),
            "ramp_time" => value::time(text, second).map(|new| self.ramp = new),
            "startdelay" if text.contains('-') => {
                Err(format!("`{text}`: a range of delays is not supported; write one time"))
            }
            "startdelay" => value::time(text, second).map(|new| self.start_delay = new),
            "thinktime" => value::time(text, Nanos(1_000)).map(|new| self.thinktime = new),
            "thinktime_blocks" => to_u64(1, MANY).map(|new| self.thinktime_blocks = new),
            "rwmixread" => to_u64(0, 100).map(|new| self.read_percent = new),
            "rwmixwrite" => to_u64(0, 100).map(|new| self.read_percent = 100 - new),
            "fsync" => to_u64(0, MANY).map(|new| self.fsync = new),
            "fdatasync" => to_u64(0, MANY).map(|new| self.fdatasync = new),
            "randseed" => to_u64(0, u64::MAX).map(|new| self.randseed = new),
            "nrfiles" | "nr_files" => to_u64(1, MOST_FILES).map(|new| self.nrfiles = Some(new)),
            "loops" => to_u64(1, MANY).map(|new| self.loops = new),
            "number_ios" => to_u64(0, MANY).map(|new| self.number_ios = new),
            "percentile_list" => percentiles(text).map(|new| self.percentiles = new),
            _ => return None,
        })
    }

    fn set_word(&mut self, key: &str, text: &str) -> Option<Answer> {
        Some(match key {
            "name" => named(text).map(|new| self.name = new),
            "description" => {
                self.description = Some(text.into());
                Ok(())
            }
            "rw" | "readwrite" => self.set_pattern(text),
            "ioengine" => engine(text).map(|new| {
                self.engine = new;
                self.engine_name = text.into();
            }),
            "verify" => verify(text).map(|new| self.verify = new),
            "sync" => match text {
                "0" | "none" => Ok(false),
                "1" | "sync" => Ok(true),
                _ => Err(format!("`{text}` is not supported; write none or sync")),
            }
            .map(|new| self.sync = new),
            "fallocate" => match text {
                "native" => Ok(true),
                "none" | "0" => Ok(false),
                _ => Err(format!(
                    "`{text}` is not supported; native reserves the room of files before the run, none \
                     lets them grow as they are written"
                )),
            }
            .map(|new| self.allocates = new),
            _ => return None,
        })
    }

    fn set_pattern(&mut self, text: &str) -> Answer {
        let (word, rest) = text.split_once(':').unwrap_or((text, ""));
        let (pattern, reads, writes, random) = match word {
            "read" => ("read", true, false, false),
            "write" => ("write", false, true, false),
            "rw" | "readwrite" => ("rw", true, true, false),
            "randread" => ("randread", true, false, true),
            "randwrite" => ("randwrite", false, true, true),
            "randrw" => ("randrw", true, true, true),
            "trim" | "randtrim" | "trimwrite" | "randtrimwrite" => {
                return Err(format!("`{word}` is not supported: there is no operation for trim"));
            }
            _ => {
                let known = "read, write, rw, randread, randwrite, randrw";
                return Err(format!("`{word}` is not one of {known}"));
            }
        };
        let skip = match (rest, random) {
            ("", _) => 0,
            (_, true) => {
                let reason = "a number of operations for each random place is not supported";
                return Err(format!("`{text}`: {reason}"));
            }
            (rest, false) => match rest.strip_prefix('-') {
                Some(back) => -(value::bytes(back)? as i64),
                None => value::bytes(rest)? as i64,
            },
        };
        (self.pattern, self.reads, self.writes) = (pattern, reads, writes);
        (self.random, self.skip) = (random, skip);
        Ok(())
    }

    /// The most operations that are under way at once.
    pub(super) fn depth(&self) -> u32 {
        if self.engine == Engine::Queued { self.iodepth } else { 1 }
    }

    /// Whether what it wrote is read back.
    pub(super) fn verifies(&self) -> bool {
        self.verify.is_some() && self.do_verify && self.writes
    }

    pub(super) fn largest_block(&self) -> u64 {
        self.blocks[0].max(self.blocks[1])
    }

    pub(super) fn smallest_block(&self) -> u64 {
        match (self.reads, self.writes) {
            (true, false) => self.blocks[0],
            (false, true) => self.blocks[1],
            _ => self.blocks[0].min(self.blocks[1]),
        }
    }

    /// What two options together make impossible: the option and the reason.
    pub(super) fn conflict(&self) -> Option<(&'static str, String)> {
        if self.time_based && self.runtime == Nanos::ZERO {
            return Some(("time_based", "needs a runtime= too".into()));
        }
        if let Some(count) = self.nrfiles
            && !self.filenames.is_empty()
            && count != self.filenames.len() as u64
        {
            let names = self.filenames.len();
            return Some(("nrfiles", format!("is {count}, but filename= has {names} names")));
        }
        if self.engine == Engine::Null && (self.reads || self.verify.is_some()) {
            let reason = "`null` is supported for writing only: /dev/null has nothing to read";
            return Some(("ioengine", reason.into()));
        }
        if self.random && self.random_map && self.reads && self.writes {
            let [read, write] = self.blocks;
            if read != write {
                let reason = "a randrw job of different blocks needs norandommap";
                return Some(("bs", reason.into()));
            }
        }
        if !self.verifies() {
            return None;
        }
        let reason = if self.reads {
            "of a mixed job is not supported: which blocks it writes is drawn by lot"
        } else if self.time_based || self.loops > 1 || self.io_size.is_some() {
            "is supported for a job that writes its size once: without time_based, loops, io_size"
        } else if self.random && !self.random_map || self.skip != 0 {
            "is supported for a job that writes every block once: without norandommap and skips"
        } else {
            return None;
        };
        Some(("verify", reason.into()))
    }
}

/// The most files of a process, which has all of them open.
const MOST_FILES: u64 = crate::op::MOST_SLOTS as u64;

fn named(text: &str) -> Result<String, String> {
    let safe = !text.is_empty() && !text.contains('/') && text != "." && text != "..";
    safe.then(|| text.to_string()).ok_or_else(|| format!("`{text}` is not a name for files"))
}

fn format_of(text: &str) -> Result<String, String> {
    let mut rest = text;
    while let Some(start) = rest.find('$') {
        let word = ["$jobname", "$jobnum", "$filenum"];
        let known = word.iter().find(|word| rest[start..].starts_with(**word));
        let Some(word) = known else {
            return Err(format!(
                "`{text}`: of the words with $ only {} are known",
                word.join(", ")
            ));
        };
        rest = &rest[start + word.len()..];
    }
    value::relative(text)
}

fn engine(text: &str) -> Result<Engine, String> {
    match text {
        "sync" => Ok(Engine::Sync),
        "psync" | "vsync" | "pvsync" | "pvsync2" => Ok(Engine::Positional),
        "libaio" | "posixaio" | "io_uring" => Ok(Engine::Queued),
        "null" => Ok(Engine::Null),
        _ => Err(format!(
            "`{text}` is not supported; write one of sync, psync, vsync, pvsync, pvsync2, libaio, \
             posixaio, io_uring, null"
        )),
    }
}

fn verify(text: &str) -> Result<Option<String>, String> {
    const CHECKSUMS: [&str; 15] = [
        "md5",
        "crc64",
        "crc32c",
        "crc32c-intel",
        "crc32",
        "crc16",
        "crc7",
        "xxhash",
        "sha512",
        "sha256",
        "sha1",
        "sha3-224",
        "sha3-256",
        "sha3-384",
        "sha3-512",
    ];
    match text {
        "0" | "none" => Ok(None),
        _ if CHECKSUMS.contains(&text) => Ok(Some(text.into())),
        _ => Err(format!("`{text}` is not supported; write a checksum such as crc32c or md5")),
    }
}

fn percentiles(text: &str) -> Result<Vec<f64>, String> {
    let number = |part: &str| part.parse::<f64>().ok().filter(|one| *one > 0.0 && *one <= 100.0);
    let parts: Option<Vec<f64>> = text.split(':').map(number).collect();
    let mut parts = parts.filter(|parts| parts.len() <= 20).ok_or_else(|| {
        format!("`{text}` is not a list of up to 20 percentages such as 50:99:99.9")
    })?;
    parts.sort_by(f64::total_cmp);
    Ok(parts)
}

/// Options of which only that value is accepted which is what is done here anyway.
fn only(key: &str, text: &str) -> Option<Answer> {
    let (accepted, reason): (&[&str], &str) = match key {
        "verify_fatal" => (&["1", ""], "the first wrong byte ends a run"),
        "clat_percentiles" => (&["1", ""], "percentiles are always reported"),
        "continue_on_error" => (&["none", "0"], "the first error ends a run"),
        "disable_slat" => (&["1", ""], "the time to submit is not measured"),
        "scramble_buffers" => (&["1", ""], "every block has bytes of its own"),
        "create_serialize" | "create_fsync" => {
            (&["1", ""], "files are laid out one by one and flushed")
        }
        "allow_file_create" => (&["1", ""], "every file is made by the job file's run"),
        "file_service_type" => (&["roundrobin", "roundrobin:1"], "files take turns"),
        "create_on_open" => (&["1", ""], "a file that is only written is made when it is opened"),
        "iodepth_batch" | "iodepth_batch_submit" => (&["1"], "operations start one by one"),
        "iodepth_batch_complete" | "iodepth_batch_complete_min" => {
            (&["1"], "one operation is waited for at a time")
        }
        _ => return None,
    };
    Some(if accepted.contains(&text) {
        Ok(())
    } else {
        let right = accepted.first().copied().unwrap_or_default();
        Err(format!("`{text}` is not supported, only {right}: {reason}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(pairs: &[(&str, &str)]) -> Result<Job, String> {
        let mut job = Job::default();
        for (key, value) in pairs {
            job.set(key, Some(value)).ok_or_else(|| format!("{key}: unknown"))??;
        }
        Ok(job)
    }

    #[test]
    fn every_name_is_an_option() {
        for name in NAMES {
            assert!(Job::default().set(name, Some("?")).is_some(), "{name}");
        }
        assert!(Job::default().set("zonemode", None).is_none());
    }

    #[test]
    fn patterns_engines_and_depths() {
        let job = set(&[("rw", "randrw"), ("rwmixread", "70"), ("iodepth", "32")]).expect("right");
        assert!((job.reads, job.writes, job.random, job.read_percent) == (true, true, true, 70));
        assert_eq!(job.depth(), 1, "psync does one at a time whatever the depth");
        let job = set(&[("ioengine", "libaio"), ("iodepth", "32"), ("rwmixwrite", "20")]);
        assert_eq!(job.map(|job| (job.depth(), job.read_percent)), Ok((32, 80)));
        assert_eq!(set(&[("rw", "write:112k")]).map(|job| job.skip), Ok(112 << 10));
        assert_eq!(set(&[("rw", "read:-8k")]).map(|job| job.skip), Ok(-8192));
        for (key, value, words) in [
            ("rw", "trim", "no operation for trim"),
            ("rw", "sideways", "is not one of read"),
            ("rw", "randread:8", "not supported"),
            ("ioengine", "mmap", "`mmap` is not supported"),
            ("verify", "pattern", "`pattern` is not supported"),
            ("fallocate", "truncate", "native reserves the room"),
            ("filename", "/dev/sdb", "--target"),
            ("filename", "a:../b", "below the directory"),
            ("filename_format", "$clientuid", "$jobname"),
            ("percentile_list", "50:200", "percentages"),
            ("nrfiles", "31250", "from 1 to 1024"),
        ] {
            let error = set(&[(key, value)]).expect_err(value);
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn later_options_win_and_switches_are_inverted() {
        let job = set(&[("direct", "1"), ("buffered", "1"), ("norandommap", "")]).expect("right");
        assert!(!job.direct && !job.random_map);
        let job = set(&[("bs", "8k"), ("bs", "16k")]).expect("right");
        assert_eq!((job.blocks, job.given.len()), ([16_384; 2], 1));
    }

    #[test]
    fn a_size_of_nothing_was_not_given() {
        for (key, text) in [("io_size", "0"), ("io_limit", "0k"), ("io_size", "0%")] {
            let job = set(&[("io_size", "4k"), (key, text)]).expect("right");
            assert_eq!(job.io_size, None, "{key}={text}");
        }
        assert_eq!(set(&[("size", "1m"), ("size", "0")]).expect("right").size, None);
    }

    #[test]
    fn impossible_pairs_are_named() {
        for (pairs, key) in [
            (&[("time_based", "1")][..], "time_based"),
            (&[("filename", "a:b"), ("nrfiles", "3")][..], "nrfiles"),
            (&[("ioengine", "null")][..], "ioengine"),
            (&[("rw", "randrw"), ("bs", "4k,8k")][..], "bs"),
            (&[("rw", "rw"), ("verify", "md5")][..], "verify"),
            (&[("rw", "write"), ("verify", "md5"), ("loops", "2")][..], "verify"),
            (&[("rw", "randwrite"), ("verify", "md5"), ("norandommap", "1")][..], "verify"),
        ] {
            let conflict = set(pairs).expect("right one by one").conflict();
            assert_eq!(conflict.map(|(key, _)| key), Some(key));
        }
        assert_eq!(set(&[("rw", "randwrite"), ("verify", "md5")]).expect("right").conflict(), None);
    }

    /// As fio's manual has them.
    #[test]
    fn what_nobody_says_is_fio_s_default() {
        let job = Job::default();
        assert_eq!((job.blocks, job.iodepth, job.numjobs, job.loops), ([4096; 2], 1, 1, 1));
        assert_eq!((job.read_percent, job.fsync, job.fdatasync, job.number_ios), (50, 0, 0, 0));
        assert!(
            !job.direct && !job.sync && !job.group_reporting && !job.stonewall && !job.time_based
        );
        assert!(
            job.random_map && job.randrepeat && job.do_verify && job.allocates && job.invalidate
        );
        assert_eq!(
            (job.runtime, job.ramp, job.start_delay),
            (Nanos::ZERO, Nanos::ZERO, Nanos::ZERO)
        );
    }

    #[test]
    fn numbers_have_fio_s_ranges_and_units() {
        for (key, value) in [
            ("number_ios", "0"),
            ("randseed", "0"),
            ("iodepth", "1"),
            ("rwmixread", "0"),
            ("rwmixread", "100"),
        ] {
            assert!(set(&[(key, value)]).is_ok(), "{key}={value}");
        }
        for (key, value) in [
            ("iodepth", "0"),
            ("numjobs", "0"),
            ("loops", "0"),
            ("nrfiles", "0"),
            ("rwmixread", "101"),
        ] {
            assert!(set(&[(key, value)]).is_err(), "{key}={value}");
        }
        let times =
            set(&[("runtime", "3"), ("ramp_time", "2s"), ("startdelay", "1m"), ("thinktime", "7")])
                .expect("times");
        assert_eq!((times.runtime, times.ramp), (Nanos(3_000_000_000), Nanos(2_000_000_000)));
        assert_eq!(
            (times.start_delay, times.thinktime),
            (Nanos(60_000_000_000), Nanos(7_000)),
            "thinking in us"
        );
        for (text, synchronous) in [("0", false), ("none", false), ("1", true), ("sync", true)] {
            assert_eq!(set(&[("sync", text)]).map(|job| job.sync), Ok(synchronous), "{text}");
        }
    }

    #[test]
    fn percentiles_and_names_have_limits() {
        let twenty = (1..=20).map(|one| one.to_string()).collect::<Vec<_>>().join(":");
        assert_eq!(set(&[("percentile_list", &twenty)]).map(|job| job.percentiles.len()), Ok(20));
        assert_eq!(
            set(&[("percentile_list", "99.9:50:100")]).map(|job| job.percentiles),
            Ok(vec![50.0, 99.9, 100.0])
        );
        for wrong in [&*format!("{twenty}:21"), "0", "100.1", "-1", "x"] {
            assert!(set(&[("percentile_list", wrong)]).is_err(), "{wrong}");
        }
        assert!(["a", "a.b", "..a"].iter().all(|name| set(&[("name", name)]).is_ok()));
        assert!(["", ".", "..", "a/b"].iter().all(|name| set(&[("name", name)]).is_err()));
    }

    #[test]
    fn what_was_written_is_read_back_where_that_is_asked_for() {
        let verifies = |pairs: &[(&str, &str)]| set(pairs).expect("right").verifies();
        assert!(verifies(&[("rw", "write"), ("verify", "md5")]));
        assert!(!verifies(&[("rw", "write")]) && !verifies(&[("rw", "read"), ("verify", "md5")]));
        assert!(!verifies(&[("rw", "write"), ("verify", "md5"), ("do_verify", "0")]));
    }
}
