//! Which devices are the members of an array, and which of them are to be believed.
//!
//! As the kernel, a device counts when it has the newest events, or is one behind, since the power may have failed
//! between two superblocks. Stricter than md, it must be named by the newest superblock too, and two halves that each
//! went on without the other are told apart, where md takes the one with more events without a word.
//! `docs/md-format.md` has the table.

use std::fmt;

use raidlab_core::consistency::ArrayId;
use raidlab_core::contract::MemberBits;
use raidlab_core::layout::ZoneOrder;
use raidlab_core::policy::MemberTraits;
use raidlab_core::{
    Array, Config, ConfigError, Layout, Limits, MemberConfig, MemberIndex, Redundancy,
    SECTOR_BYTES, Sector, Sectors,
};

use crate::geom;

use super::why::{Out, Why, no_superblock, uuid};
use super::{
    Bitmap, BitmapKind, BitmapSeen, Features, Inspected, LogSeen, Obstacle, Role, Superblock,
    layout,
};

/// A member's place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Which of the devices that were given; `None`: the member is missing.
    pub given: Option<usize>,
    /// Where its data start on the device.
    pub data_offset: Sectors,
    /// Sectors of it that the array may use.
    pub sectors: Sectors,
    /// Ranges of its data that are listed as bad.
    pub bad: Vec<(MemberIndex, Sector, Sectors)>,
}

/// What the administrator allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Parity of an array that was not stopped cleanly may be used for members that are missing: what was being written
    /// may come out wrong.
    pub dirty_degraded: bool,
    /// Writes that stand in a journal and not on the members may be missing in what is read. For writing: a journal
    /// whose log device is missing or out of date, or that cannot be replayed, is given up, and all redundancy made
    /// consistent.
    pub ignore_journal: bool,
    /// Devices, by the order they were given in, that are left out.
    pub without: Vec<usize>,
    /// Devices that are one given before by another name, each with that one. By their superblocks alone, those of
    /// version 0.90 are told from two devices of one place by nothing.
    pub twice: Vec<(usize, usize)>,
    /// How zones are ordered where a raid0 does not say.
    pub zones: Option<ZoneOrder>,
}

/// An array as it can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembly {
    /// What it is.
    pub layout: Layout,
    /// Its identity.
    pub array: ArrayId,
    /// Its name.
    pub name: String,
    /// The newest events.
    pub events: u64,
    /// Redundancy was consistent when it was stopped.
    pub clean: bool,
    /// The bitmap names what may not be consistent: bits set, and how many there are.
    pub dirty_bits: Option<(u64, u64)>,
    /// Each member, in order.
    pub places: Vec<Place>,
    /// Devices that were given and are not in service.
    pub out: Vec<Out>,
    /// Members whose copies are read only when there is no other, so that of copies that may differ always the same
    /// one is read.
    pub last: MemberBits,
    /// What is worth knowing, in words.
    pub notes: Vec<String>,
    /// Sectors that a member reads and writes together: what raid3 cuts by.
    pub block: u32,
    /// Of an array of GEOM what else its labels say.
    pub geom: Option<geom::State>,
}

impl Assembly {
    /// Members that are not in service.
    pub fn missing(&self) -> Vec<u16> {
        let absent = self.places.iter().enumerate().filter(|(_, place)| place.given.is_none());
        absent.map(|(place, _)| place as u16).collect()
    }

    /// The same as bits.
    pub fn failed(&self) -> MemberBits {
        let mut bits = [0; 2];
        for place in self.missing() {
            insert(&mut bits, place);
        }
        bits
    }

    /// The core's array of it.
    pub fn config(&self) -> Config {
        let member =
            |place: &Place| MemberConfig { sectors: place.sectors, logical_block: self.block };
        let shun = |place: u16| MemberTraits {
            write_mostly: self.last[usize::from(place / 64)] >> (place % 64) & 1 == 1,
            ..MemberTraits::default()
        };
        Config {
            members: self.places.iter().map(member).collect(),
            traits: (0..self.layout.members).map(shun).collect(),
            ..Config::uniform(self.layout.clone(), Sectors::ZERO)
        }
    }

