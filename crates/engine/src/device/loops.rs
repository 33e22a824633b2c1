//! What the kernel says of a loop device.
//!
//! Format: `include/uapi/linux/loop.h` of Linux.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

const LOOP_GET_STATUS64: libc::c_ulong = 0x4C05;

/// What a loop device is made of, as the kernel has it: `struct loop_info64`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct LoopStatus {
    /// The device of the filesystem that its file is in, as `st_dev` has it.
    pub device: u64,
    /// The inode of its file.
    pub inode: u64,
    own_device: u64,
    /// The byte of its file that it starts with.
    pub offset: u64,
    /// The most bytes of its file that it shows; 0: all.
    pub size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    /// `LO_FLAGS_...`.
    pub flags: u32,
    /// The name that it shows of its file; zeroes behind.
    pub file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

impl LoopStatus {
    /// Of an open loop device.
    ///
    /// # Errors
    /// When it is none, or has no file.
    pub fn of(device: &File) -> io::Result<Self> {
        let mut told = Self::default();
        // SAFETY: the structure has the kernel's layout and lives through the call.
        let done =
            unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64 as _, &raw mut told) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(told) }
    }
}

impl Default for LoopStatus {
    /// All zeroes.
    fn default() -> Self {
        // SAFETY: all zeroes is a valid value of this plain structure.
        unsafe { std::mem::zeroed() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_has_the_size_of_the_format() {
        assert_eq!(size_of::<LoopStatus>(), 232);
    }

    #[test]
    fn what_is_no_loop_device_is_refused() {
        let null = File::open("/dev/null").expect("a device");
        let error = LoopStatus::of(&null).expect_err("no loop device");
        assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
    }
}
