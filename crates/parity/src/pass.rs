//! P and Q in one pass over any number of blocks, and what follows from them: new parity, or lost data.
//!
//! A pass goes through all blocks position by position. It reads everything of a position before it
//! writes there, so a target may be one of the blocks. Q is summed by Horner's rule: from the highest
//! exponent to the lowest, doubling in between, which needs no tables where exponents follow each other.

use crate::dispatch::{InstructionSet, Store};
use crate::lanes::{Lanes, Words};
use crate::terms::{Place, Term, Terms};

#[cfg(target_arch = "x86_64")]
mod vectors;

/// What becomes of the two sums of a pass.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Finish {
    /// Store the one over which the pass went, or both. A pass over differences, and one over P alone, does nothing
    /// else.
    Store { p: Option<*mut u8>, q: Option<*mut u8> },
    /// P is the lost block; Q with it times 2 to the power `exponent` is the new Q.
    ByP { target: *mut u8, q: *mut u8, exponent: u8 },
    /// Q times 2 to the power `by` is the lost block; P with it is the new P.
    ByQ { target: *mut u8, p: Option<*mut u8>, by: u8 },
    /// Store `a` P + `b` Q (exponents) as the first block, and P without it as the second.
    Two { first: *mut u8, second: *mut u8, a: u8, b: u8 },
}

impl Finish {
    /// Which of the sums are needed.
    pub(crate) fn sums(&self) -> (bool, bool) {
        match self {
            Self::Store { p, q } => (p.is_some(), q.is_some()),
            Self::ByQ { p, .. } => (p.is_some(), true),
            Self::ByP { .. } | Self::Two { .. } => (true, true),
        }
    }

    /// Whether a target is exactly this block.
    #[inline]
    pub(crate) fn writes(&self, block: *const u8) -> bool {
        self.targets().into_iter().flatten().any(|target| target.cast_const() == block)
    }

    fn stores(&self) -> bool {
        matches!(self, Self::Store { .. })
    }

    fn targets(&self) -> [Option<*mut u8>; 2] {
        match *self {
            Self::Store { p, q } => [p, q],
            Self::ByP { target, q, .. } => [Some(target), Some(q)],
            Self::ByQ { target, p, .. } => [Some(target), p],
            Self::Two { first, second, .. } => [Some(first), Some(second)],
        }
    }
}

/// A pass: what is added to the two sums at first (nothing without), the blocks, what becomes of it.
pub(crate) struct Pass<'a, T> {
    pub(crate) p: Option<*const u8>,
    pub(crate) q: Option<*const u8>,
    pub(crate) terms: Terms<'a, T>,
    pub(crate) finish: Finish,
    pub(crate) store: Store,
}

/// Makes a pass over `len` bytes.
///
/// # Safety
/// * This machine can go the path.
/// * Every address is valid for `len` bytes, of reads or (in `finish`) of writes, and nobody else
///   writes there meanwhile.
/// * What is written either starts exactly where something read starts, or does not overlap it; the
///   blocks written do not overlap each other.
pub(crate) unsafe fn run<T: Place>(path: InstructionSet, pass: &Pass<'_, T>, len: usize) {
    // SAFETY: promised by the caller.
    unsafe {
        match pass.finish.sums() {
            (false, false) => {}
            (true, false) => on::<T, true, false>(path, pass, len),
            (false, true) => on::<T, false, true>(path, pass, len),
            (true, true) => on::<T, true, true>(path, pass, len),
        }
    }
}

/// # Safety
/// As [`run`].
#[inline(always)]
unsafe fn on<T: Place, const P: bool, const Q: bool>(
    path: InstructionSet,
    pass: &Pass<'_, T>,
    len: usize,
) {
    // SAFETY: promised by the caller.
    unsafe {
        match path {
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512Gfni => vectors::avx512_gfni::<T, P, Q>(pass, len),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2 => vectors::avx2::<T, P, Q>(pass, len),
            _ => words::<T, P, Q>(pass, len),
        }
    }
}

