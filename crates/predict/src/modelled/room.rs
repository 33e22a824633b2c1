//! Whether drives have room for what a layout puts on them.

use raidlab_core::Config;
use raidlab_sim::{SimError, World};
use raidlab_study::{StudyError, StudyErrorKind};

use super::Modelled;

impl Modelled<'_> {
    /// Each drive of a layout has room for what a run puts there. Members are made as large as their drives at most; a
    /// log is as large as the study says.
    pub(super) fn check_drives(&self, layout: usize, config: &Config) -> Result<(), StudyError> {
        let named = &self.study.layouts[layout];
        // The last place is that of a log device.
        let places = 0..=config.members.len();
        let capacities = places.map(|place| self.drives[named.group(place)].capacity);
        World::check_drives(config, capacities).map_err(|error| self.not_set_up(layout, &error))
    }

    /// A hot spare can take the place of each member, also of one from a group of larger drives.
    pub(super) fn check_spares(&self, layout: usize, config: &Config) -> Result<(), StudyError> {
        let named = &self.study.layouts[layout];
        if named.spares == 0 {
            return Ok(());
        }
        let error = |reason: String| {
            let kind = StudyErrorKind::ImpossibleLayout;
            self.study.origin.error(kind, ("layouts", layout, "spares"), reason)
        };
        let behind = World::metadata_sectors(config).map_err(|why| error(why.to_string()))?;
        let needed = config.members.iter().map(|member| member.sectors).max().unwrap_or_default();
        let capacity = self.drives[named.drives].capacity;
        if capacity < needed + behind {
            let group = &self.study.drives[named.drives].name;
            let reason = format!(
                "are of `{group}`, the group of the first member, whose drives have {} bytes: a member uses {}; \
                 name a group of larger drives first, or give a `member_size`",
                capacity.bytes(),
                (needed + behind).bytes(),
            );
            return Err(error(reason));
        }
        Ok(())
    }

    /// What a study is told of a layout that no world can be set up of.
    pub(super) fn not_set_up(&self, layout: usize, error: &SimError) -> StudyError {
        let place = ("layouts", layout, "level");
        self.study.origin.error(StudyErrorKind::ImpossibleLayout, place, error.to_string())
    }
}
