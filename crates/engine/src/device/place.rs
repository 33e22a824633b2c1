//! Where the bytes of a file or block device really lie: through partitions and loop devices, down to a file or
//! to a device that is made of nothing else. Two names are the same bytes when they end in the same place.

use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use raidlab_core::SECTOR_BYTES;

use super::loops::LoopStatus;
use super::{mounts, served};

const SYS: &str = "/sys";

/// What bytes lie in at last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// A file, by the device of its filesystem and its inode.
    File(u64, u64),
    /// A block device, by its number.
    Device(u64),
}

/// A run of bytes in a file or on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) base: Base,
    pub(super) bytes: Range<u64>,
}

impl Extent {
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let (one, two) = (&self.bytes, &other.bytes);
        self.base == other.base && one.start < two.end && two.start < one.end
    }
}

/// Where bytes lie, and by what way they get there.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) extent: Extent,
    /// The block devices on the way, the one that was asked for first.
    pub(super) devices: Vec<u64>,
    /// Those among them that a loop device is made of.
    pub(super) under_loops: Vec<u64>,
    /// The path of the file that the last loop device is made of, as the kernel has it.
    pub(super) file: Option<PathBuf>,
}

/// A loop device's file or device.
struct Backing {
    base: Base,
    offset: u64,
    /// The most bytes that are shown; zero: all.
    limit: u64,
    path: PathBuf,
}

/// Where these bytes of an open file or block device lie.
pub(super) fn of_file(file: &File, bytes: Range<u64>) -> std::io::Result<Place> {
    let metadata = file.metadata()?;
    if metadata.file_type().is_block_device() {
        return Ok(of_device(metadata.rdev(), Some(file), bytes));
    }
    let base = Base::File(metadata.dev(), metadata.ino());
    Ok(Place {
        extent: Extent { base, bytes },
        devices: Vec::new(),
        under_loops: Vec::new(),
        file: None,
    })
}

/// Where these bytes of a block device lie; `open` is the device if it is open already.
pub(super) fn of_device(number: u64, open: Option<&File>, bytes: Range<u64>) -> Place {
    follow((number, open), bytes, &|_| true)
}

/// The same, as far down as files may be asked.
fn follow(
    (mut number, mut open): (u64, Option<&File>),
    mut bytes: Range<u64>,
    may_ask: &dyn Fn(&Path) -> bool,
) -> Place {
    /// Loop devices over loop devices: the kernel itself refuses circles.
    const MOST_LAYERS: usize = 32;
    let (mut devices, mut under_loops) = (vec![number], Vec::new());
    let mut shift = |by: u64| {
        bytes = bytes.start.saturating_add(by)..bytes.end.saturating_add(by);
        bytes.clone()
    };
    let mut at = shift(0);
    while devices.len() < MOST_LAYERS {
        if let Some((disk, start)) = whole_disk(number) {
            (number, open) = (disk, None);
            at = shift(start);
        } else if let Some(backing) = backing_of(number, open, may_ask) {
            at = shift(backing.offset);
            if backing.limit > 0 {
                at.end = at.end.min(backing.offset.saturating_add(backing.limit));
            }
            match backing.base {
                Base::Device(below) => (number, open) = (below, None),
                Base::File(..) => {
                    let extent = Extent { base: backing.base, bytes: at };
                    return Place { extent, devices, under_loops, file: Some(backing.path) };
                }
            }
            under_loops.push(number);
        } else {
            break;
        }
        devices.push(number);
    }
    let extent = Extent { base: Base::Device(number), bytes: at };
    Place { extent, devices, under_loops, file: None }
}

/// A device's number as the kernel writes it.
pub(super) fn number_of(device: u64) -> String {
    format!("{}:{}", libc::major(device), libc::minor(device))
}

fn directory(number: u64) -> PathBuf {
    Path::new(SYS).join("dev/block").join(number_of(number))
}

/// The kernel's name of a device.
pub(super) fn name(number: u64) -> Option<String> {
    let directory = directory(number).canonicalize().ok()?;
    Some(directory.file_name()?.to_string_lossy().replace('!', "/"))
}

/// The device's node.
pub(super) fn node(number: u64) -> Option<PathBuf> {
    Some(Path::new("/dev").join(name(number)?))
}

