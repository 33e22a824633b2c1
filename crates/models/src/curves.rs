//! What a drive's figures amount to, as curves: seek time over distance, rate over capacity, random
//! requests a second over queue depth. The last two are measured on the model itself.

use raidlab_core::units::{Nanos, Sector, Sectors, Time};

use crate::device::Drive;
use crate::disk::geometry::Geometry;
use crate::disk::seek::SeekCurve;
use crate::drive::{DriveInput, DriveIo, DriveIoId, DriveOp, DriveOutput};
use crate::file::DriveKind;
use crate::spec::HardDiskSpec;
use raidlab_random::SplitMix64;

/// Sectors of a read of [`sequential_rate`]: 1 MiB.
const BLOCK: u64 = 2_048;
/// Sectors of a random request: 4 KiB.
const SMALL: u64 = 8;

/// Read seek over `steps` distances from one cylinder to all of them, by ascending distance: cylinders
/// and time. They lie closer together where the curve bends.
pub fn seek_curve(spec: &HardDiskSpec, steps: u32) -> Vec<(u32, Nanos)> {
    let f = spec.figures();
    let cylinders = Geometry::new(f).count();
    let curve = SeekCurve::new(f, cylinders);
    let longest = u64::from(cylinders - 1);
    let steps = u64::from(steps.max(1));
    let distance = |step: u64| (longest * step * step / (steps * steps)).max(1) as u32;
    let mut points: Vec<_> = (0..=steps).map(distance).collect();
    points.dedup();
    points.into_iter().map(|distance| (distance, Nanos(curve.time(distance)))).collect()
}

/// The rate of a stream of reads, in bytes per second, at `places` places spread over the capacity.
pub fn sequential_rate(kind: &DriveKind, places: u32) -> Vec<(Sector, u64)> {
    let capacity = Drive::new(kind, 1).capacity().0;
    let length = (128 * BLOCK).min(capacity / 2 / BLOCK * BLOCK);
    let last = capacity.saturating_sub(length);
    let places = u64::from(places.max(2));
    let rate = |place: u64| {
        let from = last / (places - 1) * place / BLOCK * BLOCK;
        let mut bench = Bench::new(kind);
        // The first reads find their way to the place.
        let warm = length / BLOCK / 4;
        let read = |n: u64| (DriveOp::Read, from + n * BLOCK, BLOCK);
        bench.run(2, warm, read);
        let count = length / BLOCK - warm;
        let time = bench.run(2, count, |n| read(n + warm));
        let bytes = Sectors(count * BLOCK).bytes();
        (Sector(from), (bytes as f64 / time.as_secs()) as u64)
    };
    (0..places).map(rate).collect()
}

/// Random requests of 4 KiB a second over the whole drive, `depth` in flight, in steady work: buffers
/// are full before it is measured, larger caches (pseudo-SLC, media cache) are not.
pub fn random_rate(kind: &DriveKind, op: DriveOp, depth: u32) -> f64 {
    let mut bench = Bench::new(kind);
    let places = bench.drive.capacity().0 / SMALL;
    let mut random = SplitMix64::new(u64::from(depth));
    let draw = |_| (op, random.below(places) * SMALL, SMALL);
    let (warm, count) = match kind {
        DriveKind::HardDisk(spec) => (3 * u64::from(spec.figures().write_extents), 1_500),
        DriveKind::Smr(spec) => (3 * u64::from(spec.figures().disk.write_extents), 1_500),
        DriveKind::Ssd(_) => (20_000, 40_000),
    };
    let warm = if op == DriveOp::Read { 64 } else { warm };
    let mut draw = draw;
    bench.run(depth, warm, &mut draw);
    count as f64 / bench.run(depth, count, &mut draw).as_secs()
}

/// A drive under a closed loop.
struct Bench {
    drive: Drive,
    now: Time,
    wake: Option<Time>,
}

impl Bench {
    fn new(kind: &DriveKind) -> Self {
        Self { drive: Drive::new(kind, 1), now: Time::ZERO, wake: None }
    }

    /// Carries out `count` commands, `depth` at once; gives the time that they took.
    fn run(
        &mut self,
        depth: u32,
        count: u64,
        mut draw: impl FnMut(u64) -> (DriveOp, u64, u64),
    ) -> Nanos {
        let start = self.now;
        let (mut asked, mut done) = (0, 0);
        while done < count {
            if asked < count && asked - done < u64::from(depth.max(1)) {
                let (op, at, len) = draw(asked);
                let id = DriveIoId(asked as u32);
                let io = DriveIo { id, op, at: Sector(at), len: len as u32, fua: false };
                self.drive.handle(self.now, DriveInput::Submit(io));
                asked += 1;
            } else if let Some(at) = self.wake.take() {
                self.now = self.now.max(at);
                self.drive.handle(self.now, DriveInput::Wake);
            } else {
                // A drive with work always asks to be woken.
                break;
            }
            while let Some(output) = self.drive.poll() {
                match output {
                    DriveOutput::Complete { .. } => done += 1,
                    DriveOutput::WakeAt(at) => self.wake = Some(at),
                }
            }
        }
        Nanos(self.now.since(start).0.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::load;

    #[test]
    fn curves_are_those_of_the_figures() {
        let drive = load("nas-8tb-7200").unwrap();
        let DriveKind::HardDisk(spec) = &drive.kind else { panic!() };
        let f = spec.figures();
        let seeks = seek_curve(spec, 40);
        assert!(seeks.is_sorted());
        assert_eq!(seeks[0], (1, f.track_to_track));
        assert_eq!(seeks.last().unwrap().1, f.full_stroke);
        let rates = sequential_rate(&drive.kind, 5);
        let within = |rate: u64, figure: u64| (rate as f64 / figure as f64 - 1.0).abs() < 0.02;
        assert!(within(rates[0].1, f.outer_rate), "{rates:?}");
        assert!(within(rates[4].1, f.inner_rate), "{rates:?}");
        let one = random_rate(&drive.kind, DriveOp::Read, 1);
        let turn = 60.0 / f64::from(f.rpm);
        let expected = 1.0 / ((f.average_seek + f.command_overhead).as_secs() + turn / 2.0);
        assert!((one / expected - 1.0).abs() < 0.1, "{one} against {expected}");
    }
}
