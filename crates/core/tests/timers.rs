//! Moments the array waits for: what comes later does not put them off.

use crate::support::{Driver, Work};
use raidlab_core::contract::{Input, IoOp, Segment};
use raidlab_core::{Config, Layout, Level, Nanos, Sectors, Time};

/// An I/O that is never answered is given up at its own deadline, however many go out after it.
#[test]
fn later_io_puts_no_deadline_off() {
    const DEADLINE: u64 = 1000;
    let mut config = Config::uniform(Layout::new(Level::Raid1, 2), Sectors(160));
    config.settings.deadline = Some(Nanos(DEADLINE));
    let mut driver = Driver::new(&config);
    let read = |driver: &mut Driver, at| {
        let token = driver.buffer(vec![0; 8]);
        driver.submit(IoOp::Read, at, &[Segment { token, offset: 0, len: 8 }]);
    };
    read(&mut driver, 0);
    assert_eq!(driver.wake, Some(Time(DEADLINE)));
    let Work::Io(first) = driver.work[0] else { panic!("a read goes to a member") };
    for (at, now) in [(64, 400), (128, 800)] {
        driver.now = Time(now);
        read(&mut driver, at);
    }
    driver.now = Time(DEADLINE);
    driver.input(Input::Wake);
    let given_up = driver.work.iter().filter_map(|work| match work {
        Work::Abandoned(io) => Some(*io),
        _ => None,
    });
    assert_eq!(given_up.collect::<Vec<_>>(), [first.io]);
    assert_eq!(driver.wake, Some(Time(DEADLINE + 400)));
}
