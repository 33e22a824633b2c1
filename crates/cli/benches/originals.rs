//! Rates of bonnie++, dd and fio beside those of `raidlab run`, on the same filesystem, in pairs.
//!
//! `cargo bench -p raidlab-cli --bench originals -- [--pairs N] [--directory DIR] [NAME...]`. A pair is one
//! run of the original and one of `raidlab run` with the same parameters and sizes, one after the other
//! in an order drawn at random; the pairs of all cases are interleaved. Each program's own figure counts.
//! Printed: medians, the median of the ratios of the pairs with its interval, a verdict, and every pair.
//! Originals that are not installed are left out. See `docs/originals.md`.
#![forbid(unsafe_code)]

#[path = "originals/cases.rs"]
mod cases;
#[path = "originals/machine.rs"]
mod machine;
#[path = "originals/mounts.rs"]
mod mounts;
#[path = "originals/parse.rs"]
mod parse;
#[path = "originals/programs.rs"]
mod programs;
#[path = "originals/table.rs"]
mod table;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use clap::Parser;
use raidlab_core::Size;
use raidlab_random::Random;
use raidlab_targets::{RunDirectory, clean_leftovers};
use raidlab_workload::content;

use cases::{Case, FILE};
use programs::{Halt, may_drop, run, settle};
use table::Row;

