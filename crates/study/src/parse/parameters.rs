//! `[[parameters]]`: numbers of drives, paths, controllers and the host, and which may be fitted.
//! `[calibration]`: what fitting them came to.

use super::table::{StudyTable, Table, Unit};
use crate::error::{StudyError, StudyErrorKind as Kind};
use crate::parameters::{Owner, Parameter, Parts, most_free, properties};
use crate::study::{Calibration, DriveSource, Drives, GivenCell};
use raidlab_core::suggest::did_you_mean;

const KEYS: [&str; 6] = ["of", "property", "value", "source", "free", "range"];

/// Reads the parameters and puts them into the parts of the study; `values`, where there are any, take the
/// place of those of the free ones.
pub(super) fn read(
    tables: &[Table<'_>],
    drives: &[Drives],
    given: &[GivenCell],
    parts: &mut Parts,
    values: Option<&[f64]>,
) -> Result<Vec<Parameter>, StudyError> {
    let mut parameters: Vec<Parameter> = Vec::new();
    let mut free = 0;
    for table in tables {
        let mut parameter = read_one(table, drives, parts)?;
        check_unique(table, &parameter, &parameters)?;
        if parameter.free {
            free += 1;
            check_count(table, free, given)?;
            if let Some(value) = values.and_then(|values| values.get(free - 1)) {
                parameter.value = *value;
            }
        }
        parameters.push(parameter);
    }
    let stated = parts.clone();
    parts.apply(&parameters).map_err(|(index, reason)| {
        let table: &Table<'_> = &tables[index];
        table.error(Kind::WrongValue, "value", reason)
    })?;
    check_ranges(tables, &parameters, &stated)?;
    Ok(parameters)
}

fn read_one(table: &Table<'_>, drives: &[Drives], parts: &Parts) -> Result<Parameter, StudyError> {
    table.check_keys(&KEYS)?;
    let of = table.required_text("of", "of = \"drive disk1\"")?;
    let owner = owner(table, of, drives, parts)?;
    let properties = properties(&owner);
    let name = table.required_text("property", "property = \"rate\"")?;
    let Some((property, units)) = properties.iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = properties.iter().map(|(name, _)| *name).collect();
        let (hint, known) = (did_you_mean(name, &known), known.join(", "));
        let reason = format!("`{name}` is not a property of `{of}`{hint}; it has: {known}");
        return Err(table.error(Kind::UnknownName, "property", reason));
    };
    let example = format!("value = {{ {} = 10 }}", units.first().map_or("count", |unit| unit.0));
    let ((unit, scale), value) =
        table.amount("value", units)?.ok_or_else(|| table.missing("value", &example))?;
    let parameter = Parameter {
        owner,
        of: of.split_whitespace().collect::<Vec<_>>().join(" "),
        property,
        value,
        unit,
        scale,
        source: table.required_text("source", "source = \"given cells\"")?.to_string(),
        free: table.flag("free")?.unwrap_or(false),
        range: range(table, (unit, scale), units)?,
    };
    check_freedom(table, &parameter)?;
    Ok(parameter)
}

/// `of = "drive disk1"`.
fn owner(
    table: &Table<'_>,
    of: &str,
    drives: &[Drives],
    parts: &Parts,
) -> Result<Owner, StudyError> {
    let (kind, name) = of.trim().split_once(char::is_whitespace).unwrap_or((of.trim(), ""));
    let name = name.trim();
    let unknown = |name: &str, known: Vec<&str>| {
        let reason = match known.join(", ") {
            none if none.is_empty() => format!("this study has no {kind} to have a parameter"),
            all => {
                let hint = did_you_mean(name, &known);
                format!("`{name}` is no {kind} of this study{hint}; it has: {all}")
            }
        };
        table.error(Kind::UnknownName, "of", reason)
    };
    match kind {
        "host" if !name.is_empty() => {
            let reason = format!("there is one host: write \"host\", not \"{of}\"");
            Err(table.error(Kind::UnknownName, "of", reason))
        }
        "host" if parts.hosts().next().is_none() => Err(unknown(name, Vec::new())),
        "host" => Ok(Owner::Host),
        "drive" => {
            let named = drives.iter().position(|group| group.name == name);
            let all = || drives.iter().map(|group| group.name.as_str()).collect();
            let index = named.ok_or_else(|| unknown(name, all()))?;
            if matches!(drives[index].source, DriveSource::File(_)) {
                let reason = format!("the drives `{name}` are files, which no model describes");
                return Err(table.error(Kind::WrongValue, "of", reason));
            }
            Ok(Owner::Drive(index))
        }
        "path" => {
            let known = || parts.paths.iter().map(|path| path.name.as_str()).collect();
            paths(table, name, parts, |name| unknown(name, known()))
        }
        "controller" => {
            let mut known: Vec<&str> = Vec::new();
            for layout in &parts.layouts {
                if let Some(controller) = &layout.hardware.controller
                    && !known.contains(&controller.name.as_str())
                {
                    known.push(&controller.name);
                }
            }
            let is_known = known.contains(&name);
            is_known
                .then(|| Owner::Controller(name.to_string()))
                .ok_or_else(|| unknown(name, known))
        }
        _ => {
            let hint = did_you_mean(kind, &["drive", "path", "host", "controller"]);
            let reason = format!(
                "`{kind}` has no parameters{hint}; write \"drive GROUP\", \"path NAME\", \"host\" \
                 or \"controller KIND\""
            );
            Err(table.error(Kind::UnknownName, "of", reason))
        }
    }
}

