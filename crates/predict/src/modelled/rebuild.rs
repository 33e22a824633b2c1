//! States of modelled arrays: members that are lost, and how far a rebuild gets.

use raidlab_core::Sectors;
use raidlab_core::array::WorkStatus;
use raidlab_core::contract::{Event, Work};
use raidlab_models::Drive;
use raidlab_sim::{AtStart, World};
use raidlab_study::{Rebuild, State, lost_member};

/// Bytes of each member after which an idle rebuild of whole drives is broken off and its time estimated.
pub(super) const SAMPLE: u64 = 8 << 30;

/// Puts a world into a state. A rebuild begins with what is measured, as on real drives and with a kernel: files are
/// laid out before. A hot spare that stands by takes the lost member's place by itself; without one, the member has
/// failed before, and `fresh` makes the drive that somebody puts there.
pub(super) fn enter(world: &mut World, state: State, fresh: impl FnOnce() -> Drive) {
    let member = lost_member(world.array().geometry());
    match (state, world.spares() > 0) {
        (State::Healthy, _) => {}
        (_, true) => world.keep_for_start(AtStart::Fail(member)),
        (State::Degraded, false) => world.fail(member),
        (State::Rebuilding, false) => {
            world.fail(member);
            world.keep_for_start(AtStart::Add(member, Box::new(fresh())));
        }
    }
}

/// What the rebuild that began with what is measured did up to now; `None` when there was none.
pub(super) fn progress(world: &World) -> Option<Rebuild> {
    let events = world.event_times().iter().copied().zip(world.events());
    Rebuild::up_to(world.now(), world.started(), events, under_way(world))
}

/// How far the rebuild under way is.
fn under_way(world: &World) -> Option<WorkStatus> {
    world.array().status().work.filter(|status| matches!(status.work, Work::Rebuild(_)))
}

/// The share of a rebuild that is done, 0 to 1; `None` where there is none.
pub(super) fn share_done(world: &World) -> Option<f64> {
    match under_way(world) {
        Some(WorkStatus { done, of, .. }) => Some(done.0 as f64 / (of.0 as f64).max(1.0)),
        None => has_ended(world).then_some(1.0),
    }
}

/// Lets a rebuild go on alone until it ends, or `most` of each member is done.
pub(super) fn run_alone(world: &mut World, most: Sectors) -> Option<Rebuild> {
    while let Some(status) = under_way(world) {
        if status.done >= most || !world.step() {
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
