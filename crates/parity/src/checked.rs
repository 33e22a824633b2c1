//! The kernels over slices, which are checked before anything is written.

use crate::error::{ParityError, ParityErrorKind};
use crate::field;
use crate::inspect::Located;
use crate::kernels::Kernels;
use crate::pass::Finish;
use crate::scalar::MOST_BLOCKS;
use crate::terms::{Block, Change, Room};

use std::ops::Range;

impl Kernels {
    /// Sets `target` to the XOR of all `sources`; of no sources the XOR is all zeroes.
    ///
    /// # Errors
    /// [`ParityErrorKind::LengthMismatch`] when a source is not as long as the target; the target is
    /// then untouched.
    pub fn xor(&self, target: &mut [u8], sources: &[&[u8]]) -> Result<(), ParityError> {
        check_lengths(sources, target.len())?;
        let finish = Finish::Store { p: Some(target.as_mut_ptr()), q: None };
        let mut room = Room::new();
        // SAFETY: all come from slices of as many bytes, and the target's is exclusive.
        unsafe {
            self.pass_over(room.terms(plain(sources), false), None, None, finish, target.len())
        };
        Ok(())
    }

    /// Adds the XOR of all `sources` to `target`: `target ^= sources`.
    ///
    /// # Errors
    /// As [`xor`](Self::xor).
    pub fn xor_into(&self, target: &mut [u8], sources: &[&[u8]]) -> Result<(), ParityError> {
        check_lengths(sources, target.len())?;
        let (len, start) = (target.len(), target.as_mut_ptr());
        let finish = Finish::Store { p: Some(start), q: None };
        let mut room = Room::new();
        // SAFETY: all come from slices of as many bytes, and the target's is exclusive.
        unsafe {
            self.pass_over(room.terms(plain(sources), false), Some(start), None, finish, len)
        };
        Ok(())
    }

    /// Sets `p`, `q` or both to those of `sources`, whose exponents are given in the same order. Without
    /// either there is nothing to do.
    ///
    /// # Errors
    /// [`ParityErrorKind::LengthMismatch`] when blocks differ in length, and
    /// [`ParityErrorKind::CountMismatch`], [`ParityErrorKind::BadExponent`],
    /// [`ParityErrorKind::RepeatedExponent`] and [`ParityErrorKind::TooManyBlocks`] for exponents that
    /// cannot be. Nothing is written then.
    pub fn pq(
        &self,
        p: Option<&mut [u8]>,
        q: Option<&mut [u8]>,
        sources: &[&[u8]],
        exponents: &[u8],
    ) -> Result<(), ParityError> {
        let len = common_length(p.as_deref(), q.as_deref(), sources.len())?;
        let Some(len) = len else { return Ok(()) };
        let mut room = Room::new();
        let terms = room.terms(data(sources, exponents, &[], len)?, true);
        let finish = Finish::Store { p: p.map(<[u8]>::as_mut_ptr), q: q.map(<[u8]>::as_mut_ptr) };
        // SAFETY: all come from slices of `len` bytes, and those of the targets are exclusive.
        unsafe { self.pass_over(terms, None, None, finish, len) };
        Ok(())
    }

    /// Changes `p`, `q` or both in place: the data with these exponents were `old` and become `new`.
    /// Without either there is nothing to do.
    ///
    /// # Errors
    /// As [`pq`](Self::pq); nothing is written then.
    pub fn delta(
        &self,
        p: Option<&mut [u8]>,
        q: Option<&mut [u8]>,
        old: &[&[u8]],
        new: &[&[u8]],
        exponents: &[u8],
    ) -> Result<(), ParityError> {
        let len = common_length(p.as_deref(), q.as_deref(), new.len())?;
        let Some(len) = len else { return Ok(()) };
        check_exponents(exponents, &[])?;
        for blocks in [old, new] {
            check_count(blocks, exponents)?;
            check_lengths(blocks, len)?;
        }
        let each = old.iter().zip(new).zip(exponents);
        let change = |((old, new), exponent): ((&&[u8], &&[u8]), &u8)| Change {
            old: old.as_ptr(),
            new: new.as_ptr(),
            exponent: *exponent,
        };
        let mut room = Room::new();
        let terms = room.terms(each.map(change), true);
        let (p, q) = (p.map(<[u8]>::as_mut_ptr), q.map(<[u8]>::as_mut_ptr));
        let before = |target: Option<*mut u8>| target.map(<*mut u8>::cast_const);
        // SAFETY: all come from slices of `len` bytes, and those of the targets are exclusive.
        unsafe { self.pass_over(terms, before(p), before(q), Finish::Store { p, q }, len) };
        Ok(())
    }

