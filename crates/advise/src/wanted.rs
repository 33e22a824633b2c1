//! What is asked: drives, work, limits, people.

use std::fmt;
use std::ops::RangeInclusive;

use raidlab_core::{Layout, Level, Sectors};
use raidlab_models::{DriveKind, DriveSpec};
use raidlab_risk::Model;
use raidlab_risk::prior::{Class, Range};

use crate::profile::{Part, Profile};
use crate::software::Software;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// How many drives: all of so many that are at hand, or from so many to so many that may be bought.
    pub drives: RangeInclusive<u16>,
    /// How many there may be later; none when `None`.
    pub later: Option<u16>,
    /// The drive, as it is modelled.
    pub drive: DriveSpec,
    /// What each drive holds, where they differ; an array uses as much of each as the smallest has.
    pub sizes: Vec<Sectors>,
    /// What will run the array: layouts that it has nothing like are not looked at.
    pub software: Software,
    /// The work.
    pub profile: Profile,
    /// How many streams, people or machines.
    pub streams: u32,
    /// So much of the time the work goes on, 0 to 1.
    pub busy: f64,
    /// What must be.
    pub limits: Limits,
    /// What counts most.
    pub prefer: Prefer,
    /// Hot spares: so many at most.
    pub spares: u16,
    /// Which chunks; the usual ones when empty.
    pub chunks: Vec<Sectors>,
    /// Which layouts alone are looked at; all when empty.
    pub among: Vec<Among>,
    /// How drives fail and people replace them; `rebuild` and `spares` are the candidate's.
    pub model: Model,
    /// What nobody knows of the drives: failures and defects a year, and common causes.
    pub unknown: [Range; 3],
    /// The mission in hours.
    pub mission: f64,
    /// Draws everything.
    pub seed: u64,
    /// Requests of a run at full length.
    pub requests: u64,
}

/// A layout, or all of a level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Among {
    /// This one, whatever its chunk unless that is not the default.
    Layout(Layout),
    /// Every one of the level.
    Level(Level),
    /// Every one of the two levels, the lower one first.
    Nested(Level, Level),
}

impl fmt::Display for Among {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Layout(layout) => layout.fmt(f),
            Self::Level(level) => level.fmt(f),
            Self::Nested(inner, outer) => {
                write!(f, "{inner}+{}", outer.name().trim_start_matches("raid"))
            }
        }
    }
}

/// Limits; `None` is none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Usable bytes at least.
    pub capacity: Option<u64>,
    /// Any so many drives may be lost.
    pub survive: u16,
    /// Seconds that 99 of 100 requests may take, healthy and degraded.
    pub tail: Option<f64>,
    /// What each part of the work that is counted in this unit must do at least: bytes a second where the unit is MB/s,
    /// else as it is counted.
    pub speed: Option<(f64, &'static str)>,
    /// Money for all drives, and for each.
    pub budget: Option<(f64, f64)>,
    /// Price of a drive without a limit: it is shown and counts.
    pub price: Option<f64>,
    /// Watts of all drives at most, and of each.
    pub watts: Option<(f64, f64)>,
}

/// What counts most where layouts are each better at something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefer {
    /// All alike.
    #[default]
    Balance,
    /// Speed and response times.
    Speed,
    /// Usable space.
    Capacity,
    /// Seldom losing data.
    Safety,
}

impl Prefer {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::Balance, Self::Speed, Self::Capacity, Self::Safety];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Balance => "balance",
            Self::Speed => "speed",
            Self::Capacity => "capacity",
            Self::Safety => "safety",
        }
    }
}

/// Chunks that are tried where nobody names any: a small one, md's default, two larger ones.
pub const CHUNKS: [Sectors; 4] = [Sectors(128), Sectors(512), Sectors(1024), Sectors(4096)];

/// Requests of a run at full length where nobody says.
pub const REQUESTS: u64 = 3_000;

impl Wanted {
    /// Whether the work comes at a rate of its own, and does not go as fast as it can.
    pub fn is_paced(&self) -> bool {
        self.profile.demand(self.streams).is_some()
    }

    /// Whether nothing is waited for but that buffers are not full: those of who must keep up, or the page cache that
    /// takes all that the work does, which is writing files in order.
    pub(crate) fn is_buffered(&self) -> bool {
        let is_cached = |part: &Part| part.is_on_files() && part.writes_in_order();
        self.is_paced() || self.profile.parts.iter().all(is_cached)
    }

