//! What is mounted, by `/proc/self/mountinfo` (proc_pid_mountinfo(5)): no file of any mount is asked for it, since a
//! server of a filesystem that has stopped, or another machine, may never answer.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The device of the filesystem, as its files have it (`st_dev`); some filesystems, as btrfs, have several.
    pub number: u64,
    /// Where it is mounted.
    pub point: PathBuf,
    /// The kind of the filesystem, such as `ext4`.
    pub kind: String,
    /// What is mounted: a device, or a name that need not be of a file.
    pub source: PathBuf,
    /// The options of the mount.
    pub options: String,
    /// The options of the filesystem.
    pub of_filesystem: String,
}

impl Mount {
    /// Whether somebody other than the kernel of this machine answers for its files: a process (FUSE), another
    /// machine, or whoever mounts when asked. Who asks may wait for ever.
    #[must_use]
    pub fn may_never_answer(&self) -> bool {
        const OTHERS: [&str; 14] = [
            "9p", "afs", "autofs", "beegfs", "ceph", "cifs", "coda", "gpfs", "lustre", "nfs",
            "nfs4", "orangefs", "smb3", "virtiofs",
        ];
        self.kind.starts_with("fuse") || OTHERS.contains(&self.kind.as_str())
    }
}

/// What is mounted, the oldest first.
///
/// # Errors
/// When the system does not tell.
pub fn all() -> std::io::Result<Vec<Mount>> {
    Ok(parse(&std::fs::read("/proc/self/mountinfo")?))
}

/// What is mounted by the contents of such a file; lines that are none are left out.
#[must_use]
pub fn parse(text: &[u8]) -> Vec<Mount> {
    text.split(|byte| *byte == b'\n').filter_map(line).collect()
}

/// The mount that a path lies in by its name: the newest of those with the longest mount point above it.
#[must_use]
pub fn over<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let above = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    above.max_by_key(|mount| mount.point.as_os_str().len())
}

/// Whether a file may be asked of, by its path: it lies on no filesystem that may never answer, or on the one with the
/// device `near`, from which something was had already.
#[must_use]
pub fn may_ask(mounts: &[Mount], file: &Path, near: Option<u64>) -> bool {
    let there = over(mounts, file).filter(|mount| mount.may_never_answer());
    there.is_none_or(|mount| Some(mount.number) == near)
}

/// Number, parent, device, root, mount point, options, any number of fields, `-`, kind, source, options.
fn line(text: &[u8]) -> Option<Mount> {
    let fields: Vec<&[u8]> = text.split(|byte| *byte == b' ').collect();
    let dash = fields.iter().position(|field| *field == b"-")?;
    let word = |at: usize| fields.get(at).map(|field| String::from_utf8_lossy(field).into_owned());
    let (major, minor) =
        fields.get(2).and_then(|field| std::str::from_utf8(field).ok())?.split_once(':')?;
    Some(Mount {
        number: libc::makedev(major.parse().ok()?, minor.parse().ok()?),
        point: unescaped(fields.get(4).filter(|_| dash > 5)?),
        options: word(5)?,
        kind: word(dash + 1)?,
        source: unescaped(fields.get(dash + 2)?),
        of_filesystem: word(dash + 3).unwrap_or_default(),
    })
}

/// Blanks, tabs, line ends and backslashes are written as `\` and three octal digits.
pub(super) fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| first == b'\\');
        let code = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mountinfo_is_read() {
        let text = br"36 35 98:5 /mnt1 /mnt/a\040b\134c rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        let [mount] = &parse(text)[..] else { panic!("one mount") };
        assert_eq!(mount.point, Path::new(r"/mnt/a b\c"));
        assert_eq!((mount.kind.as_str(), mount.source.as_path()), ("ext3", Path::new("/dev/root")));
        assert_eq!(
            (mount.options.as_str(), mount.of_filesystem.as_str()),
            ("rw,noatime", "rw,errors=continue")
        );
        assert_eq!(mount.number, libc::makedev(98, 5));
        for none in
            [&b""[..], b"36 35 98:0 / /mnt rw - ext3", b"36 35 98 / /mnt rw - ext3 x rw", b"- - -"]
        {
            assert_eq!(parse(none), [], "{none:?}");
        }
        assert_eq!(unescaped(br"a\04"), Path::new(r"a\04"));
    }

    #[test]
    fn the_mount_nearest_to_a_path_counts() {
        let mounts = parse(
            b"22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
              24 22 0:21 / /mnt/my\\040disk rw shared:2 - xfs /dev/sdb1 rw\n\
              25 22 0:22 / /mnt rw - tmpfs none rw\n\
              26 22 0:23 / /mnt rw - btrfs /dev/sdc rw\n",
        );
        let found = |path: &str| over(&mounts, Path::new(path)).map(|mount| mount.kind.as_str());
        assert_eq!(found("/home"), Some("ext4"));
        assert_eq!(found("/mnt/my disk/x"), Some("xfs"));
        assert_eq!(found("/mnt/other"), Some("btrfs"), "the newest of two");
        assert_eq!(found("/mntx"), Some("ext4"));
        assert_eq!(found("relative"), None);
    }

    #[test]
    fn filesystems_that_others_answer_for_are_known_by_their_kind() {
        let of = |kind: &str| {
            let text = format!("22 1 0:5 / / rw - {kind} x rw\n");
            parse(text.as_bytes()).iter().all(Mount::may_never_answer)
        };
        assert!(
            ["fuse", "fuse.sshfs", "fuseblk", "nfs4", "nfs", "cifs", "autofs"].into_iter().all(of)
        );
        assert!(!["ext4", "xfs", "btrfs", "tmpfs", "overlay", "nfsd"].into_iter().any(of));
    }
}
