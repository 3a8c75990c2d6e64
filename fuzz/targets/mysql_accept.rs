//! A client that logs in to Weir with MySQL's protocol and sends anything.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::login::accept::<weir_proxy::wing::MySql>(data));
