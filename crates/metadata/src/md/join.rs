//! An md array that is to be written: who is in service, in the words of the core.
//!
//! Who is a member is decided as for reading ([`super::assemble`]), but that a member being rebuilt is one, too.
//! Whether that is enough to start with, and what must be made consistent, the core decides
//! ([`raidlab_core::consistency`]).

use raidlab_core::consistency::{
    ArrayId, AssembleError, Carried, Examined, Finding, Found, LogFound, Parameters,
};
use raidlab_core::contract::{MemberBits, Superblock as Said};
use raidlab_core::policy::MemberTraits;
use raidlab_core::{Consistency, Layout, Level, MemberIndex, SECTOR_BYTES, Sector, Sectors};

use super::assemble::{Purpose, decide};
use super::format::{self, HISTORY, PARTIAL_PARITY, named_twice, replaced_to, room, unnamed};
use super::kept::Kept;
use super::superblock::MOST_EVENTS;
use super::{
    Allowed, Bitmap, BitmapKind, BitmapSeen, ByteOrder, Cannot, Features, Inspected, Out, PplSeen,
    Role, Superblock, V0Device, Why, journal,
};
use crate::{Looked, Places, geom};

/// An array that can be written, by what stands on its devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// What it is.
    pub layout: Layout,
    /// What keeps its redundancy consistent.
    pub consistency: Consistency,
    /// Its identity.
    pub array: ArrayId,
    /// Its name.
    pub name: String,
    /// What must be known of each member by whoever chooses which to read.
    pub traits: Vec<MemberTraits>,
    /// The device of each member, by the order they were given in.
    pub order: Vec<Option<usize>>,
    /// Where data start on each member.
    pub starts: Vec<Sectors>,
    /// Spares, by the order they were given in.
    pub spares: Vec<usize>,
    /// The log device of an array with a journal, by the order they were given in.
    pub journal: Option<usize>,
    /// The number of the log device of a journal that is given up.
    pub former_journal: Option<u16>,
    /// The device that was being filled to replace a member: by the order they were given in, and which member.
    pub replacement: Option<(usize, u16)>,
    /// What was given and is not in service.
    pub out: Vec<Out>,
    /// Members that are missing although the newest superblock has them in service.
    pub absent: MemberBits,
    /// What is worth knowing, in words.
    pub notes: Vec<String>,
    /// Sectors of partial parity that a header of each member's log takes; `None` without such logs.
    pub log_header: Option<Sectors>,
    /// Sectors that a member reads and writes together at least: what raid3 cuts by.
    pub block: u32,
    /// Of an array of GEOM what else its labels say.
    pub geom: Option<geom::State>,
    /// The state of the array.
    pub(crate) state: Said,
    /// The events of each member.
    pub(crate) events: Vec<u64>,
    /// Those of the log device.
    pub(crate) journal_events: u64,
    /// Sectors used of each member.
    pub(crate) sectors: Vec<Sectors>,
    /// What the lists of members call bad of their data.
    pub(crate) bad: Vec<(MemberIndex, Sector, Sectors)>,
}

