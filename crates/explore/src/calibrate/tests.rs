use super::*;

/// Fits a model whose answer is known.
fn fitted(
    model: impl Fn(&[f64]) -> Vec<f64>,
    published: Vec<f64>,
    start: &[f64],
    ranges: &[[f64; 2]],
) -> Fit {
    let problem = Problem { published, start: start.to_vec(), ranges: ranges.to_vec() };
    let mut evaluate = |points: &[Vec<f64>]| -> Result<Vec<Vec<f64>>, ()> {
        for (value, range) in points.iter().flat_map(|point| point.iter().zip(ranges)) {
            assert!((range[0]..=range[1]).contains(value), "{value} is outside {range:?}");
        }
        Ok(points.iter().map(|point| model(point)).collect())
    };
    fit(&problem, &mut evaluate).expect("the model does not fail")
}

/// Times of four runs on a disk of some rate that is sent commands of some cost.
fn disk(p: &[f64]) -> Vec<f64> {
    vec![1000.0 / p[0], 1000.0 / p[0] + p[1], 100.0 / p[0] + 5.0 * p[1], 30.0 * p[1] + 3.0]
}

fn near(value: f64, wanted: f64, percent: f64) {
    assert!((value / wanted - 1.0).abs() < percent / 100.0, "{value} is not near {wanted}");
}

#[test]
fn parameters_of_a_known_model_are_found() {
    let fit = fitted(disk, disk(&[47.1, 0.33]), &[80.0, 1.0], &[[10.0, 200.0], [0.01, 10.0]]);
    near(fit.values[0], 47.1, 0.1);
    near(fit.values[1], 0.33, 0.1);
    for (before, wanted) in fit.before.iter().zip(disk(&[80.0, 1.0])) {
        near(*before, wanted, 0.001);
    }
    assert!(fit.is_better && fit.evaluations < 100, "{fit:?}");
    assert_eq!(fit.without_effect, [false, false]);
    // Every cell tells the same: leaving one out changes nothing.
    for (left_out, published) in fit.left_out.iter().zip(disk(&[47.1, 0.33])) {
        near(*left_out, published, 0.5);
    }
}

/// Known bits of where the search goes, by way of dozens of logarithms and exponentials: the same on any
/// machine.
#[test]
fn a_fit_has_the_same_bits_on_any_machine() {
    let mut published = disk(&[47.1, 0.33]);
    published[3] *= 1.03;
    let fit = fitted(disk, published, &[80.0, 1.0], &[[10.0, 200.0], [0.01, 10.0]]);
    let bits: Vec<u64> = fit.left_out.iter().map(|figure| figure.to_bits()).collect();
    let known = [
        0x4035_1888_bbfe_8623,
        0x4035_72a6_6f1d_e214,
        0x400e_b229_8b02_abbd,
        0x4029_ccf2_4c7d_4112,
    ];
    assert_eq!(bits, known, "{:?}", fit.left_out);
}

/// One cell that no value explains: the others are met as if it were not there.
#[test]
fn an_unexplained_cell_does_not_bend_the_rest() {
    let model =
        |p: &[f64]| vec![100.0 / p[0], 200.0 / p[0], 300.0 / p[0], 400.0 / p[0], 500.0 / p[0]];
    let mut published = model(&[50.0]);
    published[4] *= 3.0;
    let fit = fitted(model, published.clone(), &[30.0], &[[5.0, 500.0]]);
    let squares = |p: f64| -> f64 {
        model(&[p]).iter().zip(&published).map(|(one, two)| (one / two).ln().powi(2)).sum()
    };
    let bent = (1..=1000).map(|step| 5.0 + f64::from(step) / 10.0);
    let bent = bent.min_by(|one, two| squares(*one).total_cmp(&squares(*two))).expect("some");
    near(bent, 40.1, 1.0);
    near(fit.values[0], 50.0 / (KNEE / 4.0).exp(), 1.0);
    // Without it, it is predicted by the others alone: three times too small.
    near(fit.left_out[4], published[4] / 3.0, 1.0);
}

#[test]
fn a_value_beyond_its_range_stays_at_the_end_and_the_others_go_on() {
    let fit = fitted(disk, disk(&[47.1, 0.33]), &[60.0, 1.0], &[[55.0, 200.0], [0.01, 10.0]]);
    assert_eq!(fit.values[0], 55.0);
    let published = disk(&[47.1, 0.33]);
    let sum = |cost: f64| -> f64 {
        let modelled = disk(&[55.0, cost]);
        modelled.iter().zip(&published).map(|(one, other)| loss((one / other).ln())).sum()
    };
    let costs = (1..=1000).map(|step| f64::from(step) / 1000.0);
    let best = costs.min_by(|one, other| sum(*one).total_cmp(&sum(*other))).expect("some");
    near(fit.values[1], best, 1.0);
}

