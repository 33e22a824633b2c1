//! Shards: torn at any byte, written by two, of different work, changed, twice there.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Barrier;

use raidlab_store::shards::{Head, Merge, SHARDS_SCHEMA_VERSION, ShardWriter, Shards, ranges};
use raidlab_store::{StoreError, StoreErrorKind};

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("raidlab-shards-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn head(id: &str, items: u64, shards: u64) -> Head {
    Head {
        schema_version: SHARDS_SCHEMA_VERSION,
        id: id.into(),
        title: "Work".into(),
        raidlab: "1.0".into(),
        commit: None,
        items,
        shards,
    }
}

/// Item 0 has one row, item 1 two, and so on in turn.
fn parts(item: u64) -> u32 {
    1 + (item % 3) as u32
}

fn row(item: u64, part: u32) -> Vec<u8> {
    let parts = parts(item);
    format!("{{\"point\":{item},\"part\":{part},\"parts\":{parts},\"error\":null}}\n").into_bytes()
}

/// Adds at most so many rows; whether the shard has all of them.
fn add(writer: &mut ShardWriter, most: usize) -> bool {
    for _ in 0..most {
        let Some((item, part)) = writer.next() else { return true };
        writer.begin().expect("begun");
        writer.push(&row(item, part)).expect("written");
    }
    writer.next().is_none()
}

fn fill(shards: &Shards, shard: u64) {
    let mut writer = shards.take(shard, false).expect("ours").expect("not finished");
    assert!(add(&mut writer, usize::MAX));
    writer.finish().expect("finished");
}

fn all_rows(directories: &[PathBuf]) -> Result<String, StoreError> {
    let mut text = String::new();
    Merge::of(directories)?.rows(|line| {
        text.push_str(std::str::from_utf8(line).expect("text"));
        Ok::<(), StoreError>(())
    })?;
    Ok(text)
}

fn expected(items: u64) -> String {
    let rows = (0..items).flat_map(|item| (0..parts(item)).map(move |part| row(item, part)));
    String::from_utf8(rows.flatten().collect()).expect("text")
}

#[test]
fn rows_do_not_depend_on_how_they_are_divided() {
    let scratch = Scratch::new("divided");
    for shards in [1, 3, 7] {
        let directory = scratch.path(&format!("of-{shards}"));
        let of = Shards::create(&directory, &head("a", 7, shards)).expect("made");
        for shard in (1..=shards).rev() {
            assert_eq!(of.missing().expect("readable").len() as u64, shard);
            fill(&of, shard);
        }
        assert!(of.take(1, false).expect("readable").is_none(), "finished");
        assert_eq!(all_rows(&[directory]).expect("whole"), expected(7), "{shards}");
    }
}

/// Whatever is left of a part, and behind it, the shard comes out the same.
#[test]
fn a_part_torn_at_any_byte_goes_on() {
    let scratch = Scratch::new("torn");
    let whole = expected(2);
    let behind = ["", "\0\0\0\0", "{\"point\":9,\"part\":0,\"parts\":1}\n", "\n"];
    for length in 0..=whole.len() {
        let directory = scratch.path(&format!("rows-{length}"));
        let shards = Shards::create(&directory, &head("a", 2, 1)).expect("made");
        // At the end of a row everything may stand behind it, elsewhere one of these.
        let torn = [&whole[..length], behind[length % behind.len()]].concat();
        fs::write(directory.join("shard-0000001.part"), torn).expect("written");
        fill(&shards, 1);
        assert_eq!(all_rows(&[directory]).expect("whole"), whole, "{length}");
    }
    for behind in behind {
        let directory = scratch.path(&format!("behind-{}", behind.len()));
        let shards = Shards::create(&directory, &head("a", 2, 1)).expect("made");
        let first = whole.find('\n').expect("a row") + 1;
        let torn = [&whole[..first], behind].concat();
        fs::write(directory.join("shard-0000001.part"), torn).expect("written");
        fill(&shards, 1);
        assert_eq!(all_rows(&[directory]).expect("whole"), whole, "{behind:?}");
    }
}

#[test]
fn between_the_rows_and_their_manifest_nothing_is_lost() {
    let scratch = Scratch::new("between");
    let directory = scratch.path("rows");
    let shards = Shards::create(&directory, &head("a", 4, 1)).expect("made");
    fill(&shards, 1);
    let manifest = fs::read(directory.join("shard-0000001.json")).expect("there");
    fs::remove_file(directory.join("shard-0000001.json")).expect("ours");
    let writer = shards.take(1, false).expect("ours").expect("not finished");
    assert_eq!((writer.next(), writer.rows()), (None, 7));
    writer.finish().expect("finished");
    assert_eq!(fs::read(directory.join("shard-0000001.json")).expect("there"), manifest);
}

