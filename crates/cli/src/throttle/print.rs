//! The curves of a cell as text and JSON.

use std::fmt::Write;

use raidlab_advise::days;
use raidlab_core::Level;
use raidlab_explore::throttle::{
    NoKnee, Outcome, PairedRatio, Policy, Setting, at_equal_time, knee_beyond_chance, milliseconds,
};
use raidlab_results::find::{LEAST_REBUILT_PERCENT, LEAST_REBUILT_SECONDS, PACED_SECONDS};
use raidlab_risk::words;
use raidlab_study::cell_title;
use serde_json::{Value, json};

use super::{Curves, Point, median};
use crate::json::pretty;
use crate::risk::print::folded;

/// Longer than the array is used: the rebuild as good as stands still.
const NEVER: f64 = 5.0 * 8_760.0;

impl Point {
    pub(super) fn hours(&self) -> f64 {
        median(self.runs.iter().map(|run| run.hours))
    }

    pub(super) fn tail(&self) -> f64 {
        median(self.runs.iter().map(|run| run.tail))
    }

    fn rate(&self) -> f64 {
        median(self.runs.iter().map(|run| run.rate))
    }

    /// By how many percent its p99 is above the one it is to hold; `None` where it holds it, or is to hold none.
    fn missed(&self) -> Option<f64> {
        let Setting::Target(target) = self.setting else { return None };
        let missed = (self.tail() / target.as_secs() - 1.0) * 100.0;
        (missed > 0.0).then_some(missed)
    }
}

impl Curves<'_> {
    pub(super) fn of(&self, policy: Policy) -> Vec<&Point> {
        self.points.iter().filter(|point| point.policy == policy).collect()
    }

    /// Those that were run, in order.
    fn policies(&self) -> Vec<Policy> {
        Policy::ALL.into_iter().filter(|policy| !self.of(*policy).is_empty()).collect()
    }

    pub(super) fn knee(&self, policy: Policy) -> Result<usize, NoKnee> {
        let points = self.of(policy);
        let curve: Vec<_> = points.iter().map(|point| (point.hours(), point.tail())).collect();
        let runs: Vec<&[Outcome]> = points.iter().map(|point| point.runs.as_slice()).collect();
        knee_beyond_chance(&curve, &runs)
    }

    /// Why no knee of a policy is told; `None` where one is.
    fn no_knee(&self, policy: Policy) -> Option<String> {
        match self.knee(policy) {
            Ok(_) => None,
            Err(NoKnee::Straight) => Some("its curve has none".to_owned()),
            Err(NoKnee::FewRuns) => Some(
                "fewer than 3 runs of a setting (--seeds) do not tell one from chance".to_owned(),
            ),
            Err(NoKnee::Chance(at)) => Some(format!(
                "{} would be it, but whether the next slower setting takes longer, and the next faster one has a \
                 longer p99, is within the 95 % intervals over {} seeds",
                self.of(policy)[at].setting.in_words(),
                self.alone.len()
            )),
        }
    }

    /// The fastest rebuild of a policy that holds the wanted p99.
    pub(super) fn holds(&self, policy: Policy) -> Option<&Point> {
        let most = self.most?.as_secs();
        let known = self.of(policy).into_iter().filter(|point| !point.hours().is_nan());
        let able = known.filter(|point| point.tail() <= most);
        able.min_by(|one, other| one.hours().total_cmp(&other.hours()))
    }

    /// The p99 at the floor of feedback; no number where that was not run.
    fn floor(&self) -> f64 {
        if self.floor.is_empty() { f64::NAN } else { median(self.floor.iter().map(|one| one.tail)) }
    }

    /// Whether feedback can hold what it is to hold: the floor does.
    fn is_reachable(&self, point: &Point) -> Option<bool> {
        let Setting::Target(target) = point.setting else { return None };
        (!self.floor().is_nan()).then(|| self.floor() <= target.as_secs())
    }

    fn alone(&self) -> (f64, f64) {
        let of = |figure: fn(&Outcome) -> f64| median(self.alone.iter().map(figure));
        (of(|one| one.tail), of(|one| one.rate))
    }

    /// Feedback against md where both rebuild in the same time, for each of md's settings that lies within feedback's
    /// curve.
    fn against_md(&self) -> Vec<(&Point, PairedRatio)> {
        let ours: Vec<&[Outcome]> =
            self.of(Policy::Feedback).iter().map(|point| point.runs.as_slice()).collect();
        let points = self.points.iter().filter(|point| point.policy.is_of_md());
        points
            .filter_map(|point| at_equal_time(&ours, &point.runs).map(|ratio| (point, ratio)))
            .collect()
    }
}

