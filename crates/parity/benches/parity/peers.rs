//! Who computes: raidlab's kernels and their peers, each for the same operations.

use raidlab_parity::{Kernels, scalar};

use crate::isal::{Isal, Tables};
use crate::memory::{MOST, Stripe};

/// What is computed. The blocks of a stripe stand in this order: data, then what is behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// XOR of n blocks; then P.
    Xor,
    /// P and Q of n blocks; then P, Q.
    Pq,
    /// One block of data, the n-th of its row, changes: old, new, P, Q, a place for the difference.
    Delta,
    /// Two of n blocks of data are lost: n - 2 others, P, Q, and the two.
    Two,
}

impl Operation {
    pub(crate) const ALL: [Self; 4] = [Self::Xor, Self::Pq, Self::Delta, Self::Two];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Xor => "xor",
            Self::Pq => "pq",
            Self::Delta => "delta",
            Self::Two => "two",
        }
    }

    /// What is counted as payload, in blocks.
    pub(crate) fn payload(self, n: usize) -> usize {
        if self == Self::Delta { 1 } else { n }
    }

    /// Blocks in a stripe.
    pub(crate) fn blocks(self, n: usize) -> usize {
        match self {
            Self::Xor => n + 1,
            Self::Pq | Self::Two => n + 2,
            Self::Delta => 5,
        }
    }

    /// Blocks that must at least be read and written.
    pub(crate) fn moved(self, n: usize) -> usize {
        match self {
            Self::Xor => n + 1,
            Self::Pq | Self::Two => n + 2,
            Self::Delta => 6,
        }
    }

    /// The blocks that are written.
    pub(crate) fn targets(self, n: usize) -> std::ops::Range<usize> {
        match self {
            Self::Xor => n..n + 1,
            Self::Pq | Self::Two => n..n + 2,
            Self::Delta => 2..4,
        }
    }
}

/// The exponents of n data blocks.
const EXPONENTS: [u8; MOST] = {
    let mut exponents = [0; MOST];
    let mut at = 0;
    while at < MOST {
        exponents[at] = at as u8;
        at += 1;
    }
    exponents
};

/// The blocks that are lost in [`Operation::Two`].
const LOST: [u8; 2] = [0, 1];

/// Somebody who computes.
pub(crate) enum Peer {
    Ours(Kernels),
    Isal {
        isal: Isal,
        delta: Tables,
        two: Tables,
    },
    Crate,
    /// Whoever this machine has not.
    Nobody,
}

impl Peer {
    /// The library with its tables for n data blocks, made once for all stripes.
    pub(crate) fn isal(isal: Isal, n: usize) -> Self {
        let powers: Vec<u8> = (0..n).map(scalar::power).collect();
        let delta = isal.tables([&vec![1; n], &powers]);
        // D_x = a (P + sum D) + b (Q + sum g^i D) and D_y = P + sum D + D_x.
        let [x, y] = LOST.map(|exponent| scalar::power(usize::from(exponent)));
        let b = scalar::inverse(x ^ y).expect("they differ");
        let a = scalar::multiply(y, b);
        let others = powers[2..].iter().map(|power| a ^ scalar::multiply(b, *power));
        let first: Vec<u8> = others.chain([a, b]).collect();
        let mut second: Vec<u8> = first.iter().map(|coefficient| coefficient ^ 1).collect();
        second[n - 1] = b;
        let two = isal.tables([&first, &second]);
        Self::Isal { isal, delta, two }
    }

    pub(crate) fn can(&self, operation: Operation) -> bool {
        match self {
            Self::Ours(_) | Self::Isal { .. } => true,
            Self::Crate => matches!(operation, Operation::Xor | Operation::Pq),
            Self::Nobody => false,
        }
    }

    /// Computes once.
    ///
    /// # Safety
    /// The stripe lies in an arena that lives and is in nobody else's use.
    #[inline]
    pub(crate) unsafe fn run(&self, operation: Operation, n: usize, stripe: &Stripe) {
        // SAFETY: promised by the caller; targets are not among the sources.
        unsafe {
            match self {
                Self::Ours(kernels) => ours(kernels, operation, n, stripe),
                Self::Isal { isal, delta, two } => {
                    theirs(isal, [delta, two], operation, n, stripe);
                }
                Self::Crate => {
                    let data = &stripe.slices;
                    let done = match operation {
                        Operation::Xor => rusty_erasure::raid::xor_gen(&data[..n], stripe.write(n)),
                        _ => rusty_erasure::raid::pq_gen(
                            &data[..n],
                            stripe.write(n),
                            stripe.write(n + 1),
                        ),
                    };
                    done.expect("equal lengths");
                }
                Self::Nobody => {}
            }
        }
    }
}

/// # Safety
/// As [`Peer::run`].
#[inline]
unsafe fn ours(kernels: &Kernels, operation: Operation, n: usize, stripe: &Stripe) {
    // SAFETY: promised by the caller.
    let done = unsafe {
        match operation {
            Operation::Xor | Operation::Pq => {
                let data = &stripe.slices;
                let p = stripe.write(n);
                if operation == Operation::Xor {
                    kernels.xor(p, &data[..n])
                } else {
                    kernels.pq(Some(p), Some(stripe.write(n + 1)), &data[..n], &EXPONENTS[..n])
                }
            }
            Operation::Delta => {
                let (p, q) = (Some(stripe.write(2)), Some(stripe.write(3)));
                kernels.delta(p, q, &stripe.slices[..1], &stripe.slices[1..2], &EXPONENTS[n - 1..n])
            }
            Operation::Two => {
                let data = &stripe.slices;
                let parity = (data[n - 2], data[n - 1]);
                let targets = [stripe.write(n), stripe.write(n + 1)];
                kernels.recover_two(targets, LOST, parity, &data[..n - 2], &EXPONENTS[2..n])
            }
        }
    };
    done.expect("blocks and exponents fit");
}

/// # Safety
/// As [`Peer::run`].
#[inline]
unsafe fn theirs(isal: &Isal, tables: [&Tables; 2], operation: Operation, n: usize, s: &Stripe) {
    let mut blocks = s.blocks;
    // SAFETY: promised by the caller.
    unsafe {
        match operation {
            Operation::Xor => isal.xor(&mut blocks[..n + 1], s.size),
            Operation::Pq => isal.pq(&mut blocks[..n + 2], s.size),
            Operation::Delta => {
                let [old, new, p, q, difference] = std::array::from_fn(|i| blocks[i]);
                isal.xor(&mut [old, new, difference], s.size);
                isal.update(tables[0], n - 1, difference, [p, q], s.size);
            }
            Operation::Two => {
                isal.encode(tables[1], &blocks[..n], [blocks[n], blocks[n + 1]], s.size);
            }
        }
    }
}
