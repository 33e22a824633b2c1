//! Which layout is best in the rows of a section, by how much, how sure, and what held it back.

use raidlab_results::document::{Better, Cell, Clock, TooShort};

use super::{About, Conclusion, MODEL_PERCENT, MOST_MORE_ROUNDS, gain, when};
use crate::number::{self, listed};
use crate::shown;
use crate::view::{self, Lead, Row, Section, View};

/// Medians nearer than this many percent say nothing of who leads, where too few rounds give no floor.
const NEAR_PERCENT: f64 = 1.0;
/// More percentages than this are told by their ends.
const MOST_PERCENTS: usize = 3;

/// One sentence for each group of rows with the same outcome.
pub(super) fn of_section<'a>(view: &View<'a>, section: &Section<'a>) -> Vec<Conclusion<'a>> {
    let mut groups: Vec<Vec<&Row<'a>>> = Vec::new();
    for row in &section.rows {
        let same = |first: &Row<'_>| {
            (&first.lead, first.state, first.settings) == (&row.lead, row.state, row.settings)
                && unknown(first) == unknown(row)
                && first.too_short == row.too_short
                && nearest(first) == nearest(row)
                && is_within_the_model(view, section, first)
                    == is_within_the_model(view, section, row)
        };
        match groups.iter_mut().find(|group| same(group[0])) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups.iter().map(|rows| conclusion(view, section, rows)).collect()
}

fn conclusion<'a>(view: &View<'a>, section: &Section<'a>, rows: &[&Row<'a>]) -> Conclusion<'a> {
    let ahead = |row: &&Row<'a>| {
        if row.has_unsettled() {
            return None;
        }
        let (best, next) = (row.cells[row.leader()]?, runner_up(section, row)?);
        // Who wins by the rounds may be behind by its median.
        Some(gain(best, next)).filter(|gain| *gain > 1.0)
    };
    let effects = rows.iter().filter_map(ahead);
    Conclusion {
        about: About::Best,
        section: Some(section.title.clone()),
        text: sentence(view, section, rows),
        cells: rows.iter().flat_map(|row| row.cells.iter().copied().flatten()).collect(),
        effect: effects.reduce(|one, other| if other > one { other } else { one }).unwrap_or(1.0),
    }
}

