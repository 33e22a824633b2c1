//! What flags and a file ask, checked.

use std::ops::RangeInclusive;

use raidlab_advise::{Among, Profile, Wanted};
use raidlab_core::layout::nested_levels;
use raidlab_core::suggest::did_you_mean;
use raidlab_core::{Layout, Level, Nanos, Sectors, Size};
use raidlab_models::DriveSpec;
use raidlab_risk::{Hazard, years};

use super::args::AdviseOptions;
use crate::failure::Failure;
use crate::output::note;

/// The drive where nobody names one.
const DRIVE: &str = "nas-8tb-7200";
/// The work where nobody names any.
const WORK: &str = "nas";

pub(super) fn wanted(options: &AdviseOptions) -> Result<Wanted, Failure> {
    let profile = profile(options)?;
    let drive = drive(options)?;
    let drives = drives(options)?;
    let mut wanted = Wanted::new(drives, drive, profile);
    wanted.later = options.drives_later;
    for size in options.sizes.iter().flatten() {
        wanted.sizes.push(sectors("--sizes", *size)?);
    }
    wanted.streams = options.streams.unwrap_or(wanted.streams);
    if let Some(busy) = options.busy {
        wanted.busy = busy.chance("--busy").map_err(Failure::Input)?;
    }
    wanted.prefer = options.prefer.map(|prefer| prefer.prefer()).unwrap_or_default();
    wanted.software = options.software.map(|one| one.software()).unwrap_or_default();
    wanted.spares = options.spares.unwrap_or(wanted.spares);
    for chunk in options.chunks.iter().flatten() {
        if !chunk.0.is_power_of_two() || chunk.0 < LEAST_CHUNK {
            let what = "a chunk of md is a power of two, from 4KiB on";
            return Err(Failure::input(format!("--chunks {chunk}: {what}")));
        }
        wanted.chunks.push(sectors("--chunks", *chunk)?);
    }
    for name in options.among.iter().flatten() {
        wanted.among.extend(among(name, &wanted.drives)?);
    }
    wanted.seed = options.seed.unwrap_or(1);
    wanted.requests = options.requests.unwrap_or(wanted.requests);
    limits(options, &mut wanted)?;
    risk(options, &mut wanted)?;
    wanted.check().map_err(Failure::Input)?;
    Ok(wanted)
}

/// The kind of work, or the workloads of a study.
fn profile(options: &AdviseOptions) -> Result<Profile, Failure> {
    let Some(path) = &options.study else {
        if options.workload.is_some() {
            return Err(Failure::input("--workload names one of a study: say --study, too"));
        }
        return Profile::named(options.work.as_deref().unwrap_or(WORK))
            .map_err(|error| Failure::input(format!("--work: {error}")));
    };
    let refused = |flag: &str, why: &str| Err(Failure::input(format!("{flag} and --study: {why}")));
    if options.work.is_some() {
        return refused("--work", "each says what the work is; leave one out");
    }
    if options.streams.is_some() {
        return refused("--streams", "a study says itself how many processes there are");
    }
    if options.requests.is_some() {
        return refused("--requests", "a study's workloads are as long as they are");
    }
    let study = raidlab_study::load(path).map_err(Failure::input)?;
    let file = path.display().to_string();
    let profile = Profile::of_study(&study, &file, options.workload.as_deref());
    let profile = profile.map_err(|error| Failure::input(format!("--study {file}: {error}")))?;
    let layouts = match study.layouts.len() {
        1 => "its layout".to_owned(),
        count => format!("its {count} layouts"),
    };
    note(&format!(
        "{file}: {layouts} and its drives are not looked at, but what --drives and --drive allow"
    ));
    Ok(profile)
}

