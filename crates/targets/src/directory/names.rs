//! Operations on names.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};

use raidlab_engine::EngineError;
use raidlab_workload::{Attribute, AttributeTarget, Class, Entry, FilePath, Op, OpResult, Status};

use super::files::{NUL, c_string};
use super::system::{self, Name, Object};
use super::worker::{Worker, invalid};
use super::worker_pool::Halt;

/// Bytes of a list that are asked for at once, as the C library does.
const LIST: usize = 32 << 10;

/// Times are set to 2001-09-09: neither now, nor what any file here has.
const SET_TIME: i64 = 1_000_000_000;
/// What modes are set to: usable for files and directories, and not what files are made with.
const SET_MODE: u32 = 0o755;

impl Worker<'_> {
    pub(super) fn name_op(&mut self, op: Op) -> Result<OpResult, Halt> {
        let result = match op {
            Op::Unlink { path } => self.on_name("unlink", &path, system::unlink),
            Op::Mkdir { path } => self.on_name("make a directory", &path, system::mkdir),
            Op::Rmdir { path } => self.on_name("remove a directory", &path, system::rmdir),
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
        call: impl FnOnce(BorrowedFd<'_>, &CStr) -> io::Result<()>,
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
        call: impl FnOnce(Name<'_>, Name<'_>) -> io::Result<()>,
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
        let made = system::symlink(text, (at, name));
        made.map_err(|error| self.failed_name("make a symbolic link", path, error))?;
        Ok(OpResult::Done)
    }

    fn fsync_directory(&mut self, path: &FilePath) -> Result<OpResult, EngineError> {
        let (at, name) = self.run.roots.name(path, &mut self.names[0])?;
        let synced = system::open_directory(at, name).and_then(|directory| {
            system::fsync(&directory)?;
            system::close(directory)
        });
        synced.map_err(|error| self.failed_name("fsync a directory", path, error))?;
        Ok(OpResult::Done)
    }

    fn stat(&mut self, path: &FilePath) -> Result<OpResult, EngineError> {
        let (at, name) = self.run.roots.name(path, &mut self.names[0])?;
        let status = system::stat(at, name);
        let status = status.map_err(|error| self.failed_name("stat", path, error))?;
        let is_directory = system::is_directory(&status);
        Ok(OpResult::Status(Status { size: status.st_size as u64, is_directory }))
    }

    fn list(&mut self, path: &FilePath) -> Result<OpResult, EngineError> {
        self.list.resize(LIST, MaybeUninit::uninit());
        let (at, name) = self.run.roots.name(path, &mut self.names[0])?;
        let list = &mut self.list;
        let listed = system::open_directory(at, name).and_then(|directory| {
            let mut entries = Vec::new();
            system::list(directory.as_fd(), list, |name, is_directory| {
                let name = name.to_str().map_err(|_| foreign())?;
                entries.push(Entry { name: name.into(), is_directory });
                Ok(())
            })?;
            system::close(directory)?;
            Ok(entries)
        });
        listed.map(OpResult::Entries).map_err(|error| self.failed_name("list", path, error))
    }

    fn set(&mut self, of: &AttributeTarget, attribute: Attribute) -> Result<(), EngineError> {
        let file;
        let object = match of {
            AttributeTarget::Descriptor(fd) => {
                file = self.fds.get(*fd)?.descriptor();
                Object::File(file.as_fd())
            }
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

fn foreign() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a name that raidlab did not make")
}