    /// A question with nothing said but drives and work.
    pub fn new(drives: RangeInclusive<u16>, drive: DriveSpec, profile: Profile) -> Self {
        let class = class(&drive);
        let (failures, defects) = (class.failures(), class.defects());
        Self {
            drives,
            later: None,
            sizes: Vec::new(),
            software: Software::default(),
            streams: profile.streams,
            busy: profile.busy,
            profile,
            limits: Limits { survive: 1, ..Limits::default() },
            prefer: Prefer::default(),
            spares: 1,
            chunks: Vec::new(),
            among: Vec::new(),
            model: Model::usual(class),
            unknown: [failures, defects, raidlab_risk::prior::COMMON_CAUSE],
            mission: raidlab_risk::years(5.0),
            seed: 1,
            requests: REQUESTS,
            drive,
        }
    }

    /// What each member holds: as much as the smallest drive.
    pub fn member(&self) -> Sectors {
        self.sizes.iter().copied().min().unwrap_or(self.drive.capacity)
    }

    /// What contradicts itself, in words.
    ///
    /// # Errors
    /// With the flags that cannot be together, or cannot be.
    pub fn check(&self) -> Result<(), String> {
        let (least, most) = (*self.drives.start(), *self.drives.end());
        if least == 0 || most > 128 || least > most {
            return Err(format!("--drives {least}..{most}: write 1 to 128, the fewer first"));
        }
        let limits = &self.limits;
        if limits.survive >= most {
            return Err(format!(
                "--survive {} and --drives {most} contradict each other: of {most} drives at most {} can be lost",
                limits.survive,
                most - 1
            ));
        }
        if self.later.is_some_and(|later| later <= most) {
            let later = self.later.unwrap_or_default();
            return Err(format!("--drives-later {later}: write more than --drives, {most}"));
        }
        if !(0.0..=1.0).contains(&self.busy) {
            return Err("--busy: write a percentage from 0 to 100".into());
        }
        if !self.sizes.is_empty() && self.sizes.len() != usize::from(most) {
            return Err(format!(
                "--sizes names {} drives and --drives {most}: leave --drives out",
                self.sizes.len()
            ));
        }
        let demand = self.profile.demand(self.streams);
        if let (Some(demand), Some(_)) = (demand, limits.speed) {
            return Err(format!(
                "--speed: `{}` needs {:.1} MB/s whatever the array can do; say --streams",
                self.profile.name,
                demand / 1e6
            ));
        }
        self.model.check()
    }
}

/// The class of a drive.
pub const fn class(drive: &DriveSpec) -> Class {
    match drive.kind {
        DriveKind::Ssd(_) => Class::Ssd,
        DriveKind::HardDisk(_) | DriveKind::Smr(_) => Class::HardDisk,
    }
}

/// The rate of md's `speed_limit_max`: 200,000 KiB/s of each member.
const MOST: f64 = 204_800_000.0;

/// Hours in which a rebuild that nothing disturbs goes over a member: a full pass at the drive's rates, which fall
/// evenly from the outer edge inwards, and never faster than md's `speed_limit_max`.
pub fn idle_rebuild(drive: &DriveSpec, member: Sectors) -> f64 {
    raidlab_predict::pass(drive, member.bytes(), MOST) / 3_600.0
}

