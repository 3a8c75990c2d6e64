//! Messages for users contain no Rust debug forms, such as `Tcp { host: "db" }`.
//!
//! Searches the sources: `{:?}` and `?field` may be used in assertions, tests and `Debug` only.

use std::path::{Path, PathBuf};

/// Lines that may have one, by a part of them, and why.
const ALLOWED: &[(&str, &str)] = &[
    ("crates/net/src/kernel.rs", "{outcome:?}"), // an assertion
    ("crates/net/src/wake.rs", "{outcome:?}"),   // an assertion
    ("crates/wire/src/fault.rs", "format!(\"{variant:?}\")"), // only the name is taken
    ("crates/tls/src/lib.rs", "format!(\"{reason:?}\")"), // is turned into words
    ("crates/bench/src/fill.rs", "rows {:?} of {}"), // `impl Debug`
    ("crates/postgres/src/model/", ""),          // a model for tests
    ("crates/postgres/src/testing.rs", ""),      // for tests
    ("crates/proxy/src/audit.rs", ""),           // for the simulator
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

fn has_debug_form(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let in_text = code.match_indices(":?}").any(|(at, _)| code[..at].contains('"'));
    // `?peer` and `peer = ?client.peer` of tracing.
    let in_event =
        code.match_indices("= ?").any(|(at, _)| code[at + 3..].starts_with(|c: char| c.is_alphabetic()))
            || code.contains(" ?peer")
            || code.contains("?error");
    in_text || in_event
}

#[test]
fn no_message_has_a_debug_form() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    for entry in std::fs::read_dir(root.join("crates")).unwrap() {
        sources(&entry.unwrap().path().join("src"), &mut files);
    }
    assert!(files.len() > 100, "{} files", files.len());
    let mut wrong = Vec::new();
    for file in files {
        let name = file.strip_prefix(root).unwrap().display().to_string();
        if name.contains("tests") {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let asserts = lines[number.saturating_sub(4)..=number]
                .iter()
                .any(|line| line.contains("assert") || line.contains("unreachable!"));
            let allowed = ALLOWED.iter().any(|(file, part)| name.starts_with(file) && line.contains(part));
            if has_debug_form(line) && !asserts && !allowed {
                wrong.push(format!("{name}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "say it in words:\n{}", wrong.join("\n"));
}
