//! The rule for verdicts against values computed by hand.

use crate::support::Random;
use raidlab_results::comparison::{
    Comparison, Row, Standing, correlation, fewest_rounds, log_ratios,
};
use raidlab_results::conduct::{drift, floors, outliers, predecessors, steady};
use raidlab_results::{Better, Verdict};

const BASE: [f64; 9] = [100.0, 110.0, 90.0, 105.0, 95.0, 100.0, 99.0, 101.0, 98.0];

fn scaled(by: f64) -> Vec<f64> {
    BASE.iter().map(|value| value * by).collect()
}

fn compare(layouts: &[&[f64]], floor: f64, better: Better) -> Vec<Option<Comparison>> {
    Row { layouts, baseline: &[0], again: None, better, floor, doubt: 0.0, drawn: true }.compare()
}

fn verdict(values: &[f64], floor: f64, better: Better) -> Verdict {
    compare(&[&BASE, values], floor, better)[1].expect("compared").verdict
}

/// With n rounds two-sided intervals leave out 2^(1-n) at least: 9 for 8 comparisons, 10 for 24.
#[test]
fn a_family_needs_more_rounds() {
    let needed = [1, 2, 8, 11, 24].map(fewest_rounds);
    assert_eq!(needed, [6, 7, 9, 9, 10]);
    let layouts: Vec<Vec<f64>> = (0..9).map(|at| scaled(1.0 + f64::from(at))).collect();
    for (rounds, resolved) in [(8, false), (9, true)] {
        let cut: Vec<&[f64]> = layouts.iter().map(|one| &one[..rounds]).collect();
        for one in compare(&cut, 0.01, Better::Higher).into_iter().flatten() {
            assert_eq!(one.verdict == Verdict::Faster, resolved, "{rounds} rounds");
            assert_eq!(one.interval.is_some(), resolved);
            assert_eq!(one.more_rounds, (!resolved).then_some(1));
        }
    }
}

#[test]
fn pairs_are_compared_and_not_medians() {
    // The rounds differ by more than 10 %, but their pairs do not.
    for (by, higher, lower) in
        [(1.02, Verdict::Faster, Verdict::Slower), (0.98, Verdict::Slower, Verdict::Faster)]
    {
        assert_eq!(verdict(&scaled(by), 0.01, Better::Higher), higher);
        assert_eq!(verdict(&scaled(by), 0.01, Better::Lower), lower);
        assert_eq!(verdict(&scaled(by), 0.03, Better::Higher), Verdict::Equal);
    }
    let one = compare(&[&BASE, &scaled(1.25)], 0.01, Better::Lower)[1].expect("compared");
    let near = |one: f64, other: f64| (one - other).abs() < 1e-9;
    let [low, high] = one.interval.expect("nine rounds");
    assert!(near(one.percent, 25.0) && near(low, 25.0) && near(high, 25.0));
    assert_eq!((one.verdict, one.more_rounds, one.dependence), (Verdict::Slower, None, None));
}

/// Of nine rounds two may show nothing: three of the 45 means of two are at most the floor then, and up to the sixth
/// on each side they miss the centre with 2 x 10 / 512 at most (sums of ranks up to 5: 1, 1, 1, 2, 2, 3 ways). Two that
/// speak against it by as much as the others for it are too many.
#[test]
fn what_the_rounds_do_not_show_is_not_resolved() {
    let mut values = scaled(1.5);
    values[3] = BASE[3];
    assert_eq!(verdict(&values, 0.01, Better::Higher), Verdict::Faster);
    values[5] = BASE[5];
    let two = compare(&[&BASE, &values], 0.01, Better::Higher)[1].expect("compared");
    assert_eq!(two.verdict, Verdict::Faster);
    // The fourth to 17th of the means are half the shift, those behind them the shift.
    let [low, high] =
        two.interval.expect("nine rounds").map(|percent| libm::log1p(percent / 100.0));
    let shift = libm::log(1.5);
    assert!((low - shift / 2.0).abs() < 1e-12 && (high - shift).abs() < 1e-12, "{low} {high}");
    assert!((two.percent - 50.0).abs() < 1e-9);
    values[5] = BASE[5] / 1.5;
    values[3] = BASE[3] / 1.5;
    assert_eq!(verdict(&values, 0.01, Better::Higher), Verdict::NotResolved);
    assert_eq!(verdict(&scaled(1.5)[..5], 0.01, Better::Higher), Verdict::NotResolved);
    // No ratio can be taken of nothing.
    assert_eq!(compare(&[&BASE, &[0.0; 9]], 0.01, Better::Higher)[1], None);
    assert_eq!(log_ratios(&[1.0], &[0.0]), None);
    assert_eq!(log_ratios(&[], &[]), None);
}

