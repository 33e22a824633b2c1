//! Verdicts, changes and leads of finalists whose runs a test says.

use super::*;
use crate::candidate::Mode;
use crate::made_up::{advice, finalist, wanted};

#[test]
fn a_bitmap_is_kept_where_it_costs_less_than_a_step() {
    let kept = |work: &str, speed: f64, tail: f64| {
        let wanted = wanted(4, "nas-8tb-7200", work);
        let mut advice = advice(vec![finalist(&wanted, "raid5(4)", &[1], [Some(1), Some(1)])]);
        advice.consistency = vec![
            Consistency { mode: Mode::PartialParity, speed: 1.0, tail: 1.0 },
            Consistency { mode: Mode::Bitmap, speed, tail },
        ];
        advice.kept(&wanted)
    };
    assert_eq!(kept("vm", 0.96, 1.09), Mode::Bitmap);
    assert_eq!(kept("vm", 0.95, 1.0), Mode::None, "5 % slower");
    assert_eq!(kept("vm", 1.0, 1.11), Mode::None, "p99 11 % longer");
    assert_eq!(kept("surveillance", 0.5, 2.0), Mode::Bitmap, "it keeps up anyway");
}

#[test]
fn how_surely_one_is_better_has_grades() {
    let lean = |sure: f64, front: &[usize]| {
        let wanted = wanted(4, "nas-8tb-7200", "vm");
        let one = finalist(&wanted, "raid5(4)", &[1], [Some(1), Some(1)]);
        let mut advice = advice(vec![one.clone(), one]);
        (advice.verdict.sure, advice.front) = (sure, front.to_vec());
        advice.lean()
    };
    let both = [0, 1];
    assert_eq!(
        [0.5, 0.60, 0.61, 0.79].map(|sure| lean(sure, &both)),
        [Lean::TossUp, Lean::TossUp, Lean::Leaning, Lean::Leaning]
    );
    assert_eq!(
        [0.80, SURE - 0.001, SURE].map(|sure| lean(sure, &both)),
        [Lean::Probably, Lean::Probably, Lean::Plain]
    );
    assert_eq!(lean(0.5, &[0]), Lean::Plain, "the other is dominated");
}

#[test]
fn what_is_best_otherwise_is_the_best_of_those_that_can() {
    let wanted = wanted(8, "nas-8tb-7200", "vm");
    let of = |layout: &str, rate| finalist(&wanted, layout, &[rate], [Some(10), Some(10)]);
    let finalists = [of("raid10(8)", 300), of("raid5(7) + spare", 200), of("raid6(8)", 100)];
    let weights = weights(wanted.prefer, false);
    let then = |when: &str| {
        let found = changes(&wanted, &finalists, &weights);
        found.iter().find(|one| one.when == when).map(|one| one.then)
    };
    assert_eq!(then("if speed counts most"), Some(0));
    assert_eq!(then("if space counts most"), Some(1), "with as much space as raid6, and faster");
    let more = format!("if any {} drives may be lost", wanted.limits.survive + 1);
    assert_eq!(then(&more), if wanted.limits.survive == 0 { Some(0) } else { Some(2) });
    assert_eq!(then("if no spare may stand idle"), Some(0));
    let mut two = wanted.clone();
    two.limits.survive = 2;
    let found = changes(&two, &finalists, &weights);
    assert!(
        found.iter().all(|one| one.when != "if any 3 drives may be lost"),
        "none can: {found:?}"
    );
}

/// "raid5 or raid10" changes where one of both is best alone, the first of them too; it stays where both would do.
#[test]
fn a_toss_up_changes_where_one_of_both_is_best_alone() {
    let wanted = wanted(8, "nas-8tb-7200", "vm");
    let of = |layout: &str, rate| finalist(&wanted, layout, &[rate], [Some(10), Some(10)]);
    let finalists = vec![of("raid5(8)", 200), of("raid10(8)", 205)];
    let weights = weights(wanted.prefer, false);
    let found = changes(&wanted, &finalists, &weights);
    let change = |when: &str| found.iter().find(|one| one.when == when).expect("is tried");
    let space = change("if space counts most");
    assert_eq!((space.then, space.either), (0, false), "raid10 has less by many steps");
    let mut advice = advice(finalists);
    (advice.verdict.next, advice.front) = (Some(1), vec![0, 1]);
    let is_changed = |sure: f64, change: &Change| {
        let mut advice = advice.clone();
        advice.verdict.sure = sure;
        advice.is_changed_by(change)
    };
    assert!(is_changed(0.6, space), "then the first alone");
    assert!(!is_changed(0.7, space), "who leans to the first stays with it");
    let both = Change { either: true, ..space.clone() };
    assert!(!is_changed(0.6, &both));
}

