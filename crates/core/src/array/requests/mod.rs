//! The table of requests: what each asks for, where its payload is, what went wrong with it.

mod gather;

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::ops::{Index, IndexMut};

use super::lists::{ListBuilder, ListPool};
use super::member_set::MemberSet;
use super::setup::Setup;
use super::slab::Slab;
use crate::contract::{IoOp, Outcome, Request, RequestId, Scratch, Segment};
use crate::geometry::Geometry;
use crate::units::Sector;
use gather::Gather;

/// The longest request: 512 GiB.
const MOST_SECTORS: u64 = 1 << 30;

/// A request between acceptance and reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestState {
    pub(super) id: RequestId,
    pub(super) op: IoOp,
    pub(super) fua: bool,
    pub(super) at: u64,
    pub(super) end: u64,
    /// The next sector to plan.
    pub(super) cursor: u64,
    /// Parity levels: the next slice of rows of the stripe at the cursor.
    pub(super) slice: u32,
    /// Member I/Os and plans not yet ended.
    pub(super) pending: u32,
    pub(super) planned: bool,
    /// Something went wrong: see the slot's [`ErrorState`].
    pub(super) has_errors: bool,
    segments: u32,
    /// The segment found last and where in the request it starts.
    hint: (u32, u32),
    #[cfg(debug_assertions)]
    pub(super) answered: bool,
}

impl RequestState {
    pub(super) const fn idle() -> Self {
        Self {
            id: RequestId(0),
            op: IoOp::Flush,
            fua: false,
            at: 0,
            end: 0,
            cursor: 0,
            slice: 0,
            pending: 0,
            planned: false,
            has_errors: false,
            segments: 0,
            hint: (0, 0),
            #[cfg(debug_assertions)]
            answered: false,
        }
    }

    /// Makes what another request asks for part of this one, behind it.
    const fn take_over(&mut self, other: &Self) {
        self.end = other.end;
        self.segments += other.segments;
        self.fua |= other.fua;
    }

    pub(super) const fn segment_count(&self) -> usize {
        self.segments as usize
    }
}

/// Its name is the driver's.
impl Hash for RequestState {
    fn hash<H: Hasher>(&self, key: &mut H) {
        let Self {
            op, fua, at, end, cursor, slice, pending, planned, has_errors, segments, ..
        } = *self;
        (op, fua, at, end, cursor, slice, pending, planned, has_errors, segments).hash(key);
    }
}

/// What went wrong with a request; kept apart, since of most requests there is nothing to keep.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct ErrorState {
    pub(super) outcome: Outcome,
    /// A member I/O failed: plan the read again, without the members in `avoid`.
    pub(super) again: bool,
    pub(super) avoid: MemberSet,
    /// The first array sector that a member could not read.
    pub(super) first_bad: Option<Sector>,
    /// A write lost a copy: see that each sector still has one before answering.
    pub(super) check_copies: bool,
    /// A read goes on block by block; from here, and in the end to there.
    pub(super) blocks: Option<(u64, u64)>,
    /// Members whose errors were made good in earlier blocks.
    pub(super) recovered: MemberSet,
}

impl ErrorState {
    pub(super) const NONE: Self = Self {
        outcome: Outcome::Done,
        again: false,
        avoid: MemberSet::NONE,
        first_bad: None,
        check_copies: false,
        blocks: None,
        recovered: MemberSet::NONE,
    };
}

/// Whether overlapping requests of this kind go one after another on mirrored levels.
pub(super) const fn changes_data(op: IoOp) -> bool {
    matches!(op, IoOp::Write | IoOp::Discard | IoOp::WriteZeroes)
}

/// All requests between acceptance and reply.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    pub(super) slots: Slab<RequestState>,
    /// What went wrong with each, by slot.
    pub(super) errors: Vec<ErrorState>,
    /// The segments of each, `most_segments` to a slot.
    payload: Vec<Segment>,
    most_segments: u32,
    /// The driver is handing in a batch.
    pub(super) plugged: bool,
    /// Requests wait: plugged, or a log is being replayed.
    pub(super) holding: bool,
    /// Those that wait, in order.
    pub(super) held: VecDeque<u32>,
    gather: Gather,
}

