//! The words of a superblock, and whether they can be true.
//!
//! | words | what |
//! |---|---|
//! | 0 | events |
//! | 1, 2 | members out of service |
//! | 3, 4 | members being rebuilt |
//! | 5 | bit 0 clean, 1 journal in use, 2 rebuild by the bitmap |
//! | 6, 7 | rebuilt to, synced to |
//! | 8 | first number of the journal that is not retired |
//! | 9 | since when the bitmap names everything |
//! | 10 | in which of the epochs below a member left, a bit each |
//! | 11 .. 22 | the six newest epochs of the array's history, newest first: identity and the events it began at |
//! | 23, 24, 25 | sectors for data, sectors of the log, pages of the bitmap |
//! | 26 | sectors of the array's block |
//! | 27, 28 | consistency: 1 resync, 2 bitmap, 3 partial parity, 4 journal; the bit's sectors, slots, or sectors |
//! | 29 | bytes of the layout's text, which stands from byte 320 on |
//! | 30 | sectors for data of the smallest member |

use raidlab_core::consistency::{Carried, MetaArea, Parameters};
use raidlab_core::contract::{Epoch, MemberBits, Superblock};
use raidlab_core::{Consistency, Layout, Sector, Sectors, Settings};

use crate::place_of;
use crate::record::{MOST_NUMBER, SEALED, WORDS, put_words, word_at};

/// Where the layout's text begins.
const TEXT: usize = 320;
/// Pages of the largest bitmap that the array code keeps: 2^24 bits.
const MOST_PAGES: u64 = 1 << 18;
/// Sectors of the largest device: what all sums of places and lengths stay below.
const MOST_SECTORS: u64 = 1 << 54;

/// Puts down what a superblock says.
pub(super) fn put(into: &mut [u8], said: &Superblock, parameters: Option<&Parameters>) {
    let mut words = [0; 31];
    let flags = [said.clean, said.journal, said.by_bitmap];
    words[0] = said.events;
    words[1..3].copy_from_slice(&said.failed);
    words[3..5].copy_from_slice(&said.rebuilding);
    words[5] = flags.iter().rev().fold(0, |all, flag| all << 1 | u64::from(*flag));
    words[6..8].copy_from_slice(&[said.rebuilt_to.0, said.synced_to.0]);
    words[8..10].copy_from_slice(&[said.journal_tail, said.bitmap_since]);
    words[10] = u64::from(said.left);
    for (place, epoch) in words[11..23].chunks_exact_mut(2).zip(said.history) {
        place.copy_from_slice(&[epoch.id, epoch.from]);
    }
    if let Some(parameters) = parameters {
        let (mode, value) = match parameters.consistency {
            Consistency::None => (0, 0),
            Consistency::Resync => (1, 0),
            Consistency::Bitmap { chunk } => (2, chunk.0),
            Consistency::PartialParity { slots } => (3, u64::from(slots)),
            Consistency::Journal { sectors } => (4, sectors.0),
        };
        let (data, log) = (parameters.data.0, parameters.log.0);
        words[23..26].copy_from_slice(&[data, log, u64::from(parameters.pages)]);
        words[26..29].copy_from_slice(&[u64::from(parameters.block), mode, value]);
        let text = parameters.layout.as_bytes();
        // One that is longer is not put down, and is then no layout when it is read.
        if text.len() <= SEALED - TEXT {
            words[29] = text.len() as u64;
            into[TEXT..TEXT + text.len()].copy_from_slice(text);
        }
        words[30] = parameters.least.0;
    }
    put_words(into, &words);
}

/// What a superblock says of the array's state; `None` when it cannot be.
pub(super) fn said(block: &[u8]) -> Option<Superblock> {
    let word = |n: usize| word_at(block, WORDS + 8 * n);
    let flag = |n: u32| word(5) >> n & 1 == 1;
    let said = Superblock {
        events: word(0),
        failed: [word(1), word(2)],
        rebuilding: [word(3), word(4)],
        clean: flag(0),
        journal: flag(1),
        by_bitmap: flag(2),
        rebuilt_to: Sector(word(6)),
        // A replacement that is not finished is not gone on with: nothing of it is kept.
        replacing: [0; 2],
        replaced_to: Sector(0),
        synced_to: Sector(word(7)),
        journal_tail: word(8),
        bitmap_since: word(9),
        left: u8::try_from(word(10)).ok()?,
        history: std::array::from_fn(|n| Epoch { id: word(11 + 2 * n), from: word(12 + 2 * n) }),
    };
    let begun = said.history.iter().map(|epoch| epoch.from);
    let mut numbers = [said.events, said.journal_tail, said.bitmap_since].into_iter().chain(begun);
    (word(5) < 8 && numbers.all(|number| number <= MOST_NUMBER)).then_some(said)
}

