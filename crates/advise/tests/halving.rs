//! Successive halving against looking at everything, on drawn questions; and orders that every storage engineer knows.

use raidlab_advise::{
    Candidate, Costs, Measured, Mode, NoAdvice, Pool, Prefer, Profile, Search, Wanted, candidates,
    distance, front, score, weights,
};
use raidlab_random::Random;

/// One run after the other.
struct InTurn;

impl Pool for InTurn {
    fn run(
        &self,
        count: usize,
        _what: &str,
        one: &(dyn Fn(usize) -> Result<Measured, String> + Sync),
    ) -> Result<Vec<Measured>, NoAdvice> {
        (0..count).map(|job| one(job).map_err(NoAdvice::Failed)).collect()
    }
}

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
    wanted.prefer = Prefer::ALL[random.below(4) as usize];
    wanted.limits.survive = random.below(2) as u16;
    wanted.seed = seed;
    wanted
}

/// Whether what halving left has something as good as the best that all looks found, within a step of each objective,
/// or of a score that is no step behind; and the part of the requests it took.
fn halves_well(seed: u64) -> (bool, f64, usize) {
    let wanted = drawn(seed);
    let found = candidates(&wanted);
    let weights = weights(wanted.prefer, false);
    let mut all = Search::new(&wanted, &InTurn, &found.all, weights);
    let truth = all.exhaustive(99).expect("runs");
    let mut halved = Search::new(&wanted, &InTurn, &found.all, weights);
    let left = halved.halved(7).expect("runs");
    let best = front(&truth, &weights)[0];
    // What is left, by the same runs as everything.
    let near = left.iter().any(|(at, _)| {
        let one: &Costs = &truth[*at];
        distance(one, &truth[best]) <= 1.0
            || score(one, &weights) <= score(&truth[best], &weights) + 1.0
    });
    (near, halved.spent.requests as f64 / all.spent.requests as f64, found.all.len())
}

#[test]
fn halving_finds_the_best_of_a_few_questions() {
    let (near, share, count) = halves_well(4);
    assert!(near, "what is left is behind the best by more than a step");
    assert!(share < 0.7, "{share} of the requests for {count} candidates");
}

#[test]
#[ignore = "minutes: cargo test --release -p raidlab-advise --test halving -- --ignored --nocapture"]
fn halving_against_everything_on_200_questions() {
    let count =
        std::env::var("RAIDLAB_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(200u64);
    let (mut good, mut spent, mut large) = (0, 0.0, Vec::new());
    for seed in 1..=count {
        let (near, share, candidates) = halves_well(seed);
        println!(
            "question {seed}: {candidates} candidates, {:.0} % of the requests, found: {near}",
            share * 100.0
        );
        good += u64::from(near);
        spent += share;
        if candidates >= 60 {
            large.push(share);
        }
    }
    let mean = spent / count as f64;
    println!("{good} of {count}; {:.0} % of the requests", mean * 100.0);
    let of_large = large.iter().sum::<f64>() / large.len().max(1) as f64;
    println!(
        "with 60 candidates or more: {:.0} % of the requests ({} questions)",
        of_large * 100.0,
        large.len()
    );
    assert!(good as f64 >= 0.95 * count as f64);
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
