//! Which requests may be at the array at once, and how a range of bytes lies in blocks: no I/O.
//!
//! A write that does not start and end on blocks is made of three steps: its first and last block are
//! read, the payload is put between what they hold, and whole blocks are written. Nothing else may write
//! those blocks meanwhile, or it would be undone: neither what comes from the kernel nor what NBD clients
//! of the same array write, of whom there may be many. So what is held back is looked at again only when
//! something ended that can have held it, and compared with parts of blocks alone, which are few.

use std::collections::VecDeque;

/// Bytes of a file in the blocks they lie in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub offset: u64,
    /// How many bytes; not 0.
    pub len: u64,
    /// Bytes of a block.
    pub block: u64,
}

impl Span {
    /// The first byte of its first block.
    pub fn start(&self) -> u64 {
        self.offset - self.offset % self.block
    }

    /// The first byte behind its last block.
    pub fn end(&self) -> u64 {
        (self.offset + self.len).next_multiple_of(self.block)
    }

    /// Bytes of its blocks.
    pub fn whole(&self) -> u64 {
        self.end() - self.start()
    }

    /// Bytes of the first block before it.
    pub fn skip(&self) -> u64 {
        self.offset % self.block
    }

    /// Whether it is made of whole blocks.
    pub fn is_whole(&self) -> bool {
        self.whole() == self.len
    }

    fn meets(&self, other: &Self) -> bool {
        self.start() < other.end() && other.start() < self.end()
    }
}

/// What is written: conflicts are only among these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    ticket: u32,
    span: Span,
    /// Those with lower ones came before.
    turn: u64,
}

const WHOLE: usize = 0;
const PARTS: usize = 1;

/// Changes that are held back, in the order they came.
#[derive(Debug, Default)]
struct Held {
    changes: VecDeque<Change>,
    /// Something has ended that may have held one of them.
    may_go: bool,
}

impl Held {
    fn look(&mut self) {
        self.may_go = !self.changes.is_empty();
    }
}

/// Requests that wait for the array or for each other, and changes under way, by tickets that their owners choose: no
/// two that are not done have the same.
#[derive(Debug, Default)]
pub struct Order {
    /// In the order they came; the span of those that change something.
    waiting: VecDeque<(u32, Option<Span>)>,
    /// Under way, with one more step to take.
    further: VecDeque<u32>,
    under_way: Vec<Change>,
    /// Whole blocks that wait for parts, and parts that wait for any others.
    held: [Held; 2],
    /// Changes of parts of blocks that are not done.
    partial: usize,
    /// A part of a range is at the array, and those whose next part waits for that: the array takes requests in the
    /// order in which they come, and parts of all would go before whatever comes next.
    has_part: bool,
    ranges: VecDeque<u32>,
    turns: u64,
}

impl Order {
    /// A request came; `change` is what it writes.
    #[inline]
    pub fn add(&mut self, ticket: u32, change: Option<Span>) {
        self.partial += usize::from(change.is_some_and(|span| !span.is_whole()));
        self.waiting.push_back((ticket, change));
    }

    /// A request that is under way has one more step to take, before any other begins.
    pub fn go_on(&mut self, ticket: u32) {
        self.further.push_back(ticket);
    }

    /// Whether the next part of a range that is zeroed or discarded goes to the array now; else it is
    /// [taken](Self::take) again when its turn comes.
    pub fn begin_part(&mut self, ticket: u32) -> bool {
        if self.has_part {
            self.ranges.push_back(ticket);
            return false;
        }
        self.has_part = true;
        true
    }

    /// The part that was at the array has ended, or was not taken by it.
    pub fn end_part(&mut self) {
        self.has_part = false;
        if let Some(next) = self.ranges.pop_front() {
            self.add(next, None);
        }
    }

    /// Whether [`take`](Self::take) may give something.
    #[inline]
    pub fn has_some(&self) -> bool {
        !self.waiting.is_empty()
            || !self.further.is_empty()
            || self.held.iter().any(|held| held.may_go)
    }

    /// The first request that may go to the array now; it is under way then.
    #[inline]
    pub fn take(&mut self) -> Option<u32> {
        if let Some(ticket) = self.further.pop_front() {
            return Some(ticket);
        }
        if self.held.iter().any(|held| held.may_go) {
            let freed = self.take_held();
            if freed.is_some() {
                return freed;
            }
        }
        while let Some((ticket, span)) = self.waiting.pop_front() {
            let Some(span) = span else { return Some(ticket) };
            let change = Change { ticket, span, turn: self.turns };
            self.turns += 1;
            if self.partial == 0 || !self.is_held(&change) {
                self.under_way.push(change);
                return Some(ticket);
            }
            let kind = if span.is_whole() { WHOLE } else { PARTS };
            self.held[kind].changes.push_back(change);
        }
        None
    }

    /// The first that was held back and is not any more: whole blocks before parts, which might never let them in.
    fn take_held(&mut self) -> Option<u32> {
        for kind in [WHOLE, PARTS] {
            if !self.held[kind].may_go {
                continue;
            }
            let changes = &self.held[kind].changes;
            let position = changes.iter().position(|change| !self.is_held(change));
            let held = &mut self.held[kind];
            if let Some(change) = position.and_then(|position| held.changes.remove(position)) {
                self.under_way.push(change);
                return Some(change.ticket);
            }
            held.may_go = false;
        }
        None
    }

