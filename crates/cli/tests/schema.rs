//! The JSON Schemas: files of the repository are by them, and they know the keys that the parsers know.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Ran, Scratch, command, raidlab};
use raidlab_core::Level;
use raidlab_core::layout::Parameter;
use serde_json::Value;

const KINDS: [&str; 3] = ["study", "drive", "results"];

/// Checks files against schemas, and that each table of a study or drive refuses a key that it does not know.
const VALIDATE: &str = r#"
import copy, glob, json, sys
try:
    import tomllib, jsonschema
except ImportError as missing:
    print("SKIP: Python has no", missing.name)
    sys.exit()
root, documents = sys.argv[1], sys.argv[2:]
def validator(kind, strict=False):
    schema = json.load(open(f"{root}/docs/schemas/{kind}.json"))
    jsonschema.Draft202012Validator.check_schema(schema)
    def close(part):
        if isinstance(part, dict):
            if "properties" in part:
                part.setdefault("additionalProperties", False)
            for one in part.values():
                close(one)
        elif isinstance(part, list):
            for one in part:
                close(one)
    if strict:
        close(schema)
    return jsonschema.Draft202012Validator(schema)
def tables(value, path=()):
    if isinstance(value, dict):
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in items:
        # What tells workloads apart is the user's to name.
        if key != "settings":
            yield from tables(one, path + (key,))
checked = 0
for kind, patterns in (("study", ["studies/*.toml", "studies/*/*.toml"]), ("drive", ["drives/*.toml"])):
    schema = validator(kind)
    for path in sum((sorted(glob.glob(f"{root}/{pattern}")) for pattern in patterns), []):
        document = tomllib.load(open(path, "rb"))
        for error in schema.iter_errors(document):
            sys.exit(f"{path}: {error.json_path}: {error.message}")
        if len(json.dumps(document)) < 20_000:
            for at in tables(document):
                wrong = copy.deepcopy(document)
                table = wrong
                for key in at:
                    table = table[key]
                table["nosuchkey"] = "1"
                assert not schema.is_valid(wrong), f"{path}: {at} takes any key"
        checked += 1
assert checked > 20, checked
for path in documents:
    for error in validator("results", strict=True).iter_errors(json.load(open(path))):
        sys.exit(f"{path}: {error.json_path}: {error.message}")
bad = json.load(open(documents[0]))
bad["cells"][0]["median"] = "fast"
assert not validator("results").is_valid(bad)
print("valid")
"#;

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn schema(kind: &str) -> Value {
    serde_json::from_str(&raidlab(["schema", kind]).good().stdout).expect("JSON")
}

#[test]
fn what_is_printed_stands_in_the_documents() {
    for kind in KINDS {
        let path = root().join(format!("docs/schemas/{kind}.json"));
        let file = fs::read_to_string(path).expect("a schema");
        assert_eq!(raidlab(["schema", kind]).good().stdout, file);
        assert_eq!(schema(kind)["$schema"], "https://json-schema.org/draft/2020-12/schema");
    }
    assert_eq!(raidlab(["schema", "report"]).code, Some(2));
}

#[test]
fn files_of_the_repository_and_results_are_by_the_schemas() {
    let scratch = Scratch::new("schema");
    let study = scratch.file("small.toml", study("", ""));
    let (one, all) = (scratch.path().join("one.json"), scratch.path().join("all.json"));
    let text = |path: &Path| path.to_str().expect("text").to_owned();
    let compare = ["compare", "--quiet", "--rounds", "6", &text(&study), "--json", &text(&one)];
    raidlab(compare.map(str::to_owned)).good();
    let replay = ["replay", "--all", "--layout", "disk1", "--processes", "1", "--seeds", "1"];
    let few = ["--workload", "cp_7000M_null", "--without", "read-ahead", "--quiet", "--json"];
    let replay = replay.into_iter().chain(few);
    raidlab(replay.map(str::to_owned).chain([text(&all)])).good();
    let mut command = Command::new("python3");
    command.args(["-", &text(&root()), &text(&one), &text(&all)]);
    let Ok(mut child) = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() else {
        println!("SKIPPED files_of_the_repository_and_results_are_by_the_schemas: no python3");
        return;
    };
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(VALIDATE.as_bytes()).expect("python reads");
    drop(stdin);
    let done = child.wait_with_output().expect("python ends");
    match String::from_utf8_lossy(&done.stdout).trim() {
        "valid" => {}
        told if told.starts_with("SKIP") => {
            println!("SKIPPED files_of_the_repository_and_results_are_by_the_schemas: {told}");
        }
        told => panic!("{told}"),
    }
}

