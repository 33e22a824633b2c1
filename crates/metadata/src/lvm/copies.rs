//! Physical volumes of which several copies were given: which of them counts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use raidlab_core::{Sector, Sectors};

use super::superblock::DmSuperblock;
use super::volume::{Image, Volume};
use crate::Source;
use crate::md::read;

/// A physical volume that was given.
pub struct Device<'a> {
    /// Its identity.
    pub id: String,
    /// The `seqno` of the newest text on it; `None` where it has none that can be used.
    pub seqno: Option<u64>,
    /// Its bytes.
    pub source: &'a mut dyn Source,
}

/// A device that is an older copy of another one that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Older {
    /// Which of the devices that were given.
    pub given: usize,
    /// The one that counts instead.
    pub newer: usize,
    /// What tells, in words.
    pub what: String,
}

/// Why nothing of a volume can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Untold {
    /// What stands in the way, in words.
    Why(String),
    /// These devices are one physical volume, and none of them is known to be the newest.
    Copies(Vec<usize>),
}

impl fmt::Display for Untold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Why(why) => f.write_str(why),
            Self::Copies(given) => {
                let numbers: Vec<_> = given.iter().map(|one| (one + 1).to_string()).collect();
                write!(
                    f,
                    "of the devices in the order given, {} are copies of one physical volume, and nothing tells which \
                     of them is the newest",
                    numbers.join(" and ")
                )
            }
        }
    }
}

impl std::error::Error for Untold {}

/// How new a copy is: its text, and its superblocks of a volume, member by member.
type State = (Option<u64>, Vec<Option<u64>>);

/// The device that each physical volume is, by identity.
pub(super) type On<'a> = BTreeMap<&'a str, usize>;

impl Volume {
    /// The devices that physical volumes of the volume are, and those that are older copies of these. A copy is older
    /// by the group's `seqno` or by the events of a superblock; one that is newer by one and older by the other was in
    /// use on its own, and is not decided about here.
    pub(super) fn settled(
        &self,
        devices: &mut [Device<'_>],
    ) -> Result<(On<'_>, Vec<Older>), Untold> {
        let parts = self.images.iter().flat_map(|image| image.data.iter().chain(&image.metadata));
        let named: BTreeSet<&str> = parts.map(|part| part.on.as_str()).collect();
        let (mut on, mut older) = (BTreeMap::new(), Vec::new());
        for id in named {
            let same = devices.iter().enumerate().filter(|(_, device)| device.id == id);
            let given: Vec<usize> = same.map(|(given, _)| given).collect();
            if let [one] = given[..] {
                on.insert(id, one);
            }
            if given.len() < 2 {
                continue;
            }
            let mut states = Vec::new();
            for one in given {
                states.push((one, self.how_new(id, &mut devices[one])));
            }
            let newer = |one: &(usize, State)| {
                states.iter().find(|other| is_older(&one.1, &other.1)).map(|other| other.0)
            };
            let newest: Vec<usize> =
                states.iter().filter(|one| newer(one).is_none()).map(|one| one.0).collect();
            let [newest] = newest[..] else { return Err(Untold::Copies(newest)) };
            on.insert(id, newest);
            let best = states.iter().find(|one| one.0 == newest).map(|one| &one.1);
            for (given, state) in states.iter().filter(|one| one.0 != newest) {
                let what = best.map_or_else(String::new, |best| what(state, best));
                older.push(Older { given: *given, newer: newest, what });
            }
        }
        Ok((on, older))
    }

    fn how_new(&self, id: &str, device: &mut Device<'_>) -> State {
        let begins = |image: &Image| image.metadata.first().filter(|part| part.on == id).cloned();
        let mut events = Vec::new();
        for (place, image) in (0..).zip(&self.images) {
            let Some(part) = begins(image) else { continue };
            let first = read(device.source, Sector(part.at), Sectors(1));
            let said = first.as_deref().and_then(DmSuperblock::parse);
            let said = said.filter(|said| self.differs((place, image), said).is_none());
            events.push(said.map(|said| said.events));
        }
        (device.seqno, events)
    }
}

/// Whether a copy is older than another: in something, and newer in nothing.
fn is_older(one: &State, other: &State) -> bool {
    let pairs = || one.1.iter().zip(&other.1);
    one != other && one.0 <= other.0 && pairs().all(|(one, other)| one <= other)
}

fn what(one: &State, newest: &State) -> String {
    let shown = |number: &Option<u64>| number.map_or_else(|| "none".into(), |n| n.to_string());
    if one.0 != newest.0 {
        return format!("seqno {}, there {}", shown(&one.0), shown(&newest.0));
    }
    let pair = one.1.iter().zip(&newest.1).find(|(one, newest)| one != newest);
    pair.map_or_else(String::new, |(one, newest)| {
        format!("events {}, there {}", shown(one), shown(newest))
    })
}
