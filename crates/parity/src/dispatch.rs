//! How to compute, as chosen at run time, and how to store.

use std::fmt;

/// A way to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InstructionSet {
    /// 512-bit vectors, and GFNI's multiplication by matrices.
    ///
    /// Processors with the first and without the second have no kernels of their own: they are those of Intel that
    /// lower their clock, for a while and for all that runs on the core, when they see 512-bit vectors.
    Avx512Gfni,
    /// 256-bit vectors.
    Avx2,
    /// Words of 64 bits, which the compiler may turn into the vectors every machine has.
    Words,
}

impl InstructionSet {
    /// All there are, the fastest first.
    pub const ALL: [Self; 3] = [Self::Avx512Gfni, Self::Avx2, Self::Words];

    /// Whether this machine can go it.
    #[inline]
    pub fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Gfni => {
                use std::arch::is_x86_feature_detected as has;
                has!("avx512f") && has!("gfni") && has!("avx2")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => std::arch::is_x86_feature_detected!("avx2"),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx512Gfni | Self::Avx2 => false,
            Self::Words => true,
        }
    }
}

impl fmt::Display for InstructionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Avx512Gfni => "avx512-gfni",
            Self::Avx2 => "avx2",
            Self::Words => "words",
        })
    }
}

/// The way this machine computes; for the settings of a result.
#[inline]
pub fn path() -> InstructionSet {
    let first = InstructionSet::ALL.into_iter().find(|path| path.is_available());
    first.unwrap_or(InstructionSet::Words)
}

/// How many lines of one place the first-level data cache holds, as the processor says; 8 when it does not.
///
/// Blocks on the same place of their pages compete for these.
#[cfg(target_arch = "x86_64")]
pub(crate) fn cache_ways() -> usize {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    use std::sync::OnceLock;

    static WAYS: OnceLock<usize> = OnceLock::new();
    #[allow(unused_unsafe, reason = "safe functions only from Rust 1.94 on")]
    *WAYS.get_or_init(|| {
        // SAFETY: every processor with AVX2 has the instruction; leaves are read only where they are.
        let (highest, extended) = unsafe { (__cpuid(0).eax, __cpuid(0x8000_0000).eax) };
        // Deterministic cache parameters: of Intel, then of AMD. Both have type in the lowest bits of eax (1:
        // data), level in the next three, and ways less one in the highest ten of ebx.
        let leaves = [(0x4, highest), (0x8000_001d, extended)];
        for (leaf, _) in leaves.into_iter().filter(|(leaf, highest)| leaf <= highest) {
            for part in 0..4 {
                // SAFETY: as above.
                let found = unsafe { __cpuid_count(leaf, part) };
                if found.eax & 0xff == 0x21 {
                    return (found.ebx >> 22) as usize + 1;
                }
            }
        }
        8
    })
}

/// What stores do with the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Store {
    /// Results go through the cache: right when they are used soon, or the blocks are in it anyway.
    #[default]
    Cached,
    /// Results go past the cache, which saves reading their old contents: right when the blocks come from
    /// memory and nobody looks at the results soon. Ordinary stores take over on paths without such
    /// stores, for targets that do not start on a multiple of a vector's bytes (64 with
    /// [`InstructionSet::Avx512Gfni`], 32 with [`InstructionSet::Avx2`]), for the last bytes, and where P and Q
    /// are changed by a difference: their old contents have to be read anyway.
    NonTemporal,
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cached => "cached",
            Self::NonTemporal => "non-temporal",
        })
    }
}

#[cfg(all(test, target_os = "linux", target_arch = "x86_64"))]
mod tests {
    use super::*;

    /// What the kernel says of the processor.
    fn flags() -> Vec<String> {
        let said =
            std::fs::read_to_string("/proc/cpuinfo").expect("Linux describes its processors");
        let flags = said.lines().find(|line| line.starts_with("flags"));
        flags.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_fastest_set_whose_features_are_all_there_is_chosen() {
        let flags = flags();
        let has = |wanted: &[&str]| wanted.iter().all(|one| flags.iter().any(|flag| flag == one));
        let (wide, narrow) = (has(&["avx512f", "gfni", "avx2"]), has(&["avx2"]));
        let available = InstructionSet::ALL.map(InstructionSet::is_available);
        assert_eq!(available, [wide, narrow, true]);
        let expected = match (wide, narrow) {
            (true, _) => InstructionSet::Avx512Gfni,
            (false, true) => InstructionSet::Avx2,
            (false, false) => InstructionSet::Words,
        };
        assert_eq!(path(), expected);
    }
}