    /// Whether something under way, or a part of a block that came before, keeps a change waiting. What is whole waits
    /// for parts alone.
    fn is_held(&self, change: &Change) -> bool {
        let is_whole = change.span.is_whole();
        let under_way = self.under_way.iter();
        let under_way = under_way.filter(|other| !(is_whole && other.span.is_whole()));
        let parts = self.held[PARTS].changes.iter().filter(|part| part.turn < change.turn);
        under_way.chain(parts).any(|other| other.span.meets(&change.span))
    }

    /// A request is answered.
    #[inline]
    pub fn done(&mut self, ticket: u32) {
        let position = self.under_way.iter().position(|change| change.ticket == ticket);
        let Some(position) = position else { return };
        let change = self.under_way.swap_remove(position);
        if !change.span.is_whole() {
            self.partial -= 1;
            self.held[WHOLE].look();
        }
        self.held[PARTS].look();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(offset: u64, len: u64) -> Option<Span> {
        Some(Span { offset, len, block: 512 })
    }

    #[test]
    fn spans_lie_in_blocks() {
        let one = Span { offset: 700, len: 500, block: 512 };
        assert_eq!((one.start(), one.end(), one.skip(), one.whole()), (512, 1536, 188, 1024));
        assert!(!one.is_whole());
        let whole = Span { offset: 512, len: 1024, block: 512 };
        assert!(whole.is_whole() && whole.meets(&one));
        assert!(!Span { offset: 1536, ..whole }.meets(&one));
        assert!(!Span { offset: 0, len: 512, block: 512 }.meets(&one));
    }

    #[test]
    fn whole_blocks_go_at_once_also_when_they_overlap() {
        let mut order = Order::default();
        order.add(0, span(0, 512));
        order.add(1, span(0, 512));
        order.add(2, None);
        assert_eq!([order.take(), order.take(), order.take()], [Some(0), Some(1), Some(2)]);
        assert_eq!(order.take(), None);
    }

    #[test]
    fn a_part_of_a_block_waits_for_what_writes_it_and_holds_what_comes_later() {
        let mut order = Order::default();
        order.add(0, span(0, 1024));
        order.add(1, span(600, 10));
        order.add(2, span(512, 512));
        order.add(3, span(1024, 512));
        order.add(4, None);
        order.add(5, span(1000, 5));
        assert_eq!([order.take(), order.take(), order.take()], [Some(0), Some(3), Some(4)]);
        assert_eq!(order.take(), None);
        order.done(3);
        order.done(4);
        assert_eq!(order.take(), None, "what reads holds nothing");
        order.done(0);
        assert_eq!([order.take(), order.take()], [Some(1), None]);
        order.done(1);
        assert_eq!([order.take(), order.take()], [Some(2), None]);
        order.done(2);
        assert_eq!([order.take(), order.take()], [Some(5), None]);
        order.done(5);
        assert_eq!(order.partial, 0);
    }

    #[test]
    fn what_is_under_way_goes_on_before_others_begin() {
        let mut order = Order::default();
        order.add(0, span(10, 20));
        order.add(1, span(4096, 512));
        assert_eq!(order.take(), Some(0));
        order.go_on(0);
        assert!(order.has_some());
        assert_eq!([order.take(), order.take(), order.take()], [Some(0), Some(1), None]);
        // A request of several parts comes again behind the others, and holds its blocks meanwhile.
        order.add(2, None);
        order.add(1, None);
        order.add(3, span(4100, 8));
        assert_eq!([order.take(), order.take(), order.take()], [Some(2), Some(1), None]);
        assert!(!order.has_some());
        order.done(1);
        assert_eq!([order.take(), order.take()], [Some(3), None]);
    }

    #[test]
    fn ranges_take_turns_and_go_behind_what_came_meanwhile() {
        let mut order = Order::default();
        (0..3).for_each(|ticket| order.add(ticket, span(0, 512)));
        order.add(3, None);
        let mut begun = Vec::new();
        let mut parts = [3; 3];
        while let Some(ticket) = order.take() {
            if ticket == 3 || order.begin_part(ticket) {
                begun.push(ticket);
            }
            if order.has_some() {
                continue;
            }
            // The part at the array ends; what has more of it waits behind the others.
            let Some(ended) = begun.iter().rev().find(|ticket| **ticket < 3).copied() else {
                break;
            };
            order.end_part();
            parts[ended as usize] -= 1;
            match parts[ended as usize] {
                0 => order.done(ended),
                _ => order.add(ended, None),
            }
        }
        assert_eq!(begun, [0, 3, 1, 2, 0, 1, 2, 0, 1, 2]);
        assert!(order.begin_part(4), "none is at the array any more");
    }

    /// However many keep coming of one kind, the other gets its turn.
    #[test]
    fn neither_parts_nor_whole_blocks_wait_for_ever() {
        for mine in [span(512, 512), span(600, 10)] {
            let theirs = if mine == span(512, 512) { span(520, 20) } else { span(0, 2048) };
            let mut order = Order::default();
            order.add(0, theirs);
            assert_eq!(order.take(), Some(0));
            order.add(1, mine);
            (2..10).for_each(|ticket| order.add(ticket, theirs));
            assert_eq!(order.take(), None);
            order.done(0);
            assert_eq!([order.take(), order.take()], [Some(1), None], "{mine:?}");
        }
    }
}
