//! Whether an array in which something failed kept its promise.

use raidlab_core::consistency::{Allow, AssembleError};
use raidlab_core::contract::{Event, IoOp, Outcome};
use raidlab_core::{Consistency, MemberIndex};

use super::{Operation, Strike, Strikes};
use crate::caught::caught;
use crate::content::Content;
use crate::rig::{Ask, Rig, Started};
use crate::shape::{Set, all_of};
use raidlab_random::SplitMix64;

/// What is wrong, and the log.
type Wrong = Box<(String, Vec<String>)>;

/// One run. `lines`: with a log.
pub(super) fn case(
    base: &Rig,
    operation: Operation,
    strikes: &[Strike],
    lines: bool,
) -> Result<(), Wrong> {
    let (judged, lines) = run(base, operation, strikes, lines);
    judged.map_err(|what| Box::new((what, lines)))
}

/// One run: what is wrong, and the log, if `lines` are kept.
pub(super) fn run(
    base: &Rig,
    operation: Operation,
    strikes: &[Strike],
    lines: bool,
) -> (Result<(), String>, Vec<String>) {
    let mut rig = base.clone();
    if lines {
        rig.log_mut().keep_lines();
    }
    let judged = caught(|| judge(&mut rig, operation, strikes)).unwrap_or_else(Err);
    (judged, rig.log().lines().to_vec())
}

