//! A study on block devices of the user's: shown first, and run only when they are confirmed.
//!
//! Devices are claimed exclusively before they are looked at, and stay so until the study has ended.

use std::ffi::OsStr;
use std::io::{BufRead, IsTerminal};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use raidlab_core::Size;
use raidlab_engine::{Device, EngineError, EngineErrorKind, SAVED_BYTES, SaveDirectory, SaveLog};
use raidlab_results::{Clock, Results};
use raidlab_study::Study;

use crate::args::Compare;
use crate::array::keep::Keep;
use crate::compare::record::{Recorder, host};
use crate::compare::{Setting, effort};
use crate::failure::Failure;
use crate::output::{note, print};
use raidlab_measure::{Devices, Drives, Filling, Sizes, facts};
use raidlab_report::number;

/// The log of what was done, beside what was saved.
const LOG: &str = "devices.log";

/// The devices that `--on` names, unless it names a directory or `virtual`.
pub(super) fn named(on: &OsStr) -> Option<Vec<PathBuf>> {
    let is_directory = std::fs::metadata(on).is_ok_and(|there| there.is_dir());
    let parts = on.as_bytes().split(|byte| *byte == b',');
    let paths: Vec<PathBuf> = parts.map(|part| OsStr::from_bytes(part).into()).collect();
    let is_device = |path: &PathBuf| {
        use std::os::unix::fs::FileTypeExt;
        path.starts_with("/dev")
            || std::fs::metadata(path).is_ok_and(|there| there.file_type().is_block_device())
    };
    (!is_directory && paths.iter().any(is_device)).then_some(paths)
}

/// Bytes of each device; what cannot be looked at is told as it is claimed.
pub(super) fn sizes(paths: &[PathBuf]) -> Vec<u64> {
    let inspected = paths.iter().filter_map(|path| Device::inspect(path).ok());
    inspected.map(|device| device.size).collect()
}

/// Refuses flags that are for devices only.
pub(in crate::compare) fn refuse_flags(options: &Compare) -> Result<(), Failure> {
    let given = [
        ("--destructive", options.devices.destructive),
        ("--overwrite-signatures", options.devices.overwrite_signatures),
        ("--yes", options.devices.yes),
        ("--confirm-id", options.devices.confirm_id.is_some()),
        ("--save-dir", options.devices.save_dir.is_some()),
        ("--keep", options.devices.keep.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((flag, _)) => {
            let reason = "is for block devices only, as in --on /dev/sdb,/dev/sdc";
            Err(Failure::input(format!("{flag}: {reason}")))
        }
    }
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
    let devices = Devices::claim(study, &sizes, paths, flags.destructive)?;
    let keep = flags.keep.as_deref().map(|name| Keep::new(name, study, &devices)).transpose()?;
    let problems = problems(&devices, flags.overwrite_signatures);
    let end = ending(&problems, flags.destructive);
    let after = keep.iter().flat_map(Keep::shown).collect();
    let shown = show(study, options, (&sizes, &devices), (after, end))?;
    if !flags.destructive {
        print(&shown)?;
        return if problems.is_empty() { Ok(None) } else { Err(refused(&problems)) };
    }
    if !options.outputs.quiet || !problems.is_empty() {
        note(shown.trim_end());
    }
    if !problems.is_empty() {
        return Err(refused(&problems));
    }
    recorder.conditions(study, None, |salt| host::devices(devices.each(), salt))?;
    confirm(options, &devices)?;
    let mut saved = save(options, &devices)?;
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
            settings.insert(format!("device {index}"), lasting_name(device));
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
    append(&mut saved, if outcome.is_ok() { "ended: done" } else { "ended: stopped" })?;
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
    append(log, &format!("kept: {array}"))?;
    results.settings.insert("kept".into(), array);
    note(keep.how_to_start().trim_end());
    Ok(())
}

/// Everything that stands against writing, one a line.
fn problems(devices: &Devices, overwrite: bool) -> Vec<String> {
    let mut problems = Vec::new();
    for device in devices.each() {
        let path = device.path.display();
        problems.extend(device.refusals.iter().map(|why| format!("{path}: {why}")));
        if !overwrite {
            let kinds = device.signatures.iter();
            problems.extend(
                kinds.map(|one| {
                    format!("{path}: there is {one}; --overwrite-signatures destroys it")
                }),
            );
        }
    }
    problems
}

fn refused(problems: &[String]) -> Failure {
    Failure::Refused(format!("nothing was written:\n  {}", problems.join("\n  ")))
}

/// What a device is called where it must be the same after the next start.
fn lasting_name(device: &Device) -> String {
    let name = device.identities().into_iter().next().unwrap_or_else(|| "no serial".into());
    let model = device.model.as_deref().unwrap_or("unknown model");
    format!("{name} ({model}, {})", Size(device.size))
}

/// What comes of it: the last line of what is shown.
fn ending(problems: &[String], is_destructive: bool) -> &'static str {
    match (problems, is_destructive) {
        ([], false) => {
            "Nothing was written. --destructive does it, after confirmation of each device."
        }
        ([], true) => {
            "Nothing is written before each device is confirmed; then they are overwritten."
        }
        _ => "It would be refused.",
    }
}

