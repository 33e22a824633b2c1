//! Who has locked a file or opened a device, as far as this process may see others (`/proc`).

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Who has a lock on a file, as the subject of a sentence.
pub(super) fn locks(file: &File) -> String {
    let Ok(inode) = file.metadata().map(|there| there.ino()) else { return named(Vec::new()) };
    let tail = format!(":{inode}");
    let holds = |_: &Path, information: &Path| {
        let text = fs::read_to_string(information).unwrap_or_default();
        let mut locks = text.lines().filter(|line| line.starts_with("lock:"));
        locks.any(|line| line.split_whitespace().any(|field| field.ends_with(&tail)))
    };
    named(processes(holds))
}

/// Who has opened a device, as the subject of a sentence.
pub(super) fn device(node: &Path) -> String {
    named(processes(|descriptor, _| fs::read_link(descriptor).is_ok_and(|to| to == node)))
}

fn named(mut processes: Vec<String>) -> String {
    match processes.len() {
        0 => "something that shows nowhere".to_string(),
        1 => processes.remove(0),
        _ => processes.join(" or "),
    }
}

/// The processes with a descriptor of which `holds` is true, besides this one; it gets the paths of descriptor
/// and information about it. No file is opened or looked at itself: that may wait for ever.
fn processes(holds: impl Fn(&Path, &Path) -> bool) -> Vec<String> {
    let list = |path: &Path| -> Vec<PathBuf> {
        fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    };
    let mut found = Vec::new();
    for process in list(Path::new("/proc")) {
        let number = process.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
        let Some(number) = number.filter(|number| *number != std::process::id()) else { continue };
        let has_it = list(&process.join("fdinfo")).iter().any(|information| {
            let descriptor = information.file_name().map(|name| process.join("fd").join(name));
            descriptor.is_some_and(|descriptor| holds(&descriptor, information))
        });
        if has_it {
            let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
            found.push(format!("process {number} ({})", name.trim()));
        }
    }
    found
}
