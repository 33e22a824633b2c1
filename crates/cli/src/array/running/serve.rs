//! The loop of a running array: commands, events, spares.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use raidlab_core::contract::{Event, MemberBits, Work};
use raidlab_core::{Consistency, MemberIndex, Sector};
use raidlab_engine::{Engine, EngineError, EngineErrorKind, Member};
use serde_json::{Value, json};

use super::args::Assemble;
use super::commands::{self, Attended};
use super::floors::Floors;
use super::hook::Hooks;
use super::owner::{Ended, Owner};
use super::socket::Asked;
use super::state::{Mode, Names, kind};
use crate::failure::Failure;
use crate::output::{self, counted};

/// How long the array works before commands are looked at.
const SLICE: Duration = Duration::from_millis(20);
/// Why an array below another one is not stopped.
const STANDS_ON_IT: &str =
    "it is a member of an array that runs: stop that one, or remove it there";
/// How long a command is waited for when nothing goes on.
const IDLE: Duration = Duration::from_millis(200);

/// Runs the array until it is stopped, and the program has heard of everything.
pub(super) fn run(
    owner: Owner,
    names: Names,
    requests: &Receiver<Asked>,
    (options, stop): (&Assemble, &AtomicBool),
    floors: &mut Floors,
) -> Result<(), Failure> {
    let hooks = Hooks::new(options.program.as_deref(), &names);
    // The members are let go of before the program is waited for.
    let ended = attend((owner, names), requests, (options, stop), floors, &hooks);
    hooks.end();
    ended
}

