//! Policies as the array uses them: which member each read goes to.

use crate::support::{Driver, Work};
use raidlab_core::contract::{Admin, Event, Input, IoOp, MemberIo, Outcome, Segment};
use raidlab_core::policy::ReadPolicy;
use raidlab_core::{Array, Config, Layout, Level, MemberIndex, Sectors};

fn driver(layout: Layout, policy: &str) -> Driver {
    let read_policy: ReadPolicy = policy.parse().expect("a policy");
    Driver::new(&Config { read_policy, ..Config::uniform(layout, Sectors(4096)) })
}

/// The members that reads of 8 sectors at these places go to, one at a time.
fn members(driver: &mut Driver, places: &[u64]) -> Vec<u16> {
    driver.log.clear();
    for at in places {
        driver.read(*at, 8).expect("readable");
    }
    driver.log.iter().map(|io| io.member.0).collect()
}

/// Far apart, in no order.
const RANDOM: [u64; 6] = [800, 3200, 160, 2400, 1600, 4000];

#[test]
fn random_reads_of_a_mirror_at_depth_one() {
    for (policy, expected) in [
        ("md", [0, 0, 0, 0, 0, 0]),
        ("md-2.6", [1, 0, 1, 0, 1, 0]),
        ("gmirror-round-robin", [1, 0, 1, 0, 1, 0]),
        ("gmirror-prefer", [0, 0, 0, 0, 0, 0]),
    ] {
        let mut driver = driver(Layout::new(Level::Raid1, 2), policy);
        let found = members(&mut driver, &RANDOM);
        // Round robins may start with either.
        let turned: Vec<u16> = expected.iter().map(|m| 1 - m).collect();
        assert!(
            found == expected || policy.contains("round") && found == turned,
            "{policy}: {found:?}"
        );
    }
}

#[test]
fn a_long_read_is_split_among_the_members_in_service() {
    let mut driver = driver(Layout::new(Level::Raid1, 3), "gmirror-split");
    let bytes: Vec<u8> = (0..40).collect();
    assert_eq!(driver.write(0, &bytes), Outcome::Done);
    driver.log.clear();
    assert_eq!(driver.read(0, 40).as_ref(), Ok(&bytes));
    let sent: Vec<_> = driver.log.iter().map(|io| (io.member.0, io.at.0, io.len)).collect();
    assert_eq!(sent, [(0, 0, 14), (1, 14, 14), (2, 28, 12)], "40 in thirds, rounded up");
    driver.fail(1);
    driver.log.clear();
    assert_eq!(driver.read(0, 40).as_ref(), Ok(&bytes));
    let sent: Vec<_> = driver.log.iter().map(|io| (io.member.0, io.at.0, io.len)).collect();
    assert_eq!(sent, [(0, 0, 20), (2, 20, 20)]);
}

/// What is in flight to the drive that goes is no load of the one that comes.
#[test]
fn a_replacement_has_the_load_that_is_its_own() {
    const SECTORS: Sectors = Sectors(1 << 16);
    let read_policy = "gmirror-load".parse().expect("a policy");
    let layout = Layout::new(Level::Raid1, 2);
    let mut config = Config { read_policy, ..Config::uniform(layout, SECTORS) };
    config.settings.pacing.most = u64::MAX;
    for (op, of) in [IoOp::Read, IoOp::Write].into_iter().flat_map(|op| [0, 1].map(|of| (op, of))) {
        let mut driver = Driver::new(&config);
        let (member, sectors) = (MemberIndex(of), SECTORS);
        driver.input(Input::Admin(Admin::Replace { member, sectors, consent: true }));
        let is_last = |io: &MemberIo| io.op == IoOp::Flush && io.member.0 == 2 + of;
        let token = driver.buffer(vec![0; 8]);
        // What is in flight with the flush after the copy is so when the drives change places.
        while !driver.events.contains(&Event::Replaced(member)) {
            let work = driver.work.len();
            if driver.work.iter().any(|work| matches!(work, Work::Io(io) if is_last(io))) {
                for index in 0..8 {
                    driver.submit(op, index * 64, &[Segment { token, offset: 0, len: 8 }]);
                }
                (0..work).for_each(|_| driver.step(0));
            } else if work > 0 {
                driver.step(0);
            } else {
                driver.now = driver.wake.take().expect("it goes on").max(driver.now);
                driver.input(Input::Wake);
            }
        }
        assert!(!driver.work.is_empty(), "{op:?} {of}");
        driver.run();
        driver.log.clear();
        for at in 0..40 {
            // None is near another.
            driver.read(at * 24_000 % 65_000, 8).expect("readable");
        }
        let on = |member| driver.log.iter().filter(|io| io.member == MemberIndex(member)).count();
        // What both had to do before is no longer there soon; an I/O that never ends would be.
        assert!(on(0).min(on(1)) >= 12, "{op:?} {of}: {} and {}", on(0), on(1));
    }
}

