//! Chooses the XOR kernel at run time, and the kernels themselves.
//!
//! Each kernel makes one pass: at every position it reads all sources before it writes the target, so
//! the target may be one of the sources.

use std::fmt;

/// A way to compute, as chosen at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Path {
    /// 256-bit vectors.
    Avx2,
    /// Words of 64 bits, which the compiler may turn into the vectors every machine has.
    Words,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Avx2 => "avx2",
            Self::Words => "words",
        })
    }
}

/// The way this machine computes; for the settings of a result.
pub fn path() -> Path {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        return Path::Avx2;
    }
    Path::Words
}

/// Sets `target` to the XOR of `sources`.
///
/// # Safety
/// As [`xor_raw`](crate::xor_raw), and there is at least one source.
pub(crate) unsafe fn xor(target: *mut u8, sources: &[*const u8], len: usize) {
    debug_assert!(!sources.is_empty());
    match path() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: AVX2 was detected; the rest is promised by the caller.
        Path::Avx2 => unsafe { avx2::xor(target, sources, len) },
        // SAFETY: promised by the caller.
        _ => unsafe { words(target, sources, 0, len) },
    }
}

/// Bytes a step of [`words`] takes.
const STEP: usize = 64;

/// Bytes `from..len`, in steps of 64 bytes, the rest byte by byte.
///
/// # Safety
/// As [`xor`]; `from <= len`.
unsafe fn words(target: *mut u8, sources: &[*const u8], from: usize, len: usize) {
    let mut at = from;
    while len - at >= STEP {
        // SAFETY: `at + 64 <= len`, up to which every source and the target are valid; unaligned
        // accesses are allowed for, and all reads of this position precede its write.
        unsafe {
            let mut sum = sources[0].add(at).cast::<[u64; 8]>().read_unaligned();
            for source in &sources[1..] {
                let block = source.add(at).cast::<[u64; 8]>().read_unaligned();
                for (word, other) in sum.iter_mut().zip(block) {
                    *word ^= other;
                }
            }
            target.add(at).cast::<[u64; 8]>().write_unaligned(sum);
        }
        at += STEP;
    }
    while at < len {
        // SAFETY: `at < len`, as above.
        unsafe {
            let mut sum = 0;
            for source in sources {
                sum ^= source.add(at).read();
            }
            target.add(at).write(sum);
        }
        at += 1;
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_xor_si256};

    /// Bytes in a vector.
    const VECTOR: usize = 32;
    /// Vectors in a step: enough that the loop's own cost is small beside the loads.
    const VECTORS: usize = 4;

    /// # Safety
    /// As [`super::xor`], on a machine with AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn xor(target: *mut u8, sources: &[*const u8], len: usize) {
        let mut at = 0;
        while len - at >= VECTOR * VECTORS {
            // SAFETY: `at + 128 <= len`, up to which sources and target are valid.
            unsafe { step::<VECTORS>(target, sources, at) };
            at += VECTOR * VECTORS;
        }
        while len - at >= VECTOR {
            // SAFETY: `at + 32 <= len`, as above.
            unsafe { step::<1>(target, sources, at) };
            at += VECTOR;
        }
        // SAFETY: `at <= len`, and the rest is promised by the caller.
        unsafe { super::words(target, sources, at, len) };
    }

    /// `N` vectors from `at` on.
    ///
    /// # Safety
    /// As [`super::xor`], on a machine with AVX2, and `at + 32 * N` is within the blocks.
    #[target_feature(enable = "avx2")]
    unsafe fn step<const N: usize>(target: *mut u8, sources: &[*const u8], at: usize) {
        // SAFETY: in bounds by the caller's promise; loads and stores are the unaligned kind, and all
        // loads precede the stores.
        unsafe {
            let first = sources[0].add(at).cast::<__m256i>();
            let mut sum = [_mm256_loadu_si256(first); N];
            for (i, vector) in sum.iter_mut().enumerate().skip(1) {
                *vector = _mm256_loadu_si256(first.add(i));
            }
            for source in &sources[1..] {
                let source = source.add(at).cast::<__m256i>();
                for (i, vector) in sum.iter_mut().enumerate() {
                    *vector = _mm256_xor_si256(*vector, _mm256_loadu_si256(source.add(i)));
                }
            }
            let target = target.add(at).cast::<__m256i>();
            for (i, vector) in sum.into_iter().enumerate() {
                _mm256_storeu_si256(target.add(i), vector);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words path is not the one `xor` takes on a machine with AVX2, so it is tested here.
    #[test]
    fn words_equal_the_oracle() {
        let blocks: Vec<Vec<u8>> = (0..9usize)
            .map(|n| (0..700).map(|at| (n * 61 + at * at * 13 + at / 7) as u8).collect())
            .collect();
        for len in 0..640 {
            for count in 1..=9 {
                let sources: Vec<&[u8]> =
                    blocks[..count].iter().map(|b| &b[count..][..len]).collect();
                let pointers: Vec<*const u8> = sources.iter().map(|b| b.as_ptr()).collect();
                let (mut fast, mut slow) = (vec![0x5a; len + 1], vec![0; len]);
                // SAFETY: every block has `len` bytes, and the target is a buffer of its own.
                unsafe { words(fast.as_mut_ptr(), &pointers, 0, len) };
                crate::scalar::xor(&mut slow, &sources);
                assert_eq!(fast[..len], slow, "{len} bytes, {count} sources");
                assert_eq!(fast[len], 0x5a);
            }
        }
    }
}
