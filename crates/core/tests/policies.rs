//! Every read policy's choices on short request sequences, by tables worked out by hand from the
//! rules in the policies' own files (`src/policy/*.rs`), whose numbers the comments cite.

use std::collections::VecDeque;

use raidlab_core::policy::{
    CopyCandidate, CopyKind, DEFAULT_SLICE, IoKind, MemberIo, MemberTraits, ParityRead,
    PolicyState, ReadContext, ReadPolicy, Split,
};
use raidlab_core::{MemberIndex, Nanos, Sector, Sectors, Time};

/// Members with a policy: reads of 8 sectors, first in first out, member `m` taking 5 + m ms.
struct Mirror {
    state: PolicyState,
    kind: CopyKind,
    unsynced: bool,
    now: Time,
    /// Readable, I/Os in flight, end of the last I/O sent.
    members: Vec<(bool, u32, Sector)>,
    in_flight: VecDeque<(MemberIo, Time)>,
}

const LEN: Sectors = Sectors(8);
const HDD: MemberTraits =
    MemberTraits { rotational: true, write_mostly: false, optimal_io: Sectors::ZERO, priority: 0 };
const SSD: MemberTraits = MemberTraits { rotational: false, ..HDD };
const RAID10_NEAR: CopyKind = CopyKind::Raid10 { near: true, far: false };
const RAID10_FAR: CopyKind = CopyKind::Raid10 { near: false, far: true };

impl Mirror {
    fn new(policy: ReadPolicy, traits: &[MemberTraits]) -> Self {
        Self {
            state: PolicyState::new(policy, traits),
            kind: CopyKind::Raid1,
            unsynced: false,
            now: Time::ZERO,
            members: vec![(true, 0, Sector(0)); traits.len()],
            in_flight: VecDeque::new(),
        }
    }

    /// The choice for a read at `at[copy]` of member `copy`.
    fn choose(&mut self, at: &[u64]) -> Option<u16> {
        let all = at.iter().zip(&self.members).enumerate();
        let readable = all.filter(|(_, (_, (readable, ..)))| *readable);
        let candidates = readable.map(|(copy, (at, (_, pending, head)))| CopyCandidate {
            copy: copy as u16,
            member: MemberIndex(copy as u16),
            at: Sector(*at),
            pending: *pending,
            head: *head,
        });
        let context =
            ReadContext { at: Sector(at[0]), len: LEN, kind: self.kind, unsynced: self.unsynced };
        self.state.choose(self.now, context, candidates)
    }

    fn send(&mut self, member: u16, at: u64, kind: IoKind) {
        let io = MemberIo { member: MemberIndex(member), at: Sector(at), len: LEN, kind };
        let known = &mut self.members[io.member.at()];
        *known = (known.0, known.1 + 1, io.at + LEN);
        self.state.sent(self.now, io);
        self.in_flight.push_back((io, self.now));
    }

    fn complete(&mut self) {
        let (io, sent_at) = self.in_flight.pop_front().expect("in flight");
        self.now = self.now + Nanos::from_millis(5 + u64::from(io.member.0));
        self.members[io.member.at()].1 -= 1;
        self.state.completed(self.now, io, sent_at);
    }

    /// Reads at one address of every member with `depth` in flight; the members chosen.
    fn reads(&mut self, depth: usize, at: &[u64]) -> String {
        let mut chosen = String::new();
        for at in at {
            if self.in_flight.len() == depth {
                self.complete();
            }
            let member = self.choose(&vec![*at; self.members.len()]).expect("a readable copy");
            self.send(member, *at, IoKind::Read);
            chosen += &member.to_string();
        }
        chosen
    }
}

fn reads(policy: &str, traits: &[MemberTraits], depth: usize, at: &[u64]) -> String {
    Mirror::new(policy.parse().expect("a policy"), traits).reads(depth, at)
}

const MILLION: u64 = 1_000_000;

fn random(count: usize) -> Vec<u64> {
    [5, 1, 2, 3, 9, 8, 4, 7][..count].iter().map(|at| at * MILLION).collect()
}

