//! The runs of a search on threads, with progress.

use std::sync::atomic::AtomicBool;

use raidlab_advise::{NoAdvice, Pool};

use crate::parallel::{self, Ended};
use crate::progress::Bar;

/// Threads that runs are shared out to.
pub(super) struct Threads<'a> {
    pub(super) count: usize,
    pub(super) bar: &'a Bar,
    pub(super) stop: &'static AtomicBool,
}

impl Pool for Threads<'_> {
    fn run(
        &self,
        count: usize,
        what: &str,
        one: &(dyn Fn(usize) -> Result<(), String> + Sync),
    ) -> Result<(), NoAdvice> {
        let told = |done: usize, _| self.bar.show(done, count, what.to_owned());
        let ended = parallel::all(count, self.count, self.stop, told, one);
        ended.map(drop).map_err(|ended| match ended {
            Ended::Interrupted => NoAdvice::Stopped,
            Ended::Failed(error) => NoAdvice::Failed(error),
        })
    }

    fn stop(&self) -> Option<&'static AtomicBool> {
        Some(self.stop)
    }
}
