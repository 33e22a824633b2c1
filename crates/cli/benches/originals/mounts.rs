//! Which filesystem a path lies on.

use std::path::Path;

/// A mounted filesystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mounted {
    pub(crate) point: String,
    /// `ext4 on /dev/vda (rw,relatime)`.
    pub(crate) what: String,
}

/// The filesystem a path lies on, from the text of `/proc/self/mountinfo` (`proc_pid_mountinfo(5)`): the
/// longest mount point that the path begins with, and the last of those mounted there.
pub(crate) fn mounted(mountinfo: &str, path: &Path) -> Option<Mounted> {
    let mounts = mountinfo.lines().filter_map(|line| {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mount: Vec<&str> = mount.split(' ').collect();
        let filesystem: Vec<&str> = filesystem.split(' ').collect();
        let (point, options) = (unescaped(mount.get(4)?), mount.get(5)?);
        let (kind, source) = (filesystem.first()?, filesystem.get(1)?);
        let more = filesystem.get(2)?;
        path.starts_with(&point)
            .then(|| Mounted { what: format!("{kind} on {source} ({options}; {more})"), point })
    });
    mounts.max_by_key(|mounted| mounted.point.len())
}

/// Spaces and the like are written in octal.
fn unescaped(text: &str) -> String {
    let pairs = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    pairs.iter().fold(text.to_string(), |text, (from, to)| text.replace(from, to))
}
