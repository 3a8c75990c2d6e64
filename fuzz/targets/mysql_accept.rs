//! A client that logs in to Weir by MySQL's protocol and says anything.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::login::accept::<weir_proxy::wing::MySql>(data));