fn attend(
    (mut owner, mut names): (Owner, Names),
    requests: &Receiver<Asked>,
    (options, stop): (&Assemble, &AtomicBool),
    floors: &mut Floors,
    hooks: &Hooks,
) -> Result<(), Failure> {
    if !matches!(owner, Owner::Lower(_)) {
        let first = document(&mut owner, &names)?;
        output::print(&super::client::text(&first))?;
    }
    let (mut is_busy, mut is_deaf) = (true, false);
    loop {
        owner.work(SLICE).map_err(Failure::failed)?;
        let patience = if is_busy { Duration::from_millis(1) } else { IDLE };
        match requests.recv_timeout(patience) {
            Ok(Asked { command, answer, sent }) => {
                if command["do"] == "stop" && commands::check_version(&command).is_ok() {
                    let disconnect = command["disconnect"] == true;
                    // What happened until now is told first.
                    look(&mut owner, &mut names, hooks).map_err(Failure::failed)?;
                    let ended = match owner.is_member() {
                        true => Err(Failure::Refused(STANDS_ON_IT.into())),
                        false => end((&mut owner, &mut names), hooks, (disconnect, false)),
                    };
                    if ended.is_ok() {
                        floors.end();
                    }
                    let told = match &ended {
                        Ok((_, told)) => json!({ "done": told }),
                        Err(Failure::Refused(what)) => json!({ "refused": what }),
                        Err(failure) => json!({ "error": failure.what() }),
                    };
                    // Who asked may have gone.
                    let _ = answer.send(told);
                    if let Ok((ended, told)) = ended {
                        names.tell(&told);
                        // The answer goes by a thread of its own, which would end with this process.
                        let _ = sent.recv();
                        return outcome(ended);
                    }
                } else {
                    let (owner, names) = (&mut owner, &mut names);
                    let attended = Attended { owner, names, hooks };
                    let told = commands::carry_out(attended, floors, options, &command);
                    let _ = answer.send(told.unwrap_or_else(|error| error));
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            // It ends with what stands on it.
            Err(RecvTimeoutError::Disconnected) if owner.is_member() => thread::sleep(patience),
            Err(RecvTimeoutError::Disconnected) => {
                names.tell("nobody takes commands in any more, so it is stopped");
                is_deaf = true;
            }
        }
        // Also what the last command led to, before an end.
        is_busy = look(&mut owner, &mut names, hooks).map_err(Failure::failed)?;
        if is_deaf || stop.load(Ordering::Relaxed) {
            // Whoever ends the process has made up their mind: clients get what is under way.
            let ended = end((&mut owner, &mut names), hooks, (true, true));
            floors.end();
            let (ended, told) = ended?;
            names.tell(&told);
            return outcome(ended);
        }
    }
}

/// What the process ends with. Why an array was lost was told as its members failed.
fn outcome(ended: Ended) -> Result<(), Failure> {
    match ended {
        Ended::InOrder => Ok(()),
        Ended::Lost => Err(Failure::failed("the array was lost")),
    }
}

/// Ends serving and stops the array; not as long as somebody is connected, unless that is wanted, nor as long as
/// somebody uses its file, unless it is to be at any price. What happens meanwhile is told as at any other time. How it
/// ended, also in words.
fn end(
    (owner, names): (&mut Owner, &mut Names),
    hooks: &Hooks,
    (disconnect, at_any_price): (bool, bool),
) -> Result<(Ended, String), Failure> {
    let clients = owner.report().map_or(0, |report| report.clients);
    if clients > 0 && !disconnect {
        let clients = counted(u64::from(clients), "NBD client is", "NBD clients are");
        let what = "connected: disconnect there, or stop it with --disconnect";
        return Err(Failure::Refused(format!("{clients} {what}")));
    }
    let unfinished = owner.with(|engine| unfinished(engine)).map_err(Failure::failed)?;
    let end = owner.end(names.mode, at_any_price).map_err(Failure::failed)?;
    for event in &end.events {
        tell(event, names, hooks);
    }
    let unfinished = if end.ended == Ended::InOrder { unfinished } else { String::new() };
    Ok((end.ended, format!("{}{unfinished}", end.told())))
}

/// What goes on and is not at its end, in words that follow others.
fn unfinished(engine: &Engine) -> String {
    let status = engine.array().status();
    let is = |bits: MemberBits, place: usize| bits[place / 64] >> (place % 64) & 1 == 1;
    let mut told = String::new();
    for member in 0..usize::from(engine.array().layout().members).min(128) {
        if is(status.replacing, member) {
            let journal = engine.array().flat().map(|array| array.consistency());
            let what = match journal {
                Some(Consistency::Journal { .. }) => {
                    "is given up, and begins anew with the next `array replace`"
                }
                _ => "is not complete: the next start goes on with it, given that device too",
            };
            told.push_str(&format!("; the copy of member {member} to its replacement {what}"));
        } else if is(status.rebuilding, member) {
            told.push_str(&format!("; member {member} is not rebuilt yet: the next start does it"));
        }
    }
    told
}

/// The array as it is.
pub(super) fn document(owner: &mut Owner, names: &Names) -> Result<Value, Failure> {
    let report = owner.report();
    // Somebody else may have unmounted it.
    let file = owner.file().filter(|_| report.is_none_or(|report| report.has_file));
    let (known, file) = (names.clone(), file.map(ToOwned::to_owned));
    let work = move |engine: &mut Engine| known.document(engine, file.as_deref());
    let mut document = owner.with(work).map_err(Failure::failed)?;
    document["nbd"] = json!(owner.uris());
    document["clients"] = json!(report.map(|report| report.clients));
    Ok(document)
}

/// Takes note of what happened, and puts spares to use; whether something goes on.
fn look(owner: &mut Owner, names: &mut Names, hooks: &Hooks) -> Result<bool, EngineError> {
    let is_writing = names.mode != Mode::Read;
    let (events, used, is_busy) = owner.with(move |engine| {
        let events = engine.take_events();
        let used = if is_writing { engine.use_spare() } else { Ok(None) };
        // What was replaced is let go of where it was opened.
        drop(engine.take_retired());
        (events, used, !engine.background().is_empty())
    })?;
    for event in events {
        tell(&event, names, hooks);
    }
    let is_waiting = let_go_of_replacements(owner, names)?;
    if owner.has_lost_its_file() {
        names.tell("its file was unmounted; it goes on without it, until `raidlab array stop`");
    }
    match used {
        Ok(Some(member)) => {
            let spare = names.spares.remove(0);
            names.tell(&format!("{} takes the place of member {member}", spare.display()));
            names.took_over(member, spare);
            hook(hooks, names, "SpareActive", Some(member.at()));
        }
        Ok(None) => {}
        Err(error) => {
            let spare = names.spares.remove(0);
            names.tell(&format!("spare {} cannot be used: {error}", spare.display()));
        }
    }
    Ok(is_busy || is_waiting)
}

/// Lets go of devices that were to replace members; that of a member which failed is its spare. Whether some of them
/// have something to do still.
fn let_go_of_replacements(owner: &mut Owner, names: &mut Names) -> Result<bool, EngineError> {
    for (path, member, has_failed) in std::mem::take(&mut names.left) {
        let is_spare: Result<_, EngineError> = owner.with(move |engine| {
            let device = engine.take_replacement(member)?;
            // Others than md's arrays have no spares.
            let is_there = !matches!(device, Member::Absent);
            Ok(is_there && has_failed && engine.add_spare(device).is_ok())
        })?;
        match is_spare {
            Ok(true) => {
                names.tell(&format!("{} is a spare now", path.display()));
                names.spares.push(path);
            }
            Ok(false) => {}
            Err(error) if error.kind() == EngineErrorKind::Busy => {
                names.left.push((path, member, has_failed));
            }
            Err(error) => names.tell(&format!("{} is kept: {error}", path.display())),
        }
    }
    Ok(!names.left.is_empty())
}

pub(super) fn tell(event: &Event, names: &mut Names, hooks: &Hooks) {
    match event {
        Event::MemberFailed(member) => {
            let device = names.members[member.at()].as_ref().map(|path| path.display().to_string());
            names.failed_last = Some(*member);
            names.tell(&format!(
                "member {member} failed ({})",
                device.as_deref().unwrap_or("missing")
            ));
            hook(hooks, names, "Fail", Some(member.at()));
            names.replaces_no_more(*member, true);
        }
        // It comes again with each member that fails after.
        Event::ArrayFailed if names.is_lost => {}
        Event::ArrayFailed => {
            names.is_lost = true;
            names
                .tell("more members are lost than the level survives: nothing is written any more");
            hook(hooks, names, "ArrayFailed", None);
        }
        Event::Restored(member) => {
            names.tell(&format!("member {member} is fully in service"));
            hook(hooks, names, "RebuildFinished", Some(member.at()));
        }
        Event::Replaced(member) => {
            names.replaced(*member);
            names.tell(&format!("member {member} was replaced"));
            hook(hooks, names, "RebuildFinished", Some(member.at()));
        }
        Event::ReplacementFailed(member) => {
            names.replaces_no_more(*member, false);
            names.tell(&format!("the replacement of member {member} failed"));
        }
        Event::Corrected { member, at, len } => {
            names.tell(&rewritten(*member, *at, *len));
        }
        Event::BadBlocks { member, at, len } => {
            names.tell(&unreadable(*member, *at, *len));
        }
        Event::Mismatch { at, len, guilty } => names.scrubs.differs(*at, *len, *guilty),
        Event::Mended { len, .. } => names.scrubs.mended(*len),
        Event::WaitsForRoom(member) => {
            names.tell(&format!("member {member} has no room; writes wait"))
        }
        Event::Started(work) => {
            names.failed_last = None;
            if let Work::Scrub(_) = work {
                names.scrubs.begins();
            }
            names.tell(&format!("{} begins", kind(*work)));
        }
        Event::Interrupted(work) => {
            let by = names.failed_last;
            if let Work::Scrub(_) = work {
                names.scrubs.broken_off(by);
            }
            names.tell(&broken_off(*work, by));
        }
        Event::Finished { work, mismatched, lost } => {
            if let Work::Scrub(scrub) = work {
                names.scrubs.finished(*scrub, *mismatched, *lost);
            }
            let lost = if lost.0 > 0 { format!(", {lost} are lost") } else { String::new() };
            names.tell(&format!("{} is done{lost}", kind(*work)));
        }
        _ => {}
    }
}

fn rewritten(member: MemberIndex, at: Sector, len: u32) -> String {
    let sectors = counted(len.into(), "sector was", "sectors were");
    format!("member {member}: at {at} of its data {sectors} rewritten")
}

fn unreadable(member: MemberIndex, at: Sector, len: u32) -> String {
    let sectors = counted(len.into(), "sector", "sectors");
    format!("member {member}: at {at} of its data {sectors} cannot be read")
}

fn broken_off(work: Work, by: Option<MemberIndex>) -> String {
    let why = by.map(|member| format!(": member {member} failed")).unwrap_or_default();
    format!("{} was broken off{why}", kind(work))
}

/// Has the administrator's program told, if there is one.
fn hook(hooks: &Hooks, names: &Names, event: &str, member: Option<usize>) {
    hooks.tell(event, member.and_then(|member| names.members[member].as_deref()));
}

#[cfg(test)]
pub(super) mod tests {
    use raidlab_core::contract::{Pacing, Scrub};
    use raidlab_core::{Layout, Level, Sectors};
    use raidlab_engine::{EngineConfig, Member, MemoryMember};

    use super::*;

    #[test]
    fn what_happened_is_told_in_words_that_fit() {
        let member = MemberIndex(2);
        let at = Sector(19_456);
        assert_eq!(
            rewritten(member, at, 1),
            "member 2: at sector 19456 of its data 1 sector was rewritten"
        );
        assert_eq!(
            unreadable(member, at, 8),
            "member 2: at sector 19456 of its data 8 sectors cannot be read"
        );
        let check = Work::Scrub(Scrub::Check);
        assert_eq!(broken_off(check, Some(member)), "check was broken off: member 2 failed");
        assert_eq!(broken_off(Work::Resync, None), "resync was broken off");
    }

    fn blank() -> Member {
        Member::Memory(MemoryMember::new(Sectors(8192)).unwrap())
    }

    #[test]
    fn what_a_stop_leaves_unfinished_is_told() {
        let begun = || {
            let mut config = EngineConfig::new(Layout::new(Level::Raid1, 2));
            config.settings.pacing = Pacing::between(1, 1);
            Engine::new(&config, vec![blank(), blank()]).unwrap()
        };
        assert_eq!(unfinished(&begun()), "");
        let mut engine = begun();
        engine.replace(MemberIndex(1), blank(), true).unwrap();
        let told = unfinished(&engine);
        assert!(
            told.starts_with("; the copy of member 1 to its replacement is not complete"),
            "{told}"
        );
        let mut engine = begun();
        engine.fail(MemberIndex(0)).unwrap();
        engine.add(MemberIndex(0), blank()).unwrap();
        assert_eq!(unfinished(&engine), "; member 0 is not rebuilt yet: the next start does it");
    }

    /// An array of two mirrors in memory that runs, without anybody's program.
    fn mirrors() -> (Owner, Names) {
        let config = EngineConfig::new(Layout::new(Level::Raid1, 2));
        let engine = Engine::new(&config, vec![blank(), blank()]).unwrap();
        (Owner::Here(Box::new(engine)), Names::new(Mode::Write, &[], &[None, None], &[]))
    }

    pub(in super::super) fn options() -> Assemble {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            assemble: Assemble,
        }
        <Line as clap::Parser>::parse_from(["assemble", "0", "1"]).assemble
    }

    /// An array that cannot be told to stop any more stops.
    #[test]
    fn without_anybody_to_take_commands_in_an_array_ends_in_order() {
        let (owner, names) = mirrors();
        let (sender, requests) = std::sync::mpsc::channel();
        drop(sender);
        let hooks = Hooks::new(None, &names);
        let (options, stop) = (options(), AtomicBool::new(false));
        let floors = &mut Floors::none();
        let ended = attend((owner, names), &requests, (&options, &stop), floors, &hooks);
        assert!(ended.is_ok(), "{ended:?}");
    }
}
