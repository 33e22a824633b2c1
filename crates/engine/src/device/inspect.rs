//! What the kernel tells of a device: sysfs, mounts and swap.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::mounts::{self, Mount, unescaped};
use super::place::number_of;
use super::{Device, DeviceRefusal, own, tools};
use crate::error::{EngineError, EngineErrorKind};

const INSPECT: &str = "look at a device";

/// Where the kernel's directories are; elsewhere in tests.
pub(super) struct Roots {
    pub(super) sys: PathBuf,
    pub(super) proc: PathBuf,
    pub(super) dev: PathBuf,
}

/// A device of the kernel's, by its directory in sysfs.
struct Node {
    directory: PathBuf,
    name: String,
    number: String,
}

impl Roots {
    pub(super) fn system() -> Self {
        Self { sys: "/sys".into(), proc: "/proc".into(), dev: "/dev".into() }
    }

    pub(super) fn inspect(&self, path: &Path) -> Result<Device, EngineError> {
        let failed = |error| EngineError::io(INSPECT, path, error);
        let metadata = fs::metadata(path).map_err(failed)?;
        if !metadata.file_type().is_block_device() {
            let error = EngineError::new(EngineErrorKind::Member, INSPECT, "is no block device");
            return Err(error.at_path(path));
        }
        let canonical = path.canonicalize().map_err(failed)?;
        let mut device = self.by_number(path, &number_of(metadata.rdev()))?;
        device.by_id = self.by_id(&canonical);
        let listed = tools::listed(&canonical)?;
        device.model = listed.model.or(device.model);
        let is_partition = device.name != device.disk;
        device.serial = listed.serial.or(device.serial).filter(|_| !is_partition);
        if is_partition {
            device.part_uuid = tools::part_uuid(&canonical)?;
        }
        if device.size > 0 {
            device.signatures = tools::signatures(&canonical, &device.name)?;
            device.signatures.extend(own::signatures(&canonical, &device.name, device.size)?);
            for part in self.partitions(&device.name) {
                let node = self.dev.join(part.replace('!', "/"));
                device.signatures.extend(tools::signatures(&node, &part)?);
                let size = self.named(&part).map_or(0, |node| size_of(&node.directory));
                device.signatures.extend(own::signatures(&node, &part, size)?);
            }
        }
        Ok(device)
    }

    /// All that needs no program.
    fn by_number(&self, path: &Path, number: &str) -> Result<Device, EngineError> {
        let own = self.node(number).ok_or_else(|| {
            let reason = format!("the kernel has no entry {number} in {}", self.sys.display());
            EngineError::new(EngineErrorKind::NotSupported, INSPECT, reason).at_path(path)
        })?;
        let whole = self.whole(&own);
        let disk = whole.as_ref().map_or(&own, |whole| whole);
        let read = |directory: &Path, name: &str| {
            let text = fs::read_to_string(directory.join(name)).ok()?;
            let text = text.trim();
            (!text.is_empty()).then(|| text.to_string())
        };
        let serial = read(&disk.directory, "serial");
        let sector = read(&disk.directory, "queue/logical_block_size");
        let device = Device {
            path: path.to_path_buf(),
            disk: disk.name.clone(),
            size: size_of(&own.directory),
            sector: sector
                .and_then(|text| text.parse().ok())
                .unwrap_or(raidlab_core::SECTOR_BYTES as u32),
            model: read(&disk.directory, "device/model"),
            serial: serial.or_else(|| read(&disk.directory, "device/serial")),
            by_id: Vec::new(),
            part_uuid: None,
            backing_file: read(&own.directory, "loop/backing_file").map(PathBuf::from),
            rotational: read(&disk.directory, "queue/rotational").as_deref() == Some("1"),
            signatures: Vec::new(),
            refusals: self.refusals(&own, whole.as_ref(), path)?,
            name: own.name,
        };
        Ok(device)
    }