/// What a superblock says of how the array was made; `None` when that cannot be, for device `device` of `total`
/// sectors.
pub(super) fn parameters(block: &[u8], device: u16, total: Sectors) -> Option<Parameters> {
    let word = |n: usize| word_at(block, WORDS + 8 * n);
    let len = usize::try_from(word(29)).ok().filter(|len| *len <= SEALED - TEXT)?;
    let text = std::str::from_utf8(&block[TEXT..TEXT + len]).ok()?;
    let layout: Layout = text.parse().ok()?;
    let consistency = match (word(27), word(28)) {
        (_, MOST_SECTORS..) => return None,
        (1, 0) => Consistency::Resync,
        (2, chunk) => Consistency::Bitmap { chunk: Sectors(chunk) },
        (3, slots) => Consistency::PartialParity { slots: u32::try_from(slots).ok()? },
        (4, sectors) => Consistency::Journal { sectors: Sectors(sectors) },
        _ => return None,
    };
    Settings { consistency, ..Settings::default() }.check(&layout).ok()?;
    let parameters = Parameters {
        layout: text.to_owned(),
        consistency,
        data: Sectors(word(23)),
        least: Sectors(word(30)),
        log: Sectors(word(24)),
        pages: u32::try_from(word(25)).ok()?,
        block: u32::try_from(word(26)).ok()?,
    };
    let sets = [[word(1), word(2)], [word(3), word(4)]];
    let can_be = fits(&parameters, total)
        && suits(&parameters, device, layout.members)
        && sets.iter().all(|set| names_members(*set, layout.members));
    can_be.then_some(parameters)
}

/// Whether a set holds only members that there are.
fn names_members(set: MemberBits, members: u16) -> bool {
    let set = u128::from(set[0]) | u128::from(set[1]) << 64;
    set.checked_shr(u32::from(members)).unwrap_or(0) == 0
}

/// The place of a member whose device this is, or that of the log device.
pub(super) fn place(carried: &Carried) -> u16 {
    let layout = carried.parameters.layout.parse::<Layout>();
    layout.map_or(carried.device, |layout| place_of(carried.device, layout.members))
}

/// Whether the room that is spoken of is there.
fn fits(parameters: &Parameters, total: Sectors) -> bool {
    let Parameters { data, least, log, pages, block, .. } = *parameters;
    let sizes = [data, least, log, total];
    // Blocks of drives are powers of two, and of 64 KiB at most.
    if sizes.iter().any(|size| size.0 > MOST_SECTORS) || !block.is_power_of_two() || block > 128 {
        return false;
    }
    let records = 16 * u64::from(pages);
    let room = MetaArea::superblock(total, 0).0.saturating_sub(records);
    u64::from(pages) <= MOST_PAGES && data.0 + log.0 <= room
}

/// Whether what is spoken of is what a device of this number has.
fn suits(parameters: &Parameters, device: u16, members: u16) -> bool {
    let Parameters { consistency, data, least, log, pages, .. } = *parameters;
    let journal = match consistency {
        Consistency::Journal { sectors } => Some(sectors),
        _ => None,
    };
    if u32::from(device) == 2 * u32::from(members) {
        return journal == Some(log) && data == Sectors::ZERO && pages == 0;
    }
    let has_log = matches!(consistency, Consistency::PartialParity { .. });
    let has_pages = matches!(consistency, Consistency::Bitmap { .. });
    u32::from(device) < 2 * u32::from(members)
        && least > Sectors::ZERO
        && least <= data
        && has_log == (log > Sectors::ZERO)
        && has_pages == (pages > 0)
}
