//! Which setting of md's to use: the knee, where its rebuild is not too long, or what holds a wanted p99.

use raidlab_advise::Objective;
use raidlab_explore::throttle::{Policy, milliseconds};
use raidlab_risk::words;

use super::print::rebuilt;
use super::{Curves, Point};

/// Those whose effect was compared with a kernel's. Where the least rate changes nothing, the most does.
const OF_MD: [Policy; 2] = [Policy::Md, Policy::MdMax];
/// Hours of a rebuild beyond which no setting is told for its knee, unless the fastest takes longer.
const WEEK: f64 = 168.0;

/// A setting to use.
pub(super) struct Choice<'a> {
    pub(super) point: &'a Point,
    /// The knee of its policy, which is passed over as its rebuild is too long.
    pub(super) passed_over: Option<&'a Point>,
}

impl Curves<'_> {
    /// The fastest rebuild by md's rates.
    fn fastest(&self) -> Option<&Point> {
        let of_md = self.points.iter().filter(|point| OF_MD.contains(&point.policy));
        of_md
            .filter(|point| point.hours().is_finite())
            .min_by(|one, other| one.hours().total_cmp(&other.hours()))
    }

    /// How many times as often the array is lost as with the fastest setting, where a rebuild is longer than is
    /// worth a shorter p99: by that more than a step of indifference, or by more than a week.
    pub(super) fn too_long(&self, point: &Point) -> Option<f64> {
        let fastest = self.fastest()?;
        let times = point.risk / fastest.risk.max(f64::MIN_POSITIVE);
        let is_riskier = times > Objective::Risk.step() && point.risk >= words::LEAST;
        (is_riskier || point.hours() > WEEK.max(fastest.hours())).then_some(times)
    }

    /// The setting to use; none where nothing holds the wanted p99, or no knee is told.
    pub(super) fn choice(&self) -> Option<Choice<'_>> {
        if self.most.is_some() {
            let holding = OF_MD.into_iter().filter_map(|policy| self.holds(policy));
            let point = holding.min_by(|one, other| one.hours().total_cmp(&other.hours()))?;
            return Some(Choice { point, passed_over: None });
        }
        let with_knee = |policy: Policy| Some((policy, self.knee(policy).ok()?));
        let (policy, at) = OF_MD.into_iter().find_map(with_knee)?;
        let points = self.of(policy);
        let knee = points[at];
        if self.too_long(knee).is_none() {
            return Some(Choice { point: knee, passed_over: None });
        }
        let able = points.into_iter().filter(|point| {
            point.hours().is_finite() && point.tail().is_finite() && self.too_long(point).is_none()
        });
        let point = able.min_by(|one, other| {
            one.tail().total_cmp(&other.tail()).then(one.hours().total_cmp(&other.hours()))
        })?;
        Some(Choice { point, passed_over: Some(knee) })
    }

    /// The choice in words.
    pub(super) fn chosen(&self) -> Option<String> {
        let choice = self.choice();
        let Some(Choice { point, passed_over }) = choice else {
            let most = milliseconds(self.most?.as_secs());
            return Some(format!("No setting of md's that was run holds a p99 of {most}."));
        };
        let command = point.setting.command()?;
        let hours = rebuilt(point.hours());
        if let Some(most) = self.most {
            let most = milliseconds(most.as_secs());
            let cost = self.too_long(point).map(|times| {
                let times = words::times(times);
                format!(" That is long: losing the array is {times} times as likely as with the fastest setting.")
            });
            let cost = cost.unwrap_or_default();
            return Some(format!(
                "To use on Linux: {command} (holds a p99 of {most} here; rebuilt in {hours}).{cost}"
            ));
        }
        Some(match passed_over {
            None => format!(
                "To use on Linux: {command}, the knee: a shorter p99 costs more of the rebuild from there on, a \
                 faster rebuild more p99. Rebuilt in {hours}."
            ),
            Some(knee) => format!(
                "To use on Linux: {command}, which has a p99 of {}. Rebuilt in {hours}. Not the knee, {}: rebuilt in \
                 {}, it loses the array {} times as often as the fastest setting. Without --p99 no setting is told \
                 that does so more than {} times as often (above 1 in 100,000), nor one of more than a week where \
                 the fastest takes less.",
                milliseconds(point.tail()),
                knee.setting.in_words(),
                rebuilt(knee.hours()),
                words::times(self.too_long(knee).unwrap_or(1.0)),
                Objective::Risk.step()
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use raidlab_core::Nanos;
    use raidlab_explore::throttle::{Outcome, Setting};
    use raidlab_study::{CellKey, State, Study};

    use super::*;

    /// md's most, by hours, milliseconds and the chance of losing the array.
    fn curves<'a>(study: &'a Study, of: &[(f64, f64, f64)], most: Option<Nanos>) -> Curves<'a> {
        let key = CellKey {
            layout: 0,
            workload: 0,
            processes: 1,
            state: State::Rebuilding,
            again: false,
        };
        let point = |(at, (hours, millis, risk)): (usize, &(f64, f64, f64))| {
            let run = |by: f64| Outcome { hours: hours * by, tail: millis * by / 1e3, rate: 1.0 };
            let setting = Setting::Most(1_000 << at);
            let runs = [0.99, 1.0, 1.01].map(run).to_vec();
            Point { policy: Policy::MdMax, setting, runs, risk: *risk }
        };
        let points = of.iter().enumerate().map(point).collect();
        Curves { study, key, alone: Vec::new(), points, floor: Vec::new(), most }
    }

    fn study() -> Study {
        raidlab_study::parse(raidlab_study::default_study(), "the default study").expect("right")
    }

    fn told(curves: &Curves<'_>) -> String {
        curves.chosen().unwrap_or_default()
    }

    /// A curve whose bend is at its second point, whatever the risk.
    const BENT: [(f64, f64, f64); 5] = [
        (2_000.0, 10.0, 0.02),
        (1_000.0, 11.0, 0.01),
        (100.0, 60.0, 0.0014),
        (50.0, 80.0, 0.0012),
        (25.0, 90.0, 0.001),
    ];

    /// A knee of six weeks, over which the array is lost ten times as often, is no setting to use; the one with the
    /// shortest p99 is that costs no more than a step of risk.
    #[test]
    fn a_knee_is_passed_over_where_its_rebuild_is_a_risk() {
        let study = study();
        let found = curves(&study, &BENT, None);
        assert_eq!(found.knee(Policy::MdMax), Ok(1));
        let said = told(&found);
        assert!(
            said.starts_with("To use on Linux: sysctl dev.raid.speed_limit_max=4000, "),
            "{said}"
        );
        assert!(said.contains("Not the knee, speed_limit_max 2000: "), "{said}");
        assert!(said.contains("loses the array 10 times as often"), "{said}");
        let choice = found.choice().expect("one");
        assert_eq!(choice.passed_over.map(|knee| knee.setting), Some(Setting::Most(2_000)));
    }

    /// Below 1 in 100,000 no risk is told apart: then it is the week alone that counts, and where the fastest takes
    /// longer, that.
    #[test]
    fn a_rebuild_of_more_than_a_week_is_too_long_whatever_the_risk() {
        let study = study();
        let safe = BENT.map(|(hours, millis, risk)| (hours, millis, risk * 1e-4));
        let said = told(&curves(&study, &safe, None));
        assert!(said.contains("speed_limit_max=4000, which has"), "{said}");
        let short = safe.map(|(hours, millis, risk)| (hours / 10.0, millis, risk));
        let said = told(&curves(&study, &short, None));
        assert!(said.contains("speed_limit_max=2000, the knee"), "{said}");
        let slow = safe.map(|(hours, millis, risk)| (hours * 10.0, millis, risk));
        let said = told(&curves(&study, &slow, None));
        assert!(said.contains("speed_limit_max=16000, which has"), "{said}");
    }

    /// Whoever wants a p99 gets it, and is told what it costs.
    #[test]
    fn a_wanted_p99_is_held_at_any_risk() {
        let study = study();
        let wanted = |millis| told(&curves(&study, &BENT, Some(Nanos::from_millis(millis))));
        let said = wanted(12);
        assert!(said.contains("speed_limit_max=2000 (holds a p99 of 12.0 ms here"), "{said}");
        assert!(said.contains("10 times as likely as with the fastest"), "{said}");
        let said = wanted(200);
        assert!(
            said.contains("speed_limit_max=16000 (") && !said.contains("That is long"),
            "{said}"
        );
        assert!(wanted(5).contains("No setting of md's that was run holds a p99 of 5.00 ms"));
    }
}
