//! The tests of this crate as one program: each program more is linked and holds the shared parts once more.
#![allow(clippy::duplicate_mod, reason = "the helpers of four tests need the same of others")]

mod bonnie_support;
mod copy_support;
mod hdparm_support;
mod support;

mod bonnie;
mod bonnie_formats;
mod bonnie_strace;
mod copy_strace;
mod fio;
mod fio_calls;
mod fio_examples;
mod fio_strace;
mod hdparm;
mod hdparm_strace;
mod null_target;
mod processes;
mod raw_target;
mod readers;
mod real_life;
mod sweep;
mod tiobench;
