//! Nothing is allocated per request once a drive is set up.

mod rig;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use raidlab_core::units::{Sector, Time};
use raidlab_models::{DriveInput, DriveIo, DriveIoId, DriveOutput, HardDisk, HardDiskSpec};
use rig::{Random, Read, Write, queueing_figures};

/// The system's allocator, counting.
struct Counting;

thread_local! {
    /// Allocations of this thread; those of the test harness are none of ours.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that is ending has nothing to count with any more.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: everything is handed to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    // SAFETY: the caller's promises are those that the system's allocator asks for.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    // SAFETY: the caller's promises are those that the system's allocator asks for.
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }

    // SAFETY: the caller's promises are those that the system's allocator asks for.
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_drive_allocates_nothing_per_request() {
    for name in ["nas-8tb-7200", "pata-80gb-7200", "desktop-2tb-7200"] {
        let spec = HardDiskSpec::new(queueing_figures(name)).unwrap();
        let mut disk = HardDisk::new(&spec, 1);
        let mut random = Random(4);
        let (mut now, mut wake, mut pending) = (Time::ZERO, None, 0);
        let before = ALLOCATIONS.get();
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
        let made = ALLOCATIONS.get() - before;
        assert_eq!(made, 0, "{name}: {made} allocations for 60,000 requests");
    }
    let before = ALLOCATIONS.get();
    drop(vec![0_u8; 100]);
    assert_eq!(ALLOCATIONS.get() - before, 1, "it does count");
}