#[test]
fn raid3_reads_by_its_three_policies() {
    let layout = Layout::new(Level::Raid3, 5);
    let mut plain = driver(layout.clone(), "graid3-R");
    assert_eq!(members(&mut plain, &[0, 400]), [0, 1, 2, 3, 0, 1, 2, 3]);
    let mut turns = driver(layout.clone(), "graid3-r");
    let bytes: Vec<u8> = (0..8).map(|i| i * 3 + 1).collect();
    assert_eq!(turns.write(0, &bytes), Outcome::Done);
    let skipped: Vec<Vec<u16>> = (0..6)
        .map(|_| {
            turns.log.clear();
            assert_eq!(turns.read(0, 8).as_ref(), Ok(&bytes), "computed from parity");
            turns.log.iter().map(|io| io.member.0).collect()
        })
        .collect();
    let expected: [&[u16]; 6] =
        [&[1, 2, 3, 4], &[0, 2, 3, 4], &[0, 1, 3, 4], &[0, 1, 2, 4], &[0, 1, 2, 3], &[1, 2, 3, 4]];
    assert_eq!(skipped, expected);
    let mut verify = driver(layout, "graid3-verify");
    assert_eq!(verify.write(0, &bytes), Outcome::Done);
    assert_eq!(members(&mut verify, &[0]), [0, 1, 2, 3, 4]);
    verify.members[2][1] ^= 1;
    assert!(matches!(verify.read(0, 8), Err(Outcome::MediaError { .. })), "a mismatch is an error");
    verify.fail(2);
    assert_eq!(verify.read(0, 8).as_ref(), Ok(&bytes), "degraded: computed, not verified");
}

#[test]
fn raid10_far_reads_the_lower_half_under_md() {
    let layout = Layout::new(Level::Raid10, 4).with_chunk(Sectors(8)).with_far(2);
    let mut driver = driver(layout, "md");
    driver.log.clear();
    driver.read(0, 256).expect("readable");
    assert!(driver.log.iter().all(|io| io.op == IoOp::Read && io.at.0 < 2048), "the outer half");
    assert_eq!(driver.log.len(), 4, "as raid0: one range a member");
}

#[test]
fn policies_a_level_has_no_use_for_are_refused() {
    let refused = |level: Level, members: u16, policy: &str| {
        let read_policy = policy.parse().expect("a policy");
        let config = Config::uniform(Layout::new(level, members), Sectors(4096));
        Array::new(&Config { read_policy, ..config }).expect_err("refused").key
    };
    assert_eq!(refused(Level::Raid0, 4, "md"), "policy");
    assert_eq!(refused(Level::Raid5, 4, "gmirror-load"), "policy");
    assert_eq!(refused(Level::Raid10, 4, "md-2.6"), "policy");
    assert_eq!(refused(Level::Raid3, 5, "md"), "policy");
    assert_eq!(refused(Level::Raid1, 2, "graid3-r"), "policy");
}

#[test]
fn a_put_off_read_does_not_advance_a_policy() {
    let layout = Layout::new(Level::Raid1, 2);
    let read_policy = "gmirror-round-robin".parse().expect("a policy");
    let mut config = Config { read_policy, ..Config::uniform(layout, Sectors(4096)) };
    // Room for 8 I/Os: twenty reads at once wait for it.
    config.limits.ios = 1;
    let mut driver = Driver::new(&config);
    let token = driver.buffer(vec![0; 8]);
    for index in 0..20 {
        driver.submit(IoOp::Read, index * 64, &[Segment { token, offset: 0, len: 8 }]);
    }
    driver.run();
    let on = |member| driver.log.iter().filter(|io| io.member == MemberIndex(member)).count();
    assert_eq!((on(0), on(1)), (10, 10));
}
