//! A study on block devices of the user's: shown first, and run only when they are confirmed.
//!
//! Devices are claimed exclusively before they are looked at, and stay so until the study has ended.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use raidlab_core::Size;
use raidlab_engine::{Device, SaveLog};
use raidlab_results::{Clock, Results};
use raidlab_study::Study;

use crate::args::Compare;
use crate::array::keep::Keep;
use crate::compare::record::{Recorder, host};
use crate::compare::{Setting, effort};
use crate::consent;
use crate::failure::Failure;
use crate::output::{note, print};
use raidlab_measure::{Devices, Drives, Filling, Sizes, facts};
use raidlab_report::number;

/// The devices that `--on` names, unless it names a directory or `virtual`.
pub(super) fn named(on: &OsStr) -> Option<Vec<PathBuf>> {
    let is_directory = std::fs::metadata(on).is_ok_and(|there| there.is_dir());
    let parts = on.as_bytes().split(|byte| *byte == b',');
    let paths: Vec<PathBuf> = parts.map(|part| OsStr::from_bytes(part).into()).collect();
    let is_device = |path: &PathBuf| path.starts_with("/dev") || consent::is_device(path);
    (!is_directory && paths.iter().any(is_device)).then_some(paths)
}

/// Bytes of each device; what cannot be looked at is told as it is claimed.
pub(super) fn sizes(paths: &[PathBuf]) -> Vec<u64> {
    let inspected = paths.iter().filter_map(|path| Device::inspect(path).ok());
    inspected.map(|device| device.size).collect()
}

/// Refuses flags that are for devices only.
pub(in crate::compare) fn refuse_flags(options: &Compare) -> Result<(), Failure> {
    let own = [
        ("--overwrite-signatures", options.devices.overwrite_signatures),
        ("--keep", options.devices.keep.is_some()),
    ];
    let given = [&options.devices.consent.given()[..], &own].concat();
    consent::refuse_flags(&given, "--on /dev/sdb,/dev/sdc")
}

/// Shows what would be done, or does it with `--destructive`; `None` when it was only shown.
pub(super) fn run(
    study: &mut Study,
    options: &Compare,
    paths: &[PathBuf],
    (recorder, kept): (&mut Recorder, &mut Result<(), Failure>),
    cancel: &'static AtomicBool,
) -> Result<Option<Results>, Failure> {
    let sizes = super::prepare(study, options, super::Place::Devices(&sizes(paths)))?;
    let flags = &options.devices;
    let devices = Devices::claim(study, &sizes, paths, flags.consent.destructive)?;
    let planned = |name: &str| Keep::new(name, study, (&devices, &sizes));
    let keep = flags.keep.as_deref().map(planned).transpose()?;
    let problems = problems(&devices, flags.overwrite_signatures);
    let end = consent::ending(&problems, flags.consent.destructive);
    let after = keep.iter().flat_map(Keep::shown).collect();
    let shown = show(study, options, (&sizes, &devices), (after, end))?;
    if !flags.consent.destructive {
        print(&shown)?;
        return if problems.is_empty() { Ok(None) } else { Err(consent::refused(&problems)) };
    }
    if !options.outputs.quiet || !problems.is_empty() {
        note(shown.trim_end());
    }
    if !problems.is_empty() {
        return Err(consent::refused(&problems));
    }
    recorder.conditions(study, None, None, |salt| host::devices(devices.each(), salt))?;
    consent::confirm(&flags.consent, &devices.each().collect::<Vec<_>>())?;
    let mut saved = consent::save(&flags.consent, &devices.claims().iter().collect::<Vec<_>>())?;
    let drives = Drives::Devices(devices);
    let leftovers = match study.filesystem {
        None => Vec::new(),
        Some(_) => super::remove_leftovers(&drives.mount_place())?,
    };
    let Drives::Devices(devices) = &drives else { return Ok(None) };
    let setting = |study: &Study, cache, probed| {
        let target = facts::target(study, "block devices");
        let mut settings = facts::settings(study, target, &sizes, cache, probed);
        for (index, device) in devices.each().enumerate() {
            settings.insert(format!("device {index}"), consent::lasting_name(device));
        }
        Setting {
            clock: Clock::Real,
            host: facts::host(None),
            settings,
            warnings: devices
                .warnings()
                .into_iter()
                .chain(devices.parts_used(study, sizes.file))
                .chain(leftovers)
                .collect(),
            capacities: sizes.capacities.clone(),
        }
    };
    let outcome = super::measure(study, options, (&drives, &sizes), recorder, setting, cancel);
    consent::append(&mut saved, if outcome.is_ok() { "ended: done" } else { "ended: stopped" })?;
    if cancel.load(Ordering::Relaxed) {
        note("stopped; the devices hold what the study wrote");
    }
    let results = outcome.and_then(|(samples, setting)| super::ended(study, &samples, setting));
    let unkept = |failure: Failure| failure.and(keep.as_ref().map(Keep::not_kept));
    let mut results = results.map_err(unkept)?;
    if let Some(keep) = &keep {
        *kept = keep_layout(keep, devices, &mut results, &mut saved, cancel);
    }
    Ok(Some(results))
}

