//! Which devices make an array of GEOM, and which of them are to be believed.
//!
//! As FreeBSD's classes at start: of gmirror and graid3 the highest genid counts, then the highest syncid. A device
//! that is behind, is being synchronised, was deactivated or went on alone has no say in what is read. Where only some
//! of a mirror's devices are dirty they are made like the others, where all are, like the one with the highest
//! priority, so that one is read; of a graid3 the one device that is dirty is left out, and with several the parity is
//! not to be believed. Stricter than FreeBSD, two devices that claim one place are both left out.

use raidlab_core::consistency::ArrayId;
use raidlab_core::contract::MemberBits;
use raidlab_core::{Layout, Level, SECTOR_BYTES, Sectors};

use super::kept::NO_AUTOSYNC;
use super::{Beside, Kind, Label};
use crate::md::{Allowed, Assembly, Cannot, Inspected, Obstacle, Out, Place, Why};

/// What labels say of an array that md has no word for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The class.
    pub kind: Kind,
    /// The array's number.
    pub id: u32,
    /// The newest generation, and state of synchronisation; of classes that have them.
    pub newest: Option<(u32, u32)>,
}

/// Whether devices are to be put together by labels of GEOM: some have one, and none a superblock of md.
pub(crate) fn is_meant(all: &[Inspected]) -> bool {
    let is_md = all.iter().any(|one| one.superblock().is_some());
    !is_md && all.iter().any(|one| one.geom.is_some())
}

/// The devices that were given.
struct Devices<'a> {
    all: &'a [Inspected],
    /// Labels of those that may be members.
    with: Vec<Option<&'a Label>>,
    out: Vec<Out>,
    /// Of those that are being synchronised up to which byte they are good.
    filled: Vec<Option<u64>>,
    /// Those that are out of date, by their places, where labels have such.
    stale: Vec<Option<u16>>,
    /// How many the newest labels say are out of service.
    out_now: u16,
    /// The place, from 1 on, of who left a graid3 when the newest syncid was raised.
    left: Option<u16>,
}

impl<'a> Devices<'a> {
    fn new(all: &'a [Inspected], allowed: &Allowed) -> Self {
        let (with, filled) = (Vec::with_capacity(all.len()), vec![None; all.len()]);
        let mut devices =
            Self { all, with, out: Vec::new(), filled, stale: Vec::new(), out_now: 0, left: None };
        for (given, one) in all.iter().enumerate() {
            let label = one.geom.as_ref().and_then(|seen| seen.whole());
            devices.with.push(label);
            if allowed.without.contains(&given) {
                devices.take_out(given, Why::LeftOut);
            } else if label.is_none() {
                let damage = one.geom.as_ref().and_then(|seen| seen.damage.as_ref());
                let what = damage.map_or_else(
                    || "no GEOM label in its last sector".to_owned(),
                    ToString::to_string,
                );
                devices.take_out(given, Why::NoSuperblock(what));
            }
        }
        devices
    }

    /// The place of a device whose label has one.
    fn place(&self, given: usize) -> Option<u16> {
        let label = self.with.get(given).copied().flatten()?;
        (label.kind != Kind::Mirror).then_some(label.number)
    }

    fn take_out(&mut self, given: usize, why: Why) {
        let place = self.place(given);
        self.with[given] = None;
        self.out.push(Out { given, place, why });
    }

    fn there(&self) -> impl Iterator<Item = (usize, &'a Label)> {
        self.with.iter().enumerate().filter_map(|(given, one)| Some((given, (*one)?)))
    }

    /// Takes out all of which something holds.
    fn exclude(&mut self, why: impl Fn(usize, &Label) -> Option<Why>) {
        let found: Vec<_> =
            self.there().filter_map(|(given, one)| Some((given, why(given, one)?))).collect();
        for (given, why) in found {
            self.take_out(given, why);
        }
    }
}

fn label(what: impl Into<String>) -> Why {
    Why::Label(what.into())
}

/// What an array is assembled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To be read: who has everything is believed, nobody else.
    Read,
    /// To be written: who is being synchronised is a member, too, and what is enough the core says.
    Write,
}

/// What is decided, and what only one who writes must know.
#[derive(Clone, Debug)]
pub(super) struct Decided {
    pub(super) assembly: Assembly,
    /// Members that are being synchronised, and up to which byte all of them are good.
    pub(super) synchronizing: MemberBits,
    pub(super) filled_to: u64,
    /// Members whose label was not raised with the others'.
    pub(super) behind: MemberBits,
    /// Members that are missing, and out of service by what is there.
    pub(super) known: MemberBits,
}

