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

/// `None` where the safest layout never loses anything.
pub(super) fn ratio(of: Within) -> Option<Ratio> {
    let Within { central, low, high } = of;
    let [about, least, most] = [central, low, high].map(words::times);
    [central, low, high].iter().all(|number| number.is_finite()).then(|| Ratio {
        central,
        p5: low,
        p95: high,
        about,
        between: (least != most).then(|| format!("{least} to {most}")),
        words: words::compared(central, (low, high)),
    })
}
