//! A fixed number of slots with generations, so that a late answer to a slot's earlier use is known.

use std::hash::{Hash, Hasher};

/// A fixed number of values, named by slot and generation.
#[derive(Clone, Debug)]
pub(super) struct Slab<T> {
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Entry<T> {
    generation: u32,
    used: bool,
    value: T,
}

impl<T: Clone> Slab<T> {
    /// `idle` fills the slots not in use.
    pub(super) fn new(capacity: u32, idle: T) -> Self {
        let entry = Entry { generation: 0, used: false, value: idle };
        Self {
            entries: vec![entry; capacity as usize],
            // The slot freed last is used next: its memory and its scratch buffer are still hot.
            free: (0..capacity).rev().collect(),
        }
    }

    /// Free slots.
    #[inline]
    pub(super) fn available(&self) -> usize {
        self.free.len()
    }

    pub(super) fn capacity(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Slots in use, in order.
    pub(super) fn used(&self) -> impl Iterator<Item = (u32, &T)> {
        self.entries.iter().enumerate().filter(|(_, e)| e.used).map(|(i, e)| (i as u32, &e.value))
    }

    #[inline]
    pub(super) fn insert(&mut self, value: T) -> Option<u32> {
        self.insert_named(value).map(|(slot, _)| slot)
    }

    /// The generation of a slot in use.
    pub(super) fn used_generation(&self, slot: u32) -> Option<u32> {
        let entry = &self.entries[slot as usize];
        entry.used.then_some(entry.generation)
    }

    /// Whether the slot is in use by this generation.
    #[inline]
    pub(super) fn is_current(&self, slot: u32, generation: u32) -> bool {
        self.entries.get(slot as usize).is_some_and(|e| e.used && e.generation == generation)
    }

    /// Fills a free slot; gives it with its generation.
    #[inline]
    pub(super) fn insert_named(&mut self, value: T) -> Option<(u32, u32)> {
        let slot = self.free.pop()?;
        let entry = &mut self.entries[slot as usize];
        entry.used = true;
        entry.value = value;
        Some((slot, entry.generation))
    }

    /// Empties the slot if it is in use by this generation; gives what was in it.
    #[inline]
    pub(super) fn take(&mut self, slot: u32, generation: u32) -> Option<T> {
        let entry = self.entries.get_mut(slot as usize)?;
        if !entry.used || entry.generation != generation {
            return None;
        }
        entry.used = false;
        entry.generation = generation.wrapping_add(1);
        self.free.push(slot);
        Some(entry.value.clone())
    }

    #[inline(always)]
    pub(super) fn remove(&mut self, slot: u32) {
        let entry = &mut self.entries[slot as usize];
        debug_assert!(entry.used, "a slot is freed once");
        entry.used = false;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(slot);
    }
}

/// What is in use; generations only tell how it came about.
impl<T: Clone + Hash> Hash for Slab<T> {
    fn hash<H: Hasher>(&self, key: &mut H) {
        self.used().for_each(|one| one.hash(key));
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;
    #[inline]
    fn index(&self, slot: u32) -> &T {
        &self.entries[slot as usize].value
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut T {
        &mut self.entries[slot as usize].value
    }
}
