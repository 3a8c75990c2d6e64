//! Any text in a file or an argument gives a result or a problem with a place, never a panic, and never the
//! password in a message.

use proptest::prelude::*;
use std::path::Path;
use weir_config::{Sources, load, load_text};

const TOML: &str = include_str!("../../../examples/weir.toml");
const INI: &str = include_str!("../../../examples/pgbouncer.ini");

fn read(name: &str, text: &str) {
    // Addresses of our own, so that no damaged name is asked of a name server.
    let sources = Sources::default()
        .with("postgres.listen", "127.0.0.1:6432")
        .with("mysql.listen", "127.0.0.1:6033")
        .with("http.listen", "");
    match load_text(Path::new(name), text, &sources) {
        Ok(loaded) => assert!(!loaded.snapshot.listeners.is_empty()),
        Err(problems) => assert!(!problems.0.is_empty() && problems.0.iter().all(|p| !p.text.is_empty())),
    }
}

/// A file with a piece cut out and another put in.
fn damaged(whole: &'static str) -> impl Strategy<Value = String> {
    (0..whole.len(), 0..40usize, "[\\PC\n\"'=%\\[\\]]{0,12}").prop_map(move |(at, length, insert)| {
        let start = (0..=at).rev().find(|&n| whole.is_char_boundary(n)).unwrap_or(0);
        let end = (start + length..whole.len()).find(|&n| whole.is_char_boundary(n)).unwrap_or(whole.len());
        format!("{}{insert}{}", &whole[..start], &whole[end..])
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_weir_toml(text in damaged(TOML)) {
        read("w.toml", &text);
    }

    #[test]
    fn a_damaged_pgbouncer_ini(text in damaged(INI)) {
        read("p.ini", &text);
    }

    #[test]
    fn a_line_of_anything(line in "\\PC{0,60}") {
        read("p.ini", &format!("[databases]\n{line}\n[pgbouncer]\n{line}\n"));
        read("w.toml", &format!("{line}\n"));
    }

    #[test]
    fn a_url_of_anything(middle in "[\\PC@:/?%&=\\[\\]]{0,30}", scheme in "(postgres|mysql)") {
        let url = format!("{scheme}://app:hunter2@{middle}");
        if let Err(problems) = load(&Sources::urls(&[url]).with("http.listen", "")) {
            prop_assert!(!problems.to_string().contains("hunter2"), "{}", problems);
        }
    }

    #[test]
    fn a_setting_of_anything(name in "(pool|log|socket|databases|users|limits)?\\.?\\PC{0,12}", value in "\\PC{0,12}") {
        drop(load(&Sources::urls(&["postgres://a:b@127.0.0.1/a"]).with(&name, &value)));
    }
}
