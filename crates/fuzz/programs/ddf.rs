//! [`ddf`](raidlab_fuzz::ddf) driven by libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| raidlab_fuzz::ddf(data));