fn judge(rig: &mut Rig, operation: Operation, strikes: &[Strike]) -> Result<(), String> {
    operation.begin(rig);
    let out_before = rig.out_of_service();
    let (doubted, rotten) = (operation.doubted(rig), operation.rotten());
    let before: Vec<_> = everything(rig).collect();
    if let Some(sector) = rotten
        && (!strikes.is_empty() || operation == Operation::RepairUnknown)
    {
        // What went wrong by itself is promised to be mended only if nothing else does.
        doubt_row(rig, sector);
    }
    let told = rig.events().len();
    let mut run = Strikes::new(strikes);
    run.run(rig);
    alive(rig)?;
    // A drive that was struck may have taken its member's place meanwhile.
    let replaced = run.struck >> rig.shape().members;
    failed_for_a_reason(&rig.events()[told..], run.struck | replaced | out_before)?;
    // Without superblocks nothing tells after a start which sectors could not be computed.
    let computes = matches!(
        operation,
        Operation::Rebuild | Operation::ReAdd | Operation::Replace | Operation::Recover
    );
    let listed = rig.events().iter().any(|event| matches!(event, Event::BadBlocks { .. }));
    let members = all_of(rig.shape().members);
    let struck = run.struck & members;
    // What may not be had: on members out of service or struck, or not yet rebuilt.
    let doubtful = out_before | rig.out_of_service() | struck | doubted;
    let log_lost = run.struck >> (2 * rig.shape().members) & 1 == 1;
    let survives =
        rig.shape().survives(doubtful) && !is_dirty_degraded(rig, operation, doubtful, log_lost);
    all_well(rig, survives && operation != Operation::Stop, doubtful)?;
    rig.forget();
    let writes = !matches!(operation, Operation::Check | Operation::RepairUnknown);
    if !writes && strikes.is_empty() && !everything(rig).eq(before) {
        return Err("something was written although nobody knows what is right".into());
    }
    read_all(rig, survives)?;
    stays_stopped(rig)?;
    // A repair may have been kept from mending; a hole is there in mode none.
    let none = rig.shape().mode == Consistency::None;
    let whole = (rotten.is_none() || operation == Operation::Repair && strikes.is_empty())
        && !(none && operation == Operation::Recover)
        && struck == 0;
    if let Some(place) = rig.disagreement(rig.in_service()).filter(|_| whole) {
        return Err(format!("redundancy disagrees: {place:?}"));
    }
    if none && computes && listed {
        return Ok(());
    }
    // What was mended is not durable: the wrong value may be there again.
    if let Some(sector) = rotten {
        doubt_row(rig, sector);
    }
    start_again(rig, survives, doubtful, strikes)
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
fn all_well(rig: &Rig, due: bool, doubtful: Set) -> Result<(), String> {
    let failed = rig.replies().iter().find(|answer| answer.outcome != Outcome::Done);
    match failed.filter(|_| due) {
        None => Ok(()),
        Some(answer) => Err(format!(
            "request {} failed with {:?}, though only {doubtful:#b} are in doubt",
            answer.id, answer.outcome
        )),
    }
}

/// An array that has lost too much takes no writes any more.
fn stays_stopped(rig: &mut Rig) -> Result<(), String> {
    let all = all_of(rig.shape().members);
    if rig.shape().survives(all & !rig.in_service()) {
        return Ok(());
    }
    let len = rig.shape().logical_block;
    let ask = Ask { op: IoOp::Write, at: 0, len, fua: false };
    match rig.ask(ask) {
        Outcome::Done if rig.shape().parities() > 0 => {
            Err("a write is answered well although too much is lost".into())
        }
        _ => alive(rig),
    }
}

/// Everything that the members show.
fn everything(rig: &Rig) -> impl Iterator<Item = Content> {
    let members = (0..rig.shape().members).map(MemberIndex);
    members.flat_map(move |m| {
        let sectors = rig.drives().log_start(m);
        (0..sectors).map(move |at| rig.drives().live(m, at))
    })
}

/// A sector went wrong by itself: what is computed from it may be wrong too.
fn doubt_row(rig: &mut Rig, sector: u64) {
    let row = rig.shape().copies(sector)[0].1;
    for at in 0..rig.shape().capacity {
        let same_row = rig.shape().parities() > 0 && rig.shape().copies(at)[0].1 == row;
        if at == sector || same_row {
            rig.oracle_mut().discard(at, 1);
            rig.oracle_mut().discarded(at, 1);
        }
    }
}

/// Whether parity was not yet made consistent when a member was lost: then nothing is promised.
fn is_dirty_degraded(rig: &Rig, operation: Operation, doubtful: Set, log_lost: bool) -> bool {
    let resyncs = match rig.shape().mode {
        Consistency::Resync | Consistency::Bitmap { .. } => true,
        Consistency::Journal { .. } => log_lost,
        _ => false,
    };
    resyncs && operation == Operation::Recover && doubtful != 0 && rig.shape().parities() > 0
}

/// Nothing hangs.
fn alive(rig: &Rig) -> Result<(), String> {
    if let Some(what) = rig.violation() {
        return Err(what.to_owned());
    }
    if rig.unanswered() > 0 {
        return Err(format!("{} requests are never answered", rig.unanswered()));
    }
    if rig.outstanding() > 0 {
        return Err(format!("{} I/Os are never ended", rig.outstanding()));
    }
    Ok(())
}

/// Reads everything, a logical block at a time; errors are in order when not all `survives`.
fn read_all(rig: &mut Rig, survives: bool) -> Result<(), String> {
    let block = rig.shape().logical_block;
    for at in (0..rig.shape().capacity).step_by(block as usize) {
        let outcome = rig.read(at, block);
        rig.run_on(16);
        alive(rig)?;
        match outcome {
            Outcome::Done => rig.keep_what_was_read(),
            _ if !survives => {}
            outcome => return Err(format!("sector {at} cannot be read: {outcome:?}")),
        }
        rig.forget();
    }
    Ok(())
}

/// The power goes, and what answers starts again.
fn start_again(
    rig: &mut Rig,
    survives: bool,
    doubtful: Set,
    strikes: &[Strike],
) -> Result<(), String> {
    let seed = strikes.iter().fold(3, |seed, strike| seed * 31 + u64::from(strike.at));
    let mut random = SplitMix64::new(seed);
    let out = rig.out_of_service();
    rig.crash(|ways| random.below(u64::from(ways)) as u32);
    let gone = |device: &u16| rig.drives().is_gone(MemberIndex(*device));
    let lost =
        (0..rig.shape().members).filter(gone).fold(0, |lost: Set, device| lost | 1 << device);
    // With only stale members there nobody can know that others went on.
    if !rig.shape().survives(lost | out) {
        return Ok(());
    }
    let mut allow = Allow::default();
    let mut started = rig.assemble_without_missing(lost, allow);
    let dirty = |started: &Started| {
        use AssembleError::{DirtyDegraded, JournalLost};
        matches!(started, Started::Refused(DirtyDegraded { .. } | JournalLost { .. }))
    };
    if dirty(&started) {
        allow.dirty_degraded = true;
        started = rig.assemble_without_missing(lost, allow);
    }
    match started {
        Started::Well => {}
        Started::Refused(_) if !survives => return Ok(()),
        Started::Refused(refusal) => return Err(format!("a start is refused: {refusal:?}")),
    }
    // What cannot be read on a drive is computed: without a log as if the drive were lost.
    if rig.shape().mode == Consistency::None || allow.dirty_degraded {
        rig.oracle_mut().lose(doubtful, allow.dirty_degraded);
    }
    rig.run_on(64);
    read_all(rig, survives && !allow.dirty_degraded)
}