    /// Where data are the array's: how long it is.
    ///
    /// # Errors
    /// When it cannot be, or too few members are there.
    pub(crate) fn check(&mut self) -> Result<(), Cannot> {
        let limits = Limits { requests: 1, segments: 1, ios: 1, plans: 1, windows: 1 };
        let config = Config { limits, ..self.config() };
        let wrong = |error: ConfigError| Cannot::Obstacle(Obstacle::Shape(error.to_string()));
        let array = Array::new(&config).map_err(wrong)?;
        let mut absent = self.failed();
        if array.is_lost_without(absent) {
            let (missing, layout, out) = (self.missing(), self.layout.clone(), self.out.clone());
            return Err(Cannot::TooFew { missing, layout, out });
        }
        if self.has_unequal_copies() {
            let places = (0..self.layout.members).rev();
            for place in places.filter(|place| self.places[usize::from(*place)].given.is_some()) {
                let mut without = absent;
                insert(&mut without, place);
                if !array.is_lost_without(without) {
                    absent = without;
                    insert(&mut self.last, place);
                }
            }
        }
        Ok(())
    }

    /// Whether copies of a block may differ from each other.
    pub fn has_unequal_copies(&self) -> bool {
        let copies =
            matches!(self.layout.level.redundancy(), Redundancy::Mirror | Redundancy::Copies);
        copies && !self.clean
    }
}

/// Why nothing is assembled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cannot {
    /// No device has a usable superblock.
    NoMember(Vec<Out>),
    /// Devices have labels of GEOM, of which none can be used.
    NoLabel(Vec<Out>),
    /// As many devices are of one array as of another: their names and identities.
    SeveralArrays([(String, ArrayId); 2]),
    /// It is of a kind that is not read.
    Obstacle(Obstacle),
    /// Too few members.
    TooFew {
        /// What is missing.
        missing: Vec<u16>,
        /// The layout.
        layout: Layout,
        /// What was given and is not in service.
        out: Vec<Out>,
    },
    /// Parity may be wrong where it would be needed.
    DirtyDegraded(Vec<u16>),
    /// Writes stand in a log that is not replayed for reading; which.
    Log(&'static str),
    /// The log device of its journal is missing or out of date.
    JournalLost,
    /// Its journal is not there, and parity is needed for members that are missing.
    JournalNeeded(Vec<u16>),
    /// Its journal was to be given up, and is there.
    JournalThere,
    /// It is of a kind that this version only reads.
    NotWritten(String),
    /// Not all of the bitmap of a device that was given is known, so that none of it could be written.
    Bitmap(usize),
    /// What the bitmap of a device that was given says of itself cannot be, in words.
    BitmapDamaged(usize, String),
    /// Heads of bitmaps, which have no checksum, of which one at least is wrong: each with the devices that have it, by
    /// the order they were given in; that which most have first.
    BitmapsUnlike(Vec<(Bitmap, Vec<usize>)>),
    /// Two halves each went on without the other: who is with the newest, and who is not. Both may be as new.
    Diverged(Vec<usize>, Vec<usize>),
}

