//! The effect of a configuration: listeners, databases, users, proofs, pools.

use std::path::Path;
use std::sync::Arc;
use weir_auth::secret::SecretKind;
use weir_config::{
    Auth, ListenAt, Origin, PoolMode, Protocol, Route, Server, Snapshot, Sources, diff, load, load_text,
};
use weir_session::{AuthMethod, Login};

fn from_urls(urls: &[&str]) -> Snapshot {
    load(&Sources::urls(urls)).unwrap_or_else(|problems| panic!("{problems}")).snapshot
}

fn from_text(name: &str, text: &str) -> Snapshot {
    load_text(Path::new(name), text, &Sources::default())
        .unwrap_or_else(|problems| panic!("{problems}"))
        .snapshot
}

const HERE: Origin<'_> =
    Origin { local: true, uid: None, unix: true, address: None, tls: false, certificate: None };

fn login(user: &str, database: Option<&str>) -> Login {
    Login { user: user.into(), database: database.map(str::to_owned), replication: false }
}

fn listeners(snapshot: &Snapshot) -> Vec<String> {
    let at = |at: &ListenAt| match at {
        ListenAt::Tcp(at) => at.to_string(),
        ListenAt::Unix { path, mode, .. } => format!("{} {mode:o}", path.display()),
    };
    snapshot.listeners.iter().map(|l| format!("{} {}", l.protocol.name(), at(&l.at))).collect()
}

fn password(route: &Route) -> String {
    match route.server_secret.as_deref().map(|s| s.kind()) {
        None => "-".into(),
        Some(SecretKind::Plain(password)) => password.to_string(),
        Some(_) => "hash".into(),
    }
}

#[test]
fn one_url() {
    let snapshot = from_urls(&["postgres://app:secret@127.0.0.1:5432/app"]);
    assert_eq!(listeners(&snapshot), ["postgres 127.0.0.1:6432"]);
    assert_eq!(snapshot.http, [("127.0.0.1:9930".parse().unwrap(), false)]);
    assert!(!snapshot.http_required);
    assert!(snapshot.workers > 0);
    assert!(snapshot.mysql.is_empty());

    let admission = snapshot.admit(Protocol::Postgres, &login("app", None), HERE, None);
    assert_eq!(admission.method, AuthMethod::ScramSha256);
    assert!(admission.secret.is_some());
    let stranger = snapshot.admit(Protocol::Postgres, &login("eve", None), HERE, None);
    assert_eq!(stranger.method, AuthMethod::ScramSha256);
    assert!(stranger.secret.is_none());

    let route = snapshot.route(Protocol::Postgres, &login("app", Some("app")), None).unwrap();
    assert_eq!(
        (route.pool.as_str(), route.server_database.as_str(), route.server_user.as_str()),
        ("app", "app", "app")
    );
    assert_eq!(password(&route), "secret");
    assert_eq!(route.server, Server::Tcp { host: "127.0.0.1".into(), port: 5432 });
    assert_eq!((route.pool_mode, route.pool_size), (PoolMode::Transaction, 20));
    // The user's name stands for a database that was not named.
    assert!(snapshot.route(Protocol::Postgres, &login("app", None), None).is_some());
    assert!(snapshot.route(Protocol::Postgres, &login("app", Some("other")), None).is_none());
}

#[test]
fn http_on_all_addresses() {
    let sources = Sources::urls(&["postgres://app:secret@127.0.0.1/app"]).with("http.listen", "*:9931");
    let snapshot = load(&sources).unwrap_or_else(|problems| panic!("{problems}")).snapshot;
    let [v4, v6] = ["0.0.0.0:9931", "[::]:9931"].map(|address| address.parse().unwrap());
    assert_eq!(snapshot.http, [(v4, false), (v6, true)]);
    assert!(snapshot.http_required);
}

#[test]
fn a_url_without_a_database_is_all_of_its_server() {
    let snapshot = from_urls(&["postgres://app:secret@127.0.0.1"]);
    let route = snapshot.route(Protocol::Postgres, &login("app", Some("other")), None).unwrap();
    assert_eq!((route.pool.as_str(), route.server_database.as_str()), ("other", "other"));
}

