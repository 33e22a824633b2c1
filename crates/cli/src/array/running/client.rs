//! Commands to an array that runs in another process.

use std::path::Path;
use std::process::exit;
use std::sync::atomic::Ordering;
use std::time::Duration;

use raidlab_core::Size;
use serde_json::{Value, json};

use super::args::{Add, Check, Fail, Remove, Repair, Replace, Running, Scrubbing, Stop};
use super::scrub;
use super::socket::ask;
use super::state::FAILED;
use super::state::absolute;
use crate::failure::Failure;
use crate::interrupt;
use crate::json::pretty;
use crate::output::{self, counted};
use crate::progress::Bar;

/// How often a running array is asked how it is.
const AGAIN: Duration = Duration::from_millis(200);

/// Asks for something that is done at once, and says what was done.
fn once(running: &Running, command: &Value) -> Result<(), Failure> {
    let answer = ask(&running.array, command)?;
    output::print(&format!("{}\n", answer["done"].as_str().unwrap_or("done")))
}

pub(in super::super) fn stop(options: &Stop) -> Result<(), Failure> {
    once(&options.running, &json!({ "do": "stop", "disconnect": options.disconnect }))
}

pub(in super::super) fn fail(options: &Fail) -> Result<(), Failure> {
    once(
        &options.running,
        &json!({ "do": "fail", "member": named(&options.member), "force": options.force }),
    )
}

pub(in super::super) fn remove(options: &Remove) -> Result<(), Failure> {
    once(&options.running, &json!({ "do": "remove", "member": named(&options.member) }))
}

pub(in super::super) fn add(options: &Add) -> Result<(), Failure> {
    let overwrite = options.overwrite;
    if let Some((flag, _)) = options.consent.given().iter().find(|(_, given)| *given) {
        return Err(Failure::input(format!(
            "{flag}: is for --journal, of an array that does not run"
        )));
    }
    if options.is_array {
        let devices = options.devices.iter().map(|one| path(one)).collect::<Result<Vec<_>, _>>()?;
        let command =
            json!({ "do": "add", "array": true, "devices": devices, "overwrite": overwrite });
        return once(&options.running, &command);
    }
    let [device] = &options.devices[..] else {
        let what =
            "a device at a time, or with --array all devices of an array that is to be a member";
        return Err(Failure::input(what));
    };
    let device = path(device)?;
    once(&options.running, &json!({ "do": "add", "device": device, "overwrite": overwrite }))
}

pub(in super::super) fn replace(options: &Replace) -> Result<(), Failure> {
    let (device, overwrite) = (path(&options.device)?, options.overwrite);
    let member = named(&options.member);
    let command =
        json!({ "do": "replace", "member": member, "device": device, "overwrite": overwrite });
    once(&options.running, &command)
}

/// A member as it was given; a path means the same in the other process.
fn named(member: &str) -> String {
    if member == FAILED {
        return member.to_owned();
    }
    // What is no path is the name of an array below.
    let is_name = !member.contains('/') && Path::new(member).symlink_metadata().is_err();
    match member.parse::<u16>() {
        Ok(_) => member.to_owned(),
        Err(_) if is_name => member.to_owned(),
        Err(_) => absolute(Path::new(member)).display().to_string(),
    }
}

fn path(device: &Path) -> Result<String, Failure> {
    let path = absolute(device);
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Failure::input(format!("{}: the name is no UTF-8", path.display())))
}

pub(in super::super) fn check(options: &Check) -> Result<(), Failure> {
    scrubbed("check", &options.scrubbing, json!({ "do": "check" }))
}

pub(in super::super) fn repair(options: &Repair) -> Result<(), Failure> {
    let mut command = json!({ "do": "repair" });
    match &options.distrust {
        Some(member) => command["distrust"] = named(member).into(),
        None => command["trust"] = options.trust.name().into(),
    }
    scrubbed("repair", &options.scrubbing, command)
}