/// A study that has every table, with something more in one of them.
fn study(table: &str, more: &str) -> String {
    let more = |name: &str| if name == table { more } else { "" };
    format!(
        "title = \"all\"\nconsistency = \"bitmap\"\n{}\n[host]\nmemory = \"8GiB\"\n{}\n\
         [pacing]\nleast = \"1MB/s\"\n{}\n\
         [calibration]\nraidlab = \"0.1.0\"\ncells = 1\nparameters = 1\nseeds = 1\nevaluations = 1\n\
         median_error_before = \"2%\"\nmedian_error = \"1%\"\n{}\n\
         [[drives]]\nname = \"disk\"\nmodel = \"nas-8tb-7200\"\n{}\n[[paths]]\nname = \"bus\"\nkind = \"bus\"\n\
         rate = \"500MB/s\"\n{}\n[[layouts]]\nlevel = \"single\"\nroute = [\"bus\"]\n{}\n\
         [[workloads]]\nkind = \"random-read\"\nsize = \"256KiB\"\n{}\n\
         [[parameters]]\nof = \"path bus\"\nproperty = \"rate\"\nvalue = {{ mb_per_s = 400 }}\nsource = \"none\"\n{}\n\
         [[given]]\nlayout = \"single\"\nworkload = \"random-read 4KiB\"\nmetric = \"iops\"\nvalue = 100\n{}\n",
        more(""),
        more("host"),
        more("pacing"),
        more("calibration"),
        more("drives"),
        more("paths"),
        more("layouts"),
        more("workloads"),
        more("parameters"),
        more("given"),
    )
}

/// The keys that a message lists behind some words.
fn listed(message: &str, behind: &str) -> BTreeSet<String> {
    let (_, list) = message.split_once(behind).unwrap_or_else(|| panic!("no list in: {message}"));
    list.trim().split(", ").map(str::to_owned).collect()
}

fn keys(object: &Value) -> BTreeSet<String> {
    object.as_object().expect("properties").keys().cloned().collect()
}

#[test]
fn a_study_has_the_keys_of_its_parser() {
    let parsed = |table: &str| {
        let text = study(table, "nosuchkey = \"1\"");
        raidlab_study::parse(&text, "a.toml").expect_err("an unknown key").to_string()
    };
    raidlab_study::parse(&study("", ""), "a.toml").expect("a good study");
    let schema = schema("study");
    let defs = &schema["$defs"];
    let item = |name: &str| &schema["properties"][name]["items"]["properties"];
    for (table, properties) in [
        ("", &schema["properties"]),
        ("host", &defs["host"]["properties"]),
        ("pacing", &schema["properties"]["pacing"]["properties"]),
        ("calibration", &schema["properties"]["calibration"]["properties"]),
        ("drives", &defs["drives"]["properties"]),
        ("layouts", &defs["layout"]["properties"]),
        ("paths", item("paths")),
        ("parameters", item("parameters")),
        ("given", item("given")),
    ] {
        assert_eq!(keys(properties), listed(&parsed(table), "known here: "), "[{table}]");
    }
    let sweep = &schema["properties"]["sweep"]["properties"];
    let drawn = &sweep["samples"]["properties"];
    for (text, properties) in [
        ("nosuchkey = 1", sweep),
        ("axes = [{ nosuchkey = 1 }]", &sweep["axes"]["items"]["properties"]),
        ("samples = { nosuchkey = 1 }", drawn),
        ("samples = { count = 1, of = [{ nosuchkey = 1 }] }", &drawn["of"]["items"]["properties"]),
    ] {
        let text = format!("{}\n[sweep]\n{text}\n", study("", ""));
        let error = raidlab_study::Sweep::parse(&text, "a.toml", Path::new(""));
        let error = error.expect_err("an unknown key").to_string();
        assert_eq!(keys(properties), listed(&error, "known here: "), "{text}");
    }
}

/// The names of the levels of which something holds, as tables and descriptions list them: `raid5, raid6`.
fn levels(holds: impl Fn(Level) -> bool) -> String {
    let names: Vec<_> = Level::ALL.into_iter().filter(|level| holds(*level)).collect();
    names.into_iter().map(Level::name).collect::<Vec<_>>().join(", ")
}