#[test]
fn a_url_without_a_password_is_for_this_machine() {
    let snapshot = from_urls(&["mysql://app@127.0.0.1/shop"]);
    let here = snapshot.admit(Protocol::Mysql, &login("app", None), HERE, None);
    // As MySQL does it: no password is the password.
    assert_eq!(here.method, AuthMethod::LikeServer);
    assert!(
        here.secret.is_some_and(
            |secret| matches!(secret.kind(), SecretKind::Plain(password) if password.is_empty())
        )
    );
    let elsewhere = snapshot.admit(Protocol::Mysql, &login("app", None), Origin::default(), None);
    assert_eq!(elsewhere.method, AuthMethod::LikeServer);
    assert!(elsewhere.secret.is_none());
    let stranger = snapshot.admit(Protocol::Mysql, &login("eve", None), HERE, None);
    assert!(stranger.method != AuthMethod::Trust && stranger.secret.is_none());
}

#[test]
fn two_urls_with_the_same_user() {
    let snapshot = from_urls(&["postgres://app:one@127.0.0.1/app", "mysql://app:two@127.0.0.1/app"]);
    assert_eq!(listeners(&snapshot), ["postgres 127.0.0.1:6432", "mysql 127.0.0.1:6033"]);
    let route = |protocol| snapshot.route(protocol, &login("app", Some("app")), None).unwrap();
    assert_eq!(password(&route(Protocol::Postgres)), "one");
    assert_eq!(password(&route(Protocol::Mysql)), "two");
    // MySQL clients may name any schema or none; they share one pool.
    for schema in [None, Some("app"), Some("other")] {
        let route = snapshot.route(Protocol::Mysql, &login("app", schema), None).unwrap();
        assert_eq!((route.pool.as_str(), route.server_database.as_str()), ("*", schema.unwrap_or("")));
    }
}

#[test]
fn several_users_of_one_database() {
    for (protocol, scheme) in [(Protocol::Postgres, "postgres"), (Protocol::Mysql, "mysql")] {
        let snapshot =
            from_urls(&[&format!("{scheme}://ann:one@h/app"), &format!("{scheme}://bob:two@h/app")]);
        let route = |user| snapshot.route(protocol, &login(user, Some("app")), None).unwrap();
        assert_eq!((route("ann").server_user.as_str(), password(&route("ann")).as_str()), ("ann", "one"));
        assert_eq!((route("bob").server_user.as_str(), password(&route("bob")).as_str()), ("bob", "two"));
    }
}

#[test]
fn flags_go_before_everything() {
    let sources = Sources {
        listen: vec!["127.0.0.1:7000".into()],
        ..Sources::urls(&["postgres://app:secret@127.0.0.1/app"])
    }
    .with("pool.default_pool_size", "8")
    .with("pool.default_pool_size", "9")
    .with("databases.second.url", "postgres://app:secret@127.0.0.1/two")
    .with("databases.second.pool_mode", "session");
    let snapshot = load(&sources).unwrap().snapshot;
    assert_eq!(listeners(&snapshot), ["postgres 127.0.0.1:7000"]);
    let route = |name| snapshot.route(Protocol::Postgres, &login("app", Some(name)), None).unwrap();
    assert_eq!((route("app").pool_size, route("app").pool_mode), (9, PoolMode::Transaction));
    assert_eq!(
        (route("second").pool_mode, route("second").server_database.as_str()),
        (PoolMode::Session, "two")
    );
}

#[test]
fn the_example_weir_toml() {
    let text = include_str!("../../../examples/weir.toml");
    let loaded = load_text(Path::new("weir.toml"), text, &Sources::default()).unwrap();
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    let snapshot = loaded.snapshot;
    assert_eq!(listeners(&snapshot), ["postgres 127.0.0.1:6432", "mysql 127.0.0.1:6033"]);
    let postgres =
        |user, database| snapshot.route(Protocol::Postgres, &login(user, Some(database)), None).unwrap();
    let app = postgres("ann", "app");
    assert_eq!((app.server_user.as_str(), app.pool_size, password(&app).as_str()), ("app", 8, "secret"));
    let reports = postgres("ann", "reports");
    assert_eq!((reports.server_user.as_str(), password(&reports).as_str()), ("ann", "change-me"));
    assert_eq!((reports.pool_mode, reports.pool_size), (PoolMode::Session, 20));
    assert_eq!(postgres("bob", "app").pool_size, 2);
    // Users are named: those of the URLs are no users of Weir's.
    assert!(snapshot.admit(Protocol::Postgres, &login("app", None), HERE, None).secret.is_none());
    // The only MySQL database is meant by a client that names none.
    assert_eq!(snapshot.route(Protocol::Mysql, &login("ann", None), None).unwrap().pool, "shop");
    assert_eq!(snapshot.timeouts.query_wait_timeout_ms, 30_000);
}

