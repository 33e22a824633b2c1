//! The tests of this crate that boot guests, and those beside them, as one program: `cargo xtask test` begins it
//! first, as guests wait.

#[path = "../../../tests/support/extent.rs"]
mod extent;
#[path = "../../../tests/support/guest.rs"]
mod guest;
#[path = "../../../tests/support/md_v0.rs"]
mod images;
#[path = "../../../tests/support/nbd.rs"]
mod nbd_client;
#[path = "../../../tests/support/root.rs"]
mod root;
mod support;

mod array;
mod kept_guest;
mod nbd_guest;
mod targets;
mod udev_guest;