impl fmt::Display for Cannot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMember(_) => f.write_str("none of the devices is a member of an md array"),
            Self::NoLabel(_) => {
                f.write_str("none of the devices has a GEOM label that can be used")
            }
            Self::SeveralArrays([one, other]) => {
                write!(
                    f,
                    "the devices belong to several arrays, {} and {}: give those of one",
                    one.0, other.0
                )
            }
            Self::Obstacle(obstacle) => obstacle.fmt(f),
            Self::TooFew { missing, layout, .. } => {
                write!(f, "{layout} cannot be read without member {}", members(missing))
            }
            Self::DirtyDegraded(missing) => {
                write!(
                    f,
                    "the array was not stopped cleanly and member {} is missing: where writes were under way, what \
                     that member held may come out wrong; --allow-dirty-degraded reads it nevertheless",
                    members(missing)
                )
            }
            Self::Log(which) => write!(
                f,
                "writes stand in its {which} of which it is not known whether they are on the members too; \
                 `array assemble --write` replays it, as does mdadm --assemble; --ignore-journal reads what is on the \
                 members"
            ),
            Self::JournalLost => f.write_str(
                "its journal is not among the devices, or out of date, and may hold writes that are nowhere else: give \
                 it; --ignore-journal gives it up for good: writes that stand in it alone are lost, and all redundancy \
                 is made consistent",
            ),
            Self::JournalNeeded(missing) => {
                write!(
                    f,
                    "its journal is not among the devices, and member {} is missing: where writes stand in the journal \
                     alone, what that member held may come out wrong; give the journal; --allow-dirty-degraded reads \
                     without it",
                    members(missing)
                )
            }
            Self::JournalThere => f.write_str(
                "its journal is among the devices, and can be replayed: leave --ignore-journal out; to give the \
                 journal up leave its device out",
            ),
            Self::NotWritten(what) => write!(f, "the array is only read in this version: {what}"),
            Self::Bitmap(given) => of_bitmap(f, *given, None),
            Self::BitmapDamaged(given, what) => of_bitmap(f, *given, Some(what)),
            Self::BitmapsUnlike(heads) => {
                let named = |given: usize| format!("device {} of those given", given + 1);
                f.write_str(&unlike(heads, named))
            }
            Self::Diverged(newest, other) => {
                let list = |of: &[usize]| {
                    of.iter().map(|one| (one + 1).to_string()).collect::<Vec<_>>().join(" and ")
                };
                write!(
                    f,
                    "two halves of the array each went on without the other: of the devices in the order given, {} \
                     and {}; leave one half out with --without",
                    list(newest),
                    list(other)
                )
            }
        }
    }
}

impl std::error::Error for Cannot {}

/// What is wrong with a bitmap, and what can be done.
fn of_bitmap(f: &mut fmt::Formatter<'_>, given: usize, damage: Option<&str>) -> fmt::Result {
    let what = damage.unwrap_or("cannot be read, or is larger than any that is written");
    write!(
        f,
        "the bitmap of device {} of those given {what}: leave the device out, and add it as a fresh one",
        given + 1
    )?;
    if damage.is_some() {
        f.write_str(
            "; where all members are so, the array can be read, and `mdadm --assemble --update=no-bitmap` starts it \
             without a bitmap (but for a chunk of 0, of which mdadm 4.2 itself crashes)",
        )?;
    }
    Ok(())
}

/// What is told of [`Cannot::BitmapsUnlike`], where `named` gives a device's name.
pub fn unlike(heads: &[(Bitmap, Vec<usize>)], named: impl Fn(usize) -> String) -> String {
    let all = |of: &[usize]| of.iter().map(|one| named(*one)).collect::<Vec<_>>().join(" and ");
    let told = heads.iter().map(|(head, of)| {
        let chunk = Sectors(u64::from(head.chunk) / SECTOR_BYTES);
        let verb = if of.len() == 1 { "says" } else { "say" };
        format!("{} {verb} a bit for {chunk} of {}", all(of), Sectors(head.covered))
    });
    let told = told.collect::<Vec<_>>().join(", ");
    let most = heads.first().map_or(0, |(_, of)| of.len());
    let others: Vec<usize> = heads.iter().skip(1).flat_map(|(_, of)| of.iter().copied()).collect();
    let is_known = heads.get(1).is_some_and(|(_, of)| of.len() < most);
    let which = match is_known {
        true => all(&others),
        false => "those of one kind".into(),
    };
    format!(
        "the array is only read in this version: the bitmaps of its members are not alike, so that one at least is \
         damaged ({told}): start it without {which}, and add that again"
    )
}

/// The numbers of members in words.
fn members(of: &[u16]) -> String {
    of.iter().map(u16::to_string).collect::<Vec<_>>().join(" and ")
}

