//! P and Q of data, their change, and lost data from them: checked calls over slices, and the unsafe
//! ones ([`pq_raw`], [`delta_raw`], [`recover_raw`]) for callers whose blocks are not slices.
//!
//! P = sum of D_i and Q = sum of 2^(e_i) D_i over GF(2^8) with polynomial 0x11d (Anvin, "The mathematics
//! of RAID-6"). The exponents e_i are the caller's: 0 to 254, each at most once, with or without holes.

use crate::scalar::MOST_BLOCKS;
use crate::syndrome::{Finish, Pass, run};
use crate::{Block, Change, ParityError, ParityErrorKind, field};

/// Data of a row that is to be recovered, and by what.
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

/// Sets `p`, `q` or both to those of `data`, each block `len` bytes long; of no data both are zeroes.
///
/// # Safety
/// * All blocks of `data` are valid for reads of `len` bytes, `p` and `q` for writes, and nobody else
///   writes any of them meanwhile.
/// * `p` and `q` do not overlap each other, and each block either starts exactly at one of them or
///   overlaps neither.
pub unsafe fn pq_raw(p: Option<*mut u8>, q: Option<*mut u8>, data: &[Block], len: usize) {
    let pass = Pass { p: None, q: None, sources: data, finish: Finish::Store { p, q } };
    // SAFETY: promised by the caller.
    unsafe { run(&pass, len) };
}

/// Changes `p`, `q` or both in place, as `changes` in the data of their row ask for.
///
/// # Safety
/// As [`pq_raw`], for the old and the new contents; `p` and `q` are valid for reads too.
pub unsafe fn delta_raw(p: Option<*mut u8>, q: Option<*mut u8>, changes: &[Change], len: usize) {
    let pass = Pass {
        p: p.map(<*mut u8>::cast_const),
        q: q.map(<*mut u8>::cast_const),
        sources: changes,
        finish: Finish::Store { p, q },
    };
    // SAFETY: promised by the caller.
    unsafe { run(&pass, len) };
}

/// Recovers what is lost, `data` being all other data of the row.
///
/// # Safety
/// As [`pq_raw`]: everything is valid for `len` bytes of reads or, the targets, of writes; what is read
/// starts exactly at a target or overlaps none; and two targets do not overlap.
pub unsafe fn recover_raw(lost: Lost, data: &[Block], len: usize) {
    let (p, q, finish) = match lost {
        Lost::ByP { target, p } => (Some(p), None, Finish::Store { p: Some(target), q: None }),
        Lost::ByQ { target, exponent, q } => {
            (None, Some(q), Finish::ScaleQ { target, by: field::inverse(exponent) })
        }
        Lost::Two { targets: [first, second], exponents: [x, y], p, q } => {
            debug_assert_ne!(x, y, "two blocks need two coefficients");
            let (a, b) = field::two(x, y);
            (Some(p), Some(q), Finish::Two { first, second, a, b })
        }
    };
    // SAFETY: promised by the caller.
    unsafe { run(&Pass { p, q, sources: data, finish }, len) };
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
    p: Option<&mut [u8]>,
    q: Option<&mut [u8]>,
    sources: &[&[u8]],
    exponents: &[u8],
) -> Result<(), ParityError> {
    let len = common_length(p.as_deref(), q.as_deref(), sources.len())?;
    let Some(len) = len else { return Ok(()) };
    check_exponents(exponents, &[])?;
    let blocks = blocks(sources, exponents, len)?;
    // SAFETY: all come from slices of `len` bytes, and those of the targets are exclusive.
    unsafe { pq_raw(p.map(<[u8]>::as_mut_ptr), q.map(<[u8]>::as_mut_ptr), &blocks, len) };
    Ok(())
}

/// Changes `p`, `q` or both in place: the data with these exponents were `old` and become `new`.
/// Without either there is nothing to do.
///
/// # Errors
/// As [`pq`]; nothing is written then.
pub fn delta(
    p: Option<&mut [u8]>,
    q: Option<&mut [u8]>,
    old: &[&[u8]],
    new: &[&[u8]],
    exponents: &[u8],
) -> Result<(), ParityError> {
    let len = common_length(p.as_deref(), q.as_deref(), new.len())?;
    let Some(len) = len else { return Ok(()) };
    check_exponents(exponents, &[])?;
    let (old, new) = (blocks(old, exponents, len)?, blocks(new, exponents, len)?);
    let pair =
        |(o, n): (&Block, &Block)| Change { old: o.start, new: n.start, exponent: o.exponent };
    let changes: Vec<_> = old.iter().zip(&new).map(pair).collect();
    // SAFETY: all come from slices of `len` bytes, and those of the targets are exclusive.
    unsafe { delta_raw(p.map(<[u8]>::as_mut_ptr), q.map(<[u8]>::as_mut_ptr), &changes, len) };
    Ok(())
}

/// Recovers one block of data from P and all other data.
///
/// # Errors
/// [`ParityErrorKind::LengthMismatch`] when blocks differ in length; nothing is written then.
pub fn recover_by_p(target: &mut [u8], p: &[u8], sources: &[&[u8]]) -> Result<(), ParityError> {
    let len = target.len();
    check_length(sources.len(), p, len)?;
    for (index, source) in sources.iter().enumerate() {
        check_length(index, source, len)?;
    }
    let data: Vec<_> =
        sources.iter().map(|source| Block { start: source.as_ptr(), exponent: 0 }).collect();
    let lost = Lost::ByP { target: target.as_mut_ptr(), p: p.as_ptr() };
    // SAFETY: all come from slices of `len` bytes, and the target's is exclusive.
    unsafe { recover_raw(lost, &data, len) };
    Ok(())
}

