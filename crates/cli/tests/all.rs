//! The tests of this crate as one program: each program more is linked and holds the shared parts once more. What boots
//! guests is in `guests`.
#![allow(clippy::duplicate_mod, reason = "the helpers of four tests need the same of others")]

#[path = "../../../tests/support/extent.rs"]
mod extent;
#[path = "../../../tests/support/nbd.rs"]
mod nbd_client;
#[path = "../../../tests/support/nbd_writer.rs"]
mod nbd_writer;
#[path = "../../../tests/support/numbered.rs"]
mod numbered;
#[path = "../../../tests/support/root.rs"]
mod root;
mod support;

mod advise;
mod array_create;
mod array_running;
mod bad_input;
mod block_devices;
mod both;
mod calibrate;
mod check;
mod compare_risk;
mod diff;
mod doctor;
mod drive;
mod exports;
mod filesystems;
mod geom;
mod layout;
mod member_files;
mod originals_parse;
mod outputs;
mod plot;
mod replay;
mod risk;
mod run_bad_input;
#[cfg(target_os = "linux")]
mod same_calls;
mod same_operations;
mod same_requests;
mod schema;
mod store;
mod study;
mod throttle;
mod tune;
mod virtual_time;
