//! Which requests may be at the array at once, and how a range of bytes lies in blocks: no I/O.
//!
//! A write that does not start and end on blocks is made of three steps: its first and last block are
//! read, the payload is put between what they hold, and whole blocks are written. Nothing else may write
//! those blocks meanwhile, or it would be undone.

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
    slot: usize,
    span: Span,
}

/// Requests that wait for the array or for each other, and changes under way.
#[derive(Debug, Default)]
pub struct Order {
    /// In the order they came; the span of those that change something.
    waiting: VecDeque<(usize, Option<Span>)>,
    under_way: Vec<Change>,
    /// Changes of parts of blocks, waiting or under way.
    partial: usize,
}

impl Order {
    /// A request came; `change` is what it writes.
    pub fn add(&mut self, slot: usize, change: Option<Span>) {
        self.partial += usize::from(change.is_some_and(|span| !span.is_whole()));
        self.waiting.push_back((slot, change));
    }

    /// The first request that may go to the array now; it is under way then.
    pub fn take(&mut self) -> Option<usize> {
        let position = if self.partial == 0 {
            0
        } else {
            (0..self.waiting.len()).find(|position| !self.is_held(*position))?
        };
        let (slot, change) = self.waiting.remove(position)?;
        self.under_way.extend(change.map(|span| Change { slot, span }));
        Some(slot)
    }

    /// Whether something under way, or that came before, keeps the request waiting.
    fn is_held(&self, position: usize) -> bool {
        let Some(span) = self.waiting[position].1 else { return false };
        let before = self.waiting.iter().take(position).filter_map(|(_, change)| change.as_ref());
        let others = self.under_way.iter().map(|change| &change.span).chain(before);
        let mut against = others.filter(|other| !(span.is_whole() && other.is_whole()));
        against.any(|other| other.meets(&span))
    }

    /// A request is answered.
    pub fn done(&mut self, slot: usize) {
        if let Some(position) = self.under_way.iter().position(|change| change.slot == slot) {
            let change = self.under_way.swap_remove(position);
            self.partial -= usize::from(!change.span.is_whole());
        }
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
}
