//! How far a rebuild came within what was measured.

use raidlab_core::array::WorkStatus;
use raidlab_core::contract::{Event, Work};
use raidlab_core::{Nanos, Sectors, Time};
use serde::{Deserialize, Serialize};

use crate::exact;

/// A rebuild that went on while a cell was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rebuild {
    /// How long it went on within what was measured, with the rest that its pacing makes it take after that for what it
    /// did.
    #[serde(with = "exact::nanos")]
    pub elapsed: Nanos,
    /// The share of the time it takes that was over then, but for what it had begun at once, which is the share of the
    /// member that was done unless other zones of the drive are slower ([`slower`](Self::slower)); 1 when it ended.
    #[serde(serialize_with = "exact::finite")]
    pub done: f64,
}

/// The share that is said to be done at most of a rebuild that has not ended: its last superblocks are part of it.
const ALMOST: f64 = 0.999_999;

impl Rebuild {
    /// What the rebuild that began at `began` did up to `now`, by the events of the array since then and how far it is
    /// where it is under way; `None` when there was none. What was begun at once counts with the rest that follows it,
    /// or neither does ([`done_since`](WorkStatus::done_since)). It is done when its end is told, at that time; up to
    /// then it is not, though all may be copied.
    pub fn up_to<'e>(
        now: Time,
        began: Time,
        events: impl IntoIterator<Item = (Time, &'e Event)>,
        under_way: Option<WorkStatus>,
    ) -> Option<Self> {
        let mut last = None;
        for (at, event) in events {
            last = match event {
                Event::Started(Work::Rebuild(_)) => {
                    Some(Self { elapsed: Nanos::ZERO, done: ALMOST })
                }
                Event::Interrupted(Work::Rebuild(_)) => {
                    Some(Self { elapsed: Nanos::ZERO, done: 0.0 })
                }
                Event::Finished { work: Work::Rebuild(_), .. } => {
                    Some(Self { elapsed: at.since(began), done: 1.0 })
                }
                _ => last,
            };
        }
        if let Some(Self { done: 1.0, .. }) = last {
            return last;
        }
        let share = |(done, of): (Sectors, Sectors)| done.0 as f64 / (of.0 as f64).max(1.0);
        let part = under_way.map(|status| share(status.done_since()).min(ALMOST));
        let done = part.or(last.map(|last| last.done))?;
        let rests = under_way.map_or(0, |status| status.rests.0);
        Some(Self { elapsed: Nanos(now.since(began).0.saturating_add(rests)), done })
    }

    /// The same where the whole takes `factor` times as long as it would at the pace of what was done; nothing is
    /// changed of a rebuild that has ended.
    #[must_use]
    pub fn slower(self, factor: f64) -> Self {
        if self.done >= 1.0 { self } else { Self { done: self.done / factor.max(1.0), ..self } }
    }

    /// The time of the whole rebuild in seconds, and whether that is an estimate: elapsed time over the
    /// share that was done. `None` when nothing was done.
    pub fn seconds(&self) -> Option<(f64, bool)> {
        if self.done >= 1.0 {
            return Some((self.elapsed.as_secs(), false));
        }
        (self.done > 0.0).then(|| (self.elapsed.as_secs() / self.done, true))
    }
}