/// Verdicts are at the level of as many comparisons as there are layouts: one of which no ratio can be taken counts as
/// one that shows nothing.
#[test]
fn a_layout_without_ratios_is_one_of_the_family() {
    let mut random = Random::new(5);
    let mut differ = 0;
    for _ in 0..500 {
        let rounds = 6 + (random.next() % 6) as usize;
        let without = 1 + (random.next() % 3) as usize;
        let known: Vec<Vec<f64>> = (0..1 + random.next() % 4)
            .map(|_| {
                let (by, noise) = (0.05 * random.normal(), 0.05 * random.share());
                let value = |base: &f64| base * libm::exp(by + noise * random.normal());
                BASE.iter().cycle().take(rounds).map(value).collect()
            })
            .collect();
        let base: Vec<f64> = BASE.iter().cycle().take(rounds).copied().collect();
        let with = |other: &[f64], count: usize| {
            let others = std::iter::repeat_n(other, count);
            let layouts: Vec<&[f64]> = [&base[..]]
                .into_iter()
                .chain(known.iter().map(Vec::as_slice))
                .chain(others)
                .collect();
            compare(&layouts, 0.01, Better::Higher)[..=known.len()].to_vec()
        };
        let nothing = with(&vec![0.0; rounds], without);
        // As often twice as fast as half as fast.
        let undecided: Vec<f64> =
            base.iter().zip([0.5, 2.0].into_iter().cycle()).map(|(base, by)| base * by).collect();
        assert_eq!(nothing, with(&undecided, without), "{without} of {}", known.len() + without);
        let verdicts = |row: &[Option<Comparison>]| -> Vec<Option<Verdict>> {
            row.iter().map(|one| one.map(|one| one.verdict)).collect()
        };
        differ += usize::from(verdicts(&nothing) != verdicts(&with(&[], 0)));
    }
    assert!(differ > 50, "only {differ} rows have other verdicts without those layouts");
}

/// Widths shrink with the root of the rounds: at 9 rounds from -1 to 5 %, 2 % in the middle, floor 1 %.
#[test]
fn it_is_told_how_many_more_rounds_it_takes() {
    let logs = [-0.03, -0.02, 0.0, 0.01, 0.02, 0.03, 0.05, 0.06, 0.07];
    let values: Vec<f64> = BASE.iter().zip(logs).map(|(base, log)| base * libm::exp(log)).collect();
    let one = compare(&[&BASE, &values], 0.01, Better::Higher)[1].expect("compared");
    assert_eq!(one.verdict, Verdict::NotResolved);
    // Half width 0.03, gap 0.02 - ln 1.01 = 0.01005: 9 x (0.03 / 0.01005)^2 = 80.2.
    assert_eq!(one.more_rounds, Some(71));
    let values: Vec<f64> = values.iter().map(|value| value * libm::exp(-0.02)).collect();
    let one = compare(&[&BASE, &values], 0.0301, Better::Higher)[1].expect("compared");
    assert_eq!(one.verdict, Verdict::NotResolved, "the interval ends just beyond the floor");
    assert_eq!(one.more_rounds, Some(1));
}

