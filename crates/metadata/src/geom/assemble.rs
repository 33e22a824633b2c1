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

use super::{Kind, Label};
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
}

impl<'a> Devices<'a> {
    fn new(all: &'a [Inspected], allowed: &Allowed) -> Self {
        let mut devices = Self { all, with: Vec::with_capacity(all.len()), out: Vec::new() };
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

/// Decides which devices make an array that can be read.
///
/// # Errors
/// [`Cannot`], which says what would be needed.
pub fn assemble(all: &[Inspected], allowed: &Allowed) -> Result<Assembly, Cannot> {
    let mut devices = Devices::new(all, allowed);
    let array = identity(&devices)?;
    devices.exclude(|_, one| (one.array() != array).then(|| Why::AnotherArray(one.name.clone())));
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
    let newest = out_of_date(&mut devices, first.kind);
    let Some(common) = shaped(&mut devices) else { return Err(Cannot::NoLabel(devices.out)) };
    contested(&mut devices);
    devices.exclude(|_, one| match one.flags() {
        flags if flags.synchronizing => Some(label(format!(
            "being synchronised: its label says that it is good up to byte {} only",
            one.sync_offset
        ))),
        flags if flags.force_sync => Some(label("to be synchronised, as its label says")),
        _ => None,
    });
    let clean = dirty(&mut devices, &common);
    let state = State { kind: common.kind, id: common.id, newest };
    build(&devices, &common, state, (array, clean, allowed))
}

/// The array that most devices belong to.
fn identity(devices: &Devices<'_>) -> Result<ArrayId, Cannot> {
    let count =
        |label: &Label| devices.there().filter(|(_, one)| one.array() == label.array()).count();
    let most = devices.there().map(|(_, one)| count(one)).max();
    let Some(most) = most else { return Err(Cannot::NoLabel(devices.out.clone())) };
    let mut tops = devices.there().filter(|(_, one)| count(one) == most).map(|(_, one)| one);
    let Some(first) = tops.next() else { return Err(Cannot::NoLabel(devices.out.clone())) };
    let named = |one: &Label| (format!("{} {}", one.kind.name(), one.name), one.array());
    match tops.find(|one| one.array() != first.array()) {
        Some(other) => Err(Cannot::SeveralArrays([named(first), named(other)])),
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
fn out_of_date(devices: &mut Devices<'_>, kind: Kind) -> Option<(u32, u32)> {
    if !kind.is_redundant() {
        return None;
    }
    let genid = devices.there().map(|(_, one)| one.genid).max()?;
    devices.exclude(|_, one| {
        let what = format!("out of date: its genid is {}, the newest {genid}", one.genid);
        (one.genid < genid).then(|| label(what))
    });
    let syncid = devices.there().map(|(_, one)| one.syncid).max()?;
    devices.exclude(|_, one| {
        let what = format!("out of date: its syncid is {}, the newest {syncid}", one.syncid);
        (one.syncid < syncid).then(|| label(what))
    });
    Some((genid, syncid))
}

/// What labels of one array must agree on.
fn shape(one: &Label) -> (u16, u64, u32, u32) {
    (one.members, one.array_bytes, one.sector_bytes, one.stripe)
}

/// Takes out what is of another shape than most; a label of the shape that is left.
fn shaped(devices: &mut Devices<'_>) -> Option<Label> {
    let count =
        |label: &Label| devices.there().filter(|(_, one)| shape(one) == shape(label)).count();
    // Of equal ones the first that was given.
    let most = |(given, one): &(usize, &Label)| (count(one), std::cmp::Reverse(*given));
    let common = devices.there().max_by_key(most).map(|(_, one)| one.clone())?;
    devices.exclude(|_, one| {
        (shape(one) != shape(&common)).then(|| {
            label(format!("its label says {}, that of others {}", told(one), told(&common)))
        })
    });
    Some(common)
}

/// The shape in words.
fn told(one: &Label) -> String {
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

/// Takes out what FreeBSD would make anew from others, of what was being written; whether the rest is consistent.
fn dirty(devices: &mut Devices<'_>, common: &Label) -> bool {
    let count = devices.there().count();
    let dirty = devices.there().filter(|(_, one)| one.flags().dirty).count();
    let is_out = match common.kind {
        Kind::Mirror => dirty < count,
        Kind::Raid3 => dirty == 1 && count == usize::from(common.members),
        Kind::Stripe | Kind::Concat => return true,
    };
    if is_out {
        let what = "it was being written to, the others were not: FreeBSD would make it like them";
        devices.exclude(|_, one| one.flags().dirty.then(|| label(what)));
    }
    dirty == 0 || is_out
}

/// The members in order, of a mirror by priority, as `gmirror label` gives them.
fn order(devices: &Devices<'_>, common: &Label) -> Result<Vec<Option<usize>>, Cannot> {
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
    there.sort_by_key(|(_, one)| (one.priority, one.disk));
    if there.len() > order.len() {
        return Err(Cannot::Obstacle(Obstacle::Shape(format!(
            "{} devices say that they are in service in gmirror {}, which has {}: leave out with --without those that \
             are not its own",
            there.len(),
            common.name,
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
    (array, clean, allowed): (ArrayId, bool, &Allowed),
) -> Result<Assembly, Cannot> {
    let layout = layout(common)?;
    let used = used(devices, common);
    let least = used.iter().flatten().min().copied().unwrap_or_default();
    let place = |given: Option<usize>| Place {
        given,
        sectors: Sectors(given.and_then(|given| used[given]).unwrap_or(least)),
        ..Place::default()
    };
    let places: Vec<Place> = order(devices, common)?.into_iter().map(place).collect();
    if devices.there().next().is_none() {
        let (missing, out) = ((0..common.members).collect(), devices.out.clone());
        return Err(Cannot::TooFew { missing, layout, out });
    }
    let (genid, syncid) = state.newest.unwrap_or_default();
    let atom = u64::from(common.sector_bytes) / common.data_members() / SECTOR_BYTES;
    let mut assembly = Assembly {
        layout,
        array,
        name: common.name.clone(),
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
    if assembly.has_unequal_copies() {
        assembly.last = besides(devices, &assembly.places);
    }
    let data = usize::from(common.members) - 1;
    let lost = assembly.places.iter().take(data).any(|place| place.given.is_none());
    if common.kind == Kind::Raid3 && lost && !clean && !allowed.dirty_degraded {
        return Err(Cannot::DirtyDegraded(assembly.missing()));
    }
    if common.sector_bytes > SECTOR_BYTES as u32 {
        let what =
            format!("the array was made to be used in sectors of {} bytes", common.sector_bytes);
        assembly.notes.push(what);
    }
    Ok(assembly)
}