impl Hash for Requests {
    fn hash<H: Hasher>(&self, key: &mut H) {
        let Self { slots, errors, plugged, holding, held, gather, .. } = self;
        (slots, plugged, holding, held, gather).hash(key);
        let in_trouble = slots.used().filter(|(_, request)| request.has_errors);
        in_trouble.for_each(|(slot, _)| errors[slot as usize].hash(key));
    }
}

impl Index<u32> for Requests {
    type Output = RequestState;
    #[inline]
    fn index(&self, slot: u32) -> &RequestState {
        &self.slots[slot]
    }
}

impl IndexMut<u32> for Requests {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut RequestState {
        &mut self.slots[slot]
    }
}

impl Requests {
    /// Room for so many requests of so many segments each.
    pub(super) fn new(requests: u32, most_segments: u32) -> Self {
        Self {
            slots: Slab::new(requests, RequestState::idle()),
            errors: vec![ErrorState::NONE; requests as usize],
            payload: vec![Segment::default(); (requests * most_segments) as usize],
            most_segments,
            plugged: false,
            holding: false,
            held: VecDeque::with_capacity(requests as usize),
            gather: Gather::new(requests),
        }
    }

    /// Takes a request in that is not refused; `None` when there are as many as there may be.
    #[inline]
    pub(super) fn insert(&mut self, setup: &Setup, request: &Request<'_>) -> Option<u32> {
        let (mut at, mut end) = (request.at.0, request.at.0 + request.len.0);
        if request.op == IoOp::Discard {
            (at, end) = discarded(setup, at, end);
        }
        let state = RequestState {
            id: request.id,
            op: request.op,
            fua: request.fua,
            at,
            end,
            cursor: at,
            segments: request.segments.len() as u32,
            ..RequestState::idle()
        };
        let slot = self.slots.insert(state)?;
        let first = (slot * self.most_segments) as usize;
        // Most have one; a copy of any number is a call.
        match request.segments {
            [only] => self.payload[first] = *only,
            all => self.payload[first..first + all.len()].copy_from_slice(all),
        }
        Some(slot)
    }

    /// Why a request is answered at once: it asks for nothing, or for what cannot be.
    #[inline]
    pub(super) fn refusal(setup: &Setup, request: &Request<'_>) -> Option<Outcome> {
        match request.op {
            IoOp::Flush => {
                return (request.len.0 != 0 || !request.segments.is_empty())
                    .then_some(Outcome::BadSegments);
            }
            IoOp::Discard | IoOp::WriteZeroes => return Self::refuse_range(setup, request),
            IoOp::Read | IoOp::Write => {}
        }
        let (at, len) = (request.at.0, request.len.0);
        if at.checked_add(len).is_none_or(|end| end > setup.capacity) {
            return Some(Outcome::OutOfRange);
        }
        if request.segments.len() > setup.most_segments as usize || len > MOST_SECTORS {
            return Some(Outcome::BadSegments);
        }
        let mut total = 0;
        for segment in request.segments {
            if (segment.token.0 >= Scratch::FIRST && !setup.nested) || segment.len == 0 {
                return Some(Outcome::BadSegments);
            }
            total += u64::from(segment.len);
        }
        if total != len {
            return Some(Outcome::BadSegments);
        }
        if is_misaligned(setup, at, len) {
            return Some(Outcome::Misaligned);
        }
        (len == 0).then_some(Outcome::Done)
    }

