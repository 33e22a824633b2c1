//! The tests of this crate as one program: each program more is linked and holds the shared parts once more. What needs
//! a process for itself stays apart, and `mounted_md`, which boots a guest and runs itself in it.

#[path = "../../engine/tests/common/mod.rs"]
mod common;
mod directory_support;
#[path = "../../../tests/support/extent.rs"]
mod extent;
mod killed;
#[path = "../../engine/tests/made/mod.rs"]
mod made;
#[path = "../../../tests/support/nbd.rs"]
mod nbd_client;
#[path = "../../../tests/support/nbd_writer.rs"]
mod nbd_writer;
#[path = "../../../tests/support/numbered.rs"]
mod numbered;
#[path = "../../../tests/support/power.rs"]
mod power;
#[path = "../../../tests/support/root.rs"]
mod root;

mod cleanup;
mod directory;
mod directory_faults;
mod fuse;
mod mounted;
mod nbd;
mod parity;
mod power_cut;
mod raw;
mod raw_processes;
mod raw_workloads;
mod rundir;
