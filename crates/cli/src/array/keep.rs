//! The layout of a study that is left on its devices as an array of Linux md.

use std::fs::File;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use raidlab_core::consistency::ArrayId;
use raidlab_core::suggest::did_you_mean;
use raidlab_core::{Consistency, SECTOR_BYTES, Sectors, Size};
use raidlab_measure::Devices;
use raidlab_metadata::md::{Creation, Made, Plan, Version, WantedBitmap};
use raidlab_study::{NamedLayout, Study};

use super::create;
use super::examine::{hostname, uuid};
use crate::compare::quoted;
use crate::consent;
use crate::failure::Failure;

/// What the array is called, behind the name of this machine.
const NAME: &str = "raidlab";

/// An array that is to be left, planned before anything is written.
#[derive(Debug)]
pub(crate) struct Keep {
    layout: String,
    creation: Creation,
    plan: Plan,
    /// Its devices among those of the study, in its order: the members, then the spare, then the log device.
    devices: Vec<usize>,
    /// The paths of those and of the others.
    used: Vec<String>,
    left: Vec<String>,
}

impl Keep {
    /// The layout of this name on whole devices, as `mdadm --create` would make it.
    pub(crate) fn new(name: &str, study: &Study, devices: &Devices) -> Result<Self, Failure> {
        let wrong = |what: String| Failure::input(format!("--keep {name}: {what}"));
        let names: Vec<&str> = study.layouts.iter().map(|one| one.name.as_str()).collect();
        let named = study.layouts.iter().find(|one| one.name == name).ok_or_else(|| {
            let near = did_you_mean(name, &names);
            wrong(format!("the study has no such layout{near}; it has {}", names.join(", ")))
        })?;
        let (bitmap, ppl, has_journal) = consistency(named);
        let members = usize::from(named.layout.drives());
        let with_role =
            |role: &str| (0..devices.claims().len()).find(|index| devices.role(*index) == role);
        let spare = with_role("spare").filter(|_| named.layout.level.is_redundant());
        let log = with_role("log device").filter(|_| has_journal);
        let device = |index: usize| {
            let sectors = devices.each().nth(index).map_or(0, |one| one.size / SECTOR_BYTES);
            create::device(Sectors(sectors))
        };
        let log_device = |index: usize| create::log_device(device(index)?);
        let creation = Creation {
            version: Version::V1_2,
            devices: (0..members)
                .map(|index| device(index).map(Some))
                .collect::<Result<_, Failure>>()?,
            spares: spare.into_iter().map(device).collect::<Result<_, Failure>>()?,
            bitmap,
            ppl,
            journal: log.map(log_device).transpose()?,
            assume_clean: false,
            data_offset: None,
            size: None,
            array: create::random()? as ArrayId,
            name: create::of_host(&hostname(), NAME),
            now: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
            layout: named.layout.clone(),
        };
        let plan = creation.plan().map_err(|error| wrong(error.to_string()))?;
        let all: Vec<usize> = (0..members).chain(spare).chain(log).collect();
        let path = |one: &raidlab_engine::Device| one.path.display().to_string();
        let paths: Vec<String> = devices.each().map(path).collect();
        let used = all.iter().map(|index| paths[*index].clone()).collect();
        let is_left = |(index, _): &(usize, String)| !all.contains(index);
        let left = paths.into_iter().enumerate().filter(is_left).map(|(_, path)| path).collect();
        Ok(Self { layout: name.to_owned(), creation, plan, devices: all, used, left })
    }

    /// What will be done, in lines for the user.
    pub(crate) fn shown(&self) -> Vec<String> {
        let size = match self.plan.size {
            Sectors::ZERO => "each used to its end".to_owned(),
            size => format!("{} of each used", Size(size.bytes())),
        };
        let bitmap = match (&self.plan.bitmap, &self.plan.journal) {
            (Some(_), _) => "with a bitmap",
            (None, Some(_)) => "with a journal on the last of them",
            (None, None) => "without a bitmap",
        };
        let mut lines = vec![
            format!(
                "Then {} is left on {} as an array of Linux md (1.2,",
                self.layout,
                self.used.join(" ")
            ),
            format!("data from {} on, {size}, {bitmap}).", Size(self.plan.data_offset.bytes())),
        ];
        if !self.left.is_empty() {
            lines.push(format!("{} keep what the study wrote.", self.left.join(" ")));
        }
        lines
    }

    pub(crate) fn not_kept(&self) -> String {
        format!("{} is not left on the devices: the study did not come to its end", self.layout)
    }

    /// Writes it; gives what it is. The ends of each device go first, with whatever signature the study left there.
    pub(crate) fn write(&self, devices: &Devices) -> Result<String, Failure> {
        let made = self.plan.members.iter().flatten().chain(&self.plan.spares);
        let made = made.chain(&self.plan.journal);
        let files = self.devices.iter().map(|index| devices.claims()[*index].cached_file());
        let files = files.collect::<Result<Vec<File>, _>>().map_err(Failure::failed)?;
        let all: Vec<(&Path, &File, &Made)> = self
            .used
            .iter()
            .zip(&files)
            .zip(made)
            .map(|((path, file), made)| (Path::new(path), file, made))
            .collect();
        for ((path, file, _), device) in all.iter().zip(&self.devices) {
            consent::clear_ends(file, devices.claims()[*device].device())
                .map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
        }
        create::write(&all)?;
        Ok(format!("{} as array {} of Linux md", self.layout, uuid(&self.creation.array)))
    }

    /// How the array is started.
    pub(crate) fn how_to_start(&self) -> String {
        let begins = create::begins(&self.creation);
        let paths: Vec<String> = self.used.iter().map(|path| quoted(path)).collect();
        let start = format!("mdadm --assemble /dev/md/{NAME} {}", paths.join(" "));
        format!(
            "{} is on {} as an array of Linux md; udev may start it by itself, or:\n  {start}\n{begins}",
            self.layout,
            self.used.join(" ")
        )
    }
}

/// How redundancy is kept consistent as the study did it, in md's way: which bitmap, whether by partial parity, by a
/// journal.
const fn consistency(named: &NamedLayout) -> (WantedBitmap, bool, bool) {
    match named.settings.consistency {
        Consistency::None | Consistency::Resync => (WantedBitmap::None, false, false),
        Consistency::Bitmap { .. } => (WantedBitmap::Internal, false, false),
        Consistency::PartialParity { .. } => (WantedBitmap::None, true, false),
        Consistency::Journal { .. } => (WantedBitmap::None, false, true),
    }
}
