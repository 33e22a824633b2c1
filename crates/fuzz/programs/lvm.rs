//! [`lvm`](raidlab_fuzz::lvm) driven by libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| raidlab_fuzz::lvm(data));