/// Decides which devices make an array that is written.
///
/// # Errors
/// [`Cannot`], which says what would be needed; [`Cannot::NotWritten`] for what this version does not write.
pub fn join(all: &[Inspected], allowed: &Allowed) -> Result<Joined, Cannot> {
    if geom::is_meant(all) {
        return geom::join(all, allowed);
    }
    let (mut assembly, newest) = decide(all, allowed, Purpose::Write)?;
    let with: Vec<Option<&Superblock>> = assembly
        .places
        .iter()
        .map(|place| place.given.and_then(|given| all[given].superblock()))
        .collect();
    let journal = journal(newest, &mut assembly, allowed)?;
    let is_given_up = newest.features.has(Features::JOURNAL) && journal.is_none();
    let consistency = match journal {
        Some(given) => Consistency::Journal { sectors: in_journal(&all[given]) },
        None => consistency(all, &assembly.places, newest, &assembly.layout)?,
    };
    let log_header = log_header(all, &assembly.places, consistency)?;
    writable(newest)?;
    let replacement = replacement(all, &mut assembly)?;
    assembly.notes.extend(with.iter().enumerate().filter_map(in_units));
    let mut state = state(&with, newest, consistency, all, &assembly.places);
    let filled = replacement.and_then(|(given, _)| all[given].superblock());
    state.replaced_to = filled.map_or(Sector(0), replaced_to);
    let mut absent = assembly.failed();
    for (word, awaited) in awaited(newest, all, &assembly).into_iter().enumerate() {
        state.failed[word] &= !awaited;
        state.rebuilding[word] |= awaited;
        absent[word] &= !state.failed[word];
    }
    let mut former_journal = None;
    if is_given_up {
        let number = newest.roles.iter().position(|role| *role == Role::Journal);
        former_journal = number.map(|number| number as u16);
        // While a journal is in use md's superblocks say that all is consistent.
        (state.clean, state.synced_to) = (false, Sector(0));
    }
    let log = journal.and_then(|given| all[given].superblock());
    let (events, journal_events) = events(&with, log);
    let is_spare = |out: &&Out| out.why == Why::Spare;
    let traits = with.iter().map(|one| MemberTraits {
        write_mostly: one.is_some_and(|one| one.flags & 1 == 1),
        ..MemberTraits::default()
    });
    Ok(Joined {
        traits: traits.collect(),
        consistency,
        array: assembly.array,
        name: assembly.name,
        order: assembly.places.iter().map(|place| place.given).collect(),
        starts: assembly.places.iter().map(|place| place.data_offset).collect(),
        journal,
        former_journal,
        replacement,
        journal_events,
        spares: assembly.out.iter().filter(is_spare).map(|out| out.given).collect(),
        absent,
        log_header,
        block: assembly.block,
        geom: None,
        notes: assembly.notes,
        state,
        events,
        sectors: assembly.places.iter().map(|place| place.sectors).collect(),
        bad: assembly.places.iter().flat_map(|place| place.bad.iter().copied()).collect(),
        out: assembly.out,
        layout: assembly.layout,
    })
}

/// The events of each member, and of the log device.
fn events(with: &[Option<&Superblock>], log: Option<&Superblock>) -> (Vec<u64>, u64) {
    let mut events: Vec<u64> = with.iter().map(|one| one.map_or(0, |one| one.events)).collect();
    let journal_events = log.map_or(0, |one| one.events);
    let most = events.iter().max().copied().unwrap_or_default();
    if journal_events > most {
        // md tells the log device and the members at once, the core the log device last.
        events.iter_mut().filter(|one| **one == most).for_each(|one| *one = journal_events);
    }
    (events, journal_events.min(most))
}

/// The log device of an array with a journal, which is none of those that are out; `None` of one that is given up, too.
fn journal(
    newest: &Superblock,
    assembly: &mut super::Assembly,
    allowed: &Allowed,
) -> Result<Option<usize>, Cannot> {
    if !newest.features.has(Features::JOURNAL) {
        return Ok(None);
    }
    if newest.features.has(Features::BITMAP) || newest.features.has_ppl() {
        return Err(not_written("it has a journal and another log beside it".into()));
    }
    let mut logs = assembly.out.iter().enumerate().filter(|(_, out)| out.why == Why::Journal);
    let at = logs.next().map(|(at, _)| at);
    if let (Some(at), Some((_, other))) = (at, logs.next()) {
        return Err(not_written(format!(
            "devices {} and {} of those given each say that they are its journal: leave one of both out",
            assembly.out[at].given + 1,
            other.given + 1
        )));
    }
    match (at, allowed.ignore_journal) {
        (Some(_), true) => Err(Cannot::JournalThere),
        (Some(at), false) => Ok(Some(assembly.out.remove(at).given)),
        (None, false) => Err(Cannot::JournalLost),
        (None, true) => {
            assembly.notes.push(
                "its journal is given up: writes that stand in it alone are lost, and all redundancy is made consistent"
                    .into(),
            );
            Ok(None)
        }
    }
}