    /// As [`Self::refusal`], for requests without payload.
    fn refuse_range(setup: &Setup, request: &Request<'_>) -> Option<Outcome> {
        let (at, len) = (request.at.0, request.len.0);
        if at.checked_add(len).is_none_or(|end| end > setup.capacity) {
            return Some(Outcome::OutOfRange);
        }
        if !request.segments.is_empty() || len > MOST_SECTORS {
            return Some(Outcome::BadSegments);
        }
        if is_misaligned(setup, at, len) {
            return Some(Outcome::Misaligned);
        }
        let (from, to) = match request.op {
            IoOp::Discard => discarded(setup, at, at + len),
            _ => (at, at + len),
        };
        (from >= to).then_some(Outcome::Done)
    }

    /// What is kept of a request's errors, to add to; from now on it has some.
    pub(super) fn error_state(&mut self, slot: u32) -> &mut ErrorState {
        let errors = &mut self.errors[slot as usize];
        if !std::mem::replace(&mut self.slots[slot].has_errors, true) {
            *errors = ErrorState::NONE;
        }
        errors
    }

    /// The members a request does not read.
    #[inline]
    pub(super) fn avoided(&self, slot: u32) -> MemberSet {
        match self.slots[slot].has_errors {
            true => self.errors[slot as usize].avoid,
            false => MemberSet::NONE,
        }
    }

    /// The first segment of a request's payload.
    pub(super) fn first_segment(&self, slot: u32) -> Segment {
        self.payload[(slot * self.most_segments) as usize]
    }

    /// The whole payload of a request as a list.
    #[inline(always)]
    pub(super) fn whole_payload(&mut self, lists: &mut ListPool, slot: u32) -> ListBuilder {
        let request = &self.slots[slot];
        let mut list = ListBuilder::new();
        let first = (slot * self.most_segments) as usize;
        let segment = self.payload[first];
        // A read that goes on block by block is shorter than its payload.
        let len = request.end - request.at;
        if request.segments == 1 && u64::from(segment.len) == len {
            list.push(lists, segment);
        } else {
            self.carve(lists, slot, (0, len), &mut list);
        }
        list
    }

    /// Adds `len` sectors of the request's payload from `offset` on to a list.
    #[inline]
    pub(super) fn carve(
        &mut self,
        lists: &mut ListPool,
        slot: u32,
        (offset, len): (u64, u64),
        list: &mut ListBuilder,
    ) {
        let first = (slot * self.most_segments) as usize;
        let request = &mut self.slots[slot];
        let segments = &self.payload[first..first + request.segments as usize];
        let (mut offset, mut left) = (offset as u32, len as u32);
        let (mut index, mut start) = request.hint;
        if start > offset {
            (index, start) = (0, 0);
        }
        while left > 0 {
            let segment = segments[index as usize];
            if start + segment.len <= offset {
                start += segment.len;
                index += 1;
                continue;
            }
            let skip = offset - start;
            let take = (segment.len - skip).min(left);
            let piece = Segment { token: segment.token, offset: segment.offset + skip, len: take };
            list.push(lists, piece);
            offset += take;
            left -= take;
        }
        request.hint = (index, start);
    }
}

#[inline]
fn is_misaligned(setup: &Setup, at: u64, len: u64) -> bool {
    // A power of two but for raid3, where it is one times the number of data members: that too.
    (at | len) & u64::from(setup.logical_block - 1) != 0
}