fn stream(start: u64, count: u64) -> Vec<u64> {
    (0..count).map(|read| start + LEN.0 * read).collect()
}

/// Two streams, read in turn.
fn streams(count: u64) -> Vec<u64> {
    let (one, other) = (stream(MILLION, count), stream(9 * MILLION, count));
    one.into_iter().zip(other).flat_map(|(a, b)| [a, b]).collect()
}

/// The heart of it: what each policy does with one and the same requests. Columns: random reads at
/// depth 1 on 2 and on 3 members; one stream; two streams in turn on 2 and on 3 members, all at
/// depth 1; random reads at depth 4 on 2 members.
#[test]
fn policies_differ_completely() {
    let table = [
        // Nothing in flight: nearest head (of equals the first); a stream keeps its member, and two
        // take one each. Depth 4: fewest in flight first.
        ["least-busy", "011100", "011100", "000000", "00101010", "00101010", "01100110"],
        // Rule 4: idle ones win downwards. Rule 3: one stream stays; two break each other's, on 3
        // members for good. Depth 4: 5M and 1M find an idle one; 2M and 3M both busy, equal, so stay
        // (rule 4); 9M and 7M find an idle one; 8M and 4M go to the nearer head.
        ["md-2.6", "101010", "210210", "111111", "10101010", "21021021", "10001110"],
        // Rule 3: the first idle one, always. Depth 4: 1M, 8M find 1 idle; the others go to the
        // nearest head of completed requests (rule 4).
        ["md", "000000", "000000", "000000", "00000000", "00000000", "01000100"],
        ["gmirror-round-robin", "010101", "012012", "010101", "01010101", "01201201", "01010101"],
        // Each once (delay zero), then the quickest, 0. Depth 4: all to 0 until it completes one.
        ["gmirror-load-2004", "010000", "012000", "010000", "01000000", "01200000", "00001111"],
        // The last of equals; a load of 32 sends the next elsewhere; the bonus of 512 keeps streams.
        // Loads before each read at depth 4: 0 0, 0 32, 32 60, 92 84, 144 137, 190 183, 198 256,
        // 205 320.
        ["gmirror-load", "101010", "210210", "111111", "10101010", "21212121", "10011100"],
        // Reads of 4,096 bytes are not cut: round-robin.
        ["gmirror-split", "010101", "012012", "010101", "01010101", "01201201", "01010101"],
        // Equal priorities: the first.
        ["gmirror-prefer", "000000", "000000", "000000", "00000000", "00000000", "00000000"],
    ];
    for [policy, random2, random3, stream2, streams2, streams3, deep] in table {
        let (two, three) = ([HDD; 2], [HDD; 3]);
        let is = |what: &str, traits, depth, at: Vec<u64>, expected: &str| {
            assert_eq!(reads(policy, traits, depth, &at), expected, "{policy}, {what}");
        };
        is("random on 2", &two[..], 1, random(6), random2);
        is("random on 3", &three[..], 1, random(6), random3);
        is("one stream", &two[..], 1, stream(MILLION, 6), stream2);
        is("two streams on 2", &two[..], 1, streams(4), streams2);
        is("two streams on 3", &three[..], 1, streams(4), streams3);
        is("depth 4", &two[..], 4, random(8), deep);
    }
}

/// least-busy on single decisions.
#[test]
fn least_busy_follows_its_rule() {
    let choose = |of: &[(u64, u32, u64)]| {
        let mut mirror = Mirror::new(ReadPolicy::LeastBusy, &[HDD; 2]);
        mirror.members = of.iter().map(|one| (true, one.1, Sector(one.2))).collect();
        mirror.choose(&of.iter().map(|one| one.0).chain([0]).collect::<Vec<_>>())
    };
    assert_eq!(choose(&[]), None);
    assert_eq!(choose(&[(8, 0, 0), (8, 5, 8)]), Some(1), "a stream stays on its member");
    assert_eq!(choose(&[(8, 1, 0), (8, 0, 100)]), Some(1), "the idle one");
    assert_eq!(choose(&[(50, 1, 40), (50, 1, 55)]), Some(1), "the nearest of equals");
    assert_eq!(choose(&[(50, 1, 40), (50, 1, 60)]), Some(0), "the first of equals");
}

