//! Where sectors lie and when they pass under the heads.
//!
//! Zones of cylinders, filled cylinder by cylinder, surface by surface. Tracks are skewed: by exactly
//! the time a switch takes when only rates are known, by so many sectors when the zones were
//! measured. A stream across tracks loses the skew and no more (a skew too short for its switch
//! costs a turn more). Therefore every sector has one *media time*: how long a stream from sector 0
//! takes to reach its start. Media time modulo a turn is the sector's angle, and the difference of
//! two media times is the time a stream takes from one to the other, across any number of tracks and
//! zones, without a loop.
//!
//! Where measured zones hold more than the capacity, the rest is spare sectors, and lies at the end
//! of every cylinder in equal shares.

use super::policy::ZoneRow;
use crate::spec::HardDiskFigures;

/// A sector's place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spot {
    /// Media time of the sector's start, in nanoseconds.
    pub media: u64,
    /// Media time of its track's start.
    pub track_media: u64,
    /// Its cylinder, 0 outermost.
    pub cylinder: u32,
    /// Its surface.
    pub head: u32,
    /// Its place on the track.
    pub sector: u32,
    /// Sectors that pass in a turn on this track.
    pub sectors: u32,
    /// Those of them that hold data; the others, at its end, are spare.
    pub used: u32,
}

/// A number by which others are divided often, of which the product with it is less than 2^64.
#[derive(Clone, Copy, Debug)]
struct Divisor {
    by: u64,
    /// 2^64 over it, rounded up; 0 for 1. The error of a quotient is then less than the number times the
    /// divisor over 2^64, over the divisor: too little to reach the next one.
    inverse: u64,
}

impl Divisor {
    fn new(by: u64) -> Self {
        Self { by, inverse: if by == 1 { 0 } else { u64::MAX / by + 1 } }
    }

    /// Quotient and rest.
    #[inline]
    fn split(self, number: u64) -> (u64, u64) {
        if self.inverse == 0 {
            return (number, 0);
        }
        let quotient = ((u128::from(number) * u128::from(self.inverse)) >> 64) as u64;
        (quotient, number - quotient * self.by)
    }
}

#[derive(Clone, Debug)]
struct Zone {
    first: u64,
    media: u64,
    cylinder: u32,
    sectors: u32,
    by_sectors: Divisor,
    /// Sectors of a cylinder that hold data.
    per_cylinder: u64,
    by_cylinder: Divisor,
    track_time: u64,
    cylinder_time: u64,
}

/// The places of all sectors of a drive.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    zones: Vec<Zone>,
    /// The zone in which each so many sectors begin, as a power of two: where a search begins.
    guesses: Vec<u32>,
    guess_shift: u32,
    turn: u64,
    heads: u32,
    cylinders: u32,
}

/// Steps of the capacity, at least, whose zones are remembered.
const GUESSES: u64 = 256;

/// Nanoseconds of a turn of a drive that turns exactly at its speed.
fn turn_as_specified(f: &HardDiskFigures) -> u64 {
    60_000_000_000 / u64::from(f.rpm)
}

/// Nanoseconds of a turn.
pub(crate) fn turn(f: &HardDiskFigures) -> u64 {
    turn_as_specified(f).saturating_add_signed(f.turn_drift)
}

/// Nanoseconds from the end of a cylinder's last track to the start of the next cylinder's first
/// one: the arm moves and, with several surfaces, another head takes over meanwhile.
fn cylinder_switch(f: &HardDiskFigures) -> u64 {
    let head_switch = if f.heads > 1 { f.head_switch.0 } else { 0 };
    f.track_to_track.0.max(head_switch)
}

/// Nanoseconds a stream spends per cylinder: a turn per track, and the switches between them.
fn cylinder_time(f: &HardDiskFigures, turn: u64) -> u64 {
    let heads = u64::from(f.heads);
    heads * turn + (heads - 1) * f.head_switch.0 + cylinder_switch(f)
}

