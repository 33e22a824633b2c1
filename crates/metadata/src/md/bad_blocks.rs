//! The list of bad blocks of a device: 64-bit entries, the first sector above ten bits of length. Sectors count from
//! the start of the device, as Linux 6.1 was seen to take them, not from that of the data.

use raidlab_core::{Sector, Sectors};

/// Entries of a list of `size` bytes at most: 8 sectors have 512.
const END: u64 = u64::MAX;

/// The ranges that a list names, in sectors from the start of the device.
pub fn parse(bytes: &[u8], shift: u8) -> Vec<(Sector, Sectors)> {
    let (words, _) = bytes.as_chunks::<8>();
    let entries = words.iter().map(|word| u64::from_le_bytes(*word));
    let ranges = entries.take_while(|entry| *entry != END).filter_map(|entry| {
        let (at, len) = (entry >> 10, entry & 0x3ff);
        let scaled =
            |value: u64| value.checked_shl(u32::from(shift)).filter(|out| out >> shift == value);
        (len > 0).then_some((Sector(scaled(at)?), Sectors(scaled(len)?)))
    });
    ranges.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_ends_where_all_bits_are_set() {
        let mut bytes = vec![0xff; 4096];
        assert_eq!(parse(&bytes, 0), []);
        bytes[..8].copy_from_slice(&(1000 << 10 | 8_u64).to_le_bytes());
        bytes[8..16].copy_from_slice(&(5000 << 10 | 0x3ff_u64).to_le_bytes());
        let whole = [(Sector(1000), Sectors(8)), (Sector(5000), Sectors(1023))];
        assert_eq!(parse(&bytes, 0), whole);
        assert_eq!(parse(&bytes, 3), whole.map(|(at, len)| (Sector(at.0 * 8), Sectors(len.0 * 8))));
        // Shifts that no kernel writes.
        for shift in [60, 63, 64, 255] {
            let _ = parse(&bytes, shift);
        }
        // A zeroed list has entries of no length, which are none.
        assert_eq!(parse(&[0; 4096], 0), []);
    }
}
