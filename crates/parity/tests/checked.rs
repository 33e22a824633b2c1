//! What callers with slices get wrong is told before anything is written.

use raidlab_parity::{Kernels, Located, ParityError, ParityErrorKind};

fn kind(result: Result<(), ParityError>) -> ParityErrorKind {
    result.unwrap_err().kind
}

#[test]
fn lengths_are_checked_before_anything_is_written() {
    let kernels = Kernels::default();
    let mut target = [7u8; 8];
    let error = kernels.xor(&mut target, &[&[1; 8], &[1; 9]]).unwrap_err();
    assert_eq!(error.kind, ParityErrorKind::LengthMismatch);
    assert_eq!((error.source_index, error.found, error.expected), (1, 9, 8));
    assert!(error.to_string().contains("block 1 is 9 bytes long"));
    assert!(kernels.xor_into(&mut target, &[&[1; 7]]).is_err());
    assert_eq!(target, [7; 8]);
    assert!(kernels.compare(&[&[1; 8], &[1; 8], &[1; 7]]).is_err());
}

#[test]
fn blocks_and_exponents_are_checked_before_anything_is_written() {
    use ParityErrorKind::*;
    let kernels = Kernels::default();
    let (mut p, mut q, short) = ([7; 8], [7; 8], [1; 7]);
    let block = &[1u8; 8][..];
    let mut run = |sources: &[&[u8]], exponents: &[u8]| {
        kind(kernels.pq(Some(&mut p), Some(&mut q), sources, exponents))
    };
    assert_eq!(run(&[block, &short], &[0, 1]), LengthMismatch);
    assert_eq!(run(&[block, block], &[0]), CountMismatch);
    assert_eq!(run(&[block, block], &[3, 3]), RepeatedExponent);
    assert_eq!(run(&[block, block], &[200, 200]), RepeatedExponent);
    assert_eq!(run(&[block, block], &[3, 255]), BadExponent);
    assert_eq!(run(&[block; 256], &[0; 256]), TooManyBlocks);
    let mut run =
        |old: &[&[u8]], new: &[&[u8]]| kind(kernels.delta(Some(&mut p), None, old, new, &[0]));
    assert_eq!(run(&[block], &[&short]), LengthMismatch);
    assert_eq!(run(&[&short], &[block]), LengthMismatch);
    assert_eq!(run(&[block], &[block, block]), CountMismatch);
    assert_eq!(kind(kernels.pq(Some(&mut p), Some(&mut q[..7]), &[], &[])), LengthMismatch);
    assert_eq!(kind(kernels.recover_by_p(&mut p, &short, &[])), LengthMismatch);
    assert_eq!(kind(kernels.recover_by_p(&mut p, block, &[&short])), LengthMismatch);
    let by_q = |p: &mut [u8], exponent, data: &[&[u8]], exponents: &[u8]| {
        kind(kernels.recover_by_q(p, exponent, block, data, exponents))
    };
    assert_eq!(by_q(&mut p, 1, &[block], &[1]), RepeatedExponent);
    assert_eq!(by_q(&mut p, 255, &[], &[]), BadExponent);
    let with = |p: &mut [u8], q: &mut [u8], exponent| {
        let with_p = kernels.recover_with_p((p, q), exponent, block, &[block], &[1]);
        let with_q = kernels.recover_with_q((p, q), exponent, block, &[block], &[1]);
        assert_eq!(kind(with_p), kind(with_q.clone()));
        kind(with_q)
    };
    assert_eq!(with(&mut p, &mut q, 1), RepeatedExponent);
    assert_eq!(with(&mut p, &mut q[..7], 2), LengthMismatch);
    // P is named by the place behind the sources, Q by the next, whichever is given.
    let (whole, cut) = (&mut [7; 8], &mut [7; 7]);
    for (result, place) in [
        (kernels.recover_with_p((whole, cut), 2, block, &[block], &[1]), 1),
        (kernels.recover_with_p((whole, &mut [7; 8]), 2, &short, &[block], &[1]), 2),
        (kernels.recover_with_q((whole, &mut [7; 8]), 2, &short, &[block], &[1]), 1),
        (kernels.recover_with_q((whole, cut), 2, block, &[block], &[1]), 2),
    ] {
        let error = result.unwrap_err();
        assert_eq!((error.source_index, error.found, error.expected), (place, 7, 8));
    }
    let two = |lost, p: &mut [u8], q: &mut [u8]| {
        kind(kernels.recover_two([p, q], lost, (block, block), &[], &[]))
    };
    assert_eq!(two([4, 4], &mut p, &mut q), RepeatedExponent);
    assert_eq!(two([4, 5], &mut p, &mut q[..7]), LengthMismatch);
    assert_eq!((p, q), ([7; 8], [7; 8]));
    assert!(kernels.locate((&p, &q), &[&short], &[0]).is_err());
    assert!(kernels.locate((&p, &short), &[], &[]).is_err());
}

#[test]
fn no_data_give_zeroes_and_no_target_nothing() {
    let kernels = Kernels::default();
    let (mut p, mut q) = ([7; 100], [7; 100]);
    kernels.pq(None, None, &[&[1; 9]], &[0]).unwrap();
    kernels.delta(Some(&mut p), Some(&mut q), &[], &[], &[]).unwrap();
    kernels.xor_into(&mut p, &[]).unwrap();
    assert_eq!((p, q), ([7; 100], [7; 100]));
    kernels.pq(Some(&mut p), Some(&mut q), &[], &[]).unwrap();
    assert_eq!((p, q), ([0; 100], [0; 100]));
    p = [7; 100];
    kernels.xor(&mut p, &[]).unwrap();
    assert_eq!(p, [0; 100]);
    assert_eq!(kernels.compare(&[]).unwrap(), None);
    assert_eq!(kernels.locate((&p, &q), &[], &[]).unwrap(), Located::Consistent);
}