/// A simulation is not smooth: every figure has some noise that depends on the parameters.
#[test]
fn noise_in_the_figures_does_not_stop_the_search() {
    let noisy = |p: &[f64]| -> Vec<f64> {
        let noise = |value: &f64, cell: usize| {
            let bits = (p[0] * 1e6) as u64 ^ (p[1] * 1e9) as u64 ^ cell as u64;
            let draw = raidlab_random::mix(&[bits]) as f64 / u64::MAX as f64;
            value * (1.0 + 0.004 * (draw - 0.5))
        };
        disk(p).iter().enumerate().map(|(cell, value)| noise(value, cell)).collect()
    };
    let fit = fitted(noisy, disk(&[47.1, 0.33]), &[90.0, 0.05], &[[10.0, 200.0], [0.01, 10.0]]);
    near(fit.values[0], 47.1, 1.0);
    near(fit.values[1], 0.33, 1.0);
}

/// A simulation has steps: a little more costs a whole turn. Near the start nothing can be seen of the
/// way, and there are better places to each side of worse ones.
#[test]
fn steps_do_not_hide_what_lies_beyond_them() {
    let model = |p: &[f64]| -> Vec<f64> {
        let turns = |work: f64| (work / p[0] / 8.0).ceil() * 8.0 + 0.3 * (p[0] / 5.0).sin();
        vec![turns(1000.0), turns(2100.0), turns(3300.0), turns(4700.0)]
    };
    let fit = fitted(model, model(&[40.0]), &[90.0], &[[10.0, 200.0]]);
    near(fit.values[0], 40.0, 8.0);
    for (after, published) in fit.after.iter().zip(model(&[40.0])) {
        near(*after, published, 3.0);
    }
}

/// While something else is the bottleneck a parameter changes nothing near by.
#[test]
fn a_plateau_is_left() {
    let model = |p: &[f64]| vec![(1000.0 / p[0]).max(15.0), (3000.0 / p[0]).max(44.0), 7.0];
    let fit = fitted(model, model(&[40.0]), &[150.0], &[[10.0, 400.0]]);
    near(fit.values[0], 40.0, 0.1);
}

#[test]
fn what_changes_nothing_is_named_and_not_moved() {
    let model = |p: &[f64]| vec![100.0 / p[0], 250.0 / p[0], 170.0 / p[0], 3.0];
    let fit = fitted(model, model(&[50.0, 1.0]), &[30.0, 7.0], &[[5.0, 500.0], [1.0, 9.0]]);
    near(fit.values[0], 50.0, 0.1);
    assert_eq!((fit.values[1], fit.without_effect), (7.0, vec![false, true]));
}

#[test]
fn what_is_right_already_is_not_better_afterwards() {
    let fit = fitted(disk, disk(&[47.1, 0.33]), &[47.1, 0.33], &[[10.0, 200.0], [0.01, 10.0]]);
    assert!(!fit.is_better, "{fit:?}");
    let bare = fitted(|_| vec![2.0], vec![1.0], &[], &[]);
    assert_eq!((bare.is_better, bare.evaluations, bare.left_out), (false, 2, vec![]));
}

#[test]
fn an_error_ends_the_search() {
    let problem = Problem { published: vec![1.0], start: vec![1.0], ranges: vec![[0.5, 2.0]] };
    let mut left = 3;
    let mut evaluate = |points: &[Vec<f64>]| {
        left -= 1;
        if left == 0 {
            Err("out of luck")
        } else {
            Ok(points.iter().map(|p| vec![9.0 * p[0]]).collect())
        }
    };
    assert_eq!(fit(&problem, &mut evaluate), Err("out of luck"));
}

#[test]
fn equations_are_solved() {
    let solved = solve(vec![vec![0.0, 2.0], vec![4.0, 2.0]], vec![6.0, 10.0]);
    assert_eq!(solved, [1.0, 3.0]);
    let three = vec![vec![2.0, 1.0, 0.0], vec![1.0, 3.0, 1.0], vec![0.0, 1.0, 4.0]];
    let solved = solve(three, vec![4.0, 10.0, 14.0]);
    solved.iter().zip([1.0, 2.0, 3.0]).for_each(|(one, wanted)| near(*one, wanted, 1e-9));
}

