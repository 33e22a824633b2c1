//! What the tests need besides Rust, and whether it is here.

use std::path::{Path, PathBuf};

/// A Debian package and the commands it brings; one of them is enough.
pub(crate) struct Package {
    /// Its name for `apt-get install`.
    pub(crate) name: &'static str,
    /// Names of one command, the preferred one first.
    pub(crate) commands: &'static [&'static str],
    /// Or files of which one is enough, for a package without commands.
    pub(crate) files: &'static [&'static str],
}

/// A package known by its commands.
const fn commands(name: &'static str, commands: &'static [&'static str]) -> Package {
    Package { name, commands, files: &[] }
}

/// What a guest with the Linux md driver needs.
pub(crate) const GUEST: [Package; 3] = [
    commands("user-mode-linux", &["linux.uml", "linux"]),
    commands("mdadm", &["mdadm"]),
    commands("busybox-static", &["busybox"]),
];

/// What a test with GRUB as a reader of arrays needs.
pub(crate) const GRUB: [Package; 1] = [commands("grub-common", &["grub-fstest"])];

/// The library that parity is compared with; its tests look for it themselves.
#[allow(dead_code, reason = "only the test command installs it")]
pub(crate) const PARITY: [Package; 1] = [Package {
    name: "libisal2",
    commands: &[],
    files: &["/usr/lib/x86_64-linux-gnu/libisal.so.2", "/usr/lib/aarch64-linux-gnu/libisal.so.2"],
}];

/// The programs that workloads are compared with, and what shows their calls; their tests look for them
/// themselves.
#[allow(dead_code, reason = "only the test command installs them")]
pub(crate) const ORIGINALS: [Package; 4] = [
    commands("bonnie++", &["bonnie++"]),
    commands("hdparm", &["hdparm"]),
    commands("fio", &["fio"]),
    commands("strace", &["strace"]),
];

/// What counts instructions; its command looks for it itself.
#[allow(dead_code, reason = "only the test command installs it")]
pub(crate) const COUNTING: [Package; 1] = [commands("valgrind", &["valgrind"])];

/// What makes, checks and mounts filesystems; their tests look for it themselves.
#[allow(dead_code, reason = "only the test command installs it")]
pub(crate) const FILESYSTEMS: [Package; 5] = [
    commands("e2fsprogs", &["mkfs.ext4"]),
    commands("xfsprogs", &["mkfs.xfs"]),
    commands("btrfs-progs", &["mkfs.btrfs"]),
    commands("mount", &["losetup"]),
    commands("util-linux", &["blkid"]),
];

/// Servers and clients of NBD that ours talk to; their tests look for them themselves.
#[allow(dead_code, reason = "only the test command installs them")]
pub(crate) const NBD: [Package; 5] = [
    commands("libnbd-bin", &["nbdinfo"]),
    commands("python3-libnbd", &["nbdsh"]),
    commands("nbdkit", &["nbdkit"]),
    commands("qemu-utils", &["qemu-nbd"]),
    commands("qemu-system-common", &["qemu-storage-daemon"]),
];

/// What makes a guest's kernel a client of NBD, and puts a filesystem on it to use.
pub(crate) const NBD_CLIENT: [Package; 3] = [
    commands("nbd-client", &["nbd-client"]),
    commands("e2fsprogs", &["mkfs.ext4"]),
    commands("fio", &["fio"]),
];

/// What assembles arrays by itself as their devices appear.
pub(crate) const UDEV: [Package; 1] = [commands("udev", &["udevadm"])];

/// What makes RAID volumes in a guest.
pub(crate) const LVM: [Package; 1] = [commands("lvm2", &["lvm"])];

/// What opens pages; their test looks for them itself. Where node is not Debian's, it brings npm, and Debian's
/// package of npm cannot be installed beside it.
#[allow(dead_code, reason = "only the test command installs them")]
pub(crate) const BROWSER: [Package; 3] =
    [commands("chromium", &["chromium"]), commands("nodejs", &["node"]), commands("npm", &["npm"])];

/// The names of those of `packages` of which no command is found.
pub(crate) fn missing(packages: &[Package]) -> Vec<&'static str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // mdadm, bonnie++ and hdparm live where an ordinary user's PATH often does not lead.
    let administration = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let directories: Vec<PathBuf> = std::env::split_paths(&path).chain(administration).collect();
    missing_from(packages, &directories)
}

fn missing_from(packages: &[Package], directories: &[PathBuf]) -> Vec<&'static str> {
    let found = |command: &&str| directories.iter().any(|dir| is_file(&dir.join(command)));
    let there = |package: &Package| {
        package.commands.iter().any(found)
            || package.files.iter().any(|file| is_file(file.as_ref()))
    };
    let absent = |package: &&Package| !there(package);
    packages.iter().filter(absent).map(|package| package.name).collect()
}

fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file())
}

/// Why a test cannot run without `missing`, as it is printed and handed on.
pub(crate) fn reason(missing: &[&str]) -> String {
    format!("needs {}", missing.join(", "))
}

/// What to type to have `missing`.
#[allow(dead_code, reason = "only the test command says it")]
pub(crate) fn advice(missing: &[&str]) -> String {
    let names = missing.join(" ");
    format!(
        "tests will skip what needs packages that are missing; to install them, as root:\n  \
             apt-get install --no-install-recommends {names}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_without_a_command_is_missing() {
        let packages = [
            commands("shell", &["no-such-command", "sh"]),
            commands("nothing", &["no-such-command"]),
        ];
        let directories = ["/nowhere", "/bin", "/usr/bin"].map(PathBuf::from);
        assert_eq!(missing_from(&packages, &directories), ["nothing"]);
        assert_eq!(missing_from(&packages, &[]), ["shell", "nothing"]);
        assert_eq!(reason(&["a", "b"]), "needs a, b");
        assert!(advice(&["a", "b"]).ends_with("\n  apt-get install --no-install-recommends a b"));
    }
}