/// Decides which devices make an array that can be read.
///
/// # Errors
/// [`Cannot`], which says what would be needed.
pub fn assemble(all: &[Inspected], allowed: &Allowed) -> Result<Assembly, Cannot> {
    decide(all, allowed, Purpose::Read).map(|decided| decided.assembly)
}

/// The same for either purpose.
pub(super) fn decide(
    all: &[Inspected],
    allowed: &Allowed,
    purpose: Purpose,
) -> Result<Decided, Cannot> {
    let mut devices = Devices::new(all, allowed);
    let array = identity(&devices)?;
    devices.exclude(|_, one| (one.array() != array).then(|| Why::AnotherArray(one.shown_name())));
    devices.exclude(|_, one| match one.flags() {
        flags if flags.inactive => Some(label("deactivated, as its label says")),
        flags if flags.broken => {
            Some(label("broken, as its label says: it went on without the others"))
        }
        _ => None,
    });
    copies(&mut devices);
    let shape = devices.there().next().map(|(_, one)| one.clone());
    let Some(first) = shape else { return Err(Cannot::NoLabel(devices.out)) };
    let newest = out_of_date(&mut devices, first.kind)?;
    let Some(common) = shaped(&mut devices, newest) else {
        return Err(Cannot::NoLabel(devices.out));
    };
    contested(&mut devices);
    synchronizing(&mut devices, purpose);
    let clean = dirty(&mut devices, &common, purpose);
    let state = State { kind: common.kind, id: common.id, newest };
    let assembly = build(&devices, &common, state, (array, clean), (allowed, purpose))?;
    Ok(told(&devices, &common, assembly, newest))
}

/// What is decided, with what only one who writes must know.
fn told(
    devices: &Devices<'_>,
    common: &Label,
    assembly: Assembly,
    newest: Option<(u32, u32)>,
) -> Decided {
    let (mut synchronizing, mut behind, mut known) = ([0; 2], [0; 2], [0; 2]);
    let mut filled_to = u64::MAX;
    let mut missing = Vec::new();
    for (place, one) in (0..).zip(&assembly.places) {
        let Some(given) = one.given else {
            missing.push(place);
            continue;
        };
        let Some(one) = devices.with[given] else { continue };
        if let Some(filled) = devices.filled[given] {
            insert(&mut synchronizing, place);
            filled_to = filled_to.min(filled);
        }
        if newest.is_some_and(|newest| (one.genid, one.syncid) != newest) {
            insert(&mut behind, place);
        }
    }
    let is_known = |place: &u16| {
        let has_left = devices.out_now > 0 && devices.left == Some(*place + 1);
        devices.stale.contains(&Some(*place)) || has_left
    };
    if common.kind == Kind::Raid3 {
        missing.retain(is_known);
    } else {
        missing.truncate(devices.stale.len().max(usize::from(devices.out_now)));
    }
    missing.into_iter().for_each(|place| insert(&mut known, place));
    Decided { assembly, synchronizing, filled_to, behind, known }
}

fn insert(bits: &mut MemberBits, place: u16) {
    bits[usize::from(place / 64)] |= 1 << (place % 64);
}

/// Who is being synchronised: out of service for reading, or where its label forbids to go on.
fn synchronizing(devices: &mut Devices<'_>, purpose: Purpose) {
    let of = |one: &Label| match one.flags() {
        flags if flags.force_sync => Some(0),
        flags if flags.synchronizing => Some(one.sync_offset),
        _ => None,
    };
    let is_out = |one: &Label| {
        let may_go_on = one.array_flags & NO_AUTOSYNC == 0 || one.flags().force_sync;
        purpose == Purpose::Read || !may_go_on
    };
    devices.filled = devices.with.iter().map(|one| one.and_then(of)).collect();
    devices.exclude(|_, one| match one.flags() {
        _ if !is_out(one) => None,
        flags if flags.synchronizing => Some(label(format!(
            "being synchronised: its label says that it is good up to byte {} only",
            one.sync_offset
        ))),
        flags if flags.force_sync => Some(label("to be synchronised, as its label says")),
        _ => None,
    });
}