#[test]
fn each_part_of_the_work_has_its_fastest() {
    let wanted = wanted(4, "nas-8tb-7200", "backup");
    let of = |layout: &str, rates: [u64; 2]| finalist(&wanted, layout, &rates, [Some(1), Some(1)]);
    let all = [of("raid5(4)", [100, 96]), of("raid10(4)", [90, 100]), of("raid0(4)", [200, 10])];
    let told = parts(&wanted, &all);
    // Less than a step, 5 %, behind is as good.
    assert_eq!(
        told,
        [
            ("if writing counts most".to_owned(), (2, false)),
            ("if verifying counts most".to_owned(), (0, true))
        ]
    );
    // Either is as good only where both are within a step of the fastest.
    let apart = [of("raid5(4)", [100, 100]), of("raid10(4)", [90, 90])];
    assert_eq!(parts(&wanted, &apart)[1], ("if verifying counts most".to_owned(), (0, false)));
    let one = self::wanted(4, "nas-8tb-7200", "vm");
    let vm = |rate| finalist(&one, "raid5(4)", &[rate], [Some(1), Some(1)]);
    assert!(parts(&one, &[vm(1), vm(9)]).is_empty(), "work of one part");
}

#[test]
fn a_lead_is_the_sum_by_weight_and_sure_by_what_the_model_is_off() {
    let wanted = wanted(4, "nas-8tb-7200", "vm");
    let of = |rate| finalist(&wanted, "raid5(4)", &[rate], [Some(10), Some(10)]);
    let weights = [2.0, 1.0, 1.0, 1.0, 1.0, 1.0];
    let steps = Objective::Speed.steps(1.5);
    let ahead = compared(&wanted, (&of(150), &of(100)), &weights);
    assert!((ahead.lead - 2.0 * steps).abs() < 1e-9 && (ahead.by[0].1 - ahead.lead).abs() < 1e-9);
    // The errors of both objectives that runs tell add by their squares.
    let errors = |objective| off(&wanted, objective, (&of(150), &of(100)));
    let (speed, tail) = (errors(Objective::Speed) * 2.0, errors(Objective::Tail));
    let risk = errors(Objective::Risk);
    let deviations = ahead.lead / libm::sqrt(speed * speed + tail * tail + risk * risk);
    let sure = 1.0 - 0.5 * libm::erfc(deviations / std::f64::consts::SQRT_2);
    assert!((ahead.sure - sure).abs() < 1e-9 && ahead.sure > 0.5);
    let behind = compared(&wanted, (&of(100), &of(150)), &weights);
    assert!(
        (behind.lead + ahead.lead).abs() < 1e-9 && (behind.sure + ahead.sure - 1.0).abs() < 1e-9
    );
    assert_eq!(compared(&wanted, (&of(100), &of(100)), &weights).sure, 0.5);
    // A median error e is a spread, in steps of 5 %; work at its own rate has none in speed.
    let model = spread(wanted.profile.parts[0].group, Figure::Rate, false);
    assert!((errors(Objective::Speed) - model / libm::log(1.05)).abs() < 1e-9);
    let paced = self::wanted(4, "nas-8tb-7200", "surveillance");
    let one = finalist(&paced, "raid5(4)", &[1], [Some(1), Some(1)]);
    assert_eq!(off(&paced, Objective::Speed, (&one, &one)), 0.0);
    assert_eq!(errors(Objective::Capacity), 0.0, "space is known");
}

