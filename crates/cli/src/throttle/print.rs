//! The curves of a cell as text and JSON.

use std::fmt::Write;

use raidlab_advise::days;
use raidlab_explore::throttle::{Outcome, Policy, knee, tail_at};
use raidlab_risk::words;
use raidlab_study::cell_title;
use serde_json::{Value, json};

use super::{Curves, Point, median};
use crate::json::pretty;
use crate::risk::print::folded;

/// Longer than the array is used: the rebuild as good as stands still.
const NEVER: f64 = 5.0 * 8_760.0;

impl Point {
    fn hours(&self) -> f64 {
        median(self.runs.iter().map(|run| run.hours))
    }

    fn tail(&self) -> f64 {
        median(self.runs.iter().map(|run| run.tail))
    }

    fn rate(&self) -> f64 {
        median(self.runs.iter().map(|run| run.rate))
    }
}

impl Curves<'_> {
    fn of(&self, policy: Policy) -> Vec<&Point> {
        self.points.iter().filter(|point| point.policy == policy).collect()
    }

    /// Those that were run, in order.
    fn policies(&self) -> Vec<Policy> {
        Policy::ALL.into_iter().filter(|policy| !self.of(*policy).is_empty()).collect()
    }

    fn knee(&self, policy: Policy) -> Option<usize> {
        let curve = |point: &&Point| (point.hours(), point.tail());
        knee(&self.of(policy).iter().map(curve).collect::<Vec<_>>())
    }

    /// The fastest rebuild of a policy that holds the wanted p99.
    fn holds(&self, policy: Policy) -> Option<&Point> {
        let most = self.most?.as_secs();
        let able = self.of(policy).into_iter().filter(|point| point.tail() <= most);
        able.min_by(|one, other| one.hours().total_cmp(&other.hours()))
    }

    fn alone(&self) -> (f64, f64) {
        let of = |figure: fn(&Outcome) -> f64| median(self.alone.iter().map(figure));
        (of(|one| one.tail), of(|one| one.rate))
    }

    /// Feedback against md where both rebuild in the same time: the ratio of p99 with its 95 % interval, for each of
    /// md's settings that lies within feedback's curve.
    fn against_md(&self) -> Vec<(&Point, f64, (f64, f64))> {
        let ours = self.of(Policy::Feedback);
        let compared = |point: &&Point| {
            let log = |(seed, run): (usize, &Outcome)| {
                let curve = ours.iter().filter_map(|one| one.runs.get(seed));
                let curve: Vec<(f64, f64)> = curve.map(|run| (run.hours, run.tail)).collect();
                Some(libm::log(tail_at(&curve, run.hours)? / run.tail))
            };
            let logs: Vec<f64> = point.runs.iter().enumerate().filter_map(log).collect();
            let count = logs.len() as f64;
            (logs.len() >= 3).then(|| {
                let mean = logs.iter().sum::<f64>() / count;
                let squares: f64 = logs.iter().map(|log| (log - mean) * (log - mean)).sum();
                let error = libm::sqrt(squares / (count - 1.0) / count) * student(logs.len());
                (libm::exp(mean), (libm::exp(mean - error), libm::exp(mean + error)))
            })
        };
        let is_md = |point: &&Point| matches!(point.policy, Policy::Md | Policy::MdMax);
        let points = self.points.iter().filter(is_md);
        points
            .filter_map(|point| compared(&point).map(|(ratio, range)| (point, ratio, range)))
            .collect()
    }
}

/// The quantile of Student's law that leaves 2.5 % above, for means of so many.
fn student(count: usize) -> f64 {
    const QUANTILES: [f64; 9] = [12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];
    QUANTILES.get(count.saturating_sub(2)).copied().unwrap_or(2.1)
}

fn rebuilt(hours: f64) -> String {
    if hours >= NEVER { "never".to_owned() } else { days(hours) }
}

