//! How long it takes to go over a drive.

use raidlab_models::DriveSpec;

/// Seconds in which so many bytes of a drive from its outer edge on are gone over in order: at its rates, which fall
/// evenly from the outer edge inwards, and never faster than `most` bytes a second. A drive without such rates goes at
/// `most`.
pub fn pass(drive: &DriveSpec, bytes: u64, most: f64) -> f64 {
    let rate = |key: &str| drive.amount(key).map(|rate| rate as f64);
    let (outer, innermost) = match (rate("outer_rate"), rate("inner_rate")) {
        (Some(outer), Some(inner)) => (outer, inner.min(outer)),
        _ => (most, most),
    };
    // The rate where they end.
    let share = (bytes as f64 / drive.capacity.bytes() as f64).min(1.0);
    let inner = outer - (outer - innermost) * share;
    let (fast, slow) = (outer.min(most), inner.min(most));
    // The share of them, from the edge, that is faster than the most.
    let capped =
        if outer > inner { ((outer - fast) / (outer - inner)).clamp(0.0, 1.0) } else { 0.0 };
    let rest = 1.0 - capped;
    let falling =
        if fast > slow { rest * libm::log(fast / slow) / (fast - slow) } else { rest / fast };
    (capped / fast + falling) * bytes as f64
}
