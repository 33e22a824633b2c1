//! Write-back over parity as Linux md takes it.
//!
//! md looks at a write stripe by stripe. One whose data have come whole is written at once. One of which a part has
//! come would have to be read first; it is put on `delayed_list`, then on `hold_list`, which waits for as long as whole
//! stripes are being written (`handle_stripe_dirtying`, `raid5_activate_delayed`, `__get_priority_stripe`:
//! `pending_full_writes`; drivers/md/raid5.c of 6.1 and 6.12), and no stripe of a plug is looked at before the plug is
//! pulled (`raid5_unplug`). The next write of a stream fills it meanwhile. Writes that a process waits for one by one
//! (`REQ_SYNC`) are not held.
//!
//! No more is under way at once than the stripe cache holds: who finds it full sleeps until a quarter is free, and it
//! grows by a stripe in a pass of md's thread while somebody does (`raid5_get_active_stripe`, `is_inactive_blocked`,
//! `grow_one_stripe`).

mod plug;

use std::collections::{BTreeMap, VecDeque};

use raidlab_core::contract::{IoOp, Outcome, RequestId};
use raidlab_core::{Sector, Sectors};

use super::{Answer, Pending, Way, World};
use plug::Call;

/// Marks requests to the array that were made of others.
pub(super) const GATHERED: u64 = 1 << 62;

/// Sectors of a page, of which a stripe of md has one on each member.
const PAGE: u64 = 8;
/// Sectors of a member that are written between passes of md's thread, which runs when a request of a member has ended:
/// one of 168 pages (`AHCI_MAX_SG`, drivers/ata/ahci.h).
const PASS: u64 = 168 * PAGE;

/// A request of the host that was cut at stripes.
#[derive(Clone, Copy, Debug)]
struct Asked {
    id: RequestId,
    /// Pieces that are not written yet.
    left: u32,
    outcome: Outcome,
}

/// A part of a stripe that is held, of a request.
#[derive(Clone, Copy, Debug)]
struct Part {
    from: u64,
    to: u64,
    asked: u32,
}

/// What goes to the array as one request.
#[derive(Clone, Debug)]
struct Made {
    from: u64,
    to: u64,
    is_whole: bool,
    /// The stripes of md that it has; `None` before it is its turn.
    rows: Option<u64>,
    process: u32,
    /// The requests that it is a piece of.
    asked: Vec<u32>,
}

/// Entries with numbers, which are used again.
#[derive(Clone, Debug)]
struct Numbered<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Numbered<T> {
    const NONE: Self = Self { entries: Vec::new(), free: Vec::new() };

    fn add(&mut self, entry: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.entries[number as usize] = Some(entry);
            return number;
        }
        self.entries.push(Some(entry));
        self.entries.len() as u32 - 1
    }

    fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.entries.get_mut(number as usize)?.as_mut()
    }

    fn take(&mut self, number: u32) -> Option<T> {
        let entry = self.entries.get_mut(number as usize)?.take();
        self.free.extend(entry.is_some().then_some(number));
        entry
    }
}

/// Write-back on its way through md.
#[derive(Clone, Debug)]
pub(super) struct Gather {
    /// Data of a stripe in sectors.
    stripe: u64,
    /// Requests that have not reached the array yet: a plug is not pulled before they have.
    on_the_way: u32,
    /// Requests of whole stripes that are not written yet.
    whole: u32,
    asked: Numbered<Asked>,
    /// By the number of their stripe, each in order.
    held: BTreeMap<u64, Vec<Part>>,
    made: Numbered<Made>,
    ready: VecDeque<u32>,
    /// Calls that wait for stripes, in order.
    sleeping: VecDeque<Call>,
    /// Sectors of a chunk, and how many members there are.
    chunk: u64,
    members: u64,
    /// Stripes of md that there are, those in use, and whether somebody sleeps until there are more.
    stripes: u64,
    used: u64,
    is_full: bool,
    /// Sectors of members written while somebody slept, less than a pass.
    passed: u64,
}

