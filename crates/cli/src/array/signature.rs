//! What stands at the start of a device, by the signatures that filesystems, volumes and partition tables have there.
//!
//! For files, which the programs of util-linux are not asked about; block devices are looked at by them as well.

use raidlab_core::{SECTOR_BYTES, Sector};
use raidlab_metadata::{Source, Unreadable};

/// What it is called, where its signature stands, and what that is.
const KNOWN: [(&str, usize, &[u8]); 22] = [
    ("an ext2, ext3 or ext4 filesystem", 0x438, &[0x53, 0xef]),
    ("an XFS filesystem", 0, b"XFSB"),
    ("a Btrfs filesystem", 0x1_0040, b"_BHRfS_M"),
    ("an F2FS filesystem", 0x400, &[0x10, 0x20, 0xf5, 0xf2]),
    ("a JFS filesystem", 0x8000, b"JFS1"),
    ("a ReiserFS filesystem", 0x1_0034, b"ReIsEr"),
    ("an ISO 9660 filesystem", 0x8001, b"CD001"),
    ("a squashfs filesystem", 0, b"hsqs"),
    ("an NTFS filesystem", 3, b"NTFS    "),
    ("an exFAT filesystem", 3, b"EXFAT   "),
    ("a FAT filesystem", 54, b"FAT1"),
    ("a FAT filesystem", 82, b"FAT32"),
    ("swap space", 4086, b"SWAPSPACE2"),
    ("an encrypted volume (LUKS)", 0, b"LUKS\xba\xbe"),
    ("a physical volume of LVM", 0, b"LABELONE"),
    ("a physical volume of LVM", 512, b"LABELONE"),
    ("a physical volume of LVM", 1024, b"LABELONE"),
    ("a physical volume of LVM", 1536, b"LABELONE"),
    ("a GPT partition table", 512, b"EFI PART"),
    ("a GPT partition table", 4096, b"EFI PART"),
    ("a UFS filesystem", 0x1_055c, &[0x19, 0x01, 0x54, 0x19]),
    ("a partition table or a boot sector", 510, &[0x55, 0xaa]),
];

/// Sectors that signatures lie in.
const LOOKED_AT: u64 = 0x1_0600 / SECTOR_BYTES;

/// What begins at the start of a device, if it is known by a signature.
pub(super) fn at_start(device: &mut dyn Source) -> Result<Option<&'static str>, Unreadable> {
    let sectors = device.sectors().0.min(LOOKED_AT);
    let mut bytes = vec![0; (sectors * SECTOR_BYTES) as usize];
    device.read(Sector(0), &mut bytes)?;
    let is_there = |(_, at, signature): &&(&str, usize, &[u8])| {
        bytes.get(*at..at + signature.len()) == Some(*signature)
    };
    Ok(KNOWN.iter().find(is_there).map(|(name, ..)| *name))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::super::disk::Disk;
    use super::*;

    /// What the programs that make them write is known; nothing else is, and short devices are no trouble.
    #[test]
    fn what_programs_make_is_known() {
        let path = std::env::temp_dir().join(format!("raidlab-signature-{}", std::process::id()));
        let told = || at_start(&mut Disk::open(&path).unwrap()).unwrap();
        for len in [0, 511, 512, 1080, 1 << 20] {
            fs::write(&path, vec![0; len]).unwrap();
            assert_eq!(told(), None, "{len}");
        }
        for (name, at, signature) in KNOWN {
            let mut bytes = vec![0; at + signature.len()];
            bytes[at..].copy_from_slice(signature);
            bytes.resize(bytes.len().next_multiple_of(512), 0);
            fs::write(&path, &bytes).unwrap();
            assert_eq!(told(), Some(name));
            bytes[at] ^= 1;
            fs::write(&path, &bytes).unwrap();
            assert_eq!(told(), None, "{name}");
        }
        for (program, flags, name) in [
            ("mkfs.ext4", &["-q", "-F"][..], "an ext2, ext3 or ext4 filesystem"),
            ("mkfs.xfs", &["-q", "-f"], "an XFS filesystem"),
            ("mkfs.btrfs", &["-q", "-f"], "a Btrfs filesystem"),
            ("mkswap", &[], "swap space"),
        ] {
            let file = fs::File::create(&path).unwrap();
            file.set_len(400 << 20).unwrap();
            match Command::new(program).args(flags).arg(&path).output() {
                Ok(ran) if ran.status.success() => assert_eq!(told(), Some(name)),
                _ => eprintln!("{program} is not there: skipped"),
            }
        }
        fs::remove_file(&path).unwrap();
    }
}
