//! What raidlab writes behind a label of gmirror or graid3, into the same sector: what labels have no room for.
//!
//! ```text
//! | 0: label | 256: "raidlab\0" (8), epoch (8), who left (2), how many are out (2), zeroes (4), MD5 of all (16) |
//! ```
//!
//! FreeBSD neither reads nor keeps it: the MD5 is over the label, too, so that nothing of it counts once somebody
//! else has written the label. A sector is written whole or not at all, and so both together.

use md5::{Digest, Md5};

/// Where it stands in the sector.
const AT: usize = 256;
/// What it begins with.
const MAGIC: &[u8; 8] = b"raidlab\0";
/// Where its MD5 stands, and ends.
const HASH: std::ops::Range<usize> = AT + 24..AT + 40;

/// What stands behind a label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// By chance, another one for each start that raised the syncid: of two devices with one syncid and several epochs
    /// each went on without the other.
    pub epoch: u64,
    /// graid3: the place, from 1 on, of who was out of service when the syncid was raised; 0: nobody.
    pub left: u16,
    /// How many devices were out of service.
    pub out: u16,
}

impl Beside {
    /// What stands in the sector of a label.
    pub(super) fn parse(sector: &[u8]) -> Option<Self> {
        let hashed = Md5::digest(sector.get(..HASH.start)?);
        if sector.get(AT..AT + MAGIC.len())? != MAGIC || sector.get(HASH)? != &hashed[..] {
            return None;
        }
        let epoch = sector.get(AT + 8..AT + 16)?.try_into().ok()?;
        let word = |at: usize| Some(u16::from_le_bytes(sector.get(at..at + 2)?.try_into().ok()?));
        Some(Self { epoch: u64::from_le_bytes(epoch), left: word(AT + 16)?, out: word(AT + 18)? })
    }

    /// Puts it into the sector of a label, which stands there.
    pub fn put(&self, sector: &mut [u8]) {
        let mut bytes = Vec::with_capacity(HASH.end - AT);
        bytes.extend(MAGIC);
        bytes.extend(self.epoch.to_le_bytes());
        bytes.extend(self.left.to_le_bytes());
        bytes.extend(self.out.to_le_bytes());
        bytes.extend([0; 4]);
        let Some(place) = sector.get_mut(AT..HASH.start) else { return };
        place.copy_from_slice(&bytes);
        let hash = Md5::digest(&sector[..HASH.start]);
        if let Some(place) = sector.get_mut(HASH) {
            place.copy_from_slice(&hash);
        }
    }
}
