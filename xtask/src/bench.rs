//! `bench --against`: today's code and that of a commit, measured in turns.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::child;
use crate::targets::{self, Bench, Built};

mod older;
mod pairs;

use older::Older;
use pairs::{Rounds, Row};

/// The fewest rounds that are a record; of seven, the interval is the whole range.
const FEWEST: usize = 7;

/// What was asked for.
#[derive(Debug, PartialEq)]
struct Options {
    commit: String,
    names: Vec<String>,
    rounds: usize,
    /// Percent.
    limit: Option<f64>,
}

impl Options {
    fn parse(arguments: &[&str]) -> Result<Self, String> {
        let mut options =
            Self { commit: String::new(), names: Vec::new(), rounds: FEWEST, limit: None };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match *argument {
                "--against" => options.commit = (*value()?).to_owned(),
                "--rounds" => {
                    let rounds = value()?.parse().ok().filter(|rounds| *rounds >= FEWEST);
                    options.rounds =
                        rounds.ok_or(format!("--rounds: a number from {FEWEST} on"))?;
                }
                "--limit" => {
                    let limit = value()?.parse().ok().filter(|limit: &f64| *limit >= 0.0);
                    options.limit = Some(limit.ok_or("--limit: percent, such as 3")?);
                }
                flag if flag.starts_with('-') => return Err(format!("unknown option {flag}")),
                name => options.names.push(name.to_owned()),
            }
        }
        Ok(options)
    }
}

/// A bench of both sides and what its rounds gave.
struct Pair {
    name: String,
    now: PathBuf,
    then: PathBuf,
    rounds: Rounds,
}

/// Compares with a commit; false if a case is beyond the limit.
pub(crate) fn against(root: &Path, arguments: &[&str]) -> io::Result<bool> {
    let options = Options::parse(arguments).map_err(io::Error::other)?;
    let commit = older::resolve(root, &options.commit)?;
    child::catch_signals()?;
    let benches = chosen(targets::benches(root)?, &options.names).map_err(io::Error::other)?;
    let older = Older::check_out(root, &commit)?;
    let mut pairs = Vec::new();
    for bench in benches {
        eprintln!("xtask: building {} of now and of {}", bench.name, &commit[..7]);
        match pair(root, &older, &bench)? {
            Ok(pair) => pairs.push(pair),
            // A bench that was asked for by name must be there.
            Err(why) if options.names.is_empty() => eprintln!("xtask: left out: {why}"),
            Err(why) => return Err(io::Error::other(why)),
        }
    }
    if pairs.is_empty() {
        let message = format!("{} has no bench that can be compared", &commit[..7]);
        return Err(io::Error::other(message));
    }
    for round in 0..options.rounds {
        for pair in &mut pairs {
            eprintln!("xtask: round {} of {}: {}", round + 1, options.rounds, pair.name);
            pair.measure(&older, round)?;
        }
    }
    Ok(report(&pairs, &commit, &options))
}

/// Those with these names, or all; only those that print lines.
fn chosen(mut benches: Vec<Bench>, names: &[String]) -> Result<Vec<Bench>, String> {
    benches.retain(Bench::prints_lines);
    let known: Vec<&str> = benches.iter().map(|bench| &bench.name[..]).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&&name[..])) {
        return Err(format!("no bench `{unknown}` prints lines; there are {}", known.join(", ")));
    }
    benches.retain(|bench| names.is_empty() || names.contains(&bench.name));
    Ok(benches)
}

fn pair(root: &Path, older: &Older, bench: &Bench) -> io::Result<Result<Pair, String>> {
    let now = match targets::build(crate::cargo(root).args(["bench", "--no-run"]), bench)? {
        Built::Program(program) => program,
        Built::Error(why) => {
            return Err(io::Error::other(format!("{} does not compile:\n{why}", bench.name)));
        }
    };
    Ok(older.build(bench)?.map(|then| {
        if let Some(note) = then.note {
            eprintln!("xtask: {note}");
        }
        let (name, rounds) = (bench.name.clone(), Rounds::default());
        Pair { name, now, then: then.program, rounds }
    }))
}

