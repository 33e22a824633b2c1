//! Hashes of what raidlab computes, one `NAME HASH` a line: the same in every build and on every machine.
//!
//! `cargo xtask bits` compares them between builds. With `--values` each hash stands behind the values that it
//! is made of, a line `NAME, WHICH: BITS` each, so that a difference can be named. Studies and drives are
//! compiled in: this reads no file, starts no thread and needs nothing but standard output.

use std::env;
use std::process::ExitCode;

use raidlab_checker::content::mix;
use raidlab_checker::swarm;
use raidlab_explore::calibrate::{self, Problem};
use raidlab_predict::Modelled;
use raidlab_results::{Clock, Results};
use raidlab_sim::HostCosts;
use raidlab_study::{Only, Study, default_study, parse, replay, run_rounds, summarise};

/// Of each published study one workload with so many processes, on all its layouts: all machines, with what
/// they are made of.
const REPLAYED: [(&str, &str, u32); 5] = [
    ("pata-2005", "tar_xf", 2),
    ("ite8212-2006", "bonnie-1.03", 1),
    ("freebsd-2007", "cp_parallel", 2),
    ("sas-2008", "rand_write", 4),
    ("sata-2018", "hdparm_t", 1),
];

/// Seeds of the check, from 0 on. What `raidlab check --seeds 100` prints is this hash.
const SEEDS: u64 = 100;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let values = arguments.iter().any(|argument| argument == "--values");
    if arguments.len() > usize::from(values) {
        eprintln!("usage: bits [--values]");
        return ExitCode::from(2);
    }
    match run(values) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bits: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(values: bool) -> Result<(), Box<dyn std::error::Error>> {
    let study = parse(default_study(), "studies/default.toml")?;
    show(values, "default study", &results(&study)?)?;
    for (name, workload, processes) in REPLAYED {
        let mut study = replay::load(name)?;
        (study.rounds, study.max_rounds) = (1, 1);
        study.only = Only {
            workloads: vec![workload.to_owned()],
            processes: vec![processes],
            ..Only::default()
        };
        show(values, name, &results(&study)?)?;
    }
    fit(values);
    check(values)
}

/// The results document of a study.
fn results(study: &Study) -> Result<Results, Box<dyn std::error::Error>> {
    let mut modelled = Modelled::unchecked(study, HostCosts::default())?;
    let capacities = modelled.capacities();
    let samples = run_rounds(study, &mut modelled, &mut |_| std::ops::ControlFlow::Continue(()))?;
    let empty = Default::default;
    Ok(summarise(study, &samples, Clock::Virtual, empty(), empty(), Vec::new(), &capacities))
}

/// The samples of each cell, and the hash of the document in JSON.
fn show(values: bool, name: &str, results: &Results) -> Result<(), Box<dyn std::error::Error>> {
    for cell in results.cells.iter().filter(|_| values) {
        let [layout, workload, state, metric] =
            [&cell.layout, &cell.workload, &cell.state, &cell.metric];
        let which = format!("{layout}, {workload}, {} at once, {state}, {metric}", cell.processes);
        println!("{name}, {which}: {}", bits(&cell.samples));
    }
    println!("{name} {:016x}", hash(&serde_json::to_string(results)?));
    Ok(())
}

/// A fit with many logarithms and exponentials, of a model that has none.
fn fit(values: bool) {
    let disk =
        |p: &[f64]| vec![1e3 / p[0], 1e3 / p[0] + p[1], 1e2 / p[0] + 5.0 * p[1], 30.0 * p[1]];
    let published = disk(&[47.1, 0.33]);
    let ranges = vec![[10.0, 200.0], [0.01, 10.0]];
    let problem = Problem { published, start: vec![80.0, 1.0], ranges };
    let mut all = Vec::new();
    let fit = calibrate::fit(&problem, &mut |points: &[Vec<f64>]| {
        all.extend(points.iter().flatten().copied());
        Ok::<_, std::convert::Infallible>(points.iter().map(|point| disk(point)).collect())
    });
    let Ok(fit) = fit;
    all.extend(fit.left_out);
    if values {
        println!("fit, points and cells left out: {}", bits(&all));
    }
    println!("fit {:016x}", hash(&bits(&all)));
}

/// The logs of seeds of the swarm.
fn check(values: bool) -> Result<(), Box<dyn std::error::Error>> {
    let mut all = 0;
    for seed in 0..SEEDS {
        let outcome = swarm::run(seed, &swarm::Options::default());
        let outcome = outcome.map_err(|violation| violation.to_string())?;
        if values {
            println!("check, seed {seed}: {:016x}", outcome.hash);
        }
        all = mix(all, outcome.hash);
    }
    println!("check {:016x}", mix(0, all));
    Ok(())
}

/// The bits of floats in hexadecimal digits.
fn bits(values: &[f64]) -> String {
    let each: Vec<String> = values.iter().map(|one| format!("{:016x}", one.to_bits())).collect();
    each.join(" ")
}

/// FNV-1a, 64 bits.
fn hash(text: &str) -> u64 {
    let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, add)
}
