//! `[[parameters]]` and `[calibration]`: what they change, and what is wrong with them, by line and key.

use raidlab_predict::Modelled;
use raidlab_sim::HostCosts;
use raidlab_study::StudyErrorKind::{self, *};
use raidlab_study::{Owner, Study, most_free, parse, parse_with};

/// A study that has one of everything; tests put text behind it.
const STUDY: &str = r#"title = "A study"
rounds = 1
filesystem = "ext3"
host = { kernel = "linux-2.6.12", processor = "pentium3-860", memory = "64MiB" }

[[paths]]
name = "ide0"
kind = "pata-udma100"

[[drives]]
name = "disk"
model = "sas-146gb-10k"
count = 2

[[drives]]
name = "ssd"
model = "ssd-sata-1tb"

[[drives]]
name = "files"
file = "64MiB"

[[layouts]]
level = "single"
drives = "disk"
route = ["ide0"]
controller = "ite8212-bios"

[[workloads]]
kind = "dd"
name = "dd"
bs = "1MiB"
count = 16
metric = "seconds"

[[given]]
layout = "single"
workload = "dd"
metric = "seconds"
value = 2.0

[[given]]
layout = "single"
workload = "dd"
metric = "mb_per_s"
value = 2.0

[[given]]
layout = "single"
workload = "dd"
metric = "other"
value = 2.0
fit = false

[[parameters]]
"#;

/// The line of the last header of the study.
const FIRST: u32 = 55;

fn with(behind: &str) -> String {
    format!("{STUDY}{behind}")
}

/// One parameter: of what, which, and its value.
fn one(of: &str, property: &str, value: &str) -> String {
    with(&format!(
        "of = \"{of}\"\nproperty = \"{property}\"\nvalue = {value}\nsource = \"a test\"\n"
    ))
}

fn good(text: &str) -> Study {
    parse(text, "my.toml").unwrap_or_else(|error| panic!("{error}"))
}

/// The study without the drives that no model describes.
fn modelled(text: &str) -> Result<Study, raidlab_study::StudyError> {
    parse(&text.replace("file = \"64MiB\"", "model = \"ssd-sata-1tb\""), "my.toml")
}

#[test]
fn parameters_change_what_they_are_of() {
    let plain = good(&STUDY.replace("[[parameters]]\n", ""));
    let study = good(&one("path ide0", "rate", "{ mb_per_s = 70 }"));
    assert_eq!((plain.paths[0].rate, study.paths[0].rate), (85_000_000, 70_000_000));
    let study = good(&one("path ide0", "switch", "{ us = 250 }"));
    assert_eq!(study.paths[0].switch.0, 250_000);
    let study = good(&one("controller ite8212-bios", "request", "{ ms = 0.5 }"));
    let controller = study.layouts[0].hardware.controller.as_ref().expect("one");
    assert_eq!(controller.request.0, 500_000);
    let study = good(&one("host", "memory", "{ mib = 100 }"));
    assert_eq!(study.host.expect("one").spec.memory, 100 << 20);
    let study = good(&one("host", "request_cost", "{ us = 40 }"));
    assert_eq!(study.host.expect("one").processor.expect("one").request.0, 40_000);
}

#[test]
fn parameters_of_what_is_less_obvious_change_it_too() {
    let host = |property, value| good(&one("host", property, value)).host.expect("one").spec;
    assert_eq!(host("cache", "{ mib = 40 }").cache, Some(40 << 20));
    assert_eq!(host("cache", "{ mib = 40 }").memory, 64 << 20);
    assert_eq!(host("character_cost", "{ us = 0.05 }").costs.character, 50_000);
    let controller = |property, value| {
        let study = good(&one("controller ite8212-bios", property, value));
        study.layouts[0].hardware.controller.clone().expect("one")
    };
    assert_eq!(controller("switch", "{ us = 250 }").switch.map(|time| time.0), Some(250_000));
    let buffer = controller("write_buffer", "{ kib = 64 }").write_buffer;
    assert_eq!(buffer.map(|sectors| sectors.0), Some(128));
}

