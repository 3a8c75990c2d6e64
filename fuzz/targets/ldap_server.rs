//! An LDAP server that is asked about a password and sends anything.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::ldap::server(data));
