//! Any bytes as the PROXY header of a load balancer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::login::proxy_header(data));