/// md-2.6 rules 1 to 5 where the big table does not reach.
#[test]
fn md_of_2_6_in_detail() {
    let policy = ReadPolicy::Md26;
    // Rule 1, and rule 5 after it: the stream goes on where it was read.
    let mut mirror = Mirror::new(policy, &[HDD; 3]);
    mirror.unsynced = true;
    assert_eq!(mirror.reads(1, &random(3)), "000");
    mirror.unsynced = false;
    assert_eq!(mirror.reads(1, &stream(2 * MILLION + 8, 2)), "00");

    // Rule 2: the start skips downwards from a lost member, and is then not visited again itself,
    // so that an idle 1 does not win at once: 0, as near and busy, loses the tie to the start.
    let mut mirror = Mirror::new(policy, &[HDD; 3]);
    assert_eq!(mirror.reads(8, &random(1)), "2");
    mirror.members[2].0 = false;
    mirror.send(0, MILLION, IoKind::Write);
    assert_eq!(mirror.choose(&[7 * MILLION; 3]), Some(1));
    let mut mirror = Mirror::new(policy, &[HDD; 3]);
    assert_eq!(mirror.reads(8, &random(1)), "2");
    mirror.members[2].0 = false;
    mirror.send(0, 7 * MILLION - 100, IoKind::Write);
    mirror.in_flight.rotate_left(1);
    mirror.complete();
    mirror.send(0, 0, IoKind::Write);
    assert_eq!(mirror.choose(&[7 * MILLION; 3]), Some(0), "nearer than the idle start");

    // Rule 3, second half: at the head of the start, though the array's last read ended elsewhere.
    // Heads are ends of completed requests, of writes too, and flushes leave them alone.
    let mut mirror = Mirror::new(policy, &[HDD; 2]);
    assert_eq!(mirror.reads(1, &random(1)), "1");
    mirror.send(1, 300, IoKind::Write);
    mirror.send(1, 900, IoKind::Other);
    let mut early = Mirror { state: mirror.state.clone(), in_flight: VecDeque::new(), ..mirror };
    assert_eq!(early.choose(&[308; 2]), Some(0), "the write has not completed");
    let mut mirror = Mirror::new(policy, &[HDD; 2]);
    assert_eq!(mirror.reads(1, &random(1)), "1");
    mirror.send(1, 300, IoKind::Write);
    mirror.send(1, 900, IoKind::Other);
    (0..3).for_each(|_| mirror.complete());
    assert_eq!(mirror.choose(&[308; 2]), Some(1));

    // Rule 3, first half: a stream with several reads in flight stays, though the other is idle.
    assert_eq!(reads("md-2.6", &[HDD; 2], 4, &stream(MILLION, 3)), "111");

    // Rule 4: the member of the last read comes last, and wins if it alone is idle.
    let mut mirror = Mirror::new(policy, &[HDD; 2]);
    assert_eq!(mirror.reads(1, &random(1)), "1");
    mirror.send(0, 7 * MILLION, IoKind::Write);
    (0..2).for_each(|_| mirror.complete());
    mirror.send(0, 0, IoKind::Other);
    assert_eq!(mirror.choose(&[7 * MILLION; 2]), Some(1), "not the nearest");

    // Rule 4: distances of 2^31 sectors wrap; 2^32 + 4 away is as near as 4.
    let mut mirror = Mirror::new(policy, &[HDD; 2]);
    mirror.send(0, (1 << 32) + MILLION - 4, IoKind::Write);
    mirror.send(1, MILLION - 28, IoKind::Write);
    (0..2).for_each(|_| mirror.complete());
    (0..2).for_each(|member| mirror.send(member, 0, IoKind::Other));
    assert_eq!(mirror.choose(&[MILLION; 2]), Some(0), "4 wins over 20");
}