/// Positions of the paths `name, name`.
fn paths(
    table: &Table<'_>,
    names: &str,
    parts: &Parts,
    unknown: impl Fn(&str) -> StudyError,
) -> Result<Owner, StudyError> {
    let mut positions = Vec::new();
    for name in names.split(',').map(str::trim) {
        let position = parts.paths.iter().position(|path| path.name == name);
        let position = position.ok_or_else(|| unknown(name))?;
        if positions.contains(&position) {
            let reason = format!("`{name}` stands twice; name each path once");
            return Err(table.error(Kind::DuplicateName, "of", reason));
        }
        positions.push(position);
    }
    Ok(Owner::Paths(positions))
}

/// `range = [{ mb_per_s = 30 }, { mb_per_s = 70 }]`, in the unit of the value.
fn range(
    table: &Table<'_>,
    unit: Unit,
    units: &'static [Unit],
) -> Result<Option<[f64; 2]>, StudyError> {
    let Some(ends) = table.amounts("range", units)? else { return Ok(None) };
    let converted: Vec<f64> = ends
        .iter()
        .map(|((name, scale), end)| if *name == unit.0 { *end } else { end * scale / unit.1 })
        .collect();
    match converted[..] {
        [least, most] if least > 0.0 && least < most => Ok(Some([least, most])),
        _ => {
            let reason = "must be two values, the least above 0 and the most above that";
            Err(table.error(Kind::WrongValue, "range", reason))
        }
    }
}

fn check_freedom(table: &Table<'_>, parameter: &Parameter) -> Result<(), StudyError> {
    let (value, unit) = (parameter.value, parameter.unit);
    let Some([least, most]) = parameter.range else {
        if parameter.free {
            let example = format!("range = [{{ {unit} = 1 }}, {{ {unit} = 100 }}]");
            return Err(table.missing("range", &format!("{example}: a free one must have limits")));
        }
        return Ok(());
    };
    if !(least..=most).contains(&value) {
        let reason = format!("{value} {unit} is outside its range, {least} to {most}");
        return Err(table.error(Kind::WrongValue, "value", reason));
    }
    Ok(())
}

/// No property is given twice, nor a rate and a part of it.
fn check_unique(
    table: &Table<'_>,
    parameter: &Parameter,
    earlier: &[Parameter],
) -> Result<(), StudyError> {
    let of_rate = |name: &str| matches!(name, "outer_rate" | "inner_rate");
    for other in earlier.iter().filter(|other| other.owner.shares(&parameter.owner)) {
        let (one, two) = (other.property, parameter.property);
        if one == two {
            let reason = format!("`{}` has two parameters `{two}`; keep one", parameter.of);
            return Err(table.error(Kind::DuplicateName, "property", reason));
        }
        if (one == "media_rate" && of_rate(two)) || (two == "media_rate" && of_rate(one)) {
            let reason = format!("`{two}` and `{one}` of `{}` are one rate; keep one", other.of);
            return Err(table.error(Kind::DuplicateName, "property", reason));
        }
    }
    Ok(())
}

/// Whether one more may be free.
fn check_count(table: &Table<'_>, free: usize, given: &[GivenCell]) -> Result<(), StudyError> {
    let cells = given.iter().filter(|cell| cell.fit).count();
    let most = most_free(cells);
    if free <= most {
        return Ok(());
    }
    if cells == 0 {
        let reason = "the study has no given cell to fit it to; set free = false";
        return Err(table.error(Kind::WrongValue, "free", reason));
    }
    let reason = format!(
        "this is free parameter {free}, and with {cells} given cells to fit at most {most} may be \
         free: half as many as cells, at least one; set free = false"
    );
    Err(table.error(Kind::WrongValue, "free", reason))
}

/// Both ends of every range can be.
fn check_ranges(
    tables: &[Table<'_>],
    parameters: &[Parameter],
    parts: &Parts,
) -> Result<(), StudyError> {
    for (index, parameter) in parameters.iter().enumerate() {
        for end in parameter.range.into_iter().flatten() {
            let mut all = parameters.to_vec();
            all[index].value = end;
            parts.clone().apply(&all).map_err(|(of, reason)| {
                let key = if of == index { "range" } else { "value" };
                tables[of].error(Kind::WrongValue, key, reason)
            })?;
        }
    }
    Ok(())
}

const CALIBRATION: [&str; 8] = [
    "raidlab",
    "cells",
    "parameters",
    "seeds",
    "evaluations",
    "median_error_before",
    "median_error",
    "median_error_left_out",
];

/// `[calibration]`, as `raidlab calibrate` writes it.
pub(super) fn calibration(root: &Table<'_>) -> Result<Option<Calibration>, StudyError> {
    let example = "what `raidlab calibrate` writes";
    let Some(table) = root.table("calibration", example)? else { return Ok(None) };
    table.check_keys(&CALIBRATION)?;
    let hint = "what `raidlab calibrate` writes, or remove [calibration]";
    let count = |key: &str| {
        let number = table.integer(key, 0..=1_000_000_000)?;
        number.map(|number| number as u32).ok_or_else(|| table.missing(key, hint))
    };
    let percent = |key: &str| {
        let number = table.error_percent(key)?;
        number.ok_or_else(|| table.missing(key, hint))
    };
    Ok(Some(Calibration {
        raidlab: table.required_text("raidlab", hint)?.to_string(),
        cells: count("cells")?,
        parameters: count("parameters")?,
        seeds: count("seeds")?,
        evaluations: count("evaluations")?,
        median_error_before: percent("median_error_before")?,
        median_error: percent("median_error")?,
        median_error_left_out: table.error_percent("median_error_left_out")?,
    }))
}
