//! What is seen of the logs on devices, and what follows for who reads the array.

use raidlab_metadata::md::{
    Allowed, Aside, Assembly, Cannot, Features, Inspected, LogSeen, PplHeader, Role, Superblock,
    assemble, inspect,
};

use super::device::{disk, raid5, seen};

/// A header of partial parity.
fn ppl(array: [u8; 16], generation: u64, entries: u32) -> Vec<u8> {
    let mut block = vec![0; 4096];
    PplHeader { signature: PplHeader::signature_of(&array), generation, entries }.emit(&mut block);
    block
}

/// A block of the journal of the arrays of these tests.
fn journal_block(used: u32, sequence: u64, position: u64) -> Vec<u8> {
    let mut block = vec![0; 4096];
    block[..4].copy_from_slice(&0x6433_c509_u32.to_le_bytes());
    block[8] = 1;
    block[12..16].copy_from_slice(&used.to_le_bytes());
    block[16..24].copy_from_slice(&sequence.to_le_bytes());
    block[24..32].copy_from_slice(&position.to_le_bytes());
    let checksum = !crc32c::crc32c_append(crc32c::crc32c(&[9; 16]), &block);
    block[4..8].copy_from_slice(&checksum.to_le_bytes());
    block
}

/// The superblock of a log device whose tail is at this sector of the ring, which has 2048.
fn journal(tail: u64) -> Superblock {
    let mut one = raid5(3, 3);
    one.roles[3] = Role::Journal;
    Superblock { features: Features::JOURNAL, recovery: tail, ..one }
}

#[test]
fn the_newest_header_of_partial_parity_counts() {
    let aside = Aside::PartialParity { offset: 16, size: 24 };
    let one = Superblock { features: Features::PPLS, aside, ..raid5(3, 0) };
    let log = |headers: &[(u64, u32)]| {
        let block = |(slot, (generation, entries)): (u64, &(u64, u32))| {
            (24 + 8 * slot, ppl(one.array, *generation, *entries))
        };
        let blocks: Vec<_> = (0..).zip(headers).map(block).collect();
        inspect(&mut disk(&one, &blocks)).log
    };
    assert_eq!(log(&[]), LogSeen::Lost);
    assert_eq!(log(&[(1, 0)]), LogSeen::Empty);
    assert_eq!(log(&[(1, 0), (2, 1)]), LogSeen::Used);
    assert_eq!(log(&[(1, 1), (2, 0)]), LogSeen::Empty);
    assert_eq!(log(&[(2, 0), (1, 1)]), LogSeen::Empty);
    assert_eq!(log(&[(1, 1), (2, 0), (3, 2)]), LogSeen::Used);
    let foreign = [(24, ppl(one.array, 1, 0)), (32, ppl([8; 16], 2, 1))];
    assert_eq!(inspect(&mut disk(&one, &foreign)).log, LogSeen::Empty);
}

#[test]
fn a_journal_is_used_when_something_in_it_would_be_replayed() {
    let log = |tail: u64, blocks: &[(u64, Vec<u8>)]| {
        let blocks: Vec<_> = blocks.iter().map(|(at, block)| (2048 + at, block.clone())).collect();
        inspect(&mut disk(&journal(tail), &blocks)).log
    };
    assert_eq!(log(64, &[]), LogSeen::Empty);
    assert_eq!(log(4096, &[]), LogSeen::Lost, "its tail is behind the device");
    assert_eq!(log(64, &[(64, journal_block(48, 7, 64))]), LogSeen::Used);
    let empty = (64, journal_block(32, 7, 64));
    assert_eq!(log(64, std::slice::from_ref(&empty)), LogSeen::Empty);
    for (sequence, expected) in
        [(6, LogSeen::Empty), (7, LogSeen::Empty), (8, LogSeen::Used), (9, LogSeen::Empty)]
    {
        let next = (72, journal_block(48, sequence, 72));
        assert_eq!(log(64, &[empty.clone(), next]), expected, "{sequence} follows 7");
    }
    // The last block of the ring is followed by the first.
    let around = [(2040, journal_block(32, 7, 2040)), (0, journal_block(48, 8, 0))];
    assert_eq!(log(2040, &around), LogSeen::Used);
}

#[test]
fn writes_in_a_journal_are_not_passed_over_in_silence() {
    let members = [0, 1, 2]
        .map(|place| Superblock { features: Features::JOURNAL, ..raid5(3, place) })
        .map(|one| seen(&one));
    let decide = |others: &[Inspected], ignore_journal: bool| -> Result<Assembly, Cannot> {
        let allowed = Allowed { ignore_journal, ..Allowed::default() };
        assemble(&[others, &members[..]].concat(), &allowed)
    };
    let used = inspect(&mut disk(&journal(0), &[(2048, journal_block(48, 7, 0))]));
    let empty = seen(&journal(0));
    let spare = seen(&Superblock { number: 4, device: [77; 16], ..raid5(3, 0) });
    // A spare beside it, before or behind it, is not taken for it.
    for others in
        [vec![used.clone()], vec![spare.clone(), used.clone()], vec![used.clone(), spare.clone()]]
    {
        assert_eq!(decide(&others, false), Err(Cannot::Log("journal")));
        let notes = decide(&others, true).unwrap().notes;
        assert!(notes.iter().any(|note| note.contains("was not replayed")), "{notes:?}");
    }
    assert_eq!(decide(&[spare.clone(), empty], false).unwrap().notes, [""; 0]);
    for others in [vec![], vec![spare]] {
        let notes = decide(&others, false).unwrap().notes;
        assert!(notes.iter().any(|note| note.contains("not among the devices")), "{notes:?}");
    }
}
