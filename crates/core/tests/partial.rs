//! Members that are in service and hold only part of what they should: behind a resync, in a rebuild, with listed
//! blocks. What they lack is taken from elsewhere, by every read policy and every kind of background work.

use crate::support::Word;
use crate::worst::{Bench, config, layouts, tight};
use raidlab_core::contract::{Admin, Event, IoOp, IoOutcome, Outcome, Pacing, Scrub};
use raidlab_core::policy::ReadPolicy;
use raidlab_core::{
    Array, Config, Consistency, Layout, Level, Limits, MemberIndex, Sector, Sectors,
};
use raidlab_random::SplitMix64;

const M: fn(u16) -> MemberIndex = MemberIndex;

/// Mirrors with each policy they can have; cuts are as short as they can be.
fn mirrors() -> Vec<Config> {
    let chunk = Sectors(8);
    let near = Layout::new(Level::Raid10, 4).with_chunk(chunk);
    let far = Layout::new(Level::Raid10, 4).with_chunk(chunk).with_far(2);
    let all = [Layout::new(Level::Raid1, 2), Layout::new(Level::Raid1, 3), near, far];
    let short = ReadPolicy::GmirrorSplit { slice: Sectors(1) };
    let mut configs = Vec::new();
    for layout in all {
        for read_policy in ReadPolicy::ALL.into_iter().chain([short]) {
            let mut config = Config { read_policy, ..config(&layout, Limits::default()) };
            config.settings.consistency = Consistency::Resync;
            // A sector takes 10 ms: there is time to stop half-way.
            config.settings.pacing = Pacing::between(0, 51_200);
            if Array::new(&config).is_ok() {
                configs.push(config);
            }
        }
    }
    assert!(configs.len() > 16, "{}", configs.len());
    configs
}

/// Every range of up to 24 sectors is read, and read again.
fn read_all_ranges(bench: &mut Bench, mut judge: impl FnMut(&Bench, usize, Vec<Vec<u8>>)) {
    for at in 0..bench.flat.len() as u64 {
        for len in [1, 2, 3, 7, 8, 12, 16, 17, 24] {
            if at + u64::from(len) > bench.flat.len() as u64 {
                continue;
            }
            let read = |_| bench.driver.read(at, len).expect("readable");
            let times = (0..3).map(read).collect();
            judge(bench, at as usize, times);
        }
    }
}

/// Copies differ behind a resync, and which of them is right is nobody's to say: but what was read once is read again.
#[test]
fn what_was_read_behind_a_resync_is_read_again() {
    for config in mirrors() {
        let mut bench = Bench::new(&config, 1);
        bench.write_some(12);
        bench.crash(&config, &[], Word::default());
        for member in 0..config.layout.members {
            bench.driver.members[usize::from(member)].fill(0x10 + member as u8);
        }
        bench.load_nothing_until(|bench| bench.driver.array.status().synced_to >= Sector(20));
        bench.admin(Admin::StopBackground);
        bench.settle_all();
        let synced_to = bench.driver.array.status().synced_to;
        assert!(synced_to < Sector(50), "{synced_to}");
        let name = (config.read_policy.name(), &config.layout);
        read_all_ranges(&mut bench, |_, at, times| {
            assert!(times.iter().all(|bytes| *bytes == times[0]), "{name:?}: {times:?} at {at}");
        });
    }
}

/// What an array says of a range is so for each of its sectors.
fn assert_lacking_is_of_whole_ranges(bench: &Bench, name: &str) {
    let array = &bench.driver.array;
    let capacity = array.capacity().0;
    for at in 0..capacity {
        let (said, len) = array.lacking(Sector(at), Sectors(capacity - at));
        assert!(len.0 > 0 && at + len.0 <= capacity, "{name}: {len} at {at}");
        for further in at..at + len.0 {
            let (here, _) = array.lacking(Sector(further), Sectors(1));
            assert_eq!(here, said, "{name}: {len} at {at} are not alike: {further}");
        }
    }
}

/// Both a resync and a rebuild stop half-way through a chunk.
#[test]
fn what_is_lacking_is_told_up_to_where_it_ends() {
    for layout in layouts() {
        let mut config = config(&layout, Limits::default());
        config.settings.consistency = Consistency::Resync;
        config.settings.pacing = Pacing::between(0, 51_200);
        let mut bench = Bench::new(&config, 1);
        bench.write_some(12);
        bench.crash(&config, &[], Word::default());
        bench.load_nothing_until(|bench| bench.driver.array.status().synced_to >= Sector(19));
        bench.admin(Admin::StopBackground);
        bench.settle_all();
        assert!(bench.driver.array.status().synced_to < Sector(50), "{layout}");
        assert_lacking_is_of_whole_ranges(&bench, &format!("{layout}, a resync"));
        let mut bench = Bench::new(&config, 1);
        bench.fail(1);
        bench.settle();
        assert_lacking_is_of_whole_ranges(&bench, &format!("{layout}, a member lost"));
        bench.add(1);
        bench.load_nothing_until(|bench| bench.driver.array.good_to(M(1)) >= Sector(19));
        bench.admin(Admin::StopBackground);
        bench.settle_all();
        assert_lacking_is_of_whole_ranges(&bench, &format!("{layout}, a rebuild"));
    }
}

