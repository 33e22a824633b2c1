//! Starting an array from what is found on its members: who is fresh, what must be made consistent.
//!
//! Fault model: any member may be missing, be unreadable or damaged in any place, carry an older state, a copy
//! of one or something else, or have missed anything; halves may each have gone on alone; a crash may have
//! come at any moment, also while an array was being started.
//! Why it is safe: members in service are at the newest events or one behind, and everybody else is
//! named as failed by the newest superblock or further behind (`array::write_intent::superblock`), so who
//! missed something is never taken in service. The newest superblock that can be read may not be the newest
//! there is: so whoever it does not say is out of service must be there, whole and of its history, or be
//! named by the administrator. Who went on alone has an epoch that the others do not know ([`super::lineage`]).
//! What is decided is a function of what was found and allowed, and is recorded on all members before anything
//! that depends on it is answered: a start that is itself interrupted is begun again from what is found then.
//! Tests: `tests/decision.rs::every_set_of_members_with_any_history_is_judged` and
//! `tests/assembly.rs::halves_that_went_on_alone_are_told_apart`.

use super::{
    Allow, ArrayId, AssembleError, Assembled, Carried, Examined, Finding, Found, MetaArea,
    Parameters, Unusable, Unused, Wanted, contains, set,
};
use crate::array::{Array, Config, Consistency, MemberConfig};
use crate::contract::{MemberBits, Superblock};
use crate::units::{MemberIndex, Sector, Sectors};

impl Array {
    /// An array as it is found on its members. What must be made consistent is begun at the first
    /// input; requests are taken at once and wait where they must.
    ///
    /// Members that the newest superblock says failed, or that are further behind than a crash
    /// explains, are out of service until they are added again. Without superblocks
    /// ([`Consistency::None`]) only presence is judged, and all redundancy is made consistent.
    ///
    /// # Errors
    /// When too little is there, what is asked for is not what is there, halves have diverged, or the
    /// administrator must allow it.
    pub fn assemble(
        wanted: &Wanted,
        found: &Found,
        allow: Allow,
    ) -> Result<Assembled, AssembleError> {
        Decision::make(wanted, found, allow, |_| {})
    }

    /// The same with a bug planted from the start.
    ///
    /// # Errors
    /// As [`Self::assemble`].
    #[cfg(debug_assertions)]
    pub fn assemble_planted(
        wanted: &Wanted,
        found: &Found,
        allow: Allow,
        bug: crate::bugs::Bug,
    ) -> Result<Assembled, AssembleError> {
        Decision::make(wanted, found, allow, |array| array.plant(bug))
    }
}

/// What is seen of a member: what it carries, if that can be believed, and why it is not to be used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sight<'a> {
    pub(super) carried: Option<&'a Carried>,
    pub(super) why: Option<Unusable>,
}

impl<'a> Sight<'a> {
    const fn not(why: Unusable) -> Self {
        Self { carried: None, why: Some(why) }
    }

    /// `believed`: what cannot be read is said to have been older.
    pub(super) const fn of(finding: &'a Finding<Carried>, believed: bool) -> Self {
        match finding {
            Finding::Whole(carried) => Self { carried: Some(carried), why: None },
            Finding::Unreadable(Some(carried)) | Finding::Damaged(Some(carried)) if believed => {
                Self { carried: Some(carried), why: None }
            }
            Finding::Absent => Self::not(Unusable::Absent),
            Finding::Blank => Self::not(Unusable::Blank),
            Finding::Unreadable(_) => Self::not(Unusable::Unreadable),
            Finding::Damaged(_) => Self::not(Unusable::Damaged),
            Finding::Foreign => Self::not(Unusable::Foreign),
            Finding::Unsupported(what) => Self::not(Unusable::Unsupported(what)),
        }
    }

    /// The same, unless it is of another array or place.
    pub(super) fn in_place(self, array: ArrayId, device: u16, members: u16) -> Self {
        match self.carried {
            Some(carried) if carried.array != array => Self::not(Unusable::AnotherArray),
            Some(carried) if carried.device != device => {
                Self::not(Unusable::OutOfPlace { device: carried.device, members })
            }
            _ => self,
        }
    }

    pub(super) const fn superblock(&self) -> Option<&'a Superblock> {
        match self.carried {
            Some(carried) => Some(&carried.superblock),
            None => None,
        }
    }
}