/// Hours of a rebuild beside work that goes on for `busy` of the time, during which it would take `loaded` hours.
pub fn rebuild_hours(idle: f64, loaded: f64, busy: f64) -> f64 {
    let rate = (1.0 - busy) / idle + if loaded.is_finite() { busy / loaded } else { 0.0 };
    1.0 / rate
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drive(name: &str) -> DriveSpec {
        raidlab_models::load(name).expect("compiled in")
    }

    /// 8 TB at 255 to 125 MB/s: 12.2 h; the outer 39 % are held to 204.8 MB/s, which makes it longer.
    #[test]
    fn an_idle_rebuild_is_a_full_pass_within_md_s_limit() {
        let nas = drive("nas-8tb-7200");
        let pass = 8.0e12 * (255.0f64 / 125.0).ln() / 130e6 / 3_600.0;
        let hours = idle_rebuild(&nas, nas.capacity);
        assert!(hours > pass && hours < 1.1 * pass, "{hours} against {pass}");
        // Summed over a thousand slices.
        let slice = nas.capacity.bytes() as f64 / 1_000.0;
        let sum: f64 = (0..1_000)
            .map(|at| slice / (255e6 - 130e6 * (f64::from(at) + 0.5) / 1_000.0).min(MOST) / 3_600.0)
            .sum();
        assert!((hours / sum - 1.0).abs() < 1e-4, "{hours} {sum}");
        let ssd = drive("ssd-sata-1tb");
        assert!((idle_rebuild(&ssd, ssd.capacity) - 1.36).abs() < 0.01);
    }

    #[test]
    fn rebuilds_have_the_array_to_themselves_when_nobody_works() {
        assert_eq!(rebuild_hours(10.0, 100.0, 0.0), 10.0);
        assert_eq!(rebuild_hours(10.0, 100.0, 1.0), 100.0);
        assert_eq!(rebuild_hours(10.0, f64::INFINITY, 0.5), 20.0);
        assert!((rebuild_hours(10.0, 100.0, 0.1) - 1.0 / 0.091).abs() < 1e-9);
    }

    #[test]
    fn contradictions_are_said() {
        let nas = || Profile::named("nas").expect("there");
        let wanted = |drives| Wanted::new(drives, drive("nas-8tb-7200"), nas());
        let mut asked = wanted(4..=4);
        asked.limits.survive = 4;
        let error = asked.check().expect_err("too many");
        assert!(error.contains("contradict each other"), "{error}");
        let asked = Wanted { later: Some(3), ..wanted(4..=4) };
        assert!(asked.check().expect_err("fewer").contains("--drives-later"));
        assert!(wanted(4..=4).check().is_ok());
    }

    /// Each contradiction by the flag that is to be changed; what just fits together is no contradiction.
    #[test]
    fn ends_of_what_can_be_asked_for_are_right() {
        let nas = || Profile::named("nas").expect("there");
        let asked = |drives, change: &dyn Fn(&mut Wanted)| {
            let mut wanted = Wanted::new(drives, drive("nas-8tb-7200"), nas());
            change(&mut wanted);
            wanted.check()
        };
        let nothing = |_: &mut Wanted| {};
        assert_eq!((asked(2..=128, &nothing), asked(4..=4, &nothing)), (Ok(()), Ok(())));
        for drives in [0..=4, 4..=129, RangeInclusive::new(6, 4)] {
            let error = asked(drives.clone(), &nothing).expect_err("no such range");
            assert!(
                error.starts_with("--drives ") && error.contains("1 to 128"),
                "{drives:?}: {error}"
            );
        }
        assert_eq!(asked(2..=4, &|wanted| wanted.limits.survive = 3), Ok(()));
        assert_eq!(asked(4..=4, &|wanted| wanted.later = Some(5)), Ok(()));
        for later in [3, 4] {
            let error = asked(4..=4, &|wanted| wanted.later = Some(later)).expect_err("no more");
            assert!(error.starts_with(&format!("--drives-later {later}: ")), "{error}");
        }
        for (busy, can_be) in
            [(0.0, true), (1.0, true), (-0.01, false), (1.01, false), (f64::NAN, false)]
        {
            assert_eq!(asked(4..=4, &|wanted| wanted.busy = busy).is_ok(), can_be, "{busy}");
        }
        for (count, can_be) in [(0, true), (3, false), (4, true), (5, false)] {
            let found = asked(4..=4, &|wanted| wanted.sizes = vec![Sectors(1 << 30); count]);
            assert_eq!(found.is_ok(), can_be, "{count} sizes of four drives");
        }
        let speed = |wanted: &mut Wanted| wanted.limits.speed = Some((1e8, "MB/s"));
        assert_eq!(asked(4..=4, &speed), Ok(()));
        let error = asked(4..=4, &|wanted| {
            wanted.profile = Profile::named("surveillance").expect("there");
            wanted.streams = 64;
            speed(wanted);
        });
        assert!(error.expect_err("at its own rate").contains("needs 32.0 MB/s whatever"));
        let error = asked(4..=4, &|wanted| wanted.model.wrong_pull = 2.0).expect_err("no chance");
        assert!(error.starts_with("wrong pull"), "{error}");
        let mut unequal = Wanted::new(4..=4, drive("nas-8tb-7200"), nas());
        assert_eq!(unequal.member(), unequal.drive.capacity);
        unequal.sizes = [7, 5, 6, 9].map(Sectors).to_vec();
        assert_eq!(unequal.member(), Sectors(5), "as much as the smallest");
    }
}
