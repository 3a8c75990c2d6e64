//! The manual's reference equals the tables. After a deliberate change: `WEIR_UPDATE=1 cargo test -p
//! weir-config --test reference`.

use std::path::Path;
use weir_config::{Sources, load_text, reference};

fn compare(file: &str, text: &str) {
    let path = format!("{}/../../docs/src/{file}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("WEIR_UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap();
    assert!(found == text, "docs/src/{file} is stale; see the head of this test");
}

#[test]
fn settings() {
    compare("configuration.md", &reference::markdown());
}

#[test]
fn pgbouncer() {
    compare("pgbouncer-settings.md", &reference::pgbouncer_markdown());
}

/// Each ```toml block of the manual may lack databases and files, but not a key that exists.
#[test]
fn keys_in_examples_exist() {
    let folder = format!("{}/../../docs/src", env!("CARGO_MANIFEST_DIR"));
    let mut blocks = 0;
    for page in std::fs::read_dir(folder).unwrap() {
        let page = page.unwrap().path();
        if page.extension().is_none_or(|e| e != "md") {
            continue;
        }
        let text = std::fs::read_to_string(&page).unwrap();
        for block in text.split("```toml\n").skip(1) {
            let block = block.split("```").next().unwrap();
            let found = load_text(Path::new("example.toml"), block, &Sources::default());
            let problems = found.map(|_| String::new()).unwrap_or_else(|problems| problems.to_string());
            for wrong in ["unknown", "must be"] {
                assert!(!problems.contains(wrong), "{}: {problems}\n{block}", page.display());
            }
            blocks += 1;
        }
    }
    assert!(blocks > 5, "only {blocks} examples were found");
}

#[test]
fn every_setting_is_in_the_manual_page() {
    let page = reference::man_page();
    for row in weir_config::SETTINGS.iter().filter(|row| row.files == weir_config::registry::Files::All) {
        assert!(page.contains(&format!(".B {}\n", row.name)), "{}", row.name);
    }
    assert!(!page.lines().any(|line| line.starts_with('\'')), "a line would be a request");
    assert!(!page.contains(".md"), "a manual page has no links");
}
