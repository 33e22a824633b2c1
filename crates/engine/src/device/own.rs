//! What raidlab itself has put on a device: a member's superblock at its end, entries of a log device at its
//! start; and labels of FreeBSD's GEOM at its end. The programs of util-linux do not know these.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use raidlab_core::consistency::MetaArea;
use raidlab_core::{SECTOR_BYTES, Sectors};
use raidlab_metadata::geom::Kind;

use super::Signature;
use crate::error::{EngineError, EngineErrorKind};

/// What records begin with; the version of the format follows, whichever it is.
const NAME: &[u8; 7] = b"raidlab";
/// Where the identity of the array stands in a record.
const IDENTITY: std::ops::Range<usize> = 16..32;
/// Where the name of the array stands in a label of GEOM.
const GEOM_NAME: std::ops::Range<usize> = 20..36;
/// Bytes that are read of each place.
const HEAD: usize = GEOM_NAME.end;

/// The signatures of raidlab's and GEOM's on a device of so many bytes that is called `name`. A record, or label,
/// counts also when it is damaged: something of an array is there.
pub(super) fn signatures(
    path: &Path,
    name: &str,
    size: u64,
) -> Result<Vec<Signature>, EngineError> {
    const LOOK: &str = "look for members of arrays of raidlab";
    let failed = |error| EngineError::io(LOOK, path, error);
    let device = File::open(path).map_err(failed)?;
    let total = Sectors(size / SECTOR_BYTES);
    let place = |place| ("raidlab_member", MetaArea::superblock(total, place).bytes());
    let mut found: Vec<Signature> = Vec::new();
    let head = |at: u64| {
        let mut head = [0; HEAD];
        if at + head.len() as u64 > size {
            return Ok(None);
        }
        device.read_exact_at(&mut head, at).map(|()| Some(head)).map_err(|error| {
            let reason =
                format!("byte {at} cannot be read ({error}), so nobody knows what is there");
            EngineError::new(EngineErrorKind::Io, LOOK, reason).at_path(path)
        })
    };
    for (kind, at) in [place(0), place(1), ("raidlab_journal", 0)] {
        let Some(head) = head(at)? else { continue };
        if head.starts_with(NAME) && !found.iter().any(|known| known.kind == kind) {
            found.push(Signature {
                device: name.to_string(),
                kind: kind.to_string(),
                at: Some(at),
                name: Some(head[IDENTITY].iter().map(|byte| format!("{byte:02x}")).collect()),
            });
        }
    }
    // In the last sector, which has 512 bytes or 4096.
    for at in [512, 4096].into_iter().filter_map(|sector| size.checked_sub(sector)) {
        let Some(head) = head(at)? else { continue };
        let Some(kind) = Kind::of(&head) else { continue };
        let text = head[GEOM_NAME].split(|byte| *byte == 0).next().unwrap_or_default();
        found.push(Signature {
            device: name.to_string(),
            kind: kind.name().to_string(),
            at: Some(at),
            name: Some(String::from_utf8_lossy(text).into_owned()),
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_any_version_are_found_where_they_lie() {
        let path = std::env::temp_dir().join(format!("raidlab-own-{}", std::process::id()));
        let size = (1 << 20) + 512 * 3;
        let told = |writes: &[(u64, &[u8])]| {
            std::fs::write(&path, vec![0; size as usize]).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            writes.iter().for_each(|(at, bytes)| file.write_all_at(bytes, *at).unwrap());
            let found = signatures(&path, "sdx", size).unwrap();
            found.into_iter().map(|one| (one.kind, one.at.unwrap())).collect::<Vec<_>>()
        };
        let member = |at| ("raidlab_member".to_string(), at);
        let (first, second) = ((1 << 20) - 8192, (1 << 20) - 4096);
        assert_eq!(told(&[]), []);
        assert_eq!(told(&[(second, b"raidlab\x01")]), [member(second)]);
        assert_eq!(told(&[(first, b"raidlab\x02")]), [member(first)]);
        assert_eq!(told(&[(first, b"raidlab\x02"), (second, b"raidlab\x09")]), [member(first)]);
        assert_eq!(told(&[(0, b"raidlab\x01")]), [("raidlab_journal".to_string(), 0)]);
        assert_eq!(told(&[(first + 512, b"raidlab\x01")]), []);
        for (sector, label, kind) in
            [(512, b"GEOM::STRIPE\0\0\0\0", "gstripe"), (4096, b"GEOM::RAID3\0\0\0\0\0", "graid3")]
        {
            assert_eq!(told(&[(size - sector, label)]), [(kind.to_string(), size - sector)]);
            assert_eq!(told(&[(size - sector - 512, label)]), []);
        }
        assert_eq!(told(&[(size - 512, b"GEOM::STRIPES\0\0\0")]), []);
        for size in [0, 31, 4096, 8191] {
            std::fs::write(&path, vec![0; size]).unwrap();
            assert_eq!(signatures(&path, "sdx", size as u64).unwrap(), []);
        }
        std::fs::remove_file(path).unwrap();
    }
}
