//! The advice for other programs.

use raidlab_advise::{
    Advice, Finalist, Growth, Measured, Mode, Objective, Wanted, checks, commands_of, first,
    growth_in_words, warnings, weights,
};
use raidlab_risk::{Within, YEAR, words};
use raidlab_study::State;
use serde_json::{Value, json};

use crate::json::pretty;

pub(super) fn document(wanted: &Wanted, advice: &Advice) -> String {
    let verdict = &advice.verdict;
    let name = |at: usize| advice.finalists[at].candidate.to_string();
    let dropped = advice.dropped.dropped.iter();
    let weights = weights(wanted.prefer, wanted.limits.capacity.is_some());
    let steps = Objective::ALL.into_iter().zip(weights);
    pretty(&json!({
        "schema_version": 1,
        "scope": words::SCOPE,
        "note": "RAID is not a backup",
        "seed": wanted.seed,
        "asked": asked(wanted),
        "steps": steps.map(|(one, weight)| json!({
            "objective": one.name(), "factor": one.step(), "weight": weight,
        })).collect::<Vec<Value>>(),
        "budget": {
            "candidates": advice.spent.candidates,
            "runs": advice.spent.runs,
            "requests": advice.spent.requests,
        },
        "asked_first": first(wanted, advice),
        "recommended": name(verdict.pick),
        "runner_up": verdict.next.map(name),
        "either": advice.is_either(),
        "lead_steps": verdict.lead,
        "sure": verdict.sure,
        "lead_by": verdict.by.iter().map(|(one, steps)| json!({
            "objective": one.name(), "steps": steps,
        })).collect::<Vec<Value>>(),
        "variants": advice.variants.iter().map(|one| json!({
            "layout": one.candidate.to_string(), "better_by_steps": one.lead, "speed_ratio": one.speed,
            "p99_ratio": one.tail, "alike": one.is_alike,
        })).collect::<Vec<Value>>(),
        "consistency": advice.consistency.iter().map(|one| json!({
            "mode": match one.mode {
                Mode::Bitmap => "bitmap",
                Mode::PartialParity => "ppl",
                Mode::None => "none",
            },
            "speed_ratio": one.speed,
            "p99_ratio": one.tail,
        })).collect::<Vec<Value>>(),
        "changes": advice.changes.iter().map(|one| json!({
            "when": one.when, "then": name(one.then), "changes": advice.is_changed_by(one),
        })).collect::<Vec<Value>>(),
        "finalists": (0..advice.finalists.len()).map(|at| finalist(wanted, advice, at))
            .collect::<Vec<Value>>(),
        "growth": advice.growths.iter().map(|(at, one)| growth(&name(*at), one, wanted.mission / YEAR))
            .collect::<Vec<Value>>(),
        "left_out": dropped.map(|one| json!({ "layouts": one.names, "reason": one.reason }))
            .collect::<Vec<Value>>(),
        "warnings": warnings(wanted, advice),
        "check_first": checks(wanted, advice),
        "commands": commands_of(wanted, advice),
    }))
}

/// What was asked.
fn asked(wanted: &Wanted) -> Value {
    let limits = &wanted.limits;
    json!({
        "drives": [wanted.drives.start(), wanted.drives.end()],
        "drives_later": wanted.later,
        "drive": wanted.drive.name,
        "member_bytes": wanted.member().bytes(),
        "work": wanted.profile.name,
        "work_source": wanted.profile.source,
        "streams": wanted.streams,
        "busy": wanted.busy,
        "prefer": wanted.prefer.name(),
        "software": wanted.software.name(),
        "years": wanted.mission / YEAR,
        "limits": {
            "capacity": limits.capacity,
            "survive": limits.survive,
            "p99_s": limits.tail,
            "speed": limits.speed.map(|speed| speed.0),
            "speed_unit": limits.speed.map(|speed| speed.1.replace("MB/s", "bytes/s")),
            "budget": limits.budget.map(|budget| budget.0),
            "price": limits.price,
            "watts": limits.watts.map(|watts| watts.0),
        },
    })
}

fn finalist(wanted: &Wanted, advice: &Advice, at: usize) -> Value {
    let one: &Finalist = &advice.finalists[at];
    let risk = &advice.risks[at];
    let tail = |state: State| one.median(|run: &Measured| run.tail(wanted, state));
    let rebuilt = one.median(|run| run.rebuild(wanted));
    let rate = |part: usize, state: State| {
        let counted = wanted.profile.parts[part].counted;
        one.median(|run| run.rate(wanted, part, state)).map(|rate| counted.shown(rate))
    };
    let parts = wanted.profile.parts.iter().enumerate().map(|(at, part)| {
        json!({
            "part": part.name,
            "unit": part.counted.unit().replace("MB/s", "bytes/s"),
            "healthy": rate(at, State::Healthy),
            "degraded": rate(at, State::Degraded),
            "rebuilding": rate(at, State::Rebuilding),
        })
    });
    let within =
        |range: Within| json!({ "central": range.central, "p5": range.low, "p95": range.high });
    json!({
        "layout": one.candidate.layout.to_string(),
        "name": one.candidate.to_string(),
        "spares": one.candidate.spares,
        "drives": one.candidate.drives(),
        "survives": one.candidate.layout.survives(),
        "usable_bytes": one.usable,
        "rates": parts.collect::<Vec<Value>>(),
        "p99_s": {
            "healthy": tail(State::Healthy),
            "degraded": tail(State::Degraded),
            "rebuilding": tail(State::Rebuilding),
        },
        // Of runs that tell too little it is assumed, not simulated.
        "rebuild_hours": rebuilt.filter(|_| one.tells_rebuild()),
        "rebuild_hours_assumed": rebuilt.filter(|_| !one.tells_rebuild()),
        "array_loss": within(risk.array),
        "sector_loss": within(risk.sector),
        "array_loss_bad_batch": advice.batches[at].bad,
        "array_loss_mixed_batches": advice.batches[at].mixed,
        "array_loss_words": words::chance_within(risk.array.central, (risk.array.low, risk.array.high)),
        "on_front": advice.front.contains(&at),
        "costs_in_steps": one.costs,
    })
}

fn growth(name: &str, growth: &Growth, years: f64) -> Value {
    let told = growth_in_words(name, growth, years);
    match growth {
        Growth::Not { reason } => {
            json!({ "layout": name, "grows": false, "why": reason, "words": told })
        }
        Growth::Reshape { layout, usable, hours, risk, then, commands } => json!({
            "layout": name,
            "grows": true,
            "to": layout.to_string(),
            "usable_bytes": usable,
            "hours": [hours.0, hours.1],
            "array_loss_meanwhile": risk,
            "array_loss_then": then,
            "commands": commands,
            "words": told,
        }),
    }
}
