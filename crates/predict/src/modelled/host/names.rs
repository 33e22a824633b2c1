//! Operations on names: the tree of names says what they mean, the host what they cost.

use raidlab_core::Nanos;
use raidlab_models::host::{Call, Change, Inode, PathComponent};
use raidlab_workload::names::{FileId, Found, NameError, name_hash};
use raidlab_workload::{
    AttributeTarget, Class, FileDescriptor, FilePath, Op, OpResult, OpenFlags, Root,
};

use super::io::Place;
use super::{Answered, StudyError, Target, failed, host_file};

impl Target<'_> {
    /// The steps of a path as it is now, none off the filesystem, and the file at its end.
    fn look_up(&mut self, path: &FilePath) -> (Vec<PathComponent>, Found) {
        if !Self::is_target(path.root) {
            return (Vec::new(), self.names.find(path).into());
        }
        let mut steps = self.host.path();
        let step = |directory, name, file: Option<FileId>| {
            let (directory, file) = (host_file(directory), file.map(host_file));
            PathComponent { directory, name, file }
        };
        let found = self.names.walk(path, &mut steps, step);
        (steps, found)
    }

    /// The steps of a path.
    fn steps(&mut self, path: &FilePath) -> Vec<PathComponent> {
        self.look_up(path).0
    }

    /// The steps of a path that is there, and the file at its end.
    fn steps_to(&mut self, path: &FilePath) -> Result<(Vec<PathComponent>, Inode), NameError> {
        let (steps, found) = self.look_up(path);
        Ok((steps, there(path, found.file)?))
    }

    /// Begins an operation on names, open, close and what else concerns whole files.
    pub(super) fn begin_names(
        &mut self,
        index: usize,
        op: Op,
    ) -> Result<Option<OpResult>, StudyError> {
        match op {
            Op::Open { fd, path, flags } => self.open(index, fd, &path, flags),
            Op::Close { fd } => {
                let one = &mut self.running[index];
                if one.fds.close(fd).is_none() {
                    let reason = format!("fd {} holds nothing", fd.0);
                    return Err(failed(index, "close", reason));
                }
                if let Some(handle) = one.handles.get_mut(usize::from(fd.0)).and_then(Option::take)
                {
                    self.host.close(handle);
                }
                Ok(Some(OpResult::Done))
            }
            Op::Truncate { fd, len } => {
                let Place::Host(id, _) = self.place(index, fd)?.0 else {
                    return Err(failed(index, "truncate", "no file of the filesystem"));
                };
                let change = Change::Truncate(host_file(id), len);
                let call = Call::Names { path: Vec::new(), change };
                self.begin_script(index, None, [call], Answered::With(OpResult::Done));
                Ok(None)
            }
            // The modelled filesystem has room side by side for what is written in order anyway.
            Op::Allocate { .. } => Ok(Some(OpResult::Done)),
            Op::Set { of, .. } => self.set(index, &of),
            Op::FsyncDirectory { path } => {
                let found = self.steps_to(&path);
                let (steps, file) = found.map_err(|error| failed(index, "fsync", error))?;
                let sync = Call::Sync { file, data_only: false };
                let calls = [Call::Names { path: steps, change: Change::Nothing }, sync];
                let done = Answered::With(OpResult::Done);
                self.begin_script(index, Some(Class::Other), calls, done);
                Ok(None)
            }
            other => {
                let (path, change, result) =
                    self.change(&other).map_err(|error| failed(index, what(&other), error))?;
                self.names_call(index, path, change, Some(Class::Other), result);
                Ok(None)
            }
        }
    }

    /// Hands an operation on names to the host; off the filesystem it is in memory.
    fn names_call(
        &mut self,
        index: usize,
        path: Option<Vec<PathComponent>>,
        change: Change,
        class: Option<Class>,
        result: OpResult,
    ) {
        let answer = Answered::With(result);
        match path {
            Some(path) => {
                self.begin_script(index, class, [Call::Names { path, change }], answer);
            }
            None => {
                self.begin_operation(index, answer).class = class;
                self.use_cpu(index, self.spec.costs.name.max(Nanos(1)), false);
            }
        }
    }

    /// Changes the tree of names; what the host is to do, and the result.
    fn change(
        &mut self,
        op: &Op,
    ) -> Result<(Option<Vec<PathComponent>>, Change, OpResult), NameError> {
        let on_host = |steps: Vec<PathComponent>, path: &FilePath| {
            Self::is_target(path.root).then_some(steps)
        };
        let done = OpResult::Done;
        Ok(match op {
            Op::Unlink { path } => {
                let (steps, file) = self.steps_to(path)?;
                let is_last = self.names.unlink(path)?.is_some();
                (on_host(steps, path), Change::Remove { file, is_last }, done)
            }
            Op::Rmdir { path } => {
                let (steps, file) = self.steps_to(path)?;
                self.names.rmdir(path)?;
                (on_host(steps, path), Change::Remove { file, is_last: true }, done)
            }
            Op::Mkdir { path } => {
                let steps = self.steps(path);
                let file = host_file(self.names.mkdir(path)?);
                (on_host(steps, path), Change::Create { file, is_directory: true }, done)
            }
            Op::Symlink { path, .. } => {
                let steps = self.steps(path);
                let flags = OpenFlags { exclusive: true, ..OpenFlags::WRITE };
                let file = host_file(self.names.open(path, flags)?.0);
                (on_host(steps, path), Change::Create { file, is_directory: false }, done)
            }
            Op::Rename { from, to } => {
                let (steps, file) = self.steps_to(from)?;
                let (directory, name) = self.parent(to)?;
                let replaces = self.names.find(to).is_some();
                let gone = self.names.rename(from, to)?.map(host_file);
                let change = Change::Rename { file, directory, name, gone, replaces };
                (on_host(steps, from), change, done)
            }
            Op::Link { from, to } => {
                let (steps, file) = self.steps_to(from)?;
                let (directory, name) = self.parent(to)?;
                self.names.link(from, to)?;
                (on_host(steps, from), Change::Link { file, directory, name }, done)
            }
            Op::List { path } => {
                let entries = self.names.list(path)?;
                let (steps, file) = self.steps_to(path)?;
                (on_host(steps, path), Change::List(file), OpResult::Entries(entries))
            }
            Op::Stat { path } => {
                let (steps, file) = self.steps_to(path)?;
                let mut status = self.names.status(FileId(file.0));
                if Self::is_target(path.root) && !status.is_directory {
                    status.size = self.host.size(file);
                }
                let status = OpResult::Status(status);
                (on_host(steps, path), Change::Nothing, status)
            }
            // Everything else was carried out before.
            _ => (None, Change::Nothing, done),
        })
    }

    fn file(&self, path: &FilePath) -> Result<Inode, NameError> {
        there(path, self.names.find(path))
    }

    /// The directory that a new name goes to, and the hash of the name.
    fn parent(&self, path: &FilePath) -> Result<(Inode, u64), NameError> {
        let (directory, name) = path.text.rsplit_once('/').unwrap_or(("", &path.text));
        let directory = FilePath { root: path.root, text: directory.into() };
        Ok((self.file(&directory)?, name_hash(name)))
    }

    fn open(
        &mut self,
        index: usize,
        fd: FileDescriptor,
        path: &FilePath,
        flags: OpenFlags,
    ) -> Result<Option<OpResult>, StudyError> {
        if self.running[index].fds.get(fd).is_some() {
            return Err(failed(index, "open", format!("{path}: fd {} is in use", fd.0)));
        }
        if path.root == Root::Null {
            self.running[index].fds.open(fd, None, flags);
            return Ok(Some(OpResult::Done));
        }
        let (steps, found) = self.look_up(path);
        let opened = self.names.open_found(path, found, flags);
        let (id, is_new) = opened.map_err(|error| failed(index, "open", error))?;
        self.running[index].fds.open(fd, Some(id), flags);
        if !Self::is_target(path.root) {
            self.names_call(index, None, Change::Nothing, None, OpResult::Done);
            return Ok(None);
        }
        let file = host_file(id);
        let change = if is_new {
            Change::Create { file, is_directory: false }
        } else if flags.truncate && self.host.size(file) > 0 {
            Change::Truncate(file, 0)
        } else {
            Change::Nothing
        };
        self.names_call(index, Some(steps), change, None, OpResult::Done);
        // The host has made the file when the call was handed in.
        let handle = self.host.open(file, flags.direct, flags.sync);
        let handle = handle.ok_or_else(|| failed(index, "open", format!("{path}: no inode")))?;
        let handles = &mut self.running[index].handles;
        if handles.len() <= usize::from(fd.0) {
            handles.resize(usize::from(fd.0) + 1, None);
        }
        handles[usize::from(fd.0)] = Some(handle);
        Ok(None)
    }

    fn set(&mut self, index: usize, of: &AttributeTarget) -> Result<Option<OpResult>, StudyError> {
        let (steps, file) = match of {
            AttributeTarget::Descriptor(fd) => match self.place(index, *fd)?.0 {
                Place::Host(id, _) => (Some(Vec::new()), host_file(id)),
                _ => (None, Inode(0)),
            },
            AttributeTarget::Path(path) => {
                let found = self.steps_to(path);
                let (steps, file) = found.map_err(|error| failed(index, "set", error))?;
                (Self::is_target(path.root).then_some(steps), file)
            }
        };
        self.names_call(index, steps, Change::Attribute(file), None, OpResult::Done);
        Ok(None)
    }
}

/// What is at the end of a path.
fn there(path: &FilePath, found: Option<FileId>) -> Result<Inode, NameError> {
    let missing = || NameError { reason: "No such file or directory", path: path.clone() };
    found.map(host_file).ok_or_else(missing)
}

fn what(op: &Op) -> &'static str {
    match op {
        Op::Unlink { .. } => "unlink",
        Op::Rmdir { .. } => "rmdir",
        Op::Mkdir { .. } => "mkdir",
        Op::Symlink { .. } => "symlink",
        Op::Rename { .. } => "rename",
        Op::Link { .. } => "link",
        Op::List { .. } => "list",
        _ => "stat",
    }
}
