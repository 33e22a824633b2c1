//! What the spread of rebuild times is worth: the answer with them against the answer with their mean, where both are
//! known in closed form.

use raidlab_core::Sectors;
use raidlab_risk::{Array, Effort, Model, RepairOrder, Span, simulate, years};

fn lost(layout: &str, order: RepairOrder, rebuild: Span) -> f64 {
    let mut array = Array::new(&layout.parse().unwrap(), Sectors(1 << 30)).unwrap();
    let model = Model { order, rebuild, ..Model::plain(0.005, 0.0) };
    let effort = Effort { error: 0.01, paths: 200_000, ..Effort::new(9) };
    simulate(&mut array, &model, years(5.0), effort).array.value
}

/// 19 rebuilds of 10 hours and one of 400: 29.5 on average.
fn ratio(layout: &str, order: RepairOrder) -> f64 {
    let mut hours = vec![10.0; 19];
    hours.push(400.0);
    let samples = Span::Samples(hours);
    let mean = Span::Fixed(samples.mean());
    lost(layout, order, samples) / lost(layout, order, mean)
}

/// Double parity, one rebuild after another: a third failure must come while the first rebuild goes on, after a second
/// that came while it went on. So the mean square counts: 8,095 against 870 square hours.
#[test]
fn with_rebuilds_in_turn_the_mean_is_wrong_by_a_factor() {
    let told = ratio("raid6(8)", RepairOrder::Serial);
    assert!((told / (8_095.0 / 870.25) - 1.0).abs() < 0.04, "{told}");
}

/// Single parity counts hours, and rebuilds at once overlap for half the square of their mean whatever their spread
/// (two independent service times of a queue with servers for all).
#[test]
fn elsewhere_the_mean_is_enough() {
    for (layout, order) in [("raid5(8)", RepairOrder::Serial), ("raid6(8)", RepairOrder::Parallel)]
    {
        let told = ratio(layout, order);
        assert!((told - 1.0).abs() < 0.04, "{layout}: {told}");
    }
}

/// Lower arrays of nested levels do not wait for each other: with single parity below there is never a second rebuild
/// in one, so that the order is none.
#[test]
fn arrays_of_nested_levels_rebuild_each_for_itself() {
    let mut array = Array::new(&"raid5+0(3x3)".parse().unwrap(), Sectors(1 << 30)).unwrap();
    let mut often = |order| {
        let model = Model { order, ..Model::plain(2.0, 100.0) };
        let effort = Effort { error: 0.0, paths: 2_000, ..Effort::new(9) };
        simulate(&mut array, &model, years(0.5), effort).array
    };
    assert_eq!(often(RepairOrder::Serial), often(RepairOrder::Parallel));
}
