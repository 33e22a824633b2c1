//! A bounded cache of stripes: what was read and written of their rows stays in memory, so that a
//! later write, or a read of what is lost, reads less from the members.
//!
//! Fault model: as [`super`]. The cache is memory of the driver and is gone with a crash.
//! Why it is safe: a place holds for each role of a slice of a stripe one range of rows that is what
//! the role's member holds, or would hold if it were in service. Only a plan that has the rows
//! locked looks at them or changes them, and at its end what it wrote is forgotten unless all of its
//! I/O went well. When a member fails, or background work has the rows, they are
//! forgotten too; so the cache never knows more than was answered well. A plan that is under way when
//! a member fails may keep what it has all the same: its rows are locked, so what it read or made is
//! what the row holds whoever holds it, and parity of members out of service is not kept.
//! Tests: `tests/stripes.rs::a_cache_changes_nothing_but_the_number_of_reads`.
//!
//! Places are found in sets of eight by the number of their slice; in a set the one not used for the
//! longest time makes room. With the setting 0 there are none, and plans never ask.

use std::hash::{Hash, Hasher};

use super::super::lists::NIL;
use super::super::member_set::MemberSet;
use super::super::roles::Roles;
use super::super::setup::Setup;
use super::{Band, Memory, Method, StripePlan, Task};
use crate::bugs::Bug;
use crate::contract::Segment;

/// Places in a set.
const WAYS: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Place {
    /// The slice plus one; 0 for none.
    name: u64,
    /// When it was used last.
    used: u64,
    /// Plans that work with it.
    pins: u32,
}

/// The places of a cache.
#[derive(Clone, Debug)]
pub(in crate::array) struct Cache {
    places: Vec<Place>,
    /// For each place and role the rows it holds, from the start of the slice.
    rows: Vec<(u32, u32)>,
    roles: usize,
    uses: u64,
}

/// When places were used counts by their order alone.
impl Hash for Cache {
    fn hash<H: Hasher>(&self, key: &mut H) {
        self.rows.hash(key);
        for Place { name, used, pins } in &self.places {
            let older = self.places.iter().filter(|other| other.used < *used).count();
            (name, older, pins).hash(key);
        }
    }
}

impl Cache {
    pub(in crate::array) fn new(places: u32, roles: u16) -> Self {
        let idle = Place { name: 0, used: 0, pins: 0 };
        Self {
            places: vec![idle; places as usize],
            rows: vec![(0, 0); places as usize * usize::from(roles)],
            roles: usize::from(roles),
            uses: 0,
        }
    }

    pub(in crate::array) fn capacity(&self) -> u32 {
        self.places.len() as u32
    }

    fn set_of(&self, slice: u64) -> std::ops::Range<usize> {
        let sets = self.places.len().div_ceil(WAYS);
        let set = (slice % sets as u64) as usize;
        let start = |set: usize| set * self.places.len() / sets;
        start(set)..start(set + 1)
    }

    fn find(&self, slice: u64) -> Option<u32> {
        let mut set = self.set_of(slice);
        set.find(|place| self.places[*place].name == slice + 1).map(|place| place as u32)
    }

    /// The place of a slice, found or made; pinned.
    fn pin_slice(&mut self, slice: u64) -> Option<u32> {
        let found = match self.find(slice) {
            Some(place) => place,
            None => {
                let free = self.set_of(slice).filter(|place| self.places[*place].pins == 0);
                let oldest = free.min_by_key(|place| self.places[*place].used)?;
                self.places[oldest].name = slice + 1;
                self.forget(oldest as u32, (0, u32::MAX), 0..self.roles);
                oldest as u32
            }
        };
        self.uses += 1;
        let place = &mut self.places[found as usize];
        place.used = self.uses;
        place.pins += 1;
        Some(found)
    }

    fn rows_of(&mut self, place: u32, role: usize) -> &mut (u32, u32) {
        &mut self.rows[place as usize * self.roles + role]
    }

    fn holds(&self, place: u32, role: u16, rows: (u32, u32)) -> bool {
        let held = self.rows[place as usize * self.roles + usize::from(role)];
        held.0 <= rows.0 && rows.1 <= held.1
    }

