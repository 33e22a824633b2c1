//! The options of both versions as parameters, and what they amount to in a setting.

use raidlab_core::{Nanos, Size};

use super::{Version, small};
use crate::error::{WorkloadError, WorkloadErrorKind};
use crate::parameters::Parameters;
use crate::plan::Setting;

const MIB: u64 = 1 << 20;
/// Bytes of a block where nobody says otherwise.
pub(super) const DEFAULT_CHUNK: u64 = 8 << 10;
/// Seeks where nobody says otherwise.
pub(super) const DEFAULT_SEEKS: u64 = 8192;
/// The least default size, in MiB.
const LEAST_DEFAULT: u64 = 300;
/// The most files of 1.03.
const MOST_FILES: u64 = 1000;
/// Places are numbers of 31 bits.
const MOST_CHUNKS: u64 = (1 << 31) - 1;
/// Bytes that 2.00 writes and reads one by one where nobody says otherwise.
const DEFAULT_CHARACTERS: u64 = 3 * MIB;
/// The longest small file.
const MOST_SMALL: u64 = (1 << 31) - 1;

/// What a workload is compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Headline {
    /// Rates of phases.
    Rates,
    /// The time of the whole run.
    Seconds,
}

/// Small files, without what depends on a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Small {
    /// In units of 1024.
    pub(super) count: u64,
    pub(super) made: small::Made,
    pub(super) directories: u32,
    pub(super) chunk: u64,
}

/// All parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) version: Version,
    /// Bytes of the large file; 0: none; `None`: from memory.
    pub(super) size: Option<u64>,
    /// Bytes of memory; 0: not known; `None`: what the host has.
    pub(super) ram: Option<u64>,
    pub(super) chunk: u64,
    /// Bytes that are written and read one by one at most.
    pub(super) characters: u64,
    pub(super) sync: bool,
    pub(super) seeks: u64,
    pub(super) seekers: u32,
    pub(super) small: Option<Small>,
    pub(super) seed: Option<u64>,
    pub(super) settle: Nanos,
    pub(super) headline: Headline,
}

fn wrong<T>(key: &str, reason: String) -> Result<T, WorkloadError> {
    Err(WorkloadError::new(WorkloadErrorKind::Parameter, key, reason))
}

/// A size that may be nothing.
fn bytes(parameters: &mut Parameters, key: &str) -> Result<Option<u64>, WorkloadError> {
    let Some(text) = parameters.text(key) else { return Ok(None) };
    match text.parse::<Size>() {
        Ok(size) => Ok(Some(size.0)),
        Err(reason) => wrong(key, reason),
    }
}

fn check_chunk(key: &str, chunk: u64) -> Result<u64, WorkloadError> {
    if chunk.is_power_of_two() && (256..=MIB).contains(&chunk) {
        return Ok(chunk);
    }
    let chunk = Size(chunk);
    wrong(key, format!("a block of {chunk} is not a power of two from 256 bytes to 1MiB"))
}

impl Options {
    /// From parameters.
    pub(super) fn read(
        version: Version,
        parameters: &mut Parameters,
    ) -> Result<Self, WorkloadError> {
        let (seekers, settle) = match version {
            Version::V103 => (3, 5_000),
            Version::V200 => (5, 3_000),
        };
        let size = bytes(parameters, "size")?;
        let ram = bytes(parameters, "ram")?;
        let chunk = check_chunk("chunk", parameters.size("chunk", DEFAULT_CHUNK)?)?;
        let headline = [("rates", Headline::Rates), ("seconds", Headline::Seconds)];
        let has_seed = parameters.has("seed");
        let seed = parameters.number("seed", 0, 0..=u64::from(u32::MAX))?;
        let options = Self {
            version,
            size,
            ram,
            chunk,
            characters: characters(version, parameters)?,
            sync: parameters.flag("sync", false)?,
            seeks: parameters.number("seeks", DEFAULT_SEEKS, 1..=u64::from(u32::MAX))?,
            seekers: parameters.number("seekers", seekers, 1..=1000)? as u32,
            small: small_files(version, chunk, parameters.text("n"))?,
            seed: has_seed.then_some(seed),
            settle: parameters.duration("settle", Nanos::from_millis(settle))?,
            headline: parameters.choice("metric", Headline::Rates, &headline)?,
        };
        if let Some(size) = size {
            options.check_size(size)?;
        }
        Ok(options)
    }

    /// Rules that hold on every host.
    pub(super) fn check_size(&self, size: u64) -> Result<(), WorkloadError> {
        let refuse = |reason| Err(WorkloadError::new(WorkloadErrorKind::Size, "size", reason));
        if size == 0 && self.small.is_none() {
            return refuse("without a large file and small files there is nothing to do".into());
        }
        if !size.is_multiple_of(MIB) {
            return refuse(format!("{} is not a whole number of MiB", Size(size)));
        }
        let most = match self.version {
            Version::V103 => (MOST_FILES << 30).min(MOST_CHUNKS * self.chunk),
            Version::V200 => MOST_CHUNKS * self.chunk,
        } / MIB
            * MIB;
        if size > most {
            let (size, chunk) = (Size(size), Size(self.chunk));
            let reason = format!(
                "{size} is too large for bonnie++ {} with blocks of {chunk}; at most {}",
                self.version,
                Size(most)
            );
            return refuse(reason);
        }
        Ok(())
    }

    /// Memory in MiB as the original reckons it: whole groups of 1024 pages. 0 where it is not known.
    fn memory_mib(&self, setting: &Setting) -> u64 {
        match self.ram {
            Some(bytes) => bytes / MIB,
            None => setting.host_memory.unwrap_or(0) / (4 * MIB) * 4,
        }
    }