impl Gather {
    fn new(stripe: Sectors, chunk: Sectors, members: u16, stripes: u64) -> Self {
        Self {
            chunk: chunk.0,
            members: u64::from(members),
            stripes,
            used: 0,
            is_full: false,
            passed: 0,
            stripe: stripe.0,
            on_the_way: 0,
            whole: 0,
            asked: Numbered::NONE,
            held: BTreeMap::new(),
            made: Numbered::NONE,
            ready: VecDeque::new(),
            sleeping: VecDeque::new(),
        }
    }

    /// A request has reached the array: it is cut into what is written at once and what is held.
    pub(super) fn arrived(&mut self, request: &Pending) {
        self.on_the_way -= 1;
        let (from, to) = (request.at.0, request.at.0 + request.len.0);
        let asked = self.asked.add(Asked { id: request.id, left: 0, outcome: Outcome::Done });
        let head = from.next_multiple_of(self.stripe).min(to);
        let tail = (to / self.stripe * self.stripe).max(head);
        if from < head {
            self.part(Part { from, to: head, asked }, request.process);
        }
        for from in (head..tail).step_by(self.stripe as usize) {
            let (to, process) = (from + self.stripe, request.process);
            let asked = vec![asked];
            self.make(Made { from, to, is_whole: true, rows: None, process, asked });
        }
        if tail < to {
            self.part(Part { from: tail, to, asked }, request.process);
        }
    }

    /// Holds a part of a stripe; when nothing of the stripe is missing any more it goes out.
    fn part(&mut self, part: Part, process: u32) {
        let number = part.from / self.stripe;
        let overlaps = |held: &Part| held.from < part.to && part.from < held.to;
        if self.held.get(&number).is_some_and(|parts| parts.iter().any(overlaps)) {
            self.release(number, process);
        }
        if let Some(asked) = self.asked.get_mut(part.asked) {
            // It counts as a piece from now on, and is made of it later.
            asked.left += 1;
        }
        let parts = self.held.entry(number).or_default();
        let place = parts.partition_point(|held| held.from < part.from);
        parts.insert(place, part);
        let covered: u64 = parts.iter().map(|part| part.to - part.from).sum();
        if covered == self.stripe {
            self.release(number, process);
        }
    }

    /// What is held of a stripe goes out, what lies together as one.
    fn release(&mut self, number: u64, process: u32) {
        let Some(parts) = self.held.remove(&number) else { return };
        let mut runs: Vec<Made> = Vec::new();
        for Part { from, to, asked } in parts {
            match runs.last_mut().filter(|run| run.to == from) {
                Some(run) => {
                    run.to = to;
                    run.asked.push(asked);
                }
                None => {
                    let asked = vec![asked];
                    runs.push(Made { from, to, is_whole: false, rows: None, process, asked });
                }
            }
        }
        for mut run in runs {
            run.is_whole = run.to - run.from == self.stripe;
            self.whole += u32::from(run.is_whole);
            let made = self.made.add(run);
            self.ready.push_back(made);
        }
    }

    fn make(&mut self, made: Made) {
        for asked in &made.asked {
            if let Some(asked) = self.asked.get_mut(*asked) {
                asked.left += 1;
            }
        }
        self.whole += u32::from(made.is_whole);
        let made = self.made.add(made);
        self.ready.push_back(made);
    }

    /// The next request for the array, if it gets one now: number, place, length, on whose behalf.
    fn next(&mut self) -> Option<(u32, Sector, Sectors, u32)> {
        if self.ready.is_empty() && self.on_the_way == 0 && self.whole == 0 {
            while let Some((number, parts)) = self.held.first_key_value() {
                let (number, _) = (*number, parts.len());
                self.release(number, super::KERNEL);
            }
        }
        let number = *self.ready.front()?;
        let most = self.most();
        let made = self.made.get_mut(number)?;
        let place = (number, Sector(made.from), Sectors(made.to - made.from), made.process);
        if made.rows.is_none() {
            let rows = rows_of(self.chunk, made.to - made.from);
            self.is_full = self.used > 0 && self.used + rows > most;
            if self.is_full {
                return None;
            }
            made.rows = Some(rows);
            self.used += rows;
        }
        self.ready.pop_front();
        Some(place)
    }

