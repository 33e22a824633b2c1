//! The bitmap of md arrays and the power: whatever a cut at any moment leaves of drives with caches, blocks on which
//! members then differ have their bits, in every copy of the bitmap.
//!
//! Writes are spread over hundreds of pages of 64 bits, which lie together in few blocks of 4 KiB, and bits are cleared
//! as early as can be. What the array asks of its members is carried out one by one, in an order that is drawn; after
//! each, all that a cut may leave is judged at once: a sector may have any version that was written since it was
//! durable.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::extent::Extent;
use crate::made::creation;
use crate::power::Drive;
use raidlab_core::contract::{IoOp, Outcome, Pacing, Segment, Token};
use raidlab_core::{Level, MemberIndex, Nanos, Sector, Sectors, Settings};
use raidlab_engine::{Engine, MdOptions, Member, MemberRequest, MemberStore};
use raidlab_metadata::md::{Bitmap, Creation, WantedBitmap};
use raidlab_random::SplitMix64;

/// Of a member; the data begins at `DATA`. Bits for each 4 KiB of it are in two blocks of the bitmap.
const SECTORS: u64 = DATA + 600 * PAGE;
const DATA: u64 = 2048;
/// Sectors that 64 bits stand for.
const PAGE: u64 = 64 * CHUNK;
const CHUNK: u64 = 8;
const AT: u64 = 16;
const HEAD: u64 = 256;
/// Places that are written again and again.
const PLACES: u64 = 60;
const STEPS: u64 = 900;
const SEEDS: u64 = 2;

/// What was asked of drives and is not carried out yet.
#[derive(Clone, Default)]
struct Held {
    requests: Arc<Mutex<Vec<(usize, MemberRequest)>>>,
    is_on: Arc<AtomicBool>,
}

/// A drive whose requests wait for their turn while `held` is on.
struct Waiting {
    drive: Drive,
    place: usize,
    held: Held,
}

impl MemberStore for Waiting {
    fn sectors(&self) -> Sectors {
        self.drive.sectors()
    }

    fn submit(&mut self, request: MemberRequest) {
        if self.held.is_on.load(Ordering::Relaxed) {
            self.held.requests.lock().unwrap().push((self.place, request));
        } else {
            self.drive.submit(request);
        }
    }
}

struct Run {
    random: SplitMix64,
    drives: Vec<Drive>,
    held: Held,
    level: Level,
    /// Drives that are in service: each has all bits.
    served: usize,
    /// Chunks that were written, ever.
    written: BTreeSet<u64>,
    /// Chunks that a cut might have left different, and chunks that had bits and were alike: both must be met.
    met: [u64; 2],
}

impl Run {
    fn below(&mut self, most: u64) -> u64 {
        self.random.next_u64() % most
    }

    /// Carries out something that was asked of a drive, of this one if one is named; false when nothing is.
    fn carry_out(&mut self, of: Option<usize>) -> bool {
        let waiting: Vec<usize> = {
            let requests = self.held.requests.lock().unwrap();
            let all = requests.iter().enumerate();
            all.filter(|(_, (place, _))| of.is_none_or(|of| of == *place))
                .map(|one| one.0)
                .collect()
        };
        if waiting.is_empty() {
            return false;
        }
        let chosen = waiting[self.below(waiting.len() as u64) as usize];
        let (place, request) = self.held.requests.lock().unwrap().swap_remove(chosen);
        let (op, at, len) = (request.op(), request.at().0, request.len().0);
        self.drives[place].submit(request);
        // A flush only takes possibilities away.
        if op == IoOp::Write && at >= DATA {
            let chunks = (at - DATA) / CHUNK..(at + len - DATA).div_ceil(CHUNK);
            self.written.extend(chunks.clone());
            self.judge(chunks, &format!("data at {at} of drive {place}"));
        } else if op == IoOp::Write && at + len > AT {
            let bits = |sector: u64| (sector.saturating_sub(AT) * 512).saturating_sub(HEAD) * 8;
            self.judge(
                bits(at)..bits(at + len),
                &format!("{len} sectors at {at} of drive {place}"),
            );
        }
        true
    }

    /// Whether members may differ in a chunk after a power cut.
    fn may_differ(&self, chunk: u64) -> bool {
        (DATA + chunk * CHUNK..).take(CHUNK as usize).any(|sector| {
            let mut all = Vec::new();
            let is_sure = self.drives.iter().all(|drive| {
                let mut first = None;
                let is_sure = drive.always(sector, |one| *first.get_or_insert(*one) == *one);
                all.extend(first);
                is_sure
            });
            let agree = |byte: usize| match self.level {
                Level::Raid1 => all.iter().all(|one| one[byte] == all[0][byte]),
                _ => all.iter().fold(0, |sum, one| sum ^ one[byte]) == 0,
            };
            !is_sure || !(0..512).all(agree)
        })
    }

    /// Whether a drive has a chunk's bit, whatever a power cut leaves.
    fn has_bit(&self, drive: &Drive, chunk: u64) -> bool {
        let byte = HEAD + chunk / 8;
        let at = (byte % 512) as usize;
        drive.always(AT + byte / 512, |sector| sector[at] >> (chunk % 8) & 1 == 1)
    }

