//! The layout of a study that is left on its devices as an array of Linux md.

use std::fs::File;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use raidlab_core::consistency::ArrayId;
use raidlab_core::suggest::did_you_mean;
use raidlab_core::{Consistency, SECTOR_BYTES, Sectors, Size};
use raidlab_measure::{Devices, MemberFormat, Sizes, md_creation};
use raidlab_metadata::md::{Creation, Made, Plan};
use raidlab_study::Study;

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
    /// As what it is measured.
    measured: MemberFormat,
    /// Its devices among those of the study, in its order: the members, then the spare, then the log device.
    devices: Vec<usize>,
    /// The paths of those and of the others.
    used: Vec<String>,
    left: Vec<String>,
}

impl Keep {
    /// The layout of this name on whole devices, as `mdadm --create` would make it: the array that is measured, but
    /// that devices are used to their ends, and that redundancy is not taken to be consistent.
    pub(crate) fn new(
        name: &str,
        study: &Study,
        (devices, sizes): (&Devices, &Sizes),
    ) -> Result<Self, Failure> {
        let wrong = |what: String| Failure::input(format!("--keep {name}: {what}"));
        let names: Vec<&str> = study.layouts.iter().map(|one| one.name.as_str()).collect();
        let index = study.layouts.iter().position(|one| one.name == name).ok_or_else(|| {
            let near = did_you_mean(name, &names);
            wrong(format!("the study has no such layout{near}; it has {}", names.join(", ")))
        })?;
        let named = &study.layouts[index];
        let has_journal = matches!(named.settings.consistency, Consistency::Journal { .. });
        let members = devices.members(index);
        let with_role =
            |role: &str| (0..devices.claims().len()).find(|index| devices.role(*index) == role);
        let spare = with_role("spare").filter(|_| named.layout.level.is_redundant());
        let log = with_role("log device").filter(|_| has_journal);
        let sectors = |index: usize| {
            Sectors(devices.each().nth(index).map_or(0, |one| one.size / SECTOR_BYTES))
        };
        let each: Vec<Sectors> = members.iter().copied().map(sectors).collect();
        let creation = Creation {
            devices: each
                .iter()
                .map(|sectors| create::device(*sectors).map(Some))
                .collect::<Result<_, Failure>>()?,
            spares: spare
                .into_iter()
                .map(|index| create::device(sectors(index)))
                .collect::<Result<_, Failure>>()?,
            journal: log
                .map(|index| create::log_device(create::device(sectors(index))?))
                .transpose()?,
            assume_clean: false,
            array: create::random()? as ArrayId,
            name: create::of_host(&hostname(), NAME),
            now: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
            ..md_creation(named, &each, None)
        };
        let plan = creation.plan().map_err(|error| wrong(error.to_string()))?;
        let all: Vec<usize> = members.iter().copied().chain(spare).chain(log).collect();
        let path = |one: &raidlab_engine::Device| one.path.display().to_string();
        let paths: Vec<String> = devices.each().map(path).collect();
        let used = all.iter().map(|index| paths[*index].clone()).collect();
        let is_left = |(index, _): &(usize, String)| !all.contains(index);
        let left = paths.into_iter().enumerate().filter(is_left).map(|(_, path)| path).collect();
        let measured = sizes.formats[index].clone();
        Ok(Self { layout: name.to_owned(), creation, plan, measured, devices: all, used, left })
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
        lines.push(self.as_measured());
        if !self.left.is_empty() {
            lines.push(format!("{} keep what the study wrote.", self.left.join(" ")));
        }
        lines
    }

    /// What is measured of it.
    fn as_measured(&self) -> String {
        match &self.measured {
            MemberFormat::Md(measured) => format!(
                "It is measured as such an array: data from {} on, {} of each used.",
                Size(measured.data_offset.bytes()),
                Size(measured.data.bytes())
            ),
            MemberFormat::Own(why) => {
                format!("It is measured with raidlab's own metadata, not with md's: {why}.")
            }
            MemberFormat::Nothing(why) => format!("It is measured without metadata: {why}."),
        }
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
