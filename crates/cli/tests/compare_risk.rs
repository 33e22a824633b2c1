//! How likely layouts lose data, beside the speed that `raidlab compare` measured.

use raidlab_results::Results;
use raidlab_results::risk::{LayoutRisk, Risks};
use serde_json::Value;

use crate::support::{Scratch, raidlab};

const SCOPE: &str = "drives and rebuilds only, not fire, theft, deletion, ransomware, software";

/// A study of layouts on drives of a model, with something more.
fn study(model: &str, layouts: &str, more: &str) -> String {
    format!(
        "title = \"four\"\nseed = 7\n{more}\n[[drives]]\nname = \"own\"\nmodel = \"{model}\"\ncount = 9\n{layouts}\n\
         [[workloads]]\nkind = \"random-read\"\nsize = \"64KiB\"\n"
    )
}

fn layout(level: &str, more: &str) -> String {
    format!("[[layouts]]\nlevel = \"{level}\"\n{more}\n")
}

fn four(level: &str) -> String {
    layout(level, "members = 4")
}

/// The document of a study, run with these flags.
fn document(text: &str, flags: &[&str]) -> String {
    let scratch = Scratch::new("compare-risk");
    let file = scratch.file("study.toml", text);
    let file = file.to_str().expect("text");
    let run = ["compare", file, "--rounds", "1", "--no-store", "--quiet", "--json", "-"];
    raidlab([&run[..], flags].concat()).good().stdout
}

fn risks(text: &str) -> Risks {
    let results = Results::from_json(&document(text, &[])).expect("a document");
    results.risk.expect("chances")
}

fn array(risks: &Risks, layout: &str) -> f64 {
    risks.main(of(risks, layout)).expect("five years").array.central
}

fn of<'r>(risks: &'r Risks, layout: &str) -> &'r LayoutRisk {
    risks.of(layout).unwrap_or_else(|| panic!("{layout} is not there"))
}

/// The very command that is printed gives the very numbers that are printed: one set of inputs, one computing. Nested
/// levels and spares, too.
#[test]
fn the_printed_command_gives_the_same_numbers() {
    let layouts = [
        four("raid5"),
        four("raid6"),
        four("raid10"),
        layout("raid5+0", "members = 6"),
        layout("raid5", "members = 4\nspares = 1\nname = \"with a spare\""),
    ];
    let risks = risks(&study("nas-4tb-5400", &layouts.concat(), ""));
    let [drives] = &risks.drives[..] else { panic!("one set of drives: {risks:?}") };
    assert_eq!(drives.commands.len(), 2, "{:?}", drives.commands);
    let mut seen = 0;
    for (command, names) in drives
        .commands
        .iter()
        .zip([&["raid5(4)", "raid6(4)", "raid10(4)", "raid5+0(2x3)"][..], &["with a spare"]])
    {
        let words = shlex::split(command).expect("words");
        assert_eq!(words[0], "raidlab");
        let ran = raidlab([&words[1..], &["--json".to_owned(), "-".to_owned()]].concat()).good();
        let told: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        for (name, told) in names.iter().zip(told["layouts"].as_array().expect("layouts")) {
            for (mission, told) in
                of(&risks, name).missions.iter().zip(told["missions"].as_array().expect("missions"))
            {
                assert_eq!(told["years"], mission.years);
                assert_eq!(told["array"], mission.array.central, "{name}");
                assert_eq!(told["array_range"]["p5"], mission.array.p5, "{name}");
                assert_eq!(told["sector"], mission.sector.central, "{name}");
                assert_eq!(told["sector_range"]["p95"], mission.sector.p95, "{name}");
                assert_eq!(told["array_words"], mission.array.words, "{name}");
                assert_eq!(told["lost_bytes_per_usable_tb"], mission.lost_bytes_per_usable_tb);
                seen += 1;
            }
        }
    }
    assert_eq!(seen, 5 * 2, "two missions of each layout");
    assert!(array(&risks, "with a spare") < array(&risks, "raid5(4)"));
}