    /// Stripes that may be in use: while somebody sleeps a quarter is left free.
    const fn most(&self) -> u64 {
        if self.is_full { self.stripes * 3 / 4 } else { self.stripes }
    }
}

/// Stripes of md that so many sectors in a row need.
fn rows_of(chunk: u64, len: u64) -> u64 {
    len.min(chunk).div_ceil(PAGE)
}

impl World {
    /// Takes [write-back](Self::write_back) over parity as Linux md does: a stripe of which a part has come waits while
    /// whole ones are written, and no more is under way than so many `stripes` of a page of each member, which grow
    /// under pressure. Of nested levels the stripes of the arrays below that follow one another are taken as one. Call
    /// it before the first request; other arrays and those behind a controller take it as any write.
    pub fn gather_stripes(&mut self, stripes: u64) {
        let layout = self.array.layout();
        let is_parity = layout.floors().any(|floor| floor.level.has_stripes());
        if let Some(stripe) =
            layout.full_stripe().filter(|_| is_parity && self.controller.is_none())
        {
            let in_rows = layout.floors().filter(|floor| floor.level.has_rows());
            let chunks: u64 = in_rows.map(|floor| u64::from(floor.data_members())).product();
            let chunk = Sectors(stripe.0 / chunks.max(1));
            let gather = Gather::new(stripe, chunk, layout.drives(), stripes);
            self.gather = Some(Box::new(gather));
        }
    }

    /// Submits a write that a process waits for, which comes to the array in requests of `longest` at most under one
    /// plug.
    pub fn write_plugged(
        &mut self,
        process: u32,
        at: Sector,
        len: Sectors,
        longest: Sectors,
    ) -> RequestId {
        let is_cut = self.gather.is_some() && len > longest;
        let way = if is_cut { Way::Plugged(longest) } else { Way::Whole };
        self.submit_request(process, IoOp::Write, (at, len), (false, way))
    }

    /// Submits a write that nobody waits for by itself, as [`submit_for`](Self::submit_for) does.
    pub fn write_back(&mut self, process: u32, at: Sector, len: Sectors) -> RequestId {
        let way = self.gather.as_mut().map_or(Way::Whole, |gather| {
            gather.on_the_way += 1;
            Way::WriteBack
        });
        self.submit_request(process, IoOp::Write, (at, len), (false, way))
    }

    /// Hands the array the next of what was gathered; false when there is none.
    #[inline]
    pub(super) fn hand_in_gathered(&mut self) -> bool {
        let Some(gather) = &mut self.gather else { return false };
        let Some((number, at, len, process)) = gather.next() else { return false };
        let id = RequestId(GATHERED | u64::from(number));
        self.ask_array(&Pending {
            id,
            op: IoOp::Write,
            at,
            len,
            fua: false,
            process,
            way: Way::Whole,
        });
        true
    }

    /// What was made of several requests is answered.
    #[inline(never)]
    pub(super) fn gathered(&mut self, id: RequestId, outcome: Outcome) {
        let Some(gather) = &mut self.gather else { return };
        let Some(made) = gather.made.take((id.0 & !GATHERED) as u32) else { return };
        gather.whole -= u32::from(made.is_whole);
        let rows = made.rows.unwrap_or(0);
        gather.used -= rows;
        if gather.is_full && gather.sleeping.is_empty() {
            gather.passed += rows * PAGE * gather.members;
            gather.stripes += gather.passed / PASS;
            gather.passed %= PASS;
        }
        for number in made.asked {
            let Some(asked) = gather.asked.get_mut(number) else { continue };
            asked.left -= 1;
            if outcome != Outcome::Done {
                asked.outcome = outcome;
            }
            if asked.left == 0
                && let Some(Asked { id, outcome, .. }) = gather.asked.take(number)
            {
                self.answers.push_back(Answer { id, outcome, at: self.now });
            }
        }
        gather.wake();
    }
}