#[test]
fn a_row_that_was_begun_and_is_not_there_is_counted() {
    let scratch = Scratch::new("begun");
    let shards = Shards::create(&scratch.path("rows"), &head("a", 4, 1)).expect("made");
    for crashes in 0..3 {
        let mut writer = shards.take(1, false).expect("ours").expect("not finished");
        assert!(!add(&mut writer, usize::from(crashes == 0) * 2));
        assert_eq!((writer.next(), writer.crashes()), (Some((1, 1)), crashes));
        writer.begin().expect("begun");
    }
    let mut writer = shards.take(1, false).expect("ours").expect("not finished");
    assert_eq!(writer.crashes(), 3);
    writer.begin().expect("begun");
    writer.leave().expect("left");
    drop(writer);
    let mut writer = shards.take(1, false).expect("ours").expect("not finished");
    assert_eq!(writer.crashes(), 3, "what is left for later is nobody's fault");
    writer.push(&row(1, 1)).expect("written");
    assert_eq!(writer.crashes(), 0, "another row");
    let wrong = writer.push(&row(3, 1)).expect_err("not the next");
    assert_eq!(wrong.kind, StoreErrorKind::Damaged);
}

#[test]
fn two_do_not_write_one_shard() {
    let scratch = Scratch::new("two");
    let shards = Shards::create(&scratch.path("rows"), &head("a", 4, 2)).expect("made");
    let _one = shards.take(1, false).expect("ours").expect("not finished");
    let error = shards.take(1, false).expect_err("another's");
    assert_eq!(error.kind, StoreErrorKind::Locked);
    assert!(shards.take(2, false).expect("ours").is_some());
    let error = shards.take(3, false).expect_err("none");
    assert!(error.to_string().contains("they are 1 to 2"), "{error}");
}

