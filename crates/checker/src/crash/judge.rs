//! Judging what a crash left: assemble, recover, read, lose one more, read again.

use raidlab_core::consistency::{Allow, AssembleError};
use raidlab_core::contract::{Admin, Outcome};
use raidlab_core::{Consistency, MemberIndex};

use super::{Counts, CrashConfig, Op, Violation};
use crate::breach::{Breach, BreachKind};
use crate::caught::caught_as_broken;
use crate::content::{Content, mix};
use crate::harness::{Fault, Harness, Started};
use crate::seen::Seen;
use crate::shape::{Set, all_of, set_of};
use raidlab_random::SplitMix64;

/// Crashes within recoveries, one in another, at most.
const DEEPEST: usize = 3;
/// How often an array is woken until it must be quiet.
const WAKES: usize = 64;

/// Judges images.
pub(super) struct Judge {
    seed: u64,
    nested: u32,
    seen: Seen,
    /// One for each depth.
    harnesses: Vec<Harness>,
}

impl Judge {
    pub(super) fn new(config: &CrashConfig, base: &Harness, most: usize) -> Self {
        let mut harnesses = vec![base.clone(); DEEPEST + 1];
        harnesses.iter_mut().for_each(|harness| harness.log_mut().stop());
        Self { seed: config.seed, nested: config.nested, seen: Seen::new(most), harnesses }
    }

    /// What decides the verdict of a crash of `harness` besides what is on the drives.
    pub(super) fn legal(harness: &Harness, lost: Set) -> u64 {
        mix(harness.oracle().key(), mix(harness.out_of_service() as u64, lost as u64))
    }

    /// Whether `image`, left by a crash of `harness`, keeps the promise without the members `lost`;
    /// `legal` is from [`Self::legal`].
    pub(super) fn image(
        &mut self,
        harness: &Harness,
        image: &[Content],
        (lost, legal): (Set, u64),
        counts: &mut Counts,
    ) -> bool {
        let key = harness.drives().image_key(image, legal, lost);
        if !self.seen.add(key) {
            return true;
        }
        counts.distinct += 1;
        counts.with_loss += u64::from(lost != 0);
        self.harnesses[0].start_from(harness, image);
        self.judge(0, lost, key, counts).is_none()
    }

    /// The same with the log of `harness` going on; gives what is wrong.
    pub(super) fn verbose(
        &mut self,
        harness: &mut Harness,
        image: &[Content],
        lost: Set,
    ) -> Option<Breach> {
        let key = harness.drives().image_key(image, Self::legal(harness, lost), lost);
        for own in &mut self.harnesses {
            own.log_mut().restart();
            own.log_mut().keep_lines();
        }
        self.harnesses[0].start_from(harness, image);
        let judge = || self.judge(0, lost, key, &mut Counts::default());
        let what = caught_as_broken(judge);
        for own in &mut self.harnesses {
            harness.log_mut().append(own.log());
        }
        what
    }

    /// What is wrong with a copy of a harness at the end of a program.
    pub(super) fn quiet(&mut self, harness: &Harness, program: &[Op]) -> Option<Breach> {
        self.harnesses[0].clone_from(harness);
        Self::ended(&mut self.harnesses[0], program)
    }

    /// What is wrong with a harness at the end of a program, without a crash.
    pub(super) fn ended(harness: &mut Harness, program: &[Op]) -> Option<Breach> {
        if harness.unanswered() > 0 {
            return Some("a request is never answered".into());
        }
        let meant = program.iter().fold(0, |meant, op| meant | op.fails());
        harness.run_on(WAKES);
        let key = harness.key();
        finish(harness, Start { forced: false, out: meant }, false, key)
    }

    /// What is wrong with the harness at `depth`, whose drives start again without `lost`.
    fn judge(&mut self, depth: usize, lost: Set, key: u64, counts: &mut Counts) -> Option<Breach> {
        let harness = &mut self.harnesses[depth];
        let start = match start(harness, lost) {
            Ok(start) => start,
            Err(what) => return Some(what),
        };
        counts.forced += u64::from(start.forced);
        if depth < DEEPEST && self.nested > 0 && mix(key, 5).is_multiple_of(u64::from(self.nested))
        {
            let what = self.interrupt(depth, lost, key, counts);
            if what.is_some() {
                return what;
            }
        }
        let harness = &mut self.harnesses[depth];
        harness.run_on(WAKES);
        finish(harness, start, true, key)
    }

    /// A crash at some moment of the recovery.
    fn interrupt(
        &mut self,
        depth: usize,
        lost: Set,
        key: u64,
        counts: &mut Counts,
    ) -> Option<Breach> {
        let mut random = SplitMix64::new(mix(self.seed, key));
        let (own, deeper) = self.harnesses.split_at_mut(depth + 1);
        let (own, next) = (&own[depth], &mut deeper[0]);
        next.clone_from(own);
        let steps = random.below(40);
        for _ in 0..steps {
            match next.outstanding() as u64 {
                0 if !next.wake() => break,
                0 => {}
                outstanding => next.finish(random.below(outstanding) as usize, Fault::None),
            }
        }
        if let Some(what) = next.violation() {
            return Some(what.clone());
        }
        counts.nested += 1;
        next.crash(|ways| random.below(u64::from(ways)) as u32);
        // One more may be lost, if the level survives it.
        let mut lost = lost;
        let out = next.out_of_service() | lost;
        let one = 1 << random.below(u64::from(next.shape().members));
        if random.chance(30) && out & one == 0 && next.shape().survives(out | one) {
            lost |= one;
        }
        self.judge(depth + 1, lost, mix(key, 77), counts)
    }
}