/// Sectors per track of a zone, outermost first: the sustained rate falls linearly from zone to
/// zone, as the length of tracks does from cylinder to cylinder. They are those of the model: a drive that turns
/// slower than another has the same sectors, which pass more slowly.
fn zone_sectors(f: &HardDiskFigures, zone: u32) -> u32 {
    let steps = f64::from((f.zones - 1).max(1));
    let (outer, inner) = (f.outer_rate as f64, f.inner_rate as f64);
    let rate = outer - (outer - inner) * f64::from(zone) / steps;
    let cylinder = cylinder_time(f, turn_as_specified(f));
    let bytes = rate * cylinder as f64 / 1e9 / f64::from(f.heads);
    ((bytes / 512.0 + 0.5) as u32).max(1)
}

fn cylinders_per_zone(f: &HardDiskFigures) -> u64 {
    let sectors: u64 = (0..f.zones).map(|zone| u64::from(zone_sectors(f, zone))).sum();
    f.capacity.0.div_ceil(sectors * u64::from(f.heads))
}

/// Zones by rates.
fn ramp(f: &HardDiskFigures) -> Vec<Zone> {
    let per_zone = cylinders_per_zone(f);
    let cylinder_time = cylinder_time(f, turn(f));
    let mut first = 0;
    let zone = |zone: u32| {
        let before = u64::from(zone) * per_zone;
        let sectors = zone_sectors(f, zone);
        let per_cylinder = u64::from(sectors) * u64::from(f.heads);
        let made = Zone {
            first,
            media: before * cylinder_time,
            cylinder: before as u32,
            sectors,
            by_sectors: Divisor::new(u64::from(sectors)),
            per_cylinder,
            by_cylinder: Divisor::new(per_cylinder),
            track_time: turn(f) + f.head_switch.0,
            cylinder_time,
        };
        first += per_cylinder * per_zone;
        made
    };
    (0..f.zones).map(zone).collect()
}

/// Zones by measurement.
fn measured(f: &HardDiskFigures) -> Vec<Zone> {
    let (turn, heads) = (turn(f), u64::from(f.heads));
    let all = Geometry::table_sectors(f);
    let spare = all - f.capacity.0;
    let (mut first, mut media) = (0, 0);
    let zone = |row: &ZoneRow| {
        let sectors = u64::from(row.sectors);
        let skewed = |skew: u32, switch: u64| {
            let time = u64::from(skew) * turn / sectors;
            if time < switch { time + turn } else { time }
        };
        let track_time = turn + skewed(row.track_skew, f.head_switch.0);
        let last = turn + skewed(row.cylinder_skew, cylinder_switch(f));
        let cylinder_time = (heads - 1) * track_time + last;
        let whole = sectors * heads;
        // Rounded down, so that the cylinders hold the capacity; of the last track a sector stays.
        let spares = (u128::from(whole) * u128::from(spare) / u128::from(all)) as u64;
        let per_cylinder = whole - spares.min(sectors - 1);
        let cylinder = row.first;
        let made = Zone {
            first,
            media,
            cylinder,
            sectors: row.sectors,
            by_sectors: Divisor::new(u64::from(row.sectors)),
            per_cylinder,
            by_cylinder: Divisor::new(per_cylinder),
            track_time,
            cylinder_time,
        };
        let cylinders = u64::from(row.last - row.first) + 1;
        first += per_cylinder * cylinders;
        media += cylinder_time * cylinders;
        made
    };
    f.zone_table.iter().map(zone).collect()
}

impl Geometry {
    /// Bytes per second that pass under a head where the sustained rate is `sustained`, at the exact speed.
    pub(crate) fn raw_rate(f: &HardDiskFigures, sustained: u64) -> u64 {
        let turn = turn_as_specified(f);
        let turns = f64::from(f.heads) * turn as f64;
        (sustained as f64 * cylinder_time(f, turn) as f64 / turns) as u64
    }

    /// Bytes per second that pass under a head in the outermost zone.
    pub(crate) fn outermost_raw_rate(f: &HardDiskFigures) -> u64 {
        match f.zone_table.first() {
            Some(zone) => u64::from(zone.sectors) * 512 * u64::from(f.rpm) / 60,
            None => Self::raw_rate(f, f.outer_rate),
        }
    }

