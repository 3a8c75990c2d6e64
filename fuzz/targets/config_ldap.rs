//! Any text as auth_ldap_options.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::ldap::text(data));
