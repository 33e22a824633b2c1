//! What will run the array where that is not md: what differs from the figures, first; what has no counterpart; and
//! its own commands.

use std::ops::RangeInclusive;

use raidlab_core::{Layout, Level, Sectors};
use raidlab_models::DriveOp;
use raidlab_models::curves::random_rate;

use crate::candidate::{Candidate, terabytes};
use crate::decide::Advice;
use crate::growth::Growth;
use crate::profile::Counted;
use crate::wanted::Wanted;

/// What runs the array. All figures are those of md's levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Software {
    /// Linux md, with mdadm.
    #[default]
    Md,
    /// ZFS: mirrors and RAIDZ.
    Zfs,
    /// A pool of whole files with a parity drive, such as SnapRAID and Unraid.
    FilePool,
    /// A controller with its own cache and firmware.
    Controller,
}

impl Software {
    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Md => "md",
            Self::Zfs => "zfs",
            Self::FilePool => "file-pool",
            Self::Controller => "controller",
        }
    }

    /// What stands above the names of a table of figures.
    pub const fn of_rows(self) -> &'static str {
        match self {
            Self::Md => "",
            Self::Zfs => "md's levels, not RAIDZ's",
            Self::FilePool => "md's levels, no file pool",
            Self::Controller => "md's, not a controller's",
        }
    }

    /// Why it has nothing like a layout; `None` where it has.
    pub(crate) fn lacks(self, layout: &Layout) -> Option<&'static str> {
        let is_far = layout.far > 1;
        let is_odd = layout.level == Level::Raid10 && !layout.members.is_multiple_of(layout.near);
        (self == Self::Zfs && (is_far || is_odd)).then_some("have no counterpart in ZFS")
    }

    /// The name that the software has for a layout; `None` where md's is as good.
    pub fn name_of(self, candidate: &Candidate) -> Option<String> {
        if self != Self::Zfs {
            return None;
        }
        let layout = &candidate.layout;
        let spare = if candidate.spares > 0 { " and a spare" } else { "" };
        let name = match (vdev(layout.inner.as_deref().unwrap_or(layout)), &layout.inner) {
            (Some(word), Some(inner)) => {
                format!("{} {word} vdevs of {}", layout.members, inner.members)
            }
            (Some(word), None) if layout.level == Level::Raid10 => {
                format!("{} {word}s of {}", layout.members / layout.near, layout.near)
            }
            (Some(word), None) => format!("{word} of {}", layout.members),
            (None, _) => format!("a stripe of {}", layout.members),
        };
        Some(format!("{name}{spare}"))
    }
}

/// A kind of vdev.
const fn vdev(layout: &Layout) -> Option<&'static str> {
    match layout.level {
        Level::Raid1 | Level::Raid10 => Some("mirror"),
        Level::Raid5 => Some("raidz1"),
        Level::Raid6 => Some("raidz2"),
        _ => None,
    }
}

/// The command that makes a pool of a candidate.
pub(crate) fn zpool(candidate: &Candidate) -> String {
    let layout = &candidate.layout;
    let drives = |count: u16| match count {
        1 => "<drive>".to_owned(),
        count => format!("<{count} drives>"),
    };
    let (groups, of, width) = match &layout.inner {
        Some(inner) => (layout.members, vdev(inner), inner.members),
        None if layout.level == Level::Raid10 => {
            (layout.members / layout.near.max(1), Some("mirror"), layout.near)
        }
        None => (1, vdev(layout), layout.members),
    };
    let group = match of {
        Some(word) => format!(" {word} {}", drives(width)),
        None => format!(" {}", drives(width)),
    };
    let spares = match candidate.spares {
        0 => String::new(),
        spares => format!(" spare {}", drives(spares)),
    };
    format!("zpool create -o ashift=12 POOL{}{spares}", group.repeat(usize::from(groups)))
}

/// What decides the question before any figure of md's.
pub(crate) fn first(wanted: &Wanted, advice: &Advice) -> Vec<String> {
    match wanted.software {
        Software::Md => Vec::new(),
        Software::Zfs => zfs(wanted, advice),
        Software::FilePool => vec![file_pool(&wanted.sizes)],
        Software::Controller => vec![
            "The figures are those of md's levels on plain drives: a controller's cache, firmware and rate of \
             rebuilds are not modelled. A write cache with a battery answers small writes and flushes until it is \
             full, so small writes beside parity may be far better there than here; a battery that is worn out \
             switches that off."
                .to_owned(),
        ],
    }
}

