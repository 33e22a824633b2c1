//! Mutation testing with the mutants of cargo-mutants: a sample that nobody chose, compiled once, each behind a runtime
//! switch, and run against the tests that come by it; who survives goes on to `raidlab check`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Instant;

mod diffs;
mod list;
mod outcome;
mod report;
mod sample;
mod switch;
mod tree;
mod trial;

use list::Mutant;
use outcome::{Cache, Kind, Outcome};
use report::{Equivalents, Tried};
use tree::{Program, Tree, Way};
use trial::{Checker, Known, Stand};

/// Below the root of the repository: the copy, what is built of it, and what earlier runs found.
const PLACE: &str = "target/mutants";
/// Survivors that change nothing, with reasons.
const EQUIVALENTS: &str = "xtask/equivalents.txt";
/// How many are run at a time.
const JOBS: usize = 2;

/// Which mutants are tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// So many, by a seed.
    Sample { seed: u64, count: usize },
    /// The first of so many parts of all, and so on.
    Shard { part: usize, of: usize },
    /// The diffs in a directory.
    Diffs(PathBuf),
}

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    which: Which,
    markdown: Option<PathBuf>,
    /// Whether nothing is run: what earlier runs found is reported.
    known_only: bool,
}

impl Options {
    /// Reads the arguments of the command; `None` where they make no sense.
    pub(crate) fn parse(arguments: &[&str]) -> Option<Self> {
        let (mut seed, mut count, mut shard, mut diffs) = (None, None, None, None);
        let mut markdown = None;
        let known_only = arguments.contains(&"--known");
        let arguments: Vec<&str> =
            arguments.iter().copied().filter(|it| *it != "--known").collect();
        for pair in arguments.chunks(2) {
            let [name, value] = pair else { return None };
            match *name {
                "--seed" => seed = Some(value.parse().ok()?),
                "--count" => count = Some(value.parse().ok()?),
                "--shard" => {
                    let (part, of) = value.split_once('/')?;
                    shard = Some((part.parse().ok()?, of.parse().ok()?));
                }
                "--diffs" => diffs = Some(value.into()),
                "--markdown" => markdown = Some(value.into()),
                _ => return None,
            }
        }
        let which = match (seed, count, shard, diffs) {
            (Some(seed), count, None, None) => Which::Sample { seed, count: count.unwrap_or(400) },
            (None, None, Some((part, of)), None) if 1 <= part && part <= of => {
                Which::Shard { part, of }
            }
            (None, None, None, Some(directory)) => Which::Diffs(directory),
            _ => return None,
        };
        Some(Self { which, markdown, known_only })
    }
}

/// Tries the mutants and prints what came of them; true unless something went wrong on the way.
pub(crate) fn run(root: &Path, options: &Options) -> io::Result<bool> {
    let text = fs::read_to_string(root.join(EQUIVALENTS)).unwrap_or_default();
    let equivalents = Equivalents::parse(&text)
        .map_err(|error| io::Error::other(format!("{EQUIVALENTS}: {error}")))?;
    let of_population = |draw: &dyn Fn(Vec<Mutant>) -> Vec<Mutant>| {
        let all = list::list(root)?;
        for name in equivalents.not_of(&hashed(root, equivalents.named(&all))?) {
            println!(
                "mutants: not what {EQUIVALENTS} speaks of any more, to be read again: {name}"
            );
        }
        let total = all.len();
        let drawn = draw(all);
        println!("mutants: {} of the {total} in the population", drawn.len());
        io::Result::Ok(drawn)
    };
    let mutants = match &options.which {
        Which::Sample { seed, count } => of_population(&|all| sample::draw(all, *count, *seed))?,
        Which::Shard { part, of } => of_population(&|all| sample::shard(all, *part, *of))?,
        Which::Diffs(directory) => diffs::read(root, directory)?,
    };
    let is_planted = matches!(options.which, Which::Diffs(_));
    let tested = if is_planted { tree::all_packages(root)? } else { tree::tested() };
    let tried = Run::new(root, mutants, tested)?.finish(options.known_only)?;
    let report = match is_planted {
        true => report::one_by_one(&tried),
        false => report::markdown(&tried, &equivalents),
    };
    println!("\n{report}");
    if let Some(path) = &options.markdown {
        fs::write(path, &report)?;
    }
    Ok(true)
}