#[test]
fn the_example_pgbouncer_ini() {
    let text = include_str!("../../../examples/pgbouncer.ini").replace(
        "examples/userlist.txt",
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/userlist.txt"),
    );
    let loaded = load_text(Path::new("pgbouncer.ini"), &text, &Sources::default()).unwrap();
    let warnings: Vec<_> = loaded.warnings.iter().map(|w| w.problem.text.as_str()).collect();
    assert!(warnings.is_empty(), "{warnings:?}");
    let snapshot = loaded.snapshot;
    assert_eq!(listeners(&snapshot), ["postgres 127.0.0.1:6432"]);
    assert_eq!(snapshot.postgres.auth, Auth::Method(AuthMethod::ScramSha256));
    assert_eq!((snapshot.limits.max_client_conn, snapshot.limits.max_prepared_statements), (Some(5000), 100));
    assert_eq!(snapshot.timeouts.server_connect_timeout_ms, 5500);
    assert_eq!((snapshot.tcp.keepalive, snapshot.tcp.keepidle_s), (true, 60));
    let route =
        |user, database| snapshot.route(Protocol::Postgres, &login(user, Some(database)), None).unwrap();
    let app = route("app", "app");
    assert_eq!((app.pool_mode, app.pool_size, app.min_pool_size), (PoolMode::Transaction, 20, 2));
    assert_eq!(password(&app), "change-me");
    let reports = route("app", "reports");
    assert_eq!((reports.server_database.as_str(), reports.server_user.as_str()), ("warehouse", "report"));
    assert_eq!(
        (reports.pool_mode, reports.pool_size, password(&reports).as_str()),
        (PoolMode::Session, 5, "it's a secret")
    );
    assert_eq!(route("app", "with-dash").server, Server::Unix("/var/run/postgresql/.s.PGSQL.5432".into()));
    let other = route("app", "elsewhere");
    assert_eq!((other.pool.as_str(), other.server_database.as_str()), ("elsewhere", "elsewhere"));
    assert_eq!(route("batch", "app").pool_mode, PoolMode::Session);
}

#[test]
fn defaults_of_pgbouncer() {
    let snapshot =
        from_text("p.ini", "[databases]\na = host=h user=u\nb = user=u\n[pgbouncer]\nauth_type = any\n");
    assert_eq!(listeners(&snapshot), ["postgres /tmp/.s.PGSQL.6432 777"]);
    assert_eq!(snapshot.limits.max_client_conn, Some(100));
    assert_eq!(snapshot.tcp.listen_backlog, 128);
    let route = snapshot.route(Protocol::Postgres, &login("anybody", Some("b")), None).unwrap();
    assert_eq!(route.server, Server::Unix("/tmp/.s.PGSQL.5432".into()));
    assert_eq!((route.pool_mode, route.pool_size, route.server_user.as_str()), (PoolMode::Session, 20, "u"));
    assert_eq!(
        snapshot.admit(Protocol::Postgres, &login("anybody", None), Origin::default(), None).method,
        AuthMethod::Trust
    );
    let timeouts = &snapshot.timeouts;
    assert_eq!((timeouts.query_wait_timeout_ms, timeouts.server_check_delay_ms), (120_000, 30_000));
    let values = &snapshot.values;
    let row = values.rows().into_iter().find(|row| row.key == "pool_mode").unwrap();
    assert_eq!((row.value.as_str(), row.default.as_str(), row.changeable), ("session", "session", true));
}

