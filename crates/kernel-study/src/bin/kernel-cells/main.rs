//! Draws cells, runs them on a kernel and compares what kernels did: `docs/kernel-lab.md`.
#![forbid(unsafe_code)]

mod shards;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use raidlab_kernel_study::drawn::{Drawing, Drawn, FACTORS, RULES, draw, drive_hashes};
use raidlab_kernel_study::fidelity::{self, Compared, predict_all, seed_of};
use raidlab_kernel_study::measured::{
    Head, JOBS, Measured, add, comparable, figure, is_enough, off, read,
};
use raidlab_kernel_study::{Binaries, Cost, KernelLab, Options};
use raidlab_predict::{Modelled, Trace};
use raidlab_random::mix;
use raidlab_results::statistics::median;
use raidlab_results::trust::Trust;
use raidlab_study::{Runner, Sample, cell_title, cells};

const USAGE: &str = "\
usage: kernel-cells list [--seed 1] [--count 600]       the cells, and which pairs cannot be
       kernel-cells show NUMBER [--seed 1] [--count 600]   a cell as a study file
       kernel-cells run DIR --kernel 6.12 [--seed 1] [--count 600] [--cells 2,14,29] [--first 300] [--shard 1/2]
                    [--minutes M] [--threads 2] [--into FILE] [--beside FILE]...
                                                        runs what DIR does not have, in shards of a cell each;
                                                        --shard: this one of so many, here or on another machine;
                                                        --first: of the first so many cells;
                                                        --into: for this file, by `join`; not what it has;
                                                        --beside: not what this file of cells has
       kernel-cells join FILE DIR...                    adds the cells that directories have to a file
       kernel-cells report FILE [FILE]                  a kernel against itself; against the other
       kernel-cells model FILE... [--worst 20] [--first 300] [--threads 2] [--commit NAME]
                                                        the model against a kernel, on the same drives: errors,
                                                        orderings, limits by group; --commit: also a row of
                                                        the record in docs/fidelity.md
       kernel-cells trust FILE... [--write FILE] [--threads 2]
                                                        what reports tell of the model's error: compared with what
                                                        is compiled in; --write: made anew
       kernel-cells try STUDY [--kernel 6.12] [--rounds 1] [--seed 1] [--trace FILE]
                                                        cells of a study on a kernel and on the model
";

type Error = Box<dyn std::error::Error>;