#[test]
fn the_noisy_one_may_be_the_best_and_is_not_as_good() {
    let steady: Vec<f64> = scaled(4.86);
    let noisy: Vec<f64> = (0..9).map(|at| BASE[at] * if at % 2 == 0 { 5.2 } else { 3.8 }).collect();
    let layouts: [&[f64]; 3] = [&BASE, &steady, &noisy];
    let row = Row {
        layouts: &layouts,
        baseline: &[0],
        again: None,
        better: Better::Higher,
        floor: 0.01,
        doubt: 0.0,
        drawn: true,
    };
    let standing = |may_be_best, as_good_as_best| Standing { may_be_best, as_good_as_best };
    assert_eq!(
        row.against_best(),
        [standing(false, false), standing(true, false), standing(true, false)],
        "nobody knows whether the steady one is behind"
    );
    let twin = scaled(4.85);
    let layouts: [&[f64]; 3] = [&BASE, &steady, &twin];
    let row = Row { layouts: &layouts, ..row };
    assert_eq!(
        row.against_best(),
        [standing(false, false), standing(true, true), standing(false, true)],
        "0.2 % behind is shown, and within the floor"
    );
}

/// Seven rounds of a study of raid6 with two chunks: 0.6 % behind, of which the interval for three comparisons leaves
/// the floor, which the one for a single comparison does not.
#[test]
fn a_verdict_is_what_the_interval_beside_it_says() {
    let base = [1341.78, 1342.95, 1341.22, 1350.40, 1349.91, 1348.14, 1340.65];
    let near = [1336.53, 1335.12, 1333.41, 1335.19, 1338.29, 1341.88, 1340.12];
    let (far, farther) = (base.map(|one| one * 0.7), base.map(|one| one * 0.34));
    let of = |layouts: &[&[f64]]| {
        let found = compare(layouts, 0.01, Better::Higher)[1].expect("compared");
        (found.verdict, found.interval.expect("seven rounds"))
    };
    let (verdict, [low, _]) = of(&[&base, &near, &far, &farther]);
    assert!(low < -1.0, "beyond the floor: {low}");
    assert_eq!(verdict, Verdict::NotResolved);
    let (verdict, [low, high]) = of(&[&base, &near]);
    assert!(low > -0.99 && high < 0.0, "{low} {high}");
    assert_eq!(verdict, Verdict::Equal);
    // Who is equal to the best is as good as the best.
    let layouts: [&[f64]; 2] = [&base, &near];
    let row = Row {
        layouts: &layouts,
        baseline: &[0],
        again: None,
        better: Better::Higher,
        floor: 0.01,
        doubt: 0.0,
        drawn: true,
    };
    assert!(row.against_best()[1].as_good_as_best);
}

#[test]
fn what_is_settled_needs_no_more_rounds() {
    let wide = scaled(1.0)
        .iter()
        .zip([0.9, 1.1, 0.95, 1.05, 1.0, 0.97, 1.03, 0.99, 1.01])
        .map(|(a, b)| a * b)
        .collect::<Vec<_>>();
    for (values, precision, settled) in
        [(scaled(1.5), 0.05, true), (wide.clone(), 0.05, false), (wide, 0.12, true)]
    {
        let layouts: [&[f64]; 2] = [&BASE, &values];
        let row = Row {
            layouts: &layouts,
            baseline: &[0],
            again: None,
            better: Better::Higher,
            floor: 0.01,
            doubt: 0.0,
            drawn: true,
        };
        assert_eq!(row.is_settled(precision), settled);
    }
}

