//! Parsers of all input from outside, as functions of bytes that must not panic, hang or take memory without bound.
//!
//! Each function of [`TARGETS`] takes any bytes and checks what raidlab promises of them: what is parsed and
//! printed parses to the same again, decoding is the inverse of encoding, and an array of damaged members never
//! starts by itself unless the rule allows it. `tests/corpora.rs` replays every input of `corpora/` in each run of
//! the tests; `cargo xtask fuzz TARGET` searches for new inputs with libFuzzer.
//!
//! libFuzzer is an optional dependency of this crate, not a package with a lock file of its own, so that the fuzzed
//! code is built from the very versions that are shipped. Without the feature nothing of it is built.

#![forbid(unsafe_code)]

mod archive;
mod assembly;
mod ddf;
mod device;
mod disk;
mod documents;
mod geom;
mod images;
mod kernel;
mod lvm;
mod md;
mod measured;
mod metadata;
mod nbd;
mod script;
mod text;
mod written;

pub use archive::tar;
pub use assembly::assembly;
pub use ddf::ddf;
pub use documents::{results, store};
pub use geom::geom;
pub use kernel::fuse;
pub use lvm::lvm;
pub use md::md;
pub use measured::{parameters, trace};
pub use metadata::metadata;
pub use nbd::nbd;
pub use text::{drive, fio, layout, study};
pub use written::written;

/// A target with its name.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("assembly", assembly),
    ("ddf", ddf),
    ("drive", drive),
    ("fio", fio),
    ("fuse", fuse),
    ("geom", geom),
    ("layout", layout),
    ("lvm", lvm),
    ("md", md),
    ("metadata", metadata),
    ("nbd", nbd),
    ("parameters", parameters),
    ("results", results),
    ("store", store),
    ("study", study),
    ("tar", tar),
    ("trace", trace),
    ("written", written),
];
