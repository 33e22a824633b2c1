//! CRC32C: the cyclic redundancy check with Castagnoli's polynomial, as iSCSI (RFC 3720, section 12.1) and
//! md's metadata have it; reflected, all ones before and after. Metadata and the array's logs use it.

/// The polynomial 0x1edc6f41, reflected.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// For each of eight places of a word: what a byte there adds to the remainder behind the word.
static TABLES: [[u32; 256]; 8] = {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            remainder = (remainder >> 1) ^ (POLYNOMIAL * (remainder & 1));
            bit += 1;
        }
        tables[7][byte] = remainder;
        byte += 1;
    }
    let mut place = 7;
    while place > 0 {
        place -= 1;
        let mut byte = 0;
        while byte < 256 {
            let behind = tables[place + 1][byte];
            tables[place][byte] = (behind >> 8) ^ tables[7][(behind & 0xff) as usize];
            byte += 1;
        }
    }
    tables
};

/// A checksum that grows with what is added.
#[derive(Clone, Copy, Debug)]
pub struct Checksum(u32);

impl Default for Checksum {
    fn default() -> Self {
        Self(u32::MAX)
    }
}

impl Checksum {
    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("sse4.2") {
            // SAFETY: the instruction was just found to be there.
            self.0 = unsafe { by_instruction(self.0, bytes) };
            return;
        }
        self.0 = by_tables(self.0, bytes);
    }

    /// The checksum of all that was added.
    #[must_use]
    pub fn value(self) -> u32 {
        !self.0
    }
}

fn by_tables(mut remainder: u32, bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let word = u64::from_le_bytes(*word) ^ u64::from(remainder);
        let each = word.to_le_bytes().into_iter().zip(&TABLES);
        remainder = each.fold(0, |sum, (byte, table)| sum ^ table[usize::from(byte)]);
    }
    for byte in rest {
        remainder = (remainder >> 8) ^ TABLES[7][usize::from(remainder as u8 ^ byte)];
    }
    remainder
}

/// # Safety
/// The processor has SSE4.2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
unsafe fn by_instruction(remainder: u32, bytes: &[u8]) -> u32 {
    use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u64};

    let (words, rest) = bytes.as_chunks::<8>();
    let mut wide = u64::from(remainder);
    for word in words {
        wide = _mm_crc32_u64(wide, u64::from_le_bytes(*word));
    }
    rest.iter().fold(wide as u32, |sum, byte| _mm_crc32_u8(sum, *byte))
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

    #[test]
    fn tables_and_instruction_agree_however_bytes_are_cut() {
        let bytes: Vec<u8> = (0..997usize).map(|n| (n * n / 7 + n) as u8).collect();
        for cut in 0..=bytes.len() {
            let (one, two) = bytes.split_at(cut);
            let mut sum = Checksum::default();
            sum.add(one);
            sum.add(two);
            let tables = !by_tables(by_tables(u32::MAX, one), two);
            assert_eq!((sum.value(), tables), (of(&bytes), of(&bytes)), "{cut}");
        }
    }
}
