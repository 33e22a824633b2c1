//! Against the real kernel: Linux md in a guest and raidlab read each other's arrays.
//!
//! For every array: md creates it and fills it with a pattern; raidlab, told the data offset, reads the
//! same bytes from the member files, with members missing too. Then raidlab writes all sorts of ranges
//! into it, and into a copy of it with members out of service; md reads what is there now, with members
//! missing too, and finds redundancy consistent by its own `check`.

mod common;
#[path = "../../../tests/support/guest.rs"]
mod guest;

#[path = "kernel_md/arrays.rs"]
mod arrays;
#[path = "kernel_md/content.rs"]
mod content;
#[path = "kernel_md/files.rs"]
mod files;
#[path = "kernel_md/script.rs"]
mod script;
#[path = "kernel_md/traffic.rs"]
mod traffic;

use arrays::{Arrays, Set, TestArray};
use content::{difference, pattern};
use files::Files;
use guest::{Guest, guest_or_skip};
use raidlab_core::geometry::Geometry;
use raidlab_core::{MemberIndex, Sector};
use raidlab_engine::Engine;
use traffic::{Tally, write_mixture};

#[test]
fn md_and_raidlab_read_each_others_arrays_without_parity() {
    let name = "md_and_raidlab_read_each_others_arrays_without_parity";
    if let Some(guest) = guest_or_skip(name) {
        exchange(guest, &Arrays::without_parity());
    }
}

#[test]
fn md_and_raidlab_read_each_others_raid5() {
    if let Some(guest) = guest_or_skip("md_and_raidlab_read_each_others_raid5") {
        exchange(guest, &Arrays::raid5());
    }
}

/// The whole exchange for some arrays; panics with all that was found wrong.
fn exchange(guest: Guest, arrays: &Arrays) {
    let guest = guest.cut(&arrays.sections());
    let files = Files::new(arrays);
    let mut wrong = Vec::new();

    let filled = guest.run(&script::fill(arrays), &files.paths(Set::Sound), files.share());
    for (array, line) in arrays.list.iter().zip(filled.stdout.lines()) {
        let expected = script::facts(array);
        if line != expected {
            wrong.push(format!("{array}: md has [{line}], raidlab expects [{expected}]"));
        }
    }
    stop_if(&wrong, "number, sectors, data offset of each member");
    let facts = filled.expect_success("md fills the arrays");
    assert_eq!(facts.lines().count(), arrays.list.len(), "a line for every array:\n{facts}");
    for array in &arrays.list {
        wrong.extend(raidlab_reads_what_md_wrote(&files, array));
    }
    stop_if(&wrong, "raidlab does not read what md wrote");

    files.copy();
    let mut models = Vec::new();
    for array in &arrays.list {
        models.push(raidlab_writes(&files, array, Set::Sound, &mut wrong));
        if array.lost.is_empty() {
            models.push(Vec::new());
        } else {
            models.push(raidlab_writes(&files, array, Set::Degraded, &mut wrong));
        }
    }

    let all = [files.paths(Set::Sound), files.paths(Set::Degraded)].concat();
    let output = guest.run(&script::look(arrays), &all, files.share());
    if output.status != 0 {
        // What raidlab is known to have done wrong may be why.
        stop_if(&wrong, "raidlab's writes");
    }
    let checks = output.expect_success("md reads the arrays");
    for (array, models) in arrays.list.iter().zip(models.chunks(2)) {
        for missing in array.missing {
            let found = files.seen(&script::seen(array, Set::Sound, missing));
            wrong.extend(compare(array, "md reads", missing, &models[0], &found));
        }
        if !array.lost.is_empty() {
            let found = files.seen(&script::seen(array, Set::Degraded, array.lost));
            let who = "after degraded writes md reads";
            wrong.extend(compare(array, who, array.lost, &models[1], &found));
        }
    }
    let redundant = arrays.list.iter().filter(|array| array.layout.survives() > 0);
    let expected: Vec<_> = redundant.map(script::good_check).collect();
    if checks.lines().ne(expected.iter().map(String::as_str)) {
        wrong.push(format!("md's check:\n{checks}expected:\n{}", expected.join("\n")));
    }
    stop_if(&wrong, "raidlab's writes, and md reading them");
}

