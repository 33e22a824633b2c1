//! The machine and the drives of a run, as its record has them.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use raidlab_core::SECTOR_BYTES;
use raidlab_engine::Device;
use raidlab_measure::facts;
use raidlab_models::DriveSpec;
use raidlab_store::{Drive, Machine, Place, Salt};
use raidlab_study::Study;

/// What a file holds, without blanks around it; `None` when there is none, or it is empty.
fn line(path: impl AsRef<Path>) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_string()).filter(|text| !text.is_empty())
}

pub(super) fn machine() -> Machine {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = info.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "model name").then(|| value.trim().to_string())
    });
    Machine {
        kernel: line("/proc/sys/kernel/osrelease"),
        cpu,
        cores: std::thread::available_parallelism().map_or(0, usize::from),
        memory: raidlab_measure::host_memory(),
    }
}

/// The directory of member files.
pub(super) fn place(directory: &Path, salt: Salt) -> Place {
    let mount = facts::mount(directory);
    let path = directory.canonicalize().unwrap_or_else(|_| directory.to_path_buf());
    Place {
        path: path.display().to_string(),
        filesystem: mount.as_ref().map(|mount| mount.kind.clone()),
        device: mount.as_ref().map(|mount| mount.source.display().to_string()),
        mount_options: mount.map(|mount| format!("{}; {}", mount.options, mount.of_filesystem)),
        drive: below(directory).map(|name| of_kernel(&name, salt)),
    }
}

/// The kernel's name of the disk below a directory; `None` where there is none, as in memory or on a filesystem
/// of several.
fn below(directory: &Path) -> Option<String> {
    let device = std::fs::metadata(directory).ok()?.dev();
    let (major, minor) = ((device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xfff00));
    let node = PathBuf::from(format!("/sys/dev/block/{major}:{minor}")).canonicalize().ok()?;
    let disk = if node.join("partition").exists() { node.parent()? } else { &node };
    Some(disk.file_name()?.to_str()?.to_string())
}

/// A disk by the kernel's name, such as `sda`.
fn of_kernel(name: &str, salt: Salt) -> Drive {
    let of = |what: &str| line(format!("/sys/class/block/{name}/{what}"));
    let serial = of("device/serial").or_else(|| of("serial")).or_else(|| of("wwid"));
    let sectors: Option<u64> = of("size").and_then(|size| size.parse().ok());
    Drive {
        name: name.to_string(),
        model: of("device/model"),
        size: sectors.map(|sectors| sectors.saturating_mul(SECTOR_BYTES)),
        serial_hash: serial.map(|serial| salt.hash(&serial)),
        scheduler: of("queue/scheduler").map(|all| chosen(&all)),
        rotational: of("queue/rotational").map(|text| text == "1"),
    }
}

/// The scheduler in use, of `none [mq-deadline] kyber`.
fn chosen(all: &str) -> String {
    let inside = all.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(all, |(name, _)| name).to_string()
}

/// Block devices, in their order.
pub(in crate::compare) fn devices<'a>(
    devices: impl Iterator<Item = &'a Device>,
    salt: Salt,
) -> Vec<Drive> {
    let drive = |device: &Device| {
        let identity = device.serial.clone().or_else(|| device.identities().into_iter().next());
        Drive {
            name: device.path.display().to_string(),
            model: device.model.clone(),
            size: Some(device.size),
            serial_hash: identity.map(|identity| salt.hash(&identity)),
            rotational: Some(device.rotational),
            ..of_kernel(&device.disk, salt)
        }
    };
    devices.map(drive).collect()
}

/// Modelled drives, one for each group.
pub(in crate::compare) fn modelled(study: &Study, drives: &[DriveSpec]) -> Vec<Drive> {
    let groups = study.drives.iter().zip(drives);
    let drive = |(group, drive): (&raidlab_study::Drives, &DriveSpec)| Drive {
        name: drive.name.clone(),
        model: Some(drive.title.clone()),
        size: Some(drive.capacity.bytes()),
        scheduler: group.scheduler.as_ref().map(|scheduler| format!("{scheduler:?}")),
        ..Drive::default()
    };
    groups.map(drive).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_in_use_stands_in_brackets() {
        assert_eq!(chosen("none [mq-deadline] kyber"), "mq-deadline");
        assert_eq!(chosen("[none] mq-deadline"), "none");
        assert_eq!(chosen("none"), "none");
    }
}