/// With two paths more, of which a parameter names some.
fn paths(of: &str, behind: &str) -> String {
    let more = "[[paths]]\nname = \"ide1\"\nkind = \"pata-udma100\"\n\
                [[paths]]\nname = \"ide2\"\nkind = \"pata-udma100\"\n[[drives]]\nname = \"disk\"";
    let text = one(of, "rate", "{ mb_per_s = 70 }") + behind;
    text.replacen("[[drives]]\nname = \"disk\"", more, 1)
}

#[test]
fn a_parameter_of_several_paths_is_that_of_each() {
    let study = good(&paths("path ide0 , ide2", ""));
    assert_eq!(
        study.paths.iter().map(|path| path.rate / 1_000_000).collect::<Vec<_>>(),
        [70, 85, 70]
    );
    assert_eq!(study.parameters[0].owner, Owner::Paths(vec![0, 2]));
    let line = FIRST + 6;
    for (of, kind, words) in [
        ("path ide0, ide3", UnknownName, ["`ide3` is no path", "it has: ide0, ide1, ide2"]),
        ("path ide0,", UnknownName, ["`` is no path", ""]),
        ("path ide0, ide1, ide0", DuplicateName, ["`ide0` stands twice", ""]),
    ] {
        check(&paths(of, ""), kind, line + 1, "parameters.of", &words);
    }
    // Nor may a path have a property by itself that it has with others.
    let second = |of: &str| {
        format!(
            "[[parameters]]\nof = \"{of}\"\nproperty = \"rate\"\nvalue = {{ mb_per_s = 60 }}\nsource = \"a\"\n"
        )
    };
    let twice = paths("path ide0, ide2", &second("path ide2"));
    check(&twice, DuplicateName, line + 7, "parameters.property", &["two parameters `rate`"]);
    good(&paths("path ide0, ide2", &second("path ide1")));
}

/// It is one machine, whichever system a layout has on it.
#[test]
fn parameters_of_the_host_are_those_of_the_layouts_hosts() {
    let text = one("host", "copy_rate", "{ mb_per_s = 90 }")
        .replace("route = [", "host = { kernel = \"linux-2.6.23\" }\nroute = [");
    let study = good(&text);
    let host = study.layouts[0].host.as_ref().expect("a host of its own");
    let rates = [host, study.host.as_ref().expect("one")].map(|host| host.spec.costs.copy_rate);
    assert_eq!(rates, [90_000_000; 2]);
}

/// A factor scales what it finds; a value of its own counts whatever the order.
#[test]
fn a_cost_of_its_own_is_not_scaled() {
    let factor =
        "of = \"host\"\nproperty = \"cpu_factor\"\nvalue = { factor = 2 }\nsource = \"a\"\n";
    let copy =
        "of = \"host\"\nproperty = \"copy_rate\"\nvalue = { mb_per_s = 90 }\nsource = \"a\"\n";
    for text in
        [format!("{factor}[[parameters]]\n{copy}"), format!("{copy}[[parameters]]\n{factor}")]
    {
        let costs = good(&with(&text)).host.expect("one").spec.costs;
        assert_eq!((costs.copy_rate, costs.call.0), (90_000_000, 2 * 1_162));
    }
}

#[test]
fn drives_get_theirs_when_they_are_loaded() {
    let study = modelled(&one("drive disk", "media_rate", "{ mb_per_s = 40 }")).expect("good");
    assert_eq!(study.parameters[0].owner, Owner::Drive(0));
    let modelled = Modelled::new(&study, HostCosts::default()).expect("it fits");
    let amount = |group: usize, key: &str| modelled.drives()[group].amount(key);
    assert_eq!(amount(0, "outer_rate"), Some(40_000_000));
    assert_eq!(amount(0, "inner_rate"), Some(27_500_000));
    assert_eq!(amount(1, "command_overhead"), amount(2, "command_overhead"));
}