/// Rounds that hang together make intervals wider: by the root of 3 at a correlation of a half.
#[test]
fn dependent_rounds_count_for_less() {
    let swing: Vec<f64> = (0..20).map(|at| if at / 5 % 2 == 0 { 0.02 } else { 0.03 }).collect();
    assert!(correlation(&swing).expect("twenty") > 0.5);
    let base = [100.0; 20];
    let values: Vec<f64> = swing.iter().map(|log| 100.0 * libm::exp(*log)).collect();
    let layouts: [&[f64]; 2] = [&base, &values];
    let row = Row {
        layouts: &layouts,
        baseline: &[0],
        again: None,
        better: Better::Higher,
        floor: 0.021,
        doubt: 0.0,
        drawn: true,
    };
    let ranked = row.compare()[1].expect("compared");
    let measured = Row { drawn: false, ..row }.compare()[1].expect("compared");
    assert!(ranked.dependence.is_none() && measured.dependence.expect("twenty") > 0.2);
    let shaky: Vec<f64> =
        values.iter().zip(0..).map(|(v, at)| if at == 2 { v * 0.9 } else { *v }).collect();
    assert!(correlation(&log_ratios(&shaky, &base).expect("ratios")).is_some());
    assert_eq!(correlation(&[1.0; 20]), None);
    let line = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    // (2.5 x 1.5 + 1.5 x 0.5 - 0.5 x 0.5 + 0.5 x 1.5 + 1.5 x 2.5) / 17.5.
    assert_eq!(correlation(&line), Some(8.75 / 17.5));
    assert_eq!(correlation(&line[..5]), None, "too few");
}

/// A row whose layouts show no dependence on average hides none of one layout that does.
#[test]
fn a_layout_whose_rounds_depend_has_wider_intervals_than_its_row() {
    let base = [100.0; 24];
    let logs = |log: fn(u32) -> f64| -> Vec<f64> {
        (0..24).map(|at| 100.0 * libm::exp(log(at) + f64::from(at * 7 % 24) * 1e-6)).collect()
    };
    let swing = logs(|at| if at / 6 % 2 == 0 { 0.02 } else { 0.05 });
    let turns = logs(|at| if at % 2 == 0 { 0.02 } else { 0.05 });
    let layouts: [&[f64]; 3] = [&base, &swing, &turns];
    let better = Better::Higher;
    let row = |drawn| {
        let row = Row {
            layouts: &layouts,
            baseline: &[0],
            again: None,
            better,
            floor: 0.01,
            doubt: 0.0,
            drawn,
        };
        let width =
            |one: Option<Comparison>| one.expect("compared").interval.map(|[low, high]| high - low);
        row.compare().into_iter().skip(1).map(width).collect::<Vec<_>>()
    };
    let (drawn, measured) = (row(true), row(false));
    assert!(measured[0].is_none_or(|width| width > drawn[0].expect("24 rounds")), "{measured:?}");
    assert_eq!(measured[1], drawn[1], "turns depend the other way");
}

#[test]
fn the_family_is_all_but_the_baseline_wherever_it_stands() {
    for (baseline, family) in [(&[0][..], 3), (&[2], 3), (&[1, 3], 2), (&[0, 1, 2, 3], 1)] {
        let (layouts, better): ([&[f64]; 4], _) = ([&BASE; 4], Better::Higher);
        let row = Row {
            layouts: &layouts,
            baseline,
            again: None,
            better,
            floor: 0.01,
            doubt: 0.0,
            drawn: true,
        };
        assert_eq!(row.family(), family, "{baseline:?}");
    }
}

#[test]
fn the_floor_is_what_a_layout_differs_from_itself() {
    let small: Vec<f64> = (0..20).map(|at| f64::from(at - 10) / 2_000.0).collect();
    assert_eq!(floors(std::slice::from_ref(&small), 0.01), [0.01], "at least what is given");
    let wide: Vec<f64> = small.iter().map(|log| log * 10.0).collect();
    // Ranks 53 and 158 of 210: -0.0175 and 0.0125.
    let floor = floors(&[wide], 0.01)[0];
    assert!((floor - libm::expm1(0.0175)).abs() < 1e-12, "{floor}");
    // A row in which the machine makes the same layout 8 % faster has a floor of its own.
    let off: Vec<f64> = small.iter().map(|log| log + 0.08).collect();
    let floors = floors(&[small.clone(), small.clone(), small, off], 0.01);
    assert!(floors[0] < 0.02 && floors[3] > 0.08, "{floors:?}");
}

