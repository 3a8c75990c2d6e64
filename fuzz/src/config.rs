//! Configuration files.

use std::path::Path;
use weir_config::{Sources, load_text};

/// Any text as a configuration file of this name.
pub fn text(name: &str, data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    // A name that must be looked up asks the resolver, and a file may be a device: neither is a decoder.
    if text.contains("/dev") || text.contains("/proc") || text.contains("/sys") {
        return;
    }
    match load_text(Path::new(name), text, &Sources::default()) {
        Ok(loaded) => {
            let _ = format!("{loaded:?}");
        }
        Err(problems) => assert!(!problems.to_string().is_empty()),
    }
}

/// Any bytes as PgBouncer's userlist.txt.
pub fn userlist(data: &[u8]) {
    let file = std::env::temp_dir().join(format!("weir-fuzz-userlist-{}", std::process::id()));
    if std::fs::write(&file, data).is_err() {
        return;
    }
    let text = format!(
        "[databases]\nd = host=127.0.0.1 dbname=d\n[pgbouncer]\nlisten_addr = 127.0.0.1\nauth_type = md5\nauth_file = {}\n",
        file.display()
    );
    let _ = load_text(Path::new("pgbouncer.ini"), &text, &Sources::default());
    let _ = std::fs::remove_file(&file);
}