#[test]
fn free_parameters_take_other_values() {
    let text = one("path ide0", "rate", "{ mb_per_s = 70 }")
        + "free = true\nrange = [{ mb_per_s = 50 }, { mib_per_s = 100 }]\n";
    let study = good(&text);
    let free: Vec<_> = study.free_parameters().collect();
    assert_eq!(free.len(), 1);
    assert_eq!((free[0].title(), free[0].shown()), ("path ide0 rate".into(), "70 mb_per_s".into()));
    assert_eq!(free[0].range, Some([50.0, 104.8576]));
    let other = parse_with(&text, "my.toml", &[55.5]).expect("can be");
    assert_eq!((other.paths[0].rate, other.parameters[0].value), (55_500_000, 55.5));
    assert!(parse_with(&text, "my.toml", &[1e9]).is_err(), "more than a path carries");
}

#[test]
fn one_parameter_is_free_for_every_two_cells_that_are_fitted() {
    let free =
        "source = \"a\"\nfree = true\nrange = [{ us = 1 }, { ms = 10 }]\nvalue = { ms = 1 }\n";
    let text = with(&format!("of = \"path ide0\"\nproperty = \"switch\"\n{free}"));
    assert_eq!(good(&text).free_parameters().count(), most_free(2));
    let second =
        format!("{text}[[parameters]]\nof = \"path ide0\"\nproperty = \"overhead\"\n{free}");
    // Of three given cells one is only looked at afterwards.
    let words = ["free parameter 2", "2 given cells to fit", "at most 1 may"];
    check(&second, WrongValue, FIRST + 11, "parameters.free", &words);
    let none = text
        .replace("value = 2.0\n", "value = 2.0\nfit = false\n")
        .replace("fit = false\nfit = false", "fit = false");
    check(&none, WrongValue, FIRST + 6, "parameters.free", &["no given cell to fit"]);
    good(&second.replacen("free = true", "free = false", 1));
}