/// Begins a check or repair, and waits for its end.
fn scrubbed(what: &str, options: &Scrubbing, command: Value) -> Result<(), Failure> {
    let stop = interrupt::flag()?;
    let array = &options.running.array;
    let begun = ask(array, &command)?;
    if options.no_wait {
        return output::print(&format!("{what} has begun\n"));
    }
    let bar = Bar::share(options.quiet || options.json);
    let status = loop {
        let status = ask(array, &json!({ "do": "status" }))?;
        if status["scrubs"] != begun["scrubs"] {
            break status;
        }
        let sectors = |key: &str| status["work"][key].as_u64().unwrap_or(0) as usize;
        bar.show(sectors("done_sectors"), sectors("of_sectors").max(1), what.to_owned());
        if stop.load(Ordering::Relaxed) {
            let goes_on = format!("the {what} goes on; `raidlab array status` tells how far");
            return Err(Failure::Interrupted.and(Some(goes_on)));
        }
        std::thread::sleep(AGAIN);
    };
    bar.clear();
    let mut how = status["scrubbed"].clone();
    how["schema_version"] = 1.into();
    how["kind"] = what.into();
    if options.json {
        output::print(&pretty(&how))?;
    }
    if how["interrupted"] == true {
        let failed =
            how["failed_member"].as_u64().map(|member| format!(": member {member} failed"));
        return Err(Failure::failed(format!(
            "the {what} was broken off{}",
            failed.unwrap_or_default()
        )));
    }
    let (told, agrees) = scrub::told(what, &how);
    if !options.json {
        output::print(&told)?;
    }
    match agrees {
        true => Ok(()),
        false => Err(Failure::failed("redundancy is not consistent everywhere")),
    }
}

/// How a running array is, for Prometheus.
pub(in super::super) fn metrics(array: &str) -> Result<(), Failure> {
    let answer = ask(array, &json!({ "do": "metrics" }))?;
    output::print(answer["text"].as_str().unwrap_or_default())
}

/// How a running array is.
pub(in super::super) fn status(
    array: &str,
    (json, watch, test): (bool, bool, bool),
) -> Result<(), Failure> {
    let command = json!({ "do": "status" });
    if watch {
        return follow(array, &command, json);
    }
    let asked = ask(array, &command);
    if test && let Err(failure) = &asked {
        output::note(&format!("error: {}", failure.what()));
        exit(4);
    }
    let status = asked?;
    output::print(&if json { pretty(&status) } else { text(&status) })?;
    match () {
        () if !test => Ok(()),
        () if status["lost"] == true => exit(2),
        () if status["missing"] != 0 || status["incomplete"] != 0 => exit(1),
        () => Ok(()),
    }
}

/// Prints the state whenever it changes, until the array is stopped.
fn follow(array: &str, command: &Value, json: bool) -> Result<(), Failure> {
    let stop = interrupt::flag()?;
    let mut last = String::new();
    let mut status = ask(array, command)?;
    loop {
        let line = if json { format!("{status}\n") } else { format!("{}\n", line(&status)) };
        if line != last {
            output::print(&line)?;
            last = line;
        }
        std::thread::sleep(AGAIN);
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted);
        }
        match ask(array, command) {
            Ok(now) => status = now,
            // It was there, and is no longer.
            Err(_) => return output::print("stopped\n"),
        }
    }
}

/// The state in a line, as /proc/mdstat has it: who is in service, what goes on.
fn line(status: &Value) -> String {
    let members = status["members"].as_array().map_or(&[][..], Vec::as_slice);
    let letter = |member: &Value| if member["state"] == "in service" { 'U' } else { '_' };
    let letters: String = members.iter().map(letter).collect();
    let name = status["name"].as_str().unwrap_or("");
    format!("{name}: [{}/{}] [{letters}]{}", count(&letters), members.len(), work(status))
}

fn count(letters: &str) -> usize {
    letters.chars().filter(|letter| *letter == 'U').count()
}

