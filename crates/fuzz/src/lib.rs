//! What comes from outside, as functions of bytes that must not panic, hang or take memory without bound.
//!
//! Each function of [`TARGETS`] takes any bytes and holds raidlab to what it promises of them: what is read and
//! printed is read again to the same, what is decoded was encoded, an array of damaged members never starts by itself
//! unless the rule says so. `tests/corpora.rs` replays every input of `corpora/` in each run of the tests;
//! `cargo xtask fuzz TARGET` looks for new ones with libFuzzer.
//!
//! libFuzzer is an optional dependency of this crate instead of a package with a lock file of its own: what is fuzzed
//! is then built of the very versions that are shipped, and nothing of it is built without the feature.

#![forbid(unsafe_code)]

mod archive;
mod assembly;
mod device;
mod documents;
mod images;
mod kernel;
mod measured;
mod metadata;
mod script;
mod text;

pub use archive::tar;
pub use assembly::assembly;
pub use documents::{results, store};
pub use kernel::fuse;
pub use measured::{parameters, trace};
pub use metadata::metadata;
pub use text::{drive, fio, layout, study};

/// A target with its name.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("assembly", assembly),
    ("drive", drive),
    ("fio", fio),
    ("fuse", fuse),
    ("layout", layout),
    ("metadata", metadata),
    ("parameters", parameters),
    ("results", results),
    ("store", store),
    ("study", study),
    ("tar", tar),
    ("trace", trace),
];
