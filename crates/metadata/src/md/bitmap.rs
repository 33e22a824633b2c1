//! The write-intent bitmap: 256 bytes, then a bit for each chunk. It has no checksum: a bit that a torn write lost is
//! found by nobody.

use raidlab_core::consistency::ArrayId;
use raidlab_core::{SECTOR_BYTES, Sectors};

use super::fields::{bytes, put, u32_at, u64_at};

const MAGIC: u32 = 0x6d74_6962;
/// In `state`: bits are missing, as some could not be written.
const STALE: u32 = 1 << 1;
/// Bytes before the bits.
pub(super) const HEAD: usize = 256;
/// Bitmaps end on multiples of this.
const ROUND: u64 = 4096;

/// Which kind of bitmap it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitmapKind {
    /// One bit a chunk, least significant first.
    Plain,
    /// The same, its words in the order of the machine that wrote it (version 3).
    HostOrder,
    /// One bitmap for each machine of a cluster.
    Clustered,
    /// One byte a chunk, from Linux 6.18 on.
    Lockless,
    /// A version that is not known.
    Unknown(u32),
}

impl BitmapKind {
    const fn of(version: u32) -> Self {
        match version {
            3 => Self::HostOrder,
            4 => Self::Plain,
            5 => Self::Clustered,
            6 => Self::Lockless,
            other => Self::Unknown(other),
        }
    }

    /// As it is stored.
    pub const fn version(self) -> u32 {
        match self {
            Self::HostOrder => 3,
            Self::Plain => 4,
            Self::Clustered => 5,
            Self::Lockless => 6,
            Self::Unknown(other) => other,
        }
    }
}

/// What stands before the bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bitmap {
    /// Which kind.
    pub kind: BitmapKind,
    /// The array it belongs to.
    pub array: ArrayId,
    /// The array's events when it was written; with fewer than the superblock all is dirty.
    pub events: u64,
    /// Members that were in service at these events lack only what bits are set for.
    pub events_cleared: u64,
    /// Sectors it covers: of each member, on raid10 of the array.
    pub covered: u64,
    /// `state`: bit 1 stale, 2 write error.
    pub state: u32,
    /// Bytes a bit stands for.
    pub chunk: u32,
    /// Seconds between looks for bits to clear.
    pub delay: u32,
    /// The most writes behind write-mostly members.
    pub write_behind: u32,
    /// Sectors that are kept for it; 0 where nobody said.
    pub reserved: u32,
}

impl Bitmap {
    /// What the bytes say; `None` where no bitmap begins.
    pub fn parse(from: &[u8]) -> Option<Self> {
        if from.len() < HEAD || u32_at(from, 0) != MAGIC {
            return None;
        }
        Some(Self {
            kind: BitmapKind::of(u32_at(from, 4)),
            array: bytes(from, 8),
            events: u64_at(from, 24),
            events_cleared: u64_at(from, 32),
            covered: u64_at(from, 40),
            state: u32_at(from, 48),
            chunk: u32_at(from, 52),
            delay: u32_at(from, 56),
            write_behind: u32_at(from, 60),
            reserved: u32_at(from, 64),
        })
    }

    /// Writes all fields over the first bytes, of which there must be 256. Those without a name here stay.
    pub fn emit(&self, into: &mut [u8]) {
        put(into, 0, MAGIC.to_le_bytes());
        put(into, 4, self.kind.version().to_le_bytes());
        put(into, 8, self.array);
        put(into, 24, self.events.to_le_bytes());
        put(into, 32, self.events_cleared.to_le_bytes());
        put(into, 40, self.covered.to_le_bytes());
        put(into, 48, self.state.to_le_bytes());
        put(into, 52, self.chunk.to_le_bytes());
        put(into, 56, self.delay.to_le_bytes());
        put(into, 60, self.write_behind.to_le_bytes());
        put(into, 64, self.reserved.to_le_bytes());
    }

    /// Whether it says that bits are missing: as the kernel has it, all is dirty then.
    pub const fn is_stale(&self) -> bool {
        self.state & STALE != 0
    }

    /// No bit is missing any more.
    pub(super) const fn set_fresh(&mut self) {
        self.state &= !STALE;
    }

    /// How many bits; `None` for a chunk that cannot be.
    pub fn bits(&self) -> Option<u64> {
        let chunk = u64::from(self.chunk) / SECTOR_BYTES;
        let possible = self.chunk.is_power_of_two() && chunk > 0;
        possible.then(|| self.covered.div_ceil(chunk))
    }

    /// Sectors it takes on a device.
    pub fn sectors(&self) -> Option<Sectors> {
        let bits = self.bits()?;
        let each = if self.kind == BitmapKind::Lockless { 1 } else { 8 };
        let bytes = bits.div_ceil(each).checked_add(HEAD as u64)?;
        Some(Sectors(bytes.checked_next_multiple_of(ROUND)? / SECTOR_BYTES))
    }

    /// How many bits are set; `bytes` begin with the bitmap.
    pub fn count(&self, bytes: &[u8]) -> Option<u64> {
        let bits = self.bits()?;
        let set = |byte: u8, known: u64| {
            let mask = if known >= 8 { 0xff } else { (1_u8 << known) - 1 };
            u64::from((byte & mask).count_ones())
        };
        let from = bytes.get(HEAD..HEAD + usize::try_from(bits.div_ceil(8)).ok()?)?;
        Some((0..).zip(from).map(|(index, byte)| set(*byte, bits - 8 * index)).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bitmap(covered: u64, chunk: u32) -> Bitmap {
        Bitmap {
            kind: BitmapKind::Plain,
            array: [7; 16],
            events: 12,
            events_cleared: 9,
            covered,
            state: 0,
            chunk,
            delay: 5,
            write_behind: 0,
            reserved: 8,
        }
    }

    #[test]
    fn what_is_written_is_read_and_nothing_else_changes() {
        let one = bitmap(96_256, 64 << 20);
        let mut bytes = [0xa5; HEAD];
        one.emit(&mut bytes);
        assert_eq!(Bitmap::parse(&bytes), Some(one));
        assert!(bytes[68..].iter().all(|byte| *byte == 0xa5));
        assert_eq!(Bitmap::parse(&bytes[..255]), None);
        bytes[0] ^= 1;
        assert_eq!(Bitmap::parse(&bytes), None);
    }

    #[test]
    fn bits_are_counted_to_the_last_and_no_further() {
        let one = bitmap(19 * 8, 4096);
        assert_eq!((one.bits(), one.sectors()), (Some(19), Some(Sectors(8))));
        let mut bytes = vec![0xff; 4096];
        one.emit(&mut bytes);
        assert_eq!(one.count(&bytes), Some(19));
        bytes[HEAD] = 0;
        assert_eq!(one.count(&bytes), Some(11));
        assert_eq!(one.count(&bytes[..HEAD + 2]), None);
        for chunk in [0, 256, 3 << 10] {
            assert_eq!(bitmap(8, chunk).bits(), None, "{chunk}");
        }
        // As much as there can be, which is no reason to panic.
        assert_eq!(bitmap(u64::MAX, 512).count(&bytes), None);
    }
}
