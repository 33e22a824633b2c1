//! Every loss of one or two members of a row, from 4 to 64 of them, comes back.

mod common;

use common::{Random, all_kernels, oracle, slices};
use raidlab_parity::Kernels;

/// Bytes of a block: all steps of a pass, and a rest.
const LEN: usize = 512 + 64 + 32 + 5;

/// Loses the members `a` and `b` of a row: below `count` data, then P, then Q. Everything that is lost
/// must come back.
fn lose(kernels: &Kernels, row: &[Vec<u8>], exponents: &[u8], a: usize, b: usize) {
    let count = exponents.len();
    let is_lost = |member: usize| member == a || member == b;
    let lost: Vec<usize> = (0..count).filter(|i| is_lost(*i)).collect();
    let (has_p, has_q) = (!is_lost(count), !is_lost(count + 1));
    let known: Vec<usize> = (0..count).filter(|i| !is_lost(*i)).collect();
    let rest: Vec<&[u8]> = known.iter().map(|i| row[*i].as_slice()).collect();
    let others: Vec<u8> = known.iter().map(|i| exponents[*i]).collect();
    let (p, q) = (&row[count][..], &row[count + 1][..]);
    let (mut x, mut y) = (vec![0xee; LEN], vec![0xee; LEN]);
    let found = match (&lost[..], has_p, has_q) {
        ([], true, true) => return,
        ([], _, _) => {
            let (to_p, to_q) = ((!has_p).then_some(&mut x[..]), (!has_q).then_some(&mut y[..]));
            kernels.pq(to_p, to_q, &rest, &others).unwrap();
            (has_p || x == p) && (has_q || y == q)
        }
        ([one], true, true) => {
            kernels.recover_by_p(&mut x, p, &rest).unwrap();
            kernels.recover_by_q(&mut y, exponents[*one], q, &rest, &others).unwrap();
            x == row[*one] && y == row[*one]
        }
        ([one], false, _) => {
            let both = (&mut x[..], &mut y[..]);
            kernels.recover_with_p(both, exponents[*one], q, &rest, &others).unwrap();
            x == row[*one] && y == p
        }
        ([one], true, false) => {
            let both = (&mut x[..], &mut y[..]);
            kernels.recover_with_q(both, exponents[*one], p, &rest, &others).unwrap();
            x == row[*one] && y == q
        }
        (two, _, _) => {
            let lost = [exponents[two[0]], exponents[two[1]]];
            kernels.recover_two([&mut x, &mut y], lost, (p, q), &rest, &others).unwrap();
            x == row[two[0]] && y == row[two[1]]
        }
    };
    assert!(found, "{kernels:?}: {exponents:?} without {a} and {b}");
}

#[test]
fn every_single_and_double_loss_of_4_to_64_members() {
    let mut random = Random(4);
    let all = all_kernels();
    for members in 4..=64 {
        let count = members - 2;
        for exponents in random.patterns(count) {
            let mut row: Vec<Vec<u8>> = (0..count).map(|_| random.bytes(LEN)).collect();
            let (p, q) = oracle(LEN, &slices(&row), &exponents);
            row.extend([p, q]);
            for a in 0..members {
                for b in a..members {
                    let kernels = &all[(a + b) % all.len()];
                    lose(kernels, &row, &exponents, a, b);
                }
            }
        }
    }
}
