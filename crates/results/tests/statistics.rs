//! The statistics against values computed by hand or taken from published tables.

use raidlab_results::statistics::{
    baseline_per_round, mean, median, median_interval, median_ranks, percent_vs_baseline,
    spread_percent, student,
};

#[test]
fn medians_and_means() {
    assert_eq!((median(&[]), mean(&[])), (None, None));
    assert_eq!(median(&[3.0]), Some(3.0));
    assert_eq!(median(&[9.0, 1.0, 4.0]), Some(4.0));
    assert_eq!(median(&[9.0, 1.0, 4.0, 2.0]), Some(3.0));
    assert_eq!(median(&[0.1, 0.1]), Some(0.1));
    assert_eq!(mean(&[9.0, 1.0, 4.0, 2.0]), Some(4.0));
}

/// Ranks as in the usual tables of the sign test; coverage = 1 - 2 x sum of C(n, i) / 2^n.
#[test]
fn ranks_of_the_interval() {
    for count in 0..6 {
        assert_eq!(median_ranks(count), None, "{count}");
    }
    for (count, low, high, coverage) in [
        (6, 1, 6, 1.0 - 2.0 / 64.0), // 0.96875
        (7, 1, 7, 1.0 - 2.0 / 128.0),
        (8, 1, 8, 1.0 - 2.0 / 256.0), // ranks 2..7 would cover 0.9297
        (9, 2, 8, 1.0 - 2.0 * 10.0 / 512.0),
        (10, 2, 9, 1.0 - 2.0 * 11.0 / 1024.0), // 0.9785
        (12, 3, 10, 1.0 - 2.0 * 79.0 / 4096.0),
        (20, 6, 15, 1.0 - 2.0 * 21_700.0 / 1_048_576.0), // 0.9586
    ] {
        let ranks = median_ranks(count).unwrap();
        assert_eq!((ranks.low, ranks.high, ranks.coverage), (low, high, coverage), "{count}");
    }
}

/// For many samples the ranks come near n/2 -+ 1.96 sqrt(n)/2, the normal approximation.
#[test]
fn ranks_of_many_samples() {
    for count in [100usize, 1_000, 1_100, 5_000, 40_000] {
        let ranks = median_ranks(count).unwrap();
        let expected = count as f64 / 2.0 - 1.959_964 * (count as f64).sqrt() / 2.0;
        assert!((ranks.low as f64 - expected).abs() < 1.5, "{count}: {ranks:?}");
        assert_eq!(ranks.low + ranks.high, count + 1);
        assert!((0.95..0.96 + 2.0 / (count as f64).sqrt()).contains(&ranks.coverage));
    }
    assert_eq!(median_ranks(100).unwrap().low, 40); // published: ranks 40 and 61, 0.9648
    assert!((median_ranks(100).unwrap().coverage - 0.964_799_8).abs() < 1e-7);
}

#[test]
fn intervals_are_samples() {
    let values = [5.0, 3.0, 8.0, 1.0, 9.0, 2.0, 7.0, 4.0, 6.0, 10.0];
    let interval = median_interval(&values).unwrap();
    assert_eq!((interval.low, interval.high), (2.0, 9.0));
    let range = median_interval(&values[..6]).unwrap();
    assert_eq!((range.low, range.high, range.coverage), (1.0, 9.0, 0.968_75));
    assert_eq!(median_interval(&values[..5]), None);
}

#[test]
fn several_layouts_as_baseline() {
    assert_eq!(baseline_per_round(&[&[1.0, 2.0], &[3.0, 6.0]]), [2.0, 4.0]);
    assert_eq!(baseline_per_round(&[&[1.0, 2.0]]), [1.0, 2.0]);
    assert_eq!(baseline_per_round(&[]), [] as [f64; 0]);
    assert_eq!(percent_vs_baseline(3.0, &[1.0, 3.0]), Some(50.0));
    assert_eq!(percent_vs_baseline(1.0, &[2.0]), Some(-50.0));
    assert_eq!(percent_vs_baseline(1.0, &[]), None);
    assert_eq!(percent_vs_baseline(1.0, &[0.0]), None);
}

#[test]
fn spread_is_the_range_over_the_mean() {
    assert_eq!(spread_percent(&[9.0, 11.0, 10.0]), Some(20.0));
    assert_eq!(spread_percent(&[4.0, 4.0]), Some(0.0));
    assert_eq!(
        (spread_percent(&[4.0]), spread_percent(&[]), spread_percent(&[0.0, 0.0])),
        (None, None, None)
    );
}

/// The table of two-sided 95 % quantiles, by degrees of freedom.
#[test]
fn means_have_students_bounds() {
    for (freedom, quantile) in [
        (1, 12.706_205),
        (2, 4.302_653),
        (3, 3.182_446),
        (4, 2.776_445),
        (5, 2.570_582),
        (6, 2.446_912),
        (9, 2.262_157),
        (10, 2.228_139),
        (11, 2.200_985),
        (20, 2.085_963),
        (30, 2.042_272),
        (60, 2.000_298),
        (120, 1.979_930),
        (1000, 1.962_339),
    ] {
        let found = student(freedom + 1).expect("two values at least");
        assert!((found - quantile).abs() < 6e-7, "{freedom}: {found}");
    }
    assert_eq!((student(0), student(1)), (None, None));
}