#[test]
fn outliers_are_named_and_drift_and_steady_states_are_seen() {
    assert_eq!(outliers(&[10.0, 10.1, 9.9, 10.0, 30.0, 10.05]), [5]);
    assert_eq!(outliers(&[10.0, 10.0, 10.0, 10.0, 10.2]), [] as [u32; 0], "2 % is no outlier");
    assert_eq!(outliers(&[1.0, 9.0]), [] as [u32; 0]);
    let falling: Vec<f64> = (0..10).map(|at| 100.0 - f64::from(at)).collect();
    assert!((drift(&falling).expect("a line") + 9.0 / 95.5).abs() < 1e-12);
    assert_eq!(drift(&[1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0]), None);
    assert_eq!(drift(&falling[..5]), None, "too few");
    // Kendall's sum of six is 15 of 15, (15 - 1) / 5.32 deviations; with two neighbours in the other order it is 13.
    assert_eq!(drift(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), Some(5.0 / 3.5));
    assert_eq!(drift(&[1.0, 2.0, 4.0, 3.0, 5.0, 6.0]), None);
    // All differ, 33 pairs rise and 33 fall.
    let noise = [7.0, 2.0, 11.0, 5.0, 9.0, 1.0, 12.0, 4.0, 8.0, 3.0, 10.0, 6.0];
    assert_eq!(drift(&noise), None);
    assert_eq!(steady(&[100.0, 101.0, 99.0, 100.0, 100.0]), Some(true));
    assert_eq!(steady(&[100.0, 121.0, 99.0, 100.0, 100.0]), Some(false), "beyond 20 %");
    assert_eq!(steady(&[100.0, 103.0, 106.0, 109.0, 112.0]), Some(false), "rises by 11.3 %");
    assert_eq!(steady(&[1.0; 4]), None);
}

#[test]
fn what_ran_before_is_seen_where_it_matters() {
    let runs: Vec<(&str, f64)> = (0..40)
        .map(|at| {
            let noise = f64::from(at % 7 - 3) / 1_000.0;
            if at % 2 == 0 { ("dd-write", noise - 0.05) } else { ("dd-read", noise) }
        })
        .collect();
    let found = predecessors(&runs);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].0 == "dd-write" && (found[0].1 + 0.05).abs() < 0.002);
    // Eight runs on one side have a chance of 2 / 2^8; fewer are left out.
    let few: Vec<(&str, f64)> =
        (0..8).map(|at| ("dd-write", 0.0625 + f64::from(at) / 1_024.0)).collect();
    assert_eq!(predecessors(&few), [("dd-write", 0.0625 + 3.5 / 1_024.0)]);
    assert_eq!(predecessors(&few[..7]), []);
}

#[test]
fn what_the_source_cannot_tell_is_not_resolved_however_sure_the_rounds_are() {
    let (near, far) = (scaled(1.15), scaled(1.4));
    let layouts: [&[f64]; 3] = [&BASE, &near, &far];
    let row = |doubt| Row {
        layouts: &layouts,
        baseline: &[0],
        again: None,
        better: Better::Higher,
        floor: 0.01,
        doubt,
        drawn: true,
    };
    let verdicts = |doubt| row(doubt).compare().into_iter().flatten().map(|one| one.verdict);
    assert_eq!(verdicts(0.0).collect::<Vec<_>>(), [Verdict::Faster, Verdict::Faster]);
    assert_eq!(verdicts(0.2).collect::<Vec<_>>(), [Verdict::NotResolved, Verdict::Faster]);
    let near = row(0.2).compare()[1].expect("compared");
    assert_eq!(near.more_rounds, None, "no number of rounds tells more");
    assert!(row(0.2).is_settled(0.05) && row(0.2).is_settled(0.01));
    // 40 against 15 % is 22 %: more than the doubt. With more doubt both may be the best.
    let best = |doubt: f64| {
        let all = row(doubt).against_best();
        all.into_iter().map(|one| one.may_be_best).collect::<Vec<_>>()
    };
    assert_eq!(best(0.2), [false, false, true]);
    assert_eq!(best(0.3), [false, true, true]);
    // Nor is the one that is ahead as good as the best then; those that are equal are.
    let good = |row: Row<'_>| {
        let all = row.against_best();
        all.into_iter().map(|one| one.as_good_as_best).collect::<Vec<_>>()
    };
    assert_eq!(good(row(0.0)), [false, false, true]);
    assert_eq!(good(row(0.2)), [false, false, true]);
    assert_eq!(good(row(0.3)), [false, false, false]);
    let equal: [&[f64]; 3] = [&BASE, &far, &far];
    assert_eq!(good(Row { layouts: &equal, ..row(0.3) }), [false, true, true]);
}