/// md on raid1, rules 1 to 4 where the big table does not reach.
#[test]
fn md_of_today_on_raid1_in_detail() {
    // Rule 3: any non-rotational member, and the fewest in flight count, not the nearest.
    for traits in [[SSD, SSD], [HDD, SSD]] {
        assert_eq!(reads("md", &traits, 4, &random(8)), "01010101");
        assert_eq!(reads("md", &traits, 1, &random(6)), "000000", "depth 1 is the same");
    }
    // Rule 2: two streams at depth 2 find a member each and stay there.
    assert_eq!(reads("md", &[HDD; 2], 2, &streams(4)), "01010101");

    // Rule 2, the exception: 16 sectors in sequence are not more than 16, 24 are; then an idle
    // member is preferred, and has the stream for as long.
    let fussy = MemberTraits { optimal_io: Sectors(16), ..SSD };
    assert_eq!(reads("md", &[fussy; 2], 1, &stream(MILLION, 3)), "000");
    let mut mirror = Mirror::new(ReadPolicy::Md, &[fussy; 2]);
    assert_eq!(mirror.reads(1, &stream(MILLION, 8)), "00011100");
    let rotational = MemberTraits { rotational: true, ..fussy };
    assert_eq!(reads("md", &[rotational; 2], 1, &stream(MILLION, 8)), "00000000");
    // No member idle: the stream stays, though the other has fewer in flight.
    let mut mirror = Mirror::new(ReadPolicy::Md, &[fussy; 2]);
    assert_eq!(mirror.reads(1, &stream(MILLION, 3)), "000");
    mirror.send(1, 0, IoKind::Write);
    mirror.send(0, 0, IoKind::Other);
    assert_eq!(mirror.choose(&[MILLION + 24; 2]), Some(0));

    // Rule 1: where a resync has not come by, the first, busy or not; with it begins a sequence.
    let mut mirror = Mirror::new(ReadPolicy::Md, &[HDD; 2]);
    mirror.unsynced = true;
    assert_eq!(mirror.reads(4, &random(4)), "0000");
    // Heads: of completed requests, writes too.
    let mut mirror = Mirror::new(ReadPolicy::Md, &[HDD; 2]);
    mirror.send(1, MILLION, IoKind::Write);
    assert_eq!(mirror.choose(&[MILLION + 8; 2]), Some(0), "not completed");
    let mut mirror = Mirror::new(ReadPolicy::Md, &[HDD; 2]);
    mirror.send(1, MILLION, IoKind::Write);
    mirror.send(1, 77, IoKind::Other);
    (0..2).for_each(|_| mirror.complete());
    assert_eq!(mirror.choose(&[MILLION + 8; 2]), Some(1));
}

/// md on raid10: (traits, kind, in flight, heads of completed requests, addresses) and the choice.
#[test]
fn md_of_today_on_raid10() {
    let near_and_far = CopyKind::Raid10 { near: true, far: true };
    let neither = CopyKind::Raid10 { near: false, far: false };
    let (hdds, mixed) = ([HDD; 2], [HDD, SSD]);
    let table = [
        (hdds, RAID10_NEAR, [0, 0], [0, 500], [500, 500], 0, "the first idle slot is nearest"),
        (hdds, RAID10_NEAR, [2, 0], [500, 0], [600, 600], 1, "idle beats near"),
        (hdds, RAID10_NEAR, [2, 0], [500, 0], [500, 500], 0, "at the head is as near as idle"),
        (hdds, RAID10_NEAR, [1, 9], [0, 500], [600, 600], 1, "none idle: the nearest head"),
        (hdds, RAID10_NEAR, [1, 1], [500, 500], [600, 600], 0, "of equals the first"),
        (hdds, RAID10_FAR, [0, 0], [9000, 0], [9000, 100], 1, "the lowest member address"),
        (hdds, RAID10_FAR, [0, 9], [9000, 0], [9000, 100], 1, "busy or not"),
        (hdds, RAID10_FAR, [0, 0], [0, 9000], [100, 9000], 0, "even against a head"),
        (hdds, near_and_far, [3, 0], [0, 0], [50, 9000], 1, "idle counts with near copies"),
        (hdds, near_and_far, [3, 1], [0, 9000], [50, 9000], 0, "else the lowest address"),
        (hdds, neither, [0, 0], [0, 500], [600, 600], 1, "the nearest head"),
        (mixed, RAID10_NEAR, [2, 1], [600, 0], [600, 600], 1, "non-rotational: fewest in flight"),
        (mixed, RAID10_FAR, [1, 1], [0, 0], [9000, 100], 0, "of equals the first"),
    ];
    for (traits, kind, pending, heads, at, expected, why) in table {
        let mut mirror = Mirror::new(ReadPolicy::Md, &traits);
        for (member, head) in (0..).zip(heads) {
            mirror.send(member, 0, IoKind::Write);
            mirror.in_flight[0].0.at = Sector(head);
            mirror.in_flight[0].0.len = Sectors::ZERO;
            mirror.complete();
            mirror.members[usize::from(member)].1 = pending[usize::from(member)];
        }
        mirror.kind = kind;
        assert_eq!(mirror.choose(&at), Some(expected), "{why}: {kind:?} {pending:?} {heads:?}");
        mirror.unsynced = true;
        assert_eq!(mirror.choose(&at), Some(0), "unsynced: the first");
    }
}

