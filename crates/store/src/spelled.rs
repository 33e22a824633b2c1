//! A study with every choice spelled out, also those its file leaves to defaults.

use raidlab_core::contract::PacingRule;
use raidlab_core::{SECTOR_BYTES, Sectors};
use raidlab_study::{CellKey, DriveSource, Drives, IDLE_REBUILD, NamedLayout, State, Study, cells};
use raidlab_workload::WorkloadSpec;
use serde_json::{Value, json};

use crate::line::CellName;

/// The cells of a study by name, in the order of [`cells`].
pub fn cell_names(study: &Study) -> Vec<CellName> {
    let name = |key: CellKey| CellName {
        layout: study.layouts[key.layout].name.clone(),
        workload: key.workload(study).map_or(IDLE_REBUILD, |spec| &spec.name).to_string(),
        processes: key.processes,
        state: key.state.name().to_string(),
        again: key.again,
    };
    cells(study).into_iter().map(name).collect()
}

/// Everything that makes a study what it is. Sizes are in bytes; what has no other words is as the program
/// itself writes it (keys in `exactly`).
pub fn spelled_out(study: &Study) -> Value {
    let states: Vec<&str> = study.states.iter().copied().map(State::name).collect();
    let parameters: Vec<String> =
        study.parameters.iter().map(|one| format!("{} = {}", one.title(), one.shown())).collect();
    json!({
        "title": study.title,
        "seed": study.seed,
        "rounds": study.rounds,
        "max_rounds": study.max_rounds,
        "precision_percent": study.precision_percent,
        "baseline": study.baseline,
        "processes": study.processes,
        "states": states,
        "member_size": study.member_size.map(Sectors::bytes),
        "filesystem": study.filesystem,
        "drives": study.drives.iter().map(drives).collect::<Vec<_>>(),
        "layouts": study.layouts.iter().map(|one| layout(study, one)).collect::<Vec<_>>(),
        "workloads": study.workloads.iter().map(workload).collect::<Vec<_>>(),
        "host": study.host.as_ref().map(|host| format!("{host:?}")),
        "paths": study.paths.iter().map(|path| format!("{path:?}")).collect::<Vec<_>>(),
        "parameters": parameters,
    })
}

fn drives(group: &Drives) -> Value {
    let (model, file) = match &group.source {
        DriveSource::Model(name) => (Some(name), None),
        DriveSource::File(size) => (None, Some(size.0)),
    };
    json!({
        "name": group.name,
        "model": model,
        "file": file,
        "count": group.count,
        "scheduler": group.scheduler.as_ref().map(|scheduler| format!("{scheduler:?}")),
    })
}

fn layout(study: &Study, named: &NamedLayout) -> Value {
    let layout = &named.layout;
    let members = 0..usize::from(layout.drives());
    let groups: Vec<&str> =
        members.map(|member| study.drives[named.group(member)].name.as_str()).collect();
    let settings = &named.settings;
    let mut spelled = json!({
        "name": named.name,
        "level": layout.level.name(),
        "members": layout.members,
        "chunk": layout.chunk.bytes(),
        "rotation": layout.rotation.name(),
        "near": layout.near,
        "far": layout.far,
        "offset": layout.offset,
        "far_sets": layout.far_sets,
        "zones": layout.zones.name(),
        "read_policy": named.read_policy.name(),
        "consistency": settings.consistency.to_string(),
        "deadline_ns": settings.deadline.map(|deadline| deadline.0),
        "heal_tries": settings.heal_tries,
        "most_corrected": settings.most_corrected,
        "most_bad_blocks": settings.most_bad_blocks,
        "pacing_least": settings.pacing.least,
        "pacing_most": settings.pacing.most,
        "pacing_share": match settings.pacing.rule {
            PacingRule::Share(share) => Some(share),
            _ => None,
        },
        "clean_after_ns": settings.clean_after.0,
        "bitmap_delay_ns": settings.bitmap_delay.0,
        "tie": format!("{:?}", settings.tie),
        "cached_stripes": settings.cached_stripes,
        "plan_rows": settings.plan_rows.0 * SECTOR_BYTES,
        "drives": groups,
        "hardware": format!("{:?}", named.hardware),
        "host": named.host.as_ref().map(|host| format!("{host:?}")),
    });
    // Not for others, so that their runs are known by the names they had.
    if let Some(size) = named.member_size {
        spelled["member_size"] = json!(size.bytes());
    }
    if named.spares > 0 {
        spelled["spares"] = json!(named.spares);
    }
    if let PacingRule::Depth(depth) = settings.pacing.rule {
        spelled["sync_io_depth"] = json!(depth);
    }
    if let Some(inner) = &layout.inner {
        spelled["inner"] = json!(inner.to_string());
    }
    spelled
}

fn workload(spec: &WorkloadSpec) -> Value {
    json!({
        "name": spec.name,
        "kind": spec.workload.kind(),
        "description": spec.workload.description(),
        "exactly": format!("{:?}", spec.workload),
        "settings": spec.settings,
        "shown": spec.shown,
        "only_layouts": spec.only_layouts,
        "only_processes": spec.only_processes,
        "read_ahead": spec.read_ahead,
    })
}