#[test]
fn proofs_by_auth_type_and_secret() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let users = folder.join("proofs.txt");
    let verifier = "SCRAM-SHA-256$4096:c2FsdHNhbHQ=$AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    std::fs::write(
        &users,
        format!(
            "\"plain\" \"p\"\n\"hash\" \"md545f2603610af569b6155c45067268c6b\"\n\"scram\" \"{verifier}\"\n"
        ),
    )
    .unwrap();
    let method = |auth_type: &str, user: &str| {
        let text = format!(
            "[databases]\n* = host=h\n[pgbouncer]\nauth_type = {auth_type}\nauth_file = {}\n",
            users.display()
        );
        let admission = from_text("p.ini", &text).admit(Protocol::Postgres, &login(user, None), HERE, None);
        (admission.method, admission.secret.is_some())
    };
    use AuthMethod::{Md5, Plain, ScramSha256, Trust};
    for (auth_type, user, wanted) in [
        ("md5", "plain", (Md5, true)),
        ("md5", "hash", (Md5, true)),
        ("md5", "scram", (ScramSha256, true)),
        ("scram-sha-256", "plain", (ScramSha256, true)),
        ("scram-sha-256", "scram", (ScramSha256, true)),
        ("plain", "scram", (Plain, true)),
        ("trust", "plain", (Trust, true)),
    ] {
        assert_eq!(method(auth_type, user), wanted, "{auth_type} {user}");
    }
    // An unknown user is asked for a password that does not exist: trust believes only known names.
    assert_eq!(method("trust", "nobody").0, ScramSha256);
    // One in three of those that exist is asked by SCRAM; so is one in three of the others. They have a decoy
    // for a verifier.
    assert!([(Md5, false), (ScramSha256, true)].contains(&method("md5", "nobody")));
}

#[test]
fn names_that_do_not_exist_look_like_those_that_do() {
    use weir_auth::secret::SecretKind;
    let verifier = "SCRAM-SHA-256$9000:YSBzYWx0IG9mIDE3IGJ5dA==$AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let users = Path::new(env!("CARGO_TARGET_TMPDIR")).join("verified.txt");
    let seen = |auth_type: &str, file: String, name: &str| {
        std::fs::write(&users, file).unwrap();
        let text = format!(
            "[databases]\n* = host=h\n[pgbouncer]\nauth_type = {auth_type}\nauth_file = {}\n",
            users.display()
        );
        let admission = from_text("p.ini", &text).admit(Protocol::Postgres, &login(name, None), HERE, None);
        let shown = match admission.secret.as_deref().map(weir_auth::Secret::kind) {
            Some(SecretKind::ScramVerifier(verifier)) => Some((verifier.iterations, verifier.salt.clone())),
            Some(_) => panic!("{name} has a secret"),
            None => None,
        };
        (admission.method, shown)
    };
    let all = || format!("\"ann\" \"{verifier}\"\n\"bob\" \"{verifier}\"\n");
    for auth_type in ["scram-sha-256", "plain", "md5", "trust"] {
        let (method, shown) = seen(auth_type, all(), "nobody");
        let (iterations, salt) = shown.clone().unwrap();
        assert_eq!((iterations, salt.len()), (9000, 16), "{auth_type}");
        assert_eq!(method == AuthMethod::Plain, auth_type == "plain");
        // The same when it is asked again, and behind a restart; another name is shown another salt.
        assert_eq!(seen(auth_type, all(), "nobody").1, shown);
        assert_ne!(seen(auth_type, all(), "noone").1, shown);
    }
    // One in two of those that exist has a verifier.
    let half = format!("\"ann\" \"{verifier}\"\n\"bob\" \"in clear\"\n");
    let with = (0..100).filter(|n| seen("plain", half.clone(), &format!("nobody{n}")).1.is_some()).count();
    assert!((20..80).contains(&with), "{with} of 100");
}

#[test]
fn a_hash_of_mysql_native_password() {
    // The hash of "secret": `*` and SHA1(SHA1(password)) in hexadecimal, as mysql.user has it.
    let text = "[databases.a]\nurl = \"mysql://h/a\"\n[databases.b]\nurl = \"postgres://h/b\"\n[users.ann]\n\
                password = \"*14E65567ABDB5135D0CFD9A70B3032C179A49EE7\"\n[users.bob]\npassword = \"*plain\"\n";
    let snapshot = from_text("w.toml", text);
    let method =
        |protocol, user| snapshot.admit(protocol, &login(user, None), Origin::default(), None).method;
    assert_eq!(method(Protocol::Mysql, "ann"), AuthMethod::Native);
    assert_eq!(method(Protocol::Mysql, "bob"), AuthMethod::LikeServer);
    assert_eq!(method(Protocol::Postgres, "ann"), AuthMethod::ScramSha256);
}

#[test]
fn includes() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let more = folder.join("more.ini");
    std::fs::write(&more, "pool_mode = statement\n[databases]\nb = host=h user=u\n").unwrap();
    let text = "[databases]\na = host=h user=u\n[pgbouncer]\nauth_type = any\n%include more.ini\n";
    let name = folder.join("main.ini");
    let snapshot = from_text(name.to_str().unwrap(), text);
    assert_eq!(snapshot.postgres.databases.keys().collect::<Vec<_>>(), ["a", "b"]);
    let route = snapshot.route(Protocol::Postgres, &login("x", Some("a")), None).unwrap();
    assert_eq!(route.pool_mode, PoolMode::Statement);

    std::fs::write(folder.join("loop.ini"), "%include loop.ini\n").unwrap();
    let error = load_text(&folder.join("main.ini"), "%include loop.ini\n", &Sources::default()).unwrap_err();
    assert!(error.to_string().contains("10 deep, not deeper"), "{error}");
}

