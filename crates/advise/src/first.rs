//! What is said before the recommendation: the question itself, where it is another than "which of all".

use raidlab_core::Level;
use raidlab_models::DriveKind;
use raidlab_risk::words::chance;

use crate::decide::Advice;
use crate::growth::Growth;
use crate::remarks::days;
use crate::risks::BAD_BATCH;
use crate::wanted::Wanted;
use crate::{candidate::terabytes, sizes, software, versus};

/// What a question is about that names layouts, or is one of growing, of drives of different sizes, of keeping up, or
/// of other software than md: a sentence or two each, the most decisive first.
pub fn first(wanted: &Wanted, advice: &Advice) -> Vec<String> {
    let mut told: Vec<String> = grows(wanted, advice).into_iter().collect();
    told.extend(software::first(wanted, advice));
    told.extend(keeps_up(wanted, advice));
    told.extend(sizes::in_words(wanted, advice));
    told.extend(versus::compared(wanted, advice));
    told.extend(models(wanted, advice));
    told
}

/// Whether work that comes at a rate of its own is kept up with. What does not keep up is not among the last ones.
fn keeps_up(wanted: &Wanted, advice: &Advice) -> Option<String> {
    let demand = wanted.profile.demand(wanted.streams)? / 1e6;
    let pick = &advice.finalists[advice.verdict.pick].candidate;
    let states = match pick.layout.survives() {
        0 => "",
        _ => ", also with a drive missing and while it is rebuilding",
    };
    let streams = wanted.streams;
    let (count, each) = match streams {
        1 => ("1 stream of".to_owned(), ""),
        _ => (
            format!("{streams} streams of together"),
            ": each has its full rate, as fewer would have",
        ),
    };
    let others = if advice.finalists.len() > 1 { "; so does every layout below" } else { "" };
    let none = "A stream here waits after each write has ended, as fio does, so the rates below are a little less than \
                it asks for. If something stutters all the same, look at network and programs";
    Some(format!("{pick} keeps up with {count} {demand:.1} MB/s{states}{each}{others}. {none}."))
}

/// What becomes of the recommendation when drives are added.
fn grows(wanted: &Wanted, advice: &Advice) -> Option<String> {
    let later = wanted.later?;
    let (at, growth) = advice.growths.iter().find(|(at, _)| *at == advice.verdict.pick)?;
    let name = &advice.finalists[*at].candidate;
    Some(match growth {
        Growth::Not { reason } => format!("{name} does not grow to {later} drives: {reason}."),
        Growth::Reshape { layout, usable, hours, .. } => format!(
            "Yes, {name} grows to {later} drives with md, all of them at once, and is {layout} with {} then: {} to {} \
             in which it stays usable. Back up first.",
            terabytes(*usable),
            days(hours.0),
            days(hours.1)
        ),
    })
}

/// What different models are worth to a mirror of SSDs, which wear alike.
fn models(wanted: &Wanted, advice: &Advice) -> Option<String> {
    let at = advice.verdict.pick;
    let layout = &advice.finalists[at].candidate.layout;
    let is_mirror = layout.level == Level::Raid1 && matches!(wanted.drive.kind, DriveKind::Ssd(_));
    is_mirror.then(|| {
        let batch = advice.batches[at];
        format!(
            "The SSDs of a mirror need not be of different models, and are better so: equal ones have the same \
             firmware, hours and writes, and may fail together. Losing the array: {} of mixed batches, {} of a bad \
             one ({BAD_BATCH} times the failures); a fault of a firmware is in neither.",
            chance(batch.mixed),
            chance(batch.bad)
        )
    })
}