/// Places that a spare of version 0.90 may be in that the newest has and that is not there: a member that is being
/// rebuilt is a spare, which has no place in superblocks, and may have gone on when all others failed. So it is
/// missing, not failed.
fn awaited(newest: &Superblock, all: &[Inspected], assembly: &super::Assembly) -> [u64; 2] {
    let mut awaited = [0; 2];
    let Some(v0) = &newest.v0 else { return awaited };
    let out = assembly.out.iter().filter(|out| out.why == Why::Spare);
    let given: Vec<u32> = out.filter_map(|out| Some(all[out.given].superblock()?.number)).collect();
    let is_missing = |(number, line): (u32, &V0Device)| {
        line.is_spare()
            && line.number == number
            && number >= newest.members
            && !given.contains(&number)
    };
    let mut empty = unnamed(newest);
    for _ in (0..).zip(&v0.table).filter(|line| is_missing(*line)) {
        let Some(at) = empty.iter().position(|word| *word != 0) else { break };
        awaited[at] |= empty[at] & empty[at].wrapping_neg();
        empty[at] &= empty[at] - 1;
    }
    awaited
}

/// Sectors that the array may have in the journal of a device.
fn in_journal(device: &Inspected) -> Sectors {
    let ring = device.superblock().map_or(0, |one| one.data_size / journal::PAGE * journal::PAGE);
    Sectors(ring / journal::TURNS)
}

/// What the array keeps its redundancy consistent by.
fn consistency(
    all: &[Inspected],
    places: &[super::Place],
    newest: &Superblock,
    layout: &Layout,
) -> Result<Consistency, Cannot> {
    if !layout.level.is_redundant() {
        return Ok(Consistency::None);
    }
    if newest.features.has_ppl() {
        let what =
            format!("it logs partial parity, which is written of raid5 only, not of {layout}");
        let is_raid5 = layout.level == Level::Raid5;
        return if is_raid5 { Ok(PARTIAL_PARITY) } else { Err(not_written(what)) };
    }
    if !newest.features.has(Features::BITMAP) {
        return Ok(Consistency::Resync);
    }
    let mut heads: Vec<(Bitmap, Vec<usize>)> = Vec::new();
    for given in places.iter().filter_map(|place| place.given) {
        match &all[given].bitmap {
            BitmapSeen::Found(head, _)
                if head.kind == BitmapKind::Plain && head.bits().is_some() =>
            {
                let is_alike =
                    |one: &Bitmap| (one.chunk, one.covered) == (head.chunk, head.covered);
                match heads.iter_mut().find(|(one, _)| is_alike(one)) {
                    Some((_, with)) => with.push(given),
                    None => heads.push((*head, vec![given])),
                }
            }
            BitmapSeen::Found(head, _) if head.kind == BitmapKind::Plain => {
                let chunk = head.chunk;
                let what = format!(
                    "has a bit for each {chunk} bytes, which is no power of two from 512 on"
                );
                return Err(Cannot::BitmapDamaged(given, what));
            }
            BitmapSeen::Found(head, _) => {
                let kind = head.kind.version();
                return Err(not_written(format!(
                    "its bitmap is of version {kind}, of which only 4 is"
                )));
            }
            BitmapSeen::Lost | BitmapSeen::None => {
                return Err(Cannot::Bitmap(given));
            }
        }
    }
    if heads.len() > 1 {
        heads.sort_by_key(|(_, with)| std::cmp::Reverse(with.len()));
        return Err(Cannot::BitmapsUnlike(heads));
    }
    let chunk = heads.first().map_or(0, |(head, _)| u64::from(head.chunk) / SECTOR_BYTES);
    Ok(Consistency::Bitmap { chunk: Sectors(chunk) })
}

/// What a header of the logs of all members takes.
fn log_header(
    all: &[Inspected],
    places: &[super::Place],
    consistency: Consistency,
) -> Result<Option<Sectors>, Cannot> {
    if consistency != PARTIAL_PARITY {
        return Ok(None);
    }
    let mut least = Sectors(u64::MAX);
    for given in places.iter().filter_map(|place| place.given) {
        match &all[given].partial_parity {
            Some(seen) if seen.most_partial > Sectors::ZERO => least = least.min(seen.most_partial),
            _ => {
                return Err(not_written(format!(
                    "the log of partial parity of device {} of those given has no room of its own: leave the device \
                     out, and add it as a fresh one",
                    given + 1
                )));
            }
        }
    }
    Ok(Some(least))
}