    /// How many cylinders these figures make.
    pub(crate) fn cylinders(f: &HardDiskFigures) -> u64 {
        match f.zone_table.last() {
            Some(zone) => u64::from(zone.last) + 1,
            None => cylinders_per_zone(f) * u64::from(f.zones),
        }
    }

    /// Whether the capacity needs every zone, as it should.
    pub(crate) fn fills_zones(f: &HardDiskFigures) -> bool {
        let before: u64 = (0..f.zones - 1).map(|zone| u64::from(zone_sectors(f, zone))).sum();
        before * u64::from(f.heads) * cylinders_per_zone(f) < f.capacity.0
    }

    /// Sectors that measured zones hold, spare ones included.
    pub(crate) fn table_sectors(f: &HardDiskFigures) -> u64 {
        let cylinders = |zone: &ZoneRow| u64::from(zone.last - zone.first) + 1;
        let of = |zone: &ZoneRow| cylinders(zone) * u64::from(zone.sectors);
        f.zone_table.iter().map(of).sum::<u64>() * u64::from(f.heads)
    }

    pub(crate) fn new(f: &HardDiskFigures) -> Self {
        let zones = if f.zone_table.is_empty() { ramp(f) } else { measured(f) };
        let cylinders = Self::cylinders(f) as u32;
        // Zones are many more sectors than a step, so that a guess is right or one too low.
        let guess_shift = (f.capacity.0 / GUESSES).max(1).ilog2();
        let steps = 0..=f.capacity.0 >> guess_shift;
        let behind = |at: u64| zones.partition_point(|zone| zone.first <= at);
        let guesses = steps.map(|step| behind(step << guess_shift) as u32 - 1).collect();
        Self { zones, guesses, guess_shift, turn: turn(f), heads: f.heads, cylinders }
    }

    /// How many cylinders the drive has.
    pub(crate) fn count(&self) -> u32 {
        self.cylinders
    }

    /// The zone of a sector.
    #[inline]
    fn zone(&self, at: u64) -> &Zone {
        let step = ((at >> self.guess_shift) as usize).min(self.guesses.len() - 1);
        let mut zone = self.guesses[step] as usize;
        while self.zones.get(zone + 1).is_some_and(|next| next.first <= at) {
            zone += 1;
        }
        &self.zones[zone]
    }

    /// The first sector of the next cylinder.
    pub(crate) fn cylinder_end(&self, at: u64) -> u64 {
        let zone = self.zone(at);
        at + zone.per_cylinder - zone.by_cylinder.split(at - zone.first).1
    }

    /// The place of a sector.
    pub(crate) fn locate(&self, at: u64) -> Spot {
        let zone = self.zone(at);
        let (cylinder, rest) = zone.by_cylinder.split(at - zone.first);
        let (head, sector) = zone.by_sectors.split(rest);
        let (head, sector) = (head as u32, sector as u32);
        let track_media =
            zone.media + cylinder * zone.cylinder_time + u64::from(head) * zone.track_time;
        Spot {
            media: track_media + zone.by_sectors.split(u64::from(sector) * self.turn).0,
            track_media,
            cylinder: zone.cylinder + cylinder as u32,
            head,
            sector,
            sectors: zone.sectors,
            used: zone.sectors.min(zone.per_cylinder as u32 - head * zone.sectors),
        }
    }

    /// Media time at which the `len` sectors from `at`, which lies at `from`, have passed, and the
    /// place of the last of them. `len` is at least 1.
    pub(crate) fn end(&self, from: &Spot, at: u64, len: u64) -> (u64, Spot) {
        let passed = u64::from(from.sector) + len;
        if passed <= u64::from(from.used) {
            let media = from.track_media + passed * self.turn / u64::from(from.sectors);
            return (media, *from);
        }
        let last = self.locate(at + len - 1);
        let passed = u64::from(last.sector) + 1;
        (last.track_media + passed * self.turn / u64::from(last.sectors), last)
    }

