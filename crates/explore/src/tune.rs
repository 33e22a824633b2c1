//! The search for the smallest window of read-ahead that is as good as any: the window is doubled from the
//! kernel's default until that gains nothing more, then three quarters of the best are looked at, and the
//! knee is the smallest window within a margin of the best.
//!
//! [`Search`] knows windows and rates only, not who measures them; [`rate`] measures in virtual time.

use raidlab_models::host::{HostSpec, Kernel, READ_AHEAD, read_ahead_for};
use raidlab_study::Study;
use raidlab_workload::{Setting, Workload};

use raidlab_predict::Modelled;

/// When a search ends and what it calls as good as the best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// A window that gains less than this share over the best of the smaller ones gains nothing; above 0,
    /// below 1.
    pub gain: f64,
    /// How many windows in a row may gain nothing before the search ends; at least 1.
    pub misses: u32,
    /// The knee is the smallest window whose rate is within this share of the best; 0 to below 1.
    pub margin: f64,
    /// No window is larger, in bytes.
    pub most: u64,
    /// Windows are multiples of this many bytes.
    pub grain: u64,
}

/// A window with the rates it gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Bytes.
    pub window: u64,
    /// A rate for each seed; not empty, finite and above 0.
    pub rates: Vec<f64>,
}

impl Point {
    /// The mean of the rates.
    pub fn mean(&self) -> f64 {
        self.rates.iter().sum::<f64>() / self.rates.len() as f64
    }

    /// The least and the most of the rates.
    pub fn spread(&self) -> (f64, f64) {
        let fold = |first: f64, of: fn(f64, f64) -> f64| self.rates.iter().copied().fold(first, of);
        (fold(f64::INFINITY, f64::min), fold(f64::NEG_INFINITY, f64::max))
    }
}

/// Why windows were not doubled any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Larger ones gained nothing.
    NoGain,
    /// The next would have been larger than [`Rule::most`].
    Most,
}

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Found {
    /// The window of the best mean.
    pub best: u64,
    /// Its mean.
    pub best_rate: f64,
    /// The smallest window within the margin of the best.
    pub knee: u64,
    /// Its mean.
    pub knee_rate: f64,
    /// Why it ended.
    pub ended: Ended,
}

/// A search, which is told the rates of the windows it asks for.
#[derive(Clone, Debug)]
pub struct Search {
    rule: Rule,
    points: Vec<Point>,
    next: Option<u64>,
    best_so_far: f64,
    misses: u32,
    /// Why windows are not doubled any more, once they are not.
    ended: Option<Ended>,
}

impl Search {
    /// Begins at a window.
    ///
    /// # Errors
    /// In words, when the rule or the window cannot be.
    pub fn new(start: u64, rule: Rule) -> Result<Self, String> {
        if !(rule.gain > 0.0 && rule.gain < 1.0) {
            return Err(format!(
                "a gain of {} %; must be above 0 and below 100",
                rule.gain * 100.0
            ));
        }
        if !(0.0..1.0).contains(&rule.margin) {
            let percent = rule.margin * 100.0;
            return Err(format!("a margin of {percent} %; must be from 0 to below 100"));
        }
        if rule.misses == 0 || rule.grain == 0 {
            return Err("a search that may not miss, or of windows of nothing".into());
        }
        let start = (start / rule.grain * rule.grain).max(rule.grain);
        if start > rule.most {
            let (from, most) = (start >> 10, rule.most >> 10);
            return Err(format!(
                "the search begins at {from} KiB, what the kernel reads ahead by itself, which is more \
                 than the most, {most} KiB"
            ));
        }
        let next = Some(start);
        Ok(Self { rule, points: Vec::new(), next, best_so_far: 0.0, misses: 0, ended: None })
    }

    /// The window whose rates are wanted; `None` when the search has ended.
    pub fn next(&self) -> Option<u64> {
        self.next
    }

