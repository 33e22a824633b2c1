//! Which devices the members of each layout are on.

use raidlab_core::Sectors;
use raidlab_study::{NamedLayout, Study};

/// Devices stand in the order of the study's groups of drives, of each as many as any layout takes from it; groups that
/// no layout uses have none. With one group, every layout is on the first.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// By layout and place of the member, the index of its device.
    layouts: Vec<Vec<usize>>,
    /// The name of the group of each device that is a member.
    groups: Vec<String>,
}

impl Places {
    pub(crate) fn of(study: &Study) -> Self {
        let taken: Vec<Vec<(usize, usize)>> = study.layouts.iter().map(taken).collect();
        let most = |group: usize| {
            let of_group = taken.iter().flatten().filter(|(from, _)| *from == group);
            of_group.map(|(_, number)| number + 1).max().unwrap_or(0)
        };
        let mut groups = Vec::new();
        let mut first = Vec::new();
        for (index, group) in study.drives.iter().enumerate() {
            first.push(groups.len());
            groups.extend((0..most(index)).map(|_| group.name.clone()));
        }
        let device = |(group, number): &(usize, usize)| first[*group] + number;
        let layouts = taken.iter().map(|members| members.iter().map(device).collect()).collect();
        Self { layouts, groups }
    }

    /// How many devices are members of some layout.
    pub(crate) const fn count(&self) -> usize {
        self.groups.len()
    }

    /// Those of a layout, in the order of its members.
    pub(crate) fn of_layout(&self, layout: usize) -> &[usize] {
        &self.layouts[layout]
    }

    /// How many of which group stand in which order, if there are several.
    pub(crate) fn each_group(&self) -> String {
        let runs: Vec<String> = self
            .groups
            .chunk_by(|one, other| one == other)
            .map(|run| format!("{} for {}", run.len(), run[0]))
            .collect();
        if runs.len() < 2 {
            String::new()
        } else {
            format!(" (in this order: {})", runs.join(", "))
        }
    }

    /// How large the largest member of a layout is that is on a device, of the members of each layout.
    pub(crate) fn largest(&self, device: usize, members: &[Sectors]) -> Sectors {
        let of_layouts = self.layouts.iter().zip(members);
        let on_it = of_layouts.filter(|(devices, _)| devices.contains(&device));
        on_it.map(|(_, size)| *size).max().unwrap_or_default()
    }

    /// The group of drives that a device stands for, if there are several.
    pub(crate) fn group(&self, device: usize) -> Option<&str> {
        let name = self.groups.get(device)?;
        self.groups.iter().any(|other| other != name).then_some(name)
    }
}

/// Of each member its group, and how many of the members before it are of the same.
fn taken(named: &NamedLayout) -> Vec<(usize, usize)> {
    let groups: Vec<usize> =
        (0..usize::from(named.layout.drives())).map(|place| named.group(place)).collect();
    let before = |place: usize| groups[..place].iter().filter(|one| **one == groups[place]).count();
    (0..groups.len()).map(|place| (groups[place], before(place))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(groups: &str, layouts: &str) -> Places {
        let text = format!(
            "title = \"places\"\ndrives = [{groups}]\nlayouts = [{layouts}]\n\
             workloads = [{{ kind = \"dd-read\", size = \"1MiB\" }}]\n"
        );
        let study = raidlab_study::parse(&text, "places.toml");
        Places::of(&study.unwrap_or_else(|error| panic!("{error}")))
    }

    const FAST: &str = r#"{ name = "fast", file = "8MiB", count = 3 }"#;
    const SLOW: &str = r#"{ name = "slow", file = "8MiB", count = 4 }"#;

    #[test]
    fn layouts_of_one_group_are_on_the_first_devices() {
        let places =
            places(SLOW, r#"{ level = "raid1", members = 2 }, { level = "raid0", members = 4 }"#);
        assert_eq!(places.count(), 4);
        assert_eq!(places.of_layout(0), [0, 1]);
        assert_eq!(places.of_layout(1), [0, 1, 2, 3]);
        assert_eq!((places.group(0), places.each_group()), (None, String::new()));
    }

    #[test]
    fn each_group_has_devices_of_its_own() {
        let places = places(
            &format!("{FAST}, {SLOW}"),
            r#"{ level = "raid1", members = 2, drives = "slow" },
               { level = "raid0", members = 2, drives = "fast" },
               { level = "raid5", members = 4, drives = ["slow", "fast", "slow", "slow"] }"#,
        );
        assert_eq!(places.count(), 5, "two fast ones, three slow ones");
        assert_eq!(places.of_layout(0), [2, 3]);
        assert_eq!(places.of_layout(1), [0, 1]);
        assert_eq!(places.of_layout(2), [2, 0, 3, 4]);
        let groups: Vec<_> = (0..6).map(|device| places.group(device)).collect();
        let [fast, slow] = [Some("fast"), Some("slow")];
        assert_eq!(groups, [fast, fast, slow, slow, slow, None]);
        let sizes = [Sectors(30), Sectors(10), Sectors(20)];
        let largest: Vec<u64> = (0..5).map(|device| places.largest(device, &sizes).0).collect();
        assert_eq!(largest, [20, 10, 30, 30, 20]);
        assert_eq!(places.each_group(), " (in this order: 2 for fast, 3 for slow)");
    }

    #[test]
    fn a_group_that_no_layout_uses_has_none() {
        let places = places(
            &format!("{FAST}, {SLOW}"),
            r#"{ level = "raid1", members = 2, drives = "slow" }"#,
        );
        assert_eq!((places.count(), places.of_layout(0)), (2, &[0, 1][..]));
        assert_eq!(places.group(0), None);
    }
}