    /// Recovers one block of data from P and all other data.
    ///
    /// # Errors
    /// [`ParityErrorKind::LengthMismatch`] when blocks differ in length; nothing is written then.
    pub fn recover_by_p(
        &self,
        target: &mut [u8],
        p: &[u8],
        sources: &[&[u8]],
    ) -> Result<(), ParityError> {
        let len = target.len();
        check_length(sources.len(), p, len)?;
        check_lengths(sources, len)?;
        let finish = Finish::Store { p: Some(target.as_mut_ptr()), q: None };
        let mut room = Room::new();
        // SAFETY: all come from slices of `len` bytes, and the target's is exclusive.
        unsafe {
            self.pass_over(room.terms(plain(sources), false), Some(p.as_ptr()), None, finish, len)
        };
        Ok(())
    }

    /// Recovers the block of data with `exponent` from Q and all other data.
    ///
    /// # Errors
    /// As [`pq`](Self::pq); nothing is written then.
    pub fn recover_by_q(
        &self,
        target: &mut [u8],
        exponent: u8,
        q: &[u8],
        sources: &[&[u8]],
        exponents: &[u8],
    ) -> Result<(), ParityError> {
        let len = target.len();
        check_length(sources.len(), q, len)?;
        let mut room = Room::new();
        let terms = room.terms(data(sources, exponents, &[exponent], len)?, true);
        let by = field::inverse(exponent);
        let finish = Finish::ByQ { target: target.as_mut_ptr(), p: None, by };
        // SAFETY: all come from slices of `len` bytes, and the target's is exclusive.
        unsafe { self.pass_over(terms, None, Some(q.as_ptr()), finish, len) };
        Ok(())
    }

    /// Recovers the block of data with `exponent`, and P, from Q and all other data.
    ///
    /// # Errors
    /// As [`pq`](Self::pq); nothing is written then.
    pub fn recover_with_p(
        &self,
        (target, p): (&mut [u8], &mut [u8]),
        exponent: u8,
        q: &[u8],
        sources: &[&[u8]],
        exponents: &[u8],
    ) -> Result<(), ParityError> {
        let len = target.len();
        check_length(sources.len(), p, len)?;
        check_length(sources.len() + 1, q, len)?;
        let mut room = Room::new();
        let terms = room.terms(data(sources, exponents, &[exponent], len)?, true);
        let (target, p) = (target.as_mut_ptr(), Some(p.as_mut_ptr()));
        let finish = Finish::ByQ { target, p, by: field::inverse(exponent) };
        // SAFETY: all come from slices of `len` bytes, and those of the targets are exclusive.
        unsafe { self.pass_over(terms, None, Some(q.as_ptr()), finish, len) };
        Ok(())
    }

    /// Recovers the block of data with `exponent`, and Q, from P and all other data.
    ///
    /// # Errors
    /// As [`pq`](Self::pq); nothing is written then.
    pub fn recover_with_q(
        &self,
        (target, q): (&mut [u8], &mut [u8]),
        exponent: u8,
        p: &[u8],
        sources: &[&[u8]],
        exponents: &[u8],
    ) -> Result<(), ParityError> {
        let len = target.len();
        check_length(sources.len(), p, len)?;
        check_length(sources.len() + 1, q, len)?;
        let mut room = Room::new();
        let terms = room.terms(data(sources, exponents, &[exponent], len)?, true);
        let finish = Finish::ByP { target: target.as_mut_ptr(), q: q.as_mut_ptr(), exponent };
        // SAFETY: all come from slices of `len` bytes, and those of the targets are exclusive.
        unsafe { self.pass_over(terms, Some(p.as_ptr()), None, finish, len) };
        Ok(())
    }

    /// Recovers two blocks of data, which have the exponents `lost`, from P, Q and all other data.
    ///
    /// # Errors
    /// As [`pq`](Self::pq); nothing is written then.
    pub fn recover_two(
        &self,
        targets: [&mut [u8]; 2],
        lost: [u8; 2],
        (p, q): (&[u8], &[u8]),
        sources: &[&[u8]],
        exponents: &[u8],
    ) -> Result<(), ParityError> {
        let [first, second] = targets;
        let len = first.len();
        check_length(sources.len(), second, len)?;
        check_length(sources.len(), p, len)?;
        check_length(sources.len() + 1, q, len)?;
        let mut room = Room::new();
        let terms = room.terms(data(sources, exponents, &lost, len)?, true);
        let (a, b) = field::two(lost[0], lost[1]);
        let (first, second) = (first.as_mut_ptr(), second.as_mut_ptr());
        let finish = Finish::Two { first, second, a, b };
        // SAFETY: all come from slices of `len` bytes, and those of the targets are exclusive.
        unsafe { self.pass_over(terms, Some(p.as_ptr()), Some(q.as_ptr()), finish, len) };
        Ok(())
    }