    /// Bytes of the large file in a setting.
    ///
    /// # Errors
    /// When it is less than twice memory, or the names of the small files would fill memory.
    pub(super) fn size_in(&self, setting: &Setting) -> Result<u64, WorkloadError> {
        let memory = self.memory_mib(setting);
        self.check_names(memory)?;
        let Some(size) = self.size else {
            let twice = LEAST_DEFAULT.max(2 * memory);
            let past = twice % 1024;
            let mib = if past > 512 { twice + 1024 - past } else { twice };
            self.check_size(mib * MIB)?;
            return Ok(mib * MIB);
        };
        if size > 0 && size / MIB < 2 * memory {
            let (size, least) = (Size(size), Size(2 * memory * MIB));
            let memory = Size(memory * MIB);
            let reason = format!(
                "{size} is less than twice the memory of {memory}, so that memory would be \
                 measured; use at least {least}, or say ram= for less memory"
            );
            return Err(WorkloadError::new(WorkloadErrorKind::Size, "size", reason));
        }
        Ok(size)
    }

    /// The original keeps all names in memory and wants half of it for other things, and at most 1 GiB.
    fn check_names(&self, memory: u64) -> Result<(), WorkloadError> {
        let Some(small) = self.small else { return Ok(()) };
        let kib = small.count.saturating_mul(per_name(self.version));
        if memory > 0 && kib.saturating_mul(2) > memory << 10 {
            let memory = Size(memory * MIB);
            let reason =
                format!("{}K names would fill the memory of {memory}; use less", small.count);
            return wrong("n", reason);
        }
        Ok(())
    }
}

/// What is written and read byte by byte: all in 1.03, some in 2.00, nothing with `fast`.
fn characters(version: Version, parameters: &mut Parameters) -> Result<u64, WorkloadError> {
    let text = parameters.text("fast");
    match (version, text.as_deref()) {
        (_, Some("true")) => Ok(0),
        (Version::V103, None | Some("false")) => Ok(u64::MAX),
        (Version::V200, None | Some("false")) => Ok(DEFAULT_CHARACTERS),
        (Version::V103, Some(text)) => wrong("fast", format!("`{text}` is neither true nor false")),
        (Version::V200, Some(text)) => match text.parse::<Size>() {
            Ok(size) if size.0.is_multiple_of(MIB) => Ok(size.0),
            _ => wrong(
                "fast",
                format!("`{text}` is neither true nor false nor a whole number of MiB"),
            ),
        },
    }
}

/// `N[:max[:min[:directories[:chunk]]]]`; the chunk in 2.00 only.
fn small_files(
    version: Version,
    chunk: u64,
    text: Option<String>,
) -> Result<Option<Small>, WorkloadError> {
    let text = text.unwrap_or_else(|| "16".into());
    let fields: Vec<&str> = text.split(':').collect();
    let most_fields = match version {
        Version::V103 => 4,
        Version::V200 => 5,
    };
    if fields.len() > most_fields {
        let chunk = if most_fields == 5 { "[:chunk]" } else { "" };
        return wrong("n", format!("`{text}` is not of the form N[:max[:min[:dirs{chunk}]]]"));
    }
    let count = field(&fields, 0, "number of thousands of files", (16, 0..=most_count(version)))?;
    let directories = field(&fields, 3, "number of directories", (1, 1..=99_999))? as u32;
    let made = match fields.get(1).copied() {
        Some("-1" | "link" | "-2" | "symlink") if fields.get(2).is_some_and(|min| *min != "0") => {
            return wrong("n", "links have no length; use 0 as the least".into());
        }
        Some("-1" | "link") => small::Made::Links,
        Some("-2" | "symlink") if directories > 1 => {
            let reason = "symbolic links lead nowhere from a second directory, as in the original; \
                          use one directory";
            return wrong("n", reason.into());
        }
        Some("-2" | "symlink") => small::Made::Symlinks,
        _ => {
            let most = field(&fields, 1, LENGTH, (0, 0..=MOST_SMALL))?;
            let least = field(&fields, 2, LENGTH, (0, 0..=most))?;
            small::Made::Files { least, most }
        }
    };
    let chunk = match version {
        Version::V103 => chunk,
        Version::V200 => check_chunk("n", field(&fields, 4, LENGTH, (DEFAULT_CHUNK, 0..=MIB))?)?,
    };
    Ok((count > 0).then_some(Small { count, made, directories, chunk }))
}

/// The original wants at most 1 GiB for names.
const fn most_count(version: Version) -> u64 {
    (1 << 20) / per_name(version)
}

/// Bytes of memory for a name: its characters, its directory, its end, and a pointer.
const fn per_name(version: Version) -> u64 {
    let characters = match version {
        Version::V103 => 7 + 12,
        Version::V200 => 10 + 12,
    };
    characters + 6 + 1 + 8
}

/// What a field of `n` is called that may have a unit.
const LENGTH: &str = "length in bytes";

/// A field of `n`, with its default and range.
fn field(
    fields: &[&str],
    index: usize,
    name: &str,
    (default, range): (u64, std::ops::RangeInclusive<u64>),
) -> Result<u64, WorkloadError> {
    let Some(field) = fields.get(index) else { return Ok(default) };
    let number = match name {
        LENGTH => field.parse::<Size>().ok().map(|size| size.0),
        _ => field.parse().ok(),
    };
    match number.filter(|number| range.contains(number)) {
        Some(number) => Ok(number),
        None => {
            let (from, to) = (range.start(), range.end());
            wrong("n", format!("`{field}` is not a {name} from {from} to {to}"))
        }
    }
}