/// Each level of the core's table is in the schema, in the tables for users, and in the command's help.
#[test]
fn documents_have_every_level() {
    let layout = &schema("study")["$defs"]["layout"]["properties"];
    let mut names = vec!["single"];
    names.extend(Level::ALL.map(Level::name));
    assert_eq!(layout["level"]["anyOf"][0]["enum"], serde_json::json!(names));
    let largest = names.iter().filter_map(|name| name.strip_prefix("raid")?.parse().ok());
    let largest: u8 = largest.filter(|number| *number < 10).max().expect("raid6");
    let short = layout["level"]["anyOf"][1]["pattern"].as_str().expect("nested levels");
    assert!(short.contains(&format!("[0-{largest}]{{2}}")), "{short}");
    let rotation = layout["rotation"]["description"].as_str().expect("a description");
    let rotating = levels(|level| !level.rotations().is_empty());
    assert!(rotation.starts_with(&format!("{rotating}: ")), "{rotation}");

    let read = |path: &str| fs::read_to_string(root().join(path)).expect("a document");
    let study_files = read("docs/study-files.md");
    let row = |key: &str| {
        let begin = format!("| `{key}` | ");
        study_files.lines().find_map(|line| line.strip_prefix(&begin)).expect("a row for the key")
    };
    let listed = names.iter().map(|name| format!("`{name}`"));
    for name in listed {
        assert!(row("level").contains(&name), "{name} is not in docs/study-files.md");
    }
    for parameter in [
        Parameter::Rotation,
        Parameter::Near,
        Parameter::Far,
        Parameter::Offset,
        Parameter::FarSets,
    ] {
        let (key, having) = (parameter.key(), levels(|level| level.takes(parameter)));
        assert!(row(key).starts_with(&having), "{key} is for {having}: {}", row(key));
    }
    let (levels_doc, help) = (read("docs/levels.md"), raidlab(["layout", "--help"]).good().stdout);
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let argument = Level::names(|_| true).replace(" and ", " or ");
    assert!(help.contains(&argument), "`raidlab layout --help` does not list {argument}");
    for name in Level::ALL.map(Level::name) {
        assert!(levels_doc.contains(name), "{name} is not in docs/levels.md");
    }
}

#[test]
fn workloads_have_the_parameters_of_their_kinds() {
    let schema = schema("study");
    let workload = &schema["$defs"]["workload"];
    let ours = keys(&workload["properties"]);
    let kinds = workload["allOf"].as_array().expect("kinds");
    assert_eq!(kinds.len(), raidlab_workload::KINDS.len());
    for entry in raidlab_workload::KINDS {
        // fio has units of its own.
        let size = if entry.name == "fio" { "1g" } else { "1GiB" };
        let given = raidlab_workload::Parameters::new([("nosuchkey", "1"), ("size", size)]);
        let made = given.and_then(|given| raidlab_workload::make(entry.name, given));
        let error = made.err().unwrap_or_else(|| panic!("{} takes any parameter", entry.name));
        let mut known: BTreeSet<String> = error.known.iter().cloned().collect();
        assert!(!known.is_empty(), "{}: {error}", entry.name);
        known.extend(ours.clone());
        let is = |one: &&Value| one["if"]["properties"]["kind"]["const"] == entry.name;
        let then = &kinds.iter().find(is).unwrap_or_else(|| panic!("no {}", entry.name))["then"];
        assert_eq!(keys(&then["properties"]), known, "{}", entry.name);
        assert_eq!(then["additionalProperties"], false);
    }
}

#[test]
fn a_drive_has_the_keys_of_its_parser() {
    let schema = schema("drive");
    for kind in ["hard-disk", "ssd", "shingled-disk"] {
        let text = format!("title = \"x\"\nkind = \"{kind}\"\nnosuchkey = 1\n");
        let error = raidlab_models::parse(&text, "a.toml").expect_err("an unknown key").to_string();
        let known = listed(&error, "known here: ");
        assert_eq!(keys(&schema["$defs"][kind]["properties"]), known, "{kind}");
    }
}

#[test]
fn a_document_of_the_first_version_is_converted_and_shown() {
    let scratch = Scratch::new("convert");
    let study = scratch.file(
        "study.toml",
        "title = \"Old\"\nrounds = 6\nbaseline = [\"single\"]\n\
        drives = [{ name = \"nas\", model = \"nas-8tb-7200\", count = 2 }]\n\
        layouts = [{ level = \"single\" }, { level = \"raid0\", members = 2 }]\n\
        workloads = [{ kind = \"random-read\", size = \"64KiB\" }]\n",
    );
    let run = |words: &[&str]| Ran::from(command().args(words).output().expect("the binary runs"));
    let text = |path: &Path| path.to_str().expect("text").to_owned();
    let new = run(&["compare", &text(&study), "--json", "-", "--no-store"]).good().stdout;
    let old = new.replace("\"schema_version\": 2", "\"schema_version\": 1");
    let old = scratch.file("old.json", old);
    let refused = run(&["show", &text(&old)]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("raidlab convert FILE"), "{}", refused.stderr);
    let converted = scratch.path().join("new.json");
    run(&["convert", &text(&old), "--out", &text(&converted)]).good();
    let shown = run(&["show", &text(&converted)]).good().stdout;
    assert!(shown.contains("this document had schema_version 1"), "{shown}");
    let printed = run(&["convert", &text(&old)]).good().stdout;
    assert_eq!(printed, fs::read_to_string(&converted).expect("written"));
    let missing = run(&["convert", "no-such.json"]);
    assert!(missing.code == Some(2) && missing.stderr.contains("no-such.json"), "{missing:?}");
}