fn insert(bits: &mut MemberBits, place: u16) {
    if let Some(word) = bits.get_mut(usize::from(place / 64)) {
        *word |= 1 << (place % 64);
    }
}

/// The devices that were given, with what is to be said of each.
struct Devices<'a> {
    all: &'a [Inspected],
    /// Superblocks of those that may be members.
    with: Vec<Option<&'a Superblock>>,
    out: Vec<Out>,
}

impl<'a> Devices<'a> {
    fn new(all: &'a [Inspected], allowed: &Allowed) -> Self {
        let mut devices = Self { all, with: Vec::with_capacity(all.len()), out: Vec::new() };
        for (given, one) in all.iter().enumerate() {
            let superblock = one.superblock();
            devices.with.push(superblock);
            let place = superblock.and_then(|one| member(one.role()));
            if allowed.without.contains(&given) {
                devices.take_out(given, place, Why::LeftOut);
            } else if superblock.is_none() {
                devices.take_out(given, None, Why::NoSuperblock(no_superblock(one)));
            } else if let Some((_, first)) = allowed.twice.iter().find(|(one, _)| *one == given) {
                devices.take_out(given, place, Why::Copy(*first));
            }
        }
        devices
    }

    fn take_out(&mut self, given: usize, place: Option<u16>, why: Why) {
        self.with[given] = None;
        self.out.push(Out { given, place, why });
    }

    fn there(&self) -> impl Iterator<Item = (usize, &'a Superblock)> {
        self.with.iter().enumerate().filter_map(|(given, one)| Some((given, (*one)?)))
    }

    /// Takes out all of which something holds.
    fn exclude(&mut self, why: impl Fn(usize, &'a Superblock) -> Option<Why>) {
        let found: Vec<_> = self
            .there()
            .filter_map(|(given, one)| Some((given, member(one.role()), why(given, one)?)))
            .collect();
        for (given, place, why) in found {
            self.take_out(given, place, why);
        }
    }
}

/// The member that a role is.
const fn member(role: Role) -> Option<u16> {
    match role {
        Role::Member(place) => Some(place),
        _ => None,
    }
}

/// Decides which devices make an array that can be read.
///
/// # Errors
/// [`Cannot`], which says what would be needed.
pub fn assemble(all: &[Inspected], allowed: &Allowed) -> Result<Assembly, Cannot> {
    if geom::is_meant(all) {
        return geom::assemble(all, allowed);
    }
    decide(all, allowed, Purpose::Read).map(|(assembly, _)| assembly)
}

/// Devices that were given and are not used, as far as that is known where no array is assembled of them, for this
/// reason.
pub fn not_used(all: &[Inspected], allowed: &Allowed, purpose: Purpose, why: &Cannot) -> Vec<Out> {
    match why {
        Cannot::NoMember(out) | Cannot::NoLabel(out) | Cannot::TooFew { out, .. } => out.clone(),
        _ if geom::is_meant(all) => Vec::new(),
        _ => {
            let mut devices = Devices::new(all, allowed);
            // That it may be none is known.
            let _ = sort_out(&mut devices, purpose);
            devices.out
        }
    }
}

/// What an array is assembled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To be read: who has everything is believed, nobody else.
    Read,
    /// To be written: who is being rebuilt is a member, too, and what is enough is for the core to say.
    Write,
}

/// The same, with the newest superblock.
pub(super) fn decide<'a>(
    all: &'a [Inspected],
    allowed: &Allowed,
    purpose: Purpose,
) -> Result<(Assembly, &'a Superblock), Cannot> {
    let mut devices = Devices::new(all, allowed);
    let newest = sort_out(&mut devices, purpose)?;
    build(&devices, newest, allowed, purpose).map(|assembly| (assembly, newest))
}

