//! A record of several parts, of which an early one cannot be written: md's list of bad blocks that fills more than one
//! block, before the superblock that says that it counts.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use crate::made::{creation, name, pattern};
use raidlab_core::contract::{Event, IoOp, IoOutcome};
use raidlab_core::{MemberIndex, Sector, Sectors};
use raidlab_engine::{Engine, MdOptions, Member, MemberRequest, MemberStore, MemoryMember};
use raidlab_metadata::md::{Creation, Version, WantedBitmap, inspect};

const SECTORS: u64 = 8192;
/// Places that the source cannot read: more than a block of 512 bytes has entries of 8 bytes.
const BAD: u64 = 70;

/// A drive that cannot read some places, does not take the n-th write to a range, and remembers where it was written.
#[derive(Clone)]
struct Drive(Arc<Mutex<State>>);

struct State {
    bytes: Vec<u8>,
    /// First sectors of blocks of 8 that cannot be read.
    bad: BTreeSet<u64>,
    /// Where a write is refused, and how many of those there are taken before.
    refuses: Option<(Range<u64>, u32)>,
    /// First sectors of all writes that were asked for; those that came before the refusal are forgotten.
    writes: Vec<u64>,
    has_refused: bool,
}

impl Drive {
    fn new(bytes: Vec<u8>) -> Self {
        let (bad, writes) = (BTreeSet::new(), Vec::new());
        Self(Arc::new(Mutex::new(State { bytes, bad, refuses: None, writes, has_refused: false })))
    }
}

impl MemberStore for Drive {
    fn sectors(&self) -> Sectors {
        Sectors(SECTORS)
    }

    fn submit(&mut self, request: MemberRequest) {
        let mut state = self.0.lock().unwrap();
        let (from, to) = (request.at().0, request.at().0 + request.len().0);
        let range = (from * 512) as usize..(to * 512) as usize;
        match request.op() {
            IoOp::Read => {
                if let Some(bad) = state.bad.range(from.saturating_sub(7)..to).next() {
                    let first_bad = Sector(from.max(*bad));
                    return request.complete(IoOutcome::MediaError { first_bad });
                }
                return request.complete_read(&state.bytes[range]);
            }
            IoOp::Write => {
                state.writes.push(from);
                if let Some((refused, before)) = &mut state.refuses
                    && refused.contains(&from)
                    // Not the empty list of a fresh device.
                    && request.payload().iter().any(|byte| *byte != 0xff)
                {
                    if *before == 0 {
                        state.refuses = None;
                        state.writes.clear();
                        state.has_refused = true;
                        let first_bad = Sector(from);
                        return request.complete(IoOutcome::MediaError { first_bad });
                    }
                    *before -= 1;
                }
                state.bytes[range].copy_from_slice(request.payload());
            }
            _ => {}
        }
        request.complete(IoOutcome::Ok);
    }
}

/// The two devices of a new mirror.
fn mirror() -> [Vec<u8>; 2] {
    let creation = creation("raid1(2)".parse().unwrap(), SECTORS);
    let (version, bitmap) = (Version::V1_2, WantedBitmap::None);
    let name = name(version);
    let plan = Creation { version, bitmap, assume_clean: true, name, ..creation }.plan().unwrap();
    let mut devices = plan.members.iter().flatten().map(|made| {
        let mut bytes = pattern((SECTORS * 512) as usize, 9);
        bytes[..2048 * 512].fill(0);
        for (at, piece) in &made.pieces {
            bytes[at.bytes() as usize..][..piece.len()].copy_from_slice(piece);
        }
        bytes
    });
    [(); 2].map(|()| devices.next().unwrap())
}

/// What is seen on a device.
fn seen(bytes: &[u8]) -> raidlab_metadata::md::Inspected {
    let mut member = MemoryMember::new(Sectors(SECTORS)).unwrap();
    member.bytes_mut().copy_from_slice(bytes);
    inspect(&mut Member::Memory(member))
}

/// A rebuild from a drive that has lost many places onto one that does not take the part `part` of the list of them;
/// `None` takes all. Gives the engine, its events, the new drive, and where data begin on it.
fn rebuilt(part: Option<u32>) -> (Engine, Vec<Event>, Drive, u64) {
    let [source, other] = mirror();
    let found = seen(&source);
    let one = found.superblock().unwrap();
    let (start, list) = (one.data_offset, one.beside(one.bad_blocks.offset).unwrap().0);
    let source = Drive::new(source);
    source.0.lock().unwrap().bad = (0..BAD).map(|place| start + 104 + place * 32).collect();
    let fresh = Drive::new(vec![0x55; other.len()]);
    fresh.0.lock().unwrap().refuses = part.map(|part| (list..list + 8, part));
    let members = vec![Member::from(source), Member::from(Drive::new(other))];
    let mut engine = Engine::assemble_md(members, &MdOptions::default()).unwrap().0;
    engine.fail(MemberIndex(1)).unwrap();
    engine.add(MemberIndex(1), Member::from(fresh.clone())).unwrap();
    // A rebuild whose member fails ends as an error, or without its member.
    let _ = engine.finish_background(&AtomicBool::new(false));
    let events = engine.take_events();
    (engine, events, fresh, start)
}

/// All is well without a refusal: the list stands in two blocks and names each place.
#[test]
fn a_list_of_several_blocks_is_written_before_its_superblock() {
    let (mut engine, events, fresh, _) = rebuilt(None);
    assert!(events.contains(&Event::Restored(MemberIndex(1))), "{events:?}");
    engine.stop().unwrap();
    let found = seen(&fresh.0.lock().unwrap().bytes);
    let listed: Vec<_> = (0..BAD).map(|place| (Sector(104 + place * 32), Sectors(8))).collect();
    assert_eq!(found.bad, Some(listed));
    assert_eq!(found.superblock().unwrap().rebuilt_to(), None, "in service");
}

/// Whichever part of it cannot be written: none of the later parts follows, least of all the superblock, and the member
/// is out of service, as what it did not list would be read from it as good.
#[test]
fn a_member_whose_list_is_not_whole_is_not_in_service() {
    for part in [0, 1] {
        let (mut engine, events, fresh, start) = rebuilt(Some(part));
        assert!(fresh.0.lock().unwrap().has_refused, "part {part} was written");
        assert!(events.contains(&Event::MemberFailed(MemberIndex(1))), "{part}: {events:?}");
        assert!(!events.contains(&Event::Restored(MemberIndex(1))), "{part}: {events:?}");
        engine.stop().unwrap();
        let state = fresh.0.lock().unwrap();
        let late: Vec<_> = state.writes.iter().filter(|at| **at < start).collect();
        assert!(late.is_empty(), "{part}: metadata written after the refused part, at {late:?}");
        let found = seen(&state.bytes);
        let says = found.superblock().map(|one| one.rebuilt_to());
        assert_ne!(says, Some(None), "{part}: its superblock says that it is whole");
    }
}
