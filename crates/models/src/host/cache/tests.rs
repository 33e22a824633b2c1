//! The cache against a model that keeps every page by itself.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// A page of the model.
#[derive(Clone, Copy, Debug, Default)]
struct One {
    reading: bool,
    dirty: bool,
    writing: bool,
    held: bool,
}

impl One {
    fn rests(self) -> bool {
        !(self.reading || self.dirty || self.writing || self.held)
    }
}

/// Pages by file and number, and when each segment was used last.
#[derive(Default)]
struct Model {
    pages: BTreeMap<(u64, u64), One>,
    used: BTreeMap<(u64, u64), u64>,
    clock: u64,
    capacity: usize,
}

impl Model {
    fn touch(&mut self, file: u64, range: Range<u64>) {
        let segments: BTreeSet<u64> = range.map(|page| page / SEGMENT).collect();
        for index in segments {
            if self.pages.keys().any(|(f, page)| (*f, page / SEGMENT) == (file, index)) {
                self.clock += 1;
                self.used.insert((file, index), self.clock);
            }
        }
    }

    /// Segments that come into being count as used.
    fn make(&mut self, file: u64, range: &Range<u64>) {
        for page in range.clone() {
            let key = (file, page / SEGMENT);
            if !self.pages.keys().any(|(f, page)| (*f, page / SEGMENT) == key) {
                self.clock += 1;
                self.used.insert(key, self.clock);
            }
            self.pages.entry((file, page)).or_insert(One { reading: true, ..One::default() });
        }
    }

    fn evict(&mut self) {
        while self.pages.len() > self.capacity {
            let resting = self.pages.iter().filter(|(_, one)| one.rests());
            let segments = resting.map(|((file, page), _)| (*file, page / SEGMENT));
            let Some(oldest) = segments.min_by_key(|key| self.used[key]) else { return };
            self.pages
                .retain(|(file, page), one| (*file, page / SEGMENT) != oldest || !one.rests());
        }
    }

    fn each(&mut self, file: u64, range: &Range<u64>, change: impl Fn(&mut One)) {
        self.pages
            .range_mut((file, range.start)..(file, range.end))
            .for_each(|(_, one)| change(one));
    }

    fn apply(&mut self, op: u64, file: u64, range: Range<u64>) {
        match op {
            0 => self.make(file, &range),
            1 => {
                self.each(file, &range, |one| one.reading = false);
                self.touch(file, range);
                return;
            }
            2 => {
                self.make(file, &range);
                self.each(file, &range, |one| (one.reading, one.dirty) = (false, true));
                self.touch(file, range);
            }
            3 => {
                return self.each(file, &range, |one| {
                    one.writing |= !one.reading;
                    one.dirty = false;
                });
            }
            4 => self.each(file, &range, |one| one.writing = false),
            5 => {
                let page = range.start..range.start + 1;
                self.make(file, &page);
                self.each(file, &page, |one| {
                    *one = One { held: true, writing: one.writing, ..One::default() };
                });
                self.touch(file, page);
            }
            6 => {
                let page = range.start..range.start + 1;
                return self.each(file, &page, |one| {
                    one.dirty |= one.held;
                    one.held = false;
                });
            }
            7 => self.pages.retain(|(f, page), _| *f != file || !range.contains(page)),
            8 => self.pages.retain(|(f, _), one| *f != file || !one.rests()),
            _ => return self.touch(file, range),
        }
        if matches!(op, 0 | 2 | 4 | 5) {
            self.evict();
        }
    }
}

fn apply(cache: &mut Cache, op: u64, file: u64, range: Range<u64>) {
    match op {
        0 => cache.start_reading(file, range, Marks::None),
        1 => cache.read(file, range),
        2 => cache.make_dirty(file, range),
        3 => cache.start_writing(file, range),
        4 => cache.written(file, range),
        5 => cache.hold(file, range.start),
        6 => cache.release(file, range.start),
        7 => cache.forget(file, range),
        8 => cache.drop_clean(Some(file)),
        _ => cache.touch(file, range),
    }
}

