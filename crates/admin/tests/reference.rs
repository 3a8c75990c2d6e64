//! The manual's list of commands equals the table. After a deliberate change: `WEIR_UPDATE=1 cargo test -p
//! weir-admin --test reference`.

use weir_admin::console::registry::reference;

#[test]
fn commands() {
    let path = format!("{}/../../docs/src/console.md", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    let (start, end) = ("registry.rs -->\n", "<!-- end of commands -->");
    let (before, rest) = text.split_once(start).unwrap();
    let (_, behind) = rest.split_once(end).unwrap();
    let wanted = format!("{before}{start}{}{end}{behind}", reference());
    if std::env::var_os("WEIR_UPDATE").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap();
    assert!(found == wanted, "docs/src/console.md is stale; see the head of this test");
}