#[test]
fn what_a_reload_changes() {
    let before = "workers = 2\n[databases.a]\nurl = \"postgres://u:p@h/a\"\n[databases.b]\nurl = \"postgres://u:p@h/b\"\n\
                  [users.ann]\npassword = \"x\"\n[users.bob]\npassword = \"y\"\n";
    let after = before.replace("workers = 2", "workers = 3").replace("h/b", "h2/b").replace("\"y\"", "\"z\"")
        + "[users.cid]\npassword = \"x\"\n[pool]\nquery_timeout = 5\n";
    let old = from_text("w.toml", before);
    let mut new = from_text("w.toml", &after);
    let difference = diff(&old, &new);
    assert_eq!(
        difference.to_string(),
        "workers 2 -> 3 (at the next start), pool.query_timeout 0 -> 5, added postgres user cid, added mysql user cid, \
         changed postgres database b, changed postgres user bob, changed mysql user bob"
    );
    assert!(difference.needs_restart());
    assert!(diff(&old, &from_text("w.toml", before)).is_empty());
    assert_eq!(diff(&new, &old).removed, ["postgres user cid", "mysql user cid"]);

    new.keep_from(&old);
    assert!(Arc::ptr_eq(&new.postgres.databases["a"], &old.postgres.databases["a"]));
    assert!(!Arc::ptr_eq(&new.postgres.databases["b"], &old.postgres.databases["b"]));
    assert!(Arc::ptr_eq(&new.postgres.users["ann"], &old.postgres.users["ann"]));
    assert!(!Arc::ptr_eq(&new.postgres.users["bob"], &old.postgres.users["bob"]));
}

#[test]
fn every_setting_can_be_set_and_shown_again() {
    let base = || Sources::urls(&["postgres://app:secret@127.0.0.1/app"]);
    for row in weir_config::SETTINGS.iter().filter(|row| row.files == weir_config::registry::Files::All) {
        let shown = load(&base()).unwrap().snapshot.values.show(row.key);
        let again = load(&base().with(&row.full_name(), &shown))
            .unwrap_or_else(|e| panic!("{}: {e}", row.full_name()));
        assert_eq!(again.snapshot.values.show(row.key), shown, "{}", row.full_name());
    }
}

#[test]
fn the_question_tells_nobody_who_exists() {
    let users: String = (0..10)
        .map(|n| {
            let password = if n < 4 { format!("*{}", "A5".repeat(20)) } else { "in clear".to_owned() };
            format!("[users.u{n}]\npassword = \"{password}\"\n")
        })
        .collect();
    let text = format!("[databases.shop]\nurl = \"mysql://127.0.0.1/shop\"\n{users}");
    let snapshot = load_text(Path::new("weir.toml"), &text, &Sources::default()).unwrap().snapshot;
    let method =
        |name: &str| snapshot.admit(Protocol::Mysql, &login(name, None), Origin::default(), None).method;
    let natives = |prefix: &str, n: usize| {
        (0..n).filter(|n| method(&format!("{prefix}{n}")) == AuthMethod::Native).count()
    };
    assert_eq!(natives("u", 10), 4);
    let unknown = natives("nobody", 1000);
    assert!(
        (250..550).contains(&unknown),
        "{unknown} of 1000 unknown names are asked as 4 of 10 known ones are"
    );
    assert!((0..50).all(|n| method(&format!("x{n}")) == method(&format!("x{n}"))));
}

#[test]
fn the_account_at_the_other_end_of_a_unix_socket_must_be_the_user() {
    let text = "[postgres]\nauth_type = \"peer\"\n[mysql]\nauth_type = \"auth_socket\"\n[users.root]\npassword = \"x\"\n\
                [users.app]\npassword = \"x\"\n[databases.p]\nurl = \"postgres://127.0.0.1/p\"\n\
                [databases.m]\nurl = \"mysql://127.0.0.1/m\"\n";
    let snapshot = from_text("weir.toml", text);
    for protocol in Protocol::ALL {
        let is = |user, uid| {
            let from = Origin { local: true, uid, ..Origin::default() };
            let admission = snapshot.admit(protocol, &login(user, None), from, None);
            assert_eq!(admission.method, AuthMethod::Peer);
            admission.secret.is_some()
        };
        assert!(is("root", Some(0)), "{protocol:?}");
        assert!(
            !is("app", Some(0)) && !is("root", None) && !is("root", Some(u32::MAX)) && !is("eve", Some(0))
        );
    }
}

