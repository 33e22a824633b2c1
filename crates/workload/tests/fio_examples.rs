//! The example job files that come with fio: each runs, or names what it needs.
//!
//! They are not kept here. `RAIDLAB_FIO_EXAMPLES` names the directory `examples` of fio's sources; without
//! it the test looks where distributions put them, and says that it was skipped when there are none.

use crate::support;
use std::collections::BTreeMap;
use std::path::PathBuf;

use raidlab_workload::null::NullTarget;
use raidlab_workload::{Setting, fio};

/// What became of a job file.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// It ran; so many processes.
    Ran(usize),
    /// It ran on a device of a size, which it needs.
    RanOnDevice(usize),
    /// It names what it needs.
    Needs(Vec<String>),
}

fn variables(name: &str) -> Option<String> {
    // What the examples ask of their caller.
    Some(match name {
        "FIO_RW" => "randread".into(),
        "FIO_BS" | "BLOCK_SIZE" => "4k".into(),
        "FIO_DIR" => "scratch".into(),
        "IODEPTH" | "FIO_IODEPTH" | "NUMJOBS" => "4".into(),
        "SIZE" => "1m".into(),
        _ => return None,
    })
}

/// The file with places outside the target left out, which is what its reader is told to do, and with
/// times and repetitions cut short: operations here take a microsecond each.
fn placed(text: &str) -> String {
    let mut result = String::new();
    for line in text.lines() {
        let bare = line.trim_start().replace(' ', "");
        let starts = |words: &[&str]| words.iter().any(|word| bare.starts_with(word));
        result += if starts(&["filename=/", "directory=/"]) {
            "; outside the target"
        } else if starts(&["runtime="]) {
            "runtime=20ms"
        } else if starts(&["ramp_time="]) {
            "ramp_time=1ms"
        } else if starts(&["loops="]) {
            "loops=2"
        } else {
            line
        };
        result.push('\n');
    }
    result
}

fn outcome(text: &str) -> Outcome {
    let text = placed(text);
    let problems = fio::problems(&text, &variables);
    if !problems.is_empty() {
        let mut needs: Vec<String> = problems
            .iter()
            .map(|problem| {
                problem.reason.trim_start_matches("option ").replace(" is not supported", "")
            })
            .collect();
        needs.sort();
        needs.dedup();
        return Outcome::Needs(needs);
    }
    let workload = fio::parse(&text, "example", &variables).expect("no problems").workload();
    // A size that is a whole number of the blocks of most files.
    let small = workload.resized(4 << 20).expect("a small one");
    for (source, is_device) in [(&workload, false), (&workload, true)] {
        let space = is_device.then_some(64 << 30);
        match source.plan(&Setting { space, ..Setting::new(1, 1) }) {
            Err(error) if is_device => return Outcome::Needs(vec![error.to_string()]),
            Err(_) => continue,
            Ok(_) => {}
        }
        let plan = small.plan(&Setting::new(1, 1)).unwrap_or_else(|error| panic!("{error}"));
        let processes = plan.run.len();
        let record = NullTarget::default().run(plan).unwrap_or_else(|error| panic!("{error:?}"));
        let all = record.totals();
        assert!(all.reads.count + all.writes.count > 0, "nothing was done");
        for format in small.formats() {
            assert!(small.format(format, &record, "host").is_some_and(|text| text.ends_with('\n')));
        }
        return if is_device { Outcome::RanOnDevice(processes) } else { Outcome::Ran(processes) };
    }
    Outcome::Needs(vec!["nothing".into()])
}

#[test]
fn every_example_runs_or_names_what_it_needs() {
    let named = std::env::var_os("RAIDLAB_FIO_EXAMPLES").map(PathBuf::from);
    let directory = named.unwrap_or_else(|| "/usr/share/doc/fio/examples".into());
    let Ok(entries) = std::fs::read_dir(&directory) else {
        let reason = "no examples of fio; RAIDLAB_FIO_EXAMPLES names their directory";
        support::skip("every_example_runs_or_names_what_it_needs", reason);
        return;
    };
    let mut found = BTreeMap::new();
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        if path.extension().is_some_and(|extension| extension == "fio") {
            let text = std::fs::read_to_string(&path).expect("a text");
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            found.insert(name, outcome(&text));
        }
    }
    let ran = found.values().filter(|one| !matches!(one, Outcome::Needs(_))).count();
    for (name, outcome) in &found {
        println!("{name}: {outcome:?}");
    }
    println!("{ran} of {} example job files run", found.len());
    let needs = found.values().filter_map(|one| match one {
        Outcome::Needs(needs) => Some(needs),
        _ => None,
    });
    assert!(needs.flatten().all(|need| !need.is_empty()));
    assert!(ran > 0, "none of {} files runs", found.len());
}
