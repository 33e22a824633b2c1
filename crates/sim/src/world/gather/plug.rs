//! Writes of several requests that a process waits for, as Linux md takes them over parity.
//!
//! A call of more than a request's length (`BIO_MAX_VECS`, 256 pages) makes several under one plug. md takes a stripe
//! of its cache for each page of a member and looks at none before the plug is pulled: at the end of the call, or
//! when it finds no free stripe and sleeps, which pulls the plug, too (`blk_finish_plug`, `sched_submit_work`). What is
//! a whole stripe then is written at once, what is a part of one is read for at once: the process waits (`REQ_SYNC`).
//! So a call that needs more stripes than the cache has is torn where they run out, and reads. The cache grows by a
//! stripe each time that somebody falls asleep, until it has what calls need. (`raid5_make_request`, `raid5_unplug`,
//! `raid5_get_active_stripe`; drivers/md/raid5.c of 6.12.)
//!
//! A row of chunks is torn where the request ends in which stripes ran out, not at the page of it.

use super::{Asked, Gather, Made, Outcome, Pending, Sectors, rows_of};

/// A call that has not taken all its stripes yet.
#[derive(Clone, Debug)]
pub(super) struct Call {
    asked: u32,
    process: u32,
    /// Sectors of the array: where it starts and ends, from where on it is under the plug, where the next stripe is
    /// taken.
    start: u64,
    end: u64,
    plugged: u64,
    next: u64,
    /// Where it slept last.
    slept_at: u64,
    /// Sectors of a request.
    longest: u64,
}

impl Gather {
    /// A call has reached the array.
    pub(in crate::world) fn called(&mut self, request: &Pending, longest: Sectors) {
        // Until it has all its stripes it counts as a piece itself.
        let asked = self.asked.add(Asked { id: request.id, left: 1, outcome: Outcome::Done });
        let start = request.at.0;
        let call = Call {
            asked,
            process: request.process,
            start,
            end: start + request.len.0,
            plugged: start,
            next: start,
            slept_at: u64::MAX,
            longest: longest.0,
        };
        self.sleeping.push_back(call);
        if self.sleeping.len() == 1 {
            self.wake();
        }
    }

    /// Calls take stripes, in their order, until one finds too few.
    pub(super) fn wake(&mut self) {
        while let Some(mut call) = self.sleeping.pop_front() {
            let has_all = self.take_stripes(&mut call);
            self.pull(&mut call);
            if !has_all {
                self.stripes += u64::from(call.slept_at != call.next);
                call.slept_at = call.next;
                self.sleeping.push_front(call);
                return;
            }
            if let Some(asked) = self.asked.get_mut(call.asked) {
                // Others are left, at least the one just made.
                asked.left -= 1;
            }
        }
    }

    /// Whether there were stripes for all of a call.
    fn take_stripes(&mut self, call: &mut Call) -> bool {
        while call.next < call.end {
            let requests = (call.next - call.start) / call.longest + 1;
            let end_of_request = call.start + requests * call.longest;
            let to = self.end_of_row(call.next).min(end_of_request).min(call.end);
            let more = self.stripes_of(call, call.next, to);
            if more > 0 && self.used > 0 && self.used >= self.most() {
                self.is_full = true;
                return false;
            }
            self.is_full = more > 0 && self.used + more > self.stripes;
            self.used += more;
            call.next = to;
            if self.is_full && call.next < call.end {
                return false;
            }
        }
        true
    }

    /// What is under the plug goes out, row by row of chunks.
    fn pull(&mut self, call: &mut Call) {
        while call.plugged < call.next {
            let from = call.plugged;
            let to = self.end_of_row(from).min(call.next);
            let rows = Some(self.stripes_of(call, from, to));
            let is_whole = to - from == self.stripe;
            let (process, asked) = (call.process, vec![call.asked]);
            self.make(Made { from, to, is_whole, rows, process, asked });
            call.plugged = to;
        }
    }

    const fn end_of_row(&self, at: u64) -> u64 {
        (at / self.stripe + 1) * self.stripe
    }

    /// Stripes that a call takes for a part of a row of chunks: none for pages of other members in stripes that it has
    /// from what comes before in the row.
    fn stripes_of(&self, call: &Call, from: u64, to: u64) -> u64 {
        let first = call.start.max(from / self.stripe * self.stripe);
        rows_of(self.chunk, to - first) - rows_of(self.chunk, from - first)
    }
}
