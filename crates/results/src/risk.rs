//! What a document says of how likely layouts are to lose data: chances with words made of them, which reports print as
//! they are.

use serde::{Deserialize, Serialize};

/// How likely the layouts of a study are to lose data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Risks {
    /// What all figures are about, and what not.
    pub scope: String,
    /// The mission that ratios are about, in years.
    pub main_mission_years: f64,
    /// For each set of drives: what is not known of drives is the same only for layouts on the same ones.
    pub drives: Vec<DrivesRisk>,
    /// Layouts of which nothing is said, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// Layouts of which nothing is said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Their names.
    pub layouts: Vec<String>,
    /// Why, and what would help.
    pub why: String,
}

/// The layouts on one set of drives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DrivesRisk {
    /// The drives, by title.
    pub drives: String,
    /// What is assumed of all of them.
    pub assumed: Vec<Assumed>,
    /// The commands that answer the same question, to be given other inputs.
    pub commands: Vec<String>,
    /// The largest standard error of the computing, relative to its figure.
    pub computing_error: f64,
    /// The layout that loses the array least often, which ratios are against.
    pub safest: String,
    /// What is to be known of these figures besides; absent when there is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The layouts in the study's order.
    pub layouts: Vec<LayoutRisk>,
}

/// Something that is assumed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assumed {
    /// Of what.
    pub what: String,
    /// In words, with where it is from.
    pub words: String,
}

/// What a layout loses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayoutRisk {
    /// Its name.
    pub layout: String,
    /// Hot spares.
    pub spares: u16,
    /// How long a rebuild is taken to last, in words.
    pub rebuilt: String,
    /// Hours of the study's own rebuilds, where they count; what was extrapolated counts with its other end, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rebuild_hours: Vec<f64>,
    /// How many times as often as the safest it loses the array; absent for the safest itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times_array: Option<Ratio>,
    /// The same of losing a sector or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times_sector: Option<Ratio>,
    /// By mission.
    pub missions: Vec<MissionRisk>,
}

/// What is lost by the end of a mission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MissionRisk {
    /// The mission.
    pub years: f64,
    /// Losing the array.
    pub array: Chance,
    /// Losing a sector or more, or the array.
    pub sector: Chance,
    /// Bytes expected to be lost of each usable TB.
    pub lost_bytes_per_usable_tb: f64,
    /// The same in words.
    pub lost: String,
}

/// A chance with its range over what nobody knows: 5 % of what may be lies below, 5 % above.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chance {
    /// With the central figures, 0 to 1.
    pub central: f64,
    /// 5 %.
    pub p5: f64,
    /// 95 %.
    pub p95: f64,
    /// To one digit: `1 in 300`.
    pub about: String,
    /// The range: `1 in 60 to 2,000`; absent where it says no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<String>,
    /// Both in a sentence.
    pub words: String,
}

/// A ratio with its range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// With the central figures.
    pub central: f64,
    /// 5 %.
    pub p5: f64,
    /// 95 %.
    pub p95: f64,
    /// To one digit: `40`.
    pub about: String,
    /// The range: `20 to 100`; absent where it says no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<String>,
    /// Both in a sentence.
    pub words: String,
}

impl Risks {
    /// What is said of a layout.
    pub fn of(&self, layout: &str) -> Option<&LayoutRisk> {
        let mut all = self.drives.iter().flat_map(|drives| &drives.layouts);
        all.find(|one| one.layout == layout)
    }

    /// The mission that ratios are about.
    pub fn main<'r>(&self, of: &'r LayoutRisk) -> Option<&'r MissionRisk> {
        of.missions.iter().find(|one| one.years == self.main_mission_years)
    }

    /// Every number with its key.
    pub(crate) fn numbers(&self) -> Vec<(&'static str, f64)> {
        let mut all = vec![("risk.main_mission_years", self.main_mission_years)];
        for of in &self.drives {
            all.push(("risk.computing_error", of.computing_error));
            for layout in &of.layouts {
                all.extend(layout.rebuild_hours.iter().map(|hours| ("risk.rebuild_hours", *hours)));
                let ratios = layout.times_array.iter().chain(&layout.times_sector);
                let ratios = ratios.flat_map(|one| [one.central, one.p5, one.p95]);
                all.extend(ratios.map(|number| ("risk.times", number)));
                for mission in &layout.missions {
                    all.push(("risk.years", mission.years));
                    all.push(("risk.lost_bytes_per_usable_tb", mission.lost_bytes_per_usable_tb));
                    let chances = [&mission.array, &mission.sector];
                    let chances =
                        chances.into_iter().flat_map(|one| [one.central, one.p5, one.p95]);
                    all.extend(chances.map(|number| ("risk.chance", number)));
                }
            }
        }
        all
    }
}