/// What one has just finished the other does not take from it, wherever between rows and manifest it looks.
#[test]
fn two_that_take_what_the_other_finishes_leave_every_shard_whole() {
    const SHARDS: u64 = 200;
    let scratch = Scratch::new("race");
    let directory = scratch.path("rows");
    // An item each, of few rows.
    let shards = Shards::create(&directory, &head("a", SHARDS, SHARDS)).expect("made");
    let begun = Barrier::new(2);
    let work = || {
        begun.wait();
        let mut finished = 0;
        for shard in 1..=SHARDS {
            let Some(mut writer) = shards.take(shard, true).expect("readable") else { continue };
            assert!(add(&mut writer, usize::MAX));
            writer.finish().expect("finished");
            finished += 1;
        }
        finished
    };
    let finished: u64 = std::thread::scope(|scope| {
        let threads = [scope.spawn(work), scope.spawn(work)];
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    assert_eq!(finished, SHARDS, "each by one of them");
    assert_eq!(shards.missing().expect("readable"), [0; 0]);
    let left = fs::read_dir(&directory).expect("a directory").count() as u64;
    assert_eq!(left, 1 + 2 * SHARDS, "the head, and two files for each shard");
    assert_eq!(all_rows(&[directory]).expect("whole"), expected(SHARDS));
}

#[test]
fn rows_whose_manifest_is_being_written_stay_where_they_are() {
    let scratch = Scratch::new("being-written");
    let directory = scratch.path("rows");
    let shards = Shards::create(&directory, &head("a", 4, 1)).expect("made");
    fill(&shards, 1);
    let [rows, manifest, part] =
        ["jsonl", "json", "part"].map(|ending| directory.join(format!("shard-0000001.{ending}")));
    fs::remove_file(&manifest).expect("ours");
    // As a process that has renamed the rows and not yet written their manifest.
    let finishing = fs::File::open(&rows).expect("there");
    finishing.lock().expect("ours");
    let error = shards.take(1, false).expect_err("another's");
    assert_eq!(error.kind, StoreErrorKind::Locked, "{error}");
    assert!(rows.exists() && !part.exists());
    drop(finishing);
    fill(&shards, 1);
    assert_eq!(shards.missing().expect("readable"), [0; 0]);
}

#[test]
fn a_file_that_was_made_beside_finished_rows_goes() {
    let scratch = Scratch::new("in-vain");
    let directory = scratch.path("rows");
    let shards = Shards::create(&directory, &head("a", 4, 1)).expect("made");
    fill(&shards, 1);
    fs::remove_file(directory.join("shard-0000001.json")).expect("ours");
    fs::write(directory.join("shard-0000001.part"), row(0, 0)).expect("written");
    fill(&shards, 1);
    assert!(!directory.join("shard-0000001.part").exists());
    assert_eq!(all_rows(&[directory]).expect("whole"), expected(4));
}

/// Two processes of earlier versions could leave this behind.
#[test]
fn a_manifest_without_rows_is_told_with_what_to_do() {
    let scratch = Scratch::new("rowless");
    let directory = scratch.path("rows");
    let shards = Shards::create(&directory, &head("a", 4, 2)).expect("made");
    fill(&shards, 2);
    let [rows, manifest, part] =
        ["jsonl", "json", "part"].map(|ending| directory.join(format!("shard-0000002.{ending}")));
    fs::rename(&rows, &part).expect("ours");
    let told = |error: StoreError| {
        assert_eq!(error.kind, StoreErrorKind::Damaged);
        let told = error.to_string();
        let what = format!("remove {}, and run shard 2 of 2 again", manifest.display());
        assert!(told.contains(&what), "{told}");
        assert!(told.contains(&format!("{} is not there", rows.display())), "{told}");
        told.contains(&format!("keeps the rows in {}", part.display()))
    };
    assert!(told(shards.take(2, false).expect_err("refused")));
    assert!(told(shards.missing().expect_err("refused")));
    assert!(told(Merge::of(std::slice::from_ref(&directory)).expect_err("refused")));
    fs::remove_file(&manifest).expect("ours");
    let writer = shards.take(2, false).expect("ours").expect("not finished");
    assert_eq!((writer.next(), writer.rows()), (None, 4), "as was said");
    writer.finish().expect("finished");
    fs::remove_file(&rows).expect("ours");
    assert!(!told(shards.take(2, false).expect_err("refused")), "there are no rows to keep");
}

#[test]
fn many_make_one_directory_at_once() {
    let scratch = Scratch::new("at-once");
    let begun = Barrier::new(8);
    for round in 0..20 {
        let path = scratch.path(&round.to_string());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    begun.wait();
                    Shards::create(&path, &head("a", 10, 2)).expect("it is theirs, too");
                });
            }
        });
        let left = fs::read_dir(&path).expect("a directory").count();
        assert_eq!(left, 1, "nothing but the head");
    }
}

#[test]
fn of_different_work_at_once_only_the_first_makes_the_directory() {
    let scratch = Scratch::new("first");
    let begun = Barrier::new(8);
    for round in 0..50 {
        let path = scratch.path(&round.to_string());
        let create = |id: &'static str| {
            begun.wait();
            Shards::create(&path, &head(id, 10, 2)).map(|_| id).map_err(|error| error.kind)
        };
        let made = std::thread::scope(|scope| {
            let create = &create;
            let threads: Vec<_> =
                (0..8).map(|number| scope.spawn(move || create(["a", "b"][number % 2]))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
        });
        let there = Shards::open(&path).expect("made").head().id.clone();
        for (number, one) in made.into_iter().enumerate() {
            let own = ["a", "b"][number % 2];
            let expected = if own == there { Ok(own) } else { Err(StoreErrorKind::Mixed) };
            assert_eq!(one, expected, "round {round}, {number}");
        }
        assert_eq!(fs::read_dir(&path).expect("a directory").count(), 1, "nothing but the head");
    }
}

#[test]
fn errors_are_run_again_from_the_first_on() {
    let scratch = Scratch::new("errors");
    let directory = scratch.path("rows");
    let shards = Shards::create(&directory, &head("a", 4, 1)).expect("made");
    let mut writer = shards.take(1, false).expect("ours").expect("not finished");
    assert!(!add(&mut writer, 4));
    writer.push(b"{\"point\":2,\"part\":1,\"parts\":3,\"error\":\"why\"}\n").expect("written");
    assert!(add(&mut writer, 9));
    assert_eq!(writer.finish().expect("finished").errors, 1);
    assert_eq!(shards.reopen_errors().expect("written"), 1);
    let writer = shards.take(1, false).expect("ours").expect("not finished");
    assert_eq!((writer.next(), writer.rows()), (Some((2, 1)), 4));
    drop(writer);
    fill(&shards, 1);
    assert_eq!(shards.reopen_errors().expect("nothing"), 0);
    assert_eq!(all_rows(&[directory]).expect("whole"), expected(4));
}