/// Figures of one cell come from one run, also under the names that the study gives them.
#[test]
fn figures_of_one_cell_are_one_run() {
    let text = r#"title = "A study"
filesystem = "ext3"
[[drives]]
name = "disk"
model = "sas-146gb-10k"
[[layouts]]
level = "single"
[[workloads]]
kind = "bonnie-1.03"
name = "bonnie"
[[workloads]]
kind = "dd"
name = "dd"
count = 16
show = "seconds"
show_as = "time"
[[given]]
layout = "single"
workload = "bonnie"
metric = "character_write_kps"
value = 1
[[given]]
layout = "single"
workload = "dd"
metric = "time"
value = 1
[[given]]
layout = "single"
workload = "bonnie"
metric = "seeks_per_s"
value = 1
"#;
    let study = raidlab_study::parse(text, "my.toml").expect("good");
    let bonnie = study.workloads[0].workload.metrics();
    let at = |name: &str| bonnie.iter().position(|metric| metric.name == name);
    let (Some(put), Some(seeks)) = (at("character_write_kps"), at("seeks_per_s")) else {
        panic!("{bonnie:?}")
    };
    let runs = given_runs(&study).expect("all metrics are known");
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[0].figures, [(0, put), (2, seeks)]);
    assert_eq!((runs[1].key.workload, runs[1].figures[0].0), (1, 1));
    let wrong = text.replace("\"time\"\nvalue", "\"tine\"\nvalue");
    let study = raidlab_study::parse(&wrong, "my.toml").expect("good");
    let error = given_runs(&study).expect_err("no such metric").to_string();
    assert!(
        error.starts_with("my.toml:25: given.metric: dd has no metric `tine`; it has: time"),
        "{error}"
    );
}

/// A parameter that would leave its range stays at the end, and the step of the other one allows for it.
#[test]
fn a_step_allows_for_what_cannot_move_further() {
    let problem = Problem {
        published: vec![1.0, 1.0],
        start: vec![1.0, 1.0],
        ranges: vec![[(-0.05_f64).exp(), 2.0], [0.1, 10.0]],
    };
    let mut evaluate = |_: &[Vec<f64>]| -> Result<Vec<Vec<f64>>, ()> { Err(()) };
    let search = Search::new(&problem, &mut evaluate);
    let at = Point { x: vec![0.0, 0.0], r: vec![0.1, 0.12] };
    let x = search.step(&at, &vec![vec![1.0, 1.0], vec![1.0, 0.0]], 0.0, None);
    // Free to move it would be -0.12 and 0.02.
    assert!((x[0] + 0.05).abs() < 1e-12 && (x[1] + 0.05).abs() < 1e-12, "{x:?}");
}

/// Huber's: half the square up to the knee, from there on a line that goes on as steeply.
#[test]
fn residuals_count_by_their_square_up_to_the_knee() {
    assert_eq!((loss(0.0), loss(0.02), loss(-0.02)), (0.0, 0.0002, 0.0002));
    let near = |one: f64, other: f64| (one - other).abs() < 1e-12;
    assert!(near(loss(KNEE), KNEE * KNEE / 2.0));
    assert!(near(loss(-3.0 * KNEE), KNEE * KNEE * 2.5));
    // What makes squares of it has the same slope.
    for r in [0.01, KNEE, 0.1, -0.5] {
        let slope = (loss(r + 1e-7) - loss(r - 1e-7)) / 2e-7;
        assert!((weight(r) * r - slope).abs() < 1e-4, "{r}");
    }
}

/// The largest by size is divided by, whatever its sign; what nothing determines is 0.
#[test]
fn linear_equations_are_solved() {
    let solved = |rows: &[[f64; 3]], right: &[f64]| {
        solve(rows.iter().map(|row| row.to_vec()).collect(), right.to_vec())
    };
    let near = |found: Vec<f64>, expected: [f64; 3]| {
        assert!(
            found.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-9),
            "{found:?}"
        );
    };
    near(
        solved(&[[0.0, 2.0, 1.0], [-4.0, 1.0, 0.0], [1.0, 1.0, 1.0]], &[7.0, -2.0, 6.0]),
        [1.0, 2.0, 3.0],
    );
    // With 1e-20 as the pivot the first unknown would be lost to rounding.
    near(
        solved(&[[1e-11, 1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 2.0]], &[1.0, 0.0, 8.0]),
        [1.0, 1.0, 4.0],
    );
    near(
        solved(&[[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]], &[1.0, 0.0, 3.0]),
        [1.0, 0.0, 3.0],
    );
}
