//! Successive halving against looking at everything, on drawn questions; and orders that every storage engineer knows.

use raidlab_advise::{
    Candidate, Costs, Finalist, InTurn, Mode, Prefer, Profile, Search, Wanted, candidates, front,
    score, weights,
};
use raidlab_random::Random;

fn wanted(drives: u16, drive: &str, work: &str) -> Wanted {
    let drive = raidlab_models::load(drive).expect("compiled in");
    let mut wanted = Wanted::new(drives..=drives, drive, Profile::named(work).expect("there"));
    wanted.requests = 600;
    wanted
}

/// A question by a seed.
fn drawn(seed: u64) -> Wanted {
    let mut random = Random::new(seed);
    let mut of = |list: &[&'static str]| list[random.below(list.len() as u64) as usize];
    let drive = of(&["nas-8tb-7200", "nas-4tb-5400", "dc-6tb-7200", "desktop-2tb-7200"]);
    let work = of(&["nas", "media", "capture", "vm", "database", "random-read"]);
    let drives = 4 + random.below(7) as u16;
    let mut wanted = wanted(drives, drive, work);
    wanted.requests = raidlab_advise::REQUESTS;
    wanted.prefer = Prefer::ALL[random.below(4) as usize];
    wanted.limits.survive = random.below(2) as u16;
    wanted.seed = seed;
    wanted
}

/// The advice of a search that halves, beside that of one that looks at everything at full length. Both run who they
/// chose again, on the same seeds, and are compared by these runs alone, as users are.
struct Halved {
    candidates: usize,
    /// Requests that were simulated until the last runs, as a part of those of everything.
    spent: f64,
    /// How many there are in the front of who everything chose, and of how many halving has one that is nowhere worse
    /// by more than a step.
    front: (usize, usize),
    /// By how many steps, all objectives together, the best of halving is behind the best of everything.
    behind: f64,
    /// Halving has one that is nowhere worse by more than a step than the best of everything.
    is_near: bool,
}

impl Halved {
    /// The same answer, or one that differs by less than anybody minds.
    fn is_good(&self) -> bool {
        self.is_near || self.behind <= 1.0
    }
}

fn halved(wanted: &Wanted) -> Halved {
    const FRESH: u64 = 99;
    let found = candidates(wanted);
    let weights = weights(wanted.prefer, false);
    let costs = |last: Vec<Finalist>| -> Vec<Costs> { last.iter().map(|one| one.costs).collect() };
    let mut all = Search::new(wanted, &InTurn, &found.all, weights);
    let looked: Vec<(usize, Costs)> =
        all.exhaustive(7).expect("runs").into_iter().enumerate().collect();
    let mut halved = Search::new(wanted, &InTurn, &found.all, weights);
    let left = halved.halved(7).expect("runs");
    let spent = halved.spent.requests as f64 / all.spent.requests as f64;
    let truth = costs(all.finals(&looked, FRESH).expect("runs"));
    let last = costs(halved.finals(&left, FRESH).expect("runs"));
    let front: Vec<Costs> = front(&truth, &weights).iter().map(|at| truth[*at]).collect();
    let no_worse = |one: &Costs, than: &Costs| one.iter().zip(than).all(|(a, b)| *a <= b + 1.0);
    let covered = front.iter().filter(|than| last.iter().any(|one| no_worse(one, than)));
    let scores = last.iter().map(|one| score(one, &weights));
    Halved {
        candidates: found.all.len(),
        spent,
        front: (front.len(), covered.count()),
        behind: scores.fold(f64::INFINITY, f64::min) - score(&front[0], &weights),
        is_near: last.iter().any(|one| no_worse(one, &front[0])),
    }
}

#[test]
fn halving_finds_the_best_of_a_few_questions() {
    for seed in [5, 11] {
        let one = halved(&Wanted { requests: 1_200, ..drawn(seed) });
        assert!(one.is_good(), "question {seed}: {:.2} steps behind", one.behind);
        assert!(one.spent < 0.25, "{:.2} of the requests of {}", one.spent, one.candidates);
    }
}

#[test]
#[ignore = "minutes: cargo test --release -p raidlab-advise --test halving -- --ignored --nocapture"]
fn halving_against_everything_on_200_questions() {
    let count =
        std::env::var("RAIDLAB_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(200u64);
    let (mut good, mut spent, mut fronts) = (0, 0.0, (0, 0));
    for seed in 1..=count {
        let wanted = drawn(seed);
        let one = halved(&wanted);
        println!(
            "question {seed}: {} {}, {} candidates, {:.0} % of the requests, {} of {} of the front, \
             {:.2} steps behind{}",
            wanted.profile.name,
            wanted.prefer.name(),
            one.candidates,
            one.spent * 100.0,
            one.front.1,
            one.front.0,
            one.behind,
            if one.is_good() { "" } else { ": not found" }
        );
        good += u64::from(one.is_good());
        spent += one.spent;
        fronts = (fronts.0 + one.front.0, fronts.1 + one.front.1);
    }
    println!("{good} of {count} found; {:.1} % of the requests", spent / count as f64 * 100.0);
    println!("{} of {} of all fronts", fronts.1, fronts.0);
    assert!(good as f64 >= 0.95 * count as f64);
    assert!(spent <= 0.2 * count as f64);
}

/// How far two orders agree: 1 the same, -1 the reverse.
fn kendall(known: &[usize], values: &[f64]) -> f64 {
    let (mut agree, mut pairs) = (0.0, 0.0);
    for one in 0..values.len() {
        for other in one + 1..values.len() {
            if known[one] != known[other] {
                let known = known[one] < known[other];
                agree += if (values[one] > values[other]) == known { 1.0 } else { -1.0 };
                pairs += 1.0;
            }
        }
    }
    agree / pairs
}

/// Small random writes: raid10 before raid5 before raid6, as 2, 4 and 6 I/Os of drives make them; raid0 before all.
#[test]
fn known_orders_hold() {
    let layouts = ["raid0(6)", "raid10(6)", "raid5(6)", "raid6(6)"];
    let all: Vec<Candidate> = layouts
        .iter()
        .map(|name| Candidate { layout: name.parse().expect("one"), spares: 0, mode: Mode::None })
        .collect();
    for work in ["database", "vm"] {
        let mut wanted = wanted(6, "nas-8tb-7200", work);
        wanted.limits.survive = 0;
        let weights = weights(Prefer::Balance, false);
        let costs = Search::new(&wanted, &InTurn, &all, weights).exhaustive(5).expect("runs");
        let speeds: Vec<f64> = costs.iter().map(|one| -one[0]).collect();
        assert!(kendall(&[0, 1, 2, 3], &speeds) >= 0.8, "{work}: {speeds:?}");
        // Any SSD answers random reads sooner than any hard disk.
        let ssd = Wanted { drive: raidlab_models::load("ssd-sata-1tb").expect("there"), ..wanted };
        let tails = Search::new(&ssd, &InTurn, &all[1..2], weights).exhaustive(5).expect("runs");
        assert!(tails[0][1] < costs[1][1] - 10.0);
    }
}

/// The costs of layouts at a kind of work, at full length.
fn costs(wanted: &Wanted, names: &[&str]) -> Vec<Costs> {
    let all: Vec<Candidate> = names
        .iter()
        .map(|name| Candidate { layout: name.parse().expect("one"), spares: 0, mode: Mode::None })
        .collect();
    let weights = weights(Prefer::Balance, false);
    Search::new(wanted, &InTurn, &all, weights).exhaustive(5).expect("runs")
}

/// More that is known of layouts: small reads are as fast on all of them; many streams at once want chunks as large as
/// what they ask for; nothing but speed is won by having no redundancy. (That one wide group has a longer p99 with a
/// drive missing than two is known of a given load; of so many in flight it is the other way round, as they gather on
/// the survivors of one group.)
#[test]
fn known_differences_hold() {
    let mut reads = wanted(6, "nas-8tb-7200", "random-read");
    reads.limits.survive = 0;
    let found = costs(&reads, &["raid0(6)", "raid10(6)", "raid5(6)", "raid6(6)"]);
    for one in &found {
        // Mirrors choose the copy that is nearer: up to a quarter more.
        assert!((one[0] - found[0][0]).abs() < 5.0, "steps of 5 %: {found:?}");
    }
    assert!(found[1..].iter().all(|one| one[3] < found[0][3]), "risk: {found:?}");
    let streams = wanted(6, "nas-8tb-7200", "nas");
    let found = costs(&streams, &["raid6(6) chunk=1MiB", "raid6(6) chunk=16KiB"]);
    assert!(found[0][0] < found[1][0], "speed of chunks: {found:?}");
}
