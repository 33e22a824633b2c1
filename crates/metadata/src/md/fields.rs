//! Little-endian numbers in a slice of bytes. What lies outside of the slice reads as zero and is not written, so that
//! no field of a short slice can panic; whoever needs all fields checks the length first.

/// Bytes of a field.
pub(crate) fn bytes<const N: usize>(from: &[u8], at: usize) -> [u8; N] {
    let mut field = [0; N];
    if let Some(there) = from.get(at..at + N) {
        field.copy_from_slice(there);
    }
    field
}

pub(crate) fn u16_at(from: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes(from, at))
}

pub(crate) fn u32_at(from: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes(from, at))
}

pub(crate) fn i32_at(from: &[u8], at: usize) -> i32 {
    i32::from_le_bytes(bytes(from, at))
}

pub(crate) fn u64_at(from: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes(from, at))
}

/// Writes a field.
pub(crate) fn put<const N: usize>(into: &mut [u8], at: usize, field: [u8; N]) {
    if let Some(there) = into.get_mut(at..at + N) {
        there.copy_from_slice(&field);
    }
}
