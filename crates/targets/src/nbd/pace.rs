//! Whether a client gets on with the memory that it has, while others wait for memory.

use std::time::{Duration, Instant};

/// What it must take or send in each time of patience: this part of what it had at its beginning.
const PART: u64 = 8;

/// How a client gets on with what it has.
#[derive(Debug)]
pub(super) struct Pace {
    /// When anything moved last.
    since: Instant,
    /// Bytes of answers and of data of writes that moved, and of memory that was given back, since the trial began.
    done: u64,
    /// Since when it is watched while others wait, and what it is to have done by the end of that.
    trial: Option<(Instant, u64)>,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Self {
        Self { since: now, done: 0, trial: None }
    }

    /// Anything moved.
    #[inline]
    pub(super) fn moved(&mut self, now: Instant) {
        self.since = now;
    }

    /// So much was done of what has memory.
    #[inline]
    pub(super) fn did(&mut self, bytes: u64) {
        self.done += bytes;
    }

    /// When anything moved last.
    pub(super) fn since(&self) -> Instant {
        self.since
    }

    /// It has nothing that others wait for, or it is not its turn.
    pub(super) fn is_fine(&mut self) {
        self.trial = None;
    }

    /// Whether it keeps what it has, `held` bytes, from others, who wait since `short` or longer: it stands still, or
    /// does too little for as long as it is given, `stall`. Who has little may be as slow as its link is.
    pub(super) fn is_too_slow(
        &mut self,
        held: u64,
        now: Instant,
        (short, stall): (Instant, Duration),
    ) -> bool {
        if now - self.since >= stall {
            return true;
        }
        if let Some((begun, due)) = self.trial.filter(|(begun, _)| *begun >= short) {
            if now - begun < stall {
                return false;
            }
            if self.done < due {
                return true;
            }
        }
        self.done = 0;
        self.trial = Some((now, held / PART));
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALL: Duration = Duration::from_secs(30);
    const HELD: u64 = 64 << 20;

    /// Has a client move so many bytes every 5 s, and gives when it is too slow.
    fn too_slow_after(bytes: u64) -> Option<u64> {
        let short = Instant::now();
        let mut pace = Pace::new(short);
        (0..3600).step_by(5).find(|seconds| {
            let now = short + Duration::from_secs(*seconds);
            pace.moved(now);
            pace.did(bytes);
            pace.is_too_slow(HELD, now, (short, STALL))
        })
    }

    #[test]
    fn who_trickles_is_too_slow_and_who_takes_a_part_is_not() {
        assert_eq!(too_slow_after(1), Some(30));
        assert_eq!(too_slow_after(64 << 10), Some(30));
        assert_eq!(too_slow_after(HELD / 8 / 6), Some(30), "two bytes are missing");
        assert_eq!(too_slow_after(HELD / 8 / 6 + 1), None);
    }

    #[test]
    fn who_stands_still_is_too_slow_as_soon_as_others_wait() {
        let begun = Instant::now();
        let mut pace = Pace::new(begun);
        let short = begun + STALL;
        assert!(pace.is_too_slow(HELD, short, (short, STALL)));
        pace.moved(short);
        assert!(!pace.is_too_slow(HELD, short, (short, STALL)));
    }

    /// What counts is what is done while others wait, and while it is the client's turn.
    #[test]
    fn every_shortage_and_every_turn_begins_anew() {
        let begun = Instant::now();
        let at = |seconds: u64| begun + Duration::from_secs(seconds);
        let mut pace = Pace::new(begun);
        assert!(!pace.is_too_slow(HELD, at(0), (at(0), STALL)));
        pace.moved(at(29));
        pace.is_fine();
        assert!(!pace.is_too_slow(HELD, at(31), (at(0), STALL)), "it was not its turn");
        pace.moved(at(59));
        assert!(!pace.is_too_slow(HELD, at(61), (at(60), STALL)), "nobody waited");
        pace.moved(at(89));
        assert!(pace.is_too_slow(HELD, at(91), (at(60), STALL)));
    }
}
