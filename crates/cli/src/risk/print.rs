//! The answer on a terminal: words first, one digit, 80 columns.

use std::fmt::Write;

use raidlab_risk::{Answer, Outcome, Risk, Within, YEAR, words};

use super::inputs::Asked;
use super::values::span;
use crate::output::counted;

/// Columns that the text keeps within.
const WIDTH: usize = 80;

pub(super) fn text(asked: &Asked, answer: &Answer) -> String {
    let mut out = String::new();
    ratios(asked, answer, &mut out);
    for risk in &answer.risks {
        layout(asked, risk, &mut out);
    }
    out.push_str("Assumed\n");
    for (what, words) in &asked.assumed {
        out.push_str(&folded(words, &format!("  {what:<11}"), 13));
    }
    for (risk, simulated) in answer.risks.iter().zip(&asked.simulated) {
        if simulated.is_of_runs() {
            out.push_str(&folded(&simulated.told(), &format!("    {}: rebuilt ", risk.layout), 6));
        }
    }
    out.push('\n');
    closing(answer, asked.question.seed, &mut out);
    out
}

/// Text in lines, the first after `head`, the others indented.
pub(crate) fn folded(text: &str, head: &str, indent: usize) -> String {
    let (mut out, mut line) = (String::new(), head.to_owned());
    let mut is_fresh = true;
    for word in text.split_whitespace() {
        let gap = usize::from(!is_fresh);
        if !is_fresh && line.chars().count() + gap + word.chars().count() > WIDTH {
            out.push_str(line.trim_end());
            out.push('\n');
            line = " ".repeat(indent);
            is_fresh = true;
        }
        if !is_fresh {
            line.push(' ');
        }
        line.push_str(word);
        is_fresh = false;
    }
    out.push_str(line.trim_end());
    out.push('\n');
    out
}

fn years(hours: f64) -> String {
    let years = hours / YEAR;
    let unit = if years == 1.0 { "year" } else { "years" };
    format!("{years} {unit}")
}

fn within(chance: Within) -> String {
    words::chance_within(chance.central, (chance.low, chance.high))
}

/// How layouts compare, which is known best.
fn ratios(asked: &Asked, answer: &Answer, out: &mut String) {
    let Some(first) = answer.ratios.first() else { return };
    let mission = years(asked.question.missions[asked.question.main]);
    let safest = &answer.risks[first.less].layout;
    let head = format!("Against {safest}, the safest here, in {mission} ({})", words::SCOPE);
    out.push_str(&folded(&head, "", 0));
    for ratio in &answer.ratios {
        let name = &answer.risks[ratio.more].layout;
        let [least_array, least_sector] = ratio.at_least;
        let array = compared(ratio.array, least_array);
        let sector = compared(ratio.sector, least_sector);
        let lines = if array == sector {
            vec![("loses the array, and a sector or more,", array)]
        } else {
            vec![("loses the array", array), ("loses a sector or more", sector)]
        };
        for (what, told) in lines {
            out.push_str(&folded(&format!("{what} {told}"), &format!("  {name} "), 4));
        }
    }
    let least = answer.risks[first.less].missions[asked.question.main].array.central;
    if least < words::LEAST {
        out.push_str(&folded(&words::dominated(&safest.to_string()), "  ", 2));
    }
    out.push('\n');
}

fn compared(ratio: Within, at_least: Option<f64>) -> String {
    let told = || words::compared(ratio.central, (ratio.low, ratio.high));
    at_least.map_or_else(told, words::compared_counted_down)
}

fn layout(asked: &Asked, risk: &Risk, out: &mut String) {
    let question = &asked.question;
    let usable = risk.usable as f64 / 1e12;
    let _ = writeln!(
        out,
        "{}: {}, {usable:.1} TB usable",
        risk.layout,
        counted(u64::from(risk.layout.drives()), "drive", "drives")
    );
    let main = question.main;
    let told = format!(
        "In {} it loses the array: {}, depending on what nobody knows (failure rate of this model, latent errors, \
         common causes). This is about {}.",
        years(question.missions[main]),
        within(risk.missions[main].array),
        words::SCOPE
    );
    out.push_str(&folded(&told, "  ", 2));
    for (what, of) in [("losing the array", true), ("losing a sector or more", false)] {
        let _ = writeln!(out, "  {what}");
        for (hours, mission) in question.missions.iter().zip(&risk.missions) {
            let chance = if of { mission.array } else { mission.sector };
            let head = format!("    in {:<8} ", years(*hours));
            out.push_str(&folded(&within(chance), &head, 16));
        }
    }
    let _ = writeln!(out, "  lost of each usable TB, on average (mostly nothing, seldom all)");
    for (hours, mission) in question.missions.iter().zip(&risk.missions) {
        let lost = words::bytes_beside(mission.outcome.lost_share, mission.array.central);
        let _ = writeln!(out, "    in {:<8} {lost}", years(*hours));
    }
    if risk.layout.survives() > 0 {
        let replace = &question.model.replace;
        if replace.mean() > 0.0 {
            let told = format!(
                "{} of the risk to the array is waiting for another drive ({})",
                words::share(risk.waiting),
                span(replace)
            );
            out.push_str(&folded(&told, "  ", 2));
        }
        what_ifs(asked, risk, out);
    }
    out.push('\n');
}

fn what_ifs(asked: &Asked, risk: &Risk, out: &mut String) {
    let mission = years(asked.question.missions[asked.question.main]);
    let head = format!("what if, in {mission}");
    let _ = writeln!(out, "  {head:<30}{:<24}a sector or more", "the array");
    let row = |what: &str, outcome: &Outcome| {
        let (array, sector) = (outcome.array.value, outcome.sector.value);
        format!("    {what:<27} {:<24}{}\n", words::chance(array), words::chance(sector))
    };
    out.push_str(&row("as assumed", &risk.missions[asked.question.main].outcome));
    for what_if in &risk.what_ifs {
        out.push_str(&row(&what_if.what, &what_if.outcome));
    }
}

fn closing(answer: &Answer, seed: u64, out: &mut String) {
    let missions = answer.risks.iter().flat_map(|risk| &risk.missions);
    let error = missions
        .flat_map(|mission| [mission.outcome.array.error, mission.outcome.sector.error])
        .fold(0.0, f64::max);
    for text in [
        "The range: of what nobody knows (failure rate of this model, latent errors, common causes); 5 % of it \
         lies below, 5 % above.",
        "The rows of what if: other structure, each alone, with the central figures.",
        &format!(
            "The computing: standard error at most {:.1} %, negligible; seed {seed}.",
            error * 100.0
        ),
        "All figures: drives and rebuilds only, not fire, theft, deletion, ransomware, software. RAID is not a \
         backup.",
    ] {
        out.push_str(&folded(text, "", 2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_folded() {
        let text = "word ".repeat(40);
        let folded = folded(&text, "  head ", 4);
        assert!(folded.lines().all(|line| line.len() <= WIDTH), "{folded}");
        assert!(folded.starts_with("  head word") && folded.contains("\n    word"));
    }
}
