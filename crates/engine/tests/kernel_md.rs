//! Against the real kernel: Linux md in a guest and raidlab read each other's arrays.
//!
//! For every array: md creates it and fills it with a pattern; raidlab, told the data offset, reads the
//! same bytes from the member files, with members missing too. Then raidlab writes all sorts of ranges
//! into it, and into a copy of it with members out of service; md reads what is there now, with members
//! missing too, and finds redundancy consistent by its own `check`. Rebuilds: see `rebuild.rs`.

pub(crate) mod arrays;
pub(crate) mod catalogue;
pub(crate) mod content;
pub(crate) mod files;
mod rebuild;
pub(crate) mod script;
pub(crate) mod traffic;

use crate::extent::Extent;
use crate::guest::{Guest, guest_or_skip};
use arrays::{Arrays, Set, Shape, TestArray};
use content::{difference, pattern};
use files::Files;
use raidlab_core::geometry::{Geometry, Parity};
use raidlab_core::{Level, Sector};
use raidlab_engine::Engine;
use traffic::{Tally, write_mixture};

#[test]
fn md_and_raidlab_read_each_others_arrays_without_parity() {
    let name = "md_and_raidlab_read_each_others_arrays_without_parity";
    exchange_all(name, catalogue::without_parity);
}

#[test]
fn md_and_raidlab_read_each_others_arrays_with_parity() {
    let name = "md_and_raidlab_read_each_others_arrays_with_parity";
    exchange_all(name, catalogue::with_parity);
}

#[test]
fn raidlab_rebuilds_what_md_degraded_and_md_takes_it_back() {
    let name = "raidlab_rebuilds_what_md_degraded_and_md_takes_it_back";
    let extent = Extent::from_environment();
    for arrays in Arrays::new(catalogue::redundant(extent), extent) {
        let Some(guest) = guest_or_skip(name) else { return };
        let guest = guest.cut(&arrays.sections()).limit(300);
        for array in &arrays.list {
            println!("{array}: degraded and rebuilt without {:?}", array.rebuilt());
        }
        rebuild::exchange(&guest, &arrays);
    }
}

/// The exchange for all shapes of a run, as many in one guest as there is room for.
fn exchange_all(name: &str, shapes: fn(Extent) -> Vec<Shape>) {
    let extent = Extent::from_environment();
    for arrays in Arrays::new(shapes(extent), extent) {
        let Some(guest) = guest_or_skip(name) else { return };
        let guest = guest.cut(&arrays.sections()).limit(300);
        for array in &arrays.list {
            // Shown when the test fails, or by --nocapture.
            println!("{array}: read without {:?}, written without {:?}", array.missing, array.lost);
        }
        exchange(&guest, &arrays, extent);
    }
}

/// The whole exchange for some arrays; panics with all that was found wrong.
fn exchange(guest: &Guest, arrays: &Arrays, extent: Extent) {
    let files = Files::new(arrays);
    let mut wrong = Vec::new();

    let filled = guest.run(&script::fill(arrays), &files.paths(Set::Sound), files.share());
    for (array, line) in arrays.list.iter().zip(filled.stdout.lines()) {
        let expected = script::facts(array);
        if line != expected {
            wrong.push(format!("{array}: md has [{line}], raidlab expects [{expected}]"));
        }
    }
    stop_if(&wrong, "number, sectors, layout, data offset of each member");
    let facts = filled.expect_success("md fills the arrays");
    assert_eq!(facts.lines().count(), arrays.list.len(), "a line for every array:\n{facts}");
    for array in &arrays.list {
        wrong.extend(raidlab_reads_what_md_wrote(&files, array));
    }
    stop_if(&wrong, "raidlab does not read what md wrote");

    files.copy(Set::Sound, Set::Filled);
    let write = |array| raidlab_writes(&files, array, Set::Sound, &[], &mut wrong);
    let sound: Vec<Vec<u8>> = arrays.list.iter().map(write).collect();
    for round in 0..arrays.rounds() {
        files.copy(Set::Filled, Set::Degraded);
        let mut write = |array: &TestArray| match array.lost.get(round) {
            Some(lost) => raidlab_writes(&files, array, Set::Degraded, lost, &mut wrong),
            None => Vec::new(),
        };
        let degraded: Vec<Vec<u8>> = arrays.list.iter().map(&mut write).collect();
        md_reads(guest, arrays, &files, [&sound, &degraded], (round, extent), &mut wrong);
        stop_if(&wrong, "raidlab's writes, and md reading them");
    }
}

