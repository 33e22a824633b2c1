//! What a job asks for, from its kernel and the roles of its operands.

use raidlab_core::contract::{ParityOp, Role};

/// A source that is data, or the first of a pair of old and new data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Datum {
    /// Which operand: targets count first, then sources.
    pub(super) operand: usize,
    /// Its coefficient in Q is 2 to this power.
    pub(super) exponent: u8,
}

/// A kernel with its operands told apart; `p` and `q` are operands, counted as in [`Datum`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ComputePlan {
    Xor,
    Pq {
        p: Option<usize>,
        q: Option<usize>,
    },
    Delta {
        p: Option<usize>,
        q: Option<usize>,
    },
    RecoverByP {
        p: usize,
    },
    RecoverByQ {
        exponent: u8,
        q: usize,
    },
    /// Data are target number `lost`, P is the other.
    RecoverWithP {
        exponent: u8,
        lost: usize,
        q: usize,
    },
    /// Data are target number `lost`, Q is the other.
    RecoverWithQ {
        exponent: u8,
        lost: usize,
        p: usize,
    },
    RecoverTwo {
        exponents: [u8; 2],
        p: usize,
        q: usize,
    },
    Zero,
    Copy,
    Compare,
    Locate {
        p: usize,
        q: usize,
    },
    Checksum,
}

/// The plan of a job; puts its data into `data`. `None` when this version lacks the kernel, or the
/// number of operands or their roles do not suit it.
pub(super) fn plan(
    kernel: ParityOp,
    sources: usize,
    targets: usize,
    roles: &[Role],
    data: &mut Vec<Datum>,
) -> Option<ComputePlan> {
    data.clear();
    match (kernel, sources, targets) {
        (ParityOp::Xor, _, 1) => return Some(ComputePlan::Xor),
        (ParityOp::Zero, 0, 1..) => return Some(ComputePlan::Zero),
        (ParityOp::Copy, 1, 1) => return Some(ComputePlan::Copy),
        (ParityOp::Compare, 2.., 0) => return Some(ComputePlan::Compare),
        (ParityOp::Checksum, 1.., 0) => return Some(ComputePlan::Checksum),
        (ParityOp::Pq | ParityOp::Delta | ParityOp::Recover, _, 1..=2)
        | (ParityOp::Locate, 3.., 0) => {}
        _ => return None,
    }
    if roles.len() != sources + targets {
        return None;
    }
    let (read, written) = roles.split_at(sources);
    match kernel {
        ParityOp::Pq => {
            let (p, q) = parities(written)?;
            let all = read.iter().enumerate().all(|(n, role)| put(data, *role, targets + n));
            all.then_some(ComputePlan::Pq { p, q })
        }
        ParityOp::Delta => {
            let (p, q) = parities(written)?;
            let (pairs, odd) = read.as_chunks::<2>();
            let all = pairs
                .iter()
                .enumerate()
                .all(|(n, [old, new])| old == new && put(data, *old, targets + 2 * n));
            (all && odd.is_empty()).then_some(ComputePlan::Delta { p, q })
        }
        ParityOp::Locate => match tell_apart(read, 0, data)? {
            (Some(p), Some(q)) if differ(data) => Some(ComputePlan::Locate { p, q }),
            _ => None,
        },
        _ => recover(read, written, data),
    }
}

/// Whether no exponent comes twice: only then a block can be told from all others.
fn differ(data: &[Datum]) -> bool {
    let mut seen = [false; 256];
    data.iter().all(|datum| !std::mem::replace(&mut seen[usize::from(datum.exponent)], true))
}

/// Puts the data of the sources into `data` and gives P and Q, as far as these are there; `None` when a
/// role comes twice or an exponent is no power of the generator. Sources are counted from `first` on.
fn tell_apart(
    read: &[Role],
    first: usize,
    data: &mut Vec<Datum>,
) -> Option<(Option<usize>, Option<usize>)> {
    let (mut p, mut q) = (None, None);
    for (n, role) in read.iter().enumerate() {
        let operand = first + n;
        let repeated = match role {
            Role::Data(_) => !put(data, *role, operand),
            Role::P => p.replace(operand).is_some(),
            Role::Q => q.replace(operand).is_some(),
        };
        if repeated {
            return None;
        }
    }
    Some((p, q))
}

