//! What the programs of util-linux tell of a device. They know more kinds of signatures than anything
//! that could be written here, so where they are missing nothing is known and nothing is done.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use super::Signature;
use crate::error::{EngineError, EngineErrorKind};

const LOOK: &str = "find out what is on a device";

/// What `lsblk` knows of a device.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) model: Option<String>,
    pub(super) serial: Option<String>,
}

fn run(program: &str, arguments: &[&str], path: &Path) -> Result<Output, EngineError> {
    let mut command = Command::new(program);
    // Small PATHs of ordinary users leave the directories of these programs out.
    let known = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{known}:/usr/sbin:/sbin:/usr/bin:/bin")).env("LC_ALL", "C");
    command.args(arguments).arg(path).stdin(std::process::Stdio::null());
    command.output().map_err(|error| {
        let reason = format!("`{program}` cannot be run ({error}); install util-linux");
        EngineError::new(EngineErrorKind::NotSupported, LOOK, reason).at_path(path)
    })
}

fn unexpected(program: &str, output: &Output, path: &Path) -> EngineError {
    let said = String::from_utf8_lossy(&output.stderr);
    let reason = format!("`{program}` ended with {}: {}", output.status, said.trim());
    EngineError::new(EngineErrorKind::NotSupported, LOOK, reason).at_path(path)
}

/// Every signature on a device by `wipefs` and `blkid`, the device itself being called `name`.
pub(super) fn signatures(path: &Path, name: &str) -> Result<Vec<Signature>, EngineError> {
    let output = run("wipefs", &["--json", "--no-act"], path)?;
    let found = output.status.success().then(|| parse_wipefs(&output.stdout, name)).flatten();
    let mut found = found.ok_or_else(|| unexpected("wipefs", &output, path))?;
    let output = run("blkid", &["-p", "-o", "export"], path)?;
    match output.status.code() {
        Some(0) => {
            for one in parse_blkid(&String::from_utf8_lossy(&output.stdout), name) {
                if !found.iter().any(|known| known.kind == one.kind) {
                    found.push(one);
                }
            }
        }
        // Nothing found.
        Some(2) => {}
        // Several at once, of which it cannot choose one (blkid(8)).
        Some(8) => found.push(plain(name, "several kinds of data at once")),
        _ => return Err(unexpected("blkid", &output, path)),
    }
    found.sort();
    Ok(found)
}

/// The partition's UUID by `blkid`.
pub(super) fn part_uuid(path: &Path) -> Result<Option<String>, EngineError> {
    let output = run("blkid", &["-p", "-o", "export"], path)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let value = text.lines().find_map(|line| line.strip_prefix("PART_ENTRY_UUID="));
    Ok(value.map(str::to_string))
}

/// What `lsblk` knows of a device.
pub(super) fn listed(path: &Path) -> Result<Listed, EngineError> {
    let columns = "NAME,PATH,TYPE,SIZE,MODEL,SERIAL,FSTYPE,PTTYPE,RO,ROTA";
    let arguments = ["--json", "--bytes", "--nodeps", "-o", columns];
    let output = run("lsblk", &arguments, path)?;
    let found = output.status.success().then(|| parse_lsblk(&output.stdout)).flatten();
    found.ok_or_else(|| unexpected("lsblk", &output, path))
}

fn plain(device: &str, kind: &str) -> Signature {
    Signature { device: device.to_string(), kind: kind.to_string(), at: None, name: None }
}

fn text(value: &Value, key: &str) -> Option<String> {
    let text = value.get(key)?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_string())
}

/// `None` when it is not what `wipefs --json` prints; nothing at all is nothing found.
fn parse_wipefs(output: &[u8], name: &str) -> Option<Vec<Signature>> {
    if output.trim_ascii().is_empty() {
        return Some(Vec::new());
    }
    let document: Value = serde_json::from_slice(output).ok()?;
    let list = document.get("signatures")?.as_array()?;
    let signature = |one: &Value| {
        let at = text(one, "offset");
        let at = at.and_then(|at| u64::from_str_radix(at.trim_start_matches("0x"), 16).ok());
        Some(Signature {
            device: name.to_string(),
            kind: text(one, "type")?,
            at,
            name: text(one, "label").or_else(|| text(one, "uuid")),
        })
    };
    list.iter().map(signature).collect()
}

/// The filesystem, or whatever else is there, and the partition table.
fn parse_blkid(text: &str, name: &str) -> Vec<Signature> {
    let value = |key: &str| {
        text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).map(str::to_string)
    };
    let label = || value("LABEL").or_else(|| value("UUID"));
    let kinds = [("TYPE", label()), ("PTTYPE", value("PTUUID"))];
    let found = kinds.into_iter().filter_map(|(key, label)| {
        let kind = value(key)?;
        Some(Signature { name: label, ..plain(name, &kind) })
    });
    found.collect()
}

fn parse_lsblk(output: &[u8]) -> Option<Listed> {
    let document: Value = serde_json::from_slice(output).ok()?;
    let device = document.get("blockdevices")?.as_array()?.first()?.clone();
    Some(Listed { model: text(&device, "model"), serial: text(&device, "serial") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_of_wipefs() {
        let output = br#"{"signatures": [
            {"device":"loop0", "offset":"0xff6", "type":"swap", "uuid":"819c", "label":null},
            {"device":"loop0", "offset":"0x200", "type":"gpt", "uuid":"1", "label":"mine"}]}"#;
        let found = parse_wipefs(output, "sdx").unwrap();
        let told: Vec<String> = found.iter().map(Signature::to_string).collect();
        assert_eq!(told, ["swap on sdx (819c) at byte 4086", "gpt on sdx (mine) at byte 512"]);
        assert_eq!(parse_wipefs(b"{\"signatures\": [\n\n ]}", "sdx"), Some(Vec::new()));
        assert_eq!(parse_wipefs(b"\n", "sdx"), Some(Vec::new()));
        for strange in [&b"nonsense"[..], b"{}", b"{\"signatures\": [{}]}", b"{\"signatures\": 3}"]
        {
            assert_eq!(parse_wipefs(strange, "sdx"), None, "not understood is not nothing found");
        }
    }

    #[test]
    fn what_blkid_and_lsblk_tell() {
        let found = parse_blkid("DEVNAME=/dev/x\nUUID=12\nTYPE=ext4\nUSAGE=filesystem\n", "x");
        assert_eq!(found, [Signature { name: Some("12".into()), ..plain("x", "ext4") }]);
        let found = parse_blkid("PTUUID=9\nPTTYPE=dos\n", "x");
        assert_eq!(found, [Signature { name: Some("9".into()), ..plain("x", "dos") }]);
        assert!(parse_blkid("PART_ENTRY_TYPE=0x83\n", "x").is_empty());
        let output = br#"{"blockdevices":[{"name":"sda","model":" WDC ","serial":"WD-1"}]}"#;
        let expected = Listed { model: Some("WDC".into()), serial: Some("WD-1".into()) };
        assert_eq!(parse_lsblk(output), Some(expected));
        assert_eq!(parse_lsblk(b"{\"blockdevices\":[]}"), None);
    }
}
