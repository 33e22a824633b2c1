//! ISA-L, loaded while running: nothing links with it, and its absence is an answer.
//!
//! Debian has it in `libisal2`. The functions called are those of its documented C interface, and beside
//! them the variants for AVX2 that the library exports under names of their own.
#![allow(dead_code, reason = "tests and bench each use a part")]

use std::ffi::{CStr, c_int, c_uchar, c_void};

/// The file of the library, as its package installs it.
const LIBRARY: &CStr = c"libisal.so.2";
/// The Debian package that has it.
pub(crate) const PACKAGE: &str = "libisal2";

type Gen = unsafe extern "C" fn(c_int, c_int, *mut *mut c_void) -> c_int;
type InitTables = unsafe extern "C" fn(c_int, c_int, *const c_uchar, *mut c_uchar);
type Encode = unsafe extern "C" fn(
    c_int,
    c_int,
    c_int,
    *const c_uchar,
    *const *mut c_uchar,
    *const *mut c_uchar,
);
type Update = unsafe extern "C" fn(
    c_int,
    c_int,
    c_int,
    c_int,
    *const c_uchar,
    *const c_uchar,
    *const *mut c_uchar,
);

/// What every buffer must be aligned to, in bytes.
pub(crate) const ALIGNMENT: usize = 32;

/// The library by one instruction set.
#[derive(Clone, Copy)]
pub(crate) struct Isal {
    xor: Gen,
    pq: Gen,
    init: InitTables,
    encode: Encode,
    update: Update,
}

/// Tables of two rows of coefficients for some sources.
pub(crate) struct Tables {
    bytes: Vec<u8>,
    sources: usize,
}

impl Isal {
    /// The library as it chooses its instructions on this machine; `None` where it is not installed.
    pub(crate) fn dispatched() -> Option<Self> {
        Self::with([c"xor_gen", c"pq_gen", c"ec_encode_data", c"ec_encode_data_update"])
    }

    /// Its kernels for AVX2 (of XOR for AVX, which is its last before AVX-512); `None` where the library is
    /// not installed or does not export them.
    pub(crate) fn avx2() -> Option<Self> {
        let update = c"ec_encode_data_update_avx2";
        Self::with([c"xor_gen_avx", c"pq_gen_avx2", c"ec_encode_data_avx2", update])
    }

    fn with([xor, pq, encode, update]: [&CStr; 4]) -> Option<Self> {
        // SAFETY: loading the library runs nothing but its initialisers, of which it has none that matter;
        // it is never unloaded.
        let library = unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW) };
        if library.is_null() {
            return None;
        }
        let find = |name: &CStr| {
            // SAFETY: the library is loaded and the name a C string.
            let found = unsafe { libc::dlsym(library, name.as_ptr()) };
            (!found.is_null()).then_some(found)
        };
        // SAFETY: the functions have these types in the library's headers raid.h and erasure_code.h.
        unsafe {
            Some(Self {
                xor: std::mem::transmute::<*mut c_void, Gen>(find(xor)?),
                pq: std::mem::transmute::<*mut c_void, Gen>(find(pq)?),
                init: std::mem::transmute::<*mut c_void, InitTables>(find(c"ec_init_tables")?),
                encode: std::mem::transmute::<*mut c_void, Encode>(find(encode)?),
                update: std::mem::transmute::<*mut c_void, Update>(find(update)?),
            })
        }
    }

    /// XOR of all `blocks` but the last into the last.
    ///
    /// # Safety
    /// Each is valid for reads and the last for writes of `len` bytes, and on a multiple of 32 bytes.
    pub(crate) unsafe fn xor(&self, blocks: &mut [*mut u8], len: usize) {
        // SAFETY: promised by the caller.
        let failed =
            unsafe { (self.xor)(blocks.len() as c_int, len as c_int, blocks.as_mut_ptr().cast()) };
        assert_eq!(failed, 0, "xor_gen refuses {} blocks of {len} bytes", blocks.len());
    }

    /// P and Q of all `blocks` but the last two into these.
    ///
    /// # Safety
    /// As [`xor`](Self::xor), for two targets; `len` is a multiple of 32.
    pub(crate) unsafe fn pq(&self, blocks: &mut [*mut u8], len: usize) {
        // SAFETY: promised by the caller.
        let failed =
            unsafe { (self.pq)(blocks.len() as c_int, len as c_int, blocks.as_mut_ptr().cast()) };
        assert_eq!(failed, 0, "pq_gen refuses {} blocks of {len} bytes", blocks.len());
    }

    /// Tables for two rows of coefficients.
    pub(crate) fn tables(&self, rows: [&[u8]; 2]) -> Tables {
        let sources = rows[0].len();
        let coefficients = rows.concat();
        assert_eq!(coefficients.len(), 2 * sources);
        let mut bytes = vec![0; 32 * 2 * sources];
        // SAFETY: there are as many coefficients, and 32 bytes for each.
        unsafe { (self.init)(sources as c_int, 2, coefficients.as_ptr(), bytes.as_mut_ptr()) };
        Tables { bytes, sources }
    }

    /// Two sums of sources times coefficients.
    ///
    /// # Safety
    /// As many sources as the tables are for are valid for reads, the targets for writes of `len` bytes.
    pub(crate) unsafe fn encode(
        &self,
        tables: &Tables,
        sources: &[*mut u8],
        targets: [*mut u8; 2],
        len: usize,
    ) {
        assert_eq!(sources.len(), tables.sources);
        let (count, table) = (sources.len() as c_int, tables.bytes.as_ptr());
        // SAFETY: promised by the caller.
        unsafe {
            (self.encode)(len as c_int, count, 2, table, sources.as_ptr(), targets.as_ptr());
        }
    }

    /// Adds source number `which` times its coefficients to two sums.
    ///
    /// # Safety
    /// As [`encode`](Self::encode).
    pub(crate) unsafe fn update(
        &self,
        tables: &Tables,
        which: usize,
        source: *const u8,
        targets: [*mut u8; 2],
        len: usize,
    ) {
        assert!(which < tables.sources);
        let (count, which) = (tables.sources as c_int, which as c_int);
        let table = tables.bytes.as_ptr();
        // SAFETY: promised by the caller.
        unsafe { (self.update)(len as c_int, count, 2, which, table, source, targets.as_ptr()) };
    }
}
