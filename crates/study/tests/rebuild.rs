//! How far a rebuild is said to be.

use raidlab_core::array::WorkStatus;
use raidlab_core::contract::{Event, Work};
use raidlab_core::{MemberIndex, Nanos, Sectors, Time};
use raidlab_study::Rebuild;

fn at(done: u64, of: u64, at_once: u64, rests: u64) -> WorkStatus {
    WorkStatus {
        work: Work::Rebuild(MemberIndex(1)),
        done: Sectors(done),
        of: Sectors(of),
        at_once: Sectors(at_once),
        rests: Nanos(rests),
        ends: None,
    }
}

/// Of what was begun at once neither sectors nor time count, or both with all of the rest that follows.
#[test]
fn the_rest_after_what_was_done_is_part_of_its_time() {
    let started = Event::Started(Work::Rebuild(MemberIndex(1)));
    let up_to = |status| Rebuild::up_to(Time(100), Time(10), [(Time(10), &started)], Some(status));
    let rebuild = |elapsed, done| Some(Rebuild { elapsed: Nanos(elapsed), done });
    assert_eq!(up_to(at(300, 1_100, 100, 0)), rebuild(90, 0.2));
    assert_eq!(up_to(at(250, 1_000, 0, 910)), rebuild(1_000, 0.25));
}

#[test]
fn a_rebuild_is_done_when_its_end_is_told() {
    let work = Work::Rebuild(MemberIndex(1));
    let started = Event::Started(work);
    let (mismatched, lost) = (Sectors::ZERO, Sectors::ZERO);
    let finished = Event::Finished { work, mismatched, lost };
    let up_to = |events: &[(u64, &Event)], under_way: Option<(u64, u64)>| {
        let events = events.iter().map(|(at, event)| (Time(*at), *event));
        let under_way = under_way.map(|(done, of)| at(done, of, 0, 0));
        Rebuild::up_to(Time(100), Time(10), events, under_way)
    };
    let rebuild = |elapsed, done| Some(Rebuild { elapsed: Nanos(elapsed), done });
    assert_eq!(up_to(&[], None), None);
    assert_eq!(up_to(&[(10, &started)], Some((1, 4))), rebuild(90, 0.25));
    // All is copied, and not yet recorded: whether that is under way or not.
    assert_eq!(up_to(&[(10, &started)], Some((4, 4))), rebuild(90, 0.999_999));
    assert_eq!(up_to(&[(10, &started)], None), rebuild(90, 0.999_999));
    assert_eq!(up_to(&[(10, &started), (60, &finished)], None), rebuild(50, 1.0));
    let interrupted = Event::Interrupted(work);
    assert_eq!(up_to(&[(10, &started), (20, &interrupted)], None), rebuild(90, 0.0));
    let again = [(10, &started), (20, &interrupted), (30, &started)];
    assert_eq!(up_to(&again, Some((2, 4))), rebuild(90, 0.5));
}
