//! What stands before block devices are overwritten: what is on them is shown, something that could be lost or somebody
//! else's refuses them, each is confirmed by a name that stays, and their ends are saved.

use std::fs::File;
use std::io::{self, BufRead, IsTerminal};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use raidlab_core::Size;
use raidlab_engine::{
    Claim, Device, EngineError, EngineErrorKind, SAVED_BYTES, SaveDirectory, SaveLog,
};

use crate::args::Consent;
use crate::failure::Failure;
use crate::output::{note, print};

/// The log of what was done, beside what was saved.
const LOG: &str = "devices.log";

/// The right to a block device, claimed before it is looked at.
pub(crate) fn claim(path: &Path, destructive: bool) -> Result<Claim, Failure> {
    Claim::take(path, destructive).map_err(|error| match error.kind() {
        EngineErrorKind::Io => {
            Failure::failed(format!("{error}; block devices need root, as a rule"))
        }
        _ => Failure::failed(error),
    })
}

/// Whether a path is a block device's.
pub(crate) fn is_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|there| there.file_type().is_block_device())
}

/// Refuses flags that are for devices only, as in an example.
pub(crate) fn refuse_flags(given: &[(&str, bool)], example: &str) -> Result<(), Failure> {
    match given.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((flag, _)) => {
            let reason = "is for block devices only, as in";
            Err(Failure::input(format!("{flag}: {reason} {example}")))
        }
    }
}