    /// Takes the rates of the window that [`next`](Self::next) asked for.
    ///
    /// # Errors
    /// In words, when there are none, or some are not above 0, or nothing was asked for.
    pub fn record(&mut self, rates: Vec<f64>) -> Result<(), String> {
        let window = self.next.take().ok_or("the search has ended")?;
        if rates.is_empty() || rates.iter().any(|rate| !(rate.is_finite() && *rate > 0.0)) {
            return Err(format!("rates of {} KiB that cannot be: {rates:?}", window >> 10));
        }
        let point = Point { window, rates };
        let mean = point.mean();
        self.points.push(point);
        if self.ended.is_some() {
            return Ok(());
        }
        let gains = mean >= self.best_so_far * (1.0 + self.rule.gain);
        self.misses = if gains { 0 } else { self.misses + 1 };
        self.best_so_far = self.best_so_far.max(mean);
        let doubled = window.saturating_mul(2);
        if self.misses >= self.rule.misses {
            self.ended = Some(Ended::NoGain);
        } else if doubled > self.rule.most {
            self.ended = Some(Ended::Most);
        } else {
            self.next = Some(doubled);
            return Ok(());
        }
        self.next = self.three_quarters();
        Ok(())
    }

    /// Three quarters of the best, unless that was measured. Where the search began is what one has anyway:
    /// nothing smaller is looked for.
    fn three_quarters(&self) -> Option<u64> {
        let window = self.best()?.window / 4 * 3 / self.rule.grain * self.rule.grain;
        let start = self.points.first()?.window;
        let measured = self.points.iter().any(|point| point.window == window);
        (window > start && !measured).then_some(window)
    }

    /// The point of the best mean; of equals the smallest.
    fn best(&self) -> Option<&Point> {
        let better = |one: &&Point, other: &&Point| {
            one.mean().total_cmp(&other.mean()).then(other.window.cmp(&one.window))
        };
        self.points.iter().max_by(better)
    }

    /// What was measured, in the order of the windows.
    pub fn points(&self) -> Vec<&Point> {
        let mut points: Vec<&Point> = self.points.iter().collect();
        points.sort_by_key(|point| point.window);
        points
    }

    /// What was found; `None` before the search has ended.
    pub fn found(&self) -> Option<Found> {
        let ended = self.ended.filter(|_| self.next.is_none())?;
        let best = self.best()?;
        let least = best.mean() * (1.0 - self.rule.margin);
        let points = self.points();
        let knee = points.into_iter().find(|point| point.mean() >= least).unwrap_or(best);
        Some(Found {
            best: best.window,
            best_rate: best.mean(),
            knee: knee.window,
            knee_rate: knee.mean(),
            ended,
        })
    }
}

/// How the window of a host is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knob {
    /// FreeBSD's `vfs.read_max`, in blocks of the filesystem of so many bytes.
    ReadMax(u64),
    /// Linux's `blockdev --setra` and `hdparm -a`, in sectors of 512 bytes.
    SetRa,
}

impl Knob {
    /// That of a host.
    pub fn of(host: &HostSpec) -> Self {
        match host.kernel {
            Kernel::FreeBsd6_2 => Self::ReadMax(host.filesystem.block),
            _ => Self::SetRa,
        }
    }

    /// What its figure is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadMax(_) => "vfs.read_max",
            Self::SetRa => "sectors",
        }
    }

    /// What windows are multiples of in bytes: its unit, and whole pages.
    pub const fn grain(self) -> u64 {
        match self {
            Self::ReadMax(block) => block,
            Self::SetRa => 4_096,
        }
    }

    /// Its figure for a window of so many bytes.
    pub const fn figure(self, window: u64) -> u64 {
        match self {
            Self::ReadMax(block) => window / block,
            Self::SetRa => window / 512,
        }
    }

    /// The command that sets a window; `device` is what Linux calls the array, such as `/dev/md0`.
    pub fn command(self, window: u64, device: &str) -> String {
        let figure = self.figure(window);
        match self {
            Self::ReadMax(_) => format!("sysctl vfs.read_max={figure}"),
            Self::SetRa => format!("blockdev --setra {figure} {device}"),
        }
    }
}

/// The host of a layout: the study's, or today's defaults.
pub fn host(study: &Study, layout: usize) -> HostSpec {
    study.host_of(layout).map_or_else(HostSpec::default, |host| host.spec)
}

/// Bytes that the kernel of a layout's host reads ahead when nobody sets it, on one disk where a controller
/// shows it that: where its search begins.
pub fn default_window(study: &Study, layout: usize) -> u64 {
    let named = &study.layouts[layout];
    if named.hardware.controller.is_some() {
        return READ_AHEAD;
    }
    read_ahead_for(host(study, layout).kernel, &named.layout)
}

