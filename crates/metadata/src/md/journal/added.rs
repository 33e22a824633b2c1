//! A journal for an array that has none, is clean, and does not run. Members may be missing, as with mdadm, where the
//! others say so.
//!
//! Fault model: the power goes after any of the writes, each of which is durable before the next. Why it is safe: the
//! array is consistent and the journal empty, so that it holds the same with it as without, also what is computed of
//! members that are missing. The log device is ready
//! before the first member names it; the superblock of that member is newer than those of all others, and no two are
//! ever more than an event apart, so that it decides and all others are still believed. All are two events newer in the
//! end: a log device that the array had before is out of date, also to md before Linux 6.8, which asks a device's own
//! superblock. Tests: `crates/engine/tests/md_journal_added.rs`, with power cuts, and against mdadm and the kernel
//! `crates/engine/tests/md_journal_added_guest.rs`.

use raidlab_core::{Consistency, SECTOR_BYTES, Sector, Sectors};

use super::super::{
    Aside, Cannot, Features, Impossible, Inspected, Joined, LogDevice, Role, Superblock, Version,
    join,
};
use super::{BLOCK, JournalFound, PAGE, begin_anew, check_room};
use crate::Places;
use crate::md::Allowed;

/// Events that superblocks are newer in the end.
const EVENTS: u64 = 2;

/// What gives an array a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedJournal {
    /// The array as it is.
    pub joined: Joined,
    /// The superblock of the log device.
    pub superblock: Superblock,
    /// What is written, each piece durable before the next: to a device by the order they were given in, or to the log
    /// device (`None`).
    pub writes: Vec<(Option<usize>, Sector, Vec<u8>)>,
}

/// What would give the array of these devices a journal on a device on which `there` stands; `places` are where the
/// records of each device lie.
///
/// # Errors
/// What cannot be, and what would have to be done.
pub fn add(
    (all, places): (&[Inspected], &mut [Places]),
    (log, there): (&LogDevice, &Inspected),
    now: u64,
) -> Result<AddedJournal, Impossible> {
    let joined = join(all, &Allowed::default()).map_err(|why| Impossible(not_joined(&why)))?;
    let model = check(&joined, all)?;
    let number = free_number(model, all)?;
    let superblock = of_log(model, log, number, now)?;
    let mut writes = Vec::new();
    for (at, bytes) in pieces(&superblock, there, log.first)? {
        writes.push((None, at, bytes));
    }
    for event in 1..=EVENTS {
        let events = model.events + event;
        for given in joined.order.iter().flatten().chain(&joined.spares) {
            let kept = places.get_mut(*given).and_then(Places::md_mut);
            let put = kept.and_then(|kept| kept.with_journal(number, events, now));
            let (at, bytes) = put.ok_or_else(|| {
                Impossible(format!(
                    "the superblock of device {} of those given has no room",
                    given + 1
                ))
            })?;
            writes.push((Some(*given), at, bytes));
        }
    }
    let last = Superblock { events: model.events + EVENTS, ..superblock };
    writes.push((None, Sector(last.super_offset), emitted(&last)?));
    Ok(AddedJournal { joined, superblock: last, writes })
}

fn not_joined(why: &Cannot) -> String {
    match why {
        Cannot::JournalLost => "its journal is not among the devices, and may hold writes that are nowhere else: give \
                                that up with `array assemble --write --ignore-journal`, which makes all redundancy \
                                consistent, and stop the array; then it can have a new one"
            .into(),
        other => other.to_string(),
    }
}

/// That the array can have a journal, and is such that it holds the same with an empty one as without; the superblock
/// of its first member.
fn check<'a>(joined: &Joined, all: &'a [Inspected]) -> Result<&'a Superblock, Impossible> {
    let wrong = |what: String| Err(Impossible(what));
    let layout = &joined.layout;
    if !layout.level.has_stripes() {
        return wrong(format!("a journal is for raid4, raid5 and raid6, not for {layout}"));
    }
    match joined.consistency {
        Consistency::Resync => {}
        Consistency::Journal { .. } => return wrong("it has a journal".into()),
        Consistency::Bitmap { .. } => {
            let how = "mdadm --grow --bitmap=none takes that out";
            return wrong(format!("it has a bitmap, and an array has one or the other: {how}"));
        }
        _ => {
            let how = "mdadm --grow --consistency-policy=resync takes that out";
            return wrong(format!(
                "it logs partial parity, and an array has one or the other: {how}"
            ));
        }
    }
    if let Some((_, place)) = joined.replacement {
        return wrong(format!(
            "member {place} is being replaced: `array assemble --write` goes on with that; stop the array when it is \
             done"
        ));
    }
    let mut first: Option<&Superblock> = None;
    for (place, given) in joined.order.iter().enumerate() {
        let Some(one) = given.and_then(|given| all.get(given)?.superblock()) else {
            if joined.absent[place / 64] >> (place % 64) & 1 == 1 {
                return wrong(format!(
                    "member {place} is missing, and was in service when the array was stopped: give it; if it is lost, \
                     `array assemble --write --run` starts the array without it, and after a stop it can have a journal"
                ));
            }
            continue;
        };
        if one.rebuilt_to().is_some() {
            return wrong(format!(
                "member {place} is being rebuilt: `array assemble --write` goes on with that; stop the array when it \
                 is done"
            ));
        }
        if !matches!(one.version(), Version::V1_1 | Version::V1_2) {
            let version = one.version();
            return wrong(format!("an array of version {version} has no journal: 1.1 and 1.2 may"));
        }
        if !one.is_clean() || first.is_some_and(|first| first.events != one.events) {
            return wrong(
                "it was not stopped cleanly: `array assemble --write` makes its redundancy consistent; stop it then"
                    .into(),
            );
        }
        if !one.data_offset.is_multiple_of(PAGE) {
            return wrong(format!(
                "data of member {place} start at {}, and with a journal at a multiple of {}",
                Sectors(one.data_offset),
                Sectors(PAGE)
            ));
        }
        first = first.or(Some(one));
    }
    first.ok_or_else(|| Impossible("all members are missing".into()))
}

