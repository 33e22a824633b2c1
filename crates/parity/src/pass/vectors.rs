//! A pass by vectors.

use std::arch::x86_64::{__m256i, __m512i, _mm_sfence};

use super::{Pass, add, always_stores, begin, finish, steps};
use crate::dispatch::{Store, cache_ways};
use crate::lanes::Lanes;
use crate::terms::{Place, Term, crowded};

/// Bytes of a line of the cache.
const LINE: usize = 64;
/// Bytes of a tile, over which sources are added group by group.
const TILE: usize = 3 * 512;
/// Bytes of a block from which on grouping pays: shorter ones stay in the first-level cache.
const GROUP_FROM: usize = 8192;

/// Sources on the same place of their pages that can be read side by side: the first-level cache must hold
/// a line of each, and of two targets.
fn side_by_side() -> usize {
    cache_ways().saturating_sub(2).max(4)
}

/// The steps of a pass by one kind of vector. They are whole cache lines, so that no line is touched by two of
/// them. Through the cache they are as long as there are registers; past it, for blocks that come from memory,
/// single lines are the fastest.
trait Steps {
    /// To sum up P only.
    type Xor: Lanes;
    /// To sum up Q, with P or without.
    type Pq: Lanes;
    /// For both of these, past the cache.
    type PqPast: Lanes;
    /// For sums of differences, whose targets were just read.
    type Delta: Lanes;
    /// To recover.
    type Recover: Lanes;
    /// To recover, past the cache.
    type RecoverPast: Lanes;
    /// For what is left then, in this order.
    type Rest: Lanes;
    type Last: Lanes;
    /// Bytes of the longest vector, on which targets must start to be stored past the cache.
    const VECTOR: usize;
}

struct Avx2;

impl Steps for Avx2 {
    type Xor = [__m256i; 8];
    type Pq = [__m256i; 6];
    type PqPast = [__m256i; 2];
    type Delta = [__m256i; 4];
    type Recover = [__m256i; 4];
    type RecoverPast = [__m256i; 4];
    type Rest = [__m256i; 2];
    type Last = __m256i;
    const VECTOR: usize = 32;
}

struct Avx512Gfni;

impl Steps for Avx512Gfni {
    type Xor = [__m512i; 8];
    type Pq = [__m512i; 8];
    type PqPast = __m512i;
    type Delta = [__m512i; 4];
    type Recover = [__m512i; 8];
    type RecoverPast = __m512i;
    type Rest = __m512i;
    type Last = __m256i;
    const VECTOR: usize = 64;
}

/// # Safety
/// As [`super::run`], on a machine with AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn avx2<T: Place, const P: bool, const Q: bool>(pass: &Pass<'_, T>, len: usize) {
    // SAFETY: promised by the caller.
    unsafe { run::<Avx2, T, P, Q>(pass, len) }
}

/// # Safety
/// As [`super::run`], on a machine with AVX-512, GFNI and AVX2.
#[target_feature(enable = "avx512f,gfni,avx2")]
pub(super) unsafe fn avx512_gfni<T: Place, const P: bool, const Q: bool>(
    pass: &Pass<'_, T>,
    len: usize,
) {
    // SAFETY: promised by the caller.
    unsafe { run::<Avx512Gfni, T, P, Q>(pass, len) }
}

/// # Safety
/// As [`super::run`], on a machine with the instructions of `S`.
#[inline(always)]
unsafe fn run<S: Steps, T: Place, const P: bool, const Q: bool>(pass: &Pass<'_, T>, len: usize) {
    let aligned = |to: Option<*mut u8>| to.is_none_or(|to| to.addr().is_multiple_of(S::VECTOR));
    let stream = pass.store == Store::NonTemporal && pass.finish.targets().into_iter().all(aligned);
    // SAFETY: promised by the caller; every `at` is a multiple of the vector's size.
    unsafe {
        if const { T::BLOCKS > 1 } {
            let at = by::<S, S::Delta, T, P, Q, true>(pass, stream, len);
            rest::<S, T, P, Q, true>(pass, stream, at, len);
        } else if const { always_stores::<T>(Q) } || pass.finish.stores() {
            let at = if stream {
                by::<S, S::PqPast, T, P, Q, true>(pass, stream, len)
            } else if Q {
                by::<S, S::Pq, T, P, Q, true>(pass, stream, len)
            } else {
                by::<S, S::Xor, T, P, Q, true>(pass, stream, len)
            };
            rest::<S, T, P, Q, true>(pass, stream, at, len);
        } else {
            let at = if stream {
                by::<S, S::RecoverPast, T, P, Q, false>(pass, stream, len)
            } else {
                by::<S, S::Recover, T, P, Q, false>(pass, stream, len)
            };
            rest::<S, T, P, Q, false>(pass, stream, at, len);
        }
    }
    if stream {
        // Such stores are not ordered with others: whoever is told that the result is there must see it.
        #[allow(unused_unsafe, reason = "a safe function only from Rust 1.89 on")]
        // SAFETY: the instruction came with SSE, before AVX2.
        unsafe {
            _mm_sfence();
        }
    }
}

