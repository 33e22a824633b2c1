//! Computing checks against the case of Elerath and Pecht (DSN 2007), as an independent Monte Carlo and a closed form
//! have it: losses of each 1,000 arrays. No evidence about drives: their base case has 0.95 defects per drive and year,
//! some 30 times what was later seen.

use raidlab_core::Sectors;
use raidlab_risk::{
    Array, Effort, Hazard, Latent, Law, Losses, Model, Outcome, Span, simulate, years,
};

/// Layout, scale of the scrub in hours (0: none), losses of 1,000 in ten years with the half width of their interval.
const CELLS: [(&str, f64, f64, f64); 7] = [
    ("raid5(8)", 0.0, 1_199.0, 5.0),
    ("raid5(8)", 336.0, 250.4, 1.4),
    ("raid5(8)", 168.0, 136.2, 0.7),
    ("raid5(8)", 48.0, 44.9, 0.4),
    ("raid5(8)", 12.0, 15.6, 0.25),
    ("raid5(14)", 168.0, 420.0, 2.0),
    ("raid6(16)", 168.0, 0.233, 0.024),
];

fn model(scrub: Option<f64>) -> Model {
    let found = |scale: &f64| Span::Weibull { location: 6.0, scale: *scale, shape: 3.0 };
    Model {
        hazard: Hazard::Weibull { shape: 1.12, scale: 461_386.0 },
        rebuild: Span::Weibull { location: 6.0, scale: 12.0, shape: 2.0 },
        latent: Latent {
            rate: 1.0 / 9_259.0,
            found: scrub.as_ref().filter(|scale| **scale > 0.0).map(found),
            law: Law::OneAtATime,
            ..Latent::NONE
        },
        ..Model::plain(0.0, 0.0)
    }
}

fn told(layout: &str, model: &Model, until: f64, losses: Losses, error: f64) -> Outcome {
    let mut array = Array::new(&layout.parse().unwrap(), Sectors(1 << 30)).unwrap();
    let effort = Effort { losses, error, paths: 400_000, ..Effort::new(5) };
    simulate(&mut array, model, until, effort)
}

/// Expected losses of single parity, in closed form: failures times the chance that another drive holds a defect.
fn closed(drives: f64, scale: f64, hours: f64) -> f64 {
    let kept = 6.0 + scale * libm::tgamma(4.0 / 3.0);
    let share = kept / (kept + 9_259.0);
    let failures = drives * (hours / 461_386.0).powf(1.12);
    1_000.0 * failures * (1.0 - (1.0 - share).powf(drives - 1.0))
}

fn check(cells: &[(&str, f64, f64, f64)], error: f64) {
    for (layout, scrub, cell, width) in cells {
        let outcome = told(layout, &model(Some(*scrub)), years(10.0), Losses::Every, error);
        let losses = 1_000.0 * outcome.sector.value;
        let off = (losses - cell).abs();
        println!(
            "{layout:10} scrub {scrub:3.0}: {cell:8.3} +- {width:.3}, here {losses:8.3} \
                  (standard error {:.2} %)",
            100.0 * outcome.sector.error
        );
        assert!(outcome.sector.error <= 0.007, "{layout} {scrub}: {outcome:?}");
        assert!(off <= 0.02 * cell || off <= *width, "{layout} {scrub}: {losses} is not {cell}");
    }
}

#[test]
fn losses_of_1000_arrays_in_ten_years() {
    check(&CELLS[..4], 0.007);
}

#[test]
#[ignore = "takes a minute: cargo test --release -p raidlab-risk --test elerath_pecht -- --ignored --nocapture"]
fn every_cell() {
    check(&CELLS, 0.004);
}

#[test]
fn a_year_and_the_closed_form() {
    let year = told("raid5(8)", &model(Some(168.0)), years(1.0), Losses::Every, 0.007);
    assert!((1_000.0 * year.sector.value - 10.2).abs() < 0.25, "{year:?}");
    for scale in [12.0, 168.0] {
        let ten = told("raid5(8)", &model(Some(scale)), years(10.0), Losses::Every, 0.007);
        let (losses, closed) = (1_000.0 * ten.sector.value, closed(8.0, scale, years(10.0)));
        assert!((losses / closed - 1.0).abs() < 0.02, "{scale}: {losses} {closed}");
    }
}

/// Of each array at most one loss counts: 0.709 without scrub, 0.128 with a week's.
#[test]
fn the_chance_of_any_loss() {
    for (scrub, cell) in [(0.0, 0.709), (168.0, 0.128), (48.0, 0.0439)] {
        let any = told("raid5(8)", &model(Some(scrub)), years(10.0), Losses::First, 0.005).sector;
        assert!((any.value / cell - 1.0).abs() < 0.015, "scrub {scrub}: {any:?}, {cell}");
    }
}

/// Without defects 0.2548 of 1,000, where a mean time to data loss says 0.277.
#[test]
fn without_latent_defects() {
    let model = Model { latent: Latent::NONE, ..model(None) };
    let losses = told("raid5(8)", &model, years(10.0), Losses::Every, 0.005).array;
    assert!((1_000.0 * losses.value / 0.2548 - 1.0).abs() < 0.02, "{losses:?}");
}

/// Drives that fail often, are back at once, and hardly ever have a defect: each defect is met once, by the next
/// failure, unless that is of its own drive, seven times of eight, or the mission is over before.
#[test]
fn a_defect_is_met_once() {
    let latent = Latent { rate: 0.01 / raidlab_risk::YEAR, ..Latent::NONE };
    let model = Model { latent, ..Model::plain(1.0, 1e-9) };
    let losses = told("raid5(8)", &model, years(5.0), Losses::Every, 0.005).sector;
    let exact = 8.0 * 0.01 * 7.0 / 8.0 * (5.0 - (1.0 - (-40.0f64).exp()) / 8.0);
    assert!((losses.value / exact - 1.0).abs() < 0.02, "{losses:?} {exact}");
}