/// What of a range is discarded: on parity levels whole stripes only, so that no parity has to
/// be computed for data that nobody wants; on others all of it.
fn discarded(setup: &Setup, at: u64, end: u64) -> (u64, u64) {
    match &setup.geometry {
        Geometry::Parity(parity) => {
            let stripe = parity.stripe_sectors();
            (at.next_multiple_of(stripe), end / stripe * stripe)
        }
        _ => (at, end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::settings::Consistency;
    use crate::array::setup::tests::setup;
    use crate::contract::Token;
    use crate::layout::{Layout, Level};
    use crate::units::Sectors;

    /// A raid5 of four: stripes of 192 sectors.
    fn requests() -> (Setup, Requests) {
        let layout = Layout::new(Level::Raid5, 4).with_chunk(Sectors(64));
        (setup(&layout, Consistency::None), Requests::new(8, 4))
    }

    fn request(op: IoOp, at: u64, segments: &[Segment]) -> Request<'_> {
        let len = segments.iter().map(|segment| u64::from(segment.len)).sum();
        Request { id: RequestId(at), op, at: Sector(at), len: Sectors(len), segments, fua: false }
    }

    const fn segment(token: u32, len: u32) -> Segment {
        Segment { token: Token(token), offset: 0, len }
    }

    #[test]
    fn payload_is_cut_where_it_is_asked_for() {
        let (setup, mut requests) = requests();
        let mut lists = ListPool::new(8);
        let segments = [segment(1, 8), segment(2, 8)];
        let slot = requests.insert(&setup, &request(IoOp::Write, 0, &segments)).expect("room");
        let mut list = ListBuilder::new();
        requests.carve(&mut lists, slot, (6, 4), &mut list);
        let list = list.finish();
        let all: Vec<_> = lists.iter(&list).map(|one| (one.token.0, one.offset, one.len)).collect();
        assert_eq!(all, [(1, 6, 2), (2, 0, 2)]);
        let whole = requests.whole_payload(&mut lists, slot);
        assert_eq!(whole.len(), 16);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let (setup, _) = requests();
        let refusal =
            |op, at, segments: &[Segment]| Requests::refusal(&setup, &request(op, at, segments));
        assert_eq!(refusal(IoOp::Read, 0, &[segment(1, 8)]), None);
        assert_eq!(
            refusal(IoOp::Read, setup.capacity, &[segment(1, 8)]),
            Some(Outcome::OutOfRange)
        );
        assert_eq!(refusal(IoOp::Read, 0, &[segment(1, 1); 5]), Some(Outcome::BadSegments));
        let scratch = segment(Scratch::FIRST, 8);
        assert_eq!(refusal(IoOp::Write, 0, &[scratch]), Some(Outcome::BadSegments));
        assert_eq!(refusal(IoOp::Write, 0, &[]), Some(Outcome::Done), "nothing to do");
    }

    #[test]
    fn neighbouring_writes_of_a_stripe_are_one() {
        let (setup, mut requests) = requests();
        let one = [segment(1, 64)];
        // The third is of the next stripe, the fourth overlaps the last.
        for (op, at) in [
            (IoOp::Write, 64),
            (IoOp::Write, 0),
            (IoOp::Write, 192),
            (IoOp::Write, 400),
            (IoOp::Read, 410),
        ] {
            let slot = requests.insert(&setup, &request(op, at, &one)).expect("room");
            requests.held.push_back(slot);
        }
        requests.gather_held(&setup);
        assert_eq!(requests.held, [1, 2, 3, 4]);
        assert_eq!((requests[1].at, requests[1].end), (0, 128));
        assert_eq!(requests.take_joined(1), Some(RequestId(64)));
        assert_eq!(requests.take_joined(1), None);
        assert_eq!(requests.take_joined(2), None);
        assert_eq!(requests.slots.available(), 8 - 4);
    }

    #[test]
    fn any_part_of_a_payload_is_had_in_any_order() {
        let (setup, mut requests) = requests();
        let mut lists = ListPool::new(64);
        let segments = [segment(1, 5), segment(2, 1), segment(3, 8), segment(4, 2)];
        requests.insert(&setup, &request(IoOp::Read, 0, &[segment(9, 8)])).expect("room");
        let slot = requests.insert(&setup, &request(IoOp::Write, 0, &segments)).expect("room");
        let flat: Vec<_> = segments
            .iter()
            .flat_map(|one| (0..one.len).map(move |offset| (one.token, offset)))
            .collect();
        // Onward, as plans go, and back to the start.
        for from in (0..16).chain((0..16).rev()).chain([3, 3, 14, 0]) {
            for len in 1..=16 - from {
                let mut list = ListBuilder::new();
                requests.carve(&mut lists, slot, (from as u64, len as u64), &mut list);
                let list = list.finish();
                let found: Vec<_> = lists
                    .iter(&list)
                    .flat_map(|one| (0..one.len).map(move |at| (one.token, one.offset + at)))
                    .collect();
                assert_eq!(found, flat[from..from + len], "{len} from {from}");
                lists.release(&list);
            }
        }
        assert_eq!((requests.first_segment(slot).token, lists.available()), (Token(1), 64));
        requests[slot].end = 7;
        let part = requests.whole_payload(&mut lists, slot).finish();
        assert_eq!(lists.iter(&part).map(|one| one.len).collect::<Vec<_>>(), [5, 1, 1]);
        let (at, one) = (40, [segment(7, 8)]);
        let slot = requests.insert(&setup, &request(IoOp::Read, at, &one)).expect("room");
        assert_eq!(requests.whole_payload(&mut lists, slot).finish().first, one[0]);
        (requests[slot].at, requests[slot].end) = (at + 2, at + 5);
        let part = requests.whole_payload(&mut lists, slot).finish();
        assert_eq!(part.first, Segment { len: 3, ..one[0] });
    }

    #[test]
    fn limits_are_exact() {
        let (mut setup, _) = requests();
        setup.logical_block = 8;
        let end = setup.capacity;
        let len =
            |len: u64, segments| Request { len: Sectors(len), ..request(IoOp::Read, 0, segments) };
        let of =
            |op, at, len| Request { op, at: Sector(at), len: Sectors(len), ..request(op, at, &[]) };
        let block = [segment(1, 8)];
        let (short, halves) = ([segment(1, 4)], [segment(1, 4), segment(2, 4)]);
        let (nothing, most) = ([segment(1, 8), segment(2, 0)], [segment(1, 2); 4]);
        let (last, first) = ([segment(Scratch::FIRST - 1, 8)], [segment(Scratch::FIRST, 8)]);
        let long = [segment(1, 1 << 30), segment(1, 8)];
        let (discard, zeroes) = (IoOp::Discard, IoOp::WriteZeroes);
        let (done, beyond) = (Some(Outcome::Done), Some(Outcome::OutOfRange));
        let (bad, misaligned) = (Some(Outcome::BadSegments), Some(Outcome::Misaligned));
        let cases = [
            (request(IoOp::Read, end - 8, &block), None),
            (request(IoOp::Read, end - 7, &block), beyond),
            (request(IoOp::Read, u64::MAX, &block), beyond),
            (request(IoOp::Read, 4, &block), misaligned),
            (request(IoOp::Write, 0, &short), misaligned),
            (request(IoOp::Write, 0, &halves), None),
            (request(IoOp::Write, 0, &nothing), bad),
            (request(IoOp::Write, 0, &last), None),
            (request(IoOp::Write, 0, &most), None),
            (len(9, &block), bad),
            (len(7, &block), bad),
            (of(IoOp::Flush, 0, 0), None),
            (of(IoOp::Flush, 0, 8), bad),
            (request(IoOp::Flush, 0, &block), bad),
            (of(zeroes, 0, 0), done),
            (of(zeroes, 8, 8), None),
            (of(zeroes, 4, 8), misaligned),
            (of(zeroes, end - 8, 8), None),
            (of(zeroes, end - 8, 16), beyond),
            (of(zeroes, 8, u64::MAX), beyond),
            (request(zeroes, 0, &block), bad),
            // Of a discard whole stripes count.
            (of(discard, 0, 192), None),
            (of(discard, 8, 192), done),
            (of(discard, 8, 376), None),
            (of(discard, 0, 184), done),
        ];
        for (request, expected) in cases {
            assert_eq!(Requests::refusal(&setup, &request), expected, "{request:?}");
        }
        setup.capacity = u64::MAX;
        for (len, expected) in [(MOST_SECTORS, None), (MOST_SECTORS + 8, bad)] {
            assert_eq!(Requests::refusal(&setup, &of(zeroes, 0, len)), expected);
            let request = Request { len: Sectors(len), ..request(IoOp::Read, 0, &long) };
            assert_eq!(Requests::refusal(&setup, &request), bad, "{len}");
        }
        setup.nested = true;
        assert_eq!(Requests::refusal(&setup, &request(IoOp::Write, 0, &first)), None);
    }

    #[test]
    fn what_is_discarded_is_whole_stripes() {
        let (setup, mut requests) = requests();
        let discard = Request { len: Sectors(400), ..request(IoOp::Discard, 100, &[]) };
        let slot = requests.insert(&setup, &discard).expect("room");
        assert_eq!((requests[slot].at, requests[slot].end, requests[slot].cursor), (192, 384, 192));
        let zeroes =
            Request { len: Sectors(400), fua: true, ..request(IoOp::WriteZeroes, 100, &[]) };
        let slot = requests.insert(&setup, &zeroes).expect("room");
        assert_eq!((requests[slot].at, requests[slot].end, requests[slot].fua), (100, 500, true));
        let changes = [IoOp::Write, IoOp::Discard, IoOp::WriteZeroes, IoOp::Read, IoOp::Flush]
            .map(changes_data);
        assert_eq!(changes, [true, true, true, false, false]);
    }

    #[test]
    fn trouble_is_kept_from_the_first_on() {
        let (setup, mut requests) = requests();
        let slot =
            requests.insert(&setup, &request(IoOp::Read, 0, &[segment(1, 8)])).expect("room");
        assert!(requests.avoided(slot).is_empty());
        requests.error_state(slot).avoid.insert(crate::units::MemberIndex(2));
        requests.error_state(slot).again = true;
        assert_eq!(requests.avoided(slot).count(), 1);
        assert!(requests[slot].has_errors && requests.errors[slot as usize].again);
        requests.slots.remove(slot);
        let slot =
            requests.insert(&setup, &request(IoOp::Read, 0, &[segment(1, 8)])).expect("room");
        assert!(requests.avoided(slot).is_empty(), "that was another's");
        assert!(!requests.error_state(slot).again);
    }

    #[test]
    fn writes_are_joined_where_all_of_them_fits() {
        let join = |writes: &[(u64, &[Segment])]| {
            let (setup, mut requests) = requests();
            for (at, segments) in writes {
                let slot =
                    requests.insert(&setup, &request(IoOp::Write, *at, segments)).expect("room");
                requests.held.push_back(slot);
            }
            requests.gather_held(&setup);
            let held: Vec<u32> = requests.held.iter().copied().collect();
            held.iter().map(|slot| (requests[*slot].at, requests[*slot].end)).collect::<Vec<_>>()
        };
        let (one, two) = ([segment(1, 8)], [segment(2, 4), segment(3, 4)]);
        assert_eq!(join(&[(0, &one)]), [(0, 8)]);
        assert_eq!(join(&[(0, &one), (8, &one), (16, &two)]), [(0, 24)]);
        assert_eq!(
            join(&[(0, &two), (8, &two), (16, &one)]),
            [(0, 16), (16, 24)],
            "of four segments"
        );
        assert_eq!(join(&[(0, &one), (9, &one)]), [(0, 8), (9, 17)]);
        assert_eq!(
            join(&[(0, &one), (4, &one), (12, &one)]),
            [(0, 8), (4, 12), (12, 20)],
            "overlaps"
        );
        assert_eq!(join(&[(184, &one), (192, &one)]), [(184, 192), (192, 200)], "two stripes");
        assert_eq!(join(&[(8, &one), (16, &one), (0, &two)]), [(0, 24)], "by address");
        // What overlaps one further on keeps that from being joined, and not what follows.
        let long = [segment(1, 32)];
        assert_eq!(join(&[(0, &long), (8, &one), (16, &one), (40, &one), (48, &one)]).len(), 4);
    }
}