fn drives(options: &AdviseOptions) -> Result<RangeInclusive<u16>, Failure> {
    let wrong = |text: &str| {
        Failure::input(format!("--drives {text}: write how many, such as 4, or 4..8 to buy"))
    };
    if let Some(sizes) = &options.sizes {
        let count = sizes.len() as u16;
        if options.drives.as_ref().is_some_and(|text| *text != count.to_string()) {
            let reason = "leave --drives out, or name as many sizes";
            return Err(Failure::input(format!("--sizes names {count} drives: {reason}")));
        }
        return Ok(count..=count);
    }
    let Some(text) = &options.drives else {
        let reason =
            "is missing: how many drives, such as 4, or 4..8 to buy (--ask asks for all there is)";
        return Err(Failure::input(format!("--drives {reason}")));
    };
    let number = |part: &str| part.trim().parse::<u16>().map_err(|_| wrong(text));
    match text.split_once("..") {
        Some((least, most)) => Ok(number(least)?..=number(most)?),
        None => {
            let count = number(text)?;
            Ok(count..=count)
        }
    }
}

/// The drive, with another capacity if one is given.
fn drive(options: &AdviseOptions) -> Result<DriveSpec, Failure> {
    let name = options.drive.as_deref().unwrap_or(DRIVE);
    let drive = raidlab_models::load(name)
        .map_err(|error| Failure::input(format!("--drive {name}: {error}")))?;
    let largest = options.sizes.iter().flatten().max().copied();
    let Some(size) = options.size.or(largest) else { return Ok(drive) };
    let size = sectors("--size", size)?;
    let changed = drive.with_amounts(&[("capacity", size.0, "given")]);
    changed
        .map_err(|error| Failure::input(format!("--size: {name} cannot be of that size: {error}")))
}

fn sectors(flag: &str, size: Size) -> Result<Sectors, Failure> {
    let sectors = Sectors::from_bytes(size.0).filter(|sectors| sectors.0 > 0);
    sectors.ok_or_else(|| Failure::input(format!("{flag} {size}: not a multiple of 512 bytes")))
}

/// Bytes of md's smallest chunk, a page.
const LEAST_CHUNK: u64 = 4096;
/// Bytes below which a capacity that is asked for was meant to have a unit.
const LEAST_CAPACITY: u64 = 1_000_000_000;

/// `raid6(8)`, `raid10`, `raid5+0`.
fn among(name: &str, drives: &RangeInclusive<u16>) -> Result<Vec<Among>, Failure> {
    let name = name.trim();
    if !name.contains('(') {
        if let Some((inner, outer)) = nested_levels(name) {
            return Ok(vec![Among::Nested(inner, outer)]);
        }
        if let Ok(level) = name.parse::<Level>() {
            return Ok(vec![Among::Level(level)]);
        }
    }
    let layout = name.parse::<Layout>().map_err(|error| {
        let known = Level::ALL.map(Level::name);
        let hint = did_you_mean(name.split('(').next().unwrap_or(name), &known);
        Failure::input(format!("--among {name}: {error}{hint}"))
    })?;
    if layout.drives() > *drives.end() {
        let (needed, most) = (layout.drives(), drives.end());
        let reason = format!("has {needed} drives and --drives allows {most}");
        return Err(Failure::input(format!(
            "--among {layout} {reason}: they contradict each other"
        )));
    }
    Ok(vec![Among::Layout(layout)])
}

fn limits(options: &AdviseOptions, wanted: &mut Wanted) -> Result<(), Failure> {
    let limits = &mut wanted.limits;
    if let Some(size) = options.capacity.filter(|size| size.0 < LEAST_CAPACITY) {
        let what = "so little every array has; with a unit it is more, such as 20TB";
        return Err(Failure::input(format!("--capacity {size}: {what}")));
    }
    limits.capacity = options.capacity.map(|size| size.0);
    limits.survive = options.survive.unwrap_or(limits.survive);
    let above = |flag: &str, value: f64| match value.is_finite() && value > 0.0 {
        true => Ok(value),
        false => Err(Failure::input(format!("{flag}: write a number above 0"))),
    };
    if let Some(price) = options.price {
        let price = above("--price", price)?;
        limits.price = Some(price);
        if let Some(budget) = options.budget {
            limits.budget = Some((above("--budget", budget)?, price));
        }
    }
    if let (Some(all), Some(each)) = (options.watts, options.drive_watts) {
        limits.watts = Some((above("--watts", all)?, above("--drive-watts", each)?));
    }
    if let Some(text) = &options.p99 {
        limits.tail = Some(time("--p99", text)?.as_secs());
    }
    if let Some(text) = &options.speed {
        limits.speed = Some(rate(text, &wanted.profile)?);
    }
    Ok(())
}