    /// The first sector that a stream has not wholly passed at this media time, and the cylinder
    /// and surface it is on. The inverse of [`end`](Self::end).
    pub(crate) fn reached(&self, media: u64) -> (u64, u32, u32) {
        let zone = &self.zones[self.zones.partition_point(|zone| zone.media <= media) - 1];
        let offset = media - zone.media;
        let cylinder = offset / zone.cylinder_time;
        let rest = offset % zone.cylinder_time;
        let head = (rest / zone.track_time).min(u64::from(self.heads) - 1);
        let on_track = rest - head * zone.track_time;
        let sectors = u64::from(zone.sectors);
        let passed = (((on_track + 1) * sectors - 1) / self.turn).min(sectors);
        let on_cylinder = (head * sectors + passed).min(zone.per_cylinder);
        let at = zone.first + cylinder * zone.per_cylinder + on_cylinder;
        (at, zone.cylinder + cylinder as u32, head as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file;
    use raidlab_random::SplitMix64;

    #[test]
    fn divisors_divide() {
        let mut random = SplitMix64::new(3);
        for by in (1..300).chain([1 << 12, (1 << 12) + 1, 65_535, 1_000_003, u64::from(u32::MAX)]) {
            let divisor = Divisor::new(by);
            let most = (u64::MAX >> 1) / by;
            let near = [0, 1, by - 1, by, by + 1].into_iter().filter(|number| *number <= most);
            let multiples = (0..200).map(|_| random.below(most / by + 1) * by);
            let around = multiples.flat_map(|one| [one.saturating_sub(1), one]);
            for number in near.chain(around).chain([most - most % by, most]) {
                assert_eq!(divisor.split(number), (number / by, number % by), "{number} / {by}");
            }
        }
    }

    fn geometry(name: &str) -> (HardDiskFigures, Geometry) {
        let file::DriveKind::HardDisk(spec) = file::load(name).unwrap().kind else { panic!() };
        (spec.figures().clone(), Geometry::new(spec.figures()))
    }

    #[test]
    fn media_time_runs_without_gaps_except_switches() {
        for name in ["nas-8tb-7200", "pata-80gb-7200"] {
            let (f, g) = geometry(name);
            let mut at = 0;
            let mut seen = [0u32; 3];
            while at < 40 * u64::from(g.zones[0].sectors) {
                let spot = g.locate(at);
                let left = u64::from(spot.used - spot.sector);
                let (end, last) = g.end(&spot, at, left);
                assert_eq!((last.cylinder, last.head), (spot.cylinder, spot.head));
                let next = g.locate(at + left);
                let (kind, gap) = if next.cylinder == spot.cylinder {
                    (0, f.head_switch.0)
                } else {
                    (1, f.track_to_track.0.max(f.head_switch.0))
                };
                assert_eq!(next.media - end, gap, "{name} at {at}");
                seen[kind] += 1;
                at += left;
            }
            assert!(seen[0] > 0 && seen[1] > 0);
            let border = g.zones[1].first;
            let spot = g.locate(border - 1);
            let (end, _) = g.end(&spot, border - 1, 1);
            assert_eq!(g.locate(border).media - end, f.track_to_track.0.max(f.head_switch.0));
            assert_eq!(g.locate(border).cylinder, spot.cylinder + 1);
        }
    }

    /// The tolerance is of the speed: all drives of a model have the same places, which pass faster or slower.
    #[test]
    fn a_drive_that_turns_slower_has_the_same_tracks_and_a_lower_rate() {
        for name in ["nas-8tb-7200", "pata-80gb-7200"] {
            let (f, exact) = geometry(name);
            let most = turn(&f) as i64 / 100;
            for turn_drift in [-most, most] {
                let drive = HardDiskFigures { turn_drift, ..f.clone() };
                let other = Geometry::new(&drive);
                assert_eq!(other.count(), exact.count());
                let sectors = |g: &Geometry| g.zones.iter().map(|z| z.sectors).collect::<Vec<_>>();
                assert_eq!(sectors(&other), sectors(&exact), "{name}: {turn_drift}");
                for at in (0..f.capacity.0).step_by(f.capacity.0 as usize / 97) {
                    let (here, there) = (exact.locate(at), other.locate(at));
                    let place = |spot: &Spot| (spot.cylinder, spot.head, spot.sector);
                    assert_eq!(place(&there), place(&here), "{name}: {turn_drift}, {at}");
                    // A track later by the drift of a turn for each track in front of it.
                    let tracks =
                        u64::from(here.cylinder) * u64::from(f.heads) + u64::from(here.head);
                    let media = here.track_media as i64 + tracks as i64 * turn_drift;
                    assert_eq!(there.track_media as i64, media, "{name}: {turn_drift}, {at}");
                }
                let rate = Geometry::outermost_raw_rate(&drive);
                assert_eq!(rate, Geometry::outermost_raw_rate(&f), "that of the model");
            }
        }
    }

    #[test]
    fn end_and_reached_are_inverse() {
        let (f, g) = geometry("nas-8tb-7200");
        let mut at = 12_345;
        while at + 5_000 < f.capacity.0 {
            for len in [1, 7, 600, 4_999] {
                let spot = g.locate(at);
                let (end, last) = g.end(&spot, at, len);
                assert_eq!(g.reached(end), (at + len, last.cylinder, last.head), "{at}+{len}");
                assert_eq!(g.reached(end - 1).0, at + len - 1, "{at}+{len}");
            }
            at += 7_777_777_777 / 5;
        }
    }

    #[test]
    fn zones_hold_the_capacity_and_rates_of_the_file() {
        for name in ["nas-8tb-7200", "pata-80gb-7200"] {
            let (f, g) = geometry(name);
            let last = g.locate(f.capacity.0 - 1);
            assert!(last.cylinder < g.count());
            assert!(g.count() - last.cylinder <= f.zones + 1, "{name}: unused cylinders");
            for (zone, rate) in [(0, f.outer_rate), (g.zones.len() - 1, f.inner_rate)] {
                let bytes = g.zones[zone].per_cylinder as f64 * 512.0;
                let sustained = bytes / (g.zones[zone].cylinder_time as f64 / 1e9);
                assert!((sustained / rate as f64 - 1.0).abs() < 0.002, "{name} zone {zone}");
            }
        }
    }

    /// Measured zones, with spare cylinders between them and spare sectors in every cylinder.
    fn measured() -> (HardDiskFigures, Geometry) {
        let (mut f, _) = geometry("pata-80gb-7200");
        let zone = |first, last, sectors| ZoneRow {
            first,
            last,
            sectors,
            track_skew: sectors / 5,
            cylinder_skew: sectors / 3,
        };
        f.zone_table = vec![zone(0, 299, 186), zone(301, 599, 157), zone(601, 999, 119)];
        f.capacity = raidlab_core::units::Sectors(Geometry::table_sectors(&f) * 96 / 100);
        let geometry = Geometry::new(&f);
        (f, geometry)
    }

    #[test]
    fn measured_zones_hold_the_capacity_and_leave_spare_sectors_free() {
        let (f, g) = measured();
        let last = g.locate(f.capacity.0 - 1);
        assert!((990..1_000).contains(&last.cylinder), "{last:?}");
        assert_eq!(g.count(), 1_000);
        let per_cylinder = g.zones[0].per_cylinder;
        assert_eq!(per_cylinder, 4 * 186 - 4 * 186 * 4 / 100);
        let end = g.locate(per_cylinder - 1);
        assert_eq!((end.cylinder, end.head, end.sector + 1), (0, 3, end.used));
        let next = g.locate(per_cylinder);
        assert_eq!((next.cylinder, next.head, next.sector, next.used), (1, 0, 0, 186));
        assert_eq!(g.cylinder_end(5), per_cylinder);
        let border = g.zones[1].first;
        assert_eq!((g.locate(border - 1).cylinder, g.locate(border).cylinder), (299, 301));
    }

    #[test]
    fn end_and_reached_are_inverse_across_spare_sectors() {
        let (f, g) = measured();
        for at in (0..f.capacity.0 - 900).step_by(337) {
            let mut before = 0;
            for len in [1, 7, 140, 800] {
                let spot = g.locate(at);
                let (end, last) = g.end(&spot, at, len);
                assert!(end > before, "{at}+{len}");
                before = end;
                assert_eq!(g.reached(end), (at + len, last.cylinder, last.head), "{at}+{len}");
                assert_eq!(g.reached(end - 1).0, at + len - 1, "{at}+{len}");
            }
        }
    }
}
