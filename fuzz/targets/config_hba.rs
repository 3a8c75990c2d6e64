//! Any text as a file in the form of pg_hba.conf.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::config::hba(data));