/// Where other causes dominate the chances of both, how far they are below that decides nothing, whatever counts
/// most.
#[test]
fn a_chance_below_the_least_decides_nothing() {
    let wanted = wanted(4, "nas-8tb-7200", "vm");
    let of = |layout: &str, rate, risk| {
        let one = finalist(&wanted, layout, &[rate], [Some(10), Some(10)]);
        let measured = &one.rounds[..1];
        let figures = crate::search::figures(&wanted, &one.candidate, measured, risk);
        Finalist { risk, costs: figures.costs(), ..one }
    };
    let both = [of("raid10(4)", 101, 9e-6), of("raid6(4)", 100, 1e-12)];
    for prefer in Prefer::ALL {
        let weights = weights(prefer, false);
        let told = compared(&wanted, (&both[0], &both[1]), &weights);
        assert_eq!(told.by[Objective::Risk.index()], (Objective::Risk, 0.0), "{prefer:?}");
        assert!(told.lead > 0.0, "the faster one is ahead");
    }
    assert_eq!(off(&wanted, Objective::Risk, (&both[0], &both[1])), 0.0);
    let found = changes(&wanted, &both, &weights(Prefer::Balance, false));
    let safe = found.iter().find(|one| one.when == "if safety counts most").expect("is asked");
    assert_eq!(safe.then, 0);
    // One above it counts down to it.
    let above = of("raid10(4)", 101, 2.25e-5);
    let told = compared(&wanted, (&above, &both[1]), &[1.0; 6]);
    assert!((told.by[Objective::Risk.index()].1 + 2.0).abs() < 1e-9, "{:?}", told.by);
}

#[test]
fn whom_no_other_dominates_is_in_the_front() {
    let wanted = wanted(4, "nas-8tb-7200", "vm");
    let of = |layout: &str, rate| finalist(&wanted, layout, &[rate], [Some(10), Some(10)]);
    let all = [
        of("raid10(4)", 300),
        of("raid5(4)", 100),
        of("raid10(4) far2", 200),
        of("raid10(4) offset2", 299),
    ];
    assert_eq!(front(&all), [0, 1, 3], "as large and much slower; a step is no difference");
}

/// 95 of 100 differences of the sizes that docs/answers.md names have their sign, by the kind of work: of small
/// requests from 30 % on, of files from 30 %, 50 and 40 % while rebuilding, of streams on the array itself from
/// 50 % on; p99s from twice as much on. Of several kinds the worst counts.
#[test]
fn what_the_model_is_off_is_of_the_work_and_of_the_figure() {
    use crate::fidelity::Group;
    for (work, last, healthy, rebuilding) in [
        ("nas", Group::Files, 0.3, 0.4),
        ("backup", Group::Random, 0.3, 0.5),
        ("varmail", Group::Files, 0.3, 0.4),
        ("vm", Group::Random, 0.3, 0.5),
        ("backup", Group::Streams, 0.5, 0.5),
    ] {
        let mut wanted = wanted(4, "nas-8tb-7200", work);
        if last == Group::Streams {
            wanted.profile.parts[1].group = last;
        }
        assert!(wanted.profile.parts.iter().any(|part| part.group == last), "{work}");
        let rates = vec![1; wanted.profile.parts.len()];
        let one = finalist(&wanted, "raid5(4)", &rates, [Some(10), Some(10)]);
        // 95 of 100 of a normal law lie below 1.645 standard deviations.
        let steps = |size: f64, step: f64| (1.0 + size).ln() / 1.644_853_626_951 / step.ln();
        for (objective, expected) in [
            (Objective::Speed, steps(healthy, 1.05)),
            (Objective::Tail, steps(2.0 * healthy, 1.1)),
            (Objective::Risk, steps(rebuilding, 1.5)),
            (Objective::Capacity, 0.0),
            (Objective::Price, 0.0),
            (Objective::Watts, 0.0),
        ] {
            let found = off(&wanted, objective, (&one, &one));
            assert!((found - expected).abs() < 1e-9, "{work} {objective:?}: {found} {expected}");
        }
    }
}

/// A finalist whose rounds are so many times as fast as the first.
fn drawn(wanted: &Wanted, layout: &str, rates: &[u64], degraded: &[u64]) -> Finalist {
    let mut one = finalist(wanted, layout, &[1], [Some(10), Some(10)]);
    let round = |(rate, p99): (&u64, &u64)| {
        let of = finalist(wanted, layout, &[*rate], [Some(10), Some(*p99)]);
        of.rounds[0].clone()
    };
    one.rounds = rates.iter().zip(degraded).map(round).collect();
    one
}