fn sentence(view: &View<'_>, section: &Section<'_>, rows: &[&Row<'_>]) -> String {
    let last = rows[rows.len() - 1];
    let Some(best) = last.cells[last.leader()] else { return String::new() };
    let when = when(rows);
    if last.has_unknown() {
        return not_known(section, rows);
    }
    if !last.too_short.is_empty() {
        return too_short(section, rows);
    }
    if last.measured() == 1 {
        let value = shown::value_with_unit(best, section.unit);
        return format!("Only {} was measured {when}: {value}{}.", best.layout, busiest(best));
    }
    let verb = match &last.lead {
        Lead::Alike => {
            let value = shown::value_with_unit(best, section.unit);
            let floor = floor(last);
            return format!(
                "All are equal {when}, within {floor}: the best median is {}'s ({value}{}).",
                best.layout,
                quoted(rows)
            );
        }
        Lead::Shared { good, open } => return shared_lead(view, section, rows, (good, open)),
        Lead::Open(open) => return undecided(view, section, rows, open),
        Lead::Unsettled => return unsettled(section, rows),
        Lead::Preliminary(_) if !nearest(last).is_empty() => return near(view, section, rows),
        Lead::Preliminary(_) => "leads",
        Lead::Winner(_) if is_within_the_model(view, section, last) => "is ahead",
        Lead::Winner(_) => "wins",
    };
    let winner = match view.is_baseline(last.leader()) && view.results.baseline.len() == 1 {
        true => format!("{}, the baseline, {verb} {when}", best.layout),
        false => format!("{} {verb} {when}", best.layout),
    };
    let margin = margin(view, section, rows);
    let evidence = evidence(last, best, section.unit) + &doubt(view, section, last);
    match rows {
        [_] if margin.is_empty() => format!("{winner}: {evidence}{}.", busiest(best)),
        [_] => format!("{winner}: {margin} ({evidence}){}.", busiest(best)),
        _ => {
            let margin = if margin.is_empty() { margin } else { format!(": {margin}") };
            let busiest = busiest(best);
            format!("{winner}{margin}. With {}: {evidence}{busiest}.", last.label())
        }
    }
}

/// The layouts that lie so near to the best, by medians or round by round, that a round or two could turn their order;
/// none where there are rounds enough to say so.
fn nearest(row: &Row<'_>) -> Vec<usize> {
    let Some(best) = row.cells[row.best].filter(|_| row.is_preliminary()) else {
        return Vec::new();
    };
    let near = |at: &usize| {
        let limit = 1.0 + NEAR_PERCENT / 100.0;
        let by_rounds = |cell| gain_by_rounds(best, cell).is_some_and(|gain| gain < limit);
        row.cells[*at].is_some_and(|cell| gain(best, cell) < limit || by_rounds(cell))
    };
    let all: Vec<usize> = (0..row.cells.len()).filter(near).collect();
    if all.len() > 1 { all } else { Vec::new() }
}

/// How many times as good a cell is as another by the ratios of their rounds to the baseline, which percentages say;
/// `None` where there are none.
fn gain_by_rounds(cell: &Cell, than: &Cell) -> Option<f64> {
    let ratio = |cell: &Cell| Some(1.0 + cell.percent_vs_baseline? / 100.0);
    let gain = match cell.better {
        Better::Higher => ratio(cell)? / ratio(than)?,
        Better::Lower => ratio(than)? / ratio(cell)?,
    };
    gain.is_finite().then_some(gain)
}

/// Too few rounds, and too near to call one of them the leader.
fn near(view: &View<'_>, section: &Section<'_>, rows: &[&Row<'_>]) -> String {
    let last = rows[rows.len() - 1];
    let near = nearest(last);
    let rounds = last.cells.iter().flatten().map(|cell| cell.samples.len()).min().unwrap_or(0);
    format!(
        "No layout leads {}: {} are within {NEAR_PERCENT:.1}{}% of each other ({}{}; {}, preliminary).",
        when(rows),
        listed_names(last, &near),
        number::NO_BREAK,
        values(view, section, last, &near),
        quoted(rows),
        number::counted(rounds, "round"),
    )
}

/// Who wins a row, and the best median of the others.
fn winner<'a>(section: &Section<'_>, row: &Row<'a>) -> Option<(&'a Cell, &'a Cell)> {
    let Lead::Winner(best) = row.lead else { return None };
    row.cells[best].zip(runner_up(section, row))
}

/// Whether the winner of a row in virtual time is ahead by less than models are known to be right.
fn is_within_the_model(view: &View<'_>, section: &Section<'_>, row: &Row<'_>) -> bool {
    let Some((best, next)) = winner(section, row) else { return false };
    view.results.clock == Clock::Virtual && gain(best, next) < 1.0 + MODEL_PERCENT / 100.0
}

/// What keeps a winner from being sure.
fn doubt(view: &View<'_>, section: &Section<'_>, row: &Row<'_>) -> String {
    let Some((best, next)) = winner(section, row) else { return String::new() };
    let value = shown::value_with_unit(next, section.unit);
    if gain(best, next) < 1.0 {
        return format!("; {} has the better median, {value}, but not round by round", next.layout);
    }
    if !is_within_the_model(view, section, row) {
        return String::new();
    }
    format!(
        "; the next is {} with {value}: nearer than the {MODEL_PERCENT}{}% that models are off at best",
        next.layout,
        number::NO_BREAK
    )
}

/// The layouts of a row whose rebuilds take nobody knows how long.
fn unknown(row: &Row<'_>) -> Vec<usize> {
    (0..row.cells.len()).filter(|&at| row.cells[at].is_some_and(Cell::tells_too_little)).collect()
}

/// How long rebuilds take is not known of all layouts, so that there is no best.
fn not_known(section: &Section<'_>, rows: &[&Row<'_>]) -> String {
    let last = rows[rows.len() - 1];
    let known = last.cells.iter().flatten().filter(|cell| !cell.tells_too_little());
    let known: Vec<String> = known
        .map(|cell| format!("{} takes {}", cell.layout, shown::value_with_unit(cell, section.unit)))
        .collect();
    let rest = match known.is_empty() {
        true => String::new(),
        false => format!("; {}{}", listed(&known), quoted(rows)),
    };
    format!(
        "Not known of {} {}: {}{rest}.",
        listed_names(last, &unknown(last)),
        when(rows),
        shown::too_little()
    )
}