/// Prints a line; an error, not a panic, when nobody reads any more.
macro_rules! say {
    ($($what:tt)*) => { writeln!(io::stdout(), $($what)*)? };
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if words.iter().any(|word| ["--help", "-h"].contains(word)) {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match carry_out(&words) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprint!("{USAGE}");
            ExitCode::from(2)
        }
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kernel-cells: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Carries a command out; whether there is such a command.
fn carry_out(words: &[&str]) -> Result<bool, Error> {
    match *words {
        ["list", ref rest @ ..] => list(&Asked::parse(rest, &DRAWING)?.drawing())?,
        ["show", number, ref rest @ ..] => show(number, &Asked::parse(rest, &DRAWING)?)?,
        ["run", path, ref rest @ ..] => {
            shards::run(file(path)?.as_ref(), &Asked::parse(rest, &RUN)?)?;
        }
        ["join", path, ref rest @ ..] if !rest.is_empty() => {
            let directories: Result<Vec<PathBuf>, Error> =
                rest.iter().map(|word| Ok(file(word)?.into())).collect();
            shards::join(file(path)?.as_ref(), &directories?)?;
        }
        [command @ ("model" | "trust"), path, ref rest @ ..] => {
            let options = rest.iter().position(|word| word.starts_with('-')).unwrap_or(rest.len());
            let (more, options) = rest.split_at(options);
            let mut paths = vec![file(path)?];
            paths.extend(more);
            match command {
                "model" => model(&paths, &Asked::parse(options, &MODEL)?)?,
                _ => trust(&paths, &Asked::parse(options, &TRUST)?)?,
            }
        }
        ["try", study, ref rest @ ..] => {
            try_out(file(study)?.as_ref(), &Asked::parse(rest, &TRY)?)?;
        }
        ["report", ref paths @ ..] if (1..=2).contains(&paths.len()) => {
            report(&paths.iter().map(|path| file(path)).collect::<Result<Vec<_>, _>>()?)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// The name of a file, which an option that stands in its place is not.
fn file(word: &str) -> Result<&str, Error> {
    match word.starts_with('-') {
        true => Err(format!("{word}: the name of a file goes here (./{word} is one)").into()),
        false => Ok(word),
    }
}

/// Whether whoever read the output has gone: `| head` is no failure.
fn is_broken_pipe(error: &Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The options of commands.
const DRAWING: [&str; 2] = ["--seed", "--count"];
const RUN: [&str; 10] = [
    "--seed",
    "--count",
    "--kernel",
    "--cells",
    "--first",
    "--shard",
    "--minutes",
    "--threads",
    "--into",
    "--beside",
];
const MODEL: [&str; 4] = ["--worst", "--first", "--threads", "--commit"];
const TRUST: [&str; 2] = ["--write", "--threads"];
const TRY: [&str; 4] = ["--seed", "--rounds", "--kernel", "--trace"];

/// What the command line asks for.
struct Asked {
    seed: u64,
    count: usize,
    kernel: String,
    /// Which cells, where not all.
    cells: Option<Vec<usize>>,
    /// Of the first so many, where not all.
    first: usize,
    /// The file that cells are measured for.
    into: Option<PathBuf>,
    /// Files with cells that are not to be run again.
    beside: Vec<PathBuf>,
    /// How many of the cells with the largest errors are listed.
    worst: usize,
    /// Where what reports tell is written.
    write: Option<PathBuf>,
    /// The model's commit, for a row of the record.
    commit: Option<String>,
    /// Which shard of how many, where not all.
    shard: Option<(u64, u64)>,
    time: Option<Duration>,
    threads: usize,
    /// Seeds of each cell of a study.
    rounds: u64,
    trace: Option<PathBuf>,
}

impl Asked {
    /// Reads a command's options, which are the `known`.
    fn parse(words: &[&str], known: &[&str]) -> Result<Self, Error> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let mut asked = Self {
            seed: 1,
            count: 600,
            kernel: "6.12".to_owned(),
            cells: None,
            first: usize::MAX,
            into: None,
            beside: Vec::new(),
            worst: 20,
            write: None,
            commit: None,
            shard: None,
            time: None,
            threads,
            rounds: 1,
            trace: None,
        };
        let mut words = words.iter();
        while let Some(name) = words.next() {
            if !known.contains(name) {
                let known = known.join(", ");
                return Err(format!("{name}: no such option; known: {known}").into());
            }
            let value = words.next().ok_or_else(|| format!("{name}: needs a value"))?;
            match *name {
                "--seed" => asked.seed = value.parse()?,
                "--count" => asked.count = value.parse()?,
                "--first" => asked.first = value.parse()?,
                "--into" => asked.into = Some(value.into()),
                "--beside" => asked.beside.push(value.into()),
                "--worst" => asked.worst = value.parse()?,
                "--write" => asked.write = Some(value.into()),
                "--commit" => asked.commit = Some((*value).to_owned()),
                "--trace" => asked.trace = Some(value.into()),
                "--kernel" => (*value).clone_into(&mut asked.kernel),
                "--cells" => {
                    asked.cells = Some(value.split(',').map(str::parse).collect::<Result<_, _>>()?);
                }
                "--shard" => {
                    let (part, of) = value.split_once('/').ok_or("--shard: PART/OF")?;
                    asked.shard = Some((part.parse()?, of.parse()?));
                }
                "--minutes" => asked.time = Some(Duration::from_secs(60 * value.parse::<u64>()?)),
                "--threads" => asked.threads = value.parse::<usize>()?.max(1),
                "--rounds" => asked.rounds = value.parse::<u64>()?.max(1),
                _ => return Err(format!("{name}: is not read").into()),
            }
        }
        if let Some((part, of)) = asked.shard.filter(|(part, of)| *part == 0 || part > of) {
            return Err(format!("--shard {part}/{of}: a part from 1 to {of}").into());
        }
        Ok(asked)
    }

    fn drawing(&self) -> Drawing {
        draw(self.seed, self.count)
    }
}

fn list(drawing: &Drawing) -> Result<(), Error> {
    for cell in &drawing.cells {
        say!("{:4}  {}", cell.number, cell.name());
    }
    say!("\nwhat cannot be together:");
    for rule in RULES {
        let values = |(name, values): (&str, &[&str])| format!("{name} {}", values.join("|"));
        say!("  {} with {}: {}", values(rule.one), values(rule.other), rule.reason);
    }
    for [one, other] in &drawing.impossible {
        say!("  {} {} with {} {}: several of these", one.0, one.1, other.0, other.1);
    }
    Ok(())
}

fn show(number: &str, asked: &Asked) -> Result<(), Error> {
    let drawing = asked.drawing();
    let cell = drawing.cells.get(number.parse::<usize>()?);
    let text = cell.ok_or("there are not so many cells")?.text()?;
    Ok(io::stdout().write_all(text.as_bytes())?)
}

/// Runs one cell with one seed after the other.
struct Bench<'a> {
    asked: &'a Asked,
    binaries: Binaries,
    stop: &'a io::PipeReader,
}

/// Of runs of a cell the figure that all of them have: its place, and its values.
fn figures(samples: &[Sample]) -> Option<(usize, Vec<f64>)> {
    let place = figure(samples.iter().map(|sample| &sample.values[..]))?;
    let value = |sample: &Sample| sample.values.get(place).copied().flatten().map(short);
    Some((place, samples.iter().filter_map(value).collect()))
}

impl Bench<'_> {
    fn measure(&self, cell: &Drawn, thread: usize) -> Result<Measured, Error> {
        let study = cell.study()?;
        // The study has the costs already.
        let binaries = self.binaries.clone();
        let options = Options { binaries, cost: Cost::PLAIN, varied_starts: true };
        let lab = KernelLab::new(&study, options, self.stop.as_fd(), None)?;
        let key = *cells(&study).first().ok_or("a study without cells")?;
        let seed_of = |number: usize| seed_of(self.asked.seed, cell, number);
        let mut runner = lab.runner_on(thread);
        // The runs with other costs first: they have a say in which figure all have.
        let mut samples: Vec<Sample> = Vec::new();
        for cost in Cost::OTHERS {
            samples.push(runner.with_cost(cost).run(&key, 0, seed_of(0))?);
        }
        let (place, other_costs, plain) = loop {
            samples.push(runner.run(&key, 0, seed_of(samples.len() - Cost::OTHERS.len()))?);
            let (place, values) = figures(&samples).ok_or("no figure that all runs have")?;
            if let [free, slow, ref plain @ ..] = values[..]
                && is_enough(plain, [free, slow])
            {
                break (place, [free, slow], plain.to_vec());
            }
        };
        let done = samples[Cost::OTHERS.len()].members.unwrap_or_default();
        let metrics = study.workloads[0].workload.metrics();
        Ok(Measured {
            cell: cell.number,
            metric: metrics.get(place).map_or("", |metric| metric.name).to_owned(),
            values: plain,
            other_costs,
            members: [done.reads, done.writes, done.bytes_read, done.bytes_written],
            error: None,
        })
    }

    fn head(&self) -> Result<Head, Error> {
        let [kernel, programs] = self.binaries.names();
        let (seed, count) = (self.asked.seed, self.asked.count);
        Ok(Head { seed, count, kernel, programs, jobs: JOBS, drives: drive_hashes()? })
    }
}

/// Five digits are more than seeds agree in.
fn short(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

fn load(path: &str) -> Result<(Head, Vec<Measured>), Error> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    Ok(read(&text).map_err(|error| format!("{path}: {error}"))?)
}

/// The same without cells whose drive or job is another one by now, which is told.
fn load_comparable(
    path: &str,
    now: &BTreeMap<String, String>,
) -> Result<(Head, Vec<Measured>), Error> {
    let (head, cells) = load(path)?;
    let (cells, others) = comparable(&head, cells, (now, JOBS));
    for (reason, count) in others {
        eprintln!("{path}: without {count} cells {reason}: run them again");
    }
    Ok((head, cells))
}

/// What files of cells have of one kernel.
struct Kernel {
    name: String,
    seed: u64,
    drawing: Drawing,
    cells: Vec<Measured>,
}

/// Files by their kernels.
fn kernels(paths: &[&str]) -> Result<Vec<Kernel>, Error> {
    let drives = drive_hashes()?;
    let mut all: Vec<Kernel> = Vec::new();
    for path in paths {
        let (head, cells) = load_comparable(path, &drives)?;
        match all.iter_mut().find(|one| (&one.name, one.seed) == (&head.kernel, head.seed)) {
            Some(known) => known.add(head.count, cells),
            None => all.push(Kernel {
                name: head.kernel,
                seed: head.seed,
                drawing: draw(head.seed, head.count),
                cells,
            }),
        }
    }
    Ok(all)
}

impl Kernel {
    /// Adds those of another file, of a drawing of so many: of a cell in several the first that has values counts.
    fn add(&mut self, count: usize, cells: Vec<Measured>) {
        if count > self.drawing.cells.len() {
            self.drawing = draw(self.seed, count);
        }
        for cell in cells {
            add(&mut self.cells, cell);
        }
    }

    /// What the model says of the cells that the lab can judge, in the order of their numbers; others are counted.
    fn compare(&self, asked: &Asked) -> Result<Vec<Compared<'_>>, Error> {
        let mut of: Vec<&Measured> =
            self.cells.iter().filter(|cell| cell.cell < asked.first).collect();
        of.sort_by_key(|cell| cell.cell);
        let count = of.len();
        of.retain(|cell| cell.error.is_none() && !cell.is_cpu_sensitive());
        let judged: Vec<(&Drawn, &Measured)> = of
            .into_iter()
            .filter_map(|cell| Some((self.drawing.cells.get(cell.cell)?, cell)))
            .collect();
        let wanted: Vec<(&Drawn, &str)> =
            judged.iter().map(|(drawn, cell)| (*drawn, cell.metric.as_str())).collect();
        let progress = |done: usize| {
            if done.is_multiple_of(10) || done == wanted.len() {
                eprintln!("{}: modelled {done} of {}", self.name, wanted.len());
            }
        };
        let values = predict_all(&wanted, (self.seed, &self.name), asked.threads, &progress);
        let mut refused: Vec<(String, usize)> = Vec::new();
        let mut compared = Vec::new();
        for ((drawn, cell), values) in judged.iter().zip(values) {
            match values {
                Ok(values) => {
                    compared.extend(Compared::new(
                        drawn,
                        &cell.metric,
                        cell.values.clone(),
                        values,
                    ));
                }
                Err(error) => {
                    let reason = error.to_string();
                    match refused.iter_mut().find(|(known, _)| *known == reason) {
                        Some((_, count)) => *count += 1,
                        None => refused.push((reason, 1)),
                    }
                }
            }
        }
        say!(
            "{}: {count} cells, {} can be judged, {} modelled\n",
            self.name,
            judged.len(),
            compared.len()
        );
        for (reason, count) in refused {
            say!("not modelled: {count}: {reason}");
        }
        Ok(compared)
    }
}

fn model(paths: &[&str], asked: &Asked) -> Result<(), Error> {
    for kernel in kernels(paths)? {
        let compared = kernel.compare(asked)?;
        say!("{}", fidelity::scores(&compared, kernel.seed));
        say!("the largest errors (cells of groups that are held out are not listed):");
        say!("{}", fidelity::worst(&compared, asked.worst));
        if let Some(commit) = &asked.commit {
            let row = fidelity::log_row("DATE", commit, &kernel.name, &compared);
            say!("for the record in docs/fidelity.md:\n{row}");
        }
    }
    Ok(())
}

/// Makes what reports tell of the model's error, and writes it or compares it with what is compiled in.
fn trust(paths: &[&str], asked: &Asked) -> Result<(), Error> {
    let mut stored = Vec::new();
    let mut model: BTreeMap<String, BTreeMap<usize, f64>> = BTreeMap::new();
    let drives = drive_hashes()?;
    for path in paths {
        let (head, cells) = load_comparable(path, &drives)?;
        let kernel = head.kernel.clone();
        let file = fidelity::Stored::new(head, cells);
        let progress = |done: usize| {
            if done.is_multiple_of(10) {
                eprintln!("{kernel}: modelled {done} of {}", file.asked().len());
            }
        };
        // Several files may have cells of one drawing.
        model.entry(file.drawing_name()).or_default().extend(file.model(asked.threads, &progress));
        stored.push(file);
    }
    let trust = fidelity::trust_of(&stored, &model);
    say!("{}", fidelity::trust_table(&trust));
    if let Some(path) = &asked.write {
        return Ok(fs::write(path, format!("{}\n", serde_json::to_string_pretty(&trust)?))?);
    }
    if *Trust::recorded() == trust {
        say!("as recorded");
        return Ok(());
    }
    Err(format!("what is recorded is stale: {}", trust.made_by).into())
}

/// Each cell of a study with a workload on a kernel and on the model, with the same seeds.
fn try_out(path: &Path, asked: &Asked) -> Result<(), Error> {
    let mut study = raidlab_study::load(path)?;
    raidlab_kernel_study::prepare(&mut study)?;
    raidlab_kernel_study::as_kernel(&mut study, &asked.kernel);
    // What is not modelled is refused before the trace is begun.
    let modelled = Modelled::new(&study, fidelity::COSTS)?;
    let mut modelled = modelled.starting(fidelity::as_in_guests);
    let (stop, _kept) = io::pipe()?;
    let binaries = Binaries::find(&asked.kernel)?;
    let options = Options { binaries, cost: Cost::PLAIN, varied_starts: true };
    let trace = asked.trace.as_deref().map(trace_to).transpose()?;
    let of_model = asked.trace.as_ref().map(|path| path.with_added_extension("model"));
    let of_model = of_model.as_deref().map(trace_to).transpose()?;
    if let Some(trace) = &of_model {
        modelled = modelled.traced_to(trace);
    }
    let lab = KernelLab::new(&study, options, stop.as_fd(), trace.as_ref())?;
    let mut runner = lab.runner();
    for key in cells(&study).into_iter().filter(|key| key.workload(&study).is_some()) {
        let mut samples = Vec::new();
        for number in 0..asked.rounds {
            let seed = mix(&[asked.seed, number]);
            samples.push(runner.run(&key, 0, seed)?);
            samples.push(modelled.run(&key, 0, seed)?);
        }
        let values = figures(&samples).map(|(_, values)| values).unwrap_or_default();
        let of = |one: usize| -> Vec<f64> { values.iter().skip(one).step_by(2).copied().collect() };
        let [Some(kernel), Some(model)] = [0, 1].map(|one| median(&of(one))) else {
            return Err(format!("{}: no figure", cell_title(&study, &key)).into());
        };
        let percent = (model / kernel - 1.0) * 100.0;
        say!("{kernel:12.4} {model:12.4} {percent:+6.1} %  {}", cell_title(&study, &key));
    }
    drop(lab);
    drop(modelled);
    Ok([trace, of_model].into_iter().flatten().try_for_each(Trace::finish)?)
}

/// A file that requests are written to.
fn trace_to(path: &Path) -> io::Result<Trace> {
    Ok(Trace::new(io::BufWriter::new(fs::File::create(path)?)))
}

fn report(files: &[&str]) -> Result<(), Error> {
    let all: Vec<(Head, Vec<Measured>)> =
        files.iter().map(|path| load(path)).collect::<Result<_, _>>()?;
    let drawing = draw(all[0].0.seed, all[0].0.count);
    for (head, cells) in &all {
        let errors = cells.iter().filter(|cell| cell.error.is_some()).count();
        let sensitive = cells.iter().filter(|cell| cell.error.is_none() && cell.is_cpu_sensitive());
        say!(
            "{}: {} of {} cells, {errors} without values, {} CPU-sensitive",
            head.kernel,
            cells.len(),
            drawing.cells.len(),
            sensitive.count()
        );
        let halves = cells.iter().filter_map(|cell| {
            // Of seeds every other one, so that both halves are alike.
            let half = |odd: usize| -> Vec<f64> {
                cell.values.iter().skip(odd).step_by(2).copied().collect()
            };
            Some((cell.cell, off(median(&half(0))?, median(&half(1))?)))
        });
        table("half of the seeds against the others", &drawing, halves.collect())?;
    }
    if let [(head, one), (of_other, other)] = &all[..] {
        if head.seed != of_other.seed {
            let seeds = format!("{} and {}", head.seed, of_other.seed);
            return Err(format!("cells of seeds {seeds} have nothing in common").into());
        }
        let (other, left) = comparable(of_other, other.clone(), (&head.drives, head.jobs));
        for (reason, count) in left {
            eprintln!("{}: without {count} cells {reason}", files[1]);
        }
        let pairs = one.iter().filter_map(|cell| {
            let is_it =
                |there: &&Measured| (there.cell, &there.metric) == (cell.cell, &cell.metric);
            let there = other.iter().find(is_it)?;
            Some((cell.cell, off(cell.median()?, there.median()?)))
        });
        table("the second kernel against the first", &drawing, pairs.collect())?;
    }
    Ok(())
}

/// Medians and the 95th percentile over all cells, and medians by the values of each factor.
fn table(title: &str, drawing: &Drawing, offs: Vec<(usize, f64)>) -> io::Result<()> {
    let percent = |values: &[f64], share: f64| {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = (share * (sorted.len().max(1) - 1) as f64).round() as usize;
        sorted.get(at).map_or_else(|| "-".to_owned(), |value| format!("{:.1} %", value * 100.0))
    };
    let all: Vec<f64> = offs.iter().map(|(_, off)| *off).collect();
    say!("  {title}: median {}, 95 of 100 {}", percent(&all, 0.5), percent(&all, 0.95));
    for factor in FACTORS {
        let of = |value: &&str| {
            let has = |at: usize| {
                drawing.cells.get(at).is_some_and(|cell| cell.value(factor.name) == *value)
            };
            let values: Vec<f64> =
                offs.iter().filter(|(at, _)| has(*at)).map(|(_, off)| *off).collect();
            format!("{value} {} ({})", percent(&values, 0.5), values.len())
        };
        let values: Vec<String> = factor.values.iter().map(of).collect();
        say!("    {}: {}", factor.name, values.join(", "));
    }
    Ok(())
}