/// The spread of the rounds is that of their paired ratios: what both have in common is none.
#[test]
fn luck_is_the_error_of_the_mean_of_paired_ratios() {
    let wanted = wanted(4, "nas-8tb-7200", "vm");
    let one = drawn(&wanted, "raid5(4)", &[100, 400, 200, 800], &[10; 4]);
    let other = drawn(&wanted, "raid6(4)", &[100, 200, 200, 400], &[10; 4]);
    // Ratios 1, 2, 1, 2: logarithms that are half of ln 2 off their mean, over the root of four less one.
    let drawn = std::f64::consts::LN_2 / 2.0 / 3f64.sqrt();
    let model = 1.3f64.ln() / 1.644_853_626_951;
    let expected = (model * model + drawn * drawn).sqrt() / 1.05f64.ln();
    let found = off(&wanted, Objective::Speed, (&one, &other));
    assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
    let same = off(&wanted, Objective::Speed, (&one, &one));
    assert!((same - model / 1.05f64.ln()).abs() < 1e-9, "{same}");
    // p99s of the state that counts, with a drive missing.
    let other = self::drawn(&wanted, "raid6(4)", &[100; 4], &[10, 20, 10, 20]);
    let one = self::drawn(&wanted, "raid5(4)", &[100; 4], &[10; 4]);
    let model = 1.6f64.ln() / 1.644_853_626_951;
    let expected = (model * model + drawn * drawn).sqrt() / 1.1f64.ln();
    let found = off(&wanted, Objective::Tail, (&one, &other));
    assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
}

/// A step is a difference, less is none; what the next best is better at counts against the recommendation.
#[test]
fn each_is_better_at_what_it_leads_by_a_step() {
    let wanted = wanted(4, "nas-8tb-7200", "vm");
    let one = finalist(&wanted, "raid5(4)", &[1], [Some(1), Some(1)]);
    let mut advice = advice(vec![one.clone(), one]);
    advice.verdict.by = vec![
        (Objective::Speed, 1.0),
        (Objective::Tail, -1.0),
        (Objective::Capacity, 0.99),
        (Objective::Risk, -3.0),
        (Objective::Price, -0.99),
    ];
    let expected = [vec![Objective::Speed], vec![Objective::Tail, Objective::Risk]];
    assert_eq!(advice.better_at(), expected);
}

/// Another chunk's figures over those of the pick: faster is above 1, a longer p99 with a drive missing too.
#[test]
fn variants_are_told_against_the_pick() {
    let wanted = wanted(4, "nas-8tb-7200", "vm");
    let of = |layout: &str, rate, p99| finalist(&wanted, layout, &[rate], [Some(10), Some(p99)]);
    let pick = of("raid5(4)", 100, 20);
    let others = [
        of("raid5(4) chunk=64K", 200, 40),
        of("raid5(4) chunk=1M", 1_000, 20),
        of("raid6(4)", 100, 20),
    ];
    let weights = weights(wanted.prefer, false);
    let found = variants(&wanted, &pick, &others, &weights);
    let names: Vec<String> = found.iter().map(|one| one.candidate.to_string()).collect();
    assert_eq!(names, ["raid5(4) chunk=64K", "raid5(4) chunk=1M"], "of the pick's structure");
    let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-9;
    assert!(near(found[0].speed, 2.0) && near(found[0].tail, 2.0), "{:?}", found[0]);
    // Twice as fast is 14.2 steps of 5 %, twice as long a p99 costs 7.3 of 10 %.
    let lead = 2f64.ln() / 1.05f64.ln() - 2f64.ln() / 1.1f64.ln();
    assert!((found[0].lead - lead).abs() < 1e-5, "{:?}", found[0]);
    assert!(!found[1].is_alike && found[1].lead > 0.0, "ten times as fast: {:?}", found[1]);
    let alike = variants(&wanted, &pick, &[of("raid5(4) chunk=64K", 101, 20)], &weights);
    assert!(alike[0].is_alike, "{alike:?}");
    let worse = variants(&wanted, &pick, &[of("raid5(4) chunk=64K", 10, 20)], &weights);
    assert!(!worse[0].is_alike && worse[0].lead < 0.0, "{worse:?}");
}