/// Takes out all devices that are not in service; gives the newest superblock.
fn sort_out<'a>(devices: &mut Devices<'a>, purpose: Purpose) -> Result<&'a Superblock, Cannot> {
    let array = identity(devices)?;
    let own = devices.there().find(|(_, one)| one.array == array).map(|(_, one)| one.name());
    let called = |one: &Superblock| {
        let name = one.name();
        // Which of two that have one name.
        let is_same = own.as_ref() == Some(&name);
        if is_same { format!("{name}, UUID {}", uuid(&one.array)) } else { name }
    };
    devices.exclude(|_, one| (one.array != array).then(|| Why::AnotherArray(called(one))));
    copies(devices);
    let newest = newest(devices).ok_or_else(|| Cannot::NoMember(devices.out.clone()))?;
    diverged(devices, newest)?;
    let last = later_spare(devices, newest).unwrap_or(newest);
    devices.exclude(|_, one| out_of_date(one, last, purpose));
    contested(devices, newest, purpose);
    let all = devices.all;
    devices.exclude(|given, one| {
        let end = data_end(one);
        let inspected = &all[given];
        if end > inspected.sectors.0 {
            return Some(Why::TooSmall(Sectors(end)));
        }
        inspected.bad.is_none().then_some(Why::BadBlocksUnreadable)
    });
    Ok(newest)
}

/// The sector of a device at which what the array may use of it ends.
pub(super) fn data_end(one: &Superblock) -> u64 {
    one.data_offset.saturating_add(one.used())
}

/// The array that most devices belong to.
fn identity(devices: &Devices<'_>) -> Result<ArrayId, Cannot> {
    let count = |array: ArrayId| devices.there().filter(|(_, one)| one.array == array).count();
    let mut most: Option<(&Superblock, usize)> = None;
    let mut tied = None;
    for (_, one) in devices.there() {
        let devices = count(one.array);
        match most {
            Some((known, _)) if known.array == one.array => {}
            Some((_, known)) if known > devices => {}
            Some((known, before)) if before == devices => tied = Some((known, one)),
            _ => (most, tied) = (Some((one, devices)), None),
        }
    }
    if let Some((one, other)) = tied {
        let named =
            |one: &Superblock| (format!("{} (UUID {})", one.name(), uuid(&one.array)), one.array);
        return Err(Cannot::SeveralArrays([named(one), named(other)]));
    }
    most.map(|(one, _)| one.array).ok_or_else(|| Cannot::NoMember(devices.out.clone()))
}

/// Of two devices with one identity the one with fewer events, or the later one, is a copy. Those of version 0.90
/// have none.
fn copies(devices: &mut Devices<'_>) {
    let there: Vec<_> = devices.there().collect();
    for (index, (given, one)) in there.iter().enumerate() {
        let same = |(at, (_, other)): &(usize, &(usize, &Superblock))| {
            *at != index
                && one.v0.is_none()
                && other.device == one.device
                && (other.events > one.events || (other.events == one.events && *at < index))
        };
        if let Some((_, (other, _))) = there.iter().enumerate().find(same) {
            devices.take_out(*given, member(one.role()), Why::Copy(*other));
        }
    }
}

/// The member with the newest superblock: what it says of others counts, be it being rebuilt or not, as it may be the
/// one that recorded a failure. Of several the one that calls most others gone that have as many events and do not call
/// it gone: these were told of a state in part only, when the power failed, and it went on without them. Then a whole
/// one. Spares have no say.
fn newest<'a>(devices: &Devices<'a>) -> Option<&'a Superblock> {
    let members = || devices.there().filter(|(_, one)| member(one.role()).is_some());
    let has = |one: &Superblock, other: &Superblock| member(one.role_of(other.number)).is_some();
    // The number of version 0.90 says nothing of which device it is: unless both know a third member, another device
    // may have come into the place of the one that calls the other gone.
    let know_a_third = |one: &Superblock, other: &Superblock| {
        let third = |third: &Superblock| ![one.number, other.number].contains(&third.number);
        members().any(|(_, any)| third(any) && has(one, any) && has(other, any))
    };
    let went_on_without = |one: &Superblock| {
        let is_left = |other: &Superblock| {
            other.events == one.events
                && !has(one, other)
                && has(other, one)
                && (one.v0.is_none() || know_a_third(one, other))
        };
        members().filter(|(_, other)| is_left(other)).count()
    };
    let latest = |one: &(usize, &Superblock)| {
        let is_whole = one.1.rebuilt_to().is_none();
        (one.1.events, went_on_without(one.1), is_whole, std::cmp::Reverse(one.0))
    };
    members().max_by_key(latest).map(|(_, one)| one)
}