/// Up to where redundancy is consistent, or is so once the logs of partial parity are replayed. As with md they are to
/// be believed after a crash when each is whole and one of them has entries; with a member missing always, as nothing
/// else could make it so, and a log that is torn has nothing that was begun.
fn synced_to(
    with: &[Option<&Superblock>],
    newest: &Superblock,
    is_rebuilding: bool,
    all: &[Inspected],
    places: &[super::Place],
) -> Sector {
    if newest.resync > 0 || !newest.features.has_ppl() {
        return format::synced_to(newest);
    }
    let logs = || {
        let given = places.iter().filter_map(|place| place.given);
        given.filter_map(|given| all[given].partial_parity.as_ref())
    };
    let is_degraded = is_rebuilding || with.iter().any(Option::is_none);
    let is_known = logs().all(PplSeen::is_whole) && logs().any(PplSeen::is_used);
    if is_degraded || is_known { Sector::MAX } else { Sector(0) }
}

fn not_written(what: String) -> Cannot {
    Cannot::NotWritten(what)
}

/// Of an array that counts more events none is written: what raidlab writes it must take itself.
const MOST_WRITTEN: u64 = MOST_EVENTS - (1 << 32);

/// Whether this version writes such an array.
fn writable(newest: &Superblock) -> Result<(), Cannot> {
    if newest.v0.as_ref().is_some_and(|v0| v0.order == ByteOrder::Big) {
        return Err(not_written(
            "its superblocks are big-endian (mdadm --assemble --update=byteorder changes that)"
                .into(),
        ));
    }
    if newest.events > MOST_WRITTEN {
        let events = newest.events;
        return Err(not_written(format!("it counts {events} events, which is damage")));
    }
    for (feature, what) in [(Features::CLUSTERED, "it is shared by a cluster")] {
        if newest.features.has(feature) {
            return Err(not_written(what.into()));
        }
    }
    Ok(())
}

/// The device that is to replace a member, which is none of those that are out where that member is there.
fn replacement(
    all: &[Inspected],
    assembly: &mut super::Assembly,
) -> Result<Option<(usize, u16)>, Cannot> {
    let is_unknown = |out: &&mut Out| out.why == Why::Replacement && all[out.given].bad.is_none();
    let unknown = assembly.out.iter_mut().filter(is_unknown);
    unknown.for_each(|out| out.why = Why::BadBlocksUnreadable);
    let places = &assembly.places;
    let is_beside = |out: &Out| {
        let seat = out.place.and_then(|place| places.get(usize::from(place)));
        out.why == Why::Replacement && seat.is_some_and(|seat| seat.given.is_some())
    };
    let mut beside = assembly.out.iter().enumerate().filter(|(_, out)| is_beside(out));
    let Some((at, out)) = beside.next() else { return Ok(None) };
    if let Some((_, other)) = beside.next() {
        return Err(not_written(format!(
            "devices {} and {} of those given are each about to replace a member: leave one of both out",
            out.given + 1,
            other.given + 1
        )));
    }
    let out = assembly.out.remove(at);
    Ok(out.place.map(|place| (out.given, place)))
}

/// Why no list of bad blocks is written, of a member whose list is one that Linux 6.1 misreads.
fn in_units((place, one): (usize, &Option<&Superblock>)) -> Option<String> {
    let one = one.filter(|one| one.features.has(Features::BAD_BLOCKS))?;
    let shift = Some(one.bad_blocks.shift).filter(|shift| *shift > 0)?;
    Some(format!(
        "the list of bad blocks of member {place} counts in units of 2^{shift} sectors, which Linux takes for sectors: \
         it is believed, and no list is written, so that a rebuild is recorded up to what it could not have; `mdadm \
         --assemble --update=force-no-bbl` takes the list out"
    ))
}

