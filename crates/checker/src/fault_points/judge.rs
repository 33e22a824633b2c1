//! Whether an array in which something failed kept its promise.

use raidlab_core::consistency::{Allow, AssembleError};
use raidlab_core::contract::{Event, IoOp, Outcome};
use raidlab_core::{Consistency, MemberIndex};

use super::{Operation, Strike, Strikes};
use crate::caught::caught;
use crate::content::Content;
use crate::harness::{Ask, Harness, Started};
use crate::shape::{Set, all_of};
use raidlab_random::SplitMix64;

/// What is wrong, and the log.
type Wrong = Box<(String, Vec<String>)>;

/// One run. `lines`: with a log.
pub(super) fn case(
    base: &Harness,
    operation: Operation,
    strikes: &[Strike],
    lines: bool,
) -> Result<(), Wrong> {
    let (judged, lines) = run(base, operation, strikes, lines);
    judged.map_err(|what| Box::new((what, lines)))
}

/// One run: what is wrong, and the log, if `lines` are kept.
pub(super) fn run(
    base: &Harness,
    operation: Operation,
    strikes: &[Strike],
    lines: bool,
) -> (Result<(), String>, Vec<String>) {
    let mut harness = base.clone();
    if lines {
        harness.log_mut().keep_lines();
    }
    let judged = caught(|| judge(&mut harness, operation, strikes)).unwrap_or_else(Err);
    (judged, harness.log().lines().to_vec())
}

fn judge(harness: &mut Harness, operation: Operation, strikes: &[Strike]) -> Result<(), String> {
    let is_had = operation.is_had_by(harness);
    if operation.begin(harness) != is_had {
        let what = if is_had { "refused" } else { "carried out, which this array must refuse" };
        return Err(format!("{operation:?} is {what}: {:?}", harness.events()));
    }
    let out_before = harness.out_of_service();
    let (doubted, rotten) = (operation.doubted(harness), operation.rotten());
    let before: Vec<_> = everything(harness).collect();
    if let Some(sector) = rotten
        && (!strikes.is_empty() || operation == Operation::RepairUnknown)
    {
        // What went wrong by itself is promised to be mended only if nothing else does.
        doubt_row(harness, sector);
    }
    let told = harness.events().len();
    let mut run = Strikes::new(strikes);
    run.run(harness);
    alive(harness)?;
    // A drive that was struck may have taken its member's place meanwhile.
    let replaced = run.struck >> harness.shape().members;
    failed_for_a_reason(&harness.events()[told..], run.struck | replaced | out_before)?;
    // Without superblocks nothing tells after a start which sectors could not be computed.
    let computes = matches!(
        operation,
        Operation::Rebuild | Operation::ReAdd | Operation::Replace | Operation::Recover
    );
    let was_stopped = harness.events()[told..].contains(&Event::Stopped);
    let listed = harness.events().iter().any(|event| matches!(event, Event::BadBlocks { .. }));
    let members = all_of(harness.shape().members);
    let struck = run.struck & members;
    // What may not be had: on members out of service or struck, or not yet rebuilt.
    let doubtful = out_before | harness.out_of_service() | struck | doubted;
    let log_lost = run.struck >> (2 * harness.shape().members) & 1 == 1;
    let survives = harness.shape().survives(doubtful)
        && !is_dirty_degraded(harness, operation, doubtful, log_lost);
    all_well(harness, survives && operation != Operation::Stop, doubtful)?;
    harness.forget();
    let writes = !matches!(operation, Operation::Check | Operation::RepairUnknown);
    if !writes && strikes.is_empty() && !everything(harness).eq(before) {
        return Err("something was written although nobody knows what is right".into());
    }
    read_all(harness, survives)?;
    stays_stopped(harness)?;
    // A repair may have been kept from mending; a hole is there in mode none.
    let none = harness.shape().mode == Consistency::None;
    let whole = (rotten.is_none() || operation == Operation::Repair && strikes.is_empty())
        && !(none && operation == Operation::Recover)
        && struck == 0;
    if let Some(place) = harness.disagreement(harness.in_service()).filter(|_| whole) {
        return Err(format!("redundancy disagrees: {place:?}"));
    }
    if none && computes && listed {
        return Ok(());
    }
    // What was mended is not durable: the wrong value may be there again.
    if let Some(sector) = rotten {
        doubt_row(harness, sector);
    }
    start_again(harness, survives, doubtful, (was_stopped, strikes))
}

/// No member fails with which nothing was wrong.
fn failed_for_a_reason(events: &[Event], struck: Set) -> Result<(), String> {
    let failed = events.iter().find_map(|event| match event {
        Event::MemberFailed(member) if struck >> member.0 & 1 == 0 => Some(member.0),
        _ => None,
    });
    failed.map_or(Ok(()), |member| Err(format!("member {member} failed for no reason")))
}

/// Every request was answered well, when that was `due`.
fn all_well(harness: &Harness, due: bool, doubtful: Set) -> Result<(), String> {
    let failed = harness.replies().iter().find(|answer| answer.outcome != Outcome::Done);
    match failed.filter(|_| due) {
        None => Ok(()),
        Some(answer) => Err(format!(
            "request {} failed with {:?}, though only {doubtful:#b} are in doubt",
            answer.id, answer.outcome
        )),
    }
}