/// Owner, property, value; what is wrong, at which line from the header, at which key, in which words.
type Wrong<'a> = (&'a str, &'a str, &'a str, StudyErrorKind, u32, &'a str, &'a [&'a str]);

fn check(text: &str, kind: StudyErrorKind, line: u32, key: &str, words: &[&str]) {
    let error = parse(text, "my.toml").expect_err(&format!("{key} {words:?}"));
    let shown = error.to_string();
    assert_eq!((error.kind, error.line, error.key.as_str()), (kind, Some(line), key), "{shown}");
    for word in words {
        assert!(error.reason.contains(word), "`{shown}` lacks `{word}`");
    }
}

const CARD: &str = "controller ite8212-bios";

#[test]
fn a_parameter_that_cannot_be_is_refused_with_line_and_key() {
    let table: [Wrong<'_>; 25] = [
        ("drive dsk", "rotation", "{ rpm = 1 }", UnknownName, 1, "of", &["did you mean `disk`?"]),
        ("path ide1", "rate", "{ rpm = 1 }", UnknownName, 1, "of", &["no path", "ide0"]),
        ("controller e200i", "rate", "1", UnknownName, 1, "of", &["it has: ite8212-bios"]),
        ("hots", "rate", "1", UnknownName, 1, "of", &["did you mean `host`?", "drive GROUP"]),
        ("host one", "rate", "1", UnknownName, 1, "of", &["write \"host\""]),
        ("drive files", "rotation", "1", WrongValue, 1, "of", &["are files"]),
        ("cell one", "rate", "1", UnknownName, 1, "of", &["`cell` has no parameters"]),
        ("host", "copyrate", "1", UnknownName, 2, "property", &["mean `copy_rate`?", "memory"]),
        ("drive disk", "write_cache", "1", UnknownName, 2, "property", &["media_rate, capacity"]),
        ("path ide0", "rate", "{ ms = 1 }", WrongUnit, 3, "value", &["takes mb_per_s or mib"]),
        ("path ide0", "rate", "\"70MB/s\"", WrongUnit, 3, "value", &["found string", "{ mb_per_s"]),
        ("path ide0", "rate", "{}", WrongUnit, 3, "value", &["one number with its unit"]),
        ("path ide0", "switch", "{ ms = 1, us = 1 }", WrongUnit, 3, "value", &["one number"]),
        ("path ide0", "rate", "{ mb_per_s = -1 }", WrongValue, 3, "value", &["from 0 up"]),
        ("path ide0", "rate", "{ mb_per_s = \"a\" }", WrongType, 3, "value", &["a number"]),
        ("path ide0", "rate", "{ mb_per_s = 0.5 }", WrongValue, 3, "value", &["must be 1 MB/s"]),
        ("path ide0", "turn", "{ ms = 1 }", WrongValue, 3, "value", &["only a bus"]),
        ("host", "memory", "{ kib = 4 }", WrongValue, 3, "value", &["at least 8 MiB"]),
        (
            "controller ite8212-bios",
            "parity_rate",
            "{ mb_per_s = 9 }",
            WrongValue,
            3,
            "value",
            &["computes no parity"],
        ),
        ("host", "call_cost", "{ ms = 2000 }", WrongValue, 3, "value", &["at most 1,000 ms"]),
        ("host", "character_cost", "{ ms = 2000 }", WrongValue, 3, "value", &["character_cost"]),
        ("host", "cache", "{ kib = 4 }", WrongValue, 3, "value", &["cache: at least 8 MiB"]),
        (CARD, "switch", "{ ms = 1001 }", WrongValue, 3, "value", &["at most 1,000 ms"]),
        (CARD, "write_buffer", "{ kib = 3 }", WrongValue, 3, "value", &["4 KiB to 512 MiB"]),
        (CARD, "write_buffer", "{ gib = 1 }", WrongValue, 3, "value", &["4 KiB to 512 MiB"]),
    ];
    for (of, property, value, kind, line, key, words) in table {
        check(&one(of, property, value), kind, FIRST + line, &format!("parameters.{key}"), words);
    }
}

#[test]
fn keys_that_are_missing_or_contradict_each_other_are_refused() {
    let rate = one("path ide0", "rate", "{ mb_per_s = 70 }");
    let table: [(&str, StudyErrorKind, u32, &str, &[&str]); 6] = [
        ("colour = 1\n", UnknownKey, 5, "colour", &["known here: of, property"]),
        ("free = true\n", MissingKey, 0, "range", &["must have limits"]),
        ("free = 1\n", WrongType, 5, "free", &["true or false"]),
        ("range = [{ mb_per_s = 1 }]\n", WrongValue, 5, "range", &["two values"]),
        (
            "range = [{ mb_per_s = 80 }, { mb_per_s = 90 }]\n",
            WrongValue,
            3,
            "value",
            &["70 mb_per_s is outside its range, 80 to 90"],
        ),
        (
            "range = [{ mb_per_s = 0.1 }, { mb_per_s = 90 }]\n",
            WrongValue,
            5,
            "range",
            &["must be 1 MB/s"],
        ),
    ];
    for (behind, kind, line, key, words) in table {
        let text = format!("{rate}{behind}");
        check(&text, kind, FIRST + line, &format!("parameters.{key}"), words);
    }
    for (line, key) in ["of", "property", "value", "source"].into_iter().enumerate() {
        let lines: Vec<&str> = rate.lines().collect();
        let without = FIRST as usize + line;
        let kept: Vec<&str> = lines
            .iter()
            .enumerate()
            .filter(|(at, _)| *at != without)
            .map(|(_, one)| *one)
            .collect();
        check(&kept.join("\n"), MissingKey, FIRST, &format!("parameters.{key}"), &["write for"]);
    }
    check(&with(""), MissingKey, FIRST, "parameters.of", &["of = \"drive disk1\""]);
    let twice = format!("{rate}{}", &rate[STUDY.len() - "[[parameters]]\n".len()..]);
    check(&twice, DuplicateName, FIRST + 7, "parameters.property", &["two parameters `rate`"]);
    let media = one("drive disk", "media_rate", "{ mb_per_s = 70 }");
    let both = media.clone() + &media[STUDY.len() - "[[parameters]]\n".len()..];
    let both = both.replacen("media_rate", "outer_rate", 1);
    check(&both, DuplicateName, FIRST + 7, "parameters.property", &["are one rate"]);
}

#[test]
fn what_a_study_does_not_have_has_no_parameters() {
    let text = one("host", "memory", "{ mib = 64 }");
    let host = text.lines().nth(3).expect("a line");
    let without = text.replace(host, "");
    check(&without, UnknownName, FIRST + 1, "parameters.of", &["has no host"]);
    let bare =
        one("controller a", "request", "{ ms = 1 }").replace("controller = \"ite8212-bios\"", "");
    check(&bare, UnknownName, FIRST + 1, "parameters.of", &["has no controller"]);
    let text = one("host", "parity_rate", "{ mb_per_s = 64 }");
    let text = text.replace("processor = \"pentium3-860\", ", "");
    check(&text, WrongValue, FIRST + 3, "parameters.value", &["needs a processor"]);
}

/// What a drive cannot be shows when it is loaded, with the same care.
#[test]
fn a_drive_that_cannot_be_is_refused_with_line_and_key() {
    let refused = |text: &str, line: u32, key: &str, words: &[&str]| {
        let study = modelled(text).unwrap_or_else(|error| panic!("{error}"));
        let error = Modelled::new(&study, HostCosts::default()).expect_err(key);
        let shown = error.to_string();
        let place = format!("my.toml:{}: parameters.{key}: ", FIRST + line);
        assert!(shown.starts_with(&place), "`{place}` does not begin `{shown}`");
        for word in words {
            assert!(shown.contains(word), "`{shown}` lacks `{word}`");
        }
    };
    let ssd = one("drive ssd", "media_rate", "{ mb_per_s = 40 }");
    refused(&ssd, 2, "property", &["ssd-sata-1tb has no `media_rate`"]);
    let heads = one("drive disk", "heads", "{ count = 65 }");
    refused(&heads, 3, "value", &["must be from 1 to 64"]);
    let inner = one("drive disk", "inner_rate", "{ mb_per_s = 90 }");
    refused(&inner, 3, "value", &["outer_rate", "inner_rate (90 MB/s)"]);
    let seek =
        one("drive disk", "average_seek", "{ ms = 4 }") + "range = [{ ms = 1 }, { ms = 9 }]\n";
    refused(&seek, 5, "range", &["full_stroke_seek", "less than average_seek (9 ms)"]);
}

#[test]
fn a_calibration_is_read_and_checked() {
    let text = STUDY.replace("[[parameters]]\n", "")
        + "[calibration]\nraidlab = \"0.1.0\"\ncells = 8\nparameters = 2\nseeds = 1\n\
           evaluations = 17\nmedian_error_before = \"22.5%\"\nmedian_error = \"8.1%\"\n\
           median_error_left_out = \"9%\"\n";
    let calibration = good(&text).calibration.expect("there is one");
    assert_eq!((calibration.cells, calibration.parameters, calibration.evaluations), (8, 2, 17));
    assert_eq!((calibration.median_error_before, calibration.median_error), (22.5, 8.1));
    assert_eq!(calibration.median_error_left_out, Some(9.0));
    let wrong = text.replace("\"8.1%\"", "8.1");
    check(&wrong, WrongType, FIRST + 7, "calibration.median_error", &["a text in quotes"]);
    let wrong = text.replace("\"8.1%\"", "\"8.1\"");
    check(&wrong, WrongUnit, FIRST + 7, "calibration.median_error", &["not a percentage"]);
    let wrong = text.replace("cells = 8", "date = 8");
    check(&wrong, UnknownKey, FIRST + 2, "calibration.date", &["known here: raidlab"]);
    let both = STUDY
        .replace("[[parameters]]\n", "")
        .replace("fit = false", "fit = false\ncalibrated = true");
    check(&both, WrongValue, FIRST - 1, "given.calibrated", &["fit = false"]);
}