pub(super) fn text(curves: &Curves<'_>) -> String {
    let mut out = String::new();
    let title = cell_title(curves.study, &curves.key);
    let (tail, rate) = curves.alone();
    let _ = writeln!(out, "{title}");
    let text = format!(
        "Without a rebuild, a drive missing: p99 {:.1} ms, {rate:.0} requests a second. The rebuild takes as long as \
         is said if the work never stops; it is extrapolated from where the drive begins.",
        tail * 1e3
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
            let mark = if knee == Some(at) { " <- knee" } else { "" };
            let _ = writeln!(
                out,
                "  {:<24} {:>9} {:>8.1} ms {:>8.2} {:>9.0}  {}{mark}",
                point.setting.in_words(),
                rebuilt(point.hours()),
                point.tail() * 1e3,
                point.tail() / tail,
                point.rate(),
                words::chance(point.risk)
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
    let mut told = Vec::new();
    let of_md = [Policy::Md, Policy::MdMax];
    match curves.most {
        Some(most) => {
            let holding = of_md.into_iter().filter_map(|policy| curves.holds(policy));
            let best = holding.min_by(|one, other| one.hours().total_cmp(&other.hours()));
            let most = most.as_secs() * 1e3;
            match best.and_then(|point| Some((point, point.setting.command()?))) {
                Some((point, command)) => told.push(format!(
                    "To use on Linux: {command} (holds a p99 of {most:.0} ms here; rebuilt in {}).",
                    rebuilt(point.hours())
                )),
                None => told
                    .push(format!("No setting of md's that was run holds a p99 of {most:.0} ms.")),
            }
        }
        None => {
            // Where the least rate changes nothing, the most does.
            let knee = of_md
                .into_iter()
                .find_map(|policy| curves.knee(policy).map(|at| curves.of(policy)[at]));
            if let Some((point, command)) =
                knee.and_then(|point| Some((point, point.setting.command()?)))
            {
                told.push(format!(
                    "To use on Linux: {command}, the knee: a shorter p99 costs more of the rebuild from there on, a \
                     faster rebuild more p99. Rebuilt in {}.",
                    rebuilt(point.hours())
                ));
            }
        }
    }
    told.extend(feedback(curves));
    told.push(
        "md's rule is that of kernels before 6.16 (docs/fidelity.md has how near the model comes to 6.1 and 6.12); the \
         in-flight limit of 6.16 and later is not modelled. mclock-like and zfs-like are shares of the time only."
            .to_owned(),
    );
    told.push(format!("Losing data: {}. RAID is not a backup.", words::SCOPE));
    told
}

fn feedback(curves: &Curves<'_>) -> Option<String> {
    let compared = curves.against_md();
    if compared.is_empty() {
        return None;
    }
    let better = compared.iter().filter(|(_, _, range)| range.1 < 1.0).count();
    let worse: Vec<String> = compared
        .iter()
        .filter(|(_, _, range)| range.0 > 1.0)
        .map(|(point, ratio, _)| format!("{} ({ratio:.2} times)", point.setting.in_words()))
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
            "requests_per_s": point.rate(),
            "array_loss_5_years": point.risk,
            "runs": point.runs.iter().map(|run| json!({
                "rebuild_hours": run.hours, "p99_s": run.tail, "requests_per_s": run.rate,
            })).collect::<Vec<Value>>(),
        })
    };
    let knees = curves.policies().into_iter().map(|policy| {
        let at = curves.knee(policy);
        json!({ "policy": policy.name(), "setting": at.map(|at| curves.of(policy)[at].setting.in_words()) })
    });
    let equal = curves.against_md().into_iter().map(|(point, ratio, range)| {
        json!({ "md": point.setting.in_words(), "p99_ratio": ratio, "low": range.0, "high": range.1 })
    });
    pretty(&json!({
        "schema_version": 1,
        "cell": cell_title(curves.study, &curves.key),
        "seed": curves.study.seed,
        "without_rebuild": { "p99_s": tail, "requests_per_s": rate },
        "points": curves.points.iter().map(point).collect::<Vec<Value>>(),
        "knees": knees.collect::<Vec<Value>>(),
        "feedback_against_md_at_equal_rebuild_time": equal.collect::<Vec<Value>>(),
    }))
}
