//! Reading the records of a device back, each place told by what stands there.

use raidlab_core::consistency::{Carried, Examined, Finding, MetaArea, RECORD};
use raidlab_core::contract::Record;
use raidlab_core::{SECTOR_BYTES, Sector, Sectors};

use crate::checksum::Checksum;
use crate::record::{self, Stands};
use crate::{ArrayId, Label, Looked, Places, Source, Unreadable, log, superblock};

/// A device is read in runs of this many sectors (1 MiB).
const RUN: u64 = 2048;
const SECTOR: usize = SECTOR_BYTES as usize;

const FIRST_VERSION: &str = "raidlab's format 1, of raidlab 0.1.0, which this version does not \
     read: copy what the array holds with raidlab 0.1.0";
const OTHER_VERSION: &str = "a format of raidlab's that is newer than this version reads";

/// Whose device this is, as its superblock says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whose {
    pub(super) array: ArrayId,
    /// The place of a member, or the log device.
    pub(super) place: u16,
}

impl Whose {
    /// Whether a record, other than a superblock, was written for this device.
    pub(super) fn wrote(self, label: &Label) -> bool {
        label.array == self.array && label.device == self.place
    }
}

/// Sectors of a device, read in runs.
pub(super) struct Reader<'a> {
    device: &'a mut dyn Source,
    run: Vec<u8>,
    /// Where the run starts, and how many sectors it has.
    from: u64,
    len: u64,
    /// These sectors cannot be read as a whole.
    bad: (u64, u64),
    total: u64,
    block: u64,
}

impl<'a> Reader<'a> {
    fn new(device: &'a mut dyn Source) -> Self {
        let (total, block) = (device.sectors().0, u64::from(device.logical_block().max(1)));
        Self { device, run: Vec::new(), from: 0, len: 0, bad: (0, 0), total, block }
    }

    /// A sector, of those up to `end` that are wanted too.
    pub(super) fn sector(&mut self, at: u64, end: u64) -> Result<&[u8], Unreadable> {
        let to = end.min(at.saturating_add(RUN)).max(at + 1);
        self.load(at, (at, to))?;
        Ok(self.loaded(at, 1))
    }

    /// A sector, of those before it that are wanted too.
    fn sector_before(&mut self, at: u64) -> Result<&[u8], Unreadable> {
        self.load(at, (at.saturating_sub(RUN), at + 1))?;
        Ok(self.loaded(at, 1))
    }

    /// The checksum of the sectors from `at` to `end`.
    pub(super) fn sum(&mut self, at: u64, end: u64) -> Result<Checksum, Unreadable> {
        let mut sum = Checksum::default();
        let mut at = at;
        while at < end {
            self.load(at, (at, end.min(at + RUN)))?;
            let len = (self.from + self.len - at).min(end - at);
            sum.add(self.loaded(at, len));
            at += len;
        }
        Ok(sum)
    }

    fn loaded(&self, at: u64, len: u64) -> &[u8] {
        &self.run[(at - self.from) as usize * SECTOR..][..len as usize * SECTOR]
    }

    /// Reads a sector, with a run around it as far as that can be read as a whole.
    fn load(&mut self, at: u64, run: (u64, u64)) -> Result<(), Unreadable> {
        let has = |range: &(u64, u64)| range.0 <= at && at < range.1;
        if has(&(self.from, self.from + self.len)) {
            return Ok(());
        }
        let block = self.block;
        let down = |at: u64| at / block * block;
        let run = (down(run.0), down(run.1 + block - 1).min(self.total));
        if !has(&self.bad) {
            if self.read(run).is_ok() {
                return Ok(());
            }
            self.bad = run;
        }
        self.read((down(at), down(at) + block))
    }

    fn read(&mut self, (from, to): (u64, u64)) -> Result<(), Unreadable> {
        (self.from, self.len) = (from, 0);
        if to > self.total || from >= to {
            return Err(Unreadable);
        }
        self.run.resize((to - from) as usize * SECTOR, 0);
        self.device.read(Sector(from), &mut self.run)?;
        self.len = to - from;
        Ok(())
    }
}

/// What stands in one of two places, with the sequence of a record.
#[derive(Clone, Debug)]
enum Place<T> {
    Unreadable,
    /// Never written.
    Blank,
    /// Made ready for a superblock.
    Vacant(u64),
    /// A record that is what it should be.
    Whole(u64, T),
    Damaged,
    Foreign,
    Unsupported(&'static str),
}

/// Everything on a device.
pub(super) fn examine(device: &mut dyn Source) -> Looked {
    let (sectors, logical_block) = (device.sectors(), device.logical_block());
    let mut examined = Examined { sectors, logical_block, ..Examined::default() };
    let mut reader = Reader::new(device);
    let mut pair = [0, 1].map(|place| superblock_at(&mut reader, sectors, place));
    if let [Place::Whole(_, one), Place::Whole(_, other)] = &pair
        && one.array != other.array
    {
        // Whichever was there first, the device was not made ready for the other.
        pair = [Place::Damaged, Place::Damaged];
    }
    let mut seen = Seen { turns: Vec::new(), sequence: 0 };
    examined.superblock = seen.newest(pair, Blanks::Damage);
    let Some(carried) = examined.superblock.readable() else {
        return Looked { examined, places: Places::default(), sequence: seen.sequence };
    };
    let whose = Whose { array: carried.array, place: superblock::place(carried) };
    let parameters = carried.parameters.clone();
    for page in 0..parameters.pages {
        let pair = [0, 1].map(|place| page_at(&mut reader, sectors, whose, (page, place)));
        examined.bitmap.push(seen.newest(pair, Blanks::Unwritten));
    }
    let (from, len) = (parameters.data.0, parameters.log.0);
    let step = u64::from(parameters.block);
    let (found, last) = log::examine(&mut reader, whose, (from, len), step);
    examined.log = found;
    let places = Places::found(sectors, &parameters, seen.turns);
    Looked { examined, places, sequence: seen.sequence.max(last) }
}

/// What a blank place beside a record is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Blanks {
    /// Both places were written before the first record.
    Damage,
    /// Each place is blank until the first record that goes there.
    Unwritten,
}

