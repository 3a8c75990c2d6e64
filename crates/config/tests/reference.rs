//! The manual's reference says what the tables say. After a wanted change:
//! `WEIR_UPDATE=1 cargo test -p weir-config --test reference`.

use weir_config::reference;

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

#[test]
fn every_setting_is_in_the_manual_page() {
    let page = reference::man_page();
    for row in weir_config::SETTINGS.iter().filter(|row| row.files == weir_config::registry::Files::All) {
        assert!(page.contains(&format!(".B {}\n", row.name)), "{}", row.name);
    }
    assert!(!page.lines().any(|line| line.starts_with('\'')), "a line would be a request");
}
