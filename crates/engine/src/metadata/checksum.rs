//! CRC-32C (Castagnoli), as iSCSI (RFC 3720, appendix B.4) and md's logs use it.

/// The polynomial, bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// Table k gives the checksum of a byte that is followed by k zero bytes.
const TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut value = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            value = (value >> 1) ^ (if value & 1 == 1 { POLYNOMIAL } else { 0 });
            bit += 1;
        }
        tables[0][byte] = value;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

/// A checksum in the making.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checksum(u32);

impl Checksum {
    pub(super) const fn new() -> Self {
        Self(u32::MAX)
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            let value = u64::from_le_bytes(*word) ^ u64::from(self.0);
            self.0 = (0..8)
                .fold(0, |sum, byte| sum ^ TABLES[7 - byte][(value >> (8 * byte)) as usize & 0xff]);
        }
        for byte in rest {
            self.0 = (self.0 >> 8) ^ TABLES[0][((self.0 ^ u32::from(*byte)) & 0xff) as usize];
        }
    }

    pub(super) const fn value(self) -> u32 {
        !self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(parts: &[&[u8]]) -> u32 {
        let mut checksum = Checksum::new();
        parts.iter().for_each(|part| checksum.add(part));
        checksum.value()
    }

    /// RFC 3720, appendix B.4, and the check value of the catalogue of CRCs.
    #[test]
    fn known_values() {
        assert_eq!(of(&[b"123456789"]), 0xe306_9283);
        assert_eq!(of(&[&[0; 32]]), 0x8a91_36aa);
        assert_eq!(of(&[&[0xff; 32]]), 0x62a8_ab43);
        let rising: Vec<u8> = (0..32).collect();
        assert_eq!(of(&[&rising]), 0x46dd_794e);
        for cut in 0..32 {
            assert_eq!(of(&[&rising[..cut], &rising[cut..]]), 0x46dd_794e, "cut at {cut}");
        }
    }
}