impl Consent {
    /// Each flag, and whether it was given.
    pub(crate) const fn given(&self) -> [(&'static str, bool); 4] {
        [
            ("--destructive", self.destructive),
            ("--yes", self.yes),
            ("--confirm-id", self.confirm_id.is_some()),
            ("--save-dir", self.save_dir.is_some()),
        ]
    }
}

/// What a device is, in lines; `role`: what it is to become.
pub(crate) fn shown(device: &Device, role: &str) -> Vec<String> {
    let or_none = |text: Option<&str>| text.unwrap_or("none").to_string();
    let by_id = device.by_id.first().map(|link| link.display().to_string());
    let mut lines = vec![
        format!("  {} ({role})", device.path.display()),
        format!("    model    {}", or_none(device.model.as_deref())),
        format!("    serial   {}", or_none(device.serial.as_deref())),
        format!("    size     {} ({} bytes)", Size(device.size), device.size),
        format!("    by-id    {}", or_none(by_id.as_deref())),
    ];
    if let Some(file) = &device.backing_file {
        lines.push(format!("    file     {}", file.display()));
    }
    let ids = device.identities();
    let ids = if ids.is_empty() { "none: it cannot be confirmed".into() } else { ids.join(", ") };
    lines.push(format!("    ids      {ids}"));
    let signatures: Vec<String> = device.signatures.iter().map(ToString::to_string).collect();
    let none = "nothing that is known by a signature".to_string();
    let on_it = if signatures.is_empty() { none } else { signatures.join("; ") };
    lines.push(format!("    holds    {on_it}"));
    lines
}

/// Everything that stands against writing to a device, one a line; `destroys`: the flag that allows to destroy what is
/// there, unless it was given.
pub(crate) fn problems(device: &Device, destroys: Option<&str>) -> Vec<String> {
    let path = device.path.display();
    let mut problems: Vec<_> = device.refusals.iter().map(|why| format!("{path}: {why}")).collect();
    if let Some(flag) = destroys {
        let kinds = device.signatures.iter();
        problems.extend(kinds.map(|one| format!("{path}: there is {one}; {flag} destroys it")));
    }
    problems
}

/// The refusal.
pub(crate) fn refused(problems: &[String]) -> Failure {
    Failure::Refused(format!("nothing was written:\n  {}", problems.join("\n  ")))
}

/// What comes of it: the last line of what is shown.
pub(crate) fn ending(problems: &[String], is_destructive: bool) -> &'static str {
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

/// What a device is called where it must be the same after the next start.
pub(crate) fn lasting_name(device: &Device) -> String {
    let name = device.identities().into_iter().next().unwrap_or_else(|| "no serial".into());
    let model = device.model.as_deref().unwrap_or("unknown model");
    format!("{name} ({model}, {})", Size(device.size))
}

/// The user names every device by what stays; see [`Device::identities`].
pub(crate) fn confirm(consent: &Consent, devices: &[&Device]) -> Result<(), Failure> {
    let refused = |what: String| Failure::Refused(format!("nothing was written: {what}"));
    if let Some(device) = devices.iter().find(|device| device.identities().is_empty()) {
        let path = device.path.display();
        let reason = "has neither serial number nor by-id name, so nobody can confirm it is meant";
        return Err(refused(format!("{path} {reason}")));
    }
    if let Some(ids) = &consent.confirm_id {
        if ids.len() != devices.len() {
            let (given, count) = (ids.len(), devices.len());
            return Err(refused(format!("--confirm-id has {given} ids for {count} devices")));
        }
        return match devices.iter().zip(ids).find(|(one, id)| !one.identities().contains(id)) {
            None => Ok(()),
            Some((device, id)) => {
                let ids = device.identities().join("` or `");
                let path = device.path.display();
                Err(refused(format!("--confirm-id: {path} is not `{id}`, but `{ids}`")))
            }
        };
    }
    if !io::stdin().is_terminal() {
        let hint = "give --yes with --confirm-id ID,.. or run it on a terminal";
        return Err(refused(format!("the devices are not confirmed; {hint}")));
    }
    for device in devices {
        let path = device.path.display();
        note(&format!("Type the serial number or by-id name of {path} to destroy what is on it:"));
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        read.map_err(|error| refused(format!("no answer: {error}")))?;
        if !device.identities().iter().any(|id| id == line.trim_end_matches(['\r', '\n'])) {
            return Err(refused(format!("that is not the name of {path}")));
        }
    }
    Ok(())
}

/// `--save-dir`, or where programs keep such things (XDG base directories). Links on the way to the latter
/// are the user's own.
fn save_directory(consent: &Consent) -> Result<PathBuf, Failure> {
    if let Some(directory) = &consent.save_dir {
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

/// Shows whole devices that would be overwritten; with `--destructive` has each confirmed, saves their ends and notes
/// what becomes of them. Whether they are to be written.
pub(crate) fn ask(
    consent: &Consent,
    what: &str,
    claims: &[&Claim],
    becomes: &str,
) -> Result<bool, Failure> {
    let devices: Vec<&Device> = claims.iter().map(|claim| claim.device()).collect();
    let mut lines = vec![what.to_owned()];
    lines.extend(devices.iter().flat_map(|device| shown(device, "whole")));
    lines.push(ending(&[], consent.destructive).into());
    if !consent.destructive {
        print(&(lines.join("\n") + "\n\n"))?;
        return Ok(false);
    }
    note(&lines.join("\n"));
    confirm(consent, &devices)?;
    let mut log = save(consent, claims)?;
    for device in devices {
        append(&mut log, &format!("{} {becomes}", lasting_name(device)))?;
    }
    Ok(true)
}

/// Clears what [`save`] saves of a device, which is open as `file`: no signature stays beside what is written next.
pub(crate) fn clear_ends(file: &File, device: &Device) -> io::Result<()> {
    let length = SAVED_BYTES.min(device.size);
    let zeroes = vec![0; length as usize];
    [0, device.size - length].into_iter().try_for_each(|at| file.write_all_at(&zeroes, at))
}

/// Saves the ends of all devices, says where and how to restore them; gives the log.
pub(crate) fn save(consent: &Consent, claims: &[&Claim]) -> Result<SaveLog, Failure> {
    let failed = |error: EngineError| match error.kind() {
        EngineErrorKind::Refused => Failure::Refused(format!("nothing was written: {error}")),
        _ => Failure::failed(error),
    };
    let directory = SaveDirectory::open(&save_directory(consent)?).map_err(failed)?;
    let mut log = directory.open_log(LOG).map_err(failed)?;
    for claim in claims {
        let device = claim.device();
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

/// A line of the log of what was done.
pub(crate) fn append(log: &mut SaveLog, what: &str) -> Result<(), Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let line = format!("{now} process {}: {what}", std::process::id());
    log.append(&line).map_err(Failure::failed)
}

#[cfg(test)]
mod tests {
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
}
