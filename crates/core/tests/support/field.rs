//! P and Q from their definitions, a byte at a time: GF(2^8), polynomial 0x11d, generator 2.

use raidlab_core::contract::{JobResult, ParityOp, Role};

pub(crate) fn multiply(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 == 1 {
            product ^= a;
        }
        a = (a << 1) ^ if a & 0x80 == 0 { 0 } else { 0x1d };
        b >>= 1;
    }
    product
}

pub(crate) fn power(exponent: u8) -> u8 {
    (0..exponent).fold(1, |value, _| multiply(value, 2))
}

/// What a block adds to a parity.
fn term(parity: Role, block: Role, byte: u8) -> u8 {
    match (parity, block) {
        (Role::P, Role::Data(_)) => byte,
        (Role::Q, Role::Data(exponent)) => multiply(power(exponent), byte),
        (parity, block) => u8::from(parity == block) * byte,
    }
}

fn parity(which: Role, sources: &[(Role, u8)]) -> u8 {
    sources.iter().fold(0, |sum, (role, byte)| sum ^ term(which, *role, *byte))
}

/// The targets of one sector.
pub(crate) fn sector(
    kernel: ParityOp,
    sources: &[(Role, u8)],
    targets: &[Role],
    old: &[u8],
) -> Vec<u8> {
    match kernel {
        ParityOp::Xor => vec![sources.iter().fold(0, |sum, (_, byte)| sum ^ byte)],
        ParityOp::Pq => targets.iter().map(|which| parity(*which, sources)).collect(),
        ParityOp::Delta => {
            let pairs = sources.chunks(2).map(|pair| {
                assert_eq!(pair[0].0, pair[1].0, "old and new of one chunk");
                (pair[0].0, pair[0].1 ^ pair[1].1)
            });
            let changes: Vec<_> = pairs.collect();
            let changed =
                targets.iter().zip(old).map(|(which, old)| old ^ parity(*which, &changes));
            changed.collect()
        }
        ParityOp::Recover => recover(sources, targets),
        ParityOp::Compare | ParityOp::Locate => Vec::new(),
        ParityOp::Zero => vec![0; targets.len()],
        ParityOp::Copy => vec![sources[0].1],
        other => panic!("not asked for in this version: {other:?}"),
    }
}

/// Tries every value of the lost blocks: slow, and plainly right.
fn recover(sources: &[(Role, u8)], targets: &[Role]) -> Vec<u8> {
    let given: Vec<Role> =
        sources.iter().map(|(role, _)| *role).filter(|r| !matches!(r, Role::Data(_))).collect();
    assert_eq!(given.len(), targets.len(), "as many parities as lost blocks");
    let data: Vec<_> =
        sources.iter().copied().filter(|(r, _)| matches!(r, Role::Data(_))).collect();
    let missing: Vec<u8> = given
        .iter()
        .map(|which| {
            let known = sources.iter().find(|(role, _)| role == which).expect("given").1;
            known ^ parity(*which, &data)
        })
        .collect();
    let fits = |values: &[u8]| {
        let lost: Vec<_> = targets.iter().copied().zip(values.iter().copied()).collect();
        given.iter().zip(&missing).all(|(which, sum)| parity(*which, &lost) == *sum)
    };
    for first in 0..=255 {
        if targets.len() == 1 {
            if fits(&[first]) {
                return vec![first];
            }
            continue;
        }
        // The second follows from the first by the sum of P.
        let second = missing[0] ^ first;
        if fits(&[first, second]) {
            return vec![first, second];
        }
    }
    panic!("no value fits");
}

/// The one block that explains every sector in which P and Q disagree with the data, if there is
/// one.
pub(crate) fn locate(roles: &[Role], blocks: &[Vec<u8>]) -> JobResult {
    let len = blocks.first().map_or(0, Vec::len);
    let row = |at: usize| -> Vec<(Role, u8)> {
        roles.iter().zip(blocks).map(|(role, block)| (*role, block[at])).collect()
    };
    let disagrees = |row: &[(Role, u8)]| {
        let data: Vec<_> =
            row.iter().copied().filter(|(role, _)| matches!(role, Role::Data(_))).collect();
        row.iter()
            .any(|(role, byte)| !matches!(role, Role::Data(_)) && *byte != parity(*role, &data))
    };
    // A block is guilty when some other value of it makes the row agree.
    let explains = |row: &[(Role, u8)], index: usize| {
        (0..=255).any(|value| {
            let mut other = row.to_vec();
            other[index].1 = value;
            !disagrees(&other)
        })
    };
    let wrong: Vec<_> = (0..len).map(row).filter(|row| disagrees(row)).collect();
    if wrong.is_empty() {
        return JobResult::Equal;
    }
    let guilty = (0..roles.len()).find(|index| wrong.iter().all(|row| explains(row, *index)));
    guilty.map_or(JobResult::Differs { from: 0, to: len as u32 }, |index| {
        JobResult::Located(index as u16)
    })
}
