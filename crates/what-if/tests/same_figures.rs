//! What the page is answered has the figures that `predict` gives by itself, as the command line runs it: on several
//! threads, cell by cell.

use std::ops::ControlFlow;

use raidlab_predict::{Conditions, Modelled};
use raidlab_results::{Cell, Clock, Results};
use raidlab_sim::HostCosts;
use raidlab_study::{parse, run_rounds_parallel, summarise};
use raidlab_what_if::{plan, run};

/// A study as the page writes it.
fn study(layouts: &str, work: &str, state: &str) -> String {
    format!(
        "title = \"What if\"\nseed = 1\nrounds = 6\nprocesses = [2]\nstates = [\"{state}\"]\n\
         host = {{ kernel = \"linux-6.12\" }}\nbaseline = [\"pinned\"]\n\n\
         [[drives]]\nname = \"nas\"\nmodel = \"nas-8tb-7200\"\ncount = 4\n\n\
         [[drives]]\nname = \"flash\"\nmodel = \"ssd-sata-1tb\"\ncount = 4\n\n{layouts}\n\
         [[workloads]]\nkind = \"fio\"\nioengine = \"libaio\"\ndirect = 1\nrandrepeat = 0\n{work}\n"
    )
}

const BOTH: &str = "[[layouts]]\nname = \"pinned\"\nlevel = \"raid5\"\nmembers = 4\n\n\
                    [[layouts]]\nname = \"this\"\nlevel = \"raid10\"\nmembers = 4\nfar = 2\ndrives = \"flash\"\n";
const ONE: &str =
    "[[layouts]]\nname = \"pinned\"\nlevel = \"raid6\"\nmembers = 4\nchunk = \"64KiB\"\n";
const RANDOM: &str = "rw = \"randrw\"\nrwmixread = 70\nbs = \"4k\"\niodepth = 2\nsize = \"4g\"\nio_size = \"256k\"\n";
const IN_ORDER: &str =
    "rw = \"write\"\nbs = \"1m\"\niodepth = 1\nsize = \"4g\"\nio_size = \"16m\"\n";

/// The document of a study by `predict` alone.
fn predicted(text: &str) -> Results {
    let mut study = parse(text, "what-if.toml").expect("a study");
    study.raise_rounds();
    study.modelled = true;
    let modelled = Modelled::new(&study, HostCosts::default()).expect("possible");
    let make = || modelled.clone();
    let go_on = &mut |_: raidlab_study::Progress<'_>| ControlFlow::Continue(());
    let samples = run_rounds_parallel(&study, 2, make, go_on).expect("runs");
    let Conditions { host, settings, warnings, capacities } = Conditions::of(&modelled);
    summarise(&study, &samples, Clock::Virtual, host, settings, warnings, &capacities)
}

/// The document of an answer.
fn document(answer: &serde_json::Value) -> Results {
    Results::from_json(answer["document"].as_str().expect("JSON")).expect("a document")
}

#[test]
fn figures_are_those_of_predict_to_the_last_digit() {
    for (layouts, work, state) in [
        (ONE, RANDOM, "healthy"),
        (ONE, RANDOM, "degraded"),
        (ONE, IN_ORDER, "healthy"),
        (BOTH, RANDOM, "healthy"),
        (BOTH, IN_ORDER, "degraded"),
    ] {
        let text = study(layouts, work, state);
        let mut told = Vec::new();
        let answer = run(&text, None, &mut |done, total| told.push((done, total)));
        let expected = predicted(&text);
        assert_eq!(document(&answer), expected, "{text}");
        assert!(expected.cells.len() >= 4, "four figures of fio: {}", expected.cells.len());
        let total = 6 * expected.layouts.len();
        let every: Vec<_> = (1..=total).map(|done| (done, total)).collect();
        assert_eq!(told, every, "told of every run");
    }
}

