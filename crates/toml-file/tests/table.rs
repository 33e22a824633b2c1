//! What a reader gets of a file, and what each mistake is called: kind, line, key, and what would be right.

use std::collections::BTreeMap;

use raidlab_toml_file::{Fault, FileError, Source, Table, Wrong};

#[derive(Debug, PartialEq)]
struct Error {
    fault: Fault,
    /// Path, line, key and reason, as people are told.
    told: String,
}

impl FileError for Error {
    fn of(wrong: Wrong) -> Self {
        assert_eq!(wrong.syntax.is_some(), wrong.fault == Fault::Syntax);
        let line = wrong.line.map_or_else(String::new, |line| line.to_string());
        let told = format!("{}:{line}: {}: {}", wrong.path, wrong.key, wrong.reason);
        Self { fault: wrong.fault, told }
    }
}

/// What something makes of a file.
fn of<T>(text: &str, read: impl FnOnce(&Table<'_, Error>) -> T) -> T {
    let source = Source { path: "a.toml", text };
    let document = source.document::<Error>().expect("TOML");
    read(&Table::root(&source, &document))
}

/// The error of a read, with its kind.
fn wrong<T: std::fmt::Debug>(fault: Fault, found: Result<T, Error>) -> String {
    let error = found.expect_err("is wrong");
    assert_eq!(error.fault, fault, "{}", error.told);
    error.told
}

#[test]
fn what_is_no_toml_has_its_line() {
    for (text, line) in [("a = 1\nb = \n", 2), ("a = \"x\n", 1), ("\n\n[t]\nx = 1\nx = 2\n", 5)] {
        let source = Source { path: "a.toml", text };
        let error = source.document::<Error>().map(drop).expect_err("no TOML");
        assert_eq!(error.fault, Fault::Syntax);
        assert!(
            error.told.starts_with(&format!("a.toml:{line}: : this is not TOML: ")),
            "{}",
            error.told
        );
    }
}

/// Lines count from 1, of a byte of a line and of its line feed the same, and of what is beyond the end the last.
#[test]
fn lines_count_from_one() {
    let source = Source { path: "a.toml", text: "ab\ncd\n\nef" };
    let lines = [0, 1, 2, 3, 5, 6, 7, 9, 99].map(|at| source.line(at));
    assert_eq!(lines, [1, 1, 1, 2, 2, 3, 4, 4, 4]);
}

const FILE: &str = "\n# a comment\ntitle = \"Which?\"\nrounds = 6\nexact = true\nempty = \" \"\n\
    list = [\n  \"one\",\n  \"two\",\n]\nnumbers = [3, 1, 2]\nnone = []\nsize = \"64KiB\"\n\n\
    [host]\nkernel = \"linux-6.1\"\n\n\
    [[layouts]]\nlevel = \"raid5\"\n\n[[layouts]]\nlevel = \"raid6\"\nmembers = 0\n";

#[test]
fn keys_have_values_lines_and_names() {
    of(FILE, |table| {
        assert_eq!((table.path(), table.line, table.name), ("a.toml", 1, ""));
        assert_eq!(table.key("title"), "title");
        assert_eq!(
            (table.line_at("title"), table.line_at("rounds"), table.line_at("gone")),
            (3, 4, 1)
        );
        let keys: Vec<(&str, u32)> = table.keys().into_iter().take(4).collect();
        assert_eq!(keys, [("title", 3), ("rounds", 4), ("exact", 5), ("empty", 6)]);
        assert_eq!((table.text("title"), table.text("gone")), (Ok(Some("Which?")), Ok(None)));
        assert_eq!((table.flag("exact"), table.flag("gone")), (Ok(Some(true)), Ok(None)));
        assert!(table.has("rounds") && !table.has("round") && table.value("gone").is_none());
        assert!(table.is_list("list") && !table.is_list("title") && !table.is_list("gone"));
        assert_eq!(table.required_text("title", "\"x\""), Ok("Which?"));
        assert_eq!(
            (table.optional_name("title"), table.optional_name("gone")),
            (Ok(Some("Which?")), Ok(None))
        );
        let size = table.size("size").expect("a size");
        assert_eq!(size.map(|size| size.0), Some(65_536));
        let texts = table.texts("list", "[\"one\"]").expect("texts");
        assert_eq!(texts, Some(vec![("one", 8), ("two", 9)]));
        let numbers = table.integers("numbers", 1..=3, "[1]").expect("numbers");
        assert_eq!(numbers, Some(vec![(3, 11), (1, 11), (2, 11)]), "in the order of the file");
        assert_eq!(table.texts("gone", "[]"), Ok(None));
    });
}

#[test]
fn tables_know_their_lines_and_prefix_their_keys() {
    of(FILE, |root| {
        let host = root.table("host", "{ kernel = .. }").expect("a table").expect("there");
        assert_eq!(
            (host.line, host.name, host.key("kernel").as_str()),
            (15, "host", "host.kernel")
        );
        assert_eq!((host.line_at("kernel"), host.line_at("gone")), (16, 15));
        assert!(root.table("gone", "{}").expect("absent").is_none());
        let layouts = root.tables("layouts").expect("two");
        assert_eq!(layouts.iter().map(|one| one.line).collect::<Vec<_>>(), [18, 21]);
        assert_eq!(root.optional_tables("layouts").map(|all| all.len()), Ok(2));
        assert_eq!(root.optional_tables("gone").map(|all| all.len()), Ok(0));
        let told = wrong(Fault::WrongValue, layouts[1].integer("members", 1..=9));
        assert_eq!(told, "a.toml:23: layouts.members: 0 is out of range; from 1 to 9");
        let told = wrong(Fault::MissingKey, layouts[0].required_text("name", "\"mine\""));
        assert_eq!(told, "a.toml:18: layouts.name: missing; write for instance \"mine\"");
        let mut lines = BTreeMap::new();
        layouts[1].record_lines("second", &mut lines);
        host.record_lines("", &mut lines);
        let expected =
            [("kernel", 16), ("second", 21), ("second.level", 22), ("second.members", 23)];
        assert_eq!(lines, expected.map(|(key, line)| (key.to_owned(), line)).into());
    });
}

#[test]
fn ranges_have_both_their_ends() {
    let told = |number: &str| {
        of(&format!("a = {number}\nb = [{number}]\n"), |table| {
            let list = table.integers("b", 3..=5, "[4]").map(|all| all.map(|all| all[0].0));
            let one = table.integer("a", 3..=5);
            assert_eq!(one.is_ok(), list.is_ok(), "{number}");
            one
        })
    };
    for (number, value) in [("3", 3), ("5", 5), ("0x4", 4), ("0b101", 5)] {
        assert_eq!(told(number), Ok(Some(value)), "{number}");
    }
    for number in ["2", "6", "-4", "0xfffffffffffffffff"] {
        let told = wrong(Fault::WrongValue, told(number));
        assert_eq!(told, format!("a.toml:1: a: {number} is out of range; from 3 to 5"));
    }
    assert_eq!(of("", |table| table.integer("a", 3..=5)), Ok(None));
}

/// Each reader refuses what is of another type, and names what it found and what it takes.
#[test]
fn other_types_are_refused_by_name() {
    let text = "\nt = \"x\"\ni = 1\nb = true\nl = [1]\nd = { x = 1 }\nm = [\"x\", 2]\n";
    let found = |key: &'static str, read: &str| {
        of(text, |table| match read {
            "text" => table.text(key).map(drop),
            "flag" => table.flag(key).map(drop),
            "integer" => table.integer(key, 0..=9).map(drop),
            "number" => table.number(key).map(drop),
            "texts" => table.texts(key, "[\"x\"]").map(drop),
            "table" => table.table(key, "{ x = 1 }").map(drop),
            _ => table.tables(key).map(drop),
        })
    };
    for (key, read, line, type_of, wanted) in [
        ("i", "text", 3, "integer", "a text in quotes"),
        ("t", "flag", 2, "string", "true or false"),
        ("b", "integer", 4, "boolean", "a whole number"),
        ("t", "number", 2, "string", "a number"),
        ("d", "texts", 6, "table", "a list, such as [\"x\"]"),
        ("m", "texts", 7, "integer", "a text in quotes"),
        ("l", "table", 5, "array", "a table, such as { x = 1 }"),
        ("l", "tables", 5, "integer", "a list of tables, each headed [[l]]"),
        ("t", "tables", 2, "string", "a list of tables, each headed [[t]]"),
    ] {
        let told = wrong(Fault::WrongType, found(key, read));
        assert_eq!(told, format!("a.toml:{line}: {key}: found {type_of}; must be {wanted}"));
    }
    let none = of("x = []", |table| table.tables("x").map(drop));
    assert!(wrong(Fault::MissingKey, none).contains("the list is empty; add at least one"));
    let absent = of("", |table| table.tables("x").map(drop));
    assert_eq!(
        wrong(Fault::MissingKey, absent),
        "a.toml:1: x: there is none; add at least one table headed [[x]]"
    );
    let empty = of(FILE, |table| table.texts("none", "[\"one\"]").map(drop));
    assert_eq!(
        wrong(Fault::WrongValue, empty),
        "a.toml:12: none: the list is empty; write for instance [\"one\"]"
    );
    let told = of(FILE, |table| {
        let name = table.optional_name("empty").map(drop);
        [name, table.required_text("empty", "\"x\"").map(drop)]
    });
    for told in told {
        assert_eq!(wrong(Fault::WrongValue, told), "a.toml:6: empty: must not be empty");
    }
}