/// Recovers the block of data with `exponent` from Q and all other data.
///
/// # Errors
/// As [`pq`]; nothing is written then.
pub fn recover_by_q(
    target: &mut [u8],
    exponent: u8,
    q: &[u8],
    sources: &[&[u8]],
    exponents: &[u8],
) -> Result<(), ParityError> {
    let len = target.len();
    check_length(sources.len(), q, len)?;
    check_exponents(exponents, &[exponent])?;
    let data = blocks(sources, exponents, len)?;
    let lost = Lost::ByQ { target: target.as_mut_ptr(), exponent, q: q.as_ptr() };
    // SAFETY: all come from slices of `len` bytes, and the target's is exclusive.
    unsafe { recover_raw(lost, &data, len) };
    Ok(())
}

/// Recovers two blocks of data, which have the exponents `lost`, from P, Q and all other data.
///
/// # Errors
/// As [`pq`]; nothing is written then.
pub fn recover_two(
    targets: [&mut [u8]; 2],
    lost: [u8; 2],
    p: &[u8],
    q: &[u8],
    sources: &[&[u8]],
    exponents: &[u8],
) -> Result<(), ParityError> {
    let [first, second] = targets;
    let len = first.len();
    check_length(sources.len(), second, len)?;
    check_length(sources.len(), p, len)?;
    check_length(sources.len() + 1, q, len)?;
    check_exponents(exponents, &lost)?;
    let data = blocks(sources, exponents, len)?;
    let targets = [first.as_mut_ptr(), second.as_mut_ptr()];
    let lost = Lost::Two { targets, exponents: lost, p: p.as_ptr(), q: q.as_ptr() };
    // SAFETY: all come from slices of `len` bytes, and those of the targets are exclusive.
    unsafe { recover_raw(lost, &data, len) };
    Ok(())
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
    let mut seen = [false; 256];
    for (source_index, exponent) in exponents.iter().chain(lost).enumerate() {
        let found = usize::from(*exponent);
        let kind = match std::mem::replace(&mut seen[found], true) {
            _ if found >= MOST_BLOCKS => ParityErrorKind::BadExponent,
            true => ParityErrorKind::RepeatedExponent,
            false => continue,
        };
        return Err(ParityError { kind, source_index, found, expected: MOST_BLOCKS - 1 });
    }
    Ok(())
}

fn blocks(sources: &[&[u8]], exponents: &[u8], len: usize) -> Result<Vec<Block>, ParityError> {
    if sources.len() != exponents.len() {
        return Err(ParityError {
            kind: ParityErrorKind::CountMismatch,
            source_index: sources.len().min(exponents.len()),
            found: exponents.len(),
            expected: sources.len(),
        });
    }
    let block = |(index, (source, exponent)): (usize, (&&[u8], &u8))| {
        check_length(index, source, len)?;
        Ok(Block { start: source.as_ptr(), exponent: *exponent })
    };
    sources.iter().zip(exponents).enumerate().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(result: Result<(), ParityError>) -> ParityErrorKind {
        result.unwrap_err().kind
    }

    #[test]
    fn blocks_and_exponents_are_checked_before_anything_is_written() {
        use ParityErrorKind::*;
        let (mut p, mut q, short) = ([7; 8], [7; 8], [1; 7]);
        let block = &[1u8; 8][..];
        let mut run = |sources: &[&[u8]], exponents: &[u8]| {
            kind(pq(Some(&mut p), Some(&mut q), sources, exponents))
        };
        assert_eq!(run(&[block, &short], &[0, 1]), LengthMismatch);
        assert_eq!(run(&[block, block], &[0]), CountMismatch);
        assert_eq!(run(&[block, block], &[3, 3]), RepeatedExponent);
        assert_eq!(run(&[block, block], &[3, 255]), BadExponent);
        assert_eq!(run(&[block; 256], &[0; 256]), TooManyBlocks);
        assert_eq!(kind(pq(Some(&mut p), Some(&mut q[..7]), &[], &[])), LengthMismatch);
        assert_eq!(kind(delta(Some(&mut p), None, &[block], &[&short], &[0])), LengthMismatch);
        assert_eq!(kind(recover_by_p(&mut p, &short, &[])), LengthMismatch);
        assert_eq!(kind(recover_by_p(&mut p, block, &[&short])), LengthMismatch);
        assert_eq!(kind(recover_by_q(&mut p, 1, block, &[block], &[1])), RepeatedExponent);
        assert_eq!(kind(recover_by_q(&mut p, 255, block, &[], &[])), BadExponent);
        let two = |lost, p: &mut [u8], q: &mut [u8]| {
            kind(recover_two([p, q], lost, block, block, &[], &[]))
        };
        assert_eq!(two([4, 4], &mut p, &mut q), RepeatedExponent);
        assert_eq!(two([4, 5], &mut p, &mut q[..7]), LengthMismatch);
        assert_eq!((p, q), ([7; 8], [7; 8]));
    }

    #[test]
    fn no_data_give_zeroes_and_no_target_nothing() {
        let (mut p, mut q) = ([7; 100], [7; 100]);
        pq(None, None, &[&[1; 9]], &[0]).unwrap();
        delta(Some(&mut p), Some(&mut q), &[], &[], &[]).unwrap();
        assert_eq!((p, q), ([7; 100], [7; 100]));
        pq(Some(&mut p), Some(&mut q), &[], &[]).unwrap();
        assert_eq!((p, q), ([0; 100], [0; 100]));
    }
}