/// Of version 0.90 a member that is being rebuilt is a spare: nothing of it can be used, but it may be the only one to
/// have recorded that a member failed, and what was written since is on it alone. It is told by being newer than all
/// members, none of which it has in service and within one event.
fn later_spare<'a>(devices: &Devices<'a>, newest: &Superblock) -> Option<&'a Superblock> {
    let is_later = |one: &&Superblock| {
        one.v0.is_some() && one.role() == Role::Spare && one.events > newest.events
    };
    let spares = devices.there().map(|(_, one)| one).filter(is_later);
    let last = spares.max_by_key(|one| one.events)?;
    let is_named = |one: &Superblock| {
        member(one.role()).is_some()
            && one.events + 1 >= last.events
            && member(last.role_of(one.number)).is_some()
    };
    (!devices.there().any(|(_, one)| is_named(one))).then_some(last)
}

/// Whether one superblock has the other's device as a member. The number of version 0.90 is a place, which another
/// device may have taken: at the same events both must say the same of all.
fn names(one: &Superblock, other: &Superblock) -> bool {
    let disagree = one.v0.is_some() && one.events == other.events && one.roles != other.roles;
    member(one.role_of(other.number)).is_some() && !disagree
}

/// Two halves that each wrote that the other is gone. One that left before another device came in its place does not
/// know that device either, but it knows others, or calls nobody gone. A replacement that is named no more is no half:
/// it goes on with nobody.
fn diverged(devices: &Devices<'_>, newest: &Superblock) -> Result<(), Cannot> {
    let members = || devices.there().filter(|(_, one)| member(one.role()).is_some());
    let knows_anybody =
        |one: &Superblock| members().any(|(_, other)| names(newest, other) && names(one, other));
    let calls_gone = |one: &Superblock| {
        let fills = |of: &Superblock, role: &Role| of.roles.contains(role);
        let filled = newest.roles.iter().filter(|role| member(**role).is_some());
        filled.into_iter().any(|role| !fills(one, role))
    };
    let is_half =
        |one: &Superblock| !names(newest, one) && !one.features.has(Features::REPLACEMENT);
    let other: Vec<usize> = members()
        .filter(|(_, one)| is_half(one) && !knows_anybody(one) && calls_gone(one))
        .map(|(given, _)| given)
        .collect();
    if other.is_empty() {
        return Ok(());
    }
    let with = members().filter(|(_, one)| names(newest, one)).map(|(given, _)| given).collect();
    Err(Cannot::Diverged(with, other))
}

/// Why a device is not one of those in service now.
fn out_of_date(one: &Superblock, newest: &Superblock, purpose: Purpose) -> Option<Why> {
    let is_stale = one.events.saturating_add(1) < newest.events;
    let stale = is_stale.then_some(Why::Stale(one.events, newest.events));
    match one.role() {
        Role::Spare => return Some(Why::Spare),
        Role::Faulty => return Some(Why::Failed),
        // One that was given up, or failed, is none any more.
        Role::Journal if !newest.features.has(Features::JOURNAL) => return Some(Why::Failed),
        Role::Journal => {
            // Another one may have come in its place.
            let is_named = newest.role_of(one.number) == Role::Journal;
            return Some(stale.unwrap_or(if is_named { Why::Journal } else { Why::Failed }));
        }
        Role::Member(_) => {}
    }
    if stale.is_some() {
        return stale;
    }
    if newest.role_of(one.number) != one.role() {
        return Some(Why::Failed);
    }
    let is_out = purpose == Purpose::Read;
    one.rebuilt_to().filter(|_| is_out).map(|to| match one.features.has(Features::REPLACEMENT) {
        true => Why::Replacement,
        false => Why::Rebuilding(Sector(to)),
    })
}