/// The array that most devices belong to.
fn identity(devices: &Devices<'_>) -> Result<ArrayId, Cannot> {
    let count =
        |label: &Label| devices.there().filter(|(_, one)| one.array() == label.array()).count();
    let most = devices.there().map(|(_, one)| count(one)).max();
    let Some(most) = most else { return Err(Cannot::NoLabel(devices.out.clone())) };
    let mut tops = devices.there().filter(|(_, one)| count(one) == most).map(|(_, one)| one);
    let Some(first) = tops.next() else { return Err(Cannot::NoLabel(devices.out.clone())) };
    let named = |one: &Label| format!("{} {}", one.kind.name(), one.shown_name());
    match tops.find(|one| one.array() != first.array()) {
        Some(other) => {
            let is_same = named(first) == named(other);
            let called = |one: &Label| match is_same {
                true => (format!("{} (ID {})", named(one), one.id), one.array()),
                false => (named(one), one.array()),
            };
            Err(Cannot::SeveralArrays([called(first), called(other)]))
        }
        None => Ok(first.array()),
    }
}

/// Of two devices of a mirror with one number the one that is behind, or the later one, is a copy.
fn copies(devices: &mut Devices<'_>) {
    let there: Vec<_> = devices.there().filter(|(_, one)| one.kind == Kind::Mirror).collect();
    let age = |one: &Label| (one.genid, one.syncid);
    for (given, one) in &there {
        let original = there.iter().find(|(other, theirs)| {
            let is_older = age(theirs) > age(one) || (age(theirs) == age(one) && other < given);
            other != given && theirs.disk == one.disk && is_older
        });
        if let Some((original, _)) = original {
            devices.take_out(*given, Why::Copy(*original));
        }
    }
}

/// Takes out what is behind; the newest genid and syncid.
///
/// Of a graid3 that raidlab wrote, a device that is one syncid behind, and not in the place of who left when it was
/// raised, has not been told of it: it misses nothing that was answered, as all had to be told first. Beside one in its
/// place that was told it is a copy of before.
fn out_of_date(devices: &mut Devices<'_>, kind: Kind) -> Result<Option<(u32, u32)>, Cannot> {
    if !kind.is_redundant() {
        return Ok(None);
    }
    let age = |one: &Label| (one.genid, one.syncid);
    let Some(newest) = devices.there().map(|(_, one)| age(one)).max() else { return Ok(None) };
    let (genid, syncid) = newest;
    devices.left = beside(devices, newest)?;
    let left = devices.left.filter(|_| kind == Kind::Raid3);
    let at_newest = devices.there().filter(|(_, one)| age(one) == newest);
    let told: Vec<u16> = at_newest.map(|(_, one)| one.number).collect();
    let is_told = |one: &Label| {
        let is_next = one.genid == genid && one.syncid.checked_add(1) == Some(syncid);
        let has_left = left.is_none_or(|left| left == one.number + 1);
        has_left || !is_next || told.contains(&one.number)
    };
    devices.stale = (devices.there())
        .filter(|(_, one)| age(one) < newest && is_told(one))
        .map(|(_, one)| (one.kind != Kind::Mirror).then_some(one.number))
        .collect();
    devices.exclude(|_, one| match (one.genid, one.syncid) {
        (own, _) if own < genid => {
            Some(label(format!("out of date: its genid is {own}, the newest {genid}")))
        }
        (_, own) if own < syncid && is_told(one) => {
            Some(label(format!("out of date: its syncid is {own}, the newest {syncid}")))
        }
        _ => None,
    });
    Ok(Some(newest))
}

/// What stands behind the newest labels: the place, from 1 on, of who left a graid3 when the syncid was raised.
///
/// # Errors
/// When they were raised twice, each without the other.
fn beside(devices: &mut Devices<'_>, newest: (u32, u32)) -> Result<Option<u16>, Cannot> {
    let is_newest = |one: &Label| (one.genid, one.syncid) == newest;
    let with: Vec<_> = (devices.there())
        .filter(|(_, one)| is_newest(one))
        .map(|(given, _)| (given, devices.all[given].geom.as_ref().and_then(|seen| seen.beside)))
        .collect();
    if with.iter().all(|(_, one)| one.is_none()) {
        return Ok(None);
    }
    // One that says nothing of itself speaks for neither half.
    let mut epochs = with.iter().filter_map(|(_, one)| Some((*one)?.epoch)).filter(|one| *one > 0);
    let first = epochs.next().unwrap_or_default();
    if epochs.any(|one| one != first) {
        let of = |same: bool| {
            let is_of = |one: &Beside| one.epoch > 0 && (one.epoch == first) == same;
            let of = with.iter().filter(|(_, one)| one.as_ref().is_some_and(is_of));
            of.map(|(given, _)| *given).collect()
        };
        return Err(Cannot::Diverged(of(true), of(false)));
    }
    let all = || with.iter().map(|(_, one)| one.unwrap_or_default());
    devices.out_now = all().map(|one| one.out).min().unwrap_or_default();
    let left = all().map(|one| one.left).reduce(|one, other| if one == other { one } else { 0 });
    Ok(left.filter(|left| *left > 0))
}