/// gmirror-round-robin: the next *readable* member after that of the read before.
#[test]
fn round_robin_skips_lost_members() {
    let mut mirror = Mirror::new(ReadPolicy::GmirrorRoundRobin, &[HDD; 4]);
    assert_eq!(mirror.reads(1, &random(1)), "0");
    mirror.members[1].0 = false;
    assert_eq!(mirror.reads(1, &random(5)), "23023");
    mirror.members[3].0 = false;
    mirror.members[1].0 = true;
    assert_eq!(mirror.reads(1, &random(4)), "0120");
}

/// gmirror-load-2004: 2 seconds of disuse, and the delay of the last request, whatever it was.
#[test]
fn the_load_of_2004_tries_the_disused() {
    let mut mirror = Mirror::new(ReadPolicy::GmirrorLoad2004, &[HDD; 2]);
    assert_eq!(mirror.reads(1, &random(3)), "010");
    mirror.complete();
    // Member 1 was sent its read at 5 ms: 2 s of disuse end at 2,005 ms. Member 0 is kept in use.
    mirror.now = Time(1_999_000_000);
    assert_eq!(mirror.reads(1, &random(1)), "0");
    mirror.now = Time(2_004_999_999);
    assert_eq!(mirror.choose(&[0; 2]), Some(0));
    mirror.now = Time(2_005_000_000);
    assert_eq!(mirror.choose(&[0; 2]), Some(1), "disused for 2 s");
    // Of several disused the first; disuse wins over a delay.
    mirror.now = Time(9_000_000_000);
    assert_eq!(mirror.choose(&[0; 2]), Some(0));
    // A slow write makes its member look slow.
    let mut mirror = Mirror::new(ReadPolicy::GmirrorLoad2004, &[HDD; 2]);
    assert_eq!(mirror.reads(1, &random(3)), "010");
    mirror.complete();
    mirror.send(0, 0, IoKind::Write);
    mirror.now = mirror.now + Nanos::from_millis(2);
    mirror.complete();
    assert_eq!(mirror.choose(&[0; 2]), Some(1), "7 ms against 6 ms");
}