/// md reads what raidlab wrote into sound arrays (in the first round) and into degraded ones, and checks.
fn md_reads(
    guest: &Guest,
    arrays: &Arrays,
    files: &Files,
    models: [&[Vec<u8>]; 2],
    (round, extent): (usize, Extent),
    wrong: &mut Vec<String>,
) {
    let all = [files.paths(Set::Sound), files.paths(Set::Degraded)].concat();
    let output = guest.run(&script::look(arrays, round, extent), &all, files.share());
    if output.status != 0 {
        // What raidlab is known to have done wrong may be why.
        stop_if(wrong, "raidlab's writes");
    }
    let checks = output.expect_success("md reads the arrays");
    for (index, array) in arrays.list.iter().enumerate() {
        for missing in script::sound_looks(array, round) {
            let found = files.take_seen(&script::seen(array, Set::Sound, missing));
            wrong.extend(compare(array, "md reads", missing, &models[0][index], &found));
        }
        let Some(lost) = array.lost.get(round) else { continue };
        for missing in array.missing_beyond(lost, extent) {
            let found = files.take_seen(&script::seen(array, Set::Degraded, &missing));
            let who = format!("after writes without {lost:?} md reads");
            wrong.extend(compare(array, &who, &missing, &models[1][index], &found));
        }
    }
    let expected = script::good_checks(arrays, round);
    if checks != expected {
        wrong.push(format!("md's check:\n{checks}expected:\n{expected}"));
    }
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
    for missing in &array.missing {
        let mut engine = files::without(files.engine(array, Set::Sound), array, missing);
        let mut found = vec![0xee; expected.len()];
        engine.read_at(Sector(0), &mut found).unwrap_or_else(|error| panic!("{array}: {error}"));
        wrong.extend(compare(array, "raidlab reads", missing, &expected, &found));
        wrong.extend(touched(&engine, array, missing));
    }
    wrong
}

/// Writes into a copy of the array, members out of service; returns what it must hold then.
fn raidlab_writes(
    files: &Files,
    array: &TestArray,
    set: Set,
    missing: &[u16],
    wrong: &mut Vec<String>,
) -> Vec<u8> {
    let before = files.outside_data(array, set, missing);
    let mut engine = files::without(files.engine(array, set), array, missing);
    let mut model = pattern(array);
    let seed = missing.iter().fold(0, |seed, member| seed << 5 | u64::from(member + 1));
    let tally = write_mixture(&mut engine, array, &mut model, seed);
    wrong.extend(touched(&engine, array, missing));
    drop(engine);
    if let Geometry::Parity(parity) = array.geometry() {
        wrong.extend(too_narrow(array, &parity, missing, &tally));
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
fn too_narrow(
    array: &TestArray,
    parity: &Parity,
    missing: &[u16],
    tally: &Tally,
) -> Option<String> {
    let raid6 = array.layout.level == Level::Raid6;
    let right = if missing.is_empty() {
        // One chunk written: only from so many members on is reading parity less than other data.
        let modifies = array.layout.members >= if raid6 { 7 } else { 5 };
        let modified = (tally.modify > 0) == modifies;
        tally.full_stripe > 0 && tally.reconstruct > 0 && modified && tally.without_p == 0
    } else if raid6 {
        // Which ways there are depends on what the two lost members hold.
        tally.reconstruct + tally.modify + tally.without_p > 0
    } else {
        let stripes = array.capacity() / 512 / parity.stripe_sectors();
        let without_p = |stripe: &u64| missing.contains(&parity.p_member(*stripe).0);
        let lost = (0..stripes).filter(without_p).count() as u64;
        let with_p = [tally.full_stripe, tally.reconstruct, tally.modify];
        with_p.iter().all(|kind| (*kind > 0) == (lost < stripes))
            && (tally.without_p > 0) == (lost > 0)
    };
    (!right).then(|| format!("{array}, missing {missing:?}: the mixture was {tally:?}"))
}

/// The first I/O to a member that is out of service.
fn touched(engine: &Engine, array: &TestArray, missing: &[u16]) -> Option<String> {
    let io = engine.recorded().iter().find(|io| missing.contains(&io.member.0))?;
    Some(format!("{array}, missing {missing:?}: a missing member is used: {io:?}"))
}