fn zfs(wanted: &Wanted, advice: &Advice) -> Vec<String> {
    let shown = || advice.finalists.iter().map(|one| &one.candidate.layout);
    let (parity, mirror) = (shown().any(Layout::has_parity), shown().any(|one| !one.has_parity()));
    let mut told: Vec<String> = growing(wanted, advice).into_iter().collect();
    let is_small = |part: &crate::profile::Part| {
        matches!(part.counted, Counted::Operations | Counted::Metric(..))
    };
    let parts = &wanted.profile.parts;
    if parity && parts.iter().any(|part| is_small(part) || part.is_random()) {
        let rate = random_rate(&wanted.drive.kind, DriveOp::Read, 1);
        let rows = if parts.iter().any(is_small) { "At this work" } else { "Of such reads" };
        let take = match mirror {
            true => {
                ": take mirrors for that, and RAIDZ for files that are read and written in order"
            }
            false => ": mirrors are what to look at",
        };
        told.push(format!(
            "In ZFS each block that is read takes all drives of its RAIDZ vdev, so random reads are about one drive's \
             (small ones {rate:.0} a second, one in flight), however wide it is; writes go out as whole stripes and \
             read nothing first. md's raid5 and raid6 are the other way round. {rows} the rows of parity below say \
             nothing of RAIDZ{take}."
        ));
    } else if parity {
        told.push(
            "In ZFS files that are read and written in order go about as fast on RAIDZ as here on raid5 and raid6, up \
             to what its drives with data give together; small random reads would be about one drive's. Its space is \
             that of the table less the padding of blocks that are smaller than a stripe."
                .to_owned(),
        );
    }
    told.extend(widths(&wanted.drives));
    told
}

fn widths(drives: &RangeInclusive<u16>) -> Option<String> {
    (drives.start() != drives.end()).then(|| {
        "No width is best by rule: that of 2^n drives with data is about how RAIDZ pads small blocks that are not \
         compressed; md pads nothing."
            .to_owned()
    })
}

fn growing(wanted: &Wanted, advice: &Advice) -> Option<String> {
    wanted.later?;
    let shares = advice.growths.iter().filter_map(|(_, one)| match one {
        Growth::Reshape { layout, .. } if layout.has_parity() => {
            let share = 100.0 * f64::from(layout.data_members()) / f64::from(layout.drives());
            Some(format!("{layout} {share:.0} %"))
        }
        _ => None,
    });
    let shares: Vec<String> = shares.collect();
    (!shares.is_empty()).then(|| format!(
        "A RAIDZ vdev is widened by one drive after the other, and what was written before keeps the share of parity \
         of the old width until it is written anew, so less of it is for data than of md's, which rewrites \
         everything ({}). Vdevs that are added keep their own share.",
        shares.join(", ")
    ))
}

/// The parity drive of a pool of files.
fn file_pool(sizes: &[Sectors]) -> String {
    let mut sizes: Vec<u64> = sizes.iter().map(|size| size.bytes()).collect();
    sizes.sort_unstable();
    let fits = match sizes[..] {
        [.., second, largest] => {
            let data: u64 = sizes[..sizes.len() - 1].iter().sum();
            format!(
                " Here {} does for that: {} for data, and {} of the parity drive idle until the drives with data \
                 are larger.",
                terabytes(largest),
                terabytes(data),
                terabytes(largest - second)
            )
        }
        _ => String::new(),
    };
    format!(
        "In a pool of files with a parity drive (SnapRAID, Unraid) that drive must be at least as large as the largest \
         with data.{fits} md has no parity drive, and the figures below are its levels'."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidate::Mode;

    fn candidate(layout: &str, spares: u16) -> Candidate {
        Candidate { layout: layout.parse().expect("a layout"), spares, mode: Mode::None }
    }

    #[test]
    fn pools_have_their_own_names_and_commands() {
        for (layout, spares, name, vdevs) in [
            ("raid6(4)", 0, "raidz2 of 4", " raidz2 <4 drives>"),
            ("raid5(3)", 1, "raidz1 of 3 and a spare", " raidz1 <3 drives> spare <drive>"),
            ("raid10(4)", 0, "2 mirrors of 2", " mirror <2 drives> mirror <2 drives>"),
            ("raid1(2)", 0, "mirror of 2", " mirror <2 drives>"),
            ("raid0(3)", 0, "a stripe of 3", " <3 drives>"),
            ("raid5+0(2x3)", 0, "2 raidz1 vdevs of 3", " raidz1 <3 drives> raidz1 <3 drives>"),
        ] {
            let one = candidate(layout, spares);
            assert_eq!(Software::Zfs.name_of(&one).as_deref(), Some(name));
            assert_eq!(zpool(&one), format!("zpool create -o ashift=12 POOL{vdevs}"));
        }
        let lacks = |layout: &str| Software::Zfs.lacks(&candidate(layout, 0).layout).is_some();
        assert!(lacks("raid10(4) far2") && lacks("raid10(5)") && !lacks("raid10(6) near3"));
    }

    #[test]
    fn a_parity_drive_is_as_large_as_the_largest() {
        let sizes = [10u64, 12, 10, 10].map(|size| Sectors(size * 1_000_000_000_000 / 512));
        let told = file_pool(&sizes);
        assert!(told.contains("12.0 TB does for that: 30.0 TB for data, and 2.0 TB of"), "{told}");
    }
}
