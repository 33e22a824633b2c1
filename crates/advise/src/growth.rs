//! Growing an array by drives, by md's rules of reshaping: what becomes of it, how long it takes, what is at risk
//! meanwhile.

use raidlab_core::geometry::Geometry;
use raidlab_core::{Layout, Level};
use raidlab_risk::{Array, Effort, Model, Span, Stop, simulate};

use crate::search::Finalist;
use crate::wanted::{Wanted, idle_rebuild};

/// What growing comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Growth {
    /// md reshapes it.
    Reshape {
        /// What it is then.
        layout: Layout,
        /// Usable bytes then.
        usable: u64,
        /// Hours, from the fewest that there can be to what was measured of an old array.
        hours: (f64, f64),
        /// The chance of losing the array within the longer time.
        risk: f64,
        /// The chance of losing what it is then, in the years that are asked for.
        then: f64,
        /// What mdadm is told.
        commands: Vec<String>,
    },
    /// md cannot: why, and what is done instead.
    Not {
        /// In words.
        reason: String,
    },
}

/// Bytes a second of each drive at which md grew an array from 6 to 8 drives of 1 TB, raid6, in 47 h (jayakumar.org):
/// raising the limits did not help.
const MEASURED: f64 = 1e12 / (47.0 * 3_600.0);

/// What growing a finalist to so many drives comes to. Spares stay.
pub fn growth(wanted: &Wanted, finalist: &Finalist, drives: u16, stop: Stop) -> Growth {
    let candidate = &finalist.candidate;
    let (layout, members) = (&candidate.layout, drives.saturating_sub(candidate.spares));
    let grown = match target(layout, members) {
        Ok(grown) => grown,
        Err(reason) => return Growth::Not { reason },
    };
    let member = wanted.member();
    let sizes = vec![member; usize::from(grown.drives())];
    let usable = match Geometry::new(&grown, &sizes) {
        Ok(geometry) => geometry.capacity().bytes(),
        Err(error) => return Growth::Not { reason: error.to_string() },
    };
    // Each stripe is read from where it was and written to where it will be: two passes over each drive, less of the
    // second the more drives there are.
    let pass = idle_rebuild(&wanted.drive, member);
    let least = pass * (1.0 + f64::from(layout.data_members()) / f64::from(grown.data_members()));
    let most = (member.bytes() as f64 / MEASURED / 3_600.0).max(least);
    let model =
        Model { rebuild: Span::Fixed(pass), spares: candidate.spares, ..wanted.model.clone() };
    let within = |hours: f64| {
        Array::new(&grown, member).map_or(1.0, |mut array| {
            let effort = Effort { error: 0.05, paths: 20_000, stop, ..Effort::new(wanted.seed) };
            simulate(&mut array, &model, hours, effort).array.value
        })
    };
    let (risk, then) = (within(most), within(wanted.mission));
    let commands = commands(layout, &grown);
    Growth::Reshape { layout: grown, usable, hours: (least, most), risk, then, commands }
}

/// md's rules (`check_reshape` of raid0, raid1, raid5 and raid10 in drivers/md, and mdadm(8), GROW MODE).
fn target(layout: &Layout, members: u16) -> Result<Layout, String> {
    if layout.inner.is_some() {
        return Err("md reshapes no nested arrays: another array of the same form can be added below a linear one, or \
                    all is copied"
            .into());
    }
    let with = |level: Level| {
        let mut grown = Layout::new(level, members);
        grown.rotation = layout.rotation;
        if grown.level.has_chunks() && layout.level.has_chunks() {
            grown.chunk = layout.chunk;
        }
        grown.check().map_err(|error| error.to_string())?;
        Ok(grown)
    };
    match layout.level {
        Level::Raid0 | Level::Raid5 | Level::Raid6 => with(layout.level),
        // A pair of mirrors is a raid5 of two to md, which then grows.
        Level::Raid1 if layout.members == 2 && members >= 3 => with(Level::Raid5),
        Level::Raid1 => {
            Err("more copies give no more space; md makes a raid5 of a mirror of two only".into())
        }
        Level::Raid10 if layout.far > 1 && !layout.offset => {
            Err("md does not reshape raid10 with far copies: all is copied to a new array".into())
        }
        Level::Raid10 => {
            let mut grown = layout.clone();
            grown.members = members;
            grown.check().map_err(|error| error.to_string())?;
            Ok(grown)
        }
        Level::Linear | Level::Raid3 | Level::Raid4 => {
            Err(format!("md adds drives to {} without reshaping, or not at all", layout.level))
        }
    }
}