fn figure(directory: &Path, name: &str) -> Option<u64> {
    fs::read_to_string(directory.join(name)).ok()?.trim().parse().ok()
}

fn number_in(directory: &Path) -> Option<u64> {
    let text = fs::read_to_string(directory.join("dev")).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    Some(libc::makedev(major.parse().ok()?, minor.parse().ok()?))
}

/// The disk of a partition, and the byte where that starts on it.
fn whole_disk(number: u64) -> Option<(u64, u64)> {
    let directory = directory(number).canonicalize().ok()?;
    let _ = figure(&directory, "partition")?;
    Some((number_in(directory.parent()?)?, figure(&directory, "start")? * SECTOR_BYTES))
}

/// The path of what a loop device is made of, as the kernel has it.
pub(super) fn backing_path(number: u64) -> Option<PathBuf> {
    let path = fs::read_to_string(directory(number).join("loop/backing_file")).ok()?;
    Some(PathBuf::from(path.trim_end_matches('\n')))
}

/// What a loop device is made of; `None` for everything else, and where it is a file of which nothing may be asked, as
/// one that this process serves (the call asks for the file's attributes). The call knows files whose path leads
/// nowhere, or elsewhere, as seen from here; where it cannot be asked, the path has to do.
fn backing_of(
    number: u64,
    open: Option<&File>,
    may_ask: &dyn Fn(&Path) -> bool,
) -> Option<Backing> {
    let directory = directory(number).join("loop");
    let path = backing_path(number).filter(|path| !served::serves(path) && may_ask(path))?;
    let told = match open {
        Some(device) => LoopStatus::of(device).ok(),
        None => {
            let device = node(number).and_then(|node| File::open(node).ok());
            device.and_then(|device| LoopStatus::of(&device).ok())
        }
    };
    if let Some(told) = told {
        let path_is_device = fs::metadata(&path)
            .ok()
            .filter(|there| there.dev() == told.device && there.ino() == told.inode);
        let base = match path_is_device.filter(|there| there.file_type().is_block_device()) {
            Some(there) => Base::Device(there.rdev()),
            None => Base::File(told.device, told.inode),
        };
        return Some(Backing { base, offset: told.offset, limit: told.size_limit, path });
    }
    let there = fs::metadata(&path).ok()?;
    let base = if there.file_type().is_block_device() {
        Base::Device(there.rdev())
    } else {
        Base::File(there.dev(), there.ino())
    };
    let (offset, limit) = (figure(&directory, "offset")?, figure(&directory, "sizelimit")?);
    Some(Backing { base, offset, limit, path })
}

/// The loop devices that show bytes of an extent, besides those in `known`.
pub(super) fn loops_over(extent: &Extent, known: &[u64]) -> Vec<u64> {
    let Ok(entries) = fs::read_dir(Path::new(SYS).join("block")) else { return Vec::new() };
    let directories = entries.flatten().map(|entry| entry.path());
    // Nor is a file asked of a filesystem that may never answer, unless the bytes lie there themselves.
    let mounts = mounts::all().unwrap_or_default();
    let near = match extent.base {
        Base::File(device, _) => Some(device),
        Base::Device(_) => None,
    };
    let may_ask = |file: &Path| mounts::may_ask(&mounts, file, near);
    let mut found: Vec<u64> = directories
        .filter(|directory| directory.join("loop/backing_file").exists())
        .filter_map(|directory| {
            let number = number_in(&directory).filter(|number| !known.contains(number))?;
            let bytes = 0..figure(&directory, "size")? * SECTOR_BYTES;
            follow((number, None), bytes, &may_ask).extent.overlaps(extent).then_some(number)
        })
        .collect();
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_overlap_where_they_share_a_byte() {
        let extent = |base, bytes| Extent { base, bytes };
        let one = extent(Base::File(1, 2), 10..20);
        for (other, shares) in [
            (extent(Base::File(1, 2), 19..30), true),
            (extent(Base::File(1, 2), 20..30), false),
            (extent(Base::File(1, 2), 0..10), false),
            (extent(Base::File(1, 3), 10..20), false),
            (extent(Base::Device(1), 10..20), false),
        ] {
            assert_eq!((one.overlaps(&other), other.overlaps(&one)), (shares, shares), "{other:?}");
        }
    }
}