#[test]
fn rows_show_the_medians_of_cells_and_a_comparison() {
    let answer = run(&study(BOTH, RANDOM, "healthy"), None, &mut |_, _| {});
    let rows = answer["rows"].as_array().expect("rows");
    let titles: Vec<_> = rows.iter().filter_map(|row| row["title"].as_str()).collect();
    let expected = [
        "Operations a second",
        "Throughput",
        "Latency, mean",
        "Latency, half within",
        "Latency, 99 of 100 within",
    ];
    assert_eq!(titles, expected);
    let document = document(&answer);
    for row in rows.iter().filter(|row| row["metric"] != "p50_ms") {
        for (at, name) in ["pinned", "this"].into_iter().enumerate() {
            let is = |cell: &&Cell| cell.layout == name && row["metric"] == cell.metric;
            let cell = document.cells.iter().find(is).expect("the cell of the row");
            assert_eq!(row["cells"][at]["median"], cell.median, "{}", row["title"]);
        }
    }
    assert_eq!(rows[0]["cells"][0]["verdict"], serde_json::Value::Null, "the baseline");
    assert_eq!(
        rows[0]["cells"][1]["verdict"], "better",
        "flash in mirrors against disks with parity"
    );
    assert!(rows[0]["cells"][1]["percent_interval"].is_string());
    let charts = answer["charts"].as_str().expect("HTML");
    for figure in ["ecdf", "rate", "busy"] {
        assert!(charts.contains(&format!("data-figure=\"{figure}\"")), "{figure}");
    }
    assert_eq!(answer["limits"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_plan_has_the_map_the_lost_member_and_what_is_usable() {
    let plan = plan(&study(BOTH, RANDOM, "degraded"));
    let layout = |at: usize| &plan["layouts"][at];
    assert_eq!(layout(0)["blocks"][0], "0 1 2 P");
    assert_eq!(layout(0)["lost"], 0);
    assert_eq!(layout(0)["survives"], 1);
    assert_eq!(layout(0)["efficiency"].as_str().map(|text| &text[..2]), Some("75"));
    assert_eq!(layout(1)["layout"], "raid10(4) far2");
    assert_eq!(layout(1)["efficiency"].as_str().map(|text| &text[..2]), Some("50"));
}

/// Drives of two sizes: 2 TB of the 10 TB that both have, not a half of twice the first.
#[test]
fn what_is_usable_is_a_share_of_all_drives() {
    let text = "title = \"unequal\"\nrounds = 1\n\
        drives = [{ name = \"old\", model = \"desktop-2tb-7200\" }, { name = \"nas\", model = \"nas-8tb-7200\" }]\n\
        layouts = [{ level = \"raid1\", members = 2, drives = [\"old\", \"nas\"] }]\n\
        [[workloads]]\nkind = \"random-read\"\nsize = \"4MiB\"\n";
    let plan = plan(text);
    let efficiency = plan["layouts"][0]["efficiency"].as_str();
    assert_eq!(efficiency.map(|text| &text[..2]), Some("20"), "{plan}");
}

#[test]
fn everything_that_is_wrong_is_named_by_its_key() {
    let few = study(ONE, RANDOM, "healthy").replace("members = 4", "members = 3");
    let errors = plan(&few)["errors"].clone();
    assert_eq!(errors[0]["key"], "layouts.members");
    assert!(
        errors[0]["reason"].as_str().is_some_and(|reason| reason.contains("raid6")),
        "{errors}"
    );
    assert_eq!(run(&few, None, &mut |_, _| {})["errors"], errors);
    let large = study(ONE, &RANDOM.replace("4g", "1024t"), "healthy");
    assert_eq!(plan(&large)["errors"][0]["key"], "workloads.size");
}

#[test]
fn rounds_are_what_they_are_on_the_command_line() {
    let answer = run(&study(ONE, RANDOM, "healthy"), Some(1), &mut |_, _| {});
    let document = document(&answer);
    assert_eq!((document.cells[0].samples.len(), document.cells[0].ci95), (1, None));
}

/// Each figure has one row, whichever of two cells tells it; what limits a layout is what was busiest.
#[test]
fn each_figure_has_one_row_and_the_busiest_is_named() {
    for (layouts, state) in [(ONE, "degraded"), (ONE, "healthy"), (BOTH, "degraded")] {
        let answer = run(&study(layouts, RANDOM, state), Some(1), &mut |_, _| {});
        let rows = answer["rows"].as_array().expect("rows");
        let titles: Vec<_> = rows.iter().filter_map(|row| row["title"].as_str()).collect();
        let once: std::collections::BTreeSet<_> = titles.iter().collect();
        assert_eq!(titles.len(), once.len(), "{titles:?}");
        assert!(titles.contains(&"Latency, 99 of 100 within"), "{titles:?}");
        let document = document(&answer);
        for (at, layout) in document.layouts.iter().enumerate() {
            let of = |cell: &&Cell| cell.layout == layout.name && !cell.busy.is_empty();
            let busy = &document.cells.iter().find(of).expect("a cell").busy;
            let most = busy.iter().max_by(|one, other| one.busy.total_cmp(&other.busy));
            let named = &most.expect("something").resource;
            let told = answer["limits"][at].as_str().expect("words");
            assert!(
                told.contains(named.as_str()) || told.contains("modelled host"),
                "{told}: {busy:?}"
            );
        }
    }
}