fn stop_if(wrong: &[String], what: &str) {
    assert!(wrong.is_empty(), "{what}:\n{}", wrong.join("\n"));
}

/// What differs, if anything does; the test fails only when all arrays have been looked at.
fn compare(
    array: &TestArray,
    who: &str,
    missing: &[u16],
    expected: &[u8],
    found: &[u8],
) -> Option<String> {
    let what = difference(array, expected, found)?;
    Some(format!("{array}, missing {missing:?}: {who} otherwise than written: {what}"))
}

fn raidlab_reads_what_md_wrote(files: &Files, array: &TestArray) -> Vec<String> {
    let mut wrong = Vec::new();
    let expected = pattern(array);
    for missing in array.missing {
        let mut engine = engine_without(files, array, Set::Sound, missing);
        let mut found = vec![0xee; expected.len()];
        engine.read_at(Sector(0), &mut found).unwrap_or_else(|error| panic!("{array}: {error}"));
        wrong.extend(compare(array, "raidlab reads", missing, &expected, &found));
        wrong.extend(touched(&engine, array, missing));
    }
    wrong
}

/// Writes into a copy of the array; returns what it must hold then.
fn raidlab_writes(files: &Files, array: &TestArray, set: Set, wrong: &mut Vec<String>) -> Vec<u8> {
    let missing = if set == Set::Sound { &[][..] } else { array.lost };
    let before = files.outside_data(array, set, missing);
    let mut engine = engine_without(files, array, set, missing);
    let mut model = pattern(array);
    let tally = write_mixture(&mut engine, array, &mut model);
    wrong.extend(touched(&engine, array, missing));
    drop(engine);
    if matches!(array.geometry(), Geometry::Parity(_)) {
        wrong.extend(too_narrow(array, missing, &tally));
    }
    let after = files.outside_data(array, set, missing);
    for (member, (before, after)) in before.iter().zip(&after).enumerate() {
        if before != after {
            let mut bytes = before.iter().zip(after);
            let at = bytes.position(|(before, after)| before != after).unwrap_or(0);
            wrong.push(format!(
                "{array}, missing {missing:?}: raidlab wrote outside the data of member {member}: \
                 first at byte {at} of what is not data"
            ));
        }
    }
    model
}

/// The writes of a mixture must have gone every way there is.
fn too_narrow(array: &TestArray, missing: &[u16], tally: &Tally) -> Option<String> {
    let sound = missing.is_empty();
    // A sound array of fewer than five members never reads less by reading P.
    let modifies = !sound || array.layout.members >= 5;
    let right = tally.full_stripe > 0
        && tally.reconstruct > 0
        && (tally.modify > 0) == modifies
        && (tally.without_p > 0) != sound;
    (!right).then(|| format!("{array}, missing {missing:?}: the mixture was {tally:?}"))
}

/// An engine over the member files, these members out of service, that keeps a record.
fn engine_without(files: &Files, array: &TestArray, set: Set, missing: &[u16]) -> Engine {
    let mut engine = files.engine(array, set);
    for member in missing {
        engine.fail(MemberIndex(*member)).unwrap_or_else(|error| panic!("{array}: {error}"));
    }
    engine.record(true);
    engine
}

/// The first I/O to a member that is out of service.
fn touched(engine: &Engine, array: &TestArray, missing: &[u16]) -> Option<String> {
    let io = engine.recorded().iter().find(|io| missing.contains(&io.member.0))?;
    Some(format!("{array}, missing {missing:?}: a missing member is used: {io:?}"))
}