impl Pair {
    /// Runs both sides; which goes first alternates.
    ///
    /// A program runs from a new copy in one place: one and the same program differs by 2 % from itself in
    /// another file, in every run of it, as its pages lie elsewhere in memory.
    fn measure(&mut self, older: &Older, round: usize) -> io::Result<()> {
        let stand = older.stand();
        let run = |program: &Path| {
            let _ = fs::remove_file(&stand);
            fs::copy(program, &stand)?;
            let (status, text) = child::output(Command::new(&stand).arg("--lines"))?;
            let failed = |why: String| io::Error::other(format!("{}: {why}", program.display()));
            if !status.success() {
                return Err(failed(status.to_string()));
            }
            pairs::read(&text).map_err(failed)
        };
        let (now, then) = if round.is_multiple_of(2) {
            let now = run(&self.now)?;
            (now, run(&self.then)?)
        } else {
            let then = run(&self.then)?;
            (run(&self.now)?, then)
        };
        self.rounds.add(&now, &then);
        Ok(())
    }
}

/// Prints the tables; false if a case is beyond the limit.
fn report(pairs: &[Pair], commit: &str, options: &Options) -> bool {
    print!("{}", pairs::head(&commit[..7]));
    let mut beyond = Vec::new();
    let mut coverage = None;
    for pair in pairs {
        let rows = pair.rounds.rows();
        print!("{}", pairs::table(&pair.name, &rows));
        if !pair.rounds.unpaired.is_empty() {
            println!("  not on both sides: {}", pair.rounds.unpaired.join("; "));
        }
        coverage = rows.first().map(|row| row.interval.coverage).or(coverage);
        let is_beyond = |row: &&Row| options.limit.is_some_and(|limit| row.is_beyond(limit));
        beyond.extend(
            rows.iter().filter(is_beyond).map(|row| format!("{}: {}", pair.name, row.name)),
        );
    }
    if let Some(coverage) = coverage {
        println!(
            "{} rounds in turns. ratio: median of now/{} of each round; its interval is between two rounds and\n\
             covers the median with {:.1} %. ~: shows no difference.",
            options.rounds,
            &commit[..7],
            coverage * 100.0
        );
    }
    if let Some(limit) = options.limit {
        beyond.iter().for_each(|case| println!("more than {limit} % slower: {case}"));
    }
    beyond.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(&line.split(' ').collect::<Vec<_>>())
    }

    #[test]
    fn options_come_in_any_order() {
        let options = parse("planner --limit 2.5 --against abc engine --rounds 9").expect("fine");
        let names = ["planner", "engine"].map(str::to_owned).to_vec();
        let expected = Options { commit: "abc".into(), names, rounds: 9, limit: Some(2.5) };
        assert_eq!(options, expected);
        let plain = parse("--against abc").expect("fine");
        assert_eq!((plain.rounds, plain.limit, plain.names.len()), (7, None, 0));
    }

    #[test]
    fn options_that_cannot_be_are_refused_by_name() {
        for (line, named) in [
            ("--against", "--against needs a value"),
            ("--against a --rounds 6", "--rounds: a number from 7 on"),
            ("--against a --rounds many", "--rounds"),
            ("--against a --limit -1", "--limit"),
            ("--against a --limit NaN", "--limit"),
            ("--against a --quick", "unknown option --quick"),
        ] {
            assert!(parse(line).is_err_and(|error| error.contains(named)), "{line}");
        }
    }

    #[test]
    fn an_unknown_bench_is_refused_with_those_there_are() {
        let names =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let here = targets::benches(&crate::root()).expect("cargo knows them");
        let all = chosen(here.clone(), &[]).expect("all");
        assert!(all.len() >= 6 && all.iter().all(|bench| bench.name != "originals"), "{all:?}");
        let one = chosen(here.clone(), &names(&["planner"])).expect("there");
        assert!(one.len() == 1 && one[0].package == "raidlab-core", "{one:?}");
        let error = chosen(here, &names(&["planner", "plan"])).expect_err("there is none");
        assert!(error.contains("`plan`") && error.contains("planner"), "{error}");
    }
}