/// The state of the array, which md's superblocks tell each in part.
fn state(
    with: &[Option<&Superblock>],
    newest: &Superblock,
    consistency: Consistency,
    all: &[Inspected],
    places: &[super::Place],
) -> Said {
    let mut rebuilding = [0; 2];
    let mut rebuilt_to = u64::MAX;
    let mut by_bitmap = true;
    for (place, one) in with.iter().enumerate() {
        let Some((one, to)) = one.and_then(|one| Some((one, one.rebuilt_to()?))) else { continue };
        rebuilding[place / 64] |= 1 << (place % 64);
        rebuilt_to = rebuilt_to.min(to);
        by_bitmap &= one.features.has(Features::RECOVERY_BITMAP);
    }
    let is_rebuilding = rebuilding != [0; 2];
    let mut since = 0;
    for given in places.iter().filter_map(|place| place.given) {
        since = since.max(match &all[given].bitmap {
            BitmapSeen::Found(head, _)
                if head.events.saturating_add(1) >= newest.events && !head.is_stale() =>
            {
                head.events_cleared
            }
            _ => newest.events,
        });
    }
    let has_bitmap = matches!(consistency, Consistency::Bitmap { .. });
    Said {
        events: newest.events,
        failed: unnamed(newest),
        rebuilding,
        clean: newest.resync > 0,
        journal: matches!(consistency, Consistency::Journal { .. }),
        by_bitmap: is_rebuilding && by_bitmap && has_bitmap,
        rebuilt_to: Sector(if is_rebuilding { rebuilt_to } else { 0 }),
        replacing: named_twice(newest),
        replaced_to: Sector(0),
        synced_to: synced_to(with, newest, is_rebuilding, all, places),
        journal_tail: 0,
        bitmap_since: since.min(newest.events),
        history: HISTORY,
        left: 1,
    }
}

/// Whether all members that were looked at have a list of bad blocks that can be added to.
pub fn keeps_bad_blocks(looked: &[Option<Looked>]) -> bool {
    looked.iter().flatten().all(|one| one.places.md().is_some_and(Kept::has_list))
}

impl Joined {
    /// What the core is told was found, of members that were looked at in their order; `block` is the largest that
    /// any of them writes together.
    pub fn found(&self, looked: &mut [Option<Looked>], block: u32, nonce: u64) -> Found {
        let journal = self.found_journal(block);
        let least = self.sectors.iter().min().copied().unwrap_or_default();
        let mut members = Vec::new();
        for (place, one) in looked.iter_mut().enumerate() {
            let Some(one) = one else {
                members.push(Default::default());
                continue;
            };
            let parameters = Parameters {
                layout: self.layout.to_string(),
                consistency: self.consistency,
                data: self.sectors.get(place).copied().unwrap_or_default(),
                least,
                log: Sectors::ZERO,
                pages: one.examined.bitmap.len() as u32,
                block,
            };
            one.examined.sectors = room(&parameters);
            // What was stopped cleanly needs nothing of its logs.
            if self.state.clean {
                one.examined.log = LogFound::default();
            }
            one.places.data = parameters.data;
            let events = self.events.get(place).copied().unwrap_or_default();
            let superblock = Said { events, ..self.state };
            let (array, device) = (self.array, place as u16);
            let carried = Carried { array, device, parameters, superblock };
            one.examined.superblock = Finding::Whole(carried);
            members.push(one.examined.clone());
        }
        Found { members, journal, nonce }
    }

    /// The same of the log device, whose journal is replayed before the array does anything: it finds nothing in it.
    fn found_journal(&self, block: u32) -> Examined {
        let (Consistency::Journal { sectors }, Some(_)) = (self.consistency, self.journal) else {
            return Examined::default();
        };
        let least = self.sectors.iter().min().copied().unwrap_or_default();
        let parameters = Parameters {
            layout: self.layout.to_string(),
            consistency: self.consistency,
            data: Sectors::ZERO,
            least,
            log: sectors,
            pages: 0,
            block,
        };
        let sectors = room(&parameters);
        let device = 2 * self.layout.members;
        // It may be one event behind the members, which are told first.
        let superblock = Said { events: self.journal_events, ..self.state };
        let carried = Carried { array: self.array, device, parameters, superblock };
        Examined {
            sectors,
            logical_block: block,
            superblock: Finding::Whole(carried),
            ..Examined::default()
        }
    }

    /// Which member it is, if any, whose bitmap has fewer bits than the array needs, by why the core did not start the
    /// array of what it was told was found.
    pub fn short_bitmap(
        &self,
        all: &[Inspected],
        found: &Found,
        error: &AssembleError,
    ) -> Option<(usize, Cannot)> {
        let AssembleError::Parameter { key: "pages of the bitmap", asked, .. } = error else {
            return None;
        };
        let needed: usize = asked.parse().ok()?;
        let is_short = |place: usize| {
            found.members.get(place).is_some_and(|member| member.bitmap.len() < needed)
        };
        let short = |(place, given): (usize, &Option<usize>)| {
            let given = given.filter(|_| is_short(place))?;
            let BitmapSeen::Found(head, _) = &all.get(given)?.bitmap else { return None };
            let what = format!("covers {} sectors, fewer than the array has", head.covered);
            Some((place, Cannot::BitmapDamaged(given, what)))
        };
        self.order.iter().enumerate().find_map(short)
    }