    /// The bytes from the first in which the blocks are not all equal to behind the last; `None` when all
    /// are equal.
    ///
    /// # Errors
    /// [`ParityErrorKind::LengthMismatch`] when blocks differ in length.
    pub fn compare(&self, blocks: &[&[u8]]) -> Result<Option<Range<usize>>, ParityError> {
        let len = blocks.first().map_or(0, |block| block.len());
        check_lengths(blocks, len)?;
        let blocks: Vec<*const u8> = blocks.iter().map(|block| block.as_ptr()).collect();
        // SAFETY: all come from slices of `len` bytes.
        Ok(unsafe { self.compare_raw(&blocks, len) })
    }

    /// Whether P and Q are those of `sources`, and if not, which one block is wrong.
    ///
    /// # Errors
    /// As [`pq`](Self::pq).
    pub fn locate(
        &self,
        (p, q): (&[u8], &[u8]),
        sources: &[&[u8]],
        exponents: &[u8],
    ) -> Result<Located, ParityError> {
        let len = p.len();
        check_length(sources.len(), q, len)?;
        check_data(sources, exponents, &[], len)?;
        let each = sources.iter().zip(exponents);
        let blocks: Vec<Block> = each
            .map(|(source, exponent)| Block { start: source.as_ptr(), exponent: *exponent })
            .collect();
        // SAFETY: all come from slices of `len` bytes.
        Ok(unsafe { self.locate_raw(&blocks, p.as_ptr(), q.as_ptr(), len) })
    }
}

/// The blocks of a sum without coefficients.
#[inline(always)]
fn plain<'a>(
    sources: &'a [&[u8]],
) -> impl DoubleEndedIterator<Item = *const u8> + ExactSizeIterator + use<'a> {
    sources.iter().map(|source| source.as_ptr())
}

/// Blocks of data, checked.
#[inline(always)]
fn data<'a>(
    sources: &'a [&[u8]],
    exponents: &'a [u8],
    lost: &[u8],
    len: usize,
) -> Result<impl DoubleEndedIterator<Item = Block> + ExactSizeIterator + use<'a>, ParityError> {
    check_data(sources, exponents, lost, len)?;
    let block =
        |(source, exponent): (&&[u8], &u8)| Block { start: source.as_ptr(), exponent: *exponent };
    Ok(sources.iter().zip(exponents).map(block))
}

#[inline]
fn check_data(
    sources: &[&[u8]],
    exponents: &[u8],
    lost: &[u8],
    len: usize,
) -> Result<(), ParityError> {
    check_exponents(exponents, lost)?;
    check_count(sources, exponents)?;
    check_lengths(sources, len)
}

fn check_count(sources: &[&[u8]], exponents: &[u8]) -> Result<(), ParityError> {
    let (found, expected) = (exponents.len(), sources.len());
    if found == expected {
        return Ok(());
    }
    let source_index = expected.min(found);
    Err(ParityError { kind: ParityErrorKind::CountMismatch, source_index, found, expected })
}

fn check_lengths(sources: &[&[u8]], len: usize) -> Result<(), ParityError> {
    sources.iter().enumerate().try_for_each(|(index, source)| check_length(index, source, len))
}

fn check_length(source_index: usize, block: &[u8], expected: usize) -> Result<(), ParityError> {
    let found = block.len();
    if found == expected {
        return Ok(());
    }
    Err(ParityError { kind: ParityErrorKind::LengthMismatch, source_index, found, expected })
}

/// The length of the targets, of which there are `sources` sources; `None` without any target.
fn common_length(
    first: Option<&[u8]>,
    second: Option<&[u8]>,
    sources: usize,
) -> Result<Option<usize>, ParityError> {
    if let (Some(first), Some(second)) = (first, second) {
        check_length(sources, second, first.len())?;
    }
    Ok(first.or(second).map(<[u8]>::len))
}

/// Checks that no exponent is out of range and none comes twice, also among the `lost`.
fn check_exponents(exponents: &[u8], lost: &[u8]) -> Result<(), ParityError> {
    let count = exponents.len() + lost.len();
    if count > MOST_BLOCKS {
        let kind = ParityErrorKind::TooManyBlocks;
        let (source_index, found, expected) = (MOST_BLOCKS, count, MOST_BLOCKS);
        return Err(ParityError { kind, source_index, found, expected });
    }
    // Mostly they rise, and are few: then a look is enough.
    let rising = exponents.is_sorted_by(|one, next| one < next);
    let last = exponents.last().is_none_or(|last| usize::from(*last) < MOST_BLOCKS);
    if rising && last && lost.is_empty() {
        return Ok(());
    }
    let mut seen = [0u64; 4];
    for (source_index, exponent) in exponents.iter().chain(lost).enumerate() {
        let found = usize::from(*exponent);
        let (word, bit) = (&mut seen[found / 64], 1 << (found % 64));
        let kind = if found >= MOST_BLOCKS {
            ParityErrorKind::BadExponent
        } else if *word & bit != 0 {
            ParityErrorKind::RepeatedExponent
        } else {
            *word |= bit;
            continue;
        };
        return Err(ParityError { kind, source_index, found, expected: MOST_BLOCKS - 1 });
    }
    Ok(())
}