    /// Forgets rows of some roles; of what is left on both sides the longer part is kept.
    fn forget(&mut self, place: u32, rows: (u32, u32), roles: std::ops::Range<usize>) {
        for role in roles {
            let held = self.rows_of(place, role);
            let before = (held.0, held.1.min(rows.0));
            let after = (held.0.max(rows.1), held.1);
            let len = |rows: (u32, u32)| rows.1.saturating_sub(rows.0);
            *held = if len(before) >= len(after) { before } else { after };
            if held.0 >= held.1 {
                *held = (0, 0);
            }
        }
    }

    /// Keeps rows of a role: with those held where they touch, else instead of them.
    fn keep(&mut self, place: u32, role: u16, rows: (u32, u32)) {
        let held = self.rows_of(place, usize::from(role));
        let touches = held.0 <= rows.1 && rows.0 <= held.1;
        *held = if touches { (held.0.min(rows.0), held.1.max(rows.1)) } else { rows };
    }

    /// Forgets everything.
    pub(in crate::array) fn clear(&mut self) {
        self.rows.fill((0, 0));
    }
}

/// Where a role's rows of a band lie in memory when the plan is done with them, if they are what the
/// member holds or is to hold.
fn kept_memory(band: &Band, role: u16, data: u16, live: u8, task: Task) -> Option<Memory> {
    let covered = role < data && band.covers(role);
    let parity = role.checked_sub(data).map(|parity| 1u8 << parity);
    match (task, band.method, parity) {
        (Task::Zero, ..) => None,
        (Task::Read, Method::Recover, Some(parity)) => {
            (band.recovery.parities & parity != 0).then_some(Memory::Scratch)
        }
        (Task::Read, Method::Recover | Method::Direct, None) if covered => Some(Memory::Payload),
        (Task::Read, Method::Recover, None) => Some(Memory::Scratch),
        (Task::Read, ..) => None,
        (_, _, Some(parity)) => (band.live & live & parity != 0).then_some(Memory::Scratch),
        (_, _, None) if covered => Some(Memory::Payload),
        (_, Method::ReconstructWrite | Method::RecoverWrite, None) => Some(Memory::Scratch),
        _ => None,
    }
}

/// The number of the slice of a stripe that has a row.
fn slice_of(setup: &Setup, stripe: u64, row: u64) -> u64 {
    let chunk = setup.parity().chunk().0;
    stripe * chunk.div_ceil(setup.plan_rows) + row / setup.plan_rows
}

/// Rows of a stripe's chunks, counted from the start of their slice.
fn rows_in_slice(setup: &Setup, rows: (u64, u64)) -> (u32, u32) {
    let start = rows.0 / setup.plan_rows * setup.plan_rows;
    ((rows.0 - start) as u32, (rows.1 - start) as u32)
}

/// What plans and background work do with the cache.
impl Cache {
    /// Whether there is any place.
    #[inline]
    pub(in crate::array) fn is_used(&self) -> bool {
        !self.places.is_empty()
    }

    /// The place of a plan's slice, or [`NIL`] when there is none for it.
    #[inline]
    pub(in crate::array) fn pin(&mut self, setup: &Setup, plan: &StripePlan) -> u32 {
        if !self.is_used() {
            return NIL;
        }
        self.pin_slice(slice_of(setup, plan.stripe, plan.rows.0)).unwrap_or(NIL)
    }

    /// The roles of which the cache has all rows of a band, as a set.
    pub(in crate::array) fn cached_roles(
        &self,
        setup: &Setup,
        plan: &StripePlan,
        band: &Band,
    ) -> Roles {
        if plan.cache == NIL {
            return Roles::NONE;
        }
        let rows = rows_in_slice(setup, (band.from, band.to));
        (0..setup.roles()).filter(|role| self.holds(plan.cache, *role, rows)).collect()
    }

    /// Where the cache has, or is to have, a role's rows of a band.
    pub(in crate::array) fn segment(
        &self,
        setup: &Setup,
        plan: &StripePlan,
        role: u16,
        band: &Band,
    ) -> Segment {
        let rows = rows_in_slice(setup, (band.from, band.to));
        let token = setup.cache_token(plan.cache);
        let offset = (u64::from(role) * setup.plan_rows) as u32 + rows.0;
        Segment { token, offset, len: rows.1 - rows.0 }
    }