/// mdadm's chunk stands for its structure unless another is better beyond what the model is off; every other is kept.
#[test]
fn a_structure_is_shown_as_mdadm_makes_it_unless_another_is_surely_better() {
    let wanted = wanted(4, "nas-8tb-7200", "vm");
    let of = |layout: &str, rate| finalist(&wanted, layout, &[rate], [Some(10), Some(10)]);
    let weights = weights(wanted.prefer, false);
    let names = |all: &[Finalist]| -> Vec<String> {
        all.iter().map(|one| one.candidate.to_string()).collect()
    };
    let told = |finalists: &[(&str, u64)]| {
        let finalists = finalists.iter().map(|(layout, rate)| of(layout, *rate)).collect();
        let (shown, others) = represented(&wanted, finalists, &weights);
        (names(&shown), names(&others))
    };
    let [small, default, large] = ["raid5(4) chunk=64K", "raid5(4)", "raid5(4) chunk=2M"];
    let none: [&str; 0] = [];
    let (shown, others) = told(&[(small, 103), ("raid6(4)", 102), (default, 100), (large, 90)]);
    assert_eq!(
        (shown, others),
        (vec![default.into(), "raid6(4)".into()], vec![small.into(), large.into()])
    );
    let (shown, others) = told(&[(small, 1_000), (default, 100)]);
    assert_eq!((shown, others), (vec![small.to_owned()], vec![default.to_owned()]));
    let (shown, others) = told(&[(small, 103), (large, 100)]);
    assert_eq!(
        (shown, others),
        (vec![small.to_owned()], vec![large.to_owned()]),
        "neither is mdadm's"
    );
    let (shown, others) = told(&[(default, 103), (small, 100)]);
    assert_eq!((shown, others), (vec![default.to_owned()], vec![small.to_owned()]));
    assert_eq!(told(&[("raid10(4)", 1)]).1, none);
}

/// A question about two layouts that is answered in a moment.
fn short(names: &[&str]) -> Wanted {
    let mut wanted = wanted(4, "nas-8tb-7200", "vm");
    let named = |name: &&str| crate::wanted::Among::Layout(name.parse().expect("a layout"));
    wanted.among = names.iter().map(named).collect();
    wanted.chunks = vec![raidlab_core::Sectors(1_024)];
    (wanted.spares, wanted.requests) = (0, 24);
    // Of what is simulated of their chances nothing but failures.
    wanted.model = raidlab_risk::Model::plain(0.05, 0.0);
    let [failures, none] = [0.05, 0.0].map(raidlab_risk::prior::Range::fixed);
    (wanted.unknown, wanted.mission) = ([failures, none, none], raidlab_risk::years(2.0));
    wanted
}

/// What is shown comes from runs that nobody chose by: each on a seed of its own, and none of them one of a look.
#[test]
fn the_last_runs_are_on_seeds_that_nobody_chose_by() {
    let wanted = short(&["raid10(4)"]);
    let advice = advise(&wanted, &crate::search::InTurn).expect("an answer");
    let rates = |one: &Finalist| -> Vec<u64> {
        let rate = |run: &Measured| run.speed(&wanted, State::Healthy).expect("a rate").to_bits();
        one.rounds.iter().map(rate).collect()
    };
    let last = rates(&advice.finalists[0]);
    let once: std::collections::BTreeSet<u64> = last.iter().copied().collect();
    assert_eq!((last.len(), once.len()), (7, 7), "seven rounds, each drawn anew");
    // A bitmap is written before what it is for: it takes time, and gives none.
    let [bitmap] = &advice.consistency[..] else { panic!("{:?}", advice.consistency) };
    assert!(bitmap.mode == Mode::Bitmap && bitmap.speed < 0.98, "{bitmap:?}");
    // The seeds of looks, at the length of the last runs.
    let all = [advice.finalists[0].candidate.clone()];
    let mut search = Search::new(&wanted, &crate::search::InTurn, &all, [1.0; 6]);
    let looked = raidlab_random::mix(&[wanted.seed, 1]);
    let looks = search.runs_of(all.to_vec(), looked, "looks").expect("runs");
    assert!(rates(&looks[0]).iter().all(|rate| !once.contains(rate)), "a look's seed again");
    // Seven rounds of three states, and all that they did.
    let requests: u64 = looks[0].rounds.iter().map(Measured::requests).sum();
    assert_eq!((search.spent.runs, search.spent.requests), (7 * 3, requests));
}

