//! What stands in for drives: member files, or block devices.

use std::fs::File;
use std::path::{Path, PathBuf};

use raidlab_engine::EngineError;
use raidlab_targets::RunDirectory;

use crate::devices::Devices;

/// What serves as drives.
#[derive(Debug)]
pub enum Drives {
    /// Member files in a directory of their own.
    Files(RunDirectory),
    /// Block devices.
    Devices(Devices),
}

impl Drives {
    /// Opens a member of a layout; gives its path too.
    pub(super) fn member(&self, layout: usize, index: u16) -> Result<(File, PathBuf), EngineError> {
        match self {
            Self::Files(directory) => {
                let path = directory.member_path(index).unwrap_or_default();
                Ok((directory.open_member(index)?, path))
            }
            Self::Devices(devices) => devices.member(layout, index),
        }
    }

    /// Opens the drive that takes a failed member's place.
    pub(super) fn spare(&self) -> Result<(File, PathBuf), EngineError> {
        match self {
            Self::Files(directory) => directory.open_spare(),
            Self::Devices(devices) => devices.spare(),
        }
    }

    /// Opens the log device.
    pub(super) fn journal(&self) -> Result<(File, PathBuf), EngineError> {
        match self {
            Self::Files(directory) => directory.open_journal(),
            Self::Devices(devices) => devices.journal(),
        }
    }

    /// Takes superblocks of md's off devices, which somebody else may start an array of once they are free. Files go
    /// with their directory.
    pub(super) fn clear_superblocks(&self) -> Result<(), EngineError> {
        match self {
            Self::Files(_) => Ok(()),
            Self::Devices(devices) => devices.clear_superblocks(),
        }
    }

    /// The directory in which filesystems on arrays are mounted.
    pub fn mount_place(&self) -> PathBuf {
        let beside = match self {
            Self::Files(directory) => directory.path().parent().map(Path::to_path_buf),
            Self::Devices(_) => None,
        };
        beside.unwrap_or_else(std::env::temp_dir)
    }

    /// What members are, for messages.
    pub(super) fn what(&self) -> &'static str {
        match self {
            Self::Files(_) => "files",
            Self::Devices(_) => "devices",
        }
    }
}
