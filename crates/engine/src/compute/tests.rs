//! Every plan on operands split at random places, against the same on flat buffers.

use raidlab_core::contract::{JobResult, ParityOp, Role};
use raidlab_parity::scalar;

use super::*;

/// xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: usize) -> usize {
        ((self.next() >> 16) % end as u64) as usize
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| (self.next() >> 32) as u8).collect()
    }

    /// Lengths in bytes, of whole sectors, that make up `sectors`.
    fn cuts(&mut self, sectors: usize) -> Vec<usize> {
        let mut left = sectors;
        let mut cuts = Vec::new();
        while left > 0 {
            let cut = 1 + self.below(left.min(5));
            cuts.push(cut * SECTOR_BYTES as usize);
            left -= cut;
        }
        cuts
    }

    /// `count` different exponents.
    fn exponents(&mut self, count: usize) -> Vec<u8> {
        let mut all: Vec<u8> = (0..255).collect();
        for at in 0..count {
            all.swap(at, at + self.below(255 - at));
        }
        all.truncate(count);
        all
    }
}

/// A place of an operand in memory, piece by piece.
type Pieces = Vec<(usize, usize)>;
/// An operand and what it is.
type Operand<'a> = (&'a Pieces, Role);

/// A job on operands that lie scattered in one memory.
struct Bench {
    random: Random,
    memory: Vec<u8>,
    len: usize,
}

impl Bench {
    fn new(seed: u64, sectors: usize) -> Self {
        let len = sectors * SECTOR_BYTES as usize;
        Self { random: Random(seed), memory: Vec::new(), len }
    }

    /// Puts an operand into memory in pieces, those of different operands mixed: every piece goes behind
    /// all there are, at some distance.
    fn put(&mut self, contents: &[u8]) -> Pieces {
        let mut from = 0;
        let mut pieces = Vec::new();
        for cut in self.random.cuts(self.len / SECTOR_BYTES as usize) {
            let gap = self.random.below(3) * SECTOR_BYTES as usize;
            let padding = self.random.bytes(gap);
            self.memory.extend(padding);
            pieces.push((self.memory.len(), cut));
            self.memory.extend(&contents[from..from + cut]);
            from += cut;
        }
        // Some lists run backwards through memory.
        if self.random.below(2) == 0 && pieces.iter().all(|(_, cut)| *cut == pieces[0].1) {
            pieces.reverse();
            let mut from = 0;
            for (at, cut) in &pieces {
                self.memory[*at..at + cut].copy_from_slice(&contents[from..from + cut]);
                from += cut;
            }
        }
        pieces
    }

    fn get(&self, pieces: &Pieces) -> Vec<u8> {
        pieces.iter().flat_map(|(at, cut)| &self.memory[*at..at + cut]).copied().collect()
    }