#[test]
fn what_a_rebuild_has_not_come_by_is_never_read() {
    for config in mirrors() {
        for member in 0..config.layout.members {
            let mut bench = Bench::new(&config, 1);
            bench.fail(member);
            bench.settle();
            bench.add(member);
            bench.load_nothing_until(|bench| bench.driver.array.good_to(M(member)) >= Sector(20));
            bench.admin(Admin::StopBackground);
            bench.settle_all();
            assert!(bench.driver.array.good_to(M(member)) < Sector(50));
            let name = (config.read_policy.name(), &config.layout, member);
            read_all_ranges(&mut bench, |bench, at, times| {
                let expected = &bench.flat[at..at + times[0].len()];
                assert!(times.iter().all(|bytes| bytes == expected), "{name:?}: {times:?} at {at}");
            });
        }
    }
}

/// A scrub finds sectors of `member` that cannot be read, also after they were written anew, and lists them. Afterwards
/// the drive reads them without an error, and not what they held.
fn list_blocks(bench: &mut Bench, member: u16, rows: &[u64]) {
    let places: Vec<_> = rows.iter().map(|at| (member, *at)).collect();
    bench.latent(&places);
    bench.admin(Admin::StartScrub(Scrub::Check));
    bench.idle_all();
    bench.driver.fault = Box::new(|_| IoOutcome::Ok);
    bench.driver.events.clear();
    let listed: Vec<u64> =
        bench.driver.array.bad_blocks(M(member)).flat_map(|(at, len)| at.0..at.0 + len.0).collect();
    assert_eq!(listed, rows, "{}", bench.layout);
    for at in rows {
        bench.driver.members[usize::from(member)][*at as usize] ^= 0x35;
    }
}

#[test]
fn listed_blocks_are_never_read() {
    for mut config in mirrors() {
        config.settings.pacing.most = u64::MAX;
        for member in 0..config.layout.members {
            let mut bench = Bench::new(&config, 1);
            list_blocks(&mut bench, member, &[5, 6, 21, 40]);
            let name = (config.read_policy.name(), &config.layout, member);
            read_all_ranges(&mut bench, |bench, at, times| {
                let expected = &bench.flat[at..at + times[0].len()];
                assert!(times.iter().all(|bytes| bytes == expected), "{name:?}: {times:?} at {at}");
            });
        }
    }
}

/// Other members have sectors that cannot be read, so that work goes block by block; where a listed block lies among
/// those, it serves for nothing, although the drive reads it well.
#[test]
fn listed_blocks_are_no_sources_of_background_work() {
    let raid6 = |members| Layout::new(Level::Raid6, members).with_chunk(Sectors(8));
    for layout in [Layout::new(Level::Raid1, 3), raid6(5), raid6(6)] {
        let config = config(&layout, tight());
        for seed in 0..60 {
            let mut random = SplitMix64::new(seed);
            let mut members: Vec<u16> = (0..layout.members).collect();
            random.shuffle(&mut members);
            let mut bench = Bench::new(&config, seed);
            let rows: Vec<u64> = (0..8).map(|chunk| chunk * 8 + random.below(8)).collect();
            list_blocks(&mut bench, members[0], &rows);
            let latent: Vec<_> = (0..64)
                .filter(|at| !rows.contains(at) && random.below(4) == 0)
                .map(|at| (members[1], at))
                .collect();
            bench.latent(&latent);
            if seed % 2 == 0 {
                bench.fail(members[2]);
                bench.settle_all();
                bench.add(members[2]);
            } else {
                let (member, sectors) = (M(members[1]), Sectors(64));
                bench.admin(Admin::Replace { member, sectors, consent: true });
            }
            bench.idle_all();
            let done = [Event::Restored(M(members[2])), Event::Replaced(M(members[1]))];
            assert!(done.iter().any(|event| bench.has(*event)), "{layout}");
            let listed: Vec<_> = rows.iter().map(|at| (members[0], *at)).collect();
            bench.assert_whole_but(&listed);
        }
    }
}

/// What a flush was answered for lies in no cache, also not in that of a drive that is only being filled.
#[test]
fn a_flush_reaches_members_in_rebuild_and_replacements() {
    for layout in layouts() {
        for kind in 0..3 {
            let mut config = config(&layout, Limits::default());
            config.settings.pacing = Pacing::between(0, 51_200);
            let mut bench = Bench::new(&config, 1);
            bench.driver.caches.begin();
            let (member, sectors) = (M(1), Sectors(64));
            match kind {
                1 => {
                    bench.fail(1);
                    bench.add(1);
                }
                2 => bench.admin(Admin::Replace { member, sectors, consent: true }),
                _ => {}
            }
            let flat = bench.flat.clone();
            assert_eq!(bench.driver.write(0, &flat), Outcome::Done);
            bench.settle_all();
            let devices = 0..usize::from(layout.members) * if kind == 2 { 2 } else { 1 };
            let dirty = |bench: &Bench| devices.clone().any(|at| bench.driver.caches.is_dirty(at));
            assert!(dirty(&bench), "{layout}");
            let id = bench.driver.submit(IoOp::Flush, 0, &[]);
            bench.settle_all();
            assert_eq!(bench.driver.outcome(id), Some(Outcome::Done));
            assert!(!dirty(&bench), "{layout}, {kind}");
        }
    }
}