/// A hash that is the same everywhere and always.
fn hash(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    let sum = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // The last bytes have not reached the upper bits yet.
    let mixed = (sum ^ sum >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed ^ mixed >> 32
}

/// The mutants of one run, and what is known of them.
struct Run {
    root: PathBuf,
    cache: Mutex<Cache>,
    /// All, with the hashes of their functions.
    mutants: Vec<(Mutant, String)>,
    /// Whose tests they meet.
    tested: Vec<String>,
}

impl Run {
    fn new(root: &Path, mutants: Vec<Mutant>, tested: Vec<String>) -> io::Result<Self> {
        let cache = Mutex::new(Cache::open(root, &root.join(PLACE))?);
        let mutants = hashed(root, mutants)?;
        Ok(Self { root: root.to_owned(), cache, mutants, tested })
    }

    /// Tries those of which nothing is known, unless only what is known is wanted.
    fn finish(self, known_only: bool) -> io::Result<Vec<Tried>> {
        let is_unknown = |number: &usize| self.cache().get(&key(&self.mutants[*number])).is_none();
        let mut unknown: Vec<usize> = (0..self.mutants.len()).filter(is_unknown).collect();
        if known_only && !unknown.is_empty() {
            println!("mutants: {} have not been tried and are left out", unknown.len());
        } else if !unknown.is_empty() {
            // In no order of place, so that a run that is ended early is a sample too.
            unknown.sort_by_key(|number| self.mutants[*number].0.order(0));
            println!("mutants: {} to be tried; the others are known", unknown.len());
            self.try_all(&unknown)?;
        }
        let cache = self.cache.into_inner().expect("nobody panics with it");
        let tried = self.mutants.into_iter().filter_map(|it| {
            let outcome = cache.get(&key(&it))?.clone();
            Some(Tried { mutant: it.0, function: it.1, outcome })
        });
        Ok(tried.collect())
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().expect("nobody panics with it")
    }

    fn note(&self, number: usize, outcome: &Outcome) -> io::Result<()> {
        let one = &self.mutants[number];
        println!("{} ({}) {}", outcome.kind.name(), outcome.by, one.0.title());
        self.cache().put(&key(one), outcome)
    }

    /// Lays all switches, so that they are the same as in a run that was ended, and tries those of `numbers`.
    fn try_all(&self, numbers: &[usize]) -> io::Result<()> {
        let place = self.root.join(PLACE);
        let mutants: Vec<Mutant> = self.mutants.iter().map(|(mutant, _)| mutant.clone()).collect();
        let mut tree = Tree::lay(&self.root, &place, &mutants, &self.tested)?;
        println!("mutants: building the tests, with {} switches ...", mutants.len());
        let begun = Instant::now();
        let programs = tree.build()?;
        let took = begun.elapsed().as_secs();
        println!("mutants: built in {took} s; running all without any mutant ...");
        let temporary = place.join("temporary");
        let stand = Stand { tree: tree.path.clone(), temporary, machine: Mutex::new(()) };
        let known = without(&stand, programs)?;
        let (mut rebuilt, mut switched) = (Vec::new(), Vec::new());
        for number in numbers.iter().copied() {
            match tree.ways[number] {
                Way::Unviable => self.note(number, &Outcome::new(Kind::Unviable, ""))?,
                Way::Rebuilt => rebuilt.push(number),
                Way::Switched(_) => switched.push(number),
            }
        }
        println!("mutants: {} by switches, {} by builds", switched.len(), rebuilt.len());
        println!("mutants: building the checker ...");
        let checker = Checker::new(&stand, tree.build_checker()?)?;
        let survived = side_by_side(&switched, |number| {
            let is_const = tree.is_const(number);
            let outcome =
                self.by_switch(&stand, &known, (!is_const).then_some(&checker), number)?;
            if is_const && outcome.kind == Kind::Survived {
                return Ok(Some(number));
            }
            self.note(number, &outcome).map(|()| None)
        })?;
        rebuilt.extend(survived.into_iter().flatten());
        self.by_builds(&stand, &mut tree, &known, &rebuilt)
    }

    /// Runs the tests that come by a mutant, the quickest first, and then the checker if that does.
    fn by_switch(
        &self,
        stand: &Stand,
        known: &[Known],
        checker: Option<&Checker>,
        number: usize,
    ) -> io::Result<Outcome> {
        let mut programs: Vec<&Known> =
            known.iter().filter(|it| it.reached.contains(&number)).collect();
        programs.sort_by_key(|it| it.took);
        let outcome = stand.with(number, &programs)?;
        match checker {
            Some(checker) if outcome.kind == Kind::Survived => checker.run(stand, number),
            _ => Ok(outcome),
        }
    }

    /// Builds the tests of a mutant's package anew for each of those that cannot be switched, and runs them.
    fn by_builds(
        &self,
        stand: &Stand,
        tree: &mut Tree<'_>,
        known: &[Known],
        numbers: &[usize],
    ) -> io::Result<()> {
        for number in numbers.iter().copied() {
            tree.put(number)?;
            let outcome = match tree.build_package(self.mutants[number].0.package())? {
                None => Outcome::new(Kind::Unviable, ""),
                Some(programs) => {
                    let programs = Known::anew(programs, known);
                    stand.with(number, &programs.iter().collect::<Vec<_>>())?
                }
            };
            tree.put_back(number)?;
            self.note(number, &Outcome { is_rebuilt: true, ..outcome })?;
        }
        Ok(())
    }
}

/// Mutants with the hashes of their functions.
fn hashed(root: &Path, mutants: Vec<Mutant>) -> io::Result<Vec<(Mutant, String)>> {
    let sources = tree::sources(root, &mutants)?;
    let function = |mutant: &Mutant| {
        let source = &sources[&mutant.file[..]];
        format!("{:016x}", hash(&[source.around(&source.bytes(&mutant.span))]))
    };
    let functions: Vec<String> = mutants.iter().map(function).collect();
    Ok(mutants.into_iter().zip(functions).collect())
}

/// What a mutant is known by: its function, and what it does there.
fn key((mutant, function): &(Mutant, String)) -> String {
    format!("{function} {}", mutant.name)
}

fn without(stand: &Stand, programs: Vec<Program>) -> io::Result<Vec<Known>> {
    let numbers: Vec<usize> = (0..programs.len()).collect();
    side_by_side(&numbers, |number| stand.without(programs[number].clone()))
}

/// Does something for each number, several at a time; up to the first error.
fn side_by_side<T: Send>(
    numbers: &[usize],
    each: impl Fn(usize) -> io::Result<T> + Sync,
) -> io::Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(number) = numbers.get(next.fetch_add(1, Ordering::Relaxed)) {
            match each(*number) {
                Ok(result) => done.push(Ok(result)),
                Err(error) => {
                    next.store(numbers.len(), Ordering::Relaxed);
                    done.push(Err(error));
                }
            }
        }
        done
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..JOBS).map(|_| scope.spawn(work)).collect();
        let done = workers.into_iter().flat_map(|it| it.join().expect("no worker panics"));
        done.collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_or_a_shard_is_asked_for() {
        let which = |text: &str| {
            let arguments: Vec<&str> = text.split_whitespace().collect();
            Options::parse(&arguments).map(|options| options.which)
        };
        assert_eq!(which("--seed 3"), Some(Which::Sample { seed: 3, count: 400 }));
        assert_eq!(which("--count 9 --seed 3"), Some(Which::Sample { seed: 3, count: 9 }));
        assert_eq!(which("--shard 2/8"), Some(Which::Shard { part: 2, of: 8 }));
        for wrong in ["", "--seed", "--seed x", "--count 9", "--shard 0/8", "--shard 9/8"] {
            assert_eq!(which(wrong), None, "{wrong}");
        }
        assert_eq!(which("--seed 3 --shard 1/2"), None);
        assert_eq!(which("--diffs planted"), Some(Which::Diffs("planted".into())));
        assert_eq!(which("--diffs planted --seed 3"), None);
        let options = Options::parse(&["--known", "--seed", "1", "--markdown", "a.md"]);
        let options = options.expect("is right");
        assert_eq!((options.markdown, options.known_only), (Some("a.md".into()), true));
    }

    #[test]
    fn hashes_stay_as_they_are() {
        assert_eq!(hash(&[]), hash(&[]));
        assert_ne!(hash(&["ab", "c"]), hash(&["a", "bc"]));
        // Samples of earlier seeds would be others.
        assert_eq!(hash(&["1", "a"]), 5_144_507_875_148_628_899);
    }

    #[test]
    fn work_side_by_side_ends_with_the_first_error() {
        let numbers: Vec<usize> = (0..100).collect();
        let mut done = side_by_side(&numbers, Ok).expect("nothing fails");
        done.sort_unstable();
        assert_eq!(done, numbers);
        let failing = |number| if number == 50 { Err(io::Error::other("no")) } else { Ok(()) };
        assert_eq!(side_by_side(&numbers, failing).expect_err("one fails").to_string(), "no");
    }
}
