//! Superblocks of md's version 0.90 as mdadm 4.2 and Linux 6.1 wrote them on devices of 8 MiB, and what `mdadm
//! --examine` printed of them, without the names of devices: `tests/md-0.90`.
#![allow(dead_code, reason = "no test uses all of it")]

use std::path::Path;

/// All of them; `big` was brought into the other order of bytes, as `mdadm --examine -e 0.swap` and `mdadm --assemble
/// --update=byteorder` take it.
pub(crate) const NAMES: [&str; 10] =
    ["five", "spare", "one", "six", "ten", "linear", "slow", "dirty", "reshaped", "big"];
/// Bytes of the devices.
pub(crate) const DEVICE: usize = 8 << 20;
/// Where the superblock stands on them.
pub(crate) const AT: usize = 16_256 * 512;

fn file(name: &str) -> String {
    let up = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let path =
        up.map(|directory| directory.join("tests/md-0.90").join(name)).find(|path| path.is_file());
    std::fs::read_to_string(path.expect("a file of tests/md-0.90")).expect("text")
}

/// The bytes of a superblock, of which the file has the words that are not zero, as a PC reads them.
pub(crate) fn superblock(name: &str) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    for line in file(&format!("{name}.words")).lines() {
        let (word, value) = line.split_once(' ').expect("a word's place and value");
        let at = 4 * word.parse::<usize>().expect("a place");
        let value = u32::from_str_radix(value, 16).expect("a value");
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    bytes
}

/// A device with it.
pub(crate) fn device(name: &str) -> Vec<u8> {
    let mut bytes = vec![0; DEVICE];
    bytes[AT..AT + 4096].copy_from_slice(&superblock(name));
    bytes
}

/// What mdadm printed of it, as if the device had this path.
pub(crate) fn examined(name: &str, path: &str) -> String {
    file(&format!("{name}.txt")).replace("MEMBER", path)
}