#[test]
fn sizes_and_shares_have_their_units() {
    let size = |text: &str| {
        of(&format!("a = {text}"), |table| table.size("a").map(|size| size.map(|size| size.0)))
    };
    assert_eq!(size("\"4GiB\""), Ok(Some(4 << 30)));
    assert_eq!(size("\"512B\""), Ok(Some(512)));
    assert!(wrong(Fault::WrongValue, size("\"0KiB\"")).ends_with("must be more than nothing"));
    assert!(
        wrong(Fault::WrongUnit, size("65536"))
            .contains("found integer; write a size with its unit")
    );
    wrong(Fault::WrongUnit, size("\"4 apples\""));
    let percent = |text: &str| of(&format!("a = \"{text}\""), |table| table.error_percent("a"));
    for (text, value) in [("8.5%", 8.5), ("0 %", 0.0), ("120%", 120.0)] {
        assert_eq!(percent(text), Ok(Some(value)), "{text}");
    }
    for text in ["8.5", "-1%", "%", "nan%", "1e9%"] {
        let told = wrong(Fault::WrongUnit, percent(text));
        assert!(told.contains(&format!("`{text}` is not a percentage")), "{told}");
    }
}

const TIMES: &[(&str, f64)] = &[("s", 1.0), ("ms", 1e-3)];

