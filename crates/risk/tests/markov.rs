//! Computing checks against exact Markov chains and their published or separately solved cells: that raidlab computes
//! what it says, no evidence about drives.

use raidlab_core::Sectors;
use raidlab_risk::markov::{Chain, Rates};
use raidlab_risk::{
    Array, Effort, Hazard, Latent, Law, Method, Model, RepairOrder, Span, YEAR, simulate, years,
};

/// A failure rate of 1.5 % a year, repairs of 24 hours.
const FAILS: f64 = 0.015 / YEAR;
const REPAIR: f64 = 24.0;

fn array(layout: &str) -> Array {
    let parts = layout.strip_prefix("any").and_then(|rest| rest.split_once(" of "));
    match parts {
        Some((tolerated, drives)) => {
            Array::tolerating(drives.parse().unwrap(), tolerated.trim().parse().unwrap())
        }
        None => Array::new(&layout.parse().unwrap(), Sectors(1 << 30)).unwrap(),
    }
}

fn chain(layout: &str, order: RepairOrder, unreadable: f64) -> Chain {
    let rates = Rates { fails: FAILS, repairs: 1.0 / REPAIR, order, unreadable };
    Chain::new(&mut array(layout), rates).unwrap()
}

/// The chance that a drive of so many TB has a sector that cannot be read, at an error rate per bit.
fn unreadable(tb: f64, rate: f64) -> f64 {
    -(-8e12 * tb * rate).exp_m1()
}

