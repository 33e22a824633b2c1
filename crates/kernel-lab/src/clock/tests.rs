use super::*;
use crate::fake::{FakeBus, Sent};

fn message(operation: u32, sequence: u32, time: u64) -> Message {
    Message { operation, sequence, time }
}

fn sent(operation: u32, sequence: u32, time: u64) -> Sent {
    Sent::Clock(message(operation, sequence, time).encode())
}

/// What the guest hears when it says this.
fn answer(clock: &mut Clock, bus: &mut FakeBus, said: Message) -> (Heard, Vec<Sent>) {
    let heard = clock.message(bus, said).expect("is known");
    (heard, bus.take_sent())
}

/// A clock whose guest has started and, if it can, shares the page.
fn started(page: bool, guest_shares: bool) -> (Clock, FakeBus) {
    let (mut clock, mut bus) = (Clock::new(page), FakeBus::new());
    let (heard, said) = answer(&mut clock, &mut bus, message(START, 1, 77));
    assert_eq!(heard, Heard::Nothing);
    let raw = message(ACKNOWLEDGE, 1, 1).encode();
    assert_eq!(said, [if page { Sent::ClockWithPage(raw) } else { Sent::Clock(raw) }]);
    if guest_shares {
        bus.page[page::GUEST + page::CAPABILITIES] = 1;
    }
    let (_, said) = answer(&mut clock, &mut bus, message(GET_TIME_OF_DAY, 2, 0));
    assert_eq!(said, [sent(ACKNOWLEDGE, 2, TIME_OF_DAY)]);
    assert_eq!(clock.shares_page(), page && guest_shares);
    (clock, bus)
}

#[test]
fn a_message_is_read_as_it_was_written() {
    let raw = message(7, 9, 1 << 40).encode();
    assert_eq!(raw[0..8], [7, 0, 0, 0, 9, 0, 0, 0]);
    assert_eq!(Message::decode(raw), message(7, 9, 1 << 40));
}

#[test]
fn without_the_page_all_is_told_and_acknowledged() {
    let (mut clock, mut bus) = started(false, false);
    let (_, said) = answer(&mut clock, &mut bus, message(UPDATE, 3, 500));
    assert_eq!(said, [sent(ACKNOWLEDGE, 3, 0)]);
    let (_, said) = answer(&mut clock, &mut bus, message(GET, 4, 0));
    assert_eq!(said, [sent(ACKNOWLEDGE, 4, 500)]);
    answer(&mut clock, &mut bus, message(REQUEST, 5, 2000));
    let (heard, said) = answer(&mut clock, &mut bus, message(WAIT, 6, 0));
    assert_eq!((heard, said), (Heard::Waits, vec![sent(ACKNOWLEDGE, 6, 0)]));
    assert_eq!(clock.asked(&mut bus).expect("is known"), Some(Time(2000)));

    clock.guest_may_go(&mut bus, Time(9000)).expect("can be told");
    assert!(!clock.is_acknowledged() && clock.guest_waits());
    assert_eq!(bus.take_sent(), [sent(FREE_UNTIL, 1, 9000)]);
    let (heard, said) = answer(&mut clock, &mut bus, message(ACKNOWLEDGE, 1, 0));
    assert_eq!((heard, said), (Heard::Acknowledged, vec![]));
    clock.guest_runs(&mut bus, Time(2000)).expect("can be told");
    assert_eq!(bus.take_sent(), [sent(RUN, 2, 2000)]);
    assert!(!clock.guest_waits());
    assert_eq!(clock.asked(&mut bus).expect("is known"), None);
}

#[test]
fn a_horizon_is_only_ever_drawn_nearer() {
    for shares in [false, true] {
        let (mut clock, mut bus) = started(shares, shares);
        clock.guest_may_go(&mut bus, Time(9000)).expect("can be told");
        if !shares {
            answer(&mut clock, &mut bus, message(ACKNOWLEDGE, 1, 0));
        }
        bus.take_sent();
        clock.shorten(&mut bus, Time(9500)).expect("can be told");
        assert!(bus.take_sent().is_empty() && clock.is_acknowledged());
        clock.shorten(&mut bus, Time(4000)).expect("can be told");
        if shares {
            assert_eq!(bus.page[page::FREE_UNTIL..][..8], 4000_u64.to_ne_bytes());
            assert!(bus.take_sent().is_empty());
        } else {
            assert_eq!(bus.take_sent(), [sent(FREE_UNTIL, 2, 4000)]);
        }
    }
}

#[test]
fn with_the_page_requests_stand_there_and_running_is_not_acknowledged() {
    let (mut clock, mut bus) = started(true, true);
    assert_eq!(bus.page[page::DRIVES], 1, "the drives know the page");
    bus.page[page::NOW..][..8].copy_from_slice(&1234_u64.to_ne_bytes());
    assert_eq!(clock.asked(&mut bus).expect("is known"), None);
    bus.page[page::GUEST + page::FLAGS] = 1;
    bus.page[page::GUEST + page::REQUESTED..][..8].copy_from_slice(&5000_u64.to_ne_bytes());
    let (heard, said) = answer(&mut clock, &mut bus, message(WAIT, 3, 0));
    assert_eq!((heard, said), (Heard::Waits, vec![]));
    assert_eq!(clock.asked(&mut bus).expect("is known"), Some(Time(5000)));
    assert_eq!(clock.last_known(), Time(1234));

    clock.drives_run(&mut bus, Time(3000)).expect("can be told");
    assert_eq!(bus.page[page::RUNNING..][..4], [0, 0, 2, 0]);
    clock.guest_may_go(&mut bus, Time(8000)).expect("can be told");
    clock.guest_runs(&mut bus, Time(5000)).expect("can be told");
    assert_eq!(bus.take_sent(), [sent(RUN, 1, 5000)]);
    assert!(clock.is_acknowledged());
    assert_eq!(bus.page[page::RUNNING..][..4], [1, 0, 2, 0]);
    assert_eq!(bus.page[page::NOW..][..8], 5000_u64.to_ne_bytes());
    assert_eq!(bus.page[page::FREE_UNTIL..][..8], 8000_u64.to_ne_bytes());
}

#[test]
fn a_kernel_that_does_not_know_the_page_is_told_everything() {
    let (mut clock, mut bus) = started(true, false);
    let (_, said) = answer(&mut clock, &mut bus, message(WAIT, 3, 0));
    assert_eq!(said, [sent(ACKNOWLEDGE, 3, 0)]);
}

#[test]
fn what_is_not_known_and_acknowledgements_of_nothing_are_refused() {
    let (mut clock, mut bus) = started(false, false);
    for wrong in [message(9, 3, 0), message(ACKNOWLEDGE, 3, 0), message(RUN, 3, 0)] {
        let refused = clock.message(&mut bus, wrong).expect_err("is not known");
        assert!(matches!(refused, Failure::Protocol(_)), "{refused}");
        assert!(bus.take_sent().is_empty());
    }
}
