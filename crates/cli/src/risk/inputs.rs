//! The question that flags ask, checked, with where each figure is from.

use std::io::{BufRead, IsTerminal, Write};

use raidlab_core::geometry::Geometry;
use raidlab_core::{Consistency, Layout, Sectors, Settings};
use raidlab_models::DriveSpec;
use raidlab_risk::prior::{Class, Range};
use raidlab_risk::{
    Hazard, Latent, Law, Model, Question, REPLACED, Span, Stop, WriteHole, YEAR, years,
};

use super::args::{Mode, RiskOptions};
use super::rebuild::{self, Simulated};
use super::values::{Hours, percents, span, time};
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::Bar;

/// Bytes of a stripe that a crash tears: a chunk, as md's default.
const TORN: f64 = 524_288.0;

/// The question, and what is assumed in words: what, how it is, where from.
pub(super) struct Asked {
    pub(super) question: Question,
    pub(super) assumed: Vec<(&'static str, String)>,
    pub(super) simulated: Vec<Simulated>,
}

pub(super) fn asked(options: &RiskOptions, bar: &Bar) -> Result<Asked, Failure> {
    let missions = missions(options)?;
    // What can be wrong at once, before anything is asked or simulated.
    let drive = drive(options)?;
    let class = class(options, drive.as_ref())?;
    let sectors = held(options, drive.as_ref())?;
    let (failures, hazard, failing) = failures(options, class)?;
    let found = scrub(options)?;
    let latent = options.latent.map_or(class.defects(), |latent| latent.0);
    let common = options.common_cause.0;
    if common.high > 1.0 {
        return Err(Failure::input("--common-cause: at most 100 percent"));
    }
    let wrong_pull = options.wrong_pull.chance("--wrong-pull").map_err(Failure::Input)?;
    let mut model = Model {
        hazard,
        age: options.age * YEAR,
        latent: Latent {
            rate: latent.central / YEAR,
            found: found.map(|hours| Span::Uniform(0.0, hours)),
            law: Law::Independent,
            while_rebuilding: true,
            bytes: options.defect.0 as f64,
        },
        spares: options.spares,
        order: options.repairs.order(),
        wrong_pull,
        common_cause: common.central,
        batch: options.batch,
        ..Model::plain(0.0, 0.0)
    };
    model.check().map_err(Failure::Input)?;
    write_holes(options, &model, &[])?;
    let (replace, replaced) = replacement(options)?;
    let (rebuild, simulated, rebuilt) = rebuilds(options, drive.as_ref(), bar)?;
    (model.replace, model.rebuild) = (replace, rebuild);
    let mut assumed = vec![("replaced", replaced), ("spares", options.spares.to_string())];
    assumed.push(("rebuilt", rebuilt));
    assumed.push(("drives", drives_in_words(options, drive.as_ref())));
    assumed.push(("failing", failing));
    assumed.extend(rest_in_words(options, class, latent, wrong_pull));
    let spans = simulated.iter().map(|one| one.span.clone()).collect();
    let rebuilds = spans_of_redundant(spans, &model.rebuild);
    let mut unscrubbed = model.clone();
    unscrubbed.latent.found = None;
    let question = Question {
        layouts: options.layouts.clone(),
        drive: sectors,
        write_holes: write_holes(options, &model, &rebuilds)?,
        write_holes_without_scrub: write_holes(options, &unscrubbed, &rebuilds)?,
        rebuilds,
        spares: Vec::new(),
        model,
        failures,
        defects: latent,
        common_cause: common,
        main: missions.len() / 2,
        missions,
        seed: options.seed,
        stop: Stop::on(interrupt::flag()?),
    };
    Ok(Asked { question, assumed, simulated })
}

/// What each drive holds; every layout fits on drives of that size.
fn held(options: &RiskOptions, drive: Option<&DriveSpec>) -> Result<Sectors, Failure> {
    let sectors = match (options.size, drive) {
        (Some(size), _) => Sectors::from_bytes(size.0)
            .ok_or_else(|| Failure::input(format!("--size {size}: not a multiple of 512 bytes")))?,
        (None, Some(drive)) => drive.capacity,
        (None, None) => return Err(Failure::input("--drive or --size is missing")),
    };
    for layout in &options.layouts {
        let sizes = vec![sectors; usize::from(layout.drives())];
        let fits = Geometry::new(layout, &sizes);
        fits.map_err(|error| Failure::input(format!("{layout}: {error}")))?;
    }
    Ok(sectors)
}

/// Hours from one scrub to the next.
fn scrub(options: &RiskOptions) -> Result<Option<f64>, Failure> {
    match options.scrub.0 {
        None => Ok(None),
        Some(Span::Fixed(hours)) if hours > 0.0 => Ok(Some(hours)),
        Some(_) => Err(Failure::input("--scrub: write one time above 0, such as 30d, or never")),
    }
}

/// Of each layout, whose rebuilds take so long where they are its own.
fn write_holes(
    options: &RiskOptions,
    model: &Model,
    rebuilds: &[Span],
) -> Result<Vec<WriteHole>, Failure> {
    let of = |(at, layout): (usize, &Layout)| {
        let own = rebuilds.get(at).unwrap_or(&model.rebuild).clone();
        write_hole(options, layout, &Model { rebuild: own, ..model.clone() })
    };
    options.layouts.iter().enumerate().map(of).collect()
}

fn drives_in_words(options: &RiskOptions, drive: Option<&DriveSpec>) -> String {
    let batch = match options.batch {
        0.0 => "of mixed batches".into(),
        sigma => format!("of one batch, sigma {sigma} (estimate)"),
    };
    let aged = match options.age {
        0.0 => "new".into(),
        age => format!("{age} years old"),
    };
    let held = drive.map_or_else(String::new, |drive| format!("{}, ", drive.title));
    format!("{held}{aged}, {batch}")
}

/// What else is assumed.
fn rest_in_words(
    options: &RiskOptions,
    class: Class,
    latent: Range,
    wrong_pull: f64,
) -> [(&'static str, String); 5] {
    let common = percents(options.common_cause.0);
    let latent_from = if options.latent.is_some() { "given" } else { class.defects_source() };
    let scrubbed = options.scrub.0.as_ref().map(|scrub| format!("every {}", span(scrub)));
    let crashes = match options.crashes {
        None => "not counted (--crashes)".into(),
        Some(crashes) => format!("{crashes} a year, {}", mode_name(options)),
    };
    [
        ("latent", format!("{} a year: {latent_from}", percents(latent))),
        ("scrubbed", scrubbed.unwrap_or_else(|| "never".into())),
        (
            "together",
            format!(
                "{common} of failures take one other drive along, any of the array's: the more there are, the \
                 less often it is the one that matters"
            ),
        ),
        ("wrong pull", format!("{} of replacements", percents(Range::fixed(wrong_pull)))),
        ("crashes", crashes),
    ]
}

/// Layouts without redundancy have no rebuilds.
fn spans_of_redundant(spans: Vec<Span>, other: &Span) -> Vec<Span> {
    let filled = |span| match span {
        Span::Samples(samples) if samples.is_empty() => other.clone(),
        span => span,
    };
    spans.into_iter().map(filled).collect()
}

fn missions(options: &RiskOptions) -> Result<Vec<f64>, Failure> {
    let is_mission = |years: &f64| years.is_finite() && *years > 0.0 && *years <= 100.0;
    if !options.years.iter().all(is_mission) || !options.years.is_sorted() {
        return Err(Failure::input("--years: write years above 0, up to 100, ascending"));
    }
    let is_age = (0.0..=100.0).contains(&options.age);
    if !is_age {
        return Err(Failure::input("--age: write years from 0 to 100"));
    }
    if options.age > 0.0 && options.weibull.is_none() && options.afr_by_age.is_none() {
        let reason = "changes nothing while drives fail as often at any age; add --weibull SHAPE, or \
                      --afr-by-age";
        return Err(Failure::input(format!("--age: {reason}")));
    }
    if options.spares > 0 && options.layouts.iter().all(|layout| layout.survives() == 0) {
        let reason =
            "a spare rebuilds what is lost from what is left, and none of these layouts has that";
        return Err(Failure::input(format!("--spares: {reason}; leave it out")));
    }
    Ok(options.years.iter().map(|one| years(*one)).collect())
}

/// Until a drive is replaced, which is asked first: where nothing is said and somebody sits there.
fn replacement(options: &RiskOptions) -> Result<(Span, String), Failure> {
    if let Some(Hours(given)) = &options.replace {
        let given = given.clone().ok_or_else(|| {
            Failure::input("--replace never: write how long, such as 30d; a drive that is never replaced is none")
        })?;
        let words = format!("after {}", span(&given));
        return Ok((given, words));
    }
    let nobody = options.quiet || options.json.is_some();
    if nobody || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        let words = format!("after {} (assumed: --replace says it)", time(REPLACED));
        return Ok((Span::Fixed(REPLACED), words));
    }
    loop {
        let asked = "From a failure until somebody has put another drive in? It often outweighs the rebuild.\n\
                     36h, 3d, 2w, or a range such as 1d..10d [3d]: ";
        let mut answer = String::new();
        let told = std::io::stderr().write_all(asked.as_bytes());
        let read = told.and_then(|()| std::io::stdin().lock().read_line(&mut answer));
        let read = read.map_err(|error| Failure::failed(format!("cannot ask: {error}")))?;
        if read == 0 || answer.trim().is_empty() {
            return Ok((Span::Fixed(REPLACED), format!("after {}", time(REPLACED))));
        }
        match answer.trim().parse() {
            Ok(Hours(Some(given))) => {
                let words = format!("after {}", span(&given));
                return Ok((given, words));
            }
            Ok(Hours(None)) => crate::output::note("how long at most?"),
            Err(error) => crate::output::note(&error),
        }
    }
}

fn drive(options: &RiskOptions) -> Result<Option<DriveSpec>, Failure> {
    if options.size.is_some() {
        if !options.load.is_empty() {
            let reason = "a load is simulated on a modelled drive: name one by --drive, not --size";
            return Err(Failure::input(format!("--load: {reason}")));
        }
        return Ok(None);
    }
    let name = options.drive_name();
    let loaded = raidlab_models::load(name);
    loaded.map(Some).map_err(|error| Failure::input(format!("--drive {name}: {error}")))
}

fn class(options: &RiskOptions, drive: Option<&DriveSpec>) -> Result<Class, Failure> {
    let of_drive = drive.map(raidlab_advise::class);
    let given = options.class.map(|class| class.class());
    match (given, of_drive) {
        (Some(given), Some(of_drive)) if given != of_drive => {
            let name = options.drive_name();
            let reason =
                format!("`{name}` is of the other class; leave --class out, or use --size");
            Err(Failure::input(format!("--class: {reason}")))
        }
        (given, of_drive) => {
            given.or(of_drive).ok_or_else(|| Failure::input("--class is missing: hdd or ssd"))
        }
    }
}

/// Failures a year, the law they follow, and both in words.
fn failures(options: &RiskOptions, class: Class) -> Result<(Range, Hazard, String), Failure> {
    if let Some(rates) = &options.afr_by_age {
        let are_rates = rates.iter().all(|rate| (0.0..=1_000.0).contains(rate));
        if !are_rates {
            return Err(Failure::input("--afr-by-age: write percentages a year, such as 1,1.5,3"));
        }
        let shares: Vec<f64> = rates.iter().map(|rate| rate / 100.0).collect();
        // As uncertain as the class, around what is given.
        let Range { low, central, high } = class.failures();
        let range = Range { low: low / central, central: 1.0, high: high / central };
        let each: Vec<String> = rates.iter().map(ToString::to_string).collect();
        let each = each.join(", ");
        let words = format!("{each} % in the years of age, given; range as of the class");
        return Ok((range, Hazard::by_year_of_age(&shares), words));
    }
    let (range, source) = match (&options.afr, &options.failures) {
        (Some(given), _) => (given.0, "given".to_owned()),
        (None, Some(seen)) => {
            let parts = seen.split_once('/');
            let parts = parts.and_then(|(failed, days)| {
                Some((failed.trim().parse::<u32>().ok()?, days.trim().parse::<f64>().ok()?))
            });
            let (failed, days) = parts.ok_or_else(|| {
                Failure::input(format!("--failures {seen}: write N/DAYS, such as 50/3555491"))
            })?;
            let range = Range::of_failures(failed, days)
                .map_err(|error| Failure::input(format!("--failures: {error}")))?;
            (range, format!("{failed} failures in {days} drive-days"))
        }
        (None, None) => (class.failures(), class.failures_source().to_owned()),
    };
    let hazard = match options.weibull {
        Some(shape) if !(0.1..=10.0).contains(&shape) => {
            return Err(Failure::input("--weibull: write a shape from 0.1 to 10"));
        }
        Some(shape) if range.central > 0.0 => Hazard::weibull_yearly(range.central, shape),
        _ => Hazard::yearly(range.central),
    };
    let shape =
        options.weibull.map_or_else(String::new, |shape| format!(", Weibull shape {shape}"));
    Ok((range, hazard, format!("{} a year{shape}: {source}", percents(range))))
}

/// Rebuild times of all layouts, those that were simulated, and both in words.
fn rebuilds(
    options: &RiskOptions,
    drive: Option<&DriveSpec>,
    bar: &Bar,
) -> Result<(Span, Vec<Simulated>, String), Failure> {
    if let Some(Hours(given)) = &options.rebuild {
        let given = given.clone().ok_or_else(|| {
            Failure::input("--rebuild never: write how long, or a layout without redundancy")
        })?;
        let words = format!("in {}", span(&given));
        return Ok((given, Vec::new(), words));
    }
    if let (Some(drive), false) = (drive, options.load.is_empty()) {
        let simulated = rebuild::simulate(options, drive, bar)?;
        let first = simulated.iter().find(|one| one.is_of_runs());
        let span = first.map_or(Span::Fixed(0.0), |one| one.span.clone());
        let words = format!(
            "simulated under {} with {} process{}, {} seeds each",
            options.load.join("; "),
            options.processes,
            if options.processes == 1 { "" } else { "es" },
            options.seeds
        );
        return Ok((span, simulated, words));
    }
    // Layouts that cannot rebuild need no figure.
    if options.layouts.iter().all(|layout| layout.survives() == 0) {
        return Ok((Span::Fixed(0.0), Vec::new(), "never: no redundancy".into()));
    }
    let drive = drive.ok_or_else(|| {
        Failure::input(
            "--rebuild <TIME> is missing: --size gives no figures for a full pass; give --rebuild, or a drive and \
             --load, which simulates it",
        )
    })?;
    let assumed = rebuild::assumed(rebuild::full_pass(drive));
    let words = format!("{} (assumed: --rebuild, --load)", rebuild::assumed_in_words(&assumed));
    Ok((assumed, Vec::new(), words))
}

fn mode(options: &RiskOptions) -> Mode {
    options.consistency.unwrap_or(Mode::Bitmap)
}

fn mode_name(options: &RiskOptions) -> &'static str {
    match mode(options) {
        Mode::None => "nothing keeps parity consistent",
        Mode::Resync => "resync afterwards",
        Mode::Bitmap => "bitmap",
        Mode::Ppl => "log of partial parity",
        Mode::Journal => "journal",
    }
}