/// Why a device that carries what it should cannot be used for an array of these parameters.
pub(super) fn misfit(device: &Examined, carried: &Carried, array: &Parameters) -> Option<Unusable> {
    let own = &carried.parameters;
    let same = own.layout == array.layout
        && own.consistency == array.consistency
        && own.block == array.block;
    let area = MetaArea { log: own.log, pages: own.pages, used: true };
    if !same {
        Some(Unusable::OtherParameters)
    } else if u128::from(own.data.0) + u128::from(area.sectors().0) > u128::from(device.sectors.0) {
        Some(Unusable::TooSmall)
    } else if device.logical_block > array.block {
        Some(Unusable::LargeBlock { block: device.logical_block, most: array.block })
    } else {
        None
    }
}

/// A start being decided.
pub(super) struct Decision<'a> {
    pub(super) wanted: &'a Wanted,
    pub(super) found: &'a Found,
    pub(super) allow: Allow,
    identity: ArrayId,
    pub(super) sights: Vec<Sight<'a>>,
    /// What the log device carries.
    pub(super) journal: Sight<'a>,
}

impl<'a> Decision<'a> {
    fn make(
        wanted: &'a Wanted,
        found: &'a Found,
        allow: Allow,
        plant: impl Fn(&mut Array),
    ) -> Result<Assembled, AssembleError> {
        if !wanted.settings.consistency.has_superblocks() {
            return unrecorded(wanted, found, allow, plant);
        }
        let mut decision = Self::new(wanted, found, allow)?;
        let carrier = decision.newest_member()?;
        let (config, area) = decision.plan(&carrier.parameters)?;
        let mut array = Array::new(&config).map_err(AssembleError::Config)?;
        plant(&mut array);
        check_area(&array, &area)?;
        decision.fit(&carrier.parameters);
        let vote = decision.vote(&array, carrier)?;
        decision.begin(array, &vote).map(|(array, journal_lost, resync)| Assembled {
            array,
            area,
            identity: decision.identity,
            config,
            unused: vote.unused(vote.failed),
            journal_lost,
            resync,
        })
    }

    /// What is seen of each member of the array that most of them belong to.
    fn new(wanted: &'a Wanted, found: &'a Found, allow: Allow) -> Result<Self, AssembleError> {
        let members = wanted.layout.members;
        let sight = |m: usize| match found.members.get(m) {
            _ if contains(allow.without, m) => Sight::not(Unusable::LeftOut),
            None => Sight::not(Unusable::Absent),
            Some(one) => Sight::of(&one.superblock, contains(allow.believe, m)),
        };
        let mut sights: Vec<_> = (0..usize::from(members)).map(sight).collect();
        let identity = identity(&sights)?;
        for (device, sight) in (0..).zip(&mut sights) {
            *sight = sight.in_place(identity, device, members);
        }
        let journal = Sight::of(&found.journal.superblock, false);
        let journal = journal.in_place(identity, 2 * members, members);
        Ok(Self { wanted, found, allow, identity, sights, journal })
    }

    /// The member with the newest superblock.
    fn newest_member(&self) -> Result<&'a Carried, AssembleError> {
        let mut newest: Option<&Carried> = None;
        for carried in self.sights.iter().filter_map(|sight| sight.carried) {
            if newest.is_none_or(|known| carried.superblock.events > known.superblock.events) {
                newest = Some(carried);
            }
        }
        newest.ok_or_else(|| {
            let all = (0..).map(MemberIndex).zip(&self.sights);
            let unused = all.filter_map(|(member, sight)| Some(Unused { member, why: sight.why? }));
            AssembleError::NoSuperblock(unused.collect())
        })
    }

    /// What the array was made of; what is asked for must agree.
    fn plan(&self, made: &Parameters) -> Result<(Config, MetaArea), AssembleError> {
        let differs = |key, asked: String, found: String| {
            if asked == found {
                Ok(())
            } else {
                Err(AssembleError::Parameter { key, asked, found })
            }
        };
        let settings = self.wanted.settings;
        differs("layout", self.wanted.layout.to_string(), made.layout.clone())?;
        let kept = made.consistency;
        if settings.consistency != kept {
            differs("consistency", settings.consistency.to_string(), kept.to_string())?;
        }
        let member = |sight: &Sight<'_>| MemberConfig {
            sectors: sight.carried.map_or(made.least, |carried| carried.parameters.data),
            logical_block: made.block,
        };
        let config = Config {
            layout: self.wanted.layout.clone(),
            members: self.sights.iter().map(member).collect(),
            read_policy: self.wanted.read_policy,
            traits: self.wanted.traits.clone(),
            limits: self.wanted.limits,
            settings,
        };
        Ok((config, MetaArea { log: made.log, pages: made.pages, used: true }))
    }

    /// Leaves out who cannot be used for an array of these parameters.
    fn fit(&mut self, made: &Parameters) {
        for (sight, device) in self.sights.iter_mut().zip(&self.found.members) {
            if let Some(carried) = sight.carried {
                sight.why = misfit(device, carried, made);
            }
        }
        if let Some(carried) = self.journal.carried {
            self.journal.why = misfit(&self.found.journal, carried, made);
        }
    }
}