/// The order that nobody doubts, and the words for what is likely and for what is not.
#[test]
fn layouts_stand_in_the_order_of_their_redundancy() {
    let chunk = layout("raid5", "members = 4\nchunk = \"64KiB\"");
    let layouts = [four("raid0"), four("raid5"), four("raid6"), chunk].concat();
    let risks = risks(&study("nas-8tb-7200", &layouts, ""));
    let chances = ["raid0(4)", "raid5(4)", "raid6(4)"].map(|name| array(&risks, name));
    assert!(chances[0] > chances[1] && chances[1] > chances[2], "{chances:?}");
    assert_eq!(array(&risks, "raid5(4) chunk=64K"), chances[1], "a chunk changes nothing");
    let main = |name| risks.main(of(&risks, name)).expect("five years");
    assert_eq!(main("raid0(4)").array.about, "2 in 10");
    assert_eq!(of(&risks, "raid0(4)").rebuilt, "never: no redundancy");
    assert_eq!(main("raid6(4)").array.about, "other causes dominate");
    assert_eq!(main("raid6(4)").lost, "other causes dominate");
    assert!(main("raid5(4)").array.words.starts_with("about 1 in 2,000; between 1 in "));
    assert_eq!(risks.drives[0].safest, "raid6(4)");
    assert!(risks.drives[0].computing_error <= 0.007, "{}", risks.drives[0].computing_error);
    let ratio = of(&risks, "raid5(4)").times_array.as_ref().expect("a ratio");
    assert!(ratio.p5 < ratio.central && ratio.central < ratio.p95, "{ratio:?}");
    assert!(of(&risks, "raid6(4)").times_array.is_none());
    for mission in &of(&risks, "raid5(4)").missions {
        assert!(mission.sector.central >= mission.array.central, "a lost array is a lost sector");
    }
}

/// The study's own rebuilds count, alone and beside its work, and each by its own time.
#[test]
fn rebuilds_that_the_study_simulates_are_taken() {
    let states = "states = [\"healthy\", \"rebuilding\"]";
    let text = study("ssd-sata-1tb", &[four("raid5"), four("raid0")].concat(), states);
    let text = text.replace("size = \"64KiB\"", "size = \"640MiB\"");
    let taken = risks(&text);
    let layout = of(&taken, "raid5(4)");
    assert_eq!(layout.rebuild_hours.len(), 2, "{layout:?}");
    assert!(
        layout.rebuilt.contains("simulated by this study, alone and beside its work"),
        "{layout:?}"
    );
    assert!(layout.rebuild_hours[0] != layout.rebuild_hours[1]);
    // Of a part of the drives they say nothing; nor without the state.
    let part = risks(&text.replace("seed = 7", "seed = 7\nmember_size = \"1GiB\""));
    let none = risks(&text.replace(states, ""));
    for (risks, why) in [(part, "tell too little"), (none, "the state `rebuilding` simulates it")] {
        let layout = of(&risks, "raid5(4)");
        assert!(layout.rebuild_hours.is_empty() && layout.rebuilt.contains(why), "{layout:?}");
        assert!(
            layout.rebuilt.starts_with("in 1.4 h to 4.1 h: one full pass to three"),
            "{layout:?}"
        );
    }
}

#[test]
fn threads_change_nothing() {
    let layouts = [four("raid5"), four("raid6"), four("raid10"), layout("raid1", "members = 2")];
    let text = study("nas-8tb-7200", &layouts.concat(), "");
    let one = document(&text, &["--threads", "1"]);
    assert!(one.contains("\"risk\": {"), "{one}");
    assert_eq!(one, document(&text, &["--threads", "3"]));
}

/// Speed and risk stand in one table, and every report says what risk is about.
#[test]
fn text_and_pages_say_it() {
    let scratch = Scratch::new("compare-risk-text");
    let layouts = [four("raid0"), four("raid5"), four("raid6")].concat();
    let file = scratch.file("study.toml", study("nas-8tb-7200", &layouts, ""));
    let page = scratch.path().join("page.html");
    let [file, path] = [&file, &page].map(|path| path.to_str().expect("text"));
    let run = ["compare", file, "--rounds", "1", "--no-store", "--html", path];
    let text = raidlab(run).good().stdout;
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let page = std::fs::read_to_string(page).expect("a page");
    for report in [&flat, &page] {
        for words in [
            SCOPE,
            "RAID is not a backup",
            "other causes",
            "the safest",
            "depending on what nobody knows (failure rate of this model, latent errors, common causes)",
            "standard error at most 0.",
            "one full pass to three",
            "--drive nas-8tb-7200 --years 1,5 --seed 7",
        ] {
            assert!(report.contains(words), "`{words}` is not in\n{report}");
        }
    }
    let line = text.lines().position(|line| line.starts_with("array lost")).expect("a row");
    let cells: Vec<&str> = text.lines().skip(line).take(3).collect();
    assert!(cells[0].contains("2 in 10") && cells[1].starts_with("in 5 years"), "{cells:?}");
    assert!(text.find("random-read 4KiB").expect("speed") > text.find("array lost").expect("risk"));
}