/// What labels of one array must agree on.
fn shape(one: &Label) -> (u16, u64, u32, u32) {
    (one.members, one.array_bytes, one.sector_bytes, one.stripe)
}

/// Takes out what is of another shape than most of the newest; a label of the shape that is left.
fn shaped(devices: &mut Devices<'_>, newest: Option<(u32, u32)>) -> Option<Label> {
    let is_newest = |one: &Label| newest.is_none_or(|newest| (one.genid, one.syncid) == newest);
    let all: Vec<_> = devices.there().filter(|(_, one)| is_newest(one)).collect();
    let count = |label: &Label| all.iter().filter(|(_, one)| shape(one) == shape(label)).count();
    // Of equal ones the first that was given.
    let most = |(given, one): &&(usize, &Label)| (count(one), std::cmp::Reverse(*given));
    let common = all.iter().max_by_key(most).map(|(_, one)| (*one).clone())?;
    devices.exclude(|_, one| {
        (shape(one) != shape(&common)).then(|| {
            label(format!("its label says {}, that of others {}", shown(one), shown(&common)))
        })
    });
    Some(common)
}

/// The shape in words.
fn shown(one: &Label) -> String {
    let mut text = format!("{} devices", one.members);
    if one.kind == Kind::Stripe {
        text.push_str(&format!(", stripes of {} bytes", one.stripe));
    }
    if one.kind.is_redundant() {
        let (bytes, sector) = (one.array_bytes, one.sector_bytes);
        text.push_str(&format!(", {bytes} bytes in sectors of {sector}"));
    }
    text
}

/// Of two that claim one place none is believed.
fn contested(devices: &mut Devices<'_>) {
    let there: Vec<_> = devices.there().filter(|(_, one)| one.kind != Kind::Mirror).collect();
    for (given, one) in &there {
        if there.iter().any(|(other, theirs)| other != given && theirs.number == one.number) {
            devices.take_out(*given, Why::Contested(one.number));
        }
    }
}

/// Takes out what FreeBSD would make anew from others, of what was being written; whether the rest is consistent. Who
/// writes a mirror keeps all, and makes the others like who is first.
fn dirty(devices: &mut Devices<'_>, common: &Label, purpose: Purpose) -> bool {
    let serving: Vec<_> =
        devices.there().filter(|(given, _)| devices.filled[*given].is_none()).collect();
    let (count, all) = (serving.len(), devices.there().count());
    let dirty = serving.iter().filter(|(_, one)| one.flags().dirty).count();
    let is_out = match common.kind {
        Kind::Mirror if purpose == Purpose::Write => return dirty == 0,
        Kind::Mirror => dirty < count,
        Kind::Raid3 => dirty == 1 && all == usize::from(common.members) && count == all,
        Kind::Stripe | Kind::Concat => return true,
    };
    if is_out && purpose == Purpose::Write {
        let one = serving.iter().filter(|(_, one)| one.flags().dirty);
        one.for_each(|(given, _)| devices.filled[*given] = Some(0));
    } else if is_out {
        let what = "it was being written to, the others were not: FreeBSD would make it like them";
        devices.exclude(|_, one| one.flags().dirty.then(|| label(what)));
    }
    dirty == 0 || is_out
}

/// The members in order, of a mirror by priority, as `gmirror label` gives them; where copies may differ who writes has
/// first whom the others are made like, and who is being synchronised is behind them all.
fn order(
    devices: &Devices<'_>,
    common: &Label,
    (clean, purpose): (bool, Purpose),
) -> Result<Vec<Option<usize>>, Cannot> {
    let mut order = vec![None; usize::from(common.members)];
    if common.kind != Kind::Mirror {
        for (given, one) in devices.there() {
            if let Some(place) = order.get_mut(usize::from(one.number)) {
                *place = Some(given);
            }
        }
        return Ok(order);
    }
    let mut there: Vec<_> = devices.there().collect();
    there.sort_by_key(|(given, one)| {
        let is_dirty = purpose == Purpose::Write && !clean;
        let priority = if is_dirty { u8::MAX - one.priority } else { one.priority };
        let behind = (devices.filled[*given].is_some(), is_dirty && one.flags().dirty);
        (behind, priority, one.disk)
    });
    if there.len() > order.len() {
        return Err(Cannot::Obstacle(Obstacle::Shape(format!(
            "{} devices say that they are in service in gmirror {}, which has {}: leave out with --without those that \
             are not its own",
            there.len(),
            common.shown_name(),
            order.len()
        ))));
    }
    order.iter_mut().zip(there).for_each(|(place, (given, _))| *place = Some(given));
    Ok(order)
}

