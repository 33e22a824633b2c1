//! Arrays of the md driver that run, as `/sys/block` tells.

use std::io;
use std::path::{Path, PathBuf};

/// The arrays that run, with the devices they are made of.
pub(crate) fn arrays() -> io::Result<Vec<(PathBuf, Vec<PathBuf>)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/sys/block")? {
        let entry = entry?;
        let name = entry.file_name();
        if !name.to_str().is_some_and(|name| name.starts_with("md")) {
            continue;
        }
        // One that is being stopped has none any more.
        let members = std::fs::read_dir(entry.path().join("slaves")).into_iter().flatten();
        let members = members.flatten().map(|member| Path::new("/dev").join(member.file_name()));
        found.push((Path::new("/dev").join(name), members.collect()));
    }
    Ok(found)
}
