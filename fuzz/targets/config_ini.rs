//! Any text as pgbouncer.ini.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::config::text("pgbouncer.ini", data));