fn same(cache: &Cache, model: &Model, context: &str) {
    let (mut dirty, mut unwritten) = (0, 0);
    for file in 0..3 {
        for page in 0..400 {
            let one = model.pages.get(&(file, page));
            let expected = match one {
                None => Page::Absent,
                Some(one) if one.reading => Page::Reading,
                Some(_) => Page::Present,
            };
            assert_eq!(cache.page(file, page), expected, "{context}: page {page} of {file}");
            let is_dirty = one.is_some_and(|one| one.dirty);
            assert_eq!(cache.dirty_in(file, page..page + 1) == 1, is_dirty, "{context}: {page}");
            dirty += u64::from(is_dirty);
            unwritten += u64::from(is_dirty) + u64::from(one.is_some_and(|one| one.writing));
        }
    }
    assert_eq!(cache.pages(), model.pages.len() as u64, "{context}");
    assert_eq!((cache.dirty(), cache.unwritten()), (dirty, unwritten), "{context}");
}

/// The first run of dirty pages, page by page.
fn first_dirty(model: &Model, file: u64, range: &Range<u64>, most: u64) -> Option<Range<u64>> {
    let is_dirty = |page: &u64| model.pages.get(&(file, *page)).is_some_and(|one| one.dirty);
    let first = range.clone().find(is_dirty)?;
    let count = (first..range.end).take_while(is_dirty).count() as u64;
    Some(first..first + count.min(most))
}

#[test]
fn random_operations_leave_the_pages_that_a_plain_model_has() {
    for seed in 1..=20u64 {
        let mut cache = Cache::new(300);
        let mut model = Model { capacity: 300, ..Model::default() };
        let mut state = seed;
        let mut draw = move |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for step in 0..400 {
            let (op, file, start) = (draw(10), draw(3), draw(300));
            let range = start..start + 1 + draw(100);
            apply(&mut cache, op, file, range.clone());
            model.apply(op, file, range.clone());
            same(&cache, &model, &format!("seed {seed}, step {step}, op {op} {file} {range:?}"));
            let most = 1 + draw(80);
            let dirty = cache.next_dirty(file, &range, most);
            assert_eq!(dirty, first_dirty(&model, file, &range, most), "seed {seed}, step {step}");
        }
    }
}

#[test]
fn runs_end_where_pages_do_and_before_marks() {
    let mut cache = Cache::new(10_000);
    cache.start_reading(1, 10..300, Marks::At(200));
    assert_eq!((cache.absent(1, 0, 99), cache.present(1, 10, 99)), (10, 0));
    cache.read(1, 10..290);
    assert_eq!(cache.present(1, 10, 1_000), 190, "up to the mark");
    assert_eq!(cache.present(1, 200, 1_000), 90, "from the mark to what is being read");
    assert!(cache.take_mark(1, 200) && !cache.take_mark(1, 200));
    assert_eq!(cache.present(1, 10, 1_000), 280);
    assert_eq!(cache.absent(1, 300, 50), 50);
}

/// All memory is taken by pages that are being read. What is filled in beside them is there until something else is:
/// who asked for it would ask again, for ever.
#[test]
fn what_was_filled_in_last_stays_however_little_room_there_is() {
    let mut cache = Cache::new(100);
    cache.start_reading(1, 0..200, Marks::None);
    for (page, len) in [(7, 1), (60, 130), (900, 2)] {
        cache.fill(2, page..page + len);
        assert_eq!(cache.present(2, page, len), len, "{page}");
    }
    assert_eq!(cache.page(2, 7), Page::Absent, "that before it made room");
    cache.read(1, 0..200);
    cache.fill(3, 0..1);
    assert!(cache.pages() <= 100, "{}", cache.pages());
}