/// A row differs where the two names do beyond doubt over all rows: seven rounds on one side have a chance of 2 / 2^7,
/// enough for one row and for three, and too many for four.
#[test]
fn a_row_differs_from_itself_beyond_doubt_over_all_rows() {
    let sided: Vec<f64> = (0..7).map(|at| 0.05 + f64::from(at) / 1_000.0).collect();
    let even: Vec<f64> = (0..7).map(|at| f64::from(at - 3) / 1_000.0).collect();
    for (others, is_apart) in [(2, true), (3, false)] {
        let mut rows = vec![even.clone(); others];
        rows.push(sided.clone());
        let found = floors(&rows, 0.005);
        assert_eq!(found[0] < found[others], is_apart, "{others} others: {found:?}");
        assert_eq!(found[0] == 0.005, is_apart, "it has a part in the others' floor, or none");
    }
}

/// Of few rounds nobody knows which is apart; of five one may be.
#[test]
fn of_fewer_than_five_rounds_none_is_an_outlier() {
    assert_eq!(outliers(&[10.0, 10.0, 10.0, 30.0]), [] as [u32; 0]);
    assert_eq!(outliers(&[10.0, 10.0, 10.0, 10.0, 30.0]), [5]);
    assert_eq!(outliers(&[1.0, 10.0, 10.0, 10.0, 10.0, 19.0]), [1, 6], "to both sides");
}

/// What was before does not matter, and a fall is as little steady as a rise.
#[test]
fn a_steady_state_is_that_of_the_last_five_rounds() {
    let steady_end = [500.0, 300.0, 100.0, 101.0, 99.0, 100.0, 100.0];
    assert_eq!(steady(&steady_end), Some(true));
    let mut turned = steady_end;
    turned.reverse();
    assert_eq!(steady(&turned), Some(false));
    let rise = [100.0, 103.0, 106.0, 109.0, 112.0];
    let fall = [112.0, 109.0, 106.0, 103.0, 100.0];
    assert_eq!((steady(&rise), steady(&fall)), (Some(false), Some(false)));
    // Least squares by hand: (-2 x 96 - 98 + 102 + 2 x 104) / 10 = 2 a round, 8 % from the first to the last.
    assert_eq!(steady(&[96.0, 98.0, 100.0, 102.0, 104.0]), Some(true));
}

/// Eight runs on one side have a chance of 2 / 2^8, which is enough for six kinds and not for seven.
#[test]
fn what_ran_before_is_told_beyond_doubt_over_all_kinds() {
    let kinds = ["a", "b", "c", "d", "e", "f", "g"];
    let runs = |count: usize| -> Vec<(&str, f64)> {
        let of = |kind: usize| {
            (0..8).map(move |at| {
                let log = if kind == 0 { 0.1 } else { f64::from(at % 2) * 0.2 - 0.1 };
                (kinds[kind], log + f64::from(at) / 1_000.0)
            })
        };
        (0..count).flat_map(of).collect()
    };
    let six = runs(6);
    let [(kind, effect)] = predecessors(&six)[..] else { panic!("{:?}", predecessors(&six)) };
    assert!(kind == "a" && (effect - 0.1035).abs() < 1e-12, "{effect}");
    assert_eq!(predecessors(&runs(7)), []);
}