/// Layout, order, unreadable; mean time to data loss in hours (0 where the cell gives none), chances in 1 and 10 years.
type Cell = (&'static str, RepairOrder, f64, f64, f64, f64);

fn cells() -> Vec<Cell> {
    let (serial, parallel) = (RepairOrder::Serial, RepairOrder::Parallel);
    let of = unreadable;
    vec![
        ("raid1(2)", serial, 0.0, 7.1062e9, 1.229e-6, 1.232e-5),
        // Pairs repair each for itself.
        ("raid10(8)", parallel, 0.0, 1.7766e9, 4.917e-6, 4.929e-5),
        ("raid5(4)", serial, 0.0, 1.1846e9, 7.375e-6, 7.393e-5),
        ("raid5(8)", serial, 0.0, 2.5392e8, 3.440e-5, 3.448e-4),
        ("raid6(4)", serial, 0.0, 1.4412e13, 6.045e-10, 6.075e-9),
        ("raid6(8)", serial, 0.0, 1.0297e12, 8.460e-9, 8.502e-8),
        ("raid6(8)", parallel, 0.0, 2.0592e12, 4.237e-9, 4.252e-8),
        ("raid6(12)", serial, 0.0, 2.6220e11, 3.323e-8, 3.339e-7),
        ("raid1(3)", serial, 0.0, 5.7642e13, 1.511e-10, 1.519e-9),
        ("any 3 of 11", serial, 0.0, 1.0632e15, 8.17e-12, 8.23e-11),
        ("raid5(8)", serial, of(12.0, 1e-14), 0.0, 0.1130, 0.6984),
        ("raid5(8)", serial, of(12.0, 1e-15), 0.0, 0.05703, 0.4442),
        ("raid5(4)", serial, of(12.0, 1e-15), 0.0, 0.01491, 0.1395),
        ("raid10(8)", parallel, of(12.0, 1e-14), 0.0, 0.07138, 0.5231),
        ("raid10(8)", parallel, of(12.0, 1e-15), 0.0, 0.01093, 0.1041),
        ("raid6(8)", serial, of(12.0, 1e-14), 0.0, 3.430e-5, 3.438e-4),
        ("raid6(8)", serial, of(12.0, 1e-15), 0.0, 1.507e-5, 1.511e-4),
        ("raid5(4)", serial, of(4.0, 1e-15), 0.0, 5.483e-3, 0.05350),
        ("raid5(8)", serial, of(20.0, 1e-15), 0.0, 0.07767, 0.5545),
        ("raid6(8)", serial, of(20.0, 1e-15), 0.0, 2.124e-5, 2.129e-4),
    ]
}

fn is_near(value: f64, cell: f64, within: f64) -> bool {
    (value / cell - 1.0).abs() <= within
}

/// Four digits of cells that somebody else's linear solver and uniformization gave; the last of them may be rounded.
#[test]
fn exact_chains_have_the_cells_digits() {
    for (layout, order, unreadable, mean, one, ten) in cells() {
        let chain = chain(layout, order, unreadable);
        let told = (chain.mean_time(), chain.chance(years(1.0)), chain.chance(years(10.0)));
        assert!(mean == 0.0 || is_near(told.0, mean, 2e-4), "{layout} {order:?}: {told:?}");
        let digits = if one < 1e-11 { 1e-3 } else { 5e-4 };
        assert!(is_near(told.1, one, digits), "{layout} {order:?} {unreadable}: {told:?}");
        assert!(is_near(told.2, ten, digits), "{layout} {order:?} {unreadable}: {told:?}");
    }
}

/// Elerath and Pecht's comparison: 8 drives, 461,386 h between failures, 12 h of repair.
#[test]
fn the_published_mean_time_to_data_loss() {
    let rates = Rates {
        fails: 1.0 / 461_386.0,
        repairs: 1.0 / 12.0,
        order: RepairOrder::Serial,
        unreadable: 0.0,
    };
    let chain = Chain::new(&mut array("raid5(8)"), rates).unwrap();
    assert!(is_near(chain.mean_time(), 3.16905e8, 1e-5), "{}", chain.mean_time());
    assert!(is_near(chain.chance(years(10.0)), 2.7635e-4, 1e-4));
}

fn model(order: RepairOrder, unreadable: f64) -> Model {
    let latent = Latent { rate: unreadable, law: Law::PerRebuild, ..Latent::NONE };
    Model {
        hazard: Hazard::Constant(FAILS),
        rebuild: Span::Exponential(REPAIR),
        order,
        latent,
        ..Model::plain(0.0, 0.0)
    }
}

/// The simulation is as far from the exact chance as its error allows, and within 2 %.
fn simulated(cell: Cell, method: Method, effort: Effort) -> (f64, f64) {
    let (layout, order, unreadable, ..) = cell;
    let mut array = array(layout);
    let effort = Effort { method, ..effort };
    let outcome = simulate(&mut array, &model(order, unreadable), years(10.0), effort);
    let chance = if unreadable > 0.0 { outcome.sector } else { outcome.array };
    (chance.value, chance.error)
}

#[test]
fn both_methods_together_agree_with_some_cells() {
    for at in [0, 1, 3, 5, 11, 14] {
        let cell = cells()[at];
        let effort = Effort { error: 0.007, paths: 200_000, ..Effort::new(7) };
        let (value, error) = simulated(cell, Method::Both, effort);
        assert!(error <= 0.007, "{cell:?}: relative standard error {error}");
        let off = value / cell.5 - 1.0;
        assert!(off.abs() < 0.02 && off.abs() < 3.5 * error + 5e-4, "{cell:?}: {value} ({error})");
    }
}

/// All cells, each to a relative standard error of 0.7 %: minutes.
#[test]
#[ignore = "takes minutes: cargo test --release -p raidlab-risk --test markov -- --ignored --nocapture"]
fn every_cell_by_simulation() {
    for cell in cells() {
        let effort = Effort { error: 0.005, paths: 4_000_000, ..Effort::new(11) };
        let (value, error) = simulated(cell, Method::Both, effort);
        let off = value / cell.5 - 1.0;
        println!(
            "{:12} {:?} {:.4}: {:.4e} {value:.4e} {:+.2} % se {:.2} %",
            cell.0,
            cell.1,
            cell.2,
            cell.5,
            100.0 * off,
            100.0 * error
        );
        assert!(error <= 0.007 && off.abs() < 0.02 && off.abs() < 3.5 * error + 5e-4, "{cell:?}");
    }
}

/// The methods have nothing in common but the model: one has weights and samples the last failure, the other neither.
#[test]
fn methods_agree() {
    for (layout, unreadable) in [("raid5(8)", 0.0), ("raid6(8)", 0.01), ("raid5+0(2x4)", 0.0)] {
        // Failure rates at which conditional Monte Carlo alone meets enough of them.
        let mut model = model(RepairOrder::Parallel, unreadable);
        model.hazard = Hazard::Constant(20.0 * FAILS);
        (model.common_cause, model.wrong_pull) = (0.01, 0.01);
        let of = |method| {
            let effort = Effort { method, error: 0.015, paths: 60_000, ..Effort::new(3) };
            simulate(&mut array(layout), &model, years(5.0), effort)
        };
        let all = [Method::Conditional, Method::Balanced, Method::Both].map(of);
        for outcome in &all {
            assert!((outcome.mass - 1.0).abs() < 0.03, "{layout}: mean weight {}", outcome.mass);
            for (one, other) in [(outcome.array, all[2].array), (outcome.sector, all[2].sector)] {
                let off = (one.value - other.value).abs() / other.value;
                let error = (one.error * one.error + other.error * other.error).sqrt();
                assert!(off <= 3.5 * error + 1e-12, "{layout}: {one:?} {other:?}");
            }
        }
    }
}

/// Of 200 runs the interval of two standard errors covers the exact chance in about 95 %.
#[test]
fn intervals_cover() {
    let exact = chain("raid6(8)", RepairOrder::Parallel, 0.0).chance(years(10.0));
    let covers = (0..200).filter(|seed| {
        let effort = Effort { paths: 2_000, error: 0.0, ..Effort::new(*seed) };
        let cell = ("raid6(8)", RepairOrder::Parallel, 0.0, 0.0, 0.0, 0.0);
        let (value, error) = simulated(cell, Method::Both, effort);
        (value - exact).abs() <= 1.96 * error * value
    });
    let covered = covers.count();
    assert!((178..=199).contains(&covered), "{covered} of 200");
}
