//! CRC32C: the cyclic redundancy check with Castagnoli's polynomial, as iSCSI (RFC 3720, section 12.1) and
//! md's metadata have it; reflected, all ones before and after. Metadata and the array's logs use it.

/// A checksum that grows with what is added.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checksum(u32);

impl Checksum {
    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0 = crc32c::crc32c_append(self.0, bytes);
    }

    /// The checksum of all that was added.
    #[must_use]
    pub const fn value(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> u32 {
        let mut sum = Checksum::default();
        sum.add(bytes);
        sum.value()
    }

    /// The examples of RFC 3720, appendix B.4, and the usual check value.
    #[test]
    fn the_examples_of_the_standard() {
        assert_eq!(of(b"123456789"), 0xe306_9283);
        assert_eq!(of(&[0; 32]), 0x8a91_36aa);
        assert_eq!(of(&[0xff; 32]), 0x62a8_ab43);
        let rising: Vec<u8> = (0..32).collect();
        assert_eq!(of(&rising), 0x46dd_794e);
        for cut in 0..32 {
            let mut sum = Checksum::default();
            sum.add(&rising[..cut]);
            sum.add(&rising[cut..]);
            assert_eq!(sum.value(), 0x46dd_794e, "cut at {cut}");
        }
        let falling: Vec<u8> = (0..32).rev().collect();
        assert_eq!(of(&falling), 0x113f_db5c);
        assert_eq!(of(&[]), 0);
    }
}