    /// Up to where a member that is being rebuilt has its data; all of it else.
    pub fn filled_to(&self, place: usize) -> u64 {
        let is_rebuilding = self.state.rebuilding[place / 64] >> (place % 64) & 1 == 1;
        if is_rebuilding { self.state.rebuilt_to.0 } else { u64::MAX }
    }

    /// Whether a member's list of bad blocks names something of this range of its data.
    pub fn is_listed(&self, place: usize, at: Sector, len: Sectors) -> bool {
        let ends = |at: Sector, len: Sectors| at.0.saturating_add(len.0);
        self.bad.iter().any(|(member, from, bad)| {
            member.at() == place && from.0 < ends(at, len) && at.0 < ends(*from, *bad)
        })
    }

    /// Sectors used of a member.
    pub fn sectors(&self, place: usize) -> Sectors {
        self.sectors.get(place).copied().unwrap_or_default()
    }

    /// What was given for this place is written so that records lie where the device takes them, and all of its bitmap
    /// is known.
    ///
    /// # Errors
    /// [`Cannot::NotWritten`] where they do not, [`Cannot::Bitmap`] where it is not.
    pub fn check(&self, place: usize, places: &Places) -> Result<(), Cannot> {
        let given = self.order.get(place).copied().flatten();
        if self.geom.is_some() {
            let kept = places.geom().is_some();
            return if kept {
                Ok(())
            } else {
                Err(not_written("the label of a member cannot be read".into()))
            };
        }
        match places.md() {
            Some(kept) if kept.lacks_bitmap() => Err(Cannot::Bitmap(given.unwrap_or_default())),
            Some(kept) if kept.is_aligned() => Ok(()),
            _ => Err(not_written(
                "its superblock or bitmap lies askew to the blocks of a device".into(),
            )),
        }
    }

    /// The numbers of members that are out of service and that a superblock of one in service has in service: who was
    /// given for them is out of date, or nobody. Before the journal is replayed without them they are to be told to be
    /// faulty ([`tell_failed`](super::tell_failed)): what they lack stands in it alone, and they would be believed if
    /// the power was cut before the array records that they are out. That the newest superblocks say so is not enough:
    /// who has these may be lost, too.
    pub fn untold(&self, all: &[Inspected], out: MemberBits) -> Vec<u16> {
        let is_out = |place: &u16| out[usize::from(place / 64)] >> (place % 64) & 1 == 1;
        let in_service = (0..).zip(&self.order).filter(|(place, _)| !is_out(place));
        let superblocks: Vec<_> =
            in_service.filter_map(|(_, given)| all.get((*given)?)?.superblock()).collect();
        let number = |place: u16| {
            let place = Role::Member(place);
            let of = |one: &&Superblock| one.roles.iter().position(|role| *role == place);
            superblocks.iter().find_map(of).map(|number| number as u16)
        };
        (0..self.layout.members).filter(is_out).filter_map(number).collect()
    }

    /// Numbers that spares have.
    ///
    /// There is one for each; `None` of one whose number another device got while it was not there, by the newest
    /// superblocks or as an earlier one of the spares.
    pub fn spare_numbers(&self, all: &[Inspected]) -> Vec<Option<u16>> {
        let of = |given: &usize| all.get(*given)?.superblock();
        let newest: Vec<_> = self
            .order
            .iter()
            .flatten()
            .filter_map(of)
            .filter(|one| one.events == self.state.events)
            .collect();
        let is_given = |number: u32| {
            let given =
                |one: &&Superblock| matches!(one.role_of(number), Role::Member(_) | Role::Journal);
            newest.iter().any(given)
        };
        let mut numbers: Vec<Option<u16>> = Vec::new();
        for given in &self.spares {
            let spare = of(given).filter(|one| one.role() == Role::Spare && !is_given(one.number));
            let number = spare.and_then(|one| u16::try_from(one.number).ok());
            numbers.push(number.filter(|number| !numbers.contains(&Some(*number))));
        }
        numbers
    }
}
