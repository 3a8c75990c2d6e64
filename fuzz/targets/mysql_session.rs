//! Two clients and a server that send anything, with MySQL's protocol.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::session::run::<weir_proxy::wing::MySql>(data));
