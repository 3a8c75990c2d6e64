//! Any text as weir.toml.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::config::text("weir.toml", data));
