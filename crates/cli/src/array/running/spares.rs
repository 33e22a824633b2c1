//! Devices that are to be spares of an array, looked at before it begins.

use std::path::PathBuf;

use raidlab_engine::Member;
use raidlab_metadata::MetadataFormat;
use raidlab_metadata::md::{DeviceNumbers, Md, Role};

use super::super::disk::Disk;
use super::super::open::Found;
use crate::failure::Failure;

/// That devices can be spares of the array. Whatever is wrong with one is said while the array is as it was.
pub(super) fn check(found: &Found, spares: &mut [(PathBuf, Member)]) -> Result<(), Failure> {
    if spares.is_empty() {
        return Ok(());
    }
    if found.is_geom() {
        let what = "labels of GEOM say nothing of spares: add the device when a member has failed";
        return Err(Failure::input(format!("--spare: {what}")));
    }
    if let Some(layout) = found.decision.as_ref().ok().map(|assembly| &assembly.layout)
        && layout.survives() == 0
    {
        let what = "has no redundancy, so that nothing could be rebuilt onto a spare";
        return Err(Failure::input(format!("--spare: {layout} {what}")));
    }
    let is_member = |given: &usize| {
        let superblock = found.inspected[*given].superblock();
        superblock.is_some_and(|one| matches!(one.role(), Role::Member(_)))
    };
    // Without a member there is no array, which is told when it does not begin.
    let Some(model) = (0..found.paths.len()).find(is_member) else { return Ok(()) };
    let md = Md { block: 1 };
    let model = md.examine(&mut Disk::open(&found.paths[model])?).places;
    for (path, device) in spares {
        // Its number and identity are of no account here, and nothing is written.
        md.ready(device, &model, &DeviceNumbers::default(), [0; 16])
            .map_err(|why| Failure::input(format!("--spare {}: {why}", path.display())))?;
    }
    Ok(())
}
