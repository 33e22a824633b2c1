//! Dies and channels: what each does, until when, and what it owes.

use std::collections::VecDeque;

use raidlab_core::units::{Nanos, Time};

use super::{MOST_SUSPENDS, SsdFigures, Station};
use raidlab_random::SplitMix64;

/// What a die programs or erases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Nothing,
    /// Data of the host, by their position in the order of writing.
    Host {
        from: u64,
        sectors: u64,
    },
    /// Copying for garbage collection, from pseudo-SLC to native cells, or erasing.
    Chore,
}

#[derive(Clone, Copy, Debug)]
struct Die {
    /// When the reads that are in line are done.
    read_free: Time,
    /// Programming or erasing begins and ends; reads move both.
    begin: Time,
    until: Time,
    work: Work,
    suspends: u32,
    /// Pages of each plane programmed since the last erasing.
    pages: u32,
}

/// The flash of a drive.
#[derive(Clone, Debug)]
pub(super) struct Flash {
    dies: Vec<Die>,
    channels: Vec<Station>,
    /// Dies that neither program nor erase, in the order that they came free.
    idle: VecDeque<u16>,
    busy: u64,
    /// Sectors to be copied, with 16 fractional bits; and those that come due as the cache is emptied.
    owed: u64,
    owed_by_slc: u64,
    slc_used: u64,
    turn: u64,
    unit: u64,
    slc_unit: u64,
    slc_cache: u64,
    bits: u32,
    block_pages: u32,
    page_read: Nanos,
    native: Nanos,
    slc: Nanos,
    erase: Nanos,
    suspend: Nanos,
    channel_rate: u64,
}

impl Flash {
    pub(super) fn new(f: &SsdFigures, seed: u64) -> Self {
        let die = Die {
            read_free: Time::ZERO,
            begin: Time::ZERO,
            until: Time::ZERO,
            work: Work::Nothing,
            suspends: 0,
            pages: 0,
        };
        let turn = SplitMix64::new(seed).below(u64::from(f.dies));
        // Dies have erased last at different times.
        let staggered = (0..f.dies).map(|index| Die { pages: index * 7 % f.block_pages, ..die });
        Self {
            dies: staggered.collect(),
            channels: vec![Station::default(); f.channels as usize],
            idle: (0..f.dies as u16).collect(),
            busy: 0,
            owed: 0,
            owed_by_slc: 0,
            slc_used: 0,
            turn,
            unit: f.program_unit().0,
            slc_unit: f.slc_unit().0,
            slc_cache: f.slc_cache.0,
            bits: f.bits_per_cell,
            block_pages: f.block_pages,
            page_read: f.page_read,
            native: f.page_program,
            slc: f.slc_program,
            erase: f.block_erase,
            suspend: f.program_suspend,
            channel_rate: f.channel_rate,
        }
    }

    /// How long all dies together have worked.
    pub(super) fn busy(&self) -> u64 {
        self.busy
    }

    /// The die of a page: in turn, each row from another die on, so that no stride meets one die only.
    pub(super) fn die_of(&self, page: u64) -> u16 {
        let dies = self.dies.len() as u64;
        let row = page / dies;
        let shift = (row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) + self.turn;
        ((page + shift) % dies) as u16
    }

    /// A page is read from a die; gives when it is in the register.
    pub(super) fn read(&mut self, now: Time, index: u16) -> Time {
        let die = &mut self.dies[usize::from(index)];
        let mut start = die.read_free.max(now);
        if die.work != Work::Nothing && die.until > start {
            if start < die.begin {
                // Data are still on their way to the die.
                let delay = (start + self.page_read).since(die.begin);
                die.begin = die.begin + delay;
                die.until = die.until + delay;
            } else if die.read_free >= now && die.read_free > die.begin {
                // Interrupted already: one read more.
                die.until = die.until + self.page_read;
            } else {
                let rest = die.until.since(start);
                if rest <= self.suspend || die.suspends >= MOST_SUSPENDS {
                    start = start + rest;
                } else {
                    die.suspends += 1;
                    start = start + self.suspend;
                    die.until = die.until + Nanos(self.suspend.0 + self.page_read.0);
                }
            }
        }
        die.read_free = start + self.page_read;
        self.busy += self.page_read.0;
        die.read_free
    }

