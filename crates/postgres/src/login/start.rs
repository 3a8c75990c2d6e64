//! What the parameters of a startup packet come to as settings of a session: in which order they are set, and
//! which of them act at that moment only.
//!
//! Owns: [`settings_of_start`]. Must not know: who logs in.

use crate::datestyle;
use crate::session_state::{APPLICATION_NAME, Settings, TooMany};

/// The settings of a session that begins with these pairs, in the order in which PostgreSQL sets them: what
/// stood in `options`, then the packet's own (`process_startup_options`).
///
/// # Errors
/// [`TooMany`] for more settings than [`weir_wire::limits`] allows.
pub(crate) fn settings_of_start(pairs: Vec<(String, Vec<u8>)>) -> Result<Settings, TooMany> {
    let lasting = pairs.into_iter().filter(|(name, value)| !passes(name, value)).map(readable).collect();
    Settings::from_pairs(datestyle::fold(lasting))
}

/// A startup packet's bytes are of no encoding, and what Weir sets must be of one. PostgreSQL shows each byte
/// of an application's name that is not ASCII as `?` (from 16 on as `\xNN`) by itself, and so does this where
/// the name is not UTF-8.
fn readable((name, mut value): (String, Vec<u8>)) -> (String, Vec<u8>) {
    if name.eq_ignore_ascii_case(APPLICATION_NAME) && std::str::from_utf8(&value).is_err() {
        value.iter_mut().filter(|byte| !(0x20..0x7F).contains(*byte)).for_each(|byte| *byte = b'?');
    }
    (name, value)
}

/// It is of the transaction in which a session begins, or sows no seed there, and is gone before the first
/// request; set on a server later, it would act on what clients do. What PostgreSQL refuses stays, so that it
/// does.
fn passes(name: &str, value: &[u8]) -> bool {
    match name.to_ascii_lowercase().as_str() {
        "transaction_isolation" => value.eq_ignore_ascii_case(b"read committed"),
        "transaction_read_only" => is_bool(value),
        "seed" => {
            let seed = std::str::from_utf8(value).ok().and_then(|text| text.trim().parse::<f64>().ok());
            seed.is_some_and(|seed| (-1.0..=1.0).contains(&seed))
        }
        _ => false,
    }
}

/// PostgreSQL's spellings of true and false (`parse_bool`).
fn is_bool(value: &[u8]) -> bool {
    let value = value.to_ascii_lowercase();
    let begins = |word: &[u8]| !value.is_empty() && word.starts_with(&value);
    match value.as_slice() {
        b"on" | b"of" | b"off" | b"1" | b"0" => true,
        _ => begins(b"true") || begins(b"false") || begins(b"yes") || begins(b"no"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_s_name_in_another_encoding_is_shown_as_the_server_shows_it() {
        let name = |value: &[u8]| {
            let settings = settings_of_start(vec![("application_name".to_owned(), value.into())]).unwrap();
            settings.get("application_name").map(<[u8]>::to_vec).unwrap()
        };
        assert_eq!(name(b"caf\xe9 x"), b"caf? x");
        assert!(
            name("caf\u{e9}".as_bytes()).starts_with("caf\u{e9}".as_bytes()),
            "the server does it itself"
        );
    }

    #[test]
    fn what_acts_at_the_start_only_is_not_kept() {
        let kept = |name: &str, value: &str| {
            let settings = settings_of_start(vec![(name.to_owned(), value.into())]).unwrap();
            settings.get(name).is_some()
        };
        for (name, value) in [
            ("transaction_isolation", "Read Committed"),
            ("Transaction_Read_Only", "ON"),
            ("transaction_read_only", "fal"),
            ("seed", "0.5"),
            ("seed", "-1"),
        ] {
            assert!(!kept(name, value), "{name}={value}");
        }
        for (name, value) in [
            ("transaction_isolation", "serializable"),
            ("transaction_read_only", "o"),
            ("transaction_read_only", ""),
            ("transaction_deferrable", "off"),
            ("seed", "1.5"),
            ("seed", "x"),
            ("default_transaction_read_only", "on"),
        ] {
            assert!(kept(name, value), "{name}={value}");
        }
    }
}