/// Megabytes a second that a workload's processes get from a layout with a window, in virtual time: its first
/// metric.
///
/// # Errors
/// In words: what keeps it from running.
pub fn rate(
    modelled: &Modelled<'_>,
    layout: usize,
    workload: &dyn Workload,
    window: u64,
    setting: Setting,
) -> Result<f64, String> {
    let world = modelled.world(layout, setting.seed);
    let mut world = world.map_err(|error| error.to_string())?;
    let window = Some(window);
    let record = modelled.record_on_host_of(layout, window, &mut world, workload, setting)?;
    let value = workload.values(&record).first().copied().flatten();
    value.ok_or_else(|| "no time passed; give the files a larger size".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;
    const RULE: Rule =
        Rule { gain: 0.02, misses: 2, margin: 0.02, most: 16_384 * KIB, grain: 4 * KIB };

    /// Runs a search over a curve of windows in KiB; the windows in the order they were asked for, and the
    /// result.
    fn search(start: u64, rule: Rule, curve: impl Fn(u64) -> Vec<f64>) -> (Vec<u64>, Found) {
        let mut search = Search::new(start * KIB, rule).expect("can be");
        let mut asked = Vec::new();
        while let Some(window) = search.next() {
            assert_eq!(search.found(), None, "not before the end");
            asked.push(window / KIB);
            search.record(curve(window / KIB)).expect("a rate");
        }
        assert!(search.record(vec![1.0]).is_err(), "nothing was asked for");
        let ordered: Vec<u64> = search.points().iter().map(|point| point.window).collect();
        assert!(ordered.is_sorted());
        (asked, search.found().expect("an end"))
    }

    #[test]
    fn a_plateau_ends_the_search_at_its_second_miss() {
        let curve = |window: u64| vec![window.min(512) as f64 / 10.0];
        let (asked, found) = search(128, RULE, curve);
        assert_eq!(asked, [128, 256, 512, 1_024, 2_048, 384]);
        assert_eq!((found.best, found.knee), (512 * KIB, 512 * KIB));
        assert_eq!(found.ended, Ended::NoGain);
        assert_eq!((found.best_rate, found.knee_rate), (51.2, 51.2));
        // The knee lies lower for those who are content with less.
        let rule = Rule { margin: 0.3, ..RULE };
        assert_eq!(search(128, rule, curve).1.knee, 384 * KIB, "three quarters count");
        let rule = Rule { margin: 0.5, ..RULE };
        assert_eq!(search(128, rule, curve).1.knee, 256 * KIB);
    }

    #[test]
    fn what_grows_for_ever_ends_at_the_most() {
        let (asked, found) = search(128, RULE, |window| vec![window as f64]);
        assert_eq!(asked, [128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384, 12_288]);
        assert_eq!((found.knee, found.ended), (16_384 * KIB, Ended::Most));
        let rule = Rule { most: 700 * KIB, ..RULE };
        let (asked, found) = search(128, rule, |window| vec![window as f64]);
        assert_eq!((asked, found.ended), (vec![128, 256, 512, 384], Ended::Most));
    }

    #[test]
    fn a_peak_is_found_behind_one_miss() {
        // 1 % less at 256 is a miss, 512 gains again, what comes behind falls.
        let curve = |window: u64| {
            vec![match window {
                128 => 100.0,
                256 => 99.0,
                384 => 119.0,
                512 => 120.0,
                1_024 => 90.0,
                _ => 60.0,
            }]
        };
        let (asked, found) = search(128, RULE, curve);
        assert_eq!(asked, [128, 256, 512, 1_024, 2_048, 384]);
        assert_eq!((found.best, found.knee), (512 * KIB, 384 * KIB));
        // Who gives up at the first miss does not find it, and nothing below the start is looked at.
        let (asked, found) = search(128, Rule { misses: 1, ..RULE }, curve);
        assert_eq!((asked, found.knee), (vec![128, 256], 128 * KIB));
    }

    /// Half of a fall made good is not a gain over what a smaller window gave.
    #[test]
    fn a_fall_is_no_ground_for_a_gain() {
        let curve =
            |window: u64| vec![[100.0, 80.0, 90.0, 95.0, 99.0][window.ilog2() as usize - 7]];
        let (asked, found) = search(128, RULE, curve);
        assert_eq!((asked, found.best), (vec![128, 256, 512], 128 * KIB));
    }

    #[test]
    fn growth_in_steps_below_the_threshold_is_no_gain() {
        // Each is 1.5 % more than the one before: two of them are 3 %, but none gains 2 %.
        let curve = |window: u64| vec![100.0 * 1.015_f64.powf((window as f64 / 128.0).log2())];
        let (asked, found) = search(128, RULE, curve);
        assert_eq!(asked, [128, 256, 512, 384]);
        assert_eq!((found.best, found.knee), (512 * KIB, 256 * KIB));
    }

    #[test]
    fn noise_within_the_margin_does_not_move_the_knee() {
        let noise = [0.3, -0.4, 0.1, -0.2, 0.35, -0.1, 0.2, -0.3, 0.15];
        let curve = |window: u64| {
            let at = (window as f64 / 128.0).log2().ceil() as usize;
            let level = if window < 512 { window as f64 / 10.0 } else { 51.2 };
            (0..3).map(|seed| level + noise[(at + seed) % noise.len()]).collect()
        };
        let (_, found) = search(128, RULE, curve);
        assert_eq!(found.knee, 512 * KIB);
        let point = Point { window: 1, rates: vec![50.0, 52.0, 51.0] };
        assert_eq!((point.mean(), point.spread()), (51.0, (50.0, 52.0)));
    }

    #[test]
    fn windows_are_whole_units_and_begin_within_the_most() {
        let rule = Rule { grain: 16 * KIB, ..RULE };
        let (asked, _) = search(16, rule, |_| vec![5.0]);
        assert_eq!(asked, [16, 32, 64]);
        let (asked, _) = search(100, rule, |window| vec![window.min(200) as f64]);
        assert_eq!(asked, [96, 192, 384, 768, 1_536, 288], "less than what is begun with");
        let (asked, found) = search(1, rule, |window| vec![window.min(30) as f64]);
        assert_eq!((asked, found.best), (vec![16, 32, 64, 128], 32 * KIB), "24 is no unit");
    }

    #[test]
    fn rules_and_rates_that_cannot_be_are_refused() {
        let wrong = |rule: Rule| Search::new(128 * KIB, rule).expect_err("cannot be");
        for gain in [0.0, -0.1, 1.0, f64::NAN] {
            assert!(wrong(Rule { gain, ..RULE }).contains("a gain of"));
        }
        for margin in [-0.1, 1.0, f64::NAN] {
            assert!(wrong(Rule { margin, ..RULE }).contains("a margin of"));
        }
        assert!(wrong(Rule { misses: 0, ..RULE }).contains("may not miss"));
        let small = wrong(Rule { most: 64 * KIB, ..RULE });
        assert!(small.contains("begins at 128 KiB") && small.contains("64 KiB"), "{small}");
        for rates in [vec![], vec![0.0], vec![1.0, f64::NAN]] {
            let mut search = Search::new(128 * KIB, RULE).expect("can be");
            assert!(search.record(rates).expect_err("no rates").contains("of 128 KiB"));
        }
    }

    #[test]
    fn windows_are_set_as_the_systems_count() {
        let free = Knob::of(&Kernel::FreeBsd6_2.spec());
        assert_eq!(free.command(2 << 20, "/dev/md0"), "sysctl vfs.read_max=128");
        let linux = Knob::of(&Kernel::Linux2_6_20.spec());
        assert_eq!(linux.command(2 << 20, "/dev/md0"), "blockdev --setra 4096 /dev/md0");
        assert_eq!((free.grain(), linux.grain()), (16 * KIB, 4 * KIB));
    }

    #[test]
    fn a_rule_that_cannot_be_is_refused() {
        let rule = Rule { gain: 0.02, misses: 2, margin: 0.02, most: 64 << 20, grain: 4096 };
        assert!(Search::new(128 << 10, rule).is_ok() && Search::new(64 << 20, rule).is_ok());
        for wrong in [
            Rule { gain: 0.0, ..rule },
            Rule { gain: 1.0, ..rule },
            Rule { margin: 1.0, ..rule },
            Rule { margin: -0.1, ..rule },
            Rule { misses: 0, ..rule },
            Rule { grain: 0, ..rule },
            Rule { most: 64 << 10, ..rule },
        ] {
            assert!(Search::new(128 << 10, wrong).is_err(), "{wrong:?}");
        }
    }
}