    /// A page crosses the channel of its die; gives when it has.
    pub(super) fn cross(&mut self, now: Time, die: u16, sectors: u64) -> Time {
        let channel = usize::from(die) % self.channels.len();
        let cost = Nanos(sectors * 512 * 1_000_000_000 / self.channel_rate);
        self.channels[channel].serve(now, cost)
    }

    /// Charges copying: sectors with 16 fractional bits.
    pub(super) fn charge(&mut self, sectors: u64) {
        if self.slc_room() { self.owed_by_slc += sectors } else { self.owed += sectors }
    }

    fn slc_room(&self) -> bool {
        self.slc_used + self.slc_unit <= self.slc_cache
    }

    pub(super) fn has_slc_data(&self) -> bool {
        self.slc_used >= self.unit
    }

    /// How much the next programming takes.
    pub(super) fn next_unit(&self) -> u64 {
        if self.slc_room() { self.slc_unit } else { self.unit }
    }

    /// Programs data on the next idle die; gives the die and the end.
    pub(super) fn program(&mut self, now: Time, from: u64, sectors: u64) -> Option<(u16, Time)> {
        let die = self.idle.pop_front()?;
        let slc = self.slc_room();
        if slc {
            self.slc_used += sectors;
        }
        let time = if slc { self.slc } else { self.native };
        let until = self.work(now, die, sectors, time, Work::Host { from, sectors });
        self.dies[usize::from(die)].pages += self.bits;
        Some((die, until))
    }

    fn work(&mut self, now: Time, die: u16, moved: u64, time: Nanos, work: Work) -> Time {
        let arrived = if moved > 0 { self.cross(now, die, moved) } else { now };
        self.busy += arrived.since(now).0 + time.0;
        let die = &mut self.dies[usize::from(die)];
        die.begin = arrived.max(die.read_free);
        die.until = die.begin + time;
        die.work = work;
        die.suspends = 0;
        die.until
    }

    pub(super) fn until(&self, die: u16) -> Time {
        self.dies[usize::from(die)].until
    }

    /// A die has ended what it did.
    pub(super) fn finish(&mut self, die: u16) -> Work {
        std::mem::replace(&mut self.dies[usize::from(die)].work, Work::Nothing)
    }

    /// Position of the first data of the host that are being programmed.
    pub(super) fn first_unprogrammed(&self) -> Option<u64> {
        let host = self.dies.iter().filter_map(|die| match die.work {
            Work::Host { from, .. } => Some(from),
            _ => None,
        });
        host.min()
    }

    /// What a die that has ended does before it is idle: erasing, copying, emptying the cache.
    pub(super) fn chore(&mut self, now: Time, die: u16, resting: bool) -> Option<Time> {
        let state = &mut self.dies[usize::from(die)];
        if state.pages >= self.block_pages {
            state.pages -= self.block_pages;
            return Some(self.work(now, die, 0, self.erase, Work::Chore));
        }
        if self.owed >> 16 >= self.unit {
            self.owed -= self.unit << 16;
            return Some(self.copy(now, die));
        }
        if resting && self.has_slc_data() {
            return Some(self.fold(now, die));
        }
        self.idle.push_back(die);
        None
    }

    /// Empties the pseudo-SLC cache on an idle die.
    pub(super) fn fold_idle(&mut self, now: Time) -> Option<(u16, Time)> {
        if !self.has_slc_data() {
            return None;
        }
        let die = self.idle.pop_front()?;
        Some((die, self.fold(now, die)))
    }

    fn fold(&mut self, now: Time, die: u16) -> Time {
        let share = u128::from(self.owed_by_slc) * u128::from(self.unit);
        let share = (share / u128::from(self.slc_used)) as u64;
        self.owed_by_slc -= share;
        self.owed += share;
        self.slc_used -= self.unit;
        self.copy(now, die)
    }

    /// A word line is read, goes through the controller and is programmed.
    fn copy(&mut self, now: Time, die: u16) -> Time {
        let time = Nanos(self.native.0 + u64::from(self.bits) * self.page_read.0);
        self.dies[usize::from(die)].pages += self.bits;
        self.work(now, die, 2 * self.unit, time, Work::Chore)
    }
}