/// gmirror-load: the bonuses and their bounds, and what writes do.
#[test]
fn the_load_of_today_has_its_bonuses() {
    let after_one = |writes: u64| {
        let mut mirror = Mirror::new(ReadPolicy::GmirrorLoad, &[HDD; 2]);
        (0..writes).for_each(|_| mirror.send(1, 0, IoKind::Write));
        mirror.send(1, MILLION - 8, IoKind::Read);
        mirror
    };
    // Load 32 of member 1, less 256 within 1 MiB (2,048 sectors) either way of its last offset.
    for (at, expected) in [
        (MILLION, 1),
        (MILLION + 2047, 1),
        (MILLION + 2048, 0),
        (MILLION - 2047, 1),
        (MILLION - 2048, 0),
    ] {
        assert_eq!(after_one(0).choose(&[at; 2]), Some(expected), "{at}");
    }
    // With w writes the load is 32 (w + 1): 256 at 7, which nearness outweighs (the last of equals),
    // 288 at 8, which it does not; 512 at 15 and 544 at 16 against the bonus of a stream.
    for (writes, near, stream) in [(7, 1, 1), (8, 0, 1), (15, 0, 1), (16, 0, 0)] {
        assert_eq!(after_one(writes).choose(&[MILLION + 8; 2]), Some(near), "{writes} writes");
        assert_eq!(after_one(writes).choose(&[MILLION; 2]), Some(stream), "{writes} writes");
    }
    // The loads of the depth 4 column of the big table, before each read.
    let mut mirror = Mirror::new(ReadPolicy::GmirrorLoad, &[HDD; 2]);
    let mut loads = Vec::new();
    for at in random(8) {
        let mut key = Vec::new();
        mirror.state.add_to_key(mirror.now, &mut |value| key.push(value));
        loads.push((key[2], key[5]));
        mirror.reads(4, &[at]);
    }
    let expected =
        [(0, 0), (0, 32), (32, 60), (92, 84), (144, 137), (190, 183), (198, 256), (205, 320)];
    assert_eq!(loads, expected);

    // A write moves no last offset and ages no load; completed, it no longer counts.
    let mut mirror = after_one(8);
    mirror.send(0, MILLION - 8, IoKind::Write);
    assert_eq!(mirror.choose(&[MILLION; 2]), Some(1));
    (0..9).for_each(|_| mirror.complete());
    // Member 1: 288 * 7 / 8 = 252; member 0, one write and this read in flight: 64.
    mirror.send(0, 5 * MILLION, IoKind::Read);
    assert_eq!(mirror.choose(&[MILLION + 8; 2]), Some(1), "252 - 256 against 64");
    assert_eq!(mirror.choose(&[3 * MILLION; 2]), Some(0), "252 against 64");
}

/// gmirror-split: length / members rounded up to a block, one part a member.
#[test]
fn split_cuts_what_is_longer_than_the_slice() {
    // Slice, length, block, readable members, part and parts.
    let table = [
        (8, 8, 1, 2, None),
        (8, 9, 1, 2, Some((5, 2))),
        (8, 16, 1, 2, Some((8, 2))),
        (8, 16, 1, 3, Some((6, 3))),
        (8, 16, 8, 3, Some((8, 2))),
        (8, 24, 8, 2, Some((16, 2))),
        (32, 32, 1, 2, None),
        (32, 33, 1, 2, Some((17, 2))),
        (8, 64, 1, 1, None),
        (1, 8, 8, 2, None),
    ];
    for (slice, len, block, copies, expected) in table {
        let policy = ReadPolicy::GmirrorSplit { slice: Sectors(slice) };
        let state = PolicyState::new(policy, &[HDD; 3]);
        let cut = state.split(Sectors(len), Sectors(block), idle(copies));
        let expected = expected.map(|(part, parts)| Split { part: Sectors(part), parts });
        assert_eq!(cut, expected, "{len} over {copies}, slice {slice}, block {block}");
    }
    for policy in ReadPolicy::ALL {
        let cuts = PolicyState::new(policy, &[HDD; 2]).split(Sectors(64), Sectors(1), idle(2));
        assert_eq!(cuts.is_some(), policy.name() == "gmirror-split", "{policy}");
    }
    // Part i is for the i-th readable member, and cutting leaves the turn alone.
    let traits = [HDD, HDD, MemberTraits { write_mostly: true, ..HDD }, HDD];
    let policy = ReadPolicy::GmirrorSplit { slice: DEFAULT_SLICE };
    let mut mirror = Mirror::new(policy, &traits);
    assert_eq!(mirror.reads(1, &random(1)), "0");
    let readable = || idle(4).skip(1);
    let cut = mirror.state.split(Sectors(64), Sectors(1), readable());
    assert_eq!(cut, Some(Split { part: Sectors(32), parts: 2 }), "2 is write-mostly");
    let copies = [0, 1, 2].map(|part| mirror.state.part_copy(part, readable()));
    assert_eq!(copies, [Some(1), Some(3), None]);
    assert_eq!(mirror.reads(1, &random(3)), "130");
}