fn commands(layout: &Layout, grown: &Layout) -> Vec<String> {
    let added = grown.members.saturating_sub(layout.members);
    let new = format!("<{added} new drive{}>", if added == 1 { "" } else { "s" });
    // What has no spares takes drives as it is grown only: mdadm makes a raid4 of it meanwhile.
    if layout.survives() == 0 {
        return vec![format!("mdadm --grow /dev/md0 --raid-devices={} --add {new}", grown.members)];
    }
    let mut commands = vec![format!("mdadm /dev/md0 --add {new}")];
    if layout.level != grown.level
        && let Some(level) = grown.level.md_name()
    {
        commands.push(format!("mdadm --grow /dev/md0 --level={level}"));
    }
    commands.push(format!(
        "mdadm --grow /dev/md0 --raid-devices={} --backup-file=<a file on another drive>",
        grown.members
    ));
    commands
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up;

    #[test]
    fn md_s_rules_of_growing() {
        let grow = |name: &str, members| {
            target(&name.parse().expect("a layout"), members).map(|one| one.to_string())
        };
        assert_eq!(grow("raid5(4)", 6), Ok("raid5(6)".into()));
        assert_eq!(grow("raid6(4) chunk=64K", 5), Ok("raid6(5) chunk=64K".into()));
        assert_eq!(grow("raid1(2)", 3), Ok("raid5(3)".into()));
        assert_eq!(grow("raid10(4)", 6), Ok("raid10(6)".into()));
        assert_eq!(grow("raid10(4) offset2", 6), Ok("raid10(6) offset2".into()));
        assert!(grow("raid10(4) far2", 6).is_err_and(|why| why.contains("far copies")));
        assert!(grow("raid5+0(2x3)", 8).is_err_and(|why| why.contains("nested")));
        assert!(grow("raid1(3)", 4).is_err());
    }

    /// The array may be lost for as long as a reshape takes at most.
    #[test]
    fn the_risk_of_growing_is_that_of_the_longer_time() {
        let mut wanted = made_up::wanted(4, "nas-8tb-7200", "nas");
        let finalist = made_up::finalist(&wanted, "raid5(4)", &[100], [Some(10), Some(20)]);
        let mut grown = |mission: Option<f64>| {
            wanted.mission = mission.unwrap_or(wanted.mission);
            match growth(&wanted, &finalist, 6, Stop::default()) {
                Growth::Reshape { hours, risk, then, .. } => (hours, risk, then),
                Growth::Not { reason } => panic!("{reason}"),
            }
        };
        let ((least, most), risk, _) = grown(None);
        assert!(most > 2.0 * least, "{least} to {most} hours");
        // In as long a mission the same is seen; the seed is the same.
        let (_, again, then) = grown(Some(most));
        assert_eq!((risk, risk), (again, then));
        let (_, _, shorter) = grown(Some(least));
        assert!(shorter < risk, "{shorter} in {least} hours, {risk} in {most}");
    }

    /// mdadm adds no drive to a raid0, but for growing it at once.
    #[test]
    fn a_raid0_takes_its_drives_as_it_grows() {
        let told = |name: &str, members| {
            let layout: Layout = name.parse().expect("a layout");
            commands(&layout, &target(&layout, members).expect("grows"))
        };
        let grow = "mdadm --grow /dev/md0 --raid-devices=5 --add <1 new drive>";
        assert_eq!(told("raid0(4)", 5), [grow]);
        let raid5 = told("raid5(4)", 6);
        assert_eq!(raid5[0], "mdadm /dev/md0 --add <2 new drives>");
        assert!(raid5[1].starts_with("mdadm --grow /dev/md0 --raid-devices=6 --backup-file="));
        assert_eq!(told("raid1(2)", 3)[1], "mdadm --grow /dev/md0 --level=5");
    }

    /// All that md reads once and writes once: of raid5(4) to six three fifths of a second pass; the longest is what
    /// was measured, 47 h for each TB. Spares stay spares.
    #[test]
    fn a_reshape_takes_one_pass_to_read_and_its_share_to_write() {
        let wanted = made_up::wanted(4, "nas-8tb-7200", "nas");
        let member = wanted.member();
        let grown = |layout: &str, drives: u16| {
            let finalist = made_up::finalist(&wanted, layout, &[100], [Some(10), Some(20)]);
            match growth(&wanted, &finalist, drives, Stop::default()) {
                Growth::Reshape { layout, usable, hours, .. } => {
                    (layout.to_string(), usable as f64 / member.bytes() as f64, hours)
                }
                Growth::Not { reason } => panic!("{reason}"),
            }
        };
        let pass = idle_rebuild(&wanted.drive, member);
        let longest = member.bytes() as f64 / 1e12 * 47.0;
        for (layout, drives, then, data, share) in [
            ("raid5(4)", 6, "raid5(6)", 5.0, 3.0 / 5.0),
            ("raid6(4)", 8, "raid6(8)", 6.0, 2.0 / 6.0),
            ("raid5(3) + spare", 6, "raid5(5)", 4.0, 2.0 / 4.0),
            ("raid1(2)", 3, "raid5(3)", 2.0, 1.0 / 2.0),
            ("raid0(4)", 5, "raid0(5)", 5.0, 4.0 / 5.0),
        ] {
            let (name, usable, hours) = grown(layout, drives);
            assert_eq!(name, then, "{layout}");
            assert!((usable / data - 1.0).abs() < 1e-3, "{then}: {usable} drives of data");
            assert!((hours.0 / (pass * (1.0 + share)) - 1.0).abs() < 1e-9, "{layout}: {hours:?}");
            assert!((hours.1 / longest - 1.0).abs() < 1e-3, "{layout}: {hours:?}, {longest}");
        }
    }

    /// A reshape keeps where parity lies, and the chunk.
    #[test]
    fn what_a_reshape_does_not_change_stays() {
        let grow = |name: &str, members| {
            target(&name.parse().expect("a layout"), members).map(|one| one.to_string())
        };
        assert_eq!(grow("raid5(4) left-asymmetric", 6), Ok("raid5(6) left-asymmetric".into()));
        assert_eq!(grow("raid10(4) chunk=64K", 5), Ok("raid10(5) chunk=64K".into()));
        assert_eq!(grow("raid10(6) near3", 9), Ok("raid10(9) near3".into()));
        assert_eq!(grow("raid1(2)", 2).map_err(|why| why.contains("more copies")), Err(true));
        assert!(grow("raid4(4)", 5).is_err_and(|why| why.contains("raid4")));
    }

    /// Spares stand by for what it becomes, too.
    #[test]
    fn what_has_grown_has_its_spares() {
        let mut wanted = made_up::wanted(6, "nas-8tb-7200", "nas");
        wanted.model = Model { replace: Span::Fixed(200.0), ..Model::plain(0.05, 0.0) };
        let then = |layout: &str, drives: u16| {
            let finalist = made_up::finalist(&wanted, layout, &[100], [Some(10), Some(20)]);
            match growth(&wanted, &finalist, drives, Stop::default()) {
                Growth::Reshape { layout, then, .. } => (layout.to_string(), then),
                Growth::Not { reason } => panic!("{reason}"),
            }
        };
        let (spared, alone) = (then("raid5(3) + spare", 6), then("raid5(3)", 5));
        assert_eq!(spared.0, alone.0);
        // A pass of 12 h in place of 212.
        let pass = idle_rebuild(&wanted.drive, wanted.member());
        let ratio = alone.1 / spared.1 / ((200.0 + pass) / pass);
        assert!((0.7..1.3).contains(&ratio), "{alone:?} {spared:?}");
    }
}
