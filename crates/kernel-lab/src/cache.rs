//! Where `cargo xtask kernel` leaves kernels: `$XDG_CACHE_HOME/raidlab/kernel-lab`, or under `~/.cache`.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};

/// There is no such kernel.
#[derive(Debug)]
pub struct NoKernel(String);

impl fmt::Display for NoKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl std::error::Error for NoKernel {}

/// The directory of kernels, if this machine has one for what can be made anew.
pub fn directory() -> Option<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    cache.map(|cache| cache.join("raidlab/kernel-lab"))
}

/// The kernel of a version such as `6.12` that was built last, or the one at a path.
///
/// # Errors
/// When there is none, with the command that builds it.
pub fn kernel(version_or_path: &str) -> Result<PathBuf, NoKernel> {
    if version_or_path.contains('/') {
        return Ok(PathBuf::from(version_or_path));
    }
    let directory =
        directory().ok_or_else(|| NoKernel("neither XDG_CACHE_HOME nor HOME".to_owned()))?;
    in_directory(&directory, version_or_path)
}

/// The guest's programs, if `cargo xtask kernel programs` has built them.
pub fn programs() -> Option<PathBuf> {
    let archive = directory()?.join("programs.cpio");
    archive.is_file().then_some(archive)
}

fn in_directory(directory: &Path, version: &str) -> Result<PathBuf, NoKernel> {
    let path = directory.join(format!("linux-{version}"));
    if path.is_file() {
        return Ok(path);
    }
    let text =
        format!("no kernel {version} in {}: `cargo xtask kernel {version}`", directory.display());
    Err(NoKernel(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_is_not_there_is_named_with_the_command() {
        let error = in_directory(Path::new("/nowhere"), "6.12").expect_err("is not there");
        assert!(error.to_string().contains("`cargo xtask kernel 6.12`"), "{error}");
        assert_eq!(kernel("./linux").expect("is a path"), Path::new("./linux"));
    }
}
