//! How likely layouts are to lose data, as every report shows it: ratios first, then chances to one digit, then what
//! the figures are about and how sure they are.

use raidlab_results::risk::{Chance, DrivesRisk, LayoutRisk, MissionRisk, Ratio, Risks};

use crate::number;
use crate::view::View;

pub(crate) const TITLE: &str = "How likely are data lost";
/// What notes on rebuilds are about.
const REBUILDS: &str = "rebuilds";

/// What a cell of the table says: about, and what it may be.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Entry {
    pub(crate) about: String,
    pub(crate) between: Option<String>,
}

impl Entry {
    fn plain(about: &str) -> Self {
        Self { about: about.to_owned(), between: None }
    }

    fn of(chance: &Chance, with_range: bool) -> Self {
        let between = chance.between.clone().filter(|_| with_range);
        Self { about: chance.about.clone(), between }
    }

    fn ratio(ratio: &Ratio) -> Self {
        Self { about: ratio.about.clone(), between: ratio.between.clone() }
    }
}

/// A table of the layouts on one set of drives.
pub(crate) struct Table<'a> {
    /// The heads of the columns.
    pub(crate) heads: Vec<String>,
    /// For each layout its name, and its cells.
    pub(crate) rows: Vec<(&'a str, Vec<Entry>)>,
    /// What to know of it: of what, in words.
    pub(crate) notes: Vec<(String, String)>,
}

/// What a document says of risk.
pub(crate) fn of<'a>(view: &View<'a>) -> Option<&'a Risks> {
    view.results.risk.as_ref()
}

/// What all figures are about.
pub(crate) fn scope(risks: &Risks) -> String {
    format!("All figures: {}. RAID is not a backup.", risks.scope)
}

/// Of what nothing is said, and why.
pub(crate) fn left_out(risks: &Risks) -> Vec<String> {
    let told = |one: &raidlab_results::risk::LeftOut| {
        format!("Nothing is said of {}: {}.", number::listed(&one.layouts), one.why)
    };
    risks.left_out.iter().map(told).collect()
}

fn years(years: f64) -> String {
    if years == 1.0 { "1 year".to_owned() } else { format!("{years} years") }
}

/// What a layout's chance to lose the array is called in the table of speeds; `None` where nothing is known of any.
pub(crate) fn label(view: &View<'_>) -> Option<String> {
    let risks = of(view).filter(|risks| !risks.drives.is_empty())?;
    Some(format!("array lost in {}", years(risks.main_mission_years)))
}

/// That chance, to one digit.
pub(crate) fn in_short(view: &View<'_>, layout: usize) -> String {
    let name = &view.results.layouts[layout].name;
    let known = of(view).and_then(|risks| risks.main(risks.of(name)?));
    known.map_or_else(|| "not known".to_owned(), |mission| mission.array.about.clone())
}

/// What that row means.
pub(crate) fn meaning(risks: &Risks) -> String {
    format!(
        "about how likely; what it may be is below. {}. RAID is not a backup",
        capitalised(&risks.scope)
    )
}

/// The same as a sentence.
pub(crate) fn sentence(label: &str, risks: &Risks) -> String {
    format!("{}: {}.", capitalised(label), meaning(risks))
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A table for each set of drives.
pub(crate) fn tables(risks: &Risks) -> Vec<Table<'_>> {
    let mut tables: Vec<Table<'_>> = risks.drives.iter().map(|of| table(risks, of)).collect();
    // What holds of several is said once, but for rebuilds, which belong to the drives above them.
    let mut said: Vec<(String, String)> = Vec::new();
    for table in &mut tables {
        table.notes.retain(|note| note.0 == REBUILDS || !said.contains(note));
        said.extend(table.notes.iter().cloned());
    }
    tables
}