/// A replacement that has everything serves when the member it replaces does not: for reading when that is not there;
/// for writing when it is named no more, as it may have gone on alone else. Of two others that claim one place none
/// does, but that on version 0.90, where a number says nothing of which device it was, the newer one has taken the
/// other's.
fn contested(devices: &mut Devices<'_>, newest: &Superblock, purpose: Purpose) {
    let is_replacement = |one: &Superblock| one.features.has(Features::REPLACEMENT);
    let is_beside = |one: &Superblock| {
        let named = newest.roles.iter().filter(|role| **role == one.role()).count();
        is_replacement(one) && (one.rebuilt_to().is_some() || named > 1)
    };
    if purpose == Purpose::Write {
        devices.exclude(|_, one| is_beside(one).then_some(Why::Replacement));
    }
    let there: Vec<_> = devices.there().collect();
    for (given, one) in &there {
        let Some(place) = member(one.role()) else { continue };
        let rival = there.iter().find(|(other, theirs)| {
            other != given
                && theirs.role() == one.role()
                && (!is_replacement(theirs) || is_replacement(one))
                && (one.v0.is_none() || theirs.events >= one.events)
        });
        if let Some(_rival) = rival {
            let why = if is_replacement(one) { Why::Replacement } else { Why::Contested(place) };
            devices.take_out(*given, Some(place), why);
        }
    }
}

fn build(
    devices: &Devices<'_>,
    newest: &Superblock,
    allowed: &Allowed,
    purpose: Purpose,
) -> Result<Assembly, Cannot> {
    let count = newest.members.min(u32::from(u16::MAX)) as usize;
    let mut places =
        vec![Place::default(); count.min(usize::from(raidlab_core::layout::MOST_MEMBERS) + 1)];
    for (given, one) in devices.there() {
        let Some(place) = member(one.role()) else { continue };
        let Some(seat) = places.get_mut(usize::from(place)) else { continue };
        let bad = devices.all[given].bad.iter().flatten();
        *seat = Place {
            given: Some(given),
            data_offset: Sectors(one.data_offset),
            sectors: Sectors(one.used()),
            bad: bad.map(|(at, len)| (MemberIndex(place), *at, *len)).collect(),
        };
    }
    let sizes: Vec<_> = places.iter().map(|seat| seat.given.map(|_| seat.sectors)).collect();
    let layout = layout(newest, &sizes, allowed.zones).map_err(Cannot::Obstacle)?;
    if sizes.iter().all(Option::is_none) && devices.out.iter().any(|out| is_cut_off(&out.why)) {
        // Nothing says how large an array could be that has no place for its data.
        let (missing, out) = ((0..layout.members).collect(), devices.out.clone());
        return Err(Cannot::TooFew { missing, layout, out });
    }
    // With no member left they are as large as the newest says, if its own device has that much.
    let is_there =
        |one: &&Inspected| one.superblock() == Some(newest) && data_end(newest) <= one.sectors.0;
    let said = devices.all.iter().find(is_there).map(|_| Sectors(newest.used()));
    let smallest = sizes.iter().flatten().min().copied().or(said).unwrap_or_default();
    for seat in places.iter_mut().filter(|seat| seat.given.is_none()) {
        seat.sectors = smallest;
    }
    let clean = newest.is_clean();
    let mut assembly = Assembly {
        layout,
        array: newest.array,
        name: name(devices, newest),
        events: newest.events,
        clean,
        dirty_bits: None,
        places,
        out: devices.out.clone(),
        last: [0; 2],
        notes: Vec::new(),
        block: 1,
        geom: None,
    };
    assembly.check()?;
    if purpose == Purpose::Read {
        judge(devices, newest, allowed, &mut assembly)?;
    }
    Ok(assembly)
}

