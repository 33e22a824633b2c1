//! What the arrays hold: little-endian words of 8 bytes that say which write they come from and where
//! they belong, so that a wrong one tells what happened.

use raidlab_core::geometry::{Geometry, Place};
use raidlab_core::{SECTOR_BYTES, Sector};

use super::arrays::{Arrays, TestArray};

/// The lower bits of a word: its place in the pattern file; above: the number of the write, 0 is md.
const PLACE_BITS: u32 = 40;

/// Bytes of the pattern file before what an array is filled with: another one for every array.
pub(crate) fn pattern_start(array: &TestArray) -> u64 {
    (array.number as u64) << 20
}

/// The pattern file, from which md fills the arrays.
pub(crate) fn pattern_file(arrays: &Arrays) -> Vec<u8> {
    let ends = arrays.list.iter().map(|array| pattern_start(array) + array.capacity());
    let mut bytes = vec![0; ends.max().unwrap_or(0) as usize];
    fill_words(&mut bytes, 0, 0);
    bytes
}

/// What md fills an array with.
pub(crate) fn pattern(array: &TestArray) -> Vec<u8> {
    let mut bytes = vec![0; array.capacity() as usize];
    fill(array, &mut bytes, 0, 0);
    bytes
}

/// The content of write number `write` from byte `at` of the array on.
pub(crate) fn fill(array: &TestArray, bytes: &mut [u8], at: u64, write: u64) {
    fill_words(bytes, pattern_start(array) + at, write);
}

fn fill_words(bytes: &mut [u8], from: u64, write: u64) {
    for (word, place) in bytes.chunks_exact_mut(8).zip(from / 8..) {
        word.copy_from_slice(&(write << PLACE_BITS | place).to_le_bytes());
    }
}

/// Says where `found` first differs from `expected`, and which member that comes from.
pub(crate) fn difference(array: &TestArray, expected: &[u8], found: &[u8]) -> Option<String> {
    if expected == found {
        return None;
    }
    if expected.len() != found.len() {
        return Some(format!("{} bytes instead of {}", found.len(), expected.len()));
    }
    let at = expected.iter().zip(found).position(|(expected, found)| expected != found)?;
    let differ = expected.iter().zip(found).filter(|(expected, found)| expected != found).count();
    let word = |bytes: &[u8]| {
        let from = at / 8 * 8;
        bytes[from..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
    };
    Some(format!(
        "first at byte {at} ({differ} bytes differ), {}: expected {}, found {}",
        places(array, at as u64),
        meaning(array, word(expected)),
        meaning(array, word(found)),
    ))
}

fn meaning(array: &TestArray, word: u64) -> String {
    let (write, place) = (word >> PLACE_BITS, (word & ((1 << PLACE_BITS) - 1)) * 8);
    let at = place.checked_sub(pattern_start(array)).filter(|at| *at < array.capacity());
    match at {
        _ if word == 0 => "zeroes".to_owned(),
        Some(at) if write == 0 => format!("md's word of byte {at}"),
        Some(at) if write < 1 << 16 => format!("the word of byte {at} of write {write}"),
        _ => format!("{word:#018x}, which belongs nowhere in this array"),
    }
}

/// Where a byte of the array lies.
fn places(array: &TestArray, at: u64) -> String {
    let geometry = array.geometry();
    let sector = Sector(at / SECTOR_BYTES);
    let place = |copy| {
        let Place { member, at: sector } = geometry.place(sector, copy);
        let file = array.members[member.at()].0;
        let byte = array.data_start(member.at()) + sector.bytes() + at % SECTOR_BYTES;
        format!("member {member} (byte {byte} of file {file})")
    };
    let copies: Vec<_> = (0..geometry.copies()).map(place).collect();
    let copies = copies.join(", ");
    let chunk = array.layout.chunk.bytes();
    if let Geometry::Parity(parity) = &geometry {
        let stripe = parity.stripe_place(sector).stripe;
        let q = parity.q_member(stripe).map(|member| format!(", Q on member {member}"));
        return format!(
            "chunk {}, stripe {stripe}, {copies}, P on member {}{}",
            at / chunk,
            parity.p_member(stripe),
            q.unwrap_or_default()
        );
    }
    if array.layout.level.has_chunks() { format!("chunk {}, {copies}", at / chunk) } else { copies }
}