/// Idle members with a copy at sector 0.
fn idle(count: u16) -> impl Iterator<Item = CopyCandidate> + Clone {
    (0..count).map(|copy| CopyCandidate {
        copy,
        member: MemberIndex(copy),
        at: Sector(0),
        pending: 0,
        head: Sector(0),
    })
}

/// gmirror-prefer: the highest priority, of equals the first, while it can be read.
#[test]
fn prefer_reads_the_highest_priority() {
    let priority = |priority| MemberTraits { priority, ..HDD };
    let mut mirror =
        Mirror::new(ReadPolicy::GmirrorPrefer, &[priority(1), priority(200), priority(200)]);
    assert_eq!(mirror.reads(4, &random(6)), "111111");
    mirror.members[1].0 = false;
    assert_eq!(mirror.reads(4, &random(2)), "22");
    mirror.members[2].0 = false;
    assert_eq!(mirror.reads(4, &random(2)), "00");
}

/// graid3: which members a read takes.
#[test]
fn graid3_reads_parity_by_its_mode() {
    use ParityRead::{Plain, Skip, Verify};
    let run = |policy, data, complete: &[bool]| {
        let mut state = PolicyState::new(policy, &[HDD; 5]);
        complete.iter().map(|complete| state.parity_read(*complete, data)).collect::<Vec<_>>()
    };
    assert_eq!(run(ReadPolicy::Graid3Plain, 4, &[true; 3]), [Plain; 3]);
    assert_eq!(run(ReadPolicy::LeastBusy, 4, &[true; 3]), [Plain; 3]);
    assert_eq!(run(ReadPolicy::Graid3Verify, 4, &[true, false, true]), [Verify, Plain, Verify]);
    // Cyclic over the data members; after the last, one read without parity.
    assert_eq!(
        run(ReadPolicy::Graid3RoundRobin, 2, &[true; 7]),
        [Skip(0), Skip(1), Plain, Skip(0), Skip(1), Plain, Skip(0)]
    );
    // Only when complete; the counter stands meanwhile.
    assert_eq!(
        run(ReadPolicy::Graid3RoundRobin, 4, &[true, false, false, true, true, true, true, true]),
        [Skip(0), Plain, Plain, Skip(1), Skip(2), Skip(3), Plain, Skip(0)]
    );
}

/// Write-mostly members are the last resort, and of them the first, under every policy.
#[test]
fn write_mostly_is_the_last_resort() {
    let mostly = MemberTraits { write_mostly: true, ..HDD };
    for policy in ReadPolicy::ALL.into_iter().filter(|p| p.check_copies(CopyKind::Raid1).is_ok()) {
        let mut mirror = Mirror::new(policy, &[mostly, HDD, mostly]);
        assert_eq!(mirror.reads(4, &random(6)), "111111", "{policy}");
        mirror.members[1].0 = false;
        assert_eq!(mirror.reads(4, &random(6)), "000000", "{policy}");
        mirror.members = vec![(false, 0, Sector(0)); 3];
        assert_eq!(mirror.choose(&[0; 3]), None, "{policy}");
        // Where a resync has not come by, md's first is the first of all.
        let mut mirror = Mirror::new(policy, &[mostly, HDD, mostly]);
        mirror.unsynced = true;
        let first = if policy.name().starts_with("md") { Some(0) } else { Some(1) };
        assert_eq!(mirror.choose(&[MILLION; 3]), first, "{policy}");
    }
}

/// Names read back as what they are; what is not a name says what is.
#[test]
fn names_are_read_and_written() {
    for policy in ReadPolicy::ALL {
        assert_eq!(policy.to_string(), policy.name());
        assert_eq!(policy.name().parse(), Ok(policy));
    }
    assert_eq!(ReadPolicy::default().name(), "least-busy");
    let sliced = ReadPolicy::GmirrorSplit { slice: Sectors(128) };
    assert_eq!(sliced.to_string(), "gmirror-split(64KiB)");
    assert_eq!("gmirror-split(64K)".parse(), Ok(sliced));
    assert_eq!("gmirror-split(4096)".parse::<ReadPolicy>().unwrap().to_string(), "gmirror-split");
    for (text, says) in [
        ("", "there are least-busy, md-2.6, md"),
        ("MD", "`MD` is not a read policy"),
        ("md(64K)", "is not a read policy"),
        ("gmirror-split(0)", "a multiple of 512 bytes"),
        ("gmirror-split(1000)", "a multiple of 512 bytes"),
        ("gmirror-split(much)", "`much` is not a size"),
    ] {
        let error = text.parse::<ReadPolicy>().expect_err(text);
        assert!(error.contains(says), "{text}: {error}");
    }
}