pub(super) fn rebuilt(hours: f64) -> String {
    match hours {
        hours if hours.is_nan() => "unknown".to_owned(),
        hours if hours >= NEVER => "never".to_owned(),
        hours => days(hours),
    }
}

/// A figure that may be none.
fn or_unknown(value: f64, shown: impl Fn(f64) -> String) -> String {
    if value.is_nan() { "unknown".to_owned() } else { shown(value) }
}

fn chance(risk: f64) -> String {
    or_unknown(risk, words::chance)
}

pub(super) fn text(curves: &Curves<'_>) -> String {
    let mut out = String::new();
    let title = cell_title(curves.study, &curves.key);
    let (tail, rate) = curves.alone();
    let _ = writeln!(out, "{title}");
    let text = format!(
        "Without a rebuild, a drive missing: p99 {}, {rate:.0} requests a second. The rebuild takes as long as \
         is said if the work never stops; it is extrapolated from where the drive begins.",
        milliseconds(tail)
    );
    out.push_str(&folded(&text, "", 0));
    for policy in curves.policies() {
        let _ = writeln!(
            out,
            "\n{:<26} {:>9} {:>11} {:>8} {:>9}  losing the array, 5 years",
            policy.name(),
            "rebuilt",
            "p99",
            "x alone",
            "a second"
        );
        let knee = curves.knee(policy);
        for (at, point) in curves.of(policy).into_iter().enumerate() {
            let mut mark = if knee == Ok(at) { " <- knee".to_owned() } else { String::new() };
            if let Some(missed) = point.missed() {
                let why = match curves.is_reachable(point) {
                    Some(false) => ": not reachable",
                    _ => "",
                };
                let _ = write!(mark, " (misses it by {:.0} %{why})", missed.ceil());
            }
            let _ = writeln!(
                out,
                "  {:<24} {:>9} {:>11} {:>8} {:>9}  {}{mark}",
                point.setting.in_words(),
                rebuilt(point.hours()),
                or_unknown(point.tail(), milliseconds),
                or_unknown(point.tail() / tail, |ratio| format!("{ratio:.2}")),
                or_unknown(point.rate(), |rate| format!("{rate:.0}")),
                chance(point.risk)
            );
        }
    }
    out.push('\n');
    for sentence in sentences(curves) {
        out.push_str(&folded(&sentence, "", 2));
    }
    out
}

/// Which setting to use, and what it rests on.
fn sentences(curves: &Curves<'_>) -> Vec<String> {
    let mut told: Vec<String> = curves.chosen().into_iter().collect();
    if curves.points.iter().any(|point| point.hours().is_nan()) {
        told.push(format!(
            "unknown: the work was over before {LEAST_REBUILT_PERCENT} % of the rebuild was done, and before \
             {LEAST_REBUILT_SECONDS} s, or it took less than {PACED_SECONDS} s: how the array's turns go on is not \
             told by that. Give the workload more to do, such as a larger size."
        ));
    }
    if curves.points.iter().any(|point| point.tail().is_nan()) {
        told.push(
            "unknown p99: the rebuild was over before nine tenths of the work, so the figures are not those of a \
             rebuild. Give the study a larger member_size."
                .to_owned(),
        );
    }
    told.extend(curves.policies().into_iter().filter_map(|policy| {
        let is_straight = curves.knee(policy) == Err(NoKnee::Straight);
        let reason = curves.no_knee(policy).filter(|_| !is_straight)?;
        Some(format!("No knee of {} is told: {reason}.", policy.name()))
    }));
    told.extend(depths(curves));
    told.extend(missed(curves));
    told.extend(feedback(curves));
    told.push(
        "md and md-max follow the rule of kernels before 6.16 (docs/fidelity.md has how near the model comes to 6.1 \
         and 6.12). md-6.16 is the rule since then, not checked against a kernel. mclock-like and zfs-like are shares \
         of the time only."
            .to_owned(),
    );
    told.push(format!("Losing data: {}. RAID is not a backup.", words::SCOPE));
    told
}

/// What a depth cannot set, as the array itself has no more in flight.
fn depths(curves: &Curves<'_>) -> Option<String> {
    let layout = &curves.study.layouts[curves.key.layout].layout;
    let is_told = layout.level == Level::Raid1 && !curves.of(Policy::MdDepth).is_empty();
    is_told.then(|| {
        "md-6.16: raid1 itself has 32 pieces in flight at most, so a larger sync_io_depth is never reached: with one \
         the rebuild makes room for nobody up to speed_limit_max."
            .to_owned()
    })
}