/// # Safety
/// As [`run`].
unsafe fn words<T: Place, const P: bool, const Q: bool>(pass: &Pass<'_, T>, len: usize) {
    // SAFETY: words and bytes are everywhere; the rest is promised by the caller.
    unsafe {
        if const { always_stores::<T>(Q) } || pass.finish.stores() {
            let at = steps::<Words, T, P, Q, false, true>(pass, false, 0, len);
            steps::<u8, T, P, Q, false, true>(pass, false, at, len);
        } else {
            let at = steps::<Words, T, P, Q, false, false>(pass, false, 0, len);
            steps::<u8, T, P, Q, false, false>(pass, false, at, len);
        }
    }
}

/// Whether such a pass stores its sums, whatever is asked for: then the compiler makes no code for the other ways,
/// which would be most of it.
const fn always_stores<T: Place>(q: bool) -> bool {
    T::BLOCKS > 1 || !q
}

/// As many steps as fit into bytes `at..len`; gives the first byte that is left.
///
/// # Safety
/// As [`run`], on a machine with the instructions of `V`; `at <= len`; with `CONSECUTIVE` all exponents
/// follow each other; with `stream` targets are on multiples of the vector's size,
/// `at` too; `STORES` as [`finish`].
#[inline(always)]
unsafe fn steps<
    V: Lanes,
    T: Place,
    const P: bool,
    const Q: bool,
    const CONSECUTIVE: bool,
    const STORES: bool,
>(
    pass: &Pass<'_, T>,
    stream: bool,
    mut at: usize,
    len: usize,
) -> usize {
    // A copy of its own cannot be what the stores change.
    let pass = &Pass { ..*pass };
    let rest = pass.terms.as_slice().get(1..).unwrap_or_default();
    while len - at >= V::BYTES {
        // SAFETY: the step lies within `len`; all reads precede the writes; promised by the caller.
        unsafe {
            let begin = begin::<V, T, P>(pass, at);
            let (p, q) = add::<V, T, P, Q, CONSECUTIVE>(rest, at, begin);
            finish::<V, T, P, Q, STORES>(pass, stream, at, p, q);
        }
        at += V::BYTES;
    }
    at
}

/// The sums with the first block only; that of Q has the offset of `V`.
///
/// # Safety
/// As [`steps`], and `at + V::BYTES` is within the blocks.
#[inline(always)]
unsafe fn begin<V: Lanes, T: Place, const P: bool>(pass: &Pass<'_, T>, at: usize) -> (V, V) {
    // SAFETY: promised by the caller.
    unsafe {
        let first = match pass.terms.as_slice().first() {
            Some(term) => term.place.load::<V>(at),
            None => V::zero(),
        };
        let p = match pass.p {
            Some(from) if P => V::load(from.wrapping_add(at)).add(first),
            _ => first,
        };
        (p, first.add(V::offset()))
    }
}

/// Adds blocks to the sums of one position.
///
/// # Safety
/// As [`begin`].
#[inline(always)]
pub(crate) unsafe fn add<
    V: Lanes,
    T: Place,
    const P: bool,
    const Q: bool,
    const CONSECUTIVE: bool,
>(
    terms: &[Term<T>],
    at: usize,
    (mut p, mut q): (V, V),
) -> (V, V) {
    // Two at a time, for fewer jumps.
    let (pairs, odd) = terms.as_chunks::<2>();
    // SAFETY: promised by the caller.
    unsafe {
        for [first, second] in pairs {
            if Q && V::MOST_DOUBLINGS == 0 {
                (p, q) = add_two::<V, T, P, CONSECUTIVE>([first, second], at, (p, q));
            } else {
                (p, q) = add_one::<V, T, P, Q, CONSECUTIVE>(first, at, (p, q));
                (p, q) = add_one::<V, T, P, Q, CONSECUTIVE>(second, at, (p, q));
            }
        }
        if let [last] = odd {
            (p, q) = add_one::<V, T, P, Q, CONSECUTIVE>(last, at, (p, q));
        }
    }
    (p, q)
}