    fn refusals(
        &self,
        own: &Node,
        whole: Option<&Node>,
        path: &Path,
    ) -> Result<Vec<DeviceRefusal>, EngineError> {
        let text = |name: &str| {
            let file = self.proc.join(name);
            fs::read(&file).map_err(|error| EngineError::io(INSPECT, &file, error))
        };
        let mounts = mounts::parse(&text("self/mountinfo")?);
        let swaps = text("swaps")?;
        let swaps = String::from_utf8_lossy(&swaps);
        // Writing a disk overwrites its partitions; writing a partition changes what its disk shows.
        let mut concerned: Vec<&Node> = vec![own];
        concerned.extend(whole);
        let parts: Vec<Node> =
            self.partitions(&own.name).iter().filter_map(|n| self.named(n)).collect();
        concerned.extend(&parts);
        let mut refusals = Vec::new();
        for node in &concerned {
            let device = || node.name.clone();
            for at in self.mounted(&mounts, node) {
                refusals.push(DeviceRefusal::Mounted { device: device(), at });
            }
            let swap = swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next());
            if swap.map(|name| unescaped(name.as_bytes())).any(|file| self.is(&mounts, &file, node))
            {
                refusals.push(DeviceRefusal::Swap { device: device() });
            }
            for by in self.holders(&mounts, node) {
                refusals.push(DeviceRefusal::Held { device: device(), by });
            }
        }
        if self.below_root(&mounts).contains(&own.number) {
            refusals.push(DeviceRefusal::Root);
        }
        let is = |name: &str, value: &str| {
            fs::read_to_string(own.directory.join(name)).is_ok_and(|text| text.trim() == value)
        };
        if is("ro", "1") {
            refusals.push(DeviceRefusal::ReadOnly);
        }
        if is("size", "0") {
            refusals.push(DeviceRefusal::Empty);
        }
        if !own.directory.join("size").exists() {
            let reason = format!("{} is not a block device's", own.directory.display());
            let error = EngineError::new(EngineErrorKind::NotSupported, INSPECT, reason);
            return Err(error.at_path(path));
        }
        Ok(refusals)
    }

    fn node(&self, number: &str) -> Option<Node> {
        self.node_at(&self.sys.join("dev/block").join(number))
    }

    fn named(&self, name: &str) -> Option<Node> {
        self.node_at(&self.sys.join("class/block").join(name))
    }

    fn node_at(&self, link: &Path) -> Option<Node> {
        let directory = link.canonicalize().ok()?;
        let name = directory.file_name()?.to_str()?.to_string();
        let number = fs::read_to_string(directory.join("dev")).ok()?.trim().to_string();
        Some(Node { directory, name, number })
    }

    /// The disk that a partition is part of.
    fn whole(&self, node: &Node) -> Option<Node> {
        node.directory
            .join("partition")
            .exists()
            .then(|| node.directory.parent())?
            .and_then(|up| self.node_at(up))
    }

    fn partitions(&self, name: &str) -> Vec<String> {
        let Some(node) = self.named(name) else { return Vec::new() };
        let mut parts = names(&node.directory);
        parts.retain(|part| node.directory.join(part).join("partition").exists());
        parts
    }

    /// Whether a path names this device. Sources of mounts need be no paths, and filesystems that may never answer
    /// have no devices.
    fn is(&self, mounts: &[Mount], path: &Path, node: &Node) -> bool {
        if !may_be_device(mounts, path) {
            return false;
        }
        let path = path.strip_prefix("/dev").map_or(path.to_path_buf(), |rest| self.dev.join(rest));
        fs::metadata(path).is_ok_and(|there| {
            there.file_type().is_block_device() && number_of(there.rdev()) == node.number
        })
    }

    /// Where something of the device is mounted: by number, or by name where a filesystem has numbers of
    /// its own, as btrfs has (proc_pid_mountinfo(5)).
    fn mounted(&self, mounts: &[Mount], node: &Node) -> Vec<PathBuf> {
        let of = |mount: &&Mount| {
            number_of(mount.number) == node.number || self.is(mounts, &mount.source, node)
        };
        mounts.iter().filter(of).map(|mount| mount.point.clone()).collect()
    }

    /// Arrays and volumes by the kernel's list, and loop devices, which are not in it.
    fn holders(&self, mounts: &[Mount], node: &Node) -> Vec<String> {
        let mut holders = names(&node.directory.join("holders"));
        for name in names(&self.sys.join("class/block")) {
            let file = self.sys.join("class/block").join(&name).join("loop/backing_file");
            let Ok(file) = fs::read_to_string(file) else { continue };
            if self.is(mounts, Path::new(file.trim_end_matches('\n')), node) {
                holders.push(name);
            }
        }
        holders
    }

    /// The numbers of everything that the root filesystem lies on.
    fn below_root(&self, mounts: &[Mount]) -> BTreeSet<String> {
        let mut numbers = BTreeSet::new();
        let mut open: Vec<Node> = Vec::new();
        for mount in mounts.iter().filter(|mount| mount.point == Path::new("/")) {
            open.extend(self.node(&number_of(mount.number)));
            let source = may_be_device(mounts, &mount.source).then(|| fs::metadata(&mount.source));
            let source = source.and_then(Result::ok);
            let block = source.filter(|there| there.file_type().is_block_device());
            open.extend(block.and_then(|there| self.node(&number_of(there.rdev()))));
        }
        while let Some(node) = open.pop() {
            if !numbers.insert(node.number.clone()) {
                continue;
            }
            open.extend(self.whole(&node));
            for slave in names(&node.directory.join("slaves")) {
                open.extend(self.named(&slave));
            }
        }
        numbers
    }

    fn by_id(&self, canonical: &Path) -> Vec<PathBuf> {
        let directory = self.dev.join("disk/by-id");
        let links = names(&directory).into_iter().map(|name| directory.join(name));
        links.filter(|link| link.canonicalize().is_ok_and(|to| to == canonical)).collect()
    }
}

