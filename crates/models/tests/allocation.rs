//! Nothing is allocated per request once a drive is set up.

#[path = "../../../tests/support/counting.rs"]
mod counting;
mod harness;

use counting::of_this_thread;
use harness::{Read, Write, queueing_figures};
use raidlab_core::units::{Sector, Time};
use raidlab_models::{DriveInput, DriveIo, DriveIoId, DriveOutput, HardDisk, HardDiskSpec};
use raidlab_random::SplitMix64;

#[test]
fn a_drive_allocates_nothing_per_request() {
    for name in ["nas-8tb-7200", "pata-80gb-7200", "desktop-2tb-7200"] {
        let spec = HardDiskSpec::new(queueing_figures(name)).unwrap();
        let mut disk = HardDisk::new(&spec, 1);
        let mut random = SplitMix64::new(4);
        let (mut now, mut wake, mut pending) = (Time::ZERO, None, 0);
        let before = of_this_thread();
        for id in 0..60_000 {
            let op = if random.below(10) < 6 { Read } else { Write };
            let (at, len) = (random.below(disk.capacity().0 - 999), 1 + random.below(999) as u32);
            let fua = random.below(20) == 0;
            let io = DriveIo { id: DriveIoId(id), op, at: Sector(at), len, fua };
            disk.handle(now, DriveInput::Submit(io));
            pending += 1;
            loop {
                while let Some(output) = disk.poll() {
                    match output {
                        DriveOutput::Complete { .. } => pending -= 1,
                        DriveOutput::WakeAt(at) => wake = Some(at),
                    }
                }
                if pending < 64 {
                    break;
                }
                now = wake.take().expect("commands are under way");
                disk.handle(now, DriveInput::Wake);
            }
        }
        let made = of_this_thread() - before;
        assert_eq!(made, 0, "{name}: {made} allocations for 60,000 requests");
    }
    let before = of_this_thread();
    drop(vec![0_u8; 100]);
    assert_eq!(of_this_thread() - before, 1, "it does count");
}
