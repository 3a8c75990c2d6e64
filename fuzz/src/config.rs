//! Configuration files.

use std::net::IpAddr;
use std::path::Path;
use weir_config::{Origin, Protocol, Sources, load_text};
use weir_session::Login;

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

/// Any bytes as an HBA file, which decides over some logins then. Files that it names are not read: they
/// could be devices.
pub fn hba(data: &[u8]) {
    if data.contains(&b'@') || data.windows(7).any(|word| word == b"include") {
        return;
    }
    let file = std::env::temp_dir().join(format!("weir-fuzz-hba-{}", std::process::id()));
    if std::fs::write(&file, data).is_err() {
        return;
    }
    let text = format!(
        "[databases]\nd = host=127.0.0.1 dbname=d auth_user=u\n[pgbouncer]\nlisten_addr = 127.0.0.1\nauth_type = hba\n\
         auth_hba_file = {}\n",
        file.display()
    );
    if let Ok(loaded) = load_text(Path::new("pgbouncer.ini"), &text, &Sources::default()) {
        let login = Login { user: "u".to_owned(), database: Some("d".to_owned()), replication: false };
        for address in [None, Some(IpAddr::from([127, 0, 0, 1])), Some(IpAddr::from([0; 16]))] {
            let from = Origin { address, unix: address.is_none(), ..Origin::default() };
            let rejects = loaded.snapshot.rejects(Protocol::Postgres, &login, from).is_some();
            let admission = loaded.snapshot.admit(Protocol::Postgres, &login, from, None);
            assert!(!rejects || admission.secret.is_none());
        }
    }
    let _ = std::fs::remove_file(&file);
}