/// Some of it was over before what goes on beside a rebuild had settled, so that there is no best.
fn unsettled(section: &Section<'_>, rows: &[&Row<'_>]) -> String {
    let last = rows[rows.len() - 1];
    let cells = last.cells.iter().flatten();
    let values: Vec<String> = cells
        .map(|cell| format!("{} has {}", cell.layout, shown::value_with_unit(cell, section.unit)))
        .collect();
    format!(
        "Not known {} which is best: some of it was over within {}, in which nothing beside a rebuild settles, use a \
         larger size; {}{}.",
        when(rows),
        shown::paced(),
        listed(&values),
        quoted(rows)
    )
}

/// Some layouts were run too shortly to tell, so that there is no best.
fn too_short(section: &Section<'_>, rows: &[&Row<'_>]) -> String {
    let last = rows[rows.len() - 1];
    let name = |one: &&TooShort| format!("{} ({} of {})", one.layout, one.rounds, one.of);
    let short: Vec<String> = last.too_short.values().map(name).collect();
    let known = last.cells.iter().flatten();
    let known: Vec<String> = known
        .map(|cell| format!("{} has {}", cell.layout, shown::value_with_unit(cell, section.unit)))
        .collect();
    format!(
        "Not known {} which is best: rounds of {} were too short to tell, use a larger size; {}{}.",
        when(rows),
        listed(&short),
        listed(&known),
        quoted(rows)
    )
}

/// Layouts that are as good as the best, and those that may be.
fn shared_lead(
    view: &View<'_>,
    section: &Section<'_>,
    rows: &[&Row<'_>],
    (good, open): (&[usize], &[usize]),
) -> String {
    let last = rows[rows.len() - 1];
    let names = names(last, good);
    let are = if good.len() == 1 { "is" } else { "are" };
    let rest = match open {
        [] => String::new(),
        [one] => format!("; {} may be the best, too", listed_names(last, &[*one])),
        several => format!("; {} may be the best, too", listed_names(last, several)),
    };
    format!(
        "{} {are} as good as the best {}, within {}: {}{}{rest}.",
        listed(&names),
        when(rows),
        floor(last),
        values(view, section, last, good),
        quoted(rows)
    )
}

/// Nobody is shown to be as good as the best.
fn undecided(view: &View<'_>, section: &Section<'_>, rows: &[&Row<'_>], open: &[usize]) -> String {
    let last = rows[rows.len() - 1];
    let all: Vec<usize> = (0..last.cells.len()).filter(|&at| last.cells[at].is_some()).collect();
    let open = if open.is_empty() { &all } else { open };
    // The baseline alone is compared with nothing; a layout besides that none would resolve may be the best all along.
    let is_only_baseline = |at: &&usize| view.results.baseline.len() == 1 && view.is_baseline(**at);
    let others = open.iter().filter(|at| !is_only_baseline(at));
    let more: Option<Vec<u32>> = others.map(|&at| last.cells[at]?.more_rounds).collect();
    let more = more.and_then(|all| all.into_iter().max());
    let more = more.filter(|more| *more <= MOST_MORE_ROUNDS).map_or_else(String::new, |more| {
        format!("; about {} might tell", number::counted(more as usize, "more round"))
    });
    format!(
        "Not resolved {} which is best of {}: {}{}{more}.",
        when(rows),
        listed_names(last, open),
        values(view, section, last, open),
        quoted(rows)
    )
}

fn names<'a>(row: &Row<'a>, layouts: &[usize]) -> Vec<&'a str> {
    layouts.iter().filter_map(|&at| row.cells[at]).map(|cell| cell.layout.as_str()).collect()
}

fn listed_names(row: &Row<'_>, layouts: &[usize]) -> String {
    listed(&names(row, layouts))
}

/// `647 IOPS (+276 %) and 649 IOPS (+277 %) against single`.
fn values(view: &View<'_>, section: &Section<'_>, row: &Row<'_>, layouts: &[usize]) -> String {
    let cells: Vec<&Cell> = layouts.iter().filter_map(|&at| row.cells[at]).collect();
    let shown = |cell: &&Cell| {
        let value = shown::value_with_unit(cell, section.unit);
        match cell.percent_vs_baseline.filter(|_| cell.verdict.is_some()) {
            Some(percent) => format!("{value} ({})", number::percent(percent)),
            None => value,
        }
    };
    let all: Vec<String> = cells.iter().map(shown).collect();
    let against = match cells.iter().any(|cell| cell.verdict.is_some()) {
        true => format!(" against {}", view.baseline()),
        false => String::new(),
    };
    format!("{}{against}", listed(&all))
}

