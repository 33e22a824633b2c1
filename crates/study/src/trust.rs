//! How far a predicted cell can be trusted: which cells, that a kernel ran as well, are like it.

use raidlab_core::policy::ReadPolicy;
use raidlab_core::{Consistency, Level};
use raidlab_models::builtin;
use raidlab_results::trust::{Access, CellTrust, GroupRow, Members, Traits, Trust};
use raidlab_results::{Bottleneck, Cell};

use crate::matrix::CellKey;
use crate::study::{DriveSource, NATIVE, NamedLayout, State, Study, not_modelled};

/// What is known of a cell; `wrote` says whether anything is written in it, `first` whether its figure is the first of
/// its workload, the one that was compared. Differences below `doubt` its row does not resolve, as a ratio less 1;
/// `None` where nothing is compared.
pub(crate) fn of(
    study: &Study,
    key: &CellKey,
    (wrote, first): (bool, bool),
    cell: &Cell,
    doubt: Option<f64>,
) -> CellTrust {
    let group = group(study, key, wrote).and_then(|group| {
        let alone =
            "not checked against a kernel: only the first figure of each workload was compared";
        if first { Ok(group) } else { Err(alone.to_owned()) }
    });
    let floor = |own: Option<u32>| doubt.map_or(own, in_percent);
    let (reason, floor) = match group {
        Err(reason) => (reason, floor(None)),
        Ok(group) => match unlike_its_group(study, key, cell) {
            // What the model cannot tell of others is not told of it either.
            Some(what) => (not_checked(what), floor(group.floor_percent)),
            None => return like(group, cell, floor(group.floor_percent)),
        },
    };
    let reason = match (floor, doubt) {
        (Some(floor), _) => {
            format!("{reason}; differences below {floor} % are not resolved, as of others")
        }
        (None, Some(doubt)) if doubt > 0.0 => {
            format!("{reason}; no difference is resolved, as of others")
        }
        (None, _) => reason,
    };
    CellTrust { not_checked: Some(reason), floor_percent: floor, ..CellTrust::default() }
}

/// What is known by the cells of a group.
fn like(group: &GroupRow, cell: &Cell, floor_percent: Option<u32>) -> CellTrust {
    CellTrust {
        not_checked: None,
        group: Some(group.name.clone()),
        cells: Some(group.cells),
        interval90: Some(group.interval(cell.median)),
        sign_of_100: cell
            .verdict
            .and(cell.percent_vs_baseline)
            .map(|percent| group.sign_of_100(percent)),
        floor_percent,
    }
}

/// A doubt as groups have it; `None` where there is none, or nothing is resolved.
fn in_percent(doubt: f64) -> Option<u32> {
    let percent = (doubt * 100.0).round();
    (percent > 0.0 && percent < f64::from(u32::MAX)).then_some(percent as u32)
}

fn not_checked(what: &str) -> String {
    format!("not checked against a kernel: {what}")
}

/// Busiest for this share of the time or more, the processor sets the pace.
const BUSY: f64 = 0.9;

/// What keeps a figure from being like those of its group.
fn unlike_its_group(study: &Study, key: &CellKey, cell: &Cell) -> Option<&'static str> {
    let computes = |one: &Bottleneck| one.resource == "cpu" && one.busy >= BUSY;
    if cell.bottleneck.as_ref().is_some_and(computes) {
        return Some("the processor sets the pace, and in the lab computing takes no time");
    }
    let kind = key.workload(study)?.workload.kind();
    (!is_drawn(kind)).then_some("workloads of this kind were not compared")
}

/// Kinds of workload that drawn cells have.
const DRAWN: [&str; 9] = [
    "dd-write",
    "dd-read",
    "random-read",
    "random-write",
    "dd",
    "cp-null",
    "small-files",
    "tar-xf",
    "fio",
];
/// Programs of which they have one version.
const DRAWN_PROGRAMS: [&str; 2] = ["bonnie-", "tiobench-"];

fn is_drawn(kind: &str) -> bool {
    DRAWN.contains(&kind) || DRAWN_PROGRAMS.iter().any(|program| kind.starts_with(program))
}

/// What the model cannot tell of some cells that are compared, as a ratio less 1; with each whether anything is
/// written.
/// Nothing is known of those that no kernel was compared in.
pub(crate) fn doubt<'a>(study: &Study, cells: impl Iterator<Item = (&'a CellKey, bool)>) -> f64 {
    if !study.modelled {
        return 0.0;
    }
    let floors = cells.filter_map(|(key, wrote)| Some(group(study, key, wrote).ok()?.floor()));
    floors.fold(0.0, f64::max)
}

