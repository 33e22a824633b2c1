//! Rebuilds across the border: md degrades an array and writes, raidlab rebuilds; raidlab degrades,
//! writes and rebuilds, md assembles. md's own check finds redundancy consistent in both.

use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicBool;

use raidlab_core::contract::Pacing;
use raidlab_core::{MemberIndex, Sector};
use raidlab_engine::Engine;

use super::arrays::{Arrays, Set, TestArray};
use super::content::{difference, fill, pattern};
use super::files::{self, Files};
use super::script;
use super::traffic::write_mixture;
use crate::guest::Guest;

/// What the array holds after those writes.
fn written_by_md(array: &TestArray) -> Vec<u8> {
    let mut model = pattern(array);
    for (number, (at, len)) in (1..).zip(array.degraded_writes()) {
        fill(array, &mut model[at as usize..(at + len) as usize], at, number);
    }
    model
}

/// The whole exchange; panics with all that was found wrong.
pub(crate) fn exchange(guest: &Guest, arrays: &Arrays) {
    let files = Files::new(arrays);
    let filled = guest.run(&script::fill(arrays), &files.paths(Set::Sound), files.share());
    filled.expect_success("md fills the arrays");
    files.copy(Set::Sound, Set::Degraded);

    for array in &arrays.list {
        for (at, len) in array.degraded_writes() {
            let model = written_by_md(array);
            let bytes = &model[at as usize..(at + len) as usize];
            let path = files.share().join(script::piece(array, at));
            std::fs::write(path, bytes).expect("the piece is written");
        }
    }
    let all = [files.paths(Set::Sound), files.paths(Set::Degraded)].concat();
    let degraded = guest.run(&script::degrade(arrays), &all, files.share());
    degraded.expect_success("md degrades the arrays and writes");

    let mut wrong = Vec::new();
    let mut models = Vec::new();
    for array in &arrays.list {
        let lost = array.rebuilt();
        let by_md = written_by_md(array);
        let mut engine = files::without(files.engine(array, Set::Degraded), array, lost);
        let seen = read(&mut engine, array);
        wrong.extend(tell(array, "raidlab reads what md degraded", &by_md, &seen));
        rebuild(&mut engine, &files, array, Set::Degraded);
        drop(engine);
        wrong.extend(look(&files, array, Set::Degraded, &by_md));

        let mut own = pattern(array);
        let mut engine = files::without(files.engine(array, Set::Sound), array, lost);
        write_mixture(&mut engine, array, &mut own, 77);
        rebuild(&mut engine, &files, array, Set::Sound);
        drop(engine);
        wrong.extend(look(&files, array, Set::Sound, &own));
        models.push([own, by_md]);
    }
    assert!(wrong.is_empty(), "rebuilt by raidlab:\n{}", wrong.join("\n"));

    let confirmed = guest.run(&script::confirm(arrays), &all, files.share());
    let checks = confirmed.expect_success("md assembles and checks the arrays").to_owned();
    for (array, [own, by_md]) in arrays.list.iter().zip(&models) {
        for (set, model) in [(Set::Sound, own), (Set::Degraded, by_md)] {
            let found = files.take_seen(&script::seen(array, set, &[]));
            wrong.extend(tell(array, &format!("md reads the {set:?} set"), model, &found));
        }
    }
    let expected = script::good_confirmations(arrays);
    if checks != expected {
        wrong.push(format!("md's check:\n{checks}expected:\n{expected}"));
    }
    assert!(wrong.is_empty(), "md after raidlab's rebuild:\n{}", wrong.join("\n"));
}

/// Puts blank drives into the places of the lost members and waits until they are rebuilt.
fn rebuild(engine: &mut Engine, files: &Files, array: &TestArray, set: Set) {
    let fast = Pacing::between(u64::MAX, u64::MAX);
    engine.pace(fast).unwrap_or_else(|error| panic!("{array}: {error}"));
    for member in array.rebuilt() {
        let failed = engine.take_out(MemberIndex(*member));
        drop(failed.unwrap_or_else(|error| panic!("{array}, member {member}: {error}")));
        scramble(files, array, set, *member);
        let fresh = files.member(array, set, *member);
        let added = engine.add(MemberIndex(*member), fresh);
        added.unwrap_or_else(|error| panic!("{array}, member {member}: {error}"));
    }
    let ended = engine.finish_background(&AtomicBool::new(false));
    ended.unwrap_or_else(|error| panic!("{array}: {error}"));
    engine.flush().unwrap_or_else(|error| panic!("{array}: {error}"));
    for member in array.rebuilt() {
        assert!(!engine.array().is_failed(MemberIndex(*member)), "{array}: member {member}");
    }
}

/// What a blank drive holds is anything.
fn scramble(files: &Files, array: &TestArray, set: Set, member: u16) {
    let used = array.geometry().used(MemberIndex(member)).bytes() as usize;
    let path = files.path(array, set, usize::from(member));
    let file = std::fs::OpenOptions::new().write(true).open(path).expect("a member file");
    let start = array.data_start(usize::from(member));
    file.write_all_at(&vec![0x99; used], start).expect("scrambled");
}

/// Reads it all, also with other members missing.
fn look(files: &Files, array: &TestArray, set: Set, model: &[u8]) -> Vec<String> {
    let mut wrong = Vec::new();
    for missing in &array.missing {
        let mut engine = files::without(files.engine(array, set), array, missing);
        let found = read(&mut engine, array);
        let who = format!("raidlab rebuilt the {set:?} set and reads it without {missing:?}");
        wrong.extend(tell(array, &who, model, &found));
    }
    wrong
}

fn read(engine: &mut Engine, array: &TestArray) -> Vec<u8> {
    let mut found = vec![0xee; array.capacity() as usize];
    engine.read_at(Sector(0), &mut found).unwrap_or_else(|error| panic!("{array}: {error}"));
    found
}

fn tell(array: &TestArray, who: &str, expected: &[u8], found: &[u8]) -> Option<String> {
    let what = difference(array, expected, found)?;
    Some(format!("{array}, lost {:?}: {who}: {what}", array.rebuilt()))
}