/// Torn stripes an hour. Copies that differ after a crash hold what was written or what was there before: only parity
/// can make something else of them.
fn write_hole(options: &RiskOptions, layout: &Layout, model: &Model) -> Result<WriteHole, Failure> {
    let crashes = options.crashes.unwrap_or(0.0);
    if !(0.0..=100_000.0).contains(&crashes) {
        return Err(Failure::input("--crashes: write crashes a year, 0 or more"));
    }
    let consistency = match mode(options) {
        Mode::None => Consistency::None,
        Mode::Resync => Consistency::Resync,
        Mode::Bitmap => Consistency::Bitmap { chunk: Sectors(1 << 17) },
        Mode::Ppl => Consistency::PartialParity { slots: 8 },
        Mode::Journal => Consistency::Journal { sectors: Sectors(1 << 17) },
    };
    if options.consistency.is_some() && layout.has_parity() {
        let settings = Settings { consistency, ..Settings::default() };
        let flat = layout.floors().find(|floor| floor.parities() > 0);
        let of = flat.map_or_else(|| layout.clone(), Layout::upper);
        settings.check(&of).map_err(|error| Failure::input(format!("--{error}")))?;
    }
    let wrong = |error: String| Failure::input(error);
    let writing = options.writing.chance("--writing").map_err(wrong)?;
    let not_back = options.not_back.chance("--not-back").map_err(wrong)?;
    if crashes == 0.0 || !layout.has_parity() {
        return Ok(WriteHole::default());
    }
    let torn = crashes / YEAR * writing;
    // Until parity is right again a failure makes something else of what it belongs to.
    let failures = |hours: f64| {
        let each = model.hazard.cumulative(model.age + hours) - model.hazard.cumulative(model.age);
        (f64::from(layout.drives()) * each).min(1.0)
    };
    let exposed = match mode(options) {
        Mode::Ppl | Mode::Journal => return Ok(WriteHole::default()),
        Mode::Bitmap => 0.0,
        Mode::Resync => failures(model.rebuild.mean()),
        Mode::None => failures(model.latent.found.as_ref().map_or(5.0 * YEAR, Span::mean)),
    };
    Ok(WriteHole { whole: torn * (not_back + exposed).min(1.0), degraded: torn, bytes: TORN })
}