    /// Runs a job; checks that nothing but its targets changed.
    fn run(
        &mut self,
        kernel: ParityOp,
        sources: &[Operand<'_>],
        targets: &[Operand<'_>],
    ) -> JobResult {
        let roles: Vec<Role> = sources.iter().chain(targets).map(|(_, role)| *role).collect();
        let before = self.memory.clone();
        let mut computer = Computer::default();
        let data = &mut computer.data;
        let Some(plan) = plan::plan(kernel, sources.len(), targets.len(), &roles, data) else {
            return JobResult::Failed;
        };
        let start = self.memory.as_mut_ptr();
        for (pieces, _) in targets.iter().chain(sources) {
            let next = computer.pieces.len();
            let piece =
                |(at, len): &(usize, usize)| Piece { start: start.wrapping_add(*at), len: *len };
            computer.pieces.extend(pieces.iter().map(piece));
            computer.cursors.push(Cursor { next, end: computer.pieces.len(), used: 0 });
        }
        let store = if self.random.below(2) == 0 { Store::Cached } else { Store::NonTemporal };
        let result = computer.walk(plan, targets.len(), self.len, store);
        let mut expected = before;
        for (at, cut) in targets.iter().flat_map(|(pieces, _)| *pieces) {
            expected[*at..at + cut].copy_from_slice(&self.memory[*at..at + cut]);
        }
        assert!(self.memory == expected, "{kernel:?} wrote beside its targets");
        result
    }
}

/// A random row: data with their exponents, P and Q.
struct Row {
    data: Vec<Vec<u8>>,
    exponents: Vec<u8>,
}

impl Row {
    fn new(random: &mut Random, count: usize, len: usize) -> Self {
        let data = (0..count).map(|_| random.bytes(len)).collect();
        Self { data, exponents: random.exponents(count) }
    }

    fn parity(&self) -> [Vec<u8>; 2] {
        let len = self.data[0].len();
        let (mut p, mut q) = (vec![0; len], vec![0; len]);
        let data = self.data.iter().map(Vec::as_slice).zip(self.exponents.iter().copied());
        scalar::pq(&mut p, &mut q, &data.collect::<Vec<_>>());
        [p, q]
    }

    fn role(&self, n: usize) -> Role {
        Role::Data(self.exponents[n])
    }
}

const P_AND_Q: [Role; 2] = [Role::P, Role::Q];

#[test]
fn xor_copy_and_zero_on_split_operands() {
    for seed in 1..=60 {
        let mut bench = Bench::new(seed, 1 + seed as usize % 17);
        let count = 1 + bench.random.below(6);
        let blocks: Vec<Vec<u8>> = (0..count).map(|_| bench.random.bytes(bench.len)).collect();
        let places: Vec<Pieces> = blocks.iter().map(|block| bench.put(block)).collect();
        let target = bench.put(&vec![0x77; bench.len]);
        let mut expected = vec![0; bench.len];
        scalar::xor(&mut expected, &blocks.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let sources: Vec<_> = places.iter().map(|place| (place, Role::P)).collect();
        let to = [(&target, Role::P)];
        assert_eq!(bench.run(ParityOp::Xor, &sources, &to), JobResult::Done);
        assert!(bench.get(&target) == expected);
        assert_eq!(bench.run(ParityOp::Copy, &sources[..1], &to), JobResult::Done);
        assert!(bench.get(&target) == blocks[0]);
        // Into a source: without it, then with it.
        let into = [(&places[0], Role::P)];
        assert_eq!(bench.run(ParityOp::Xor, &sources, &into), JobResult::Done);
        assert!(bench.get(&places[0]) == expected);
        let both = [(&target, Role::P), into[0]];
        assert_eq!(bench.run(ParityOp::Zero, &[], &both), JobResult::Done);
        assert!(bench.get(&target).iter().chain(&bench.get(&places[0])).all(|byte| *byte == 0));
    }
}

#[test]
fn parity_of_split_operands_and_its_change() {
    for seed in 1..=60 {
        let mut bench = Bench::new(seed, 1 + seed as usize % 17);
        let count = 1 + bench.random.below(9);
        let mut row = Row::new(&mut bench.random, count, bench.len);
        let places: Vec<Pieces> = row.data.iter().map(|block| bench.put(block)).collect();
        let parity: [Pieces; 2] = [0x11, 0x22].map(|byte| bench.put(&vec![byte; bench.len]));
        let sources: Vec<_> = places.iter().enumerate().map(|(n, p)| (p, row.role(n))).collect();
        // P and Q in either order, or one of them.
        let orders: [&[usize]; 4] = [&[0, 1], &[1, 0], &[0], &[1]];
        let order = orders[seed as usize % 4];
        let targets: Vec<_> = order.iter().map(|n| (&parity[*n], P_AND_Q[*n])).collect();
        assert_eq!(bench.run(ParityOp::Pq, &sources, &targets), JobResult::Done);
        let expected = row.parity();
        assert!(order.iter().all(|n| bench.get(&parity[*n]) == expected[*n]), "seed {seed}");

        let changed = 1 + bench.random.below(count);
        let new: Vec<Vec<u8>> = (0..changed).map(|_| bench.random.bytes(bench.len)).collect();
        let new_places: Vec<Pieces> = new.iter().map(|block| bench.put(block)).collect();
        let pairs: Vec<_> = (0..changed)
            .flat_map(|n| [(&places[n], row.role(n)), (&new_places[n], row.role(n))])
            .collect();
        assert_eq!(bench.run(ParityOp::Delta, &pairs, &targets), JobResult::Done);
        row.data[..changed].clone_from_slice(&new);
        let expected = row.parity();
        assert!(order.iter().all(|n| bench.get(&parity[*n]) == expected[*n]), "seed {seed}");
    }
}

#[test]
fn lost_data_come_back_into_split_operands() {
    for seed in 1..=80 {
        let mut bench = Bench::new(seed, 1 + seed as usize % 17);
        let count = 2 + bench.random.below(8);
        let row = Row::new(&mut bench.random, count, bench.len);
        let places: Vec<Pieces> = row.data.iter().map(|block| bench.put(block)).collect();
        let parity = row.parity().map(|parity| bench.put(&parity));
        let (p, q) = ((&parity[0], Role::P), (&parity[1], Role::Q));
        let x = bench.random.below(count);
        let y = (x + 1 + bench.random.below(count - 1)) % count;
        let (lost, given): (&[usize], &[_]) = match seed % 4 {
            0 => (&[x], &[p]),
            1 => (&[x], &[q]),
            2 => (&[x, y], &[p, q]),
            _ => (&[x, y], &[q, p]),
        };
        let others = (0..count).filter(|n| !lost.contains(n));
        let mut sources: Vec<_> = others.map(|n| (&places[n], row.role(n))).collect();
        let at = bench.random.below(sources.len() + 1);
        sources.splice(at..at, given.iter().copied());
        let found: [Pieces; 2] = [0x11, 0x22].map(|byte| bench.put(&vec![byte; bench.len]));
        let targets: Vec<_> = found.iter().zip(lost).map(|(to, n)| (to, row.role(*n))).collect();
        assert_eq!(bench.run(ParityOp::Recover, &sources, &targets), JobResult::Done);
        for (found, lost) in found.iter().zip(lost) {
            assert!(bench.get(found) == row.data[*lost], "seed {seed}: block {lost} of {count}");
        }
    }
}

#[test]
fn lost_data_come_back_with_the_parity_that_is_lost_too() {
    for seed in 1..=80 {
        let mut bench = Bench::new(seed, 1 + seed as usize % 17);
        let count = 2 + bench.random.below(8);
        let row = Row::new(&mut bench.random, count, bench.len);
        let places: Vec<Pieces> = row.data.iter().map(|block| bench.put(block)).collect();
        let parity = row.parity();
        let x = bench.random.below(count);
        // P is lost and Q given, or the other way round.
        let (lost, given) = if seed % 2 == 0 { (0, 1) } else { (1, 0) };
        let given_place = bench.put(&parity[given]);
        let others = (0..count).filter(|n| *n != x);
        let mut sources: Vec<_> = others.map(|n| (&places[n], row.role(n))).collect();
        let at = bench.random.below(sources.len() + 1);
        sources.insert(at, (&given_place, P_AND_Q[given]));
        let found: [Pieces; 2] = [0x11, 0x22].map(|byte| bench.put(&vec![byte; bench.len]));
        let mut targets = [(&found[0], row.role(x)), (&found[1], P_AND_Q[lost])];
        if seed % 4 < 2 {
            targets.reverse();
        }
        assert_eq!(bench.run(ParityOp::Recover, &sources, &targets), JobResult::Done);
        assert!(bench.get(&found[0]) == row.data[x], "seed {seed}: block {x} of {count}");
        assert!(bench.get(&found[1]) == parity[lost], "seed {seed}: parity");
    }
}

/// Changes a byte of an operand; gives its sector.
fn spoil(bench: &mut Bench, place: &Pieces, at: usize, by: u8) -> u32 {
    let mut left = at;
    let piece = place.iter().find(|(_, cut)| {
        let here = left < *cut;
        left -= if here { 0 } else { *cut };
        here
    });
    bench.memory[piece.unwrap().0 + left] ^= by;
    (at / SECTOR_BYTES as usize) as u32
}

#[test]
fn the_one_wrong_block_is_located_among_the_sources() {
    for seed in 1..=120 {
        let mut bench = Bench::new(seed, 1 + seed as usize % 17);
        let count = 1 + bench.random.below(8);
        let row = Row::new(&mut bench.random, count, bench.len);
        let mut places: Vec<(Pieces, Role)> =
            (0..count).map(|n| (bench.put(&row.data[n]), row.role(n))).collect();
        for (contents, role) in row.parity().into_iter().zip(P_AND_Q) {
            let place = bench.put(&contents);
            let at = bench.random.below(places.len() + 1);
            places.insert(at, (place, role));
        }
        let sources: Vec<Operand<'_>> = places.iter().map(|(place, role)| (place, *role)).collect();
        assert_eq!(bench.run(ParityOp::Locate, &sources, &[]), JobResult::Equal);
        let wrong = bench.random.below(sources.len());
        let (mut from, mut to) = (u32::MAX, 0);
        for _ in 0..1 + bench.random.below(6) {
            let (at, by) = (bench.random.below(bench.len), 1 + bench.random.below(127) as u8);
            let sector = spoil(&mut bench, sources[wrong].0, at, by);
            (from, to) = (from.min(sector), to.max(sector + 1));
        }
        // A byte that was spoilt twice may be right again; the high bit of one surely is not.
        spoil(&mut bench, sources[wrong].0, from as usize * SECTOR_BYTES as usize, 0x80);
        let found = bench.run(ParityOp::Locate, &sources, &[]);
        assert_eq!(found, JobResult::Located(wrong as u16), "seed {seed}");

        // One more block, in another byte: of the same sector, or of any, mostly of another run.
        let other = (wrong + 1 + bench.random.below(sources.len() - 1)) % sources.len();
        let sectors = bench.len / SECTOR_BYTES as usize;
        let sector = if seed % 3 == 0 { from as usize } else { bench.random.below(sectors) };
        let last = (sector + 1) * SECTOR_BYTES as usize - 1;
        let sector = spoil(&mut bench, sources[other].0, last, 0x80);
        let expected = JobResult::Differs { from: from.min(sector), to: to.max(sector + 1) };
        assert_eq!(bench.run(ParityOp::Locate, &sources, &[]), expected, "seed {seed}");
    }
}

#[test]
fn checksums_are_of_the_sources_in_their_order() {
    for seed in 1..=30 {
        let mut bench = Bench::new(seed, 1 + seed as usize % 17);
        let count = 1 + bench.random.below(4);
        let blocks: Vec<Vec<u8>> = (0..count).map(|_| bench.random.bytes(bench.len)).collect();
        let places: Vec<Pieces> = blocks.iter().map(|block| bench.put(block)).collect();
        let mut expected = Checksum::default();
        expected.add(&blocks.concat());
        let sources: Vec<_> = places.iter().map(|place| (place, Role::P)).collect();
        let found = bench.run(ParityOp::Checksum, &sources, &[]);
        assert_eq!(found, JobResult::Checksum(expected.value()), "seed {seed}");
    }
}

#[test]
fn only_large_parity_for_devices_goes_past_the_cache() {
    let (pq, xor) = (ComputePlan::Pq { p: Some(0), q: Some(1) }, ComputePlan::Xor);
    assert_eq!(store(pq, &P_AND_Q, 2 << 20, false), Store::NonTemporal);
    assert_eq!(store(xor, &[Role::P], 2 << 20, false), Store::NonTemporal);
    let delta = ComputePlan::Delta { p: Some(0), q: None };
    for (plan, written, bytes, copying) in [
        (pq, &P_AND_Q[..], (2 << 20) - 512, false),
        (pq, &P_AND_Q, 64 << 20, true),
        (xor, &[Role::Data(0)], 64 << 20, false),
        (xor, &[], 64 << 20, false),
        (delta, &[Role::P], 64 << 20, false),
        (ComputePlan::RecoverByP { p: 1 }, &[Role::Data(0)], 64 << 20, false),
    ] {
        assert_eq!(store(plan, written, bytes, copying), Store::Cached, "{plan:?}");
    }
}

#[test]
fn differences_are_found_to_the_sector() {
    for seed in 1..=60 {
        let mut bench = Bench::new(seed, 1 + seed as usize % 17);
        let block = bench.random.bytes(bench.len);
        let count = 2 + bench.random.below(3);
        let places: Vec<Pieces> = (0..count).map(|_| bench.put(&block)).collect();
        let sources: Vec<_> = places.iter().map(|place| (place, Role::P)).collect();
        assert_eq!(bench.run(ParityOp::Compare, &sources, &[]), JobResult::Equal);
        let (mut from, mut to) = (u32::MAX, 0);
        for flip in 0..1 + bench.random.below(3) {
            let at = bench.random.below(bench.len);
            let mut left = at;
            let which = bench.random.below(count);
            let piece = places[which].iter().find(|(_, cut)| {
                let here = left < *cut;
                left -= if here { 0 } else { *cut };
                here
            });
            // Every flip is of another bit, so two never undo each other.
            bench.memory[piece.unwrap().0 + left] ^= 1 << flip;
            let sector = (at / SECTOR_BYTES as usize) as u32;
            (from, to) = (from.min(sector), to.max(sector + 1));
        }
        assert_eq!(bench.run(ParityOp::Compare, &sources, &[]), JobResult::Differs { from, to });
    }
}

#[test]
fn targets_may_be_sources_exactly_but_not_in_part() {
    let mut bench = Bench::new(7, 4);
    let contents = bench.random.bytes(2048);
    bench.memory = [contents.clone(), bench.random.bytes(4096)].concat();
    let part: Pieces = vec![(1024, 2048)];
    let (whole, cut): (Pieces, Pieces) = (vec![(0, 2048)], vec![(0, 512), (512, 1536)]);
    let other: Pieces = vec![(3072, 2048)];
    let (p, q, data) = (Role::P, Role::Q, Role::Data(1));
    let before = bench.memory.clone();
    let jobs: [(ParityOp, &[Operand<'_>], &[Operand<'_>]); 5] = [
        (ParityOp::Xor, &[(&whole, p)], &[(&part, p)]),
        (ParityOp::Pq, &[(&other, data)], &[(&whole, p), (&part, q)]),
        (ParityOp::Pq, &[(&other, data)], &[(&whole, p), (&cut, q)]),
        (ParityOp::Delta, &[(&part, data), (&other, data)], &[(&whole, q)]),
        (ParityOp::Copy, &[(&part, p)], &[(&whole, p)]),
    ];
    for (kernel, sources, targets) in jobs {
        assert_eq!(bench.run(kernel, sources, targets), JobResult::Failed, "{kernel:?}");
        assert!(bench.memory == before, "{kernel:?} wrote");
    }
    // The same bytes, split in another way.
    let sources = [(&cut, p), (&other, p)];
    assert_eq!(bench.run(ParityOp::Xor, &sources, &[(&whole, p)]), JobResult::Done);
    let expected = before[..2048].iter().zip(&before[3072..]).map(|(a, b)| a ^ b);
    assert!(bench.memory[..2048].iter().copied().eq(expected));
}
