//! The directory of runs.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::date::{Date, date_of};
use crate::error::{StoreError, StoreErrorKind};
use crate::hash::Salt;
use crate::line::RunRecord;
use crate::list::{Entry, Head, State, head};
use crate::read::Stored;
use crate::write::{Taken, Writer, lock, locked};

/// What runs' files end in.
const SUFFIX: &str = ".jsonl";
/// The file of the salt.
const SALT: &str = "salt";
/// Letters that end names of runs: none looks like another.
const LETTERS: &[u8; 32] = b"023456789abcdefghjkmnpqrstuvwxyz";
/// How many of them are drawn: runs of one 1,024th of a second share a name once in a thousand; then it is drawn anew.
const RANDOM_LETTERS: usize = 2;
/// The word for the newest run.
const LAST: &str = "last";

/// A directory of runs.
#[derive(Clone, Debug)]
pub struct Store {
    directory: PathBuf,
}

/// Where runs are kept unless somebody says otherwise: `raidlab/runs` in `XDG_DATA_HOME`, which is
/// `~/.local/share` unless set (XDG Base Directory Specification); `None` without a home. `variable` gives the
/// environment.
pub fn default_directory(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // Relative paths are invalid there and to be ignored, the specification says.
    let data = variable("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || variable("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let data = data.or_else(|| home().map(|home| home.join(".local/share")))?;
    Some(data.join("raidlab/runs"))
}

impl Store {
    /// The runs in a directory, which need not be there to be read.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes the directory, for its owner only, and the salt of its serial numbers.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn make(&self) -> Result<Salt, StoreError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.directory);
        made.map_err(|error| StoreError::io(&self.directory, error))?;
        self.salt()
    }

    fn salt(&self) -> Result<Salt, StoreError> {
        let path = self.directory.join(SALT);
        let io = |error| StoreError::io(&path, error);
        // It comes into its place whole, and whoever is first makes it.
        let part = self.directory.join(format!("{SALT}.{}", std::process::id()));
        if !path.exists() {
            let bytes = random::<16>().map_err(io)?;
            let options =
                OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).clone();
            let written = options.open(&part).and_then(|mut file| {
                file.write_all(hex(&bytes).as_bytes())?;
                file.sync_all()
            });
            let linked = written.and_then(|()| match fs::hard_link(&part, &path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                other => other,
            });
            let removed = fs::remove_file(&part);
            linked.and(removed).map_err(io)?;
        }
        let text = fs::read_to_string(&path).map_err(io)?;
        let salt = of_hex(text.trim()).ok_or_else(|| {
            StoreError::new(
                StoreErrorKind::Damaged,
                format!("{}: not a salt, which has 32 hexadecimal digits", path.display()),
            )
        })?;
        Ok(Salt(salt))
    }

    /// Begins a run: gives it a name and the date, writes its record.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn begin(&self, mut record: RunRecord) -> Result<Writer, StoreError> {
        let now = Date::now();
        record.date = now.text();
        loop {
            let letters = random::<RANDOM_LETTERS>();
            let letters = letters.map_err(|error| StoreError::io(&self.directory, error))?;
            // Two that tell the part of the second, so that names are in the order of the runs, and two at random.
            let digits = [now.part() / 32, now.part() % 32].map(usize::from);
            let random = letters.map(|byte| usize::from(byte % 32));
            let letters: String =
                digits.iter().chain(&random).map(|at| LETTERS[*at] as char).collect();
            record.id = format!("{}-{letters}", now.name());
            let path = self.path(&record.id);
            let options = OpenOptions::new().append(true).create_new(true).mode(0o600).clone();
            let file = match options.open(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                other => other.map_err(|error| StoreError::io(&path, error))?,
            };
            let begun = Writer::begin(path.clone(), file, &record);
            let begun = begun.and_then(|writer| self.sync().map(|()| writer));
            if begun.is_err() {
                // Nothing that does not go on stays; the first error is the one to tell.
                let _ = fs::remove_file(&path);
            }
            return begun;
        }
    }

    /// Names in the directory last when it is on the drive.
    fn sync(&self) -> Result<(), StoreError> {
        let synced = File::open(&self.directory).and_then(|directory| directory.sync_all());
        synced.map_err(|error| StoreError::io(&self.directory, error))
    }

    fn path(&self, id: &str) -> PathBuf {
        self.directory.join(format!("{id}{SUFFIX}"))
    }

    /// The names of all runs, the oldest first; none without the directory.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn ids(&self) -> Result<Vec<String>, StoreError> {
        let io = |error| StoreError::io(&self.directory, error);
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(io)?,
        };
        let mut ids = Vec::new();
        for entry in entries {
            let name = entry.map_err(io)?.file_name();
            let id = name.to_str().and_then(|name| name.strip_suffix(SUFFIX));
            ids.extend(id.filter(|id| date_of(id).is_some()).map(str::to_string));
        }
        ids.sort_unstable();
        Ok(ids)
    }

    /// All runs, the oldest first: reads the first and the last line of each.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn list(&self) -> Result<Vec<Entry>, StoreError> {
        let entry = |id: String| Entry { head: head(&self.path(&id)), id };
        Ok(self.ids()?.into_iter().map(entry).collect())
    }

    /// The run that a name means: its own, the beginning of no other's, or `last` for the newest.
    ///
    /// # Errors
    /// [`StoreErrorKind::NotThere`] and [`StoreErrorKind::Ambiguous`], with what there is.
    pub fn find(&self, name: &str) -> Result<String, StoreError> {
        let ids = self.ids()?;
        let place = self.directory.display();
        let none = |what: String| StoreError::new(StoreErrorKind::NotThere, what);
        if name == LAST {
            return ids.into_iter().last().ok_or_else(|| none(format!("{place}: no runs yet")));
        }
        let found: Vec<&String> = ids.iter().filter(|id| id.starts_with(name)).collect();
        match found[..] {
            _ if name.is_empty() => Err(none("the name of a run is missing".into())),
            [] => Err(none(format!(
                "no run `{name}` in {place}; `raidlab history` lists the {} there are",
                ids.len()
            ))),
            [one] => Ok(one.clone()),
            _ if ids.iter().any(|id| id == name) => Ok(name.to_string()),
            [first, second, ..] => {
                let count = found.len();
                let what = format!("`{name}` begins {count} runs, such as {first} and {second}");
                Err(StoreError::new(StoreErrorKind::Ambiguous, what))
            }
        }
    }

    /// The newest run that did not come to its end, and that nobody is writing.
    ///
    /// # Errors
    /// [`StoreErrorKind::NotThere`] when all did; [`StoreErrorKind::Locked`] when those that did not are being written.
    pub fn last_unfinished(&self) -> Result<String, StoreError> {
        let mut running = None;
        for id in self.ids()?.into_iter().rev() {
            match head(&self.path(&id)) {
                Ok(Head { state: State::Running, .. }) => {
                    running.get_or_insert(id);
                }
                Ok(head) if head.state != State::Done => return Ok(id),
                // What cannot be read cannot go on.
                Ok(_) | Err(_) => {}
            }
        }
        if let Some(id) = running {
            return Err(locked(&self.path(&id)));
        }
        let what = format!("{}: no run is unfinished", self.directory.display());
        Err(StoreError::new(StoreErrorKind::NotThere, what))
    }

    /// A run as it is now, by its whole name; nothing is changed.
    ///
    /// # Errors
    /// When it is not there, damaged, or of another schema.
    pub fn read(&self, id: &str) -> Result<Stored, StoreError> {
        let path = self.path(id);
        let bytes = fs::read(&path).map_err(|error| StoreError::io(&path, error))?;
        Stored::parse(&path, &bytes)
    }

    /// Locks a run to go on with it, by its whole name. Nothing is changed before
    /// [`go_on`](Taken::go_on).
    ///
    /// # Errors
    /// [`StoreErrorKind::Locked`] when another process writes it; else as [`read`](Self::read).
    pub fn take(&self, id: &str) -> Result<Taken, StoreError> {
        let path = self.path(id);
        let file = OpenOptions::new().read(true).append(true).open(&path);
        let file = file.map_err(|error| StoreError::io(&path, error))?;
        Taken::new(path, file)
    }

    /// Removes a run by its whole name.
    ///
    /// # Errors
    /// [`StoreErrorKind::Locked`] when a process writes it, or when the system refuses.
    pub fn remove(&self, id: &str) -> Result<(), StoreError> {
        let path = self.path(id);
        let io = |error| StoreError::io(&path, error);
        let file = File::open(&path).map_err(io)?;
        if !lock(&file).map_err(io)? {
            return Err(locked(&path));
        }
        fs::remove_file(&path).map_err(io)
    }
}

/// Random bytes of the kernel's.
fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn of_hex(text: &str) -> Option<[u8; 16]> {
    if text.len() != 32 || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; 16];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(bytes)
}