    /// Looks at those of some chunks that were written.
    fn judge(&mut self, chunks: Range<u64>, after: &str) {
        for chunk in self.written.range(chunks) {
            let without: Vec<usize> = (0..self.served)
                .filter(|drive| !self.has_bit(&self.drives[*drive], *chunk))
                .collect();
            if without.is_empty() {
                self.met[1] += 1;
                continue;
            }
            let differs = self.may_differ(*chunk);
            assert!(!differs, "{}: after {after} drives {without:?} lack bit {chunk}", self.level);
            self.met[0] += 1;
        }
    }

    /// Writes, flushes and lets the array work, `steps` times.
    fn go_on(&mut self, engine: &mut Engine, token: Token, steps: u64) {
        let apart = engine.array().capacity().0 / PLACES;
        let mut replies = Vec::new();
        for step in 0..steps {
            match self.below(16) {
                // Now busy, now quiet, so that bits are cleared.
                0..3 if step / 200 % 2 == 0 && engine.can_accept() => {
                    let (place, near) = (self.below(PLACES), self.below(3));
                    let value = self.below(255) as u8 + 1;
                    let from = self.below(16) as u32;
                    if engine.outstanding() == 0 {
                        engine.bytes_mut(token).unwrap().fill(value);
                    }
                    let segment = Segment { token, offset: 8 * from, len: 8 };
                    let at = (place * apart + near * CHUNK) / CHUNK * CHUNK;
                    engine.submit(IoOp::Write, Sector(at), &[segment], false).unwrap();
                }
                3..8 => engine.poll_replies(&mut replies).unwrap(),
                _ => {
                    if !self.carry_out(None) {
                        engine.poll_replies(&mut replies).unwrap();
                    }
                }
            }
            assert!(replies.drain(..).all(|reply| reply.outcome == Outcome::Done));
            let status = engine.array().status();
            if (status.failed, status.rebuilding) == ([0; 2], [0; 2]) {
                self.served = self.drives.len();
            }
        }
    }

    /// Until all is answered.
    fn drain(&mut self, engine: &mut Engine) {
        let mut replies = Vec::new();
        loop {
            engine.poll_replies(&mut replies).unwrap();
            if !self.carry_out(None) && engine.outstanding() == 0 {
                return;
            }
        }
    }
}

fn drives(level: Level) -> Vec<Drive> {
    let layout = if level == Level::Raid1 { "raid1(2)" } else { "raid5(3) chunk=64K" };
    let layout = layout.parse().unwrap();
    let creation = Creation { bitmap: WantedBitmap::Internal, ..creation(layout, SECTORS) };
    let plan = creation.plan().unwrap();
    let made = plan.members.iter().flatten();
    made.map(|made| {
        let drive = Drive::new(SECTORS);
        for (at, piece) in &made.pieces {
            let mut bytes = piece.clone();
            if let Some(mut head) = Bitmap::parse(piece) {
                assert_eq!(at.0, AT);
                head.chunk = 4096;
                bytes.resize(head.sectors().unwrap().bytes() as usize, 0);
                bytes.fill(0);
                head.emit(&mut bytes);
            }
            drive.put(at.0, &bytes);
        }
        drive
    })
    .collect()
}

fn try_seed(seed: u64, level: Level) {
    let (drives, held) = (drives(level), Held::default());
    let waiting = |(place, drive): (usize, &Drive)| {
        Member::from(Waiting { drive: drive.clone(), place, held: held.clone() })
    };
    let members = drives.iter().enumerate().map(waiting).collect();
    let settings =
        Settings { bitmap_delay: Nanos(1), clean_after: Nanos(1), ..Settings::default() };
    let options = MdOptions { settings, ..MdOptions::default() };
    let (mut engine, _) = Engine::assemble_md(members, &options).unwrap();
    assert_eq!(engine.data_start(MemberIndex(0)), Sectors(DATA));
    engine.pace(Pacing::between(u64::MAX, u64::MAX)).unwrap();
    let token = engine.allocate(16 * 4096).unwrap();
    let (random, served) = (SplitMix64::new(seed), drives.len());
    let (written, met) = (BTreeSet::new(), [0; 2]);
    let mut run = Run { random, drives, held, level, served, written, met };
    let last = MemberIndex(served as u16 - 1);
    for _ in 0..2 {
        run.held.is_on.store(true, Ordering::Relaxed);
        run.go_on(&mut engine, token, STEPS);
        // What is written now is what the last one misses.
        run.served = served - 1;
        engine.fail(last).unwrap();
        run.go_on(&mut engine, token, STEPS / 3);
        // It comes back while the others are written. What it has been asked for before is waited for, as is what is
        // asked to see how it is.
        while run.carry_out(Some(last.at())) {}
        run.held.is_on.store(false, Ordering::Relaxed);
        engine.re_add(last, None).unwrap();
        run.held.is_on.store(true, Ordering::Relaxed);
        run.go_on(&mut engine, token, STEPS);
        run.drain(&mut engine);
        run.held.is_on.store(false, Ordering::Relaxed);
        while run.carry_out(None) {}
        engine.finish_background(&AtomicBool::new(false)).unwrap();
        assert!(!engine.array().is_failed(last));
        run.served = served;
        run.judge(0..u64::MAX, "it is whole again");
    }
    engine.stop().unwrap();
    let [cleared, set] = run.met;
    assert!(cleared > 1000 && set > 1000, "{level}: {cleared} without their bits, {set} with");
}

#[test]
fn what_a_power_cut_may_leave_different_has_its_bits_everywhere() {
    for level in [Level::Raid1, Level::Raid5] {
        Extent::from_environment()
            .of_slow_tests()
            .seeds(SEEDS, 50)
            .for_each(|seed| try_seed(seed, level));
    }
}
