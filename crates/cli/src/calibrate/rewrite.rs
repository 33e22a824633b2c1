//! A study file with fitted numbers: everything else of its text stays as it is.

use raidlab_study::Calibration;
use toml_edit::{DocumentMut, Item, Table, Value, value};

/// What goes into the file.
pub(super) struct Changes<'a> {
    /// Positions of the free parameters in the file, their units and fitted values.
    pub(super) parameters: &'a [(usize, &'a str, f64)],
    /// Positions of the given cells that were fitted.
    pub(super) cells: &'a [usize],
    pub(super) calibration: &'a Calibration,
}

/// The text with the changes; the error says what is not where it must be.
pub(super) fn rewrite(text: &str, changes: &Changes<'_>) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|error| format!("not TOML: {error}"))?;
    for (index, unit, fitted) in changes.parameters {
        let number = entry(&mut document, "parameters", *index)
            .and_then(|one| one.get_mut("value")?.get_mut(unit)?.as_value_mut())
            .ok_or_else(|| format!("parameter {index} has no value in {unit}"))?;
        replace(number, (*fitted).into());
    }
    for index in changes.cells {
        let cell = entry(&mut document, "given", *index);
        let cell = cell.and_then(Item::as_table_like_mut);
        let cell = cell.ok_or_else(|| format!("there is no given cell {index}"))?;
        set(cell, "calibrated", true.into());
    }
    let root = document.as_table_mut();
    if !root.contains_key("calibration") {
        let mut table = Table::new();
        table.decor_mut().set_prefix("\n# What `raidlab calibrate` came to.\n");
        root.insert("calibration", Item::Table(table));
    }
    let table = root.get_mut("calibration").and_then(Item::as_table_like_mut);
    let table = table.ok_or("`calibration` is not a table")?;
    for (key, figure) in figures(changes.calibration) {
        match figure {
            Some(figure) => set(table, key, figure),
            None => drop(table.remove(key)),
        }
    }
    Ok(document.to_string())
}

/// A table of a list, whichever way the list is written.
fn entry<'a>(document: &'a mut DocumentMut, list: &str, index: usize) -> Option<&'a mut Item> {
    document.as_table_mut().get_mut(list)?.get_mut(index)
}

fn set(table: &mut dyn toml_edit::TableLike, key: &str, to: Value) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(there) => replace(there, to),
        None => drop(table.insert(key, value(to))),
    }
}

/// Another value in the same place, with the space and comments around it.
fn replace(there: &mut Value, to: Value) {
    let decor = there.decor().clone();
    *there = to;
    *there.decor_mut() = decor;
}

fn figures(calibration: &Calibration) -> [(&'static str, Option<Value>); 8] {
    let count = |number: u32| Some(i64::from(number).into());
    let percent = |number: f64| Some(format!("{number:.1}%").into());
    [
        ("raidlab", Some(calibration.raidlab.as_str().into())),
        ("cells", count(calibration.cells)),
        ("parameters", count(calibration.parameters)),
        ("seeds", count(calibration.seeds)),
        ("evaluations", count(calibration.evaluations)),
        ("median_error_before", percent(calibration.median_error_before)),
        ("median_error", percent(calibration.median_error)),
        ("median_error_left_out", calibration.median_error_left_out.and_then(percent)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# A study.
title = "A study"   # of mine

[[parameters]]          # the medium
of    = "drive disk"
property = "media_rate"
value = {mb_per_s=80}   # guessed
source = "given cells"
free = true
range = [{ mb_per_s = 30 }, { mb_per_s = 0x70 }]

[[given]]
value = 2.50
calibrated  =  false # not yet

[[given]]
value = 3

# The rest.
[[workloads]]
kind = "dd"
"#;

    fn calibration() -> Calibration {
        Calibration {
            raidlab: "0.1.0".into(),
            cells: 2,
            parameters: 1,
            seeds: 1,
            evaluations: 17,
            median_error_before: 22.46,
            median_error: 8.0,
            median_error_left_out: Some(9.12),
        }
    }

    fn rewritten(text: &str, calibration: &Calibration) -> String {
        let changes =
            Changes { parameters: &[(0, "mb_per_s", 47.13)], cells: &[0, 1], calibration };
        rewrite(text, &changes).expect("can be rewritten")
    }

    #[test]
    fn only_the_numbers_change() {
        let text = rewritten(TEXT, &calibration());
        let wanted = TEXT
            .replace("{mb_per_s=80}", "{mb_per_s=47.13}")
            .replace("calibrated  =  false #", "calibrated  =  true #")
            .replace("value = 3\n", "value = 3\ncalibrated = true\n");
        let behind = "\n# What `raidlab calibrate` came to.\n[calibration]\nraidlab = \"0.1.0\"\n\
                      cells = 2\nparameters = 1\nseeds = 1\nevaluations = 17\n\
                      median_error_before = \"22.5%\"\nmedian_error = \"8.0%\"\n\
                      median_error_left_out = \"9.1%\"\n";
        assert_eq!(text, wanted + behind);
    }

    #[test]
    fn a_second_time_changes_the_table_that_is_there() {
        let once = rewritten(TEXT, &calibration()).replace("cells = 2", "cells   =  2  # both");
        let other = Calibration { cells: 3, median_error_left_out: None, ..calibration() };
        let wanted = once
            .replace("cells   =  2  # both", "cells   =  3  # both")
            .replace("median_error_left_out = \"9.1%\"\n", "");
        assert_eq!(rewritten(&once, &other), wanted);
        assert_eq!(rewritten(&wanted, &other), wanted, "and a third time nothing");
    }

    #[test]
    fn lists_of_tables_in_a_line_are_rewritten_as_well() {
        let text =
            "parameters = [{ value = { mb_per_s = 80 } }]\ngiven = [{ value = 2 }, {value=3}]\n";
        let text = rewritten(text, &calibration());
        assert!(text.starts_with("parameters = [{ value = { mb_per_s = 47.13 } }]\n"), "{text}");
        assert_eq!(text.matches("calibrated = true").count(), 2, "{text}");
    }

    #[test]
    fn what_is_not_there_cannot_be_rewritten() {
        let calibration = calibration();
        let changes = |parameters, cells| Changes { parameters, cells, calibration: &calibration };
        let error = rewrite(TEXT, &changes(&[(0, "ms", 1.0)], &[])).expect_err("no such unit");
        assert_eq!(error, "parameter 0 has no value in ms");
        assert!(rewrite(TEXT, &changes(&[(1, "mb_per_s", 1.0)], &[])).is_err());
        assert!(rewrite(TEXT, &changes(&[], &[2])).is_err());
        assert!(rewrite("a = ", &changes(&[], &[])).is_err());
    }
}
