//! What a sector holds, for checking: one number of 64 bits, and the kernels of the contract over it.
//!
//! Parity is taken over the eight bytes of the number, each in GF(2^8) with polynomial 0x11d and
//! generator 2, as on real sectors of 512 bytes: what holds for every byte of eight holds for every
//! byte of 512, since no byte of parity depends on a byte at another place.

use raidlab_core::contract::{JobResult, ParityOp, Role};
use raidlab_random::finish;

/// What a sector holds.
pub type Content = u64;

/// What a sector holds that was never written: zeroes, so that all parity of it is right.
pub const EMPTY: Content = 0;

const LOW_SEVEN: u64 = 0x7f7f_7f7f_7f7f_7f7f;
const LOWEST: u64 = 0x0101_0101_0101_0101;

/// Every byte times 2.
const fn double(value: u64) -> u64 {
    ((value & LOW_SEVEN) << 1) ^ (((value >> 7) & LOWEST) * 0x1d)
}

/// Every byte times `by`.
#[must_use]
pub fn times(mut value: Content, mut by: u8) -> Content {
    let mut product = 0;
    while by != 0 {
        if by & 1 == 1 {
            product ^= value;
        }
        value = double(value);
        by >>= 1;
    }
    product
}

/// 2 to the power of `exponent`.
const fn power(exponent: u8) -> u8 {
    let (mut value, mut left) = (1u8, exponent);
    while left > 0 {
        value = (value << 1) ^ if value & 0x80 == 0 { 0 } else { 0x1d };
        left -= 1;
    }
    value
}

const POWERS: [u8; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        table[index] = power(index as u8);
        index += 1;
    }
    table
};

/// The number that gives 1 when multiplied with `of`, which is not 0.
fn inverse(of: u8) -> u8 {
    // The powers of 2 are all numbers but 0, 255 of them: 2^i times 2^(255-i) is 1.
    let log = (0..255).find(|i| POWERS[*i] == of).unwrap_or(0);
    POWERS[(255 - log) % 255]
}

/// What a block adds to a parity.
fn term(parity: Role, block: Role, value: Content) -> Content {
    match (parity, block) {
        (Role::P, Role::Data(_)) => value,
        (Role::Q, Role::Data(exponent)) => times(value, POWERS[usize::from(exponent)]),
        (parity, block) if parity == block => value,
        _ => 0,
    }
}

/// The parity `which` of these blocks.
#[must_use]
pub fn parity(which: Role, blocks: impl Iterator<Item = (Role, Content)>) -> Content {
    blocks.fold(0, |sum, (role, value)| sum ^ term(which, role, value))
}

fn is_data(role: Role) -> bool {
    matches!(role, Role::Data(_))
}

/// Computes the targets of one row of sectors; false when the kernel cannot be carried out with
/// these roles. Compare, Locate and Checksum have no targets: see [`Verdict`].
pub fn row(kernel: ParityOp, roles: &[Role], sources: &[Content], targets: &mut [Content]) -> bool {
    let (from, to) = roles.split_at(sources.len().min(roles.len()));
    match kernel {
        ParityOp::Xor => targets.fill(sources.iter().fold(0, |sum, value| sum ^ value)),
        ParityOp::Pq => {
            for (which, target) in to.iter().zip(targets) {
                *target = parity(*which, from.iter().copied().zip(sources.iter().copied()));
            }
        }
        ParityOp::Delta => {
            for (which, target) in to.iter().zip(targets) {
                for (pair, roles) in sources.chunks_exact(2).zip(from.chunks_exact(2)) {
                    *target ^= term(*which, roles[0], pair[0] ^ pair[1]);
                }
            }
        }
        ParityOp::Recover => return recover(from, sources, to, targets),
        ParityOp::Copy => targets.fill(sources.first().copied().unwrap_or(EMPTY)),
        ParityOp::Zero => targets.fill(EMPTY),
        ParityOp::Compare | ParityOp::Locate | ParityOp::Checksum => {}
    }
    true
}

