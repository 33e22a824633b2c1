//! Operations on names.

use raidlab_engine::EngineError;
use raidlab_workload::{Attribute, AttributeTarget, Class, Entry, FilePath, Op, OpResult, Status};

use super::files::{NUL, c_string};
use super::system::{self, Object};
use super::worker::{Worker, invalid};
use super::worker_pool::Halt;

/// Bytes of a list that are asked for at once, as the C library does.
const LIST: usize = 32 << 10;

/// Times are set to 2001-09-09: neither now, nor what any file here has.
const SET_TIME: i64 = 1_000_000_000;
/// What modes are set to: usable for files and directories, and not what files are made with.
const SET_MODE: libc::mode_t = 0o755;

impl Worker<'_> {
    pub(super) fn name_op(&mut self, op: Op) -> Result<OpResult, Halt> {
        let result = match op {
            Op::Unlink { path } => {
                self.on_name("unlink", &path, |at, name| system::unlink(at, name, 0))
            }
            Op::Mkdir { path } => self.on_name("make a directory", &path, system::mkdir),
            Op::Rmdir { path } => self.on_name("remove a directory", &path, |at, name| {
                system::unlink(at, name, libc::AT_REMOVEDIR)
            }),
            Op::Rename { from, to } => self.on_two("rename", &from, &to, system::rename),
            Op::Link { from, to } => self.on_two("link", &from, &to, system::link),
            Op::Symlink { text, path } => self.symlink(&text, &path),
            Op::FsyncDirectory { path } => self.fsync_directory(&path),
            Op::List { path } => self.list(&path),
            Op::Stat { path } => self.stat(&path),
            Op::Set { of, attribute } => {
                self.set(&of, attribute)?;
                return Ok(self.unmeasured());
            }
            other => Err(invalid(format!("{other:?} is none on a name"))),
        };
        let result = result?;
        self.measured(Class::Other, 0);
        Ok(result)
    }

    fn on_name(
        &mut self,
        operation: &'static str,
        path: &FilePath,
        call: impl FnOnce(i32, &std::ffi::CStr) -> std::io::Result<()>,
    ) -> Result<OpResult, EngineError> {
        let (at, name) = self.run.roots.name(path, &mut self.names[0])?;
        call(at, name).map_err(|error| self.failed_name(operation, path, error))?;
        Ok(OpResult::Done)
    }

    fn on_two(
        &mut self,
        operation: &'static str,
        from: &FilePath,
        to: &FilePath,
        call: impl FnOnce((i32, &std::ffi::CStr), (i32, &std::ffi::CStr)) -> std::io::Result<()>,
    ) -> Result<OpResult, EngineError> {
        let [first, second] = &mut self.names;
        let names = (self.run.roots.name(from, first)?, self.run.roots.name(to, second)?);
        call(names.0, names.1).map_err(|error| self.failed_name(operation, from, error))?;
        Ok(OpResult::Done)
    }

    fn symlink(&mut self, text: &str, path: &FilePath) -> Result<OpResult, EngineError> {
        let [first, second] = &mut self.names;
        let (at, name) = self.run.roots.name(path, first)?;
        let text = c_string(text, second).ok_or_else(|| invalid(NUL))?;
        let made = system::symlink(text, at, name);
        made.map_err(|error| self.failed_name("make a symbolic link", path, error))?;
        Ok(OpResult::Done)
    }

    fn fsync_directory(&mut self, path: &FilePath) -> Result<OpResult, EngineError> {
        let (at, name) = self.run.roots.name(path, &mut self.names[0])?;
        let synced =
            system::open(at, name, libc::O_RDONLY | libc::O_DIRECTORY, 0).and_then(|directory| {
                system::fsync(std::os::fd::AsRawFd::as_raw_fd(&directory))?;
                system::close(directory)
            });
        synced.map_err(|error| self.failed_name("fsync a directory", path, error))?;
        Ok(OpResult::Done)
    }

    fn stat(&mut self, path: &FilePath) -> Result<OpResult, EngineError> {
        let (at, name) = self.run.roots.name(path, &mut self.names[0])?;
        let status = system::stat(at, name);
        let status = status.map_err(|error| self.failed_name("stat", path, error))?;
        let is_directory = status.st_mode & libc::S_IFMT == libc::S_IFDIR;
        Ok(OpResult::Status(Status { size: status.st_size as u64, is_directory }))
    }

    fn list(&mut self, path: &FilePath) -> Result<OpResult, EngineError> {
        self.list.resize(LIST, 0);
        let (at, name) = self.run.roots.name(path, &mut self.names[0])?;
        let list = &mut self.list;
        let listed = (|| {
            let directory = system::open(at, name, libc::O_RDONLY | libc::O_DIRECTORY, 0)?;
            let descriptor = std::os::fd::AsRawFd::as_raw_fd(&directory);
            let mut entries = Vec::new();
            loop {
                let len = system::list(descriptor, list)?;
                if len == 0 {
                    system::close(directory)?;
                    return Ok(entries);
                }
                entries_of(&list[..len], descriptor, &mut entries)?;
            }
        })();
        listed.map(OpResult::Entries).map_err(|error| self.failed_name("list", path, error))
    }

    fn set(&mut self, of: &AttributeTarget, attribute: Attribute) -> Result<(), EngineError> {
        let object = match of {
            AttributeTarget::Descriptor(fd) => Object::File(self.fds.get(*fd)?.descriptor()),
            AttributeTarget::Path(path) => {
                let (at, name) = self.run.roots.name(path, &mut self.names[0])?;
                Object::Name(at, name)
            }
        };
        let (operation, set) = match attribute {
            Attribute::Times => ("set the times", system::set_times(object, SET_TIME)),
            Attribute::Mode => ("set the mode", system::set_mode(object, SET_MODE)),
            Attribute::Owner => ("set the owner", system::set_owner(object)),
        };
        set.map_err(|error| match of {
            AttributeTarget::Descriptor(fd) => self.failed(operation, *fd, error),
            AttributeTarget::Path(path) => self.failed_name(operation, path, error),
        })
    }
}

/// The entries in what `getdents64(2)` gave: records of inode (8 bytes), offset (8), length of the record
/// (2), type (1), and the name with a zero byte behind it.
fn entries_of(list: &[u8], directory: i32, into: &mut Vec<Entry>) -> std::io::Result<()> {
    const NAME: usize = 19;
    let wrong = |what: &str| std::io::Error::new(std::io::ErrorKind::InvalidData, what.to_string());
    let mut rest = list;
    while rest.len() > NAME {
        let len = usize::from(u16::from_ne_bytes([rest[16], rest[17]]));
        let record = rest.get(..len).filter(|record| record.len() > NAME);
        let record = record.ok_or_else(|| wrong("the system gave a list that is cut off"))?;
        let name = std::ffi::CStr::from_bytes_until_nul(&record[NAME..]);
        let name = name.map_err(|_| wrong("the system gave a name without an end"))?;
        rest = &rest[len..];
        if name == c"." || name == c".." {
            continue;
        }
        let is_directory = match record[18] {
            libc::DT_DIR => true,
            // Some filesystems do not tell in the list.
            libc::DT_UNKNOWN => {
                system::stat(directory, name)?.st_mode & libc::S_IFMT == libc::S_IFDIR
            }
            _ => false,
        };
        let name = name.to_str().map_err(|_| wrong("a name that raidlab did not make"))?;
        into.push(Entry { name: name.into(), is_directory });
    }
    Ok(())
}
