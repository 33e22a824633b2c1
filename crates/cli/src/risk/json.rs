//! The answer for other programs.

use raidlab_risk::{Answer, Mission, Outcome, Risk, Within, YEAR, words};
use serde_json::{Value, json};

use super::inputs::Asked;
use crate::json::pretty;

pub(super) fn document(asked: &Asked, answer: &Answer) -> String {
    let question = &asked.question;
    let assumed: serde_json::Map<String, Value> =
        asked.assumed.iter().map(|(what, words)| ((*what).to_owned(), json!(words))).collect();
    let ratios = answer.ratios.iter().map(|ratio| {
        json!({
            "layout": answer.risks[ratio.more].layout.to_string(),
            "against": answer.risks[ratio.less].layout.to_string(),
            "array": within(ratio.array),
            "sector": within(ratio.sector),
        })
    });
    let layouts = answer.risks.iter().enumerate().map(|(at, risk)| layout(asked, at, risk));
    pretty(&json!({
        "schema_version": 1,
        "scope": words::SCOPE,
        "note": "RAID is not a backup",
        "seed": question.seed,
        "assumed": assumed,
        "main_mission_years": question.missions[question.main] / YEAR,
        "ratios": ratios.collect::<Vec<Value>>(),
        "layouts": layouts.collect::<Vec<Value>>(),
    }))
}

fn layout(asked: &Asked, at: usize, risk: &Risk) -> Value {
    let missions = risk.missions.iter().map(mission).collect::<Vec<Value>>();
    let what_ifs = risk.what_ifs.iter().map(|what_if| {
        let mut told = outcome(&what_if.outcome);
        told["what"] = json!(what_if.what);
        told
    });
    json!({
        "layout": risk.layout.to_string(),
        "drives": risk.layout.drives(),
        "usable_bytes": risk.usable,
        "survives": risk.layout.survives(),
        "waiting_share_of_array_risk": risk.waiting,
        "simulated_rebuild_hours": asked.simulated.get(at).map(|simulated| &simulated.runs),
        "missions": missions,
        "what_if": what_ifs.collect::<Vec<Value>>(),
    })
}

fn mission(mission: &Mission) -> Value {
    let mut told = outcome(&mission.outcome);
    told["array_range"] = within(mission.array);
    told["sector_range"] = within(mission.sector);
    told["array_words"] = words_of(mission.array);
    told["sector_words"] = words_of(mission.sector);
    told
}

fn words_of(chance: Within) -> Value {
    words::chance_within(chance.central, (chance.low, chance.high)).into()
}

fn outcome(outcome: &Outcome) -> Value {
    json!({
        "years": outcome.until / YEAR,
        "scope": words::SCOPE,
        "array": outcome.array.value,
        "array_relative_error": outcome.array.error,
        "sector": outcome.sector.value,
        "sector_relative_error": outcome.sector.error,
        "lost_bytes_per_usable_tb": outcome.lost_share * 1e12,
        "degraded_hours": outcome.degraded,
        "mean_weight": outcome.mass,
        "paths": outcome.paths,
    })
}

fn within(range: Within) -> Value {
    json!({ "central": range.central, "p5": range.low, "p95": range.high })
}
