//! Segment lists in a slab: built at planning, read by the driver, freed with their I/O or job.

use crate::contract::{Segment, SegmentList};

/// No node.
pub(super) const NIL: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    segment: Segment,
    next: u32,
    /// How many nodes it counts as.
    weight: u32,
}

/// A fixed number of list nodes.
#[derive(Clone, Debug)]
pub(super) struct ListPool {
    nodes: Vec<Node>,
    free: u32,
    available: usize,
    /// In the upper bits of every list's first node: which array's lists these are, in a stack.
    tag: u32,
}

/// The bits of a node's number; those above hold the tag.
const NODE: u32 = (1 << TAG_SHIFT) - 1;
/// Where in a number the tag of an array starts.
pub(crate) const TAG_SHIFT: u32 = 24;

impl ListPool {
    pub(super) fn new(capacity: usize) -> Self {
        let nodes = (0..capacity)
            .map(|i| Node {
                segment: Segment::default(),
                next: if i + 1 < capacity { i as u32 + 1 } else { NIL },
                weight: 1,
            })
            .collect();
        Self { nodes, free: if capacity > 0 { 0 } else { NIL }, available: capacity, tag: 0 }
    }

    /// Marks the lists made from now on as array `array`'s.
    pub(super) fn set_tag(&mut self, array: u32) {
        self.tag = array << TAG_SHIFT;
    }

    /// Nodes left.
    pub(super) fn available(&self) -> usize {
        self.available
    }

    fn take(&mut self, segment: Segment, weight: u32) -> u32 {
        let index = self.free;
        assert!(index != NIL, "room is checked before a list is built");
        self.free = self.nodes[index as usize].next;
        self.nodes[index as usize] = Node { segment, next: NIL, weight };
        self.available -= weight as usize;
        index
    }

    /// Gives a list's nodes back.
    #[inline]
    pub(super) fn release(&mut self, list: &SegmentList) {
        let mut index = number(list.rest);
        while index != NIL {
            let node = &mut self.nodes[index as usize];
            let next = std::mem::replace(&mut node.next, self.free);
            self.free = index;
            self.available += node.weight as usize;
            index = next;
        }
    }

    /// The segments of a list, in order.
    #[inline]
    pub(super) fn iter(&self, list: &SegmentList) -> Segments<'_> {
        Segments {
            pool: self,
            now: (list.first.len > 0).then_some(list.first),
            next: number(list.rest),
        }
    }
}

/// The node that a list's `rest` names, without the tag.
#[inline]
const fn number(rest: u32) -> u32 {
    if rest == NIL { NIL } else { rest & NODE }
}

/// The array in a stack that a list belongs to; `None` for lists without nodes, which need none.
pub(crate) fn tag_of(list: &SegmentList) -> Option<usize> {
    (list.rest != NIL).then_some((list.rest >> TAG_SHIFT) as usize)
}

/// The segments of a list, in order.
#[derive(Clone, Debug)]
pub struct Segments<'a> {
    pool: &'a ListPool,
    now: Option<Segment>,
    next: u32,
}

impl Iterator for Segments<'_> {
    type Item = Segment;

    #[inline]
    fn next(&mut self) -> Option<Segment> {
        let now = self.now?;
        self.now = if self.next == NIL {
            None
        } else {
            let node = self.pool.nodes[self.next as usize];
            self.next = node.next;
            Some(node.segment)
        };
        Some(now)
    }
}

/// A list being built. Segments that continue the one before in the same buffer are joined to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListBuilder {
    list: SegmentList,
    /// The last segment's node, or NIL while it is the first in place.
    tail: u32,
    len: u32,
    nodes: u32,
}

/// A list of nothing.
pub(crate) const EMPTY: SegmentList = SegmentList {
    first: Segment { token: crate::contract::Token(0), offset: 0, len: 0 },
    rest: NIL,
};

impl ListBuilder {
    pub(super) const fn new() -> Self {
        Self { list: EMPTY, tail: NIL, len: 0, nodes: 0 }
    }

    /// Sectors so far.
    pub(super) const fn len(&self) -> u32 {
        self.len
    }

    /// Segments beyond the first.
    pub(super) const fn nodes(&self) -> u32 {
        self.nodes
    }

    /// Whether the list needs more than the place it is named by.
    pub(super) const fn has_nodes(&self) -> bool {
        self.list.rest != NIL
    }

    #[inline(always)]
    pub(super) fn push(&mut self, pool: &mut ListPool, segment: Segment) {
        if segment.len == 0 {
            return;
        }
        self.len += segment.len;
        if self.list.first.len == 0 {
            self.list.first = segment;
            return;
        }
        let last = if self.tail == NIL {
            &mut self.list.first
        } else {
            &mut pool.nodes[self.tail as usize].segment
        };
        if last.token == segment.token && last.offset + last.len == segment.offset {
            last.len += segment.len;
            return;
        }
        self.append(pool, segment, 1);
    }