/// The program under comparison.
const OURS: &str = env!("CARGO_BIN_EXE_raidlab");
/// The fewest pairs that are a record.
const FEWEST: u32 = 10;
const MIB: usize = 1 << 20;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Compares the rates of bonnie++, dd and fio with those of raidlab on one filesystem
#[derive(Debug, Parser)]
#[command(name = "originals")]
struct Options {
    /// Only figures whose names begin so, such as dd or fio-randread-32 [default: all]
    names: Vec<String>,
    /// How many pairs of each; 10 are the fewest for a record, 6 for an interval
    #[arg(long, value_name = "N", default_value_t = FEWEST,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pairs: u32,
    /// Where: a directory on the filesystem under test
    #[arg(long, value_name = "DIR", default_value = env!("CARGO_TARGET_TMPDIR"))]
    directory: PathBuf,
    /// Bytes of the files of bonnie++ and dd, in whole MiB [default: 4GiB and 2GiB]
    #[arg(long, value_name = "SIZE")]
    size: Option<Size>,
    /// Draw the order within each pair from this seed [default: of the time]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Given by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let handler = ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed));
    if let Err(error) = handler {
        eprintln!("originals: cannot catch Ctrl-C: {error}");
        return ExitCode::FAILURE;
    }
    match compare(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Halt::Interrupted) => {
            eprintln!("originals: interrupted; everything made was removed");
            ExitCode::from(130)
        }
        Err(Halt::Failed(reason)) => {
            eprintln!("originals: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// What a case has measured so far: a row a figure.
struct Measured {
    case: Case,
    rows: Vec<Row>,
}

fn compare(options: &Options) -> Result<(), Halt> {
    if options.size.is_some_and(|size| size.0 == 0 || size.0 % MIB as u64 != 0) {
        return Err(Halt::Failed("--size: give whole MiB, such as 1GiB".into()));
    }
    let clock = || SystemTime::UNIX_EPOCH.elapsed().map_or(1, |time| time.as_nanos() as u64);
    let seed = options.seed.unwrap_or_else(clock);
    let mut measured = chosen(options)?;
    let failed = |error: raidlab_engine::EngineError| Halt::Failed(error.to_string());
    for path in clean_leftovers(&options.directory).map_err(failed)?.removed {
        eprintln!("removed what a killed run left behind: {}", path.display());
    }
    let made = RunDirectory::create_tree(&options.directory).map_err(failed)?;
    let place = made.tree_path().unwrap_or_else(|| made.path().to_path_buf());
    println!("{}", head(options, seed, &measured).join("\n"));
    let mut random = Random::new(seed);
    let mut notes = BTreeSet::new();
    for pair in 1..=options.pairs {
        for one in &mut measured {
            let ours_first = random.next_u64() >> 63 == 1;
            one.pair(pair, ours_first, &place, &mut notes)?;
        }
    }
    drop(made);
    let rows: Vec<Row> = measured.into_iter().flat_map(|one| one.rows).collect();
    let rows: Vec<Row> = rows.into_iter().filter(|row| wanted(options, &row.name)).collect();
    println!("load at the end: {}\n", machine::load());
    println!("{}", table::table(&rows));
    println!(
        "original, ours: medians. ratio: median of ours/original of each pair. within 0.9 to 1.1: the interval\n\
         lies inside; outside: wholly below or above; not shown: neither."
    );
    println!("\nevery pair, original/ours:\n{}", table::pairs(&rows));
    for note in notes {
        println!("note: {note}");
    }
    Ok(())
}

fn wanted(options: &Options, name: &str) -> bool {
    options.names.is_empty() || options.names.iter().any(|start| name.starts_with(start))
}

/// The cases whose figures are wanted and whose originals are there.
fn chosen(options: &Options) -> Result<Vec<Measured>, Halt> {
    let all = cases::all(options.size, may_drop());
    let known: Vec<&str> = all.iter().flat_map(|case| case.figures).map(|it| it.name).collect();
    for name in &options.names {
        if !known.iter().any(|known| known.starts_with(name)) {
            return Err(Halt::Failed(format!("{name}: known are {}", known.join(", "))));
        }
    }
    let mut measured = Vec::new();
    for case in all {
        if !case.figures.iter().any(|figure| wanted(options, figure.name)) {
            continue;
        }
        if version(case.program()).is_none() {
            println!("left out, not installed: {}", case.program());
            continue;
        }
        let row = |figure: &cases::Figure| Row {
            name: figure.name.into(),
            unit: figure.unit.into(),
            ..Row::default()
        };
        measured.push(Measured { rows: case.figures.iter().map(row).collect(), case });
    }
    Ok(measured)
}

/// What a program says of its version.
fn version(program: &str) -> Option<String> {
    match program {
        "bonnie++" => machine::line_with("bonnie++", &[], "Version:"),
        other => machine::line_with(other, &["--version"], other),
    }
}

/// What must be known of the run before its figures.
fn head(options: &Options, seed: u64, measured: &[Measured]) -> Vec<String> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    let mut lines = machine::describe(&options.directory);
    lines.push(format!(
        "command: cargo bench -p raidlab-cli --bench originals -- {}",
        arguments.join(" ")
    ));
    lines.push(format!("raidlab: {}", env!("CARGO_PKG_VERSION")));
    let mut programs: Vec<&str> = measured.iter().map(|one| one.case.program()).collect();
    programs.dedup();
    for program in programs {
        lines.push(format!("{program}: {}", version(program).unwrap_or_default()));
    }
    lines.push(format!(
        "pairs: {} of each, interleaved; order within each drawn from seed {seed}{}",
        options.pairs,
        if options.pairs < FEWEST { "; too few for a record" } else { "" }
    ));
    lines.push(match may_drop() {
        true => "caches: synced and dropped (drop_caches = 3) before each program".into(),
        false => {
            "caches: synced before each program; files that are read dropped (posix_fadvise)".into()
        }
    });
    for one in measured {
        let names: Vec<&str> = one.case.figures.iter().map(|figure| figure.name).collect();
        let (here, program) = (Path::new("DIR"), one.case.program());
        lines.push(format!("\n{}:", names.join(", ")));
        if let Some(arguments) = one.case.prefill(here) {
            lines.push(format!("  {program} {}", arguments.join(" ")));
        }
        lines.push(format!("  {program} {}", one.case.original(here).join(" ")));
        lines.push(format!("  raidlab {}", one.case.ours(here).join(" ")));
        lines.push(format!("  cache: {}", one.case.cache));
    }
    lines.push(format!("\nload at the start: {}", machine::load()));
    lines
}

impl Measured {
    /// Runs both once.
    fn pair(
        &mut self,
        number: u32,
        ours_first: bool,
        place: &Path,
        notes: &mut BTreeSet<String>,
    ) -> Result<(), Halt> {
        let (original, ours) = if ours_first {
            let ours = self.ours(place, notes)?;
            (self.original(place)?, ours)
        } else {
            let original = self.original(place)?;
            (original, self.ours(place, notes)?)
        };
        for ((row, original), ours) in self.rows.iter_mut().zip(original).zip(ours) {
            match (original, ours) {
                (Some(original), Some(ours)) => {
                    let order = if ours_first { "ours first" } else { "original first" };
                    let (name, unit, ratio) = (&row.name, &row.unit, ours / original);
                    eprintln!(
                        "pair {number}, {order}: {name} {original:.1} : {ours:.1} {unit}, ratio {ratio:.3}"
                    );
                    row.pairs.push((original, ours));
                }
                _ => row.untold += 1,
            }
        }
        Ok(())
    }

    fn original(&self, place: &Path) -> Result<Vec<Option<f64>>, Halt> {
        let file = place.join(FILE);
        if let Some(size) = self.case.needs {
            fill(&file, size)?;
        }
        let program = Path::new(self.case.program());
        if let Some(arguments) = self.case.prefill(place) {
            run(program, &arguments, &INTERRUPTED)?;
        }
        settle(&file, &INTERRUPTED)?;
        let printed = run(program, &self.case.original(place), &INTERRUPTED)?;
        let figures = self.case.parse(&printed.output, &printed.errors);
        empty(place)?;
        figures.map_err(|reason| Halt::Failed(format!("{}: {reason}", program.display())))
    }

    fn ours(&self, place: &Path, notes: &mut BTreeSet<String>) -> Result<Vec<Option<f64>>, Halt> {
        settle(&place.join(FILE), &INTERRUPTED)?;
        let printed = run(Path::new(OURS), &self.case.ours(place), &INTERRUPTED)?;
        let told = parse::ours(&printed.output, &self.case.metrics());
        let told = told.map_err(|reason| Halt::Failed(format!("raidlab: {reason}")))?;
        let first = self.case.figures.first().map_or("", |figure| figure.name);
        notes.insert(format!("raidlab says of memory: {}", told.memory));
        notes.extend(
            told.warnings.iter().map(|warning| format!("{first}: raidlab warns: {warning}")),
        );
        Ok(told.figures)
    }
}

/// Makes the file that an original reads, of bytes that nothing below can compress, as raidlab makes its own.
fn fill(path: &Path, size: Size) -> Result<(), Halt> {
    let failed = |error| Halt::Failed(format!("{}: {error}", path.display()));
    let mut file = File::create(path).map_err(failed)?;
    let mut bytes = vec![0; MIB];
    for at in (0..size.0).step_by(MIB) {
        if INTERRUPTED.load(Ordering::Relaxed) {
            return Err(Halt::Interrupted);
        }
        content::fill(1, at, &mut bytes);
        file.write_all(&bytes).map_err(failed)?;
    }
    file.sync_all().map_err(failed)
}

/// Removes what an original left in the directory, which is all ours.
fn empty(place: &Path) -> Result<(), Halt> {
    let failed = |error| Halt::Failed(format!("{}: {error}", place.display()));
    for entry in fs::read_dir(place).map_err(failed)? {
        fs::remove_file(entry.map_err(failed)?.path()).map_err(failed)?;
    }
    Ok(())
}