/// What was seen of records in two places.
struct Seen {
    /// Which place is the older, of each.
    turns: Vec<bool>,
    /// The largest sequence.
    sequence: u64,
}

impl Seen {
    /// What two places hold together, by what the newer one does.
    fn newest<T>(&mut self, pair: [Place<T>; 2], blanks: Blanks) -> Finding<T> {
        let sequence = |place: &Place<T>| match place {
            Place::Whole(sequence, _) | Place::Vacant(sequence) => *sequence,
            _ => 0,
        };
        let is_whole = |place: &Place<T>| matches!(place, Place::Whole(..));
        self.sequence = pair.iter().map(sequence).fold(self.sequence, u64::max);
        let [one, other] = pair;
        let one_is_newer = match (is_whole(&one), is_whole(&other)) {
            (true, true) => sequence(&one) > sequence(&other),
            (is, _) => is,
        };
        self.turns.push(one_is_newer);
        let (newer, older) = if one_is_newer { (one, other) } else { (other, one) };
        match (newer, older) {
            // Made ready since: what is left of before is not what the device holds.
            (Place::Whole(sequence, newest), Place::Vacant(ready)) if ready > sequence => {
                Finding::Damaged(Some(newest))
            }
            (Place::Whole(_, newest), Place::Whole(..) | Place::Vacant(_)) => {
                Finding::Whole(newest)
            }
            (Place::Whole(_, newest), Place::Blank) if blanks == Blanks::Unwritten => {
                Finding::Whole(newest)
            }
            (Place::Whole(_, newest), Place::Unreadable) => Finding::Unreadable(Some(newest)),
            (Place::Whole(_, newest), _) => Finding::Damaged(Some(newest)),
            (newer, older) => nothing_whole(&[newer, older]),
        }
    }
}

/// What two places are of which none holds a record that is what it should be.
fn nothing_whole<T>(pair: &[Place<T>; 2]) -> Finding<T> {
    let any = |is: fn(&Place<T>) -> bool| pair.iter().any(is);
    let version = pair.iter().find_map(|place| match place {
        Place::Unsupported(which) => Some(*which),
        _ => None,
    });
    if any(|place| matches!(place, Place::Unreadable)) {
        return Finding::Unreadable(None);
    }
    if let Some(which) = version {
        return Finding::Unsupported(which);
    }
    let is_ready = any(|place| matches!(place, Place::Vacant(_)));
    let is_foreign = any(|place| matches!(place, Place::Foreign));
    if any(|place| matches!(place, Place::Damaged)) || is_ready && is_foreign {
        return Finding::Damaged(None);
    }
    if is_foreign { Finding::Foreign } else { Finding::Blank }
}

/// What stands in a place of the superblock.
fn superblock_at(reader: &mut Reader<'_>, total: Sectors, place: u32) -> Place<Carried> {
    // A device that has no room for both places never had one.
    if total.0 < 2 * u64::from(RECORD) {
        return Place::Blank;
    }
    let at = MetaArea::superblock(total, place);
    let Ok(block) = reader.sector(at.0, at.0 + 1) else { return Place::Unreadable };
    match record::look(block) {
        Stands::Blank => Place::Blank,
        Stands::Vacant(label) if label.at == at => Place::Vacant(label.sequence),
        Stands::Record(found) if found.label.at == at => {
            let (label, Record::Superblock(superblock)) = (found.label, found.record) else {
                return Place::Damaged;
            };
            let (array, device) = (label.array, label.device);
            match superblock::parameters(block, device, total) {
                Some(parameters) => {
                    Place::Whole(label.sequence, Carried { array, device, parameters, superblock })
                }
                None => Place::Damaged,
            }
        }
        Stands::Vacant(_) | Stands::Record(_) | Stands::Damaged => Place::Damaged,
        Stands::Version(1) => Place::Unsupported(FIRST_VERSION),
        Stands::Version(_) => Place::Unsupported(OTHER_VERSION),
        Stands::Strange => Place::Foreign,
    }
}

/// What stands in a place of a page of the bitmap.
fn page_at(
    reader: &mut Reader<'_>,
    total: Sectors,
    whose: Whose,
    (page, place): (u32, u32),
) -> Place<u64> {
    let at = MetaArea::page(total, page, place);
    // Pages that follow lie before this one: a run is read from its other end.
    let Ok(block) = reader.sector_before(at.0) else { return Place::Unreadable };
    match record::look(block) {
        Stands::Blank => Place::Blank,
        Stands::Record(found) if found.label.at == at => match found.record {
            Record::BitmapPage { page: number, bits } if number == page => {
                if whose.wrote(&found.label) {
                    Place::Whole(found.label.sequence, bits)
                } else {
                    Place::Foreign
                }
            }
            _ => Place::Damaged,
        },
        _ => Place::Damaged,
    }
}