/// The array that most members belong to; zeroes when there is none.
fn identity(sights: &[Sight<'_>]) -> Result<ArrayId, AssembleError> {
    let of = |array: ArrayId| {
        let theirs = |m: &usize| sights[*m].carried.is_some_and(|carried| carried.array == array);
        set((0..sights.len()).filter(theirs))
    };
    let count = |members: MemberBits| members[0].count_ones() + members[1].count_ones();
    let mut most: Option<(ArrayId, MemberBits)> = None;
    let mut tied = None;
    for carried in sights.iter().filter_map(|sight| sight.carried) {
        let members = of(carried.array);
        match &most {
            Some((array, _)) if *array == carried.array => {}
            Some((_, known)) if count(*known) > count(members) => {}
            Some((_, known)) if count(*known) == count(members) => tied = Some((*known, members)),
            _ => (most, tied) = (Some((carried.array, members)), None),
        }
    }
    match (most, tied) {
        (_, Some((one, other))) => Err(AssembleError::SeveralArrays { one, other }),
        (most, None) => Ok(most.map_or_else(ArrayId::default, |(array, _)| array)),
    }
}

/// Whether the room that the members have for records is what the array needs.
fn check_area(array: &Array, area: &MetaArea) -> Result<(), AssembleError> {
    let needed = array.log_sectors(MemberIndex(0));
    if area.log != needed {
        let (asked, found) = (needed.to_string(), area.log.to_string());
        return Err(AssembleError::Parameter { key: "log", asked, found });
    }
    if (area.pages as usize) < array.bitmap_pages() {
        let (asked, found) = (array.bitmap_pages().to_string(), area.pages.to_string());
        return Err(AssembleError::Parameter { key: "pages of the bitmap", asked, found });
    }
    Ok(())
}

/// A start of an array that keeps no superblocks: who is there is in service.
fn unrecorded(
    wanted: &Wanted,
    found: &Found,
    allow: Allow,
    plant: impl Fn(&mut Array),
) -> Result<Assembled, AssembleError> {
    let members = usize::from(wanted.layout.members);
    if let Some(carried) = found.members.iter().find_map(|one| one.superblock.readable()) {
        let (asked, found) = (Consistency::None, carried.parameters.consistency);
        let (asked, found) = (asked.to_string(), found.to_string());
        return Err(AssembleError::Parameter { key: "consistency", asked, found });
    }
    let there = |m: &usize| {
        let given = found.members.get(*m).filter(|one| one.sectors > Sectors::ZERO);
        given.filter(|_| !contains(allow.without, *m))
    };
    let present = || (0..members).filter_map(|m| there(&m));
    let smallest = present().map(|one| one.sectors).min().unwrap_or(Sectors::ZERO);
    let block = present().map(|one| one.logical_block).max().unwrap_or(1);
    let failed = set((0..members).filter(|m| there(m).is_none()));
    let why =
        |m: usize| if contains(allow.without, m) { Unusable::LeftOut } else { Unusable::Absent };
    let out = (0..members).filter(|m| contains(failed, *m));
    let unused: Vec<_> =
        out.map(|m| Unused { member: MemberIndex(m as u16), why: why(m) }).collect();
    let member = |m: usize| MemberConfig {
        sectors: there(&m).map_or(smallest, |one| one.sectors),
        logical_block: there(&m).map_or(block, |one| one.logical_block),
    };
    let config = Config {
        layout: wanted.layout.clone(),
        members: (0..members).map(member).collect(),
        read_policy: wanted.read_policy,
        traits: wanted.traits.clone(),
        limits: wanted.limits,
        settings: wanted.settings,
    };
    if unused.len() == members {
        return Err(AssembleError::TooFew(unused));
    }
    let mut array = Array::new(&config).map_err(AssembleError::Config)?;
    plant(&mut array);
    if array.is_lost_without(failed) {
        return Err(AssembleError::TooFew(unused));
    }
    array.start_unknown(failed);
    let resync = array.resync_len(Sector(0), &[]);
    Ok(Assembled {
        array,
        area: MetaArea::default(),
        identity: ArrayId::default(),
        config,
        unused,
        journal_lost: None,
        resync,
    })
}
