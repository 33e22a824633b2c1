//! Scores as Markdown tables, which terminals show as well.

use std::fmt::Write;

use raidlab_results::trust::Trust;

use super::{Compared, Group, Score, Share};

/// The scores of all groups that have cells, beside the kernel against itself; `seed` draws the bootstrap.
pub fn scores(cells: &[Compared<'_>], seed: u64) -> String {
    let itself: Vec<Compared<'_>> = cells.iter().filter_map(Compared::halves).collect();
    let all: Vec<&Compared<'_>> = cells.iter().collect();
    let mut text = String::from(
        "| group | cells | median error | 95 of 100 below | right order: 5 to 10 % | 10 to 25 % | over 25 % | \
         beyond 10 % | false differences | skill | kernel itself: median | 95 of 100 | beyond 10 % | false |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for group in Group::all() {
        let own: Vec<&Compared<'_>> = cells.iter().filter(|cell| group.has(cell)).collect();
        if own.is_empty() {
            // Which groups have nothing is worth knowing: nobody shall think they are right.
            let _ = writeln!(text, "| {} | 0 |{}", group.name(), " - |".repeat(12));
            continue;
        }
        let score = Score::of(&own, &all, seed);
        let halves: Vec<&Compared<'_>> = itself.iter().filter(|cell| group.has(cell)).collect();
        let halves = Score::of(&halves, &halves, seed);
        let median = format!("{}{}", percent(score.median), between(score.limits.median));
        let beyond = format!("{}{}", share(score.beyond()), between(score.limits.beyond));
        let columns = [
            group.name(),
            score.cells.to_string(),
            median,
            percent(score.p95),
            share(score.orderings[0]),
            share(score.orderings[1]),
            share(score.orderings[2]),
            beyond,
            share(score.false_differences),
            score.skill.map_or_else(|| "-".to_owned(), |skill| format!("{skill:.2}")),
            percent(halves.median),
            percent(halves.p95),
            share(halves.beyond()),
            share(halves.false_differences),
        ];
        let _ = writeln!(text, "| {} |", columns.join(" | "));
    }
    text
}

/// The cells with the largest errors. Those that are held out are not among them: who looks at them tunes by them.
pub fn worst(cells: &[Compared<'_>], count: usize) -> String {
    let mut shown: Vec<&Compared<'_>> = cells.iter().filter(|cell| !cell.is_held_out()).collect();
    let size = |cell: &&Compared<'_>| cell.log_error().abs();
    shown.sort_by(|one, other| size(other).total_cmp(&size(one)));
    let mut text = String::new();
    for cell in shown.into_iter().take(count) {
        let middle = |values| raidlab_results::statistics::median(values).unwrap_or_default();
        let percent = libm::expm1(cell.log_error()) * 100.0;
        let _ = writeln!(
            text,
            "{:4} {} {:.4} model {:.4} {percent:+.0} %: {}",
            cell.drawn.number,
            cell.metric,
            middle(&cell.kernel),
            middle(&cell.other),
            cell.drawn.name()
        );
    }
    text
}

/// An evaluation as a row of the record in docs/fidelity.md: all cells and those that are held out.
pub fn log_row(when: &str, commit: &str, kernel: &str, cells: &[Compared<'_>]) -> String {
    let all: Vec<&Compared<'_>> = cells.iter().collect();
    let of = |group: Group| {
        let own: Vec<&Compared<'_>> = cells.iter().filter(|cell| group.has(cell)).collect();
        let score = Score::of(&own, &all, 1);
        format!(
            "{} | {}{} | {} | {}",
            score.cells,
            percent(score.median),
            between(score.limits.median),
            percent(score.p95),
            share(score.beyond())
        )
    };
    format!("| {when} | {commit} | {kernel} | {} | {} |\n", of(Group::All), of(Group::HeldOut))
}

/// What reports tell of the model's error, as the table of docs/fidelity.md.
pub fn trust_table(trust: &Trust) -> String {
    let sizes = [1, 5, 10, 25, 50, 100];
    let heads: Vec<String> = sizes.iter().map(|size| format!("{size} %")).collect();
    let mut text = format!(
        "| group | cells | median error | 90 of 100 within | covered, kind left out | floor | of 100 of {} |\n\
         |---|---:|---:|---:|---:|---:|{}\n",
        heads.join(" | "),
        "---:|".repeat(sizes.len())
    );
    for group in &trust.groups {
        let signs: Vec<String> =
            sizes.iter().map(|size| group.sign_of_100(f64::from(*size)).to_string()).collect();
        let ends = group.interval(1.0).map(|end| format!("{:+.0} %", (end - 1.0) * 100.0));
        let _ = writeln!(
            text,
            "| {} | {} | {:.1} % | {} to {} | {} of {} | {} | {} |",
            group.name,
            group.cells,
            group.median_percent,
            ends[0],
            ends[1],
            group.covered[0],
            group.covered[1],
            group.floor_percent.map_or_else(|| "none".to_owned(), |floor| format!("{floor} %")),
            signs.join(" | ")
        );
    }
    text
}

fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{:.1} %", value * 100.0))
}

fn between(limits: Option<[f64; 2]>) -> String {
    limits.map_or_else(String::new, |[low, high]| {
        format!(" ({:.1} to {:.1})", low * 100.0, high * 100.0)
    })
}

/// `97 % of 31`.
fn share(share: Share) -> String {
    let Some(value) = share.value() else { return "-".to_owned() };
    format!("{:.0} % of {:.0}", value * 100.0, share.of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawn::draw;

    #[test]
    fn every_group_has_a_row_and_held_out_cells_are_not_listed() {
        let drawing = draw(1, 600);
        let cells: Vec<Compared<'_>> = (1..)
            .zip(&drawing.cells[..150])
            .filter_map(|(at, drawn)| {
                let truth = f64::from(at % 90 + 10);
                Compared::new(drawn, "iops", vec![truth, truth * 1.01], vec![truth * 1.1])
            })
            .collect();
        let text = scores(&cells, 1);
        assert_eq!(text.lines().count(), Group::all().len() + 2);
        let columns = text.lines().next().map(|line| line.matches('|').count());
        assert!(text.lines().all(|line| Some(line.matches('|').count()) == columns), "{text}");
        let all = text.lines().nth(2).expect("the row of all");
        assert!(all.starts_with("| all | 150 | 9.5 % (9.5 to 9.5) | 9.5 % |"), "{all}");
        let listed = worst(&cells, 600);
        let held_out = cells.iter().filter(|cell| cell.is_held_out()).count();
        assert_eq!(listed.lines().count(), 150 - held_out);
        let row = log_row("2026-11-25", "abc", "6.12", &cells);
        assert!(row.starts_with("| 2026-11-25 | abc | 6.12 | 150 | 9.5 %"), "{row}");
    }
}
