//! The tests of this crate as one program: each program more is linked and holds the shared parts once more.

mod crash;
mod drives;
mod fault_points;
mod md;
mod reproduction;
mod rig;
mod swarm;