/// Nobody cuts off what another has begun to run anew.
#[test]
fn errors_are_opened_again_by_one_of_two() {
    const SHARDS: u64 = 50;
    let scratch = Scratch::new("errors-twice");
    let directory = scratch.path("rows");
    let shards = Shards::create(&directory, &head("a", SHARDS, SHARDS)).expect("made");
    for shard in 1..=SHARDS {
        let mut writer = shards.take(shard, false).expect("ours").expect("not finished");
        let (item, part) = writer.next().expect("a row");
        let row = String::from_utf8(row(item, part)).expect("text").replace("null", "\"why\"");
        writer.push(row.as_bytes()).expect("written");
        assert!(add(&mut writer, usize::MAX));
        writer.finish().expect("finished");
    }
    let begun = Barrier::new(2);
    let work = || {
        begun.wait();
        let opened = shards.reopen_errors().expect("written");
        for shard in 1..=SHARDS {
            let Some(mut writer) = shards.take(shard, true).expect("readable") else { continue };
            assert!(add(&mut writer, usize::MAX));
            writer.finish().expect("finished");
        }
        opened
    };
    let opened: u64 = std::thread::scope(|scope| {
        let threads = [scope.spawn(work), scope.spawn(work)];
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    assert_eq!(opened, SHARDS);
    assert_eq!(all_rows(&[directory]).expect("whole"), expected(SHARDS));
}

#[test]
fn nothing_is_joined_silently() {
    let scratch = Scratch::new("joined");
    let made = |name: &str, head: &Head, shards: &[u64]| {
        let directory = scratch.path(name);
        let of = Shards::create(&directory, head).expect("made");
        shards.iter().for_each(|shard| fill(&of, *shard));
        directory
    };
    let why = |directories: &[&Path]| {
        let directories: Vec<PathBuf> = directories.iter().map(|path| path.to_path_buf()).collect();
        all_rows(&directories).expect_err("refused").to_string()
    };
    let own = head("a", 7, 3);
    let (one, two) = (made("one", &own, &[1, 3]), made("two", &own, &[2]));
    assert_eq!(all_rows(&[two.clone(), one.clone()]).expect("whole"), expected(7));
    let only = Merge::of(std::slice::from_ref(&one)).expect("readable");
    assert_eq!(only.missing(), [2]);
    let again = made("again", &own, &[3]);
    assert!(why(&[&one, &two, &again]).contains("shard 3 is in"), "{}", why(&[&one, &again]));
    assert!(why(&[&one, &again]).contains("with the same rows"));
    let study = made("study", &head("b", 7, 3), &[2]);
    assert!(why(&[&one, &study]).contains("was changed since"), "{}", why(&[&one, &study]));
    let version = made("version", &Head { raidlab: "1.1".into(), ..own.clone() }, &[2]);
    assert!(why(&[&one, &version]).contains("version 1.1, not 1.0"), "{}", why(&[&one, &version]));
    let divided = made("divided", &head("a", 7, 4), &[2]);
    assert!(why(&[&one, &divided]).contains("shards 4, not 3"));
    let error = Shards::create(&one, &head("a", 7, 4)).expect_err("another division");
    assert_eq!(error.kind, StoreErrorKind::Mixed);
    assert!(why(&[&scratch.path("")]).contains("no shards are here"));

    let rows = one.join("shard-0000003.jsonl");
    let text = fs::read_to_string(&rows).expect("there");
    fs::write(&rows, &text[..text.len() - 1]).expect("written");
    assert!(why(&[&one, &two]).contains("was changed or cut off"), "{}", why(&[&one, &two]));
    fs::write(&rows, text.replace("\"point\":6", "\"point\":5")).expect("written");
    assert!(why(&[&one, &two]).contains("has SHA-256"), "{}", why(&[&one, &two]));
    fs::remove_file(&rows).expect("ours");
    assert!(why(&[&one, &two]).contains("shard-0000003.jsonl"));
    fs::write(one.join("sweep.json"), "{}").expect("written");
    assert!(why(&[&one]).contains("sweep.json:1"), "{}", why(&[&one]));
}

#[test]
fn numbers_are_told_in_runs() {
    assert_eq!(ranges(&[]), "");
    assert_eq!(ranges(&[1, 4, 5, 6, 9]), "1, 4-6, 9");
}