/// An array that has lost too much takes no writes any more.
fn stays_stopped(harness: &mut Harness) -> Result<(), String> {
    let all = all_of(harness.shape().members);
    if harness.shape().survives(all & !harness.in_service()) {
        return Ok(());
    }
    let len = harness.shape().logical_block;
    let ask = Ask { op: IoOp::Write, at: 0, len, fua: false };
    match harness.ask(ask) {
        Outcome::Done if harness.shape().parities() > 0 => {
            Err("a write is answered well although too much is lost".into())
        }
        _ => alive(harness),
    }
}

/// Everything that the members show.
fn everything(harness: &Harness) -> impl Iterator<Item = Content> {
    let members = (0..harness.shape().members).map(MemberIndex);
    members.flat_map(move |m| {
        let sectors = harness.drives().log_start(m);
        (0..sectors).map(move |at| harness.drives().live(m, at))
    })
}

/// A sector went wrong by itself: what is computed from it may be wrong too.
fn doubt_row(harness: &mut Harness, sector: u64) {
    let row = harness.shape().copies(sector)[0].1;
    for at in 0..harness.shape().capacity {
        let same_row = harness.shape().parities() > 0 && harness.shape().copies(at)[0].1 == row;
        if at == sector || same_row {
            harness.oracle_mut().discard(at, 1);
            harness.oracle_mut().discarded(at, 1);
        }
    }
}

/// Whether parity was not yet made consistent when a member was lost: then nothing is promised.
fn is_dirty_degraded(
    harness: &Harness,
    operation: Operation,
    doubtful: Set,
    log_lost: bool,
) -> bool {
    let resyncs = match harness.shape().mode {
        Consistency::Resync | Consistency::Bitmap { .. } => true,
        Consistency::Journal { .. } => log_lost,
        _ => false,
    };
    resyncs && operation == Operation::Recover && doubtful != 0 && harness.shape().parities() > 0
}

/// Nothing hangs.
fn alive(harness: &Harness) -> Result<(), String> {
    if let Some(what) = harness.violation() {
        return Err(what.to_string());
    }
    if harness.unanswered() > 0 {
        return Err(format!("{} requests are never answered", harness.unanswered()));
    }
    if harness.outstanding() > 0 {
        return Err(format!("{} I/Os are never ended", harness.outstanding()));
    }
    Ok(())
}

/// Reads everything, a logical block at a time; errors are in order when not all `survives`.
fn read_all(harness: &mut Harness, survives: bool) -> Result<(), String> {
    let block = harness.shape().logical_block;
    for at in (0..harness.shape().capacity).step_by(block as usize) {
        let outcome = harness.read(at, block);
        harness.run_on(16);
        alive(harness)?;
        match outcome {
            Outcome::Done => harness.keep_what_was_read(),
            _ if !survives => {}
            outcome => return Err(format!("sector {at} cannot be read: {outcome:?}")),
        }
        harness.forget();
    }
    Ok(())
}

/// The power goes, and what answers starts again.
fn start_again(
    harness: &mut Harness,
    survives: bool,
    doubtful: Set,
    (was_stopped, strikes): (bool, &[Strike]),
) -> Result<(), String> {
    let seed = strikes.iter().fold(3, |seed, strike| seed * 31 + u64::from(strike.at));
    let mut random = SplitMix64::new(seed);
    let out = harness.out_of_service();
    let was_stopped = was_stopped && harness.shape().mode != Consistency::None;
    harness.crash(|ways| random.below(u64::from(ways)) as u32);
    let gone = |device: &u16| harness.drives().is_gone(MemberIndex(*device));
    let lost =
        (0..harness.shape().members).filter(gone).fold(0, |lost: Set, device| lost | 1 << device);
    // With only stale members there nobody can know that others went on.
    if !harness.shape().survives(lost | out) {
        return Ok(());
    }
    let mut allow = Allow::default();
    // Nothing is wrong with the others.
    let may = lost | out | doubtful;
    let mut started = harness.assemble_without_missing(lost, may, allow);
    let dirty = |started: &Started| {
        use AssembleError::{DirtyDegraded, JournalLost};
        matches!(started, Started::Refused(DirtyDegraded { .. } | JournalLost { .. }))
    };
    if dirty(&started) {
        allow.dirty_degraded = true;
        started = harness.assemble_without_missing(lost, may, allow);
    }
    match started {
        Started::Well => {}
        Started::Refused(_) if !survives => return Ok(()),
        Started::Refused(refusal) => return Err(format!("a start is refused: {refusal:?}")),
    }
    let failed = all_of(harness.shape().members) & !harness.in_service() & !may;
    if failed != 0 {
        return Err(format!("a start leaves out {failed:#b}, with which nothing was wrong"));
    }
    if was_stopped && let Some(what) = harness.unclean() {
        return Err(format!("a start after an orderly stop: {what}"));
    }
    // What cannot be read on a drive is computed: without a log as if the drive were lost.
    if harness.shape().mode == Consistency::None || allow.dirty_degraded {
        harness.oracle_mut().lose(doubtful, allow.dirty_degraded);
    }
    harness.run_on(64);
    read_all(harness, survives && !allow.dirty_degraded)
}