/// A rule is refused where it is not defined.
#[test]
fn policies_fit_levels() {
    for policy in ReadPolicy::ALL {
        let name = policy.name();
        let (graid3, any) = (name.starts_with("graid3"), name == "least-busy");
        assert_eq!(policy.check_copies(CopyKind::Raid1).is_ok(), !graid3, "{name}");
        let raid10 = any || name == "md";
        assert_eq!(policy.check_copies(RAID10_NEAR).is_ok(), raid10, "{name}");
        assert_eq!(policy.check_copies(RAID10_FAR).is_ok(), raid10, "{name}");
        assert_eq!(policy.check_raid3().is_ok(), graid3 || any, "{name}");
    }
    let error = ReadPolicy::Md26.check_copies(RAID10_NEAR).expect_err("raid1 only");
    assert_eq!(error, "md-2.6 is the rule of raid1; for raid10 take md or least-busy");
}

/// Equal histories give equal keys and clones go on alike; every choice that depends on the past
/// shows in the key; the number of values does not change.
#[test]
fn keys_hold_what_decides() {
    let key = |mirror: &Mirror| {
        let mut values = Vec::new();
        mirror.state.add_to_key(mirror.now, &mut |value| values.push(value));
        values
    };
    for policy in ReadPolicy::ALL.into_iter().filter(|p| p.check_copies(CopyKind::Raid1).is_ok()) {
        let fresh = Mirror::new(policy, &[HDD; 3]);
        let (mut one, mut other) = (Mirror::new(policy, &[HDD; 3]), Mirror::new(policy, &[HDD; 3]));
        one.reads(2, &random(7));
        other.reads(2, &random(7));
        assert_eq!(key(&one), key(&other), "{policy}");
        assert_eq!(key(&one).len(), key(&fresh).len(), "{policy}");
        let remembers = !["least-busy", "gmirror-prefer"].contains(&policy.name());
        assert_eq!(key(&one) != key(&fresh), remembers, "{policy}");
        other.state = one.state.clone();
        assert_eq!(one.reads(2, &streams(4)), other.reads(2, &streams(4)), "{policy}");
    }
    let mut raid3 = PolicyState::new(ReadPolicy::Graid3RoundRobin, &[HDD; 3]);
    let mut values = Vec::new();
    raid3.add_to_key(Time::ZERO, &mut |value| values.push(value));
    raid3.parity_read(true, 2);
    raid3.add_to_key(Time::ZERO, &mut |value| values.push(value));
    assert_eq!(values, [0, 1]);
}

/// md: where a sequence began is in the key where an optimal size makes it decide, and only there.
#[test]
fn where_a_sequence_began_is_in_the_key_where_it_decides() {
    let sized = |traits| MemberTraits { optimal_io: LEN, ..traits };
    for (traits, decides) in [(sized(SSD), true), (SSD, false), (sized(HDD), false)] {
        // One read, or the second of a sequence: both end at the same sector.
        let after = |at: &[u64]| {
            let mut mirror = Mirror::new(ReadPolicy::Md, &[traits; 2]);
            mirror.reads(1, at);
            mirror.complete();
            let mut key = Vec::new();
            mirror.state.add_to_key(mirror.now, &mut |value| key.push(value));
            (key, mirror.choose(&[MILLION + 16; 2]))
        };
        let (one, other) = (after(&[MILLION + 8]), after(&[MILLION, MILLION + 8]));
        assert_eq!(one.0 != other.0, decides, "{traits:?}");
        assert_eq!(one.1 != other.1, decides, "{traits:?}");
    }
}