/// Where feedback does not hold what it is to hold, and why.
fn missed(curves: &Curves<'_>) -> Option<String> {
    let points = curves.of(Policy::Feedback);
    let missing = points.iter().filter_map(|point| Some((*point, point.missed()?)));
    let (reachable, beyond): (Vec<_>, Vec<_>) =
        missing.partition(|(point, _)| curves.is_reachable(point) != Some(false));
    let most = |of: &[(&Point, f64)]| of.iter().map(|one| one.1).reduce(f64::max);
    let mut told = format!(
        "feedback misses its p99 at {} of {} settings",
        reachable.len() + beyond.len(),
        points.len()
    );
    if let Some(most) = most(&beyond) {
        let _ = write!(
            told,
            ", {} of which are not reachable, by up to {:.0} %: even at the floor, {}, the p99 is {}",
            beyond.len(),
            most.ceil(),
            Setting::Floor.in_words(),
            milliseconds(curves.floor())
        );
    }
    if let Some(most) = most(&reachable) {
        let and = if beyond.is_empty() { ", by" } else { "; the others by" };
        let _ = write!(
            told,
            "{and} up to {:.0} %: the p99 of a run is that of a sample. More requests (number_ios) tell what it \
             holds in the long run",
            most.ceil()
        );
    }
    (!reachable.is_empty() || !beyond.is_empty()).then(|| told + ".")
}

fn feedback(curves: &Curves<'_>) -> Option<String> {
    let compared = curves.against_md();
    if compared.is_empty() {
        return None;
    }
    let better = compared.iter().filter(|(_, ratio)| ratio.is_better()).count();
    let worse: Vec<String> = compared
        .iter()
        .filter(|(_, ratio)| ratio.is_worse())
        .map(|(point, ratio)| format!("{} ({:.2} times)", point.setting.in_words(), ratio.mean))
        .collect();
    let all = compared.len();
    let mut told = format!(
        "feedback against md at equal rebuild time, 95 % intervals over {} seeds: a shorter p99 at {better} of {all} \
         settings, no difference at {}",
        curves.alone.len(),
        all - better - worse.len()
    );
    if worse.is_empty() {
        told.push_str(", longer at none.");
    } else {
        let _ = write!(told, ", longer at {}.", worse.join(", "));
    }
    Some(told)
}

pub(super) fn json(curves: &Curves<'_>) -> String {
    let (tail, rate) = curves.alone();
    let point = |point: &Point| {
        json!({
            "policy": point.policy.name(),
            "setting": point.setting.in_words(),
            "command": point.setting.command(),
            "rebuild_hours": point.hours(),
            "p99_s": point.tail(),
            "p99_missed_by_percent": point.missed(),
            "p99_reachable": curves.is_reachable(point),
            "requests_per_s": point.rate(),
            "array_loss_5_years": point.risk,
            "runs": point.runs.iter().map(|run| json!({
                "rebuild_hours": run.hours, "p99_s": run.tail, "requests_per_s": run.rate,
            })).collect::<Vec<Value>>(),
        })
    };
    let knees = curves.policies().into_iter().map(|policy| {
        let at = curves.knee(policy);
        let setting = at.ok().map(|at| curves.of(policy)[at].setting.in_words());
        json!({ "policy": policy.name(), "setting": setting, "why_none": curves.no_knee(policy) })
    });
    let equal = curves.against_md().into_iter().map(|(point, ratio)| {
        let PairedRatio { mean, low, high } = ratio;
        json!({ "md": point.setting.in_words(), "p99_ratio": mean, "low": low, "high": high })
    });
    pretty(&json!({
        "schema_version": 1,
        "cell": cell_title(curves.study, &curves.key),
        "seed": curves.study.seed,
        "without_rebuild": { "p99_s": tail, "requests_per_s": rate },
        "points": curves.points.iter().map(point).collect::<Vec<Value>>(),
        "knees": knees.collect::<Vec<Value>>(),
        "feedback_floor_p99_s": curves.floor(),
        "to_use": curves.choice().map(|choice| json!({
            "policy": choice.point.policy.name(),
            "setting": choice.point.setting.in_words(),
            "command": choice.point.setting.command(),
            "knee_passed_over": choice.passed_over.map(|knee| knee.setting.in_words()),
        })),
        "feedback_against_md_at_equal_rebuild_time": equal.collect::<Vec<Value>>(),
    }))
}