fn show(
    study: &Study,
    options: &Compare,
    (sizes, devices): (&Sizes, &Devices),
    (after, ending): (Vec<String>, &str),
) -> Result<String, Failure> {
    let mut lines = vec![format!("The study \"{}\" would overwrite:", study.title)];
    for (index, device) in devices.each().enumerate() {
        let role = devices.role(index);
        let or_none = |text: Option<&str>| text.unwrap_or("none").to_string();
        let by_id = device.by_id.first().map(|link| link.display().to_string());
        lines.push(format!("  {} ({role})", device.path.display()));
        lines.push(format!("    model    {}", or_none(device.model.as_deref())));
        lines.push(format!("    serial   {}", or_none(device.serial.as_deref())));
        lines.push(format!("    size     {} ({} bytes)", Size(device.size), device.size));
        lines.push(format!("    by-id    {}", or_none(by_id.as_deref())));
        if let Some(file) = &device.backing_file {
            lines.push(format!("    file     {}", file.display()));
        }
        let ids = device.identities();
        let ids =
            if ids.is_empty() { "none: it cannot be confirmed".into() } else { ids.join(", ") };
        lines.push(format!("    ids      {ids}"));
        let signatures: Vec<String> = device.signatures.iter().map(ToString::to_string).collect();
        let none = "nothing that is known by a signature".to_string();
        let on_it = if signatures.is_empty() { none } else { signatures.join("; ") };
        lines.push(format!("    holds    {on_it}"));
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

/// The user names every device by what stays; see [`Device::identities`].
fn confirm(options: &Compare, devices: &Devices) -> Result<(), Failure> {
    let refused = |what: String| Failure::Refused(format!("nothing was written: {what}"));
    if let Some(device) = devices.each().find(|device| device.identities().is_empty()) {
        let path = device.path.display();
        let reason = "has neither serial number nor by-id name, so nobody can confirm it is meant";
        return Err(refused(format!("{path} {reason}")));
    }
    if let Some(ids) = &options.devices.confirm_id {
        if ids.len() != devices.claims().len() {
            let (given, count) = (ids.len(), devices.claims().len());
            return Err(refused(format!("--confirm-id has {given} ids for {count} devices")));
        }
        return match devices.each().zip(ids).find(|(one, id)| !one.identities().contains(id)) {
            None => Ok(()),
            Some((device, id)) => {
                let ids = device.identities().join("` or `");
                let path = device.path.display();
                Err(refused(format!("--confirm-id: {path} is not `{id}`, but `{ids}`")))
            }
        };
    }
    if !std::io::stdin().is_terminal() {
        let hint = "give --yes with --confirm-id ID,.. or run it on a terminal";
        return Err(refused(format!("the devices are not confirmed; {hint}")));
    }
    for device in devices.each() {
        let path = device.path.display();
        note(&format!("Type the serial number or by-id name of {path} to destroy what is on it:"));
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        read.map_err(|error| refused(format!("no answer: {error}")))?;
        if !device.identities().iter().any(|id| id == line.trim_end_matches(['\r', '\n'])) {
            return Err(refused(format!("that is not the name of {path}")));
        }
    }
    Ok(())
}

/// `--save-dir`, or where programs keep such things (XDG base directories). Links on the way to the latter
/// are the user's own.
fn save_directory(options: &Compare) -> Result<PathBuf, Failure> {
    if let Some(directory) = &options.devices.save_dir {
        return Ok(directory.clone());
    }
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let whole = |path: PathBuf| path.canonicalize().unwrap_or(path);
    let state = set("XDG_STATE_HOME").map(PathBuf::from);
    let home = || set("HOME").map(|home| whole(home.into()).join(".local/state"));
    let state = state.or_else(home).ok_or_else(|| {
        Failure::input("HOME is not set: say with --save-dir where to save the devices' ends")
    })?;
    Ok(whole(state).join("raidlab"))
}

/// Saves the ends of all devices, says where and how to restore them; gives the log.
fn save(options: &Compare, devices: &Devices) -> Result<SaveLog, Failure> {
    let failed = |error: EngineError| match error.kind() {
        EngineErrorKind::Refused => Failure::Refused(format!("nothing was written: {error}")),
        _ => Failure::failed(error),
    };
    let directory = SaveDirectory::open(&save_directory(options)?).map_err(failed)?;
    let mut log = directory.open_log(LOG).map_err(failed)?;
    for (claim, device) in devices.claims().iter().zip(devices.each()) {
        let saved = claim.save_ends(&directory).map_err(failed)?;
        let (node, file) = (device.path.display(), saved.display());
        let len = SAVED_BYTES.min(device.size);
        let flags = "conv=notrunc,fsync iflag=skip_bytes,count_bytes oflag=seek_bytes bs=64K";
        note(&format!(
            "saved the first and last {} of {node} in {file}; to restore them:",
            Size(len)
        ));
        note(&format!("  dd if={file} of={node} {flags} count={len}"));
        let last = device.size - len;
        note(&format!("  dd if={file} of={node} {flags} count={len} skip={len} seek={last}"));
        let held: Vec<String> = device.signatures.iter().map(ToString::to_string).collect();
        let held = if held.is_empty() { "nothing known".into() } else { held.join("; ") };
        let done = format!("overwriting {} (held {held}); saved in {file}", lasting_name(device));
        append(&mut log, &done)?;
    }
    Ok(log)
}

fn append(log: &mut SaveLog, what: &str) -> Result<(), Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let line = format!("{now} process {}: {what}", std::process::id());
    log.append(&line).map_err(Failure::failed)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn only_what_was_not_written_is_said_not_to_be() {
        assert!(ending(&[], false).starts_with("Nothing was written."));
        assert!(ending(&[], true).ends_with("then they are overwritten."));
        assert!(!ending(&[], true).contains("was written"));
        for is_destructive in [false, true] {
            assert_eq!(ending(&["mounted".into()], is_destructive), "It would be refused.");
        }
    }

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
