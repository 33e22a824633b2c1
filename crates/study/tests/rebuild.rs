//! How far a rebuild is said to be.

use raidlab_core::contract::{Event, Work};
use raidlab_core::{MemberIndex, Nanos, Sectors, Time};
use raidlab_study::Rebuild;

#[test]
fn a_rebuild_is_done_when_its_end_is_told() {
    let work = Work::Rebuild(MemberIndex(1));
    let started = Event::Started(work);
    let (mismatched, lost) = (Sectors::ZERO, Sectors::ZERO);
    let finished = Event::Finished { work, mismatched, lost };
    let up_to = |events: &[(u64, &Event)], under_way: Option<(u64, u64)>| {
        let events = events.iter().map(|(at, event)| (Time(*at), *event));
        let under_way = under_way.map(|(done, of)| (Sectors(done), Sectors(of)));
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
