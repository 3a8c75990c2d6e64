//! Any text as userlist.txt.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::config::userlist(data));
