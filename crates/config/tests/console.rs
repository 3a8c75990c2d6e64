//! Who may log in to the administration console, and which names are databases instead.

use std::path::Path;
use weir_config::console::Rights;
use weir_config::{Origin, Protocol, Snapshot, Sources, load_text};
use weir_session::Login;

const USERS: &str =
    "[console]\nadmin_users = [\"boss\"]\nstats_users = [\"watcher\"]\n[users.boss]\npassword = \"x\"\n";
const OWN_UID: u32 = 1000;

fn snapshot(file: &str, text: &str) -> Snapshot {
    match load_text(Path::new(file), text, &Sources::default()) {
        Ok(loaded) => loaded.snapshot,
        Err(problems) => panic!("{problems}"),
    }
}

fn rights(
    snapshot: &Snapshot,
    protocol: Protocol,
    user: &str,
    database: &str,
    uid: Option<u32>,
) -> Option<Option<Rights>> {
    let database = Some(database).filter(|name| !name.is_empty()).map(str::to_owned);
    let login = Login { user: user.to_owned(), database, replication: false };
    snapshot.console(protocol, &login, Origin { local: true, uid, ..Origin::default() }, OWN_UID)
}

#[test]
fn listed_users_come_in_by_either_name() {
    let text = format!("{USERS}[databases.app]\nurl = \"postgres://h/app\"\n");
    let snapshot = snapshot("weir.toml", &text);
    let of = |user, database| rights(&snapshot, Protocol::Postgres, user, database, None);
    for name in ["pgbouncer", "weir"] {
        assert_eq!(of("boss", name), Some(Some(Rights::Admin)));
        assert_eq!(of("watcher", name), Some(Some(Rights::Stats)));
        assert_eq!(of("app", name), Some(None), "there is no database of that name");
    }
    assert_eq!(of("boss", "app"), None);
    assert_eq!(of("pgbouncer", ""), Some(None), "the user's name is the database's");
    let mysql = |user, database| rights(&snapshot, Protocol::Mysql, user, database, None);
    assert_eq!(mysql("boss", "weir"), Some(Some(Rights::Admin)));
    assert_eq!((mysql("boss", "pgbouncer"), mysql("weir", "")), (None, None));
}

#[test]
fn a_database_that_is_there_goes_before_the_console() {
    let text = format!("{USERS}[databases.weir]\nurl = \"postgres://h/app\"\n");
    let named = snapshot("weir.toml", &text);
    assert_eq!(rights(&named, Protocol::Postgres, "boss", "weir", Some(OWN_UID)), None);
    assert_eq!(rights(&named, Protocol::Postgres, "boss", "pgbouncer", None), Some(Some(Rights::Admin)));
    // One that a server may have.
    let text = format!("{USERS}[databases.\"*\"]\nurl = \"postgres://h\"\n");
    let all = snapshot("weir.toml", &text);
    for name in ["weir", "pgbouncer"] {
        assert_eq!(rights(&all, Protocol::Postgres, "app", name, None), None);
        assert_eq!(rights(&all, Protocol::Postgres, "boss", name, None), Some(Some(Rights::Admin)));
    }
    // PgBouncer has reserved its name in its own files.
    let text = "[databases]\n* = host=h user=u\n[pgbouncer]\nauth_type = any\nadmin_users = boss\n";
    let theirs = snapshot("p.ini", text);
    assert_eq!(rights(&theirs, Protocol::Postgres, "app", "pgbouncer", None), Some(None));
    assert_eq!(rights(&theirs, Protocol::Postgres, "app", "weir", None), None);
    assert_eq!(rights(&theirs, Protocol::Postgres, "boss", "pgbouncer", None), Some(Some(Rights::Admin)));
}

#[test]
fn only_the_account_that_runs_weir_is_its_owner() {
    let text = format!("{USERS}[databases.app]\nurl = \"postgres://h/app\"\n");
    let snapshot = snapshot("weir.toml", &text);
    let of = |user, uid| rights(&snapshot, Protocol::Postgres, user, "pgbouncer", uid);
    assert_eq!(of("pgbouncer", Some(OWN_UID)), Some(Some(Rights::Owner)));
    assert_eq!(of("weir", Some(OWN_UID)), Some(Some(Rights::Owner)));
    assert_eq!((of("pgbouncer", Some(0)), of("pgbouncer", None)), (Some(None), Some(None)));
    assert_eq!(of("boss", Some(OWN_UID)), Some(Some(Rights::Admin)), "whose password is asked");
}
