//! The kernels, for callers whose blocks are not slices.
//!
//! P = sum of D_i and Q = sum of 2^(e_i) D_i over GF(2^8) with polynomial 0x11d (Anvin, "The mathematics
//! of RAID-6"). The exponents e_i are the caller's: 0 to 254, each at most once, in any order, with or
//! without holes.

use crate::dispatch::{InstructionSet, Store, path};
use crate::field;
use crate::pass::{Finish, Pass, run};
use crate::terms::{Block, Change, Place, Room, Source, Terms};

/// Data of a row that is to be recovered, alone or with a parity that is lost too, and by what.
#[derive(Clone, Copy, Debug)]
pub enum Lost {
    /// One block, by P.
    ByP {
        /// Where it is to be put.
        target: *mut u8,
        /// Where P is.
        p: *const u8,
    },
    /// One block, by Q.
    ByQ {
        /// Where it is to be put.
        target: *mut u8,
        /// Its coefficient in Q is 2 to this power; 0 to 254.
        exponent: u8,
        /// Where Q is.
        q: *const u8,
    },
    /// One block and P, by Q.
    WithP {
        /// Where it is to be put.
        target: *mut u8,
        /// Its coefficient in Q is 2 to this power; 0 to 254.
        exponent: u8,
        /// Where P is to be put.
        p: *mut u8,
        /// Where Q is.
        q: *const u8,
    },
    /// One block and Q, by P.
    WithQ {
        /// Where it is to be put.
        target: *mut u8,
        /// Its coefficient in Q is 2 to this power; 0 to 254.
        exponent: u8,
        /// Where P is.
        p: *const u8,
        /// Where Q is to be put.
        q: *mut u8,
    },
    /// Two blocks, by both.
    Two {
        /// Where they are to be put; these do not overlap.
        targets: [*mut u8; 2],
        /// Their coefficients in Q are 2 to these powers; 0 to 254, different.
        exponents: [u8; 2],
        /// Where P is.
        p: *const u8,
        /// Where Q is.
        q: *const u8,
    },
}

/// All kernels, by one way to compute and one to store.
///
/// Every call makes one pass, whatever it computes. No alignment is needed; blocks whose starts differ by
/// powers of two from 4,096 bytes on are slower, because they share places in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kernels {
    path: InstructionSet,
    store: Store,
}

impl Default for Kernels {
    fn default() -> Self {
        Self::new(Store::Cached)
    }
}

impl Kernels {
    /// The fastest this machine has.
    #[inline]
    pub fn new(store: Store) -> Self {
        Self { path: path(), store }
    }

    /// Those of a path; `None` when this machine cannot go it.
    pub fn on(path: InstructionSet, store: Store) -> Option<Self> {
        path.is_available().then_some(Self { path, store })
    }

    /// How they compute.
    pub fn path(&self) -> InstructionSet {
        self.path
    }

    /// How they store.
    pub fn store(&self) -> Store {
        self.store
    }

    /// Sets `target` to the XOR of all `sources`, each `len` bytes long; of none it is all zeroes.
    ///
    /// # Safety
    /// * `target` is valid for reads and writes of `len` bytes, every source for reads of `len` bytes,
    ///   and nobody else writes any of them meanwhile.
    /// * Each source either starts exactly at `target`, which is then updated in place, or does not
    ///   overlap it.
    pub unsafe fn xor_raw(&self, target: *mut u8, sources: &[*const u8], len: usize) {
        let finish = Finish::Store { p: Some(target), q: None };
        // SAFETY: promised by the caller.
        unsafe { self.pass(sources, None, None, finish, len) };
    }

    /// Sets `p`, `q` or both to those of `data`, each block `len` bytes long; of no data both are zeroes.
    ///
    /// # Safety
    /// * All blocks of `data` are valid for reads of `len` bytes, `p` and `q` for writes, and nobody
    ///   else writes any of them meanwhile.
    /// * `p` and `q` do not overlap each other, and each block either starts exactly at one of them or
    ///   overlaps neither.
    pub unsafe fn pq_raw(
        &self,
        p: Option<*mut u8>,
        q: Option<*mut u8>,
        data: &[Block],
        len: usize,
    ) {
        // SAFETY: promised by the caller.
        unsafe { self.pass(data, None, None, Finish::Store { p, q }, len) };
    }

    /// Changes `p`, `q` or both in place, as `changes` in the data of their row ask for.
    ///
    /// # Safety
    /// As [`pq_raw`](Self::pq_raw), for the old and the new contents; `p` and `q` are valid for reads too.
    pub unsafe fn delta_raw(
        &self,
        p: Option<*mut u8>,
        q: Option<*mut u8>,
        changes: &[Change],
        len: usize,
    ) {
        let old = |target: Option<*mut u8>| target.map(<*mut u8>::cast_const);
        // SAFETY: promised by the caller.
        unsafe { self.pass(changes, old(p), old(q), Finish::Store { p, q }, len) };
    }

    /// Recovers what is lost, `data` being all other data of the row.
    ///
    /// # Safety
    /// As [`pq_raw`](Self::pq_raw): everything is valid for `len` bytes of reads or, the targets, of
    /// writes; what is read starts exactly at a target or overlaps none; and two targets do not overlap.
    pub unsafe fn recover_raw(&self, lost: Lost, data: &[Block], len: usize) {
        let (p, q, finish) = match lost {
            Lost::ByP { target, p } => (Some(p), None, Finish::Store { p: Some(target), q: None }),
            Lost::ByQ { target, exponent, q } => {
                (None, Some(q), Finish::ByQ { target, p: None, by: field::inverse(exponent) })
            }
            Lost::WithP { target, exponent, p, q } => {
                (None, Some(q), Finish::ByQ { target, p: Some(p), by: field::inverse(exponent) })
            }
            Lost::WithQ { target, exponent, p, q } => {
                (Some(p), None, Finish::ByP { target, q, exponent })
            }
            Lost::Two { targets: [first, second], exponents: [x, y], p, q } => {
                debug_assert_ne!(x, y, "two blocks need two coefficients");
                let (a, b) = field::two(x, y);
                (Some(p), Some(q), Finish::Two { first, second, a, b })
            }
        };
        // SAFETY: promised by the caller.
        unsafe { self.pass(data, p, q, finish, len) };
    }

    /// # Safety
    /// As [`run`].
    #[inline]
    unsafe fn pass<S: Source>(
        &self,
        sources: &[S],
        p: Option<*const u8>,
        q: Option<*const u8>,
        finish: Finish,
        len: usize,
    ) {
        let mut room = Room::new();
        let terms = room.terms(sources.iter().copied(), finish.sums().1);
        // SAFETY: promised by the caller.
        unsafe { self.pass_over(terms, p, q, finish, len) };
    }

    /// # Safety
    /// As [`run`].
    #[inline]
    pub(crate) unsafe fn pass_over<T: Place>(
        &self,
        terms: Terms<'_, T>,
        p: Option<*const u8>,
        q: Option<*const u8>,
        finish: Finish,
        len: usize,
    ) {
        // What was just read lies in the cache, and is best changed there.
        let changed = [p, q].iter().flatten().any(|from| finish.writes(*from));
        let store = if changed { Store::Cached } else { self.store };
        // SAFETY: the path is this machine's; the rest is promised by the caller.
        unsafe { run(self.path, &Pass { p, q, terms, finish, store }, len) };
    }
}
