//! States of modelled arrays: members that are lost, and how far a rebuild gets.

use raidlab_core::contract::{Event, Work};
use raidlab_core::{MemberIndex, Nanos, Sectors, Time};
use raidlab_sim::{SimError, World};
use raidlab_study::{Rebuild, State, lost_member};

/// Bytes of each member after which an idle rebuild of whole drives is broken off and its time estimated.
pub(super) const SAMPLE: u64 = 8 << 30;

/// Puts a world into a state, at time zero; `spare` makes a fresh drive.
pub(super) fn enter<D>(
    world: &mut World,
    state: State,
    spare: impl FnOnce() -> D,
    add: impl FnOnce(&mut World, MemberIndex, D) -> Result<(), SimError>,
) -> Result<(), SimError> {
    if state == State::Healthy {
        return Ok(());
    }
    let member = lost_member(world.array().geometry());
    world.fail(member);
    if state == State::Rebuilding { add(world, member, spare()) } else { Ok(()) }
}

/// What the rebuild that began at time zero did up to now; `None` when there was none.
pub(super) fn progress(world: &World) -> Option<Rebuild> {
    let mut rebuild = None;
    for (event, at) in world.events().iter().zip(world.event_times()) {
        match event {
            Event::Started(Work::Rebuild(_)) => {
                rebuild = Some(Rebuild { elapsed: Nanos::ZERO, done: 0.0 });
            }
            Event::Finished { work: Work::Rebuild(_), .. } => {
                rebuild = Some(Rebuild { elapsed: at.since(Time::ZERO), done: 1.0 });
            }
            _ => {}
        }
    }
    let Some(Rebuild { done: 0.0, .. }) = rebuild else { return rebuild };
    let (done, of) = under_way(world).unwrap_or_default();
    let done = done.0 as f64 / (of.0 as f64).max(1.0);
    Some(Rebuild { elapsed: world.now().since(Time::ZERO), done })
}

/// How far the rebuild under way is, and of how much.
fn under_way(world: &World) -> Option<(Sectors, Sectors)> {
    let status = world.array().status().work?;
    matches!(status.work, Work::Rebuild(_)).then_some((status.done, status.of))
}

/// Lets a rebuild go on alone until it ends, or `most` of each member is done.
pub(super) fn run_alone(world: &mut World, most: Sectors) -> Option<Rebuild> {
    while let Some((done, _)) = under_way(world) {
        if done >= most || !world.step() {
            break;
        }
    }
    // What the end of the rebuild still writes is part of it.
    while under_way(world).is_none() && !has_ended(world) && world.step() {}
    progress(world)
}

fn has_ended(world: &World) -> bool {
    let ended = |event: &Event| matches!(event, Event::Finished { work: Work::Rebuild(_), .. });
    world.events().iter().any(ended)
}
