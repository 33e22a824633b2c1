use super::*;
use crate::fake::FakeBus;

const DESCRIPTORS: u64 = 0x1000;
const AVAILABLE: u64 = 0x2000;
const USED: u64 = 0x3000;

fn queue(entries: u32) -> Virtqueue {
    let mut queue = Virtqueue::of(entries).expect("is a length");
    queue.place(DESCRIPTORS, AVAILABLE, USED);
    queue
}

fn put(bus: &mut FakeBus, at: u64, raw: &[u8]) {
    bus.memory[at as usize..][..raw.len()].copy_from_slice(raw);
}

fn describe(bus: &mut FakeBus, table: u64, index: u64, part: (u64, u32), flags: u16, next: u16) {
    let at = table + 16 * index;
    put(bus, at, &part.0.to_le_bytes());
    put(bus, at + 8, &part.1.to_le_bytes());
    put(bus, at + 12, &flags.to_le_bytes());
    put(bus, at + 14, &next.to_le_bytes());
}

/// Puts a head at an entry of the available ring and says that there are so many.
fn offer(bus: &mut FakeBus, slot: u64, head: u16, index: u16) {
    put(bus, AVAILABLE + 4 + 2 * slot, &head.to_le_bytes());
    put(bus, AVAILABLE + 2, &index.to_le_bytes());
}

fn part(address: u64, length: u32, writable: bool) -> Part {
    Part { address, length, writable }
}

#[test]
fn a_chain_is_followed_and_given_back() {
    let (mut bus, mut queue) = (FakeBus::new(), queue(4));
    describe(&mut bus, DESCRIPTORS, 2, (0x100, 16), NEXT, 0);
    describe(&mut bus, DESCRIPTORS, 0, (0x200, 512), NEXT | WRITABLE, 3);
    describe(&mut bus, DESCRIPTORS, 3, (0x400, 1), WRITABLE, 1);
    assert_eq!(queue.take(&mut bus, 0).expect("is right"), None);
    offer(&mut bus, 0, 2, 1);
    let chain = queue.take(&mut bus, 0).expect("is right").expect("is there");
    let parts = vec![part(0x100, 16, false), part(0x200, 512, true), part(0x400, 1, true)];
    assert_eq!(chain, Chain { head: 2, parts });
    assert_eq!(queue.take(&mut bus, 0).expect("is right"), None);

    queue.give(&mut bus, 0, 2, 513).expect("is in memory");
    assert_eq!(bus.memory[USED as usize + 4..][..8], [2, 0, 0, 0, 1, 2, 0, 0]);
    assert_eq!(bus.memory[USED as usize + 2..][..2], [1, 0]);
}

#[test]
fn a_table_elsewhere_is_read_in_place_of_the_descriptor() {
    let (mut bus, mut queue) = (FakeBus::new(), queue(4));
    describe(&mut bus, DESCRIPTORS, 1, (0x8000, 32), INDIRECT, 0);
    describe(&mut bus, 0x8000, 0, (0x100, 16), NEXT, 1);
    describe(&mut bus, 0x8000, 1, (0x200, 1), WRITABLE, 0);
    offer(&mut bus, 0, 1, 1);
    let chain = queue.take(&mut bus, 0).expect("is right").expect("is there");
    assert_eq!(chain.parts, [part(0x100, 16, false), part(0x200, 1, true)]);
}

#[test]
fn the_ring_goes_round_and_its_counts_wrap() {
    let (mut bus, mut queue) = (FakeBus::new(), queue(4));
    queue.begin_at(u16::MAX);
    describe(&mut bus, DESCRIPTORS, 0, (0x100, 16), 0, 0);
    describe(&mut bus, DESCRIPTORS, 1, (0x200, 16), 0, 0);
    put(&mut bus, AVAILABLE + 4 + 6, &1_u16.to_le_bytes());
    offer(&mut bus, 0, 0, 1);
    let heads: Vec<u16> =
        std::iter::from_fn(|| queue.take(&mut bus, 0).expect("is right").map(|chain| chain.head))
            .collect();
    assert_eq!(heads, [1, 0]);
    queue.give(&mut bus, 0, 1, 0).expect("is in memory");
    assert_eq!(bus.memory[USED as usize + 2..][..2], [0, 0]);
    assert_eq!(bus.memory[USED as usize + 4 + 24], 1);
}

#[test]
fn broken_chains_are_said_not_followed_for_ever() {
    let broken = |describe_it: &dyn Fn(&mut FakeBus)| {
        let (mut bus, mut queue) = (FakeBus::new(), queue(4));
        describe_it(&mut bus);
        queue.take(&mut bus, 0).expect_err("is broken").to_string()
    };
    let circle = broken(&|bus| {
        describe(bus, DESCRIPTORS, 0, (0x100, 16), NEXT, 0);
        offer(bus, 0, 0, 1);
    });
    assert!(circle.contains("does not end"), "{circle}");
    let outside = broken(&|bus| offer(bus, 0, 4, 1));
    assert!(outside.contains("descriptor 4 of a table of 4"), "{outside}");
    let nowhere = broken(&|bus| {
        describe(bus, DESCRIPTORS, 0, (1 << 40, 16), INDIRECT, 0);
        offer(bus, 0, 0, 1);
    });
    assert!(nowhere.contains("no 16 bytes of memory at 0x10000000000"), "{nowhere}");
    assert!(Virtqueue::default().take(&mut FakeBus::new(), 0).is_err(), "has no entries");
    assert!(Virtqueue::of(3).is_err() && Virtqueue::of(1 << 16).is_err());
}

#[test]
fn interrupts_are_left_out_when_the_guest_says_so() {
    let (mut bus, queue) = (FakeBus::new(), queue(4));
    assert!(queue.wants_interrupt(&mut bus, 0).expect("is in memory"));
    put(&mut bus, AVAILABLE, &NO_INTERRUPT.to_le_bytes());
    assert!(!queue.wants_interrupt(&mut bus, 0).expect("is in memory"));
}