    /// Adds a segment that stands for `pieces` of equal length and takes the room of so many.
    pub(super) fn push_pieces(&mut self, pool: &mut ListPool, segment: Segment, pieces: u32) {
        let first = Segment { len: segment.len / pieces.max(1), ..segment };
        self.push(pool, first);
        let len = segment.len - first.len;
        if len > 0 {
            let rest = Segment { offset: segment.offset + first.len, len, ..segment };
            self.len += len;
            self.append(pool, rest, pieces - 1);
        }
    }

    #[inline(always)]
    fn append(&mut self, pool: &mut ListPool, segment: Segment, weight: u32) {
        let node = pool.take(segment, weight);
        self.nodes += weight;
        if self.tail == NIL {
            self.list.rest = node | pool.tag;
        } else {
            pool.nodes[self.tail as usize].next = node;
        }
        self.tail = node;
    }

    pub(super) const fn finish(self) -> SegmentList {
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Token;

    fn segment(token: u32, offset: u32, len: u32) -> Segment {
        Segment { token: Token(token), offset, len }
    }

    #[test]
    fn lists_join_neighbours_and_give_nodes_back() {
        let mut pool = ListPool::new(4);
        let mut list = ListBuilder::new();
        for part in [segment(1, 0, 2), segment(1, 2, 3), segment(2, 0, 1), segment(1, 8, 1)] {
            list.push(&mut pool, part);
        }
        assert_eq!(list.len(), 7);
        let list = list.finish();
        let all: Vec<_> = pool.iter(&list).collect();
        assert_eq!(all, [segment(1, 0, 5), segment(2, 0, 1), segment(1, 8, 1)]);
        assert_eq!(pool.available(), 2);
        pool.release(&list);
        assert_eq!(pool.available(), 4);
        assert_eq!(pool.iter(&EMPTY).count(), 0);
    }

    #[test]
    fn a_segment_for_many_takes_the_room_of_many() {
        let mut pool = ListPool::new(8);
        let mut list = ListBuilder::new();
        list.push_pieces(&mut pool, segment(1, 4, 12), 6);
        assert_eq!((list.len(), list.nodes(), pool.available()), (12, 5, 3));
        let list = list.finish();
        assert_eq!(pool.iter(&list).map(|one| one.len).sum::<u32>(), 12);
        pool.release(&list);
        assert_eq!(pool.available(), 8);
        let mut single = ListBuilder::new();
        single.push_pieces(&mut pool, segment(1, 4, 12), 1);
        assert_eq!((single.len(), pool.available()), (12, 8));
    }

    #[test]
    fn lists_are_joined_only_within_a_buffer_and_onward() {
        let mut pool = ListPool::new(8);
        pool.set_tag(3);
        let mut list = ListBuilder::new();
        for part in [
            segment(1, 4, 2),
            segment(1, 6, 0),
            segment(2, 6, 2),
            segment(2, 4, 2),
            segment(2, 6, 1),
        ] {
            list.push(&mut pool, part);
        }
        assert_eq!((list.len(), list.nodes(), list.has_nodes()), (7, 2, true));
        let list = list.finish();
        assert_eq!(tag_of(&list), Some(3));
        let all: Vec<_> = pool.iter(&list).collect();
        assert_eq!(all, [segment(1, 4, 2), segment(2, 6, 2), segment(2, 4, 3)]);
        let mut one = ListBuilder::new();
        one.push(&mut pool, segment(1, 0, 1));
        assert!(!one.has_nodes() && tag_of(&one.finish()).is_none());
        assert_eq!(pool.available(), 6);
        // All nodes can be used, and used again.
        for _ in 0..2 {
            let mut long = ListBuilder::new();
            (0..7).for_each(|index| long.push(&mut pool, segment(index, 0, 1)));
            assert_eq!((pool.available(), pool.iter(&long.finish()).count()), (0, 7));
            pool.release(&long.finish());
            assert_eq!(pool.available(), 6);
        }
        let none = ListPool::new(0);
        assert_eq!((none.free, none.available()), (NIL, 0));
    }

    #[test]
    fn pieces_share_a_segment_as_it_divides() {
        let mut pool = ListPool::new(8);
        let mut list = ListBuilder::new();
        list.push_pieces(&mut pool, segment(1, 4, 13), 3);
        assert_eq!((list.len(), list.nodes()), (13, 2));
        let list = list.finish();
        let all: Vec<_> = pool.iter(&list).collect();
        assert_eq!(all, [segment(1, 4, 4), segment(1, 8, 9)]);
    }
}
