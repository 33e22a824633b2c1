#![forbid(unsafe_code)]
mod candidate;
mod fidelity;
mod profile;
mod wanted;
mod meter;
mod objectives;