/// `1 %`: below that ratios mean nothing.
fn floor(row: &Row<'_>) -> String {
    let floor = row.cells.iter().flatten().find_map(|cell| cell.floor_percent);
    format!("{:.1} %", floor.unwrap_or(0.0))
}

/// `, with 4 processes` where a group has several rows and only the last one is quoted.
fn quoted(rows: &[&Row<'_>]) -> String {
    match rows {
        [.., last] if rows.len() > 1 => format!(", with {}", last.label()),
        _ => String::new(),
    }
}

/// `+280 %, +262 % and +251 % over single`; for the baseline itself, the distance to the next.
fn margin(view: &View<'_>, section: &Section<'_>, rows: &[&Row<'_>]) -> String {
    let last = rows[rows.len() - 1];
    if view.is_baseline(last.leader()) && view.results.baseline.len() == 1 {
        let Some(next) = runner_up(section, last) else { return String::new() };
        let percent = next.percent_vs_baseline.map(number::percent).unwrap_or_default();
        return format!("next is {}, {percent}{}", next.layout, quoted(rows));
    }
    let of_leader = |row: &&Row<'_>| row.cells[row.leader()]?.percent_vs_baseline;
    let values: Option<Vec<f64>> = rows.iter().map(of_leader).collect();
    let over = match section.better {
        Better::Higher => "over",
        Better::Lower => "against",
    };
    // Its median is the best, its rounds are not.
    let is_behind = |row: &&Row<'_>| {
        of_leader(row).is_some_and(|percent| match section.better {
            Better::Higher => percent < 0.0,
            Better::Lower => percent > 0.0,
        })
    };
    if rows.iter().any(is_behind) {
        return format!("by its median, but not round by round beside {}", view.baseline());
    }
    let told = |value: &f64| number::percent(*value) != number::percent(0.0);
    let values = values.filter(|all| all.iter().any(told));
    values
        .map(|values| format!("{} {over} {}", percents(values), view.baseline()))
        .unwrap_or_default()
}

/// `+280 %, +262 % and +251 %`; of many the smallest and the largest: `+251 % to +280 %`.
fn percents(mut values: Vec<f64>) -> String {
    if values.len() > MOST_PERCENTS {
        values.sort_by(f64::total_cmp);
        let ends = [values.first(), values.last()].map(|one| one.copied().unwrap_or_default());
        let [low, high] = ends.map(number::percent);
        return if low == high { low } else { format!("{low} to {high}") };
    }
    listed(&values.into_iter().map(number::percent).collect::<Vec<_>>())
}

/// The best median of those that are not the leader.
fn runner_up<'a>(section: &Section<'_>, row: &Row<'a>) -> Option<&'a Cell> {
    let others = (0..row.cells.len()).filter(|&at| at != row.leader());
    let order = |one: &&Cell, other: &&Cell| match section.better {
        Better::Higher => one.median.total_cmp(&other.median),
        Better::Lower => other.median.total_cmp(&one.median),
    };
    others.filter_map(|at| row.cells[at]).max_by(order)
}

/// `762 MiB/s, between 755 and 770 with 97 % confidence, 6 rounds`.
fn evidence(row: &Row<'_>, cell: &Cell, unit: &str) -> String {
    let value = shown::value_with_unit(cell, unit);
    let rounds = number::counted(cell.samples.len(), "round");
    match shown::confidence(cell) {
        Some(confidence) => format!("{value}, {confidence}, {rounds}"),
        None if cell.samples.len() > 1 => {
            let word = if row.is_preliminary() { ", preliminary" } else { "" };
            let range = shown::range(cell, view::extent(cell));
            format!("{value}, range {range} of {rounds}{word}")
        }
        None => format!("{value}, {rounds}, preliminary"),
    }
}

fn busiest(cell: &Cell) -> String {
    cell.bottleneck.as_ref().map_or_else(String::new, |one| {
        format!("; busiest: {}, {}", one.resource, number::share(one.busy))
    })
}