fn work(status: &Value) -> String {
    let work = &status["work"];
    let Some(kind) = work["kind"].as_str() else { return String::new() };
    let number = |key: &str| work[key].as_u64().unwrap_or(0);
    let percent = 100 * number("done_sectors") / number("of_sectors").max(1);
    let of =
        work["member"].as_u64().map_or_else(String::new, |member| format!(" of member {member}"));
    let left = work["seconds_left"].as_u64().map(|left| format!(", {left} s left"));
    format!(" {kind}{of} {percent}%{}", left.unwrap_or_default())
}

/// What keeps redundancy consistent, in words.
fn by(policy: &str) -> &'static str {
    match policy {
        "resync" => "a resync of everything after a crash",
        "bitmap" => "a write-intent bitmap",
        "ppl" => "a log of partial parity",
        _ => "a journal",
    }
}

/// A status in words.
pub(super) fn text(status: &Value) -> String {
    let word = |key: &str| status[key].as_str().unwrap_or("").to_owned();
    let name = match word("name") {
        name if name.is_empty() => "(no name)".to_owned(),
        name => name,
    };
    let bytes = status["bytes"].as_u64().unwrap_or(0);
    let known = match (status["geom"]["class"].as_str(), status["geom"]["id"].as_u64()) {
        (Some(class), Some(id)) => format!("{class}, ID {id}"),
        _ => match status["lvm_uuid"].as_str() {
            Some(id) => format!("LV UUID {id}"),
            None => format!("UUID {}", word("array_uuid")),
        },
    };
    let mut text =
        format!("{name}: {}, {}, {known}, {}\n", word("layout"), Size(bytes), word("mode"));
    let out = status["missing"].as_u64().unwrap_or(0) + status["incomplete"].as_u64().unwrap_or(0);
    text.push_str(&match (status["lost"] == true, out) {
        (true, _) => "lost: more members are missing than the level survives".to_owned(),
        (false, 0) => "all members in service".to_owned(),
        (false, out) => format!("degraded: {out} not fully in service"),
    });
    text.push_str(&format!("{}\n", work(status).replacen(' ', "; ", 1)));
    let kept = status["consistency"].as_str().filter(|policy| *policy != "none");
    if let Some(policy) = kept.filter(|_| status["lost"] != true) {
        text.push_str(&format!("redundancy is kept consistent by {}\n", by(policy)));
    }
    text.push('\n');
    for member in status["members"].as_array().map_or(&[][..], Vec::as_slice) {
        let number = member["member"].as_u64().unwrap_or(0);
        let path = member["path"].as_str().unwrap_or("-");
        let state = member["state"].as_str().unwrap_or("");
        let by = member["replacement"].as_str();
        let by = by.map_or_else(String::new, |by| format!(" by {by}"));
        text.push_str(&format!("  member {number}  {path}  {state}{by}\n"));
    }
    for spare in status["spares"].as_array().map_or(&[][..], Vec::as_slice) {
        text.push_str(&format!("  spare     {}\n", spare.as_str().unwrap_or("")));
    }
    for failed in status["failed_devices"].as_array().map_or(&[][..], Vec::as_slice) {
        let (path, was) = (failed["path"].as_str().unwrap_or(""), failed["was_member"].as_u64());
        text.push_str(&format!("  failed    {path} (was member {})\n", was.unwrap_or(0)));
    }
    if let Some(log) = status["journal"].as_str() {
        text.push_str(&format!("  journal   {log}\n"));
    }
    if let Some(file) = status["file"].as_str() {
        text.push_str(&format!("served as {file}\n"));
    }
    for uri in status["nbd"].as_array().map_or(&[][..], Vec::as_slice) {
        text.push_str(&format!("served as {}\n", uri.as_str().unwrap_or("")));
    }
    if let Some(clients) = status["clients"].as_u64().filter(|clients| *clients > 0) {
        let clients = counted(clients, "NBD client is", "NBD clients are");
        text.push_str(&format!("{clients} connected\n"));
    }
    if let Some(differ) = status["scrubbed"]["mismatched_sectors"].as_u64() {
        let differ = counted(differ, "sector that differs", "sectors that differ");
        text.push_str(&format!("the last check or repair found {differ}\n"));
    }
    text
}