#[test]
fn ident_maps_say_which_names_are_which_users() {
    let folder = std::env::temp_dir().join(format!("weir-ident-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("ident.conf");
    std::fs::write(&file, "ops root app\nops \"a client\" app\n").unwrap();
    let text = |map: &str| {
        format!(
            "[postgres]\nauth_type = \"peer\"\nauth_ident_file = \"{}\"\nauth_ident_map = \"{map}\"\n\
             [users.app]\npassword = \"x\"\n[users.root]\npassword = \"x\"\n\
             [databases.p]\nurl = \"postgres://127.0.0.1/p\"\n",
            file.display()
        )
    };
    let peer = from_text("weir.toml", &text("ops"));
    let root = Origin { local: true, uid: Some(0), ..Origin::default() };
    assert!(peer.admit(Protocol::Postgres, &login("app", None), root, None).secret.is_some());
    assert!(
        peer.admit(Protocol::Postgres, &login("root", None), root, None).secret.is_none(),
        "the map does not say so"
    );
    let wrong = load_text(Path::new("weir.toml"), &text("none"), &Sources::default());
    assert!(wrong.is_err_and(|problems| problems.to_string().contains("has no map `none`")));
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A variable that cargo sets for every test.
const VARIABLE: &str = "${CARGO_PKG_NAME}";

#[test]
fn passwords_stand_in_the_environment_or_in_a_file_of_their_own() {
    let folder = env!("CARGO_TARGET_TMPDIR");
    std::fs::write(Path::new(folder).join("app.password"), "p $w\n").unwrap();
    let text = format!(
        "[databases.a]\nurl = \"postgres://app:{VARIABLE}@h/a\"\n\
         [databases.b]\nurl = \"postgres://app@h/b\"\npassword = \"{VARIABLE}\"\n\
         [databases.c]\nurl = \"postgres://app@h/c\"\npassword_file = \"app.password\"\n\
         [databases.d]\nurl = \"postgres://app@h/d\"\npassword_file = \"${{CARGO_MANIFEST_DIR}}/tests/one.password\"\n\
         [users.web]\npassword = \"{VARIABLE}\"\n\
         [users.job]\npassword_file = \"app.password\"\n"
    );
    let snapshot = from_text(&format!("{folder}/weir.toml"), &text);
    let forced = |name: &str| {
        let forced = snapshot.postgres.databases[name].forced_user.as_ref().unwrap();
        format!("{:?}", forced.secret.as_deref().map(|s| s.kind()))
    };
    let plain = |text: &str| {
        let secret = weir_auth::Secret::plain(text);
        format!("{:?}", Some(secret.kind()))
    };
    let same = |name: &str, text: &str| match snapshot.postgres.databases[name]
        .forced_user
        .as_ref()
        .unwrap()
        .secret
        .as_deref()
    {
        Some(secret) => matches!(secret.kind(), SecretKind::Plain(found) if **found == *text),
        None => false,
    };
    assert_eq!(forced("a"), plain(""), "secrets do not show themselves");
    for (name, text) in [("a", "weir-config"), ("b", "weir-config"), ("c", "p $w"), ("d", "one line")] {
        assert!(same(name, text), "database {name}");
    }
    for (name, text) in [("web", "weir-config"), ("job", "p $w")] {
        let secret = snapshot.postgres.users[name].secret.as_deref().unwrap();
        assert!(matches!(secret.kind(), SecretKind::Plain(found) if **found == *text), "user {name}");
    }
    // PgBouncer takes its files as they are.
    let ini = from_text(
        "x.ini",
        &format!("[databases]\na = host=h user=app password={VARIABLE}\n[pgbouncer]\nauth_type = any\n"),
    );
    let forced = ini.postgres.databases["a"].forced_user.as_ref().unwrap();
    assert!(
        matches!(forced.secret.as_deref().unwrap().kind(), SecretKind::Plain(found) if **found == *VARIABLE)
    );
}