/// Whether this is the write hole: a member was lost, with the power or after the recovery from that, and a read gave
/// what nobody wrote.
pub(crate) fn is_hole(violation: &Violation) -> bool {
    let Violation { lost, what, .. } = violation;
    let is_crash = *lost != Set::MAX;
    is_crash && (*lost != 0 || what.without.is_some()) && what.kind == BreachKind::Read
}

/// How an array was started.
#[derive(Clone, Copy)]
struct Start {
    /// It had to be forced.
    forced: bool,
    /// Members that may be out of service: those lost, and those that were out before. Nothing is wrong with any other.
    out: Set,
}

/// Assembles as the promise says. Drives of md 0.90 of which nothing tells what became of them are left out, as an
/// administrator would; besides them nobody may be missing who was not lost or out of service before.
fn start(harness: &mut Harness, lost: Set) -> Result<Start, Breach> {
    let out = lost | harness.out_of_service();
    let allow = Allow::default();
    let begin = |harness: &mut Harness, allow| match out {
        0 => harness.assemble(lost, allow),
        _ => harness.assemble_without_missing(lost, out, allow),
    };
    let refusal = match begin(harness, allow) {
        Started::Well => return started(harness, Start { forced: false, out }),
        Started::Refused(refusal) => refusal,
    };
    let untold = harness.untold(lost, &refusal) & !lost;
    if untold != 0 {
        return start(harness, lost | untold);
    }
    let may_refuse = harness.shape().parities() > 0
        && out != 0
        && matches!(harness.shape().mode, Consistency::Resync | Consistency::Bitmap { .. });
    if !may_refuse || !matches!(refusal, AssembleError::DirtyDegraded { .. }) {
        return Err(format!("a start without {lost:#b} is refused: {refusal:?}").into());
    }
    match begin(harness, Allow { dirty_degraded: true, ..allow }) {
        Started::Well => started(harness, Start { forced: true, out }),
        Started::Refused(refusal) => {
            Err(format!("a forced start without {lost:#b} is refused: {refusal:?}").into())
        }
    }
}

/// An array has started, with all members that were neither lost nor out of service.
fn started(harness: &Harness, start: Start) -> Result<Start, Breach> {
    all_there(harness, start.out).map_or(Ok(start), Err)
}

/// What is wrong with who is in service: no member may have failed but those `out`.
fn all_there(harness: &Harness, out: Set) -> Option<Breach> {
    let missing = all_of(harness.shape().members) & !harness.in_service();
    let rebuilding = set_of(harness.array().status().rebuilding);
    let failed = (missing | rebuilding | harness.failures_told()) & !out;
    (failed != 0).then(|| {
        format!("members {failed:#b} are failed though nothing was wrong with them").into()
    })
}

/// Recovery is over: reads everything, compares redundancy, loses one more, reads again.
fn finish(harness: &mut Harness, start: Start, crashed: bool, key: u64) -> Option<Breach> {
    if let Some(what) = harness.violation() {
        return Some(what.clone());
    }
    if harness.outstanding() > 0 || harness.unanswered() > 0 {
        return Some("recovery does not end".into());
    }
    if let Some(what) = all_there(harness, start.out) {
        return Some(what);
    }
    let lenient = start.forced || !harness.shape().survives(harness.out_of_service() & start.out);
    if let Some(what) = read_all(harness, lenient, start.out) {
        return Some(what);
    }
    // Without superblocks nobody knows after a crash where it disagrees.
    let none = harness.shape().mode == Consistency::None && crashed;
    let in_service = harness.in_service();
    if !none && let Some(place) = harness.disagreement(in_service) {
        return Some(format!("redundancy disagrees after recovery: {place:?}").into());
    }
    let members = u64::from(harness.shape().members);
    let all = all_of(harness.shape().members);
    let out = all & !in_service | harness.out_of_service();
    let further = (0..members).map(|k| (k + key) % members).find(|k| {
        let one = 1 << k;
        out & one == 0 && harness.shape().survives(out | one)
    })?;
    harness.command(Admin::Fail(MemberIndex(further as u16)));
    harness.run_on(WAKES);
    let wrong = read_all(harness, start.forced, start.out | 1 << further);
    wrong.map(|what| what.without(further as u16))
}

/// Reads everything; `lenient`: errors are in order, since nothing is promised. Nobody fails but those `out`.
fn read_all(harness: &mut Harness, lenient: bool, out: Set) -> Option<Breach> {
    let (capacity, block) = (harness.shape().capacity, harness.shape().logical_block);
    let longest = u64::from(harness.config().longest) / block * block;
    let mut at = 0;
    while at < capacity {
        let len = longest.min(capacity - at);
        let outcome = harness.read(at, len);
        if let Some(what) = harness.violation() {
            return Some(what.clone());
        }
        match outcome {
            Outcome::Done => harness.keep_what_was_read(),
            _ if lenient => {}
            outcome => {
                return Some(format!("sectors {at}+{len} cannot be read: {outcome:?}").into());
            }
        }
        at += len;
    }
    if let Some(what) = all_there(harness, out) {
        return Some(what);
    }
    harness.forget();
    None
}