fn recover(read: &[Role], written: &[Role], data: &mut Vec<Datum>) -> Option<ComputePlan> {
    let (p, q) = tell_apart(read, written.len(), data)?;
    match (written, p, q) {
        ([Role::Data(_)], Some(p), None) => Some(ComputePlan::RecoverByP { p }),
        ([Role::Data(exponent)], None, Some(q)) if *exponent < 255 => {
            Some(ComputePlan::RecoverByQ { exponent: *exponent, q })
        }
        ([Role::Data(exponent), Role::P], None, Some(q)) if *exponent < 255 => {
            Some(ComputePlan::RecoverWithP { exponent: *exponent, lost: 0, q })
        }
        ([Role::P, Role::Data(exponent)], None, Some(q)) if *exponent < 255 => {
            Some(ComputePlan::RecoverWithP { exponent: *exponent, lost: 1, q })
        }
        ([Role::Data(exponent), Role::Q], Some(p), None) if *exponent < 255 => {
            Some(ComputePlan::RecoverWithQ { exponent: *exponent, lost: 0, p })
        }
        ([Role::Q, Role::Data(exponent)], Some(p), None) if *exponent < 255 => {
            Some(ComputePlan::RecoverWithQ { exponent: *exponent, lost: 1, p })
        }
        ([Role::Data(x), Role::Data(y)], Some(p), Some(q)) if x != y && *x.max(y) < 255 => {
            Some(ComputePlan::RecoverTwo { exponents: [*x, *y], p, q })
        }
        _ => None,
    }
}

/// Adds data; false when it is none, or its exponent is no power of the generator.
fn put(data: &mut Vec<Datum>, role: Role, operand: usize) -> bool {
    match role {
        Role::Data(exponent) if exponent < 255 => {
            data.push(Datum { operand, exponent });
            true
        }
        _ => false,
    }
}