    /// Where a plan has a role's rows of a band that the cache keeps, if it keeps them; with these members failed.
    pub(in crate::array) fn memory_kept(
        &self,
        setup: &Setup,
        failed: MemberSet,
        plan: &StripePlan,
        band: &Band,
        role: u16,
    ) -> Option<Memory> {
        if self.keeps_old(setup, plan, band, role) {
            return None;
        }
        let live = setup.parities_without(plan.stripe, failed);
        kept_memory(band, role, setup.data_chunks, live, plan.task)
    }

    /// The seeded bug: parity that is known stays as it was.
    fn keeps_old(&self, setup: &Setup, plan: &StripePlan, band: &Band, role: u16) -> bool {
        role >= setup.data_chunks
            && setup.has_bug(Bug::CacheNotInvalidated)
            && self.cached_roles(setup, plan, band).contains(role)
    }

    /// A plan has ended: its place knows what was stored, if all went `well`, and of what was written
    /// nothing else.
    #[inline]
    pub(in crate::array) fn unpin(
        &mut self,
        setup: &Setup,
        failed: MemberSet,
        plan: &StripePlan,
        well: bool,
    ) {
        if self.is_used() {
            self.plan_ended(setup, failed, plan, well);
        }
    }

    fn plan_ended(&mut self, setup: &Setup, failed: MemberSet, plan: &StripePlan, well: bool) {
        let Some(place) = self.find(slice_of(setup, plan.stripe, plan.rows.0)) else { return };
        let pinned = plan.cache != NIL;
        if pinned {
            self.places[place as usize].pins -= 1;
        }
        let known = well && pinned;
        for band in plan.bands() {
            let rows = rows_in_slice(setup, (band.from, band.to));
            for role in 0..setup.roles() {
                let written = plan.task != Task::Read
                    && (role >= setup.data_chunks || band.covers(role))
                    && !self.keeps_old(setup, plan, band, role);
                if known && self.memory_kept(setup, failed, plan, band, role).is_some() {
                    self.keep(place, role, rows);
                } else if written {
                    self.forget(place, rows, usize::from(role)..usize::from(role) + 1);
                }
            }
        }
    }

