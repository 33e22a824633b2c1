//! How far the model is off where two layouts are compared: what no recommendation may rest on.
//!
//! The figures are those of [`raidlab_results::trust`], which a command makes of the cells that a Linux kernel and the
//! model both ran (docs/fidelity.md, "How far predictions can be trusted"): of differences of a size so many of 100
//! have the sign that the model says. Nothing is typed in here but what no cell tells.

use raidlab_results::trust::{Access, Members, SIZES, Traits, Trust};

/// Work that the model is off about alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Files read and written in order.
    Streams,
    /// Small requests at random places.
    Random,
    /// Files on a filesystem.
    Files,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// How much is done in a time.
    Rate,
    /// What 99 of 100 requests take at most.
    Tail,
}

/// As sure as a recommendation that stands alone has to be ([`SURE`](crate::SURE)).
const SURE_OF_100: u32 = 95;
/// A normal law lies below so many standard deviations 95 of 100 times.
const DEVIATIONS: f64 = 1.644_853_626_951_472_7;

/// From which difference on, as a ratio less 1, 95 of 100 have the sign that the model says: by the narrowest group of
/// cells of such work, read and written.
pub fn told_apart(group: Group, figure: Figure, rebuilding: bool) -> f64 {
    let of = Traits {
        filesystem: Some(group == Group::Files),
        members: Some(if rebuilding { Members::Rebuilding } else { Members::Healthy }),
        access: match group {
            Group::Streams => Some(Access::InOrder),
            Group::Random => Some(Access::Random),
            // Both, one beside the other.
            Group::Files => None,
        },
        writes: None,
    };
    let row = Trust::recorded().group(of);
    let percent = row.and_then(|row| row.told_from(SURE_OF_100)).unwrap_or(SIZES[SIZES.len() - 1]);
    let rate = f64::from(percent) / 100.0;
    match figure {
        Figure::Rate => rate,
        // No p99 was compared with the kernel's yet: twice as far is assumed.
        Figure::Tail => 2.0 * rate,
    }
}

/// The standard deviation of the logarithm of a ratio, by which that is so.
pub fn spread(group: Group, figure: Figure, rebuilding: bool) -> f64 {
    libm::log1p(told_apart(group, figure, rebuilding)) / DEVIATIONS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each kind of work by its own cells, the next wider ones where there are too few; nobody types a figure in.
    #[test]
    fn figures_are_those_of_the_cells() {
        for (group, rebuilding, name) in [
            (Group::Streams, false, "raw arrays, healthy, in order"),
            (Group::Streams, true, "raw arrays, rebuilding, in order"),
            (Group::Random, false, "raw arrays, healthy, random places"),
            (Group::Random, true, "raw arrays, rebuilding, random places"),
            (Group::Files, false, "on a filesystem, healthy"),
            (Group::Files, true, "on a filesystem"),
        ] {
            let rows = &Trust::recorded().groups;
            let row = rows.iter().find(|row| row.name == name).expect("has cells");
            let size = told_apart(group, Figure::Rate, rebuilding);
            let sign = |percent: f64| row.sign_of_100(percent);
            assert!(sign(size * 100.0) >= 95 && sign(size * 100.0 - 0.01) < 95, "{name}: {size}");
            assert_eq!(told_apart(group, Figure::Tail, rebuilding), 2.0 * size);
            // A lead of just that much is as sure as one that stands alone.
            let deviations = (1.0 + size).ln() / spread(group, Figure::Rate, rebuilding);
            let sure = 1.0 - 0.5 * libm::erfc(deviations / std::f64::consts::SQRT_2);
            assert!((sure - crate::SURE).abs() < 1e-9, "{name}: {sure}");
        }
    }
}
