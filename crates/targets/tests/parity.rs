//! Levels with parity through the engine: what raw workloads leave is right in every P and Q, also
//! without one and without two members, and a wrong byte of P or Q is named.

use std::sync::atomic::AtomicBool;

use crate::common::{Random, memory_members};
use raidlab_core::geometry::{Geometry, Holds, Place};
use raidlab_core::{Layout, Level, MemberIndex, Rotation, Sector, Sectors};
use raidlab_engine::{Engine, EngineConfig, Holding, Member};
use raidlab_targets::RawTarget;
use raidlab_workload::raw::RawPlan;
use raidlab_workload::{Kind, Setting, Simple, Workload};

static GO: AtomicBool = AtomicBool::new(false);
const MEMBER: Sectors = Sectors(512);

fn target(layout: &Layout) -> RawTarget {
    let members = memory_members(layout.members, MEMBER);
    let engine = Engine::new(&EngineConfig::new(layout.clone()), members).unwrap();
    let mut target = RawTarget::new(engine, true).unwrap();
    let bytes = target.engine().array().capacity().bytes() / 4096 * 4096;
    target.fill(0, bytes, &GO).unwrap();
    target
}

/// Small random writes and large sequential ones, then reads, all verified.
fn work(target: &mut RawTarget, seed: u64) {
    let kinds = [Kind::RandomWrite, Kind::DdWrite, Kind::RandomRead, Kind::DdRead];
    for kind in kinds {
        let block = if kind.is_random() { 4096 } else { 1 << 15 };
        let spec = Simple { block, ..Simple::new(kind, 1 << 18) };
        let space = target.engine().array().capacity().bytes();
        let setting = Setting { space: Some(space), ..Setting::new(2, seed) };
        let plan = RawPlan::new(spec.plan(&setting).unwrap(), space).unwrap();
        target.run(plan, &GO).unwrap();
    }
}

fn layouts() -> Vec<Layout> {
    let raid6 = |members, rotation| {
        Layout::new(Level::Raid6, members).with_chunk(Sectors(8)).with_rotation(rotation)
    };
    let mut layouts: Vec<Layout> = Rotation::ALL.map(|rotation| raid6(6, rotation)).into();
    layouts.extend([4, 5, 9].map(|members| raid6(members, Rotation::LeftSymmetric)));
    layouts.extend([3, 5, 9].map(|members| Layout::new(Level::Raid3, members)));
    layouts.push(Layout::new(Level::Raid4, 4).with_chunk(Sectors(8)));
    layouts
}

#[test]
fn workloads_leave_right_parity_on_every_level() {
    for layout in layouts() {
        let mut target = target(&layout);
        work(&mut target, 5);
        assert_eq!(target.verify_members(&GO).unwrap(), [], "{layout} {:?}", layout.rotation);
    }
}

#[test]
fn degraded_arrays_keep_right_parity() {
    for layout in layouts() {
        for first in 0..layout.members {
            let mut target = target(&layout);
            target.engine_mut().fail(MemberIndex(first)).unwrap();
            work(&mut target, 6);
            assert_eq!(target.verify_members(&GO).unwrap(), [], "{layout} without {first}");
            if layout.survives() > 1 {
                let second = (first + 1) % layout.members;
                target.engine_mut().fail(MemberIndex(second)).unwrap();
                work(&mut target, 7);
                let found = target.verify_members(&GO).unwrap();
                assert_eq!(found, [], "{layout} without {first} and {second}");
            }
        }
    }
}

#[test]
fn a_flipped_byte_of_p_or_q_is_named() {
    let mut random = Random(3);
    for layout in layouts() {
        let mut target = target(&layout);
        let (mut p, mut q) = (0, 0);
        while p < 3 || (q < 3 && layout.level == Level::Raid6) {
            let member = MemberIndex(random.below(u64::from(layout.members)) as u16);
            let at = random.below(MEMBER.bytes());
            let place = Place { member, at: Sector(at / 512) };
            let expected = match target.engine().array().geometry().holds(place) {
                Holds::P { stripe } => Holding::Parity { stripe },
                Holds::Q { stripe } => Holding::Q { stripe },
                _ => continue,
            };
            *(if matches!(expected, Holding::Q { .. }) { &mut q } else { &mut p }) += 1;
            flip(&mut target, member, at as usize);
            let found = target.verify_members(&GO).unwrap();
            assert_eq!(found.len(), 1, "{layout}");
            assert_eq!((found[0].member, found[0].member_offset), (Some(member), at));
            assert_eq!((found[0].holding, found[0].array_offset), (Some(expected), None));
            flip(&mut target, member, at as usize);
        }
    }
}

fn flip(target: &mut RawTarget, member: MemberIndex, at: usize) {
    match target.engine_mut().member_mut(member).unwrap() {
        Member::Memory(member) => member.bytes_mut()[at] ^= 0x10,
        other => panic!("{other:?}"),
    }
}

/// What is expected of Q comes from the coefficients, not from the engine: computed here a byte at a time.
#[test]
fn q_on_the_members_is_the_sum_by_its_coefficients() {
    for layout in layouts().into_iter().filter(|layout| layout.level == Level::Raid6) {
        let mut target = target(&layout);
        let geometry = target.engine().array().geometry().clone();
        let Geometry::Parity(parity) = geometry else { panic!("raid6 has parity") };
        let used = parity.chunk().bytes() as usize;
        for stripe in 0..u64::from(layout.members) {
            let start = parity.member_start(stripe).bytes() as usize;
            let mut chunk = |member: MemberIndex| match target.engine_mut().member_mut(member) {
                Some(Member::Memory(memory)) => memory.bytes_mut()[start..start + used].to_vec(),
                other => panic!("{other:?}"),
            };
            let mut sum = chunk(parity.q_member(stripe).unwrap());
            assert!(sum.iter().any(|byte| *byte != 0));
            for k in 0..parity.data_chunks() {
                let data = chunk(parity.data_member(stripe, k));
                for (sum, mut byte) in sum.iter_mut().zip(data) {
                    for _ in 0..parity.q_exponent(stripe, k) {
                        byte = (byte << 1) ^ if byte & 0x80 == 0 { 0 } else { 0x1d };
                    }
                    *sum ^= byte;
                }
            }
            assert!(sum.iter().all(|byte| *byte == 0), "{layout}, stripe {stripe}");
        }
    }
}
