//! A server that Weir logs in to with MySQL's protocol and that sends anything.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::login::connect::<weir_proxy::wing::MySql>(data));