#[test]
fn amounts_have_one_unit_each() {
    let amount = |text: &str| of(&format!("\na = {text}"), |table| table.amount("a", TIMES));
    assert_eq!(amount("{ ms = 47.5 }"), Ok(Some((("ms", 1e-3), 47.5))));
    assert_eq!(amount("{ s = 0 }"), Ok(Some((("s", 1.0), 0.0))));
    for (fault, text, told) in [
        (
            Fault::WrongUnit,
            "47",
            "a.toml:2: a: found integer; write the number with its unit (s or ms), as { s = 10 }",
        ),
        (
            Fault::WrongUnit,
            "{}",
            "a.toml:2: a: must have one number with its unit (s or ms), as { s = 10 }",
        ),
        (
            Fault::WrongUnit,
            "{ s = 1, ms = 2 }",
            "a.toml:2: a: must have one number with its unit (s or ms), as { s = 10 }",
        ),
        (
            Fault::WrongUnit,
            "{ us = 1 }",
            "a.toml:2: a: `us` is not a unit of this; it takes s or ms",
        ),
        (Fault::WrongType, "{ s = \"1\" }", "a.toml:2: a: found string; must be a number"),
        (Fault::WrongValue, "{ s = -1 }", "a.toml:2: a: -1 is not a number from 0 up"),
        (Fault::WrongValue, "{ s = 1e18 }", "a.toml:2: a: 1e18 is not a number from 0 up"),
    ] {
        assert_eq!(wrong(fault, amount(text)), told);
    }
    let all = of("a = [{ s = 1 }, { ms = 2 }]", |table| table.amounts("a", TIMES));
    assert_eq!(all, Ok(Some(vec![(("s", 1.0), 1.0), (("ms", 1e-3), 2.0)])));
    let none = of("a = []", |table| table.amounts("a", TIMES));
    assert!(
        wrong(Fault::WrongValue, none).ends_with("write for instance [{ s = 30 }, { s = 70 }]")
    );
}

#[test]
fn parameters_are_texts_in_the_order_of_the_file() {
    let pairs = |text: &str| of(text, |table| table.parameters(&["kind"]));
    let found = pairs("rw = \"read\"\nkind = \"fio\"\ndirect = 0x1\nbs = \"4k\"\nfsync = true\n");
    let expected = [("rw", "read"), ("direct", "1"), ("bs", "4k"), ("fsync", "true")];
    let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(found, Ok(expected.to_vec()));
    // A size is written with its unit.
    assert!(
        wrong(Fault::WrongType, pairs("rw = \"read\"\nspan = 4096\n"))
            .starts_with("a.toml:2: span: ")
    );
    wrong(Fault::WrongType, pairs("bs = 1.5\n"));
}

#[test]
fn unknown_keys_are_all_named_with_what_was_meant() {
    let unknown = of("titel = 1\nrounds = 2\n\n[ho]\nx = 1\n", |table| {
        let told = table.unknown_keys(&["title", "rounds", "host"]);
        assert!(told.iter().all(|one| one.fault == Fault::UnknownKey));
        told.into_iter().map(|one| one.told).collect::<Vec<_>>()
    });
    assert_eq!(unknown.len(), 2, "{unknown:?}");
    assert_eq!(
        unknown[0],
        "a.toml:1: titel: unknown key (did you mean `title`?); known here: title, rounds, host"
    );
    assert!(unknown[1].starts_with("a.toml:4: ho: unknown key"), "{unknown:?}");
}