/// Members of a mirror but the one with the highest priority, which the others would be made like.
fn besides(devices: &Devices<'_>, places: &[Place]) -> MemberBits {
    let priority =
        |place: &Place| place.given.and_then(|given| devices.with[given]).map(|one| one.priority);
    let there = || places.iter().enumerate().filter(|(_, place)| place.given.is_some());
    // Of equal ones the first.
    let kept = there().max_by_key(|(place, one)| (priority(one), std::cmp::Reverse(*place)));
    let mut bits = [0; 2];
    for (place, _) in there().filter(|(place, _)| kept.is_none_or(|(kept, _)| kept != *place)) {
        bits[place / 64] |= 1 << (place % 64);
    }
    bits
}

/// Sectors that the array has of each device in service.
fn used(devices: &Devices<'_>, common: &Label) -> Vec<Option<u64>> {
    let sectors = |given: usize| {
        let seen = devices.all[given].geom.as_ref()?;
        devices.with[given].map(|_| devices.all[given].sectors.0.saturating_sub(seen.sector.0))
    };
    let room: Vec<_> = (0..devices.all.len()).map(sectors).collect();
    let least = room.iter().flatten().min().copied().unwrap_or_default();
    let each = match common.kind {
        Kind::Concat => return room,
        Kind::Stripe => {
            let stripe = (u64::from(common.stripe) / SECTOR_BYTES).max(1);
            least / stripe * stripe
        }
        Kind::Mirror | Kind::Raid3 => common.used() / SECTOR_BYTES,
    };
    room.into_iter().map(|room| room.map(|_| each)).collect()
}

/// As the core has it; an array of one device is that device.
fn layout(common: &Label) -> Result<Layout, Cannot> {
    let members = common.members;
    let layout = match common.kind {
        _ if members == 1 => Layout::new(Level::Linear, 1),
        Kind::Mirror => Layout::new(Level::Raid1, members),
        Kind::Raid3 => Layout::new(Level::Raid3, members),
        Kind::Stripe => Layout::new(Level::Raid0, members)
            .with_chunk(Sectors(u64::from(common.stripe) / SECTOR_BYTES)),
        Kind::Concat => Layout::new(Level::Linear, members),
    };
    let wrong =
        |error: raidlab_core::LayoutError| Cannot::Obstacle(Obstacle::Shape(error.to_string()));
    layout.check().map_err(wrong)?;
    Ok(layout)
}

fn build(
    devices: &Devices<'_>,
    common: &Label,
    state: State,
    (array, clean): (ArrayId, bool),
    (allowed, purpose): (&Allowed, Purpose),
) -> Result<Assembly, Cannot> {
    let layout = layout(common)?;
    let used = used(devices, common);
    let least = used.iter().flatten().min().copied().unwrap_or_default();
    let place = |given: Option<usize>| Place {
        given,
        sectors: Sectors(given.and_then(|given| used[given]).unwrap_or(least)),
        ..Place::default()
    };
    let places: Vec<Place> =
        order(devices, common, (clean, purpose))?.into_iter().map(place).collect();
    if devices.there().next().is_none() {
        let (missing, out) = ((0..common.members).collect(), devices.out.clone());
        return Err(Cannot::TooFew { missing, layout, out });
    }
    let (genid, syncid) = state.newest.unwrap_or_default();
    let atom = u64::from(common.sector_bytes) / common.data_members() / SECTOR_BYTES;
    let mut assembly = Assembly {
        layout,
        array,
        name: common.shown_name(),
        events: u64::from(genid) << 32 | u64::from(syncid),
        clean,
        dirty_bits: None,
        places,
        out: devices.out.clone(),
        last: [0; 2],
        notes: Vec::new(),
        block: if common.kind == Kind::Raid3 { atom as u32 } else { 1 },
        geom: Some(state),
    };
    assembly.check()?;
    if assembly.has_unequal_copies() && purpose == Purpose::Read {
        assembly.last = besides(devices, &assembly.places);
    }
    let data = usize::from(common.members) - 1;
    let lost = assembly.places.iter().take(data).any(|place| place.given.is_none());
    let is_refused = !clean && !allowed.dirty_degraded && purpose == Purpose::Read;
    if common.kind == Kind::Raid3 && lost && is_refused {
        return Err(Cannot::DirtyDegraded(assembly.missing()));
    }
    if common.sector_bytes > SECTOR_BYTES as u32 {
        let what =
            format!("the array was made to be used in sectors of {} bytes", common.sector_bytes);
        assembly.notes.push(what);
    }
    Ok(assembly)
}