/// `50ms`, `800us`, `1s`.
pub(crate) fn time(flag: &str, text: &str) -> Result<Nanos, Failure> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale = match unit.trim() {
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => 0.0,
    };
    match number.parse::<f64>() {
        Ok(value) if value > 0.0 && scale > 0.0 => Ok(Nanos((value * scale) as u64)),
        _ => Err(Failure::input(format!("{flag} {text}: write a time such as 50ms, 800us or 1s"))),
    }
}

/// `400MB/s` or `2000`, of the parts of the work that are counted so, and in which unit.
fn rate(text: &str, profile: &Profile) -> Result<(f64, &'static str), Failure> {
    let wrong = |reason: String| Failure::input(format!("--speed {text}: {reason}"));
    let mut units: Vec<&'static str> = Vec::new();
    for part in profile.parts.iter().filter(|part| !part.counted.is_inverse()) {
        if !units.contains(&part.counted.unit()) {
            units.push(part.counted.unit());
        }
    }
    let name = &profile.name;
    if units.is_empty() {
        let unit = profile.parts[0].counted.unit();
        let reason = format!("`{name}` is counted in {unit}, of which less is better");
        return Err(wrong(format!("{reason}: no such limit")));
    }
    let bytes = text.strip_suffix("/s").and_then(|size| size.trim().parse::<Size>().ok());
    let others: Vec<&'static str> =
        units.iter().copied().filter(|unit| *unit != MEGABYTES).collect();
    let found = match (bytes, others.as_slice()) {
        (Some(Size(bytes)), _) => {
            units.contains(&MEGABYTES).then_some((Some(bytes as f64), MEGABYTES))
        }
        (None, [unit]) => Some((text.trim().parse::<f64>().ok(), *unit)),
        (None, []) => None,
        (None, _) => {
            let reason = format!("parts of `{name}` are counted in {}", others.join(" and "));
            return Err(wrong(format!("{reason}: which is meant is not told by a number")));
        }
    };
    let found = found.and_then(|(value, unit)| Some((value.filter(|value| *value > 0.0)?, unit)));
    found.ok_or_else(|| {
        let example = |unit: &&str| match *unit {
            MEGABYTES => "400MB/s",
            "I/O/s" => "2000 (reads and writes a second)",
            _ => "2000",
        };
        let examples: Vec<&str> = units.iter().map(example).collect();
        let (units, examples) = (units.join(" and "), examples.join(" or "));
        wrong(format!("`{name}` is counted in {units}: write {examples}"))
    })
}

/// The unit of limits in bytes a second.
const MEGABYTES: &str = "MB/s";

fn risk(options: &AdviseOptions, wanted: &mut Wanted) -> Result<(), Failure> {
    if let Some(replace) = &options.replace {
        let reason = "--replace never: write how long, such as 30d";
        wanted.model.replace = replace.0.clone().ok_or_else(|| Failure::input(reason))?;
    }
    if let Some(afr) = options.afr {
        wanted.unknown[0] = afr.0;
        wanted.model.hazard = Hazard::yearly(afr.0.central);
    }
    let mission = options.years.unwrap_or(5.0);
    if !(mission > 0.0 && mission <= 100.0) {
        return Err(Failure::input("--years: write years above 0, up to 100"));
    }
    wanted.mission = years(mission);
    Ok(())
}
