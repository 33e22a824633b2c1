//! The tests of this crate as one program: each program more is linked and holds the shared parts once more.

#[path = "../examples/driver.rs"]
mod driver_example;
#[path = "../../../tests/support/extent.rs"]
mod extent;
mod support;
mod worst;

mod admin;
mod assembly;
mod background;
mod background_start;
mod consistency;
mod consistency_crash;
mod contract;
mod decision;
mod errors;
mod findings;
mod geometry;
mod geometry_oracle;
mod geometry_tables;
mod keys;
mod layout;
mod lists;
mod logs;
mod model;
mod nested;
mod partial;
mod payload;
mod policies;
mod policy_in_use;
mod resuming;
mod returning;
mod room;
mod stack;
mod stripes;
mod timers;
