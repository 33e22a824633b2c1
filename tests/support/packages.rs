//! What the tests need besides Rust, and whether it is here.

use std::path::{Path, PathBuf};

/// A Debian package and the commands it brings; one of them is enough.
pub(crate) struct Package {
    /// Its name for `apt-get install`.
    pub(crate) name: &'static str,
    /// Names of one command, the preferred one first.
    pub(crate) commands: &'static [&'static str],
}

/// What a guest with the Linux md driver needs.
pub(crate) const GUEST: [Package; 3] = [
    Package { name: "user-mode-linux", commands: &["linux.uml", "linux"] },
    Package { name: "mdadm", commands: &["mdadm"] },
    Package { name: "busybox-static", commands: &["busybox"] },
];

/// What a test with GRUB as a reader of arrays needs.
pub(crate) const GRUB: [Package; 1] = [Package { name: "grub-common", commands: &["grub-fstest"] }];

/// The names of those of `packages` of which no command is found.
pub(crate) fn missing(packages: &[Package]) -> Vec<&'static str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // mdadm lives where an ordinary user's PATH often does not lead.
    let administration = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let directories: Vec<PathBuf> = std::env::split_paths(&path).chain(administration).collect();
    missing_from(packages, &directories)
}

fn missing_from(packages: &[Package], directories: &[PathBuf]) -> Vec<&'static str> {
    let found = |command: &&str| directories.iter().any(|dir| is_file(&dir.join(command)));
    let absent = |package: &&Package| !package.commands.iter().any(found);
    packages.iter().filter(absent).map(|package| package.name).collect()
}

fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file())
}

/// Why a test cannot run without `missing`, as it is printed and handed on.
pub(crate) fn reason(missing: &[&str]) -> String {
    format!("needs {}", missing.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_without_a_command_is_missing() {
        let packages = [
            Package { name: "shell", commands: &["no-such-command", "sh"] },
            Package { name: "nothing", commands: &["no-such-command"] },
        ];
        let directories = ["/nowhere", "/bin", "/usr/bin"].map(PathBuf::from);
        assert_eq!(missing_from(&packages, &directories), ["nothing"]);
        assert_eq!(missing_from(&packages, &[]), ["shell", "nothing"]);
        assert_eq!(reason(&["a", "b"]), "needs a, b");
    }
}
