//! What is known of zeroes: ranges that read as zeroes whoever is asked, and whether members zero ranges without
//! writing.
//!
//! A range is proven zero if every device from which it could be read has a hole there: a member whose place was never
//! written since its file was made, or was zeroed since. That redundancy was said to be consistent, as with
//! `--assume-clean`, proves nothing.

use raidlab_core::geometry::{Geometry, Parity, Place};
use raidlab_core::{Array, Consistency, MemberIndex, Sector, Sectors};

use super::Engine;
use crate::member::Member;

impl Engine {
    /// Whether the sectors of the array from `at` on are proven to read as zeroes, and how many of them, at most
    /// `most`, have this answer. Others may be zero, too.
    ///
    /// `at` and `most` lie within the array.
    pub fn zero_run(&self, at: Sector, most: Sectors) -> (bool, Sectors) {
        let geometry = self.array.geometry();
        let run = geometry.run(at).min(most);
        let Some(array) = self.array.flat() else { return (false, most) };
        // What a journal holds is not on the members yet.
        if matches!(array.consistency(), Consistency::Journal { .. }) {
            return (false, most);
        }
        match geometry {
            Geometry::Raid3(_) | Geometry::Nested(_) => (false, most),
            Geometry::Parity(parity) => self.zero_rows(array, parity, geometry.place(at, 0), run),
            _ => {
                let places = (0..geometry.copies()).map(|copy| geometry.place(at, copy));
                let run = places.clone().fold(run, |run, place| alike(array, &place, run));
                let readable = places.filter(|place| is_readable(array, place));
                self.zero_places(readable, run)
            }
        }
    }

    /// The rows of a stripe from those of a place of data on: of its member, and where that lacks some of them of all
    /// others.
    fn zero_rows(
        &self,
        array: &Array,
        parity: &Parity,
        data: Place,
        run: Sectors,
    ) -> (bool, Sectors) {
        let run = alike(array, &data, run);
        let own = is_readable(array, &data).then_some(data);
        if own.is_some() && array.bad_blocks(data.member).next().is_none() {
            return self.zero_places(own.into_iter(), run);
        }
        // Recovered from zeroes alone, whichever of the others it is done from: that is zero.
        let others = (0..self.count as u16).map(MemberIndex).filter(|one| *one != data.member);
        let places = others.map(|member| Place { member, at: data.at });
        let run = places.clone().fold(run, |run, place| alike(array, &place, run));
        let readable = places.filter(|place| is_readable(array, place));
        match readable.clone().count() >= usize::from(parity.data_chunks()) {
            // Which of the rows are listed as bad is not asked.
            true => self.zero_places(own.into_iter().chain(readable), run),
            false => (false, run),
        }
    }

    /// Whether all of some places are holes, and for how long that, or the contrary, is so; no places prove nothing.
    fn zero_places(&self, places: impl Iterator<Item = Place>, run: Sectors) -> (bool, Sectors) {
        let (mut any, mut zero) = (false, run);
        for Place { member, at } in places {
            any = true;
            let Some(Member::File(file)) = self.members.get(member.at()) else {
                return (false, run);
            };
            let (is_hole, len) = file.hole_run(Sector(at.0 + self.starts[member.at()]), zero);
            if !is_hole {
                return (false, len);
            }
            zero = len;
        }
        (any, zero)
    }

    /// Whether all devices in service zero ranges without writing zeroes, and all punch holes that read as zeroes:
    /// then all copies and parity are known after a discard. Tried once with each device.
    pub fn zeroes_cheaply(&mut self) -> bool {
        let failed = |place: usize| self.array.is_failed(MemberIndex(place as u16));
        // Replacements lie behind the members; those that are not there are absent.
        let mut served = self.members.iter().enumerate().filter(|(place, _)| !failed(*place));
        served.all(|(place, member)| match member {
            Member::Memory(_) => true,
            Member::Absent => place >= self.count,
            Member::File(file) => file.zeroes_cheaply(),
            _ => false,
        })
    }
}

/// How much of a run is all good on a member or not at all: a member that is being rebuilt is good up to a sector.
fn alike(array: &Array, place: &Place, run: Sectors) -> Sectors {
    let good_to = array.good_to(place.member);
    if place.at < good_to { run.min(Sectors(good_to.0 - place.at.0)) } else { run }
}

/// Whether a read of data may be served from a place.
fn is_readable(array: &Array, place: &Place) -> bool {
    !array.is_failed(place.member) && place.at < array.good_to(place.member)
}