/// One or two lost data blocks from all others and as many parities.
fn recover(from: &[Role], sources: &[Content], to: &[Role], targets: &mut [Content]) -> bool {
    let blocks = || from.iter().copied().zip(sources.iter().copied());
    // What a parity says the lost blocks add up to.
    let missing = |which| {
        let given = blocks().find(|(role, _)| *role == which)?.1;
        Some(given ^ parity(which, blocks().filter(|(role, _)| is_data(*role))))
    };
    match *to {
        [Role::Data(exponent)] => {
            targets[0] = match (missing(Role::P), missing(Role::Q)) {
                (Some(sum), _) => sum,
                (None, Some(sum)) => times(sum, inverse(POWERS[usize::from(exponent)])),
                (None, None) => return false,
            };
        }
        [Role::Data(one), Role::Data(other)] if one != other => {
            let (Some(p), Some(q)) = (missing(Role::P), missing(Role::Q)) else { return false };
            let (one, other) = (POWERS[usize::from(one)], POWERS[usize::from(other)]);
            // x + y = p and one x + other y = q, so (one + other) x = q + other p.
            targets[0] = times(q ^ times(p, other), inverse(one ^ other));
            targets[1] = p ^ targets[0];
        }
        _ => return false,
    }
    true
}

/// The result of a kernel that has no targets, gathered over the rows of a job.
#[derive(Clone, Copy, Debug, Default)]
pub struct Verdict {
    differs: Option<(u32, u32)>,
    /// The block that explains every disagreement so far.
    guilty: Option<usize>,
    unclear: bool,
    sum: u64,
}

impl Verdict {
    /// Adds row `index` of the job.
    pub fn add(&mut self, kernel: ParityOp, index: u32, roles: &[Role], sources: &[Content]) {
        let disagrees = match kernel {
            ParityOp::Compare => sources.iter().any(|value| *value != sources[0]),
            ParityOp::Locate => self.locate(roles, sources),
            ParityOp::Checksum => {
                self.sum = sources.iter().fold(self.sum, |sum, value| mix(sum, *value));
                false
            }
            _ => false,
        };
        if disagrees {
            let from = self.differs.map_or(index, |(from, _)| from);
            self.differs = Some((from, index + 1));
        }
    }

    fn locate(&mut self, roles: &[Role], sources: &[Content]) -> bool {
        let blocks = || roles.iter().copied().zip(sources.iter().copied());
        let (p, q) = (parity(Role::P, blocks()), parity(Role::Q, blocks()));
        if p == 0 && q == 0 {
            return false;
        }
        let explains = |role: &Role| match role {
            Role::P => q == 0,
            Role::Q => p == 0,
            Role::Data(exponent) => p != 0 && times(p, POWERS[usize::from(*exponent)]) == q,
        };
        let found = roles.iter().position(explains);
        self.unclear |= found.is_none() || self.guilty.is_some_and(|known| Some(known) != found);
        self.guilty = self.guilty.or(found);
        true
    }

    /// The result of the job.
    #[must_use]
    pub fn result(&self, kernel: ParityOp) -> JobResult {
        match (kernel, self.differs) {
            (ParityOp::Checksum, _) => JobResult::Checksum((self.sum ^ (self.sum >> 32)) as u32),
            (ParityOp::Compare | ParityOp::Locate, None) => JobResult::Equal,
            (ParityOp::Compare, Some((from, to))) => JobResult::Differs { from, to },
            (ParityOp::Locate, Some((from, to))) => match self.guilty {
                Some(guilty) if !self.unclear => JobResult::Located(guilty as u16),
                _ => JobResult::Differs { from, to },
            },
            _ => JobResult::Done,
        }
    }
}

