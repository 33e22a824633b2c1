//! Chances as the results document has them, with their words.

use raidlab_results::risk::{Chance, MissionRisk, Ratio};
use raidlab_risk::{Mission, Within, YEAR, words};

/// Bytes in a TB.
const TB: f64 = 1e12;

pub(super) fn mission(mission: &Mission) -> MissionRisk {
    let share = mission.outcome.lost_share;
    MissionRisk {
        years: mission.outcome.until / YEAR,
        array: chance(mission.array),
        sector: chance(mission.sector),
        lost_bytes_per_usable_tb: share * TB,
        lost: match share {
            share if share < words::LEAST => words::DOMINATED.into(),
            share => words::bytes_beside(share, mission.array.central),
        },
    }
}

fn chance(of: Within) -> Chance {
    let Within { central, low, high } = of;
    Chance {
        central,
        p5: low,
        p95: high,
        about: words::chance_or_other_causes(central),
        between: words::between((low, high)),
        words: words::chance_within(central, (low, high)),
    }
}

/// `None` where the safest layout never loses anything. Of one that loses less often than other causes the words say
/// how many times `at_least`, and no range: the numbers are there for programs.
pub(super) fn ratio(of: Within, at_least: Option<f64>) -> Option<Ratio> {
    let Within { central, low, high } = of;
    let [about, least, most] = [central, low, high].map(words::times);
    let range = || (least != most).then(|| format!("{least} to {most}"));
    let (about, between, words) = match at_least {
        None => (about, range(), words::compared(central, (low, high))),
        Some(least) => {
            (words::times_counted_down(least), None, words::compared_counted_down(least))
        }
    };
    let is_known = [central, low, high].iter().all(|number| number.is_finite());
    is_known.then_some(Ratio { central, p5: low, p95: high, about, between, words })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_to_what_other_causes_dominate_counts_down_to_that_and_keeps_its_numbers() {
        let of = Within { central: 700.0, low: 100.0, high: 2_000.0 };
        let told = ratio(of, Some(40.0)).expect("finite");
        assert_eq!((told.central, told.p5, told.p95), (700.0, 100.0, 2_000.0));
        assert_eq!((told.about.as_str(), &told.between), ("at least 40", &None));
        assert_eq!(told.words, "at least 40 times as often, counted down to 1 in 100,000 only");
        let told = ratio(of, None).expect("finite");
        assert_eq!(told.about, "700");
        assert_eq!(told.between.as_deref(), Some("100 to 2,000"));
        let never = Within { central: f64::NAN, low: f64::NAN, high: f64::NAN };
        assert_eq!(ratio(never, Some(40.0)), None);
    }
}