/// As many whole steps of `V` as there are in `len` bytes. Gives the first byte that is left.
///
/// # Safety
/// As [`run`]; `STORES` as [`finish`].
#[inline(always)]
unsafe fn by<S: Steps, V: Lanes, T: Place, const P: bool, const Q: bool, const STORES: bool>(
    pass: &Pass<'_, T>,
    stream: bool,
    len: usize,
) -> usize {
    // A line that a step reads at once cannot lose its place before it is read to its end.
    let may_lose = const { S::VECTOR < LINE && V::BYTES > LINE };
    // SAFETY: promised by the caller.
    unsafe {
        if may_lose && len >= GROUP_FROM && crowded(pass.terms.as_slice(), side_by_side()) {
            grouped::<V, T, P, Q, STORES>(pass, stream, len)
        } else if !Q || pass.terms.consecutive() {
            steps::<V, T, P, Q, true, STORES>(pass, stream, 0, len)
        } else {
            steps::<V, T, P, Q, false, STORES>(pass, stream, 0, len)
        }
    }
}

/// Bytes `at..len`, in the shorter steps; so few that one copy of the code serves exponents in any order.
///
/// # Safety
/// As [`run`]; `at` is a multiple of the vector's size; `STORES` as [`finish`].
#[inline(always)]
unsafe fn rest<S: Steps, T: Place, const P: bool, const Q: bool, const STORES: bool>(
    pass: &Pass<'_, T>,
    stream: bool,
    at: usize,
    len: usize,
) {
    // SAFETY: promised by the caller.
    unsafe {
        let at = steps::<S::Rest, T, P, Q, false, STORES>(pass, stream, at, len);
        let at = steps::<S::Last, T, P, Q, false, STORES>(pass, stream, at, len);
        steps::<u8, T, P, Q, false, STORES>(pass, false, at, len);
    }
}

/// Sums of a tile between groups.
#[repr(align(64))]
struct Carried([u8; TILE]);

/// As many whole steps as there are in `len` bytes, tile by tile; a tile's sources a group at a time, so
/// that few lines of the cache are in use at once. Gives the first byte that is left.
///
/// # Safety
/// As [`run`].
#[inline(always)]
unsafe fn grouped<V: Lanes, T: Place, const P: bool, const Q: bool, const STORES: bool>(
    pass: &Pass<'_, T>,
    stream: bool,
    len: usize,
) -> usize {
    let pass = &Pass { ..*pass };
    const { assert!(TILE.is_multiple_of(V::BYTES)) };
    let whole = len / V::BYTES * V::BYTES;
    let (mut p, mut q) = (Carried([0; TILE]), Carried([0; TILE]));
    let carried = (p.0.as_mut_ptr(), q.0.as_mut_ptr());
    let mut at = 0;
    while at < whole {
        let end = whole.min(at + TILE);
        let groups = pass.terms.as_slice().chunks(side_by_side());
        let last = groups.len() - 1;
        for (number, group) in groups.enumerate() {
            // SAFETY: promised by the caller; the last group writes what no group reads any more.
            unsafe {
                tile::<V, T, P, Q, STORES>(
                    pass,
                    group,
                    carried,
                    (number == 0, number == last),
                    stream,
                    at..end,
                );
            }
        }
        at = end;
    }
    at
}

/// Adds a group over a tile; the first begins the sums, the last finishes them.
///
/// # Safety
/// As [`run`]; the two carried sums are tiles.
#[inline(always)]
unsafe fn tile<V: Lanes, T: Place, const P: bool, const Q: bool, const STORES: bool>(
    pass: &Pass<'_, T>,
    group: &[Term<T>],
    (carried_p, carried_q): (*mut u8, *mut u8),
    (first, last): (bool, bool),
    stream: bool,
    tile: std::ops::Range<usize>,
) {
    for at in tile.clone().step_by(V::BYTES) {
        let (to_p, to_q) =
            (carried_p.wrapping_add(at - tile.start), carried_q.wrapping_add(at - tile.start));
        // SAFETY: the step lies within the tile, a tile within `len`; promised by the caller.
        unsafe {
            let sums = if first {
                begin::<V, T, P>(pass, at)
            } else {
                let q = if Q { V::load(to_q) } else { V::offset() };
                (if P { V::load(to_p) } else { V::zero() }, q)
            };
            let group = if first { group.get(1..).unwrap_or_default() } else { group };
            let (p, q) = add::<V, T, P, Q, false>(group, at, sums);
            if last {
                finish::<V, T, P, Q, STORES>(pass, stream, at, p, q);
            } else {
                if P {
                    p.store(to_p);
                }
                if Q {
                    q.store(to_q);
                }
            }
        }
    }
}