/// The chance beside a layout is that of the table of ranges, and both know of its spares.
#[test]
fn chances_are_alike_wherever_they_stand() {
    let mut wanted = short(&["raid5(4)", "raid5(3)"]);
    wanted.spares = 1;
    (wanted.model.replace, wanted.model.batch) = (Span::Fixed(72.0), 0.7);
    wanted.unknown[0] = raidlab_risk::prior::Range::new(0.02, 0.05, 0.1).expect("ascends");
    let advice = advise(&wanted, &crate::search::InTurn).expect("an answer");
    let names: Vec<String> = advice.finalists.iter().map(|one| one.candidate.to_string()).collect();
    assert!(names.contains(&"raid5(3) + spare".to_owned()), "{names:?}");
    for (one, told) in advice.finalists.iter().zip(&advice.risks) {
        let ratio = told.array.central / one.risk;
        assert!((0.85..1.18).contains(&ratio), "{}: {ratio}", one.candidate);
        assert!(told.array.low < told.array.central && told.array.central < told.array.high);
    }
    let spare = &advice.finalists[names.iter().position(|one| one.contains("spare")).expect("one")];
    // Three days of waiting, gone.
    let without = Candidate { spares: 0, ..spare.candidate.clone() };
    let hours = spare.median(|run| run.rebuild(&wanted)).expect("redundant");
    let alone = crate::risks::shown(&wanted, &crate::search::InTurn, &[(&without, hours)]);
    let alone = alone.expect("a chance")[0];
    let expected = (hours + 72.0) / hours;
    let ratio = alone / spare.risk / expected;
    assert!((0.7..1.3).contains(&ratio), "{alone} and {}: {expected}", spare.risk);
    // Of mixed batches there is no factor that pairs of failures share.
    for (one, batch) in advice.finalists.iter().zip(&advice.batches) {
        let shared = one.risk / batch.mixed;
        assert!((1.3..1.9).contains(&shared), "{}: {shared}", one.candidate);
    }
}

/// A limit that only runs can tell leaves out whatever misses it, whatever else that is best at.
#[test]
fn all_that_is_shown_meets_the_limits() {
    let mut wanted = short(&["raid10(4)", "raid5(4)"]);
    let found = candidates(&wanted).all;
    let mut search = Search::new(&wanted, &crate::search::InTurn, &found, [1.0; 6]);
    let last = raidlab_random::mix(&[wanted.seed, FRESH]);
    let runs = search.runs_of(found.clone(), last, "the last runs").expect("runs");
    let tail = |one: &Finalist| crate::search::worst_tail(&wanted, &one.rounds);
    let all: Vec<(String, f64)> =
        runs.iter().map(|one| (one.candidate.to_string(), tail(one))).collect();
    let [one, other] = &all[..] else { panic!("{all:?}") };
    let (best, most) = if one.1 < other.1 { (one, other) } else { (other, one) };
    assert!(best.1 < most.1, "{all:?}");
    wanted.limits.tail = Some((best.1 * most.1).sqrt());
    // Space counts most: the other has more.
    wanted.prefer = Prefer::Capacity;
    let advice = advise(&wanted, &crate::search::InTurn).expect("one of them");
    let names: Vec<String> = advice.finalists.iter().map(|one| one.candidate.to_string()).collect();
    assert_eq!(names, std::slice::from_ref(&best.0));
}

/// The recommendation stays where it is less than a step behind, and no longer.
#[test]
fn what_is_a_step_better_otherwise_is_named() {
    let wanted = wanted(8, "nas-8tb-7200", "vm");
    let weights = weights(wanted.prefer, false);
    let then = |ahead: f64| {
        let one = finalist(&wanted, "raid6(8)", &[100], [Some(10), Some(10)]);
        let mut other = one.clone();
        other.costs[0] -= ahead;
        let found = changes(&wanted, &[one, other], &weights);
        let of = |when: &str| found.iter().find(|one| one.when == when).map(|one| one.then);
        (of("if any 2 drives may be lost"), of("if no spare may stand idle"))
    };
    assert_eq!((then(0.9), then(1.1)), ((Some(0), Some(0)), (Some(1), Some(1))));
    // Of parts of the work, too: 4 % behind is as good, 6 % is not.
    let backup = self::wanted(4, "nas-8tb-7200", "backup");
    let of = |rate| finalist(&backup, "raid5(4)", &[rate, rate], [Some(1), Some(1)]);
    let fastest = |rate| parts(&backup, &[of(rate), of(100)]).into_iter().map(|one| one.1.0);
    assert_eq!(fastest(96).collect::<Vec<_>>(), [0, 0]);
    assert_eq!(fastest(94).collect::<Vec<_>>(), [1, 1]);
}
