//! Loop devices: a file as a block device.
//!
//! Format of the calls: `include/uapi/linux/loop.h` of Linux. Devices are made with the flag that lets
//! the kernel take them down when the last user is gone, so that a killed run leaves one only as long as
//! something is mounted on it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::mounts::wait_for;
use crate::rundir::system::Identity;
use raidlab_engine::{EngineError, EngineErrorKind, LoopStatus, mounts};
use rustix::fs::{self, FileType, Mode};

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Gives free loop devices.
const CONTROL: &str = "/dev/loop-control";
const ATTACH: &str = "attach a loop device";
const DETACH: &str = "detach a loop device";

const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4C82;
const LOOP_CONFIGURE: libc::c_ulong = 0x4C0A;
const LOOP_CLR_FD: libc::c_ulong = 0x4C01;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// `struct loop_config`.
#[repr(C)]
struct Configuration {
    descriptor: u32,
    block_size: u32,
    status: LoopStatus,
    reserved: [u64; 8],
}

/// A loop device; the kernel takes it down after it was dropped and nobody else uses it.
#[derive(Debug)]
pub(crate) struct LoopDevice {
    number: u32,
    /// Holds it.
    _device: File,
}

impl LoopDevice {
    /// Makes a block device of `file` with this block in bytes, 0 for the kernel's choice; with direct
    /// I/O on the file where its filesystem has that.
    pub(crate) fn attach(file: &File, path: &Path, block: u32) -> Result<Self, EngineError> {
        let failed = |error| EngineError::io(ATTACH, path, error);
        let control = open(Path::new(CONTROL)).map_err(failed)?;
        loop {
            // SAFETY: takes no memory.
            let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE as _) };
            check(number).map_err(failed)?;
            let number = number as u32;
            let node = node(number);
            make_node(&node, number).map_err(failed)?;
            let device = open(&node).map_err(failed)?;
            let configuration = configuration(file, path, block);
            // SAFETY: the structure has the kernel's layout and lives through the call.
            let done = unsafe {
                let configuration = std::ptr::from_ref(&configuration);
                libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE as _, configuration)
            };
            match check(done) {
                Ok(()) => return Ok(Self { number, _device: device }),
                // Somebody was faster.
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// The device.
    pub(crate) fn path(&self) -> PathBuf {
        node(self.number)
    }

    /// Whether the file is read and written past the page cache.
    pub(crate) fn is_direct(&self) -> bool {
        let told = std::fs::read_to_string(attribute(self.number, "loop/dio"));
        // Without a word of the kernel's the flag is believed.
        told.map_or(true, |text| text.trim() == "1")
    }

    /// Reads, writes and bytes of each since the device was made, as `/sys/block/*/stat` has them.
    pub(crate) fn counts(&self) -> [u64; 4] {
        let text = std::fs::read_to_string(attribute(self.number, "stat")).unwrap_or_default();
        let field = |index| {
            let field = text.split_ascii_whitespace().nth(index);
            field.and_then(|field| field.parse::<u64>().ok()).unwrap_or(0)
        };
        let sector = raidlab_core::SECTOR_BYTES;
        [field(0), field(4), field(2) * sector, field(6) * sector]
    }

    /// Lets go of the device and waits until the kernel has taken it down.
    pub(crate) fn detach(self) -> Result<(), EngineError> {
        let number = self.number;
        let backing = attribute(number, "loop/backing_file");
        let before = std::fs::read(&backing).ok();
        drop(self);
        // Another may have it by now, for another file.
        let gone =
            || Ok((std::fs::read(&backing).ok() != before || before.is_none()).then_some(()));
        match wait_for(gone) {
            Ok(Some(())) => Ok(()),
            _ => {
                let reason = "somebody else has it open";
                Err(EngineError::new(EngineErrorKind::Busy, DETACH, reason).at_path(&node(number)))
            }
        }
    }
}

fn node(number: u32) -> PathBuf {
    format!("/dev/loop{number}").into()
}

fn attribute(number: u32, name: &str) -> PathBuf {
    format!("/sys/block/loop{number}/{name}").into()
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_CLOEXEC).open(path)
}

/// Where nothing makes device nodes by itself, as in small guests, this does.
fn make_node(node: &Path, number: u32) -> io::Result<()> {
    const MAJOR: u32 = 7;
    if node.exists() {
        return Ok(());
    }
    let (mode, device) = (Mode::from_raw_mode(0o600), fs::makedev(MAJOR, number));
    Ok(fs::mknodat(fs::CWD, node, FileType::BlockDevice, mode, device)?)
}

fn configuration(file: &File, path: &Path, block: u32) -> Configuration {
    let mut file_name = [0; 64];
    // For people only: the kernel has the path from the descriptor.
    let name = path.as_os_str().as_bytes();
    let shown = name.len().min(file_name.len() - 1);
    file_name[..shown].copy_from_slice(&name[..shown]);
    let mut status = LoopStatus::default();
    status.flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO;
    status.file_name = file_name;
    let descriptor = file.as_raw_fd() as u32;
    Configuration { descriptor, block_size: block, status, reserved: [0; 8] }
}

/// That there are loop devices.
pub(crate) fn need_loops() -> Result<(), EngineError> {
    open(Path::new(CONTROL)).map(drop).map_err(|error| {
        let reason = format!("{error}; the kernel must have loop devices (`modprobe loop`)");
        EngineError::new(EngineErrorKind::NotSupported, ATTACH, reason).at_path(CONTROL.as_ref())
    })
}

/// A loop device that there is.
#[derive(Debug)]
pub(crate) struct Attached {
    pub(crate) device: PathBuf,
    /// The path of its file.
    pub(crate) backing: PathBuf,
    /// Its file, as far as the kernel can tell.
    pub(crate) file: Option<Identity>,
}

/// The loop devices there are. Of files on filesystems that may never answer only those on the device `near` are
/// asked who they are.
pub(crate) fn attached(near: Option<u64>) -> io::Result<Vec<Attached>> {
    let mounts = mounts::all()?;
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/sys/block")? {
        let name = entry?.file_name();
        let Some(number) = name.to_str().and_then(|name| name.strip_prefix("loop")) else {
            continue;
        };
        let Ok(number) = number.parse() else { continue };
        if let Ok(mut backing) = std::fs::read(attribute(number, "loop/backing_file")) {
            while backing.last() == Some(&b'\n') {
                backing.pop();
            }
            let backing = PathBuf::from(std::ffi::OsStr::from_bytes(&backing));
            let device = node(number);
            let file = mounts::may_ask(&mounts, &backing, near)
                .then(|| backing_file(&device).ok())
                .flatten();
            found.push(Attached { device, backing, file });
        }
    }
    Ok(found)
}

/// The file behind a loop device.
fn backing_file(device: &Path) -> io::Result<Identity> {
    let told = LoopStatus::of(&File::open(device)?)?;
    Ok(Identity { device: told.device, inode: told.inode })
}

/// Takes down a loop device that a killed run left; it may still be in use then, and goes with its last
/// user.
pub(super) fn take_down(device: &Path) -> io::Result<()> {
    let open = open(device)?;
    // SAFETY: takes no memory.
    let done = unsafe { libc::ioctl(open.as_raw_fd(), LOOP_CLR_FD as _, 0) };
    match check(done) {
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_has_the_size_of_the_format() {
        // 8 bytes, `struct loop_info64` with 232, and 64 reserved.
        assert_eq!(size_of::<Configuration>(), 8 + 232 + 64);
    }
}