/// # Safety
/// As [`begin`].
#[inline(always)]
unsafe fn add_one<V: Lanes, T: Place, const P: bool, const Q: bool, const CONSECUTIVE: bool>(
    term: &Term<T>,
    at: usize,
    (mut p, mut q): (V, V),
) -> (V, V) {
    // SAFETY: promised by the caller.
    unsafe {
        let block = term.place.load::<V>(at);
        if P {
            p = p.add(block);
        }
        if Q && CONSECUTIVE {
            q = q.double().add(block);
        } else if Q {
            q = raise(q, term.gap).add(block);
        }
    }
    (p, q)
}

/// Two steps of Horner's rule at once, for lanes on which multiplying is as cheap as doubling: the sums are
/// added to in one operation each.
///
/// # Safety
/// As [`begin`].
#[inline(always)]
unsafe fn add_two<V: Lanes, T: Place, const P: bool, const CONSECUTIVE: bool>(
    [first, second]: [&Term<T>; 2],
    at: usize,
    (mut p, mut q): (V, V),
) -> (V, V) {
    let gaps = if CONSECUTIVE { [1, 1] } else { [first.gap, second.gap] };
    // SAFETY: promised by the caller.
    unsafe {
        let (first, second) = (first.place.load::<V>(at), second.place.load::<V>(at));
        if P {
            p = p.add(first.add(second));
        }
        let higher = first.multiply(gaps[1]).add(second);
        q = q.multiply(gaps[0] + gaps[1]).add(higher);
    }
    (p, q)
}

/// `q`, which has the offset, times 2 to the power `by`.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn raise<V: Lanes>(mut q: V, by: u8) -> V {
    // SAFETY: promised by the caller.
    unsafe {
        if by > V::MOST_DOUBLINGS {
            return q.add(V::offset()).multiply(by).add(V::offset());
        }
        for _ in 0..by {
            q = q.double();
        }
    }
    q
}

/// The sum of Q as it is: the blocks' times 2 to the power of the lowest exponent, without the offset,
/// and with what the pass starts from.
///
/// # Safety
/// As [`begin`].
#[inline(always)]
unsafe fn settle<V: Lanes, T: Place>(pass: &Pass<'_, T>, at: usize, q: V) -> V {
    // SAFETY: promised by the caller.
    unsafe {
        let q = raise(q, pass.terms.lowest()).add(V::offset());
        match pass.q {
            Some(from) => q.add(V::load(from.wrapping_add(at))),
            None => q,
        }
    }
}

/// Makes of the sums of one position what is asked for.
///
/// # Safety
/// As [`begin`]; `STORES` says whether they are stored as they are.
#[inline(always)]
unsafe fn finish<V: Lanes, T: Place, const P: bool, const Q: bool, const STORES: bool>(
    pass: &Pass<'_, T>,
    stream: bool,
    at: usize,
    p: V,
    q: V,
) {
    // SAFETY: promised by the caller.
    unsafe {
        if STORES {
            let Finish::Store { p: to_p, q: to_q } = pass.finish else { return };
            if P && let Some(to) = to_p {
                put(p, to, at, stream);
            }
            if Q && let Some(to) = to_q {
                put(settle(pass, at, q), to, at, stream);
            }
        } else if Q {
            let q = settle(pass, at, q);
            match pass.finish {
                Finish::ByP { target, q: to_q, exponent } if P => {
                    put(q.add(p.multiply(exponent)), to_q, at, stream);
                    put(p, target, at, stream);
                }
                Finish::ByQ { target, p: to_p, by } => {
                    let found = q.multiply(by);
                    if P && let Some(to) = to_p {
                        put(p.add(found), to, at, stream);
                    }
                    put(found, target, at, stream);
                }
                Finish::Two { first, second, a, b } if P => {
                    let found = p.multiply(a).add(q.multiply(b));
                    put(found, first, at, stream);
                    put(p.add(found), second, at, stream);
                }
                _ => {}
            }
        }
    }
}

/// Stores in the cache or past it.
///
/// # Safety
/// As [`Lanes::store`], for `at` bytes behind `to`; with `stream` as [`Lanes::stream`].
#[inline(always)]
unsafe fn put<V: Lanes>(lanes: V, to: *mut u8, at: usize, stream: bool) {
    let to = to.wrapping_add(at);
    // SAFETY: promised by the caller.
    unsafe { if stream { lanes.stream(to) } else { lanes.store(to) } }
}