    /// Background work is about to change these rows of the members.
    pub(in crate::array) fn forget_rows(&mut self, setup: &Setup, from: u64, to: u64) {
        if !self.is_used() {
            return;
        }
        let chunk = setup.parity().chunk().0;
        let mut at = from;
        while at < to {
            let (stripe, row) = (at / chunk, at % chunk);
            let end = ((row / setup.plan_rows + 1) * setup.plan_rows).min(chunk).min(row + to - at);
            if let Some(place) = self.find(slice_of(setup, stripe, row)) {
                let rows = rows_in_slice(setup, (row, end));
                self.forget(place, rows, 0..self.roles);
            }
            at += end - row;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::settings::Consistency;
    use crate::array::setup::tests::setup;
    use crate::layout::{Layout, Level};
    use crate::units::Sectors;

    const NONE: MemberSet = MemberSet::NONE;

    fn raid5() -> Setup {
        let layout = Layout::new(Level::Raid5, 4).with_chunk(Sectors(64));
        setup(&layout, Consistency::None)
    }

    /// A plan that modifies these rows of one chunk of a stripe.
    fn modify(stripe: u64, chunk: u16, rows: (u64, u64)) -> StripePlan {
        let mut plan =
            StripePlan { stripe, rows, band_count: 1, task: Task::Write, ..StripePlan::idle() };
        plan.bands[0] = Band {
            from: rows.0,
            to: rows.1,
            first: chunk,
            last: chunk,
            method: Method::ReadModifyWrite,
            live: 1,
            ..Band::default()
        };
        plan
    }

    /// Carries a plan out; the roles that were known when it began.
    fn run(cache: &mut Cache, setup: &Setup, mut plan: StripePlan, well: bool) -> u64 {
        plan.cache = cache.pin(setup, &plan);
        let known = cache.cached_roles(setup, &plan, &plan.bands[0]);
        cache.unpin(setup, NONE, &plan, well);
        known.words()[0]
    }

    #[test]
    fn what_a_plan_wrote_is_known_to_the_next() {
        let setup = raid5();
        let mut cache = Cache::new(8, setup.roles());
        assert_eq!(run(&mut cache, &setup, modify(0, 1, (0, 16)), true), 0);
        assert_eq!(run(&mut cache, &setup, modify(0, 1, (0, 16)), true), 0b1010, "it and P");
        assert_eq!(run(&mut cache, &setup, modify(0, 1, (8, 24)), true), 0, "not all of them");
        assert_eq!(run(&mut cache, &setup, modify(0, 1, (0, 24)), true), 0b1010, "joined");
        assert_eq!(run(&mut cache, &setup, modify(1, 1, (0, 16)), true), 0, "another stripe");
    }

    #[test]
    fn a_plan_that_failed_leaves_nothing_of_what_it_wrote() {
        let setup = raid5();
        let mut cache = Cache::new(8, setup.roles());
        run(&mut cache, &setup, modify(0, 0, (0, 16)), true);
        run(&mut cache, &setup, modify(0, 1, (0, 16)), true);
        assert_eq!(run(&mut cache, &setup, modify(0, 1, (0, 16)), false), 0b1011);
        assert_eq!(run(&mut cache, &setup, modify(0, 1, (0, 16)), true), 0b1, "the other chunk");
    }

    #[test]
    fn background_work_and_failures_are_forgotten_for() {
        let setup = raid5();
        let mut cache = Cache::new(8, setup.roles());
        run(&mut cache, &setup, modify(1, 0, (0, 16)), true);
        cache.forget_rows(&setup, 64 + 4, 64 + 8);
        assert_eq!(run(&mut cache, &setup, modify(1, 0, (0, 4)), true), 0, "the shorter part");
        run(&mut cache, &setup, modify(1, 0, (0, 16)), true);
        cache.clear();
        assert_eq!(run(&mut cache, &setup, modify(1, 0, (0, 16)), true), 0);
    }

    #[test]
    fn the_place_used_longest_ago_makes_room_unless_a_plan_has_it() {
        let setup = raid5();
        let mut cache = Cache::new(2, setup.roles());
        let mut held = modify(0, 0, (0, 8));
        held.cache = cache.pin(&setup, &held);
        run(&mut cache, &setup, modify(1, 0, (0, 8)), true);
        run(&mut cache, &setup, modify(2, 0, (0, 8)), true);
        assert_eq!(run(&mut cache, &setup, modify(1, 0, (0, 8)), true), 0, "it made room");
        cache.unpin(&setup, NONE, &held, true);
        assert_ne!(run(&mut cache, &setup, modify(0, 0, (0, 8)), true), 0, "it was held");
        let mut off = Cache::new(0, setup.roles());
        assert_eq!(off.pin(&setup, &held), NIL);
    }

    #[test]
    fn what_is_kept_is_what_members_hold_or_are_to_hold() {
        use Memory::{Payload, Scratch};
        use Method::{
            DataOnly, Direct, FullStripe, ReadModifyWrite, ReconstructWrite, Recover, RecoverWrite,
        };
        // Chunk 1 of two is covered; P is in service, Q is not any more.
        let kept = |task, method, parities| {
            let mut band = Band { first: 1, last: 1, method, live: 0b11, ..Band::default() };
            band.recovery.parities = parities;
            [0, 1, 2, 3].map(|role| kept_memory(&band, role, 2, 0b01, task))
        };
        let (payload, scratch) = (Some(Payload), Some(Scratch));
        assert_eq!(kept(Task::Zero, FullStripe, 0), [None; 4]);
        assert_eq!(kept(Task::Read, Direct, 0), [None, payload, None, None]);
        assert_eq!(kept(Task::Read, Recover, 0b01), [scratch, payload, scratch, None]);
        assert_eq!(kept(Task::Read, Recover, 0b10), [scratch, payload, None, scratch]);
        for method in [ReadModifyWrite, FullStripe, DataOnly] {
            assert_eq!(kept(Task::Write, method, 0), [None, payload, scratch, None], "{method:?}");
        }
        for method in [ReconstructWrite, RecoverWrite] {
            assert_eq!(
                kept(Task::Write, method, 0),
                [scratch, payload, scratch, None],
                "{method:?}"
            );
        }
        let band = Band { first: 1, last: 1, live: 0, ..Band::default() };
        assert_eq!(kept_memory(&band, 2, 2, 0b01, Task::Write), None, "it was not made");
    }

    #[test]
    fn rows_are_forgotten_in_every_slice_they_touch() {
        let mut setup = raid5();
        setup.plan_rows = 16;
        // Four slices a chunk, eight in two stripes.
        for (from, to) in [(0, 128), (16, 32), (15, 17), (60, 68), (64, 65), (127, 128), (40, 40)] {
            let mut cache = Cache::new(64, setup.roles());
            for slice in 0..8 {
                let row = slice % 4 * 16;
                run(&mut cache, &setup, modify(slice / 4, 1, (row, row + 16)), true);
            }
            cache.forget_rows(&setup, from, to);
            for slice in 0..8 {
                let (start, row) = (slice * 16, slice % 4 * 16);
                let mut plan = modify(slice / 4, 1, (row, row + 16));
                plan.cache = cache.pin(&setup, &plan);
                let known = !cache.cached_roles(&setup, &plan, &plan.bands[0]).is_empty();
                let touched = from < to && from < start + 16 && start < to;
                assert_eq!(known, !touched, "{from}..{to}, slice {slice}");
            }
        }
        assert_eq!(slice_of(&setup, 3, 33), 3 * 4 + 2);
        assert_eq!(rows_in_slice(&setup, (35, 48)), (3, 16));
        setup.plan_rows = 24;
        assert_eq!(slice_of(&setup, 3, 48), 3 * 3 + 2, "the last slice of a chunk is shorter");
    }

    #[test]
    fn of_what_is_left_of_a_range_the_longer_side_is_kept() {
        let mut cache = Cache::new(1, 2);
        for (rows, left) in [
            ((0, 4), (4, 16)),
            ((12, 16), (0, 12)),
            ((6, 9), (9, 16)),
            ((7, 10), (0, 7)),
            ((6, 10), (0, 6)),
            ((0, 16), (0, 0)),
            ((16, 20), (0, 16)),
        ] {
            *cache.rows_of(0, 1) = (0, 16);
            *cache.rows_of(0, 0) = (0, 16);
            cache.forget(0, rows, 1..2);
            assert_eq!((*cache.rows_of(0, 0), *cache.rows_of(0, 1)), ((0, 16), left), "{rows:?}");
        }
        for (rows, kept) in
            [((8, 12), (4, 12)), ((0, 4), (0, 8)), ((9, 12), (9, 12)), ((0, 3), (0, 3))]
        {
            *cache.rows_of(0, 1) = (4, 8);
            cache.keep(0, 1, rows);
            assert_eq!(*cache.rows_of(0, 1), kept, "{rows:?}");
        }
        *cache.rows_of(0, 1) = (4, 8);
        for (rows, held) in [((4, 8), true), ((5, 7), true), ((3, 8), false), ((4, 9), false)] {
            assert_eq!(cache.holds(0, 1, rows), held, "{rows:?}");
        }
    }

    #[test]
    fn places_are_dealt_out_in_sets() {
        let cache = Cache::new(20, 1);
        let sets: Vec<_> = (0..4).map(|slice| cache.set_of(slice)).collect();
        assert_eq!(sets, [0..6, 6..13, 13..20, 0..6]);
        assert_eq!((cache.capacity(), cache.is_used()), (20, true));
        let setup = raid5();
        let mut plan = modify(0, 0, (8, 24));
        plan.cache = 3;
        let segment = cache.segment(&setup, &plan, 2, &plan.bands[0]);
        assert_eq!(
            (segment.token, segment.offset, segment.len),
            (setup.cache_token(3), 2 * 64 + 8, 16)
        );
    }
}