/// Whether a path may be of a block device, and may be asked of.
fn may_be_device(mounts: &[Mount], path: &Path) -> bool {
    path.is_absolute() && mounts::may_ask(mounts, path, None)
}

/// The size of a device in bytes, by its directory in sysfs.
fn size_of(directory: &Path) -> u64 {
    let text = fs::read_to_string(directory.join("size")).unwrap_or_default();
    text.trim().parse::<u64>().unwrap_or(0) * raidlab_core::SECTOR_BYTES
}

/// The names in a directory, sorted; none where there is no directory.
fn names(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Directories as the kernel's: sda with sda1 (root) and sda2; sdb with sdb1, part of md0; sdc, under
    /// dm-0, which the root lies on in some tests; sdd, free.
    struct Fake(PathBuf);

    impl Fake {
        fn new(name: &str) -> Self {
            let name = format!("raidlab-device-{name}-{}", std::process::id());
            let fake = Self(std::env::temp_dir().join(name));
            for (path, number) in [
                ("sda", "8:0"),
                ("sda/sda1", "8:1"),
                ("sda/sda2", "8:2"),
                ("sdb", "8:16"),
                ("sdb/sdb1", "8:17"),
                ("sdc", "8:32"),
                ("sdd", "8:48"),
                ("md0", "9:0"),
                ("dm-0", "253:0"),
            ] {
                let leaf = path.rsplit('/').next().unwrap();
                fake.write(&format!("sys/devices/{path}/dev"), number);
                fake.write(&format!("sys/devices/{path}/size"), "2048");
                fake.write(&format!("sys/devices/{path}/ro"), "0");
                if path.contains('/') {
                    fake.write(&format!("sys/devices/{path}/partition"), "1");
                }
                for link in [format!("class/block/{leaf}"), format!("dev/block/{number}")] {
                    let link = fake.0.join("sys").join(link);
                    fs::create_dir_all(link.parent().unwrap()).unwrap();
                    std::os::unix::fs::symlink(fake.0.join("sys/devices").join(path), link)
                        .unwrap();
                }
            }
            fake.write("sys/devices/sdb/sdb1/holders/md0", "");
            fake.write("sys/devices/dm-0/slaves/sdc", "");
            fake.write("proc/swaps", "Filename Type Size Used Priority\n");
            fake.mounts("20 1 8:1 / / rw - ext4 /nowhere/sda1 rw\n");
            fake
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn mounts(&self, text: &str) {
            self.write("proc/self/mountinfo", text);
        }

        fn look(&self, number: &str) -> Device {
            let below = |name| self.0.join(name);
            let roots = Roots { sys: below("sys"), proc: below("proc"), dev: below("dev") };
            roots.by_number(Path::new("/dev/x"), number).unwrap()
        }

        fn refusals(&self, number: &str) -> Vec<String> {
            self.look(number).refusals.iter().map(ToString::to_string).collect()
        }
    }

    impl Drop for Fake {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_is_in_use_is_refused_whole_or_in_part() {
        let fake = Fake::new("use");
        assert!(fake.refusals("8:48").is_empty(), "free");
        let root = "the root filesystem lies on it";
        assert_eq!(fake.refusals("8:0"), ["sda1 is mounted at /", root]);
        assert_eq!(fake.refusals("8:1"), ["sda1 is mounted at /", root]);
        assert!(fake.refusals("8:2").is_empty(), "a partition beside it");
        assert_eq!(fake.refusals("8:16"), ["sdb1 is in use by md0"]);
        assert_eq!(fake.refusals("8:17"), ["sdb1 is in use by md0"]);
    }

    #[test]
    fn what_the_root_lies_on_is_found_through_every_layer() {
        let fake = Fake::new("root");
        fake.mounts(
            "20 1 253:0 / / rw - ext4 /nowhere/dm-0 rw\n21 20 8:2 / /my\\040data rw - xfs /dev/sda2 rw\n",
        );
        assert_eq!(fake.refusals("8:32"), ["the root filesystem lies on it"]);
        assert_eq!(fake.refusals("8:0"), ["sda2 is mounted at /my data"]);
        assert!(fake.refusals("8:1").is_empty());
    }

    #[test]
    fn devices_without_writes_or_room_are_refused() {
        let fake = Fake::new("room");
        fake.write("sys/devices/sdd/ro", "1\n");
        fake.write("sys/devices/sdd/size", "0\n");
        let said = ["it is read-only", "it has no room: no medium is in it"];
        assert_eq!(fake.refusals("8:48"), said);
    }

    #[test]
    fn a_device_is_named_by_what_stays() {
        let fake = Fake::new("name");
        fake.write("sys/devices/sdd/device/model", "Disk 1  \n");
        fake.write("sys/devices/sdd/serial", "S-1\n");
        fake.write("sys/devices/sdd/queue/rotational", "1\n");
        let mut device = fake.look("8:48");
        assert_eq!((device.model.as_deref(), device.size), (Some("Disk 1"), 1 << 20));
        assert!(device.rotational && device.name == "sdd" && device.sector == 512);
        fake.write("sys/devices/sda/queue/logical_block_size", "4096\n");
        assert_eq!((fake.look("8:0").sector, fake.look("8:2").sector), (4096, 4096));
        device.by_id = vec!["/dev/disk/by-id/ata-Disk_1-S-1".into()];
        assert_eq!(device.identities(), ["S-1", "ata-Disk_1-S-1"]);
        let part = fake.look("8:2");
        assert_eq!((part.name.as_str(), part.disk.as_str()), ("sda2", "sda"));
        assert!(part.overlaps(&fake.look("8:0")) && fake.look("8:0").overlaps(&part));
        assert!(part.overlaps(&part) && !part.overlaps(&fake.look("8:1")));
        assert!(!part.overlaps(&device));
    }
}
