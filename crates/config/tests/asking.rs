//! Users that no file lists: which database is asked, with which user, and what a result means.

use std::path::Path;
use std::sync::Arc;
use weir_auth::{Secret, SecretKind};
use weir_config::{Learnt, Origin, Protocol, Snapshot, Sources, load_text};
use weir_session::{AuthMethod, Login};

const VERIFIER: &str = "SCRAM-SHA-256$4096:c2FsdHNhbHQ=$AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=:\
                        AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

fn load(text: &str) -> Snapshot {
    let text = format!("{text}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n");
    load_text(Path::new("p.ini"), &text, &Sources::default()).unwrap_or_else(|e| panic!("{e}")).snapshot
}

fn login(user: &str, database: &str) -> Login {
    Login { user: user.into(), database: Some(database.into()), replication: false }
}

fn learnt(secret: Option<&str>, alike: Option<&str>) -> Learnt {
    let of = |text: &str| Arc::new(Secret::from_userlist(text));
    Learnt::new(secret.map(of), alike.map(of), 1)
}

const INI: &str = "[pgbouncer]\nauth_user = asker\nauth_query = general\n[databases]\na = host=127.0.0.1 dbname=on_server\n\
                   b = host=127.0.0.1 auth_user=other auth_query='of b'\nc = host=127.0.0.1 auth_dbname=a\n\
                   d = host=127.0.0.1 user=forced password=x\n* = host=127.0.0.1\n[users]\nann = pool_size=3";

#[test]
fn whom_and_what_it_asks() {
    let snapshot = load(INI);
    let asked = |user: &str, database: &str| {
        let asked = snapshot.asked(Protocol::Postgres, &login(user, database), Origin::default())?;
        Some(format!(
            "{} {} as {}: {}",
            asked.entry.name, asked.database, asked.asking.user, asked.asking.query
        ))
    };
    for (database, wanted) in [
        ("a", "a on_server as asker: general"),
        ("b", "b b as other: of b"),
        ("c", "a on_server as asker: general"),
        ("d", "d d as asker: general"),
        ("any", "* any as asker: general"),
    ] {
        assert_eq!(asked("bob", database).as_deref(), Some(wanted), "{database}");
    }
    assert!(asked("ann", "a").is_some(), "what qualifies her is no password");
    assert!(snapshot.asked(Protocol::Mysql, &login("bob", "a"), Origin::default()).is_none());
    let fixed = load("[databases]\na = host=127.0.0.1 auth_user=asker\nb = host=127.0.0.1");
    assert!(fixed.asked(Protocol::Postgres, &login("bob", "b"), Origin::default()).is_none());
    assert!(
        fixed.asked(Protocol::Postgres, &login("bob", "nowhere"), Origin::default()).is_some(),
        "strangers cannot tell"
    );
}

#[test]
fn a_listed_user_is_not_asked_for_and_the_asker_has_its_password() {
    let text = "[postgres]\nauth_user = 'asker'\n[users.asker]\npassword = 'hidden'\n[users.ann]\npool_size = 3\n\
                [databases.a]\nurl = 'postgres://127.0.0.1/a'\n[databases.b]\nurl = 'postgres://asker:other@127.0.0.1/b'\n";
    let snapshot = load_text(Path::new("w.toml"), text, &Sources::default()).unwrap().snapshot;
    assert!(snapshot.asked(Protocol::Postgres, &login("asker", "a"), Origin::default()).is_none());
    for database in ["a", "b"] {
        let asked = snapshot.asked(Protocol::Postgres, &login("ann", database), Origin::default()).unwrap();
        assert!(
            matches!(asked.secret.unwrap().kind(), SecretKind::Plain(p) if &***p == "hidden"),
            "{database}"
        );
    }
}

#[test]
fn an_answer_makes_a_user_and_names_without_one_look_alike() {
    let snapshot = load(INI);
    let admit = |user: &str, learnt: &Learnt| {
        snapshot.admit(Protocol::Postgres, &login(user, "a"), Origin::default(), Some(learnt))
    };
    // The method of pgbouncer.ini is md5; a verifier is asked for by SCRAM.
    let known = admit("ann", &learnt(Some(VERIFIER), None));
    assert_eq!(known.method, AuthMethod::ScramSha256);
    let nobody = admit("bob", &learnt(None, Some(VERIFIER)));
    assert_eq!(nobody.method, AuthMethod::ScramSha256);
    let rounds = |admission: &weir_session::Admission| match admission.secret.as_deref().map(Secret::kind) {
        Some(SecretKind::ScramVerifier(v)) => (v.iterations, v.salt.len()),
        _ => (0, 0),
    };
    assert_eq!(rounds(&known), rounds(&nobody));
    let again = admit("bob", &learnt(None, Some(VERIFIER)));
    assert!(nobody.secret.unwrap().is_same(&again.secret.unwrap()), "its salt stays");
    let md5 = admit("ann", &learnt(Some("md5ABCDEF00112233445566778899aabbcc"), Some(VERIFIER)));
    assert_eq!(md5.method, AuthMethod::Md5);
    let none = admit("ann", &learnt(None, None));
    assert!(none.method == AuthMethod::Md5 && none.secret.is_none());
    let route = |user: &str, database: &str, learnt: &Learnt| {
        snapshot.route(Protocol::Postgres, &login(user, database), Some(learnt)).unwrap()
    };
    let answer = learnt(Some(VERIFIER), None);
    let ann = route("ann", "a", &answer);
    assert_eq!((ann.server_user.as_str(), ann.pool_size), ("ann", 3), "what qualifies her holds");
    assert!(ann.server_secret.is_some_and(|secret| secret.is_verifier()));
    let forced = route("bob", "d", &answer);
    assert_eq!(forced.server_user, "forced");
    assert!(forced.server_secret.is_some_and(|secret| !secret.is_verifier()));
}

#[test]
fn a_url_without_a_password_lets_nobody_in_past_an_hba_file() {
    let file = std::env::temp_dir().join(format!("weir-asking-hba-{}", std::process::id()));
    std::fs::write(&file, "host all all 127.0.0.1/32 md5\n").unwrap();
    let text = format!(
        "[postgres]\nauth_type = 'hba'\nauth_hba_file = '{}'\n[databases.a]\nurl = 'postgres://ann@127.0.0.1/a'\n",
        file.display()
    );
    let snapshot = load_text(Path::new("w.toml"), &text, &Sources::default()).unwrap().snapshot;
    std::fs::remove_file(&file).unwrap();
    let from = Origin { local: true, address: Some([127, 0, 0, 1].into()), ..Origin::default() };
    let admit = |user: &str| snapshot.admit(Protocol::Postgres, &login(user, "a"), from, None);
    assert_eq!(admit("ann").method, AuthMethod::Md5);
    assert!(snapshot.rejects(Protocol::Postgres, &login("ann", "a"), from).is_none());
    let elsewhere = Origin { local: false, address: Some([10, 0, 0, 1].into()), ..from };
    let why = snapshot.rejects(Protocol::Postgres, &login("ann", "a"), elsewhere).unwrap();
    assert_eq!(why, "no line of auth_hba_file fits");
}