/// Joins two numbers to one in which every bit depends on every bit of both (the finaliser of
/// SplitMix64).
#[must_use]
pub const fn mix(one: u64, other: u64) -> u64 {
    finish(one.rotate_left(23) ^ other.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// A hash of many numbers in their order, in four lanes that do not wait for each other.
#[must_use]
pub fn hash_all(key: u64, values: &[u64]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut lanes = [key, key ^ ODD, key.rotate_left(17), key.rotate_left(41) ^ ODD];
    let chunks = values.chunks_exact(4);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = (lane.rotate_left(25) ^ value).wrapping_mul(ODD);
        }
    }
    for (lane, value) in lanes.iter_mut().zip(rest) {
        *lane = (lane.rotate_left(25) ^ value ^ 1).wrapping_mul(ODD);
    }
    mix(mix(lanes[0], lanes[1]), mix(lanes[2], lanes[3]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: [Content; 4] = [
        0x0123_4567_89ab_cdef,
        0xfedc_ba98_7654_3210,
        0x5555_aaaa_0f0f_f0f0,
        0x8001_c003_e007_f00f,
    ];

    fn roles() -> Vec<Role> {
        (0..4).map(Role::Data).collect()
    }

    fn whole() -> (Vec<Role>, Vec<Content>) {
        let mut targets = [0; 2];
        let mut roles = roles();
        roles.extend([Role::P, Role::Q]);
        assert!(row(ParityOp::Pq, &roles, &DATA, &mut targets));
        (roles, DATA.into_iter().chain(targets).collect())
    }

    #[test]
    fn multiplication_is_that_of_the_field() {
        assert_eq!(times(0x80, 2), 0x1d, "x^8 = x^4 + x^3 + x^2 + 1");
        for a in 1..=255u8 {
            assert_eq!(times(u64::from(a), inverse(a)), 1, "{a}");
            assert_eq!(times(u64::from(a), 1), u64::from(a));
            let (b, c) = (a.wrapping_mul(7) | 1, 0x53);
            let one = times(times(u64::from(a), b), c);
            assert_eq!(one, times(times(u64::from(a), c), b), "order does not matter");
        }
        assert_eq!(POWERS[8], 0x1d);
        assert_eq!(POWERS[255], 1, "2 generates all 255 numbers");
    }

    #[test]
    fn every_one_or_two_lost_blocks_come_back() {
        let (roles, blocks) = whole();
        for one in 0..4 {
            for other in one..4 {
                let lost: Vec<usize> = if one == other { vec![one] } else { vec![one, other] };
                for parities in [vec![4], vec![5], vec![4, 5]] {
                    if parities.len() != lost.len() {
                        continue;
                    }
                    let kept: Vec<usize> =
                        (0..4).filter(|k| !lost.contains(k)).chain(parities).collect();
                    let names: Vec<Role> = kept.iter().chain(&lost).map(|k| roles[*k]).collect();
                    let sources: Vec<Content> = kept.iter().map(|k| blocks[*k]).collect();
                    let mut targets = vec![0; lost.len()];
                    assert!(row(ParityOp::Recover, &names, &sources, &mut targets));
                    let expected: Vec<Content> = lost.iter().map(|k| blocks[*k]).collect();
                    assert_eq!(targets, expected, "lost {lost:?}");
                }
            }
        }
    }

    #[test]
    fn a_difference_changes_parity_as_computing_it_anew_does() {
        let (roles, blocks) = whole();
        let mut changed = DATA;
        changed[2] ^= 0x1234_5678;
        let names = [roles[2], roles[2], Role::P, Role::Q];
        let mut targets = [blocks[4], blocks[5]];
        assert!(row(ParityOp::Delta, &names, &[DATA[2], changed[2]], &mut targets));
        let mut anew = [0; 2];
        assert!(row(ParityOp::Pq, &roles, &changed, &mut anew));
        assert_eq!(targets, anew);
    }

    #[test]
    fn the_guilty_block_is_named_only_when_one_explains_all() {
        let (roles, blocks) = whole();
        let judge = |damage: &[(usize, u64)]| {
            let mut verdict = Verdict::default();
            for index in 0..2 {
                let mut sources = blocks.clone();
                for (block, bits) in damage {
                    sources[*block] ^= bits << (8 * index);
                }
                verdict.add(ParityOp::Locate, index, &roles, &sources);
            }
            verdict.result(ParityOp::Locate)
        };
        assert_eq!(judge(&[]), JobResult::Equal);
        for block in 0..6 {
            assert_eq!(judge(&[(block, 0x77)]), JobResult::Located(block as u16));
        }
        assert_eq!(judge(&[(0, 1), (1, 2)]), JobResult::Differs { from: 0, to: 2 });
    }
}