/// The first number behind those of the members that nobody has, as mdadm gives them.
fn free_number(model: &Superblock, all: &[Inspected]) -> Result<u16, Impossible> {
    let of_array =
        all.iter().filter_map(Inspected::superblock).filter(|one| one.array == model.array);
    let used: Vec<u32> = of_array.map(|one| one.number).collect();
    let is_free = |number: &u32| model.role_of(*number) == Role::Spare && !used.contains(number);
    let number = (model.members..model.roles.len() as u32).find(is_free);
    let number = number.and_then(|number| u16::try_from(number).ok());
    number.ok_or_else(|| Impossible("its superblocks have no number left for a device".into()))
}

/// The log device's superblock, an event newer than those of members are yet.
fn of_log(
    model: &Superblock,
    log: &LogDevice,
    number: u16,
    now: u64,
) -> Result<Superblock, Impossible> {
    let (sectors, from) = (log.device.sectors, model.data_offset);
    check_room(sectors, from, u64::from(model.members))?;
    let mut roles = model.roles.clone();
    roles[usize::from(number)] = Role::Journal;
    Ok(Superblock {
        features: Features::JOURNAL,
        aside: Aside::Nothing,
        data_size: sectors.0 - from,
        recovery: 0,
        number: u32::from(number),
        corrected: 0,
        device: log.device.id,
        flags: 0,
        updated: now,
        events: model.events + 1,
        roles,
        ..model.clone()
    })
}

/// What is written to the log device before members know it: old superblocks go first, its own comes last.
fn pieces(
    one: &Superblock,
    there: &Inspected,
    first: u32,
) -> Result<Vec<(Sector, Vec<u8>)>, Impossible> {
    let seen = there.seen.iter().filter_map(|seen| seen.version.superblock(there.sectors));
    let mut pieces: Vec<_> = seen.map(|at| (at, vec![0; BLOCK])).collect();
    let list = one.bad_blocks;
    if list.size > 0 {
        let at =
            one.beside(list.offset).filter(|at| at.0 + u64::from(list.size) <= one.data_offset);
        let at =
            at.ok_or_else(|| Impossible("its list of bad blocks lies behind the data".into()))?;
        pieces.push((at, vec![0xff; usize::from(list.size) * SECTOR_BYTES as usize]));
    }
    let (position, block) = begin_anew(&one.array, &JournalFound::default(), first);
    pieces.push((Sector(one.data_offset + position), block));
    pieces.push((Sector(one.super_offset), emitted(one)?));
    Ok(pieces)
}

/// A superblock, with zeroes up to the end of its place.
fn emitted(one: &Superblock) -> Result<Vec<u8>, Impossible> {
    let mut bytes = vec![0; BLOCK];
    one.emit(&mut bytes).map_err(|damage| Impossible(damage.to_string()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::md::Device;
    use crate::md::ppl::tests::kernels;

    /// What is the model's own does not go over to the log device: that it is read last, its corrected errors.
    #[test]
    fn a_log_device_is_like_a_member_but_for_what_is_the_members_own() {
        let roles = [0, 1, 2].map(Role::Member).into_iter().chain([Role::Spare]).collect();
        let plain = Superblock { features: Features(0), aside: Aside::Nothing, ..kernels() };
        let model = Superblock { flags: 1, corrected: 7, roles, ..plain };
        let device = Device { sectors: Sectors(131_072), id: [9; 16] };
        let one = of_log(&model, &LogDevice { device, first: 1 }, 3, 1_700_000_100);
        let one = one.expect("it has room");
        assert_eq!((one.flags, one.corrected, one.device, one.number), (0, 0, [9; 16], 3));
        let found = (one.role(), one.features, one.array);
        assert_eq!(found, (Role::Journal, Features::JOURNAL, model.array));
        assert_eq!((one.events, one.updated), (model.events + 1, 1_700_000_100));
    }
}
