//! A server that Weir logs in to by PostgreSQL's protocol and that says anything.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::login::connect::<weir_proxy::wing::Postgres>(data));