/// Leaves a layout on the devices, and says so: in the results too.
fn keep_layout(
    keep: &Keep,
    devices: &Devices,
    results: &mut Results,
    log: &mut SaveLog,
    cancel: &AtomicBool,
) -> Result<(), Failure> {
    if cancel.load(Ordering::Relaxed) {
        note(&keep.not_kept());
        return Err(Failure::Interrupted);
    }
    let array = keep.write(devices)?;
    consent::append(log, &format!("kept: {array}"))?;
    results.settings.insert("kept".into(), array);
    note(keep.how_to_start().trim_end());
    Ok(())
}

/// Everything that stands against writing, one a line.
fn problems(devices: &Devices, overwrite: bool) -> Vec<String> {
    let destroys = (!overwrite).then_some("--overwrite-signatures");
    devices.each().flat_map(|device| consent::problems(device, destroys)).collect()
}

fn show(
    study: &Study,
    options: &Compare,
    (sizes, devices): (&Sizes, &Devices),
    (after, ending): (Vec<String>, &str),
) -> Result<String, Failure> {
    let mut lines = vec![format!("The study \"{}\" would overwrite:", study.title)];
    for (index, device) in devices.each().enumerate() {
        lines.extend(consent::shown(device, &devices.role(index)));
    }
    let first = Size(sizes.file);
    lines.push(format!("The first {first} of each are used as drives, again and again, by:"));
    for (named, capacity) in study.layouts.iter().zip(&sizes.capacities) {
        lines.push(format!("  {} (array of {})", named.name, Size(capacity.bytes())));
    }
    let cells = raidlab_study::cells(study).len();
    lines.push(format!("{cells} cells, {} to {} rounds.", study.rounds, study.max_rounds));
    lines.extend(devices.parts_used(study, sizes.file));
    if study.filesystem.is_none() {
        lines.push(filling(study, options, (sizes, devices))?);
    }
    lines.extend(after);
    lines.push(ending.into());
    Ok(lines.join("\n") + "\n")
}

/// What is written and read besides what is timed.
fn filling(
    study: &Study,
    options: &Compare,
    (sizes, devices): (&Sizes, &Devices),
) -> Result<String, Failure> {
    let filling = Filling::of(study, sizes).map_err(Failure::input)?;
    let most = if super::is_ours_to_size(options) { "at most " } else { "" };
    let (bytes, places) = (number::bytes(filling.bytes), filling.places);
    // Written before, read again after.
    let time = number::duration(2.0 * devices.seconds(filling));
    Ok(effort::plain(&format!(
        "Before the cells of a round {most}{bytes} of arrays are filled, in {places} places, and read again\nafter \
         them: {most}about {time} a round, besides what is timed."
    )))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn devices_are_told_from_directories() {
        for directory in ["virtual", "/dev", "/dev/shm", "/tmp", ".", "/tmp/a,b"] {
            let exists = Path::new(directory).is_dir() || !directory.starts_with("/dev");
            assert_eq!(named(directory.as_ref()).is_none(), exists, "{directory}");
        }
        let named = named("/dev/nothing-a,/dev/nothing-b".as_ref()).expect("devices");
        assert_eq!(named, [Path::new("/dev/nothing-a"), Path::new("/dev/nothing-b")]);
    }
}
