//! The seek curve: through measured points, or through the three points that data sheets print.
//!
//! Between measured points it is a straight line, beyond the last one the line goes on. With three:
//!
//! Short seeks, up to a third of the cylinders, are acceleration and braking: a + b x sqrt(d). Long
//! ones coast at full speed: c + e x d. The form is that of Ruemmler and Wilkes, *An introduction to
//! disk drive modeling* (IEEE Computer, March 1994). The track-to-track figure is taken at d = 1, the
//! average at a third of the cylinders, where both parts meet, the full stroke at the end.

use crate::spec::HardDiskFigures;

/// Fixed-point bits of the coefficient and of the root.
const BITS: u32 = 16;

#[derive(Clone, Debug)]
pub(crate) struct SeekCurve {
    knee: u32,
    shortest: u64,
    average: u64,
    /// b, in nanoseconds per root of a cylinder, with [`BITS`] fractional bits.
    root: u64,
    /// Full stroke less average, over `span` cylinders.
    rise: u64,
    span: u64,
    /// Measured points by ascending distance; with them nothing above counts.
    points: Vec<(u32, u64)>,
}

impl SeekCurve {
    /// `cylinders` is at least 9, as a checked spec ensures.
    pub(crate) fn new(f: &HardDiskFigures, cylinders: u32) -> Self {
        let knee = cylinders / 3;
        let rise = (f.average_seek.0 - f.track_to_track.0) as f64;
        let root = rise / (f64::from(knee).sqrt() - 1.0) * f64::from(1u32 << BITS);
        Self {
            knee,
            shortest: f.track_to_track.0,
            average: f.average_seek.0,
            root: root as u64,
            rise: f.full_stroke.0 - f.average_seek.0,
            span: u64::from(cylinders - 1 - knee),
            points: f.seek_points.iter().map(|(distance, time)| (*distance, time.0)).collect(),
        }
    }

    /// Nanoseconds to move over `distance` cylinders, settled for reading; 0 for none.
    pub(crate) fn time(&self, distance: u32) -> u64 {
        if distance == 0 {
            0
        } else if !self.points.is_empty() {
            self.measured(distance)
        } else if distance < self.knee {
            // The root of a float is rounded alike on every machine, and several times as fast as that
            // of an integer.
            let shifted = f64::from(distance) * f64::from(1u32 << BITS) * f64::from(1u32 << BITS);
            let root = shifted.sqrt() as u64 - (1 << BITS);
            self.shortest + ((self.root * root) >> (2 * BITS))
        } else {
            // At most 1e9 x 2^31: fits.
            self.average + self.rise * u64::from(distance - self.knee) / self.span
        }
    }

    /// Along the measured points, of which there are at least two.
    fn measured(&self, distance: u32) -> u64 {
        let after = self.points.partition_point(|(one, _)| *one < distance);
        let after = after.clamp(1, self.points.len() - 1);
        let ((near, low), (far, high)) = (self.points[after - 1], self.points[after]);
        let (gone, span) = (i64::from(distance) - i64::from(near), i64::from(far - near));
        // Times of at most 1e9 and distances of at most 2^31: fits.
        (low as i64 + (high as i64 - low as i64) * gone / span).max(0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::geometry::Geometry;
    use crate::file;
    use raidlab_core::Nanos;

    #[test]
    fn passes_through_the_three_points_and_never_falls() {
        for name in ["nas-8tb-7200", "pata-80gb-7200"] {
            let file::DriveKind::HardDisk(spec) = file::load(name).unwrap().kind else { panic!() };
            let f = spec.figures();
            let cylinders = Geometry::new(f).count();
            let curve = SeekCurve::new(f, cylinders);
            assert_eq!(curve.time(0), 0);
            assert_eq!(curve.time(1), f.track_to_track.0);
            assert_eq!(curve.time(cylinders / 3), f.average_seek.0);
            assert_eq!(curve.time(cylinders - 1), f.full_stroke.0);
            let before_knee = curve.time(cylinders / 3 - 1);
            assert!(f.average_seek.0 - before_knee < 1_000, "a jump at the knee of {name}");
            let mut last = 0;
            for distance in 0..cylinders {
                let time = curve.time(distance);
                assert!(time >= last, "{name} falls at {distance}");
                last = time;
            }
        }
    }

    /// Known times of made-up figures, to the nanosecond: the same on any machine.
    #[test]
    fn a_curve_has_the_same_bits_on_any_machine() {
        let file::DriveKind::HardDisk(spec) = file::load("nas-8tb-7200").unwrap().kind else {
            panic!()
        };
        let f = HardDiskFigures {
            track_to_track: Nanos(800_001),
            average_seek: Nanos(8_333_333),
            full_stroke: Nanos(17_777_777),
            seek_points: Vec::new(),
            ..spec.figures().clone()
        };
        let curve = SeekCurve::new(&f, 333_331);
        let times = [1, 2, 3, 1_000, 99_999, 111_109, 111_111, 222_222, 333_330];
        assert_eq!(
            times.map(|distance| curve.time(distance)),
            [
                800_001, 809_390, 816_594, 1_494_161, 7_945_583, 8_333_298, 8_333_375, 13_055_640,
                17_777_777
            ]
        );
    }

    #[test]
    fn measured_points_are_joined_by_straight_lines() {
        let file::DriveKind::HardDisk(spec) = file::load("pata-80gb-7200").unwrap().kind else {
            panic!()
        };
        let mut f = spec.figures().clone();
        f.seek_points = [(1, 1_000), (5, 3_000), (10, 2_000), (110, 12_000)]
            .map(|(cylinders, us)| (cylinders, Nanos::from_micros(us)))
            .to_vec();
        let curve = SeekCurve::new(&f, 1_000);
        for (distance, us) in
            [(0, 0), (1, 1_000), (3, 2_000), (5, 3_000), (8, 2_400), (60, 7_000), (210, 22_000)]
        {
            assert_eq!(curve.time(distance), us * 1_000, "{distance}");
        }
    }
}
