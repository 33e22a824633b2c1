//! The memory the blocks of a stripe lie in.

use std::ptr::NonNull;

/// Bytes on a boundary of 2 MiB, in huge pages where the kernel has them.
pub(crate) struct Arena {
    start: NonNull<u8>,
    bytes: usize,
}

/// The boundary, and the size of a huge page.
const HUGE: usize = 2 << 20;

impl Arena {
    pub(crate) fn new(bytes: usize) -> Self {
        let bytes = bytes.next_multiple_of(HUGE) + HUGE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory there is.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED, "{bytes} bytes of memory are needed");
        // SAFETY: the mapping is that long; advice changes no contents.
        unsafe { libc::madvise(start, bytes, libc::MADV_HUGEPAGE) };
        let start = NonNull::new(start.cast::<u8>()).expect("a mapping is nowhere at 0");
        let arena = Self { start, bytes };
        let mut state = 1u64;
        for at in (0..bytes).step_by(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            // SAFETY: `at` lies in the mapping, whose length is a multiple of eight.
            unsafe { start.as_ptr().add(at).cast::<u64>().write(state) };
        }
        arena
    }

    pub(crate) fn start(&self) -> *mut u8 {
        let start = self.start.as_ptr();
        start.wrapping_add(start.align_offset(HUGE))
    }

    /// Bytes from [`start`](Self::start) on.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes - HUGE
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this length, unmapped once; nothing uses it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// The most blocks of a stripe.
pub(crate) const MOST: usize = 20;

/// The blocks of a stripe, at one distance from each other; room for more than it has.
#[derive(Clone, Copy)]
pub(crate) struct Stripe {
    pub(crate) blocks: [*mut u8; MOST],
    /// The same, to be read.
    pub(crate) slices: [&'static [u8]; MOST],
    /// Bytes of a block.
    pub(crate) size: usize,
}

impl Stripe {
    /// # Safety
    /// `blocks` blocks lie in an arena that outlives the stripe, and what is written is read by nobody else
    /// meanwhile.
    pub(crate) unsafe fn new(start: *mut u8, blocks: usize, distance: usize, size: usize) -> Self {
        let at: [*mut u8; MOST] =
            std::array::from_fn(|index| start.wrapping_add(index.min(blocks - 1) * distance));
        // SAFETY: promised by the caller.
        let slices =
            at.map(|block| unsafe { std::slice::from_raw_parts(block.cast_const(), size) });
        Self { blocks: at, slices, size }
    }

    /// A block to be written.
    ///
    /// # Safety
    /// Nobody else uses the block meanwhile.
    pub(crate) unsafe fn write<'a>(&self, index: usize) -> &'a mut [u8] {
        // SAFETY: promised by the caller, here and when the stripe was made.
        unsafe { std::slice::from_raw_parts_mut(self.blocks[index], self.size) }
    }
}