fn table<'a>(risks: &'a Risks, of: &'a DrivesRisk) -> Table<'a> {
    let main = years(risks.main_mission_years);
    let missions = of.layouts.first().map_or(&[][..], |layout| &layout.missions);
    let has_ratios = of.layouts.len() > 1;
    let mut heads = Vec::new();
    if has_ratios {
        heads.push(format!("array lost, times as often as {}", of.safest));
    }
    for what in ["array lost", "a sector or more lost"] {
        heads.extend(missions.iter().map(|mission| format!("{what} in {}", years(mission.years))));
    }
    heads.push(format!("lost of each TB in {main}"));
    let row = |layout: &'a LayoutRisk| (layout.layout.as_str(), cells(risks, layout, has_ratios));
    Table { heads, rows: of.layouts.iter().map(row).collect(), notes: notes(of, &main) }
}

fn cells(risks: &Risks, layout: &LayoutRisk, has_ratios: bool) -> Vec<Entry> {
    let mut cells = Vec::new();
    if has_ratios {
        let safest = || Entry::plain("the safest");
        cells.push(layout.times_array.as_ref().map_or_else(safest, Entry::ratio));
    }
    let is_main = |mission: &MissionRisk| mission.years == risks.main_mission_years;
    for of in [|one: &MissionRisk| one.array.clone(), |one: &MissionRisk| one.sector.clone()] {
        let told = |mission| Entry::of(&of(mission), is_main(mission));
        cells.extend(layout.missions.iter().map(told));
    }
    cells.extend(risks.main(layout).map(|mission| Entry::plain(&mission.lost)));
    cells
}

/// What the figures rest on, and how sure they are: three kinds of it, apart.
fn notes(of: &DrivesRisk, main: &str) -> Vec<(String, String)> {
    let mut notes: Vec<(String, String)> = Vec::new();
    notes.extend(of.note.iter().map(|note| ("ratios".to_owned(), note.clone())));
    let mut rebuilt: Vec<(&str, Vec<&str>)> = Vec::new();
    for layout in &of.layouts {
        match rebuilt.iter_mut().find(|(words, _)| *words == layout.rebuilt) {
            Some((_, names)) => names.push(&layout.layout),
            None => rebuilt.push((&layout.rebuilt, vec![&layout.layout])),
        }
    }
    notes.push((
        "range".to_owned(),
        format!(
            "below the chances in {main}, depending on what nobody knows (failure rate of this model, latent errors, \
             common causes): 5 % of what may be lies below, 5 % above"
        ),
    ));
    notes.push((
        "structure".to_owned(),
        "with another spare, scrub or replacement other chances: the rows of what if of the command below".to_owned(),
    ));
    let error = of.computing_error * 100.0;
    notes.push((
        "computing".to_owned(),
        format!("standard error at most {error:.1} %, negligible beside the range"),
    ));
    notes.push(("drives".to_owned(), of.drives.clone()));
    notes.push(("assumed".to_owned(), assumed(of)));
    let all = rebuilt.iter().filter(|(words, _)| !words.starts_with("never")).count();
    for (words, names) in rebuilt {
        let is_all = all == 1 && !words.starts_with("never");
        let of = if is_all { String::new() } else { format!("{}: ", number::listed(&names)) };
        notes.push((REBUILDS.to_owned(), format!("{of}{words}")));
    }
    let own = of.layouts.iter().any(|layout| !layout.rebuild_hours.is_empty());
    let rebuilds =
        if own { "; its rebuilds are one full pass to three, --rebuild takes others" } else { "" };
    for command in &of.commands {
        let help = format!("(other inputs: raidlab risk --help{rebuilds})");
        notes.push(("ask".to_owned(), format!("{command} {help}")));
    }
    notes
}

/// In one sentence.
fn assumed(of: &DrivesRisk) -> String {
    let mut told: Vec<String> =
        of.assumed.iter().map(|one| format!("{} {}", one.what, one.words)).collect();
    let spares = of.layouts.iter().filter(|layout| layout.spares > 0);
    let spares: Vec<String> =
        spares.map(|layout| format!("{} of {}", layout.spares, layout.layout)).collect();
    let spares = if spares.is_empty() { "none".to_owned() } else { number::listed(&spares) };
    told.push(format!("hot spares {spares}"));
    told.join("; ")
}