/// Why nothing is known of studies on raw arrays that name no host.
pub const NO_HOST: &str = "without a host this is raidlab's own engine, which is not a kernel's md; \
                       host = { kernel = \"linux-6.12\" } models that";

/// The group of a cell, or why there is none.
fn group(study: &Study, key: &CellKey, wrote: bool) -> Result<&'static GroupRow, String> {
    let not = |what: &str| Err(not_checked(what));
    let trust = Trust::recorded();
    let layout = &study.layouts[key.layout];
    let Some(workload) = key.workload(study) else {
        return not("rebuilds alone were not compared");
    };
    if let Some(what) = unlike_the_lab(study, layout) {
        return not(what);
    }
    let Some(kernel) = study.kernel_of(key.layout) else {
        return not(NO_HOST);
    };
    // 6.1 and 6.12 differ in little, and share their cells.
    if !kernel.is_of_today() {
        return not("the host's kernel is not in the lab");
    }
    if let Some(name) = &study.filesystem {
        let usual = if name == NATIVE { kernel.filesystem().name() } else { name };
        // A layout may have its own; hosts do not know those that are not modelled.
        let own = layout.host.as_ref().filter(|_| not_modelled(name).is_none());
        let name = own.map_or(usual, |host| host.filesystem.name());
        if !trust.filesystems.iter().any(|known| known == name) {
            return not(&format!("no cells on {name} were compared"));
        }
    }
    let metrics = workload.workload.metrics();
    let traits = Traits {
        filesystem: Some(study.filesystem.is_some()),
        members: Some(match key.state {
            State::Healthy => Members::Healthy,
            State::Degraded => Members::Lost,
            State::Rebuilding => Members::Rebuilding,
        }),
        access: metrics.first().map(|metric| Access::of_metric(metric.name)),
        writes: Some(wrote),
    };
    trust.group(traits).ok_or_else(|| not_checked("too few cells"))
}

/// What of a layout no drawn cell has.
fn unlike_the_lab(study: &Study, layout: &NamedLayout) -> Option<&'static str> {
    if layout.hardware.controller.is_some()
        || layout.hardware.routes.iter().any(|one| !one.is_empty())
    {
        return Some("controllers, buses and links that drives share were not compared");
    }
    if layout.layout.floors().count() > 1 || layout.layout.level == Level::Raid3 {
        return Some("the level was not compared");
    }
    if !matches!(layout.read_policy, ReadPolicy::LeastBusy | ReadPolicy::Md) {
        return Some("the read policy is not md's");
    }
    if !matches!(
        layout.settings.consistency,
        Consistency::None | Consistency::Resync | Consistency::Bitmap { .. }
    ) {
        return Some("logs of partial parity and journals were not compared");
    }
    let sources = || layout.groups().map(|group| study.drives.get(group).map(|one| &one.source));
    // Drawn cells have drives of one model each.
    let mut models = sources().flatten();
    let first = models.next();
    if models.any(|other| Some(other) != first) {
        return Some("arrays of different drives were not compared");
    }
    sources().find_map(|source| match source {
        Some(DriveSource::Model(name)) if is_of_the_lab(name) => None,
        Some(DriveSource::Model(name)) if !builtin().iter().any(|(known, _)| known == name) => {
            Some("a drive file of your own, which nobody has looked at")
        }
        _ => Some("drives of this kind were not compared"),
    })
}

/// Whether cells have drives of the kind: hard disks, and SSDs behind SATA. How near a drive is to a real one is
/// another question; files of one's own count as not compared, as nobody has looked at them.
fn is_of_the_lab(name: &str) -> bool {
    // By the text, as an SSD is filled when its file is loaded: that takes longer than many a study.
    let is_hard_disk = |text: &str| text.lines().any(|line| line == "kind = \"hard-disk\"");
    let mut known = builtin().iter().filter(|(known, _)| *known == name);
    known.any(|(name, text)| name.starts_with("ssd-sata") || is_hard_disk(text))
}

#[cfg(test)]
mod tests {
    use raidlab_models::{DriveKind, load};

    use super::*;

    #[test]
    fn hard_disks_and_ssds_behind_sata_were_compared() {
        for (name, text) in builtin().iter().filter(|(name, _)| !name.starts_with("ssd-")) {
            let drive = load(name).unwrap_or_else(|error| panic!("{name}: {error}"));
            let expected = matches!(drive.kind, DriveKind::HardDisk(_));
            assert_eq!(is_of_the_lab(name), expected, "{name}: {text}");
        }
        let others =
            ["ssd-sata-1tb", "ssd-nvme5-2tb", "nas-8tb-7200.toml", "nas"].map(is_of_the_lab);
        assert_eq!(others, [true, false, false, false]);
    }
}