/// What is not known is named.
#[test]
fn what_cannot_be_said_is_said() {
    let scratch = Scratch::new("compare-risk-real");
    let text = study("nas-8tb-7200", &[four("raid5"), four("raid0")].concat(), "");
    let on = scratch.path().to_str().expect("text").to_owned();
    let real = Results::from_json(&document(&text, &["--on", &on])).expect("a document");
    let real = real.risk.expect("a word on it");
    assert!(real.drives.is_empty(), "{real:?}");
    assert_eq!(real.left_out[0].layouts, ["raid5(4)", "raid0(4)"]);
    assert!(real.left_out[0].why.contains("is not known"), "{real:?}");

    let mixed = "[[drives]]\nname = \"flash\"\nmodel = \"ssd-sata-1tb\"\n\
                 [[layouts]]\nlevel = \"raid1\"\nmembers = 2\nname = \"both\"\ndrives = [\"own\", \"flash\"]\n";
    let risks = risks(&study("nas-8tb-7200", &[&four("raid5"), mixed].concat(), ""));
    assert_eq!(risks.left_out[0].layouts, ["both"]);
    assert!(risks.of("raid5(4)").is_some() && risks.of("both").is_none());

    // Too large to be computed beside a comparison.
    let large = layout("raid10", "members = 24\nname = \"large\"");
    let spare = layout("raid5", "members = 4\nspares = 1\nname = \"with a spare\"");
    let large = [large, spare, four("raid5")].concat();
    let text = study("nas-8tb-7200", &large, "").replace("count = 9", "count = 24");
    let risks = self::risks(&text);
    assert_eq!(risks.left_out[0].layouts, ["large"]);
    assert!(risks.left_out[0].why.contains("raidlab risk LAYOUT... says it"), "{risks:?}");
    let [with, without] = ["with a spare", "raid5(4)"].map(|name| array(&risks, name));
    assert!(with < without, "each keeps its own spares: {with} and {without}");
}

/// Without redundancy there is no choice to make by risk; published studies are about speed.
#[test]
fn some_studies_say_nothing_of_risk() {
    let bare = document(&study("nas-8tb-7200", &four("raid0"), ""), &[]);
    assert!(!bare.contains("\"risk\""), "{bare}");
    let replay =
        ["replay", "sata-2018", "--workload", "hdparm_t", "--layout", "raid5(4)", "--quiet"];
    let replay = raidlab([&replay[..], &["--json", "-"]].concat());
    assert!(replay.code == Some(0) && !replay.stdout.contains("\"risk\""), "{}", replay.stderr);
}

/// Unequal drives count as so many of the smallest, and are rebuilt as long as the slowest takes.
#[test]
fn unequal_drives_are_one_question_each() {
    let both = "[[drives]]\nname = \"large\"\nmodel = \"nas-8tb-7200\"\ncount = 2\n\
                [[layouts]]\nlevel = \"raid1\"\nmembers = 2\nname = \"both\"\ndrives = [\"own\", \"large\"]\n";
    let risks = risks(&study("nas-4tb-5400", &[&four("raid5"), both].concat(), ""));
    let of = |at: usize| (&*risks.drives[at].commands[0], risks.drives[at].layouts.len());
    assert_eq!(risks.drives.len(), 2);
    assert!(!of(0).0.contains("--rebuild"), "{:?}", of(0));
    assert!(of(1).0.contains("--drive nas-4tb-5400 --rebuild "), "{:?}", of(1));
    assert!(risks.drives[1].drives.contains("; "), "both are named: {}", risks.drives[1].drives);
}