const fn is_cut_off(why: &Why) -> bool {
    matches!(why, Why::TooSmall(_))
}

/// The array's name. That of a volume of LVM may be longer than a superblock of md has room for.
fn name(devices: &Devices<'_>, newest: &Superblock) -> String {
    let told = devices.there().find_map(|(given, _)| devices.all[given].of_volume.as_deref());
    told.map_or_else(|| newest.name(), |told| told.volume.clone())
}

/// Whether what is there is enough, and what must be said of it.
fn judge(
    devices: &Devices<'_>,
    newest: &Superblock,
    allowed: &Allowed,
    assembly: &mut Assembly,
) -> Result<(), Cannot> {
    let missing = assembly.missing();
    let parity = matches!(assembly.layout.level.redundancy(), Redundancy::Parity(_));
    let with: Vec<_> = assembly.places.iter().filter_map(|seat| seat.given).collect();
    let bitmaps = with.iter().map(|given| &devices.all[*given].bitmap);
    let mut lockless = false;
    let mut most = None;
    for bitmap in bitmaps {
        match bitmap {
            BitmapSeen::Found(head, bits) if head.events >= newest.events && !head.is_stale() => {
                lockless |= head.kind == BitmapKind::Lockless;
                let found = bits.and_then(|bits| Some((bits, head.bits()?)));
                most = most.max(found);
            }
            BitmapSeen::Found(head, _) => lockless |= head.kind == BitmapKind::Lockless,
            BitmapSeen::Lost | BitmapSeen::None => {}
        }
    }
    assembly.dirty_bits = most;
    if parity && !missing.is_empty() && !allowed.dirty_degraded {
        if !assembly.clean {
            return Err(Cannot::DirtyDegraded(missing));
        }
        if lockless {
            assembly.notes.push(
                "its bitmap is lockless (Linux 6.18): parity of ranges that were never written was never made".into(),
            );
        }
    }
    if newest.features.has(Features::JOURNAL) {
        judge_journal(devices, newest, allowed, assembly)?;
    }
    let told = |given: &usize| devices.all[*given].of_volume.as_deref();
    let is_unsure = with.iter().filter_map(told).any(|told| told.is_unsure);
    if parity && !missing.is_empty() && is_unsure {
        assembly.notes.push(
            "LVM does not record whether a volume that is used without a member is stopped cleanly: where writes were \
             under way in a crash, what that member held may come out wrong"
                .into(),
        );
    }
    if let Some(block) = Some(newest.logical_block).filter(|block| *block > 512) {
        assembly.notes.push(format!("the array was made to be used in blocks of {block} bytes"));
    }
    if newest.features.has(Features::CLUSTERED) {
        assembly
            .notes
            .push("the array is shared by a cluster: another machine may be writing to it".into());
    }
    Ok(())
}

/// Data that are in the journal only are not on the members.
fn judge_journal(
    devices: &Devices<'_>,
    newest: &Superblock,
    allowed: &Allowed,
    assembly: &mut Assembly,
) -> Result<(), Cannot> {
    let is_log = |out: &&Out| out.why == Why::Journal;
    let log = devices.out.iter().find(is_log).map(|out| devices.all[out.given].log);
    match log {
        Some(LogSeen::Empty) => Ok(()),
        Some(_) if allowed.ignore_journal => {
            assembly
                .notes
                .push("the journal was not replayed: what it holds is not in what is read".into());
            Ok(())
        }
        Some(_) => Err(Cannot::Log("journal")),
        None if !assembly.missing().is_empty() && !allowed.dirty_degraded => {
            Err(Cannot::JournalNeeded(assembly.missing()))
        }
        None => {
            let what = if newest.is_clean() { "may hold" } else { "probably holds" };
            assembly.notes.push(format!(
                "the journal is not among the devices; it {what} writes that are not on the members"
            ));
            Ok(())
        }
    }
}