/// Which target is P and which Q; each at most once, nothing else.
fn parities(roles: &[Role]) -> Option<(Option<usize>, Option<usize>)> {
    let (mut p, mut q) = (None, None);
    for (n, role) in roles.iter().enumerate() {
        let place = match role {
            Role::P => &mut p,
            Role::Q => &mut q,
            Role::Data(_) => return None,
        };
        if place.replace(n).is_some() {
            return None;
        }
    }
    Some((p, q))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kernel: ParityOp, sources: &[Role], targets: &[Role]) -> Option<ComputePlan> {
        let roles = [sources, targets].concat();
        plan(kernel, sources.len(), targets.len(), &roles, &mut Vec::new())
    }

    #[test]
    fn roles_are_told_apart() {
        use Role::{Data, P, Q};
        let mut data = Vec::new();
        let roles = [Data(7), Data(7), Data(2), Data(2), Q, P];
        let found = plan(ParityOp::Delta, 4, 2, &roles, &mut data);
        assert_eq!(found, Some(ComputePlan::Delta { p: Some(1), q: Some(0) }));
        let first = Datum { operand: 2, exponent: 7 };
        assert_eq!(data, [first, Datum { operand: 4, exponent: 2 }]);
        let roles = [Q, Data(3), P, Data(5), Data(1)];
        let found = plan(ParityOp::Recover, 3, 2, &roles, &mut data);
        assert_eq!(found, Some(ComputePlan::RecoverTwo { exponents: [5, 1], p: 4, q: 2 }));
        assert_eq!(data, [Datum { operand: 3, exponent: 3 }]);
        let by_q = ComputePlan::RecoverByQ { exponent: 4, q: 1 };
        assert_eq!(of(ParityOp::Recover, &[Q, Data(0)], &[Data(4)]), Some(by_q));
        let by_p = ComputePlan::RecoverByP { p: 2 };
        assert_eq!(of(ParityOp::Recover, &[Data(0), P], &[Data(4)]), Some(by_p));
        let with_p = ComputePlan::RecoverWithP { exponent: 4, lost: 1, q: 3 };
        assert_eq!(of(ParityOp::Recover, &[Data(0), Q], &[P, Data(4)]), Some(with_p));
        let with_q = ComputePlan::RecoverWithQ { exponent: 4, lost: 0, p: 2 };
        assert_eq!(of(ParityOp::Recover, &[P, Data(0)], &[Data(4), Q]), Some(with_q));
        let locate = ComputePlan::Locate { p: 2, q: 0 };
        assert_eq!(of(ParityOp::Locate, &[Q, Data(0), P], &[]), Some(locate));
        assert_eq!(of(ParityOp::Checksum, &[Data(0), P], &[]), Some(ComputePlan::Checksum));
        assert_eq!(
            of(ParityOp::Pq, &[Data(0)], &[Q]),
            Some(ComputePlan::Pq { p: None, q: Some(0) })
        );
    }

    #[test]
    fn jobs_that_make_no_sense_have_no_plan() {
        use Role::{Data, P, Q};
        let jobs: &[(ParityOp, &[Role], &[Role])] = &[
            (ParityOp::Locate, &[Data(0), Data(1), P], &[]),
            (ParityOp::Locate, &[Data(0), Data(0), P, Q], &[]),
            (ParityOp::Locate, &[Data(0), P, Q], &[P]),
            (ParityOp::Locate, &[Data(0), P, Q, Q], &[]),
            (ParityOp::Locate, &[P, Q], &[]),
            (ParityOp::Checksum, &[], &[]),
            (ParityOp::Checksum, &[Data(0)], &[P]),
            (ParityOp::Xor, &[Data(0)], &[]),
            (ParityOp::Xor, &[Data(0)], &[P, Q]),
            (ParityOp::Zero, &[Data(0)], &[P]),
            (ParityOp::Zero, &[], &[]),
            (ParityOp::Copy, &[Data(0), Data(1)], &[P]),
            (ParityOp::Compare, &[P], &[]),
            (ParityOp::Compare, &[P, P], &[P]),
            (ParityOp::Pq, &[Data(0), P], &[Q]),
            (ParityOp::Pq, &[Data(255)], &[Q]),
            (ParityOp::Pq, &[Data(0)], &[Q, Q]),
            (ParityOp::Pq, &[Data(0)], &[Data(1)]),
            (ParityOp::Pq, &[Data(0)], &[]),
            (ParityOp::Delta, &[Data(0)], &[P]),
            (ParityOp::Delta, &[Data(0), Data(1)], &[P, Q]),
            (ParityOp::Delta, &[P, P], &[Q]),
            (ParityOp::Recover, &[Data(0)], &[Data(1)]),
            (ParityOp::Recover, &[P, Q, Data(0)], &[Data(1)]),
            (ParityOp::Recover, &[P, P, Data(0)], &[Data(1), Data(2)]),
            (ParityOp::Recover, &[P, Q], &[Data(2), Data(2)]),
            (ParityOp::Recover, &[P, Q], &[Data(2), Data(255)]),
            (ParityOp::Recover, &[Q], &[Data(255)]),
            (ParityOp::Recover, &[P, Data(0)], &[Q]),
            (ParityOp::Recover, &[P, Data(0)], &[Data(1), P]),
            (ParityOp::Recover, &[Q, Data(0)], &[Data(255), P]),
            (ParityOp::Recover, &[P, Q, Data(0)], &[Data(1), Q]),
        ];
        for (kernel, sources, targets) in jobs {
            assert_eq!(of(*kernel, sources, targets), None, "{kernel:?} {sources:?} {targets:?}");
        }
        let short = plan(ParityOp::Pq, 2, 1, &[Data(0), Data(1)], &mut Vec::new());
        assert_eq!(short, None, "a role is missing");
    }
}
