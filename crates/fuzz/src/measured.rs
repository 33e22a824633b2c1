//! Measured drives: traces and the parameters beside them.

use std::sync::OnceLock;

use raidlab_core::{Nanos, Sectors};
use raidlab_models::trace::{Detail, Measured, compare, parse_parameters, parse_requests, replay};
use raidlab_models::{Drive, DriveKind, HardDisk, HardDiskSpec};

use crate::text::{text, use_drive};

/// Requests that are replayed: enough for all that a drive does.
const REPLAYED: usize = 32;

/// A drive for traces.
fn disk() -> &'static (HardDiskSpec, Sectors) {
    static DISK: OnceLock<(HardDiskSpec, Sectors)> = OnceLock::new();
    DISK.get_or_init(|| {
        let spec = raidlab_models::load("pata-40gb-5400").expect("is compiled in");
        match spec.kind {
            DriveKind::HardDisk(disk) => (disk, spec.capacity),
            other => panic!("is a hard disk, not {other:?}"),
        }
    })
}

/// A trace: what is read lies on the drive, and can be replayed and compared.
pub fn trace(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let (spec, capacity) = disk();
    let Ok(requests) = parse_requests(text, "drive.trace", capacity.0) else { return };
    assert!(requests.iter().all(|one| one.at.0 + u64::from(one.len) <= capacity.0 && one.len > 0));
    compared(spec, &requests[..requests.len().min(REPLAYED)]);
}

fn compared(spec: &HardDiskSpec, requests: &[Measured]) {
    let modelled = replay(spec, requests, 1);
    assert_eq!(modelled.len(), requests.len());
    assert!(modelled.iter().all(|time| *time > Nanos::ZERO));
    let score = compare(spec, requests, 1);
    assert_eq!(score.requests, requests.len());
    assert!(score.demerit_ms >= 0.0);
}

/// The parameters of a measured drive: both drives that they make answer every command.
pub fn parameters(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let Ok(parameters) = parse_parameters(text, "drive.toml") else { return };
    for detail in [Detail::Full, Detail::Sheet] {
        let spec = parameters.spec(detail);
        use_drive(&mut Drive::HardDisk(HardDisk::new(spec, 1)), spec.figures().capacity);
    }
}
