//! Copies between the stripe cache and what plans have in memory.

use super::super::Array;
use crate::array::lists::{ListBuilder, NIL};
use crate::array::stripe::{Band, Memory};
use crate::contract::ParityOp;

impl Array {
    /// Copies what the cache has to where a plan would have read it to.
    pub(super) fn load_cached(&mut self, plan: u32, needed: impl Fn(&Band, u16) -> Option<Memory>) {
        let state = self.plans[plan];
        let (mut from, mut to) = (ListBuilder::new(), ListBuilder::new());
        for band in state.bands() {
            let cached = self.cache.cached_roles(&self.setup, &state, band);
            for role in cached.iter() {
                if let Some(memory) = needed(band, role) {
                    let segment = self.cache.segment(&self.setup, &state, role, band);
                    from.push(&mut self.lists, segment);
                    self.add_rows(plan, &state, role, band, memory, &mut to);
                }
            }
        }
        self.send_copy(plan, from, to);
    }

    /// Copies what a plan has in memory to its place.
    pub(super) fn store_planned(&mut self, plan: u32) {
        let state = self.plans[plan];
        if state.cache == NIL {
            return;
        }
        let failed = self.members.failed;
        let (mut from, mut to) = (ListBuilder::new(), ListBuilder::new());
        for band in state.bands() {
            for role in 0..self.setup.roles() {
                let kept = self.cache.memory_kept(&self.setup, failed, &state, band, role);
                if let Some(memory) = kept {
                    self.add_rows(plan, &state, role, band, memory, &mut from);
                    let segment = self.cache.segment(&self.setup, &state, role, band);
                    to.push(&mut self.lists, segment);
                }
            }
        }
        self.send_copy(plan, from, to);
    }

    fn send_copy(&mut self, plan: u32, from: ListBuilder, to: ListBuilder) {
        debug_assert_eq!(from.len(), to.len(), "a copy is as long as what is copied");
        if from.len() > 0 {
            let lists = (from.finish(), to.finish());
            self.start_list_job(plan, ParityOp::Copy, from.len(), lists);
        }
    }
}
